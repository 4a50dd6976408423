/*
 * The data of a hang report: what each rank states, and the text composed of all statements. Relies on the C library alone.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_REPORT_H
#define RONDO_LIB_DIAGNOSTICS_HANG_REPORT_H

#include <stddef.h>
#include <stdint.h>

#define RONDO_HANG_MEMBERS 64 /* most members of a communicator that an entry lists */
#define RONDO_HANG_ENTRIES 1024

/* One operation that is active on a rank, or (text empty) one idle lane. */
struct rondo_hang_entry {
    uint64_t comm, lane, number; /* idle lane: number = operations started so far */
    int32_t overdue;
    int32_t executing;                   /* a block is inside it now */
    int32_t waiting_on;                  /* rank in the world whose slot is missing; -1 none */
    int32_t size;                        /* of the communicator */
    int32_t sender, receiver;            /* p2p: ranks in the world; else -1 */
    int32_t members[RONDO_HANG_MEMBERS]; /* ranks in the world; of a larger communicator, the first */
    char text[96];
};

struct rondo_hang_statement {
    int arrived;
    int count;
    struct rondo_hang_entry *entries;
};

/* Composes the text of a report. statements: [ranks]; arrived 0: the rank has not answered. all: the report lists every active
 * operation, else the overdue ones alone. Returns the text, which the caller frees, or NULL if there is no memory. Pure
 * function. */
char *rondo_hang_compose(const struct rondo_hang_statement *statements, int ranks, int all);

#endif
