/*
 * The control plane (docs/architecture.md): ranks meet at a root, prove a shared secret, and keep that connection, over which
 * small authenticated messages travel between any two ranks. It also tells who died and who left.
 *
 * The root is a thread of the process that called rondo_get_unique_id, or of rank 0. It routes; it knows nothing of
 * collectives.
 */
#ifndef RONDO_LIB_BOOTSTRAP_CONTROL_H
#define RONDO_LIB_BOOTSTRAP_CONTROL_H

#include "rondo.h"
#include <stddef.h>
#include <stdint.h>

struct rondo_control;

enum { RONDO_CONTROL_ALL = -1 };              /* destination: every rank but the sender */
enum { RONDO_CONTROL_MESSAGE_MAX = 1 << 20 }; /* bytes of one message's data */

enum { RONDO_CONTROL_SIZE_MAX = 1 << 20 }; /* ranks of a job */

/* Types 0 to 15 are the control plane's own; these three are delivered to the handler with no data. */
enum rondo_control_event {
    RONDO_CONTROL_DIED = 1, /* source's connection broke before it said goodbye */
    RONDO_CONTROL_LEFT = 2, /* source has said goodbye */
    RONDO_CONTROL_LOST = 3, /* this rank's own connection to the root broke: nobody can be reached any more; source is itself */
    RONDO_CONTROL_FIRST_USER_TYPE = 16
};

struct rondo_control_options {
    int rank, size;
    const rondo_unique_id_t *unique_id; /* not NULL: meet there; the rest below is then ignored but for connect_timeout */
    const char *root;                   /* "host:port"; NULL: a Unix socket of this host, found by job and user */
    const char *secret;                 /* NULL: none given, which a root that is not on loopback refuses */
    const char *job;                    /* NULL: the empty one */
    double connect_timeout;             /* seconds, more than 0 */
};

/* Called on the control thread (512 KiB of stack), one message at a time, in order for each source, until rondo_control_close
 * returns. It must not block for long, nor call rondo_control_close. data is valid during the call and 8-byte aligned; NULL if
 * bytes is 0. */
typedef void (*rondo_control_handler_t)(void *argument, int source, uint32_t type, const void *data, size_t bytes);

/* Returns once all size ranks have met; else RONDO_ERR_BOOTSTRAP with the reason (which ranks are missing, a refused secret, a
 * rank given twice, sizes that differ, an address that does not resolve). The control thread runs from then on: *control is set
 * before the handler is called for the first time, which may be before this returns. */
rondo_result_t rondo_control_connect(struct rondo_control **control, const struct rondo_control_options *options,
                                     rondo_control_handler_t handler, void *argument);

/* Thread-safe; also from the handler. Queues if the socket is full, so it never waits for the receiver. A message to oneself is
 * delivered like any other. RONDO_ERR_PEER if dest is known to be dead or gone, or the root is; a message to a rank that is not
 * yet known to be so is dropped. What goes to all goes to those who are left. RONDO_ERR_MEMORY once 512 MiB are queued. A rank
 * that leaves 64 MiB of others' messages unread, and reads nothing for 2 s, is taken for dead. */
rondo_result_t rondo_control_send(struct rondo_control *control, int dest, uint32_t type, const void *data, size_t bytes);

/* fn(argument) is called on the control thread whenever fd is readable. One descriptor per control, until it is taken back by
 * fd -1: when that returns, fn is not running and will not be called again. Not to be called from fn. */
rondo_result_t rondo_control_watch(struct rondo_control *control, int fd, void (*fn)(void *argument), void *argument);

/* Says goodbye, flushes, ends the thread; bounded by 10 seconds. In the process that owns the root it returns when every rank
 * has left or died, or while another rank of this process is still there to keep the root alive. NULL: nothing. */
void rondo_control_close(struct rondo_control *control);

#endif
