/*
 * One connection between two ranks, and the table of them (lib/control/links.h): what the files of this room share.
 *
 * The lock guards the table, the states, the letters and the sending half of each connection. Any thread adds connections, at
 * the front of the list; only the thread that serves opens, reads and closes them, and therefore goes along the list and reads
 * the states without the lock.
 */
#ifndef RONDO_LIB_CONTROL_LINK_H
#define RONDO_LIB_CONTROL_LINK_H

#include "lib/control/links.h"

#include <pthread.h>
#include <stdatomic.h>

/* A message that no connection has taken yet, or that waits for its place in an order. */
struct rondo_letter {
    struct rondo_letter *next;
    uint32_t type;
    int source, destination; /* destination: below 0 the complement of a notice's number */
    size_t bytes;
    unsigned char data[];
};

struct rondo_letters {
    struct rondo_letter *first, *last;
};

/* How many notices of some sources come before what a connection carries. The first source is the one that has made it. */
struct rondo_before {
    uint32_t count;
    struct {
        uint32_t source, notices;
    } of[];
};
enum { RONDO_BEFORE_SOURCES = 64 }; /* those whose notices were delivered last, beside this rank's own */

enum rondo_link_state {
    RONDO_LINK_WAITING,    /* for the next attempt */
    RONDO_LINK_CONNECTING, /* then for the challenge */
    RONDO_LINK_CHALLENGED, /* the challenge arrives */
    RONDO_LINK_ANSWERED,   /* the hello has been sent; the verdict arrives */
    RONDO_LINK_CUT,        /* its peer is to make it again */
    RONDO_LINK_RENEWING,   /* made again; what the peer has taken arrives */
    RONDO_LINK_OPEN,
    RONDO_LINK_ENDING, /* its end has been sent, and the other side closes it; letters wait for the next connection */
    RONDO_LINK_CLOSED, /* freed when the event has been served */
};

struct rondo_link {
    enum rondo_watched watched;
    struct rondo_link *next, *previous;
    int peer, is_out; /* is_out: made by this rank */
    int is_neighbour; /* what is for all ranks passes here */
    enum rondo_link_state state;
    struct rondo_frame_connection connection;
    struct rondo_heartbeat heartbeat;
    uint32_t events;        /* watched for */
    int is_given_up;        /* the peer has broken the rules, or leaves too much untaken */
    int is_lossy;           /* made again after one that had ended without its peer's goodbye */
    int broken;             /* found while sending */
    int shut;               /* nothing more will be sent, and the other side knows */
    int places;             /* of ranks, that have been told over it while the job forms */
    int64_t progress, used; /* when the socket last took something; when a message was last put */

    /* of those over a network (lib/control/link_renew.c), modulo 2^32 */
    uint32_t put, acknowledged;  /* frames; those that the peer has said it has taken */
    uint32_t taken, told;        /* the peer's frames; those that it has been told of */
    size_t untold_bytes;         /* of the others */
    struct rondo_letters unsure; /* put and not acknowledged */
    int forgets;                 /* there was no memory to keep one */
    int ends;                    /* it broke when its end had been sent */

    /* of those that this rank makes; and of all that are made again */
    struct rondo_handshake handshake;
    size_t got;                     /* bytes of the message of the handshake that arrives */
    int64_t since, again, deadline; /* of the first attempt; of the next; of this one */
    int error;                      /* errno of the last attempt */
    int is_reached;                 /* the last attempt came to a connection: only the process has not answered */
    struct rondo_letters letters;   /* to be sent */
    int has_message;                /* one of them is for the peer alone, which has not been told to await it */
    struct rondo_letter *spare;     /* for a notice when memory is out */

    /* of those that others make */
    int begun;      /* RONDO_FRAME_BEGIN has come */
    int left;       /* the source's last notice has come on this connection */
    uint64_t begin; /* notices of the source before it: the others it tells itself */
    int is_final;   /* the source has died: nothing on the connection is waited for */

    /* of all */
    struct rondo_before *before; /* what comes before the first letter, or frame; NULL: nothing */
    int64_t paused;              /* since when nothing is read, because a notice must come first; 0: it is read */
    struct rondo_letter
        *held; /* the copy of a notice that the connection from its source is to tell; NULL: `begin` is paused for */
};

