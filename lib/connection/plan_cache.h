/*
 * The plan cache of a communicator, and its list of registered programs. A plan is compiled once, because compiling takes
 * longer than binding and every persistent operation binds. Relies on lib/program.
 */
#ifndef RONDO_LIB_CONNECTION_PLAN_CACHE_H
#define RONDO_LIB_CONNECTION_PLAN_CACHE_H

#include "lib/context/runtime.h"
#include "lib/program/program.h"

#include <pthread.h>

struct rondo_cached_plan;

struct rondo_comm_programs {
    struct rondo_registered *registered; /* latest first; entries are added and never removed before the end */
    pthread_mutex_t plan_lock;
    struct rondo_cached_plan *plans; /* the cache; plan lock */
};

/* As rondo_program_plan, but returns a cached plan if there is one. The caller owns a reference and frees it as any other plan.
 * Any thread; takes the plan lock. */
rondo_result_t rondo_plan_cache_get(struct rondo_comm *comm, const struct rondo_algorithm *algorithm,
                                    const struct rondo_shape *shape, uint32_t blocks, uint32_t slots, struct rondo_plan **plan);
/* Drops the communicator's reference to every cached plan. No other thread may use the cache. */
void rondo_plan_cache_clear(struct rondo_comm *comm);

#endif
