/*
 * The control plane (docs/architecture.md): small authenticated messages between any two ranks, and which ranks have died and
 * which have left. A root brings the ranks together: a thread of the process that called rondo_get_unique_id, or of rank 0.
 * Once the job has formed it is not needed, and any rank may die (lib/control/links.h).
 *
 * It knows nothing of collectives. The ranks trust each other; the network between them is not trusted.
 */
#ifndef RONDO_LIB_CONTROL_CONTROL_H
#define RONDO_LIB_CONTROL_CONTROL_H

#include "lib/bootstrap/job.h"
#include "rondo.h"
#include <stddef.h>
#include <stdint.h>

struct rondo_control;

/* Types 0 to 15 are the control plane's own; these three are delivered to the handler with no data. */
enum rondo_control_event {
    RONDO_CONTROL_DIED = 1, /* a connection of source broke before its goodbye */
    RONDO_CONTROL_LEFT = 2, /* source has said goodbye */
    RONDO_CONTROL_LOST = 3, /* the others take this rank for dead: none can be reached any more; source is itself */
    RONDO_CONTROL_FIRST_USER_TYPE = 32
};

/*
 * Called on the control thread (512 KiB of stack), one message at a time, until rondo_control_close returns. Messages of one
 * source come in the order in which it sent them, those to all ranks among them; and after a message to all that its source had
 * got before it sent them. A handler must not block for long, nor call rondo_control_close. data is valid during the call and
 * 8-byte aligned; NULL if bytes is 0. No message of a rank comes after it has died or left.
 */
typedef void (*rondo_control_handler_t)(void *argument, int source, uint32_t type, const void *data, size_t bytes);

/*
 * Connects this rank and starts its control thread. Every rank of the job calls it; it returns RONDO_SUCCESS once all of them
 * have connected, and blocks for at most connect_timeout and a little. *control is set before the handler is called for the
 * first time, which may be before this returns. The strings need to live only during the call. RONDO_ERR_BOOTSTRAP with the
 * reason: which ranks are missing, a refused secret, a rank given twice, sizes that differ, an address that does not resolve.
 * RONDO_ERR_ARGUMENT for a rank, size or timeout out of range; RONDO_ERR_MEMORY; RONDO_ERR_SYSTEM. *control is then NULL or
 * untouched.
 */
rondo_result_t rondo_control_connect(struct rondo_control **control, const struct rondo_job_options *options,
                                     rondo_control_handler_t handler, void *argument);

/*
 * Sends a message of a type of at least RONDO_CONTROL_FIRST_USER_TYPE and at most RONDO_CONTROL_MESSAGE_MAX bytes, which are
 * copied. Any thread may call, the handler too. The message is queued if the socket is full, or there is no connection yet, so
 * the call never waits for the receiver. A message to the own rank is delivered like any other; RONDO_CONTROL_ALL reaches those
 * that have not left or died, from neighbour to neighbour, which is no way for long messages. RONDO_ERR_PEER if dest is known
 * to have died or left, or the others take this rank for dead; a message to a rank that has ended but is not known to have is
 * dropped. RONDO_ERR_MEMORY once 512 MiB are queued; RONDO_ERR_STATE after rondo_control_close has begun. A rank that leaves 64
 * MiB of another's messages unread, and reads nothing for 2 s, counts as dead.
 */
rondo_result_t rondo_control_send(struct rondo_control *control, int dest, uint32_t type, const void *data, size_t bytes);

/* What this rank has done so far to reach the others, but for signs of life, and for what passed between it and the root. */
struct rondo_control_costs {
    uint64_t made, accepted; /* connections */
    uint64_t messages;       /* sent over them */
    uint64_t bytes;          /* of these, with their heads and tags */
};
/* Any thread. */
void rondo_control_count(struct rondo_control *control, struct rondo_control_costs *costs);

/* Returns RONDO_ERR_PEER with the reason if dest is known to have died or left, or the others take this rank for dead. When
 * that becomes known, the handler is called after this has begun to say so. Any thread. */
rondo_result_t rondo_control_reach(struct rondo_control *control, int dest);

/*
 * Sends a message of at most RONDO_CONTROL_NOTICE_MAX bytes to all other ranks, who must get it or learn that this rank is
 * gone. It does not fail for want of memory, for which some is set aside with each connection; where even that has been used
 * up, all are ended, so that the others take this rank for dead and this one gets RONDO_CONTROL_LOST. Any thread.
 */
void rondo_control_notify(struct rondo_control *control, uint32_t type, const void *data, size_t bytes);

/* Ends all connections, because this rank cannot do what the others count on: they take it for dead, and this one gets
 * RONDO_CONTROL_LOST. Any thread. */
void rondo_control_give_up(struct rondo_control *control);

/*
 * From now on fn(argument) is called on the control thread whenever fd is readable. A control watches one descriptor at a time
 * (RONDO_ERR_STATE for a second one); fd -1 ends that: when the call returns, fn is not running and will not be called again.
 * Any thread may call, but not fn. The caller keeps fd open meanwhile.
 */
rondo_result_t rondo_control_watch(struct rondo_control *control, int fd, void (*fn)(void *argument), void *argument);

/*
 * Sends what is queued and says goodbye to all, ends the control thread and frees the control. Takes at most so many seconds,
 * more than 0, and at most 2 s after all has been sent: a rank that has not answered the goodbye by then is named in a
 * warning. No rank waits for another to leave. Not from the handler. NULL: does nothing.
 */
void rondo_control_close(struct rondo_control *control, double seconds);

#endif
