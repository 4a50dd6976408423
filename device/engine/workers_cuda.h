/*
 * A CUDA block: worker warps that carry out pieces, and one more warp whose first thread, the leader, runs the single-source
 * engine and daemon and hands out the pieces. While the workers move one piece the leader publishes the one before and prepares
 * the next. They tell each other by barriers in shared memory: the named ones take several times as long.
 *
 * Why the leader's release covers what the workers stored: each has arrived at the barrier (release), the leader has waited for
 * it (acquire), and a fence is cumulative (PTX memory model, causality order). Why the workers see what the leader has
 * acquired: it arrives, they wait. All who wait at a barrier also arrive at it, and every thread for itself: what one lane does
 * for its warp, or a barrier where some only wait, compute-sanitizer's racecheck does not follow.
 */
#ifndef RONDO_DEVICE_ENGINE_WORKERS_CUDA_H
#define RONDO_DEVICE_ENGINE_WORKERS_CUDA_H

#include "device/move/cuda_barrier.h"
#include "device/move/move_ll_small.h"

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
    char pieces[RONDO_INTERPRETER_WARPS][RONDO_NARROW_BYTES(RONDO_WARP_WIDTH)]
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
    struct rondo_slice_op pieces[2];                     /* one is worked on while the other is described */
    struct rondo_use uses[2];                            /* the pieces' ends, */
    uint64_t positions[2][2 * RONDO_REDUCE_SOURCES_MAX]; /* and their positions: of those received from, then those sent to */
    uint64_t polls;                                      /* that LL data are waited for */
    uint32_t current;                                    /* the piece to describe next */
    uint32_t running;                                    /* begun, not finished */
    uint32_t command, slice_op;                          /* what the workers are to do, and with which piece */
    uint32_t commands;                                   /* given */
    uint64_t given, done; /* barriers of all: the leader has given a command; the workers have done theirs */
    uint32_t result;      /* of the last piece */
    uint32_t may_go_ahead,
        ahead; /* of a kernel on a stream: no other stream is to be waited for; the workers have gone ahead */
    /* The part of an operation that is here, and where the operation lives. */
    const struct rondo_operation *home;
    uint32_t program_block;
    uint32_t page;  /* of its instructions */
    uint32_t again; /* it is one piece, which the team can carry out by itself: 1 + which of the pieces describes it */
    uint32_t begun; /* and has been told to */
    uint32_t prepared, members, way; /* where its data and slots lie next is known, and who does it, and how; the workers' */
    struct rondo_part part __attribute__((aligned(16)));
    const void *copied; /* by the command to copy */
    void *copy;
    uint32_t copy_bytes;
    uint32_t repeat_first, repeat_count;                           /* ends, by the command to repeat */
    uint8_t progress[RONDO_PROGRESS] __attribute__((aligned(16))); /* of the warps, with a piece that is carried out in part */
    uint64_t saved; /* bytes, by compression, that have not been counted; the workers' */
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
    workers->may_go_ahead = workers->ahead = 0;
    workers->again = workers->begun = workers->prepared = 0;
}

/* What the warps have done of the run's first piece; and what they have done when it ends, for the next run: 1 if that is
 * something else. */
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

/* A piece is done: the next one is a new one. */
RONDO_FUNCTION void rondo_workers_forget_progress(struct rondo_workers *workers)
{
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        ((uint64_t *) workers->progress)[i] = 0;
}

RONDO_FUNCTION struct rondo_slice_op *rondo_workers_slice_op(struct rondo_workers *workers)
{
    return &workers->pieces[workers->current];
}

RONDO_FUNCTION struct rondo_use *rondo_workers_use(struct rondo_workers *workers)
{
    return &workers->uses[workers->current];
}

/* The ends move on before the workers get to the piece. */
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

