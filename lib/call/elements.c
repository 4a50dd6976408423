/* See lib/call/elements.h. */
#include "lib/call/elements.h"

#include "lib/call/user_operators.h"

static struct rondo_elements consist_of(rondo_datatype_t part, rondo_datatype_t whole)
{
    const uint32_t bytes = (uint32_t) rondo_type_bytes(part);
    return (struct rondo_elements){part, RONDO_SUM, bytes, (uint32_t) rondo_type_bytes(whole) / bytes, 1};
}

/* Of a call that moves elements: those that GPUs know, or integers as long as the elements are aligned. */
static struct rondo_elements moved(rondo_datatype_t type)
{
    const enum rondo_type_class class = rondo_type_class_of(type);
    if (rondo_type_alignment(type) == rondo_type_bytes(type) && type != RONDO_LONG_DOUBLE && class != RONDO_TYPE_OPAQUE)
        return consist_of(type, type);
    switch (rondo_type_alignment(type)) {
    case 1:
        return consist_of(RONDO_UINT8, type);
    case 4:
        return consist_of(RONDO_UINT32, type);
    default:
        return consist_of(RONDO_UINT64, type);
    }
}

struct rondo_elements rondo_elements_of(const struct rondo_call *call)
{
    const rondo_op_t op = call->op == RONDO_AVG ? RONDO_SUM : call->op;
    struct rondo_elements same = {call->type, op, (uint32_t) rondo_type_bytes(call->type), 1, 1};
    if (!rondo_collective_of(call->kind)->rule.reduces)
        return moved(call->type);
    if (rondo_op_is_user(call->op)) {
        same.type = RONDO_UINT8;
        same.op = RONDO_SUM;
        same.on_gpus = 0;
        return same;
    }
    switch (call->type) {
    case RONDO_BOOL:
        same.type = RONDO_UINT8;
        return same;
    case RONDO_COMPLEX_FLOAT:
    case RONDO_COMPLEX_DOUBLE:
        if (call->op != RONDO_PROD)
            return consist_of(call->type == RONDO_COMPLEX_FLOAT ? RONDO_FLOAT : RONDO_DOUBLE, call->type);
        break;
    default:
        if (rondo_type_class_of(call->type) == RONDO_TYPE_PAIR || call->type == RONDO_LONG_DOUBLE)
            break;
        return same;
    }
    same.on_gpus = 0;
    return same;
}
