/* Communicators: Rondo's communicator of each of MPI's, in an attribute that ends with it, with a cache by handle in front.
 * All ranks of a communicator have Rondo's, or none: they make it together and agree on whether that worked. */
#include "compat/mpi/shim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rondo_mpi_comm *rondo_mpi_comm_cache[RONDO_MPI_CACHE];

static int keyval;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct rondo_mpi_comm *unused;
static struct rondo_mpi_comm **all;
static int all_count, all_room, tags;

static int copy_nothing(MPI_Comm handle, int key, void *extra, void *from, void *to, int *copied)
{
    (void) handle, (void) key, (void) extra, (void) from, (void) to;
    *copied = 0;
    return MPI_SUCCESS;
}

static int end_comm(MPI_Comm handle, int key, void *value, void *extra)
{
    struct rondo_mpi_comm *comm = value;
    (void) handle, (void) key, (void) extra;
    for (int i = 0; i < RONDO_MPI_CACHE; i++) {
        struct rondo_mpi_comm *expected = comm;
        __atomic_compare_exchange_n(&rondo_mpi_comm_cache[i], &expected, NULL, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&comm->handle, (MPI_Comm) 0, __ATOMIC_RELAXED);
    rondo_mpi_comm_let_go(comm);
    return MPI_SUCCESS;
}

static struct rondo_mpi_comm *comm_new(void)
{
    struct rondo_mpi_comm *comm = NULL;
    pthread_mutex_lock(&lock);
    if (unused != NULL) {
        comm = unused;
        unused = comm->next;
    } else {
        if (all_count == all_room) {
            int room = all_room > 0 ? 2 * all_room : 64;
            struct rondo_mpi_comm **grown = realloc(all, (size_t) room * sizeof(*all));
            if (grown != NULL) {
                all = grown;
                all_room = room;
            }
        }
        if (all_count < all_room && (comm = calloc(1, sizeof(*comm))) != NULL)
            all[all_count++] = comm;
    }
    pthread_mutex_unlock(&lock);
    return comm;
}

void rondo_mpi_comm_hold(struct rondo_mpi_comm *comm)
{
    __atomic_fetch_add(&comm->references, 1, __ATOMIC_RELAXED);
}

void rondo_mpi_comm_let_go(struct rondo_mpi_comm *comm)
{
    if (__atomic_sub_fetch(&comm->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    if (comm->rondo != NULL && comm->rondo != rondo_mpi_world.comm)
        rondo_comm_free(&comm->rondo);
    comm->rondo = NULL;
    pthread_mutex_lock(&lock);
    comm->next = unused;
    unused = comm;
    pthread_mutex_unlock(&lock);
}

/* ---- making ---- */

/* A number that no other thread of the communicator's first rank uses at the same time, the same on all ranks. All ranks are
 * in this call when it returns, so that none that still has to come waits for MPI's progress in another. */
static int agree_on_tag(MPI_Comm handle, int rank)
{
    int tag = 0, mine = 0;
    if (rank == 0) {
        pthread_mutex_lock(&lock);
        mine = tags = tags % 0x3fffffff + 1;
        pthread_mutex_unlock(&lock);
    }
    NEXT(Allreduce)(&mine, &tag, 1, MPI_INT, MPI_SUM, handle);
    return tag;
}

/* The ranks in the world of the communicator's ranks, in its order. Returns TAKEN, or the reason for which there are none,
 * which is the same on all ranks. */
static enum rondo_mpi_reason find_members(MPI_Comm handle, int size, int *members, int *numbers)
{
    MPI_Group group;
    enum rondo_mpi_reason reason = RONDO_MPI_TAKEN;
    for (int i = 0; i < size; i++)
        numbers[i] = i;
    NEXT(Comm_group)(handle, &group);
    NEXT(Group_translate_ranks)(group, size, numbers, rondo_mpi_world.group, members);
    NEXT(Group_free)(&group);
    for (int i = 0; i < size; i++)
        if (members[i] == MPI_UNDEFINED)
            reason = RONDO_MPI_FOREIGN;
    return reason;
}

/* Makes Rondo's communicator of these members of the world. comm->rondo stays NULL if that fails on this rank. */
static rondo_result_t make_rondo(MPI_Comm handle, struct rondo_mpi_comm *comm, const int *members)
{
    if (handle == MPI_COMM_WORLD) {
        comm->rondo = rondo_mpi_world.comm;
        return RONDO_SUCCESS;
    }
    const int tag = agree_on_tag(handle, comm->rank);
    return members != NULL ? rondo_comm_create_group(rondo_mpi_world.comm, members, comm->size, tag, &comm->rondo)
                           : RONDO_ERR_MEMORY;
}

/* Whether all ranks of the communicator say yes. */
static int agrees(MPI_Comm handle, int mine)
{
    int every = 0;
    NEXT(Allreduce)(&mine, &every, 1, MPI_INT, MPI_MIN, handle);
    return every;
}

/* A topology of MPI's. The lists are in numbers: of a grid dimensions and periods; else sources and destinations. */
struct topology {
    int kind, dimensions, in, out;
    int *numbers;
};

/* Reads this rank's part of the topology; calls no other rank. Returns 0 without memory. */
static int read_topology(MPI_Comm handle, int rank, struct topology *topology)
{
    int dimensions = 0, in = 0, out = 0, weighted;
    *topology = (struct topology){.kind = MPI_UNDEFINED};
    NEXT(Topo_test)(handle, &topology->kind);
    if (topology->kind == MPI_CART)
        NEXT(Cartdim_get)(handle, &dimensions);
    else if (topology->kind == MPI_GRAPH)
        NEXT(Graph_neighbors_count)(handle, rank, &in);
    else if (topology->kind == MPI_DIST_GRAPH)
        NEXT(Dist_graph_neighbors_count)(handle, &in, &out, &weighted);
    else
        return 1;
    int *numbers = topology->numbers = calloc((size_t) (3 * dimensions + 2 * in + 2 * out) + 1, sizeof(*numbers));
    if (numbers == NULL)
        return 0;
    if (topology->kind == MPI_CART) {
        NEXT(Cart_get)(handle, dimensions, numbers, numbers + dimensions, numbers + 2 * dimensions);
        in = out = 2 * dimensions;
    } else if (topology->kind == MPI_GRAPH) {
        NEXT(Graph_neighbors)(handle, rank, in, numbers);
        memcpy(numbers + in, numbers, (size_t) in * sizeof(*numbers));
        out = in;
    } else {
        int *weights = numbers + in + out;
        NEXT(Dist_graph_neighbors)(handle, in, numbers, weights, out, numbers + in, weights + in);
    }
    topology->dimensions = dimensions;
    topology->in = in;
    topology->out = out;
    return 1;
}

/* Replaces Rondo's communicator by one with the topology's neighbours. All ranks; calls Rondo alone. */
static rondo_result_t make_topology(rondo_comm_t *comm, const struct topology *topology)
{
    rondo_comm_t plain = *comm, made = NULL;
    rondo_result_t result;
    const int *numbers = topology->numbers;
    if (topology->kind == MPI_UNDEFINED)
        return RONDO_SUCCESS;
    if (topology->kind == MPI_CART)
        result = rondo_cart_create(plain, topology->dimensions, numbers, numbers + topology->dimensions, &made);
    else
        result = rondo_graph_create(plain, topology->in, numbers, topology->out, numbers + topology->in, &made);
    if (result == RONDO_SUCCESS) {
        *comm = made;
        rondo_comm_free(&plain);
    }
    return result;
}

/* Gives Rondo's communicator the neighbours of MPI's topology. */
static rondo_result_t add_topology(MPI_Comm handle, struct rondo_mpi_comm *comm)
{
    struct topology topology;
    if (!read_topology(handle, comm->rank, &topology))
        return RONDO_ERR_MEMORY;
    rondo_result_t result = make_topology(&comm->rondo, &topology);
    if (result == RONDO_SUCCESS && topology.kind != MPI_UNDEFINED) {
        comm->sources = topology.in;
        comm->destinations = topology.out;
    }
    free(topology.numbers);
    return result;
}

/* Makes what the communicator needs. All of its ranks, which go through the same steps. */
static void make(MPI_Comm handle, struct rondo_mpi_comm *comm)
{
    int inter = 0;
    NEXT(Comm_test_inter)(handle, &inter);
    if (inter) {
        comm->reason = RONDO_MPI_INTER;
        return;
    }
    NEXT(Comm_rank)(handle, &comm->rank);
    NEXT(Comm_size)(handle, &comm->size);
    int *members = malloc(2 * (size_t) comm->size * sizeof(*members));
    comm->reason = members != NULL ? find_members(handle, comm->size, members, members + comm->size) : RONDO_MPI_TAKEN;
    if (comm->reason == RONDO_MPI_TAKEN) { /* also a rank without memory, which then lacks the communicator */
        rondo_result_t result = make_rondo(handle, comm, members);
        if (agrees(handle, result == RONDO_SUCCESS) && handle != MPI_COMM_WORLD)
            result = add_topology(handle, comm);
        if (!agrees(handle, result == RONDO_SUCCESS)) {
            comm->reason = RONDO_MPI_FAILED;
            if (result != RONDO_SUCCESS)
                rondo_mpi_warn("a communicator of %d ranks stays with MPI: %s", comm->size,
                               members != NULL ? rondo_last_error() : "no memory");
        }
    }
    free(members);
}

static struct rondo_mpi_comm *comm_make(MPI_Comm handle)
{
    struct rondo_mpi_comm *comm = comm_new();
    if (comm == NULL)
        return NULL;
    comm->rondo = NULL;
    comm->sources = comm->destinations = -1;
    comm->references = 1;
    comm->copies = 0;
    make(handle, comm);
    __atomic_store_n(&comm->handle, handle, __ATOMIC_RELEASE);
    NEXT(Comm_set_attr)(handle, keyval, comm);
    return comm;
}

/* ---- copies that a nonblocking call makes ---- */

/* MPI_Comm_idup must not wait, and Rondo's part needs all ranks, which do not wait for each other either: a thread makes it.
 * All ranks have called when MPI's request is complete, so the thread ends soon when the first collective looks for it. */
struct copy {
    struct copy *next;
    MPI_Comm handle;
    struct rondo_mpi_comm *parent, *comm;
    struct topology topology;
    int *members, number, threaded;
    pthread_t thread;
    rondo_result_t result;
    char why[256];
};
static struct copy *copies; /* under the lock */

static void *make_copy(void *argument)
{
    struct copy *copy = argument;
    rondo_mpi_may_call = 0;
    copy->result =
        copy->members == NULL
            ? RONDO_ERR_MEMORY
            : rondo_comm_create_group(copy->parent->rondo, copy->members, copy->parent->size,
                                      (int) (0x40000000u + (unsigned int) copy->number % 0x40000000u), &copy->comm->rondo);
    if (copy->result == RONDO_SUCCESS)
        copy->result = make_topology(&copy->comm->rondo, &copy->topology);
    if (copy->result != RONDO_SUCCESS)
        snprintf(copy->why, sizeof(copy->why), "%s", rondo_last_error());
    rondo_mpi_may_call = 1;
    return NULL;
}

void rondo_mpi_comm_copied(MPI_Comm parent_handle, MPI_Comm handle)
{
    enum rondo_mpi_reason reason;
    struct rondo_mpi_comm *parent = handle != MPI_COMM_NULL ? rondo_mpi_comm_find(parent_handle, 0, &reason) : NULL;
    if (parent == NULL)
        return;
    struct copy *copy = calloc(1, sizeof(*copy));
    struct rondo_mpi_comm *comm = copy != NULL ? comm_new() : NULL;
    if (comm == NULL) { /* the others wait for this rank's part, and would without end */
        free(copy);
        rondo_comm_abort(parent->rondo, MPI_ERR_NO_MEM);
        return;
    }
    comm->rondo = NULL;
    comm->reason = RONDO_MPI_TAKEN;
    comm->references = 1;
    comm->copies = 0;
    comm->rank = parent->rank;
    comm->size = parent->size;
    comm->sources = parent->sources;
    comm->destinations = parent->destinations;
    rondo_mpi_comm_hold(parent);
    copy->handle = handle;
    copy->parent = parent;
    copy->comm = comm;
    copy->number = __atomic_fetch_add(&parent->copies, 1, __ATOMIC_RELAXED);
    copy->members = malloc((size_t) parent->size * sizeof(*copy->members));
    for (int i = 0; copy->members != NULL && i < parent->size; i++)
        copy->members[i] = i;
    if (parent->sources >= 0 && !read_topology(parent_handle, parent->rank, &copy->topology)) {
        free(copy->members);
        copy->members = NULL;
    }
    if (parent->sources < 0)
        copy->topology.kind = MPI_UNDEFINED;
    copy->threaded = pthread_create(&copy->thread, NULL, make_copy, copy) == 0;
    pthread_mutex_lock(&lock);
    copy->next = copies;
    copies = copy;
    pthread_mutex_unlock(&lock);
}

/* Waits for the copy's thread, and frees the copy. Returns the communicator, whose handle has no attribute yet. */
static struct rondo_mpi_comm *end_copy(struct copy *copy)
{
    struct rondo_mpi_comm *comm = copy->comm;
    if (copy->threaded)
        pthread_join(copy->thread, NULL);
    else
        make_copy(copy);
    if (copy->result != RONDO_SUCCESS) {
        comm->reason = RONDO_MPI_FAILED;
        rondo_mpi_warn("a communicator of %d ranks stays with MPI: %s", comm->size, copy->why);
    }
    rondo_mpi_comm_let_go(copy->parent);
    free(copy->topology.numbers);
    free(copy->members);
    free(copy);
    return comm;
}

/* The communicator's structure, if it is a copy that no call has been made on yet; else NULL. */
static struct rondo_mpi_comm *find_copy(MPI_Comm handle)
{
    struct copy *copy;
    pthread_mutex_lock(&lock);
    struct copy **place = &copies;
    while (*place != NULL && (*place)->handle != handle)
        place = &(*place)->next;
    copy = *place;
    if (copy != NULL)
        *place = copy->next;
    pthread_mutex_unlock(&lock);
    if (copy == NULL)
        return NULL;
    struct rondo_mpi_comm *comm = end_copy(copy);
    __atomic_store_n(&comm->handle, handle, __ATOMIC_RELEASE);
    NEXT(Comm_set_attr)(handle, keyval, comm);
    return comm;
}

void rondo_mpi_comm_ending(MPI_Comm handle)
{
    if (__atomic_load_n(&copies, __ATOMIC_RELAXED) != NULL && handle != MPI_COMM_NULL)
        find_copy(handle);
}

static void cache(struct rondo_mpi_comm *comm, MPI_Comm handle)
{
    __atomic_store_n(&rondo_mpi_comm_cache[rondo_mpi_hash((uintptr_t) handle)], comm, __ATOMIC_RELEASE);
}

/* Whether making the communicator's structure waits for no other rank. */
static int is_local(MPI_Comm handle)
{
    int inter = 0, size = 0;
    NEXT(Comm_test_inter)(handle, &inter);
    NEXT(Comm_size)(handle, &size);
    return inter || size == 1;
}

struct rondo_mpi_comm *rondo_mpi_comm_slow(MPI_Comm handle, int blocking, enum rondo_mpi_reason *reason)
{
    struct rondo_mpi_comm *comm;
    int there = 0;
    *reason = RONDO_MPI_OFF;
    if (!__atomic_load_n(&rondo_mpi_world.running, __ATOMIC_ACQUIRE))
        return NULL;
    *reason = RONDO_MPI_ARGUMENT;
    if (handle == MPI_COMM_NULL || NEXT(Comm_get_attr)(handle, keyval, (void *) &comm, &there) != MPI_SUCCESS)
        return NULL;
    if (!there) {
        *reason = RONDO_MPI_UNMADE;
        comm = find_copy(handle);
        if (comm == NULL && ((!blocking && !is_local(handle)) || (comm = comm_make(handle)) == NULL))
            return NULL;
    }
    cache(comm, handle);
    *reason = comm->reason;
    return comm->reason == RONDO_MPI_TAKEN ? comm : NULL;
}

void rondo_mpi_comm_made(MPI_Comm handle)
{
    struct rondo_mpi_comm *comm;
    int there = 0;
    if (handle == MPI_COMM_NULL || !__atomic_load_n(&rondo_mpi_world.running, __ATOMIC_ACQUIRE))
        return;
    NEXT(Comm_get_attr)(handle, keyval, (void *) &comm, &there);
    if (!there && (comm = comm_make(handle)) != NULL)
        cache(comm, handle);
}

void rondo_mpi_comms_prepare(void)
{
    NEXT(Comm_create_keyval)(copy_nothing, end_comm, &keyval, NULL);
    rondo_mpi_comm_made(MPI_COMM_WORLD);
}

void rondo_mpi_comms_end(void)
{
    while (copies != NULL) {
        struct copy *copy = copies;
        copies = copy->next;
        end_copy(copy);
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < RONDO_MPI_CACHE; i++)
        __atomic_store_n(&rondo_mpi_comm_cache[i], NULL, __ATOMIC_RELEASE);
    for (int i = 0; i < all_count; i++) {
        if (all[i]->rondo != NULL && all[i]->rondo != rondo_mpi_world.comm)
            rondo_comm_free(&all[i]->rondo);
        all[i]->rondo = NULL;
        all[i]->reason = RONDO_MPI_OFF;
    }
    pthread_mutex_unlock(&lock);
}
