/*
 * What the algorithms written in the language of rondo_program.h include: the language, short names of its buffers, and small
 * helpers. For the .c files of this room alone.
 */
#ifndef RONDO_LIB_ALGORITHMS_BUILDERS_H
#define RONDO_LIB_ALGORITHMS_BUILDERS_H

#include "lib/base/error.h"
#include "lib/program/builder.h"
#include "lib/algorithms/algorithms.h"

#define IN      RONDO_BUFFER_INPUT
#define OUT     RONDO_BUFFER_OUTPUT
#define SCRATCH RONDO_BUFFER_SCRATCH

/* Returns the number of ranks side by side on each host, all hosts having as many. Where the shape does not give it
 * (shape->group 0): a divisor of the size near its square root. */
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

/* A rank or other small number, not negative, as the language's chunk index. */
static inline size_t rondo_chunk_index(int index)
{
    return (size_t) index;
}

#endif
