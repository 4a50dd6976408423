/* The control plane among correct ranks: every form of rendezvous, ordered messages, leaving, failing and missing ranks. */
#include "test/unit/support/ranks.h"

#include "lib/base/cipher.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

enum method { UNIQUE_LOCAL, UNIQUE_REMOTE, UNIX_JOB, TCP };

static rondo_unique_id_t id;
static char job[64], root[64];

/* Chooses a rendezvous address that no other test uses. */
static void choose_method(struct rank *ranks, int size, enum method method)
{
    static int count;
    snprintf(job, sizeof(job), "test-control-%ld-%d", (long) getpid(), count++);
    snprintf(root, sizeof(root), "127.0.0.1:%d", free_port());
    unsetenv("RONDO_HOSTID");
    unsetenv("RONDO_ROOT");
    if (method == UNIQUE_LOCAL || method == UNIQUE_REMOTE)
        assert_int_equal(rondo_get_unique_id(&id), RONDO_SUCCESS);
    /* Ranks that seem to be on another host than the unique id's must use TCP. */
    if (method == UNIQUE_REMOTE)
        setenv("RONDO_HOSTID", "elsewhere", 1);
    for (int i = 0; i < size; i++) {
        rank_prepare(&ranks[i], i, size);
        if (method == UNIQUE_LOCAL || method == UNIQUE_REMOTE)
            ranks[i].options.unique_id = &id;
        if (method == UNIX_JOB)
            ranks[i].options.job = job;
        if (method == TCP) {
            ranks[i].options.root = root;
            ranks[i].options.secret = "a secret";
        }
    }
}

enum { MESSAGES = 100 };

/* Sends MESSAGES of growing size to each rank, itself included, then one to all ranks. */
static void *send_to_all(void *argument)
{
    struct rank *rank = argument;
    int failures = 0;
    for (uint32_t number = 0; number < MESSAGES; number++)
        for (int dest = 0; dest < rank->options.size; dest++)
            failures += send_number(rank, dest, number, 4 + number * 7) != RONDO_SUCCESS;
    failures += rondo_control_send(rank->control, RONDO_CONTROL_ALL, PLAIN, NULL, 0) != RONDO_SUCCESS;
    count_failures(rank, failures);
    return NULL;
}

static void exchange(int size, enum method method)
{
    struct rank ranks[RANKS_MOST];
    choose_method(ranks, size, method);
    connect_all(ranks, size);
    in_parallel(ranks, size, send_to_all);
    for (int i = 0; i < size; i++) {
        for (int source = 0; source < size; source++)
            assert_true(await(&ranks[i], &ranks[i].next[source], MESSAGES, 60));
        assert_true(await(&ranks[i], &ranks[i].plain, size - 1, 60));
        assert_int_equal(read_counter(&ranks[i], &ranks[i].disordered), 0);
    }
    in_parallel(ranks, size, rank_close);
    for (int i = 0; i < size; i++) {
        assert_int_equal(ranks[i].plain, size - 1);
        assert_int_equal(ranks[i].lost, 0);
        for (int source = 0; source < size; source++) {
            assert_int_equal(ranks[i].next[source], MESSAGES);
            assert_int_equal(ranks[i].died[source], 0);
            assert_true(ranks[i].left[source] <= 1);
        }
    }
}

static void test_unique_id(void **state)
{
    (void) state;
    for (int size = 1; size <= 9; size++)
        exchange(size, UNIQUE_LOCAL);
}

static void test_unique_id_across_hosts(void **state)
{
    (void) state;
    for (int size = 1; size <= 9; size += 4)
        exchange(size, UNIQUE_REMOTE);
    unsetenv("RONDO_HOSTID");
}

static void test_unix_job(void **state)
{
    (void) state;
    for (int size = 1; size <= 9; size++)
        exchange(size, UNIX_JOB);
}

static void test_tcp(void **state)
{
    (void) state;
    for (int size = 1; size <= 9; size++)
        exchange(size, TCP);
}

