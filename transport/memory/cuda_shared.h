/*
 * What a struct rondo_cuda_handle holds, for transport/memory/cuda_export.c, which writes it, and
 * transport/memory/cuda_import.c, which reads it, perhaps in another process.
 */
#ifndef RONDO_TRANSPORT_MEMORY_CUDA_SHARED_H
#define RONDO_TRANSPORT_MEMORY_CUDA_SHARED_H

#include "lib/base/thread.h"
#include "transport/memory/cuda_memory.h"
#include "transport/memory/cuda_pointer.h"
#include "transport/memory/segment.h"

/* Plain data. */
struct rondo_cuda_shared {
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES]; /* the exporter's */
    uint64_t buffer_id;                               /* never the same for two allocations of that process */
    uint64_t pointer, bytes;                          /* there */
    uint64_t offset, whole;                           /* in the allocation, and its bytes */
    uint32_t kind;                                    /* enum rondo_cuda_kind */
    int32_t device;                                   /* there */
    uint64_t outside;                                 /* other processes may import it: what follows is valid */
    union {
        CUipcMemHandle ipc;
        struct rondo_descriptor_offer offer;
    } as;
};
_Static_assert(sizeof(struct rondo_cuda_shared) <= sizeof(struct rondo_cuda_handle), "a handle must fit");

/* Whether the device may load from and store to memory of this process by leave of its owner (cuMemSetAccess and the like). For
 * memory of the kinds POOL (pool: its own) and MAPPED (address: any of it). Changes nothing. */
int rondo_cuda_has_access(int device, enum rondo_cuda_kind kind, CUmemoryPool pool, uint64_t address);

#endif
