/*
 * How a runtime starts: what rondo_init does, and rondo_comm_grow (lib/runtime/grow.c).
 */
#ifndef RONDO_LIB_RUNTIME_START_H
#define RONDO_LIB_RUNTIME_START_H

#include "lib/context/comm.h"
#include "rondo.h"

/* As rondo_init. grows: the communicator that this rank comes from, whose failure ends the wait for ranks that have not joined,
 * on all that have; NULL: none. */
rondo_result_t rondo_runtime_start(rondo_t *rt, const rondo_config_t *config, const struct rondo_comm *grows);

#endif
