/* See select_gpu.h. Measured on H200s joined by NVLink (docs/gpu-performance.md); `rondo bench --tune` measures a machine's
 * own. */
#include "select_gpu.h"

#include "fold.h"

#define KIB ((size_t) 1024)
#define MIB ((size_t) 1024 * KIB)
#define ANY SIZE_MAX

/* Up to so many ranks and bytes (rondo_call_bytes). In order: the first row that fits is taken. */
struct row {
    enum rondo_kind kind;
    int ranks;
    size_t bytes;
    const char *algorithm;
    enum rondo_protocol protocol;
    int channels;
};

static const struct row rows[] = {
    {RONDO_KIND_ALLREDUCE, 2, 3 * KIB, "allpairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLREDUCE, 2, 32 * KIB, "allpairs", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_ALLREDUCE, 2, 768 * KIB, "allpairs", RONDO_PROTOCOL_LL, 24},
    {RONDO_KIND_ALLREDUCE, 2, ANY, "direct", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_ALLREDUCE, 2, ANY, "twoshot", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_ALLREDUCE, 16, 3 * KIB, "allpairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLREDUCE, 16, 32 * KIB, "allpairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_ALLREDUCE, 16, 512 * KIB, "allpairs", RONDO_PROTOCOL_LL, 24},
    {RONDO_KIND_ALLREDUCE, 16, ANY, "direct", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_ALLREDUCE, 16, ANY, "twoshot", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_ALLGATHER, 16, 8 * KIB, "allpairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLGATHER, 16, 768 * KIB, "allpairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_ALLGATHER, 16, ANY, "direct", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_ALLGATHER, 16, ANY, "allpairs", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_REDUCE_SCATTER, 16, 8 * KIB, "allpairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_REDUCE_SCATTER, 16, 768 * KIB, "allpairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_REDUCE_SCATTER, 16, ANY, "allpairs", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_ALLTOALL, 16, 8 * KIB, "linear", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLTOALL, 16, 768 * KIB, "linear", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_ALLTOALL, 16, ANY, "linear", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_BCAST, 16, 4 * KIB, "linear", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_BCAST, 16, 256 * KIB, "linear", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_BCAST, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_REDUCE, 16, 4 * KIB, "linear", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_REDUCE, 16, 256 * KIB, "linear", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_REDUCE, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 24},
    {RONDO_KIND_SEND_TO, 1024, 4 * KIB, "chain", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_SEND_TO, 1024, 256 * KIB, "chain", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_SEND_TO, 1024, ANY, "chain", RONDO_PROTOCOL_SIMPLE, 16},
    {RONDO_KIND_RECEIVE_FROM, 1024, 4 * KIB, "chain", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_RECEIVE_FROM, 1024, 256 * KIB, "chain", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_RECEIVE_FROM, 1024, ANY, "chain", RONDO_PROTOCOL_SIMPLE, 16},
    {RONDO_KIND_BARRIER, 64, ANY, "allpairs", RONDO_PROTOCOL_LL, 1},
};

int rondo_gpus_only(const struct rondo_comm *comm)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->runtime->peers[comm->members[i]].device != RONDO_DEVICE_CUDA)
            return 0;
    return 1;
}

int rondo_select_gpu(const struct rondo_comm *comm, const struct rondo_call *call, int direct, struct rondo_choice *choice)
{
    size_t bytes = rondo_call_bytes(comm, call);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const struct rondo_algorithm *algorithm;
        if (row->kind != call->kind || comm->size > row->ranks || bytes > row->bytes)
            continue;
        algorithm = rondo_algorithm_find(row->algorithm, call->kind);
        if (algorithm->direct && !direct)
            continue;
        choice->algorithm = algorithm;
        choice->protocol = row->protocol;
        choice->channels = row->channels;
        return 1;
    }
    return 0;
}
