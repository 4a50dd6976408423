/*
 * The CUDA kernels: the daemon, and kernels on streams that carry their own engine. Everything a kernel does is inlined: a
 * called function saves and restores registers in memory, which costs more than a small operation takes. Relies on
 * device/daemon, device/engine and device/cuda/move_tma.h.
 */
#include "device/cuda/kernels.h"

#include "device/cuda/move_tma.h"
#include "device/daemon/daemon.h"
#include "device/engine/engine.h"
#include "device/engine/warp_interpreter.h"
#include "device/engine/worker_loop.h"
#include "device/move/mover_table.h"

#define RONDO_GROUP_PATIENCE 64 /* rounds between a group's looks at the host's memory */
#define RONDO_GROUP_TICKS    (200 * RONDO_LOOK_TICKS) /* budget of one part of several in a visit, */
#define RONDO_ALONE_TICKS    (4000 * RONDO_LOOK_TICKS) /* and of a part that is alone: about a millisecond */
#define RONDO_WITHDRAW_POLLS (1 << 20) /* looks at a sender that is storing while its receiver gives up: a second */
#define RONDO_WARP_PATIENCE  1000 /* looks at warps that do not advance: about a millisecond */

/* A block's shared memory. */
struct rondo_cuda_block {
    struct rondo_workers workers;
    struct rondo_context context; /* of an operation in stream order */
    struct rondo_block block;     /* of the daemon */
    struct rondo_daemon daemon;
};

/* An object whose address the compiler knows: accesses through a pointer are slower by far. */
static __shared__ struct rondo_cuda_block rondo_here;

/* Rounds of the daemon until it quits. */
static __device__ void rondo_lead_daemon(const struct rondo_daemon *daemon, struct rondo_block *block, struct rondo_workers *workers)
{
    rondo_daemon_enter(daemon, block);
    while (rondo_daemon_round(daemon, block, workers, 0) != RONDO_DAEMON_QUITS)
        ;
}

/* Whether the lane has failed or the daemon has to stop. Reads the host's memory. */
static __device__ int rondo_interrupted(const struct rondo_queues *queues, uint32_t lane)
{
    return rondo_load_relaxed32(&queues->failed[lane]) != 0 || rondo_load_relaxed32(&queues->stop) != 0;
}

/* Counts an operation of a group as over. The last one of a launch comes after all use of the group's list. */
static __device__ __noinline__ void rondo_tell_over(const struct rondo_daemon *daemon, uint32_t place, uint32_t until)
{
    if ((uint32_t) rondo_fetch_add(&daemon->exchange->over[place], 1) + 1 == until)
        rondo_store_relaxed32(&daemon->queues->over[place], until);
}

/* Ends this block's part of an operation on a stream; the block that ends last completes the operation. told: 1 if the block
 * has reported being stuck; it is added in the upper half of the count, so that the last block knows it of all. */
static __device__ void rondo_finish_ordered(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            uint32_t lane_index, uint64_t told)
{
    struct rondo_lane *lane = &daemon->lanes[lane_index];
    if (given->blocks > 1) {
        uint64_t more = 1 + (told << 32), parts = rondo_fetch_add(&lane->finished_parts, more) + more;
        if ((uint32_t) parts != given->blocks)
            return;
        rondo_store_relaxed(&lane->finished_parts, 0);
        told = parts >> 32;
    }
    if (told != 0) /* the other blocks' reports came before they were counted */
        rondo_store_relaxed(&daemon->queues->stuck[lane_index], 0);
    rondo_count(&lane->submitted, 1);
    rondo_count(&lane->completed, 1);
    if (given->order != RONDO_UNORDERED) /* release, for a kernel on another stream that waits for it */
        rondo_store_release_device(&lane->ordered, given->order + 1);
    if (given->tells)
        rondo_tell_over(daemon, given->place, given->until);
}

/* Reports once that the operation with the number waits for long. */
static __device__ void rondo_tell_stuck(const struct rondo_daemon *daemon, uint32_t lane, uint64_t number, uint8_t *told)
{
    if (!*told)
        rondo_store_relaxed(&daemon->queues->stuck[lane], number + 1);
    *told = 1;
}

