/* Which algorithm, protocol and channel count an operation gets. All ranks must choose alike, so the choice may depend only on
 * what all of them know. */
#ifndef RONDO_LIB_SELECT_SELECT_H
#define RONDO_LIB_SELECT_SELECT_H

#include "lib/context/runtime.h"
#include "transport/network_slots.h"

struct rondo_choice {
    const struct rondo_algorithm *algorithm;
    enum rondo_protocol protocol;
    int channels;
    const char *why;                      /* for the log */
    int direct_writes;                    /* as rondo_writes_directly_by says */
    int measured;                         /* as rondo_select_gpu says; nobody has asked for anything */
    const struct rondo_tuning_row *tuned; /* the row that decided; NULL: none */
};

/* direct: all ranks can reach each other's buffers of this call. streamed: it runs in stream order, in a kernel of its own.
 * name: an algorithm the user insists on, or NULL. */
rondo_result_t rondo_select(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                            const char *name, struct rondo_choice *choice);

/* Why the algorithm cannot run this call; NULL if it can. */
const char *rondo_misfit(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                         const struct rondo_algorithm *algorithm);

/* Whether what is received is stored where it belongs by the sender (device/engine/direct_write.h), all else having been
 * chosen. */
int rondo_writes_directly_by(const struct rondo_comm *comm, const struct rondo_call *call, int streamed,
                             const struct rondo_choice *choice);

/* Bytes that decide: the larger of what a rank puts in and what it gets out, as all ranks know it (v-collectives: 0 where only
 * each rank knows its own). */
size_t rondo_call_bytes(const struct rondo_comm *comm, const struct rondo_call *call);

/* What travels in one connector for it: the size that decides the protocol. SIZE_MAX where ranks cannot know. */
size_t rondo_message_bytes(const struct rondo_comm *comm, const struct rondo_call *call);

#define RONDO_LL_BYTES_MAX     8192  /* of an LL connector's slot, payload */
#define RONDO_SMALL_BYTES_MAX  16384 /* of a SMALL one's, */
#define RONDO_TINY_BYTES_MAX   256   /* and of a TINY one's, which has */
#define RONDO_TINY_SLOTS       64
#define RONDO_TINY_SLOT(bytes) ((bytes) + 64) /* with its tail, in whole lines */
/* Between GPUs: one slot a block for what LL is good for; what a block's warps carry in whole rounds. */
#define RONDO_GPU_LL_BYTES     19200
#define RONDO_GPU_SLOT_BYTES   245760
/* Of streams between GPUs by way of the host's memory, whose slots are to stay in the processor's cache (lib/select/slicing.c).
 */
#define RONDO_HOST_CODED_BYTES 65536
/* Of LL128, slots by all of a rank's peers together: for two ranks what of 8 MiB each of 32 channels carries, in one piece. */
#define RONDO_GPU_LL128_BYTES  300032

#define RONDO_DEFAULT_SLOT_BYTES 131072 /* where RONDO_SLOT_BYTES says nothing else */
/* Whether the communicator's connectors are those between hosts (transport/network_slots.h). Its members all say the same. */
int rondo_is_wide(const struct rondo_comm *comm);

/* How many slots a connector between hosts has, and slices a tile. */
uint32_t rondo_network_slots(const struct rondo_runtime *runtime);
uint32_t rondo_network_slices(const struct rondo_runtime *runtime);

/* Slot sizes of a lane that serves operations of all sizes. */
void rondo_lane_slots(const struct rondo_comm *comm, uint32_t slot_bytes[RONDO_PROTOCOLS]);

#endif
