/* From configuration and environment to the values a runtime works with. */
#ifndef RONDO_LIB_RUNTIME_SETTINGS_H
#define RONDO_LIB_RUNTIME_SETTINGS_H

#include "lib/context/runtime.h"

struct rondo_startup {
    rondo_device_t device;
    int64_t blocks; /* 0: by cores */
    int64_t stream_blocks;
    int64_t slot_bytes, memory;
    const char *transports, *host_id, *spin, *tuning;
    struct rondo_policy policy;
    int spin_given; /* the polls of the policy were asked for */
};

/* config may be NULL. RONDO_ERR_ARGUMENT with the name and value of what is wrong. */
rondo_result_t rondo_settings_read(const rondo_config_t *config, struct rondo_settings *settings,
                                   struct rondo_startup *startup);

#endif
