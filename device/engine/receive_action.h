/*
 * Receive actions: what the network is to do with a slot's bytes when they arrive. A host block that will wait for slots from
 * a network posts one a slot; the network, which has the bytes in its own buffer, reduces or copies them to their place
 * instead of filling the slot. That saves a copy, and reduces while the bytes are in the cache. Ownership passes by the state
 * word: the one that changes it from OFFERED owns the receive action.
 */
#ifndef RONDO_DEVICE_ENGINE_RECEIVE_ACTION_H
#define RONDO_DEVICE_ENGINE_RECEIVE_ACTION_H

#include <stddef.h>
#include <stdint.h>

/* OFFERED by the block; TAKEN and DONE by the network. DONE, or NONE again, is released before the connector's tail. */
enum rondo_receive_action_state {
    RONDO_RECEIVE_ACTION_NONE,
    RONDO_RECEIVE_ACTION_OFFERED,
    RONDO_RECEIVE_ACTION_TAKEN,
    RONDO_RECEIVE_ACTION_DONE
};
/* The state word of the slot at a position, so that a receive action is never taken for another slot's. */
#define RONDO_RECEIVE_ACTION(position, state) (((position) + 1) << 2 | (uint64_t) (state))
#define RONDO_RECEIVE_ACTION_STATE(word)      ((enum rondo_receive_action_state)((word) &3))

struct rondo_receive_action {
    uint64_t state; /* RONDO_RECEIVE_ACTION */
    /* The block's until it offers, the network's while it is TAKEN: to[i] = own[i] op slot[i], i < count, as
     * device/abi/slice_operation.h says. */
    char *to;
    const char *own; /* NULL: a copy */
    uint64_t count;  /* elements */
    uint32_t average;
    uint8_t type, op, element_bytes, streaming;
    uint8_t own_first; /* of the two sources */
    uint8_t unused[7];
};

/* To be called by the network's thread when the bytes of the slot at the position have arrived, at any address and
 * alignment. Performs the slot's receive action. Returns 1 if it has been performed, else 0: then the bytes belong in the
 * slot. */
int rondo_receive_action_run(struct rondo_receive_action *action, uint64_t position, const void *data, size_t bytes);

#endif
