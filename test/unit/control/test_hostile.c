/* The control plane under attack: garbage, floods, wrong secrets, and an intermediary that repeats, alters, drops or swaps the
 * ranks' messages, or cuts their connections. The job is not affected, or reports a rank to which nothing gets through. */
#include "test/unit/support/ranks.h"

#include "lib/bootstrap/handshake.h"
#include "lib/bootstrap/frame_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/un.h>

static int port; /* of the job's root */

static void expect_exchange(struct rank *ranks, int size, uint32_t number)
{
    for (int i = 0; i < size; i++)
        for (int dest = 0; dest < size; dest++)
            assert_int_equal(send_number(&ranks[i], dest, number, 64), RONDO_SUCCESS);
    for (int i = 0; i < size; i++) {
        for (int source = 0; source < size; source++) {
            assert_true(await(&ranks[i], &ranks[i].next[source], (int) number + 1, 20));
            assert_int_equal(read_counter(&ranks[i], &ranks[i].died[source]), 0);
        }
        assert_int_equal(read_counter(&ranks[i], &ranks[i].disordered), 0);
        assert_int_equal(read_counter(&ranks[i], &ranks[i].lost), 0);
    }
}

static void test_wrong_secret(void **state)
{
    (void) state;
    struct rank ranks[3], unauthenticated[3];
    pthread_t thread;
    static const char *const secrets[] = {"another secret", "", "a secret "};
    port = use_tcp(ranks, 3);
    for (int i = 0; i < 3; i++) {
        unauthenticated[i] = ranks[i == 0 ? 1 : i];
        unauthenticated[i].options.secret = secrets[i];
    }
    assert_int_equal(pthread_create(&thread, NULL, rank_connect, &ranks[0]), 0);
    usleep(50000);
    in_parallel(unauthenticated, 3, rank_connect);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unauthenticated[i].result, RONDO_ERR_BOOTSTRAP);
        assert_non_null(strstr(unauthenticated[i].error, i == 1 ? "without a secret" : "refused the secret"));
        assert_non_null(strstr(unauthenticated[i].error, "RONDO_SECRET"));
        assert_true(unauthenticated[i].seconds < 5);
    }
    in_parallel(ranks + 1, 2, rank_connect);
    pthread_join(thread, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ranks[i].result, RONDO_SUCCESS);
    in_parallel(unauthenticated, 3, rank_connect);
    for (int i = 0; i < 3; i++)
        assert_int_equal(unauthenticated[i].result, RONDO_ERR_BOOTSTRAP);
    expect_exchange(ranks, 3, 0);
    in_parallel(ranks, 3, rank_close);
}

/* A rank with the right secret tells nothing to a root with another one: neither side accepts the other. */
static void test_false_root(void **state)
{
    (void) state;
    struct rank rank;
    port = use_tcp(&rank, 1);
    rank.options.size = 2;
    rank.options.rank = 1;
    rank.options.connect_timeout = 0.5;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1, served = 0;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_int_equal(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 16), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, rank_connect, &rank), 0);
    for (struct pollfd poller = {listener, POLLIN, 0}; poll(&poller, 1, 1000) > 0;) {
        struct rondo_handshake handshake = {.encrypts = 0};
        struct rondo_hmac guess;
        int fd = accept(listener, NULL, NULL);
        rondo_hmac_begin(&guess, "a guess", 7);
        assert_int_equal(rondo_handshake_make_challenge(&handshake), RONDO_SUCCESS);
        (void) send(fd, handshake.challenge, sizeof(handshake.challenge), MSG_NOSIGNAL);
        if (recv(fd, handshake.hello, sizeof(handshake.hello), MSG_WAITALL) == sizeof(handshake.hello)) {
            rondo_handshake_make_verdict(&handshake, &guess, RONDO_HANDSHAKE_WELCOME, 0);
            (void) send(fd, handshake.verdict, sizeof(handshake.verdict), MSG_NOSIGNAL);
            served++;
        }
        close(fd);
    }
    pthread_join(thread, NULL);
    close(listener);
    assert_true(served > 0);
    assert_int_equal(rank.result, RONDO_ERR_BOOTSTRAP);
    assert_non_null(strstr(rank.error, "does not know the secret"));
}

