/* The choice of compression (lib/select/compression.h) and the public functions that set it on a communicator. */
#include "lib/select/compression.h"

#include "lib/select/select.h"
#include "device/codec/zfp_block.h"
#include "lib/base/error.h"
#include "lib/call/call.h"
#include "lib/context/handles.h"
#include "lib/context/runtime.h"

#include <string.h>

#define KIND(kind) (1u << RONDO_KIND_##kind)

static const uint32_t compressed_kinds = KIND(ALLREDUCE) | KIND(REDUCE) | KIND(BCAST) | KIND(REDUCE_SCATTER_BLOCK) |
                                         KIND(ALLGATHER) | KIND(ALLGATHERV) | KIND(ALLTOALL) | KIND(ALLTOALLV) | KIND(GATHER) |
                                         KIND(SCATTER) | KIND(SEND_TO) | KIND(RECEIVE_FROM);
static const uint32_t reducing_kinds = KIND(ALLREDUCE) | KIND(REDUCE) | KIND(REDUCE_SCATTER_BLOCK);

static int reduces(const struct rondo_call *call)
{
    return (reducing_kinds >> call->kind & 1) != 0;
}

/* The largest rate of the type, in bits per value. 0: the type cannot be compressed. */
static int most_rate(rondo_datatype_t type)
{
    switch (type) {
    case RONDO_FLOAT:
        return RONDO_ZFP_RATE_FLOAT;
    case RONDO_DOUBLE:
        return RONDO_ZFP_RATE_DOUBLE;
    case RONDO_FLOAT16:
    case RONDO_BFLOAT16:
        return 16;
    default:
        return 0;
    }
}

#define FAIL(code, ...) return rondo_fail(code, __VA_ARGS__)

static int has_bound(const struct rondo_call *call)
{
    return !reduces(call) || call->op == RONDO_SUM || call->op == RONDO_AVG || call->op == RONDO_MIN || call->op == RONDO_MAX;
}

/* Messages are compressed between host devices; on GPUs that has not been tried. */
static int is_compressed(const struct rondo_comm *comm, enum rondo_kind kind)
{
    return (compressed_kinds >> kind & 1) && (comm->hosts_only || !rondo_kind_is_p2p(kind));
}

static int fits(const struct rondo_comm *comm, const struct rondo_call *call, int rate)
{
    return is_compressed(comm, call->kind) && rate <= most_rate(call->type) && has_bound(call);
}

/* Whether the settings let a communicator's compression apply to calls on it of that type and kind. The two ends of a message
 * are of one kind there. */
static int is_admitted(const struct rondo_comm *comm, const struct rondo_call *call)
{
    const struct rondo_settings *settings = &comm->runtime->settings;
    const enum rondo_kind kind = rondo_kind_is_p2p(call->kind) ? RONDO_KIND_SEND_TO : call->kind;
    if ((settings->compressed_comms == RONDO_COMPRESSED_WORLD && comm != comm->runtime->world) ||
        (settings->compressed_comms == RONDO_COMPRESSED_HOSTS && comm->topology.nodes < 2))
        return 0;
    return (settings->compressed_types >> call->type & 1) && (settings->compressed_kinds >> kind & 1);
}

static int can_feed_back(const struct rondo_call *call)
{
    return reduces(call) && (call->op == RONDO_SUM || call->op == RONDO_AVG);
}

