/*
 * A buffer belongs to the user again when its operation has ended: each buffer is overwritten at once, and the peers must have
 * received the data from before. Over a network, data may be sent from the user's buffer (zero-copy send), and a slow link
 * keeps it there for long.
 */
#include "test/multirank/ranks.h"

#include <stdlib.h>
#include <string.h>

static long ranks = 2, count = 300000, rounds = 4;

static int64_t element(int from, long round, long i)
{
    return (int64_t) (ranks_hash((uint64_t) from << 48 ^ (uint64_t) round << 32 ^ (uint64_t) i) >> 8);
}

static void fill(int64_t *data, int from, long round)
{
    for (long i = 0; i < count; i++)
        data[i] = element(from, round, i);
}

static long differs(const int64_t *data, const struct rank *me, int from, long round, int sum)
{
    long wrong = 0;
    for (long i = 0; i < count; i++) {
        int64_t expected = sum ? 0 : element(from, round, i);
        for (int rank = 0; sum && rank < me->size; rank++)
            expected += element(rank, round, i);
        wrong += data[i] != expected;
    }
    return wrong;
}

static void overwrite(int64_t *data)
{
    memset(data, 0x5a, (size_t) count * sizeof(*data));
}

/* Messages to the next rank and from the previous one: a send may end long before its message has arrived. */
static void messages(struct rank *me, int64_t *out, int64_t *in, long round)
{
    int next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    rondo_request_t send, receive;
    fill(out, me->rank, round);
    STEP("message %ld", round);
    MUST(rondo_irecv(in, (size_t) count, RONDO_INT64, previous, me->world, &receive));
    MUST(rondo_isend(out, (size_t) count, RONDO_INT64, next, me->world, &send));
    MUST(rondo_wait(send));
    overwrite(out);
    MUST(rondo_wait(receive));
    long wrong = differs(in, me, previous, round, 0);
    CHECK(wrong == 0, "round %ld: %ld of a message's %ld elements wrong", round, wrong, count);
}

static void all_reduce(struct rank *me, int64_t *out, int64_t *in, long round)
{
    fill(out, me->rank, round);
    STEP("all-reduce %ld", round);
    MUST(rondo_allreduce(out, in, (size_t) count, RONDO_INT64, RONDO_SUM, me->world));
    overwrite(out);
    long wrong = differs(in, me, 0, round, 1);
    CHECK(wrong == 0, "round %ld: %ld of a sum's %ld elements wrong", round, wrong, count);
}

static void run(struct rank *me)
{
    int64_t *out = malloc((size_t) count * sizeof(*out)), *in = malloc((size_t) count * sizeof(*in));
    for (long round = 0; round < rounds; round++) {
        messages(me, out, in, round);
        all_reduce(me, out, in, round);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads, at least 2; 0: from the environment"},
        {"--count", &count, NULL, "elements"},
        {"--rounds", &rounds, NULL, "of a message and an all-reduce"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("reuse");
}
