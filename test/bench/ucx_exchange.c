/*
 * What UCX moves by itself, without Rondo above it: two processes send each other slots as active messages, both ways at once,
 * with UCX set up as in the ucx transport. Each process has so many threads with a worker of their own; a thread sends and
 * receives, like a thread of the proxy. What arrives is copied into a slot, as for ranks on GPUs, or left (--leave), for the
 * time of the network alone. With --staging slots come from a GPU's memory and go there, by its copy engines. Prints GB/s of
 * payload each way. `make ucx-exchange`; docs/guide/networks.md compares with it.
 */
#include <stdio.h>

#if RONDO_WITH_UCX
#include "transport/ucx/library.h"

#if RONDO_WITH_CUDA
#include <cuda_runtime_api.h>
#endif
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 16, SLOTS_MAX = 64, ADDRESS_BYTES = 4000, SLOT = 1, CREDIT = 2, PATIENCE_S = 20 };

struct address {
    uint32_t bytes; /* 0: not known yet; written last */
    unsigned char data[ADDRESS_BYTES];
};

/* Shared by the two processes. */
struct shared {
    struct address addresses[2][WORKERS_MAX];
    uint32_t ready, finished, gone; /* threads of both processes */
};

struct options {
    unsigned workers, slots;
    size_t bytes;
    double seconds;
    int leave, staging;
};

/* Copies between slots and a GPU's memory, one after the other in a stream. */
struct copies {
    uint64_t begun, done; /* slots */
#if RONDO_WITH_CUDA
    char *device;
    cudaStream_t stream;
    cudaEvent_t events[SLOTS_MAX];
#endif
};

/* A thread and its worker. */
struct mover {
    const struct options *options;
    const struct rondo_ucx_library *library;
    struct shared *shared;
    int side, failed, over; /* over: the counted time has ended */
    unsigned number;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    char *out, *in;
    struct copies filled, drained;              /* of out, and of in */
    uint64_t sent, acknowledged, arrived, told; /* slots */
    uint64_t headers[SLOTS_MAX], credit;
    unsigned sending; /* messages that UCX has not completed */
    uint64_t counted; /* slots that arrived in the counted time */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static int fail(struct mover *mover, const char *what, ucs_status_t status)
{
    if (!mover->over)
        fprintf(stderr, "%s: %s\n", what, mover->library->ucs_status_string(status));
    mover->failed |= !mover->over;
    return 0;
}

/* ---- staging copies; without them slots are filled and emptied at once ---- */

#if RONDO_WITH_CUDA
static int failed_copy(struct mover *mover, const char *what, cudaError_t error)
{
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    mover->failed = 1;
    return 0;
}

/* Each process has a GPU of its own, if there are two. */
static cudaError_t take_gpu(const struct mover *mover)
{
    int gpus = 0;
    cudaError_t error = cudaGetDeviceCount(&gpus);
    return error == cudaSuccess ? cudaSetDevice(mover->side % gpus) : error;
}

static int open_copies(struct mover *mover, struct copies *copies)
{
    cudaError_t error = take_gpu(mover);
    if (error == cudaSuccess)
        error = cudaMalloc((void **) &copies->device, mover->options->bytes * mover->options->slots);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&copies->stream, cudaStreamNonBlocking);
    for (unsigned i = 0; i < mover->options->slots && error == cudaSuccess; i++)
        error = cudaEventCreateWithFlags(&copies->events[i], cudaEventDisableTiming);
    return error == cudaSuccess ? 1 : failed_copy(mover, "a GPU", error);
}

static char *allocate_slots(struct mover *mover, size_t bytes)
{
    void *slots = NULL;
    if (!mover->options->staging)
        return malloc(bytes);
    cudaError_t error = take_gpu(mover);
    if (error == cudaSuccess)
        error = cudaHostAlloc(&slots, bytes, cudaHostAllocPortable);
    if (error != cudaSuccess)
        failed_copy(mover, "pinned memory", error);
    return slots;
}

