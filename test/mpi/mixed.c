/* Collectives, messages and requests of both kinds in one program, each result checked. Prints "N ranks finished", and a line
 * with "wrong" for each wrong result. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define LARGE (4 << 20) /* bytes of a message that does not leave before its receive */

static int rank, size;

static void expect(int right, const char *what)
{
    if (!right)
        printf("rank %d of %d: wrong %s\n", rank, size, what);
}

static void sum_pairs(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const int *a = in;
    int *b = inout;
    (void) type;
    for (int i = 0; i < 2 * *count; i++)
        b[i] += a[i];
}

/* Ranks with different datatypes of one signature meet. */
static void test_signatures(MPI_Comm comm)
{
    int plain[4], strided[8], *all = malloc((size_t) size * sizeof(plain));
    MPI_Datatype vector;
    MPI_Type_vector(2, 2, 4, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    for (int i = 0; i < 4; i++)
        plain[i] = strided[i / 2 * 4 + i % 2] = 10 * rank + i;
    if (rank % 2 == 1)
        MPI_Allgather(plain, 4, MPI_INT, all, 4, MPI_INT, comm);
    else
        MPI_Allgather(strided, 1, vector, all, 4, MPI_INT, comm);
    for (int i = 0; i < 4 * size; i++)
        expect(all[i] == 10 * (i / 4) + i % 4, "all-gather of two datatypes");
    MPI_Request request;
    for (int i = 0; i < 8; i++)
        strided[i] = -1;
    for (int i = 0; i < 4; i++)
        plain[i] = 7 + i;
    if (rank == 0)
        MPI_Ibcast(plain, 4, MPI_INT, 0, comm, &request);
    else
        MPI_Ibcast(strided, 1, vector, 0, comm, &request);
    MPI_Type_free(&vector); /* the operation goes on to use it */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; rank != 0 && i < 8; i++)
        expect(strided[i] == (i % 4 < 2 ? 7 + i / 4 * 2 + i % 4 : -1), "broadcast into a vector");
    free(all);
}

static void test_requests(MPI_Comm comm)
{
    double one = rank + 1, sum = 0;
    int in = -1, index, flag, left = (rank + size - 1) % size;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    for (int way = 0; way < 4; way++) {
        MPI_Iallreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm, &requests[0]);
        MPI_Irecv(&in, 1, MPI_INT, left, way, comm, &requests[1]);
        MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, way, comm, &requests[2]);
        if (way == 0)
            MPI_Waitall(3, requests, statuses);
        for (int i = 0; way == 1 && i < 3; i++)
            MPI_Waitany(3, requests, &index, statuses);
        for (flag = 0; way == 2 && !flag;)
            MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
        for (int i = 0, some[3], out; way == 3 && i < 3; i += out)
            MPI_Waitsome(3, requests, &out, some, statuses);
        expect(sum == size * (size + 1) / 2.0 && in == left, "mixed requests");
        for (int i = 0; i < 3; i++)
            expect(requests[i] == MPI_REQUEST_NULL, "request after its completion");
        if (way == 0)
            expect(statuses[1].MPI_SOURCE == left, "status of a message");
    }
}

/* The message waits for MPI's progress on rank 0, which waits in a collective. */
static void test_progress(MPI_Comm comm)
{
    char *message = calloc(1, LARGE);
    MPI_Request request;
    if (rank == 0)
        MPI_Isend(message, LARGE, MPI_CHAR, 1, 1, comm, &request);
    if (rank == 1)
        MPI_Recv(message, LARGE, MPI_CHAR, 0, 1, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    if (rank == 0)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(message);
}

static void test_operator(MPI_Comm comm)
{
    int pair[2] = {rank, 1}, result[2] = {0, 0};
    MPI_Datatype type;
    MPI_Op op;
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(sum_pairs, 1, &op);
    MPI_Reduce(pair, result, 1, type, op, size - 1, comm);
    expect(rank != size - 1 || (result[0] == size * (size - 1) / 2 && result[1] == size), "operator of the program");
    MPI_Op_free(&op);
    MPI_Type_free(&type);
}

/* Nonblocking collectives on a copy that was made without waiting, on which no blocking one has been made; one copy is never
 * used. */
static void test_copies(MPI_Comm comm)
{
    MPI_Comm copies[3];
    MPI_Request requests[3];
    int least[2] = {-1, -1}, largest = size - 1 - rank, most = -1;
    for (int i = 0; i < 3; i++)
        MPI_Comm_idup(comm, &copies[i], &requests[i]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) /* in an order of its own on each rank */
        MPI_Iallreduce(&rank, &least[(i + rank) % 2], 1, MPI_INT, MPI_MIN, copies[(i + rank) % 2], &requests[i]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Allreduce(&largest, &most, 1, MPI_INT, MPI_MAX, copies[0]);
    expect(least[0] == 0 && least[1] == 0 && most == size - 1, "collectives on copies");
    for (int i = 0; i < 3; i++)
        MPI_Comm_free(&copies[i]);
}

/* MPI forbids blocks that are received to overlap, but carries them out, and programs have it. */
static void test_overlapping_blocks(MPI_Comm comm)
{
    int *counts = malloc((size_t) size * sizeof(int)), *places = malloc((size_t) size * sizeof(int));
    int *out = malloc(2 * (size_t) size * sizeof(int)), *in = malloc((size_t) (size + 1) * sizeof(int));
    for (int i = 0; i < size; i++) {
        counts[i] = 2;
        places[i] = size - 1 - i;
        out[2 * i] = out[2 * i + 1] = 7;
    }
    MPI_Allgatherv(out, 2, MPI_INT, in, counts, places, MPI_INT, comm);
    for (int i = 0; i <= size; i++)
        expect(in[i] == 7, "blocks that overlap");
    free(in);
    free(out);
    free(places);
    free(counts);
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    int least = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_signatures(MPI_COMM_WORLD);
    test_requests(MPI_COMM_WORLD);
    test_progress(MPI_COMM_WORLD);
    test_operator(MPI_COMM_WORLD);
    test_copies(MPI_COMM_WORLD);
    test_overlapping_blocks(MPI_COMM_WORLD);
    for (int i = 0; i < 20; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
        MPI_Allreduce(&rank, &least, 1, MPI_INT, MPI_MIN, half);
        expect(least == rank % 2, "reduction on a part of the ranks");
        MPI_Comm_free(&half);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks finished\n", size);
    MPI_Finalize();
    return 0;
}
