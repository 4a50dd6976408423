/*
 * Repeated calls: the same again, with other buffers, or with one thing changed. What the request cache
 * (lib/submission/request_cache.h) keeps of one call must be right for the next one, on every rank, whatever the form, and
 * whichever call a rank waited for last, which is the one that it caches. Programs are registered meanwhile, after which all
 * ranks must choose anew.
 */
#include "rondo_program.h"

#include "test/multirank/trial.h"

static long ranks = 4, seed = 1, rounds = 400, max_count = 9000, in_turn = 0;

/* The call itself, the same with other buffers, and calls that differ from it in one more thing. */
enum variant { AS_IT_IS, ELSEWHERE, OTHER_COUNT, OTHER_ROOT, OTHER_PLACE, OTHER_OP, OTHER_TYPE, VARIANTS };
enum { GROUPED = 2 };
enum { SHORT = 3, LONG = 40 }; /* messages */

static const enum collective shapes[] = {ALLREDUCE /* programs' */,
                                         REDUCE_SCATTER_BLOCK,
                                         ALLGATHER,
                                         BCAST,
                                         REDUCE,
                                         ALLTOALL,
                                         ALLGATHERV,
                                         SCAN,
                                         SCATTER,
                                         BARRIER,
                                         ALLREDUCE};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* Registers a program that is a chain along the ranks, from the last to the first or the other way, and back. Every later call
 * must choose its algorithm anew. */
static void choose_anew(rondo_comm_t comm, int size, int number)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    const int from = number % 2 == 0 ? size - 1 : 0, step = number % 2 == 0 ? -1 : 1;
    char name[32];
    rondo_program_t p;
    STEP("program %d is registered", number);
    snprintf(name, sizeof(name), "chain-%d", number);
    signature.name = name, signature.collective = "allreduce", signature.ranks = size, signature.chunks = 1;
    signature.in_place = 1;
    MUST(rondo_program_create(&p, &signature));
    rondo_chunk_t c = rondo_chunk(p, from, RONDO_BUFFER_INPUT, 0, 1);
    for (int r = from + step, n = 1; n < size; n++, r += step)
        c = rondo_chunk_reduce(rondo_chunk(p, r, RONDO_BUFFER_INPUT, 0, 1), c);
    for (int r = size - 1 - from - step, n = 1; n < size; n++, r -= step)
        c = rondo_chunk_copy(c, r, RONDO_BUFFER_INPUT, 0);
    MUST(rondo_program_register(comm, p, 0, (size_t) 1 << 30));
    rondo_program_destroy(p);
}

static void prepare(struct trial trials[SHAPES][VARIANTS], rondo_comm_t comm, int size)
{
    uint64_t random = (uint64_t) seed;
    memset(trials, 0, SHAPES * sizeof(trials[0]));
    const size_t small = 1 + (size_t) ranks_below(&random, 200);
    const int root = ranks_below(&random, size);
    for (int s = 0; s < SHAPES; s++) {
        const size_t count = s == 0 || ranks_below(&random, 3) > 0 ? small : (size_t) max_count;
        const int in_place = ranks_below(&random, 2);
        for (int variant = 0; variant < VARIANTS; variant++) {
            struct trial *t = &trials[s][variant];
            t->what = shapes[s], t->comm = comm, t->seed = (uint64_t) seed + 2;
            t->count = variant == OTHER_COUNT ? count / 2 + 3 : count;
            t->root = variant == OTHER_ROOT ? (root + 1) % size : root;
            t->in_place = collective_in_place(t->what) && in_place != (variant == OTHER_PLACE);
            t->op = variant == OTHER_OP ? RONDO_MAX : RONDO_SUM;
            t->type = variant == OTHER_TYPE ? RONDO_UINT32 : RONDO_FLOAT;
            trial_prepare(t);
        }
    }
}

static void note(void *called, rondo_result_t result)
{
    CHECK(result == RONDO_SUCCESS, "%s", rondo_strerror((int) result));
    __atomic_store_n((int *) called, 1, __ATOMIC_RELEASE);
}

enum way { PLAIN, WAITED_FOR, CALLED_BACK, WAYS };

