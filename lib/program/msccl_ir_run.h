/*
 * What passes between the execution of a program out of a file (lib/program/msccl_ir_run.c) and the plans that are made of it
 * (lib/program/msccl_ir_plans.c). Relies on lib/program/msccl_ir.h; used by one thread at a time.
 */
#ifndef RONDO_LIB_PROGRAM_MSCCL_IR_RUN_H
#define RONDO_LIB_PROGRAM_MSCCL_IR_RUN_H

#include "lib/base/containers.h"
#include "lib/program/msccl_ir.h"

/* What a chunk holds. index: of the input chunks it comes from; UINT32_MAX: of several. class: length (lib/call/conditions.h).
 */
struct rondo_msccl_ir_content {
    struct rondo_value value;
    uint32_t index, class;
};

struct rondo_msccl_ir_place {
    struct rondo_msccl_ir_content content;
    uint32_t class; /* scratch: that of the first content; RONDO_NONE: none yet */
    int written;    /* by a step, as against given at the start */
};

struct rondo_msccl_ir_message {
    struct rondo_msccl_ir_message *next;
    uint32_t count;
    struct rondo_msccl_ir_content contents[];
};

/* The messages between two ranks on a channel that were sent and not received. */
struct rondo_msccl_ir_queue {
    struct rondo_msccl_ir_message *first, *last;
    uint32_t waiting; /* their number */
};

/* A chunk by its buffer (enum rondo_buffer) and index. */
struct rondo_msccl_ir_chunk {
    uint8_t buffer;
    uint32_t index;
};

/* A step that was executed. source and destination: where the first chunk lies in the plan's buffers. */
struct rondo_msccl_ir_done {
    uint32_t order; /* from 1 */
    struct rondo_msccl_ir_chunk source, destination;
    uint8_t finishes;     /* its result is complete: the operator's last step is applied */
    uint32_t block, step; /* in the plan */
};

struct rondo_msccl_ir_execution {
    struct rondo_msccl_ir *ir;
    const char *name;
    const struct rondo_compile_options *options;
    struct rondo_wants wants;
    struct rondo_msccl_ir_place *places;
    size_t *place_first; /* [rank][buffer] */
    struct rondo_msccl_ir_queue *queues;
    size_t queue_count, queue_room;
    struct rondo_map map;             /* rondo_connection_key -> queue */
    struct rondo_msccl_ir_done *done; /* [step] */
    uint32_t *at;                     /* [block]: its next step */
    uint32_t *order;                  /* steps as executed; in the end those of a rank side by side */
    uint32_t *rank_first;             /* [rank]: in order */
    uint32_t executed;                /* steps */
    int again;                        /* a rank turned out to need its input copied: all starts anew */
    rondo_result_t result;
};

/*
 * Executes all steps of e->ir in some order that e->options->slots allow. The caller sets ir, name and options, all else zero.
 * Returns e->result: RONDO_SUCCESS, and e->done and e->order tell what came of each step; RONDO_ERR_ARGUMENT naming rank,
 * block, step and line if a step is wrong or all wait for ever; RONDO_ERR_MEMORY. May set `copied` of ranks in e->ir. The
 * caller then calls rondo_msccl_ir_execute_release in any case.
 */
rondo_result_t rondo_msccl_ir_execute(struct rondo_msccl_ir_execution *e);
void rondo_msccl_ir_execute_release(struct rondo_msccl_ir_execution *e);

/*
 * Stores the plans of all ranks in set->plans, of a program whose execution has succeeded. RONDO_ERR_UNSUPPORTED if a block
 * needs more connections than an instruction can name; RONDO_ERR_MEMORY. On failure some plans may be there; the set's owner
 * frees them.
 */
rondo_result_t rondo_msccl_ir_write_plans(struct rondo_msccl_ir_execution *e, struct rondo_plan_set *set);

/* The place of a chunk of a rank that exists. */
struct rondo_msccl_ir_place *rondo_msccl_ir_place_at(struct rondo_msccl_ir_execution *e, uint32_t rank,
                                                     struct rondo_msccl_ir_chunk chunk);
/* Whether an input chunk of a rank is the same memory as an output chunk, which *output then is. */
int rondo_msccl_ir_twin(const struct rondo_msccl_ir *ir, uint32_t rank, uint32_t input, uint32_t *output);

#endif
