/* The drop-in's requests: places in one reserved range of addresses, so that a handle is recognized without being followed. */
#include "compat/mpi/shim.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct rondo_mpi_request) <= RONDO_MPI_REQUEST_SIZE, "a request fits in its place");

char *rondo_mpi_request_memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rondo_mpi_request *unused;
static uint32_t used; /* places that have been used once */

int rondo_mpi_requests_prepare(void)
{
    void *memory = mmap(NULL, (size_t) RONDO_MPI_REQUESTS * RONDO_MPI_REQUEST_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    rondo_mpi_request_memory = memory != MAP_FAILED ? memory : NULL;
    return rondo_mpi_request_memory != NULL;
}

struct rondo_mpi_request *rondo_mpi_request_new(void)
{
    struct rondo_mpi_request *request = NULL;
    pthread_mutex_lock(&lock);
    if (unused != NULL) {
        request = unused;
        unused = request->next;
    } else if (used < RONDO_MPI_REQUESTS) {
        request = (void *) (rondo_mpi_request_memory + (size_t) used++ * RONDO_MPI_REQUEST_SIZE);
    }
    pthread_mutex_unlock(&lock);
    if (request != NULL) {
        request->error = MPI_SUCCESS;
        request->request = NULL;
    }
    return request;
}

void rondo_mpi_request_delete(struct rondo_mpi_request *request)
{
    pthread_mutex_lock(&lock);
    request->next = unused;
    unused = request;
    pthread_mutex_unlock(&lock);
}
