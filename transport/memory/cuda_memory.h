/*
 * GPU memory that ranks share, and what ranks know of each other's GPUs. In one process ranks use the owner's address, with
 * peer access between their GPUs; between processes of a host cudaMalloc memory passes as CUDA IPC handles, and memory of the
 * VMM API (cuMemCreate, with POSIX descriptors allowed) as descriptors (transport/memory/segment.h). Memory of cudaMallocAsync
 * stays in its process, managed memory and host memory with its rank.
 *
 * What a rank on a GPU may pass to a collective: memory of that GPU, managed memory, and host memory that is pinned
 * (cudaHostAlloc, cudaHostRegister) and has the same address on the GPU, as is usual on 64-bit systems. The last two are read
 * and written over the bus, and never directly by other ranks. Pageable host memory is refused, even where the GPU could reach
 * it by faults.
 *
 * Nothing here changes the calling thread's current device or its last CUDA error. Any thread may call any function unless its
 * comment says otherwise. A build without CUDA has the types, and functions that refuse.
 *
 * transport/memory/cuda_gpu.c has the identities, cuda_memory.c allocates, cuda_export.c and cuda_import.c share, and
 * cuda_pointer.c checks arguments.
 */
#ifndef RONDO_TRANSPORT_MEMORY_CUDA_MEMORY_H
#define RONDO_TRANSPORT_MEMORY_CUDA_MEMORY_H

#include "rondo.h"

#include <stdint.h>
#include <string.h>

struct rondo_segments;

/* ---- GPUs ---- */

#define RONDO_GPUS_NAMED                   16 /* that an identity can tell of */
#define RONDO_GPU_BUS_ID_BYTES             32
#define RONDO_GPU_CAPABILITY(major, minor) (16 * (major) + (minor))
#define RONDO_GPU_TMA                      RONDO_GPU_CAPABILITY(9, 0) /* from which on there are bulk copies */

/* Told to all ranks at init. Plain data without padding; all zero for a rank on the host device. */
struct rondo_gpu_identity {
    uint32_t present;
    int32_t ordinal; /* among the GPUs that the rank's process sees: has a meaning in that process only */
    unsigned char uuid[16];
    uint16_t reached;
    uint16_t capability;                /* compute capability, as RONDO_GPU_CAPABILITY */
    uint32_t linked;                    /* bit i: by NVLink */
    uint64_t reaches[RONDO_GPUS_NAMED]; /* digests of the UUIDs of other GPUs whose memory this one can use */
};

static inline int rondo_gpu_is_same(const struct rondo_gpu_identity *one, const struct rondo_gpu_identity *other)
{
    return one->present && other->present && memcmp(one->uuid, other->uuid, sizeof(one->uuid)) == 0;
}

/* A handle is plain data, the same for all ranks that import it. */
struct rondo_cuda_handle {
    unsigned char bytes[160];
};

struct rondo_cuda_export;
struct rondo_cuda_mapping;

#if RONDO_WITH_CUDA

/* Leaves *identity all zero, with a log line, if there is no such GPU. */
void rondo_gpu_identify(int device_index, struct rondo_gpu_identity *identity);
/* Whether my GPU can load from and store to memory of theirs: it is the same, or has peer access. Of GPUs that
 * CUDA_VISIBLE_DEVICES hides from a process, NVML tells; where that is missing, too, the answer is no. */
int rondo_gpu_reaches(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs);
/* Whether it is another GPU, whose memory it reaches by NVLink. */
int rondo_gpu_is_linked(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs);
/* "0000:1b:00.0"; 0 if unknown. */
int rondo_gpu_bus_id(int device_index, char bus_id[RONDO_GPU_BUS_ID_BYTES]);

/* ---- memory ---- */

/* At least 256-byte aligned; what is in it is not defined. RONDO_ERR_MEMORY. */
rondo_result_t rondo_cuda_allocate(int device_index, size_t bytes, char **memory);
/* Waits for kernels that run on the device. */
void rondo_cuda_free(int device_index, void *memory);
/* Returns when the zeros are there. On a stream of its own, which waits for no other. */
rondo_result_t rondo_cuda_zero(int device_index, void *memory, size_t bytes);

/* ---- sharing ---- */

/* Makes [base, +bytes) of the GPU's memory known to others, until unexport; the memory itself stays the caller's. to_processes:
 * other processes of the host may import it, too; without that only this one. RONDO_ERR_BUFFER with the reason if memory of
 * that kind cannot be. */
rondo_result_t rondo_cuda_export(struct rondo_segments *segments, int device_index, const void *base, size_t bytes,
                                 int to_processes, struct rondo_cuda_export **exported, struct rondo_cuda_handle *handle);
/* Undoes the export: from here on it cannot be imported. Imports that there are stay valid. NULL: nothing. */
void rondo_cuda_unexport(struct rondo_cuda_export *exported);
/* Whether that GPU, of a rank in this process, may use the exported memory at its own address. */
int rondo_cuda_reachable(const struct rondo_cuda_export *exported, const struct rondo_gpu_identity *reader);
/* Whether the memory is the same allocation as when it was exported; RONDO_ERR_BUFFER with the address if it was freed, or
 * freed and allocated again; RONDO_ERR_DEVICE if the driver does not say. One driver call, cheap enough for every start. NULL:
 * RONDO_SUCCESS. */
