/* How far compressed results are from the exact ones, and whether all ranks hold the same bits. See tools/bench/bench.h. */
#include "tools/bench/bench.h"
#include "tools/common/floats.h"

#include <math.h>
#include <string.h>

/* Uniform between -1 and 1, of 24 bits: one of splitmix64's numbers for each rank and element. */
static double drawn(uint64_t seed, int rank, size_t index)
{
    uint64_t x = seed + (uint64_t) (rank + 1) * 0x9e3779b97f4a7c15u + (uint64_t) index * 0xd1342543de82ef95u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return (double) (x >> 40) / (1 << 23) - 1.0;
}

static double decode(rondo_datatype_t type, const void *memory)
{
    float single;
    double real;
    uint16_t half;
    switch (type) {
    case RONDO_FLOAT:
        memcpy(&single, memory, sizeof(single));
        return (double) single;
    case RONDO_DOUBLE:
        memcpy(&real, memory, sizeof(real));
        return real;
    default:
        memcpy(&half, memory, sizeof(half));
        return floats_decode(type, half);
    }
}

/* As the type stores it. */
static double stored(rondo_datatype_t type, double x, void *memory)
{
    float single = (float) x;
    uint16_t half;
    switch (type) {
    case RONDO_FLOAT:
        memcpy(memory, &single, sizeof(single));
        return (double) single;
    case RONDO_DOUBLE:
        memcpy(memory, &x, sizeof(x));
        return x;
    default:
        half = floats_encode(type, x);
        memcpy(memory, &half, sizeof(half));
        return floats_decode(type, half);
    }
}

static rondo_result_t fill(const struct call *c, struct buffers *device, uint64_t seed)
{
    size_t step = BUFFERS_WINDOW / c->type_bytes;
    for (size_t done = 0; done < c->input_elements; done += step) {
        size_t some = c->input_elements - done < step ? c->input_elements - done : step;
        char *to = c->input + done * c->type_bytes, *draft = buffers_draft(device, to);
        for (size_t i = 0; i < some; i++)
            stored(c->type, drawn(seed, c->rank, done + i), draft + i * c->type_bytes);
        rondo_result_t code = buffers_commit(device, to, some * c->type_bytes);
        if (code != RONDO_SUCCESS)
            return code;
    }
    return RONDO_SUCCESS;
}

static double exact(const struct call *c, uint64_t seed, const struct origin *origin, size_t index)
{
    char memory[sizeof(double)];
    double result = stored(c->type, drawn(seed, origin->first, index), memory);
    for (int rank = origin->first + 1; rank <= origin->last; rank++) {
        double x = stored(c->type, drawn(seed, rank, index), memory);
        if (c->op == RONDO_MIN)
            result = x < result ? x : result;
        else if (c->op == RONDO_MAX)
            result = x > result ? x : result;
        else
            result += x;
    }
    return c->op == RONDO_AVG && c->collective->rule->reduces ? result / (origin->last - origin->first + 1) : result;
}

/* This rank's own sums. */
struct sums {
    double errors, values, largest; /* squares; of an element */
    uint64_t hash;
};

static void add_run(const struct call *c, uint64_t seed, const struct origin *origin, size_t first, size_t count,
                    const char *view, struct sums *sums)
{
    for (size_t i = 0; i < count; i++) {
        const char *element = view + i * c->type_bytes;
        double wanted = exact(c, seed, origin, origin->index + first + i), error = fabs(decode(c->type, element) - wanted);
        sums->errors += error * error;
        sums->values += wanted * wanted;
        if (!(error <= sums->largest))
            sums->largest = error;
        for (size_t b = 0; b < c->type_bytes; b++)
            sums->hash = (sums->hash ^ (unsigned char) element[b]) * 1099511628211u;
    }
}

static rondo_result_t add_output(const struct call *c, struct buffers *device, uint64_t seed, struct sums *sums)
{
    size_t step = BUFFERS_WINDOW / c->type_bytes;
    for (size_t i = 0; i < c->output_elements;) {
        struct origin origin = call_origin(c, i);
        for (size_t done = 0; origin.kind == ORIGIN_INPUT && done < origin.length; done += step) {
            size_t some = origin.length - done < step ? origin.length - done : step;
            const char *view;
            rondo_result_t code = buffers_view(device, c->output + (i + done) * c->type_bytes, some * c->type_bytes, &view);
            if (code != RONDO_SUCCESS)
                return code;
            add_run(c, seed, &origin, done, some, view, sums);
        }
        i += origin.length;
    }
    return RONDO_SUCCESS;
}

static bool all_get_the_same(const struct call *c)
{
    const rondo_collective_t *rule = c->collective->rule;
    return rule->recv_ranks == RONDO_RANKS_ALL &&
           (rule->postcondition == RONDO_POSTCONDITION_REDUCED || rule->postcondition == RONDO_POSTCONDITION_CONCATENATED ||
            rule->postcondition == RONDO_POSTCONDITION_ROOT);
}

rondo_result_t bench_error(struct bench *bench, struct call *c, uint64_t seed, struct bench_error *error)
{
    struct buffers *device = bench->buffers.device;
    struct sums sums = {.hash = 14695981039346656037u};
    rondo_result_t code = fill(c, device, seed);
    if (code == RONDO_SUCCESS)
        code = call_run(c, bench->options->mode);
    if (code == RONDO_SUCCESS)
        code = call_finish(c, bench->options->mode);
    if (code == RONDO_SUCCESS)
        code = add_output(c, device, seed, &sums);
    double most[2] = {sums.values > 0 ? sqrt(sums.errors / sums.values) : 0, sums.largest};
    uint64_t first = sums.hash;
    if (code == RONDO_SUCCESS)
        code = ranks_most(bench->rank, most, 2);
    if (code == RONDO_SUCCESS)
        code = ranks_share(bench->rank, &first, sizeof(first));
    uint64_t others = first != sums.hash;
    if (code == RONDO_SUCCESS)
        code = ranks_total(bench->rank, &others, 1);
    *error = (struct bench_error){most[0], most[1], all_get_the_same(c), others == 0};
    return code;
}
