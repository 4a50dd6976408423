/*
 * The store policy of the host device: whether slots and other buffers that another core will read are stored through the
 * caches or past them. Where the two cores share a cache, stores that stay in it are fastest. Where they do not, every line
 * that one core has written and the other wants travels by itself, while what was stored past the caches comes out of memory
 * as fast as it can be requested. The hardware does not say which case holds, and in a virtual machine it changes from minute
 * to minute. So now and then a few copies go one way, then as many the other way, alternately, and the faster way is used
 * until the next such trial. What counts is the time from copy to copy, which includes the receiver's reading: how long a copy
 * takes says little of that.
 */
#ifndef RONDO_DEVICE_MOVE_STORE_POLICY_H
#define RONDO_DEVICE_MOVE_STORE_POLICY_H

#include <stddef.h>
#include <stdint.h>

#define RONDO_STORE_POLICY_BYTES 4096 /* smaller copies are not stored past the caches, and not counted */
#define RONDO_STORE_POLICY_WINDOW                                                                                              \
    13 /* copies of a trial that go one way in a row: no divisor of what operations consist of                                 \
        */
#define RONDO_STORE_POLICY_TRIES        5 /* windows of each way; the median counts */
/* Copies from trial to trial, by the chosen way: a trial costs up to 3% of the copies' time. */
#define RONDO_STORE_POLICY_PERIOD(past) ((past) ? 8192u : 2048u)
#define RONDO_STORE_POLICY_MARGIN       120 /* percent of the speed through the caches from which a change pays */

#define RONDO_STORE_POLICY_WINDOWS                                                                                             \
    (1 + 2 * RONDO_STORE_POLICY_TRIES) /* the first is not counted: slots are touched for the first time */
#define RONDO_STORE_POLICY_TRIAL (RONDO_STORE_POLICY_WINDOWS * RONDO_STORE_POLICY_WINDOW)

/* The state of what one thread stores for one rank. */
struct rondo_store_policy {
    uint32_t copies;                              /* in this period */
    uint32_t past;                                /* the chosen way: 1 past the caches */
    uint64_t began_ns, bytes;                     /* the window */
    uint64_t speeds[2][RONDO_STORE_POLICY_TRIES]; /* bytes a microsecond, through the caches and past them */
};

/* The median. */
static inline uint64_t rondo_store_policy_middle(const uint64_t speeds[RONDO_STORE_POLICY_TRIES])
{
    for (int i = 0; i < RONDO_STORE_POLICY_TRIES; i++) {
        int before = 0;
        for (int k = 0; k < RONDO_STORE_POLICY_TRIES; k++)
            before += speeds[k] < speeds[i] || (speeds[k] == speeds[i] && k < i);
        if (before == RONDO_STORE_POLICY_TRIES / 2)
            return speeds[i];
    }
    return 0;
}

/* The way of a window: through the caches (0) or past them (1), in the order 0110100110, which is part of no regular
 * pattern. */
static inline int rondo_store_policy_order(uint32_t window)
{
    return window > 0 && (0x196 >> (window - 1) & 1);
}
_Static_assert(RONDO_STORE_POLICY_TRIES == 5, "as many of each in rondo_store_policy_order");

/* Ends a window. */
static inline void rondo_store_policy_note(struct rondo_store_policy *store_policy, uint32_t window, uint64_t now)
{
    const uint64_t took = now > store_policy->began_ns ? now - store_policy->began_ns : 1;
    if (window > 0)
        store_policy->speeds[rondo_store_policy_order(window)][(window - 1) / 2] = 1000 * store_policy->bytes / took;
    if (window + 1 == RONDO_STORE_POLICY_WINDOWS)
        store_policy->past =
            100 * rondo_store_policy_middle(store_policy->speeds[1]) >
            (store_policy->past ? 100 : RONDO_STORE_POLICY_MARGIN) * rondo_store_policy_middle(store_policy->speeds[0]);
}

/* Whether the next copy, of so many bytes, goes past the caches. clock: nanoseconds; called at the ends of windows only. By
 * the one thread that stores for the rank. */
static inline int rondo_store_policy_is_past(struct rondo_store_policy *store_policy, size_t bytes, uint64_t (*clock)(void))
{
    if (bytes < RONDO_STORE_POLICY_BYTES)
        return 0;
    const uint32_t copy = store_policy->copies, window = copy / RONDO_STORE_POLICY_WINDOW;
    store_policy->copies = copy + 1 < RONDO_STORE_POLICY_PERIOD(store_policy->past) ? copy + 1 : 0;
    if (copy > RONDO_STORE_POLICY_TRIAL)
        return (int) store_policy->past;
    if (copy % RONDO_STORE_POLICY_WINDOW == 0) {
        const uint64_t now = clock();
        if (window > 0)
            rondo_store_policy_note(store_policy, window - 1, now);
        store_policy->began_ns = now;
        store_policy->bytes = 0;
    }
    store_policy->bytes += bytes;
    return window == RONDO_STORE_POLICY_WINDOWS ? (int) store_policy->past : rondo_store_policy_order(window);
}

#endif
