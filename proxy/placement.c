/* See proxy/placement.h. libnuma names a node's processors; the affinity that the thread has bounds them. */
#include "proxy/placement.h"

#if RONDO_WITH_NUMA
#include <numa.h>
#include <sched.h>

void rondo_proxy_place(int node)
{
    cpu_set_t allowed, near;
    if (node < 0 || numa_available() < 0 || node > numa_max_node() || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    struct bitmask *of_node = numa_allocate_cpumask();
    if (of_node == NULL)
        return;
    CPU_ZERO(&near);
    if (numa_node_to_cpus(node, of_node) == 0)
        for (unsigned cpu = 0; cpu < of_node->size && cpu < CPU_SETSIZE; cpu++)
            if (numa_bitmask_isbitset(of_node, cpu) && CPU_ISSET(cpu, &allowed))
                CPU_SET(cpu, &near);
    numa_free_cpumask(of_node);
    if (CPU_COUNT(&near) > 0)
        sched_setaffinity(0, sizeof(near), &near);
}
#else
void rondo_proxy_place(int node)
{
    (void) node;
}
#endif
