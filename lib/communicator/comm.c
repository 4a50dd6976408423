/* Communicators and the public functions on them (lib/communicator/comm.h). Relies on runtime->peers, which all ranks know
 * since init, so that the properties of a communicator are the same on all its members. */
#include "lib/communicator/comm.h"
#include "lib/communicator/agreement.h"
#include "lib/communicator/graph.h"

#include "lib/connection/lane.h"
#include "lib/context/handles.h"
#include "lib/connection/exchange.h"
#include "lib/connection/mailbox.h"
#include "device/abi/platform.h"
#include "lib/select/registered_programs.h"
#include "lib/select/residuals.h"
#include "lib/submission/progress.h"
#include "lib/submission/queue.h"
#include "lib/connection/window.h"
#include "lib/submission/request.h"
#include "lib/select/select.h"
#include "lib/submission/stream.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"
#include "lib/connection/copy_engine.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILED_STREAMS_NS 1000000000u /* how long rondo_comm_free waits for kernels of a failed communicator */

/* Whether ranks of one host never use a network: in the transport list, which all ranks share, there is no network, or shm
 * comes before the first one. shm joins any two ranks of one host, whatever their devices. */
static int stays_off_network(const struct rondo_runtime *runtime)
{
    for (int i = 0; i < runtime->transport.transport_count; i++) {
        if (runtime->transport.transports[i] == &rondo_transport_shm)
            return 1;
        if (runtime->transport.transports[i]->network != NULL)
            return 0;
    }
    return 1;
}

/* Whether p2p is the first of the transport list. */
static int prefers_p2p(const struct rondo_runtime *runtime)
{
    return runtime->transport.transport_count > 0 &&
           strcmp(runtime->transport.transports[0]->name, "p2p") == 0; /* not in builds without CUDA */
}

/* comm->group of a communicator with that topology. */
static int group_of(const struct rondo_topology *topology, int size)
{
    if (topology->nodes < 2 || topology->locals == 0)
        return 0;
    for (int i = 0; i < size; i++)
        if (topology->ranks[i] != i)
            return 0;
    return topology->locals;
}

/* comm->linked: GPUs of one host, of which every two are joined by NVLink. */
static int all_linked(const struct rondo_comm *comm)
{
    const struct rondo_runtime *runtime = comm->runtime;
    int linked = comm->gpus_only && comm->same_host && prefers_p2p(runtime);
    for (int i = 0; linked && i < comm->size; i++)
        for (int k = 0; k < comm->size; k++)
            linked &=
                i == k || rondo_gpu_is_linked(&runtime->peers[comm->members[i]].gpu, &runtime->peers[comm->members[k]].gpu);
    return linked;
}

/* comm->shares_context, and comm->takes_turns: with MPS, too, which this does not see. */
static void find_shared_gpus(struct rondo_comm *comm)
{
    const struct rondo_peer *peers = comm->runtime->peers;
    comm->shares_context = comm->takes_turns = 0;
    for (int i = 0; comm->gpus_only && i < comm->size && !(comm->shares_context && comm->takes_turns); i++)
        for (int k = 0; k < i; k++) {
            const struct rondo_peer *one = &peers[comm->members[i]], *other = &peers[comm->members[k]];
            const int same_process = memcmp(one->process, other->process, sizeof(one->process)) == 0;
            if (rondo_gpu_is_same(&one->gpu, &other->gpu))
                *(same_process ? &comm->shares_context : &comm->takes_turns) = 1;
        }
}

/* comm->tma: linked GPUs that all have bulk copies. */
static int all_tma(const struct rondo_comm *comm)
{
    int tma = comm->linked;
    for (int i = 0; i < comm->size; i++)
        tma &= comm->runtime->peers[comm->members[i]].gpu.capability >= RONDO_GPU_TMA;
    return tma;
}