/* Begins the copy of the next slot, in one direction. */
static void begin_copy(struct mover *mover, struct copies *copies, char *slots, enum cudaMemcpyKind kind)
{
    const size_t bytes = mover->options->bytes, slot = copies->begun++ % mover->options->slots;
    char *host = slots + slot * bytes, *device = copies->device + slot * bytes;
    cudaError_t error = kind == cudaMemcpyDeviceToHost ? cudaMemcpyAsync(host, device, bytes, kind, copies->stream)
                                                       : cudaMemcpyAsync(device, host, bytes, kind, copies->stream);
    if (error == cudaSuccess)
        error = cudaEventRecord(copies->events[slot], copies->stream);
    if (error != cudaSuccess)
        failed_copy(mover, "a copy", error);
}

static void look_at_copies(struct mover *mover, struct copies *copies)
{
    while (copies->done < copies->begun && cudaEventQuery(copies->events[copies->done % mover->options->slots]) == cudaSuccess)
        copies->done++;
}

static void stage(struct mover *mover, int sends)
{
    const unsigned slots = mover->options->slots;
    if (sends && mover->filled.begun - mover->acknowledged < slots)
        begin_copy(mover, &mover->filled, mover->out, cudaMemcpyDeviceToHost);
    while (mover->drained.begun < mover->arrived)
        begin_copy(mover, &mover->drained, mover->in, cudaMemcpyHostToDevice);
    look_at_copies(mover, &mover->filled);
    look_at_copies(mover, &mover->drained);
}
#else
static int open_copies(struct mover *mover, struct copies *copies)
{
    (void) copies;
    fprintf(stderr, "this build is without CUDA\n");
    mover->failed = 1;
    return 0;
}

static char *allocate_slots(struct mover *mover, size_t bytes)
{
    (void) mover;
    return malloc(bytes);
}

static void stage(struct mover *mover, int sends)
{
    (void) mover;
    (void) sends;
}
#endif

static uint64_t slots_filled(const struct mover *mover)
{
    return mover->options->staging ? mover->filled.done : UINT64_MAX;
}

static uint64_t slots_emptied(const struct mover *mover)
{
    return mover->options->staging ? mover->drained.done : mover->arrived;
}

/* ---- messages ---- */

static ucs_status_t slot_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                              const ucp_am_recv_param_t *how)
{
    struct mover *mover = argument;
    (void) header;
    (void) how;
    if (header_bytes != sizeof(uint64_t) || bytes != mover->options->bytes)
        return UCS_OK;
    if (!mover->options->leave)
        memcpy(mover->in + mover->arrived % mover->options->slots * mover->options->bytes, data, bytes);
    mover->arrived++;
    return UCS_OK;
}

static ucs_status_t credit_came(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                const ucp_am_recv_param_t *how)
{
    struct mover *mover = argument;
    (void) data;
    (void) bytes;
    (void) how;
    if (header_bytes == sizeof(mover->acknowledged))
        memcpy(&mover->acknowledged, header, sizeof(mover->acknowledged));
    return UCS_OK;
}

static void sent(void *request, ucs_status_t status, void *argument)
{
    struct mover *mover = argument;
    mover->sending--;
    if (status != UCS_OK)
        fail(mover, "a message", status);
    mover->library->ucp_request_free(request);
}

static void send_message(struct mover *mover, unsigned id, const uint64_t *header, const void *data, size_t bytes)
{
    ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                      UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                      .cb.send = sent,
                                      .user_data = mover,
                                      .memory_type = UCS_MEMORY_TYPE_HOST};
    mover->sending++;
    ucs_status_ptr_t request =
        mover->library->ucp_am_send_nbx(mover->endpoint, id, header, sizeof(*header), data, bytes, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return;
    mover->sending--;
    if (UCS_PTR_IS_ERR(request))
        fail(mover, "a message", UCS_PTR_STATUS(request));
}

