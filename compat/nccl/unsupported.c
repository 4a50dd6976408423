/* What NCCL 2.28 exports and Rondo does not offer: memory that kernels of the program reach other ranks' through. Every such
 * call resolves here and says so once, so that none ends up in another library. The names come from one table; their prototypes
 * are C's without arguments, because none is looked at. */
#include <stddef.h>

/* The header's prototypes must not be seen here. */
enum { INVALID_USAGE = 5 };
struct rank_set {
    int ranks, rank, stride;
};

void rondo_nccl_not_offered(int *said, const char *name);

/* X(type returned, name, value returned) */
#define NOT_OFFERED(X)                                                                                                         \
    X(int, ncclDevCommCreate, INVALID_USAGE)                                                                                   \
    X(int, ncclDevCommDestroy, INVALID_USAGE)                                                                                  \
    X(int, ncclGinBarrierCreateRequirement, INVALID_USAGE)                                                                     \
    X(int, ncclLsaBarrierCreateRequirement, INVALID_USAGE)                                                                     \
    X(int, ncclLLA2ACreateRequirement, INVALID_USAGE)                                                                          \
    X(int, ncclLLA2ACalcSlots, 0)                                                                                              \
    X(struct rank_set, ncclTeamWorld, (struct rank_set){0})                                                                    \
    X(struct rank_set, ncclTeamLsa, (struct rank_set){0})                                                                      \
    X(struct rank_set, ncclTeamRail, (struct rank_set){0})                                                                     \
    X(int, ncclTeamRankToWorld, -1)                                                                                            \
    X(int, ncclTeamRankToLsa, -1)

#define DEFINE(type, name, value)                                                                                              \
    __attribute__((visibility("default"))) type p##name(void);                                                                 \
    type p##name(void)                                                                                                         \
    {                                                                                                                          \
        static int said;                                                                                                       \
        rondo_nccl_not_offered(&said, #name);                                                                                  \
        return value;                                                                                                          \
    }                                                                                                                          \
    extern __typeof__(p##name) name __attribute__((weak, alias("p" #name), visibility("default")));
NOT_OFFERED(DEFINE)

/* NCCL's own plumbing, exported without a header. */
__attribute__((visibility("default"))) void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void)
{
}
