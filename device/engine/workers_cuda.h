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

#define RONDO_TEAM_OVERLAPS 1
#define RONDO_TEAM_POLLS_LL 1

#define RONDO_AHEAD_POLLS 256 /* of the workers, until the leader looks */
#define RONDO_TEAM_PAGE   64  /* instructions of a part that are in shared memory at a time */

/* Named barriers of the workers; cuda_move.h has those from 8 on. */
#define RONDO_BARRIER_LOAD 3

enum rondo_command {
    RONDO_COMMAND_PIECE,
    RONDO_COMMAND_AHEAD,
    RONDO_COMMAND_AGAIN,
    RONDO_COMMAND_LOAD,
    RONDO_COMMAND_PAGE,
    RONDO_COMMAND_COPY,
    RONDO_COMMAND_REPEAT,
    RONDO_COMMAND_WALK,
    RONDO_COMMAND_NOTHING,
    RONDO_COMMAND_EXIT
};

/* A part that warps walk through (cuda_walk.h). */
#define RONDO_WALK_WARPS (RONDO_CUDA_WORKERS_MAX / RONDO_CUDA_WARP)
struct rondo_walk_step { /* an instruction */
    char *local;         /* where the result goes; NULL: nowhere here */
    const char *own;     /* the local source, if it has one, at that place among the sources */
    uint64_t bytes;      /* of the chunk */
    uint8_t has_own, own_place, sources;
    uint8_t receive_first, received, send_first, sent;
    uint8_t exchanges, finishes;
};
struct rondo_walk {
    struct rondo_walk_step steps[RONDO_WALK_INSTRUCTIONS];
    char pieces[RONDO_WALK_WARPS][RONDO_NARROW_BYTES(RONDO_WALK_WIDTH)]
        __attribute__((aligned(16)));  /* what each carries out */
    uint32_t passed[RONDO_WALK_WARPS]; /* instructions that a warp is through with */
    uint32_t sends[RONDO_WALK_ENDS];   /* an end does */
    uint32_t moved[RONDO_WALK_ENDS];   /* slots that all warps have taken of an end; the leader's */
    int gives_back;                    /* during the part: slots are used more than once */
    int ragged;                        /* chunks may end within a vector */
    uint32_t ahead;                    /* the warps wait for what the stream holds before */
    uint32_t stop;                     /* they shall leave off */
};

/* In shared memory. */
struct rondo_team {
    struct rondo_piece pieces[2];                      /* one is worked on while the other is described */
    struct rondo_use uses[2];                          /* the pieces' ends, */
    uint64_t positions[2][2 * RONDO_FOLD_SOURCES_MAX]; /* and their positions: of those received from, then those sent to */
    uint64_t polls;                                    /* that LL data are waited for */
    uint32_t current;                                  /* the piece to describe next */
    uint32_t running;                                  /* begun, not finished */
    uint32_t command, piece;                           /* what the workers are to do, and with which piece */
    uint32_t commands;                                 /* given */
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
    struct rondo_walk walk;
    struct rondo_operation operation;
    struct rondo_instruction instructions[RONDO_TEAM_PAGE];
    struct rondo_end ends[RONDO_PROGRAM_ENDS_MAX] __attribute__((aligned(16)));
};

RONDO_FUNCTION void rondo_workers_sync(uint32_t workers)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(RONDO_BARRIER_LOAD), "r"(workers) : "memory");
}

/* ---- the leader ---- */

/* Workers and leader. */
RONDO_FUNCTION uint32_t rondo_team_members(void)
{
    return blockDim.x - RONDO_CUDA_CONTROL + 1;
}

/* By one thread, before the others begin. */
RONDO_FUNCTION void rondo_team_reset(struct rondo_team *team)
{
    team->current = team->running = team->commands = 0;
    rondo_barrier_begin(&team->given, rondo_team_members());
    rondo_barrier_begin(&team->done, rondo_team_members());
    team->saved = 0;
    team->may_go_ahead = team->ahead = 0;
    team->again = team->begun = team->prepared = 0;
}

/* What the warps have done of the run's first piece; and what they have done when it ends, for the next run: 1 if that is
 * something else. */
