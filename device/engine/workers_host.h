/*
 * The host device's team: the one thread that runs the engine. What a GPU's team brings near (device/engine/workers_cuda.h)
 * lies where it is; the pieces are moved by device/move/move_host.h. Part of device/engine/engine.h, which alone includes it.
 */
#ifndef RONDO_DEVICE_ENGINE_WORKERS_HOST_H
#define RONDO_DEVICE_ENGINE_WORKERS_HOST_H

#include "device/move/move_host.h"
#include "device/engine/zero_copy.h"

/* An operation that has been loaded, where it is at hand. */
RONDO_FUNCTION const struct rondo_operation *rondo_workers_operation(const struct rondo_workers *workers,
                                                                     const struct rondo_operation *home)
{
    (void) workers;
    return home;
}
/* Puts a part's operation, instructions and ends where they are quickly reached; here they are. */
RONDO_FUNCTION void rondo_workers_load(struct rondo_workers *workers, struct rondo_run *run)
{
    (void) workers;
    run->operation = run->home;
    run->part = &run->operation->parts[run->program_block];
    run->row = run->part->row;
    run->ends = run->part->ends;
}
RONDO_FUNCTION int rondo_workers_has_instruction(const struct rondo_workers *workers, uint32_t index)
{
    (void) workers;
    (void) index;
    return 1;
}
RONDO_FUNCTION void rondo_workers_load_page(struct rondo_workers *workers, uint32_t index)
{
    (void) workers;
    (void) index;
}
RONDO_FUNCTION const struct rondo_instruction *rondo_workers_instruction(const struct rondo_workers *workers,
                                                                         const struct rondo_run *run, uint32_t index)
{
    (void) workers;
    return run->part->instructions + index;
}
RONDO_FUNCTION void rondo_workers_unload(struct rondo_workers *workers, struct rondo_run *run)
{
    (void) workers;
    (void) run;
}
/* Of a run that began early: waits until it is its turn. */
RONDO_FUNCTION void rondo_workers_arrive(struct rondo_workers *workers, const struct rondo_run *run)
{
    (void) workers;
    (void) run;
}
/* Of a run that began early, and whose first piece is described: 1: the team goes ahead with it, which is all there is, and
 * tells of its slots. */
RONDO_FUNCTION int rondo_workers_goes_ahead(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    (void) workers;
    (void) instruction;
    return 0;
}
/* Begins with its part of an operation that is started again as it was, if it needs nobody for that. */
RONDO_FUNCTION void rondo_workers_begin_again(struct rondo_workers *workers, const struct rondo_operation *home, uint64_t polls)
{
    (void) workers;
    (void) home;
    (void) polls;
}
/* The bytes that such a part sent; or -1: it has not been begun, or is stuck. */
RONDO_FUNCTION int64_t rondo_workers_finish_again(struct rondo_workers *workers, struct rondo_context *context)
{
    (void) workers;
    (void) context;
    return -1;
}
/* Whether it will be able to, with the piece that was begun last. */
RONDO_FUNCTION void rondo_workers_keep(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    (void) workers;
    (void) instruction;
}
/* The other blocks have been told of an operation. */
RONDO_FUNCTION void rondo_workers_told(const struct rondo_workers *workers)
{
    if (workers->gather != NULL)
        workers->gather(workers->gather_argument);
}
/* All pieces of a run are begun. */
RONDO_FUNCTION void rondo_workers_ending(struct rondo_workers *workers)
{
    (void) workers;
}

/* Pieces are carried out whole. */
RONDO_FUNCTION void rondo_workers_resume(struct rondo_workers *workers, const struct rondo_context *context)
{
    (void) workers;
    (void) context;
}

RONDO_FUNCTION int rondo_workers_pause(const struct rondo_workers *workers, struct rondo_context *context)
{
    (void) workers;
    (void) context;
    return 0;
}

RONDO_FUNCTION void rondo_workers_forget_progress(struct rondo_workers *workers)
{
    (void) workers;
}

RONDO_FUNCTION void rondo_workers_repeat_ends(struct rondo_workers *workers, uint32_t first, uint32_t count)
{
    (void) workers;
    (void) first;
    (void) count;
}

RONDO_FUNCTION void rondo_workers_take_ends(struct rondo_workers *workers, const struct rondo_run *run,
                                            const struct rondo_use *use)
{
    for (uint32_t i = 0; i < use->received; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->receive_first + i);
        rondo_resolve_source(use, end, end->position, i, &workers->slice_op);
    }
    for (uint32_t i = 0; i < use->sent; i++) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first + i);
        const struct rondo_end *from = use->direct_out ? rondo_end_of(run, use->receive_first + i) : NULL;
        rondo_resolve_remote(use, end, from, end->position, i, &workers->slice_op);
    }
    workers->past = 0;
    if (use->sent > 0 && !use->direct_out && workers->slice_op.rate == 0) {
        const struct rondo_end *end = rondo_end_of(run, use->send_first); /* of several, the first speaks for all */
        workers->past = rondo_store_policy_is_past(&workers->paces[(uint32_t) end->peer % RONDO_STORE_POLICYS],
                                                   workers->slice_op.count * workers->slice_op.element_bytes, rondo_clock_ns);
    }
    if (use->sent > 0)
        rondo_send_zero_copy(run, use, &workers->slice_op);
    rondo_take_receive_action(run, use, &workers->slice_op);
    if (workers->slice_op.rate != 0)
        rondo_count(&run->statistics->bytes_saved,
                    rondo_resolve_codec(use, run->part->instructions + use->instruction, run->operation, &workers->slice_op));
}

#endif
