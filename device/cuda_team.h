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

#include "cuda_move.h"

#define RONDO_TEAM_OVERLAPS 1
#define RONDO_TEAM_POLLS_LL 1

#define RONDO_TEAM_CONTROL_THREADS 32
#define RONDO_TEAM_INSTRUCTIONS    64 /* of a part, that fit into shared memory; longer lists are read where they are */
#define RONDO_TEAM_ENDS            32

/* Named barriers; cuda_move.h has those from 8 on. */
#define RONDO_BARRIER_START 1
#define RONDO_BARRIER_DONE  2

enum rondo_command { RONDO_COMMAND_PIECE, RONDO_COMMAND_LOAD, RONDO_COMMAND_EXIT };
enum rondo_follow { RONDO_FOLLOW_START, RONDO_FOLLOW_DONE, RONDO_FOLLOW_EXIT };

/* In shared memory. */
struct rondo_team {
    struct rondo_piece pieces[2]; /* one is worked on while the other is described */
    uint64_t polls;               /* that LL data are waited for */
    uint32_t current;             /* the piece to describe next */
    uint32_t running;             /* begun, not finished */
    uint32_t command[2];
    /* enum rondo_follow: what the control warp's other threads join in. Two, by turns: one is written again only after they
     * have come to the other, and so have read it. */
    uint32_t follow[2];
    uint32_t step;   /* the leader's count of them */
    uint32_t result; /* of the last piece */
    uint32_t loaded; /* the part's ends are here */
    const struct rondo_instruction *instructions_home;
    struct rondo_end *const *ends_home;
    uint32_t instruction_count, end_count;
    struct rondo_instruction instructions[RONDO_TEAM_INSTRUCTIONS];
    struct rondo_end *home[RONDO_TEAM_ENDS], *here[RONDO_TEAM_ENDS];
    struct rondo_end ends[RONDO_TEAM_ENDS];
};

RONDO_FUNCTION void rondo_barrier_sync(uint32_t barrier)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}
RONDO_FUNCTION void rondo_barrier_arrive(uint32_t barrier)
{
    asm volatile("barrier.arrive %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
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
    team->command[team->current] = command;
    team->current ^= 1;
    team->running = 1;
    rondo_team_lead(team, command == RONDO_COMMAND_EXIT ? RONDO_FOLLOW_EXIT : RONDO_FOLLOW_START);
    rondo_barrier_arrive(RONDO_BARRIER_START);
}

/* Nothing may be running. */
RONDO_FUNCTION void rondo_team_begin(struct rondo_team *team, uint64_t polls)
{
    team->polls = polls;
    rondo_team_command(team, RONDO_COMMAND_PIECE);
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

/* Brings a part's instructions and ends into shared memory: an acquire anywhere in the block empties the first-level cache. */
RONDO_FUNCTION void rondo_team_load(struct rondo_team *team, struct rondo_run *run)
{
    team->loaded = run->list->instructions <= RONDO_TEAM_INSTRUCTIONS && run->list->ends <= RONDO_TEAM_ENDS;
    if (!team->loaded)
        return;
    team->instructions_home = run->instructions;
    team->ends_home = run->ends;
    team->instruction_count = run->list->instructions;
    team->end_count = run->list->ends;
    rondo_team_command(team, RONDO_COMMAND_LOAD);
    rondo_team_finish(team);
    run->instructions = team->instructions;
    run->ends = team->here;
}

/* Writes back what has changed. */
RONDO_FUNCTION void rondo_team_unload(struct rondo_team *team, struct rondo_run *run)
{
    if (!team->loaded)
        return;
    run->instructions = team->instructions_home; /* the run may go on, and load again */
    run->ends = team->ends_home;
    for (uint32_t i = 0; i < team->end_count; i++) {
        struct rondo_end *home = team->home[i];
        const struct rondo_end *end = &team->ends[i];
        home->position = end->position;
        home->seen = end->seen;
        home->direct[0] = end->direct[0];
        home->direct[1] = end->direct[1];
    }
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

RONDO_FUNCTION void rondo_copy_words(void *to, const void *from, uint32_t bytes, uint32_t thread, uint32_t threads)
{
    for (uint32_t i = thread; i < bytes / 4; i += threads)
        ((uint32_t *) to)[i] = ((const uint32_t *) from)[i];
}

RONDO_FUNCTION void rondo_team_load_work(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    const uint32_t words = sizeof(struct rondo_end) / 4;
    rondo_copy_words(team->instructions, team->instructions_home,
                     team->instruction_count * (uint32_t) sizeof(team->instructions[0]), thread, threads);
    for (uint32_t i = thread; i < team->end_count * words; i += threads) {
        struct rondo_end *home = team->ends_home[i / words];
        ((uint32_t *) &team->ends[i / words])[i % words] = ((const uint32_t *) home)[i % words];
        if (i % words == 0) {
            team->home[i / words] = home;
            team->here[i / words] = &team->ends[i / words];
        }
    }
}

RONDO_FUNCTION void rondo_team_work(struct rondo_team *team, uint32_t thread, uint32_t threads)
{
    for (uint32_t current = 0;; current ^= 1) {
        rondo_barrier_sync(RONDO_BARRIER_START);
        uint32_t command = *(volatile uint32_t *) &team->command[current];
        int result = 1;
        if (command == RONDO_COMMAND_EXIT)
            return;
        if (command == RONDO_COMMAND_LOAD)
            rondo_team_load_work(team, thread, threads);
        else
            result = rondo_cuda_work(&team->pieces[current], thread, threads, team->polls);
        if (thread == 0)
            team->result = (uint32_t) result;
        rondo_barrier_arrive(RONDO_BARRIER_DONE);
    }
}

#endif
