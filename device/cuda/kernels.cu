/*
 * The CUDA kernels: the daemon, and kernels that carry their own engine for operations in stream order. Each has all it does
 * inlined: what is called saves and restores registers in memory, which costs more than a small operation takes.
 */
#include "device/cuda/kernels.h"
#include "device/cuda/move_tma.h"
#include "device/engine/warp_interpreter.h"
#include "device/daemon/daemon.h"

#define RONDO_GROUP_PATIENCE 64 /* rounds between a group's looks into the host's memory */
#define RONDO_GROUP_POLLS    200 /* of one of a group's parts in one visit, */
#define RONDO_ALONE_POLLS    4000 /* and of a part that is alone: about a millisecond */
#define RONDO_WITHDRAW_POLLS (1 << 20) /* of a sender that is storing where its receiver gives up: a second */
#define RONDO_WALK_PATIENCE  1000 /* looks at warps that do not come on; likewise */

/* A block's shared memory. */
struct rondo_cuda_block {
    struct rondo_team team;
    struct rondo_context context; /* of an operation in stream order */
    struct rondo_block block;     /* of the daemon */
    struct rondo_daemon daemon;
};

/* One object that the compiler knows the place of: accesses through a pointer it knows nothing of are slower by far. */
static __shared__ struct rondo_cuda_block rondo_here;

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

/* The last one of a launch comes after all that the others did with the group's list. */
static __device__ __noinline__ void rondo_tell_over(const struct rondo_daemon *daemon, uint32_t place, uint32_t until)
{
    if ((uint32_t) rondo_fetch_add(&daemon->meeting_point->over[place], 1) + 1 == until)
        rondo_store_relaxed32(&daemon->queues->over[place], until);
}

/* The part is done; the last one completes the operation. told: of being stuck, which counts in the upper half, so that the last one
 * knows it of all. */
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
    if (told != 0) /* the others' stores of it came before they were counted */
        rondo_store_relaxed(&daemon->queues->stuck[lane_index], 0);
    rondo_count(&lane->submitted, 1);
    rondo_count(&lane->completed, 1);
    if (given->order != RONDO_UNORDERED) /* release, for a kernel on another stream that waits for it */
        rondo_store_release_device(&lane->ordered, given->order + 1);
    if (given->tells)
        rondo_tell_over(daemon, given->place, given->until);
}

static __device__ void rondo_tell_stuck(const struct rondo_daemon *daemon, uint32_t lane, uint64_t number, uint8_t *told)
{
    if (!*told)
        rondo_store_relaxed(&daemon->queues->stuck[lane], number + 1);
    *told = 1;
}

/* The lane has failed. */
static __device__ void rondo_give_up(const struct rondo_context *context, const struct rondo_team *team)
{
    for (uint32_t polls = 0; polls < RONDO_WITHDRAW_POLLS && !rondo_withdraw_landing(context, &team->part); polls++)
        ;
}

/* Until the warps are through the part or the lane has failed. Returns whether being stuck was told of. */
static __device__ uint8_t rondo_lead_walk(const struct rondo_daemon *daemon, struct rondo_run *run, struct rondo_team *team)
{
    const uint32_t lane = team->operation.lane, senders = rondo_walk_senders(team);
    const uint64_t tile = team->operation.tile * team->operation.element_bytes, tiles_end = team->operation.tiles * tile;
    struct rondo_walk_cursor cursor = {0, 0, 0, 0, 0};
    uint8_t told = 0;
    team->walk.ahead = team->ahead = team->may_go_ahead;
    if (!team->ahead)
        rondo_arrive(run);
    rondo_team_command(team, RONDO_COMMAND_WALK);
    rondo_arrive(run);
    for (uint32_t looks = 1, passed = 0, left = 0; cursor.start < tiles_end; looks++) {
        rondo_walk_follow(team, tile, &cursor);
        if (senders != 0)
            left = rondo_walk_make_room(team, left != 0 ? left : senders);
        looks = passed != cursor.passed ? 0 : looks;
        passed = cursor.passed;
        if (looks < RONDO_WALK_PATIENCE)
            continue;
        looks = 0;
        if (rondo_interrupted(daemon->queues, lane))
            break;
        rondo_report_missing(run, rondo_walk_missing(team, &cursor));
        rondo_tell_stuck(daemon, lane, run->context->operation - 1, &told);
    }
    rondo_team_ending(team);
    rondo_store_relaxed32(&team->walk.stop, 1);
    rondo_team_finish(team);
    rondo_count(&run->statistics->primitives, cursor.primitives);
    rondo_count(&run->statistics->bytes_sent, cursor.sent);
    return told;
}

