/*
 * The ZFP codec against libzfp 1.0, bit by bit in both directions, by every set of kernels that this machine runs: every rate,
 * counts that are not multiples of four, random numbers of many kinds, a network's gradients, subnormals; and values that
 * libzfp does not define: infinities and NaNs. With --speed it measures instead.
 */
#include "device/reduce/reduce_kernels.h"
#include "device/codec/zfp_kernels.h"
#include "device/codec/zfp_stream.h"
#include "device/codec/zfp_warp.h"
#include "examples/network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>
#include <zfp.h>

enum { VALUES = 4099, GUARD = 64 };

/* ---- libzfp ---- */

static zfp_field *field_of(void *values, size_t count, int is_double)
{
    return zfp_field_1d(values, is_double ? zfp_type_double : zfp_type_float, count);
}

static zfp_stream *stream_of(void *memory, size_t bytes, uint32_t rate, int is_double, bitstream **bits)
{
    zfp_stream *zfp = zfp_stream_open(NULL);
    *bits = stream_open(memory, bytes);
    zfp_stream_set_bit_stream(zfp, *bits);
    /* No block exceeds its rate: the minimum that zfp needs (9 and 12 bits) is below 4 * RONDO_ZFP_RATE_MIN. */
    double set = zfp_stream_set_rate(zfp, rate, is_double ? zfp_type_double : zfp_type_float, 1, zfp_false);
    if (set < rate || set > rate)
        fail_msg("zfp_stream_set_rate(%u) = %g", rate, set);
    return zfp;
}

static size_t their_encode(void *stream, size_t bytes, const void *values, size_t count, uint32_t rate, int is_double)
{
    bitstream *bits;
    zfp_stream *zfp = stream_of(stream, bytes, rate, is_double, &bits);
    zfp_field *field = field_of((void *) (uintptr_t) values, count, is_double);
    size_t written = zfp_compress(zfp, field);
    zfp_field_free(field);
    zfp_stream_close(zfp);
    stream_close(bits);
    return written;
}

static void their_decode(void *values, const void *stream, size_t bytes, size_t count, uint32_t rate, int is_double)
{
    bitstream *bits;
    zfp_stream *zfp = stream_of((void *) (uintptr_t) stream, bytes, rate, is_double, &bits);
    zfp_field *field = field_of(values, count, is_double);
    if (zfp_decompress(zfp, field) == 0)
        fail_msg("zfp_decompress");
    zfp_field_free(field);
    zfp_stream_close(zfp);
    stream_close(bits);
}

/* ---- comparing ---- */

struct arena {
    uint64_t theirs[VALUES + 64], ours[VALUES + 64];
    double values[VALUES], their_values[VALUES + GUARD], our_values[VALUES + GUARD];
};
static struct arena arena;

static void guarded(void *memory, size_t used, size_t all, const char *what)
{
    for (size_t i = used; i < all; i++)
        if (((unsigned char *) memory)[i] != 0xa5)
            fail_msg("%s: byte %zu behind %zu was written", what, i, used);
}

/* Encodes and also returns what a reader decodes: the same stream as arena.ours, the same values as arena.our_values. */
static void compare_rounded(size_t count, uint32_t rate, rondo_datatype_t type, const char *what)
{
    size_t element = type == RONDO_DOUBLE ? sizeof(double) : sizeof(float), bytes = rondo_zfp_bytes(count, rate);
    memset(&arena.theirs, 0xa5, sizeof(arena.theirs));
    memset(&arena.their_values, 0xa5, sizeof(arena.their_values));
    rondo_zfp_round(arena.theirs, arena.their_values, arena.values, count, rate, type);
    if (memcmp(arena.theirs, arena.ours, bytes) != 0)
        fail_msg("%s: %zu values at rate %u: rounding writes another stream", what, count, rate);
    for (size_t i = 0; i < count * element; i++)
        if (((char *) arena.their_values)[i] != ((char *) arena.our_values)[i])
            fail_msg("%s: %zu values of %zu bytes at rate %u: value %zu is rounded to what nobody reads", what, count, element,
                     rate, i / element);
    guarded(arena.theirs, bytes, sizeof(arena.theirs), what);
    guarded(arena.their_values, count * element, sizeof(arena.their_values), what);
}

