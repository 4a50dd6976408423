/* The processors of the proxy's thread: near the NIC, but only where the process may run. */
#include "proxy/placement.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static cpu_set_t now(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    return set;
}

static void test_no_such_node(void **state)
{
    cpu_set_t before = now(), after;
    (void) state;
    rondo_proxy_place(-1);
    rondo_proxy_place(100000);
    after = now();
    assert_true(CPU_EQUAL(&before, &after));
}

static void test_within_what_is_allowed(void **state)
{
    cpu_set_t before = now(), both;
    (void) state;
    for (int node = 0; node < 8; node++) {
        rondo_proxy_place(node);
        cpu_set_t after = now();
        CPU_AND(&both, &before, &after);
        assert_true(CPU_EQUAL(&both, &after));
        assert_true(CPU_COUNT(&after) > 0);
        assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
    }
}

/* A launcher has bound the process to one processor: the thread stays there, wherever the NIC is. */
static void test_bound_to_one(void **state)
{
    cpu_set_t before = now(), one;
    size_t cpu = 0;
    (void) state;
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    for (int node = 0; node < 8; node++) {
        rondo_proxy_place(node);
        cpu_set_t after = now();
        assert_true(CPU_EQUAL(&one, &after));
    }
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_such_node),
        cmocka_unit_test(test_within_what_is_allowed),
        cmocka_unit_test(test_bound_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
