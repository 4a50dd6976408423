/* Jobs of several roots: ranks in contiguous shares, each taken in by a root of its own, form one job or learn, on all of them,
 * why there is none. */
#include "test/unit/support/ranks.h"

#include "lib/base/cipher.h"
#include "lib/base/error.h"
#include "lib/bootstrap/first_root.h"
#include "lib/bootstrap/rendezvous.h"
#include "lib/bootstrap/root.h"
#include "lib/bootstrap/unique_id.h"

#include <signal.h>

enum { ROOTS_MOST = 9, MESSAGES = 20, LIST_BYTES = 256 };

static rondo_unique_id_t ids[ROOTS_MOST];

/* Makes the ids; where they are apart, every second one on what seems to be another host, so that its root is reached by TCP.
 */
static void make_ids(int roots, int are_apart)
{
    for (int i = 0; i < roots; i++) {
        if (are_apart && i % 2 == 1)
            setenv("RONDO_HOSTID", "elsewhere", 1);
        assert_int_equal(rondo_get_unique_id(&ids[i]), RONDO_SUCCESS);
        unsetenv("RONDO_HOSTID");
    }
}

static void prepare(struct rank *rank, int number, int size, int roots)
{
    rank_prepare(rank, number, size);
    rank->options.roots = roots;
    rank->options.unique_id = &ids[rondo_job_share(number, size, roots)];
    rank->options.first_id = roots > 1 ? ids : NULL;
}

static void *send_to_all(void *argument)
{
    struct rank *rank = argument;
    int failures = 0;
    for (uint32_t number = 0; number < MESSAGES; number++)
        for (int dest = 0; dest < rank->options.size; dest++)
            failures += send_number(rank, dest, number, 4 + number * 7) != RONDO_SUCCESS;
    count_failures(rank, failures);
    return NULL;
}

/* Each rank connects, and sends to each other. */
static void converse(struct rank *ranks, int size)
{
    connect_all(ranks, size);
    in_parallel(ranks, size, send_to_all);
    for (int i = 0; i < size; i++)
        for (int source = 0; source < size; source++)
            assert_true(await(&ranks[i], &ranks[i].next[source], MESSAGES, 30));
    for (int i = 0; i < size; i++)
        assert_int_equal(ranks[i].disordered, 0);
    in_parallel(ranks, size, rank_close);
}

static void exchange(int size, int roots, int are_apart, int encrypts)
{
    static struct rank ranks[RANKS_MOST];
    setenv("RONDO_ENCRYPT", encrypts ? "1" : "0", 1);
    make_ids(roots, are_apart);
    for (int i = 0; i < size; i++) {
        prepare(&ranks[i], i, size, roots);
        ranks[i].options.encrypts = encrypts;
    }
    converse(ranks, size);
    unsetenv("RONDO_ENCRYPT");
}

static void test_shares(void **state)
{
    (void) state;
    for (int size = 1; size <= 300; size++)
        for (int roots = 1; roots <= size; roots += 1 + size / 50) {
            assert_int_equal(rondo_job_first_rank(0, size, roots), 0);
            assert_int_equal(rondo_job_first_rank(roots, size, roots), size);
            for (int rank = 0; rank < size; rank++) {
                const int share = rondo_job_share(rank, size, roots);
                assert_true(rank >= rondo_job_first_rank(share, size, roots));
                assert_true(rank < rondo_job_first_rank(share + 1, size, roots));
            }
        }
}

static void test_jobs(void **state)
{
    (void) state;
    for (int size = 1; size <= ROOTS_MOST; size++)
        for (int roots = 1; roots <= size; roots++)
            exchange(size, roots, 0, 0);
    exchange(RANKS_MOST, ROOTS_MOST, 0, 0);
}

static void test_jobs_across_hosts(void **state)
{
    (void) state;
    for (int size = 2; size <= ROOTS_MOST; size += 3)
        for (int roots = 2; roots <= size; roots++)
            exchange(size, roots, 1, 0);
}

