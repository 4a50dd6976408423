/*
 * The CUDA driver's functions that transports use, found at run time: nothing links libcuda, and a machine without it runs all
 * the rest. Driver calls leave no sticky error behind in the CUDA runtime, and contexts pushed and popped leave the caller's
 * current device as it was; so the application sees nothing of what is done here. Every function may be called by any thread.
 */
#ifndef RONDO_TRANSPORT_MEMORY_CUDA_DRIVER_H
#define RONDO_TRANSPORT_MEMORY_CUDA_DRIVER_H

#include "rondo.h"

#include <cuda.h>

#define RONDO_CUDA_FUNCTIONS(X)                                                                                                \
    X(cuInit)                                                                                                                  \
    X(cuGetErrorString)                                                                                                        \
    X(cuDeviceGetCount)                                                                                                        \
    X(cuDeviceGet)                                                                                                             \
    X(cuDeviceGetUuid)                                                                                                         \
    X(cuDeviceGetAttribute)                                                                                                    \
    X(cuDeviceGetPCIBusId)                                                                                                     \
    X(cuDeviceCanAccessPeer)                                                                                                   \
    X(cuDeviceGetP2PAttribute)                                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                                                \
    X(cuCtxPushCurrent)                                                                                                        \
    X(cuCtxPopCurrent)                                                                                                         \
    X(cuThreadExchangeStreamCaptureMode)                                                                                       \
    X(cuCtxEnablePeerAccess)                                                                                                   \
    X(cuMemAlloc)                                                                                                              \
    X(cuMemFree)                                                                                                               \
    X(cuMemGetAddressRange)                                                                                                    \
    X(cuMemsetD8Async)                                                                                                         \
    X(cuStreamCreate)                                                                                                          \
    X(cuStreamSynchronize)                                                                                                     \
    X(cuPointerGetAttribute)                                                                                                   \
    X(cuPointerGetAttributes)                                                                                                  \
    X(cuIpcGetMemHandle)                                                                                                       \
    X(cuIpcOpenMemHandle)                                                                                                      \
    X(cuIpcCloseMemHandle)                                                                                                     \
    X(cuMemCreate)                                                                                                             \
    X(cuMemRetainAllocationHandle)                                                                                             \
    X(cuMemRelease)                                                                                                            \
    X(cuMemExportToShareableHandle)                                                                                            \
    X(cuMemImportFromShareableHandle)                                                                                          \
    X(cuMemGetAllocationPropertiesFromHandle)                                                                                  \
    X(cuMemAddressReserve)                                                                                                     \
    X(cuMemAddressFree)                                                                                                        \
    X(cuMemMap)                                                                                                                \
    X(cuMemUnmap)                                                                                                              \
    X(cuMemSetAccess)                                                                                                          \
    X(cuMemGetAccess)                                                                                                          \
    X(cuMemPoolGetAccess)

/* NULL where the driver is older than they are. */
#define RONDO_CUDA_NEWER_FUNCTIONS(X)                                                                                          \
    X(cuFlushGPUDirectRDMAWrites)                                                                                              \
    X(cuMemGetHandleForAddressRange)

/* The members are spelled as the functions are, by whatever version cuda.h makes of their names. */
struct rondo_cuda_driver {
#define RONDO_CUDA_MEMBER(name) __typeof__(name) *name;
    RONDO_CUDA_FUNCTIONS(RONDO_CUDA_MEMBER)
    RONDO_CUDA_NEWER_FUNCTIONS(RONDO_CUDA_MEMBER)
#undef RONDO_CUDA_MEMBER
};

enum { RONDO_CUDA_DEVICES_MAX = 64 };

/* Initialized, at the first call; NULL if there is no driver, or no GPU that it sees: then rondo_last_error() says why. */
const struct rondo_cuda_driver *rondo_cuda_driver(void);
int rondo_cuda_device_count(void); /* 0 without a driver */

/* From enter to leave the device's primary context is current on this thread, and a stream capture of the application does not
 * see the thread's calls. Each success needs one leave; they do not nest. RONDO_ERR_DEVICE. */
rondo_result_t rondo_cuda_enter(int device);
void rondo_cuda_leave(void);
/* The primary context of a device that has been entered before; else NULL. */
CUcontext rondo_cuda_context(int device);
/* RONDO_SUCCESS for CUDA_SUCCESS; else code, with "what: the driver's text (its number)". */
rondo_result_t rondo_cuda_result(CUresult status, rondo_result_t code, const char *what);

#endif
