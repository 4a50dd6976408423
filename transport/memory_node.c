/* See memory_node.h. */
#include "memory_node.h"

#include <ctype.h>
#include <stdio.h>

#if RONDO_WITH_NUMA
#include <numa.h>
#include <numaif.h>
#endif

int rondo_memory_node(const char *pci_bus_id)
{
    char path[128];
    int at = snprintf(path, sizeof(path), "/sys/bus/pci/devices/");
    for (const char *c = pci_bus_id; *c != '\0' && at < (int) sizeof(path) - 16; c++)
        path[at++] = (char) tolower((unsigned char) *c); /* CUDA writes it in capitals */
    snprintf(path + at, sizeof(path) - (size_t) at, "/numa_node");
    return rondo_memory_node_in(path);
}

int rondo_memory_node_in(const char *path)
{
    int node = -1;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &node) != 1 || node < 0)
        node = -1;
    fclose(file);
    return node;
}

void rondo_memory_prefer(void *base, size_t bytes, int node)
{
#if RONDO_WITH_NUMA
    if (node < 0 || numa_available() < 0 || node > numa_max_node())
        return;
    struct bitmask *nodes = numa_allocate_nodemask();
    if (nodes == NULL)
        return;
    numa_bitmask_setbit(nodes, (unsigned) node);
    /* The kernel reads one bit less than it is told of. */
    (void) mbind(base, bytes, MPOL_PREFERRED, nodes->maskp, nodes->size + 1, 0);
    numa_free_nodemask(nodes);
#else
    (void) base;
    (void) bytes;
    (void) node;
#endif
}
