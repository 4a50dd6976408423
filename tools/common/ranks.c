/* See tools/common/ranks.h. Every rank is a thread, the one from the environment too, so that the main thread is free to watch.
 */
#include "tools/common/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long ranks may take to come back once one has failed: their own timeouts, and then this. */
#define GRACE_SECONDS      10.0
/* How much later than rank 0 a failed rank of another process ends: launchers kill all at the first that fails, and rank 0 has
 * a report to finish. */
#define LINGER_NANOSECONDS 500000000

struct leftover {
    struct leftover *next;
    void *memory;
    int gpu;
};

struct ranks_group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int threads;
    int gone;         /* ranks whose body has returned, or that never got as far */
    int ended;        /* ranks that are through with their runtime too */
    bool failed;      /* some rank has */
    bool held;        /* some runtime could not be finalized */
    bool unsaid;      /* no failure has been printed yet */
    double failed_at; /* ranks_clock() of the first failure */
    int code;
    struct leftover *leftovers;
    /* The exchange in progress, and what the last one has gathered: RANKS_GATHER_MAX bytes a rank. */
    int arrived;
    uint64_t generation;
    char *gathering, *gathered;
};

struct thread {
    const struct ranks_plan *plan;
    struct ranks_group *group;
    rondo_unique_id_t *id;
    int index;
    pthread_t handle;
};

double ranks_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

/* With the lock held: ends the exchange in progress once all ranks that can still come have come. */
static void settle(struct ranks_group *group)
{
    size_t bytes = (size_t) group->threads * RANKS_GATHER_MAX;
    if (group->arrived > 0 && group->arrived + group->gone >= group->threads) {
        memcpy(group->gathered, group->gathering, bytes);
        memset(group->gathering, 0, bytes);
        group->arrived = 0;
        group->generation++;
    }
    pthread_cond_broadcast(&group->changed);
}

static void gather_in_process(const struct rank *rank, const void *mine, size_t bytes, char *all)
{
    struct ranks_group *group = rank->group;
    pthread_mutex_lock(&group->lock);
    memcpy(group->gathering + (size_t) rank->rank * RANKS_GATHER_MAX, mine, bytes);
    group->arrived++;
    uint64_t generation = group->generation;
    settle(group);
    while (group->generation == generation)
        pthread_cond_wait(&group->changed, &group->lock);
    /* The next exchange cannot end before this rank takes part in it or leaves, so gathered is still this one's. */
    for (int r = 0; r < group->threads; r++)
        memcpy(all + (size_t) r * bytes, group->gathered + (size_t) r * RANKS_GATHER_MAX, bytes);
    pthread_mutex_unlock(&group->lock);
}

/* The gather of processes: a persistent all-gather of RANKS_GATHER_MAX bytes a rank. */
struct ranks_aside {
    rondo_comm_t comm;
    rondo_request_t request;
    void *send, *receive; /* device memory */
    char *gathered;
};

static rondo_result_t open_aside(struct rank *rank)
{
    struct ranks_aside *aside = rank->aside = calloc(1, sizeof(*aside));
    size_t whole = (size_t) rank->size * RANKS_GATHER_MAX;
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_result_t code = RONDO_ERR_MEMORY;
    attr.program = rank->size > 1 ? "ring" : NULL; /* whatever the verb tries on the world */
    if (aside != NULL && (aside->gathered = malloc(whole)) != NULL)
        code = rondo_comm_dup(rank->world, &aside->comm);
    if (code == RONDO_SUCCESS)
        code = buffers_allocate(&rank->buffers, RANKS_GATHER_MAX, &aside->send);
    if (code == RONDO_SUCCESS)
        code = buffers_allocate(&rank->buffers, whole, &aside->receive);
    if (code == RONDO_SUCCESS)
        code = rondo_allgather_init(aside->send, aside->receive, RANKS_GATHER_MAX, RONDO_UINT8, aside->comm, &attr,
                                    &aside->request);
    return code;
}

