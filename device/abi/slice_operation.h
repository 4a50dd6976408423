/*
 * A slice operation: what one slice of a primitive does to one run of elements. The engine (single source) describes slice
 * operations; a mover of the device carries them out: device/move/move_host.h on the calling thread, the movers of
 * device/move/mover_table.h with the threads of a CUDA block.
 */
#ifndef RONDO_DEVICE_ABI_SLICE_OPERATION_H
#define RONDO_DEVICE_ABI_SLICE_OPERATION_H

#include "device/abi/qualifiers.h"
#include "rondo.h"

#include <stdint.h>

#define RONDO_REDUCE_SOURCES_MAX 64 /* sources, and remotes, of a slice operation at most */
#define RONDO_SLICE_OP_ALIGNMENT 16 /* bytes, of the slice operations of a slot */

/* The types whose sums GPUs have loops in registers for; others take slower movers. */
RONDO_FUNCTION int rondo_is_usual_type(int type)
{
    return type == RONDO_FLOAT || type == RONDO_FLOAT16 || type == RONDO_BFLOAT16 || type == RONDO_INT32 ||
           type == RONDO_UINT32;
}

/* What becomes of a result where slots hold ZFP streams. */
enum rondo_slice_op_codec {
    RONDO_CODEC_FORWARD = 1, /* the only source's stream goes to the remotes as it is */
    RONDO_CODEC_ROUND = 2,   /* local gets what a reader of the result's stream gets */
    RONDO_CODEC_STORED = 4   /* what is read of a stream is rounded to the type first */
};

/* An operator of the user, which combines elements of a type of so many bytes (rondo_op_create). Host memory that outlives the
 * operation. */
struct rondo_user_operator {
    rondo_op_function_t *function;
    void *argument;
    rondo_datatype_t type;
    uint32_t bytes; /* at most RONDO_COMBINED_BYTES_MAX */
};

/* result[i] = source[0][i] op source[1][i] op ..., i < count, reduced from left to right by the rules of
 * device/reduce/operators.h (with one source an exact copy), divided by average if that is not 0, and stored to local (if not
 * NULL) and to every remote. Pointers are aligned to the element, sources and destinations alike or not. local may be the same
 * as a source, and overlaps none otherwise; remotes overlap nothing. Sources and remotes in LL packets
 * (device/move/low_latency.h) are 8-byte words of 4 bytes of data and a flag, aligned to 16; a slice operation ends in whole
 * packets of 16 bytes, whose last data bytes may be padding. Or they are lines of LL128, aligned to 128, all of them. */
struct rondo_slice_op {
    uint64_t count; /* elements */
    uint32_t average;
    uint8_t type, op;
    uint8_t streaming; /* the result will not be read soon: a hint */
    uint8_t far;       /* sources are in peers' memory, from which loads take longer: a hint */
    uint8_t sources, remotes;
    uint8_t exchanges; /* remotes get the source without flags before the sources with flags are waited for (where worker groups
                          wait) */
    uint8_t sent;      /* remotes have got it: the slice operation is carried out again, because sources had not arrived */
    uint8_t lines;     /* flags are those of LL128, in lines; else LL packets */
    uint8_t rate;      /* of the streams in slots, bits a value; 0: there are none */
    uint8_t codec;     /* enum rondo_slice_op_codec */
    uint64_t ll_sources, ll_remotes; /* bit i: source i (remote i) is LL packets; the flag that marks them is in *_flags[i] */
    uint64_t coded_sources;          /* bit i: source i is a stream; all remotes are, where there is a rate */
    char *residual;                  /* of the local source's elements, floats or (of doubles) doubles; NULL: none */
    uint8_t feedback;                /* enum rondo_feedback */
    uint32_t element_bytes;
    char *local;
    const char *source[RONDO_REDUCE_SOURCES_MAX];
    char *remote[RONDO_REDUCE_SOURCES_MAX];
    uint32_t source_flags[RONDO_REDUCE_SOURCES_MAX], remote_flags[RONDO_REDUCE_SOURCES_MAX];
#if !defined(__CUDACC__)                    /* shared memory is short, and such operators are the host's */
    const struct rondo_user_operator *user; /* combines instead of type and op; NULL: they do */
#endif
};

/* Whether the slice operation reads or writes streams. */
RONDO_FUNCTION int rondo_slice_op_is_coded(const struct rondo_slice_op *slice_op)
{
    return slice_op->rate != 0 && (slice_op->coded_sources != 0 || slice_op->remotes > 0 || slice_op->codec != 0);
}

#endif
