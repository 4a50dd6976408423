/* MPI's functions on requests, whose arrays may mix the drop-in's requests with MPI's own. While a thread waits for Rondo, MPI
 * goes on by the wait callback (world.c); while it waits in MPI, Rondo goes on by its own threads. */
#include "compat/mpi/shim.h"

#include <sched.h>
#include <stdlib.h>

#define FEW 64

/* ---- one request of the drop-in's ---- */

void rondo_mpi_set_status(MPI_Status *status, int error)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    NEXT(Status_set_elements)(status, MPI_BYTE, 0);
    NEXT(Status_set_cancelled)(status, 0);
    status->MPI_SOURCE = MPI_ANY_SOURCE;
    status->MPI_TAG = MPI_ANY_TAG;
    status->MPI_ERROR = error;
}

static void finish(struct rondo_mpi_request *request, rondo_result_t result)
{
    request->error = result == RONDO_SUCCESS && request->operation.staged ? rondo_mpi_operation_unpack(&request->operation)
                                                                          : rondo_mpi_class(result);
    request->state = RONDO_MPI_COMPLETE;
}

int rondo_mpi_request_is_over(struct rondo_mpi_request *request)
{
    int done = 0;
    if (request->state == RONDO_MPI_ACTIVE) {
        rondo_result_t result = rondo_test(request->request, &done);
        if (done || result != RONDO_SUCCESS)
            finish(request, result);
    }
    return request->state != RONDO_MPI_ACTIVE;
}

static void complete(struct rondo_mpi_request *request)
{
    if (request->state == RONDO_MPI_ACTIVE)
        finish(request, rondo_wait(request->request));
}

static void end(struct rondo_mpi_request *request)
{
    struct rondo_mpi_comm *comm = request->operation.comm;
    if (request->persistent)
        rondo_request_free(&request->request);
    rondo_mpi_operation_release(&request->operation, 1);
    rondo_mpi_request_delete(request);
    rondo_mpi_comm_let_go(comm);
}

/* Gives the program the outcome of a request that is over: sets the status, and the handle to MPI_REQUEST_NULL unless it is
 * persistent. Returns the request's error class. *comm becomes its communicator. */
static int deliver(MPI_Request *handle, MPI_Status *status, struct rondo_mpi_comm **comm)
{
    struct rondo_mpi_request *request = rondo_mpi_request_of(*handle);
    int error = request->state == RONDO_MPI_COMPLETE ? request->error : MPI_SUCCESS;
    *comm = request->operation.comm;
    rondo_mpi_set_status(status, error);
    request->state = RONDO_MPI_INACTIVE;
    if (!request->persistent) {
        end(request);
        *handle = MPI_REQUEST_NULL;
    }
    return error;
}

