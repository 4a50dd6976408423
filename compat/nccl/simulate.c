/* ncclGroupSimulateEnd's estimate: a latency for each operation, and the bytes that a rank must send or receive at least, at a
 * rate of the device. It is coarse: it knows neither the links nor what else runs. */
#include "compat/nccl/shim.h"

#define GPU_LATENCY  10.0f  /* microseconds */
#define GPU_RATE     200e3f /* bytes a microsecond */
#define HOST_LATENCY 5.0f
#define HOST_RATE    5e3f

/* Of the operation's count, what passes a rank's link in one direction. */
static float passes(const struct rondo_nccl_operation *operation)
{
    if (rondo_nccl_is_one_sided(operation))
        return operation->kind == RONDO_NCCL_PUT ? 1 : 0;
    const rondo_collective_t *rule = rondo_nccl_rule(operation->kind);
    const float size = (float) operation->comm->size;
    if (rule->point_to_point)
        return operation->root == operation->comm->rank ? 0 : 1;
    if (operation->kind == RONDO_NCCL_ALLREDUCE)
        return 2 * (size - 1) / size;
    if (rule->send_extent == RONDO_EXTENT_BLOCKS || rule->recv_extent == RONDO_EXTENT_BLOCKS)
        return size - 1;
    return size > 1 ? 1 : 0;
}

float rondo_nccl_estimate(const struct rondo_nccl_operation *operations, int count)
{
    float microseconds = 0;
    for (int i = 0; i < count; i++) {
        const int host = operations[i].comm->device < 0;
        const float bytes = (float) operations[i].count * (float) rondo_nccl_type_bytes(operations[i].type);
        microseconds += (host ? HOST_LATENCY : GPU_LATENCY) + bytes * passes(&operations[i]) / (host ? HOST_RATE : GPU_RATE);
    }
    return microseconds;
}