/* Encodes arena.values both ways, decodes libzfp's stream both ways, and compares. */
static void compare(size_t count, uint32_t rate, int is_double, const char *what)
{
    rondo_datatype_t type = is_double ? RONDO_DOUBLE : RONDO_FLOAT;
    size_t element = is_double ? sizeof(double) : sizeof(float), bytes = rondo_zfp_bytes(count, rate);
    memset(&arena.theirs, 0xa5, sizeof(arena.theirs));
    memset(&arena.ours, 0xa5, sizeof(arena.ours));
    memset(&arena.their_values, 0xa5, sizeof(arena.their_values));
    memset(&arena.our_values, 0xa5, sizeof(arena.our_values));
    size_t written = their_encode(arena.theirs, sizeof(arena.theirs), arena.values, count, rate, is_double);
    rondo_zfp_encode(arena.ours, arena.values, count, rate, type);
    /* Rondo's stream ends with zeros up to a whole word of 64 bits, libzfp's up to a word of its build (Debian: 8 bits). */
    size_t word_bytes = stream_word_bits / 8, bits = (count + 3) / 4 * 4 * rate;
    if (written != (bits + stream_word_bits - 1) / stream_word_bits * word_bytes || written > bytes)
        fail_msg("%s: %zu values at rate %u: libzfp writes %zu bytes, Rondo %zu", what, count, rate, written, bytes);
    memset((char *) arena.theirs + written, 0, bytes - written);
    for (size_t i = 0; i < bytes / 8; i++)
        if (arena.theirs[i] != arena.ours[i])
            fail_msg("%s: %zu values of %zu bytes at rate %u: word %zu is %016llx, libzfp's %016llx", what, count, element,
                     rate, i, (unsigned long long) arena.ours[i], (unsigned long long) arena.theirs[i]);
    guarded(arena.ours, bytes, sizeof(arena.ours), what);
    their_decode(arena.their_values, arena.theirs, bytes, count, rate, is_double);
    rondo_zfp_decode(arena.our_values, arena.theirs, count, rate, type);
    for (size_t i = 0; i < count * element; i++)
        if (((char *) arena.their_values)[i] != ((char *) arena.our_values)[i])
            fail_msg("%s: %zu values of %zu bytes at rate %u: value %zu differs from libzfp's", what, count, element, rate,
                     i / element);
    guarded(arena.our_values, count * element, sizeof(arena.our_values), what);
    compare_rounded(count, rate, type, what);
}

/* ---- values ---- */

static uint64_t random_state = 88172645463325252u;
static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717u;
}
static double uniform(void)
{
    return (double) (random_bits() >> 11) / (double) ((uint64_t) 1 << 53);
}

static void set_value(size_t i, int is_double, double value)
{
    if (is_double)
        arena.values[i] = value;
    else
        ((float *) (void *) arena.values)[i] = (float) value;
}

/* Any bits except infinities and NaNs. */
static void set_any(size_t i, int is_double)
{
    uint64_t bits = random_bits();
    if (is_double) {
        arena.values[i] = rondo_double_of_bits(bits);
        if (!isfinite(arena.values[i]))
            arena.values[i] = 1;
    } else {
        float value = rondo_float_of_bits((uint32_t) bits);
        ((float *) (void *) arena.values)[i] = isfinite(value) ? value : 1;
    }
}

enum { ANY, UNIFORM, SMOOTH, SPARSE, WIDE, SUBNORMAL, TINY, LARGEST, CONSTANT, KINDS };
static const char *const kinds[KINDS] = {"any bits",   "uniform",         "smooth",  "sparse",  "many exponents",
                                         "subnormals", "small exponents", "largest", "constant"};

