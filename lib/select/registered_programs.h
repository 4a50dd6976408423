/* The programs that a user has registered with a communicator. Relies on the list in lib/connection/plan_cache.h. */
#ifndef RONDO_LIB_SELECT_REGISTERED_PROGRAMS_H
#define RONDO_LIB_SELECT_REGISTERED_PROGRAMS_H

#include "lib/connection/plan_cache.h"

struct rondo_call;
struct rondo_comm;

/* Iterates from the latest registered program to the first. after NULL: returns the latest. Returns NULL after the first. Any
 * thread, without a lock. */
const struct rondo_registered *rondo_program_next(const struct rondo_comm *comm, const struct rondo_registered *after);
/* The latest registered program of that name and kind; NULL if there is none. Any thread, without a lock. */
const struct rondo_algorithm *rondo_program_named(const struct rondo_comm *comm, const char *name, enum rondo_kind kind);
/* Returns NULL if the program can run the call, else the reason why not (static text). */
const char *rondo_program_misfit(const struct rondo_comm *comm, const struct rondo_call *call,
                                 const struct rondo_registered *program);
/* Frees all registered programs. No thread may use them any more. */
void rondo_programs_forget(struct rondo_comm *comm);

#endif
