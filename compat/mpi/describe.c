/* From a call of MPI to an operation of Rondo. Data are moved as bytes, so that only the size of what is moved, which is the
 * same on all ranks, goes into the operation; each rank by itself packs what is not one run of bytes. */
#include "compat/mpi/shim.h"

#include <stdlib.h>

/* A call on its way to an operation. */
struct description {
    const struct rondo_mpi_call *call;
    struct rondo_mpi_operation *operation;
    const struct rondo_mpi_type *sendtype, *recvtype; /* NULL: not looked up */
    size_t *array;                                    /* the next free part of the operation's arrays */
    int failure;
};

static struct rondo_mpi_side *stage(struct description *description, struct rondo_mpi_side *side)
{
    struct rondo_mpi_operation *operation = description->operation;
    if (!operation->staged) {
        operation->staged = 1;
        operation->from = operation->to = (struct rondo_mpi_side){0};
    }
    return side;
}

static void *fail(struct description *description, int class)
{
    description->failure = class;
    return NULL;
}

/* What is done to a side: data go out of it, into it, or both. */
enum direction { OUT = 1, IN = 2 };

/* Where Rondo finds count elements of the buffer: the buffer itself, or staging memory. */
static void *place(struct description *description, const void *buffer, MPI_Count count, const struct rondo_mpi_type *type,
                   enum direction direction)
{
    struct rondo_mpi_operation *operation = description->operation;
    if (type->contiguous)
        return (void *) (uintptr_t) buffer;
    struct rondo_mpi_side *side = stage(description, direction == OUT ? &operation->from : &operation->to);
    side->pack = (direction & OUT) != 0;
    side->unpack = (direction & IN) != 0;
    side->buffer = (void *) (uintptr_t) buffer;
    side->blocks = 1;
    side->one = (struct rondo_mpi_block){.count = count, .type = type->handle, .bytes = (size_t) count * type->size};
    side->staging = rondo_mpi_memory_alloc(side->one.bytes);
    return side->staging != NULL ? side->staging : fail(description, MPI_ERR_NO_MEM);
}

/* The same of a reduction's elements, which keep their layout. copied: in staging memory even if it could be the buffer. */
static void *place_elements(struct description *description, const void *buffer, MPI_Count count,
                            const struct rondo_mpi_type *type, enum direction direction, int copied)
{
    struct rondo_mpi_operation *operation = description->operation;
    if (!copied && (type->predefined || type->contiguous) && (uintptr_t) buffer % type->alignment == 0)
        return (void *) (uintptr_t) buffer;
    struct rondo_mpi_side *side = stage(description, direction == OUT ? &operation->from : &operation->to);
    side->whole = 1;
    side->pack = (direction & OUT) != 0;
    side->unpack = (direction & IN) != 0;
    side->buffer = (void *) (uintptr_t) buffer;
    side->blocks = 1;
    side->one = (struct rondo_mpi_block){.count = count, .type = type->handle, .bytes = (size_t) (count * type->extent)};
    side->staging = rondo_mpi_memory_alloc(side->one.bytes);
    return side->staging != NULL ? side->staging : fail(description, MPI_ERR_NO_MEM);
}

/* ---- arrays of counts and displacements ---- */

/* A side with a block for each rank. */
struct vector {
    const void *buffer, *counts, *displacements;
    MPI_Datatype type;
    const MPI_Datatype *types;          /* NULL: all of them are of type, and displacements are in its extents; else in bytes */
    const struct rondo_mpi_type *found; /* type, once it has been looked up */
};

static MPI_Count count_at(const struct rondo_mpi_call *call, const void *counts, int i)
{
    return call->wide ? ((const MPI_Count *) counts)[i] : ((const int *) counts)[i];
}

static MPI_Aint displacement_at(const struct rondo_mpi_call *call, const void *displacements, int i)
{
    return call->wide || call->addressed ? ((const MPI_Aint *) displacements)[i] : ((const int *) displacements)[i];
}