static void test_encrypted_jobs(void **state)
{
    (void) state;
    if (rondo_cipher_unusable() != NULL) {
        print_message("left out: %s\n", rondo_cipher_unusable());
        return;
    }
    exchange(7, 3, 0, 1);
    exchange(7, 3, 1, 1);
}

/* Connects all ranks but those that are left out, which the bits say. All others must fail, with the text where it is given. */
static void expect_failure(struct rank *ranks, int size, unsigned left_out, const char *text)
{
    struct rank coming[RANKS_MOST];
    int count = 0;
    for (int i = 0; i < size; i++)
        if ((left_out >> i & 1) == 0)
            coming[count++] = ranks[i];
    in_parallel(coming, count, rank_connect);
    for (int i = 0; i < count; i++) {
        assert_int_equal(coming[i].result, RONDO_ERR_BOOTSTRAP);
        if (strstr(coming[i].error, text) == NULL)
            fail_msg("rank %d says \"%s\", not \"%s\"", coming[i].options.rank, coming[i].error, text);
        assert_true(coming[i].seconds < coming[i].options.connect_timeout + 10);
    }
}

/* Whichever rank is missing, all others name it. */
static void test_missing_rank(void **state)
{
    enum { SIZE = 6, ROOTS = 3 };
    struct rank ranks[SIZE];
    (void) state;
    for (int missing = 0; missing < SIZE; missing++) {
        char text[60];
        make_ids(ROOTS, missing % 2);
        for (int i = 0; i < SIZE; i++) {
            prepare(&ranks[i], i, SIZE, ROOTS);
            ranks[i].options.connect_timeout = 0.7;
        }
        snprintf(text, sizeof(text), "rank %d of 6 did not come within 0.7 s", missing);
        expect_failure(ranks, SIZE, 1u << missing, text);
    }
}

/* Of a share without any rank the first root knows nothing. */
static void test_missing_share(void **state)
{
    struct rank ranks[6];
    (void) state;
    make_ids(3, 0);
    for (int i = 0; i < 6; i++) {
        prepare(&ranks[i], i, 6, 3);
        ranks[i].options.connect_timeout = 0.7;
    }
    expect_failure(ranks, 6, 3u << 2, "ranks 2 to 3 (or their root) of 6 did not come");
}

/* The others wait for the first root, of which no rank has come to tell the size; they know where it is. */
static void test_missing_first_share(void **state)
{
    struct rank ranks[6];
    (void) state;
    make_ids(3, 0);
    for (int i = 0; i < 6; i++) {
        prepare(&ranks[i], i, 6, 3);
        ranks[i].options.connect_timeout = 0.7;
    }
    expect_failure(ranks, 6, 3, "ranks 0, 1 of 6 did not come");
}

/* Four ranks that were told of different roots: none connects, and one at least says why. */
static void expect_unlike(struct rank ranks[4], const char *why)
{
    int told = 0;
    in_parallel(ranks, 4, rank_connect);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ranks[i].result, RONDO_ERR_BOOTSTRAP);
        told += strstr(ranks[i].error, why) != NULL;
    }
    assert_true(told >= 1);
}

static void expect_other_ids(struct rank ranks[4])
{
    expect_unlike(ranks, "all ranks need the same unique ids in the same order");
}

static void test_other_numbers_of_roots(void **state)
{
    struct rank ranks[4];
    (void) state;
    make_ids(3, 0);
    for (int i = 0; i < 4; i++) {
        prepare(&ranks[i], i, 4, i == 1 ? 3 : 2);
        ranks[i].options.unique_id = &ids[i / 2];
        ranks[i].options.connect_timeout = 1;
    }
    expect_other_ids(ranks);
}

static void test_other_order(void **state)
{
    struct rank ranks[4];
    (void) state;
    make_ids(2, 0);
    for (int i = 0; i < 4; i++) {
        prepare(&ranks[i], i, 4, 2);
        ranks[i].options.connect_timeout = 1;
    }
    ranks[1].options.unique_id = &ids[1];
    expect_other_ids(ranks);
}

