/* What the library's own threads have in common: how they start (all signals blocked, small stacks), the clock by which they
 * bound their waits, random bytes, and a token by which a process recognizes itself. Relies on pthreads and getrandom(2). Any
 * thread may call any function here. */
#ifndef RONDO_LIB_BASE_THREAD_H
#define RONDO_LIB_BASE_THREAD_H

#include "rondo.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Starts function(argument) on a thread of that name (at most 15 characters) with a stack of at least so many bytes. The thread
 * blocks all signals, so none of the application's reaches it. thread NULL: detached; else the caller joins *thread.
 * RONDO_ERR_SYSTEM. */
rondo_result_t rondo_thread_start(pthread_t *thread, const char *name, size_t stack_bytes, void *(*function)(void *),
                                  void *argument);

/* Milliseconds of CLOCK_MONOTONIC, which never jumps. */
int64_t rondo_clock_ms(void);
/* Sleeps for so many milliseconds, but not past the deadline, which is of that clock. */
void rondo_clock_pause(int milliseconds, int64_t deadline);

/* Initializes a condition whose timed waits end by CLOCK_MONOTONIC, so that setting the clock neither cuts a wait short nor
 * makes it longer. The caller destroys it with pthread_cond_destroy. */
void rondo_condition_init(pthread_cond_t *condition);

/* Stores when so many seconds will have passed, 0 to 1e9, by the clock of such a condition. */
void rondo_deadline_in(struct timespec *deadline, double seconds);

/* Fills bytes with unpredictable ones, good enough for keys. Blocks until the kernel has some. RONDO_ERR_SYSTEM. */
rondo_result_t rondo_random_bytes(void *bytes, size_t count);

/* Stores bytes that are the same in all calls of a process and differ in every other process, a forked child too.
 * RONDO_ERR_SYSTEM without random bytes. */
enum { RONDO_PROCESS_TOKEN_BYTES = 16 };
rondo_result_t rondo_process_token(unsigned char token[RONDO_PROCESS_TOKEN_BYTES]);

#endif
