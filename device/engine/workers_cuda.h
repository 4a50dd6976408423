/*
 * A CUDA block's worker group, the leader's side: worker warps that execute slice operations (device/engine/worker_loop.h),
 * and one more warp whose first thread, the leader, runs the single-source engine and daemon. While the workers execute one
 * slice operation, the leader publishes the previous one and describes the next. They synchronize by barriers in shared
 * memory; the named ones take several times as long.
 * Why the leader's release covers the workers' stores: each worker has arrived at the barrier (release), the leader has waited
 * for it (acquire), and a fence is cumulative (PTX memory model, causality order). Why the workers see what the leader has
 * acquired: the leader arrives, the workers wait. Every thread that waits at a barrier also arrives at it, each for itself:
 * compute-sanitizer's racecheck does not follow one lane that arrives for its warp, or a barrier at which some threads only
 * wait.
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

#define RONDO_AHEAD_POLLS  256 /* of the workers, between two looks of the leader */
#define RONDO_WORKERS_PAGE 64  /* instructions of a part that are in shared memory at a time */

/* Named barriers of the workers; RONDO_CUDA_VOTE is another. */
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

/* A part that warps interpret (device/engine/warp_interpreter.h). */
#define RONDO_INTERPRETER_WARPS (RONDO_CUDA_WORKERS_MAX / RONDO_CUDA_WARP)
struct rondo_warp_step { /* an instruction */
    char *local;         /* where the result is stored; NULL: nowhere on this rank */
    const char *own;     /* the local source, if there is one: the own_place-th of the sources */
    uint64_t bytes;      /* of the chunk */
    uint8_t has_own, own_place, sources;
    uint8_t receive_first, received, send_first, sent;
    uint8_t exchanges, finishes;
};
struct rondo_warp_interpreter {
    struct rondo_warp_step steps[RONDO_WARP_INSTRUCTIONS];
    char slice_ops[RONDO_INTERPRETER_WARPS][RONDO_NARROW_BYTES(RONDO_WARP_WIDTH)]
        __attribute__((aligned(16)));         /* a narrow slice operation for each warp */
    uint32_t passed[RONDO_INTERPRETER_WARPS]; /* number of instructions that a warp has finished */
    uint32_t sends[RONDO_WARP_ENDS];          /* whether an end sends */
    uint32_t moved[RONDO_WARP_ENDS];          /* slots that all warps have taken of an end; written by the leader */
    int gives_back;                           /* slots are used more than once, so they are given back during the part */
    int ragged;                               /* chunks may end within a vector */
    uint32_t ahead;                           /* the warps wait for the stream themselves */
    uint32_t stop;                            /* the warps have to end early */
};

/* In shared memory. */
struct rondo_workers {
    struct rondo_slice_op slice_ops[2];                  /* one is executed while the other is described */
    struct rondo_use uses[2];                            /* the ends of each, */
    uint64_t positions[2][2 * RONDO_REDUCE_SOURCES_MAX]; /* and the positions of the ends: first of those received from, then of
                                                            those sent to */
    uint64_t polls;                                      /* number of looks for LL data */
    uint32_t current;                                    /* index of the slice operation to describe next */
    uint32_t running;                                    /* a command has been given, and its end not waited for */
    uint32_t command, slice_op;                          /* what the workers have to do, and the index of the slice operation */
    uint32_t commands;                                   /* number of commands given */
    uint64_t given, done;          /* barriers of the block: the leader has given a command; the workers have finished theirs */
    uint32_t result;               /* of the last command */
    uint32_t may_run_ahead, ahead; /* in a kernel on a stream: nothing but the stream has to be waited for; the workers have
                                      been told to execute without the leader */
    /* The part of an operation that is in shared memory, and the operation's address. */
    const struct rondo_operation *home;
    uint32_t program_block;
    uint32_t page;  /* index of the page of its instructions */
    uint32_t again; /* 1 + the index of the slice operation, if it is the whole part and can be executed without the leader;
                       else 0 */
    uint32_t begun; /* the workers have been told to execute it again */
    uint32_t prepared, members,
        mover; /* the next execution's addresses are known, and who executes it by which mover; written by the workers */
    struct rondo_part part __attribute__((aligned(16)));
    const void *copied; /* arguments of RONDO_COMMAND_COPY */
    void *copy;
    uint32_t copy_bytes;
    uint32_t repeat_first, repeat_count; /* ends; arguments of RONDO_COMMAND_REPEAT */
    uint8_t progress[RONDO_PROGRESS]
        __attribute__((aligned(16))); /* of each warp, in a slice operation that is executed in part */
    uint64_t saved; /* bytes that compression has saved and that have not been counted; written by the workers */
    struct rondo_warp_interpreter interpreter;
    struct rondo_operation operation;
    struct rondo_instruction instructions[RONDO_WORKERS_PAGE];
    struct rondo_end ends[RONDO_PROGRAM_ENDS_MAX] __attribute__((aligned(16)));
};

