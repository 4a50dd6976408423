/* See transport/rdma/rail_choice.h. Relies on the kernel's folders in sysfs. */
#include "transport/rdma/rail_choice.h"

#include "transport/memory/memory_node.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A NIC of whose place nothing is known counts as the farthest. */
static int distance(const char *sysfs, int node, int nic_node)
{
    if (node < 0)
        return 0;
    if (nic_node < 0)
        return INT_MAX;
    int far = rondo_memory_distance(sysfs, node, nic_node);
    return far >= 0 ? far : nic_node == node ? 10 : 20; /* what firmware that says nothing is taken to mean */
}

int rondo_rails_choose(const struct rondo_rail_place *places, int count, int node, const char *sysfs, int local_rank, int most,
                       int *chosen)
{
    int least = INT_MAX, bridges = 0, near = 0, at = 0, taken = 0;
    for (int i = 0; i < count; i++) {
        int far = distance(sysfs, node, places[i].node);
        int better = i == 0 || far < least || (far == least && places[i].bridges > bridges);
        if (better) {
            least = far;
            bridges = places[i].bridges;
            near = 1;
        } else if (far == least && places[i].bridges == bridges) {
            near++;
        }
    }
    int first = near > most ? (int) ((long) local_rank * most % near) : 0;
    for (int i = 0; i < count; i++)
        if (distance(sysfs, node, places[i].node) == least && places[i].bridges == bridges) {
            if ((at - first + near) % near < most)
                chosen[taken++] = i;
            at++;
        }
    return taken;
}

/* "0000:3a:01.0" */
static int is_pci_address(const char *name, size_t length)
{
    unsigned domain, bus, device, function;
    int read = 0;
    return sscanf(name, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &read) == 4 && (size_t) read == length;
}

int rondo_rails_bridges(const char *one, const char *other)
{
    char *path = realpath(one, NULL), *other_path = realpath(other, NULL);
    int bridges = 0;
    for (size_t at = 0; path != NULL && other_path != NULL;) {
        size_t length = strcspn(path + at, "/");
        if (strncmp(path + at, other_path + at, length) != 0 || path[at + length] != '/' || other_path[at + length] != '/')
            break; /* what follows is not shared, or is a device itself */
        bridges += is_pci_address(path + at, length);
        at += length + 1;
    }
    free(path);
    free(other_path);
    return bridges;
}