static void perform(struct trial *t, enum way way)
{
    rondo_request_t request = NULL;
    int called = way == WAITED_FOR;
    if (way == PLAIN) {
        MUST(trial_call(t, BLOCKING, NULL, NULL));
        return;
    }
    MUST(trial_call(t, NONBLOCKING, NULL, &request));
    if (way == CALLED_BACK)
        MUST(rondo_request_callback(request, note, &called));
    MUST(rondo_wait(request));
    while (!__atomic_load_n(&called, __ATOMIC_ACQUIRE))
        ranks_sleep(0.0001);
    EXPECT(RONDO_ERR_STATE, "freed", rondo_wait(request)); /* cached or not, the request no longer belongs to the caller */
}

/* Two calls at once: a rank caches the one that it waits for last. */
static void part(struct trial *one, struct trial *other, const struct rank *me)
{
    const int first = me->rank == 0 ? 0 : 1;
    rondo_request_t requests[2];
    STEP("ranks keep different calls");
    trial_fill(one, 0);
    trial_fill(other, 0);
    MUST(trial_call(one, NONBLOCKING, NULL, &requests[0]));
    MUST(trial_call(other, NONBLOCKING, NULL, &requests[1]));
    MUST(rondo_wait(requests[first]));
    MUST(rondo_wait(requests[1 - first]));
    trial_verify(one, "with another", 0);
    trial_verify(other, "with another", 0);
}

/* A few numbers to the next rank and from the previous one, from one of two buffers to another, with separate calls or in a
 * group. */
static void messages(const struct rank *me, rondo_comm_t comm, int64_t *memory, uint64_t *common, uint64_t *own)
{
    const int next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    const size_t count = ranks_below(common, 3) == 0 ? LONG : SHORT;
    const uint64_t value = ranks_random(common) >> 8;
    int64_t *out = memory + ranks_below(own, 2) * LONG, *in = memory + (2 + ranks_below(own, 2)) * LONG, host[4 * LONG];
    for (int i = 0; i < 4 * LONG; i++)
        host[i] = (int64_t) value + me->rank * 1000 + i % LONG;
    ranks_put(memory, host, sizeof(host));
    if (ranks_below(own, 2) == 0) {
        rondo_request_t send, receive;
        MUST(rondo_isend(out, count, RONDO_INT64, next, comm, &send));
        MUST(rondo_irecv(in, count, RONDO_INT64, previous, comm, &receive));
        MUST(rondo_wait(send));
        MUST(rondo_wait(receive));
    } else {
        MUST(rondo_group_start(comm));
        MUST(rondo_send(out, count, RONDO_INT64, next, comm));
        MUST(rondo_recv(in, count, RONDO_INT64, previous, comm));
        MUST(rondo_group_end(comm));
    }
    ranks_get(host, memory, sizeof(host));
    size_t wrong = 0;
    for (size_t i = 0; i < 4 * LONG; i++) {
        const size_t at = (size_t) (in - memory);
        const int from = i >= at && i < at + count ? previous : me->rank;
        wrong += host[i] != (int64_t) value + from * 1000 + (int64_t) (i % LONG);
    }
    CHECK(wrong == 0, "%zu elements wrong around a message of %zu", wrong, count);
}

static void perform_group(struct trial *calls[GROUPED], rondo_comm_t comm)
{
    MUST(rondo_group_start(comm));
    for (int i = 0; i < GROUPED; i++)
        MUST(trial_call(calls[i], BLOCKING, NULL, NULL));
    MUST(rondo_group_end(comm));
}

