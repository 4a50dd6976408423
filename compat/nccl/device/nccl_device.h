/*
 * Rondo's nccl_device.h: what kernels of a program use to reach the memory of other ranks' windows, under NCCL's names. It is
 * the LSA part (load and store access) of NCCL's device API for the drop-in of compat/nccl. A program is compiled with this
 * file's folder before the one of NVIDIA's: structures differ, and calls with NVIDIA's are refused.
 *
 *   ncclCommWindowRegister(comm, memory, bytes, &window, NCCL_WIN_COLL_SYMMETRIC);    all ranks, on the host
 *   ncclDevCommCreate(comm, &requirements, &devComm);                                 all ranks, on the host
 *   kernel<<<blocks, threads, 0, stream>>>(devComm, window);                          devComm by value
 *
 * C11 and C++17 on the host, CUDA C++17 with nvcc. Multicast memory and networks that kernels drive (GIN) are not offered.
 */
#ifndef RONDO_NCCL_DEVICE_H
#define RONDO_NCCL_DEVICE_H
#define _NCCL_DEVICE_H_ /* NVIDIA's files do not come in beside this one */
#define _NCCL_DEVICE_CORE_H_

#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In structures that are initialized by the macros below. It is odd, so that no pointer of an older structure looks like it. */
#define RONDO_NCCL_DEVICE_MAGIC 0x526f6e65u

#ifdef __CUDACC__
#define RONDO_NCCL_INLINE __host__ __device__ __forceinline__
#else
#define RONDO_NCCL_INLINE static inline __attribute__((unused))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- structures ---- */

/* Ranks of a communicator: this rank's number among them, and the step between their numbers in the communicator. */
typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

/* Where a resource lies in a device communicator's own window, in units of 128 bytes. */
typedef uint32_t ncclDevResourceHandle;
typedef ncclDevResourceHandle ncclDevResourceHandle_t;
#define RONDO_NCCL_RESOURCE_UNIT 128

/* Barriers of one team: for each, an epoch and a word for each of its ranks. */
typedef struct ncclLsaBarrierHandle {
    ncclDevResourceHandle_t bufHandle;
    int nBarriers;
} ncclLsaBarrierHandle_t;

typedef struct ncclMultimemHandle {
    void *mcBasePtr; /* NULL: there is no multicast memory */
} ncclMultimemHandle_t;

/* What a window's handle points to, in memory of the GPU. bases: by rank of the communicator; NULL where there is no access. */
typedef struct ncclWindow_vidmem {
    int rank, nRanks, lsaRank, lsaSize;
    char *bases[];
} ncclWindow_vidmem_t;

/* A kernel's view of a communicator: plain data, passed by value. */
typedef struct ncclDevComm {
    unsigned int magic, version;
    int rank, nRanks, lsaRank, lsaSize;
    ncclWindow_t resourceWindow;
    ncclLsaBarrierHandle_t lsaBarrier;       /* lsaBarrierCount of the requirements */
    ncclLsaBarrierHandle_t hybridLsaBarrier; /* barrierCount */
    ncclMultimemHandle_t lsaMultimem;
    const uint32_t *abortFlag; /* not 0 once the communicator is aborted: barriers do not wait any more */
} ncclDevComm_t;

/* Memory of the device communicator's window, the same on all ranks: bytes, which are 0 at first, aligned to at most 4096. */
typedef struct ncclDevResourceRequirements {
    struct ncclDevResourceRequirements *next;
    size_t bufferSize, bufferAlign;
    ncclDevResourceHandle_t *outBufferHandle; /* NULL: not wanted */
    int ginSignalCount, ginCounterCount;      /* 0 */
    uint32_t *outGinSignalStart, *outGinCounterStart;
} ncclDevResourceRequirements_t;

