/*
 * Receiving through UCX: slots for incoming ports, credits for outgoing ones. Messages of one peer may overtake each other
 * (small ones large ones), so a receiver's tail is the number up to which all slots have arrived. What a message says is
 * checked before it is believed: the port's number and key, the bytes, and that the device has given the slot back.
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
    char *slot = port->slots + (size_t) (fetched->header.number & (port->slot_count - 1)) * port->slot_bytes;
    if (status == UCS_OK && (!ucx->context->encrypts || unseal_slot(ucx, port, &fetched->header, fetched->tag, slot, slot)))
        take_slot(port, fetched->header.number);
    else if (status != UCS_OK)
        rondo_ucx_lose(ucx, port->peer, ucx->library->ucs_status_string(status));
    ucx->library->ucp_request_free(request);
}

/* UCX fetches the data into the slot. */
static ucs_status_t fetch_slot(struct rondo_ucx *ucx, struct rondo_port *port, const struct rondo_ucx_slot_header *header,
                               const unsigned char *tag, void *descriptor)
{
    struct rondo_ucx_incoming *incoming = port->messages;
    uint32_t slot = (uint32_t) (header->number & (port->slot_count - 1));
    struct rondo_ucx_fetched_slot *fetched = &incoming->fetched[slot];
    char *to = port->slots + (size_t) slot * port->slot_bytes;
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
    ucs_status_ptr_t request = ucx->library->ucp_am_recv_data_nbx(ucx->worker, descriptor, to, header->bytes, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return UCS_INPROGRESS;
    port->receiving--;
    ucx->under_way--;
    if (UCS_PTR_IS_ERR(request))
        rondo_ucx_lose(ucx, port->peer, ucx->library->ucs_status_string(UCS_PTR_STATUS(request)));
    else if (!ucx->context->encrypts || unseal_slot(ucx, port, header, tag, to, to))
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
    struct rondo_ucx_slot_header header;
    ucx->events++;
    if (text_bytes != RONDO_UCX_SLOT_HEADER_BYTES)
        return UCS_OK;
    memcpy(&header, text, sizeof(header));
    struct rondo_port *port = addressee(ucx, header.port, header.key, RONDO_INCOMING);
    int fetched = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || ucx->direct.gpu >= 0;
    size_t padding = bytes - header.bytes; /* huge, where there are fewer */
    if (port == NULL || header.bytes > port->slot_bytes || (padding != 0 && (padding != RONDO_UCX_PADDING_BYTES || fetched)))
        return UCS_OK;
    uint32_t slot = (uint32_t) (header.number & (port->slot_count - 1));
    /* Only a slot that the device has given back, and only once. Acquire: the device's reading of the slot has ended. */
    if (header.number - rondo_load_acquire(port->published) >= port->slot_count || header.number < port->arrived ||
        port->ready[slot] == (uint32_t) header.number + 1)
        return UCS_OK;
    const unsigned char *tag = (const unsigned char *) text + sizeof(header);
    if (fetched)
        return fetch_slot(ucx, port, &header, tag, data);
    const char *own = (const char *) data + padding;
    char *place = port->slots + (size_t) slot * port->slot_bytes;
    if (ucx->context->encrypts) {
        if (!unseal_slot(ucx, port, &header, tag, own, place))
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

ucs_status_t rondo_ucx_credit_came(void *argument, const void *text, size_t text_bytes, void *data, size_t bytes,
                                   const ucp_am_recv_param_t *how)
{
    struct rondo_ucx *ucx = argument;
    struct rondo_ucx_credit_header header;
    (void) data;
    (void) how;
    ucx->events++;
    if (text_bytes != RONDO_UCX_CREDIT_HEADER_BYTES || bytes != 0)
        return UCS_OK;
    memcpy(&header, text, sizeof(header));
    struct rondo_port *port = addressee(ucx, header.port, header.key, RONDO_OUTGOING);
    if (port == NULL || header.head <= port->arrived || header.head > port->transmitted)
        return UCS_OK;
    struct rondo_cipher_message message = {port->cipher, header.head, &header, sizeof(header)};
    if (ucx->context->encrypts && !rondo_cipher_open(&message, NULL, NULL, 0, (const unsigned char *) text + sizeof(header))) {
        rondo_ucx_lose(ucx, port->peer, "a message was altered on its way");
        return UCS_OK;
    }
    port->arrived = header.head;
    rondo_store_release(port->watched, header.head);
    return UCS_OK;
}
