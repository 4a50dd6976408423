/* See raw.h. */
#include "lib/program/msccl_ir.h"

#include "lib/base/error.h"
#include "lib/program/msccl_ir_run.h"

#include <stdlib.h>
#include <string.h>

void rondo_raw_free(struct rondo_raw *raw)
{
    if (raw == NULL)
        return;
    free(raw->ranks);
    free(raw->blocks);
    free(raw->steps);
    free(raw);
}

static rondo_result_t attempt(struct rondo_raw *raw, const char *name, const struct rondo_compile_options *options,
                              struct rondo_plan_set *set)
{
    struct rondo_raw_playing p = {.raw = raw, .name = name, .options = options};
    rondo_result_t status = rondo_raw_play(&p);
    if (status == RONDO_SUCCESS)
        status = rondo_raw_write_plans(&p, set);
    rondo_raw_play_release(&p);
    return status;
}

static rondo_result_t make_set(const struct rondo_raw *raw, struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = calloc(1, sizeof(*set));
    if (set != NULL) {
        set->conditions = raw->conditions;
        set->plans = calloc(raw->conditions.ranks, sizeof(struct rondo_plan *));
    }
    *result = set;
    return set == NULL || set->plans == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory for %u ranks", raw->conditions.ranks)
                                             : RONDO_SUCCESS;
}

/* Programs have been seen in both readings of what a reduction's source means; the first that the checker accepts is taken. Of
 * chunks of any length rather than of equally long ones, if it may be. */
rondo_result_t rondo_raw_compile(const struct rondo_raw *given, const char *name, const struct rondo_compile_options *options,
                                 struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = NULL;
    struct rondo_raw copy = *given, *raw = &copy; /* its notes on ranks are this call's own */
    struct rondo_check_limits limits = {options->slots, RONDO_COMPILE_BLOCKS_MAX, 0};
    rondo_result_t status = RONDO_SUCCESS;
    char message[512] = "";
    raw->ranks = malloc(raw->conditions.ranks * sizeof(*raw->ranks));
    if (raw->ranks == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", name);
    memcpy(raw->ranks, given->ranks, raw->conditions.ranks * sizeof(*raw->ranks));
    for (int reading = 0; reading < 2; reading++) {
        raw->source_is_destination = reading;
        for (uint32_t rank = 0; rank < raw->conditions.ranks; rank++)
            raw->ranks[rank].copied = 0;
        status = make_set(raw, &set);
        if (status == RONDO_SUCCESS)
            status = attempt(raw, name, options, set);
        for (int even = 0; even < 2 && status == RONDO_SUCCESS; even++) {
            set->even = even;
            for (uint32_t rank = 0; rank < raw->conditions.ranks; rank++)
                set->plans[rank]->even = even;
            if (rondo_check_plans(set, name, &limits, rondo_conditions_always_shared(&raw->conditions)) == RONDO_SUCCESS) {
                *result = set;
                free(raw->ranks);
                return RONDO_SUCCESS;
            }
        }
        if (reading == 0)
            strncpy(message, rondo_last_error(), sizeof(message) - 1);
        rondo_plan_set_free(set);
        set = NULL;
    }
    free(raw->ranks);
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s", message);
}
