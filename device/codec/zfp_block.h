/*
 * One block of ZFP's one-dimensional fixed-rate code (single source): four values in 4 * rate bits, bit for bit what libzfp 1.0
 * writes without word alignment (P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", TVCG 20, 2014). A stream is the
 * blocks' bits one after the other, the first bit the lowest of the first byte, and zeros up to a multiple of 8 bytes.
 * device/codec/zfp_stream.h codes streams on the host; relies on arithmetic shifts of signed integers.
 *
 * A block holds the common exponent, then the planes of its four coefficients from the highest bit down. Of a plane, the
 * coefficients that have shown a bit before come as they are; the rest are told by "is there any more?" and a scan for the
 * next. What does not fit into the block is cut off.
 *
 * Where libzfp's result is undefined, or depends on how it was compiled, the code is:
 *  - A block with an infinity or a NaN begins with the zero bit of a block of zeros, which libzfp reads it as, and then says
 * for each value, in two bits, what it is (enum rondo_zfp_class). Infinities and NaNs so survive a reduction; finite values in
 *    the same block of four are lost, and read as 0.
 *  - A float block that is all below 2^-97 in magnitude (a double one: 2^-961) is coded as libzfp on x86-64 does, whose scale
 *    overflows there: every value becomes the least integer, read as -2 to -1 times twice the power of two above the largest,
 *    or as -0. The error is below 2^-94 (2^-958).
 */
#ifndef RONDO_DEVICE_CODEC_ZFP_BLOCK_H
#define RONDO_DEVICE_CODEC_ZFP_BLOCK_H

#include "device/abi/types.h"

#include <stddef.h>

#define RONDO_ZFP_VALUES      4 /* of a block */
#define RONDO_ZFP_RATE_MIN    4 /* bits a value */
#define RONDO_ZFP_RATE_FLOAT  32
#define RONDO_ZFP_RATE_DOUBLE 64

/* A block's bits, the first the lowest of the first word; and one word more, for what is cut off. */
#define RONDO_ZFP_WORDS 5

enum rondo_zfp_class { RONDO_ZFP_FINITE, RONDO_ZFP_INFINITY, RONDO_ZFP_MINUS_INFINITY, RONDO_ZFP_NAN };

RONDO_FUNCTION size_t rondo_zfp_blocks(size_t count)
{
    return count / RONDO_ZFP_VALUES + (count % RONDO_ZFP_VALUES != 0);
}

/* Of the stream of count values: a multiple of 8. */
RONDO_FUNCTION size_t rondo_zfp_bytes(size_t count, uint32_t rate)
{
    return (rondo_zfp_blocks(count) * RONDO_ZFP_VALUES * rate + 63) / 64 * 8;
}

RONDO_FUNCTION uint32_t rondo_zfp_lowest_bit(uint32_t value)
{
#if defined(__CUDA_ARCH__)
    return (uint32_t) __ffs((int) value) - 1;
#else
    return (uint32_t) __builtin_ctz(value);
#endif
}

RONDO_FUNCTION void rondo_zfp_put(uint64_t *words, uint32_t at, uint64_t bits, uint32_t count)
{
    words[at >> 6] |= bits << (at & 63);
    if ((at & 63) + count > 64)
        words[(at >> 6) + 1] |= bits >> (64 - (at & 63));
}

/* At least 57 bits from there on. */
RONDO_FUNCTION uint64_t rondo_zfp_peek(const uint64_t *words, uint32_t at)
{
    uint64_t low = words[at >> 6] >> (at & 63);
    return (at & 63) == 0 ? low : low | words[(at >> 6) + 1] << (64 - (at & 63));
}

/* One plane: bit i of plane is coefficient i's. known: coefficients that have shown a bit, before and after. Returns the code's
 * length, at most 7. */
