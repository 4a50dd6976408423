/*
 * NCCL as a peer of `rondo bench`: the same collective on the same buffers, enqueued on the rank's stream. Collectives that
 * NCCL does not have are what a program would make of them: groups of sends and receives.
 */
#include "tools/peer/nccl.h"
#include "tools/peer/peer.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENLISTED_MAX = 8 };

static const struct nccl *nccl;

struct peer_state {
    struct peer_place place;
    nccl_comm_t comm;
    void *word; /* device memory, for the barrier */
    const struct call *call;
    int type, op;
    void *enlisted[ENLISTED_MAX];
    int enlisted_count;
};

static int failed(const struct peer_state *s, int code, char *message, size_t bytes)
{
    if (code == NCCL_SUCCESS)
        return 0;
    snprintf(message, bytes, "%s: %s", nccl->error(code), nccl->last_error(s != NULL ? s->comm : NULL));
    return 1;
}

static int cuda_failed(cudaError_t error, const char *what, char *message, size_t bytes)
{
    if (error == cudaSuccess)
        return 0;
    snprintf(message, bytes, "%s: %s", what, cudaGetErrorString(error));
    return 1;
}

/* Rank 0 makes the id of the job; each gather is an exchange among all. */
static int join(struct peer_state *s, char *message, size_t bytes)
{
    const struct peer_place *place = &s->place;
    struct nccl_id mine = {{0}}, *all = calloc((size_t) place->size, sizeof(*all));
    int code = all == NULL;
    if (code != 0)
        snprintf(message, bytes, "out of memory");
    if (code == 0 && place->rank == 0)
        code = failed(s, nccl->make_id(&mine), message, bytes);
    if (code == 0 && (code = place->gather(place->argument, &mine, sizeof(mine), all)) != 0)
        snprintf(message, bytes, "the ranks could not exchange NCCL's id");
    if (code == 0)
        code = failed(s, nccl->init(&s->comm, place->size, all[0], place->rank), message, bytes);
    free(all);
    return code;
}

static int open_nccl(struct peer_state **result, const struct peer_place *place, char *message, size_t bytes)
{
    struct peer_state *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        snprintf(message, bytes, "out of memory");
        return 1;
    }
    s->place = *place;
    if (cuda_failed(cudaSetDevice(place->gpu), "cudaSetDevice", message, bytes) != 0 ||
        cuda_failed(cudaMalloc(&s->word, sizeof(float)), "cudaMalloc", message, bytes) != 0 || join(s, message, bytes) != 0) {
        cudaFree(s->word);
        free(s);
        return 1;
    }
    *result = s;
    return 0;
}

static int enlist(struct peer_state *s, void *memory, size_t memory_bytes, char *message, size_t bytes)
{
    if (s->enlisted_count == ENLISTED_MAX) {
        snprintf(message, bytes, "more than %d buffers", ENLISTED_MAX);
        return 1;
    }
    return failed(s, nccl->enlist(s->comm, memory, memory_bytes, &s->enlisted[s->enlisted_count++]), message, bytes);
}

/* In place, NCCL has the result of a reduce-scatter in the rank's own block, Rondo (as MPI) in the first. */
static bool in_place_differs(enum collective_id id)
{
    return id != COLLECTIVE_ALLREDUCE && id != COLLECTIVE_REDUCE && id != COLLECTIVE_BCAST && id != COLLECTIVE_ALLGATHER;
}

static int prepare(struct peer_state *s, const struct call *call, char *message, size_t bytes)
{
    const struct collective *collective = call->collective;
    s->call = call;
    s->type = nccl_type(call->type);
    s->op = nccl_operator(call->op);
    if (collective->rule->reduces && s->op < 0) {
        snprintf(message, bytes, "NCCL has no such operator");
        return 1;
    }
    if (collective->id == COLLECTIVE_SCAN || collective->id == COLLECTIVE_EXSCAN ||
        collective->id == COLLECTIVE_REDUCE_SCATTER || collective->id == COLLECTIVE_ALLTOALLW ||
        collective->id == COLLECTIVE_GATHERV || collective->id == COLLECTIVE_SCATTERV) {
        snprintf(message, bytes, "NCCL has no %s", collective->name);
        return 1;
    }
    if (call->in_place && in_place_differs(collective->id)) {
        snprintf(message, bytes, "NCCL's %s has no in-place form like Rondo's", collective->name);
        return 1;
    }
    return cuda_failed(cudaSetDevice(s->place.gpu), "cudaSetDevice", message, bytes);
}