static void fill(int kind, size_t count, int is_double)
{
    double least = is_double ? 0x1p-1074 : 0x1p-149, largest = is_double ? 0x1.fffffffffffffp1023 : 0x1.fffffep127;
    double constant = uniform();
    for (size_t i = 0; i < count; i++) {
        double value = 2 * uniform() - 1;
        switch (kind) {
        case ANY:
            set_any(i, is_double);
            continue;
        case SMOOTH:
            value = sin((double) i / 40);
            break;
        case SPARSE:
            value = random_bits() % 7 == 0 ? value : 0;
            break;
        case WIDE:
            value = ldexp(value, (int) (random_bits() % 40) - 20);
            break;
        case SUBNORMAL:
            value = least * (double) (random_bits() % (random_bits() & 1 ? 5 : 1 << 21)) * (value < 0 ? -1 : 1);
            break;
        case TINY: /* around the value where libzfp's scale overflows, and around the one where its accuracy ends */
            value = ldexp(value, (is_double ? -1022 : -127) + (int) (random_bits() % (is_double ? 70 : 40)));
            break;
        case LARGEST:
            value = random_bits() & 1 ? largest : -largest * uniform();
            break;
        case CONSTANT:
            value = constant;
            break;
        default:
            break;
        }
        set_value(i, is_double, value);
    }
}

/* ---- tests ---- */

static void each_kernels(void (*test)(void))
{
    for (int i = 0; rondo_zfp_kernels_at(i) != NULL; i++) {
        rondo_zfp_force(rondo_zfp_kernels_at(i));
        test();
    }
    rondo_zfp_force(NULL);
}

static uint32_t most_rate(int is_double)
{
    return is_double ? RONDO_ZFP_RATE_DOUBLE : RONDO_ZFP_RATE_FLOAT;
}

static void all_rates(void)
{
    for (int is_double = 0; is_double < 2; is_double++)
        for (uint32_t rate = RONDO_ZFP_RATE_MIN; rate <= most_rate(is_double); rate++)
            for (int kind = 0; kind < KINDS; kind++) {
                size_t count = 512 + random_bits() % 512;
                fill(kind, count, is_double);
                compare(count, rate, is_double, kinds[kind]);
            }
}
static void test_rates(void **state)
{
    (void) state;
    each_kernels(all_rates);
}

static void all_counts(void)
{
    for (int is_double = 0; is_double < 2; is_double++)
        for (size_t count = 1; count < 200; count++) {
            uint32_t rate = RONDO_ZFP_RATE_MIN + (uint32_t) (random_bits() % (most_rate(is_double) - RONDO_ZFP_RATE_MIN + 1));
            fill(random_bits() & 1 ? ANY : UNIFORM, count, is_double);
            compare(count, rate, is_double, "counts");
        }
}
static void test_counts(void **state)
{
    (void) state;
    each_kernels(all_counts);
}

/* A network's gradients after some steps of training. */
static void compare_gradients(void)
{
    enum { SAMPLES = 64 };
    struct network network;
    int count, which[SAMPLES];
    struct digit *digits = digits_read("examples/data/digits.txt", &count);
    assert_non_null(digits);
    assert_true(network_create(&network, SAMPLES, 1));
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < SAMPLES; i++)
            which[i] = (step * SAMPLES + i) % count;
        network_forward(&network, digits, which, SAMPLES);
        network_backward(&network, digits, which, 1.0f / SAMPLES);
        for (int t = 0; t < NETWORK_TENSORS; t++) {
            network_gradient(&network, t);
            size_t values = (size_t) network.tensors[t].count;
            if (values > VALUES)
                values = VALUES;
            memcpy(arena.values, network.tensors[t].gradient, values * sizeof(float));
            for (uint32_t rate = RONDO_ZFP_RATE_MIN; rate <= RONDO_ZFP_RATE_FLOAT; rate += 1 + (uint32_t) step)
                compare(values, rate, 0, "gradients");
            memset(arena.values, 0, sizeof(arena.values));
            for (size_t i = 0; i < values; i++)
                arena.values[i] = (double) network.tensors[t].gradient[i];
            compare(values, 9 + (uint32_t) step, 1, "gradients");
        }
        network_update(&network, 0.05f, 0.9f);
    }
    network_destroy(&network);
    free(digits);
}
static void test_gradients(void **state)
{
    (void) state;
    each_kernels(compare_gradients);
}

