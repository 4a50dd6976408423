/* The kernels, as the host sees them. */
#ifndef RONDO_DEVICE_CUDA_KERNELS_H
#define RONDO_DEVICE_CUDA_KERNELS_H

#include "structures.h"

#include <cuda_runtime_api.h>

#define RONDO_CUDA_WORKERS_MAX 512
#define RONDO_CUDA_CONTROL     32 /* threads of a block that are not workers */
#if CUDART_VERSION >= 12010 && !defined(RONDO_CUDA_SMALL_ARGUMENTS)
#define RONDO_CUDA_BATCH 96 /* 32 KiB of arguments */
#else
#define RONDO_CUDA_BATCH 12 /* 4 KiB */
#endif

struct rondo_cuda_batch {
    uint32_t count;
    struct rondo_stream_operation operations[RONDO_CUDA_BATCH];
};

#ifdef __cplusplus
extern "C" {
#endif

/* Arguments of cudaLaunchKernel's func. */
/* kernel(struct rondo_daemon *image): the daemon, one block a daemon's block. */
const void *rondo_cuda_daemon_kernel(void);
/* kernel(struct rondo_stream_operation operation, struct rondo_daemon *image): one operation, one block a program block. */
const void *rondo_cuda_stream_kernel(void);
/* kernel(struct rondo_cuda_batch batch, struct rondo_daemon *image): several at once. */
const void *rondo_cuda_batch_kernel(void);

#ifdef __cplusplus
}
#endif

#endif
