/* The block budget of a GPU: whatever the order of launches on any number of streams, all kernels that wait run at once, and a
 * stream gets its full share again when the other streams are no longer used. */
#include "device/cuda/block_budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    MULTIPROCESSORS = 133,
    /* one of which belongs to no stream */ ROUNDS = 20000,
    STREAMS = 24,
    PENDING = 64,
    LANES = 8192
};

struct user {
    struct rondo_block_budget_user budget;
    uint32_t told[RONDO_PLACES];
    uint64_t enqueued[LANES], executed[LANES];
    int looked;
};

static struct rondo_block_budget *budget;
static struct user users[2];

static uint32_t told(struct rondo_block_budget_user *user, uint32_t place)
{
    return ((struct user *) (void *) user)->told[place];
}

static uint64_t executed(struct rondo_block_budget_user *user, uint32_t lane)
{
    struct user *me = (struct user *) (void *) user;
    me->looked++;
    return me->executed[lane];
}

/* A launched kernel. */
struct kernel {
    struct user *user;
    struct rondo_stream_operation operation;
    struct rondo_block_budget_grant grant;
};

static void end(const struct kernel *kernel)
{
    kernel->user->executed[kernel->operation.operation.lane] = kernel->operation.order + 1;
    if (kernel->grant.tells)
        kernel->user->told[kernel->grant.place] = kernel->grant.until;
}

static int open_budget(void **state)
{
    (void) state;
    memset(users, 0, sizeof(users));
    for (int u = 0; u < 2; u++) {
        users[u].budget.told = told;
        users[u].budget.executed = executed;
        budget = rondo_block_budget_enter(7, MULTIPROCESSORS);
        assert_non_null(budget);
    }
    return 0;
}

/* From here on the user is a new one: it has no running kernels, and its daemon has not been started. */
static void start_anew(int u)
{
    rondo_block_budget_leave(budget, &users[u].budget);
    users[u].budget.daemon = 0;
    budget = rondo_block_budget_enter(7, MULTIPROCESSORS);
}

static int close_budget(void **state)
{
    (void) state;
    for (int u = 0; u < 2; u++)
        rondo_block_budget_leave(budget, &users[u].budget);
    return 0;
}

/* Takes the blocks for an operation on a stream, in the lane of that number. */
static struct kernel take(int u, uint64_t stream, uint32_t blocks)
{
    const uint32_t lane = (uint32_t) (stream % LANES);
    struct kernel kernel = {.user = &users[u], .operation = {.operation.lane = lane, .order = users[u].enqueued[lane]++}};
    const struct rondo_block_budget_request wish = {
        .operations = &kernel.operation, .count = 1, .stream = stream, .blocks = blocks, .overlaps = 1};
    rondo_block_budget_take(budget, &users[u].budget, &wish, &kernel.grant);
    return kernel;
}

static void assert_grant(struct rondo_block_budget_grant grant, uint32_t blocks, int overlaps)
{
    assert_int_equal(grant.blocks, blocks);
    assert_int_equal(grant.overlaps, overlaps);
}

static void assert_kernel(struct kernel kernel, uint32_t blocks, int overlaps)
{
    assert_grant(kernel.grant, blocks, overlaps);
}

/* A single stream always gets what it asks for. */
static void test_alone(void **state)
{
    (void) state;
    rondo_block_budget_daemon(budget, &users[0].budget, 32);
    for (int k = 0; k < 1000; k++)
        assert_kernel(take(k % 2, 1, k % 3 == 0 ? 240 : 64), k % 3 == 0 ? 240 : 64, 1);
}

