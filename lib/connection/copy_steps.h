/*
 * From one rank's push program to what copy engines do for it: copies, and words that ranks count each other's signals in. Only
 * programs that move, and reduce nothing, can be carried out so. Every rank copies from its own memory: CUDA may leave a copy
 * between two GPUs to an engine of the source's, in one order with all others there, so that a copy by the receiver's stream
 * could wait there behind another receiver's, which waits for it. Relies on the program's image alone; nothing here calls a
 * device.
 */
#ifndef RONDO_LIB_CONNECTION_COPY_STEPS_H
#define RONDO_LIB_CONNECTION_COPY_STEPS_H

#include "device/device.h"
#include "lib/program/plan.h"

/* What a rank needs for the steps of one operation. Arrays are by rank. The counts go on from one operation to the next; those
 * of a signal's two ends advance alike, because all ranks carry out the same operations in one order. */
struct rondo_copy_view {
    const struct rondo_plan *plan;
    const struct rondo_operation *operation;
    int rank;
    uint32_t *words;         /* this rank's, where the others store how many signals they have sent */
    uint32_t *const *theirs; /* the others' */
    char *const *output;     /* the others' output buffers */
    uint32_t *sent;          /* signals to each */
    uint32_t *received;      /* signals from each that were waited for */
};

/* Whether copy engines can carry out the program: it has one block, of signals, copies to peers' outputs and own copies. */
int rondo_copy_steps_can(const struct rondo_plan *plan);
/* The most steps that rondo_copy_steps makes of the program. */
int rondo_copy_steps_most(const struct rondo_plan *plan);
/* Writes the steps, in the order in which they are to be done, and advances the counts. Returns how many. */
int rondo_copy_steps(const struct rondo_copy_view *view, struct rondo_copy_step *steps);

#endif
