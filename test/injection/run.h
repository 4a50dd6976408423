/*
 * The two halves of the driver: runs (run.c), and the judgement on them (judge.c). driver.c decides which points are tried.
 */
#ifndef RONDO_TEST_INJECTION_RUN_H
#define RONDO_TEST_INJECTION_RUN_H

#include "test/injection/scenario.h"

#include <sys/types.h>

enum { JOBS_MAX = 16, PARTS_MAX = 64 };

struct point {
    int part, rank, function, way; /* function -1: none fails */
    long number;
};

struct slot {
    struct job *job; /* shared with the ranks */
    struct point point;
    int active, again; /* again: the run repeats one that took too long */
    int processes;     /* RANKS, or one, of which the ranks are threads: then it stands for each of them */
    pid_t ranks[RANKS];
    int pidfds[RANKS], statuses[RANKS], ended[RANKS];
    int log; /* the ranks' standard error */
    double begun, limit;
    int late;
};

/* What the command line says. */
struct options {
    int stacks;  /* of a hang, by gdb */
    int verbose; /* 1: every point; 2: and what the ranks saw */
    /* That a run may take on an idle machine: within a host, between hosts, on a GPU (of which CUDA alone takes some). */
    double seconds_same, seconds_hosts, seconds_gpu;
};
extern struct options options;

extern struct slot slots[JOBS_MAX];
extern struct rank_record clean[PARTS_MAX][RANKS]; /* of a run of each part without a failure */
extern double usual;                               /* seconds of a run that ends by itself, at present */

double now(void);
/* Starts a run. again: it repeats one that took too long, and has more time. */
void begin_run(struct slot *slot, struct point point, int again);
/* Waits until a run has ended, and returns it; NULL: none is under way. */
struct slot *await(void);
/* Frees what the run had. */
void end_run(struct slot *slot);

/* Notes and prints the result of a run that has ended. Returns whether the run must be repeated, because time was short. */
int judge(struct slot *slot);
/* The number of points tried, and of violations. */
long judged_points(void);
long judged_violations(void);
/* Prints how many points were tried and what came of them: of each function, of each part, and in all. */
void print_totals(void);

#endif