static void play(struct trial trials[SHAPES][VARIANTS], const struct rank *me, rondo_comm_t comm)
{
    int64_t *memory = ranks_allocate(4 * LONG * sizeof(*memory));
    uint64_t common = (uint64_t) seed, own = (uint64_t) seed << 32 ^ (uint64_t) me->rank;
    int shape = 0;
    for (long round = 0; round < rounds; round++) {
        const int anew = round % 50 == 49;
        if (anew || ranks_below(&common, 8) == 0)
            shape = anew ? 0 : ranks_below(&common, SHAPES);
        const int grouped = !anew && ranks_below(&common, 8) == 0, first = anew ? AS_IT_IS : ranks_below(&common, VARIANTS);
        if (anew) {
            part(&trials[shape][AS_IT_IS], &trials[shape][OTHER_COUNT], me);
            choose_anew(comm, me->size, (int) round / 50);
        }
        struct trial *calls[GROUPED] = {&trials[shape][first], &trials[shape][(first + 1) % VARIANTS]};
        STEP("round %ld: %s, variant %d%s", round, collective_names[shapes[shape]], first, grouped ? " and the next" : "");
        for (int i = 0; i < (grouped ? GROUPED : 1); i++)
            trial_fill(calls[i], (int) round);
        if (grouped)
            perform_group(calls, comm);
        else
            perform(calls[0], (enum way) ranks_below(&own, WAYS));
        for (int i = 0; i < (grouped ? GROUPED : 1); i++)
            trial_verify(calls[i], grouped ? "grouped" : "alone", (int) round);
        if (ranks_below(&common, 4) == 0)
            messages(me, comm, memory, &common, &own);
    }
    ranks_release(memory);
}

/* Every pair of calls in sequence. A lane caches them in the same entry, and they differ only in kind or root. */
static void play_all(rondo_comm_t comm, int size)
{
    enum { COUNTS = 12, CALLS = 2 * COUNTS * SHAPES };
    for (int i = 0; i < 2 * CALLS; i++) {
        const int at = i < CALLS ? i : 2 * CALLS - 1 - i, of_shape = at / SHAPES;
        struct trial t = {.what = shapes[at % SHAPES],
                          .comm = comm,
                          .seed = (uint64_t) seed,
                          .count = (size_t) (1 + of_shape / 2),
                          .root = of_shape % 2 == 0 ? 0 : size - 1,
                          .op = RONDO_SUM,
                          .type = RONDO_FLOAT};
        STEP("%s of %zu, root %d", collective_names[t.what], t.count, t.root);
        trial_prepare(&t);
        trial_fill(&t, i);
        perform(&t, PLAIN);
        trial_verify(&t, "after all others", i);
        trial_release(&t);
    }
}

/* Calls with counts whose arrays lie where they lay, with other contents now and then: what is compared is what they hold. */
static void play_counts(const struct rank *me, rondo_comm_t comm)
{
    enum { RANKS = 16, MOST = 5, ROOM = 4 * RANKS * RANKS * MOST };
    static _Thread_local int32_t send[ROOM], recv[ROOM];
    size_t sent[RANKS], from[RANKS], received[RANKS], to[RANKS];
    uint64_t common = (uint64_t) seed + 7;
    size_t base = 1, gap = 0;
    for (int round = 0; round < 120 && me->size <= RANKS; round++) {
        if (ranks_below(&common, 3) == 0) {
            base = 1 + (size_t) ranks_below(&common, MOST - 2);
            gap = (size_t) ranks_below(&common, 3);
        }
        const int what = ranks_below(&common, 3);
        size_t at = 0, put = 0;
        STEP("round %d: counts of %zu, gaps of %zu", round, base, gap);
        for (int i = 0; i < me->size; i++) { /* rank r sends base + (r + i) % 2 elements to rank i */
            sent[i] = received[i] = base + (size_t) ((me->rank + i) % 2);
            if (what == 1)
                received[i] = base + (size_t) (i % 2);
            from[i] = at, to[i] = put;
            at += sent[i] + gap, put += received[i] + 2 * gap;
        }
        for (int i = 0; i < ROOM; i++)
            send[i] = 1000 * me->rank + i + round, recv[i] = -1;
        if (what == 0)
            MUST(rondo_alltoallv(send, sent, from, recv, received, to, RONDO_INT32, comm));
        else if (what == 1)
            MUST(rondo_allgatherv(send, received[me->rank], recv, received, to, RONDO_INT32, comm));
        else
            MUST(rondo_gatherv(send, base + (size_t) (me->rank % 2), recv, received, to, RONDO_INT32, 0, comm));
        size_t wrong = 0;
        for (int i = 0; i < me->size; i++) {
            size_t first = 0; /* of rank i's block for this rank */
            for (int k = 0; k < me->rank && what == 0; k++)
                first += base + (size_t) ((i + k) % 2) + gap;
            for (size_t k = 0; k < received[i] && (what < 2 || me->rank == 0); k++)
                wrong += recv[to[i] + k] != 1000 * i + (int32_t) (first + k) + round;
            const size_t behind = to[i] + received[i];
            wrong += (i + 1 == me->size || gap > 0) && recv[behind] != -1;
        }
        CHECK(wrong == 0, "round %d, collective %d: %zu elements are wrong", round, what, wrong);
    }
}