/* After the runtime's end, which frees the request. */
static void close_aside(struct rank *rank)
{
    if (rank->aside == NULL)
        return;
    buffers_release(rank->buffers.gpu, rank->aside->send);
    buffers_release(rank->buffers.gpu, rank->aside->receive);
    free(rank->aside->gathered);
    free(rank->aside);
}

static rondo_result_t gather_of_processes(struct rank *rank, const void *mine, size_t bytes, char *all)
{
    struct ranks_aside *aside = rank->aside;
    rondo_result_t code = buffers_put(&rank->buffers, aside->send, mine, bytes);
    if (code == RONDO_SUCCESS)
        code = rondo_start(aside->request);
    if (code == RONDO_SUCCESS)
        code = rondo_wait(aside->request);
    if (code == RONDO_SUCCESS)
        code = buffers_get(&rank->buffers, aside->gathered, aside->receive, (size_t) rank->size * RANKS_GATHER_MAX);
    for (int r = 0; code == RONDO_SUCCESS && r < rank->size; r++)
        memcpy(all + (size_t) r * bytes, aside->gathered + (size_t) r * RANKS_GATHER_MAX, bytes);
    return code;
}

rondo_result_t ranks_gather(struct rank *rank, const void *mine, size_t bytes, void *all)
{
    if (!rank->threads)
        return gather_of_processes(rank, mine, bytes, all);
    gather_in_process(rank, mine, bytes, all);
    return RONDO_SUCCESS;
}

rondo_result_t ranks_total(struct rank *rank, uint64_t *values, int count)
{
    uint64_t *all = malloc((size_t) (rank->size * count) * sizeof(*all));
    rondo_result_t code = all == NULL ? RONDO_ERR_MEMORY : ranks_gather(rank, values, (size_t) count * sizeof(*all), all);
    for (int i = 0; code == RONDO_SUCCESS && i < count; i++) {
        values[i] = 0;
        for (int r = 0; r < rank->size; r++)
            values[i] += all[r * count + i];
    }
    free(all);
    return code;
}

rondo_result_t ranks_most(struct rank *rank, double *values, int count)
{
    double *all = malloc((size_t) (rank->size * count) * sizeof(*all));
    rondo_result_t code = all == NULL ? RONDO_ERR_MEMORY : ranks_gather(rank, values, (size_t) count * sizeof(*all), all);
    for (int i = 0; code == RONDO_SUCCESS && i < count; i++) {
        for (int r = 0; r < rank->size; r++)
            values[i] = all[r * count + i] > values[i] ? all[r * count + i] : values[i];
    }
    free(all);
    return code;
}

rondo_result_t ranks_share(struct rank *rank, void *value, size_t bytes)
{
    char *all = malloc((size_t) rank->size * bytes);
    rondo_result_t code = all == NULL ? RONDO_ERR_MEMORY : ranks_gather(rank, value, bytes, all);
    if (code == RONDO_SUCCESS)
        memcpy(value, all, bytes);
    free(all);
    return code;
}

static void mark(struct ranks_group *group)
{
    pthread_mutex_lock(&group->lock);
    if (!group->failed) {
        group->failed = true;
        group->failed_at = ranks_clock();
        pthread_cond_broadcast(&group->changed);
    }
    pthread_mutex_unlock(&group->lock);
}

void ranks_mark_failed(struct rank *rank)
{
    mark(rank->group);
}

void ranks_free_later(struct rank *rank, void *memory)
{
    struct leftover *leftover = malloc(sizeof(*leftover));
    if (leftover == NULL || memory == NULL) {
        free(leftover); /* and the memory is leaked, for want of memory */
        return;
    }
    pthread_mutex_lock(&rank->group->lock);
    *leftover = (struct leftover){.next = rank->group->leftovers, .memory = memory, .gpu = rank->buffers.gpu};
    rank->group->leftovers = leftover;
    pthread_mutex_unlock(&rank->group->lock);
}

