/* The plan cache (lib/connection/plan_cache.h): a list under the plan lock. Relies on lib/program to compile plans. */
#include "lib/connection/plan_cache.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

struct rondo_cached_plan {
    struct rondo_cached_plan *next;
    const struct rondo_algorithm *algorithm;
    struct rondo_shape shape;
    uint32_t blocks, slots;
    struct rondo_plan *plan; /* reference-counted: the bindings that use it have references too */
};

rondo_result_t rondo_plan_cache_get(struct rondo_comm *comm, const struct rondo_algorithm *algorithm,
                                    const struct rondo_shape *shape, uint32_t blocks, uint32_t slots, struct rondo_plan **plan)
{
    rondo_result_t status = RONDO_SUCCESS;
    pthread_mutex_lock(&comm->programs->plan_lock);
    struct rondo_cached_plan *cached = comm->programs->plans;
    while (cached != NULL && (cached->algorithm != algorithm || cached->blocks != blocks || cached->slots != slots ||
                              memcmp(&cached->shape, shape, sizeof(*shape)) != 0))
        cached = cached->next;
    if (cached == NULL && (cached = calloc(1, sizeof(*cached))) == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory to keep a plan");
    if (status == RONDO_SUCCESS && cached->plan == NULL) {
        status = rondo_program_plan(algorithm, shape, blocks, slots, comm->runtime->settings.check, &cached->plan);
        if (status == RONDO_SUCCESS) {
            cached->algorithm = algorithm;
            cached->shape = *shape;
            cached->blocks = blocks;
            cached->slots = slots;
            cached->next = comm->programs->plans;
            comm->programs->plans = cached;
        } else {
            free(cached);
        }
    }
    if (status == RONDO_SUCCESS)
        *plan = rondo_plan_share(cached->plan);
    pthread_mutex_unlock(&comm->programs->plan_lock);
    return status;
}

void rondo_plan_cache_clear(struct rondo_comm *comm)
{
    while (comm->programs->plans != NULL) {
        struct rondo_cached_plan *cached = comm->programs->plans;
        comm->programs->plans = cached->next;
        rondo_plan_free(cached->plan);
        free(cached);
    }
}
