/*
 * The buffers of a rank's operations, in its device's memory: the host's, or a GPU's. Each rank, a process or a thread, has its
 * own. Made before rondo_init and left to the process's end, because cudaFree waits for all that runs on a GPU; a later run of
 * the same process is given the same, with zeros. Nothing here counts as a call of the library.
 */
#ifndef RONDO_TEST_INJECTION_BUFFERS_H
#define RONDO_TEST_INJECTION_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

enum { SMALL = 50, LARGE = 60000, BUFFER_BYTES = 3 * LARGE * (int) sizeof(int32_t) };

extern _Thread_local int32_t *in, *out, *more; /* of BUFFER_BYTES each */
extern _Thread_local void *operation_stream;   /* of a GPU; NULL on the host */

/* Why CUDA can use no GPU here; NULL if it can. CUDA is tried in a process of its own: this one forks. */
const char *buffers_no_gpu(void);
/* The GPU's context, before the ranks that are threads need it. */
void buffers_open_gpu(void);
/* Returns NULL, or why there are none. */
const char *buffers_make(int on_gpu);
/* Copy bytes between a buffer and memory of the host. NULL, or CUDA's error. */
const char *buffers_put(void *to, const void *from, size_t bytes);
const char *buffers_get(void *to, const void *from, size_t bytes);
/* Waits for the operations on the stream. NULL, or CUDA's error. */
const char *buffers_synchronize(void);
/* Memory of the host in which a buffer's content can be made or looked at. */
int32_t *buffers_image(void);

#endif