/* The same piece once more: what it sends before it waits has been sent. */
RONDO_FUNCTION void rondo_workers_repeat(struct rondo_workers *workers)
{
    workers->current ^= 1;
    workers->pieces[workers->current].sent = 1;
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

/* In device/cuda/kernels.cu: of kernels on streams. */
RONDO_FUNCTION void rondo_workers_arrive(struct rondo_workers *workers, const struct rondo_run *run);

/* What may have changed of the ends since they were brought here. By the leader. */
RONDO_FUNCTION void rondo_workers_look_again(struct rondo_workers *workers)
{
    const uint32_t count = workers->part.end_count;
#pragma unroll 4
    for (uint32_t i = 0; i < count; i++)
        *(uint4 *) &workers->ends[i].position = rondo_load_late((const uint4 *) &rondo_part_end(&workers->part, i)->position);
}

/* The piece is all there is of the part, and the workers need nobody for it. */
RONDO_FUNCTION int rondo_workers_is_enough(const struct rondo_workers *workers, const struct rondo_instruction *instruction,
                                           uint32_t index)
{
    const struct rondo_slice_op *slice_op = &workers->pieces[index];
    const struct rondo_use *use = &workers->uses[index];
    return workers->part.instruction_count == 1 && workers->operation.tiles == 1 && workers->operation.slices == 1 &&
           instruction->count == 1 && instruction->dependencies == 0 && !(instruction->flags & RONDO_NOTIFY) &&
           !use->direct_in && !use->direct_out && use->received + use->sent == workers->part.end_count &&
           !workers->part.repeats && rondo_cuda_is_usual(slice_op) && slice_op->ll_remotes == rondo_low_bits(use->sent);
}

/* The short way for what most small operations are, one piece of LL packets: the leader has described it before it is the
 * kernel's turn, and the workers do the rest by themselves once it is, where the ends stand and whether there is room included,
 * for each time leader and workers wait for each other costs as much as the link. When there was no room, or data have not come
 * for a while, nothing has been done but that packets may have been sent, which will be sent once more. (Where more pieces
 * follow, doing so with the first is slower than the long way.) */
RONDO_FUNCTION int rondo_workers_goes_ahead(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    if (!workers->may_go_ahead || !rondo_workers_is_enough(workers, instruction, workers->current))
        return 0;
    workers->polls = RONDO_AHEAD_POLLS;
    workers->ahead = 1;
    rondo_workers_command(workers, RONDO_COMMAND_AHEAD);
    return 1;
}

/* The same for an operation that is started again as it was: its only piece is still described, and where its ends stand the
 * workers know. Begins with the block's part, if that is so; whoever does it sees to it that the part is visited next. */
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

/* Whether that will do for the piece that was begun last. */
RONDO_FUNCTION void rondo_workers_keep(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    workers->again = rondo_workers_is_enough(workers, instruction, workers->slice_op) ? workers->slice_op + 1 : 0;
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

/* ---- the others ---- */

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

RONDO_FUNCTION void rondo_workers_resolve(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads)
{
    const struct rondo_use *use = &workers->uses[index];
    const uint64_t *positions = workers->positions[index];
    struct rondo_slice_op *slice_op = &workers->pieces[index];
    for (uint32_t i = thread; i < use->received; i += threads)
        rondo_resolve_source(use, &workers->ends[use->receive_first + i], positions[i], i, slice_op);
    for (uint32_t i = thread; i < use->sent; i += threads)
        rondo_resolve_remote(use, &workers->ends[use->send_first + i], &workers->ends[use->receive_first + i],
                             positions[use->received + i], i, slice_op);
    if (slice_op->rate != 0 && thread == 0)
        workers->saved += rondo_resolve_codec(use, &workers->instructions[use->instruction % RONDO_WORKERS_PAGE],
                                              &workers->operation, slice_op);
}

/* Of a piece that the workers go ahead with: where its ends stand now. again: what is here of them is up to date. 0: there is
 * no room. */
RONDO_FUNCTION int rondo_workers_resolve_late(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                              int again)
{
    const struct rondo_use *use = &workers->uses[index];
    struct rondo_slice_op *slice_op = &workers->pieces[index];
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
            const uint64_t seen = receives ? 0 : rondo_load_acquire(end->watched); /* as rondo_has_room, but both at once */
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
            /* Where it will stand, while there is time; if nothing comes of it, the leader puts it right
             * (rondo_workers_unload).
             */
            home->position = end->position + 1;
            home->seen = end->seen;
        }
    }
    return room;
}

/* All packets of the piece have been read: its slots are taken, and the peers have them back. */
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

/* All of them have come to here; whether all say yes. */
RONDO_FUNCTION int rondo_workers_agree(int yes, uint32_t threads)
{
    if (threads > RONDO_CUDA_WARP)
        return rondo_cuda_all_agree(yes, threads);
    yes = __all_sync(RONDO_CUDA_WHOLE_WARP, yes);
    __syncwarp();
    return yes;
}

/* Of a small piece, one warp does it all, and answers. */
RONDO_FUNCTION uint32_t rondo_workers_members_of(const struct rondo_slice_op *slice_op, int usual, uint32_t threads)
{
    int small = usual && !slice_op->lines && slice_op->count * slice_op->element_bytes <= RONDO_CUDA_WARP * 8;
    return small ? RONDO_CUDA_WARP : threads;
}