RONDO_FUNCTION void rondo_team_resume(struct rondo_team *team, const struct rondo_context *context)
{
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        ((uint64_t *) team->progress)[i] = context->progress[i];
}

RONDO_FUNCTION int rondo_team_pause(const struct rondo_team *team, struct rondo_context *context)
{
    int changed = 0;
    for (int i = 0; i < RONDO_PROGRESS / 8; i++) {
        uint64_t now = ((const uint64_t *) team->progress)[i];
        changed |= context->progress[i] != now;
        context->progress[i] = now;
    }
    return changed;
}

/* A piece is done: the next one is a new one. */
RONDO_FUNCTION void rondo_team_forget_progress(struct rondo_team *team)
{
    for (int i = 0; i < RONDO_PROGRESS / 8; i++)
        ((uint64_t *) team->progress)[i] = 0;
}

RONDO_FUNCTION struct rondo_piece *rondo_team_piece(struct rondo_team *team)
{
    return &team->pieces[team->current];
}

RONDO_FUNCTION struct rondo_use *rondo_team_use(struct rondo_team *team)
{
    return &team->uses[team->current];
}

/* The ends move on before the workers get to the piece. */
RONDO_FUNCTION void rondo_team_take_ends(struct rondo_team *team, const struct rondo_run *run, const struct rondo_use *use)
{
    uint64_t *positions = team->positions[team->current];
    (void) run;
    for (uint32_t i = 0; i < use->received; i++)
        positions[i] = team->ends[use->receive_first + i].position;
    for (uint32_t i = 0; i < use->sent; i++)
        positions[use->received + i] = team->ends[use->send_first + i].position;
}

RONDO_FUNCTION void rondo_team_command(struct rondo_team *team, uint32_t command)
{
    team->command = command;
    team->piece = team->current;
    team->running = 1;
    team->commands++;
    rondo_barrier_arrive(&team->given);
}

/* Nothing may be running. */
RONDO_FUNCTION void rondo_team_begin(struct rondo_team *team, uint64_t polls)
{
    team->polls = polls;
    rondo_team_command(team, RONDO_COMMAND_PIECE);
    team->current ^= 1;
}

/* The same piece once more: what it sends before it waits has been sent. */
RONDO_FUNCTION void rondo_team_repeat(struct rondo_team *team)
{
    team->current ^= 1;
    team->pieces[team->current].sent = 1;
    rondo_team_begin(team, team->polls);
}

/* Waits until what was begun is done. 0: LL data did not arrive, and nothing was done. */
RONDO_FUNCTION int rondo_team_finish(struct rondo_team *team)
{
    if (!team->running)
        return 1;
    team->running = 0;
    rondo_barrier_arrive(&team->done);
    rondo_barrier_wait(&team->done, team->commands - 1, rondo_team_members());
    return (int) *(volatile uint32_t *) &team->result;
}

/* An operation that has been brought in, where it is at hand. */
RONDO_FUNCTION const struct rondo_operation *rondo_team_operation(const struct rondo_team *team,
                                                                  const struct rondo_operation *home)
{
    (void) home;
    return &team->operation;
}

/* Brings a part of an operation, its instructions and its ends into shared memory, unless they are there: an acquire anywhere
 * in the block empties the first-level cache. Of an operation that is not fresh nobody else has moved the ends: it is the
 * one that its lane had last. */
RONDO_FUNCTION void rondo_team_load(struct rondo_team *team, struct rondo_run *run)
{
    if (run->fresh || team->home != run->home || team->program_block != run->program_block) {
        team->home = run->home;
        team->program_block = run->program_block;
        team->page = run->instruction / RONDO_TEAM_PAGE;
        rondo_team_command(team, RONDO_COMMAND_LOAD);
        rondo_team_finish(team);
    } else if (run->of_daemon && team->again) { /* the workers may still be preparing it */
        rondo_team_command(team, RONDO_COMMAND_NOTHING);
        rondo_team_finish(team);
    }
    if (run->of_daemon)
        team->again = team->prepared = 0;
    run->operation = rondo_team_operation(team, run->home);
    run->part = &team->part;
    run->row = team->ends;
    run->ends = NULL;
}

