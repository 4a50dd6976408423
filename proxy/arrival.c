/* See proxy/arrival.h. */
#include "proxy/arrival.h"

#include "device/abi/platform.h"
#include "proxy/proxy.h"

int rondo_arrival_work(struct rondo_port *port, void *network_state)
{
    if (port->landed == NULL)
        return 0;
    if (port->flushing == 0) {
        /* Before the flush begins, so that it covers all slots below; what lands meanwhile is for the next one. */
        uint64_t landed = rondo_load_acquire(port->landed);
        if (landed == port->shown)
            return 0;
        port->flushing = landed;
    }
    int flushed = port->network->flush(network_state, port);
    if (flushed == 0)
        return 0;
    uint64_t tail = port->flushing;
    port->flushing = 0;
    if (flushed < 0)
        return 0; /* the peer is lost, and its operations end with that */
    port->shown = tail;
    rondo_store_release(port->watched, tail); /* after the flush, which the device's acquire of it then follows */
    return 1;
}
