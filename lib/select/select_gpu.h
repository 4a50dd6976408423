/*
 * Selection for communicators whose ranks are all on GPUs of one host, where no name or protocol is given: tables of measured
 * sizes. Relies on lib/select/select.h.
 */
#ifndef RONDO_LIB_SELECT_SELECT_GPU_H
#define RONDO_LIB_SELECT_SELECT_GPU_H

#include "lib/select/select.h"

/* Fills in the choice from the tables and returns 1. Returns 0 and leaves the choice unchanged if no row fits the call. The
 * communicator's ranks must all be on GPUs. direct, streamed: as in rondo_select. Depends only on what all ranks know. */
int rondo_select_gpu(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                     struct rondo_choice *choice);

/* The largest number of program blocks of an operation. coded: the operation is compressed. The communicator's ranks must all
 * be on GPUs. A kernel on a stream occupies its multiprocessors while it waits for peers. If ranks enqueue in different orders,
 * all kernels that may wait must be resident at once (docs/architecture.md). Therefore only operations of the world may have
 * twice the daemon's blocks. */
int rondo_select_gpu_blocks(const struct rondo_comm *comm, int streamed, int coded);

/* Reduces the channels of a persistent operation that is one of many, all of which may be active at once. oversubscription: the
 * number of the others; it must be the same on all ranks. direct: as in rondo_select. */
void rondo_select_gpu_oversubscribed(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                                     uint32_t oversubscription, struct rondo_choice *choice);

#endif
