/*
 * The table of GPU movers (device/move/mover_table.h), evaluated on the host: its rows are exhaustive, the first that takes a
 * slice operation or an operation is chosen, and every row is reached. That the rows' movers move the data is
 * test/gpu/move.cu's.
 */
#include "device/move/mover_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 200000, THREADS = 480 };

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t) ((random_state * 2685821657736338717u) >> 33) % limit;
}

/* ---- slice operations ---- */

static struct rondo_mover_facts facts_of(const struct rondo_slice_op *slice_op, uint32_t threads)
{
    const struct rondo_mover_facts facts = {threads, rondo_mover_is_flagged(slice_op), slice_op->lines};
    return facts;
}

static enum rondo_mover choose(const struct rondo_slice_op *slice_op, uint32_t threads)
{
    return rondo_mover_choose(slice_op, facts_of(slice_op, threads), (enum rondo_mover) 0, RONDO_MOVERS_COUNT);
}

static char *address(uint32_t beyond)
{
    return (char *) (uintptr_t) (0x10000000u + 256 * random_below(1 << 16) + beyond);
}

/* Two sources, one of them with flags, and a local destination: aligned sums of floats. */
static struct rondo_slice_op flagged(uint64_t count, int lines)
{
    struct rondo_slice_op slice_op;
    memset(&slice_op, 0, sizeof(slice_op));
    slice_op.count = count;
    slice_op.type = RONDO_FLOAT;
    slice_op.op = RONDO_SUM;
    slice_op.element_bytes = 4;
    slice_op.sources = 2;
    slice_op.remotes = 1;
    slice_op.ll_sources = 2;
    slice_op.ll_remotes = 1;
    slice_op.lines = (uint8_t) lines;
    slice_op.source[0] = address(0);
    slice_op.source[1] = address(0);
    slice_op.remote[0] = address(0);
    slice_op.local = address(0);
    return slice_op;
}

static struct rondo_slice_op plain(uint64_t count)
{
    struct rondo_slice_op slice_op = flagged(count, 0);
    slice_op.ll_sources = slice_op.ll_remotes = 0;
    return slice_op;
}

static void expect_row(enum rondo_mover row, struct rondo_slice_op slice_op)
{
    assert_int_equal(choose(&slice_op, THREADS), row);
}

static void each_row_is_reached(void **state)
{
    struct rondo_slice_op slice_op;
    (void) state;
    expect_row(RONDO_MOVER_LL_SMALL, flagged(1, 0));
    expect_row(RONDO_MOVER_LL_SMALL, flagged(THREADS * 2, 0));
    expect_row(RONDO_MOVER_LL, flagged(THREADS * 2 + 2, 0));
    expect_row(RONDO_MOVER_LL, flagged(THREADS * 2 * RONDO_LL_ROWS, 0));
    expect_row(RONDO_MOVER_LL128, flagged(4, 1));
    expect_row(RONDO_MOVER_LL128, flagged(1 << 16, 1));
    expect_row(RONDO_MOVER_VECTOR, plain(4));
    expect_row(RONDO_MOVER_VECTOR, plain(1 << 20));
    expect_row(RONDO_MOVER_GENERAL, plain(5)); /* ends within a vector */
    slice_op = plain(1024);
    slice_op.rate = 8;
    expect_row(RONDO_MOVER_CODEC, slice_op);
    slice_op.remotes = 0; /* nothing of it is in a slot */
    slice_op.ll_remotes = 0;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
}