/* The same call with counts over and over, then the next one: of arrays that the program makes anew each time. */
static void repeat_with_counts(const struct rank *me)
{
    enum { RANKS = 16 };
    for (long round = 0; round < 3 * in_turn && me->size <= RANKS; round++) {
        const int32_t number = (int32_t) round;
        int32_t send[3 * RANKS] = {0}, recv[3 * RANKS];
        size_t sent[RANKS], received[RANKS], from[RANKS];
        for (int i = 0; i < me->size; i++) {
            sent[i] = 1 + (size_t) (me->rank % 2), received[i] = 1 + (size_t) (i % 2), from[i] = 3 * (size_t) i;
            send[3 * i] = number + me->rank;
        }
        STEP("calls with counts, round %ld", round);
        if (round < in_turn)
            MUST(rondo_alltoallv(send, sent, from, recv, received, from, RONDO_INT32, me->world));
        else if (round < 2 * in_turn)
            MUST(rondo_allgatherv(send, sent[0], recv, received, from, RONDO_INT32, me->world));
        else
            MUST(rondo_gatherv(send, sent[0], recv, received, from, RONDO_INT32, 0, me->world));
        for (int i = 0; i < me->size && (me->rank == 0 || round < 2 * in_turn); i++)
            CHECK(recv[3 * i] == number + i, "round %ld: %d from rank %d", round, recv[3 * i], i);
    }
}

/* Calls in turn, as solvers make them. All of them should be cached. */
static void play_in_turn(struct rank *me)
{
    const int32_t members = (int32_t) me->size;
    for (long round = 0; round < in_turn; round++) {
        int32_t one = (int32_t) round, two[2] = {me->rank, 2}, three[3] = {0};
        for (int i = 0; i < 3 && me->rank == 0; i++)
            three[i] = (int32_t) round + i;
        STEP("calls in turn, round %ld", round);
        MUST(rondo_allreduce(RONDO_IN_PLACE, &one, 1, RONDO_INT32, RONDO_SUM, me->world));
        MUST(rondo_allreduce(RONDO_IN_PLACE, two, 2, RONDO_INT32, RONDO_SUM, me->world));
        MUST(rondo_bcast(three, 3, RONDO_INT32, 0, me->world));
        MUST(rondo_barrier(me->world));
        CHECK(one == round * members && two[0] == members * (members - 1) / 2 && two[1] == 2 * members, "sums %d, %d, %d", one,
              two[0], two[1]);
        CHECK(three[0] == round && three[1] == round + 1 && three[2] == round + 2, "broadcast of %d, %d, %d", three[0],
              three[1], three[2]);
    }
}

static void run(struct rank *me)
{
    if (in_turn > 0) {
        play_in_turn(me);
        repeat_with_counts(me);
        return;
    }
    struct trial trials[SHAPES][VARIANTS];
    rondo_comm_t comm;
    MUST(rondo_comm_dup(me->world, &comm));
    play_all(comm, me->size);
    if (ranks_device() == RONDO_DEVICE_HOST) /* its buffers are memory of the host */
        play_counts(me, comm);
    prepare(trials, comm, me->size);
    play(trials, me, comm);
    MUST(rondo_comm_free(&comm));
    for (int s = 0; s < SHAPES; s++)
        for (int variant = 0; variant < VARIANTS; variant++)
            trial_release(&trials[s][variant]);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--seed", &seed, NULL, "of the calls and their order"},
        {"--rounds", &rounds, NULL, "calls, or groups of them"},
        {"--in-turn", &in_turn, NULL, "not those, but so many rounds of the same calls"},
        {"--max-count", &max_count, NULL, "elements of the largest"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("request_cache");
}
