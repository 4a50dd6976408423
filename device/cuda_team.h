/*
 * A CUDA block: worker warps that carry out pieces, and one more warp whose first thread, the leader, runs the single-source
 * engine and daemon and hands out the pieces. While the workers move one piece the leader publishes the one before and prepares
 * the next. Its other 31 threads only join it at the barriers, which count whole warps.
 *
 * Why the leader's release covers what the workers stored: barrier DONE orders their stores before the leader's fence, and a
 * fence is cumulative (PTX memory model, causality order). Why they see what the leader has acquired: barrier START.
 */
#ifndef RONDO_DEVICE_CUDA_TEAM_H
#define RONDO_DEVICE_CUDA_TEAM_H

#include "cuda_work.h"

#define RONDO_TEAM_OVERLAPS 1
#define RONDO_TEAM_POLLS_LL 1

#define RONDO_TEAM_CONTROL_THREADS 32
#define RONDO_TEAM_INSTRUCTIONS    64 /* of a part, that fit into shared memory; longer lists are read where they are */
#define RONDO_TEAM_ENDS            32

/* Named barriers; cuda_move.h has those from 8 on. */
#define RONDO_BARRIER_START 1
#define RONDO_BARRIER_DONE  2
#define RONDO_BARRIER_LOAD  3

enum rondo_command { RONDO_COMMAND_PIECE, RONDO_COMMAND_LOAD, RONDO_COMMAND_COPY, RONDO_COMMAND_EXIT };
enum rondo_follow { RONDO_FOLLOW_START, RONDO_FOLLOW_DONE, RONDO_FOLLOW_EXIT };

/* In shared memory. */
struct rondo_team {
    struct rondo_run run;         /* what the leader executes */
    struct rondo_piece pieces[2]; /* one is worked on while the other is described */
    uint64_t polls;               /* that LL data are waited for */
    uint32_t current;             /* the piece to describe next */
    uint32_t running;             /* begun, not finished */
    uint32_t turn;                /* of the two commands, which are written by turns */
    struct {
        uint32_t what, piece;
    } command[2];
    /* enum rondo_follow: what the control warp's other threads join in. Two, by turns: one is written again only after they
     * have come to the other, and so have read it. */
    uint32_t follow[2];
    uint32_t step;   /* the leader's count of them */
    uint32_t result; /* of the last piece */
    /* The part of an operation that is here, and where the operation lives. */
    const struct rondo_operation *home;
    uint32_t program_block;
    uint32_t fits; /* and so are the part's instructions and ends */
    struct rondo_part part __attribute__((aligned(16)));
    const void *copied; /* by the command to copy */
    void *copy;
    uint32_t copy_bytes;
    struct rondo_operation operation;
    struct rondo_instruction instructions[RONDO_TEAM_INSTRUCTIONS] __attribute__((aligned(16)));
    struct rondo_end ends[RONDO_TEAM_ENDS] __attribute__((aligned(16)));
    struct rondo_end *ends_home[RONDO_TEAM_ENDS], *ends_here[RONDO_TEAM_ENDS];
};

RONDO_FUNCTION void rondo_barrier_sync(uint32_t barrier)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}
RONDO_FUNCTION void rondo_barrier_arrive(uint32_t barrier)
{
    asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}

RONDO_FUNCTION void rondo_workers_sync(uint32_t workers)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(RONDO_BARRIER_LOAD), "r"(workers) : "memory");
}

/* ---- the leader ---- */

RONDO_FUNCTION struct rondo_piece *rondo_team_piece(struct rondo_team *team)
{
    return &team->pieces[team->current];
}

RONDO_FUNCTION void rondo_team_lead(struct rondo_team *team, uint32_t follow)
{
    team->follow[team->step++ & 1] = follow;
    __syncwarp();
}

RONDO_FUNCTION void rondo_team_command(struct rondo_team *team, uint32_t command)
{
    team->command[team->turn].what = command;
    team->command[team->turn].piece = team->current;
    team->turn ^= 1;
    team->running = 1;
    rondo_team_lead(team, command == RONDO_COMMAND_EXIT ? RONDO_FOLLOW_EXIT : RONDO_FOLLOW_START);
    rondo_barrier_arrive(RONDO_BARRIER_START);
}

/* Nothing may be running. */
RONDO_FUNCTION void rondo_team_begin(struct rondo_team *team, uint64_t polls)
{
    team->polls = polls;
    rondo_team_command(team, RONDO_COMMAND_PIECE);
    team->current ^= 1;
}

/* The same piece once more. */
RONDO_FUNCTION void rondo_team_repeat(struct rondo_team *team)
{
    team->current ^= 1;
    rondo_team_begin(team, team->polls);
}

