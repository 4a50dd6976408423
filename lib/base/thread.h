/* What the library's own threads have in common: how they start (all signals blocked, small stacks), the clock by which they
 * bound their waits, random bytes, and a token by which a process knows itself. */
#ifndef RONDO_LIB_BASE_THREAD_H
#define RONDO_LIB_BASE_THREAD_H

#include "rondo.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Starts function(argument) on a thread of that name (at most 15 characters) that no signal of the application reaches. thread
 * NULL: detached. */
rondo_result_t rondo_thread_start(pthread_t *thread, const char *name, size_t stack_bytes, void *(*function)(void *),
                                  void *argument);

/* Milliseconds of a clock that never jumps. */
int64_t rondo_clock_ms(void);

/* Bytes nobody can guess. */
rondo_result_t rondo_random_bytes(void *bytes, size_t count);

/* Random bytes made once a process; a forked child has its own. */
enum { RONDO_PROCESS_TOKEN_BYTES = 16 };
rondo_result_t rondo_process_token(unsigned char token[RONDO_PROCESS_TOKEN_BYTES]);

#endif
