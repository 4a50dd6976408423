/*
 * The calls of CUDA that injection can make fail, as functions.h has those of libc: the name, and the errors with which it
 * fails. The numbers of errors are the same in the runtime and the driver. The library links the runtime, so the Makefile takes
 * the names of the first list for the linker's --wrap; it asks the runtime for the driver's functions by name, and
 * cuda_wrappers.c answers with its own.
 */
#ifndef RONDO_TEST_INJECTION_CUDA_FUNCTIONS_H
#define RONDO_TEST_INJECTION_CUDA_FUNCTIONS_H

#if RONDO_WITH_CUDA
#include <cuda.h>
#include <cuda_runtime_api.h>

/* clang-format off */
#define INJECT_CUDA_RUNTIME(X)                                                           \
    X(cudaGetDeviceCount, cudaErrorNoDevice)                                             \
    X(cudaGetDevice, cudaErrorInvalidDevice)                                             \
    X(cudaSetDevice, cudaErrorMemoryAllocation)                                          \
    X(cudaGetDeviceProperties, cudaErrorInvalidDevice)                                   \
    X(cudaGetDeviceProperties_v2, cudaErrorInvalidDevice)                                \
    X(cudaGetDriverEntryPoint, cudaErrorInvalidValue)                                    \
    X(cudaGetDriverEntryPointByVersion, cudaErrorInvalidValue)                           \
    X(cudaDeviceGetAttribute, cudaErrorInvalidValue)                                     \
    X(cudaDeviceGetLimit, cudaErrorInvalidValue)                                         \
    X(cudaDeviceSetLimit, cudaErrorMemoryAllocation)                                     \
    X(cudaDeviceGetStreamPriorityRange, cudaErrorInvalidValue)                           \
    X(cudaDeviceSynchronize, cudaErrorLaunchFailure)                                     \
    X(cudaMalloc, cudaErrorMemoryAllocation)                                             \
    X(cudaFree, cudaErrorInvalidValue)                                                   \
    X(cudaHostAlloc, cudaErrorMemoryAllocation)                                          \
    X(cudaFreeHost, cudaErrorInvalidValue)                                               \
    X(cudaHostRegister, cudaErrorMemoryAllocation)                                       \
    X(cudaHostUnregister, cudaErrorInvalidValue)                                         \
    X(cudaMemGetInfo, cudaErrorInvalidValue)                                             \
    X(cudaMemcpyAsync, cudaErrorInvalidValue)                                            \
    X(cudaMemcpyBatchAsync, cudaErrorInvalidValue)                                       \
    X(cudaMemsetAsync, cudaErrorInvalidValue)                                            \
    X(cudaFuncGetAttributes, cudaErrorInvalidDeviceFunction)                             \
    X(cudaFuncSetAttribute, cudaErrorInvalidValue)                                       \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessor, cudaErrorInvalidDeviceFunction)     \
    X(cudaLaunchKernel, cudaErrorLaunchOutOfResources, cudaErrorMemoryAllocation)        \
    X(__cudaLaunchKernel, cudaErrorLaunchOutOfResources, cudaErrorMemoryAllocation)      \
    X(cudaLaunchKernelExC, cudaErrorLaunchOutOfResources, cudaErrorMemoryAllocation)     \
    X(cudaStreamCreateWithFlags, cudaErrorMemoryAllocation)                              \
    X(cudaStreamCreateWithPriority, cudaErrorMemoryAllocation)                           \
    X(cudaStreamDestroy, cudaErrorInvalidResourceHandle)                                 \
    X(cudaStreamGetDevice, cudaErrorInvalidResourceHandle)                               \
    X(cudaStreamGetId, cudaErrorInvalidResourceHandle)                                   \
    X(cudaStreamIsCapturing, cudaErrorLaunchFailure)                                     \
    X(cudaStreamQuery, cudaErrorLaunchFailure)                                           \
    X(cudaStreamSynchronize, cudaErrorLaunchFailure)                                     \
    X(cudaThreadExchangeStreamCaptureMode, cudaErrorInvalidValue)

