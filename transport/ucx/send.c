/*
 * Sending through UCX: slots of outgoing ports, credits of incoming ones. A message's header and data stay as they are until
 * UCX has called `sent`; the device keeps a slot's data until the credit for it is back, and the data of a source reference
 * until `settled` has passed the slot's number. So all that is not confirmed can be sent again: from the source, or from the
 * slot where the source is copied.
 */
#include "transport/ucx/ucx.h"

#include "device/abi/platform.h"

enum { TRANSMIT_BYTES = 128 * 1024 };        /* of one call */
#define PADDED_BYTES_MIN ((size_t) 32 << 10) /* fewer are copied by UCX as well, which costs what the padding saves */

/* A slot that is sent again from its source is settled once it is known to have arrived, and another one once it has been sent.
 * Even then a message may be on its way that reads the source: the first one, where UCX fetches slots, or a later one after a
 * break. */
void rondo_ucx_settle(struct rondo_ucx *ucx, struct rondo_port *port)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    if (port->source_references == NULL || port->sending > 0)
        return;
    const int lost = ucx->peers[port->peer].lost;
    uint64_t settled = outgoing->settled > outgoing->confirmed ? outgoing->settled : outgoing->confirmed;
    while (settled < port->transmitted && (lost || !outgoing->slots[settled & (port->slot_count - 1)].referenced))
        settled++;
    if (settled == outgoing->settled)
        return;
    outgoing->settled = settled;
    /* Release: no message is on its way, so nothing that a source reference below `settled` names is read any more. */
    rondo_store_release(&port->source_references->settled, settled);
}