/* Runs this block's part until it is done or the lane has failed. Nobody else runs parts of an operation in stream order. */
static __device__ void rondo_lead_operation(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                            uint32_t part, struct rondo_context *context, struct rondo_team *team, int all_lines)
{
    const struct rondo_queues *queues = daemon->queues;
    uint8_t told = 0;
    struct rondo_run run;
    rondo_prepare_run(&run, daemon, team->operation.lane, &given->operation, part, context);
    run.fresh = run.of_daemon = run.keeps = 0; /* the preamble has loaded it */
    run.early = 1;
    team->may_go_ahead = !given->waits;
    run.team = team;
    run.statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run.policy = &daemon->policy;
    run.interrupts = NULL;
    if (all_lines && team->operation.walks == RONDO_WALKS_LINES) {
        told = rondo_lead_walk(daemon, &run, team);
        rondo_finish_ordered(daemon, given, team->operation.lane, told);
        return;
    }
    for (;;) {
        run.budget = RONDO_ALONE_POLLS;
        if (rondo_engine_run(&run) == RONDO_OUTCOME_FINISHED)
            break;
        if (rondo_interrupted(queues, team->operation.lane)) {
            rondo_give_up(context, team);
            break;
        }
        rondo_tell_stuck(daemon, team->operation.lane, context->operation - 1, &told);
    }
    rondo_finish_ordered(daemon, given, team->operation.lane, told);
}

/* By one thread, before anything of the lane is looked at. */
static __device__ void rondo_await_turn(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given,
                                        struct rondo_context *context)
{
    const struct rondo_lane *lane = &daemon->lanes[given->operation.lane];
    for (uint32_t polls = 1; given->waits && rondo_load_acquire_device(&lane->ordered) < given->order; polls++)
        if (polls % 4096 == 0 && rondo_load_relaxed32(&daemon->queues->stop) != 0)
            break; /* if the lane has failed, that one is about to end, too, and comes first all the same */
    /* What the blocks of one operation know it by: its order, which no number of the daemon's is taken for. In a graph it is the
     * lane's count: the one before has completed, and the next one waits for this one, so that it is the same for all blocks
     * until the last one changes it. */
    if (given->order != RONDO_UNORDERED)
        context->operation = RONDO_ORDERED_NUMBER(given->order);
    else
        context->operation = rondo_load_acquire_device(&lane->completed) + 1;
}

/* Only the leader has to wait: it alone looks at what the kernels before may have written, but for data, which the workers
 * touch when it has told them to; and for a piece that they go ahead with (rondo_team_goes_ahead). */
RONDO_FUNCTION void rondo_team_arrive(struct rondo_team *team, const struct rondo_run *run)
{
    rondo_after_stream();
    const int one_piece = team->operation.tiles == 1 && team->operation.slices == 1;
    if (team->part.end_count > 0 && (team->ends[0].protocol == RONDO_PROTOCOL_LL ||
                                     (team->ends[0].protocol == RONDO_PROTOCOL_LL128 && one_piece)))
        rondo_team_ending(team); /* such a kernel takes hardly longer than a launch */
    rondo_await_turn(&rondo_here.daemon, (const struct rondo_stream_operation *) run->home, run->context);
    if (!team->ahead)
        rondo_team_look_again(team);
}

/* ---- groups ---- */

