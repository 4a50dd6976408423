/*
 * GPU memory that network cards write to by themselves (GPUDirect): a dma-buf of it to register, and what it takes until the
 * GPU may trust what a card has written. Built without CUDA there is no GPU to ask.
 */
#ifndef RONDO_TRANSPORT_MEMORY_CUDA_DIRECT_H
#define RONDO_TRANSPORT_MEMORY_CUDA_DIRECT_H

#include "rondo.h"

#include <stddef.h>

/* What makes a card's writes into a GPU's memory visible to that GPU, once they are known to have been made. */
enum rondo_cuda_flush {
    RONDO_CUDA_FLUSH_NONE,   /* nothing: the GPU sees them in order */
    RONDO_CUDA_FLUSH_DRIVER, /* rondo_cuda_flush */
    RONDO_CUDA_FLUSH_READ    /* a read of that memory by the card, which its earlier writes go before */
};

#if RONDO_WITH_CUDA

/* A descriptor, which the caller closes, of [base, +bytes): page-aligned memory of rondo_cuda_allocate. RONDO_ERR_TRANSPORT
 * with the reason if the driver has no such thing. */
rondo_result_t rondo_cuda_dmabuf(int device_index, void *base, size_t bytes, int *descriptor);
int rondo_cuda_has_dmabuf(int device_index);
enum rondo_cuda_flush rondo_cuda_flush_of(int device_index);
/* RONDO_ERR_DEVICE. */
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
