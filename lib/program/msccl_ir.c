/* Compiles a program out of a file: executes it, makes plans, and lets verification choose among the readings. See
 * lib/program/msccl_ir.h. */
#include "lib/program/msccl_ir.h"

#include "lib/base/error.h"
#include "lib/program/msccl_ir_run.h"

#include <stdlib.h>
#include <string.h>

void rondo_msccl_ir_free(struct rondo_msccl_ir *ir)
{
    if (ir == NULL)
        return;
    free(ir->ranks);
    free(ir->blocks);
    free(ir->steps);
    free(ir);
}

static rondo_result_t attempt(struct rondo_msccl_ir *ir, const char *name, const struct rondo_compile_options *options,
                              struct rondo_plan_set *set)
{
    struct rondo_msccl_ir_execution execution = {.ir = ir, .name = name, .options = options};
    rondo_result_t status = rondo_msccl_ir_execute(&execution);
    if (status == RONDO_SUCCESS)
        status = rondo_msccl_ir_write_plans(&execution, set);
    rondo_msccl_ir_execute_release(&execution);
    return status;
}

static rondo_result_t make_set(const struct rondo_msccl_ir *ir, struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = calloc(1, sizeof(*set));
    if (set != NULL) {
        set->conditions = ir->conditions;
        set->plans = calloc(ir->conditions.ranks, sizeof(struct rondo_plan *));
    }
    *result = set;
    return set == NULL || set->plans == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory for %u ranks", ir->conditions.ranks)
                                             : RONDO_SUCCESS;
}

/* Files exist in both readings of what the source of a reduction means; the first that verification accepts is taken: for
 * chunks of any length rather than for equally long ones, if possible. A verification that cannot be carried out is no verdict:
 * it ends the compilation, because this rank would else take another reading than the others. */
rondo_result_t rondo_msccl_ir_compile(const struct rondo_msccl_ir *given, const char *name,
                                      const struct rondo_compile_options *options, struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = NULL;
    struct rondo_msccl_ir copy = *given, *ir = &copy; /* its notes on ranks are this call's own */
    struct rondo_verify_limits limits = {options->slots, RONDO_COMPILE_BLOCKS_MAX, 0};
    rondo_result_t status = RONDO_SUCCESS;
    char message[512] = "";
    ir->ranks = malloc(ir->conditions.ranks * sizeof(*ir->ranks));
    if (ir->ranks == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", name);
    memcpy(ir->ranks, given->ranks, ir->conditions.ranks * sizeof(*ir->ranks));
    for (int reading = 0; reading < 2 && status != RONDO_ERR_MEMORY; reading++) {
        ir->source_is_destination = reading;
        for (uint32_t rank = 0; rank < ir->conditions.ranks; rank++)
            ir->ranks[rank].copied = 0;
        status = make_set(ir, &set);
        if (status == RONDO_SUCCESS)
            status = attempt(ir, name, options, set);
        for (int even = 0; even < 2 && status == RONDO_SUCCESS; even++) {
            set->even = even;
            for (uint32_t rank = 0; rank < ir->conditions.ranks; rank++)
                set->plans[rank]->even = even;
            status = rondo_verify_plans(set, name, &limits, rondo_conditions_always_shared(&ir->conditions));
            if (status == RONDO_SUCCESS) {
                *result = set;
                free(ir->ranks);
                return RONDO_SUCCESS;
            }
            if (status != RONDO_ERR_MEMORY)
                status = RONDO_SUCCESS; /* not in this reading */
        }
        if (reading == 0 || status == RONDO_ERR_MEMORY)
            strncpy(message, rondo_last_error(), sizeof(message) - 1);
        rondo_plan_set_free(set);
        set = NULL;
    }
    free(ir->ranks);
    return rondo_fail(status == RONDO_ERR_MEMORY ? status : RONDO_ERR_ARGUMENT, "%s", message);
}
