/* One-sided communication: data put into a window of another rank, and signals, counters of the receiving rank that its streams
 * wait for. It joins ranks of one process on the host device; a stream's thread copies, counts and waits. A wait ends when the
 * signals have come, or when the communicator has failed or is aborted. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIGNALS  16 /* indices; of each context */
#define CONTEXTS 4

/* A rank's counters: those of each source, context and index. The other ranks of the process hold it too. */
struct rondo_nccl_signals {
    int users; /* atomic */
    uint32_t counts[];
};

static size_t place_of(int source, int context, int index)
{
    return ((size_t) source * CONTEXTS + (size_t) context) * SIGNALS + (size_t) index;
}

static struct rondo_nccl_signals *make(int ranks, int users)
{
    struct rondo_nccl_signals *signals = calloc(1, sizeof(*signals) + place_of(ranks, 0, 0) * sizeof(uint32_t));
    if (signals != NULL)
        signals->users = users;
    return signals;
}

static void let_go(struct rondo_nccl_signals *signals, int users)
{
    if (signals != NULL && users > 0 && __atomic_sub_fetch(&signals->users, users, __ATOMIC_ACQ_REL) == 0)
        free(signals);
}

/* ---- on a stream's thread ---- */

/* Released after the data: the wait that acquires the count sees them. */
static void count_signal(const struct rondo_nccl_operation *o)
{
    struct rondo_nccl_signals *signals = o->comm->signals[o->root];
    __atomic_fetch_add(&signals->counts[place_of(o->comm->rank, o->context, o->signal)], 1, __ATOMIC_RELEASE);
}

/* Takes the signals that it has waited for. Only this rank's streams take; the count of what came and the taken ones wrap
 * alike. */
static rondo_result_t await_signals(const struct rondo_nccl_operation *o)
{
    static const struct timespec pause = {0, 50000};
    struct ncclComm *comm = o->comm;
    rondo_result_t failure = RONDO_SUCCESS;
    const size_t place = place_of(o->root, o->context, o->signal);
    const uint32_t until = o->until;
    uint32_t *count = &comm->signals[comm->rank]->counts[place];
    while ((int32_t) (__atomic_load_n(count, __ATOMIC_ACQUIRE) - until) < 0) {
        if (rondo_comm_status(comm->comm, &failure, NULL) != RONDO_SUCCESS || failure != RONDO_SUCCESS)
            return failure != RONDO_SUCCESS ? failure : RONDO_ERR_STATE;
        if (__atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE) || __atomic_load_n(&comm->revoked, __ATOMIC_ACQUIRE))
            return RONDO_ERR_ABORTED;
        nanosleep(&pause, NULL);
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_nccl_one_sided(const struct rondo_nccl_operation *o)
{
    if (o->kind == RONDO_NCCL_WAIT)
        return await_signals(o);
    if (o->kind == RONDO_NCCL_PUT && o->count > 0)
        memmove(o->recv, o->send, o->count * rondo_nccl_type_bytes(o->type));
    count_signal(o);
    return RONDO_SUCCESS;
}

/* ---- the calls ---- */

static ncclResult_t check(struct ncclComm *comm, int peer, int signal, int context, unsigned flags, const char *function)
{
    if (peer < 0 || peer >= comm->size || signal < 0 || signal >= SIGNALS || context < 0 || context >= CONTEXTS || flags != 0)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: peer %d of %d, sigIdx %d of %d, ctx %d of %d, flags 0x%x", function,
                               peer, comm->size, signal, SIGNALS, context, CONTEXTS, flags);
    if (comm->device >= 0)
        return rondo_nccl_fail(ncclInvalidUsage, "%s is not offered on GPUs: streams have no signals here", function);
    pthread_mutex_lock(&comm->lock);
    const int reached = comm->signals != NULL && comm->signals[peer] != NULL;
    pthread_mutex_unlock(&comm->lock);
    if (!reached)
        return rondo_nccl_fail(
            ncclInvalidUsage,
            "%s: rank %d has no window with NCCL_WIN_COLL_SYMMETRIC in this process, by which signals reach it", function,
            peer);
    return ncclSuccess;
}

