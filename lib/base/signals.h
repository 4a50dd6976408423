/*
 * Holding back the signals that a write may raise: SIGPIPE (nothing reads the pipe) and SIGXFSZ (the limit of file sizes). By
 * default each ends the process; a library must get an error instead, and must change no handler of the program. Relies on the
 * fact that the kernel sends both to the thread that writes.
 */
#ifndef RONDO_LIB_BASE_SIGNALS_H
#define RONDO_LIB_BASE_SIGNALS_H

#include <signal.h>

struct rondo_held_signals {
    sigset_t before, pending; /* the thread's mask, and what was pending */
};

/* Blocks both signals in the calling thread. */
void rondo_signals_hold(struct rondo_held_signals *held);
/* Discards those that came since rondo_signals_hold, and restores the thread's mask. Keeps errno. */
void rondo_signals_release(const struct rondo_held_signals *held);

#endif
