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

enum type_class { WHOLE, REAL, TRUTH, COMPLEX, PAIR };
static const struct {
    const char *name;
    size_t bytes, alignment;
    enum type_class class;
    int64_t exact; /* all integers up to this magnitude are values of the type */
} type_table[RONDO_DATATYPE_COUNT] = {
    [RONDO_INT8] = {"int8", 1, 1, WHOLE, 127},
    [RONDO_UINT8] = {"uint8", 1, 1, WHOLE, 255},
    [RONDO_INT16] = {"int16", 2, 2, WHOLE, 32767},
    [RONDO_UINT16] = {"uint16", 2, 2, WHOLE, 65535},
    [RONDO_INT32] = {"int32", 4, 4, WHOLE, 1 << 24},
    [RONDO_UINT32] = {"uint32", 4, 4, WHOLE, 1 << 24},
    [RONDO_INT64] = {"int64", 8, 8, WHOLE, 1 << 24},
    [RONDO_UINT64] = {"uint64", 8, 8, WHOLE, 1 << 24},
    [RONDO_FLOAT16] = {"float16", 2, 2, REAL, 2048},
    [RONDO_BFLOAT16] = {"bfloat16", 2, 2, REAL, 256},
    [RONDO_FLOAT] = {"float", 4, 4, REAL, 1 << 24},
    [RONDO_DOUBLE] = {"double", 8, 8, REAL, 1 << 24},
    [RONDO_FLOAT8E4M3] = {"float8e4m3", 1, 1, REAL, 16},
    [RONDO_FLOAT8E5M2] = {"float8e5m2", 1, 1, REAL, 8},
    [RONDO_BOOL] = {"bool", 1, 1, TRUTH, 1},
    [RONDO_COMPLEX_FLOAT] = {"complex_float", 8, 4, COMPLEX, 1 << 24},
    [RONDO_COMPLEX_DOUBLE] = {"complex_double", 16, 8, COMPLEX, 1 << 24},
    [RONDO_LONG_DOUBLE] = {"long_double", 16, 16, REAL, 1 << 24},
    [RONDO_FLOAT_INT] = {"float_int", 8, 4, PAIR, 3},
    [RONDO_DOUBLE_INT] = {"double_int", 16, 8, PAIR, 3},
    [RONDO_LONG_INT] = {"long_int", 16, 8, PAIR, 3},
    [RONDO_2INT] = {"2int", 8, 4, PAIR, 3},
    [RONDO_SHORT_INT] = {"short_int", 8, 4, PAIR, 3},
    [RONDO_LONG_DOUBLE_INT] = {"long_double_int", 32, 16, PAIR, 3},
};
static const char *const op_names[] = {"sum",  "prod", "min", "max",  "avg",    "land",  "lor",
                                       "lxor", "band", "bor", "bxor", "minloc", "maxloc"};
_Static_assert(sizeof(op_names) / sizeof(op_names[0]) == RONDO_OP_COUNT, "each operator has a name");

struct value {
    int64_t integer;  /* for integer types and RONDO_BOOL: in the type's range, sign- or zero-extended; a pair's value */
    long double real; /* for floating-point types, and the real part */
    double imaginary; /* for complex types */
    int32_t index;    /* for pairs */
};

static inline int type_is_float(rondo_datatype_t type)
{
    return type_table[type].class == REAL || type_table[type].class == COMPLEX;
}
static inline int type_is_signed(rondo_datatype_t type)
{
    return type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32 || type == RONDO_INT64;
}
static inline int op_is_bitwise(rondo_op_t op)
{
    return op == RONDO_BAND || op == RONDO_BOR || op == RONDO_BXOR;
}

