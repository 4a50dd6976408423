/*
 * The host device's worker group: the one thread that runs the engine. What a GPU's worker group copies to shared memory
 * (device/engine/workers_cuda.h) is used where it lies; slice operations are moved by device/move/move_host.h, or by
 * device/codec if slots hold streams. Has the same functions as device/engine/workers_cuda.h, with the same contracts.
 */
#ifndef RONDO_DEVICE_ENGINE_WORKERS_HOST_H
#define RONDO_DEVICE_ENGINE_WORKERS_HOST_H

#include "device/codec/codec.h"
#include "device/engine/references.h"
#include "device/engine/run.h"
#include "device/engine/use.h"
#include "device/engine/zero_copy.h"
#include "device/move/move_host.h"
#include "device/move/store_policy.h"

/* A slice operation is done when rondo_workers_begin returns, but for the decoding of a stream that was forwarded; the engine
 * has waited for the flags of LL data before. */
#define RONDO_WORKERS_OVERLAPS 0
#define RONDO_WORKERS_POLLS_LL 0

#define RONDO_STORE_POLICIES 16 /* ranks whose numbers differ by a multiple of it share one */

struct rondo_workers {
    struct rondo_use use;
    struct rondo_slice_op slice_op;
    struct rondo_store_policy store_policies[RONDO_STORE_POLICIES]; /* by rank in the world */
    int past;      /* the slice operation's remotes are stored past the caches */
    int forwarded; /* the slice operation's stream, whose slot has not been given back, is yet to be decoded */
    int in_place;  /* what is received next is where it belongs (device/engine/single_copy.h) */
    const struct rondo_single_copy_peer *single_copy_peers; /* by rank in the world */
    /* Where the time of copying into and out of slots counts (device/engine/copy_costs.h): */
    uint32_t slot_copies;       /* number of such slice operations */
    uint32_t timed_copies;      /* of the slice operation; 0: it is not timed */
    struct rondo_end *timed[2]; /* the end it receives through, and sends through; NULL: none */
    /* Called when the other blocks have been notified of an operation: their threads may sleep. NULL: nothing is called. */
    void (*gather)(void *argument);
    void *gather_argument;
};

/* Does the part of a slice operation that may wait until the slots it fills have been published; the slots it takes are given
 * back after it. */
RONDO_FUNCTION void rondo_workers_rest(struct rondo_workers *workers)
{
    if (workers->forwarded)
        rondo_codec_keep(&workers->slice_op);
    workers->forwarded = 0;
}

/* The slice operation to describe next. */
RONDO_FUNCTION struct rondo_slice_op *rondo_workers_slice_op(struct rondo_workers *workers)
{
    rondo_workers_rest(workers);
    return &workers->slice_op;
}

/* The use of connectors that belongs to it. */
RONDO_FUNCTION struct rondo_use *rondo_workers_use(struct rondo_workers *workers)
{
    return &workers->use;
}

/* Decides whether to time the slice operation, of which the addresses are known. After single copies the first one through
 * slots is: it may be a trial. */
RONDO_RARE void rondo_workers_time(struct rondo_workers *workers, const struct rondo_run *run, const struct rondo_use *use,
                                   int in_place)
{
    const struct rondo_slice_op *slice_op = &workers->slice_op;
    if (slice_op->count * slice_op->element_bytes < RONDO_SINGLE_COPY_BYTES)
        return;
    struct rondo_end *in = use->received == 1 && !in_place ? rondo_end_of(run, use->receive_first) : NULL;
    struct rondo_end *out = slice_op->remotes == 1 && use->sent == 1 ? rondo_end_of(run, use->send_first) : NULL;
    workers->timed[RONDO_INCOMING] = in != NULL && rondo_is_referenced(workers->single_copy_peers, in) ? in : NULL;
    workers->timed[RONDO_OUTGOING] = out != NULL && rondo_is_referenced(workers->single_copy_peers, out) ? out : NULL;
    if (in == NULL && out == NULL) {
        if (use->received + use->sent > 0)
            workers->slot_copies = 0;
    } else if (workers->slot_copies++ % RONDO_COST_SAMPLE == 0) {
        workers->timed_copies = (slice_op->local != NULL && !in_place) + (uint32_t) slice_op->remotes;
    }
}

/* Notes a time. Each copy of the slice operation has its share. */
RONDO_RARE void rondo_workers_note(const struct rondo_workers *workers, uint64_t ns)
{
    const uint64_t bytes = workers->slice_op.count * workers->slice_op.element_bytes;
    const struct rondo_end *in = workers->timed[RONDO_INCOMING], *out = workers->timed[RONDO_OUTGOING];
    if (in != NULL)
        rondo_note_receiving(in, 0, ns / workers->timed_copies, bytes);
    if (out != NULL) {
        uint32_t *store = &rondo_reference_at(out, 0)->stores[rondo_cost_class(bytes)];
        *store = rondo_cost_after(*store, ns / workers->timed_copies, bytes);
    }
}

