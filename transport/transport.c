/* See transport/transport.h: the rows of RONDO_TRANSPORT_ROWS that this build has. */
#include "transport/transport.h"

#include "lib/base/error.h"
#include "transport/context.h"

#include <string.h>

/* Each row's place among all rows, and how many there are. */
#define PLACE(name, built) PLACE_##name,
enum { RONDO_TRANSPORT_ROWS(PLACE) ROWS };
_Static_assert(ROWS <= RONDO_TRANSPORTS_MAX, "a context has room for all, and so has a set of bits");

/* The entry where built is 1, and nothing where it is 0. Two steps, so that a macro `built` is expanded before it is pasted. */
#define KEEP_0(entry)
#define KEEP_1(entry)       entry,
#define KEEP_(built, entry) KEEP_##built(entry)
#define KEEP(built, entry)  KEEP_(built, entry)

#define TRANSPORT(name, built) KEEP(built, &rondo_transport_##name)
static const struct rondo_transport *const transports[] = {RONDO_TRANSPORT_ROWS(TRANSPORT)};
#define BIT(name, built) KEEP(built, 1u << PLACE_##name)
static const uint32_t bits[] = {RONDO_TRANSPORT_ROWS(BIT)};
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

/* A network's bit in struct rondo_peer. */
static uint32_t bit_of(const struct rondo_transport *transport)
{
    for (int i = 0; i < COUNT; i++)
        if (transports[i] == transport)
            return bits[i];
    return 0;
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

int rondo_transport_keeps_secret(const struct rondo_transport_context *context, const struct rondo_transport *transport)
{
    return transport->network == NULL || transport->encrypts || !context->encrypts;
}

rondo_result_t rondo_transport_choose(const struct rondo_transport_context *context, int peer,
                                      const struct rondo_transport **transport)
{
    for (int i = 0; i < context->transport_count; i++)
        if (context->transports[i]->reaches(context, peer)) {
            *transport = context->transports[i];
            return RONDO_SUCCESS;
        }
    return rondo_fail(RONDO_ERR_TRANSPORT, "no transport of this build connects rank %d (host %s) and rank %d (host %s)%s",
                      context->rank, context->peers[context->rank].host_id, peer, context->peers[peer].host_id,
                      context->encrypts ? "; with RONDO_ENCRYPT=1 only ucx connects hosts" : "");
}

int rondo_transport_multicasts(const struct rondo_transport_context *context, int peer)
{
    const struct rondo_transport *transport;
    return rondo_transport_choose(context, peer, &transport) == RONDO_SUCCESS && transport->multicast_offer != NULL;
}
