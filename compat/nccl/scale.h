/*
 * Multiplying a buffer by a scalar, for pre-multiplied sums, which Rondo's engine has no operator for: its operators work on
 * what is received, and a factor in each primitive's reading of the input would be paid for by all. The arithmetic is the
 * engine's own (device/reduce/operators.h), so that all devices give the same bits.
 */
#ifndef RONDO_COMPAT_NCCL_SCALE_H
#define RONDO_COMPAT_NCCL_SCALE_H

#include "rondo.h"
#include <cuda_runtime_api.h>
#include <stddef.h>

/* The types of NCCL: X(enumerator's suffix, name, storage type, accumulator's name). */
#define RONDO_NCCL_TYPES(X)                                                                                                    \
    X(INT8, int8, int8_t, int8)                                                                                                \
    X(UINT8, uint8, uint8_t, uint8)                                                                                            \
    X(INT32, int32, int32_t, int32)                                                                                            \
    X(UINT32, uint32, uint32_t, uint32)                                                                                        \
    X(INT64, int64, int64_t, int64)                                                                                            \
    X(UINT64, uint64, uint64_t, uint64)                                                                                        \
    X(FLOAT16, float16, uint16_t, float)                                                                                       \
    X(BFLOAT16, bfloat16, uint16_t, float)                                                                                     \
    X(FLOAT, float, float, float)                                                                                              \
    X(DOUBLE, double, double, double)                                                                                          \
    X(FLOAT8E4M3, float8e4m3, uint8_t, float)                                                                                  \
    X(FLOAT8E5M2, float8e5m2, uint8_t, float)

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernel on the GPU: the first launch of one that is not loaded waits for whatever runs there. */
cudaError_t rondo_nccl_scale_load(int device);

/* to[i] = from[i] * the scalar, in the order of the stream, whose GPU is current. address: the scalar, in memory of the device;
 * NULL: the 8 bytes of value hold it. to may be from. */
cudaError_t rondo_nccl_scale(void *to, const void *from, size_t count, rondo_datatype_t type, const void *address,
                             const unsigned char *value, cudaStream_t stream);

/* The same by the calling thread. */
void rondo_nccl_scale_host(void *to, const void *from, size_t count, rondo_datatype_t type, const void *scalar);

#ifdef __cplusplus
}
#endif
#endif
