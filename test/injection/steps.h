/* The steps of a part: calls of the library whose results the rank's record notes, and the data by which they are checked. */
#ifndef RONDO_TEST_INJECTION_STEPS_H
#define RONDO_TEST_INJECTION_STEPS_H

#include "test/injection/scenario.h"

/* Of the rank that this thread is. */
struct steps {
    struct rank_record *record;
    int rank;
    rondo_comm_t failed_comm; /* of the first call that failed */
    double connect_timeout;
};
extern _Thread_local struct steps steps;

/* Notes what the rank is in now. */
void step_begin(const char *what);
/* Notes the result of a collective call. Returns whether it succeeded. */
int step_end(rondo_comm_t comm, rondo_result_t result);
/* Notes the first thing that is wrong after a success. */
void step_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A call that all ranks make. The part ends at the first one that fails. */
#define TRY(comm, call)                                                                                                        \
    do {                                                                                                                       \
        step_begin(#call);                                                                                                     \
        if (!step_end(comm, (call)))                                                                                           \
            return;                                                                                                            \
    } while (0)

/* A call of this rank alone: where it fails once, it can be made again. */
#define LOCAL(call)                                                                                                            \
    do {                                                                                                                       \
        step_begin(#call);                                                                                                     \
        if ((call) != RONDO_SUCCESS && (call) != RONDO_SUCCESS) {                                                              \
            step_wrong("it fails again: %s", rondo_last_error());                                                              \
            return;                                                                                                            \
        }                                                                                                                      \
    } while (0)

/* A call that asks the other ranks and harms none where it fails: then it can be made again, unless a rank is lost to it. */
#define ASK(comm, call)                                                                                                        \
    do {                                                                                                                       \
        step_begin(#call);                                                                                                     \
        rondo_result_t asked = (call);                                                                                         \
        if (asked != RONDO_SUCCESS && asked != RONDO_ERR_PEER && (asked = (call)) != RONDO_SUCCESS && asked != RONDO_ERR_PEER) \
            step_wrong("it fails again: %s", rondo_last_error());                                                              \
        if (!step_end(comm, asked))                                                                                            \
            return;                                                                                                            \
    } while (0)

/* ---- data: element i of rank r's input is 1000 r + i ---- */

void fill(int32_t *buffer, size_t count);
/* error: of a copy between host and device by the part itself; NULL: none. */
void expect_copied(const char *error);
/* out[i] of count elements must be scale * i + offset. */
void expect(const int32_t *buffer, size_t count, int32_t scale, int32_t offset);
/* An all-reduce of filled buffers, with its check. */
void allreduce(rondo_comm_t comm, size_t count);

#endif