static struct rondo_mpi_block block_at(const struct rondo_mpi_call *call, const struct vector *vector, int i,
                                       const struct rondo_mpi_type *type)
{
    struct rondo_mpi_block block = {.count = count_at(call, vector->counts, i),
                                    .at = displacement_at(call, vector->displacements, i) *
                                          (vector->types != NULL ? 1 : type->extent),
                                    .type = type->handle};
    block.bytes = (size_t) block.count * type->size;
    return block;
}

static const struct rondo_mpi_type *type_at(const struct vector *vector, int i)
{
    if (vector->types != NULL)
        return rondo_mpi_type_find(vector->types[i]);
    return vector->found != NULL ? vector->found : rondo_mpi_type_find(vector->type);
}

/* Whether MPI would refuse the arrays. Looks the type up that all blocks have. */
static int is_refused(const struct rondo_mpi_call *call, struct vector *vector, int blocks)
{
    if (vector->counts == NULL || vector->displacements == NULL)
        return blocks > 0;
    if (vector->types == NULL)
        vector->found = rondo_mpi_type_find(vector->type);
    for (int i = 0; i < blocks; i++)
        if (count_at(call, vector->counts, i) < 0 || type_at(vector, i) == NULL)
            return 1;
    return 0;
}

static int is_direct(const struct vector *vector, int blocks)
{
    for (int i = 0; i < (vector->types != NULL ? blocks : 1); i++)
        if (!type_at(vector, i)->contiguous)
            return 0;
    return 1;
}

static int compare_places(const void *a, const void *b)
{
    const MPI_Aint left = *(const MPI_Aint *) a, right = *(const MPI_Aint *) b;
    return (left > right) - (left < right);
}

/* Whether blocks that are one run of bytes each have bytes in common. */
static int is_overlapping(const struct rondo_mpi_call *call, const struct vector *vector, int blocks)
{
    int overlapping = 0, count = 0;
    MPI_Aint(*places)[2] = malloc((size_t) blocks * sizeof(*places));
    if (places == NULL)
        return 1; /* what is taken for overlapping goes through staging memory, and is right, too */
    for (int i = 0; i < blocks; i++) {
        const struct rondo_mpi_block block = block_at(call, vector, i, type_at(vector, i));
        if (block.bytes == 0)
            continue;
        places[count][0] = block.at;
        places[count++][1] = block.at + (MPI_Aint) block.bytes;
    }
    qsort(places, (size_t) count, sizeof(*places), compare_places);
    for (int i = 1; i < count; i++)
        overlapping |= places[i][0] < places[i - 1][1];
    free(places);
    return overlapping;
}

/* Gives one side its arrays of counts and displacements. Returns 0, having failed, without memory. */
static int take_arrays(struct description *description, int blocks, size_t **counts, size_t **displacements)
{
    struct rondo_mpi_operation *operation = description->operation;
    const struct rondo_mpi_comm *comm = operation->comm;
    if (description->array == NULL) {
        const size_t most = (size_t) comm->size + (size_t) (comm->sources > 0 ? comm->sources : 0) +
                            (size_t) (comm->destinations > 0 ? comm->destinations : 0);
        if (4 * most <= RONDO_MPI_ROOM && operation->room != NULL)
            description->array = operation->room;
        else
            operation->arrays = description->array = malloc(4 * most * sizeof(size_t));
        if (description->array == NULL) {
            fail(description, MPI_ERR_NO_MEM);
            return 0;
        }
    }
    *counts = description->array;
    *displacements = description->array + blocks;
    description->array += 2 * blocks;
    return 1;
}

/* Where Rondo finds the blocks, as place. counts and displacements become those of Rondo. copied: in staging memory even if it
 * could be the buffer. */
