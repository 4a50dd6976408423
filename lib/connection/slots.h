/*
 * How many slots connectors have, and of what size: the same on all ranks of a lane, and depends only on what all of them know.
 */
#ifndef RONDO_LIB_CONNECTION_SLOTS_H
#define RONDO_LIB_CONNECTION_SLOTS_H

#include "lib/connection/lane.h"
#include "transport/network_slots.h"

#define RONDO_LL_BYTES_MAX     8192  /* of an LL connector's slot, payload */
#define RONDO_SMALL_BYTES_MAX  16384 /* of a SMALL one's, */
#define RONDO_TINY_BYTES_MAX   256   /* and of a TINY one's, which has */
#define RONDO_TINY_SLOTS       64
#define RONDO_TINY_SLOT(bytes) ((bytes) + 64) /* with its tail, in whole lines */
/* Between GPUs: one slot a block for what LL is good for; what a block's warps carry in whole rounds. */
#define RONDO_GPU_LL_BYTES     19200
#define RONDO_GPU_SLOT_BYTES   245760
/* Of streams between GPUs by way of the host's memory, whose slots are to stay in the processor's cache
 * (lib/submission/slicing.c).
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

/* Messages that a connector of the lane holds: on GPUs an instruction takes two slots for one, and on networks (single: see
 * rondo_algorithm_single) several. */
uint32_t rondo_lane_messages(const struct rondo_host_lane *lane, int single);

#endif
