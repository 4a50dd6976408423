/* Which of a host's NICs a rank uses: the nearest ones, by the memory node that the NIC and the rank's GPU or processors are
 * on, and by the PCI bridges that NIC and GPU share. */
#ifndef RONDO_TRANSPORT_RDMA_RAIL_CHOICE_H
#define RONDO_TRANSPORT_RDMA_RAIL_CHOICE_H

/* Where a NIC is. */
struct rondo_rail_place {
    int node;    /* -1: unknown */
    int bridges; /* between it and the root of its PCI tree, that are also the GPU's; of ranks without a GPU 0 */
};

/* Puts the indices of the chosen NICs into chosen, in the order in which they were given, and returns their number: 1 to most
 * (0 if count is 0). node: the rank's; -1: all nodes are alike. sysfs: "/sys". local_rank: among the host's ranks; ranks that
 * are equally near begin with different NICs if there are more than most. */
int rondo_rails_choose(const struct rondo_rail_place *places, int count, int node, const char *sysfs, int local_rank, int most,
                       int *chosen);

/* Bridges that two PCI devices share, by their folders in sysfs; 0 where one is not there. Data between the two need not pass
 * further up than the last of them. */
int rondo_rails_bridges(const char *one, const char *other);

#endif
