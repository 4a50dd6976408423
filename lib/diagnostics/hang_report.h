/* The plain data of a hang report: what each rank states, and the text made of all statements. */
#ifndef RONDO_LIB_DIAGNOSTICS_HANG_REPORT_H
#define RONDO_LIB_DIAGNOSTICS_HANG_REPORT_H

#include <stddef.h>
#include <stdint.h>

#define RONDO_HANG_MEMBERS 64 /* of a communicator, that a statement lists */
#define RONDO_HANG_ENTRIES 1024

/* One operation that is active on a rank, or (text empty) one idle lane. */
struct rondo_hang_entry {
    uint64_t comm, lane, number; /* idle lane: number = operations started so far */
    int32_t overdue;
    int32_t executing;                   /* a block is inside it now */
    int32_t waiting_on;                  /* rank in the world whose slot is missing; -1 none */
    int32_t size;                        /* of the communicator */
    int32_t sender, receiver;            /* p2p: ranks in the world; else -1 */
    int32_t members[RONDO_HANG_MEMBERS]; /* of a larger one: the first; the others are known by their own statements */
    char text[96];
};

struct rondo_hang_statement {
    int arrived;
    int count;
    struct rondo_hang_entry *entries;
};

/* statements: one a rank. all: of every active operation, not only of those that are overdue. Returns the text (to be freed),
 * or NULL without memory. */
char *rondo_hang_compose(const struct rondo_hang_statement *statements, int ranks, int all);

#endif
