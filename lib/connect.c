/* See connect.h. */
#include "connect.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096

/* A connector this rank receives on. */
struct listener {
    struct listener *next;
    struct rondo_connector_key key;
    struct rondo_connector connector;
    struct rondo_ticket ticket;
    enum { UNOPENED, OPEN, CLOSED } opened;   /* by this rank's lane */
    enum { UNASKED, ASKED, WITHDRAWN } asked; /* by the sender */
};

/* A sender's request under way. */
struct pending {
    struct pending *next;
    uint64_t cookie;
    int peer;
    int answered;
    rondo_result_t result;
    struct rondo_ticket ticket;
    char message[160];
};

struct rondo_connect_table {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    struct listener *buckets[BUCKETS];
    struct pending *pending;
    uint64_t next_cookie;
    int shut; /* the runtime is being finalized */
};

struct ask {
    uint64_t cookie;
    struct rondo_connector_key key;
    uint32_t slot_bytes, slot_count;
};

struct answer {
    uint64_t cookie;
    uint64_t result;
    struct rondo_ticket ticket;
    char message[160];
};

rondo_result_t rondo_connect_create(struct rondo_connect_table **result)
{
    struct rondo_connect_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the table of connectors");
    pthread_mutex_init(&table->lock, NULL);
    pthread_cond_init(&table->answered, NULL);
    *result = table;
    return RONDO_SUCCESS;
}

void rondo_connect_shut(struct rondo_runtime *runtime)
{
    struct rondo_connect_table *table = runtime->connections;
    pthread_mutex_lock(&table->lock);
    table->shut = 1;
    for (int b = 0; b < BUCKETS; b++)
        while (table->buckets[b] != NULL) {
            struct listener *listener = table->buckets[b];
            table->buckets[b] = listener->next;
            listener->connector.transport->close_listener(runtime, &listener->connector);
            free(listener);
        }
    pthread_mutex_unlock(&table->lock);
}