/* Gives the operation's buffers back after the lane has failed. */
static __device__ void rondo_give_up(const struct rondo_context *context, const struct rondo_workers *workers)
{
    for (uint32_t polls = 0; polls < RONDO_WITHDRAW_POLLS && !rondo_withdraw_direct_write(context, &workers->part); polls++)
        ;
}

/* Leads the warp interpreter until all warps have finished the part or the lane has failed. Returns whether being stuck was
 * reported. */
static __device__ uint8_t rondo_lead_warps(const struct rondo_daemon *daemon, struct rondo_run *run, struct rondo_workers *workers)
{
    const uint32_t lane = workers->operation.lane, senders = rondo_warp_senders(workers);
    const uint64_t tile = workers->operation.tile * workers->operation.element_bytes, tiles_end = workers->operation.tiles * tile;
    struct rondo_warp_cursor cursor = {0, 0, 0, 0, 0};
    uint8_t told = 0;
    workers->interpreter.ahead = workers->ahead = workers->may_run_ahead;
    if (!workers->ahead)
        rondo_arrive(run);
    rondo_workers_command(workers, RONDO_COMMAND_INTERPRET);
    rondo_arrive(run);
    for (uint32_t looks = 1, passed = 0, left = 0; cursor.start < tiles_end; looks++) {
        rondo_warp_follow(workers, tile, &cursor);
        if (senders != 0)
            left = rondo_warp_make_room(workers, left != 0 ? left : senders);
        looks = passed != cursor.passed ? 0 : looks;
        passed = cursor.passed;
        if (looks < RONDO_WARP_PATIENCE)
            continue;
        looks = 0;
        if (rondo_interrupted(daemon->queues, lane))
            break;
        rondo_report_missing(run, rondo_warp_missing(workers, &cursor));
        rondo_tell_stuck(daemon, lane, run->context->operation - 1, &told);
    }
    rondo_workers_ending(workers);
    rondo_store_relaxed32(&workers->interpreter.stop, 1);
    rondo_workers_finish(workers);
    rondo_count(&run->statistics->primitives, cursor.primitives);
    rondo_count(&run->statistics->bytes_sent, cursor.sent);
    return told;
}

/* Leads this block's part of an operation until it is done or the lane has failed. No other block executes the same part. */
static __device__ void rondo_lead_operation(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            uint32_t part, struct rondo_context *context, struct rondo_workers *workers, int all_lines)
{
    const struct rondo_queues *queues = daemon->queues;
    uint8_t told = 0;
    struct rondo_run run;
    rondo_prepare_run(&run, daemon, workers->operation.lane, &given->operation, part, context);
    run.fresh = run.of_daemon = run.keeps = 0; /* the preamble has loaded it */
    run.early = 1;
    workers->may_run_ahead = !given->waits;
    run.workers = workers;
    run.statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run.policy = &daemon->policy;
    run.interrupts = NULL;
    if (rondo_launch_mode(workers->operation.warp_mode, 0, 0, all_lines) == RONDO_WARP_MODE_LINES) {
        told = rondo_lead_warps(daemon, &run, workers);
        rondo_finish_ordered(daemon, given, workers->operation.lane, told);
        return;
    }
    for (;;) {
        run.budget = RONDO_ALONE_TICKS;
        if (rondo_engine_run(&run) == RONDO_OUTCOME_FINISHED)
            break;
        if (rondo_interrupted(queues, workers->operation.lane)) {
            rondo_give_up(context, workers);
            break;
        }
        rondo_tell_stuck(daemon, workers->operation.lane, context->operation - 1, &told);
    }
    rondo_finish_ordered(daemon, given, workers->operation.lane, told);
}

/* Waits until it is the operation's turn in its lane, and gives the operation its number. By one thread, before anything of
 * the lane is read. */
