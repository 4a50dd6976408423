/* MPI's functions that make communicators. Rondo's part is made with the new communicator, because a nonblocking collective,
 * which must not wait, could be the first on it. Only the new communicator's ranks take part. A copy that is made without
 * waiting gets its part meanwhile (comm.c). Communicators that are made in other ways get theirs at the first blocking
 * collective. */
#include "compat/mpi/shim.h"

/* CONSTRUCTOR(name, (parameters), (arguments)); the new communicator is *made. */
#define CONSTRUCTOR(name, parameters, arguments)                                                                               \
    int MPI_##name parameters                                                                                                  \
    {                                                                                                                          \
        int result = NEXT(name) arguments;                                                                                     \
        if (result == MPI_SUCCESS)                                                                                             \
            rondo_mpi_comm_made(*made);                                                                                        \
        return result;                                                                                                         \
    }                                                                                                                          \
    int PMPI_##name parameters __attribute__((alias("MPI_" #name)));

CONSTRUCTOR(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
CONSTRUCTOR(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
CONSTRUCTOR(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
CONSTRUCTOR(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made), (comm, group, tag, made))
#pragma GCC visibility push(default)
/* MPI-4 has it; not every mpi.h does. Its group may be a session's. */
int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *made);
CONSTRUCTOR(Comm_create_from_group, (MPI_Group group, const char *tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm *made),
            (group, tag, info, handler, made))
#pragma GCC visibility pop
CONSTRUCTOR(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made), (comm, color, key, made))
CONSTRUCTOR(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made), (comm, type, key, info, made))
CONSTRUCTOR(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))
CONSTRUCTOR(Cart_create, (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder, MPI_Comm *made),
            (comm, ndims, dims, periods, reorder, made))
CONSTRUCTOR(Cart_sub, (MPI_Comm comm, const int dims[], MPI_Comm *made), (comm, dims, made))
CONSTRUCTOR(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *made),
            (comm, nodes, index, edges, reorder, made))
CONSTRUCTOR(Dist_graph_create,
            (MPI_Comm comm, int n, const int sources[], const int degrees[], const int destinations[], const int weights[],
             MPI_Info info, int reorder, MPI_Comm *made),
            (comm, n, sources, degrees, destinations, weights, info, reorder, made))
CONSTRUCTOR(Dist_graph_create_adjacent,
            (MPI_Comm comm, int indegree, const int sources[], const int sourceweights[], int outdegree,
             const int destinations[], const int destweights[], MPI_Info info, int reorder, MPI_Comm *made),
            (comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info, reorder, made))

/* COPY(name, (parameters), (arguments)): the parent is comm, the copy *made. */
#define COPY(name, parameters, arguments)                                                                                      \
    int MPI_##name parameters                                                                                                  \
    {                                                                                                                          \
        int result = NEXT(name) arguments;                                                                                     \
        if (result == MPI_SUCCESS)                                                                                             \
            rondo_mpi_comm_copied(comm, *made);                                                                                \
        return result;                                                                                                         \
    }                                                                                                                          \
    int PMPI_##name parameters __attribute__((alias("MPI_" #name)));

COPY(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request))
#pragma GCC visibility push(default)
/* MPI-4 has it. */
int MPI_Comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request);
COPY(Comm_idup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made, MPI_Request *request), (comm, info, made, request))
#pragma GCC visibility pop

/* END(name): frees *comm. */
#define END(name)                                                                                                              \
    int MPI_##name(MPI_Comm *comm)                                                                                             \
    {                                                                                                                          \
        if (comm != NULL)                                                                                                      \
            rondo_mpi_comm_ending(*comm);                                                                                      \
        return NEXT(name)(comm);                                                                                               \
    }                                                                                                                          \
    int PMPI_##name(MPI_Comm *comm) __attribute__((alias("MPI_" #name)));
END(Comm_free)
END(Comm_disconnect)
