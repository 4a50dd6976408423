/*
 * Passing open descriptors from the process that has them to others of this user and host, on an abstract Unix socket that the
 * control thread serves. It relies on rondo_control_watch; the owner decides which descriptors are passed, and to which
 * requests.
 *
 * A request is one packet, so it arrives whole; the answer is another. Serving never blocks: sockets are non-blocking, and
 * clients that ask for nothing are bounded in number and time.
 */
#ifndef RONDO_TRANSPORT_MEMORY_DESCRIPTOR_PASSING_H
#define RONDO_TRANSPORT_MEMORY_DESCRIPTOR_PASSING_H

#include "lib/control/control.h"

enum { RONDO_DESCRIPTOR_NAME = 16, RONDO_DESCRIPTOR_KEY = 16 };

struct rondo_descriptor_passing; /* the serving side */

/* What a client presents: the thing's number, and the key that its owner gave out with it. */
struct rondo_descriptor_passing_request {
    uint64_t id;
    unsigned char key[RONDO_DESCRIPTOR_KEY];
};

/* Called on the control thread. find returns the thing asked for with one more reference, its size and its descriptor, or NULL;
 * drop takes the reference back. */
struct rondo_descriptor_passing_owner {
    void *argument;
    void *(*find)(void *argument, const struct rondo_descriptor_passing_request *request, uint64_t *bytes, int *fd);
    void (*drop)(void *thing);
};

/* Begins to serve. *name: random; clients address their requests to it. RONDO_ERR_SYSTEM, RONDO_ERR_MEMORY. */
rondo_result_t rondo_descriptor_passing_create(struct rondo_descriptor_passing **passing, struct rondo_control *control,
                                               const struct rondo_descriptor_passing_owner *owner,
                                               unsigned char name[RONDO_DESCRIPTOR_NAME]);
/* When it returns, the owner is not called any more. */
void rondo_descriptor_passing_destroy(struct rondo_descriptor_passing *passing);

/* The client's side; blocks for at most milliseconds, and may not be called on a control thread. Either *fd is the thing's
 * descriptor, which the caller closes; or it is -1, and *thing is what the owner's find returned, with the reference: then the
 * owner is in this very process.
 * RONDO_ERR_TRANSPORT if the owner is gone, does not answer, or has no such thing. */
rondo_result_t rondo_descriptor_passing_ask(const unsigned char name[RONDO_DESCRIPTOR_NAME],
                                            const struct rondo_descriptor_passing_request *request, int milliseconds, int *fd,
                                            void **thing);

#endif
