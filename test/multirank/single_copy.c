/*
 * Single copies between processes (device/engine/references.h), one rank of a job in each: data, kills in the middle, buffers
 * that are given back after an abort, and kernels that forbid to read another process. Prints single lines (READY, RESULT code
 * seconds message) as faults.c does. The environment gives its rank; RONDO_SINGLE_COPY=cma makes every message a single copy.
 */
#include "test/multirank/ranks.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COLLECTIVES = 5 };

static const char *scenario = "data";
static long ranks, words = 40000, rounds = 20, victim = -1, aborter = -1, microseconds, seed = 1;

/* ---- data ---- */

static uint64_t value(long round, int source, size_t index)
{
    return (uint64_t) round << 48 ^ (uint64_t) source << 40 ^ (uint64_t) index;
}

static void fill(uint64_t *memory, long round, int source, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memory[i] = value(round, source, first + i);
}

static size_t wrong(const uint64_t *memory, long round, int source, size_t first, size_t count)
{
    size_t bad = 0;
    for (size_t i = 0; i < count; i++)
        bad += memory[i] != value(round, source, first + i);
    return bad;
}

/* Runs one collective of a round, and checks what it has brought if it says that it succeeded. */
static rondo_result_t one(struct rank *me, int which, long round, uint64_t *send, uint64_t *recv)
{
    const size_t n = (size_t) words, size = (size_t) me->size;
    const int root = (int) (round % me->size), right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    rondo_request_t request;
    rondo_result_t result = RONDO_SUCCESS;
    size_t bad = 0;
    memset(recv, 0xff, n * size * sizeof(*recv));
    fill(send, round, me->rank, 0, n * size);
    switch (which) {
    case 0:
        if ((result = rondo_alltoall(send, recv, n, RONDO_UINT64, me->world)) == RONDO_SUCCESS)
            for (int r = 0; r < me->size; r++)
                bad += wrong(recv + (size_t) r * n, round, r, (size_t) me->rank * n, n);
        break;
    case 1:
        if ((result = rondo_allgather(send, recv, n, RONDO_UINT64, me->world)) == RONDO_SUCCESS)
            for (int r = 0; r < me->size; r++)
                bad += wrong(recv + (size_t) r * n, round, r, 0, n);
        break;
    case 2:
        if ((result = rondo_bcast(send, n, RONDO_UINT64, root, me->world)) == RONDO_SUCCESS)
            bad += wrong(send, round, root, 0, n);
        break;
    case 3:
        if ((result = rondo_scatter(send, recv, n, RONDO_UINT64, root, me->world)) == RONDO_SUCCESS)
            bad += wrong(recv, round, root, (size_t) me->rank * n, n);
        break;
    default:
        if ((result = rondo_irecv(recv, n, RONDO_UINT64, left, me->world, &request)) != RONDO_SUCCESS)
            break;
        result = rondo_send(send, n, RONDO_UINT64, right, me->world);
        const rondo_result_t received = rondo_wait(request);
        if (received == RONDO_SUCCESS)
            bad += wrong(recv, round, left, 0, n);
        result = result == RONDO_SUCCESS ? received : result;
        break;
    }
    CHECK(bad == 0, "round %ld, collective %d: %zu wrong words though it succeeded", round, which, bad);
    return result;
}

/* Runs rounds until one fails. */
static rondo_result_t run_rounds(struct rank *me, long count)
{
    const size_t bytes = (size_t) words * (size_t) me->size * sizeof(uint64_t);
    uint64_t *send = malloc(bytes), *recv = malloc(bytes);
    rondo_result_t result = RONDO_SUCCESS;
    for (long round = 0; round < count && result == RONDO_SUCCESS; round++)
        for (int which = 0; which < COLLECTIVES && result == RONDO_SUCCESS; which++) {
            STEP("round %ld, collective %d", round, which);
            result = one(me, which, round, send, recv);
        }
    free(send);
    free(recv);
    return result;
}

/* ---- what the kernel allows ---- */

/* From now on the kernel answers reads of other processes so, on all threads. */
static void filter_reads(uint32_t answer)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
          "no filter of system calls: %s", strerror(errno));
}

/* ---- kills ---- */

static void *kill_later(void *argument)
{
    (void) argument;
    usleep((useconds_t) microseconds);
    kill(getpid(), SIGKILL);
    return NULL;
}

/* ---- buffers that are given back ---- */

/* Sleeps up to 300 us in small steps. Now and then rank 0 sleeps long enough for the whole message to arrive, or not at all. */
static void rest(const struct rank *me, long round)
{
    const uint64_t random = ranks_hash((uint64_t) seed << 32 ^ (uint64_t) round << 1 ^ (uint64_t) me->rank);
    const double end = ranks_seconds() + 1e-6 * (double) (random % 300);
    if (me->rank == 0 && round % 10 == 0)
        ranks_sleep(0.03);
    while ((me->rank != 0 || round % 10 != 1) && ranks_seconds() < end)
        ;
}

