/*
 * See transport/ucx/ucx.h. One connection for each of a peer's proxies, whose endpoint is made when the first message goes
 * there, and again when it has broken. A connection with errors that is not made again within GIVE_UP_MS is lost with the peer,
 * and so is one whose peer has gone. Silence alone is no error: a rank may be stopped for long. UCX's callbacks only note what
 * has happened; endpoints are closed and made at the next progress.
 */
#include "transport/ucx/ucx.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    GIVE_UP_MS = 7000, /* without a word from the other side, after UCX has reported an error */
    ANSWER_MS = 2000,  /* without an answer over a new connection, before it is made once more; ever longer */
    FIRST_TRY_MS = 50, /* after a break: a peer that has ended is known to be gone by then */
    NEXT_TRY_MS = 400, /* at most, between two tries */
    MANY_TRIES = 16,   /* in vain, after which there are few */
    FEW_MS = 2000,     /* between two of those */
    CLOSE_MS = 1000,   /* for which the end of an endpoint is waited for */
    PROVEN_MS = 1000,  /* without a break, after which a connection counts as whole again */
};

/* ---- losing a peer ---- */

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

/* Returns UCX's request, or NULL. */
static ucs_status_ptr_t close_endpoint(struct rondo_ucx_connection *connection)
{
    const struct rondo_ucx_library *library = connection->ucx->library;
    const ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucp_ep_h endpoint = connection->endpoint;
    connection->endpoint = NULL;
    ucs_status_ptr_t request = library->ucp_ep_close_nbx(endpoint, &parameters);
    return UCS_PTR_IS_PTR(request) ? request : NULL;
}

void rondo_ucx_drop_endpoints(struct rondo_ucx *ucx, struct rondo_ucx_peer *peer)
{
    for (int i = 0; i < RONDO_PROXIES_MAX; i++) {
        struct rondo_ucx_connection *connection = peer->connections[i];
        if (connection == NULL)
            continue;
        if (connection->endpoint != NULL && connection->closing == NULL)
            connection->closing = close_endpoint(connection);
        if (connection->closing == NULL)
            continue;
        /* A worker is destroyed only once its endpoints are closed: UCX ends the process over what is still queued on one. */
        if (ucx->closing)
            rondo_ucx_finish(ucx, connection->closing, ucx->closing_until);
        else
            ucx->library->ucp_request_free(connection->closing);
        connection->closing = NULL;
    }
}

/* ---- connections ---- */

struct rondo_ucx_connection *rondo_ucx_connection_of(struct rondo_ucx *ucx, const struct rondo_port *port)
{
    struct rondo_ucx_connection **place = &ucx->peers[port->peer].connections[port->other_proxy];
    if (*place != NULL)
        return *place;
    *place = calloc(1, sizeof(**place));
    if (*place == NULL) {
        rondo_ucx_lose(ucx, port->peer, "no memory for a connection");
        return NULL;
    }
    (*place)->ucx = ucx;
    (*place)->rank = port->peer;
    (*place)->proxy = port->other_proxy;
    return *place;
}

void rondo_ucx_break(struct rondo_ucx_connection *connection, uint32_t generation, int failed, const char *why)
{
    struct rondo_ucx *ucx = connection->ucx;
    const int64_t now = rondo_clock_ms();
    if ((int32_t) (generation - connection->generation) > 0)
        connection->generation = generation;
    if (connection->state == RONDO_UCX_BROKEN || ucx->closing || ucx->peers[connection->rank].lost)
        return;
    if (connection->state == RONDO_UCX_WHOLE) {
        connection->failed = 0;
        connection->tries = 0;
        connection->broken_at = now;
        connection->next_broken = ucx->broken;
        ucx->broken = connection;
    }
    if (failed && !connection->failed) {
        connection->failed = 1;
        connection->heard_at = now;
    }
    int64_t pause = (int64_t) FIRST_TRY_MS << (connection->tries < 3 ? connection->tries : 3);
    connection->next_at = now + (connection->tries >= MANY_TRIES ? FEW_MS : pause < NEXT_TRY_MS ? pause : NEXT_TRY_MS);
    connection->tries++;
    if (connection->told) /* it had been whole, though not for long */
        connection->broken_at = now;
    connection->told = 0;
    connection->state = RONDO_UCX_BROKEN;
    snprintf(connection->why, sizeof(connection->why), "%s", why);
    rondo_log(RONDO_LOG_INFO, ucx->context->rank, "ucx: the connection with rank %d breaks (%s) and is made again",
              connection->rank, connection->why);
}

void rondo_ucx_fail(struct rondo_ucx_connection *connection, ucs_status_t status)
{
    rondo_ucx_break(connection, connection->generation + 1, 1, connection->ucx->library->ucs_status_string(status));
}

void rondo_ucx_follow(struct rondo_ucx_connection *connection, uint32_t generation)
{
    rondo_ucx_break(connection, generation, 0, "the other side makes it again");
    connection->next_at = rondo_clock_ms();
}

