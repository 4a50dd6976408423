/* See lib/runtime/single_copy.h. */
#include "lib/runtime/single_copy.h"

#include "device/engine/references.h"
#include "lib/base/error.h"
#include "device/engine/process_memory.h"
#include "transport/transport.h"

#include <string.h>

rondo_result_t rondo_single_copy_prepare(struct rondo_runtime *runtime, struct rondo_peer *self)
{
    if (runtime->settings.single_copy == RONDO_SINGLE_COPY_OFF || runtime->device_type != RONDO_DEVICE_HOST)
        return RONDO_SUCCESS;
    return rondo_process_identify(&self->memory);
}

static int is_of_this_process(const struct rondo_runtime *runtime, int rank)
{
    const struct rondo_peer *peer = &runtime->peers[rank], *self = &runtime->peers[runtime->rank];
    return memcmp(peer->process, self->process, sizeof(self->process)) == 0;
}

/* Whether the rank is connected by shared memory, and takes part. */
static int takes_part(const struct rondo_runtime *runtime, int rank)
{
    const struct rondo_transport *transport = NULL;
    return runtime->peers[rank].memory.process != 0 && rondo_transport_shm.reaches(&runtime->transport, rank) &&
           rondo_transport_choose(&runtime->transport, rank, &transport) == RONDO_SUCCESS && transport == &rondo_transport_shm;
}

uint32_t rondo_single_copy_probe(struct rondo_runtime *runtime)
{
    const enum rondo_single_copy wanted = runtime->settings.single_copy;
    const int asked = wanted == RONDO_SINGLE_COPY_CMA || wanted == RONDO_SINGLE_COPY_REFUSED;
    if (runtime->peers[runtime->rank].memory.process == 0)
        return RONDO_PEER_SLOTS_ONLY;
    for (int rank = 0; rank < runtime->size; rank++) {
        if (!takes_part(runtime, rank) || is_of_this_process(runtime, rank))
            continue;
        const struct rondo_process_identity *process = &runtime->peers[rank].memory;
        const int why = rondo_process_probe(process);
        if (why != 0) {
            rondo_log(asked ? RONDO_LOG_WARN : RONDO_LOG_INFO, runtime->rank,
                      "no single copies: the memory of rank %d (process %lld) cannot be read: %s", rank,
                      (long long) process->process, strerror(why));
            return RONDO_PEER_SLOTS_ONLY;
        }
    }
    return asked ? RONDO_PEER_SINGLE_COPY_ALWAYS : RONDO_PEER_SINGLE_COPY;
}

void rondo_single_copy_connect(struct rondo_runtime *runtime)
{
    if (runtime->peers[runtime->rank].single_copy == RONDO_PEER_SLOTS_ONLY)
        return;
    for (int rank = 0; rank < runtime->size; rank++) {
        struct rondo_single_copy_peer *peer = &runtime->single_copy_peers[rank];
        if (runtime->peers[rank].single_copy == RONDO_PEER_SLOTS_ONLY || !takes_part(runtime, rank))
            continue;
        peer->way = is_of_this_process(runtime, rank) ? RONDO_WAY_ADDRESS : RONDO_WAY_PROCESS;
        peer->process = runtime->peers[rank].memory;
        if (runtime->settings.single_copy == RONDO_SINGLE_COPY_REFUSED)
            peer->process.token[0] ^= 1; /* as if another process had got the id */
    }
}
