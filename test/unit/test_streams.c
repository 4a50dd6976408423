/* Operations in stream order, as the host sees them by the counts that their kernels leave on the device: which operations were
 * executed, in timelines and before a communicator is freed. The host device stands for a GPU here, and the test for the
 * kernels. And what copy engines do in their place. */
#include "device/abi/platform.h"
#include "lib/base/error.h"
#include "lib/submission/poller.h"
#include "device/abi/structures.h"
#include "lib/algorithms/algorithms.h"
#include "lib/connection/copy_steps.h"
#include "lib/diagnostics/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/support/open_runtime.h"

enum { ENQUEUED = 5, EXECUTED = 3 };

static uint32_t lane;
static uint64_t order;
static int launched, captures;

static rondo_result_t enqueue(struct rondo_device *device, const struct rondo_stream_launch *launch,
                              struct rondo_stream_list **list)
{
    (void) device, (void) list;
    lane = launch->operations[0].operation.lane;
    order = launch->operations[0].order;
    launched += launch->count;
    return RONDO_SUCCESS;
}

static uint64_t stream_id(struct rondo_device *device, void *stream)
{
    (void) device, (void) stream;
    return 1;
}

static rondo_result_t looks = RONDO_SUCCESS; /* what looking at a stream ends with */

static rondo_result_t is_captured(struct rondo_device *device, void *stream, int *captured)
{
    (void) device, (void) stream;
    *captured = captures;
    return looks == RONDO_SUCCESS ? looks : rondo_fail(looks, "planted");
}

static rondo_result_t reads; /* what reading the device's memory ends with */

static rondo_result_t download(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    (void) device;
    if (reads != RONDO_SUCCESS)
        return rondo_fail(reads, "planted");
    memcpy(to, from, bytes);
    return RONDO_SUCCESS;
}

static int count_lines(const char *path, const char *words)
{
    char line[1024];
    int count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        count += strstr(line, words) != NULL;
    fclose(file);
    return count;
}

/* Opens a runtime whose device seems to have streams. The returned device kind must be restored before the runtime ends. */
static const struct rondo_device_kind *open_fake(rondo_t *handle, struct rondo_runtime **runtime, rondo_comm_t *world)
{
    static struct rondo_device_kind fake;
    open_runtime(handle, world);
    *runtime = object_of(*handle);
    rondo_poller_destroy(*runtime); /* no other thread uses the device's functions now */
    const struct rondo_device_kind *host = (*runtime)->device->kind;
    fake = *host;
    fake.enqueue = enqueue;
    fake.stream_id = stream_id;
    fake.is_captured = is_captured;
    fake.download = download;
    (*runtime)->device->kind = &fake;
    launched = captures = 0;
    return host;
}

static void test_enqueued_and_executed(void **state)
{
    (void) state;
    char path[] = "/tmp/rondo-trace-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    setenv("RONDO_TRACE", path, 1);
    rondo_t handle;
    struct rondo_runtime *runtime;
    rondo_comm_t world;
    const struct rondo_device_kind *host = open_fake(&handle, &runtime, &world);
    unsetenv("RONDO_TRACE");

    int32_t from[4] = {1, 2, 3, 4}, to[ENQUEUED + 1][4];
    for (int i = 0; i < ENQUEUED; i++)
        assert_int_equal(rondo_allreduce_on_stream(from, to[i], 4, RONDO_INT32, RONDO_SUM, world, NULL), RONDO_SUCCESS);
    captures = 1;
    assert_int_equal(rondo_allreduce_on_stream(from, to[ENQUEUED], 4, RONDO_INT32, RONDO_SUM, world, NULL), RONDO_SUCCESS);
    assert_int_equal(launched, ENQUEUED + 1);
    struct rondo_lane *executes = &runtime->device->daemon->lanes[lane];
    rondo_store_release(&executes->ordered, EXECUTED);
    uint64_t most = UINT64_MAX;
    usleep(10000); /* the poller's last check is a while ago */
    rondo_timeline_drain(runtime, &most);
    assert_int_equal(most, 10000000); /* nanoseconds until the poller's next check */
    rondo_store_release(&executes->ordered, EXECUTED + 1);
    runtime->device->kind = host;
    assert_int_equal(rondo_finalize(handle), RONDO_SUCCESS);

    assert_int_equal(count_lines(path, "\"name\":\"enqueue\""), ENQUEUED);
    assert_int_equal(count_lines(path, "\"name\":\"capture\""), 1);
    assert_int_equal(count_lines(path, "\"name\":\"executed\""), EXECUTED + 1);
    for (int i = 0; i < ENQUEUED; i++) {
        char words[64];
        snprintf(words, sizeof(words), "\"lane\":%u,\"number\":%d}", lane, i);
        assert_int_equal(count_lines(path, words), i <= EXECUTED ? 1 : 0);
        snprintf(words, sizeof(words), "\"lane\":%u,\"number\":%d,\"operation\":\"allreduce(", lane, i);
        assert_int_equal(count_lines(path, words), 1);
    }
    unlink(path);
}

