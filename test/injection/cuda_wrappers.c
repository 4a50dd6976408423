/*
 * The functions between the library and CUDA. The runtime's are put there by the linker (--wrap), as those of wrappers.c are.
 * The driver's are found by name at run time: the wrapper of that call gives out a function of this file in place of the
 * driver's.
 *
 * A call that is to fail has no effect, but for those that release or wait (AFTER): a library that was told of a failed
 * cudaFree does not free again, and one that was told of a failed wait may release what the GPU would still use, where in truth
 * a GPU with such an error runs nothing any more. What CUDA calls meanwhile, of itself and of libc, is neither counted nor made
 * to fail.
 */
#include "test/injection/inject.h"

#if RONDO_WITH_CUDA
#include <string.h>

#define HERE __builtin_return_address(0)

/* What a wrapper does. inform: where way is an error. keep: what the library owns after a success. */
#define BEFORE(type, function, real, arguments, inform, keep)                                                                  \
    int way = inject_now(function, HERE);                                                                                      \
    if (way != 0) {                                                                                                            \
        inform;                                                                                                                \
        return (type) way;                                                                                                     \
    }                                                                                                                          \
    inject_pause();                                                                                                            \
    type result = real arguments;                                                                                              \
    inject_resume();                                                                                                           \
    if ((int) result == 0) {                                                                                                   \
        keep;                                                                                                                  \
    }                                                                                                                          \
    return result;

/* The same for a call that releases or waits. let_go: what the library owns no more, before another thread can be given it. */
#define AFTER(type, function, real, arguments, inform, let_go)                                                                 \
    int way = inject_now(function, HERE);                                                                                      \
    let_go;                                                                                                                    \
    inject_pause();                                                                                                            \
    type result = real arguments;                                                                                              \
    inject_resume();                                                                                                           \
    if (way == 0)                                                                                                              \
        return result;                                                                                                         \
    inform;                                                                                                                    \
    return (type) way;

#define NONE (void) 0

/* ---- the runtime ---- */

static _Thread_local cudaError_t pending; /* an injected error, until cudaGetLastError has told it */

#define RUNTIME(kind, name, parameters, arguments, ownership)                                                                  \
    __typeof__(name) __real_##name, __wrap_##name;                                                                             \
    cudaError_t __wrap_##name parameters                                                                                       \
    {                                                                                                                          \
        kind(cudaError_t, INJECT_##name, __real_##name, arguments, pending = (cudaError_t) way, ownership)                     \
    }

cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream);
__typeof__(cudaGetLastError) __real_cudaGetLastError, __wrap_cudaGetLastError;
__typeof__(cudaPeekAtLastError) __real_cudaPeekAtLastError, __wrap_cudaPeekAtLastError;

cudaError_t __wrap_cudaGetLastError(void)
{
    cudaError_t injected = pending, own = __real_cudaGetLastError();
    pending = cudaSuccess;
    return injected != cudaSuccess ? injected : own;
}

cudaError_t __wrap_cudaPeekAtLastError(void)
{
    return pending != cudaSuccess ? pending : __real_cudaPeekAtLastError();
}

RUNTIME(BEFORE, cudaGetDeviceCount, (int *count), (count), NONE)
RUNTIME(BEFORE, cudaGetDevice, (int *device), (device), NONE)
RUNTIME(BEFORE, cudaSetDevice, (int device), (device), NONE)
#if CUDART_VERSION >= 12000 && CUDART_VERSION < 13000
RUNTIME(BEFORE, cudaGetDeviceProperties_v2, (struct cudaDeviceProp * properties, int device), (properties, device), NONE)
#else
RUNTIME(BEFORE, cudaGetDeviceProperties, (struct cudaDeviceProp * properties, int device), (properties, device), NONE)
#endif
RUNTIME(BEFORE, cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device), (value, attribute, device),
        NONE)
RUNTIME(BEFORE, cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit), (value, limit), NONE)
RUNTIME(BEFORE, cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), (limit, value), NONE)
RUNTIME(BEFORE, cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest), NONE)
RUNTIME(AFTER, cudaDeviceSynchronize, (void), (), NONE)

RUNTIME(BEFORE, cudaMalloc, (void **memory, size_t bytes), (memory, bytes), inject_allocated(*memory, bytes, HERE))
RUNTIME(AFTER, cudaFree, (void *memory), (memory), inject_freed(memory))
RUNTIME(BEFORE, cudaHostAlloc, (void **memory, size_t bytes, unsigned flags), (memory, bytes, flags),
        inject_allocated(*memory, bytes, HERE))
RUNTIME(AFTER, cudaFreeHost, (void *memory), (memory), inject_freed(memory))
RUNTIME(BEFORE, cudaHostRegister, (void *memory, size_t bytes, unsigned flags), (memory, bytes, flags),
        inject_allocated(memory, bytes, HERE))
