/*
 * The report signal (lib/diagnostics/hang_signal.h). A signal belongs to the process and not to a runtime, so the state here is
 * the process's: a counter that the handler increments, and the previous handler.
 */
#include "lib/diagnostics/hang_signal.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"

#include <pthread.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int watchers, caught_signal;
static struct sigaction previous; /* not written while the handler is installed */
static uint32_t came, told;       /* atomic; lock-free, so the handler may use them */

static void handle(int number, siginfo_t *info, void *context)
{
    __atomic_fetch_add(&came, 1, __ATOMIC_RELAXED);
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(number, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(number);
}

rondo_result_t rondo_hang_signal_watch(int *watched)
{
    int64_t value;
    *watched = 0;
    if (!rondo_environment_is_set("RONDO_REPORT_SIGNAL"))
        return RONDO_SUCCESS;
    rondo_result_t result = rondo_environment_integer("RONDO_REPORT_SIGNAL", &value);
    if (result != RONDO_SUCCESS)
        return result;
    int number = (int) value;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&lock);
    if (watchers == 0) {
        caught_signal = number;
        sigaction(number, NULL, &previous);
        if (sigaction(number, &action, NULL) != 0)
            result = rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_REPORT_SIGNAL: signal %d cannot be caught", number);
    }
    *watched = result == RONDO_SUCCESS;
    watchers += *watched;
    pthread_mutex_unlock(&lock);
    return result;
}

void rondo_hang_signal_ignore(void)
{
    pthread_mutex_lock(&lock);
    if (--watchers == 0)
        sigaction(caught_signal, &previous, NULL);
    pthread_mutex_unlock(&lock);
}

/* Returns 1 to one caller of the process for each arrival, as one rank's report is enough. */
int rondo_hang_signal_came(void)
{
    uint32_t now = __atomic_load_n(&came, __ATOMIC_RELAXED), before = __atomic_load_n(&told, __ATOMIC_RELAXED);
    return now != before && __atomic_compare_exchange_n(&told, &before, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
