/* The choices of ranks on GPUs: a program for every call, no more blocks than allowed, and LL128 only where it can be used. */
#include "lib/select/select_gpu.h"

#include "lib/submission/arguments.h"
#include "lib/communicator/comm.h"
#include "lib/algorithms/algorithms.h"
#include "lib/connection/plan_cache.h"
#include "lib/context/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct rondo_runtime runtime;
static struct rondo_comm world, other;
static struct rondo_comm_programs programs; /* none is registered */

static void set_up(int size, int linked, uint32_t channels, uint32_t stream_blocks)
{
    memset(&runtime, 0, sizeof(runtime));
    memset(&world, 0, sizeof(world));
    runtime.size = world.size = size;
    runtime.settings.channels = channels;
    runtime.settings.stream_blocks = stream_blocks;
    runtime.world = &world;
    world.runtime = &runtime;
    world.programs = &programs;
    world.gpus_only = 1;
    world.linked = world.tma = linked;
    other = world;
}

static int blocks_of(const struct rondo_comm *comm, const struct rondo_call *call, const struct rondo_choice *choice)
{
    return choice->channels * rondo_algorithm_blocks(choice->algorithm, call->kind, comm->size) + choice->algorithm->keepers;
}

static void check(const struct rondo_comm *comm, enum rondo_kind kind, size_t bytes, int in_place, int streamed)
{
    static char from, to;
    struct rondo_choice choice = {0};
    struct rondo_call call = {
        .kind = kind, .type = RONDO_INT8, .op = RONDO_SUM, .send = in_place ? RONDO_IN_PLACE : &from, .recv = &to};
    int per_rank = kind == RONDO_KIND_ALLGATHER || kind == RONDO_KIND_REDUCE_SCATTER_BLOCK || kind == RONDO_KIND_ALLTOALL;
    call.count = per_rank ? bytes / (size_t) comm->size : bytes;
    assert_true(rondo_select_gpu(comm, &call, 0, streamed, &choice));
    assert_non_null(choice.algorithm);
    assert_null(rondo_misfit(comm, &call, 0, choice.algorithm));
    assert_true(choice.channels >= 1);
    assert_true(choice.protocol != RONDO_PROTOCOL_LL128 || comm->linked);
    int most = rondo_select_gpu_blocks(comm, streamed, 0);
    int single = rondo_algorithm_blocks(choice.algorithm, kind, comm->size) + choice.algorithm->keepers;
    assert_true(blocks_of(comm, &call, &choice) <= (most > single ? most : single));
}

static void check_all(const struct rondo_comm *comm, int streamed)
{
    static const enum rondo_kind kinds[] = {RONDO_KIND_ALLREDUCE, RONDO_KIND_ALLGATHER, RONDO_KIND_REDUCE_SCATTER_BLOCK,
                                            RONDO_KIND_ALLTOALL,  RONDO_KIND_BCAST,     RONDO_KIND_REDUCE,
                                            RONDO_KIND_SEND_TO};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t bytes = 16; bytes <= (size_t) 4 << 30; bytes *= 4)
            for (int in_place = 0; in_place < 2; in_place++)
                check(comm, kinds[k], bytes, in_place && kinds[k] != RONDO_KIND_SEND_TO, streamed);
}

static void test_a_program_for_every_call(void **state)
{
    (void) state;
    for (int size = 2; size <= 16; size++)
        for (int linked = 0; linked < 2; linked++)
            for (int streamed = 0; streamed < 2; streamed++) {
                set_up(size, linked, 32, 0);
                check_all(&world, streamed);
                check_all(&other, streamed);
                set_up(size, linked, 32, 24);
                check_all(&world, streamed);
                set_up(size, linked, 4, 0);
                check_all(&world, streamed);
            }
}