/* A barrier of the workers. */
RONDO_FUNCTION void rondo_workers_sync(uint32_t workers)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(RONDO_BARRIER_LOAD), "r"(workers) : "memory");
}

/* ---- the leader ---- */

/* Number of threads that arrive at the block's barriers: the workers and the leader. */
RONDO_FUNCTION uint32_t rondo_workers_members(void)
{
    return blockDim.x - RONDO_CUDA_CONTROL + 1;
}

/* Initializes the worker group. By one thread, before the others use it. */
RONDO_FUNCTION void rondo_workers_reset(struct rondo_workers *workers)
{
    workers->current = workers->running = workers->commands = 0;
    rondo_barrier_begin(&workers->given, rondo_workers_members());
    rondo_barrier_begin(&workers->done, rondo_workers_members());
    workers->saved = 0;
    workers->may_run_ahead = workers->ahead = 0;
    workers->again = workers->begun = workers->prepared = 0;
}

/* Takes over what the warps have done of a slice operation that an earlier run has left unfinished. */
RONDO_FUNCTION void rondo_workers_resume(struct rondo_workers *workers, const struct rondo_context *context)
{
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        ((uint64_t *) workers->progress)[i] = context->progress[i];
}

/* Notes what the warps have done of the unfinished slice operation. Returns 1 if the context has changed. */
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

/* To be called when a slice operation is done: the warps begin the next one anew. */
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

/* The slice operation to describe next. */
RONDO_FUNCTION struct rondo_slice_op *rondo_workers_slice_op(struct rondo_workers *workers)
{
    return &workers->slice_ops[workers->current];
}

/* The use of connectors that belongs to it. */
RONDO_FUNCTION struct rondo_use *rondo_workers_use(struct rondo_workers *workers)
{
    return &workers->uses[workers->current];
}

/* Notes the positions of the ends that the described slice operation uses; the ends move on before the workers resolve them. */
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

/* Gives the workers a command. Nothing may be under way. */
RONDO_FUNCTION void rondo_workers_command(struct rondo_workers *workers, uint32_t command)
{
    workers->command = command;
    workers->slice_op = workers->current;
    workers->running = 1;
    workers->commands++;
    rondo_barrier_arrive(&workers->given);
}

/* Lets the workers execute the slice operation that has been described. polls: number of looks for LL data. Nothing may be
 * under way. */
RONDO_FUNCTION void rondo_workers_begin(struct rondo_workers *workers, uint64_t polls)
{
    workers->polls = polls;
    rondo_workers_command(workers, RONDO_COMMAND_SLICE_OP);
    workers->current ^= 1;
}

/* Lets the workers execute the same slice operation again. What it sends before it waits has been sent. */
RONDO_FUNCTION void rondo_workers_repeat(struct rondo_workers *workers)
{
    workers->current ^= 1;
    workers->slice_ops[workers->current].sent = 1;
    rondo_workers_begin(workers, workers->polls);
}

/* Waits for the end of what is under way. Returns 0 if LL data had not arrived: then nothing has been stored. */
RONDO_FUNCTION int rondo_workers_finish(struct rondo_workers *workers)
{
    if (!workers->running)
        return 1;
    workers->running = 0;
    rondo_barrier_arrive(&workers->done);
    rondo_barrier_wait(&workers->done, workers->commands - 1, rondo_workers_members());
    return (int) *(volatile uint32_t *) &workers->result;
}

