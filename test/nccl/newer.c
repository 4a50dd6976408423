/* The functions that are newer than nccl.h of 2.28, with --ranks ranks as threads: their arguments, and what they do. They are
 * declared by compat/nccl/interface.h, so that they are compiled with every header. --scenario NAME runs one of them. */
#include "compat/nccl/interface.h"
#include "test/nccl/data.h"
#include "test/nccl/ranks.h"

#include <pthread.h>

#define COUNT 1000

static int ranks = 3;

struct me {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream;
    int *send, *recv; /* COUNT elements a rank: rank + 1 in send, -1 in recv */
};

static void put(int *memory, int value, size_t count)
{
    int *host = malloc(count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    device_put(memory, host, count * sizeof(*host));
    free(host);
}

static size_t count_wrong(const int *memory, int value, size_t count)
{
    int *host = malloc(count * sizeof(*host));
    size_t wrong = 0;
    device_get(host, memory, count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        wrong += host[i] != value;
    free(host);
    return wrong;
}

static void check_sum(ncclComm_t comm, struct me *me, const char *what)
{
    int rank, size;
    NCCL(ncclCommUserRank(comm, &rank));
    NCCL(ncclCommCount(comm, &size));
    put(me->send, rank + 1, COUNT);
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclInt, ncclSum, comm, me->stream));
    stream_wait(me->stream);
    CHECK(count_wrong(me->recv, size * (size + 1) / 2, COUNT) == 0, "%s: rank %d of %d", what, rank, size);
}

/* ---- parameters ---- */

static void parameters(void)
{
    ncclParamHandle_t retries = NULL, order = NULL, debug = NULL;
    int64_t wide = 0;
    uint8_t narrow = 0;
    int8_t small = 0;
    const char *text = NULL, **keys = NULL;
    int length = 0, found = 0;
    char bytes[8];
    setenv("RONDO_TIMEOUT", "300", 1);
    NCCL(ncclParamBind(&retries, "RONDO_TIMEOUT"));
    NCCL(ncclParamBind(&order, "RONDO_ORDER"));
    NCCL(ncclParamBind(&debug, "NCCL_DEBUG"));
    CODE(ncclInvalidArgument, ncclParamBind(NULL, "RONDO_TIMEOUT"));
    CODE(ncclInvalidArgument, ncclParamBind(&debug, NULL));
    ncclParamHandle_t none = retries;
    CODE(ncclInvalidArgument, ncclParamBind(&none, "RONDO_NO_SUCH"));
    CHECK(none == NULL, "a handle of no parameter");
    CHECK(strstr(ncclGetLastError(NULL), "RONDO_NO_SUCH") != NULL, "%s", ncclGetLastError(NULL));
    NCCL(ncclParamGetI64(retries, &wide));
    CHECK(wide == 300, "%lld", (long long) wide);
    CODE(ncclInvalidArgument, ncclParamGetU8(retries, &narrow)); /* it does not fit */
    CODE(ncclInvalidArgument, ncclParamGetI8(retries, &small));
    CODE(ncclInvalidArgument, ncclParamGetI64(order, &wide)); /* a word */
    CODE(ncclInvalidArgument, ncclParamGetI64(retries, NULL));
    CODE(ncclInvalidArgument, ncclParamGetI64((ncclParamHandle_t) (void *) bytes, &wide));
    setenv("RONDO_TIMEOUT", "-128", 1);
    NCCL(ncclParamGetI8(retries, &small));
    CHECK(small == -128, "%d", small);
    CODE(ncclInvalidArgument, ncclParamGetU8(retries, &narrow));
    setenv("RONDO_TIMEOUT", "2K", 1);
    NCCL(ncclParamGetI64(retries, &wide));
    CHECK(wide == 2048, "%lld", (long long) wide);
    setenv("RONDO_TIMEOUT", "9223372036854775808", 1);
    CODE(ncclInvalidArgument, ncclParamGetI64(retries, &wide));
    setenv("RONDO_TIMEOUT", "255", 1);
    NCCL(ncclParamGetU8(retries, &narrow));
    CHECK(narrow == 255, "%d", narrow);
    NCCL(ncclParamGetStr(retries, &text));
    CHECK(strcmp(text, "255") == 0, "%s", text);
    NCCL(ncclParamGet(retries, bytes, (int) sizeof(bytes), &length));
    CHECK(length == 3 && memcmp(bytes, "255", 3) == 0, "%d bytes", length);
    CODE(ncclInvalidArgument, ncclParamGet(retries, bytes, 2, &length));
    unsetenv("RONDO_TIMEOUT");
    NCCL(ncclParamGetParameter("RONDO_ORDER", &text, &length));
    CHECK(strcmp(text, "fifo") == 0 && length == 4, "%s, %d bytes", text, length); /* the default */
    CODE(ncclInvalidArgument, ncclParamGetParameter("RONDO_NO_SUCH", &text, &length));
    NCCL(ncclParamGetAllParameterKeys(&keys, &length));
    for (int i = 0; i < length; i++)
        found += strcmp(keys[i], "RONDO_TIMEOUT") == 0 || strcmp(keys[i], "NCCL_DEBUG") == 0;
    CHECK(found == 2, "%d of 2 keys in %d", found, length);
    CODE(ncclInvalidArgument, ncclParamGetAllParameterKeys(NULL, &length));
    ncclParamDumpAll();
}

