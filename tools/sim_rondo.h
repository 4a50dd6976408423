/*
 * The same starts and synchronizations under Rondo's scheduler, in time: what a preemptive daemon makes of them. Nothing
 * deadlocks; the questions are when all is done, how often collectives were preempted, and what was wasted against the order
 * that all GPUs would best agree on.
 *
 * A GPU has a host, which takes the steps of the round one after the other, and a daemon of one block, which visits its tasks
 * as device/daemon.h does: the first for policy.initial polls, each later one for less; a step forward earns more. A collective
 * of n GPUs is a ring of 2 (n - 1) primitives through connectors of a few slots. A synchronization holds the host until the
 * daemon has left, which it does when idle, when stuck, and after its residency; the poller starts it again after a pause.
 */
#ifndef RONDO_TOOLS_SIM_RONDO_H
#define RONDO_TOOLS_SIM_RONDO_H

#include "sim.h"

/* All times in nanoseconds. */
struct sim_machine {
    double start;                      /* from one start to the next */
    double primitive;                  /* one step of a ring, data at hand */
    double poll;                       /* one look at a connector */
    double visit;                      /* leaving a task for another */
    double launch;                     /* starting a daemon */
    uint32_t slots;                    /* a sender may be ahead of its receiver */
    double initial, cap, boost, decay; /* polls, polls, factor, percent: device/structures.h, struct rondo_policy */
    double quit_idle, quit_stuck, residency, first_pause, last_pause;
};

struct sim_rondo_outcome {
    double finish;            /* when the last collective was done everywhere */
    double spinning, working; /* summed over GPUs: polls in vain, primitives */
    uint64_t collectives;     /* parts: one a GPU and collective */
    uint64_t preemptions, quits, finished;
    uint64_t longest_queue;
    bool stuck; /* it never ended: a defect of the model or of Rondo */
};

/* Returns 0, or -1 without memory. */
int sim_rondo_round(const struct sim_layout *layout, const struct sim_round *round, const struct sim_machine *machine,
                    struct sim_rondo_outcome *outcome);

/* --model rondo: rounds of the configuration, and one in order for comparison. bench: a JSON of `rondo bench allreduce`, whose
 * row nearest to bytes gives the time of a primitive; NULL: the default. start_us < 0: the default. Prints, writes the JSON and
 * returns the exit code. */
struct sim_rondo_options {
    const char *bench, *json;
    int64_t bytes;
    double start_us;
};
int sim_rondo_run(const struct sim_config *config, const struct sim_rondo_options *options);

#define SIM_MACHINE_DEFAULT                                                                                                    \
    {                                                                                                                          \
        .start = 10000, .primitive = 1000, .poll = 20, .visit = 100, .launch = 2000, .slots = 4, .initial = 200, .cap = 4000,  \
        .boost = 20, .decay = 50, .quit_idle = 200e3, .quit_stuck = 1000e3, .residency = 10000e3, .first_pause = 20e3,         \
        .last_pause = 4000e3                                                                                                   \
    }

#endif
