/* Argument checks and the signature of a call, both derived from the collective's row of lib/call/collective.c
 * (lib/submission/arguments.h). Relies on transport/memory/cuda_memory.h to look at the memory behind a buffer. */
#include "lib/submission/arguments.h"

#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/call/elements.h"
#include "lib/call/user_operators.h"
#include "transport/memory/cuda_memory.h"

#include <stdint.h>
#include <string.h>

#define FAIL(code, ...) return rondo_fail(code, __VA_ARGS__)

/* A call whose arguments the calling thread has checked: an equal call is right, too. Only the memory behind its buffers may
 * have changed since, so that is checked every time. */
struct checked {
    const struct rondo_comm *comm;
    uint64_t id;
    int rank, size;
    struct rondo_call call;
    struct {
        const void *address;
        size_t bytes;
    } buffers[2];
    int used; /* how many of the two */
};
#define CHECKED 4 /* of a thread */

/* The call's place in the calling thread's table, by kind and root. */
static struct checked *checked_place(const struct rondo_call *call)
{
    static _Thread_local struct checked table[CHECKED];
    return &table[((unsigned) call->kind + (unsigned) call->root) % CHECKED];
}

/* Whether the call equals the checked one. Calls with arrays are never known, because the arrays' contents may change. Fields
 * that lie side by side are not compared one after the other: the compiler would load them together, and such a load waits for
 * the caller's separate stores. */
static int is_known(const struct checked *known, const struct rondo_comm *comm, const struct rondo_call *call)
{
    const struct rondo_call *before = &known->call;
    return known->comm == comm && known->id == comm->id && known->rank == comm->rank && known->size == comm->size &&
           before->send == call->send && before->recv == call->recv && before->type == call->type &&
           before->count == call->count && before->op == call->op && before->kind == call->kind && before->root == call->root;
}

/* Checks that a buffer of count elements is not NULL (unless count is 0), is aligned and lies inside the address space, and
 * notes it in *checked. rondo_buffer_check checks later what memory it is. */
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
    if ((uintptr_t) buffer % rondo_type_alignment(call->type) != 0)
        FAIL(RONDO_ERR_BUFFER, "%s: %s %p is not aligned to the %zu bytes of %s", function, name, buffer,
             rondo_type_alignment(call->type), rondo_type_name(call->type));
    if ((uintptr_t) buffer > UINTPTR_MAX - count * element)
        FAIL(RONDO_ERR_BUFFER, "%s: %s %p + %zu elements wraps around the address space", function, name, buffer, count);
    checked->buffers[checked->used].address = buffer;
    checked->buffers[checked->used++].bytes = count * element;
    return RONDO_SUCCESS;
}

/* Checks that the two buffers do not overlap, unless the collective allows that the output is a block of the input. */
static rondo_result_t check_apart(const struct rondo_call *call, int rank, const void *send, size_t send_count,
                                  const void *receive, size_t receive_count)
{
    size_t element = rondo_type_bytes(call->type);
    uintptr_t s = (uintptr_t) send, r = (uintptr_t) receive;
    if (send_count == 0 || receive_count == 0 || send == NULL || receive == NULL)
        return RONDO_SUCCESS;
    /* Only this rank reads its own block of the input, and it reads every element before it writes the result there. */
    if (call->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK && r == s + (size_t) rank * receive_count * element)
        return RONDO_SUCCESS;
    if (s < r + receive_count * element && r < s + send_count * element)
        FAIL(RONDO_ERR_BUFFER, "%s: send [%p, +%zu bytes) and recv [%p, +%zu bytes) overlap%s", rondo_kind_name(call->kind),
             send, send_count * element, receive, receive_count * element, s == r ? "; use RONDO_IN_PLACE" : "");
    return RONDO_SUCCESS;
}

struct rondo_blocks rondo_call_blocks(const struct rondo_comm *comm, enum rondo_kind kind)
{
    struct rondo_blocks blocks = {comm->rank, comm->size, comm->size, comm->size};
    if (rondo_kind_is_neighborhood(kind)) {
        blocks.sent = comm->graph != NULL ? comm->graph->destinations : 0;
        blocks.received = comm->graph != NULL ? comm->graph->sources : 0;
    }
    return blocks;
}

