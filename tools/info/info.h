/* The parts of `rondo info`: what is the same everywhere (tools/info/info.c), the GPUs (tools/info/gpus.c, in builds with CUDA)
 * and RDMA cards (info_nics.c). */
#ifndef RONDO_TOOLS_INFO_INFO_H
#define RONDO_TOOLS_INFO_INFO_H

#include "tools/common/output.h"

/* How many GPUs CUDA can use; 0 with the reason. */
int info_gpu_count(const char **why_not);
/* Each of them, and how it reaches each other. Prints and returns an array, empty if there is none. */
json_t *info_gpus(FILE *stream);

/* The ports of RDMA cards and where slots would lie that they carry, for ranks on each GPU; gpus 0: for ranks on the host. */
json_t *info_nics(FILE *stream, int gpus);

/* The programs of RONDO_PROGRAMS. Prints and returns an array; a bad file sets *exit_code. */
json_t *info_programs(FILE *stream, int *exit_code);

#endif
