/* See test/injection/buffers.h. */
#include "test/injection/buffers.h"

#include "test/injection/inject.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

_Thread_local int32_t *in, *out, *more;
_Thread_local void *operation_stream;
static _Thread_local int32_t *image;
static _Thread_local int gpu;

/* What a rank of this process has been given. Ranks that are threads have different places. */
static struct rank_buffers {
    int32_t *in, *out, *more, *image;
    void *operations, *copies; /* streams */
} ranks_buffers[INJECT_RANKS];

/* Zeroed, and not the library's. */
static int32_t *map(void)
{
    inject_pause();
    void *memory = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    inject_resume();
    return memory != MAP_FAILED ? memory : NULL;
}

int32_t *buffers_image(void)
{
    return image;
}

#if RONDO_WITH_CUDA
static _Thread_local cudaStream_t copies; /* a stream of their own: no operation waits on it */

static const char *text_of(cudaError_t error)
{
    return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}

const char *buffers_no_gpu(void)
{
    int status = 0, count = 0;
    pid_t child = fork();
    if (child == 0) {
        cudaError_t error = cudaGetDeviceCount(&count);
        _exit(error == cudaSuccess && count > 0 ? 0 : error == cudaSuccess ? (int) cudaErrorNoDevice : (int) error & 0xff);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return "the process that looks for a GPU has crashed";
    return text_of((cudaError_t) WEXITSTATUS(status));
}

void buffers_open_gpu(void)
{
    inject_pause();
    if (cudaSetDevice(0) == cudaSuccess)
        (void) cudaFree(NULL);
    (void) cudaGetLastError();
    inject_resume();
}

static const char *make_on_gpu(struct rank_buffers *mine)
{
    int32_t **buffers[] = {&mine->in, &mine->out, &mine->more};
    void **streams[] = {&mine->operations, &mine->copies};
    cudaError_t error = cudaSetDevice(0);
    for (int i = 0; i < 2 && error == cudaSuccess; i++)
        if (*streams[i] == NULL)
            error = cudaStreamCreateWithFlags((cudaStream_t *) streams[i], cudaStreamNonBlocking);
    copies = mine->copies;
    for (int i = 0; i < 3 && error == cudaSuccess; i++) {
        if (*buffers[i] == NULL)
            error = cudaMalloc((void **) buffers[i], BUFFER_BYTES);
        if (error == cudaSuccess)
            error = cudaMemsetAsync(*buffers[i], 0, BUFFER_BYTES, copies);
    }
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(copies);
    return text_of(error);
}

static const char *copy_on_gpu(void *to, const void *from, size_t bytes)
{
    inject_pause();
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, copies);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(copies);
    inject_resume();
    return text_of(error);
}

const char *buffers_synchronize(void)
{
    inject_pause();
    cudaError_t error = cudaStreamSynchronize((cudaStream_t) operation_stream);
    inject_resume();
    return text_of(error);
}
#else
const char *buffers_no_gpu(void)
{
    return "built without CUDA";
}

void buffers_open_gpu(void)
{
}

static const char *make_on_gpu(struct rank_buffers *mine)
{
    (void) mine;
    return buffers_no_gpu();
}

static const char *copy_on_gpu(void *to, const void *from, size_t bytes)
{
    (void) to, (void) from, (void) bytes;
    return buffers_no_gpu();
}

const char *buffers_synchronize(void)
{
    return buffers_no_gpu();
}
#endif

static const char *make_on_host(struct rank_buffers *mine)
{
    int32_t **buffers[] = {&mine->in, &mine->out, &mine->more};
    for (int i = 0; i < 3; i++) {
        if (*buffers[i] == NULL)
            *buffers[i] = map();
        else
            memset(*buffers[i], 0, BUFFER_BYTES);
        if (*buffers[i] == NULL)
            return "no memory";
    }
    return NULL;
}

const char *buffers_make(int on_gpu)
{
    struct rank_buffers *mine = &ranks_buffers[inject_self()];
    gpu = on_gpu;
    if (mine->image == NULL && (mine->image = map()) == NULL)
        return "no memory";
    inject_pause();
    const char *error = gpu ? make_on_gpu(mine) : make_on_host(mine);
    inject_resume();
    in = mine->in;
    out = mine->out;
    more = mine->more;
    image = mine->image;
    operation_stream = mine->operations;
    return error;
}

const char *buffers_put(void *to, const void *from, size_t bytes)
{
    if (gpu)
        return copy_on_gpu(to, from, bytes);
    memmove(to, from, bytes);
    return NULL;
}

const char *buffers_get(void *to, const void *from, size_t bytes)
{
    return buffers_put(to, from, bytes);
}
