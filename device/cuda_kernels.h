/* The kernels, as the host sees them. */
#ifndef RONDO_DEVICE_CUDA_KERNELS_H
#define RONDO_DEVICE_CUDA_KERNELS_H

#include "structures.h"

#define RONDO_CUDA_WORKERS_MAX 512
#define RONDO_CUDA_CONTROL     32 /* threads of a block that are not workers */
#define RONDO_CUDA_BATCH       12 /* operations of one launch: 4 KiB of arguments are what every CUDA offers */

struct rondo_cuda_batch {
    uint32_t count; /* of the operations here */
    /* A larger group: so many parts (program blocks) of operations, shared out among the grid's blocks, each of which goes
     * round its own as a daemon does; the operation of each part. */
    uint32_t parts;
    const struct rondo_stream_operation *list;
    const uint32_t *owners;
    struct rondo_stream_operation operations[RONDO_CUDA_BATCH];
};

#define RONDO_CUDA_PARTS_MAX 256 /* of one block */

#ifdef __cplusplus
extern "C" {
#endif

/* kernel(struct rondo_cuda_batch batch, struct rondo_daemon *image), as cudaLaunchKernel's func: the operations of the batch,
 * one block a program block of each, or a group's parts; with an empty batch the daemon, one block a daemon's block. */
const void *rondo_cuda_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