static void test_blocks(void **state)
{
    (void) state;
    set_up(4, 1, 32, 0);
    assert_int_equal(rondo_select_gpu_blocks(&world, 1, 0), 64);
    assert_int_equal(rondo_select_gpu_blocks(&world, 0, 0), 32);
    assert_int_equal(rondo_select_gpu_blocks(&other, 1, 0), 32); /* not the world's number */
    set_up(4, 1, 32, 24);
    assert_int_equal(rondo_select_gpu_blocks(&world, 1, 0), 24);
    assert_int_equal(rondo_select_gpu_blocks(&other, 1, 0), 24);
    assert_int_equal(rondo_select_gpu_blocks(&world, 0, 0), 32);
    set_up(4, 1, 8, 24);
    assert_int_equal(rondo_select_gpu_blocks(&world, 1, 0), 16);
    for (int coded = 0; coded < 2; coded++) { /* two compressing blocks run on each multiprocessor */
        set_up(4, 0, 120, 0);
        assert_int_equal(rondo_select_gpu_blocks(&world, 1, coded), coded ? 240 : 120);
        assert_int_equal(rondo_select_gpu_blocks(&world, 0, coded), 120);
        assert_int_equal(rondo_select_gpu_blocks(&other, 1, coded), 120);
        world.networked = 1;
        assert_int_equal(rondo_select_gpu_blocks(&world, 1, coded), 120);
    }
}

/* A call that names an algorithm and channels gets no more blocks either. */
static void test_asked_for(void **state)
{
    static char from, to;
    struct rondo_call call = {.kind = RONDO_KIND_ALLGATHER, .type = RONDO_INT8, .send = &from, .recv = &to, .count = 1 << 20};
    struct rondo_choice choice = {0};
    (void) state;
    for (uint32_t limit = 0; limit <= 24; limit += 24) {
        set_up(4, 1, 32, limit);
        runtime.settings.wanted_channels = 64;
        assert_int_equal(rondo_select(&world, &call, 0, 1, "pairs", &choice), RONDO_SUCCESS);
        assert_int_equal(blocks_of(&world, &call, &choice), limit == 0 ? 60 : 24);
        assert_int_equal(rondo_select(&world, &call, 0, 1, "ring", &choice), RONDO_SUCCESS);
        assert_int_equal(blocks_of(&world, &call, &choice), limit == 0 ? 64 : 24);
    }
}

/* The tma protocol is used on request where all GPUs support it. */
static void test_tma_asked_for(void **state)
{
    static char from, to;
    struct rondo_call call = {.kind = RONDO_KIND_ALLREDUCE, .type = RONDO_FLOAT, .send = &from, .recv = &to, .count = 1 << 20};
    struct rondo_choice choice = {0};
    (void) state;
    for (int tma = 0; tma < 2; tma++) {
        set_up(4, 1, 32, 0);
        world.tma = tma;
        strcpy(runtime.settings.protocol, "tma");
        assert_int_equal(rondo_select(&world, &call, 0, 1, "ring", &choice), RONDO_SUCCESS);
        assert_int_equal(choice.protocol, tma ? RONDO_PROTOCOL_TMA : RONDO_PROTOCOL_SIMPLE);
    }
}

/* The tma protocol is also chosen for large all-to-alls between two ranks, of whole vectors and on a stream. */
static void test_tma(void **state)
{
    static char from, to;
    static const struct {
        int size;
        size_t count;
        int has, streamed, tma;
    } cases[] = {
        {2, (size_t) 8 << 20, 1, 1, 1}, {2, (size_t) 1 << 20, 1, 1, 0},       {4, (size_t) 8 << 20, 1, 1, 0},
        {2, (size_t) 8 << 20, 0, 1, 0}, {2, ((size_t) 8 << 20) + 1, 1, 1, 0}, {2, (size_t) 8 << 20, 1, 0, 0},
    };
    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rondo_call call = {
            .kind = RONDO_KIND_ALLTOALL, .type = RONDO_FLOAT, .send = &from, .recv = &to, .count = cases[i].count};
        struct rondo_choice choice = {0};
        set_up(cases[i].size, 1, 32, 0);
        world.tma = cases[i].has;
        assert_int_equal(rondo_select(&world, &call, 0, cases[i].streamed, NULL, &choice), RONDO_SUCCESS);
        assert_int_equal(choice.protocol == RONDO_PROTOCOL_TMA, cases[i].tma);
    }
}

