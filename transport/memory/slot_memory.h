/*
 * Memory for slots that lie apart from their counters, and how it is registered with NICs. Slots of ranks on GPUs should lie in
 * the GPU's memory, which a NIC reaches by itself where its driver takes a dma-buf, or where a kernel module (nvidia_peermem)
 * finds the pages behind the GPU's addresses. Any thread may call any function.
 */
#ifndef RONDO_TRANSPORT_MEMORY_SLOT_MEMORY_H
#define RONDO_TRANSPORT_MEMORY_SLOT_MEMORY_H

#include "rondo.h"

#include <stddef.h>

struct rondo_device;

enum rondo_slot_memory {
    RONDO_SLOTS_WITH_COUNTERS, /* nothing apart: all in the host's memory */
    RONDO_SLOTS_DMABUF,        /* the GPU's, registered by a descriptor of it */
    RONDO_SLOTS_PEERMEM,       /* the GPU's, registered by its address */
    RONDO_SLOTS_APART,         /* the host's, handled as if it were the GPU's: a test of everything but the memory */
    RONDO_SLOTS_KINDS
};

/* As RONDO_GPUDIRECT names them: off, dmabuf, peermem, apart. */
extern const char *const rondo_slot_memory_names[RONDO_SLOTS_KINDS];

/* What RONDO_GPUDIRECT says: either *automatic, for the best that can be registered, or *kind. RONDO_ERR_ARGUMENT. */
rondo_result_t rondo_slot_memory_wanted(int *automatic, enum rondo_slot_memory *kind);

/* *base: *whole bytes, at least as many as asked for, page-aligned and zero. gpu -1: of a rank on the host device. *dmabuf: the
 * descriptor to register it by, which the caller closes; -1: it is registered by its address. RONDO_ERR_TRANSPORT with the
 * reason if there is no such memory; RONDO_ERR_MEMORY. */
rondo_result_t rondo_slot_memory_allocate(enum rondo_slot_memory kind, int gpu, struct rondo_device *device, size_t bytes,
                                          char **base, size_t *whole, int *dmabuf);
/* Undoes allocate, with the same kind, gpu and device. */
void rondo_slot_memory_release(enum rondo_slot_memory kind, int gpu, struct rondo_device *device, char *base, size_t whole);
/* Returns when the zeros are there. RONDO_ERR_DEVICE. */
rondo_result_t rondo_slot_memory_zero(enum rondo_slot_memory kind, int gpu, void *memory, size_t bytes);
/* Whether the processor can read and write it. */
int rondo_slot_memory_is_host(enum rondo_slot_memory kind, int gpu);

#endif
