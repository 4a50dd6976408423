/* See lib/control/heartbeat.h. */
#include "lib/control/heartbeat.h"

#include "lib/bootstrap/address.h"
#include "lib/base/thread.h"
#include "lib/base/environment.h"
#include "lib/base/file.h"

#include <stdio.h>
#include <string.h>

#define BEAT_MS (1000 / RONDO_HEARTBEATS_A_SECOND) /* between two signs, and between two looks */

rondo_result_t rondo_heartbeat_read_limits(struct rondo_heartbeat_limits *limits)
{
    int64_t between = 0, within = 0;
    rondo_result_t result = rondo_environment_integer("RONDO_HEARTBEAT", &between);
    if (result == RONDO_SUCCESS)
        result = rondo_environment_integer("RONDO_FREEZE", &within);
    limits->between_hosts = (int) between;
    limits->within_host = (int) within;
    return result;
}

void rondo_heartbeat_begin(struct rondo_heartbeat *heartbeat, int fd, const struct rondo_heartbeat_limits *limits)
{
    struct rondo_address other, own;
    memset(&other, 0, sizeof(other));
    memset(&own, 0, sizeof(own));
    other.bytes = sizeof(other.storage);
    own.bytes = sizeof(own.storage);
    *heartbeat = (struct rondo_heartbeat){.next = INT64_MAX};
    if (getpeername(fd, (struct sockaddr *) &other.storage, &other.bytes) != 0 ||
        getsockname(fd, (struct sockaddr *) &own.storage, &own.bytes) != 0)
        return;
    const int is_internet = other.storage.ss_family == AF_INET || other.storage.ss_family == AF_INET6;
    const int is_local = !is_internet || rondo_address_is_loopback(&other);
    if (is_local || rondo_address_is_same_host(&other, &own))
        heartbeat->most = limits->within_host;
    if (heartbeat->most == 0 && !is_local)
        heartbeat->most = limits->between_hosts;
    if (heartbeat->most == 0)
        return;
    heartbeat->most *= RONDO_HEARTBEATS_A_SECOND;
    heartbeat->process = is_internet ? 0 : rondo_address_process(fd);
    heartbeat->next = rondo_clock_ms() + BEAT_MS;
}

void rondo_heartbeat_heard(struct rondo_heartbeat *heartbeat)
{
    heartbeat->silent = 0;
}

/* Whether the process has been stopped by one that traces it, such as a debugger (proc(5): state t). */
static int is_traced(int process)
{
    char path[32], text[128];
    if (process == 0)
        return 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", process);
    const ssize_t bytes = rondo_file_read(path, text, sizeof(text) - 1);
    text[bytes > 0 ? bytes : 0] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name may have any character */
    return name_end != NULL && strncmp(name_end, ") t", 3) == 0;
}

enum rondo_heartbeat_due rondo_heartbeat_look(struct rondo_heartbeat *heartbeat, int64_t now)
{
    if (now < heartbeat->next)
        return RONDO_HEARTBEAT_NOTHING;
    heartbeat->next = now + BEAT_MS;
    if (heartbeat->silent >= heartbeat->most && is_traced(heartbeat->process))
        heartbeat->silent = 0;
    return heartbeat->silent++ >= heartbeat->most ? RONDO_HEARTBEAT_DEAD : RONDO_HEARTBEAT_SEND;
}
