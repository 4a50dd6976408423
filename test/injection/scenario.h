/*
 * The scenario of failure injection: parts, each a short job of three ranks that uses one side of the library, on the host or,
 * with names that begin with gpu-, on a GPU. A rank makes
 * the part's calls until one fails; it then makes one more call on the same communicator, and finalizes in any case. What each
 * rank saw stays in its struct rank_record, which the driver judges. Relies on the public API alone.
 */
#ifndef RONDO_TEST_INJECTION_SCENARIO_H
#define RONDO_TEST_INJECTION_SCENARIO_H

#include "rondo.h"
#include "test/injection/inject.h"

enum { RANKS = INJECT_RANKS, NO_CODE = -1 };

struct rank_record {
    struct inject_record inject;
    char step[96];       /* the call that the rank is in, or was in last */
    int steps;           /* collective calls that were begun */
    int failed_step;     /* number of the first that failed, from 1; 0: none has */
    rondo_result_t code; /* with which */
    char message[300];   /* and why */
    char failed_call[96];
    int next_code;     /* of the next call on that communicator; NO_CODE: none was made */
    int finalize_code; /* of rondo_finalize; NO_CODE: there was no runtime */
    char finalize_message[200];
    char wrong[200]; /* first wrong result of a call that had succeeded; "": none */
    int initialized;
    int ended;
    long live;        /* allocations that were left */
    char leaks[1200]; /* their sites */
    int descriptors, threads;
    int leaks_by_sanitizer;
};

/* What the ranks of one run share. */
struct job {
    char name[64];
    char root[32], roots[64]; /* for parts that meet at a TCP address, or at two */
    char file[64];            /* of parts that write one, or the beginning of each rank's */
    rondo_unique_id_t ids[2];
    int id_made;
    double connect_timeout;
    int is_first;              /* the processes' first run */
    int normal_threads[RANKS]; /* that a rank's process has after a run without a failure; -1: not known */
    struct rank_record ranks[RANKS];
};

/* In an environment: the path of the job's file, and its addresses. */
#define A_FILE    "a file"
#define A_ROOT    "a root"
#define TWO_ROOTS "two roots"

struct part {
    const char *name;
    const char *const *environment; /* pairs of name and value, ends with NULL */
    int whole;                      /* calls count from rondo_init; 0: from its end */
    int hosts;                      /* ranks of different hosts: rank 2 is elsewhere */
    void (*body)(struct rank_record *me, int rank, rondo_t runtime, rondo_comm_t world);
    enum { ON_HOST, ON_HOST_THREADS, ON_GPU_THREADS, ON_GPU_PROCESSES } device; /* ranks are processes, or threads of one */
};

static inline int part_on_gpu(const struct part *part)
{
    return part->device == ON_GPU_THREADS || part->device == ON_GPU_PROCESSES; /* which all ranks share */
}

static inline int part_in_threads(const struct part *part)
{
    return part->device == ON_HOST_THREADS || part->device == ON_GPU_THREADS;
}

extern const struct part parts[];
extern const int part_count;

/* Sets the environment of a run, in its process. */
void scenario_prepare(const struct part *part, const struct job *job);
/* One rank of one run, in a process or thread of its own. */
void scenario_run(const struct part *part, struct job *job, int rank);

#endif
