/* Sleeping on a 32-bit word, as futex(2) does: within one process, and never longer than asked. And a lock made of it. Relies
 * on Linux. Any thread may call any function here. */
#ifndef RONDO_LIB_BASE_FUTEX_H
#define RONDO_LIB_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word is expected. Returns when woken, when *word differs, after the time, or for no reason: the caller looks at
 * the word again. */
static inline void rondo_futex_wait(const uint32_t *word, uint32_t expected, uint64_t nanoseconds)
{
    struct timespec limit = {(time_t) (nanoseconds / 1000000000u), (long) (nanoseconds % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, NULL, 0);
}

/* Wakes at most so many of the threads that sleep on the word. */
static inline void rondo_futex_wake(const uint32_t *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/*
 * Increments *word and wakes all threads in rondo_event_sleep on it. Makes no system call if *sleepers is 0.
 *
 * No wake-up is lost: the signalling thread increments *word, then reads *sleepers; the sleeping thread increments *sleepers,
 * then reads *word. All four are sequentially consistent, so at least one thread sees the other's increment: either the signal
 * makes the system call, or the sleeper finds the word changed and does not sleep. If the word changes between that look and
 * futex(2), the kernel compares it again under its own lock.
 */
static inline void rondo_event_signal(uint32_t *word, const uint32_t *sleepers)
{
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(sleepers, __ATOMIC_SEQ_CST) != 0)
        rondo_futex_wake(word, INT32_MAX);
}

/* Sleeps, at most so long, unless *word is not `seen` any more. seen: what the caller read before it looked for work. Returns
 * for no reason, too. */
static inline void rondo_event_sleep(uint32_t *word, uint32_t seen, uint32_t *sleepers, uint64_t nanoseconds)
{
    __atomic_fetch_add(sleepers, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
        rondo_futex_wait(word, seen, nanoseconds);
    __atomic_fetch_sub(sleepers, 1, __ATOMIC_SEQ_CST);
}

/* A lock whose end is a plain store. A mutex ends with a locked instruction, which waits until all stores before it have
 * reached the cache: in a small collective those to slots, whose lines come from other cores. All bytes 0: free. */
struct rondo_lock {
    uint32_t held, sleepers;
};

#define RONDO_LOCK_LOOKS    32     /* before a thread sleeps */
#define RONDO_LOCK_SLEEP_NS 200000 /* between two looks of one that sleeps */

/* Takes the lock if it is free. Acquire pairs with the release in rondo_lock_drop. */
static inline int rondo_lock_try(struct rondo_lock *lock)
{
    uint32_t is_free = 0;
    return __atomic_compare_exchange_n(&lock->held, &is_free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Takes a lock that another thread held a moment ago. */
static __attribute__((noinline, unused)) void rondo_lock_await(struct rondo_lock *lock)
{
    for (uint32_t looks = 1;; looks++) {
        if (__atomic_load_n(&lock->held, __ATOMIC_RELAXED) == 0 && rondo_lock_try(lock))
            return;
        if (looks % RONDO_LOCK_LOOKS == 0) {
            __atomic_fetch_add(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
            rondo_futex_wait(&lock->held, 1, RONDO_LOCK_SLEEP_NS);
            __atomic_fetch_sub(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

static inline void rondo_lock_take(struct rondo_lock *lock)
{
    if (!rondo_lock_try(lock))
        rondo_lock_await(lock);
}

/* The processor may look at sleepers before its store to held is visible, so a thread that goes to sleep in that moment may
 * miss the wake-up: it has counted itself too late to be seen, and the kernel has still found the lock held. Its nap is
 * bounded. */
static inline void rondo_lock_drop(struct rondo_lock *lock)
{
    __atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
    if (__atomic_load_n(&lock->sleepers, __ATOMIC_RELAXED) != 0)
        rondo_futex_wake(&lock->held, 1);
}

#endif
