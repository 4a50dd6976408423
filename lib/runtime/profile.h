/* The "profile" setting of the spin thresholds: measures, at init, how many polls an answer from another rank takes. */
#ifndef RONDO_LIB_RUNTIME_PROFILE_H
#define RONDO_LIB_RUNTIME_PROFILE_H

#include "lib/context/runtime.h"

/* Collective over the world. Sets the daemon's policy; all ranks get the same values. */
rondo_result_t rondo_profile(struct rondo_runtime *runtime);

#endif