static void test_rank_twice(void **state)
{
    struct rank ranks[5];
    (void) state;
    make_ids(2, 0);
    for (int i = 0; i < 5; i++) {
        prepare(&ranks[i], i < 4 ? i : 3, 4, 2);
        ranks[i].options.connect_timeout = 5;
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, rank_connect, &ranks[3]), 0);
    usleep(300000);
    rank_connect(&ranks[4]);
    assert_int_equal(ranks[4].result, RONDO_ERR_BOOTSTRAP);
    assert_non_null(strstr(ranks[4].error, "rank 3 of 4 is there already"));
    in_parallel(ranks, 3, rank_connect);
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ranks[i].result, RONDO_SUCCESS);
    in_parallel(ranks, 4, rank_close);
}

/* A rank with a first id whose secret is another: its root does not get in, and all learn so. */
static void test_false_first_id(void **state)
{
    struct rank ranks[4];
    (void) state;
    make_ids(2, 0);
    rondo_unique_id_t wrong = ids[0];
    const unsigned char change[RONDO_UNIQUE_ID_SECRET] = {1};
    rondo_unique_id_mask(wrong.bytes, change);
    for (int i = 0; i < 4; i++) {
        prepare(&ranks[i], i, 4, 2);
        ranks[i].options.connect_timeout = 1;
    }
    ranks[2].options.first_id = ranks[3].options.first_id = &wrong;
    in_parallel(ranks, 4, rank_connect);
    for (int i = 0; i < 4; i++)
        assert_int_equal(ranks[i].result, RONDO_ERR_BOOTSTRAP);
    /* One that comes when its root has ended may say that alone. */
    assert_true(strstr(ranks[2].error, "the unique id is not its own") != NULL ||
                strstr(ranks[3].error, "the unique id is not its own") != NULL);
    assert_non_null(strstr(ranks[0].error, "ranks 2 to 3 (or their root) of 4 did not come"));
}

/* The frame shows the id's secret to no reader that does not know the root's. */
static void test_mask(void **state)
{
    struct rondo_hmac secret, other;
    struct rondo_unique_id_content content;
    rondo_unique_id_t id, read, twice;
    unsigned char data[RONDO_FIRST_ROOT_DATA], again[RONDO_FIRST_ROOT_DATA];
    (void) state;
    make_ids(1, 0);
    id = ids[0];
    assert_int_equal(rondo_unique_id_read(&id, &content), RONDO_SUCCESS);
    rondo_hmac_begin(&secret, "one", 3);
    rondo_hmac_begin(&other, "two", 3);
    assert_int_equal(rondo_first_root_mask(&secret, &id, data), RONDO_SUCCESS);
    assert_int_equal(rondo_first_root_mask(&secret, &id, again), RONDO_SUCCESS);
    assert_memory_not_equal(data, again, sizeof(data));
    assert_null(memmem(data, sizeof(data), content.secret, sizeof(content.secret)));
    rondo_first_root_unmask(&secret, data, &read);
    assert_memory_equal(&read, &id, sizeof(id));
    rondo_first_root_unmask(&other, data, &twice);
    assert_memory_not_equal(&twice, &id, sizeof(id));
    /* Joins, so that the root ends. */
    struct rank rank;
    prepare(&rank, 0, 1, 1);
    connect_all(&rank, 1);
    rank_close(&rank);
}

/* ---- roots that RONDO_ROOT lists ---- */

/* Lists so many addresses at which no process listens. */
static void make_list(char list[LIST_BYTES], int roots)
{
    int ports[ROOTS_MOST];
    size_t at = 0;
    for (int i = 0; i < roots; i++) {
        int earlier = 0;
        do { /* a port that is not listed yet */
            ports[i] = free_port();
            for (earlier = 0; earlier < i && ports[earlier] != ports[i];)
                earlier++;
        } while (earlier < i);
        at += (size_t) snprintf(list + at, LIST_BYTES - at, "%s%s:%d", i > 0 ? "," : "", i % 3 == 2 ? "localhost" : "127.0.0.1",
                                ports[i]);
    }
}

