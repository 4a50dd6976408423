/* A lost device: running, waiting and later operations all end with the reason, and finalizing works. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
