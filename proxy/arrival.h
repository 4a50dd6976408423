/*
 * Arrivals in slots that lie apart from their counters. A card writes the slots into one memory (the GPU's) and then the tail
 * into another (the host's), so the tail may be seen before the slots are: writes to two places overtake each other. The proxy
 * therefore has the tail land where only it looks, has the network flush the slots, and then shows the device the tail that it
 * had read before. test/models/arrival.pml is the model of it.
 */
#ifndef RONDO_PROXY_ARRIVAL_H
#define RONDO_PROXY_ARRIVAL_H

#include "proxy/port.h"

/* By the holder of the claim, for a joined port: takes what has landed a step further. Returns whether the device has been
 * shown anything. */
int rondo_arrival_work(struct rondo_port *port, void *network_state);

#endif
