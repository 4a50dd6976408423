/* Making and freeing requests: checking the call, choosing an algorithm and a lane, and binding; and the forms of calls
 * (lib/submission/request.h). lib/submission/progress.c starts requests and waits for them. */
#include "lib/algorithms/algorithms.h"
#include "lib/submission/request.h"

#include "lib/call/user_operators.h"
#include "lib/submission/arguments.h"
#include "lib/submission/check.h"
#include "lib/context/handles.h"
#include "lib/select/compression.h"
#include "lib/connection/connect.h"
#include "lib/submission/group.h"
#include "lib/submission/request_cache.h"
#include "lib/connection/lane.h"
#include "device/move/low_latency.h"
#include "lib/connection/exchange.h"
#include "lib/submission/bind.h"
#include "lib/submission/progress.h"
#include "lib/submission/queue.h"
#include "lib/submission/reach.h"
#include "lib/select/select.h"
#include "lib/select/select_gpu.h"
#include "lib/submission/state.h"
#include "lib/submission/stream.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"
#include "lib/connection/plan_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST_SLOT  256u             /* bytes */
#define COMPILED_SLOT  ((size_t) 16384) /* least bytes of a slot for a compiled program */
#define MESSAGE_BYTES  1024
#define FUNCTION_BYTES 64
#define SLOT_USEFUL    ((size_t) 1 << 24) /* beyond it no slot is made smaller, and twice it does not overflow */

static int is_p2p(const struct rondo_call *call)
{
    return rondo_kind_is_p2p(call->kind);
}

/* Whether no rank of the call moves anything, which each concludes from what all of them give alike. A rank that knows but its
 * own counts cannot tell. The call's arguments are right, and its arrays not yet resolved. */
static int moves_nothing(const struct rondo_comm *comm, const struct rondo_call *call)
{
    if (call->count != 0 && call->receive_counts == NULL) /* most calls, told without their collective's row */
        return 0;
    switch (rondo_collective_of(call->kind)->agreement) {
    case RONDO_AGREE_COUNT:
        return call->count == 0;
    case RONDO_AGREE_COUNTS:
        for (int i = 0; i < comm->size; i++)
            if (call->receive_counts[i] != 0)
                return 0;
        return 1;
    default:
        return 0;
    }
}

/* Copies the arrays of a v-collective, because the user's may go out of scope. */
static rondo_result_t copy_arrays(struct rondo_request *request)
{
    const struct rondo_blocks blocks = rondo_call_blocks(request->comm, request->call.kind);
    const size_t entries = 2 * (size_t) (blocks.sent + blocks.received);
    if (!rondo_kind_has_counts(request->call.kind))
        return RONDO_SUCCESS;
    request->counts = calloc(entries + 1, sizeof(size_t));
    if (request->counts == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu counts and displacements", entries);
    rondo_call_resolve(&request->call, &blocks, request->counts);
    return RONDO_SUCCESS;
}

/* ---- lanes ---- */

/* The size of a slot for so many bytes: a multiple of 64, at least SMALLEST_SLOT and at most most. */
static uint32_t clamp_slot(size_t bytes, size_t most)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    return (uint32_t) (rounded < SMALLEST_SLOT ? SMALLEST_SLOT : rounded > most ? most : rounded);
}

/* The call's index in a communicator's tables with an entry for each peer and direction. */
static int message_index(const struct rondo_call *call)
{
    return 2 * call->root + (call->kind == RONDO_KIND_SEND_TO);
}

/* The lane of a call that is neither persistent nor in stream order. NULL: it has not been made yet. */
static struct rondo_host_lane *usual_lane(struct rondo_comm *comm, const struct rondo_call *call)
{
    /* Acquire pairs with the release in shared_lane: the lane is complete. */
    return is_p2p(call) ? __atomic_load_n(&comm->requests->messages[message_index(call)], __ATOMIC_ACQUIRE)
                        : comm->requests->collective;
}

