/* The last rank is stopped between two collectives. frozen return: the others have the error returned, say after how many
 * seconds, and end the stopped one. frozen fatal: MPI's own error handler ends the job. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MAX = 64, CALLS = 100 };

int main(int argc, char **argv)
{
    int rank, size, ids[RANKS_MAX], result = MPI_SUCCESS, mine = (int) getpid(), sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && strcmp(argv[1], "return") == 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Allgather(&mine, 1, MPI_INT, ids, 1, MPI_INT, MPI_COMM_WORLD);
    double before = MPI_Wtime();
    for (int i = 0; i < CALLS && result == MPI_SUCCESS; i++) {
        if (i == CALLS / 2 && rank == size - 1)
            raise(SIGSTOP);
        before = MPI_Wtime();
        result = MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (result == MPI_SUCCESS) {
        printf("rank %d: no error\n", rank);
        MPI_Finalize();
        return 0;
    }
    int class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(result, &class);
    MPI_Error_string(result, text, &length);
    printf("rank %d: error of class %d after %.1f s: %s\n", rank, class, MPI_Wtime() - before, text);
    fflush(stdout);
    sleep(1); /* until the others have printed theirs: the launcher ends all of them together */
    kill((pid_t) ids[size - 1], SIGKILL);
    sleep(5);
    return 1;
}
