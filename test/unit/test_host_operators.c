/*
 * rondo_reduce_elements on the types that the host alone combines, and with operators of the user, against a reference that is
 * written here: products of complex numbers, long double, pairs of a value and its index; all numbers of sources and
 * destinations, in place, at every alignment that the type allows, by every set of kernels that this machine runs.
 */
#include "device/abi/slice_operation.h"
#include "device/reduce/reduce.h"
#include "device/reduce/reduce_kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SOURCES = 5, DESTINATIONS = 3, COUNT = 700, ELEMENT = 32, CANARY = 64 };

static uint64_t random_state = 1;
static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t) (random_state >> 33) % bound;
}

/* ---- reference ---- */

typedef struct {
    float value;
    int index;
} float_int;
typedef struct {
    double value;
    int index;
} double_int;
typedef struct {
    long value;
    int index;
} long_int;
typedef struct {
    int value, index;
} int_int;
typedef struct {
    short value;
    int index;
} short_int;
typedef struct {
    long double value;
    int index;
} long_double_int;

static const struct {
    rondo_datatype_t type;
    size_t bytes, alignment;
} types[] = {
    {RONDO_COMPLEX_FLOAT, sizeof(float _Complex), sizeof(float)},
    {RONDO_COMPLEX_DOUBLE, sizeof(double _Complex), sizeof(double)},
    {RONDO_LONG_DOUBLE, sizeof(long double), sizeof(long double)},
    {RONDO_FLOAT_INT, sizeof(float_int), 4},
    {RONDO_DOUBLE_INT, sizeof(double_int), 8},
    {RONDO_LONG_INT, sizeof(long_int), 8},
    {RONDO_2INT, sizeof(int_int), 4},
    {RONDO_SHORT_INT, sizeof(short_int), 4},
    {RONDO_LONG_DOUBLE_INT, sizeof(long_double_int), 16},
};
enum { TYPES = sizeof(types) / sizeof(types[0]) };

static int exists(rondo_datatype_t type, rondo_op_t op)
{
    if (type == RONDO_COMPLEX_FLOAT || type == RONDO_COMPLEX_DOUBLE)
        return op == RONDO_PROD; /* sums are of their parts */
    const int of_pairs = op == RONDO_MINLOC || op == RONDO_MAXLOC;
    if (type == RONDO_LONG_DOUBLE)
        return !of_pairs && op != RONDO_BAND && op != RONDO_BOR && op != RONDO_BXOR;
    return of_pairs;
}

static void put_long_double(long double value, void *element)
{
    static const unsigned char nan[16] = {0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0x7f};
    memset(element, 0, 16);
    if (isnan(value))
        memcpy(element, nan, sizeof(nan));
    else
        memcpy(element, &value, 10);
}

static long double random_value(void)
{
    static const long double special[] = {0.0L, -0.0L, 1.0L, -2.5L, HUGE_VALL, -HUGE_VALL, NAN, 3.0L};
    return special[random_below(8)];
}

/* Random elements, with garbage where C pads them. */
static void put_random(rondo_datatype_t type, void *element)
{
    for (int i = 0; i < ELEMENT; i++)
        ((unsigned char *) element)[i] = (unsigned char) random_below(256);
    long double value = random_value();
    int index = (int) random_below(3), whole = (int) random_below(5) - 2;
    float _Complex complex_float = (float) value + (float) random_below(9) * I;
    double _Complex complex_double = (double) random_below(100) / 7 + (double) value * I;
    switch (type) {
    case RONDO_COMPLEX_FLOAT:
        memcpy(element, &complex_float, sizeof(complex_float));
        break;
    case RONDO_COMPLEX_DOUBLE:
        memcpy(element, &complex_double, sizeof(complex_double));
        break;
    case RONDO_LONG_DOUBLE:
        value = random_below(2) ? value : (long double) random_below(1000000) / 7.0L;
        memcpy(element, &value, 10);
        break;
#define PUT(TYPE, name, number)                                                                                                \
    case TYPE: {                                                                                                               \
        name *pair = element;                                                                                                  \
        pair->value = number;                                                                                                  \
        pair->index = index;                                                                                                   \
        break;                                                                                                                 \
    }
        PUT(RONDO_FLOAT_INT, float_int, (float) value)
        PUT(RONDO_DOUBLE_INT, double_int, (double) value)
        PUT(RONDO_LONG_INT, long_int, whole)
        PUT(RONDO_2INT, int_int, whole)
        PUT(RONDO_SHORT_INT, short_int, (short) whole)
        PUT(RONDO_LONG_DOUBLE_INT, long_double_int, value)
    default:
        fail();
    }
}

static double one_nan(double value)
{
    const uint64_t bits = UINT64_C(0x7ff8) << 48;
    double nan;
    memcpy(&nan, &bits, 8);
    return isnan(value) ? nan : value;
}
static float one_nan_float(float value)
{
    const uint32_t bits = 0x7fc00000;
    float nan;
    memcpy(&nan, &bits, 4);
    return isnan(value) ? nan : value;
}

