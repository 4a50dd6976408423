/*
 * Plans of a communicator's algorithms, compiled once, because compiling costs more than binding and every persistent operation
 * binds; and the programs that users have registered with it.
 */
#ifndef RONDO_LIB_CONNECTION_PLAN_CACHE_H
#define RONDO_LIB_CONNECTION_PLAN_CACHE_H

#include "lib/context/runtime.h"
#include "lib/program/program.h"

#include <pthread.h>

struct rondo_cached_plan;

struct rondo_comm_programs {
    struct rondo_registered *registered; /* by the user, the latest first; only ever added to */
    pthread_mutex_t plan_lock;
    struct rondo_cached_plan *plans; /* compiled (plan lock) */
};

/* As rondo_program_plan, of a plan that may have been made before; the caller frees it as any other. */
rondo_result_t rondo_plan_cache_get(struct rondo_comm *comm, const struct rondo_algorithm *algorithm,
                                    const struct rondo_shape *shape, uint32_t blocks, uint32_t slots, struct rondo_plan **plan);
/* Frees the communicator's share of all of them. */
void rondo_plan_cache_clear(struct rondo_comm *comm);

#endif
