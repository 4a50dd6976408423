/* Runtimes, shared by the communicators that were split off one another, and the threads that end them. Ending a runtime is
 * collective, but NCCL's programs may end the ranks of one thread one after the other: so no call waits for it, unless this
 * process has no other rank that might have to follow, and then not for long. */
#include "compat/nccl/shim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SECONDS    10 /* that a process's end waits for what it has destroyed */
#define DESTROY_SECONDS 2  /* that destroying does */
#define CONNECT_SECONDS 600
#define BLOCKS_BESIDE   16  /* of a clique's GPUs where the process has others: their kernels may have to wait side by side */
#define SM_MOST         240 /* that rondo_config_t.sm may say */
#define STREAM_BLOCKS   32 /* of an operation among more than two: programs written for NCCL compute beside their collectives */

/* The ranks of one clique in this process. */
struct clique {
    struct clique *next;
    rondo_unique_id_t id; /* the first one's, where there are several; never changes */
    int joined;           /* ranks that this process has, or had */
    uint64_t devices;     /* their GPUs; the host device, and those from 63 on, are bit 63 */
    int ranks;            /* whose last communicator has not been given up */
    int endings;          /* communicators that are being ended */
    int waiting;          /* threads that wait for that */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t fewer;
    struct clique *cliques;
    int endings, watched; /* of all cliques, but those without a runtime */
    pid_t id;             /* once it is watched: a forked process has none of its parent's threads to wait for */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .fewer = PTHREAD_COND_INITIALIZER};

static struct clique *join_clique(const rondo_unique_id_t *id, int device)
{
    pthread_mutex_lock(&process.lock);
    struct clique *clique = process.cliques;
    while (clique != NULL && memcmp(&clique->id, id, sizeof(*id)) != 0)
        clique = clique->next;
    if (clique == NULL && (clique = calloc(1, sizeof(*clique))) != NULL) {
        clique->id = *id;
        clique->next = process.cliques;
        process.cliques = clique;
    }
    if (clique != NULL) {
        clique->ranks++;
        clique->joined++;
        clique->devices |= (uint64_t) 1 << (device >= 0 && device < 63 ? device : 63);
    }
    pthread_mutex_unlock(&process.lock);
    return clique;
}

/* Under the lock. */
static void drop_if_empty(struct clique *clique)
{
    if (clique->ranks > 0 || clique->endings > 0 || clique->waiting > 0)
        return;
    struct clique **link = &process.cliques;
    while (*link != clique)
        link = &(*link)->next;
    *link = clique->next;
    explicit_bzero(clique, sizeof(*clique)); /* the id has the clique's secret */
    free(clique);
}

/* A zero policy is for what copy engines can do; the most is for the rest then. */
static void use_budget(rondo_config_t *config, struct rondo_nccl_budget budget)
{
    const int most = budget.most > SM_MOST ? SM_MOST : budget.most;
    config->sm = budget.zero ? 0 : most;
    if (budget.zero && most > 0)
        config->stream_blocks = most;
}

/* Once all ranks have met, all those of this process have joined: all ranks find the same. */
static int reach_each_other(const struct clique *clique, int size, int device)
{
    pthread_mutex_lock(&process.lock);
    const int joined = clique->joined;
    const uint64_t devices = clique->devices;
    pthread_mutex_unlock(&process.lock);
    if (joined != size)
        return 0;
    if (device < 0 || devices >> 63 != 0)
        return device < 0;
    for (int from = 0; from < 63; from++)
        for (int to = 0; to < 63; to++)
            if ((devices >> from & 1) != 0 && (devices >> to & 1) != 0 && !rondo_nccl_can_access(from, to))
                return 0;
    return 1;
}

/* Whether the process has cliques beside this one. */
static int has_others(const struct clique *clique)
{
    pthread_mutex_lock(&process.lock);
    int others = process.cliques != clique || clique->next != NULL;
    pthread_mutex_unlock(&process.lock);
    return others;
}

ncclResult_t rondo_nccl_world_create(const rondo_unique_id_t *ids, int id_count, int rank, int size, int device,
                                     struct rondo_nccl_budget budget, struct rondo_nccl_world **result)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    struct rondo_nccl_world *world = calloc(1, sizeof(*world));
    if (world == NULL || (world->clique = join_clique(&ids[0], device)) == NULL) {
        free(world);
        return rondo_nccl_fail(ncclSystemError, "ncclCommInitRank: no memory");
    }
    config.rank = rank;
    config.size = size;
    config.unique_id = ids;
    config.unique_ids = id_count;
    config.device = device >= 0 ? RONDO_DEVICE_CUDA : RONDO_DEVICE_HOST;
    config.device_index = device;
    if (!rondo_nccl_is_set("RONDO_CONNECT_TIMEOUT")) /* NCCL's programs expect to be waited for */
        config.connect_timeout = CONNECT_SECONDS;
    if (device >= 0 && !rondo_nccl_is_set("RONDO_BLOCKS") && has_others(world->clique))
        config.blocks = BLOCKS_BESIDE;
    if (device >= 0 && !rondo_nccl_is_set("RONDO_STREAM_BLOCKS") && size > 2)
        config.stream_blocks = STREAM_BLOCKS;
    if (device >= 0 && !rondo_nccl_is_set("RONDO_SM"))
        use_budget(&config, budget);
    rondo_result_t status = rondo_init(&world->runtime, &config);
    if (status != RONDO_SUCCESS) {
        ncclResult_t code = rondo_nccl_result(status, "ncclCommInitRank");
        pthread_mutex_lock(&process.lock);
        world->clique->ranks--;
        drop_if_empty(world->clique);
        pthread_mutex_unlock(&process.lock);
        free(world);
        return code;
    }
    world->users = world->communicators = 1;
    world->lsa = reach_each_other(world->clique, size, device);
    *result = world;
    return ncclSuccess;
}