/* Sets the fields of the communicator that say where its members are. */
static void find_locality(struct rondo_comm *comm)
{
    const struct rondo_runtime *runtime = comm->runtime;
    const struct rondo_peer *self = &runtime->peers[runtime->rank];
    int one_process = 1;
    comm->same_process = comm->same_host = comm->gpus_only = comm->hosts_only = 1;
    comm->single_copy = RONDO_PEER_SINGLE_COPY_ALWAYS;
    for (int i = 0; i < comm->size; i++) {
        const struct rondo_peer *peer = &runtime->peers[comm->members[i]];
        int same_host = strcmp(peer->host_id, self->host_id) == 0;
        comm->same_host &= same_host;
        comm->gpus_only &= peer->device == RONDO_DEVICE_CUDA;
        comm->hosts_only &= peer->device == RONDO_DEVICE_HOST;
        if (peer->carriers != 0 && (comm->carriers == 0 || peer->carriers < comm->carriers))
            comm->carriers = peer->carriers;
        if (peer->single_copy < comm->single_copy)
            comm->single_copy = peer->single_copy;
        one_process &= same_host && memcmp(peer->process, self->process, sizeof(self->process)) == 0;
        /* Not even ranks of one process can use any address of each other's GPU memory: it must be opened
         * (lib/connection/window.c). */
        comm->same_process &= one_process && !peer->gpu.present && !self->gpu.present;
    }
    comm->networked = !comm->same_host || !stays_off_network(runtime);
    comm->multicast = runtime->settings.multicast && comm->hosts_only && !comm->networked && comm->size > 1 &&
                      comm->size - 1 <= RONDO_PROGRAM_ENDS_MAX;
    for (int i = 0; i < comm->size && comm->multicast; i++)
        comm->multicast = rondo_transport_multicasts(&runtime->transport, comm->members[i]);
    comm->linked = all_linked(comm);
    comm->tma = all_tma(comm);
    find_shared_gpus(comm);
    comm->direct_writes = one_process && !comm->networked && (comm->same_process || comm->linked) &&
                          runtime->settings.direct_write != RONDO_DIRECT_WRITE_OFF;
    if (one_process || !comm->same_host || !comm->hosts_only)
        comm->single_copy = RONDO_PEER_SLOTS_ONLY;
    comm->by_host = comm->gpus_only && comm->same_host && !prefers_p2p(runtime);
}

