/* Open MPI's Fortran functions on requests, which read its request objects and so would not find the drop-in's. All other
 * Fortran functions reach the drop-in by the C functions that they call. A call without requests of the drop-in goes on to
 * Open MPI; any other is made a call in C. */
#include "compat/mpi/shim.h"

#ifdef OPEN_MPI
#include <stdlib.h>

#define FEW 64

static int is_ours(MPI_Fint request)
{
    return rondo_mpi_request_ours(MPI_Request_f2c(request));
}

static int has_ours(const MPI_Fint *count, const MPI_Fint *requests)
{
    for (MPI_Fint i = 0; i < *count; i++)
        if (is_ours(requests[i]))
            return 1;
    return 0;
}

/* Whether the address is one of the variables by which Fortran says that it wants no status. */
static int is_ignored(const MPI_Fint *status, const char *const *names)
{
    for (int i = 0; i < 4; i++)
        if (status == rondo_mpi_variable(names[i]))
            return 1;
    return 0;
}

static int ignores_status(const MPI_Fint *status)
{
    static const char *const names[] = {"mpi_fortran_status_ignore_", "mpi_fortran_status_ignore",
                                        "mpi_fortran_status_ignore__", "MPI_FORTRAN_STATUS_IGNORE"};
    return status == NULL || is_ignored(status, names);
}

static int ignores_statuses(const MPI_Fint *statuses)
{
    static const char *const names[] = {"mpi_fortran_statuses_ignore_", "mpi_fortran_statuses_ignore",
                                        "mpi_fortran_statuses_ignore__", "MPI_FORTRAN_STATUSES_IGNORE"};
    return statuses == NULL || is_ignored(statuses, names);
}

#define STATUS_NUMBERS (sizeof(MPI_Status) / sizeof(MPI_Fint)) /* of a status in Fortran */

static void give_status(const MPI_Status *status, MPI_Fint *to)
{
    if (!ignores_status(to))
        NEXT(Status_c2f)(status, to);
}

/* An array of Fortran's requests and statuses in C. */
struct array {
    MPI_Request *requests;
    MPI_Status *statuses;
    void *memory;
    MPI_Request few_requests[FEW];
    MPI_Status few_statuses[FEW];
};

static int to_c(struct array *array, MPI_Fint count, const MPI_Fint *requests)
{
    size_t room = (size_t) count;
    array->requests = array->few_requests;
    array->statuses = array->few_statuses;
    array->memory = NULL;
    if (count > FEW) {
        array->memory = malloc(room * (sizeof(MPI_Status) + sizeof(MPI_Request)));
        if (array->memory == NULL)
            return 0;
        array->statuses = array->memory;
        array->requests = (void *) (array->statuses + room);
    }
    for (MPI_Fint i = 0; i < count; i++)
        array->requests[i] = MPI_Request_f2c(requests[i]);
    return 1;
}

/* statuses of the first outcount. */
static void to_fortran(struct array *array, MPI_Fint count, MPI_Fint *requests, MPI_Fint outcount, MPI_Fint *statuses)
{
    for (MPI_Fint i = 0; i < count; i++)
        requests[i] = MPI_Request_c2f(array->requests[i]);
    if (!ignores_statuses(statuses))
        for (MPI_Fint i = 0; i < outcount; i++)
            NEXT(Status_c2f)(&array->statuses[i], statuses + (size_t) i * STATUS_NUMBERS);
    free(array->memory);
}

#pragma GCC visibility push(default)

/* FORTRAN(name, NAME, Name, (parameters), (arguments), condition, body): what Open MPI has as ompi_name_f, under all names that
 * compilers give it. condition: Open MPI's own function is to be called. body sets result. */
