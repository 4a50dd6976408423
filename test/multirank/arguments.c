/*
 * Bad arguments: each call fails with the right code and a message that contains the offending value, nothing is sent, and the
 * next good call works. Every rank makes the same bad calls. Where one rank alone makes them, the test shows that nothing was
 * sent.
 */
#include "test/multirank/elements.h"
#include "test/multirank/ranks.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static long ranks = 2;
static const char *scenario = "all";

#define BAD_TYPE   ((rondo_datatype_t) 77)
#define BAD_OP     ((rondo_op_t) 78)
#define HUGE_COUNT (SIZE_MAX / 2)

static void good(struct rank *me)
{
    int64_t mine = me->rank + 1, sum = 0;
    STEP("the good call after the bad ones");
    MUST(rondo_allreduce(&mine, &sum, 1, RONDO_INT64, RONDO_SUM, me->world));
    CHECK(sum == (int64_t) me->size * (me->size + 1) / 2, "sum %lld", (long long) sum);
}

static void pointers(struct rank *me)
{
    static _Alignas(64) double zone[64][64];
    double *send = zone[me->rank], *recv = send + 32;
    rondo_comm_t world = me->world;
    rondo_request_t request = NULL;
    int number;
    EXPECT(RONDO_ERR_ARGUMENT, "comm", rondo_allreduce(send, recv, 4, RONDO_DOUBLE, RONDO_SUM, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "comm", rondo_barrier(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "comm", rondo_bcast(send, 4, RONDO_DOUBLE, 0, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "comm", rondo_send(send, 4, RONDO_DOUBLE, 0, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "comm", rondo_group_start(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "request", rondo_iallreduce(send, recv, 4, RONDO_DOUBLE, RONDO_SUM, world, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "request", rondo_allreduce_init(send, recv, 4, RONDO_DOUBLE, RONDO_SUM, world, NULL, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "request", rondo_ibarrier(world, NULL));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_allreduce(NULL, recv, 4, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_allreduce(send, NULL, 4, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_allreduce(RONDO_IN_PLACE, NULL, 4, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_iallreduce(NULL, recv, 4, RONDO_DOUBLE, RONDO_SUM, world, &request));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_allreduce_init(send, NULL, 4, RONDO_DOUBLE, RONDO_SUM, world, NULL, &request));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_bcast(NULL, 4, RONDO_DOUBLE, 0, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_allgather(NULL, recv, 4, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_reduce_scatter_block(send, NULL, 4, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_alltoall(send, NULL, 4, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_scan(NULL, recv, 4, RONDO_DOUBLE, RONDO_SUM, world));
    if (me->rank > 0) /* rank 0's buffer is not touched, so it may be anything there */
        EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_exscan(send, NULL, 4, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_send(NULL, 4, RONDO_DOUBLE, 0, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_recv(NULL, 4, RONDO_DOUBLE, 0, world));
    CHECK(request == NULL, "a refused call made a request %p", (void *) request);
    size_t counts[64] = {0}, displs[64] = {0};
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_allgatherv(send, 0, recv, NULL, displs, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_ARGUMENT, "displ", rondo_allgatherv(send, 0, recv, counts, NULL, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_alltoallv(send, NULL, displs, recv, counts, displs, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_ARGUMENT, "displ", rondo_alltoallv(send, counts, displs, recv, counts, NULL, RONDO_DOUBLE, world));
    static rondo_datatype_t types[64];
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_reduce_scatter(send, recv, NULL, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_alltoallw(send, counts, displs, types, recv, NULL, displs, types, world));
    EXPECT(RONDO_ERR_ARGUMENT, "types", rondo_alltoallw(send, counts, displs, NULL, recv, counts, displs, types, world));
    EXPECT(RONDO_ERR_ARGUMENT, "types", rondo_alltoallw(send, counts, displs, types, recv, counts, displs, NULL, world));
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_gatherv(send, 0, recv, NULL, displs, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_ARGUMENT, "displ", rondo_gatherv(send, 0, recv, counts, NULL, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_scatterv(send, NULL, displs, recv, 0, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_ARGUMENT, "displ", rondo_scatterv(send, counts, NULL, recv, 0, RONDO_DOUBLE, me->rank, world));
    counts[me->rank] = 1;
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_gatherv(NULL, 1, recv, counts, displs, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_gatherv(send, 1, NULL, counts, displs, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_scatterv(NULL, counts, displs, recv, 1, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_scatterv(send, counts, displs, NULL, 1, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_reduce_scatter(send, NULL, counts, RONDO_DOUBLE, RONDO_SUM, world));
    counts[me->rank] = 0;
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_rank(NULL, &number));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_rank(world, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_size(world, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_id(world, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_world(me->runtime, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_world(NULL, &world));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_split(me->world, 0, 0, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "rondo_comm_dup: ", rondo_comm_dup(me->world, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_free(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_abort(NULL, 1));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_get_stats(me->runtime, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_get_stats(NULL, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_device_synchronize(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_device(me->runtime, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_finalize(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_init(NULL, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_get_unique_id(NULL));
    good(me);
}

static void misaligned(struct rank *me)
{
    static _Alignas(64) unsigned char zone[64][1024];
    unsigned char *base = zone[me->rank];
    void *odd = base + 1, *half = base + 4, *far = base + 512;
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(odd), rondo_allreduce(odd, far, 4, RONDO_DOUBLE, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(half), rondo_allreduce(far, half, 4, RONDO_DOUBLE, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(odd), rondo_bcast(odd, 4, RONDO_FLOAT16, 0, me->world));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(odd), rondo_allgather(odd, far, 4, RONDO_INT32, me->world));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(odd), rondo_send(odd, 4, RONDO_INT32, 0, me->world));
    rondo_request_t request = NULL;
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(odd), rondo_recv_init(odd, 4, RONDO_INT64, 0, me->world, NULL, &request));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(half),
           rondo_scan_init(far, half, 4, RONDO_INT64, RONDO_MAX, me->world, NULL, &request));
    /* Single bytes have no alignment. */
    memset(base, 1, 1024);
    MUST(rondo_allreduce(odd, far, 4, RONDO_INT8, RONDO_SUM, me->world));
    good(me);
}

/* Every type with every operator: it works, or the message names both. */
static void type_and_operator(struct rank *me)
{
    static _Alignas(64) char zone[64][64];
    char *send = zone[me->rank], *recv = send + 32;
    for (int type = 0; type < RONDO_DATATYPE_COUNT; type++)
        for (int op = 0; op < RONDO_OP_COUNT; op++) {
            memset(send, 0, 64);
            if (op_takes((rondo_op_t) op, (rondo_datatype_t) type)) {
                rondo_result_t result = rondo_allreduce(send, recv, 1, (rondo_datatype_t) type, (rondo_op_t) op, me->world);
                const int on_gpus = ranks_device() == RONDO_DEVICE_CUDA && result == RONDO_ERR_UNSUPPORTED;
                CHECK(result == RONDO_SUCCESS || on_gpus, "%s of %s: %s", op_names[op], type_table[type].name,
                      rondo_last_error());
                continue;
            }
            EXPECT(RONDO_ERR_ARGUMENT, type_table[type].name,
                   rondo_allreduce(send, recv, 1, (rondo_datatype_t) type, (rondo_op_t) op, me->world));
            EXPECT(RONDO_ERR_ARGUMENT, op_names[op],
                   rondo_scan(send, recv, 1, (rondo_datatype_t) type, (rondo_op_t) op, me->world));
        }
    /* Buffers are aligned as C aligns the types. */
    MUST(rondo_bcast(send + 4, 2, RONDO_COMPLEX_FLOAT, 0, me->world));
    MUST(rondo_bcast(send + 8, 1, RONDO_DOUBLE_INT, 0, me->world));
    EXPECT(RONDO_ERR_BUFFER, "complex_float", rondo_bcast(send + 2, 2, RONDO_COMPLEX_FLOAT, 0, me->world));
    EXPECT(RONDO_ERR_BUFFER, "8 bytes of long_int", rondo_bcast(send + 4, 1, RONDO_LONG_INT, 0, me->world));
    EXPECT(RONDO_ERR_BUFFER, "16 bytes of long_double", rondo_bcast(send + 8, 1, RONDO_LONG_DOUBLE, 0, me->world));
}

static void enumerators(struct rank *me)
{
    static double zone[64][64];
    double *send = zone[me->rank], *recv = send + 32;
    rondo_request_t request = NULL;
    size_t bytes;
    char no_type[12], no_op[12]; /* the first numbers that are none */
    snprintf(no_type, sizeof(no_type), "%d", RONDO_DATATYPE_COUNT);
    snprintf(no_op, sizeof(no_op), "%d", RONDO_OP_COUNT);
    EXPECT(RONDO_ERR_ARGUMENT, "77", rondo_allreduce(send, recv, 4, BAD_TYPE, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "-1", rondo_allreduce(send, recv, 4, (rondo_datatype_t) -1, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, no_type, rondo_bcast(send, 4, RONDO_DATATYPE_COUNT, 0, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "77", rondo_allgather_init(send, recv, 4, BAD_TYPE, me->world, NULL, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "77", rondo_isend(send, 4, BAD_TYPE, 0, me->world, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "78", rondo_allreduce(send, recv, 4, RONDO_FLOAT, BAD_OP, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "-1", rondo_reduce(send, recv, 4, RONDO_FLOAT, (rondo_op_t) -1, 0, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, no_op, rondo_scan(send, recv, 4, RONDO_FLOAT, RONDO_OP_COUNT, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "78", rondo_ireduce_scatter_block(send, recv, 1, RONDO_FLOAT, BAD_OP, me->world, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "77", rondo_datatype_size(BAD_TYPE, &bytes));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_datatype_size(RONDO_FLOAT, NULL));
    const rondo_datatype_t floats[] = {RONDO_FLOAT16, RONDO_BFLOAT16,   RONDO_FLOAT,
                                       RONDO_DOUBLE,  RONDO_FLOAT8E4M3, RONDO_FLOAT8E5M2};
    for (int f = 0; f < 6; f++)
        for (int op = RONDO_BAND; op <= RONDO_BXOR; op++) {
            EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_UNSUPPORTED, "",
                          rondo_allreduce(send, recv, 4, floats[f], (rondo_op_t) op, me->world));
            CHECK(strstr(rondo_last_error(), "float") != NULL || strstr(rondo_last_error(), "FLOAT") != NULL ||
                      strstr(rondo_last_error(), "double") != NULL || strstr(rondo_last_error(), "DOUBLE") != NULL,
                  "the message names no type: %s", rondo_last_error());
        }
    EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_UNSUPPORTED, "", rondo_scan(send, recv, 4, RONDO_FLOAT, RONDO_AVG, me->world));
    EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_UNSUPPORTED, "",
                  rondo_exscan_init(send, recv, 4, RONDO_INT32, RONDO_AVG, me->world, NULL, &request));
    CHECK(request == NULL, "a refused call made a request %p", (void *) request);
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1, 2, 2, 1, 8, 16, 16, 8, 16, 16, 8, 8, 32};
    for (int type = 0; type < RONDO_DATATYPE_COUNT; type++) {
        MUST(rondo_datatype_size((rondo_datatype_t) type, &bytes));
        CHECK(bytes == sizes[type], "type %d has %zu bytes", type, bytes);
    }
    type_and_operator(me);
    const char *unknown = rondo_strerror(12345);
    CHECK(unknown != NULL && strcmp(unknown, rondo_strerror(RONDO_SUCCESS)) != 0, "strerror(12345) is %s", unknown);
    good(me);
}

static void counts(struct rank *me)
{
    static double zone[64][64];
    double *send = zone[me->rank], *recv = send + 32;
    rondo_request_t request = NULL;
    char huge[32], quarter[32], counts_text[32];
    snprintf(huge, sizeof(huge), "%zu", HUGE_COUNT);
    snprintf(quarter, sizeof(quarter), "%zu", SIZE_MAX / 4);
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_allreduce(send, recv, HUGE_COUNT, RONDO_DOUBLE, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_bcast(send, HUGE_COUNT, RONDO_INT64, 0, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_send_init(send, HUGE_COUNT, RONDO_INT32, 0, me->world, NULL, &request));
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_scan(send, recv, HUGE_COUNT, RONDO_FLOAT, RONDO_SUM, me->world));
    if (me->size > 1) { /* the count fits in the address space once, but not size times */
        EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_allgather(send, recv, HUGE_COUNT, RONDO_INT8, me->world));
        EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_ialltoall(send, recv, HUGE_COUNT, RONDO_UINT8, me->world, &request));
        EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_gather(send, recv, HUGE_COUNT, RONDO_INT8, 0, me->world));
        EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_scatter(send, recv, HUGE_COUNT, RONDO_INT8, 0, me->world));
        EXPECT(RONDO_ERR_ARGUMENT, quarter,
               rondo_reduce_scatter_block_init(send, recv, SIZE_MAX / 4, RONDO_FLOAT16, RONDO_SUM, me->world, NULL, &request));
    }
    size_t lengths[64] = {0}, displs[64] = {0}, ones[64], adjacent[64];
    for (int r = 0; r < 64; r++)
        ones[r] = 1, adjacent[r] = (size_t) r;
    lengths[0] = HUGE_COUNT;
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_allgatherv(send, lengths[me->rank], recv, lengths, displs, RONDO_INT64, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_alltoallv(send, lengths, displs, recv, displs, displs, RONDO_INT64, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_reduce_scatter(send, recv, lengths, RONDO_INT64, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge,
           rondo_gatherv(send, lengths[me->rank], recv, lengths, displs, RONDO_INT64, me->rank, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge,
           rondo_scatterv(send, lengths, displs, recv, lengths[me->rank], RONDO_INT64, me->rank, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_gatherv(send, HUGE_COUNT, NULL, NULL, NULL, RONDO_INT64, 0, me->world));
    rondo_datatype_t types[64];
    for (int r = 0; r < me->size; r++)
        types[r] = RONDO_DOUBLE;
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_alltoallw(send, lengths, displs, types, recv, displs, displs, types, me->world));
    if (me->size > 1)
        EXPECT(RONDO_ERR_ARGUMENT, "overlap",
               rondo_alltoallw(send, ones, adjacent, types, recv, ones, adjacent, types, me->world));
    types[0] = (rondo_datatype_t) 99;
    EXPECT(RONDO_ERR_ARGUMENT, "datatype 99",
           rondo_alltoallw(send, displs, displs, types, recv, displs, displs, types, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "recvcount 3 is not",
           rondo_scatterv(send, ones, displs, recv, 3, RONDO_INT64, me->rank, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "sendcount 3 is not",
           rondo_gatherv(send, 3, recv, ones, adjacent, RONDO_INT64, me->rank, me->world));
    lengths[0] = 1;
    displs[0] = HUGE_COUNT;
    EXPECT(RONDO_ERR_ARGUMENT, huge, rondo_allgatherv(send, lengths[me->rank], recv, lengths, displs, RONDO_INT64, me->world));
    /* The table must agree with the caller's own contribution. */
    for (int r = 0; r < me->size; r++)
        lengths[r] = 2, displs[r] = (size_t) r * 2;
    snprintf(counts_text, sizeof(counts_text), "%d", 3);
    EXPECT(RONDO_ERR_ARGUMENT, counts_text, rondo_allgatherv(send, 3, recv, lengths, displs, RONDO_INT64, me->world));
    if (me->size > 1) {
        displs[1] = 1;
        EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_BUFFER, "1",
                      rondo_allgatherv(send, 2, recv, lengths, displs, RONDO_INT64, me->world));
    }
    /* No elements need no buffers. */
    MUST(rondo_allreduce(NULL, NULL, 0, RONDO_DOUBLE, RONDO_SUM, me->world));
    MUST(rondo_bcast(NULL, 0, RONDO_DOUBLE, 0, me->world));
    MUST(rondo_allgather(NULL, NULL, 0, RONDO_DOUBLE, me->world));
    good(me);
}

static void roots(struct rank *me)
{
    static double zone[64][64];
    double *send = zone[me->rank], *recv = send + 32;
    rondo_request_t request = NULL;
    char size[16];
    snprintf(size, sizeof(size), "%d", me->size);
    EXPECT(RONDO_ERR_ARGUMENT, "-1", rondo_bcast(send, 1, RONDO_DOUBLE, -1, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, size, rondo_bcast(send, 1, RONDO_DOUBLE, me->size, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "1000", rondo_reduce(send, recv, 1, RONDO_DOUBLE, RONDO_SUM, 1000, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "-7", rondo_igather(send, recv, 1, RONDO_DOUBLE, -7, me->world, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "1001", rondo_scatter_init(send, recv, 1, RONDO_DOUBLE, 1001, me->world, NULL, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "2147483647", rondo_bcast_init(send, 1, RONDO_DOUBLE, INT_MAX, me->world, NULL, &request));
    EXPECT(RONDO_ERR_ARGUMENT, size, rondo_send(send, 1, RONDO_DOUBLE, me->size, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "-1", rondo_isend(send, 1, RONDO_DOUBLE, -1, me->world, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "-2147483648", rondo_recv(send, 1, RONDO_DOUBLE, INT_MIN, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "99", rondo_recv_init(send, 1, RONDO_DOUBLE, 99, me->world, NULL, &request));
    CHECK(request == NULL, "a refused call made a request %p", (void *) request);
    good(me);
}

static void graphs(struct rank *me)
{
    static int32_t zone[64][512];
    int32_t *send = zone[me->rank], *recv = send + 256;
    rondo_comm_t world = me->world, made = world, copy;
    const int here = me->rank, next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    const int last = me->rank == me->size - 1, beyond = me->size;
    const int dims[] = {me->size, 1}, none[] = {0, 0}, periods[] = {1, 1}, odd[] = {1, 1};
    size_t counts[4] = {1, 1, 1, 1}, displs[4] = {0, 1, 2, 3};
    EXPECT(RONDO_ERR_ARGUMENT, "no graph", rondo_neighbor_allgather(send, recv, 1, RONDO_INT32, world));
    EXPECT(RONDO_ERR_ARGUMENT, "no graph",
           rondo_neighbor_alltoallv(send, counts, displs, recv, counts, displs, RONDO_INT32, world));
    EXPECT(RONDO_ERR_ARGUMENT, "result pointer", rondo_graph_create(world, 0, NULL, 0, NULL, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "list of 1 sources is NULL", rondo_graph_create(world, 1, NULL, 0, NULL, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "list of 2 destinations is NULL", rondo_graph_create(world, 0, NULL, 2, NULL, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "-1 sources", rondo_graph_create(world, -1, NULL, 0, NULL, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "128 destinations", rondo_graph_create(world, 0, NULL, 128, &here, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "is not a rank", rondo_graph_create(world, 1, &beyond, 0, NULL, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "dims or periods", rondo_cart_create(world, 1, NULL, periods, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "dimension 0 has 0", rondo_cart_create(world, 1, none, periods, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "a grid of", rondo_cart_create(world, 1, &(int){me->size + 1}, periods, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "64 dimensions", rondo_cart_create(world, 64, dims, periods, &made));
    /* An edge with one end: the last rank sends, and no rank receives. */
    EXPECT(RONDO_ERR_MISMATCH, "does not name it", rondo_graph_create(world, 0, NULL, last, &here, &made));
    CHECK(made == NULL, "a communicator was made");
    if (me->size > 1) {
        EXPECT(RONDO_ERR_MISMATCH, "different dimensions", rondo_cart_create(world, 1 + last, odd, periods, &made));
        EXPECT(RONDO_ERR_MISMATCH, "different functions",
               last ? rondo_cart_create(world, 0, NULL, NULL, &made) : rondo_graph_create(world, 0, NULL, 0, NULL, &made));
    }
    /* A grid of one point: the other ranks are beyond it. */
    MUST(rondo_cart_create(world, 0, NULL, NULL, &made));
    CHECK((made != NULL) == (me->rank == 0), "rank %d got %p", me->rank, (void *) made);
    if (made != NULL) {
        MUST(rondo_neighbor_alltoall(NULL, NULL, 3, RONDO_INT32, made));
        MUST(rondo_comm_free(&made));
    }
    MUST(rondo_graph_create(world, 1, &previous, 1, &next, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "counts", rondo_neighbor_allgatherv(send, 1, recv, NULL, displs, RONDO_INT32, made));
    EXPECT(RONDO_ERR_BUFFER, "NULL", rondo_neighbor_allgather(NULL, recv, 1, RONDO_INT32, made));
    EXPECT(RONDO_ERR_BUFFER, "IN_PLACE", rondo_neighbor_alltoall(RONDO_IN_PLACE, recv, 1, RONDO_INT32, made));
    EXPECT(RONDO_ERR_BUFFER, "overlap", rondo_neighbor_allgather(recv, recv, 1, RONDO_INT32, made));
    /* A copy has the graph, also after the original is gone. */
    MUST(rondo_comm_dup(made, &copy));
    MUST(rondo_comm_free(&made));
    send[0] = me->rank;
    MUST(rondo_neighbor_allgather(send, recv, 1, RONDO_INT32, copy));
    CHECK(recv[0] == previous, "%d, not %d", recv[0], previous);
    MUST(rondo_comm_free(&copy));
    good(me);
}

static void aliasing(struct rank *me)
{
    static double zone[64][512];
    double *buffer = zone[me->rank];
    rondo_comm_t world = me->world;
    rondo_request_t request = NULL;
    size_t size = (size_t) me->size;
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(buffer), rondo_allreduce(buffer, buffer, 8, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(buffer + 7),
           rondo_allreduce(buffer, buffer + 7, 8, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, ranks_pointer_text(buffer + 7),
           rondo_allreduce(buffer + 7, buffer, 8, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_iallreduce(buffer, buffer + 1, 8, RONDO_DOUBLE, RONDO_SUM, world, &request));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_allgather(buffer + size, buffer, 2, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_reduce_scatter_block(buffer, buffer + 2 * size - 1, 2, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_alltoall(buffer, buffer, 2, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_scan(buffer, buffer, 2, RONDO_DOUBLE, RONDO_SUM, world));
    /* Buffers cannot overlap on a rank whose receive buffer is not written or whose send buffer is not read. */
    if (me->rank > 0)
        EXPECT(RONDO_ERR_BUFFER, "", rondo_exscan_init(buffer, buffer + 1, 2, RONDO_DOUBLE, RONDO_SUM, world, NULL, &request));
    if (me->rank > 0 && me->rank < me->size - 1)
        EXPECT(RONDO_ERR_BUFFER, "", rondo_alltonext(buffer, buffer, 2, RONDO_DOUBLE, world));
    size_t lengths[64], displs[64];
    for (size_t r = 0; r < size; r++)
        lengths[r] = 2, displs[r] = 2 * r;
    EXPECT(RONDO_ERR_BUFFER, "", rondo_allgatherv(buffer + 1, 2, buffer, lengths, displs, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_alltoallv(buffer, lengths, displs, buffer, lengths, displs, RONDO_DOUBLE, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_gatherv(buffer + 1, 2, buffer, lengths, displs, RONDO_DOUBLE, me->rank, world));
    EXPECT(RONDO_ERR_BUFFER, "", rondo_scatterv(buffer, lengths, displs, buffer + 1, 2, RONDO_DOUBLE, me->rank, world));
    if (size > 1) {
        EXPECT(RONDO_ERR_BUFFER, "IN_PLACE",
               rondo_gatherv(RONDO_IN_PLACE, 2, NULL, NULL, NULL, RONDO_DOUBLE, (me->rank + 1) % me->size, world));
        EXPECT(RONDO_ERR_BUFFER, "IN_PLACE",
               rondo_scatterv(NULL, NULL, NULL, RONDO_IN_PLACE, 2, RONDO_DOUBLE, (me->rank + 1) % me->size, world));
    }
    lengths[0] = 3; /* not even this rank's own block of the input: blocks have different sizes */
    for (size_t r = 1; r < size; r++)
        displs[r] = displs[r - 1] + lengths[r - 1];
    EXPECT(RONDO_ERR_BUFFER, "overlap",
           rondo_reduce_scatter(buffer, buffer + displs[me->rank], lengths, RONDO_DOUBLE, RONDO_SUM, world));
    lengths[0] = 2;
    for (size_t r = 0; r < size; r++)
        displs[r] = 2 * r;
    EXPECT_EITHER(RONDO_ERR_BUFFER, RONDO_ERR_ARGUMENT, "", rondo_bcast(RONDO_IN_PLACE, 2, RONDO_DOUBLE, 0, world));
    EXPECT_EITHER(RONDO_ERR_BUFFER, RONDO_ERR_ARGUMENT, "",
                  rondo_allreduce(buffer, RONDO_IN_PLACE, 2, RONDO_DOUBLE, RONDO_SUM, world));
    EXPECT_EITHER(RONDO_ERR_BUFFER, RONDO_ERR_ARGUMENT, "", rondo_send(RONDO_IN_PLACE, 2, RONDO_DOUBLE, 0, world));
    if (size > 1) /* only the root may pass the in-place buffer */
        EXPECT_EITHER(RONDO_ERR_BUFFER, RONDO_ERR_ARGUMENT, "",
                      rondo_reduce(RONDO_IN_PLACE, buffer, 2, RONDO_DOUBLE, RONDO_SUM, (me->rank + 1) % me->size, world));
    CHECK(request == NULL, "a refused call made a request %p", (void *) request);
    /* Adjacent buffers do not overlap. */
    for (int i = 0; i < 16; i++)
        buffer[i] = 1;
    MUST(rondo_allreduce(buffer, buffer + 8, 8, RONDO_DOUBLE, RONDO_SUM, world));
    CHECK(buffer[15] == me->size && buffer[7] == 1, "%g %g", buffer[15], buffer[7]);
    good(me);
}

static void requests(struct rank *me)
{
    static int32_t zone[64][128];
    int32_t *send = zone[me->rank], *recv = send + 64;
    rondo_comm_t other = NULL;
    MUST(rondo_comm_dup(me->world, &other));
    rondo_request_t request = NULL, once = NULL, none = NULL;
    int done = -1;
    MUST(rondo_allreduce_init(send, recv, 4, RONDO_INT32, RONDO_SUM, other, NULL, &request));
    MUST(rondo_wait(request)); /* the request is inactive: the call returns at once */
    MUST(rondo_test(request, &done));
    CHECK(done == 1, "test of an inactive request: done %d", done);
    if (me->size > 1) { /* the request stays active while the last rank keeps the others waiting */
        if (me->rank < me->size - 1) {
            MUST(rondo_start(request));
            EXPECT(RONDO_ERR_STATE, "", rondo_start(request));
            EXPECT(RONDO_ERR_STATE, "", rondo_startall(1, &request));
            EXPECT(RONDO_ERR_STATE, "", rondo_request_free(&request));
            CHECK(request != NULL, "a refused free set the handle to NULL");
            EXPECT(RONDO_ERR_STATE, "", rondo_comm_free(&other));
            CHECK(other != NULL, "a refused comm_free set the handle to NULL");
            EXPECT(RONDO_ERR_STATE, "", rondo_start(request));
        }
        good(me);
        if (me->rank == me->size - 1)
            MUST(rondo_start(request));
        MUST(rondo_wait(request));
    }
    MUST(rondo_iallreduce(send, recv, 4, RONDO_INT32, RONDO_SUM, other, &once));
    /* The request is not persistent, and its completion has not been reported. */
    EXPECT_EITHER(RONDO_ERR_STATE, RONDO_ERR_ARGUMENT, "", rondo_start(once));
    MUST(rondo_wait(once));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_start(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_wait(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_test(NULL, &done));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_test(request, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_request_free(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_request_callback(request, NULL, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "-1", rondo_waitall(-1, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "-2", rondo_startall(-2, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_waitall(1, NULL));
    MUST(rondo_waitall(1, &none));
    MUST(rondo_waitall(0, NULL));
    MUST(rondo_start(request));
    MUST(rondo_wait(request));
    MUST(rondo_request_free(&request));
    CHECK(request == NULL, "request_free left %p", (void *) request);
    MUST(rondo_comm_free(&other));
    CHECK(other == NULL, "comm_free left %p", (void *) other);
    rondo_comm_t world = me->world;
    EXPECT_EITHER(RONDO_ERR_STATE, RONDO_ERR_ARGUMENT, "", rondo_comm_free(&world));
    CHECK(world == me->world, "a refused comm_free changed the handle to %p", (void *) world);
    good(me);
}

static void groups(struct rank *me)
{
    int32_t value = 5;
    EXPECT(RONDO_ERR_STATE, "", rondo_group_end(me->world));
    MUST(rondo_group_start(me->world));
    EXPECT(RONDO_ERR_STATE, "", rondo_group_start(me->world));
    /* A bad call in a group fails at once and leaves the group usable. */
    EXPECT(RONDO_ERR_ARGUMENT, "77", rondo_send(&value, 1, BAD_TYPE, 0, me->world));
    MUST(rondo_group_end(me->world));
    EXPECT(RONDO_ERR_STATE, "", rondo_group_end(me->world));
    good(me);
}

static void attributes(struct rank *me)
{
    static float zone[64][64];
    float *send = zone[me->rank], *recv = send + 32;
    rondo_request_t request = NULL;
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    attr.program = "no_such_program";
    EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_UNSUPPORTED, "no_such_program",
                  rondo_allreduce_init(send, recv, 4, RONDO_FLOAT, RONDO_SUM, me->world, &attr, &request));
    attr.program = NULL;
    attr.compress_rate = -3;
    EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_UNSUPPORTED, "-3",
                  rondo_allreduce_init(send, recv, 4, RONDO_FLOAT, RONDO_SUM, me->world, &attr, &request));
    CHECK(request == NULL, "a refused call made a request %p", (void *) request);
    good(me);
}

/* The host device has no streams: every collective on a stream fails, although its other arguments are good. */
static void streams(struct rank *me)
{
    static int32_t zone[64][256];
    int32_t *send = zone[me->rank], *recv = send + 128;
    rondo_comm_t world = me->world;
    const rondo_datatype_t type = RONDO_INT32;
    const rondo_op_t op = RONDO_SUM;
    void *stream = NULL;
    size_t lengths[64], displs[64], offsets[64];
    rondo_datatype_t types[64];
    for (int r = 0; r < me->size; r++)
        lengths[r] = 1, displs[r] = (size_t) r, offsets[r] = sizeof(int32_t) * (size_t) r, types[r] = type;
    rondo_request_t request = NULL;
    const rondo_result_t no = RONDO_ERR_UNSUPPORTED;
    EXPECT(no, "", rondo_allreduce_on_stream(send, recv, 1, type, op, world, stream));
    EXPECT(no, "", rondo_reduce_on_stream(send, recv, 1, type, op, 0, world, stream));
    EXPECT(no, "", rondo_bcast_on_stream(send, 1, type, 0, world, stream));
    EXPECT(no, "", rondo_reduce_scatter_block_on_stream(send, recv, 1, type, op, world, stream));
    EXPECT(no, "", rondo_allgather_on_stream(send, recv, 1, type, world, stream));
    EXPECT(no, "", rondo_allgatherv_on_stream(send, 1, recv, lengths, displs, type, world, stream));
    EXPECT(no, "", rondo_alltoall_on_stream(send, recv, 1, type, world, stream));
    EXPECT(no, "", rondo_alltoallv_on_stream(send, lengths, displs, recv, lengths, displs, type, world, stream));
    EXPECT(no, "", rondo_reduce_scatter_on_stream(send, recv, lengths, type, op, world, stream));
    EXPECT(no, "", rondo_alltoallw_on_stream(send, lengths, offsets, types, recv, lengths, offsets, types, world, stream));
    EXPECT(no, "", rondo_gatherv_on_stream(send, 1, recv, lengths, displs, type, 0, world, stream));
    EXPECT(no, "", rondo_scatterv_on_stream(send, lengths, displs, recv, 1, type, 0, world, stream));
    EXPECT(no, "", rondo_gather_on_stream(send, recv, 1, type, 0, world, stream));
    EXPECT(no, "", rondo_scatter_on_stream(send, recv, 1, type, 0, world, stream));
    EXPECT(no, "", rondo_barrier_on_stream(world, stream));
    EXPECT(no, "", rondo_scan_on_stream(send, recv, 1, type, op, world, stream));
    EXPECT(no, "", rondo_exscan_on_stream(send, recv, 1, type, op, world, stream));
    EXPECT(no, "", rondo_alltonext_on_stream(send, recv, 1, type, world, stream));
    EXPECT(no, "", rondo_send_on_stream(send, 1, type, 0, world, stream));
    EXPECT(no, "", rondo_recv_on_stream(recv, 1, type, 0, world, stream));
    MUST(rondo_allreduce_init(send, recv, 1, type, op, world, NULL, &request));
    EXPECT(no, "", rondo_start_on_stream(request, stream));
    MUST(rondo_start(request)); /* the failed start left the request inactive */
    MUST(rondo_wait(request));
    MUST(rondo_request_free(&request));
    good(me);
}

static void memory(struct rank *me)
{
    void *block = NULL;
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_alloc(NULL, 64, &block));
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_alloc(me->runtime, 64, NULL));
    EXPECT_EITHER(RONDO_ERR_MEMORY, RONDO_ERR_ARGUMENT, "", rondo_alloc(me->runtime, SIZE_MAX - 5, &block));
    EXPECT_EITHER(RONDO_ERR_MEMORY, RONDO_ERR_ARGUMENT, "", rondo_alloc(me->runtime, SIZE_MAX / 2, &block));
    if (ranks_device() == RONDO_DEVICE_HOST) {
        block = &block;
        EXPECT(RONDO_ERR_MEMORY, "70368744177664 bytes", rondo_alloc(me->runtime, (size_t) 64 << 40, &block));
        CHECK(block == NULL, "a refused allocation gave %p", block);
    }
    int local = 0;
    EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_BUFFER, ranks_pointer_text(&local), rondo_free(me->runtime, &local));
    for (size_t bytes = 1; bytes <= (size_t) 1 << 22; bytes = bytes * 7 + 1) {
        MUST(rondo_alloc(me->runtime, bytes, &block));
        CHECK(block != NULL && (uintptr_t) block % 64 == 0, "alloc of %zu gave %p", bytes, block);
        memset(block, 1, bytes);
        MUST(rondo_free(me->runtime, block));
    }
    EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_register(NULL, &local, 4));
    EXPECT_EITHER(RONDO_ERR_BUFFER, RONDO_ERR_ARGUMENT, "", rondo_comm_register(me->world, NULL, 4));
    EXPECT(RONDO_ERR_ARGUMENT, "18446744073709551615", rondo_comm_register(me->world, &local, SIZE_MAX));
    EXPECT(RONDO_ERR_BUFFER, "wraps", rondo_comm_register(me->world, (void *) (UINTPTR_MAX - 100), 4096));
    if (ranks_device() == RONDO_DEVICE_HOST) {
        EXPECT(RONDO_ERR_BUFFER, "memory of this process", rondo_comm_register(me->world, &local, (size_t) 1 << 46));
        EXPECT(RONDO_ERR_BUFFER, "memory of this process", rondo_comm_register(me->world, (void *) 4096, 4096));
    }
    EXPECT_EITHER(RONDO_ERR_ARGUMENT, RONDO_ERR_BUFFER, ranks_pointer_text(&local), rondo_comm_deregister(me->world, &local));
    good(me);
}

/* One rank alone makes bad calls. If a bad call had sent anything, the good calls after it would not match. */
static void alone(struct rank *me)
{
    static int32_t zone[64][64];
    int32_t *send = zone[me->rank], *recv = send + 32;
    rondo_request_t request = NULL;
    for (int k = 0; k < 20; k++) {
        if (me->rank == k % me->size) {
            EXPECT(RONDO_ERR_ARGUMENT, "77", rondo_allreduce(send, recv, 4, BAD_TYPE, RONDO_SUM, me->world));
            EXPECT(RONDO_ERR_ARGUMENT, "-5", rondo_ibcast(send, 4, RONDO_INT32, -5, me->world, &request));
            EXPECT(RONDO_ERR_BUFFER, "",
                   rondo_allreduce_init(send, send, 4, RONDO_INT32, RONDO_SUM, me->world, NULL, &request));
            EXPECT(RONDO_ERR_ARGUMENT, "", rondo_comm_dup(me->world, NULL));
        }
        good(me);
    }
}

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {{"pointers", pointers}, {"misaligned", misaligned}, {"enumerators", enumerators}, {"counts", counts},
                 {"graphs", graphs},     {"roots", roots},           {"aliasing", aliasing},       {"requests", requests},
                 {"groups", groups},     {"attributes", attributes}, {"streams", streams},         {"memory", memory},
                 {"alone", alone}};

static void run(struct rank *me)
{
    int found = 0;
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++)
        if (strcmp(scenario, "all") == 0 || strcmp(scenario, scenarios[k].name) == 0) {
            found++;
            scenarios[k].function(me);
        }
    CHECK(found > 0, "no scenario %s", scenario);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--scenario", NULL, &scenario, "one of the functions of this file, or all"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("arguments");
}