static void *place_vector(struct description *description, const struct vector *vector, int blocks, enum direction direction,
                          int copied, size_t **counts, size_t **displacements)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    if (!take_arrays(description, blocks, counts, displacements))
        return NULL;
    if (!copied && is_direct(vector, blocks)) {
        /* Rondo's displacements count from the first byte: the buffer may be MPI_BOTTOM, MPI's displacements negative. */
        MPI_Aint least = 0, end = 0;
        int any = 0, ordered = 1;
        for (int i = 0; i < blocks; i++) {
            const struct rondo_mpi_type *type = type_at(vector, i);
            const MPI_Aint at = displacement_at(call, vector->displacements, i) * (vector->types != NULL ? 1 : type->extent);
            const size_t size = (size_t) count_at(call, vector->counts, i) * type->size;
            (*counts)[i] = size;
            (*displacements)[i] = (size_t) at;
            if (size == 0)
                continue;
            least = any && least < at ? least : at;
            ordered &= !any || at >= end;
            end = at + (MPI_Aint) size;
            any = 1;
        }
        /* MPI forbids blocks that are received to overlap, but does not refuse it, and programs have it; Rondo refuses it. */
        if ((direction & IN) == 0 || ordered || !is_overlapping(call, vector, blocks)) {
            for (int i = 0; i < blocks; i++)
                (*displacements)[i] = (*counts)[i] > 0 ? (*displacements)[i] - (size_t) least : 0;
            return (char *) (uintptr_t) vector->buffer + least;
        }
    }
    struct rondo_mpi_side *side = stage(description, direction == OUT ? &operation->from : &operation->to);
    size_t bytes = 0;
    side->list = malloc((size_t) blocks * sizeof(*side->list) + 1);
    if (side->list == NULL)
        return fail(description, MPI_ERR_NO_MEM);
    for (int i = 0; i < blocks; i++) {
        side->list[i] = block_at(call, vector, i, type_at(vector, i));
        side->list[i].offset = bytes;
        (*counts)[i] = side->list[i].bytes;
        (*displacements)[i] = bytes;
        bytes += side->list[i].bytes;
    }
    side->pack = (direction & OUT) != 0;
    side->unpack = (direction & IN) != 0;
    side->buffer = (void *) (uintptr_t) vector->buffer;
    side->blocks = (size_t) blocks;
    side->staging = rondo_mpi_memory_alloc(bytes);
    return side->staging != NULL ? side->staging : fail(description, MPI_ERR_NO_MEM);
}

/* ---- the collectives ---- */

/* The call's types, where they are significant. Returns whether MPI accepts them and the counts. */
static int has_send(struct description *description)
{
    description->sendtype = rondo_mpi_type_find(description->call->sendtype);
    return description->sendtype != NULL && description->call->sendcount >= 0;
}

static int has_recv(struct description *description)
{
    description->recvtype = rondo_mpi_type_find(description->call->recvtype);
    return description->recvtype != NULL && description->call->recvcount >= 0;
}

static void *place_send(struct description *description, int blocks)
{
    const struct rondo_mpi_call *call = description->call;
    description->operation->sendcount = (size_t) call->sendcount * description->sendtype->size;
    return place(description, call->send, call->sendcount * blocks, description->sendtype, OUT);
}

static void *place_recv(struct description *description, int blocks, int in_place)
{
    const struct rondo_mpi_call *call = description->call;
    description->operation->recvcount = (size_t) call->recvcount * description->recvtype->size;
    return place(description, call->recv, call->recvcount * blocks, description->recvtype, in_place ? IN | OUT : IN);
}

static struct vector send_vector(const struct rondo_mpi_call *call)
{
    return (struct vector){call->send, call->sendcounts, call->senddispls, call->sendtype, call->sendtypes, NULL};
}

static struct vector recv_vector(const struct rondo_mpi_call *call)
{
    return (struct vector){call->recv, call->recvcounts, call->recvdispls, call->recvtype, call->recvtypes, NULL};
}

