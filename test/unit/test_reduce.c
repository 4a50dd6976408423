/*
 * rondo_reduce_elements and the element types against a reference that is written here from the formats' definitions: every
 * type, operator, number of sources and destinations, with odd counts and offsets, in place, with stores past the cache, by
 * every set of kernels that this machine runs.
 */
#include "device/reduce/reduce.h"
#include "device/reduce/reduce_kernels.h"
#include "device/reduce/operators.h"
#include "device/move/store_policy.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/* ---- reference ---- */

enum { MAX_SOURCES = 9, MAX_DESTINATIONS = 4, CANARY = 64 };

/* A small float: the widths of its fields, the encodings of its largest finite value and of NaN, and its conversion. */
struct format {
    rondo_datatype_t type;
    int width, mantissa, bias;
    unsigned largest, beyond, nan; /* beyond: the result of overflow */
    float (*to_float)(unsigned);
    unsigned (*from_float)(float);
    double *values; /* of the encodings 0 to largest, and of the next one if the format continued */
};

#define ADAPT(name, type)                                                                                                      \
    static float name##_to(unsigned code)                                                                                      \
    {                                                                                                                          \
        return rondo_##name##_to_float((type) code);                                                                           \
    }                                                                                                                          \
    static unsigned name##_from(float value)                                                                                   \
    {                                                                                                                          \
        return rondo_##name##_from_float(value);                                                                               \
    }
RONDO_CONVERTED_TYPES(ADAPT)

