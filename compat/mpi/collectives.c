/* The collectives that the drop-in exports, generated from the table (compat/mpi/table.h): blocking, nonblocking, persistent,
 * each with int and, where mpi.h has them, with large counts. Each is also exported by its profiling name, because MPI's
 * Fortran functions call those. */
#include "compat/mpi/shim.h"

/* Also what this mpi.h does not declare, and a later one does. */
#pragma GCC visibility push(default)

#define LIST(...)       __VA_ARGS__
#define PLUS(list, ...) (LIST list, __VA_ARGS__)

#define FUNCTION(symbol, kind_, form_, parameters, arguments, ...)                                                             \
    int MPI_##symbol parameters;                                                                                               \
    int MPI_##symbol parameters                                                                                                \
    {                                                                                                                          \
        const struct rondo_mpi_call call = {.kind = kind_, .form = form_, .wide = WIDE, __VA_ARGS__};                          \
        int status;                                                                                                            \
        if (rondo_mpi_take(&call, &status))                                                                                    \
            return status;                                                                                                     \
        return NEXT(symbol) arguments;                                                                                         \
    }                                                                                                                          \
    int PMPI_##symbol parameters __attribute__((alias("MPI_" #symbol)));

#define FORMS(blocking, nonblocking, persistent, KIND, parameters, arguments, ...)                                             \
    FUNCTION(blocking, RONDO_MPI_##KIND, RONDO_MPI_BLOCKING, parameters, arguments, __VA_ARGS__)                               \
    FUNCTION(nonblocking, RONDO_MPI_##KIND, RONDO_MPI_NONBLOCKING, PLUS(parameters, MPI_Request *request),                     \
             PLUS(arguments, request), __VA_ARGS__, .request = request)                                                        \
    FUNCTION(persistent, RONDO_MPI_##KIND, RONDO_MPI_PERSISTENT, PLUS(parameters, MPI_Info info, MPI_Request *request),        \
             PLUS(arguments, info, request), __VA_ARGS__, .request = request)                                                  \
    EXTENSION(persistent, PLUS(parameters, MPI_Info info, MPI_Request *request))

/* An extension of Open MPI 4 has the persistent ones by these names. */
#ifdef OPEN_MPI
#define EXTENSION(symbol, parameters)                                                                                          \
    int MPIX_##symbol parameters __attribute__((alias("MPI_" #symbol)));                                                       \
    int PMPIX_##symbol parameters __attribute__((alias("MPI_" #symbol)));
#else
#define EXTENSION(symbol, parameters)
#endif

#define COLLECTIVE(Name, name, ...) FORMS(Name, I##name, Name##_init, __VA_ARGS__)
#define COUNT                       int
#define DISPLACEMENT                int
#define WIDE                        0
#include "compat/mpi/table.h"
#undef COLLECTIVE
#undef COUNT
#undef DISPLACEMENT
#undef WIDE

#if MPI_VERSION >= 4
#define COLLECTIVE(Name, name, ...) FORMS(Name##_c, I##name##_c, Name##_init_c, __VA_ARGS__)
#define COUNT                       MPI_Count
#define DISPLACEMENT                MPI_Aint
#define WIDE                        1
#include "compat/mpi/table.h"
#endif
