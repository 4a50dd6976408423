/* Which device a rank runs on, and its making. */
#ifndef RONDO_LIB_RUNTIME_OPEN_DEVICE_H
#define RONDO_LIB_RUNTIME_OPEN_DEVICE_H

#include "lib/context/runtime.h"
#include "lib/runtime/settings.h"

/* Sets the runtime's device_type and device_index: a GPU if there is one and the host device was not asked for. Its index is
 * the configuration's, else follows from the rank on its host if the launcher tells it (-1: it does not), else from the rank in
 * the world. RONDO_ERR_UNSUPPORTED, RONDO_ERR_ARGUMENT with the reason. */
rondo_result_t rondo_choose_device(struct rondo_runtime *runtime, const rondo_config_t *config, int local_rank,
                                   const struct rondo_startup *startup);
/* Makes the runtime's device with the policy that fits it, and runtime->nothing. The peers are known. Errors of the device's
 * kind. */
rondo_result_t rondo_open_device(struct rondo_runtime *runtime, struct rondo_startup *startup);

#endif
