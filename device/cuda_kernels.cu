/* The CUDA kernels: the daemon, and a kernel that carries its own engine for one operation in stream order. */
#include "cuda_kernels.h"
#include "daemon.h"

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

/* Runs this block's part until it is done or the lane has failed. Nobody else runs parts of an operation in stream order. */
static __device__ void rondo_lead_operation(struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            struct rondo_context *context, struct rondo_team *team)
{
    const struct rondo_operation *operation = &given->operation;
    uint32_t part = blockIdx.x - given->block_first;
    struct rondo_policy policy = daemon->policy;
    struct rondo_lane *lane = &daemon->lanes[operation->lane];
    const struct rondo_queues *queues = daemon->queues;
    struct rondo_run run;
    /* The lane's operation before may be on another stream. */
    for (uint32_t polls = 1; given->order != RONDO_UNORDERED && rondo_load_acquire_device(&lane->ordered) < given->order; polls++)
        if (polls % 4096 == 0 && rondo_interrupted(queues, operation->lane))
            break;
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
    do
        run.budget = policy.cap;
    while (rondo_engine_run(&run) == RONDO_OUTCOME_STUCK && !rondo_interrupted(queues, operation->lane));
    if (rondo_fetch_add(&lane->finished_parts, 1) + 1 == given->blocks) {
        rondo_store_relaxed(&lane->finished_parts, 0);
        rondo_store_relaxed(&lane->submitted, number + 1);
        if (given->order != RONDO_UNORDERED)
            rondo_store_relaxed(&lane->ordered, given->order + 1);
        rondo_store_release_device(&lane->completed, number + 1);
    }
}

static __device__ void rondo_lead(const struct rondo_stream_operation *operation, int is_daemon, struct rondo_daemon *daemon,
                                  struct rondo_block *block, struct rondo_context *context, struct rondo_team *team)
{
    if (is_daemon)
        rondo_lead_daemon(daemon, block, team);
    else
        rondo_lead_operation(daemon, operation, context, team);
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
    if (batch.count == 0)
        rondo_copy_words(&block, &daemon->blocks[blockIdx.x], sizeof(block), threadIdx.x, blockDim.x);
    while (i + 1 < batch.count && batch.operations[i + 1].block_first <= blockIdx.x)
        i++;
    __syncthreads();
    if (threadIdx.x < workers) {
        rondo_team_work(&team, threadIdx.x, workers);
    } else if (threadIdx.x == workers) {
        rondo_lead(&batch.operations[i], batch.count == 0, daemon, &block, &context, &team);
        rondo_team_dismiss(&team);
    } else {
        rondo_team_follow(&team);
    }
    if (batch.count != 0)
        return;
    __syncthreads();
    rondo_copy_words(&daemon->blocks[blockIdx.x], &block, sizeof(block), threadIdx.x, blockDim.x);
}

const void *rondo_cuda_kernel(void)
{
    return (const void *) rondo_main;
}
