/*
 * The loops of device/codec/zfp_kernels.h, compiled once per instruction set with RONDO_VECTOR_VARIANT naming it (the Makefile
 * has the flags). Sixteen blocks of floats are coded side by side, a lane a block, plane by plane; doubles, and floats without
 * the instructions, block by block (device/codec/zfp_block.h). A group's blocks fill whole words of the stream at every rate.
 */
#include "device/codec/zfp_kernels.h"

#include "device/codec/zfp_block.h"

#include <string.h>

#ifndef RONDO_VECTOR_VARIANT
#define RONDO_VECTOR_VARIANT baseline
#endif

/* ---- blocks in and out of a stream ---- */

/* Appends the first bits of each block's words (up to 4) to a stream. */
static inline void pack(uint64_t *stream, const uint64_t (*blocks)[RONDO_ZFP_WORDS], uint32_t bits)
{
    uint64_t word = 0;
    uint32_t filled = 0;
    for (int b = 0; b < RONDO_ZFP_GROUP; b++)
        for (uint32_t at = 0; at < bits; at += 64) {
            uint32_t more = bits - at < 64 ? bits - at : 64;
            uint64_t value = blocks[b][at / 64];
            word |= value << filled;
            if (filled + more >= 64) {
                *stream++ = word;
                word = filled > 0 ? value >> (64 - filled) : 0;
                filled += more - 64;
            } else {
                filled += more;
            }
        }
}

/* The block that begins at the bit, and zeros after it up to a whole word and one word more. Reads no word beyond the block. */
static inline void unpack(uint64_t *words, const uint64_t *stream, size_t bit, uint32_t bits)
{
    uint32_t shift = bit & 63, count = (bits + 63) / 64;
    const uint64_t *from = stream + (bit >> 6);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t wanted = bits - 64 * i < 64 ? bits - 64 * i : 64;
        uint64_t value = from[i] >> shift;
        if (shift + wanted > 64)
            value |= from[i + 1] << (64 - shift);
        words[i] = wanted < 64 ? value & (((uint64_t) 1 << wanted) - 1) : value;
    }
    words[count] = 0;
}

#define DEFINE_SCALAR(name, type)                                                                                              \
    __attribute__((unused)) static void encode_##name(uint64_t *stream, const type *values, size_t groups, uint32_t rate)      \
    {                                                                                                                          \
        uint64_t blocks[RONDO_ZFP_GROUP][RONDO_ZFP_WORDS];                                                                     \
        for (size_t g = 0; g < groups; g++, stream += rate)                                                                    \
            for (int b = 0; b < RONDO_ZFP_GROUP; b++, values += RONDO_ZFP_VALUES) {                                            \
                rondo_zfp_encode_##name(values, rate, blocks[b]);                                                              \
                if (b == RONDO_ZFP_GROUP - 1)                                                                                  \
                    pack(stream, (const uint64_t(*)[RONDO_ZFP_WORDS]) blocks, RONDO_ZFP_VALUES *rate);                         \
            }                                                                                                                  \
    }                                                                                                                          \
    __attribute__((unused)) static void decode_##name(type *values, const uint64_t *stream, size_t groups, uint32_t rate)      \
    {                                                                                                                          \
        uint64_t words[RONDO_ZFP_WORDS];                                                                                       \
        uint32_t bits = RONDO_ZFP_VALUES * rate;                                                                               \
        for (size_t b = 0; b < groups * RONDO_ZFP_GROUP; b++) {                                                                \
            unpack(words, stream, b *bits, bits);                                                                              \
            rondo_zfp_decode_##name(words, rate, values + b * RONDO_ZFP_VALUES);                                               \
        }                                                                                                                      \
    }                                                                                                                          \
    __attribute__((unused)) static void round_##name(uint64_t *stream, type *rounded, const type *values, size_t groups,       \
                                                     uint32_t rate)                                                            \
    {                                                                                                                          \
        encode_##name(stream, values, groups, rate);                                                                           \
        decode_##name(rounded, stream, groups, rate);                                                                          \
    }
DEFINE_SCALAR(float, float)
DEFINE_SCALAR(double, double)

#if defined(__AVX2__)
#include "device/codec/zfp_lanes.h"
#define FLOAT_KERNELS .encode_float = encode_float_lanes, .decode_float = decode_float_lanes, .round_float = round_float_lanes
#else
#define FLOAT_KERNELS .encode_float = encode_float, .decode_float = decode_float, .round_float = round_float
#endif

#define NAME_OF(variant)  #variant
#define NAME(variant)     NAME_OF(variant)
#define TABLE_OF(variant) rondo_zfp_kernels_##variant
#define TABLE(variant)    TABLE_OF(variant)

const struct rondo_zfp_kernels TABLE(RONDO_VECTOR_VARIANT) = {.name = NAME(RONDO_VECTOR_VARIANT),
                                                              FLOAT_KERNELS,
                                                              .encode_double = encode_double,
                                                              .decode_double = decode_double,
                                                              .round_double = round_double};
