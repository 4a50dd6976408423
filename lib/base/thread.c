/* See lib/base/thread.h. The token's random part is made once a process and never changes afterwards. */
#include "lib/base/thread.h"

#include "lib/base/error.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

rondo_result_t rondo_thread_start(pthread_t *thread, const char *name, size_t stack_bytes, void *(*function)(void *),
                                  void *argument)
{
    pthread_attr_t attributes;
    pthread_t started;
    sigset_t all, before;
    if (stack_bytes < (size_t) PTHREAD_STACK_MIN)
        stack_bytes = (size_t) PTHREAD_STACK_MIN;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "pthread_attr_init: %s", strerror(error));
    pthread_attr_setstacksize(&attributes, stack_bytes);
    if (thread == NULL)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    /* A new thread inherits the mask of the one that starts it. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&started, &attributes, function, argument);
    /* A detached thread may be gone by now, and its name with it. */
    if (error == 0 && thread != NULL)
        pthread_setname_np(started, name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "cannot start the thread %s: %s", name, strerror(error));
    if (thread != NULL)
        *thread = started;
    return RONDO_SUCCESS;
}

int64_t rondo_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void rondo_clock_pause(int milliseconds, int64_t deadline)
{
    int64_t left = deadline - rondo_clock_ms();
    if (left < milliseconds)
        milliseconds = left > 0 ? (int) left : 0;
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&pause, NULL);
}

void rondo_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

void rondo_deadline_in(struct timespec *deadline, double seconds)
{
    clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += (time_t) seconds;
    deadline->tv_nsec += (long) ((seconds - (double) (time_t) seconds) * 1e9);
    if (deadline->tv_nsec >= 1000000000) {
        deadline->tv_sec++;
        deadline->tv_nsec -= 1000000000;
    }
}

rondo_result_t rondo_random_bytes(void *bytes, size_t count)
{
    unsigned char *to = bytes;
    while (count > 0) {
        ssize_t got = getrandom(to, count, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return rondo_fail(RONDO_ERR_SYSTEM, "getrandom: %s", strerror(errno));
        to += got;
        count -= (size_t) got;
    }
    return RONDO_SUCCESS;
}

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char process_random[RONDO_PROCESS_TOKEN_BYTES - sizeof(int32_t)];
static int process_random_made;

rondo_result_t rondo_process_token(unsigned char token[RONDO_PROCESS_TOKEN_BYTES])
{
    pthread_mutex_lock(&process_lock);
    rondo_result_t result = RONDO_SUCCESS;
    if (!process_random_made)
        result = rondo_random_bytes(process_random, sizeof(process_random));
    process_random_made = result == RONDO_SUCCESS;
    pthread_mutex_unlock(&process_lock);
    if (result != RONDO_SUCCESS)
        return result;
    /* A forked child inherits the random part but not the process id. */
    int32_t process = (int32_t) getpid();
    memcpy(token, process_random, sizeof(process_random));
    memcpy(token + sizeof(process_random), &process, sizeof(process));
    return RONDO_SUCCESS;
}
