/* See proxy/arrival.h. Relies on the flush of proxy/network.h. */
#include "proxy/arrival.h"

#include "device/abi/platform.h"
#include "proxy/network.h"

int rondo_arrival_work(struct rondo_port *port, void *network_state)
{
    if (port->remote_tail == NULL)
        return 0;
    if (port->flushing == 0) {
        /* Before the flush begins, so that it covers all slots below; what arrives meanwhile is for the next one. */
        uint64_t tail = rondo_load_acquire(port->remote_tail);
        if (tail == port->shown)
            return 0;
        port->flushing = tail;
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
