/* See lib/diagnostics/nvtx.h. */
#include "lib/diagnostics/nvtx.h"

#if RONDO_WITH_NVTX

#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct rondo_nvtx {
    nvtxDomainHandle_t domain;
    nvtxStringHandle_t names[RONDO_KINDS];
};

/* The header finds the profiler at the process's first call of NVTX, without making other threads wait: they may make theirs
 * when that is over. */
static pthread_once_t initialized = PTHREAD_ONCE_INIT;

static void initialize(void)
{
    nvtxInitialize(NULL);
}

struct rondo_nvtx *rondo_nvtx_create(int rank)
{
    char name[32];
    pthread_once(&initialized, initialize);
    snprintf(name, sizeof(name), "rondo rank %d", rank);
    nvtxDomainHandle_t domain = nvtxDomainCreateA(name); /* NULL without a profiler */
    struct rondo_nvtx *nvtx = domain != NULL ? calloc(1, sizeof(*nvtx)) : NULL;
    if (nvtx == NULL) {
        if (domain != NULL)
            nvtxDomainDestroy(domain);
        return NULL;
    }
    nvtx->domain = domain;
    for (int kind = 0; kind < RONDO_KINDS; kind++)
        nvtx->names[kind] = nvtxDomainRegisterStringA(domain, rondo_kind_name((enum rondo_kind) kind));
    return nvtx;
}

void rondo_nvtx_destroy(struct rondo_nvtx *nvtx)
{
    if (nvtx != NULL)
        nvtxDomainDestroy(nvtx->domain);
    free(nvtx);
}

static nvtxEventAttributes_t describe(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes)
{
    return (nvtxEventAttributes_t){.version = NVTX_VERSION,
                                   .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                   .messageType = NVTX_MESSAGE_TYPE_REGISTERED,
                                   .message.registered = nvtx->names[kind],
                                   .payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                                   .payload.ullValue = bytes};
}

uint64_t rondo_nvtx_begin(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes)
{
    const nvtxEventAttributes_t attributes = describe(nvtx, kind, bytes);
    return nvtxDomainRangeStartEx(nvtx->domain, &attributes);
}

void rondo_nvtx_end(const struct rondo_nvtx *nvtx, uint64_t range)
{
    nvtxDomainRangeEnd(nvtx->domain, range);
}

void rondo_nvtx_mark(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes)
{
    const nvtxEventAttributes_t attributes = describe(nvtx, kind, bytes);
    nvtxDomainMarkEx(nvtx->domain, &attributes);
}

#else

#include <stddef.h>

struct rondo_nvtx *rondo_nvtx_create(int rank)
{
    (void) rank;
    return NULL;
}

void rondo_nvtx_destroy(struct rondo_nvtx *nvtx)
{
    (void) nvtx;
}

uint64_t rondo_nvtx_begin(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes)
{
    (void) nvtx;
    (void) kind;
    (void) bytes;
    return 0;
}

void rondo_nvtx_end(const struct rondo_nvtx *nvtx, uint64_t range)
{
    (void) nvtx;
    (void) range;
}

void rondo_nvtx_mark(const struct rondo_nvtx *nvtx, enum rondo_kind kind, uint64_t bytes)
{
    (void) nvtx;
    (void) kind;
    (void) bytes;
}

#endif
