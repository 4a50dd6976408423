/*
 * Compression: whether a call's transmitted data are compressed, and how (docs/guide/compression.md). Relies on lib/call and on
 * the communicator's attributes.
 */
#ifndef RONDO_LIB_SELECT_COMPRESSION_H
#define RONDO_LIB_SELECT_COMPRESSION_H

#include "lib/context/runtime.h"
#include "lib/call/call.h"

/* Sets the call's rate (bits per value; 0: not compressed) and feedback. The call's own attributes come first;
 * RONDO_ERR_ARGUMENT or RONDO_ERR_UNSUPPORTED if the call cannot have them. Otherwise the communicator's apply, where the call
 * can have them. Takes no lock. The result depends only on what all ranks know, so it is the same on all ranks. */
rondo_result_t rondo_compression_choose(const struct rondo_comm *comm, const rondo_attr_t *attr, struct rondo_call *call);

#endif
