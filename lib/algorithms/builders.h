/*
 * The algorithm library in the language of rondo_program.h: one file a family. Each makes the program for a shape (its kind,
 * number of ranks, root, channels and ranks a host); RONDO_ERR_UNSUPPORTED where it does not apply.
 */
#ifndef RONDO_LIB_ALGORITHMS_BUILDERS_H
#define RONDO_LIB_ALGORITHMS_BUILDERS_H

#include "lib/base/error.h"
#include "lib/program/builder.h"
#include "lib/algorithms/algorithms.h"

#define IN      RONDO_BUFFER_INPUT
#define OUT     RONDO_BUFFER_OUTPUT
#define SCRATCH RONDO_BUFFER_SCRATCH

/* Ranks side by side on a host, all hosts having as many; where nobody has said how many: a divisor near the square root. */
static inline int rondo_group_size(const struct rondo_shape *shape)
{
    if (shape->group > 0 && shape->size % shape->group == 0)
        return shape->group;
    int group = 1;
    for (int g = 2; g * g <= shape->size; g++)
        if (shape->size % g == 0)
            group = g;
    return group;
}

static inline size_t rondo_chunk_index(int index)
{
    return (size_t) index;
}

#endif
