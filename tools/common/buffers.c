/* Memory of the host device, and what is the same for both. See tools/common/buffers.h. */
#include "tools/common/buffers.h"
#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

static rondo_result_t open_host(struct buffers *b)
{
    (void) b;
    return RONDO_SUCCESS;
}

static void close_host(struct buffers *b)
{
    (void) b;
}

static rondo_result_t allocate_host(struct buffers *b, size_t bytes, void **memory)
{
    (void) b;
    *memory = aligned_alloc(PAGE, (bytes + PAGE) / PAGE * PAGE);
    return *memory != NULL ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_MEMORY, "no memory for a buffer of %zu bytes", bytes);
}

static void release_host(int gpu, void *memory)
{
    (void) gpu;
    free(memory);
}

static rondo_result_t set_host(struct buffers *b, void *memory, int byte, size_t bytes)
{
    (void) b;
    memset(memory, byte, bytes);
    return RONDO_SUCCESS;
}

static rondo_result_t copy_host(struct buffers *b, void *to, const void *from, size_t bytes)
{
    (void) b;
    memcpy(to, from, bytes);
    return RONDO_SUCCESS;
}

static rondo_result_t make_no_stream(struct buffers *b, void **stream)
{
    (void) b;
    *stream = NULL;
    return RONDO_SUCCESS;
}

static void free_no_stream(struct buffers *b, void *stream)
{
    (void) b;
    (void) stream;
}

static rondo_result_t wait_for_nothing(struct buffers *b, void *stream, double seconds)
{
    (void) b;
    (void) stream;
    (void) seconds;
    return RONDO_SUCCESS;
}

static const struct buffers_kind on_host = {.open = open_host,
                                            .close = close_host,
                                            .allocate = allocate_host,
                                            .release = release_host,
                                            .set = set_host,
                                            .copy = copy_host,
                                            .make_stream = make_no_stream,
                                            .free_stream = free_no_stream,
                                            .wait = wait_for_nothing};

static const struct buffers_kind *kind_of(int gpu)
{
#if RONDO_WITH_CUDA
    if (gpu >= 0)
        return &buffers_on_cuda;
#endif
    (void) gpu;
    return &on_host;
}

rondo_result_t buffers_open_on(struct buffers *b, int gpu)
{
    *b = (struct buffers){.gpu = gpu, .kind = kind_of(gpu)};
    return b->kind->open(b);
}

rondo_result_t buffers_open(struct buffers *b, rondo_t runtime)
{
    int gpu;
    *b = (struct buffers){.gpu = -1};
    rondo_result_t code = rondo_device_index(runtime, &gpu);
    return code == RONDO_SUCCESS ? buffers_open_on(b, gpu) : code;
}

void buffers_close(struct buffers *b)
{
    if (b->kind != NULL)
        b->kind->close(b);
    *b = (struct buffers){.gpu = -1};
}

bool buffers_are_on_gpu(const struct buffers *b)
{
    return b->gpu >= 0;
}

rondo_result_t buffers_allocate(struct buffers *b, size_t bytes, void **memory)
{
    return b->kind->allocate(b, bytes, memory);
}

void buffers_release(int gpu, void *memory)
{
    if (memory != NULL)
        kind_of(gpu)->release(gpu, memory);
}

rondo_result_t buffers_set(struct buffers *b, void *memory, int byte, size_t bytes)
{
    return bytes > 0 ? b->kind->set(b, memory, byte, bytes) : RONDO_SUCCESS;
}

/* Large copies through the window run faster than from memory that is not pinned. */
rondo_result_t buffers_put(struct buffers *b, void *memory, const void *from, size_t bytes)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (size_t done = 0; code == RONDO_SUCCESS && done < bytes;) {
        size_t some = bytes - done < BUFFERS_WINDOW ? bytes - done : BUFFERS_WINDOW;
        memcpy(buffers_draft(b, (char *) memory + done), (const char *) from + done, some);
        code = buffers_commit(b, (char *) memory + done, some);
        done += some;
    }
    return code;
}

rondo_result_t buffers_get(struct buffers *b, void *to, const void *memory, size_t bytes)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (size_t done = 0; code == RONDO_SUCCESS && done < bytes;) {
        size_t some = bytes - done < BUFFERS_WINDOW ? bytes - done : BUFFERS_WINDOW;
        const char *view;
        if ((code = buffers_view(b, (const char *) memory + done, some, &view)) == RONDO_SUCCESS)
            memcpy((char *) to + done, view, some);
        done += some;
    }
    return code;
}

rondo_result_t buffers_copy(struct buffers *b, void *to, const void *from, size_t bytes)
{
    return bytes > 0 ? b->kind->copy(b, to, from, bytes) : RONDO_SUCCESS;
}

rondo_result_t buffers_view(struct buffers *b, const void *memory, size_t bytes, const char **view)
{
    *view = b->window != NULL ? b->window : memory;
    return b->window != NULL && bytes > 0 ? b->kind->copy(b, b->window, memory, bytes) : RONDO_SUCCESS;
}

char *buffers_draft(struct buffers *b, void *memory)
{
    return b->window != NULL ? b->window : memory;
}

rondo_result_t buffers_commit(struct buffers *b, void *memory, size_t bytes)
{
    return b->window != NULL && bytes > 0 ? b->kind->copy(b, memory, b->window, bytes) : RONDO_SUCCESS;
}

rondo_result_t buffers_make_stream(struct buffers *b, void **stream)
{
    return b->kind->make_stream(b, stream);
}

void buffers_free_stream(struct buffers *b, void *stream)
{
    if (stream != NULL)
        b->kind->free_stream(b, stream);
}

rondo_result_t buffers_wait(struct buffers *b, void *stream, double seconds)
{
    return b->kind->wait(b, stream, seconds);
}
