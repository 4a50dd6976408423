/*
 * Blocks of floats side by side, a lane a block (AVX2: 8, AVX-512: 16); part of device/codec/zfp_kernels.c, once an instruction
 * set. Lanes take the same steps, each with its own count of known coefficients and its own place in its block; a lane whose
 * block is full writes beyond it, or reads zeros, until all are. Blocks that begin with the zero bit are seen to one by one.
 */
#ifndef RONDO_DEVICE_CODEC_ZFP_LANES_H
#define RONDO_DEVICE_CODEC_ZFP_LANES_H

#include "device/codec/zfp_block.h"
#include "device/codec/zfp_kernels.h"
#include "device/codec/zfp_tables.h"

#if defined(__AVX2__) /* as zfp_kernels.c is compiled for its variants */

#include <immintrin.h>

static const uint32_t plane_codes[RONDO_ZFP_CODES] __attribute__((aligned(64))) = {RONDO_ZFP_PLANE_CODES};
static const uint32_t code_planes[RONDO_ZFP_PLANES] __attribute__((aligned(64))) = {RONDO_ZFP_CODE_PLANES};

#if defined(__AVX512F__)
#define LANES 16
#else
#define LANES 8
#endif
typedef uint32_t vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef float fvec __attribute__((vector_size(4 * LANES)));
typedef uint64_t wide __attribute__((vector_size(4 * LANES))); /* half of the lanes */
struct words {
    wide half[2];
};

#define ALL(value) ((vec){0} + (uint32_t) (value))

