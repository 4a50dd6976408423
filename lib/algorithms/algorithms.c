/* The table of built-in algorithms, which is the one place that knows them all, and the public calls that find and name them
 * (rondo_program.h). struct rondo_algorithm explains the columns; a row without a column is 0 there. */
#include "lib/algorithms/algorithms.h"

#include "lib/base/error.h"
#include "lib/program/builder.h"

#include <string.h>

#define ONE(kind) (1u << (kind)) /* the set of this collective alone; ONE(RONDO_KINDS) - 1: of all */

#define NEIGHBORS                                                                                                              \
    (ONE(RONDO_KIND_NEIGHBOR_ALLGATHER) | ONE(RONDO_KIND_NEIGHBOR_ALLGATHERV) | ONE(RONDO_KIND_NEIGHBOR_ALLTOALL) |            \
     ONE(RONDO_KIND_NEIGHBOR_ALLTOALLV) | ONE(RONDO_KIND_NEIGHBOR_ALLTOALLW))

static const struct rondo_algorithm algorithms[] = {
    {.name = "local", .kinds = (ONE(RONDO_KINDS) - 1) & ~NEIGHBORS, .build = rondo_build_local},
    {.name = "ring",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLGATHERV) | ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER),
     .compose = rondo_compose_ring,
     .build_alone = rondo_build_ring,
     .alone = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLGATHERV) | ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE),
     .adapt = rondo_adapt_ring,
     .one_block = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_REDUCE_SCATTER),
     .compresses = ONE(RONDO_KINDS) - 1},
    {.name = "ring-hop",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .compose = rondo_compose_ring,
     .adapt = rondo_adapt_ring_hop,
     .compresses = ONE(RONDO_KINDS) - 1},
    {.name = "recursive-doubling",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .build = rondo_build_doubling,
     .ordered = ONE(RONDO_KIND_ALLREDUCE),
     .compresses = ONE(RONDO_KINDS) - 1},
    {.name = "hierarchical",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_ALLTOALL),
     .build = rondo_build_hierarchical,
     .several_hosts = 1},
    {.name = "allpairs",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLGATHERV) | ONE(RONDO_KIND_BARRIER) | ONE(RONDO_KIND_REDUCE_SCATTER),
     .compose = rondo_compose_all_pairs,
     .separate = ONE(RONDO_KIND_REDUCE_SCATTER),
     .one_block = ONE(RONDO_KINDS) - 1,
     .ordered = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_REDUCE_SCATTER),
     .low_latency = 1,
     .reduces_all = 1,
     .single_chunks = 1},
    {.name = "twoshot",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .compose = rondo_compose_two_shot,
     .one_block = ONE(RONDO_KINDS) - 1,
     .ordered = ONE(RONDO_KIND_ALLREDUCE),
     .low_latency = 1,
     .reduces_all = 1,
     .single_chunks = 1},
    {.name = "pairs",
     .kinds = ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_REDUCE_SCATTER) |
              ONE(RONDO_KIND_ALLTOALL),
     .compose = rondo_compose_pairs,
     .separate = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_REDUCE_SCATTER) | ONE(RONDO_KIND_ALLTOALL),
     .direct_writes = ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_ALLTOALL),
     .ordered = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_REDUCE_SCATTER),
     .low_latency = 1,
     .blocks_a_peer = 1,
     .reduces_all = 1,
     .single_chunks = 1},
    {.name = "exchange",
     .kinds = ONE(RONDO_KIND_ALLTOALL),
     .build = rondo_build_exchange,
     .separate = ONE(RONDO_KIND_ALLTOALL),
     .direct_writes = ONE(RONDO_KIND_ALLTOALL),
     .keepers = RONDO_EXCHANGE_KEEPERS,
     .low_latency = 1,
     .blocks_a_peer = 1},
    {.name = "direct",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) | ONE(RONDO_KIND_ALLGATHER) |
              ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_BCAST),
     .build = rondo_build_direct,
     .ordered = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK),
     .direct = 1,
     .reduces_all = 1},
    {.name = "push",
     .kinds = ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_BCAST),
     .build = rondo_build_push,
     .direct = 1},
    {.name = "push-chain", .kinds = ONE(RONDO_KIND_BCAST), .build = rondo_build_push_chain, .direct = 1},
    {.name = "multicast",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .build = rondo_build_multicast,
     .ordered = ONE(RONDO_KIND_ALLREDUCE),
     .multicast = RONDO_MULTICAST_WHOLE,
     .reduces_all = 1},
    {.name = "multicast",
     .kinds = ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_ALLGATHERV) | ONE(RONDO_KIND_BARRIER),
     .build = rondo_build_multicast,
     .multicast = RONDO_MULTICAST_WHOLE},
    {.name = "multicast",
     .kinds = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK),
     .build = rondo_build_multicast,
     .ordered = ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK),
     .multicast = RONDO_MULTICAST_PARTS,
     .reduces_all = 1},
    {.name = "multicast",
     .kinds = ONE(RONDO_KIND_SCATTER) | ONE(RONDO_KIND_ALLTOALL),
     .build = rondo_build_multicast,
     .multicast = RONDO_MULTICAST_PARTS},
    {.name = "multicast-twoshot",
     .kinds = ONE(RONDO_KIND_ALLREDUCE),
     .build = rondo_build_multicast_two_shot,
     .ordered = ONE(RONDO_KIND_ALLREDUCE),
     .multicast = RONDO_MULTICAST_PARTS,
     .even = 1,
     .reduces_all = 1},
    {.name = "linear",
     .kinds = ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_GATHER) | ONE(RONDO_KIND_SCATTER) |
              ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_ALLTOALLV) | ONE(RONDO_KIND_ALLTOALLW) | ONE(RONDO_KIND_GATHERV) |
              ONE(RONDO_KIND_SCATTERV),
     .build = rondo_build_linear,
     .ordered = ONE(RONDO_KIND_REDUCE),
     .windows = ONE(RONDO_KINDS) - 1,
     .direct_writes_between_two = ONE(RONDO_KIND_BCAST),
     .low_latency = 1,
     .compresses = ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_GATHER) | ONE(RONDO_KIND_SCATTER) | ONE(RONDO_KIND_ALLTOALL) |
                   ONE(RONDO_KIND_ALLTOALLV)},
    {.name = "binomial",
     .kinds = ONE(RONDO_KIND_GATHER) | ONE(RONDO_KIND_SCATTER),
     .build = rondo_build_binomial,
     .low_latency = 1},
    {.name = "bruck",
     .kinds = ONE(RONDO_KIND_ALLTOALL) | ONE(RONDO_KIND_BARRIER),
     .build = rondo_build_bruck,
     .low_latency = 1},
    {.name = "chain",
     .kinds = ONE(RONDO_KIND_SCAN) | ONE(RONDO_KIND_EXSCAN) | ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) |
              ONE(RONDO_KIND_REDUCE_SCATTER) | ONE(RONDO_KIND_ALLTONEXT) | ONE(RONDO_KIND_SEND_TO) |
              ONE(RONDO_KIND_RECEIVE_FROM),
     .build = rondo_build_chain,
     .ordered = ONE(RONDO_KIND_SCAN) | ONE(RONDO_KIND_EXSCAN) | ONE(RONDO_KIND_REDUCE) | ONE(RONDO_KIND_REDUCE_SCATTER_BLOCK) |
                ONE(RONDO_KIND_REDUCE_SCATTER),
     .direct_writes = ONE(RONDO_KIND_ALLTONEXT) | ONE(RONDO_KIND_SEND_TO) | ONE(RONDO_KIND_RECEIVE_FROM),
     .low_latency = 1,
     .compresses = ONE(RONDO_KIND_SEND_TO) | ONE(RONDO_KIND_RECEIVE_FROM),
     .two_blocks_inside = ONE(RONDO_KIND_ALLTONEXT)},
    {.name = "neighbors", .kinds = NEIGHBORS, .build = rondo_build_neighbors},
    {.name = "tree",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_BCAST) | ONE(RONDO_KIND_REDUCE),
     .compose = rondo_compose_tree},
    {.name = "doubling",
     .kinds = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_ALLGATHER) | ONE(RONDO_KIND_SCAN),
     .compose = rondo_compose_doubling,
     .ordered = ONE(RONDO_KIND_ALLREDUCE) | ONE(RONDO_KIND_SCAN),
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
     .ordered = ONE(RONDO_KIND_SCAN),
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

