/* See test/injection/scenario.h. */
#include "test/injection/scenario.h"

#include "test/injection/buffers.h"
#include "test/injection/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void pause_ms(long milliseconds)
{
    nanosleep(&(struct timespec){milliseconds / 1000, milliseconds % 1000 * 1000000}, NULL);
}

/* At the second try, if the first fails. */
static rondo_result_t make_id(rondo_unique_id_t *id)
{
    const rondo_result_t result = rondo_get_unique_id(id);
    return result == RONDO_SUCCESS ? result : rondo_get_unique_id(id);
}

/* Rank 0 makes so many ids; the others wait for them. Returns whether they are there. */
static int share_ids(struct job *job, int rank, int count)
{
    if (rank == 0) {
        step_begin("rondo_get_unique_id");
        if (make_id(&job->ids[0]) != RONDO_SUCCESS || (count > 1 && make_id(&job->ids[1]) != RONDO_SUCCESS)) {
            step_wrong("it fails again: %s", rondo_last_error());
            return 0;
        }
        __atomic_store_n(&job->id_made, 1, __ATOMIC_RELEASE);
    }
    for (int i = 0; i < 3000 && !__atomic_load_n(&job->id_made, __ATOMIC_ACQUIRE); i++)
        pause_ms(1);
    return job->id_made;
}

/* Microseconds that a stuck daemon stays in a process's first run. There ranks wait for CUDA's beginning, which takes parts of
 * a second: with the usual time a hundred daemons would begin one after the other, and each be a point. */
#define FIRST_QUIT_US 50000

void scenario_prepare(const struct part *part, const struct job *job)
{
    setenv("RONDO_JOB", job->name, 1);
    if (part_on_gpu(part))
        setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1); /* with fewer, CUDA lets streams of ranks wait for each other */
    for (const char *const *pair = part->environment; *pair != NULL; pair += 2)
        if (strcmp(pair[0], "id") != 0)
            setenv(pair[0],
                   strcmp(pair[1], A_ROOT) == 0      ? job->root
                   : strcmp(pair[1], TWO_ROOTS) == 0 ? job->roots
                   : strcmp(pair[1], A_FILE) == 0    ? job->file
                                                     : pair[1],
                   1);
}

void scenario_run(const struct part *part, struct job *job, int rank)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_t runtime = NULL;
    rondo_comm_t world = NULL;
    int by_id = 0;
    struct rank_record *me = &job->ranks[rank];
    steps = (struct steps){.record = me, .rank = rank, .connect_timeout = job->connect_timeout};
    me->next_code = me->finalize_code = NO_CODE;
    config.rank = rank;
    config.size = RANKS;
    config.device = part_on_gpu(part) ? RONDO_DEVICE_CUDA : RONDO_DEVICE_HOST;
    if (part_on_gpu(part))
        config.device_index = 0;
    if (part_on_gpu(part) && job->is_first)
        config.quit_stuck_us = FIRST_QUIT_US;
    config.connect_timeout = job->connect_timeout;
    for (const char *const *pair = part->environment; *pair != NULL; pair += 2)
        if (strcmp(pair[0], "id") == 0)
            by_id = atoi(pair[1]);
    const char *error = buffers_make(part_on_gpu(part));
    if (error != NULL) {
        step_wrong("no buffers: %s", error);
        return;
    }
    if (part->hosts)
        config.host_id = rank == 2 ? "elsewhere" : "here";
    if (part->whole)
        inject_arm(&me->inject);
    if (by_id && share_ids(job, rank, by_id))
        config.unique_id = job->ids;
    if (config.unique_id != NULL)
        config.unique_ids = by_id;
    if (!by_id || config.unique_id != NULL) {
        step_begin("rondo_init");
        step_end(NULL, rondo_init(&runtime, &config));
    }
    if (runtime != NULL) {
        me->initialized = 1;
        step_begin("rondo_comm_world");
        if (step_end(NULL, rondo_comm_world(runtime, &world))) {
            if (!part->whole)
                inject_arm(&me->inject);
            part->body(me, rank, runtime, world);
            if (me->failed_step != 0) {
                step_begin("the next call, rondo_barrier");
                me->next_code = (int) rondo_barrier(steps.failed_comm != NULL ? steps.failed_comm : world);
                if (steps.failed_comm != NULL && steps.failed_comm != world)
                    rondo_comm_abort(world, 1); /* ranks outside of the failed communicator are in a call on the world */
            }
        }
        step_begin("rondo_finalize");
        me->finalize_code = (int) rondo_finalize(runtime);
        if (me->finalize_code != RONDO_SUCCESS)
            snprintf(me->finalize_message, sizeof(me->finalize_message), "%.199s", rondo_last_error());
    }
    inject_disarm();
    step_begin("finished");
}
