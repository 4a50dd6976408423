/* How long a wait may take before its task is preempted (DFCCL's spin thresholds): what is asked for, else what suits the
 * device, or, by RONDO_SPIN=profile, what is measured at init. All in nanoseconds. */
#ifndef RONDO_LIB_RUNTIME_SPIN_H
#define RONDO_LIB_RUNTIME_SPIN_H

#include "lib/context/runtime.h"

/* What a waiting block has around it. */
enum rondo_spin_place {
    RONDO_SPIN_ON_HOST,
    RONDO_SPIN_ON_SHARED_CORES, /* blocks outnumber the host's processors */
    RONDO_SPIN_ACROSS_HOSTS,    /* on a host, and ranks are on several */
    RONDO_SPIN_ON_GPU,
    RONDO_SPIN_PLACES
};

/* The budgets at such a place. asked: 0 in a field that is not given. */
struct rondo_budgets rondo_spin_budgets(const struct rondo_budgets *asked, enum rondo_spin_place place);
/* Measures how long an answer from another rank takes, and sets the budgets to what suits that. Collective: all ranks of the
 * world call it, wait for each other, and get the same values. Called by rondo_init, before any other operation. Returns why a
 * barrier or an exchange failed, or RONDO_ERR_MEMORY. */
rondo_result_t rondo_spin_profile(struct rondo_runtime *runtime);

/* The part of the daemon's policy that says how long waits are. */
struct rondo_spin {
    struct rondo_budgets budgets;
    uint32_t decay, boost; /* as in struct rondo_policy */
};
/* What is in force, and another one instead, for measurements: on all ranks alike, while none has an operation under way.
 * Errors of a wrong handle, and of a GPU. */
rondo_result_t rondo_spin_get(rondo_t runtime, struct rondo_spin *spin);
rondo_result_t rondo_spin_set(rondo_t runtime, const struct rondo_spin *spin);
/* What RONDO_SPIN=profile would put in force. Collective, as rondo_spin_profile. */
rondo_result_t rondo_spin_measure(rondo_t runtime, struct rondo_spin *spin);

#endif
