/*
 * Parts of a ZFP stream that the 32 threads of a warp code together (single source: the host's tests play all 32): a lane a
 * block, over a stage in shared memory, so that the stream itself is read and written in whole words side by side.
 */
#ifndef RONDO_DEVICE_CODEC_ZFP_WARP_H
#define RONDO_DEVICE_CODEC_ZFP_WARP_H

#include "device/codec/zfp_block.h"
#include "device/codec/zfp_tables.h"

#define RONDO_ZFP_LANES         32
/* Words of 4 bytes of a lane's block in the stage: an odd number, for the banks. */
#define RONDO_ZFP_STRIDE_float  5
#define RONDO_ZFP_STRIDE_double 9
/* Of a warp's stage, for either direction, with two words behind a stream that may be read. */
#define RONDO_ZFP_STAGE_float   (RONDO_ZFP_LANES * RONDO_ZFP_STRIDE_float + 2)
#define RONDO_ZFP_STAGE_double  (RONDO_ZFP_LANES * RONDO_ZFP_STRIDE_double + 2)

/* Words of a stream of so many blocks (at most 32 of them), zeros up to a multiple of 8 bytes included. */
RONDO_FUNCTION uint32_t rondo_zfp_stream_words(uint32_t blocks, uint32_t rate)
{
    return (blocks * RONDO_ZFP_VALUES * rate + 63) / 64 * 2;
}

/* Word j of the stream of a warp's blocks, of which lane b has put block b to stage + b * stride. */
RONDO_FUNCTION uint32_t rondo_zfp_stream_word(const uint32_t *stage, uint32_t stride, uint32_t blocks, uint32_t rate,
                                              uint32_t j)
{
    const uint32_t bits = RONDO_ZFP_VALUES * rate;
    uint32_t block =
        (bits & (bits - 1)) == 0 ? 32 * j >> rondo_zfp_lowest_bit(bits) : 32 * j / bits; /* a division takes long */
    uint32_t at = 32 * j - block * bits, word = 0;
    for (uint32_t have = 0; have < 32 && block < blocks; block++) {
        const uint32_t *from = stage + block * stride + (at >> 5);
        uint32_t shift = at & 31, more = bits - at;
        uint32_t value = from[0] >> shift;
        if (shift != 0 && more > 32 - shift)
            value |= from[1] << (32 - shift);
        word |= value << have;
        have += more;
        at = 0;
    }
    return word;
}

/* Exchanges two bits of the index of x's bits. */
RONDO_FUNCTION uint32_t rondo_zfp_swap(uint32_t x, uint32_t by, uint32_t mask)
{
    const uint32_t differ = (x >> by ^ x) & mask;
    return x ^ differ ^ differ << by;
}

/* Eight planes of a block, four bits each and the lowest first, of a byte of each coefficient. */
RONDO_FUNCTION uint32_t rondo_zfp_planes_of(uint32_t bytes)
{
    const uint32_t x = rondo_zfp_swap(rondo_zfp_swap(bytes, 12, 0x0000f0f0), 6, 0x00cc00cc);
    return rondo_zfp_swap(rondo_zfp_swap(x, 3, 0x0a0a0a0a), 1, 0x22222222);
}

RONDO_FUNCTION uint32_t rondo_zfp_bytes_of(uint32_t planes)
{
    const uint32_t x = rondo_zfp_swap(rondo_zfp_swap(planes, 1, 0x22222222), 3, 0x0a0a0a0a);
    return rondo_zfp_swap(rondo_zfp_swap(x, 6, 0x00cc00cc), 12, 0x0000f0f0);
}

/* stage: this lane's; codes, code_planes: of rondo_zfp_spread_tables, wherever they are quickly read. Planes are taken from the
 * coefficients, and given to them, eight at a time. */
