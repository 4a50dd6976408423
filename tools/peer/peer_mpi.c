/*
 * MPI as a peer of `rondo bench`: the same collective with MPI's own blocking call, on the same buffers. A shared object of its
 * own (rondo-peer-mpi-NAME.so), so that the command needs no MPI; it uses nothing of Rondo but the description of the call.
 * PEER_NAME and PEER_LAUNCHER come from the Makefile, which builds one for each MPI.
 */
#include "tools/peer/peer.h"

#include <ctype.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct peer_state {
    const struct call *call;
    MPI_Datatype type;
    MPI_Op op;
    int count, given, received; /* given, received: of this rank, where counts are uneven */
    int ranks, next, previous;
    int *counts; /* the six arrays of call, as MPI's integers */
    MPI_Datatype *types;
    int *send_counts, *send_displacements, *receive_counts, *receive_displacements, *send_offsets, *receive_offsets;
};

static int failed(int error, char *message, size_t bytes)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (error == MPI_SUCCESS)
        return 0;
    MPI_Error_string(error, text, &length);
    snprintf(message, bytes, "%s", text);
    return 1;
}

static int open_mpi(struct peer_state **result, const struct peer_place *place, char *message, size_t bytes)
{
    int rank = place->rank, size = place->size;
    int mpi_rank, mpi_size, provided;
    int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    if (error != MPI_SUCCESS)
        return failed(error, message, bytes);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpi_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpi_size);
    if (mpi_rank != rank || mpi_size != size) {
        snprintf(message, bytes, "rank %d of %d is MPI's rank %d of %d: start the ranks with MPI's own mpirun", rank, size,
                 mpi_rank, mpi_size);
        return 1;
    }
    struct peer_state *state = calloc(1, sizeof(*state));
    if (state != NULL) {
        state->counts = calloc(6 * (size_t) size, sizeof(int));
        state->types = calloc((size_t) size, sizeof(*state->types));
    }
    if (state == NULL || state->counts == NULL || state->types == NULL) {
        if (state != NULL) {
            free(state->counts);
            free(state->types);
        }
        free(state);
        snprintf(message, bytes, "out of memory");
        return 1;
    }
    state->ranks = size;
    state->next = (rank + 1) % size;
    state->previous = (rank + size - 1) % size;
    state->send_counts = state->counts;
    state->send_displacements = state->counts + size;
    state->receive_counts = state->counts + 2 * size;
    state->receive_displacements = state->counts + 3 * size;
    state->send_offsets = state->counts + 4 * size;
    state->receive_offsets = state->counts + 5 * size;
    *result = state;
    return 0;
}

/* Types that MPI lacks can still be moved, as integers of their width; no reduction is made of those. */
static bool find_type(rondo_datatype_t type, bool reduces, MPI_Datatype *result)
{
    switch (type) {
    case RONDO_INT8:
        *result = MPI_INT8_T;
        return true;
    case RONDO_UINT8:
        *result = MPI_UINT8_T;
        return true;
    case RONDO_INT32:
        *result = MPI_INT32_T;
        return true;
    case RONDO_UINT32:
        *result = MPI_UINT32_T;
        return true;
    case RONDO_INT64:
        *result = MPI_INT64_T;
        return true;
    case RONDO_UINT64:
        *result = MPI_UINT64_T;
        return true;
    case RONDO_FLOAT:
        *result = MPI_FLOAT;
        return true;
    case RONDO_DOUBLE:
        *result = MPI_DOUBLE;
        return true;
    case RONDO_FLOAT16:
    case RONDO_BFLOAT16:
        *result = MPI_UINT16_T;
        return !reduces;
    case RONDO_FLOAT8E4M3:
    case RONDO_FLOAT8E5M2:
        *result = MPI_UINT8_T;
        return !reduces;
    case RONDO_INT16:
        *result = MPI_INT16_T;
        return true;
    case RONDO_UINT16:
        *result = MPI_UINT16_T;
        return true;
    case RONDO_BOOL:
        *result = MPI_C_BOOL;
        return true;
    case RONDO_COMPLEX_FLOAT:
        *result = MPI_C_FLOAT_COMPLEX;
        return true;
    case RONDO_COMPLEX_DOUBLE:
        *result = MPI_C_DOUBLE_COMPLEX;
        return true;
    case RONDO_LONG_DOUBLE:
        *result = MPI_LONG_DOUBLE;
        return true;
    case RONDO_FLOAT_INT:
        *result = MPI_FLOAT_INT;
        return true;
    case RONDO_DOUBLE_INT:
        *result = MPI_DOUBLE_INT;
        return true;
    case RONDO_LONG_INT:
        *result = MPI_LONG_INT;
        return true;
    case RONDO_2INT:
        *result = MPI_2INT;
        return true;
    case RONDO_SHORT_INT:
        *result = MPI_SHORT_INT;
        return true;
    case RONDO_LONG_DOUBLE_INT:
        *result = MPI_LONG_DOUBLE_INT;
        return true;
    default:
        return false;
    }
}

