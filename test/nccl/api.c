/* The calls around the collectives, one behaviour a scenario: errors, groups, making and ending communicators. Each is run with
 * --ranks ranks as threads; --scenario NAME for one of them. */
#include "data.h"
#include "ranks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#define COUNT 1000

static int ranks = 3;

/* One rank of a clique that a scenario's threads make. */
struct me {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream;
    float *send, *recv; /* COUNT elements a rank */
};

struct scenario_argument {
    void (*f)(struct me *me);
    ncclUniqueId id;
};

static void put_floats(float *memory, float value, size_t count)
{
    float *host = malloc(count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    device_put(memory, host, count * sizeof(*host));
    free(host);
}

/* How many of the elements are not the value. */
static size_t count_wrong(const float *memory, float value, size_t count)
{
    float *host = malloc(count * sizeof(*host));
    size_t wrong = 0;
    device_get(host, memory, count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        wrong += host[i] != value;
    free(host);
    return wrong;
}

static void open_me(struct me *me)
{
    me->stream = stream_create();
    me->send = device_allocate(COUNT * sizeof(float) * (size_t) ranks);
    me->recv = device_allocate(COUNT * sizeof(float) * (size_t) ranks);
    put_floats(me->send, (float) me->rank + 1, COUNT * (size_t) ranks);
    put_floats(me->recv, -1, COUNT * (size_t) ranks);
}

static void close_me(struct me *me)
{
    stream_destroy(me->stream);
    device_free(me->send);
    device_free(me->recv);
}

static void thread_main(int rank, void *argument)
{
    const struct scenario_argument *given = argument;
    struct me me = {.rank = rank, .size = ranks};
    use_device(rank);
    open_me(&me);
    me.comm = join(&given->id, rank, ranks);
    given->f(&me);
    if (me.comm != NULL)
        NCCL(ncclCommDestroy(me.comm));
    close_me(&me);
}

static void on_threads(void (*f)(struct me *me))
{
    struct scenario_argument argument = {.f = f};
    NCCL(ncclGetUniqueId(&argument.id));
    run_threads(ranks, thread_main, &argument);
}

static float sum_of(int size)
{
    return (float) (size * (size + 1) / 2);
}

/* An all-reduce of rank + 1 that works. */
static void check_sum(ncclComm_t comm, struct me *me, const char *what)
{
    int rank, size;
    NCCL(ncclCommUserRank(comm, &rank));
    NCCL(ncclCommCount(comm, &size));
    put_floats(me->send, (float) rank + 1, COUNT);
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, comm, me->stream));
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(size), COUNT) == 0, "%s: rank %d of %d", what, rank, size);
}

/* ---- what needs no ranks ---- */

static void versions(void)
{
    int version = 0;
    NCCL(ncclGetVersion(&version));
    CHECK(version >= 22800, "version %d", version);
    CODE(ncclInvalidArgument, ncclGetVersion(NULL));
    for (int code = 0; code <= ncclNumResults; code++)
        CHECK(ncclGetErrorString((ncclResult_t) code) != NULL && *ncclGetErrorString((ncclResult_t) code) != '\0', "code %d",
              code);
    CHECK(ncclGetLastError(NULL) != NULL, "no last error");
}

static void not_offered(void)
{
    static const char *const names[] = {"ncclDevCommCreate", "ncclDevCommDestroy", "ncclGinBarrierCreateRequirement",
                                        "pncclLsaBarrierCreateRequirement"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *symbol = dlsym(RTLD_DEFAULT, names[i]);
        int (*function)(void *, void *, void *);
        CHECK(symbol != NULL, "%s does not resolve", names[i]);
        memcpy(&function, &symbol, sizeof(function));
        for (int again = 0; again < 2 && symbol != NULL; again++)
            CHECK(function(NULL, NULL, NULL) == ncclInvalidUsage, "%s", names[i]);
    }
    CHECK(strstr(ncclGetLastError(NULL), "not offered") != NULL, "%s", ncclGetLastError(NULL));
}

