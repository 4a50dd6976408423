/*
 * The reference: elements of every datatype as 64-bit integers or doubles, reduced one at a time. The inputs are chosen so that
 * every partial result is exact in the datatype, which makes the result independent of the order of reduction. Shares no code
 * with the library's operators.
 */
#ifndef RONDO_TEST_ELEMENTS_H
#define RONDO_TEST_ELEMENTS_H

#include "test/multirank/ranks.h"
#include <math.h>
#include <string.h>

static const char *const type_names[RONDO_DATATYPE_COUNT] = {"int8",  "uint8",  "int32",      "uint32",
                                                             "int64", "uint64", "float16",    "bfloat16",
                                                             "float", "double", "float8e4m3", "float8e5m2"};
static const size_t type_bytes[RONDO_DATATYPE_COUNT] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
static const char *const op_names[] = {"sum", "prod", "min", "max", "avg", "land", "lor", "lxor", "band", "bor", "bxor"};
_Static_assert(sizeof(op_names) / sizeof(op_names[0]) == RONDO_OP_COUNT, "each operator has a name");

struct value {
    int64_t integer; /* for integer types: in the type's range, sign- or zero-extended */
    double real;     /* for floating-point types */
};

static inline int type_is_float(rondo_datatype_t type)
{
    return type >= RONDO_FLOAT16;
}
static inline int type_is_signed(rondo_datatype_t type)
{
    return type == RONDO_INT8 || type == RONDO_INT32 || type == RONDO_INT64;
}
static inline int op_is_bitwise(rondo_op_t op)
{
    return op == RONDO_BAND || op == RONDO_BOR || op == RONDO_BXOR;
}

static inline int64_t truncate_integer(rondo_datatype_t type, uint64_t bits)
{
    switch (type) {
    case RONDO_INT8:
        return (int8_t) bits;
    case RONDO_UINT8:
        return (uint8_t) bits;
    case RONDO_INT32:
        return (int32_t) bits;
    case RONDO_UINT32:
        return (uint32_t) bits;
    default:
        return (int64_t) bits;
    }
}

/* The type represents all integers up to this magnitude exactly. */
static inline int64_t exact_limit(rondo_datatype_t type)
{
    static const int64_t limits[RONDO_DATATYPE_COUNT] = {127,  255, 1 << 24, 1 << 24, 1 << 24, 1 << 24,
                                                         2048, 256, 1 << 24, 1 << 24, 16,      8};
    return limits[type];
}

/* A rank's input element under op in a communicator of size ranks. h: a hash of everything that identifies the element. */
static inline struct value make_value(rondo_datatype_t type, rondo_op_t op, uint64_t h, int rank, int size)
{
    struct value v = {0, 0};
    int64_t limit = exact_limit(type), range = limit / size, small;
    switch (op) {
    case RONDO_LAND:
        small = h % 16 == 0 ? 0 : 1 + (int64_t) (h >> 32) % 7;
        break;
    case RONDO_LOR:
        small = h % 8 != 0 ? 0 : 1 + (int64_t) (h >> 32) % 7;
        break;
    case RONDO_LXOR:
        small = h % 2 == 0 ? 0 : 1 + (int64_t) (h >> 32) % 7;
        break;
    case RONDO_SUM:
    case RONDO_AVG:
        range = range > 0 ? range : rank < limit; /* if the type cannot count all ranks, the last ranks add nothing */
        small = (int64_t) (h % (uint64_t) (2 * range + 1)) - range;
        break;
    default:
        small = (int64_t) (h % (uint64_t) (2 * limit + 1)) - limit;
    }
    if (type_is_float(type)) {
        v.real = (double) small;
        if (op == RONDO_PROD) /* powers of two, few enough for float8's range */
            v.real = (h & 1 ? -1.0 : 1.0) * (rank < 6 ? ldexp(1.0, (int) ((h >> 8) % 3) - 1) : 1.0);
        return v;
    }
    if (op == RONDO_AVG && !type_is_signed(type))
        small = small < 0 ? -small : small;
    int full = op != RONDO_AVG && op != RONDO_LAND && op != RONDO_LOR && op != RONDO_LXOR;
    v.integer = truncate_integer(type, full ? ranks_hash(h) : (uint64_t) small);
    return v;
}

