/*
 * Receive actions: sum and copy at every alignment of the received data, in both orders of the sources, divided for averages.
 * Nothing is written unless the action belongs to that slot, is posted, and all of its bytes have arrived.
 */
#include "device/engine/receive_action.h"
#include "device/abi/platform.h"
#include "rondo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

enum { COUNT = 1000, POSITION = 37 };

static struct rondo_receive_action offer(float *to, const float *own, uint8_t op)
{
    struct rondo_receive_action action = {.to = (char *) to,
                                          .own = (const char *) own,
                                          .count = COUNT,
                                          .type = RONDO_FLOAT,
                                          .op = op,
                                          .element_bytes = sizeof(float),
                                          .state = RONDO_RECEIVE_ACTION(POSITION, RONDO_RECEIVE_ACTION_OFFERED)};
    return action;
}

static void fill(float *values, float first)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = first + (float) i;
}

static void test_done_at_any_alignment(void **state)
{
    float to[COUNT], own[COUNT], come[COUNT];
    _Alignas(64) char buffer[sizeof(come) + 64];
    (void) state;
    fill(own, 0.5f);
    fill(come, -17.25f);
    for (size_t beyond = 0; beyond < 17; beyond++)
        for (int first = 0; first < 2; first++)
            for (uint32_t average = 0; average <= 2; average += 2) {
                memcpy(buffer + beyond, come, sizeof(come));
                struct rondo_receive_action action = offer(to, own, RONDO_SUM), copy = offer(to, NULL, RONDO_SUM);
                action.own_first = (uint8_t) first;
                action.average = average;
                assert_int_equal(rondo_receive_action_run(&action, POSITION, buffer + beyond, sizeof(come)), 1);
                assert_int_equal(action.state, RONDO_RECEIVE_ACTION(POSITION, RONDO_RECEIVE_ACTION_DONE));
                for (int i = 0; i < COUNT; i++)
                    assert_true(to[i] == (own[i] + come[i]) / (average > 0 ? 2.0f : 1.0f));
                assert_int_equal(rondo_receive_action_run(&copy, POSITION, buffer + beyond, sizeof(come) + 12), 1);
                assert_memory_equal(to, come, sizeof(come));
            }
}

/* The sign of zero in a maximum depends on the order of the two operands. */
static void test_order(void **state)
{
    float to[COUNT], own[COUNT], come[COUNT], other[COUNT];
    (void) state;
    for (int i = 0; i < COUNT; i++) {
        own[i] = 0.0f;
        come[i] = -0.0f;
    }
    struct rondo_receive_action action = offer(to, own, RONDO_MAX), reverse = offer(other, come, RONDO_MAX);
    action.own_first = 1;
    assert_int_equal(rondo_receive_action_run(&action, POSITION, come, sizeof(come)), 1);
    assert_int_equal(rondo_receive_action_run(&reverse, POSITION, own, sizeof(own)), 1);
    assert_memory_equal(to, other, sizeof(to)); /* the order is (own, come) both times */
}

static void test_refused(void **state)
{
    float to[COUNT] = {0}, untouched[COUNT] = {0}, own[COUNT], come[COUNT];
    (void) state;
    fill(own, 1);
    fill(come, 2);
    struct rondo_receive_action action = offer(to, own, RONDO_SUM);
    assert_int_equal(rondo_receive_action_run(&action, POSITION + 1, come, sizeof(come)), 0);
    assert_int_equal(rondo_receive_action_run(&action, POSITION + 16, come, sizeof(come)), 0);
    assert_int_equal(action.state, RONDO_RECEIVE_ACTION(POSITION, RONDO_RECEIVE_ACTION_OFFERED));
    /* Too short: the action is given back for good. */
    assert_int_equal(rondo_receive_action_run(&action, POSITION, come, sizeof(come) - 1), 0);
    assert_int_equal(RONDO_RECEIVE_ACTION_STATE(action.state), RONDO_RECEIVE_ACTION_NONE);
    assert_int_equal(rondo_receive_action_run(&action, POSITION, come, sizeof(come)), 0);
    /* The action is withdrawn, as the engine does it. */
    action = offer(to, own, RONDO_SUM);
    assert_int_equal(rondo_exchange_if(&action.state, action.state, RONDO_RECEIVE_ACTION_NONE), 1);
    assert_int_equal(rondo_receive_action_run(&action, POSITION, come, sizeof(come)), 0);
    assert_memory_equal(to, untouched, sizeof(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_done_at_any_alignment),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
