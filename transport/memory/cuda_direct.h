/*
 * GPU memory that NICs write to by themselves (GPUDirect): a dma-buf of it to register, and what makes a NIC's writes visible
 * to the GPU. A build without CUDA has the types, and functions that refuse.
 */
#ifndef RONDO_TRANSPORT_MEMORY_CUDA_DIRECT_H
#define RONDO_TRANSPORT_MEMORY_CUDA_DIRECT_H

#include "rondo.h"

#include <stddef.h>

/* What makes a NIC's writes into a GPU's memory visible to that GPU, once they are known to have been made. */
enum rondo_cuda_flush {
    RONDO_CUDA_FLUSH_NONE,   /* nothing: the GPU sees them in order */
    RONDO_CUDA_FLUSH_DRIVER, /* rondo_cuda_flush */
    RONDO_CUDA_FLUSH_READ    /* a read of that memory by the NIC, which its earlier writes go before */
};

#if RONDO_WITH_CUDA

/* *descriptor, which the caller closes: a dma-buf of [base, +bytes), page-aligned memory of rondo_cuda_allocate. Any thread.
 * RONDO_ERR_TRANSPORT with the reason if the driver makes none. */
rondo_result_t rondo_cuda_dmabuf(int device_index, void *base, size_t bytes, int *descriptor);
/* Whether the driver makes dma-bufs of that GPU's memory. */
int rondo_cuda_has_dmabuf(int device_index);
/* What that GPU takes. */
enum rondo_cuda_flush rondo_cuda_flush_of(int device_index);
/* Where that is RONDO_CUDA_FLUSH_DRIVER: returns when what has been written before is visible to the GPU. RONDO_ERR_DEVICE. */
rondo_result_t rondo_cuda_flush(int device_index);

#else

static inline rondo_result_t rondo_cuda_dmabuf(int device_index, void *base, size_t bytes, int *descriptor)
{
    (void) device_index;
    (void) base;
    (void) bytes;
    *descriptor = -1;
    return RONDO_ERR_UNSUPPORTED;
}

static inline enum rondo_cuda_flush rondo_cuda_flush_of(int device_index)
{
    (void) device_index;
    return RONDO_CUDA_FLUSH_READ;
}

static inline rondo_result_t rondo_cuda_flush(int device_index)
{
    (void) device_index;
    return RONDO_ERR_UNSUPPORTED;
}

#endif
#endif
