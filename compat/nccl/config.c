/* ncclConfig_t: what of it means something here is whether calls block. The rest asks for resources that Rondo shares out by
 * itself, and is accepted. */
#include "compat/nccl/shim.h"

#include <stddef.h>

#define MAGIC 0xcafebeefu

/* The struct grows with NCCL's versions, and says how large the caller's is. */
#define GIVEN(config, field) ((config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

static int is_flag(int value)
{
    return value == NCCL_CONFIG_UNDEF_INT || value == 0 || value == 1;
}

ncclResult_t rondo_nccl_config_read(const ncclConfig_t *config, int *blocking, const char *function)
{
    if (config == NULL)
        return ncclSuccess;
    if (config->magic != MAGIC || config->size < offsetof(ncclConfig_t, blocking) + sizeof(int))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: the config was not initialized by NCCL_CONFIG_INITIALIZER", function);
    if (!is_flag(config->blocking))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: blocking is %d, neither 0 nor 1", function, config->blocking);
    if (GIVEN(config, splitShare) && !is_flag(config->splitShare))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: splitShare is %d, neither 0 nor 1", function, config->splitShare);
    if (GIVEN(config, minCTAs) && config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->minCTAs <= 0)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: minCTAs is %d", function, config->minCTAs);
    if (GIVEN(config, maxCTAs) && config->maxCTAs != NCCL_CONFIG_UNDEF_INT &&
        (config->maxCTAs <= 0 || (config->minCTAs != NCCL_CONFIG_UNDEF_INT && config->minCTAs > config->maxCTAs)))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: maxCTAs is %d, minCTAs %d", function, config->maxCTAs,
                               config->minCTAs);
    if (config->blocking != NCCL_CONFIG_UNDEF_INT)
        *blocking = config->blocking;
    return ncclSuccess;
}