/* Unauthenticated connections of several kinds keep coming until told to stop. */
struct flood {
    int unix_socket; /* else TCP */
    struct sockaddr_un address;
    socklen_t bytes;
    int most; /* most connections held open */
    atomic_int stop, made;
};

static int flood_connect(const struct flood *flood)
{
    if (!flood->unix_socket)
        return tcp_connect(port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(fd, (const struct sockaddr *) &flood->address, flood->bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void *pour(void *argument)
{
    struct flood *flood = argument;
    enum { HELD = 500 };
    int held[HELD], count = 0;
    unsigned char garbage[4096];
    memset(garbage, 0xa5, sizeof(garbage));
    for (int i = 0; i < HELD; i++)
        held[i] = -1;
    while (!atomic_load(&flood->stop) && count < flood->most) {
        int fd = flood_connect(flood);
        if (fd < 0) {
            usleep(1000);
            continue;
        }
        switch (count % 5) {
        case 0: /* sends nothing */
            break;
        case 1:
            (void) send(fd, garbage, sizeof(garbage), MSG_NOSIGNAL | MSG_DONTWAIT);
            break;
        case 2: /* half of a valid hello */
            memcpy(garbage, "RONDOctl\2\0\0\0", 12);
            (void) send(fd, garbage, RONDO_HANDSHAKE_HELLO / 2, MSG_NOSIGNAL | MSG_DONTWAIT);
            break;
        case 3: /* a complete hello with a false proof */
            memcpy(garbage, "RONDOctl\2\0\0\0\1\0\0\0\3\0\0\0", 20);
            (void) send(fd, garbage, RONDO_HANDSHAKE_HELLO, MSG_NOSIGNAL | MSG_DONTWAIT);
            break;
        default:
            (void) send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        if (held[count % HELD] >= 0)
            close(held[count % HELD]);
        held[count % HELD] = fd;
        count++;
        atomic_store(&flood->made, count);
    }
    while (!atomic_load(&flood->stop))
        usleep(1000);
    for (int i = 0; i < HELD; i++)
        if (held[i] >= 0)
            close(held[i]);
    return NULL;
}

/* Whether that many connections were made within 20 s: on a busy machine the ranks may be faster than the flood. */
static int await_flood(struct flood *flood, int made)
{
    for (int i = 0; i < 20000 && atomic_load(&flood->made) < made; i++)
        usleep(1000);
    return atomic_load(&flood->made) >= made;
}

/* The first rank listens; then the flood starts, and only then the other ranks connect. */
static void form_in_flood(struct rank *ranks, int size, struct flood *flood)
{
    pthread_t first, pourer;
    assert_int_equal(pthread_create(&first, NULL, rank_connect, &ranks[0]), 0);
    assert_int_equal(pthread_create(&pourer, NULL, pour, flood), 0);
    assert_true(await_flood(flood, 300));
    in_parallel(ranks + 1, size - 1, rank_connect);
    pthread_join(first, NULL);
    for (int i = 0; i < size; i++) {
        if (ranks[i].result != RONDO_SUCCESS)
            fail_msg("rank %d: %s", i, ranks[i].error);
        assert_true(ranks[i].seconds < 10);
    }
    for (uint32_t number = 0; number < 20; number++)
        expect_exchange(ranks, size, number);
    assert_true(await_flood(flood, 500));
    atomic_store(&flood->stop, 1);
    pthread_join(pourer, NULL);
    expect_exchange(ranks, size, 20);
    in_parallel(ranks, size, rank_close);
}

static void test_flood(void **state)
{
    (void) state;
    struct rank ranks[4];
    struct flood held = {.most = 500}, endless = {.most = 1000000};
    port = use_tcp(ranks, 4);
    form_in_flood(ranks, 4, &held);
    port = use_tcp(ranks, 4);
    form_in_flood(ranks, 4, &endless);
}

static void test_unix_flood(void **state)
{
    (void) state;
    static const char *const prefix = "rondo-";
    struct rank ranks[4];
    struct flood flood = {.most = 500, .unix_socket = 1, .address.sun_family = AF_UNIX};
    char job[64], name[100];
    snprintf(job, sizeof(job), "test-hostile-%ld", (long) getpid());
    struct rondo_sha256 hash;
    unsigned char digest[RONDO_SHA256_BYTES];
    rondo_sha256_begin(&hash);
    rondo_sha256_add(&hash, job, strlen(job));
    rondo_sha256_end(&hash, digest);
    int at = snprintf(name, sizeof(name), "%s%lu-", prefix, (unsigned long) geteuid());
    for (int i = 0; i < 16; i++)
        at += snprintf(name + at, sizeof(name) - (size_t) at, "%02x", digest[i]);
    at += snprintf(name + at, sizeof(name) - (size_t) at, "-0");
    memcpy(flood.address.sun_path + 1, name, (size_t) at);
    flood.bytes = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) at);
    for (int i = 0; i < 4; i++) {
        rank_prepare(&ranks[i], i, 4);
        ranks[i].options.job = job;
    }
    form_in_flood(ranks, 4, &flood);
}

/* Another user may hold the name that a job would use for its rendezvous. Only root can act as two users. */
static void test_name_held_by_another_user(void **state)
{
    (void) state;
    struct rank ranks[2];
    char job[64], name[100];
    if (geteuid() != 0) {
        print_message("only root can play another user: left out\n");
        skip();
    }
    snprintf(job, sizeof(job), "test-held-name-%ld", (long) getpid());
    struct rondo_sha256 hash;
    unsigned char digest[RONDO_SHA256_BYTES];
    rondo_sha256_begin(&hash);
    rondo_sha256_add(&hash, job, strlen(job));
    rondo_sha256_end(&hash, digest);
    int at = snprintf(name, sizeof(name), "rondo-%lu-", (unsigned long) geteuid()), ready[2];
    for (int i = 0; i < 16; i++)
        at += snprintf(name + at, sizeof(name) - (size_t) at, "%02x", digest[i]);
    snprintf(name + at, sizeof(name) - (size_t) at, "-0");
    assert_int_equal(pipe(ready), 0);
    char pipe_end[16];
    snprintf(pipe_end, sizeof(pipe_end), "%d", ready[1]);
    char *arguments[] = {"test", name, pipe_end, NULL};
    pid_t process = start_process(arguments);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 2; i++) {
        rank_prepare(&ranks[i], i, 2);
        ranks[i].options.job = job;
    }
    connect_all(ranks, 2);
    expect_exchange(ranks, 2, 0);
    in_parallel(ranks, 2, rank_close);
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

static int squat(const char *name, int ready)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path + 1, name, strlen(name));
    if (setuid(12345) != 0)
        return 1;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *) &address, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) != 0 ||
        listen(fd, 1) != 0 || write(ready, "x", 1) != 1)
        return 2;
    return sleep(30) != 0;
}

