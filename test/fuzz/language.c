/*
 * The language and the compiler: the input is a sequence of valid calls, and the value that each output chunk ends with becomes
 * its requirement. Such a program must compile for any number of blocks and slots, be accepted by the verifier, and compute the
 * right result when its plans are simulated (test/unit/support/plans.h).
 */
#include "test/unit/support/plans.h"

#include "lib/base/error.h"
#include "lib/program/program.h"
#include "rondo_program.h"

#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { RANKS = 5, CHUNKS = 4, PLACES = 3 * CHUNKS, TERMS = 48, CALLS = 60, CALL_BYTES = 6 };

/* The contents of a chunk: how often it includes each input chunk. terms 0: nothing. */
struct held {
    uint8_t times[RANKS * CHUNKS], terms;
};

struct writing {
    rondo_program_t program;
    int ranks, depth;
    uint32_t factor;
    struct held held[RANKS][PLACES];
};

struct row {
    int rank, buffer;
    size_t index;
    struct held *held;
};

static struct row row_at(struct writing *w, uint8_t rank, uint8_t place)
{
    struct row row = {rank % w->ranks, place % 3, (size_t) (place / 3 % CHUNKS), NULL};
    row.held = &w->held[row.rank][row.buffer * CHUNKS + (int) row.index];
    return row;
}

static int may_combine(const struct held *a, const struct held *b, size_t count)
{
    for (size_t k = 0; k < count; k++)
        if (a[k].terms == 0 || b[k].terms == 0 || a[k].terms + b[k].terms > TERMS)
            return 0;
    return 1;
}

static void call(struct writing *w, const uint8_t *data)
{
    struct row to = row_at(w, data[1], data[2]), from = row_at(w, data[3], data[4]);
    size_t count = 1 + (size_t) data[5] % CHUNKS, most = CHUNKS - (to.index > from.index ? to.index : from.index);
    count = count < most ? count : most;
    int overlap =
        to.rank == from.rank && to.buffer == from.buffer && to.index < from.index + count && from.index < to.index + count;
    for (size_t k = 0; k < count; k++)
        if (from.held[k].terms == 0)
            return;
    switch (data[0] % 16) {
    case 0:
        rondo_program_channel(w->program, data[1] % 4 - 1);
        return;
    case 1:
        if (w->depth < 2) {
            rondo_program_parallelize(w->program, 1 + data[1] % 3);
            w->depth++;
        }
        return;
    case 2:
        if (w->depth > 0) {
            rondo_program_serialize(w->program);
            w->depth--;
        }
        return;
    default:
        break;
    }
    if (overlap)
        return;
    rondo_chunk_t c = rondo_chunk(w->program, from.rank, (rondo_buffer_t) from.buffer, from.index, count);
    if (data[0] % 16 < 10) {
        rondo_chunk_copy(c, to.rank, (rondo_buffer_t) to.buffer, to.index);
        for (size_t k = 0; k < count; k++)
            to.held[k] = from.held[k];
    } else if (may_combine(to.held, from.held, count)) {
        rondo_chunk_reduce(rondo_chunk(w->program, to.rank, (rondo_buffer_t) to.buffer, to.index, count), c);
        for (size_t k = 0; k < count; k++) {
            to.held[k].terms = (uint8_t) (to.held[k].terms + from.held[k].terms);
            for (int t = 0; t < RANKS * CHUNKS; t++)
                to.held[k].times[t] = (uint8_t) (to.held[k].times[t] + from.held[k].times[t]);
        }
    }
}

/* Returns whether the program computes anything. */
static int require(struct writing *w)
{
    int required = 0;
    for (int rank = 0; rank < w->ranks; rank++)
        for (size_t i = 0; i < CHUNKS; i++) {
            const struct held *held = &w->held[rank][RONDO_BUFFER_OUTPUT * CHUNKS + (int) i];
            int ranks[TERMS], count = 0;
            size_t indexes[TERMS];
            for (int t = 0; t < RANKS * CHUNKS; t++)
                for (int k = 0; k < held->times[t]; k++, count++) {
                    ranks[count] = t / CHUNKS;
                    indexes[count] = (size_t) (t % CHUNKS);
                }
            if (count > 0)
                rondo_program_require(w->program, rank, i, count, ranks, indexes);
            required |= count > 0;
        }
    return required;
}

static void judge(rondo_program_t program, uint8_t blocks, uint8_t slots)
{
    rondo_program_limits_t limits = {1 + slots % PLAYED_SLOTS, 1 + blocks % 12, 0};
    struct rondo_verify_limits proved = {(uint32_t) limits.slots, RONDO_COMPILE_BLOCKS_MAX, 0};
    struct rondo_compile_options options = {
        .blocks = (uint32_t) limits.blocks, .slots = (uint32_t) limits.slots, .exchanges = slots >> 7, .apart = slots >> 6 & 1};
    struct rondo_plan_set *set;
    if (rondo_program_check(program, &limits) != RONDO_SUCCESS || plans_compile(program, &options, -1, &set) != RONDO_SUCCESS ||
        rondo_verify_plans(set, "fuzz", &proved, 0) != RONDO_SUCCESS) {
        fprintf(stderr, "refused: %s\n", rondo_last_error());
        abort();
    }
    for (uint32_t play = 0; play < 2; play++)
        if (!plans_play(set, 0, 1 + play * set->conditions.block_chunks / 2, 5 + play))
            abort();
    rondo_plan_set_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct writing w = {.ranks = bytes > 0 ? 2 + data[0] % (RANKS - 1) : 2};
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    signature.name = "fuzz", signature.collective = "custom", signature.ranks = w.ranks;
    signature.inputs = signature.outputs = CHUNKS;
    if (bytes < 3 || rondo_program_create(&w.program, &signature) != RONDO_SUCCESS)
        return 0;
    for (int rank = 0; rank < w.ranks; rank++)
        for (int i = 0; i < CHUNKS; i++) {
            w.held[rank][i].terms = 1;
            w.held[rank][i].times[rank * CHUNKS + i] = 1;
        }
    for (size_t at = 3; at + CALL_BYTES <= bytes && at < 3 + CALLS * CALL_BYTES; at += CALL_BYTES)
        call(&w, data + at);
    while (w.depth-- > 0)
        rondo_program_serialize(w.program);
    if (require(&w))
        judge(w.program, data[1], data[2]);
    rondo_program_destroy(w.program);
    return 0;
}