rondo_result_t rondo_comm_find_topology(const struct rondo_runtime *runtime, const int *members, int size,
                                        struct rondo_topology *topology)
{
    const char **hosts = calloc((size_t) size, sizeof(*hosts));
    if (hosts == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the topology of %d ranks", size);
    for (int i = 0; i < size; i++)
        hosts[i] = runtime->peers[members != NULL ? members[i] : i].host_id;
    rondo_result_t status = rondo_topology_find(hosts, size, topology);
    free(hosts);
    return status;
}

void rondo_comm_list(struct rondo_comm *comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    pthread_mutex_lock(&runtime->lock);
    comm->next = runtime->comms;
    runtime->comms = comm;
    pthread_mutex_unlock(&runtime->lock);
    rondo_comm_fail_early(comm);
}

void rondo_comm_unlist(struct rondo_comm *comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    pthread_mutex_lock(&runtime->lock);
    for (struct rondo_comm **link = &runtime->comms; *link != NULL; link = &(*link)->next)
        if (*link == comm) {
            *link = comm->next;
            break;
        }
    while (comm->pins > 0) { /* a control thread is failing the communicator */
        pthread_mutex_unlock(&runtime->lock);
        sched_yield();
        pthread_mutex_lock(&runtime->lock);
    }
    pthread_mutex_unlock(&runtime->lock);
}

/* The communicator has empty parts, so that failing it finds no lanes and no requests. */
struct rondo_comm_rendezvous {
    struct rondo_comm comm;
    struct rondo_comm_connections connections;
    struct rondo_comm_requests requests;
};

rondo_result_t rondo_comm_rendezvous_open(struct rondo_runtime *runtime, uint64_t id, int *members, int rank, int size,
                                          struct rondo_comm_rendezvous **result)
{
    struct rondo_comm_rendezvous *rendezvous = *result = calloc(1, sizeof(*rendezvous));
    if (rendezvous == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for an exchange among %d ranks", size);
    struct rondo_comm *comm = &rendezvous->comm;
    comm->runtime = runtime;
    comm->id = id;
    comm->rank = rank;
    comm->size = size;
    comm->members = members;
    comm->connections = &rendezvous->connections;
    comm->requests = &rendezvous->requests;
    rondo_comm_list(comm);
    return RONDO_SUCCESS;
}

struct rondo_comm *rondo_comm_rendezvous_comm(struct rondo_comm_rendezvous *rendezvous)
{
    return &rendezvous->comm;
}

void rondo_comm_rendezvous_close(struct rondo_comm_rendezvous *rendezvous)
{
    if (rendezvous != NULL)
        rondo_comm_unlist(&rendezvous->comm);
    free(rendezvous);
}

static void free_parts(struct rondo_comm *comm)
{
    free(comm->connections);
    free(comm->programs);
    free(comm->residuals);
    free(comm->requests);
    free(comm);
}

rondo_result_t rondo_comm_create(struct rondo_runtime *runtime, uint64_t id, const int *members, int size,
                                 struct rondo_comm **result)
{
    struct rondo_comm *comm = calloc(1, sizeof(*comm));
    rondo_result_t status = RONDO_SUCCESS;
    if (comm == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a communicator");
    comm->runtime = runtime;
    comm->compression = runtime->settings.compression;
    comm->id = id;
    comm->size = size;
    comm->rank = -1;
    comm->connections = calloc(1, sizeof(*comm->connections));
    comm->programs = calloc(1, sizeof(*comm->programs));
    comm->residuals = calloc(1, sizeof(*comm->residuals));
    comm->requests = calloc(1, sizeof(*comm->requests));
    if (comm->connections == NULL || comm->programs == NULL || comm->residuals == NULL || comm->requests == NULL) {
        free_parts(comm);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a communicator");
    }
    pthread_mutex_init(&comm->requests->lane_lock, NULL);
    pthread_mutex_init(&comm->requests->stream_lock, NULL);
    pthread_mutex_init(&comm->programs->plan_lock, NULL);
    pthread_mutex_init(&comm->residuals->lock, NULL);
    comm->members = calloc((size_t) size, sizeof(*comm->members));
    comm->acknowledged = calloc((size_t) size, 1);
    comm->requests->persistent_p2p = calloc(2 * (size_t) size, sizeof(*comm->requests->persistent_p2p));
    comm->requests->messages = calloc(2 * (size_t) size, sizeof(*comm->requests->messages));
    comm->connections->windows = runtime->device->kind->allocate(runtime->device, (size_t) size * RONDO_WINDOWS_MAX *
                                                                                      sizeof(*comm->connections->windows));
    if (comm->members == NULL || comm->acknowledged == NULL || comm->requests->persistent_p2p == NULL ||
        comm->requests->messages == NULL || comm->connections->windows == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for a communicator of %d ranks", size);
    for (int i = 0; i < size && status == RONDO_SUCCESS; i++) {
        comm->members[i] = members[i];
        if (members[i] == runtime->rank)
            comm->rank = i;
    }
    if (status == RONDO_SUCCESS) {
        find_locality(comm);
        status = rondo_comm_find_topology(comm->runtime, comm->members, comm->size, &comm->topology);
    }
    if (status == RONDO_SUCCESS) {
        comm->group = group_of(&comm->topology, size);
        struct rondo_lane_options options = {.id = RONDO_LANE_COLLECTIVE, .peer = -1};
        rondo_lane_slots(comm, options.slot_bytes);
        status = rondo_queue_lane(comm, &options, &comm->requests->collective);
    }
    if (status == RONDO_SUCCESS && (comm->handle = rondo_handle_open(RONDO_HANDLE_COMM, comm)) == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for a communicator's handle");
    if (status != RONDO_SUCCESS) {
        rondo_comm_destroy(comm);
        return status;
    }
    rondo_comm_list(comm);
    *result = comm;
    return RONDO_SUCCESS;
}

void rondo_comm_destroy(struct rondo_comm *comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    rondo_handle_close(comm->handle);
    rondo_comm_unlist(comm);
    if (runtime->mailbox != NULL)
        rondo_mailbox_forget(runtime, comm->id);
    if (runtime->agreements != NULL)
        rondo_agreements_forget(runtime, comm->id);
    rondo_stream_forget(comm);
    while (comm->connections->lanes != NULL)
        rondo_lane_free(comm->connections->lanes);
    rondo_programs_forget(comm);
    rondo_plan_cache_clear(comm);
    rondo_copy_engine_close(comm);
    while (comm->connections->registrations != NULL)
        rondo_window_close(comm, comm->connections->registrations);
    if (comm->connections->windows != NULL)
        runtime->device->kind->release(runtime->device, comm->connections->windows,
                                       (size_t) comm->size * RONDO_WINDOWS_MAX * sizeof(*comm->connections->windows));
    pthread_mutex_destroy(&comm->requests->lane_lock);
    pthread_mutex_destroy(&comm->requests->stream_lock);
    pthread_mutex_destroy(&comm->programs->plan_lock);
    rondo_residuals_free(comm);
    pthread_mutex_destroy(&comm->residuals->lock);
    rondo_topology_free(&comm->topology);
    free(comm->requests->persistent_p2p);
    free(comm->requests->messages);
    free(comm->alone);
    free(comm->acknowledged);
    rondo_graph_free(comm->graph);
    free(comm->members);
    free_parts(comm);
}

/* ---- the public calls ---- */

static rondo_result_t refuse_result(const char *function)
{
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s: the result pointer is NULL", function);
}

rondo_result_t rondo_comm_world(rondo_t handle, rondo_comm_t *comm)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_comm_world", &runtime);
    if (result == RONDO_SUCCESS && comm == NULL)
        result = refuse_result("rondo_comm_world");
    if (result == RONDO_SUCCESS)
        *comm = runtime->world->handle;
    return result;
}

/* Finds the communicator of a function with a result. */
static rondo_result_t check(rondo_comm_t handle, const void *out, const char *function, struct rondo_comm **comm)
{
    rondo_result_t result = rondo_comm_of(handle, function, comm);
    return result == RONDO_SUCCESS && out == NULL ? refuse_result(function) : result;
}

void rondo_comm_inherit(struct rondo_comm *comm, const struct rondo_comm *parent)
{
    comm->compression = parent->compression;
    comm->priority = __atomic_load_n(&parent->priority, __ATOMIC_RELAXED);
}

rondo_result_t rondo_comm_set_priority(rondo_comm_t handle, int priority)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_set_priority", &comm);
    if (result == RONDO_SUCCESS) /* relaxed: a hint for the next submissions, by whatever thread */
        __atomic_store_n(&comm->priority, priority, __ATOMIC_RELAXED);
    return result;
}

rondo_result_t rondo_comm_get_priority(rondo_comm_t handle, int *priority)
{
    struct rondo_comm *comm;
    rondo_result_t result = check(handle, priority, "rondo_comm_get_priority", &comm);
    if (result == RONDO_SUCCESS)
        *priority = __atomic_load_n(&comm->priority, __ATOMIC_RELAXED);
    return result;
}

rondo_result_t rondo_comm_rank(rondo_comm_t handle, int *rank)
{
    struct rondo_comm *comm;
    rondo_result_t result = check(handle, rank, "rondo_comm_rank", &comm);
    if (result == RONDO_SUCCESS)
        *rank = comm->rank;
    return result;
}

rondo_result_t rondo_comm_size(rondo_comm_t handle, int *size)
{
    struct rondo_comm *comm;
    rondo_result_t result = check(handle, size, "rondo_comm_size", &comm);
    if (result == RONDO_SUCCESS)
        *size = comm->size;
    return result;
}

rondo_result_t rondo_comm_id(rondo_comm_t handle, uint64_t *id)
{
    struct rondo_comm *comm;
    rondo_result_t result = check(handle, id, "rondo_comm_id", &comm);
    if (result == RONDO_SUCCESS)
        *id = comm->id;
    return result;
}

/* What a rank says at a split. */
struct split {
    int32_t color, key;
    int32_t world, old_rank;
    uint64_t id; /* proposed; the new communicator has its first member's */
};

static int by_key(const void *a, const void *b)
{
    const struct split *first = a, *second = b;
    if (first->key != second->key)
        return first->key < second->key ? -1 : 1;
    return first->old_rank < second->old_rank ? -1 : 1;
}

/* Makes this rank's part of the communicator of its color. all: what the ranks say. Sets *id as soon as it is known. */
static rondo_result_t divide(struct rondo_comm *comm, struct split *all, int color, uint64_t *id, struct rondo_comm **made)
{
    int size = 0, *members = calloc((size_t) comm->size, sizeof(*members));
    for (int rank = 0; rank < comm->size; rank++)
        if (all[rank].color == color)
            all[size++] = all[rank];
    qsort(all, (size_t) size, sizeof(*all), by_key);
    *id = all[0].id;
    if (members == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", comm->size);
    for (int rank = 0; rank < size; rank++)
        members[rank] = all[rank].world;
    rondo_result_t result = rondo_comm_create(comm->runtime, *id, members, size, made);
    if (result == RONDO_SUCCESS)
        rondo_comm_inherit(*made, comm);
    free(members);
    return result;
}

/* A rank that fails takes its communicator with it, and the new one, which others may have made already: no rank is left with a
 * communicator that another of its members lacks. */
static rondo_result_t split(struct rondo_comm *comm, const char *function, int color, int key, rondo_comm_t *result_comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_comm *made = NULL;
    uint64_t id = 0;
    struct split *all = calloc((size_t) comm->size, sizeof(*all));
    if (all == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for %d ranks", function, comm->size);
    struct split mine = {color < 0 ? -1 : color, key, runtime->rank, comm->rank, 0};
    /* The id has the proposer's world rank and its count of proposals, so no two ids of the job are equal. */
    mine.id = (uint64_t) (runtime->rank + 1) << 32 | __atomic_add_fetch(&runtime->comm_ids, 1, __ATOMIC_RELAXED);
    rondo_result_t result = rondo_exchange(comm, function, &mine, sizeof(mine), all);
    if (result == RONDO_SUCCESS && color >= 0)
        result = rondo_comm_conclude(comm, function, divide(comm, all, color, &id, &made));
    free(all);
    if (result == RONDO_SUCCESS)
        result = rondo_meet(comm, function, NULL);
    if (result == RONDO_SUCCESS) {
        *result_comm = made != NULL ? made->handle : NULL;
        return RONDO_SUCCESS;
    }
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    if (id != 0)
        rondo_comm_fail_by_id(runtime, id, result, function);
    if (made != NULL)
        rondo_comm_destroy(made);
    return rondo_fail(result, "%s", message);
}

rondo_result_t rondo_comm_divide(rondo_comm_t handle, const char *function, int color, int key, rondo_comm_t *result_comm)
{
    struct rondo_comm *comm;
    rondo_result_t result = check(handle, result_comm, function, &comm);
    if (result != RONDO_SUCCESS)
        return result;
    *result_comm = NULL;
    if (rondo_comm_failure(comm) != RONDO_SUCCESS)
        return rondo_fail(rondo_comm_failure(comm), "%s: %s", function, comm->failure);
    return rondo_comm_conclude(comm, function, split(comm, function, color, key, result_comm));
}

rondo_result_t rondo_comm_split(rondo_comm_t comm, int color, int key, rondo_comm_t *result)
{
    return rondo_comm_divide(comm, "rondo_comm_split", color, key, result);
}

rondo_result_t rondo_comm_dup(rondo_comm_t comm, rondo_comm_t *result)
{
    struct rondo_comm *old, *made;
    rondo_result_t status = rondo_comm_divide(comm, "rondo_comm_dup", 0, 0, result);
    if (status == RONDO_SUCCESS && rondo_comm_of(comm, "rondo_comm_dup", &old) == RONDO_SUCCESS &&
        rondo_comm_of(*result, "rondo_comm_dup", &made) == RONDO_SUCCESS)
        made->graph = rondo_graph_share(old->graph);
    return status;
}

/* Returns RONDO_ERR_STATE while operations on streams have not been executed, because waiting for them is the user's task. The
 * kernels of a failed communicator end by themselves, so for those it waits. */
static rondo_result_t check_streams(const struct rondo_comm *comm)
{
    uint64_t until = rondo_clock_ns() + FAILED_STREAMS_NS;
    for (const struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL; lane = lane->next) {
        rondo_result_t result;
        for (int idle; (result = rondo_stream_idle(lane, &idle)) != RONDO_SUCCESS || !idle; sched_yield()) {
            if (rondo_comm_failure(comm) == RONDO_SUCCESS)
                return result != RONDO_SUCCESS
                           ? result
                           : rondo_fail(RONDO_ERR_STATE, "rondo_comm_free: operations of the communicator have not been "
                                                         "executed on their streams yet");
            if (rondo_clock_ns() > until)
                return RONDO_SUCCESS;
        }
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_free(rondo_comm_t *handle)
{
    struct rondo_comm *comm;
    if (handle == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_comm_free: the pointer is NULL");
    rondo_result_t result = rondo_comm_of(*handle, "rondo_comm_free", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_runtime *runtime = comm->runtime;
    if (comm == runtime->world)
        return rondo_fail(RONDO_ERR_STATE, "rondo_comm_free: the world communicator belongs to the runtime");
    int active = rondo_progress_settle(runtime, comm);
    if (active > 0)
        return rondo_fail(RONDO_ERR_STATE, "rondo_comm_free: %d requests are active on the communicator", active);
    result = check_streams(comm);
    if (result != RONDO_SUCCESS)
        return result;
    rondo_request_destroy_all(comm);
    rondo_comm_destroy(comm);
    *handle = NULL;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_status(rondo_comm_t handle, rondo_result_t *failure, int *idle)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_status", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    rondo_result_t failed = rondo_comm_failure(comm);
    if (failure != NULL)
        *failure = failed != RONDO_SUCCESS ? rondo_fail(failed, "%s", comm->failure) : RONDO_SUCCESS;
    if (idle == NULL)
        return RONDO_SUCCESS;
    rondo_lock_take(&comm->runtime->queue->lock);
    *idle = comm->requests->active == 0;
    rondo_lock_drop(&comm->runtime->queue->lock);
    pthread_mutex_lock(&comm->runtime->lock);
    for (const struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL && *idle; lane = lane->next)
        result = rondo_stream_idle(lane, idle);
    pthread_mutex_unlock(&comm->runtime->lock);
    return result;
}

rondo_result_t rondo_comm_abort(rondo_comm_t handle, int code)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_abort", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    rondo_comm_fail_everywhere(comm, RONDO_ERR_ABORTED, "aborted with code %d by rank %d", code, comm->runtime->rank);
    return RONDO_SUCCESS;
}
