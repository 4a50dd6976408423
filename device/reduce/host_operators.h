/*
 * The element operators that the host device alone has: products of complex numbers, long double, and pairs of a value and its
 * index. The rules of device/reduce/operators.h hold. What C pads an element with is 0 in results, so that equal results have
 * equal bytes.
 */
#ifndef RONDO_DEVICE_REDUCE_HOST_OPERATORS_H
#define RONDO_DEVICE_REDUCE_HOST_OPERATORS_H

#include "device/reduce/operators.h"

#include <float.h>

/* ---- complex numbers ---- */

struct rondo_complex_float {
    float real, imaginary;
};
struct rondo_complex_double {
    double real, imaginary;
};

/* X(name, part's name, the type of its bits). */
#define RONDO_COMPLEX_TYPES(X)                                                                                                 \
    X(complex_float, float, uint32_t)                                                                                          \
    X(complex_double, double, uint64_t)

/* Sums go part by part as floats and doubles, so there is no operator for them. The difference is a sum with a sign bit turned:
 * of a difference beside a sum, GCC 12 makes a fused instruction in spite of -ffp-contract=off. */
#define RONDO_DEFINE_COMPLEX(name, part, bits)                                                                                 \
    RONDO_FUNCTION struct rondo_##name rondo_prod_##name(struct rondo_##name a, struct rondo_##name b)                         \
    {                                                                                                                          \
        const bits sign = (bits) 1 << (8 * sizeof(bits) - 1);                                                                  \
        const part subtracted = rondo_##part##_of_bits(rondo_##part##_bits(a.imaginary * b.imaginary) ^ sign);                 \
        struct rondo_##name product = {rondo_canonical_##part(a.real * b.real + subtracted),                                   \
                                       rondo_canonical_##part(a.real * b.imaginary + a.imaginary * b.real)};                   \
        return product;                                                                                                        \
    }
RONDO_COMPLEX_TYPES(RONDO_DEFINE_COMPLEX)
#undef RONDO_DEFINE_COMPLEX

/* ---- long double ---- */

/* As it is stored. */
struct rondo_long_double {
    _Alignas(16) unsigned char bytes[16];
};
_Static_assert(sizeof(long double) == sizeof(struct rondo_long_double), "long double has 16 bytes");
/* Bytes that are not padding. */
#define RONDO_LONG_DOUBLE_BYTES (LDBL_MANT_DIG == 64 ? 10 : 16)

RONDO_FUNCTION long double rondo_load_long_double(struct rondo_long_double stored)
{
    long double value;
    memcpy(&value, stored.bytes, sizeof(value));
    return value;
}

/* A NaN becomes the one NaN. */
RONDO_FUNCTION struct rondo_long_double rondo_store_long_double(long double value)
{
    struct rondo_long_double stored = {{0}};
    if (value != value)
        value = __builtin_nanl("");
    memcpy(stored.bytes, &value, RONDO_LONG_DOUBLE_BYTES);
    return stored;
}

#define RONDO_DEFINE_LONG(operator_, expression)                                                                               \
    RONDO_FUNCTION struct rondo_long_double rondo_##operator_##_long_double(struct rondo_long_double x,                        \
                                                                            struct rondo_long_double y)                        \
    {                                                                                                                          \
        long double a = rondo_load_long_double(x), b = rondo_load_long_double(y);                                              \
        return rondo_store_long_double((long double) (expression));                                                            \
    }
RONDO_DEFINE_LONG(sum, a + b)
RONDO_DEFINE_LONG(prod, a *b)
/* A NaN wins, as -0 does against +0 in a minimum. */
RONDO_DEFINE_LONG(min, a != a ? a : b != b ? b : a < b || (a == b && __builtin_signbit(a)) ? a : b)
RONDO_DEFINE_LONG(max, a != a ? a : b != b ? b : a > b || (a == b && !__builtin_signbit(a)) ? a : b)
RONDO_DEFINE_LONG(land, (a != 0) & (b != 0))
RONDO_DEFINE_LONG(lor, (a != 0) | (b != 0))
RONDO_DEFINE_LONG(lxor, (a != 0) ^ (b != 0))
#undef RONDO_DEFINE_LONG

RONDO_FUNCTION struct rondo_long_double rondo_mean_long_double(struct rondo_long_double sum, int divisor)
{
    return rondo_store_long_double(rondo_load_long_double(sum) / (long double) divisor);
}

/* ---- pairs ---- */

struct rondo_float_int {
    float value;
    int32_t index;
};
struct rondo_double_int {
    double value;
    int32_t index, padding;
};
struct rondo_long_int {
    int64_t value;
    int32_t index, padding;
};
struct rondo_2int {
    int32_t value, index;
};
struct rondo_short_int {
    int16_t value, padding;
    int32_t index;
};
struct rondo_long_double_int {
    struct rondo_long_double value;
    int32_t index, padding[3];
};
_Static_assert(sizeof(long) == 8 && sizeof(int) == 4 && sizeof(short) == 2, "pairs are C's structs");

/* X(name, the value's type, its name among operators). */
#define RONDO_PAIR_TYPES(X)                                                                                                    \
    X(float_int, float, float)                                                                                                 \
    X(double_int, double, double)                                                                                              \
    X(long_int, int64_t, int64)                                                                                                \
    X(2int, int32_t, int32)                                                                                                    \
    X(short_int, int16_t, int16)                                                                                               \
    X(long_double_int, struct rondo_long_double, long_double)

/* The value by which pairs are compared. */
#define RONDO_PAIR_VALUE_long_double_int(pair) rondo_load_long_double((pair).value)
#define RONDO_PAIR_VALUE_float_int(pair)       (pair).value
#define RONDO_PAIR_VALUE_double_int(pair)      (pair).value
#define RONDO_PAIR_VALUE_long_int(pair)        (pair).value
#define RONDO_PAIR_VALUE_2int(pair)            (pair).value
#define RONDO_PAIR_VALUE_short_int(pair)       (pair).value

#define RONDO_DEFINE_LOCATION(name, type, operators, operator_, before)                                                        \
    RONDO_FUNCTION struct rondo_##name rondo_##operator_##loc_##name(struct rondo_##name a, struct rondo_##name b)             \
    {                                                                                                                          \
        const __auto_type x = RONDO_PAIR_VALUE_##name(a);                                                                      \
        const __auto_type y = RONDO_PAIR_VALUE_##name(b);                                                                      \
        const int unordered_x = !((x < 0) | (x >= 0)), unordered_y = !((y < 0) | (y >= 0));                                    \
        const int equal = (x == y) | (unordered_x & unordered_y);                                                              \
        const int first = equal ? a.index < b.index : unordered_x | (!unordered_y & (x before y));                             \
        const int same = equal & (a.index == b.index);                                                                         \
        struct rondo_##name result = {0};                                                                                      \
        const type value = first ? a.value : b.value;                                                                          \
        /* The operator makes the one NaN, and of two zeros of one index the one that every order of reducing gives. */        \
        result.value = rondo_##operator_##_##operators(value, same ? a.value : value);                                         \
        result.index = first ? a.index : b.index;                                                                              \
        return result;                                                                                                         \
    }
#define RONDO_DEFINE_PAIR(name, type, operators)                                                                               \
    RONDO_DEFINE_LOCATION(name, type, operators, min, <)                                                                       \
    RONDO_DEFINE_LOCATION(name, type, operators, max, >)
RONDO_PAIR_TYPES(RONDO_DEFINE_PAIR)
#undef RONDO_DEFINE_PAIR
#undef RONDO_DEFINE_LOCATION

#endif
