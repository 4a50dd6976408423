/* Segments: shared within a process as one mapping, and with other processes through a descriptor that only the owner of the
 * key receives. */
#include "test/unit/support/ranks.h"

#include "lib/base/host.h"
#include "transport/memory/descriptor_passing.h"
#include "transport/memory/segment.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/un.h>

enum { MEMBERS = 3 };

/* Ranks of this process, each with its segments. The structure must not move: the handlers point into it. */
struct job {
    int count;
    struct rank ranks[MEMBERS];
    struct rondo_segments *segments[MEMBERS];
};

static void begin(struct job *job, int count)
{
    static char name[64];
    static int number;
    snprintf(name, sizeof(name), "test-segment-%ld-%d", (long) getpid(), number++);
    job->count = count;
    for (int i = 0; i < count; i++) {
        rank_prepare(&job->ranks[i], i, count);
        job->ranks[i].options.job = name;
    }
    connect_all(job->ranks, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(rondo_segments_create(&job->segments[i], job->ranks[i].control), RONDO_SUCCESS);
}

static void end(struct job *job)
{
    for (int i = 0; i < job->count; i++)
        rondo_segments_destroy(job->segments[i]);
    in_parallel(job->ranks, job->count, rank_close);
}

static int interruptions; /* of recvmsg that are still to come; atomic */

/* In the place of libc's: interrupted by a signal as often as a test wants. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (__atomic_load_n(&interruptions, __ATOMIC_RELAXED) > 0 && __atomic_sub_fetch(&interruptions, 1, __ATOMIC_RELAXED) >= 0) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_recvmsg, fd, message, flags);
}

/* 1 if the page is mapped. */
static int is_mapped(void *page)
{
    unsigned char resident;
    return mincore(page, 1, &resident) == 0;
}

static void test_same_process(void **state)
{
    (void) state;
    struct job job;
    struct rondo_segment *made, *first, *again, *other;
    struct rondo_segment_handle handle;
    begin(&job, 3);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 0, &made), RONDO_ERR_ARGUMENT);
    assert_int_equal(rondo_segment_allocate(job.segments[0], SIZE_MAX, &made), RONDO_ERR_ARGUMENT);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 5000, &made), RONDO_SUCCESS);
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    assert_true(made->bytes >= 5000 && made->bytes % page == 0 && (uintptr_t) made->base % page == 0);
    for (size_t i = 0; i < made->bytes; i++)
        assert_int_equal(made->base[i], 0);
    rondo_segment_export(made, &handle);
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &first), RONDO_SUCCESS);
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &again), RONDO_SUCCESS);
    assert_int_equal(rondo_segment_import(job.segments[2], &handle, &other), RONDO_SUCCESS);
    assert_ptr_equal(first, made);
    assert_ptr_equal(again, made);
    assert_ptr_equal(other, made);
    /* The creator's release ends neither the other ranks' use nor its own import's. */
    assert_int_equal(rondo_segment_import(job.segments[0], &handle, &again), RONDO_SUCCESS);
    char *base = made->base;
    rondo_segment_release(job.segments[0], made);
    rondo_segment_release(job.segments[0], made);
    base[0] = 'x';
    struct rondo_segment *late = NULL;
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &late), RONDO_SUCCESS);
    rondo_segment_release(job.segments[2], other);
    assert_int_equal(rondo_segment_import(job.segments[2], &handle, &late), RONDO_ERR_TRANSPORT);
    for (int i = 0; i < 3; i++) {
        assert_true(is_mapped(base));
        rondo_segment_release(job.segments[1], first);
    }
    assert_false(is_mapped(base));
    end(&job);
}

/* A receiver that a signal interrupts receives then: what its process has counted for it is not lost. */
static void test_interrupted_receiver(void **state)
{
    (void) state;
    struct job job;
    struct rondo_segment *made, *imported;
    struct rondo_segment_handle handle;
    begin(&job, 2);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 1, &made), RONDO_SUCCESS);
    rondo_segment_export(made, &handle);
    __atomic_store_n(&interruptions, 3, __ATOMIC_RELAXED);
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &imported), RONDO_SUCCESS);
    assert_int_equal(__atomic_load_n(&interruptions, __ATOMIC_RELAXED), 0);
    char *base = made->base;
    rondo_segment_release(job.segments[0], made);
    rondo_segment_release(job.segments[1], imported);
    assert_false(is_mapped(base));
    end(&job);
}

