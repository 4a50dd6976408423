/* Error messages of the calling thread, and the log. Needs no runtime, relies on libc alone. Any thread may call any function
 * here. */
#ifndef RONDO_LIB_BASE_ERROR_H
#define RONDO_LIB_BASE_ERROR_H

#include "rondo.h"

enum rondo_log_level { RONDO_LOG_ERROR, RONDO_LOG_WARN, RONDO_LOG_INFO, RONDO_LOG_DEBUG };

/* Sets the message that rondo_last_error returns on this thread, cut to 1023 bytes, and returns code, so that `return
 * rondo_fail(...)` reads well. The arguments may quote the message before. */
rondo_result_t rondo_fail(rondo_result_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As rondo_fail with RONDO_ERR_MEMORY, for what a limit that the user has set does not admit: nothing has been done, and
 * nothing is wrong. */
rondo_result_t rondo_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether this thread's message is that of a rondo_refuse. */
int rondo_last_error_refuses(void);

/* Whether RONDO_LOG admits the level. Costs one load after the first call. */
int rondo_log_admits(enum rondo_log_level level);
/* Writes one line, at most 4095 bytes, to standard error if RONDO_LOG admits the level. rank < 0: none is known yet. */
void rondo_log(enum rondo_log_level level, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
