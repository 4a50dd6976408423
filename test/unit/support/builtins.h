/* Iteration over the built-in algorithms that are programs, with every collective that they implement. */
#ifndef RONDO_TEST_BUILTINS_H
#define RONDO_TEST_BUILTINS_H

#include "rondo_program.h"

#include <stddef.h>

/* Calls visit for each algorithm and collective. Returns the number of calls. */
static inline int each_builtin(void (*visit)(const char *name, const char *collective, void *with), void *with)
{
    const char *name, *collective;
    int count = 0;
    for (;; count++) {
        rondo_program_builtin_name(count, &name, &collective);
        if (name == NULL)
            return count;
        if (visit != NULL)
            visit(name, collective, with);
    }
}

#endif
