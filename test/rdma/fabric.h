/*
 * A stand-in for libibverbs and librdmacm: two ranks with some rails each, in one thread. Posts are carried out one at a time
 * by fabric_step, in the order of each queue pair and in any order among them, and read the sender's memory only then. A queue
 * pair that its owner frees leaves behind what it has posted, as a network does: that arrives unless the other side has freed
 * its own. Writes to memory that is registered for reading, too, stand for writes to a GPU's: they arrive late, at the latest
 * when the NIC that they came by reads, or before another NIC writes something else to the same place, which takes far longer.
 * Numbers of queue pairs are given again at once, while completions of the former ones are still to be taken.
 *
 * Everything that is done wrongly (a key of another device, a place outside of its memory, a device without its queue pair) is
 * a failed assertion of cmocka's.
 */
#ifndef RONDO_TEST_RDMA_FABRIC_H
#define RONDO_TEST_RDMA_FABRIC_H

#include "transport/rdma/rdma.h"

enum { FABRIC_RANKS = 2, FABRIC_RAILS = 2, FABRIC_REQUEST = 56 };

/* Faults, which fabric_open clears. */
struct fabric {
    int cut[FABRIC_RANKS][FABRIC_RAILS]; /* nothing gets in there or out, but from the rail to itself */
    int silent;                          /* requests over a cut way are lost; otherwise they fail at once */
    int lose_goodbyes;                   /* a side that frees its connection does not tell the other */
    int refuse_after;                    /* the post of that number from now on is refused; 0: none is */
    uint32_t refuse_least;               /* posts of fewer bytes are not counted */
    int refuse_pairs;                    /* so many from now on */
    int repeat_requests;                 /* each connection request comes twice */
    int lose_posts;                      /* connections are made, but no post arrives */
    /* Counted: */
    int accepted, rejected, broken;
    unsigned char request[FABRIC_REQUEST]; /* the private data of the last request */
};
extern struct fabric fabric;

extern const struct rondo_rdma_library fabric_library;

/* seed: of all that happens at random. */
void fabric_open(unsigned seed);
/* All queue pairs, connections, events and registered memory have been freed. */
void fabric_close(void);
uint32_t fabric_random(uint32_t below);
/* Gives rank's struct its library, rails, events and endpoint address. */
void fabric_equip(struct rondo_rdma *rdma, int rank, int rails);
/* Does one thing that is under way. 0: there is none. */
int fabric_step(void);

/* What becomes of the first post of a queue pair that breaks, at its sender: it is lost, half of it arrives, or it and some
 * that follow arrive and only their acknowledgements are lost. */
enum fabric_loss { FABRIC_LOST, FABRIC_HALF, FABRIC_UNACKNOWLEDGED, FABRIC_LOSSES };
/* Breaks a queue pair that has something under way; loops: one from a rank to itself. 0: there is none. */
int fabric_break(enum fabric_loss loss, int loops);
/* The rank's NICs report errors of all of its queue pairs by which the other rank's slots come. */
void fabric_fail_receiver(int rank);
/* The queue pair's NIC reports the end of a post that was not made. */
void fabric_report(struct ibv_qp *qp, uint64_t number, enum ibv_wc_status status);
/* A rail's port goes down or comes up, and its rank is told. */
void fabric_set_port(int rank, int rail, int up);
/* A connection request from nowhere, with that private data, reaches the rank's rail. */
void fabric_request(int rank, int rail, const unsigned char data[FABRIC_REQUEST]);

#endif
