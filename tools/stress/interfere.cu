/* Kernels for tools/stress/interfere.c. Each is a function of its own, so with lazy loading each has a first launch of its own. */
#include "tools/stress/interfere.h"

#include <cuda_runtime.h>
#include <utility>

template <int NUMBER> static __global__ void touch(int *where)
{
    if (where != nullptr)
        *where = NUMBER;
}

template <int... NUMBERS> static const void *kernel(int number, std::integer_sequence<int, NUMBERS...>)
{
    static const void *const kernels[] = {reinterpret_cast<const void *>(&touch<NUMBERS>)...};
    return kernels[number];
}

extern "C" int interfere_launch(int number, void *stream)
{
    int *nowhere = nullptr;
    void *arguments[] = {&nowhere};
    const void *function = kernel(number, std::make_integer_sequence<int, INTERFERE_KERNELS>());
    return static_cast<int>(cudaLaunchKernel(function, dim3(1), dim3(1), arguments, 0, static_cast<cudaStream_t>(stream)));
}