static inline struct value reduce_values(rondo_datatype_t type, rondo_op_t op, struct value a, struct value b)
{
    struct value v = {0, 0};
    int left, right, less; /* the truth values of a and b, and a < b */
    if (type_is_float(type)) {
        left = a.real != 0, right = b.real != 0, less = a.real < b.real;
    } else {
        left = a.integer != 0, right = b.integer != 0;
        less = type == RONDO_UINT64 ? (uint64_t) a.integer < (uint64_t) b.integer : a.integer < b.integer;
    }
    uint64_t x = (uint64_t) a.integer, y = (uint64_t) b.integer, bits = 0;
    switch (op) {
    case RONDO_SUM:
    case RONDO_AVG:
        v.real = a.real + b.real, bits = x + y;
        break;
    case RONDO_PROD:
        v.real = a.real * b.real, bits = x * y;
        break;
    case RONDO_MIN:
        return less ? a : b;
    case RONDO_MAX:
        return less ? b : a;
    case RONDO_LAND:
        bits = left && right, v.real = (double) bits;
        break;
    case RONDO_LOR:
        bits = left || right, v.real = (double) bits;
        break;
    case RONDO_LXOR:
        bits = left != right, v.real = (double) bits;
        break;
    case RONDO_BAND:
        bits = x & y;
        break;
    case RONDO_BOR:
        bits = x | y;
        break;
    default:
        bits = x ^ y;
    }
    v.integer = truncate_integer(type, bits);
    return v;
}

/* The last step of RONDO_AVG. */
static inline struct value divide_value(rondo_datatype_t type, struct value sum, int size)
{
    struct value v = {0, 0};
    if (type == RONDO_DOUBLE)
        v.real = sum.real / size;
    else if (type_is_float(type))
        v.real = (double) ((float) sum.real / (float) size);
    else if (type_is_signed(type))
        v.integer = sum.integer / size;
    else
        v.integer = (int64_t) ((uint64_t) sum.integer / (uint64_t) size);
    return v;
}

/* Encodes a finite value in range, rounded to nearest even, as sign | exponent | mantissa. */
static inline unsigned encode_small_float(double x, int exponent_bits, int mantissa_bits)
{
    unsigned sign = signbit(x) ? 1u << (exponent_bits + mantissa_bits) : 0;
    int bias = (1 << (exponent_bits - 1)) - 1, exponent;
    double magnitude = fabs(x);
    if (magnitude == 0)
        return sign;
    frexp(magnitude, &exponent);
    exponent -= 1; /* magnitude = 1.xxx * 2^exponent */
    if (exponent < 1 - bias)
        exponent = 1 - bias; /* subnormal: the same spacing as the smallest normals */
    double units = nearbyint(ldexp(magnitude, mantissa_bits - exponent));
    /* The leading one of a normal number and a carry out of the significand add to the exponent field without further work. */
    return sign | (((unsigned) (exponent + bias - 1) << mantissa_bits) + (unsigned) units);
}

static inline void encode_value(rondo_datatype_t type, struct value v, void *element)
{
    uint64_t bits = (uint64_t) v.integer;
    float single = (float) v.real;
    if (type == RONDO_DOUBLE)
        memcpy(&bits, &v.real, 8);
    else if (type == RONDO_FLOAT) {
        uint32_t word;
        memcpy(&word, &single, 4);
        bits = word;
    } else if (type == RONDO_FLOAT16)
        bits = encode_small_float(v.real, 5, 10);
    else if (type == RONDO_BFLOAT16)
        bits = encode_small_float(v.real, 8, 7);
    else if (type == RONDO_FLOAT8E4M3)
        bits = encode_small_float(v.real, 4, 3);
    else if (type == RONDO_FLOAT8E5M2)
        bits = encode_small_float(v.real, 5, 2);
    memcpy(element, &bits, type_bytes[type]); /* every device that Rondo runs on is little-endian */
}

#endif