static void bad_inits(void)
{
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    CODE(ncclInvalidArgument, ncclGetUniqueId(NULL));
    NCCL(ncclGetUniqueId(&id));
    CODE(ncclInvalidArgument, ncclCommInitRank(NULL, 1, id, 0));
    CODE(ncclInvalidArgument, ncclCommInitRank(&comm, 0, id, 0));
    CODE(ncclInvalidArgument, ncclCommInitRank(&comm, 1, id, 1));
    CODE(ncclInvalidArgument, ncclCommInitRank(&comm, 2, id, -1));
    config.magic++;
    CODE(ncclInvalidArgument, ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    config.magic--;
    config.blocking = 7;
    CODE(ncclInvalidArgument, ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    CODE(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, 0, &id, NULL));
    CODE(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, 1, NULL, NULL));
    CODE(ncclInvalidArgument, ncclCommInitAll(NULL, 1, NULL));
    CODE(ncclInvalidArgument, ncclCommInitAll(&comm, 0, NULL));
    CODE(ncclInvalidUsage, ncclGroupEnd());
    if (!on_host()) {
        int twice[2] = {0, 0}, absent[1] = {1000};
        ncclComm_t two[2];
        CODE(ncclInvalidUsage, ncclCommInitAll(two, 2, twice));
        CODE(ncclUnhandledCudaError, ncclCommInitAll(two, 1, absent));
    }
    memset(&id, 0x33, sizeof(id));
    CODE(ncclInvalidArgument, ncclCommInitRank(&comm, 1, id, 0));
    CHECK(comm == NULL, "a communicator is left of a failed init");
    /* In a group: the error is the group's, and nothing of it is done. */
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclGroupStart());
    CODE(ncclSuccess, ncclCommInitRank(&comm, 1, id, 0));
    CODE(ncclInvalidArgument, ncclCommInitRank(&comm, 1, id, 5));
    CODE(ncclInvalidArgument, ncclGroupEnd());
    CODE(ncclSuccess, ncclGroupStart());
    CODE(ncclSuccess, ncclGroupEnd());
}

static void foreign_handles(void)
{
    int value;
    ncclResult_t error;
    ncclComm_t made;
    char nothing[256] = {0};
    ncclComm_t bad[2] = {NULL, (ncclComm_t) (void *) nothing};
    for (int i = 0; i < 2; i++) {
        CODE(ncclInvalidArgument, ncclCommCount(bad[i], &value));
        CODE(ncclInvalidArgument, ncclCommUserRank(bad[i], &value));
        CODE(ncclInvalidArgument, ncclCommCuDevice(bad[i], &value));
        CODE(ncclInvalidArgument, ncclCommGetAsyncError(bad[i], &error));
        CODE(ncclInvalidArgument, ncclCommFinalize(bad[i]));
        CODE(ncclInvalidArgument, ncclCommSplit(bad[i], 0, 0, &made, NULL));
        CODE(ncclInvalidArgument, ncclAllReduce(nothing, nothing, 1, ncclChar, ncclSum, bad[i], NULL));
        CODE(ncclInvalidArgument, ncclSend(nothing, 1, ncclChar, 0, bad[i], NULL));
        CODE(ncclInvalidArgument, ncclRedOpDestroy((ncclRedOp_t) 10, bad[i]));
    }
    CODE(ncclInvalidArgument, ncclCommDestroy(bad[1]));
    CODE(ncclInvalidArgument, ncclCommAbort(bad[1]));
    NCCL(ncclCommDestroy(NULL));
}

/* ---- what is wrong with a call ---- */

