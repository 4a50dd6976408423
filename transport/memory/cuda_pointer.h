/* What the CUDA driver knows of an address. Only builds with CUDA have it. */
#ifndef RONDO_TRANSPORT_MEMORY_CUDA_POINTER_H
#define RONDO_TRANSPORT_MEMORY_CUDA_POINTER_H

#include "transport/memory/cuda_driver.h"

#include <stddef.h>
#include <stdint.h>

enum rondo_cuda_kind {
    RONDO_CUDA_UNKNOWN,    /* nothing of CUDA's: pageable host memory, or no memory at all */
    RONDO_CUDA_HOST,       /* pinned */
    RONDO_CUDA_MANAGED,    /* */
    RONDO_CUDA_ALLOCATION, /* cudaMalloc */
    RONDO_CUDA_POOL,       /* cudaMallocAsync */
    RONDO_CUDA_MAPPED      /* cuMemMap */
};

struct rondo_cuda_pointer {
    enum rondo_cuda_kind kind;
    int device;            /* where it lives; of host memory, where it was pinned */
    CUdeviceptr on_device; /* the address by which devices use it */
    CUdeviceptr start;     /* of the allocation, or of the one mapping of cuMemMap */
    size_t size;           /* of that */
    uint64_t buffer_id;    /* never the same for two allocations of a process; 0: the driver does not say */
    uint64_t handle_types; /* by which it may be exported */
    CUmemoryPool pool;
};

/* Asks the driver about the address; needs no context. RONDO_ERR_DEVICE without a driver. Any thread. */
rondo_result_t rondo_cuda_inspect(const void *address, struct rondo_cuda_pointer *pointer);
/* Writes "memory of GPU 1" and the like, terminated, and returns text. */
const char *rondo_cuda_describe(const struct rondo_cuda_pointer *pointer, char *text, size_t bytes);

#endif
