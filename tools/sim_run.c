/* Many rounds of the simulator, on several threads. See sim.h. */
#include "options.h"
#include "sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK 16 /* rounds that a thread takes at a time */

struct work {
    const struct sim_config *config;
    const struct sim_layout *layout;
    uint64_t next, done, deadlocks, first; /* shared by the threads: relaxed counters, read for good after they were joined */
    int failed;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

static int decide(const struct sim_config *config, struct sim_jump *jump, struct sim_events *events,
                  const struct sim_round *round)
{
    bool needs_time = config->test == SIM_INTERSECTION || config->resource_limit > 0;
    int found = SIM_UNDECIDED;
    if (config->method == SIM_JUMP && !needs_time)
        found = sim_jump_decide(jump, config, round, NULL);
    return found == SIM_UNDECIDED ? sim_events_decide(events, config, round) : found;
}

static void *work_on(void *argument)
{
    struct work *work = argument;
    struct sim_round round = {0};
    struct sim_jump *jump = NULL;
    struct sim_events *events = NULL;
    int failed = sim_jump_make(work->layout, &jump) != 0 || sim_events_make(work->layout, &events) != 0;
    while (!failed && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED)) {
        uint64_t from = __atomic_fetch_add(&work->next, CHUNK, __ATOMIC_RELAXED), deadlocks = 0;
        if (from >= work->config->rounds)
            break;
        uint64_t to = work->config->rounds - from < CHUNK ? work->config->rounds : from + CHUNK;
        for (uint64_t number = from; number < to && !failed; number++) {
            sim_round_draw(work->layout, work->config, number, &round);
            int found = decide(work->config, jump, events, &round);
            failed = found < 0;
            if (found != 1)
                continue;
            deadlocks++;
            uint64_t first = __atomic_load_n(&work->first, __ATOMIC_RELAXED);
            while (number < first && !__atomic_compare_exchange_n(&work->first, &first, number, true, __ATOMIC_RELAXED,
                                                                  __ATOMIC_RELAXED))
                ;
        }
        __atomic_fetch_add(&work->deadlocks, deadlocks, __ATOMIC_RELAXED);
        __atomic_fetch_add(&work->done, to - from, __ATOMIC_RELAXED);
    }
    if (failed)
        __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
    sim_events_free(events);
    sim_jump_free(jump);
    sim_round_free(&round);
    return NULL;
}

/* Until all rounds are done. Says how far they are once it takes longer than some seconds. */
static void watch(const struct work *work, double started)
{
    uint64_t rounds = work->config->rounds;
    double told = started;
    for (int i = 0; __atomic_load_n(&work->done, __ATOMIC_RELAXED) < rounds && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED);
         i++) {
        nanosleep(&(struct timespec){.tv_nsec = i < 50 ? 1000000 : 20000000}, NULL);
        uint64_t done = __atomic_load_n(&work->done, __ATOMIC_RELAXED);
        if (now() - told < 5 || done == 0)
            continue;
        told = now();
        fprintf(stderr, "# %s: %llu of %llu rounds, %llu deadlocks, %.0f s left\n", work->config->name, (unsigned long long) done,
                (unsigned long long) rounds, (unsigned long long) __atomic_load_n(&work->deadlocks, __ATOMIC_RELAXED),
                (told - started) * (double) (rounds - done) / (double) done);
    }
}

int sim_run(const struct sim_config *config, int threads, struct sim_result *result)
{
    struct sim_layout layout;
    double started = now();
    int code = sim_layout_make(config, &layout), running = 0;
    if (code != 0)
        return code;
    struct work work = {.config = config, .layout = &layout, .first = UINT64_MAX};
    pthread_t *handles = calloc((size_t) threads, sizeof(*handles));
    while (handles != NULL && running < threads && pthread_create(&handles[running], NULL, work_on, &work) == 0)
        running++;
    if (running > 0)
        watch(&work, started);
    for (int i = 0; i < running; i++)
        pthread_join(handles[i], NULL);
    free(handles);
    sim_layout_free(&layout);
    if (running == 0 || work.failed) {
        fprintf(stderr, "rondo sim: no memory or threads for a round of %d GPUs\n", config->gpus);
        return EXIT_WRONG;
    }
    *result = (struct sim_result){.rounds = config->rounds, .deadlocks = work.deadlocks, .first = work.first};
    result->ratio = (double) work.deadlocks / (double) config->rounds;
    result->seconds = now() - started;
    sim_interval(work.deadlocks, config->rounds, &result->low, &result->high);
    return 0;
}