static void errors(struct me *me)
{
    ncclComm_t c = me->comm;
    cudaStream_t s = me->stream;
    float *a = me->send, *b = me->recv;
    ncclRedOp_t op;
    float two = 2;
    int value;
    CODE(ncclInvalidArgument, ncclAllReduce(NULL, b, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, NULL, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclNumTypes, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, (ncclDataType_t) -1, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclFloat, ncclNumOps, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclFloat, (ncclRedOp_t) -1, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclFloat, ncclMaxRedOp, c, s));
    CODE(ncclInvalidArgument, ncclReduce(a, b, 1, ncclFloat, ncclSum, me->size, c, s));
    CODE(ncclInvalidArgument, ncclReduce(a, b, 1, ncclFloat, ncclSum, -1, c, s));
    CODE(ncclInvalidArgument, ncclReduce(NULL, b, 1, ncclFloat, ncclSum, 0, c, s));
    CODE(ncclInvalidArgument, ncclBroadcast(a, NULL, 1, ncclFloat, 0, c, s));
    CODE(ncclInvalidArgument, ncclBcast(NULL, 1, ncclFloat, 0, c, s));
    CODE(ncclInvalidArgument, ncclBroadcast(a, b, 1, ncclFloat, 99, c, s));
    CODE(ncclInvalidArgument, ncclAllGather(NULL, b, 1, ncclFloat, c, s));
    CODE(ncclInvalidArgument, ncclReduceScatter(a, NULL, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAlltoAll(NULL, b, 1, ncclFloat, c, s));
    CODE(ncclInvalidArgument, ncclGather(NULL, b, 1, ncclFloat, 0, c, s));
    CODE(ncclInvalidArgument, ncclScatter(a, NULL, 1, ncclFloat, 0, c, s));
    CODE(ncclInvalidArgument, ncclSend(a, 1, ncclFloat, me->size, c, s));
    CODE(ncclInvalidArgument, ncclRecv(b, 1, ncclFloat, -1, c, s));
    CODE(ncclInvalidArgument, ncclSend(NULL, 1, ncclFloat, 0, c, s));
    CODE(ncclInvalidArgument, ncclCommCount(c, NULL));
    CODE(ncclInvalidArgument, ncclCommGetAsyncError(c, NULL));
    CODE(ncclInvalidArgument, ncclCommSplit(c, 0, 0, NULL, NULL));
    CODE(ncclInvalidArgument, ncclRedOpCreatePreMulSum(&op, NULL, ncclFloat, ncclScalarHostImmediate, c));
    CODE(ncclInvalidArgument, ncclRedOpCreatePreMulSum(NULL, &two, ncclFloat, ncclScalarHostImmediate, c));
    CODE(ncclInvalidArgument, ncclRedOpCreatePreMulSum(&op, &two, ncclNumTypes, ncclScalarHostImmediate, c));
    CODE(ncclInvalidArgument, ncclRedOpDestroy(ncclSum, c));
    /* Of another type, destroyed, of another communicator. */
    NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, c));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclInt, op, c, s));
    NCCL(ncclRedOpDestroy(op, c));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclFloat, op, c, s));
    CODE(ncclInvalidArgument, ncclRedOpDestroy(op, c));
    /* A bad call spoils its group. */
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, b, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, NULL, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclGroupEnd());
    if (!on_host()) { /* memory and streams that are not the communicator's GPU's */
        static float pageable[4];
        int other = (me->rank + 1) % count_devices();
        CODE(ncclInvalidArgument, ncclAllReduce(pageable, b, 1, ncclFloat, ncclSum, c, s));
        CODE(ncclInvalidArgument, ncclAllReduce(a, a + COUNT / 2, COUNT, ncclFloat, ncclSum, c, s));
        if (count_devices() > 1) {
            use_device(other);
            float *theirs = device_allocate(16);
            CODE(ncclInvalidArgument, ncclAllReduce(theirs, b, 1, ncclFloat, ncclSum, c, s));
            device_free(theirs);
            /* The current device is not looked at, as in NCCL: the communicator's is used. */
            check_sum(c, me, "with another device current");
            use_device(me->rank);
        }
    }
    /* Nothing to move needs no buffers; and none of all this has harmed the communicator. */
    NCCL(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, c, s));
    NCCL(ncclCommCuDevice(c, &value));
    CHECK(on_host() ? value == -1 : value == me->rank % count_devices(), "device %d", value);
    check_sum(c, me, "after errors");
}

/* ---- groups ---- */