/* One slot out between two looks at what has come in, and a credit for each half of the slots, as the transport does it. */
static void turn(struct mover *mover, int sends)
{
    const struct options *options = mover->options;
    int moved = mover->library->ucp_worker_progress(mover->worker) > 0;
    if (options->staging)
        stage(mover, sends);
    if (sends && mover->sent - mover->acknowledged < options->slots && mover->sent < slots_filled(mover)) {
        uint64_t slot = mover->sent++ % options->slots;
        mover->headers[slot] = mover->sent;
        send_message(mover, SLOT, &mover->headers[slot], mover->out + slot * options->bytes, options->bytes);
        moved = 1;
    }
    if (slots_emptied(mover) - mover->told >= (options->slots + 1) / 2) {
        mover->credit = mover->told = slots_emptied(mover); /* a message that still waits will carry this */
        send_message(mover, CREDIT, &mover->credit, NULL, 0);
    }
    if (!moved)
        sched_yield();
}

static int open_worker(struct mover *mover)
{
    static const char *const settings[][3] = {{"RNDV_THRESH", "UCX_RNDV_THRESH", "inf"},
                                              {"TX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE", "64k"},
                                              {"RX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE", "272k"}};
    const struct rondo_ucx_library *library = mover->library;
    ucp_config_t *config;
    ucp_params_t parameters = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
    ucs_status_t status = library->ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return fail(mover, "ucp_config_read", status);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (getenv(settings[i][1]) == NULL)
            library->ucp_config_modify(config, settings[i][0], settings[i][2]);
    status = library->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &mover->context);
    library->ucp_config_release(config);
    if (status != UCS_OK)
        return fail(mover, "ucp_init", status);
    ucp_worker_params_t how = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    status = library->ucp_worker_create(mover->context, &how, &mover->worker);
    if (status != UCS_OK)
        return fail(mover, "ucp_worker_create", status);
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                      .id = SLOT,
                                      .cb = slot_came,
                                      .arg = mover};
    status = library->ucp_worker_set_am_recv_handler(mover->worker, &handler);
    handler.id = CREDIT;
    handler.cb = credit_came;
    if (status == UCS_OK)
        status = library->ucp_worker_set_am_recv_handler(mover->worker, &handler);
    return status == UCS_OK ? 1 : fail(mover, "ucp_worker_set_am_recv_handler", status);
}

/* Two threads of the same number connect through the shared memory. */
static int connect_worker(struct mover *mover)
{
    struct address *own = &mover->shared->addresses[mover->side][mover->number];
    struct address *other = &mover->shared->addresses[!mover->side][mover->number];
    ucp_address_t *address;
    size_t bytes;
    ucs_status_t status = mover->library->ucp_worker_get_address(mover->worker, &address, &bytes);
    if (status != UCS_OK || bytes > ADDRESS_BYTES)
        return fail(mover, "ucp_worker_get_address", status);
    memcpy(own->data, address, bytes);
    mover->library->ucp_worker_release_address(mover->worker, address);
    __atomic_store_n(&own->bytes, (uint32_t) bytes, __ATOMIC_RELEASE);
    for (double until = now() + PATIENCE_S; __atomic_load_n(&other->bytes, __ATOMIC_ACQUIRE) == 0; usleep(1000))
        if (now() > until)
            return fail(mover, "the other process", UCS_ERR_TIMED_OUT);
    ucp_ep_params_t parameters = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                  .address = (const ucp_address_t *) other->data};
    status = mover->library->ucp_ep_create(mover->worker, &parameters, &mover->endpoint);
    return status == UCS_OK ? 1 : fail(mover, "ucp_ep_create", status);
}

/* A barrier of all threads of both processes, which go on moving data meanwhile. */
static void meet(struct mover *mover, uint32_t *count)
{
    uint32_t all = 2 * mover->options->workers;
    __atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL);
    for (double until = now() + PATIENCE_S; __atomic_load_n(count, __ATOMIC_ACQUIRE) < all && now() < until;)
        turn(mover, 0);
}

