/* Of the table of ports, what the proxy alone calls. */
#ifndef RONDO_PROXY_PORTS_H
#define RONDO_PROXY_PORTS_H

#include "proxy/port.h"

/* Whether ports have been closed that are still there. */
int rondo_ports_closed(struct rondo_ports *ports);
/* By the holder of the claim, when it looks at no port: frees the closed ones that no message is on its way of; all: even
 * those, the networks being closed. */
void rondo_ports_reap(struct rondo_ports *ports, int all);

#endif