/* All ranks by one thread: two communicators, and messages between them, in nested groups. */
static void one_thread(void)
{
    struct me *all = calloc((size_t) ranks, sizeof(*all));
    ncclComm_t *first = calloc((size_t) ranks, sizeof(*first)), *second = calloc((size_t) ranks, sizeof(*second));
    if (on_host() || ranks <= count_devices()) {
        NCCL(ncclCommInitAll(first, ranks, NULL));
    } else {
        ncclUniqueId id;
        NCCL(ncclGetUniqueId(&id));
        NCCL(ncclGroupStart());
        for (int r = 0; r < ranks; r++) {
            use_device(r);
            NCCL(ncclCommInitRank(&first[r], ranks, id, r));
        }
        NCCL(ncclGroupEnd());
    }
    NCCL(ncclGroupStart());
    for (int r = 0; r < ranks; r++) /* in reverse order */
        NCCL(ncclCommSplit(first[r], 0, -r, &second[r], NULL));
    NCCL(ncclGroupEnd());
    for (int r = 0; r < ranks; r++) {
        int rank;
        all[r] = (struct me){.rank = r, .size = ranks};
        use_device(r);
        open_me(&all[r]);
        NCCL(ncclCommUserRank(second[r], &rank));
        CHECK(rank == ranks - 1 - r, "rank %d is %d of the second", r, rank);
    }
    for (int round = 0; round < 5; round++) {
        NCCL(ncclGroupStart());
        for (int r = 0; r < ranks; r++) {
            struct me *me = &all[r];
            use_device(r);
            NCCL(ncclGroupStart());
            NCCL(ncclAllReduce(me->send, me->recv, 100, ncclFloat, ncclSum, first[r], me->stream));
            NCCL(ncclSend(me->send, 100, ncclFloat, (r + 1) % ranks, first[r], me->stream));
            NCCL(ncclGroupStart());
            NCCL(ncclBroadcast(me->send, me->recv + 100, 100, ncclFloat, 0, second[r], me->stream));
            NCCL(ncclGroupEnd());
            NCCL(ncclRecv(me->recv + 200, 100, ncclFloat, (r + ranks - 1) % ranks, first[r], me->stream));
            NCCL(ncclAllReduce(me->send, me->recv + 300, 100, ncclFloat, ncclMax, first[r], me->stream));
            NCCL(ncclGroupEnd());
        }
        NCCL(ncclGroupEnd());
        for (int r = 0; r < ranks; r++) {
            struct me *me = &all[r];
            use_device(r);
            stream_wait(me->stream);
            CHECK(count_wrong(me->recv, sum_of(ranks), 100) == 0, "sum at rank %d", r);
            CHECK(count_wrong(me->recv + 100, (float) ranks, 100) == 0, "broadcast at rank %d", r);
            CHECK(count_wrong(me->recv + 200, (float) ((r + ranks - 1) % ranks) + 1, 100) == 0, "message at rank %d", r);
            CHECK(count_wrong(me->recv + 300, (float) ranks, 100) == 0, "maximum at rank %d", r);
            put_floats(me->recv, -1, 400);
        }
    }
    for (int r = 0; r < ranks; r++) {
        NCCL(ncclCommDestroy(first[r])); /* before what was split off it */
        use_device(r);
    }
    NCCL(ncclGroupStart());
    for (int r = 0; r < ranks; r++)
        NCCL(ncclAllReduce(all[r].send, all[r].recv, 100, ncclFloat, ncclSum, second[r], all[r].stream));
    NCCL(ncclGroupEnd());
    for (int r = 0; r < ranks; r++) {
        use_device(r);
        stream_wait(all[r].stream);
        CHECK(count_wrong(all[r].recv, sum_of(ranks), 100) == 0, "after the parent's end at rank %d", r);
        NCCL(ncclCommDestroy(second[r]));
        close_me(&all[r]);
    }
    free(all);
    free(first);
    free(second);
}