/* deliver, and the error handler. */
static int deliver_one(MPI_Request *handle, MPI_Status *status)
{
    struct rondo_mpi_comm *comm;
    int error = deliver(handle, status, &comm);
    return error == MPI_SUCCESS ? error : rondo_mpi_fail(comm, error);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (request == NULL || !rondo_mpi_request_ours(*request))
        return NEXT(Wait)(request, status);
    complete(rondo_mpi_request_of(*request));
    return deliver_one(request, status);
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (request == NULL || !rondo_mpi_request_ours(*request))
        return NEXT(Test)(request, flag, status);
    *flag = rondo_mpi_request_is_over(rondo_mpi_request_of(*request));
    if (*flag)
        return deliver_one(request, status);
    rondo_mpi_progress(NULL);
    return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request *request)
{
    if (request == NULL || !rondo_mpi_request_ours(*request))
        return NEXT(Request_free)(request);
    complete(rondo_mpi_request_of(*request));
    end(rondo_mpi_request_of(*request));
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int MPI_Cancel(MPI_Request *request)
{
    if (request == NULL || !rondo_mpi_request_ours(*request))
        return NEXT(Cancel)(request);
    return rondo_mpi_fail(rondo_mpi_request_of(*request)->operation.comm, MPI_ERR_REQUEST); /* MPI has none of collectives */
}

int MPI_Start(MPI_Request *handle)
{
    if (handle == NULL || !rondo_mpi_request_ours(*handle))
        return NEXT(Start)(handle);
    struct rondo_mpi_request *request = rondo_mpi_request_of(*handle);
    if (!request->persistent || request->state != RONDO_MPI_INACTIVE)
        return rondo_mpi_fail(request->operation.comm, MPI_ERR_REQUEST);
    int status = request->operation.staged ? rondo_mpi_operation_pack(&request->operation) : MPI_SUCCESS;
    if (status == MPI_SUCCESS)
        status = rondo_mpi_class(rondo_start(request->request));
    if (status != MPI_SUCCESS)
        return rondo_mpi_fail(request->operation.comm, status);
    request->state = RONDO_MPI_ACTIVE;
    return MPI_SUCCESS;
}

/* ---- arrays ---- */

static int has_ours(int count, const MPI_Request *requests)
{
    for (int i = 0; requests != NULL && i < count; i++)
        if (rondo_mpi_request_ours(requests[i]))
            return 1;
    return 0;
}

int MPI_Startall(int count, MPI_Request requests[])
{
    if (!has_ours(count, requests))
        return NEXT(Startall)(count, requests);
    for (int i = 0; i < count; i++) {
        int status = MPI_Start(&requests[i]);
        if (status != MPI_SUCCESS)
            return status;
    }
    return MPI_SUCCESS;
}

/* The requests of an array that are not the drop-in's, with what MPI's functions on them need. */
struct others {
    int count;
    MPI_Request *requests;
    MPI_Status *statuses;
    int *places;  /* of each in the program's array */
    int *indices; /* what MPI_Testsome gives */
    void *memory; /* NULL: few */
    MPI_Request few_requests[FEW];
    MPI_Status few_statuses[FEW];
    int few_places[FEW], few_indices[FEW];
};

static int take_others(struct others *others, int count, const MPI_Request *requests)
{
    others->count = 0;
    others->memory = NULL;
    others->requests = others->few_requests;
    others->statuses = others->few_statuses;
    others->places = others->few_places;
    others->indices = others->few_indices;
    if (count > FEW) {
        size_t room = (size_t) count;
        others->memory = malloc(room * (sizeof(MPI_Status) + sizeof(MPI_Request) + 2 * sizeof(int)));
        if (others->memory == NULL)
            return 0;
        others->statuses = others->memory;
        others->requests = (void *) (others->statuses + room);
        others->places = (void *) (others->requests + room);
        others->indices = others->places + room;
    }
    for (int i = 0; i < count; i++)
        if (!rondo_mpi_request_ours(requests[i])) {
            others->places[others->count] = i;
            others->requests[others->count++] = requests[i];
        }
    return 1;
}

static void give_back(struct others *others, MPI_Request *requests)
{
    for (int i = 0; i < others->count; i++)
        requests[others->places[i]] = others->requests[i];
    free(others->memory);
}

static int no_memory(void)
{
    NEXT(Comm_call_errhandler)(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* All requests are over: gives the program the outcome of the drop-in's, and of MPI's what MPI gave, which returned result. */
static int deliver_all(struct others *others, int result, int count, MPI_Request *requests, MPI_Status *statuses)
{
    struct rondo_mpi_comm *comm, *failed = NULL;
    if (statuses != MPI_STATUSES_IGNORE)
        for (int i = 0; i < others->count; i++) {
            statuses[others->places[i]] = others->statuses[i];
            if (result != MPI_ERR_IN_STATUS)
                statuses[others->places[i]].MPI_ERROR = MPI_SUCCESS;
        }
    for (int i = 0; i < count; i++)
        if (rondo_mpi_request_ours(requests[i]) && deliver(&requests[i], status_at(statuses, i), &comm) != MPI_SUCCESS)
            failed = comm;
    give_back(others, requests);
    return failed != NULL ? rondo_mpi_fail(failed, MPI_ERR_IN_STATUS) : result;
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    struct others others;
    if (!has_ours(count, requests))
        return NEXT(Waitall)(count, requests, statuses);
    if (!take_others(&others, count, requests))
        return no_memory();
    for (int i = 0; i < count; i++)
        if (rondo_mpi_request_ours(requests[i]))
            complete(rondo_mpi_request_of(requests[i]));
    int result = NEXT(Waitall)(others.count, others.requests, others.statuses);
    return deliver_all(&others, result, count, requests, statuses);
}

int MPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    struct others others;
    int over = 1, result = MPI_SUCCESS;
    if (!has_ours(count, requests))
        return NEXT(Testall)(count, requests, flag, statuses);
    if (!take_others(&others, count, requests))
        return no_memory();
    for (int i = 0; i < count; i++)
        if (rondo_mpi_request_ours(requests[i]))
            over &= rondo_mpi_request_is_over(rondo_mpi_request_of(requests[i]));
    *flag = 0;
    if (over)
        result = NEXT(Testall)(others.count, others.requests, flag, others.statuses);
    else
        rondo_mpi_progress(NULL);
    if (*flag || result != MPI_SUCCESS)
        return deliver_all(&others, result, count, requests, statuses);
    give_back(&others, requests);
    return result;
}

int MPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    struct others others;
    int active = 0;
    if (!has_ours(count, requests))
        return NEXT(Testany)(count, requests, index, flag, status);
    for (int i = 0; i < count; i++) {
        struct rondo_mpi_request *request = rondo_mpi_request_of(requests[i]);
        if (!rondo_mpi_request_ours(requests[i]) || request->state == RONDO_MPI_INACTIVE)
            continue;
        active = 1;
        if (rondo_mpi_request_is_over(request)) {
            *index = i;
            *flag = 1;
            return deliver_one(&requests[i], status);
        }
    }
    if (!take_others(&others, count, requests))
        return no_memory();
    int result = NEXT(Testany)(others.count, others.requests, index, flag, status);
    if (*flag && *index != MPI_UNDEFINED)
        *index = others.places[*index];
    else if (*flag && active)
        *flag = 0; /* MPI has none that is active */
    give_back(&others, requests);
    return result;
}

int MPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    if (!has_ours(count, requests))
        return NEXT(Waitany)(count, requests, index, status);
    for (;;) {
        int flag = 0, result = MPI_Testany(count, requests, index, &flag, status);
        if (flag || result != MPI_SUCCESS)
            return result;
        sched_yield();
    }
}

