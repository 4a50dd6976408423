/* See scenarios.h: calls. */
#include "test/nccl/scenarios.h"

#include <dlfcn.h>
#include <unistd.h>

/* ---- what needs no ranks ---- */

void scenario_versions(void)
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

void scenario_not_offered(void)
{
    static const char *const names[] = {"ncclLLA2ACreateRequirement", "ncclGetMultimemDevicePointer",
                                        "ncclGinBarrierCreateRequirement", "pncclCftBarrierCreateRequirement"};
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

void scenario_foreign_handles(void)
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

void scenario_errors(struct me *me)
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
    /* Operators of another type, destroyed ones, and those of another communicator. */
    NCCL(ncclRedOpCreatePreMulSum(&op, &two, ncclFloat, ncclScalarHostImmediate, c));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclInt, op, c, s));
    NCCL(ncclRedOpDestroy(op, c));
    CODE(ncclInvalidArgument, ncclAllReduce(a, b, 1, ncclFloat, op, c, s));
    CODE(ncclInvalidArgument, ncclRedOpDestroy(op, c));
    /* A bad call makes its group fail. */
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(a, b, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclAllReduce(a, NULL, 1, ncclFloat, ncclSum, c, s));
    CODE(ncclInvalidArgument, ncclGroupEnd());
    if (!on_host()) { /* memory and streams of another GPU than the communicator's */
        static float pageable[4];
        int other = (me->rank + 1) % count_devices();
        CODE(ncclInvalidArgument, ncclAllReduce(pageable, b, 1, ncclFloat, ncclSum, c, s));
        CODE(ncclInvalidArgument, ncclAllReduce(a, a + COUNT / 2, COUNT, ncclFloat, ncclSum, c, s));
        if (count_devices() > 1) {
            use_device(other);
            float *theirs = device_allocate(16);
            CODE(ncclInvalidArgument, ncclAllReduce(theirs, b, 1, ncclFloat, ncclSum, c, s));
            device_free(theirs);
            /* The current device does not matter, as in NCCL: the communicator's device is used. */
            check_sum(c, me, "with another device current");
            use_device(me->rank);
        }
    }
    /* A call without elements needs no buffers. After all these errors the communicator still works. */
    NCCL(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, c, s));
    NCCL(ncclCommCuDevice(c, &value));
    CHECK(on_host() ? value == -1 : value == me->rank % count_devices(), "device %d", value);
    check_sum(c, me, "after errors");
}

/* Needs RONDO_CHECK=1: the ranks' counts differ, then their operators. */
void scenario_mismatch(struct me *me)
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

/* ---- groups ---- */

/* One thread drives all ranks: two communicators, and messages between them, in nested groups. */
void scenario_one_thread(void)
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
        NCCL(ncclCommDestroy(first[r])); /* before the communicators that were split off it */
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

/* Several messages for each peer, of several sizes, the own rank included. */
void scenario_messages(struct me *me)
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

/* The collectives of one group run in order. */
void scenario_aggregated(struct me *me)
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
    NCCL(ncclGroupSimulateEnd(NULL)); /* the group's calls are not carried out */
    check_sum(me->comm, me, "after a group that was only simulated");
}

/* Three communicators, each on a stream of its own, enqueued in an order that differs between ranks. */
void scenario_orders(struct me *me)
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

/* Groups over two communicators on the same stream. Odd ranks create and call them in the opposite order. */
void scenario_mixed_group(struct me *me)
{
    ncclComm_t parents[2] = {me->comm, NULL}, comms[2];
    const int odd = me->rank % 2;
    NCCL(ncclCommSplit(me->comm, 0, me->rank, &parents[1], NULL));
    NCCL(ncclGroupStart());
    for (int k = 0; k < 2; k++)
        NCCL(ncclCommSplit(parents[k ^ odd], 0, me->rank, &comms[k ^ odd], NULL));
    NCCL(ncclGroupEnd());
    for (int round = 0; round < 5; round++) {
        put_floats(me->recv, -1, 2 * COUNT);
        NCCL(ncclGroupStart());
        for (int k = 0; k < 2; k++)
            NCCL(ncclAllReduce(me->send, me->recv + (k ^ odd) * COUNT, COUNT, ncclFloat, k == odd ? ncclSum : ncclMax,
                               comms[k ^ odd], me->stream));
        NCCL(ncclGroupEnd());
        stream_wait(me->stream);
        CHECK(count_wrong(me->recv, sum_of(me->size), COUNT) == 0, "sum, round %d", round);
        CHECK(count_wrong(me->recv + COUNT, (float) me->size, COUNT) == 0, "maximum, round %d", round);
    }
    for (int k = 0; k < 2; k++)
        NCCL(ncclCommDestroy(comms[k]));
    NCCL(ncclCommDestroy(parents[1]));
}

/* ---- operators and memory ---- */

void scenario_scalars(struct me *me)
{
    ncclRedOp_t device, host;
    float half = 0.5f, *scalar = device_allocate(sizeof(float));
    device_put(scalar, &half, sizeof(half));
    NCCL(ncclRedOpCreatePreMulSum(&device, scalar, ncclFloat, ncclScalarDevice, me->comm));
    NCCL(ncclRedOpCreatePreMulSum(&host, &half, ncclFloat, ncclScalarHostImmediate, me->comm));
    half = 77; /* the call has read it already */
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, device, me->comm, me->stream));
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(me->size) / 2, COUNT) == 0, "scalar in device memory");
    NCCL(ncclReduceScatter(me->send, me->recv, COUNT, ncclFloat, host, me->comm, me->stream));
    NCCL(ncclRedOpDestroy(host, me->comm)); /* the operator is destroyed at once */
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, sum_of(me->size) / 2, COUNT) == 0, "scalar of the host");
    CHECK(count_wrong(me->send, (float) me->rank + 1, COUNT) == 0, "the input has changed");
    NCCL(ncclReduce(me->send, me->recv, COUNT, ncclFloat, device, me->size - 1, me->comm, me->stream));
    stream_wait(me->stream);
    if (me->rank == me->size - 1)
        CHECK(count_wrong(me->recv, sum_of(me->size) / 2, COUNT) == 0, "reduced");
    NCCL(ncclRedOpDestroy(device, me->comm));
    /* Where ranks share a GPU, freeing waits for their kernels and keeps them from launching any: by now all ranks have
     * launched this one. */
    check_sum(me->comm, me, "without its operators");
    device_free(scalar);
}

void scenario_memory(struct me *me)
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
