/* The table of algorithms, and what all builders share. */
#include "lib/algorithms/algorithms.h"

#include <string.h>

const char *rondo_kind_name(enum rondo_kind kind)
{
    static const char *const names[RONDO_KINDS] = {
        "allreduce", "reduce",  "bcast", "reduce_scatter", "allgather", "allgatherv", "alltoall", "alltoallv", "gather",
        "scatter",   "barrier", "scan",  "exscan",         "alltonext", "send",       "recv",     "custom",
    };
    return (unsigned) kind < RONDO_KINDS ? names[kind] : "unknown";
}

#define ONE(kind) (1u << (kind))

static const struct rondo_algorithm algorithms[] = {
    {.name = "local", .kinds = ONE(RONDO_KINDS) - 1, .build = rondo_build_local},
    {.name = "ring",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLGATHERV) | ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE),
     .compose = rondo_compose_ring,
     .adapt = rondo_adapt_ring,
     .one_block = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK),
     .compresses = ONE(RONDO_KINDS) - 1},
    {.name = "ring-hop",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .compose = rondo_compose_ring,
     .adapt = rondo_adapt_ring_hop,
     .compresses = ONE(RONDO_KINDS) - 1},
    {.name = "recursive-doubling",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .build = rondo_build_doubling,
     .compresses = ONE(RONDO_KINDS) - 1},
    {.name = "hierarchical",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_ALLTOALL),
     .build = rondo_build_hierarchical,
     .several_hosts = 1},
    {.name = "allpairs",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLGATHERV) | ONE(RONDO_KIND_BARRIER),
     .compose = rondo_compose_all_pairs,
     .one_block = ONE(RONDO_KINDS) - 1,
     .low_latency = 1,
     .reduces_all = 1,
     .single_chunks = 1},
    {.name = "twoshot",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .compose = rondo_compose_two_shot,
     .one_block = ONE(RONDO_KINDS) - 1,
     .low_latency = 1,
     .reduces_all = 1,
     .single_chunks = 1},
    {.name = "pairs",
     .kinds = ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLTOALL),
     .compose = rondo_compose_pairs,
     .separate = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLTOALL),
     .direct_writes = ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_ALLTOALL),
     .low_latency = 1,
     .blocks_a_peer = 1,
     .reduces_all = 1,
     .single_chunks = 1},
    {.name = "direct",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_BCAST),
     .build = rondo_build_direct,
     .direct = 1,
     .reduces_all = 1},
    {.name = "linear",
     .kinds = ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_GATHER) | ONE(RONDO_KIND_SCATTER) |
              ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_ALLTOALLV),
     .build = rondo_build_linear,
     .direct_writes_between_two = ONE(RONDO_KIND_BCAST),
     .low_latency = 1,
     .compresses = ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_GATHER) | ONE(RONDO_KIND_SCATTER) | ONE(RONDO_KIND_ALLTOALL) |
                   ONE(RONDO_KIND_ALLTOALLV)},
    {.name = "chain",
     .kinds = ONE(RONDO_KIND_SCAN) | ONE(RONDO_KIND_EXSCAN) | ONE(RONDO_KIND_ALLTONEXT) | ONE(RONDO_KIND_SEND_TO) |
              ONE(RONDO_KIND_RECEIVE_FROM),
     .build = rondo_build_chain,
     .direct_writes = ONE(RONDO_KIND_ALLTONEXT) | ONE(RONDO_KIND_SEND_TO) | ONE(RONDO_KIND_RECEIVE_FROM),
     .low_latency = 1},
    {.name = "tree",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE),
     .compose = rondo_compose_tree},
    {.name = "doubling",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_SCAN),
     .compose = rondo_compose_doubling,
     .low_latency = 1},
    {.name = "halving",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER),
     .compose = rondo_compose_halving,
     .separate = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK),
     .powers = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER)},
    {.name = "compiled-hierarchical",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER),
     .compose = rondo_compose_hierarchical,
     .separate = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK)},
    {.name = "twostep",
     .kinds = ONE(RONDO_KIND_ALLTOALL),
     .compose = rondo_compose_two_step,
     .separate = ONE(RONDO_KIND_ALLTOALL)},
    {.name = "spread", .kinds = ONE(RONDO_KIND_ALLTONEXT), .compose = rondo_compose_spread},
    {.name = "star",
     .kinds = ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_GATHER) | ONE(RONDO_KIND_SCATTER) |
              ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_SCAN) | ONE(RONDO_KIND_EXSCAN) | ONE(RONDO_KIND_ALLTONEXT),
     .compose = rondo_compose_star,
     .separate = ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_SCAN) | ONE(RONDO_KIND_EXSCAN)},
};

const struct rondo_algorithm *rondo_algorithm_table(int *count)
{
    *count = (int) (sizeof(algorithms) / sizeof(algorithms[0]));
    return algorithms;
}

const struct rondo_algorithm *rondo_algorithm_find(const char *name, enum rondo_kind kind)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
        if (strcmp(algorithms[i].name, name) == 0 && (algorithms[i].kinds & ONE(kind)))
            return &algorithms[i];
    return NULL;
}

int rondo_algorithm_blocks(const struct rondo_algorithm *algorithm, enum rondo_kind kind, int size)
{
    if (algorithm->build == rondo_build_chain && kind == RONDO_KIND_ALLTONEXT && size > 2)
        return 2; /* whoever is neither first nor last */
    if (!algorithm->blocks_a_peer || size == 1)
        return 1;
    return kind == RONDO_KIND_ALLTOALL ? 2 * size - 1 : kind == RONDO_KIND_ALLGATHER ? 2 * (size - 1) : size;
}

void rondo_shape_chunks(const struct rondo_shape *shape, uint32_t chunks[RONDO_BUFFERS])
{
    uint32_t channels = (uint32_t) shape->channels, all = channels * (uint32_t) shape->size;
    uint32_t input = channels, output = channels;
    switch (shape->kind) {
    case RONDO_KIND_ALLREDUCE:
    case RONDO_KIND_ALLTOALL:
    case RONDO_KIND_ALLTOALLV:
        input = output = all;
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
    case RONDO_KIND_SCATTER:
        input = all;
        break;
    case RONDO_KIND_ALLGATHER:
    case RONDO_KIND_ALLGATHERV:
    case RONDO_KIND_GATHER:
        output = all;
        break;
    default:
        break;
    }
    chunks[RONDO_INPUT] = input;
    chunks[RONDO_OUTPUT] = output;
    chunks[RONDO_SCRATCH] = shape->kind == RONDO_KIND_EXSCAN ? channels : 0;
}
