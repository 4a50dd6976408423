/* See scale.h. One kernel for all types: it is bound by memory, and chooses once a thread. */
#include "compat/nccl/scale.h"

#include "device/reduce/operators.h"

#define THREADS 512
#define BLOCKS_MAX 1024
#define VECTOR 16 /* bytes */

union rondo_nccl_factor {
    unsigned char bytes[8];
    unsigned long long word;
};

#define SCALE(SUFFIX, name, storage, accumulator)                                                                              \
    static __device__ void scale_##name(storage *to, const storage *from, size_t count, const void *scalar, int vectors)       \
    {                                                                                                                          \
        union {                                                                                                                \
            uint4 vector;                                                                                                      \
            storage elements[VECTOR / sizeof(storage)];                                                                        \
        } pack;                                                                                                                \
        const size_t first = blockIdx.x * (size_t) blockDim.x + threadIdx.x, stride = gridDim.x * (size_t) blockDim.x;         \
        const size_t in_vectors = vectors ? count / (VECTOR / sizeof(storage)) : 0;                                            \
        storage factor;                                                                                                        \
        memcpy(&factor, scalar, sizeof(factor));                                                                               \
        for (size_t v = first; v < in_vectors; v += stride) {                                                                  \
            pack.vector = ((const uint4 *) from)[v];                                                                           \
            for (int i = 0; i < (int) (VECTOR / sizeof(storage)); i++)                                                         \
                pack.elements[i] = rondo_store_##name(                                                                         \
                    rondo_prod_##accumulator(rondo_load_##name(pack.elements[i]), rondo_load_##name(factor)));                 \
            ((uint4 *) to)[v] = pack.vector;                                                                                   \
        }                                                                                                                      \
        for (size_t i = in_vectors * (VECTOR / sizeof(storage)) + first; i < count; i += stride)                               \
            to[i] = rondo_store_##name(rondo_prod_##accumulator(rondo_load_##name(from[i]), rondo_load_##name(factor)));       \
    }
RONDO_NCCL_TYPES(SCALE)

static __global__ void __launch_bounds__(THREADS)
    scale(void *to, const void *from, size_t count, rondo_datatype_t type, const void *address, union rondo_nccl_factor value)
{
    const void *scalar = address != NULL ? address : (const void *) &value;
    int vectors = ((size_t) to | (size_t) from) % VECTOR == 0;
    switch (type) {
#define CASE(SUFFIX, name, storage, accumulator)                                                                               \
    case RONDO_##SUFFIX:                                                                                                       \
        scale_##name((storage *) to, (const storage *) from, count, scalar, vectors);                                          \
        break;
        RONDO_NCCL_TYPES(CASE)
    default:
        break;
    }
}

cudaError_t rondo_nccl_scale_load(int device)
{
    struct cudaFuncAttributes attributes;
    int current;
    cudaError_t error = cudaGetDevice(&current);
    if (error == cudaSuccess && current != device)
        error = cudaSetDevice(device);
    if (error == cudaSuccess)
        error = cudaFuncGetAttributes(&attributes, (const void *) scale);
    if (error == cudaSuccess && current != device)
        error = cudaSetDevice(current);
    return error;
}

cudaError_t rondo_nccl_scale(void *to, const void *from, size_t count, rondo_datatype_t type, const void *address,
                             const unsigned char *value, cudaStream_t stream)
{
    union rondo_nccl_factor factor;
    for (int i = 0; i < 8; i++)
        factor.bytes[i] = value[i];
    size_t blocks = (count + 8 * THREADS - 1) / (8 * THREADS);
    dim3 grid((unsigned) (blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX)), block(THREADS);
    void *arguments[] = {&to, &from, &count, &type, &address, &factor};
    return count == 0 ? cudaSuccess : cudaLaunchKernel((const void *) scale, grid, block, arguments, 0, stream);
}
