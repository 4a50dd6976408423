/* See lib/select/select_gpu.h. Tables measured on H200s joined by NVLink; `rondo bench --tune` measures
 * another machine's. */
#include "lib/algorithms/algorithms.h"
#include "lib/select/select_gpu.h"
#include "lib/connection/copy_engine.h"

#include "device/reduce/reduce.h"
#include "device/move/mover_table.h"

#define KIB ((size_t) 1024)
#define MIB ((size_t) 1024 * KIB)
#define ANY SIZE_MAX

/* A row holds up to so many ranks and bytes (rondo_call_bytes). The first row that fits is taken. Rows of LL128 and TMA fit
 * only where these protocols can be used. */
struct row {
    enum rondo_kind kind;
    int ranks;
    size_t bytes;
    const char *algorithm;
    enum rondo_protocol protocol;
    int channels;
};

static const struct row rows[] = {
    /* One packet per thread, up to the number of blocks. */
    {RONDO_KIND_ALLREDUCE, 16, 4 * KIB, "allpairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLREDUCE, 2, 8 * KIB, "allpairs", RONDO_PROTOCOL_LL, 2},
    {RONDO_KIND_ALLREDUCE, 2, 16 * KIB, "allpairs", RONDO_PROTOCOL_LL, 4},
    {RONDO_KIND_ALLREDUCE, 2, 32 * KIB, "allpairs", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_ALLREDUCE, 2, 64 * KIB, "allpairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_ALLREDUCE, 2, 128 * KIB, "allpairs", RONDO_PROTOCOL_LL, 32},
    {RONDO_KIND_ALLREDUCE, 16, 8 * KIB, "allpairs", RONDO_PROTOCOL_LL, 4},
    {RONDO_KIND_ALLREDUCE, 16, 48 * KIB, "allpairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_ALLREDUCE, 2, 4 * MIB, "allpairs", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_ALLREDUCE, 2, 48 * MIB, "allpairs", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_ALLREDUCE, 16, 768 * KIB, "allpairs", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_ALLREDUCE, 4, 16 * MIB, "ring", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_ALLREDUCE, 16, 8 * MIB, "twoshot", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_ALLREDUCE, 16, 16 * MIB, "ring", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_ALLREDUCE, 2, 768 * KIB, "allpairs", RONDO_PROTOCOL_LL, 32},
    {RONDO_KIND_ALLREDUCE, 16, 512 * KIB, "allpairs", RONDO_PROTOCOL_LL, 32},
    {RONDO_KIND_ALLREDUCE, 2, ANY, "direct", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_ALLREDUCE, 2, 8 * MIB, "allpairs", RONDO_PROTOCOL_SIMPLE, 32},
    {RONDO_KIND_ALLREDUCE, 2, ANY, "twoshot", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_ALLREDUCE, 16, 12 * MIB, "twoshot", RONDO_PROTOCOL_SIMPLE, 32},
    {RONDO_KIND_ALLREDUCE, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_ALLGATHER, 16, 16 * KIB, "pairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLGATHER, 16, 64 * KIB, "pairs", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_ALLGATHER, 16, 512 * KIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_ALLGATHER, 2, 96 * MIB, "pairs", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_ALLGATHER, 16, 1536 * KIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_ALLGATHER, 16, 24 * MIB, "ring", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_ALLGATHER, 16, 768 * KIB, "pairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_ALLGATHER, 2, ANY, "direct", RONDO_PROTOCOL_SIMPLE, 32},
    {RONDO_KIND_ALLGATHER, 2, ANY, "allpairs", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_ALLGATHER, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 16 * KIB, "pairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 64 * KIB, "pairs", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 512 * KIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 2, 96 * MIB, "pairs", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 1536 * KIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 24 * MIB, "ring", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 768 * KIB, "pairs", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, 768 * KIB, "allpairs", RONDO_PROTOCOL_LL, 32},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 2, ANY, "allpairs", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_REDUCE_SCATTER_BLOCK, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_ALLTOALL, 16, 16 * KIB, "pairs", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_ALLTOALL, 16, 64 * KIB, "pairs", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_ALLTOALL, 2, 24 * MIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_ALLTOALL, 2, ANY, "pairs", RONDO_PROTOCOL_TMA, 32},
    {RONDO_KIND_ALLTOALL, 2, 48 * MIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_ALLTOALL, 16, 3 * MIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_ALLTOALL, 16, 5 * MIB, "exchange", RONDO_PROTOCOL_LL128, 20},
    {RONDO_KIND_ALLTOALL, 16, 24 * MIB, "pairs", RONDO_PROTOCOL_LL128, 16},
    {RONDO_KIND_ALLTOALL, 16, 768 * KIB, "pairs", RONDO_PROTOCOL_LL, 10},
    {RONDO_KIND_ALLTOALL, 16, 128 * MIB, "pairs", RONDO_PROTOCOL_SIMPLE, 21},
    {RONDO_KIND_ALLTOALL, 16, ANY, "push", RONDO_PROTOCOL_SIMPLE, 64}, /* to one peer after the other: the links carry more */
    {RONDO_KIND_ALLTOALL, 16, ANY, "pairs", RONDO_PROTOCOL_SIMPLE, 21},
    {RONDO_KIND_ALLTOALL, 16, 64 * KIB, "linear", RONDO_PROTOCOL_LL, 1}, /* in place */
    {RONDO_KIND_ALLTOALL, 16, ANY, "linear", RONDO_PROTOCOL_SIMPLE, 32},
    {RONDO_KIND_BCAST, 2, 4 * KIB, "linear", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_BCAST, 2, 64 * KIB, "linear", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_BCAST, 2, 8 * MIB, "linear", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_BCAST, 8, 32 * KIB, "ring", RONDO_PROTOCOL_LL, 4},
    {RONDO_KIND_BCAST, 8, 128 * KIB, "ring", RONDO_PROTOCOL_LL128, 8},
    {RONDO_KIND_BCAST, 8, 512 * KIB, "ring", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_BCAST, 8, 6 * MIB, "ring", RONDO_PROTOCOL_LL128, 64},
    {RONDO_KIND_BCAST, 16, 4 * KIB, "linear", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_BCAST, 16, 64 * KIB, "linear", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_BCAST, 16, 1 * MIB, "linear", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_BCAST, 16, 384 * KIB, "linear", RONDO_PROTOCOL_LL, 32},
    {RONDO_KIND_BCAST, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 64},
    {RONDO_KIND_SEND_TO, 1024, 4 * KIB, "chain", RONDO_PROTOCOL_LL, 1},
    {RONDO_KIND_SEND_TO, 1024, 32 * KIB, "chain", RONDO_PROTOCOL_LL, 8},
    {RONDO_KIND_SEND_TO, 1024, 128 * KIB, "chain", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_SEND_TO, 1024, 12 * MIB, "chain", RONDO_PROTOCOL_LL128, 32},
    {RONDO_KIND_SEND_TO, 1024, 256 * KIB, "chain", RONDO_PROTOCOL_LL, 16},
    {RONDO_KIND_SEND_TO, 1024, 12 * MIB, "chain", RONDO_PROTOCOL_SIMPLE, 16},
    {RONDO_KIND_SEND_TO, 1024, ANY, "chain", RONDO_PROTOCOL_SIMPLE, 32},
    {RONDO_KIND_BARRIER, 64, ANY, "allpairs", RONDO_PROTOCOL_LL, 1},
};

/* For transfers through host memory of more than HOST_BYTES. Looked up before the other table. */
#define HOST_BYTES (512 * KIB)
static const struct row host_rows[] = {
    {RONDO_KIND_ALLREDUCE, 2, 2 * MIB, "allpairs", RONDO_PROTOCOL_SIMPLE, 32},
    {RONDO_KIND_ALLREDUCE, 2, 32 * MIB, "twoshot", RONDO_PROTOCOL_SIMPLE, 16},
    {RONDO_KIND_ALLREDUCE, 16, 1536 * KIB, "twoshot", RONDO_PROTOCOL_SIMPLE, 8},
    {RONDO_KIND_ALLREDUCE, 16, ANY, "ring", RONDO_PROTOCOL_SIMPLE, 32},
};

/* Direct writes (device/engine/direct_write.h), from so many bytes on. Looked up before the other tables. */
static const struct {
    size_t beyond;
    struct row row;
} direct_write_rows[] = {
    {24 * MIB, {RONDO_KIND_ALLGATHER, 2, ANY, "pairs", RONDO_PROTOCOL_SIMPLE, 32}},
    {12 * MIB, {RONDO_KIND_ALLTOALL, 2, ANY, "pairs", RONDO_PROTOCOL_SIMPLE, 16}},
    {12 * MIB, {RONDO_KIND_ALLTOALL, 16, ANY, "exchange", RONDO_PROTOCOL_SIMPLE, 60}},
    {96 * MIB, {RONDO_KIND_BCAST, 2, ANY, "linear", RONDO_PROTOCOL_SIMPLE, 64}},
    {12 * MIB, {RONDO_KIND_SEND_TO, 1024, ANY, "chain", RONDO_PROTOCOL_SIMPLE, 32}},
};

/* For operations that may have so few blocks, if their buffers can be reached: a block moves without slots what takes two with
 * them. Looked up before the other tables. */
#define FEW_BLOCKS       16
#define FEW_BLOCKS_BYTES (16 * MIB) /* less is not bound by what a block moves */
static const struct row few_blocks_rows[] = {
    {RONDO_KIND_ALLREDUCE, 16, ANY, "direct", RONDO_PROTOCOL_SIMPLE, FEW_BLOCKS},
};

/* What copy engines carry out on streams (lib/connection/copy_engine.h), where they are asked for. */
static const struct row copy_rows[] = {
    {RONDO_KIND_ALLGATHER, 64, ANY, "push", RONDO_PROTOCOL_SIMPLE, 1},
    {RONDO_KIND_ALLTOALL, 64, ANY, "push", RONDO_PROTOCOL_SIMPLE, 1},
    {RONDO_KIND_BCAST, 2, ANY, "push", RONDO_PROTOCOL_SIMPLE, 1},
    {RONDO_KIND_BCAST, 64, 4 * MIB, "push", RONDO_PROTOCOL_SIMPLE, 1},
    {RONDO_KIND_BCAST, 64, ANY, "push-chain", RONDO_PROTOCOL_SIMPLE, 1},
};

int rondo_select_gpu_blocks(const struct rondo_comm *comm, int streamed, int coded)
{
    const struct rondo_settings *settings = &comm->runtime->settings;
    int wide = streamed && comm == comm->runtime->world;
    int blocks = (int) settings->channels * (wide ? 2 : 1), most = (int) settings->stream_blocks;
    /* All of them must be resident at once. Of blocks that compress, two share a multiprocessor. */
    int limit = coded && streamed && !comm->networked ? 2 * RONDO_CHANNELS_MAX : RONDO_CHANNELS_MAX;
    blocks = blocks < limit ? blocks : limit;
    return streamed && most > 0 && most < blocks ? most : blocks;
}

/* Limits the channels so that all blocks of the program can be resident at once. */
static void fit_blocks(const struct rondo_comm *comm, enum rondo_kind kind, int streamed, struct rondo_choice *choice)
{
    const int most = rondo_algorithm_channels(choice->algorithm, kind, comm->size, rondo_select_gpu_blocks(comm, streamed, 0));
    if (choice->channels > most)
        choice->channels = most;
}

/* The kind whose rows apply. Send and receive share rows, as both ends must choose alike. A reduce uses the rows of a
 * broadcast, which measurements support. */
static enum rondo_kind row_kind(enum rondo_kind kind)
{
    return kind == RONDO_KIND_RECEIVE_FROM ? RONDO_KIND_SEND_TO : kind == RONDO_KIND_REDUCE ? RONDO_KIND_BCAST : kind;
}

/* Whether TMA copies can move the call's data. Messages have no such row: groups of them have more blocks than can be resident,
 * and are executed by the engine. */
static int suits_tma(const struct rondo_comm *comm, const struct rondo_call *call, int streamed)
{
    return rondo_launch_may_tma(comm->tma, streamed, call->count * rondo_type_bytes(call->type));
}

/* The key of a search in a table of rows. */
struct wanted {
    const struct rondo_comm *comm;
    const struct rondo_call *call;
    int direct, streamed; /* as in rondo_select */
    int linked;           /* rows of LL128 may be chosen */
};

/* Fills in the choice from the first of count rows that fits. Returns 0 if none does. */
static int select_row(const struct row *row, size_t count, const struct wanted *wanted, struct rondo_choice *choice)
{
    const struct rondo_comm *comm = wanted->comm;
    const struct rondo_call *call = wanted->call;
    const int direct = wanted->direct, streamed = wanted->streamed, linked = wanted->linked;
    size_t bytes = rondo_call_bytes(comm, call);
    enum rondo_kind kind = row_kind(call->kind);
    for (; count > 0; row++, count--) {
        const struct rondo_algorithm *algorithm;
        if (row->kind != kind || comm->size > row->ranks || bytes > row->bytes ||
            (row->protocol == RONDO_PROTOCOL_LL128 && !linked) ||
            (row->protocol == RONDO_PROTOCOL_TMA && !suits_tma(comm, call, streamed)))
            continue;
        algorithm = rondo_algorithm_find(row->algorithm, call->kind);
        if (rondo_misfit(comm, call, direct, algorithm) != NULL)
            continue;
        choice->algorithm = algorithm;
        choice->protocol = row->protocol;
        choice->channels = row->channels;
        fit_blocks(comm, kind, streamed, choice);
        return 1;
    }
    return 0;
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

int rondo_select_gpu(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                     struct rondo_choice *choice)
{
    size_t bytes = rondo_call_bytes(comm, call);
    struct wanted wanted = {.comm = comm, .call = call, .direct = direct, .streamed = streamed};
    if (streamed && direct && rondo_copy_engine_usable(comm) && call->kind != RONDO_KIND_REDUCE &&
        select_row(copy_rows, LENGTH(copy_rows), &wanted, choice))
        return 1;
    if (comm->by_host && bytes > HOST_BYTES && select_row(host_rows, LENGTH(host_rows), &wanted, choice))
        return 1;
    if (bytes > FEW_BLOCKS_BYTES && rondo_select_gpu_blocks(comm, streamed, 0) <= FEW_BLOCKS &&
        select_row(few_blocks_rows, LENGTH(few_blocks_rows), &wanted, choice))
        return 1;
    for (size_t i = 0; i < LENGTH(direct_write_rows); i++)
        if (bytes > direct_write_rows[i].beyond && select_row(&direct_write_rows[i].row, 1, &wanted, choice) &&
            rondo_writes_directly_by(comm, call, streamed, choice))
            return 1;
    wanted.linked = comm->linked;
    return select_row(rows, LENGTH(rows), &wanted, choice);
}

/* A part of an operation takes a block a constant time besides the time of moving its bytes. A channel that moves at least
 * OVERSUBSCRIBED_BYTES spends most of its time on moving. An operation that is then active alone is slower than with more
 * channels.
 */
#define OVERSUBSCRIBED       8
#define OVERSUBSCRIBED_BYTES (320 * KIB)

void rondo_select_gpu_oversubscribed(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                                     uint32_t oversubscription, struct rondo_choice *choice)
{
    int most = (int) (rondo_call_bytes(comm, call) / OVERSUBSCRIBED_BYTES);
    if (oversubscription < OVERSUBSCRIBED || !choice->measured)
        return;
    /* LL128 is excluded: a block that waits for LL128 lines cannot execute another operation. */
    select_row(rows, LENGTH(rows), &(struct wanted){.comm = comm, .call = call, .direct = direct}, choice);
    if (most < choice->channels)
        choice->channels = most > 1 ? most : 1;
}
