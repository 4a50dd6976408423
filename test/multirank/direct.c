/*
 * Direct access: persistent operations on memory of rondo_alloc, blocking operations inside registered ranges, buffers that
 * only some ranks can open, use after deregistration, and the memory budget. The test runs with ranks as threads and as
 * processes.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT  70001
#define OFFSET 17 /* elements: a buffer need not begin where its registration begins */

static float value(int rank, size_t index, int round)
{
    return (float) ((index * 7 + (size_t) rank * 3 + (size_t) round) % 11);
}

static float *image_of(size_t count)
{
    float *image = malloc((count + 1) * sizeof(*image));
    if (image == NULL) {
        printf("FAILED: out of memory in the test\n");
        exit(1);
    }
    return image;
}

/* Fills a buffer of the device. */
static void fill(float *buffer, size_t count, int rank, int round)
{
    float *image = image_of(count);
    for (size_t i = 0; i < count; i++)
        image[i] = value(rank, i, round);
    ranks_put(buffer, image, count * sizeof(*image));
    free(image);
}

static void check_sum(const struct rank *me, const float *result, size_t count, size_t first, int round, const char *what)
{
    size_t wrong = 0;
    float *image = image_of(count);
    ranks_get(image, result, count * sizeof(*image));
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int rank = 0; rank < me->size; rank++)
            sum += value(rank, first + i, round);
        wrong += image[i] < sum || image[i] > sum;
    }
    free(image);
    CHECK(wrong == 0, "%s: %zu of %zu elements are wrong", what, wrong, count);
}

static void check_from(const float *result, size_t count, int rank, size_t first, int round, const char *what)
{
    size_t wrong = 0;
    float *image = image_of(count);
    ranks_get(image, result, count * sizeof(*image));
    for (size_t i = 0; i < count; i++)
        wrong += image[i] < value(rank, first + i, round) || image[i] > value(rank, first + i, round);
    free(image);
    CHECK(wrong == 0, "%s: %zu of %zu elements from rank %d are wrong", what, wrong, count, rank);
}

/* Every collective that has a direct algorithm, on buffers of size * COUNT elements. */
static void persistent(struct rank *me, float *send, float *receive, const char *program, const char *what)
{
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_request_t requests[5];
    size_t all = (size_t) me->size * COUNT;
    float *outputs[5];
    attr.program = program;
    for (int i = 0; i < 5; i++)
        outputs[i] = receive + (size_t) i * all;
    MUST(rondo_allreduce_init(send, outputs[0], COUNT, RONDO_FLOAT, RONDO_SUM, me->world, &attr, &requests[0]));
    MUST(rondo_reduce_scatter_block_init(send, outputs[1], COUNT, RONDO_FLOAT, RONDO_SUM, me->world, &attr, &requests[1]));
    MUST(rondo_allgather_init(send, outputs[2], COUNT, RONDO_FLOAT, me->world, &attr, &requests[2]));
    MUST(rondo_alltoall_init(send, outputs[3], COUNT, RONDO_FLOAT, me->world, &attr, &requests[3]));
    MUST(rondo_bcast_init(outputs[4], COUNT, RONDO_FLOAT, me->size - 1, me->world, &attr, &requests[4]));
    for (int round = 0; round < 3; round++) {
        fill(send, all, me->rank, round);
        fill(outputs[4], COUNT, me->rank, round);
        for (int i = 0; i < 5; i++) /* each rank has an order of its own */
            MUST(rondo_start(requests[(i * 2 + me->rank + round) % 5]));
        MUST(rondo_waitall(5, requests));
        check_sum(me, outputs[0], COUNT, 0, round, what);
        check_sum(me, outputs[1], COUNT, (size_t) me->rank * COUNT, round, what);
        for (int rank = 0; rank < me->size; rank++) {
            check_from(outputs[2] + (size_t) rank * COUNT, COUNT, rank, 0, round, what);
            check_from(outputs[3] + (size_t) rank * COUNT, COUNT, rank, (size_t) me->rank * COUNT, round, what);
        }
        check_from(outputs[4], COUNT, me->size - 1, 0, round, what);
        MUST(rondo_barrier(me->world)); /* no rank refills a buffer that other ranks still compare */
    }
    for (int i = 0; i < 5; i++)
        MUST(rondo_request_free(&requests[i]));
}

static void registered(struct rank *me, float *send, float *receive)
{
    size_t all = (size_t) me->size * COUNT;
    MUST(rondo_comm_register(me->world, send, (all + OFFSET) * sizeof(float)));
    MUST(rondo_comm_register(me->world, receive, (all + OFFSET) * sizeof(float)));
    for (int round = 0; round < 3; round++) {
        fill(send + OFFSET, all, me->rank, round);
        MUST(rondo_allreduce(send + OFFSET, receive + OFFSET, COUNT, RONDO_FLOAT, RONDO_SUM, me->world));
        check_sum(me, receive + OFFSET, COUNT, 0, round, "registered");
        fill(receive + OFFSET, all, me->rank, round);
        MUST(rondo_allreduce(RONDO_IN_PLACE, receive + OFFSET, COUNT, RONDO_FLOAT, RONDO_SUM, me->world));
        check_sum(me, receive + OFFSET, COUNT, 0, round, "registered, in place");
        if (round == 1) {
            MUST(rondo_comm_deregister(me->world, send));
            MUST(rondo_comm_deregister(me->world, receive));
        }
    }
    CHECK(rondo_comm_deregister(me->world, send) == RONDO_ERR_BUFFER, "a second deregistration succeeds");
}

