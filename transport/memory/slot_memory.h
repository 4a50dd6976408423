/*
 * Memory for slots that lie apart from their counters, and how network cards are given it. Slots of ranks on GPUs should lie in
 * the GPU's memory, which a card reaches by itself where its driver takes a dma-buf, or where a kernel module (nvidia_peermem)
 * finds the pages behind the GPU's addresses.
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

/* What RONDO_GPUDIRECT says; *automatic: the best there is, and *kind is not set. RONDO_ERR_ARGUMENT. */
rondo_result_t rondo_slot_memory_wanted(int *automatic, enum rondo_slot_memory *kind);

/* At least bytes of zeros, page-aligned. gpu -1: of a rank on the host device. *dmabuf: to be registered by this descriptor,
 * which the caller closes, and not by the address; or -1. RONDO_ERR_TRANSPORT with the reason if there is no such memory. */
rondo_result_t rondo_slot_memory_allocate(enum rondo_slot_memory kind, int gpu, struct rondo_device *device, size_t bytes,
                                          char **base, size_t *whole, int *dmabuf);
void rondo_slot_memory_release(enum rondo_slot_memory kind, int gpu, struct rondo_device *device, char *base, size_t whole);
rondo_result_t rondo_slot_memory_zero(enum rondo_slot_memory kind, int gpu, void *memory, size_t bytes);
/* Whether the processor can read and write it. */
int rondo_slot_memory_is_host(enum rondo_slot_memory kind, int gpu);

#endif
