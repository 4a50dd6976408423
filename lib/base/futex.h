/* Sleeping on a 32-bit word, as futex(2) does: within one process, and never longer than asked. Relies on Linux. Any thread may
 * call any function here. */
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

#endif
