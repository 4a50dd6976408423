/*
 * What nccl-tests do, on nccl.h: every collective, type and operator, in place and out of place, over a range of sizes, with
 * every element checked. Ranks are threads (--threads) that drive several GPUs each in groups (--gpus), in processes under
 * mpirun (--id FILE).
 */
#include "test/nccl/data.h"
#include "test/nccl/ranks.h"

#include <unistd.h>

static struct {
    int threads, gpus, iterations;
    size_t least, most, factor;
    const char *collectives, *types, *ops, *id;
} options = {.threads = 1,
             .gpus = 1,
             .iterations = 1,
             .least = 8,
             .most = 1 << 16,
             .factor = 4,
             .collectives = "all",
             .types = "all",
             .ops = "all"};

enum collective {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    REDUCE_SCATTER,
    ALL_GATHER,
    ALL_TO_ALL,
    GROUPED_ALL_TO_ALL,
    GATHER,
    SCATTER,
    SENDRECV,
    HYPERCUBE,
    COLLECTIVES
};
static const char *const names[COLLECTIVES] = {"allreduce",    "reduce", "broadcast", "reduce_scatter", "allgather", "alltoall",
                                               "alltoall_p2p", "gather", "scatter",   "sendrecv",       "hypercube"};

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    int rank, size;
    ncclRedOp_t premul[ncclNumTypes];
    char *send, *recv; /* device memory, as large as the largest rank needs */
};

struct trial {
    enum collective collective;
    ncclDataType_t type;
    int op, root, in_place;
    size_t count; /* elements of a block */
};

static int reduces(enum collective collective)
{
    return collective == ALL_REDUCE || collective == REDUCE || collective == REDUCE_SCATTER;
}

static int has_root(enum collective collective)
{
    return collective == REDUCE || collective == BROADCAST || collective == GATHER || collective == SCATTER;
}

static int has_in_place(enum collective collective)
{
    return collective != ALL_TO_ALL && collective != GROUPED_ALL_TO_ALL && collective != SENDRECV && collective != HYPERCUBE;
}

/* Sets the number of elements of both buffers. */
static void extents(const struct trial *trial, int size, size_t *send, size_t *recv)
{
    size_t all = trial->count * (size_t) size;
    int wide_send = trial->collective == REDUCE_SCATTER || trial->collective == ALL_TO_ALL ||
                    trial->collective == GROUPED_ALL_TO_ALL || trial->collective == SCATTER;
    int wide_recv = trial->collective == ALL_GATHER || trial->collective == ALL_TO_ALL ||
                    trial->collective == GROUPED_ALL_TO_ALL || trial->collective == GATHER || trial->collective == HYPERCUBE;
    *send = wide_send ? all : trial->count;
    *recv = wide_recv ? all : trial->count;
}

/* Sets the rank's buffers. In place they overlap: the narrower one is the rank's block of the wider one. */
static void place(const struct rank *me, const struct trial *trial, char **send, char **recv)
{
    size_t sends, receives, block = trial->count * type_bytes(trial->type);
    extents(trial, me->size, &sends, &receives);
    *send = me->send;
    *recv = me->recv;
    if (!trial->in_place)
        return;
    *send = me->recv;
    if (receives > sends)
        *send += (size_t) me->rank * block;
    else if (sends > receives)
        *recv += (size_t) me->rank * block;
}