/* An init that names the algorithm fails where the algorithm does not fit: on all ranks, and without a trace. */
static void insisted(struct rank *me, float *receive)
{
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_request_t request = NULL;
    attr.program = "direct";
    for (int k = 0; k < 3; k++) {
        EXPECT(RONDO_ERR_UNSUPPORTED, "in place",
               rondo_reduce_scatter_block_init(RONDO_IN_PLACE, receive, COUNT, RONDO_FLOAT, RONDO_SUM, me->world, &attr,
                                               &request));
        EXPECT(RONDO_ERR_UNSUPPORTED, "in place",
               rondo_alltoall_init(RONDO_IN_PLACE, receive, COUNT, RONDO_FLOAT, me->world, &attr, &request));
        CHECK(request == NULL, "a refused init made a request");
    }
    attr.program = NULL;
    fill(receive, (size_t) me->size * COUNT, me->rank, 0);
    MUST(rondo_reduce_scatter_block_init(RONDO_IN_PLACE, receive, COUNT, RONDO_FLOAT, RONDO_SUM, me->world, &attr, &request));
    MUST(rondo_start(request));
    MUST(rondo_wait(request));
    check_sum(me, receive, COUNT, (size_t) me->rank * COUNT, 0, "after a refusal");
    MUST(rondo_request_free(&request));
}

static void run(struct rank *me)
{
    size_t all = (size_t) me->size * COUNT;
    float *send, *receive, *ordinary = ranks_allocate((all + OFFSET) * sizeof(float));
    MUST(rondo_alloc(me->runtime, (all + OFFSET) * sizeof(float), (void **) &send));
    MUST(rondo_alloc(me->runtime, (5 * all + OFFSET) * sizeof(float), (void **) &receive));
    persistent(me, send, receive, NULL, "chosen, rondo_alloc");
    if (me->size > 1) {
        persistent(me, send + OFFSET, receive + OFFSET, "direct", "direct, rondo_alloc");
        insisted(me, receive);
    }
    /* On the host device other processes cannot open this rank's input: all ranks must choose another algorithm. */
    persistent(me, me->rank == 0 ? ordinary : send, receive, NULL, "one ordinary buffer");
    registered(me, send, receive);
    ranks_release(ordinary);
    MUST(rondo_free(me->runtime, send));
    MUST(rondo_free(me->runtime, receive));
    CHECK(rondo_free(me->runtime, &all) == RONDO_ERR_BUFFER, "memory that rondo_alloc did not give is freed");
}

/* A budget that holds a few connectors: inits beyond it fail with the figures in the message, and earlier operations go on
 * working. */
static void budget(struct rank *me)
{
    rondo_request_t requests[64];
    rondo_stats_t stats;
    float *buffer = calloc(1 << 20, sizeof(float));
    int made = 0;
    rondo_result_t result = RONDO_SUCCESS;
    if (me->size == 1 || buffer == NULL) {
        CHECK(buffer != NULL, "no memory");
        free(buffer);
        return;
    }
    for (; made < 64 && result == RONDO_SUCCESS; made++) {
        result = rondo_send_init(buffer, 1 << 20, RONDO_FLOAT, (me->rank + 1) % me->size, me->world, NULL, &requests[made]);
        CHECK(result == RONDO_SUCCESS || (result == RONDO_ERR_MEMORY && strstr(rondo_last_error(), "budget") != NULL), "%d: %s",
              result, rondo_last_error());
    }
    CHECK(result == RONDO_ERR_MEMORY && made > 1, "%d inits of 512 KiB fit into 2 MiB", made);
    MUST(rondo_get_stats(me->runtime, &stats));
    CHECK(stats.memory_reserved <= stats.memory_budget && stats.memory_budget == 2 << 20, "%llu bytes of %llu are reserved",
          (unsigned long long) stats.memory_reserved, (unsigned long long) stats.memory_budget);
    for (int i = 0; i < made - 1; i++)
        MUST(rondo_request_free(&requests[i]));
    free(buffer);
    MUST(rondo_barrier(me->world));
}

int main(int argc, char **argv)
{
    long ranks = 3;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    const struct ranks_option options[] = {{"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"}};
    ranks_parse(argc, argv, options, 1);
    ranks_run((int) ranks, NULL, run, NULL);
    config.memory_budget = 2 << 20;
    config.blocks = 1;                       /* one channel, so that a send has one connector on every machine */
    if (ranks_device() == RONDO_DEVICE_HOST) /* the expected figures are those of the host device's connectors */
        ranks_run((int) ranks, &config, budget, NULL);
    return ranks_finish("direct");
}