void rondo_nccl_world_hold(struct rondo_nccl_world *world)
{
    pthread_mutex_lock(&process.lock);
    world->users++;
    world->communicators++;
    pthread_mutex_unlock(&process.lock);
}

int rondo_nccl_world_compare(const struct rondo_nccl_world *a, const struct rondo_nccl_world *b)
{
    return memcmp(&a->clique->id, &b->clique->id, sizeof(a->clique->id));
}

/* ---- ending ---- */

static void backoff(void)
{
    static const struct timespec pause = {0, 200000};
    nanosleep(&pause, NULL);
}

static void end_runtime(struct rondo_nccl_world *world)
{
    pthread_mutex_lock(&process.lock);
    int last = --world->users == 0;
    pthread_mutex_unlock(&process.lock);
    if (!last)
        return;
    while (rondo_finalize(world->runtime) == RONDO_ERR_STATE)
        backoff();
    free(world);
}

/* Frees a communicator that has a runtime. */
static void end_made(struct ncclComm *comm)
{
    rondo_result_t failure = RONDO_SUCCESS;
    struct rondo_nccl_world *world = comm->world;
    struct clique *clique = world->clique;
    int idle = 0;
    while (rondo_comm_status(comm->comm, &failure, &idle) == RONDO_SUCCESS && !idle && failure == RONDO_SUCCESS)
        backoff();
    /* What a failed one left on its streams ends by itself, and soon. */
    for (int pauses = 0; pauses < 5000 && !idle; pauses++) {
        backoff();
        rondo_comm_status(comm->comm, NULL, &idle);
    }
    rondo_nccl_forget_windows(comm);
    rondo_nccl_share_end(comm);
    while (comm->owned && rondo_comm_free(&comm->comm) == RONDO_ERR_STATE)
        backoff();
    rondo_nccl_comm_delete(comm);
    end_runtime(world);
    pthread_mutex_lock(&process.lock);
    process.endings--;
    clique->endings--;
    drop_if_empty(clique);
    pthread_cond_broadcast(&process.fewer);
    pthread_mutex_unlock(&process.lock);
}

static void deadline_in(struct timespec *deadline, int seconds)
{
    clock_gettime(CLOCK_REALTIME, deadline);
    deadline->tv_sec += seconds;
}

/* Ranks that have destroyed theirs say goodbye to the others before their process is gone, or those would take it for dead. */
static void wait_at_exit(void)
{
    struct timespec deadline;
    if (getpid() != process.id)
        return;
    deadline_in(&deadline, EXIT_SECONDS);
    pthread_mutex_lock(&process.lock);
    while (process.endings > 0 && pthread_cond_timedwait(&process.fewer, &process.lock, &deadline) == 0)
        ;
    pthread_mutex_unlock(&process.lock);
}

/* The communicator is given up, and that is to be waited for. */
static struct clique *count_ending(struct ncclComm *comm, int waits)
{
    struct rondo_nccl_world *world = comm->world;
    pthread_mutex_lock(&process.lock);
    process.endings++;
    world->clique->endings++;
    world->clique->waiting += waits; /* and so the clique stays */
    if (--world->communicators == 0)
        world->clique->ranks--;
    comm->counted = 1;
    if (!process.watched) {
        process.id = getpid();
        process.watched = atexit(wait_at_exit) == 0;
    }
    pthread_mutex_unlock(&process.lock);
    return world->clique;
}

static void *end(void *argument)
{
    struct ncclComm *comm = argument;
    while (rondo_nccl_comm_users(comm) > 0)
        backoff();
    if (comm->comm == NULL) {
        rondo_nccl_comm_delete(comm);
        return NULL;
    }
    if (!comm->counted) /* it was given up while it was being made */
        count_ending(comm, 0);
    end_made(comm);
    return NULL;
}

/* By who is counted as waiting. */
static void wait_briefly(struct clique *clique)
{
    struct timespec deadline;
    deadline_in(&deadline, DESTROY_SECONDS);
    pthread_mutex_lock(&process.lock);
    while (clique->ranks == 0 && clique->endings > 0 && pthread_cond_timedwait(&process.fewer, &process.lock, &deadline) == 0)
        ;
    clique->waiting--;
    drop_if_empty(clique);
    pthread_mutex_unlock(&process.lock);
}

void rondo_nccl_dispose(struct ncclComm *comm)
{
    pthread_t thread;
    struct clique *clique = NULL;
    if (__atomic_load_n(&comm->comm, __ATOMIC_ACQUIRE) != NULL)
        clique = count_ending(comm, 1);
    if (pthread_create(&thread, NULL, end, comm) != 0) {
        rondo_nccl_log(RONDO_NCCL_LOG_WARN, "there is no thread to end a communicator: it is ended by the caller");
        end(comm);
    } else {
        pthread_detach(thread);
    }
    if (clique != NULL)
        wait_briefly(clique);
}
