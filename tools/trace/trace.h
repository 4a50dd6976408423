/* `rondo trace`: what a trace of the daemon (RONDO_TRACE) shows, operation by operation. */
#ifndef RONDO_TOOLS_TRACE_TRACE_H
#define RONDO_TOOLS_TRACE_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One operation on one rank. Times in microseconds on the host's clock; -1 where the trace does not tell. */
struct trace_operation {
    int rank;
    uint32_t lane, number;
    double started, fetched, completed;
    int queue;         /* tasks of block 0 right after it was fetched, itself included; -1: not told */
    uint64_t switches; /* how often any block was preempted in it */
    uint64_t visits;   /* returns to it, with nothing else in between, counted too */
    char text[96];     /* the call; "" where the trace does not tell */
};

/* One visit of a block to a task. */
struct trace_visit {
    int rank, block;
    uint32_t lane;
    double from, length; /* microseconds */
    int preempted;
};

struct trace {
    struct trace_operation *operations; /* by rank, then in the order of their starts (or fetches) */
    size_t count;
    struct trace_visit *visits; /* as they are in the file */
    size_t visit_count, visit_room;
    int ranks; /* the largest rank + 1 */
    uint64_t lost, quits;
    uint64_t dropped;   /* events that are not in the file, as the ranks that ended said */
    int full;           /* ranks that had used up their share of the file (RONDO_TRACE_BYTES) */
    double first, last; /* of all events */
};

/* Returns 0, or EXIT_USAGE after saying what is wrong with the file. */
int trace_load(const char *path, struct trace *trace);
void trace_free(struct trace *trace);

/* Two plots above each other, a line a rank: context switches and queue length by operation, in the order of starts. Returns 0
 * or EXIT_WRONG. */
int trace_plot(const struct trace *trace, const char *path);

/* A track for each block: its visits, a colour for each lane; those that ended in preemption are pale. */
int trace_draw(const struct trace *trace, const char *path);

#endif
