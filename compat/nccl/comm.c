/* Communicators: the registry of those that there are, what they say of themselves, and their end. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <time.h>

#define BUCKETS 64

static struct {
    pthread_mutex_t lock;
    struct ncclComm *buckets[BUCKETS];
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct ncclComm **bucket_of(const struct ncclComm *comm)
{
    return &registry.buckets[((uintptr_t) comm >> 6 ^ (uintptr_t) comm >> 12) % BUCKETS];
}

/* Under the lock. Compares addresses only. */
static struct ncclComm **find(const struct ncclComm *comm)
{
    struct ncclComm **link = bucket_of(comm);
    while (*link != NULL && *link != comm)
        link = &(*link)->next;
    return link;
}

struct ncclComm *rondo_nccl_comm_new(int rank, int size, int device, int blocking)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));
    if (comm == NULL)
        return NULL;
    comm->rank = rank;
    comm->size = size;
    comm->device = device;
    comm->blocking = blocking;
    comm->state = ncclInProgress;
    comm->budget.most = -1;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_mutex_lock(&registry.lock);
    struct ncclComm **bucket = bucket_of(comm);
    comm->next = *bucket;
    *bucket = comm;
    pthread_mutex_unlock(&registry.lock);
    return comm;
}

void rondo_nccl_comm_delete(struct ncclComm *comm)
{
    rondo_nccl_leave_retained(comm);
    rondo_nccl_blocks_leave(comm);
    for (int i = 0; i < comm->scalar_count; i++)
        free(comm->scalars[i]);
    free(comm->scalars);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

static ncclResult_t check_state(struct ncclComm *comm, enum rondo_nccl_use use, const char *function)
{
    ncclResult_t state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
    if (state == ncclInProgress)
        return rondo_nccl_fail(ncclInvalidArgument,
                               "%s: communicator %p is still being made or finalized (ncclCommGetAsyncError)", function,
                               (void *) comm);
    if (state != ncclSuccess)
        return rondo_nccl_fail(state, "%s: communicator %p could not be made", function, (void *) comm);
    if (__atomic_load_n(&comm->finalized, __ATOMIC_ACQUIRE))
        return rondo_nccl_fail(ncclInvalidUsage, "%s: communicator %p has been finalized", function, (void *) comm);
    if (use == RONDO_NCCL_TO_COMMUNICATE && __atomic_load_n(&comm->revoked, __ATOMIC_ACQUIRE))
        return rondo_nccl_fail(ncclInvalidUsage, "%s: communicator %p has been revoked", function, (void *) comm);
    if (use == RONDO_NCCL_TO_COMMUNICATE && __atomic_load_n(&comm->suspended, __ATOMIC_ACQUIRE))
        return rondo_nccl_fail(ncclInvalidUsage, "%s: communicator %p is suspended (ncclCommResume)", function, (void *) comm);
    return ncclSuccess;
}

ncclResult_t rondo_nccl_comm_hold(ncclComm_t comm, enum rondo_nccl_use use, const char *function)
{
    if (comm == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: comm is NULL", function);
    pthread_mutex_lock(&registry.lock);
    struct ncclComm *found = *find(comm);
    if (found != NULL)
        found->users++;
    pthread_mutex_unlock(&registry.lock);
    if (found == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %p is no communicator, or was destroyed", function, (void *) comm);
    ncclResult_t result = use != RONDO_NCCL_TO_ASK ? check_state(found, use, function) : ncclSuccess;
    if (result != ncclSuccess)
        rondo_nccl_comm_let_go(found);
    return result;
}

void rondo_nccl_comm_hold_again(struct ncclComm *comm)
{
    pthread_mutex_lock(&registry.lock);
    comm->users++;
    pthread_mutex_unlock(&registry.lock);
}

void rondo_nccl_comm_let_go(struct ncclComm *comm)
{
    pthread_mutex_lock(&registry.lock);
    comm->users--;
    pthread_mutex_unlock(&registry.lock);
}

int rondo_nccl_comm_users(struct ncclComm *comm)
{
    pthread_mutex_lock(&registry.lock);
    int users = comm->users;
    pthread_mutex_unlock(&registry.lock);
    return users;
}

int rondo_nccl_comm_unlist(ncclComm_t comm)
{
    pthread_mutex_lock(&registry.lock);
    struct ncclComm **link = find(comm);
    int found = *link != NULL;
    if (found)
        *link = comm->next;
    pthread_mutex_unlock(&registry.lock);
    return found;
}

/* ---- what they say ---- */

static ncclResult_t tell(ncclComm_t comm, const char *function, int *value, size_t offset)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, function);
    if (result != ncclSuccess)
        return result;
    if (value == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "%s: the result pointer is NULL", function);
    else if (__atomic_load_n(&comm->state, __ATOMIC_ACQUIRE) == ncclInProgress &&
             __atomic_load_n(&comm->comm, __ATOMIC_ACQUIRE) == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "%s: communicator %p is still being made", function, (void *) comm);
    else
        *value = *(const int *) (const void *) ((const char *) comm + offset);
    rondo_nccl_comm_let_go(comm);
    return result;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    return tell(comm, "ncclCommCount", count, offsetof(struct ncclComm, size));
}
NCCL_EXPORT(ncclCommCount);

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    return tell(comm, "ncclCommCuDevice", device, offsetof(struct ncclComm, device));
}
NCCL_EXPORT(ncclCommCuDevice);

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    return tell(comm, "ncclCommUserRank", rank, offsetof(struct ncclComm, rank));
}
NCCL_EXPORT(ncclCommUserRank);

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, "ncclCommGetAsyncError");
    if (result != ncclSuccess)
        return result;
    rondo_result_t failure;
    if (error == NULL) {
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommGetAsyncError: the result pointer is NULL");
    } else {
        *error = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);
        if (*error == ncclSuccess && !__atomic_load_n(&comm->revoked, __ATOMIC_ACQUIRE)) {
            *error = __atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE);
            if (rondo_comm_status(comm->comm, &failure, NULL) == RONDO_SUCCESS && failure != RONDO_SUCCESS)
                *error = rondo_nccl_result(failure, "asynchronous error");
        }
    }
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommGetAsyncError);

