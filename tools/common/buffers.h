/*
 * Memory of a runtime's device, as the verbs use it: host memory for the host device, plain cudaMalloc'ed memory of the
 * runtime's GPU for the CUDA device. Contents move by copies on a private stream, which never waits for the legacy one. A
 * struct buffers is used by one thread at a time. Failures are reported as the library reports its own: a code, and the message
 * in rondo_last_error().
 */
#ifndef RONDO_TOOLS_COMMON_BUFFERS_H
#define RONDO_TOOLS_COMMON_BUFFERS_H

#include "rondo.h"
#include <stdbool.h>
#include <stddef.h>

struct buffers {
    const struct buffers_kind *kind;
    int gpu;      /* -1: the host device */
    void *stream; /* of the copies */
    char *window; /* pinned, BUFFERS_WINDOW bytes */
};

/* How a device does it. Addresses may be of the device or of the host in copy. */
struct buffers_kind {
    rondo_result_t (*open)(struct buffers *buffers);
    void (*close)(struct buffers *buffers);
    rondo_result_t (*allocate)(struct buffers *buffers, size_t bytes, void **memory);
    void (*release)(int gpu, void *memory);
    rondo_result_t (*set)(struct buffers *buffers, void *memory, int byte, size_t bytes);
    rondo_result_t (*copy)(struct buffers *buffers, void *to, const void *from, size_t bytes);
    rondo_result_t (*make_stream)(struct buffers *buffers, void **stream);
    void (*free_stream)(struct buffers *buffers, void *stream);
    rondo_result_t (*wait)(struct buffers *buffers, void *stream, double seconds);
};
extern const struct buffers_kind buffers_on_cuda; /* in builds with CUDA */

/* Prepares memory of the runtime's device; no other function but buffers_close may be called before. */
rondo_result_t buffers_open(struct buffers *buffers, rondo_t runtime);
rondo_result_t buffers_open_on(struct buffers *buffers, int gpu); /* where there is no runtime */
void buffers_close(struct buffers *buffers);                      /* zeroed ones too */
bool buffers_are_on_gpu(const struct buffers *buffers);

/* Aligned to 256 bytes at least. buffers_release needs no struct: its owner may be gone. gpu: that of the struct. */
rondo_result_t buffers_allocate(struct buffers *buffers, size_t bytes, void **memory);
void buffers_release(int gpu, void *memory); /* NULL does nothing */

/* Each returns when it is done. put: from the host; get: to the host; copy: both are device memory. */
rondo_result_t buffers_set(struct buffers *buffers, void *memory, int byte, size_t bytes);
rondo_result_t buffers_put(struct buffers *buffers, void *memory, const void *from, size_t bytes);
rondo_result_t buffers_get(struct buffers *buffers, void *to, const void *memory, size_t bytes);
rondo_result_t buffers_copy(struct buffers *buffers, void *to, const void *from, size_t bytes);

/* A part of device memory of at most BUFFERS_WINDOW bytes as the host sees it: the memory itself on the host device, else the
 * one window, which the next call uses again. view shows what is there; draft gives room for what buffers_commit then writes
 * there. */
enum { BUFFERS_WINDOW = 4 << 20 };
rondo_result_t buffers_view(struct buffers *buffers, const void *memory, size_t bytes, const char **view);
char *buffers_draft(struct buffers *buffers, void *memory);
rondo_result_t buffers_commit(struct buffers *buffers, void *memory, size_t bytes);

/* A stream for the work of a verb; NULL, and nothing to wait for, on the host device. wait: until what is enqueued there is
 * done, or RONDO_ERR_TIMEOUT after so many seconds (0: never). */
rondo_result_t buffers_make_stream(struct buffers *buffers, void **stream);
void buffers_free_stream(struct buffers *buffers, void *stream);
rondo_result_t buffers_wait(struct buffers *buffers, void *stream, double seconds);

#endif
