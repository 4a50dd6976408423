/* Short steps: which operations have them, what they move, and where an operation stands that has to wait. A rank alone, with
 * ends whose peers are words and slots of the test's. */
#include "device/abi/structures.h"
#include "rondo.h"
#include "device/engine/short_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define ENDS  3
#define COUNT 2 /* elements of a chunk */
#define SLOTS 4
#define SLOT  64

static struct {
    struct rondo_instruction instructions[RONDO_SHORT_STEPS + 1];
    struct rondo_end ends[ENDS];
    uint64_t watched[ENDS], published[ENDS];
    char slots[ENDS][SLOTS * SLOT] __attribute__((aligned(64)));
    float input[ENDS * COUNT], output[ENDS * COUNT];
    struct rondo_part part;
    struct rondo_operation operation;
    struct rondo_short_steps steps;
} rank;

static int set_up(void **state)
{
    (void) state;
    rondo_short_steps_forget(&rank.steps);
    memset(&rank, 0, sizeof(rank));
    for (int e = 0; e < ENDS; e++)
        rank.ends[e] = (struct rondo_end){.watched = &rank.watched[e],
                                          .published = &rank.published[e],
                                          .slots = rank.slots[e],
                                          .slot_bytes = SLOT,
                                          .slot_count = SLOTS,
                                          .protocol = RONDO_PROTOCOL_SMALL,
                                          .peer = e + 1};
    rank.part = (struct rondo_part){.instructions = rank.instructions, .row = rank.ends, .end_count = ENDS};
    rank.operation = (struct rondo_operation){.parts = &rank.part,
                                              .blocks = 1,
                                              .tiles = 1,
                                              .tile = COUNT,
                                              .slices = 1,
                                              .slice = COUNT,
                                              .element_bytes = sizeof(float),
                                              .type = RONDO_FLOAT,
                                              .op = RONDO_SUM,
                                              .plain_slots = 1};
    rank.operation.buffers[RONDO_INPUT] = (char *) rank.input;
    rank.operation.buffers[RONDO_OUTPUT] = (char *) rank.output;
    for (int b = 0; b < RONDO_BUFFERS; b++)
        rank.operation.layouts[b] = (struct rondo_layout){.group_count = COUNT, .chunk_count = COUNT, .group_chunks = 1};
    for (int i = 0; i < ENDS * COUNT; i++)
        rank.input[i] = (float) (i + 1);
    return 0;
}

static void add(struct rondo_instruction instruction)
{
    instruction.count = instruction.count == 0 ? 1 : instruction.count;
    rank.instructions[rank.part.instruction_count++] = instruction;
}

static void send_to(uint8_t end, uint32_t chunk)
{
    add((struct rondo_instruction){.actions = RONDO_SEND, .source_index = chunk, .send_first = end, .send_count = 1});
}

static void receive_from(uint8_t end, uint32_t chunk)
{
    add((struct rondo_instruction){.actions = RONDO_RECEIVE | RONDO_COPY,
                                   .destination_buffer = RONDO_OUTPUT,
                                   .destination_index = chunk,
                                   .receive_first = end,
                                   .receive_count = 1});
}

static uint32_t run(void)
{
    return rondo_short_steps_run(&rank.operation, &rank.steps, 1);
}

/* What the first so many steps count as. */
static struct rondo_block_statistics counted(uint32_t done)
{
    struct rondo_block_statistics statistics = {0};
    rondo_short_steps_count(&rank.steps, done, &statistics);
    return statistics;
}

static void find(uint32_t count)
{
    rondo_short_steps_forget(&rank.steps);
    rondo_short_steps_find(&rank.operation, &rank.steps);
    assert_int_equal(rank.steps.count, count);
}

/* The end's peer fills its slots up to this count, the last one with these floats. */
static void arrives(int end, uint64_t count, float first, float second)
{
    const float values[COUNT] = {first, second};
    memcpy(rank.slots[end] + (count - 1) % SLOTS * SLOT, values, sizeof(values));
    rank.watched[end] = count;
}

