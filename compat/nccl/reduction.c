/* NCCL's data types and operators in Rondo's terms, sums of inputs that are multiplied by a scalar first among them. */
#include "compat/nccl/shim.h"

#include "compat/nccl/scale.h"

#include <stdlib.h>
#include <string.h>

/* ---- types: a table by NCCL's numbers ---- */

static const rondo_datatype_t types[ncclNumTypes] = {
    [ncclInt8] = RONDO_INT8,         [ncclUint8] = RONDO_UINT8,           [ncclInt32] = RONDO_INT32,
    [ncclUint32] = RONDO_UINT32,     [ncclInt64] = RONDO_INT64,           [ncclUint64] = RONDO_UINT64,
    [ncclFloat16] = RONDO_FLOAT16,   [ncclFloat32] = RONDO_FLOAT,         [ncclFloat64] = RONDO_DOUBLE,
    [ncclBfloat16] = RONDO_BFLOAT16, [ncclFloat8e4m3] = RONDO_FLOAT8E4M3, [ncclFloat8e5m2] = RONDO_FLOAT8E5M2,
};

ncclResult_t rondo_nccl_type(ncclDataType_t type, const char *function, rondo_datatype_t *result)
{
    if ((unsigned) type >= ncclNumTypes)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: unknown data type %d", function, (int) type);
    *result = types[type];
    return ncclSuccess;
}

size_t rondo_nccl_type_bytes(rondo_datatype_t type)
{
    size_t bytes = 0;
    (void) rondo_datatype_size(type, &bytes);
    return bytes;
}

/* ---- operators ---- */

#define INDEX_BITS 12 /* of a handle; the rest tells communicators apart, so that no other one's is taken for its own */

static int salt_of(const struct ncclComm *comm)
{
    return (int) ((((uintptr_t) comm >> 4) * 2654435761u >> 13) & 0x3ffff);
}

static int handle_of(const struct ncclComm *comm, int index)
{
    return (salt_of(comm) << INDEX_BITS | index) + ncclNumOps;
}

/* Under the communicator's lock; NULL: it is no handle of this communicator. */
static struct rondo_nccl_scalar **find(const struct ncclComm *comm, ncclRedOp_t op)
{
    int value = (int) op - ncclNumOps;
    int index = value & ((1 << INDEX_BITS) - 1);
    if (value < 0 || value >> INDEX_BITS != salt_of(comm) || index >= comm->scalar_count || comm->scalars[index] == NULL)
        return NULL;
    return &comm->scalars[index];
}

ncclResult_t rondo_nccl_operator(struct ncclComm *comm, ncclRedOp_t op, const char *function,
                                 struct rondo_nccl_operation *operation)
{
    static const rondo_op_t ops[ncclNumOps] = {
        [ncclSum] = RONDO_SUM, [ncclProd] = RONDO_PROD, [ncclMax] = RONDO_MAX, [ncclMin] = RONDO_MIN, [ncclAvg] = RONDO_AVG};
    if ((int) op >= 0 && (int) op < ncclNumOps) {
        operation->op = ops[op];
        return ncclSuccess;
    }
    pthread_mutex_lock(&comm->lock);
    struct rondo_nccl_scalar **found = find(comm, op);
    if (found != NULL)
        operation->scalar = **found;
    pthread_mutex_unlock(&comm->lock);
    if (found == NULL)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: operator %d is none of NCCL's, and none made on communicator %p",
                               function, (int) op, (void *) comm);
    if (operation->scalar.type != operation->type)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: operator %d was made for another data type", function, (int) op);
    operation->op = RONDO_SUM;
    operation->scaled = 1;
    return ncclSuccess;
}

void *rondo_nccl_scale_place(const struct rondo_nccl_operation *operation, const void **from, size_t *elements)
{
    const rondo_collective_t *rule = rondo_nccl_rule(operation->kind);
    int in_place = operation->send == RONDO_IN_PLACE, blocks = rule->send_extent == RONDO_EXTENT_BLOCKS;
    *from = in_place ? operation->recv : operation->send;
    *elements = operation->count * (size_t) (blocks ? operation->comm->size : 1);
    /* The receive buffer has room for the copy where it is as long as the input. */
    return rule->recv_extent == rule->send_extent && rondo_nccl_uses(operation, rule->recv_ranks) ? operation->recv : NULL;
}

void rondo_nccl_take_scaled(struct rondo_nccl_operation *operation, void *copy)
{
    operation->send = copy == operation->recv ? RONDO_IN_PLACE : copy;
    operation->scaled = 0;
}

/* ---- the calls ---- */

static ncclResult_t add(struct ncclComm *comm, const struct rondo_nccl_scalar *scalar, ncclRedOp_t *op)
{
    struct rondo_nccl_scalar *retained = malloc(sizeof(*retained));
    int index = 0;
    pthread_mutex_lock(&comm->lock);
    while (index < comm->scalar_count && comm->scalars[index] != NULL)
        index++;
    if (retained != NULL && index == comm->scalar_count && index < 1 << INDEX_BITS) {
        struct rondo_nccl_scalar **more = realloc(comm->scalars, ((size_t) index + 1) * sizeof(struct rondo_nccl_scalar *));
        if (more != NULL) {
            comm->scalars = more;
            comm->scalars[comm->scalar_count++] = NULL;
        }
    }
    int added = retained != NULL && index < comm->scalar_count;
    if (added) {
        *retained = *scalar;
        comm->scalars[index] = retained;
        *op = (ncclRedOp_t) handle_of(comm, index);
    }
    pthread_mutex_unlock(&comm->lock);
    if (added)
        return ncclSuccess;
    free(retained);
    return rondo_nccl_fail(ncclSystemError, "ncclRedOpCreatePreMulSum: no memory, or %d operators in use", 1 << INDEX_BITS);
}

ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t residence,
                                       ncclComm_t comm)
{
    struct rondo_nccl_scalar made = {.address = NULL};
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclRedOpCreatePreMulSum");
    if (result != ncclSuccess)
        return rondo_nccl_note(result);
    if (op == NULL || scalar == NULL || (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: op %p, scalar %p, residence %d", (void *) op,
                                 scalar, (int) residence);
    if (result == ncclSuccess)
        result = rondo_nccl_type(type, "ncclRedOpCreatePreMulSum", &made.type);
    if (result == ncclSuccess && comm->device >= 0)
        result = rondo_nccl_cuda_result(rondo_nccl_scale_load(comm->device), "ncclRedOpCreatePreMulSum", "loading its kernel");
    if (result == ncclSuccess) {
        if (residence == ncclScalarHostImmediate)
            memcpy(made.value, scalar, rondo_nccl_type_bytes(made.type));
        else
            made.address = scalar;
        result = add(comm, &made, op);
    }
    rondo_nccl_comm_let_go(comm);
    return rondo_nccl_note(result);
}
NCCL_EXPORT(ncclRedOpCreatePreMulSum);

ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_ASK, "ncclRedOpDestroy");
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock(&comm->lock);
    struct rondo_nccl_scalar **found = find(comm, op);
    if (found != NULL) {
        free(*found);
        *found = NULL;
    }
    pthread_mutex_unlock(&comm->lock);
    if (found == NULL)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclRedOpDestroy: operator %d is none made on communicator %p", (int) op,
                                 (void *) comm);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclRedOpDestroy);
