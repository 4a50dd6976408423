/* Which of a host's network cards a rank uses: the nearest ones, by the memory node that the card and the rank's GPU or
 * processors are on. */
#ifndef RONDO_TRANSPORT_RAIL_CHOICE_H
#define RONDO_TRANSPORT_RAIL_CHOICE_H

/* nodes: those of the count cards' ports, -1 where unknown. node: the rank's; -1: all ports are alike. sysfs: "/sys". turn:
 * ranks that are equally near begin with different ports if there are more than most. Puts the chosen ports into chosen, in the
 * order in which they were given, and returns their number, 1 to most (0 if count is 0). */
int rondo_rails_choose(const int *nodes, int count, int node, const char *sysfs, int turn, int most, int *chosen);

#endif
