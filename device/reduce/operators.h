/*
 * The element operators (single source), rondo_<operator>_<accumulator>(a, b), and loading and storing every type's elements.
 * The rules, on every device and path:
 *  - Integers wrap. A mean truncates towards zero; its divisor is positive and, for 8-bit integers, may exceed the type.
 *  - A floating result that is a NaN is the type's one NaN (device/abi/types.h). Storing a small float rounds once, to nearest
 * even.
 *  - MIN and MAX of floats are IEEE 754-2019 minimum and maximum: a NaN wins, and -0 is less than +0, so any order of reducing
 *    gives the same bits.
 *  - Logical operators take non-zero (so a NaN, not -0) as true and give 0 or 1; bitwise ones exist for integers only.
 * Complex sums are sums of floats or doubles, and RONDO_BOOL's logical operators those of uint8 (lib/call/elements.c).
 */
#ifndef RONDO_DEVICE_REDUCE_OPERATORS_H
#define RONDO_DEVICE_REDUCE_OPERATORS_H

#include "device/abi/types.h"

/* X(enumerator's suffix, name, accumulator's name, accumulator type): operators by the types that have them, those of any
 * number, and all that integers have. RONDO_AVG is a sum and then one rondo_mean. The library's names and argument checks come
 * from these rows too (lib/call/call.c). */
#define RONDO_ARITHMETIC_OPERATORS(X, accumulator, type)                                                                       \
    X(SUM, sum, accumulator, type)                                                                                             \
    X(PROD, prod, accumulator, type)
#define RONDO_ORDER_OPERATORS(X, accumulator, type)                                                                            \
    X(MIN, min, accumulator, type)                                                                                             \
    X(MAX, max, accumulator, type)
#define RONDO_LOGICAL_OPERATORS(X, accumulator, type)                                                                          \
    X(LAND, land, accumulator, type)                                                                                           \
    X(LOR, lor, accumulator, type)                                                                                             \
    X(LXOR, lxor, accumulator, type)
#define RONDO_BITWISE_OPERATORS(X, accumulator, type)                                                                          \
    X(BAND, band, accumulator, type)                                                                                           \
    X(BOR, bor, accumulator, type)                                                                                             \
    X(BXOR, bxor, accumulator, type)
#define RONDO_LOCATION_OPERATORS(X, accumulator, type)                                                                         \
    X(MINLOC, minloc, accumulator, type)                                                                                       \
    X(MAXLOC, maxloc, accumulator, type)
#define RONDO_OPERATORS(X, accumulator, type)                                                                                  \
    RONDO_ARITHMETIC_OPERATORS(X, accumulator, type)                                                                           \
    RONDO_ORDER_OPERATORS(X, accumulator, type)                                                                                \
    RONDO_LOGICAL_OPERATORS(X, accumulator, type)
#define RONDO_INTEGER_OPERATORS(X, accumulator, type)                                                                          \
    RONDO_OPERATORS(X, accumulator, type)                                                                                      \
    RONDO_BITWISE_OPERATORS(X, accumulator, type)

#define RONDO_DEFINE(operator_, accumulator, type, expression)                                                                 \
    RONDO_FUNCTION type rondo_##operator_##_##accumulator(type a, type b)                                                      \
    {                                                                                                                          \
        return (type) (expression);                                                                                            \
    }

#define RONDO_DEFINE_LOGICAL(accumulator, type)                                                                                \
    RONDO_DEFINE(land, accumulator, type, (a != 0) & (b != 0))                                                                 \
    RONDO_DEFINE(lor, accumulator, type, (a != 0) | (b != 0))                                                                  \
    RONDO_DEFINE(lxor, accumulator, type, (a != 0) ^ (b != 0))

