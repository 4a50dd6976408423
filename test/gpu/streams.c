/*
 * Operations in stream order, on all GPUs, with one rank each. (A single GPU is shared by three ranks;
 * CUDA_DEVICE_MAX_CONNECTIONS must be 32 then, because CUDA itself would let streams wait for each other.) CUDA graphs that are
 * captured once and launched many times, groups larger than one launch holds, more waiting kernels than fit on a GPU, large
 * messages into memory of every kind, buffers that may not be used, counts that are read beside kernels that wait, and
 * operations that a rank never enqueues.
 */
#include "test/multirank/ranks.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call)                                                                                                             \
    do {                                                                                                                       \
        cudaError_t cuda_error = (call);                                                                                       \
        CHECK(cuda_error == cudaSuccess, "%s", cudaGetErrorString(cuda_error));                                                \
    } while (0)

static const char *scenario = "all";

static cudaStream_t make_stream(struct rank *me)
{
    cudaStream_t stream = NULL;
    int gpu = 0;
    MUST(rondo_device_index(me->runtime, &gpu));
    CUDA(cudaSetDevice(gpu));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/* ---- graphs ---- */

enum { COUNT = 3000, REPLAYS = 40 };

/* The value of every byte of the rank's input before launch number k. */
static unsigned char input(int rank, int k)
{
    return (unsigned char) (ranks_hash((uint64_t) rank << 32 ^ (uint64_t) k) & 0x1f);
}

static unsigned char expected(const struct rank *me, int k)
{
    unsigned sum = 0;
    for (int r = 0; r < me->size; r++)
        sum += input(r, k);
    return (unsigned char) sum;
}

static void enqueue(struct rank *me, unsigned char *send, unsigned char *middle, unsigned char *recv, cudaStream_t stream)
{
    /* Two operations of one lane, the second on the first one's result, whose maximum over ranks is itself. */
    MUST(rondo_allreduce_on_stream(send, middle, COUNT, RONDO_UINT8, RONDO_SUM, me->world, stream));
    MUST(rondo_allreduce_on_stream(middle, recv, COUNT, RONDO_UINT8, RONDO_MAX, me->world, stream));
}

/* Captured once, launched many times, with uncaptured operations of the same lane in between. */
static void graphs_in_mode(struct rank *me, enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = make_stream(me);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t launchable = NULL;
    unsigned char *send = ranks_allocate(COUNT), *middle = ranks_allocate(COUNT), *recv = ranks_allocate(COUNT);
    unsigned char *results = ranks_allocate((size_t) COUNT * REPLAYS), *image = malloc((size_t) COUNT * REPLAYS);
    MUST(rondo_barrier(me->world)); /* no rank allocates while another one captures */
    STEP("capture");
    CUDA(cudaStreamBeginCapture(stream, mode));
    enqueue(me, send, middle, recv, stream);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CHECK(graph != NULL, "no graph");
    MUST(rondo_barrier(me->world));
    CUDA(cudaGraphInstantiateWithFlags(&launchable, graph, 0));
    for (int k = 0; k < REPLAYS && launchable != NULL; k++) {
        STEP("launch %d", k);
        CUDA(cudaMemsetAsync(send, input(me->rank, k), COUNT, stream));
        if (k % 5 == 3)
            enqueue(me, send, middle, recv, stream);
        else
            CUDA(cudaGraphLaunch(launchable, stream));
        CUDA(cudaMemcpyAsync(results + (size_t) k * COUNT, recv, COUNT, cudaMemcpyDeviceToDevice, stream));
    }
    STEP("waiting for the launches");
    CUDA(cudaStreamSynchronize(stream));
    ranks_get(image, results, (size_t) COUNT * REPLAYS);
    for (int k = 0; k < REPLAYS; k++) {
        int wrong = 0;
        for (int i = 0; i < COUNT; i++)
            wrong += image[(size_t) k * COUNT + (size_t) i] != expected(me, k);
        CHECK(wrong == 0, "launch %d: %d of %d bytes wrong", k, wrong, COUNT);
    }
    CUDA(cudaGraphExecDestroy(launchable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    ranks_release(send);
    ranks_release(middle);
    ranks_release(recv);
    ranks_release(results);
    free(image);
}

/* In the global mode no thread of the process may make unsafe calls; the library's own threads must not fail. */
static void graphs(struct rank *me)
{
    graphs_in_mode(me, cudaStreamCaptureModeThreadLocal);
    graphs_in_mode(me, cudaStreamCaptureModeGlobal);
    graphs_in_mode(me, cudaStreamCaptureModeRelaxed);
}

/* ---- groups ---- */

enum { EACH = 9, LONGEST = 20000 }; /* messages from every rank to every rank, and their elements */

static size_t length(int from, int to, int number)
{
    return (size_t) (ranks_hash((uint64_t) from << 40 ^ (uint64_t) to << 20 ^ (uint64_t) number) % LONGEST);
}

static int32_t element(int from, int to, int number, size_t i)
{
    return (int32_t) ranks_hash((uint64_t) from << 52 ^ (uint64_t) to << 44 ^ (uint64_t) number << 36 ^ i);
}

struct message {
    int32_t *out, *in;
};

static void send_and_receive(struct rank *me, struct message *messages, int sends, cudaStream_t stream)
{
    for (int at = 0; at < me->size * EACH; at++) {
        int peer = at % me->size, number = at / me->size;
        peer = me->rank % 2 == 0 ? peer : me->size - 1 - peer; /* the orders of members differ between ranks */
        struct message *message = &messages[peer * EACH + number];
        if (sends)
            MUST(rondo_send_on_stream(message->out, length(me->rank, peer, number), RONDO_INT32, peer, me->world, stream));
        else
            MUST(rondo_recv_on_stream(message->in, length(peer, me->rank, number), RONDO_INT32, peer, me->world, stream));
    }
}

static void groups(struct rank *me)
{
    size_t all = (size_t) me->size * EACH;
    cudaStream_t stream = make_stream(me);
    struct message *messages = calloc(all, sizeof(*messages));
    int32_t *image = calloc(LONGEST, sizeof(*image));
    for (size_t m = 0; m < all; m++) {
        int peer = (int) m / EACH, number = (int) m % EACH;
        messages[m].out = ranks_allocate(LONGEST * sizeof(int32_t));
        messages[m].in = ranks_allocate(LONGEST * sizeof(int32_t));
        for (size_t i = 0; i < length(me->rank, peer, number); i++)
            image[i] = element(me->rank, peer, number, i);
        ranks_put(messages[m].out, image, LONGEST * sizeof(*image));
    }
    for (int round = 0; round < 3; round++) {
        STEP("group of %zu, round %d", 2 * all, round);
        MUST(rondo_group_start(me->world));
        send_and_receive(me, messages, me->rank % 2 == round % 2, stream);
        send_and_receive(me, messages, me->rank % 2 != round % 2, stream);
        MUST(rondo_group_end(me->world));
        STEP("waiting for the group, round %d", round);
        CUDA(cudaStreamSynchronize(stream));
        for (size_t m = 0; m < all; m++) {
            int peer = (int) m / EACH, number = (int) m % EACH;
            size_t count = length(peer, me->rank, number), wrong = 0;
            ranks_get(image, messages[m].in, LONGEST * sizeof(*image));
            for (size_t i = 0; i < count; i++)
                wrong += image[i] != element(peer, me->rank, number, i);
            CHECK(wrong == 0, "round %d, message %d of rank %d: %zu of %zu wrong", round, number, peer, wrong, count);
            memset(image, 0, LONGEST * sizeof(*image));
            ranks_put(messages[m].in, image, LONGEST * sizeof(*image));
        }
        MUST(rondo_barrier(me->world));
    }
    for (size_t m = 0; m < all; m++) {
        ranks_release(messages[m].out);
        ranks_release(messages[m].in);
    }
    CUDA(cudaStreamDestroy(stream));
    free(messages);
    free(image);
}

/* ---- oversubscription ---- */

/* All-reduces on each stream, with so many blocks that two fit on a GPU. CUDA has 8 connections, and the library uses two
 * streams. */
enum { STREAMS = 6, EACH_STREAM = 3, OVERSUBSCRIBED_BLOCKS = 64, OVERSUBSCRIBED = 1 << 21 };

struct oversubscription {
    rondo_comm_t comm;
    cudaStream_t stream;
    int32_t *memory, *image; /* of the GPU, for the input and the result; the host's copy */
};

static int32_t oversubscribed_input(int rank, int stream, int round)
{
    return (int32_t) (ranks_hash((uint64_t) rank << 32 ^ (uint64_t) round << 16 ^ (uint64_t) stream) & 0xffff);
}

static int32_t oversubscribed_sum(const struct rank *me, int stream, int round)
{
    int32_t sum = 0;
    for (int r = 0; r < me->size; r++)
        sum += oversubscribed_input(r, stream, round);
    return sum;
}

/* Odd ranks start with the last stream. Copies that wait follow each all-reduce. From its second all-reduce on a stream works
 * on the first one's result. */
static void oversubscribed_round(struct rank *me, struct oversubscription *oversubscription, int round)
{
    for (int s = 0; s < STREAMS; s++) {
        for (size_t i = 0; i < OVERSUBSCRIBED; i++)
            oversubscription[s].image[i] = oversubscribed_input(me->rank, s, round) + (int32_t) (i & 0xff);
        ranks_put(oversubscription[s].memory, oversubscription[s].image, OVERSUBSCRIBED * sizeof(int32_t));
    }
    STEP("enqueuing on %d streams", STREAMS);
    for (int k = 0; k < STREAMS; k++) {
        struct oversubscription *one = &oversubscription[me->rank % 2 == 0 ? k : STREAMS - 1 - k];
        int32_t *result = one->memory + OVERSUBSCRIBED;
        MUST(rondo_allreduce_on_stream(one->memory, result, OVERSUBSCRIBED, RONDO_INT32, RONDO_SUM, one->comm, one->stream));
        for (int n = 1; n < EACH_STREAM; n++)
            MUST(rondo_allreduce_on_stream(RONDO_IN_PLACE, result, OVERSUBSCRIBED, RONDO_INT32, RONDO_MAX, one->comm,
                                           one->stream));
        CUDA(cudaMemcpyAsync(one->image, result, OVERSUBSCRIBED * sizeof(int32_t), cudaMemcpyDeviceToHost, one->stream));
    }
    for (int k = 0; k < STREAMS; k++) {
        const int s = (k * 5 + me->rank) % STREAMS;
        size_t wrong = 0;
        STEP("waiting for stream %d, round %d", s, round);
        CUDA(cudaStreamSynchronize(oversubscription[s].stream));
        for (size_t i = 0; i < OVERSUBSCRIBED; i++)
            wrong += oversubscription[s].image[i] != oversubscribed_sum(me, s, round) + me->size * (int32_t) (i & 0xff);
        CHECK(wrong == 0, "stream %d, round %d: %zu of %d elements wrong", s, round, wrong, OVERSUBSCRIBED);
    }
}

static void oversubscription(struct rank *me)
{
    struct oversubscription oversubscription[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        oversubscription[s].stream = make_stream(me);
        MUST(rondo_comm_dup(me->world, &oversubscription[s].comm));
        oversubscription[s].memory = ranks_allocate(2 * OVERSUBSCRIBED * sizeof(int32_t));
        CUDA(cudaMallocHost((void **) &oversubscription[s].image, OVERSUBSCRIBED * sizeof(int32_t)));
    }
    for (int round = 0; round < 3; round++) {
        MUST(rondo_barrier(me->world));
        oversubscribed_round(me, oversubscription, round);
    }
    MUST(rondo_barrier(me->world));
    for (int s = 0; s < STREAMS; s++) {
        MUST(rondo_comm_free(&oversubscription[s].comm));
        CUDA(cudaStreamDestroy(oversubscription[s].stream));
        CUDA(cudaFreeHost(oversubscription[s].image));
        ranks_release(oversubscription[s].memory);
    }
}

/* ---- large messages ---- */

enum { LARGE = 2500001 }; /* elements: too many for slots within a host, and not whole vectors */

/* The sender can store directly into memory of cudaMalloc; other kinds are filled through slots. */
static int32_t *memory_of_kind(int kind, cudaStream_t stream)
{
    static const char *const names[] = {"cudaMalloc", "cudaMallocAsync", "cudaMallocHost", "cudaMallocManaged"};
    void *memory = NULL;
    STEP("%s", names[kind]);
    if (kind == 0)
        CUDA(cudaMalloc(&memory, LARGE * sizeof(int32_t)));
    else if (kind == 1)
        CUDA(cudaMallocAsync(&memory, LARGE * sizeof(int32_t), stream));
    else if (kind == 2)
        CUDA(cudaMallocHost(&memory, LARGE * sizeof(int32_t)));
    else
        CUDA(cudaMallocManaged(&memory, LARGE * sizeof(int32_t), cudaMemAttachGlobal));
    CUDA(cudaStreamSynchronize(stream));
    return memory;
}

static void free_of_kind(int kind, void *memory, cudaStream_t stream)
{
    CUDA(kind == 1 ? cudaFreeAsync(memory, stream) : kind == 2 ? cudaFreeHost(memory) : cudaFree(memory));
}

/* Sends around a ring twice, the second time with other data. shift: elements between a vector boundary and the buffers. */
static void message_round(struct rank *me, int32_t *out, int32_t *in, int32_t *image, size_t shift, cudaStream_t stream)
{
    const int right = (me->rank + 1) % me->size, left = (me->rank + me->size - 1) % me->size;
    const size_t count = LARGE - shift;
    for (int round = 0; round < 2; round++) {
        size_t wrong = 0;
        for (size_t i = 0; i < count; i++)
            image[i] = element(me->rank, right, round, i);
        CUDA(cudaMemcpyAsync(out + shift, image, count * sizeof(*image), cudaMemcpyDefault, stream));
        CUDA(cudaMemsetAsync(in, 0, LARGE * sizeof(*in), stream));
        MUST(rondo_group_start(me->world));
        MUST(rondo_send_on_stream(out + shift, count, RONDO_INT32, right, me->world, stream));
        MUST(rondo_recv_on_stream(in + shift, count, RONDO_INT32, left, me->world, stream));
        MUST(rondo_group_end(me->world));
        CUDA(cudaMemcpyAsync(image, in + shift, count * sizeof(*image), cudaMemcpyDefault, stream));
        CUDA(cudaStreamSynchronize(stream));
        for (size_t i = 0; i < count; i++)
            wrong += image[i] != element(left, me->rank, round, i);
        CHECK(wrong == 0, "round %d: %zu of %zu wrong", round, wrong, count);
    }
}

/* Freeing waits for everything on the GPU and keeps the process from launching meanwhile: ranks that share a GPU free when none
 * of them waits for another. */
static void before_freeing(struct rank *me)
{
    int gpus = 0;
    CUDA(cudaGetDeviceCount(&gpus));
    if (me->size > gpus)
        MUST(rondo_barrier(me->world));
}

/* Each rank in turn receives into memory of another kind than its neighbours. */
static void messages(struct rank *me)
{
    enum { KINDS = 4 };
    cudaStream_t stream = make_stream(me);
    int32_t *out = memory_of_kind(0, stream), *image = malloc(LARGE * sizeof(*image));
    for (int turn = 0; turn < 2 * KINDS; turn++) {
        const int kind = (turn + me->rank) % KINDS;
        int32_t *in = memory_of_kind(kind, stream);
        message_round(me, out, in, image, turn < KINDS ? 0 : 1, stream);
        before_freeing(me);
        free_of_kind(kind, in, stream);
        before_freeing(me);
    }
    free_of_kind(0, out, stream);
    CUDA(cudaStreamDestroy(stream));
    free(image);
}

/* ---- buffers ---- */

enum { BYTES = 1 << 20 };

static void buffers(struct rank *me)
{
    static double on_host[2];
    int gpu = 0, gpus = 0;
    unsigned char *send = NULL, *recv = ranks_allocate(BYTES), *elsewhere = NULL, *in_place_of = NULL;
    rondo_request_t request = NULL;
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    cudaStream_t stream = make_stream(me);
    MUST(rondo_device_index(me->runtime, &gpu));
    CUDA(cudaGetDeviceCount(&gpus));
    EXPECT(RONDO_ERR_BUFFER, "pageable", rondo_allreduce(on_host, recv, 1, RONDO_DOUBLE, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_BUFFER, "pageable", rondo_bcast_on_stream(on_host, 1, RONDO_DOUBLE, 0, me->world, stream));
    if (gpus > 1) {
        CUDA(cudaSetDevice((gpu + 1) % gpus));
        CUDA(cudaMalloc((void **) &elsewhere, BYTES));
#if CUDART_VERSION >= 12080
        cudaStream_t foreign = NULL;
        CUDA(cudaStreamCreateWithFlags(&foreign, cudaStreamNonBlocking));
        CUDA(cudaSetDevice(gpu));
        EXPECT(RONDO_ERR_ARGUMENT, "not a stream of this runtime's GPU",
               rondo_allreduce_on_stream(RONDO_IN_PLACE, recv, 1, RONDO_DOUBLE, RONDO_SUM, me->world, foreign));
        EXPECT(RONDO_ERR_ARGUMENT, "not a stream of this runtime's GPU", rondo_barrier_on_stream(me->world, foreign));
        CUDA(cudaStreamDestroy(foreign));
#endif
        CUDA(cudaSetDevice(gpu));
        EXPECT(RONDO_ERR_BUFFER, "memory of GPU", rondo_allreduce(recv, elsewhere, 1, RONDO_DOUBLE, RONDO_SUM, me->world));
        CUDA(cudaFree(elsewhere));
    }
    MUST(rondo_barrier(me->world));
    STEP("an operation whose buffer is freed");
    attr.program = "direct";
    CUDA(cudaMalloc((void **) &send, BYTES));
    rondo_result_t made = rondo_allreduce_init(send, recv, BYTES, RONDO_UINT8, RONDO_SUM, me->world, &attr, &request);
    if (made != RONDO_SUCCESS) { /* GPUs without peer access */
        printf("rank %d: no direct access here: %s\n", me->rank, rondo_last_error());
    } else {
        MUST(rondo_start(request));
        MUST(rondo_wait(request));
        MUST(rondo_start_on_stream(request, stream));
        CUDA(cudaStreamSynchronize(stream));
        MUST(rondo_barrier(me->world));
        CUDA(cudaFree(send));
        send = NULL;
        EXPECT(RONDO_ERR_BUFFER, "freed", rondo_start(request));
        CUDA(cudaMalloc((void **) &in_place_of, BYTES)); /* most likely at the old address */
        EXPECT(RONDO_ERR_BUFFER, "freed", rondo_start(request));
        EXPECT(RONDO_ERR_BUFFER, "freed", rondo_start_on_stream(request, stream));
        MUST(rondo_request_free(&request));
        CUDA(cudaFree(in_place_of));
    }
    MUST(rondo_barrier(me->world));
    CUDA(cudaFree(send));
    CUDA(cudaStreamDestroy(stream));
    ranks_release(recv);
    CHECK(cudaPeekAtLastError() == cudaSuccess, "an error is left behind: %s", cudaGetErrorString(cudaPeekAtLastError()));
}

/* A pending CUDA error of the application stays pending. */
static void pending_error(struct rank *me)
{
    int64_t sum = 0;
    (void) make_stream(me);
    (void) cudaMemset(NULL, 0, 1);
    cudaError_t own = cudaPeekAtLastError();
    CHECK(own != cudaSuccess, "the call that was to fail did not");
    MUST(ranks_sum(me->world, 1, &sum));
    CHECK(cudaPeekAtLastError() == own, "the application's error has become %s", cudaGetErrorString(cudaPeekAtLastError()));
    (void) cudaGetLastError();
}

/* ---- statistics ---- */

/* The counts are read while kernels on streams wait: rank 0 enters the operation when the others have read them. */
static void statistics(struct rank *me)
{
    static int readers;
    unsigned char *memory = ranks_allocate(2 * COUNT);
    cudaStream_t stream = make_stream(me);
    double begun = ranks_seconds();
    rondo_stats_t stats;
    int64_t sum = 0;
    MUST(ranks_sum(me->world, 1, &sum)); /* by the daemon, whose blocks count */
    while (me->rank == 0 && __atomic_load_n(&readers, __ATOMIC_RELAXED) < me->size - 1 && ranks_seconds() - begun < 20)
        ranks_sleep(0.01);
    CHECK(ranks_seconds() - begun < 20, "%d of %d ranks have read their counts", readers, me->size - 1);
    MUST(rondo_allreduce_on_stream(memory, memory + COUNT, COUNT, RONDO_UINT8, RONDO_SUM, me->world, stream));
    if (me->rank > 0) {
        ranks_sleep(0.2); /* so that the kernel waits */
        STEP("reading the counts beside a kernel that waits");
        MUST(rondo_get_stats(me->runtime, &stats));
        CHECK(cudaStreamQuery(stream) == cudaErrorNotReady, "the operation has ended without rank 0");
        (void) __atomic_fetch_add(&readers, 1, __ATOMIC_RELAXED);
    }
    CUDA(cudaStreamSynchronize(stream));
    MUST(rondo_get_stats(me->runtime, &stats));
    CHECK(stats.primitives > 0 && stats.bytes_sent > 0, "%" PRIu64 " primitives, %" PRIu64 " bytes", stats.primitives,
          stats.bytes_sent);
    CUDA(cudaStreamDestroy(stream));
    ranks_release(memory);
}

/* ---- timeouts ---- */

/* One rank stays away: the others' kernels end, and the next call gives the reason. */
static void timeouts(struct rank *me)
{
    unsigned char *memory = ranks_allocate(2 * COUNT);
    cudaStream_t stream = make_stream(me);
    double begun = ranks_seconds();
    if (me->rank > 0) {
        MUST(rondo_allreduce_on_stream(memory, memory + COUNT, COUNT, RONDO_UINT8, RONDO_SUM, me->world, stream));
        STEP("waiting for an operation that never ends");
        CUDA(cudaStreamSynchronize(stream));
        CHECK(ranks_seconds() - begun < 20, "it took %.1f s", ranks_seconds() - begun);
    } else {
        ranks_sleep(8);
    }
    EXPECT(RONDO_ERR_TIMEOUT, "operation 0 of a stream",
           rondo_allreduce_on_stream(memory, memory + COUNT, COUNT, RONDO_UINT8, RONDO_SUM, me->world, stream));
    CUDA(cudaStreamDestroy(stream));
    ranks_release(memory);
}

/* A receive without a send ends, and what is sent too late does not reach its buffer, which belongs to the application
 * again. */
static void abandoned(struct rank *me)
{
    cudaStream_t stream = make_stream(me);
    int32_t *memory = memory_of_kind(0, stream), *image = calloc(LARGE, sizeof(*image));
    size_t wrong = 0;
    CUDA(cudaMemset(memory, me->rank == 0 ? 0x11 : 0x22, LARGE * sizeof(*memory)));
    if (me->rank == 0) {
        MUST(rondo_recv_on_stream(memory, LARGE, RONDO_INT32, 1, me->world, stream));
        STEP("waiting for a receive that is sent nothing to");
        CUDA(cudaStreamSynchronize(stream));
        EXPECT(RONDO_ERR_TIMEOUT, "", rondo_recv_on_stream(memory, LARGE, RONDO_INT32, 1, me->world, stream));
        ranks_sleep(2);
        CUDA(cudaMemcpy(image, memory, LARGE * sizeof(*image), cudaMemcpyDefault));
        for (size_t i = 0; i < LARGE; i++)
            wrong += image[i] != 0x11111111;
        CHECK(wrong == 0, "%zu of %d elements have been stored to", wrong, LARGE);
    } else if (me->rank == 1) {
        ranks_sleep(2.2); /* about the time when rank 0 gives up */
        (void) rondo_send_on_stream(memory, LARGE, RONDO_INT32, 0, me->world, stream);
        STEP("waiting for a send that comes too late");
        CUDA(cudaStreamSynchronize(stream));
    }
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(memory));
    free(image);
}

/* ---- */

static const struct {
    const char *name;
    rank_function_t function;
} scenarios[] = {{"graphs", graphs},        {"groups", groups},   {"oversubscription", oversubscription},
                 {"messages", messages},    {"buffers", buffers}, {"pending_error", pending_error},
                 {"statistics", statistics}};

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
    long ranks = 0;
    int gpus = 0;
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: one a GPU, three on a single one"},
        {"--scenario", NULL, &scenario,
         "graphs, groups, oversubscription, messages, buffers, pending_error, statistics, timeouts, abandoned or all"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
        printf("streams: skipped: no GPU that CUDA can use\n");
        return 0;
    }
    setenv("RONDO_DEVICE", "cuda", 1); /* the harness reads it */
    if (ranks == 0)
        ranks = gpus > 1 ? gpus : 3;
    rondo_config_t config = RONDO_CONFIG_DEFAULT, wide = RONDO_CONFIG_DEFAULT;
    wide.blocks = ranks > gpus ? OVERSUBSCRIBED_BLOCKS / 4 : OVERSUBSCRIBED_BLOCKS;
    if (strcmp(scenario, "all") == 0 ||
        strcmp(scenario, "oversubscription") == 0) /* before other scenarios have taken the connections */
        ranks_run((int) ranks, &wide, oversubscription, NULL);
    if (strcmp(scenario, "oversubscription") != 0 && strcmp(scenario, "timeouts") != 0 && strcmp(scenario, "abandoned") != 0)
        ranks_run((int) ranks, &config, run, NULL);
    config.timeout = 2;
    if (strcmp(scenario, "all") == 0 || strcmp(scenario, "timeouts") == 0)
        ranks_run((int) ranks, &config, timeouts, NULL);
    if (strcmp(scenario, "all") == 0 || strcmp(scenario, "abandoned") == 0)
        ranks_run((int) ranks, &config, abandoned, NULL);
    return ranks_finish("streams");
}