/* ---- an intermediary ---- */

enum mischief { NONE, REPEAT, ALTER_DATA, ALTER_HEADER, ALTER_LENGTH, ALTER_TAG, OMIT, SWAP, CUT, CUT_OFTEN };

/* What intermediaries between ranks do: each forwards the frames of one connection, and damages the third message of `bytes`
 * bytes that `source` sends, or each one; CUT_OFTEN: ends it in the middle of a frame, the first or one of the next few. */
static struct {
    atomic_int on;
    _Atomic(enum mischief) mischief;
    int source, each;
    size_t bytes;
    atomic_int cuts;  /* connections that were ended */
    atomic_int plain; /* a frame had data as send_number makes them */
} plan;

struct middle {
    int listener, port; /* where it listens */
    int target;         /* the port to which it connects */
    int messages;
    unsigned char hello[RONDO_HANDSHAKE_HELLO]; /* recorded */
    pthread_t thread;
};
enum { MIDDLES_MOST = 8192, FRAMES_MOST = 24 };
static struct middle middles[MIDDLES_MOST];
static atomic_int middle_count;

/* Reads one frame with blocking reads. Returns 0 at the end. */
static size_t read_frame(int fd, unsigned char *frame, size_t most)
{
    if (recv(fd, frame, RONDO_FRAME_HEADER, MSG_WAITALL) != RONDO_FRAME_HEADER)
        return 0;
    size_t rest = ((size_t) rondo_frame_load32(frame) + 7) / 8 * 8 + RONDO_FRAME_TAG;
    if (RONDO_FRAME_HEADER + rest > most || recv(fd, frame + RONDO_FRAME_HEADER, rest, MSG_WAITALL) != (ssize_t) rest)
        return 0;
    return RONDO_FRAME_HEADER + rest;
}

