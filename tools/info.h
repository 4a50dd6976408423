/* The parts of `rondo info`: what is the same everywhere (info.c) and the GPUs (info_gpus.c, in builds with CUDA). */
#ifndef RONDO_TOOLS_INFO_H
#define RONDO_TOOLS_INFO_H

#include "output.h"

/* How many GPUs CUDA can use; 0 with the reason. */
int info_gpu_count(const char **why_not);
/* Each of them, and how it reaches each other. Prints and returns an array, empty if there is none. */
json_t *info_gpus(FILE *stream);

#endif
