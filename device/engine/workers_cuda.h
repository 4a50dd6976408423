/*
 * A CUDA block: worker warps that carry out slice operations, and one more warp whose first thread, the leader, runs the
 * single-source engine and daemon and hands out the slice operations. While the workers move one slice operation the leader
 * publishes the one before and prepares the next. They tell each other by barriers in shared memory: the named ones take
 * several times as long.
 *
 * Why the leader's release covers what the workers stored: each has arrived at the barrier (release), the leader has waited for
 * it (acquire), and a fence is cumulative (PTX memory model, causality order). Why the workers see what the leader has
 * acquired: it arrives, they wait. All who wait at a barrier also arrive at it, and every thread for itself: what one lane does
 * for its warp, or a barrier where some only wait, compute-sanitizer's racecheck does not follow.
 */
#ifndef RONDO_DEVICE_ENGINE_WORKERS_CUDA_H
#define RONDO_DEVICE_ENGINE_WORKERS_CUDA_H

#if !defined(__CUDACC__)
#error "__device__ code: nvcc alone compiles it"
#endif

#include "device/abi/cuda_access.h"
#include "device/abi/cuda_block.h"
#include "device/abi/platform.h"
#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/move/cuda_barrier.h"
#include "device/move/mover_table.h"
#include "device/move/narrow.h"

#define RONDO_WORKERS_OVERLAPS 1
#define RONDO_WORKERS_POLLS_LL 1

#define RONDO_AHEAD_POLLS  256 /* of the workers, until the leader looks */
#define RONDO_WORKERS_PAGE 64  /* instructions of a part that are in shared memory at a time */

/* Named barriers of the workers; device/move/move_general.h has those from 8 on. */
#define RONDO_BARRIER_LOAD 3

enum rondo_command {
    RONDO_COMMAND_SLICE_OP,
    RONDO_COMMAND_AHEAD,
    RONDO_COMMAND_AGAIN,
    RONDO_COMMAND_LOAD,
    RONDO_COMMAND_PAGE,
    RONDO_COMMAND_COPY,
    RONDO_COMMAND_REPEAT,
    RONDO_COMMAND_INTERPRET,
    RONDO_COMMAND_NOTHING,
    RONDO_COMMAND_EXIT
};

/* A part that warps walk through (device/engine/warp_interpreter.h). */
#define RONDO_INTERPRETER_WARPS (RONDO_CUDA_WORKERS_MAX / RONDO_CUDA_WARP)
struct rondo_warp_step { /* an instruction */
    char *local;         /* where the result goes; NULL: nowhere here */
    const char *own;     /* the local source, if it has one, at that place among the sources */
    uint64_t bytes;      /* of the chunk */
    uint8_t has_own, own_place, sources;
    uint8_t receive_first, received, send_first, sent;
    uint8_t exchanges, finishes;
};
struct rondo_warp_interpreter {
    struct rondo_warp_step steps[RONDO_WARP_INSTRUCTIONS];
    char slice_ops[RONDO_INTERPRETER_WARPS][RONDO_NARROW_BYTES(RONDO_WARP_WIDTH)]
        __attribute__((aligned(16)));         /* what each carries out */
    uint32_t passed[RONDO_INTERPRETER_WARPS]; /* instructions that a warp is through with */
    uint32_t sends[RONDO_WARP_ENDS];          /* an end does */
    uint32_t moved[RONDO_WARP_ENDS];          /* slots that all warps have taken of an end; the leader's */
    int gives_back;                           /* during the part: slots are used more than once */
    int ragged;                               /* chunks may end within a vector */
    uint32_t ahead;                           /* the warps wait for what the stream holds before */
    uint32_t stop;                            /* they shall leave off */
};

