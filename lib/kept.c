/* See kept.h. */
#include "kept.h"

#include "device.h"
#include "operation.h"
#include "reach.h"
#include "request.h"

/* Whether choosing for the call would lead to what the request was bound to: all that a choice depends on is the same. Settings
 * do not change; compression is in the call. */
static int is_alike(const struct rondo_request *request, const struct rondo_call *call)
{
    const struct rondo_call *own = &request->call;
    if (own->kind != call->kind || own->count != call->count || own->type != call->type || own->op != call->op ||
        own->root != call->root || own->rate != call->rate ||
        request->programs != __atomic_load_n(&request->comm->programs, __ATOMIC_RELAXED) ||
        request->reachable != rondo_is_reachable(request->comm, call, request->windows))
        return 0;
    if (own->send == call->send && own->recv == call->recv)
        return 1;
    /* A reduce-scatter's result may be a block of its input, or not. */
    return (own->send == RONDO_IN_PLACE) == (call->send == RONDO_IN_PLACE) &&
           (own->recv == RONDO_IN_PLACE) == (call->recv == RONDO_IN_PLACE) && own->kind != RONDO_KIND_REDUCE_SCATTER;
}

struct rondo_request *rondo_kept_take(struct rondo_host_lane *lane, const struct rondo_call *call)
{
    if (lane == NULL || __atomic_load_n(&lane->kept, __ATOMIC_RELAXED) == NULL)
        return NULL;
    /* Acquire pairs with the release in rondo_kept_put: the request is as it was left. */
    struct rondo_request *request = __atomic_exchange_n(&lane->kept, NULL, __ATOMIC_ACQUIRE);
    if (request == NULL)
        return NULL;
    if (!is_alike(request, call)) {
        rondo_request_destroy(request);
        return NULL;
    }
    request->kept = 0;
    if (request->call.send != call->send || request->call.recv != call->recv)
        rondo_operation_move(request, call->send, call->recv);
    return request;
}

/* What it has for itself alone would be held for nothing. */
static int owns_memory(const struct rondo_request *request)
{
    for (int b = 0; b < RONDO_BUFFERS; b++)
        if (request->tables[b] != NULL) /* of a v-collective */
            return 1;
    return request->scratch != NULL;
}

/* Half of all slots are for requests that are in use. */
#define SLOTS_MOST (RONDO_OPERATIONS_MAX / 2)

int rondo_kept_put(struct rondo_request *request)
{
    if (request->slot >= SLOTS_MOST || request->result != RONDO_SUCCESS || request->checked || request->empty ||
        request->streamed || request->direct || owns_memory(request))
        return 0;
    request->kept = 1;
    struct rondo_request *before = __atomic_exchange_n(&request->lane->kept, request, __ATOMIC_ACQ_REL);
    if (before != NULL)
        rondo_request_destroy(before);
    return 1;
}
