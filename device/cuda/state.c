/* See device/cuda/state.h. */
#include "device/cuda/state.h"

#include "lib/base/error.h"

rondo_result_t rondo_cuda_report(cudaError_t error, const char *what)
{
    rondo_result_t code = error == cudaErrorMemoryAllocation ? RONDO_ERR_MEMORY : RONDO_ERR_DEVICE;
    return rondo_fail(code, "%s: %s (%s)", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

struct rondo_cuda_caller rondo_cuda_begin(int index)
{
    struct rondo_cuda_caller caller = {.device = -1, .mode = cudaStreamCaptureModeRelaxed};
    caller.clean = cudaPeekAtLastError() == cudaSuccess;
    if (cudaThreadExchangeStreamCaptureMode(&caller.mode) != cudaSuccess)
        caller.mode = cudaStreamCaptureModeRelaxed;
    if (cudaGetDevice(&caller.device) != cudaSuccess)
        caller.device = -1;
    if (caller.device != index)
        cudaSetDevice(index);
    return caller;
}

void rondo_cuda_end(struct rondo_cuda_caller caller, int index)
{
    if (caller.device >= 0 && caller.device != index)
        cudaSetDevice(caller.device);
    cudaThreadExchangeStreamCaptureMode(&caller.mode);
    if (caller.clean && cudaPeekAtLastError() != cudaSuccess)
        cudaGetLastError();
}