/* What a device communicator is to have. Only what is said here is offered; the rest must be 0, false or NULL. */
typedef struct ncclDevCommRequirements {
    size_t size; /* this and the next two are the initializer's */
    unsigned int magic, version;
    ncclDevResourceRequirements_t *resourceRequirementsList;
    struct ncclTeamRequirements *teamRequirementsList; /* NULL */
    bool lsaMultimem;
    int barrierCount;    /* barriers of all ranks; more than 0 only where all ranks are one LSA team */
    int lsaBarrierCount; /* barriers of the LSA team */
    int railGinBarrierCount;
    int lsaLLA2ABlockCount, lsaLLA2ASlotCount;
    bool ginForceEnable;
    int ginContextCount; /* a hint: ignored */
    int ginSignalCount, ginCounterCount;
    int ginConnectionType;
    bool ginExclusiveContexts;
    int ginQueueDepth, ginTrafficClass; /* ignored */
    int worldGinBarrierCount;
    bool ginStrongSignalsRequired, ginVaSignalsRequired; /* ignored */
    int ginCustomStride;                                 /* ignored */
    int ginType;
    bool useRuntimeVersion;
    int cftCaps, cftBarrierCount;
} ncclDevCommRequirements_t;
#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                                                                 \
    {                                                                                                                          \
        sizeof(ncclDevCommRequirements_t), RONDO_NCCL_DEVICE_MAGIC, NCCL_VERSION_CODE, NULL, NULL, false, 0, 0, 0, 0, 0,       \
            false, 0, 0, 0, 0, false, 0, 0, 0, false, false, 1, 0, false, 0, 0                                                 \
    }

/* 2.32's; 2.29's ends with ginType or later, and size says where the caller's ends. */
typedef struct ncclCommProperties {
    size_t size;
    unsigned int magic, version;
    int rank, nRanks, cudaDev, nvmlDev;
    bool deviceApiSupport, multimemSupport;
    int ginType, nLsaTeams;
    bool hostRmaSupport;
    int railedGinType;
    uint64_t commHash;
    int ginMinStride, ginConnectionType;
    bool ginSupport[64];
    size_t devCommRuntimeVersionSize;
    bool cftSupport, cftMulticastSupport, cftCountedSupport;
} ncclCommProperties_t;
#ifdef __cplusplus
#define NCCL_COMM_PROPERTIES_INITIALIZER                                                                                       \
    {                                                                                                                          \
        sizeof(ncclCommProperties_t), RONDO_NCCL_DEVICE_MAGIC, NCCL_VERSION_CODE                                               \
    }
#else
#define NCCL_COMM_PROPERTIES_INITIALIZER                                                                                       \
    {                                                                                                                          \
        .size = sizeof(ncclCommProperties_t), .magic = RONDO_NCCL_DEVICE_MAGIC, .version = NCCL_VERSION_CODE                   \
    }
#endif

/* ---- the host's functions ---- */

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties);

/* Collective, on GPUs: all ranks ask for the same. The lists of requirements must stay until the call, or the group that it is
 * made in, has ended. ncclInvalidUsage: the host device, and whatever needs multicast memory or a network. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *requirements, ncclDevComm_t *out);
/* Local. No kernel of any rank uses it any more. */
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *device_comm);

/* Makes a requirement of so many barriers among the ranks; the handle is filled in when the device communicator is made. */
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t ranks, int barriers, ncclLsaBarrierHandle_t *handle,
                                             ncclDevResourceRequirements_t *requirement);

/* Addresses in a window with NCCL_WIN_COLL_SYMMETRIC, of a rank of the LSA team and of one of the communicator. */
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int rank, void **out);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **out);
/* Refused: multicast memory is off. */
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **out);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, ncclMultimemHandle_t handle, void **out);

ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t ranks, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t ranks, int rank);

/* ---- host and device: sets of ranks ---- */

/* How far the rank is from the calling one in the communicator. */
RONDO_NCCL_INLINE int rondo_nccl_distance(ncclTeam_t ranks, int rank)
{
    return (rank - ranks.rank) * ranks.stride;
}

/* b's rank as a rank of a. Only meaningful for one that is in both. */
RONDO_NCCL_INLINE int ncclTeamRankToTeam(ncclTeam_t a, ncclTeam_t b, int rank)
{
    return a.rank + rondo_nccl_distance(b, rank) / a.stride;
}

/* Whether b's rank is in a. */
RONDO_NCCL_INLINE bool ncclTeamRankIsMember(ncclTeam_t a, ncclTeam_t b, int rank)
{
    const int found = ncclTeamRankToTeam(a, b, rank);
    return rondo_nccl_distance(b, rank) % a.stride == 0 && found >= 0 && found < a.nRanks;
}