/* Several messages a peer, of several sizes, to oneself too. */
static void messages(struct me *me)
{
    for (int round = 0; round < 3; round++) {
        NCCL(ncclGroupStart());
        for (int peer = 0; peer < me->size; peer++)
            for (int k = 0; k < 3; k++) {
                size_t at = (size_t) peer * COUNT + (size_t) k * 100, count = (size_t) (k * 40 + 7);
                NCCL(ncclSend(me->send + at, count, ncclFloat, peer, me->comm, me->stream));
                NCCL(ncclRecv(me->recv + at, count, ncclFloat, peer, me->comm, me->stream));
            }
        NCCL(ncclGroupEnd());
        stream_wait(me->stream);
        for (int peer = 0; peer < me->size; peer++)
            for (int k = 0; k < 3; k++) {
                size_t at = (size_t) peer * COUNT + (size_t) k * 100, count = (size_t) (k * 40 + 7);
                CHECK(count_wrong(me->recv + at, (float) peer + 1, count) == 0, "message %d of rank %d at %d", k, peer,
                      me->rank);
                CHECK(count_wrong(me->recv + at + count, -1, 1) == 0, "beyond message %d of rank %d", k, peer);
            }
    }
}

/* Collectives in one group are done in order. */
static void aggregated(struct me *me)
{
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    for (int k = 0; k < 30; k++)
        NCCL(ncclAllReduce(me->recv, me->recv, COUNT, ncclFloat, ncclMax, me->comm, me->stream));
    NCCL(ncclAllReduce(me->recv, me->recv, COUNT, ncclFloat, ncclAvg, me->comm, me->stream));
    NCCL(ncclGroupEnd());
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(me->size), COUNT) == 0, "rank %d", me->rank);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    CODE(ncclInvalidUsage, ncclGroupSimulateEnd(NULL)); /* not done */
    check_sum(me->comm, me, "after a group that was only simulated");
}

/* Three communicators, each on a stream of its own, enqueued in an order that differs from rank to rank. */
static void orders(struct me *me)
{
    enum { LANES = 3 };
    ncclComm_t comms[LANES];
    cudaStream_t streams[LANES];
    for (int k = 0; k < LANES; k++) {
        NCCL(ncclCommSplit(me->comm, 0, me->rank, &comms[k], NULL));
        streams[k] = stream_create();
    }
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < LANES; k++) {
            int lane = (k + me->rank + round) % LANES;
            NCCL(ncclAllReduce(me->send, me->recv + (size_t) lane * COUNT / LANES, COUNT / LANES, ncclFloat, ncclSum,
                               comms[lane], streams[lane]));
        }
        if (round % 5 == 0)
            for (int lane = 0; lane < LANES; lane++) {
                CHECK(stream_wait_for(streams[lane], 20), "lane %d hangs in round %d", lane, round);
                CHECK(count_wrong(me->recv + (size_t) lane * COUNT / LANES, sum_of(me->size), COUNT / LANES) == 0, "lane %d",
                      lane);
            }
    }
    for (int lane = 0; lane < LANES; lane++) {
        stream_wait(streams[lane]);
        NCCL(ncclCommDestroy(comms[lane]));
        stream_destroy(streams[lane]);
    }
}

/* ---- making and ending ---- */

static void await(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(comm, &state));
        usleep(100);
    }
    CHECK(state == ncclSuccess, "state %d (%s)", (int) state, ncclGetLastError(comm));
}

static ncclUniqueId shared_id;

static void nonblocking_rank(int rank, void *argument)
{
    (void) argument;
    struct me me = {.rank = rank, .size = ranks};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t part;
    config.blocking = 0;
    use_device(rank);
    open_me(&me);
    double before = now();
    ncclResult_t result;
    if (rank == 0)
        usleep(300000);
    before = now();
    result = ncclCommInitRankConfig(&me.comm, ranks, shared_id, rank, &config);
    CHECK(result == ncclSuccess || result == ncclInProgress, "init gives %d", (int) result);
    CHECK(now() - before < 0.25, "init took %.2f s", now() - before);
    await(me.comm);
    check_sum(me.comm, &me, "without blocking");
    result = ncclCommSplit(me.comm, rank % 2, 0, &part, NULL);
    CHECK(result == ncclSuccess || result == ncclInProgress, "split gives %d", (int) result);
    await(part);
    check_sum(part, &me, "split without blocking");
    result = ncclCommFinalize(part);
    CHECK(result == ncclSuccess || result == ncclInProgress, "finalize gives %d", (int) result);
    await(part);
    NCCL(ncclCommDestroy(part));
    NCCL(ncclCommDestroy(me.comm));
    close_me(&me);
}

