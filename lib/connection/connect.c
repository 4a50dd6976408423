/*
 * The table of connectors (lib/connection/connect.h): a hash table of this rank's halves, and the list of requests that wait
 * for a peer's answer. One lock, the connect lock, protects both. Relies on the transports and the control plane.
 */
#include "lib/connection/connect.h"

#include "device/engine/use.h"
#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096
#define SHUT_MS 2000 /* longest wait at finalize for peers to release this rank's memory */

/* This rank's half of a connector: memory that the peer accesses. The receiver always has one. The sender has one if the
 * transport has the operation offer. Of a multicast connector the sender has one that all receivers access, and the receivers
 * have none. */
struct half {
    struct half *next;
    struct rondo_connector_key key;
    enum rondo_direction direction; /* as this rank sees the connector */
    struct rondo_connector connector;
    struct rondo_ticket ticket;
    enum { UNOPENED, OPEN, CLOSED } opened;   /* by this rank's lane */
    enum { UNASKED, ASKED, WITHDRAWN } asked; /* by the other side; WITHDRAWN: by all other sides */
    uint32_t withdrawn;                       /* receivers of a multicast connector that have withdrawn */
    int joined;                               /* the peer's memory is mapped, if the peer has any */
};

/* A request that waits for the peer's answer. */
struct pending {
    struct pending *next;
    uint64_t cookie;
    int peer;
    int answered, refused;
    rondo_result_t result;
    struct rondo_ticket ticket;
    char message[160];
};

struct rondo_connect_table {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    struct half *buckets[BUCKETS];
    struct pending *pending;
    uint64_t next_cookie;
    int shut; /* the runtime is being finalized */
};

/* A CONNECT message. direction: that of the requested half, as its owner sees it. */
struct ask {
    uint64_t cookie;
    struct rondo_connector_key key;
    uint32_t slot_bytes, slot_count;
    uint32_t receivers; /* of a multicast connector; else 0 */
    uint32_t direction;
};

struct withdrawal {
    struct rondo_connector_key key;
    uint64_t direction; /* of the half that the sender of this message no longer uses */
};

struct answer {
    uint64_t cookie;
    uint64_t result;
    uint64_t refused; /* rondo_last_error_refuses of the one who answers */
    struct rondo_ticket ticket;
    char message[160];
};

rondo_result_t rondo_connect_create(struct rondo_connect_table **result)
{
    struct rondo_connect_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the table of connectors");
    pthread_mutex_init(&table->lock, NULL);
    rondo_condition_init(&table->answered);
    *result = table;
    return RONDO_SUCCESS;
}

/* Undoes the transport's connect or accept: releases the peer's memory. May wait for the device. */
static void leave_other(struct rondo_runtime *runtime, struct half *half)
{
    const struct rondo_transport *transport = half->connector.transport;
    if (half->joined && half->direction == RONDO_OUTGOING)
        transport->close_sender(&runtime->transport, &half->connector);
    else if (half->joined && transport->close_receiver != NULL)
        transport->close_receiver(&runtime->transport, &half->connector);
    half->joined = 0;
}

/* Frees this rank's half. Neither side may use it any more. */
static void free_half(struct rondo_runtime *runtime, struct half *half)
{
    const struct rondo_transport *transport = half->connector.transport;
    if (half->direction == RONDO_INCOMING || half->connector.spec.receivers > 0)
        transport->close_listener(&runtime->transport, &half->connector);
    else
        transport->close_offer(&runtime->transport, &half->connector);
    free(half);
}

/* Whether a living peer still has a half of this rank mapped, of a transport with offers (GPU memory). Lock held. GPU memory
 * must not be freed while a peer has it mapped. Each mapping of shared memory holds its own reference, so shared memory may. */
static int is_mapped_by_others(const struct rondo_runtime *runtime)
{
    for (int b = 0; b < BUCKETS; b++)
        for (const struct half *half = runtime->connections->buckets[b]; half != NULL; half = half->next)
            if (half->connector.transport->offer != NULL && half->asked == ASKED &&
                !rondo_is_gone(runtime, half->connector.spec.peer))
                return 1;
    return 0;
}