static inline int op_is_logical(rondo_op_t op)
{
    return op == RONDO_LAND || op == RONDO_LOR || op == RONDO_LXOR;
}
/* Whether rondo.h gives the operator to the type. */
static inline int op_takes(rondo_op_t op, rondo_datatype_t type)
{
    int location = op == RONDO_MINLOC || op == RONDO_MAXLOC;
    switch (type_table[type].class) {
    case WHOLE:
        return !location;
    case REAL:
        return !location && !op_is_bitwise(op);
    case TRUTH:
        return op_is_logical(op);
    case COMPLEX:
        return op == RONDO_SUM || op == RONDO_PROD || op == RONDO_AVG;
    default:
        return location;
    }
}

/* Whether rondo.h says that GPUs combine elements of the type by the operator, which takes it. */
static inline int op_runs_on_gpus(rondo_op_t op, rondo_datatype_t type)
{
    return type != RONDO_LONG_DOUBLE && type_table[type].class != PAIR &&
           (type_table[type].class != COMPLEX || op != RONDO_PROD);
}

static inline int64_t truncate_integer(rondo_datatype_t type, uint64_t bits)
{
    switch (type) {
    case RONDO_INT8:
        return (int8_t) bits;
    case RONDO_UINT8:
        return (uint8_t) bits;
    case RONDO_INT16:
        return (int16_t) bits;
    case RONDO_UINT16:
        return (uint16_t) bits;
    case RONDO_INT32:
        return (int32_t) bits;
    case RONDO_UINT32:
        return (uint32_t) bits;
    default:
        return (int64_t) bits;
    }
}

/* A rank's input element under op in a communicator of size ranks. h: a hash of everything that identifies the element. */
static inline struct value make_value(rondo_datatype_t type, rondo_op_t op, uint64_t h, int rank, int size)
{
    struct value v = {0, 0, 0, 0};
    int64_t limit = type_table[type].exact, range = limit / size, small;
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
        small = (int64_t) ((h >> 32) * (uint64_t) (2 * range + 1) >> 32) - range;
        break;
    default:
        small = (int64_t) ((h >> 32) * (uint64_t) (2 * limit + 1) >> 32) - limit;
    }
    if (type_table[type].class == PAIR) { /* few values and indexes, so that equal ones meet */
        v.integer = (int64_t) (h % 7) - 3;
        v.index = (int32_t) (h >> 16) % 5;
        return v;
    }
    if (type_table[type].class == COMPLEX && op == RONDO_PROD) {
        /* 2 + i, turned by a right angle or several: no power of it has a part that is zero, whose sign would depend on the
         * order of reduction. */
        static const int parts[4][2] = {{2, 1}, {-1, 2}, {-2, -1}, {1, -2}};
        v.real = rank < 6 ? parts[h % 4][0] : 1;
        v.imaginary = rank < 6 ? parts[h % 4][1] : 0;
        return v;
    }
    if (type_is_float(type)) {
        v.real = (double) small;
        if (type_table[type].class == COMPLEX)
            v.imaginary = (double) ((small + (int64_t) rank) % 3) * (double) (range > 0);
        if (op == RONDO_PROD) /* powers of two, few enough for float8's range */
            v.real = (h & 1 ? -1.0 : 1.0) * (rank < 6 ? ldexp(1.0, (int) ((h >> 8) % 3) - 1) : 1.0);
        return v;
    }
    if (op == RONDO_AVG && !type_is_signed(type))
        small = small < 0 ? -small : small;
    int full = op != RONDO_AVG && op != RONDO_LAND && op != RONDO_LOR && op != RONDO_LXOR;
    v.integer = type_table[type].class == TRUTH ? small != 0 : truncate_integer(type, full ? ranks_hash(h) : (uint64_t) small);
    return v;
}