/* A communicator that reuses a lane is not idle just because the lane's previous user was. */
static void test_lane_used_again(void **state)
{
    (void) state;
    rondo_t handle;
    struct rondo_runtime *runtime;
    rondo_comm_t world, comm;
    int32_t from[4] = {1, 2, 3, 4}, to[4];
    uint32_t first = 0;
    const struct rondo_device_kind *host = open_fake(&handle, &runtime, &world);
    for (int life = 0; life < 3; life++) {
        assert_int_equal(rondo_comm_dup(world, &comm), RONDO_SUCCESS);
        assert_int_equal(rondo_allreduce_on_stream(from, to, 4, RONDO_INT32, RONDO_SUM, comm, NULL), RONDO_SUCCESS);
        first = life == 0 ? lane : first;
        assert_int_equal(lane, first);
        assert_int_equal(rondo_comm_free(&comm), RONDO_ERR_STATE); /* the operation has not been executed */
        rondo_store_release(&runtime->device->daemon->lanes[lane].ordered, order + 1);
        assert_int_equal(rondo_comm_free(&comm), RONDO_SUCCESS);
    }
    runtime->device->kind = host;
    assert_int_equal(rondo_finalize(handle), RONDO_SUCCESS);
}

/* A wrong stream is a mistake of the caller's, which leaves the communicator as it is. If the device fails, other ranks would
 * wait for this one's operation: the communicator has failed. */
static void test_wrong_streams_and_failures(void **state)
{
    (void) state;
    static const rondo_result_t results[] = {RONDO_ERR_ARGUMENT, RONDO_ERR_DEVICE};
    for (int i = 0; i < 4; i++) {
        rondo_t handle;
        struct rondo_runtime *runtime;
        rondo_comm_t world;
        rondo_request_t request;
        int32_t from[4] = {1, 2, 3, 4}, to[4];
        const rondo_result_t result = results[i % 2];
        const struct rondo_device_kind *host = open_fake(&handle, &runtime, &world);
        assert_int_equal(rondo_allreduce_init(from, to, 4, RONDO_INT32, RONDO_SUM, world, NULL, &request), RONDO_SUCCESS);
        looks = result;
        assert_int_equal(i < 2 ? rondo_allreduce_on_stream(from, to, 4, RONDO_INT32, RONDO_SUM, world, NULL)
                               : rondo_start_on_stream(request, NULL),
                         result);
        looks = RONDO_SUCCESS;
        assert_int_equal(launched, 0);
        assert_int_equal(rondo_allreduce_on_stream(from, to, 4, RONDO_INT32, RONDO_SUM, world, NULL),
                         result == RONDO_ERR_ARGUMENT ? RONDO_SUCCESS : result);
        if (launched > 0)
            rondo_store_release(&runtime->device->daemon->lanes[lane].ordered, order + 1);
        runtime->device->kind = host;
        assert_int_equal(rondo_request_free(&request), RONDO_SUCCESS);
        assert_int_equal(rondo_finalize(handle), RONDO_SUCCESS);
    }
}