/* Neighbours in groups of so many, the caller's group. */
RONDO_NCCL_INLINE ncclTeam_t ncclTeamInnerFactor(ncclTeam_t parent, int size)
{
    ncclTeam_t ranks = {size, parent.rank % size, parent.stride};
    return ranks;
}

/* Those with the caller's place in such groups. */
RONDO_NCCL_INLINE ncclTeam_t ncclTeamOuterFactor(ncclTeam_t parent, int size)
{
    ncclTeam_t ranks = {parent.nRanks / size, parent.rank / size, parent.stride * size};
    return ranks;
}

/* The index'th rank of the parent that is not in the subset; -1 if there are not so many. */
RONDO_NCCL_INLINE int ncclTeamRankInDifference(ncclTeam_t parent, ncclTeam_t subset, int index)
{
    for (int rank = 0; rank < parent.nRanks; rank++)
        if (!ncclTeamRankIsMember(subset, parent, rank) && index-- == 0)
            return rank;
    return -1;
}

RONDO_NCCL_INLINE size_t ncclGetResourceBufferOffset(ncclDevResourceHandle_t handle)
{
    return (size_t) handle * RONDO_NCCL_RESOURCE_UNIT;
}

#ifdef __cplusplus
}

struct ncclTeamTagWorld {
};
struct ncclTeamTagLsa {
};
struct ncclTeamTagRail {
};
#endif

/* ---- kernels ---- */

#ifdef __CUDACC__
#include <cuda/atomic>

#define RONDO_NCCL_DEVICE __device__ __forceinline__

RONDO_NCCL_DEVICE ncclTeam ncclTeamWorld(const ncclDevComm &comm)
{
    return {comm.nRanks, comm.rank, 1};
}
RONDO_NCCL_DEVICE ncclTeam ncclTeamLsa(const ncclDevComm &comm)
{
    return {comm.lsaSize, comm.lsaRank, 1};
}
RONDO_NCCL_DEVICE ncclTeam ncclTeamRail(const ncclDevComm &comm)
{
    return {comm.nRanks / comm.lsaSize, comm.rank / comm.lsaSize, comm.lsaSize};
}
RONDO_NCCL_DEVICE int ncclTeamRankToWorld(const ncclDevComm &comm, ncclTeam ranks, int rank)
{
    return comm.rank + rondo_nccl_distance(ranks, rank);
}
RONDO_NCCL_DEVICE int ncclTeamRankToLsa(const ncclDevComm &comm, ncclTeam ranks, int rank)
{
    return comm.lsaRank + rondo_nccl_distance(ranks, rank);
}

/* ---- kernels: addresses. A rank outside the LSA team has none: NULL and an offset. ---- */

RONDO_NCCL_DEVICE void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, int peer)
{
    return window->bases[peer] + offset;
}
RONDO_NCCL_DEVICE void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, ncclTeam ranks, int peer)
{
    return ncclGetPeerPointer(window, offset, window->rank + rondo_nccl_distance(ranks, peer));
}
RONDO_NCCL_DEVICE void *ncclGetLsaPointer(ncclWindow_t window, size_t offset, int peer)
{
    return ncclGetPeerPointer(window, offset, window->rank - window->lsaRank + peer);
}
RONDO_NCCL_DEVICE void *ncclGetLocalPointer(ncclWindow_t window, size_t offset)
{
    return ncclGetPeerPointer(window, offset, window->rank);
}
RONDO_NCCL_DEVICE void *ncclGetMultimemPointer(ncclWindow_t, size_t, ncclMultimemHandle)
{
    return nullptr; /* there is no multicast memory */
}
RONDO_NCCL_DEVICE void *ncclGetLsaMultimemPointer(ncclWindow_t, size_t, const ncclDevComm &)
{
    return nullptr;
}
RONDO_NCCL_DEVICE void *ncclGetResourceBufferLocalPointer(const ncclDevComm &comm, ncclDevResourceHandle handle)
{
    return ncclGetLocalPointer(comm.resourceWindow, ncclGetResourceBufferOffset(handle));
}
RONDO_NCCL_DEVICE void *ncclGetResourceBufferLsaPointer(const ncclDevComm &comm, ncclDevResourceHandle handle, int peer)
{
    return ncclGetLsaPointer(comm.resourceWindow, ncclGetResourceBufferOffset(handle), peer);
}
RONDO_NCCL_DEVICE void *ncclGetResourceBufferPeerPointer(const ncclDevComm &comm, ncclDevResourceHandle handle, ncclTeam ranks,
                                                         int peer)
{
    return ncclGetPeerPointer(comm.resourceWindow, ncclGetResourceBufferOffset(handle), ranks, peer);
}