static void pass(int fd, const unsigned char *bytes, size_t count)
{
    (void) send(fd, bytes, count, MSG_NOSIGNAL);
}

static void harm(enum mischief mischief, int from, int to, unsigned char *frame, size_t bytes)
{
    unsigned char next[4096];
    size_t next_bytes;
    switch (mischief) {
    case ALTER_DATA:
        frame[RONDO_FRAME_HEADER + 5] ^= 1;
        break;
    case ALTER_HEADER: /* the destination */
        frame[12] ^= 1;
        break;
    case ALTER_LENGTH:
        frame[0] ^= 8;
        break;
    case ALTER_TAG:
        frame[bytes - 1] ^= 0x80;
        break;
    default:
        break;
    }
    if (mischief == SWAP && (next_bytes = read_frame(from, next, sizeof(next))) > 0)
        pass(to, next, next_bytes);
    if (mischief != OMIT)
        pass(to, frame, mischief == CUT ? bytes / 2 : bytes);
    if (mischief == REPEAT)
        pass(to, frame, bytes);
    if (mischief == CUT)
        shutdown(to, SHUT_RDWR);
}

/* Passes a part of the frame on, and has the connection end: what is under way either way is lost. Returns 0. */
static int cut(int fd, const unsigned char *bytes, size_t count)
{
    atomic_fetch_add(&plan.cuts, 1);
    pass(fd, bytes, count / 3);
    return 0;
}

/* Whether it is the filling that send_number makes, as far as it depends on the message's number alone. */
static int is_numbered(const unsigned char *data)
{
    int same = 0;
    for (uint32_t i = 8; i < 40; i++)
        same += data[i] == (unsigned char) (data[0] + i);
    return same == 32;
}

/* Whether the frame is the one to be damaged. */
static int is_victim(struct middle *middle, const unsigned char *frame)
{
    const int rank = (int) rondo_frame_load32(middle->hello + 12);
    return rank == plan.source && rondo_frame_load32(frame) == plan.bytes && (++middle->messages == 3 || plan.each);
}

/* Passes so many bytes on. Returns 0 at the end of the connection. */
static int hand_on(int from, int to, unsigned char *bytes, size_t count)
{
    if (recv(from, bytes, count, MSG_WAITALL) != (ssize_t) count)
        return 0;
    pass(to, bytes, count);
    return 1;
}

static void *stand_in_the_middle(void *argument)
{
    struct middle *middle = argument;
    unsigned char bytes[4096];
    unsigned seed = (unsigned) (middle - middles);
    int left = 1 + rand_r(&seed) % FRAMES_MOST; /* frames until it cuts the connection */
    int maker_end = accept(middle->listener, NULL, NULL), other_end = tcp_connect(middle->target);
    const int open_at_first = hand_on(other_end, maker_end, bytes, RONDO_HANDSHAKE_CHALLENGE) &&
                              hand_on(maker_end, other_end, middle->hello, sizeof(middle->hello)) &&
                              hand_on(other_end, maker_end, bytes, RONDO_HANDSHAKE_VERDICT);
    for (int open = open_at_first; open;) {
        struct pollfd pollers[2] = {{maker_end, POLLIN, 0}, {other_end, POLLIN, 0}};
        if (poll(pollers, 2, 20000) <= 0)
            break;
        for (int side = 0; side < 2 && open; side++) {
            int from = side == 0 ? maker_end : other_end, to = side == 0 ? other_end : maker_end;
            if (pollers[side].revents == 0)
                continue;
            size_t count = read_frame(from, bytes, sizeof(bytes));
            if (count > RONDO_FRAME_HEADER + 64 && is_numbered(bytes + RONDO_FRAME_HEADER))
                atomic_store(&plan.plain, 1);
            if (count == 0)
                open = 0;
            else if (plan.mischief == CUT_OFTEN && --left <= 0)
                open = cut(to, bytes, count);
            else if (side == 0 && plan.mischief != NONE && is_victim(middle, bytes))
                harm(plan.mischief, from, to, bytes, count);
            else
                pass(to, bytes, count);
        }
    }
    close(maker_end);
    close(other_end);
    close(middle->listener);
    return NULL;
}

