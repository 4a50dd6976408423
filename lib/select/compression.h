/* Compression of the data that travel: whether a call is compressed, and how (docs/guide/compression.md). */
#ifndef RONDO_LIB_SELECT_COMPRESSION_H
#define RONDO_LIB_SELECT_COMPRESSION_H

#include "lib/context/runtime.h"
#include "lib/call/call.h"

/* Sets the call's rate and feedback by its attributes, which it is refused for if they do not fit, else by the communicator's,
 * where those fit. Depends only on what all ranks know. */
rondo_result_t rondo_compression_choose(const struct rondo_comm *comm, const rondo_attr_t *attr, int persistent,
                                        struct rondo_call *call);

/* Bytes of an element as the code computes it; and of a call's residuals. */
size_t rondo_residual_bytes(const struct rondo_comm *comm, const struct rondo_call *call);

#endif