static __device__ void rondo_await_turn(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                        struct rondo_context *context)
{
    const struct rondo_lane *lane = &daemon->lanes[given->operation.lane];
    for (uint32_t polls = 1; given->waits && rondo_load_acquire_device(&lane->ordered) < given->order; polls++)
        if (polls % 4096 == 0 && rondo_load_relaxed32(&daemon->queues->stop) != 0)
            break; /* a failed lane's earlier operation is about to end, too, and comes first all the same */
    /* The number by which the blocks of one operation know it: its order, which is no number of the daemon's; in a graph the
     * lane's count, because the operation before has completed and the next one waits for this one, so that all blocks read
     * the same. */
    if (given->order != RONDO_UNORDERED)
        context->operation = RONDO_ORDERED_NUMBER(given->order);
    else
        context->operation = rondo_load_acquire_device(&lane->completed) + 1;
}

/* Only the leader waits: it alone reads what earlier kernels may have written, except data, which the workers touch when the
 * leader has told them to; and except a slice operation that they execute without it (rondo_workers_run_ahead). */
RONDO_FUNCTION void rondo_workers_arrive(struct rondo_workers *workers, const struct rondo_run *run)
{
    rondo_after_stream();
    const int one_slice_op = workers->operation.tiles == 1 && workers->operation.slices == 1;
    if (workers->part.end_count > 0 && (workers->ends[0].protocol == RONDO_PROTOCOL_LL ||
                                     (workers->ends[0].protocol == RONDO_PROTOCOL_LL128 && one_slice_op)))
        rondo_workers_ending(workers); /* such a kernel hardly takes longer than a launch */
    rondo_await_turn(&rondo_here.daemon, (const struct rondo_stream_operation *) run->home, run->context);
    if (!workers->ahead)
        rondo_workers_look_again(workers);
}

/* ---- groups ---- */

/* State of one of a block's parts. Small: a kernel whose threads need more than a kilobyte of stack is launched only when
 * all that runs has ended. */
struct rondo_part_flags {
    uint8_t begun : 1, told : 1, done : 1;
};

/* Visits a part: continues it where it stands until it is done or stuck. Returns 1 if it is done. */
static __device__ int rondo_visit_part(const struct rondo_daemon *daemon, const struct rondo_cuda_group *group, uint32_t index,
                                       int looks, uint64_t budget, struct rondo_part_flags *flags,
                                       struct rondo_workers *workers)
{
    struct rondo_context *context = &rondo_here.context;
    const struct rondo_stream_operation *given = &group->visits[index].given;
    uint32_t part = index - given->block_first, lane_index = given->operation.lane;
    const struct rondo_lane *lane = &daemon->lanes[lane_index];
    struct rondo_context *home = &group->visits[index].context;
    struct rondo_run run;
    int interrupted = looks && rondo_interrupted(daemon->queues, lane_index);
    if (given->waits && rondo_load_acquire_device(&lane->ordered) < given->order &&
        !(looks && rondo_load_relaxed32(&daemon->queues->stop) != 0))
        return 0; /* the lane's previous operation may be another block's, or on another stream */
    uint64_t number = rondo_load_acquire_device(&lane->completed); /* the same until this part, too, is done */
    if (flags->begun) {
        *context = *home;
    } else {
        struct rondo_context fresh = {};
        *context = fresh;
        context->operation = number + 1;
        flags->begun = 1;
    }
    rondo_prepare_run(&run, daemon, lane_index, &given->operation, part, context);
    run.fresh = run.of_daemon = run.keeps = 0; /* the worker group has had nothing of the list before this launch */
    run.workers = workers;
    run.statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run.policy = &daemon->policy;
    run.interrupts = NULL;
    run.budget = budget;
    const int finished = rondo_engine_run(&run) == RONDO_OUTCOME_FINISHED;
    if (!finished && interrupted)
        rondo_give_up(context, workers);
    if (finished || interrupted) {
        rondo_finish_ordered(daemon, given, lane_index, flags->told);
        return 1;
    }
    *home = *context;
    uint8_t told = flags->told;
    if (looks)
        rondo_tell_stuck(daemon, lane_index, number, &told);
    flags->told = told;
    return 0;
}

/* Visits the block's parts of a group in turn until all are done. None waits for another of the same block, so members of a
 * group may wait for each other across ranks in any way, however few blocks execute them. */
