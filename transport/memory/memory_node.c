/* See transport/memory/memory_node.h. Reads /sys, and asks libnuma where the build has it. */
#include "transport/memory/memory_node.h"

#include <ctype.h>
#include <sched.h>
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

int rondo_memory_node_here(void)
{
    int node = -1;
#if RONDO_WITH_NUMA
    cpu_set_t allowed;
    if (numa_available() < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return -1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int of_cpu = CPU_ISSET(cpu, &allowed) ? numa_node_of_cpu((int) cpu) : -1;
        if (of_cpu >= 0 && node >= 0 && of_cpu != node)
            return -1;
        node = of_cpu >= 0 ? of_cpu : node;
    }
#endif
    return node;
}

int rondo_memory_distance(const char *sysfs, int from, int to)
{
    char path[256];
    int far = -1;
    snprintf(path, sizeof(path), "%s/devices/system/node/node%d/distance", sysfs, from);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    for (int node = 0; node <= to; node++) /* of all nodes, in their order */
        if (fscanf(file, "%d", &far) != 1 || far < 0) {
            far = -1;
            break;
        }
    fclose(file);
    return far;
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
    /* The kernel reads one bit less than the given number. */
    (void) mbind(base, bytes, MPOL_PREFERRED, nodes->maskp, nodes->size + 1, 0);
    numa_free_nodemask(nodes);
#else
    (void) base;
    (void) bytes;
    (void) node;
#endif
}
