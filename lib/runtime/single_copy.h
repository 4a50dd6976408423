/*
 * Single copy at init: whether the ranks of a host in several processes can read each other's memory, which each finds out by
 * reading (device/engine/references.h says what for). Relies on runtime->peers. Called once each, in this order, by the thread
 * that runs rondo_init.
 */
#ifndef RONDO_LIB_RUNTIME_SINGLE_COPY_H
#define RONDO_LIB_RUNTIME_SINGLE_COPY_H

#include "lib/context/runtime.h"

/* Before the ranks tell what they know of themselves: lets the others read this process, and says so in *self. Nothing with
 * RONDO_SINGLE_COPY=off or on a GPU. RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_single_copy_prepare(struct rondo_runtime *runtime, struct rondo_peer *self);

/* After that: tries to read every other process of this rank's host. Returns what to tell the others: enum
 * rondo_peer_single_copy. The log says why not, as information; as a warning if RONDO_SINGLE_COPY asks for it. */
uint32_t rondo_single_copy_probe(struct rondo_runtime *runtime);

/* When all have told: fills in runtime->single_copy_peers. */
void rondo_single_copy_connect(struct rondo_runtime *runtime);

#endif
