/* Placement of host memory near a device, where the machine has several memory nodes and this build has libnuma. */
#ifndef RONDO_TRANSPORT_MEMORY_MEMORY_NODE_H
#define RONDO_TRANSPORT_MEMORY_MEMORY_NODE_H

#include <stddef.h>

/* The memory node of a PCI device ("0000:1b:00.0", in any case); -1 if unknown or there is but one. */
int rondo_memory_node(const char *pci_bus_id);
/* The number in that file of the kernel's (a device's numa_node in /sys); -1 if there is none. */
int rondo_memory_node_in(const char *path);
/* The node of the processors that this thread may use; -1 if they are of several nodes, or unknown. */
int rondo_memory_node_here(void);
/* How far one node's memory is from another's processors, as the firmware says: 10 is next to them. sysfs: "/sys". -1: unknown.
 */
int rondo_memory_distance(const char *sysfs, int from, int to);
/* Pages of [base, +bytes), which is page-aligned and not touched yet, come from the node while it has any. node -1: nothing. A
 * hint: without effect where the kernel does not take it. */
void rondo_memory_prefer(void *base, size_t bytes, int node);

#endif
