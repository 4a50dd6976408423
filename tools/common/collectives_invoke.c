/*
 * How to call each collective in each form: blocking, non-blocking (the request is left in the call), on a stream, and the init
 * of the persistent ones.
 */
#include "tools/common/collectives.h"

/* invoke_X: calls X in a form, with the arguments that all its forms begin with. */
#define FORMS(X, ...)                                                                                                          \
    static rondo_result_t invoke_##X(struct call *c, enum form form)                                                           \
    {                                                                                                                          \
        c->request_count = 1;                                                                                                  \
        switch (form) {                                                                                                        \
        case FORM_BLOCKING:                                                                                                    \
            return rondo_##X(__VA_ARGS__);                                                                                     \
        case FORM_NONBLOCKING:                                                                                                 \
            return rondo_i##X(__VA_ARGS__, c->requests);                                                                       \
        case FORM_STREAM:                                                                                                      \
            return rondo_##X##_on_stream(__VA_ARGS__, c->stream);                                                              \
        case FORM_CALLBACK:                                                                                                    \
        case FORM_PERSISTENT:                                                                                                  \
        case FORM_PERSISTENT_STREAM:                                                                                           \
            return rondo_##X##_init(__VA_ARGS__, &c->attr, c->requests);                                                       \
        }                                                                                                                      \
        return RONDO_ERR_ARGUMENT;                                                                                             \
    }

FORMS(allreduce, c->send, c->receive, c->count, c->type, c->op, c->comm)
FORMS(reduce, c->send, c->receive, c->count, c->type, c->op, c->root, c->comm)
FORMS(bcast, c->receive, c->count, c->type, c->root, c->comm)
FORMS(reduce_scatter_block, c->send, c->receive, c->count, c->type, c->op, c->comm)
FORMS(allgather, c->send, c->receive, c->count, c->type, c->comm)
FORMS(allgatherv, c->send, c->input_elements, c->receive, c->receive_counts, c->receive_displacements, c->type, c->comm)
FORMS(alltoall, c->send, c->receive, c->count, c->type, c->comm)
FORMS(alltoallv, c->send, c->send_counts, c->send_displacements, c->receive, c->receive_counts, c->receive_displacements,
      c->type, c->comm)
FORMS(alltoallw, c->send, c->send_counts, c->send_offsets, c->types, c->receive, c->receive_counts, c->receive_offsets,
      c->types, c->comm)
FORMS(reduce_scatter, c->send, c->receive, c->receive_counts, c->type, c->op, c->comm)
FORMS(gatherv, c->send, c->input_elements, c->receive, c->receive_counts, c->receive_displacements, c->type, c->root, c->comm)
FORMS(scatterv, c->send, c->send_counts, c->send_displacements, c->receive, c->output_elements, c->type, c->root, c->comm)
FORMS(gather, c->send, c->receive, c->count, c->type, c->root, c->comm)
FORMS(scatter, c->send, c->receive, c->count, c->type, c->root, c->comm)
FORMS(barrier, c->comm)
FORMS(scan, c->send, c->receive, c->count, c->type, c->op, c->comm)
FORMS(exscan, c->send, c->receive, c->count, c->type, c->op, c->comm)
FORMS(alltonext, c->send, c->receive, c->count, c->type, c->comm)

/* The two halves must be outstanding together, or the ring of ranks would wait in a circle. */
static rondo_result_t grouped_sendrecv(struct call *c, bool on_stream)
{
    int next = (c->rank + 1) % c->ranks, previous = (c->rank + c->ranks - 1) % c->ranks;
    rondo_result_t code = rondo_group_start(c->comm);
    if (code != RONDO_SUCCESS)
        return code;
    code = on_stream ? rondo_send_on_stream(c->send, c->count, c->type, next, c->comm, c->stream)
                     : rondo_send(c->send, c->count, c->type, next, c->comm);
    if (code == RONDO_SUCCESS)
        code = on_stream ? rondo_recv_on_stream(c->receive, c->count, c->type, previous, c->comm, c->stream)
                         : rondo_recv(c->receive, c->count, c->type, previous, c->comm);
    rondo_result_t end = rondo_group_end(c->comm);
    return code != RONDO_SUCCESS ? code : end;
}

static rondo_result_t invoke_sendrecv(struct call *c, enum form form)
{
    int next = (c->rank + 1) % c->ranks, previous = (c->rank + c->ranks - 1) % c->ranks;
    rondo_result_t code;
    c->request_count = 2;
    switch (form) {
    case FORM_BLOCKING:
    case FORM_STREAM:
        return grouped_sendrecv(c, form == FORM_STREAM);
    case FORM_NONBLOCKING:
        if ((code = rondo_isend(c->send, c->count, c->type, next, c->comm, &c->requests[0])) != RONDO_SUCCESS)
            return code;
        return rondo_irecv(c->receive, c->count, c->type, previous, c->comm, &c->requests[1]);
    case FORM_CALLBACK:
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        if ((code = rondo_send_init(c->send, c->count, c->type, next, c->comm, &c->attr, &c->requests[0])) != RONDO_SUCCESS)
            return code;
        return rondo_recv_init(c->receive, c->count, c->type, previous, c->comm, &c->attr, &c->requests[1]);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t call_invoke(struct call *c, enum form form)
{
    static rondo_result_t (*const invoke[COLLECTIVE_COUNT])(struct call *, enum form) = {
        [COLLECTIVE_ALLREDUCE] = invoke_allreduce,
        [COLLECTIVE_REDUCE] = invoke_reduce,
        [COLLECTIVE_BCAST] = invoke_bcast,
        [COLLECTIVE_REDUCE_SCATTER_BLOCK] = invoke_reduce_scatter_block,
        [COLLECTIVE_ALLGATHER] = invoke_allgather,
        [COLLECTIVE_ALLGATHERV] = invoke_allgatherv,
        [COLLECTIVE_ALLTOALL] = invoke_alltoall,
        [COLLECTIVE_ALLTOALLV] = invoke_alltoallv,
        [COLLECTIVE_GATHER] = invoke_gather,
        [COLLECTIVE_SCATTER] = invoke_scatter,
        [COLLECTIVE_BARRIER] = invoke_barrier,
        [COLLECTIVE_SCAN] = invoke_scan,
        [COLLECTIVE_EXSCAN] = invoke_exscan,
        [COLLECTIVE_ALLTONEXT] = invoke_alltonext,
        [COLLECTIVE_SENDRECV] = invoke_sendrecv,
        [COLLECTIVE_ALLTOALLW] = invoke_alltoallw,
        [COLLECTIVE_GATHERV] = invoke_gatherv,
        [COLLECTIVE_SCATTERV] = invoke_scatterv,
        [COLLECTIVE_REDUCE_SCATTER] = invoke_reduce_scatter,
    };
    return invoke[c->collective->id](c, form);
}
