/* The table of collectives, and what is derived from a row alone (lib/call/collective.h). */
#include "lib/call/collective.h"

#include <string.h>

#define ALL                     RONDO_RANKS_ALL
#define ROOT                    RONDO_RANKS_ROOT
#define NONE                    RONDO_RANKS_NONE
#define NOT_FIRST               RONDO_RANKS_NOT_FIRST
#define NOT_LAST                RONDO_RANKS_NOT_LAST
#define BLOCK                   RONDO_EXTENT_BLOCK
#define BLOCKS                  RONDO_EXTENT_BLOCKS
#define COUNTS                  RONDO_EXTENT_COUNTS
#define CHUNKS                  RONDO_EXTENT_CHUNKS
#define SENDS(ranks, extent)    .send_ranks = ranks, .send_extent = extent
#define RECEIVES(ranks, extent) .recv_ranks = ranks, .recv_extent = extent
#define IN_PLACE(which)         .placement = RONDO_PLACEMENT_##which
#define GIVES(what)             .postcondition = RONDO_POSTCONDITION_##what

/* A barrier has no arguments, and what a program moves for it is a byte of the runtime's own: hence its blocks. A send or a
 * receive has but one end's buffer; programs give the other end as many chunks. */
const struct rondo_collective rondo_collectives[RONDO_KINDS] = {
    [RONDO_KIND_ALLREDUCE] = {{"allreduce", .reduces = 1, SENDS(ALL, BLOCK), RECEIVES(ALL, BLOCK), IN_PLACE(SEND),
                               GIVES(REDUCED), .bus_factor = 2},
                              .split = 1,
                              .msccl_name = "allreduce"},
    [RONDO_KIND_REDUCE] = {{"reduce", .reduces = 1, .rooted = 1, SENDS(ALL, BLOCK), RECEIVES(ROOT, BLOCK),
                            IN_PLACE(SEND_AT_ROOT), GIVES(REDUCED)},
                           .msccl_name = "reduce"},
    [RONDO_KIND_BCAST] = {{"bcast", .rooted = 1, SENDS(ROOT, BLOCK), RECEIVES(ALL, BLOCK), IN_PLACE(SHARED), GIVES(ROOT)},
                          .msccl_name = "broadcast"},
    [RONDO_KIND_REDUCE_SCATTER_BLOCK] = {{"reduce_scatter_block", .reduces = 1, SENDS(ALL, BLOCKS), RECEIVES(ALL, BLOCK),
                                          IN_PLACE(SEND), GIVES(REDUCED_BLOCK), .bus_factor = 1},
                                         .msccl_name = "reduce_scatter"},
    [RONDO_KIND_REDUCE_SCATTER] = {{"reduce_scatter", .reduces = 1, SENDS(ALL, COUNTS), RECEIVES(ALL, BLOCK), IN_PLACE(SEND),
                                    GIVES(REDUCED_BLOCK), .bus_factor = 1},
                                   .agreement = RONDO_AGREE_COUNTS},
    [RONDO_KIND_ALLGATHER] = {{"allgather", SENDS(ALL, BLOCK), RECEIVES(ALL, BLOCKS), IN_PLACE(SEND), .own_block = 1,
                               GIVES(CONCATENATED), .bus_factor = 1},
                              .msccl_name = "allgather"},
    [RONDO_KIND_ALLGATHERV] = {{"allgatherv", SENDS(ALL, BLOCK), RECEIVES(ALL, COUNTS), IN_PLACE(SEND), .own_block = 1,
                                GIVES(CONCATENATED), .bus_factor = 1},
                               .agreement = RONDO_AGREE_COUNTS},
    [RONDO_KIND_ALLTOALL] = {{"alltoall", SENDS(ALL, BLOCKS), RECEIVES(ALL, BLOCKS), IN_PLACE(SEND), GIVES(TRANSPOSED),
                              .bus_factor = 1},
                             .msccl_name = "alltoall"},
    [RONDO_KIND_ALLTOALLV] = {{"alltoallv", SENDS(ALL, COUNTS), RECEIVES(ALL, COUNTS), IN_PLACE(SEND), GIVES(TRANSPOSED),
                               .bus_factor = 1},
                              .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_ALLTOALLW] = {{"alltoallw", SENDS(ALL, COUNTS), RECEIVES(ALL, COUNTS), IN_PLACE(SEND), GIVES(TRANSPOSED),
                               .bus_factor = 1},
                              .agreement = RONDO_AGREE_KIND},
    [RONDO_KIND_GATHER] = {{"gather", .rooted = 1, SENDS(ALL, BLOCK), RECEIVES(ROOT, BLOCKS), IN_PLACE(SEND_AT_ROOT),
                            .own_block = 1, GIVES(CONCATENATED), .bus_factor = 1},
                           .msccl_name = "gather"},
    [RONDO_KIND_GATHERV] = {{"gatherv", .rooted = 1, SENDS(ALL, BLOCK), RECEIVES(ROOT, COUNTS), IN_PLACE(SEND_AT_ROOT),
                             .own_block = 1, GIVES(CONCATENATED), .bus_factor = 1},
                            .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_SCATTER] = {{"scatter", .rooted = 1, SENDS(ROOT, BLOCKS), RECEIVES(ALL, BLOCK), IN_PLACE(RECV_AT_ROOT),
                             .own_block = 1, GIVES(ROOT_BLOCK), .bus_factor = 1},
                            .msccl_name = "scatter"},
    [RONDO_KIND_SCATTERV] = {{"scatterv", .rooted = 1, SENDS(ROOT, COUNTS), RECEIVES(ALL, BLOCK), IN_PLACE(RECV_AT_ROOT),
                              .own_block = 1, GIVES(ROOT_BLOCK), .bus_factor = 1},
                             .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_BARRIER] = {{"barrier", SENDS(NONE, BLOCK), RECEIVES(NONE, BLOCK), IN_PLACE(APART), GIVES(NOTHING)},
                            .agreement = RONDO_AGREE_NOTHING},
    [RONDO_KIND_SCAN] = {{"scan", .reduces = 1, SENDS(ALL, BLOCK), RECEIVES(ALL, BLOCK), IN_PLACE(SEND), GIVES(PREFIX)},
                         .msccl_name = "scan"},
    [RONDO_KIND_EXSCAN] = {{"exscan", .reduces = 1, SENDS(ALL, BLOCK), RECEIVES(NOT_FIRST, BLOCK), IN_PLACE(SEND),
                            GIVES(PREFIX_BEFORE)},
                           .msccl_name = "exscan"},
    [RONDO_KIND_ALLTONEXT] = {{"alltonext", SENDS(NOT_LAST, BLOCK), RECEIVES(NOT_FIRST, BLOCK), IN_PLACE(APART),
                               GIVES(PREVIOUS)},
                              .msccl_name = "alltonext"},
    [RONDO_KIND_NEIGHBOR_ALLGATHER] = {{"neighbor_allgather", SENDS(ALL, BLOCK), RECEIVES(ALL, BLOCKS), IN_PLACE(APART),
                                        GIVES(CONCATENATED), .neighborhood = 1},
                                       .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_NEIGHBOR_ALLGATHERV] = {{"neighbor_allgatherv", SENDS(ALL, BLOCK), RECEIVES(ALL, COUNTS), IN_PLACE(APART),
                                         GIVES(CONCATENATED), .neighborhood = 1},
                                        .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_NEIGHBOR_ALLTOALL] = {{"neighbor_alltoall", SENDS(ALL, BLOCKS), RECEIVES(ALL, BLOCKS), IN_PLACE(APART),
                                       GIVES(TRANSPOSED), .neighborhood = 1},
                                      .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_NEIGHBOR_ALLTOALLV] = {{"neighbor_alltoallv", SENDS(ALL, COUNTS), RECEIVES(ALL, COUNTS), IN_PLACE(APART),
                                        GIVES(TRANSPOSED), .neighborhood = 1},
                                       .agreement = RONDO_AGREE_TYPE},
    [RONDO_KIND_NEIGHBOR_ALLTOALLW] = {{"neighbor_alltoallw", SENDS(ALL, COUNTS), RECEIVES(ALL, COUNTS), IN_PLACE(APART),
                                        GIVES(TRANSPOSED), .neighborhood = 1},
                                       .agreement = RONDO_AGREE_KIND},
    [RONDO_KIND_SEND_TO] = {{"send", .point_to_point = 1, SENDS(ALL, BLOCK), RECEIVES(NONE, BLOCK), IN_PLACE(APART),
                             GIVES(NOTHING)}},
    [RONDO_KIND_RECEIVE_FROM] = {{"recv", .point_to_point = 1, SENDS(NONE, BLOCK), RECEIVES(ALL, BLOCK), IN_PLACE(APART),
                                  GIVES(PEER)}},
    [RONDO_KIND_CUSTOM] = {{"custom", .reduces = 1, SENDS(ALL, CHUNKS), RECEIVES(ALL, CHUNKS), IN_PLACE(APART),
                            GIVES(REQUIRED)},
                           .msccl_name = "custom"},
};