static void *move(void *argument)
{
    struct mover *mover = argument;
    size_t bytes = mover->options->bytes * mover->options->slots;
    mover->out = allocate_slots(mover, bytes);
    mover->in = allocate_slots(mover, bytes);
    int staged = !mover->options->staging || (open_copies(mover, &mover->filled) && open_copies(mover, &mover->drained));
    if (mover->out == NULL || mover->in == NULL || !staged || !open_worker(mover) || !connect_worker(mover)) {
        mover->failed = 1;
        return NULL;
    }
    memset(mover->out, 1, bytes);
    memset(mover->in, 1, bytes);
    meet(mover, &mover->shared->ready);
    double start = now() + 0.2, end = start + mover->options->seconds;
    while (now() < start && !mover->failed)
        turn(mover, 1);
    uint64_t before = mover->arrived;
    while (now() < end && !mover->failed)
        turn(mover, 1);
    mover->counted = mover->arrived - before;
    meet(mover, &mover->shared->finished);
    mover->over = 1;
    for (double until = now() + 1; mover->sending > 0 && now() < until;)
        turn(mover, 0);
    meet(mover, &mover->shared->gone);
    return NULL; /* the process ends next */
}

/* Runs one of the two processes and returns its exit status. */
static int run(const struct options *options, struct shared *shared, int side)
{
    const char *why;
    const struct rondo_ucx_library *library = rondo_ucx_library(&why);
    static struct mover movers[WORKERS_MAX];
    pthread_t threads[WORKERS_MAX];
    int failed = 0;
    uint64_t slots = 0;
    if (library == NULL) {
        fprintf(stderr, "UCX: %s\n", why);
        return 1;
    }
    for (unsigned i = 0; i < options->workers; i++) {
        movers[i] = (struct mover){.options = options, .library = library, .shared = shared, .side = side, .number = i};
        if (pthread_create(&threads[i], NULL, move, &movers[i]) != 0) {
            fprintf(stderr, "no thread\n");
            return 1;
        }
    }
    for (unsigned i = 0; i < options->workers; i++) {
        pthread_join(threads[i], NULL);
        failed |= movers[i].failed;
        slots += movers[i].counted;
    }
    if (!failed)
        printf("%d -> %d  %u workers  %zu bytes a slot  %.2f GB/s\n", !side, side, options->workers, options->bytes,
               (double) slots * (double) options->bytes / options->seconds / 1e9);
    fflush(stdout);
    _exit(failed);
}

static int read_options(int count, char **words, struct options *options)
{
    static const struct option names[] = {{"workers", 1, NULL, 'w'}, {"bytes", 1, NULL, 'b'}, {"slots", 1, NULL, 's'},
                                          {"seconds", 1, NULL, 't'}, {"leave", 0, NULL, 'l'}, {"staging", 0, NULL, 'g'},
                                          {NULL, 0, NULL, 0}};
    for (int name; (name = getopt_long(count, words, "", names, NULL)) != -1;)
        switch (name) {
        case 'w':
            options->workers = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 'b':
            options->bytes = strtoul(optarg, NULL, 10);
            break;
        case 's':
            options->slots = (unsigned) strtoul(optarg, NULL, 10);
            break;
        case 't':
            options->seconds = strtod(optarg, NULL);
            break;
        case 'l':
            options->leave = 1;
            break;
        case 'g':
            options->staging = 1;
            break;
        default:
            return 0;
        }
    return optind == count && options->workers >= 1 && options->workers <= WORKERS_MAX && options->slots >= 1 &&
           options->slots <= SLOTS_MAX && options->bytes >= 1 && options->bytes <= (1 << 20) && options->seconds > 0 &&
           options->seconds <= 60 && !(options->leave && options->staging);
}

int main(int count, char **words)
{
    struct options options = {.workers = 1, .slots = 4, .bytes = 240 << 10, .seconds = 2};
    if (!read_options(count, words, &options)) {
        fprintf(stderr,
                "usage: ucx_exchange [--workers 1..%d] [--bytes N] [--slots 1..%d] [--seconds S] [--leave | --staging]\n",
                WORKERS_MAX, SLOTS_MAX);
        return 2;
    }
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (child == 0)
        _exit(run(&options, shared, 1));
    pid_t second = fork();
    if (second == 0)
        _exit(run(&options, shared, 0));
    int failed = second < 0, status;
    for (int i = second < 0; i < 2; i++)
        failed |= wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return failed;
}
#else
int main(void)
{
    fprintf(stderr, "this build is without UCX\n");
    return 1;
}
#endif
