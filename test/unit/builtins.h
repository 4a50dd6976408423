/* Going through the built-in algorithms that are programs, of every collective they do. */
#ifndef RONDO_TEST_BUILTINS_H
#define RONDO_TEST_BUILTINS_H

#include "rondo_program.h"

#include <stddef.h>

/* Returns how many there are. */
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
