/*
 * The report signal (lib/diagnostics/hang_signal.h). A signal belongs to the process and not to a runtime, so the state here is
 * the process's: a counter that the handler increments, and the previous handler.
 */
#include "lib/diagnostics/hang_signal.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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

/* The number of a signal given as USR1, SIGUSR1 or 10. 0 if the text names none, or one that cannot or should not be caught. */
static int signal_number(const char *text)
{
    static const struct {
        const char *name;
        int number;
    } names[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2},   {"QUIT", SIGQUIT},
                 {"HUP", SIGHUP},   {"WINCH", SIGWINCH}, {"URG", SIGURG}};
    const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
    char *end;
    long number = strtol(text, &end, 10);
    if (end != text && *end == '\0' && number > 0 && number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP &&
        number != SIGSEGV && number != SIGBUS && number != SIGFPE && number != SIGILL)
        return (int) number;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].number;
    return 0;
}

rondo_result_t rondo_hang_signal_watch(int *watched)
{
    const char *text;
    *watched = 0;
    rondo_result_t result = rondo_environment_text("RONDO_REPORT_SIGNAL", &text);
    if (result != RONDO_SUCCESS || text == NULL)
        return result;
    int number = signal_number(text);
    if (number == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_REPORT_SIGNAL=\"%s\" is no signal that can be caught (e.g. USR1)", text);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&lock);
    if (watchers == 0) {
        caught_signal = number;
        sigaction(number, NULL, &previous);
        if (sigaction(number, &action, NULL) != 0)
            result = rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_REPORT_SIGNAL=\"%s\" cannot be caught", text);
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
