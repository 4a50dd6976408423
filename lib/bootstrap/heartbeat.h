/*
 * Signs of life on a control connection between hosts, where the other end may vanish, or be frozen, without a word: each end
 * sends one a second, and gives the other up after so many seconds without any. Ends on one host need none: the kernel tells.
 *
 * Seconds are counted by looking, at most one a look: a host that was itself frozen blames nobody for the time it missed.
 */
#ifndef RONDO_LIB_BOOTSTRAP_HEARTBEAT_H
#define RONDO_LIB_BOOTSTRAP_HEARTBEAT_H

#include <stdint.h>

struct rondo_heartbeat {
    int64_t next;     /* when to look, by rondo_clock_ms; INT64_MAX: never */
    int silent, most; /* seconds without a sign, and how many are too many */
};

enum rondo_heartbeat_due { RONDO_HEARTBEAT_NOTHING, RONDO_HEARTBEAT_SEND, RONDO_HEARTBEAT_DEAD };

/* fd: of the connection. Beats only if that leads to another host, and RONDO_HEARTBEAT is not 0. */
void rondo_heartbeat_begin(struct rondo_heartbeat *heartbeat, int fd);
/* Something has come. */
void rondo_heartbeat_heard(struct rondo_heartbeat *heartbeat);
/* After reading what there is. */
enum rondo_heartbeat_due rondo_heartbeat_look(struct rondo_heartbeat *heartbeat, int64_t now);

#endif
