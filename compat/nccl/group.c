/* Groups: what a thread calls between ncclGroupStart and ncclGroupEnd is kept and done at the outermost end. Init, split and
 * whatever else talks to other ranks run beside each other there, on threads, because the ranks of one clique may all be in
 * this group; operations are launched by the calling thread, since none waits for another rank's. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>

#define SIMULATION_MAGIC 0x74685283u
#define FEW              16 /* operations of a group that take no memory of their own */

static _Thread_local struct {
    int depth;
    ncclResult_t error; /* the first one of a call */
    struct rondo_nccl_job *jobs, **last_job;
    struct rondo_nccl_operation few[FEW], *operations; /* NULL: they are in few */
    int count, room;
} group;

/* ---- jobs ---- */

static void discard(struct ncclComm *comm)
{
    if (rondo_nccl_comm_unlist(comm)) /* else an abort has it */
        rondo_nccl_dispose(comm);
}

/* Lets go of all that the job holds. */
static void conclude(struct rondo_nccl_job *job)
{
    struct ncclComm *comm = job->comm;
    int failed = job->status != ncclSuccess && job->result != NULL;
    if (comm != NULL)
        __atomic_store_n(&comm->state, job->status, __ATOMIC_RELEASE);
    if (failed && job->blocking)
        *job->result = NULL;
    if (comm != NULL)
        rondo_nccl_comm_let_go(comm);
    if (comm != NULL && failed && job->blocking) /* without blocking the user looks at its state, and aborts it */
        discard(comm);
    if (job->parent != NULL)
        rondo_nccl_comm_let_go(job->parent);
    free(job->excluded);
    if (job->ids != NULL) /* they have the clique's secrets */
        explicit_bzero(job->ids, (size_t) job->id_count * sizeof(*job->ids));
    free(job->ids);
    free(job);
}

/* The job, then its followers. */
static void *run(void *argument)
{
    for (struct rondo_nccl_job *job = argument; job != NULL; job = job->follower)
        job->status = job->run(job);
    return NULL;
}

static void *run_alone(void *argument)
{
    for (struct rondo_nccl_job *job = argument, *follower; job != NULL; job = follower) {
        follower = job->follower;
        job->status = job->run(job);
        conclude(job);
    }
    return NULL;
}

static ncclResult_t detach(struct rondo_nccl_job *job)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_alone, job) == 0) {
        pthread_detach(thread);
        return ncclInProgress;
    }
    ncclResult_t status = rondo_nccl_fail(ncclSystemError, "a thread cannot be made");
    for (struct rondo_nccl_job *follower; job != NULL; job = follower) {
        follower = job->follower;
        job->status = status;
        conclude(job);
    }
    return status;
}

/* Jobs on one communicator follow each other, because all its ranks have to make them in one order. Returns how many follow
 * none. */
static int line_up(struct rondo_nccl_job *jobs)
{
    int leaders = 0;
    for (struct rondo_nccl_job *job = jobs; job != NULL; job = job->next) {
        struct rondo_nccl_job *before = NULL;
        for (struct rondo_nccl_job *other = jobs; job->parent != NULL && other != job; other = other->next)
            if (other->parent == job->parent)
                before = other;
        job->follows = before != NULL;
        if (before != NULL)
            before->follower = job;
        leaders += before == NULL;
    }
    return leaders;
}

/* Followers are reached by their leaders alone then. */
static void leave_leaders(struct rondo_nccl_job **jobs)
{
    line_up(*jobs);
    while (*jobs != NULL)
        if ((*jobs)->follows)
            *jobs = (*jobs)->next;
        else
            jobs = &(*jobs)->next;
}

/* Gives each its status. */
static void run_blocking(struct rondo_nccl_job *jobs)
{
    const int leaders = line_up(jobs);
    for (struct rondo_nccl_job *job = jobs; leaders > 1 && job != NULL; job = job->next)
        job->threaded = !job->follows && pthread_create(&job->thread, NULL, run, job) == 0;
    for (struct rondo_nccl_job *job = jobs; job != NULL; job = job->next) {
        if (job->follows)
            continue;
        if (job->threaded)
            pthread_join(job->thread, NULL);
        else if (leaders == 1)
            run(job);
        else
            for (struct rondo_nccl_job *failed = job; failed != NULL; failed = failed->follower)
                failed->status = rondo_nccl_fail(ncclSystemError, "a thread cannot be made");
    }
}

/* All of the list, late ones or the others; they are taken out of it. */
static ncclResult_t run_jobs(struct rondo_nccl_job **list, int late)
{
    struct rondo_nccl_job *mine = NULL, **last = &mine, *job;
    ncclResult_t result = ncclSuccess;
    int blocking = 1;
    while ((job = *list) != NULL) {
        if (job->late != late) {
            list = &job->next;
            continue;
        }
        *list = job->next;
        job->next = NULL;
        *last = job;
        last = &job->next;
        blocking &= job->blocking;
    }
    if (blocking)
        run_blocking(mine);
    else
        leave_leaders(&mine);
    for (struct rondo_nccl_job *next = mine; (job = next) != NULL;) {
        next = job->next;
        ncclResult_t one = job->status;
        if (blocking)
            conclude(job);
        else
            one = detach(job);
        if (result == ncclSuccess || (result == ncclInProgress && one != ncclSuccess))
            result = one;
    }
    return result;
}

