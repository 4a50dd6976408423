/*
 * Agreements of many ranks on one thread, over a network that the test delivers: messages of one source in order, those of
 * different sources and the notices of deaths in a random order. Counts messages and hops, and kills ranks at random moments:
 * all that return have returned the same, and all that live return. Contains lib/communicator/agreement.c itself.
 */
#define rondo_control_send    deliver_later
#define rondo_control_give_up fail_for_memory
#include "lib/communicator/agreement.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROUNDS = 3 };

struct message {
    struct message *next; /* later */
    int source, hops;
    size_t bytes;
    uint64_t data[]; /* aligned as the control plane's */
};

struct node {
    struct rondo_runtime runtime;
    struct rondo_comm comm;
    struct message *inbox;
    int dead, notices;  /* notices: of deaths that this rank does not know of yet */
    int come, returned; /* agreements */
    int sent, hops;     /* of the present agreement; hops: the longest chain of messages that led to what this rank knows */
};

static struct node *nodes;
static int size;
static uint64_t state;
static struct value *outcomes[ROUNDS];

static int below(int bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int) ((state >> 33) % (uint64_t) bound);
}

void fail_for_memory(struct rondo_control *control)
{
    (void) control;
    fail_msg("out of memory");
}

/* control: the sender's node. */
rondo_result_t deliver_later(struct rondo_control *control, int destination, uint32_t type, const void *data, size_t bytes)
{
    struct node *sender = (struct node *) control, *receiver = &nodes[destination];
    struct message **last = &receiver->inbox, *message = malloc(sizeof(*message) + bytes + sizeof(uint64_t));
    assert_non_null(message);
    assert_int_equal(type, RONDO_MESSAGE_AGREEMENT);
    assert_ptr_not_equal(sender, receiver);
    *message = (struct message){.source = sender->runtime.rank, .hops = sender->hops + 1, .bytes = bytes};
    memcpy(message->data, data, bytes);
    while (*last != NULL)
        last = &(*last)->next;
    *last = message;
    sender->sent++;
    return RONDO_SUCCESS;
}

static struct message *take_out(struct message **link)
{
    struct message *message = *link;
    *link = message->next;
    return message;
}

/* Delivers the first message of a random source. Returns 0 if there is none. */
static int deliver(struct node *node)
{
    int waiting = 0;
    for (const struct message *message = node->inbox; message != NULL; message = message->next)
        waiting++;
    if (waiting == 0)
        return 0;
    const struct message *chosen = node->inbox;
    for (int skip = below(waiting); skip > 0; skip--)
        chosen = chosen->next;
    struct message **link = &node->inbox;
    while ((*link)->source != chosen->source)
        link = &(*link)->next;
    struct message *message = take_out(link);
    node->hops = message->hops > node->hops ? message->hops : node->hops;
    rondo_agreement_message(&node->runtime, message->source, message->data, message->bytes);
    free(message);
    return 1;
}

/* After the notice no message of the rank comes: those that have not come are lost. */
static void notice(struct node *node)
{
    int dead = below(size);
    while (!nodes[dead].dead || node->runtime.gone[dead] != RONDO_HERE)
        dead = (dead + 1) % size;
    for (struct message **link = &node->inbox; *link != NULL;)
        if ((*link)->source == dead)
            free(take_out(link));
        else
            link = &(*link)->next;
    node->notices--;
    node->runtime.gone[dead] = below(2) == 0 ? RONDO_DIED : RONDO_LEFT;
    peer_gone(&node->runtime);
}

static void die(struct node *node)
{
    node->dead = 1;
    while (node->inbox != NULL)
        free(take_out(&node->inbox));
    for (int rank = 0; rank < size; rank++)
        nodes[rank].notices++;
}

static int flag_of(int rank, int round)
{
    return ~(1 << (rank + round) % 31);
}

static void come_to_next(struct node *node)
{
    unsigned char *acknowledged = calloc((size_t) size, 1);
    assert_non_null(acknowledged);
    for (int rank = 0; rank < size; rank++)
        acknowledged[rank] = node->runtime.gone[rank] != RONDO_HERE;
    const struct rondo_agreed agreed = {.flag = flag_of(node->runtime.rank, node->come), .acknowledged = acknowledged};
    const uint64_t number = node->comm.agreements++;
    pthread_mutex_lock(&node->runtime.agreements->lock);
    assert_non_null(come(&node->comm, number, contribute(&node->comm, number, &agreed)));
    pthread_mutex_unlock(&node->runtime.agreements->lock);
    node->come++;
    free(acknowledged);
}

static void check_outcome(const struct node *node, struct value *outcome)
{
    struct value **first = &outcomes[node->returned];
    if (*first == NULL)
        assert_non_null(*first = copy_of(outcome));
    assert_int_equal((*first)->flag, outcome->flag);
    assert_memory_equal(set_of(*first, FAILED), set_of(outcome, FAILED), 2 * set_bytes(outcome->size));
    for (int rank = 0; rank < size; rank++) {
        if (!nodes[rank].dead)
            assert_int_equal(outcome->flag & ~flag_of(rank, node->returned), 0);
        if (has(set_of(outcome, FAILED), rank))
            assert_true(nodes[rank].dead);
    }
}

static void look_for_outcome(struct node *node)
{
    const struct agreement *agreement = find(node->runtime.agreements, node->comm.id, (uint64_t) node->returned);
    if (node->come > node->returned && agreement->decided) {
        check_outcome(node, agreement->stored);
        node->returned++;
    }
}