static void test_two(void **state)
{
    (void) state;
    struct kernel first = take(0, 1, 64);
    assert_int_equal(first.grant.tells, 0); /* the stream is alone */
    assert_kernel(take(0, 2, 64), 17, 0);   /* a quarter of 132 - 64 */
    end(&first);
    first = take(0, 1, 64);
    assert_kernel(first, 64, 0);
    assert_kernel(take(0, 2, 64), 64, 0);
    assert_kernel(take(0, 2, 32), 32, 1);
    const int looked = users[0].looked;
    for (int k = 0; k < 50; k++)
        assert_kernel(take(0, 1 + (uint64_t) k % 2, 64), 64, 0);
    assert_int_equal(users[0].looked, looked); /* both hold no more than their shares, and report their ends */
}

/* A kernel that holds more than its share is checked for its end whenever the budget depends on it. */
static void test_settled(void **state)
{
    (void) state;
    struct kernel wide = take(0, 1, 64), narrow = take(0, 1, 10);
    end(&wide);
    end(&narrow);
    assert_kernel(take(0, 2, 64), 64, 0); /* both kernels have ended */
    start_anew(0);
    wide = take(0, 1, 64);
    wide = take(0, 1, 64);
    assert_kernel(take(0, 2, 64), 1, 0);
    end(&wide);
    assert_kernel(take(0, 2, 64), 64, 0);
}

/* Two kernels of a stream that was alone may run at once, and other streams start while those wait. */
static void test_newcomers(void **state)
{
    (void) state;
    static const uint32_t expected[] = {21, 16, 12, 9, 7, 5, 4, 3, 2, 2, 1, 1, 1};
    struct kernel first = take(0, 1, 12);
    first = take(0, 1, 24);
    for (uint64_t k = 0; k < sizeof(expected) / sizeof(expected[0]); k++)
        assert_kernel(take(0, 2 + k, 64), expected[k], 0);
    assert_kernel(take(0, 1, 64), 9, 0); /* the stream's share from here on */
    assert_kernel(take(0, 100, 64), 1, 0);
    end(&first); /* until now the stream held 48 */
    assert_kernel(take(0, 101, 64), 10, 0);
}

/* A stream is alone again, so that its next kernels do not report their ends. */
static void test_alone_again(void **state)
{
    (void) state;
    (void) take(1, 2, 1);
    const struct kernel wide = take(0, 1, 32);
    assert_int_equal(wide.grant.tells, 1);
    start_anew(1);
    const struct kernel narrow = take(0, 1, 10);
    assert_int_equal(narrow.grant.tells, 0);
    end(&wide);
    assert_kernel(take(0, 3, 64), 28, 0); /* a quarter of 132 - 2 * 10 */
    end(&narrow);
    assert_kernel(take(0, 4, 64), 26, 0); /* of 132 - 28 */
}

static struct rondo_block_budget_grant ask(const struct rondo_block_budget_request *wish)
{
    static const struct rondo_stream_operation operations[20];
    struct rondo_block_budget_request whole = *wish;
    struct rondo_block_budget_grant grant = {0};
    whole.operations = operations;
    rondo_block_budget_take(budget, &users[0].budget, &whole, &grant);
    return grant;
}

/* A kernel that is asked to report its end does so in any case. */
static void test_reports_its_end(void **state)
{
    (void) state;
    const struct rondo_block_budget_grant grant =
        ask(&(struct rondo_block_budget_request){.stream = 1, .count = 20, .blocks = 64, .tells = 1});
    assert_int_equal(grant.tells, 1);
    assert_int_equal(grant.until, 20);
    assert_int_equal(ask(&(struct rondo_block_budget_request){.stream = 1, .count = 9, .blocks = 64}).tells, 0);
    assert_int_equal(ask(&(struct rondo_block_budget_request){.stream = 1, .count = 10, .blocks = 64}).tells, 1);
    assert_int_equal(ask(&(struct rondo_block_budget_request){.stream = 1, .count = 1, .blocks = 64, .tells = 1}).until, 31);
}

