/*
 * Failure of communicators: what ends every operation on one, whatever it was that failed.
 */
#ifndef RONDO_LIB_CONTEXT_FAILURE_H
#define RONDO_LIB_CONTEXT_FAILURE_H

#include "lib/context/comm.h"

#include <stddef.h>

struct rondo_runtime;

/* lib/context/failure.c: ends everything on the communicator with the code; the first failure stays. */
void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The communicator of that id, protected from being freed until unpinned; NULL if there is none. */
struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id);
void rondo_comm_unpin(struct rondo_comm *comm);
/* The rank has died (RONDO_ERR_PEER) or left: fails the communicators that it is in. */
void rondo_peer_gone(struct rondo_runtime *runtime, int rank, const char *how);
/* The device is lost, and no daemon runs any more: fails all communicators, and ends what was on the device. */
void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why);
/* This rank and the peer reach each other no more over the network: fails the communicators that both are in, and has the other
 * ranks fail theirs, which may be waiting for one that waits for the lost one. Not under a lock. */
void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why);
/* From the control handler. */
void rondo_link_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

#endif