static enum rondo_mpi_reason describe_bcast(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    if (!has_recv(description))
        return RONDO_MPI_ARGUMENT;
    operation->recvcount = (size_t) call->recvcount * description->recvtype->size;
    operation->recv =
        place(description, call->recv, call->recvcount, description->recvtype, comm->rank == call->root ? OUT : IN);
    return RONDO_MPI_TAKEN;
}

/* Gather, all-gather and their forms with counts. receives: this rank has the receive buffer. */
static enum rondo_mpi_reason describe_gather(struct description *description, const struct rondo_mpi_comm *comm, int receives)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    const int in_place = call->send == MPI_IN_PLACE, counted = call->recvcounts != NULL;
    struct vector vector = recv_vector(call);
    if ((!in_place && !has_send(description)) || (in_place && !receives))
        return RONDO_MPI_ARGUMENT;
    if (receives && (counted ? is_refused(call, &vector, comm->size) : !has_recv(description)))
        return RONDO_MPI_ARGUMENT;
    operation->send = in_place ? RONDO_IN_PLACE : place_send(description, 1);
    if (receives && counted)
        operation->recv = place_vector(description, &vector, comm->size, in_place ? IN | OUT : IN, 0, &operation->recvcounts,
                                       &operation->recvdispls);
    else if (receives)
        operation->recv = place_recv(description, comm->size, in_place);
    if (in_place)
        operation->sendcount = counted ? operation->recvcounts[comm->rank] : operation->recvcount;
    return RONDO_MPI_TAKEN;
}

static enum rondo_mpi_reason describe_scatter(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    const int in_place = call->recv == MPI_IN_PLACE, counted = call->kind == RONDO_MPI_SCATTERV;
    const int sends = comm->rank == call->root;
    struct vector vector = send_vector(call);
    if ((!in_place && !has_recv(description)) || (in_place && !sends))
        return RONDO_MPI_ARGUMENT;
    if (sends && (counted ? is_refused(call, &vector, comm->size) : !has_send(description)))
        return RONDO_MPI_ARGUMENT;
    operation->recv = in_place ? RONDO_IN_PLACE : place_recv(description, 1, 0);
    if (sends && counted)
        operation->send =
            place_vector(description, &vector, comm->size, OUT, 0, &operation->sendcounts, &operation->senddispls);
    else if (sends)
        operation->send = place_send(description, comm->size);
    if (in_place)
        operation->recvcount = counted ? operation->sendcounts[comm->rank] : operation->sendcount;
    return RONDO_MPI_TAKEN;
}

static enum rondo_mpi_reason describe_alltoall(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    const int in_place = call->send == MPI_IN_PLACE;
    if (!has_recv(description) || (!in_place && !has_send(description)))
        return RONDO_MPI_ARGUMENT;
    operation->send = in_place ? RONDO_IN_PLACE : place_send(description, comm->size);
    operation->recv = place_recv(description, comm->size, in_place);
    if (in_place)
        operation->sendcount = operation->recvcount;
    return RONDO_MPI_TAKEN;
}

static enum rondo_mpi_reason describe_alltoallv(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    const int in_place = call->send == MPI_IN_PLACE;
    struct vector recv = recv_vector(call), send = in_place ? recv : send_vector(call);
    if (is_refused(call, &recv, comm->size) || is_refused(call, &send, comm->size))
        return RONDO_MPI_ARGUMENT;
    operation->send =
        place_vector(description, &send, comm->size, OUT, in_place, &operation->sendcounts, &operation->senddispls);
    if (description->failure == MPI_SUCCESS)
        operation->recv = place_vector(description, &recv, comm->size, IN, 0, &operation->recvcounts, &operation->recvdispls);
    return RONDO_MPI_TAKEN;
}