static struct format formats[] = {
    {RONDO_FLOAT16, 16, 10, 15, 0x7bff, 0x7c00, 0x7e00, float16_to, float16_from, NULL},
    {RONDO_BFLOAT16, 16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, bfloat16_to, bfloat16_from, NULL},
    {RONDO_FLOAT8E4M3, 8, 3, 7, 0x7e, 0x7f, 0x7f, float8e4m3_to, float8e4m3_from, NULL},
    {RONDO_FLOAT8E5M2, 8, 2, 15, 0x7b, 0x7c, 0x7e, float8e5m2_to, float8e5m2_from, NULL},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* Of types that are one number; test_host_operators.c has the others, which have 0 here. */
static const size_t sizes[RONDO_DATATYPE_COUNT] = {
    [RONDO_INT8] = 1,   [RONDO_UINT8] = 1,  [RONDO_INT16] = 2,      [RONDO_UINT16] = 2,    [RONDO_INT32] = 4,
    [RONDO_UINT32] = 4, [RONDO_INT64] = 8,  [RONDO_UINT64] = 8,     [RONDO_FLOAT16] = 2,   [RONDO_BFLOAT16] = 2,
    [RONDO_FLOAT] = 4,  [RONDO_DOUBLE] = 8, [RONDO_FLOAT8E4M3] = 1, [RONDO_FLOAT8E5M2] = 1};

static struct format *format_of(rondo_datatype_t type)
{
    for (int f = 0; f < FORMATS; f++) {
        if (formats[f].type == type)
            return &formats[f];
    }
    return NULL;
}

static int is_float(rondo_datatype_t type)
{
    return type == RONDO_FLOAT || type == RONDO_DOUBLE || format_of(type);
}

static double decode_finite(const struct format *format, unsigned code)
{
    int exponent = (int) (code >> format->mantissa), fraction = (int) (code & ((1u << format->mantissa) - 1));
    if (exponent == 0)
        return ldexp(fraction, 1 - format->bias - format->mantissa);
    return ldexp(fraction + (1 << format->mantissa), exponent - format->bias - format->mantissa);
}

static double decode(const struct format *format, unsigned code)
{
    unsigned sign = code >> (format->width - 1), magnitude = code & ((1u << (format->width - 1)) - 1);
    double value = magnitude <= format->largest                                   ? decode_finite(format, magnitude)
                   : magnitude == format->beyond && format->beyond != format->nan ? HUGE_VAL
                                                                                  : NAN;
    return sign ? -value : value;
}

static unsigned encode(const struct format *format, double value)
{
    if (isnan(value))
        return format->nan;
    unsigned sign = signbit(value) ? 1u << (format->width - 1) : 0, low = 0, high = format->largest + 1;
    double magnitude = fabs(value);
    if (magnitude >= format->values[high])
        return sign | format->beyond;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (format->values[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double tie = (format->values[low] + format->values[high]) / 2;
    unsigned up = magnitude > tie || (magnitude == tie && low % 2 == 1);
    return sign | (low + up > format->largest ? format->beyond : low + up);
}

static int make_formats(void **state)
{
    (void) state;
    for (int f = 0; f < FORMATS; f++) {
        formats[f].values = malloc((formats[f].largest + 2) * sizeof(double));
        if (!formats[f].values)
            return -1;
        for (unsigned code = 0; code <= formats[f].largest + 1; code++)
            formats[f].values[code] = decode_finite(&formats[f], code);
    }
    return 0;
}

static int free_formats(void **state)
{
    (void) state;
    for (int f = 0; f < FORMATS; f++)
        free(formats[f].values);
    return 0;
}

static uint64_t integer_at(rondo_datatype_t type, const void *element)
{
    switch (type) {
    case RONDO_INT8:
        return (uint64_t) * (const int8_t *) element;
    case RONDO_UINT8:
        return *(const uint8_t *) element;
    case RONDO_INT16:
        return (uint64_t) * (const int16_t *) element;
    case RONDO_UINT16:
        return *(const uint16_t *) element;
    case RONDO_INT32:
        return (uint64_t) * (const int32_t *) element;
    case RONDO_UINT32:
        return *(const uint32_t *) element;
    default:
        return *(const uint64_t *) element;
    }
}

static double float_at(rondo_datatype_t type, const void *element)
{
    const struct format *format = format_of(type);
    if (format)
        return decode(format, format->width == 8 ? *(const uint8_t *) element : *(const uint16_t *) element);
    return type == RONDO_FLOAT ? (double) *(const float *) element : *(const double *) element;
}

static void put_float(rondo_datatype_t type, void *element, double value)
{
    const struct format *format = format_of(type);
    const uint32_t float_nan = 0x7fc00000;
    const uint64_t double_nan = UINT64_C(0x7ff8) << 48;
    float single = (float) value;
    uint16_t code = (uint16_t) (format ? encode(format, value) : 0);
    if (format)
        memcpy(element, &code, sizes[type]); /* little endian */
    else if (type == RONDO_FLOAT)
        memcpy(element, isnan(value) ? (const void *) &float_nan : &single, sizeof single);
    else
        memcpy(element, isnan(value) ? (const void *) &double_nan : &value, sizeof value);
}

static int logical(rondo_op_t op, int a, int b)
{
    return op == RONDO_LAND ? a && b : op == RONDO_LOR ? a || b : a != b;
}

static uint64_t combine_integers(rondo_op_t op, uint64_t a, uint64_t b, int is_signed)
{
    int less = is_signed ? (int64_t) a < (int64_t) b : a < b;
    switch (op) {
    case RONDO_SUM:
    case RONDO_AVG:
        return a + b;
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
        return less ? a : b;
    case RONDO_MAX:
        return less ? b : a;
    case RONDO_BAND:
        return a & b;
    case RONDO_BOR:
        return a | b;
    case RONDO_BXOR:
        return a ^ b;
    default:
        return (uint64_t) logical(op, a != 0, b != 0);
    }
}

static double combine_floats(rondo_op_t op, double a, double b)
{
    switch (op) {
    case RONDO_SUM:
    case RONDO_AVG:
        return a + b;
    case RONDO_PROD:
        return a * b;
    case RONDO_MIN:
    case RONDO_MAX:
        if (isnan(a) || isnan(b))
            return NAN;
        if (a == b)
            return (op == RONDO_MIN) == !!signbit(a) ? a : b;
        return (op == RONDO_MIN) == (a < b) ? a : b;
    default:
        return logical(op, a != 0, b != 0);
    }
}

/* Computes one element of the result. Doubles hold sums, products and quotients of floats so exactly that the second rounding
 * changes nothing. */
static void reduce_element(void *result, const void *const *src, int sources, size_t i, rondo_datatype_t type, rondo_op_t op,
                           int average)
{
    size_t size = sizes[type];
    if (sources == 1 && average <= 0) {
        memcpy(result, (const char *) src[0] + i * size, size);
    } else if (is_float(type)) {
        double value = float_at(type, (const char *) src[0] + i * size);
        for (int s = 1; s < sources; s++) {
            value = combine_floats(op, value, float_at(type, (const char *) src[s] + i * size));
            value = type == RONDO_DOUBLE ? value : (double) (float) value;
        }
        if (average > 0)
            value = type == RONDO_DOUBLE ? value / average : (double) (float) (value / average);
        put_float(type, result, value);
    } else {
        int is_signed = type == RONDO_INT8 || type == RONDO_INT16 || type == RONDO_INT32 || type == RONDO_INT64;
        uint64_t value = integer_at(type, (const char *) src[0] + i * size);
        for (int s = 1; s < sources; s++)
            value = combine_integers(op, value, integer_at(type, (const char *) src[s] + i * size), is_signed);
        memcpy(result, &value, size);
        if (average > 0) {
            value = integer_at(type, result);
            value = is_signed ? (uint64_t) ((int64_t) value / average) : value / (uint64_t) average;
            memcpy(result, &value, size);
        }
    }
}

/* ---- data ---- */

static uint64_t random_state = 1;

static uint64_t random_bits(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 33 ^ random_state << 21;
}

static size_t random_below(size_t bound)
{
    return (size_t) (random_bits() >> 8) % bound;
}

/* Stores any bits, special floats, or modest values, so that reductions of many sources meet every case. */
static void put_random(rondo_datatype_t type, void *element)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, NAN, 3e-45, -6e-8, 448.0, 65504.0, 3e38};
    uint64_t bits = random_bits();
    size_t kind = random_below(8);
    memcpy(element, &bits, sizes[type]);
    if (kind < 2 && is_float(type))
        put_float(type, element, special[random_below(sizeof special / sizeof *special)]);
    else if (kind < 6 && is_float(type))
        put_float(type, element, ((double) random_below(4096) - 2048) / 64);
    else if (kind < 2)
        memset(element, 0, sizes[type]);
}

/* One reduction: the caller sets what it is, make_data sets its sources and the expected result. */
struct data {
    rondo_datatype_t type;
    rondo_op_t op;
    int sources, average;
    size_t count;
    void *src[MAX_SOURCES], *memory[MAX_SOURCES];
    char *expected;
};

/* The sources end where their allocation ends, so that AddressSanitizer detects reads beyond. */
static void make_data(struct data *data)
{
    size_t size = sizes[data->type], count = data->count;
    for (int s = 0; s < data->sources; s++) {
        size_t offset = random_below(70) * size;
        data->memory[s] = malloc(offset + count * size);
        assert_non_null(data->memory[s]);
        data->src[s] = (char *) data->memory[s] + offset;
        for (size_t i = 0; i < count; i++)
            put_random(data->type, (char *) data->src[s] + i * size);
    }
    data->expected = malloc(count * size);
    assert_non_null(data->expected);
    for (size_t i = 0; i < count; i++)
        reduce_element(data->expected + i * size, (const void *const *) data->src, data->sources, i, data->type, data->op,
                       data->average);
}

static void free_data(struct data *data)
{
    for (int s = 0; s < data->sources; s++)
        free(data->memory[s]);
    free(data->expected);
}

/* Checks one call. in_place: the source whose place destination in_place_at takes; -1: none. */
static void check(const struct data *data, int destinations, int streaming, int in_place, int in_place_at, const char *kernels)
{
    size_t size = sizes[data->type], bytes = data->count * size;
    void *dst[MAX_DESTINATIONS] = {NULL};
    char *memory[MAX_DESTINATIONS];
    const void *src[MAX_SOURCES] = {NULL};
    for (int s = 0; s < data->sources; s++)
        src[s] = data->src[s];
    for (int d = 0; d < destinations; d++) {
        size_t offset = CANARY + random_below(70) * size;
        memory[d] = malloc(offset + bytes + CANARY);
        assert_non_null(memory[d]);
        memset(memory[d], 0xa5, offset + bytes + CANARY);
        dst[d] = memory[d] + offset;
    }
    if (in_place >= 0) {
        memcpy(dst[in_place_at], src[in_place], bytes);
        src[in_place] = dst[in_place_at];
    }
    rondo_reduce_elements(&(struct rondo_reduction){.dst = dst,
                                                    .src = src,
                                                    .destinations = destinations,
                                                    .sources = data->sources,
                                                    .count = data->count,
                                                    .type = data->type,
                                                    .op = data->op,
                                                    .average = data->average,
                                                    .streaming = streaming});
    for (int d = 0; d < destinations; d++) {
        char *result = dst[d];
        for (size_t i = 0; i < bytes; i++) {
            if (result[i] != data->expected[i])
                fail_msg("%s: type %d op %d, %d sources, %d destinations, %zu elements, average %d, streaming %d, source %d "
                         "in place at %d: element %zu of destination %d differs",
                         kernels, data->type, data->op, data->sources, destinations, data->count, data->average, streaming,
                         in_place, in_place_at, i / size, d);
        }
        for (const char *c = memory[d]; c < result; c++)
            assert_int_equal((unsigned char) *c, 0xa5);
        for (int c = 0; c < CANARY; c++)
            assert_int_equal((unsigned char) result[bytes + (size_t) c], 0xa5);
        free(memory[d]);
    }
}

static int exists(rondo_datatype_t type, rondo_op_t op)
{
    if (sizes[type] == 0 || op == RONDO_MINLOC || op == RONDO_MAXLOC)
        return 0;
    return !is_float(type) || (op != RONDO_BAND && op != RONDO_BOR && op != RONDO_BXOR);
}

/* ---- tests ---- */

static void test_decodes_every_encoding(void **state)
{
    (void) state;
    for (int f = 0; f < FORMATS; f++) {
        for (unsigned code = 0; code < 1u << formats[f].width; code++) {
            double expected = decode(&formats[f], code), value = (double) formats[f].to_float(code);
            if (isnan(expected)) {
                assert_true(isnan(value));
                assert_int_equal(formats[f].from_float((float) value), formats[f].nan);
            } else {
                assert_true(value == expected && signbit(value) == signbit(expected));
                assert_int_equal(formats[f].from_float((float) value), code);
            }
        }
    }
}

/* Floats at and next to every value and every tie of a format, special floats, and a sweep through all exponents. */
static size_t floats_to_encode(const struct format *format, float *values, size_t room)
{
    static const uint32_t special[] = {0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, 0x7f7fffff, 1, 0x007fffff, 0x00800000};
    size_t count = 0;
    for (unsigned code = 0; code <= format->largest; code++) {
        float value = (float) format->values[code];
        float tie = (float) ((format->values[code] + format->values[code + 1]) / 2);
        float near[] = {value, nextafterf(value, INFINITY), tie, nextafterf(tie, 0), nextafterf(tie, INFINITY)};
        for (size_t i = 0; i < sizeof near / sizeof *near; i++)
            values[count++] = near[i];
    }
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        values[count++] = rondo_float_of_bits(special[i]);
    for (uint32_t bits = 0; bits < 0x7f800000; bits += 30011)
        values[count++] = rondo_float_of_bits(bits);
    for (size_t i = 0, positive = count; i < positive; i++)
        values[count++] = rondo_float_of_bits(rondo_float_bits(values[i]) ^ UINT32_C(0x80000000));
    assert_true(count <= room);
    return count;
}

static void test_encodes_to_nearest_even(void **state)
{
    (void) state;
    enum { ROOM = 600000 };
    float *values = malloc(ROOM * sizeof *values);
    assert_non_null(values);
    for (int f = 0; f < FORMATS; f++) {
        size_t count = floats_to_encode(&formats[f], values, ROOM);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(formats[f].from_float(values[i]), encode(&formats[f], (double) values[i]));
    }
    free(values);
}

/* The vectorized conversions give the same results. They may assume that a NaN to be narrowed is the canonical one. */
static void test_kernels_convert_alike(void **state)
{
    (void) state;
    enum { ROOM = 600000 };
    float *values = malloc(ROOM * sizeof *values), *wide = malloc(65536 * sizeof *wide);
    uint16_t *narrow = malloc(ROOM * sizeof *narrow);
    assert_true(values && wide && narrow);
    for (int f = 0; f < FORMATS; f++) {
        size_t count = floats_to_encode(&formats[f], values, ROOM), codes = (size_t) 1 << formats[f].width;
        for (size_t i = 0; i < count; i++)
            values[i] = rondo_canonical_float(values[i]);
        for (int k = 0; rondo_reduce_kernels_at(k); k++) {
            const struct rondo_reduce_kernels *kernels = rondo_reduce_kernels_at(k);
            kernels->narrow[formats[f].type](narrow, values, count);
            for (size_t i = 0; i < count; i++) {
                unsigned code = formats[f].width == 8 ? ((uint8_t *) narrow)[i] : narrow[i];
                assert_int_equal(code, encode(&formats[f], (double) values[i]));
            }
            for (size_t code = 0; code < codes; code++) {
                if (formats[f].width == 8)
                    ((uint8_t *) narrow)[code] = (uint8_t) code;
                else
                    narrow[code] = (uint16_t) code;
            }
            kernels->widen[formats[f].type](wide, narrow, codes);
            for (unsigned code = 0; code < codes; code++) {
                float expected = (float) decode(&formats[f], code);
                assert_true(isnan(expected) ? isnan(wide[code]) : rondo_float_bits(expected) == rondo_float_bits(wide[code]));
            }
        }
    }
    free(values);
    free(wide);
    free(narrow);
}

static void test_reduce(void **state)
{
    (void) state;
    static const size_t counts[] = {1, 5, 77, 1031, 4211};
    for (int t = 0; t < RONDO_DATATYPE_COUNT; t++) {
        for (int o = 0; o < RONDO_OP_COUNT; o++) {
            if (!exists((rondo_datatype_t) t, (rondo_op_t) o))
                continue;
            for (int sources = 1; sources <= MAX_SOURCES; sources++) {
                size_t count = counts[(size_t) (t + o + sources) % 5];
                int average = o == RONDO_AVG ? (sources % 3 == 0 ? 0 : sources % 3 == 1 ? sources : 200) : 0;
                struct data data = {
                    .type = (rondo_datatype_t) t, .op = (rondo_op_t) o, .sources = sources, .average = average, .count = count};
                make_data(&data);
                for (int k = 0; rondo_reduce_kernels_at(k); k++) {
                    rondo_reduce_force(rondo_reduce_kernels_at(k));
                    for (int destinations = 1; destinations <= MAX_DESTINATIONS; destinations++) {
                        int in_place = (int) random_below((size_t) sources + 1) - 1;
                        check(&data, destinations, 1, in_place, (int) random_below((size_t) destinations),
                              rondo_reduce_kernels_at(k)->name);
                    }
                }
                free_data(&data);
            }
        }
    }
    rondo_reduce_force(NULL);
}

/* Sizes that are stored past the cache, and the shapes that have loops of their own. */
static void test_reduce_large(void **state)
{
    (void) state;
    static const rondo_op_t ops[] = {RONDO_SUM, RONDO_AVG, RONDO_MAX};
    for (int t = 0; t < RONDO_DATATYPE_COUNT; t++) {
        for (size_t o = 0; o < 3 && sizes[t] != 0; o++) {
            for (int sources = 1; sources <= 3; sources++) {
                size_t count = 16384 / sizes[t] + random_below(5000);
                int average = ops[o] == RONDO_AVG && sources != 2 ? 3 : 0;
                struct data data = {
                    .type = (rondo_datatype_t) t, .op = ops[o], .sources = sources, .average = average, .count = count};
                make_data(&data);
                for (int k = 0; rondo_reduce_kernels_at(k); k++) {
                    rondo_reduce_force(rondo_reduce_kernels_at(k));
                    for (int destinations = 1; destinations <= 3; destinations++) {
                        for (int streaming = 0; streaming <= 1; streaming++) {
                            const char *name = rondo_reduce_kernels_at(k)->name;
                            check(&data, destinations, streaming, -1, 0, name);
                            check(&data, destinations, streaming, (int) random_below((size_t) sources),
                                  (int) random_below((size_t) destinations), name);
                        }
                    }
                }
                free_data(&data);
            }
        }
    }
    rondo_reduce_force(NULL);
}

/* ---- to other cores ---- */

/* local: whether there is a local destination; copies: by rondo_copy_out. */
static void check_out(const struct data *data, int local, int remotes, int past, int copies)
{
    const size_t size = sizes[data->type], bytes = data->count * size;
    char *memory[MAX_DESTINATIONS];
    void *dst[MAX_DESTINATIONS];
    for (int d = 0; d <= remotes; d++) {
        const size_t offset = CANARY + random_below(70) * size;
        memory[d] = malloc(offset + bytes + CANARY);
        assert_non_null(memory[d]);
        memset(memory[d], 0xa5, offset + bytes + CANARY);
        dst[d] = memory[d] + offset;
    }
    if (copies)
        rondo_copy_out(dst + 1, remotes, local ? dst[0] : NULL, data->src[0], bytes, past);
    else
        rondo_reduce_out(&(struct rondo_reduction){.dst = dst + 1,
                                                   .src = (const void *const *) data->src,
                                                   .destinations = remotes,
                                                   .sources = data->sources,
                                                   .count = data->count,
                                                   .type = data->type,
                                                   .op = data->op,
                                                   .average = data->average},
                         local ? dst[0] : NULL, past);
    for (int d = 0; d <= remotes; d++) {
        const char *result = dst[d];
        for (const char *c = memory[d]; c < result; c++)
            assert_int_equal((unsigned char) *c, 0xa5);
        for (size_t i = 0; i < bytes + CANARY; i++)
            if (result[i] != (i < bytes && (d > 0 || local) ? data->expected[i] : (char) 0xa5))
                fail_msg("type %d op %d, %d sources, %d remotes, local %d, %zu elements, past %d: byte %zu of destination %d",
                         data->type, data->op, data->sources, remotes, local, data->count, past, i, d);
        free(memory[d]);
    }
}

static void test_reduce_out(void **state)
{
    (void) state;
    static const rondo_datatype_t types[] = {RONDO_UINT8, RONDO_FLOAT16, RONDO_FLOAT, RONDO_DOUBLE};
    static const size_t lengths[] = {1, 100, RONDO_STORE_POLICY_BYTES, 40000}; /* at least so many bytes */
    for (int k = 0; rondo_reduce_kernels_at(k); k++)
        for (int t = 0; t < 4; t++)
            for (int l = 0; l < 4; l++)
                for (int sources = 1; sources <= 3; sources++) {
                    const size_t count = (lengths[l] + sizes[types[t]] - 1) / sizes[types[t]] + random_below(9);
                    const int average = sources == 3 ? 3 : 0;
                    struct data data = {
                        .type = types[t], .op = RONDO_SUM, .sources = sources, .average = average, .count = count};
                    rondo_reduce_force(rondo_reduce_kernels_at(k));
                    make_data(&data);
                    for (int remotes = 1; remotes < MAX_DESTINATIONS; remotes++)
                        for (int past = 0; past <= 1; past++)
                            for (int copies = 0; copies <= (sources == 1); copies++)
                                check_out(&data, (int) random_below(2), remotes, past, copies);
                    free_data(&data);
                }
    rondo_reduce_force(NULL);
}

static uint64_t time_now;

static uint64_t clock_of_test(void)
{
    return time_now;
}

/* Returns how many of the copies of so many bytes go past the cache. Each copy takes so many nanoseconds, depending on its
 * way. */
static int count_past(struct rondo_store_policy *store_policy, int copies, size_t bytes, uint64_t through_ns, uint64_t past_ns)
{
    int count = 0;
    for (int i = 0; i < copies; i++) {
        const int past = rondo_store_policy_is_past(store_policy, bytes, clock_of_test);
        count += past;
        time_now += past ? past_ns : through_ns;
    }
    return count;
}

static void test_store_policy(void **state)
{
    (void) state;
    enum {
        TRIED = RONDO_STORE_POLICY_TRIES * RONDO_STORE_POLICY_WINDOW,
        SHORT = RONDO_STORE_POLICY_PERIOD(0),
        LONG = RONDO_STORE_POLICY_PERIOD(1)
    };
    const size_t bytes = RONDO_STORE_POLICY_BYTES;
    struct rondo_store_policy store_policy = {0};
    assert_int_equal(count_past(&store_policy, SHORT, bytes - 1, 100, 1), 0); /* too short */
    assert_int_equal(store_policy.copies, 0);

    /* Past the cache: not faster; not by enough; faster by enough; and at last both cores share a cache. */
    assert_int_equal(count_past(&store_policy, SHORT, bytes, 100, 100), TRIED);
    assert_int_equal(count_past(&store_policy, SHORT, bytes, 110, 100), TRIED);
    assert_int_equal(count_past(&store_policy, LONG, bytes, 125, 100), LONG - RONDO_STORE_POLICY_TRIAL + TRIED);
    assert_int_equal(count_past(&store_policy, LONG, bytes, 105, 100), LONG - RONDO_STORE_POLICY_TRIAL + TRIED);
    assert_int_equal(count_past(&store_policy, SHORT, bytes, 100, 101), TRIED);

    /* One window that is slow for another reason does not count. */
    for (int window = 0; window < RONDO_STORE_POLICY_WINDOWS; window++)
        for (int quick = 0; quick <= 1; quick++) {
            store_policy = (struct rondo_store_policy){0};
            count_past(&store_policy, window * RONDO_STORE_POLICY_WINDOW + 3, bytes, 100, quick ? 50 : 200);
            time_now += 1000000;
            count_past(&store_policy, RONDO_STORE_POLICY_TRIAL - window * RONDO_STORE_POLICY_WINDOW - 2, bytes, 100,
                       quick ? 50 : 200);
            assert_int_equal(store_policy.past, quick);
        }
}

/* Copies past the caches. A release store announces each, and another thread reads it as soon as it sees the announcement. */
enum { SHOWN_BYTES = RONDO_STORE_POLICY_BYTES, SHOWN_SLOTS = 4, SHOWN = 100000 };
static struct {
    _Alignas(64) uint64_t tail;
    _Alignas(64) uint64_t head;
    _Alignas(64) uint64_t slots[SHOWN_SLOTS][SHOWN_BYTES / 8];
    uint64_t stale;
} shown;

static void *look(void *unused)
{
    for (uint64_t i = 0; i < SHOWN; i++) {
        const uint64_t *slot = shown.slots[i % SHOWN_SLOTS];
        while (__atomic_load_n(&shown.tail, __ATOMIC_ACQUIRE) <= i)
            continue;
        for (int w = SHOWN_BYTES / 8; w-- > 0;) /* the last stored word is read first */
            shown.stale += slot[w] != i;
        __atomic_store_n(&shown.head, i + 1, __ATOMIC_RELEASE);
    }
    return unused;
}

/* Fails every time without the fence in rondo_reduce_out or in rondo_copy_out. */
static void test_shows_whole(void **state)
{
    (void) state;
    uint64_t data[SHOWN_BYTES / 8];
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
    for (uint64_t i = 0; i < SHOWN; i++) {
        void *remote = shown.slots[i % SHOWN_SLOTS];
        const void *source = data;
        for (int w = 0; w < SHOWN_BYTES / 8; w++)
            data[w] = i;
        while (i - __atomic_load_n(&shown.head, __ATOMIC_ACQUIRE) >= SHOWN_SLOTS)
            continue;
        if (i % 2 == 0)
            rondo_copy_out(&remote, 1, NULL, source, SHOWN_BYTES, 1);
        else
            rondo_reduce_out(&(struct rondo_reduction){.dst = &remote,
                                                       .src = &source,
                                                       .destinations = 1,
                                                       .sources = 1,
                                                       .count = SHOWN_BYTES / 8,
                                                       .type = RONDO_UINT64},
                             NULL, 1);
        __atomic_store_n(&shown.tail, i + 1, __ATOMIC_RELEASE);
    }
    pthread_join(thread, NULL);
    assert_int_equal(shown.stale, 0);
}

static void test_reduce_nothing(void **state)
{
    (void) state;
    char byte = 7;
    void *dst[] = {&byte, &byte};
    const void *src[] = {&byte, &byte};
    struct rondo_reduction nothing = {
        .dst = dst, .src = src, .destinations = 2, .sources = 2, .type = RONDO_UINT8, .streaming = 1};
    rondo_reduce_elements(&nothing);
    nothing = (struct rondo_reduction){.dst = dst, .src = src, .destinations = 1, .sources = 1, .type = RONDO_UINT8};
    rondo_reduce_elements(&nothing);
    assert_int_equal(byte, 7);
}

int main(void)
{
    for (int k = 0; rondo_reduce_kernels_at(k); k++)
        printf("kernels: %s\n", rondo_reduce_kernels_at(k)->name);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decodes_every_encoding),
        cmocka_unit_test(test_encodes_to_nearest_even),
        cmocka_unit_test(test_kernels_convert_alike),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_reduce_large),
        cmocka_unit_test(test_reduce_nothing),
        cmocka_unit_test(test_reduce_out),
        cmocka_unit_test(test_store_policy),
        cmocka_unit_test(test_shows_whole),
    };
    return cmocka_run_group_tests(tests, make_formats, free_formats);
}