/* Carries out what has been described. */
RONDO_FUNCTION void rondo_workers_begin(struct rondo_workers *workers, uint64_t polls)
{
    const struct rondo_slice_op *slice_op = &workers->slice_op;
    (void) polls;
    if (rondo_slice_op_is_coded(slice_op)) {
        workers->forwarded = slice_op->codec & RONDO_CODEC_FORWARD;
        if (workers->forwarded)
            rondo_codec_forward(slice_op);
        else
            rondo_codec_run(slice_op);
        return;
    }
    const uint64_t began = workers->timed_copies > 0 ? rondo_clock_ns() : 0;
    rondo_move_host(slice_op, workers->past);
    if (workers->timed_copies > 0)
        rondo_workers_note(workers, rondo_clock_ns() - began);
    workers->timed_copies = 0;
}

RONDO_FUNCTION void rondo_workers_repeat(struct rondo_workers *workers)
{
    rondo_workers_begin(workers, 0);
}

RONDO_FUNCTION int rondo_workers_finish(struct rondo_workers *workers)
{
    rondo_workers_rest(workers);
    return 1;
}

RONDO_FUNCTION void rondo_workers_copy(struct rondo_workers *workers, void *to, const void *from, uint32_t bytes)
{
    (void) workers;
    memcpy(to, from, bytes);
}

/* The loaded operation: where it is. */
RONDO_FUNCTION const struct rondo_operation *rondo_workers_operation(const struct rondo_workers *workers,
                                                                     const struct rondo_operation *home)
{
    (void) workers;
    return home;
}
/* Puts a part's operation, instructions and ends at hand; they are used where they are. */
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
/* Waits until it is the turn of a run that began early; on the host no run does. */
RONDO_FUNCTION void rondo_workers_arrive(struct rondo_workers *workers, const struct rondo_run *run)
{
    (void) workers;
    (void) run;
}
/* Whether the worker group executes the whole part without the engine: never. */
RONDO_FUNCTION int rondo_workers_run_ahead(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    (void) workers;
    (void) instruction;
    return 0;
}
/* Begins a part again that is started unchanged: never. */
RONDO_FUNCTION void rondo_workers_begin_again(struct rondo_workers *workers, const struct rondo_operation *home,
                                              uint64_t budget)
{
    (void) workers;
    (void) home;
    (void) budget;
}
/* Bytes that such a part has sent; -1: it has not been begun. */
RONDO_FUNCTION int64_t rondo_workers_finish_again(struct rondo_workers *workers, struct rondo_context *context)
{
    (void) workers;
    (void) context;
    return -1;
}
/* Notes whether a part may be begun again: none may. */
RONDO_FUNCTION void rondo_workers_keep(struct rondo_workers *workers, const struct rondo_instruction *instruction)
{
    (void) workers;
    (void) instruction;
}
/* The other blocks have been notified of an operation. */
RONDO_FUNCTION void rondo_workers_told(const struct rondo_workers *workers)
{
    if (workers->gather != NULL)
        workers->gather(workers->gather_argument);
}
/* All slice operations of a run have been begun. */
RONDO_FUNCTION void rondo_workers_ending(struct rondo_workers *workers)
{
    (void) workers;
}

/* Slice operations are executed whole. */
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

/* Whether so many bytes are stored past the caches to the slots of this end; of several ends, to be asked of the first. */
RONDO_FUNCTION int rondo_workers_store_past(struct rondo_workers *workers, const struct rondo_end *end, size_t bytes)
{
    return rondo_store_policy_is_past(&workers->store_policies[(uint32_t) end->peer % RONDO_STORE_POLICIES], bytes,
                                      rondo_clock_ns);
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
    if (run->operation->single_copy) {
        rondo_reference_sources(run, workers->single_copy_peers, use, &workers->slice_op);
        rondo_workers_time(workers, run, use, workers->in_place);
        if (workers->in_place)
            workers->slice_op.source[0] = workers->slice_op.local;
        workers->in_place = 0;
    }
    workers->past = 0;
    if (workers->slice_op.remotes > 0 && !use->direct_out && workers->slice_op.rate == 0)
        workers->past = rondo_workers_store_past(workers, rondo_end_of(run, use->send_first),
                                                 workers->slice_op.count * workers->slice_op.element_bytes);
    if (use->sent > 0)
        rondo_send_zero_copy(run, use, &workers->slice_op);
    rondo_take_receive_action(run, use, &workers->slice_op);
    if (workers->slice_op.rate != 0)
        rondo_count(&run->statistics->bytes_saved,
                    rondo_resolve_codec(use, run->part->instructions + use->instruction, run->operation, &workers->slice_op));
}

#endif