#if defined(__AVX512F__)
static inline vec larger(vec a, vec b)
{
    return (vec) _mm512_max_epu32((__m512i) a, (__m512i) b);
}
/* yes where the signed a > b. */
static inline vec select_greater(vec a, vec b, vec yes, vec no)
{
    return (vec) _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask((__m512i) a, (__m512i) b), (__m512i) no, (__m512i) yes);
}
static inline uint32_t which_greater(vec a, vec b)
{
    return _mm512_cmpgt_epi32_mask((__m512i) a, (__m512i) b);
}
static inline vec shift_left(vec a, vec by)
{
    return (vec) _mm512_sllv_epi32((__m512i) a, (__m512i) by);
}
static inline vec shift_right(vec a, vec by)
{
    return (vec) _mm512_srlv_epi32((__m512i) a, (__m512i) by);
}
static inline wide wide_left(wide a, wide by)
{
    return (wide) _mm512_sllv_epi64((__m512i) a, (__m512i) by);
}
static inline wide wide_right(wide a, wide by)
{
    return (wide) _mm512_srlv_epi64((__m512i) a, (__m512i) by);
}
static inline wide widen(vec a, int half)
{
    return (wide) _mm512_cvtepu32_epi64(half ? _mm512_extracti64x4_epi64((__m512i) a, 1) : _mm512_castsi512_si256((__m512i) a));
}
static inline vec narrow(struct words w)
{
    __m256i low = _mm512_cvtepi64_epi32((__m512i) w.half[0]), high = _mm512_cvtepi64_epi32((__m512i) w.half[1]);
    return (vec) _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
static inline vec of_32(const uint32_t *table, vec index)
{
    return (vec) _mm512_permutex2var_epi32(_mm512_load_si512(table), (__m512i) index, _mm512_load_si512(table + 16));
}
static inline vec of_192(const uint32_t *table, vec index)
{
    vec found = of_32(table + 160, index);
    for (int part = 4; part >= 0; part--)
        found = select_greater(ALL(32 * part + 32), index, of_32(table + 32 * part, index), found);
    return found;
}
static inline vec of_64(const uint32_t *table, vec index)
{
    return select_greater(ALL(32), index, of_32(table, index), of_32(table + 32, index));
}
static inline vec of_16(const uint32_t *table, vec index)
{
    return (vec) _mm512_permutexvar_epi32((__m512i) index, _mm512_load_si512(table));
}
static inline vec of_8(const uint32_t *table, vec index)
{
    return (vec) _mm512_permutexvar_epi32((__m512i) index, _mm512_castsi256_si512(_mm256_load_si256((const __m256i *) table)));
}
#else
static inline vec larger(vec a, vec b)
{
    return (vec) _mm256_max_epu32((__m256i) a, (__m256i) b);
}
static inline vec select_greater(vec a, vec b, vec yes, vec no)
{
    return (vec) _mm256_blendv_epi8((__m256i) no, (__m256i) yes, _mm256_cmpgt_epi32((__m256i) a, (__m256i) b));
}
static inline uint32_t which_greater(vec a, vec b)
{
    return (uint32_t) _mm256_movemask_ps((__m256) _mm256_cmpgt_epi32((__m256i) a, (__m256i) b));
}
static inline vec shift_left(vec a, vec by)
{
    return (vec) _mm256_sllv_epi32((__m256i) a, (__m256i) by);
}
static inline vec shift_right(vec a, vec by)
{
    return (vec) _mm256_srlv_epi32((__m256i) a, (__m256i) by);
}
static inline wide wide_left(wide a, wide by)
{
    return (wide) _mm256_sllv_epi64((__m256i) a, (__m256i) by);
}
static inline wide wide_right(wide a, wide by)
{
    return (wide) _mm256_srlv_epi64((__m256i) a, (__m256i) by);
}
static inline wide widen(vec a, int half)
{
    return (wide) _mm256_cvtepu32_epi64(half ? _mm256_extracti128_si256((__m256i) a, 1) : _mm256_castsi256_si128((__m256i) a));
}
static inline vec narrow(struct words w)
{
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    __m256i low = _mm256_permutevar8x32_epi32((__m256i) w.half[0], even);
    __m256i high = _mm256_permutevar8x32_epi32((__m256i) w.half[1], even);
    return (vec) _mm256_blend_epi32(low, high, 0xf0);
}
static inline vec of_32(const uint32_t *table, vec index)
{
    return (vec) _mm256_i32gather_epi32((const int *) table, (__m256i) index, 4);
}
static inline vec of_192(const uint32_t *table, vec index)
{
    return of_32(table, index);
}
static inline vec of_64(const uint32_t *table, vec index)
{
    return of_32(table, index);
}
static inline vec of_16(const uint32_t *table, vec index)
{
    return of_32(table, index);
}
static inline vec of_8(const uint32_t *table, vec index)
{
    return (vec) _mm256_permutevar8x32_epi32(_mm256_load_si256((const __m256i *) table), (__m256i) index);
}
#endif

/* ---- between values in memory and lanes: c[i] is value i of all blocks ---- */

#if LANES == 16
#define EACH4(x)     x, x + 4, x + 8, x + 12, x + 16, x + 20, x + 24, x + 28
#define RUN8(x)      x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7
#define PICK2(x, y)  EACH4(x), EACH4(y)
#define HALVES(x, y) RUN8(x), RUN8(y)
#define ZIP(x, y)    x, y, x + 1, y + 1, x + 2, y + 2, x + 3, y + 3
#define PAIRS(x, y)  x, x + 1, y, y + 1, x + 2, x + 3, y + 2, y + 3
#define ZIPS(x, y)   ZIP(x, y), ZIP((x + 4), (y + 4))
#define PAIRED(x, y) PAIRS(x, y), PAIRS((x + 4), (y + 4))
#else
#define PICK2(x, y)  x, x + 4, x + 8, x + 12, y, y + 4, y + 8, y + 12
#define HALVES(x, y) x, x + 1, x + 2, x + 3, y, y + 1, y + 2, y + 3
#define ZIPS(x, y)   x, y, x + 1, y + 1, x + 2, y + 2, x + 3, y + 3
#define PAIRED(x, y) x, x + 1, y, y + 1, x + 2, x + 3, y + 2, y + 3
#endif
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

static inline void load_values(vec *c, const float *values)
{
    vec r[4];
    memcpy(r, values, sizeof(r));
    vec ab0 = SHUFFLE(r[0], r[1], PICK2(0, 1)), cd0 = SHUFFLE(r[0], r[1], PICK2(2, 3));
    vec ab1 = SHUFFLE(r[2], r[3], PICK2(0, 1)), cd1 = SHUFFLE(r[2], r[3], PICK2(2, 3));
    c[0] = SHUFFLE(ab0, ab1, HALVES(0, LANES));
    c[1] = SHUFFLE(ab0, ab1, HALVES(LANES / 2, LANES + LANES / 2));
    c[2] = SHUFFLE(cd0, cd1, HALVES(0, LANES));
    c[3] = SHUFFLE(cd0, cd1, HALVES(LANES / 2, LANES + LANES / 2));
}

static inline void store_values(float *values, const vec *c)
{
    vec ab0 = SHUFFLE(c[0], c[1], ZIPS(0, LANES)), ab1 = SHUFFLE(c[0], c[1], ZIPS(LANES / 2, (LANES + LANES / 2)));
    vec cd0 = SHUFFLE(c[2], c[3], ZIPS(0, LANES)), cd1 = SHUFFLE(c[2], c[3], ZIPS(LANES / 2, (LANES + LANES / 2)));
    vec r[4] = {SHUFFLE(ab0, cd0, PAIRED(0, LANES)), SHUFFLE(ab0, cd0, PAIRED(LANES / 2, (LANES + LANES / 2))),
                SHUFFLE(ab1, cd1, PAIRED(0, LANES)), SHUFFLE(ab1, cd1, PAIRED(LANES / 2, (LANES + LANES / 2)))};
    memcpy(values, r, sizeof(r));
}

static inline vec halved(vec a)
{
    return (vec) ((ivec) a >> 1);
}

static inline void forward(vec *c)
{
    vec x = c[0], y = c[1], z = c[2], w = c[3], mask = ALL(0xaaaaaaaa);
    x += w, x = halved(x), w -= x;
    z += y, z = halved(z), y -= z;
    x += z, x = halved(x), z -= x;
    w += y, w = halved(w), y -= w;
    w += halved(y), y -= halved(w);
    c[0] = (x + mask) ^ mask, c[1] = (y + mask) ^ mask, c[2] = (z + mask) ^ mask, c[3] = (w + mask) ^ mask;
}

static inline void backward(vec *c)
{
    vec mask = ALL(0xaaaaaaaa);
    vec x = (c[0] ^ mask) - mask, y = (c[1] ^ mask) - mask, z = (c[2] ^ mask) - mask, w = (c[3] ^ mask) - mask;
    y += halved(w), w -= halved(y);
    y += w, w <<= 1, w -= y;
    z += x, x <<= 1, x -= z;
    y += z, z <<= 1, z -= y;
    w += x, x <<= 1, x -= w;
    c[0] = x, c[1] = y, c[2] = z, c[3] = w;
}

/* ---- a plane of which not all coefficients are known, and what it all amounts to ---- */

/* Its values, from the bits that begin with it, of which `left` are there, and zeros. *known: coefficients, before and after;
 * *length: the bits that it takes. */
static inline vec read_plane(vec bits, vec left, vec *known, vec *length)
{
    /* By how many are known: the bits that a code of the others may take, and where their entries begin. */
    static const uint32_t code_bits[8] __attribute__((aligned(32))) = {127, 31, 7, 1, 0};
    static const uint32_t code_first[8] __attribute__((aligned(32))) = {0, 128, 160, 168, 170};
    vec next = bits & 127, index = of_8(code_first, *known) + (shift_right(next, *known) & of_8(code_bits, *known));
    vec entry = which_greater(ALL(1), *known) != 0 ? of_192(code_planes, index) : of_64(code_planes + 128, index - 128);
    vec plane = (entry & 15) | (next & (shift_left(ALL(1), *known) - 1));
    *length = (entry >> 4) & 15;
    *known = entry >> 8;
    /* Where the block ended within a scan, the zeros after it made the scan end with the last coefficient; it ends with the
     * one it had come to. */
    vec ended = (plane ^ 8) | shift_right(ALL(8), *length - left);
    vec scanned = plane & select_greater(*length, left, ALL(8), ALL(0));
    return select_greater(scanned, ALL(0), ended, plane);
}

/* What was read, by the header's exponent. */
static inline void to_values(float *values, vec *c, vec header)
{
    backward(c);
    vec biased = (header & 511) >> 1, exponent = biased - select_greater(biased, ALL(0), ALL(1), ALL(0));
    vec power = select_greater(exponent, ALL(29), (exponent - 29) << 23, shift_left(ALL(1), exponent - 7));
    vec there = select_greater(header & 1, ALL(0), ALL(0xffffffff), ALL(0));
    for (int i = 0; i < 4; i++)
        c[i] = (vec) (__builtin_convertvector((ivec) c[i], fvec) * (fvec) power) & there;
    store_values(values, c);
}

/* ---- encoding ---- */

/* What is left of a plane that was written as so many bits of code where there was room for fewer (left, perhaps none). known:
 * before it. */
static inline vec cut_plane(vec plane, vec code, vec length, vec left, vec known)
{
    vec whole = select_greater(length, left, ALL(0), plane);
    if ((which_greater(length, left) & which_greater(left, ALL(0))) == 0)
        return whole;
    vec unused, there = select_greater(left, ALL(0), left, ALL(0));
    vec read = read_plane(code & (shift_left(ALL(1), there) - 1), there, &known, &unused);
    return select_greater(length, left, read & select_greater(left, ALL(0), ALL(15), ALL(0)), plane);
}

/* bits: of a block; two: they are more than 64, and high is written only then. rounded: what a reader will read; NULL: not
 * wanted. */
static inline __attribute__((always_inline)) void encode_blocks(const float *values, uint32_t bits, int two, uint64_t *low,
                                                                uint64_t *high, float *rounded)
{
    const vec infinite = ALL(0x7f800000), magnitude = ALL(0x7fffffff);
    vec c[4], read[4] = {ALL(0), ALL(0), ALL(0), ALL(0)}, at = ALL(9), known = ALL(0);
    load_values(c, values);
    vec largest = larger(larger(c[0] & magnitude, c[1] & magnitude), larger(c[2] & magnitude, c[3] & magnitude));
    vec exponent = largest >> 23;
    fvec scale = (fvec) ((ALL(283) - exponent) << 23);
    for (int i = 0; i < 4; i++) {
        vec scaled = (vec) __builtin_convertvector((fvec) c[i] * scale, ivec);
        c[i] = select_greater(ALL(29), exponent, ALL(0x80000000), scaled);
    }
    forward(c);
    struct words first, second = {{{0}}};
    vec header = 2 * exponent + 3;
    for (int h = 0; h < 2; h++)
        first.half[h] = widen(header, h);
    for (uint32_t k = 32; k > 0 && which_greater(ALL(bits), at) != 0; k--) {
        vec plane = (c[0] >> 31) | ((c[1] >> 30) & 2) | ((c[2] >> 29) & 4) | ((c[3] >> 28) & 8), code = plane, length = ALL(4);
        vec before = known;
        for (int i = 0; i < 4; i++)
            c[i] <<= 1;
        if (which_greater(ALL(4), known) != 0) {
            vec entry = of_32(plane_codes, 32 - shift_right(ALL(32), known) + shift_right(plane, known));
            vec seen = plane & (shift_left(ALL(1), known) - 1);
            code = seen | shift_left(entry & 255, known);
            length = known + ((entry >> 8) & 15);
            known += entry >> 12;
        }
        for (int h = 0; h < 2; h++) {
            wide more = widen(code, h), place = widen(at, h);
            first.half[h] |= wide_left(more, place);
            if (two) /* a shift by 64 or more, or by less than 0, gives 0 */
                second.half[h] |= wide_left(more, place - 64) | wide_right(more, 64 - place);
        }
        if (rounded != NULL) {
            vec cut = cut_plane(plane, code, length, ALL(bits) - at, before);
            for (int i = 0; i < 4; i++)
                read[i] |= ((cut >> i) & 1) << (k - 1);
        }
        at += length;
    }
    vec all = select_greater(largest, ALL(0), ALL(0xffffffff), ALL(0)); /* but for blocks of zeros */
    uint64_t retained = bits < 64 ? ((uint64_t) 1 << bits) - 1 : ~(uint64_t) 0;
    uint64_t retained_too = two && bits < 128 ? ((uint64_t) 1 << (bits - 64)) - 1 : ~(uint64_t) 0;
    for (int h = 0; h < 2; h++) {
        wide there = widen(all, h);
        there |= there << 32;
        first.half[h] &= there & retained;
        second.half[h] &= there & retained_too;
    }
    memcpy(low, &first, sizeof(first));
    if (two)
        memcpy(high, &second, sizeof(second));
    if (rounded != NULL)
        to_values(rounded, read, header & all);
    for (uint32_t odd = which_greater(largest, infinite - 1); odd != 0; odd &= odd - 1) {
        uint64_t words[RONDO_ZFP_WORDS];
        uint32_t b = rondo_zfp_lowest_bit(odd);
        rondo_zfp_encode_float(values + b * RONDO_ZFP_VALUES, bits / RONDO_ZFP_VALUES, words);
        low[b] = words[0];
        if (two)
            high[b] = words[1];
        if (rounded != NULL) {
            uint64_t cut[RONDO_ZFP_WORDS] = {low[b], two ? high[b] : 0};
            rondo_zfp_decode_float(cut, bits / RONDO_ZFP_VALUES, rounded + b * RONDO_ZFP_VALUES);
        }
    }
}

/* Appends a group's blocks; returns where the next begins. */
static inline uint64_t *put_group(uint64_t *stream, const uint64_t *low, const uint64_t *high, uint32_t bits)
{
    uint64_t word = 0;
    uint32_t filled = 0;
    for (int b = 0; b < RONDO_ZFP_GROUP; b++) {
        for (int part = 0; part <= (bits > 64); part++) {
            uint64_t value = part ? high[b] : low[b];
            uint32_t more = part ? bits - 64 : bits < 64 ? bits : 64;
            word |= value << filled;
            filled += more;
            if (filled >= 64) {
                *stream++ = word;
                filled -= 64;
                word = filled > 0 ? value >> (more - filled) : 0;
            }
        }
    }
    return stream;
}

static inline __attribute__((always_inline)) void encode_groups(uint64_t *stream, float *rounded, const float *values,
                                                                size_t groups, uint32_t bits, int two)
{
    uint64_t low[RONDO_ZFP_GROUP], high[RONDO_ZFP_GROUP];
    for (size_t g = 0; g < groups; g++) {
        for (int b = 0; b < RONDO_ZFP_GROUP; b += LANES, values += LANES * RONDO_ZFP_VALUES) {
            encode_blocks(values, bits, two, low + b, high + b, rounded);
            rounded = rounded != NULL ? rounded + LANES * RONDO_ZFP_VALUES : NULL;
        }
        if (bits == 32) {
            for (int b = 0; b < RONDO_ZFP_GROUP; b += 2)
                *stream++ = low[b] | low[b + 1] << 32;
        } else if (bits == 64) {
            memcpy(stream, low, sizeof(low));
            stream += RONDO_ZFP_GROUP;
        } else {
            stream = put_group(stream, low, high, bits);
        }
    }
}

static inline __attribute__((always_inline)) void encode_at(uint64_t *stream, float *rounded, const float *values,
                                                            size_t groups, uint32_t rate)
{
    uint32_t bits = RONDO_ZFP_VALUES * rate;
    if (bits == 32)
        encode_groups(stream, rounded, values, groups, 32, 0);
    else if (bits <= 64)
        encode_groups(stream, rounded, values, groups, bits, 0);
    else
        encode_groups(stream, rounded, values, groups, bits, 1);
}

static void encode_float_lanes(uint64_t *stream, const float *values, size_t groups, uint32_t rate)
{
    encode_at(stream, NULL, values, groups, rate);
}

static void round_float_lanes(uint64_t *stream, float *rounded, const float *values, size_t groups, uint32_t rate)
{
    encode_at(stream, rounded, values, groups, rate);
}

/* ---- decoding ---- */

static inline __attribute__((always_inline)) void decode_blocks(float *values, uint32_t bits, int two, const uint64_t *low,
                                                                const uint64_t *high)
{
    static const uint32_t reversed[16] __attribute__((aligned(64))) = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    struct words first, second = {{{0}}};
    memcpy(&first, low, sizeof(first));
    if (two)
        memcpy(&second, high, sizeof(second));
    vec header = narrow(first) & 511, c[4] = {ALL(0), ALL(0), ALL(0), ALL(0)}, known = ALL(0), left = ALL(bits - 9);
    uint32_t coded = which_greater(header & 1, ALL(0));
    for (int h = 0; h < 2; h++) {
        first.half[h] = first.half[h] >> 9 | second.half[h] << 55;
        second.half[h] >>= 9;
    }
    uint32_t k = 32;
    while (k > 0 && which_greater(left, ALL(0)) != 0 && which_greater(ALL(4), known) != 0) {
        vec length, plane = read_plane(narrow(first), left, &known, &length);
        k--;
        for (int i = 0; i < 4; i++)
            c[i] |= ((plane >> i) & 1) << k;
        left -= length;
        for (int h = 0; h < 2; h++) {
            wide by = widen(length, h);
            first.half[h] = wide_right(first.half[h], by);
            if (two) {
                first.half[h] |= wide_left(second.half[h], 64 - by);
                second.half[h] = wide_right(second.half[h], by);
            }
        }
    }
    /* From where all coefficients of all blocks are known, planes come as they are, and zeros after them. */
    for (; k > 0 && which_greater(left, ALL(0)) != 0; left -= 32) {
        vec next = narrow(first);
        for (int i = 0; i < 4; i++) {
            vec taken = (next >> i) & 0x11111111;
            taken = (taken | taken >> 3) & 0x03030303;
            taken = (taken | taken >> 6) & 0x000f000f;
            taken = (taken | taken >> 12) & 255;
            taken = of_16(reversed, taken & 15) << 4 | of_16(reversed, taken >> 4);
            c[i] |= k >= 8 ? taken << (k - 8) : taken >> (8 - k);
        }
        k = k >= 8 ? k - 8 : 0;
        for (int h = 0; h < 2; h++) {
            first.half[h] = first.half[h] >> 32 | second.half[h] << 32;
            second.half[h] >>= 32;
        }
    }
    to_values(values, c, header);
    for (uint32_t odd = which_greater(header >> 1, ALL(0)) & ~coded; odd != 0; odd &= odd - 1) {
        uint32_t b = rondo_zfp_lowest_bit(odd);
        uint64_t words[RONDO_ZFP_WORDS] = {low[b], two ? high[b] : 0};
        rondo_zfp_decode_float(words, bits / RONDO_ZFP_VALUES, values + b * RONDO_ZFP_VALUES);
    }
}

/* A group's blocks, cut to their bits. */
static inline void take_group(const uint64_t *stream, uint64_t *low, uint64_t *high, uint32_t bits)
{
    uint32_t shift = 0;
    for (int b = 0; b < RONDO_ZFP_GROUP; b++) {
        for (int part = 0; part <= (bits > 64); part++) {
            uint32_t wanted = part ? bits - 64 : bits < 64 ? bits : 64;
            uint64_t value = *stream >> shift;
            if (shift + wanted >= 64)
                stream++;
            if (shift + wanted > 64)
                value |= *stream << (64 - shift);
            shift = (shift + wanted) & 63;
            *(part ? &high[b] : &low[b]) = wanted < 64 ? value & (((uint64_t) 1 << wanted) - 1) : value;
        }
    }
}

static inline __attribute__((always_inline)) void decode_groups(float *values, const uint64_t *stream, size_t groups,
                                                                uint32_t bits, int two)
{
    uint64_t low[RONDO_ZFP_GROUP], high[RONDO_ZFP_GROUP];
    for (size_t g = 0; g < groups; g++, stream += bits / RONDO_ZFP_VALUES) {
        if (bits == 32)
            for (int b = 0; b < RONDO_ZFP_GROUP; b++)
                low[b] = (uint32_t) (stream[b / 2] >> b % 2 * 32);
        else if (bits == 64)
            memcpy(low, stream, sizeof(low));
        else
            take_group(stream, low, high, bits);
        for (int b = 0; b < RONDO_ZFP_GROUP; b += LANES, values += LANES * RONDO_ZFP_VALUES)
            decode_blocks(values, bits, two, low + b, high + b);
    }
}

static void decode_float_lanes(float *values, const uint64_t *stream, size_t groups, uint32_t rate)
{
    uint32_t bits = RONDO_ZFP_VALUES * rate;
    if (bits == 32)
        decode_groups(values, stream, groups, 32, 0);
    else if (bits <= 64)
        decode_groups(values, stream, groups, bits, 0);
    else
        decode_groups(values, stream, groups, bits, 1);
}

#endif
#endif
