/* Memory of the drop-in: ncclMemAlloc and ncclMemFree, and the registration of buffers and windows, as Rondo's rondo_alloc and
 * rondo_comm_register offer them. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* What a rank tells the others of its window. An address means something in the process that has the same key alone. */
struct view {
    unsigned char process[16];
    void *address;
    uint64_t bytes;
    struct rondo_nccl_signals *signals;
    int32_t device;
};

/* A registration: of one rank (ncclCommRegister), or of a window by all. */
struct rondo_nccl_window {
    struct rondo_nccl_window *next; /* of the communicator (its lock) */
    void *address;
    const void *handle; /* what the program calls it: on a GPU, a record for kernels (struct ncclWindow_vidmem) */
    int shared;         /* rondo_comm_register has it */
    struct view *views; /* by rank, with the address NULL of those that are not reached; NULL: of a window that is not shared */
    int ranks, rank;
    struct rondo_nccl_window *next_of_all; /* of those with views */
};

/* Windows are named without their communicator in some calls. */
static struct {
    pthread_mutex_t lock;
    struct rondo_nccl_window *first;
} all_windows = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
    window->handle = window;
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
    while (*link != NULL && (*link)->handle != handle)
        link = &(*link)->next;
    found = *link;
    if (found != NULL)
        *link = found->next;
    pthread_mutex_unlock(&comm->lock);
    return found;
}

static void destroy(struct ncclComm *comm, struct rondo_nccl_window *window)
{
    if (window != NULL && window->handle != window)
        rondo_nccl_block_give_back(comm, window->handle);
    if (window != NULL && window->views != NULL) {
        pthread_mutex_lock(&all_windows.lock);
        struct rondo_nccl_window **link = &all_windows.first;
        while (*link != window)
            link = &(*link)->next_of_all;
        *link = window->next_of_all;
        pthread_mutex_unlock(&all_windows.lock);
        free(window->views);
    }
    free(window);
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

ncclResult_t rondo_nccl_window_remove(struct ncclComm *comm, const void *handle, void **memory, const char *function)
{
    ncclResult_t result = ncclSuccess;
    struct rondo_nccl_window *window = take(comm, handle);
    if (window == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %p is no registration of communicator %p", function, handle,
                               (void *) comm);
    if (memory != NULL)
        *memory = window->address;
    if (window->shared)
        result = rondo_nccl_result(rondo_comm_deregister(comm->comm, window->address), function);
    destroy(comm, window);
    return result;
}

static ncclResult_t remove_one(ncclComm_t comm, void *handle, const char *function)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, function);
    if (result != ncclSuccess)
        return result;
    if (handle != NULL)
        result = rondo_nccl_window_remove(comm, handle, NULL, function);
    rondo_nccl_comm_let_go(comm);
    return result;
}

ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return remove_one(comm, handle, "ncclCommDeregister");
}
NCCL_EXPORT(ncclCommDeregister);

/* ---- windows ---- */

static unsigned char process_key[16];

static void make_key(void)
{
    if (getrandom(process_key, sizeof(process_key), 0) != (ssize_t) sizeof(process_key))
        memset(process_key, 0, sizeof(process_key)); /* and no process is known for this one */
}

static int is_this_process(const struct view *view)
{
    static const unsigned char none[sizeof(process_key)];
    return memcmp(view->process, process_key, sizeof(process_key)) == 0 && memcmp(process_key, none, sizeof(none)) != 0;
}

int rondo_nccl_can_access(int from, int to)
{
    int can = from == to;
    if (!can && cudaDeviceCanAccessPeer(&can, from, to) != cudaSuccess) {
        cudaGetLastError();
        can = 0;
    }
    return can;
}

static void enable_access(int from, int to)
{
    int current = from;
    if (from == to || from < 0)
        return;
    cudaGetDevice(&current);
    cudaSetDevice(from);
    if (cudaDeviceEnablePeerAccess(to, 0) != cudaSuccess)
        cudaGetLastError(); /* it was enabled before */
    cudaSetDevice(current);
}

/* Keeps what is reached. All ranks find the same about all reaching each other. */
static void look_at_views(struct ncclComm *comm, struct view *views)
{
    int lsa = 1;
    pthread_mutex_lock(&comm->lock);
    for (int r = 0; r < comm->size; r++) {
        const int here = is_this_process(&views[r]);
        for (int k = 0; k < comm->size; k++)
            lsa = lsa && here && is_this_process(&views[k]) && rondo_nccl_can_access(views[r].device, views[k].device);
        if (here && comm->signals[r] == NULL)
            comm->signals[r] = views[r].signals;
        if (!here || !rondo_nccl_can_access(comm->device, views[r].device))
            views[r].address = NULL;
        else
            enable_access(comm->device, views[r].device);
    }
    __atomic_store_n(&comm->lsa, lsa, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&comm->lock);
}

