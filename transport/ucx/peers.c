/* See transport/ucx/ucx.h. One endpoint for each of a peer's proxies, made when the first message goes there. */
#include "transport/ucx/ucx.h"

void rondo_ucx_lose(struct rondo_ucx *ucx, int rank, const char *why)
{
    struct rondo_ucx_peer *peer = &ucx->peers[rank];
    if (peer->lost)
        return;
    peer->lost = 1;
    ucx->dropping = 1;
    if (!ucx->closing)
        rondo_proxy_lose(ucx->proxy, rank, "ucx", why);
}

static int rank_of(const struct rondo_ucx *ucx, ucp_ep_h endpoint)
{
    for (int rank = 0; rank < ucx->context->size; rank++)
        for (int i = 0; i < RONDO_PROXIES_MAX; i++)
            if (ucx->peers[rank].endpoints[i] == endpoint)
                return rank;
    return -1;
}

static void endpoint_failed(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    struct rondo_ucx *ucx = argument;
    int rank = rank_of(ucx, endpoint);
    ucx->events++;
    if (rank >= 0)
        rondo_ucx_lose(ucx, rank, ucx->library->ucs_status_string(status));
}

ucp_ep_h rondo_ucx_endpoint_of(struct rondo_ucx *ucx, const struct rondo_port *port)
{
    struct rondo_ucx_peer *peer = &ucx->peers[port->peer];
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
        rondo_ucx_lose(ucx, port->peer, ucx->library->ucs_status_string(status));
    }
    return *endpoint;
}

void rondo_ucx_drop_endpoints(struct rondo_ucx *ucx, struct rondo_ucx_peer *peer)
{
    ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    for (int i = 0; i < RONDO_PROXIES_MAX; i++) {
        if (peer->endpoints[i] == NULL)
            continue;
        ucs_status_ptr_t request = ucx->library->ucp_ep_close_nbx(peer->endpoints[i], &parameters);
        peer->endpoints[i] = NULL;
        /* A worker is destroyed only once its endpoints are closed: UCX ends the process over what is still queued on one. */
        if (ucx->closing)
            rondo_ucx_finish(ucx, request, ucx->closing_until);
        else if (UCS_PTR_IS_PTR(request))
            ucx->library->ucp_request_free(request);
    }
}