static __device__ void rondo_lead_group(const struct rondo_daemon *daemon, const struct rondo_cuda_group *group, struct rondo_workers *workers)
{
    struct rondo_part_flags flags[RONDO_CUDA_PARTS_MAX];
    uint32_t mine = (group->parts - blockIdx.x + gridDim.x - 1) / gridDim.x, left = mine;
    for (uint32_t k = 0; k < mine; k++)
        flags[k].begun = flags[k].told = flags[k].done = 0;
    for (uint32_t round = 1; left > 0; round++)
        for (uint32_t k = 0; k < mine; k++) {
            uint64_t budget = left == 1 ? RONDO_ALONE_TICKS : RONDO_GROUP_TICKS;
            if (!flags[k].done && rondo_visit_part(daemon, group, blockIdx.x + k * gridDim.x, round % RONDO_GROUP_PATIENCE == 0,
                                                   budget, &flags[k], workers)) {
                flags[k].done = 1;
                left--;
            }
        }
}

/* Copies the operations of the block's parts from the host's memory to the list. */
static __device__ void rondo_bring_in_list(const struct rondo_cuda_group *group)
{
    enum { VECTORS = sizeof(struct rondo_stream_operation) / 16 };
    static_assert(sizeof(struct rondo_stream_operation) % 16 == 0 && sizeof(struct rondo_cuda_visit) % 16 == 0, "whole vectors");
    const uint32_t mine = (group->parts - blockIdx.x + gridDim.x - 1) / gridDim.x;
    for (uint32_t v = threadIdx.x; v < mine * VECTORS; v += blockDim.x) {
        const uint32_t index = blockIdx.x + v / VECTORS * gridDim.x;
        const uint4 *from = (const uint4 *) &group->operations[group->owners[index]];
        ((uint4 *) &group->visits[index].given)[v % VECTORS] = from[v % VECTORS];
    }
}

/* Copies the operation and this block's part of it to shared memory. What the host wrote before the launch can be read; what
 * earlier kernels may have written cannot yet. */
static __device__ __forceinline__ void rondo_bring_in(const struct rondo_stream_operation *given, struct rondo_cuda_block *shared)
{
    struct rondo_workers *workers = &rondo_here.workers;
    rondo_copy_vectors(&workers->operation, &given->operation, sizeof(workers->operation), threadIdx.x, blockDim.x);
    if (threadIdx.x < sizeof(shared->context) / 4)
        ((uint32_t *) &shared->context)[threadIdx.x] = 0;
    __syncthreads();
    rondo_workers_load_part(workers, threadIdx.x, blockDim.x);
    __syncthreads();
    rondo_workers_load_instructions(workers, threadIdx.x, blockDim.x);
    rondo_workers_load_ends(workers, threadIdx.x, blockDim.x); /* as they are now; rondo_workers_look_again */
}

/* The body of all kernels but the tma kernel. given: the block's operation; group: the list whose parts the block visits;
 * both NULL: the daemon. all_lines, a constant: see rondo_workers_work. */
static __device__ __forceinline__ void rondo_block_main(const struct rondo_daemon *daemon,
                                                        const struct rondo_stream_operation *given,
                                                        const struct rondo_cuda_group *group, int all_lines)
{
    const int of_daemon = given == NULL && group == NULL;
    struct rondo_cuda_block *shared = &rondo_here;
    struct rondo_workers *workers = &rondo_here.workers;
    uint32_t worker_count = blockDim.x - RONDO_CUDA_CONTROL, part = given != NULL ? blockIdx.x - given->block_first : 0;
    if (threadIdx.x == 0) {
        rondo_workers_reset(workers);
        workers->home = given != NULL ? &given->operation : NULL;
        workers->program_block = part;
        workers->page = 0;
    }
    rondo_copy_vectors(&shared->daemon, daemon, sizeof(*daemon), threadIdx.x, blockDim.x);
    if (group != NULL) {
        rondo_after_stream();
        rondo_bring_in_list(group);
    } else if (given == NULL) {
        rondo_copy_vectors(&shared->block, &daemon->blocks[blockIdx.x], sizeof(shared->block), threadIdx.x, blockDim.x);
    } else {
        rondo_bring_in(given, shared);
        if (rondo_launch_mode(workers->operation.warp_mode, 0, 0, all_lines) == RONDO_WARP_MODE_LINES) {
            __syncthreads();
            rondo_warp_prepare(workers, threadIdx.x, blockDim.x);
        }
    }
    __syncthreads();
    if (threadIdx.x < worker_count) {
        rondo_workers_work(workers, threadIdx.x, worker_count, all_lines, of_daemon);
    } else if (threadIdx.x == worker_count) { /* the leader, alone in its warp */
        if (given != NULL || group != NULL)
            shared->daemon.policy.preempt = 1; /* only a daemon's wait may be without a budget */
        if (group != NULL)
            rondo_lead_group(&shared->daemon, group, workers);
        else if (given == NULL)
            rondo_lead_daemon(&shared->daemon, &shared->block, workers);
        else
            rondo_lead_operation(&shared->daemon, given, part, &shared->context, workers, all_lines);
        rondo_workers_dismiss(workers);
    }
    if (given != NULL || group != NULL)
        return;
    __syncthreads();
    rondo_copy_vectors(&daemon->blocks[blockIdx.x], &shared->block, sizeof(shared->block), threadIdx.x, blockDim.x);
}

