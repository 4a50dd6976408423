/* Between the playing of a program out of a file (lib/program/msccl_ir_run.c) and the plans that are made of it
 * (lib/program/msccl_ir_plans.c). */
#ifndef RONDO_LIB_PROGRAM_MSCCL_IR_RUN_H
#define RONDO_LIB_PROGRAM_MSCCL_IR_RUN_H

#include "lib/program/graph.h"
#include "lib/program/msccl_ir.h"

struct rondo_msccl_ir_held {
    struct rondo_value value;
    uint32_t index, class;
};

struct rondo_msccl_ir_place {
    struct rondo_msccl_ir_held held;
    uint32_t class; /* scratch: of what came first */
    int written;
};

struct rondo_msccl_ir_message {
    struct rondo_msccl_ir_message *next;
    uint32_t count;
    struct rondo_msccl_ir_held held[];
};

struct rondo_msccl_ir_line {
    struct rondo_msccl_ir_message *first, *last;
    uint32_t waiting;
};

/* A step that was played, in physical terms. */
struct rondo_msccl_ir_done {
    uint32_t order; /* from 1 */
    uint32_t source, destination;
    uint8_t source_buffer, destination_buffer, finishes;
    uint32_t block, step; /* in the plan */
};

struct rondo_msccl_ir_execution {
    struct rondo_msccl_ir *ir;
    const char *name;
    const struct rondo_compile_options *options;
    struct rondo_wants wants;
    struct rondo_msccl_ir_place *places;
    size_t *place_first; /* [rank][buffer] */
    struct rondo_msccl_ir_line *lines;
    size_t line_count, line_room;
    struct rondo_map map;
    struct rondo_msccl_ir_done *done; /* [step] */
    uint32_t *at;                     /* [block] */
    uint32_t *order;                  /* steps; in the end those of a rank side by side */
    uint32_t *rank_first;             /* [rank]: in order */
    uint32_t played;
    int again; /* a rank turned out to need its input copied */
    rondo_result_t result;
};

/* Plays all steps; p holds what came of it, or the reason why not, until it is released. p->raw's notes on its ranks may
 * change.
 */
rondo_result_t rondo_msccl_ir_execute(struct rondo_msccl_ir_execution *p);
void rondo_msccl_ir_execute_release(struct rondo_msccl_ir_execution *p);
/* The plans of all ranks, of a program that was played. */
rondo_result_t rondo_msccl_ir_write_plans(struct rondo_msccl_ir_execution *p, struct rondo_plan_set *set);

struct rondo_msccl_ir_place *rondo_msccl_ir_place_at(struct rondo_msccl_ir_execution *p, uint32_t rank, uint8_t buffer,
                                                     uint32_t index);
/* In place the same chunk of the output, if there is one. */
int rondo_msccl_ir_twin(const struct rondo_msccl_ir *ir, uint32_t rank, uint32_t input, uint32_t *output);

#endif
