/*
 * What the tests of the drop-in for NCCL share: memory and streams of the device (RONDO_DEVICE=host: the host device, without
 * CUDA), ranks as threads, several GPUs for each thread, processes under mpirun, a watchdog. They use nccl.h alone, so that
 * they also run on NVIDIA's library (LD_LIBRARY_PATH).
 */
#ifndef RONDO_TEST_NCCL_RANKS_H
#define RONDO_TEST_NCCL_RANKS_H

#include <nccl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

int on_host(void);
int count_devices(void);
void use_device(int device);
void *device_allocate(size_t bytes);
void device_free(void *memory);
/* Frees it when run_threads has waited for all of its threads. Where ranks share a GPU, freeing waits for the kernels of other
 * ranks and keeps these from launching any: a rank that has ended would make a hang of what the others still do. */
void device_free_at_end(void *memory);
void device_put(void *memory, const void *from, size_t bytes);
void device_get(void *to, const void *memory, size_t bytes);
/* Not on the host device. */
cudaEvent_t event_create(void);
void event_wait_and_destroy(cudaEvent_t event);
cudaStream_t stream_create(void);
void stream_destroy(cudaStream_t stream);
void stream_wait(cudaStream_t stream);
/* Returns 0 if the stream does not end within so many seconds. */
int stream_wait_for(cudaStream_t stream, double seconds);
double now(void);

/* Rank and size of this process as mpirun says; 0 and 1 without it. */
int process_rank(void);
int process_count(void);
/* Passes process 0's id to the other processes through a file of that name. */
void share_id(ncclUniqueId *id, const char *file);

/* Reads --ranks N, which must be at least 1, into *ranks, and returns the NAME of --scenario NAME; NULL: all of them. Any other
 * word ends the process with status 2. */
const char *parse_scenario(int argc, char **argv, int *ranks);

/* Ends the process with status 124 after RANKS_WATCHDOG seconds (60). */
void watch(void);

/* Runs f(rank, argument) on so many threads, and waits for them. */
void run_threads(int count, void (*f)(int rank, void *argument), void *argument);

/* Joins a communicator of this process's threads, one rank for each thread. */
ncclComm_t join(const ncclUniqueId *id, int rank, int size);

extern int checks, failures;
#define CHECK(condition, ...)                                                                                                  \
    do {                                                                                                                       \
        __atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);                                                                      \
        if (!(condition)) {                                                                                                    \
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);                                                                \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                                    \
            fprintf(stderr, __VA_ARGS__);                                                                                      \
            fputc('\n', stderr);                                                                                               \
        }                                                                                                                      \
    } while (0)
/* Ends the test unless the call succeeds. */
#define NCCL(call)                                                                                                             \
    do {                                                                                                                       \
        ncclResult_t result_ = (call);                                                                                         \
        if (result_ != ncclSuccess) {                                                                                          \
            fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, ncclGetErrorString(result_),                    \
                    ncclGetLastError(NULL));                                                                                   \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)
#define CODE(wanted, call)                                                                                                     \
    do {                                                                                                                       \
        ncclResult_t result_ = (call);                                                                                         \
        CHECK(result_ == (wanted), "%s gives %d, not %d (%s)", #call, (int) result_, (int) (wanted), ncclGetLastError(NULL));  \
    } while (0)

/* Prints "N checks, M failures" and returns the exit status. */
int finish(const char *program);

#ifdef __cplusplus
}
#endif

#endif
