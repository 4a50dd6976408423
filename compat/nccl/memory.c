/* Memory of the drop-in: ncclMemAlloc and ncclMemFree, and the registration of buffers and windows, as Rondo's rondo_alloc and
 * rondo_comm_register offer them. */
#include "compat/nccl/shim.h"

#include <stdlib.h>

/* A registration: of one rank (ncclCommRegister), or of a window by all. */
struct rondo_nccl_window {
    struct rondo_nccl_window *next; /* of the communicator (its lock) */
    void *address;
    int shared; /* rondo_comm_register has it */
};

/* Plain device memory can be opened to the other ranks as it is. */
ncclResult_t pncclMemAlloc(void **memory, size_t bytes)
{
    if (memory == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclMemAlloc: ptr is NULL");
    *memory = NULL;
    if (!rondo_nccl_on_host())
        return rondo_nccl_cuda_result(cudaMalloc(memory, bytes > 0 ? bytes : 1), "ncclMemAlloc", "cudaMalloc");
    if (bytes > PTRDIFF_MAX - 4096 || (*memory = aligned_alloc(4096, (bytes + 4096) / 4096 * 4096)) == NULL)
        return rondo_nccl_fail(ncclSystemError, "ncclMemAlloc: no memory for %zu bytes", bytes);
    return ncclSuccess;
}
NCCL_EXPORT(ncclMemAlloc);

ncclResult_t pncclMemFree(void *memory)
{
    if (rondo_nccl_on_host())
        free(memory);
    else if (memory != NULL)
        return rondo_nccl_cuda_result(cudaFree(memory), "ncclMemFree", "cudaFree");
    return ncclSuccess;
}
NCCL_EXPORT(ncclMemFree);

static ncclResult_t check(const struct ncclComm *comm, const void *memory, const void *handle, const char *function)
{
    if (memory == NULL || handle == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: memory %p, place for the handle %p (communicator %p)", function,
                               memory, handle, (const void *) comm);
    return ncclSuccess;
}

static struct rondo_nccl_window *add(struct ncclComm *comm, void *memory, int shared)
{
    struct rondo_nccl_window *window = calloc(1, sizeof(*window));
    if (window == NULL)
        return NULL;
    window->address = memory;
    window->shared = shared;
    pthread_mutex_lock(&comm->lock);
    window->next = comm->windows;
    comm->windows = window;
    pthread_mutex_unlock(&comm->lock);
    return window;
}

/* Compares addresses only: the handle may be anything. */
static struct rondo_nccl_window *take(struct ncclComm *comm, const void *handle)
{
    pthread_mutex_lock(&comm->lock);
    struct rondo_nccl_window **link = &comm->windows, *found;
    while (*link != NULL && *link != handle)
        link = &(*link)->next;
    found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

/* One rank's own affair in NCCL, so that the others cannot be told: it changes nothing. */
ncclResult_t pncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle)
{
    (void) bytes;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommRegister");
    if (result != ncclSuccess)
        return result;
    result = check(comm, memory, handle, "ncclCommRegister");
    if (result == ncclSuccess && (*handle = add(comm, memory, 0)) == NULL)
        result = rondo_nccl_fail(ncclSystemError, "ncclCommRegister: no memory");
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommRegister);

static ncclResult_t remove_one(ncclComm_t comm, void *handle, const char *function)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, function);
    if (result != ncclSuccess)
        return result;
    struct rondo_nccl_window *window = handle != NULL ? take(comm, handle) : NULL;
    if (window == NULL && handle != NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "%s: %p is no registration of communicator %p", function, handle,
                                 (void *) comm);
    if (window != NULL && window->shared)
        result = rondo_nccl_result(rondo_comm_deregister(comm->comm, window->address), function);
    free(window);
    rondo_nccl_comm_let_go(comm);
    return result;
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return remove_one(comm, handle, "ncclCommDeregister");
}
NCCL_EXPORT(ncclCommDeregister);

/* ---- windows ---- */

static ncclResult_t open_window(struct rondo_nccl_job *job)
{
    ncclResult_t result =
        rondo_nccl_result(rondo_comm_register(job->parent->comm, job->address, job->bytes), "ncclCommWindowRegister");
    if (result != ncclSuccess)
        return result;
    *job->window = add(job->parent, job->address, 1);
    if (*job->window == NULL)
        return rondo_nccl_fail(ncclSystemError, "ncclCommWindowRegister: no memory");
    return ncclSuccess;
}

/* A symmetric window promises that all ranks use it alike, which is what direct access wants; others promise nothing. */
ncclResult_t pncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *window, int flags)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommWindowRegister");
    struct rondo_nccl_job *job = NULL;
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    result = check(comm, memory, window, "ncclCommWindowRegister");
    if (result == ncclSuccess && (flags & ~NCCL_WIN_COLL_SYMMETRIC) != 0)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommWindowRegister: flags 0x%x", (unsigned) flags);
    if (result == ncclSuccess && (job = calloc(1, sizeof(*job))) == NULL)
        result = rondo_nccl_fail(ncclSystemError, "ncclCommWindowRegister: no memory");
    if (result == ncclSuccess && flags == NCCL_WIN_DEFAULT) {
        *window = (ncclWindow_t) add(comm, memory, 0);
        result = *window != NULL ? ncclSuccess : rondo_nccl_fail(ncclSystemError, "ncclCommWindowRegister: no memory");
    } else if (result == ncclSuccess) {
        *window = NULL;
        job->run = open_window;
        job->blocking = 1;
        job->parent = comm; /* lets it go */
        job->address = memory;
        job->bytes = bytes;
        job->window = (struct rondo_nccl_window **) (void *) window;
        return rondo_nccl_note(rondo_nccl_submit(job));
    }
    free(job);
    rondo_nccl_comm_let_go(comm);
    return rondo_nccl_note(result);
}
NCCL_EXPORT(ncclCommWindowRegister);

ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    return remove_one(comm, window, "ncclCommWindowDeregister");
}
NCCL_EXPORT(ncclCommWindowDeregister);

void rondo_nccl_forget_windows(struct ncclComm *comm)
{
    while (comm->windows != NULL) {
        struct rondo_nccl_window *window = comm->windows;
        comm->windows = window->next;
        if (window->shared)
            rondo_comm_deregister(comm->comm, window->address);
        free(window);
    }
}
