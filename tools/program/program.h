/* The parts of `rondo program`: the command line and what needs no ranks (program.c), and running (tools/program/run.c). */
#ifndef RONDO_TOOLS_PROGRAM_PROGRAM_H
#define RONDO_TOOLS_PROGRAM_PROGRAM_H

#include "rondo_program.h"
#include <jansson.h>

struct program_options {
    const char *action, *program, *collective, *format, *output, *bytes, *json;
    int ranks, channels, root;
    rondo_program_limits_t limits;
    rondo_device_t device;
};

/* From the file or the built-in of that name. RONDO_ERR_SYSTEM without a message: the file cannot be read. */
rondo_result_t program_load(const struct program_options *options, rondo_program_t *program);
/* Registers it on all ranks, runs it at each size in every form that it has, and checks the data. Returns an exit code. */
int program_run(const struct program_options *options, rondo_program_t program, json_t *json);

#endif
