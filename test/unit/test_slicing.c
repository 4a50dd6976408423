/* The division of chunks into slices and tiles (lib/submission/slicing.c): every slice fits into a slot, and all elements are
 * sent. */
#include "lib/algorithms/algorithms.h"
#include "device/engine/engine.h"
#include "lib/connection/lane.h"
#include "lib/submission/slicing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rondo_runtime runtime;
static struct rondo_comm comm;
static struct rondo_host_lane lane;
static struct rondo_operation operation;
static struct rondo_program program;
static struct rondo_plan plan;
static struct rondo_request request;

static void set_up(int size)
{
    memset(&runtime, 0, sizeof(runtime));
    memset(&comm, 0, sizeof(comm));
    memset(&lane, 0, sizeof(lane));
    memset(&operation, 0, sizeof(operation));
    memset(&plan, 0, sizeof(plan));
    runtime.size = comm.size = size;
    comm.runtime = request.runtime = &runtime;
    request.comm = &comm;
    request.lane = &lane;
    request.operation = &operation;
    plan.program = &program;
    program.largest_count = 1;
    lane.slot_count = 8;
    for (int p = 0; p < RONDO_PROTOCOLS; p++)
        lane.slot_bytes[p] = 65536;
    operation.element_bytes = 4;
}

static rondo_result_t slice(const char *algorithm, enum rondo_protocol protocol, int channels, uint64_t most)
{
    const uint64_t largest[RONDO_BUFFERS] = {most, most, 0};
    struct rondo_choice choice = {.protocol = protocol, .channels = channels};
    choice.algorithm = rondo_algorithm_find(algorithm, RONDO_KIND_ALLREDUCE);
    return rondo_slice_operation(&request, &plan, &choice, largest);
}

/* The bytes in a slot of an instruction's slice of so many elements. */
static uint64_t bytes_in_slot(enum rondo_protocol protocol, uint64_t elements)
{
    const uint64_t bytes = elements * operation.element_bytes;
    if (operation.rate != 0)
        return rondo_divide_up(elements, RONDO_ZFP_VALUES) * RONDO_ZFP_VALUES * operation.rate / 8 * program.largest_count;
    if (protocol == RONDO_PROTOCOL_LL)
        return 2 * bytes * program.largest_count;
    if (protocol == RONDO_PROTOCOL_LL128)
        return rondo_divide_up(bytes, RONDO_LINE_DATA) * RONDO_LINE_BYTES * program.largest_count;
    return bytes * program.largest_count + (protocol == RONDO_PROTOCOL_TINY ? RONDO_TINY_HEAD : 0);
}

static void check(enum rondo_protocol protocol, uint64_t most)
{
    const uint64_t before = (operation.slices - 1) * operation.slice;
    const uint64_t last = operation.tile < most ? operation.tile : most;
    assert_true(operation.slice > 0 && operation.slices > 0);
    assert_true(operation.tiles * operation.tile >= most && (operation.tiles - 1) * operation.tile < most);
    assert_true(before < operation.tile);
    assert_true(bytes_in_slot(protocol, operation.slice) <= lane.slot_bytes[protocol]);
    if (last > before) /* the last slice of a tile may be longer than the others */
        assert_true(bytes_in_slot(protocol, last - before) <= lane.slot_bytes[protocol]);
}

static void test_fits(void **state)
{
    static const enum rondo_protocol protocols[] = {RONDO_PROTOCOL_SIMPLE, RONDO_PROTOCOL_SMALL, RONDO_PROTOCOL_LL,
                                                    RONDO_PROTOCOL_LL128,  RONDO_PROTOCOL_TMA,   RONDO_PROTOCOL_COMPRESSED,
                                                    RONDO_PROTOCOL_TINY};
    int sliced = 0;
    (void) state;
    srand(1);
    for (int round = 0; round < 200000; round++) {
        const enum rondo_protocol protocol = protocols[(size_t) rand() % (sizeof(protocols) / sizeof(protocols[0]))];
        const uint64_t most = 1 + (uint64_t) rand() % ((uint64_t) 1 << (1 + rand() % 30));
        set_up(rand() % 2 ? 2 : 5);
        comm.gpus_only = protocol == RONDO_PROTOCOL_LL128 || protocol == RONDO_PROTOCOL_TMA || rand() % 2;
        comm.by_host = comm.gpus_only && rand() % 2;
        comm.networked = rand() % 2;
        lane.slot_count = 2u << rand() % 4;
        lane.slot_bytes[protocol] = 512u << rand() % 12;
        operation.element_bytes = (uint8_t) (1u << rand() % 4);
        program.largest_count = 1 + (uint32_t) rand() % 3;
        plan.largest_receive = (uint32_t) rand() % 4;
        if (protocol == RONDO_PROTOCOL_COMPRESSED) {
            operation.element_bytes = 4;
            operation.rate = (uint8_t) (4 + (uint32_t) rand() % 29);
        }
        if (slice(rand() % 2 ? "ring" : "twoshot", protocol, 1 + rand() % 64, most) != RONDO_SUCCESS)
            continue;
        check(protocol, most);
        if (comm.networked && !comm.gpus_only) /* slots for several tiles */
            assert_true(operation.slices <= rondo_network_slices(&runtime));
        sliced++;
    }
    assert_true(sliced > 190000);
}

/* The slots of a rank in host memory between GPUs fit in the processor's cache. */
static void test_host_memory(void **state)
{
    (void) state;
    for (int channels = 1; channels <= 64; channels *= 2) {
        set_up(4);
        comm.gpus_only = comm.by_host = 1;
        lane.slot_bytes[RONDO_PROTOCOL_SIMPLE] = 1 << 20;
        assert_int_equal(slice("ring", RONDO_PROTOCOL_SIMPLE, channels, 64 << 20), RONDO_SUCCESS);
        assert_true((uint64_t) channels * lane.slot_count * operation.slice * 4 <= 4 << 20);
        comm.by_host = 0;
        assert_int_equal(slice("ring", RONDO_PROTOCOL_SIMPLE, channels, 64 << 20), RONDO_SUCCESS);
        assert_int_equal(operation.slice * 4, 1 << 20);
    }
}

/* A compressed chunk has two slices where both are worth their cost, otherwise one; never a long one and a short one. */
static void test_coded(void **state)
{
    (void) state;
    for (uint64_t most = 64; most < 60000; most += 61) {
        set_up(4);
        comm.gpus_only = comm.by_host = 1;
        operation.rate = 8;
        assert_int_equal(slice("ring", RONDO_PROTOCOL_COMPRESSED, 32, most), RONDO_SUCCESS);
        const uint64_t slices = rondo_divide_up(most, operation.slice);
        assert_int_equal(slices, most < 2 * 6144 ? 1 : 2);
        assert_true(most - (slices - 1) * operation.slice + 2 * RONDO_CACHE_LINE > operation.slice);
    }
}

static void test_too_small(void **state)
{
    (void) state;
    set_up(4);
    lane.slot_bytes[RONDO_PROTOCOL_SIMPLE] = 64;
    program.largest_count = 5;
    assert_int_equal(slice("ring", RONDO_PROTOCOL_SIMPLE, 1, 1000), RONDO_ERR_UNSUPPORTED);
    assert_string_equal(rondo_last_error(), "a slot of 64 bytes cannot hold a part of 5 chunks");
    program.largest_count = 4;
    assert_int_equal(slice("ring", RONDO_PROTOCOL_SIMPLE, 1, 1000), RONDO_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_coded),
        cmocka_unit_test(test_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
