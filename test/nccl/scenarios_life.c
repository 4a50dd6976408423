/* See scenarios.h: creating and destroying communicators. */
#include "test/nccl/scenarios.h"

#include <pthread.h>
#include <unistd.h>

void scenario_bad_inits(void)
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
    CODE(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, 2, &id, NULL));
    CODE(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 0, -1, &id, NULL));
    CODE(ncclInvalidArgument, ncclCommInitRankScalable(NULL, 1, 0, 1, &id, NULL));
    CODE(ncclInvalidArgument, ncclCommInitRankScalable(&comm, 1, 1, 1, &id, NULL));
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
    /* In a group: the group reports the error, and none of its calls is carried out. */
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclGroupStart());
    CODE(ncclSuccess, ncclCommInitRank(&comm, 1, id, 0));
    CODE(ncclInvalidArgument, ncclCommInitRank(&comm, 1, id, 5));
    CODE(ncclInvalidArgument, ncclGroupEnd());
    CODE(ncclSuccess, ncclGroupStart());
    CODE(ncclSuccess, ncclGroupEnd());
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

void scenario_nonblocking(void)
{
    NCCL(ncclGetUniqueId(&shared_id));
    run_threads(ranks, nonblocking_rank, NULL);
}

enum { IDS_MOST = 3 };
static ncclUniqueId shared_ids[IDS_MOST];

/* count: how many ids there are. With every second rank the call returns at once, and its ids are gone then. */
static void scalable_rank(int rank, void *argument)
{
    const int count = *(const int *) argument;
    struct me me = {.rank = rank, .size = ranks};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId copies[IDS_MOST];
    memcpy(copies, shared_ids, sizeof(copies));
    config.blocking = rank % 2;
    use_device(rank);
    open_me(&me);
    const ncclResult_t result = ncclCommInitRankScalable(&me.comm, ranks, rank, count, copies, &config);
    CHECK(result == ncclSuccess || (rank % 2 == 0 && result == ncclInProgress), "init by %d ids gives %d", count, (int) result);
    memset(copies, 0x55, sizeof(copies));
    await(me.comm);
    check_sum(me.comm, &me, "by several ids");
    NCCL(ncclCommDestroy(me.comm));
    close_me(&me);
}

void scenario_scalable(void)
{
    for (int count = 1; count <= IDS_MOST && count <= ranks; count++) {
        for (int i = 0; i < count; i++)
            NCCL(ncclGetUniqueId(&shared_ids[i]));
        run_threads(ranks, scalable_rank, &count);
    }
}

void scenario_split(struct me *me)
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

/* A group's calls on one communicator are made in one order by all ranks: two splits, and two windows of unlike size. */
void scenario_one_parent(struct me *me)
{
    int rank, size;
    const size_t bytes = COUNT * sizeof(float);
    for (int round = 0; round < 10; round++) {
        ncclComm_t halves = NULL, reversed = NULL;
        ncclWindow_t longer = NULL, shorter = NULL;
        NCCL(ncclGroupStart());
        NCCL(ncclCommSplit(me->comm, me->rank % 2, me->rank, &halves, NULL));
        NCCL(ncclCommWindowRegister(me->comm, me->send, bytes, &longer, NCCL_WIN_COLL_SYMMETRIC));
        NCCL(ncclCommSplit(me->comm, 0, -me->rank, &reversed, NULL));
        NCCL(ncclCommWindowRegister(me->comm, me->recv, bytes / 2, &shorter, NCCL_WIN_COLL_SYMMETRIC));
        NCCL(ncclGroupEnd());
        NCCL(ncclCommCount(halves, &size));
        CHECK(size == (me->size + 1 - me->rank % 2) / 2, "round %d: rank %d is in a half of %d", round, me->rank, size);
        NCCL(ncclCommUserRank(reversed, &rank));
        CHECK(rank == me->size - 1 - me->rank, "round %d: rank %d becomes %d", round, me->rank, rank);
        check_sum(halves, me, "half of a group");
        check_sum(reversed, me, "reversed in a group");
        check_sum(me->comm, me, "the parent");
        NCCL(ncclCommWindowDeregister(me->comm, longer));
        NCCL(ncclCommWindowDeregister(me->comm, shorter));
        NCCL(ncclCommDestroy(halves));
        NCCL(ncclCommDestroy(reversed));
    }
}

void scenario_shrink(struct me *me)
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
    /* A communicator whose operations hang because the last rank does not take part. */
    ncclResult_t result = ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream);
    CHECK(result == ncclSuccess || result == ncclRemoteError, "rank %d: %d", me->rank,
          (int) result); /* another rank's abort has arrived */
    NCCL(ncclCommShrink(me->comm, &last, 1, &again, NULL, NCCL_SHRINK_ABORT));
    CHECK(stream_wait_for(me->stream, 10), "the hung operation does not end");
    check_sum(again, me, "shrunk after an abort");
    NCCL(ncclCommDestroy(rest));
    NCCL(ncclCommDestroy(again));
}

void scenario_finalize(struct me *me)
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

/* Rank 0 makes no call. Another thread of rank 1's process ends its operation, and the other ranks learn of it. */
void scenario_aborted(struct me *me)
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

void scenario_revoked(struct me *me)
{
#ifdef NCCL_REVOKE_DEFAULT /* missing in the first headers of 2.28 */
    ncclResult_t error;
    if (me->rank != 0) {
        ncclResult_t result = ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream);
        /* Another rank may have revoked its communicator by now, and left. */
        CHECK(result == ncclSuccess || result == ncclRemoteError, "rank %d: %d (%s)", me->rank, (int) result,
              ncclGetLastError(NULL));
    }
    CODE(ncclInvalidArgument, ncclCommRevoke(me->comm, 1));
    NCCL(ncclCommRevoke(me->comm, NCCL_REVOKE_DEFAULT));
    CHECK(stream_wait_for(me->stream, 10), "rank %d hangs", me->rank);
    NCCL(ncclCommGetAsyncError(me->comm, &error));
    CHECK(error == ncclSuccess, "state %d", (int) error);
    CODE(ncclInvalidUsage, ncclAllReduce(me->send, me->recv, COUNT, ncclFloat, ncclSum, me->comm, me->stream));
    CODE(ncclInvalidUsage, ncclCommFinalize(me->comm));
#else
    (void) me;
#endif
}

/* A communicator that no other rank joins: creation is given up halfway. */
void scenario_abandoned(void)
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