/* Called on threads of the library, too, so it does not assert. */
static void start_middle(struct middle *middle, int target)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    *middle = (struct middle){.target = target, .listener = socket(AF_INET, SOCK_STREAM, 0)};
    if (bind(middle->listener, (struct sockaddr *) &address, bytes) != 0 || listen(middle->listener, 1) != 0 ||
        getsockname(middle->listener, (struct sockaddr *) &address, &bytes) != 0)
        abort();
    middle->port = ntohs(address.sin_port);
    if (pthread_create(&middle->thread, NULL, stand_in_the_middle, middle) != 0)
        abort();
}

/* Stands in for libc's: while the plan is on, what ranks connect to each other passes by intermediaries. Theirs are made by a
 * blocking socket, unlike the library's. */
int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    struct sockaddr_in to;
    if (atomic_load(&plan.on) && address->sa_family == AF_INET && bytes == sizeof(to) &&
        (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0) {
        memcpy(&to, address, sizeof(to));
        const int number = atomic_fetch_add(&middle_count, 1);
        if (ntohs(to.sin_port) == port || number >= MIDDLES_MOST) {
            atomic_fetch_sub(&middle_count, 1);
        } else {
            start_middle(&middles[number], ntohs(to.sin_port));
            to.sin_port = htons((uint16_t) middles[number].port);
            return (int) syscall(SYS_connect, fd, &to, bytes);
        }
    }
    return (int) syscall(SYS_connect, fd, address, bytes);
}

/* Joins the intermediaries, whose connections have ended. */
static void end_middles(void)
{
    atomic_store(&plan.on, 0);
    for (int i = 0; i < atomic_load(&middle_count); i++)
        pthread_join(middles[i].thread, NULL);
    atomic_store(&middle_count, 0);
}

static void plan_mischief(enum mischief mischief, int source, int each)
{
    plan.mischief = mischief;
    plan.source = source;
    plan.each = each;
    plan.bytes = 64;
    atomic_store(&plan.plain, 0);
    atomic_store(&plan.cuts, 0);
    atomic_store(&plan.on, 1);
}

/* All that came was in order, and no rank counts as dead. */
static void expect_unharmed(const struct rank *ranks, int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(ranks[i].disordered + ranks[i].lost, 0);
        for (int other = 0; other < count; other++)
            assert_int_equal(ranks[i].died[other], 0);
    }
}

/* The third of five equal messages between two ranks is damaged, also where they are sent again. The receiver ends the
 * connection; over the one that is made in its place all messages come, once and in order. */
static void suffer(enum mischief mischief, int source, int dest, int encrypts)
{
    struct rank ranks[3];
    port = use_tcp(ranks, 3);
    for (int i = 0; i < 3; i++)
        ranks[i].options.encrypts = encrypts;
    plan_mischief(mischief, source, 0);
    connect_all(ranks, 3);
    struct rank *receiver = &ranks[dest];
    for (uint32_t number = 0; number < 5; number++)
        send_number(&ranks[source], dest, number, 64);
    send_number(&ranks[source], dest, 5, 72); /* shows that one before it lacks, as a sign of life does between hosts */
    assert_true(await(receiver, &receiver->next[source], 6, 10));
    atomic_store(&plan.on, 0); /* a rank that has left refuses connections, which an intermediary would take */
    in_parallel(ranks, 3, rank_close);
    expect_unharmed(ranks, 3);
    assert_int_equal(receiver->next[source], 6);
    end_middles();
    if (mischief == NONE)
        assert_int_equal(atomic_load(&plan.plain), !encrypts);
}

/* Each of the messages is damaged whenever it is sent. After some time one of the two ranks counts as dead, and the others go
 * on. */
