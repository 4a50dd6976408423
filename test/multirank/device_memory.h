/* Memory of a rank's device, for the harness (tools/common/ranks.h has the calls for the programs). */
#ifndef RONDO_TEST_DEVICE_MEMORY_H
#define RONDO_TEST_DEVICE_MEMORY_H

#include "rondo.h"

/* Chooses the GPU of the rank's memory. Called once by each rank on its own thread, with ranks_current set. */
void ranks_use_device(rondo_t runtime);

#if RONDO_WITH_CUDA
/* Whether every byte of memory that the thread's GPU reaches has the value. Uses cudaMemcpy, so no daemon may have to be waited
 * for. */
int device_memory_holds(const void *memory, size_t bytes, int value);
#endif

#endif