/* Each condition of a row by itself. */
static void what_a_row_does_not_take(void **state)
{
    struct rondo_slice_op slice_op;
    (void) state;
    /* LL: too long, not whole packets, not aligned, another operator, type or number of sources, a division. */
    expect_row(RONDO_MOVER_GENERAL, flagged(THREADS * 2 * RONDO_LL_ROWS + 2, 0));
    expect_row(RONDO_MOVER_GENERAL, flagged(THREADS * 2 + 1, 0));
    slice_op = flagged(THREADS * 4, 0);
    slice_op.source[0] = address(4);
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = flagged(THREADS * 4, 0);
    slice_op.source[1] = address(4); /* a slot's address is not looked at: it need not be known */
    expect_row(RONDO_MOVER_LL, slice_op);
    slice_op = flagged(8, 0);
    slice_op.op = RONDO_MAX;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op.sources = 1; /* a copy has no operator */
    slice_op.ll_sources = 1;
    expect_row(RONDO_MOVER_LL_SMALL, slice_op);
    slice_op = flagged(8, 0);
    slice_op.type = RONDO_DOUBLE;
    slice_op.element_bytes = 8;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = flagged(8, 0);
    slice_op.sources = RONDO_FLAGGED_SOURCES + 1;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = flagged(8, 0);
    slice_op.average = 3;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    /* LL128: averages of floats are taken; integers' and what is not aligned are not. */
    slice_op = flagged(8, 1);
    slice_op.average = 3;
    expect_row(RONDO_MOVER_LL128, slice_op);
    slice_op.type = RONDO_INT32;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    expect_row(RONDO_MOVER_GENERAL, flagged(6, 1));
    slice_op = flagged(8, 1);
    slice_op.local = address(8);
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    /* Vectors: not aligned, a division, another operator, many sources, nowhere to store. */
    slice_op = plain(1024);
    slice_op.remote[0] = address(4);
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = plain(1024);
    slice_op.average = 2;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = plain(1024);
    slice_op.op = RONDO_PROD;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = plain(1024);
    slice_op.sources = RONDO_VECTOR_SOURCES + 1;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
    slice_op = plain(1024);
    slice_op.remotes = 0;
    slice_op.local = NULL;
    expect_row(RONDO_MOVER_GENERAL, slice_op);
}

/* An own source whose address is not known when the mover is chosen keeps it from the rows that load it early. */
static void unknown_own_sources(void **state)
{
    const struct rondo_slice_op slice_op = flagged(8, 0);
    struct rondo_mover_facts facts = facts_of(&slice_op, THREADS);
    (void) state;
    assert_int_equal(rondo_mover_choose(&slice_op, facts, RONDO_MOVER_LL_SMALL, RONDO_MOVER_RESOLVED), RONDO_MOVER_LL_SMALL);
    facts.flagged = 0;
    assert_int_equal(rondo_mover_choose(&slice_op, facts, RONDO_MOVER_LL_SMALL, RONDO_MOVER_RESOLVED), RONDO_MOVER_RESOLVED);
    assert_int_equal(rondo_mover_choose(&slice_op, facts, RONDO_MOVER_RESOLVED, RONDO_MOVERS_COUNT), RONDO_MOVER_GENERAL);
}

static struct rondo_slice_op random_slice_op(void)
{
    static const uint8_t bytes[RONDO_DATATYPE_COUNT] = {1, 1, 4, 4, 8,  8,  2, 2,  4,  8, 1, 1,
                                                        2, 2, 1, 8, 16, 16, 8, 16, 16, 8, 8, 32};
    const uint32_t off = random_below(3) == 0 ? 1 : 0;
    struct rondo_slice_op slice_op;
    memset(&slice_op, 0, sizeof(slice_op));
    slice_op.type = (uint8_t) random_below(RONDO_DATATYPE_COUNT);
    slice_op.element_bytes = bytes[slice_op.type];
    slice_op.op = (uint8_t) (random_below(2) ? RONDO_SUM : random_below(RONDO_OP_COUNT));
    slice_op.average = random_below(4) == 0 ? 1 + random_below(9) : 0;
    slice_op.count = 1 + random_below(1u << random_below(18));
    if (random_below(2))
        slice_op.count = (slice_op.count + 15) / 16 * 16;
    slice_op.sources = (uint8_t) (1 + random_below(random_below(8) == 0 ? RONDO_REDUCE_SOURCES_MAX : 3));
    slice_op.remotes = (uint8_t) random_below(3);
    slice_op.lines = (uint8_t) random_below(2);
    slice_op.local = random_below(2) ? address(off * slice_op.element_bytes) : NULL;
    for (int s = 0; s < slice_op.sources; s++)
        slice_op.source[s] = address(off * random_below(4) * slice_op.element_bytes);
    for (int r = 0; r < slice_op.remotes; r++)
        slice_op.remote[r] = address(off * random_below(4) * slice_op.element_bytes);
    if (random_below(2)) {
        slice_op.ll_sources = random_below(1u << (slice_op.sources < 8 ? slice_op.sources : 8));
        slice_op.ll_remotes = random_below(2) ? (1u << slice_op.remotes) - 1 : 0;
    } else if (random_below(4) == 0) {
        slice_op.rate = (uint8_t) (1 + random_below(32));
    }
    return slice_op;
}

