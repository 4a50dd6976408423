/* What a communicator says of its memory and its means, its teams, and whether it may be used: all of it local. */
#include "compat/nccl/shim.h"

#include <string.h>

#define MAGIC 0xcafebeefu

/* ---- suspending ---- */

/* The memory is the runtime's, which other communicators may be using: none of it is given back. */
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags)
{
    int idle = 0;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_COMMUNICATE, "ncclCommSuspend");
    if (result != ncclSuccess)
        return result;
    if (flags != NCCL_SUSPEND_MEM)
        result =
            rondo_nccl_fail(ncclInvalidArgument, "ncclCommSuspend: flags are 0x%x, not NCCL_SUSPEND_MEM", (unsigned) flags);
    else
        result = rondo_nccl_result(rondo_comm_status(comm->comm, NULL, &idle), "ncclCommSuspend");
    /* The call itself is one of the users; operations of the host's streams are the others. */
    if (result == ncclSuccess && (!idle || rondo_nccl_comm_users(comm) > 1))
        result = rondo_nccl_fail(ncclInvalidUsage, "ncclCommSuspend: communicator %p has operations that have not completed",
                                 (void *) comm);
    if (result == ncclSuccess)
        __atomic_store_n(&comm->suspended, 1, __ATOMIC_RELEASE);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommSuspend);

ncclResult_t pncclCommResume(ncclComm_t comm)
{
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommResume");
    if (result != ncclSuccess)
        return result;
    if (!__atomic_exchange_n(&comm->suspended, 0, __ATOMIC_ACQ_REL))
        result = rondo_nccl_fail(ncclInvalidUsage, "ncclCommResume: communicator %p is not suspended", (void *) comm);
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommResume);

ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)
{
    rondo_stats_t stats;
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommMemStats");
    if (result != ncclSuccess)
        return result;
    if (value == NULL || (int) stat < ncclStatGpuMemSuspend || (int) stat > ncclStatGpuMemTotal)
        result = rondo_nccl_fail(ncclInvalidArgument, "ncclCommMemStats: stat %d, value %p", (int) stat, (void *) value);
    else
        result = rondo_nccl_result(rondo_get_stats(comm->world->runtime, &stats), "ncclCommMemStats");
    if (result == ncclSuccess)
        *value = stat == ncclStatGpuMemSuspend     ? 0
                 : stat == ncclStatGpuMemSuspended ? (uint64_t) __atomic_load_n(&comm->suspended, __ATOMIC_ACQUIRE)
                                                   : stats.memory_reserved + stats.memory_allocated;
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommMemStats);

/* ---- properties ---- */

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *properties)
{
    ncclCommProperties_t found = {.rank = 0};
    ncclResult_t result = rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclCommQueryProperties");
    if (result != ncclSuccess)
        return result;
    if (properties == NULL || (properties->magic != MAGIC && properties->magic != RONDO_NCCL_DEVICE_MAGIC) ||
        properties->size < offsetof(ncclCommProperties_t, deviceApiSupport)) {
        result = rondo_nccl_fail(ncclInvalidArgument,
                                 "ncclCommQueryProperties: props was not initialized by NCCL_COMM_PROPERTIES_INITIALIZER");
    } else {
        /* Older programs have a shorter struct. */
        const size_t head = offsetof(ncclCommProperties_t, rank);
        const size_t bytes = properties->size < sizeof(found) ? properties->size : sizeof(found);
        found.rank = comm->rank;
        found.nRanks = comm->size;
        found.cudaDev = found.nvmlDev = comm->device;
        found.nLsaTeams = comm->size / rondo_nccl_lsa_size(comm);
        found.deviceApiSupport = comm->device >= 0 && properties->magic == RONDO_NCCL_DEVICE_MAGIC;
        found.hostRmaSupport = true;
        rondo_comm_id(comm->comm, &found.commHash);
        memcpy((char *) properties + head, (const char *) &found + head, bytes - head);
    }
    rondo_nccl_comm_let_go(comm);
    return result;
}
NCCL_EXPORT(ncclCommQueryProperties);

/* ---- teams ---- */

/* The LSA team, or the team of those with the same place in theirs. {0, 0, 0} of what is no communicator. */
static ncclTeam_t find_ranks(ncclComm_t comm, const char *function, int rails)
{
    ncclTeam_t set = {0, 0, 0};
    if (rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, function) != ncclSuccess)
        return set;
    const int lsa = rondo_nccl_lsa_size(comm);
    set = rails ? (ncclTeam_t){comm->size / lsa, comm->rank / lsa, lsa} : (ncclTeam_t){lsa, comm->rank % lsa, 1};
    rondo_nccl_comm_let_go(comm);
    return set;
}

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
    ncclTeam_t set = {0, 0, 0};
    if (rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, "ncclTeamWorld") != ncclSuccess)
        return set;
    set = (ncclTeam_t){comm->size, comm->rank, 1};
    rondo_nccl_comm_let_go(comm);
    return set;
}
NCCL_EXPORT(ncclTeamWorld);

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
    return find_ranks(comm, "ncclTeamLsa", 0);
}
NCCL_EXPORT(ncclTeamLsa);

ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
    return find_ranks(comm, "ncclTeamRail", 1);
}
NCCL_EXPORT(ncclTeamRail);

/* The world's rank, -1 where there is none. */
static int find_rank(ncclComm_t comm, ncclTeam_t set, int rank, const char *function, int lsa)
{
    int found = -1;
    if (rondo_nccl_comm_hold(comm, RONDO_NCCL_TO_MANAGE, function) != ncclSuccess)
        return found;
    const int world = comm->rank + (rank - set.rank) * set.stride;
    if (rank < 0 || rank >= set.nRanks || world < 0 || world >= comm->size) {
        rondo_nccl_fail(ncclInvalidArgument, "%s: rank %d of a team of %d", function, rank, set.nRanks);
    } else if (!lsa) {
        found = world;
    } else {
        const int size = rondo_nccl_lsa_size(comm);
        if (world / size == comm->rank / size)
            found = world % size;
        else
            rondo_nccl_fail(ncclInvalidArgument, "%s: rank %d is outside the LSA team", function, world);
    }
    rondo_nccl_comm_let_go(comm);
    return found;
}

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t set, int rank)
{
    return find_rank(comm, set, rank, "ncclTeamRankToWorld", 0);
}
NCCL_EXPORT(ncclTeamRankToWorld);

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t set, int rank)
{
    return find_rank(comm, set, rank, "ncclTeamRankToLsa", 1);
}
NCCL_EXPORT(ncclTeamRankToLsa);

/* ---- encryption ---- */

/* The key of a network's connections comes from the clique's secret; whether it encrypts is the environment's to say. */
ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *config)
{
    if (config == NULL || config->magic != MAGIC || config->size < sizeof(*config))
        return rondo_nccl_fail(ncclInvalidArgument,
                               "ncclSetEncryption: the config was not initialized by NCCL_ENCRYPTION_CONFIG_INITIALIZER");
    if (config->mode == NCCL_ENCRYPTION_MODE_NONE)
        return ncclSuccess;
    if (config->mode != NCCL_ENCRYPTION_MODE_PSK)
        return rondo_nccl_fail(ncclInvalidArgument, "ncclSetEncryption: mode %d", config->mode);
    return rondo_nccl_fail(ncclInvalidUsage,
                           "ncclSetEncryption: Rondo takes no key of the program's; RONDO_ENCRYPT=1 encrypts");
}
NCCL_EXPORT(ncclSetEncryption);
