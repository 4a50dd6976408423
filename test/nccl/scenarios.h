/* The scenarios of api.c, and what they share. */
#ifndef RONDO_TEST_NCCL_SCENARIOS_H
#define RONDO_TEST_NCCL_SCENARIOS_H

#include "test/nccl/data.h"
#include "test/nccl/ranks.h"

#define COUNT 1000

extern int ranks;

/* One rank of a communicator that a scenario's threads create. */
struct me {
    int rank, size;
    ncclComm_t comm;
    cudaStream_t stream;
    float *send, *recv; /* COUNT elements: rank + 1 in send, -1 in recv */
};

void open_me(struct me *me);
void close_me(struct me *me);
void put_floats(float *memory, float value, size_t count);
/* Returns how many of the first count elements differ from the value. */
size_t count_wrong(const float *memory, float value, size_t count);
/* The sum of 1 to size. */
float sum_of(int size);
/* Checks that an all-reduce of rank + 1 works. */
void check_sum(ncclComm_t comm, struct me *me, const char *what);

/* scenarios_calls.c: errors of calls, groups, operators, memory */
void scenario_versions(void);
void scenario_not_offered(void);
void scenario_foreign_handles(void);
void scenario_errors(struct me *me);
void scenario_mismatch(struct me *me);
void scenario_one_thread(void);
void scenario_messages(struct me *me);
void scenario_aggregated(struct me *me);
void scenario_orders(struct me *me);
void scenario_mixed_group(struct me *me);
void scenario_scalars(struct me *me);
void scenario_memory(struct me *me);

/* scenarios_life.c: creating and destroying communicators */
void scenario_bad_inits(void);
void scenario_nonblocking(void);
void scenario_scalable(void);
void scenario_split(struct me *me);
void scenario_one_parent(struct me *me);
void scenario_shrink(struct me *me);
void scenario_finalize(struct me *me);
void scenario_aborted(struct me *me);
void scenario_revoked(struct me *me);
void scenario_abandoned(void);

#endif