/* An element of a window, on every rank. */
template <typename T> struct ncclSymPtr {
    using ElementType = T;
    ncclWindow_t window;
    size_t offset;
    RONDO_NCCL_INLINE constexpr ncclSymPtr(ncclWindow_t of = nullptr, size_t bytes = 0) : window(of), offset(bytes)
    {
    }
    template <typename U> RONDO_NCCL_INLINE operator ncclSymPtr<U>() const
    {
        return {window, offset};
    }
    template <typename Integer> RONDO_NCCL_INLINE ncclSymPtr &operator+=(Integer elements)
    {
        offset += (size_t) elements * sizeof(T);
        return *this;
    }
    template <typename Integer> RONDO_NCCL_INLINE ncclSymPtr &operator-=(Integer elements)
    {
        offset -= (size_t) elements * sizeof(T);
        return *this;
    }
    RONDO_NCCL_DEVICE T *localPtr() const
    {
        return (T *) ncclGetLocalPointer(window, offset);
    }
    RONDO_NCCL_DEVICE T *lsaPtr(int peer) const
    {
        return (T *) ncclGetLsaPointer(window, offset, peer);
    }
    RONDO_NCCL_DEVICE T *peerPtr(int peer) const
    {
        return (T *) ncclGetPeerPointer(window, offset, peer);
    }
    RONDO_NCCL_DEVICE T *peerPtr(ncclTeam ranks, int peer) const
    {
        return (T *) ncclGetPeerPointer(window, offset, ranks, peer);
    }
};
template <typename T, typename Integer> RONDO_NCCL_INLINE ncclSymPtr<T> operator+(ncclSymPtr<T> pointer, Integer elements)
{
    return pointer += elements;
}
template <typename T, typename Integer> RONDO_NCCL_INLINE ncclSymPtr<T> operator-(ncclSymPtr<T> pointer, Integer elements)
{
    return pointer -= elements;
}
template <typename T> RONDO_NCCL_INLINE ptrdiff_t operator-(ncclSymPtr<T> a, ncclSymPtr<T> b)
{
    return ((ptrdiff_t) a.offset - (ptrdiff_t) b.offset) / (ptrdiff_t) sizeof(T);
}
template <typename T> RONDO_NCCL_INLINE bool operator==(ncclSymPtr<T> a, ncclSymPtr<T> b)
{
    return a.window == b.window && a.offset == b.offset;
}
template <typename T> RONDO_NCCL_INLINE bool operator!=(ncclSymPtr<T> a, ncclSymPtr<T> b)
{
    return !(a == b);
}
RONDO_NCCL_DEVICE ncclSymPtr<char> ncclGetResourceBuffer(const ncclDevComm &comm, ncclDevResourceHandle handle)
{
    return {comm.resourceWindow, ncclGetResourceBufferOffset(handle)};
}

/* ---- kernels: threads that work together ---- */

/* Aligned threads of a warp, a power of two of them. */
template <int threads> struct ncclCoopTile {
    static_assert(threads > 0 && threads <= 32 && (threads & (threads - 1)) == 0, "a power of two of at most 32 threads");
    RONDO_NCCL_DEVICE int lane() const
    {
        int number;
        asm("mov.u32 %0, %%laneid;" : "=r"(number));
        return number;
    }
    RONDO_NCCL_DEVICE int thread_rank() const
    {
        return lane() % threads;
    }
    RONDO_NCCL_DEVICE constexpr int size() const
    {
        return threads;
    }
    RONDO_NCCL_DEVICE constexpr int num_threads() const
    {
        return threads;
    }
    RONDO_NCCL_DEVICE uint32_t laneMask() const
    {
        return (0xffffffffu >> (32 - threads)) << (lane() - lane() % threads);
    }
    RONDO_NCCL_DEVICE void sync()
    {
        if (threads > 1)
            __syncwarp(laneMask());
    }
};
typedef ncclCoopTile<1> ncclCoopThread;
typedef ncclCoopTile<32> ncclCoopWarp;

