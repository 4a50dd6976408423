/* See lib/bootstrap/heartbeat.h. */
#include "lib/bootstrap/heartbeat.h"

#include "lib/bootstrap/address.h"
#include "lib/base/thread.h"
#include "lib/base/environment.h"

#include <string.h>

#define BEAT_MS 1000 /* between two signs, and between two looks */

rondo_result_t rondo_heartbeat_seconds(int *seconds)
{
    int64_t value;
    rondo_result_t result = rondo_environment_integer("RONDO_HEARTBEAT", &value);
    if (result == RONDO_SUCCESS)
        *seconds = (int) value;
    return result;
}

void rondo_heartbeat_begin(struct rondo_heartbeat *heartbeat, int fd, int seconds)
{
    struct rondo_address other;
    memset(&other, 0, sizeof(other));
    other.bytes = sizeof(other.storage);
    *heartbeat = (struct rondo_heartbeat){.next = INT64_MAX};
    if (getpeername(fd, (struct sockaddr *) &other.storage, &other.bytes) != 0 ||
        (other.storage.ss_family != AF_INET && other.storage.ss_family != AF_INET6) || rondo_address_is_loopback(&other))
        return;
    if (seconds == 0)
        return;
    heartbeat->most = seconds;
    heartbeat->next = rondo_clock_ms() + BEAT_MS;
}

void rondo_heartbeat_heard(struct rondo_heartbeat *heartbeat)
{
    heartbeat->silent = 0;
}

enum rondo_heartbeat_due rondo_heartbeat_look(struct rondo_heartbeat *heartbeat, int64_t now)
{
    if (now < heartbeat->next)
        return RONDO_HEARTBEAT_NOTHING;
    heartbeat->next = now + BEAT_MS;
    return heartbeat->silent++ >= heartbeat->most ? RONDO_HEARTBEAT_DEAD : RONDO_HEARTBEAT_SEND;
}
