/*
 * The orders of `rondo stress` on NCCL, in a child process: a thread a rank, a communicator and a stream for each collective
 * (or for each stream of --streams), enqueued in each rank's own order, with cudaDeviceSynchronize where --sync has it. That is
 * what NCCL says must not be done: its kernels hold on to the GPU until all ranks have come to the same one.
 */
#include "tools/common/buffers.h"
#include "tools/peer/nccl.h"
#include "tools/stress/stress.h"
#include "tools/stress/data.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const double synchronizations_per_iteration = 2; /* on average */
static const double most_seconds_to_start = 120;

/* Shared by the two processes. */
struct board {
    atomic_int ready; /* ranks that have all their communicators */
    atomic_uint_least64_t finished;
    atomic_int failed; /* message is valid, and nothing was proved */
    char message[256];
};

struct child {
    const struct stress_options *options;
    const struct nccl *nccl;
    struct board *board;
    struct nccl_id *ids;
    int lanes, gpus;
};

struct member {
    struct child *child;
    pthread_t thread;
    int rank;
    struct buffers buffers;
    struct stress_data data;
    struct stress_operation *operations;
    nccl_comm_t *comms;
    void **streams;
    int *order;
    uint64_t random;
};

/* The first reason stays. */
static void fail(struct board *board, const char *what, const char *why)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&board->failed, &none, 1))
        return;
    snprintf(board->message, sizeof(board->message), "%s: %s", what, why);
    atomic_store(&board->failed, 2);
}

static bool failed_nccl(struct child *c, const char *what, int code)
{
    if (code != NCCL_SUCCESS)
        fail(c->board, what, c->nccl->error(code));
    return code != NCCL_SUCCESS;
}

static bool failed_rondo(struct child *c, const char *what, rondo_result_t code)
{
    if (code != RONDO_SUCCESS)
        fail(c->board, what, rondo_last_error());
    return code != RONDO_SUCCESS;
}

static bool prepare(struct member *m)
{
    struct child *c = m->child;
    int count = c->options->collectives;
    m->operations = calloc((size_t) count, sizeof(*m->operations));
    m->comms = calloc((size_t) c->lanes, sizeof(nccl_comm_t));
    m->streams = calloc((size_t) c->lanes, sizeof(void *));
    m->order = calloc((size_t) count, sizeof(*m->order));
    if (m->operations == NULL || m->comms == NULL || m->streams == NULL || m->order == NULL) {
        fail(c->board, "buffers", "out of memory");
        return false;
    }
    if (failed_rondo(c, "buffers", buffers_open_on(&m->buffers, m->rank % c->gpus)))
        return false;
    stress_data_open(&m->data, &m->buffers, c->options->seed, m->rank, c->options->runtime.threads);
    for (int k = 0; k < count; k++) {
        if (failed_rondo(c, "buffers", stress_operation_open(&m->data, &m->operations[k], k, count)) ||
            failed_rondo(c, "buffers", stress_fill(&m->data, &m->operations[k], 0)))
            return false;
    }
    for (int i = 0; i < c->lanes; i++) {
        if (failed_rondo(c, "a stream", buffers_make_stream(&m->buffers, &m->streams[i])) ||
            failed_nccl(c, "ncclCommInitRank", c->nccl->init(&m->comms[i], c->options->runtime.threads, c->ids[i], m->rank)))
            return false;
    }
    return true;
}

static bool enqueue_all(struct member *m)
{
    struct child *c = m->child;
    int count = c->options->collectives;
    for (int k = 0; k < count; k++)
        m->order[k] = k;
    if (c->options->random_order)
        stress_interleave(m->order, count, c->lanes, &m->random);
    for (int k = 0; k < count; k++) {
        const struct stress_operation *op = &m->operations[m->order[k]];
        int lane = m->order[k] % c->lanes, type = op->type == RONDO_FLOAT ? NCCL_FLOAT : NCCL_DOUBLE;
        if (failed_nccl(c, "ncclAllReduce",
                        c->nccl->allreduce(op->send, op->receive, op->count, type, NCCL_SUM, m->comms[lane], m->streams[lane])))
            return false;
        double draw = (double) (stress_random(&m->random) >> 11) * 0x1p-53;
        if (c->options->synchronize && draw * count < synchronizations_per_iteration)
            cudaDeviceSynchronize();
    }
    return true;
}