/* Direct writes are chosen for large messages between ranks of one process, on streams only, and for all-to-alls and
 * all-gathers of two ranks. */
static void test_direct_write(void **state)
{
    static char from, to;
    static const struct {
        enum rondo_kind kind;
        int size;
        size_t count;
        int streamed, direct_writes;
    } cases[] = {
        {RONDO_KIND_SEND_TO, 4, (size_t) 16 << 20, 1, 1},    {RONDO_KIND_RECEIVE_FROM, 4, (size_t) 16 << 20, 1, 1},
        {RONDO_KIND_SEND_TO, 4, (size_t) 16 << 20, 0, 0},    {RONDO_KIND_SEND_TO, 4, (size_t) 4 << 20, 1, 0},
        {RONDO_KIND_ALLTOALL, 2, (size_t) 16 << 20, 1, 1},   {RONDO_KIND_ALLTOALL, 2, (size_t) 4 << 20, 1, 0},
        {RONDO_KIND_ALLTOALL, 4, (size_t) 16 << 20, 1, 1},   {RONDO_KIND_ALLGATHER, 2, (size_t) 16 << 20, 1, 1},
        {RONDO_KIND_ALLGATHER, 2, (size_t) 8 << 20, 1, 0},   {RONDO_KIND_ALLGATHER, 4, (size_t) 16 << 20, 1, 0},
        {RONDO_KIND_ALLREDUCE, 2, (size_t) 256 << 20, 1, 0}, {RONDO_KIND_BCAST, 2, (size_t) 256 << 20, 1, 1},
        {RONDO_KIND_BCAST, 3, (size_t) 256 << 20, 1, 0},     {RONDO_KIND_REDUCE, 2, (size_t) 256 << 20, 1, 0},
    };
    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int direct_writes = 0; direct_writes < 2; direct_writes++) {
            struct rondo_call call = {
                .kind = cases[i].kind, .type = RONDO_INT8, .send = &from, .recv = &to, .count = cases[i].count};
            struct rondo_choice choice = {0};
            set_up(cases[i].size, 1, 32, 0);
            world.direct_writes = direct_writes;
            assert_int_equal(rondo_select(&world, &call, 0, cases[i].streamed, NULL, &choice), RONDO_SUCCESS);
            assert_int_equal(choice.direct_writes, direct_writes && cases[i].direct_writes);
            assert_true(!choice.direct_writes || choice.protocol == RONDO_PROTOCOL_SIMPLE);
        }
}

/* Over a network the number of channels follows the proxy threads, unless NICs move the data. */
static void test_network(void **state)
{
    static const struct {
        uint32_t carriers;
        int channels;
    } rows[] = {{0, 8}, {1, 2}, {2, 4}, {3, 6}, {4, 8}, {8, 8}};
    static char from, to;
    struct rondo_call call = {
        .kind = RONDO_KIND_ALLREDUCE, .type = RONDO_INT8, .op = RONDO_SUM, .send = &from, .recv = &to, .count = 64 << 20};
    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rondo_choice choice = {0};
        set_up(2, 0, 32, 0);
        world.networked = 1;
        world.carriers = rows[i].carriers;
        assert_int_equal(rondo_select(&world, &call, 0, 1, "ring", &choice), RONDO_SUCCESS);
        assert_int_equal(choice.channels, rows[i].channels);
        runtime.settings.wanted_channels = 5;
        assert_int_equal(rondo_select(&world, &call, 0, 1, "ring", &choice), RONDO_SUCCESS);
        assert_int_equal(choice.channels, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_for_every_call),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_tma_asked_for),
        cmocka_unit_test(test_tma),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_direct_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
