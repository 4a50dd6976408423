/* The request cache of a lane: a table with one place for each hash of a call (lib/submission/request_cache.h). Relies on the
 * queue lock, under which entries change. */
#include "lib/submission/request_cache.h"

#include "device/device.h"
#include "lib/base/handle.h"
#include "lib/submission/arguments.h"
#include "lib/submission/bind.h"
#include "lib/submission/reach.h"
#include "lib/submission/request.h"
#include "lib/connection/plan_cache.h"
#include "lib/submission/queue.h"

int rondo_request_cache_reachable(const struct rondo_comm *comm, const struct rondo_call *call)
{
    static struct rondo_registration *const none[2];
    return rondo_is_reachable(comm, call, none);
}

static int has_buffers(const struct rondo_request *request, const struct rondo_call *call)
{
    return request->call.send == call->send && request->call.recv == call->recv;
}

/* Whether the call has the request's count, and counts and displacements for each rank where there are such. */
static int has_sizes(const struct rondo_request *request, const struct rondo_call *call)
{
    if (!rondo_kind_has_counts(call->kind))
        return request->call.count == call->count;
    const struct rondo_blocks blocks = rondo_call_blocks(request->comm, call->kind);
    return rondo_call_resolves_to(call, &blocks, &request->call);
}

static int is_in_place_alike(const struct rondo_call *one, const struct rondo_call *other)
{
    return (one->send == RONDO_IN_PLACE) == (other->send == RONDO_IN_PLACE) &&
           (one->recv == RONDO_IN_PLACE) == (other->recv == RONDO_IN_PLACE);
}

/* Whether the choice for the call would be the one that the request was bound to: everything that a choice depends on is equal.
 * Settings do not change, and the call has its compression. */
static int is_alike(const struct rondo_request *request, const struct rondo_call *call, int reachable)
{
    const struct rondo_call *own = &request->call;
    const int same_buffers = has_buffers(request, call);
    /* In this order: lib/submission/arguments.c, is_known. */
    if (own->type != call->type || own->op != call->op || own->kind != call->kind || own->root != call->root ||
        own->rate != call->rate || own->program != call->program || !(same_buffers || is_in_place_alike(own, call)) ||
        !has_sizes(request, call) ||
        request->programs != __atomic_load_n(&request->comm->programs->registered, __ATOMIC_RELAXED) ||
        request->reachable != reachable)
        return 0;
    /* With other buffers, a reduce-scatter's result may be a block of its input or not, which the binding depends on; and what
     * compression loses is that of the buffers. */
    return own->feedback == call->feedback &&
           (same_buffers || (own->kind != RONDO_KIND_REDUCE_SCATTER_BLOCK && !own->feedback));
}

/* The call's place in the lane's cache: a hash of what calls differ in most, the same of a resolved call. Written under the
 * queue lock. */
static struct rondo_request **place_of(struct rondo_host_lane *lane, const struct rondo_call *call)
{
    uint64_t sizes = call->count;
    if (rondo_kind_has_counts(call->kind)) {
        const struct rondo_blocks blocks = rondo_call_blocks(lane->comm, call->kind);
        sizes = rondo_call_counts_hash(call, &blocks);
    }
    const uint64_t mixed = ((uint64_t) call->kind + 31 * (uint64_t) call->root + sizes) * 0x9e3779b97f4a7c15u;
    return &lane->requests->cached[(mixed >> 32) % RONDO_REQUEST_CACHE_SIZE];
}

static void set_place(struct rondo_request **place, struct rondo_request *request)
{
    __atomic_store_n(place, request, __ATOMIC_RELAXED);
}

struct rondo_request *const *rondo_request_cache_place(struct rondo_host_lane *lane, const struct rondo_call *call)
{
    struct rondo_request **place = lane != NULL ? place_of(lane, call) : NULL;
    return place != NULL && __atomic_load_n(place, __ATOMIC_RELAXED) != NULL ? place : NULL;
}

/* The cached request that fits the call once it has the call's buffers; NULL: none. Queue lock held. */
static struct rondo_request *find_alike(const struct rondo_known_call *known)
{
    struct rondo_request *request = *known->place;
    return request != NULL && is_alike(request, known->call, known->reachable) ? request : NULL;
}

struct rondo_request *rondo_request_cache_find(const struct rondo_known_call *call)
{
    struct rondo_request *request = find_alike(call);
    if (request != NULL && !has_buffers(request, call->call))
        rondo_operation_move(request, call->call->send, call->call->recv);
    return request;
}

void rondo_request_cache_remove(struct rondo_request *request)
{
    set_place(place_of(request->lane, &request->call), NULL);
    request->cached = 0;
}

struct rondo_request *rondo_request_cache_take(struct rondo_host_lane *lane, const struct rondo_call *call)
{
    struct rondo_known_call known = {.place = rondo_request_cache_place(lane, call), .call = call};
    if (known.place == NULL)
        return NULL;
    struct rondo_queue *queue = lane->comm->runtime->queue;
    known.reachable = rondo_request_cache_reachable(lane->comm, call);
    rondo_lock_take(&queue->lock);
    struct rondo_request *request = find_alike(&known);
    if (request != NULL)
        rondo_request_cache_remove(request);
    rondo_lock_drop(&queue->lock);
    if (request != NULL && !has_buffers(request, call))
        rondo_operation_move(request, call->send, call->recv);
    return request;
}

#define TABLES_MOST 1024 /* entries of a cached request's layouts, of 16 bytes each */

/* Whether the request has allocated more memory than the cache may hold without use: layouts of calls with counts are small. */
static int owns_memory(const struct rondo_request *request)
{
    size_t entries = 0;
    for (int b = 0; b < RONDO_BUFFERS; b++)
        entries += request->tables[b] != NULL ? request->table_entries[b] : 0;
    return entries > TABLES_MOST || request->scratch != NULL;
}

/* The cache uses only the lower half of all operation slots, so that the other half is free for requests in use. */
#define SLOTS_MOST (RONDO_OPERATIONS_MAX / 2)

/* Whether nothing of the request is bound to this one use. A request that is not may have no lane. */
static int can_be_cached(const struct rondo_request *request)
{
    return request->slot < SLOTS_MOST && request->result == RONDO_SUCCESS && !request->checked && !request->empty &&
           !request->streamed && !rondo_relies_on_registrations(request) && !owns_memory(request);
}

int rondo_request_cache_put(struct rondo_request *request)
{
    struct rondo_queue *queue = request->runtime->queue;
    if (!can_be_cached(request))
        return 0;
    struct rondo_request **place = place_of(request->lane, &request->call);
    rondo_lock_take(&queue->lock);
    struct rondo_request *before = *place;
    request->handle = rondo_handle_renew(request->handle);
    request->cached = 1;
    set_place(place, request);
    rondo_lock_drop(&queue->lock);
    if (before != NULL)
        rondo_request_destroy(before);
    return 1;
}
