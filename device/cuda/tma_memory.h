/*
 * The shared memory of move_tma (device/cuda/move_tma.h): its words, its barriers, its cells, and bulk copies to and from the
 * cells.
 */
#ifndef RONDO_DEVICE_CUDA_TMA_MEMORY_H
#define RONDO_DEVICE_CUDA_TMA_MEMORY_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/cuda_block.h"
#include "device/abi/platform.h"
#include "device/abi/structures.h"
#include "device/move/cuda_barrier.h"

#define RONDO_TMA_REDUCERS (RONDO_TMA_THREADS - 3 * RONDO_CUDA_WARP - RONDO_CUDA_CONTROL) /* threads */
#define RONDO_TMA_RING     16 /* entries for slice operations that are planned and not finished: more than there can be */
#define RONDO_TMA_DEEP     8  /* slice operations whose stores are under way */
#define RONDO_TMA_PATIENCE                                                                                                     \
    8192 /* looks of the leader at slice operations that do not finish, until it reports: about a millisecond */

static_assert(RONDO_TMA_RING > RONDO_TMA_CELLS,
              "each slice operation has a cell, and the last place says that there are no more");
static_assert(RONDO_TMA_CELLS >= RONDO_WARP_WIDTH, "the sources of a slice operation have cells");

/* A planned slice operation, for the storer. */
struct rondo_tma_slice_op {
    uint32_t bytes;  /* 0: there are no more */
    uint32_t cells;  /* number of cells given to the slice operations up to this one */
    uint8_t cell;    /* the result's cell */
    uint8_t reduces; /* it has several sources, which are reduced first */
    uint8_t waits;   /* it needs all earlier stores */
    uint8_t send_first, sent;
    char *local;                       /* NULL: nowhere on this rank */
    char *remote[RONDO_WARP_WIDTH];    /* slots, */
    uint64_t needed[RONDO_WARP_WIDTH]; /* each of which is free when so many have been given back */
} __attribute__((aligned(16)));

/* A planned reduction, for the reducers. */
struct rondo_tma_reduce {
    uint32_t bytes; /* 0: there are no more */
    uint8_t cell;   /* of the first source; those of the others follow */
    uint8_t sources, finishes;
};

/* In shared memory, beside struct rondo_workers. */
struct rondo_tma {
    uint64_t landed[RONDO_TMA_RING];   /* barriers of slice operations of one source: the source is in its cell */
    uint64_t gathered[RONDO_TMA_RING]; /* barriers of slice operations of several sources: all are in their cells; only the
                                          loader arrives */
    uint64_t reduced[RONDO_TMA_RING];  /* barriers of the same: the result is in its cell; every reducer arrives */
    struct rondo_tma_slice_op slice_ops[RONDO_TMA_RING];
    struct rondo_tma_reduce reduces[RONDO_TMA_RING];
    uint32_t planned;  /* number of planned slice operations; written by the loader */
    uint32_t freed;    /* number of cells that are free again; written by the storer */
    uint32_t stored;   /* number of slice operations whose stores are finished; written by the storer */
    uint32_t finished; /* all stores are finished; written by the storer */
    uint32_t stop;     /* all threads have to end early; written by the leader */
    uint8_t
        waits[RONDO_WARP_INSTRUCTIONS]; /* of each instruction: an earlier one stores what it loads or stores on this rank */
    uint32_t moved[RONDO_WARP_ENDS];    /* slots of each end that have been planned; written by the loader */
    uint32_t told[RONDO_WARP_ENDS];     /* slots of each end that have been published; written by the leader */
};

/* ---- shared memory ---- */

/* Loads a word of shared memory; acquire. */
RONDO_FUNCTION uint32_t rondo_tma_look(const uint32_t *word)
{
    uint32_t value;
    asm volatile("ld.acquire.cta.shared.u32 %0, [%1];" : "=r"(value) : "r"(rondo_shared_address(word)) : "memory");
    return value;
}

/* Stores a word of shared memory; release. */
RONDO_FUNCTION void rondo_tma_say(uint32_t *word, uint32_t value)
{
    asm volatile("st.release.cta.shared.u32 [%0], %1;" ::"r"(rondo_shared_address(word)), "r"(value) : "memory");
}

/* What an end's peer has published. */
RONDO_FUNCTION uint64_t rondo_tma_seen(const struct rondo_end *end)
{
    uint64_t value;
    asm volatile("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(rondo_shared_address(&end->seen)) : "memory");
    return value;
}

/* Whether the index-th use of an array of barriers is finished. A barrier tells a phase from the next one only, so the
 * caller has waited for all earlier uses. */
RONDO_FUNCTION int rondo_tma_is_over(const uint64_t *barriers, uint32_t index, uint32_t arrivals)
{
    return rondo_barrier_is_over(&barriers[index % RONDO_TMA_RING], index / RONDO_TMA_RING, arrivals);
}

/* Arrives at a barrier and announces so many bytes of bulk copies to it. */
RONDO_FUNCTION void rondo_tma_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(rondo_shared_address(barrier)),
        "r"(bytes)
        : "memory");
}

/* ---- bulk copies, of multiples of 16 bytes ---- */

/* Begins to copy bytes to a cell; their arrival counts at the barrier. */
RONDO_FUNCTION void rondo_tma_copy_in(char *cell, const char *from, uint32_t bytes, uint64_t *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     rondo_shared_address(cell)),
                 "l"(from), "r"(bytes), "r"(rondo_shared_address(barrier))
                 : "memory");
}

/* Begins to copy a cell's bytes to global memory, in the current group. */
RONDO_FUNCTION void rondo_tma_copy_out(char *to, const char *cell, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(rondo_shared_address(cell)),
                 "r"(bytes)
                 : "memory");
}

/* Ends the current group of bulk stores. */
RONDO_FUNCTION void rondo_tma_close_group(void)
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* Waits until the cells of all groups but the last one have been read. */
RONDO_FUNCTION void rondo_tma_await_reads(void)
{
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
}

/* Waits until all groups but the last left (at most RONDO_TMA_DEEP) are finished. */
RONDO_FUNCTION void rondo_tma_await(uint32_t left)
{
#define RONDO_TMA_AWAIT(count)                                                                                                 \
    case count:                                                                                                                \
        asm volatile("cp.async.bulk.wait_group %0;" ::"n"(count) : "memory");                                                  \
        break;
    switch (left) {
        RONDO_TMA_AWAIT(0)
        RONDO_TMA_AWAIT(1)
        RONDO_TMA_AWAIT(2)
        RONDO_TMA_AWAIT(3)
        RONDO_TMA_AWAIT(4)
        RONDO_TMA_AWAIT(5)
        RONDO_TMA_AWAIT(6)
        RONDO_TMA_AWAIT(7)
        RONDO_TMA_AWAIT(RONDO_TMA_DEEP)
    }
#undef RONDO_TMA_AWAIT
}
static_assert(RONDO_TMA_DEEP == 8, "as many cases as groups");

/* Orders bulk copies after what was learnt of global memory (fence), or stored to cells (fence_cells). */
RONDO_FUNCTION void rondo_tma_fence(void)
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}
RONDO_FUNCTION void rondo_tma_fence_cells(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

#endif