#define FORTRAN(name, NAME, Name, parameters, arguments, condition, body)                                                      \
    void ompi_##name##_f parameters;                                                                                           \
    void ompi_##name##_f parameters                                                                                            \
    {                                                                                                                          \
        static void(*found) parameters;                                                                                        \
        int result = MPI_SUCCESS;                                                                                              \
        if (condition) {                                                                                                       \
            if (__atomic_load_n(&found, __ATOMIC_RELAXED) == NULL)                                                             \
                __atomic_store_n(&found, (__typeof__(found)) rondo_mpi_fortran("ompi_" #name "_f"), __ATOMIC_RELAXED);         \
            found arguments;                                                                                                   \
            return;                                                                                                            \
        }                                                                                                                      \
        body;                                                                                                                  \
        if (ierr != NULL)                                                                                                      \
            *ierr = (MPI_Fint) result;                                                                                         \
    }                                                                                                                          \
    ALIAS(name, mpi_##name, parameters)                                                                                        \
    ALIAS(name, mpi_##name##_, parameters)                                                                                     \
    ALIAS(name, mpi_##name##__, parameters)                                                                                    \
    ALIAS(name, MPI_##NAME, parameters)                                                                                        \
    ALIAS(name, MPI_##Name##_f, parameters)                                                                                    \
    ALIAS(name, MPI_##Name##_f08, parameters)                                                                                  \
    ALIAS(name, pmpi_##name, parameters)                                                                                       \
    ALIAS(name, pmpi_##name##_, parameters)                                                                                    \
    ALIAS(name, pmpi_##name##__, parameters)                                                                                   \
    ALIAS(name, PMPI_##NAME, parameters)                                                                                       \
    ALIAS(name, PMPI_##Name##_f, parameters)                                                                                   \
    ALIAS(name, PMPI_##Name##_f08, parameters)
#define ALIAS(name, symbol, parameters) void symbol parameters __attribute__((alias("ompi_" #name "_f")));

FORTRAN(wait, WAIT, Wait, (MPI_Fint * request, MPI_Fint *status, MPI_Fint *ierr), (request, status, ierr), !is_ours(*request), {
    MPI_Status c_status;
    MPI_Request c_request = MPI_Request_f2c(*request);
    result = MPI_Wait(&c_request, &c_status);
    *request = MPI_Request_c2f(c_request);
    give_status(&c_status, status);
})

FORTRAN(test, TEST, Test, (MPI_Fint * request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierr), (request, flag, status, ierr),
        !is_ours(*request), {
            MPI_Status c_status;
            MPI_Request c_request = MPI_Request_f2c(*request);
            result = MPI_Test(&c_request, flag, &c_status);
            *request = MPI_Request_c2f(c_request);
            if (*flag)
                give_status(&c_status, status);
        })

FORTRAN(request_get_status, REQUEST_GET_STATUS, Request_get_status,
        (MPI_Fint * request, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierr), (request, flag, status, ierr),
        !is_ours(*request), {
            MPI_Status c_status;
            result = MPI_Request_get_status(MPI_Request_f2c(*request), flag, &c_status);
            if (*flag)
                give_status(&c_status, status);
        })

FORTRAN(request_free, REQUEST_FREE, Request_free, (MPI_Fint * request, MPI_Fint *ierr), (request, ierr), !is_ours(*request), {
    MPI_Request c_request = MPI_Request_f2c(*request);
    result = MPI_Request_free(&c_request);
    *request = MPI_Request_c2f(c_request);
})

FORTRAN(cancel, CANCEL, Cancel, (MPI_Fint * request, MPI_Fint *ierr), (request, ierr), !is_ours(*request), {
    MPI_Request c_request = MPI_Request_f2c(*request);
    result = MPI_Cancel(&c_request);
})

FORTRAN(start, START, Start, (MPI_Fint * request, MPI_Fint *ierr), (request, ierr), !is_ours(*request), {
    MPI_Request c_request = MPI_Request_f2c(*request);
    result = MPI_Start(&c_request);
})

FORTRAN(startall, STARTALL, Startall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *ierr), (count, requests, ierr),
        !has_ours(count, requests), {
            struct array array;
            result = MPI_ERR_NO_MEM;
            if (to_c(&array, *count, requests)) {
                result = MPI_Startall(*count, array.requests);
                to_fortran(&array, *count, requests, 0, NULL);
            }
        })

FORTRAN(waitall, WAITALL, Waitall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *statuses, MPI_Fint *ierr),
        (count, requests, statuses, ierr), !has_ours(count, requests), {
            struct array array;
            result = MPI_ERR_NO_MEM;
            if (to_c(&array, *count, requests)) {
                result = MPI_Waitall(*count, array.requests, array.statuses);
                to_fortran(&array, *count, requests, *count, statuses);
            }
        })

FORTRAN(testall, TESTALL, Testall, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *flag, MPI_Fint *statuses, MPI_Fint *ierr),
        (count, requests, flag, statuses, ierr), !has_ours(count, requests), {
            struct array array;
            result = MPI_ERR_NO_MEM;
            *flag = 0;
            if (to_c(&array, *count, requests)) {
                result = MPI_Testall(*count, array.requests, flag, array.statuses);
                to_fortran(&array, *count, requests, *flag ? *count : 0, statuses);
            }
        })

/* Fortran counts places from 1. */
FORTRAN(waitany, WAITANY, Waitany, (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *status, MPI_Fint *ierr),
        (count, requests, index, status, ierr), !has_ours(count, requests), {
            struct array array;
            MPI_Status c_status;
            result = MPI_ERR_NO_MEM;
            if (to_c(&array, *count, requests)) {
                result = MPI_Waitany(*count, array.requests, index, &c_status);
                to_fortran(&array, *count, requests, 0, NULL);
                *index += *index != MPI_UNDEFINED;
                give_status(&c_status, status);
            }
        })

FORTRAN(testany, TESTANY, Testany,
        (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *index, MPI_Fint *flag, MPI_Fint *status, MPI_Fint *ierr),
        (count, requests, index, flag, status, ierr), !has_ours(count, requests), {
            struct array array;
            MPI_Status c_status;
            result = MPI_ERR_NO_MEM;
            *flag = 0;
            if (to_c(&array, *count, requests)) {
                result = MPI_Testany(*count, array.requests, index, flag, &c_status);
                to_fortran(&array, *count, requests, 0, NULL);
                *index += *flag && *index != MPI_UNDEFINED;
                if (*flag)
                    give_status(&c_status, status);
            }
        })

/* MPI_Waitsome or MPI_Testsome. */
static int some(int (*function)(int, MPI_Request *, int *, int *, MPI_Status *), const MPI_Fint *count, MPI_Fint *requests,
                MPI_Fint *outcount, MPI_Fint *indices, MPI_Fint *statuses)
{
    struct array array;
    if (!to_c(&array, *count, requests))
        return MPI_ERR_NO_MEM;
    int result = function(*count, array.requests, outcount, indices, array.statuses);
    const MPI_Fint out = *outcount == MPI_UNDEFINED ? 0 : *outcount;
    for (MPI_Fint i = 0; i < out; i++)
        indices[i]++;
    to_fortran(&array, *count, requests, out, statuses);
    return result;
}

FORTRAN(waitsome, WAITSOME, Waitsome,
        (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *outcount, MPI_Fint *indices, MPI_Fint *statuses, MPI_Fint *ierr),
        (count, requests, outcount, indices, statuses, ierr), !has_ours(count, requests),
        { result = some(MPI_Waitsome, count, requests, outcount, indices, statuses); })

FORTRAN(testsome, TESTSOME, Testsome,
        (MPI_Fint * count, MPI_Fint *requests, MPI_Fint *outcount, MPI_Fint *indices, MPI_Fint *statuses, MPI_Fint *ierr),
        (count, requests, outcount, indices, statuses, ierr), !has_ours(count, requests),
        { result = some(MPI_Testsome, count, requests, outcount, indices, statuses); })
#endif
