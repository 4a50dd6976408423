/* Names of the collectives and the chunks of their buffers (lib/call/collective.h). */
#include "lib/call/collective.h"

#include <string.h>

const char *rondo_kind_name(enum rondo_kind kind)
{
    static const char *const names[RONDO_KINDS] = {
        "allreduce", "reduce",  "bcast", "reduce_scatter", "allgather", "allgatherv", "alltoall", "alltoallv", "gather",
        "scatter",   "barrier", "scan",  "exscan",         "alltonext", "send",       "recv",     "custom",
    };
    return (unsigned) kind < RONDO_KINDS ? names[kind] : "unknown";
}

enum rondo_kind rondo_kind_find(const char *name)
{
    for (int kind = 0; name != NULL && kind < RONDO_KINDS; kind++)
        if (strcmp(name, rondo_kind_name((enum rondo_kind) kind)) == 0)
            return (enum rondo_kind) kind;
    return RONDO_KINDS;
}

int rondo_kind_reduces(enum rondo_kind kind)
{
    return kind == RONDO_KIND_ALLREDUCE || kind == RONDO_KIND_REDUCE || kind == RONDO_KIND_REDUCE_SCATTER_BLOCK ||
           kind == RONDO_KIND_SCAN || kind == RONDO_KIND_EXSCAN || kind == RONDO_KIND_CUSTOM;
}

int rondo_kind_is_rooted(enum rondo_kind kind)
{
    return kind == RONDO_KIND_REDUCE || kind == RONDO_KIND_BCAST || kind == RONDO_KIND_GATHER || kind == RONDO_KIND_SCATTER;
}

int rondo_kind_is_p2p(enum rondo_kind kind)
{
    return kind == RONDO_KIND_SEND_TO || kind == RONDO_KIND_RECEIVE_FROM;
}

int rondo_kind_has_arrays(enum rondo_kind kind)
{
    return kind == RONDO_KIND_ALLGATHERV || kind == RONDO_KIND_ALLTOALLV || kind == RONDO_KIND_CUSTOM;
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