static void start(int ranks, uint64_t seed)
{
    size = ranks;
    state = seed;
    nodes = calloc((size_t) ranks, sizeof(*nodes));
    assert_non_null(nodes);
    for (int rank = 0; rank < ranks; rank++) {
        struct node *node = &nodes[rank];
        node->runtime.rank = node->comm.rank = rank;
        node->runtime.size = node->comm.size = ranks;
        node->runtime.control = (struct rondo_control *) node;
        node->runtime.gone = calloc((size_t) ranks, sizeof(*node->runtime.gone));
        node->comm.runtime = &node->runtime;
        node->comm.members = calloc((size_t) ranks, sizeof(*node->comm.members));
        assert_true(node->runtime.gone != NULL && node->comm.members != NULL);
        for (int member = 0; member < ranks; member++)
            node->comm.members[member] = member;
        assert_int_equal(rondo_agreements_create(&node->runtime.agreements), RONDO_SUCCESS);
    }
}

static void stop(void)
{
    for (int rank = 0; rank < size; rank++) {
        while (nodes[rank].inbox != NULL)
            free(take_out(&nodes[rank].inbox));
        rondo_agreements_destroy(&nodes[rank].runtime);
        free(nodes[rank].runtime.gone);
        free(nodes[rank].comm.members);
    }
    free(nodes);
    for (int round = 0; round < ROUNDS; round++) {
        free(outcomes[round]);
        outcomes[round] = NULL;
    }
}

/* Lets a rank that lives do one of the things that it can do. Returns 0 if no rank can do anything. */
static int step(int rounds)
{
    const int first = below(size), choice = below(3);
    for (int i = 0; i < size; i++) {
        struct node *node = &nodes[(first + i) % size];
        for (int k = 0; k < 3 && !node->dead; k++) {
            const int what = (choice + k) % 3;
            int done = 1;
            if (what == 0 && node->notices > 0)
                notice(node);
            else if (what == 1 && node->come == node->returned && node->come < rounds)
                come_to_next(node);
            else if (what != 2 || !deliver(node))
                done = 0;
            look_for_outcome(node);
            if (done)
                return 1;
        }
    }
    return 0;
}

static void expect_returned(int rounds)
{
    for (int rank = 0; rank < size; rank++)
        if (!nodes[rank].dead && nodes[rank].returned != rounds)
            fail_msg("rank %d of %d has returned from %d agreements of %d", rank, size, nodes[rank].returned, rounds);
}

static int logarithm(int ranks) /* rounded up */
{
    int bits = 0;
    while (1 << bits < ranks)
        bits++;
    return bits;
}

/* Without deaths: two messages up and two down on each edge of a tree of logarithmic depth and degree. */
static void counts(void **unused)
{
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 33, 64, 100, 1000, 1024};
    (void) unused;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int total = 0, most = 0, hops = 0;
        start(sizes[i], i + 1);
        while (step(1))
            ;
        expect_returned(1);
        for (int rank = 0; rank < size; rank++) {
            total += nodes[rank].sent;
            most = nodes[rank].sent > most ? nodes[rank].sent : most;
            hops = nodes[rank].hops > hops ? nodes[rank].hops : hops;
        }
        print_message("%d ranks: %d messages, at most %d of a rank, %d hops\n", size, total, most, hops);
        assert_int_equal(total, 4 * (size - 1));
        assert_true(most <= 2 * logarithm(size));
        assert_true(hops <= 4 * logarithm(size));
        stop();
    }
}

/* A few agreements in a row, and deaths at random moments, of the lowest ranks in every other run. */
static void deaths(void **unused)
{
    (void) unused;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        start(2 + (int) (seed % 13), seed);
        const int most = below(size), pause = 1 + below(8 * size);
        for (int died = 0, countdown = below(pause); step(ROUNDS) || died < most; countdown--)
            if (countdown <= 0 && died < most) {
                int victim = seed % 2 ? below(size) : 0;
                while (nodes[victim].dead)
                    victim = (victim + 1) % size;
                die(&nodes[victim]);
                died++;
                countdown = below(pause);
            }
        expect_returned(ROUNDS);
        stop();
    }
}

/* Of 1024 ranks one dies in the middle: only its children report anew, and of the root's the new root's proposal goes round. */
static void death_among_many(void **unused)
{
    (void) unused;
    for (int victim = 0; victim <= 512; victim += 512)
        for (int steps = 1; steps < 6000; steps += 777) {
            int total = 0;
            start(1024, (uint64_t) steps);
            for (int i = 0; i < steps && step(1); i++)
                ;
            die(&nodes[victim]);
            while (step(1))
                ;
            expect_returned(1);
            for (int rank = 0; rank < size; rank++)
                total += nodes[rank].sent;
            assert_true(total <= 8 * size);
            stop();
        }
}

/* The least that is a message gets in; what is malformed does not. */
static void malformed(void **unused)
{
    uint64_t data[16] = {0};
    struct value *value = (struct value *) data;
    (void) unused;
    start(2, 1);
    come_to_next(&nodes[0]);
    *value = (struct value){.kind = CONTRIBUTION, .size = 2};
    rondo_agreement_message(&nodes[0].runtime, 1, data, value_bytes(2) - 1);
    rondo_agreement_message(&nodes[0].runtime, 1, data, 7);
    value->size = 3;
    rondo_agreement_message(&nodes[0].runtime, 1, data, value_bytes(3));
    *value = (struct value){.kind = DECISION + 1, .size = 2};
    rondo_agreement_message(&nodes[0].runtime, 1, data, value_bytes(2));
    *value = (struct value){.kind = PROPOSAL, .size = 2, .ballot = -1};
    rondo_agreement_message(&nodes[0].runtime, 1, data, value_bytes(2));
    *value = (struct value){.kind = CONTRIBUTION, .size = 1}; /* of another communicator */
    rondo_agreement_message(&nodes[0].runtime, 1, data, value_bytes(1));
    while (step(1))
        ;
    expect_returned(1);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(deaths),
        cmocka_unit_test(death_among_many),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