/* Waits until what was begun is done. 0: LL data did not arrive, and nothing was done. */
RONDO_FUNCTION int rondo_team_finish(struct rondo_team *team)
{
    if (!team->running)
        return 1;
    team->running = 0;
    rondo_team_lead(team, RONDO_FOLLOW_DONE);
    rondo_barrier_sync(RONDO_BARRIER_DONE);
    return (int) *(volatile uint32_t *) &team->result;
}

/* Brings a part of an operation, its instructions and its ends into shared memory, unless they are there: an acquire anywhere
 * in the block empties the first-level cache. Of an operation that is not fresh nobody else has moved the ends: only persistent
 * operations are used again as they are, and each has its lane for itself. */
RONDO_FUNCTION void rondo_team_load(struct rondo_team *team, struct rondo_run *run)
{
    if (run->fresh || team->home != run->home || team->program_block != run->program_block) {
        team->home = run->home;
        team->program_block = run->program_block;
        rondo_team_command(team, RONDO_COMMAND_LOAD);
        rondo_team_finish(team);
    }
    run->operation = &team->operation;
    run->part = &team->part;
    run->instructions = team->fits ? team->instructions : team->part.instructions;
    run->ends = team->fits ? team->ends_here : team->part.ends;
}

/* Writes back what has changed. */
RONDO_FUNCTION void rondo_team_unload(struct rondo_team *team, struct rondo_run *run)
{
    (void) run;
    for (uint32_t i = 0; team->fits && i < team->part.end_count; i++) {
        struct rondo_end *home = team->ends_home[i];
        const struct rondo_end *end = &team->ends[i];
        home->position = end->position;
        home->seen = end->seen;
        home->direct[0] = end->direct[0];
        home->direct[1] = end->direct[1];
    }
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

RONDO_FUNCTION void rondo_team_follow(struct rondo_team *team)
{
    for (uint32_t step = 0;; step ^= 1) {
        __syncwarp();
        uint32_t follow = *(volatile uint32_t *) &team->follow[step];
        if (follow == RONDO_FOLLOW_DONE)
            rondo_barrier_sync(RONDO_BARRIER_DONE);
        else
            rondo_barrier_arrive(RONDO_BARRIER_START);
        if (follow == RONDO_FOLLOW_EXIT)
            return;
    }
}

/* By vectors of 16 bytes, several in flight. */
RONDO_FUNCTION void rondo_copy_vectors(void *to, const void *from, uint32_t bytes, uint32_t thread, uint32_t threads)
{
#pragma unroll 4
    for (uint32_t i = thread; i < bytes / 16; i += threads)
        ((uint4 *) to)[i] = ((const uint4 *) from)[i];
}

/* The part's lists, which are found by what is in team->part. */
RONDO_FUNCTION void rondo_team_load_lists(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    const struct rondo_part *part = &team->part;
    const uint32_t vectors = sizeof(struct rondo_end) / 16;
    int fits = part->instruction_count <= RONDO_TEAM_INSTRUCTIONS && part->end_count <= RONDO_TEAM_ENDS;
    if (thread == 0)
        team->fits = (uint32_t) fits;
    if (!fits)
        return;
    if (part->row != NULL)
        rondo_copy_vectors(team->ends, part->row, part->end_count * (uint32_t) sizeof(team->ends[0]), thread, threads);
    for (uint32_t i = thread; i < part->end_count * vectors; i += threads) {
        struct rondo_end *home = part->row != NULL ? part->row + i / vectors : part->ends[i / vectors];
        if (part->row == NULL)
            ((uint4 *) &team->ends[i / vectors])[i % vectors] = ((const uint4 *) home)[i % vectors];
        if (i % vectors == 0) {
            team->ends_home[i / vectors] = home;
            team->ends_here[i / vectors] = &team->ends[i / vectors];
        }
    }
    rondo_copy_vectors(team->instructions, part->instructions,
                       part->instruction_count * (uint32_t) sizeof(team->instructions[0]), thread, threads);
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
    rondo_team_load_lists(team, thread, threads);
}

RONDO_FUNCTION void rondo_team_work(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    for (uint32_t turn = 0;; turn ^= 1) {
        rondo_barrier_sync(RONDO_BARRIER_START);
        uint32_t command = *(volatile uint32_t *) &team->command[turn].what;
        uint32_t piece = *(volatile uint32_t *) &team->command[turn].piece;
        int result = 1;
        if (command == RONDO_COMMAND_EXIT)
            return;
        if (command == RONDO_COMMAND_LOAD)
            rondo_team_load_work(team, thread, threads);
        else if (command == RONDO_COMMAND_COPY)
            rondo_copy_vectors(team->copy, team->copied, team->copy_bytes, thread, threads);
        else
            result = rondo_cuda_work(&team->pieces[piece], thread, threads, team->polls);
        if (thread == 0)
            team->result = (uint32_t) result;
        rondo_barrier_arrive(RONDO_BARRIER_DONE);
    }
}

#endif
