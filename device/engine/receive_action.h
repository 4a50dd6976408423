/*
 * Receive actions: a host block that waits for slots from a network tells beforehand what is to become of their bytes, and the
 * network, when it has them in its own buffer, does that instead of putting them into the slot: one copy less, and the sum is
 * taken while the bytes are in the cache. One a slot; whoever changes a receive action's state from OFFERED has it.
 */
#ifndef RONDO_DEVICE_ENGINE_RECEIVE_ACTION_H
#define RONDO_DEVICE_ENGINE_RECEIVE_ACTION_H

#include <stddef.h>
#include <stdint.h>

/* OFFERED by the block, TAKEN and DONE by the network. It is released as DONE, or given back, before the connector's tail. */
enum rondo_receive_action_state {
    RONDO_RECEIVE_ACTION_NONE,
    RONDO_RECEIVE_ACTION_OFFERED,
    RONDO_RECEIVE_ACTION_TAKEN,
    RONDO_RECEIVE_ACTION_DONE
};
/* Of the slot at a position, so that a receive action is never taken for another slot's. */
#define RONDO_RECEIVE_ACTION(position, state) (((position) + 1) << 2 | (uint64_t) (state))
#define RONDO_RECEIVE_ACTION_STATE(word)      ((enum rondo_receive_action_state)((word) &3))

struct rondo_receive_action {
    uint64_t state; /* RONDO_RECEIVE_ACTION */
    /* The block's until it offers, the network's while it has it: to[i] = own[i] op slot[i], i < count, as
     * device/abi/slice_operation.h says. */
    char *to;
    const char *own; /* NULL: a copy */
    uint64_t count;  /* elements */
    uint32_t average;
    uint8_t type, op, element_bytes, streaming;
    uint8_t own_first; /* of the two sources */
    uint8_t unused[7];
};

/* By the network: the bytes of the slot at the position have come, anywhere and at any alignment. Returns whether the receive
 * action has been done; if not, they belong in the slot. */
int rondo_receive_action_run(struct rondo_receive_action *action, uint64_t position, const void *data, size_t bytes);

#endif
