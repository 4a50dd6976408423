/*
 * What every rank tells all others at init. From it both sides of a connection compute the same choices without asking each
 * other: a field is set either before the first exchange or, where its comment says so, by a later one.
 */
#ifndef RONDO_TRANSPORT_PEER_H
#define RONDO_TRANSPORT_PEER_H

#include "device/engine/process_memory.h"
#include "transport/memory/cuda_memory.h"

#include <stdint.h>

#define RONDO_HOST_ID_BYTES 128

/* Whether a rank takes part in single copies (device/engine/references.h). Of several ranks, the smallest counts. */
enum rondo_peer_single_copy { RONDO_PEER_SLOTS_ONLY, RONDO_PEER_SINGLE_COPY, RONDO_PEER_SINGLE_COPY_ALWAYS };

/* Plain data: it is exchanged as it lies in memory, so all ranks run the same build. */
struct rondo_peer {
    char host_id[RONDO_HOST_ID_BYTES]; /* equal on two ranks if and only if they share a host; terminated */
    uint64_t process[2];               /* random, one a process: equal on ranks that are threads of one process */
    uint32_t blocks;                   /* configured; 0: by cores */
    uint32_t stream_blocks;            /* configured for operations on streams; 0: as they are chosen */
    int32_t sm;                        /* multiprocessors that operations may take; 0: copy engines; -1: no budget */
    uint32_t cores;                    /* that the rank's process may run on */
    uint32_t slot_bytes;               /* largest slot of the simple protocol that the rank accepts */
    uint32_t device;                   /* rondo_device_t */
    struct rondo_gpu_identity gpu;     /* all zero: a rank on the host device */
    uint32_t networks; /* set of networks that the rank can use (transport/transport.c); told in a later exchange */
    uint64_t tuning;   /* fingerprint of its tuning table; 0: none */
    uint64_t programs; /* of the files of RONDO_PROGRAMS; 0: none */
    struct rondo_process_identity memory; /* by which the ranks of its host read its process's memory */
    uint32_t single_copy; /* enum rondo_peer_single_copy; told at last, once it has tried to read its neighbours' memory */
    uint32_t carriers;    /* threads that move its networks' bytes, 0: NICs do; told once all have opened them */
};

#endif
