/* Runtimes, shared by the communicators that were split off one another, and the threads that end them. */
#include "shim.h"

#include <stdlib.h>
#include <time.h>

#define EXIT_SECONDS 10 /* that a process's end waits for what it has destroyed */

/* Communicators being disposed of. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t fewer;
    int count, watched;
} endings = {.lock = PTHREAD_MUTEX_INITIALIZER, .fewer = PTHREAD_COND_INITIALIZER};

ncclResult_t rondo_nccl_world_create(const rondo_unique_id_t *id, int rank, int size, int device,
                                     struct rondo_nccl_world **result)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    struct rondo_nccl_world *world = calloc(1, sizeof(*world));
    if (world == NULL)
        return rondo_nccl_fail(ncclSystemError, "ncclCommInitRank: no memory");
    config.rank = rank;
    config.size = size;
    config.unique_id = id;
    config.device = device >= 0 ? RONDO_DEVICE_CUDA : RONDO_DEVICE_HOST;
    config.device_index = device;
    rondo_result_t status = rondo_init(&world->runtime, &config);
    if (status != RONDO_SUCCESS) {
        free(world);
        return rondo_nccl_result(status, "ncclCommInitRank");
    }
    world->references = 1;
    *result = world;
    return ncclSuccess;
}

void rondo_nccl_world_hold(struct rondo_nccl_world *world)
{
    __atomic_fetch_add(&world->references, 1, __ATOMIC_RELAXED);
}

static void nap(void)
{
    static const struct timespec pause = {0, 200000};
    nanosleep(&pause, NULL);
}

/* Finalizing is collective, and every rank does it on such a thread. */
static void let_world_go(struct rondo_nccl_world *world)
{
    /* Acquire-release: the last one's finalizing comes after all that the others did. */
    if (__atomic_sub_fetch(&world->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    while (rondo_finalize(world->runtime) == RONDO_ERR_STATE)
        nap();
    free(world);
}

static void count_endings(int more)
{
    pthread_mutex_lock(&endings.lock);
    endings.count += more;
    pthread_cond_broadcast(&endings.fewer);
    pthread_mutex_unlock(&endings.lock);
}

/* One that is still being made, and was given up, is not waited for at exit: its other ranks may never come. */
static void *end(void *argument)
{
    struct ncclComm *comm = argument;
    int made = __atomic_load_n(&comm->comm, __ATOMIC_ACQUIRE) != NULL;
    if (!made)
        count_endings(-1);
    while (rondo_nccl_comm_users(comm) > 0)
        nap();
    if (!made)
        count_endings(1);
    if (comm->comm != NULL) {
        rondo_result_t failure = RONDO_SUCCESS;
        int idle = 0;
        /* What a failed one left on its streams ends by itself, and soon. */
        while (rondo_comm_status(comm->comm, &failure, &idle) == RONDO_SUCCESS && !idle && failure == RONDO_SUCCESS)
            nap();
        for (int naps = 0; naps < 5000 && !idle; naps++) {
            nap();
            rondo_comm_status(comm->comm, NULL, &idle);
        }
        rondo_nccl_forget_windows(comm);
        while (comm->owned && rondo_comm_free(&comm->comm) == RONDO_ERR_STATE)
            nap();
    }
    struct rondo_nccl_world *world = comm->world;
    rondo_nccl_comm_delete(comm);
    if (world != NULL)
        let_world_go(world);
    count_endings(-1);
    return NULL;
}

/* Ranks that have destroyed theirs say goodbye to the others before their process is gone, or those would take it for dead. */
static void wait_at_exit(void)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += EXIT_SECONDS;
    pthread_mutex_lock(&endings.lock);
    while (endings.count > 0 && pthread_cond_timedwait(&endings.fewer, &endings.lock, &deadline) == 0)
        ;
    pthread_mutex_unlock(&endings.lock);
}

void rondo_nccl_dispose(struct ncclComm *comm)
{
    pthread_t thread;
    pthread_mutex_lock(&endings.lock);
    endings.count++;
    if (!endings.watched)
        endings.watched = atexit(wait_at_exit) == 0;
    pthread_mutex_unlock(&endings.lock);
    if (pthread_create(&thread, NULL, end, comm) != 0) {
        rondo_nccl_log(RONDO_NCCL_LOG_WARN, "there is no thread to end a communicator: it is left as it is");
        count_endings(-1);
        return;
    }
    pthread_detach(thread);
}
