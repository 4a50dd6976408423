/*
 * Memory of a rank's device: malloc on the host device, cudaMalloc on the rank's GPU on the other. cudaFree waits until the
 * daemon has left, so most freed blocks are retained and given out again. Now and then a block is really freed, so that new
 * memory also appears at addresses that a library may have cached.
 */
#include "test/multirank/device_memory.h"
#include "test/multirank/ranks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if RONDO_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

rondo_device_t ranks_device(void)
{
    const char *text = getenv("RONDO_DEVICE");
    return RONDO_WITH_CUDA && text != NULL && strcmp(text, "cuda") == 0 ? RONDO_DEVICE_CUDA : RONDO_DEVICE_HOST;
}

#if RONDO_WITH_CUDA
enum { RANKS_MAX = 1024, CLASSES = 48, RELEASES_A_FREE = 8 };

/* The header of a block, in host memory: its size and its GPU. */
struct block {
    struct block *next;
    void *memory;
    int gpu, class;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int gpus[RANKS_MAX];             /* the GPU of each rank of this process */
static struct block *retained[CLASSES]; /* free blocks of all GPUs */
static struct block *given;             /* in use */
static unsigned long releases;
static _Thread_local cudaStream_t streams[64]; /* on each GPU: made at first use, destroyed with the process */

static void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    printf("FAILED rank %d: %s: %s\n", ranks_current, what, cudaGetErrorString(error));
    exit(1);
}

/* Makes the rank's GPU the current device of the calling thread. */
static int select_gpu(void)
{
    int gpu = ranks_current >= 0 && ranks_current < RANKS_MAX ? gpus[ranks_current] : 0;
    must(cudaSetDevice(gpu), "cudaSetDevice");
    return gpu;
}

/* Removes the first block of this GPU, or the block with this memory, from the list and returns it. */
static struct block *take(struct block **list, int gpu, const void *memory)
{
    for (struct block **link = list; *link != NULL; link = &(*link)->next) {
        struct block *block = *link;
        if (memory != NULL ? block->memory != memory : block->gpu != gpu)
            continue;
        *link = block->next;
        return block;
    }
    return NULL;
}

static void *allocate_on_gpu(size_t bytes)
{
    int gpu = select_gpu(), class = 9;
    while ((size_t) 1 << class < bytes)
        class ++;
    pthread_mutex_lock(&lock);
    struct block *block = take(&retained[class], gpu, NULL);
    pthread_mutex_unlock(&lock);
    if (block == NULL) {
        block = calloc(1, sizeof(*block));
        if (block == NULL)
            must(cudaErrorMemoryAllocation, "calloc");
        block->gpu = gpu;
        block->class = class;
        must(cudaMalloc(&block->memory, (size_t) 1 << class), "cudaMalloc");
    }
    pthread_mutex_lock(&lock);
    block->next = given;
    given = block;
    pthread_mutex_unlock(&lock);
    return block->memory;
}

static void release_on_gpu(void *memory)
{
    select_gpu();
    pthread_mutex_lock(&lock);
    struct block *block = take(&given, 0, memory);
    int keep = block != NULL && ++releases % RELEASES_A_FREE != 0;
    if (keep) {
        block->next = retained[block->class];
        retained[block->class] = block;
    }
    pthread_mutex_unlock(&lock);
    if (block == NULL)
        must(cudaErrorInvalidValue, "memory that was not allocated is released");
    if (keep)
        return;
    must(cudaFree(block->memory), "cudaFree");
    free(block);
}

/* Copies on a stream of its own: a library's streams might wait for the legacy stream. */
static void copy_on_gpu(void *to, const void *from, size_t bytes)
{
    int gpu = select_gpu();
    cudaStream_t *stream = &streams[gpu % 64];
    if (*stream == NULL)
        must(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, *stream), "cudaMemcpyAsync");
    must(cudaStreamSynchronize(*stream), "cudaStreamSynchronize");
}

int device_memory_holds(const void *memory, size_t bytes, int value)
{
    unsigned char *copy = malloc(bytes);
    int right = copy != NULL && cudaMemcpy(copy, memory, bytes, cudaMemcpyDefault) == cudaSuccess;
    for (size_t i = 0; right && i < bytes; i++)
        right = copy[i] == (unsigned char) value;
    free(copy);
    return right;
}
#else
static void *allocate_on_gpu(size_t bytes)
{
    (void) bytes;
    return NULL;
}

static void release_on_gpu(void *memory)
{
    (void) memory;
}

static void copy_on_gpu(void *to, const void *from, size_t bytes)
{
    (void) to, (void) from, (void) bytes;
}
#endif

void ranks_use_device(rondo_t runtime)
{
    int gpu = -1;
    MUST(rondo_device_index(runtime, &gpu));
#if RONDO_WITH_CUDA
    if (ranks_current >= 0 && ranks_current < RANKS_MAX)
        gpus[ranks_current] = gpu > 0 ? gpu : 0;
#endif
}

void *ranks_allocate(size_t bytes)
{
    void *memory = ranks_device() == RONDO_DEVICE_CUDA ? allocate_on_gpu(bytes) : malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        printf("FAILED: out of memory in the test\n");
        exit(1);
    }
    return memory;
}

void ranks_release(void *memory)
{
    if (memory == NULL)
        return;
    if (ranks_device() == RONDO_DEVICE_CUDA)
        release_on_gpu(memory);
    else
        free(memory);
}

void ranks_put(void *memory, const void *from, size_t bytes)
{
    if (ranks_device() == RONDO_DEVICE_CUDA)
        copy_on_gpu(memory, from, bytes);
    else
        memcpy(memory, from, bytes);
}

void ranks_get(void *to, const void *memory, size_t bytes)
{
    if (ranks_device() == RONDO_DEVICE_CUDA)
        copy_on_gpu(to, memory, bytes);
    else
        memcpy(to, memory, bytes);
}

rondo_result_t ranks_sum(rondo_comm_t comm, int64_t mine, int64_t *sum)
{
    int64_t *memory = ranks_allocate(2 * sizeof(*memory));
    ranks_put(memory, &mine, sizeof(mine));
    rondo_result_t result = rondo_allreduce(memory, memory + 1, 1, RONDO_INT64, RONDO_SUM, comm);
    ranks_get(sum, memory + 1, sizeof(*sum));
    ranks_release(memory);
    return result;
}

rondo_result_t ranks_tell(rondo_comm_t comm, int64_t *number)
{
    int64_t *memory = ranks_allocate(sizeof(*memory));
    ranks_put(memory, number, sizeof(*number));
    rondo_result_t result = rondo_bcast(memory, 1, RONDO_INT64, 0, comm);
    ranks_get(number, memory, sizeof(*number));
    ranks_release(memory);
    return result;
}
