/* The CUDA kernels: the daemon, and a kernel that carries its own engine for one operation in stream order. */
#include "cuda_kernels.h"
#include "daemon.h"

#define RONDO_GROUP_PATIENCE 64 /* rounds between a group's looks into the host's memory, and until it is called stuck */

static __device__ void rondo_lead_daemon(struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_team *team)
{
    rondo_daemon_enter(daemon, block);
    while (rondo_daemon_round(daemon, block, team, 0) != RONDO_DAEMON_QUITS)
        ;
}

/* Looks into the host's memory. */
static __device__ int rondo_interrupted(const struct rondo_queues *queues, uint32_t lane)
{
    return rondo_load_relaxed32(&queues->failed[lane]) != 0 || rondo_load_relaxed32(&queues->stop) != 0;
}

/* The part is done; the last one completes the operation. Parts that were stuck count in the upper half as well, so that the last
 * one knows, without looking, whether the host has been told. */
static __device__ void rondo_finish_ordered(struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            uint64_t number, uint32_t was_stuck)
{
    struct rondo_lane *lane = &daemon->lanes[given->operation.lane];
    uint64_t more = 1 + ((uint64_t) was_stuck << 32), parts = rondo_fetch_add(&lane->finished_parts, more) + more;
    if ((uint32_t) parts != given->blocks)
        return;
    if (parts >> 32 != 0) /* the others' stores of it came before they were counted */
        rondo_store_relaxed(&daemon->queues->stuck[given->operation.lane], 0);
    rondo_store_relaxed(&lane->finished_parts, 0);
    rondo_store_relaxed(&lane->submitted, number + 1);
    if (given->order != RONDO_UNORDERED)
        rondo_store_relaxed(&lane->ordered, given->order + 1);
    rondo_store_release_device(&lane->completed, number + 1);
}

static __device__ void rondo_tell_stuck(struct rondo_daemon *daemon, const struct rondo_stream_operation *given, uint64_t number,
                                        uint8_t *told)
{
    if (!*told)
        rondo_store_relaxed(&daemon->queues->stuck[given->operation.lane], number + 1);
    *told = 1;
}

/* Runs this block's part until it is done or the lane has failed. Nobody else runs parts of an operation in stream order. */
static __device__ void rondo_lead_operation(struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            struct rondo_context *context, struct rondo_team *team)
{
    const struct rondo_operation *operation = &given->operation;
    uint32_t part = blockIdx.x - given->block_first;
    uint8_t was_stuck = 0;
    struct rondo_policy policy = daemon->policy;
    struct rondo_lane *lane = &daemon->lanes[operation->lane];
    const struct rondo_queues *queues = daemon->queues;
    struct rondo_run run;
    /* The lane's operation before may be on another stream. */
    for (uint32_t polls = 1; given->order != RONDO_UNORDERED && rondo_load_acquire_device(&lane->ordered) < given->order; polls++)
        if (polls % 4096 == 0 && rondo_load_relaxed32(&queues->stop) != 0)
            break; /* if the lane has failed, that one is about to end, too, and comes first all the same */
    /* It has completed, and the next one waits for this one. So the count is the same for all blocks until the last one changes
     * it. */
    uint64_t number = rondo_load_acquire_device(&lane->completed);
    context->operation = number + 1;
    policy.preempt = 1;
    rondo_prepare_run(&run, daemon, operation, part, context);
    run.team = team;
    run.statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run.policy = &policy;
    run.interrupts = NULL;
    for (;;) {
        run.budget = policy.cap;
        if (rondo_engine_run(&run) == RONDO_OUTCOME_FINISHED || rondo_interrupted(queues, operation->lane))
            break;
        rondo_tell_stuck(daemon, given, number, &was_stuck);
    }
    rondo_finish_ordered(daemon, given, number, was_stuck);
}

/* ---- groups ---- */

/* Of one of a block's parts. */
struct rondo_part_flags {
    uint8_t begun, told, done;
};

/* One visit: runs on where the part stands until it is done or stuck. 1: done. Its context waits meanwhile among the daemon's,
 * which has no use for those of the lane: its operations are all in stream order, or this one's owner would not be here. */
