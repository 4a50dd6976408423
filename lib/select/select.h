/*
 * Selection: the algorithm, the protocol and the number of channels of an operation. All ranks must choose alike, so a choice
 * depends only on what all ranks know. Relies on lib/algorithms, lib/select/tuning.h and lib/select/select_gpu.h.
 */
#ifndef RONDO_LIB_SELECT_SELECT_H
#define RONDO_LIB_SELECT_SELECT_H

#include "lib/connection/slots.h"
#include "lib/call/call.h"
#include "lib/program/algorithm.h"

struct rondo_choice {
    const struct rondo_algorithm *algorithm;
    enum rondo_protocol protocol;
    int channels;
    const char *why;                      /* the reason, for the log; static text */
    int direct_writes;                    /* result of rondo_writes_directly_by */
    int single_copy;                      /* result of rondo_copies_once */
    int measured;                         /* result of rondo_select_gpu; neither name nor protocol was given */
    const struct rondo_tuning_row *tuned; /* the row that decided; NULL: none */
};

/* Chooses for the call. direct: all ranks can access each other's buffers of this call. streamed: the call is executed in
 * stream order, by a kernel of its own. name: the algorithm that the call's attributes demand, or NULL. RONDO_ERR_UNSUPPORTED
 * if that one is unknown or cannot run the call. Any thread, without locks. */
rondo_result_t rondo_select(const struct rondo_comm *comm, const struct rondo_call *call, int direct, int streamed,
                            const char *name, struct rondo_choice *choice);

/* Returns NULL if the algorithm can run this call, else the reason why not (static text). */
const char *rondo_misfit(const struct rondo_comm *comm, const struct rondo_call *call, int direct,
                         const struct rondo_algorithm *algorithm);

/* Whether senders write directly into the receivers' buffers (device/engine/direct_write.h). The choice must be complete
 * otherwise. */
int rondo_writes_directly_by(const struct rondo_comm *comm, const struct rondo_call *call, int streamed,
                             const struct rondo_choice *choice);

/* Whether slots may name where bytes lie in the senders' memory (device/engine/references.h), and each sender decides which
 * of its slots do. The choice must be complete otherwise. */
int rondo_copies_once(const struct rondo_comm *comm, const struct rondo_call *call, const struct rondo_choice *choice);

/* The size, in bytes, by which selection decides: the larger of a rank's input and output. 0 for v-collectives in which a rank
 * knows its own counts alone. */
size_t rondo_call_bytes(const struct rondo_comm *comm, const struct rondo_call *call);

/* The bytes that one connector transmits for the call, by which the protocol is chosen. SIZE_MAX if ranks cannot know it. */
size_t rondo_message_bytes(const struct rondo_comm *comm, const struct rondo_call *call);
/* The bytes of a slot that holds all that a rank sends by multicast for the call. */
size_t rondo_multicast_bytes(const struct rondo_comm *comm, const struct rondo_call *call,
                             const struct rondo_algorithm *algorithm);

/* Bytes that a slot of the algorithm's connectors must have for a call that combines elements: an element for each chunk that
 * an instruction takes. */
size_t rondo_element_slot(const struct rondo_comm *comm, const struct rondo_call *call,
                          const struct rondo_algorithm *algorithm);

#endif
