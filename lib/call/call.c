/* Sizes and names of types, and names of operators and calls, for messages (lib/call/call.h). */
#include "lib/call/call.h"

#include "device/reduce/operators.h"
#include "lib/base/error.h"
#include "lib/call/user_operators.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned char bytes, alignment, class; /* enum rondo_type_class */
} types[RONDO_DATATYPE_COUNT] = {
    [RONDO_INT8] = {"int8", 1, 1, RONDO_TYPE_INTEGER},
    [RONDO_UINT8] = {"uint8", 1, 1, RONDO_TYPE_INTEGER},
    [RONDO_INT32] = {"int32", 4, 4, RONDO_TYPE_INTEGER},
    [RONDO_UINT32] = {"uint32", 4, 4, RONDO_TYPE_INTEGER},
    [RONDO_INT64] = {"int64", 8, 8, RONDO_TYPE_INTEGER},
    [RONDO_UINT64] = {"uint64", 8, 8, RONDO_TYPE_INTEGER},
    [RONDO_FLOAT16] = {"float16", 2, 2, RONDO_TYPE_FLOATING},
    [RONDO_BFLOAT16] = {"bfloat16", 2, 2, RONDO_TYPE_FLOATING},
    [RONDO_FLOAT] = {"float", 4, 4, RONDO_TYPE_FLOATING},
    [RONDO_DOUBLE] = {"double", 8, 8, RONDO_TYPE_FLOATING},
    [RONDO_FLOAT8E4M3] = {"float8e4m3", 1, 1, RONDO_TYPE_FLOATING},
    [RONDO_FLOAT8E5M2] = {"float8e5m2", 1, 1, RONDO_TYPE_FLOATING},
    [RONDO_INT16] = {"int16", 2, 2, RONDO_TYPE_INTEGER},
    [RONDO_UINT16] = {"uint16", 2, 2, RONDO_TYPE_INTEGER},
    [RONDO_BOOL] = {"bool", 1, 1, RONDO_TYPE_LOGICAL},
    [RONDO_COMPLEX_FLOAT] = {"complex_float", 8, 4, RONDO_TYPE_COMPLEX},
    [RONDO_COMPLEX_DOUBLE] = {"complex_double", 16, 8, RONDO_TYPE_COMPLEX},
    [RONDO_LONG_DOUBLE] = {"long_double", 16, 16, RONDO_TYPE_FLOATING},
    [RONDO_FLOAT_INT] = {"float_int", 8, 4, RONDO_TYPE_PAIR},
    [RONDO_DOUBLE_INT] = {"double_int", 16, 8, RONDO_TYPE_PAIR},
    [RONDO_LONG_INT] = {"long_int", 16, 8, RONDO_TYPE_PAIR},
    [RONDO_2INT] = {"2int", 8, 4, RONDO_TYPE_PAIR},
    [RONDO_SHORT_INT] = {"short_int", 8, 4, RONDO_TYPE_PAIR},
    [RONDO_LONG_DOUBLE_INT] = {"long_double_int", 32, 16, RONDO_TYPE_PAIR},
};

/* From the rows of device/reduce/operators.h, where AVG is a sum. */
#define OF(class)                                        (1u << RONDO_TYPE_##class)
#define NUMBERS                                          (OF(INTEGER) | OF(FLOATING))
#define OPERATOR(OPERATOR_, operator_, classes_, unused) [RONDO_##OPERATOR_] = {#operator_, classes_},
static const struct {
    const char *name;
    unsigned classes; /* set of enum rondo_type_class */
} ops[RONDO_OP_COUNT] = {[RONDO_AVG] = {"avg", NUMBERS | OF(COMPLEX)},
                         RONDO_ARITHMETIC_OPERATORS(OPERATOR, NUMBERS | OF(COMPLEX), 0) /* */
                         RONDO_ORDER_OPERATORS(OPERATOR, NUMBERS, 0)                    /* */
                         RONDO_LOGICAL_OPERATORS(OPERATOR, NUMBERS | OF(LOGICAL), 0)    /* */
                         RONDO_BITWISE_OPERATORS(OPERATOR, OF(INTEGER), 0)              /* */
                         RONDO_LOCATION_OPERATORS(OPERATOR, OF(PAIR), 0)};
#undef OPERATOR
#define ONE(OPERATOR_, operator_, unused, unused_too) +1
_Static_assert(1 RONDO_INTEGER_OPERATORS(ONE, 0, 0) RONDO_LOCATION_OPERATORS(ONE, 0, 0) == RONDO_OP_COUNT,
               "each operator but AVG has a row");
#undef ONE