/* One of the two pairs of arrays of a call, as the user gave them. */
struct arrays {
    const char *name; /* of the buffer */
    const size_t *counts, *displacements;
    const rondo_datatype_t *types;
    int blocks;
    int adjacent; /* the blocks follow each other: there are no displacements */
};

/* Sets *extent to the elements that the blocks span: bytes, if they have types of their own. */
static rondo_result_t extent_of(const struct rondo_call *call, const struct arrays *arrays, size_t *extent)
{
    const char *function = rondo_kind_name(call->kind), *name = arrays->name;
    size_t end = 0;
    *extent = 0;
    if (arrays->blocks > 0 && (arrays->counts == NULL || (!arrays->adjacent && arrays->displacements == NULL)))
        FAIL(RONDO_ERR_ARGUMENT, "%s: %s counts%s are NULL", function, name, arrays->adjacent ? "" : " or displacements");
    if (arrays->blocks > 0 && rondo_kind_has_types(call->kind) && arrays->types == NULL)
        FAIL(RONDO_ERR_ARGUMENT, "%s: %s types are NULL", function, name);
    for (int i = 0; i < arrays->blocks; i++) {
        size_t element = arrays->types != NULL ? rondo_type_bytes(arrays->types[i]) : 1;
        size_t start = arrays->adjacent ? end : arrays->displacements[i];
        if (element == 0)
            FAIL(RONDO_ERR_ARGUMENT, "%s: unknown datatype %d of %s block %d", function, (int) arrays->types[i], name, i);
        if (arrays->counts[i] > PTRDIFF_MAX / element || start > PTRDIFF_MAX - arrays->counts[i] * element)
            FAIL(RONDO_ERR_ARGUMENT, "%s: %s count %zu at displacement %zu of block %d overflows", function, name,
                 arrays->counts[i], start, i);
        end = start + arrays->counts[i] * element;
        if (arrays->counts[i] > 0 && end > *extent)
            *extent = end;
    }
    return RONDO_SUCCESS;
}

/* The arrays of the call's input or output, where that has some and this rank's are significant. In place, the input's are the
 * output's. */
static int arrays_of(const struct rondo_comm *comm, const struct rondo_call *call, enum rondo_buffer buffer,
                     struct arrays *arrays)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const int input = buffer == RONDO_INPUT, receives = rule->recv_extent == RONDO_EXTENT_COUNTS;
    const struct rondo_blocks blocks = rondo_call_blocks(comm, call->kind);
    if ((input ? rule->send_extent : rule->recv_extent) != RONDO_EXTENT_COUNTS ||
        !rondo_ranks_include(input ? rule->send_ranks : rule->recv_ranks, comm->rank, comm->size, call->root))
        return 0;
    if (input && !(receives && call->send == RONDO_IN_PLACE))
        *arrays = (struct arrays){"send", call->send_counts, call->send_displacements, call->send_types, blocks.sent, 0};
    else
        *arrays =
            (struct arrays){"recv", call->receive_counts, call->receive_displacements, call->receive_types, blocks.received, 0};
    if (rule->reduces) { /* a reduce-scatter's input has the blocks that the ranks receive */
        arrays->counts = call->receive_counts;
        arrays->name = "recv";
        arrays->adjacent = 1;
    }
    return 1;
}

/* Checks that no two received blocks overlap. */
static rondo_result_t check_disjoint(const struct rondo_call *call, const struct arrays *arrays)
{
    for (int i = 0; i < arrays->blocks; i++)
        for (int k = i + 1; k < arrays->blocks; k++) {
            const size_t one = rondo_block_count(arrays->counts, arrays->types, i), a = arrays->displacements[i];
            const size_t other = rondo_block_count(arrays->counts, arrays->types, k), b = arrays->displacements[k];
            if (one > 0 && other > 0 && a < b + other && b < a + one)
                FAIL(RONDO_ERR_ARGUMENT, "%s: the received blocks %d [%zu, +%zu) and %d [%zu, +%zu) overlap",
                     rondo_kind_name(call->kind), i, a, one, k, b, other);
        }
    return RONDO_SUCCESS;
}