static void sent(void *request, ucs_status_t status, void *argument)
{
    struct rondo_port *port = argument;
    struct rondo_ucx *ucx = port->network_state;
    struct rondo_ucx_connection *connection = ucx->peers[port->peer].connections[port->other_proxy];
    port->sending--;
    connection->sending--;
    ucx->under_way--;
    ucx->events++;
    if (status != UCS_OK && connection->endpoint != NULL)
        rondo_ucx_fail(connection, status);
    if (port->direction == RONDO_OUTGOING)
        rondo_ucx_settle(ucx, port);
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

static void send_message(struct rondo_ucx_connection *connection, struct rondo_port *port, const struct message *message)
{
    struct rondo_ucx *ucx = connection->ucx;
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
    connection->sending++;
    ucx->under_way++;
    ucs_status_ptr_t request = ucx->library->ucp_am_send_nbx(connection->endpoint, message->id, message->header,
                                                             message->header_bytes, message->data, message->count, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return;
    port->sending--; /* done at once, or refused */
    connection->sending--;
    ucx->under_way--;
    if (UCS_PTR_IS_ERR(request))
        rondo_ucx_fail(connection, UCS_PTR_STATUS(request));
}

/* ---- slots ---- */

static void send_slot(struct rondo_ucx_connection *connection, struct rondo_port *port, struct rondo_ucx_sent_slot *slot,
                      const char *data)
{
    static char padding[RONDO_UCX_PADDING_BYTES]; /* never written */
    const struct rondo_ucx *ucx = connection->ucx;
    struct message message = {.id = RONDO_UCX_SLOT,
                              .header = &slot->header,
                              .header_bytes = sizeof(slot->header),
                              .data = data,
                              .count = slot->header.slot.bytes};
    if (ucx->pads && ucx->context->peers[port->peer].device == RONDO_DEVICE_HOST && message.count >= PADDED_BYTES_MIN) {
        slot->parts[0] = (ucp_dt_iov_t){padding, sizeof(padding)};
        slot->parts[1] = (ucp_dt_iov_t){(void *) (uintptr_t) data, message.count};
        message.data = slot->parts;
        message.count = 2;
        message.is_list = 1;
    }
    send_message(connection, port, &message);
}

/* At most TRANSMIT_BYTES, and one slot more: what has come meanwhile is looked after before it leaves the cache. */
static void send_slots(struct rondo_ucx_connection *connection, struct rondo_port *port, uint64_t tail)
{
    const struct rondo_ucx *ucx = connection->ucx;
    struct rondo_ucx_outgoing *outgoing = port->messages;
    size_t sent_bytes = 0;
    for (; port->transmitted != tail && connection->state != RONDO_UCX_BROKEN && sent_bytes < TRANSMIT_BYTES;
         port->transmitted++) {
        const uint64_t number = port->transmitted;
        uint32_t place = (uint32_t) (number & (port->slot_count - 1));
        struct rondo_ucx_sent_slot *slot = &outgoing->slots[place];
        const struct rondo_referenced_slot *reference =
            port->source_references != NULL ? &port->source_references->slots[place] : NULL;
        const char *source = reference != NULL ? reference->source : NULL;
        uint32_t bytes = source != NULL ? reference->bytes : rondo_load_relaxed32(port->sizes + place);
        bytes = bytes < port->slot_bytes ? bytes : port->slot_bytes;
        char *own = port->slots + (size_t) place * port->slot_bytes;
        slot->header.slot = (struct rondo_ucx_slot_header){port->other_key, number, port->other_number, bytes};
        slot->referenced = source != NULL && !reference->copied;
        if (slot->referenced)
            outgoing->wanted = number + 1;
        slot->header.asks = outgoing->wanted > outgoing->confirmed && number + 1 == tail;
        if (ucx->context->encrypts) /* there are no source references, and the device reads no slot that it has published */
            rondo_cipher_seal(
                &(struct rondo_cipher_message){port->other_cipher, number, &slot->header.slot, sizeof(slot->header.slot)}, own,
                own, bytes, slot->header.tag);
        send_slot(connection, port, slot, source != NULL ? source : own);
        if (source != NULL && !slot->referenced)
            memcpy(own, source, bytes); /* before any settling; the device writes no slot that has no credit */
        sent_bytes += bytes;
    }
    rondo_proxy_note_sent(port->proxy, port->network, sent_bytes);
}

void rondo_ucx_send_again(struct rondo_ucx_connection *connection, struct rondo_port *port)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    uint64_t number = outgoing->again > outgoing->confirmed ? outgoing->again : outgoing->confirmed;
    const int withdrawn = port->source_references != NULL && rondo_load_acquire(&port->source_references->withdrawn) != 0;
    outgoing->again = UINT64_MAX;
    for (; number < port->transmitted && connection->state != RONDO_UCX_BROKEN; number++) {
        uint32_t place = (uint32_t) (number & (port->slot_count - 1));
        struct rondo_ucx_sent_slot *slot = &outgoing->slots[place];
        if (slot->referenced && withdrawn)
            continue; /* of an operation that has failed, on the other side as well */
        slot->header.asks = number + 1 == port->transmitted;
        send_slot(connection, port, slot,
                  slot->referenced ? port->source_references->slots[place].source
                                   : port->slots + (size_t) place * port->slot_bytes);
    }
    rondo_ucx_settle(connection->ucx, port);
}

/* ---- credits and queries ---- */

static void seal_word(const struct rondo_ucx *ucx, const struct rondo_port *port, struct rondo_ucx_sent_word *sent_word,
                      uint64_t number)
{
    if (ucx->context->encrypts)
        rondo_cipher_seal(&(struct rondo_cipher_message){port->other_cipher, number, &sent_word->word, sizeof(sent_word->word)},
                          NULL, NULL, 0, sent_word->tag);
}

int rondo_ucx_send_credit(struct rondo_ucx_connection *connection, struct rondo_port *port, uint64_t head)
{
    struct rondo_ucx_incoming *incoming = port->messages;
    if (port->sending > 0)
        return 0;
    incoming->word.word = (struct rondo_ucx_word){.key = port->other_key,
                                                  .number = ++incoming->words,
                                                  .head = head,
                                                  .arrived = port->arrived,
                                                  .port = port->other_number,
                                                  .generation = connection->generation,
                                                  .answered = (uint32_t) incoming->query};
    incoming->told = port->arrived;
    incoming->query = 0;
    incoming->owes = 0;
    port->transmitted = head;
    seal_word(connection->ucx, port, &incoming->word, incoming->words);
    send_message(
        connection, port,
        &(struct message){.id = RONDO_UCX_CREDIT, .header = &incoming->word, .header_bytes = RONDO_UCX_WORD_HEADER_BYTES});
    return 1;
}

void rondo_ucx_send_query(struct rondo_ucx_connection *connection, struct rondo_port *port)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    outgoing->asks = 0;
    outgoing->query = ++outgoing->words;
    outgoing->queried = port->transmitted;
    outgoing->word.word = (struct rondo_ucx_word){
        .key = port->other_key, .number = outgoing->query, .port = port->other_number, .generation = connection->generation};
    seal_word(connection->ucx, port, &outgoing->word, outgoing->query | RONDO_UCX_QUERY_BIT);
    send_message(
        connection, port,
        &(struct message){.id = RONDO_UCX_QUERY, .header = &outgoing->word, .header_bytes = RONDO_UCX_WORD_HEADER_BYTES});
}

/* ---- the proxy's call ---- */

static int transmit_slots(struct rondo_ucx_connection *connection, struct rondo_port *port, uint64_t published)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    /* What is to be sent again goes first, so that the word about what is missing stays true. */
    if (outgoing->holds || outgoing->again != UINT64_MAX)
        return 0;
    send_slots(connection, port, published);
    rondo_ucx_settle(connection->ucx, port);
    return 1;
}

int rondo_ucx_transmit(void *state, struct rondo_port *port, uint64_t published)
{
    struct rondo_ucx *ucx = state;
    int transmitted = 0;
    if (!rondo_ucx_direct_enter(&ucx->direct))
        return 0;
    struct rondo_ucx_connection *connection = rondo_ucx_connect(ucx, port);
    if (connection != NULL) {
        transmitted = port->direction == RONDO_INCOMING ? rondo_ucx_send_credit(connection, port, published)
                                                        : transmit_slots(connection, port, published);
    } else if (ucx->peers[port->peer].lost) {
        port->transmitted = published; /* it will never arrive */
        if (port->direction == RONDO_OUTGOING)
            rondo_ucx_settle(ucx, port);
    }
    rondo_ucx_direct_leave(&ucx->direct);
    return transmitted;
}
