/*
 * What the drop-in for NCCL offers beyond nccl.h. With RONDO_DEVICE=host its communicators are on the host device:
 * buffers are any memory of the process, and a cudaStream_t is any pointer or number, which names a queue in whose order
 * operations run. So programs for NCCL can be tried without a GPU.
 */
#ifndef RONDO_NCCL_H
#define RONDO_NCCL_H

#ifdef __cplusplus
extern "C" {
#endif

/* Host device: returns when all that was enqueued on the stream is done, or has failed (ncclCommGetAsyncError). */
__attribute__((visibility("default"))) void rondo_nccl_synchronize(void *stream);

#ifdef __cplusplus
}
#endif
#endif
