/* The failure listener of connections (lib/connection/failure.h). Relies on the wake functions of the room's other files. */
#include "lib/connection/failure.h"

#include "lib/connection/comm_connections.h"
#include "lib/connection/connect.h"
#include "lib/connection/endpoint_address.h"
#include "lib/connection/lane.h"
#include "lib/connection/mailbox.h"

/* Marks every lane as failed. An operation on the device ends at the daemon's next visit; the daemon runs until all have ended.
 * Runtime lock held. */
static void fail_lanes(struct rondo_comm *comm, rondo_result_t code)
{
    for (struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL; lane = lane->next)
        rondo_lane_fail(lane, code);
}

static void wake_waiting(struct rondo_comm *comm)
{
    rondo_mailbox_wake(comm->runtime);
    rondo_connect_wake(comm->runtime);
}

static void wake_connecting(struct rondo_runtime *runtime)
{
    rondo_connect_wake(runtime);
    rondo_endpoints_wake(runtime);
}

const struct rondo_failure_listener rondo_connection_failure = {
    .failing = fail_lanes, .failed = wake_waiting, .unlisted = rondo_mailbox_withdraw, .peer_gone = wake_connecting};