RONDO_FUNCTION int rondo_team_has_instruction(const struct rondo_team *team, uint32_t index)
{
    return index / RONDO_TEAM_PAGE == team->page;
}

/* Nothing may be running. */
RONDO_FUNCTION void rondo_team_load_page(struct rondo_team *team, uint32_t index)
{
    team->page = index / RONDO_TEAM_PAGE;
    rondo_team_command(team, RONDO_COMMAND_PAGE);
    rondo_team_finish(team);
}

RONDO_FUNCTION const struct rondo_instruction *rondo_team_instruction(const struct rondo_team *team,
                                                                      const struct rondo_run *run, uint32_t index)
{
    (void) run;
    return &team->instructions[index % RONDO_TEAM_PAGE];
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
RONDO_FUNCTION void rondo_team_ending(struct rondo_team *team)
{
    (void) team;
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* In cuda_kernels.cu: of kernels on streams. */
RONDO_FUNCTION void rondo_team_arrive(struct rondo_team *team, const struct rondo_run *run);

/* What may have changed of the ends since they were brought here. By the leader. */
RONDO_FUNCTION void rondo_team_look_again(struct rondo_team *team)
{
    const uint32_t count = team->part.end_count;
#pragma unroll 4
    for (uint32_t i = 0; i < count; i++)
        *(uint4 *) &team->ends[i].position = rondo_load_late((const uint4 *) &rondo_part_end(&team->part, i)->position);
}

/* The piece is all there is of the part, and the workers need nobody for it. */
RONDO_FUNCTION int rondo_team_is_enough(const struct rondo_team *team, const struct rondo_instruction *instruction,
                                        uint32_t index)
{
    const struct rondo_piece *piece = &team->pieces[index];
    const struct rondo_use *use = &team->uses[index];
    return team->part.instruction_count == 1 && team->operation.tiles == 1 && team->operation.slices == 1 &&
           instruction->count == 1 && instruction->dependencies == 0 && !(instruction->flags & RONDO_NOTIFY) &&
           !use->direct_in && !use->direct_out && use->received + use->sent == team->part.end_count && !team->part.repeats &&
           rondo_cuda_is_usual(piece) && piece->ll_remotes == rondo_low_bits(use->sent);
}

/* The short way for what most small operations are, one piece of LL packets: the leader has described it before it is the
 * kernel's turn, and the workers do the rest by themselves once it is, where the ends stand and whether there is room included,
 * for each time leader and workers wait for each other costs as much as the link. When there was no room, or data have not come
 * for a while, nothing has been done but that packets may have been sent, which will be sent once more. (Where more pieces
 * follow, doing so with the first is slower than the long way.) */
RONDO_FUNCTION int rondo_team_goes_ahead(struct rondo_team *team, const struct rondo_instruction *instruction)
{
    if (!team->may_go_ahead || !rondo_team_is_enough(team, instruction, team->current))
        return 0;
    team->polls = RONDO_AHEAD_POLLS;
    team->ahead = 1;
    rondo_team_command(team, RONDO_COMMAND_AHEAD);
    return 1;
}

/* The same for an operation that is started again as it was: its only piece is still described, and where its ends stand the
 * workers know. Begins with the block's part, if that is so; whoever does it sees to it that the part is visited next. */
RONDO_FUNCTION void rondo_team_begin_again(struct rondo_team *team, const struct rondo_operation *home, uint64_t polls)
{
    if (!team->again || team->home != home)
        return;
    team->current = team->again - 1;
    rondo_team_piece(team)->sent = 0;
    rondo_team_forget_progress(team);
    team->polls = polls < RONDO_AHEAD_POLLS ? polls : RONDO_AHEAD_POLLS;
    rondo_team_command(team, RONDO_COMMAND_AGAIN);
    team->begun = 1;
}

/* The bytes it sent; or -1: it has not been begun, or it is stuck, as far as the context says. */
RONDO_FUNCTION int64_t rondo_team_finish_again(struct rondo_team *team, struct rondo_context *context)
{
    const struct rondo_piece *piece = rondo_team_piece(team);
    if (!team->begun)
        return -1;
    team->begun = 0;
    const int64_t bytes = (int64_t) (piece->count * piece->element_bytes * piece->remotes);
    if (rondo_team_finish(team))
        return bytes;
    rondo_team_pause(team, context);
    return -1;
}

/* Whether that will do for the piece that was begun last. */
RONDO_FUNCTION void rondo_team_keep(struct rondo_team *team, const struct rondo_instruction *instruction)
{
    team->again = rondo_team_is_enough(team, instruction, team->piece) ? team->piece + 1 : 0;
}

/* Writes back what has changed. */
RONDO_FUNCTION void rondo_team_unload(struct rondo_team *team, struct rondo_run *run)
{
    for (uint32_t i = 0; i < team->part.end_count; i++) {
        struct rondo_end *home = rondo_part_end(&team->part, i);
        const struct rondo_end *end = &team->ends[i];
        *(ulonglong2 *) &home->position = *(const ulonglong2 *) &end->position; /* and seen */
        if (run->operation->direct) {
            home->direct[0] = end->direct[0];
            home->direct[1] = end->direct[1];
        }
    }
    if (run->operation->rate != 0) {
        rondo_count(&run->statistics->bytes_saved, team->saved);
        team->saved = 0;
    }
}

/* The ends have moved on: so have the others of the same connectors, where the part names one more than once. Rare, and slow.
 */
RONDO_FUNCTION void rondo_team_repeat_ends(struct rondo_team *team, uint32_t first, uint32_t count)
{
    rondo_team_finish(team);
    team->repeat_first = first;
    team->repeat_count = count;
    rondo_team_command(team, RONDO_COMMAND_REPEAT);
    rondo_team_finish(team);
}

/* The other blocks have been told of an operation: they look by themselves. */
RONDO_FUNCTION void rondo_team_told(const struct rondo_team *team)
{
    (void) team;
}

RONDO_FUNCTION void rondo_team_copy(struct rondo_team *team, void *to, const void *from, uint32_t bytes)
{
    team->copy = to;
    team->copied = from;
    team->copy_bytes = bytes;
    rondo_team_command(team, RONDO_COMMAND_COPY);
    rondo_team_finish(team);
}

RONDO_FUNCTION void rondo_team_dismiss(struct rondo_team *team)
{
    rondo_team_command(team, RONDO_COMMAND_EXIT);
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
RONDO_FUNCTION void rondo_team_load_instructions(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &team->part;
    uint32_t first = team->page * RONDO_TEAM_PAGE;
    uint32_t count = part->instruction_count - first < RONDO_TEAM_PAGE ? part->instruction_count - first : RONDO_TEAM_PAGE;
    rondo_copy_vectors(team->instructions, part->instructions + first, count * (uint32_t) sizeof(team->instructions[0]), thread,
                       threads);
}

RONDO_FUNCTION void rondo_team_load_ends(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &team->part;
    const uint32_t vectors = sizeof(struct rondo_end) / 16;
    for (uint32_t i = thread; i < part->end_count * vectors; i += threads)
        ((uint4 *) &team->ends[i / vectors])[i % vectors] =
            rondo_load_late((const uint4 *) rondo_part_end(part, i / vectors) + i % vectors);
}

/* The part itself, from the operation that is here. */
RONDO_FUNCTION void rondo_team_load_part(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part =
        team->program_block == 0 ? &team->operation.first : &team->operation.parts[team->program_block];
    rondo_copy_vectors(&team->part, part, sizeof(team->part), thread, threads);
}

RONDO_FUNCTION void rondo_team_load_work(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    rondo_copy_vectors(&team->operation, team->home, sizeof(team->operation), thread, threads);
    rondo_workers_sync(threads);
    rondo_team_load_part(team, thread, threads);
    rondo_workers_sync(threads);
    rondo_team_load_instructions(team, thread, threads);
    rondo_team_load_ends(team, thread, threads);
}

RONDO_FUNCTION void rondo_team_resolve(struct rondo_team *team, uint32_t index, uint32_t thread, uint32_t threads)
{
    const struct rondo_use *use = &team->uses[index];
    const uint64_t *positions = team->positions[index];
    struct rondo_piece *piece = &team->pieces[index];
    for (uint32_t i = thread; i < use->received; i += threads)
        rondo_resolve_source(use, &team->ends[use->receive_first + i], positions[i], i, piece);
    for (uint32_t i = thread; i < use->sent; i += threads)
        rondo_resolve_remote(use, &team->ends[use->send_first + i], &team->ends[use->receive_first + i],
                             positions[use->received + i], i, piece);
    if (piece->rate != 0 && thread == 0)
        team->saved +=
            rondo_resolve_codec(use, &team->instructions[use->instruction % RONDO_TEAM_PAGE], &team->operation, piece);
}

/* Of a piece that the workers go ahead with: where its ends stand now. again: what is here of them is up to date. 0: there is
 * no room. */
RONDO_FUNCTION int rondo_team_resolve_late(struct rondo_team *team, uint32_t index, uint32_t thread, uint32_t threads,
                                           int again)
{
    const struct rondo_use *use = &team->uses[index];
    struct rondo_piece *piece = &team->pieces[index];
    int room = 1;
    for (uint32_t i = thread; i < (uint32_t) use->received + use->sent; i += threads) {
        const int receives = i < use->received;
        const uint32_t place = receives ? use->receive_first + i : use->send_first + i - use->received;
        struct rondo_end *end = &team->ends[place], *home = rondo_part_end(&team->part, place);
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
            rondo_resolve_source(use, end, end->position, i, piece);
        } else {
            rondo_resolve_remote(use, end, end, end->position, i - use->received, piece);
            room &= end->position - end->seen < end->slot_count;
        }
        if (!again) {
            /* Where it will stand, while there is time; if nothing comes of it, the leader puts it right (rondo_team_unload).
             */
            home->position = end->position + 1;
            home->seen = end->seen;
        }
    }
    return room;
}

/* All packets of the piece have been read: its slots are taken, and the peers have them back. */
RONDO_FUNCTION void rondo_team_move_on(struct rondo_team *team, uint32_t index, uint32_t thread, uint32_t threads, int again)
{
    const struct rondo_use *use = &team->uses[index];
    for (uint32_t i = thread; i < (uint32_t) use->received + use->sent; i += threads) {
        const uint32_t place = i < use->received ? use->receive_first + i : use->send_first + i - use->received;
        struct rondo_end *end = &team->ends[place];
        end->position++;
        if (i < use->received)
            rondo_publish_word(end->published, end->position);
        if (again) {
            struct rondo_end *home = rondo_part_end(&team->part, place);
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
RONDO_FUNCTION uint32_t rondo_team_members_of(const struct rondo_piece *piece, int usual, uint32_t threads)
{
    int small = usual && !piece->lines && piece->count * piece->element_bytes <= RONDO_CUDA_WARP * 8;
    return small ? RONDO_CUDA_WARP : threads;
}

RONDO_FUNCTION enum rondo_cuda_way rondo_team_way_of(const struct rondo_team *team, uint32_t index, int usual, uint32_t threads,
                                                     int all_lines)
{
    const struct rondo_piece *piece = &team->pieces[index];
    const uint32_t own = rondo_cuda_own_source(piece);
    int known = own >= piece->sources || own == team->uses[index].local_place; /* where that lies */
    return usual && known ? rondo_cuda_way_of(piece, all_lines, threads) : RONDO_CUDA_ANY_WAY;
}

RONDO_FUNCTION int rondo_team_work_piece(struct rondo_team *team, uint32_t index, uint32_t thread, uint32_t threads,
                                         uint32_t command, int all_lines, int of_daemon)
{
    const struct rondo_piece *piece = &team->pieces[index];
    const int ahead = command != RONDO_COMMAND_PIECE, again = of_daemon && command == RONDO_COMMAND_AGAIN;
    const int prepared = again && team->prepared;
    const int usual = prepared || rondo_cuda_is_usual(piece);
    const uint32_t members = prepared ? team->members : rondo_team_members_of(piece, usual, threads);
    if (thread >= members)
        return 1;
    if (command == RONDO_COMMAND_AHEAD)
        rondo_after_stream();
    const enum rondo_cuda_way way =
        prepared ? (enum rondo_cuda_way) team->way : rondo_team_way_of(team, index, usual, threads, all_lines);
    struct rondo_cuda_own own;
    rondo_cuda_ask(piece, way, thread, threads, &own);
    if (!prepared) {
        int ready = 1;
        if (ahead)
            ready = rondo_team_resolve_late(team, index, thread, members, again);
        else
            rondo_team_resolve(team, index, thread, members);
        if (!rondo_workers_agree(ready, members))
            return 0;
    }
    if (usual) {
        int done = rondo_cuda_work_usual(piece, way, all_lines, thread, threads, team->polls, &own, team->progress);
        if (ahead && rondo_workers_agree(done, members))
            rondo_team_move_on(team, index, thread, members, again);
        return done;
    }
    if (rondo_cuda_work_straight(piece, thread, threads))
        return 1;
    return rondo_cuda_work(piece, thread, threads, team->polls);
}

/* The leader does not wait for this any more: what it takes to carry the piece out once more, as long as there is room. By one
 * warp; called, for it would take registers from the rest. */
RONDO_RARE void rondo_team_prepare(struct rondo_team *team, uint32_t index, uint32_t thread, uint32_t threads, int all_lines)
{
    if (team->part.end_count > RONDO_CUDA_WARP) /* each end is its thread's */
        return;
    const int room = rondo_workers_agree(rondo_team_resolve_late(team, index, thread, RONDO_CUDA_WARP, 1), RONDO_CUDA_WARP);
    if (thread == 0) {
        team->members = rondo_team_members_of(&team->pieces[index], 1, threads);
        team->way = rondo_team_way_of(team, index, 1, threads, all_lines);
        team->prepared = (uint32_t) room;
    }
}

RONDO_FUNCTION void rondo_team_copy_ends(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = team->repeat_first; i < team->repeat_first + team->repeat_count; i++)
        for (uint32_t k = thread; k < team->part.end_count; k += threads)
            if (k != i && rondo_part_end(&team->part, k) == rondo_part_end(&team->part, i)) {
                team->ends[k].position = team->ends[i].position;
                team->ends[k].seen = team->ends[i].seen;
            }
}

/* In cuda_walk.h. */
RONDO_RARE int rondo_walk(struct rondo_team *team, uint32_t thread, uint32_t threads);

/* Constants: all_lines: the team's operations have no connectors but those of LL128. of_daemon: they may be started again. */
RONDO_FUNCTION void rondo_team_work(struct rondo_team *team, uint32_t thread, uint32_t threads, int all_lines, int of_daemon)
{
    for (uint32_t next = 0;; next++) {
        rondo_barrier_arrive(&team->given);
        rondo_barrier_wait(&team->given, next, rondo_team_members());
        const uint32_t command = team->command, piece = team->piece;
        int result = 1;
        if (command <= RONDO_COMMAND_AGAIN) /* one call: it is inlined, and large */
            result = rondo_team_work_piece(team, piece, thread, threads, command, all_lines, of_daemon);
        else if (command == RONDO_COMMAND_LOAD)
            rondo_team_load_work(team, thread, threads);
        else if (command == RONDO_COMMAND_PAGE)
            rondo_team_load_instructions(team, thread, threads);
        else if (command == RONDO_COMMAND_COPY)
            rondo_copy_vectors(team->copy, team->copied, team->copy_bytes, thread, threads);
        else if (command == RONDO_COMMAND_REPEAT)
            rondo_team_copy_ends(team, thread, threads);
        else if (all_lines && command == RONDO_COMMAND_WALK)
            result = rondo_walk(team, thread, threads);
        else if (command == RONDO_COMMAND_EXIT)
            return;
        if (thread == 0)
            team->result = (uint32_t) result;
        rondo_barrier_arrive(&team->done);
        if (of_daemon && command == RONDO_COMMAND_AGAIN && result && thread < RONDO_CUDA_WARP)
            rondo_team_prepare(team, piece, thread, threads, all_lines);
    }
}

#endif
