/* Kernels that reach other ranks' windows by nccl_device.h, with --ranks ranks as threads: barriers, an all-reduce, an
 * all-to-all, resources of a device communicator, and what is refused. --scenario NAME runs one of them. The kernels of all
 * ranks wait for each other, so those that share a GPU have to fit on it together: their grids are BLOCKS small blocks. The
 * source is written for NCCL's interface alone and compiles with NVIDIA's nccl_device.h too. On the host device only refusals
 * are checked. */
#include <nccl_device.h>

#include "test/nccl/ranks.h"

#define BLOCKS  2
#define THREADS 128
#define WARPS   (THREADS / 32)
#define COUNT   5003 /* elements a rank */
#define ROUNDS  20

#define CUDA(call)                                                                                                             \
    do {                                                                                                                       \
        cudaError_t error_ = (call);                                                                                           \
        if (error_ != cudaSuccess) {                                                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                         \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)

static int ranks = 3;

struct me {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream;
    int *send, *recv; /* symmetric windows of COUNT elements for each rank */
    ncclWindow_t send_window, recv_window;
    int *result; /* a word of this rank's, 0 */
};

static void put(int *memory, const int *values, size_t count)
{
    device_put(memory, values, count * sizeof(int));
}

static int get(const int *memory)
{
    int value = 0;
    device_get(&value, memory, sizeof(value));
    return value;
}

/* Says which rank did not end, so that a hang is told from a wrong result. */
static void wait_for(const struct me *me, const char *what)
{
    CUDA(cudaGetLastError());
    const int ended = stream_wait_for(me->stream, 20);
    CHECK(ended, "%s: the kernel of rank %d of %d has not ended", what, me->rank, me->size);
    if (!ended)
        exit(1);
    CUDA(cudaStreamSynchronize(me->stream));
}

/* ---- barriers ---- */

/* Each round every rank says its number, and looks for it in what the others have said: between two barriers all have said it,
 * and none has gone on. */
template <typename Coop>
__device__ void meet(Coop coop, const ncclDevComm &comm, ncclTeam lsa, ncclLsaBarrierHandle barriers, uint32_t index,
                     ncclWindow_t window, int *wrong)
{
    ncclLsaBarrierSession<Coop> barrier(coop, comm, lsa, barriers, index);
    volatile int *said = (int *) ncclGetLocalPointer(window, 0) + index;
    for (int round = 1; round <= ROUNDS; round++) {
        if (coop.thread_rank() == 0)
            *said = *said + 1;
        barrier.sync(coop, cuda::memory_order_acq_rel);
        for (int peer = coop.thread_rank(); peer < lsa.nRanks; peer += coop.size()) {
            volatile int *theirs = (int *) ncclGetLsaPointer(window, 0, peer) + index;
            if (*theirs != *said)
                atomicAdd(wrong, 1);
        }
        barrier.sync(coop, cuda::memory_order_acq_rel);
    }
}

__global__ void barrier_kernel(ncclDevComm comm, ncclWindow_t window, ncclLsaBarrierHandle more, int *wrong)
{
    const uint32_t warp = threadIdx.x / 32, block = blockIdx.x;
    meet(ncclCoopCta(), comm, ncclTeamLsa(comm), comm.lsaBarrier, block, window, wrong);
    __syncthreads();
    meet(ncclCoopWarp(), comm, ncclTeamLsa(comm), comm.lsaBarrier, BLOCKS + block * WARPS + warp, window, wrong);
    __syncthreads();
    /* The barriers that a requirement has made, with two warps, and with threads of a warp. */
    if (warp < 2)
        meet(ncclCoopWarpSpan(0, 2, 3), comm, ncclTeamLsa(comm), more, block, window, wrong);
    else if (threadIdx.x % 32 < 8)
        meet(ncclCoopTile<8>(), comm, ncclTeamLsa(comm), more, BLOCKS + block * WARPS + warp, window, wrong);
    __syncthreads();
    if (warp == 3 && threadIdx.x % 2 == 1)
        meet(ncclCoopLanes(0xaaaaaaaau), comm, ncclTeamLsa(comm), more, BLOCKS + block * WARPS, window, wrong);
}

/* The whole-communicator barrier, by the convenience session. */
__global__ void world_kernel(ncclDevComm comm, ncclWindow_t window, int *wrong)
{
    ncclBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), ncclTeamTagLsa(), comm, blockIdx.x);
    volatile int *said = (int *) ncclGetLocalPointer(window, 0) + blockIdx.x;
    if (threadIdx.x == 0)
        *said = 77 + comm.rank;
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
    for (int peer = (int) threadIdx.x; peer < comm.nRanks; peer += (int) blockDim.x)
        if (*((volatile int *) ncclGetPeerPointer(window, 0, ncclTeamWorld(comm), peer) + blockIdx.x) != 77 + peer)
            atomicAdd(wrong, 1);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