/* Whether all ranks have memory, and, of windows that are to be alike, as much. All find the same. */
static ncclResult_t check_views(const struct ncclComm *comm, const struct view *views, int alike, const char *function)
{
    for (int r = 0; r < comm->size; r++) {
        if (views[r].address == NULL)
            return rondo_nccl_fail(ncclSystemError, "%s: rank %d has no memory for %zu bytes", function, r,
                                   (size_t) views[r].bytes);
        if (alike && views[r].bytes != views[0].bytes)
            return rondo_nccl_fail(ncclInvalidArgument, "%s: rank 0 wants %zu bytes of resources, rank %d %zu", function,
                                   (size_t) views[0].bytes, r, (size_t) views[r].bytes);
    }
    return ncclSuccess;
}

/* What the other ranks have. A failed exchange fails on all ranks. */
static ncclResult_t exchange_views(struct ncclComm *comm, void *memory, size_t bytes, int alike, struct view **result,
                                   const char *function)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    struct view mine = {.bytes = bytes, .device = comm->device}, *views = calloc((size_t) comm->size, sizeof(*views));
    void *all = NULL;
    _Static_assert(sizeof(mine) <= RONDO_NCCL_SHARE_BYTES, "an exchange holds a view");
    memcpy(mine.process, process_key, sizeof(process_key));
    if (views != NULL && rondo_nccl_signals_prepare(comm)) {
        mine.address = memory;
        mine.signals = comm->signals[comm->rank];
    }
    ncclResult_t status = rondo_nccl_share(comm, &mine, sizeof(mine), &all, function);
    if (status == ncclSuccess)
        status = check_views(comm, all, alike, function); /* an address that is NULL fails on all ranks */
    if (status != ncclSuccess) {
        free(views);
        return status;
    }
    memcpy(views, all, (size_t) comm->size * sizeof(*views));
    look_at_views(comm, views);
    *result = views;
    return ncclSuccess;
}

/* What kernels know the window by. NULL: no memory. */
static const void *make_record(struct ncclComm *comm, const struct rondo_nccl_window *window)
{
    const size_t bytes = sizeof(ncclWindow_vidmem_t) + (size_t) comm->size * sizeof(char *);
    const int lsa = rondo_nccl_lsa_size(comm);
    ncclWindow_vidmem_t *record = calloc(1, bytes);
    void *place = record != NULL ? rondo_nccl_block_take(comm, bytes) : NULL;
    if (place != NULL) {
        record->rank = comm->rank;
        record->nRanks = comm->size;
        record->lsaRank = comm->rank % lsa;
        record->lsaSize = lsa;
        for (int r = 0; r < comm->size; r++)
            record->bases[r] = window->views[r].address;
        if (!rondo_nccl_block_write(comm, place, record, bytes)) {
            rondo_nccl_block_give_back(comm, place);
            place = NULL;
        }
    }
    free(record);
    return place;
}

static ncclResult_t list_window(struct ncclComm *comm, void *memory, int shared, struct view *views, void **handle,
                                const char *function)
{
    struct rondo_nccl_window *window = add(comm, memory, shared);
    if (window == NULL) {
        free(views);
        return rondo_nccl_fail(ncclSystemError, "%s: no memory", function);
    }
    window->views = views;
    window->ranks = comm->size;
    window->rank = comm->rank;
    pthread_mutex_lock(&all_windows.lock);
    window->next_of_all = all_windows.first;
    all_windows.first = window;
    pthread_mutex_unlock(&all_windows.lock);
    if (comm->device >= 0) {
        const void *record = make_record(comm, window);
        if (record == NULL) {
            destroy(comm, take(comm, window));
            return rondo_nccl_fail(ncclSystemError, "%s: no memory on the GPU", function);
        }
        window->handle = record;
    }
    *handle = (void *) (uintptr_t) window->handle;
    return ncclSuccess;
}

/* All ranks have the window when one returns with it: a kernel that is launched then may wait for other ranks' kernels, and
 * what those ranks did for their windows on the same GPU would wait for it. */
static ncclResult_t agree(struct ncclComm *comm, ncclResult_t mine, const char *function)
{
    const unsigned char failed = mine != ncclSuccess;
    void *all = NULL;
    const ncclResult_t result = rondo_nccl_share(comm, &failed, 1, &all, function);
    if (mine != ncclSuccess || result != ncclSuccess)
        return mine != ncclSuccess ? mine : result;
    for (int r = 0; r < comm->size; r++)
        if (((const unsigned char *) all)[r])
            return rondo_nccl_fail(ncclSystemError, "%s: rank %d has no memory for its window", function, r);
    return ncclSuccess;
}

