/*
 * The worker group of a block: the thread or threads that carry out the slice operations which the engine describes. The engine
 * calls the functions rondo_workers_*, which each device defines alike: device/engine/workers_cuda.h,
 * device/engine/workers_host.h.
 *
 *   RONDO_WORKERS_OVERLAPS  1: the engine goes on while the worker group works, and calls rondo_workers_finish
 *   RONDO_WORKERS_POLLS_LL  1: the worker group waits for the flags of LL data; 0: the engine does before it begins
 */
#ifndef RONDO_DEVICE_ENGINE_WORKERS_H
#define RONDO_DEVICE_ENGINE_WORKERS_H

#if defined(__CUDACC__)
#include "device/engine/workers_cuda.h"
#else
#include "device/engine/workers_host.h"
#endif

#endif