static void barriers(struct me *me)
{
    ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevResourceRequirements more = {};
    ncclLsaBarrierHandle handle = {};
    ncclDevComm comm;
    NCCL(ncclLsaBarrierCreateRequirement(ncclTeamLsa(me->comm), BLOCKS + BLOCKS * WARPS, &handle, &more));
    reqs.lsaBarrierCount = BLOCKS + BLOCKS * WARPS;
    reqs.barrierCount = BLOCKS;
    reqs.resourceRequirementsList = &more;
    NCCL(ncclDevCommCreate(me->comm, &reqs, &comm));
    for (int launch = 0; launch < 3; launch++)
        barrier_kernel<<<BLOCKS, THREADS, 0, me->stream>>>(comm, me->send_window, handle, me->result);
    world_kernel<<<BLOCKS, THREADS, 0, me->stream>>>(comm, me->recv_window, me->result);
    wait_for(me, "barriers");
    CHECK(get(me->result) == 0, "rank %d has found %d words of others that do not fit", me->rank, get(me->result));
    NCCL(ncclDevCommDestroy(me->comm, &comm));
    CODE(ncclInvalidArgument, ncclDevCommDestroy(me->comm, &comm));
}

/* ---- collectives ---- */

__global__ void allreduce_kernel(ncclDevComm comm, ncclWindow_t send, ncclWindow_t recv, size_t count)
{
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
    const ncclTeam lsa = ncclTeamLsa(comm);
    const size_t threads = (size_t) lsa.nRanks * gridDim.x * blockDim.x;
    barrier.sync(ncclCoopCta(), cuda::memory_order_acquire); /* all inputs are there */
    for (size_t i = ((size_t) lsa.rank * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
        int sum = 0;
        for (int peer = 0; peer < lsa.nRanks; peer++)
            sum += ((const volatile int *) ncclGetLsaPointer(send, 0, peer))[i];
        for (int peer = 0; peer < lsa.nRanks; peer++)
            ((int *) ncclGetLsaPointer(recv, 0, peer))[i] = sum;
    }
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel); /* all results are, and no input is read any more */
}

static void allreduce(struct me *me)
{
    ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevComm comm;
    int *values = (int *) malloc(COUNT * sizeof(int)), *found = (int *) malloc(COUNT * sizeof(int));
    reqs.lsaBarrierCount = BLOCKS;
    NCCL(ncclDevCommCreate(me->comm, &reqs, &comm));
    for (int round = 0; round < ROUNDS; round++) {
        size_t wrong = 0, first = 0;
        for (int i = 0; i < COUNT; i++)
            values[i] = round * 1000 + i * (me->rank + 1);
        put(me->send, values, COUNT);
        allreduce_kernel<<<BLOCKS, THREADS, 0, me->stream>>>(comm, me->send_window, me->recv_window, COUNT);
        wait_for(me, "all-reduce");
        device_get(found, me->recv, COUNT * sizeof(int));
        for (int i = COUNT - 1; i >= 0; i--)
            if (found[i] != me->size * round * 1000 + i * (me->size * (me->size + 1) / 2)) {
                wrong++;
                first = (size_t) i;
            }
        CHECK(wrong == 0, "all-reduce, round %d, rank %d: %zu of %d elements, the first is number %zu: %d", round, me->rank,
              wrong, COUNT, first, found[first]);
        if (wrong > 0)
            break;
    }
    NCCL(ncclDevCommDestroy(me->comm, &comm));
    free(values);
    free(found);
}

__global__ void alltoall_kernel(ncclDevComm comm, ncclSymPtr<int> send, ncclSymPtr<int> recv, size_t count)
{
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
    const ncclTeam lsa = ncclTeamLsa(comm);
    barrier.sync(ncclCoopCta(), cuda::memory_order_relaxed); /* no result of the last round is read any more */
    for (int step = 0; step < lsa.nRanks; step++) {
        const int peer = (lsa.rank + step) % lsa.nRanks;
        const int *from = (send + (size_t) peer * count).localPtr();
        int *to = (recv + (size_t) lsa.rank * count).lsaPtr(peer);
        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (size_t) gridDim.x * blockDim.x)
            to[i] = from[i];
    }
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
}

