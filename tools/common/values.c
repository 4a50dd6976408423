/* See tools/common/values.h. Integers are computed as 64-bit patterns kept extended from the type's width, floats as doubles.
 */
#include "tools/common/values.h"
#include "tools/common/floats.h"

#include <string.h>

enum { BATCH = 512 }; /* elements encoded at a time */

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
    static const int integer_bits[] = {
        [RONDO_INT8] = 8, [RONDO_UINT8] = 8, [RONDO_INT32] = 32, [RONDO_UINT32] = 32, [RONDO_INT64] = 64, [RONDO_UINT64] = 64};
    rondo_datatype_size(v->type, &v->bytes);
    v->is_real = v->type > RONDO_UINT64;
    v->is_signed = v->is_real || v->type == RONDO_INT8 || v->type == RONDO_INT32 || v->type == RONDO_INT64;
    v->bits = v->is_real ? 0 : integer_bits[v->type];
    v->only_one_true = prefix || v->ranks == 1;
    v->contributors = v->ranks;
    v->unit = 1;

    uint64_t ranks = (uint64_t) v->ranks, limit;
    if (!v->is_real) {
        limit = UINT64_MAX >> (64 - v->bits + (v->is_signed ? 1 : 0));
        v->magnitude = limit / ranks > 0 ? limit / ranks : 1; /* used by AVG alone, so that its sum does not wrap */
        return;
    }
    int precision = floats_precision(v->type);
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
    return value != 0 ? value : 1;
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
        if (v->bytes == 8)
            memcpy(bytes + 8 * i, &from[i], 8);
        else if (v->bytes == 4)
            memcpy(bytes + 4 * i, &medium, 4);
        else
            memcpy(bytes + i, &narrow, 1);
    }
}

static void store_reals(const struct values *v, const double *from, size_t count, void *memory)
{
    char *bytes = memory;
    for (size_t i = 0; i < count; i++) {
        if (v->type == RONDO_DOUBLE) {
            memcpy(bytes + 8 * i, &from[i], 8);
        } else if (v->type == RONDO_FLOAT) {
            float single = (float) from[i];
            memcpy(bytes + 4 * i, &single, 4);
        } else {
            uint16_t bits = floats_encode(v->type, from[i]);
            uint8_t low = (uint8_t) bits;
            memcpy(bytes + v->bytes * i, v->bytes == 2 ? (void *) &bits : (void *) &low, v->bytes);
        }
    }
}

/* Writes the combination, at most BATCH elements, as the type holds it. */
static void combine(const struct values *v, int first, int last, size_t index, size_t count, void *memory)
{
    union {
        uint64_t integers[BATCH];
        double reals[BATCH];
    } result;
    if (v->is_real) {
        real_combine(v, first, last, index, count, result.reals);
        store_reals(v, result.reals, count, memory);
    } else {
        integer_combine(v, first, last, index, count, result.integers);
        store_integers(v, result.integers, count, memory);
    }
}

void values_fill(const struct values *v, int rank, size_t first, size_t count, void *memory)
{
    for (size_t done = 0; done < count; done += BATCH) {
        size_t some = count - done < BATCH ? count - done : BATCH;
        combine(v, rank, rank, first + done, some, (char *) memory + done * v->bytes);
    }
}

uint64_t values_differ(const struct values *v, int first, int last, size_t index, size_t count, const void *actual)
{
    char expected[BATCH * sizeof(uint64_t)];
    uint64_t wrong = 0;
    for (size_t done = 0; done < count; done += BATCH) {
        size_t some = count - done < BATCH ? count - done : BATCH;
        const char *got = (const char *) actual + done * v->bytes;
        combine(v, first, last, index + done, some, expected);
        if (memcmp(expected, got, some * v->bytes) == 0)
            continue;
        for (size_t i = 0; i < some; i++)
            wrong += memcmp(expected + i * v->bytes, got + i * v->bytes, v->bytes) != 0;
    }
    return wrong;
}
