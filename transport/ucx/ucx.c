/*
 * Ranks reach each other through UCX: TCP, vendors' fabrics, whatever it was built for. A slot and a credit are active
 * messages; large slots are fetched by UCX straight into the receiver's slot, small ones are copied there. Messages name a port
 * and its key: what does not fit a port that is open is dropped, whoever sent it.
 *
 * One worker a proxy, used by the holder of its claim alone. Messages of one peer may overtake each other (small ones large
 * ones), so a receiver's tail is the number up to which all slots have arrived.
 */
#include "proxy/network.h"
#include "transport/ucx/direct.h"
#include "transport/ucx/library.h"

#include "lib/base/thread.h"
#include "device/engine/receive_action.h"
#include "lib/base/error.h"
#include "transport/memory/memory_node.h"
#include "device/abi/platform.h"
#include "proxy/proxies.h"
#include "transport/context.h"
#include "transport/network_slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SLOT = 1, ID_CREDIT = 2, FLUSH_MS = 1000, TURN_BYTES = 128 * 1024 };

/* Over TCP a message is UCX's own bytes, then the data, then our header. The kernel's copies on both sides and the folding of
 * what has come in take less time where lines lie on lines, so data have a lead that brings them to a line of the stream, and
 * headers such sizes that the next message begins on one. Over anything else the lead does no harm. */
enum { LINE = 64, UCX_BYTES = 13, LEAD_BYTES = LINE - UCX_BYTES, SLOT_TEXT = LINE, CREDIT_TEXT = LINE - UCX_BYTES };
#define LED_BYTES_MIN ((size_t) 32 << 10) /* less is copied by UCX as well, which costs what a lead saves */

struct slot_header {
    uint64_t key, number;
    uint32_t port, bytes;
};

struct credit_header {
    uint64_t key, head;
    uint32_t port, unused;
};

/* A slot that is being sent: what UCX reads until then. */
struct dispatch {
    struct slot_header header;
    char rest[SLOT_TEXT - sizeof(struct slot_header)];
    ucp_dt_iov_t parts[2]; /* the lead and the data */
};

/* A slot that is being received. */
struct receipt {
    struct rondo_port *port;
    uint64_t number;
};

/* port->messages: of an outgoing port, a dispatch a slot; of an incoming one, this. */
struct incoming {
    struct credit_header credit;
    char rest[LINE - sizeof(struct credit_header)];
    struct receipt receipts[];
};

struct peer {
    ucp_ep_h endpoints[RONDO_PROXIES_MAX]; /* one a proxy of its; NULL: none yet */
    int lost;
};

struct ucx {
    struct rondo_ucx_direct direct;
    const struct rondo_ucx_library *library;
    struct rondo_transport_context *context;
    struct rondo_proxy *proxy;
    ucp_context_h ucp;
    ucp_worker_h worker;
    int descriptor;
    struct peer *peers;
    uint32_t under_way; /* messages whose sending or receiving has begun and not ended */
    uint32_t events;    /* arrivals and completions since progress began */
    int leads;          /* to ranks on the host device, data are sent with a lead */
    int dropping;       /* endpoints of lost peers are to be closed, outside UCX's callbacks */
    int closing;
};

extern const struct rondo_network rondo_network_ucx;

static const char *unusable(void)
{
    const char *why;
    rondo_ucx_library(&why);
    return why;
}

static int reaches(const struct rondo_transport_context *context, int peer)
{
    return rondo_transport_is_open_to(context, &rondo_transport_ucx, peer);
}

/* ---- peers ---- */

static void lose(struct ucx *ucx, int rank, const char *why)
{
    struct peer *peer = &ucx->peers[rank];
    if (peer->lost)
        return;
    peer->lost = 1;
    ucx->dropping = 1;
    if (!ucx->closing)
        rondo_proxy_lose(ucx->proxy, rank, "ucx", why);
}

static int rank_of(const struct ucx *ucx, ucp_ep_h endpoint)
{
    for (int rank = 0; rank < ucx->context->size; rank++)
        for (int i = 0; i < RONDO_PROXIES_MAX; i++)
            if (ucx->peers[rank].endpoints[i] == endpoint)
                return rank;
    return -1;
}

static void endpoint_failed(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    struct ucx *ucx = argument;
    int rank = rank_of(ucx, endpoint);
    ucx->events++;
    if (rank >= 0)
        lose(ucx, rank, ucx->library->ucs_status_string(status));
}

