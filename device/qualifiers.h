/*
 * The one qualifier of single-source functions: they compile as C11 for the host and as CUDA C++ for both sides of a GPU.
 */
#ifndef RONDO_DEVICE_QUALIFIERS_H
#define RONDO_DEVICE_QUALIFIERS_H

#if defined(__CUDACC__)
#define RONDO_FUNCTION static __host__ __device__ __forceinline__
#else
#define RONDO_FUNCTION static inline
#endif

#endif
