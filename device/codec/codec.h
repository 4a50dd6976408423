/*
 * Slice operations whose slots hold ZFP streams, on the host device: what comes out of a slot is decoded and reduced, and what
 * goes into one is reduced and encoded, a part at a time that stays in the first-level cache.
 */
#ifndef RONDO_DEVICE_CODEC_CODEC_H
#define RONDO_DEVICE_CODEC_CODEC_H

#include "device/abi/slice_operation.h"

/* Carries out a slice operation with a rate on the calling thread. Its type is RONDO_FLOAT, RONDO_DOUBLE (computed and coded
 * as they are), RONDO_FLOAT16 or RONDO_BFLOAT16 (computed as floats, and rounded once when they are stored). Streams are
 * aligned to 8 bytes. */
void rondo_codec_run(const struct rondo_slice_op *slice_op);

/* Carries out a slice operation with RONDO_CODEC_FORWARD in two steps: forward copies the stream to the remotes; keep
 * decodes it to local, unless that is NULL, and may come after the slots have been published. */
void rondo_codec_forward(const struct rondo_slice_op *slice_op);
void rondo_codec_keep(const struct rondo_slice_op *slice_op);

#endif