static void test_other_addresses(void **state)
{
    (void) state;
    static const char *const hosts[] = {"localhost", "[::1]", "127.0.0.2"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct rank ranks[2];
        if (hosts[i][0] == '[' && access("/proc/net/if_inet6", R_OK) != 0) {
            print_message("no IPv6 here: %s left out\n", hosts[i]);
            continue;
        }
        choose_method(ranks, 2, TCP);
        snprintf(root, sizeof(root), "%s:%d", hosts[i], free_port());
        connect_all(ranks, 2);
        assert_int_equal(send_number(&ranks[1], 0, 0, 4), RONDO_SUCCESS);
        assert_true(await(&ranks[0], &ranks[0].next[1], 1, 10));
        in_parallel(ranks, 2, rank_close);
    }
}

/* One rendezvous address serves one job after the other, at once. */
static void test_again(void **state)
{
    (void) state;
    for (int method = UNIX_JOB; method <= TCP; method++) {
        struct rank ranks[3];
        choose_method(ranks, 3, (enum method) method);
        for (int round = 0; round < 5; round++) {
            connect_all(ranks, 3);
            in_parallel(ranks, 3, rank_close);
        }
    }
}

static void *send_big(void *argument)
{
    struct rank *rank = argument;
    int failures = 0;
    for (uint32_t number = 0; number < 6; number++)
        for (int dest = 0; dest < rank->options.size; dest++)
            failures += send_number(rank, dest, number, RONDO_CONTROL_MESSAGE_MAX - number * 3) != RONDO_SUCCESS;
    count_failures(rank, failures);
    return NULL;
}

static void test_big_messages(void **state)
{
    (void) state;
    for (int method = UNIX_JOB; method <= TCP; method++) {
        struct rank ranks[3];
        choose_method(ranks, 3, (enum method) method);
        connect_all(ranks, 3);
        in_parallel(ranks, 3, send_big);
        for (int i = 0; i < 3; i++) {
            for (int source = 0; source < 3; source++)
                assert_true(await(&ranks[i], &ranks[i].next[source], 6, 60));
            assert_int_equal(read_counter(&ranks[i], &ranks[i].disordered), 0);
        }
        in_parallel(ranks, 3, rank_close);
    }
}

/* Sizes up to the largest, between which lies the one from which members share a copy, and sizes that end in a padding. */
static const size_t broadcast_bytes[] = {
    4, 4095, 4096, 16384, 5001, RONDO_CONTROL_MESSAGE_MAX, 16, 70003, RONDO_CONTROL_MESSAGE_MAX - 5, 32768, 12345, 8};
enum { BROADCASTS = sizeof(broadcast_bytes) / sizeof(broadcast_bytes[0]) };

static void *broadcast_all(void *argument)
{
    struct rank *rank = argument;
    int failures = 0;
    for (uint32_t number = 0; number < BROADCASTS; number++)
        failures += send_number(rank, RONDO_CONTROL_ALL, number, broadcast_bytes[number]) != RONDO_SUCCESS;
    count_failures(rank, failures);
    return NULL;
}

/* Of all ranks but one at once. That one then dies, and what it has not taken is freed with its connection. */
static void test_broadcasts(void **state)
{
    (void) state;
    const int can_encrypt = rondo_cipher_unusable() == NULL;
    for (int encrypts = 0; encrypts <= can_encrypt; encrypts++) {
        struct rank ranks[5];
        choose_method(ranks, 5, TCP);
        for (int i = 0; i < 5; i++)
            ranks[i].options.encrypts = encrypts;
        connect_all(ranks, 5);
        in_parallel(ranks, 4, broadcast_all);
        rondo_control_give_up(ranks[4].control);
        for (int i = 0; i < 4; i++) {
            for (int source = 0; source < 4; source++)
                if (source != i)
                    assert_true(await(&ranks[i], &ranks[i].next[source], BROADCASTS, 60));
            assert_int_equal(read_counter(&ranks[i], &ranks[i].disordered), 0);
        }
        in_parallel(ranks, 5, rank_close);
    }
}

struct sender {
    struct rank *rank;
    int failures;
};

static void *send_many(void *argument)
{
    struct sender *sender = argument;
    for (int i = 0; i < 2000; i++)
        sender->failures += rondo_control_send(sender->rank->control, 1, PLAIN, "0123456789", 10) != RONDO_SUCCESS;
    return NULL;
}