static void alltoall(struct me *me)
{
    ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevComm comm;
    const int total = COUNT * me->size;
    int *values = (int *) malloc((size_t) total * sizeof(int)), *found = (int *) malloc((size_t) total * sizeof(int));
    reqs.lsaBarrierCount = BLOCKS;
    NCCL(ncclDevCommCreate(me->comm, &reqs, &comm));
    for (int round = 0; round < ROUNDS; round++) {
        int wrong = 0, first = 0;
        for (int i = 0; i < total; i++)
            values[i] = (round * me->size + me->rank) * 100000 + i;
        put(me->send, values, (size_t) total);
        alltoall_kernel<<<BLOCKS, THREADS, 0, me->stream>>>(comm, ncclSymPtr<int>(me->send_window),
                                                            ncclSymPtr<int>(me->recv_window), COUNT);
        wait_for(me, "all-to-all");
        device_get(found, me->recv, (size_t) total * sizeof(int));
        for (int i = total - 1; i >= 0; i--)
            if (found[i] != (round * me->size + i / COUNT) * 100000 + me->rank * COUNT + i % COUNT) {
                wrong++;
                first = i;
            }
        CHECK(wrong == 0, "all-to-all, round %d, rank %d: %d of %d elements, the first is number %d: %d", round, me->rank,
              wrong, total, first, found[first]);
        if (wrong > 0)
            break;
    }
    NCCL(ncclDevCommDestroy(me->comm, &comm));
    free(values);
    free(found);
}

/* ---- resources ---- */

/* A buffer of the device communicator's: 0 at first, and reached by the others. out: the team's shape as the kernel sees it. */
__global__ void resource_kernel(ncclDevComm comm, ncclDevResourceHandle buffer, int *wrong, int *out)
{
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
    const int own = comm.lsaRank, next = (own + 1) % comm.lsaSize;
    int *mine = (int *) ncclGetResourceBufferLocalPointer(comm, buffer);
    if (mine != (int *) ncclGetResourceBufferLsaPointer(comm, buffer, own) || (uintptr_t) mine % 1024 != 0)
        atomicAdd(wrong, 1);
    for (int i = (int) threadIdx.x; i < 1000; i += (int) blockDim.x)
        if (mine[i] != 0)
            atomicAdd(wrong, 1);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
    int *theirs = (int *) ncclGetResourceBufferPeerPointer(comm, buffer, ncclTeamLsa(comm), next);
    for (int i = (int) threadIdx.x; i < 1000; i += (int) blockDim.x)
        theirs[i] = own * 1000 + i;
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
    const int before = (own + comm.lsaSize - 1) % comm.lsaSize;
    for (int i = (int) threadIdx.x; i < 1000; i += (int) blockDim.x)
        if (((volatile int *) ncclGetResourceBuffer(comm, buffer).peerPtr(comm.rank))[i] != before * 1000 + i)
            atomicAdd(wrong, 1);
    barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
    if (threadIdx.x == 0) {
        const ncclTeam rail = ncclTeamRail(comm);
        out[0] = comm.lsaSize * rail.nRanks;
        out[1] = ncclTeamRankToWorld(comm, rail, rail.rank);
        out[2] = ncclTeamRankToLsa(comm, ncclTeamWorld(comm), comm.rank);
    }
}

static void resources(struct me *me)
{
    ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevResourceRequirements small = {}, buffer = {};
    ncclDevResourceHandle first = 0, handle = 0;
    int shape[3] = {0, 0, 0};
    small.bufferSize = 5;
    small.outBufferHandle = &first;
    small.next = &buffer;
    buffer.bufferSize = 1000 * sizeof(int);
    buffer.bufferAlign = 1024;
    buffer.outBufferHandle = &handle;
    reqs.lsaBarrierCount = 1;
    reqs.resourceRequirementsList = &small;
    /* Memory that one device communicator has used is 0 again in the next. */
    for (int again = 0; again < 3; again++) {
        ncclDevComm comm;
        NCCL(ncclDevCommCreate(me->comm, &reqs, &comm));
        CHECK(comm.rank == me->rank && comm.nRanks == me->size, "rank %d of %d", comm.rank, comm.nRanks);
        resource_kernel<<<1, THREADS, 0, me->stream>>>(comm, handle, me->result, me->send);
        wait_for(me, "resources");
        CHECK(get(me->result) == 0, "%d words of rank %d are wrong, time %d", get(me->result), me->rank, again);
        device_get(shape, me->send, sizeof(shape));
        CHECK(shape[0] == me->size && shape[1] == me->rank && shape[2] == ncclTeamLsa(me->comm).rank, "%d, %d, %d", shape[0],
              shape[1], shape[2]);
        NCCL(ncclDevCommDestroy(me->comm, &comm));
    }
    /* Ranks that do not ask for the same get an error on all of them. */
    ncclDevComm none;
    buffer.bufferSize = 100000 * (size_t) (1 + me->rank);
    if (me->size > 1)
        CODE(ncclInvalidArgument, ncclDevCommCreate(me->comm, &reqs, &none));
}

