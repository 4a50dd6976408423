/* MPI-4.1's functions that look at arrays of requests, found by name, because the MPI underneath may lack them. Prints "N ranks
 * finished", and a line with "wrong" for each wrong result. */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <stdio.h>

enum { COUNT = 4 };

static int rank, size;

static void expect(int right, const char *what)
{
    if (!right)
        printf("rank %d of %d: wrong %s\n", rank, size, what);
}

int main(int argc, char **argv)
{
    MPI_Request requests[COUNT];
    MPI_Status statuses[COUNT];
    int one = 1, sums[3] = {0}, flag = 0, index = -1, out = -1, indices[COUNT];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int (*any)(int, const MPI_Request *, int *, int *, MPI_Status *) = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_any");
    int (*all)(int, const MPI_Request *, int *, MPI_Status *) = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
    int (*some)(int, const MPI_Request *, int *, int *, MPI_Status *) = dlsym(RTLD_DEFAULT, "MPI_Request_get_status_some");
    int (*is_complete)(MPI_Request) = dlsym(RTLD_DEFAULT, "MPIX_Request_is_complete");
    if (any == NULL || all == NULL || some == NULL || is_complete == NULL) {
        printf("wrong: a function is missing\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    requests[0] = MPI_REQUEST_NULL;
    for (int i = 0; i < 3; i++)
        MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1 + i]);
    while (!flag)
        any(COUNT, requests, &index, &flag, MPI_STATUS_IGNORE);
    expect(index >= 1 && index < COUNT && sums[index - 1] == size, "index of any");
    for (flag = 0; !flag;)
        all(COUNT, requests, &flag, statuses);
    expect(is_complete(requests[1]), "completeness");
    for (int i = 0; i < 3; i++)
        expect(sums[i] == size && requests[1 + i] != MPI_REQUEST_NULL, "result of all");
    some(COUNT, requests, &out, indices, statuses);
    expect(out == 3 && indices[0] == 1 && indices[2] == 3, "indices of some");
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE); /* they were only looked at */
    for (int i = 0; i < COUNT; i++)
        expect(requests[i] == MPI_REQUEST_NULL, "request after its completion");
    /* Messages alone, which the MPI underneath may have no such function for. */
    int in = -1, left = (rank + size - 1) % size;
    MPI_Irecv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD, &requests[2]);
    for (flag = 0; !flag;)
        expect(all(COUNT, requests, &flag, statuses) == MPI_SUCCESS, "status of all");
    expect(in == left && statuses[1].MPI_SOURCE == left, "message of all");
    expect(any(COUNT, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag && index >= 1, "message of any");
    expect(some(COUNT, requests, &out, indices, statuses) == MPI_SUCCESS && out == 2 && indices[1] == 2, "messages of some");
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    expect(any(COUNT, requests, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag && index == MPI_UNDEFINED,
           "any of none");
    expect(some(COUNT, requests, &out, indices, statuses) == MPI_SUCCESS && out == MPI_UNDEFINED, "some of none");
    if (rank == 0)
        printf("%d ranks finished\n", size);
    MPI_Finalize();
    return 0;
}