void rondo_ucx_reach(struct rondo_ucx_connection *connection)
{
    if (connection->state != RONDO_UCX_RENEWED)
        return;
    connection->heard_at = rondo_clock_ms();
    connection->tries = 0;
}

static void endpoint_failed(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    struct rondo_ucx_connection *connection = argument;
    connection->ucx->events++;
    if (endpoint == connection->endpoint)
        rondo_ucx_fail(connection, status);
}

static ucs_status_t make_endpoint(struct rondo_ucx_connection *connection, const struct rondo_endpoint_address *address)
{
    ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *) address->data,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {endpoint_failed, connection},
    };
    ucs_status_t status = connection->ucx->library->ucp_ep_create(connection->ucx->worker, &parameters, &connection->endpoint);
    if (status != UCS_OK)
        connection->endpoint = NULL;
    return status;
}

struct rondo_ucx_connection *rondo_ucx_connect(struct rondo_ucx *ucx, const struct rondo_port *port)
{
    struct rondo_ucx_connection *connection = rondo_ucx_connection_of(ucx, port);
    if (connection == NULL || ucx->peers[port->peer].lost || connection->state == RONDO_UCX_BROKEN)
        return NULL;
    if (connection->endpoint != NULL)
        return connection;
    ucs_status_t status = make_endpoint(connection, port->endpoint_address);
    if (status == UCS_OK)
        return connection;
    rondo_ucx_fail(connection, status);
    return NULL;
}

/* ---- making it again ---- */

static void give_up(struct rondo_ucx_connection *connection)
{
    char why[sizeof(connection->why) + 80];
    snprintf(why, sizeof(why), "%s, and for %d ms the connection could not be made again", connection->why, GIVE_UP_MS);
    rondo_ucx_lose(connection->ucx, connection->rank, why);
}

/* Whether UCX has ended all that was under way over the former endpoint. That it goes on closing for long is no hindrance. */
static int is_closed(struct rondo_ucx_connection *connection, int64_t now)
{
    const struct rondo_ucx_library *library = connection->ucx->library;
    if (connection->endpoint != NULL)
        connection->closing = close_endpoint(connection);
    if (connection->closing != NULL) {
        if (library->ucp_request_check_status(connection->closing) == UCS_INPROGRESS && now - connection->next_at < CLOSE_MS)
            return 0;
        library->ucp_request_free(connection->closing);
        connection->closing = NULL;
    }
    return connection->sending == 0;
}

/* Returns whether it goes on being looked after. */
static int renew(struct rondo_ucx_connection *connection)
{
    struct rondo_ucx *ucx = connection->ucx;
    const struct rondo_transport_context *context = ucx->context;
    const int64_t now = rondo_clock_ms();
    if (ucx->peers[connection->rank].lost)
        return 0;
    if (context->upcalls.is_gone(context->library, connection->rank)) {
        rondo_ucx_lose(ucx, connection->rank, connection->why);
        return 0;
    }
    if (connection->state == RONDO_UCX_RENEWED && !rondo_ucx_is_resuming(connection)) {
        if (!connection->told)
            rondo_log(RONDO_LOG_INFO, context->rank, "ucx: the connection with rank %d carries again, after %d ms",
                      connection->rank, (int) (now - connection->broken_at));
        connection->told = 1;
        if (now < connection->next_at + PROVEN_MS)
            return 1;
        connection->state = RONDO_UCX_WHOLE;
        return 0;
    }
    if (connection->failed && !rondo_ucx_is_at_stake(connection))
        connection->heard_at = now; /* the clock runs while something waits for this connection */
    if (connection->failed && now - connection->heard_at > GIVE_UP_MS) {
        give_up(connection);
        return 0;
    }
    if (connection->state == RONDO_UCX_RENEWED &&
        now - connection->next_at > (int64_t) ANSWER_MS << (connection->tries < 4 ? connection->tries : 4))
        rondo_ucx_break(connection, connection->generation + 1, 0, "no answer comes");
    if (connection->state != RONDO_UCX_BROKEN)
        return 1;
    int closed = is_closed(connection, now);
    if (!closed && now - connection->next_at > GIVE_UP_MS) { /* UCX may still read the memory of what it does not end */
        give_up(connection);
        return 0;
    }
    if (closed && now >= connection->next_at) {
        connection->state = RONDO_UCX_RENEWED;
        connection->next_at = now;
        rondo_ucx_resume_ports(connection);
    }
    return 1;
}

void rondo_ucx_renew(struct rondo_ucx *ucx)
{
    for (struct rondo_ucx_connection **link = &ucx->broken; *link != NULL;) {
        struct rondo_ucx_connection *connection = *link;
        if (renew(connection)) {
            link = &connection->next_broken;
            continue;
        }
        *link = connection->next_broken;
        connection->next_broken = NULL;
    }
}
