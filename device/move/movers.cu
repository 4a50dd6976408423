/* See device/move/movers.h. */
#include "device/move/movers.h"

#include "device/codec/move_codec.h"
#include "device/move/move_general.h"
#include "device/move/move_vector.h"
#include "device/move/mover_table.h"

/* Rows from RONDO_MOVER_RESOLVED on ask for no more than the slice operation. */
static __device__ __forceinline__ enum rondo_mover choose(const struct rondo_slice_op *slice_op, enum rondo_mover first,
                                                          enum rondo_mover end)
{
    const struct rondo_mover_facts nothing = {0, 0, 0};
    return rondo_mover_choose(slice_op, nothing, first, end);
}

__device__ int rondo_mover_run_vector(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads)
{
    __builtin_assume(__isShared(slice_op));
    const struct rondo_vector vector = rondo_vector_of(slice_op, thread, threads); /* once, for the choice and the move */
    if (choose(slice_op, RONDO_MOVER_VECTOR, RONDO_MOVER_CODEC) != RONDO_MOVER_VECTOR)
        return 0;
    rondo_move_vector(&vector);
    return 1;
}

__device__ int rondo_mover_run_other(const struct rondo_slice_op *slice_op, uint32_t thread, uint32_t threads, uint64_t polls)
{
    __builtin_assume(__isShared(slice_op));
    if (choose(slice_op, RONDO_MOVER_CODEC, RONDO_MOVERS_COUNT) == RONDO_MOVER_CODEC)
        return rondo_move_codec(slice_op, thread, threads);
    return rondo_move_general(slice_op, thread, threads, polls);
}