static bool is_real_type(rondo_datatype_t type)
{
    return type == RONDO_FLOAT || type == RONDO_DOUBLE || type == RONDO_LONG_DOUBLE;
}

static bool find_operator(rondo_op_t op, bool is_real, MPI_Op *result)
{
    switch (op) {
    case RONDO_SUM:
        *result = MPI_SUM;
        return true;
    case RONDO_PROD:
        *result = MPI_PROD;
        return true;
    case RONDO_MIN:
        *result = MPI_MIN;
        return true;
    case RONDO_MAX:
        *result = MPI_MAX;
        return true;
    case RONDO_LAND:
        *result = MPI_LAND;
        return !is_real;
    case RONDO_LOR:
        *result = MPI_LOR;
        return !is_real;
    case RONDO_LXOR:
        *result = MPI_LXOR;
        return !is_real;
    case RONDO_BAND:
        *result = MPI_BAND;
        return !is_real;
    case RONDO_BOR:
        *result = MPI_BOR;
        return !is_real;
    case RONDO_BXOR:
        *result = MPI_BXOR;
        return !is_real;
    case RONDO_MINLOC:
        *result = MPI_MINLOC;
        return true;
    case RONDO_MAXLOC:
        *result = MPI_MAXLOC;
        return true;
    default:
        return false;
    }
}

static int prepare(struct peer_state *s, const struct call *call, char *message, size_t bytes)
{
    bool reduces = call->collective->rule->reduces;
    if (!find_type(call->type, reduces, &s->type)) {
        snprintf(message, bytes, "MPI does not reduce 16- and 8-bit floats");
        return 1;
    }
    if (reduces && !find_operator(call->op, is_real_type(call->type), &s->op)) {
        snprintf(message, bytes, "MPI has no such operator on this type");
        return 1;
    }
    if (call->input_elements > INT_MAX || call->output_elements > INT_MAX) {
        snprintf(message, bytes, "MPI counts in int: %zu elements are too many",
                 call->input_elements > call->output_elements ? call->input_elements : call->output_elements);
        return 1;
    }
    s->call = call;
    s->count = (int) call->count;
    s->given = (int) call->input_elements;
    s->received = (int) call->output_elements;
    for (int i = 0; i < 6 * s->ranks; i++)
        s->counts[i] = (int) call->counts[i];
    for (int i = 0; i < s->ranks; i++)
        s->types[i] = s->type;
    return 0;
}

static const void *send_argument(const struct call *call)
{
    return call->send == RONDO_IN_PLACE ? MPI_IN_PLACE : call->send;
}

static void *receive_argument(const struct call *call)
{
    return call->receive == RONDO_IN_PLACE ? MPI_IN_PLACE : call->receive;
}