/* Those made of sends and receives. Inside a group the codes of members are those of the group's end. */
static int members(const struct peer_state *s)
{
    const struct call *c = s->call;
    const char *send = c->send;
    char *receive = c->receive;
    void *stream = s->place.stream;
    size_t block = c->count * c->type_bytes;
    int next = (c->rank + 1) % c->ranks, previous = (c->rank + c->ranks - 1) % c->ranks, code = NCCL_SUCCESS;
    enum collective_id id = c->collective->id;
    if (id == COLLECTIVE_SENDRECV || (id == COLLECTIVE_ALLTONEXT && c->rank + 1 < c->ranks))
        code = nccl->send(send, c->count, s->type, next, s->comm, stream);
    if (code == NCCL_SUCCESS && (id == COLLECTIVE_SENDRECV || (id == COLLECTIVE_ALLTONEXT && c->rank > 0)))
        code = nccl->receive(receive, c->count, s->type, previous, s->comm, stream);
    if (code == NCCL_SUCCESS && id == COLLECTIVE_GATHER)
        code = nccl->send(send, c->count, s->type, c->root, s->comm, stream);
    if (code == NCCL_SUCCESS && id == COLLECTIVE_SCATTER)
        code = nccl->receive(receive, c->count, s->type, c->root, s->comm, stream);
    for (int r = 0; code == NCCL_SUCCESS && r < c->ranks; r++) {
        if (id == COLLECTIVE_ALLTOALL || (id == COLLECTIVE_SCATTER && c->rank == c->root))
            code = nccl->send(send + (size_t) r * block, c->count, s->type, r, s->comm, stream);
        if (code == NCCL_SUCCESS && (id == COLLECTIVE_ALLTOALL || (id == COLLECTIVE_GATHER && c->rank == c->root)))
            code = nccl->receive(receive + (size_t) r * block, c->count, s->type, r, s->comm, stream);
        if (code == NCCL_SUCCESS && id == COLLECTIVE_ALLTOALLV)
            code = nccl->send(send + c->send_displacements[r] * c->type_bytes, c->send_counts[r], s->type, r, s->comm, stream);
        if (code == NCCL_SUCCESS && id == COLLECTIVE_ALLGATHERV)
            code = nccl->send(c->input, c->input_elements, s->type, r, s->comm, stream);
        if (code == NCCL_SUCCESS && (id == COLLECTIVE_ALLTOALLV || id == COLLECTIVE_ALLGATHERV))
            code = nccl->receive(receive + c->receive_displacements[r] * c->type_bytes, c->receive_counts[r], s->type, r,
                                 s->comm, stream);
    }
    return code;
}

static int group(const struct peer_state *s)
{
    int code = nccl->group_start();
    if (code == NCCL_SUCCESS)
        code = members(s);
    int end = nccl->group_end();
    return code != NCCL_SUCCESS ? code : end;
}

static int barrier_on_stream(const struct peer_state *s)
{
    return nccl->allreduce(s->word, s->word, 1, NCCL_FLOAT, NCCL_SUM, s->comm, s->place.stream);
}

static int enqueue(const struct peer_state *s)
{
    const struct call *c = s->call;
    const void *send = c->send == RONDO_IN_PLACE ? c->input : c->send;
    void *stream = s->place.stream;
    switch (c->collective->id) {
    case COLLECTIVE_ALLREDUCE:
        return nccl->allreduce(send, c->receive, c->count, s->type, s->op, s->comm, stream);
    case COLLECTIVE_REDUCE:
        return nccl->reduce(send, c->receive, c->count, s->type, s->op, c->root, s->comm, stream);
    case COLLECTIVE_BCAST:
        return nccl->broadcast(c->receive, c->receive, c->count, s->type, c->root, s->comm, stream);
    case COLLECTIVE_REDUCE_SCATTER_BLOCK:
        return nccl->reduce_scatter(send, c->receive, c->count, s->type, s->op, s->comm, stream);
    case COLLECTIVE_ALLGATHER:
        return nccl->allgather(send, c->receive, c->count, s->type, s->comm, stream);
    case COLLECTIVE_BARRIER:
        return barrier_on_stream(s);
    default:
        return group(s);
    }
}

static int run(struct peer_state *s, char *message, size_t bytes)
{
    return failed(s, enqueue(s), message, bytes);
}

static int finish(struct peer_state *s, char *message, size_t bytes)
{
    return cuda_failed(cudaStreamSynchronize(s->place.stream), "NCCL's work on the stream", message, bytes);
}

static int barrier(struct peer_state *s, char *message, size_t bytes)
{
    if (cuda_failed(cudaSetDevice(s->place.gpu), "cudaSetDevice", message, bytes) != 0 ||
        failed(s, barrier_on_stream(s), message, bytes) != 0)
        return 1;
    return finish(s, message, bytes);
}

static void close_nccl(struct peer_state *s)
{
    cudaSetDevice(s->place.gpu);
    for (int i = 0; i < s->enlisted_count; i++)
        nccl->delist(s->comm, s->enlisted[i]);
    nccl->destroy(s->comm);
    cudaFree(s->word);
    free(s);
}

const struct peer *peer_nccl(char *message, size_t bytes)
{
    static char version[32];
    static const struct peer peer = {.name = "nccl",
                                     .version = version,
                                     .needs_device_memory = true,
                                     .open = open_nccl,
                                     .enlist = enlist,
                                     .prepare = prepare,
                                     .run = run,
                                     .finish = finish,
                                     .barrier = barrier,
                                     .close = close_nccl};
    int number = 0;
    nccl = nccl_load(message, bytes);
    if (nccl == NULL)
        return NULL;
    nccl->version(&number);
    snprintf(version, sizeof(version), "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return &peer;
}