/* A kernel of several operations has ended when all of them have. */
static void test_several(void **state)
{
    (void) state;
    struct rondo_stream_operation operations[3] = {
        {.operation.lane = 3}, {.operation.lane = 4, .order = 7}, {.operation.lane = 5}};
    const struct rondo_block_budget_request wish = {.operations = operations, .count = 3, .stream = 1, .blocks = 32};
    struct rondo_block_budget_grant grant;
    rondo_block_budget_take(budget, &users[0].budget, &wish, &grant);
    assert_int_equal(grant.tells, 0);
    users[0].executed[3] = users[0].executed[5] = 1;
    users[0].executed[4] = 7;
    assert_kernel(take(1, 2, 64), 25, 0); /* a quarter of 132 - 32 */
    users[0].executed[4] = 8;
    assert_kernel(take(1, 3, 64), 27, 0); /* of 132 - 25 */
}

/* Two users launch on one stream: a kernel of the second user that reports its end also ends the first user's earlier ones. */
static void test_two_users(void **state)
{
    (void) state;
    const struct kernel first = take(0, 1, 64), second = take(1, 1, 20);
    assert_int_equal(first.grant.place, second.grant.place);
    end(&first);
    assert_kernel(take(0, 2, 64), 17, 0); /* a quarter of 132 - 64 */
    end(&second);
    assert_kernel(take(0, 2, 64), 64, 0);
}

/* The daemons' blocks are not given away, except to a stream that is alone. */
static void test_daemons(void **state)
{
    (void) state;
    rondo_block_budget_daemon(budget, &users[0].budget, 20);
    rondo_block_budget_daemon(budget, &users[0].budget, 20); /* the daemon starts again */
    rondo_block_budget_daemon(budget, &users[1].budget, 12);
    (void) take(0, 1, 1);
    (void) take(0, 2, 1);
    assert_kernel(take(0, 2, 64), 48, 0);
    start_anew(1);
    assert_kernel(take(0, 1, 64), 54, 0);
}

/* Unused streams are forgotten. */
static void test_forgotten(void **state)
{
    (void) state;
    for (uint64_t stream = 1; stream < 1000; stream++) { /* each kernel has ended when the next one comes */
        const struct kernel kernel = take(0, stream, 16);
        assert_int_equal(kernel.grant.blocks, 16);
        end(&kernel);
    }
    for (int k = 0; k < 200; k++) /* until the earlier streams count as unused */
        (void) take(0, 5000, 64);
    assert_kernel(take(0, 5000, 64), 64, 1);
}

/* It is unknown when the kernels of a graph run. */
static void test_captured(void **state)
{
    (void) state;
    const struct rondo_block_budget_grant grant =
        ask(&(struct rondo_block_budget_request){.stream = 1, .count = 3, .blocks = 40, .captured = 1});
    assert_grant(grant, 40, 0);
    assert_int_equal(grant.place, RONDO_NOWHERE);
    users[0].executed[0] = 100;
    for (int k = 0; k < 300; k++)
        assert_kernel(take(1, 1, 100), k == 0 ? 23 : 64, 0);
    start_anew(0);
    assert_kernel(take(1, 1, 100), 100, 1);
}

/* A kernel that was not launched is not waited for, and a kernel that needs all the blocks it asks for gets them. */
static void test_returned(void **state)
{
    (void) state;
    const struct rondo_block_budget_request wish = {.stream = 1, .count = 5, .blocks = 128, .least = 3, .tells = 1};
    struct rondo_block_budget_grant grant = ask(&wish);
    rondo_block_budget_return(budget, &users[0].budget, &wish, &grant);
    assert_int_equal(users[0].budget.telling[grant.place], 0);
    (void) take(0, 2, 1);
    struct kernel kernel = take(0, 2, 60);
    assert_kernel(kernel, 60, 0);
    const struct rondo_block_budget_request narrow = {.stream = 2, .count = 1, .blocks = 10};
    grant = ask(&narrow);
    rondo_block_budget_return(budget, &users[0].budget, &narrow, &grant);
    end(&kernel);
    assert_kernel(take(0, 3, 42), 42, 0); /* no blocks are held */
    for (uint64_t stream = 10; stream < 10 + RONDO_PLACES; stream++)
        kernel = take(0, stream, 64);
    assert_kernel(kernel, 1, 0);
    assert_int_equal(kernel.grant.place, RONDO_NOWHERE);
    assert_grant(ask(&(struct rondo_block_budget_request){.stream = 999, .count = 1, .blocks = 128, .least = 3}), 3, 0);
}