static void encryption(void)
{
    ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
    NCCL(ncclSetEncryption(&config));
    config.mode = NCCL_ENCRYPTION_MODE_PSK;
    config.psk = "0123456789abcdef";
    CODE(ncclInvalidUsage, ncclSetEncryption(&config));
    CHECK(strstr(ncclGetLastError(NULL), "RONDO_ENCRYPT") != NULL, "%s", ncclGetLastError(NULL));
    config.mode = 7;
    CODE(ncclInvalidArgument, ncclSetEncryption(&config));
    config.magic++;
    CODE(ncclInvalidArgument, ncclSetEncryption(&config));
    CODE(ncclInvalidArgument, ncclSetEncryption(NULL));
}

/* ---- calls with a config ---- */

static void configs(struct me *me)
{
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    const int n = me->size, sum = n * (n + 1) / 2;
    ncclComm_t c = me->comm;
    cudaStream_t s = me->stream;
    const size_t share = COUNT;
    config.minCTAs = 1;
    config.maxCTAs = 4;
    NCCL(ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    stream_wait(s);
    CHECK(count_wrong(me->recv, sum, share) == 0, "all-reduce");
    NCCL(ncclReduceConfig(me->send, me->recv, share, ncclInt, ncclMax, n - 1, c, s, &config));
    stream_wait(s);
    CHECK(count_wrong(me->recv, me->rank == n - 1 ? n : sum, share) == 0, "reduce");
    NCCL(ncclBroadcastConfig(me->send, me->recv, share, ncclInt, n - 1, c, s, &config));
    stream_wait(s);
    CHECK(count_wrong(me->recv, n, share) == 0, "broadcast");
    NCCL(ncclReduceScatterConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    stream_wait(s);
    CHECK(count_wrong(me->recv, sum, share) == 0, "reduce-scatter");
    NCCL(ncclAllGatherConfig(me->send, me->recv, share, ncclInt, c, s, &config));
    stream_wait(s);
    for (int r = 0; r < n; r++)
        CHECK(count_wrong(me->recv + (size_t) r * share, r + 1, share) == 0, "all-gather of rank %d", r);
    put(me->recv, -1, share * (size_t) n);
    NCCL(ncclAlltoAllConfig(me->send, me->recv, share, ncclInt, c, s, NULL));
    stream_wait(s);
    for (int r = 0; r < n; r++)
        CHECK(count_wrong(me->recv + (size_t) r * share, r + 1, share) == 0, "all-to-all of rank %d", r);
    put(me->recv, -1, share * (size_t) n);
    NCCL(ncclGatherConfig(me->send, me->recv, share, ncclInt, 0, c, s, &config));
    stream_wait(s);
    for (int r = 0; r < n; r++)
        CHECK(count_wrong(me->recv + (size_t) r * share, me->rank == 0 ? r + 1 : -1, share) == 0, "gather of rank %d", r);
    NCCL(ncclScatterConfig(me->send, me->recv, share, ncclInt, 0, c, s, &config));
    stream_wait(s);
    CHECK(count_wrong(me->recv, 1, share) == 0, "scatter");
    /* A choice that must hold, and one that need not. */
    config.algSelection = "ring";
    CODE(ncclInvalidArgument, ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    config.forceAlgSelection = 0;
    NCCL(ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    stream_wait(s);
    config.minCTAs = 5;
    CODE(ncclInvalidArgument, ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    config.minCTAs = NCCL_CONFIG_UNDEF_INT;
    config.magic++;
    CODE(ncclInvalidArgument, ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    config.magic--;
    if (on_host()) {
        config.launchCompletionEvent = (cudaEvent_t) (void *) &config;
        CODE(ncclInvalidUsage, ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
    } else {
        config.launchCompletionEvent = event_create();
        NCCL(ncclAllReduceConfig(me->send, me->recv, share, ncclInt, ncclSum, c, s, &config));
        event_wait_and_destroy(config.launchCompletionEvent);
        stream_wait(s);
    }
}

static void simulation(struct me *me)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER, larger = NCCL_SIM_INFO_INITIALIZER;
    CODE(ncclInvalidUsage, ncclGroupSimulateEnd(&info));
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(me->send, me->recv, 10, ncclInt, ncclSum, me->comm, me->stream));
    NCCL(ncclGroupSimulateEnd(&info));
    CHECK(info.estimatedTime > 0, "%f", (double) info.estimatedTime);
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclInt, ncclSum, me->comm, me->stream));
    NCCL(ncclAllGather(me->send, me->recv, COUNT, ncclInt, me->comm, me->stream));
    NCCL(ncclGroupSimulateEnd(&larger));
    CHECK(larger.estimatedTime > info.estimatedTime, "%f and %f", (double) larger.estimatedTime, (double) info.estimatedTime);
    CHECK(count_wrong(me->recv, -1, COUNT) == 0, "a simulated group has run");
    info.magic++;
    NCCL(ncclGroupStart());
    CODE(ncclInvalidArgument, ncclGroupSimulateEnd(&info));
    NCCL(ncclGroupStart());
    CODE(ncclInvalidArgument, ncclAllReduce(me->send, me->recv, 10, ncclNumTypes, ncclSum, me->comm, me->stream));
    CODE(ncclInvalidArgument, ncclGroupSimulateEnd(NULL));
    check_sum(me->comm, me, "after simulations");
}

/* ---- what a communicator says, and suspending it ---- */

static void properties(struct me *me)
{
    ncclCommProperties_t found = NCCL_COMM_PROPERTIES_INITIALIZER, old = NCCL_COMM_PROPERTIES_INITIALIZER;
    uint64_t total = 0, persistent = 1, suspended = 1;
    NCCL(ncclCommQueryProperties(me->comm, &found));
    CHECK(found.rank == me->rank && found.nRanks == me->size && found.deviceApiSupport == !on_host() && !found.multimemSupport,
          "rank %d of %d", found.rank, found.nRanks);
    CHECK(found.size == sizeof(found) && found.nLsaTeams >= 1, "%zu bytes, %d teams", found.size, found.nLsaTeams);
    /* Where the caller's struct ends, nothing is written. */
    old.size = offsetof(ncclCommProperties_t, nLsaTeams);
    old.nLsaTeams = 77;
    NCCL(ncclCommQueryProperties(me->comm, &old));
    CHECK(old.nRanks == me->size && old.nLsaTeams == 77, "%d teams", old.nLsaTeams);
    old.magic = 0xcafebeef; /* NVIDIA's header, whose device communicators are not Rondo's */
    old.size = sizeof(old);
    NCCL(ncclCommQueryProperties(me->comm, &old));
    CHECK(old.nRanks == me->size && !old.deviceApiSupport, "%d ranks", old.nRanks);
    old.magic = 0;
    CODE(ncclInvalidArgument, ncclCommQueryProperties(me->comm, &old));
    CODE(ncclInvalidArgument, ncclCommQueryProperties(me->comm, NULL));
    CODE(ncclInvalidArgument, ncclCommQueryProperties(NULL, &found));
    ncclTeam_t world = ncclTeamWorld(me->comm), lsa = ncclTeamLsa(me->comm), rail = ncclTeamRail(me->comm);
    CHECK(world.nRanks == me->size && world.rank == me->rank && world.stride == 1, "%d of %d", world.rank, world.nRanks);
    CHECK(lsa.nRanks * rail.nRanks == me->size && rail.stride == lsa.nRanks, "%d by %d", lsa.nRanks, rail.nRanks);
    CHECK(ncclTeamRankToWorld(me->comm, world, me->size - 1) == me->size - 1, "the last rank");
    CHECK(ncclTeamRankToWorld(me->comm, rail, rail.rank) == me->rank, "the rail's rank");
    CHECK(ncclTeamRankToWorld(me->comm, world, me->size) == -1, "a rank that is not");
    CHECK(ncclTeamRankToLsa(me->comm, lsa, lsa.rank) == lsa.rank, "the LSA rank");
    CHECK(ncclTeamWorld(NULL).nRanks == 0, "a team of no communicator");
    check_sum(me->comm, me, "before suspending");
    NCCL(ncclCommMemStats(me->comm, ncclStatGpuMemTotal, &total));
    NCCL(ncclCommMemStats(me->comm, ncclStatGpuMemPersist, &persistent));
    NCCL(ncclCommMemStats(me->comm, ncclStatGpuMemSuspended, &suspended));
    CHECK(total == persistent && suspended == 0 && (total > 0 || me->size == 1), "%llu bytes", (unsigned long long) total);
    CODE(ncclInvalidArgument, ncclCommMemStats(me->comm, (ncclCommMemStat_t) 4, &total));
    CODE(ncclInvalidArgument, ncclCommMemStats(me->comm, ncclStatGpuMemTotal, NULL));
    CODE(ncclInvalidArgument, ncclCommSuspend(me->comm, 0));
    CODE(ncclInvalidUsage, ncclCommResume(me->comm));
    /* The stream is idle once its thread has let the communicator go. */
    ncclResult_t result;
    double start = now();
    while ((result = ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM)) == ncclInvalidUsage && now() - start < 20)
        ;
    NCCL(result);
    NCCL(ncclCommMemStats(me->comm, ncclStatGpuMemSuspended, &suspended));
    CHECK(suspended == 1, "%llu", (unsigned long long) suspended);
    CODE(ncclInvalidUsage, ncclAllReduce(me->send, me->recv, 1, ncclInt, ncclSum, me->comm, me->stream));
    CHECK(strstr(ncclGetLastError(NULL), "suspended") != NULL || ranks > 1, "%s", ncclGetLastError(NULL));
    CODE(ncclInvalidUsage, ncclCommSuspend(me->comm, NCCL_SUSPEND_MEM));
    NCCL(ncclCommResume(me->comm));
    check_sum(me->comm, me, "resumed");
}

/* ---- growing ---- */

/* All ranks but the last have a communicator, which grows by the last one. */
static void grow(struct me *me)
{
    const int last = me->size - 1, old_size = me->size - 1;
    ncclUniqueId id, second;
    ncclComm_t old = NULL, grown = NULL;
    NCCL(ncclCommSplit(me->comm, me->rank == last ? NCCL_SPLIT_NOCOLOR : 0, me->rank, &old, NULL));
    if (me->rank == old_size - 1) { /* any old rank may give the id */
        NCCL(ncclCommGetUniqueId(old, &id));
        CODE(ncclInvalidUsage, ncclCommGetUniqueId(old, &second));
        memset(&second, 1, sizeof(second));
        CODE(ncclInvalidArgument, ncclCommGrow(old, me->size, &second, -1, &grown, NULL));
        device_put(me->send, &id, sizeof(id));
    }
    if (old != NULL) {
        CODE(ncclInvalidArgument, ncclCommGrow(old, old_size, NULL, -1, &grown, NULL));
        CODE(ncclInvalidArgument, ncclCommGrow(old, me->size, NULL, me->rank, &grown, NULL));
        CODE(ncclInvalidArgument, ncclCommGrow(old, me->size, NULL, -1, NULL, NULL));
    }
    CODE(ncclInvalidArgument, ncclCommGrow(NULL, me->size, NULL, last, &grown, NULL));
    CODE(ncclInvalidArgument, ncclCommGetUniqueId(NULL, &id));
    NCCL(ncclBroadcast(me->send, me->send, sizeof(id), ncclChar, old_size - 1, me->comm, me->stream));
    stream_wait(me->stream);
    if (me->rank == last) {
        device_get(&id, me->send, sizeof(id));
        NCCL(ncclCommGrow(NULL, me->size, &id, last, &grown, NULL));
    } else {
        NCCL(ncclCommGrow(old, me->size, me->rank == old_size - 1 ? &id : NULL, -1, &grown, NULL));
    }
    int rank = -1;
    NCCL(ncclCommUserRank(grown, &rank));
    CHECK(rank == me->rank, "rank %d instead of %d", rank, me->rank);
    check_sum(grown, me, "grown");
    if (old != NULL) {
        check_sum(old, me, "the old one");
        if (me->rank == old_size - 1)
            NCCL(ncclCommGetUniqueId(old, &second)); /* the first one is used */
        NCCL(ncclCommDestroy(old));
    }
    check_sum(grown, me, "without the old one");
    NCCL(ncclCommDestroy(grown));
}

/* Ranks that do not agree get an error on all of them. */
static void grow_apart(struct me *me)
{
    ncclComm_t grown = NULL;
    CODE(ncclInvalidArgument, ncclCommGrow(me->comm, me->size + 1, NULL, -1, &grown, NULL));
    CHECK(grown == NULL, "a communicator is left");
    CODE(ncclInvalidArgument, ncclCommGrow(me->comm, me->size + 1 + me->rank, NULL, -1, &grown, NULL));
    check_sum(me->comm, me, "after growing has failed");
}

/* ---- windows and one-sided communication ---- */

static void pointers(struct me *me)
{
    const size_t bytes = COUNT * sizeof(int);
    ncclWindow_t window = NULL, plain = NULL;
    void *found = NULL;
    int *own = NULL;
    NCCL(ncclMemAlloc((void **) &own, bytes));
    put(own, me->rank + 1, COUNT);
    NCCL(ncclCommWindowRegister(me->comm, own, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(me->comm, own, bytes, &plain, NCCL_WIN_DEFAULT));
    NCCL(ncclWinGetUserPtr(me->comm, window, &found));
    CHECK(found == own, "%p is not %p", found, (void *) own);
    CODE(ncclInvalidArgument, ncclWinGetUserPtr(me->comm, (ncclWindow_t) (void *) &found, &found));
    CODE(ncclInvalidArgument, ncclWinGetUserPtr(me->comm, window, NULL));
    NCCL(ncclGetPeerDevicePointer(window, sizeof(int), me->rank, &found));
    CHECK(found == own + 1, "%p", found);
    if (ncclTeamLsa(me->comm).nRanks == me->size) /* else their GPUs do not reach each other */
        for (int r = 0; r < me->size; r++) {
            void *same = NULL;
            NCCL(ncclGetPeerDevicePointer(window, 0, r, &found));
            NCCL(ncclGetLsaDevicePointer(window, 0, r, &same));
            CHECK(found == same, "%p is not %p", found, same);
            CHECK(count_wrong(found, r + 1, COUNT) == 0, "the window of rank %d", r);
        }
    CHECK(ncclTeamLsa(me->comm).nRanks == me->size || !on_host(), "ranks of one process");
    CODE(ncclInvalidArgument, ncclGetPeerDevicePointer(window, bytes + 1, 0, &found));
    CODE(ncclInvalidArgument, ncclGetPeerDevicePointer(window, 0, me->size, &found));
    CODE(ncclInvalidArgument, ncclGetLsaDevicePointer(window, 0, -1, &found));
    CODE(ncclInvalidArgument, ncclGetPeerDevicePointer(window, 0, 0, NULL));
    CODE(ncclInvalidArgument, ncclGetPeerDevicePointer(plain, 0, 0, &found));
    check_sum(me->comm, me, "all have looked");
    NCCL(ncclCommWindowDeregister(me->comm, window));
    CODE(ncclInvalidArgument, ncclGetPeerDevicePointer(window, 0, 0, &found));
    NCCL(ncclCommWindowDeregister(me->comm, plain));
    check_sum(me->comm, me, "no window is left");
    NCCL(ncclMemFree(own));
}

/* A communicator whose config asks for no multiprocessors: what windows allow is moved by copy engines, the rest by kernels. */
static void zero_policy(struct me *me)
{
    const size_t n = (size_t) me->size, bytes = COUNT * n * sizeof(int);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclWindow_t from_window = NULL, to_window = NULL;
    int *from = NULL, *to = NULL;
    if (me->rank == 0) {
        NCCL(ncclGetUniqueId(&id));
        device_put(me->send, &id, sizeof(id));
    }
    NCCL(ncclBroadcast(me->send, me->send, sizeof(id), ncclChar, 0, me->comm, me->stream));
    stream_wait(me->stream);
    device_get(&id, me->send, sizeof(id));
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
    config.maxCTAs = 4;
    NCCL(ncclCommInitRankConfig(&comm, me->size, id, me->rank, &config));
    NCCL(ncclMemAlloc((void **) &from, bytes));
    NCCL(ncclMemAlloc((void **) &to, bytes));
    NCCL(ncclCommWindowRegister(comm, from, bytes, &from_window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclCommWindowRegister(comm, to, bytes, &to_window, NCCL_WIN_COLL_SYMMETRIC));
    for (int round = 0; round < 3; round++) {
        for (int r = 0; r < me->size; r++)
            put(from + (size_t) r * COUNT, 1000 * round + 10 * me->rank + r, COUNT);
        NCCL(ncclAlltoAll(from, to, COUNT, ncclInt, comm, me->stream));
        stream_wait(me->stream);
        for (int r = 0; r < me->size; r++)
            CHECK(count_wrong(to + (size_t) r * COUNT, 1000 * round + 10 * r + me->rank, COUNT) == 0, "all-to-all of rank %d",
                  r);
        NCCL(ncclAllGather(from + COUNT, to, COUNT / 2, ncclInt, comm, me->stream)); /* not from the window's start */
        stream_wait(me->stream);
        for (int r = 0; r < me->size; r++)
            CHECK(count_wrong(to + (size_t) r * (COUNT / 2), 1000 * round + 10 * r + 1, COUNT / 2) == 0,
                  "all-gather of rank %d", r);
        put(to + (size_t) me->rank * COUNT, 7000 + me->rank, COUNT);
        NCCL(ncclAllGather(to + (size_t) me->rank * COUNT, to, COUNT, ncclInt, comm, me->stream));
        NCCL(ncclAllReduce(from, from, COUNT, ncclInt, ncclMax, comm, me->stream));
        NCCL(ncclBroadcast(from, from, COUNT, ncclInt, me->size - 1, comm, me->stream));
        stream_wait(me->stream);
        for (int r = 0; r < me->size; r++)
            CHECK(count_wrong(to + (size_t) r * COUNT, 7000 + r, COUNT) == 0, "all-gather in place of rank %d", r);
        CHECK(count_wrong(from, 1000 * round + 10 * (me->size - 1), COUNT) == 0, "all-reduce and broadcast");
        check_sum(me->comm, me, "before the next round");
    }
    NCCL(ncclCommWindowDeregister(comm, from_window));
    NCCL(ncclCommWindowDeregister(comm, to_window));
    check_sum(me->comm, me, "no window is left");
    NCCL(ncclCommDestroy(comm));
    check_sum(me->comm, me, "no rank launches any more what another waits for");
    NCCL(ncclMemFree(from));
    NCCL(ncclMemFree(to));
}

/* Round after round each rank puts into the next one's window, which signals back that it has read. */
static void puts_and_signals(struct me *me)
{
    const size_t bytes = COUNT * sizeof(int);
    const int next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    ncclWaitSignalDesc_t data = {1, previous, 0, 0}, room = {1, next, 3, 1}, two = {2, me->rank, 5, 0};
    ncclWindow_t window = NULL;
    int *own = NULL;
    NCCL(ncclMemAlloc((void **) &own, bytes));
    put(own, -1, COUNT);
    CODE(ncclInvalidUsage, ncclSignal(next, 0, 0, 0, me->comm, me->stream)); /* there is no window yet, or a GPU */
    NCCL(ncclCommWindowRegister(me->comm, own, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    CODE(ncclInvalidArgument, ncclSignal(me->size, 0, 0, 0, me->comm, me->stream));
    CODE(ncclInvalidArgument, ncclSignal(next, 1000, 0, 0, me->comm, me->stream));
    CODE(ncclInvalidArgument, ncclSignal(next, 0, 0, 1, me->comm, me->stream));
    CODE(ncclInvalidArgument, ncclWaitSignal(1, NULL, me->comm, me->stream));
    if (!on_host()) {
        CODE(ncclInvalidUsage, ncclPutSignal(me->send, 1, ncclInt, next, window, 0, 0, 0, 0, me->comm, me->stream));
        CODE(ncclInvalidUsage, ncclWaitSignal(1, &data, me->comm, me->stream));
    } else {
        CODE(ncclInvalidArgument, ncclPutSignal(NULL, 1, ncclInt, next, window, 0, 0, 0, 0, me->comm, me->stream));
        CODE(ncclInvalidArgument, ncclPutSignal(me->send, 1, ncclInt, next, NULL, 0, 0, 0, 0, me->comm, me->stream));
        CODE(ncclInvalidArgument, ncclPutSignal(me->send, COUNT, ncclInt, next, window, 1, 0, 0, 0, me->comm, me->stream));
        for (int round = 0; round < 50; round++) {
            put(me->send, 100 * round + me->rank, COUNT);
            NCCL(ncclPutSignal(me->send, COUNT - 1, ncclInt, next, window, sizeof(int), 0, 0, 0, me->comm, me->stream));
            NCCL(ncclWaitSignal(1, &data, me->comm, me->stream));
            stream_wait(me->stream);
            CHECK(count_wrong(own + 1, 100 * round + previous, COUNT - 1) == 0, "round %d", round);
            CHECK(own[0] == -1, "the element before the offset is %d", own[0]);
            NCCL(ncclSignal(previous, 3, 1, 0, me->comm, me->stream));
            NCCL(ncclWaitSignal(1, &room, me->comm, me->stream));
        }
        /* To oneself, and in one group with what is waited for. */
        NCCL(ncclGroupStart());
        NCCL(ncclWaitSignal(1, &two, me->comm, me->stream));
        NCCL(ncclSignal(me->rank, 5, 0, 0, me->comm, me->stream));
        NCCL(ncclSignal(me->rank, 5, 0, 0, me->comm, me->stream));
        NCCL(ncclAllReduce(me->send, me->recv, COUNT, ncclInt, ncclSum, me->comm, me->stream));
        NCCL(ncclGroupEnd());
        stream_wait(me->stream);
        check_sum(me->comm, me, "after signals");
    }
    NCCL(ncclCommWindowDeregister(me->comm, window));
    check_sum(me->comm, me, "no window is left");
    NCCL(ncclMemFree(own));
}

/* A wait for what never comes ends with the communicator. */
static pthread_barrier_t all_ranks;

/* An abort ends what is under way on other ranks, too, so all have done with the sum and begun to wait before the first one. */
static void signals_aborted(struct me *me)
{
    ncclWaitSignalDesc_t never = {1, (me->rank + 1) % me->size, 0, 0};
    ncclWindow_t window = NULL;
    if (!on_host())
        return;
    NCCL(ncclCommWindowRegister(me->comm, me->recv, COUNT * sizeof(int), &window, NCCL_WIN_COLL_SYMMETRIC));
    check_sum(me->comm, me, "before");
    NCCL(ncclWaitSignal(1, &never, me->comm, me->stream));
    pthread_barrier_wait(&all_ranks);
    NCCL(ncclCommAbort(me->comm));
    me->comm = NULL;
    CHECK(stream_wait_for(me->stream, 20), "the wait has not ended");
}

/* ---- */

struct scenario {
    const char *name;
    void (*alone)(void);
    void (*together)(struct me *me);
    int least; /* the fewest ranks that it needs */
};

static const struct scenario scenarios[] = {
    {"parameters", parameters, NULL, 1},
    {"encryption", encryption, NULL, 1},
    {"configs", NULL, configs, 1},
    {"simulation", NULL, simulation, 1},
    {"properties", NULL, properties, 1},
    {"grow", NULL, grow, 2},
    {"grow_apart", NULL, grow_apart, 2},
    {"pointers", NULL, pointers, 1},
    {"zero_policy", NULL, zero_policy, 2},
    {"puts_and_signals", NULL, puts_and_signals, 1},
    {"signals_aborted", NULL, signals_aborted, 2},
};

struct scenario_argument {
    const struct scenario *scenario;
    ncclUniqueId id;
};

static void thread_main(int rank, void *argument)
{
    const struct scenario_argument *given = argument;
    struct me me = {.rank = rank, .size = ranks, .stream = NULL};
    const size_t count = COUNT * (size_t) ranks;
    use_device(rank);
    me.stream = stream_create();
    me.send = device_allocate(count * sizeof(int));
    me.recv = device_allocate(count * sizeof(int));
    put(me.send, rank + 1, count);
    put(me.recv, -1, count);
    me.comm = join(&given->id, rank, ranks);
    given->scenario->together(&me);
    if (me.comm != NULL)
        NCCL(ncclCommDestroy(me.comm));
    stream_destroy(me.stream);
    device_free_at_end(me.send);
    device_free_at_end(me.recv);
}

int main(int argc, char **argv)
{
    const char *only = parse_scenario(argc, argv, &ranks);
    watch();
    pthread_barrier_init(&all_ranks, NULL, (unsigned) ranks);
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        struct scenario_argument argument = {.scenario = &scenarios[i]};
        if ((only != NULL && strcmp(only, scenarios[i].name) != 0) || ranks < scenarios[i].least)
            continue;
        double before = now();
        if (scenarios[i].alone != NULL) {
            scenarios[i].alone();
        } else {
            NCCL(ncclGetUniqueId(&argument.id));
            run_threads(ranks, thread_main, &argument);
        }
        printf("%s: %.2f s\n", scenarios[i].name, now() - before);
        fflush(stdout);
    }
    pthread_barrier_destroy(&all_ranks);
    return finish("newer");
}
