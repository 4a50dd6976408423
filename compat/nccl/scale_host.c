/* The multiplication of compat/nccl/scale.h for the host device: plain loops over the engine's own operators. */
#include "compat/nccl/scale.h"

#include "device/reduce/operators.h"

/* Elements may lie anywhere: the compiler sees through the copies. */
#define SCALE(SUFFIX, name, storage, accumulator)                                                                              \
    static void scale_##name(char *to, const char *from, size_t count, const void *scalar)                                     \
    {                                                                                                                          \
        storage factor, element;                                                                                               \
        memcpy(&factor, scalar, sizeof(factor));                                                                               \
        for (size_t i = 0; i < count; i++) {                                                                                   \
            memcpy(&element, from + i * sizeof(element), sizeof(element));                                                     \
            element = rondo_store_##name(rondo_prod_##accumulator(rondo_load_##name(element), rondo_load_##name(factor)));     \
            memcpy(to + i * sizeof(element), &element, sizeof(element));                                                       \
        }                                                                                                                      \
    }
RONDO_NCCL_TYPES(SCALE)

void rondo_nccl_scale_host(void *to, const void *from, size_t count, rondo_datatype_t type, const void *scalar)
{
    switch (type) {
#define CASE(SUFFIX, name, storage, accumulator)                                                                               \
    case RONDO_##SUFFIX:                                                                                                       \
        scale_##name(to, from, count, scalar);                                                                                 \
        break;
        RONDO_NCCL_TYPES(CASE)
    default:
        break;
    }
}
