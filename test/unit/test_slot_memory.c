/* The choice of the slots' memory without a NIC: functions in the place of libibverbs' give the answers of real NICs. What a
 * NIC does with GPU memory needs a NIC. */
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "transport/memory/slot_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_wanted(void **state)
{
    (void) state;
    int automatic;
    enum rondo_slot_memory kind = RONDO_SLOTS_APART;
    unsetenv("RONDO_GPUDIRECT");
    assert_int_equal(rondo_slot_memory_wanted(&automatic, &kind), RONDO_SUCCESS);
    assert_true(automatic);
    setenv("RONDO_GPUDIRECT", "auto", 1);
    assert_int_equal(rondo_slot_memory_wanted(&automatic, &kind), RONDO_SUCCESS);
    assert_true(automatic);
    for (int i = 0; i < RONDO_SLOTS_KINDS; i++) {
        setenv("RONDO_GPUDIRECT", rondo_slot_memory_names[i], 1);
        assert_int_equal(rondo_slot_memory_wanted(&automatic, &kind), RONDO_SUCCESS);
        assert_false(automatic);
        assert_int_equal(kind, i);
    }
    setenv("RONDO_GPUDIRECT", "dma-buf", 1);
    assert_int_equal(rondo_slot_memory_wanted(&automatic, &kind), RONDO_ERR_ARGUMENT);
    assert_non_null(strstr(rondo_last_error(), "RONDO_GPUDIRECT=\"dma-buf\""));
    unsetenv("RONDO_GPUDIRECT");
}

/* Whether the processor may read the slots: it reads what is sent inline in the request. */
static void test_reach(void **state)
{
    (void) state;
    for (int i = 0; i < RONDO_SLOTS_KINDS; i++)
        assert_true(rondo_slot_memory_is_host((enum rondo_slot_memory) i, -1));
    assert_true(rondo_slot_memory_is_host(RONDO_SLOTS_WITH_COUNTERS, 0));
    assert_true(rondo_slot_memory_is_host(RONDO_SLOTS_APART, 0));
    assert_false(rondo_slot_memory_is_host(RONDO_SLOTS_DMABUF, 0));
    assert_false(rondo_slot_memory_is_host(RONDO_SLOTS_PEERMEM, 0));
}

#if RONDO_WITH_VERBS
#include "transport/rdma/rdma.h"

#include <errno.h>

static int error_of_dmabufs, error_of_memory, registered;
static struct ibv_mr keys;

static struct ibv_mr *answer(int error)
{
    registered += error == 0;
    errno = error;
    return error == 0 ? &keys : NULL;
}

static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *domain, uint64_t offset, size_t bytes, uint64_t address, int descriptor,
                                    int access)
{
    (void) domain;
    (void) offset;
    (void) bytes;
    (void) address;
    (void) access;
    return answer(descriptor < 0 && error_of_dmabufs == 0 ? EBADF : error_of_dmabufs);
}

static struct ibv_mr *reg_mr(struct ibv_pd *domain, void *base, size_t bytes, int access)
{
    (void) domain;
    (void) base;
    (void) bytes;
    (void) access;
    return answer(error_of_memory);
}

static int dereg_mr(struct ibv_mr *region)
{
    assert_ptr_equal(region, &keys);
    registered--;
    return 0;
}

static void expect_refusal(struct rondo_rdma *rdma, enum rondo_slot_memory kind, const char *why)
{
    assert_int_not_equal(rondo_rdma_try_slots(rdma, kind, 0, rdma->rail_count), RONDO_SUCCESS);
    assert_non_null(strstr(rondo_last_error(), why));
    setenv("RONDO_GPUDIRECT", rondo_slot_memory_names[kind], 1);
    assert_int_not_equal(rondo_rdma_choose_slots(rdma), RONDO_SUCCESS);
    assert_non_null(strstr(rondo_last_error(), why));
    assert_non_null(strstr(rondo_last_error(), "RONDO_GPUDIRECT="));
    unsetenv("RONDO_GPUDIRECT");
    assert_int_equal(registered, 0);
}

static void test_refusals(void **state)
{
    (void) state;
    struct rondo_rdma_library library = {.ibv_reg_mr = reg_mr, .ibv_dereg_mr = dereg_mr};
    struct rondo_rdma rdma = {
        .library = &library, .gpu = -1, .rank = 0, .rail_count = 2, .rails = {{.name = "a0"}, {.name = "b1"}}};
    expect_refusal(&rdma, RONDO_SLOTS_DMABUF, "libibverbs is older than 1.12");
    library.ibv_reg_dmabuf_mr = reg_dmabuf_mr;
    error_of_dmabufs = EOPNOTSUPP;
    expect_refusal(&rdma, RONDO_SLOTS_DMABUF, "the driver of a0 registers no dma-bufs");
    error_of_dmabufs = 0; /* the NIC accepts; now the memory does not belong to a GPU */
    expect_refusal(&rdma, RONDO_SLOTS_DMABUF, "dmabuf is for the memory of GPUs");
    expect_refusal(&rdma, RONDO_SLOTS_PEERMEM, "peermem is for the memory of GPUs");
    /* By default a rank on the host keeps its slots beside the counters, and tries nothing. */
    assert_int_equal(rondo_rdma_choose_slots(&rdma), RONDO_SUCCESS);
    assert_int_equal(rdma.slots, RONDO_SLOTS_WITH_COUNTERS);
}

/* A rank on a GPU, as far as it can be tested without one: the attempts, and the reasons that are reported. */
static void test_merits(void **state)
{
    (void) state;
    char whys[RONDO_RDMA_MERITS][RONDO_SURVEY_TEXT];
    struct rondo_rdma_library library = {.ibv_reg_mr = reg_mr, .ibv_dereg_mr = dereg_mr, .ibv_reg_dmabuf_mr = reg_dmabuf_mr};
    struct rondo_rdma rdma = {
        .library = &library, .rail_count = 2, .rails = {{.name = "a0", .node = 0}, {.name = "b1", .node = 1}}};
    error_of_dmabufs = EOPNOTSUPP;
    assert_int_equal(rondo_rdma_best_slots(&rdma, 0, 2, whys), RONDO_SLOTS_WITH_COUNTERS);
    assert_string_equal(whys[0], "b1 is on memory node 1, GPU 0 on node 0");
    assert_string_equal(whys[1], "b1 is on memory node 1, GPU 0 on node 0");
    assert_int_equal(rondo_rdma_best_slots(&rdma, 0, 1, whys), RONDO_SLOTS_WITH_COUNTERS);
    assert_non_null(strstr(whys[0], "the driver of a0 registers no dma-bufs"));
    assert_null(strstr(whys[1], "memory node")); /* the attempt was made */
    rdma.node = -1;                              /* a NIC of unknown location does not count as distant */
    assert_int_equal(rondo_rdma_best_slots(&rdma, 0, 2, whys), RONDO_SLOTS_WITH_COUNTERS);
    assert_non_null(strstr(whys[0], "the driver of a0 registers no dma-bufs"));
    error_of_dmabufs = 0;
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_reach),
#if RONDO_WITH_VERBS
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_merits),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
