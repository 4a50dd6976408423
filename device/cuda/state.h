/*
 * What the sources of the CUDA device share: its state, and guards of the application's CUDA state: its current GPU, its
 * stream captures and its last error are the same after each call.
 */
#ifndef RONDO_DEVICE_CUDA_STATE_H
#define RONDO_DEVICE_CUDA_STATE_H

#include "device/cuda/device.h"
#include "device/cuda/block_budget.h"

#include <pthread.h>

#define RONDO_CUDA_FETCHED 16

struct rondo_cuda {
    struct rondo_device base;
    struct rondo_block_budget *block_budget;    /* of the GPU */
    struct rondo_block_budget_user budget_user; /* this runtime's part in it */
    int index;                                  /* which GPU */
    int rank;
    uint32_t blocks, multiprocessors;
    uint32_t stream_blocks; /* the most of a kernel on a stream; 0: any number */
    int overlaps;           /* a kernel may be launched before the previous one in its stream has ended */
    cudaStream_t launches, copies;
    pthread_mutex_t fetch_lock;
    uint64_t *fetched; /* host memory for RONDO_CUDA_FETCHED words of the GPU's; under the lock */
    struct rondo_pool *device_pool, *host_pool;
    uint32_t failing, failed; /* the device cannot be used any more; failed is released after failure */
    char failure[256];
};

static inline struct rondo_cuda *rondo_cuda_of(struct rondo_device *device)
{
    return (struct rondo_cuda *) device;
}

/* Reports a CUDA error. Returns RONDO_ERR_MEMORY or RONDO_ERR_DEVICE. */
rondo_result_t rondo_cuda_report(cudaError_t error, const char *what);

/* The part of the calling thread's CUDA state that the library's calls change. */
struct rondo_cuda_caller {
    int device;
    int clean; /* the thread had no error that it has not read */
    enum cudaStreamCaptureMode mode;
};

/* Makes the GPU current for the calling thread. While a thread captures a stream, every call, on any thread, has to declare
 * that it has nothing to do with the capture. */
struct rondo_cuda_caller rondo_cuda_begin(int index);
/* Restores the caller's state. The library's own errors are not left as the application's last error, and an error that was
 * there before stays. An error that has ruined the context stays in any case. */
void rondo_cuda_end(struct rondo_cuda_caller caller, int index);

/* In device/cuda/stream.c; see struct rondo_device_kind. */
rondo_result_t rondo_cuda_enqueue(struct rondo_device *device, const struct rondo_stream_launch *launch,
                                  struct rondo_stream_list **list);
/* In device/cuda/copies.c; likewise. */
rondo_result_t rondo_cuda_copy(struct rondo_device *device, const struct rondo_copy_step *steps, int count, void *stream);
rondo_result_t rondo_cuda_is_captured(struct rondo_device *device, void *stream, int *captured);
uint64_t rondo_cuda_stream_id(struct rondo_device *device, void *stream);
/* Takes the runtime's part in the GPU's block budget; rondo_block_budget_leave gives it up. Returns RONDO_ERR_MEMORY without
 * memory. */
rondo_result_t rondo_cuda_take_block_budget(struct rondo_cuda *cuda);

#endif
