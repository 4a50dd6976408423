/*
 * Operations by copy engines (RONDO_SM=0), on all GPUs with one rank each, as threads. Under mpirun each process is a rank, and
 * a single GPU may be shared; three threads that share one have kernels do all. All-gathers, all-to-alls and broadcasts of many
 * sizes, in place and not, on two streams in turn, beside kernels that reduce; and what ends when a rank fails. Every element
 * is checked, and that copy engines were used. Prints one NOTE for each size with the rate of an all-gather.
 */
#include "test/multirank/ranks.h"

#include "lib/connection/copy_engine.h"
#include "lib/context/handles.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call)                                                                                                             \
    do {                                                                                                                       \
        cudaError_t cuda_error = (call);                                                                                       \
        CHECK(cuda_error == cudaSuccess, "%s", cudaGetErrorString(cuda_error));                                                \
    } while (0)

enum { MOST = 1 << 19, ROUNDS = 20, FAR = 4096 };

static const char *scenario = "all";
static int shares; /* threads share a GPU */

struct memory {
    int32_t *send, *recv, *image;
    cudaStream_t streams[2];
};

static int32_t element(int rank, int round, size_t i)
{
    return (int32_t) ranks_hash((uint64_t) rank << 56 ^ (uint64_t) round << 40 ^ i);
}

/* How many operations copy engines are to have done, of so many. */
static uint32_t expected(const struct rank *me, int operations)
{
    return me->size > 1 && !shares ? (uint32_t) operations : 0;
}

static uint32_t count_issued(const struct rank *me)
{
    return rondo_copy_engine_issued(rondo_handle_find(me->world, RONDO_HANDLE_COMM));
}

/* FAR elements before the buffers, so that they do not lie at the start of what is registered. */
static void set_up(struct rank *me, struct memory *memory)
{
    const size_t bytes = ((size_t) MOST * (size_t) me->size + FAR) * sizeof(int32_t);
    int gpu = 0;
    MUST(rondo_device_index(me->runtime, &gpu));
    CUDA(cudaSetDevice(gpu));
    CUDA(cudaMalloc((void **) &memory->send, bytes));
    CUDA(cudaMalloc((void **) &memory->recv, bytes));
    memory->image = malloc(bytes);
    for (int s = 0; s < 2; s++)
        CUDA(cudaStreamCreateWithFlags(&memory->streams[s], cudaStreamNonBlocking));
    STEP("registering");
    MUST(rondo_comm_register(me->world, memory->send, bytes));
    MUST(rondo_comm_register(me->world, memory->recv, bytes));
    memory->send += FAR;
    memory->recv += FAR;
}

static void take_down(struct rank *me, struct memory *memory)
{
    STEP("deregistering");
    MUST(rondo_barrier(me->world)); /* no rank uses the others' memory any more */
    MUST(rondo_comm_deregister(me->world, memory->send - FAR));
    MUST(rondo_comm_deregister(me->world, memory->recv - FAR));
    MUST(rondo_barrier(me->world)); /* freeing waits for what runs, and keeps other ranks from launching */
    for (int s = 0; s < 2; s++)
        CUDA(cudaStreamDestroy(memory->streams[s]));
    CUDA(cudaFree(memory->send - FAR));
    CUDA(cudaFree(memory->recv - FAR));
    free(memory->image);
}

