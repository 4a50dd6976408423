/* See card.h. */
#include "lib/connection/endpoint_address.h"

#include "proxy/proxies.h"

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
    struct rondo_card card;
};

struct rondo_cards {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct entry *entries;
    int withdrawn;
};

/* An ask is the name alone. */
struct message {
    char network[16];
    uint64_t refused;
    struct rondo_card card; /* as much of it as there is */
};
#define MESSAGE_LEAST (offsetof(struct message, card) + offsetof(struct rondo_card, data))

rondo_result_t rondo_cards_create(struct rondo_cards **result)
{
    struct rondo_cards *cards = calloc(1, sizeof(*cards));
    if (cards == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the networks' addresses");
    pthread_mutex_init(&cards->lock, NULL);
    pthread_cond_init(&cards->arrived, NULL);
    *result = cards;
    return RONDO_SUCCESS;
}

void rondo_cards_destroy(struct rondo_cards *cards)
{
    if (cards == NULL)
        return;
    while (cards->entries != NULL) {
        struct entry *entry = cards->entries;
        cards->entries = entry->next;
        free(entry);
    }
    pthread_cond_destroy(&cards->arrived);
    pthread_mutex_destroy(&cards->lock);
    free(cards);
}

void rondo_cards_stir(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->cards->lock);
    pthread_cond_broadcast(&runtime->cards->arrived);
    pthread_mutex_unlock(&runtime->cards->lock);
}

void rondo_cards_withdraw(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->cards->lock);
    runtime->cards->withdrawn = 1;
    pthread_mutex_unlock(&runtime->cards->lock);
}

static struct entry *find(struct rondo_cards *cards, const char *network, int peer)
{
    struct entry *entry = cards->entries;
    while (entry != NULL && (entry->peer != peer || strcmp(entry->network, network) != 0))
        entry = entry->next;
    return entry;
}

static void answer(struct rondo_runtime *runtime, int source, const char *network)
{
    struct message message;
    memset(&message, 0, MESSAGE_LEAST);
    snprintf(message.network, sizeof(message.network), "%s", network);
    pthread_mutex_lock(&runtime->cards->lock); /* the proxy does not end meanwhile */
    const struct rondo_card *own = runtime->cards->withdrawn ? NULL : rondo_proxies_card(runtime->proxies, message.network);
    if (own != NULL) {
        message.card.bytes = own->bytes;
        memcpy(message.card.data, own->data, own->bytes);
    }
    message.refused = own == NULL;
    pthread_mutex_unlock(&runtime->cards->lock);
    rondo_control_send(runtime->control, source, RONDO_MESSAGE_CARD, &message, MESSAGE_LEAST + message.card.bytes);
}

static void keep(struct rondo_runtime *runtime, int source, struct message *message, size_t bytes)
{
    struct rondo_cards *cards = runtime->cards;
    message->network[sizeof(message->network) - 1] = '\0';
    if (message->card.bytes > RONDO_CARD_BYTES || bytes != MESSAGE_LEAST + message->card.bytes)
        return;
    pthread_mutex_lock(&cards->lock);
    struct entry *entry = find(cards, message->network, source);
    if (entry != NULL && !entry->answered) {
        memcpy(&entry->card, &message->card, offsetof(struct rondo_card, data) + message->card.bytes);
        entry->refused = message->refused != 0;
        entry->answered = 1;
        pthread_cond_broadcast(&cards->arrived);
    }
    pthread_mutex_unlock(&cards->lock);
}

void rondo_cards_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    struct message message;
    if (type == RONDO_MESSAGE_CARD_ASK && bytes == sizeof(message.network)) {
        memcpy(message.network, data, bytes);
        message.network[bytes - 1] = '\0';
        char network[sizeof(message.network)];
        memcpy(network, message.network, sizeof(network));
        answer(runtime, source, network);
    } else if (type == RONDO_MESSAGE_CARD && bytes >= MESSAGE_LEAST && bytes <= sizeof(message)) {
        memcpy(&message, data, bytes);
        keep(runtime, source, &message, bytes);
    } else {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped a network address of %zu bytes from rank %d", bytes, source);
    }
}

/* Under the lock, which the wait releases. */
static rondo_result_t await(struct rondo_runtime *runtime, struct entry *entry)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += (time_t) runtime->settings.connect_timeout + 1;
    while (!entry->answered) {
        if (__atomic_load_n(&runtime->gone[entry->peer], __ATOMIC_ACQUIRE) != RONDO_SUCCESS)
            return rondo_fail(RONDO_ERR_PEER, "rank %d has gone while connecting to it", entry->peer);
        if (pthread_cond_timedwait(&runtime->cards->arrived, &runtime->cards->lock, &deadline) != 0)
            return rondo_fail(RONDO_ERR_TIMEOUT, "rank %d has not told its %s address within %g s", entry->peer, entry->network,
                              runtime->settings.connect_timeout);
    }
    if (entry->refused)
        return rondo_fail(RONDO_ERR_TRANSPORT,
                          "rank %d has not opened the network of transport %s (do RONDO_TRANSPORTS match?)", entry->peer,
                          entry->network);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_card_fetch(struct rondo_runtime *runtime, const char *network, int peer, const struct rondo_card **card)
{
    struct rondo_cards *cards = runtime->cards;
    char name[16] = "";
    int asks = 0;
    rondo_result_t result = RONDO_SUCCESS;
    snprintf(name, sizeof(name), "%s", network);
    pthread_mutex_lock(&cards->lock);
    struct entry *entry = find(cards, name, peer);
    if (entry == NULL) {
        entry = calloc(1, sizeof(*entry));
        if (entry == NULL) {
            result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a network address");
        } else {
            memcpy(entry->network, name, sizeof(name));
            entry->peer = peer;
            entry->next = cards->entries;
            cards->entries = entry;
            asks = 1;
        }
    }
    pthread_mutex_unlock(&cards->lock);
    if (asks)
        result = rondo_control_send(runtime->control, peer, RONDO_MESSAGE_CARD_ASK, name, sizeof(name));
    if (result != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&cards->lock);
    result = await(runtime, entry);
    pthread_mutex_unlock(&cards->lock);
    *card = &entry->card;
    return result;
}