static void test_many_threads(void **state)
{
    (void) state;
    struct rank ranks[2];
    pthread_t threads[4];
    struct sender senders[4];
    choose_method(ranks, 2, UNIX_JOB);
    connect_all(ranks, 2);
    for (int i = 0; i < 4; i++) {
        senders[i] = (struct sender){&ranks[0], 0};
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &senders[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(senders[i].failures, 0);
    }
    assert_true(await(&ranks[1], &ranks[1].plain, 8000, 60));
    in_parallel(ranks, 2, rank_close);
    assert_int_equal(ranks[1].plain, 8000);
    assert_int_equal(ranks[1].plain_bytes, 80000);
}

/* A handler that answers: the message goes back and forth on the control threads alone. */
static void bounce(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    struct rank *rank = argument;
    uint32_t number;
    if (type == NUMBERED) {
        memcpy(&number, data, sizeof(number));
        number++;
        if (number < 1000 && rondo_control_send(rank->control, source, NUMBERED, &number, sizeof(number)) != RONDO_SUCCESS)
            number = 0;
        pthread_mutex_lock(&rank->mutex);
        rank->plain = (int) number;
        pthread_cond_broadcast(&rank->changed);
        pthread_mutex_unlock(&rank->mutex);
    } else {
        note(argument, source, type, data, bytes);
    }
}

static void *connect_bouncing(void *argument)
{
    struct rank *rank = argument;
    rank->result = rondo_control_connect(&rank->control, &rank->options, bounce, rank);
    return NULL;
}

static void test_send_from_handler(void **state)
{
    (void) state;
    struct rank ranks[2];
    uint32_t first = 0;
    choose_method(ranks, 2, TCP);
    in_parallel(ranks, 2, connect_bouncing);
    assert_int_equal(ranks[0].result, RONDO_SUCCESS);
    assert_int_equal(ranks[1].result, RONDO_SUCCESS);
    assert_int_equal(rondo_control_send(ranks[0].control, 1, NUMBERED, &first, sizeof(first)), RONDO_SUCCESS);
    assert_true(await(&ranks[0], &ranks[0].plain, 999, 60) && await(&ranks[1], &ranks[1].plain, 999, 60));
    in_parallel(ranks, 2, rank_close);
}

static void read_event(void *argument)
{
    uint64_t count;
    struct rank *rank = argument;
    int fd = (int) rank->options.connect_timeout;
    if (read(fd, &count, sizeof(count)) == sizeof(count)) {
        pthread_mutex_lock(&rank->mutex);
        rank->plain++;
        pthread_cond_broadcast(&rank->changed);
        pthread_mutex_unlock(&rank->mutex);
    }
}

static void test_watch(void **state)
{
    (void) state;
    struct rank rank;
    uint64_t one = 1;
    choose_method(&rank, 1, UNIX_JOB);
    connect_all(&rank, 1);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rank.options.connect_timeout = fd;
    assert_int_equal(rondo_control_watch(rank.control, fd, read_event, &rank), RONDO_SUCCESS);
    assert_int_equal(rondo_control_watch(rank.control, fd, read_event, &rank), RONDO_ERR_STATE);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
        assert_true(await(&rank, &rank.plain, i, 10));
    }
    assert_int_equal(rondo_control_watch(rank.control, -1, NULL, NULL), RONDO_SUCCESS);
    assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
    poll(NULL, 0, 50);
    assert_int_equal(read_counter(&rank, &rank.plain), 3);
    close(fd);
    rank_close(&rank);
}

