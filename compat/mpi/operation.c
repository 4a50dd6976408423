/* What an operation stages: data that are not one run of bytes go through memory of the drop-in, packed, so that ranks whose
 * datatypes differ meet in bytes. Packing and unpacking are MPI's own. */
#include "compat/mpi/shim.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* MPI's functions for packing take no null pointer, which MPI_BOTTOM is. Gives a type with the same elements, seen from another
 * place. */
static int look_from(void *place, MPI_Datatype type, MPI_Datatype *moved)
{
    int one = 1;
    MPI_Aint distance = -(MPI_Aint) (intptr_t) place;
    int status = NEXT(Type_create_hindexed)(1, &one, &distance, type, moved);
    return status == MPI_SUCCESS ? NEXT(Type_commit)(moved) : status;
}

/* Packs or unpacks count elements; MPI's functions count in int. */
static int pack_elements(const struct rondo_mpi_side *side, const struct rondo_mpi_block *block, int packs)
{
    const struct rondo_mpi_type *type = rondo_mpi_type_find(block->type);
    char *buffer = (char *) side->buffer + block->at, *staging = (char *) side->staging + block->offset;
    if (block->bytes == 0)
        return MPI_SUCCESS;
    MPI_Count most = type->size > 0 ? (MPI_Count) (INT_MAX / type->size) : block->count;
    if (most == 0)
        return MPI_ERR_COUNT; /* one element is more than MPI packs at once */
    int status = MPI_SUCCESS;
    MPI_Datatype datatype = block->type;
    if (buffer == NULL) {
        buffer = staging;
        status = look_from(buffer, block->type, &datatype);
    }
    for (MPI_Count done = 0; status == MPI_SUCCESS && done < block->count;) {
        const int count = (int) (block->count - done < most ? block->count - done : most);
        const int bytes = (int) ((size_t) count * type->size);
        void *at = buffer + (MPI_Aint) done * type->extent;
        int position = 0;
        if (packs)
            status = NEXT(Pack)(at, count, datatype, staging, bytes, &position, MPI_COMM_SELF);
        else
            status = NEXT(Unpack)(staging, bytes, &position, at, count, datatype, MPI_COMM_SELF);
        staging += bytes;
        done += count;
    }
    if (datatype != block->type)
        NEXT(Type_free)(&datatype);
    return status;
}

/* Copies elements with the gaps between them, which keep what they have in the copy. */
static int copy_whole(const struct rondo_mpi_side *side, int packs)
{
    const struct rondo_mpi_type *type = rondo_mpi_type_find(side->one.type);
    void *from = packs ? side->buffer : side->staging, *to = packs ? side->staging : side->buffer;
    if (type->predefined || type->contiguous) {
        memcpy(to, from, (size_t) (side->one.count * type->extent));
        return MPI_SUCCESS;
    }
    struct rondo_mpi_side packed = {.buffer = from, .one = side->one};
    packed.one.bytes = (size_t) side->one.count * type->size;
    packed.staging = rondo_mpi_memory_alloc(packed.one.bytes);
    if (packed.staging == NULL)
        return MPI_ERR_NO_MEM;
    int status = pack_elements(&packed, &packed.one, 1);
    packed.buffer = to;
    if (status == MPI_SUCCESS)
        status = pack_elements(&packed, &packed.one, 0);
    rondo_mpi_memory_free(packed.staging);
    return status;
}

static int move_all(const struct rondo_mpi_side *side, int packs)
{
    if (side->whole)
        return copy_whole(side, packs);
    const struct rondo_mpi_block *blocks = side->list != NULL ? side->list : &side->one;
    for (size_t i = 0; i < side->blocks; i++) {
        int status = pack_elements(side, &blocks[i], packs);
        if (status != MPI_SUCCESS)
            return status;
    }
    return MPI_SUCCESS;
}

int rondo_mpi_operation_pack(const struct rondo_mpi_operation *operation)
{
    int status = MPI_SUCCESS;
    if (operation->from.pack)
        status = move_all(&operation->from, 1);
    if (status == MPI_SUCCESS && operation->to.pack)
        status = move_all(&operation->to, 1);
    return status;
}

int rondo_mpi_operation_unpack(const struct rondo_mpi_operation *operation)
{
    return operation->to.unpack ? move_all(&operation->to, 0) : MPI_SUCCESS;
}

/* The program may free its datatypes while the operation runs. */
static void keep(struct rondo_mpi_side *side)
{
    struct rondo_mpi_block *blocks = side->list != NULL ? side->list : &side->one;
    for (size_t i = 0; i < side->blocks; i++)
        if (!rondo_mpi_type_find(blocks[i].type)->predefined)
            NEXT(Type_dup)(blocks[i].type, &blocks[i].type);
}

static void release(struct rondo_mpi_side *side, int duplicated)
{
    struct rondo_mpi_block *blocks = side->list != NULL ? side->list : &side->one;
    for (size_t i = 0; duplicated && i < side->blocks; i++)
        if (!rondo_mpi_type_find(blocks[i].type)->predefined)
            NEXT(Type_free)(&blocks[i].type);
    if (side->blocks > 0)
        rondo_mpi_memory_free(side->staging);
    free(side->list);
}

void rondo_mpi_operation_keep(struct rondo_mpi_operation *operation)
{
    if (operation->staged) {
        keep(&operation->from);
        keep(&operation->to);
    }
}

void rondo_mpi_operation_release(struct rondo_mpi_operation *operation, int duplicated)
{
    if (operation->staged) {
        release(&operation->from, duplicated);
        release(&operation->to, duplicated);
    }
    free(operation->arrays);
    if (operation->reduction.made)
        rondo_mpi_reduction_end(&operation->reduction);
}
