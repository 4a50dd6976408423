/*
 * Receiving through UCX: slots for incoming ports, credits for outgoing ones. Messages of one peer may overtake each other
 * (small ones large ones), so a receiver's tail is the number up to which all slots have arrived. What a message says is
 * checked before it is believed: the port's number and key, the bytes, and that the device has given the slot back. A slot that
 * has come before is dropped, and its sender told what has arrived: the first word of it may be lost.
 */
#include "transport/ucx/ucx.h"

#include "device/abi/platform.h"
#include "device/engine/receive_action.h"

#include <string.h>

static void take_slot(struct rondo_port *port, uint64_t number)
{
    uint32_t mask = port->slot_count - 1;
    port->ready[number & mask] = (uint32_t) number + 1;
    while (port->ready[port->arrived & mask] == (uint32_t) port->arrived + 1)
        port->arrived++;
    /* Release: after the slots' data. */
    rondo_store_release(port->remote_tail != NULL ? port->remote_tail : port->watched, port->arrived);
    const struct rondo_ucx_incoming *incoming = port->messages;
    if (incoming->wanted > incoming->told)
        ((struct rondo_ucx *) port->network_state)->owing = 1;
}

/* Of a slot that the device has given back: whether it has arrived since. */
static int is_there(const struct rondo_port *port, uint64_t number)
{
    return port->ready[number & (port->slot_count - 1)] == (uint32_t) number + 1;
}

/* Whether the slot's data are what the sender has sealed; they are then at `to` in plain text. Else the peer is lost: a message
 * for this port that does not hold was altered on its way or forged. */
static int unseal_slot(struct rondo_ucx *ucx, const struct rondo_port *port, const struct rondo_ucx_slot_header *header,
                       const unsigned char *tag, const void *from, void *to)
{
    struct rondo_cipher_message message = {port->cipher, header->number, header, sizeof(*header)};
    int good = rondo_cipher_open(&message, from, to, header->bytes, tag);
    if (!good)
        rondo_ucx_lose(ucx, port->peer, "an encrypted message was altered on its way");
    return good;
}

static void received(void *request, ucs_status_t status, size_t length, void *argument)
{
    struct rondo_ucx_fetched_slot *fetched = argument;
    struct rondo_port *port = fetched->port;
    struct rondo_ucx *ucx = port->network_state;
    (void) length;
    port->receiving--;
    ucx->under_way--;
    ucx->events++;
    fetched->under_way = 0;
    char *slot = port->slots + (size_t) (fetched->header.number & (port->slot_count - 1)) * port->slot_bytes;
    if (status == UCS_OK && (!ucx->context->encrypts || unseal_slot(ucx, port, &fetched->header, fetched->tag, slot, slot)))
        take_slot(port, fetched->header.number);
    ucx->library->ucp_request_free(request); /* what has failed comes again over the next connection */
}

/* UCX fetches the data into the slot. */
static ucs_status_t fetch_slot(struct rondo_ucx *ucx, struct rondo_port *port, const struct rondo_ucx_slot_header *header,
                               const unsigned char *tag, void *descriptor)
{
    struct rondo_ucx_incoming *incoming = port->messages;
    uint32_t slot = (uint32_t) (header->number & (port->slot_count - 1));
    struct rondo_ucx_fetched_slot *fetched = &incoming->fetched[slot];
    char *to = port->slots + (size_t) slot * port->slot_bytes;
    if (fetched->under_way) { /* over a connection that has broken: its end is not here yet */
        struct rondo_ucx_connection *connection = rondo_ucx_connection_of(ucx, port);
        if (connection != NULL)
            rondo_ucx_break(connection, connection->generation + 1, 0, "a slot came again while it was being fetched");
        return UCS_OK;
    }
    fetched->port = port;
    fetched->header = *header;
    memcpy(fetched->tag, tag, sizeof(fetched->tag));
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.recv_am = received,
        .user_data = fetched,
        .memory_type = ucx->direct.memory_type,
    };
    port->receiving++;
    ucx->under_way++;
    fetched->under_way = 1;
    ucs_status_ptr_t request = ucx->library->ucp_am_recv_data_nbx(ucx->worker, descriptor, to, header->bytes, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return UCS_INPROGRESS;
    port->receiving--;
    ucx->under_way--;
    fetched->under_way = 0;
    if (!UCS_PTR_IS_ERR(request) && (!ucx->context->encrypts || unseal_slot(ucx, port, header, tag, to, to)))
        take_slot(port, header->number);
    return UCS_INPROGRESS; /* the descriptor is UCX's again in any case */
}

/* The port that a message may be for, or NULL. */
static struct rondo_port *addressee(struct rondo_ucx *ucx, uint32_t number, uint64_t key, enum rondo_direction direction)
{
    struct rondo_port *port = rondo_port_find(rondo_proxy_ports(ucx->proxy), number);
    return port != NULL && port->key == key && port->direction == direction && port->network == &rondo_network_ucx ? port
                                                                                                                   : NULL;
}

