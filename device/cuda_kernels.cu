/*
 * The CUDA kernels: the daemon, and kernels that carry their own engine for operations in stream order. What a block does is
 * compiled once, and called by all of them.
 */
#include "cuda_kernels.h"
#include "daemon.h"

/* A block's shared memory. */
struct rondo_cuda_block {
    struct rondo_team team;
    struct rondo_context context; /* of an operation in stream order */
    struct rondo_block block;     /* of the daemon */
    struct rondo_daemon daemon;
};

static __device__ void rondo_lead_daemon(const struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_team *team)
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
static __device__ void rondo_lead_operation(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            uint32_t part, struct rondo_context *context, struct rondo_team *team)
{
    struct rondo_lane *lane = &daemon->lanes[team->operation.lane];
    const struct rondo_queues *queues = daemon->queues;
    uint64_t number = context->operation - 1;
    struct rondo_run *run = &team->run; /* not on the stack: local memory is slow after every acquire */
    rondo_prepare_run(run, daemon, team->operation.lane, &given->operation, part, context);
    run->fresh = 0; /* the preamble has loaded it */
    run->team = team;
    run->statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run->policy = &daemon->policy;
    run->interrupts = NULL;
    do
        run->budget = daemon->policy.cap;
    while (rondo_engine_run(run) == RONDO_OUTCOME_STUCK && !rondo_interrupted(queues, team->operation.lane));
    if (given->blocks > 1) {
        if (rondo_fetch_add(&lane->finished_parts, 1) + 1 != given->blocks)
            return;
        rondo_store_relaxed(&lane->finished_parts, 0);
    }
    rondo_store_relaxed(&lane->submitted, number + 1);
    rondo_store_relaxed(&lane->completed, number + 1);
    if (given->order != RONDO_UNORDERED) /* release, for a kernel on another stream that waits for it */
        rondo_store_release_device(&lane->ordered, given->order + 1);
}

/* What the stream holds before this kernel is done from here on. The kernel may have been launched before that was so, because
 * its like goes on; and the next one may be launched now. */
static __device__ void rondo_after_stream(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* By one thread, before anything of the lane is looked at. */
static __device__ void rondo_await_turn(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                        struct rondo_context *context)
{
    const struct rondo_lane *lane = &daemon->lanes[given->operation.lane];
    for (uint32_t polls = 1; given->waits && rondo_load_acquire_device(&lane->ordered) < given->order; polls++)
        if (polls % 4096 == 0 && rondo_interrupted(daemon->queues, given->operation.lane))
            break;
    /* The one before has completed, and the next one waits for this one. So the count is the same for all blocks until the last
     * one changes it. */
    context->operation = rondo_load_acquire_device(&lane->completed) + 1;
}

static __device__ __noinline__ void rondo_block_main(struct rondo_cuda_block *shared, const struct rondo_daemon *daemon,
                                                     const struct rondo_stream_operation *given)
{
    struct rondo_team *team = &shared->team;
    uint32_t workers = blockDim.x - RONDO_CUDA_CONTROL, part = given != NULL ? blockIdx.x - given->block_first : 0;
    if (threadIdx.x == 0) {
        team->current = team->turn = team->running = team->step = 0;
        team->home = given != NULL ? &given->operation : NULL;
        team->program_block = part;
    }
    rondo_copy_vectors(&shared->daemon, daemon, sizeof(*daemon), threadIdx.x, blockDim.x);
    if (given == NULL) {
        rondo_copy_vectors(&shared->block, &daemon->blocks[blockIdx.x], sizeof(shared->block), threadIdx.x, blockDim.x);
    } else {
        rondo_copy_vectors(&team->operation, &given->operation, sizeof(team->operation), threadIdx.x, blockDim.x);
        if (threadIdx.x < sizeof(shared->context) / 4)
            ((uint32_t *) &shared->context)[threadIdx.x] = 0;
        rondo_after_stream();
        __syncthreads();
        rondo_team_load_part(team, threadIdx.x, blockDim.x);
        if (threadIdx.x == workers)
            rondo_await_turn(daemon, given, &shared->context);
        __syncthreads();
        rondo_team_load_lists(team, threadIdx.x, blockDim.x);
    }
    __syncthreads();
    if (threadIdx.x < workers) {
        rondo_team_work(team, threadIdx.x, workers);
    } else if (threadIdx.x > workers) {
        rondo_team_follow(team);
    } else {
        if (given == NULL)
            rondo_lead_daemon(&shared->daemon, &shared->block, team);
        else
            rondo_lead_operation(&shared->daemon, given, part, &shared->context, team);
        rondo_team_dismiss(team);
    }
    if (given != NULL)
        return;
    __syncthreads();
    rondo_copy_vectors(&daemon->blocks[blockIdx.x], &shared->block, sizeof(shared->block), threadIdx.x, blockDim.x);
}

#define RONDO_KERNEL static __global__ void __launch_bounds__(RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 1)

RONDO_KERNEL rondo_daemon_kernel(const __grid_constant__ struct rondo_daemon daemon)
{
    __shared__ struct rondo_cuda_block shared;
    rondo_block_main(&shared, &daemon, NULL);
}

RONDO_KERNEL rondo_operation_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                    const __grid_constant__ struct rondo_stream_operation operation)
{
    __shared__ struct rondo_cuda_block shared;
    rondo_block_main(&shared, &daemon, &operation);
}

RONDO_KERNEL rondo_operations_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                     const __grid_constant__ struct rondo_cuda_batch batch)
{
    __shared__ struct rondo_cuda_block shared;
    uint32_t i = 0;
    while (i + 1 < batch.count && batch.operations[i + 1].block_first <= blockIdx.x)
        i++;
    rondo_block_main(&shared, &daemon, &batch.operations[i]);
}

const void *rondo_cuda_kernel(enum rondo_cuda_kernel kernel)
{
    static const void *const kernels[RONDO_CUDA_KERNELS] = {(const void *) rondo_daemon_kernel,
                                                            (const void *) rondo_operation_kernel,
                                                            (const void *) rondo_operations_kernel};
    return kernels[kernel];
}