/* Waits, at most SHUT_MS, until no living peer has this rank's memory mapped. Lock held; the wait releases it. Each peer unmaps
 * at its own finalize, which does not depend on this rank. */
static void await_withdrawals(struct rondo_runtime *runtime)
{
    struct rondo_connect_table *table = runtime->connections;
    struct timespec deadline;
    rondo_deadline_in(&deadline, SHUT_MS / 1000.0);
    while (is_mapped_by_others(runtime) && pthread_cond_timedwait(&table->answered, &table->lock, &deadline) == 0)
        ;
}

void rondo_connect_shut(struct rondo_runtime *runtime)
{
    struct rondo_connect_table *table = runtime->connections;
    pthread_mutex_lock(&table->lock);
    table->shut = 1;
    if (runtime->control != NULL)
        await_withdrawals(runtime);
    for (int b = 0; b < BUCKETS; b++)
        while (table->buckets[b] != NULL) {
            struct half *half = table->buckets[b];
            table->buckets[b] = half->next;
            leave_other(runtime, half);
            free_half(runtime, half);
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

static struct half **bucket_of(struct rondo_connect_table *table, const struct rondo_connector_key *key)
{
    const uint64_t hash = rondo_hash(RONDO_HASH_BASIS, key, sizeof(*key));
    return &table->buckets[(hash ^ hash >> 32) % BUCKETS];
}

static struct half *find(struct rondo_connect_table *table, const struct rondo_connector_key *key,
                         enum rondo_direction direction)
{
    struct half *half = *bucket_of(table, key);
    while (half != NULL && (half->direction != direction || memcmp(&half->key, key, sizeof(*key)) != 0))
        half = half->next;
    return half;
}

static rondo_result_t make_half(struct rondo_runtime *runtime, const struct rondo_connector_key *key,
                                enum rondo_direction direction, const struct rondo_connector_spec *spec, struct half **result)
{
    struct half *half = calloc(1, sizeof(*half));
    if (half == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a connector");
    struct rondo_connector *connector = &half->connector;
    half->key = *key;
    half->direction = direction;
    connector->spec = *spec;
    rondo_result_t status = rondo_transport_choose(&runtime->transport, spec->peer, &connector->transport);
    if (status == RONDO_SUCCESS && spec->receivers > 0)
        status = connector->transport->multicast_offer != NULL
                     ? connector->transport->multicast_offer(&runtime->transport, connector, &half->ticket)
                     : rondo_fail(RONDO_ERR_TRANSPORT, "transport %s of rank %d has no multicast connectors",
                                  connector->transport->name, runtime->rank);
    else if (status == RONDO_SUCCESS && direction == RONDO_INCOMING)
        status = connector->transport->listen(&runtime->transport, connector, &half->ticket);
    else if (status == RONDO_SUCCESS && connector->transport->offer != NULL)
        status = connector->transport->offer(&runtime->transport, connector, &half->ticket);
    else if (status == RONDO_SUCCESS)
        status = rondo_fail(RONDO_ERR_TRANSPORT,
                            "rank %d wants memory of the sender, which transport %s, chosen by rank %d, has not (do "
                            "RONDO_TRANSPORTS match?)",
                            spec->peer, connector->transport->name, runtime->rank);
    if (status != RONDO_SUCCESS) {
        free(half);
        return status;
    }
    strncpy(half->ticket.transport, connector->transport->name, sizeof(half->ticket.transport) - 1);
    struct half **bucket = bucket_of(runtime->connections, key);
    half->next = *bucket;
    *bucket = half;
    *result = half;
    return RONDO_SUCCESS;
}

/* Finds the half, or creates it: either side's first request does. Lock held. */
static rondo_result_t get_half(struct rondo_runtime *runtime, const struct rondo_connector_key *key,
                               enum rondo_direction direction, const struct rondo_connector_spec *spec, struct half **result)
{
    struct rondo_connect_table *table = runtime->connections;
    if (table->shut)
        return rondo_fail(RONDO_ERR_PEER, "rank %d is being finalized", runtime->rank);
    *result = find(table, key, direction);
    if (*result == NULL)
        return make_half(runtime, key, direction, spec, result);
    const struct rondo_connector_spec *other = &(*result)->connector.spec;
    if (other->slot_bytes != spec->slot_bytes || other->slot_count != spec->slot_count || other->receivers != spec->receivers)
        return rondo_fail(
            RONDO_ERR_MISMATCH,
            "ranks %d and %d disagree about a connector: %u slots of %u bytes for %u receivers against %u of %u for "
            "%u (do their calls match?)",
            key->source, key->destination, other->slot_count, other->slot_bytes, other->receivers, spec->slot_count,
            spec->slot_bytes, spec->receivers);
    return RONDO_SUCCESS;
}

/* Frees the half if both sides have closed it. Lock held. Each side opens and closes exactly once, and the sides do so in any
 * order. A sender may fill slots, complete and close before this rank's lane opens. A receiver that needed no data may close
 * before the sender asks. */
static void close_if_unused(struct rondo_runtime *runtime, struct half *half)
{
    if (half->opened != CLOSED || half->asked != WITHDRAWN)
        return;
    struct half **link = bucket_of(runtime->connections, &half->key);
    while (*link != half)
        link = &(*link)->next;
    *link = half->next;
    free_half(runtime, half);
}

/* Whether the requested half belongs to this rank, and its connector's other side to rank source. */
static int names_half(const struct rondo_runtime *runtime, int source, const struct rondo_connector_key *key,
                      uint64_t direction)
{
    if (direction == RONDO_INCOMING)
        return key->source == source && key->destination == runtime->rank;
    return direction == RONDO_OUTGOING && (key->destination == source || key->destination == RONDO_ALL_RECEIVE) &&
           key->source == runtime->rank;
}

static void answer_ask(struct rondo_runtime *runtime, int source, const struct ask *ask)
{
    struct answer answer = {.cookie = ask->cookie};
    const int multicast = ask->key.destination == RONDO_ALL_RECEIVE;
    struct rondo_connector_spec spec = {.slot_bytes = ask->slot_bytes,
                                        .slot_count = ask->slot_count,
                                        .protocol = ask->key.protocol,
                                        .peer = multicast ? runtime->rank : source,
                                        .receivers = ask->receivers};
    struct half *half = NULL;
    rondo_result_t result;
    int sane = names_half(runtime, source, &ask->key, ask->direction) && ask->slot_bytes >= 64 && ask->slot_bytes % 64 == 0 &&
               ask->slot_bytes <= 1u << 26 && ask->slot_count > 0 && ask->slot_count <= 1024 &&
               (ask->slot_count & (ask->slot_count - 1)) == 0 && (multicast ? ask->receivers > 0 : ask->receivers == 0) &&
               ask->receivers < (uint32_t) runtime->size && multicast == rondo_is_multicast(ask->key.protocol);
    pthread_mutex_lock(&runtime->connections->lock);
    if (!sane)
        result = rondo_fail(RONDO_ERR_TRANSPORT, "rank %d asks for a connector %d -> %d with %u slots of %u bytes", source,
                            ask->key.source, ask->key.destination, ask->slot_count, ask->slot_bytes);
    else
        result = get_half(runtime, &ask->key, (enum rondo_direction) ask->direction, &spec, &half);
    if (result == RONDO_SUCCESS) {
        half->asked = ASKED;
        answer.ticket = half->ticket;
    } else {
        strncpy(answer.message, rondo_last_error(), sizeof(answer.message) - 1);
        answer.refused = (uint64_t) rondo_last_error_refuses();
    }
    pthread_mutex_unlock(&runtime->connections->lock);
    answer.result = (uint64_t) result;
    /* A rank that has asked waits for the answer. */
    if (rondo_control_send(runtime->control, source, RONDO_MESSAGE_CONNECTED, &answer, sizeof(answer)) == RONDO_ERR_MEMORY)
        rondo_comm_fail_by_id(runtime, ask->key.comm, RONDO_ERR_MEMORY, "connecting");
}

static void withdraw(struct rondo_runtime *runtime, int source, const struct withdrawal *what)
{
    struct rondo_connect_table *table = runtime->connections;
    if (!names_half(runtime, source, &what->key, what->direction))
        return;
    pthread_mutex_lock(&table->lock);
    struct half *half = find(table, &what->key, (enum rondo_direction) what->direction);
    if (half != NULL) {
        if (half->connector.spec.receivers == 0 || ++half->withdrawn == half->connector.spec.receivers)
            half->asked = WITHDRAWN;
        close_if_unused(runtime, half);
    }
    pthread_cond_broadcast(&table->answered);
    pthread_mutex_unlock(&table->lock);
}

static void take_answer(struct rondo_connect_table *table, int source, const struct answer *answer)
{
    pthread_mutex_lock(&table->lock);
    for (struct pending *pending = table->pending; pending != NULL; pending = pending->next)
        if (pending->cookie == answer->cookie && pending->peer == source) {
            pending->result = (rondo_result_t) answer->result;
            pending->refused = answer->refused != 0;
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
    } else if (type == RONDO_MESSAGE_CLOSE && bytes == sizeof(struct withdrawal)) {
        struct withdrawal what;
        memcpy(&what, data, sizeof(what));
        withdraw(runtime, source, &what);
    } else {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped a connection message of type %u and %zu bytes from rank %d", type,
                  bytes, source);
    }
}

void rondo_connect_wake(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->connections->lock);
    pthread_cond_broadcast(&runtime->connections->answered);
    pthread_mutex_unlock(&runtime->connections->lock);
}

/* Waits for the peer's answer. Lock held; the wait releases it. RONDO_ERR_PEER if the peer has gone, the communicator's
 * failure, RONDO_ERR_TIMEOUT, else the peer's result. */
static rondo_result_t await(const struct rondo_comm *comm, struct pending *pending)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_connect_table *table = runtime->connections;
    const struct rondo_settings *settings = &runtime->settings;
    const int hurries = settings->timeout > 0 && settings->timeout < settings->connect_timeout;
    const double seconds = hurries ? settings->timeout : settings->connect_timeout;
    struct timespec deadline;
    rondo_deadline_in(&deadline, seconds + 1);
    while (!pending->answered) {
        if (rondo_comm_failure(comm) != RONDO_SUCCESS)
            return rondo_fail(rondo_comm_failure(comm), "%s", comm->failure);
        if (rondo_is_gone(runtime, pending->peer))
            return rondo_fail(RONDO_ERR_PEER, "rank %d has gone while connecting to it", pending->peer);
        if (pthread_cond_timedwait(&table->answered, &table->lock, &deadline) != 0)
            return rondo_fail(RONDO_ERR_TIMEOUT, "rank %d has not answered a connection within %g s", pending->peer, seconds);
    }
    if (pending->refused)
        return rondo_refuse("rank %d: %s", pending->peer, pending->message);
    if (pending->result != RONDO_SUCCESS)
        return rondo_fail(pending->result, "rank %d: %s", pending->peer, pending->message);
    return RONDO_SUCCESS;
}

