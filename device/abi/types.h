/*
 * The element types (single source): how each is stored, in which type it is computed ("accumulator"), and the conversions
 * between the small floats and float, all by bit manipulation and exact arithmetic so that every device gives the same bits.
 * Relies on IEEE 754 float in round-to-nearest mode with subnormals (never compile with --use_fast_math or -ffast-math).
 */
#ifndef RONDO_DEVICE_ABI_TYPES_H
#define RONDO_DEVICE_ABI_TYPES_H

#include "device/abi/qualifiers.h"
#include <stdint.h>
#include <string.h>

/* X(name, type, the unsigned type it wraps in, the type it is divided in): integers are their own accumulators. Types that are
 * not here, and the host alone combines, are in device/reduce/host_operators.h. */
#define RONDO_INTEGER_ACCUMULATORS(X)                                                                                          \
    X(int8, int8_t, uint8_t, int)                                                                                              \
    X(uint8, uint8_t, uint8_t, int)                                                                                            \
    X(int16, int16_t, uint32_t, int)                                                                                           \
    X(uint16, uint16_t, uint32_t, int)                                                                                         \
    X(int32, int32_t, uint32_t, int32_t)                                                                                       \
    X(uint32, uint32_t, uint32_t, uint32_t)                                                                                    \
    X(int64, int64_t, uint64_t, int64_t)                                                                                       \
    X(uint64, uint64_t, uint64_t, uint64_t)
/* X(name, type, the type of its bits, its one NaN's bits). */
#define RONDO_FLOATING_ACCUMULATORS(X)                                                                                         \
    X(float, float, uint32_t, RONDO_FLOAT_NAN)                                                                                 \
    X(double, double, uint64_t, RONDO_DOUBLE_NAN)

/* X(name, storage type): the types whose accumulator is float. */
#define RONDO_CONVERTED_TYPES(X)                                                                                               \
    X(float16, uint16_t)                                                                                                       \
    X(bfloat16, uint16_t)                                                                                                      \
    X(float8e4m3, uint8_t)                                                                                                     \
    X(float8e5m2, uint8_t)

/* Every NaN that is computed, here and by the operators, is the one NaN of its type with sign and payload fixed: processors
 * differ in which NaN they make and in which of two they keep. */
#define RONDO_FLOAT_NAN      UINT32_C(0x7fc00000)
#define RONDO_FLOAT16_NAN    UINT32_C(0x7e00)
#define RONDO_BFLOAT16_NAN   UINT32_C(0x7fc0)
#define RONDO_FLOAT8E4M3_NAN UINT32_C(0x7f)
#define RONDO_FLOAT8E5M2_NAN UINT32_C(0x7e)
#define RONDO_DOUBLE_NAN     UINT64_C(0x7ff8000000000000)

RONDO_FUNCTION uint32_t rondo_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

RONDO_FUNCTION float rondo_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

RONDO_FUNCTION uint64_t rondo_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

RONDO_FUNCTION double rondo_double_of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/*
 * A small float's magnitude (no sign bit) of so many mantissa bits and such a bias, as a float's bits; special: the first
 * encoding that is an infinity or a NaN, whose exponent becomes a float's highest. Free of branches, so that it vectorizes.
 */
RONDO_FUNCTION uint32_t rondo_widen_magnitude(uint32_t magnitude, int mantissa, int bias, uint32_t special)
{
    uint32_t rebias = (uint32_t) (127 - bias) << 23;
    uint32_t aligned = magnitude << (23 - mantissa);
    uint32_t normal = aligned + rebias;
    /* A subnormal given the smallest normal exponent has an implicit one too many; the subtraction is exact. */
    uint32_t implicit = rebias + (UINT32_C(1) << 23);
    uint32_t subnormal = rondo_float_bits(rondo_float_of_bits(aligned + implicit) - rondo_float_of_bits(implicit));
    uint32_t finite = magnitude < (UINT32_C(1) << mantissa) ? subnormal : normal;
    return magnitude >= special ? aligned | UINT32_C(0x7f800000) : finite;
}