#define RONDO_KERNEL static __global__ void __launch_bounds__(RONDO_CUDA_WORKERS_MAX + RONDO_CUDA_CONTROL, 1)

RONDO_KERNEL rondo_daemon_kernel(const __grid_constant__ struct rondo_daemon daemon)
{
    rondo_block_main(&daemon, NULL, NULL, 0);
}

RONDO_KERNEL rondo_operation_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                    const __grid_constant__ struct rondo_stream_operation operation)
{
    rondo_block_main(&daemon, &operation, NULL, 0);
}

RONDO_KERNEL rondo_lines_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                const __grid_constant__ struct rondo_stream_operation operation)
{
    rondo_block_main(&daemon, &operation, NULL, 1);
}

/* Index of the operation that the block executes a part of. */
static __device__ __forceinline__ uint32_t rondo_in_batch(const struct rondo_cuda_batch *batch)
{
    uint32_t i = 0;
    while (i + 1 < batch->count && batch->operations[i + 1].block_first <= blockIdx.x)
        i++;
    return i;
}

RONDO_KERNEL rondo_operations_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                     const __grid_constant__ struct rondo_cuda_batch batch)
{
    rondo_block_main(&daemon, &batch.operations[rondo_in_batch(&batch)], NULL, 0);
}

RONDO_KERNEL rondo_all_lines_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                    const __grid_constant__ struct rondo_cuda_batch batch)
{
    rondo_block_main(&daemon, &batch.operations[rondo_in_batch(&batch)], NULL, 1);
}

/* ---- move_tma ---- */

#if __CUDA_ARCH__ >= 900

static __shared__ struct rondo_tma rondo_tma_here;
extern __shared__ __align__(128) char rondo_tma_cells[];
static_assert(sizeof(struct rondo_cuda_block) + sizeof(struct rondo_tma) + RONDO_TMA_SHARED <= 227 * 1024, "a block's most");

/* Leads move_tma until the part is finished or the lane has failed. Returns whether being stuck was reported. */
static __device__ uint8_t rondo_lead_tma(const struct rondo_daemon *daemon, struct rondo_run *run, struct rondo_workers *workers)
{
    struct rondo_tma *tma = &rondo_tma_here;
    struct rondo_block_statistics *statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    const uint32_t lane = workers->operation.lane;
    struct rondo_tma_cursor at = rondo_tma_begin(workers);
    uint64_t sent = 0;
    uint8_t told = 0, ending = 0;
    for (uint32_t looks = 1; rondo_tma_next(workers, &at) != 0; looks++) {
        const uint32_t stored = rondo_tma_look(&tma->stored);
        if (stored != at.slice_ops) {
            rondo_tma_tell(workers, tma, &at, stored, &sent);
            looks = 0;
        }
        if (!ending && at.tile + at.tile_bytes >= at.end && at.instruction + 1 == at.instructions) {
            rondo_workers_ending(workers);
            ending = 1;
        }
        if (looks < RONDO_TMA_PATIENCE)
            continue;
        looks = 0;
        if (rondo_interrupted(daemon->queues, lane)) {
            rondo_tma_say(&tma->stop, 1);
            break;
        }
        rondo_report_missing(run, rondo_tma_missing(workers, tma, &at));
        rondo_tell_stuck(daemon, lane, run->context->operation - 1, &told);
    }
    rondo_workers_ending(workers);
    rondo_count(&statistics->primitives, at.slice_ops);
    rondo_count(&statistics->bytes_sent, sent);
    return told;
}

