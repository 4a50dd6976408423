/*
 * The root's connections (lib/bootstrap/router.h) and what passes between them: which ranks are connected, messages from one to
 * another, notifications of ranks that have died or left. Which connections are admitted is the router's business. Relies on
 * lib/bootstrap/frame_connection.h. Every function is called on the root's thread only.
 *
 * A member that has ended is freed at the end of a round (rondo_members_finish_round), because later events of the round may
 * still name it.
 */
#ifndef RONDO_LIB_BOOTSTRAP_MEMBERS_H
#define RONDO_LIB_BOOTSTRAP_MEMBERS_H

#include "lib/bootstrap/handshake.h"
#include "lib/bootstrap/heartbeat.h"
#include "lib/bootstrap/frame_connection.h"

enum rondo_member_phase {
    RONDO_MEMBER_PENDING, /* unauthenticated: of its connection only the descriptor counts */
    RONDO_MEMBER_JOINED,
    RONDO_MEMBER_LEAVING, /* has said goodbye, or has been told that the job cannot form: closed once its queue is empty */
    RONDO_MEMBER_HELD,    /* has said goodbye, and is answered when its process, which is the root's, may end */
    RONDO_MEMBER_ENDED,   /* closed */
    RONDO_MEMBER_PHASES,
};

struct rondo_member {
    struct rondo_member *next, *previous; /* all of them, newest first */
    struct rondo_member *next_dirty;
    struct rondo_frame_connection connection;
    struct rondo_handshake handshake;
    const struct rondo_hmac *secret;  /* that the handshake proves; the router's */
    struct rondo_heartbeat heartbeat; /* once JOINED */
    enum rondo_member_phase phase;
    int rank, local;    /* local: a rank of this process */
    int dirty, writing; /* dirty: in the list of those to flush; writing: the socket is watched for room */
    size_t hello_bytes; /* received of the hello */
    int64_t deadline;   /* when PENDING or LEAVING is cut short, by rondo_clock_ms; INT64_MAX: never */
    int64_t progress;   /* when the socket last took something */
};

struct rondo_members {
    int epoll, size;                 /* size: ranks of the job; 0: not known yet */
    int joined, left;                /* ranks that are JOINED; ranks that have left or died after forming */
    int formed, failed;              /* formed: all ranks have joined. failed: they never will */
    int counts[RONDO_MEMBER_PHASES]; /* members in each phase */
    int abandoned;                   /* the last rank of this process has ended while it was HELD: it waits no longer */
    int beats;                       /* signs of life are expected of some members */
    int64_t next_beat;
    struct rondo_heartbeat_limits heartbeat;
    struct rondo_member **by_rank; /* NULL: not JOINED */
    unsigned char *gone;           /* by rank: was JOINED after forming, and is no more */
    struct rondo_member *first, *dirty;
    struct rondo_member *anchor; /* of the rank that started the root; without it the job cannot form */
};

/* Prepares members without any connection. size: ranks of the job, or 0 if the first hello says it. RONDO_ERR_SYSTEM,
 * RONDO_ERR_MEMORY; rondo_members_destroy is due in any case. */
rondo_result_t rondo_members_create(struct rondo_members *members, int size);
void rondo_members_destroy(struct rondo_members *members);
/* Sets the size of the job; once, while it is 0. RONDO_ERR_MEMORY. */
rondo_result_t rondo_members_resize(struct rondo_members *members, int size);

/* Makes a PENDING member of the connected socket fd, with no deadline, and watches it. Returns NULL, with fd closed, if memory
 * or watches are out. */
struct rondo_member *rondo_members_add(struct rondo_members *members, int fd);
/* Makes a PENDING member, whose connection has been opened with its keys, the JOINED one of its rank. The last rank to join
 * forms the job: all ranks are told. */
void rondo_members_join(struct rondo_members *members, struct rondo_member *member, int rank, int local);
/* Closes the member's connection and tells no other member. */
void rondo_members_end(struct rondo_members *members, struct rondo_member *member);
/* The member's connection has broken, or its other end has violated the protocol: closes it. After the job has formed, the
 * other ranks are told that this one has died; before, losing the anchor fails the job. A HELD member that goes and leaves no
 * other rank of this process behind makes the members abandoned. */
void rondo_members_lose(struct rondo_members *members, struct rondo_member *member);

/* Names the ranks that are connected, or those that are not, in a text of at least 256 bytes. Returns its length. */
int rondo_members_name(const struct rondo_members *members, int connected, char *text, size_t bytes);

/* Queues a frame for every joined rank but source. */
void rondo_members_broadcast(struct rondo_members *members, uint32_t type, int source, const void *data, size_t bytes);
/* The job cannot form any more: tells every joined rank why, and lets them go. */
void rondo_members_fail(struct rondo_members *members, const char *reason);

/* Reads what has arrived from a member that is not PENDING, and routes it. */
void rondo_members_read(struct rondo_members *members, struct rondo_member *member);
/* The member's queue will be flushed at the end of the round. */
void rondo_members_mark(struct rondo_members *members, struct rondo_member *member);
/* Queues signs of life for members on other hosts, and loses those that have been silent for too long. now: rondo_clock_ms.
 * Returns when to call it again; INT64_MAX: never. */
int64_t rondo_members_beat(struct rondo_members *members, int64_t now);
/* Writes what is queued, closes the members that may go, frees those that have ended. No pointer to a member is good afterwards
 * unless the member is still among them. */
void rondo_members_finish_round(struct rondo_members *members);

#endif
