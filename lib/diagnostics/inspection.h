/*
 * Looking into a running job from outside. Each rank answers on a Unix socket without a file, to its own user and to root:
 * `rondo top` and `rondo report` ask there (lib/diagnostics/inspection_protocol.h), any rank for the whole job. With
 * RONDO_METRICS each rank gives its counts in the text form of Prometheus, in a file or over HTTP. Nothing here ends a job:
 * what goes wrong is a warning. Relies on the poller's ticks and the control plane.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_INSPECTION_H
#define RONDO_LIB_DIAGNOSTICS_INSPECTION_H

#include "lib/context/runtime.h"

/* Reads RONDO_METRICS. RONDO_ERR_ARGUMENT, RONDO_ERR_MEMORY. */
rondo_result_t rondo_inspection_create(struct rondo_inspection **inspection);
/* Opens the sockets. The runtime's peers, device and world exist. */
void rondo_inspection_open(struct rondo_runtime *runtime);
/* Goes on with what is asked. Called by the poller at every tick, without locks; does not wait. */
void rondo_inspection_check(struct rondo_runtime *runtime);
/* Closes the sockets. The poller has ended. */
void rondo_inspection_close(struct rondo_inspection *inspection);
/* The control thread must have ended. */
void rondo_inspection_destroy(struct rondo_inspection *inspection);
/* Handles RONDO_MESSAGE_STATE_ASK and RONDO_MESSAGE_STATE from rank source. Called on the control thread. */
void rondo_inspection_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes);

#endif