ncclResult_t rondo_nccl_window_make(struct ncclComm *comm, void *memory, size_t bytes, int direct, void **handle,
                                    const char *function)
{
    struct view *views = NULL;
    ncclResult_t result = ncclSuccess;
    if (direct)
        result = rondo_nccl_result(rondo_comm_register(comm->comm, memory, bytes), function);
    if (result != ncclSuccess)
        return result;
    result = exchange_views(comm, memory, bytes, !direct, &views, function);
    if (result == ncclSuccess) {
        const ncclResult_t listed = list_window(comm, memory, direct, views, handle, function);
        result = agree(comm, listed, function);
        if (result != ncclSuccess && listed == ncclSuccess)
            destroy(comm, take(comm, *handle));
    }
    if (result != ncclSuccess && direct)
        rondo_comm_deregister(comm->comm, memory);
    return result;
}

static ncclResult_t open_window(struct rondo_nccl_job *job)
{
    return rondo_nccl_window_make(job->parent, job->address, job->bytes, 1, job->window, "ncclCommWindowRegister");
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
        job->window = (void **) window;
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

ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t handle, void **out)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, "ncclWinGetUserPtr");
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    const struct rondo_nccl_window *window = comm->windows;
    while (window != NULL && window->handle != (const void *) handle)
        window = window->next;
    if (window != NULL && out != NULL)
        *out = window->address;
    pthread_mutex_unlock(&comm->lock);
    if (window == NULL || out == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclWinGetUserPtr: window %p of communicator %p, result at %p",
                                 (void *) handle, (void *) comm, (void *) out);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclWinGetUserPtr);

int rondo_nccl_lsa_size(const struct ncclComm *comm)
{
    return comm->world->lsa || __atomic_load_n(&comm->lsa, __ATOMIC_ACQUIRE) ? comm->size : 1;
}

/* Under the lock of all windows. */
static ncclResult_t look_up(ncclWindow_t handle, int rank, size_t offset, size_t bytes, void **address, const char *function)
{
    const struct rondo_nccl_window *window = all_windows.first;
    while (window != NULL && window->handle != (const void *) handle)
        window = window->next_of_all;
    if (window == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %p is no window with NCCL_WIN_COLL_SYMMETRIC", function,
                               (void *) handle);
    if (rank < 0 || rank >= window->ranks || address == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: rank %d of %d, result at %p", function, rank, window->ranks,
                               (void *) address);
    const struct view *view = &window->views[rank];
    if (offset > view->bytes || bytes > view->bytes - offset)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %zu bytes from %zu on in a window of %zu", function, bytes, offset,
                               (size_t) view->bytes);
    if (view->address == NULL)
        return rondo_nccl_fail(ncclInvalidUsage, "%s: rank %d's window is in another process, or on a GPU that is not reached",
                               function, rank);
    *address = (char *) view->address + offset;
    return ncclSuccess;
}

ncclResult_t rondo_nccl_window_reach(struct ncclComm *comm, ncclWindow_t window, int rank, size_t offset, size_t bytes,
                                     void **address, const char *function)
{
    pthread_mutex_lock(&comm->lock);
    const struct rondo_nccl_window *own = comm->windows;
    while (own != NULL && own->handle != (const void *) window)
        own = own->next;
    pthread_mutex_unlock(&comm->lock);
    if (own == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %p is no window of communicator %p", function, (void *) window,
                               (void *) comm);
    pthread_mutex_lock(&all_windows.lock);
    ncclResult_t result = look_up(window, rank, offset, bytes, address, function);
    pthread_mutex_unlock(&all_windows.lock);
    return result;
}

ncclResult_t pncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **out)
{
    pthread_mutex_lock(&all_windows.lock);
    ncclResult_t result = look_up(window, peer, offset, 0, out, "ncclGetPeerDevicePointer");
    pthread_mutex_unlock(&all_windows.lock);
    return result;
}
NCCL_EXPORT(ncclGetPeerDevicePointer);

/* The LSA team is the whole communicator, or the rank alone. */
ncclResult_t pncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int rank, void **out)
{
    int reached = 0, own = rank;
    pthread_mutex_lock(&all_windows.lock);
    const struct rondo_nccl_window *found = all_windows.first;
    while (found != NULL && found->handle != (const void *) window)
        found = found->next_of_all;
    for (int r = 0; found != NULL && r < found->ranks; r++)
        reached += found->views[r].address != NULL;
    if (found != NULL && reached < found->ranks)
        own = rank == 0 ? found->rank : -1;
    ncclResult_t result = look_up(window, own, offset, 0, out, "ncclGetLsaDevicePointer");
    pthread_mutex_unlock(&all_windows.lock);
    return result;
}
NCCL_EXPORT(ncclGetLsaDevicePointer);

void rondo_nccl_forget_windows(struct ncclComm *comm)
{
    while (comm->windows != NULL) {
        struct rondo_nccl_window *window = comm->windows;
        comm->windows = window->next;
        if (window->shared)
            rondo_comm_deregister(comm->comm, window->address);
        destroy(comm, window);
    }
    rondo_nccl_signals_forget(comm);
}