/* A runtime that could not be finalized goes on: its daemon may still write where a stuck operation was told to. */
static void hold(struct ranks_group *group)
{
    pthread_mutex_lock(&group->lock);
    group->held = true;
    pthread_mutex_unlock(&group->lock);
}

/* What is held is left to the end of the process, where it can be found: it is no leak. */
static struct leftover *volatile held;

static void free_leftovers(struct ranks_group *group)
{
    if (group->held) {
        held = group->leftovers;
        return;
    }
    while (group->leftovers != NULL) {
        struct leftover *leftover = group->leftovers;
        group->leftovers = leftover->next;
        buffers_release(leftover->gpu, leftover->memory);
        free(leftover);
    }
}

static int complain(struct ranks_group *group, const char *verb, int rank, const char *what, rondo_result_t code)
{
    /* Fetched before anything else can replace it. */
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    pthread_mutex_lock(&group->lock);
    bool print = group->unsaid || (code != RONDO_ERR_ABORTED && code != RONDO_ERR_PEER);
    group->unsaid = false;
    pthread_mutex_unlock(&group->lock);
    mark(group);
    if (print && rank >= 0)
        fprintf(stderr, "rondo %s: rank %d: %s: %s: %s\n", verb, rank, what, rondo_strerror((int) code), message);
    else if (print)
        fprintf(stderr, "rondo %s: %s: %s: %s\n", verb, what, rondo_strerror((int) code), message);
    return EXIT_WRONG;
}

int ranks_fail(struct rank *rank, const char *what, rondo_result_t code)
{
    return complain(rank->group, rank->verb, rank->rank, what, code);
}

/* counter: gone or ended. */
static void count_out(struct ranks_group *group, int *counter, int code)
{
    pthread_mutex_lock(&group->lock);
    ++*counter;
    if (code > group->code)
        group->code = code;
    settle(group);
    pthread_mutex_unlock(&group->lock);
}

static rondo_result_t join(const struct thread *thread, struct rank *rank)
{
    const struct options_runtime *options = thread->plan->runtime;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    if (thread->id != NULL) {
        config.rank = thread->index;
        config.size = options->threads;
        config.unique_id = thread->id;
    }
    config.device = options->device;
    config.transports = options->transports;
    config.timeout = options->timeout;
    config.preempt = options->preempt;
    rondo_result_t code = rondo_init(&rank->runtime, &config);
    if (code != RONDO_SUCCESS) {
        rank->runtime = NULL;
        return code;
    }
    if ((code = rondo_comm_world(rank->runtime, &rank->world)) != RONDO_SUCCESS ||
        (code = rondo_comm_rank(rank->world, &rank->rank)) != RONDO_SUCCESS)
        return code;
    if ((code = rondo_comm_size(rank->world, &rank->size)) != RONDO_SUCCESS ||
        (code = buffers_open(&rank->buffers, rank->runtime)) != RONDO_SUCCESS || rank->threads)
        return code;
    return open_aside(rank);
}

static void *run_rank(void *argument)
{
    struct thread *thread = argument;
    struct ranks_group *group = thread->group;
    struct rank rank = {.rank = thread->id != NULL ? thread->index : -1,
                        .threads = thread->id != NULL,
                        .buffers = {.gpu = -1},
                        .verb = thread->plan->verb,
                        .group = group};
    int exit_code;
    rondo_result_t code = join(thread, &rank);
    if (code != RONDO_SUCCESS)
        exit_code = complain(group, rank.verb, rank.rank, "start", code);
    else
        exit_code = thread->plan->body(&rank, thread->plan->argument);
    count_out(group, &group->gone, exit_code);

    pthread_mutex_lock(&group->lock);
    bool failed = group->failed;
    pthread_mutex_unlock(&group->lock);
    if (rank.world != NULL && failed)
        rondo_comm_abort(rank.world, exit_code);
    if (exit_code != 0 && !rank.threads && rank.rank > 0)
        nanosleep(&(struct timespec){.tv_nsec = LINGER_NANOSECONDS}, NULL);
    if (rank.runtime != NULL) {
        code = rondo_finalize(rank.runtime);
        if (code != RONDO_SUCCESS)
            hold(group);
        if (code != RONDO_SUCCESS && !failed)
            exit_code = complain(group, rank.verb, rank.rank, "finalize", code);
    }
    close_aside(&rank);
    buffers_close(&rank.buffers);
    count_out(group, &group->ended, exit_code);
    return NULL;
}

