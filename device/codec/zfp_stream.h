/* Whole ZFP streams on the host device (device/codec/zfp_block.h says what they are). */
#ifndef RONDO_DEVICE_CODEC_ZFP_STREAM_H
#define RONDO_DEVICE_CODEC_ZFP_STREAM_H

#include "rondo.h"
#include "device/codec/zfp_block.h"

/* Writes the stream of count values of type (RONDO_FLOAT, rate 4 to 32; RONDO_DOUBLE, 4 to 64), rondo_zfp_bytes(count, rate)
 * bytes aligned to 8. A last block that is not full is padded as libzfp pads it. */
void rondo_zfp_encode(void *stream, const void *values, size_t count, uint32_t rate, rondo_datatype_t type);
/* The same, and what rondo_zfp_decode makes of it; rounded is not values. */
void rondo_zfp_round(void *stream, void *rounded, const void *values, size_t count, uint32_t rate, rondo_datatype_t type);
/* Decodes a stream, from any source: all bits decode to some values. */
void rondo_zfp_decode(void *values, const void *stream, size_t count, uint32_t rate, rondo_datatype_t type);

#endif