/* NULL if the peer is lost. */
static ucp_ep_h endpoint_of(struct ucx *ucx, const struct rondo_port *port)
{
    struct peer *peer = &ucx->peers[port->peer];
    ucp_ep_h *endpoint = &peer->endpoints[port->other_proxy];
    if (*endpoint != NULL || peer->lost)
        return peer->lost ? NULL : *endpoint;
    ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *) port->endpoint_address->data,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {endpoint_failed, ucx},
    };
    ucs_status_t status = ucx->library->ucp_ep_create(ucx->worker, &parameters, endpoint);
    if (status != UCS_OK) {
        *endpoint = NULL;
        lose(ucx, port->peer, ucx->library->ucs_status_string(status));
    }
    return *endpoint;
}

/* ---- sending ---- */

/* Of what was lent, nothing is read any more. */
static void settle(struct rondo_port *port)
{
    if (port->source_references != NULL && port->sending == 0)
        rondo_store_release(&port->source_references->settled, port->transmitted);
}

static void sent(void *request, ucs_status_t status, void *argument)
{
    struct rondo_port *port = argument;
    struct ucx *ucx = port->network_state;
    port->sending--;
    ucx->under_way--;
    ucx->events++;
    settle(port);
    if (status != UCS_OK)
        lose(ucx, port->peer, ucx->library->ucs_status_string(status));
    ucx->library->ucp_request_free(request);
}

/* The header stays until the message has been sent. data: count bytes or, with parts, count of ucp_dt_iov_t, which stay as
 * well. */
static void send_message(struct ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, unsigned id, const void *header,
                         size_t header_bytes, const void *data, size_t count, int parts)
{
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.send = sent,
        .user_data = port,
        .memory_type = ucx->direct.memory_type, /* nothing is lent where that is a GPU's */
    };
    if (parts) {
        parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        parameters.datatype = ucp_dt_make_iov();
    }
    port->sending++;
    ucx->under_way++;
    ucs_status_ptr_t request = ucx->library->ucp_am_send_nbx(endpoint, id, header, header_bytes, data, count, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return;
    port->sending--; /* done at once, or refused */
    ucx->under_way--;
    if (UCS_PTR_IS_ERR(request))
        lose(ucx, port->peer, ucx->library->ucs_status_string(UCS_PTR_STATUS(request)));
}

static void send_slot(struct ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, struct dispatch *dispatch, const char *data)
{
    static char lead[LEAD_BYTES]; /* never written */
    size_t bytes = dispatch->header.bytes;
    dispatch->parts[0] = (ucp_dt_iov_t){lead, sizeof(lead)};
    dispatch->parts[1] = (ucp_dt_iov_t){(void *) (uintptr_t) data, bytes};
    if (ucx->leads && ucx->context->peers[port->peer].device == RONDO_DEVICE_HOST && bytes >= LED_BYTES_MIN)
        send_message(ucx, endpoint, port, ID_SLOT, &dispatch->header, SLOT_TEXT, dispatch->parts, 2, 1);
    else
        send_message(ucx, endpoint, port, ID_SLOT, &dispatch->header, SLOT_TEXT, data, bytes, 0);
}

/* No more than a turn's bytes: what has come meanwhile is looked after before it leaves the cache. */
static void send_slots(struct ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, uint64_t tail)
{
    struct dispatch *dispatches = port->messages;
    size_t sent_bytes = 0;
    for (; port->transmitted != tail && !ucx->peers[port->peer].lost && sent_bytes < TURN_BYTES; port->transmitted++) {
        uint32_t slot = (uint32_t) (port->transmitted & (port->slot_count - 1));
        const struct rondo_referenced_slot *offer =
            port->source_references != NULL ? &port->source_references->slots[slot] : NULL;
        const char *lent = offer != NULL ? offer->source : NULL;
        uint32_t bytes = lent != NULL ? (uint32_t) offer->bytes : rondo_load_relaxed32(port->sizes + slot);
        bytes = bytes < port->slot_bytes ? bytes : port->slot_bytes;
        dispatches[slot].header = (struct slot_header){port->other_key, port->transmitted, port->other_number, bytes};
        send_slot(ucx, endpoint, port, &dispatches[slot], lent != NULL ? lent : port->slots + (size_t) slot * port->slot_bytes);
        sent_bytes += bytes;
    }
    settle(port);
}

