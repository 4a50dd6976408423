/*
 * The workers of a CUDA block: the loop in which they carry out the leader's commands, above all slice operations. Each
 * resolves the addresses of a slice operation side by side with the others, chooses a mover by device/move/mover_table.h, and
 * moves the data. The leader's side, and what both share, is device/engine/workers_cuda.h.
 */
#ifndef RONDO_DEVICE_ENGINE_WORKER_LOOP_H
#define RONDO_DEVICE_ENGINE_WORKER_LOOP_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/engine/use.h"
#include "device/engine/warp_interpreter.h"
#include "device/engine/workers_cuda.h"
#include "device/move/move_flagged.h"
#include "device/move/mover_table.h"
#include "device/move/movers.h"

/* Resolves the addresses of a slice operation that the leader has described, each end by a thread. */
RONDO_FUNCTION void rondo_workers_resolve(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads)
{
    const struct rondo_use *use = &workers->uses[index];
    const uint64_t *positions = workers->positions[index];
    struct rondo_slice_op *slice_op = &workers->slice_ops[index];
    for (uint32_t i = thread; i < use->received; i += threads)
        rondo_resolve_source(use, &workers->ends[use->receive_first + i], positions[i], i, slice_op);
    for (uint32_t i = thread; i < use->sent; i += threads)
        rondo_resolve_remote(use, &workers->ends[use->send_first + i], &workers->ends[use->receive_first + i],
                             positions[use->received + i], i, slice_op);
    if (slice_op->rate != 0 && thread == 0)
        workers->saved += rondo_resolve_codec(use, &workers->instructions[use->instruction % RONDO_WORKERS_PAGE],
                                              &workers->operation, slice_op);
}

/* Reads where the ends of a slice operation stand, and resolves its addresses, when the workers execute it without the
 * leader. again: the copies in shared memory are up to date. Returns 0 if a receiver has no free slot. */
RONDO_FUNCTION int rondo_workers_resolve_late(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                              int again)
{
    const struct rondo_use *use = &workers->uses[index];
    struct rondo_slice_op *slice_op = &workers->slice_ops[index];
    int room = 1;
    for (uint32_t i = thread; i < (uint32_t) use->received + use->sent; i += threads) {
        const int receives = i < use->received;
        const uint32_t place = receives ? use->receive_first + i : use->send_first + i - use->received;
        struct rondo_end *end = &workers->ends[place], *home = rondo_part_end(&workers->part, place);
        if (again) {
            if (!receives && end->position - end->seen >= end->slot_count)
                end->seen = rondo_load_acquire(end->watched);
        } else {
            const uint4 counts = rondo_load_late((const uint4 *) &home->position);
            const uint64_t seen =
                receives ? 0 : rondo_load_acquire(end->watched); /* like rondo_has_room, but both loads at once */
            *(uint4 *) &end->position = counts;
            end->seen = receives ? end->seen : seen;
        }
        if (receives) {
            rondo_resolve_source(use, end, end->position, i, slice_op);
        } else {
            rondo_resolve_remote(use, end, end, end->position, i - use->received, slice_op);
            room &= end->position - end->seen < end->slot_count;
        }
        if (!again) {
            /* The positions after success, while there is time. After a failure the leader corrects them
             * (rondo_workers_unload). */
            home->position = end->position + 1;
            home->seen = end->seen;
        }
    }
    return room;
}

/* Counts the slice operation's slots as filled and taken, and gives the taken ones back. All its packets have been read. */
RONDO_FUNCTION void rondo_workers_move_on(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                          int again)
{
    const struct rondo_use *use = &workers->uses[index];
    for (uint32_t i = thread; i < (uint32_t) use->received + use->sent; i += threads) {
        const uint32_t place = i < use->received ? use->receive_first + i : use->send_first + i - use->received;
        struct rondo_end *end = &workers->ends[place];
        end->position++;
        if (i < use->received)
            rondo_publish_word(end->published, end->position);
        if (again) {
            struct rondo_end *home = rondo_part_end(&workers->part, place);
            home->position = end->position;
            home->seen = end->seen;
        }
    }
}

/* Number of threads that execute a slice operation: one warp for a small one. */
RONDO_FUNCTION uint32_t rondo_workers_members_of(const struct rondo_slice_op *slice_op, int flagged, uint32_t threads)
{
    int small = flagged && !slice_op->lines && slice_op->count * slice_op->element_bytes <= RONDO_CUDA_WARP * 8;
    return small ? RONDO_CUDA_WARP : threads;
}

/* The row of the table by which the slice operation is carried out; RONDO_MOVER_RESOLVED: one that is chosen when all addresses
 * are known. flagged: rondo_mover_is_flagged. */
RONDO_FUNCTION enum rondo_mover rondo_workers_mover(const struct rondo_workers *workers, uint32_t index, int flagged,
                                                    uint32_t threads, int all_lines)
{
    const struct rondo_slice_op *slice_op = &workers->slice_ops[index];
    const uint32_t own = rondo_cuda_own_source(slice_op);
    const int own_known = own >= slice_op->sources || own == workers->uses[index].local_place;
    const struct rondo_mover_facts facts = {threads, flagged && own_known, all_lines || slice_op->lines};
    return rondo_mover_choose(slice_op, facts, RONDO_MOVER_LL_SMALL, RONDO_MOVER_RESOLVED);
}

