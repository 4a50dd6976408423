/* Connections between ranks: many of them, of which unused ones end; half of the ranks dying at once; and that whatever a rank
 * says because of a notice comes after that notice. */
#include "test/unit/support/ranks.h"

#include <sys/resource.h>

static char job[64];

static void use_job(struct rank *ranks, int size)
{
    static int count;
    snprintf(job, sizeof(job), "test-links-%ld-%d", (long) getpid(), count++);
    for (int i = 0; i < size; i++) {
        rank_prepare(&ranks[i], i, size);
        ranks[i].options.job = job;
    }
}

/* More peers than a rank has connections to for long. */
enum { PEERS = 64, ROUNDS = 3 };

static uint32_t round_number;

static void *send_to_each(void *argument)
{
    struct rank *rank = argument;
    for (int dest = 0; dest < rank->options.size; dest++)
        if (send_number(rank, dest, round_number, 64) != RONDO_SUCCESS)
            abort();
    return NULL;
}

static void unused_connections_end(int by_network)
{
    static struct rank ranks[PEERS];
    const int before = count_entries("/proc/self/fd");
    if (by_network)
        use_tcp(ranks, PEERS);
    else
        use_job(ranks, PEERS);
    connect_all(ranks, PEERS);
    const int connected = count_entries("/proc/self/fd") - before;
    for (round_number = 0; round_number < ROUNDS; round_number++) {
        in_parallel(ranks, PEERS, send_to_each);
        for (int i = 0; i < PEERS; i++) {
            for (int source = 0; source < PEERS; source++)
                assert_true(await(&ranks[i], &ranks[i].next[source], (int) round_number + 1, 60));
            assert_int_equal(read_counter(&ranks[i], &ranks[i].disordered), 0);
        }
        usleep(round_number == 0 ? 1500000 : 0); /* the second round finds connections that are ending, the third all sorts */
    }
    int most = PEERS * (PEERS - 1) * 2 + connected, now = most;
    for (int i = 0; i < 300 && now > most * 9 / 10; i++) {
        usleep(100000);
        now = count_entries("/proc/self/fd") - before;
    }
    assert_true(now <= most * 9 / 10);
    in_parallel(ranks, PEERS, rank_close);
    for (int i = 0; i < PEERS; i++)
        assert_int_equal(ranks[i].lost, 0);
}

static void test_unused_connections_end(void **state)
{
    (void) state;
    unused_connections_end(0);
}

/* Over a network only once all that they have carried is known to have been taken. */
static void test_unused_network_connections_end(void **state)
{
    (void) state;
    unused_connections_end(1);
}

/* Half of the ranks die at once. The others learn of each, and reach each other all the same. */
static void test_half_dies(void **state)
{
    (void) state;
    enum { SIZE = 32 };
    for (int pattern = 0; pattern < 3; pattern++) {
        static struct rank ranks[SIZE];
        int dies[SIZE];
        use_job(ranks, SIZE);
        connect_all(ranks, SIZE);
        for (int i = 0; i < SIZE; i++)
            dies[i] = pattern == 0 ? i < SIZE / 2 : pattern == 1 ? i % 2 == 0 : (i * 7 + 3) % 5 < 3;
        for (int i = 0; i < SIZE; i++)
            if (dies[i])
                rondo_control_give_up(ranks[i].control);
        for (int i = 0; i < SIZE; i++)
            for (int dead = 0; dead < SIZE; dead++)
                if (!dies[i] && dies[dead])
                    assert_true(await(&ranks[i], &ranks[i].died[dead], 1, 10));
        for (int i = 0; i < SIZE; i++)
            if (!dies[i])
                assert_int_equal(rondo_control_send(ranks[i].control, RONDO_CONTROL_ALL, PLAIN, NULL, 0), RONDO_SUCCESS);
        int living = 0;
        for (int i = 0; i < SIZE; i++)
            living += !dies[i];
        for (int i = 0; i < SIZE; i++)
            if (!dies[i])
                assert_true(await(&ranks[i], &ranks[i].plain, living - 1, 30));
        in_parallel(ranks, SIZE, rank_close);
        for (int i = 0; i < SIZE; i++)
            assert_int_equal(ranks[i].lost, dies[i]);
    }
}

