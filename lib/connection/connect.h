/*
 * Connecting lanes. The receiver of a connector owns the slots. The receiver's control thread creates them when the sender
 * asks, so connecting needs no user thread of the peer and no third rank. Relies on lib/bootstrap for messages and on
 * transport/ for the memory.
 */
#ifndef RONDO_LIB_CONNECTION_CONNECT_H
#define RONDO_LIB_CONNECTION_CONNECT_H

#include "lib/context/runtime.h"
#include "lib/program/plan.h"

#define RONDO_ALL_RECEIVE (-1) /* the destination of a multicast connector: all other members of the communicator */

/* Identifies a connector in the whole job. Plain data without padding: it is hashed and transmitted as bytes. */
struct rondo_connector_key {
    uint64_t comm, lane;
    int32_t source, destination; /* ranks in the world; destination may be RONDO_ALL_RECEIVE */
    uint32_t channel, protocol;
};

/* One connector that rondo_connect is asked to open. */
struct rondo_connector_request {
    struct rondo_connector_key key;
    struct rondo_connector_spec spec;
    enum rondo_direction direction;    /* as this rank sees it */
    struct rondo_connector *connector; /* out: the open connector */
};

/* Creates the runtime's table of connectors. Called once, during init. RONDO_ERR_MEMORY if there is no memory. */
rondo_result_t rondo_connect_create(struct rondo_connect_table **table);
/* Closes all connectors and refuses later requests. Called once, at finalize, without the connect lock. Waits up to 2 s for the
 * peers that have this rank's GPU memory mapped to release it; a peer does so at its own finalize. */
void rondo_connect_shut(struct rondo_runtime *runtime);
/* Frees the table. The control thread must have ended. Does nothing if there is no table. */
void rondo_connect_destroy(struct rondo_runtime *runtime);
/* Handles a message of type CONNECT, CONNECTED or CLOSE from rank source. Called on the control thread. A message of another
 * type or size is dropped with a warning. */
void rondo_connect_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);
/* Wakes the threads that wait in rondo_connect, which then check whether their peer has gone or their communicator has failed.
 * Any thread; not under the connect lock. */
void rondo_connect_wake(struct rondo_runtime *runtime);

/* Opens count connectors of the communicator, both those on which this rank receives and those on which it sends, and sets each
 * one's connector. Not on a control thread and without locks: it waits for the peers' control threads, for at most
 * settings.connect_timeout (or settings.timeout, if that is less and not 0) seconds each, and for no user thread. On failure
 * none of them is left open. Fails with the communicator, if that fails meanwhile. */
rondo_result_t rondo_connect(const struct rondo_comm *comm, struct rondo_connector_request *requests, int count);
/* Closes this rank's side of the connector. The slots are freed once both sides have closed. Not under the connect lock; the
 * connector must be idle on this rank. */
void rondo_disconnect(struct rondo_runtime *runtime, const struct rondo_connector_key *key, struct rondo_connector *connector);
/* Frees what is left of a lane that no rank will use. Every member must have closed its sides and must know that every other
 * member has. Without this call, slots would remain when a sender failed before it asked, or when a receiver failed before it
 * opened. No message about the lane is still on its way: each rank sent its messages before the others learned of its closing,
 * and the control plane preserves order. */
void rondo_connect_forget(struct rondo_runtime *runtime, uint64_t comm, uint64_t lane);

#endif
