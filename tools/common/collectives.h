/*
 * The collectives as the command knows them. The library's description of each (rondo_collective_describe) says how a size
 * becomes counts, where every element of the result comes from, and the factor of the bus bandwidth; this room adds how to call
 * it in each form, and a ring of sends and receives. "Size" and the factors are nccl-tests'.
 */
#ifndef RONDO_TOOLS_COMMON_COLLECTIVES_H
#define RONDO_TOOLS_COMMON_COLLECTIVES_H

#include "tools/common/buffers.h"
#include "rondo.h"
#include <stdbool.h>
#include <stddef.h>

enum collective_id {
    COLLECTIVE_ALLREDUCE,
    COLLECTIVE_REDUCE,
    COLLECTIVE_BCAST,
    COLLECTIVE_REDUCE_SCATTER_BLOCK,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALLGATHER,
    COLLECTIVE_ALLGATHERV,
    COLLECTIVE_ALLTOALL,
    COLLECTIVE_ALLTOALLV,
    COLLECTIVE_ALLTOALLW,
    COLLECTIVE_GATHER,
    COLLECTIVE_GATHERV,
    COLLECTIVE_SCATTER,
    COLLECTIVE_SCATTERV,
    COLLECTIVE_BARRIER,
    COLLECTIVE_SCAN,
    COLLECTIVE_EXSCAN,
    COLLECTIVE_ALLTONEXT,
    COLLECTIVE_SENDRECV, /* every rank sends to the next and receives from the one before it, around the ring */
    COLLECTIVE_COUNT
};

/* The two on a stream are only enqueued by a run; call_finish waits for them. FORM_CALLBACK is persistent, and a run ends when
 * the callback has been called. */
enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, FORM_STREAM, FORM_PERSISTENT_STREAM, FORM_CALLBACK };
/* Whether the form has an init; whether it needs struct call's stream. */
bool form_is_persistent(enum form form);
bool form_is_on_stream(enum form form);

/* One collective with everything that its call needs, on one rank. */
struct call {
    const struct collective *collective;
    rondo_comm_t comm;
    rondo_attr_t attr; /* of the persistent form */
    int rank, ranks, root;
    rondo_datatype_t type;
    rondo_op_t op;
    bool in_place;

    size_t bytes; /* the row's size: what was asked for, made a whole number of elements */
    size_t count; /* the count argument */
    size_t type_bytes;
    size_t input_elements;  /* that this rank contributes */
    size_t output_elements; /* in its receive buffer */
    size_t *counts;         /* six arrays of one entry a rank, in one allocation */
    size_t *send_counts, *send_displacements, *receive_counts, *receive_displacements;
    size_t *send_offsets, *receive_offsets; /* the displacements in bytes */
    rondo_datatype_t *types;                /* type once for each rank */

    char *input; /* where this rank's input is; in place, inside the output */
    char *output;
    const void *send; /* the arguments; RONDO_IN_PLACE where that applies to this rank */
    void *receive;

    rondo_request_t requests[2];
    int request_count;
    void *stream;            /* of the forms on a stream */
    struct buffers *buffers; /* of the rank */
};

/* Where a run of elements of the output comes from. */
struct origin {
    enum { ORIGIN_UNTOUCHED, ORIGIN_INPUT, ORIGIN_ANYTHING } kind;
    int first, last; /* the ranks whose inputs are combined, both included; the same one where nothing is reduced */
    size_t index;    /* of the run's first element in their inputs */
    size_t length;   /* elements of the run */
};

struct collective {
    const char *name;
    enum collective_id id;
    const rondo_collective_t *rule; /* the library's description; of sendrecv one like it */
};

/* By its name, or by the only one that begins so; "broadcast" is bcast. NULL: there is none, or several. Any thread. */
const struct collective *collective_find(const char *name);
/* Writes all names, each after the separator but the first; always terminated. */
void collective_list(char *text, size_t bytes, const char *separator);

/* Whether it can be called in place. */
bool collective_shares(const struct collective *collective);
/* Whether the ranks whose data are combined differ from rank to rank. */
bool collective_is_prefix(const struct collective *collective);
/* Bus bandwidth over size divided by time. */
double collective_bus_factor(const struct collective *collective, int ranks);

/* From collective, rank, ranks, root, type and in_place (set by the caller), and the size asked for: everything up to the
 * buffers. False: out of memory. */
bool call_shape(struct call *call, size_t bytes);
/* Whether this rank gives its input in the output buffer, and then at which element of the output the input begins. */
bool call_is_in_place(const struct call *call);
size_t call_in_place_offset(const struct call *call);
/* Sets the arguments. input is ignored where the call takes its input from output. */
void call_bind(struct call *call, void *input, void *output);
/* Where element index of the output comes from. */
struct origin call_origin(const struct call *call, size_t index);
void call_release(struct call *call); /* frees the counts */

/* A call's life, on all ranks alike: call_open makes the requests of a persistent form (and nothing in the others), call_run
 * performs the call once in the form that it was opened for, call_finish waits for all runs on the stream (and for nothing in
 * the other forms), call_close frees the requests. Each returns the library's code. */
rondo_result_t call_open(struct call *call, enum form form);
rondo_result_t call_run(struct call *call, enum form form);
rondo_result_t call_finish(struct call *call, enum form form);
rondo_result_t call_close(struct call *call, enum form form);

/* Makes the call in the form once (collectives_invoke.c); of a persistent form the init. Sets requests and request_count. */
rondo_result_t call_invoke(struct call *call, enum form form);

#endif