ucs_status_t rondo_ucx_slot_came(void *argument, const void *text, size_t text_bytes, void *data, size_t bytes,
                                 const ucp_am_recv_param_t *how)
{
    struct rondo_ucx *ucx = argument;
    struct rondo_ucx_sent_header came;
    ucx->events++;
    if (text_bytes != sizeof(came))
        return UCS_OK;
    memcpy(&came, text, sizeof(came));
    const struct rondo_ucx_slot_header header = came.slot;
    struct rondo_port *port = addressee(ucx, header.port, header.key, RONDO_INCOMING);
    int fetched = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || ucx->direct.gpu >= 0;
    size_t padding = bytes - header.bytes; /* huge, where there are fewer */
    if (port == NULL || header.bytes > port->slot_bytes || (padding != 0 && (padding != RONDO_UCX_PADDING_BYTES || fetched)))
        return UCS_OK;
    struct rondo_ucx_incoming *incoming = port->messages;
    uint32_t slot = (uint32_t) (header.number & (port->slot_count - 1));
    /* Acquire: the device's reading of the slot has ended. */
    uint64_t head = rondo_load_acquire(port->published);
    if (header.number < port->arrived || (header.number - head < port->slot_count && is_there(port, header.number))) {
        incoming->owes = 1; /* it has come again */
        rondo_ucx_owe(ucx, port);
        return UCS_OK;
    }
    if (header.number - head >= port->slot_count) /* only a slot that the device has given back */
        return UCS_OK;
    if (came.asks && header.number >= incoming->wanted) {
        incoming->wanted = header.number + 1;
        rondo_ucx_owe(ucx, port);
    }
    if (fetched)
        return fetch_slot(ucx, port, &header, came.tag, data);
    const char *own = (const char *) data + padding;
    char *place = port->slots + (size_t) slot * port->slot_bytes;
    if (ucx->context->encrypts) {
        if (!unseal_slot(ucx, port, &header, came.tag, own, place))
            return UCS_OK;
        own = place;
    }
    if (port->receive_actions == NULL ||
        !rondo_receive_action_run(&port->receive_actions[slot], header.number, own, header.bytes)) {
        if (own != place)
            memcpy(place, own, header.bytes);
    }
    take_slot(port, header.number);
    return UCS_OK;
}

/* The port that a word is for, if the word holds; else NULL. bit: of the number for the cipher. */
static struct rondo_port *take_word(struct rondo_ucx *ucx, const void *text, size_t text_bytes, size_t bytes,
                                    enum rondo_direction direction, uint64_t bit, struct rondo_ucx_word *word)
{
    struct rondo_ucx_sent_word came;
    ucx->events++;
    if (text_bytes != RONDO_UCX_WORD_HEADER_BYTES || bytes != 0)
        return NULL;
    memcpy(&came, text, RONDO_UCX_WORD_HEADER_BYTES);
    *word = came.word;
    struct rondo_port *port = addressee(ucx, word->port, word->key, direction);
    if (port == NULL || (word->number & RONDO_UCX_QUERY_BIT) != 0)
        return NULL;
    struct rondo_cipher_message message = {port->cipher, word->number | bit, word, sizeof(*word)};
    if (ucx->context->encrypts && !rondo_cipher_open(&message, NULL, NULL, 0, came.tag)) {
        rondo_ucx_lose(ucx, port->peer, "a message was altered on its way");
        return NULL;
    }
    return port;
}

ucs_status_t rondo_ucx_credit_came(void *argument, const void *text, size_t text_bytes, void *data, size_t bytes,
                                   const ucp_am_recv_param_t *how)
{
    struct rondo_ucx *ucx = argument;
    struct rondo_ucx_word word = {0};
    (void) data;
    (void) how;
    struct rondo_port *port = take_word(ucx, text, text_bytes, bytes, RONDO_OUTGOING, 0, &word);
    const uint64_t arrived = word.head > word.arrived ? word.head : word.arrived;
    if (port == NULL || arrived > port->transmitted)
        return UCS_OK;
    if (word.head > port->arrived) {
        port->arrived = word.head;
        rondo_store_release(port->watched, word.head);
    }
    rondo_ucx_hear(ucx, port, word.generation);
    rondo_ucx_take_arrived(ucx, port, arrived, word.answered);
    return UCS_OK;
}

ucs_status_t rondo_ucx_query_came(void *argument, const void *text, size_t text_bytes, void *data, size_t bytes,
                                  const ucp_am_recv_param_t *how)
{
    struct rondo_ucx *ucx = argument;
    struct rondo_ucx_word word;
    (void) data;
    (void) how;
    struct rondo_port *port = take_word(ucx, text, text_bytes, bytes, RONDO_INCOMING, RONDO_UCX_QUERY_BIT, &word);
    struct rondo_ucx_incoming *incoming = port != NULL ? port->messages : NULL;
    if (port == NULL || word.number <= incoming->queries) /* an older one is answered with the later one */
        return UCS_OK;
    incoming->queries = word.number;
    incoming->query = word.number;
    rondo_ucx_owe(ucx, port);
    rondo_ucx_hear(ucx, port, word.generation);
    return UCS_OK;
}