static void test_outlives_maker(void **state)
{
    (void) state;
    struct job job;
    struct rondo_segment *made, *imported;
    struct rondo_segment_handle handle;
    begin(&job, 2);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 1, &made), RONDO_SUCCESS);
    rondo_segment_export(made, &handle);
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &imported), RONDO_SUCCESS);
    rondo_segments_destroy(job.segments[0]);
    job.segments[0] = NULL;
    char *base = imported->base;
    base[0] = 'y';
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &imported), RONDO_SUCCESS);
    end(&job);
    assert_false(is_mapped(base));
}

static void test_wrong_handles(void **state)
{
    (void) state;
    struct job job;
    struct rondo_segment *made, *imported;
    struct rondo_segment_handle handle, wrong = {{0}};
    begin(&job, 2);
    assert_int_equal(rondo_segment_import(job.segments[1], &wrong, &imported), RONDO_ERR_TRANSPORT);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 1, &made), RONDO_SUCCESS);
    rondo_segment_export(made, &handle);
    /* A handle with any one changed byte opens nothing. */
    for (size_t i = 0; i < 48; i++) {
        wrong = handle;
        wrong.bytes[i] ^= 1;
        rondo_result_t result = rondo_segment_import(job.segments[1], &wrong, &imported);
        if (result == RONDO_SUCCESS)
            fail_msg("byte %zu does not matter", i);
    }
    end(&job);
}

enum { ASKED = RONDO_CONTROL_FIRST_USER_TYPE + 2, TOLD };

/* The child's messages, as the parent's handler stores them. */
struct mail {
    struct rank rank; /* first, for await() */
    struct rondo_segment_handle handle;
};

static void keep_mail(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    struct mail *mail = argument;
    if (type == ASKED && bytes == sizeof(mail->handle)) {
        pthread_mutex_lock(&mail->rank.mutex);
        memcpy(&mail->handle, data, bytes);
        pthread_mutex_unlock(&mail->rank.mutex);
    }
    note(argument, source, type, data, bytes);
}

/* Rank 1 in another process: writes into rank 0's segment, and rank 0 writes into its own. */
static int be_child(const char *job, const char *behaviour)
{
    struct mail mail;
    struct rondo_segments *segments;
    struct rondo_segment *mine, *theirs, *again;
    struct rondo_segment_handle handle;
    rank_prepare(&mail.rank, 1, 2);
    mail.rank.options.job = job;
    if (rondo_control_connect(&mail.rank.control, &mail.rank.options, keep_mail, &mail) != RONDO_SUCCESS)
        return 10;
    if (rondo_segments_create(&segments, mail.rank.control) != RONDO_SUCCESS)
        return 11;
    if (rondo_segment_allocate(segments, 1 << 20, &mine) != RONDO_SUCCESS)
        return 12;
    rondo_segment_export(mine, &handle);
    if (rondo_control_send(mail.rank.control, 0, ASKED, &handle, sizeof(handle)) != RONDO_SUCCESS)
        return 13;
    if (!await(&mail.rank, &mail.rank.plain, 1, 20))
        return 14;
    if (rondo_segment_import(segments, &mail.handle, &theirs) != RONDO_SUCCESS ||
        rondo_segment_import(segments, &mail.handle, &again) != RONDO_SUCCESS || theirs != again)
        return 15;
    /* An imported segment can be exported again like a created one. */
    rondo_segment_export(theirs, &handle);
    if (memcmp(&handle, &mail.handle, sizeof(handle)) != 0)
        return 16;
    strcpy(theirs->base + 4096, "written by another process");
    if (rondo_control_send(mail.rank.control, 0, TOLD, NULL, 0) != RONDO_SUCCESS)
        return 17;
    if (!await(&mail.rank, &mail.rank.plain, 2, 20))
        return 18;
    if (strcmp(mine->base + mine->bytes - 64, "and back") != 0)
        return 19;
    rondo_segment_release(segments, again);
    theirs->base[0] = 1; /* still mapped */
    rondo_segment_release(segments, theirs);
    if (strcmp(behaviour, "die") == 0)
        kill(getpid(), SIGKILL);
    rondo_segments_destroy(segments);
    rondo_control_close(mail.rank.control, 30);
    return mail.rank.lost;
}

