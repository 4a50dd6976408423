/* The parts of `rondo program`: the command line and what needs no ranks (program.c), and running (tools/program/run.c). */
#ifndef RONDO_TOOLS_PROGRAM_PROGRAM_H
#define RONDO_TOOLS_PROGRAM_PROGRAM_H

#include "tools/common/ranks.h"
#include "tools/program/conditions.h"
#include "rondo_program.h"
#include <jansson.h>

struct program_options {
    const char *action, *program, *collective, *format, *output, *bytes, *precondition, *postcondition, *json;
    int ranks, channels, root;
    rondo_program_limits_t limits;
    rondo_device_t device;
    struct conditions before, after; /* of a custom program */
};

/* From the file or the built-in of that name, with the conditions in options. RONDO_ERR_SYSTEM without a message: the file
 * cannot be read. */
rondo_result_t program_load(const struct program_options *options, rondo_program_t *program);
/* Registers it on all ranks, runs it at each size in every form that it has, and checks the data. Returns an exit code. */
int program_run(const struct program_options *options, rondo_program_t program, json_t *json);

struct program_row {
    size_t bytes;
    const char *form; /* the last one that was tried */
    uint64_t wrong;   /* elements */
};
/* Runs a registered custom program at one size, in its blocking and its persistent form, and checks the data. */
rondo_result_t program_run_custom(struct rank *rank, const struct program_options *options,
                                  const rondo_program_signature_t *signature, size_t bytes, struct program_row *row);

#endif
