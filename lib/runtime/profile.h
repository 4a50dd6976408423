/* RONDO_SPIN=profile: measures at init how many polls an answer from another rank takes, and sets the spin thresholds to it.
 * Relies on the world communicator. */
#ifndef RONDO_LIB_RUNTIME_PROFILE_H
#define RONDO_LIB_RUNTIME_PROFILE_H

#include "lib/context/runtime.h"

/* Sets the spin thresholds of the daemon's policy. Collective: all ranks of the world call it, wait for each other, and get the
 * same values. Called by rondo_init, before any other operation. Returns why a barrier or an exchange failed, or
 * RONDO_ERR_MEMORY. */
rondo_result_t rondo_profile(struct rondo_runtime *runtime);

#endif