/* Of two values, the one that an operator of pairs or order keeps: 1 the first, -1 the second, 0 either. */
static int better(long double a, long double b, int least)
{
    if (isnan(a) || isnan(b))
        return !!isnan(a) - !!isnan(b);
    return a == b ? 0 : (a < b) == least ? 1 : -1;
}
static long double ordered(long double a, long double b, int least)
{
    int which = better(a, b, least);
    if (which == 0 && a == 0)
        return (!!signbit(a) == least) ? a : b;
    return which >= 0 ? a : b;
}

static long double combine_numbers(rondo_op_t op, long double a, long double b)
{
    switch (op) {
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
    case RONDO_MAX:
        return ordered(a, b, op == RONDO_MIN);
    case RONDO_LAND:
        return a != 0 && b != 0;
    case RONDO_LOR:
        return a != 0 || b != 0;
    case RONDO_LXOR:
        return (a != 0) != (b != 0);
    default:
        return a + b;
    }
}

static void combine(rondo_datatype_t type, rondo_op_t op, void *left, const void *right)
{
    const int least = op == RONDO_MINLOC;
    switch (type) {
    case RONDO_COMPLEX_FLOAT: {
        float *a = left, product[2];
        const float *b = right;
        product[0] = one_nan_float(a[0] * b[0] - a[1] * b[1]);
        product[1] = one_nan_float(a[0] * b[1] + a[1] * b[0]);
        memcpy(a, product, sizeof(product));
        break;
    }
    case RONDO_COMPLEX_DOUBLE: {
        double *a = left, product[2];
        const double *b = right;
        product[0] = one_nan(a[0] * b[0] - a[1] * b[1]);
        product[1] = one_nan(a[0] * b[1] + a[1] * b[0]);
        memcpy(a, product, sizeof(product));
        break;
    }
    case RONDO_LONG_DOUBLE: {
        long double a, b;
        memcpy(&a, left, 16);
        memcpy(&b, right, 16);
        put_long_double(combine_numbers(op, a, b), left);
        break;
    }
#define PAIR(TYPE, name, number)                                                                                               \
    case TYPE: {                                                                                                               \
        name a, b, result;                                                                                                     \
        memcpy(&a, left, sizeof(a));                                                                                           \
        memcpy(&b, right, sizeof(b));                                                                                          \
        int which = better((long double) a.value, (long double) b.value, least);                                               \
        int first = which != 0 ? which > 0 : a.index <= b.index;                                                               \
        memset(&result, 0, sizeof(result));                                                                                    \
        result.value = number(first ? a.value : b.value);                                                                      \
        if (which == 0 && a.index == b.index)                                                                                  \
            result.value = (__typeof__(result.value)) number(                                                                  \
                (__typeof__(result.value)) ordered((long double) a.value, (long double) b.value, least));                      \
        result.index = first ? a.index : b.index;                                                                              \
        memcpy(left, &result, sizeof(result));                                                                                 \
        break;                                                                                                                 \
    }
        PAIR(RONDO_FLOAT_INT, float_int, one_nan_float)
        PAIR(RONDO_DOUBLE_INT, double_int, one_nan)
        PAIR(RONDO_LONG_INT, long_int, )
        PAIR(RONDO_2INT, int_int, )
        PAIR(RONDO_SHORT_INT, short_int, )
    case RONDO_LONG_DOUBLE_INT: {
        long_double_int a, b;
        memcpy(&a, left, sizeof(a));
        memcpy(&b, right, sizeof(b));
        int which = better(a.value, b.value, least), first = which != 0 ? which > 0 : a.index <= b.index;
        long double value = which == 0 && a.index == b.index ? ordered(a.value, b.value, least) : first ? a.value : b.value;
        int index = first ? a.index : b.index;
        memset(left, 0, sizeof(a));
        put_long_double(value, left);
        memcpy((char *) left + offsetof(long_double_int, index), &index, sizeof(index));
        break;
    }
    default:
        fail();
    }
}

/* ---- tests ---- */

static _Alignas(64) char memory[SOURCES][2 * CANARY + COUNT * ELEMENT], results[DESTINATIONS][2 * CANARY + COUNT * ELEMENT];