static ncclResult_t call(const struct rank *me, const struct trial *t)
{
    char *send, *recv;
    size_t block = t->count * type_bytes(t->type);
    ncclResult_t result = ncclSuccess;
    ncclRedOp_t op = t->op == OP_PREMUL ? me->premul[t->type] : (ncclRedOp_t) t->op;
    place(me, t, &send, &recv);
    switch (t->collective) {
    case ALL_REDUCE:
        return ncclAllReduce(send, recv, t->count, t->type, op, me->comm, me->stream);
    case REDUCE:
        return ncclReduce(send, recv, t->count, t->type, op, t->root, me->comm, me->stream);
    case BROADCAST:
        return ncclBroadcast(send, recv, t->count, t->type, t->root, me->comm, me->stream);
    case REDUCE_SCATTER:
        return ncclReduceScatter(send, recv, t->count, t->type, op, me->comm, me->stream);
    case ALL_GATHER:
        return ncclAllGather(send, recv, t->count, t->type, me->comm, me->stream);
    case ALL_TO_ALL:
        return ncclAlltoAll(send, recv, t->count, t->type, me->comm, me->stream);
    case GATHER:
        return ncclGather(send, recv, t->count, t->type, t->root, me->comm, me->stream);
    case SCATTER:
        return ncclScatter(send, recv, t->count, t->type, t->root, me->comm, me->stream);
    case GROUPED_ALL_TO_ALL:
        NCCL(ncclGroupStart());
        for (int peer = 0; peer < me->size; peer++) {
            NCCL(ncclSend(send + (size_t) peer * block, t->count, t->type, peer, me->comm, me->stream));
            NCCL(ncclRecv(recv + (size_t) peer * block, t->count, t->type, peer, me->comm, me->stream));
        }
        return ncclGroupEnd();
    case SENDRECV:
        NCCL(ncclGroupStart());
        NCCL(ncclSend(send, t->count, t->type, (me->rank + 1) % me->size, me->comm, me->stream));
        NCCL(ncclRecv(recv, t->count, t->type, (me->rank + me->size - 1) % me->size, me->comm, me->stream));
        return ncclGroupEnd();
    default:
        return result;
    }
}

/* An all-gather whose every step doubles the data of each rank. Each step is one group of all ranks of the thread. */
static void hypercube(const struct rank *ranks, int count, const struct trial *t)
{
    size_t block = t->count * type_bytes(t->type);
    for (int r = 0; r < count; r++) {
        use_device(ranks[r].rank);
        NCCL(ncclBroadcast(ranks[r].send, ranks[r].recv + (size_t) ranks[r].rank * block, 0, t->type, 0, ranks[r].comm,
                           ranks[r].stream));
    }
    for (int mask = 1; mask < ranks[0].size; mask <<= 1) {
        NCCL(ncclGroupStart());
        for (int r = 0; r < count; r++) {
            const struct rank *me = &ranks[r];
            int peer = me->rank ^ mask, mine = me->rank & ~(mask - 1), theirs = peer & ~(mask - 1);
            NCCL(ncclSend(me->recv + (size_t) mine * block, t->count * (size_t) mask, t->type, peer, me->comm, me->stream));
            NCCL(ncclRecv(me->recv + (size_t) theirs * block, t->count * (size_t) mask, t->type, peer, me->comm, me->stream));
        }
        NCCL(ncclGroupEnd());
    }
}

/* ---- data ---- */

static void fill(const struct rank *me, const struct trial *t, char *host)
{
    char *send, *recv;
    size_t sends, receives, bytes = type_bytes(t->type);
    extents(t, me->size, &sends, &receives);
    place(me, t, &send, &recv);
    memset(host, 0x5a, receives * bytes);
    device_put(t->in_place && receives > sends ? me->recv : recv, host, receives * bytes);
    data_input(host, t->type, reduces(t->collective) ? t->op : OP_NONE, me->rank, me->size, 0, sends);
    device_put(send, host, sends * bytes);
    if (t->collective == HYPERCUBE)
        device_put(me->recv + (size_t) me->rank * t->count * bytes, host, t->count * bytes);
}

/* Computes the expected data of the rank into host. Returns the number of elements; 0: the rank receives nothing. */
static size_t expect(const struct rank *me, const struct trial *t, char *host)
{
    size_t bytes = type_bytes(t->type), n = (size_t) me->size, c = t->count;
    size_t own = (size_t) me->rank * c;
    switch (t->collective) {
    case REDUCE:
    case ALL_REDUCE:
        if (t->collective == REDUCE && me->rank != t->root)
            return 0;
        data_reduced(host, t->type, t->op, me->size, 0, c);
        return c * bytes;
    case REDUCE_SCATTER:
        data_reduced(host, t->type, t->op, me->size, own, c);
        return c * bytes;
    case BROADCAST:
        data_input(host, t->type, OP_NONE, t->root, me->size, 0, c);
        return c * bytes;
    case SCATTER:
        data_input(host, t->type, OP_NONE, t->root, me->size, own, c);
        return c * bytes;
    case SENDRECV:
        data_input(host, t->type, OP_NONE, (me->rank + me->size - 1) % me->size, me->size, 0, c);
        return c * bytes;
    case GATHER:
        if (me->rank != t->root)
            return 0;
        /* fall through */
    case ALL_GATHER:
    case HYPERCUBE:
        for (size_t r = 0; r < n; r++)
            data_input(host + r * c * bytes, t->type, OP_NONE, (int) r, me->size, 0, c);
        return n * c * bytes;
    default:
        for (size_t r = 0; r < n; r++)
            data_input(host + r * c * bytes, t->type, OP_NONE, (int) r, me->size, own, c);
        return n * c * bytes;
    }
}