/* Any threads of a warp. */
struct ncclCoopLanes {
    uint32_t lmask;
    RONDO_NCCL_DEVICE constexpr ncclCoopLanes(uint32_t mask = 0xffffffffu) : lmask(mask)
    {
    }
    RONDO_NCCL_DEVICE int thread_rank() const
    {
        return __popc(lmask & ((1u << ncclCoopWarp().lane()) - 1));
    }
    RONDO_NCCL_DEVICE int size() const
    {
        return __popc(lmask);
    }
    RONDO_NCCL_DEVICE int num_threads() const
    {
        return size();
    }
    RONDO_NCCL_DEVICE void sync()
    {
        __syncwarp(lmask);
    }
};

/* Neighbouring warps, with a number below 15 that no others of the block have. */
struct ncclCoopWarpSpan {
    uint32_t warp0 : 8, nWarps : 8, id : 8;
    RONDO_NCCL_DEVICE constexpr ncclCoopWarpSpan(int first, int warps, int number)
        : warp0((uint32_t) first), nWarps((uint32_t) warps), id((uint32_t) number)
    {
    }
    RONDO_NCCL_DEVICE int thread_rank() const
    {
        return (int) (threadIdx.x - 32 * warp0);
    }
    RONDO_NCCL_DEVICE int size() const
    {
        return (int) (32 * nWarps);
    }
    RONDO_NCCL_DEVICE int num_threads() const
    {
        return size();
    }
    RONDO_NCCL_DEVICE void sync()
    {
        asm volatile("barrier.sync %0, %1;" ::"r"(1 + (uint32_t) id), "r"(32 * (uint32_t) nWarps) : "memory");
    }
};

/* A block, of one dimension. */
struct ncclCoopCta {
    RONDO_NCCL_DEVICE int thread_rank() const
    {
        return (int) threadIdx.x;
    }
    RONDO_NCCL_DEVICE int size() const
    {
        return (int) blockDim.x;
    }
    RONDO_NCCL_DEVICE int num_threads() const
    {
        return size();
    }
    RONDO_NCCL_DEVICE void sync()
    {
        __syncthreads();
    }
};

RONDO_NCCL_DEVICE ncclCoopLanes ncclCoopCoalesced()
{
    return ncclCoopLanes(__activemask());
}

/* ---- kernels: barriers of the LSA team ---- */

/*
 * A barrier among the threads that make a session of the same index, one set of threads a rank. Sessions of one index follow
 * each other on a rank, in kernels of one stream for example. What threads did before they arrive is seen by those that have
 * waited, with orders that release and acquire. A kernel that waits holds its multiprocessors: the kernels of all ranks have to
 * run at once, so ranks that share a GPU keep their grids small.
 *
 * Each rank has, for each barrier, an epoch (how many it has passed) and a word for each rank, where that stores the epoch that
 * it has arrived at. A rank may be one epoch ahead, never two, because it waits for all.
 */
