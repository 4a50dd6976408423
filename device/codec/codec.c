/* See device/codec/codec.h. */
#include "device/codec/codec.h"

#include "device/abi/structures.h"
#include "device/codec/zfp_stream.h"
#include "device/reduce/reduce.h"

#include <math.h>
#include <string.h>

enum { PART = 2048 }; /* elements; a multiple of 64, so that every part's stream begins on a whole word */

/* The values of a part, in the type that is computed. */
union values {
    float floats[PART];
    double doubles[PART];
    char bytes[PART * sizeof(double)];
};

/* A part of a slice operation. */
struct part {
    const struct rondo_slice_op *slice_op;
    rondo_datatype_t computed;
    size_t offset, count;           /* elements */
    size_t stream_at, stream_bytes; /* of its stream in the slice operation's */
    size_t computed_bytes;          /* of an element */
};

static struct part part_at(const struct rondo_slice_op *slice_op, size_t offset)
{
    struct part part = {.slice_op = slice_op, .offset = offset};
    part.count = slice_op->count - offset < PART ? slice_op->count - offset : PART;
    part.computed = slice_op->type == RONDO_DOUBLE ? RONDO_DOUBLE : RONDO_FLOAT;
    part.computed_bytes = part.computed == RONDO_DOUBLE ? sizeof(double) : sizeof(float);
    part.stream_at = offset / 8 * slice_op->rate;
    part.stream_bytes = rondo_zfp_bytes(part.count, slice_op->rate);
    return part;
}

/* What a value that cannot be represented loses is nothing that could be added again. */
#define DEFINE_FEEDBACK(type)                                                                                                  \
    static void take_##type(type *values, const type *residual, size_t count)                                                  \
    {                                                                                                                          \
        for (size_t i = 0; i < count; i++)                                                                                     \
            values[i] += residual[i];                                                                                          \
    }                                                                                                                          \
    static void keep_##type(type *residual, const type *values, const type *decoded, type scale, int adds, size_t count)       \
    {                                                                                                                          \
        for (size_t i = 0; i < count; i++) {                                                                                   \
            type lost = (values[i] - decoded[i]) * scale + (adds ? residual[i] : 0);                                           \
            residual[i] = isfinite(lost) ? lost : 0;                                                                           \
        }                                                                                                                      \
    }
DEFINE_FEEDBACK(float)
DEFINE_FEEDBACK(double)

static void take_residual(const struct part *part, union values *values)
{
    const char *residual = part->slice_op->residual + part->offset * part->computed_bytes;
    if (part->computed == RONDO_DOUBLE)
        take_double(values->doubles, (const double *) (const void *) residual, part->count);
    else
        take_float(values->floats, (const float *) (const void *) residual, part->count);
}

/* The residual is in units of a contribution: a mean's is its divisor times what the mean lost. */
static void keep_residual(const struct part *part, const union values *values, const union values *decoded)
{
    const struct rondo_slice_op *slice_op = part->slice_op;
    char *residual = slice_op->residual + part->offset * part->computed_bytes;
    int adds = slice_op->feedback & RONDO_FEEDBACK_ADD;
    float scale = (slice_op->average != 0 ? (float) slice_op->average : 1.0f) /
                  (float) (1u << (slice_op->feedback >> RONDO_FEEDBACK_SHIFT));
    if (part->computed == RONDO_DOUBLE)
        keep_double((double *) (void *) residual, values->doubles, decoded->doubles, (double) scale, adds, part->count);
    else
        keep_float((float *) (void *) residual, values->floats, decoded->floats, scale, adds, part->count);
}

