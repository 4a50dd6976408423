/* Reading another process's memory (device/engine/process_memory.h), and the choice between slots and single copies
 * (device/engine/copy_costs.h). */
#include "test/unit/support/ranks.h"

#include "device/engine/copy_costs.h"
#include "device/engine/process_memory.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

/* Starts a process that shows a page of the value, and sleeps. The child's identity has arrived on return. */
static pid_t show(struct rondo_process_identity *identity, char *page, char value)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        memset(page, value, PAGE);
        const int known = rondo_process_identify(identity) == RONDO_SUCCESS;
        if (!known || write(ends[1], identity, sizeof(*identity)) != (ssize_t) sizeof(*identity))
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], identity, sizeof(*identity)), sizeof(*identity));
    close(ends[0]);
    close(ends[1]);
    return child;
}

static void finish(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static void test_read(void **state)
{
    (void) state;
    struct rondo_process_identity own, other;
    char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), got[2 * PAGE];
    assert_int_equal(munmap(pages + PAGE, PAGE), 0);
    assert_int_equal(rondo_process_identify(&own), RONDO_SUCCESS);
    memset(pages, 'a', PAGE);
    const pid_t child = show(&other, pages, 'b');
    assert_memory_not_equal(own.token, other.token, sizeof(own.token)); /* though it was inherited */
    assert_int_equal(rondo_process_probe(&own), 0);
    if (rondo_process_probe(&other) == EPERM) { /* this kernel or container forbids it; the rest cannot be tried */
        finish(child);
        skip();
    }
    assert_int_equal(rondo_process_read(&other, got, pages + 1, PAGE - 1), 0);
    for (int i = 0; i < PAGE - 1; i++)
        assert_int_equal(got[i], 'b');
    /* Only a part can be read. */
    assert_int_equal(rondo_process_read(&other, got, pages, 2 * PAGE), EFAULT);
    assert_int_equal(rondo_process_read(&other, got, pages + PAGE, 1), EFAULT);
    /* The id is another process's by now. */
    struct rondo_process_identity reused = other;
    reused.token[3] ^= 1;
    assert_int_equal(rondo_process_read(&reused, got, pages, 1), ESRCH);
    reused = own;
    reused.process = other.process;
    assert_int_equal(rondo_process_read(&reused, got, pages, 1), ESRCH);
    finish(child);
    assert_int_equal(rondo_process_read(&other, got, pages, 1), ESRCH);
    munmap(pages, PAGE);
}

static void test_classes(void **state)
{
    (void) state;
    assert_int_equal(rondo_cost_class(RONDO_SINGLE_COPY_BYTES), 0);
    assert_int_equal(rondo_cost_class(2 * RONDO_SINGLE_COPY_BYTES - 1), 0);
    assert_int_equal(rondo_cost_class(2 * RONDO_SINGLE_COPY_BYTES), 1);
    assert_int_equal(rondo_cost_class((uint64_t) 1 << 40), RONDO_COST_CLASSES - 1);
}

static void test_costs(void **state)
{
    (void) state;
    const uint64_t bytes = 1 << 17;
    uint32_t cost = rondo_cost_after(0, 1000000, bytes); /* the first time: pages are touched */
    assert_int_equal(cost, 8000000);
    for (int i = 0; i < 30; i++)
        cost = rondo_cost_after(cost, 10000, bytes);
    assert_in_range(cost, 80000, 80100);
    cost = rondo_cost_after(cost, 50000000, bytes); /* the thread was descheduled */
    assert_in_range(cost, 80000, 86000);
    for (int i = 0; i < 200; i++)
        cost = rondo_cost_after(cost, 20000, bytes);
    assert_in_range(cost, 150000, 160000);
    assert_int_equal(rondo_cost_after(0, UINT32_MAX * 16ull, 1), UINT32_MAX / 4);
    assert_int_equal(rondo_cost_after(0, 0, bytes), 1);
}

static void test_rules(void **state)
{
    (void) state;
    const struct rondo_copy_costs costs = {.store = 30, .read = 50, .once = 70};
    assert_true(rondo_cost_prefers_once(costs, RONDO_COST_BOTH, 4, 1));
    assert_false(rondo_cost_prefers_once(costs, RONDO_COST_ONE_WAY, 4, 1));
    assert_true(rondo_cost_prefers_once(costs, RONDO_COST_ONE_WAY, 1, 1));
    assert_false(rondo_cost_prefers_once(costs, RONDO_COST_READER, 4, 1));
    assert_false(rondo_cost_prefers_once(costs, RONDO_COST_READERS, 4, 2));
    assert_true(rondo_cost_prefers_once(costs, RONDO_COST_READERS, 4, 3));
}

/* The other way is tried often at first and then seldom, and not before the receiver has told what reading a slot costs. */
static void test_trials(void **state)
{
    (void) state;
    struct rondo_copy_costs costs = {0};
    assert_false(rondo_cost_chooses_once(costs, RONDO_COST_BOTH, 1, 1, 0));
    costs.read = 50;
    assert_true(rondo_cost_chooses_once(costs, RONDO_COST_BOTH, 1, 1, 1));
    for (int dearer = 0; dearer < 2; dearer++) {
        costs = (struct rondo_copy_costs){.store = 30, .read = 50, .once = dearer ? 90 : 70};
        int others = 0, late = 0;
        for (uint32_t sent = 0; sent < 256; sent++)
            others += rondo_cost_chooses_once(costs, RONDO_COST_BOTH, 1, 1, sent) == dearer;
        for (uint32_t sent = 256; sent < 256 + 5120; sent++)
            late += rondo_cost_chooses_once(costs, RONDO_COST_BOTH, 1, 1, sent) == dearer;
        assert_int_equal(others, 16);
        assert_int_equal(late, 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),  cmocka_unit_test(test_classes), cmocka_unit_test(test_costs),
        cmocka_unit_test(test_rules), cmocka_unit_test(test_trials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