static rondo_result_t check_rate(const struct rondo_comm *comm, const struct rondo_call *call, int rate)
{
    const char *function = rondo_kind_name(call->kind);
    int most = most_rate(call->type);
    if (rate < RONDO_ZFP_RATE_MIN || rate > RONDO_ZFP_RATE_DOUBLE)
        FAIL(RONDO_ERR_ARGUMENT, "%s: compress_rate %d is not in [%d, %d] bits a value", function, rate, RONDO_ZFP_RATE_MIN,
             RONDO_ZFP_RATE_DOUBLE);
    if (!is_compressed(comm, call->kind))
        FAIL(RONDO_ERR_UNSUPPORTED, "%s: compress_rate %d: this call is not compressed%s", function, rate,
             rondo_kind_is_p2p(call->kind) ? " where a rank is on a GPU" : "");
    if (most == 0)
        FAIL(RONDO_ERR_UNSUPPORTED, "%s: compress_rate %d: %s is not compressed (float16, bfloat16, float and double are)",
             function, rate, rondo_type_name(call->type));
    if (rate > most)
        FAIL(RONDO_ERR_ARGUMENT, "%s: compress_rate %d: %s has no use for more than %d bits a value", function, rate,
             rondo_type_name(call->type), most);
    if (!has_bound(call))
        FAIL(RONDO_ERR_UNSUPPORTED, "%s: compress_rate %d: the error of %s of compressed values has no bound", function, rate,
             rondo_op_name(call->op));
    return RONDO_SUCCESS;
}

static rondo_result_t check_feedback(const struct rondo_call *call)
{
    if (!can_feed_back(call))
        FAIL(RONDO_ERR_UNSUPPORTED, "%s: error_feedback is for sums and averages", rondo_kind_name(call->kind));
    return RONDO_SUCCESS;
}

rondo_result_t rondo_compression_choose(const struct rondo_comm *comm, const rondo_attr_t *attr, struct rondo_call *call)
{
    const rondo_compression_t *common = &comm->compression;
    call->rate = 0;
    call->feedback = 0;
    if ((common->rate | attr->compress_rate | attr->error_feedback) == 0) /* no compression is asked for */
        return RONDO_SUCCESS;
    if (attr->compress_rate == RONDO_COMPRESS_NEVER || call->kind == RONDO_KIND_BARRIER)
        return RONDO_SUCCESS;
    if (attr->compress_rate != 0) {
        rondo_result_t result = check_rate(comm, call, attr->compress_rate);
        if (result == RONDO_SUCCESS && attr->error_feedback)
            result = check_feedback(call);
        if (result != RONDO_SUCCESS)
            return result;
        call->rate = (uint32_t) attr->compress_rate;
        call->feedback = attr->error_feedback != 0;
        return RONDO_SUCCESS;
    }
    if (attr->error_feedback && common->rate == 0)
        FAIL(RONDO_ERR_ARGUMENT, "%s: error_feedback without compress_rate", rondo_kind_name(call->kind));
    /* A call of a kind, type or operator that cannot be compressed is transmitted unchanged. All ranks compute the same bytes,
     * except where a rank does not know the sizes of its peers. */
    size_t bytes = rondo_call_bytes(comm, call);
    if (rondo_kind_has_own_counts(call->kind) || bytes < common->smallest || !fits(comm, call, common->rate) ||
        !is_admitted(comm, call))
        return RONDO_SUCCESS;
    call->rate = (uint32_t) common->rate;
    call->feedback = (common->error_feedback || attr->error_feedback) && can_feed_back(call);
    return RONDO_SUCCESS;
}

/* ---- the public calls ---- */

rondo_result_t rondo_comm_set_compression(rondo_comm_t handle, const rondo_compression_t *compression)
{
    struct rondo_comm *comm;
    static const rondo_compression_t none = RONDO_COMPRESSION_DEFAULT;
    const rondo_compression_t *wanted = compression != NULL ? compression : &none;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_set_compression", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    if (wanted->rate != 0 && (wanted->rate < RONDO_ZFP_RATE_MIN || wanted->rate > RONDO_ZFP_RATE_DOUBLE))
        FAIL(RONDO_ERR_ARGUMENT, "rondo_comm_set_compression: rate %d is neither 0 nor in [%d, %d] bits a value", wanted->rate,
             RONDO_ZFP_RATE_MIN, RONDO_ZFP_RATE_DOUBLE);
    comm->compression = *wanted;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_comm_get_compression(rondo_comm_t handle, rondo_compression_t *compression)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, "rondo_comm_get_compression", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    if (compression == NULL)
        FAIL(RONDO_ERR_ARGUMENT, "rondo_comm_get_compression: the result pointer is NULL");
    *compression = comm->compression;
    return RONDO_SUCCESS;
}