static void test_nothing_gets_through(void **state)
{
    (void) state;
    struct rank ranks[3];
    port = use_tcp(ranks, 3);
    plan_mischief(ALTER_DATA, 0, 1);
    connect_all(ranks, 3);
    const double begun = seconds_now();
    assert_int_equal(send_number(&ranks[0], 2, 0, 64), RONDO_SUCCESS);
    assert_true(await(&ranks[0], &ranks[0].died[2], 1, 20));
    assert_true(seconds_now() - begun > 5); /* it has been tried again */
    assert_true(await(&ranks[1], &ranks[1].died[2], 1, 10));
    assert_true(await(&ranks[2], &ranks[2].lost, 1, 20));
    assert_int_equal(ranks[2].next[0], 0);
    assert_int_equal(send_number(&ranks[0], 1, 0, 72), RONDO_SUCCESS);
    assert_true(await(&ranks[1], &ranks[1].next[0], 1, 10));
    atomic_store(&plan.on, 0);
    in_parallel(ranks, 3, rank_close);
    end_middles();
}

enum { BREAKERS = 5, LETTERS = 400 };

/* To each rank, or to all at once, in one order. */
static void *write_letters(void *argument)
{
    struct rank *rank = argument;
    for (uint32_t number = 0; number < LETTERS; number++)
        for (int dest = 0; dest < (number % 4 == 0 ? 1 : BREAKERS); dest++)
            if ((number % 4 == 0 || dest != rank->options.rank) &&
                send_number(rank, number % 4 == 0 ? RONDO_CONTROL_ALL : dest, number, 8 + number * 7 % 3000) != RONDO_SUCCESS)
                abort();
    return NULL;
}

/* All connections break again and again, in the middle of a frame, with what is under way, also while the job forms: each
 * message comes once and in order, and no rank counts as dead. */
static void break_often(int encrypts)
{
    static struct rank ranks[BREAKERS];
    port = use_tcp(ranks, BREAKERS);
    for (int i = 0; i < BREAKERS; i++)
        ranks[i].options.encrypts = encrypts;
    plan_mischief(CUT_OFTEN, 0, 0);
    connect_all(ranks, BREAKERS);
    in_parallel(ranks, BREAKERS, write_letters);
    for (int i = 0; i < BREAKERS; i++)
        for (int source = 0; source < BREAKERS; source++)
            if (source != i && !await(&ranks[i], &ranks[i].next[source], LETTERS, 120))
                fail_msg("rank %d has %d letters of rank %d", i, read_counter(&ranks[i], &ranks[i].next[source]), source);
    assert_true(atomic_load(&plan.cuts) > 100);
    plan.mischief = NONE;
    atomic_store(&plan.on, 0);
    in_parallel(ranks, BREAKERS, rank_close);
    expect_unharmed(ranks, BREAKERS);
    end_middles();
}

static void test_connections_break_often(void **state)
{
    (void) state;
    break_often(0);
    if (rondo_cipher_unusable() == NULL)
        break_often(1);
}

static void test_middle(void **state)
{
    (void) state;
    for (int mischief = NONE; mischief <= CUT; mischief++)
        for (int source = 0; source <= 2; source += 2)
            suffer((enum mischief) mischief, source, 2 - source, 0);
}

static void need_cipher(void)
{
    if (rondo_cipher_unusable() != NULL) {
        print_message("left out: %s\n", rondo_cipher_unusable());
        skip();
    }
}

/* The same with encryption: the intermediary reads nothing, and every change ends the connection. */
static void test_middle_of_encrypted(void **state)
{
    (void) state;
    need_cipher();
    for (int mischief = NONE; mischief <= CUT; mischief++)
        for (int source = 0; source <= 2; source += 2)
            suffer((enum mischief) mischief, source, 2 - source, 1);
}

/* Ranks that do not agree on encryption do not meet, and say so. */
static void test_encryption_differs(void **state)
{
    (void) state;
    need_cipher();
    for (int encrypts = 0; encrypts < 2; encrypts++) {
        struct rank ranks[2];
        port = use_tcp(ranks, 2);
        ranks[0].options.encrypts = encrypts;
        ranks[1].options.encrypts = !encrypts;
        ranks[0].options.connect_timeout = 1;
        in_parallel(ranks, 2, rank_connect);
        assert_int_equal(ranks[0].result, RONDO_ERR_BOOTSTRAP);
        assert_int_equal(ranks[1].result, RONDO_ERR_BOOTSTRAP);
        assert_non_null(strstr(ranks[1].error, "RONDO_ENCRYPT"));
    }
}