static void nonblocking(void)
{
    NCCL(ncclGetUniqueId(&shared_id));
    run_threads(ranks, nonblocking_rank, NULL);
}

static void split(struct me *me)
{
    ncclComm_t halves, none, again, alone;
    int rank, size;
    NCCL(ncclCommSplit(me->comm, me->rank % 2, me->rank, &halves, NULL));
    NCCL(ncclCommUserRank(halves, &rank));
    NCCL(ncclCommCount(halves, &size));
    CHECK(rank == me->rank / 2 && size == (me->size + 1 - me->rank % 2) / 2, "rank %d is %d of %d", me->rank, rank, size);
    check_sum(halves, me, "half");
    NCCL(ncclCommSplit(halves, 0, -rank, &again, NULL));
    check_sum(again, me, "half, split again");
    NCCL(ncclCommSplit(me->comm, me->rank == 0 ? 5 : NCCL_SPLIT_NOCOLOR, 0, &alone, NULL));
    CHECK((alone != NULL) == (me->rank == 0), "rank %d has %p", me->rank, (void *) alone);
    if (alone != NULL)
        check_sum(alone, me, "alone");
    NCCL(ncclCommSplit(me->comm, NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
    CHECK(none == NULL, "a communicator without a color");
    NCCL(ncclCommDestroy(halves));
    check_sum(again, me, "its parent is no more");
    NCCL(ncclCommDestroy(me->comm));
    me->comm = NULL;
    check_sum(again, me, "none of its parents is");
    NCCL(ncclCommDestroy(again));
    NCCL(ncclCommDestroy(alone));
}

static void shrink(struct me *me)
{
    ncclComm_t rest = NULL, again = NULL;
    int last = me->size - 1, size;
    CODE(ncclInvalidArgument, ncclCommShrink(me->comm, NULL, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    CODE(ncclInvalidArgument, ncclCommShrink(me->comm, &last, 0, &rest, NULL, NCCL_SHRINK_DEFAULT));
    if (me->rank == last)
        return;
    NCCL(ncclCommShrink(me->comm, &last, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
    NCCL(ncclCommCount(rest, &size));
    CHECK(size == me->size - 1, "%d of %d are left", size, me->size);
    check_sum(rest, me, "shrunk");
    /* Of one whose operations hang because the last rank does not take part. */
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    NCCL(ncclCommShrink(me->comm, &last, 1, &again, NULL, NCCL_SHRINK_ABORT));
    CHECK(stream_wait_for(me->stream, 10), "the hung operation does not end");
    check_sum(again, me, "shrunk after an abort");
    NCCL(ncclCommDestroy(rest));
    NCCL(ncclCommDestroy(again));
}

static void finalize(struct me *me)
{
    ncclResult_t error;
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    NCCL(ncclCommFinalize(me->comm));
    CHECK(count_wrong(me->recv, sum_of(me->size), COUNT) == 0, "it has not been flushed");
    NCCL(ncclCommGetAsyncError(me->comm, &error));
    CHECK(error == ncclSuccess, "state %d", (int) error);
    CODE(ncclInvalidUsage, ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    CODE(ncclInvalidUsage, ncclCommFinalize(me->comm));
    ncclComm_t gone = me->comm;
    NCCL(ncclCommDestroy(me->comm));
    me->comm = NULL;
    CODE(ncclInvalidArgument, ncclCommDestroy(gone));
    CODE(ncclInvalidArgument, ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, gone, me->stream));
}

static void *abort_main(void *argument)
{
    usleep(200000);
    NCCL(ncclCommAbort(argument));
    return NULL;
}

/* Rank 0 does not call; rank 1's operation is ended by another thread of its process, the others learn of it. */
static void aborted(struct me *me)
{
    pthread_t thread;
    ncclResult_t error = ncclSuccess;
    if (me->rank != 0)
        NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    if (me->rank == 1)
        pthread_create(&thread, NULL, abort_main, me->comm);
    CHECK(stream_wait_for(me->stream, 10), "rank %d hangs", me->rank);
    if (me->rank == 1) {
        pthread_join(thread, NULL);
        me->comm = NULL;
        return;
    }
    for (double end = now() + 10; error == ncclSuccess && now() < end; usleep(1000))
        NCCL(ncclCommGetAsyncError(me->comm, &error));
    CHECK(error == ncclRemoteError, "rank %d sees %d (%s)", me->rank, (int) error, ncclGetLastError(me->comm));
    CHECK(strstr(ncclGetLastError(me->comm), "abort") != NULL, "%s", ncclGetLastError(me->comm));
    CHECK(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream) == ncclRemoteError || on_host(),
          "a call on an aborted communicator");
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
}

static void revoked(struct me *me)
{
    ncclResult_t error;
    if (me->rank != 0)
        NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    CODE(ncclInvalidArgument, ncclCommRevoke(me->comm, 1));
    NCCL(ncclCommRevoke(me->comm, NCCL_REVOKE_DEFAULT));
    CHECK(stream_wait_for(me->stream, 10), "rank %d hangs", me->rank);
    NCCL(ncclCommGetAsyncError(me->comm, &error));
    CHECK(error == ncclSuccess, "state %d", (int) error);
    CODE(ncclInvalidUsage, ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    CODE(ncclInvalidUsage, ncclCommFinalize(me->comm));
}

/* Needs RONDO_CHECK=1: the ranks' counts differ, and then the operator. */
static void mismatch(struct me *me)
{
    ncclResult_t error = ncclSuccess;
    if (getenv("RONDO_CHECK") == NULL || atoi(getenv("RONDO_CHECK")) == 0)
        return;
    NCCL(ncclAllReduce(me->send, me->recv, me->rank == 1 ? 10 : 20, ncclFloat, ncclSum, me->comm, me->stream));
    CHECK(stream_wait_for(me->stream, 10), "rank %d hangs", me->rank);
    for (double end = now() + 10; error == ncclSuccess && now() < end; usleep(1000))
        NCCL(ncclCommGetAsyncError(me->comm, &error));
    CHECK(error == ncclInvalidUsage, "rank %d sees %d (%s)", me->rank, (int) error, ncclGetLastError(me->comm));
    CHECK(strstr(ncclGetLastError(me->comm), "count 10") != NULL && strstr(ncclGetLastError(me->comm), "count 20") != NULL,
          "%s", ncclGetLastError(me->comm));
}

/* One that no other rank joins: to be given up while it is being made. */
static void abandoned(void)
{
    ncclUniqueId id;
    ncclComm_t comm;
    ncclResult_t state;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    NCCL(ncclGetUniqueId(&id));
    use_device(0);
    CODE(ncclInProgress, ncclCommInitRankConfig(&comm, 2, id, 0, &config));
    NCCL(ncclCommGetAsyncError(comm, &state));
    CHECK(state == ncclInProgress, "state %d", (int) state);
    char byte[64];
    CODE(ncclInvalidArgument, ncclAllReduce(byte, byte, 1, ncclChar, ncclSum, comm, NULL));
    NCCL(ncclCommAbort(comm));
}

/* ---- operators and memory ---- */

static void scalars(struct me *me)
{
    ncclRedOp_t device, host;
    float half = 0.5f, *scalar = device_allocate(sizeof(float));
    device_put(scalar, &half, sizeof(half));
    NCCL(ncclRedOpCreatePreMulSum(&device, scalar, ncclFloat, ncclScalarDevice, me->comm));
    NCCL(ncclRedOpCreatePreMulSum(&host, &half, ncclFloat, ncclScalarHostImmediate, me->comm));
    half = 77; /* dereferenced already */
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, device, me->comm, me->stream));
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(me->size) / 2, COUNT) == 0, "scalar in device memory");
    NCCL(ncclReduceScatter(me->send, me->recv, COUNT, ncclFloat, host, me->comm, me->stream));
    NCCL(ncclRedOpDestroy(host, me->comm)); /* at once */
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(me->size) / 2, COUNT) == 0, "scalar of the host");
    CHECK(count_wrong(me->send, (float) me->rank + 1, COUNT) == 0, "the input has changed");
    NCCL(ncclReduce(me->send, me->recv, COUNT, ncclFloat, device, me->size - 1, me->comm, me->stream));
    stream_wait(me->stream);
    if (me->rank == me->size - 1)
        CHECK(count_wrong(me->recv, sum_of(me->size) / 2, COUNT) == 0, "reduced");
    NCCL(ncclRedOpDestroy(device, me->comm));
    device_free(scalar);
}

