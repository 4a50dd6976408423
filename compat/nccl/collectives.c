/* The communicating calls: arguments checked as NCCL checks them, and told in Rondo's terms. What is checked, and what in place
 * means, follows from the library's description of the collective (rondo_collective_describe).
 */
#include "compat/nccl/shim.h"

#include <pthread.h>
#include <string.h>

/* ---- what the library says of each kind ---- */

static const char *const names[RONDO_NCCL_KINDS] = {
    [RONDO_NCCL_ALLREDUCE] = "allreduce", [RONDO_NCCL_REDUCE] = "reduce",
    [RONDO_NCCL_BROADCAST] = "bcast",     [RONDO_NCCL_REDUCE_SCATTER] = "reduce_scatter_block",
    [RONDO_NCCL_ALLGATHER] = "allgather", [RONDO_NCCL_ALLTOALL] = "alltoall",
    [RONDO_NCCL_GATHER] = "gather",       [RONDO_NCCL_SCATTER] = "scatter",
    [RONDO_NCCL_SEND] = "send",           [RONDO_NCCL_RECEIVE] = "recv",
};
static const rondo_collective_t *rules[RONDO_NCCL_KINDS];

static void find_rules(void)
{
    const rondo_collective_t *rule;
    for (int index = 0; (rule = rondo_collective_describe(index)) != NULL; index++)
        for (int kind = 0; kind < RONDO_NCCL_KINDS; kind++)
            if (strcmp(rule->name, names[kind]) == 0)
                rules[kind] = rule;
}

const rondo_collective_t *rondo_nccl_rule(enum rondo_nccl_kind kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_rules);
    return rules[kind];
}

int rondo_nccl_uses(const struct rondo_nccl_operation *operation, rondo_ranks_t ranks)
{
    return ranks == RONDO_RANKS_ALL || (ranks == RONDO_RANKS_ROOT && operation->root == operation->comm->rank);
}

/* ---- a call ---- */

/* As the user made it. rank: the root or the peer, of a kind that has one; op: of a kind that reduces. */
struct arguments {
    const char *function; /* for messages */
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int rank;
    ncclComm_t comm;
    cudaStream_t stream;
    const ncclCollConfig_t *config; /* NULL */
};

static ncclResult_t name_rank(struct rondo_nccl_operation *operation, const char *function, const char *what, int rank)
{
    operation->root = rank;
    if (rank < 0 || rank >= operation->comm->size)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %s %d in a communicator of %d", function, what, rank,
                               operation->comm->size);
    return ncclSuccess;
}

static ncclResult_t need(const struct rondo_nccl_operation *operation, const char *function, const char *what,
                         const void *buffer)
{
    if (buffer == NULL && operation->count > 0)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: %s is NULL for %zu elements", function, what, operation->count);
    return ncclSuccess;
}

/* Where this rank's block of a buffer of blocks begins; first: the beginning of the buffer instead. */
static const void *block_of(const struct rondo_nccl_operation *operation, const void *buffer, int first)
{
    size_t block = first ? 0 : (size_t) operation->comm->rank;
    return (const char *) buffer + block * operation->count * rondo_nccl_type_bytes(operation->type);
}

/* NCCL knows by the addresses whether a call is in place; Rondo is told. */
static void place(struct rondo_nccl_operation *operation)
{
    const rondo_collective_t *rule = rondo_nccl_rule(operation->kind);
    int at_root = operation->root == operation->comm->rank;
    const void *input = block_of(operation, operation->recv, !rule->own_block);
    switch (rule->placement) {
    case RONDO_PLACEMENT_SEND:
        /* In NCCL's reduce-scatter the result replaces the rank's own block of the input, which Rondo allows as it is. */
        if (rule->send_extent == RONDO_EXTENT_BLOCKS && rule->recv_extent == RONDO_EXTENT_BLOCK)
            break;
        if (operation->send == input)
            operation->send = RONDO_IN_PLACE;
        break;
    case RONDO_PLACEMENT_SEND_AT_ROOT:
        if (at_root && operation->send == input)
            operation->send = RONDO_IN_PLACE;
        break;
    case RONDO_PLACEMENT_RECV_AT_ROOT:
        if (at_root && operation->recv == block_of(operation, operation->send, !rule->own_block))
            operation->recv = RONDO_IN_PLACE;
        break;
    case RONDO_PLACEMENT_SHARED:
        operation->copy = at_root && operation->send != operation->recv ? operation->send : NULL;
        operation->send = NULL;
        break;
    case RONDO_PLACEMENT_APART:
        break;
    }
}

/* Checks the call and fills in the operation, whose communicator is held. */
static ncclResult_t check(struct rondo_nccl_operation *operation, const struct arguments *a)
{
    const rondo_collective_t *rule = rondo_nccl_rule(operation->kind);
    ncclResult_t result = rondo_nccl_type(a->type, a->function, &operation->type);
    if (result == ncclSuccess && rule->reduces)
        result = rondo_nccl_operator(a->comm, a->op, a->function, operation);
    if (result == ncclSuccess && (rule->rooted || rule->point_to_point))
        result = name_rank(operation, a->function, rule->rooted ? "root" : "peer", a->rank);
    if (result == ncclSuccess && rondo_nccl_uses(operation, rule->send_ranks))
        result = need(operation, a->function, "sendbuff", a->send);
    if (result == ncclSuccess && rondo_nccl_uses(operation, rule->recv_ranks))
        result = need(operation, a->function, "recvbuff", a->recv);
    if (result == ncclSuccess)
        result = rondo_nccl_call_config_read(a->config, operation->comm, &operation->launch, a->function);
    return result;
}

