/* The calls beside the collectives and the time each took (tools/stress/interfere.h). Relies on the CUDA runtime. */
#include "tools/stress/interfere.h"
#include "tools/common/ranks.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { GPUS_MAX = 64, BYTES = 1 << 20, PAGE = 4096, ROUNDS_A_LAUNCH = 4, PAUSE_NANOSECONDS = 1000000 };

/* A kernel is loaded once a GPU, whichever thread is the first to launch it. */
static atomic_int launched[GPUS_MAX];

struct interfere {
    pthread_t thread;
    atomic_bool stop;
    int gpu;
    struct interfere_record record;
    double began;
};

static void begin(struct interfere *f)
{
    f->began = ranks_clock();
}

static void end(struct interfere *f, enum interfere_call call, cudaError_t error)
{
    double seconds = ranks_clock() - f->began;
    f->record.counts[call]++;
    f->record.late[call] += f->record.limit > 0 && seconds > f->record.limit;
    if (seconds > f->record.longest[call])
        f->record.longest[call] = seconds;
    if (error != cudaSuccess && f->record.failure[0] == '\0')
        snprintf(f->record.failure, sizeof(f->record.failure), "%s on GPU %d: %s", interfere_names[call], f->gpu,
                 cudaGetErrorString(error));
}

static void device_memory(struct interfere *f)
{
    void *memory = NULL;
    begin(f);
    end(f, INTERFERE_MALLOC, cudaMalloc(&memory, BYTES));
    begin(f);
    end(f, INTERFERE_FREE, cudaFree(memory));
}

static void pinned_memory(struct interfere *f)
{
    void *memory = NULL;
    begin(f);
    end(f, INTERFERE_HOST_ALLOC, cudaHostAlloc(&memory, BYTES, cudaHostAllocDefault));
    begin(f);
    end(f, INTERFERE_FREE_HOST, cudaFreeHost(memory));
}

static void registered_memory(struct interfere *f, void *memory)
{
    begin(f);
    end(f, INTERFERE_HOST_REGISTER, cudaHostRegister(memory, BYTES, cudaHostRegisterDefault));
    begin(f);
    end(f, INTERFERE_HOST_UNREGISTER, cudaHostUnregister(memory));
}

static void first_launch(struct interfere *f, cudaStream_t stream)
{
    int number = atomic_fetch_add(&launched[f->gpu % GPUS_MAX], 1);
    if (number >= INTERFERE_KERNELS)
        return;
    begin(f);
    end(f, INTERFERE_FIRST_LAUNCH, (cudaError_t) interfere_launch(number, stream));
    begin(f);
    end(f, INTERFERE_KERNEL_END, cudaStreamSynchronize(stream));
}

static void *interfere(void *argument)
{
    struct interfere *f = argument;
    void *memory = aligned_alloc(PAGE, BYTES);
    cudaStream_t stream = NULL;
    cudaSetDevice(f->gpu);
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (memory == NULL || error != cudaSuccess) {
        snprintf(f->record.failure, sizeof(f->record.failure), "no memory, or no stream: %s", cudaGetErrorString(error));
        free(memory);
        return NULL;
    }
    for (int round = 0; !atomic_load(&f->stop) && f->record.failure[0] == '\0'; round++) {
        device_memory(f);
        pinned_memory(f);
        registered_memory(f, memory);
        if (round % ROUNDS_A_LAUNCH == 0)
            first_launch(f, stream);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
    }
    cudaStreamDestroy(stream);
    free(memory);
    return NULL;
}

struct interfere *interfere_start(int gpu, double limit)
{
    struct interfere *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->gpu = gpu;
    f->record.limit = limit;
    if (pthread_create(&f->thread, NULL, interfere, f) != 0) {
        free(f);
        return NULL;
    }
    return f;
}

void interfere_stop(struct interfere *f, struct interfere_record *record)
{
    atomic_store(&f->stop, true);
    pthread_join(f->thread, NULL);
    *record = f->record;
    free(f);
}
