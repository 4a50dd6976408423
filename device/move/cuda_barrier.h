/*
 * Barriers in shared memory (PTX mbarrier, from sm_80 on), by which the threads of a block synchronize: an arrival releases,
 * and a thread that finds a phase over has acquired. A phase is over after the barrier's number of arrivals; an mbarrier shows
 * only the parity of its phase, so no thread may be two phases behind. Before sm_80 a barrier is a count of arrivals.
 */
#ifndef RONDO_DEVICE_MOVE_CUDA_BARRIER_H
#define RONDO_DEVICE_MOVE_CUDA_BARRIER_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/platform.h"

#include <stdint.h>

/* An address as instructions for shared memory take it. */
RONDO_FUNCTION uint32_t rondo_shared_address(const void *place)
{
    return (uint32_t) __cvta_generic_to_shared(place);
}

#if __CUDA_ARCH__ >= 800

/* Initializes a barrier. By one thread, before the others use it. */
RONDO_FUNCTION void rondo_barrier_begin(uint64_t *barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(rondo_shared_address(barrier)), "r"(arrivals) : "memory");
}
/* Arrives at the barrier; release. */
RONDO_FUNCTION void rondo_barrier_arrive(uint64_t *barrier)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(rondo_shared_address(barrier))
                 : "memory");
}
/* Whether the phase is over. arrivals: as given to rondo_barrier_begin. */
RONDO_FUNCTION int rondo_barrier_is_over(const uint64_t *barrier, uint32_t phase, uint32_t arrivals)
{
    uint32_t over;
    (void) arrivals;
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#else
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
#endif
                 : "=r"(over)
                 : "r"(rondo_shared_address(barrier)), "r"(phase & 1)
                 : "memory");
    return (int) over;
}

#else

RONDO_FUNCTION void rondo_barrier_begin(uint64_t *barrier, uint32_t arrivals)
{
    (void) arrivals;
    *barrier = 0;
}
RONDO_FUNCTION void rondo_barrier_arrive(uint64_t *barrier)
{
    asm volatile("red.release.cta.shared.add.u64 [%0], 1;" ::"r"(rondo_shared_address(barrier)) : "memory");
}
RONDO_FUNCTION int rondo_barrier_is_over(const uint64_t *barrier, uint32_t phase, uint32_t arrivals)
{
    uint64_t count;
    asm volatile("ld.acquire.cta.shared.u64 %0, [%1];" : "=l"(count) : "r"(rondo_shared_address(barrier)) : "memory");
    return count >= (uint64_t) (phase + 1) * arrivals;
}

#endif

/* Waits until the phase is over; acquire. */
RONDO_FUNCTION void rondo_barrier_wait(const uint64_t *barrier, uint32_t phase, uint32_t arrivals)
{
    while (!rondo_barrier_is_over(barrier, phase, arrivals))
        ;
}

#endif
