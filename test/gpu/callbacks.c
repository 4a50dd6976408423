/*
 * Callbacks of operations on GPUs that nothing else looks at: they are called soon after the operation has ended, also when the
 * library was asleep before. Each rank on a GPU of its own, as threads; a single GPU is shared by three. Prints a NOTE with the
 * time from start to callback.
 */
#include "test/multirank/ranks.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 21, COUNT = 1000 };
#define ASLEEP_SECONDS 0.15 /* after which the library's threads look seldom */
#define SOON_SECONDS   0.02 /* much less than they sleep then, and enough for a machine that does other things */

static int called[64]; /* by rank; atomic */

static void note(void *argument, rondo_result_t result)
{
    CHECK(result == RONDO_SUCCESS, "the callback is told of result %d", (int) result);
    __atomic_add_fetch((int *) argument, 1, __ATOMIC_RELEASE);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* The times from starts to callbacks, with a sleep before each start or without. */
static double measure(struct rank *me, rondo_request_t request, int asleep)
{
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        MUST(rondo_barrier(me->world));
        if (asleep)
            ranks_sleep(ASLEEP_SECONDS);
        const int before = __atomic_load_n(&called[me->rank], __ATOMIC_ACQUIRE);
        const double start = ranks_seconds();
        STEP("round %d", round);
        MUST(rondo_start(request));
        MUST(rondo_request_callback(request, note, &called[me->rank]));
        while (__atomic_load_n(&called[me->rank], __ATOMIC_ACQUIRE) == before && ranks_seconds() < start + 10)
            ranks_sleep(0.000005); /* nothing here calls the library */
        times[round] = ranks_seconds() - start;
        MUST(rondo_wait(request));
    }
    qsort(times, ROUNDS, sizeof(times[0]), ascending);
    CHECK(times[ROUNDS / 2] < SOON_SECONDS, "from start to callback %.3f ms in the median%s", 1e3 * times[ROUNDS / 2],
          asleep ? ", after a sleep" : "");
    return times[ROUNDS / 2];
}

static void run(struct rank *me)
{
    float *buffer = NULL;
    rondo_request_t request;
    int gpu = 0;
    MUST(rondo_device_index(me->runtime, &gpu));
    CHECK(cudaSetDevice(gpu) == cudaSuccess && cudaMalloc((void **) &buffer, COUNT * sizeof(*buffer)) == cudaSuccess &&
              cudaMemset(buffer, 0, COUNT * sizeof(*buffer)) == cudaSuccess,
          "memory on GPU %d", gpu);
    MUST(rondo_allreduce_init(RONDO_IN_PLACE, buffer, COUNT, RONDO_FLOAT, RONDO_SUM, me->world, NULL, &request));
    const double busy = measure(me, request, 0), asleep = measure(me, request, 1);
    if (me->rank == 0)
        printf("NOTE from start to callback: %.1f us, after a sleep %.1f us\n", 1e6 * busy, 1e6 * asleep);
    MUST(rondo_request_free(&request));
    MUST(rondo_barrier(me->world));
    CHECK(cudaFree(buffer) == cudaSuccess, "freeing on GPU %d", gpu);
}

int main(int argc, char **argv)
{
    long ranks = -1;
    int gpus = 0;
    const struct ranks_option options[] = {{"--ranks", &ranks, NULL, "ranks as threads; -1: one a GPU, three on a single one"}};
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("callbacks: skipped: no GPU that CUDA can use\n");
        return 0;
    }
    setenv("RONDO_DEVICE", "cuda", 1); /* the harness reads it */
    if (ranks < 0)
        ranks = gpus > 1 ? gpus : 3;
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("callbacks");
}