static void test_arguments(void **state)
{
    (void) state;
    struct rank rank;
    choose_method(&rank, 1, UNIX_JOB);
    static const struct {
        int rank, size;
        double timeout;
    } bad[] = {{-1, 1, 1}, {1, 1, 1}, {0, 0, 1}, {0, 1 << 30, 1}, {0, 1, 0}, {0, 1, -1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct rondo_job_options options = rank.options;
        options.rank = bad[i].rank;
        options.size = bad[i].size;
        options.connect_timeout = bad[i].timeout;
        assert_int_equal(rondo_control_connect(&rank.control, &options, note, &rank), RONDO_ERR_ARGUMENT);
        assert_null(rank.control);
    }
    connect_all(&rank, 1);
    assert_int_equal(rondo_control_send(rank.control, 1, PLAIN, NULL, 0), RONDO_ERR_ARGUMENT);
    assert_int_equal(rondo_control_send(rank.control, -2, PLAIN, NULL, 0), RONDO_ERR_ARGUMENT);
    assert_int_equal(rondo_control_send(rank.control, 0, RONDO_CONTROL_FIRST_USER_TYPE - 1, NULL, 0), RONDO_ERR_ARGUMENT);
    assert_int_equal(rondo_control_send(rank.control, 0, PLAIN, NULL, 1), RONDO_ERR_ARGUMENT);
    assert_int_equal(rondo_control_send(rank.control, 0, PLAIN, job, RONDO_CONTROL_MESSAGE_MAX + 1), RONDO_ERR_ARGUMENT);
    rank_close(&rank);
    rondo_control_close(NULL, 30);
}

static void test_leave(void **state)
{
    (void) state;
    struct rank ranks[4];
    choose_method(ranks, 4, TCP);
    connect_all(ranks, 4);
    assert_int_equal(send_number(&ranks[2], 0, 0, 4), RONDO_SUCCESS);
    rank_close(&ranks[2]);
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            continue;
        assert_true(await(&ranks[i], &ranks[i].left[2], 1, 10));
        assert_int_equal(rondo_control_send(ranks[i].control, 2, PLAIN, NULL, 0), RONDO_ERR_PEER);
        assert_non_null(strstr(rondo_last_error(), "rank 2"));
        assert_int_equal(rondo_control_send(ranks[i].control, RONDO_CONTROL_ALL, PLAIN, NULL, 0), RONDO_SUCCESS);
    }
    /* A message that was sent before the goodbye arrives before it. */
    assert_int_equal(read_counter(&ranks[0], &ranks[0].next[2]), 1);
    for (int i = 0; i < 4; i++)
        if (i != 2)
            assert_true(await(&ranks[i], &ranks[i].plain, 2, 10));
    ranks[2] = ranks[3];
    in_parallel(ranks, 3, rank_close);
}

