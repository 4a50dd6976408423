/* Codes, messages and logging, where NCCL's programs look for them. */
#include "compat/nccl/shim.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MESSAGE_BYTES 1024
#define TIMEOUT       8 /* ncclTimeout, which headers before 2.30 do not have */

/* NCCL keeps one last error a process. */
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[MESSAGE_BYTES];

static int debug_level(void)
{
    static const char *const names[] = {"VERSION", "WARN", "INFO", "ABORT", "TRACE"};
    const char *wanted = getenv("NCCL_DEBUG");
    for (int i = 0; wanted != NULL && i < (int) (sizeof(names) / sizeof(names[0])); i++)
        if (strcasecmp(wanted, names[i]) == 0)
            return i + 1;
    return 0;
}

int rondo_nccl_is_set(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0';
}

/* RONDO_LOG, or its default where it is none of its words, which rondo_init refuses. */
static int rondo_level(void)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *wanted = getenv("RONDO_LOG");
    for (int i = 0; wanted != NULL && i < (int) (sizeof(names) / sizeof(names[0])); i++)
        if (strcmp(wanted, names[i]) == 0)
            return i;
    return 1;
}

void rondo_nccl_log(enum rondo_nccl_log level, const char *format, ...)
{
    char line[MESSAGE_BYTES + 64];
    int wanted =
        level == RONDO_NCCL_LOG_WARN ? rondo_level() >= 1 || debug_level() >= 2 : rondo_level() >= 2 || debug_level() >= 3;
    if (!wanted)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(stderr, "rondo NCCL %s: %s\n", level == RONDO_NCCL_LOG_WARN ? "WARN" : "INFO", line);
}

ncclResult_t rondo_nccl_fail(ncclResult_t code, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&last_lock);
    memcpy(last_error, message, sizeof(last_error));
    pthread_mutex_unlock(&last_lock);
    /* Bad calls are the program's to report: RONDO_LOG=info or NCCL_DEBUG=WARN show them. */
    if (rondo_level() >= 2 || debug_level() >= 2)
        fprintf(stderr, "rondo NCCL WARN: %s\n", message);
    return code;
}

ncclResult_t rondo_nccl_code(rondo_result_t result)
{
    switch (result) {
    case RONDO_SUCCESS:
        return ncclSuccess;
    case RONDO_ERR_ARGUMENT:
    case RONDO_ERR_BUFFER:
        return ncclInvalidArgument;
    case RONDO_ERR_STATE:
    case RONDO_ERR_MISMATCH:
    case RONDO_ERR_UNSUPPORTED:
        return ncclInvalidUsage;
    case RONDO_ERR_PEER:
    case RONDO_ERR_TIMEOUT:
    case RONDO_ERR_ABORTED:
    case RONDO_ERR_REVOKED:
        return ncclRemoteError;
    case RONDO_ERR_DEVICE:
        return ncclUnhandledCudaError;
    case RONDO_ERR_MEMORY:
    case RONDO_ERR_SYSTEM:
    case RONDO_ERR_BOOTSTRAP:
    case RONDO_ERR_TRANSPORT:
        return ncclSystemError;
    default:
        return ncclInternalError;
    }
}

ncclResult_t rondo_nccl_result(rondo_result_t result, const char *function)
{
    if (result == RONDO_SUCCESS)
        return ncclSuccess;
    return rondo_nccl_fail(rondo_nccl_code(result), "%s: %s", function, rondo_last_error());
}

ncclResult_t rondo_nccl_cuda_result(cudaError_t error, const char *function, const char *what)
{
    if (error == cudaSuccess)
        return ncclSuccess;
    cudaGetLastError(); /* it is reported by our code, not to be found by the program's next look */
    return rondo_nccl_fail(ncclUnhandledCudaError, "%s: %s: %s", function, what, cudaGetErrorString(error));
}

int rondo_nccl_on_host(void)
{
    const char *device = getenv("RONDO_DEVICE");
    return device != NULL && strcmp(device, "host") == 0;
}

/* NCCL_DEBUG_FILE, with %h and %p as NCCL replaces them; standard output without it. */
static FILE *open_debug_file(void)
{
    const char *name = getenv("NCCL_DEBUG_FILE");
    char path[1024];
    size_t at = 0;
    if (name == NULL || *name == '\0' || strcmp(name, "stdout") == 0)
        return stdout;
    if (strcmp(name, "stderr") == 0)
        return stderr;
    for (; *name != '\0' && at < sizeof(path) - 256; name++) {
        if (name[0] == '%' && name[1] == 'h') {
            gethostname(path + at, 255);
            path[at + 255] = '\0';
            at += strcspn(path + at, ".");
            name++;
        } else if (name[0] == '%' && name[1] == 'p') {
            at += (size_t) snprintf(path + at, 32, "%d", (int) getpid());
            name++;
        } else {
            path[at++] = *name;
        }
    }
    path[at] = '\0';
    /* O_NONBLOCK: a FIFO that nothing reads is not waited for. */
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "a") : NULL;
    if (file == NULL && descriptor >= 0)
        close(descriptor);
    return file != NULL ? file : stdout;
}

void rondo_nccl_introduce(void)
{
    static int said;
    if (__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED) || (debug_level() < 1 && rondo_level() < 2))
        return;
    FILE *file = debug_level() >= 1 ? open_debug_file() : stderr;
    const int version = RONDO_NCCL_INTERFACE_VERSION;
    fprintf(file, "NCCL version %d.%d.%d, offered by Rondo %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100,
            RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
    fflush(file);
    if (file != stdout && file != stderr)
        fclose(file);
}

void rondo_nccl_not_offered(int *said, const char *name, const char *why)
{
    if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
        rondo_nccl_log(RONDO_NCCL_LOG_WARN, "%s is not offered: %s", name, why);
    pthread_mutex_lock(&last_lock);
    snprintf(last_error, sizeof(last_error), "%s is not offered: %s", name, why);
    pthread_mutex_unlock(&last_lock);
}

/* ---- the calls ---- */

ncclResult_t pncclGetVersion(int *version)
{
    if (version == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
    *version = RONDO_NCCL_INTERFACE_VERSION;
    return ncclSuccess;
}
NCCL_EXPORT(ncclGetVersion);

const char *pncclGetErrorString(ncclResult_t code)
{
    switch ((int) code) {
    case ncclSuccess:
        return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
        return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
        return "internal error - please report this issue to the Rondo developers";
    case ncclInvalidArgument:
        return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
        return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
        return "remote process exited or there was a network error";
    case ncclInProgress:
        return "operation in progress";
    case TIMEOUT:
        return "a call was not carried out in time";
    default:
        return "unknown result code";
    }
}
NCCL_EXPORT(ncclGetErrorString);

const char *pncclGetLastError(ncclComm_t comm)
{
    static _Thread_local char copy[MESSAGE_BYTES];
    (void) comm;
    pthread_mutex_lock(&last_lock);
    memcpy(copy, last_error, sizeof(copy));
    pthread_mutex_unlock(&last_lock);
    return copy;
}
NCCL_EXPORT(ncclGetLastError);

/* The environment is looked at whenever something is said. */
void pncclResetDebugInit(void)
{
}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
NCCL_EXPORT(ncclResetDebugInit);
#pragma GCC diagnostic pop
