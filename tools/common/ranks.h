/*
 * Runs the ranks of a verb: N of them as threads of this process, or the one that the environment (mpirun, srun) names. Each
 * has its own runtime. A rank that fails aborts the world, so that no other waits for it, and a watchdog ends the process if
 * some rank does not come back even so.
 */
#ifndef RONDO_TOOLS_COMMON_RANKS_H
#define RONDO_TOOLS_COMMON_RANKS_H

#include "tools/common/buffers.h"
#include "tools/common/options.h"
#include "rondo.h"
#include <stdbool.h>
#include <stdint.h>

struct ranks_group;

struct rank {
    rondo_t runtime;
    rondo_comm_t world;
    int rank, size;
    bool threads; /* all ranks live in this process */
    const char *verb;
    struct buffers buffers; /* memory of the runtime's device, for the rank's own thread */
    struct ranks_group *group;
    struct ranks_aside *aside; /* of processes */
};

/* What each rank does between its init and its finalize; returns an exit code. */
typedef int (*ranks_body_t)(struct rank *rank, void *argument);

struct ranks_plan {
    const char *verb;
    const struct options_runtime *runtime;
    ranks_body_t body;
    void *argument;
    /* May be NULL. Called from the main thread when the watchdog gives up on ranks that hang after a failure; the process then
     * ends with the code it returns. */
    int (*abandon)(void *argument);
};

/* Returns the largest exit code of this process's ranks. */
int ranks_run(const struct ranks_plan *plan);

/* Collective: what every rank gives, in the order of ranks. Small things that the verbs themselves must agree on, in host
 * memory whatever the device. Between threads it needs nothing of the library, and ranks that have failed are not waited for:
 * theirs is zeros. Between processes it is an all-gather on a communicator of its own, which nothing stuck elsewhere can be in
 * the way of. */
enum { RANKS_GATHER_MAX = 512 };
rondo_result_t ranks_gather(struct rank *rank, const void *mine, size_t bytes, void *all);

/* By the same means, each collective: total and most replace each value by its sum over all ranks, or by the largest; share
 * gives all ranks what rank 0 has. */
enum { RANKS_TOTAL_MAX = 16, RANKS_MOST_MAX = 64 };
rondo_result_t ranks_total(struct rank *rank, uint64_t *values, int count);
rondo_result_t ranks_most(struct rank *rank, double *values, int count);
rondo_result_t ranks_share(struct rank *rank, void *value, size_t bytes);

/* Says on standard error what failed, with the library's message (for every rank that fails by itself; those that merely learn
 * of an abort stay silent), marks the run as failed and returns EXIT_WRONG. The caller then returns from its body. */
int ranks_fail(struct rank *rank, const char *what, rondo_result_t code);

/* Marks the run as failed, which starts the watchdog and makes this rank abort the world when its body returns. */
void ranks_mark_failed(struct rank *rank);

/* Frees memory of buffers_allocate once every rank of this process is through with its runtime: after a failure, operations
 * that never finished may be holding its address until then, and where one still runs nothing is freed. */
void ranks_free_later(struct rank *rank, void *memory);

double ranks_clock(void); /* seconds, CLOCK_MONOTONIC */

#endif
