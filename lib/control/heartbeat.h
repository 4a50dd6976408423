/*
 * Signs of life on a control connection whose other end may vanish, or freeze, without a word: each end sends two a second,
 * and gives the other up after so many seconds without any: RONDO_HEARTBEAT between hosts, RONDO_FREEZE within one. Within a
 * host the kernel tells of a process's end, but not that it is stopped; a process that a debugger has stopped is not given up.
 *
 * Time is counted by looking, at most half a second a look, so that a host that was itself frozen does not count the time it
 * missed against the other end. A heartbeat belongs to one thread.
 */
#ifndef RONDO_LIB_CONTROL_HEARTBEAT_H
#define RONDO_LIB_CONTROL_HEARTBEAT_H

#include "rondo.h"

#include <stdint.h>

#define RONDO_HEARTBEATS_A_SECOND 2

struct rondo_heartbeat {
    int64_t next;     /* when to look, by rondo_clock_ms; INT64_MAX: never */
    int silent, most; /* looks without a sign, and how many are too many */
    int process;      /* the other end's, on this host; 0: not known */
};

/* Seconds of silence after which the other end counts as dead. 0: never. */
struct rondo_heartbeat_limits {
    int between_hosts, within_host;
};

enum rondo_heartbeat_due { RONDO_HEARTBEAT_NOTHING, RONDO_HEARTBEAT_SEND, RONDO_HEARTBEAT_DEAD };

/* Stores RONDO_HEARTBEAT and RONDO_FREEZE. RONDO_ERR_ARGUMENT. Reads the environment, so it is called at init alone. */
rondo_result_t rondo_heartbeat_read_limits(struct rondo_heartbeat_limits *limits);
/* Starts to count on the connection fd; does not if the limit for where that leads is 0. A connection by an address that other
 * hosts reach, too, has the limit between hosts where there is none within one. */
void rondo_heartbeat_begin(struct rondo_heartbeat *heartbeat, int fd, const struct rondo_heartbeat_limits *limits);
/* Something was received. */
void rondo_heartbeat_heard(struct rondo_heartbeat *heartbeat);
/* Says what is due at `now` (rondo_clock_ms): nothing, to send a sign, or to give the other end up. Call it after reading what
 * has arrived. */
enum rondo_heartbeat_due rondo_heartbeat_look(struct rondo_heartbeat *heartbeat, int64_t now);

#endif
