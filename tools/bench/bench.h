/* The parts of `rondo bench`: options (tools/bench/options.c), what a rank has and does for all of its rows
 * (tools/bench/bench.c), the errors of compressed data (tools/bench/error.c; exact results: tools/common/check.h), timing
 * (tools/bench/time.c) and output (tools/bench/output.c), the whole of a network's gradients (tools/bench/gradients.c),
 * switches from one stuck operation to another (tools/bench/switches.c), policies of waiting (tools/bench/policy.c), priorities
 * (tools/bench/priority.c), the search for the best algorithms (tools/bench/tune.c), medians and random orders
 * (tools/bench/numbers.c), and the comparison with several peers (tools/bench/rivals.c). */
#ifndef RONDO_TOOLS_BENCH_BENCH_H
#define RONDO_TOOLS_BENCH_BENCH_H

#include "tools/common/check.h"
#include "tools/common/collectives.h"
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/peer/peer.h"
#include "tools/common/ranks.h"
#include "tools/common/values.h"

struct bench;
struct bench_options;

/* Persistent all-reduces that are measured as a whole, not in rows of sizes. Functions return exit codes. */
struct bench_whole {
    const char *name;
    int (*check)(const struct bench_options *options); /* refuses what it does not take */
    int (*set_up)(void);                               /* settings that it takes, before there is a runtime; NULL: any */
    int (*run)(struct bench *bench, uint64_t *wrong);  /* adds to *wrong */
    bool own_columns;
};
extern const struct bench_whole bench_gradients, bench_switches, bench_policy, bench_priority;

/* Elements of each tensor of a ResNet-50, from the first layer to the last. */
enum { BENCH_TENSORS = 161 };
void bench_count_elements(size_t counts[BENCH_TENSORS]);

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
    bool registered;                 /* buffers opened by rondo_comm_register, and made known to the peer */
    bool same_order;                 /* of a network's gradients, on all ranks */
    const struct bench_whole *whole; /* instead of one collective; NULL */
    enum form mode;
    const char *algorithm, *protocol, *channels; /* NULL: chosen by the library */
    int compress;                                /* bits a value, 0 = off */
    bool trace_cost;                             /* timed in turn without the trace */
    bool feedback;                               /* of what compression loses */
    const char *json, *tune;
    const struct peer *peer; /* NULL: none */
    bool twice;              /* the peer is timed twice */
    bool vary;               /* the input is changed before each iteration, on the host device */
    int processes, rounds;   /* of a comparison with several peers; processes 0: there is none */
    struct rivals *rivals;   /* its peers (tools/bench/rivals.c) */
};

/* Returns 0, or EXIT_USAGE after saying why. *help_wanted: the help has been printed, and nothing else is to be done. */
int bench_options_read(int argc, char **argv, struct bench_options *options, bool *help_wanted);
const char *bench_mode_name(enum form mode);

/* A rank's own. */
struct bench {
    struct rank *rank;
    const struct bench_options *options;
    struct check_buffers buffers;
    void *memory[2]; /* with their guards */
    void *stream;    /* on a GPU */
    struct peer_state *peer;
    rondo_device_t device;
    json_t *rows;      /* rank 0 only */
    bool failed;       /* operations may be left behind; the world is going to be aborted */
    char message[512]; /* of the failure */
};

/* The library's message goes into the JSON too. Returns EXIT_WRONG. */
int bench_fail(struct bench *bench, const char *what, rondo_result_t code);
/* Memory of so many bytes for input and output, guards not counted, registered if the options say so. */
rondo_result_t bench_make_buffers(struct bench *bench, size_t input_bytes, size_t output_bytes);
/* A call of the options' collective, not yet shaped. */
struct call bench_call(struct bench *bench);

/* What may be known of a row beyond its times. */
struct bench_timing {
    int iterations;
    double seconds, peer_seconds; /* of one iteration: the median over batches of the slowest rank's; peer 0 without a peer */
    double again_seconds;         /* the peer's second time; 0 if it is timed once */
    double plain_seconds;         /* the same without compression, or without a trace, where that is timed */
    uint64_t wrong;               /* elements after the last timed iteration, where that is checked */
    double blocks;                /* of kernels on streams, of one iteration on this rank */
};
/* Of compressed results, the worst of the ranks': the norm of the errors by that of the exact results, the largest error;
 * whether all ranks get the same result, and whether it was the same bits. */
struct bench_error {
    double norm, largest;
    bool shared, identical;
};
struct bench_row {
    size_t bytes, count;
    struct bench_timing timing;
    struct bench_error error;
    double algorithm_gbs, bus_gbs;
    uint64_t wrong;
};
/* On rank 0: prints what is measured and the table's head. */
void bench_print_title(const struct bench *bench);
/* On rank 0: prints the row and adds it to the JSON. */
void bench_put_row(struct bench *bench, const struct bench_row *row);
/* On rank 0: writes the JSON object that --json asks for; error: why the run ended early, or NULL. Returns an exit code. */
int bench_write_json(struct bench *bench, const char *error);

/* One run on random numbers between -1 and 1. Collective. */
rondo_result_t bench_error(struct bench *bench, struct call *call, uint64_t seed, struct bench_error *error);
/* What is timed: one iteration of it, on Rondo's side and on the peer's. */
struct bench_work {
    size_t bytes;
    void *argument;
    rondo_result_t (*run)(void *argument);
    rondo_result_t (*finish)(void *argument); /* waits for what runs have enqueued */
    int (*peer_run)(void *argument, char *message, size_t bytes);
    /* NULL, or the same work without compression, which takes the peer's turn. */
    rondo_result_t (*plain_run)(void *argument);
    /* NULL, or changes the input before an iteration of which so many follow. Before the last one the input is what it was. */
    void (*vary)(void *argument, int follow);
    bool peer_waits; /* for each run of the peer, not just for the last of a batch: as Rondo's own form does */
    /* NULL, or around the last batch: to poison the output, and to check it. */
    rondo_result_t (*before_last)(void *argument);
    rondo_result_t (*after_last)(void *argument, uint64_t *wrong);
};
/* Times Rondo and the peer in turn. Collective. what tells on failure what failed. */
rondo_result_t bench_time(struct bench *bench, const struct bench_work *work, struct bench_timing *timing, const char **what);

/* Of at most BENCH_MEDIAN_MOST values. */
enum { BENCH_MEDIAN_MOST = 99 };
double bench_median(const double *values, int count);
/* Puts the entries into another order. *state: of the caller's generator. */
void bench_shuffle(int *order, int count, uint64_t *state);

/* Runs the bench once for each candidate and writes the table of the best. run: one bench with these options, whose rows (rank
 * 0's) are appended to rows. Returns an exit code. */
int bench_tune(const struct bench_options *options, int (*run)(const struct bench_options *options, json_t *rows));
/* A comparison with several peers: reads their names (a list with commas), and runs it as `rondo bench` with these arguments
 * under the launcher of each in turn. Both return an exit code. */
int bench_rivals_read(struct bench_options *options, const char *names);
int bench_rivals(const struct bench_options *options, int argc, char **argv);
/* Sets the environment variable that an option stands for; value NULL unsets it. Refuses, and returns EXIT_USAGE, if the
 * library reads no such variable; bench_has_variable says whether it does. */
int bench_set_variable(const char *option, const char *name, const char *value);
bool bench_has_variable(const char *name);

#endif