static void prepare_listed(struct rank *ranks, int size, const char *list, const char *secret)
{
    for (int i = 0; i < size; i++) {
        rank_prepare(&ranks[i], i, size);
        ranks[i].options.root = list;
        ranks[i].options.secret = secret;
    }
}

static void test_listed(void **state)
{
    static struct rank ranks[RANKS_MOST];
    char list[LIST_BYTES];
    (void) state;
    for (int size = 2; size <= ROOTS_MOST; size++)
        for (int roots = 1; roots <= size; roots += 1 + (size > 4)) {
            make_list(list, roots);
            prepare_listed(ranks, size, list, roots % 2 == 1 ? "a secret" : NULL);
            converse(ranks, size);
        }
    make_list(list, ROOTS_MOST);
    prepare_listed(ranks, RANKS_MOST, list, "a secret");
    converse(ranks, RANKS_MOST);
    if (rondo_cipher_unusable() != NULL)
        return;
    make_list(list, 3);
    prepare_listed(ranks, 7, list, "a secret");
    for (int i = 0; i < 7; i++)
        ranks[i].options.encrypts = 1;
    converse(ranks, 7);
}

/* A rank that is missing takes the root of its share with it if it would hold it. All others learn either. */
static void test_listed_missing(void **state)
{
    enum { SIZE = 6, ROOTS = 3 };
    struct rank ranks[SIZE];
    char list[LIST_BYTES];
    (void) state;
    for (int missing = 0; missing < SIZE; missing++) {
        char named[60], share[60], holder[60];
        struct rank coming[SIZE];
        int count = 0;
        make_list(list, ROOTS);
        prepare_listed(ranks, SIZE, list, missing % 3 == 0 ? NULL : "a secret");
        snprintf(named, sizeof(named), "rank %d of 6 did not come within 0.7 s", missing);
        snprintf(share, sizeof(share), "ranks %d to %d (or their root) of 6 did not come", missing, missing + 1);
        snprintf(holder, sizeof(holder), "could not join the root (of rank %d) at", missing);
        for (int i = 0; i < SIZE; i++) {
            ranks[i].options.connect_timeout = 0.7;
            if (i != missing)
                coming[count++] = ranks[i];
        }
        in_parallel(coming, count, rank_connect);
        for (int i = 0; i < count; i++) {
            const char *text = missing % 2 == 1 ? named : missing > 0 && coming[i].options.rank != missing + 1 ? share : holder;
            assert_int_equal(coming[i].result, RONDO_ERR_BOOTSTRAP);
            if (strstr(coming[i].error, text) == NULL)
                fail_msg("rank %d says \"%s\", not \"%s\"", coming[i].options.rank, coming[i].error, text);
            assert_true(coming[i].seconds < coming[i].options.connect_timeout + 10);
        }
    }
}

