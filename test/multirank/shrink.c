/*
 * Communicators of the remaining ranks of another one (rondo_comm_shrink), which is intact, aborted, or has a rank that hangs;
 * the state that they report (rondo_comm_status); and the in-place reduce-scatter in NCCL's form, on buffers of the device.
 */
#include "test/multirank/ranks.h"

#include <stdlib.h>

static long ranks = 3;

static void good(rondo_comm_t comm, int size)
{
    int64_t sum = 0;
    int counted;
    MUST(rondo_comm_size(comm, &counted));
    CHECK(counted == size, "%d ranks, not %d", counted, size);
    MUST(ranks_sum(comm, 1, &sum));
    CHECK(sum == size, "sum %lld of %d ranks", (long long) sum, size);
}

static void await_idle(rondo_comm_t comm)
{
    rondo_result_t failure;
    int idle = 0;
    for (double end = ranks_seconds() + 10; !idle && ranks_seconds() < end; ranks_sleep(0.001))
        MUST(rondo_comm_status(comm, &failure, &idle));
    CHECK(idle, "operations go on");
}

static void bad_calls(struct rank *me)
{
    rondo_comm_t made;
    int all[64], other = (me->rank + 1) % me->size;
    for (int i = 0; i < 64; i++)
        all[i] = i;
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(NULL, all, 0, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(me->world, NULL, 1, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_shrink(me->world, &other, 1, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "ranks are to be excluded", rondo_comm_shrink(me->world, all, me->size, &made));
    if (me->size > 1)
        EXPECT(RONDO_ERR_ARGUMENT, "excludes rank", rondo_comm_shrink(me->world, &me->rank, 1, &made));
    EXPECT(RONDO_ERR_ARGUMENT, "NULL", rondo_comm_status(NULL, NULL, NULL));
}

/* The last rank does nothing but wait until the others have finished: when it leaves, every communicator that it belongs to
 * fails. */
static void rest(struct rank *me)
{
    int last = me->size - 1, idle;
    rondo_comm_t first = NULL, second = NULL, third = NULL;
    rondo_request_t request;
    rondo_result_t failure;
    float in = 1, out = 0;
    if (me->rank == last)
        return;
    MUST(rondo_comm_shrink(me->world, &last, 1, &first));
    good(first, me->size - 1);
    MUST(rondo_comm_shrink(me->world, &last, 1, &second)); /* a second communicator of the same ranks */
    good(second, me->size - 1);
    good(first, me->size - 1);
    await_idle(first);
    MUST(rondo_comm_status(first, &failure, &idle));
    CHECK(failure == RONDO_SUCCESS, "%s", rondo_last_error());
    MUST(rondo_comm_free(&second));
    /* On the host device these are the buffers; the operation never begins. */
    if (ranks_device() == RONDO_DEVICE_HOST) {
        MUST(rondo_iallreduce(&in, &out, 1, RONDO_FLOAT, RONDO_SUM, me->world, &request));
        MUST(rondo_comm_status(me->world, &failure, &idle));
        CHECK(failure == RONDO_SUCCESS && !idle, "an operation that waits for the last rank: failure %d, idle %d",
              (int) failure, idle);
        MUST(rondo_barrier(first)); /* all ranks have started it */
        MUST(rondo_comm_abort(me->world, 7));
        EXPECT(RONDO_ERR_ABORTED, "aborted", rondo_wait(request));
        MUST(rondo_comm_status(me->world, &failure, NULL));
        CHECK(failure == RONDO_ERR_ABORTED, "failure %d", (int) failure);
        await_idle(me->world);
    }
    MUST(rondo_comm_shrink(me->world, &last, 1, &third)); /* from a communicator that has failed */
    good(third, me->size - 1);
    MUST(rondo_comm_free(&third));
    MUST(rondo_comm_free(&first));
}

/* The result replaces the rank's own block of the input. */
static void own_block(struct rank *me)
{
    static const size_t counts[] = {1, 3, 1000, 4099, 70001};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        size_t count = counts[c], all = count * (size_t) me->size, wrong = 0;
        int32_t *host = malloc(all * sizeof(*host)), *device = ranks_allocate(all * sizeof(*host));
        for (size_t i = 0; i < all; i++)
            host[i] = (int32_t) i + me->rank;
        ranks_put(device, host, all * sizeof(*host));
        MUST(rondo_reduce_scatter_block(device, device + (size_t) me->rank * count, count, RONDO_INT32, RONDO_SUM, me->world));
        ranks_get(host, device, all * sizeof(*host));
        for (size_t i = 0; i < all; i++) {
            int mine = i / count == (size_t) me->rank;
            int32_t sum = (int32_t) i * me->size + me->size * (me->size - 1) / 2;
            wrong += host[i] != (mine ? sum : (int32_t) i + me->rank);
        }
        CHECK(wrong == 0, "%zu of %zu elements are wrong for %zu a rank", wrong, all, count);
        int32_t *beside = device + (size_t) me->rank * count + (me->rank == 0 ? 1 : -1);
        if (me->size > 1 && count > 1)
            EXPECT(RONDO_ERR_BUFFER, "overlap",
                   rondo_reduce_scatter_block(device, beside, count, RONDO_INT32, RONDO_SUM, me->world));
        free(host);
        ranks_release(device);
    }
}

/* Waits until all ranks have finished. A rank whose world has failed leaves without waiting for the others, and what they have
 * not ended by then fails. Threads therefore wait for each other's last operation; processes give each other half a second. */
static void await_all(const struct rank *me)
{
    static int out;
    int apart = ranks == 0;
    __atomic_add_fetch(&out, 1, __ATOMIC_ACQ_REL);
    for (double end = ranks_seconds() + (apart ? 0.5 : 10); ranks_seconds() < end; ranks_sleep(0.001))
        if (!apart && __atomic_load_n(&out, __ATOMIC_ACQUIRE) >= me->size)
            break;
}

static void member(struct rank *me)
{
    rondo_comm_t all;
    own_block(me);
    bad_calls(me);
    if (me->size > 1) {
        MUST(rondo_comm_dup(me->world, &all));
        rest(me);
        MUST(rondo_barrier(all));
        await_all(me);
        MUST(rondo_comm_free(&all));
    }
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {{"--ranks", &ranks, NULL, "ranks as threads; 0: the environment says"}};
    ranks_parse(argc, argv, options, 1);
    ranks_run((int) ranks, NULL, member, NULL);
    return ranks_finish("shrink");
}