/* A rank that sends to one peer, keeps a copy, and receives from another: it stands where it has to wait. */
static void test_goes_on_where_it_stood(void **state)
{
    (void) state;
    send_to(0, 1);
    add((struct rondo_instruction){.actions = RONDO_COPY, .destination_buffer = RONDO_OUTPUT, .destination_index = 2});
    receive_from(1, 0);
    find(3);
    assert_int_equal(counted(3).primitives, 3);
    assert_int_equal(counted(2).primitives, 2); /* what was done before the wait counts at once */
    assert_int_equal(counted(2).bytes_sent, counted(3).bytes_sent);
    assert_true(counted(2).bytes_sent >= COUNT * sizeof(float));
    rank.ends[0].position = SLOTS; /* all slots are full */
    assert_int_equal(run(), 0);
    assert_int_equal(rank.published[0], 0);
    rank.watched[0] = 1; /* one was given back */
    assert_int_equal(run(), 2);
    assert_ptr_equal(rank.steps.steps[2].instruction, &rank.instructions[2]);
    assert_int_equal(rank.published[0], SLOTS + 1);
    assert_memory_equal(rank.slots[0], &rank.input[COUNT], COUNT * sizeof(float));
    assert_memory_equal(&rank.output[2 * COUNT], rank.input, COUNT * sizeof(float));
    assert_int_equal(rank.ends[1].position, 0);
    arrives(1, 1, 7, 8);
    rank.watched[0] = 2;
    assert_int_equal(run(), 3);
    assert_true(rank.output[0] == 7 && rank.output[1] == 8);
    assert_int_equal(rank.ends[1].position, 1);
    assert_int_equal(rank.published[1], 1);
}

/* Chunks that go into one slot are sent together. */
static void test_chunks_of_one_slot(void **state)
{
    (void) state;
    add((struct rondo_instruction){.actions = RONDO_SEND, .count = 2, .send_count = 1});
    find(2);
    assert_int_equal(counted(2).primitives, 1);
    assert_int_equal(run(), 2);
    assert_int_equal(rank.published[0], 1);
    assert_memory_equal(rank.slots[0], rank.input, COUNT * sizeof(float));
    assert_memory_equal(rank.slots[0] + counted(2).bytes_sent / 2, &rank.input[COUNT], COUNT * sizeof(float));
}

/* Reduced in the order of ranks, when all have come and not before: 2^24 + 1 is 2^24 as a float, so the order tells. */
static void test_reduces_in_order(void **state)
{
    (void) state;
    add((struct rondo_instruction){.actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY,
                                   .flags = RONDO_FINISH,
                                   .destination_buffer = RONDO_OUTPUT,
                                   .receive_count = 2,
                                   .local_place = 1});
    find(1);
    arrives(0, 1, 16777216.0f, 1);
    assert_int_equal(run(), 0);
    assert_int_equal(rank.ends[0].position, 0);
    arrives(1, 1, -16777216.0f, 1);
    rank.input[0] = 1;
    assert_int_equal(run(), 1);
    assert_true(rank.output[0] == 0 && rank.output[1] == 4); /* (2^24 + 1) - 2^24 */
    assert_int_equal(rank.published[0], 1);
    assert_int_equal(rank.published[1], 1);
}

/* A barrier's: nothing is stored. A copy with a send is both. An empty chunk is passed over. */
static void test_other_kinds(void **state)
{
    (void) state;
    add((struct rondo_instruction){.actions = RONDO_RECEIVE, .receive_count = 2});
    add((struct rondo_instruction){
        .actions = RONDO_SEND | RONDO_COPY, .destination_buffer = RONDO_OUTPUT, .send_first = 2, .send_count = 1});
    find(3);
    assert_int_equal(counted(3).primitives, 2);
    arrives(0, 1, 5, 5);
    arrives(1, 1, 5, 5);
    assert_int_equal(run(), 3);
    assert_memory_equal(rank.output, rank.input, COUNT * sizeof(float));
    assert_memory_equal(rank.slots[2], rank.input, COUNT * sizeof(float));
    rank.operation.layouts[RONDO_INPUT].group_count = 0;
    rank.part.instruction_count = 0;
    send_to(0, 0);
    find(0);
}

static void test_has_none(void **state)
{
    (void) state;
    send_to(0, 0);
    find(1);
    rank.operation.tiles = 2;
    find(0);
    rank.operation.tiles = 1;
    rank.operation.plain_slots = 0;
    find(0);
    rank.operation.plain_slots = 1;
    rank.instructions[0].dependencies = 1;
    find(0);
    rank.instructions[0].dependencies = 0;
    rank.operation.element_bytes = RONDO_SHORT_STEPS_BYTES;
    find(0);
    rank.operation.element_bytes = sizeof(float);
    for (int i = 0; i < RONDO_SHORT_STEPS; i++)
        receive_from(1, 0);
    find(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_goes_on_where_it_stood, set_up),
        cmocka_unit_test_setup(test_chunks_of_one_slot, set_up),
        cmocka_unit_test_setup(test_reduces_in_order, set_up),
        cmocka_unit_test_setup(test_other_kinds, set_up),
        cmocka_unit_test_setup(test_has_none, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, set_up);
}