/* A model of a GPU: kernels of a stream run in order, two of them at once if they overlap. */
struct stream {
    struct kernel pending[PENDING];
    uint32_t first, count;
};

static uint32_t running(const struct stream *streams)
{
    uint32_t sum = 0;
    for (int s = 0; s < STREAMS; s++) {
        const struct stream *stream = &streams[s];
        const struct kernel *first = &stream->pending[stream->first % PENDING],
                            *next = &stream->pending[(stream->first + 1) % PENDING];
        sum += stream->count > 0 ? first->grant.blocks : 0;
        sum += stream->count > 1 && next->grant.overlaps ? next->grant.blocks : 0;
    }
    return sum;
}

/* Kernels wait for arbitrary times, but there are always blocks for the daemons and for one kernel of each stream. */
static void test_all_run_at_once(void **state)
{
    (void) state;
    static struct stream streams[STREAMS];
    uint32_t widest = 0, most = 0;
    memset(streams, 0, sizeof(streams));
    srand(1);
    rondo_block_budget_daemon(budget, &users[0].budget, 10);
    rondo_block_budget_daemon(budget, &users[1].budget, 10);
    /* No lone stream has taken blocks that the others need. */
    (void) take(0, 1000, 1);
    (void) take(0, 1001, 1);
    for (int round = 0; round < ROUNDS; round++) {
        const int used = round / 1000 % 2 == 0 ? STREAMS : 3, s = rand() % used;
        struct stream *stream = &streams[s];
        if (stream->count < PENDING && rand() % 2 == 0) {
            const int user = rand() % 2;
            const struct kernel kernel = take(user, (uint64_t) s + 1, 1 + (uint32_t) rand() % 64);
            stream->pending[(stream->first + stream->count++) % PENDING] = kernel;
            assert_true(kernel.grant.place != RONDO_NOWHERE);
            widest = kernel.grant.blocks > widest ? kernel.grant.blocks : widest;
        } else if (stream->count > 0) {
            end(&stream->pending[stream->first++ % PENDING]);
            stream->count--;
        }
        const uint32_t sum = running(streams);
        most = sum > most ? sum : most;
        assert_in_range(sum, 0, MULTIPROCESSORS - 20);
    }
    assert_in_range(widest, 25, 64); /* with three streams */
    assert_in_range(most, (MULTIPROCESSORS - 20) / 2, MULTIPROCESSORS - 20);
}

#define BLOCK_BUDGET_TEST(test) cmocka_unit_test_setup_teardown(test, open_budget, close_budget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BLOCK_BUDGET_TEST(test_alone),           BLOCK_BUDGET_TEST(test_two),         BLOCK_BUDGET_TEST(test_settled),
        BLOCK_BUDGET_TEST(test_newcomers),       BLOCK_BUDGET_TEST(test_alone_again), BLOCK_BUDGET_TEST(test_reports_its_end),
        BLOCK_BUDGET_TEST(test_several),         BLOCK_BUDGET_TEST(test_two_users),   BLOCK_BUDGET_TEST(test_daemons),
        BLOCK_BUDGET_TEST(test_forgotten),       BLOCK_BUDGET_TEST(test_captured),    BLOCK_BUDGET_TEST(test_returned),
        BLOCK_BUDGET_TEST(test_all_run_at_once),
    };
    return cmocka_run_group_tests_name("seats", tests, NULL, NULL);
}
