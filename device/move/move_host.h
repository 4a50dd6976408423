/*
 * How a host thread carries out a piece: it folds it itself, at once. Data of LL slots are unpacked first and packed last.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_HOST_H
#define RONDO_DEVICE_MOVE_MOVE_HOST_H

#include "device/codec/codec.h"
#include "device/move/low_latency.h"
#include "device/move/store_policy.h"
#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"

#define RONDO_STAGING_BYTES 65536 /* LL data unpacked at a time; slices are cut so that all of a primitive's sources fit */

/* A piece is done when rondo_workers_begin returns, but for the decoding of a stream that was forwarded; the engine has looked
 * at the flags of LL data before. */
#define RONDO_WORKERS_OVERLAPS 0
#define RONDO_WORKERS_POLLS_LL 0

#define RONDO_WORKERS_REST(workers) rondo_workers_rest(workers)

#define RONDO_STORE_POLICYS 16 /* ranks whose numbers differ by so much share one */

struct rondo_workers {
    struct rondo_use use;
    struct rondo_slice_op slice_op;
    struct rondo_store_policy paces[RONDO_STORE_POLICYS]; /* by rank in the world */
    int past;                                             /* the piece's remotes are stored past the caches */
    int forwarded; /* the piece's stream, whose slot is still ours, is yet to be decoded */
    /* Called when the other blocks have been told of something: their threads may sleep. NULL: nobody is to be called. */
    void (*gather)(void *argument);
    void *gather_argument;
};

RONDO_FUNCTION void rondo_workers_rest(struct rondo_workers *workers)
{
    if (workers->forwarded)
        rondo_codec_keep(&workers->slice_op);
    workers->forwarded = 0;
}

RONDO_FUNCTION struct rondo_slice_op *rondo_workers_slice_op(struct rondo_workers *workers)
{
    rondo_workers_rest(workers);
    return &workers->slice_op;
}

RONDO_FUNCTION struct rondo_use *rondo_workers_use(struct rondo_workers *workers)
{
    return &workers->use;
}

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
    const void *sources[RONDO_REDUCE_SOURCES_MAX];
    void *remotes[RONDO_REDUCE_SOURCES_MAX];
    char staged[RONDO_STAGING_BYTES] __attribute__((aligned(RONDO_CACHE_LINE)));
    char *packed = NULL, *free_stage = staged, *local = slice_op->local;
    size_t padded = (slice_op->count * slice_op->element_bytes + 15) & ~(size_t) 15;
    int remote_count = 0;
    for (int i = 0; i < slice_op->sources; i++) {
        sources[i] = slice_op->source[i];
        if (slice_op->ll_sources >> i & 1) {
            rondo_ll_load(free_stage, (const uint64_t *) (const void *) slice_op->source[i], padded);
            sources[i] = free_stage;
            free_stage += padded;
        }
    }
    for (int i = 0; i < slice_op->remotes; i++) {
        if (!(slice_op->ll_remotes >> i & 1)) {
            remotes[remote_count++] = slice_op->remote[i];
        } else if (packed == NULL) {
            packed = free_stage;
            remotes[remote_count++] = packed;
        }
    }
    rondo_datatype_t type = (rondo_datatype_t) slice_op->type;
    rondo_op_t op = (rondo_op_t) slice_op->op;
    int average = (int) slice_op->average;
    if (remote_count > 0)
        rondo_reduce_out(local, remotes, remote_count, sources, slice_op->sources, slice_op->count, type, op, average,
                         workers->past);
    else if (local != NULL && !(slice_op->sources == 1 && sources[0] == local && !average))
        rondo_reduce_elements((void *const *) &local, 1, sources, slice_op->sources, slice_op->count, type, op, average,
                              slice_op->streaming);
    for (int i = 0; packed != NULL && i < slice_op->remotes; i++)
        if (slice_op->ll_remotes >> i & 1)
            rondo_ll_store((uint64_t *) (void *) slice_op->remote[i], packed, padded, slice_op->remote_flags[i]);
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

#endif