/* ---- waits that do not end by themselves ---- */

__global__ void alone_kernel(ncclDevComm comm, int *code, uint64_t cycles)
{
    ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), 0);
    if (cycles == 0) {
        barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
        return;
    }
#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE >= 22900 || defined(RONDO_NCCL_DEVICE_H)
    const ncclResult_t result = barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel, cycles);
    if (result != ncclSuccess)
        atomicMax(code, (int) result);
#endif
}

/* One rank waits for the others, which do not come. */
static void timeout(struct me *me)
{
    ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevComm comm;
    reqs.lsaBarrierCount = 1;
    NCCL(ncclDevCommCreate(me->comm, &reqs, &comm));
    if (me->rank == 0) {
        alone_kernel<<<1, THREADS, 0, me->stream>>>(comm, me->result, 1000000);
        wait_for(me, "a barrier with a bound");
        CHECK(get(me->result) == 8, "%d is not ncclTimeout", get(me->result));
    }
    NCCL(ncclDevCommDestroy(me->comm, &comm));
}

/* The others' memory stays until rank 0's kernel has told them that it has arrived. */
static void aborted(struct me *me)
{
    static int waits; /* atomic */
    ncclDevCommRequirements reqs = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevComm comm;
    reqs.lsaBarrierCount = 1;
    NCCL(ncclDevCommCreate(me->comm, &reqs, &comm));
    if (me->rank == 0) {
        alone_kernel<<<1, THREADS, 0, me->stream>>>(comm, me->result, 0);
        CHECK(!stream_wait_for(me->stream, 0.5), "the barrier did not wait for the other ranks");
        __atomic_store_n(&waits, 1, __ATOMIC_RELEASE);
    }
    for (const double until = now() + 20; !__atomic_load_n(&waits, __ATOMIC_ACQUIRE) && now() < until;)
        continue;
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
    wait_for(me, "an aborted barrier");
}

/* ---- what is refused ---- */

static void refused(struct me *me)
{
    if (me->rank != 0) /* the latest error is of all threads */
        return;
    const ncclDevCommRequirements plain = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
    ncclDevCommRequirements reqs = plain;
    ncclDevResourceRequirements one = {};
    ncclLsaBarrierHandle handle;
    ncclDevComm comm;
    CODE(ncclInvalidArgument, ncclDevCommCreate(NULL, &reqs, &comm));
    CODE(ncclInvalidArgument, ncclDevCommCreate(me->comm, NULL, &comm));
    CODE(ncclInvalidArgument, ncclDevCommCreate(me->comm, &reqs, NULL));
    CODE(ncclInvalidArgument, ncclDevCommDestroy(me->comm, NULL));
    CODE(ncclInvalidArgument, ncclLsaBarrierCreateRequirement(ncclTeamLsa(me->comm), -1, &handle, &one));
    CODE(ncclInvalidArgument, ncclLsaBarrierCreateRequirement(ncclTeamLsa(me->comm), 1, NULL, &one));
    reqs.magic = 0xcafebeef; /* NVIDIA's */
    CODE(ncclInvalidUsage, ncclDevCommCreate(me->comm, &reqs, &comm));
    CHECK(strstr(ncclGetLastError(NULL), "nccl_device.h") != NULL, "%s", ncclGetLastError(NULL));
    if (on_host()) {
        CODE(ncclInvalidUsage, ncclDevCommCreate(me->comm, &plain, &comm));
        CHECK(strstr(ncclGetLastError(NULL), "host device") != NULL, "%s", ncclGetLastError(NULL));
        return;
    }
    reqs = plain;
    reqs.ginSignalCount = 1;
    CODE(ncclInvalidUsage, ncclDevCommCreate(me->comm, &reqs, &comm));
    CHECK(strstr(ncclGetLastError(NULL), "GIN") != NULL, "%s", ncclGetLastError(NULL));
    reqs = plain;
    reqs.lsaMultimem = true;
    CODE(ncclInvalidUsage, ncclDevCommCreate(me->comm, &reqs, &comm));
    CHECK(strstr(ncclGetLastError(NULL), "multicast") != NULL, "%s", ncclGetLastError(NULL));
    reqs = plain;
    reqs.lsaBarrierCount = -1;
    CODE(ncclInvalidArgument, ncclDevCommCreate(me->comm, &reqs, &comm));
    reqs = plain;
    one.bufferSize = 100;
    one.bufferAlign = 3;
    reqs.resourceRequirementsList = &one;
    CODE(ncclInvalidArgument, ncclDevCommCreate(me->comm, &reqs, &comm));
}

