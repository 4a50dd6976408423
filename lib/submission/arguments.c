/* What a call may not be, and what of it must agree between ranks (lib/submission/arguments.h). */
#include "lib/submission/arguments.h"

#include "lib/base/error.h"
#include "transport/memory/cuda_memory.h"

#include <stdint.h>
#include <string.h>

#define FAIL(code, ...) return rondo_fail(code, __VA_ARGS__)

/* A call that this thread has found right: the same again is, but that the memory of its buffers may have become another's. */
struct checked {
    const struct rondo_comm *comm;
    uint64_t id;
    int rank, size;
    struct rondo_call call;
    struct {
        const void *address;
        size_t bytes;
    } buffers[2];
    int used; /* of the two */
};
#define CHECKED 4 /* by kind and root */

static struct checked *checked_place(const struct rondo_call *call)
{
    static _Thread_local struct checked table[CHECKED];
    return &table[((unsigned) call->kind + (unsigned) call->root) % CHECKED];
}

/* Of calls without arrays, which may change. In this order: members that lie side by side would be loaded together, which waits
 * for the caller's stores of each. */
static int is_known(const struct checked *known, const struct rondo_comm *comm, const struct rondo_call *call)
{
    const struct rondo_call *before = &known->call;
    return known->comm == comm && known->id == comm->id && known->rank == comm->rank && known->size == comm->size &&
           before->send == call->send && before->recv == call->recv && before->type == call->type &&
           before->count == call->count && before->op == call->op && before->kind == call->kind && before->root == call->root;
}

/* A buffer of count elements: present if count is not 0, aligned, inside the address space. What memory it is is looked at
 * later. */
static rondo_result_t check_buffer(struct checked *checked, const struct rondo_call *call, const char *name, const void *buffer,
                                   size_t count)
{
    size_t element = rondo_type_bytes(call->type);
    const char *function = rondo_kind_name(call->kind);
    if (count > PTRDIFF_MAX / element)
        FAIL(RONDO_ERR_ARGUMENT, "%s: %zu elements of %s are more bytes than an object can have", function, count,
             rondo_type_name(call->type));
    if (count == 0)
        return RONDO_SUCCESS;
    if (buffer == NULL)
        FAIL(RONDO_ERR_BUFFER, "%s: %s is NULL for %zu elements", function, name, count);
    if (buffer == RONDO_IN_PLACE)
        FAIL(RONDO_ERR_BUFFER, "%s: RONDO_IN_PLACE is not allowed as %s on this rank", function, name);
    if ((uintptr_t) buffer % element != 0)
        FAIL(RONDO_ERR_BUFFER, "%s: %s %p is not aligned to the %zu bytes of %s", function, name, buffer, element,
             rondo_type_name(call->type));
    if ((uintptr_t) buffer > UINTPTR_MAX - count * element)
        FAIL(RONDO_ERR_BUFFER, "%s: %s %p + %zu elements wraps around the address space", function, name, buffer, count);
    checked->buffers[checked->used].address = buffer;
    checked->buffers[checked->used++].bytes = count * element;
    return RONDO_SUCCESS;
}

static rondo_result_t check_apart(const struct rondo_call *call, int rank, const void *send, size_t send_count,
                                  const void *receive, size_t receive_count)
{
    size_t element = rondo_type_bytes(call->type);
    uintptr_t s = (uintptr_t) send, r = (uintptr_t) receive;
    if (send_count == 0 || receive_count == 0 || send == NULL || receive == NULL)
        return RONDO_SUCCESS;
    /* A rank's own block of the input is read by itself alone, and of every element before its result is written. */
    if (call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK && r == s + (size_t) rank * receive_count * element)
        return RONDO_SUCCESS;
    if (s < r + receive_count * element && r < s + send_count * element)
        FAIL(RONDO_ERR_BUFFER, "%s: send [%p, +%zu bytes) and recv [%p, +%zu bytes) overlap%s", rondo_kind_name(call->kind),
             send, send_count * element, receive, receive_count * element, s == r ? "; use RONDO_IN_PLACE" : "");
    return RONDO_SUCCESS;
}

/* Extent in elements of blocks of given counts and displacements. */
static rondo_result_t extent_of(const struct rondo_call *call, const char *name, const size_t *counts,
                                const size_t *displacements, int blocks, size_t *extent)
{
    const char *function = rondo_kind_name(call->kind);
    *extent = 0;
    if (counts == NULL || displacements == NULL)
        FAIL(RONDO_ERR_ARGUMENT, "%s: %s counts or displacements are NULL", function, name);
    for (int i = 0; i < blocks; i++) {
        if (counts[i] > PTRDIFF_MAX || displacements[i] > PTRDIFF_MAX - counts[i])
            FAIL(RONDO_ERR_ARGUMENT, "%s: %s count %zu at displacement %zu of rank %d overflows", function, name, counts[i],
                 displacements[i], i);
        if (counts[i] > 0 && displacements[i] + counts[i] > *extent)
            *extent = displacements[i] + counts[i];
    }
    return RONDO_SUCCESS;
}