static void load_source(const struct part *part, int s, union values *values)
{
    const struct rondo_slice_op *slice_op = part->slice_op;
    if (slice_op->coded_sources >> s & 1) {
        rondo_zfp_decode(values, slice_op->source[s] + part->stream_at, part->count, slice_op->rate, part->computed);
        if ((slice_op->codec & RONDO_CODEC_STORED) && part->computed != slice_op->type) {
            uint16_t stored[PART]; /* of the types that are not computed as they are stored */
            rondo_narrow(stored, values->floats, part->count, (rondo_datatype_t) slice_op->type);
            rondo_widen(values->floats, stored, part->count, (rondo_datatype_t) slice_op->type);
        }
        return;
    }
    const char *from = slice_op->source[s] + part->offset * slice_op->element_bytes;
    if (part->computed == RONDO_DOUBLE)
        memcpy(values, from, part->count * sizeof(double));
    else
        rondo_widen(values->floats, from, part->count, (rondo_datatype_t) slice_op->type);
    if (slice_op->residual != NULL && (slice_op->feedback & RONDO_FEEDBACK_TAKE))
        take_residual(part, values);
}

static void store_local(const struct part *part, const union values *values)
{
    const struct rondo_slice_op *slice_op = part->slice_op;
    char *to = slice_op->local + part->offset * slice_op->element_bytes;
    if (part->computed == RONDO_DOUBLE)
        memcpy(to, values, part->count * sizeof(double));
    else
        rondo_narrow(to, values->floats, part->count, (rondo_datatype_t) slice_op->type);
}

/* Encodes into a scratch and copies from there: a bulk copy replaces lines that another core holds without fetching them.
 * rounded: what the readers will have, if it is wanted on this rank. */
static void encode(const struct part *part, const union values *values, union values *rounded)
{
    const struct rondo_slice_op *slice_op = part->slice_op;
    union values coded, *stream = &coded;
    if (rounded != NULL)
        rondo_zfp_round(stream, rounded, values, part->count, slice_op->rate, part->computed);
    else
        rondo_zfp_encode(stream, values, part->count, slice_op->rate, part->computed);
    for (int r = 0; r < slice_op->remotes; r++)
        memcpy(slice_op->remote[r] + part->stream_at, stream, part->stream_bytes);
}

void rondo_codec_run(const struct rondo_slice_op *slice_op)
{
    union values values, other;
    int keeps = slice_op->residual != NULL && (slice_op->feedback & RONDO_FEEDBACK_KEEP);
    for (size_t offset = 0; offset < slice_op->count; offset += PART) {
        struct part part = part_at(slice_op, offset);
        void *reduced = &values;
        const void *pair[2] = {&values, &other};
        load_source(&part, 0, &values);
        for (int s = 1; s < slice_op->sources; s++) {
            load_source(&part, s, &other);
            rondo_reduce_elements(&(struct rondo_reduction){.dst = &reduced,
                                                            .src = pair,
                                                            .destinations = 1,
                                                            .sources = 2,
                                                            .count = part.count,
                                                            .type = part.computed,
                                                            .op = (rondo_op_t) slice_op->op});
        }
        if (slice_op->average != 0)
            rondo_reduce_elements(&(struct rondo_reduction){.dst = &reduced,
                                                            .src = pair,
                                                            .destinations = 1,
                                                            .sources = 1,
                                                            .count = part.count,
                                                            .type = part.computed,
                                                            .op = (rondo_op_t) slice_op->op,
                                                            .average = (int) slice_op->average});
        const union values *retained = &values;
        int rounds = (slice_op->codec & RONDO_CODEC_ROUND) != 0 && (slice_op->local != NULL || keeps);
        if (slice_op->remotes > 0 || (slice_op->codec & RONDO_CODEC_ROUND))
            encode(&part, &values, rounds ? &other : NULL);
        if (rounds)
            retained = &other;
        if (rounds && keeps)
            keep_residual(&part, &values, &other);
        if (slice_op->local != NULL)
            store_local(&part, retained);
    }
}

void rondo_codec_forward(const struct rondo_slice_op *slice_op)
{
    size_t bytes = rondo_zfp_bytes(slice_op->count, slice_op->rate);
    for (int r = 0; r < slice_op->remotes; r++)
        memcpy(slice_op->remote[r], slice_op->source[0], bytes);
}

void rondo_codec_keep(const struct rondo_slice_op *slice_op)
{
    union values values;
    for (size_t offset = 0; slice_op->local != NULL && offset < slice_op->count; offset += PART) {
        struct part part = part_at(slice_op, offset);
        load_source(&part, 0, &values);
        store_local(&part, &values);
    }
}