rondo_result_t rondo_cuda_still(const struct rondo_cuda_export *exported);

/* Makes exported memory usable by this GPU at *pointer. Imports of one allocation by a process on one device share one mapping.
 * *mapping may become NULL, where none is needed. Not on a control thread. RONDO_ERR_TRANSPORT if the exporter is gone or has
 * withdrawn it. */
rondo_result_t rondo_cuda_import(int device_index, const struct rondo_cuda_handle *handle, struct rondo_cuda_mapping **mapping,
                                 char **pointer);
/* The exported bytes, as the handle says. */
uint64_t rondo_cuda_handle_bytes(const struct rondo_cuda_handle *handle);
/* Undoes one import. The last one unmaps, which may wait for kernels that run. NULL: nothing. */
void rondo_cuda_release(struct rondo_cuda_mapping *mapping);
/* Mappings of other processes' memory that this process has: for tests. */
int rondo_cuda_mappings(void);

/* ---- arguments ---- */

/* Whether that GPU (-1: the host device) can use [buf, +bytes), an argument of the named function: RONDO_ERR_BUFFER with the
 * pointer, where it lives and what was wanted; RONDO_ERR_DEVICE if the driver does not say.
 * One driver call, a small one for an allocation that the thread has passed lately. On the host device GPU memory is refused,
 * once the process has loaded the CUDA driver; a thread looks for that at every 16th call. bytes 0: anything goes. */
rondo_result_t rondo_buffer_check(int gpu, const void *buf, size_t bytes, const char *function);

/* Whether the buffer, which has been checked, is memory that all GPUs of the process reach once they reach its GPU: what
 * cudaMalloc gives. */
int rondo_buffer_is_plain(const void *buf);

#else

static inline void rondo_gpu_identify(int device_index, struct rondo_gpu_identity *identity)
{
    (void) device_index;
    memset(identity, 0, sizeof(*identity));
}

static inline int rondo_gpu_reaches(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs)
{
    (void) mine;
    (void) theirs;
    return 0;
}

static inline int rondo_gpu_is_linked(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs)
{
    (void) mine;
    (void) theirs;
    return 0;
}
static inline int rondo_gpu_bus_id(int device_index, char bus_id[RONDO_GPU_BUS_ID_BYTES])
{
    (void) device_index;
    bus_id[0] = '\0';
    return 0;
}

static inline int rondo_buffer_is_plain(const void *buf)
{
    (void) buf;
    return 0;
}

static inline rondo_result_t rondo_buffer_check(int gpu, const void *buf, size_t bytes, const char *function)
{
    (void) gpu;
    (void) buf;
    (void) bytes;
    (void) function;
    return RONDO_SUCCESS;
}

/* No rank is on a GPU in such a build, so the rest is never called. */
static inline rondo_result_t rondo_cuda_allocate(int device_index, size_t bytes, char **memory)
{
    (void) device_index;
    (void) bytes;
    *memory = NULL;
    return RONDO_ERR_UNSUPPORTED;
}

static inline void rondo_cuda_free(int device_index, void *memory)
{
    (void) device_index;
    (void) memory;
}

static inline rondo_result_t rondo_cuda_zero(int device_index, void *memory, size_t bytes)
{
    (void) device_index;
    (void) memory;
    (void) bytes;
    return RONDO_ERR_UNSUPPORTED;
}

static inline rondo_result_t rondo_cuda_export(struct rondo_segments *segments, int device_index, const void *base,
                                               size_t bytes, int to_processes, struct rondo_cuda_export **exported,
                                               struct rondo_cuda_handle *handle)
{
    (void) segments;
    (void) device_index;
    (void) base;
    (void) bytes;
    (void) to_processes;
    (void) handle;
    *exported = NULL;
    return RONDO_ERR_UNSUPPORTED;
}

static inline void rondo_cuda_unexport(struct rondo_cuda_export *exported)
{
    (void) exported;
}

static inline int rondo_cuda_reachable(const struct rondo_cuda_export *exported, const struct rondo_gpu_identity *reader)
{
    (void) exported;
    (void) reader;
    return 0;
}

static inline rondo_result_t rondo_cuda_still(const struct rondo_cuda_export *exported)
{
    (void) exported;
    return RONDO_SUCCESS;
}

static inline rondo_result_t rondo_cuda_import(int device_index, const struct rondo_cuda_handle *handle,
                                               struct rondo_cuda_mapping **mapping, char **pointer)
{
    (void) device_index;
    (void) handle;
    *mapping = NULL;
    *pointer = NULL;
    return RONDO_ERR_UNSUPPORTED;
}

static inline void rondo_cuda_release(struct rondo_cuda_mapping *mapping)
{
    (void) mapping;
}

#endif
#endif
