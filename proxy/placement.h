/* Where the proxy's thread runs: near the network card. */
#ifndef RONDO_PROXY_PLACEMENT_H
#define RONDO_PROXY_PLACEMENT_H

/* Moves the calling thread to those processors of the NUMA node that it may use; if there are none, or node is -1, or without
 * libnuma, it stays where it is. */
void rondo_proxy_place(int node);

#endif
