/* MPI's functions that look at requests and leave them as they are. Their arrays may mix the drop-in's requests with MPI's own,
 * of which MPI's functions say what is active. */
#include "compat/mpi/shim.h"

#include <stdlib.h>

#pragma GCC visibility push(default)

/* MPI-4.1 has these; not every mpi.h does. */
int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status);
int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[]);
int MPI_Request_get_status_some(int count, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[]);

int MPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    if (!rondo_mpi_request_ours(request))
        return NEXT(Request_get_status)(request, flag, status);
    *flag = rondo_mpi_request_is_over(rondo_mpi_request_of(request));
    if (*flag)
        rondo_mpi_set_status(status, MPI_SUCCESS);
    else
        rondo_mpi_progress(NULL);
    return MPI_SUCCESS;
}

/* MPICH's own. */
int MPIX_Request_is_complete(MPI_Request request);
int MPIX_Request_is_complete(MPI_Request request)
{
    if (rondo_mpi_request_ours(request))
        return rondo_mpi_request_is_over(rondo_mpi_request_of(request));
    int (*next)(MPI_Request) = (int (*)(MPI_Request)) rondo_mpi_function("Request_is_complete");
    return next(request);
}

/* ---- MPI's own requests ---- */

/* Where MPI has no functions for arrays, each request is looked at by itself. That does not tell an inactive persistent request
 * from one that is complete. */
static int look_any(int count, const MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    int left = 0, result = MPI_SUCCESS;
    if (HAS(Request_get_status_any))
        return NEXT(Request_get_status_any)(count, requests, index, flag, status);
    for (int i = 0; i < count; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        left = 1;
        result = NEXT(Request_get_status)(requests[i], flag, status);
        *index = i;
        if (*flag || result != MPI_SUCCESS)
            return result;
    }
    *flag = !left;
    *index = MPI_UNDEFINED;
    if (*flag)
        rondo_mpi_set_status(status, MPI_SUCCESS);
    return result;
}