static void fill(struct rank *me, struct memory *memory, int32_t *to, int round, size_t count, cudaStream_t stream)
{
    for (size_t i = 0; i < count; i++)
        memory->image[i] = element(me->rank, round, i);
    CUDA(cudaMemcpyAsync(to, memory->image, count * sizeof(int32_t), cudaMemcpyHostToDevice, stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void check(struct rank *me, struct memory *memory, const char *what, const int32_t *from, size_t count, int from_rank,
                  int round, size_t first)
{
    size_t wrong = 0, at = 0;
    CUDA(cudaMemcpy(memory->image, from, count * sizeof(int32_t), cudaMemcpyDeviceToHost));
    for (size_t i = count; i-- > 0;)
        if (memory->image[i] != element(from_rank, round, first + i)) {
            wrong++;
            at = i;
        }
    CHECK(wrong == 0, "%s, rank %d, from rank %d, round %d: %zu of %zu elements wrong, the first is number %zu", what, me->rank,
          from_rank, round, wrong, count, at);
}

/* One operation of each kind with so many elements a block. */
static void all_kinds(struct rank *me, struct memory *memory, size_t count, int round)
{
    const size_t n = (size_t) me->size;
    cudaStream_t stream = memory->streams[round % 2];
    const int root = round % me->size;
    STEP("all-gather of %zu, round %d", count, round);
    fill(me, memory, memory->send, round, count, stream);
    MUST(rondo_allgather_on_stream(memory->send, memory->recv, count, RONDO_INT32, me->world, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < me->size; r++)
        check(me, memory, "all-gather", memory->recv + (size_t) r * count, count, r, round, 0);
    STEP("all-gather in place of %zu, round %d", count, round);
    fill(me, memory, memory->recv + (size_t) me->rank * count, round + 100, count, stream);
    MUST(rondo_allgather_on_stream(RONDO_IN_PLACE, memory->recv, count, RONDO_INT32, me->world, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < me->size; r++)
        check(me, memory, "all-gather in place", memory->recv + (size_t) r * count, count, r, round + 100, 0);
    STEP("all-to-all of %zu, round %d", count, round);
    fill(me, memory, memory->send, round, count * n, stream);
    MUST(rondo_alltoall_on_stream(memory->send, memory->recv, count, RONDO_INT32, me->world, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < me->size; r++)
        check(me, memory, "all-to-all", memory->recv + (size_t) r * count, count, r, round, (size_t) me->rank * count);
    STEP("broadcast of %zu, round %d", count, round);
    fill(me, memory, memory->recv, round, count, stream);
    MUST(rondo_bcast_on_stream(memory->recv, count, RONDO_INT32, root, me->world, stream));
    CUDA(cudaStreamSynchronize(stream));
    check(me, memory, "broadcast", memory->recv, count, root, round, 0);
}

/* Broadcasts of a whole buffer, from each root in turn, without a wait between them: among three ranks and more they are so
 * large that they go from rank to rank. */
static void broadcasts(struct rank *me)
{
    struct memory memory;
    const size_t count = (size_t) MOST * (size_t) me->size;
    set_up(me, &memory);
    const uint32_t before = count_issued(me);
    fill(me, &memory, memory.recv, 0, count, memory.streams[0]);
    MUST(rondo_barrier(me->world));
    for (int round = 0; round < ROUNDS; round++) {
        STEP("enqueuing broadcast %d", round);
        MUST(rondo_bcast_on_stream(memory.recv, count, RONDO_INT32, round % me->size, me->world, memory.streams[0]));
    }
    STEP("waiting for %d broadcasts", ROUNDS);
    CUDA(cudaStreamSynchronize(memory.streams[0]));
    check(me, &memory, "broadcasts in a row", memory.recv, count, 0, 0, 0);
    for (int root = 0; root < me->size; root++) {
        fill(me, &memory, memory.recv, root, count, memory.streams[0]);
        MUST(rondo_bcast_on_stream(memory.recv, count, RONDO_INT32, root, me->world, memory.streams[0]));
        STEP("waiting for the broadcast from %d", root);
        CUDA(cudaStreamSynchronize(memory.streams[0]));
        check(me, &memory, "large broadcast", memory.recv, count, root, root, 0);
        MUST(rondo_barrier(me->world)); /* no rank fills its buffer while a peer writes there */
    }
    CHECK(count_issued(me) == before + expected(me, ROUNDS + me->size), "copy engines have done %u of %d broadcasts",
          count_issued(me) - before, ROUNDS + me->size);
    take_down(me, &memory);
}

static void sizes(struct rank *me)
{
    static const size_t counts[] = {1, 3, 1000, 4099, 65536, MOST};
    struct memory memory;
    set_up(me, &memory);
    const uint32_t before = count_issued(me);
    int round = 0;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (int again = 0; again < 3; again++)
            all_kinds(me, &memory, counts[c], round++);
    CHECK(count_issued(me) == before + expected(me, 4 * round), "copy engines have done %u of %d operations",
          count_issued(me) - before, 4 * round);
    take_down(me, &memory);
}

/* Many operations in flight, on two streams in turn, each on the result of the one before, with sums by kernels in between. */
static void pipelines(struct rank *me)
{
    struct memory memory;
    enum { COUNT = 5000 };
    set_up(me, &memory);
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    fill(me, &memory, memory.send, 7, COUNT, memory.streams[0]);
    MUST(rondo_barrier(me->world));
    for (int round = 0; round < ROUNDS; round++) {
        STEP("enqueuing round %d", round);
        cudaStream_t stream = memory.streams[round % 2];
        /* The next rank's block becomes this rank's input. */
        MUST(rondo_allgather_on_stream(memory.send, memory.recv, COUNT, RONDO_INT32, me->world, stream));
        if (round % 4 == 2) /* a maximum of equal values, by a kernel */
            MUST(rondo_allreduce_on_stream(RONDO_IN_PLACE, memory.recv, COUNT, RONDO_INT32, RONDO_MAX, me->world, stream));
        CUDA(cudaMemcpyAsync(memory.send, memory.recv + (size_t) ((me->rank + 1) % me->size) * COUNT, COUNT * sizeof(int32_t),
                             cudaMemcpyDeviceToDevice, stream));
        CUDA(cudaEventRecord(event, stream));
        CUDA(cudaStreamWaitEvent(memory.streams[(round + 1) % 2], event, 0));
    }
    STEP("waiting for all rounds");
    for (int s = 0; s < 2; s++)
        CUDA(cudaStreamSynchronize(memory.streams[s]));
    check(me, &memory, "rounds", memory.send, COUNT, (me->rank + ROUNDS) % me->size, 7, 0);
    CUDA(cudaEventDestroy(event));
    take_down(me, &memory);
}

/* Captured operations are kernels, and give the same. */
static void captured(struct rank *me)
{
    struct memory memory;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t launchable = NULL;
    enum { COUNT = 4000 };
    set_up(me, &memory);
    const uint32_t before = count_issued(me);
    fill(me, &memory, memory.send, 3, COUNT, memory.streams[0]);
    MUST(rondo_barrier(me->world));
    CUDA(cudaStreamBeginCapture(memory.streams[0], cudaStreamCaptureModeThreadLocal));
    MUST(rondo_allgather_on_stream(memory.send, memory.recv, COUNT, RONDO_INT32, me->world, memory.streams[0]));
    CUDA(cudaStreamEndCapture(memory.streams[0], &graph));
    CUDA(cudaGraphInstantiateWithFlags(&launchable, graph, 0));
    MUST(rondo_barrier(me->world));
    for (int k = 0; k < 3; k++)
        CUDA(cudaGraphLaunch(launchable, memory.streams[0]));
    STEP("waiting for the graph");
    CUDA(cudaStreamSynchronize(memory.streams[0]));
    for (int r = 0; r < me->size; r++)
        check(me, &memory, "graph", memory.recv + (size_t) r * COUNT, COUNT, r, 3, 0);
    CHECK(count_issued(me) == before, "copy engines have done %u operations", count_issued(me) - before);
    CUDA(cudaGraphExecDestroy(launchable));
    CUDA(cudaGraphDestroy(graph));
    take_down(me, &memory);
}

/* Rates of an all-gather, for the reader; no check depends on them. */
static void rates(struct rank *me)
{
    struct memory memory;
    cudaEvent_t begin, end;
    set_up(me, &memory);
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    for (size_t count = 1024; count <= MOST; count *= 16) {
        float milliseconds = 0;
        MUST(rondo_barrier(me->world));
        STEP("rate at %zu", count);
        for (int k = 0; k < 25; k++) {
            if (k == 5)
                CUDA(cudaEventRecord(begin, memory.streams[0]));
            MUST(rondo_allgather_on_stream(memory.send, memory.recv, count, RONDO_INT32, me->world, memory.streams[0]));
        }
        CUDA(cudaEventRecord(end, memory.streams[0]));
        CUDA(cudaStreamSynchronize(memory.streams[0]));
        CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
        if (me->rank == 0 && !shares)
            printf("NOTE all-gather by copy engines, %zu bytes a rank: %.1f us\n", count * sizeof(int32_t),
                   (double) milliseconds * 1000 / 20);
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    take_down(me, &memory);
}

/* The last rank does not come: it aborts, and the others' streams end. Its memory stays until they have. */
static void abandoned(struct rank *me)
{
    static int ended; /* ranks whose streams have; atomic */
    const double until = ranks_seconds() + 20;
    struct memory memory;
    cudaError_t error = cudaSuccess;
    set_up(me, &memory);
    MUST(rondo_barrier(me->world));
    if (me->rank == me->size - 1) {
        ranks_sleep(0.3);
        MUST(rondo_comm_abort(me->world, 1));
        while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < me->size - 1 && ranks_seconds() < until)
            ranks_sleep(0.01);
        return;
    }
    (void) rondo_allgather_on_stream(memory.send, memory.recv, 1000, RONDO_INT32, me->world, memory.streams[0]);
    while ((error = cudaStreamQuery(memory.streams[0])) == cudaErrorNotReady && ranks_seconds() < until) {
        int idle;
        (void) rondo_comm_status(me->world, NULL, &idle);
        ranks_sleep(0.01);
    }
    CHECK(error == cudaSuccess, "the stream of rank %d: %s", me->rank, cudaGetErrorString(error));
    __atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
}

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {
    {"sizes", sizes}, {"broadcasts", broadcasts}, {"pipelines", pipelines}, {"captured", captured}, {"rates", rates}};

static void run(struct rank *me)
{
    for (size_t k = 0; k < sizeof(scenarios) / sizeof(scenarios[0]); k++) {
        if (strcmp(scenario, "all") != 0 && strcmp(scenario, scenarios[k].name) != 0)
            continue;
        scenarios[k].function(me);
        STEP("barrier after %s", scenarios[k].name);
        MUST(rondo_barrier(me->world));
    }
}

int main(int argc, char **argv)
{
    long ranks = -1;
    int gpus = 0;
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL,
         "ranks as threads; 0: this process is one of a job; -1: that under mpirun, else one a GPU, three on a single one"},
        {"--scenario", NULL, &scenario, "sizes, broadcasts, pipelines, captured, rates, abandoned or all"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("copies: skipped: no GPU that CUDA can use\n");
        return 0;
    }
    setenv("RONDO_DEVICE", "cuda", 1); /* the harness reads it */
    if (ranks < 0)
        ranks = getenv("OMPI_COMM_WORLD_SIZE") != NULL ? 0 : gpus > 1 ? gpus : 3;
    shares = ranks > gpus;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.sm = 0;
    if (strcmp(scenario, "abandoned") != 0)
        ranks_run((int) ranks, &config, run, NULL);
    if ((strcmp(scenario, "all") == 0 && ranks > 0) || strcmp(scenario, "abandoned") == 0)
        ranks_run((int) ranks, &config, abandoned, NULL);
    return ranks_finish("copies");
}
