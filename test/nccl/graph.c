/* Calls captured into CUDA graphs: collectives, groups with several messages for each peer, several communicators,
 * pre-multiplied sums; and many launches of the graphs, each of which is a call. Needs GPUs. */
#include "test/nccl/data.h"
#include "test/nccl/ranks.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#define COUNT 5000

#define CUDA(call) CHECK((call) == cudaSuccess, "%s: %s", #call, cudaGetErrorString(cudaGetLastError()))

static int ranks = 2;
static pthread_barrier_t all_ranks;
static ncclUniqueId ids[2];

struct me {
    int rank;
    ncclComm_t comms[2];
    cudaStream_t stream;
    float *a, *b;
    ncclRedOp_t half;
};

static void put(float *memory, float value, size_t count)
{
    float *host = malloc(count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        host[i] = value;
    device_put(memory, host, count * sizeof(*host));
    free(host);
}

static void expect(const float *memory, float value, size_t count, const char *what, int rank)
{
    float *host = malloc(count * sizeof(*host));
    size_t wrong = 0;
    device_get(host, memory, count * sizeof(*host));
    for (size_t i = 0; i < count; i++)
        wrong += host[i] != value;
    CHECK(wrong == 0, "%s: rank %d: %zu of %zu wrong, the first is %g, not %g", what, rank, wrong, count, (double) host[0],
          (double) value);
    free(host);
}

static void one(struct me *me)
{
    NCCL(ncclAllReduce(me->a, me->b, COUNT, ncclFloat, ncclSum, me->comms[0], me->stream));
}

static void several(struct me *me)
{
    NCCL(ncclAllReduce(me->a, me->b, COUNT, ncclFloat, ncclSum, me->comms[0], me->stream));
    NCCL(ncclAllReduce(me->b, me->b, COUNT, ncclFloat, ncclMax, me->comms[1], me->stream));
    NCCL(ncclBroadcast(me->b, me->b, COUNT, ncclFloat, 0, me->comms[0], me->stream));
}

static void grouped(struct me *me)
{
    int right = (me->rank + 1) % ranks, left = (me->rank + ranks - 1) % ranks;
    NCCL(ncclGroupStart());
    NCCL(ncclAllReduce(me->a, me->b, COUNT / 5, ncclFloat, ncclSum, me->comms[0], me->stream));
    for (size_t k = 1; k < 4; k++) {
        NCCL(ncclSend(me->a, COUNT / 5, ncclFloat, right, me->comms[0], me->stream));
        NCCL(ncclRecv(me->b + k * COUNT / 5, COUNT / 5, ncclFloat, left, me->comms[0], me->stream));
    }
    NCCL(ncclAllReduce(me->a, me->b + 4 * COUNT / 5, COUNT / 5, ncclFloat, ncclMin, me->comms[1], me->stream));
    NCCL(ncclGroupEnd());
}

static void scaled(struct me *me)
{
    NCCL(ncclAllReduce(me->a, me->b, COUNT, ncclFloat, me->half, me->comms[0], me->stream));
    NCCL(ncclReduceScatter(me->a, me->b, COUNT / (size_t) ranks, ncclFloat, me->half, me->comms[0], me->stream));
}

static void check(struct me *me, int which, const char *name)
{
    float sum = (float) (ranks * (ranks + 1) / 2), left = (float) ((me->rank + ranks - 1) % ranks) + 1;
    if (which == 2) {
        expect(me->b, sum, COUNT / 5, name, me->rank);
        expect(me->b + COUNT / 5, left, 3 * COUNT / 5, name, me->rank);
        expect(me->b + 4 * COUNT / 5, 1, COUNT / 5, name, me->rank);
    } else {
        expect(me->b, which == 3 ? sum / 2 : sum, COUNT / (size_t) ranks * (size_t) ranks, name, me->rank);
    }
}

static void rank_main(int rank, void *argument)
{
    static const struct {
        const char *name;
        void (*f)(struct me *me);
    } bodies[] = {{"one", one}, {"several", several}, {"grouped", grouped}, {"scaled", scaled}};
    static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                                       cudaStreamCaptureModeRelaxed};
    struct me me = {.rank = rank};
    float half = 0.5f;
    (void) argument;
    use_device(rank);
    me.stream = stream_create();
    me.a = device_allocate(COUNT * sizeof(float));
    me.b = device_allocate(COUNT * sizeof(float));
    for (int c = 0; c < 2; c++)
        me.comms[c] = join(&ids[c], rank, ranks);
    NCCL(ncclRedOpCreatePreMulSum(&me.half, &half, ncclFloat, ncclScalarHostImmediate, me.comms[0]));
    for (int body = 0; body < 4; body++)
        for (int mode = 0; mode < 3; mode++) {
            cudaGraph_t graph;
            cudaGraphExec_t launchable;
            put(me.a, (float) rank + 1, COUNT);
            pthread_barrier_wait(&all_ranks); /* while one thread captures in global mode, no other thread may copy */
            CUDA(cudaStreamBeginCapture(me.stream, modes[mode]));
            bodies[body].f(&me);
            CUDA(cudaStreamEndCapture(me.stream, &graph));
            pthread_barrier_wait(&all_ranks);
            CUDA(cudaGraphInstantiate(&launchable, graph, 0));
            for (int launch = 0; launch < 10; launch++) {
                put(me.b, -1, COUNT);
                CUDA(cudaGraphLaunch(launchable, me.stream));
                stream_wait(me.stream);
                check(&me, body, bodies[body].name);
            }
            for (int launch = 0; launch < 50; launch++)
                CUDA(cudaGraphLaunch(launchable, me.stream));
            one(&me); /* a call beside the graphs */
            stream_wait(me.stream);
            check(&me, 0, "after a graph");
            CUDA(cudaGraphExecDestroy(launchable));
            CUDA(cudaGraphDestroy(graph));
        }
    for (int c = 0; c < 2; c++)
        NCCL(ncclCommDestroy(me.comms[c]));
    stream_destroy(me.stream);
    device_free_at_end(me.a);
    device_free_at_end(me.b);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--ranks") == 0) {
        ranks = atoi(argv[2]);
    } else if (argc > 1) {
        fprintf(stderr, "options: --ranks N\n");
        return 2;
    }
    if (on_host()) {
        fprintf(stderr, "graph: the host device has no graphs\n");
        return 77;
    }
    watch();
    for (int c = 0; c < 2; c++)
        NCCL(ncclGetUniqueId(&ids[c]));
    pthread_barrier_init(&all_ranks, NULL, (unsigned) ranks);
    run_threads(ranks, rank_main, NULL);
    return finish("graph");
}