/* ---- the public calls ---- */

rondo_result_t rondo_program_builtin(const char *name, const char *collective, int ranks, int channels, int root,
                                     rondo_program_t *program)
{
    enum rondo_kind kind = rondo_kind_find(collective);
    if (program == NULL || name == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_builtin: %s is NULL", name == NULL ? "algorithm" : "program");
    *program = NULL;
    rondo_result_t status = rondo_handle_check_process("rondo_program_builtin");
    if (status != RONDO_SUCCESS)
        return status;
    const struct rondo_algorithm *algorithm = kind == RONDO_KINDS ? NULL : rondo_algorithm_find(name, kind);
    if (algorithm == NULL || algorithm->compose == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "there is no program '%s' for %s", name,
                          collective == NULL ? "NULL" : collective);
    if (ranks < 2 || ranks > RONDO_RANKS_MAX || channels < 1 || channels > RONDO_FACTOR_MAX || root < 0 || root >= ranks)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %d ranks, %d channels, root %d", name, ranks, channels, root);
    struct rondo_shape shape = {.kind = kind, .size = ranks, .root = root, .channels = channels};
    status = algorithm->compose(&shape, program);
    struct rondo_program_builder *builder;
    if (status == RONDO_SUCCESS)
        status = rondo_program_builder_of(*program, "rondo_program_builtin", &builder);
    if (status == RONDO_SUCCESS && builder->result != RONDO_SUCCESS) {
        status = rondo_fail(builder->result, "%s", builder->message);
        rondo_program_destroy(*program);
        *program = NULL;
    }
    return status;
}

void rondo_program_builtin_name(int i, const char **algorithm, const char **collective)
{
    int count, at = 0;
    const struct rondo_algorithm *table = rondo_algorithm_table(&count);
    *algorithm = *collective = NULL;
    for (int a = 0; a < count; a++)
        for (int kind = 0; table[a].compose != NULL && kind < RONDO_KINDS; kind++)
            if ((table[a].kinds >> kind & 1) && at++ == i) {
                *algorithm = table[a].name;
                *collective = rondo_kind_name((enum rondo_kind) kind);
                return;
            }
}
