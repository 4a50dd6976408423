/* See lib/base/signals.h. */
#include "lib/base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static const int signals[] = {SIGPIPE, SIGXFSZ};
#define SIGNALS (sizeof(signals) / sizeof(signals[0]))

void rondo_signals_hold(struct rondo_held_signals *held)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&set, signals[i]);
    sigpending(&held->pending); /* first: what comes once they are blocked is discarded */
    pthread_sigmask(SIG_BLOCK, &set, &held->before);
}

void rondo_signals_release(const struct rondo_held_signals *held)
{
    static const struct timespec at_once = {0, 0};
    const int error = errno;
    sigset_t pending, came;
    int any = 0;
    sigemptyset(&came);
    sigpending(&pending);
    for (size_t i = 0; i < SIGNALS; i++)
        if (sigismember(&pending, signals[i]) == 1 && sigismember(&held->pending, signals[i]) == 0) {
            sigaddset(&came, signals[i]);
            any = 1;
        }
    while (any && (sigtimedwait(&came, NULL, &at_once) >= 0 || errno == EINTR))
        ;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = error;
}