static long received, given_up; /* rank 0's: it alone counts */

/* Rank 1 sends to rank 0, at about the time when one of them aborts. When its operation has ended, each fills its buffer with
 * other data at once: a receive that succeeded has all of the message, and nothing reaches the receiver's buffer after that. */
static void abandon(struct rank *me, long round, uint64_t *memory)
{
    const size_t n = (size_t) words;
    const int receives = me->rank == 0;
    rondo_comm_t comm;
    rondo_request_t request;
    MUST(rondo_comm_dup(me->world, &comm));
    fill(memory, receives ? -1 : round, me->rank, 0, n);
    rondo_result_t result = receives ? rondo_irecv(memory, n, RONDO_UINT64, 1, comm, &request) : RONDO_SUCCESS;
    MUST(rondo_barrier(me->world));
    rest(me, round);
    if (!receives)
        result = rondo_isend(memory, n, RONDO_UINT64, 0, comm, &request);
    int over = result != RONDO_SUCCESS; /* and the request is freed */
    if (me->rank == aborter || (aborter < 0 && me->rank == round % 2)) {
        for (int i = (int) (round % 50); i > 0 && !receives && !over; i--)
            result = rondo_test(request, &over); /* goes on with the transfer meanwhile */
        MUST(rondo_comm_abort(comm, 1));
    }
    if (!over)
        result = rondo_wait(request);
    CHECK(result == RONDO_SUCCESS || result == RONDO_ERR_ABORTED, "round %ld: %s", round, rondo_last_error());
    const size_t bad = receives && result == RONDO_SUCCESS ? wrong(memory, round, 1, 0, n) : 0;
    CHECK(bad == 0, "round %ld: a receive that succeeded has %zu wrong words", round, bad);
    fill(memory, round, 77, 0, n);
    MUST(rondo_barrier(me->world)); /* both have ended */
    CHECK(wrong(memory, round, 77, 0, n) == 0, "round %ld: the buffer was written to after the end", round);
    if (receives && result == RONDO_SUCCESS)
        received++;
    else if (receives)
        given_up++;
    MUST(rondo_comm_free(&comm));
}

/* ---- the scenarios ---- */

static void report(rondo_result_t result, double started)
{
    printf("RESULT %d %.3f %s\n", (int) result, ranks_seconds() - started, rondo_last_error());
    fflush(stdout);
}

static void run(struct rank *me)
{
    const double started = ranks_seconds();
    if (strcmp(scenario, "abandon") == 0) {
        uint64_t *memory = malloc((size_t) words * sizeof(*memory));
        for (long round = 0; round < rounds; round++) {
            STEP("round %ld", round);
            abandon(me, round, memory);
        }
        free(memory);
        CHECK(me->rank != 0 || (received > 0 && given_up > 0), "%ld received, %ld given up", received, given_up);
        return;
    }
    if (strcmp(scenario, "revoked") == 0) {
        MUST(run_rounds(me, 2));
        filter_reads(SECCOMP_RET_ERRNO | EPERM);
    }
    if (strcmp(scenario, "trapped") == 0)
        filter_reads(SECCOMP_RET_KILL_PROCESS);
    if (strcmp(scenario, "killed") == 0) {
        pthread_t thread;
        rondo_result_t result = run_rounds(me, 1); /* connects; a fast victim is killed before others have ended theirs */
        if (me->rank == victim && result == RONDO_SUCCESS)
            CHECK(pthread_create(&thread, NULL, kill_later, NULL) == 0, "no thread");
        report(result == RONDO_SUCCESS ? run_rounds(me, 1000000) : result, started);
        return;
    }
    MUST(run_rounds(me, rounds));
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "as threads; 0: this is one of a job"},
        {"--scenario", NULL, &scenario, "data, forbidden, revoked, trapped, killed or abandon"},
        {"--words", &words, NULL, "of 8 bytes, of a message"},
        {"--rounds", &rounds, NULL, "of all collectives"},
        {"--victim", &victim, NULL, "the rank that is killed"},
        {"--aborter", &aborter, NULL, "the rank that aborts; -1: in turn"},
        {"--microseconds", &microseconds, NULL, "until it is"},
        {"--seed", &seed, NULL, "of the pauses"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (strcmp(scenario, "forbidden") == 0)
        filter_reads(SECCOMP_RET_ERRNO | EPERM);
    ranks_run((int) ranks, NULL, run, NULL);
    return ranks_finish("single_copy");
}