void rondo_connect_destroy(struct rondo_runtime *runtime)
{
    struct rondo_connect_table *table = runtime->connections;
    if (table == NULL)
        return;
    pthread_cond_destroy(&table->answered);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static struct listener **bucket_of(struct rondo_connect_table *table, const struct rondo_connector_key *key)
{
    const unsigned char *bytes = (const unsigned char *) key;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < sizeof(*key); i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return &table->buckets[(hash ^ hash >> 32) % BUCKETS];
}

static struct listener *find(struct rondo_connect_table *table, const struct rondo_connector_key *key)
{
    struct listener *listener = *bucket_of(table, key);
    while (listener != NULL && memcmp(&listener->key, key, sizeof(*key)) != 0)
        listener = listener->next;
    return listener;
}

/* Under the lock. Either side's first word makes the listener. */
static rondo_result_t listen_on(struct rondo_runtime *runtime, const struct rondo_connector_key *key,
                                const struct rondo_connector_spec *spec, struct listener **result)
{
    struct rondo_connect_table *table = runtime->connections;
    struct listener *listener = find(table, key);
    if (table->shut)
        return rondo_fail(RONDO_ERR_PEER, "rank %d is being finalized", runtime->rank);
    if (listener != NULL) {
        const struct rondo_connector_spec *other = &listener->connector.spec;
        if (other->slot_bytes != spec->slot_bytes || other->slot_count != spec->slot_count)
            return rondo_fail(
                RONDO_ERR_MISMATCH,
                "ranks %d and %d disagree about a connector: %u slots of %u bytes against %u of %u (do their calls "
                "match?)",
                key->source, key->destination, other->slot_count, other->slot_bytes, spec->slot_count, spec->slot_bytes);
        *result = listener;
        return RONDO_SUCCESS;
    }
    listener = calloc(1, sizeof(*listener));
    if (listener == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a connector");
    listener->key = *key;
    listener->connector.spec = *spec;
    rondo_result_t status = rondo_transport_choose(runtime, key->source, &listener->connector.transport);
    if (status == RONDO_SUCCESS)
        status = listener->connector.transport->listen(runtime, &listener->connector, &listener->ticket);
    if (status != RONDO_SUCCESS) {
        free(listener);
        return status;
    }
    strncpy(listener->ticket.transport, listener->connector.transport->name, sizeof(listener->ticket.transport) - 1);
    struct listener **bucket = bucket_of(table, key);
    listener->next = *bucket;
    *bucket = listener;
    *result = listener;
    return RONDO_SUCCESS;
}

/* Under the lock. Both sides come and go exactly once, in any order: a sender may have filled slots, finished and closed before
 * this rank's lane opens, and a receiver that needed nothing may be gone before the sender asks. */
static void close_if_unused(struct rondo_runtime *runtime, struct listener *listener)
{
    if (listener->opened != CLOSED || listener->asked != WITHDRAWN)
        return;
    struct listener **link = bucket_of(runtime->connections, &listener->key);
    while (*link != listener)
        link = &(*link)->next;
    *link = listener->next;
    listener->connector.transport->close_listener(runtime, &listener->connector);
    free(listener);
}

static void answer_ask(struct rondo_runtime *runtime, int source, const struct ask *ask)
{
    struct answer answer = {.cookie = ask->cookie};
    struct rondo_connector_spec spec = {ask->slot_bytes, ask->slot_count, ask->key.protocol, source};
    struct listener *listener = NULL;
    rondo_result_t result;
    int sane = ask->key.source == source && ask->key.destination == runtime->rank && ask->slot_bytes >= 64 &&
               ask->slot_bytes % 64 == 0 && ask->slot_bytes <= 1u << 26 && ask->slot_count > 0 && ask->slot_count <= 1024 &&
               (ask->slot_count & (ask->slot_count - 1)) == 0;
    pthread_mutex_lock(&runtime->connections->lock);
    if (!sane)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "rank %d asks for a connector %d -> %d with %u slots of %u bytes", source,
                            ask->key.source, ask->key.destination, ask->slot_count, ask->slot_bytes);
    else
        result = listen_on(runtime, &ask->key, &spec, &listener);
    if (result == RONDO_SUCCESS) {
        listener->asked = ASKED;
        answer.ticket = listener->ticket;
    } else {
        strncpy(answer.message, rondo_last_error(), sizeof(answer.message) - 1);
    }
    pthread_mutex_unlock(&runtime->connections->lock);
    answer.result = (uint64_t) result;
    rondo_control_send(runtime->control, source, RONDO_MESSAGE_CONNECTED, &answer, sizeof(answer));
}

static void take_answer(struct rondo_connect_table *table, int source, const struct answer *answer)
{
    pthread_mutex_lock(&table->lock);
    for (struct pending *pending = table->pending; pending != NULL; pending = pending->next)
        if (pending->cookie == answer->cookie && pending->peer == source) {
            pending->result = (rondo_result_t) answer->result;
            pending->ticket = answer->ticket;
            memcpy(pending->message, answer->message, sizeof(pending->message));
            pending->message[sizeof(pending->message) - 1] = '\0';
            pending->ticket.transport[sizeof(pending->ticket.transport) - 1] = '\0';
            pending->answered = 1;
        }
    pthread_cond_broadcast(&table->answered);
    pthread_mutex_unlock(&table->lock);
}

void rondo_connect_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    struct rondo_connect_table *table = runtime->connections;
    if (type == RONDO_MESSAGE_CONNECT && bytes == sizeof(struct ask)) {
        struct ask ask;
        memcpy(&ask, data, sizeof(ask));
        answer_ask(runtime, source, &ask);
    } else if (type == RONDO_MESSAGE_CONNECTED && bytes == sizeof(struct answer)) {
        struct answer answer;
        memcpy(&answer, data, sizeof(answer));
        take_answer(table, source, &answer);
    } else if (type == RONDO_MESSAGE_CLOSE && bytes == sizeof(struct rondo_connector_key)) {
        struct rondo_connector_key key;
        memcpy(&key, data, sizeof(key));
        pthread_mutex_lock(&table->lock);
        struct listener *listener = key.source == source ? find(table, &key) : NULL;
        if (listener != NULL) {
            listener->asked = WITHDRAWN;
            close_if_unused(runtime, listener);
        }
        pthread_mutex_unlock(&table->lock);
    } else {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped a connection message of type %u and %zu bytes from rank %d", type,
                  bytes, source);
    }
}

void rondo_connect_stir(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->connections->lock);
    pthread_cond_broadcast(&runtime->connections->answered);
    pthread_mutex_unlock(&runtime->connections->lock);
}

/* Under the lock, which the wait releases. */
static rondo_result_t await(struct rondo_runtime *runtime, struct pending *pending)
{
    struct rondo_connect_table *table = runtime->connections;
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += (time_t) runtime->settings.connect_timeout + 1;
    while (!pending->answered) {
        if (__atomic_load_n(&runtime->gone[pending->peer], __ATOMIC_ACQUIRE) != RONDO_SUCCESS)
            return rondo_fail(RONDO_ERR_PEER, "rank %d has gone while connecting to it", pending->peer);
        if (pthread_cond_timedwait(&table->answered, &table->lock, &deadline) != 0)
            return rondo_fail(RONDO_ERR_TIMEOUT, "rank %d has not answered a connection within %g s", pending->peer,
                              runtime->settings.connect_timeout);
    }
    if (pending->result != RONDO_SUCCESS)
        return rondo_fail(pending->result, "rank %d: %s", pending->peer, pending->message);
    return RONDO_SUCCESS;
}

