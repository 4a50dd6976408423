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

static struct rondo_choice choose(int size, size_t bytes, int oversubscribed, int same_host, int gpus_only)
{
    static struct rondo_runtime runtime;
    static struct rondo_comm world;
    static struct rondo_comm_programs programs; /* none is registered */
    static char from, to;
    struct rondo_choice choice = {0};
    struct rondo_call call = {
        .kind = RONDO_KIND_ALLREDUCE, .type = RONDO_INT8, .op = RONDO_SUM, .send = &from, .recv = &to, .count = bytes};
    memset(&runtime, 0, sizeof(runtime));
    memset(&world, 0, sizeof(world));
    runtime.size = world.size = size;
    runtime.settings.channels = 1;
    runtime.oversubscribed = oversubscribed;
    runtime.world = &world;
    world.runtime = &runtime;
    world.programs = &programs;
    world.same_host = same_host;
    world.gpus_only = gpus_only;
    world.hosts_only = !gpus_only;
    world.networked = !same_host;
    assert_int_equal(rondo_select(&world, &call, 0, 0, NULL, &choice), RONDO_SUCCESS);
    return choice;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubling_where_every_rank_has_a_core),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_one_shot_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
