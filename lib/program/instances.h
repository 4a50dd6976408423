/* Several instances of compiled plans. */
#ifndef RONDO_LIB_PROGRAM_INSTANCES_H
#define RONDO_LIB_PROGRAM_INSTANCES_H

#include "lib/program/plan_set.h"

/* Of plans that were compiled as one instance, and whose largest count is 1. After a failure the set is only good to be freed.
 */
rondo_result_t rondo_plans_multiply(struct rondo_plan_set *set, uint32_t instances);

#endif