struct rondo_links {
    struct rondo_links_options options;
    struct rondo_admission admission;
    pthread_mutex_t lock;
    struct rondo_link *first, *closed;
    struct rondo_link **out, **in; /* by peer; NULL: none */
    unsigned char *places;         /* by rank, once the job has formed; NULL: names of Unix sockets */
    int tells_places;              /* the root has told the neighbours' */
    struct rondo_control_costs costs;
    uint64_t notices;                      /* this rank's */
    uint64_t *delivered;                   /* by source: the number after the last notice that was delivered */
    atomic_uchar *gone;                    /* by rank: the event; 0: not gone */
    unsigned char *awaited;                /* by rank: it connects to this one, to say what comes before its next notice */
    uint32_t recent[RONDO_BEFORE_SOURCES]; /* sources of notices that were delivered, latest first */
    uint32_t recent_count;
    unsigned char *noticed; /* by rank: died, and is still to be treated so */
    int noticed_some, some_may_resume;
    struct rondo_letters own; /* to this rank itself */
    int formed;
    atomic_int closing;
    atomic_int giving_up; /* this rank does not count any more, by its own wish or because the others say so */
    atomic_int lost;      /* ... and has ended its connections */
    int64_t closing_until;
    int64_t repair; /* when to look for new neighbours; INT64_MAX: never */
    int64_t next_look;
};

/* ---- lib/control/link_send.c: the table; with the lock, but for rondo_links_first ---- */

/* Returns NULL if memory is out. */
struct rondo_letter *rondo_letter_make(uint32_t type, int source, int destination, const void *data, size_t bytes);
void rondo_letters_append(struct rondo_letters *letters, struct rondo_letter *letter);
/* Takes the first letter, which the caller frees. There must be one. */
struct rondo_letter *rondo_letters_take(struct rondo_letters *letters);
void rondo_letters_drop(struct rondo_letters *letters);

/* Adds a connection to the peer, or from it, that is not open. Returns NULL if memory is out. */
struct rondo_link *rondo_link_add(struct rondo_links *links, int peer, int is_out);
/* Notes what comes before the first letter of a connection that this rank makes: all that has passed so far. Returns -1 if
 * memory is out. */
int rondo_link_note_before(struct rondo_links *links, struct rondo_link *link);
/* Closes a connection, which is freed when the event has been served, because callers may be reading it. */
void rondo_link_close(struct rondo_links *links, struct rondo_link *link);
void rondo_links_free_closed(struct rondo_links *links);
/* Returns the front of the list; takes the lock for it. */
struct rondo_link *rondo_links_first(struct rondo_links *links);

/* ---- lib/control/link_send.c: sending; with the lock. What does not return a result makes this rank give up if memory is
 * out. ---- */

/* Watches an open connection for what it waits for: nothing to read while it is paused. */
void rondo_link_watch(struct rondo_links *links, struct rondo_link *link);
/* Sends what the socket takes. */
void rondo_link_flush(struct rondo_links *links, struct rondo_link *link);
/* Queues a message, whose data are given apart from its head; notices even if memory is out, as long as what is set aside
 * lasts. Returns -1 if there is no memory. */
int rondo_link_put(struct rondo_links *links, struct rondo_link *link, const struct rondo_letter *head, const void *data);
/* Puts a frame on an open connection. Returns -1 if there is no memory. */
int rondo_link_put_frame(struct rondo_links *links, struct rondo_link *link, const struct rondo_letter *letter,
                         const void *data);
/* Puts what has waited for the connection, which is open. */
void rondo_link_put_letters(struct rondo_links *links, struct rondo_link *link);
/* As rondo_link_put, of a message of the connections themselves. */
void rondo_link_say(struct rondo_links *links, struct rondo_link *link, uint32_t type, int source, const void *data,
                    size_t bytes);
/* Sends a notice of this rank. RONDO_ERR_MEMORY, and this rank gives up, if memory is out; RONDO_ERR_INTERNAL if it has made
 * the most. */
rondo_result_t rondo_links_put_notice(struct rondo_links *links, uint32_t type, const void *data, size_t bytes);
/* Passes what is for all ranks on, to neighbours and over what this rank has made, so that whatever it says because of it comes
 * after it; but not to the neighbour that it is from, and not to the source. */
void rondo_links_pass_on(struct rondo_links *links, const struct rondo_frame *frame, int from);
/* Tells the peer who has gone, once the job has formed; and, introduced, that it is a neighbour. */
void rondo_link_tell_gone(struct rondo_links *links, struct rondo_link *link);
void rondo_link_introduce(struct rondo_links *links, struct rondo_link *link);
/* Opens a connection that this rank has made and whose handshake is done, and sends what has waited for it. */
void rondo_link_open(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame_key *to_peer,
                     const struct rondo_frame_key *from_peer);