static void test_bad_lists(void **state)
{
    static char long_list[5000 * 16];
    static const struct {
        const char *list, *secret, *part;
    } cases[] = {
        {"127.0.0.1:5001,,127.0.0.1:5002", "s", "entry 2 of 3 of RONDO_ROOT=\"127.0.0.1:5001,,127.0.0.1:5002\" is empty"},
        {"127.0.0.1:5001,", "s", "entry 2 of 2 of RONDO_ROOT="},
        {",127.0.0.1:5001", NULL, "entry 1 of 2 of RONDO_ROOT="},
        {"127.0.0.1:5001,[::1]:5002,127.0.0.1:5001", "s", "RONDO_ROOT lists 127.0.0.1:5001 twice"},
        {"127.0.0.1:5001,[::1]:5001", NULL, "lists 127.0.0.1:5001 and [::1]:5001: without RONDO_SECRET each root needs a port"},
        {"a:1,b:2,c:3,d:4,e:5", "s", "RONDO_ROOT=\"a:1,b:2,c:3,d:4,e:5\" lists 5 roots for 4 ranks: it may list 1 to 4"},
        {"127.0.0.1:5001,localhost", "s", "\"localhost\" is not host:port"},
        {"127.0.0.1:5001,localhost:0", "s", "\"localhost:0\": the port must be 1 to 65535"},
        {"127.0.0.1:5001,::1:5002", "s", "brackets"},
        {"127.0.0.1:5001,192.0.2.7:5", NULL, "RONDO_ROOT=192.0.2.7:5 can be reached by strangers"},
    };
    struct rank rank;
    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int number = 0; number < 4; number++) {
            rank_prepare(&rank, number, 4);
            rank.options.root = cases[i].list;
            rank.options.secret = cases[i].secret;
            rank_connect(&rank);
            assert_int_equal(rank.result, RONDO_ERR_BOOTSTRAP);
            if (strstr(rank.error, cases[i].part) == NULL)
                fail_msg("rank %d says \"%s\", not \"%s\"", number, rank.error, cases[i].part);
            assert_true(rank.seconds < 10);
        }
    for (int i = 0; i < RONDO_JOB_ROOTS_MOST + 1; i++)
        snprintf(long_list + strlen(long_list), 20, "%sh:%d", i > 0 ? "," : "", i + 1);
    rank_prepare(&rank, 0, 5000);
    rank.options.root = long_list;
    rank.options.secret = "s";
    rank_connect(&rank);
    assert_non_null(strstr(rank.error, "lists 4097 roots for 5000 ranks: it may list 1 to 4096"));
}

static void test_unlike_lists(void **state)
{
    struct rank ranks[4];
    char list[LIST_BYTES], other[LIST_BYTES];
    (void) state;
    for (int is_shorter = 0; is_shorter < 2; is_shorter++) {
        make_list(list, 2);
        const int first = (int) strcspn(list, ",");
        if (is_shorter)
            snprintf(other, sizeof(other), "%.*s", first, list);
        else
            snprintf(other, sizeof(other), "%s,%.*s", list + first + 1, first, list);
        prepare_listed(ranks, 4, list, "a secret");
        for (int i = 0; i < 4; i++)
            ranks[i].options.connect_timeout = 1;
        for (int i = is_shorter ? 1 : 2; i < (is_shorter ? 2 : 4); i++)
            ranks[i].options.root = other;
        expect_unlike(ranks, "all ranks need the same addresses of RONDO_ROOT in the same order");
    }
}

/* Where RONDO_ROOT lists roots, an id has the host of the list that is this one. */
static void test_id_beside_a_list(void **state)
{
    struct rank rank;
    struct rondo_unique_id_content content;
    char text[64];
    (void) state;
    setenv("RONDO_ROOT", "198.51.100.1:5,127.0.0.2:6,127.0.0.1:7", 1);
    make_ids(1, 0);
    assert_int_equal(rondo_unique_id_read(&ids[0], &content), RONDO_SUCCESS);
    assert_int_equal(strncmp(rondo_address_describe(&content.remote, text, sizeof(text)), "127.0.0.2:", 10), 0);
    prepare(&rank, 0, 1, 1);
    connect_all(&rank, 1);
    rank_close(&rank);
    setenv("RONDO_ROOT", "198.51.100.1:5,198.51.100.2:6", 1);
    assert_int_equal(rondo_get_unique_id(&ids[0]), RONDO_ERR_BOOTSTRAP);
    assert_non_null(
        strstr(rondo_last_error(), "none of the 2 hosts of RONDO_ROOT=\"198.51.100.1:5,198.51.100.2:6\" is this one"));
    unsetenv("RONDO_ROOT");
}

/* ---- by the public interface ---- */

static void *be_runtime(void *argument)
{
    struct rank *rank = argument;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_t runtime = NULL;
    config.rank = rank->options.rank;
    config.size = rank->options.size;
    config.unique_id = ids;
    config.unique_ids = rank->options.roots;
    config.device = RONDO_DEVICE_HOST;
    config.connect_timeout = 30;
    rank->result = rondo_init(&runtime, &config);
    snprintf(rank->error, sizeof(rank->error), "%s", rank->result == RONDO_SUCCESS ? "" : rondo_last_error());
    if (rank->result == RONDO_SUCCESS)
        rank->result = rondo_finalize(runtime);
    return NULL;
}