/* In shared memory. */
struct rondo_workers {
    struct rondo_slice_op slice_ops[2];                  /* one is worked on while the other is described */
    struct rondo_use uses[2];                            /* the slice operations' ends, */
    uint64_t positions[2][2 * RONDO_REDUCE_SOURCES_MAX]; /* and their positions: of those received from, then those sent to */
    uint64_t polls;                                      /* that LL data are waited for */
    uint32_t current;                                    /* the slice operation to describe next */
    uint32_t running;                                    /* begun, not finished */
    uint32_t command, slice_op;                          /* what the workers are to do, and with which slice operation */
    uint32_t commands;                                   /* given */
    uint64_t given, done; /* barriers of all: the leader has given a command; the workers have done theirs */
    uint32_t result;      /* of the last slice operation */
    uint32_t may_run_ahead,
        ahead; /* of a kernel on a stream: no other stream is to be waited for; the workers have gone ahead */
    /* The part of an operation that is here, and where the operation lives. */
    const struct rondo_operation *home;
    uint32_t program_block;
    uint32_t page;  /* of its instructions */
    uint32_t again; /* it is one slice operation, which the worker group can carry out by itself: 1 + which of the slice
                       operations describes it */
    uint32_t begun; /* and has been told to */
    uint32_t prepared, members, mover; /* where its data and slots lie next is known, and who does it, and how; the workers' */
    struct rondo_part part __attribute__((aligned(16)));
    const void *copied; /* by the command to copy */
    void *copy;
    uint32_t copy_bytes;
    uint32_t repeat_first, repeat_count; /* ends, by the command to repeat */
    uint8_t progress[RONDO_PROGRESS]
        __attribute__((aligned(16))); /* of the warps, with a slice operation that is carried out in part */
    uint64_t saved;                   /* bytes, by compression, that have not been counted; the workers' */
    struct rondo_warp_interpreter interpreter;
    struct rondo_operation operation;
    struct rondo_instruction instructions[RONDO_WORKERS_PAGE];
    struct rondo_end ends[RONDO_PROGRAM_ENDS_MAX] __attribute__((aligned(16)));
};

RONDO_FUNCTION void rondo_workers_sync(uint32_t workers)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(RONDO_BARRIER_LOAD), "r"(workers) : "memory");
}

/* ---- the leader ---- */

/* Workers and leader. */
RONDO_FUNCTION uint32_t rondo_workers_members(void)
{
    return blockDim.x - RONDO_CUDA_CONTROL + 1;
}

/* By one thread, before the others begin. */
RONDO_FUNCTION void rondo_workers_reset(struct rondo_workers *workers)
{
    workers->current = workers->running = workers->commands = 0;
    rondo_barrier_begin(&workers->given, rondo_workers_members());
    rondo_barrier_begin(&workers->done, rondo_workers_members());
    workers->saved = 0;
    workers->may_run_ahead = workers->ahead = 0;
    workers->again = workers->begun = workers->prepared = 0;
}

/* What the warps have done of the run's first slice operation; and what they have done when it ends, for the next run: 1 if
 * that is something else. */
RONDO_FUNCTION void rondo_workers_resume(struct rondo_workers *workers, const struct rondo_context *context)
{
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        ((uint64_t *) workers->progress)[i] = context->progress[i];
}

RONDO_FUNCTION int rondo_workers_pause(const struct rondo_workers *workers, struct rondo_context *context)
{
    int changed = 0;
    for (int i = 0; i < RONDO_PROGRESS / 8; i++) {
        uint64_t now = ((const uint64_t *) workers->progress)[i];
        changed |= context->progress[i] != now;
        context->progress[i] = now;
    }
    return changed;
}

/* A slice operation is done: the next one is a new one. */
RONDO_FUNCTION void rondo_workers_forget_progress(struct rondo_workers *workers)
{
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        ((uint64_t *) workers->progress)[i] = 0;
}

/* Nothing of a slice operation is left when rondo_workers_finish has returned. */
RONDO_FUNCTION void rondo_workers_rest(struct rondo_workers *workers)
{
    (void) workers;
}

RONDO_FUNCTION struct rondo_slice_op *rondo_workers_slice_op(struct rondo_workers *workers)
{
    return &workers->slice_ops[workers->current];
}

RONDO_FUNCTION struct rondo_use *rondo_workers_use(struct rondo_workers *workers)
{
    return &workers->uses[workers->current];
}

