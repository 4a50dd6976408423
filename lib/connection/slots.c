/* Slot counts and sizes (lib/connection/slots.h), computed from the settings and from where a communicator's members are. */
#include "lib/connection/slots.h"

int rondo_is_wide(const struct rondo_comm *comm)
{
    return comm->networked && !comm->gpus_only;
}

uint32_t rondo_network_slots(const struct rondo_runtime *runtime)
{
    return rondo_network_scale(runtime->size) > 1 ? RONDO_NETWORK_SLOTS / 2 : RONDO_NETWORK_SLOTS;
}

uint32_t rondo_network_slices(const struct rondo_runtime *runtime)
{
    return rondo_network_scale(runtime->size) > 1 ? RONDO_NETWORK_SLICES / 2 : RONDO_NETWORK_SLICES;
}

uint32_t rondo_protocol_slots(enum rondo_protocol protocol, uint32_t lane_slots)
{
    switch (protocol) {
    case RONDO_PROTOCOL_TMA:
        return RONDO_TMA_SLOTS;
    case RONDO_PROTOCOL_TINY:
    case RONDO_PROTOCOL_MULTICAST_TINY:
        return RONDO_TINY_SLOTS;
    case RONDO_PROTOCOL_MULTICAST:
        return RONDO_MULTICAST_SLOTS;
    default:
        return lane_slots;
    }
}

static uint32_t turn_slot_bytes(const struct rondo_comm *comm)
{
    const uint32_t ranks = comm->size > RONDO_TURN_SLOT_RANKS ? (uint32_t) comm->size : RONDO_TURN_SLOT_RANKS,
                   slots = RONDO_TURN_SLOTS * RONDO_TURN_SLOT_RANKS / ranks;
    return (slots > 1 ? slots : 1) * RONDO_GPU_SLOT_BYTES;
}

void rondo_lane_slots(const struct rondo_comm *comm, uint32_t slot_bytes[RONDO_PROTOCOLS])
{
    int gpus = comm->gpus_only;
    uint32_t most = comm->runtime->settings.slot_bytes;
    if (most == RONDO_DEFAULT_SLOT_BYTES)
        most = rondo_is_wide(comm) ? RONDO_NETWORK_SLOT_BYTES * rondo_network_scale(comm->runtime->size)
               : comm->takes_turns ? turn_slot_bytes(comm)
               : comm->linked      ? RONDO_LINKED_SLOT_BYTES
               : gpus              ? RONDO_GPU_SLOT_BYTES
                                   : most;
    slot_bytes[RONDO_PROTOCOL_SIMPLE] = most;
    slot_bytes[RONDO_PROTOCOL_SMALL] = most < RONDO_SMALL_BYTES_MAX ? most : RONDO_SMALL_BYTES_MAX;
    slot_bytes[RONDO_PROTOCOL_TINY] = RONDO_TINY_SLOT(most < RONDO_TINY_BYTES_MAX ? most : RONDO_TINY_BYTES_MAX);
    slot_bytes[RONDO_PROTOCOL_MULTICAST_TINY] = slot_bytes[RONDO_PROTOCOL_TINY];
    slot_bytes[RONDO_PROTOCOL_MULTICAST] = most < RONDO_MULTICAST_BYTES_MAX ? most : RONDO_MULTICAST_BYTES_MAX;
    slot_bytes[RONDO_PROTOCOL_COMPRESSED] = comm->by_host && most > RONDO_HOST_CODED_BYTES ? RONDO_HOST_CODED_BYTES : most;
    slot_bytes[RONDO_PROTOCOL_TMA] = RONDO_TMA_BYTES;
    slot_bytes[RONDO_PROTOCOL_LL] = 2 * (gpus ? RONDO_GPU_LL_BYTES : RONDO_LL_BYTES_MAX);
    uint32_t lines = RONDO_GPU_LL128_BYTES / (uint32_t) (comm->size > 1 ? comm->size - 1 : 1);
    slot_bytes[RONDO_PROTOCOL_LL128] = (lines > 32768 ? lines : 32768) / 512 * 512; /* a warp accesses 512 bytes at a time */
}

uint32_t rondo_lane_contexts(const struct rondo_runtime *runtime)
{
    const uint32_t usual = 2 * runtime->settings.channels,
                   windows = (uint32_t) rondo_peer_windows(RONDO_KIND_ALLTOALL, runtime->size),
                   most = windows < RONDO_PROGRAM_BLOCKS_MAX ? windows : RONDO_PROGRAM_BLOCKS_MAX;
    return usual > most ? usual : most;
}

uint32_t rondo_lane_messages(const struct rondo_host_lane *lane, int single)
{
    if (single && rondo_is_wide(lane->comm))
        return lane->slot_count / rondo_network_slices(lane->comm->runtime);
    return lane->comm->runtime->device_type == RONDO_DEVICE_CUDA && lane->slot_count >= 4 ? lane->slot_count / 2
                                                                                          : lane->slot_count;
}