/* Exactly one row, the first whose condition holds, and every row's turn comes. */
static void rows_are_exhaustive(void **state)
{
    uint32_t chosen[RONDO_MOVERS_COUNT] = {0};
    (void) state;
    for (int i = 0; i < ROUNDS; i++) {
        const struct rondo_slice_op slice_op = random_slice_op();
        const struct rondo_mover_facts facts = facts_of(&slice_op, 32 * (1 + random_below(15)));
        const int takes[RONDO_MOVERS_COUNT] = {
#define TAKES(name, condition, text) condition(&slice_op, facts),
            RONDO_MOVERS(TAKES)
#undef TAKES
        };
        int first = 0, others = 0;
        while (first < RONDO_MOVERS_COUNT && !takes[first])
            first++;
        assert_true(first < RONDO_MOVERS_COUNT);
        assert_int_equal(rondo_mover_choose(&slice_op, facts, (enum rondo_mover) 0, RONDO_MOVERS_COUNT), first);
        /* In two steps, as kernels walk. */
        enum rondo_mover mover = rondo_mover_choose(&slice_op, facts, (enum rondo_mover) 0, RONDO_MOVER_RESOLVED);
        if (mover == RONDO_MOVER_RESOLVED)
            mover = rondo_mover_choose(&slice_op, facts, RONDO_MOVER_RESOLVED, RONDO_MOVERS_COUNT);
        assert_int_equal(mover, first);
        /* LL, LL128, plain vectors and streams exclude each other; small LL pieces fit the longer row, too. */
        others = (takes[RONDO_MOVER_LL_SMALL] || takes[RONDO_MOVER_LL]) + takes[RONDO_MOVER_LL128] + takes[RONDO_MOVER_VECTOR];
        assert_true(others <= 1);
        assert_true(takes[RONDO_MOVER_GENERAL]);
        assert_false(takes[RONDO_MOVER_VECTOR] && takes[RONDO_MOVER_CODEC]);
        chosen[first]++;
    }
    for (int row = 0; row < RONDO_MOVERS_COUNT; row++)
        assert_true(chosen[row] > 0);
}

/* ---- launches ---- */

/* One block that receives, reduces, stores and sends. */
struct launch {
    struct rondo_operation operation;
    struct rondo_program program;
    struct rondo_program_block block;
    struct rondo_instruction instructions[2];
    int repeats;
};

static struct launch launch_of(int protocol)
{
    struct launch launch;
    memset(&launch, 0, sizeof(launch));
    launch.operation.protocol = (uint8_t) protocol;
    launch.operation.type = RONDO_FLOAT;
    launch.operation.op = RONDO_SUM;
    launch.operation.element_bytes = 4;
    launch.operation.slices = 1;
    launch.operation.tiles = 1;
    launch.operation.tile = launch.operation.slice = 1024;
    for (int b = 0; b < RONDO_BUFFERS; b++) {
        launch.operation.layouts[b].group_count = launch.operation.layouts[b].chunk_count = 1024;
        launch.operation.layouts[b].group_chunks = 1;
        launch.program.chunks[b] = 1;
    }
    launch.program.blocks = 1;
    launch.block.instructions = 2;
    launch.block.ends = 2;
    for (int i = 0; i < 2; i++) {
        launch.instructions[i].actions = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | RONDO_SEND;
        launch.instructions[i].count = launch.instructions[i].receive_count = launch.instructions[i].send_count = 1;
    }
    return launch;
}

static void expect_mode(enum rondo_warp_mode mode, struct launch launch)
{
    const struct rondo_launch_facts facts = {&launch.operation, &launch.program, &launch.block, launch.instructions,
                                             launch.repeats};
    int holds = 0;
#define HOLDS(name, condition, text) holds += condition(&facts) && RONDO_WARP_MODE_##name == mode;
    RONDO_LAUNCH_MOVERS(HOLDS)
#undef HOLDS
    assert_int_equal(holds, 1);
    assert_int_equal(rondo_launch_choose(&facts), mode);
}