static __device__ void rondo_tma_main(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given)
{
    enum {
        LOADER = 0,
        STORER = RONDO_CUDA_WARP,
        POLLERS = 2 * RONDO_CUDA_WARP,
        REDUCERS = POLLERS + RONDO_CUDA_WARP,
        LEADER = REDUCERS + RONDO_TMA_REDUCERS
    };
    struct rondo_cuda_block *shared = &rondo_here;
    struct rondo_workers *workers = &rondo_here.workers;
    struct rondo_tma *tma = &rondo_tma_here;
    const uint32_t thread = threadIdx.x;
    struct rondo_run run;
    uint8_t told = 0;
    if (thread == 0) {
        workers->program_block = blockIdx.x - given->block_first;
        workers->page = 0;
    }
    rondo_copy_vectors(&shared->daemon, daemon, sizeof(*daemon), thread, blockDim.x);
    rondo_bring_in(given, shared);
    __syncthreads();
    rondo_tma_decode(workers, tma, thread, blockDim.x);
    if (thread == LEADER) {
        rondo_prepare_run(&run, &shared->daemon, workers->operation.lane, &given->operation, workers->program_block, &shared->context);
        rondo_after_stream();
        rondo_await_turn(&shared->daemon, given, &shared->context);
    }
    __syncthreads();
    rondo_tma_look_for_waits(workers, tma, thread);
    rondo_tma_arrive(workers, thread);
    __syncthreads();
    if (thread == LOADER)
        rondo_tma_load(workers, tma, rondo_tma_cells);
    else if (thread == STORER)
        rondo_tma_store(workers, tma, rondo_tma_cells);
    else if (thread == LEADER)
        told = rondo_lead_tma(&shared->daemon, &run, workers);
    else if (thread >= POLLERS && thread < REDUCERS)
        rondo_tma_poll(workers, tma, thread - POLLERS);
    else if (thread >= REDUCERS && thread < LEADER)
        rondo_tma_reduce(workers, tma, rondo_tma_cells, thread - REDUCERS);
    __syncwarp();
    __syncthreads();
    rondo_tma_leave(workers, tma, thread);
    __syncthreads();
    if (thread == LEADER)
        rondo_finish_ordered(&shared->daemon, given, workers->operation.lane, told);
}

#else

/* Never launched: the selection has asked for the GPUs of all ranks. */
static __device__ void rondo_tma_main(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given)
{
    (void) daemon;
    (void) given;
    __trap();
}

#endif

static __global__ void __launch_bounds__(RONDO_TMA_THREADS, 1)
    rondo_tma_kernel(const __grid_constant__ struct rondo_daemon daemon, const __grid_constant__ struct rondo_cuda_batch batch)
{
    rondo_tma_main(&daemon, &batch.operations[rondo_in_batch(&batch)]);
}

RONDO_KERNEL rondo_group_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                const __grid_constant__ struct rondo_cuda_group group)
{
    rondo_block_main(&daemon, NULL, &group, 0);
}

static __global__ void __launch_bounds__(1, 1) rondo_fetch_kernel(const uint64_t *from, uint64_t *to, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        rondo_store_relaxed(&to[w], rondo_load_relaxed(&from[w]));
}

const void *rondo_cuda_kernel(enum rondo_cuda_kernel kernel)
{
    static const void *const kernels[RONDO_CUDA_KERNELS] = {(const void *) rondo_daemon_kernel,
                                                            (const void *) rondo_operation_kernel,
                                                            (const void *) rondo_lines_kernel,
                                                            (const void *) rondo_operations_kernel,
                                                            (const void *) rondo_all_lines_kernel,
                                                            (const void *) rondo_tma_kernel,
                                                            (const void *) rondo_group_kernel,
                                                            (const void *) rondo_fetch_kernel};
    return kernels[kernel];
}