/* elements_in, elements_out: of the input and the output of this rank; receives: it has an output. */
static enum rondo_mpi_reason describe_reduction(struct description *description, MPI_Count elements_in, MPI_Count elements_out,
                                                int receives)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    const int in_place = call->send == MPI_IN_PLACE;
    if (in_place && !receives)
        return RONDO_MPI_ARGUMENT;
    enum rondo_mpi_reason reason = rondo_mpi_reduction_find(description->sendtype, call->op, call->form != RONDO_MPI_BLOCKING,
                                                            &operation->reduction, &description->failure);
    if (reason != RONDO_MPI_TAKEN || description->failure != MPI_SUCCESS)
        return reason;
    /* Rondo's programs that keep the order of ranks do not do this one in place. */
    int commutative = 1;
    if (in_place && call->kind == RONDO_MPI_REDUCE_SCATTER)
        rondo_op_commutative(operation->reduction.op, &commutative);
    const int apart = !commutative;
    /* Rank 0 of an exclusive scan keeps what it has. */
    const enum direction into = (in_place && !apart) || call->kind == RONDO_MPI_EXSCAN ? IN | OUT : IN;
    operation->type = operation->reduction.type;
    operation->sendcount = (size_t) call->sendcount;
    operation->send = in_place && !apart ? RONDO_IN_PLACE
                                         : place_elements(description, in_place ? call->recv : call->send, elements_in,
                                                          description->sendtype, OUT, apart);
    if (receives && description->failure == MPI_SUCCESS)
        operation->recv = place_elements(description, call->recv, in_place && !apart ? elements_in : elements_out,
                                         description->sendtype, into, 0);
    return RONDO_MPI_TAKEN;
}

static enum rondo_mpi_reason describe_reduce_scatter(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    MPI_Count total = 0;
    description->sendtype = rondo_mpi_type_find(call->sendtype);
    if (description->sendtype == NULL || call->recvcounts == NULL)
        return RONDO_MPI_ARGUMENT;
    for (int i = 0; i < comm->size; i++) {
        const MPI_Count count = count_at(call, call->recvcounts, i);
        if (count < 0)
            return RONDO_MPI_ARGUMENT;
        total += count;
    }
    enum rondo_mpi_reason reason = describe_reduction(description, total, count_at(call, call->recvcounts, comm->rank), 1);
    if (reason != RONDO_MPI_TAKEN || description->failure != MPI_SUCCESS)
        return reason;
    size_t *unused;
    if (!take_arrays(description, comm->size, &operation->recvcounts, &unused))
        return RONDO_MPI_TAKEN;
    for (int i = 0; i < comm->size; i++)
        operation->recvcounts[i] = (size_t) count_at(call, call->recvcounts, i);
    return RONDO_MPI_TAKEN;
}

/* A side with a block for each neighbour. Without counts, all blocks are equal. */
static void *place_neighbors(struct description *description, const struct vector *vector, int blocks, enum direction direction,
                             size_t **counts, size_t **displacements)
{
    const struct rondo_mpi_call *call = description->call;
    if (vector->counts != NULL || blocks == 0)
        return place_vector(description, vector, blocks, direction, 0, counts, displacements);
    const int sends = direction == OUT;
    const MPI_Count count = sends ? call->sendcount : call->recvcount;
    const struct rondo_mpi_type *type = sends ? description->sendtype : description->recvtype;
    if (!take_arrays(description, blocks, counts, displacements))
        return NULL;
    for (int i = 0; i < blocks; i++) {
        (*counts)[i] = (size_t) count * type->size;
        (*displacements)[i] = (size_t) i * (*counts)[i];
    }
    return place(description, vector->buffer, count * blocks, type, direction);
}

