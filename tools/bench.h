/* The parts of `rondo bench`: options (bench_options.c), a row's check (bench_check.c) and timing (bench_time.c), and the loop
 * over rows (bench.c). */
#ifndef RONDO_TOOLS_BENCH_H
#define RONDO_TOOLS_BENCH_H

#include "collectives.h"
#include "options.h"
#include "peer.h"
#include "ranks.h"
#include "values.h"

struct bench_options {
    const struct collective *collective;
    struct options_runtime runtime;
    size_t minimum, maximum, factor;
    int iterations; /* 0: as many as fit into a bounded time */
    int warmup;     /* -1: by size */
    rondo_datatype_t type;
    rondo_op_t op;
    int root;
    bool check, in_place;
    bool registered; /* buffers from rondo_alloc, opened by rondo_comm_register */
    enum form mode;
    const char *algorithm, *protocol; /* NULL: chosen by the library */
    int compress;                     /* bits a value, 0 = off */
    const char *json;
    const struct peer *peer; /* NULL: none */
};

/* Returns 0, or EXIT_USAGE after saying why. *help_wanted: the help has been printed, and nothing else is to be done. */
int bench_options_read(int argc, char **argv, struct bench_options *options, bool *help_wanted);
const char *bench_mode_name(enum form mode);

/* The memory of all rows of a rank, with a guard of GUARD bytes before and after each buffer. */
enum { BENCH_GUARD = 4096 };
struct bench_buffers {
    char *input, *output; /* where the buffers begin, behind their guards */
    size_t input_bytes, output_bytes;
};

/* Writes fresh inputs for the row and poisons everything that the call must write or must leave alone. */
void bench_fill(const struct call *call, const struct values *values, const struct bench_buffers *buffers);
/* Whether the call can be repeated with the same result, because no rank's input is overwritten. The same on all ranks. */
bool bench_repeats(const struct call *call);
/* Poisons the output again, unless it holds the input. */
void bench_poison(const struct call *call, const struct bench_buffers *buffers);
/* Elements that are not as they must be: of the output, of the input (which must not change), and of the guards. */
uint64_t bench_check(const struct call *call, const struct values *values, const struct bench_buffers *buffers);
/* Whether a barrier lets any rank out before the last has come in; *wrong is 1 if so. Collective. */
rondo_result_t bench_check_barrier(struct call *call, enum form mode, uint64_t seed, uint64_t *wrong);

struct bench_timing {
    int iterations;
    double seconds, peer_seconds; /* of one iteration: the median over batches of the slowest rank's; peer 0 without a peer */
    uint64_t wrong;               /* elements after the last timed iteration, where that is checked */
};
/* Times the call, which is open, and the peer's in turn. Collective. what tells on failure what failed. */
rondo_result_t bench_time(struct rank *rank, const struct bench_options *options, struct call *call, struct peer_state *peer,
                          const struct values *values, const struct bench_buffers *buffers, struct bench_timing *timing,
                          const char **what);

#endif
