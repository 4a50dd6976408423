/* ncclConfig_t and ncclCollConfig_t: what of them means something here is whether calls block, how many multiprocessors
 * operations take, and the event of a launch. The rest asks for resources that Rondo shares out by itself, and is accepted; a
 * choice of algorithms that must hold is refused.
 */
#include "compat/nccl/shim.h"

#include <stddef.h>

#define MAGIC 0xcafebeefu

/* The struct grows with NCCL's versions, and says how large the caller's is. */
#define GIVEN(config, field) ((config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

static int is_flag(int value)
{
    return value == NCCL_CONFIG_UNDEF_INT || value == 0 || value == 1;
}

static ncclResult_t check_blocks(int least, int most, const char *function)
{
    if (least != NCCL_CONFIG_UNDEF_INT && least <= 0)
        return rondo_nccl_fail(ncclInvalidArgument, "%s: minCTAs is %d", function, least);
    if (most != NCCL_CONFIG_UNDEF_INT && (most <= 0 || (least != NCCL_CONFIG_UNDEF_INT && least > most)))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: maxCTAs is %d, minCTAs %d", function, most, least);
    return ncclSuccess;
}

/* NCCL's least is its choice's lower end, which Rondo does not need. */
static void read_budget(const ncclConfig_t *config, struct rondo_nccl_budget *budget)
{
    if (GIVEN(config, maxCTAs) && config->maxCTAs != NCCL_CONFIG_UNDEF_INT)
        budget->most = config->maxCTAs;
    if (GIVEN(config, CTAPolicy) && config->CTAPolicy != NCCL_CONFIG_UNDEF_INT)
        budget->zero = (config->CTAPolicy & NCCL_CTA_POLICY_ZERO) != 0;
}

ncclResult_t rondo_nccl_config_read(const ncclConfig_t *config, int *blocking, struct rondo_nccl_budget *budget,
                                    const char *function)
{
    if (config == NULL)
        return ncclSuccess;
    if (config->magic != MAGIC || config->size < offsetof(ncclConfig_t, blocking) + sizeof(int))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: the config was not initialized by NCCL_CONFIG_INITIALIZER", function);
    if (!is_flag(config->blocking))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: blocking is %d, neither 0 nor 1", function, config->blocking);
    if (GIVEN(config, splitShare) && !is_flag(config->splitShare))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: splitShare is %d, neither 0 nor 1", function, config->splitShare);
    ncclResult_t result = check_blocks(GIVEN(config, minCTAs) ? config->minCTAs : NCCL_CONFIG_UNDEF_INT,
                                       GIVEN(config, maxCTAs) ? config->maxCTAs : NCCL_CONFIG_UNDEF_INT, function);
    if (result != ncclSuccess)
        return result;
    if (config->blocking != NCCL_CONFIG_UNDEF_INT)
        *blocking = config->blocking;
    if (budget != NULL)
        read_budget(config, budget);
    return ncclSuccess;
}

/* NCCL 2.32's, whose last field 2.31's does not have. */
struct call_config {
    size_t size;
    unsigned int magic, version;
    const void *extensions;
    int least, most, multicast_blocks, cluster;
    const char *algorithms;
    int algorithms_must_hold, policy;
    uint64_t tag;
    cudaEvent_t launch;
};
_Static_assert(offsetof(struct call_config, tag) == offsetof(ncclCollConfig_t, userProfilerTag), "as ncclCollConfig_t");

ncclResult_t rondo_nccl_call_config_read(const ncclCollConfig_t *given, const struct ncclComm *comm, cudaEvent_t *launch,
                                         const char *function)
{
    const struct call_config *config = (const void *) given;
    if (config == NULL)
        return ncclSuccess;
    if (config->magic != MAGIC || config->size < offsetof(struct call_config, launch))
        return rondo_nccl_fail(ncclInvalidArgument, "%s: the config was not initialized by NCCL_COLLCONFIG_INITIALIZER",
                               function);
    if (config->algorithms_must_hold != 0 && config->algorithms != NULL && *config->algorithms != '\0')
        return rondo_nccl_fail(ncclInvalidArgument, "%s: algSelection \"%s\": Rondo chooses, unless forceAlgSelection is 0",
                               function, config->algorithms);
    *launch = config->size >= sizeof(*config) ? config->launch : NULL;
    if (*launch != NULL && comm->device < 0)
        return rondo_nccl_fail(ncclInvalidUsage, "%s: the host device has no events (launchCompletionEvent %p)", function,
                               (void *) *launch);
    return check_blocks(config->least, config->most, function);
}
