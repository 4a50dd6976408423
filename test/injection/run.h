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
    int warm; /* its processes have made a run before */
};

struct slot {
    struct job *job;       /* shared with the ranks */
    struct point *ordered; /* shared with them: the point of their run */
    struct point point;
    int active, again;  /* again: the run repeats one that took too long */
    int warming;        /* the run under way fails nothing, and goes before the point's, which needs warm processes */
    int processes;      /* RANKS, or one, of which the ranks are threads: then it stands for each of them */
    int part;           /* the part of the processes that are there */
    pid_t ranks[RANKS]; /* 0: not there */
    int pidfds[RANKS], statuses[RANKS], ended[RANKS];
    int orders[RANKS], reports[RANKS]; /* eventfds: a run begins, a process's run has ended */
    int log;                           /* the ranks' standard error */
    double begun, limit;
    int late;
    int sound; /* the run was right: its processes may make another */
};

/* What the command line says. */
struct options {
    int stacks;  /* of a hang, by gdb */
    int verbose; /* 1: every point; 2: and what the ranks saw */
    /* That a run may take on an idle machine: within a host, between hosts, on a GPU (of which CUDA alone takes some). */
    double seconds_same, seconds_hosts, seconds_gpu;
    int reuse; /* whether processes make several runs: 1: yes, 0: no, -1: on a GPU, where beginning takes a second or more */
};
extern struct options options;

extern struct slot slots[JOBS_MAX];
extern struct rank_record clean[2][PARTS_MAX][RANKS]; /* of a run of each part without a failure; 1: of warm processes */
extern double usual;                                  /* seconds of a run that ends by itself, at present */

double now(void);
/* What slots need before the first run. Returns NULL, or why there is none. */
const char *make_slots(void);
/* Whether the processes of the part's runs make several. */
int part_reuses(const struct part *part);
/* Whether the slot's processes cannot make the point's run, so that new ones begin; and whether the run under way is the first
 * of its processes. */
int needs_new(const struct slot *slot, const struct point *point);
int is_new(const struct slot *slot);
/* Starts a run. again: it repeats one that took too long, and has more time. */
void begin_run(struct slot *slot, struct point point, int again);
/* Makes SIGINT and SIGTERM end the driver in await, which tells what was under way then. */
void catch_stops(void);
/* Waits until a run has ended, and returns it; NULL: none is under way. */
struct slot *await(void);
/* Frees what the run had; processes that can make another run are kept for it. */
void end_run(struct slot *slot);
/* Ends all processes that were kept. */
void end_processes(void);

/* Notes and prints the result of a run that has ended. Returns whether the run must be repeated, because time was short. */
int judge(struct slot *slot);
/* Prints which run of the slot is under way, and for how long. */
void print_under_way(const struct slot *slot);
/* The number of points tried, and of violations. */
long judged_points(void);
long judged_violations(void);
/* Prints how many points were tried and what came of them: of each function, of each part, and in all. */
void print_totals(void);

#endif
