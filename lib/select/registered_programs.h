/* Programs that users have registered with a communicator. */
#ifndef RONDO_LIB_SELECT_REGISTERED_PROGRAMS_H
#define RONDO_LIB_SELECT_REGISTERED_PROGRAMS_H

#include "lib/connection/plan_cache.h"

struct rondo_call;
struct rondo_comm;

/* The latest registered (after NULL), and so on; NULL behind the first. */
const struct rondo_registered *rondo_program_next(const struct rondo_comm *comm, const struct rondo_registered *after);
const struct rondo_algorithm *rondo_program_named(const struct rondo_comm *comm, const char *name, enum rondo_kind kind);
/* Why it cannot run the call; NULL if it can. */
const char *rondo_program_misfit(const struct rondo_comm *comm, const struct rondo_call *call,
                                 const struct rondo_registered *program);
/* Frees all of them; nothing uses them any more. */
void rondo_programs_forget(struct rondo_comm *comm);

#endif
