/*
 * What a block concludes from the order in which its tasks meet their peers (device/daemon/order.h): trust where they do so in
 * the order of the table, none where a third or more overtake others, none from tasks that never waited, and not for ever.
 */
#include "device/daemon/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { INITIAL = 2, ALONE = 16, ORDERED = 64, HOLD = 1000000000 /* ticks: longer than this test */ };

static const struct rondo_policy policy = {
    .budgets = {.initial = INITIAL, .alone = ALONE, .ordered = ORDERED, .hold = HOLD, .cap = INITIAL},
    .order = RONDO_ORDER_FIFO,
    .preempt = 1};

/* A task waits for its peers once, and then goes on. */
static void meet(struct rondo_block *block, int overtakes)
{
    struct rondo_task task = {.lane = 0};
    block->overtakes = 0;
    rondo_note_contact(&policy, block, &task, 0, 1, 1);
    assert_int_equal(task.contact, RONDO_CONTACT_AWAITED);
    block->overtakes = (uint32_t) overtakes;
    rondo_note_contact(&policy, block, &task, 0, 1, 0);
    assert_int_equal(task.contact, RONDO_CONTACT_MADE);
    rondo_note_contact(&policy, block, &task, 1, 1, 0); /* its end is no second contact */
}

static void meet_in_order(struct rondo_block *block, int times)
{
    for (int i = 0; i < times; i++)
        meet(block, 0);
}

static void test_one_order(void **state)
{
    struct rondo_block block = {.tasks = 2};
    (void) state;
    meet_in_order(&block, RONDO_ORDER_TRUSTED - 1);
    assert_int_equal(rondo_first_grant(&policy, &block, 0), INITIAL);
    meet_in_order(&block, 1);
    assert_int_equal(rondo_first_grant(&policy, &block, 0), ORDERED);
    block.tasks = 1;
    assert_int_equal(rondo_first_grant(&policy, &block, 0), ALONE);
    assert_int_equal(rondo_first_grant(&policy, &block, 1), INITIAL * RONDO_OUTRANKING_GRANT);
}

static void test_overtaking(void **state)
{
    struct rondo_block block = {.tasks = 2};
    (void) state;
    meet_in_order(&block, 2 * RONDO_ORDER_TRUST_MOST); /* more than what counts */
    for (int i = 0; i < (RONDO_ORDER_TRUST_MOST - RONDO_ORDER_TRUSTED) / RONDO_ORDER_OVERTAKING; i++)
        meet(&block, 1);
    assert_int_equal(rondo_first_grant(&policy, &block, 0), ORDERED);
    meet(&block, 1);
    assert_int_equal(rondo_first_grant(&policy, &block, 0), INITIAL);
    for (int i = 0; i < RONDO_ORDER_TRUST_MOST; i++)
        meet(&block, 1);
    assert_int_equal(block.order_trust, 0);
}

/* How much of the time a block has trust, in percent, where so many of a hundred contacts overtake others. */
static int trusted_percent(uint32_t overtaking)
{
    enum { CONTACTS = 100000 };
    struct rondo_block block = {.tasks = 2};
    uint64_t random = 1;
    int trusted = 0;
    for (int i = 0; i < CONTACTS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        meet(&block, (random >> 33) % 100 < overtaking);
        trusted += rondo_trusts_order(&policy, &block);
    }
    return trusted * 100 / CONTACTS;
}

static void test_mixtures(void **state)
{
    (void) state;
    assert_true(trusted_percent(0) >= 99);
    assert_true(trusted_percent(15) >= 95); /* as measured in one order */
    assert_true(trusted_percent(40) <= 5);  /* as measured in random orders, at the least */
    assert_int_equal(trusted_percent(60), 0);
}

static void test_no_wait_says_nothing(void **state)
{
    struct rondo_block block = {.tasks = 2};
    (void) state;
    for (int i = 0; i < 2 * RONDO_ORDER_TRUSTED; i++) {
        struct rondo_task task = {.lane = 0};
        rondo_note_contact(&policy, &block, &task, 1, 1, 0);
    }
    assert_int_equal(block.order_trust, 0);
    struct rondo_task task = {.lane = 0};
    rondo_note_contact(&policy, &block, &task, 1, 1, 1); /* it waited, and was not preempted */
    assert_int_equal(block.order_trust, 1);
}

static void test_trust_ends(void **state)
{
    struct rondo_block block = {.tasks = 2};
    (void) state;
    meet_in_order(&block, RONDO_ORDER_TRUSTED + RONDO_ORDER_TERM);
    assert_int_equal(rondo_first_grant(&policy, &block, 0), INITIAL);
    meet_in_order(&block, RONDO_ORDER_TRUSTED);
    assert_int_equal(rondo_first_grant(&policy, &block, 0), ORDERED);
}

static void test_holding_back(void **state)
{
    struct rondo_block block = {.tasks = 2, .advanced_ticks = rondo_ticks()};
    struct rondo_policy other = policy;
    (void) state;
    assert_false(rondo_holds_back(&policy, &block));
    meet_in_order(&block, RONDO_ORDER_TRUSTED);
    assert_true(rondo_holds_back(&policy, &block));
    block.advanced_ticks -= HOLD; /* nothing has advanced for so long */
    assert_false(rondo_holds_back(&policy, &block));
    block.advanced_ticks += HOLD;
    block.tasks = 1;
    assert_false(rondo_holds_back(&policy, &block));
    block.tasks = 2;
    other.order = RONDO_ORDER_PRIORITY; /* the table is not in the order of starts */
    assert_false(rondo_holds_back(&other, &block));
    assert_int_equal(rondo_first_grant(&other, &block, 0), INITIAL);
    other = policy;
    other.preempt = 0;
    assert_false(rondo_holds_back(&other, &block));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_order),  cmocka_unit_test(test_overtaking),
        cmocka_unit_test(test_mixtures),   cmocka_unit_test(test_no_wait_says_nothing),
        cmocka_unit_test(test_trust_ends), cmocka_unit_test(test_holding_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