/* ---- causes and effects ---- */

enum { CAUSE = RONDO_CONTROL_FIRST_USER_TYPE + 2, EFFECT, LETTER, CAUSES = 100, THINKERS = 16 };

/* What a rank has been told by each source's notices, and says on: an effect carries the cause that it follows. */
struct effect {
    int source;
    uint32_t number;
};
static uint32_t known[THINKERS][THINKERS];
static uint32_t letters[THINKERS][THINKERS]; /* that a rank has got from each source */
static atomic_int effects, early, overtaken;

/* The rank to which a source writes before its notice of that number. */
static int reader_of(int source, uint32_t number)
{
    return (source + 1 + (int) (number % (THINKERS - 1))) % THINKERS;
}

static void follow(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    struct rank *rank = argument;
    struct effect effect;
    const int own = rank->options.rank;
    if (type == CAUSE) {
        effect = (struct effect){source, *(const uint32_t *) data};
        if (reader_of(source, effect.number) == own && letters[own][source] <= effect.number)
            atomic_fetch_add(&overtaken, 1);
        known[own][source] = effect.number + 1;
        const int dest = (int) (effect.number * 7 + (uint32_t) own) % THINKERS;
        rondo_control_send(rank->control, dest, EFFECT, &effect, sizeof(effect));
    } else if (type == LETTER) {
        letters[own][source] = *(const uint32_t *) data + 1;
    } else if (type == EFFECT && bytes == sizeof(effect)) {
        memcpy(&effect, data, sizeof(effect));
        if (effect.source != own && known[own][effect.source] <= effect.number)
            atomic_fetch_add(&early, 1);
        atomic_fetch_add(&effects, 1);
    }
}

static void *connect_thinker(void *argument)
{
    struct rank *rank = argument;
    rank->result = rondo_control_connect(&rank->control, &rank->options, follow, rank);
    return NULL;
}

static void *cause(void *argument)
{
    struct rank *rank = argument;
    for (uint32_t number = 0; number < CAUSES; number++) {
        const int reader = reader_of(rank->options.rank, number);
        if (rondo_control_send(rank->control, reader, LETTER, &number, sizeof(number)) != RONDO_SUCCESS ||
            rondo_control_send(rank->control, RONDO_CONTROL_ALL, CAUSE, &number, sizeof(number)) != RONDO_SUCCESS)
            abort();
        if (number % 8 == 0)
            usleep(100);
    }
    return NULL;
}

/* An effect does not come before its cause: neither over a connection that is there, nor over one that is made for it. */
static void test_causes_come_first(void **state)
{
    (void) state;
    static struct rank ranks[THINKERS];
    use_job(ranks, THINKERS);
    in_parallel(ranks, THINKERS, connect_thinker);
    for (int i = 0; i < THINKERS; i++)
        assert_int_equal(ranks[i].result, RONDO_SUCCESS);
    in_parallel(ranks, THINKERS, cause);
    for (int i = 0; i < 12000 && atomic_load(&effects) < CAUSES * THINKERS * (THINKERS - 1); i++)
        usleep(10000);
    assert_int_equal(atomic_load(&effects), CAUSES * THINKERS * (THINKERS - 1));
    assert_int_equal(atomic_load(&early), 0);
    assert_int_equal(atomic_load(&overtaken), 0);
    in_parallel(ranks, THINKERS, rank_close);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, remember_resources, expect_resources)

int main(void)
{
    struct rlimit files;
    setenv("HOME", "/nowhere", 1); /* whose user has no secret in a file */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    const struct CMUnitTest tests[] = {
        TEST(test_causes_come_first),
        TEST(test_half_dies),
        TEST(test_unused_connections_end),
        TEST(test_unused_network_connections_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