/* Neighbourhood collectives, all by counts, because neighbours of different edges may have different ones. */
static enum rondo_mpi_reason describe_neighbors(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    struct rondo_mpi_operation *operation = description->operation;
    struct vector send = send_vector(call), recv = recv_vector(call);
    const int gathers = call->kind == RONDO_MPI_NEIGHBOR_ALLGATHER || call->kind == RONDO_MPI_NEIGHBOR_ALLGATHERV;
    if (comm->sources < 0)
        return RONDO_MPI_ISOLATED;
    if (send.counts != NULL ? is_refused(call, &send, comm->destinations) : send.types == NULL && !has_send(description))
        return RONDO_MPI_ARGUMENT;
    if (recv.counts != NULL ? is_refused(call, &recv, comm->sources) : recv.types == NULL && !has_recv(description))
        return RONDO_MPI_ARGUMENT;
    if (gathers)
        operation->send = place_send(description, 1);
    else
        operation->send =
            place_neighbors(description, &send, comm->destinations, OUT, &operation->sendcounts, &operation->senddispls);
    /* The block of a neighbour that is not there, beyond the edge of a grid, keeps what it has. */
    if (description->failure == MPI_SUCCESS)
        operation->recv =
            place_neighbors(description, &recv, comm->sources, IN | OUT, &operation->recvcounts, &operation->recvdispls);
    return RONDO_MPI_TAKEN;
}

static int is_rooted(enum rondo_mpi_kind kind)
{
    return kind == RONDO_MPI_BCAST || kind == RONDO_MPI_GATHER || kind == RONDO_MPI_GATHERV || kind == RONDO_MPI_SCATTER ||
           kind == RONDO_MPI_SCATTERV || kind == RONDO_MPI_REDUCE;
}

static enum rondo_mpi_reason describe(struct description *description, const struct rondo_mpi_comm *comm)
{
    const struct rondo_mpi_call *call = description->call;
    if (is_rooted(call->kind) && (call->root < 0 || call->root >= comm->size))
        return RONDO_MPI_ARGUMENT;
    switch (call->kind) {
    case RONDO_MPI_BARRIER:
        return RONDO_MPI_TAKEN;
    case RONDO_MPI_BCAST:
        return describe_bcast(description, comm);
    case RONDO_MPI_GATHER:
    case RONDO_MPI_GATHERV:
        return describe_gather(description, comm, comm->rank == call->root);
    case RONDO_MPI_ALLGATHER:
    case RONDO_MPI_ALLGATHERV:
        return describe_gather(description, comm, 1);
    case RONDO_MPI_SCATTER:
    case RONDO_MPI_SCATTERV:
        return describe_scatter(description, comm);
    case RONDO_MPI_ALLTOALL:
        return describe_alltoall(description, comm);
    case RONDO_MPI_ALLTOALLV:
    case RONDO_MPI_ALLTOALLW:
        return describe_alltoallv(description, comm);
    case RONDO_MPI_REDUCE:
    case RONDO_MPI_ALLREDUCE:
    case RONDO_MPI_SCAN:
    case RONDO_MPI_EXSCAN:
        return !has_send(description) ? RONDO_MPI_ARGUMENT
                                      : describe_reduction(description, call->sendcount, call->sendcount,
                                                           call->kind != RONDO_MPI_REDUCE || comm->rank == call->root);
    case RONDO_MPI_REDUCE_SCATTER_BLOCK:
        return !has_send(description) ? RONDO_MPI_ARGUMENT
                                      : describe_reduction(description, call->sendcount * comm->size, call->sendcount, 1);
    case RONDO_MPI_REDUCE_SCATTER:
        return describe_reduce_scatter(description, comm);
    default:
        return describe_neighbors(description, comm);
    }
}

enum rondo_mpi_reason rondo_mpi_describe(const struct rondo_mpi_call *call, struct rondo_mpi_comm *comm,
                                         struct rondo_mpi_operation *operation, int *failure)
{
    struct description description = {.call = call, .operation = operation};
    operation->kind = call->kind;
    operation->comm = comm;
    operation->root = call->root;
    operation->type = RONDO_UINT8;
    operation->staged = 0;
    operation->reduction.made = 0;
    operation->arrays = NULL;
    enum rondo_mpi_reason reason = describe(&description, comm);
    *failure = description.failure;
    return reason;
}
