/* See rail_choice.h. */
#include "rail_choice.h"

#include "memory_node.h"

#include <limits.h>

/* A card of whose place nothing is known counts as the farthest. */
static int distance(const char *sysfs, int node, int card_node)
{
    if (node < 0)
        return 0;
    if (card_node < 0)
        return INT_MAX;
    int far = rondo_memory_distance(sysfs, node, card_node);
    return far >= 0 ? far : card_node == node ? 10 : 20; /* what firmware that says nothing is taken to mean */
}

int rondo_rails_choose(const int *nodes, int count, int node, const char *sysfs, int turn, int most, int *chosen)
{
    int least = INT_MAX, near = 0, taken = 0;
    for (int i = 0; i < count; i++) {
        int far = distance(sysfs, node, nodes[i]);
        if (far < least || near == 0)
            near = 0;
        if (near == 0 || far == least)
            near++;
        least = far < least ? far : least;
    }
    int first = near > most ? (int) ((long) turn * most % near) : 0, at = 0;
    for (int i = 0; i < count; i++)
        if (distance(sysfs, node, nodes[i]) == least) {
            if ((at - first + near) % near < most)
                chosen[taken++] = i;
            at++;
        }
    return taken;
}
