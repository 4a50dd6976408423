/* See tools/common/values.h. Integers are computed as 64-bit patterns kept extended from the type's width, floats as doubles.
 */
#include "tools/common/values.h"
#include "tools/common/composites.h"
#include "tools/common/floats.h"

#include <float.h>
#include <string.h>

enum { BATCH = 512 };                                       /* elements, or parts of complex ones, encoded at a time */
enum { PART_BYTES_MOST = 32 };                              /* of a long double and its index */
enum { LONG_DOUBLE_BYTES = LDBL_MANT_DIG == 64 ? 10 : 16 }; /* the others pad it, and are 0 */

static uint64_t scramble(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}

static uint64_t rank_key(const struct values *v, int rank)
{
    return scramble(v->seed + (uint64_t) (rank + 1) * 0x9E3779B97F4A7C15u);
}

static uint64_t noise(uint64_t key, size_t index)
{
    return scramble(key + (uint64_t) index * 0xBF58476D1CE4E5B9u);
}

static bool logical(const struct values *v)
{
    return v->reduces && (v->op == RONDO_LAND || v->op == RONDO_LOR || v->op == RONDO_LXOR);
}

void values_prepare(struct values *v, bool prefix)
{
    static const int integer_bits[RONDO_DATATYPE_COUNT] = {
        [RONDO_INT8] = 8,    [RONDO_UINT8] = 8,  [RONDO_INT16] = 16,  [RONDO_UINT16] = 16, [RONDO_INT32] = 32,
        [RONDO_UINT32] = 32, [RONDO_INT64] = 64, [RONDO_UINT64] = 64, [RONDO_BOOL] = 1};
    rondo_datatype_size(v->type, &v->bytes);
    v->is_composite = composites_are(v->type, v->reduces ? v->op : RONDO_OP_NONE);
    v->part = v->is_composite                   ? v->type
              : v->type == RONDO_COMPLEX_FLOAT  ? RONDO_FLOAT
              : v->type == RONDO_COMPLEX_DOUBLE ? RONDO_DOUBLE
                                                : v->type;
    rondo_datatype_size(v->part, &v->part_bytes);
    v->parts = v->bytes / v->part_bytes;
    v->bits = integer_bits[v->part];
    v->is_real = v->bits == 0;
    v->is_signed =
        v->is_real || v->type == RONDO_INT8 || v->type == RONDO_INT16 || v->type == RONDO_INT32 || v->type == RONDO_INT64;
    v->only_one_true = prefix || v->ranks == 1 || v->type == RONDO_BOOL;
    v->contributors = v->ranks;
    v->unit = 1;

    uint64_t ranks = (uint64_t) v->ranks, limit;
    if (!v->is_real) {
        limit = UINT64_MAX >> (64 - v->bits + (v->is_signed ? 1 : 0));
        v->magnitude = limit / ranks > 0 ? limit / ranks : 1; /* used by AVG alone, so that its sum does not wrap */
        return;
    }
    if (v->is_composite) {
        v->contributors = v->ranks < 6 ? v->ranks : 6;
        return;
    }
    int precision = floats_precision(v->part);
    limit = (uint64_t) 1 << (precision < 40 ? precision : 40);
    v->magnitude = limit;
    if (!v->reduces || v->op == RONDO_MIN || v->op == RONDO_MAX || logical(v))
        return;
    if (v->op == RONDO_PROD) { /* ones and twos: at most 2^8, which every type holds */
        v->contributors = v->ranks < 8 ? v->ranks : 8;
        v->magnitude = 2;
        return;
    }
    if (ranks > limit)
        v->contributors = (int) limit;
    if (v->op == RONDO_AVG && limit / ranks / ranks > 0) /* the quotient is then a whole number */
        v->unit = ranks;
    v->magnitude = limit / (uint64_t) v->contributors / v->unit;
}

/* The rank's place in an order of the ranks that is another at each element, but the same on all ranks. */
static uint64_t turn(const struct values *v, int rank, size_t index)
{
    uint64_t ranks = (uint64_t) v->ranks;
    return ((uint64_t) rank + noise(v->seed, index) % ranks) % ranks;
}

static bool contributes(const struct values *v, int rank, size_t index)
{
    return v->contributors == v->ranks || turn(v, rank, index) < (uint64_t) v->contributors;
}

/* With full random patterns the AND of many ranks would be zero, and the OR all ones, whichever rank is left out. So one rank
 * at each element has such a pattern, and the others change a single bit of it. */
