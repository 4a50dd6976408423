/* See ranks.h. */
#include "test/nccl/ranks.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* Exists in the drop-in only (compat/nccl/rondo_nccl.h). */
extern void rondo_nccl_synchronize(void *stream) __attribute__((weak));

int checks, failures;

#define CUDA(call)                                                                                                             \
    do {                                                                                                                       \
        cudaError_t error_ = (call);                                                                                           \
        if (error_ != cudaSuccess) {                                                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_));                         \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)

int on_host(void)
{
    const char *device = getenv("RONDO_DEVICE");
    return device != NULL && strcmp(device, "host") == 0;
}

int count_devices(void)
{
    int count = 0;
    if (on_host())
        return 8;
    CUDA(cudaGetDeviceCount(&count));
    return count;
}

void use_device(int device)
{
    if (!on_host())
        CUDA(cudaSetDevice(device % count_devices()));
}

void *device_allocate(size_t bytes)
{
    void *memory = NULL;
    if (bytes == 0)
        bytes = 1;
    if (on_host())
        memory = malloc(bytes);
    else
        CUDA(cudaMalloc(&memory, bytes));
    if (memory == NULL) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

void device_free(void *memory)
{
    if (on_host())
        free(memory);
    else
        CUDA(cudaFree(memory));
}

struct ended {
    struct ended *next;
    void *memory;
    int device;
};
static struct ended *ended; /* what run_threads frees */

void device_free_at_end(void *memory)
{
    struct ended *entry = calloc(1, sizeof(*entry));
    if (!on_host())
        CUDA(cudaGetDevice(&entry->device));
    entry->memory = memory;
    entry->next = __atomic_load_n(&ended, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&ended, &entry->next, entry, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* By the only thread that is left. */
static void free_ended(void)
{
    while (ended != NULL) {
        struct ended *entry = ended;
        ended = entry->next;
        use_device(entry->device);
        device_free(entry->memory);
        free(entry);
    }
}

void device_put(void *memory, const void *from, size_t bytes)
{
    if (on_host()) {
        memcpy(memory, from, bytes);
        return;
    }
    CUDA(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(NULL)); /* the last part of a copy from pageable memory may still be in flight, and the test's
                                          streams do not wait for it */
}

void device_get(void *to, const void *memory, size_t bytes)
{
    if (on_host())
        memcpy(to, memory, bytes);
    else
        CUDA(cudaMemcpy(to, memory, bytes, cudaMemcpyDeviceToHost));
}

cudaEvent_t event_create(void)
{
    cudaEvent_t event;
    CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

void event_wait_and_destroy(cudaEvent_t event)
{
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaEventDestroy(event));
}

cudaStream_t stream_create(void)
{
    static int next;
    cudaStream_t stream;
    if (on_host())
        return (cudaStream_t) (intptr_t) (16 * __atomic_add_fetch(&next, 1, __ATOMIC_RELAXED));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

void stream_destroy(cudaStream_t stream)
{
    if (!on_host())
        CUDA(cudaStreamDestroy(stream));
}

void stream_wait(cudaStream_t stream)
{
    if (on_host())
        rondo_nccl_synchronize((void *) stream);
    else
        CUDA(cudaStreamSynchronize(stream));
}

struct waiting {
    cudaStream_t stream;
    int done;
};

static void *wait_thread(void *argument)
{
    struct waiting *waiting = argument;
    rondo_nccl_synchronize((void *) waiting->stream);
    __atomic_store_n(&waiting->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

int stream_wait_for(cudaStream_t stream, double seconds)
{
    static const struct timespec pause = {0, 1000000};
    double end = now() + seconds;
    if (!on_host()) {
        cudaError_t error;
        while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady && now() < end)
            nanosleep(&pause, NULL);
        return error != cudaErrorNotReady;
    }
    struct waiting *waiting = calloc(1, sizeof(*waiting)); /* leaked if the stream hangs */
    pthread_t thread;
    waiting->stream = stream;
    pthread_create(&thread, NULL, wait_thread, waiting);
    pthread_detach(thread);
    while (!__atomic_load_n(&waiting->done, __ATOMIC_ACQUIRE))
        if (now() > end)
            return 0;
        else
            nanosleep(&pause, NULL);
    free(waiting);
    return 1;
}

double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

static int number(const char *const *names, int fallback)
{
    for (; *names != NULL; names++)
        if (getenv(*names) != NULL)
            return atoi(getenv(*names));
    return fallback;
}

int process_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", NULL};
    return number(names, 0);
}

int process_count(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    return number(names, 1);
}

void share_id(ncclUniqueId *id, const char *file)
{
    char temporary[1024];
    if (process_count() == 1)
        return;
    if (file == NULL) {
        fprintf(stderr, "processes need --id FILE\n");
        exit(2);
    }
    if (process_rank() == 0) {
        snprintf(temporary, sizeof(temporary), "%s.new", file);
        FILE *out = fopen(temporary, "w");
        if (out == NULL || fwrite(id, sizeof(*id), 1, out) != 1 || fclose(out) != 0 || rename(temporary, file) != 0) {
            perror(file);
            exit(1);
        }
        return;
    }
    FILE *in;
    while ((in = fopen(file, "r")) == NULL)
        usleep(10000);
    if (fread(id, sizeof(*id), 1, in) != 1) {
        perror(file);
        exit(1);
    }
    fclose(in);
}

#define REPORT_SECONDS 3 /* time for all ranks to report */

/* The watchdog's signal. The first one makes the drop-in's library log what all ranks wait for; the second one ends the
 * process. */
static void time_is_up(int signal)
{
    static const char text[] = "watchdog: the test hangs\n";
    static volatile sig_atomic_t told;
    (void) signal;
    if (told || write(2, text, sizeof(text) - 1) < 0)
        _exit(124);
    told = 1;
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED); /* the hang is a failure even if the program continues */
    kill(getpid(), SIGURG);                             /* ignored by default */
    alarm(REPORT_SECONDS);
}

const char *parse_scenario(int argc, char **argv, int *ranks)
{
    const char *only = NULL;
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--ranks") == 0)
            *ranks = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--scenario") == 0)
            only = argv[i + 1];
        else
            argc = 2;
    if (argc % 2 == 0 || *ranks < 1) {
        fprintf(stderr, "options: --ranks N --scenario NAME\n");
        exit(2);
    }
    return only;
}

void watch(void)
{
    const char *seconds = getenv("RANKS_WATCHDOG");
    setenv("RONDO_REPORT_SIGNAL", "URG", 0);
    signal(SIGALRM, time_is_up);
    alarm(seconds != NULL ? (unsigned) atoi(seconds) : 60);
}

struct member {
    pthread_t thread;
    void (*f)(int rank, void *argument);
    int rank;
    void *argument;
};

static void *member_main(void *argument)
{
    struct member *member = argument;
    member->f(member->rank, member->argument);
    return NULL;
}

void run_threads(int count, void (*f)(int rank, void *argument), void *argument)
{
    struct member *members = calloc((size_t) count, sizeof(*members));
    for (int rank = 0; rank < count; rank++) {
        members[rank] = (struct member){.f = f, .rank = rank, .argument = argument};
        if (pthread_create(&members[rank].thread, NULL, member_main, &members[rank]) != 0) {
            perror("pthread_create");
            exit(1);
        }
    }
    for (int rank = 0; rank < count; rank++)
        pthread_join(members[rank].thread, NULL);
    free(members);
    free_ended();
}

ncclComm_t join(const ncclUniqueId *id, int rank, int size)
{
    ncclComm_t comm;
    use_device(rank);
    NCCL(ncclCommInitRank(&comm, size, *id, rank));
    return comm;
}

int finish(const char *program)
{
    printf("%s: %d checks, %d failures\n", program, checks, failures);
    return failures > 0 || checks == 0;
}