/* What the kernels have executed cannot be read: nothing is started or freed, and other ranks would wait for what is started.
 */
static void test_unreadable_memory(void **state)
{
    (void) state;
    rondo_t handle;
    struct rondo_runtime *runtime;
    rondo_comm_t world, comm;
    rondo_request_t request;
    rondo_result_t failure;
    int idle;
    int32_t from[4] = {1, 2, 3, 4}, to[4];
    const struct rondo_device_kind *host = open_fake(&handle, &runtime, &world);
    assert_int_equal(rondo_comm_dup(world, &comm), RONDO_SUCCESS);
    assert_int_equal(rondo_allreduce_init(from, to, 4, RONDO_INT32, RONDO_SUM, comm, NULL, &request), RONDO_SUCCESS);
    assert_int_equal(rondo_start_on_stream(request, NULL), RONDO_SUCCESS);
    rondo_store_release(&runtime->device->daemon->lanes[lane].ordered, order + 1);
    reads = RONDO_ERR_DEVICE;
    assert_int_equal(rondo_comm_free(&comm), RONDO_ERR_DEVICE);
    assert_int_equal(rondo_comm_status(comm, &failure, &idle), RONDO_ERR_DEVICE);
    assert_int_equal(failure, RONDO_SUCCESS);
    assert_int_equal(rondo_start(request), RONDO_ERR_DEVICE);
    reads = RONDO_SUCCESS;
    assert_int_equal(rondo_comm_status(comm, &failure, &idle), RONDO_SUCCESS);
    assert_int_equal(failure, RONDO_ERR_DEVICE);
    assert_int_equal(rondo_request_free(&request), RONDO_SUCCESS);
    assert_int_equal(rondo_comm_free(&comm), RONDO_SUCCESS);
    runtime->device->kind = host;
    assert_int_equal(rondo_finalize(handle), RONDO_SUCCESS);
}

/* ---- operations by copy engines (lib/connection/copy_steps.c): the steps of all ranks are carried out in many orders, each
 * rank's one after the other as its stream does. Every element has to come, and no input may be read before its rank has filled
 * it, or after its rank has gone on. ---- */

#define RANKS      5
#define COUNT      7 /* elements of a block */
#define ROUNDS     6
#define STEPS_MOST 64
#define SPOILT     0xdeadu

struct rank {
    uint32_t input[RANKS * COUNT], output[RANKS * COUNT];
    uint32_t words[RANKS], sent[RANKS], received[RANKS];
    struct rondo_operation operation;
    struct rondo_plan *plan;
    struct rondo_copy_step steps[STEPS_MOST];
    int count, next, round; /* next -1: the round's input is to be filled */
};

static struct rank ranks[RANKS];
static uint32_t *theirs[RANKS];

static struct rondo_plan *build(const char *name, enum rondo_kind kind, int rank, int size)
{
    struct rondo_shape shape;
    struct rondo_plan *plan = NULL;
    memset(&shape, 0, sizeof(shape));
    shape.kind = kind;
    shape.rank = rank;
    shape.size = size;
    shape.root = 1 % size;
    shape.channels = 1;
    shape.protocol = RONDO_PROTOCOL_SIMPLE;
    assert_int_equal(rondo_algorithm_find(name, kind)->build(&shape, &plan), RONDO_SUCCESS);
    return plan;
}

static uint32_t value(int round, int rank, int block, int i)
{
    return (uint32_t) (((round * RANKS + rank) * RANKS + block) * COUNT + i);
}

static void fill(struct rank *me, int rank, int size, uint32_t spoilt)
{
    for (int block = 0; block < size; block++)
        for (int i = 0; i < COUNT; i++)
            me->input[block * COUNT + i] = spoilt != 0 ? spoilt : value(me->round, rank, block, i);
}

