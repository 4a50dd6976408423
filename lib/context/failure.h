/*
 * Failure of communicators: what ends every operation on one, whatever it was that failed.
 */
#ifndef RONDO_LIB_CONTEXT_FAILURE_H
#define RONDO_LIB_CONTEXT_FAILURE_H

#include "lib/context/comm.h"

#include <stddef.h>

struct rondo_runtime;

/* What a room does when a communicator fails or a rank goes. Each room above has one; lib/runtime/runtime.c lists them. A NULL
 * function: nothing. */
struct rondo_failure_listener {
    /* The communicator counts as failed from now on. Runtime lock held; must not wait. */
    void (*failing)(struct rondo_comm *comm, rondo_result_t code);
    /* The same, after the lock has been given back. */
    void (*failed)(struct rondo_comm *comm);
    /* A rank has gone, before the communicators that it is in fail. */
    void (*peer_gone)(struct rondo_runtime *runtime);
};

/* Ends every operation on the communicator with the code and the message; the first failure stays. Not under a lock. */
void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same to each communicator that has not failed yet and that all of the count ranks are in (none: every communicator). */
void rondo_comms_fail(struct rondo_runtime *runtime, const int *ranks, int count, rondo_result_t code, const char *text);
/* The communicator of that id, protected from being freed until unpinned; NULL if there is none. */
struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id);
void rondo_comm_unpin(struct rondo_comm *comm);
/* The rank has died or left (how says which): fails the communicators that it is in with RONDO_ERR_PEER. */
void rondo_peer_gone(struct rondo_runtime *runtime, int rank, const char *how);
/* This rank and the peer cannot reach each other over the network any more: fails the communicators that both are in, and tells
 * the other ranks to fail theirs, which may wait for a rank that waits for the lost one. Not under a lock. */
void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why);
/* From the control handler: RONDO_MESSAGE_LINK_LOST. */
void rondo_link_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);

#endif
