/* Programs that users have registered with a communicator, and the plans that it keeps. */
#ifndef RONDO_LIB_SELECT_REGISTERED_PROGRAMS_H
#define RONDO_LIB_SELECT_REGISTERED_PROGRAMS_H

#include "lib/program/program.h"
#include "lib/context/runtime.h"

/* The latest registered (after NULL), and so on; NULL behind the first. */
const struct rondo_registered *rondo_program_next(const struct rondo_comm *comm, const struct rondo_registered *after);
const struct rondo_algorithm *rondo_program_named(const struct rondo_comm *comm, const char *name, enum rondo_kind kind);
/* Why it cannot run the call; NULL if it can. */
const char *rondo_program_misfit(const struct rondo_comm *comm, const struct rondo_call *call,
                                 const struct rondo_registered *program);
/* Messages that a connector of the lane holds: on GPUs an instruction takes two slots for one, and on networks (single: see
 * rondo_algorithm_single) several. */
uint32_t rondo_program_slots(const struct rondo_host_lane *lane, int single);
void rondo_programs_forget(struct rondo_comm *comm);

/* As rondo_program_plan, of a plan that may have been made before; to be freed as any other. */
rondo_result_t rondo_program_keep_plan(struct rondo_comm *comm, const struct rondo_algorithm *algorithm,
                                       const struct rondo_shape *shape, uint32_t blocks, uint32_t slots,
                                       struct rondo_plan **plan);
void rondo_program_forget_plans(struct rondo_comm *comm);

#endif