RONDO_FUNCTION uint32_t rondo_zfp_put_plane(uint32_t plane, uint32_t *known, uint32_t *code)
{
    uint32_t n = *known, length = n, bits = plane & ((1u << n) - 1);
    plane >>= n;
    while (n < RONDO_ZFP_VALUES) {
        if (plane == 0) {
            length++;
            break;
        }
        uint32_t skipped = rondo_zfp_lowest_bit(plane), last = n + skipped == RONDO_ZFP_VALUES - 1;
        bits |= (last ? 1u : 1u | 2u << skipped) << length;
        length += skipped + (last ? 1 : 2);
        plane >>= skipped + 1;
        n += skipped + 1;
    }
    *known = n;
    *code = bits;
    return length;
}

/* The other way; left bits of the block are still there, and zeros follow them. */
RONDO_FUNCTION uint32_t rondo_zfp_take_plane(uint32_t bits, uint32_t left, uint32_t *known, uint32_t *plane)
{
    uint32_t n = *known, length = n, value = bits & ((1u << n) - 1);
    bits >>= n;
    while (n < RONDO_ZFP_VALUES && length < left) {
        length++;
        if ((bits & 1) == 0)
            break;
        bits >>= 1;
        /* A scan ends with a one, with the last coefficient, and with the block. */
        uint32_t most = RONDO_ZFP_VALUES - 1 - n;
        if (most > left - length)
            most = left - length;
        uint32_t skipped = rondo_zfp_lowest_bit(bits | 1u << most);
        uint32_t told = skipped < most ? 1 : 0;
        n += skipped;
        length += skipped + told;
        bits >>= skipped + told;
        value |= 1u << n;
        n++;
    }
    *known = n;
    *plane = value;
    return length;
}

/* X(name, type, unsigned, signed, bits of the type, of its exponent, of its mantissa) */
#define RONDO_ZFP_TYPES(X)                                                                                                     \
    X(float, float, uint32_t, int32_t, 32, 8, 23)                                                                              \
    X(double, double, uint64_t, int64_t, 64, 11, 52)

/* Exponents here are the stored, biased ones of IEEE 754; E is the largest of a block (subnormals: 0), so that the largest
 * magnitude is below 2^(E - bias + 1), and the code's exponent is E + 1. 1, scaled to an integer of two bits less than the
 * type has, is 2^(width + bias - 3 - E). */