/* One at a time: a later one says more. */
static int send_credit(struct ucx *ucx, ucp_ep_h endpoint, struct rondo_port *port, uint64_t head)
{
    struct incoming *incoming = port->messages;
    if (port->sending > 0)
        return 0;
    incoming->credit = (struct credit_header){port->other_key, head, port->other_number, 0};
    port->transmitted = head;
    send_message(ucx, endpoint, port, ID_CREDIT, &incoming->credit, CREDIT_TEXT, NULL, 0, 0);
    return 1;
}

static int transmit(void *state, struct rondo_port *port, uint64_t published)
{
    struct ucx *ucx = state;
    int transmitted = 1;
    if (!rondo_ucx_direct_enter(&ucx->direct))
        return 0;
    ucp_ep_h endpoint = endpoint_of(ucx, port);
    if (endpoint == NULL) {
        port->transmitted = published; /* nobody will ever have it */
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

static int is_quiet(void *state, struct rondo_port *port)
{
    (void) state;
    return port->sending == 0 && port->receiving == 0;
}

/* ---- receiving ---- */

static void take_slot(struct rondo_port *port, uint64_t number)
{
    uint32_t mask = port->slot_count - 1;
    port->ready[number & mask] = (uint32_t) number + 1;
    while (port->ready[port->arrived & mask] == (uint32_t) port->arrived + 1)
        port->arrived++;
    rondo_store_release(port->landed != NULL ? port->landed : port->watched, port->arrived); /* after the slots' data */
}

static void received(void *request, ucs_status_t status, size_t length, void *argument)
{
    struct receipt *receipt = argument;
    struct rondo_port *port = receipt->port;
    struct ucx *ucx = port->network_state;
    (void) length;
    port->receiving--;
    ucx->under_way--;
    ucx->events++;
    if (status == UCS_OK)
        take_slot(port, receipt->number);
    else
        lose(ucx, port->peer, ucx->library->ucs_status_string(status));
    ucx->library->ucp_request_free(request);
}

/* UCX fetches the data into the slot. */
static ucs_status_t fetch_slot(struct ucx *ucx, struct rondo_port *port, uint64_t number, void *descriptor, size_t bytes)
{
    struct incoming *incoming = port->messages;
    uint32_t slot = (uint32_t) (number & (port->slot_count - 1));
    struct receipt *receipt = &incoming->receipts[slot];
    *receipt = (struct receipt){port, number};
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .cb.recv_am = received,
        .user_data = receipt,
        .memory_type = ucx->direct.memory_type,
    };
    port->receiving++;
    ucx->under_way++;
    ucs_status_ptr_t request = ucx->library->ucp_am_recv_data_nbx(
        ucx->worker, descriptor, port->slots + (size_t) slot * port->slot_bytes, bytes, &parameters);
    if (UCS_PTR_IS_PTR(request))
        return UCS_INPROGRESS;
    port->receiving--;
    ucx->under_way--;
    if (UCS_PTR_IS_ERR(request))
        lose(ucx, port->peer, ucx->library->ucs_status_string(UCS_PTR_STATUS(request)));
    else
        take_slot(port, number);
    return UCS_INPROGRESS; /* the descriptor is UCX's again in any case */
}

/* The port a message may be for, or NULL. */
static struct rondo_port *addressee(struct ucx *ucx, uint32_t number, uint64_t key, enum rondo_direction direction)
{
    struct rondo_port *port = rondo_port_find(rondo_proxy_ports(ucx->proxy), number);
    return port != NULL && port->key == key && port->direction == direction && port->network == &rondo_network_ucx ? port
                                                                                                                   : NULL;
}

static ucs_status_t slot_came(void *argument, const void *text, size_t text_bytes, void *data, size_t bytes,
                              const ucp_am_recv_param_t *how)
{
    struct ucx *ucx = argument;
    struct slot_header header;
    ucx->events++;
    if (text_bytes != SLOT_TEXT)
        return UCS_OK;
    memcpy(&header, text, sizeof(header));
    struct rondo_port *port = addressee(ucx, header.port, header.key, RONDO_INCOMING);
    int fetched = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || ucx->direct.gpu >= 0;
    size_t lead = bytes - header.bytes; /* huge, where there are fewer */
    if (port == NULL || header.bytes > port->slot_bytes || (lead != 0 && (lead != LEAD_BYTES || fetched)))
        return UCS_OK;
    uint32_t slot = (uint32_t) (header.number & (port->slot_count - 1));
    /* Only a slot that the device has given back, and only once. */
    if (header.number - rondo_load_acquire(port->published) >= port->slot_count || header.number < port->arrived ||
        port->ready[slot] == (uint32_t) header.number + 1)
        return UCS_OK;
    if (fetched)
        return fetch_slot(ucx, port, header.number, data, bytes);
    const char *own = (const char *) data + lead;
    if (port->receive_actions == NULL ||
        !rondo_receive_action_run(&port->receive_actions[slot], header.number, own, header.bytes))
        memcpy(port->slots + (size_t) slot * port->slot_bytes, own, header.bytes);
    take_slot(port, header.number);
    return UCS_OK;
}

static ucs_status_t credit_came(void *argument, const void *text, size_t text_bytes, void *data, size_t bytes,
                                const ucp_am_recv_param_t *how)
{
    struct ucx *ucx = argument;
    struct credit_header header;
    (void) data;
    (void) how;
    ucx->events++;
    if (text_bytes != CREDIT_TEXT || bytes != 0)
        return UCS_OK;
    memcpy(&header, text, sizeof(header));
    struct rondo_port *port = addressee(ucx, header.port, header.key, RONDO_OUTGOING);
    if (port == NULL || header.head <= port->arrived || header.head > port->transmitted)
        return UCS_OK;
    port->arrived = header.head;
    rondo_store_release(port->watched, header.head);
    return UCS_OK;
}

/* ---- the network's other functions ---- */

static rondo_result_t prepare(void *state, struct rondo_port *port)
{
    const struct ucx *ucx = state;
    size_t bytes = port->slot_count * sizeof(struct dispatch);
    int receives = port->direction == RONDO_INCOMING, host = ucx->context->device_type == RONDO_DEVICE_HOST;
    if (host && !receives)
        port->source_references =
            calloc(1, sizeof(*port->source_references) + port->slot_count * sizeof(port->source_references->slots[0]));
    if (host && receives)
        port->receive_actions = calloc(port->slot_count, sizeof(*port->receive_actions));
    if (receives) {
        bytes = sizeof(struct incoming) + port->slot_count * sizeof(struct receipt);
        port->ready = calloc(port->slot_count, sizeof(*port->ready));
    }
    port->messages = calloc(1, bytes);
    int lacks = (receives && port->ready == NULL) ||
                (host && (receives ? port->receive_actions == NULL : port->source_references == NULL));
    if (port->messages == NULL || lacks)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a network connector");
    return RONDO_SUCCESS;
}

/* Without waiting: whatever is on its way with the peer ends with an error. */
static void drop_endpoints(struct ucx *ucx, struct peer *peer)
{
    ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    for (int i = 0; i < RONDO_PROXIES_MAX; i++) {
        if (peer->endpoints[i] == NULL)
            continue;
        ucs_status_ptr_t request = ucx->library->ucp_ep_close_nbx(peer->endpoints[i], &parameters);
        peer->endpoints[i] = NULL;
        if (UCS_PTR_IS_PTR(request))
            ucx->library->ucp_request_free(request);
    }
}

static void sever(void *state, struct rondo_port *port)
{
    struct ucx *ucx = state;
    lose(ucx, port->peer, "it does not take what was sent to it");
    ucx->dropping = 1;
}

static int progress(void *state)
{
    struct ucx *ucx = state;
    ucx->events = 0;
    if (!rondo_ucx_direct_enter(&ucx->direct))
        return 0;
    unsigned moved = ucx->library->ucp_worker_progress(ucx->worker);
    for (int rank = 0; ucx->dropping && rank < ucx->context->size; rank++)
        if (ucx->peers[rank].lost)
            drop_endpoints(ucx, &ucx->peers[rank]);
    ucx->dropping = 0;
    rondo_ucx_direct_leave(&ucx->direct);
    return moved > 0 || ucx->events > 0;
}

static int is_busy(void *state)
{
    return ((const struct ucx *) state)->under_way > 0;
}

static int arm(void *state, int *descriptor)
{
    struct ucx *ucx = state;
    *descriptor = ucx->descriptor;
    return ucx->library->ucp_worker_arm(ucx->worker) == UCS_OK;
}

static void finish(struct ucx *ucx, ucs_status_ptr_t request)
{
    int64_t deadline = rondo_clock_ms() + FLUSH_MS;
    if (!UCS_PTR_IS_PTR(request))
        return;
    while (ucx->library->ucp_request_check_status(request) == UCS_INPROGRESS && rondo_clock_ms() < deadline)
        ucx->library->ucp_worker_progress(ucx->worker);
    ucx->library->ucp_request_free(request);
}

static void close_network(void *state)
{
    struct ucx *ucx = state;
    int entered = rondo_ucx_direct_enter(&ucx->direct);
    ucx->closing = 1;
    if (ucx->worker != NULL) {
        ucp_request_param_t none = {0};
        finish(ucx, ucx->library->ucp_worker_flush_nbx(ucx->worker, &none));
        for (int rank = 0; rank < ucx->context->size; rank++)
            drop_endpoints(ucx, &ucx->peers[rank]);
        for (int i = 0; i < 100 && ucx->library->ucp_worker_progress(ucx->worker) > 0; i++)
            ;
        ucx->library->ucp_worker_destroy(ucx->worker);
    }
    if (ucx->ucp != NULL)
        ucx->library->ucp_cleanup(ucx->ucp);
    if (entered)
        rondo_ucx_direct_leave(&ucx->direct);
    free(ucx->peers);
}

/* A slot in one piece, and at once: the rendezvous costs a round trip, and TCP's small segments a system call each. What the
 * environment says (UCX_RNDV_THRESH and so on) goes before; a UCX that does not know a setting does without. */
static void adjust(struct ucx *ucx, ucp_config_t *config)
{
    const int host = ucx->context->device_type == RONDO_DEVICE_HOST;
    const char *const settings[][3] = {
        {"RNDV_THRESH", "UCX_RNDV_THRESH", "inf"},
        {"TX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE", "64k"},
        {"RX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE", rondo_network_scale(ucx->context->size) > 1 && host ? "1088k" : "272k"}};
    ucx->leads = host && getenv("UCX_RNDV_THRESH") == NULL; /* what UCX fetches it puts into the slot as it is */
    /* From a GPU's memory eager would mean copies by the processor: there UCX knows better. */
    for (size_t i = ucx->direct.gpu >= 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (getenv(settings[i][1]) == NULL && ucx->library->ucp_config_modify(config, settings[i][0], settings[i][2]) != UCS_OK)
            rondo_log(RONDO_LOG_DEBUG, ucx->context->rank, "UCX does not know %s", settings[i][1]);
}

static ucs_status_t create_context(struct ucx *ucx)
{
    ucp_config_t *config;
    ucp_params_t parameters = {.field_mask =
                                   UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
                               .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
                               .estimated_num_eps = (size_t) ucx->context->size,
                               .name = "rondo"};
    ucs_status_t status = ucx->library->ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return status;
    adjust(ucx, config);
    int entered = rondo_ucx_direct_enter(&ucx->direct);
    status = ucx->library->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, config, &ucx->ucp);
    if (entered)
        rondo_ucx_direct_leave(&ucx->direct);
    ucx->library->ucp_config_release(config);
    if (status != UCS_OK)
        ucx->ucp = NULL;
    return status;
}

static ucs_status_t create_worker(struct ucx *ucx)
{
    ucp_worker_params_t parameters = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                      .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status = ucx->library->ucp_worker_create(ucx->ucp, &parameters, &ucx->worker);
    if (status != UCS_OK) {
        ucx->worker = NULL;
        return status;
    }
    ucp_am_handler_param_t handler = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                    UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                      .id = ID_SLOT,
                                      .flags = ucx->direct.gpu >= 0 ? UCP_AM_FLAG_PERSISTENT_DATA : 0, /* for fetch_slot */
                                      .cb = slot_came,
                                      .arg = ucx};
    status = ucx->library->ucp_worker_set_am_recv_handler(ucx->worker, &handler);
    handler.id = ID_CREDIT;
    handler.flags = 0;
    handler.cb = credit_came;
    if (status == UCS_OK)
        status = ucx->library->ucp_worker_set_am_recv_handler(ucx->worker, &handler);
    return status == UCS_OK ? ucx->library->ucp_worker_get_efd(ucx->worker, &ucx->descriptor) : status;
}