/* ---- this rank's connectors ---- */

/* The progress of one request of rondo_connect. */
struct attempt {
    struct pending pending; /* cookie 0: the peer has not been asked */
    const struct rondo_transport *transport;
    struct half *half; /* NULL: a sender, or a multicast receiver, without memory of its own */
};

/* The other side's rank in the world; a multicast sender's own. */
static int peer_of(const struct rondo_connector_request *request)
{
    const int outgoing = request->direction == RONDO_OUTGOING && request->spec.receivers == 0;
    return outgoing ? request->key.destination : request->key.source;
}

/* Creates this rank's half, if this side has memory, and asks the peer for its half, if that side has memory. Does not wait. */
static rondo_result_t begin(struct rondo_runtime *runtime, struct rondo_connector_request *request, struct attempt *attempt)
{
    struct rondo_connect_table *table = runtime->connections;
    const int outgoing = request->direction == RONDO_OUTGOING, multicast = request->spec.receivers > 0;
    const int peer = peer_of(request);
    struct rondo_connector_spec spec = request->spec;
    spec.peer = peer;
    request->connector = NULL;
    rondo_result_t result = rondo_transport_choose(&runtime->transport, peer, &attempt->transport);
    if (result != RONDO_SUCCESS)
        return result;
    const int both_have_memory = attempt->transport->offer != NULL && !multicast;
    const int has_memory = both_have_memory || outgoing == multicast;
    pthread_mutex_lock(&table->lock);
    if (has_memory)
        result = get_half(runtime, &request->key, request->direction, &spec, &attempt->half);
    if (result == RONDO_SUCCESS && attempt->half != NULL) {
        attempt->half->opened = OPEN;
        request->connector = &attempt->half->connector;
    }
    int asks = result == RONDO_SUCCESS && (!has_memory || both_have_memory);
    if (asks) {
        attempt->pending.cookie = ++table->next_cookie;
        attempt->pending.peer = peer;
        attempt->pending.next = table->pending;
        table->pending = &attempt->pending;
    }
    pthread_mutex_unlock(&table->lock);
    if (!asks)
        return result;
    struct ask ask = {attempt->pending.cookie, request->key,   spec.slot_bytes,
                      spec.slot_count,         spec.receivers, outgoing ? RONDO_INCOMING : RONDO_OUTGOING};
    return rondo_control_send(runtime->control, peer, RONDO_MESSAGE_CONNECT, &ask, sizeof(ask));
}