static uint64_t sparse_bits(const struct values *v, int rank, size_t index, uint64_t random)
{
    uint64_t bit = (uint64_t) 1 << (random >> 32) % (uint64_t) v->bits;
    if (turn(v, rank, index) == 0)
        return random;
    return v->op == RONDO_BAND ? ~bit : bit;
}

/* Odds are such that the result is true about half of the time. */
static bool truth(const struct values *v, uint64_t random)
{
    uint64_t ranks = (uint64_t) v->ranks;
    switch (v->op) {
    case RONDO_LAND:
        return random % (2 * ranks) != 0;
    case RONDO_LOR:
        return random % (2 * ranks) == 0;
    default:
        return random % 2 == 0;
    }
}

/* The pattern as the type holds it: cut to its width and extended again. */
static uint64_t wrap(const struct values *v, uint64_t x)
{
    int spare = 64 - v->bits;
    return v->is_signed ? (uint64_t) ((int64_t) (x << spare) >> spare) : x << spare >> spare;
}

static uint64_t integer_value(const struct values *v, uint64_t key, int rank, size_t index)
{
    uint64_t random = noise(key, index);
    if (logical(v) && !truth(v, random >> 32))
        return 0;
    if (logical(v) && v->only_one_true)
        return 1;
    uint64_t value;
    if (v->reduces && v->op == RONDO_AVG) {
        value = 1 + (random >> 8) % v->magnitude;
        value = v->is_signed && (random & 1) ? 0 - value : value;
    } else if (v->reduces && v->op == RONDO_PROD) {
        value = random | 1; /* a product of odd numbers never dwindles to zero */
    } else if (v->reduces && (v->op == RONDO_BAND || v->op == RONDO_BOR)) {
        value = sparse_bits(v, rank, index, random);
    } else {
        value = random;
    }
    value = wrap(v, value);
    return value != 0 || v->type == RONDO_BOOL ? value : 1;
}

static double real_value(const struct values *v, uint64_t key, int rank, size_t index)
{
    uint64_t random = noise(key, index);
    if (logical(v) && !truth(v, random >> 32))
        return 0.0;
    if (logical(v) && v->only_one_true)
        return 1.0;
    bool contributor = contributes(v, rank, index);
    if (!contributor && !(v->reduces && v->op == RONDO_PROD))
        return 0.0;
    double value = contributor ? (double) ((1 + (random >> 16) % v->magnitude) * v->unit) : 1.0;
    return random & 1 ? -value : value;
}

static uint64_t integer_reduce(const struct values *v, uint64_t a, uint64_t b)
{
    switch (v->op) {
    case RONDO_PROD:
        return wrap(v, a * b);
    case RONDO_MIN:
    case RONDO_MAX: {
        bool less = v->is_signed ? (int64_t) a < (int64_t) b : a < b;
        return less == (v->op == RONDO_MIN) ? a : b;
    }
    case RONDO_LAND:
        return a != 0 && b != 0;
    case RONDO_LOR:
        return a != 0 || b != 0;
    case RONDO_LXOR:
        return (a != 0) != (b != 0);
    case RONDO_BAND:
        return a & b;
    case RONDO_BOR:
        return a | b;
    case RONDO_BXOR:
        return a ^ b;
    default: /* SUM and AVG */
        return wrap(v, a + b);
    }
}

static double real_reduce(const struct values *v, double a, double b)
{
    switch (v->op) {
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return a < b ? a : b;
    case RONDO_MAX:
        return a > b ? a : b;
    case RONDO_LAND:
        return a != 0 && b != 0 ? 1.0 : 0.0;
    case RONDO_LOR:
        return a != 0 || b != 0 ? 1.0 : 0.0;
    case RONDO_LXOR:
        return (a != 0) != (b != 0) ? 1.0 : 0.0;
    default: /* SUM and AVG */
        return a + b;
    }
}

/* Each of the ranks' inputs is folded into result in turn; one loop a rank keeps the keys out of it. */
static void integer_combine(const struct values *v, int first, int last, size_t index, size_t count, uint64_t *result)
{
    for (int rank = first; rank <= last; rank++) {
        uint64_t key = rank_key(v, rank);
        for (size_t i = 0; i < count; i++) {
            uint64_t value = integer_value(v, key, rank, index + i);
            result[i] = rank == first ? value : integer_reduce(v, result[i], value);
        }
    }
    if (first < last && v->op == RONDO_AVG) {
        for (size_t i = 0; i < count; i++) {
            result[i] = v->is_signed ? (uint64_t) ((int64_t) result[i] / v->ranks) : result[i] / (uint64_t) v->ranks;
        }
    }
}

