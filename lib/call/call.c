/* Sizes and names of types, and names of operators and calls, for messages (lib/call/call.h). */
#include "lib/call/call.h"

#include "device/reduce/operators.h"
#include "lib/base/error.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned char bytes, integer;
} types[RONDO_DATATYPE_COUNT] = {
    {"int8", 1, 1},    {"uint8", 1, 1},    {"int32", 4, 1}, {"uint32", 4, 1}, {"int64", 8, 1},      {"uint64", 8, 1},
    {"float16", 2, 0}, {"bfloat16", 2, 0}, {"float", 4, 0}, {"double", 8, 0}, {"float8e4m3", 1, 0}, {"float8e5m2", 1, 0},
};
/* From the rows of device/reduce/operators.h, where AVG is a sum. */
#define OPERATOR(OPERATOR_, operator_, integers_only, unused) [RONDO_##OPERATOR_] = {#operator_, integers_only},
static const struct {
    const char *name;
    unsigned char integers_only;
} ops[RONDO_OP_COUNT] = {[RONDO_AVG] = {"avg", 0}, RONDO_OPERATORS(OPERATOR, 0, 0) RONDO_BITWISE_OPERATORS(OPERATOR, 1, 0)};
#undef OPERATOR
#define ONE(OPERATOR_, operator_, unused, unused_too) +1
_Static_assert(1 RONDO_INTEGER_OPERATORS(ONE, 0, 0) == RONDO_OP_COUNT, "each operator but AVG has a row");
#undef ONE

size_t rondo_type_bytes(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT ? types[type].bytes : 0;
}

int rondo_type_is_integer(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT && types[type].integer;
}

const char *rondo_type_name(rondo_datatype_t type)
{
    return (unsigned) type < RONDO_DATATYPE_COUNT ? types[type].name : "unknown";
}

const char *rondo_op_name(rondo_op_t op)
{
    return (unsigned) op < RONDO_OP_COUNT ? ops[op].name : "unknown";
}

int rondo_op_is_defined(rondo_op_t op, rondo_datatype_t type)
{
    return (unsigned) op < RONDO_OP_COUNT && rondo_type_bytes(type) != 0 &&
           (!ops[op].integers_only || rondo_type_is_integer(type));
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

void rondo_call_describe(const struct rondo_call *call, char *text, size_t bytes)
{
    const struct rondo_collective *collective = rondo_collective_of(call->kind);
    const rondo_collective_t *rule = &collective->rule;
    char root[40] = "", rate[32] = "";
    if (rule->rooted || rule->point_to_point)
        snprintf(root, sizeof(root), ", %s %d", rule->rooted ? "root" : "peer", call->root);
    if (call->rate != 0)
        snprintf(rate, sizeof(rate), ", rate %u%s", call->rate, call->feedback ? " fed back" : "");
    if (collective->agreement == RONDO_AGREE_NOTHING)
        snprintf(text, bytes, "%s()", rule->name);
    else if (collective->agreement == RONDO_AGREE_TYPE)
        snprintf(text, bytes, "%s(%s%s)", rule->name, rondo_type_name(call->type), rate);
    else
        snprintf(text, bytes, "%s(count %zu, %s%s%s%s%s)", rule->name, call->count, rondo_type_name(call->type),
                 rule->reduces ? ", " : "", rule->reduces ? rondo_op_name(call->op) : "", root, rate);
}
