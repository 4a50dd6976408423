/*
 * Signs of life on a control connection between hosts, where the other end may vanish, or freeze, without a word: each end
 * sends one a second, and gives the other up after RONDO_HEARTBEAT seconds without any. Connections within a host need none:
 * the kernel tells.
 *
 * Seconds are counted by looking, at most one a look, so that a host that was itself frozen does not count the time it missed
 * against the other end. A heartbeat belongs to one thread.
 */
#ifndef RONDO_LIB_BOOTSTRAP_HEARTBEAT_H
#define RONDO_LIB_BOOTSTRAP_HEARTBEAT_H

#include "rondo.h"

#include <stdint.h>

struct rondo_heartbeat {
    int64_t next;     /* when to look, by rondo_clock_ms; INT64_MAX: never */
    int silent, most; /* seconds without a sign, and how many are too many */
};

enum rondo_heartbeat_due { RONDO_HEARTBEAT_NOTHING, RONDO_HEARTBEAT_SEND, RONDO_HEARTBEAT_DEAD };

/* Stores RONDO_HEARTBEAT. RONDO_ERR_ARGUMENT. Reads the environment, so it is called at init alone. */
rondo_result_t rondo_heartbeat_seconds(int *seconds);
/* Starts to count on the connection fd; does not if that stays on this host or seconds, of silence until the other end counts
 * as dead, are 0. */
void rondo_heartbeat_begin(struct rondo_heartbeat *heartbeat, int fd, int seconds);
/* Something was received. */
void rondo_heartbeat_heard(struct rondo_heartbeat *heartbeat);
/* Says what is due at `now` (rondo_clock_ms): nothing, to send a sign, or to give the other end up. Call it after reading what
 * has arrived. */
enum rondo_heartbeat_due rondo_heartbeat_look(struct rondo_heartbeat *heartbeat, int64_t now);

#endif