static void check(const struct rank *me, const struct trial *t, char *host, char *wanted)
{
    char *send, *recv;
    place(me, t, &send, &recv);
    size_t bytes = expect(me, t, wanted), wrong = 0;
    device_get(host, recv, bytes);
    int same = memcmp(host, wanted, bytes) == 0;
    while (!same && host[wrong] == wanted[wrong])
        wrong++;
    CHECK(same, "%s %s %s, %zu elements%s, root %d: rank %d of %d, element %zu is wrong", names[t->collective],
          type_names[t->type], reduces(t->collective) ? op_names[t->op] : "", t->count, t->in_place ? " in place" : "", t->root,
          me->rank, me->size, wrong / type_bytes(t->type));
}

static void run_trial(struct rank *ranks, int count, const struct trial *t, char *host, char *wanted)
{
    for (int r = 0; r < count; r++) {
        use_device(ranks[r].rank);
        fill(&ranks[r], t, host);
    }
    if (t->collective == HYPERCUBE) {
        hypercube(ranks, count, t);
    } else {
        if (count > 1)
            NCCL(ncclGroupStart());
        for (int r = 0; r < count; r++) {
            use_device(ranks[r].rank);
            NCCL(call(&ranks[r], t));
        }
        if (count > 1)
            NCCL(ncclGroupEnd());
    }
    for (int r = 0; r < count; r++) {
        ncclResult_t error;
        use_device(ranks[r].rank);
        stream_wait(ranks[r].stream);
        NCCL(ncclCommGetAsyncError(ranks[r].comm, &error));
        if (error != ncclSuccess) {
            fprintf(stderr, "%s: rank %d: %s\n", names[t->collective], ranks[r].rank, ncclGetLastError(ranks[r].comm));
            exit(1);
        }
        check(&ranks[r], t, host, wanted);
    }
}

/* ---- which ---- */

static int listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    if (strcmp(list, "all") == 0)
        return 1;
    for (const char *at = list; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return 1;
    return 0;
}

static void all_sizes(struct rank *ranks, int count, struct trial *t, char *host, char *wanted)
{
    size_t size = (size_t) ranks[0].size;
    for (size_t bytes = options.least; bytes <= options.most; bytes *= options.factor) {
        size_t blocks =
            t->collective == ALL_REDUCE || t->collective == REDUCE || t->collective == BROADCAST || t->collective == SENDRECV
                ? 1
                : size;
        t->count = bytes / blocks / type_bytes(t->type);
        for (t->in_place = 0; t->in_place <= has_in_place(t->collective); t->in_place++)
            for (int i = 0; i < options.iterations; i++) {
                if (has_root(t->collective))
                    t->root = (t->root + 1) % (int) size;
                run_trial(ranks, count, t, host, wanted);
            }
    }
}

static void all_trials(struct rank *ranks, int count)
{
    size_t room = options.most + 4096;
    char *host = malloc(room), *wanted = malloc(room);
    for (int c = 0; c < COLLECTIVES; c++)
        for (int type = 0; type < ncclNumTypes && listed(options.collectives, names[c]); type++)
            for (int op = 0; op < OPS && listed(options.types, type_names[type]); op++) {
                struct trial t = {.collective = (enum collective) c, .type = (ncclDataType_t) type, .op = op};
                if (reduces(t.collective) ? !listed(options.ops, op_names[op]) : op != OP_NONE)
                    continue;
                if (c == HYPERCUBE && (ranks[0].size & (ranks[0].size - 1)) != 0)
                    continue;
                all_sizes(ranks, count, &t, host, wanted);
            }
    free(host);
    free(wanted);
}