/* Waits for the peer's answer, if the peer was asked, and maps the memory that it names. */
static rondo_result_t join(struct rondo_runtime *runtime, struct rondo_connector_request *request, struct attempt *attempt)
{
    const struct rondo_transport *transport = attempt->transport;
    const struct rondo_ticket *ticket = &attempt->pending.ticket;
    if (strcmp(transport->name, ticket->transport) != 0)
        return rondo_fail(RONDO_ERR_TRANSPORT,
                          "rank %d offers transport %s where this rank chose %s (do RONDO_TRANSPORTS match?)",
                          attempt->pending.peer, ticket->transport, transport->name);
    if (request->direction == RONDO_INCOMING && request->spec.receivers == 0) {
        rondo_result_t result = transport->accept(&runtime->transport, &attempt->half->connector, ticket);
        attempt->half->joined = result == RONDO_SUCCESS;
        return result;
    }
    if (attempt->half != NULL) {
        rondo_result_t result = transport->connect(&runtime->transport, &attempt->half->connector, ticket);
        attempt->half->joined = result == RONDO_SUCCESS;
        return result;
    }
    struct rondo_connector *connector = calloc(1, sizeof(*connector));
    if (connector == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a connector");
    connector->spec = request->spec;
    connector->transport = transport;
    rondo_result_t result = request->spec.receivers > 0 ? transport->multicast_accept(&runtime->transport, connector, ticket)
                                                        : transport->connect(&runtime->transport, connector, ticket);
    if (result != RONDO_SUCCESS)
        free(connector);
    else
        request->connector = connector;
    return result;
}

/* Closes what has been opened of the begun connectors. The message of the failure, and that it refuses, stay. */
static void undo(struct rondo_runtime *runtime, struct rondo_connector_request *requests, const struct attempt *attempts,
                 int begun)
{
    char message[1024];
    const int refuses = rondo_last_error_refuses();
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    for (int i = 0; i < begun; i++)
        if (requests[i].connector != NULL || attempts[i].pending.cookie != 0)
            rondo_disconnect(runtime, &requests[i].key, requests[i].connector);
    if (refuses)
        rondo_refuse("%s", message);
    else
        rondo_fail(RONDO_ERR_TRANSPORT, "%s", message);
}

rondo_result_t rondo_connect(const struct rondo_comm *comm, struct rondo_connector_request *requests, int count)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_connect_table *table = runtime->connections;
    struct attempt *attempts = calloc((size_t) count + 1, sizeof(*attempts));
    rondo_result_t result = RONDO_SUCCESS;
    int begun = 0;
    if (attempts == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to connect %d connectors", count);

    /* All requests are sent before the first wait, so that the answers overlap. */
    for (; begun < count && result == RONDO_SUCCESS; begun++)
        result = begin(runtime, &requests[begun], &attempts[begun]);
    for (int i = 0; i < begun; i++) {
        if (attempts[i].pending.cookie == 0)
            continue;
        pthread_mutex_lock(&table->lock);
        if (result == RONDO_SUCCESS)
            result = await(comm, &attempts[i].pending);
        pthread_mutex_unlock(&table->lock);
        if (result == RONDO_SUCCESS)
            result = join(runtime, &requests[i], &attempts[i]);
    }
    pthread_mutex_lock(&table->lock);
    for (int i = 0; i < begun; i++)
        for (struct pending **link = &table->pending; *link != NULL; link = &(*link)->next)
            if (*link == &attempts[i].pending) {
                *link = attempts[i].pending.next;
                break;
            }
    pthread_mutex_unlock(&table->lock);
    if (result != RONDO_SUCCESS)
        undo(runtime, requests, attempts, begun);
    free(attempts);
    return result;
}

/* The half that contains the connector. NULL if the connector is a sender's, or a multicast receiver's, without memory of its
 * own. */
static struct half *half_of(struct rondo_connect_table *table, const struct rondo_connector_key *key,
                            const struct rondo_connector *connector)
{
    struct half *half = find(table, key, RONDO_INCOMING);
    if (half == NULL || connector != &half->connector)
        half = find(table, key, RONDO_OUTGOING);
    return half != NULL && connector == &half->connector ? half : NULL;
}

void rondo_disconnect(struct rondo_runtime *runtime, const struct rondo_connector_key *key, struct rondo_connector *connector)
{
    struct rondo_connect_table *table = runtime->connections;
    const int multicast = key->destination == RONDO_ALL_RECEIVE;
    struct withdrawal what = {*key, multicast ? RONDO_OUTGOING : RONDO_INCOMING};
    int peer = multicast ? key->source : key->destination, tells = 1;
    pthread_mutex_lock(&table->lock);
    struct half *half = half_of(table, key, connector);
    pthread_mutex_unlock(&table->lock);
    if (half == NULL) {
        if (connector != NULL) {
            connector->transport->close_sender(&runtime->transport, connector);
            free(connector);
        }
    } else {
        if (half->direction == RONDO_INCOMING) {
            what.direction = RONDO_OUTGOING;
            peer = key->source;
            tells = connector->transport->offer != NULL;
        }
        if (multicast) /* the receivers have no half */
            tells = 0;
        leave_other(runtime, half); /* an open half is not moved or freed by other threads */
        pthread_mutex_lock(&table->lock);
        half->opened = CLOSED;
        close_if_unused(runtime, half);
        pthread_mutex_unlock(&table->lock);
    }
    if (tells)
        rondo_control_send(runtime->control, peer, RONDO_MESSAGE_CLOSE, &what, sizeof(what));
}

void rondo_connect_forget(struct rondo_runtime *runtime, uint64_t comm, uint64_t lane)
{
    struct rondo_connect_table *table = runtime->connections;
    pthread_mutex_lock(&table->lock);
    for (int b = 0; b < BUCKETS; b++)
        for (struct half **link = &table->buckets[b]; *link != NULL;) {
            struct half *half = *link;
            if (half->key.comm != comm || half->key.lane != lane) {
                link = &half->next;
                continue;
            }
            *link = half->next;
            free_half(runtime, half);
        }
    pthread_mutex_unlock(&table->lock);
}
