/* Where the proxy's thread runs: near the NIC. */
#ifndef RONDO_PROXY_PLACEMENT_H
#define RONDO_PROXY_PLACEMENT_H

/* Moves the calling thread to those processors of the NUMA node that it may use. It stays where it is if there are none, if
 * node is -1, or in a build without libnuma. */
void rondo_proxy_place(int node);

#endif