static int look_all(int count, const MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    if (HAS(Request_get_status_all))
        return NEXT(Request_get_status_all)(count, requests, flag, statuses);
    *flag = 1;
    for (int i = 0; i < count && *flag && result == MPI_SUCCESS; i++)
        result =
            NEXT(Request_get_status)(requests[i], flag, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
    return result;
}

static int look_some(int count, const MPI_Request *requests, int *outcount, int *indices, MPI_Status *statuses)
{
    int left = 0, out = 0, over, result = MPI_SUCCESS;
    if (HAS(Request_get_status_some))
        return NEXT(Request_get_status_some)(count, requests, outcount, indices, statuses);
    for (int i = 0; i < count && result == MPI_SUCCESS; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            continue;
        left = 1;
        result =
            NEXT(Request_get_status)(requests[i], &over, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[out]);
        if (over)
            indices[out++] = i;
    }
    *outcount = left ? out : MPI_UNDEFINED;
    return result;
}

/* ---- both ---- */

/* MPI's own requests of an array, but for null handles, with room for what MPI gives of them. */
struct theirs {
    int count;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *places, *indices; /* places: of each in the program's array */
};

/* Returns 0 if none of the requests is the drop-in's, -1 without memory; else 1, and the caller frees theirs->statuses. */
static int separate(int count, const MPI_Request *requests, struct theirs *theirs)
{
    const size_t room = count > 0 ? (size_t) count : 0;
    int ours = 0;
    for (int i = 0; requests != NULL && i < count; i++)
        ours |= rondo_mpi_request_ours(requests[i]);
    if (!ours)
        return 0;
    theirs->count = 0;
    theirs->statuses = malloc(room * (sizeof(MPI_Status) + sizeof(MPI_Request) + 2 * sizeof(int)));
    if (theirs->statuses == NULL) {
        NEXT(Comm_call_errhandler)(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
        return -1;
    }
    theirs->requests = (void *) (theirs->statuses + room);
    theirs->places = (void *) (theirs->requests + room);
    theirs->indices = theirs->places + room;
    for (int i = 0; i < count; i++)
        if (!rondo_mpi_request_ours(requests[i]) && requests[i] != MPI_REQUEST_NULL) {
            theirs->places[theirs->count] = i;
            theirs->requests[theirs->count++] = requests[i];
        }
    return 1;
}

/* A request of the drop-in's that has been started and not waited for; NULL: another one. */
static struct rondo_mpi_request *active(MPI_Request handle)
{
    struct rondo_mpi_request *request = rondo_mpi_request_ours(handle) ? rondo_mpi_request_of(handle) : NULL;
    return request != NULL && request->state != RONDO_MPI_INACTIVE ? request : NULL;
}

int MPI_Request_get_status_any(int count, const MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct theirs theirs;
    const int mixed = separate(count, requests, &theirs);
    int left = 0, result = MPI_SUCCESS;
    if (mixed <= 0)
        return mixed == 0 ? look_any(count, requests, index, flag, status) : MPI_ERR_NO_MEM;
    *flag = 0;
    for (int i = 0; i < count && !*flag; i++) {
        struct rondo_mpi_request *request = active(requests[i]);
        if (request == NULL)
            continue;
        left = 1;
        *flag = rondo_mpi_request_is_over(request);
        *index = i;
    }
    if (*flag) {
        rondo_mpi_set_status(status, MPI_SUCCESS);
    } else if (theirs.count > 0) {
        result = look_any(theirs.count, theirs.requests, index, flag, status);
        if (*flag && *index != MPI_UNDEFINED)
            *index = theirs.places[*index];
        else if (*flag && left)
            *flag = 0; /* MPI has none that is active */
    } else if (!left) {
        *flag = 1;
        *index = MPI_UNDEFINED;
        rondo_mpi_set_status(status, MPI_SUCCESS);
    }
    if (!*flag)
        rondo_mpi_progress(NULL);
    free(theirs.statuses);
    return result;
}

int MPI_Request_get_status_all(int count, const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct theirs theirs;
    const int mixed = separate(count, requests, &theirs);
    int over = 1, result = MPI_SUCCESS;
    if (mixed <= 0)
        return mixed == 0 ? look_all(count, requests, flag, statuses) : MPI_ERR_NO_MEM;
    for (int i = 0; i < count; i++)
        if (active(requests[i]) != NULL)
            over &= rondo_mpi_request_is_over(active(requests[i]));
    *flag = over;
    if (over && theirs.count > 0)
        result = look_all(theirs.count, theirs.requests, flag, theirs.statuses);
    for (int i = 0; *flag && statuses != MPI_STATUSES_IGNORE && i < count; i++)
        rondo_mpi_set_status(&statuses[i], MPI_SUCCESS);
    for (int i = 0; *flag && statuses != MPI_STATUSES_IGNORE && i < theirs.count; i++)
        statuses[theirs.places[i]] = theirs.statuses[i];
    if (!*flag)
        rondo_mpi_progress(NULL);
    free(theirs.statuses);
    return result;
}

int MPI_Request_get_status_some(int count, const MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    struct theirs theirs;
    const int mixed = separate(count, requests, &theirs);
    int left = 0, out = 0, given = MPI_UNDEFINED, result = MPI_SUCCESS;
    if (mixed <= 0)
        return mixed == 0 ? look_some(count, requests, outcount, indices, statuses) : MPI_ERR_NO_MEM;
    if (theirs.count > 0)
        result = look_some(theirs.count, theirs.requests, &given, theirs.indices, theirs.statuses);
    for (int i = 0; given != MPI_UNDEFINED && i < given; i++, out++) {
        indices[out] = theirs.places[theirs.indices[i]];
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[out] = theirs.statuses[i];
    }
    for (int i = 0; i < count; i++) {
        struct rondo_mpi_request *request = active(requests[i]);
        if (request == NULL)
            continue;
        left = 1;
        if (!rondo_mpi_request_is_over(request))
            continue;
        if (statuses != MPI_STATUSES_IGNORE)
            rondo_mpi_set_status(&statuses[out], MPI_SUCCESS);
        indices[out++] = i;
    }
    *outcount = given == MPI_UNDEFINED && !left ? MPI_UNDEFINED : out;
    if (*outcount == 0)
        rondo_mpi_progress(NULL);
    free(theirs.statuses);
    return result;
}

#define PROFILING(name) extern __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)));
extern __typeof__(MPIX_Request_is_complete) PMPIX_Request_is_complete __attribute__((alias("MPIX_Request_is_complete")));
PROFILING(Request_get_status)
PROFILING(Request_get_status_any)
PROFILING(Request_get_status_all)
PROFILING(Request_get_status_some)