static ncclResult_t communicate(enum rondo_nccl_kind kind, const struct arguments *a)
{
    struct rondo_nccl_operation operation = {
        .kind = kind, .op = RONDO_SUM, .root = -1, .send = a->send, .recv = a->recv, .count = a->count, .stream = a->stream};
    ncclResult_t result = rondo_nccl_comm_hold(a->comm, RONDO_NCCL_TO_COMMUNICATE, a->function);
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    operation.comm = a->comm;
    result = check(&operation, a);
    if (result != ncclSuccess) {
        rondo_nccl_comm_let_go(operation.comm);
        return rondo_nccl_note(result);
    }
    place(&operation);
    return rondo_nccl_enqueue(&operation);
}

/* ---- NCCL's functions: each without a config, and with one ---- */

ncclResult_t pncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream)
{
    return communicate(RONDO_NCCL_ALLREDUCE,
                       &(struct arguments){"ncclAllReduce", send, recv, count, type, op, -1, comm, stream, NULL});
}
NCCL_EXPORT(ncclAllReduce);

ncclResult_t pncclAllReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                  ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_ALLREDUCE,
                       &(struct arguments){"ncclAllReduceConfig", send, recv, count, type, op, -1, comm, stream, config});
}
NCCL_EXPORT(ncclAllReduceConfig);

ncclResult_t pncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return communicate(RONDO_NCCL_REDUCE,
                       &(struct arguments){"ncclReduce", send, recv, count, type, op, root, comm, stream, NULL});
}
NCCL_EXPORT(ncclReduce);

ncclResult_t pncclReduceConfig(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                               ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_REDUCE,
                       &(struct arguments){"ncclReduceConfig", send, recv, count, type, op, root, comm, stream, config});
}
NCCL_EXPORT(ncclReduceConfig);

ncclResult_t pncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    return communicate(RONDO_NCCL_BROADCAST,
                       &(struct arguments){"ncclBroadcast", send, recv, count, type, ncclSum, root, comm, stream, NULL});
}
NCCL_EXPORT(ncclBroadcast);

ncclResult_t pncclBroadcastConfig(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                  cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_BROADCAST, &(struct arguments){"ncclBroadcastConfig", send, recv, count, type, ncclSum, root,
                                                                 comm, stream, config});
}
NCCL_EXPORT(ncclBroadcastConfig);

ncclResult_t pncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    return pncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
NCCL_EXPORT(ncclBcast);

ncclResult_t pncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream)
{
    return communicate(RONDO_NCCL_REDUCE_SCATTER,
                       &(struct arguments){"ncclReduceScatter", send, recv, count, type, op, -1, comm, stream, NULL});
}
NCCL_EXPORT(ncclReduceScatter);

ncclResult_t pncclReduceScatterConfig(const void *send, void *recv, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                      ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_REDUCE_SCATTER,
                       &(struct arguments){"ncclReduceScatterConfig", send, recv, count, type, op, -1, comm, stream, config});
}
NCCL_EXPORT(ncclReduceScatterConfig);

ncclResult_t pncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                            cudaStream_t stream)
{
    return communicate(RONDO_NCCL_ALLGATHER,
                       &(struct arguments){"ncclAllGather", send, recv, count, type, ncclSum, -1, comm, stream, NULL});
}
NCCL_EXPORT(ncclAllGather);

ncclResult_t pncclAllGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                                  cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_ALLGATHER,
                       &(struct arguments){"ncclAllGatherConfig", send, recv, count, type, ncclSum, -1, comm, stream, config});
}
NCCL_EXPORT(ncclAllGatherConfig);

ncclResult_t pncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream)
{
    return communicate(RONDO_NCCL_ALLTOALL,
                       &(struct arguments){"ncclAlltoAll", send, recv, count, type, ncclSum, -1, comm, stream, NULL});
}
NCCL_EXPORT(ncclAlltoAll);

ncclResult_t pncclAlltoAllConfig(const void *send, void *recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                                 cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_ALLTOALL,
                       &(struct arguments){"ncclAlltoAllConfig", send, recv, count, type, ncclSum, -1, comm, stream, config});
}
NCCL_EXPORT(ncclAlltoAllConfig);

ncclResult_t pncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    return communicate(RONDO_NCCL_GATHER,
                       &(struct arguments){"ncclGather", send, recv, count, type, ncclSum, root, comm, stream, NULL});
}
NCCL_EXPORT(ncclGather);

ncclResult_t pncclGatherConfig(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                               cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_GATHER,
                       &(struct arguments){"ncclGatherConfig", send, recv, count, type, ncclSum, root, comm, stream, config});
}
NCCL_EXPORT(ncclGatherConfig);

ncclResult_t pncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                          cudaStream_t stream)
{
    return communicate(RONDO_NCCL_SCATTER,
                       &(struct arguments){"ncclScatter", send, recv, count, type, ncclSum, root, comm, stream, NULL});
}
NCCL_EXPORT(ncclScatter);

ncclResult_t pncclScatterConfig(const void *send, void *recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                cudaStream_t stream, const ncclCollConfig_t *config)
{
    return communicate(RONDO_NCCL_SCATTER,
                       &(struct arguments){"ncclScatterConfig", send, recv, count, type, ncclSum, root, comm, stream, config});
}
NCCL_EXPORT(ncclScatterConfig);

ncclResult_t pncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return communicate(RONDO_NCCL_SEND,
                       &(struct arguments){"ncclSend", send, NULL, count, type, ncclSum, peer, comm, stream, NULL});
}
NCCL_EXPORT(ncclSend);

ncclResult_t pncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return communicate(RONDO_NCCL_RECEIVE,
                       &(struct arguments){"ncclRecv", NULL, recv, count, type, ncclSum, peer, comm, stream, NULL});
}
NCCL_EXPORT(ncclRecv);
