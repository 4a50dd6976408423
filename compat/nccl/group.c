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
    free(job);
}

static void *run(void *argument)
{
    struct rondo_nccl_job *job = argument;
    job->status = job->run(job);
    return NULL;
}

static void *run_alone(void *argument)
{
    run(argument);
    conclude(argument);
    return NULL;
}

static ncclResult_t detach(struct rondo_nccl_job *job)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_alone, job) != 0) {
        job->status = rondo_nccl_fail(ncclSystemError, "a thread cannot be made");
        ncclResult_t status = job->status;
        conclude(job);
        return status;
    }
    pthread_detach(thread);
    return ncclInProgress;
}

/* All of the list at once, late ones or the others; they are taken out of it. */
static ncclResult_t run_jobs(struct rondo_nccl_job **list, int late)
{
    struct rondo_nccl_job *mine = NULL, **last = &mine, *job;
    ncclResult_t result = ncclSuccess;
    int blocking = 1, count = 0;
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
        count++;
    }
    for (struct rondo_nccl_job *next = mine; blocking && count > 1 && (job = next) != NULL; next = job->next)
        job->threaded = pthread_create(&job->thread, NULL, run, job) == 0;
    for (struct rondo_nccl_job *next = mine; (job = next) != NULL;) {
        next = job->next;
        ncclResult_t one;
        if (!blocking) {
            one = detach(job);
        } else {
            if (job->threaded)
                pthread_join(job->thread, NULL);
            else if (count == 1)
                run(job);
            else
                job->status = rondo_nccl_fail(ncclSystemError, "a thread cannot be made");
            one = job->status;
            conclude(job);
        }
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