/* Checks the size of the largest buffer, also on ranks that do not have it: all ranks must refuse a call, or none. */
static rondo_result_t check_count(const struct rondo_comm *comm, const struct rondo_call *call)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    int blocks = rondo_kind_has_blocks(call->kind);
    const struct rondo_blocks many = rondo_call_blocks(comm, call->kind);
    size_t largest = !blocks || many.sent + many.received == 0 ? 1
                     : many.sent > many.received               ? (size_t) many.sent
                                                               : (size_t) many.received;
    if (rule->recv_extent == RONDO_EXTENT_CHUNKS)
        largest = call->custom_chunks[RONDO_INPUT] + call->custom_chunks[RONDO_OUTPUT] + 1;
    if (call->count > PTRDIFF_MAX / rondo_type_bytes(call->type) / largest)
        FAIL(RONDO_ERR_ARGUMENT, "%s: count %zu of %s%s is more bytes than an object can have", rule->name, call->count,
             rondo_type_name(call->type),
             !blocks              ? ""
             : rule->neighborhood ? " for each neighbour"
                                  : " for each rank");
    return RONDO_SUCCESS;
}

/* Checks that what this rank sends itself is as long as what it receives of it. one: its block of the arrays. */
static rondo_result_t check_own(const struct rondo_comm *comm, const struct rondo_call *call, size_t one)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const int both = rule->send_extent == RONDO_EXTENT_COUNTS && rule->recv_extent == RONDO_EXTENT_COUNTS;
    const int in_place = call->send == RONDO_IN_PLACE || call->recv == RONDO_IN_PLACE;
    if (in_place || rule->reduces) /* one count says it */
        return RONDO_SUCCESS;
    if (both) {
        const size_t sent = rondo_block_count(call->send_counts, call->send_types, comm->rank);
        if (sent != one)
            FAIL(RONDO_ERR_ARGUMENT, "%s: this rank sends itself %zu %s and receives %zu", rule->name, sent,
                 call->send_types != NULL ? "bytes" : "elements", one);
    } else if (call->count != one) {
        FAIL(RONDO_ERR_ARGUMENT, "%s: %s %zu is not %s[%d] = %zu", rule->name,
             rule->recv_extent == RONDO_EXTENT_COUNTS ? "sendcount" : "recvcount", call->count,
             rule->recv_extent == RONDO_EXTENT_COUNTS ? "counts" : "sendcounts", comm->rank, one);
    }
    return RONDO_SUCCESS;
}

/* Checks the arrays of a call that has them, where this rank's are significant. */
static rondo_result_t check_arrays(const struct rondo_comm *comm, const struct rondo_call *call)
{
    struct arrays sent, received;
    size_t extent;
    rondo_result_t result = RONDO_SUCCESS;
    const int sends = arrays_of(comm, call, RONDO_INPUT, &sent), receives = arrays_of(comm, call, RONDO_OUTPUT, &received);
    if (receives)
        result = extent_of(call, &received, &extent);
    if (result == RONDO_SUCCESS && sends)
        result = extent_of(call, &sent, &extent);
    if (result == RONDO_SUCCESS && receives)
        result = check_disjoint(call, &received);
    if (result == RONDO_SUCCESS && (sends || receives) && !rondo_kind_is_neighborhood(call->kind))
        result = check_own(
            comm, call,
            rondo_block_count(receives ? received.counts : sent.counts, receives ? received.types : sent.types, comm->rank));
    return result;
}

/* The elements of the input or output, with the gaps between blocks. The arrays have been checked. */
static size_t elements_of(const struct rondo_comm *comm, const struct rondo_call *call, enum rondo_buffer buffer)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const struct rondo_blocks blocks = rondo_call_blocks(comm, call->kind);
    struct arrays arrays;
    size_t extent = 0;
    switch (buffer == RONDO_INPUT ? rule->send_extent : rule->recv_extent) {
    case RONDO_EXTENT_BLOCKS:
        return call->count * (size_t) (buffer == RONDO_INPUT ? blocks.sent : blocks.received);
    case RONDO_EXTENT_CHUNKS:
        return call->count * call->custom_chunks[buffer];
    case RONDO_EXTENT_COUNTS:
        if (arrays_of(comm, call, buffer, &arrays))
            extent_of(call, &arrays, &extent);
        return extent;
    case RONDO_EXTENT_BLOCK:
        break;
    }
    return rule->reduces && rule->send_extent == RONDO_EXTENT_COUNTS ? call->receive_counts[comm->rank] : call->count;
}

