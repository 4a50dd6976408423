/*
 * Reading the command line of `rondo VERB`: values with their checks, the names of types and operators, and the options that
 * several verbs share. Every refusal is one line on standard error that quotes the offending value, and EXIT_USAGE.
 */
#ifndef RONDO_TOOLS_COMMON_OPTIONS_H
#define RONDO_TOOLS_COMMON_OPTIONS_H

#include "rondo.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of the command; 0 is success. */
enum { EXIT_WRONG = 1, EXIT_USAGE = 2, EXIT_DEADLOCK = 3 };

/* Where ranks come from and how the runtime of each is configured. */
struct options_runtime {
    int threads; /* that many ranks as threads of this process; 0: rank and size come from the environment */
    rondo_device_t device;
    const char *transports; /* NULL: the environment's */
    double timeout;         /* seconds; -1: the environment's */
    int preempt;            /* -1: the environment's */
};
#define OPTIONS_RUNTIME_DEFAULT                                                                                                \
    {                                                                                                                          \
        0, RONDO_DEVICE_AUTO, NULL, -1.0, -1                                                                                   \
    }

/* Prints "rondo VERB: ..." and returns EXIT_USAGE. */
int options_refuse(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For getopt_long's '?' and ':' with opterr 0: names the option at argv[optind - 1]. */
int options_unknown(const char *verb, int code, char *const *argv);

/* These return 0, or EXIT_USAGE after saying why. minimum and maximum are inclusive. */
int options_integer(const char *verb, const char *option, const char *text, int64_t minimum, int64_t maximum, int64_t *value);
/* The same of an environment variable that the library reads: its value, or its default where it is unset or empty. Its row of
 * the library's table has the bounds. */
int options_variable(const char *verb, const char *name, int64_t *value);
bool options_variable_is_set(const char *name); /* and not empty */
/* NULL: neither set, nor with a default; or wrong, which rondo_init will say. */
const char *options_variable_text(const char *name);
int options_size(const char *verb, const char *option, const char *text, size_t *bytes); /* 16, 16K, 16M, 16G; K = 1024 */
int options_real(const char *verb, const char *option, const char *text, double minimum, double *value);
int options_type(const char *verb, const char *option, const char *text, rondo_datatype_t *type);
int options_operator(const char *verb, const char *option, const char *text, rondo_op_t *op);
int options_device(const char *verb, const char *option, const char *text, rondo_device_t *device);
int options_ranks(const char *verb, const char *option, const char *text, int *ranks);

/* Names as the options take them, of a valid type, operator or device. */
const char *options_type_name(rondo_datatype_t type);
const char *options_operator_name(rondo_op_t op);
const char *options_device_name(rondo_device_t device);
/* Whether the operator combines elements of the type, both valid. */
bool options_operator_takes(rondo_op_t op, rondo_datatype_t type);
/* All names, for messages, with `between` between them; returns names->text. */
struct options_names {
    char text[256];
};
const char *options_type_names(const char *between, struct options_names *names);
const char *options_operator_names(const char *between, struct options_names *names);

#endif