RUNTIME(AFTER, cudaHostUnregister, (void *memory), (memory), inject_freed(memory))
RUNTIME(BEFORE, cudaMemGetInfo, (size_t * unused, size_t *total), (unused, total), NONE)
RUNTIME(BEFORE, cudaMemcpyAsync, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind direction, cudaStream_t stream),
        (to, from, bytes, direction, stream), NONE)
#if CUDART_VERSION >= 13000
RUNTIME(BEFORE, cudaMemcpyBatchAsync,
        (void *const *to, const void *const *from, const size_t *bytes, size_t count, struct cudaMemcpyAttributes *how,
         size_t *first, size_t kinds, cudaStream_t stream),
        (to, from, bytes, count, how, first, kinds, stream), NONE)
#endif
RUNTIME(BEFORE, cudaMemsetAsync, (void *memory, int value, size_t bytes, cudaStream_t stream), (memory, value, bytes, stream),
        NONE)

RUNTIME(BEFORE, cudaFuncGetAttributes, (struct cudaFuncAttributes * attributes, const void *kernel), (attributes, kernel), NONE)
RUNTIME(BEFORE, cudaFuncSetAttribute, (const void *kernel, enum cudaFuncAttribute attribute, int value),
        (kernel, attribute, value), NONE)
RUNTIME(BEFORE, cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *kernel, int threads, size_t shared),
        (blocks, kernel, threads, shared), NONE)
RUNTIME(BEFORE, cudaLaunchKernel,
        (const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
        (kernel, grid, block, arguments, shared, stream), NONE)
RUNTIME(BEFORE, __cudaLaunchKernel, (void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
        (kernel, grid, block, arguments, shared, stream), NONE)
RUNTIME(BEFORE, cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *kernel, void **arguments),
        (config, kernel, arguments), NONE)

RUNTIME(BEFORE, cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), (stream, flags),
        inject_allocated(*stream, 0, HERE))
RUNTIME(BEFORE, cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned flags, int priority), (stream, flags, priority),
        inject_allocated(*stream, 0, HERE))
RUNTIME(AFTER, cudaStreamDestroy, (cudaStream_t stream), (stream), inject_freed(stream))
#if CUDART_VERSION >= 12080
RUNTIME(BEFORE, cudaStreamGetDevice, (cudaStream_t stream, int *device), (stream, device), NONE)
#endif
#if CUDART_VERSION >= 12000
RUNTIME(BEFORE, cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), (stream, id), NONE)
#endif
RUNTIME(BEFORE, cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status), (stream, status), NONE)
RUNTIME(BEFORE, cudaStreamQuery, (cudaStream_t stream), (stream), NONE)
RUNTIME(AFTER, cudaStreamSynchronize, (cudaStream_t stream), (stream), NONE)
RUNTIME(BEFORE, cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode), (mode), NONE)

/* ---- the driver ---- */

#define DRIVER(kind, name, parameters, arguments, ownership)                                                                   \
    static __typeof__(name) *real_##name;                                                                                      \
    static CUresult CUDAAPI wrap_##name parameters                                                                             \
    {                                                                                                                          \
        kind(CUresult, INJECT_##name, real_##name, arguments, NONE, ownership)                                                 \
    }

#define ADDRESS(value) (void *) (uintptr_t) (value)

DRIVER(BEFORE, cuInit, (unsigned flags), (flags), NONE)
DRIVER(BEFORE, cuDeviceGetCount, (int *count), (count), NONE)
DRIVER(BEFORE, cuDeviceGet, (CUdevice * device, int index), (device, index), NONE)
DRIVER(BEFORE, cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), (uuid, device), NONE)
DRIVER(BEFORE, cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device), (value, attribute, device),
       NONE)
DRIVER(BEFORE, cuDeviceGetPCIBusId, (char *text, int bytes, CUdevice device), (text, bytes, device), NONE)
DRIVER(BEFORE, cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer), (can, device, peer), NONE)
DRIVER(BEFORE, cuDeviceGetP2PAttribute, (int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer),
       (value, attribute, device, peer), NONE)
DRIVER(BEFORE, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device), NONE)
DRIVER(BEFORE, cuCtxPushCurrent, (CUcontext context), (context), NONE)
DRIVER(AFTER, cuCtxPopCurrent, (CUcontext * context), (context), NONE)
DRIVER(BEFORE, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), (mode), NONE)
DRIVER(BEFORE, cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), (peer, flags), NONE)

DRIVER(BEFORE, cuMemAlloc, (CUdeviceptr * memory, size_t bytes), (memory, bytes),
       inject_allocated(ADDRESS(*memory), bytes, HERE))
DRIVER(AFTER, cuMemFree, (CUdeviceptr memory), (memory), inject_freed(ADDRESS(memory)))
DRIVER(BEFORE, cuMemGetAddressRange, (CUdeviceptr * base, size_t *bytes, CUdeviceptr memory), (base, bytes, memory), NONE)
DRIVER(BEFORE, cuMemsetD8Async, (CUdeviceptr memory, unsigned char value, size_t bytes, CUstream stream),
       (memory, value, bytes, stream), NONE)
