/* What the CUDA device offers beyond device/device.h: operations in stream order, and care with the application's CUDA state.
 */
#ifndef RONDO_DEVICE_CUDA_DEVICE_H
#define RONDO_DEVICE_CUDA_DEVICE_H

#include "device/device.h"

#include <cuda_runtime_api.h>

extern const struct rondo_device_kind rondo_cuda_device;

/* GPUs that can be used; 0 with the reason (if why is not NULL). */
int rondo_cuda_count(const char **why);

#endif
