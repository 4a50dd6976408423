/*
 * The host device's mover: one thread carries out a slice operation at once. Data of LL slots are unpacked first and packed
 * last. Relies on device/reduce; the worker group that calls it is device/engine/workers_host.h.
 */
#ifndef RONDO_DEVICE_MOVE_MOVE_HOST_H
#define RONDO_DEVICE_MOVE_MOVE_HOST_H

#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"
#include "device/move/low_latency.h"
#include "device/reduce/reduce.h"

#define RONDO_STAGING_BYTES 65536 /* LL data unpacked at a time; slices are cut so that all of a primitive's sources fit */

/* Carries out a slice operation without streams on the calling thread; it is done when the function returns. The flags of LL
 * sources have been waited for. past: remotes are stored past the caches (device/move/store_policy.h). Nothing is published. */
RONDO_FUNCTION void rondo_move_host(const struct rondo_slice_op *slice_op, int past)
{
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
    const int copies = slice_op->sources == 1 && slice_op->average == 0;
    if (copies && remote_count > 0) {
        rondo_copy_out(remotes, remote_count, local, sources[0], slice_op->count * slice_op->element_bytes, past);
    } else if (remote_count > 0 || (local != NULL && !(copies && sources[0] == local))) {
        const struct rondo_reduction reduction = {.dst = remote_count > 0 ? remotes : (void *const *) &local,
                                                  .src = sources,
                                                  .destinations = remote_count > 0 ? remote_count : 1,
                                                  .sources = slice_op->sources,
                                                  .count = slice_op->count,
                                                  .type = (rondo_datatype_t) slice_op->type,
                                                  .op = (rondo_op_t) slice_op->op,
                                                  .user = slice_op->user,
                                                  .average = (int) slice_op->average,
                                                  .streaming = slice_op->streaming};
        if (remote_count > 0)
            rondo_reduce_out(&reduction, local, past);
        else
            rondo_reduce_elements(&reduction);
    }
    for (int i = 0; packed != NULL && i < slice_op->remotes; i++)
        if (slice_op->ll_remotes >> i & 1)
            rondo_ll_store((uint64_t *) (void *) slice_op->remote[i], packed, padded, slice_op->remote_flags[i]);
}

#endif
