/*
 * The number and size of a connector's slots, and of a lane's contexts. All depend only on what all ranks of the lane know, so
 * that all ranks compute the same. Sizes are in bytes. Relies on transport/network_slots.h.
 */
#ifndef RONDO_LIB_CONNECTION_SLOTS_H
#define RONDO_LIB_CONNECTION_SLOTS_H

#include "lib/connection/lane.h"
#include "transport/network_slots.h"

#define RONDO_LL_BYTES_MAX        8192  /* payload of a slot, protocol LL */
#define RONDO_SMALL_BYTES_MAX     16384 /* of a slot, protocol SMALL */
#define RONDO_TINY_BYTES_MAX      256   /* of a slot, protocol TINY */
#define RONDO_TINY_SLOTS          64
#define RONDO_TINY_SLOT(bytes)    ((bytes) + 64) /* with its tail, in whole cache lines */
/* MULTICAST: few bytes, so that receivers read a slot while the sender writes the next. */
#define RONDO_MULTICAST_BYTES_MAX 4096 /* of a slot */
#define RONDO_MULTICAST_SLOTS     16
_Static_assert(RONDO_TINY_SLOTS >= 4 && RONDO_MULTICAST_SLOTS >= 4, "slots are given back by the quarter (rondo_gives_back)");
/* Between GPUs. LL: one slot holds what LL is used for, per block. Simple: a multiple of what a block's warps move in one
 * round; between linked GPUs, whose largest operations are bound by the links, a larger one. */
#define RONDO_GPU_LL_BYTES      19200
#define RONDO_GPU_SLOT_BYTES    245760
#define RONDO_LINKED_SLOT_BYTES 552960
/* Between processes that share a GPU: one fills the slots while it has its turn there, and the other empties them in the next.
 * So many times a usual slot; among more ranks fewer, so that all slots of a rank together stay as large. */
#define RONDO_TURN_SLOTS        16
#define RONDO_TURN_SLOT_RANKS   4 /* up to which it is that many */
/* Slots of compressed streams between GPUs through host memory. They should stay in the processor's cache
 * (lib/submission/slicing.c). */
#define RONDO_HOST_CODED_BYTES  65536
/* LL128: a slot's bytes times the number of a rank's peers. With two ranks and 32 channels, one slot holds a channel's part of
 * 8 MiB. */
#define RONDO_GPU_LL128_BYTES   300032

#define RONDO_DEFAULT_SLOT_BYTES 131072 /* unless RONDO_SLOT_BYTES is set */
/* Whether the communicator's connectors have the slots of connectors between hosts (transport/network_slots.h). The result is
 * the same on all members. */
int rondo_is_wide(const struct rondo_comm *comm);

/* The number of slots of a connector between hosts, and the number of slices of a tile on it. */
uint32_t rondo_network_slots(const struct rondo_runtime *runtime);
uint32_t rondo_network_slices(const struct rondo_runtime *runtime);

/* The number of slots of a lane's connectors of that protocol. lane_slots: of the protocols for all sizes. */
uint32_t rondo_protocol_slots(enum rondo_protocol protocol, uint32_t lane_slots);

/* Sets the slot sizes, by protocol, of a lane that serves operations of all sizes. */
void rondo_lane_slots(const struct rondo_comm *comm, uint32_t slot_bytes[RONDO_PROTOCOLS]);

/* The number of contexts of a lane: the most program blocks of an operation. Two for each channel, and enough for connectors to
 * all ranks of the world in both directions (rondo_peer_windows). */
uint32_t rondo_lane_contexts(const struct rondo_runtime *runtime);

/* The number of messages that a connector of the lane holds. An instruction takes two slots for a message on GPUs, and several
 * on networks. single: see rondo_algorithm_single. */
uint32_t rondo_lane_messages(const struct rondo_host_lane *lane, int single);

#endif
