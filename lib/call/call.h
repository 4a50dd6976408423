/*
 * A call: what a user asked for, the same for all forms of a collective; and the sizes and names of what it consists of. Relies
 * on the table of collectives.
 */
#ifndef RONDO_LIB_CALL_CALL_H
#define RONDO_LIB_CALL_CALL_H

#include "lib/call/collective.h"

struct rondo_call {
    enum rondo_kind kind;
    const void *send;
    void *recv;
    size_t count; /* elements of a block, as the collective's function defines it */
    /* An entry for each block (struct rondo_blocks). The user's, as they were given, and NULL where the collective has none or
     * this rank's are not significant; resolved (rondo_call_resolve) they are the request's own. */
    const size_t *send_counts, *send_displacements, *receive_counts, *receive_displacements;
    const rondo_datatype_t *send_types, *receive_types; /* of the blocks; displacements are in bytes then; resolved: NULL */
    rondo_datatype_t type;
    rondo_op_t op;
    int root;                /* or the peer */
    const char *program;     /* custom: the name of the registered program, the list's own string; else NULL */
    size_t custom_chunks[2]; /* of a custom program's input and output; count elements each */
    uint32_t rate;           /* bits a value in slots; 0: as they are */
    int feedback;            /* what compression loses is fed back */
};

/* What operators a type has. OPAQUE: those of the user alone (rondo_type_create). */
enum rondo_type_class {
    RONDO_TYPE_INTEGER,
    RONDO_TYPE_FLOATING,
    RONDO_TYPE_LOGICAL,
    RONDO_TYPE_COMPLEX,
    RONDO_TYPE_PAIR,
    RONDO_TYPE_OPAQUE
};

/* How many blocks the buffers of a call have that have blocks, on the calling rank of so many. */
struct rondo_blocks {
    int rank, size;
    int sent, received;
};

/* Bytes of an element; 0 if there is no such type. */
size_t rondo_type_bytes(rondo_datatype_t type);
/* Bytes to which a buffer of such elements is aligned; 1 if there is no such type. */
size_t rondo_type_alignment(rondo_datatype_t type);
/* The class; OPAQUE also if there is no such type. */
enum rondo_type_class rondo_type_class_of(rondo_datatype_t type);
/* Names as rondo.h and the tools have them; "unknown" if there is no such type or operator. */
const char *rondo_type_name(rondo_datatype_t type);
const char *rondo_op_name(rondo_op_t op);
/* What ranks compare of an operator, a number below 256: which one it is, but of all operators of the user only whether they
 * are commutative. The second function returns an operator with the code, for its name. */
uint32_t rondo_op_code(rondo_op_t op);
rondo_op_t rondo_op_of_code(uint32_t code);
/* Whether the operator combines elements of the type; 0 also if there is no such type or operator. Operators of the user
 * combine all (lib/call/user_operators.h says whether there is such an operator). */
int rondo_op_is_defined(rondo_op_t op, rondo_datatype_t type);
/* The elements of the call's type in one rank's block of the arrays as the user gave them. With types of their own: bytes.
 * Valid types. */
static inline size_t rondo_block_count(const size_t *counts, const rondo_datatype_t *types, int rank)
{
    return counts[rank] * (types != NULL ? rondo_type_bytes(types[rank]) : 1);
}
/* Whether the output lies across the input's blocks. */
static inline int rondo_call_lies_across(const struct rondo_call *call)
{
    return call->send == RONDO_IN_PLACE && rondo_kind_lies_across(call->kind);
}
/* Makes the arrays whole, of a call whose arguments are right: in room (2 * (sent + received) entries, which the call refers to
 * from then on), in elements of the call's type, those of both buffers where there are such. In place, what is to be sent is
 * what is received. Sets count where the collective has one block, and this rank's array has its length. */
void rondo_call_resolve(struct rondo_call *call, const struct rondo_blocks *blocks, size_t *room);
/* Whether a call with arrays, whose arguments are right, would resolve to the sizes and places of one that is resolved already:
 * by what the arrays hold, never by where they lie. Kind, type, root and in-place of both are equal. */
int rondo_call_resolves_to(const struct rondo_call *call, const struct rondo_blocks *blocks, const struct rondo_call *resolved);
/* A number in which calls with arrays that differ in their counts mostly differ, the same before and after resolving. */
uint64_t rondo_call_counts_hash(const struct rondo_call *call, const struct rondo_blocks *blocks);
/* Writes a call for a message, as "allreduce(count 10, float, sum)"; always terminated, and cut off where bytes end. */
void rondo_call_describe(const struct rondo_call *call, char *text, size_t bytes);

#endif