static void each_launch_row_is_reached(void **state)
{
    struct launch launch;
    (void) state;
    expect_mode(RONDO_WARP_MODE_TMA, launch_of(RONDO_PROTOCOL_TMA));
    expect_mode(RONDO_WARP_MODE_LINES, launch_of(RONDO_PROTOCOL_LL128));
    expect_mode(RONDO_WARP_MODE_NOT, launch_of(RONDO_PROTOCOL_SIMPLE));
    expect_mode(RONDO_WARP_MODE_NOT, launch_of(RONDO_PROTOCOL_LL));
    launch = launch_of(RONDO_PROTOCOL_LL128); /* one slice operation, whole: the engine's shorter way */
    launch.block.instructions = 1;
    expect_mode(RONDO_WARP_MODE_NOT, launch);
    launch.operation.layouts[RONDO_INPUT].group_count = 1023; /* not whole */
    expect_mode(RONDO_WARP_MODE_LINES, launch);
}

static void what_a_launch_row_does_not_take(void **state)
{
    (void) state;
    for (int tma = 0; tma < 2; tma++) {
        const struct launch fits = launch_of(tma ? RONDO_PROTOCOL_TMA : RONDO_PROTOCOL_LL128);
        struct launch launch = fits;
        launch.repeats = 1;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.operation.buffers[RONDO_OUTPUT] = address(4);
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.block.ends = RONDO_WARP_ENDS + 1;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.operation.op = RONDO_MAX;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.operation.type = RONDO_DOUBLE;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.instructions[1].flags = RONDO_NOTIFY;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.instructions[1].dependencies = 1;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.instructions[0].receive_count = RONDO_WARP_WIDTH;
        expect_mode(RONDO_WARP_MODE_NOT, launch);
        launch = fits;
        launch.operation.average = 2;
        expect_mode(tma ? RONDO_WARP_MODE_TMA : RONDO_WARP_MODE_LINES, launch);
        launch.operation.type = RONDO_INT32; /* integers' averages are not in registers */
        expect_mode(RONDO_WARP_MODE_NOT, launch);
    }
    struct launch launch = launch_of(RONDO_PROTOCOL_LL128);
    launch.operation.slices = 2;
    expect_mode(RONDO_WARP_MODE_NOT, launch);
    launch = launch_of(RONDO_PROTOCOL_TMA); /* bulk copies end with a vector, lines need not */
    launch.operation.layouts[RONDO_INPUT].group_count = 1023;
    expect_mode(RONDO_WARP_MODE_NOT, launch);
}

static void kernels_of_launches(void **state)
{
    (void) state;
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_TMA, 0, 1, 0), RONDO_WARP_MODE_TMA);
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_TMA, 0, 0, 0),
                     RONDO_WARP_MODE_NOT); /* beside operations of other modes */
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_TMA, 1, 1, 0), RONDO_WARP_MODE_NOT); /* in a group */
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_LINES, 0, 0, 1), RONDO_WARP_MODE_LINES);
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_LINES, 0, 0, 0), RONDO_WARP_MODE_NOT);
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_LINES, 1, 0, 1), RONDO_WARP_MODE_NOT);
    assert_int_equal(rondo_launch_mode(RONDO_WARP_MODE_NOT, 0, 1, 1), RONDO_WARP_MODE_NOT);
    assert_true(rondo_launch_may_tma(1, 1, 64));
    assert_false(rondo_launch_may_tma(0, 1, 64));
    assert_false(rondo_launch_may_tma(1, 0, 64));
    assert_false(rondo_launch_may_tma(1, 1, 72));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_reached),        cmocka_unit_test(what_a_row_does_not_take),
        cmocka_unit_test(unknown_own_sources),        cmocka_unit_test(rows_are_exhaustive),
        cmocka_unit_test(each_launch_row_is_reached), cmocka_unit_test(what_a_launch_row_does_not_take),
        cmocka_unit_test(kernels_of_launches)};
    return cmocka_run_group_tests_name("movers", tests, NULL, NULL);
}
