/* See tools/common/ranks.h. */
#include "test/multirank/ranks.h"
#include "test/multirank/device_memory.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NOTES = 2048, NOTE_BYTES = 192, PRINTED_FAILURES = 25 };

_Thread_local int ranks_current = -1;

static atomic_long checks, failures;
static char notes[NOTES][NOTE_BYTES];
static atomic_int notes_used;
static _Thread_local char *my_note;

void ranks_count_check(void)
{
    atomic_fetch_add_explicit(&checks, 1, memory_order_relaxed);
}

void ranks_fail(const char *file, int line, const char *what, const char *format, ...)
{
    if (atomic_fetch_add(&failures, 1) >= PRINTED_FAILURES)
        return;
    char values[1500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(values, sizeof(values), format, arguments);
    va_end(arguments);
    printf("FAILED rank %d %s:%d: %s: %s\n", ranks_current, file, line, what, values);
    fflush(stdout);
}

void ranks_die(const char *file, int line, const char *what, rondo_result_t result)
{
    printf("FAILED rank %d %s:%d: %s: %s (%d): %s; last step: %s\n", ranks_current, file, line, what, rondo_strerror(result),
           (int) result, rondo_last_error(), my_note != NULL ? my_note : "none");
    fflush(stdout);
    _exit(1);
}

void ranks_step(const char *file, int line, const char *format, ...)
{
    if (my_note == NULL) {
        int slot = atomic_fetch_add(&notes_used, 1);
        my_note = notes[slot < NOTES ? slot : NOTES - 1];
    }
    const char *base = strrchr(file, '/');
    int used = snprintf(my_note, NOTE_BYTES, "rank %d %s:%d: ", ranks_current, base != NULL ? base + 1 : file, line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(my_note + used, (size_t) (NOTE_BYTES - used), format, arguments);
    va_end(arguments);
}

void ranks_expect(const char *file, int line, const char *call, rondo_result_t got, rondo_result_t wanted,
                  rondo_result_t or_else, const char *fragment)
{
    const char *message = rondo_last_error();
    ranks_count_check();
    if (got != wanted && got != or_else)
        ranks_fail(file, line, call, "%s (%d), not %s; message: %s", rondo_strerror(got), (int) got, rondo_strerror(wanted),
                   message);
    else if (strstr(message, fragment) == NULL)
        ranks_fail(file, line, call, "the message lacks \"%s\": %s", fragment, message);
}

const char *ranks_pointer_text(const void *pointer)
{
    static _Thread_local char text[8][32];
    static _Thread_local int next;
    next = (next + 1) % 8;
    snprintf(text[next], sizeof(text[next]), "%p", pointer);
    return text[next];
}

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(98);
}

#define REPORT_SECONDS 3 /* time for all ranks to report */

/* The watchdog's signal. The first one makes the library log what all ranks wait for; the second one ends the process. The
 * signal has no effect without a runtime. */
static void on_watchdog(int signal_number)
{
    static volatile sig_atomic_t barked;
    (void) signal_number;
    if (barked)
        _exit(99);
    barked = 1;
    atomic_fetch_add(&failures, 1); /* the hang is a failure even if the program continues */
    say("FAILED watchdog: the program hangs; the last step of each thread:\n");
    int used = atomic_load(&notes_used);
    for (int i = 0; i < used && i < NOTES; i++) {
        say("  ");
        say(notes[i]);
        say("\n");
    }
    if (getenv("RANKS_CORE") != NULL) {
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    kill(getpid(), SIGURG);
    alarm(REPORT_SECONDS);
}

void ranks_parse(int argc, char **argv, const struct ranks_option *options, int count)
{
    for (int i = 1; i < argc; i += 2) {
        int found = 0;
        for (int k = 0; k < count && i + 1 < argc; k++) {
            if (strcmp(argv[i], options[k].name) != 0)
                continue;
            found = 1;
            char *end = NULL;
            if (options[k].text != NULL)
                *options[k].text = argv[i + 1];
            else if ((*options[k].number = strtol(argv[i + 1], &end, 0), *end != '\0' || end == argv[i + 1]))
                found = 0;
        }
        if (found)
            continue;
        fprintf(stderr, "%s: bad option %s %s; there are:\n", argv[0], argv[i], i + 1 < argc ? argv[i + 1] : "(no value)");
        for (int k = 0; k < count; k++)
            fprintf(stderr, "  %s: %s\n", options[k].name, options[k].meaning);
        exit(2);
    }
    const char *seconds = getenv("RANKS_WATCHDOG");
    setenv("RONDO_REPORT_SIGNAL", "URG", 0);
    signal(SIGALRM, on_watchdog);
    alarm(seconds != NULL ? (unsigned) atoi(seconds) : 60);
}

int ranks_finish(const char *program)
{
    long made = atomic_load(&checks), failed = atomic_load(&failures);
    printf("%s: %ld checks, %ld failures\n", program, made, failed);
    fflush(stdout);
    return made == 0 || failed != 0;
}

struct launch {
    rondo_config_t config;
    rank_function_t function;
    void *argument;
};

static void *run_rank(void *opaque)
{
    struct launch *launch = opaque;
    struct rank me = {.argument = launch->argument};
    ranks_current = launch->config.rank;
    STEP("rondo_init");
    MUST(rondo_init(&me.runtime, &launch->config));
    MUST(rondo_comm_world(me.runtime, &me.world));
    MUST(rondo_comm_rank(me.world, &me.rank));
    MUST(rondo_comm_size(me.world, &me.size));
    ranks_current = me.rank;
    ranks_use_device(me.runtime);
    launch->function(&me);
    STEP("rondo_finalize");
    MUST(rondo_finalize(me.runtime));
    STEP("finished");
    return NULL;
}

void ranks_run(int ranks, const rondo_config_t *config, rank_function_t function, void *argument)
{
    struct launch base = {RONDO_CONFIG_DEFAULT, function, argument};
    if (config != NULL)
        base.config = *config;
    base.config.device = ranks_device();
    if (ranks == 0) {
        run_rank(&base);
        return;
    }
    rondo_unique_id_t id;
    MUST(rondo_get_unique_id(&id));
    pthread_t *threads = calloc((size_t) ranks, sizeof(*threads));
    struct launch *launches = calloc((size_t) ranks, sizeof(*launches));
    for (int r = 0; r < ranks; r++) {
        launches[r] = base;
        launches[r].config.rank = r;
        launches[r].config.size = ranks;
        launches[r].config.unique_id = &id;
        if (pthread_create(&threads[r], NULL, run_rank, &launches[r]) != 0) {
            printf("FAILED: no thread for rank %d\n", r);
            exit(1);
        }
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(threads[r], NULL);
    free(threads);
    free(launches);
}

rondo_result_t ranks_poll(rondo_request_t request)
{
    rondo_result_t result = RONDO_SUCCESS;
    for (int done = 0, polls = 1; result == RONDO_SUCCESS && !done; polls++) {
        result = rondo_test(request, &done);
        if (polls % 16 == 0)
            sched_yield();
    }
    return result;
}

double ranks_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

void ranks_sleep(double seconds)
{
    struct timespec pause = {(time_t) seconds, (long) ((seconds - (double) (time_t) seconds) * 1e9)};
    nanosleep(&pause, NULL);
}