static void two_processes(const char *behaviour)
{
    struct mail mail;
    struct rondo_segments *segments;
    struct rondo_segment *mine, *theirs;
    struct rondo_segment_handle handle;
    char job[64];
    int status;
    snprintf(job, sizeof(job), "test-segment-%ld-%s", (long) getpid(), behaviour);
    char *arguments[] = {"test", job, (char *) (uintptr_t) behaviour, NULL};
    pid_t process = start_process(arguments);
    rank_prepare(&mail.rank, 0, 2);
    mail.rank.options.job = job;
    assert_int_equal(rondo_control_connect(&mail.rank.control, &mail.rank.options, keep_mail, &mail), RONDO_SUCCESS);
    assert_int_equal(rondo_segments_create(&segments, mail.rank.control), RONDO_SUCCESS);
    assert_int_equal(rondo_segment_allocate(segments, 1 << 16, &mine), RONDO_SUCCESS);
    rondo_segment_export(mine, &handle);
    assert_true(await(&mail.rank, &mail.rank.plain, 1, 20));
    assert_int_equal(rondo_segment_import(segments, &mail.handle, &theirs), RONDO_SUCCESS);
    assert_int_equal(theirs->bytes, 1 << 20);
    assert_int_equal(rondo_control_send(mail.rank.control, 1, ASKED, &handle, sizeof(handle)), RONDO_SUCCESS);
    assert_true(await(&mail.rank, &mail.rank.plain, 2, 20));
    assert_string_equal(mine->base + 4096, "written by another process");
    strcpy(theirs->base + theirs->bytes - 64, "and back");
    assert_int_equal(rondo_control_send(mail.rank.control, 1, TOLD, NULL, 0), RONDO_SUCCESS);
    assert_int_equal(waitpid(process, &status, 0), process);
    if (strcmp(behaviour, "die") == 0)
        assert_true(WIFSIGNALED(status));
    else
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* A mapped segment stays valid, whatever became of its creator; an unmapped one can no longer be imported. */
    assert_string_equal(theirs->base + theirs->bytes - 64, "and back");
    rondo_segment_release(segments, theirs);
    assert_int_equal(rondo_segment_import(segments, &mail.handle, &theirs), RONDO_ERR_TRANSPORT);
    rondo_segments_destroy(segments);
    rondo_control_close(mail.rank.control, 30);
}

static void test_two_processes(void **state)
{
    (void) state;
    two_processes("leave");
    two_processes("die");
}

/* Clients that connect and send nothing, half of a request, or a request for too much, while others import. */
static void test_intruders(void **state)
{
    (void) state;
    struct job job;
    struct rondo_segment *made, *imported;
    struct rondo_segment_handle handle;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum { INTRUDERS = 300 };
    int intruders[INTRUDERS];
    static const unsigned char garbage[4096];
    begin(&job, 2);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 1, &made), RONDO_SUCCESS);
    rondo_segment_export(made, &handle);
    int at = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "rondo-descriptors-");
    for (int i = 0; i < RONDO_DESCRIPTOR_NAME; i++)
        at += snprintf(address.sun_path + 1 + at, sizeof(address.sun_path) - 1 - (size_t) at, "%02x", handle.bytes[i]);
    socklen_t bytes = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) at);
    double begun = seconds_now();
    for (int i = 0; i < INTRUDERS; i++) {
        intruders[i] = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        assert_int_equal(connect(intruders[i], (struct sockaddr *) &address, bytes), 0);
        if (i % 3 > 0)
            (void) send(intruders[i], garbage, i % 3 == 1 ? 5 : sizeof(garbage), MSG_NOSIGNAL);
        if (i % 20 == 0) {
            assert_int_equal(rondo_segment_import(job.segments[1], &handle, &imported), RONDO_SUCCESS);
            rondo_segment_release(job.segments[1], imported);
        }
    }
    assert_true(seconds_now() - begun < 5);
    /* Clients that sent something wrong were dropped at once; of the silent ones first the oldest, and in time all. */
    for (int i = 0; i < INTRUDERS; i++) {
        struct pollfd poller = {intruders[i], POLLIN, 0};
        assert_int_equal(poll(&poller, 1, 6000), 1);
        close(intruders[i]);
    }
    end(&job);
}

struct importer {
    pthread_t thread;
    struct rondo_segments *segments;
    struct rondo_segment_handle handle;
    int failures;
};

