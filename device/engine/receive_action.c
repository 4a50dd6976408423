/* See device/engine/receive_action.h. */
#include "device/engine/receive_action.h"

#include "device/reduce/reduce.h"
#include "device/abi/platform.h"

static void perform(const struct rondo_receive_action *action, const void *data)
{
    void *to = action->to;
    const void *sources[2] = {action->own_first ? action->own : data, action->own_first ? data : action->own};
    rondo_reduce_elements(&(struct rondo_reduction){.dst = &to,
                                                    .src = sources,
                                                    .destinations = 1,
                                                    .sources = action->own != NULL ? 2 : 1,
                                                    .count = action->count,
                                                    .type = (rondo_datatype_t) action->type,
                                                    .op = (rondo_op_t) action->op,
                                                    .average = (int) action->average,
                                                    .streaming = action->streaming});
}

int rondo_receive_action_run(struct rondo_receive_action *action, uint64_t position, const void *data, size_t bytes)
{
    uint64_t offered = RONDO_RECEIVE_ACTION(position, RONDO_RECEIVE_ACTION_OFFERED);
    /* Acquire pairs with the block's release of the offer: the action and the buffers' content are visible. */
    if (rondo_load_relaxed(&action->state) != offered ||
        !rondo_exchange_if(&action->state, offered, RONDO_RECEIVE_ACTION(position, RONDO_RECEIVE_ACTION_TAKEN)))
        return 0;
    int fits =
        bytes >= action->count * action->element_bytes; /* the peer may send something else: then the bytes go to the slot */
    if (fits)
        perform(action, data);
    /* Release: all reading and writing of the buffers is over for a block that withdraws the action, too. */
    rondo_store_release(&action->state,
                        RONDO_RECEIVE_ACTION(position, fits ? RONDO_RECEIVE_ACTION_DONE : RONDO_RECEIVE_ACTION_NONE));
    return fits;
}
