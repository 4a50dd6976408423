/*
 * The qualifiers of single-source functions: C11 on the host, and the device side of CUDA C++ under nvcc. RONDO_RARE: of what
 * is seldom needed on a path that must be fast; it is called, so that it takes no registers from what surrounds it.
 */
#ifndef RONDO_DEVICE_ABI_QUALIFIERS_H
#define RONDO_DEVICE_ABI_QUALIFIERS_H

#if defined(__CUDACC__)
#define RONDO_FUNCTION static __device__ __forceinline__
#define RONDO_RARE     static __device__ __noinline__
#else
#define RONDO_FUNCTION static inline
#define RONDO_RARE     static __attribute__((noinline, unused))
#endif

#endif