/* Checks the arrays and the buffers that this rank uses, and notes the buffers in *checked. */
static rondo_result_t check_buffers(const struct rondo_comm *comm, const struct rondo_call *call, struct checked *checked)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    int at_root = comm->rank == call->root, one_buffer = rule->placement == RONDO_PLACEMENT_SHARED;
    int uses_send = !one_buffer && rondo_ranks_include(rule->send_ranks, comm->rank, comm->size, call->root);
    int uses_receive = rondo_ranks_include(rule->recv_ranks, comm->rank, comm->size, call->root);
    rondo_result_t result = check_arrays(comm, call);
    if (result != RONDO_SUCCESS)
        return result;
    size_t send = elements_of(comm, call, RONDO_INPUT), receive = elements_of(comm, call, RONDO_OUTPUT);
    if (call->send == RONDO_IN_PLACE &&
        (rule->placement == RONDO_PLACEMENT_SEND || (rule->placement == RONDO_PLACEMENT_SEND_AT_ROOT && at_root))) {
        uses_send = 0; /* recv has the input, also on a rank without output */
        uses_receive = 1;
        receive = rule->send_extent == RONDO_EXTENT_BLOCK ? receive : send;
    }
    if (rule->placement == RONDO_PLACEMENT_RECV_AT_ROOT && at_root && call->recv == RONDO_IN_PLACE)
        uses_receive = 0;
    if (uses_send)
        result = check_buffer(checked, call, rule->point_to_point ? "buf" : "send", call->send, send);
    if (result == RONDO_SUCCESS && uses_receive)
        result = check_buffer(checked, call, one_buffer || rule->point_to_point ? "buf" : "recv", call->recv, receive);
    if (result == RONDO_SUCCESS && uses_send && uses_receive)
        result = check_apart(call, comm->rank, call->send, send, call->recv, receive);
    return result;
}

/* Checks the operator of a call that has one: that it exists, combines the type, and that the ranks' devices can do it. */
static rondo_result_t check_operator(const struct rondo_comm *comm, const struct rondo_call *call)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const char *function = rule->name;
    const int user = rondo_op_is_user(call->op), custom = rule->postcondition == RONDO_POSTCONDITION_REQUIRED;
    const size_t bytes = rondo_type_bytes(call->type);
    rondo_op_function_t *operator_function;
    void *argument;
    if (!user && (unsigned) call->op >= RONDO_OP_COUNT)
        FAIL(RONDO_ERR_ARGUMENT, "%s: unknown operator %d", function, (int) call->op);
    if (user && !rondo_op_find(call->op, &operator_function, &argument))
        FAIL(RONDO_ERR_ARGUMENT, "%s: operator %#x does not exist, or has been freed", function, (unsigned) call->op);
    if (!rondo_op_is_defined(call->op, call->type))
        FAIL(RONDO_ERR_ARGUMENT, "%s: the operator %s is not defined for %s", function, rondo_op_name(call->op),
             rondo_type_name(call->type));
    if (call->op == RONDO_AVG && (custom || rule->postcondition == RONDO_POSTCONDITION_PREFIX ||
                                  rule->postcondition == RONDO_POSTCONDITION_PREFIX_BEFORE))
        FAIL(RONDO_ERR_ARGUMENT, "%s: the operator avg is not defined for partial reductions", function);
    if (rondo_op_is_ordered(call->op) && custom)
        FAIL(RONDO_ERR_UNSUPPORTED, "%s: programs with requirements of their own keep no order, which operator %#x needs",
             function, (unsigned) call->op);
    if (!comm->hosts_only && !rondo_elements_of(call).on_gpus)
        FAIL(RONDO_ERR_UNSUPPORTED,
             "%s: the operator %s runs on host devices alone for %s, and a rank of the communicator is on a GPU", function,
             rondo_op_name(call->op), rondo_type_name(call->type));
    if (user && bytes > RONDO_COMBINED_BYTES_MAX)
        FAIL(RONDO_ERR_UNSUPPORTED, "%s: an element of %zu bytes can be moved but not combined, which takes at most %d bytes",
             function, bytes, RONDO_COMBINED_BYTES_MAX);
    return RONDO_SUCCESS;
}

