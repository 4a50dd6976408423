/*
 * Operations by copy engines, in stream order: copies, and words that a stream stores and waits for, none of which takes a
 * multiprocessor. The stream's own operations of the driver are found at run time, because nothing links libcuda.
 */
#include "device/cuda/state.h"

#include "lib/base/error.h"

#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 256 /* of the driver's operations on words in one call */

typedef CUresult CUDAAPI batch_operations_t(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *operations,
                                            unsigned int flags);

static batch_operations_t *batch_operations;

static void find_driver(void)
{
    void *function = NULL;
    int known = 0;
#if CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuStreamBatchMemOp", &function, CUDART_VERSION, cudaEnableDefault, &found);
#else
    cudaError_t error = cudaGetDriverEntryPoint("cuStreamBatchMemOp", &function, cudaEnableDefault, &found);
#endif
    known = error == cudaSuccess && found == cudaDriverEntryPointSuccess;
#endif
    if (known)
        memcpy(&batch_operations, &function, sizeof(function));
}

/* A run of waits and writes. */
static cudaError_t do_words(const struct rondo_copy_step *steps, int count, cudaStream_t stream)
{
    CUstreamBatchMemOpParams operations[BATCH];
    memset(operations, 0, (size_t) count * sizeof(*operations));
    for (int i = 0; i < count; i++) {
        if (steps[i].kind == RONDO_COPY_STEP_WAIT) {
            operations[i].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
            operations[i].waitValue.address = (CUdeviceptr) (uintptr_t) steps[i].word;
            operations[i].waitValue.value = steps[i].value;
            operations[i].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ; /* by a signed difference */
        } else { /* by default after all that was done before on the stream, and so that every device sees that */
            operations[i].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
            operations[i].writeValue.address = (CUdeviceptr) (uintptr_t) steps[i].word;
            operations[i].writeValue.value = steps[i].value;
            operations[i].writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
        }
    }
    const CUresult result = batch_operations((CUstream) stream, (unsigned int) count, operations, 0);
    return result == CUDA_SUCCESS               ? cudaSuccess
           : result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidValue
           : result == CUDA_ERROR_NOT_SUPPORTED ? cudaErrorNotSupported
                                                : cudaErrorUnknown;
}

/* Neighbouring moves as one call where the driver has that: it spreads them over the engines. The default stream cannot. */
static cudaError_t do_moves(const struct rondo_copy_step *steps, int count, cudaStream_t stream)
{
#if CUDART_VERSION >= 13000
    static int refused; /* atomic */
    if (stream != NULL && stream != cudaStreamLegacy && !__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
        void **to = malloc((size_t) count * sizeof(*to));
        const void **from = malloc((size_t) count * sizeof(*from));
        size_t *bytes = malloc((size_t) count * sizeof(*bytes)), first = 0;
        struct cudaMemcpyAttributes how;
        cudaError_t error = cudaErrorMemoryAllocation;
        memset(&how, 0, sizeof(how));
        how.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        how.flags = cudaMemcpyFlagPreferOverlapWithCompute;
        for (int i = 0; to != NULL && from != NULL && bytes != NULL && i < count; i++) {
            to[i] = steps[i].to;
            from[i] = steps[i].from;
            bytes[i] = steps[i].bytes;
        }
        if (to != NULL && from != NULL && bytes != NULL)
            error = cudaMemcpyBatchAsync(to, from, bytes, (size_t) count, &how, &first, 1, stream);
        free(to);
        free(from);
        free(bytes);
        if (error == cudaSuccess)
            return error;
        __atomic_store_n(&refused, 1, __ATOMIC_RELAXED);
        (void) cudaGetLastError();
    }
#endif
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < count && error == cudaSuccess; i++)
        error = cudaMemcpyAsync(steps[i].to, steps[i].from, steps[i].bytes, cudaMemcpyDefault, stream);
    return error;
}

static int is_move(const struct rondo_copy_step *step)
{
    return step->kind == RONDO_COPY_STEP_MOVE;
}

rondo_result_t rondo_cuda_copy(struct rondo_device *device, const struct rondo_copy_step *steps, int count, void *stream)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rondo_cuda *cuda = rondo_cuda_of(device);
    pthread_once(&once, find_driver);
    if (batch_operations == NULL)
        return rondo_fail(RONDO_ERR_DEVICE, "copy engines: the CUDA driver is too old: it has no cuStreamBatchMemOp");
    struct rondo_cuda_caller caller = rondo_cuda_begin(cuda->index);
    cudaError_t error = cudaSuccess;
    int moves = 0;
    for (int first = 0, next; first < count && error == cudaSuccess; first = next) {
        const int moving = is_move(&steps[first]);
        for (next = first + 1; next < count && is_move(&steps[next]) == moving && (moving || next - first < BATCH);)
            next++;
        error = moving ? do_moves(steps + first, next - first, (cudaStream_t) stream)
                       : do_words(steps + first, next - first, (cudaStream_t) stream);
        moves += moving ? next - first : 0;
    }
    rondo_cuda_end(caller, cuda->index);
    if (rondo_log_admits(RONDO_LOG_DEBUG))
        rondo_log(RONDO_LOG_DEBUG, cuda->rank, "copy engines: %d copies and %d operations on words", moves, count - moves);
    return error == cudaSuccess ? RONDO_SUCCESS : rondo_cuda_report(error, "enqueuing copies on a stream");
}
