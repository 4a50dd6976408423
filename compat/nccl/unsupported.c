/* What NCCL offers and Rondo does not: multicast memory, and what networks do for kernels of the program. Every such call
 * resolves here, so that none ends up in another library, and says why. The names come from one table; their prototypes are C's
 * without arguments, because none is looked at. */
#include <stddef.h>

/* The header's prototypes must not be seen here. */
enum { INVALID_USAGE = 5 };
struct rank_set {
    int ranks, rank, stride;
};

void rondo_nccl_not_offered(int *said, const char *name, const char *why);

#define LLA2A    "kernels have no LL all-to-all here (ncclLsaBarrierSession is offered)"
#define GIN      "no network is driven by kernels here"
#define MULTIMEM "multicast memory is off"
#define CFT      "there is no counted fabric here"

/* X(type returned, name, value returned, reason) */
#define NOT_OFFERED(X)                                                                                                         \
    X(int, ncclLLA2ACreateRequirement, INVALID_USAGE, LLA2A)                                                                   \
    X(int, ncclLLA2ACalcSlots, 0, LLA2A)                                                                                       \
    X(int, ncclGinBarrierCreateRequirement, INVALID_USAGE, GIN)                                                                \
    X(int, ncclGinOutboxCreateRequirement, INVALID_USAGE, GIN)                                                                 \
    X(int, ncclGinInboxA2ACreateRequirement, INVALID_USAGE, GIN)                                                               \
    X(int, ncclGetLsaMultimemDevicePointer, INVALID_USAGE, MULTIMEM)                                                           \
    X(int, ncclGetMultimemDevicePointer, INVALID_USAGE, MULTIMEM)                                                              \
    X(int, ncclGetMultimemDeviceLeInfo, INVALID_USAGE, CFT)                                                                    \
    X(int, ncclGetCftDeviceLeInfo, INVALID_USAGE, CFT)                                                                         \
    X(int, ncclGetPeerDeviceLeInfo, INVALID_USAGE, CFT)                                                                        \
    X(int, ncclCftBarrierCreateRequirement, INVALID_USAGE, CFT)                                                                \
    X(struct rank_set, ncclTeamCft, (struct rank_set){0}, CFT)                                                                 \
    X(struct rank_set, ncclTeamCftMultimem, (struct rank_set){0}, CFT)

#define DEFINE(type, name, value, why)                                                                                         \
    __attribute__((visibility("default"))) type p##name(void);                                                                 \
    type p##name(void)                                                                                                         \
    {                                                                                                                          \
        static int said;                                                                                                       \
        rondo_nccl_not_offered(&said, #name, why);                                                                             \
        return value;                                                                                                          \
    }                                                                                                                          \
    extern __typeof__(p##name) name __attribute__((weak, alias("p" #name), visibility("default")));
NOT_OFFERED(DEFINE)

/* NCCL's own plumbing, exported without a header. */
__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void)
{
}
