/*
 * Parts of a ZFP stream that the 32 threads of a warp code together (single source: the host's tests play all 32): a lane a
 * block, over a stage in shared memory, so that the stream itself is read and written in whole words side by side.
 */
#ifndef RONDO_DEVICE_ZFP_WARP_H
#define RONDO_DEVICE_ZFP_WARP_H

#include "zfp_block.h"
#include "zfp_tables.h"

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

/* stage: this lane's; codes: RONDO_ZFP_PLANE_CODES, code_planes: RONDO_ZFP_CODE_PLANES, wherever they are quickly read. Planes
 * are taken from the coefficients, and given to them, eight at a time: one by one that is half of all instructions. */
#define RONDO_ZFP_DEFINE(name, type, word, integer, width, exponent_bits, mantissa)                                            \
    RONDO_FUNCTION void rondo_zfp_spread_##name(uint32_t planes, uint32_t lowest, word *c)                                     \
    {                                                                                                                          \
        const uint32_t bytes = rondo_zfp_bytes_of(planes);                                                                     \
        for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                             \
            c[i] |= (word) (bytes >> 8 * i & 255) << lowest;                                                                   \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_zfp_stage_##name(const type *values, uint32_t rate, const uint32_t *codes, uint32_t *stage)      \
    {                                                                                                                          \
        const uint32_t bits = RONDO_ZFP_VALUES * rate, words = (bits + 31) / 32;                                               \
        word c[RONDO_ZFP_VALUES];                                                                                              \
        uint32_t header, at, last = 0, known = 0, put = 0, planes = 0;                                                         \
        int coded = rondo_zfp_begin_##name(values, c, &header, &at, &last);                                                    \
        uint64_t buffer = header;                                                                                              \
        uint32_t filled = at;                                                                                                  \
        for (uint32_t k = width; coded && at < bits && k > last; k--) {                                                        \
            if (k % 8 == 0) {                                                                                                  \
                uint32_t bytes = 0;                                                                                            \
                for (int i = 0; i < RONDO_ZFP_VALUES; i++) {                                                                   \
                    bytes |= (uint32_t) (c[i] >> (width - 8)) << 8 * i;                                                        \
                    c[i] <<= 8;                                                                                                \
                }                                                                                                              \
                planes = rondo_zfp_planes_of(bytes);                                                                           \
            }                                                                                                                  \
            const uint32_t plane = planes >> 28;                                                                               \
            planes <<= 4;                                                                                                      \
            uint32_t entry = codes[RONDO_ZFP_CODES - (RONDO_ZFP_CODES >> known) + (plane >> known)];                           \
            uint32_t code = (plane & ((1u << known) - 1)) | (entry & 255) << known;                                            \
            uint32_t length = known + (entry >> 8 & 15);                                                                       \
            known += entry >> 12;                                                                                              \
            buffer |= (uint64_t) code << filled;                                                                               \
            filled += length;                                                                                                  \
            at += length;                                                                                                      \
            if (filled >= 32) {                                                                                                \
                stage[put++] = (uint32_t) buffer;                                                                              \
                buffer >>= 32;                                                                                                 \
                filled -= 32;                                                                                                  \
            }                                                                                                                  \
        }                                                                                                                      \
        for (; put < words; put++) {                                                                                           \
            stage[put] = (uint32_t) buffer;                                                                                    \
            buffer >>= 32;                                                                                                     \
        }                                                                                                                      \
        if ((bits & 31) != 0)                                                                                                  \
            stage[words - 1] &= (1u << (bits & 31)) - 1;                                                                       \
    }                                                                                                                          \
    /* The block that begins at a bit of a stream in the stage; two words behind the block are read. */                        \
    RONDO_FUNCTION void rondo_zfp_unstage_##name(const uint32_t *stream, uint32_t bit, uint32_t rate,                          \
                                                 const uint32_t *code_planes, type *values)                                    \
    {                                                                                                                          \
        const uint32_t *next = stream + (bit >> 5);                                                                            \
        word c[RONDO_ZFP_VALUES] = {0, 0, 0, 0};                                                                               \
        uint64_t buffer = ((uint64_t) next[1] << 32 | next[0]) >> (bit & 31);                                                  \
        uint32_t filled = 64 - (bit & 31), known = 0, last, header = (uint32_t) buffer & ((2u << exponent_bits) - 1);          \
        uint32_t eight = 0, lowest = 0; /* planes that are not in c yet, and where they begin */                               \
        int left = (int) (RONDO_ZFP_VALUES * rate) - (1 + exponent_bits);                                                      \
        next += 2;                                                                                                             \
        if ((header & 1) == 0) {                                                                                               \
            rondo_zfp_classes_##name(header, values);                                                                          \
            return;                                                                                                            \
        }                                                                                                                      \
        uint32_t exponent = rondo_zfp_##name##_exponent(header, &last);                                                        \
        buffer >>= 1 + exponent_bits;                                                                                          \
        filled -= 1 + exponent_bits;                                                                                           \
        for (uint32_t k = width; left > 0 && k-- > last;) {                                                                    \
            if (filled < 7) {                                                                                                  \
                buffer |= (uint64_t) *next++ << filled;                                                                        \
                filled += 32;                                                                                                  \
            }                                                                                                                  \
            uint32_t bits = (uint32_t) buffer & (left >= 7 ? 127 : (1u << left) - 1);                                          \
            uint32_t entry = code_planes[170u - (170u >> 2 * known) + (bits >> known & 127u >> 2 * known)];                    \
            uint32_t plane = (entry & 15) | (bits & ((1u << known) - 1));                                                      \
            int length = (int) (entry >> 4 & 15);                                                                              \
            if (length > left && (plane & 8)) /* the block ended within a scan, whose last zeros were not there */             \
                plane = (plane ^ 8) | 8u >> (length - left);                                                                   \
            known = entry >> 8;                                                                                                \
            buffer >>= length;                                                                                                 \
            filled -= (uint32_t) length;                                                                                       \
            left -= length;                                                                                                    \
            eight |= plane << 4 * (k % 8);                                                                                     \
            lowest = k;                                                                                                        \
            if (k % 8 == 0) {                                                                                                  \
                rondo_zfp_spread_##name(eight, k, c);                                                                          \
                eight = 0;                                                                                                     \
            }                                                                                                                  \
        }                                                                                                                      \
        rondo_zfp_spread_##name(eight, lowest & ~7u, c);                                                                       \
        rondo_zfp_end_##name(c, exponent, values);                                                                             \
    }
RONDO_ZFP_TYPES(RONDO_ZFP_DEFINE)
#undef RONDO_ZFP_DEFINE

#endif
