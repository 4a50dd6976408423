/*
 * The host device with the loop of the ring's all-reduce unrolled by hand, for two and for four ranks on one channel: the
 * compiler knows the instructions, and only the number of the first chunk is read from them. Everything else is interpreted as
 * usual. Linked into build/rondo-unrolled in place of device/host/host.c; `make interpreter-cost` measures both.
 */
#define rondo_interpret  rondo_interpret_all
#define rondo_engine_run rondo_engine_run_all
#include "device/engine/engine.h"
#undef rondo_interpret
#undef rondo_engine_run

#define FLAT static inline __attribute__((always_inline))

FLAT int step(struct rondo_run *run, const int actions, const int flags, uint32_t chunk)
{
    const struct rondo_instruction instruction = {.actions = (uint8_t) actions,
                                                  .flags = (uint8_t) flags,
                                                  .source_buffer = RONDO_INPUT,
                                                  .destination_buffer = RONDO_OUTPUT,
                                                  .source_index = chunk,
                                                  .destination_index = chunk,
                                                  .count = 1,
                                                  .receive_first = 1,
                                                  .receive_count = actions & RONDO_RECEIVE ? 1 : 0,
                                                  .send_count = actions & RONDO_SEND ? 1 : 0};
    if (!rondo_run_slices(run, &instruction))
        return 0;
    run->instruction++;
    run->advanced = 1;
    return 1;
}

#define SEND_FIRST       step(run, RONDO_SEND, 0, first)
#define ADD_AND_PASS(k)  step(run, RONDO_RECEIVE | RONDO_REDUCE | RONDO_SEND, 0, (first + n - (k)) % n)
#define COMPLETE(k)      step(run, RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | RONDO_SEND, RONDO_FINISH, (first + n - (k)) % n)
#define KEEP_AND_PASS(k) step(run, RONDO_RECEIVE | RONDO_COPY | RONDO_SEND, 0, (first + n - (k)) % n)
#define KEEP(k)          step(run, RONDO_RECEIVE | RONDO_COPY, 0, (first + n - (k)) % n)
#define OR_STUCK(made)                                                                                                         \
    if (!(made))                                                                                                               \
    return RONDO_OUTCOME_STUCK

__attribute__((flatten, noinline)) static enum rondo_outcome ring_of_two(struct rondo_run *run, uint32_t first)
{
    const uint32_t n = 2;
    for (; run->tile < run->operation->tiles; run->tile++, run->instruction = 0)
        switch (run->instruction) {
        case 0:
            OR_STUCK(SEND_FIRST);
            __attribute__((fallthrough));
        case 1:
            OR_STUCK(COMPLETE(1));
            __attribute__((fallthrough));
        default:
            OR_STUCK(KEEP(2));
        }
    return RONDO_OUTCOME_FINISHED;
}

__attribute__((flatten, noinline)) static enum rondo_outcome ring_of_four(struct rondo_run *run, uint32_t first)
{
    const uint32_t n = 4;
    for (; run->tile < run->operation->tiles; run->tile++, run->instruction = 0)
        switch (run->instruction) {
        case 0:
            OR_STUCK(SEND_FIRST);
            __attribute__((fallthrough));
        case 1:
            OR_STUCK(ADD_AND_PASS(1));
            __attribute__((fallthrough));
        case 2:
            OR_STUCK(ADD_AND_PASS(2));
            __attribute__((fallthrough));
        case 3:
            OR_STUCK(COMPLETE(3));
            __attribute__((fallthrough));
        case 4:
            OR_STUCK(KEEP_AND_PASS(4));
            __attribute__((fallthrough));
        case 5:
            OR_STUCK(KEEP_AND_PASS(5));
            __attribute__((fallthrough));
        default:
            OR_STUCK(KEEP(6));
        }
    return RONDO_OUTCOME_FINISHED;
}

/* Whether the list is that of a ring of n ranks. Checked once for each run, as the choice of a ring kernel would be. */
static int is_ring(const struct rondo_part *part, uint32_t n)
{
    const struct rondo_instruction *list = part->instructions;
    return part->instruction_count == 2 * n - 1 && part->end_count == 2 && list[0].actions == RONDO_SEND &&
           list[0].source_buffer == RONDO_INPUT &&
           list[n - 1].actions == (RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | RONDO_SEND) &&
           list[n - 1].flags == RONDO_FINISH && list[2 * n - 2].actions == (RONDO_RECEIVE | RONDO_COPY);
}

static enum rondo_outcome rondo_engine_run(struct rondo_run *run)
{
    const struct rondo_part *part = run->program_block == 0 ? &run->home->first : &run->home->parts[run->program_block];
    int two = is_ring(part, 2), four = is_ring(part, 4);
    if (!two && !four)
        return rondo_engine_run_all(run);
    struct rondo_context *context = run->context;
    uint32_t first = part->instructions[0].source_index;
    run->pending = 0;
    run->described = 0;
    run->advanced = 0;
    run->tile = context->tile;
    run->instruction = context->instruction;
    run->slice = context->slice;
    run->slice_op = context->slice_op;
    rondo_workers_load(run->workers, run);
    run->element_bytes = run->operation->element_bytes;
    enum rondo_outcome outcome = two ? ring_of_two(run, first) : ring_of_four(run, first);
    rondo_arrive(run);
    rondo_settle(run);
    context->tile = run->tile;
    context->instruction = run->instruction;
    context->slice = run->slice;
    context->slice_op = run->slice_op;
    rondo_workers_unload(run->workers, run);
    return outcome;
}

#include "device/host/host.c"
