/* What the data of a call must be before and after (tools/common/check.h). */
#include "tools/common/check.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { POISON = 0xA5 };
#define REPEATED ((size_t) 8 * BUFFERS_WINDOW) /* bytes of a long input that are drawn afresh */

/* Elements of a run of at most a window. */
static uint64_t not_poison_in(const char *memory, size_t elements, size_t type_bytes)
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

/* A run of elements of device memory, and what it is to be compared with. */
struct expected {
    const struct values *values; /* NULL: the poison */
    int first, last;
    size_t index;
    size_t type_bytes;
};

static rondo_result_t compare(struct buffers *device, const char *memory, size_t elements, const struct expected *expected,
                              uint64_t *wrong)
{
    size_t step = BUFFERS_WINDOW / expected->type_bytes;
    for (size_t done = 0; done < elements; done += step) {
        size_t some = elements - done < step ? elements - done : step;
        const char *view;
        rondo_result_t code = buffers_view(device, memory + done * expected->type_bytes, some * expected->type_bytes, &view);
        if (code != RONDO_SUCCESS)
            return code;
        if (expected->values == NULL)
            *wrong += not_poison_in(view, some, expected->type_bytes);
        else
            *wrong += values_differ(expected->values, expected->first, expected->last, expected->index + done, some, view);
    }
    return RONDO_SUCCESS;
}

static rondo_result_t write_values(const struct values *values, int rank, struct buffers *device, char *memory, size_t elements)
{
    size_t step = BUFFERS_WINDOW / values->bytes;
    for (size_t done = 0; done < elements; done += step) {
        size_t some = elements - done < step ? elements - done : step;
        char *to = memory + done * values->bytes;
        values_fill(values, rank, done, some, buffers_draft(device, to));
        rondo_result_t code = buffers_commit(device, to, some * values->bytes);
        if (code != RONDO_SUCCESS)
            return code;
    }
    return RONDO_SUCCESS;
}

static rondo_result_t fill_input(const struct call *c, const struct values *values, struct buffers *device, bool repeat)
{
    size_t drawn = REPEATED / c->type_bytes;
    drawn = repeat && drawn < c->input_elements ? drawn : c->input_elements;
    rondo_result_t code = write_values(values, c->rank, device, c->input, drawn);
    for (size_t done = drawn; code == RONDO_SUCCESS && done < c->input_elements; done += drawn) {
        size_t some = c->input_elements - done < drawn ? c->input_elements - done : drawn;
        code = buffers_copy(device, c->input + done * c->type_bytes, c->input, some * c->type_bytes);
    }
    return code;
}

static bool input_is_apart(const struct call *c, const struct check_buffers *buffers)
{
    return c->input == buffers->input;
}

rondo_result_t check_fill(const struct call *c, const struct values *values, const struct check_buffers *buffers, bool repeat)
{
    struct buffers *device = buffers->device;
    size_t input_bytes = c->input_elements * c->type_bytes, output_bytes = c->output_elements * c->type_bytes;
    rondo_result_t code = buffers_set(device, buffers->output - CHECK_GUARD, POISON, output_bytes + 2 * CHECK_GUARD);
    if (code == RONDO_SUCCESS)
        code = buffers_set(device, buffers->input - CHECK_GUARD, POISON, CHECK_GUARD);
    if (code == RONDO_SUCCESS)
        code = buffers_set(device, buffers->input + input_bytes, POISON, CHECK_GUARD);
    return code == RONDO_SUCCESS ? fill_input(c, values, device, repeat) : code;
}

rondo_result_t check_poison(const struct call *c, const struct check_buffers *buffers)
{
    if (!input_is_apart(c, buffers))
        return RONDO_SUCCESS;
    return buffers_set(buffers->device, buffers->output, POISON, c->output_elements * c->type_bytes);
}

bool check_repeats(const struct call *c)
{
    return !c->in_place || c->collective->rule->placement == RONDO_PLACEMENT_SHARED;
}

static rondo_result_t check_output(const struct call *c, const struct values *values, struct buffers *device, uint64_t *wrong)
{
    for (size_t i = 0; i < c->output_elements;) {
        struct origin origin = call_origin(c, i);
        struct expected expected = {.values = origin.kind == ORIGIN_INPUT ? values : NULL,
                                    .first = origin.first,
                                    .last = origin.last,
                                    .index = origin.index,
                                    .type_bytes = c->type_bytes};
        rondo_result_t code = RONDO_SUCCESS;
        if (origin.kind != ORIGIN_ANYTHING)
            code = compare(device, c->output + i * c->type_bytes, origin.length, &expected, wrong);
        if (code != RONDO_SUCCESS)
            return code;
        i += origin.length;
    }
    return RONDO_SUCCESS;
}

rondo_result_t check_result(const struct call *c, const struct values *values, const struct check_buffers *buffers,
                            uint64_t *wrong)
{
    struct buffers *device = buffers->device;
    const struct expected guard = {.type_bytes = 1};
    const struct expected mine = {.values = values, .first = c->rank, .last = c->rank, .type_bytes = c->type_bytes};
    const char *input_end = buffers->input + c->input_elements * c->type_bytes;
    const char *output_end = buffers->output + c->output_elements * c->type_bytes;
    bool apart = input_is_apart(c, buffers);
    rondo_result_t code = check_output(c, values, device, wrong);
    if (code == RONDO_SUCCESS && apart)
        code = compare(device, c->input, c->input_elements, &mine, wrong);
    if (code == RONDO_SUCCESS)
        code = compare(device, buffers->input - CHECK_GUARD, CHECK_GUARD, &guard, wrong);
    if (code == RONDO_SUCCESS)
        code = compare(device, buffers->output - CHECK_GUARD, CHECK_GUARD, &guard, wrong);
    if (code == RONDO_SUCCESS && apart)
        code = compare(device, input_end, CHECK_GUARD, &guard, wrong);
    return code == RONDO_SUCCESS ? compare(device, output_end, CHECK_GUARD, &guard, wrong) : code;
}

/* Of the machine's clock, as a double: exact to the nanosecond for a hundred days. */
static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

/* Ranks compare readings of one clock, so they must share it: the boot's. */
static rondo_result_t share_clock(struct rank *rank, bool *shared)
{
    char boot[64] = "", first[64];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL) {
        if (fgets(boot, sizeof(boot), file) == NULL)
            boot[0] = '\0';
        fclose(file);
    }
    memcpy(first, boot, sizeof(first));
    rondo_result_t code = ranks_share(rank, first, sizeof(first));
    uint64_t others = strcmp(boot, first) != 0 || file == NULL;
    if (code == RONDO_SUCCESS)
        code = ranks_total(rank, &others, 1);
    *shared = others == 0;
    return code;
}

rondo_result_t check_barrier(struct rank *rank, struct call *c, enum form mode, uint64_t seed, uint64_t *wrong)
{
    bool shared;
    rondo_result_t code = share_clock(rank, &shared);
    *wrong = 0;
    for (int round = 0; shared && code == RONDO_SUCCESS && round < 20; round++) {
        /* One rank comes late, a different one each time. */
        uint64_t late = (seed + (uint64_t) round) % (uint64_t) c->ranks;
        if (late == (uint64_t) c->rank)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        double last = nanoseconds();
        if ((code = call_run(c, mode)) != RONDO_SUCCESS || (code = call_finish(c, mode)) != RONDO_SUCCESS)
            break;
        double out = nanoseconds();
        code = ranks_most(rank, &last, 1);
        *wrong |= out < last;
    }
    return code;
}
