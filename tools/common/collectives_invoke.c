/*
 * How to call each collective in each form: blocking, non-blocking (the request is left in the call), on a stream, and the init
 * of the persistent ones.
 */
#include "tools/common/collectives.h"

rondo_result_t invoke_allreduce(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_allreduce(c->send, c->receive, c->count, c->type, c->op, c->comm);
    case FORM_NONBLOCKING:
        return rondo_iallreduce(c->send, c->receive, c->count, c->type, c->op, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_allreduce_on_stream(c->send, c->receive, c->count, c->type, c->op, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_allreduce_init(c->send, c->receive, c->count, c->type, c->op, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_reduce(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_reduce(c->send, c->receive, c->count, c->type, c->op, c->root, c->comm);
    case FORM_NONBLOCKING:
        return rondo_ireduce(c->send, c->receive, c->count, c->type, c->op, c->root, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_reduce_on_stream(c->send, c->receive, c->count, c->type, c->op, c->root, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_reduce_init(c->send, c->receive, c->count, c->type, c->op, c->root, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_bcast(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_bcast(c->receive, c->count, c->type, c->root, c->comm);
    case FORM_NONBLOCKING:
        return rondo_ibcast(c->receive, c->count, c->type, c->root, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_bcast_on_stream(c->receive, c->count, c->type, c->root, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_bcast_init(c->receive, c->count, c->type, c->root, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_reduce_scatter(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_reduce_scatter_block(c->send, c->receive, c->count, c->type, c->op, c->comm);
    case FORM_NONBLOCKING:
        return rondo_ireduce_scatter_block(c->send, c->receive, c->count, c->type, c->op, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_reduce_scatter_block_on_stream(c->send, c->receive, c->count, c->type, c->op, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_reduce_scatter_block_init(c->send, c->receive, c->count, c->type, c->op, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_allgather(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_allgather(c->send, c->receive, c->count, c->type, c->comm);
    case FORM_NONBLOCKING:
        return rondo_iallgather(c->send, c->receive, c->count, c->type, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_allgather_on_stream(c->send, c->receive, c->count, c->type, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_allgather_init(c->send, c->receive, c->count, c->type, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_allgatherv(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_allgatherv(c->send, c->input_elements, c->receive, c->receive_counts, c->receive_displacements, c->type,
                                c->comm);
    case FORM_NONBLOCKING:
        return rondo_iallgatherv(c->send, c->input_elements, c->receive, c->receive_counts, c->receive_displacements, c->type,
                                 c->comm, c->requests);
    case FORM_STREAM:
        return rondo_allgatherv_on_stream(c->send, c->input_elements, c->receive, c->receive_counts, c->receive_displacements,
                                          c->type, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_allgatherv_init(c->send, c->input_elements, c->receive, c->receive_counts, c->receive_displacements,
                                     c->type, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_alltoall(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_alltoall(c->send, c->receive, c->count, c->type, c->comm);
    case FORM_NONBLOCKING:
        return rondo_ialltoall(c->send, c->receive, c->count, c->type, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_alltoall_on_stream(c->send, c->receive, c->count, c->type, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_alltoall_init(c->send, c->receive, c->count, c->type, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_alltoallv(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_alltoallv(c->send, c->send_counts, c->send_displacements, c->receive, c->receive_counts,
                               c->receive_displacements, c->type, c->comm);
    case FORM_NONBLOCKING:
        return rondo_ialltoallv(c->send, c->send_counts, c->send_displacements, c->receive, c->receive_counts,
                                c->receive_displacements, c->type, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_alltoallv_on_stream(c->send, c->send_counts, c->send_displacements, c->receive, c->receive_counts,
                                         c->receive_displacements, c->type, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_alltoallv_init(c->send, c->send_counts, c->send_displacements, c->receive, c->receive_counts,
                                    c->receive_displacements, c->type, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_gather(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_gather(c->send, c->receive, c->count, c->type, c->root, c->comm);
    case FORM_NONBLOCKING:
        return rondo_igather(c->send, c->receive, c->count, c->type, c->root, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_gather_on_stream(c->send, c->receive, c->count, c->type, c->root, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_gather_init(c->send, c->receive, c->count, c->type, c->root, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_scatter(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_scatter(c->send, c->receive, c->count, c->type, c->root, c->comm);
    case FORM_NONBLOCKING:
        return rondo_iscatter(c->send, c->receive, c->count, c->type, c->root, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_scatter_on_stream(c->send, c->receive, c->count, c->type, c->root, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_scatter_init(c->send, c->receive, c->count, c->type, c->root, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_barrier(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_barrier(c->comm);
    case FORM_NONBLOCKING:
        return rondo_ibarrier(c->comm, c->requests);
    case FORM_STREAM:
        return rondo_barrier_on_stream(c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_barrier_init(c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_scan(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_scan(c->send, c->receive, c->count, c->type, c->op, c->comm);
    case FORM_NONBLOCKING:
        return rondo_iscan(c->send, c->receive, c->count, c->type, c->op, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_scan_on_stream(c->send, c->receive, c->count, c->type, c->op, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_scan_init(c->send, c->receive, c->count, c->type, c->op, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_exscan(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_exscan(c->send, c->receive, c->count, c->type, c->op, c->comm);
    case FORM_NONBLOCKING:
        return rondo_iexscan(c->send, c->receive, c->count, c->type, c->op, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_exscan_on_stream(c->send, c->receive, c->count, c->type, c->op, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_exscan_init(c->send, c->receive, c->count, c->type, c->op, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

rondo_result_t invoke_alltonext(struct call *c, enum form form)
{
    c->request_count = 1;
    switch (form) {
    case FORM_BLOCKING:
        return rondo_alltonext(c->send, c->receive, c->count, c->type, c->comm);
    case FORM_NONBLOCKING:
        return rondo_ialltonext(c->send, c->receive, c->count, c->type, c->comm, c->requests);
    case FORM_STREAM:
        return rondo_alltonext_on_stream(c->send, c->receive, c->count, c->type, c->comm, c->stream);
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        return rondo_alltonext_init(c->send, c->receive, c->count, c->type, c->comm, &c->attr, c->requests);
    }
    return RONDO_ERR_ARGUMENT;
}

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

rondo_result_t invoke_sendrecv(struct call *c, enum form form)
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
    case FORM_PERSISTENT:
    case FORM_PERSISTENT_STREAM:
        if ((code = rondo_send_init(c->send, c->count, c->type, next, c->comm, &c->attr, &c->requests[0])) != RONDO_SUCCESS)
            return code;
        return rondo_recv_init(c->receive, c->count, c->type, previous, c->comm, &c->attr, &c->requests[1]);
    }
    return RONDO_ERR_ARGUMENT;
}
