/*
 * Handing open descriptors from the process that has them to others of this user and host, on an abstract Unix socket served
 * by the control thread. It relies on rondo_control_watch; what is handed over, and to whom, is the owner's business.
 *
 * A request is one packet, so there are no halves of it; the answer is another. Serving never blocks: sockets are non-blocking,
 * and clients that ask for nothing are bounded in number and time.
 */
#ifndef RONDO_TRANSPORT_MEMORY_DESCRIPTOR_PASSING_H
#define RONDO_TRANSPORT_MEMORY_DESCRIPTOR_PASSING_H

#include "lib/bootstrap/control.h"

enum { RONDO_DESCRIPTOR_NAME = 16, RONDO_DESCRIPTOR_KEY = 16 };

struct rondo_descriptor_passing; /* the serving side */

/* What a client presents: which thing, and the key that its owner gave out with it. */
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

/* name is random and tells clients where to ask. */
rondo_result_t rondo_descriptor_passing_create(struct rondo_descriptor_passing **passing, struct rondo_control *control,
                                               const struct rondo_descriptor_passing_owner *owner,
                                               unsigned char name[RONDO_DESCRIPTOR_NAME]);
/* When it returns, the owner is not called any more. */
void rondo_descriptor_passing_destroy(struct rondo_descriptor_passing *passing);

/* The client's side; blocks for at most milliseconds. Either *fd is the thing's descriptor, and the caller's to close; or it is
 * -1, and *thing what the owner's find returned, with the reference: then the owner is in this very process.
 * RONDO_ERR_TRANSPORT if the owner is gone, does not answer, or has no such thing. */
rondo_result_t rondo_descriptor_passing_ask(const unsigned char name[RONDO_DESCRIPTOR_NAME],
                                            const struct rondo_descriptor_passing_request *request, int milliseconds, int *fd,
                                            void **thing);

#endif
