/* The kernels, as the host sees them. */
#ifndef RONDO_DEVICE_CUDA_KERNELS_H
#define RONDO_DEVICE_CUDA_KERNELS_H

#include "device/abi/cuda_block.h"
#include "device/abi/structures.h"

#define RONDO_CUDA_BATCH 9 /* operations of one launch: 4 KiB of arguments are what every CUDA offers */

struct rondo_cuda_batch {
    uint32_t count;
    struct rondo_stream_operation operations[RONDO_CUDA_BATCH];
};

/* More parts (program blocks) of operations than a grid has blocks, which share them out: each goes round its own as a daemon
 * does. operations, and the one that each part is of: the host's memory. visits: one a part, device memory. */
#define RONDO_CUDA_PARTS_MAX 256 /* of one block */
struct rondo_cuda_visit {
    struct rondo_stream_operation given; /* brought in from the host's memory */
    struct rondo_context context;        /* where the part stands between two visits */
};
struct rondo_cuda_group {
    const struct rondo_stream_operation *operations;
    const uint32_t *owners;
    struct rondo_cuda_visit *visits;
    uint32_t parts;
};

enum rondo_cuda_kernel {
    RONDO_CUDA_DAEMON,     /* (struct rondo_daemon), one block a block of the daemon */
    RONDO_CUDA_OPERATION,  /* (struct rondo_daemon, struct rondo_stream_operation), one block a program block */
    RONDO_CUDA_LINES,      /* the same, of an operation with LL128 connectors */
    RONDO_CUDA_OPERATIONS, /* (struct rondo_daemon, struct rondo_cuda_batch), likewise, of each */
    RONDO_CUDA_ALL_LINES,  /* the same, of operations that all have LL128 connectors */
    RONDO_CUDA_TMA,        /* the same, of operations that all walk by bulk copies; with RONDO_TMA_SHARED */
    RONDO_CUDA_GROUP,      /* (struct rondo_daemon, struct rondo_cuda_group), as many blocks as may be */
    RONDO_CUDA_FETCH,      /* (const uint64_t *, uint64_t *), one thread: a word to where the host sees it */
    RONDO_CUDA_KERNELS
};

#ifdef __cplusplus
extern "C" {
#endif

/* As cudaLaunchKernel's func. */
const void *rondo_cuda_kernel(enum rondo_cuda_kernel kernel);

#ifdef __cplusplus
}
#endif

#endif