/* The loaded operation, in shared memory. */
RONDO_FUNCTION const struct rondo_operation *rondo_workers_operation(const struct rondo_workers *workers,
                                                                     const struct rondo_operation *home)
{
    (void) home;
    return &workers->operation;
}

/* Loads a part of an operation, its instructions and its ends into shared memory, unless they are there: an acquire anywhere
 * in the block empties the first-level cache. If the operation is not fresh, no other block has moved the ends, for it is
 * the one that its lane had last. */
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

/* Whether the instruction is in the loaded page. */
RONDO_FUNCTION int rondo_workers_has_instruction(const struct rondo_workers *workers, uint32_t index)
{
    return index / RONDO_WORKERS_PAGE == workers->page;
}

/* Loads the page with the instruction. Nothing may be under way. */
RONDO_FUNCTION void rondo_workers_load_page(struct rondo_workers *workers, uint32_t index)
{
    workers->page = index / RONDO_WORKERS_PAGE;
    rondo_workers_command(workers, RONDO_COMMAND_PAGE);
    rondo_workers_finish(workers);
}

/* The instruction; its page is loaded. */
RONDO_FUNCTION const struct rondo_instruction *rondo_workers_instruction(const struct rondo_workers *workers,
                                                                         const struct rondo_run *run, uint32_t index)
{
    (void) run;
    return &workers->instructions[index % RONDO_WORKERS_PAGE];
}

/* Loads a vector that an earlier kernel may have written while this one was already resident: not from the first-level
 * cache. */
RONDO_FUNCTION uint4 rondo_load_late(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from)
                 : "memory");
    return v;
}

/* Waits until all that the stream holds before this kernel is done; the kernel may have been launched before that. Older
 * GPUs never launch it before. */
