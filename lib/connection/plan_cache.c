/* See register.h: compiled plans are kept, because compiling costs more than binding, and every persistent operation binds. */
#include "lib/select/registered_programs.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

struct rondo_kept_plan {
    struct rondo_kept_plan *next;
    const struct rondo_algorithm *algorithm;
    struct rondo_shape shape;
    uint32_t blocks, slots;
    struct rondo_plan *plan; /* shared with the bindings that use it */
};

rondo_result_t rondo_program_keep_plan(struct rondo_comm *comm, const struct rondo_algorithm *algorithm,
                                       const struct rondo_shape *shape, uint32_t blocks, uint32_t slots,
                                       struct rondo_plan **plan)
{
    rondo_result_t status = RONDO_SUCCESS;
    pthread_mutex_lock(&comm->plan_lock);
    struct rondo_kept_plan *kept = comm->plans;
    while (kept != NULL && (kept->algorithm != algorithm || kept->blocks != blocks || kept->slots != slots ||
                            memcmp(&kept->shape, shape, sizeof(*shape)) != 0))
        kept = kept->next;
    if (kept == NULL && (kept = calloc(1, sizeof(*kept))) == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory to keep a plan");
    if (status == RONDO_SUCCESS && kept->plan == NULL) {
        status = rondo_program_plan(algorithm, shape, blocks, slots, comm->runtime->settings.check, &kept->plan);
        if (status == RONDO_SUCCESS) {
            kept->algorithm = algorithm;
            kept->shape = *shape;
            kept->blocks = blocks;
            kept->slots = slots;
            kept->next = comm->plans;
            comm->plans = kept;
        } else {
            free(kept);
        }
    }
    if (status == RONDO_SUCCESS)
        *plan = rondo_plan_share(kept->plan);
    pthread_mutex_unlock(&comm->plan_lock);
    return status;
}

void rondo_program_forget_plans(struct rondo_comm *comm)
{
    while (comm->plans != NULL) {
        struct rondo_kept_plan *kept = comm->plans;
        comm->plans = kept->next;
        rondo_plan_free(kept->plan);
        free(kept);
    }
}
