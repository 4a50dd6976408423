/* The parts of `rondo stress`: the command line (tools/stress/options.c), the report (tools/stress/stress.c), the programs that
 * each rank runs (tools/stress/program.c, tools/stress/streams.c), the same on NCCL (tools/stress/peer.c), and calls of the
 * CUDA runtime beside them (tools/stress/interfere.h). */
#ifndef RONDO_TOOLS_STRESS_STRESS_H
#define RONDO_TOOLS_STRESS_STRESS_H

#include "tools/common/options.h"
#include "tools/common/ranks.h"
#include <stdatomic.h>

struct stress_options {
    struct options_runtime runtime;
    int collectives, iterations;
    int streams; /* communicators, each with a stream of its own; 0: persistent operations */
    bool random_order, synchronize, interfere;
    uint64_t seed;
    const char *json, *peer;
};

/* Returns 0, or EXIT_USAGE after saying why. *help_wanted: the help has been printed, and nothing else is to be done. */
int stress_options_read(int argc, char **argv, struct stress_options *options, bool *help_wanted);

/* What has come of the run on one rank. The watchdog may read it while the rank still adds to it. */
struct stress_outcome {
    atomic_uint_least64_t finished; /* collectives */
    atomic_uint_least64_t wrong;    /* elements */
    /* Of the persistent operations' iterations, in nanoseconds: all of them, and of the processor what was spent on filling
     * inputs and on checking results. */
    atomic_uint_least64_t program_ns, fill_ns, check_ns;
    atomic_uint_least64_t deadlock; /* 1: stuck beyond the timeout */
    atomic_uint_least64_t failed;   /* 1: an operation failed, for that reason or another */
};

/* Runs a program on one rank. Its first error, and that one's message, are returned. */
rondo_result_t stress_program(struct rank *rank, const struct stress_options *options, struct stress_outcome *outcome,
                              char *message, size_t bytes);
rondo_result_t stress_streams(struct rank *rank, const struct stress_options *options, struct stress_outcome *outcome,
                              char *message, size_t bytes);

/* A rank's program ends with this code, and the calling thread's last message. */
void stress_note_failure(struct stress_outcome *outcome, rondo_result_t code, char *message, size_t bytes);

/* What came of the same on NCCL. */
struct stress_peer {
    bool ran, hung;
    uint64_t finished, expected;
    char message[256]; /* why it did not run */
};
/* In builds with CUDA. In a child process, so it must be called before anything of this one has touched CUDA or started a
 * thread. The child is killed when nothing has finished for the options' timeout. */
void stress_on_peer(const struct stress_options *options, struct stress_peer *result);

#endif
