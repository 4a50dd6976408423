/*
 * MPI's own functions and predefined handles, by name. The drop-in is loaded before MPI, and into processes that never load
 * it, so nothing of MPI may be referred to directly.
 */
#ifndef RONDO_COMPAT_MPI_NEXT_H
#define RONDO_COMPAT_MPI_NEXT_H

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop

/* The address of a variable of MPI; NULL: it has none of that name. Any thread. */
void *rondo_mpi_variable(const char *name);
/* MPI's function of the name without MPI_ before it, by its profiling name where there is one. Where MPI has none, a function
 * that returns an error. Any thread. */
void *rondo_mpi_function(const char *name);

/* The same of one of MPI's functions for Fortran, by its whole name; NULL: there is none. */
void *rondo_mpi_fortran(const char *name);
/* Whether MPI has the function of the name without MPI_ before it. */
int rondo_mpi_has(const char *name);

/* A call of MPI's own function. The name is looked up at the first call. */
#define NEXT(name)                                                                                                             \
    (*({                                                                                                                       \
        static __typeof__(&MPI_##name) found;                                                                                  \
        __typeof__(&MPI_##name) function = __atomic_load_n(&found, __ATOMIC_RELAXED);                                          \
        if (__builtin_expect(function == NULL, 0)) {                                                                           \
            function = (__typeof__(&MPI_##name)) rondo_mpi_function(#name);                                                    \
            __atomic_store_n(&found, function, __ATOMIC_RELAXED);                                                              \
        }                                                                                                                      \
        function;                                                                                                              \
    }))

/* Whether MPI has the function, looked up at the first call. */
#define HAS(name)                                                                                                              \
    ({                                                                                                                         \
        static int has; /* 0: not looked up */                                                                                 \
        int known = __atomic_load_n(&has, __ATOMIC_RELAXED);                                                                   \
        if (__builtin_expect(known == 0, 0)) {                                                                                 \
            known = rondo_mpi_has(#name) ? 1 : -1;                                                                             \
            __atomic_store_n(&has, known, __ATOMIC_RELAXED);                                                                   \
        }                                                                                                                      \
        known > 0;                                                                                                             \
    })

/* Open MPI's predefined handles are addresses of its variables. */
#ifdef OPEN_MPI
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, global)                                                                                   \
    ((type) ({                                                                                                                 \
        static void *found;                                                                                                    \
        void *address = __atomic_load_n(&found, __ATOMIC_RELAXED);                                                             \
        if (__builtin_expect(address == NULL, 0)) {                                                                            \
            address = rondo_mpi_variable(#global);                                                                             \
            __atomic_store_n(&found, address, __ATOMIC_RELAXED);                                                               \
        }                                                                                                                      \
        address;                                                                                                               \
    }))
#endif

#endif