static int invoke(struct peer_state *s)
{
    const struct call *c = s->call;
    const void *send = send_argument(c);
    void *receive = receive_argument(c);
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (c->collective->id) {
    case COLLECTIVE_ALLREDUCE:
        return MPI_Allreduce(send, receive, s->count, s->type, s->op, comm);
    case COLLECTIVE_REDUCE:
        return MPI_Reduce(send, receive, s->count, s->type, s->op, c->root, comm);
    case COLLECTIVE_BCAST:
        return MPI_Bcast(receive, s->count, s->type, c->root, comm);
    case COLLECTIVE_REDUCE_SCATTER_BLOCK:
        return MPI_Reduce_scatter_block(send, receive, s->count, s->type, s->op, comm);
    case COLLECTIVE_ALLGATHER:
        return MPI_Allgather(send, s->count, s->type, receive, s->count, s->type, comm);
    case COLLECTIVE_ALLGATHERV:
        return MPI_Allgatherv(send, s->given, s->type, receive, s->receive_counts, s->receive_displacements, s->type, comm);
    case COLLECTIVE_ALLTOALL:
        return MPI_Alltoall(send, s->count, s->type, receive, s->count, s->type, comm);
    case COLLECTIVE_ALLTOALLV:
        return MPI_Alltoallv(send, s->send_counts, s->send_displacements, s->type, receive, s->receive_counts,
                             s->receive_displacements, s->type, comm);
    case COLLECTIVE_ALLTOALLW:
        return MPI_Alltoallw(send, s->send_counts, s->send_offsets, s->types, receive, s->receive_counts, s->receive_offsets,
                             s->types, comm);
    case COLLECTIVE_REDUCE_SCATTER:
        return MPI_Reduce_scatter(send, receive, s->receive_counts, s->type, s->op, comm);
    case COLLECTIVE_GATHERV:
        return MPI_Gatherv(send, s->given, s->type, receive, s->receive_counts, s->receive_displacements, s->type, c->root,
                           comm);
    case COLLECTIVE_SCATTERV:
        return MPI_Scatterv(send, s->send_counts, s->send_displacements, s->type, receive, s->received, s->type, c->root, comm);
    case COLLECTIVE_GATHER:
        return MPI_Gather(send, s->count, s->type, receive, s->count, s->type, c->root, comm);
    case COLLECTIVE_SCATTER:
        return MPI_Scatter(send, s->count, s->type, receive, s->count, s->type, c->root, comm);
    case COLLECTIVE_BARRIER:
        return MPI_Barrier(comm);
    case COLLECTIVE_SCAN:
        return MPI_Scan(send, receive, s->count, s->type, s->op, comm);
    case COLLECTIVE_EXSCAN:
        return MPI_Exscan(send, receive, s->count, s->type, s->op, comm);
    case COLLECTIVE_ALLTONEXT: { /* MPI has none; this is how a program would do it */
        int to = c->rank + 1 < c->ranks ? s->next : MPI_PROC_NULL, from = c->rank > 0 ? s->previous : MPI_PROC_NULL;
        return MPI_Sendrecv(send, s->count, s->type, to, 0, receive, s->count, s->type, from, 0, comm, MPI_STATUS_IGNORE);
    }
    case COLLECTIVE_SENDRECV:
        return MPI_Sendrecv(send, s->count, s->type, s->next, 0, receive, s->count, s->type, s->previous, 0, comm,
                            MPI_STATUS_IGNORE);
    case COLLECTIVE_COUNT:
        break;
    }
    return MPI_ERR_OTHER;
}

static int run(struct peer_state *state, char *message, size_t bytes)
{
    return failed(invoke(state), message, bytes);
}

static int barrier(struct peer_state *state, char *message, size_t bytes)
{
    (void) state;
    return failed(MPI_Barrier(MPI_COMM_WORLD), message, bytes);
}

static void close_mpi(struct peer_state *state)
{
    free(state->counts);
    free(state->types);
    free(state);
    MPI_Finalize();
}

/* The library's name and version in room for text: what comes before the first comma or line's end, with single blanks. May be
 * called before MPI_Init. NULL if the library tells none. */
static const char *library_version(char *text, size_t bytes)
{
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    if (MPI_Get_library_version(whole, &length) != MPI_SUCCESS)
        return NULL;
    size_t used = 0;
    for (const char *c = whole; *c != '\0' && *c != ',' && *c != '\n' && used + 1 < bytes; c++)
        if (!isspace((unsigned char) *c))
            text[used++] = *c;
        else if (used > 0 && text[used - 1] != ' ')
            text[used++] = ' ';
    text[used] = '\0';
    return used > 0 ? text : NULL;
}

__attribute__((visibility("default"))) const struct peer *rondo_peer(void);

const struct peer *rondo_peer(void)
{
    static char version[64];
    static struct peer peer = {.name = PEER_NAME,
                               .launcher = PEER_LAUNCHER,
                               .needs_processes = true,
                               .open = open_mpi,
                               .prepare = prepare,
                               .run = run,
                               .barrier = barrier,
                               .close = close_mpi};
    peer.version = library_version(version, sizeof(version));
    return &peer;
}
