/*
 * What it costs to move a slot's bytes, by the slot (the sender stores, the receiver reads) or by a single copy (the receiver
 * copies them from the sender's memory): which is faster depends on caches, on the kernel and on who else waits, and differs
 * from machine to machine by a factor of two either way. So sender and receiver time what they do, and the sender decides for
 * each slot. Times of straight copying are compared, not of operations: these depend on what the other ranks decide. Now and
 * then a slot goes the other way, so that its time is known. Relies on nothing; the words are in struct rondo_head and struct
 * rondo_reference.
 */
#ifndef RONDO_DEVICE_ENGINE_COPY_COSTS_H
#define RONDO_DEVICE_ENGINE_COPY_COSTS_H

#include "device/abi/structures.h"

#include <stddef.h>
#include <stdint.h>

#define RONDO_SINGLE_COPY_BYTES 32768 /* of a slot that is copied once, at least: a system call takes as long as some KiB */
#define RONDO_COST_SAMPLE       4     /* of so many copies into and out of slots, one is timed */

/* In nanoseconds a MiB; 0: not known. */
struct rondo_copy_costs {
    uint32_t store, read, once;
};

/* The class of a slot of at least RONDO_SINGLE_COPY_BYTES: costs a byte differ, because a system call has a fixed one. */
static inline uint32_t rondo_cost_class(uint64_t bytes)
{
    uint32_t index = 0;
    for (uint64_t least = 2 * RONDO_SINGLE_COPY_BYTES; index + 1 < RONDO_COST_CLASSES && bytes >= least; least *= 2)
        index++;
    return index;
}

/* A cost after another time was taken. Follows shorter times at once and longer ones slowly, because a thread that was
 * descheduled meanwhile takes longer, and nothing makes it take less. */
static inline uint32_t rondo_cost_after(uint32_t cost, uint64_t ns, uint64_t bytes)
{
    const uint64_t most = UINT32_MAX / 4, rate = (ns << 20) / bytes, time = rate < 1 ? 1 : rate < most ? rate : most;
    if (cost == 0)
        return (uint32_t) time;
    if (time < cost)
        return (uint32_t) ((cost + time + 1) / 2);
    return (uint32_t) (cost + ((time < 2 * (uint64_t) cost ? time : 2 * (uint64_t) cost) - cost) / 16);
}

/* Whether a single copy costs less. What counts of the sender's and the receiver's time in slots is the rule's; tiles: of the
 * operation; readers: ranks that read at the same time from one that stores. */
static inline int rondo_cost_prefers_once(struct rondo_copy_costs costs, enum rondo_cost_rule rule, uint64_t tiles,
                                          uint32_t readers)
{
    const uint64_t store = costs.store, read = costs.read, larger = store > read ? store : read;
    switch (rule) {
    case RONDO_COST_ONE_WAY: /* the receiver reads one slot while the sender stores the next */
        return costs.once < larger + (store + read - larger) / tiles;
    case RONDO_COST_READER: /* the root, from many senders */
        return costs.once < read;
    case RONDO_COST_READERS: /* of the root, one slot after the other */
        return costs.once < store * readers;
    default:
        return costs.once < store + read;
    }
}

/* Whether the next slot is to be a single copy. sent: slots of such a size before it, through the connector. */
static inline int rondo_cost_chooses_once(struct rondo_copy_costs costs, enum rondo_cost_rule rule, uint64_t tiles,
                                          uint32_t readers, uint32_t sent)
{
    if (costs.read == 0 || costs.once == 0) /* the receiver tells as soon as it knows */
        return costs.read != 0;
    const int once = rondo_cost_prefers_once(costs, rule, tiles, readers);
    const uint32_t period = sent < 256 ? 16 : 512; /* a trial may cost some times as much */
    return sent % period == period - 1 ? !once : once;
}

#endif
