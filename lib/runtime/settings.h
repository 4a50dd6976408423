/* Reads the configuration and the environment into the values that a runtime works with. Relies on lib/base/environment.h,
 * which has the variables' defaults. */
#ifndef RONDO_LIB_RUNTIME_SETTINGS_H
#define RONDO_LIB_RUNTIME_SETTINGS_H

#include "lib/context/runtime.h"
#include "lib/select/program_files.h"

/* What only rondo_init needs. The strings belong to the environment or the configuration. */
struct rondo_startup {
    rondo_device_t device;
    int64_t blocks; /* 0: chosen by the number of cores */
    int64_t stream_blocks;
    int64_t sm;         /* multiprocessors that operations may take; 0: copy engines where they can; -1: no budget */
    int64_t slot_bytes; /* 0: the default */
    int64_t memory;     /* bytes of connector memory that the rank may reserve */
    const char *transports, *host_id, *tuning, *programs;
    struct rondo_program_files program_files; /* of programs; owned by rondo_init */
    struct rondo_policy policy;               /* budgets: in nanoseconds; 0: not given */
    int fixed;                                /* budgets do not change */
    int profile;                              /* budgets are to be measured */
};

/* Fills in both structures. A field of config that is set wins over its environment variable; config NULL:
 * RONDO_CONFIG_DEFAULT. Local. Returns RONDO_ERR_ARGUMENT with the name, the value and what is allowed, for the first wrong
 * setting. */
rondo_result_t rondo_settings_read(const rondo_config_t *config, struct rondo_settings *settings,
                                   struct rondo_startup *startup);

#endif