/* A type of rondo_type_create is its size, above all other types. */
#define OPAQUE            0x40000000u
#define OPAQUE_BYTES_MOST (OPAQUE >> 1)

static size_t opaque_bytes(rondo_datatype_t type)
{
    const unsigned bytes = (unsigned) type - OPAQUE;
    return bytes <= OPAQUE_BYTES_MOST ? bytes : 0;
}

size_t rondo_type_bytes(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT ? types[type].bytes : opaque_bytes(type);
}

size_t rondo_type_alignment(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT ? types[type].alignment : 1;
}

enum rondo_type_class rondo_type_class_of(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT ? (enum rondo_type_class) types[type].class : RONDO_TYPE_OPAQUE;
}

const char *rondo_type_name(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT ? types[type].name : opaque_bytes(type) > 0 ? "opaque" : "unknown";
}

const char *rondo_op_name(rondo_op_t op)
{
    if ((unsigned) op < RONDO_OP_COUNT)
        return ops[op].name;
    return !rondo_op_is_user(op) ? "unknown" : rondo_op_is_ordered(op) ? "user's, ordered" : "user's";
}

uint32_t rondo_op_code(rondo_op_t op)
{
    return !rondo_op_is_user(op) ? (uint32_t) op : RONDO_OP_COUNT + (uint32_t) rondo_op_is_ordered(op);
}

rondo_op_t rondo_op_of_code(uint32_t code)
{
    return (rondo_op_t) (code < RONDO_OP_COUNT    ? code
                         : code == RONDO_OP_COUNT ? RONDO_OP_USER
                                                  : RONDO_OP_USER | RONDO_OP_ORDERED);
}

int rondo_op_is_defined(rondo_op_t op, rondo_datatype_t type)
{
    if (rondo_op_is_user(op))
        return rondo_type_bytes(type) != 0;
    return (unsigned) op < RONDO_OP_COUNT && rondo_type_bytes(type) != 0 && (ops[op].classes >> rondo_type_class_of(type) & 1);
}

rondo_result_t rondo_datatype_size(rondo_datatype_t type, size_t *bytes)
{
    if (bytes == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "bytes is NULL");
    if (rondo_type_bytes(type) == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "unknown datatype %d", (int) type);
    *bytes = rondo_type_bytes(type);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_type_create(size_t bytes, rondo_datatype_t *type)
{
    if (type == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_type_create: type is NULL");
    *type = RONDO_DATATYPE_NONE;
    if (bytes < 1 || bytes > OPAQUE_BYTES_MOST)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_type_create: %zu bytes are not between 1 and %u", bytes,
                          OPAQUE_BYTES_MOST);
    *type = (rondo_datatype_t) (OPAQUE + (unsigned) bytes);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_type_free(rondo_datatype_t *type)
{
    if (type == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_type_free: type is NULL");
    if (opaque_bytes(*type) == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_type_free: %d (%s) is not a type of rondo_type_create()", (int) *type,
                          rondo_type_name(*type));
    *type = RONDO_DATATYPE_NONE;
    return RONDO_SUCCESS;
}

void rondo_call_describe(const struct rondo_call *call, char *text, size_t bytes)
{
    const struct rondo_collective *collective = rondo_collective_of(call->kind);
    const rondo_collective_t *rule = &collective->rule;
    char root[40] = "", rate[32] = "", type[32];
    if (rule->rooted || rule->point_to_point)
        snprintf(root, sizeof(root), ", %s %d", rule->rooted ? "root" : "peer", call->root);
    if (call->rate != 0)
        snprintf(rate, sizeof(rate), ", rate %u%s", call->rate, call->feedback ? " fed back" : "");
    snprintf(type, sizeof(type), "%s", rondo_type_name(call->type));
    if (opaque_bytes(call->type) > 0)
        snprintf(type, sizeof(type), "%zu bytes each", opaque_bytes(call->type));
    if (collective->agreement == RONDO_AGREE_NOTHING)
        snprintf(text, bytes, "%s()", rule->name);
    else if (collective->agreement == RONDO_AGREE_KIND)
        snprintf(text, bytes, "%s(own types)", rule->name);
    else if (collective->agreement == RONDO_AGREE_TYPE)
        snprintf(text, bytes, "%s(%s%s%s)", rule->name, type, root, rate);
    else
        snprintf(text, bytes, "%s(%s%scount %zu, %s%s%s%s%s)", rule->name, call->program != NULL ? call->program : "",
                 call->program != NULL ? ", " : "", call->count, type, rule->reduces ? ", " : "",
                 rule->reduces ? rondo_op_name(call->op) : "", root, rate);
}
