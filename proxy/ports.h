/* Of the table of ports (proxy/port.h), what the proxy alone calls. */
#ifndef RONDO_PROXY_PORTS_H
#define RONDO_PROXY_PORTS_H

#include "proxy/port.h"

/* Whether ports have been closed whose memory is still there. Any thread; it may be late. */
int rondo_ports_closed(struct rondo_ports *ports);
/* Frees the closed ports that have no message on its way; all: even those, the networks being closed. By the holder of the
 * claim, between two ports. */
void rondo_ports_reap(struct rondo_ports *ports, int all);

#endif