/* ---- lib/control/link_renew.c: connections that break and are made again; with the lock, but where a frame is taken ---- */

/* Whether it is made again when it breaks. */
int rondo_link_is_renewable(const struct rondo_links *links, const struct rondo_link *link);
/* Whether its maker is still to say whether it is a new one: until then nothing is put on it. */
int rondo_link_is_unbegun(const struct rondo_links *links, const struct rondo_link *link);
/* Counts a frame that has been put, and holds it until the peer has taken it. */
void rondo_link_keep(struct rondo_links *links, struct rondo_link *link, const struct rondo_letter *head, const void *data);
/* The connection is no longer the same to both: what was counted does not hold for another one. */
void rondo_link_forget(struct rondo_link *link);
/* Says how many frames have been taken: a sign of life. */
void rondo_link_tell_taken(struct rondo_links *links, struct rondo_link *link);
/* Says it on all connections where it has not been said. */
void rondo_links_tell_rest(struct rondo_links *links);
/* The connection has broken. */
void rondo_link_cut(struct rondo_links *links, struct rondo_link *link);
/* It is cut, or is being renewed. Returns when to look again. */
int64_t rondo_link_look_at_cut(struct rondo_links *links, struct rondo_link *link, int64_t now);
/* link->connection is another one, that was made in place of one that broke. */
void rondo_link_connect_again(struct rondo_links *links, struct rondo_link *link);
/* A frame has been taken. */
void rondo_link_count_taken(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame);
/* RONDO_FRAME_BEAT and RONDO_FRAME_RENEW. Each returns 0, or -1 if no rank sends such a frame. */
int rondo_link_take_beat(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame);
int rondo_link_take_renew(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame);

/* ---- lib/control/link_receive.c: of the thread that serves ---- */

/* The other side knows the connection no more: closes it, or connects anew if there is something to say. With the lock. */
void rondo_link_end(struct rondo_links *links, struct rondo_link *link);

/* Any thread. */
int rondo_links_is_gone(const struct rondo_links *links, int rank);
/* The rank has died; rondo_links_settle does what follows. With or without the lock. */
void rondo_links_notice_death(struct rondo_links *links, int rank);
/* The connection has ended, or its peer has broken the rules, and counts as dead then. One over a network is made again. One
 * within a host ends with a process: with that which made it, or the other one, who is first asked whether it still listens, so
 * that no two ranks count as dead for one connection. */
void rondo_link_lose(struct rondo_links *links, struct rondo_link *link);
/* Reads what has arrived. */
void rondo_link_read(struct rondo_links *links, struct rondo_link *link);
/* Takes the frames that have been read. Returns -1 if the connection is of no use any more. */
int rondo_link_take_frames(struct rondo_links *links, struct rondo_link *link);
/* Ends a pause: a copy that the connection from its source has not told is delivered. */
void rondo_link_resume(struct rondo_links *links, struct rondo_link *link);
/* What the connection is paused for will not come, and is not waited for. */
void rondo_link_waive(struct rondo_links *links, struct rondo_link *link);
/* Does what serving has led to, which may lead to more: deaths, pauses that end, giving up. Frees closed connections. */
void rondo_links_settle(struct rondo_links *links);

/* ---- lib/control/places.c: of the thread that serves ---- */

/* Takes places that the peer tells while the job forms. Returns 0, or -1 if they are none that it is to tell. */
int rondo_link_take_places(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame);
/* Tells the neighbours what they lack, as far as this rank knows it; with the lock. Returns whether all has been told, and this
 * rank has all; else *missing is the rank that is waited for. */
int rondo_links_share_places(struct rondo_links *links, int *missing);

/* ---- lib/control/link_open.c: of the thread that serves, with the lock ---- */

rondo_result_t rondo_link_listen(struct rondo_links *links, uint16_t *port);
/* Begins to connect, or notes why that fails and when to try again. */
void rondo_link_try(struct rondo_links *links, struct rondo_link *link);
/* Goes on with the handshake. Returns 1 if the connection is ready for keys, which *to_peer and *from_peer then are. */
int rondo_link_shake(struct rondo_links *links, struct rondo_link *link, struct rondo_frame_key *to_peer,
                     struct rondo_frame_key *from_peer);
/* Ends an attempt. */
void rondo_link_fail(struct rondo_links *links, struct rondo_link *link, int error);
/* Stores where the peer listens. RONDO_ERR_INTERNAL. */
rondo_result_t rondo_link_place(const struct rondo_links *links, int peer, struct rondo_address *address);

#endif
