/* What ends a communicator: of a lost device, running, waiting and later operations all end with the reason, and finalizing
 * works; of ranks that are gone, one that died is the reason, and not one that left because of that. */
#include "lib/context/failure.h"
#include "lib/submission/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/support/open_runtime.h"
#include "lib/submission/state.h"

enum { MESSAGES = 40 }; /* more operations than a lane holds on the device */

static void called_back(void *argument, rondo_result_t result)
{
    __atomic_store_n((int *) argument, (int) result, __ATOMIC_RELEASE);
}

static void test_lost(void **state)
{
    (void) state;
    rondo_t handle;
    struct rondo_runtime *runtime;
    rondo_comm_t world, later;
    rondo_request_t requests[MESSAGES];
    int32_t data[MESSAGES];
    int result = -1;
    open_runtime(&handle, &world);
    runtime = object_of(handle);
    for (int i = 0; i < MESSAGES; i++) /* no rank sends */
        assert_int_equal(rondo_irecv(&data[i], 1, RONDO_INT32, 0, world, &requests[i]), RONDO_SUCCESS);
    assert_int_equal(rondo_request_callback(requests[1], called_back, &result), RONDO_SUCCESS);
    runtime->device->kind->halt(runtime->device); /* as if the device were lost: no daemon runs any more */
    rondo_device_lost(runtime, RONDO_ERR_DEVICE, "the device has melted");
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(rondo_wait(requests[i]), RONDO_ERR_DEVICE);
        assert_non_null(strstr(rondo_last_error(), "melted"));
    }
    assert_int_equal(__atomic_load_n(&result, __ATOMIC_ACQUIRE), RONDO_ERR_DEVICE);
    assert_int_equal(runtime->queue->in_flight, 0);
    assert_int_equal(rondo_barrier(world), RONDO_ERR_DEVICE);
    assert_int_equal(rondo_comm_dup(world, &later), RONDO_ERR_DEVICE);
    assert_int_equal(rondo_finalize(handle), RONDO_SUCCESS);
}

/* A communicator that is listed after the notices. Rank 0, which heard of the death first, has left before. */
static void test_a_death_before_a_leave(void **state)
{
    enum { SIZE = 5 };
    static const struct rondo_failure_listener *const nothing[] = {NULL};
    int members[SIZE] = {0, 1, 2, 3, 4};
    uint32_t gone[SIZE] = {[0] = RONDO_LEFT, [3] = RONDO_DIED};
    struct rondo_runtime runtime = {.rank = 1, .size = SIZE, .gone = gone, .failure_listeners = nothing};
    struct rondo_comm comm = {.runtime = &runtime, .rank = 1, .size = SIZE, .members = members};
    (void) state;
    pthread_mutex_init(&runtime.lock, NULL);
    rondo_comm_fail_early(&comm);
    assert_int_equal(rondo_comm_failure(&comm), RONDO_ERR_PEER);
    assert_string_equal(comm.failure, "rank 3 has died");
    gone[3] = RONDO_HERE;
    comm.failed = RONDO_SUCCESS;
    rondo_comm_fail_early(&comm);
    assert_string_equal(comm.failure, "rank 0 has left");
    gone[0] = RONDO_HERE;
    comm.failed = RONDO_SUCCESS;
    rondo_comm_fail_early(&comm);
    assert_int_equal(rondo_comm_failure(&comm), RONDO_SUCCESS);
    pthread_mutex_destroy(&runtime.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost), cmocka_unit_test(test_a_death_before_a_leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
