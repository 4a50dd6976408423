/* Failure of communicators: whatever made it, every operation on one ends with it, here and now. */
#include "connect.h"
#include "futex.h"
#include "lane.h"
#include "mailbox.h"
#include "poller.h"
#include "queue.h"

#include <stdarg.h>
#include <stdio.h>

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
        for (struct rondo_host_lane *lane = comm->lanes; lane != NULL; lane = lane->next)
            rondo_lane_fail(lane, code);
    }
    pthread_mutex_unlock(&runtime->lock);
    if (!first)
        return;
    rondo_log(RONDO_LOG_INFO, runtime->rank, "communicator %llu: %s: %s", (unsigned long long) comm->id, rondo_strerror(code),
              comm->failure);
    rondo_queue_fail_waiting(comm);
    rondo_mailbox_stir(runtime);
    rondo_poller_wake(runtime);
}

static int has_member(const struct rondo_comm *comm, int rank)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->members[i] == rank)
            return 1;
    return 0;
}

/* Fails one communicator after the other that has not failed yet, and which the rank (-1: any) is in; one at a time, because
 * failing takes the runtime lock itself. */
static void fail_each(struct rondo_runtime *runtime, int rank, rondo_result_t code, const char *text)
{
    for (;;) {
        struct rondo_comm *comm;
        pthread_mutex_lock(&runtime->lock);
        for (comm = runtime->comms; comm != NULL; comm = comm->next)
            if (rondo_comm_failure(comm) == RONDO_SUCCESS && (rank < 0 || has_member(comm, rank)))
                break;
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
    __atomic_store_n(&runtime->gone[rank], (uint32_t) RONDO_ERR_PEER, __ATOMIC_RELEASE);
    rondo_connect_stir(runtime);
    char text[160];
    snprintf(text, sizeof(text), "rank %d %s", rank, how);
    fail_each(runtime, rank, RONDO_ERR_PEER, text);
}

void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why)
{
    fail_each(runtime, -1, code, why);
    rondo_queue_abandon(runtime, code, why);
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
