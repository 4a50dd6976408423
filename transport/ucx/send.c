/*
 * Sending through UCX: slots of outgoing ports, credits of incoming ones. A message's header and data stay as they are until
 * UCX has called `sent`; the device keeps a slot's data until the credit for it is back, and the data of a source reference
 * until `settled` has passed the slot's number.
 */
#include "transport/ucx/ucx.h"

#include "device/abi/platform.h"

enum { TRANSMIT_BYTES = 128 * 1024 };        /* of one call */
#define PADDED_BYTES_MIN ((size_t) 32 << 10) /* fewer are copied by UCX as well, which costs what the padding saves */

/* Release: once no message is on its way, nothing that a source reference below `settled` names is read any more. */
static void settle(struct rondo_port *port)
{
    if (port->source_references != NULL && port->sending == 0)
        rondo_store_release(&port->source_references->settled, port->transmitted);
}

static void sent(void *request, ucs_status_t status, void *argument)
{
    struct rondo_port *port = argument;
    struct rondo_ucx *ucx = port->network_state;
    port->sending--;
    ucx->under_way--;
    ucx->events++;
    settle(port);
    if (status != UCS_OK)
        rondo_ucx_lose(ucx, port->peer, ucx->library->ucs_status_string(status));
    ucx->library->ucp_request_free(request);
}

/* An active message. Header and data stay until it has been sent. */
struct message {
    unsigned id;
    const void *header;
    size_t header_bytes;
    const void *data; /* count bytes; with is_list count ucp_dt_iov_t, which stay as well */
    size_t count;
    int is_list;
};

static void send_message(struct rondo_ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, const struct message *message)
{
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.send = sent,
        .user_data = port,
        .memory_type = ucx->direct.memory_type, /* there are no source references where that is a GPU's */
    };
    if (message->is_list) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        parameters.datatype = ucp_dt_make_iov();
    }
    port->sending++;
    ucx->under_way++;
    ucs_status_ptr_t request = ucx->library->ucp_am_send_nbx(endpoint, message->id, message->header, message->header_bytes,
                                                             message->data, message->count, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return;
    port->sending--; /* done at once, or refused */
    ucx->under_way--;
    if (UCS_PTR_IS_ERR(request))
        rondo_ucx_lose(ucx, port->peer, ucx->library->ucs_status_string(UCS_PTR_STATUS(request)));
}

static void send_slot(struct rondo_ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, struct rondo_ucx_sent_slot *slot,
                      const char *data)
{
    static char padding[RONDO_UCX_PADDING_BYTES]; /* never written */
    struct message message = {.id = RONDO_UCX_SLOT,
                              .header = &slot->header,
                              .header_bytes = RONDO_UCX_SLOT_HEADER_BYTES,
                              .data = data,
                              .count = slot->header.bytes};
    if (ucx->pads && ucx->context->peers[port->peer].device == RONDO_DEVICE_HOST && message.count >= PADDED_BYTES_MIN) {
        slot->parts[0] = (ucp_dt_iov_t){padding, sizeof(padding)};
        slot->parts[1] = (ucp_dt_iov_t){(void *) (uintptr_t) data, message.count};
        message.data = slot->parts;
        message.count = 2;
        message.is_list = 1;
    }
    send_message(ucx, endpoint, port, &message);
}

/* At most TRANSMIT_BYTES, and one slot more: what has come meanwhile is looked after before it leaves the cache. */
static void send_slots(struct rondo_ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, uint64_t tail)
{
    struct rondo_ucx_sent_slot *slots = port->messages;
    size_t sent_bytes = 0;
    for (; port->transmitted != tail && !ucx->peers[port->peer].lost && sent_bytes < TRANSMIT_BYTES; port->transmitted++) {
        uint32_t slot = (uint32_t) (port->transmitted & (port->slot_count - 1));
        const struct rondo_referenced_slot *reference =
            port->source_references != NULL ? &port->source_references->slots[slot] : NULL;
        const char *source = reference != NULL ? reference->source : NULL;
        uint32_t bytes = source != NULL ? (uint32_t) reference->bytes : rondo_load_relaxed32(port->sizes + slot);
        bytes = bytes < port->slot_bytes ? bytes : port->slot_bytes;
        char *own = port->slots + (size_t) slot * port->slot_bytes;
        slots[slot].header = (struct rondo_ucx_slot_header){port->other_key, port->transmitted, port->other_number, bytes};
        if (ucx->context->encrypts) /* there are no source references, and the device reads no slot that it has published */
            rondo_cipher_seal(&(struct rondo_cipher_message){port->other_cipher, port->transmitted, &slots[slot].header,
                                                             sizeof(slots[slot].header)},
                              own, own, bytes, slots[slot].tag);
        send_slot(ucx, endpoint, port, &slots[slot], source != NULL ? source : own);
        sent_bytes += bytes;
    }
    rondo_proxy_note_sent(port->proxy, port->network, sent_bytes);
    settle(port);
}

/* One at a time: a later credit says more. */
static int send_credit(struct rondo_ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, uint64_t head)
{
    struct rondo_ucx_incoming *incoming = port->messages;
    if (port->sending > 0)
        return 0;
    incoming->credit = (struct rondo_ucx_credit_header){port->other_key, head, port->other_number, 0};
    if (ucx->context->encrypts)
        rondo_cipher_seal(&(struct rondo_cipher_message){port->other_cipher, head, &incoming->credit, sizeof(incoming->credit)},
                          NULL, NULL, 0, incoming->tag);
    port->transmitted = head;
    send_message(
        ucx, endpoint, port,
        &(struct message){.id = RONDO_UCX_CREDIT, .header = &incoming->credit, .header_bytes = RONDO_UCX_CREDIT_HEADER_BYTES});
    return 1;
}

int rondo_ucx_transmit(void *state, struct rondo_port *port, uint64_t published)
{
    struct rondo_ucx *ucx = state;
    int transmitted = 1;
    if (!rondo_ucx_direct_enter(&ucx->direct))
        return 0;
    ucp_ep_h endpoint = rondo_ucx_endpoint_of(ucx, port);
    if (endpoint == NULL) {
        port->transmitted = published; /* it will never arrive */
        settle(port);
        transmitted = 0;
    } else if (port->direction == RONDO_INCOMING) {
        transmitted = send_credit(ucx, endpoint, port, published);
    } else {
        send_slots(ucx, endpoint, port, published);
    }
    rondo_ucx_direct_leave(&ucx->direct);
    return transmitted;
}