/* The rank that held the root leaves at once, and the others, though these are slow, go on without it. */
static void test_root_leaves(void **state)
{
    (void) state;
    char count[16], number[16];
    for (int method = UNIX_JOB; method <= TCP; method++) {
        struct rank ranks[2];
        choose_method(ranks, 2, (enum method) method);
        snprintf(number, sizeof(number), "%d", 1);
        snprintf(count, sizeof(count), "%d", 2);
        char *arguments[] = {"test", method == TCP ? "tcp" : "job", method == TCP ? root : job, number, count, "late", NULL};
        pid_t process = start_process(arguments);
        connect_all(ranks, 1);
        assert_true(await(&ranks[0], &ranks[0].next[1], 1, 20));
        double begin = seconds_now();
        rank_close(&ranks[0]);
        assert_true(seconds_now() - begin < 0.25);
        int status;
        assert_int_equal(waitpid(process, &status, 0), process);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

static void expect_death(int victim, int size, enum method method)
{
    struct rank ranks[RANKS_MOST];
    char count[16], number[16];
    choose_method(ranks, size, method);
    snprintf(number, sizeof(number), "%d", victim);
    snprintf(count, sizeof(count), "%d", size);
    char *arguments[] = {"test", method == TCP ? "tcp" : "job", method == TCP ? root : job, number, count, "wait", NULL};
    pid_t process = start_process(arguments);
    /* The last rank takes the victim's place in the array. */
    ranks[victim] = ranks[size - 1];
    connect_all(ranks, size - 1);
    for (int i = 0; i < size - 1; i++)
        assert_true(await(&ranks[i], &ranks[i].next[victim], 1, 20));
    double begin = seconds_now();
    kill(process, SIGKILL);
    for (int i = 0; i < size - 1; i++)
        assert_true(await(&ranks[i], &ranks[i].died[victim], 1, 5));
    assert_true(seconds_now() - begin < 1);
    assert_int_equal(rondo_control_send(ranks[0].control, victim, PLAIN, NULL, 0), RONDO_ERR_PEER);
    assert_int_equal(read_counter(&ranks[1], &ranks[1].lost), 0);
    assert_int_equal(rondo_control_send(ranks[0].control, ranks[1].options.rank, PLAIN, NULL, 0), RONDO_SUCCESS);
    assert_true(await(&ranks[1], &ranks[1].plain, 1, 10));
    in_parallel(ranks, size - 1, rank_close);
    for (int i = 0; i < size - 1; i++)
        assert_int_equal(ranks[i].left[victim], 0);
    assert_int_equal(waitpid(process, NULL, 0), process);
}

static void test_death(void **state)
{
    (void) state;
    expect_death(2, 4, UNIX_JOB);
    expect_death(2, 4, TCP);
}

static void test_root_death(void **state)
{
    (void) state;
    expect_death(0, 4, UNIX_JOB);
    expect_death(0, 4, TCP);
}

static void expect_error(const struct rank *rank, const char *part)
{
    assert_int_equal(rank->result, RONDO_ERR_BOOTSTRAP);
    if (strstr(rank->error, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", rank->error, part);
}

static void test_missing(void **state)
{
    (void) state;
    for (int method = UNIQUE_LOCAL; method <= TCP; method++) {
        struct rank ranks[3];
        choose_method(ranks, 3, (enum method) method);
        for (int i = 0; i < 3; i++) {
            ranks[i].options.size = 30;
            ranks[i].options.connect_timeout = 0.5;
        }
        ranks[1].options.rank = 5;
        ranks[2].options.rank = 29;
        in_parallel(ranks, 3, rank_connect);
        for (int i = 0; i < 3; i++) {
            expect_error(&ranks[i], "ranks 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17 and 11 more of 30");
            assert_true(ranks[i].seconds > 0.4 && ranks[i].seconds < 3);
            if (method == UNIX_JOB)
                expect_error(&ranks[i], "RONDO_ROOT=host:port");
        }
        choose_method(ranks, 3, (enum method) method);
        ranks[0].options.connect_timeout = ranks[2].options.connect_timeout = 0.3;
        ranks[1] = ranks[2];
        in_parallel(ranks, 2, rank_connect);
        expect_error(&ranks[0], "rank 1 of 3 did not come within 0.3 s");
        expect_error(&ranks[1], "rank 1 of 3 did not come");
    }
    unsetenv("RONDO_HOSTID");
}

static void test_missing_root(void **state)
{
    (void) state;
    struct rank rank[2];
    for (int method = UNIX_JOB; method <= TCP; method++) {
        choose_method(rank, 2, (enum method) method);
        rank[1].options.connect_timeout = 0.3;
        rank_connect(&rank[1]);
        expect_error(&rank[1], method == TCP ? root : job);
        expect_error(&rank[1], method == TCP ? "Connection refused" : "RONDO_ROOT=host:port");
        assert_true(rank[1].seconds < 3);
    }
}

/* A root that no rank contacts ends by itself (the teardown checks it), and its id is invalid afterwards. */
static void test_unused_unique_id(void **state)
{
    (void) state;
    struct rank rank;
    setenv("RONDO_CONNECT_TIMEOUT", "0.2", 1);
    choose_method(&rank, 1, UNIQUE_LOCAL);
    unsetenv("RONDO_CONNECT_TIMEOUT");
    usleep(500000);
    rank.options.connect_timeout = 0.3;
    rank_connect(&rank);
    expect_error(&rank, "unique id");
    memset(&id, 0, sizeof(id));
    rank_connect(&rank);
    assert_int_equal(rank.result, RONDO_ERR_ARGUMENT);
}

static void test_misfits(void **state)
{
    (void) state;
    struct rank ranks[3], wrong_size, twice;
    pthread_t thread;
    for (int method = UNIQUE_LOCAL; method <= TCP; method++) {
        choose_method(ranks, 2, (enum method) method);
        wrong_size = twice = ranks[1];
        wrong_size.options.size = 3;
        const int is_by_id = method == UNIQUE_LOCAL || method == UNIQUE_REMOTE;
        twice.options.rank = is_by_id ? 0 : 1;
        /* While the job forms ... */
        assert_int_equal(pthread_create(&thread, NULL, rank_connect, &ranks[0]), 0);
        usleep(300000);
        rank_connect(&wrong_size);
        expect_error(&wrong_size, "3 ranks, but others were told 2");
        if (twice.options.rank == 0) {
            rank_connect(&twice);
            expect_error(&twice, "rank 0 of 2 is there already");
        }
        /* ... and after it has formed. */
        rank_connect(&ranks[1]);
        assert_int_equal(ranks[1].result, RONDO_SUCCESS);
        pthread_join(thread, NULL);
        assert_int_equal(ranks[0].result, RONDO_SUCCESS);
        twice.options.connect_timeout = 0.3;
        rank_connect(&twice);
        expect_error(&twice, is_by_id ? "refused" : "has formed");
        assert_true(twice.seconds < 5);
        assert_int_equal(send_number(&ranks[1], 0, 0, 100), RONDO_SUCCESS);
        assert_true(await(&ranks[0], &ranks[0].next[1], 1, 10));
        assert_int_equal(ranks[0].died[1], 0);
        in_parallel(ranks, 2, rank_close);
    }
    unsetenv("RONDO_HOSTID");
}

/* Two jobs with one address: the second rank 0 gets an error. */
static void test_place_taken(void **state)
{
    (void) state;
    for (int method = UNIX_JOB; method <= TCP; method++) {
        struct rank ranks[2], second;
        choose_method(ranks, 2, (enum method) method);
        connect_all(ranks, 2);
        second = ranks[0];
        second.options.connect_timeout = 0.5;
        rank_connect(&second);
        expect_error(&second, method == TCP ? "in use" : "RONDO_JOB");
        in_parallel(ranks, 2, rank_close);
    }
}

static void test_bad_roots(void **state)
{
    (void) state;
    static const struct {
        const char *root, *part;
    } bad[] = {
        {"localhost", "not host:port"},
        {":5", "not host:port"},
        {"localhost:0", "port"},
        {"localhost:65536", "port"},
        {"localhost:12x", "port"},
        {"::1:5", "brackets"},
        {"[::1", "not host:port"},
        {"no-such-host.invalid:5", "resolve"},
        {"192.0.2.7:5", "export RONDO_SECRET=$(openssl rand -hex 16)"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (int number = 0; number < 2; number++) {
            struct rank rank;
            rank_prepare(&rank, number, 2);
            rank.options.root = bad[i].root;
            rank.options.connect_timeout = 0.5;
            rank_connect(&rank);
            expect_error(&rank, bad[i].part);
        }
}

/* A loopback address needs no secret. */
static void test_no_secret(void **state)
{
    (void) state;
    struct rank ranks[2];
    choose_method(ranks, 2, TCP);
    ranks[0].options.secret = NULL;
    ranks[1].options.secret = "";
    connect_all(ranks, 2);
    in_parallel(ranks, 2, rank_close);
}

/* A rank in a process of its own: METHOD PLACE RANK SIZE BEHAVIOUR. It greets all other ranks, then waits to be killed, or
 * leaves late. */
static int be_rank(char **arguments)
{
    struct rank rank;
    rank_prepare(&rank, atoi(arguments[3]), atoi(arguments[4]));
    if (strcmp(arguments[1], "tcp") == 0) {
        rank.options.root = arguments[2];
        rank.options.secret = "a secret";
    } else {
        rank.options.job = arguments[2];
    }
    rank_connect(&rank);
    if (rank.result != RONDO_SUCCESS)
        return 1;
    for (int dest = 0; dest < rank.options.size; dest++)
        if (dest != rank.options.rank && send_number(&rank, dest, 0, 4) != RONDO_SUCCESS)
            return 2;
    if (strcmp(arguments[5], "wait") == 0)
        sleep(30);
    usleep(300000);
    rondo_control_close(rank.control, 30);
    return rank.lost;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, remember_resources, expect_resources)

int main(int count, char **arguments)
{
    if (count == 6)
        return be_rank(arguments);
    setenv("HOME", "/nowhere", 1); /* whose user has no secret in a file */
    const struct CMUnitTest tests[] = {
        TEST(test_unique_id),
        TEST(test_unique_id_across_hosts),
        TEST(test_unix_job),
        TEST(test_tcp),
        TEST(test_other_addresses),
        TEST(test_again),
        TEST(test_big_messages),
        TEST(test_broadcasts),
        TEST(test_many_threads),
        TEST(test_send_from_handler),
        TEST(test_watch),
        TEST(test_arguments),
        TEST(test_leave),
        TEST(test_root_leaves),
        TEST(test_death),
        TEST(test_root_death),
        TEST(test_missing),
        TEST(test_missing_root),
        TEST(test_unused_unique_id),
        TEST(test_misfits),
        TEST(test_place_taken),
        TEST(test_bad_roots),
        TEST(test_no_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
