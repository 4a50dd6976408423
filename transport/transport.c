/* See transport/transport.h. The table of transports, in order of merit: what comes first is chosen where it reaches the peer.
 */
#include "transport/transport.h"

#include "lib/base/error.h"
#include "transport/context.h"

#include <string.h>

static const struct rondo_transport *const transports[] = {
#if RONDO_WITH_CUDA
    &rondo_transport_p2p,
#endif
    &rondo_transport_shm,
#if RONDO_WITH_VERBS
    &rondo_transport_rdma,
#endif
#if RONDO_WITH_UCX
    &rondo_transport_ucx,
#endif
};
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

/* A network's bit in struct rondo_peer: the same in all builds, because ranks of different builds compare them. 0: no network.
 */
static uint32_t bit_of(const struct rondo_transport *transport)
{
    return strcmp(transport->name, "rdma") == 0 ? 1 : strcmp(transport->name, "ucx") == 0 ? 2 : 0;
}

int rondo_transport_is_open_to(const struct rondo_transport_context *context, const struct rondo_transport *transport, int peer)
{
    return (context->peers[peer].networks & context->peers[context->rank].networks & bit_of(transport)) != 0;
}

uint32_t rondo_transport_networks(const struct rondo_transport_context *context)
{
    uint32_t set = 0;
    for (int i = 0; i < context->transport_count; i++)
        if (context->transports[i]->network != NULL && context->transports[i]->unusable() == NULL)
            set |= bit_of(context->transports[i]);
    return set;
}

rondo_result_t rondo_transport_choose(const struct rondo_transport_context *context, int peer,
                                      const struct rondo_transport **transport)
{
    for (int i = 0; i < context->transport_count; i++)
        if (context->transports[i]->reaches(context, peer)) {
            *transport = context->transports[i];
            return RONDO_SUCCESS;
        }
    return rondo_fail(RONDO_ERR_TRANSPORT, "no transport of this build connects rank %d (host %s) and rank %d (host %s)",
                      context->rank, context->peers[context->rank].host_id, peer, context->peers[peer].host_id);
}
