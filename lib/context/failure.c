/* Failure of communicators (lib/context/failure.h). Relies on the control plane to tell other ranks of a lost link. */
#include "lib/context/failure.h"

#include "lib/base/error.h"
#include "lib/context/runtime.h"

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
        __atomic_store_n(&comm->failed, (uint32_t) code, __ATOMIC_RELEASE); /* release: the text comes first */
        for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
            if ((*listener)->failing != NULL)
                (*listener)->failing(comm, code);
    }
    pthread_mutex_unlock(&runtime->lock);
    if (!first)
        return;
    rondo_log(RONDO_LOG_INFO, runtime->rank, "communicator %llu: %s: %s", (unsigned long long) comm->id, rondo_strerror(code),
              comm->failure);
    for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
        if ((*listener)->failed != NULL)
            (*listener)->failed(comm);
}

static int has_member(const struct rondo_comm *comm, int rank)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->members[i] == rank)
            return 1;
    return 0;
}

/* The list is searched anew for each communicator, because rondo_comm_fail takes the runtime lock itself. */
void rondo_comms_fail(struct rondo_runtime *runtime, const int *ranks, int count, rondo_result_t code, const char *text)
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
    for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
        if ((*listener)->peer_gone != NULL)
            (*listener)->peer_gone(runtime);
    snprintf(text, sizeof(text), "rank %d %s", rank, how);
    rondo_comms_fail(runtime, &rank, 1, RONDO_ERR_PEER, text);
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
    rondo_comms_fail(runtime, both, 2, RONDO_ERR_PEER, loss.text);
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
    rondo_comms_fail(runtime, both, 2, RONDO_ERR_PEER, loss.text);
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