ncclResult_t rondo_nccl_submit(struct rondo_nccl_job *job)
{
    struct rondo_nccl_job *alone = job;
    job->next = NULL;
    if (group.depth == 0)
        return run_jobs(&alone, job->late);
    if (group.jobs == NULL)
        group.last_job = &group.jobs;
    *group.last_job = job;
    group.last_job = &job->next;
    return ncclSuccess;
}

/* ---- operations ---- */

ncclResult_t rondo_nccl_note(ncclResult_t result)
{
    if (group.depth > 0 && result != ncclSuccess && result != ncclInProgress && group.error == ncclSuccess)
        group.error = result;
    return result;
}

static int make_room(void)
{
    if (group.count < (group.operations == NULL ? FEW : group.room))
        return 1;
    int room = group.operations == NULL ? 8 * FEW : 2 * group.room;
    struct rondo_nccl_operation *more = realloc(group.operations, (size_t) room * sizeof(*more));
    if (more == NULL)
        return 0;
    if (group.operations == NULL)
        memcpy(more, group.few, sizeof(group.few));
    group.operations = more;
    group.room = room;
    return 1;
}

ncclResult_t rondo_nccl_enqueue(struct rondo_nccl_operation *operation)
{
    ncclResult_t result = ncclSuccess;
    if (group.depth == 0) {
        result = rondo_nccl_launch(operation, 1);
        rondo_nccl_comm_let_go(operation->comm);
        return result;
    }
    if (!make_room()) {
        rondo_nccl_comm_let_go(operation->comm);
        return rondo_nccl_note(rondo_nccl_fail(ncclSystemError, "no memory for a group of %d operations", group.count));
    }
    (group.operations != NULL ? group.operations : group.few)[group.count++] = *operation;
    return ncclSuccess;
}

/* ---- the calls ---- */

ncclResult_t pncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}
NCCL_EXPORT(ncclGroupStart);

/* Forgets what has not been done. */
static void drop(struct rondo_nccl_job *jobs, ncclResult_t why)
{
    while (jobs != NULL) {
        struct rondo_nccl_job *job = jobs;
        jobs = job->next;
        job->status = why;
        conclude(job);
    }
}

static ncclResult_t end(int launches)
{
    struct rondo_nccl_operation *operations = group.operations != NULL ? group.operations : group.few;
    ncclResult_t result = group.error, one = ncclSuccess;
    int in_progress = 0;
    if (result == ncclSuccess && launches) {
        result = run_jobs(&group.jobs, 0);
        in_progress = result == ncclInProgress;
        if (in_progress)
            result = ncclSuccess;
        if (result == ncclSuccess && group.count > 0)
            result = rondo_nccl_launch(operations, group.count);
        if (result == ncclSuccess)
            one = run_jobs(&group.jobs, 1);
        in_progress |= one == ncclInProgress;
        if (one != ncclInProgress && one != ncclSuccess)
            result = one;
    }
    drop(group.jobs, result != ncclSuccess ? result : ncclInvalidUsage);
    for (int i = 0; i < group.count; i++)
        rondo_nccl_comm_let_go(operations[i].comm);
    free(group.operations);
    group.operations = NULL;
    group.jobs = NULL;
    group.count = 0;
    group.error = ncclSuccess;
    return result == ncclSuccess && in_progress ? ncclInProgress : result;
}

ncclResult_t pncclGroupEnd(void)
{
    if (group.depth == 0)
        return rondo_nccl_fail(ncclInvalidUsage, "ncclGroupEnd: there was no ncclGroupStart");
    return --group.depth > 0 ? ncclSuccess : end(1);
}
NCCL_EXPORT(ncclGroupEnd);

/* Ends the group without doing any of it, as in NCCL. */
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    ncclResult_t result = group.error;
    if (group.depth == 0)
        return rondo_nccl_fail(ncclInvalidUsage, "ncclGroupSimulateEnd: there was no ncclGroupStart");
    if (info != NULL && (info->magic != SIMULATION_MAGIC || info->size < sizeof(*info)))
        result = rondo_nccl_note(rondo_nccl_fail(
            ncclInvalidArgument, "ncclGroupSimulateEnd: simInfo was not initialized by NCCL_SIM_INFO_INITIALIZER"));
    else if (info != NULL)
        info->estimatedTime = result == ncclSuccess
                                  ? rondo_nccl_estimate(group.operations != NULL ? group.operations : group.few, group.count)
                                  : NCCL_UNDEF_FLOAT;
    if (--group.depth == 0)
        end(0);
    return result;
}
NCCL_EXPORT(ncclGroupSimulateEnd);
