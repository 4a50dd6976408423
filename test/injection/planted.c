/* Bugs of the kinds that injection must find, for the test of the tool. Each stands for a function of the library: its
 * allocations are counted as the library's are. */
#include "test/injection/planted.h"

#include <stdlib.h>

#if RONDO_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

static rondo_result_t sum(rondo_comm_t world, int32_t in, int32_t *out)
{
    return rondo_allreduce(&in, out, 1, RONDO_INT32, RONDO_SUM, world);
}

rondo_result_t planted_unchecked(rondo_comm_t world, int32_t in, int32_t *out)
{
    char *volatile memory = malloc(100);
    ((volatile char *) memory)[99] = 1;
    free(memory);
    return sum(world, in, out);
}

rondo_result_t planted_leak(rondo_comm_t world, int32_t in, int32_t *out)
{
    void *volatile first = malloc(100);
    void *volatile second = malloc(200);
    if (second == NULL)
        return sum(world, in, out);
    free(first);
    free(second);
    return sum(world, in, out);
}

rondo_result_t planted_silence(rondo_comm_t world, int32_t in, int32_t *out)
{
    void *volatile memory = malloc(100);
    if (memory == NULL)
        return RONDO_ERR_MEMORY; /* the others wait */
    free(memory);
    return sum(world, in, out);
}

rondo_result_t planted_wrong(rondo_comm_t world, int32_t in, int32_t *out)
{
    void *volatile memory = malloc(100);
    rondo_result_t result = sum(world, memory != NULL ? in : in + 1, out);
    free(memory);
    return result;
}

rondo_result_t planted_cuda(rondo_comm_t world, int32_t in, int32_t *out)
{
    int32_t failed = 0;
#if RONDO_WITH_CUDA
    for (int i = 0, unit = 10; i < 3; i++, unit *= 10) {
        void *memory = NULL;
        if (cudaMalloc(&memory, 64) == cudaErrorMemoryAllocation) /* without a GPU it fails otherwise */
            failed += cudaGetLastError() == cudaErrorMemoryAllocation ? unit : 0;
        cudaFree(memory);
    }
#endif
    return sum(world, in + failed, out);
}
