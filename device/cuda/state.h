/*
 * What the sources of the CUDA device share: its state, and care with the application's, which finds its current GPU, its
 * stream captures and its last error as it left them.
 */
#ifndef RONDO_DEVICE_CUDA_STATE_H
#define RONDO_DEVICE_CUDA_STATE_H

#include "device/cuda/device.h"
#include "device/cuda/block_budget.h"

#include <pthread.h>

struct rondo_cuda {
    struct rondo_device base;
    struct rondo_block_budget *block_budget; /* of the GPU, */
    struct rondo_block_budget_user sitting;  /* and how this runtime is known there */
    int index;                               /* which GPU */
    int rank;
    uint32_t blocks, multiprocessors;
    int overlaps; /* a kernel may be launched before the one it follows in its stream is done */
    cudaStream_t launches, copies;
    pthread_mutex_t fetch_lock;
    uint64_t *fetched; /* under it: host memory for a word of the GPU's */
    struct rondo_pool *device_pool, *host_pool;
    uint32_t failing, failed; /* it cannot be used any more; failed is released after failure */
    char failure[256];
};

static inline struct rondo_cuda *rondo_cuda_of(struct rondo_device *device)
{
    return (struct rondo_cuda *) device;
}

/* RONDO_ERR_MEMORY or RONDO_ERR_DEVICE, and says what. */
rondo_result_t rondo_cuda_report(cudaError_t error, const char *what);

/* What of the calling thread's CUDA state our calls change. */
struct rondo_cuda_caller {
    int device;
    int clean; /* it has no error that it has not looked at */
    enum cudaStreamCaptureMode mode;
};

/* Makes the GPU current for the calling thread. While a thread captures a stream of its own, calls like ours, on any thread,
 * must declare that they have nothing to do with it. */
struct rondo_cuda_caller rondo_cuda_begin(int index);
/* An error of ours is reported by its code and is not found by the application as its last one, but nor do we take one away
 * that was there before. One that has ruined the context stays in any case. */
void rondo_cuda_end(struct rondo_cuda_caller caller, int index);

/* device/cuda/stream.c; as in struct rondo_device_kind. */
rondo_result_t rondo_cuda_enqueue(struct rondo_device *device, const struct rondo_stream_launch *launch,
                                  struct rondo_stream_list **list);
int rondo_cuda_is_captured(struct rondo_device *device, void *stream);
uint64_t rondo_cuda_stream_id(struct rondo_device *device, void *stream);
/* Takes the runtime's part in the GPU's seats; rondo_block_budget_leave gives it up. RONDO_ERR_MEMORY. */
rondo_result_t rondo_cuda_take_block_budget(struct rondo_cuda *cuda);

#endif