static void real_combine(const struct values *v, int first, int last, size_t index, size_t count, double *result)
{
    for (int rank = first; rank <= last; rank++) {
        uint64_t key = rank_key(v, rank);
        for (size_t i = 0; i < count; i++) {
            double value = real_value(v, key, rank, index + i);
            result[i] = rank == first ? value : real_reduce(v, result[i], value);
        }
    }
    for (size_t i = 0; first < last && v->op == RONDO_AVG && i < count; i++)
        result[i] /= v->ranks;
}

static void store_integers(const struct values *v, const uint64_t *from, size_t count, void *memory)
{
    char *bytes = memory;
    for (size_t i = 0; i < count; i++) {
        uint8_t narrow = (uint8_t) from[i];
        uint32_t medium = (uint32_t) from[i];
        uint16_t half = (uint16_t) from[i];
        if (v->bytes == 8)
            memcpy(bytes + 8 * i, &from[i], 8);
        else if (v->bytes == 4)
            memcpy(bytes + 4 * i, &medium, 4);
        else if (v->bytes == 2)
            memcpy(bytes + 2 * i, &half, 2);
        else
            memcpy(bytes + i, &narrow, 1);
    }
}

static void store_reals(const struct values *v, const double *from, size_t count, void *memory)
{
    char *bytes = memory;
    for (size_t i = 0; i < count; i++) {
        if (v->part == RONDO_DOUBLE) {
            memcpy(bytes + 8 * i, &from[i], 8);
        } else if (v->part == RONDO_LONG_DOUBLE) {
            long double wide = from[i];
            memset(bytes + 16 * i, 0, 16);
            memcpy(bytes + 16 * i, &wide, LONG_DOUBLE_BYTES);
        } else if (v->part == RONDO_FLOAT) {
            float single = (float) from[i];
            memcpy(bytes + 4 * i, &single, 4);
        } else {
            uint16_t bits = floats_encode(v->part, from[i]);
            uint8_t low = (uint8_t) bits;
            memcpy(bytes + v->bytes * i, v->bytes == 2 ? (void *) &bits : (void *) &low, v->bytes);
        }
    }
}

static void composite_combine(const struct values *v, int first, int last, size_t index, size_t count, char *memory)
{
    for (size_t i = 0; i < count; i++) {
        struct composite result = {0, 0, 0, 0};
        for (int rank = first; rank <= last; rank++) {
            struct composite value =
                composites_value(v->type, noise(rank_key(v, rank), index + i), contributes(v, rank, index + i));
            result = rank == first ? value : composites_combine(v->type, v->op, result, value);
        }
        composites_store(v->type, result, memory + i * v->bytes);
    }
}

/* Writes the combination, at most BATCH elements or parts of complex ones, as the type holds it. */
static void combine(const struct values *v, int first, int last, size_t index, size_t count, void *memory)
{
    union {
        uint64_t integers[BATCH];
        double reals[BATCH];
    } result;
    if (v->is_composite) {
        composite_combine(v, first, last, index, count, memory);
    } else if (v->is_real) {
        real_combine(v, first, last, index, count, result.reals);
        store_reals(v, result.reals, count, memory);
    } else {
        integer_combine(v, first, last, index, count, result.integers);
        store_integers(v, result.integers, count, memory);
    }
}

void values_fill(const struct values *v, int rank, size_t first, size_t count, void *memory)
{
    first *= v->parts;
    count *= v->parts;
    for (size_t done = 0; done < count; done += BATCH) {
        size_t some = count - done < BATCH ? count - done : BATCH;
        combine(v, rank, rank, first + done, some, (char *) memory + done * v->part_bytes);
    }
}

uint64_t values_differ(const struct values *v, int first, int last, size_t index, size_t count, const void *actual)
{
    _Static_assert(BATCH % 2 == 0, "a batch has whole complex numbers");
    char expected[BATCH * PART_BYTES_MOST];
    uint64_t wrong = 0;
    index *= v->parts;
    count *= v->parts;
    for (size_t done = 0; done < count; done += BATCH) {
        size_t some = count - done < BATCH ? count - done : BATCH, bytes = some * v->part_bytes;
        const char *got = (const char *) actual + done * v->part_bytes;
        combine(v, first, last, index + done, some, expected);
        if (memcmp(expected, got, bytes) == 0)
            continue;
        for (size_t at = 0; at < bytes; at += v->bytes)
            wrong += v->is_composite ? composites_differ(v->type, expected + at, got + at)
                                     : memcmp(expected + at, got + at, v->bytes) != 0;
    }
    return wrong;
}