/* A float's magnitude bits, rounded to nearest even; what is special or beyond becomes special. NaN is the caller's business.
 */
RONDO_FUNCTION uint32_t rondo_narrow_magnitude(uint32_t magnitude, int mantissa, int bias, uint32_t special)
{
    int dropped = 23 - mantissa;
    uint32_t rebias = (uint32_t) (127 - bias) << 23;
    uint32_t odd = (magnitude >> dropped) & 1;
    uint32_t normal = (magnitude - rebias + (UINT32_C(1) << (dropped - 1)) - 1 + odd) >> dropped;
    /* For a subnormal, adding the power of two whose last place is the result's last place makes the hardware round. */
    uint32_t power = (uint32_t) (127 - bias + dropped + 1) << 23;
    uint32_t subnormal = rondo_float_bits(rondo_float_of_bits(magnitude) + rondo_float_of_bits(power)) - power;
    uint32_t rounded = magnitude < rebias + (UINT32_C(1) << 23) ? subnormal : normal;
    return rounded < special ? rounded : special;
}

RONDO_FUNCTION float rondo_float16_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t) (half & 0x8000) << 16;
    return rondo_float_of_bits(sign | rondo_widen_magnitude(half & 0x7fff, 10, 15, 0x7c00));
}

RONDO_FUNCTION uint16_t rondo_float16_from_float(float value)
{
    uint32_t bits = rondo_float_bits(value), magnitude = bits & UINT32_C(0x7fffffff);
    uint32_t half = rondo_narrow_magnitude(magnitude, 10, 15, 0x7c00) | (bits >> 16 & 0x8000);
    return (uint16_t) (magnitude > UINT32_C(0x7f800000) ? RONDO_FLOAT16_NAN : half);
}

RONDO_FUNCTION float rondo_bfloat16_to_float(uint16_t half)
{
    return rondo_float_of_bits((uint32_t) half << 16);
}

RONDO_FUNCTION uint16_t rondo_bfloat16_from_float(float value)
{
    uint32_t bits = rondo_float_bits(value);
    uint32_t half = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t) ((bits & UINT32_C(0x7fffffff)) > UINT32_C(0x7f800000) ? RONDO_BFLOAT16_NAN : half);
}

/* No infinities: 0x7f is the only special magnitude, and overflow goes there, keeping its sign (OCP OFP8 section 5.2.1). */
RONDO_FUNCTION float rondo_float8e4m3_to_float(uint8_t byte)
{
    uint32_t sign = (uint32_t) (byte & 0x80) << 24;
    return rondo_float_of_bits(sign | rondo_widen_magnitude(byte & 0x7f, 3, 7, 0x7f));
}

RONDO_FUNCTION uint8_t rondo_float8e4m3_from_float(float value)
{
    uint32_t bits = rondo_float_bits(value), magnitude = bits & UINT32_C(0x7fffffff);
    uint32_t byte = rondo_narrow_magnitude(magnitude, 3, 7, 0x7f) | (bits >> 24 & 0x80);
    return (uint8_t) (magnitude > UINT32_C(0x7f800000) ? RONDO_FLOAT8E4M3_NAN : byte);
}

RONDO_FUNCTION float rondo_float8e5m2_to_float(uint8_t byte)
{
    return rondo_float16_to_float((uint16_t) (byte << 8));
}

RONDO_FUNCTION uint8_t rondo_float8e5m2_from_float(float value)
{
    uint32_t bits = rondo_float_bits(value), magnitude = bits & UINT32_C(0x7fffffff);
    uint32_t byte = rondo_narrow_magnitude(magnitude, 2, 15, 0x7c) | (bits >> 24 & 0x80);
    return (uint8_t) (magnitude > UINT32_C(0x7f800000) ? RONDO_FLOAT8E5M2_NAN : byte);
}

#endif