/* Executes the slice operation with the index: command says whether the leader has looked at the ends. Returns the same on
 * all participating threads: 1 if done, 0 if LL data or free slots were missing. */
RONDO_FUNCTION int rondo_workers_run_slice_op(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                              uint32_t command, int all_lines, int of_daemon)
{
    const struct rondo_slice_op *slice_op = &workers->slice_ops[index];
    const int ahead = command != RONDO_COMMAND_SLICE_OP, again = of_daemon && command == RONDO_COMMAND_AGAIN;
    const int prepared = again && workers->prepared;
    const int flagged = prepared || rondo_mover_is_flagged(slice_op);
    const uint32_t members = prepared ? workers->members : rondo_workers_members_of(slice_op, flagged, threads);
    if (thread >= members)
        return 1;
    if (command == RONDO_COMMAND_AHEAD)
        rondo_after_stream();
    const enum rondo_mover mover =
        prepared ? (enum rondo_mover) workers->mover : rondo_workers_mover(workers, index, flagged, threads, all_lines);
    struct rondo_cuda_own own;
    rondo_flagged_load_own(slice_op, mover, thread, threads, &own);
    if (!prepared) {
        int ready = 1;
        if (ahead)
            ready = rondo_workers_resolve_late(workers, index, thread, members, again);
        else
            rondo_workers_resolve(workers, index, thread, members);
        if (!rondo_workers_agree(ready, members))
            return 0;
    }
    if (flagged) {
        int done = rondo_move_flagged(slice_op, mover, all_lines, thread, threads, workers->polls,
                                      (struct rondo_flagged_data){&own, workers->progress});
        if (ahead && rondo_workers_agree(done, members))
            rondo_workers_move_on(workers, index, thread, members, again);
        return done;
    }
    if (rondo_mover_run_vector(slice_op, thread, threads))
        return 1;
    return rondo_mover_run_other(slice_op, thread, threads, workers->polls);
}

/* Prepares the next execution of the same slice operation while the leader does not wait: resolves its addresses and chooses
 * its mover, if receivers have free slots. By one warp. Not inlined: it would take registers from the rest. */
RONDO_RARE void rondo_workers_prepare(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                      int all_lines)
{
    if (workers->part.end_count > RONDO_CUDA_WARP) /* each end has its thread */
        return;
    const int room =
        rondo_workers_agree(rondo_workers_resolve_late(workers, index, thread, RONDO_CUDA_WARP, 1), RONDO_CUDA_WARP);
    if (thread == 0) {
        workers->members = rondo_workers_members_of(&workers->slice_ops[index], 1, threads);
        workers->mover = rondo_workers_mover(workers, index, 1, threads, all_lines);
        workers->prepared = (uint32_t) room;
    }
}

/* Copies the state of the ends that RONDO_COMMAND_REPEAT names to the other ends of the same connectors. */
RONDO_FUNCTION void rondo_workers_copy_ends(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = workers->repeat_first; i < workers->repeat_first + workers->repeat_count; i++)
        for (uint32_t k = thread; k < workers->part.end_count; k += threads)
            if (k != i && rondo_part_end(&workers->part, k) == rondo_part_end(&workers->part, i)) {
                workers->ends[k].position = workers->ends[i].position;
                workers->ends[k].seen = workers->ends[i].seen;
            }
}

/* The loop of every worker: waits for the leader's commands and executes them until RONDO_COMMAND_EXIT. all_lines, a
 * constant: all connectors with flags are LL128. of_daemon, a constant: operations may be started again. */
RONDO_FUNCTION void rondo_workers_work(struct rondo_workers *workers, uint32_t thread, uint32_t threads, int all_lines,
                                       int of_daemon)
{
    for (uint32_t next = 0;; next++) {
        rondo_barrier_arrive(&workers->given);
        rondo_barrier_wait(&workers->given, next, rondo_workers_members());
        const uint32_t command = workers->command, slice_op = workers->slice_op;
        int result = 1;
        if (command <= RONDO_COMMAND_AGAIN) /* one call: it is large and inlined */
            result = rondo_workers_run_slice_op(workers, slice_op, thread, threads, command, all_lines, of_daemon);
        else if (command == RONDO_COMMAND_LOAD)
            rondo_workers_load_work(workers, thread, threads);
        else if (command == RONDO_COMMAND_PAGE)
            rondo_workers_load_instructions(workers, thread, threads);
        else if (command == RONDO_COMMAND_COPY)
            rondo_copy_vectors(workers->copy, workers->copied, workers->copy_bytes, thread, threads);
        else if (command == RONDO_COMMAND_REPEAT)
            rondo_workers_copy_ends(workers, thread, threads);
        else if (all_lines && command == RONDO_COMMAND_INTERPRET)
            result = rondo_warp_interpreter(workers, thread, threads);
        else if (command == RONDO_COMMAND_EXIT)
            return;
        if (thread == 0)
            workers->result = (uint32_t) result;
        rondo_barrier_arrive(&workers->done);
        if (of_daemon && command == RONDO_COMMAND_AGAIN && result && thread < RONDO_CUDA_WARP)
            rondo_workers_prepare(workers, slice_op, thread, threads, all_lines);
    }
}

#endif
