/* See tools/common/composites.h. */
#include "tools/common/composites.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

enum { LONG_DOUBLE_BYTES = LDBL_MANT_DIG == 64 ? 10 : 16 }; /* the others pad it */

static bool is_complex(rondo_datatype_t type)
{
    return type == RONDO_COMPLEX_FLOAT || type == RONDO_COMPLEX_DOUBLE;
}

bool composites_are(rondo_datatype_t type, rondo_op_t op)
{
    return (is_complex(type) && op == RONDO_PROD) || (type >= RONDO_FLOAT_INT && type <= RONDO_LONG_DOUBLE_INT);
}

/* Few values and few indexes, so that equal ones meet. Parts of factors are up to 2, of which eight have an exact product. */
struct composite composites_value(rondo_datatype_t type, uint64_t random, bool contributes)
{
    struct composite one = {1, 0, 0, 0};
    if (!is_complex(type))
        return (struct composite){0, 0, (int32_t) (random % 7) - 3, (int32_t) (random >> 32) % 1000};
    if (!contributes)
        return one;
    return (struct composite){(double) (random % 5) - 2, (double) (random >> 16 & 3) + 1, 0, 0};
}

struct composite composites_combine(rondo_datatype_t type, rondo_op_t op, struct composite a, struct composite b)
{
    if (is_complex(type))
        return (struct composite){a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real, 0,
                                  0};
    if (a.value == b.value)
        return a.index < b.index ? a : b;
    return (a.value < b.value) == (op == RONDO_MINLOC) ? a : b;
}

/* Writes the value at the beginning of the element, and its index behind. */
#define PAIR(type, value, index, element)                                                                                      \
    do {                                                                                                                       \
        struct {                                                                                                               \
            type first;                                                                                                        \
            int second;                                                                                                        \
        } pair;                                                                                                                \
        type first = (type) (value);                                                                                           \
        int second = (index);                                                                                                  \
        memset((element), 0, sizeof(pair));                                                                                    \
        memcpy((element), &first, sizeof(first) == sizeof(long double) ? LONG_DOUBLE_BYTES : sizeof(first));                   \
        memcpy((char *) (element) + offsetof(__typeof__(pair), second), &second, sizeof(second));                              \
    } while (0)

void composites_store(rondo_datatype_t type, struct composite value, void *element)
{
    float parts[2] = {(float) value.real, (float) value.imaginary};
    double long_parts[2] = {value.real, value.imaginary};
    switch (type) {
    case RONDO_COMPLEX_FLOAT:
        memcpy(element, parts, sizeof(parts));
        return;
    case RONDO_COMPLEX_DOUBLE:
        memcpy(element, long_parts, sizeof(long_parts));
        return;
    case RONDO_FLOAT_INT:
        PAIR(float, value.value, value.index, element);
        return;
    case RONDO_DOUBLE_INT:
        PAIR(double, value.value, value.index, element);
        return;
    case RONDO_LONG_INT:
        PAIR(long, value.value, value.index, element);
        return;
    case RONDO_SHORT_INT:
        PAIR(short, value.value, value.index, element);
        return;
    case RONDO_LONG_DOUBLE_INT:
        PAIR(long double, value.value, value.index, element);
        return;
    default:
        PAIR(int, value.value, value.index, element);
        return;
    }
}

bool composites_differ(rondo_datatype_t type, const void *a, const void *b)
{
    float x[2], y[2];
    double long_x[2], long_y[2];
    size_t bytes = 0;
    rondo_datatype_size(type, &bytes);
    if (memcmp(a, b, bytes) == 0)
        return false;
    if (type == RONDO_COMPLEX_FLOAT) {
        memcpy(x, a, sizeof(x));
        memcpy(y, b, sizeof(y));
        return x[0] != y[0] || x[1] != y[1];
    }
    if (type == RONDO_COMPLEX_DOUBLE) {
        memcpy(long_x, a, sizeof(long_x));
        memcpy(long_y, b, sizeof(long_y));
        return long_x[0] != long_y[0] || long_x[1] != long_y[1];
    }
    return true;
}