static rondo_result_t open_sender(struct rondo_runtime *runtime, struct rondo_connector_wish *wish,
                                  const struct pending *pending)
{
    struct rondo_connector *connector = calloc(1, sizeof(*connector));
    if (connector == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a connector");
    connector->spec = wish->spec;
    rondo_result_t result = rondo_transport_choose(runtime, wish->key.destination, &connector->transport);
    if (result == RONDO_SUCCESS && strcmp(connector->transport->name, pending->ticket.transport) != 0)
        result =
            rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers transport %s where this rank chose %s (do RONDO_TRANSPORTS match?)",
                       pending->peer, pending->ticket.transport, connector->transport->name);
    if (result == RONDO_SUCCESS)
        result = connector->transport->connect(runtime, connector, &pending->ticket);
    if (result != RONDO_SUCCESS)
        free(connector);
    else
        wish->connector = connector;
    return result;
}

static void close_sender(struct rondo_runtime *runtime, const struct rondo_connector_key *key,
                         struct rondo_connector *connector)
{
    if (connector != NULL) {
        connector->transport->close_sender(runtime, connector);
        free(connector);
    }
    rondo_control_send(runtime->control, key->destination, RONDO_MESSAGE_CLOSE, key, sizeof(*key));
}

rondo_result_t rondo_connect(struct rondo_runtime *runtime, struct rondo_connector_wish *wishes, int count)
{
    struct rondo_connect_table *table = runtime->connections;
    struct pending *requests = calloc((size_t) count + 1, sizeof(*requests));
    rondo_result_t result = RONDO_SUCCESS;
    int asked = 0;
    if (requests == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to connect %d connectors", count);

    /* Ask for all first, so that the answers overlap. */
    for (; asked < count && result == RONDO_SUCCESS; asked++) {
        struct rondo_connector_wish *wish = &wishes[asked];
        struct pending *pending = &requests[asked];
        wish->connector = NULL;
        pthread_mutex_lock(&table->lock);
        if (wish->direction == RONDO_INCOMING) {
            struct listener *listener;
            result = listen_on(runtime, &wish->key, &wish->spec, &listener);
            if (result == RONDO_SUCCESS) {
                listener->opened = OPEN;
                wish->connector = &listener->connector;
            }
            pthread_mutex_unlock(&table->lock);
            continue;
        }
        pending->cookie = ++table->next_cookie;
        pending->peer = wish->key.destination;
        pending->next = table->pending;
        table->pending = pending;
        pthread_mutex_unlock(&table->lock);
        struct ask ask = {pending->cookie, wish->key, wish->spec.slot_bytes, wish->spec.slot_count};
        result = rondo_control_send(runtime->control, pending->peer, RONDO_MESSAGE_CONNECT, &ask, sizeof(ask));
    }
    for (int i = 0; i < asked; i++) {
        if (requests[i].cookie == 0)
            continue;
        pthread_mutex_lock(&table->lock);
        if (result == RONDO_SUCCESS)
            result = await(runtime, &requests[i]);
        pthread_mutex_unlock(&table->lock);
        if (result == RONDO_SUCCESS)
            result = open_sender(runtime, &wishes[i], &requests[i]);
    }
    pthread_mutex_lock(&table->lock);
    for (int i = 0; i < asked; i++)
        for (struct pending **link = &table->pending; *link != NULL; link = &(*link)->next)
            if (*link == &requests[i]) {
                *link = requests[i].next;
                break;
            }
    pthread_mutex_unlock(&table->lock);
    for (int i = 0; result != RONDO_SUCCESS && i < asked; i++)
        if (wishes[i].connector != NULL || requests[i].cookie != 0)
            rondo_disconnect(runtime, &wishes[i].key, wishes[i].connector);
    free(requests);
    return result;
}

void rondo_disconnect(struct rondo_runtime *runtime, const struct rondo_connector_key *key, struct rondo_connector *connector)
{
    struct rondo_connect_table *table = runtime->connections;
    pthread_mutex_lock(&table->lock);
    struct listener *listener = key->destination == runtime->rank ? find(table, key) : NULL;
    int receives = listener != NULL && connector == &listener->connector;
    if (receives) {
        listener->opened = CLOSED;
        close_if_unused(runtime, listener);
    }
    pthread_mutex_unlock(&table->lock);
    if (!receives)
        close_sender(runtime, key, connector);
}

void rondo_connect_forget(struct rondo_runtime *runtime, uint64_t comm, uint64_t lane)
{
    struct rondo_connect_table *table = runtime->connections;
    pthread_mutex_lock(&table->lock);
    for (int b = 0; b < BUCKETS; b++)
        for (struct listener **link = &table->buckets[b]; *link != NULL;) {
            struct listener *listener = *link;
            if (listener->key.comm != comm || listener->key.lane != lane) {
                link = &listener->next;
                continue;
            }
            *link = listener->next;
            listener->connector.transport->close_listener(runtime, &listener->connector);
            free(listener);
        }
    pthread_mutex_unlock(&table->lock);
}
