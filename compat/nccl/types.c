/* NCCL's data types in Rondo's terms (compat/nccl/shim.h): a table by NCCL's numbers. */
#include "compat/nccl/shim.h"

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
