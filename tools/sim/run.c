/* Many rounds of the simulator, on several threads. See tools/sim/sim.h. */
#include "tools/common/options.h"
#include "tools/sim/sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define CHUNK 16 /* rounds that a thread takes at a time */

struct work {
    const struct sim_config *config;
    const struct sim_layout *layout;
    uint64_t next, done, deadlocks, cycles,
        first; /* shared by the threads: relaxed counters, read for good after they were joined */
    int failed;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + (double) t.tv_nsec * 1e-9;
}

/* What a thread keeps between rounds. */
struct judge {
    struct sim_round round;
    struct sim_jump *jump;
    struct sim_events *events;
    struct sim_timed *timed;
};

static bool make_judge(struct judge *judge, const struct sim_layout *layout)
{
    return sim_jump_make(layout, &judge->jump) == 0 && sim_events_make(layout, &judge->events) == 0 &&
           sim_timed_make(layout, &judge->timed) == 0;
}

static void free_judge(struct judge *judge)
{
    sim_timed_free(judge->timed);
    sim_events_free(judge->events);
    sim_jump_free(judge->jump);
    sim_round_free(&judge->round);
}

/* Whether there is a cycle. */
static int find_cycle(const struct judge *judge, const struct sim_config *config)
{
    struct sim_config exact = *config;
    int found = SIM_UNDECIDED;
    exact.test = SIM_CYCLE;
    exact.resource_limit = -1;
    if (config->method == SIM_JUMP)
        found = sim_jump_decide(judge->jump, config, &judge->round, NULL);
    return found == SIM_UNDECIDED ? sim_events_decide(judge->events, &exact, &judge->round) : found;
}

/* Returns -1 without memory. What the test calls a deadlock need not be a cycle, but every cycle is one. */
static int decide(const struct judge *judge, const struct sim_config *config, int *is_cycle)
{
    int found = 1;
    if (config->resource_limit > 0 || (config->test == SIM_INTERSECTION && config->method == SIM_EVENTS))
        found = sim_events_decide(judge->events, config, &judge->round);
    else if (config->test == SIM_INTERSECTION)
        found = sim_timed_decide(judge->timed, &judge->round);
    if (found != 1)
        return found;
    *is_cycle = find_cycle(judge, config);
    return config->test == SIM_CYCLE && config->resource_limit <= 0 ? *is_cycle : *is_cycle < 0 ? -1 : found;
}

static void *work_on(void *argument)
{
    struct work *work = argument;
    struct judge judge = {0};
    bool failed = !make_judge(&judge, work->layout);
    while (!failed && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED)) {
        uint64_t from = __atomic_fetch_add(&work->next, CHUNK, __ATOMIC_RELAXED), deadlocks = 0, cycles = 0;
        if (from >= work->config->rounds)
            break;
        uint64_t to = work->config->rounds - from < CHUNK ? work->config->rounds : from + CHUNK;
        for (uint64_t number = from; number < to && !failed; number++) {
            int is_cycle = 0;
            sim_round_draw(work->layout, work->config, number, &judge.round);
            int found = decide(&judge, work->config, &is_cycle);
            failed = found < 0;
            deadlocks += found == 1;
            cycles += is_cycle == 1;
            uint64_t first = __atomic_load_n(&work->first, __ATOMIC_RELAXED);
            while (is_cycle == 1 && number < first &&
                   !__atomic_compare_exchange_n(&work->first, &first, number, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
        }
        __atomic_fetch_add(&work->deadlocks, deadlocks, __ATOMIC_RELAXED);
        __atomic_fetch_add(&work->cycles, cycles, __ATOMIC_RELAXED);
        __atomic_fetch_add(&work->done, to - from, __ATOMIC_RELAXED);
    }
    if (failed)
        __atomic_store_n(&work->failed, 1, __ATOMIC_RELAXED);
    free_judge(&judge);
    return NULL;
}

/* Until all rounds are done. Says how far they are once it takes longer than some seconds. */
static void watch(const struct work *work, double started)
{
    uint64_t rounds = work->config->rounds;
    double told = started;
    for (int i = 0;
         __atomic_load_n(&work->done, __ATOMIC_RELAXED) < rounds && !__atomic_load_n(&work->failed, __ATOMIC_RELAXED); i++) {
        nanosleep(&(struct timespec){.tv_nsec = i < 50 ? 1000000 : 20000000}, NULL);
        uint64_t done = __atomic_load_n(&work->done, __ATOMIC_RELAXED);
        if (now() - told < 5 || done == 0)
            continue;
        told = now();
        fprintf(stderr, "# %s: %llu of %llu rounds, %llu deadlocks, %.0f s left\n", work->config->name,
                (unsigned long long) done, (unsigned long long) rounds,
                (unsigned long long) __atomic_load_n(&work->deadlocks, __ATOMIC_RELAXED),
                (told - started) * (double) (rounds - done) / (double) done);
    }
}

static struct sim_ratio ratio_of(uint64_t count, uint64_t rounds)
{
    struct sim_ratio ratio = {.count = count, .ratio = (double) count / (double) rounds};
    sim_interval(count, rounds, &ratio.low, &ratio.high);
    return ratio;
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
    *result = (struct sim_result){.rounds = config->rounds, .first = work.first, .seconds = now() - started};
    result->deadlocks = ratio_of(work.deadlocks, config->rounds);
    result->cycles = ratio_of(work.cycles, config->rounds);
    return 0;
}