static void begin(struct rank *me, int rank, char *const *outputs)
{
    for (int i = 0; me->round > 0 && i < RANKS * COUNT; i++)
        assert_int_equal(me->output[i], SPOILT); /* nothing comes before this rank has said that it is ready */
    const struct rondo_copy_view view = {.plan = me->plan,
                                         .operation = &me->operation,
                                         .rank = rank,
                                         .words = me->words,
                                         .theirs = theirs,
                                         .output = outputs,
                                         .sent = me->sent,
                                         .received = me->received};
    assert_true(rondo_copy_steps_most(me->plan) <= STEPS_MOST);
    me->count = rondo_copy_steps(&view, me->steps);
    assert_true(me->count <= rondo_copy_steps_most(me->plan));
    me->next = 0;
}

/* What the round leaves in the output, to which nothing may be stored any more, as nothing may be read of the input. */
static void check_and_spoil(enum rondo_kind kind, struct rank *me, int rank, int size)
{
    const int root = 1 % size;
    for (int block = 0; block < (kind == RONDO_KIND_BCAST ? 1 : size); block++)
        for (int i = 0; i < COUNT; i++) {
            const uint32_t wanted = kind == RONDO_KIND_BCAST       ? value(me->round, root, 0, i)
                                    : kind == RONDO_KIND_ALLGATHER ? value(me->round, block, 0, i)
                                                                   : value(me->round, block, rank, i);
            const uint32_t *found = kind == RONDO_KIND_BCAST && rank == root ? me->input : me->output;
            assert_int_equal(found[block * COUNT + i], wanted);
        }
    fill(me, rank, size, SPOILT);
    for (int i = 0; i < RANKS * COUNT; i++)
        me->output[i] = SPOILT;
}

/* One step of a rank. Returns 0 if it waits. */
static int step(enum rondo_kind kind, int rank, int size, char *const *outputs)
{
    struct rank *me = &ranks[rank];
    if (me->next < 0) {
        fill(me, rank, size, 0);
        begin(me, rank, outputs);
        return 1;
    }
    if (me->next == me->count) {
        check_and_spoil(kind, me, rank, size);
        me->round++;
        me->next = -1;
        return 1;
    }
    const struct rondo_copy_step *one = &me->steps[me->next];
    if (one->kind == RONDO_COPY_STEP_WAIT && (int32_t) (*one->word - one->value) < 0)
        return 0;
    if (one->kind == RONDO_COPY_STEP_WRITE)
        *one->word = one->value;
    if (one->kind == RONDO_COPY_STEP_MOVE)
        memcpy(one->to, one->from, one->bytes);
    me->next++;
    return 1;
}

static void run(const char *algorithm, enum rondo_kind kind, int size, unsigned seed)
{
    char *outputs[RANKS];
    int left = size;
    srand(seed);
    memset(ranks, 0, sizeof(ranks));
    for (int rank = 0; rank < size; rank++) {
        struct rank *me = &ranks[rank];
        me->plan = build(algorithm, kind, rank, size);
        assert_true(rondo_copy_steps_can(me->plan));
        me->operation.element_bytes = sizeof(uint32_t);
        me->operation.buffers[RONDO_INPUT] = (char *) me->input;
        me->operation.buffers[RONDO_OUTPUT] = (char *) (kind == RONDO_KIND_BCAST && rank == 1 % size ? me->input : me->output);
        const uint32_t parts = kind == RONDO_KIND_BCAST ? me->plan->program->chunks[RONDO_OUTPUT] : 1;
        for (int b = 0; b < RONDO_BUFFERS; b++)
            me->operation.layouts[b] =
                (struct rondo_layout){.group_count = COUNT, .chunk_count = (COUNT + parts - 1) / parts, .group_chunks = parts};
        me->next = -1;
        outputs[rank] = me->operation.buffers[RONDO_OUTPUT];
        theirs[rank] = me->words;
        for (int peer = 0; peer < size; peer++) /* counts wrap */
            me->sent[peer] = me->received[peer] = me->words[peer] = UINT32_MAX - 3;
    }
    while (left > 0) {
        const int first = rand() % size;
        int moved = 0;
        left = 0;
        for (int k = 0; k < size; k++) {
            const int rank = (first + k) % size;
            for (int times = rand() % 4; ranks[rank].round < ROUNDS && times >= 0; times--)
                moved += step(kind, rank, size, outputs);
            left += ranks[rank].round < ROUNDS;
        }
        if (moved == 0 && left > 0)
            fail_msg("%d of %d ranks wait for each other", left, size);
    }
    for (int rank = 0; rank < size; rank++)
        rondo_plan_free(ranks[rank].plan);
}