static rondo_result_t check_disjoint(const struct rondo_call *call, const size_t *counts, const size_t *displacements,
                                     int blocks)
{
    for (int i = 0; i < blocks; i++)
        for (int k = i + 1; k < blocks; k++)
            if (counts[i] > 0 && counts[k] > 0 && displacements[i] < displacements[k] + counts[k] &&
                displacements[k] < displacements[i] + counts[i])
                FAIL(RONDO_ERR_ARGUMENT, "%s: the received blocks of ranks %d [%zu, +%zu) and %d [%zu, +%zu) overlap",
                     rondo_kind_name(call->kind), i, displacements[i], counts[i], k, displacements[k], counts[k]);
    return RONDO_SUCCESS;
}

/* On all ranks alike, also those that have no use for the whole: a call must not be refused on some only. */
static rondo_result_t check_count(const struct rondo_comm *comm, const struct rondo_call *call)
{
    int blocks = call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK || call->kind == RONDO_KIND_ALLGATHER ||
                 call->kind == RONDO_KIND_ALLTOALL || call->kind == RONDO_KIND_GATHER || call->kind == RONDO_KIND_SCATTER;
    size_t most = PTRDIFF_MAX / rondo_type_bytes(call->type) / (blocks ? (size_t) comm->size : 1);
    if (call->count > most)
        FAIL(RONDO_ERR_ARGUMENT, "%s: count %zu of %s%s is more bytes than an object can have", rondo_kind_name(call->kind),
             call->count, rondo_type_name(call->type), blocks ? " for each rank" : "");
    return RONDO_SUCCESS;
}

static rondo_result_t check_buffers(const struct rondo_comm *comm, const struct rondo_call *call, struct checked *checked)
{
    size_t all = call->count * (size_t) comm->size, send = call->count, receive = call->count;
    int in_place = call->send == RONDO_IN_PLACE, at_root = comm->rank == call->root, uses_receive = 1, uses_send = 1;
    int may_be_in_place = 1;
    rondo_result_t result = RONDO_SUCCESS;
    switch (call->kind) {
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        send = all;
        receive = in_place ? all : call->count;
        break;
    case RONDO_KIND_ALLGATHER:
        receive = all;
        break;
    case RONDO_KIND_ALLTOALL:
        send = receive = all;
        break;
    case RONDO_KIND_GATHER:
        receive = all;
        uses_receive = may_be_in_place = at_root;
        break;
    case RONDO_KIND_SCATTER: /* in place is about recv here */
        send = all;
        uses_send = at_root;
        uses_receive = !(at_root && call->recv == RONDO_IN_PLACE);
        may_be_in_place = in_place = 0;
        break;
    case RONDO_KIND_REDUCE:
        uses_receive = may_be_in_place = at_root;
        break;
    case RONDO_KIND_BCAST:
    case RONDO_KIND_RECEIVE_FROM:
        uses_send = in_place = 0;
        break;
    case RONDO_KIND_SEND_TO:
        uses_receive = may_be_in_place = in_place = 0;
        break;
    case RONDO_KIND_ALLTONEXT:
        uses_send = comm->rank < comm->size - 1;
        uses_receive = comm->rank > 0;
        may_be_in_place = in_place = 0;
        break;
    case RONDO_KIND_EXSCAN:
        uses_receive = comm->rank > 0 || in_place;
        break;
    case RONDO_KIND_ALLGATHERV:
        result = extent_of(call, "recv", call->receive_counts, call->receive_displacements, comm->size, &receive);
        if (result == RONDO_SUCCESS)
            result = check_disjoint(call, call->receive_counts, call->receive_displacements, comm->size);
        if (result == RONDO_SUCCESS && !in_place && call->count != call->receive_counts[comm->rank])
            FAIL(RONDO_ERR_ARGUMENT, "allgatherv: sendcount %zu is not counts[%d] = %zu", call->count, comm->rank,
                 call->receive_counts[comm->rank]);
        break;
    case RONDO_KIND_ALLTOALLV:
        result = extent_of(call, "recv", call->receive_counts, call->receive_displacements, comm->size, &receive);
        if (result == RONDO_SUCCESS)
            result = extent_of(call, "send", call->send_counts, call->send_displacements, comm->size, &send);
        if (result == RONDO_SUCCESS)
            result = check_disjoint(call, call->receive_counts, call->receive_displacements, comm->size);
        if (result == RONDO_SUCCESS && call->send_counts[comm->rank] != call->receive_counts[comm->rank])
            FAIL(RONDO_ERR_ARGUMENT, "alltoallv: this rank sends itself %zu elements and receives %zu",
                 call->send_counts[comm->rank], call->receive_counts[comm->rank]);
        may_be_in_place = in_place = 0;
        break;
    case RONDO_KIND_CUSTOM:
        if (call->count > PTRDIFF_MAX / rondo_type_bytes(call->type) / (call->custom_chunks[0] + call->custom_chunks[1] + 1))
            FAIL(RONDO_ERR_ARGUMENT, "custom: count %zu of %s is more bytes than an object can have", call->count,
                 rondo_type_name(call->type));
        send = call->count * call->custom_chunks[0];
        receive = call->count * call->custom_chunks[1];
        may_be_in_place = in_place = 0;
        break;
    default:
        break;
    }
    if (result == RONDO_SUCCESS && uses_send && !(in_place && may_be_in_place))
        result = check_buffer(checked, call, "send", call->send, send);
    if (result == RONDO_SUCCESS && uses_receive)
        result = check_buffer(checked, call, call->kind == RONDO_KIND_BCAST || rondo_kind_is_p2p(call->kind) ? "buf" : "recv",
                              call->recv, receive);
    if (result == RONDO_SUCCESS && uses_send && uses_receive && !(in_place && may_be_in_place))
        result = check_apart(call, comm->rank, call->send, send, call->recv, receive);
    return result;
}

