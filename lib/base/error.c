/* See lib/base/error.h. */
#include "lib/base/error.h"

#include "lib/base/environment.h"
#include "lib/base/signals.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MESSAGE_BYTES 1024

static _Thread_local char last_error[MESSAGE_BYTES];
static _Thread_local int refuses; /* last_error is a rondo_refuse's */

const char *rondo_strerror(int code)
{
    switch ((rondo_result_t) code) {
    case RONDO_SUCCESS:
        return "success";
    case RONDO_ERR_ARGUMENT:
        return "invalid argument";
    case RONDO_ERR_BUFFER:
        return "invalid buffer";
    case RONDO_ERR_STATE:
        return "wrong state";
    case RONDO_ERR_MEMORY:
        return "out of memory or over the memory budget";
    case RONDO_ERR_SYSTEM:
        return "system call failed";
    case RONDO_ERR_BOOTSTRAP:
        return "ranks could not meet";
    case RONDO_ERR_TRANSPORT:
        return "no usable transport";
    case RONDO_ERR_PEER:
        return "a peer died or left";
    case RONDO_ERR_TIMEOUT:
        return "stuck beyond the timeout";
    case RONDO_ERR_MISMATCH:
        return "ranks disagree about a call";
    case RONDO_ERR_ABORTED:
        return "communicator aborted";
    case RONDO_ERR_UNSUPPORTED:
        return "not supported";
    case RONDO_ERR_DEVICE:
        return "device error";
    case RONDO_ERR_INTERNAL:
        return "internal error";
    case RONDO_ERR_REVOKED:
        return "communicator revoked";
    }
    return "unknown error code";
}

const char *rondo_last_error(void)
{
    return last_error;
}

/* The arguments may quote last_error itself. */
static void set_last_error(const char *format, va_list arguments)
{
    char message[MESSAGE_BYTES];
    vsnprintf(message, sizeof(message), format, arguments);
    memcpy(last_error, message, sizeof(message));
}

rondo_result_t rondo_fail(rondo_result_t code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_last_error(format, arguments);
    va_end(arguments);
    refuses = 0;
    return code;
}

rondo_result_t rondo_refuse(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_last_error(format, arguments);
    va_end(arguments);
    refuses = 1;
    return RONDO_ERR_MEMORY;
}

int rondo_last_error_refuses(void)
{
    return refuses;
}

/* RONDO_LOG is read once a process: by each thread that comes before the first result is stored, with the same result. Its
 * words are the levels; a wrong one, which rondo_init refuses, counts as unset here. */
int rondo_log_admits(enum rondo_log_level level)
{
    static int most = -1;
    int admitted = __atomic_load_n(&most, __ATOMIC_RELAXED);
    if (admitted < 0) {
        admitted = rondo_environment_choice_or_default("RONDO_LOG");
        __atomic_store_n(&most, admitted, __ATOMIC_RELAXED);
    }
    return (int) level <= admitted;
}

void rondo_log(enum rondo_log_level level, int rank, const char *format, ...)
{
    static const char *const labels[] = {"ERROR", "WARN", "INFO", "DEBUG"};
    if (!rondo_log_admits(level))
        return;
    char line[4096], prefix[64] = "";
    if (rank >= 0)
        snprintf(prefix, sizeof(prefix), " rank %d", rank);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    struct rondo_held_signals held; /* standard error may be a pipe that nothing reads, or a file at its limit */
    rondo_signals_hold(&held);
    fprintf(stderr, "rondo%s %s: %s\n", prefix, labels[level], line);
    rondo_signals_release(&held);
}