static void test_configuration(void **state)
{
    static struct rank ranks[5];
    (void) state;
    make_ids(3, 0);
    for (int i = 0; i < 5; i++)
        prepare(&ranks[i], i, 5, 3);
    in_parallel(ranks, 5, be_runtime);
    for (int i = 0; i < 5; i++)
        if (ranks[i].result != RONDO_SUCCESS)
            fail_msg("rank %d: %s", i, ranks[i].error);
    for (int wrong = -1; wrong <= 6; wrong += wrong == 0 ? 6 : 1) {
        char said[80];
        prepare(&ranks[0], 0, 5, 1);
        ranks[0].options.roots = wrong;
        be_runtime(&ranks[0]);
        snprintf(said, sizeof(said), "unique_ids=%d of a configuration: it must be 1 to 5", wrong);
        assert_int_equal(ranks[0].result, RONDO_ERR_ARGUMENT);
        assert_non_null(strstr(ranks[0].error, said));
    }
}

/* ---- a root that breaks the rules ---- */

/* What it says, in this order: a frame's type and its bytes of data. */
struct saying {
    uint32_t type;
    size_t bytes;
};

/* Another root, which knows the first one's secret, says what no root says: the first root ends its connection, and its ranks
 * learn at once that the job does not form. */
static void expect_broken(const struct saying *says, int count)
{
    static const unsigned char data[RONDO_CONTROL_MESSAGE_MAX];
    struct rank ranks[2];
    pthread_t threads[2];
    struct rondo_frame_connection connection;
    make_ids(1, 0);
    for (int i = 0; i < 2; i++) {
        prepare(&ranks[i], i, 4, 2);
        ranks[i].options.unique_id = ids;
        ranks[i].options.connect_timeout = 4;
        assert_int_equal(pthread_create(&threads[i], NULL, rank_connect, &ranks[i]), 0);
    }
    const struct rondo_job_options options = {.rank = 2, .size = 4, .roots = 2, .unique_id = ids, .connect_timeout = 4};
    assert_int_equal(rondo_rendezvous_reach_first(&options, &connection), RONDO_SUCCESS);
    usleep(200000); /* for the ranks to join, too */
    for (int i = 0; i < count; i++) {
        /* The step after joining begins when the root has told the job's nonce. */
        for (int state = 0; i == 1 && says[0].type == RONDO_FRAME_SHARE && says[0].bytes == 4 && state == 0;) {
            struct rondo_frame frame;
            state = rondo_frame_connection_fill(&connection) < 0 ? -1 : rondo_frame_connection_next(&connection, &frame);
            usleep(1000);
        }
        assert_int_equal(rondo_frame_connection_put(&connection, says[i].type, 2, RONDO_CONTROL_ALL, data, says[i].bytes), 0);
        while (rondo_frame_connection_flush(&connection) == 0)
            usleep(1000);
    }
    /* A rank that has come too late finds no root. */
    int told = 0;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(ranks[i].result, RONDO_ERR_BOOTSTRAP);
        told +=
            strstr(ranks[i].error, "the root of ranks 2 to 3 ended before the job had formed") != NULL && ranks[i].seconds < 3;
    }
    if (told == 0)
        fail_msg("rank 0 after %.1f s: %s", ranks[0].seconds, ranks[0].error);
    rondo_frame_connection_close(&connection);
}

