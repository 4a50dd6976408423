/*
 * How large the slots of connectors between hosts are, where a message costs system calls on both sides: the selection of
 * algorithms makes slots and slices of these sizes, and networks prepare buffers for them.
 */
#ifndef RONDO_TRANSPORT_NETWORK_SLOTS_H
#define RONDO_TRANSPORT_NETWORK_SLOTS_H

#include <stdint.h>

/* Bytes of a slot: many slots, with room for what is on its way, filled with RONDO_NETWORK_PACKETS bytes, which with the
 * message's header make four whole packets of TCP's largest, and with a little more where that saves another. */
#define RONDO_NETWORK_SLOT_BYTES 274432
#define RONDO_NETWORK_PACKETS    260480u
#define RONDO_NETWORK_SLOTS      16 /* of a connector */
#define RONDO_NETWORK_SLICES     8  /* of a tile: what an instruction has on its way at once */
/* In a job of two ranks, which exchange all in a step or two, slots and slices are so many times as large, and there are half
 * as many of them: fewer messages. With more ranks, data go on from rank to rank, and smaller slices have more of them under
 * way; and there UCX does better with buffers for the smaller ones (transport/ucx/ucx.c). */
#define RONDO_NETWORK_PAIR       4

/* That factor for a job of so many ranks: RONDO_NETWORK_PAIR or 1. */
static inline uint32_t rondo_network_scale(int ranks)
{
    return ranks == 2 ? RONDO_NETWORK_PAIR : 1;
}

#endif
