/* The beginning and the end: MPI's initialization, then Rondo's among the ranks of MPI_COMM_WORLD, and the reverse. Either all
 * ranks have Rondo, or all calls of the job are left to MPI. */
#include "compat/mpi/shim.h"

#include <stdlib.h>
#include <string.h>

struct rondo_mpi_world rondo_mpi_world;
_Thread_local int rondo_mpi_may_call = 1;

/* Whether all ranks say yes. */
static int all_agree(int mine)
{
    int every = 0;
    NEXT(Allreduce)(&mine, &every, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return every;
}

void rondo_mpi_progress(void *argument)
{
    int there;
    (void) argument;
    if (rondo_mpi_may_call)
        NEXT(Iprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, rondo_mpi_world.silent, &there, MPI_STATUS_IGNORE);
}

/* Rank 0's id, on all ranks. Returns 0, on all of them, if it could not be made. */
static int share_id(rondo_unique_id_t *id)
{
    int made = 1;
    if (rondo_mpi_world.rank == 0)
        made = rondo_get_unique_id(id) == RONDO_SUCCESS;
    NEXT(Bcast)(&made, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (made)
        NEXT(Bcast)(id, (int) sizeof(*id), MPI_BYTE, 0, MPI_COMM_WORLD);
    return made;
}

/* Makes the runtime, with all ranks. */
static int make_runtime(void)
{
    struct rondo_mpi_world *world = &rondo_mpi_world;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_unique_id_t id;
    if (!share_id(&id))
        return 0;
    config.rank = world->rank;
    config.size = world->size;
    config.unique_id = &id;
    config.device = RONDO_DEVICE_HOST;
    int mine = rondo_init(&world->runtime, &config) == RONDO_SUCCESS &&
               rondo_comm_world(world->runtime, &world->comm) == RONDO_SUCCESS &&
               rondo_wait_callback(world->runtime, rondo_mpi_progress, NULL) == RONDO_SUCCESS;
    if (all_agree(mine))
        return 1;
    if (world->runtime != NULL)
        rondo_finalize(world->runtime);
    world->runtime = NULL;
    return 0;
}

/* MPI's programs have no timeout: a rank that is stopped would be waited for without end. Before the program's first line,
 * because it changes the environment. */
static __attribute__((constructor)) void expect_signs_of_life(void)
{
    setenv("RONDO_FREEZE", "3", 0);
}

static void start(void)
{
    struct rondo_mpi_world *world = &rondo_mpi_world;
    int level = MPI_THREAD_SINGLE;
    NEXT(Comm_rank)(MPI_COMM_WORLD, &world->rank);
    NEXT(Comm_size)(MPI_COMM_WORLD, &world->size);
    if (world->size == 1)
        return;
    NEXT(Query_thread)(&level);
    NEXT(Allreduce)(&level, &world->threads, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all_agree(rondo_mpi_requests_prepare())) {
        if (world->rank == 0)
            rondo_mpi_warn("all collectives stay with MPI: no address space for requests");
        return;
    }
    NEXT(Comm_dup)(MPI_COMM_WORLD, &world->silent);
    if (!make_runtime()) {
        if (world->rank == 0)
            rondo_mpi_warn("all collectives stay with MPI: %s", rondo_last_error());
        NEXT(Comm_free)(&world->silent);
        return;
    }
    NEXT(Comm_group)(MPI_COMM_WORLD, &world->group);
    rondo_mpi_types_prepare();
    rondo_mpi_operators_prepare();
    __atomic_store_n(&world->running, 1, __ATOMIC_RELEASE);
    rondo_mpi_comms_prepare();
}

int MPI_Init(int *argc, char ***argv)
{
    int result = NEXT(Init)(argc, argv);
    if (result == MPI_SUCCESS)
        start();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = NEXT(Init_thread)(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        start();
    return result;
}

int MPI_Finalize(void)
{
    struct rondo_mpi_world *world = &rondo_mpi_world;
    rondo_mpi_report();
    if (world->running) {
        NEXT(Barrier)(MPI_COMM_WORLD); /* from here on no rank needs MPI's progress in another */
        __atomic_store_n(&world->running, 0, __ATOMIC_RELEASE);
        rondo_mpi_comms_end();
        NEXT(Group_free)(&world->group);
        if (rondo_finalize(world->runtime) != RONDO_SUCCESS)
            rondo_mpi_warn("MPI_Finalize: %s", rondo_last_error());
        NEXT(Comm_free)(&world->silent);
    }
    return NEXT(Finalize)();
}

int PMPI_Init(int *argc, char ***argv) __attribute__((alias("MPI_Init")));
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided) __attribute__((alias("MPI_Init_thread")));
int PMPI_Finalize(void) __attribute__((alias("MPI_Finalize")));