RONDO_FUNCTION void rondo_after_stream(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Allows the launch of the stream's next kernel, which waits for the end of this one in place (rondo_after_stream). Called
 * when little is left: earlier, the next one would occupy multiprocessors for as long as this one waits for its peers. */
RONDO_FUNCTION void rondo_workers_ending(struct rondo_workers *workers)
{
    (void) workers;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Reads the positions of the part's ends again, which may have changed since they were loaded. */
RONDO_FUNCTION void rondo_workers_look_again(struct rondo_workers *workers)
{
    const uint32_t count = workers->part.end_count;
#pragma unroll 4
    for (uint32_t i = 0; i < count; i++)
        *(uint4 *) &workers->ends[i].position = rondo_load_late((const uint4 *) &rondo_part_end(&workers->part, i)->position);
}

/* Whether the slice operation is the whole part, and the workers can execute it without the leader. */
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

/* The shorter way of most small operations, which are a single slice operation of LL packets. The leader has described it
 * before it is the kernel's turn; the workers then do the rest without the leader, including where the ends stand and
 * whether there is room, because each handshake between leader and workers costs as much as the link. Returns 1 if the
 * workers have been told so. If there was no room or data did not come, nothing has been stored except packets, which will
 * be sent again. (Where more slice operations follow, this is slower.) */
RONDO_FUNCTION int rondo_workers_run_ahead(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    if (!workers->may_run_ahead || !rondo_workers_is_whole_part(workers, instruction, workers->current))
        return 0;
    workers->polls = RONDO_AHEAD_POLLS;
    workers->ahead = 1;
    rondo_workers_command(workers, RONDO_COMMAND_AHEAD);
    return 1;
}

/* The same for an operation that is started again unchanged: its only slice operation is still described, and the workers
 * know its ends. Begins the block's part if that is so; the caller must visit the part next. */
RONDO_FUNCTION void rondo_workers_begin_again(struct rondo_workers *workers, const struct rondo_operation *home,
                                              uint64_t budget)
{
    if (!workers->again || workers->home != home)
        return;
    workers->current = workers->again - 1;
    rondo_workers_slice_op(workers)->sent = 0;
    rondo_workers_forget_progress(workers);
    workers->polls = rondo_looks_within(budget, RONDO_AHEAD_POLLS);
    rondo_workers_command(workers, RONDO_COMMAND_AGAIN);
    workers->begun = 1;
}

/* Waits for the part that rondo_workers_begin_again has begun. Returns the bytes sent; -1 if nothing was begun, or if the
 * part is stuck where the context says. */
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

/* Notes whether the slice operation that was begun last may be executed again like that. */
RONDO_FUNCTION void rondo_workers_keep(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    workers->again = rondo_workers_is_whole_part(workers, instruction, workers->slice_op) ? workers->slice_op + 1 : 0;
}

/* Writes the ends and statistics back. */
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

/* Copies the state of the ends to the other ends of the same connectors, where the part names a connector more than once.
 * Rare and slow. */
RONDO_FUNCTION void rondo_workers_repeat_ends(struct rondo_workers *workers, uint32_t first, uint32_t count)
{
    rondo_workers_finish(workers);
    workers->repeat_first = first;
    workers->repeat_count = count;
    rondo_workers_command(workers, RONDO_COMMAND_REPEAT);
    rondo_workers_finish(workers);
}

/* The other blocks poll for notifications. */
RONDO_FUNCTION void rondo_workers_told(const struct rondo_workers *workers)
{
    (void) workers;
}

/* Lets the workers copy bytes, a multiple of 16, and waits for them. */
RONDO_FUNCTION void rondo_workers_copy(struct rondo_workers *workers, void *to, const void *from, uint32_t bytes)
{
    workers->copy = to;
    workers->copied = from;
    workers->copy_bytes = bytes;
    rondo_workers_command(workers, RONDO_COMMAND_COPY);
    rondo_workers_finish(workers);
}

/* Ends the workers' loop. */
RONDO_FUNCTION void rondo_workers_dismiss(struct rondo_workers *workers)
{
    rondo_workers_command(workers, RONDO_COMMAND_EXIT);
}

/* ---- what workers, kernels and the warp interpreter share ---- */

/* Copies vectors of 16 bytes, side by side with the other threads. */
RONDO_FUNCTION void rondo_copy_vectors(void *to, const void *from, uint32_t bytes, uint32_t thread, uint32_t threads)
{
#pragma unroll 4
    for (uint32_t i = thread; i < bytes / 16; i += threads)
        ((uint4 *) to)[i] = ((const uint4 *) from)[i];
}

/* Copies the current page of the part's instructions to shared memory. */
RONDO_FUNCTION void rondo_workers_load_instructions(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &workers->part;
    uint32_t first = workers->page * RONDO_WORKERS_PAGE;
    uint32_t count =
        part->instruction_count - first < RONDO_WORKERS_PAGE ? part->instruction_count - first : RONDO_WORKERS_PAGE;
    rondo_copy_vectors(workers->instructions, part->instructions + first, count * (uint32_t) sizeof(workers->instructions[0]),
                       thread, threads);
}

/* Copies the part's ends to shared memory. */
RONDO_FUNCTION void rondo_workers_load_ends(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &workers->part;
    const uint32_t vectors = sizeof(struct rondo_end) / 16;
    for (uint32_t i = thread; i < part->end_count * vectors; i += threads)
        ((uint4 *) &workers->ends[i / vectors])[i % vectors] =
            rondo_load_late((const uint4 *) rondo_part_end(part, i / vectors) + i % vectors);
}

/* Copies the part of the operation in shared memory. */
RONDO_FUNCTION void rondo_workers_load_part(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part =
        workers->program_block == 0 ? &workers->operation.first : &workers->operation.parts[workers->program_block];
    rondo_copy_vectors(&workers->part, part, sizeof(workers->part), thread, threads);
}

/* Loads the operation at workers->home, its part, instructions and ends. By all workers. */
RONDO_FUNCTION void rondo_workers_load_work(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    rondo_copy_vectors(&workers->operation, workers->home, sizeof(workers->operation), thread, threads);
    rondo_workers_sync(threads);
    rondo_workers_load_part(workers, thread, threads);
    rondo_workers_sync(threads);
    rondo_workers_load_instructions(workers, thread, threads);
    rondo_workers_load_ends(workers, thread, threads);
}

/* A barrier of the workers. Returns, to all, whether all say yes. */
RONDO_FUNCTION int rondo_workers_agree(int yes, uint32_t threads)
{
    if (threads > RONDO_CUDA_WARP)
        return rondo_cuda_all_agree(yes, threads);
    yes = __all_sync(RONDO_CUDA_WHOLE_WARP, yes);
    __syncwarp();
    return yes;
}

#endif
