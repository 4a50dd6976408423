/*
 * Calls that move nothing: all ranks know it, so each is over as soon as it is made, waits for no other rank, and leaves the
 * matching of all other calls as it is. With RONDO_CHECK=1 they are compared like other calls. Calls of which a rank cannot
 * know whether others move something are made as ever.
 */
#include "test/multirank/ranks.h"

#include <stdlib.h>
#include <string.h>

static long ranks = 3, seed = 1, rounds = 200;

enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
enum { KINDS = 13, AT_ONCE = 8 };

static const size_t zeros[64];

#define FORM(name, ...)                                                                                                        \
    (form == BLOCKING      ? rondo_##name(__VA_ARGS__)                                                                         \
     : form == NONBLOCKING ? rondo_i##name(__VA_ARGS__, request)                                                               \
                           : rondo_##name##_init(__VA_ARGS__, NULL, request))

/* One of the calls without elements, with buffers or without. */
static rondo_result_t call_nothing(int kind, enum form form, rondo_comm_t comm, int root, rondo_request_t *request)
{
    static _Thread_local float in[1], out[1];
    const void *send = root % 2 == 0 ? in : NULL;
    void *recv = root % 2 == 0 ? out : NULL;
    switch (kind) {
    case 0:
        return FORM(allreduce, send, recv, 0, RONDO_FLOAT, RONDO_SUM, comm);
    case 1:
        return FORM(reduce, send, recv, 0, RONDO_FLOAT, RONDO_SUM, root, comm);
    case 2:
        return FORM(bcast, recv, 0, RONDO_FLOAT, root, comm);
    case 3:
        return FORM(allgather, send, recv, 0, RONDO_FLOAT, comm);
    case 4:
        return FORM(alltoall, send, recv, 0, RONDO_FLOAT, comm);
    case 5:
        return FORM(gather, send, recv, 0, RONDO_FLOAT, root, comm);
    case 6:
        return FORM(scatter, send, recv, 0, RONDO_FLOAT, root, comm);
    case 7:
        return FORM(scan, send, recv, 0, RONDO_FLOAT, RONDO_SUM, comm);
    case 8:
        return FORM(exscan, send, recv, 0, RONDO_FLOAT, RONDO_SUM, comm);
    case 9:
        return FORM(reduce_scatter_block, send, recv, 0, RONDO_FLOAT, RONDO_SUM, comm);
    case 10:
        return FORM(reduce_scatter, send, recv, zeros, RONDO_FLOAT, RONDO_SUM, comm);
    case 11:
        return FORM(allgatherv, send, 0, recv, zeros, zeros, RONDO_FLOAT, comm);
    default:
        return FORM(allreduce, RONDO_IN_PLACE, recv, 0, RONDO_FLOAT, RONDO_MAX, comm);
    }
}

static uint64_t submitted(const struct rank *me)
{
    rondo_stats_t stats;
    MUST(rondo_get_stats(me->runtime, &stats));
    return stats.submitted;
}

static void compare_sum(int64_t got, long round, int size)
{
    const int64_t expected = (int64_t) size * (size - 1) / 2 + (int64_t) size * round;
    CHECK(got == expected, "round %ld: the sum is %lld instead of %lld", round, (long long) got, (long long) expected);
}

/* One rank makes all the calls while the others wait for it to send a message. */
static void alone(const struct rank *me)
{
    char word = 0;
    const uint64_t before = submitted(me);
    rondo_request_t request;
    for (int kind = 0; me->rank == 0 && kind < KINDS; kind++) {
        STEP("rank 0 alone, call %d", kind);
        MUST(call_nothing(kind, BLOCKING, me->world, 0, NULL));
        MUST(call_nothing(kind, NONBLOCKING, me->world, 1 % me->size, &request));
        MUST(rondo_wait(request));
        EXPECT(RONDO_ERR_STATE, "freed", rondo_wait(request));
    }
    CHECK(submitted(me) == before, "calls without elements were given to the device: %llu",
          (unsigned long long) (submitted(me) - before));
    for (int rank = 1; rank < me->size; rank++) {
        if (me->rank == 0)
            MUST(rondo_send(&word, 1, RONDO_UINT8, rank, me->world));
        else if (me->rank == rank)
            MUST(rondo_recv(&word, 1, RONDO_UINT8, 0, me->world));
    }
    for (int kind = 0; me->rank != 0 && kind < KINDS; kind++) {
        STEP("the others, call %d", kind);
        MUST(call_nothing(kind, NONBLOCKING, me->world, 1 % me->size, &request));
        MUST(call_nothing(kind, BLOCKING, me->world, 0, NULL));
        MUST(rondo_wait(request));
    }
}

static void note(void *called, rondo_result_t result)
{
    CHECK(result == RONDO_SUCCESS, "%s", rondo_strerror((int) result));
    __atomic_store_n((int *) called, 1, __ATOMIC_RELEASE);
}

static void shuffle(int order[AT_ONCE], uint64_t *own)
{
    for (int i = 0; i < AT_ONCE; i++) {
        const int at = ranks_below(own, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
}

/* Some calls at once, with and without elements, which each rank waits for in an order of its own. */
static void mixed(const struct rank *me, uint64_t *common, uint64_t *own, long round)
{
    rondo_request_t requests[AT_ONCE];
    int64_t in[AT_ONCE], out[AT_ONCE];
    int moves[AT_ONCE], order[AT_ONCE], called = 0;
    const int in_group = ranks_below(common, 6) == 0;
    if (in_group)
        MUST(rondo_group_start(me->world));
    for (int i = 0; i < AT_ONCE; i++) {
        const int kind = ranks_below(common, KINDS), root = ranks_below(common, me->size);
        moves[i] = ranks_below(common, 2);
        in[i] = me->rank + round, out[i] = -1;
        STEP("round %ld, call %d, %s", round, i, moves[i] ? "a sum" : "nothing");
        if (moves[i])
            MUST(rondo_iallreduce(&in[i], &out[i], 1, RONDO_INT64, RONDO_SUM, me->world, &requests[i]));
        else
            MUST(call_nothing(kind, NONBLOCKING, me->world, root, &requests[i]));
    }
    if (in_group)
        MUST(rondo_group_end(me->world));
    shuffle(order, own);
    for (int at = 0; at < AT_ONCE; at++) {
        const int i = order[at], watched = at == 0 && !in_group;
        if (watched)
            MUST(rondo_request_callback(requests[i], note, &called));
        MUST(rondo_wait(requests[i]));
        while (watched && !__atomic_load_n(&called, __ATOMIC_ACQUIRE))
            ranks_sleep(0.0001);
        if (moves[i])
            compare_sum(out[i], round, me->size);
    }
}

/* Persistent ones, made in one order and started in another on each rank. */
static void persistent(const struct rank *me, uint64_t *common, uint64_t *own)
{
    rondo_request_t requests[AT_ONCE];
    int64_t in[AT_ONCE], out[AT_ONCE];
    int moves[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        moves[i] = ranks_below(common, 2);
        STEP("init %d, %s", i, moves[i] ? "a sum" : "nothing");
        if (moves[i])
            MUST(rondo_allreduce_init(&in[i], &out[i], 1, RONDO_INT64, RONDO_SUM, me->world, NULL, &requests[i]));
        else
            MUST(call_nothing(ranks_below(common, KINDS), PERSISTENT, me->world, 0, &requests[i]));
    }
    for (int round = 0; round < 5; round++) {
        int order[AT_ONCE];
        shuffle(order, own);
        for (int i = 0; i < AT_ONCE; i++) {
            in[i] = me->rank + round, out[i] = -1;
        }
        for (int i = 0; i < AT_ONCE; i++) {
            STEP("round %d, start of %d", round, order[i]);
            MUST(rondo_start(requests[order[i]]));
            if (ranks_below(own, 2) == 0)
                MUST(call_nothing(ranks_below(own, KINDS), BLOCKING, me->world, 0, NULL)); /* on this rank alone */
        }
        for (int i = 0; i < AT_ONCE; i++) {
            MUST(rondo_wait(requests[i]));
            if (moves[i])
                compare_sum(out[i], round, me->size);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        MUST(rondo_request_free(&requests[i]));
}

/* Arguments are checked as ever, and a communicator that has failed says so. */
static void errors(const struct rank *me, rondo_comm_t comm)
{
    rondo_request_t request;
    EXPECT(RONDO_ERR_ARGUMENT, "unknown operator", rondo_allreduce(NULL, NULL, 0, RONDO_FLOAT, RONDO_OP_COUNT, comm));
    EXPECT(RONDO_ERR_ARGUMENT, "not a rank", rondo_bcast(NULL, 0, RONDO_FLOAT, me->size, comm));
    EXPECT(RONDO_ERR_ARGUMENT, "unknown datatype", rondo_iallgather(NULL, NULL, 0, RONDO_DATATYPE_NONE, comm, &request));
    MUST(rondo_barrier(me->world)); /* not of comm: an abort may come before the last rank has left it */
    if (me->rank == me->size - 1)
        MUST(rondo_comm_abort(comm, 7));
    STEP("the others hear of the failure");
    while (call_nothing(0, BLOCKING, comm, 0, NULL) == RONDO_SUCCESS)
        ranks_sleep(0.0001);
    for (int kind = 0; kind < KINDS; kind++) {
        EXPECT(RONDO_ERR_ABORTED, "abort", call_nothing(kind, BLOCKING, comm, 0, NULL));
        EXPECT(RONDO_ERR_ABORTED, "abort", call_nothing(kind, NONBLOCKING, comm, 0, &request));
        CHECK(request == NULL, "a request of a call that has failed");
    }
}

static void run(struct rank *me)
{
    const char *check = getenv("RONDO_CHECK");
    const int compared = check != NULL && strcmp(check, "0") != 0;
    uint64_t common = (uint64_t) seed, own = (uint64_t) seed << 32 ^ (uint64_t) me->rank;
    rondo_comm_t comm;
    if (!compared)
        alone(me);
    for (long round = 0; round < rounds; round++)
        mixed(me, &common, &own, round);
    if (!compared)
        for (int i = 0; i < 4; i++)
            persistent(me, &common, &own);
    MUST(rondo_comm_dup(me->world, &comm));
    errors(me, comm);
    MUST(rondo_barrier(me->world));
    MUST(rondo_comm_free(&comm));
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--seed", &seed, NULL, "of the calls and their order"},
        {"--rounds", &rounds, NULL, "of mixed calls"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("zero_count");
}
