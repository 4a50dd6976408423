/*
 * Connecting lanes: the receiver of a connector owns its slots; its control thread makes them when the sender asks, so that no
 * user thread of the other side is needed, and no rank but the two.
 */
#ifndef RONDO_LIB_CONNECTION_CONNECT_H
#define RONDO_LIB_CONNECTION_CONNECT_H

#include "lib/context/runtime.h"
#include "lib/program/plan.h"

/* Names a connector in the whole job. Plain data without padding. */
struct rondo_connector_key {
    uint64_t comm, lane;
    int32_t source, destination; /* ranks in the world */
    uint32_t channel, protocol;
};

struct rondo_connector_wish {
    struct rondo_connector_key key;
    struct rondo_connector_spec spec;
    enum rondo_direction direction;    /* as this rank sees it */
    struct rondo_connector *connector; /* the result */
};

rondo_result_t rondo_connect_create(struct rondo_connect_table **table);
/* Closes all connectors; later requests are refused. Then, when no control thread runs any more, destroy. */
void rondo_connect_shut(struct rondo_runtime *runtime);
void rondo_connect_destroy(struct rondo_runtime *runtime);
/* From the control handler. */
void rondo_connect_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);
void rondo_connect_wake(struct rondo_runtime *runtime);

/* Fulfils all wishes, those this rank receives and those it sends, waiting only for the peers' control threads. On failure none
 * is left open. */
rondo_result_t rondo_connect(struct rondo_runtime *runtime, struct rondo_connector_wish *wishes, int count);
/* Gives up one side. The slots are used again when both sides have. */
void rondo_disconnect(struct rondo_runtime *runtime, const struct rondo_connector_key *key, struct rondo_connector *connector);
/* Drops what is left of a lane that no rank will use, when all have given up their sides and know it of each other. A sender
 * that failed before it asked would otherwise leave slots behind here, as would a receiver that failed before it opened. What a
 * rank sent before the others knew has arrived by then: the control plane keeps the order. */
void rondo_connect_forget(struct rondo_runtime *runtime, uint64_t comm, uint64_t lane);

#endif