template <typename Coop> struct ncclLsaBarrierSession {
    RONDO_NCCL_DEVICE ncclLsaBarrierSession(Coop threads, const ncclDevComm &of, ncclTeam among, ncclLsaBarrierHandle barriers,
                                            uint32_t index, bool = false, ncclMultimemHandle = {})
        : coop(threads), comm(of), ranks(among), handle(barriers), place((size_t) index * (size_t) (1 + among.nRanks))
    {
        epoch = *words_of(ranks.rank);
    }
    RONDO_NCCL_DEVICE ncclLsaBarrierSession(Coop threads, const ncclDevComm &of, ncclTeamTagLsa, uint32_t index, bool = false)
        : ncclLsaBarrierSession(threads, of, ncclTeamLsa(of), of.lsaBarrier, index)
    {
    }
    ncclLsaBarrierSession(const ncclLsaBarrierSession &) = delete;
    /* All threads of the session have read the epoch before the first of them gets here: they have synchronized since. */
    RONDO_NCCL_DEVICE ~ncclLsaBarrierSession()
    {
        coop.sync();
        if (coop.thread_rank() == 0)
            *words_of(ranks.rank) = epoch;
        coop.sync();
    }

    RONDO_NCCL_DEVICE void arrive(Coop, cuda::memory_order order)
    {
        coop.sync();
        for (int peer = coop.thread_rank(); peer < ranks.nRanks; peer += coop.size())
            if (peer != ranks.rank) {
                cuda::atomic_ref<uint32_t, cuda::thread_scope_system> word(words_of(peer)[1 + ranks.rank]);
                if (order == cuda::memory_order_relaxed || order == cuda::memory_order_acquire)
                    word.store(epoch + 1, cuda::memory_order_relaxed);
                else
                    word.store(epoch + 1, cuda::memory_order_release);
            }
    }
    RONDO_NCCL_DEVICE void wait(Coop, cuda::memory_order order)
    {
        wait_for_all(order, 0);
        epoch++;
        coop.sync();
    }
    RONDO_NCCL_DEVICE void sync(Coop threads, cuda::memory_order order)
    {
        arrive(threads, order);
        wait(threads, order);
    }
    /* A thread whose peers have not come after so many cycles gets ncclTimeout, which all threads of the session take as the
     * end of this barrier: it cannot be used any more. */
    RONDO_NCCL_DEVICE ncclResult_t wait(Coop, cuda::memory_order order, uint64_t cycles)
    {
        const bool come = wait_for_all(order, cycles > 0 ? cycles : 1);
        epoch++;
        coop.sync();
        return come ? ncclSuccess : (ncclResult_t) 8; /* ncclTimeout, which older headers do not have */
    }
    RONDO_NCCL_DEVICE ncclResult_t sync(Coop threads, cuda::memory_order order, uint64_t cycles)
    {
        arrive(threads, order);
        return wait(threads, order, cycles);
    }

  private:
    Coop coop;
    const ncclDevComm &comm;
    ncclTeam ranks;
    ncclLsaBarrierHandle handle;
    size_t place;
    uint32_t epoch;

    RONDO_NCCL_DEVICE uint32_t *words_of(int rank) const
    {
        return (uint32_t *) ncclGetResourceBufferPeerPointer(comm, handle.bufHandle, ranks, rank) + place;
    }
    /* cycles 0: without a bound, but for the communicator's end. */
    RONDO_NCCL_DEVICE bool wait_for_all(cuda::memory_order order, uint64_t cycles)
    {
        const long long start = clock64();
        for (int peer = coop.thread_rank(); peer < ranks.nRanks; peer += coop.size()) {
            cuda::atomic_ref<uint32_t, cuda::thread_scope_system> word(words_of(ranks.rank)[1 + peer]);
            for (uint32_t polls = 1; peer != ranks.rank; polls++) {
                if ((int32_t) (word.load(cuda::memory_order_relaxed) - (epoch + 1)) >= 0)
                    break;
                if (cycles > 0 && (uint64_t) (clock64() - start) >= cycles)
                    return false;
                if (polls % 1024 == 0 && *(const volatile uint32_t *) comm.abortFlag != 0)
                    return false;
            }
        }
        if (order != cuda::memory_order_relaxed && order != cuda::memory_order_release)
            cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_system);
        return true;
    }
};

/* ---- kernels: networks, which they do not drive here ---- */

struct ncclGin {
    template <typename... Arguments> __device__ ncclGin(Arguments...)
    {
        static_assert(sizeof...(Arguments) > 1000, "GIN is not offered by Rondo: kernels drive no network");
    }
};

/* A barrier of all ranks, where they are one LSA team. */
template <typename Coop> struct ncclBarrierSession : ncclLsaBarrierSession<Coop> {
    RONDO_NCCL_DEVICE ncclBarrierSession(Coop threads, ncclTeamTagLsa, const ncclDevComm &of, uint32_t index, bool = false)
        : ncclLsaBarrierSession<Coop>(threads, of, ncclTeamLsa(of), of.hybridLsaBarrier, index)
    {
    }
    RONDO_NCCL_DEVICE ncclLsaBarrierSession<Coop> &lsaBarrier()
    {
        return *this;
    }
};

#undef RONDO_NCCL_DEVICE
#endif
#undef RONDO_NCCL_INLINE
#endif