static void *import_often(void *argument)
{
    struct importer *importer = argument;
    for (int i = 0; i < 50; i++) {
        struct rondo_segment *segment;
        if (rondo_segment_import(importer->segments, &importer->handle, &segment) != RONDO_SUCCESS) {
            importer->failures++;
            continue;
        }
        atomic_fetch_add((atomic_int *) (void *) segment->base, 1);
        rondo_segment_release(importer->segments, segment);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void) state;
    struct job job;
    struct rondo_segment *made;
    struct importer importers[8];
    begin(&job, 2);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 1, &made), RONDO_SUCCESS);
    for (int i = 0; i < 8; i++) {
        importers[i] = (struct importer){.segments = job.segments[1]};
        rondo_segment_export(made, &importers[i].handle);
        assert_int_equal(pthread_create(&importers[i].thread, NULL, import_often, &importers[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(importers[i].thread, NULL);
        assert_int_equal(importers[i].failures, 0);
    }
    assert_int_equal(atomic_load((atomic_int *) (void *) made->base), 400);
    end(&job);
}

/* Other descriptors are passed in the same way, within this process as duplicates. */
static void test_descriptor_offers(void **state)
{
    (void) state;
    struct job job;
    struct rondo_descriptor_offer offer, wrong;
    struct rondo_segment *made, *imported;
    struct rondo_segment_handle handle = {{0}};
    int pipe_ends[2], fd;
    char byte = 0;
    begin(&job, 2);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(rondo_descriptor_offer_make(job.segments[0], pipe_ends[1], 1, &offer), RONDO_SUCCESS);
    assert_int_equal(rondo_descriptor_offer_take(&offer, &fd), RONDO_SUCCESS);
    assert_int_equal(write(fd, "x", 1), 1);
    assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'x');
    close(fd);
    for (size_t i = 0; i < RONDO_DESCRIPTOR_NAME + sizeof(struct rondo_descriptor_passing_request); i++) {
        wrong = offer;
        wrong.bytes[i] ^= 1;
        assert_int_equal(rondo_descriptor_offer_take(&wrong, &fd), RONDO_ERR_TRANSPORT);
    }
    /* The offer is not a segment, and other ranks cannot withdraw it. */
    memcpy(handle.bytes, &offer, sizeof(offer));
    handle.bytes[41] ^= 0x10; /* 4097 bytes, then a whole page */
    assert_int_not_equal(rondo_segment_import(job.segments[1], &handle, &imported), RONDO_SUCCESS);
    handle.bytes[40] = 0;
    assert_int_equal(rondo_segment_import(job.segments[1], &handle, &imported), RONDO_ERR_TRANSPORT);
    rondo_descriptor_offer_withdraw(job.segments[1], &offer);
    assert_int_equal(rondo_segment_allocate(job.segments[0], 1, &made), RONDO_SUCCESS);
    assert_int_equal(rondo_descriptor_offer_take(&offer, &fd), RONDO_SUCCESS);
    rondo_descriptor_offer_withdraw(job.segments[0], &offer);
    rondo_descriptor_offer_withdraw(job.segments[0], &offer);
    int late;
    assert_int_equal(rondo_descriptor_offer_take(&offer, &late), RONDO_ERR_TRANSPORT);
    assert_int_equal(late, -1);
    /* A descriptor that was received stays valid; the pipe ends with it. */
    assert_int_equal(write(fd, "y", 1), 1);
    assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
    close(fd);
    assert_int_equal(read(pipe_ends[0], &byte, 1), 0);
    close(pipe_ends[0]);
    end(&job);
}

static void test_host_id(void **state)
{
    (void) state;
    char here[256], same[256], other[256], tiny[4] = "xyz";
    unsetenv("RONDO_HOSTID");
    rondo_host_id(NULL, here, sizeof(here));
    rondo_host_id("", same, sizeof(same));
    assert_string_equal(here, same);
    assert_true(strlen(here) > 30);
    rondo_host_id("a", other, sizeof(other));
    assert_string_not_equal(here, other);
    setenv("RONDO_HOSTID", "a", 1);
    rondo_host_id(NULL, same, sizeof(same));
    assert_string_equal(same, other);
    rondo_host_id("b", same, sizeof(same));
    assert_string_not_equal(same, other);
    unsetenv("RONDO_HOSTID");
    rondo_host_id(NULL, tiny, sizeof(tiny));
    assert_int_equal(strlen(tiny), 3);
    assert_memory_equal(tiny, here, 3);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, remember_resources, expect_resources)

int main(int count, char **arguments)
{
    if (count == 3)
        return be_child(arguments[1], arguments[2]);
    const struct CMUnitTest tests[] = {
        TEST(test_same_process),  TEST(test_interrupted_receiver), TEST(test_outlives_maker),
        TEST(test_wrong_handles), TEST(test_two_processes),        TEST(test_intruders),
        TEST(test_many_threads),  TEST(test_descriptor_offers),    TEST(test_host_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
