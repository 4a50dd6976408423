/* What ranks that are all on GPUs of one host choose, where nothing else is asked for. */
#ifndef RONDO_LIB_SELECT_SELECT_GPU_H
#define RONDO_LIB_SELECT_SELECT_GPU_H

#include "lib/select/select.h"

/* For a communicator of ranks on GPUs only. direct, streamed: as rondo_select's. Leaves the choice alone (and returns 0) where
 * the table has nothing for the call. */
int rondo_select_gpu(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                     struct rondo_choice *choice);

/* Program blocks that an operation may have at once, for a communicator of ranks on GPUs only. Kernels on streams hold their
 * multiprocessors while they wait for peers, and where ranks enqueue in different orders as many must fit as may wait
 * (docs/architecture.md); so only the world's may have twice the daemon's blocks. */
int rondo_select_gpu_blocks(const struct rondo_comm *comm, int streamed, int coded);

/* Makes room where a persistent operation is one of many, which may all be under way at once: crowd is how many others there
 * are, the same on all ranks. */
void rondo_select_gpu_oversubscribed(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                                     uint32_t oversubscription, struct rondo_choice *choice);

#endif
