/* All-reduce, the smallest complete program: every rank gives a vector, every rank gets and checks the sum. Run it alone, or
 * several at once: mpirun -n 4 build/examples/allreduce. The vectors are memory of the rank's GPU where there is one. */
#include "rondo.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if RONDO_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

/* The library reports errors and leaves the rest to its caller. This program gives up: the other ranks see RONDO_ERR_PEER. */
#define CHECK(call) check(call, #call)
static void check(rondo_result_t result, const char *call)
{
    if (result != RONDO_SUCCESS) {
        fprintf(stderr, "%s: %s: %s\n", call, rondo_strerror(result), rondo_last_error());
        exit(EXIT_FAILURE);
    }
}

/* Between host memory and memory of rondo_alloc, which is the GPU's if gpu is not -1. */
static void copy(int gpu, void *to, const void *from, size_t bytes)
{
#if RONDO_WITH_CUDA
    if (gpu >= 0 && (cudaSetDevice(gpu) != cudaSuccess || cudaMemcpy(to, from, bytes, cudaMemcpyDefault) != cudaSuccess)) {
        fprintf(stderr, "copy of %zu bytes to or from GPU %d: %s\n", bytes, gpu, cudaGetErrorString(cudaGetLastError()));
        exit(EXIT_FAILURE);
    }
#endif
    if (gpu < 0)
        memcpy(to, from, bytes);
}

enum { COUNT = 1000 };

int main(void)
{
    rondo_t runtime;
    rondo_comm_t world;
    int rank, size, gpu, wrong = 0;
    CHECK(rondo_init(&runtime, NULL)); /* rank and size come from the environment: mpirun's, srun's or RONDO_* */
    CHECK(rondo_comm_world(runtime, &world));
    CHECK(rondo_comm_rank(world, &rank));
    CHECK(rondo_comm_size(world, &size));
    CHECK(rondo_device_index(runtime, &gpu));
    int32_t numbers[COUNT];
    void *mine, *sum;
    CHECK(rondo_alloc(runtime, sizeof(numbers), &mine));
    CHECK(rondo_alloc(runtime, sizeof(numbers), &sum));
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i * (rank + 1);
    copy(gpu, mine, numbers, sizeof(numbers));
    CHECK(rondo_allreduce(mine, sum, COUNT, RONDO_INT32, RONDO_SUM, world));
    copy(gpu, numbers, sum, sizeof(numbers));
    for (int i = 0; i < COUNT; i++)
        wrong += numbers[i] != i * (size * (size + 1) / 2);

    printf("rank %d of %d: %d of %d sums are wrong\n", rank, size, wrong, COUNT);
    CHECK(rondo_free(runtime, mine));
    CHECK(rondo_free(runtime, sum));
    CHECK(rondo_finalize(runtime));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
