/*
 * nccl.h, and what newer headers than the one of this build declare, with the same types: NCCL 2.32.3's host interface whole,
 * whichever header a build has. A function may be declared again by a newer nccl.h; structs and enumerations are left to it.
 */
#ifndef RONDO_COMPAT_NCCL_INTERFACE_H
#define RONDO_COMPAT_NCCL_INTERFACE_H

#pragma GCC visibility push(default)
#include "compat/nccl/device/nccl_device.h"

#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

/* The newest interface that is offered whole. */
#define RONDO_NCCL_INTERFACE_VERSION 23203

#ifdef __cplusplus
extern "C" {
#endif

#undef ncclResetDebugInit /* the functions, where the header has made nothing of them */
#undef pncclResetDebugInit
void ncclResetDebugInit(void);
void pncclResetDebugInit(void);

#ifndef NCCL_REVOKE_DEFAULT /* the first headers of 2.28 do not have it */
#define NCCL_REVOKE_DEFAULT 0x00
#endif

/* ---- since 2.29 ---- */

#if NCCL_VERSION_CODE < 22900
typedef struct {
    int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;
#endif

/* ---- since 2.30 ---- */

#if NCCL_VERSION_CODE < 23000
#define NCCL_SUSPEND_MEM 0x01
typedef enum {
    ncclStatGpuMemSuspend = 0,
    ncclStatGpuMemSuspended = 1,
    ncclStatGpuMemPersist = 2,
    ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;
#endif

/* ---- since 2.31 ---- */

#if NCCL_VERSION_CODE < 23100
typedef struct ncclParamHandle *ncclParamHandle_t;
typedef struct ncclConfigExt {
    struct ncclConfigExt *next;
    struct {
        int vendorId, optionId;
    } key;
    union {
        int i;
        const char *s;
        void *raw;
    } val;
} ncclConfigExt_t;
typedef struct ncclCollConfig_v23200 {
    size_t size;
    unsigned int magic, version;
    ncclConfigExt_t *ext;
    int minCTAs, maxCTAs, nvlsCTAs, cgaClusterSize;
    const char *algSelection;
    int forceAlgSelection, CTAPolicy;
    uint64_t userProfilerTag;
    cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;
#define NCCL_COLLCONFIG_INITIALIZER                                                                                            \
    {                                                                                                                          \
        sizeof(ncclCollConfig_t), 0xcafebeef, RONDO_NCCL_INTERFACE_VERSION, NULL, NCCL_CONFIG_UNDEF_INT,                       \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NULL, 1, NCCL_CONFIG_UNDEF_INT, 0, NULL       \
    }
#endif

/* ---- since 2.32 ---- */

#if NCCL_VERSION_CODE < 23200
typedef enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 } ncclEncryptionMode_t;
typedef struct ncclEncryptionConfig_v23200 {
    size_t size;
    unsigned int magic, version;
    int mode;
    const char *psk;
} ncclEncryptionConfig_t;
#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                                                                     \
    {                                                                                                                          \
        sizeof(ncclEncryptionConfig_t), 0xcafebeef, RONDO_NCCL_INTERFACE_VERSION, NCCL_ENCRYPTION_MODE_NONE, NULL              \
    }
#endif

/* ---- functions ---- */

#define RONDO_NCCL_DECLARE(type, name, ...)                                                                                    \
    type name(__VA_ARGS__);                                                                                                    \
    type p##name(__VA_ARGS__);
RONDO_NCCL_DECLARE(ncclResult_t, ncclCommRevoke, ncclComm_t, int)
RONDO_NCCL_DECLARE(ncclResult_t, ncclCommGetUniqueId, ncclComm_t, ncclUniqueId *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclCommGrow, ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclCommSuspend, ncclComm_t, int)
RONDO_NCCL_DECLARE(ncclResult_t, ncclCommResume, ncclComm_t)
RONDO_NCCL_DECLARE(ncclResult_t, ncclCommMemStats, ncclComm_t, ncclCommMemStat_t, uint64_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclWinGetUserPtr, ncclComm_t, ncclWindow_t, void **)
RONDO_NCCL_DECLARE(ncclResult_t, ncclPutSignal, const void *, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                   unsigned int, ncclComm_t, cudaStream_t)
RONDO_NCCL_DECLARE(ncclResult_t, ncclSignal, int, int, int, unsigned int, ncclComm_t, cudaStream_t)
RONDO_NCCL_DECLARE(ncclResult_t, ncclWaitSignal, int, ncclWaitSignalDesc_t *, ncclComm_t, cudaStream_t)
RONDO_NCCL_DECLARE(ncclResult_t, ncclSetEncryption, const ncclEncryptionConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclAllReduceConfig, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                   cudaStream_t, const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclBroadcastConfig, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t,
                   cudaStream_t, const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclReduceConfig, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
                   cudaStream_t, const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclAllGatherConfig, const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t,
                   const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclReduceScatterConfig, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                   cudaStream_t, const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclAlltoAllConfig, const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t,
                   const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclGatherConfig, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                   const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclScatterConfig, const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t,
                   const ncclCollConfig_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamBind, ncclParamHandle_t *, const char *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetI8, ncclParamHandle_t, int8_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetI16, ncclParamHandle_t, int16_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetI32, ncclParamHandle_t, int32_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetI64, ncclParamHandle_t, int64_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetU8, ncclParamHandle_t, uint8_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetU16, ncclParamHandle_t, uint16_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetU32, ncclParamHandle_t, uint32_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetU64, ncclParamHandle_t, uint64_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetStr, ncclParamHandle_t, const char **)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGet, ncclParamHandle_t, void *, int, int *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetParameter, const char *, const char **, int *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclParamGetAllParameterKeys, const char ***, int *)
RONDO_NCCL_DECLARE(void, ncclParamDumpAll, void)

/* ---- nccl_device.h's functions for the host ---- */

RONDO_NCCL_DECLARE(ncclResult_t, ncclCommQueryProperties, ncclComm_t, ncclCommProperties_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t, size_t, int, void **)
RONDO_NCCL_DECLARE(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t, size_t, int, void **)
RONDO_NCCL_DECLARE(ncclTeam_t, ncclTeamWorld, ncclComm_t)
RONDO_NCCL_DECLARE(ncclTeam_t, ncclTeamLsa, ncclComm_t)
RONDO_NCCL_DECLARE(ncclTeam_t, ncclTeamRail, ncclComm_t)
RONDO_NCCL_DECLARE(int, ncclTeamRankToWorld, ncclComm_t, ncclTeam_t, int)
RONDO_NCCL_DECLARE(int, ncclTeamRankToLsa, ncclComm_t, ncclTeam_t, int)
RONDO_NCCL_DECLARE(ncclResult_t, ncclDevCommCreate, ncclComm_t, const ncclDevCommRequirements_t *, ncclDevComm_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclDevCommDestroy, ncclComm_t, const ncclDevComm_t *)
RONDO_NCCL_DECLARE(ncclResult_t, ncclLsaBarrierCreateRequirement, ncclTeam_t, int, ncclLsaBarrierHandle_t *,
                   ncclDevResourceRequirements_t *)

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop
#endif