/* ---- ranks ---- */

static void make_operators(struct rank *me)
{
    for (int type = 0; type < ncclNumTypes; type++) {
        char factor[8] = {0};
        store(factor, (ncclDataType_t) type, PREMUL_FACTOR);
        NCCL(ncclRedOpCreatePreMulSum(&me->premul[type], factor, (ncclDataType_t) type, ncclScalarHostImmediate, me->comm));
    }
}

static void thread_main(int thread, void *argument)
{
    const ncclUniqueId *id = argument;
    int size = options.threads * options.gpus * process_count();
    int first = (process_rank() * options.threads + thread) * options.gpus;
    struct rank *ranks = calloc((size_t) options.gpus, sizeof(*ranks));
    NCCL(ncclGroupStart());
    for (int r = 0; r < options.gpus; r++) {
        struct rank *me = &ranks[r];
        me->rank = first + r;
        me->size = size;
        use_device(me->rank);
        me->stream = stream_create();
        me->send = device_allocate(options.most + 4096);
        me->recv = device_allocate(options.most + 4096);
        NCCL(ncclCommInitRank(&me->comm, size, *id, me->rank));
    }
    NCCL(ncclGroupEnd());
    for (int r = 0; r < options.gpus; r++) {
        use_device(ranks[r].rank);
        make_operators(&ranks[r]);
    }
    all_trials(ranks, options.gpus);
    for (int r = 0; r < options.gpus; r++) {
        use_device(ranks[r].rank);
        for (int type = 0; type < ncclNumTypes; type++)
            NCCL(ncclRedOpDestroy(ranks[r].premul[type], ranks[r].comm));
        NCCL(ncclCommDestroy(ranks[r].comm));
        stream_destroy(ranks[r].stream);
        device_free(ranks[r].send);
        device_free(ranks[r].recv);
    }
    free(ranks);
}

static size_t parse_size(const char *text)
{
    char *end;
    size_t value = strtoull(text, &end, 10);
    return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : *end == 'G' ? value << 30 : value;
}

static void parse(int argc, char **argv)
{
    const struct {
        const char *name;
        int *number;
        size_t *size;
        const char **text;
    } known[] = {
        {"--threads", &options.threads, NULL, NULL},
        {"--gpus", &options.gpus, NULL, NULL},
        {"--iterations", &options.iterations, NULL, NULL},
        {"--min", NULL, &options.least, NULL},
        {"--max", NULL, &options.most, NULL},
        {"--factor", NULL, &options.factor, NULL},
        {"--collectives", NULL, NULL, &options.collectives},
        {"--types", NULL, NULL, &options.types},
        {"--ops", NULL, NULL, &options.ops},
        {"--id", NULL, NULL, &options.id},
    };
    for (int i = 1; i + 1 < argc + (argc % 2 == 0); i += 2) {
        size_t k = 0;
        while (k < sizeof(known) / sizeof(known[0]) && strcmp(known[k].name, argv[i]) != 0)
            k++;
        if (k == sizeof(known) / sizeof(known[0]) || i + 1 == argc) {
            fprintf(stderr, "%s is no option with a value; there are", argv[i]);
            for (k = 0; k < sizeof(known) / sizeof(known[0]); k++)
                fprintf(stderr, " %s", known[k].name);
            fprintf(stderr, "\n");
            exit(2);
        }
        if (known[k].number != NULL)
            *known[k].number = atoi(argv[i + 1]);
        else if (known[k].size != NULL)
            *known[k].size = parse_size(argv[i + 1]);
        else
            *known[k].text = argv[i + 1];
    }
    if (options.factor < 2 || options.threads < 1 || options.gpus < 1)
        exit(2);
}

int main(int argc, char **argv)
{
    ncclUniqueId id;
    parse(argc, argv);
    watch();
    if (process_rank() == 0)
        NCCL(ncclGetUniqueId(&id));
    share_id(&id, options.id);
    run_threads(options.threads, thread_main, &id);
    return finish("matrix");
}
