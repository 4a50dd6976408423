/* The table of transports, in order of merit. */
#include "transport.h"

#include "error.h"
#include "runtime.h"

#include <string.h>

static const struct rondo_transport *const transports[] = {
#if RONDO_WITH_CUDA
    &rondo_transport_p2p,
#endif
    &rondo_transport_shm};
#define COUNT ((int) (sizeof(transports) / sizeof(transports[0])))

const struct rondo_transport *const *rondo_transport_table(int *count)
{
    *count = COUNT;
    return transports;
}

const struct rondo_transport *rondo_transport_find(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        if (strcmp(transports[i]->name, name) == 0)
            return transports[i];
    return NULL;
}

rondo_result_t rondo_transport_choose(const struct rondo_runtime *runtime, int peer, const struct rondo_transport **transport)
{
    for (int i = 0; i < runtime->transport_count; i++)
        if (runtime->transports[i]->reaches(runtime, peer)) {
            *transport = runtime->transports[i];
            return RONDO_SUCCESS;
        }
    return rondo_fail(RONDO_ERR_TRANSPORT, "no transport of this build connects rank %d (host %s) and rank %d (host %s)",
                      runtime->rank, runtime->peers[runtime->rank].host_id, peer, runtime->peers[peer].host_id);
}
