/*
 * The connections of a root (lib/bootstrap/router.h) and what passes between them: who is there, messages from one to another,
 * news of death and departure. Whom to let in is the router's business. Used by the root's thread only.
 *
 * A member that has ended is freed at the end of a round (rondo_members_reap), because later events of the round may name it.
 */
#ifndef RONDO_LIB_BOOTSTRAP_MEMBERS_H
#define RONDO_LIB_BOOTSTRAP_MEMBERS_H

#include "lib/bootstrap/handshake.h"
#include "lib/bootstrap/heartbeat.h"
#include "lib/bootstrap/frame_connection.h"

enum rondo_member_phase {
    RONDO_MEMBER_PENDING, /* has not proven itself; of its wire only the descriptor counts */
    RONDO_MEMBER_JOINED,
    RONDO_MEMBER_LEAVING, /* has said goodbye, or has been told that the job cannot form: closed once its queue is empty */
    RONDO_MEMBER_HELD,    /* has said goodbye, and is answered when its process, which is the root's, may go */
    RONDO_MEMBER_ENDED,   /* closed */
    RONDO_MEMBER_PHASES,
};

struct rondo_member {
    struct rondo_member *next, *previous; /* all of them, newest first */
    struct rondo_member *next_dirty;
    struct rondo_frame_connection frames;
    struct rondo_handshake handshake;
    struct rondo_heartbeat heartbeat; /* once JOINED */
    enum rondo_member_phase phase;
    int rank, local;    /* local: of this process */
    int dirty, writing; /* in the list of those to flush; the socket is watched for room */
    size_t hello_bytes; /* received of the hello */
    int64_t deadline;   /* when PENDING or LEAVING is cut short; INT64_MAX: never */
    int64_t progress;   /* when the socket last took something */
};

struct rondo_members {
    int epoll, size;                 /* size 0: not known yet */
    int joined, left;                /* ranks that are there; ranks that have left or died after forming */
    int formed, failed;              /* all have met; they will not */
    int counts[RONDO_MEMBER_PHASES]; /* members in each phase */
    int beats;                       /* some members are on other hosts */
    int64_t next_beat;
    struct rondo_member **by_rank; /* NULL: not there, or no more */
    unsigned char *gone;           /* by rank: was there after forming, and is no more */
    struct rondo_member *list, *dirty;
    struct rondo_member *anchor; /* of the rank that started the root; without it the job cannot form */
};

rondo_result_t rondo_members_create(struct rondo_members *members, int size);
void rondo_members_destroy(struct rondo_members *members);
/* Once, while size is 0. */
rondo_result_t rondo_members_resize(struct rondo_members *members, int size);

/* Takes fd, which is closed if NULL is returned. The member is PENDING, its deadline INT64_MAX. */
struct rondo_member *rondo_members_add(struct rondo_members *members, int fd);
/* A PENDING member with its keys becomes JOINED. */
void rondo_members_join(struct rondo_members *members, struct rondo_member *member, int rank, int local);
/* Closes without telling anyone. */
void rondo_members_end(struct rondo_members *members, struct rondo_member *member);
/* The connection has broken, or its other end has broken the rules: closes, and tells the others what that means. */
void rondo_members_lose(struct rondo_members *members, struct rondo_member *member);

/* Queues for every joined rank but source. */
void rondo_members_broadcast(struct rondo_members *members, uint32_t type, int source, const void *data, size_t bytes);
/* The job cannot form any more: everybody who came is told why. */
void rondo_members_fail(struct rondo_members *members, const char *reason);

/* Reads what has come from a member that is not PENDING, and passes it on. */
void rondo_members_read(struct rondo_members *members, struct rondo_member *member);
void rondo_members_mark(struct rondo_members *members, struct rondo_member *member); /* to be flushed */
/* Sends signs of life to those on other hosts, and gives up who has given none. Returns when to look again, INT64_MAX: never.
 */
int64_t rondo_members_beat(struct rondo_members *members, int64_t now);
/* Writes what is queued, closes those who may go, frees those who have ended. */
void rondo_members_finish_round(struct rondo_members *members);

#endif