/* Sums and products wrap in unsigned arithmetic, whose low bits are those of the signed. */
#define RONDO_DEFINE_INTEGER(accumulator, type, wrapping, dividing)                                                            \
    RONDO_DEFINE(sum, accumulator, type, (wrapping) a + (wrapping) b)                                                          \
    RONDO_DEFINE(prod, accumulator, type, (wrapping) a *(wrapping) b)                                                          \
    RONDO_DEFINE(min, accumulator, type, a < b ? a : b)                                                                        \
    RONDO_DEFINE(max, accumulator, type, a > b ? a : b)                                                                        \
    RONDO_DEFINE(band, accumulator, type, a &b)                                                                                \
    RONDO_DEFINE(bor, accumulator, type, a | b)                                                                                \
    RONDO_DEFINE(bxor, accumulator, type, a ^ b)                                                                               \
    RONDO_DEFINE_LOGICAL(accumulator, type)                                                                                    \
    RONDO_FUNCTION type rondo_mean_##accumulator(type sum, int divisor)                                                        \
    {                                                                                                                          \
        return (type) (sum / (dividing) divisor);                                                                              \
    }
RONDO_INTEGER_ACCUMULATORS(RONDO_DEFINE_INTEGER)

#define RONDO_DEFINE_FLOATING(accumulator, type, bits, NAN_BITS)                                                               \
    RONDO_FUNCTION type rondo_canonical_##accumulator(type value)                                                              \
    {                                                                                                                          \
        return value == value ? value : rondo_##accumulator##_of_bits(NAN_BITS);                                               \
    }                                                                                                                          \
    RONDO_DEFINE(sum, accumulator, type, rondo_canonical_##accumulator(a + b))                                                 \
    RONDO_DEFINE(prod, accumulator, type, rondo_canonical_##accumulator(a *b))                                                 \
    RONDO_DEFINE_LOGICAL(accumulator, type)                                                                                    \
    RONDO_FUNCTION type rondo_mean_##accumulator(type sum, int divisor)                                                        \
    {                                                                                                                          \
        return rondo_canonical_##accumulator(sum / (type) divisor);                                                            \
    }                                                                                                                          \
    /* Equal operands have equal bits, but for zeros of two signs: the union of the bits is then -0, the intersection +0. */   \
    RONDO_FUNCTION type rondo_min_##accumulator(type a, type b)                                                                \
    {                                                                                                                          \
        bits x = rondo_##accumulator##_bits(a), y = rondo_##accumulator##_bits(b);                                             \
        bits ordered = a < b ? x : a > b ? y : x | y;                                                                          \
        return rondo_##accumulator##_of_bits(((a == a) & (b == b)) ? ordered : NAN_BITS);                                      \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_max_##accumulator(type a, type b)                                                                \
    {                                                                                                                          \
        bits x = rondo_##accumulator##_bits(a), y = rondo_##accumulator##_bits(b);                                             \
        bits ordered = a > b ? x : a < b ? y : x & y;                                                                          \
        return rondo_##accumulator##_of_bits(((a == a) & (b == b)) ? ordered : NAN_BITS);                                      \
    }
RONDO_FLOATING_ACCUMULATORS(RONDO_DEFINE_FLOATING)

#undef RONDO_DEFINE
#undef RONDO_DEFINE_LOGICAL
#undef RONDO_DEFINE_INTEGER
#undef RONDO_DEFINE_FLOATING

/* rondo_load_<type>(stored) gives the accumulator; rondo_store_<type>(accumulator) the stored element. */
#define RONDO_DEFINE_DIRECT(name, type, unused, unused_too)                                                                    \
    RONDO_FUNCTION type rondo_load_##name(type stored)                                                                         \
    {                                                                                                                          \
        return stored;                                                                                                         \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_store_##name(type value)                                                                         \
    {                                                                                                                          \
        return value;                                                                                                          \
    }
#define RONDO_DEFINE_CONVERTED(name, type)                                                                                     \
    RONDO_FUNCTION float rondo_load_##name(type stored)                                                                        \
    {                                                                                                                          \
        return rondo_##name##_to_float(stored);                                                                                \
    }                                                                                                                          \
    RONDO_FUNCTION type rondo_store_##name(float value)                                                                        \
    {                                                                                                                          \
        return rondo_##name##_from_float(value);                                                                               \
    }
RONDO_INTEGER_ACCUMULATORS(RONDO_DEFINE_DIRECT)
RONDO_FLOATING_ACCUMULATORS(RONDO_DEFINE_DIRECT)
RONDO_CONVERTED_TYPES(RONDO_DEFINE_CONVERTED)
#undef RONDO_DEFINE_DIRECT
#undef RONDO_DEFINE_CONVERTED

#endif