const rondo_collective_t *rondo_collective_describe(int index)
{
    return index >= 0 && index < RONDO_KINDS ? &rondo_collectives[index].rule : NULL;
}

const char *rondo_kind_name(enum rondo_kind kind)
{
    return (unsigned) kind < RONDO_KINDS ? rondo_collectives[kind].rule.name : "unknown";
}

enum rondo_kind rondo_kind_find(const char *name)
{
    for (int kind = 0; name != NULL && kind < RONDO_KINDS; kind++)
        if (strcmp(name, rondo_collectives[kind].rule.name) == 0)
            return (enum rondo_kind) kind;
    return RONDO_KINDS;
}

enum rondo_kind rondo_kind_find_msccl(const char *name)
{
    for (int kind = 0; kind < RONDO_KINDS; kind++)
        if (rondo_collectives[kind].msccl_name != NULL &&
            (strcmp(name, rondo_collectives[kind].msccl_name) == 0 || strcmp(name, rondo_collectives[kind].rule.name) == 0))
            return (enum rondo_kind) kind;
    return strcmp(name, "reducescatter") == 0 ? RONDO_KIND_REDUCE_SCATTER_BLOCK : RONDO_KINDS; /* some of msccl-tools' files */
}

uint32_t rondo_kind_blocks(enum rondo_kind kind, enum rondo_buffer buffer, uint32_t ranks)
{
    rondo_extent_t extent =
        buffer == RONDO_INPUT ? rondo_collectives[kind].rule.send_extent : rondo_collectives[kind].rule.recv_extent;
    return extent == BLOCKS || extent == COUNTS ? ranks : 1;
}

int rondo_ranks_include(rondo_ranks_t ranks, int rank, int size, int root)
{
    switch (ranks) {
    case RONDO_RANKS_ALL:
        return 1;
    case RONDO_RANKS_ROOT:
        return rank == root;
    case RONDO_RANKS_NOT_FIRST:
        return rank > 0;
    case RONDO_RANKS_NOT_LAST:
        return rank < size - 1;
    case RONDO_RANKS_NONE:
        break;
    }
    return 0;
}

void rondo_shape_chunks(const struct rondo_shape *shape, uint32_t chunks[RONDO_BUFFERS])
{
    uint32_t channels = (uint32_t) shape->channels, size = (uint32_t) shape->size;
    for (int b = RONDO_INPUT; b <= RONDO_OUTPUT; b++)
        chunks[b] = channels *
                    (rondo_collectives[shape->kind].split ? size : rondo_kind_blocks(shape->kind, (enum rondo_buffer) b, size));
    chunks[RONDO_SCRATCH] =
        rondo_collectives[shape->kind].rule.postcondition == RONDO_POSTCONDITION_PREFIX_BEFORE ? channels : 0;
}
