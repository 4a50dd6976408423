/* A profiler for NVTX that writes what it is told to the file PROFILER_OUTPUT, a line each (NVTX_INJECTION64_PATH names it):
 * "domain NAME", "begin NAME BYTES ID", "end ID", "mark NAME BYTES". */
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRINGS_MOST 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *output;
static uint64_t ranges;
static char *strings[STRINGS_MOST];
static size_t string_count;

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(output, format, arguments);
    va_end(arguments);
    fflush(output);
}

static nvtxDomainHandle_t create_domain(const char *name)
{
    pthread_mutex_lock(&lock);
    say("domain %s\n", name);
    pthread_mutex_unlock(&lock);
    return (nvtxDomainHandle_t) &output;
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *string)
{
    (void) domain;
    pthread_mutex_lock(&lock);
    if (string_count == STRINGS_MOST)
        abort();
    char **place = &strings[string_count++];
    *place = strdup(string);
    pthread_mutex_unlock(&lock);
    return (nvtxStringHandle_t) place;
}

static const char *name_of(const nvtxEventAttributes_t *attributes)
{
    if (attributes->messageType != NVTX_MESSAGE_TYPE_REGISTERED || attributes->payloadType != NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
        abort();
    return *(char *const *) attributes->message.registered;
}

static nvtxRangeId_t begin(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    (void) domain;
    pthread_mutex_lock(&lock);
    const uint64_t id = ++ranges;
    say("begin %s %llu %llu\n", name_of(attributes), (unsigned long long) attributes->payload.ullValue,
        (unsigned long long) id);
    pthread_mutex_unlock(&lock);
    return id;
}

static void end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void) domain;
    pthread_mutex_lock(&lock);
    say("end %llu\n", (unsigned long long) id);
    pthread_mutex_unlock(&lock);
}

static void mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
    (void) domain;
    pthread_mutex_lock(&lock);
    say("mark %s %llu\n", name_of(attributes), (unsigned long long) attributes->payload.ullValue);
    pthread_mutex_unlock(&lock);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table)
{
    const NvtxExportTableCallbacks *callbacks = get_export_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table = NULL;
    unsigned int entries = 0;
    const char *path = getenv("PROFILER_OUTPUT");
    if (path == NULL || (output = fopen(path, "w")) == NULL || callbacks == NULL ||
        callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &entries) == 0)
        return 0;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer) create_domain;
    *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer) register_string;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer) begin;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer) end;
    *table[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer) mark;
    return 1;
}
