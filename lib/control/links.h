/*
 * Connections between ranks. Each rank has one to the next living rank at or after rank + 2^k, for every k: its neighbours, who
 * are connected to it likewise. What is for all ranks passes from neighbour to neighbour; a message for one goes over a
 * connection to that rank, which is made when it is needed and ended when it has been unused. So a rank has O(log n)
 * connections and those it uses, no rank is needed by the others, and a neighbour that goes is replaced by the one after it.
 *
 *   direct     A connection carries messages from the rank that made it to the other alone, so no two ranks race for one.
 *   notices    Messages to all, numbered by their source, and passed on before anything that is said because of them. Where a
 *              rank has a connection from the source, it takes them from there, in their order among the messages, and a copy
 *              that comes earlier waits, with all that comes after it; else it takes the first copy. A connection begins by
 *              telling which notices come before it, and what it carries waits for those. So causes come before effects.
 *              While a connection with a message is still being made, its source says so by a notice before the next one:
 *              the peer waits for the connection, and no notice overtakes the message.
 *   departures A rank that leaves says so by its last notice, on all of its connections. One whose connection ends without
 * that, and that cannot be connected to any more, has died, and all that see it tell the others, and the dead rank, too, in
 * case it can still hear. breaks     A connection over a network that breaks is made again, and carries on where it stopped
 * (link_renew.c). The end of one within a host is the end of a process.
 *
 * Relies on lib/bootstrap/handshake.h and lib/bootstrap/frame_connection.h for what may be believed. Ranks trust each other; a
 * rank that breaks the rules counts as dead.
 */
#ifndef RONDO_LIB_CONTROL_LINKS_H
#define RONDO_LIB_CONTROL_LINKS_H

#include "lib/bootstrap/address.h"
#include "lib/bootstrap/admission.h"
#include "lib/control/control.h"
#include "lib/control/heartbeat.h"

struct rondo_links;

struct rondo_links_options {
    int rank, size, encrypts;
    int epoll; /* the caller's; what it watches for the links has data.ptr of rondo_links_serve */
    struct rondo_hmac key;
    struct rondo_address listen; /* port 0; 0 bytes: at the Unix socket of this rank */
    struct rondo_heartbeat_limits heartbeat;
    /* Called on the thread that serves, without a lock: messages, and enum rondo_control_event. */
    rondo_control_handler_t handler;
    void *argument;
};

/* Listens. *port: on which port, 0 for a Unix socket. RONDO_ERR_MEMORY, RONDO_ERR_SYSTEM. Connections are accepted as soon as
 * the caller serves events. */
rondo_result_t rondo_links_create(struct rondo_links **links, const struct rondo_links_options *options, uint16_t *port);
/* Closes what is open, which other ranks take for this rank's death unless it has left. */
void rondo_links_destroy(struct rondo_links *links);

/* ---- of the thread that serves ---- */

/* Stores where this rank listens, as others reach it, and then the rank 2^k after it, for each k: RONDO_ADDRESS_STORED bytes
 * for each. Returns 0, or -1 without memory, or for another number of bytes. Of a job by Unix sockets there are none. */
int rondo_links_set_places(struct rondo_links *links, const unsigned char *places, size_t bytes);
/* Begins to connect to the neighbours. */
void rondo_links_begin(struct rondo_links *links);
/* Whether the connections to all neighbours are open, and this rank has been told, and has told, where all others listen: tells
 * what it has to tell. */
int rondo_links_are_linked(struct rondo_links *links);
/* Says in a text to which rank this one cannot connect, and why; or which one has not told where others listen; or that this
 * rank has no memory for connections. */
void rondo_links_describe_trouble(struct rondo_links *links, char *text, size_t bytes);
/* The job has formed: from now on ranks that end their connections have died. */
void rondo_links_formed(struct rondo_links *links);

/* Serves an event, of which no other was fetched together with it. */
void rondo_links_serve(struct rondo_links *links, enum rondo_watched *watched, uint32_t events);
/* Does what is due: new attempts, deaths that were noticed, signs of life. Returns when to call it again; INT64_MAX: never. */
int64_t rondo_links_expire(struct rondo_links *links);
/* Whether this rank has left and nothing is to be waited for: all has been sent, and the others have taken it, or the time is
 * up; or the connections were given up. */
int rondo_links_are_over(struct rondo_links *links);

/* ---- of any thread ---- */

/* As rondo_control_count. */
void rondo_links_count(struct rondo_links *links, struct rondo_control_costs *costs);

/* As rondo_control_send, with a valid destination, type and length. *wakes: the thread that serves must be woken. */
rondo_result_t rondo_links_send(struct rondo_links *links, int destination, uint32_t type, const void *data, size_t bytes,
                                int *wakes);
/* As rondo_control_notify. */
void rondo_links_notify(struct rondo_links *links, uint32_t type, const void *data, size_t bytes);
/* As rondo_control_reach. */
rondo_result_t rondo_links_reach(struct rondo_links *links, int destination);
/* The others shall take this rank for dead. The thread that serves must be woken. */
void rondo_links_give_up(struct rondo_links *links);
/* Says goodbye. deadline: by rondo_clock_ms, for what is queued to be sent. The thread that serves must be woken. */
void rondo_links_leave(struct rondo_links *links, int64_t deadline);

#endif
