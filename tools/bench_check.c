/* What a row's data must be before and after. See bench.h. */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { POISON = 0xA5 };

static uint64_t not_poison(const char *memory, size_t elements, size_t type_bytes)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < elements; i++) {
        bool same = true;
        for (size_t b = 0; b < type_bytes; b++)
            same = same && (unsigned char) memory[i * type_bytes + b] == POISON;
        wrong += !same;
    }
    return wrong;
}

static bool input_is_apart(const struct call *c, const struct bench_buffers *buffers)
{
    return c->input == buffers->input;
}

void bench_fill(const struct call *c, const struct values *values, const struct bench_buffers *buffers)
{
    size_t input_bytes = c->input_elements * c->type_bytes, output_bytes = c->output_elements * c->type_bytes;
    memset(buffers->output - BENCH_GUARD, POISON, output_bytes + 2 * BENCH_GUARD);
    memset(buffers->input - BENCH_GUARD, POISON, BENCH_GUARD);
    memset(buffers->input + input_bytes, POISON, BENCH_GUARD);
    values_fill(values, c->rank, 0, c->input_elements, c->input);
}

void bench_poison(const struct call *c, const struct bench_buffers *buffers)
{
    if (input_is_apart(c, buffers))
        memset(buffers->output, POISON, c->output_elements * c->type_bytes);
}

bool bench_repeats(const struct call *c)
{
    return !c->in_place || c->collective->id == COLLECTIVE_BCAST;
}

uint64_t bench_check(const struct call *c, const struct values *values, const struct bench_buffers *buffers)
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < c->output_elements;) {
        struct origin origin = call_origin(c, i);
        const char *part = c->output + i * c->type_bytes;
        if (origin.kind == ORIGIN_UNTOUCHED)
            wrong += not_poison(part, origin.length, c->type_bytes);
        else if (origin.kind == ORIGIN_INPUT)
            wrong += values_differ(values, origin.first, origin.last, origin.index, origin.length, part);
        i += origin.length;
    }
    if (input_is_apart(c, buffers))
        wrong += values_differ(values, c->rank, c->rank, 0, c->input_elements, c->input);
    const char *input_end = buffers->input + c->input_elements * c->type_bytes;
    const char *output_end = buffers->output + c->output_elements * c->type_bytes;
    wrong +=
        not_poison(buffers->input - BENCH_GUARD, BENCH_GUARD, 1) + not_poison(buffers->output - BENCH_GUARD, BENCH_GUARD, 1);
    if (input_is_apart(c, buffers))
        wrong += not_poison(input_end, BENCH_GUARD, 1);
    return wrong + not_poison(output_end, BENCH_GUARD, 1);
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Ranks compare readings of one clock, so they must share it: the boot's. */
static rondo_result_t share_clock(struct call *c, bool *shared)
{
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL) {
        if (fgets(boot, sizeof(boot), file) == NULL)
            boot[0] = '\0';
        fclose(file);
    }
    uint64_t hash = 1469598103934665603u, range[2];
    for (const char *p = boot; *p != '\0'; p++)
        hash = (hash ^ (unsigned char) *p) * 1099511628211u;
    uint64_t pair[2] = {hash, ~hash}; /* the largest complement tells the smallest hash */
    rondo_result_t code = rondo_allreduce(pair, range, 2, RONDO_UINT64, RONDO_MAX, c->comm);
    *shared = file != NULL && code == RONDO_SUCCESS && range[0] == ~range[1];
    return code;
}

rondo_result_t bench_check_barrier(struct call *c, enum form mode, uint64_t seed, uint64_t *wrong)
{
    bool shared;
    rondo_result_t code = share_clock(c, &shared);
    *wrong = 0;
    for (int round = 0; shared && code == RONDO_SUCCESS && round < 20; round++) {
        /* One rank comes late, a different one each time. */
        uint64_t late = (seed + (uint64_t) round) % (uint64_t) c->ranks;
        if (late == (uint64_t) c->rank)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        int64_t in = nanoseconds(), last;
        if ((code = call_run(c, mode)) != RONDO_SUCCESS)
            break;
        int64_t out = nanoseconds();
        code = rondo_allreduce(&in, &last, 1, RONDO_INT64, RONDO_MAX, c->comm);
        *wrong |= out < last;
    }
    return code;
}
