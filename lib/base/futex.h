/* Sleeping on a word, as futex(2) does: within one process, and never longer than asked. */
#ifndef RONDO_LIB_BASE_FUTEX_H
#define RONDO_LIB_BASE_FUTEX_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns when woken, when *word is not expected any more, after the time, or for no reason: look again. */
static inline void rondo_futex_wait(const uint32_t *word, uint32_t expected, uint64_t nanoseconds)
{
    struct timespec limit = {(time_t) (nanoseconds / 1000000000u), (long) (nanoseconds % 1000000000u)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &limit, NULL, 0);
}

static inline void rondo_futex_wake(const uint32_t *word, int threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

/* Bumps the word and wakes everybody who sleeps on it; no system call when nobody does. sleepers is raised by a sleeper before
 * it looks at the word for the last time, so (both sequentially consistent) one of the two sees the other. */
static inline void rondo_event_signal(uint32_t *word, const uint32_t *sleepers)
{
    __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(sleepers, __ATOMIC_SEQ_CST) != 0)
        rondo_futex_wake(word, INT32_MAX);
}

/* Sleeps unless the word has moved on from seen, at most so long. */
static inline void rondo_event_sleep(uint32_t *word, uint32_t seen, uint32_t *sleepers, uint64_t nanoseconds)
{
    __atomic_fetch_add(sleepers, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == seen)
        rondo_futex_wait(word, seen, nanoseconds);
    __atomic_fetch_sub(sleepers, 1, __ATOMIC_SEQ_CST);
}

#endif