/* A recorded proof of a rank to the root proves nothing when it is repeated. */
static void test_overheard_hello(void **state)
{
    (void) state;
    struct rank ranks[2];
    struct middle middle;
    char place[64];
    unsigned char bytes[256];
    port = use_tcp(ranks, 2);
    plan.mischief = NONE;
    start_middle(&middle, port);
    snprintf(place, sizeof(place), "127.0.0.1:%d", middle.port);
    ranks[1].options.root = place;
    pthread_t first; /* the root must listen when the intermediary connects to it */
    assert_int_equal(pthread_create(&first, NULL, rank_connect, &ranks[0]), 0);
    usleep(50000);
    rank_connect(&ranks[1]);
    pthread_join(first, NULL);
    assert_int_equal(ranks[0].result, RONDO_SUCCESS);
    assert_int_equal(ranks[1].result, RONDO_SUCCESS);
    int fd = tcp_connect(port);
    assert_true(fd >= 0);
    assert_int_equal(recv(fd, bytes, RONDO_HANDSHAKE_CHALLENGE, MSG_WAITALL), RONDO_HANDSHAKE_CHALLENGE);
    pass(fd, middle.hello, sizeof(middle.hello));
    assert_int_equal(recv(fd, bytes, RONDO_HANDSHAKE_VERDICT, MSG_WAITALL), RONDO_HANDSHAKE_VERDICT);
    assert_int_equal(rondo_frame_load32(bytes), RONDO_HANDSHAKE_SECRET);
    assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 0);
    close(fd);
    expect_exchange(ranks, 2, 0);
    in_parallel(ranks, 2, rank_close);
    pthread_join(middle.thread, NULL);
}

/* A rank that stops reading: the others go on, and when enough has accumulated for it, it counts as failed. */
static void sleep_in_handler(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    struct rank *rank = argument;
    if (type == PLAIN)
        while (read_counter(rank, &rank->disordered) == 0)
            usleep(10000);
    else
        note(argument, source, type, data, bytes);
}

static void *connect_sleepy(void *argument)
{
    struct rank *rank = argument;
    rank->result = rondo_control_connect(&rank->control, &rank->options, sleep_in_handler, rank);
    return NULL;
}

static void test_stuck_receiver(void **state)
{
    (void) state;
    struct rank ranks[3];
    pthread_t sleepy;
    size_t bytes = 256 << 10;
    unsigned char *data = calloc(1, bytes);
    assert_non_null(data);
    port = use_tcp(ranks, 3);
    assert_int_equal(pthread_create(&sleepy, NULL, connect_sleepy, &ranks[2]), 0);
    in_parallel(ranks, 2, rank_connect);
    pthread_join(sleepy, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ranks[i].result, RONDO_SUCCESS);
    double begin = seconds_now();
    uint32_t number = 0;
    /* The rank sleeps for good, and the others' messages go on meanwhile. */
    for (int round = 0; read_counter(&ranks[1], &ranks[1].died[2]) == 0; round++) {
        assert_true(seconds_now() - begin < 60);
        rondo_control_send(ranks[0].control, 2, PLAIN, data, round < 400 ? bytes : 8);
        if (round >= 400)
            usleep(10000);
        assert_int_equal(send_number(&ranks[0], 1, number, 64), RONDO_SUCCESS);
        number++;
        assert_true(await(&ranks[1], &ranks[1].next[0], (int) number, 20));
    }
    pthread_mutex_lock(&ranks[2].mutex);
    ranks[2].disordered = 1;
    pthread_mutex_unlock(&ranks[2].mutex);
    assert_true(await(&ranks[2], &ranks[2].lost, 1, 20));
    free(data);
    in_parallel(ranks, 3, rank_close);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, remember_resources, expect_resources)

int main(int count, char **arguments)
{
    if (count == 3)
        return squat(arguments[1], atoi(arguments[2]));
    const struct CMUnitTest tests[] = {
        TEST(test_wrong_secret),
        TEST(test_false_root),
        TEST(test_flood),
        TEST(test_unix_flood),
        TEST(test_name_held_by_another_user),
        TEST(test_middle),
        TEST(test_middle_of_encrypted),
        TEST(test_nothing_gets_through),
        TEST(test_connections_break_often),
        TEST(test_encryption_differs),
        TEST(test_overheard_hello),
        TEST(test_stuck_receiver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