static void test_root_that_breaks_the_rules(void **state)
{
    static const struct saying cases[][2] = {
        {{RONDO_FRAME_SHARE, 3}},
        {{RONDO_FRAME_SHARE, 0}},
        {{RONDO_FRAME_LINKED, 0}},
        {{RONDO_FRAME_READY, 0}},
        {{RONDO_FRAME_JOB, RONDO_ROOT_JOB}},
        {{RONDO_FRAME_LISTENING, 4}},
        {{RONDO_FRAME_FIRST_ROOT, RONDO_FIRST_ROOT_DATA}},
        {{RONDO_FRAME_PLACES, 2 * RONDO_ADDRESS_STORED}},
        {{99, RONDO_CONTROL_MESSAGE_MAX}},
        {{RONDO_FRAME_SHARE, 4}, {RONDO_FRAME_SHARE, 4}},
        {{RONDO_FRAME_SHARE, 4}, {RONDO_FRAME_LINKED, 0}},
        {{RONDO_FRAME_SHARE, 4}, {RONDO_FRAME_PLACES, 3 * RONDO_ADDRESS_STORED}},
        {{RONDO_FRAME_SHARE, 4}, {RONDO_FRAME_PLACES, 2 * RONDO_ADDRESS_STORED - 1}},
    };
    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_broken(cases[i], cases[i][1].type != 0 ? 2 : 1);
}

/* ---- a root whose process dies ---- */

/* Another process makes an id, writes it to the descriptor, and waits to be killed. */
static int hold_root(char **arguments)
{
    rondo_unique_id_t made;
    if (rondo_get_unique_id(&made) != RONDO_SUCCESS ||
        write(atoi(arguments[2]), made.bytes, sizeof(made.bytes)) != (ssize_t) sizeof(made.bytes))
        return 1;
    pause();
    return 0;
}

static pid_t make_id_elsewhere(rondo_unique_id_t *id)
{
    int pair[2];
    char number[16];
    assert_int_equal(pipe(pair), 0);
    snprintf(number, sizeof(number), "%d", pair[1]);
    char *arguments[] = {"test_roots", "hold-root", number, NULL};
    const pid_t process = start_process(arguments);
    assert_true(process > 0);
    close(pair[1]);
    assert_int_equal(read(pair[0], id->bytes, sizeof(id->bytes)), (int) sizeof(id->bytes));
    close(pair[0]);
    return process;
}

/* While the last rank is still to come. All of the root's own ranks learn it at once, and the others by the first root, or from
 * the last rank, which cannot join. */
static void test_dead_holder(void **state)
{
    (void) state;
    for (int dead = 0; dead < 2; dead++) {
        struct rank ranks[6];
        pthread_t threads[5];
        make_ids(2, 0);
        const pid_t process = make_id_elsewhere(&ids[dead]);
        for (int i = 0; i < 6; i++) {
            prepare(&ranks[i], i, 6, 2);
            ranks[i].options.connect_timeout = 3;
        }
        for (int i = 0; i < 5; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, rank_connect, &ranks[i]), 0);
        usleep(500000);
        kill(process, SIGKILL);
        waitpid(process, NULL, 0);
        for (int i = 0; i < 5; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(ranks[i].result, RONDO_ERR_BOOTSTRAP);
            if (ranks[i].seconds > 2.5)
                fail_msg("rank %d has waited for %.1f s: %s", i, ranks[i].seconds, ranks[i].error);
        }
        assert_non_null(
            strstr(ranks[dead == 0 ? 4 : 0].error, dead == 0 ? "the root of ranks 0 to 2 ended before the job had formed"
                                                             : "the root of ranks 3 to 5 ended before the job had formed"));
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, remember_resources, expect_resources)

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "hold-root") == 0)
        return hold_root(arguments);
    unsetenv("RONDO_ROOT");
    setenv("RONDO_CONNECT_TIMEOUT", "4", 1); /* of a root that no rank comes to; a test waits 5 s for threads to end */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares),  TEST(test_jobs),
                                       TEST(test_jobs_across_hosts),   TEST(test_encrypted_jobs),
                                       TEST(test_missing_rank),        TEST(test_missing_share),
                                       TEST(test_missing_first_share), TEST(test_other_numbers_of_roots),
                                       TEST(test_other_order),         TEST(test_rank_twice),
                                       TEST(test_false_first_id),      TEST(test_mask),
                                       TEST(test_configuration),       TEST(test_root_that_breaks_the_rules),
                                       TEST(test_dead_holder),         TEST(test_listed),
                                       TEST(test_listed_missing),      TEST(test_bad_lists),
                                       TEST(test_unlike_lists),        TEST(test_id_beside_a_list)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