static rondo_result_t write_endpoint_address(struct ucx *ucx, struct rondo_endpoint_address *endpoint_address)
{
    ucp_address_t *address;
    size_t bytes;
    ucs_status_t status = ucx->library->ucp_worker_get_address(ucx->worker, &address, &bytes);
    if (status != UCS_OK)
        return rondo_fail(RONDO_ERR_TRANSPORT, "UCX gives no address: %s", ucx->library->ucs_status_string(status));
    if (bytes <= RONDO_ENDPOINT_ADDRESS_BYTES) {
        endpoint_address->bytes = (uint32_t) bytes;
        memcpy(endpoint_address->data, address, bytes);
    }
    ucx->library->ucp_worker_release_address(ucx->worker, address);
    if (bytes > RONDO_ENDPOINT_ADDRESS_BYTES)
        return rondo_fail(RONDO_ERR_TRANSPORT,
                          "the UCX address has %zu bytes, more than %d: UCX_NET_DEVICES can name fewer devices", bytes,
                          RONDO_ENDPOINT_ADDRESS_BYTES);
    return RONDO_SUCCESS;
}

static rondo_result_t open_network(struct rondo_transport_context *context, struct rondo_proxy *proxy, void **state,
                                   struct rondo_endpoint_address *endpoint_address)
{
    const char *why;
    const struct rondo_ucx_library *library = rondo_ucx_library(&why);
    if (library == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "UCX: %s", why);
    struct ucx *ucx = calloc(1, sizeof(*ucx));
    if (ucx != NULL)
        ucx->peers = calloc((size_t) context->size, sizeof(*ucx->peers));
    if (ucx == NULL || ucx->peers == NULL) {
        free(ucx);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for UCX");
    }
    ucx->library = library;
    ucx->context = context;
    ucx->proxy = proxy;
    rondo_result_t result = rondo_ucx_direct_wanted(&ucx->direct, context);
    ucs_status_t status = result == RONDO_SUCCESS ? create_context(ucx) : UCS_OK;
    if (result == RONDO_SUCCESS && status == UCS_OK)
        result = rondo_ucx_direct_check(&ucx->direct, library, ucx->ucp);
    if (result == RONDO_SUCCESS && status == UCS_OK)
        status = create_worker(ucx);
    if (status != UCS_OK)
        result =
            rondo_fail(RONDO_ERR_TRANSPORT, "UCX cannot start: %s (do UCX_TLS and UCX_NET_DEVICES name what this host has?)",
                       library->ucs_status_string(status));
    else if (result == RONDO_SUCCESS)
        result = write_endpoint_address(ucx, endpoint_address);
    if (result == RONDO_SUCCESS) {
        *state = ucx;
        return RONDO_SUCCESS;
    }
    close_network(ucx);
    free(ucx);
    return result;
}

