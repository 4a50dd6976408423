/* Datatypes: sizes, layout, and Rondo's name of a predefined one. What is known of a predefined type is in a table that does
 * not change after MPI's initialization; of a derived one in an attribute, which ends with the type. */
#include "compat/mpi/shim.h"

#include <pthread.h>
#include <stdlib.h>

#define SLOTS 512 /* a power of two; more than twice the predefined types */

static struct rondo_mpi_type *table[SLOTS];
static int keyval;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of setting the attribute */

static size_t slot_of(MPI_Datatype handle)
{
    return (size_t) ((uint64_t) (uintptr_t) handle * 0x9e3779b97f4a7c15u >> 55);
}

static int is_contiguous(MPI_Datatype handle);

/* Whether the type is a predefined one, so that a handle that MPI_Type_get_contents gave is not to be freed. */
static int is_named(MPI_Datatype handle)
{
    int integers, addresses, types, combiner = MPI_COMBINER_NAMED;
    NEXT(Type_get_envelope)(handle, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
           combiner == MPI_COMBINER_F90_INTEGER;
}

/* Whether the one type that this one is made of is contiguous. */
static int is_inner_contiguous(MPI_Datatype handle, int integers, int addresses)
{
    int numbers[2];
    MPI_Aint places[2];
    MPI_Datatype inner;
    if (integers > 2 || addresses > 2 ||
        NEXT(Type_get_contents)(handle, integers, addresses, 1, numbers, places, &inner) != MPI_SUCCESS)
        return 0;
    int contiguous = is_contiguous(inner);
    if (!is_named(inner))
        NEXT(Type_free)(&inner);
    return contiguous;
}

/* Whether elements of the type, one after the other, are one run of bytes in the order in which they are packed. Layouts that
 * are so by chance, such as a vector without gaps, need not be recognized. */
static int is_contiguous(MPI_Datatype handle)
{
    int integers, addresses, types, combiner;
    MPI_Aint lower, extent, true_lower, true_extent;
    MPI_Count size;
    NEXT(Type_size_x)(handle, &size);
    NEXT(Type_get_extent)(handle, &lower, &extent);
    NEXT(Type_get_true_extent)(handle, &true_lower, &true_extent);
    if (lower != 0 || true_lower != 0 || extent != (MPI_Aint) size || true_extent != (MPI_Aint) size)
        return 0;
    if (NEXT(Type_get_envelope)(handle, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return 0;
    switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        return 1;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_RESIZED:
        return types == 1 && is_inner_contiguous(handle, integers, addresses);
    default:
        return 0;
    }
}

static int read_layout(MPI_Datatype handle, struct rondo_mpi_type *type)
{
    MPI_Aint lower, true_extent;
    MPI_Count size;
    if (NEXT(Type_size_x)(handle, &size) != MPI_SUCCESS || size < 0)
        return 0;
    NEXT(Type_get_extent)(handle, &lower, &type->extent);
    NEXT(Type_get_true_extent)(handle, &type->true_lower, &true_extent);
    type->handle = handle;
    type->size = (size_t) size;
    type->true_upper = type->true_lower + true_extent;
    type->contiguous = is_contiguous(handle);
    type->native = -1;
    type->alignment = 1;
    return 1;
}

/* ---- the predefined types ---- */

/* Rondo's type of a class and a size; -1: none. */
static int native_type(enum rondo_mpi_class class, size_t size)
{
    switch (class) {
    case RONDO_MPI_SIGNED:
    case RONDO_MPI_LOGICAL:
        return size == 1 ? RONDO_INT8 : size == 2 ? RONDO_INT16 : size == 4 ? RONDO_INT32 : size == 8 ? RONDO_INT64 : -1;
    case RONDO_MPI_UNSIGNED:
    case RONDO_MPI_BYTES:
        return size == 1 ? RONDO_UINT8 : size == 2 ? RONDO_UINT16 : size == 4 ? RONDO_UINT32 : size == 8 ? RONDO_UINT64 : -1;
    case RONDO_MPI_REAL:
        return size == 4 ? RONDO_FLOAT : size == 8 ? RONDO_DOUBLE : -1;
    case RONDO_MPI_COMPLEX:
        return size == 8 ? RONDO_COMPLEX_FLOAT : size == 16 ? RONDO_COMPLEX_DOUBLE : -1;
    default:
        return -1;
    }
}

/* native: Rondo's type of the same layout; -1: by class and size. alignment: what C aligns it to; 0: its size. */
static void add(MPI_Datatype handle, enum rondo_mpi_class class, int native, size_t alignment)
{
    if (handle == (MPI_Datatype) 0 || handle == MPI_DATATYPE_NULL)
        return;
    size_t slot = slot_of(handle);
    for (; table[slot] != NULL; slot = (slot + 1) % SLOTS)
        if (table[slot]->handle == handle)
            return;
    struct rondo_mpi_type *type = calloc(1, sizeof(*type));
    if (type == NULL || !read_layout(handle, type)) {
        free(type);
        return;
    }
    type->predefined = 1;
    type->class = class;
    type->native = native >= 0 ? native : native_type(class, type->size);
    type->alignment = alignment > 0 ? alignment : class == RONDO_MPI_COMPLEX ? type->size / 2 : type->size;
    if (type->native < 0 || type->alignment == 0)
        type->alignment = 1;
    table[slot] = type;
}

static int copy_nothing(MPI_Datatype handle, int key, void *extra, void *from, void *to, int *copied)
{
    (void) handle, (void) key, (void) extra, (void) from, (void) to;
    *copied = 0;
    return MPI_SUCCESS;
}

static int end_type(MPI_Datatype handle, int key, void *value, void *extra)
{
    (void) handle, (void) key, (void) extra;
    free(value);
    return MPI_SUCCESS;
}

void rondo_mpi_types_prepare(void)
{
    NEXT(Type_create_keyval)(copy_nothing, end_type, &keyval, NULL);
#define ADD(name, class)                add(MPI_##name, RONDO_MPI_##class, -1, 0);
#define ADD_AS(name, class, like, type) add(MPI_##name, RONDO_MPI_##class, RONDO_##like, _Alignof(type));
    ADD(SIGNED_CHAR, SIGNED)
    ADD(SHORT, SIGNED)
    ADD(INT, SIGNED)
    ADD(LONG, SIGNED)
    ADD(LONG_LONG_INT, SIGNED)
    ADD(INT8_T, SIGNED)
    ADD(INT16_T, SIGNED)
    ADD(INT32_T, SIGNED)
    ADD(INT64_T, SIGNED)
    ADD(AINT, SIGNED)
    ADD(OFFSET, SIGNED)
    ADD(COUNT, SIGNED)
    ADD(INTEGER, SIGNED)
    ADD(INTEGER1, SIGNED)
    ADD(INTEGER2, SIGNED)
    ADD(INTEGER4, SIGNED)
    ADD(INTEGER8, SIGNED)
    ADD(UNSIGNED_CHAR, UNSIGNED)
    ADD(UNSIGNED_SHORT, UNSIGNED)
    ADD(UNSIGNED, UNSIGNED)
    ADD(UNSIGNED_LONG, UNSIGNED)
    ADD(UNSIGNED_LONG_LONG, UNSIGNED)
    ADD(UINT8_T, UNSIGNED)
    ADD(UINT16_T, UNSIGNED)
    ADD(UINT32_T, UNSIGNED)
    ADD(UINT64_T, UNSIGNED)
    ADD(FLOAT, REAL)
    ADD(DOUBLE, REAL)
    ADD(REAL, REAL)
    ADD(DOUBLE_PRECISION, REAL)
    ADD(REAL4, REAL)
    ADD(REAL8, REAL)
    ADD(REAL16, REAL)
    ADD_AS(LONG_DOUBLE, REAL, LONG_DOUBLE, long double)
    ADD(C_FLOAT_COMPLEX, COMPLEX)
    ADD(C_DOUBLE_COMPLEX, COMPLEX)
    ADD(COMPLEX, COMPLEX)
    ADD(DOUBLE_COMPLEX, COMPLEX)
    ADD(COMPLEX8, COMPLEX)
    ADD(COMPLEX16, COMPLEX)
    ADD(CXX_FLOAT_COMPLEX, COMPLEX)
    ADD(CXX_DOUBLE_COMPLEX, COMPLEX)
    ADD(C_LONG_DOUBLE_COMPLEX, COMPLEX)
    ADD(CXX_LONG_DOUBLE_COMPLEX, COMPLEX)
    ADD_AS(C_BOOL, LOGICAL, BOOL, _Bool)
    ADD_AS(CXX_BOOL, LOGICAL, BOOL, _Bool)
    ADD(LOGICAL, LOGICAL)
    ADD(BYTE, BYTES)
    ADD(CHAR, NO_CLASS)
    ADD(WCHAR, NO_CLASS)
    ADD(CHARACTER, NO_CLASS)
    ADD(PACKED, NO_CLASS)
    ADD_AS(FLOAT_INT, PAIR, FLOAT_INT, float)
    ADD_AS(DOUBLE_INT, PAIR, DOUBLE_INT, double)
    ADD_AS(LONG_INT, PAIR, LONG_INT, long)
    ADD_AS(2INT, PAIR, 2INT, int)
    ADD_AS(SHORT_INT, PAIR, SHORT_INT, int)
    ADD_AS(LONG_DOUBLE_INT, PAIR, LONG_DOUBLE_INT, long double)
    ADD(2REAL, PAIR)
    ADD(2DOUBLE_PRECISION, PAIR)
    ADD(2INTEGER, PAIR)
#undef ADD
#undef ADD_AS
}

/* ---- looking up ---- */

/* Reads a type that is not in the table. */
static const struct rondo_mpi_type *read_derived(MPI_Datatype handle)
{
    struct rondo_mpi_type *type = calloc(1, sizeof(*type)), *other;
    int there = 0;
    if (type == NULL || !read_layout(handle, type)) {
        free(type);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    NEXT(Type_get_attr)(handle, keyval, (void *) &other, &there);
    if (there) { /* another thread has just read it */
        free(type);
        type = other;
    } else {
        NEXT(Type_set_attr)(handle, keyval, type);
    }
    pthread_mutex_unlock(&lock);
    return type;
}

const struct rondo_mpi_type *rondo_mpi_type_find(MPI_Datatype handle)
{
    for (size_t slot = slot_of(handle); table[slot] != NULL; slot = (slot + 1) % SLOTS)
        if (table[slot]->handle == handle)
            return table[slot];
    if (handle == MPI_DATATYPE_NULL)
        return NULL;
    struct rondo_mpi_type *type;
    int there = 0;
    if (NEXT(Type_get_attr)(handle, keyval, (void *) &type, &there) == MPI_SUCCESS && there)
        return type;
    return read_derived(handle);
}