RONDO_FUNCTION enum rondo_cuda_way rondo_workers_way_of(const struct rondo_workers *workers, uint32_t index, int usual,
                                                        uint32_t threads, int all_lines)
{
    const struct rondo_slice_op *slice_op = &workers->pieces[index];
    const uint32_t own = rondo_cuda_own_source(slice_op);
    int known = own >= slice_op->sources || own == workers->uses[index].local_place; /* where that lies */
    return usual && known ? rondo_cuda_way_of(slice_op, all_lines, threads) : RONDO_CUDA_ANY_WAY;
}

RONDO_FUNCTION int rondo_workers_run_slice_op(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                              uint32_t command, int all_lines, int of_daemon)
{
    const struct rondo_slice_op *slice_op = &workers->pieces[index];
    const int ahead = command != RONDO_COMMAND_SLICE_OP, again = of_daemon && command == RONDO_COMMAND_AGAIN;
    const int prepared = again && workers->prepared;
    const int usual = prepared || rondo_cuda_is_usual(slice_op);
    const uint32_t members = prepared ? workers->members : rondo_workers_members_of(slice_op, usual, threads);
    if (thread >= members)
        return 1;
    if (command == RONDO_COMMAND_AHEAD)
        rondo_after_stream();
    const enum rondo_cuda_way way =
        prepared ? (enum rondo_cuda_way) workers->way : rondo_workers_way_of(workers, index, usual, threads, all_lines);
    struct rondo_cuda_own own;
    rondo_cuda_ask(slice_op, way, thread, threads, &own);
    if (!prepared) {
        int ready = 1;
        if (ahead)
            ready = rondo_workers_resolve_late(workers, index, thread, members, again);
        else
            rondo_workers_resolve(workers, index, thread, members);
        if (!rondo_workers_agree(ready, members))
            return 0;
    }
    if (usual) {
        int done = rondo_cuda_work_usual(slice_op, way, all_lines, thread, threads, workers->polls, &own, workers->progress);
        if (ahead && rondo_workers_agree(done, members))
            rondo_workers_move_on(workers, index, thread, members, again);
        return done;
    }
    if (rondo_cuda_work_vector(slice_op, thread, threads))
        return 1;
    return rondo_cuda_work(slice_op, thread, threads, workers->polls);
}

/* The leader does not wait for this any more: what it takes to carry the piece out once more, as long as there is room. By one
 * warp; called, for it would take registers from the rest. */
RONDO_RARE void rondo_workers_prepare(struct rondo_workers *workers, uint32_t index, uint32_t thread, uint32_t threads,
                                      int all_lines)
{
    if (workers->part.end_count > RONDO_CUDA_WARP) /* each end is its thread's */
        return;
    const int room =
        rondo_workers_agree(rondo_workers_resolve_late(workers, index, thread, RONDO_CUDA_WARP, 1), RONDO_CUDA_WARP);
    if (thread == 0) {
        workers->members = rondo_workers_members_of(&workers->pieces[index], 1, threads);
        workers->way = rondo_workers_way_of(workers, index, 1, threads, all_lines);
        workers->prepared = (uint32_t) room;
    }
}

RONDO_FUNCTION void rondo_workers_copy_ends(struct rondo_workers *workers, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = workers->repeat_first; i < workers->repeat_first + workers->repeat_count; i++)
        for (uint32_t k = thread; k < workers->part.end_count; k += threads)
            if (k != i && rondo_part_end(&workers->part, k) == rondo_part_end(&workers->part, i)) {
                workers->ends[k].position = workers->ends[i].position;
                workers->ends[k].seen = workers->ends[i].seen;
            }
}

/* In device/engine/warp_interpreter.h. */
RONDO_RARE int rondo_warp_interpreter(struct rondo_workers *workers, uint32_t thread, uint32_t threads);

/* Constants: all_lines: the team's operations have no connectors but those of LL128. of_daemon: they may be started again. */
RONDO_FUNCTION void rondo_workers_work(struct rondo_workers *workers, uint32_t thread, uint32_t threads, int all_lines,
                                       int of_daemon)
{
    for (uint32_t next = 0;; next++) {
        rondo_barrier_arrive(&workers->given);
        rondo_barrier_wait(&workers->given, next, rondo_workers_members());
        const uint32_t command = workers->command, slice_op = workers->slice_op;
        int result = 1;
        if (command <= RONDO_COMMAND_AGAIN) /* one call: it is inlined, and large */
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
