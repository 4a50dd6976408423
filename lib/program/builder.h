/*
 * A program as it was written: its operations in the order of the calls, and what every chunk holds after the last one. The
 * calls of rondo_program.h (lib/program/builder.c) make it, the compiler reads it. A program that was read from XML has steps
 * (ir) and no operations. A builder belongs to one thread until it is registered; then nothing changes it any more.
 */
#ifndef RONDO_LIB_PROGRAM_BUILDER_H
#define RONDO_LIB_PROGRAM_BUILDER_H

#include "lib/base/handle.h"
#include "lib/call/conditions.h"
#include "rondo_program.h"

#define RONDO_NAME_BYTES   64
#define RONDO_RANKS_MAX    65536
#define RONDO_CHUNKS_MAX   ((uint64_t) 1 << 26) /* of all ranks' buffers together: 2 GiB of state */
#define RONDO_OPS_MAX      ((size_t) 1 << 24)
#define RONDO_CHANNEL_AUTO (-1)
#define RONDO_CHANNEL_MAX  1023
#define RONDO_FACTOR_MAX   64

/* One copy or reduction of count chunks from source to destination. Chunks are named as rondo_conditions_resolve names them. */
struct rondo_op {
    uint32_t source_rank, source, rank, destination, count;
    int32_t channel;
    uint8_t source_buffer, buffer;
    uint8_t reduces;
    uint8_t finishes; /* the result is complete: the operator's last step is applied */
    uint32_t factor;  /* instances side by side, each on a part of every chunk */
};

/* What a chunk holds now. */
struct rondo_cell {
    struct rondo_value value;
    uint32_t written; /* number of the call that wrote it, from 1; 0: never */
    uint32_t index;   /* of the input chunks it comes from; UINT32_MAX: of several */
};

struct rondo_cells {
    struct rondo_cell *cells;
    uint32_t count;
};

struct rondo_msccl_ir;

/* For which calls a program is, and how it runs: a part of its signature. */
struct rondo_directives {
    const char *protocol;        /* static: "simple", "ll" or "ll128"; NULL: chosen */
    int op;                      /* rondo_op_t; -1: any */
    int in_place_only;           /* calls with two buffers do not use it */
    size_t min_bytes, max_bytes; /* max_bytes 0: no bound */
};
#define RONDO_DIRECTIVES_NONE                                                                                                  \
    {                                                                                                                          \
        NULL, -1, 0, 0, 0                                                                                                      \
    }

struct rondo_program_builder {
    rondo_program_t handle; /* the user's, until it is destroyed */
    char name[RONDO_NAME_BYTES];
    struct rondo_conditions conditions;
    int in_place;
    struct rondo_directives directives;
    struct rondo_op *ops;
    size_t op_count, op_room;
    struct rondo_cells *buffers; /* [rank][RONDO_BUFFERS] */
    uint64_t cell_count;
    uint32_t calls;               /* all calls of the language, for messages and stale references */
    int channel, channels;        /* current directive; largest directive + 1 */
    uint32_t factor, granularity; /* current product of instances; least common multiple of all */
    uint32_t factors[8];          /* of the enclosing rondo_program_parallelize */
    int depth;                    /* their number */
    struct rondo_wants wants;
    struct rondo_msccl_ir *ir; /* of a program that was read; owned */
    uint32_t references;       /* the handle's, and one for each registration; atomic */
    rondo_result_t result;     /* of the first wrong call */
    char message[512];
};

/* Sets *builder to what the handle stands for. Else it is NULL, and the result as rondo_handle_refuse says. */
static inline rondo_result_t rondo_program_builder_of(rondo_program_t handle, const char *function,
                                                      struct rondo_program_builder **builder)
{
    *builder = rondo_handle_find(handle, RONDO_HANDLE_PROGRAM);
    return *builder != NULL ? RONDO_SUCCESS : rondo_handle_refuse(handle, RONDO_HANDLE_PROGRAM, function);
}

/* Makes *program the handle of a builder that has one reference, which is the handle's; rondo_program_destroy ends both.
 * RONDO_ERR_MEMORY: the builder has been freed, and *program is NULL. */
rondo_result_t rondo_program_builder_open(struct rondo_program_builder *builder, rondo_program_t *program);
/* Gives up a reference; the last one frees the builder. */
void rondo_program_builder_release(struct rondo_program_builder *builder);

/* Notes the first error of a call, which all later calls return, and sets rondo_last_error. Returns builder->result. */
rondo_result_t rondo_program_builder_fail(struct rondo_program_builder *builder, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/*
 * Makes an empty program: no operations, inputs as the collective gives them. name: less than RONDO_NAME_BYTES. in_place: the
 * program is written for one buffer that is input and output. conditions is copied; the builder takes over the lists in it. The
 * caller destroys *program with rondo_program_destroy. RONDO_ERR_MEMORY, or RONDO_ERR_ARGUMENT for more than RONDO_CHUNKS_MAX
 * chunks; *program is then NULL.
 */
rondo_result_t rondo_program_builder_create(rondo_program_t *program, const char *name,
                                            const struct rondo_conditions *conditions, int in_place);
/* The same for a shape's kind, size and root, with so many chunks a block of the arguments: the built-in algorithms' way. */
rondo_result_t rondo_program_builder_create_shaped(rondo_program_t *program, const char *name, const struct rondo_shape *shape,
                                                   int chunks, int in_place);
/* Checks a program before it is compiled: RONDO_SUCCESS if no call was wrong, it has a postcondition, every
 * rondo_program_parallelize is closed, and, if it was written by calls, all output chunks end as the collective asks; else the
 * error, as rondo_last_error says. */
rondo_result_t rondo_program_builder_verify(struct rondo_program_builder *builder);

/* Sets a directive by the name that a signature has for it, in any case. NULL, or "": none. Returns 0 if there is none of the
 * name, or the collective has no operator. */
int rondo_directives_set_protocol(struct rondo_directives *directives, const char *name);
int rondo_directives_set_op(struct rondo_directives *directives, enum rondo_kind kind, const char *name);

/* For messages. */
static inline const char *rondo_buffer_name(int buffer)
{
    static const char *const names[] = {"input", "output", "scratch"};
    return (unsigned) buffer < 3 ? names[buffer] : "unknown";
}

#endif