int MPI_Testsome(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    struct others others;
    struct rondo_mpi_comm *comm, *failed = NULL;
    int active = 0, out = 0, theirs = 0;
    if (!has_ours(count, requests))
        return NEXT(Testsome)(count, requests, outcount, indices, statuses);
    if (!take_others(&others, count, requests))
        return no_memory();
    int result = NEXT(Testsome)(others.count, others.requests, &theirs, others.indices, others.statuses);
    for (int i = 0; theirs != MPI_UNDEFINED && i < theirs; i++, out++) {
        indices[out] = others.places[others.indices[i]];
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[out] = others.statuses[i];
    }
    for (int i = 0; i < count; i++) {
        struct rondo_mpi_request *request = rondo_mpi_request_of(requests[i]);
        if (!rondo_mpi_request_ours(requests[i]) || request->state == RONDO_MPI_INACTIVE)
            continue;
        active = 1;
        if (!rondo_mpi_request_is_over(request))
            continue;
        indices[out] = i;
        if (deliver(&requests[i], status_at(statuses, out++), &comm) != MPI_SUCCESS)
            failed = comm;
    }
    *outcount = theirs == MPI_UNDEFINED && !active ? MPI_UNDEFINED : out;
    give_back(&others, requests);
    return failed != NULL ? rondo_mpi_fail(failed, MPI_ERR_IN_STATUS) : result;
}

int MPI_Waitsome(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    if (!has_ours(count, requests))
        return NEXT(Waitsome)(count, requests, outcount, indices, statuses);
    for (;;) {
        int result = MPI_Testsome(count, requests, outcount, indices, statuses);
        if (*outcount != 0 || result != MPI_SUCCESS)
            return result;
        sched_yield();
    }
}

/* ---- handles as numbers: Fortran's, and those of MPI-5's ABI ---- */

#if defined(MPI_ABI)
#define NUMBER int
#elif defined(OPEN_MPI)
#define NUMBER MPI_Fint
#endif

/* MPI's own numbers are small. MPICH's handles are numbers. */
#ifdef NUMBER
#define NUMBER_FIRST 0x40000000

static NUMBER to_number(MPI_Request request)
{
    return (NUMBER) (NUMBER_FIRST + rondo_mpi_request_number(request));
}

static int is_number_ours(NUMBER number)
{
    return rondo_mpi_request_memory != NULL && (uint32_t) number - NUMBER_FIRST < RONDO_MPI_REQUESTS;
}
#endif

#if defined(MPI_ABI)
int MPI_Request_toint(MPI_Request request)
{
    return rondo_mpi_request_ours(request) ? to_number(request) : NEXT(Request_toint)(request);
}

MPI_Request MPI_Request_fromint(int number)
{
    return is_number_ours(number) ? rondo_mpi_request_numbered((uint32_t) number - NUMBER_FIRST)
                                  : NEXT(Request_fromint)(number);
}
#elif defined(OPEN_MPI)
MPI_Fint MPI_Request_c2f(MPI_Request request)
{
    return rondo_mpi_request_ours(request) ? to_number(request) : NEXT(Request_c2f)(request);
}

MPI_Request MPI_Request_f2c(MPI_Fint number)
{
    return is_number_ours(number) ? rondo_mpi_request_numbered((uint32_t) number - NUMBER_FIRST) : NEXT(Request_f2c)(number);
}
#endif

#define PROFILING(name) extern __typeof__(MPI_##name) PMPI_##name __attribute__((alias("MPI_" #name)));
PROFILING(Wait)
PROFILING(Test)
PROFILING(Request_free)
PROFILING(Cancel)
PROFILING(Start)
PROFILING(Startall)
PROFILING(Waitall)
PROFILING(Testall)
PROFILING(Testany)
PROFILING(Waitany)
PROFILING(Testsome)
PROFILING(Waitsome)
#if defined(MPI_ABI)
PROFILING(Request_toint)
PROFILING(Request_fromint)
#elif defined(OPEN_MPI)
PROFILING(Request_c2f)
PROFILING(Request_f2c)
#endif
