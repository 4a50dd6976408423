/* See proxy/proxies.h. The lock guards the bytes that each proxy has been assigned; the members do not change. */
#include "proxy/proxies.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "transport/context.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORES_A_THREAD = 4, GPU_THREADS = 4 };

struct rondo_proxies {
    int count;
    struct rondo_proxy *members[RONDO_PROXIES_MAX];
    pthread_mutex_t lock;
    uint64_t bytes[RONDO_PROXIES_MAX]; /* of slots that each has been assigned */
};

/* On the host device waiting threads move the bytes, and one thread more would only take the cache from them. */
static int chosen(const struct rondo_transport_context *context)
{
    const struct rondo_peer *self = &context->peers[context->rank];
    uint32_t locals = 0;
    if (context->device_type != RONDO_DEVICE_CUDA)
        return 1;
    for (int rank = 0; rank < context->size; rank++)
        locals += strcmp(context->peers[rank].host_id, self->host_id) == 0;
    uint32_t threads = self->cores / locals / CORES_A_THREAD;
    return threads < 1 ? 1 : threads > GPU_THREADS ? GPU_THREADS : (int) threads;
}

rondo_result_t rondo_proxies_create(struct rondo_transport_context *context, struct rondo_proxies **result)
{
    int64_t wanted = 0;
    rondo_result_t status = rondo_environment_integer("RONDO_PROXY_THREADS", &wanted);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_proxies *proxies = calloc(1, sizeof(*proxies));
    if (proxies == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the proxies");
    pthread_mutex_init(&proxies->lock, NULL);
    int most = wanted > 0 ? (int) wanted : chosen(context);
    while (status == RONDO_SUCCESS && proxies->count < most) {
        struct rondo_proxy **member = &proxies->members[proxies->count];
        status = rondo_proxy_create(context, (uint32_t) proxies->count, member);
        if (*member == NULL)
            break; /* no network is left that gains by one more */
        proxies->count++;
    }
    if (status == RONDO_SUCCESS && proxies->count > 0) {
        *result = proxies;
        return RONDO_SUCCESS;
    }
    rondo_proxies_close(proxies);
    rondo_proxies_destroy(proxies);
    return status;
}

void rondo_proxies_close(struct rondo_proxies *proxies)
{
    for (int i = 0; proxies != NULL && i < proxies->count; i++)
        rondo_proxy_close(proxies->members[i]);
}

void rondo_proxies_destroy(struct rondo_proxies *proxies)
{
    if (proxies == NULL)
        return;
    for (int i = 0; i < proxies->count; i++)
        rondo_proxy_destroy(proxies->members[i]);
    pthread_mutex_destroy(&proxies->lock);
    free(proxies);
}

void rondo_proxies_wake(struct rondo_proxies *proxies)
{
    for (int i = 0; proxies != NULL && i < proxies->count; i++)
        rondo_proxy_wake(proxies->members[i]);
}

void rondo_proxies_expect(struct rondo_proxies *proxies)
{
    for (int i = 0; proxies != NULL && i < proxies->count; i++)
        rondo_proxy_expect(proxies->members[i]);
}

uint32_t rondo_proxies_carriers(const struct rondo_proxies *proxies)
{
    return proxies != NULL && rondo_proxy_spreads(proxies->members[0]) ? (uint32_t) proxies->count : 0;
}

struct rondo_proxy *rondo_proxies_first(const struct rondo_proxies *proxies)
{
    return proxies != NULL ? proxies->members[0] : NULL;
}

struct rondo_proxy *rondo_proxies_assign(struct rondo_proxies *proxies, const struct rondo_network *network, size_t bytes)
{
    int best = -1;
    if (proxies == NULL)
        return NULL;
    pthread_mutex_lock(&proxies->lock);
    for (int i = 0; i < proxies->count; i++)
        if (rondo_proxy_network(proxies->members[i], network) != NULL && (best < 0 || proxies->bytes[i] < proxies->bytes[best]))
            best = i;
    if (best >= 0)
        proxies->bytes[best] += bytes;
    pthread_mutex_unlock(&proxies->lock);
    return best >= 0 ? proxies->members[best] : NULL;
}

void rondo_proxies_unassign(struct rondo_proxies *proxies, const struct rondo_proxy *proxy, size_t bytes)
{
    pthread_mutex_lock(&proxies->lock);
    proxies->bytes[rondo_proxy_index(proxy)] -= bytes;
    pthread_mutex_unlock(&proxies->lock);
}

int rondo_proxies_sent(const struct rondo_proxies *proxies, struct rondo_network_bytes totals[RONDO_PROXY_NETWORKS_MAX])
{
    int count = 0;
    for (int i = 0; proxies != NULL && i < proxies->count; i++)
        count = rondo_proxy_add_sent(proxies->members[i], totals, count);
    return count;
}

void rondo_proxies_endpoint_name(char name[RONDO_NETWORK_NAME], const char *network, uint32_t index)
{
    if (index == 0)
        snprintf(name, RONDO_NETWORK_NAME, "%s", network);
    else
        snprintf(name, RONDO_NETWORK_NAME, "%.8s.%u", network, index % RONDO_PROXIES_MAX);
}

const struct rondo_endpoint_address *rondo_proxies_endpoint_address(const struct rondo_proxies *proxies, const char *name)
{
    const struct rondo_endpoint_address *endpoint = NULL;
    for (int i = 0; proxies != NULL && i < proxies->count && endpoint == NULL; i++)
        endpoint = rondo_proxy_endpoint_address(proxies->members[i], name);
    return endpoint;
}
