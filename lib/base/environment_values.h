/* The values of environment variables: parsing and refusing them by a row of the table. Of use to lib/base/environment.c, which
 * has the table; other files read by its functions. */
#ifndef RONDO_LIB_BASE_ENVIRONMENT_VALUES_H
#define RONDO_LIB_BASE_ENVIRONMENT_VALUES_H

#include "rondo.h"

#include <stdint.h>

struct rondo_environment_value {
    int64_t integer; /* of integers, sizes and signals; of a choice, the word's place */
    double real;     /* of reals; of integers, sizes and signals too; of texts and paths, the bytes */
};

/* Stores the value of a text that is not empty. Returns 0, or -1 if the row does not allow it. */
int rondo_environment_parse(const rondo_variable_t *variable, const char *text, struct rondo_environment_value *value);
/* Returns RONDO_ERR_ARGUMENT with a message: the source (a variable, or a field of a configuration), the text and what the row
 * allows. */
rondo_result_t rondo_environment_refuse(const rondo_variable_t *variable, const char *source, const char *text);

#endif