/* UCX tells nobody which card it uses; where the user has named one, it is that. */
static int numa_node_of(void *state)
{
    const char *devices = getenv("UCX_NET_DEVICES");
    char path[200];
    (void) state;
    int length = devices != NULL ? (int) strcspn(devices, ":,") : 0; /* mlx5_0:1,eth0 */
    if (length == 0 || length > 64 || memchr(devices, '/', (size_t) length) != NULL)
        return -1;
    snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s/device/numa_node", length, devices);
    int node = rondo_memory_node_in(path);
    if (node >= 0)
        return node;
    snprintf(path, sizeof(path), "/sys/class/net/%.*s/device/numa_node", length, devices);
    return rondo_memory_node_in(path);
}

const struct rondo_network rondo_network_ucx = {
    .name = "ucx",
    .open = open_network,
    .close = close_network,
    .destroy = free,
    .prepare = prepare,
    .transmit = transmit,
    .is_quiet = is_quiet,
    .sever = sever,
    .progress = progress,
    .spreads = 1,
    .is_busy = is_busy,
    .arm = arm,
    .numa_node = numa_node_of,
    .slot_slabs = rondo_ucx_direct_slabs,
    .flush = rondo_ucx_direct_flush,
};

const struct rondo_transport rondo_transport_ucx = {
    .name = "ucx",
    .network = &rondo_network_ucx,
    .unusable = unusable,
    .reaches = reaches,
    RONDO_NETWORK_FUNCTIONS,
};