#define RONDO_ZFP_DEFINE(name, type, word, integer, width, exponent_bits, mantissa)                                            \
    RONDO_FUNCTION void rondo_zfp_stage_##name(const type *values, uint32_t rate, const uint16_t *codes, uint32_t *stage)      \
    {                                                                                                                          \
        const uint32_t bits = RONDO_ZFP_VALUES * rate, words = (bits + 31) / 32;                                               \
        word c[RONDO_ZFP_VALUES];                                                                                              \
        uint32_t header, at, last = 0, known = 0, *to = stage;                                                                 \
        int coded = rondo_zfp_begin_##name(values, c, &header, &at, &last);                                                    \
        uint64_t buffer = header;                                                                                              \
        uint32_t filled = at;                                                                                                  \
        for (uint32_t k = width; coded && at < bits && k > last;) {                                                            \
            uint32_t bytes = 0;                                                                                                \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++) {                                                                       \
                bytes |= (uint32_t) (c[i] >> (width - 8)) << 8 * i;                                                            \
                c[i] <<= 8;                                                                                                    \
            }                                                                                                                  \
            uint32_t planes = rondo_zfp_planes_of(bytes);                                                                      \
            do {                                                                                                               \
                const uint32_t entry = codes[known + (planes >> 28)], length = entry >> 7 & 7;                                 \
                planes <<= 4;                                                                                                  \
                known = entry >> 6 & 0x70; /* * 16 */                                                                          \
                buffer |= (uint64_t) (entry & 127) << filled;                                                                  \
                filled += length;                                                                                              \
                at += length;                                                                                                  \
                if (filled >= 32) {                                                                                            \
                    *to++ = (uint32_t) buffer;                                                                                 \
                    buffer >>= 32;                                                                                             \
                    filled -= 32;                                                                                              \
                }                                                                                                              \
            } while (--k % 8 != 0 && at < bits && k > last);                                                                   \
        }                                                                                                                      \
        for (; to < stage + words; to++) {                                                                                     \
            *to = (uint32_t) buffer;                                                                                           \
            buffer >>= 32;                                                                                                     \
        }                                                                                                                      \
        if ((bits & 31) != 0)                                                                                                  \
            stage[words - 1] &= (1u << (bits & 31)) - 1;                                                                       \
    }                                                                                                                          \
    /* The block that begins at a bit of a stream in the stage; two words behind the block are read. */                        \
    RONDO_FUNCTION void rondo_zfp_unstage_##name(const uint32_t *stream, uint32_t bit, uint32_t rate,                          \
                                                 const uint16_t *code_planes, type *values)                                    \
    {                                                                                                                          \
        const uint32_t *next = stream + (bit >> 5);                                                                            \
        word c[RONDO_ZFP_VALUES] = {0, 0, 0, 0};                                                                               \
        uint64_t buffer = ((uint64_t) next[1] << 32 | next[0]) >> (bit & 31);                                                  \
        uint32_t row = 0, last, header = (uint32_t) buffer & ((2u << exponent_bits) - 1);                                      \
        int left = (int) (RONDO_ZFP_VALUES * rate) - (1 + exponent_bits);        /* bits of the block, */                      \
        int filled = 64 - (int) (bit & 31) - (1 + exponent_bits), plane, length; /* and of the buffer */                       \
        next += 2;                                                                                                             \
        if ((header & 1) == 0) {                                                                                               \
            rondo_zfp_classes_##name(header, values);                                                                          \
            return;                                                                                                            \
        }                                                                                                                      \
        uint32_t exponent = rondo_zfp_##name##_exponent(header, &last);                                                        \
        buffer >>= 1 + exponent_bits;                                                                                          \
        if (left < filled) /* zeros follow a block's end */                                                                    \
            buffer &= (UINT64_C(1) << left) - 1;                                                                               \
        for (uint32_t k = width; left > 0 && k > last;) {                                                                      \
            uint32_t planes = 0;                                                                                               \
            do {                                                                                                               \
                if (filled < 7) {                                                                                              \
                    const int rest = left - filled;                                                                            \
                    const uint32_t more = *next++;                                                                             \
                    buffer |= (uint64_t) (rest >= 32 ? more : rest > 0 ? more & ((1u << rest) - 1) : 0) << filled;             \
                    filled += 32;                                                                                              \
                }                                                                                                              \
                const uint32_t entry = code_planes[row + ((uint32_t) buffer & (row == 0 ? 127 : 63))];                         \
                row = entry & RONDO_ZFP_ROWS;                                                                                  \
                plane = (int) entry & 15;                                                                                      \
                length = (int) entry >> 9;                                                                                     \
                buffer >>= length;                                                                                             \
                filled -= length;                                                                                              \
                left -= length;                                                                                                \
                planes = planes << 4 | (uint32_t) plane;                                                                       \
            } while (--k % 8 != 0 && left > 0 && k > last);                                                                    \
            if (left < 0 && (plane & 8)) /* the block ended within a scan, whose last zeros were not there */                  \
                planes = (planes ^ 8) | 8u >> -left;                                                                           \
            const uint32_t eight = rondo_zfp_bytes_of(planes << 4 * (k % 8));                                                  \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                         \
                c[i] |= (word) (eight >> 8 * i & 255) << (k & ~7u);                                                            \
        }                                                                                                                      \
        rondo_zfp_end_##name(c, exponent, values);                                                                             \
    }
RONDO_ZFP_TYPES(RONDO_ZFP_DEFINE)
#undef RONDO_ZFP_DEFINE

#endif
