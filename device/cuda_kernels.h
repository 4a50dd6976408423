/* The kernels, as the host sees them. */
#ifndef RONDO_DEVICE_CUDA_KERNELS_H
#define RONDO_DEVICE_CUDA_KERNELS_H

#include "structures.h"

#define RONDO_CUDA_WORKERS_MAX 512
#define RONDO_CUDA_CONTROL     32 /* threads of a block that are not workers */
#define RONDO_CUDA_BATCH       12 /* operations of one launch: 4 KiB of arguments are what every CUDA offers */

struct rondo_cuda_batch {
    uint32_t count;
    struct rondo_stream_operation operations[RONDO_CUDA_BATCH];
};

#ifdef __cplusplus
extern "C" {
#endif

/* kernel(struct rondo_cuda_batch batch, struct rondo_daemon *image), as cudaLaunchKernel's func: the operations of the batch,
 * one block a program block of each; with an empty batch the daemon, one block a daemon's block. */
const void *rondo_cuda_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