static void test_copies_in_many_orders(void **state)
{
    static const enum rondo_kind kinds[] = {RONDO_KIND_ALLGATHER, RONDO_KIND_ALLTOALL, RONDO_KIND_BCAST};
    (void) state;
    for (int k = 0; k < 3; k++)
        for (int size = 2; size <= RANKS; size++)
            for (unsigned seed = 0; seed < 100; seed++)
                run("push", kinds[k], size, seed);
    for (int size = 2; size <= RANKS; size++)
        for (unsigned seed = 0; seed < 100; seed++)
            run("push-chain", RONDO_KIND_BCAST, size, seed);
}

/* What reduces, or reads peers' memory, or has slots, or several blocks, is not for copy engines. */
static void test_no_copies(void **state)
{
    (void) state;
    struct rondo_plan *reducing = build("direct", RONDO_KIND_ALLREDUCE, 0, 3);
    struct rondo_plan *slots = build("linear", RONDO_KIND_BCAST, 0, 3), *reading = build("direct", RONDO_KIND_ALLGATHER, 0, 3);
    assert_false(rondo_copy_steps_can(reducing));
    assert_false(rondo_copy_steps_can(reading));
    assert_false(rondo_copy_steps_can(slots));
    rondo_plan_free(reducing);
    rondo_plan_free(slots);
    rondo_plan_free(reading);
}

/* An all-gather in place copies nothing onto itself. */
static void test_copies_in_place(void **state)
{
    (void) state;
    uint32_t words[2] = {0, 0}, counts[2][2] = {{0, 0}, {0, 0}}, memory[2][2 * COUNT], *const both[2] = {words, words};
    char *outputs[2] = {(char *) memory[0], (char *) memory[1]};
    struct rondo_copy_step steps[STEPS_MOST];
    struct rondo_operation operation;
    memset(&operation, 0, sizeof(operation));
    operation.element_bytes = sizeof(uint32_t);
    operation.buffers[RONDO_INPUT] = (char *) memory[0];
    operation.buffers[RONDO_OUTPUT] = (char *) memory[0];
    for (int b = 0; b < RONDO_BUFFERS; b++)
        operation.layouts[b] = (struct rondo_layout){.group_count = COUNT, .chunk_count = COUNT, .group_chunks = 1};
    struct rondo_plan *plan = build("push", RONDO_KIND_ALLGATHER, 0, 2);
    const struct rondo_copy_view view = {.plan = plan,
                                         .operation = &operation,
                                         .words = words,
                                         .theirs = both,
                                         .output = outputs,
                                         .sent = counts[0],
                                         .received = counts[1]};
    int moves = 0;
    const int count = rondo_copy_steps(&view, steps);
    for (int i = 0; i < count; i++)
        moves += steps[i].kind == RONDO_COPY_STEP_MOVE;
    assert_int_equal(moves, 1);
    rondo_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_enqueued_and_executed),
                                       cmocka_unit_test(test_lane_used_again),
                                       cmocka_unit_test(test_wrong_streams_and_failures),
                                       cmocka_unit_test(test_unreadable_memory),
                                       cmocka_unit_test(test_copies_in_many_orders),
                                       cmocka_unit_test(test_no_copies),
                                       cmocka_unit_test(test_copies_in_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
