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

enum { RONDO_HANDOVER_NAME = 16, RONDO_HANDOVER_KEY = 16 };

struct rondo_handover; /* the serving side */

/* What a client presents: which thing, and the key that its owner gave out with it. */
struct rondo_handover_request {
    uint64_t id;
    unsigned char key[RONDO_HANDOVER_KEY];
};

/* Called on the control thread. find returns the thing asked for with one more reference, its size and its descriptor, or NULL;
 * drop takes the reference back. */
struct rondo_handover_owner {
    void *argument;
    void *(*find)(void *argument, const struct rondo_handover_request *request, uint64_t *bytes, int *fd);
    void (*drop)(void *thing);
};

/* name is random and tells clients where to ask. */
rondo_result_t rondo_handover_create(struct rondo_handover **handover, struct rondo_control *control,
                                     const struct rondo_handover_owner *owner, unsigned char name[RONDO_HANDOVER_NAME]);
/* When it returns, the owner is not called any more. */
void rondo_handover_destroy(struct rondo_handover *handover);

/* The client's side; blocks for at most milliseconds. Either *fd is the thing's descriptor, and the caller's to close; or it is
 * -1, and *thing what the owner's find returned, with the reference: then the owner is in this very process.
 * RONDO_ERR_TRANSPORT if the owner is gone, does not answer, or has no such thing. */
rondo_result_t rondo_handover_ask(const unsigned char name[RONDO_HANDOVER_NAME], const struct rondo_handover_request *request,
                                  int milliseconds, int *fd, void **thing);

#endif
