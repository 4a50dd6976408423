/* See errand.h. */
#include "device/engine/receive_action.h"

#include "device/reduce/reduce.h"
#include "device/abi/platform.h"

static void carry_out(const struct rondo_errand *errand, const void *data)
{
    void *to = errand->to;
    const void *sources[2] = {errand->own_first ? errand->own : data, errand->own_first ? data : errand->own};
    rondo_fold(&to, 1, sources, errand->own != NULL ? 2 : 1, errand->count, (rondo_datatype_t) errand->type,
               (rondo_op_t) errand->op, (int) errand->average, errand->streaming);
}

int rondo_errand_do(struct rondo_errand *errand, uint64_t position, const void *data, size_t bytes)
{
    uint64_t offered = RONDO_ERRAND(position, RONDO_ERRAND_OFFERED);
    /* Acquire pairs with the block's release of the offer: what is to be done is visible, and what it is done with. */
    if (rondo_load_relaxed(&errand->state) != offered ||
        !rondo_exchange_if(&errand->state, offered, RONDO_ERRAND(position, RONDO_ERRAND_TAKEN)))
        return 0;
    int fits = bytes >= errand->count * errand->element_bytes; /* or the peer sends something else: as without errands */
    if (fits)
        carry_out(errand, data);
    /* Release: our reading and writing of the buffers is over for whoever withdraws, too. */
    rondo_store_release(&errand->state, RONDO_ERRAND(position, fits ? RONDO_ERRAND_DONE : RONDO_ERRAND_NONE));
    return fits;
}
