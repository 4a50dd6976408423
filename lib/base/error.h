/* Error messages of the calling thread, and the log. The only mutable state of the library that is not owned by a runtime. */
#ifndef RONDO_LIB_BASE_ERROR_H
#define RONDO_LIB_BASE_ERROR_H

#include "rondo.h"

enum rondo_log_level { RONDO_LOG_ERROR, RONDO_LOG_WARN, RONDO_LOG_INFO, RONDO_LOG_DEBUG };

/* Makes the message rondo_last_error() returns on this thread, and returns code, so that `return rondo_fail(...)` reads well.
 */
rondo_result_t rondo_fail(rondo_result_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether RONDO_LOG admits the level; cheap. */
int rondo_log_admits(enum rondo_log_level level);
/* Writes one line to standard error if RONDO_LOG admits the level. rank < 0: none known yet. */
void rondo_log(enum rondo_log_level level, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
