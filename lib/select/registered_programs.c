/* The list of registered programs (lib/select/registered_programs.h). It only grows, so readers take no lock. */
#include "lib/select/registered_programs.h"

#include "lib/program/builder.h"
#include "lib/call/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct rondo_registered *rondo_program_next(const struct rondo_comm *comm, const struct rondo_registered *after)
{
    /* Acquire pairs with the release in add: an entry that is in the list is complete. */
    return after != NULL ? after->next : __atomic_load_n(&comm->programs->registered, __ATOMIC_ACQUIRE);
}

const struct rondo_algorithm *rondo_program_named(const struct rondo_comm *comm, const char *name, enum rondo_kind kind)
{
    for (const struct rondo_registered *p = rondo_program_next(comm, NULL); p != NULL; p = rondo_program_next(comm, p))
        if ((p->algorithm.kinds >> kind & 1) && strcmp(p->algorithm.name, name) == 0)
            return &p->algorithm;
    return NULL;
}

const char *rondo_program_misfit(const struct rondo_comm *comm, const struct rondo_call *call,
                                 const struct rondo_registered *program)
{
    int rooted = rondo_kind_is_rooted(call->kind);
    /* Only the root knows whether a rooted call is in place, so a program for it must support both. */
    int in_place = call->send == RONDO_IN_PLACE || (rooted && call->kind != RONDO_KIND_BCAST);
    (void) comm;
    if (rooted && (uint32_t) call->root != program->root)
        return "it is for another root";
    if (program->op >= 0 && call->op != (rondo_op_t) program->op)
        return "it is for another operator";
    if (program->in_place_only && !in_place && call->kind != RONDO_KIND_BCAST)
        return "it is for calls in place";
    if (in_place && !program->in_place)
        return "it does not run in place";
    if (program->even && call->count % program->block_chunks != 0)
        return "it needs a count that is a multiple of its chunks";
    return NULL;
}

void rondo_programs_forget(struct rondo_comm *comm)
{
    while (comm->programs->registered != NULL) {
        struct rondo_registered *program = comm->programs->registered;
        comm->programs->registered = program->next;
        rondo_program_builder_release(program->builder);
        free(program);
    }
}