/* Checks everything but the memory behind the buffers. */
static rondo_result_t check_arguments(const struct rondo_comm *comm, const struct rondo_call *call, struct checked *checked)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const char *function = rule->name;
    if (rondo_type_bytes(call->type) == 0)
        FAIL(RONDO_ERR_ARGUMENT, "%s: unknown datatype %d", function, (int) call->type);
    rondo_result_t result = rule->reduces ? check_operator(comm, call) : RONDO_SUCCESS;
    if (result != RONDO_SUCCESS)
        return result;
    if ((rule->rooted || rule->point_to_point) && (call->root < 0 || call->root >= comm->size))
        FAIL(RONDO_ERR_ARGUMENT, "%s: %s %d is not a rank of a communicator of %d", function, rule->rooted ? "root" : "peer",
             call->root, comm->size);
    if (rule->neighborhood && comm->graph == NULL)
        FAIL(RONDO_ERR_ARGUMENT, "%s: the communicator has no graph (rondo_graph_create, rondo_cart_create)", function);
    result = check_count(comm, call);
    return result == RONDO_SUCCESS ? check_buffers(comm, call, checked) : result;
}

rondo_result_t rondo_call_check(const struct rondo_comm *comm, const struct rondo_call *call)
{
    struct checked *checked = checked_place(call);
    rondo_result_t result = RONDO_SUCCESS;
    if (!is_known(checked, comm, call)) {
        if (rondo_collective_of(call->kind)->agreement == RONDO_AGREE_NOTHING) /* a collective without arguments */
            return RONDO_SUCCESS;
        memset(checked, 0, sizeof(*checked));
        result = check_arguments(comm, call, checked);
        /* An operator of the user may be freed before the next call. */
        if (result == RONDO_SUCCESS && !rondo_kind_has_counts(call->kind) && call->kind != RONDO_KIND_CUSTOM &&
            !rondo_op_is_user(call->op)) {
            checked->comm = comm;
            checked->id = comm->id;
            checked->rank = comm->rank;
            checked->size = comm->size;
            checked->call = *call;
        }
    }
    for (int b = 0; b < checked->used && result == RONDO_SUCCESS; b++)
        result = rondo_buffer_check(comm->runtime->device_index, checked->buffers[b].address, checked->buffers[b].bytes,
                                    rondo_collective_of(call->kind)->rule.name);
    return result;
}

void rondo_call_signature(const struct rondo_comm *comm, const struct rondo_call *call, struct rondo_signature *signature)
{
    const struct rondo_collective *collective = rondo_collective_of(call->kind);
    memset(signature, 0, sizeof(*signature));
    /* The two ends of a message compare one kind. */
    signature->kind = collective->rule.point_to_point ? RONDO_KIND_SEND_TO : call->kind;
    if (collective->agreement == RONDO_AGREE_NOTHING)
        return;
    signature->type = (uint32_t) call->type; /* blocks with types of their own: the one byte's */
    signature->op = collective->rule.reduces ? rondo_op_code(call->op) : 0;
    signature->root = collective->rule.rooted ? (uint32_t) call->root : 0;
    signature->rate = call->rate;
    signature->feedback = (uint32_t) call->feedback;
    for (const char *at = call->program; at != NULL && *at != '\0'; at++) /* FNV-1a */
        signature->program = (signature->program ^ (unsigned char) *at) * 16777619u;
    if (collective->agreement == RONDO_AGREE_COUNT)
        signature->count = call->count;
    if (collective->agreement == RONDO_AGREE_COUNTS) {
        signature->count = RONDO_HASH_BASIS;
        for (int i = 0; i < comm->size; i++)
            signature->count = rondo_hash_word(signature->count, call->receive_counts[i]);
    }
}
