/* The identity of the host that this process runs on: equal texts mean that two processes can share memory. */
#ifndef RONDO_LIB_BASE_HOST_H
#define RONDO_LIB_BASE_HOST_H

#include "rondo.h"

#include <stddef.h>

/*
 * Writes this host's id to text, always terminated, cut to bytes (256 are enough for an override of 100 characters; 0: nothing
 * is written). Two processes get equal texts exactly when they have the same boot, the same network, PID and user namespace,
 * the same user, and the same override: the argument, or, where that is NULL or empty, RONDO_HOSTID if that is set. Any thread
 * may call. What the system does not tell any process is left out; RONDO_ERR_SYSTEM if this process alone cannot read it at
 * present, for want of descriptors or memory, because its id would then differ from that of its neighbours.
 */
rondo_result_t rondo_host_id(const char *override, char *text, size_t bytes);

#endif