/* Arbitrary bits decode to the same values, and without undefined behaviour: a stream may come from anywhere. Excepted are
 * blocks that begin with the zero bit, which libzfp reads as zeros whatever follows. */
static void decode_garbage(void)
{
    for (int is_double = 0; is_double < 2; is_double++)
        for (uint32_t rate = RONDO_ZFP_RATE_MIN; rate <= most_rate(is_double); rate++) {
            enum { COUNT = 256 };
            size_t bytes = rondo_zfp_bytes(COUNT, rate), element = is_double ? 8 : 4;
            for (size_t i = 0; i < bytes / 8; i++)
                arena.theirs[i] = random_bits();
            for (size_t b = 0; b < COUNT / 4; b++)
                arena.theirs[b * 4 * rate / 64] |= (uint64_t) 1 << b * 4 * rate % 64;
            their_decode(arena.their_values, arena.theirs, bytes, COUNT, rate, is_double);
            rondo_zfp_decode(arena.our_values, arena.theirs, COUNT, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
            assert_memory_equal(arena.our_values, arena.their_values, COUNT * element);
        }
}
static void test_garbage(void **state)
{
    (void) state;
    each_kernels(decode_garbage);
}

static double value_at(const void *values, size_t i, int is_double)
{
    return is_double ? ((const double *) values)[i] : (double) ((const float *) values)[i];
}

/* Infinities and NaNs are preserved; finite values in the same block become 0; other blocks are not affected. libzfp reads such
 * blocks as 0. */
static void not_finite(void)
{
    enum { COUNT = 250 };
    for (int is_double = 0; is_double < 2; is_double++)
        for (uint32_t rate = RONDO_ZFP_RATE_MIN; rate <= most_rate(is_double); rate++) {
            rondo_datatype_t type = is_double ? RONDO_DOUBLE : RONDO_FLOAT;
            fill(UNIFORM, COUNT, is_double);
            for (size_t i = 0; i < COUNT; i++)
                if (random_bits() % 8 == 0)
                    set_value(i, is_double, random_bits() & 1 ? (double) NAN : random_bits() & 1 ? HUGE_VAL : -HUGE_VAL);
            rondo_zfp_encode(arena.ours, arena.values, COUNT, rate, type);
            rondo_zfp_decode(arena.our_values, arena.ours, COUNT, rate, type);
            their_decode(arena.their_values, arena.ours, rondo_zfp_bytes(COUNT, rate), COUNT, rate, is_double);
            for (size_t i = 0; i < COUNT; i++) {
                double was = value_at(arena.values, i, is_double), is = value_at(arena.our_values, i, is_double);
                double libzfp = value_at(arena.their_values, i, is_double);
                size_t block = i / 4 * 4;
                int odd = 0;
                for (size_t k = block; k < block + 4 && k < COUNT; k++)
                    odd |= !isfinite(value_at(arena.values, k, is_double));
                int right = isnan(was)      ? isnan(is) != 0
                            : !odd          ? is >= libzfp && is <= libzfp
                            : isfinite(was) ? is >= 0 && is <= 0
                                            : is >= was && is <= was;
                if (!right || (odd && (libzfp < 0 || libzfp > 0)))
                    fail_msg("rate %u, value %zu: %g became %g, libzfp's %g", rate, i, was, is, libzfp);
            }
        }
}
static void test_not_finite(void **state)
{
    (void) state;
    each_kernels(not_finite);
}

/* ---- a GPU's warps, simulated by one thread: the same bits ---- */

static struct rondo_zfp_spread_tables tables;

#define DEFINE_WARPS(name, type)                                                                                               \
    static void encode_warps_##name(uint32_t *stream, const type *values, size_t count, uint32_t rate)                         \
    {                                                                                                                          \
        for (size_t at = 0; at < count; at += RONDO_ZFP_LANES * RONDO_ZFP_VALUES) {                                            \
            uint32_t stage[RONDO_ZFP_STAGE_##name], blocks = (uint32_t) rondo_zfp_blocks(count - at);                          \
            blocks = blocks < RONDO_ZFP_LANES ? blocks : RONDO_ZFP_LANES;                                                      \
            for (uint32_t lane = 0; lane < blocks; lane++)                                                                     \
                rondo_zfp_stage_##name(values + at + lane * RONDO_ZFP_VALUES, rate, tables.codes,                              \
                                       stage + lane * RONDO_ZFP_STRIDE_##name);                                                \
            for (uint32_t j = 0; j < rondo_zfp_stream_words(blocks, rate); j++)                                                \
                stream[at * rate / 32 + j] = rondo_zfp_stream_word(stage, RONDO_ZFP_STRIDE_##name, blocks, rate, j);           \
        }                                                                                                                      \
    }                                                                                                                          \
    static void decode_warps_##name(type *values, const uint32_t *stream, size_t count, uint32_t rate)                         \
    {                                                                                                                          \
        for (size_t at = 0; at < count; at += RONDO_ZFP_LANES * RONDO_ZFP_VALUES) {                                            \
            uint32_t stage[RONDO_ZFP_STAGE_##name] = {0}, blocks = (uint32_t) rondo_zfp_blocks(count - at);                    \
            blocks = blocks < RONDO_ZFP_LANES ? blocks : RONDO_ZFP_LANES;                                                      \
            memcpy(stage, stream + at * rate / 32, 4 * rondo_zfp_stream_words(blocks, rate));                                  \
            for (uint32_t lane = 0; lane < blocks; lane++)                                                                     \
                rondo_zfp_unstage_##name(stage, lane *RONDO_ZFP_VALUES *rate, rate, tables.planes,                             \
                                         values + at + lane * RONDO_ZFP_VALUES);                                               \
        }                                                                                                                      \
    }
DEFINE_WARPS(float, float)
DEFINE_WARPS(double, double)

static void test_warps(void **state)
{
    (void) state;
    tables = rondo_zfp_spread_out();
    for (int is_double = 0; is_double < 2; is_double++)
        for (uint32_t rate = RONDO_ZFP_RATE_MIN; rate <= most_rate(is_double); rate++)
            for (int kind = 0; kind <= KINDS; kind++) {
                size_t count = 4 * (1 + random_bits() % 200), bytes = rondo_zfp_bytes(count, rate);
                fill(kind % KINDS, count, is_double);
                for (size_t i = 0; kind == KINDS && i < count; i += 1 + random_bits() % 20)
                    set_value(i, is_double, i % 3 == 0 ? (double) NAN : i % 3 == 1 ? HUGE_VAL : -HUGE_VAL);
                rondo_zfp_encode(arena.theirs, arena.values, count, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
                rondo_zfp_decode(arena.their_values, arena.theirs, count, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
                uint32_t *stream = (uint32_t *) (void *) arena.ours;
                if (is_double) {
                    encode_warps_double(stream, arena.values, count, rate);
                    decode_warps_double(arena.our_values, stream, count, rate);
                } else {
                    encode_warps_float(stream, (const float *) (void *) arena.values, count, rate);
                    decode_warps_float((float *) (void *) arena.our_values, stream, count, rate);
                }
                assert_memory_equal(arena.ours, arena.theirs, bytes);
                assert_memory_equal(arena.our_values, arena.their_values, count * (is_double ? 8 : 4));
            }
}

/* ---- speed ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

enum way { ENCODE, DECODE, ROUND };

/* What is measured, and its buffers: count values, and their stream with 8 bytes more. */
struct coding {
    enum way way;
    int is_double;
    uint32_t rate;
    size_t count;
    void *values, *rounded, *stream;
};

/* Returns GB/s of uncompressed values, the best of several runs. theirs: libzfp instead of Rondo's kernels. */
static double speed_of(const struct coding *coding, int theirs)
{
    const enum way way = coding->way;
    const int is_double = coding->is_double;
    const uint32_t rate = coding->rate;
    const size_t count = coding->count;
    void *values = coding->values, *rounded = coding->rounded, *stream = coding->stream;
    size_t element = is_double ? 8 : 4, bytes = rondo_zfp_bytes(count, rate);
    double best = 1e9;
    for (int run = 0; run < 7; run++) {
        double start = now();
        if (theirs && way != DECODE)
            their_encode(stream, bytes + 8, values, count, rate, is_double);
        if (theirs && way != ENCODE)
            their_decode(rounded, stream, bytes, count, rate, is_double);
        if (!theirs && way == DECODE)
            rondo_zfp_decode(rounded, stream, count, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
        if (!theirs && way == ROUND)
            rondo_zfp_round(stream, rounded, values, count, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
        if (!theirs && way == ENCODE)
            rondo_zfp_encode(stream, values, count, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
        double took = now() - start;
        best = took < best ? took : best;
    }
    return (double) (count * element) / best / 1e9;
}

static int measure(void)
{
    enum { COUNT = 1 << 18 };
    static const char *const names[] = {"encode", "decode", "round"};
    double *values = malloc(COUNT * sizeof(double)), *rounded = malloc(COUNT * sizeof(double));
    double *stream = malloc((COUNT + 8) * sizeof(double));
    if (values == NULL || rounded == NULL || stream == NULL)
        return 1;
    printf("GB/s of uncompressed values, one core, %d values, uniform in [-1, 1]\n", COUNT);
    for (int is_double = 0; is_double < 2; is_double++)
        for (uint32_t rate = 4; rate <= most_rate(is_double); rate = rate < 8 ? rate + 2 : 2 * rate) {
            for (enum way way = ENCODE; way <= ROUND; way++) {
                const struct coding coding = {.way = way,
                                              .is_double = is_double,
                                              .rate = rate,
                                              .count = COUNT,
                                              .values = values,
                                              .rounded = rounded,
                                              .stream = stream};
                printf("%-6s rate %2u %s ", is_double ? "double" : "float", rate, names[way]);
                for (int i = -1; rondo_zfp_kernels_at(i < 0 ? 0 : i) != NULL; i++) {
                    for (size_t v = 0; v < COUNT; v++) {
                        if (is_double)
                            values[v] = 2 * uniform() - 1;
                        else
                            ((float *) (void *) values)[v] = (float) (2 * uniform() - 1);
                    }
                    rondo_zfp_encode(stream, values, COUNT, rate, is_double ? RONDO_DOUBLE : RONDO_FLOAT);
                    rondo_zfp_force(i < 0 ? NULL : rondo_zfp_kernels_at(i));
                    double speed = speed_of(&coding, i < 0);
                    printf(" %s %5.2f", i < 0 ? "libzfp" : rondo_zfp_kernels_at(i)->name, speed);
                }
                printf("\n");
                rondo_zfp_force(NULL);
            }
        }
    free(values);
    free(rounded);
    free(stream);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),   cmocka_unit_test(test_counts),     cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_garbage), cmocka_unit_test(test_not_finite), cmocka_unit_test(test_warps),
    };
    if (argc > 1 && strcmp(argv[1], "--speed") == 0)
        return measure();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