static void memory(struct me *me)
{
    float *own = NULL;
    void *handle = NULL;
    ncclWindow_t window = NULL, plain = NULL;
    CODE(ncclInvalidArgument, ncclMemAlloc(NULL, 1));
    NCCL(ncclMemAlloc((void **) &own, COUNT * sizeof(float)));
    CHECK((uintptr_t) own % NCCL_WIN_REQUIRED_ALIGNMENT == 0 || !on_host(), "%p", (void *) own);
    NCCL(ncclCommRegister(me->comm, own, COUNT * sizeof(float), &handle));
    CODE(ncclInvalidArgument, ncclCommRegister(me->comm, NULL, 1, &handle));
    CODE(ncclInvalidArgument, ncclCommDeregister(me->comm, &handle));
    NCCL(ncclCommWindowRegister(me->comm, own, COUNT * sizeof(float), &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(me->comm, own, COUNT * sizeof(float), &plain, NCCL_WIN_DEFAULT));
    CODE(ncclInvalidArgument, ncclCommWindowRegister(me->comm, own, 1, &plain, 0x100));
    put_floats(own, (float) me->rank + 1, COUNT);
    NCCL(ncclAllReduce(own, own, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    stream_wait(me->stream);
    CHECK(count_wrong(own, sum_of(me->size), COUNT) == 0, "in a window");
    NCCL(ncclCommWindowDeregister(me->comm, window));
    NCCL(ncclCommWindowDeregister(me->comm, plain));
    CODE(ncclInvalidArgument, ncclCommWindowDeregister(me->comm, plain));
    NCCL(ncclCommDeregister(me->comm, handle));
    check_sum(me->comm, me, "the window is closed");
    NCCL(ncclMemFree(own));
}

/* ---- */

static const struct {
    const char *name;
    void (*alone)(void);
    void (*together)(struct me *me);
    int least; /* ranks */
} scenarios[] = {
    {"versions", versions, NULL, 1},   {"not_offered", not_offered, NULL, 1},
    {"bad_inits", bad_inits, NULL, 1}, {"foreign_handles", foreign_handles, NULL, 1},
    {"errors", NULL, errors, 1},       {"one_thread", one_thread, NULL, 1},
    {"messages", NULL, messages, 1},   {"aggregated", NULL, aggregated, 1},
    {"orders", NULL, orders, 1},       {"nonblocking", nonblocking, NULL, 1},
    {"split", NULL, split, 1},         {"shrink", NULL, shrink, 3},
    {"finalize", NULL, finalize, 1},   {"aborted", NULL, aborted, 2},
    {"revoked", NULL, revoked, 2},     {"mismatch", NULL, mismatch, 2},
    {"abandoned", abandoned, NULL, 1}, {"scalars", NULL, scalars, 1},
    {"memory", NULL, memory, 1},
};

int main(int argc, char **argv)
{
    const char *only = NULL;
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--ranks") == 0)
            ranks = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--scenario") == 0)
            only = argv[i + 1];
        else
            argc = 2;
    if (argc % 2 == 0 || ranks < 1) {
        fprintf(stderr, "options: --ranks N --scenario NAME\n");
        return 2;
    }
    watch();
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if ((only != NULL && strcmp(only, scenarios[i].name) != 0) || ranks < scenarios[i].least)
            continue;
        double before = now();
        if (scenarios[i].alone != NULL)
            scenarios[i].alone();
        else
            on_threads(scenarios[i].together);
        printf("%s: %.2f s\n", scenarios[i].name, now() - before);
        fflush(stdout);
    }
    return finish("api");
}
