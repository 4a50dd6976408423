/*
 * Arrivals in slots that lie apart from their counters. A NIC writes the slots into one memory (the GPU's) and then the tail
 * into another (the host's), so the tail may be seen before the slots are: writes to two places overtake each other. The other
 * side therefore writes its tail where only the proxy looks (port->remote_tail); the proxy has the network flush the slots, and
 * then shows the device the tail that it had read before. test/models/arrival.pml is the model of it.
 */
#ifndef RONDO_PROXY_ARRIVAL_H
#define RONDO_PROXY_ARRIVAL_H

#include "proxy/port.h"

/* Takes what has arrived a step further: begins a flush, continues it, or shows the device what it has covered. Returns whether
 * the device has been shown anything. By the holder of the claim, for a joined port; network_state is the port's network's.
 * Nothing happens where slots and counters lie together. */
int rondo_arrival_work(struct rondo_port *port, void *network_state);

#endif