/* The ends move on before the workers get to the slice operation. */
RONDO_FUNCTION void rondo_workers_take_ends(struct rondo_workers *workers, const struct rondo_run *run,
                                            const struct rondo_use *use)
{
    uint64_t *positions = workers->positions[workers->current];
    (void) run;
    for (uint32_t i = 0; i < use->received; i++)
        positions[i] = workers->ends[use->receive_first + i].position;
    for (uint32_t i = 0; i < use->sent; i++)
        positions[use->received + i] = workers->ends[use->send_first + i].position;
}

RONDO_FUNCTION void rondo_workers_command(struct rondo_workers *workers, uint32_t command)
{
    workers->command = command;
    workers->slice_op = workers->current;
    workers->running = 1;
    workers->commands++;
    rondo_barrier_arrive(&workers->given);
}

/* Nothing may be running. */
RONDO_FUNCTION void rondo_workers_begin(struct rondo_workers *workers, uint64_t polls)
{
    workers->polls = polls;
    rondo_workers_command(workers, RONDO_COMMAND_SLICE_OP);
    workers->current ^= 1;
}

/* The same slice operation once more: what it sends before it waits has been sent. */
RONDO_FUNCTION void rondo_workers_repeat(struct rondo_workers *workers)
{
    workers->current ^= 1;
    workers->slice_ops[workers->current].sent = 1;
    rondo_workers_begin(workers, workers->polls);
}

/* Waits until what was begun is done. 0: LL data did not arrive, and nothing was done. */
RONDO_FUNCTION int rondo_workers_finish(struct rondo_workers *workers)
{
    if (!workers->running)
        return 1;
    workers->running = 0;
    rondo_barrier_arrive(&workers->done);
    rondo_barrier_wait(&workers->done, workers->commands - 1, rondo_workers_members());
    return (int) *(volatile uint32_t *) &workers->result;
}

/* An operation that has been brought in, where it is at hand. */
RONDO_FUNCTION const struct rondo_operation *rondo_workers_operation(const struct rondo_workers *workers,
                                                                     const struct rondo_operation *home)
{
    (void) home;
    return &workers->operation;
}

/* Brings a part of an operation, its instructions and its ends into shared memory, unless they are there: an acquire anywhere
 * in the block empties the first-level cache. Of an operation that is not fresh nobody else has moved the ends: it is the
 * one that its lane had last. */
RONDO_FUNCTION void rondo_workers_load(struct rondo_workers *workers, struct rondo_run *run)
{
    if (run->fresh || workers->home != run->home || workers->program_block != run->program_block) {
        workers->home = run->home;
        workers->program_block = run->program_block;
        workers->page = run->instruction / RONDO_WORKERS_PAGE;
        rondo_workers_command(workers, RONDO_COMMAND_LOAD);
        rondo_workers_finish(workers);
    } else if (run->of_daemon && workers->again) { /* the workers may still be preparing it */
        rondo_workers_command(workers, RONDO_COMMAND_NOTHING);
        rondo_workers_finish(workers);
    }
    if (run->of_daemon)
        workers->again = workers->prepared = 0;
    run->operation = rondo_workers_operation(workers, run->home);
    run->part = &workers->part;
    run->row = workers->ends;
    run->ends = NULL;
}

RONDO_FUNCTION int rondo_workers_has_instruction(const struct rondo_workers *workers, uint32_t index)
{
    return index / RONDO_WORKERS_PAGE == workers->page;
}

/* Nothing may be running. */
RONDO_FUNCTION void rondo_workers_load_page(struct rondo_workers *workers, uint32_t index)
{
    workers->page = index / RONDO_WORKERS_PAGE;
    rondo_workers_command(workers, RONDO_COMMAND_PAGE);
    rondo_workers_finish(workers);
}

RONDO_FUNCTION const struct rondo_instruction *rondo_workers_instruction(const struct rondo_workers *workers,
                                                                         const struct rondo_run *run, uint32_t index)
{
    (void) run;
    return &workers->instructions[index % RONDO_WORKERS_PAGE];
}

/* A vector that a kernel before this one may have written while this one was already there: not out of the first-level cache.
 */
