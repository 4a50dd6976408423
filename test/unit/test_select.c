/* The choices of ranks on one host for small all-reduces, by their number and by whether each has a core, and the slots that
 * they use. */
#include "lib/select/select.h"

#include "lib/algorithms/algorithms.h"
#include "lib/connection/plan_cache.h"
#include "lib/context/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct members {
    int size, oversubscribed, same_host, gpus_only, multicast;
};

static struct rondo_choice choose_for(enum rondo_kind kind, struct members members, size_t count)
{
    static struct rondo_runtime runtime;
    static struct rondo_comm world;
    static struct rondo_comm_programs programs; /* none is registered */
    static char from, to;
    struct rondo_choice choice = {0};
    struct rondo_call call = {.kind = kind, .type = RONDO_INT8, .op = RONDO_SUM, .send = &from, .recv = &to, .count = count};
    memset(&runtime, 0, sizeof(runtime));
    memset(&world, 0, sizeof(world));
    runtime.size = world.size = members.size;
    runtime.settings.channels = 1;
    runtime.settings.slot_bytes = 65536;
    runtime.oversubscribed = members.oversubscribed;
    runtime.world = &world;
    world.runtime = &runtime;
    world.programs = &programs;
    world.same_host = members.same_host;
    world.gpus_only = members.gpus_only;
    world.hosts_only = !members.gpus_only;
    world.networked = !members.same_host;
    world.multicast = members.multicast;
    assert_int_equal(rondo_select(&world, &call, 0, 0, NULL, &choice), RONDO_SUCCESS);
    return choice;
}

static struct rondo_choice choose(int size, size_t bytes, int oversubscribed, int same_host, int gpus_only)
{
    return choose_for(RONDO_KIND_ALLREDUCE, (struct members){size, oversubscribed, same_host, gpus_only, 0}, bytes);
}

static const char *chosen(int size, size_t bytes, int oversubscribed, int same_host, int gpus_only)
{
    return choose(size, bytes, oversubscribed, same_host, gpus_only).algorithm->name;
}

static void test_doubling_where_every_rank_has_a_core(void **state)
{
    (void) state;
    assert_string_equal(chosen(4, 8, 0, 1, 0), "allpairs");
    assert_string_equal(chosen(4, 1023, 0, 1, 0), "allpairs");
    assert_string_equal(chosen(4, 1024, 0, 1, 0), "recursive-doubling");
    assert_string_equal(chosen(8, 511, 0, 1, 0), "allpairs");
    assert_string_equal(chosen(8, 512, 0, 1, 0), "recursive-doubling");
    assert_string_equal(chosen(8, 16384, 0, 1, 0), "recursive-doubling");
    assert_string_equal(chosen(8, 16385, 0, 1, 0), "ring");
    assert_string_equal(chosen(2, 8192, 0, 1, 0), "allpairs");
    assert_string_equal(chosen(6, 2048, 0, 1, 0), "allpairs"); /* not a power of two */
}

static void test_one_shot_elsewhere(void **state)
{
    (void) state;
    assert_string_equal(chosen(8, 2048, 1, 1, 0), "allpairs"); /* more ranks than cores */
    assert_string_equal(chosen(8, 2048, 0, 0, 0), "allpairs");
    assert_string_not_equal(chosen(8, 2048, 0, 1, 1), "recursive-doubling");
}

/* Tiny slots only between host devices of one host: elsewhere no sender is faster than its receiver. */
static void test_slots(void **state)
{
    (void) state;
    assert_int_equal(choose(2, 1, 0, 1, 0).protocol, RONDO_PROTOCOL_TINY);
    assert_int_equal(choose(4, 256, 1, 1, 0).protocol, RONDO_PROTOCOL_TINY);
    assert_int_equal(choose(4, 257, 1, 1, 0).protocol, RONDO_PROTOCOL_SMALL);
    assert_int_equal(choose(2, 16384, 0, 1, 0).protocol, RONDO_PROTOCOL_SMALL);
    assert_int_equal(choose(2, 16385, 0, 1, 0).protocol, RONDO_PROTOCOL_SIMPLE);
    assert_int_equal(choose(4, 8, 0, 0, 0).protocol, RONDO_PROTOCOL_SMALL);
    assert_int_not_equal(choose(4, 8, 0, 1, 1).protocol, RONDO_PROTOCOL_TINY);
}

static void expect_multicast(enum rondo_kind kind, int size, size_t count, enum rondo_protocol protocol)
{
    const struct rondo_choice choice = choose_for(kind, (struct members){size, 0, 1, 0, 1}, count);
    assert_string_equal(choice.algorithm->name, "multicast");
    assert_int_equal(choice.protocol, protocol);
    assert_int_equal(choice.channels, 1);
    const struct rondo_choice without = choose_for(kind, (struct members){size, 0, 1, 0, 0}, count);
    assert_string_not_equal(without.algorithm->name, "multicast");
}

/* Small data of three ranks and more that can read each other's slots. */
static void test_multicast(void **state)
{
    (void) state;
    expect_multicast(RONDO_KIND_BCAST, 16, 8, RONDO_PROTOCOL_MULTICAST_TINY);
    expect_multicast(RONDO_KIND_BCAST, 3, 256, RONDO_PROTOCOL_MULTICAST_TINY);
    expect_multicast(RONDO_KIND_BCAST, 256, 257, RONDO_PROTOCOL_MULTICAST);
    expect_multicast(RONDO_KIND_ALLREDUCE, 16, 8, RONDO_PROTOCOL_MULTICAST_TINY);
    expect_multicast(RONDO_KIND_ALLGATHER, 8, 1024, RONDO_PROTOCOL_MULTICAST);
    expect_multicast(RONDO_KIND_BARRIER, 64, 0, RONDO_PROTOCOL_MULTICAST_TINY);
    expect_multicast(RONDO_KIND_SCATTER, 16, 8, RONDO_PROTOCOL_MULTICAST_TINY);
    const struct members two = {2, 0, 1, 0, 1}, many = {65, 0, 1, 0, 1}, four = {4, 0, 1, 0, 1};
    assert_string_equal(choose_for(RONDO_KIND_BCAST, two, 8).algorithm->name, "linear");
    assert_string_equal(choose_for(RONDO_KIND_BARRIER, many, 0).algorithm->name, "allpairs");
    assert_string_not_equal(choose_for(RONDO_KIND_BCAST, four, 65536).algorithm->name, "multicast");
    assert_string_equal(choose_for(RONDO_KIND_SCATTER, four, 65).algorithm->name, "linear"); /* a part has lines of its own */
}

/* A root takes tiny messages from every rank itself; ranks with a core each pass larger ones on. */
static void test_reduce(void **state)
{
    (void) state;
    const struct members two = {2, 0, 1, 0, 0}, eight = {8, 0, 1, 0, 0}, crowded = {8, 1, 1, 0, 0}, apart = {8, 0, 0, 0, 0};
    assert_string_equal(choose_for(RONDO_KIND_REDUCE, eight, 256).algorithm->name, "linear");
    assert_string_equal(choose_for(RONDO_KIND_REDUCE, eight, 257).algorithm->name, "ring");
    assert_string_equal(choose_for(RONDO_KIND_REDUCE, two, 257).algorithm->name, "linear");
    assert_string_equal(choose_for(RONDO_KIND_REDUCE, crowded, 257).algorithm->name, "linear");
    assert_string_equal(choose_for(RONDO_KIND_REDUCE, apart, 257).algorithm->name, "linear");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubling_where_every_rank_has_a_core),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_one_shot_elsewhere),
        cmocka_unit_test(test_multicast),
        cmocka_unit_test(test_reduce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