/* ---- */

struct scenario {
    const char *name;
    void (*run)(struct me *me);
    int least;   /* the fewest ranks that it needs */
    int kernels; /* it runs some */
};

static const struct scenario scenarios[] = {
    {"refused", refused, 1, 0},   {"barriers", barriers, 1, 1}, {"resources", resources, 1, 1}, {"allreduce", allreduce, 1, 1},
    {"alltoall", alltoall, 1, 1}, {"timeout", timeout, 2, 1},   {"aborted", aborted, 2, 1},
};

struct scenario_argument {
    const struct scenario *scenario;
    ncclUniqueId id;
};

/* All ranks have come here. */
static void meet_all(struct me *me)
{
    NCCL(ncclAllReduce(me->result, me->result, 1, ncclInt, ncclSum, me->comm, me->stream));
    stream_wait(me->stream);
}

static void thread_main(int rank, void *argument)
{
    const struct scenario_argument *given = (const struct scenario_argument *) argument;
    struct me me = {};
    me.rank = rank;
    me.size = ranks;
    const size_t bytes = COUNT * (size_t) ranks * sizeof(int);
    int *zeros = (int *) calloc(1, bytes);
    use_device(rank);
    me.stream = stream_create();
    me.result = (int *) device_allocate(sizeof(int));
    put(me.result, zeros, 1);
    me.comm = join(&given->id, rank, ranks);
    NCCL(ncclMemAlloc((void **) &me.send, bytes));
    NCCL(ncclMemAlloc((void **) &me.recv, bytes));
    put(me.send, zeros, bytes / sizeof(int));
    put(me.recv, zeros, bytes / sizeof(int));
    free(zeros);
    NCCL(ncclCommWindowRegister(me.comm, me.send, bytes, &me.send_window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(me.comm, me.recv, bytes, &me.recv_window, NCCL_WIN_COLL_SYMMETRIC));
    if (ncclTeamLsa(me.comm).nRanks == ranks || !given->scenario->kernels) {
        given->scenario->run(&me);
    } else {
        CHECK(ncclTeamLsa(me.comm).nRanks == 1, "an LSA team of %d", ncclTeamLsa(me.comm).nRanks);
        printf("%s: left out, because the GPUs do not reach each other\n", given->scenario->name);
    }
    if (me.comm != NULL) {
        meet_all(&me);
        NCCL(ncclCommWindowDeregister(me.comm, me.send_window));
        NCCL(ncclCommWindowDeregister(me.comm, me.recv_window));
        meet_all(&me);
        NCCL(ncclCommDestroy(me.comm));
    }
    stream_destroy(me.stream);
    device_free_at_end(me.send);
    device_free_at_end(me.recv);
    device_free_at_end(me.result);
}

int main(int argc, char **argv)
{
    const char *only = parse_scenario(argc, argv, &ranks);
    /* Loading a kernel, or a stream's sharing of a connection, would wait for a kernel that waits for this rank. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    watch();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        struct scenario_argument argument = {&scenarios[i], {}};
        if ((only != NULL && strcmp(only, scenarios[i].name) != 0) || ranks < scenarios[i].least ||
            (on_host() && scenarios[i].kernels))
            continue;
        const double before = now();
        NCCL(ncclGetUniqueId(&argument.id));
        run_threads(ranks, thread_main, &argument);
        printf("%s: %.2f s\n", scenarios[i].name, now() - before);
        fflush(stdout);
    }
    return finish("device_api");
}