DRIVER(BEFORE, cuStreamCreate, (CUstream * stream, unsigned flags), (stream, flags), NONE)
DRIVER(AFTER, cuStreamSynchronize, (CUstream stream), (stream), NONE)
DRIVER(BEFORE, cuPointerGetAttribute, (void *value, CUpointer_attribute attribute, CUdeviceptr memory),
       (value, attribute, memory), NONE)
DRIVER(BEFORE, cuPointerGetAttributes, (unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr memory),
       (count, attributes, values, memory), NONE)

DRIVER(BEFORE, cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr memory), (handle, memory), NONE)
DRIVER(BEFORE, cuIpcOpenMemHandle, (CUdeviceptr * memory, CUipcMemHandle handle, unsigned flags), (memory, handle, flags),
       inject_allocated(ADDRESS(*memory), 0, HERE))
DRIVER(AFTER, cuIpcCloseMemHandle, (CUdeviceptr memory), (memory), inject_freed(ADDRESS(memory)))

/* A handle may be given out several times, and is released as often. */
DRIVER(BEFORE, cuMemCreate,
       (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *properties, unsigned long long flags),
       (handle, bytes, properties, flags), inject_allocated(ADDRESS(*handle), bytes, HERE))
DRIVER(BEFORE, cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *memory), (handle, memory),
       inject_allocated(ADDRESS(*handle), 0, HERE))
DRIVER(BEFORE, cuMemImportFromShareableHandle,
       (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type), (handle, shareable, type),
       inject_allocated(ADDRESS(*handle), 0, HERE))
DRIVER(AFTER, cuMemRelease, (CUmemGenericAllocationHandle handle), (handle), inject_freed(ADDRESS(handle)))
DRIVER(BEFORE, cuMemExportToShareableHandle,
       (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags),
       (shareable, handle, type, flags), NONE)
DRIVER(BEFORE, cuMemGetAllocationPropertiesFromHandle, (CUmemAllocationProp * properties, CUmemGenericAllocationHandle handle),
       (properties, handle), NONE)
DRIVER(BEFORE, cuMemAddressReserve,
       (CUdeviceptr * memory, size_t bytes, size_t alignment, CUdeviceptr wish, unsigned long long flags),
       (memory, bytes, alignment, wish, flags), inject_allocated(ADDRESS(*memory), bytes, HERE))
DRIVER(AFTER, cuMemAddressFree, (CUdeviceptr memory, size_t bytes), (memory, bytes), inject_freed(ADDRESS(memory)))
DRIVER(BEFORE, cuMemMap,
       (CUdeviceptr memory, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags),
       (memory, bytes, offset, handle, flags), NONE)
DRIVER(AFTER, cuMemUnmap, (CUdeviceptr memory, size_t bytes), (memory, bytes), NONE)
DRIVER(BEFORE, cuMemSetAccess, (CUdeviceptr memory, size_t bytes, const CUmemAccessDesc *access, size_t count),
       (memory, bytes, access, count), NONE)
DRIVER(BEFORE, cuMemGetAccess, (unsigned long long *flags, const CUmemLocation *location, CUdeviceptr memory),
       (flags, location, memory), NONE)
DRIVER(BEFORE, cuMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *location),
       (flags, pool, location), NONE)
DRIVER(BEFORE, cuFlushGPUDirectRDMAWrites, (CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope),
       (target, scope), NONE)
DRIVER(BEFORE, cuMemGetHandleForAddressRange,
       (void *handle, CUdeviceptr memory, size_t bytes, CUmemRangeHandleType type, unsigned long long flags),
       (handle, memory, bytes, type, flags), NONE)

/* Puts the wrapper of the driver's function of that name in its place. Others stay. */
static void stand_between(const char *name, void **function)
{
#define ROW(name, ...) {#name, (void *) wrap_##name, (void **) (void *) &real_##name},
    static const struct {
        const char *name;
        void *wrapper, **real;
    } rows[] = {INJECT_CUDA_DRIVER(ROW)};
#undef ROW
    for (size_t i = 0; *function != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(name, rows[i].name) == 0) {
            *rows[i].real = *function;
            *function = rows[i].wrapper;
            return;
        }
}

#if CUDART_VERSION >= 12050
RUNTIME(BEFORE, cudaGetDriverEntryPointByVersion,
        (const char *name, void **function, unsigned version, unsigned long long flags,
         enum cudaDriverEntryPointQueryResult *found),
        (name, function, version, flags, found), stand_between(name, function))
#elif CUDART_VERSION >= 12000
RUNTIME(BEFORE, cudaGetDriverEntryPoint,
        (const char *name, void **function, unsigned long long flags, enum cudaDriverEntryPointQueryResult *found),
        (name, function, flags, found), stand_between(name, function))
#else
RUNTIME(BEFORE, cudaGetDriverEntryPoint, (const char *name, void **function, unsigned long long flags), (name, function, flags),
        stand_between(name, function))
#endif
#endif
