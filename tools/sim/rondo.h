/*
 * The same starts and synchronizations under Rondo's scheduler, in time: what a preemptive daemon makes of them. Nothing
 * deadlocks; the questions are when all is done, how often collectives were preempted, and what was wasted against the order
 * that all GPUs would best agree on.
 *
 * A GPU has a host, which takes the steps of the round one after the other, and a daemon of one block, which visits its tasks
 * as device/daemon/daemon.h does: the first for policy.budgets.initial, each later one for less; a step forward earns more; one
 * that was preempted, when a glance says that what it needs has come. A collective of up to machine.pairs_max GPUs has three
 * primitives, each of which needs all GPUs to have done the one before; of more, it is a ring of 2 (n - 1) primitives through
 * connectors of a few slots. A synchronization holds the host until the daemon has left, which it does when idle, when stuck,
 * and after its residency; it is started again after a pause.
 *
 * Hosts and daemons have a processor each, as with GPUs, or share a few, as ranks of the host device may have to. Then a daemon
 * that waits yields its processor every so many polls (device/abi/platform.h: rondo_relax).
 */
#ifndef RONDO_TOOLS_SIM_RONDO_H
#define RONDO_TOOLS_SIM_RONDO_H

#include "tools/sim/sim.h"
#include "tools/sim/cores.h"

/* What the collectives of a group and their application take; each group's collectives are of these kinds in turn. */
struct sim_load {
    uint32_t kinds;
    double *primitive; /* [kinds]: one step, data at hand */
    double *check;     /* [kinds]: by the application, of a result; with a window */
    double fill;       /* before it starts a window's collectives */
    uint32_t window;   /* collectives that a host starts, and then waits for, before it goes on; 0: it never waits */
};

/* All times in nanoseconds. */
struct sim_machine {
    double start;                      /* from one start to the next */
    double poll;                       /* one look at a connector */
    double visit;                      /* leaving a task for another */
    double readiness_check;            /* at what a preempted task waits for; 0: it is visited in every round */
    double launch;                     /* starting a daemon */
    double wake;                       /* from waking a thread to its turn */
    double timer;                      /* a timed sleep is longer by that */
    int cores;                         /* that hosts and daemons share; 0: one each */
    struct sim_core_costs costs;       /* of sharing */
    uint32_t yield_every;              /* polls to a yield, where processors are shared */
    int pairs_max;                     /* GPUs of a pairwise collective */
    uint32_t slots;                    /* of a ring: a sender may be ahead of its receiver */
    double initial, cap, boost, decay; /* time, time, factor, percent: device/abi/structures.h, struct rondo_policy */
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
                    const struct sim_load *load, struct sim_rondo_outcome *outcome);

struct sim_rondo_options {
    const char *bench, *stress, *json;
    int64_t bytes, cores; /* cores -1: not given */
    double start_us;      /* < 0: not given */
};
/* --model rondo: rounds of the configuration, and one in order for comparison. Prints, writes the JSON and returns the exit
 * code. */
int sim_rondo_run(const struct sim_config *config, const struct sim_rondo_options *options);
/* --stress: the program of a run of `rondo stress`, from its JSON, beside what was measured. Likewise. */
int sim_rondo_stress(const struct sim_rondo_options *options);

/* ---- parameters (tools/sim/rondo_bench.c) ---- */

/* The defaults, with the daemon's policy as this environment sets it. Returns 0 or EXIT_USAGE. */
int sim_machine_read(const struct sim_rondo_options *options, int default_cores, struct sim_machine *machine);
/* What `rondo bench allreduce` measured: the time of a primitive by bytes, such that the model's all-reduce of as many ranks
 * takes as long. */
struct sim_bench {
    int ranks;
    size_t rows;
    double *bytes, *primitive;
};
/* path: a JSON of it. Returns 0, EXIT_USAGE or EXIT_WRONG after saying why. */
int sim_bench_read(const char *path, const struct sim_machine *machine, struct sim_bench *bench);
void sim_bench_free(struct sim_bench *bench);
/* Between two rows in proportion, of the logarithms. */
double sim_bench_primitive(const struct sim_bench *bench, double bytes);

#define SIM_MACHINE_DEFAULT                                                                                                    \
    {                                                                                                                          \
        .start = 10000, .poll = 28, .visit = 100, .readiness_check = 4, .launch = 2000, .wake = 5000, .timer = 80e3,           \
        .costs = {.slice = 2.8e6, .yield = 500, .change = 1100, .balance = 4e6}, .yield_every = 16, .pairs_max = 16,           \
        .slots = 4, .boost = 20, .decay = 50, .quit_idle = 200e3, .quit_stuck = 1000e3, .residency = 10000e3,                  \
        .first_pause = 20e3, .last_pause = 4000e3                                                                              \
    }
#define SIM_PRIMITIVE_DEFAULT 1000

#endif
