/*
 * The cache of endpoint addresses (lib/connection/endpoint_address.h): a list with one entry for each peer and network, filled
 * by the control thread. Relies on the control plane and, for this rank's own addresses, on the proxies.
 */
#include "lib/connection/endpoint_address.h"

#include "proxy/proxies.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct entry {
    struct entry *next;
    char network[16];
    int peer;
    int answered;
    int refused; /* the peer has no such network */
    struct rondo_endpoint_address endpoint;
};

struct rondo_endpoints {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct entry *entries;
    int withdrawn;
};

/* An answer. A request is the network's name alone. */
struct message {
    char network[16];
    uint64_t refused;
    struct rondo_endpoint_address endpoint; /* transmitted up to endpoint.bytes */
};
#define MESSAGE_LEAST (offsetof(struct message, endpoint) + offsetof(struct rondo_endpoint_address, data))

rondo_result_t rondo_endpoints_create(struct rondo_endpoints **result)
{
    struct rondo_endpoints *endpoints = calloc(1, sizeof(*endpoints));
    if (endpoints == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the networks' addresses");
    pthread_mutex_init(&endpoints->lock, NULL);
    rondo_condition_init(&endpoints->arrived);
    *result = endpoints;
    return RONDO_SUCCESS;
}

void rondo_endpoints_destroy(struct rondo_endpoints *endpoints)
{
    if (endpoints == NULL)
        return;
    while (endpoints->entries != NULL) {
        struct entry *entry = endpoints->entries;
        endpoints->entries = entry->next;
        free(entry);
    }
    pthread_cond_destroy(&endpoints->arrived);
    pthread_mutex_destroy(&endpoints->lock);
    free(endpoints);
}

void rondo_endpoints_wake(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->endpoints->lock);
    pthread_cond_broadcast(&runtime->endpoints->arrived);
    pthread_mutex_unlock(&runtime->endpoints->lock);
}

void rondo_endpoints_withdraw(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->endpoints->lock);
    runtime->endpoints->withdrawn = 1;
    pthread_mutex_unlock(&runtime->endpoints->lock);
}

static struct entry *find(struct rondo_endpoints *endpoints, const char *network, int peer)
{
    struct entry *entry = endpoints->entries;
    while (entry != NULL && (entry->peer != peer || strcmp(entry->network, network) != 0))
        entry = entry->next;
    return entry;
}

static void answer(struct rondo_runtime *runtime, int source, const char *network)
{
    struct message message;
    memset(&message, 0, MESSAGE_LEAST);
    snprintf(message.network, sizeof(message.network), "%s", network);
    pthread_mutex_lock(&runtime->endpoints->lock); /* withdraw takes it too, so the proxies exist until it is released */
    const struct rondo_endpoint_address *own =
        runtime->endpoints->withdrawn ? NULL : rondo_proxies_endpoint_address(runtime->proxies, message.network);
    if (own != NULL) {
        message.endpoint.bytes = own->bytes;
        memcpy(message.endpoint.data, own->data, own->bytes);
    }
    message.refused = own == NULL;
    pthread_mutex_unlock(&runtime->endpoints->lock);
    /* A rank that has asked waits for the answer. */
    if (rondo_control_send(runtime->control, source, RONDO_MESSAGE_ENDPOINT, &message,
                           MESSAGE_LEAST + message.endpoint.bytes) == RONDO_ERR_MEMORY)
        rondo_rank_fail(runtime, RONDO_ERR_MEMORY, rondo_last_error());
}

static void keep(struct rondo_runtime *runtime, int source, struct message *message, size_t bytes)
{
    struct rondo_endpoints *endpoints = runtime->endpoints;
    message->network[sizeof(message->network) - 1] = '\0';
    if (message->endpoint.bytes > RONDO_ENDPOINT_ADDRESS_BYTES || bytes != MESSAGE_LEAST + message->endpoint.bytes)
        return;
    pthread_mutex_lock(&endpoints->lock);
    struct entry *entry = find(endpoints, message->network, source);
    if (entry != NULL && !entry->answered) {
        memcpy(&entry->endpoint, &message->endpoint, offsetof(struct rondo_endpoint_address, data) + message->endpoint.bytes);
        entry->refused = message->refused != 0;
        entry->answered = 1;
        pthread_cond_broadcast(&endpoints->arrived);
    }
    pthread_mutex_unlock(&endpoints->lock);
}

void rondo_endpoints_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    struct message message;
    if (type == RONDO_MESSAGE_ENDPOINT_ASK && bytes == sizeof(message.network)) {
        memcpy(message.network, data, bytes);
        message.network[bytes - 1] = '\0';
        char network[sizeof(message.network)];
        memcpy(network, message.network, sizeof(network));
        answer(runtime, source, network);
    } else if (type == RONDO_MESSAGE_ENDPOINT && bytes >= MESSAGE_LEAST && bytes <= sizeof(message)) {
        memcpy(&message, data, bytes);
        keep(runtime, source, &message, bytes);
    } else {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped a network address of %zu bytes from rank %d", bytes, source);
    }
}

/* Waits for the peer's answer. Lock held; the wait releases it. */
static rondo_result_t await(struct rondo_runtime *runtime, struct entry *entry)
{
    struct timespec deadline;
    rondo_deadline_in(&deadline, runtime->settings.connect_timeout + 1);
    while (!entry->answered) {
        if (rondo_is_gone(runtime, entry->peer))
            return rondo_fail(RONDO_ERR_PEER, "rank %d has gone while connecting to it", entry->peer);
        if (pthread_cond_timedwait(&runtime->endpoints->arrived, &runtime->endpoints->lock, &deadline) != 0)
            return rondo_fail(RONDO_ERR_TIMEOUT, "rank %d has not told its %s address within %g s", entry->peer, entry->network,
                              runtime->settings.connect_timeout);
    }
    if (entry->refused)
        return rondo_fail(RONDO_ERR_TRANSPORT,
                          "rank %d has not opened the network of transport %s (do RONDO_TRANSPORTS match?)", entry->peer,
                          entry->network);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_endpoint_address_fetch(struct rondo_runtime *runtime, const char *network, int peer,
                                            const struct rondo_endpoint_address **endpoint)
{
    struct rondo_endpoints *endpoints = runtime->endpoints;
    char name[16] = "";
    int asks = 0;
    rondo_result_t result = RONDO_SUCCESS;
    snprintf(name, sizeof(name), "%s", network);
    pthread_mutex_lock(&endpoints->lock);
    struct entry *entry = find(endpoints, name, peer);
    if (entry == NULL) {
        entry = calloc(1, sizeof(*entry));
        if (entry == NULL) {
            result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a network address");
        } else {
            memcpy(entry->network, name, sizeof(name));
            entry->peer = peer;
            entry->next = endpoints->entries;
            endpoints->entries = entry;
            asks = 1;
        }
    }
    pthread_mutex_unlock(&endpoints->lock);
    if (asks)
        result = rondo_control_send(runtime->control, peer, RONDO_MESSAGE_ENDPOINT_ASK, name, sizeof(name));
    if (result != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&endpoints->lock);
    result = await(runtime, entry);
    pthread_mutex_unlock(&endpoints->lock);
    *endpoint = &entry->endpoint;
    return result;
}