/* Returns true when every rank has ended, false when the grace after a failure is over. */
static bool watch(struct ranks_group *group, double grace)
{
    pthread_mutex_lock(&group->lock);
    while (group->ended < group->threads) {
        if (!group->failed) {
            pthread_cond_wait(&group->changed, &group->lock);
            continue;
        }
        double end = group->failed_at + grace;
        if (ranks_clock() >= end)
            break;
        struct timespec deadline = {.tv_sec = (time_t) end, .tv_nsec = (long) ((end - (double) (time_t) end) * 1e9)};
        pthread_cond_timedwait(&group->changed, &group->lock, &deadline);
    }
    bool all = group->ended == group->threads;
    pthread_mutex_unlock(&group->lock);
    return all;
}

static void abandon(const struct ranks_plan *plan, struct ranks_group *group)
{
    pthread_mutex_lock(&group->lock);
    int code = group->code > EXIT_WRONG ? group->code : EXIT_WRONG;
    int missing = group->threads - group->ended, silent = group->threads - group->gone;
    pthread_mutex_unlock(&group->lock);
    if (silent > 0 && plan->abandon != NULL) {
        int other = plan->abandon(plan->argument);
        code = other > code ? other : code;
    }
    fprintf(stderr, "rondo %s: %d of this process's ranks did not come back after the failure; leaving without them\n",
            plan->verb, missing);
    fflush(NULL);
    _exit(code);
}

int ranks_run(const struct ranks_plan *plan)
{
    int count = plan->runtime->threads > 0 ? plan->runtime->threads : 1;
    rondo_unique_id_t id;
    struct ranks_group group = {.threads = count, .unsaid = true};
    struct thread *threads = calloc((size_t) count, sizeof(*threads));
    group.gathering = calloc((size_t) count, RANKS_GATHER_MAX);
    group.gathered = calloc((size_t) count, RANKS_GATHER_MAX);
    if (threads == NULL || group.gathering == NULL || group.gathered == NULL) {
        fprintf(stderr, "rondo %s: out of memory for %d ranks\n", plan->verb, count);
        return EXIT_WRONG;
    }
    pthread_mutex_init(&group.lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&group.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);

    if (plan->runtime->threads > 0) {
        rondo_result_t code = rondo_get_unique_id(&id);
        if (code != RONDO_SUCCESS) {
            free(group.gathering);
            free(group.gathered);
            free(threads);
            return complain(&group, plan->verb, -1, "unique id", code);
        }
    }
    for (int i = 0; i < count; i++) {
        threads[i] = (struct thread){.plan = plan, .group = &group, .id = plan->runtime->threads > 0 ? &id : NULL, .index = i};
        int error = pthread_create(&threads[i].handle, NULL, run_rank, &threads[i]);
        if (error != 0) {
            /* The ranks already running would wait for the missing one. */
            fprintf(stderr, "rondo %s: cannot start a thread for rank %d: %s\n", plan->verb, i, strerror(error));
            fflush(NULL);
            _exit(EXIT_WRONG);
        }
    }
    double timeout = plan->runtime->timeout > 0 ? plan->runtime->timeout : 0;
    if (!watch(&group, GRACE_SECONDS + 2 * timeout))
        abandon(plan, &group);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].handle, NULL);
    free_leftovers(&group);
    free(group.gathering);
    free(group.gathered);
    free(threads);
    pthread_cond_destroy(&group.changed);
    pthread_mutex_destroy(&group.lock);
    return group.code;
}