/* ---- their end ---- */

/* Until nothing of it runs: its kernels wait for other ranks' calls only, which NCCL's rules promise. */
static ncclResult_t flush(struct rondo_nccl_job *job)
{
    static const struct timespec pause = {0, 50000};
    struct ncclComm *comm = job->comm;
    rondo_result_t failure = RONDO_SUCCESS;
    int idle = 0;
    /* This job is one of the users; queued operations of the host's streams are the others. */
    while (!(idle && rondo_nccl_comm_users(comm) == 1) && failure == RONDO_SUCCESS) {
        if (rondo_comm_status(comm->comm, &failure, &idle) != RONDO_SUCCESS)
            return rondo_nccl_fail(ncclInternalError, "ncclCommFinalize: %s", rondo_last_error());
        if (!idle || rondo_nccl_comm_users(comm) > 1)
            nanosleep(&pause, NULL);
    }
    return ncclSuccess;
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, "ncclCommFinalize");
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    struct rondo_nccl_job *job = calloc(1, sizeof(*job));
    if (job == NULL || __atomic_exchange_n(&comm->finalized, 1, __ATOMIC_ACQ_REL)) {
        rondo_nccl_comm_let_go(comm);
        result = job == NULL
                     ? rondo_nccl_fail(ncclSystemError, "ncclCommFinalize: no memory")
                     : rondo_nccl_fail(ncclInvalidUsage, "ncclCommFinalize: communicator %p has been finalized", (void *) comm);
        free(job);
        return rondo_nccl_note(result);
    }
    __atomic_store_n(&comm->state, ncclInProgress, __ATOMIC_RELEASE);
    job->run = flush;
    job->late = 1;
    job->blocking = comm->blocking;
    job->comm = comm;
    return rondo_nccl_submit(job);
}
NCCL_EXPORT(ncclCommFinalize);

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    if (comm == NULL)
        return ncclSuccess; /* as in NCCL */
    if (!rondo_nccl_comm_unlist(comm))
        return rondo_nccl_fail(ncclInvalidArgument, "ncclCommDestroy: %p is no communicator, or was destroyed", (void *) comm);
    rondo_nccl_dispose(comm);
    return ncclSuccess;
}
NCCL_EXPORT(ncclCommDestroy);

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    if (comm == NULL)
        return ncclSuccess;
    if (!rondo_nccl_comm_unlist(comm))
        return rondo_nccl_fail(ncclInvalidArgument, "ncclCommAbort: %p is no communicator, or was destroyed", (void *) comm);
    /* Sequentially consistent with who makes it, which stores comm and then looks at aborted: one of the two sees the other. */
    __atomic_store_n(&comm->aborted, 1, __ATOMIC_SEQ_CST);
    rondo_nccl_abort_kernels(comm);
    rondo_comm_t inner = __atomic_load_n(&comm->comm, __ATOMIC_SEQ_CST),
                 apart = __atomic_load_n(&comm->apart, __ATOMIC_SEQ_CST);
    if (inner != NULL)
        rondo_comm_abort(inner, 1);
    if (apart != NULL)
        rondo_comm_abort(apart, 1);
    rondo_nccl_dispose(comm);
    return ncclSuccess;
}
NCCL_EXPORT(ncclCommAbort);

ncclResult_t pncclCommRevoke(ncclComm_t comm, int flags)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommRevoke");
    if (result != ncclSuccess)
        return result;
    if (flags != NCCL_REVOKE_DEFAULT) {
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommRevoke: flags are 0x%x", (unsigned) flags);
    } else {
        __atomic_store_n(&comm->revoked, 1, __ATOMIC_RELEASE);
        result = rondo_nccl_result(rondo_comm_revoke(comm->comm), "ncclCommRevoke");
    }
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommRevoke);
