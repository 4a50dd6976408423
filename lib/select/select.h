/* Which algorithm, protocol and channel count an operation gets. All ranks must choose alike, so the choice may depend only on
 * what all of them know. */
#ifndef RONDO_LIB_SELECT_SELECT_H
#define RONDO_LIB_SELECT_SELECT_H

#include "lib/connection/slots.h"
#include "lib/call/call.h"
#include "lib/program/algorithm.h"

struct rondo_choice {
    const struct rondo_algorithm *algorithm;
    enum rondo_protocol protocol;
    int channels;
    const char *why;                      /* for the log */
    int direct_writes;                    /* as rondo_writes_directly_by says */
    int measured;                         /* as rondo_select_gpu says; no name or protocol has been given */
    const struct rondo_tuning_row *tuned; /* the row that decided; NULL: none */
};

/* direct: all ranks can reach each other's buffers of this call. streamed: it runs in stream order, in a kernel of its own.
 * name: an algorithm the user insists on, or NULL. */
rondo_result_t rondo_select(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                            const char *name, struct rondo_choice *choice);

/* Why the algorithm cannot run this call; NULL if it can. */
const char *rondo_misfit(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                         const struct rondo_algorithm *algorithm);

/* Whether what is received is stored where it belongs by the sender (device/engine/direct_write.h), all else having been
 * chosen. */
int rondo_writes_directly_by(const struct rondo_comm *comm, const struct rondo_call *call, int streamed,
                             const struct rondo_choice *choice);

/* Bytes that decide: the larger of what a rank puts in and what it gets out, as all ranks know it (v-collectives: 0 where only
 * each rank knows its own). */
size_t rondo_call_bytes(const struct rondo_comm *comm, const struct rondo_call *call);

/* What travels in one connector for it: the size that decides the protocol. SIZE_MAX where ranks cannot know. */
size_t rondo_message_bytes(const struct rondo_comm *comm, const struct rondo_call *call);

#endif
