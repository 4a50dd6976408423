/* The CUDA kernels as the host sees them: their numbers and their arguments. Relies on device/abi. */
#ifndef RONDO_DEVICE_CUDA_KERNELS_H
#define RONDO_DEVICE_CUDA_KERNELS_H

#include "device/abi/cuda_block.h"
#include "device/abi/structures.h"

#define RONDO_CUDA_BATCH 9 /* operations of one launch: 4 KiB of arguments are what every CUDA offers */

struct rondo_cuda_batch {
    uint32_t count;
    struct rondo_stream_operation operations[RONDO_CUDA_BATCH];
};

/* A group of parts (program blocks): more than a grid has blocks, which share them and visit theirs in turn, as a daemon
 * does. operations and owners (the operation of each part) are in host memory, visits (one for each part) in device memory. */
#define RONDO_CUDA_PARTS_MAX 256 /* of one block */
struct rondo_cuda_visit {
    struct rondo_stream_operation given; /* copied from the host's memory */
    struct rondo_context context;        /* where the part stands between two visits */
};
struct rondo_cuda_group {
    const struct rondo_stream_operation *operations;
    const uint32_t *owners;
    struct rondo_cuda_visit *visits;
    uint32_t parts;
};

enum rondo_cuda_kernel {
    RONDO_CUDA_DAEMON,     /* (struct rondo_daemon), a block for each block of the daemon */
    RONDO_CUDA_OPERATION,  /* (struct rondo_daemon, struct rondo_stream_operation), a block for each program block */
    RONDO_CUDA_LINES,      /* the same, of an operation with LL128 connectors */
    RONDO_CUDA_OPERATIONS, /* (struct rondo_daemon, struct rondo_cuda_batch), a block for each program block of all operations
                            */
    RONDO_CUDA_ALL_LINES,  /* the same, of operations that all have LL128 connectors */
    RONDO_CUDA_TMA,        /* the same, of operations that move_tma executes, with RONDO_TMA_SHARED bytes of shared memory */
    RONDO_CUDA_GROUP,      /* (struct rondo_daemon, struct rondo_cuda_group), as many blocks as the block budget grants */
    RONDO_CUDA_FETCH, /* (const uint64_t *from, uint64_t *to, uint32_t words), one thread: copies to where the host reads */
    RONDO_CUDA_KERNELS
};

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel, as the func argument of cudaLaunchKernel. */
const void *rondo_cuda_kernel(enum rondo_cuda_kernel kernel);

#ifdef __cplusplus
}
#endif

#endif