static __device__ int rondo_visit_part(struct rondo_daemon *daemon, const struct rondo_cuda_batch *batch, uint32_t index,
                                       uint32_t round, uint64_t budget, struct rondo_part_flags *flags,
                                       struct rondo_context *context, struct rondo_team *team)
{
    const struct rondo_stream_operation *given = &batch->list[batch->owners[index]];
    const struct rondo_operation *operation = &given->operation;
    uint32_t part = index - given->block_first;
    struct rondo_lane *lane = &daemon->lanes[operation->lane];
    struct rondo_context *home = &daemon->contexts[operation->lane * daemon->lane_contexts + part];
    struct rondo_policy policy = daemon->policy;
    struct rondo_run run;
    int looks = round % RONDO_GROUP_PATIENCE == 0;
    int interrupted = looks && rondo_interrupted(daemon->queues, operation->lane);
    if (given->order != RONDO_UNORDERED && rondo_load_acquire_device(&lane->ordered) < given->order &&
        !(looks && rondo_load_relaxed32(&daemon->queues->stop) != 0))
        return 0; /* the lane's operation before may be another block's, or on another stream */
    uint64_t number = rondo_load_acquire_device(&lane->completed); /* as above: the same until this part, too, is done */
    if (flags->begun) {
        *context = *home;
    } else {
        struct rondo_context fresh = {};
        *context = fresh;
        context->operation = number + 1;
        flags->begun = 1;
    }
    policy.preempt = 1;
    rondo_prepare_run(&run, daemon, operation, part, context);
    run.team = team;
    run.statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run.policy = &policy;
    run.interrupts = NULL;
    run.budget = budget;
    if (rondo_engine_run(&run) == RONDO_OUTCOME_FINISHED || interrupted) {
        rondo_finish_ordered(daemon, given, number, flags->told);
        return 1;
    }
    *home = *context;
    if (looks)
        rondo_tell_stuck(daemon, given, number, &flags->told);
    return 0;
}

/* Every part is visited again and again, so none waits for another of the same block: members of a group may wait for each other
 * across ranks in any way, however few blocks carry them. Not inlined: the registers are the other two's. */
static __device__ __noinline__ void rondo_lead_group(struct rondo_daemon *daemon, const struct rondo_cuda_batch *batch,
                                        struct rondo_context *context, struct rondo_team *team)
{
    struct rondo_part_flags flags[RONDO_CUDA_PARTS_MAX];
    uint32_t mine = (batch->parts - blockIdx.x + gridDim.x - 1) / gridDim.x, left = mine;
    for (uint32_t k = 0; k < mine; k++)
        flags[k].begun = flags[k].told = flags[k].done = 0;
    for (uint32_t round = 1; left > 0; round++)
        for (uint32_t k = 0; k < mine; k++) {
            uint64_t budget = left == 1 ? daemon->policy.cap : daemon->policy.initial;
            if (!flags[k].done &&
                rondo_visit_part(daemon, batch, blockIdx.x + k * gridDim.x, round, budget, &flags[k], context, team)) {
                flags[k].done = 1;
                left--;
            }
        }
}

static __device__ void rondo_lead(const struct rondo_cuda_batch *batch, uint32_t member, struct rondo_daemon *daemon,
                                  struct rondo_block *block, struct rondo_context *context, struct rondo_team *team)
{
    if (batch->count != 0)
        rondo_lead_operation(daemon, &batch->operations[member], context, team);
    else if (batch->parts != 0)
        rondo_lead_group(daemon, batch, context, team);
    else
        rondo_lead_daemon(daemon, block, team);
}

/* The one kernel: what it includes is large, and compiled once. Without operations it is the daemon. */
static __global__ void __launch_bounds__(RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 1)
    rondo_main(const __grid_constant__ struct rondo_cuda_batch batch, struct rondo_daemon *daemon)
{
    __shared__ struct rondo_team team;
    __shared__ struct rondo_context context;
    __shared__ struct rondo_block block;
    uint32_t workers = blockDim.x - RONDO_CUDA_CONTROL, i = 0;
    if (threadIdx.x == 0)
        team.current = team.running = team.step = 0;
    if (threadIdx.x < sizeof(context) / 4)
        ((uint32_t *) &context)[threadIdx.x] = 0;
    int is_daemon = batch.count == 0 && batch.parts == 0;
    if (is_daemon)
        rondo_copy_words(&block, &daemon->blocks[blockIdx.x], sizeof(block), threadIdx.x, blockDim.x);
    while (i + 1 < batch.count && batch.operations[i + 1].block_first <= blockIdx.x)
        i++;
    __syncthreads();
    if (threadIdx.x < workers) {
        rondo_team_work(&team, threadIdx.x, workers);
    } else if (threadIdx.x == workers) {
        rondo_lead(&batch, i, daemon, &block, &context, &team);
        rondo_team_dismiss(&team);
    } else {
        rondo_team_follow(&team);
    }
    if (!is_daemon)
        return;
    __syncthreads();
    rondo_copy_words(&daemon->blocks[blockIdx.x], &block, sizeof(block), threadIdx.x, blockDim.x);
}

const void *rondo_cuda_kernel(void)
{
    return (const void *) rondo_main;
}
