/* Operations in stream order, as the host sees them by the counts that their kernels leave on the device: which operations were
 * executed, in timelines and before a communicator is freed. The host device stands for a GPU here, and the test for the
 * kernels. */
#include "device/abi/platform.h"
#include "lib/submission/poller.h"
#include "device/abi/structures.h"
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

static int is_captured(struct rondo_device *device, void *stream)
{
    (void) device, (void) stream;
    return captures;
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_enqueued_and_executed), cmocka_unit_test(test_lane_used_again)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
