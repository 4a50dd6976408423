/* Inputs, expected sums and the random generator of the stress programs (tools/stress/data.h). */
#include "tools/stress/data.h"

#include <math.h>

static const double smallest_bytes = 256, largest_bytes = 1 << 20;
_Static_assert(BUFFERS_WINDOW >= 1 << 20, "an operation's buffer is seen in one piece");
enum { POISON = 0xA5 };

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

uint64_t stress_seed(uint64_t seed, int rank)
{
    return scramble(seed + (uint64_t) rank * 0xD1342543DE82EF95u);
}

uint64_t stress_random(uint64_t *state)
{
    return scramble(*state += 0x9E3779B97F4A7C15u);
}

void stress_shuffle(int *order, int count, uint64_t *state)
{
    for (int k = count - 1; k > 0; k--) {
        int other = (int) (stress_random(state) % (uint64_t) (k + 1)), retained = order[k];
        order[k] = order[other];
        order[other] = retained;
    }
}

void stress_interleave(int *order, int count, int groups, uint64_t *state)
{
    for (int k = 0; k < count; k++)
        order[k] = k % groups;
    stress_shuffle(order, count, state);
    /* Each group's entries become its members in turn; those that have are negative until all have. */
    for (int group = 0; group < groups; group++) {
        int next = group;
        for (int k = 0; k < count; k++) {
            if (order[k] != group)
                continue;
            order[k] = -1 - next;
            next += groups;
        }
    }
    for (int k = 0; k < count; k++)
        order[k] = -1 - order[k];
}

/* 32-bit arithmetic throughout, which compilers vectorize. */
static uint32_t noise(uint32_t salt, uint32_t index, uint32_t spread)
{
    uint32_t x = (index ^ salt) * 0x9E3779B1u;
    x = (x ^ (x >> 15)) * 0x85EBCA77u;
    return (x ^ (x >> 13)) & (spread - 1);
}

/* The operation's and iteration's own. */
static uint64_t salt_of(const struct stress_data *d, const struct stress_operation *op, int iteration)
{
    return scramble(d->seed ^ scramble(((uint64_t) iteration << 16) + (uint64_t) op->number + 1));
}

static uint32_t weight_of(const struct stress_data *d, uint64_t salt, int rank)
{
    return 1 + (uint32_t) (scramble(salt + (uint64_t) rank + 1) & (d->spread - 1));
}

static size_t bytes_of(const struct stress_operation *op)
{
    return op->count * (op->type == RONDO_FLOAT ? sizeof(float) : sizeof(double));
}

void stress_data_open(struct stress_data *d, struct buffers *buffers, uint64_t seed, int rank, int size)
{
    *d = (struct stress_data){.buffers = buffers, .seed = seed, .rank = rank, .size = size, .spread = 1u << 22};
    /* The largest sum, ranks * (spread - 1 + spread), must stay below 2^24. */
    while (d->spread > 1 && (uint64_t) d->spread * (uint64_t) size > 1u << 22)
        d->spread >>= 1;
}

rondo_result_t stress_operation_open(const struct stress_data *d, struct stress_operation *op, int number, int count)
{
    double part = count > 1 ? (double) number / (count - 1) : 1.0;
    double bytes = smallest_bytes * pow(largest_bytes / smallest_bytes, part);
    *op = (struct stress_operation){.number = number, .type = number % 2 == 0 ? RONDO_FLOAT : RONDO_DOUBLE};
    op->count = (size_t) (bytes + 0.5) / (op->type == RONDO_FLOAT ? sizeof(float) : sizeof(double));
    rondo_result_t code = buffers_allocate(d->buffers, bytes_of(op), &op->send);
    return code == RONDO_SUCCESS ? buffers_allocate(d->buffers, bytes_of(op), &op->receive) : code;
}

rondo_result_t stress_fill(const struct stress_data *d, const struct stress_operation *op, int iteration)
{
    uint64_t salt = salt_of(d, op, iteration);
    uint32_t weight = weight_of(d, salt, d->rank), salt32 = (uint32_t) salt, count = (uint32_t) op->count;
    void *draft = buffers_draft(d->buffers, op->send);
    float *singles = draft;
    double *doubles = draft;
    if (op->type == RONDO_FLOAT) {
        for (uint32_t i = 0; i < count; i++)
            singles[i] = (float) (int32_t) (noise(salt32, i, d->spread) + weight);
    } else {
        for (uint32_t i = 0; i < count; i++)
            doubles[i] = (double) (int32_t) (noise(salt32, i, d->spread) + weight);
    }
    rondo_result_t code = buffers_commit(d->buffers, op->send, bytes_of(op));
    return code == RONDO_SUCCESS ? buffers_set(d->buffers, op->receive, POISON, bytes_of(op)) : code;
}

rondo_result_t stress_check(const struct stress_data *d, const struct stress_operation *op, int iteration, uint64_t *wrong)
{
    uint64_t salt = salt_of(d, op, iteration);
    uint32_t weights = 0, salt32 = (uint32_t) salt, count = (uint32_t) op->count, ranks = (uint32_t) d->size, found = 0;
    for (int r = 0; r < d->size; r++)
        weights += weight_of(d, salt, r);
    const char *view;
    rondo_result_t code = buffers_view(d->buffers, op->receive, bytes_of(op), &view);
    const float *singles = (const void *) view;
    const double *doubles = (const void *) view;
    if (code == RONDO_SUCCESS && op->type == RONDO_FLOAT) {
        for (uint32_t i = 0; i < count; i++)
            found += singles[i] != (float) (int32_t) (ranks * noise(salt32, i, d->spread) + weights);
    } else if (code == RONDO_SUCCESS) {
        for (uint32_t i = 0; i < count; i++)
            found += doubles[i] != (double) (int32_t) (ranks * noise(salt32, i, d->spread) + weights);
    }
    *wrong += found;
    return code;
}