static void *run_member(void *argument)
{
    struct member *m = argument;
    struct child *c = m->child;
    if (!prepare(m))
        return NULL;
    atomic_fetch_add(&c->board->ready, 1);
    for (int iteration = 0; iteration < c->options->iterations; iteration++) {
        if (!enqueue_all(m))
            return NULL;
        for (int i = 0; i < c->lanes; i++) {
            if (failed_rondo(c, "a stream", buffers_wait(&m->buffers, m->streams[i], 0)))
                return NULL;
        }
        atomic_fetch_add(&c->board->finished, (uint64_t) c->options->collectives);
    }
    return NULL;
}

/* Ends by itself if nothing hangs. Nothing is released: the process is going to end. */
static void run_child(const struct stress_options *options, struct board *board)
{
    struct child c = {.options = options, .board = board};
    int ranks = options->runtime.threads;
    c.lanes = options->streams > 0 ? options->streams : options->collectives;
    c.ids = calloc((size_t) c.lanes, sizeof(*c.ids));
    struct member *members = calloc((size_t) ranks, sizeof(*members));
    char message[200];
    if (c.ids == NULL || members == NULL) {
        fail(board, "start", "out of memory");
        return;
    }
    if ((c.nccl = nccl_load(message, sizeof(message))) == NULL) {
        fail(board, "start", message);
        return;
    }
    if (cudaGetDeviceCount(&c.gpus) != cudaSuccess || c.gpus < ranks) {
        snprintf(message, sizeof(message), "a GPU a rank is needed, and there are %d for %d", c.gpus, ranks);
        fail(board, "NCCL", message);
        return;
    }
    for (int i = 0; i < c.lanes; i++) {
        if (failed_nccl(&c, "ncclGetUniqueId", c.nccl->make_id(&c.ids[i])))
            return;
    }
    for (int r = 0; r < ranks; r++) {
        members[r] = (struct member){.child = &c, .rank = r, .random = stress_seed(options->seed, r)};
        if (pthread_create(&members[r].thread, NULL, run_member, &members[r]) != 0) {
            fail(board, "start", "no thread for a rank");
            return;
        }
    }
    for (int r = 0; r < ranks; r++)
        pthread_join(members[r].thread, NULL);
}

/* True: the child has ended. False: nothing has finished for too long. */
static bool watch(const struct stress_options *options, const struct board *board, pid_t child)
{
    uint64_t finished = 0;
    double since = ranks_clock();
    for (;;) {
        int status;
        if (waitpid(child, &status, WNOHANG) != 0)
            return true;
        if (atomic_load(&board->failed) == 2) /* its other ranks may wait for ever */
            return true;
        bool ready = atomic_load(&board->ready) == options->runtime.threads;
        uint64_t now = atomic_load(&board->finished);
        if (!ready && ranks_clock() - since > most_seconds_to_start)
            return false;
        if (ready && finished == 0 && now == 0)
            finished = 1, since = ranks_clock(); /* the time of the start does not count */
        if (now > finished)
            finished = now, since = ranks_clock();
        if (ready && ranks_clock() - since > options->runtime.timeout)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

void stress_on_peer(const struct stress_options *options, struct stress_peer *result)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(result, 0, sizeof(*result));
    result->expected = (uint64_t) options->runtime.threads * (uint64_t) options->collectives * (uint64_t) options->iterations;
    fflush(NULL);
    pid_t child = board != MAP_FAILED ? fork() : -1;
    if (child < 0) {
        snprintf(result->message, sizeof(result->message), "no child process");
        return;
    }
    if (child == 0) {
        run_child(options, board);
        fflush(NULL);
        _exit(0);
    }
    bool ended = watch(options, board, child);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    result->finished = atomic_load(&board->finished);
    result->ran = atomic_load(&board->ready) == options->runtime.threads && atomic_load(&board->failed) == 0;
    result->hung = result->ran && !ended;
    if (!result->ran)
        snprintf(result->message, sizeof(result->message), "%s",
                 atomic_load(&board->failed) == 2 ? board->message : "it did not start, or crashed");
    munmap(board, sizeof(*board));
}