/* Finds the lane of that id and of the call's peer and direction, or makes it at first use. */
static rondo_result_t shared_lane(struct rondo_comm *comm, uint64_t id, const struct rondo_call *call,
                                  struct rondo_host_lane **result)
{
    int peer = is_p2p(call) ? call->root : -1, outgoing = call->kind == RONDO_KIND_SEND_TO;
    pthread_mutex_lock(&comm->requests->lane_lock);
    pthread_mutex_lock(&comm->runtime->lock);
    struct rondo_host_lane *lane = comm->connections->lanes;
    while (lane != NULL && !(lane->id == id && lane->peer == peer && lane->outgoing == outgoing))
        lane = lane->next;
    pthread_mutex_unlock(&comm->runtime->lock);
    rondo_result_t status = RONDO_SUCCESS;
    if (lane == NULL) {
        struct rondo_lane_options options = {.id = id, .peer = peer, .outgoing = outgoing};
        rondo_lane_slots(comm, options.slot_bytes);
        status = rondo_queue_lane(comm, &options, &lane);
        if (status == RONDO_SUCCESS && id == RONDO_LANE_P2P)
            __atomic_store_n(&comm->requests->messages[message_index(call)], lane, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&comm->requests->lane_lock);
    *result = lane;
    return status;
}

/* The id of the next persistent operation's lane. An init counts even if it makes no lane, so that later ones match. */
static uint64_t next_lane_id(struct rondo_comm *comm, const struct rondo_call *call)
{
    if (is_p2p(call))
        return RONDO_LANE_P2P_PERSISTENT + comm->requests->persistent_p2p[message_index(call)]++;
    return RONDO_LANE_PERSISTENT + comm->requests->persistent++;
}

/* Makes a persistent operation's own lane, whose slots are no larger than what the operation sends at a time. */
static rondo_result_t own_lane(struct rondo_request *request, uint64_t id, int priority, const struct rondo_choice *choice)
{
    struct rondo_comm *comm = request->comm;
    const struct rondo_call *call = &request->call;
    struct rondo_lane_options options = {.id = id, .peer = -1, .priority = priority};
    rondo_lane_slots(comm, options.slot_bytes);
    if (is_p2p(call)) {
        options.peer = call->root;
        options.outgoing = call->kind == RONDO_KIND_SEND_TO;
    }
    size_t bytes = rondo_message_bytes(comm, call);
    if (choice->algorithm->direct)
        bytes = 0; /* signals only */
    else if (choice->algorithm->multicast)
        bytes = rondo_multicast_bytes(comm, call, choice->algorithm);
    else if (choice->algorithm->adapt == rondo_adapt_ring && call->kind == RONDO_KIND_ALLREDUCE)
        bytes = bytes / (size_t) comm->size + RONDO_CACHE_LINE;
    else if (!rondo_algorithm_single(choice->algorithm) &&
             bytes < COMPILED_SLOT) /* an instruction of it may send many chunks together */
        bytes = COMPILED_SLOT;
    if (rondo_kind_reduces(call->kind) && !choice->algorithm->direct &&
        bytes < rondo_element_slot(comm, call, choice->algorithm))
        bytes = rondo_element_slot(comm, call, choice->algorithm);
    for (int p = 0; p < RONDO_PROTOCOLS && bytes < SLOT_USEFUL; p++)
        options.slot_bytes[p] =
            clamp_slot(p == RONDO_PROTOCOL_LL                                           ? 2 * bytes
                       : p == RONDO_PROTOCOL_TINY || p == RONDO_PROTOCOL_MULTICAST_TINY ? RONDO_TINY_SLOT(bytes)
                       : p == RONDO_PROTOCOL_LL128 ? rondo_line_bytes(bytes + RONDO_LINE_DATA)
                                                   : bytes,
                       options.slot_bytes[p]);
    request->owns_lane = 1;
    return rondo_queue_lane(comm, &options, &request->lane);
}

/* ---- making ---- */

void rondo_request_destroy(struct rondo_request *request)
{
    if (request->counted)
        __atomic_fetch_sub(&request->comm->requests->persistent_here, 1, __ATOMIC_RELAXED);
    rondo_operation_unbind(request);
    rondo_short_steps_forget(&request->steps);
    if (request->owns_lane && request->lane != NULL)
        rondo_lane_free(request->lane);
    rondo_close_buffers(request->comm, request->windows);
    rondo_request_give_back(request);
}

void rondo_request_destroy_all(struct rondo_comm *comm)
{
    struct rondo_queue *queue = comm->runtime->queue;
    rondo_stream_forget(comm); /* else the list of retired requests would name freed ones */
    for (;;) {
        struct rondo_request *request = NULL;
        rondo_lock_take(&queue->lock);
        for (uint32_t slot = 0; slot < queue->slots_used && request == NULL; slot++)
            if (queue->by_slot[slot]->comm == comm)
                request = queue->by_slot[slot];
        rondo_lock_drop(&queue->lock);
        if (request == NULL)
            return;
        rondo_request_destroy(request);
    }
}

enum rondo_form { RONDO_FORM_BLOCKING, RONDO_FORM_STARTED, RONDO_FORM_PERSISTENT, RONDO_FORM_STREAM };

/* What a request is made from. */
struct making {
    struct rondo_comm *comm;
    const struct rondo_call *call;
    const rondo_attr_t *attr;
    int blocking, persistent, streamed;
    uint64_t lane_id;                      /* of a persistent collective */
    uint32_t oversubscription;             /* the other persistent collectives that a rank has at most */
    struct rondo_registration *windows[2]; /* opened for it; owned by the request once there is one */
    int refused;                           /* all ranks know that one of them could not make its request */
};

/* Sets request->lane, and makes the lane if there is none. An empty persistent operation has none. */
static rondo_result_t choose_lane(struct making *making, struct rondo_request *request, const struct rondo_choice *choice)
{
    struct rondo_comm *comm = making->comm;
    const struct rondo_call *call = making->call;
    if (making->persistent) {
        uint64_t id = is_p2p(call) ? next_lane_id(comm, call) : making->lane_id;
        return request->empty ? RONDO_SUCCESS : own_lane(request, id, making->attr->priority, choice);
    }
    if (making->streamed)
        return shared_lane(comm, is_p2p(call) ? RONDO_LANE_P2P_STREAM : RONDO_LANE_STREAM, call, &request->lane);
    request->lane = usual_lane(comm, call);
    return request->lane != NULL ? RONDO_SUCCESS : shared_lane(comm, RONDO_LANE_P2P, call, &request->lane);
}

/* The local part of making a request. On failure *result may be a request all the same, which the caller destroys. */
static rondo_result_t build(struct making *making, struct rondo_request **result)
{
    struct rondo_comm *comm = making->comm;
    const struct rondo_call *call = making->call;
    struct rondo_request *request;
    struct rondo_choice choice;
    rondo_result_t status = rondo_request_take(comm, &request);
    if (status != RONDO_SUCCESS)
        return status;
    *result = request;
    request->call = *call;
    request->blocking = making->blocking;
    request->persistent = making->persistent;
    request->streamed = making->streamed;
    request->checked = comm->runtime->settings.check && (!making->persistent || is_p2p(call));
    request->empty = moves_nothing(comm, call);
    memcpy(request->windows, making->windows, sizeof(request->windows));
    status = copy_arrays(request);
    request->programs = __atomic_load_n(&comm->programs->registered, __ATOMIC_RELAXED);
    request->reachable = rondo_is_reachable(comm, &request->call, request->windows);
    if (status == RONDO_SUCCESS)
        status = rondo_select(comm, &request->call, request->reachable, making->streamed,
                              request->call.program != NULL ? request->call.program : making->attr->program, &choice);
    if (status == RONDO_SUCCESS) {
        rondo_select_gpu_oversubscribed(comm, &request->call, request->reachable, making->oversubscription, &choice);
        status = choose_lane(making, request, &choice);
    }
    if (status == RONDO_SUCCESS && !request->empty) {
        request->direct = choice.algorithm->direct;
        status = rondo_operation_bind(request, &choice);
    }
    if (status == RONDO_SUCCESS && !making->persistent)
        status = rondo_request_still(request);
    if (status == RONDO_SUCCESS)
        rondo_request_classify(request);
    return status;
}

/* Frees what a failed making has left, and returns the status with the message of the failure. */
static rondo_result_t undo(const struct making *making, struct rondo_request *request, rondo_result_t status)
{
    char message[MESSAGE_BYTES];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    if (request != NULL)
        rondo_request_destroy(request);
    else
        rondo_close_buffers(making->comm, making->windows);
    if (making->refused)
        rondo_connect_forget(making->comm->runtime, making->comm->id, making->lane_id);
    return rondo_fail(status, "%s", message);
}

/* Sets *oversubscription to the most persistent collectives that a rank of the communicator has: the ranks may have freed
 * different ones. Collective on communicators of GPUs, where rondo_select_gpu_oversubscribed uses it; elsewhere it does
 * nothing. */
static rondo_result_t count_others(struct rondo_comm *comm, uint32_t *oversubscription)
{
    uint32_t mine = __atomic_load_n(&comm->requests->persistent_here, __ATOMIC_RELAXED), *all;
    if (!comm->gpus_only || comm->size == 1)
        return RONDO_SUCCESS;
    if ((all = calloc((size_t) comm->size, sizeof(*all))) == NULL)
        return rondo_comm_conclude(comm, "persistent init", rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", comm->size));
    rondo_result_t result = rondo_exchange(comm, "persistent init", &mine, sizeof(mine), all);
    for (int rank = 0; rank < comm->size; rank++)
        *oversubscription = all[rank] > *oversubscription ? all[rank] : *oversubscription;
    free(all);
    return result;
}

/* Makes a request without the cache. A persistent collective is made on all ranks or on none, or later ones would not match.
 * Its collective steps come before the local ones, so that this rank takes part in them whether its local steps succeed or not.
 * A comparison of the calls that fails does so on all ranks, and then no rank waits for the agreement. */
static rondo_result_t make_anew(struct rondo_comm *comm, const struct rondo_call *call, const rondo_attr_t *attr,
                                enum rondo_form form, struct rondo_request **result)
{
    int persistent = form == RONDO_FORM_PERSISTENT;
    struct making making = {.comm = comm,
                            .call = call,
                            .attr = attr,
                            .blocking = form == RONDO_FORM_BLOCKING,
                            .persistent = persistent,
                            .streamed = form == RONDO_FORM_STREAM};
    struct rondo_request *request = NULL;
    rondo_result_t status = RONDO_SUCCESS;
    if (persistent && !is_p2p(call)) {
        if (comm->runtime->settings.check && comm->size > 1)
            status = rondo_check_init(comm, call);
        if (status != RONDO_SUCCESS)
            return status;
        making.lane_id = next_lane_id(comm, call);
        status = rondo_open_buffers(comm, call, making.windows);
        rondo_result_t counted = count_others(comm, &making.oversubscription);
        status = status == RONDO_SUCCESS ? counted : status;
    }
    if (status == RONDO_SUCCESS)
        status = build(&making, &request);
    /* What is over the budget can be refused at an init, where nothing has been done yet; all ranks are told. */
    if (!persistent || !rondo_last_error_refuses())
        status = rondo_comm_conclude(comm, rondo_kind_name(call->kind), status);
    if (persistent && !is_p2p(call) && comm->size > 1 && !moves_nothing(comm, call) &&
        (status == RONDO_SUCCESS || rondo_comm_failure(comm) == RONDO_SUCCESS))
        status = rondo_agree(comm, rondo_kind_name(call->kind), status, &making.refused);
    if (status != RONDO_SUCCESS)
        return undo(&making, request, status);
    if (persistent && !is_p2p(call)) {
        request->counted = 1;
        __atomic_fetch_add(&comm->requests->persistent_here, 1, __ATOMIC_RELAXED);
    }
    *result = request;
    return RONDO_SUCCESS;
}

/* The communicator's failure, as the calling thread's error. */
static rondo_result_t check_failure(const struct rondo_comm *comm, const struct rondo_call *call)
{
    const rondo_result_t status = rondo_comm_failure(comm);
    return status == RONDO_SUCCESS ? status : rondo_fail(status, "%s: %s", rondo_kind_name(call->kind), comm->failure);
}

/* Takes a request of that form from the cache or makes one. The arguments have been checked. */
static rondo_result_t make(struct rondo_comm *comm, const struct rondo_call *given, const rondo_attr_t *attr,
                           enum rondo_form form, struct rondo_request **result)
{
    static const rondo_attr_t defaults = RONDO_ATTR_DEFAULT;
    struct rondo_call call = *given;
    rondo_result_t status = check_failure(comm, &call);
    if (status != RONDO_SUCCESS)
        return status;
    attr = attr != NULL ? attr : &defaults;
    status = rondo_compression_choose(comm, attr, &call);
    if (status != RONDO_SUCCESS)
        return status;
    if (form == RONDO_FORM_BLOCKING || form == RONDO_FORM_STARTED) {
        *result = rondo_request_cache_take(usual_lane(comm, &call), &call);
        if (*result != NULL) {
            (*result)->blocking = form == RONDO_FORM_BLOCKING;
            return RONDO_SUCCESS;
        }
    }
    return make_anew(comm, &call, attr, form, result);
}

/* ---- the forms ---- */

/* Writes the name of the public function, as "rondo_iallreduce", and returns it. */
static const char *function_name(const struct rondo_call *call, enum rondo_form form, char *name, size_t bytes)
{
    static const char *const formats[] = {"rondo_%s", "rondo_i%s", "rondo_%s_init", "rondo_%s_on_stream"}; /* by the form */
    snprintf(name, bytes, formats[form], call->kind == RONDO_KIND_CUSTOM ? "program_run" : rondo_kind_name(call->kind));
    return name;
}

static __attribute__((noinline, cold)) rondo_result_t refuse(rondo_comm_t handle, const struct rondo_call *call,
                                                             enum rondo_form form)
{
    char name[FUNCTION_BYTES];
    return rondo_handle_refuse(handle, RONDO_HANDLE_COMM, function_name(call, form, name, sizeof(name)));
}

static rondo_result_t refuse_result(const struct rondo_call *call, enum rondo_form form)
{
    char name[FUNCTION_BYTES];
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s: request is NULL", function_name(call, form, name, sizeof(name)));
}

/* A reduce-scatter of equal counts is its block form: what all ranks know, they conclude alike. block: room for that call. */
static __attribute__((noinline, cold)) const struct rondo_call *
in_block_form(const struct rondo_comm *comm, const struct rondo_call *call, struct rondo_call *block)
{
    for (int i = 1; i < comm->size; i++)
        if (call->receive_counts[i] != call->receive_counts[0])
            return call;
    *block = *call;
    block->kind = RONDO_KIND_REDUCE_SCATTER_BLOCK;
    block->count = call->receive_counts[0];
    block->receive_counts = NULL;
    return block;
}

/* Finds the communicator, and checks the arguments. Sets *call to the call to make, which may be in room. A mistake in the
 * arguments is this rank's alone; where the memory cannot be looked at, the other ranks must not wait. */
static rondo_result_t check(rondo_comm_t handle, const struct rondo_call **call, struct rondo_call *room, enum rondo_form form,
                            struct rondo_comm **comm)
{
    *comm = rondo_handle_find(handle, RONDO_HANDLE_COMM);
    if (*comm == NULL)
        return refuse(handle, *call, form);
    rondo_result_t result = rondo_call_check(*comm, *call);
    if (result != RONDO_SUCCESS)
        return rondo_comm_conclude(*comm, rondo_kind_name((*call)->kind), result);
    if ((*call)->kind == RONDO_KIND_REDUCE_SCATTER)
        *call = in_block_form(*comm, *call, room);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_request_make_blocking(struct rondo_comm *comm, const struct rondo_call *call,
                                           struct rondo_request **result)
{
    return make(comm, call, NULL, RONDO_FORM_BLOCKING, result);
}

/* Runs the call with the request that its lane has cached, now or when the group ends. Returns 0 if a request has to be made.
 */
static int run_cached(struct rondo_comm *comm, const struct rondo_call *call, rondo_result_t *result)
{
    if (comm->compression.rate != 0 || comm->runtime->device->kind->run_inline == NULL)
        return 0;
    struct rondo_known_call known = {.place = rondo_request_cache_place(usual_lane(comm, call), call), .call = call};
    struct rondo_submission submission = {.calls = &known, .count = 1, .waits = 1};
    if (known.place == NULL)
        return 0;
    known.reachable = rondo_request_cache_reachable(comm, call);
    if (rondo_group_is_open(comm)) /* only a message: nothing that its request depends on can change before the group ends */
        return is_p2p(call) && rondo_group_notes(comm, &known);
    if (rondo_submit(comm->runtime, &submission) == 0)
        return 0;
    *result = submission.stuck != NULL ? rondo_progress_wait(submission.stuck) : RONDO_SUCCESS;
    return 1;
}

/* Whether the call has completed as soon as it is made, without a request's lane and number. All ranks conclude it alike, so
 * the numbers of later operations match. A comparison of the calls needs the number, and a group its request. */
static int is_over_at_once(const struct rondo_comm *comm, const struct rondo_call *call)
{
    return moves_nothing(comm, call) && !comm->runtime->settings.check && !rondo_group_is_open(comm);
}

/* Makes a request for a call that is over at once: DONE, and bound to nothing. */
static rondo_result_t make_over(struct rondo_comm *comm, const struct rondo_call *call, struct rondo_request **result)
{
    rondo_result_t status = check_failure(comm, call);
    if (status == RONDO_SUCCESS)
        status = rondo_request_take(comm, result);
    if (status != RONDO_SUCCESS)
        return rondo_comm_conclude(comm, rondo_kind_name(call->kind), status);
    struct rondo_request *request = *result;
    request->call = (struct rondo_call){.kind = call->kind, .type = call->type, .root = call->root};
    request->empty = 1;
    /* No other thread has the handle yet; the queue lock, under which by_slot is read, is released by a later taking or
     * giving back. */
    __atomic_store_n(&request->state, RONDO_REQUEST_DONE, __ATOMIC_RELEASE);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_call_blocking(rondo_comm_t handle, const struct rondo_call *call)
{
    struct rondo_comm *comm;
    struct rondo_call room;
    struct rondo_request *request;
    rondo_result_t result = check(handle, &call, &room, RONDO_FORM_BLOCKING, &comm);
    if (result == RONDO_SUCCESS && is_over_at_once(comm, call))
        return check_failure(comm, call);
    if (result == RONDO_SUCCESS && run_cached(comm, call, &result))
        return result;
    if (result == RONDO_SUCCESS)
        result = rondo_request_make_blocking(comm, call, &request);
    if (result != RONDO_SUCCESS)
        return result;
    if (rondo_group_joins(comm, request))
        return RONDO_SUCCESS;
    return rondo_progress_run(request);
}

rondo_result_t rondo_call_nonblocking(rondo_comm_t handle, const struct rondo_call *call, rondo_request_t *result_request)
{
    struct rondo_comm *comm;
    struct rondo_call room;
    struct rondo_request *request;
    if (result_request == NULL)
        return refuse_result(call, RONDO_FORM_STARTED);
    *result_request = NULL;
    rondo_result_t result = check(handle, &call, &room, RONDO_FORM_STARTED, &comm);
    const int over = result == RONDO_SUCCESS && is_over_at_once(comm, call);
    if (result == RONDO_SUCCESS)
        result = over ? make_over(comm, call, &request) : make(comm, call, NULL, RONDO_FORM_STARTED, &request);
    if (result != RONDO_SUCCESS)
        return result;
    *result_request = request->handle;
    if (!over && !rondo_group_joins(comm, request))
        rondo_submit(request->runtime,
                     &(struct rondo_submission){.request = request, .count = 1, .assist = RONDO_ASSIST_MAYBE});
    return RONDO_SUCCESS;
}

rondo_result_t rondo_call_persistent(rondo_comm_t handle, const struct rondo_call *call, const rondo_attr_t *attr,
                                     rondo_request_t *result_request)
{
    struct rondo_comm *comm;
    struct rondo_call room;
    struct rondo_request *request;
    if (result_request == NULL)
        return refuse_result(call, RONDO_FORM_PERSISTENT);
    *result_request = NULL;
    rondo_result_t result = check(handle, &call, &room, RONDO_FORM_PERSISTENT, &comm);
    if (result == RONDO_SUCCESS)
        result = make(comm, call, attr, RONDO_FORM_PERSISTENT, &request);
    if (result == RONDO_SUCCESS)
        *result_request = request->handle;
    return result;
}

rondo_result_t rondo_call_on_stream(rondo_comm_t handle, const struct rondo_call *call, void *stream)
{
    struct rondo_comm *comm;
    struct rondo_call room;
    struct rondo_request *request;
    int captured;
    rondo_result_t result = check(handle, &call, &room, RONDO_FORM_STREAM, &comm);
    if (result == RONDO_SUCCESS)
        result = rondo_stream_check(comm, rondo_kind_name(call->kind), stream, &captured);
    if (result == RONDO_SUCCESS)
        result = make(comm, call, NULL, RONDO_FORM_STREAM, &request);
    if (result != RONDO_SUCCESS)
        return result;
    request->stream = stream;
    request->captured = captured;
    if (rondo_group_joins(comm, request))
        return RONDO_SUCCESS;
    return rondo_stream_enqueue(request);
}
