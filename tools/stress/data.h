/*
 * What the stress programs compute: all-reduces of 256 B to 1 MiB, float and double in turns, with data that tells every rank,
 * operation and iteration apart and whose sum is exact; and the random numbers of their orders.
 *
 * Element i of rank r is noise(i) + weight(r), whole numbers small enough for the sum to be exact in a float, so the expected
 * sum needs no look at each rank's data. Both change from one operation and iteration to the next, and the weights tell the
 * ranks apart.
 */
#ifndef RONDO_TOOLS_STRESS_DATA_H
#define RONDO_TOOLS_STRESS_DATA_H

#include "tools/common/buffers.h"
#include <stdint.h>

struct stress_data {
    struct buffers *buffers;
    uint64_t seed;
    int rank, size;
    uint32_t spread; /* noise is below it, a power of two; weights up to it */
};

/* The all-reduce number `number` of a program: its buffers in device memory. */
struct stress_operation {
    int number;
    rondo_datatype_t type;
    size_t count;
    void *send, *receive;
};

/* Makes the inputs of a rank of so many; buffers stay the caller's. The same seed on all ranks. */
void stress_data_open(struct stress_data *data, struct buffers *buffers, uint64_t seed, int rank, int size);
/* Operation number of so many; its size is between the smallest's and the largest's. */
rondo_result_t stress_operation_open(const struct stress_data *data, struct stress_operation *operation, int number, int count);

/* fill writes fresh inputs and poisons the output. check, after the all-reduce, adds to *wrong the elements of the output that
 * are not the sum. */
rondo_result_t stress_fill(const struct stress_data *data, const struct stress_operation *operation, int iteration);
rondo_result_t stress_check(const struct stress_data *data, const struct stress_operation *operation, int iteration,
                            uint64_t *wrong);

/* A generator for one rank's own choices: its first state, its next number (which changes the state), and a shuffle by it. */
uint64_t stress_seed(uint64_t seed, int rank);
uint64_t stress_random(uint64_t *state);
void stress_shuffle(int *order, int count, uint64_t *state);
/* An order of `count` operations in which those with the same remainder modulo `groups` stay in theirs. */
void stress_interleave(int *order, int count, int groups, uint64_t *state);

#endif