RONDO_FUNCTION uint4 rondo_load_late(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

/* What the stream holds before this kernel is done from here on. The kernel may have been launched before that was so, because
 * its like goes on. */
RONDO_FUNCTION void rondo_after_stream(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Not much is left of the kernel: the next one of its stream may be launched now, and wait for its end in place. Any sooner it
 * would keep multiprocessors from others for as long as this one waits for its peers. */
RONDO_FUNCTION void rondo_workers_ending(struct rondo_workers *workers)
{
    (void) workers;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* What may have changed of the ends since they were brought here. By the leader. */
RONDO_FUNCTION void rondo_workers_look_again(struct rondo_workers *workers)
{
    const uint32_t count = workers->part.end_count;
#pragma unroll 4
    for (uint32_t i = 0; i < count; i++)
        *(uint4 *) &workers->ends[i].position = rondo_load_late((const uint4 *) &rondo_part_end(&workers->part, i)->position);
}

/* The slice operation is all there is of the part, and the workers need nobody for it. */
RONDO_FUNCTION int rondo_workers_is_whole_part(const struct rondo_workers *workers, const struct rondo_instruction *instruction,
                                               uint32_t index)
{
    const struct rondo_slice_op *slice_op = &workers->slice_ops[index];
    const struct rondo_use *use = &workers->uses[index];
    return workers->part.instruction_count == 1 && workers->operation.tiles == 1 && workers->operation.slices == 1 &&
           instruction->count == 1 && instruction->dependencies == 0 && !(instruction->flags & RONDO_NOTIFY) &&
           !use->direct_in && !use->direct_out && use->received + use->sent == workers->part.end_count &&
           !workers->part.repeats && rondo_mover_is_flagged(slice_op) && slice_op->ll_remotes == rondo_low_bits(use->sent);
}

/* The short way for what most small operations are, one slice operation of LL packets: the leader has described it before it is
 * the kernel's turn, and the workers do the rest by themselves once it is, where the ends stand and whether there is room
 * included, for each time leader and workers wait for each other costs as much as the link. When there was no room, or data
 * have not come for a while, nothing has been done but that packets may have been sent, which will be sent once more. (Where
 * more slice operations follow, doing so with the first is slower than the long way.) */
RONDO_FUNCTION int rondo_workers_run_ahead(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    if (!workers->may_run_ahead || !rondo_workers_is_whole_part(workers, instruction, workers->current))
        return 0;
    workers->polls = RONDO_AHEAD_POLLS;
    workers->ahead = 1;
    rondo_workers_command(workers, RONDO_COMMAND_AHEAD);
    return 1;
}

/* The same for an operation that is started again as it was: its only slice operation is still described, and where its ends
 * stand the workers know. Begins with the block's part, if that is so; whoever does it sees to it that the part is visited
 * next. */
RONDO_FUNCTION void rondo_workers_begin_again(struct rondo_workers *workers, const struct rondo_operation *home, uint64_t polls)
{
    if (!workers->again || workers->home != home)
        return;
    workers->current = workers->again - 1;
    rondo_workers_slice_op(workers)->sent = 0;
    rondo_workers_forget_progress(workers);
    workers->polls = polls < RONDO_AHEAD_POLLS ? polls : RONDO_AHEAD_POLLS;
    rondo_workers_command(workers, RONDO_COMMAND_AGAIN);
    workers->begun = 1;
}

/* The bytes it sent; or -1: it has not been begun, or it is stuck, as far as the context says. */
RONDO_FUNCTION int64_t rondo_workers_finish_again(struct rondo_workers *workers, struct rondo_context *context)
{
    const struct rondo_slice_op *slice_op = rondo_workers_slice_op(workers);
    if (!workers->begun)
        return -1;
    workers->begun = 0;
    const int64_t bytes = (int64_t) (slice_op->count * slice_op->element_bytes * slice_op->remotes);
    if (rondo_workers_finish(workers))
        return bytes;
    rondo_workers_pause(workers, context);
    return -1;
}

/* Whether that will do for the slice operation that was begun last. */
RONDO_FUNCTION void rondo_workers_keep(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    workers->again = rondo_workers_is_whole_part(workers, instruction, workers->slice_op) ? workers->slice_op + 1 : 0;
}

/* Writes back what has changed. */
RONDO_FUNCTION void rondo_workers_unload(struct rondo_workers *workers, struct rondo_run *run)
{
    for (uint32_t i = 0; i < workers->part.end_count; i++) {
        struct rondo_end *home = rondo_part_end(&workers->part, i);
        const struct rondo_end *end = &workers->ends[i];
        *(ulonglong2 *) &home->position = *(const ulonglong2 *) &end->position; /* and seen */
        if (run->operation->direct) {
            home->direct[0] = end->direct[0];
            home->direct[1] = end->direct[1];
        }
    }
    if (run->operation->rate != 0) {
        rondo_count(&run->statistics->bytes_saved, workers->saved);
        workers->saved = 0;
    }
}

/* The ends have moved on: so have the others of the same connectors, where the part names one more than once. Rare, and slow.
 */
RONDO_FUNCTION void rondo_workers_repeat_ends(struct rondo_workers *workers, uint32_t first, uint32_t count)
{
    rondo_workers_finish(workers);
    workers->repeat_first = first;
    workers->repeat_count = count;
    rondo_workers_command(workers, RONDO_COMMAND_REPEAT);
    rondo_workers_finish(workers);
}

/* The other blocks have been told of an operation: they look by themselves. */
RONDO_FUNCTION void rondo_workers_told(const struct rondo_workers *workers)
{
    (void) workers;
}

RONDO_FUNCTION void rondo_workers_copy(struct rondo_workers *workers, void *to, const void *from, uint32_t bytes)
{
    workers->copy = to;
    workers->copied = from;
    workers->copy_bytes = bytes;
    rondo_workers_command(workers, RONDO_COMMAND_COPY);
    rondo_workers_finish(workers);
}

RONDO_FUNCTION void rondo_workers_dismiss(struct rondo_workers *workers)
{
    rondo_workers_command(workers, RONDO_COMMAND_EXIT);
}

/* ---- what workers, kernels and the warp interpreter share ---- */

/* By vectors of 16 bytes. */
RONDO_FUNCTION void rondo_copy_vectors(void *to, const void *from, uint32_t bytes, uint32_t thread, uint32_t threads)
{
#pragma unroll 4
    for (uint32_t i = thread; i < bytes / 16; i += threads)
        ((uint4 *) to)[i] = ((const uint4 *) from)[i];
}

/* The page of the part's instructions. */
RONDO_FUNCTION void rondo_workers_load_instructions(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &workers->part;
    uint32_t first = workers->page * RONDO_WORKERS_PAGE;
    uint32_t count =
        part->instruction_count - first < RONDO_WORKERS_PAGE ? part->instruction_count - first : RONDO_WORKERS_PAGE;
    rondo_copy_vectors(workers->instructions, part->instructions + first, count * (uint32_t) sizeof(workers->instructions[0]),
                       thread, threads);
}

RONDO_FUNCTION void rondo_workers_load_ends(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &workers->part;
    const uint32_t vectors = sizeof(struct rondo_end) / 16;
    for (uint32_t i = thread; i < part->end_count * vectors; i += threads)
        ((uint4 *) &workers->ends[i / vectors])[i % vectors] =
            rondo_load_late((const uint4 *) rondo_part_end(part, i / vectors) + i % vectors);
}

/* The part itself, from the operation that is here. */
RONDO_FUNCTION void rondo_workers_load_part(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part =
        workers->program_block == 0 ? &workers->operation.first : &workers->operation.parts[workers->program_block];
    rondo_copy_vectors(&workers->part, part, sizeof(workers->part), thread, threads);
}

RONDO_FUNCTION void rondo_workers_load_work(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    rondo_copy_vectors(&workers->operation, workers->home, sizeof(workers->operation), thread, threads);
    rondo_workers_sync(threads);
    rondo_workers_load_part(workers, thread, threads);
    rondo_workers_sync(threads);
    rondo_workers_load_instructions(workers, thread, threads);
    rondo_workers_load_ends(workers, thread, threads);
}

/* All of them have come to here; whether all say yes. */
RONDO_FUNCTION int rondo_workers_agree(int yes, uint32_t threads)
{
    if (threads > RONDO_CUDA_WARP)
        return rondo_cuda_all_agree(yes, threads);
    yes = __all_sync(RONDO_CUDA_WHOLE_WARP, yes);
    __syncwarp();
    return yes;
}

#endif