#define INJECT_CUDA_DRIVER(X)                                                            \
    X(cuInit, CUDA_ERROR_NO_DEVICE)                                                      \
    X(cuDeviceGetCount, CUDA_ERROR_NOT_INITIALIZED)                                      \
    X(cuDeviceGet, CUDA_ERROR_INVALID_DEVICE)                                            \
    X(cuDeviceGetUuid, CUDA_ERROR_INVALID_DEVICE)                                        \
    X(cuDeviceGetAttribute, CUDA_ERROR_INVALID_VALUE)                                    \
    X(cuDeviceGetPCIBusId, CUDA_ERROR_INVALID_DEVICE)                                    \
    X(cuDeviceCanAccessPeer, CUDA_ERROR_INVALID_DEVICE)                                  \
    X(cuDeviceGetP2PAttribute, CUDA_ERROR_INVALID_DEVICE)                                \
    X(cuDevicePrimaryCtxRetain, CUDA_ERROR_OUT_OF_MEMORY)                                \
    X(cuCtxPushCurrent, CUDA_ERROR_INVALID_CONTEXT)                                      \
    X(cuCtxPopCurrent, CUDA_ERROR_INVALID_CONTEXT)                                       \
    X(cuThreadExchangeStreamCaptureMode, CUDA_ERROR_INVALID_VALUE)                       \
    X(cuCtxEnablePeerAccess, CUDA_ERROR_TOO_MANY_PEERS)                                  \
    X(cuMemAlloc, CUDA_ERROR_OUT_OF_MEMORY)                                              \
    X(cuMemFree, CUDA_ERROR_INVALID_VALUE)                                               \
    X(cuMemGetAddressRange, CUDA_ERROR_NOT_FOUND)                                        \
    X(cuMemsetD8Async, CUDA_ERROR_INVALID_VALUE)                                         \
    X(cuStreamCreate, CUDA_ERROR_OUT_OF_MEMORY)                                          \
    X(cuStreamSynchronize, CUDA_ERROR_LAUNCH_FAILED)                                     \
    X(cuPointerGetAttribute, CUDA_ERROR_INVALID_VALUE)                                   \
    X(cuPointerGetAttributes, CUDA_ERROR_INVALID_VALUE)                                  \
    X(cuIpcGetMemHandle, CUDA_ERROR_OUT_OF_MEMORY)                                       \
    X(cuIpcOpenMemHandle, CUDA_ERROR_MAP_FAILED)                                         \
    X(cuIpcCloseMemHandle, CUDA_ERROR_INVALID_VALUE)                                     \
    X(cuMemCreate, CUDA_ERROR_OUT_OF_MEMORY)                                             \
    X(cuMemRetainAllocationHandle, CUDA_ERROR_INVALID_VALUE)                             \
    X(cuMemRelease, CUDA_ERROR_INVALID_VALUE)                                            \
    X(cuMemExportToShareableHandle, CUDA_ERROR_NOT_SUPPORTED)                            \
    X(cuMemImportFromShareableHandle, CUDA_ERROR_OUT_OF_MEMORY)                          \
    X(cuMemGetAllocationPropertiesFromHandle, CUDA_ERROR_INVALID_VALUE)                  \
    X(cuMemAddressReserve, CUDA_ERROR_OUT_OF_MEMORY)                                     \
    X(cuMemAddressFree, CUDA_ERROR_INVALID_VALUE)                                        \
    X(cuMemMap, CUDA_ERROR_OUT_OF_MEMORY)                                                \
    X(cuMemUnmap, CUDA_ERROR_INVALID_VALUE)                                              \
    X(cuMemSetAccess, CUDA_ERROR_INVALID_DEVICE)                                         \
    X(cuMemGetAccess, CUDA_ERROR_INVALID_VALUE)                                          \
    X(cuMemPoolGetAccess, CUDA_ERROR_INVALID_VALUE)                                      \
    X(cuFlushGPUDirectRDMAWrites, CUDA_ERROR_NOT_SUPPORTED)                              \
    X(cuMemGetHandleForAddressRange, CUDA_ERROR_NOT_SUPPORTED)

/* Wrapped, so that an injected error is the runtime's last one until it is asked for. */
#define INJECT_CUDA_ERRORS(X) X(cudaGetLastError) X(cudaPeekAtLastError)
/* clang-format on */

#define INJECT_CUDA_FUNCTIONS(X) INJECT_CUDA_RUNTIME(X) INJECT_CUDA_DRIVER(X)
#else
#define INJECT_CUDA_FUNCTIONS(X)
#endif

#endif
