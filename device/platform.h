/*
 * What the single-source engine and daemon need of the machine they run on: memory ordering, agreement of a block's threads,
 * relaxation of spins, a clock. Host: C11 with GCC's atomic builtins (known to the thread sanitizer). A CUDA section goes
 * beside it; nothing else in device/ may depend on which of the two it is.
 */
#ifndef RONDO_DEVICE_PLATFORM_H
#define RONDO_DEVICE_PLATFORM_H

#include "qualifiers.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

/* Acquire and release at the scope of everything that can reach the word: other processes, other devices. */
RONDO_FUNCTION uint64_t rondo_load_acquire(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
RONDO_FUNCTION uint64_t rondo_load_relaxed(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}
RONDO_FUNCTION void rondo_store_release(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
RONDO_FUNCTION void rondo_store_relaxed(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}
RONDO_FUNCTION uint32_t rondo_load_acquire32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
RONDO_FUNCTION uint32_t rondo_load_relaxed32(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}
RONDO_FUNCTION void rondo_store_release32(uint32_t *word, uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Read-modify-write on words of the device's own memory only (facts: a GPU's atomics on host memory are not atomic). */
RONDO_FUNCTION uint64_t rondo_fetch_add(uint64_t *word, uint64_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
RONDO_FUNCTION uint32_t rondo_fetch_add32(uint32_t *word, uint32_t value)
{
    return __atomic_fetch_add(word, value, __ATOMIC_ACQ_REL);
}
RONDO_FUNCTION int rondo_exchange_if(uint64_t *word, uint64_t expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
/* The fence of a Dekker-like handshake in which both sides pass through the same word: of two such read-modify-writes one comes
 * later in the word's modification order, and it sees all that its predecessor's side wrote before (release/acquire). */
RONDO_FUNCTION void rondo_fence(uint64_t *shared_word)
{
    __atomic_fetch_add(shared_word, 0, __ATOMIC_SEQ_CST);
}

/* A counter with one writer that others may read at any time. */
RONDO_FUNCTION void rondo_count(uint64_t *counter, uint64_t more)
{
    rondo_store_relaxed(counter, rondo_load_relaxed(counter) + more);
}

/* Called between two polls of a wait. Every so often the core is given away (returns 1): two cores may have to carry many
 * ranks, and the rank waited for may be the one that is not running. */
RONDO_FUNCTION int rondo_relax(uint64_t polls, uint32_t yield_mask)
{
    if ((polls & yield_mask) == yield_mask) {
        sched_yield();
        return 1;
    }
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
    return 0;
}

RONDO_FUNCTION uint64_t rondo_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

#endif