/* One call; in_place: the source whose place destination 0 takes, or -1. by_user: the reference is the operator. */
static void check(size_t t, rondo_op_t op, const struct rondo_user_operator *user, int sources, int destinations, int in_place,
                  int average)
{
    const size_t bytes = user != NULL ? user->bytes : types[t].bytes, alignment = user != NULL ? 1 : types[t].alignment;
    const size_t count = 1 + random_below(COUNT * ELEMENT / 64);
    const void *src[SOURCES];
    void *dst[DESTINATIONS];
    char *expected = malloc(count * bytes), *other = malloc(bytes);
    for (int s = 0; s < sources; s++) {
        char *to = memory[s] + CANARY + alignment * random_below(3);
        for (size_t i = 0; i < count; i++) {
            _Alignas(16) char element[ELEMENT];
            put_random(user != NULL ? RONDO_2INT : types[t].type, element);
            memcpy(to + i * bytes, element, bytes);
        }
        src[s] = to;
    }
    for (size_t i = 0; i < count; i++) {
        _Alignas(16) char left[ELEMENT];
        memcpy(left, (const char *) src[0] + i * bytes, bytes);
        for (int s = 1; s < sources; s++) {
            _Alignas(16) char right[ELEMENT];
            memcpy(right, (const char *) src[s] + i * bytes, bytes);
            if (user == NULL) {
                combine(types[t].type, op, left, right);
            } else {
                user->function(left, right, 1, user->type, NULL);
                memcpy(left, right, bytes);
            }
        }
        if (average > 0) {
            long double sum;
            memcpy(&sum, left, 16);
            put_long_double(sum / (long double) average, left);
        }
        memcpy(expected + i * bytes, left, bytes);
    }
    for (int d = 0; d < destinations; d++) {
        memset(results[d], 0xa5, sizeof(results[d]));
        dst[d] = results[d] + CANARY + alignment * random_below(3);
    }
    if (in_place >= 0)
        dst[0] = (void *) (uintptr_t) src[in_place];
    rondo_reduce_elements(&(struct rondo_reduction){.dst = dst,
                                                    .src = src,
                                                    .destinations = destinations,
                                                    .sources = sources,
                                                    .count = count,
                                                    .type = user != NULL ? RONDO_UINT8 : types[t].type,
                                                    .op = op,
                                                    .user = user,
                                                    .average = average,
                                                    .streaming = (int) random_below(2)});
    for (int d = 0; d < destinations; d++) {
        const char *got = dst[d];
        for (size_t i = 0; i < count * bytes; i++)
            if (got[i] != expected[i])
                fail_msg(
                    "type %d op %d, %d sources, %d destinations, in place %d, average %d: byte %zu of element %zu of %zu at "
                    "%p is %#x, not %#x",
                    user != NULL ? -1 : (int) types[t].type, op, sources, destinations, in_place, average, i % bytes, i / bytes,
                    count, dst[d], (unsigned char) got[i], (unsigned char) expected[i]);
        if (d > 0 || in_place < 0)
            for (int c = 0; c < CANARY - 3 * 16; c++) {
                assert_int_equal((unsigned char) got[-1 - c], 0xa5);
                assert_int_equal((unsigned char) got[count * bytes + (size_t) c], 0xa5);
            }
    }
    free(expected);
    free(other);
}

static void every_type(void **state)
{
    (void) state;
    for (int k = 0; rondo_reduce_kernels_at(k); k++) {
        rondo_reduce_force(rondo_reduce_kernels_at(k));
        for (size_t t = 0; t < TYPES; t++)
            for (int op = 0; op < RONDO_OP_COUNT; op++) {
                if (!exists(types[t].type, (rondo_op_t) op))
                    continue;
                assert_true(op == RONDO_AVG || rondo_reduce_kernels_at(k)->reduce[types[t].type][op] != NULL);
                for (int round = 0; round < 40; round++) {
                    const int sources = 2 + (int) random_below(SOURCES - 1);
                    check(t, (rondo_op_t) op, NULL, sources, 1 + (int) random_below(DESTINATIONS),
                          random_below(2) ? (int) random_below((uint32_t) sources) : -1,
                          op == RONDO_AVG ? 1 + (int) random_below(7) : 0);
                }
            }
    }
    rondo_reduce_force(NULL);
}

/* Concatenation of few digits: the order of operands shows. */
static void concatenate(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument)
{
    size_t bytes = 0;
    (void) argument;
    assert_int_equal(rondo_datatype_size(type, &bytes), RONDO_SUCCESS);
    assert_true(bytes % 8 != 0 || ((uintptr_t) in % 8 == 0 && (uintptr_t) inout % 8 == 0));
    for (size_t i = 0; i < count; i++) {
        const unsigned char *a = (const unsigned char *) in + i * bytes;
        unsigned char *b = (unsigned char *) inout + i * bytes;
        unsigned char joined[ELEMENT];
        for (size_t k = 0; k < bytes; k++) /* a matrix of 1 and a: (1 a)(1 b) = (1 a + b) does not tell; so a * 3 + b */
            joined[k] = (unsigned char) (k % 2 == 0 ? a[k] * b[k] : a[k] * b[k - 1] + b[k]);
        memcpy(b, joined, bytes);
    }
}

static void operators_of_the_user(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 7, 8};
    (void) state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct rondo_user_operator user = {.function = concatenate, .bytes = sizes[s]};
        assert_int_equal(rondo_type_create(sizes[s], &user.type), RONDO_SUCCESS);
        for (int round = 0; round < 200; round++) {
            const int sources = 1 + (int) random_below(SOURCES);
            check(0, RONDO_SUM, &user, sources, 1 + (int) random_below(DESTINATIONS),
                  random_below(2) ? (int) random_below((uint32_t) sources) : -1, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type), cmocka_unit_test(operators_of_the_user)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
