/* What ends a communicator: of a lost device, or of one that fails while a call looks at its memory, running, waiting and later
 * operations all end with the reason, and finalizing works; of ranks that are gone, one that died is the reason, and not one
 * that left because of that. */
#include "lib/context/failure.h"
#include "lib/submission/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/support/open_runtime.h"
#include "lib/submission/state.h"
#if RONDO_WITH_CUDA
#include "transport/memory/cuda_driver.h"
#endif

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

#if RONDO_WITH_CUDA
/* The buffers of a rank on a GPU cannot be looked at. That is no mistake of the caller's: the other ranks must not wait. */
static void test_memory_that_cannot_be_looked_at(void **state)
{
    (void) state;
    if (rondo_cuda_driver() != NULL)
        skip();
    for (int form = 0; form < 3; form++) {
        rondo_t handle;
        rondo_comm_t world;
        rondo_request_t request;
        int32_t from[4] = {1, 2, 3, 4}, to[4];
        open_runtime(&handle, &world);
        struct rondo_runtime *runtime = object_of(handle);
        const int host = runtime->device_index;
        runtime->device_index = 0;
        const rondo_result_t result = form == 0 ? rondo_allreduce(from, to, 4, RONDO_INT32, RONDO_SUM, world)
                                      : form == 1
                                          ? rondo_iallreduce(from, to, 4, RONDO_INT32, RONDO_SUM, world, &request)
                                          : rondo_allreduce_init(from, to, 4, RONDO_INT32, RONDO_SUM, world, NULL, &request);
        assert_int_equal(result, RONDO_ERR_DEVICE);
        runtime->device_index = host;
        assert_int_equal(rondo_barrier(world), RONDO_ERR_DEVICE);
        assert_int_equal(rondo_finalize(handle), RONDO_SUCCESS);
    }
}
#endif

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost),
#if RONDO_WITH_CUDA
        cmocka_unit_test(test_memory_that_cannot_be_looked_at),
#endif
        cmocka_unit_test(test_a_death_before_a_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
