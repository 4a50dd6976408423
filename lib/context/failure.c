/* Failure of communicators: whatever made it, every operation on one ends with it, here and now. */
#include "lib/connection/endpoint_address.h"
#include "lib/connection/connect.h"
#include "lib/base/futex.h"
#include "lib/connection/lane.h"
#include "lib/connection/mailbox.h"
#include "lib/submission/poller.h"
#include "lib/submission/queue.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
{
    struct rondo_runtime *runtime = comm->runtime;
    pthread_mutex_lock(&runtime->lock);
    int first = comm->failed == RONDO_SUCCESS;
    if (first) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(comm->failure, sizeof(comm->failure), format, arguments);
        va_end(arguments);
        __atomic_store_n(&comm->failed, (uint32_t) code, __ATOMIC_RELEASE); /* after the text */
        /* Operations on the device end at their next visit; the daemon is run until they have. */
        for (struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL; lane = lane->next)
            rondo_lane_fail(lane, code);
    }
    pthread_mutex_unlock(&runtime->lock);
    if (!first)
        return;
    rondo_log(RONDO_LOG_INFO, runtime->rank, "communicator %llu: %s: %s", (unsigned long long) comm->id, rondo_strerror(code),
              comm->failure);
    rondo_queue_fail_waiting(comm);
    rondo_mailbox_wake(runtime);
    rondo_poller_wake(runtime);
}

static int has_member(const struct rondo_comm *comm, int rank)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->members[i] == rank)
            return 1;
    return 0;
}

/* Fails one communicator after the other that has not failed yet and that all of the ranks are in (no ranks: every one); one at
 * a time, because failing takes the runtime lock itself. */
static void fail_each(struct rondo_runtime *runtime, const int *ranks, int count, rondo_result_t code, const char *text)
{
    for (;;) {
        struct rondo_comm *comm;
        pthread_mutex_lock(&runtime->lock);
        for (comm = runtime->comms; comm != NULL; comm = comm->next) {
            int all = rondo_comm_failure(comm) == RONDO_SUCCESS;
            for (int i = 0; i < count && all; i++)
                all = has_member(comm, ranks[i]);
            if (all)
                break;
        }
        if (comm != NULL)
            comm->pins++;
        pthread_mutex_unlock(&runtime->lock);
        if (comm == NULL)
            return;
        rondo_comm_fail(comm, code, "%s", text);
        rondo_comm_unpin(comm);
    }
}

void rondo_peer_gone(struct rondo_runtime *runtime, int rank, const char *how)
{
    char text[256];
    __atomic_store_n(&runtime->gone[rank], (uint32_t) RONDO_ERR_PEER, __ATOMIC_RELEASE);
    rondo_connect_wake(runtime);
    rondo_endpoints_stir(runtime);
    snprintf(text, sizeof(text), "rank %d %s", rank, how);
    fail_each(runtime, &rank, 1, RONDO_ERR_PEER, text);
}

void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why)
{
    fail_each(runtime, NULL, 0, code, why);
    rondo_queue_abandon(runtime, code, why);
}

/* ---- a network that has lost a peer ---- */

struct link_loss {
    int64_t peer;
    char text[240];
};

void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why)
{
    struct link_loss loss = {.peer = peer};
    int both[2] = {runtime->rank, peer};
    snprintf(loss.text, sizeof(loss.text), "rank %d cannot be reached by rank %d over %s: %s", peer, runtime->rank, network,
             why);
    rondo_log(RONDO_LOG_INFO, runtime->rank, "%s", loss.text);
    if (__atomic_load_n(&runtime->gone[peer], __ATOMIC_ACQUIRE) == RONDO_SUCCESS)
        rondo_control_send(runtime->control, RONDO_CONTROL_ALL, RONDO_MESSAGE_LINK_LOST, &loss, sizeof(loss));
    fail_each(runtime, both, 2, RONDO_ERR_PEER, loss.text);
}

void rondo_link_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    struct link_loss loss;
    if (bytes != sizeof(loss))
        return;
    memcpy(&loss, data, sizeof(loss));
    loss.text[sizeof(loss.text) - 1] = '\0';
    if (loss.peer < 0 || loss.peer >= runtime->size)
        return;
    int both[2] = {source, (int) loss.peer};
    fail_each(runtime, both, 2, RONDO_ERR_PEER, loss.text);
}

struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id)
{
    pthread_mutex_lock(&runtime->lock);
    struct rondo_comm *comm = runtime->comms;
    while (comm != NULL && comm->id != id)
        comm = comm->next;
    if (comm != NULL)
        comm->pins++;
    pthread_mutex_unlock(&runtime->lock);
    return comm;
}

void rondo_comm_unpin(struct rondo_comm *comm)
{
    pthread_mutex_lock(&comm->runtime->lock);
    comm->pins--;
    pthread_mutex_unlock(&comm->runtime->lock);
}
