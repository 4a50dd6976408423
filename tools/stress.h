/* The parts of `rondo stress`: its options and report (stress.c) and the program that each rank runs (stress_program.c). */
#ifndef RONDO_TOOLS_STRESS_H
#define RONDO_TOOLS_STRESS_H

#include "options.h"
#include "ranks.h"
#include <stdatomic.h>

struct stress_options {
    struct options_runtime runtime;
    int collectives, iterations;
    bool random_order, synchronize;
    uint64_t seed;
    const char *json;
};

/* What has come of the run on one rank. The watchdog may read it while the rank still adds to it. */
struct stress_outcome {
    atomic_uint_least64_t finished; /* collectives */
    atomic_uint_least64_t wrong;    /* elements */
    atomic_uint_least64_t deadlock; /* 1: stuck beyond the timeout */
    atomic_uint_least64_t failed;   /* 1: an operation failed, for that reason or another */
};

/* Runs the program on one rank. Its first error, and that one's message, are returned. */
rondo_result_t stress_program(struct rank *rank, const struct stress_options *options, struct stress_outcome *outcome,
                              char *message, size_t bytes);

#endif
