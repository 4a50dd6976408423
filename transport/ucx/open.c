/*
 * UCX's context and worker: one of each for a proxy's ucx network, with the settings that slots do best with. The worker's
 * address is the endpoint address that other ranks fetch.
 */
#include "transport/ucx/ucx.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "transport/network_slots.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_MS = 1000, QUIET_MS = 5 };

int rondo_ucx_finish(struct rondo_ucx *ucx, ucs_status_ptr_t request, int64_t deadline)
{
    int ended = 1;
    if (!UCS_PTR_IS_PTR(request))
        return ended;
    while ((ended = ucx->library->ucp_request_check_status(request) != UCS_INPROGRESS) == 0 && rondo_clock_ms() < deadline)
        ucx->library->ucp_worker_progress(ucx->worker);
    ucx->library->ucp_request_free(request);
    return ended;
}

/* Progresses the worker until nothing has happened for QUIET_MS. */
static void wait_quiet(struct rondo_ucx *ucx, int64_t deadline)
{
    int64_t now = rondo_clock_ms(), quiet = now + QUIET_MS;
    for (; now < quiet && now < deadline; now = rondo_clock_ms()) {
        if (ucx->library->ucp_worker_progress(ucx->worker) > 0)
            quiet = now + QUIET_MS;
        else
            sched_yield();
    }
}

/* UCX makes endpoints of its own when a peer connects, and up to version 1.13 ends the process if the worker is destroyed while
 * a message that sets one up waits for its connection. A flush that ends without a wait says that there is no such message on
 * any endpoint that there was when it began. Returns 0 if that does not come to pass in time. */
static int settle(struct rondo_ucx *ucx)
{
    const int64_t deadline = rondo_clock_ms() + FLUSH_MS;
    const ucp_request_param_t none = {0};
    do {
        wait_quiet(ucx, deadline);
        const int64_t soon = rondo_clock_ms() + QUIET_MS;
        if (rondo_ucx_finish(ucx, ucx->library->ucp_worker_flush_nbx(ucx->worker, &none), soon))
            return 1;
    } while (rondo_clock_ms() < deadline);
    return 0;
}

void rondo_ucx_close(void *state)
{
    struct rondo_ucx *ucx = state;
    int entered = rondo_ucx_direct_enter(&ucx->direct);
    int left = 0;
    ucx->closing = 1;
    if (ucx->worker != NULL) {
        ucp_request_param_t none = {0};
        rondo_ucx_finish(ucx, ucx->library->ucp_worker_flush_nbx(ucx->worker, &none), rondo_clock_ms() + FLUSH_MS);
        ucx->closing_until = rondo_clock_ms() + FLUSH_MS;
        for (int rank = 0; rank < ucx->context->size; rank++)
            rondo_ucx_drop_endpoints(ucx, &ucx->peers[rank]);
        left = !settle(ucx);
        if (left) /* no thread touches it any more; its memory and descriptors last until the process ends */
            rondo_log(RONDO_LOG_WARN, ucx->context->rank, "UCX still waits for connections after %d ms, and is left behind",
                      FLUSH_MS);
        else
            ucx->library->ucp_worker_destroy(ucx->worker);
    }
    if (ucx->ucp != NULL && !left)
        ucx->library->ucp_cleanup(ucx->ucp);
    if (entered)
        rondo_ucx_direct_leave(&ucx->direct);
    for (int rank = 0; ucx->peers != NULL && rank < ucx->context->size; rank++)
        for (int i = 0; i < RONDO_PROXIES_MAX; i++)
            free(ucx->peers[rank].connections[i]);
    free(ucx->peers);
}

/* A slot in one message, and at once: the rendezvous costs a round trip, and TCP's small segments a system call each.
 * Connections are made without waiting: a peer that answers late would stop the proxy, and UCX (1.13 to 1.22) ends the process
 * when a peer that has accepted a connection closes it before the call that waits has returned. What the environment says
 * (UCX_RNDV_THRESH and so on) goes before; a UCX that does not know a setting does without. */
static void adjust(struct rondo_ucx *ucx, ucp_config_t *config)
{
    const int host = ucx->context->device_type == RONDO_DEVICE_HOST;
    const char *const settings[][3] = {
        {"RNDV_THRESH", "UCX_RNDV_THRESH", "inf"},
        {"TX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE", "64k"},
        {"RX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE", rondo_network_scale(ucx->context->size) > 1 && host ? "1088k" : "272k"},
        {"CONN_NB", "UCX_TCP_CONN_NB", "y"}};
    ucx->pads = host && getenv("UCX_RNDV_THRESH") == NULL; /* what UCX fetches it puts into the slot as it is */
    /* From a GPU's memory eager would mean copies by the processor: there UCX knows better. */
    for (size_t i = ucx->direct.gpu >= 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (getenv(settings[i][1]) == NULL && ucx->library->ucp_config_modify(config, settings[i][0], settings[i][2]) != UCS_OK)
            rondo_log(RONDO_LOG_DEBUG, ucx->context->rank, "UCX does not know %s", settings[i][1]);
}

static ucs_status_t create_context(struct rondo_ucx *ucx)
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

static ucs_status_t create_worker(struct rondo_ucx *ucx)
{
    ucp_worker_params_t parameters = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                      .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucs_status_t status = ucx->library->ucp_worker_create(ucx->ucp, &parameters, &ucx->worker);
    if (status != UCS_OK) {
        ucx->worker = NULL;
        return status;
    }
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = RONDO_UCX_SLOT,
        /* Persistent data, where all slots are fetched: their descriptors outlive the callback. */
        .flags = ucx->direct.gpu >= 0 ? UCP_AM_FLAG_PERSISTENT_DATA : 0,
        .cb = rondo_ucx_slot_came,
        .arg = ucx};
    status = ucx->library->ucp_worker_set_am_recv_handler(ucx->worker, &handler);
    handler.id = RONDO_UCX_CREDIT;
    handler.flags = 0;
    handler.cb = rondo_ucx_credit_came;
    if (status == UCS_OK)
        status = ucx->library->ucp_worker_set_am_recv_handler(ucx->worker, &handler);
    handler.id = RONDO_UCX_QUERY;
    handler.cb = rondo_ucx_query_came;
    if (status == UCS_OK)
        status = ucx->library->ucp_worker_set_am_recv_handler(ucx->worker, &handler);
    return status == UCS_OK ? ucx->library->ucp_worker_get_efd(ucx->worker, &ucx->descriptor) : status;
}

static rondo_result_t write_endpoint_address(struct rondo_ucx *ucx, struct rondo_endpoint_address *endpoint_address)
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

rondo_result_t rondo_ucx_open(struct rondo_transport_context *context, struct rondo_proxy *proxy, void **state,
                              struct rondo_endpoint_address *endpoint_address)
{
    const char *why;
    const struct rondo_ucx_library *library = rondo_ucx_library(&why);
    if (library == NULL)
        return rondo_fail(RONDO_ERR_TRANSPORT, "UCX: %s", why);
    struct rondo_ucx *ucx = calloc(1, sizeof(*ucx));
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
    rondo_ucx_close(ucx);
    free(ucx);
    return result;
}