static ncclResult_t signal_to(const struct rondo_nccl_operation *given, unsigned flags, ncclComm_t comm, ncclWindow_t window,
                              size_t offset, ncclDataType_t type, const char *function)
{
    struct rondo_nccl_operation operation = *given;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, function);
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    operation.comm = comm;
    result = check(comm, operation.root, operation.signal, operation.context, flags, function);
    if (result == ncclSuccess && operation.kind == RONDO_NCCL_PUT) {
        result = rondo_nccl_type(type, function, &operation.type);
        const size_t bytes = result == ncclSuccess ? rondo_nccl_type_bytes(operation.type) : 1;
        if (result == ncclSuccess && ((operation.send == NULL && operation.count > 0) || operation.count > SIZE_MAX / bytes))
            result = rondo_nccl_fail(ncclInvalidArgument, "%s: %zu elements at %p", function, operation.count, operation.send);
        if (result == ncclSuccess)
            result = rondo_nccl_window_reach(comm, window, operation.root, offset, operation.count * bytes, &operation.recv,
                                             function);
    }
    if (result != ncclSuccess) {
        rondo_nccl_comm_let_go(comm);
        return rondo_nccl_note(result);
    }
    return rondo_nccl_enqueue(&operation);
}

ncclResult_t pncclPutSignal(const void *send, size_t count, ncclDataType_t type, int peer, ncclWindow_t window, size_t offset,
                            int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    const struct rondo_nccl_operation operation = {.kind = RONDO_NCCL_PUT,
                                                   .root = peer,
                                                   .send = send,
                                                   .count = count,
                                                   .signal = signal,
                                                   .context = context,
                                                   .stream = stream};
    return signal_to(&operation, flags, comm, window, offset, type, "ncclPutSignal");
}
NCCL_EXPORT(ncclPutSignal);

ncclResult_t pncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream)
{
    const struct rondo_nccl_operation operation = {
        .kind = RONDO_NCCL_SIGNAL, .root = peer, .signal = signal, .context = context, .stream = stream};
    return signal_to(&operation, flags, comm, NULL, 0, ncclInt8, "ncclSignal");
}
NCCL_EXPORT(ncclSignal);

/* The target is set by the call, so that waits of several streams take what their calls' order says. */
static ncclResult_t wait_for(const ncclWaitSignalDesc_t *wanted, ncclComm_t comm, cudaStream_t stream)
{
    struct rondo_nccl_operation operation = {
        .kind = RONDO_NCCL_WAIT, .root = wanted->peer, .signal = wanted->sigIdx, .context = wanted->ctx, .stream = stream};
    rondo_nccl_comm_hold_again(comm); /* the operation's */
    operation.comm = comm;
    pthread_mutex_lock(&comm->lock);
    operation.until = comm->taken[place_of(wanted->peer, wanted->ctx, wanted->sigIdx)] += (uint32_t) wanted->opCnt;
    pthread_mutex_unlock(&comm->lock);
    return rondo_nccl_enqueue(&operation);
}

ncclResult_t pncclWaitSignal(int count, ncclWaitSignalDesc_t *wanted, ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, "ncclWaitSignal");
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    if (count < 0 || (count > 0 && wanted == NULL))
        result = rondo_nccl_note(
            rondo_nccl_fail(ncclInvalidArgument, "ncclWaitSignal: %d descriptors at %p", count, (void *) wanted));
    for (int i = 0; i < count && result == ncclSuccess; i++) {
        result = check(comm, wanted[i].peer, wanted[i].sigIdx, wanted[i].ctx, 0, "ncclWaitSignal");
        if (result == ncclSuccess && wanted[i].opCnt < 0)
            result = rondo_nccl_fail(ncclInvalidArgument, "ncclWaitSignal: descriptor %d has opCnt %d", i, wanted[i].opCnt);
        rondo_nccl_note(result);
    }
    for (int i = 0; i < count && result == ncclSuccess; i++)
        result = wait_for(&wanted[i], comm, stream);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclWaitSignal);

/* ---- what the other ranks' windows bring ---- */

int rondo_nccl_signals_prepare(struct ncclComm *comm)
{
    pthread_mutex_lock(&comm->lock);
    if (comm->signals == NULL) {
        struct rondo_nccl_signals **all = calloc((size_t) comm->size, sizeof(struct rondo_nccl_signals *));
        uint32_t *taken = calloc(place_of(comm->size, 0, 0), sizeof(*taken));
        struct rondo_nccl_signals *own = make(comm->size, comm->size); /* one for each rank, this one included */
        if (all != NULL && taken != NULL && own != NULL) {
            all[comm->rank] = own;
            comm->taken = taken;
            comm->signals = all;
        } else {
            free(all);
            free(taken);
            free(own);
        }
    }
    const int prepared = comm->signals != NULL;
    pthread_mutex_unlock(&comm->lock);
    return prepared;
}

void rondo_nccl_signals_forget(struct ncclComm *comm)
{
    for (int r = 0; comm->signals != NULL && r < comm->size; r++) {
        let_go(comm->signals[r], 1);
        if (comm->signals[r] == NULL) /* its part of this rank's */
            let_go(comm->signals[comm->rank], 1);
    }
    free(comm->signals);
    free(comm->taken);
    comm->signals = NULL;
    comm->taken = NULL;
}