static rondo_result_t check_arguments(const struct rondo_comm *comm, const struct rondo_call *call, struct checked *checked)
{
    const char *function = rondo_kind_name(call->kind);
    if (rondo_type_bytes(call->type) == 0)
        FAIL(RONDO_ERR_ARGUMENT, "%s: unknown datatype %d", function, (int) call->type);
    if (rondo_kind_reduces(call->kind)) {
        if ((unsigned) call->op >= RONDO_OP_COUNT)
            FAIL(RONDO_ERR_ARGUMENT, "%s: unknown operator %d", function, (int) call->op);
        if ((call->op == RONDO_BAND || call->op == RONDO_BOR || call->op == RONDO_BXOR) && !rondo_type_is_integer(call->type))
            FAIL(RONDO_ERR_ARGUMENT, "%s: the bitwise operator %s is not defined for %s", function, rondo_op_name(call->op),
                 rondo_type_name(call->type));
        if (call->op == RONDO_AVG &&
            (call->kind == RONDO_KIND_SCAN || call->kind == RONDO_KIND_EXSCAN || call->kind == RONDO_KIND_CUSTOM))
            FAIL(RONDO_ERR_ARGUMENT, "%s: the operator avg is not defined for partial reductions", function);
    }
    if ((rondo_kind_is_rooted(call->kind) || rondo_kind_is_p2p(call->kind)) && (call->root < 0 || call->root >= comm->size))
        FAIL(RONDO_ERR_ARGUMENT, "%s: %s %d is not a rank of a communicator of %d", function,
             rondo_kind_is_rooted(call->kind) ? "root" : "peer", call->root, comm->size);
    rondo_result_t result = check_count(comm, call);
    return result == RONDO_SUCCESS ? check_buffers(comm, call, checked) : result;
}

rondo_result_t rondo_call_check(const struct rondo_comm *comm, const struct rondo_call *call)
{
    struct checked *checked = checked_place(call);
    rondo_result_t result = RONDO_SUCCESS;
    if (call->kind == RONDO_KIND_BARRIER)
        return RONDO_SUCCESS;
    if (!is_known(checked, comm, call)) {
        memset(checked, 0, sizeof(*checked));
        result = check_arguments(comm, call, checked);
        if (result == RONDO_SUCCESS && !rondo_kind_has_arrays(call->kind)) {
            checked->comm = comm;
            checked->id = comm->id;
            checked->rank = comm->rank;
            checked->size = comm->size;
            checked->call = *call;
        }
    }
    for (int b = 0; b < checked->used && result == RONDO_SUCCESS; b++)
        result = rondo_buffer_check(comm->runtime->device_index, checked->buffers[b].address, checked->buffers[b].bytes,
                                    rondo_kind_name(call->kind));
    return result;
}

/* What all ranks must have in common. Sends and receives: what the two must. */
void rondo_call_signature(const struct rondo_comm *comm, const struct rondo_call *call, struct rondo_signature *signature)
{
    memset(signature, 0, sizeof(*signature));
    signature->kind = rondo_kind_is_p2p(call->kind) ? RONDO_KIND_SEND_TO : call->kind;
    if (call->kind == RONDO_KIND_BARRIER)
        return;
    signature->type = (uint32_t) call->type;
    signature->op = rondo_kind_reduces(call->kind) ? (uint32_t) call->op : 0;
    signature->root = rondo_kind_is_rooted(call->kind) ? (uint32_t) call->root : 0;
    signature->rate = call->rate;
    signature->feedback = (uint32_t) call->feedback;
    signature->count = call->kind == RONDO_KIND_ALLTOALLV ? 0 : call->count;
    if (call->kind == RONDO_KIND_ALLGATHERV) {
        signature->count = 1469598103934665603u;
        for (int i = 0; i < comm->size; i++)
            signature->count = (signature->count ^ call->receive_counts[i]) * 1099511628211u;
    }
}