static inline struct value reduce_values(rondo_datatype_t type, rondo_op_t op, struct value a, struct value b)
{
    struct value v = {0, 0, 0, 0};
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
        v.real = a.real + b.real, v.imaginary = a.imaginary + b.imaginary, bits = x + y;
        break;
    case RONDO_PROD:
        v.real = a.real * b.real - a.imaginary * b.imaginary, bits = x * y;
        v.imaginary = (double) (a.real * b.imaginary + a.imaginary * b.real);
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
    case RONDO_MINLOC:
    case RONDO_MAXLOC:
        if (a.integer == b.integer)
            return a.index < b.index ? a : b;
        return (a.integer < b.integer) == (op == RONDO_MINLOC) ? a : b;
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
    struct value v = {0, 0, 0, 0};
    if (type == RONDO_LONG_DOUBLE)
        v.real = sum.real / size;
    else if (type == RONDO_DOUBLE || type == RONDO_COMPLEX_DOUBLE)
        v.real = (double) sum.real / size, v.imaginary = sum.imaginary / size;
    else if (type_is_float(type))
        v.real = (double) ((float) sum.real / (float) size), v.imaginary = (double) ((float) sum.imaginary / (float) size);
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

/* Encodes x as an x86 long double, of 64 bits of significand and 15 of exponent. */
static inline void encode_long_double(long double x, unsigned char *element)
{
    int exponent;
    long double fraction = frexpl(fabsl(x), &exponent);
    uint64_t significand = (uint64_t) ldexpl(fraction, 64);
    uint16_t high = (uint16_t) ((signbit(x) ? 0x8000 : 0) | (x == 0 ? 0 : exponent - 1 + 16383));
    memset(element, 0, 16);
    memcpy(element, &significand, 8);
    memcpy(element + 8, &high, 2);
}

/* Encodes a pair: its value, and its index where C puts it. */
static inline void encode_pair(rondo_datatype_t type, struct value v, unsigned char *element)
{
    static const size_t places[RONDO_DATATYPE_COUNT] = {
        [RONDO_FLOAT_INT] = 4, [RONDO_DOUBLE_INT] = 8, [RONDO_LONG_INT] = 8,
        [RONDO_2INT] = 4,      [RONDO_SHORT_INT] = 4,  [RONDO_LONG_DOUBLE_INT] = 16};
    float single = (float) v.integer;
    double real = (double) v.integer;
    memset(element, 0, type_table[type].bytes);
    if (type == RONDO_FLOAT_INT)
        memcpy(element, &single, 4);
    else if (type == RONDO_DOUBLE_INT)
        memcpy(element, &real, 8);
    else if (type == RONDO_LONG_DOUBLE_INT)
        encode_long_double(real, element);
    else
        memcpy(element, &v.integer, type == RONDO_SHORT_INT ? 2 : places[type]);
    memcpy(element + places[type], &v.index, 4);
}

static inline void encode_value(rondo_datatype_t type, struct value v, void *element)
{
    double parts[2] = {(double) v.real, v.imaginary};
    float single_parts[2] = {(float) v.real, (float) v.imaginary};
    uint64_t bits = (uint64_t) v.integer;
    float single = (float) v.real;
    if (type_table[type].class == PAIR)
        encode_pair(type, v, element);
    else if (type == RONDO_LONG_DOUBLE)
        encode_long_double(v.real, element);
    else if (type == RONDO_COMPLEX_DOUBLE)
        memcpy(element, parts, 16);
    else if (type == RONDO_COMPLEX_FLOAT)
        memcpy(element, single_parts, 8);
    if (type_table[type].bytes > 8 || type_table[type].class == PAIR || type == RONDO_COMPLEX_FLOAT)
        return;
    if (type == RONDO_DOUBLE)
        memcpy(&bits, &parts[0], 8);
    else if (type == RONDO_FLOAT) {
        uint32_t word;
        memcpy(&word, &single, 4);
        bits = word;
    } else if (type == RONDO_FLOAT16)
        bits = encode_small_float(parts[0], 5, 10);
    else if (type == RONDO_BFLOAT16)
        bits = encode_small_float(parts[0], 8, 7);
    else if (type == RONDO_FLOAT8E4M3)
        bits = encode_small_float(parts[0], 4, 3);
    else if (type == RONDO_FLOAT8E5M2)
        bits = encode_small_float(parts[0], 5, 2);
    memcpy(element, &bits, type_table[type].bytes); /* every device that Rondo runs on is little-endian */
}

#endif
