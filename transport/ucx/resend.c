/*
 * See transport/ucx/ucx.h: what the two sides of a connector ask and tell each other, and the slots that are sent again. It
 * happens when a connection has been made again, where a slot must be known to have arrived, and where nothing has been heard
 * of slots for LOOK_MS: UCX may drop a message without an error, where only the receiver's side of a connection has ended.
 */
#include "transport/ucx/ucx.h"

#include "device/abi/platform.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"

enum {
    LOOK_MS = 1000,
    SILENT = 5,   /* looks in a row at which nothing has come of a message, after which the connection is made again */
    SILENCES = 4, /* doublings of that, as long as it does not help: a link may be slow */
    REFUSALS = 2, /* answers in a row by which slots are missing that were sent before the question, and have not failed */
};

static int is_mine(const struct rondo_ucx *ucx, const struct rondo_port *port)
{
    return port != NULL && port->network_state == (const void *) ucx;
}

/* Whether the port's other side is known. Before, its messages may not even be there. */
static int is_known(struct rondo_port *port)
{
    /* Acquire: pairs with rondo_proxy_join. */
    if (!port->known && __atomic_load_n(&port->state, __ATOMIC_ACQUIRE) != RONDO_PORT_IDLE)
        port->known = 1;
    return port->known;
}

void rondo_ucx_owe(struct rondo_ucx *ucx, struct rondo_port *port)
{
    port->awaited = !is_known(port);
    ucx->owing = 1;
}

/* The next port of the connection with a number from *number on, which becomes that after it; NULL: there is none. */
static struct rondo_port *next_port(const struct rondo_ucx_connection *connection, uint32_t *number)
{
    struct rondo_ports *ports = rondo_proxy_ports(connection->ucx->proxy);
    for (uint32_t bound = rondo_ports_bound(ports); *number < bound;) {
        struct rondo_port *port = rondo_port_find(ports, (*number)++);
        if (is_mine(connection->ucx, port) && port->peer == connection->rank && is_known(port) &&
            port->other_proxy == connection->proxy)
            return port;
    }
    return NULL;
}

/* The data of a failed operation's source references may be gone. */
static int is_withdrawn(const struct rondo_port *port)
{
    return port->source_references != NULL && rondo_load_acquire(&port->source_references->withdrawn) != 0;
}

/* ---- after a break ---- */

void rondo_ucx_hear(struct rondo_ucx *ucx, struct rondo_port *port, uint32_t generation)
{
    struct rondo_ucx_connection *connection = is_known(port) ? rondo_ucx_connection_of(ucx, port) : NULL;
    if (connection == NULL)
        return;
    int32_t later = (int32_t) (generation - connection->generation);
    if (later == 0)
        rondo_ucx_reach(connection);
    else if (later > 0 && connection->endpoint == NULL && connection->state == RONDO_UCX_WHOLE)
        connection->generation = generation; /* nothing was sent over a former one */
    else if (later > 0)
        rondo_ucx_follow(connection, generation);
    else if (port->direction == RONDO_OUTGOING && ((struct rondo_ucx_outgoing *) port->messages)->query == 0)
        ucx->owing = ((struct rondo_ucx_outgoing *) port->messages)->asks = 1; /* it has not heard of this one */
}

void rondo_ucx_resume_ports(struct rondo_ucx_connection *connection)
{
    uint32_t number = 0;
    for (struct rondo_port *port; (port = next_port(connection, &number)) != NULL;) {
        if (port->direction == RONDO_INCOMING) {
            ((struct rondo_ucx_incoming *) port->messages)->owes = 1;
            continue;
        }
        struct rondo_ucx_outgoing *outgoing = port->messages;
        outgoing->query = 0;
        outgoing->again = UINT64_MAX;
        outgoing->holds = outgoing->asks = (uint8_t) (port->arrived < port->transmitted && !is_withdrawn(port));
    }
    connection->ucx->owing = 1;
}

int rondo_ucx_is_resuming(const struct rondo_ucx_connection *connection)
{
    uint32_t number = 0;
    for (struct rondo_port *port; (port = next_port(connection, &number)) != NULL;) {
        const struct rondo_ucx_outgoing *outgoing = port->messages;
        if (port->direction == RONDO_OUTGOING && (outgoing->holds || outgoing->again != UINT64_MAX))
            return 1;
    }
    return 0;
}

int rondo_ucx_awaits_renewal(const struct rondo_ucx *ucx, struct rondo_port *port)
{
    const struct rondo_ucx_outgoing *outgoing = port->messages;
    const struct rondo_ucx_peer *peer = &ucx->peers[port->peer];
    if (port->direction == RONDO_INCOMING || peer->lost || !is_known(port) || is_withdrawn(port))
        return 0;
    const struct rondo_ucx_connection *connection = peer->connections[port->other_proxy];
    return connection != NULL && outgoing->confirmed < port->transmitted &&
           (connection->state == RONDO_UCX_BROKEN || outgoing->holds || outgoing->again != UINT64_MAX);
}

int rondo_ucx_is_at_stake(const struct rondo_ucx_connection *connection)
{
    uint32_t number = 0;
    for (struct rondo_port *port; (port = next_port(connection, &number)) != NULL;) {
        const struct rondo_ucx_outgoing *outgoing = port->messages;
        if (port->direction == RONDO_OUTGOING && !is_withdrawn(port) &&
            (outgoing->confirmed < port->transmitted || rondo_load_relaxed(port->published) != port->transmitted ||
             port->transmitted - port->arrived == port->slot_count))
            return 1;
    }
    return 0;
}