#define RONDO_ZFP_DEFINE(name, type, word, integer, width, exponent_bits, mantissa)                                            \
    /* The planes that are coded, for double with a tiny exponent not all: zfp's accuracy ends at 2^-1074. */                  \
    RONDO_FUNCTION uint32_t rondo_zfp_##name##_planes(uint32_t exponent)                                                       \
    {                                                                                                                          \
        return width == 64 && exponent < 8 ? 56 + exponent : width;                                                            \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_zfp_##name##_forward(word *c)                                                                    \
    {                                                                                                                          \
        const word mask = (word) UINT64_C(0xaaaaaaaaaaaaaaaa);                                                                 \
        word x = c[0], y = c[1], z = c[2], w = c[3];                                                                           \
        x += w, x = (word) ((integer) x >> 1), w -= x;                                                                         \
        z += y, z = (word) ((integer) z >> 1), y -= z;                                                                         \
        x += z, x = (word) ((integer) x >> 1), z -= x;                                                                         \
        w += y, w = (word) ((integer) w >> 1), y -= w;                                                                         \
        w += (word) ((integer) y >> 1), y -= (word) ((integer) w >> 1);                                                        \
        c[0] = (x + mask) ^ mask, c[1] = (y + mask) ^ mask, c[2] = (z + mask) ^ mask, c[3] = (w + mask) ^ mask;                \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_zfp_##name##_backward(word *c)                                                                   \
    {                                                                                                                          \
        const word mask = (word) UINT64_C(0xaaaaaaaaaaaaaaaa);                                                                 \
        word x = (c[0] ^ mask) - mask, y = (c[1] ^ mask) - mask, z = (c[2] ^ mask) - mask, w = (c[3] ^ mask) - mask;           \
        y += (word) ((integer) w >> 1), w -= (word) ((integer) y >> 1);                                                        \
        y += w, w <<= 1, w -= y;                                                                                               \
        z += x, x <<= 1, x -= z;                                                                                               \
        y += z, z <<= 1, z -= y;                                                                                               \
        w += x, x <<= 1, x -= w;                                                                                               \
        c[0] = x, c[1] = y, c[2] = z, c[3] = w;                                                                                \
    }                                                                                                                          \
    /* 2^power times 1, power stored with the bias; what is below the subnormals is 0. */                                      \
    RONDO_FUNCTION type rondo_zfp_##name##_power(int power)                                                                    \
    {                                                                                                                          \
        word bits = power > 0 ? (word) power << mantissa : power > -mantissa ? (word) 1 << (mantissa - 1 + power) : 0;         \
        return rondo_##name##_of_bits(bits);                                                                                   \
    }                                                                                                                          \
    /* What a block begins with: its bits and their number. 0: these are all there are; else the coefficients follow, of which \
     * the planes from the highest down to number *last are coded. */                                                          \
    RONDO_FUNCTION int rondo_zfp_begin_##name(const type *values, word *c, uint32_t *header, uint32_t *length, uint32_t *last) \
    {                                                                                                                          \
        const word infinite = (((word) 1 << exponent_bits) - 1) << mantissa;                                                   \
        word largest = 0;                                                                                                      \
        *header = 0;                                                                                                           \
        *length = 1 + exponent_bits;                                                                                           \
        for (int i = 0; i < RONDO_ZFP_VALUES; i++) {                                                                           \
            word magnitude = rondo_##name##_bits(values[i]) & ~((word) 1 << (width - 1));                                      \
            largest = magnitude > largest ? magnitude : largest;                                                               \
        }                                                                                                                      \
        if (largest >= infinite) {                                                                                             \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++) {                                                                       \
                word value = rondo_##name##_bits(values[i]), magnitude = value & ~((word) 1 << (width - 1));                   \
                uint32_t what = magnitude < infinite   ? RONDO_ZFP_FINITE                                                      \
                                : magnitude > infinite ? RONDO_ZFP_NAN                                                         \
                                : magnitude == value   ? RONDO_ZFP_INFINITY                                                    \
                                                       : RONDO_ZFP_MINUS_INFINITY;                                               \
                *header |= what << (1 + 2 * i);                                                                                \
            }                                                                                                                  \
            return 0;                                                                                                          \
        }                                                                                                                      \
        if (largest == 0)                                                                                                      \
            return 0;                                                                                                          \
        uint32_t exponent = (uint32_t) (largest >> mantissa);                                                                  \
        *header = 2 * (exponent + 1) + 1;                                                                                      \
        *last = width - rondo_zfp_##name##_planes(exponent);                                                                   \
        if (exponent < width - 3) {                                                                                            \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                         \
                c[i] = (word) 1 << (width - 1);                                                                                \
        } else {                                                                                                               \
            type scale = rondo_zfp_##name##_power((1 << exponent_bits) - 2 + width - 3 - (int) exponent);                      \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                         \
                c[i] = (word) (integer) (scale * values[i]);                                                                   \
        }                                                                                                                      \
        rondo_zfp_##name##_forward(c);                                                                                         \
        return 1;                                                                                                              \
    }                                                                                                                          \
    /* The exponent that a header says, and the last plane that is coded. A stream from elsewhere may say anything. */         \
    RONDO_FUNCTION uint32_t rondo_zfp_##name##_exponent(uint32_t header, uint32_t *last)                                       \
    {                                                                                                                          \
        uint32_t exponent = header >> 1 & ((1u << exponent_bits) - 1);                                                         \
        exponent = exponent == 0 ? 0 : exponent - 1;                                                                           \
        *last = width - rondo_zfp_##name##_planes(exponent);                                                                   \
        return exponent;                                                                                                       \
    }                                                                                                                          \
    /* A block of coefficients, and one without any. */                                                                        \
    RONDO_FUNCTION void rondo_zfp_end_##name(word *c, uint32_t exponent, type *values)                                         \
    {                                                                                                                          \
        rondo_zfp_##name##_backward(c);                                                                                        \
        type scale = rondo_zfp_##name##_power((int) exponent - (width - 3));                                                   \
        for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                             \
            values[i] = scale * (type) (integer) c[i];                                                                         \
    }                                                                                                                          \
    RONDO_FUNCTION void rondo_zfp_classes_##name(uint32_t header, type *values)                                                \
    {                                                                                                                          \
        const word infinite = (((word) 1 << exponent_bits) - 1) << mantissa;                                                   \
        for (int i = 0; i < RONDO_ZFP_VALUES; i++) {                                                                           \
            uint32_t what = header >> (1 + 2 * i) & 3;                                                                         \
            word value = what == RONDO_ZFP_FINITE           ? 0                                                                \
                         : what == RONDO_ZFP_INFINITY       ? infinite                                                         \
                         : what == RONDO_ZFP_MINUS_INFINITY ? infinite | (word) 1 << (width - 1)                               \
                                                            : infinite | (word) 1 << (mantissa - 1);                           \
            values[i] = rondo_##name##_of_bits(value);                                                                         \
        }                                                                                                                      \
    }                                                                                                                          \
    /* Clears the words that the block does not use. */                                                                        \
    RONDO_FUNCTION void rondo_zfp_encode_##name(const type *values, uint32_t rate, uint64_t *words)                            \
    {                                                                                                                          \
        const uint32_t bits = RONDO_ZFP_VALUES * rate;                                                                         \
        word c[RONDO_ZFP_VALUES];                                                                                              \
        uint32_t header, at, last = 0, known = 0;                                                                              \
        int coded = rondo_zfp_begin_##name(values, c, &header, &at, &last);                                                    \
        for (uint32_t i = 1; i < (bits + 63) / 64 + 1; i++)                                                                    \
            words[i] = 0;                                                                                                      \
        words[0] = header;                                                                                                     \
        for (uint32_t k = width; coded && at < bits && k-- > last;) {                                                          \
            uint32_t plane = 0, code;                                                                                          \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                         \
                plane |= (uint32_t) (c[i] >> k & 1) << i;                                                                      \
            uint32_t length = rondo_zfp_put_plane(plane, &known, &code);                                                       \
            rondo_zfp_put(words, at, code, length);                                                                            \
            at += length;                                                                                                      \
        }                                                                                                                      \
        if ((bits & 63) != 0)                                                                                                  \
            words[bits >> 6] &= ((uint64_t) 1 << (bits & 63)) - 1;                                                             \
    }                                                                                                                          \
    /* After the block's bits there are zeros up to a whole word, and one word more that may be read. */                       \
    RONDO_FUNCTION void rondo_zfp_decode_##name(const uint64_t *words, uint32_t rate, type *values)                            \
    {                                                                                                                          \
        const uint32_t bits = RONDO_ZFP_VALUES * rate;                                                                         \
        word c[RONDO_ZFP_VALUES] = {0, 0, 0, 0};                                                                               \
        uint32_t at = 1 + exponent_bits, known = 0, last;                                                                      \
        if ((words[0] & 1) == 0) {                                                                                             \
            rondo_zfp_classes_##name((uint32_t) words[0], values);                                                             \
            return;                                                                                                            \
        }                                                                                                                      \
        uint32_t exponent = rondo_zfp_##name##_exponent((uint32_t) words[0], &last);                                           \
        for (uint32_t k = width; at < bits && k-- > last;) {                                                                   \
            uint32_t plane;                                                                                                    \
            at += rondo_zfp_take_plane((uint32_t) rondo_zfp_peek(words, at) & 127, bits - at, &known, &plane);                 \
            for (int i = 0; i < RONDO_ZFP_VALUES; i++)                                                                         \
                c[i] |= (word) (plane >> i & 1) << k;                                                                          \
        }                                                                                                                      \
        rondo_zfp_end_##name(c, exponent, values);                                                                             \
    }
RONDO_ZFP_TYPES(RONDO_ZFP_DEFINE)
#undef RONDO_ZFP_DEFINE

#endif