/* Of one of a block's parts. Small: a kernel whose threads need more than a kilobyte of stack is not launched before all that runs has
 * ended. */
struct rondo_part_flags {
    uint8_t begun : 1, told : 1, done : 1;
};

/* One visit: runs on where the part stands until it is done or stuck. 1: done. */
static __device__ int rondo_visit_part(const struct rondo_daemon *daemon, const struct rondo_cuda_group *group, uint32_t index,
                                       int looks, uint64_t budget, struct rondo_part_flags *flags,
                                       struct rondo_context *context, struct rondo_team *team)
{
    const struct rondo_stream_operation *given = &group->visits[index].given;
    uint32_t part = index - given->block_first, lane_index = given->operation.lane;
    const struct rondo_lane *lane = &daemon->lanes[lane_index];
    struct rondo_context *home = &group->visits[index].context;
    struct rondo_run run;
    int interrupted = looks && rondo_interrupted(daemon->queues, lane_index);
    if (given->waits && rondo_load_acquire_device(&lane->ordered) < given->order &&
        !(looks && rondo_load_relaxed32(&daemon->queues->stop) != 0))
        return 0; /* the lane's operation before may be another block's, or on another stream */
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
    run.fresh = run.of_daemon = run.keeps = 0; /* the team has had none of the list's before this launch */
    run.team = team;
    run.statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    run.policy = &daemon->policy;
    run.interrupts = NULL;
    run.budget = budget;
    const int finished = rondo_engine_run(&run) == RONDO_OUTCOME_FINISHED;
    if (!finished && interrupted)
        rondo_give_up(context, team);
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

/* Every part is visited again and again, so none waits for another of the same block: members of a group may wait for each other
 * across ranks in any way, however few blocks carry them. */
static __device__ void rondo_lead_group(const struct rondo_daemon *daemon, const struct rondo_cuda_group *group,
                                                     struct rondo_context *context, struct rondo_team *team)
{
    struct rondo_part_flags flags[RONDO_CUDA_PARTS_MAX];
    uint32_t mine = (group->parts - blockIdx.x + gridDim.x - 1) / gridDim.x, left = mine;
    for (uint32_t k = 0; k < mine; k++)
        flags[k].begun = flags[k].told = flags[k].done = 0;
    for (uint32_t round = 1; left > 0; round++)
        for (uint32_t k = 0; k < mine; k++) {
            uint64_t budget = left == 1 ? RONDO_ALONE_POLLS : RONDO_GROUP_POLLS;
            if (!flags[k].done && rondo_visit_part(daemon, group, blockIdx.x + k * gridDim.x, round % RONDO_GROUP_PATIENCE == 0,
                                                   budget, &flags[k], context, team)) {
                flags[k].done = 1;
                left--;
            }
        }
}

/* Its parts' operations, into its own memory. */
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

/* The operation and this block's part of it. What the host wrote before it launched the kernel is there; what the kernels before
 * may have written is not yet. */
static __device__ __forceinline__ void rondo_bring_in(const struct rondo_stream_operation *given, struct rondo_cuda_block *shared)
{
    struct rondo_team *team = &rondo_here.team;
    rondo_copy_vectors(&team->operation, &given->operation, sizeof(team->operation), threadIdx.x, blockDim.x);
    if (threadIdx.x < sizeof(shared->context) / 4)
        ((uint32_t *) &shared->context)[threadIdx.x] = 0;
    __syncthreads();
    rondo_team_load_part(team, threadIdx.x, blockDim.x);
    __syncthreads();
    rondo_team_load_instructions(team, threadIdx.x, blockDim.x);
    rondo_team_load_ends(team, threadIdx.x, blockDim.x); /* as they are now */
}

/* given: the operation of this block; group: those that it goes round; neither: the daemon. all_lines: rondo_team_work. */
static __device__ __forceinline__ void rondo_block_main(const struct rondo_daemon *daemon,
                                                        const struct rondo_stream_operation *given,
                                                        const struct rondo_cuda_group *group, int all_lines)
{
    const int of_daemon = given == NULL && group == NULL;
    struct rondo_cuda_block *shared = &rondo_here;
    struct rondo_team *team = &rondo_here.team;
    uint32_t workers = blockDim.x - RONDO_CUDA_CONTROL, part = given != NULL ? blockIdx.x - given->block_first : 0;
    if (threadIdx.x == 0) {
        rondo_team_reset(team);
        team->home = given != NULL ? &given->operation : NULL;
        team->program_block = part;
        team->page = 0;
    }
    rondo_copy_vectors(&shared->daemon, daemon, sizeof(*daemon), threadIdx.x, blockDim.x);
    if (group != NULL) {
        rondo_after_stream();
        rondo_bring_in_list(group);
    } else if (given == NULL) {
        rondo_copy_vectors(&shared->block, &daemon->blocks[blockIdx.x], sizeof(shared->block), threadIdx.x, blockDim.x);
    } else {
        rondo_bring_in(given, shared);
        if (all_lines && team->operation.walks == RONDO_WALKS_LINES) {
            __syncthreads();
            rondo_walk_prepare(team, threadIdx.x, blockDim.x);
        }
    }
    __syncthreads();
    if (threadIdx.x < workers) {
        rondo_team_work(team, threadIdx.x, workers, all_lines, of_daemon);
    } else if (threadIdx.x == workers) { /* the leader, alone in its warp */
        if (given != NULL || group != NULL)
            shared->daemon.policy.preempt = 1; /* a wait without a budget is the daemon's alone */
        if (group != NULL)
            rondo_lead_group(&shared->daemon, group, &shared->context, team);
        else if (given == NULL)
            rondo_lead_daemon(&shared->daemon, &shared->block, team);
        else
            rondo_lead_operation(&shared->daemon, given, part, &shared->context, team, all_lines);
        rondo_team_dismiss(team);
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

/* The one that the block is of. */
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

/* ---- by bulk copies ---- */

#if __CUDA_ARCH__ >= 900

static __shared__ struct rondo_bulk rondo_bulk_here;
extern __shared__ __align__(128) char rondo_bulk_cells[];
static_assert(sizeof(struct rondo_cuda_block) + sizeof(struct rondo_bulk) + RONDO_BULK_SHARED <= 227 * 1024, "a block's most");

/* Until the part is over or the lane has failed. Returns whether being stuck was told of. */
static __device__ uint8_t rondo_lead_bulk(const struct rondo_daemon *daemon, struct rondo_run *run, struct rondo_team *team)
{
    struct rondo_bulk *bulk = &rondo_bulk_here;
    struct rondo_block_statistics *statistics = &daemon->reports[blockIdx.x % daemon->block_count].statistics;
    const uint32_t lane = team->operation.lane;
    struct rondo_bulk_cursor at = rondo_bulk_begin(team);
    uint64_t sent = 0;
    uint8_t told = 0, ending = 0;
    for (uint32_t looks = 1; rondo_bulk_next(team, &at) != 0; looks++) {
        const uint32_t stored = rondo_bulk_look(&bulk->stored);
        if (stored != at.pieces) {
            rondo_bulk_tell(team, bulk, &at, stored, &sent);
            looks = 0;
        }
        if (!ending && at.tile + at.tile_bytes >= at.end && at.instruction + 1 == at.instructions) {
            rondo_team_ending(team);
            ending = 1;
        }
        if (looks < RONDO_BULK_PATIENCE)
            continue;
        looks = 0;
        if (rondo_interrupted(daemon->queues, lane)) {
            rondo_bulk_say(&bulk->stop, 1);
            break;
        }
        rondo_report_missing(run, rondo_bulk_missing(team, bulk, &at));
        rondo_tell_stuck(daemon, lane, run->context->operation - 1, &told);
    }
    rondo_team_ending(team);
    rondo_count(&statistics->primitives, at.pieces);
    rondo_count(&statistics->bytes_sent, sent);
    return told;
}

static __device__ void rondo_bulk_main(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given)
{
    enum {
        LOADER = 0,
        STORER = RONDO_CUDA_WARP,
        SCOUTS = 2 * RONDO_CUDA_WARP,
        FOLDERS = SCOUTS + RONDO_CUDA_WARP,
        LEADER = FOLDERS + RONDO_BULK_FOLDERS
    };
    struct rondo_cuda_block *shared = &rondo_here;
    struct rondo_team *team = &rondo_here.team;
    struct rondo_bulk *bulk = &rondo_bulk_here;
    const uint32_t thread = threadIdx.x;
    struct rondo_run run;
    uint8_t told = 0;
    if (thread == 0) {
        team->program_block = blockIdx.x - given->block_first;
        team->page = 0;
    }
    rondo_copy_vectors(&shared->daemon, daemon, sizeof(*daemon), thread, blockDim.x);
    rondo_bring_in(given, shared);
    __syncthreads();
    rondo_bulk_decode(team, bulk, thread, blockDim.x);
    if (thread == LEADER) {
        rondo_prepare_run(&run, &shared->daemon, team->operation.lane, &given->operation, team->program_block, &shared->context);
        rondo_after_stream();
        rondo_await_turn(&shared->daemon, given, &shared->context);
    }
    __syncthreads();
    rondo_bulk_look_for_waits(team, bulk, thread);
    rondo_bulk_arrive(team, thread);
    __syncthreads();
    if (thread == LOADER)
        rondo_bulk_load(team, bulk, rondo_bulk_cells);
    else if (thread == STORER)
        rondo_bulk_store(team, bulk, rondo_bulk_cells);
    else if (thread == LEADER)
        told = rondo_lead_bulk(&shared->daemon, &run, team);
    else if (thread >= SCOUTS && thread < FOLDERS)
        rondo_bulk_scout(team, bulk, thread - SCOUTS);
    else if (thread >= FOLDERS && thread < LEADER)
        rondo_bulk_fold(team, bulk, rondo_bulk_cells, thread - FOLDERS);
    __syncwarp();
    __syncthreads();
    rondo_bulk_leave(team, bulk, thread);
    __syncthreads();
    if (thread == LEADER)
        rondo_finish_ordered(&shared->daemon, given, team->operation.lane, told);
}

#else

/* The selection has asked all ranks' GPUs. */
static __device__ void rondo_bulk_main(const struct rondo_daemon *daemon, const struct rondo_stream_operation *given)
{
    (void) daemon;
    (void) given;
    __trap();
}

#endif

static __global__ void __launch_bounds__(RONDO_BULK_THREADS, 1)
    rondo_bulk_kernel(const __grid_constant__ struct rondo_daemon daemon, const __grid_constant__ struct rondo_cuda_batch batch)
{
    rondo_bulk_main(&daemon, &batch.operations[rondo_in_batch(&batch)]);
}

RONDO_KERNEL rondo_group_kernel(const __grid_constant__ struct rondo_daemon daemon,
                                const __grid_constant__ struct rondo_cuda_group group)
{
    rondo_block_main(&daemon, NULL, &group, 0);
}

static __global__ void __launch_bounds__(1, 1) rondo_fetch_kernel(const uint64_t *from, uint64_t *to)
{
    rondo_store_relaxed(to, rondo_load_relaxed(from));
}

const void *rondo_cuda_kernel(enum rondo_cuda_kernel kernel)
{
    static const void *const kernels[RONDO_CUDA_KERNELS] = {(const void *) rondo_daemon_kernel,
                                                            (const void *) rondo_operation_kernel,
                                                            (const void *) rondo_lines_kernel,
                                                            (const void *) rondo_operations_kernel,
                                                            (const void *) rondo_all_lines_kernel,
                                                            (const void *) rondo_bulk_kernel,
                                                            (const void *) rondo_group_kernel,
                                                            (const void *) rondo_fetch_kernel};
    return kernels[kernel];
}