/* The port's connection has lost messages without an error. */
static void break_silent(struct rondo_ucx *ucx, struct rondo_port *port, const char *why)
{
    struct rondo_ucx_connection *connection = rondo_ucx_connection_of(ucx, port);
    if (connection != NULL && connection->state == RONDO_UCX_WHOLE)
        rondo_ucx_break(connection, connection->generation + 1, 0, why);
}

void rondo_ucx_take_arrived(struct rondo_ucx *ucx, struct rondo_port *port, uint64_t arrived, uint32_t answered)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    if (arrived > outgoing->confirmed)
        outgoing->confirmed = arrived;
    if (outgoing->query != 0 && answered == (uint32_t) outgoing->query) {
        outgoing->query = 0;
        if (outgoing->holds) {
            outgoing->holds = 0;
            if (outgoing->confirmed < port->transmitted)
                outgoing->again = outgoing->confirmed;
            ucx->owing = 1;
        } else if (outgoing->confirmed >= outgoing->queried) {
            outgoing->refused = 0;
        } else if (++outgoing->refused >= REFUSALS) {
            outgoing->refused = 0;
            break_silent(ucx, port, "what was sent does not arrive");
        }
    }
    rondo_ucx_settle(ucx, port);
}

/* ---- paying what is owed ---- */

/* Returns whether something was sent; *left says whether something has to wait. */
static int pay_incoming(struct rondo_ucx *ucx, struct rondo_port *port, int *left)
{
    struct rondo_ucx_incoming *incoming = port->messages;
    if (!incoming->owes && incoming->query == 0 && (incoming->wanted <= incoming->told || port->arrived < incoming->wanted))
        return 0;
    struct rondo_ucx_connection *connection = rondo_ucx_connect(ucx, port);
    /* Acquire: the end of the reading of slots comes before the head, as in the proxy's own look. */
    int sent = connection != NULL && rondo_ucx_send_credit(connection, port, rondo_load_acquire(port->published));
    *left |= !sent;
    return sent;
}

static int pay_outgoing(struct rondo_ucx *ucx, struct rondo_port *port, int *left)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    int again = outgoing->again != UINT64_MAX && !outgoing->holds;
    if (!again && !outgoing->asks)
        return 0;
    struct rondo_ucx_connection *connection = port->sending == 0 ? rondo_ucx_connect(ucx, port) : NULL;
    *left |= connection == NULL || (again && outgoing->asks);
    if (connection == NULL)
        return 0;
    if (again)
        rondo_ucx_send_again(connection, port);
    else
        rondo_ucx_send_query(connection, port);
    return 1;
}

int rondo_ucx_pay(struct rondo_ucx *ucx)
{
    struct rondo_ports *ports = rondo_proxy_ports(ucx->proxy);
    int sent = 0, left = 0;
    uint32_t bound = rondo_ports_bound(ports);
    ucx->owing = 0; /* what fails below sets it again */
    for (uint32_t number = 0; number < bound; number++) {
        struct rondo_port *port = rondo_port_find(ports, number);
        if (!is_mine(ucx, port) || ucx->peers[port->peer].lost)
            continue;
        if (!is_known(port))
            left |= port->awaited;
        else
            sent |= port->direction == RONDO_INCOMING ? pay_incoming(ucx, port, &left) : pay_outgoing(ucx, port, &left);
    }
    ucx->owing |= left;
    return sent;
}

/* ---- what does not arrive ---- */

/* Whether slots were sent of which nothing is heard, or there is no room for another: the word of either may have been lost. */
static int is_in_doubt(const struct rondo_port *port)
{
    const struct rondo_ucx_outgoing *outgoing = port->messages;
    return (outgoing->confirmed < port->transmitted || port->transmitted - port->arrived == port->slot_count) &&
           port->sending == 0 && outgoing->query == 0 && !outgoing->holds && outgoing->again == UINT64_MAX &&
           !is_withdrawn(port);
}

/* At a look: whether a message waits for its end or its answer in vain. UCX may wait for ever for what it connects by. */
static int is_silent(struct rondo_port *port)
{
    struct rondo_ucx_outgoing *outgoing = port->messages;
    int still = outgoing->looked_confirmed == outgoing->confirmed && outgoing->looked_transmitted == port->transmitted &&
                outgoing->looked_sending == port->sending;
    if (outgoing->looked_confirmed != outgoing->confirmed)
        outgoing->silences = 0;
    outgoing->looked_confirmed = outgoing->confirmed;
    outgoing->looked_transmitted = port->transmitted;
    outgoing->looked_sending = port->sending;
    outgoing->still = still ? outgoing->still + 1 : 0;
    if ((port->sending == 0 && outgoing->query == 0) || outgoing->holds ||
        outgoing->still < (uint32_t) SILENT << outgoing->silences)
        return 0;
    outgoing->still = 0;
    outgoing->silences += outgoing->silences < SILENCES;
    return 1;
}

void rondo_ucx_look(struct rondo_ucx *ucx)
{
    struct rondo_ports *ports = rondo_proxy_ports(ucx->proxy);
    const int64_t now = rondo_clock_ms();
    if (now - ucx->looked_at < LOOK_MS)
        return;
    ucx->looked_at = now;
    uint32_t bound = rondo_ports_bound(ports);
    for (uint32_t number = 0; number < bound; number++) {
        struct rondo_port *port = rondo_port_find(ports, number);
        if (!is_mine(ucx, port) || port->direction != RONDO_OUTGOING || ucx->peers[port->peer].lost || !is_known(port))
            continue;
        struct rondo_ucx_outgoing *outgoing = port->messages;
        if (is_silent(port))
            break_silent(ucx, port, "nothing comes of what is sent");
        else if (outgoing->still > 0 && is_in_doubt(port))
            ucx->owing = outgoing->asks = 1;
    }
}
