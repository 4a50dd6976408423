/* Operators of reductions. A predefined operator on a predefined type is Rondo's where it has both. All others, the program's
 * own among them, are carried out by MPI's function for it, on elements of which Rondo knows the size alone. */
#include "compat/mpi/shim.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#define SLOTS 64 /* a power of two; more than twice the predefined operators */

static struct {
    MPI_Op handle;
    int there;
    int op;                   /* a rondo_op_t; -1: none, and collectives do not take it */
    unsigned int for_classes; /* a bit for each class that MPI defines the operator for */
} table[SLOTS];

#define BIT(class) (1u << RONDO_MPI_##class)
#define INTEGERS   (BIT(SIGNED) | BIT(UNSIGNED))

static size_t slot_of(MPI_Op handle)
{
    return (size_t) ((uint64_t) (uintptr_t) handle * 0x9e3779b97f4a7c15u >> 58);
}

static void add(MPI_Op handle, int op, unsigned int classes)
{
    size_t slot = slot_of(handle);
    while (table[slot].there)
        slot = (slot + 1) % SLOTS;
    table[slot].handle = handle;
    table[slot].there = 1;
    table[slot].op = op;
    table[slot].for_classes = classes;
}

void rondo_mpi_operators_prepare(void)
{
    add(MPI_SUM, RONDO_SUM, INTEGERS | BIT(REAL) | BIT(COMPLEX));
    add(MPI_PROD, RONDO_PROD, INTEGERS | BIT(REAL) | BIT(COMPLEX));
    add(MPI_MIN, RONDO_MIN, INTEGERS | BIT(REAL));
    add(MPI_MAX, RONDO_MAX, INTEGERS | BIT(REAL));
    add(MPI_LAND, RONDO_LAND, INTEGERS | BIT(LOGICAL));
    add(MPI_LOR, RONDO_LOR, INTEGERS | BIT(LOGICAL));
    add(MPI_LXOR, RONDO_LXOR, INTEGERS | BIT(LOGICAL));
    add(MPI_BAND, RONDO_BAND, INTEGERS | BIT(BYTES));
    add(MPI_BOR, RONDO_BOR, INTEGERS | BIT(BYTES));
    add(MPI_BXOR, RONDO_BXOR, INTEGERS | BIT(BYTES));
    add(MPI_MINLOC, RONDO_MINLOC, BIT(PAIR));
    add(MPI_MAXLOC, RONDO_MAXLOC, BIT(PAIR));
    add(MPI_REPLACE, -1, 0);
    add(MPI_NO_OP, -1, 0);
    add(MPI_OP_NULL, -1, 0);
}

/* ---- by MPI's function ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static int outliving;                                    /* reductions that outlive their calls */
static MPI_Op *to_free;                                  /* operators that the program has freed meanwhile */
static size_t to_free_count;

static void combine(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument)
{
    const struct rondo_mpi_reduction *reduction = argument;
    (void) type;
    NEXT(Reduce_local)(in, inout, (int) count, reduction->mpi_type, reduction->mpi_op);
}

static enum rondo_mpi_reason make(const struct rondo_mpi_type *type, MPI_Op op, int outlives,
                                  struct rondo_mpi_reduction *reduction, int *failure)
{
    int commutative = 0;
    if (type->true_lower < 0 || type->true_upper > type->extent || type->extent <= 0 || type->extent > RONDO_COMBINED_BYTES_MAX)
        return RONDO_MPI_DATATYPE;
    if (outlives && rondo_mpi_world.threads < MPI_THREAD_MULTIPLE)
        return RONDO_MPI_THREADS;
    NEXT(Op_commutative)(op, &commutative);
    reduction->mpi_op = op;
    reduction->mpi_type = type->handle;
    reduction->outlives = outlives;
    reduction->keeps_type = outlives && !type->predefined;
    if (reduction->keeps_type && NEXT(Type_dup)(type->handle, &reduction->mpi_type) != MPI_SUCCESS) {
        *failure = MPI_ERR_NO_MEM;
        return RONDO_MPI_TAKEN;
    }
    if (rondo_type_create((size_t) type->extent, &reduction->type) != RONDO_SUCCESS ||
        rondo_op_create_with(combine, reduction, commutative != 0, &reduction->op) != RONDO_SUCCESS) {
        if (reduction->keeps_type)
            NEXT(Type_free)(&reduction->mpi_type);
        *failure = MPI_ERR_NO_MEM;
        return RONDO_MPI_TAKEN;
    }
    reduction->made = 1;
    if (outlives) {
        pthread_mutex_lock(&lock);
        outliving++;
        pthread_mutex_unlock(&lock);
    }
    return RONDO_MPI_TAKEN;
}

void rondo_mpi_reduction_end(struct rondo_mpi_reduction *reduction)
{
    rondo_op_free(&reduction->op);
    if (reduction->keeps_type)
        NEXT(Type_free)(&reduction->mpi_type);
    reduction->made = 0;
    if (!reduction->outlives)
        return;
    pthread_mutex_lock(&lock);
    if (--outliving == 0) {
        for (size_t i = 0; i < to_free_count; i++)
            NEXT(Op_free)(&to_free[i]);
        free(to_free);
        to_free = NULL;
        to_free_count = 0;
    }
    pthread_mutex_unlock(&lock);
}

enum rondo_mpi_reason rondo_mpi_reduction_find(const struct rondo_mpi_type *type, MPI_Op op, int outlives,
                                               struct rondo_mpi_reduction *reduction, int *failure)
{
    for (size_t slot = slot_of(op); table[slot].there; slot = (slot + 1) % SLOTS) {
        if (table[slot].handle != op)
            continue;
        if ((table[slot].for_classes & 1u << type->class) == 0)
            return RONDO_MPI_ARGUMENT;
        if (type->native < 0)
            break;
        reduction->type = (rondo_datatype_t) type->native;
        reduction->op = (rondo_op_t) table[slot].op;
        return RONDO_MPI_TAKEN;
    }
    return make(type, op, outlives, reduction, failure);
}

/* An operator may be freed while operations use it. */
int MPI_Op_free(MPI_Op *op)
{
    MPI_Op *grown = NULL;
    pthread_mutex_lock(&lock);
    if (op != NULL && outliving > 0 && (grown = realloc(to_free, (to_free_count + 1) * sizeof(*to_free))) != NULL) {
        to_free = grown;
        to_free[to_free_count++] = *op;
        *op = MPI_OP_NULL;
    }
    pthread_mutex_unlock(&lock);
    return grown != NULL ? MPI_SUCCESS : NEXT(Op_free)(op);
}
int PMPI_Op_free(MPI_Op *op) __attribute__((alias("MPI_Op_free")));
