/*
 * The one qualifier of single-source functions: C11 on the host, and the device side of CUDA C++ under nvcc.
 */
#ifndef RONDO_DEVICE_QUALIFIERS_H
#define RONDO_DEVICE_QUALIFIERS_H

#if defined(__CUDACC__)
#define RONDO_FUNCTION static __device__ __forceinline__
#else
#define RONDO_FUNCTION static inline
#endif

#endif
