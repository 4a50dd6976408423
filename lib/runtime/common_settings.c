/* What all ranks derive alike from what each has told (lib/runtime/common_settings.h). */
#include "lib/runtime/common_settings.h"

#include "lib/base/error.h"
#include "lib/communicator/comm.h"
#include "lib/select/tuning.h"

#define CUDA_BLOCKS      32 /* of all ranks on a GPU together */
#define NETWORK_CHANNELS 4

uint32_t rondo_neighbours(const struct rondo_runtime *runtime, int rank)
{
    return (uint32_t) runtime->hosts.counts[runtime->hosts.node[rank]];
}

int rondo_spans_hosts(const struct rondo_runtime *runtime)
{
    return runtime->hosts.nodes > 1;
}

/* The number of ranks on the rank's GPU, itself included; 1 without a GPU. */
static uint32_t sharers(const struct rondo_runtime *runtime, int rank)
{
    const struct rondo_gpu_identity *gpu = &runtime->peers[rank].gpu;
    const struct rondo_topology *hosts = &runtime->hosts;
    const int locals = hosts->locals > 0 ? hosts->locals : runtime->size; /* of its host, where they can be told at once */
    uint32_t count = 0;
    for (int i = 0; i < locals && gpu->present; i++) {
        const int other = hosts->locals > 0 ? hosts->ranks[hosts->node[rank] * locals + i] : i;
        count += (uint32_t) rondo_gpu_is_same(&runtime->peers[other].gpu, gpu);
    }
    return gpu->present ? count : 1;
}

uint32_t rondo_blocks_of(const struct rondo_runtime *runtime, int rank, uint32_t near)
{
    const struct rondo_peer *peer = &runtime->peers[rank];
    if (peer->device == RONDO_DEVICE_CUDA) {
        /* A daemon quits when all its blocks agree, so the blocks of all ranks on a GPU must be able to run at the same time.
         * The same holds for kernels on streams (device/cuda/block_budget.h). */
        uint32_t share = CUDA_BLOCKS / sharers(runtime, rank);
        const uint32_t blocks = peer->blocks != 0 ? peer->blocks : share > 1 ? share : 1;
        return peer->sm > 0 && (uint32_t) peer->sm < blocks ? (uint32_t) peer->sm : blocks;
    }
    /* A thread that loses its core delays all ranks, so a quarter of the cores is left to other work. */
    uint32_t blocks = peer->blocks != 0 ? peer->blocks : peer->cores * 3 / 4 / near;
    if (peer->blocks == 0 && near < (uint32_t) runtime->size)
        blocks--; /* the proxy needs a core */
    blocks = blocks > UINT32_MAX / 2 ? 0 : blocks;
    return blocks < 1 ? 1 : blocks > 4 && peer->blocks == 0 ? 4 : blocks;
}

rondo_result_t rondo_common_settings(struct rondo_runtime *runtime)
{
    const rondo_result_t result = rondo_comm_find_topology(runtime, NULL, runtime->size, &runtime->hosts);
    if (result != RONDO_SUCCESS)
        return result;
    runtime->settings.channels = RONDO_CHANNELS_MAX;
    runtime->settings.slot_bytes = UINT32_MAX;
    runtime->settings.copy_engines = 1;
    for (int rank = 0; rank < runtime->size; rank++) {
        const uint32_t near = rondo_neighbours(runtime, rank), blocks = rondo_blocks_of(runtime, rank, near);
        uint32_t slot_bytes = runtime->peers[rank].slot_bytes;
        uint32_t stream_blocks = runtime->peers[rank].stream_blocks;
        const int32_t sm = runtime->peers[rank].sm;
        if (sm > 0 && (stream_blocks == 0 || (uint32_t) sm < stream_blocks))
            stream_blocks = (uint32_t) sm;
        runtime->settings.copy_engines &= sm == 0;
        runtime->oversubscribed |= runtime->peers[rank].cores < near;
        if (blocks < runtime->settings.channels)
            runtime->settings.channels = blocks;
        if (runtime->settings.stream_blocks == 0 || (stream_blocks != 0 && stream_blocks < runtime->settings.stream_blocks))
            runtime->settings.stream_blocks = stream_blocks;
        if (slot_bytes < runtime->settings.slot_bytes)
            runtime->settings.slot_bytes = slot_bytes;
    }
    /* Messages between hosts take long. While one is on its way, the same block works on another channel. */
    if (rondo_spans_hosts(runtime) && runtime->settings.channels < NETWORK_CHANNELS)
        runtime->settings.channels = NETWORK_CHANNELS;
    uint64_t tuning = runtime->settings.tuning != NULL ? runtime->settings.tuning->fingerprint : 0;
    for (int rank = 0; rank < runtime->size; rank++)
        if (runtime->peers[rank].tuning != tuning && runtime->settings.tuning != NULL) {
            rondo_log(RONDO_LOG_WARN, runtime->rank, "RONDO_TUNING is not used: rank %d has another table, or none", rank);
            rondo_tuning_free(runtime->settings.tuning);
            runtime->settings.tuning = NULL;
        }
    return RONDO_SUCCESS;
}
