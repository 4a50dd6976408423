/*
 * The host device's team: the one thread that runs the engine. What a GPU's team brings near (cuda_team.h) lies where it is;
 * the pieces are moved by host_move.h. Part of engine.h, which alone includes it.
 */
#ifndef RONDO_DEVICE_ENGINE_WORKERS_HOST_H
#define RONDO_DEVICE_ENGINE_WORKERS_HOST_H

#include "device/move/move_host.h"
#include "device/engine/zero_copy.h"

/* An operation that has been loaded, where it is at hand. */
RONDO_FUNCTION const struct rondo_operation *rondo_team_operation(const struct rondo_team *team,
                                                                  const struct rondo_operation *home)
{
    (void) team;
    return home;
}
/* Puts a part's operation, instructions and ends where they are quickly reached; here they are. */
RONDO_FUNCTION void rondo_team_load(struct rondo_team *team, struct rondo_run *run)
{
    (void) team;
    run->operation = run->home;
    run->part = &run->operation->parts[run->program_block];
    run->row = run->part->row;
    run->ends = run->part->ends;
}
RONDO_FUNCTION int rondo_team_has_instruction(const struct rondo_team *team, uint32_t index)
{
    (void) team;
    (void) index;
    return 1;
}
RONDO_FUNCTION void rondo_team_load_page(struct rondo_team *team, uint32_t index)
{
    (void) team;
    (void) index;
}
RONDO_FUNCTION const struct rondo_instruction *rondo_team_instruction(const struct rondo_team *team,
                                                                      const struct rondo_run *run, uint32_t index)
{
    (void) team;
    return run->part->instructions + index;
}
RONDO_FUNCTION void rondo_team_unload(struct rondo_team *team, struct rondo_run *run)
{
    (void) team;
    (void) run;
}
/* Of a run that began early: waits until it is its turn. */
RONDO_FUNCTION void rondo_team_arrive(struct rondo_team *team, const struct rondo_run *run)
{
    (void) team;
    (void) run;
}
/* Of a run that began early, and whose first piece is described: 1: the team goes ahead with it, which is all there is, and
 * tells of its slots. */
RONDO_FUNCTION int rondo_team_goes_ahead(struct rondo_team *team, const struct rondo_instruction *instruction)
{
    (void) team;
    (void) instruction;
    return 0;
}
/* Begins with its part of an operation that is started again as it was, if it needs nobody for that. */
RONDO_FUNCTION void rondo_team_begin_again(struct rondo_team *team, const struct rondo_operation *home, uint64_t polls)
{
    (void) team;
    (void) home;
    (void) polls;
}
/* The bytes that such a part sent; or -1: it has not been begun, or is stuck. */
RONDO_FUNCTION int64_t rondo_team_finish_again(struct rondo_team *team, struct rondo_context *context)
{
    (void) team;
    (void) context;
    return -1;
}
/* Whether it will be able to, with the piece that was begun last. */
RONDO_FUNCTION void rondo_team_keep(struct rondo_team *team, const struct rondo_instruction *instruction)
{
    (void) team;
    (void) instruction;
}
/* The other blocks have been told of an operation. */
RONDO_FUNCTION void rondo_team_told(const struct rondo_team *team)
{
    if (team->gather != NULL)
        team->gather(team->gather_argument);
}
/* All pieces of a run are begun. */
RONDO_FUNCTION void rondo_team_ending(struct rondo_team *team)
{
    (void) team;
}

/* Pieces are carried out whole. */
RONDO_FUNCTION void rondo_team_resume(struct rondo_team *team, const struct rondo_context *context)
{
    (void) team;
    (void) context;
}

RONDO_FUNCTION int rondo_team_pause(const struct rondo_team *team, struct rondo_context *context)
{
    (void) team;
    (void) context;
    return 0;
}

RONDO_FUNCTION void rondo_team_forget_progress(struct rondo_team *team)
{
    (void) team;
}

RONDO_FUNCTION void rondo_team_repeat_ends(struct rondo_team *team, uint32_t first, uint32_t count)
{
    (void) team;
    (void) first;
    (void) count;
}

RONDO_FUNCTION void rondo_team_take_ends(struct rondo_team *team, const struct rondo_run *run, const struct rondo_use *use)
{
    for (uint32_t i = 0; i < use->received; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->receive_first + i);
        rondo_resolve_source(use, end, end->position, i, &team->piece);
    }
    for (uint32_t i = 0; i < use->sent; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first + i);
        const struct rondo_end *from = use->direct_out ? rondo_end_of(run, use->receive_first + i) : NULL;
        rondo_resolve_remote(use, end, from, end->position, i, &team->piece);
    }
    team->past = 0;
    if (use->sent > 0 && !use->direct_out && team->piece.rate == 0) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first); /* of several, the first speaks for all */
        team->past = rondo_pace_is_past(&team->paces[(uint32_t) end->peer % RONDO_PACES],
                                        team->piece.count * team->piece.element_bytes, rondo_clock_ns);
    }
    if (use->sent > 0)
        rondo_lend(run, use, &team->piece);
    rondo_take_errand(run, use, &team->piece);
    if (team->piece.rate != 0)
        rondo_count(&run->statistics->bytes_saved,
                    rondo_resolve_codec(use, run->part->instructions + use->instruction, run->operation, &team->piece));
}

#endif
