/* See transport/memory/cuda_driver.h. The only process-wide state is what is process-wide in CUDA: the driver and the primary
 * contexts, which are kept until the process ends. */
#include "transport/memory/cuda_driver.h"

#include "lib/base/error.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rondo_cuda_driver functions;
static int device_count;
static char why_not[256] = "";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts[RONDO_CUDA_DEVICES_MAX];

static _Thread_local CUstreamCaptureMode mode_outside; /* of the thread between enter and leave */

/* The version is that of the header, so that the function is what its declaration says. *known: the driver has it. */
static cudaError_t look_up(const char *name, void **function, int *known)
{
    *known = 1;
#if CUDART_VERSION >= 12000
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    cudaError_t status = cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, cudaEnableDefault, &found);
#else
    cudaError_t status = cudaGetDriverEntryPoint(name, function, cudaEnableDefault, &found);
#endif
    *known = found == cudaDriverEntryPointSuccess;
    return status;
#else
    return cudaGetDriverEntryPoint(name, function, cudaEnableDefault);
#endif
}

static int find_function(const char *name, int needed, void **function)
{
    int known;
    cudaError_t status = look_up(name, function, &known);
    if (status == cudaSuccess && known && *function != NULL)
        return 1;
    *function = NULL;
    if (!needed)
        return 1;
    if (status != cudaSuccess)
        snprintf(why_not, sizeof(why_not), "no CUDA driver: %s", cudaGetErrorString(status));
    else
        snprintf(why_not, sizeof(why_not), "the CUDA driver is too old: it has no %s", name);
    return 0;
}

static void find_all(void)
{
    static const struct {
        const char *name;
        size_t offset;
        int needed;
    } wanted[] = {
#define WANTED(name) {#name, offsetof(struct rondo_cuda_driver, name), 1},
#define WISHED(name) {#name, offsetof(struct rondo_cuda_driver, name), 0},
        RONDO_CUDA_FUNCTIONS(WANTED) RONDO_CUDA_NEWER_FUNCTIONS(WISHED)
#undef WANTED
#undef WISHED
    };
    struct rondo_cuda_driver table;
    int clean = cudaPeekAtLastError() == cudaSuccess, complete = 1;
    for (size_t i = 0; complete && i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = NULL;
        complete = find_function(wanted[i].name, wanted[i].needed, &function);
        memcpy((char *) &table + wanted[i].offset, &function, sizeof(function));
    }
    if (clean)
        (void) cudaGetLastError(); /* left by the lookups, not by the application */
    if (!complete)
        return;
    functions = table;
    int count = 0;
    CUresult status = table.cuInit(0);
    if (status == CUDA_SUCCESS)
        status = table.cuDeviceGetCount(&count);
    if (status != CUDA_SUCCESS)
        snprintf(why_not, sizeof(why_not), "the CUDA driver does not start (error %d)", (int) status);
    else if (count == 0)
        snprintf(why_not, sizeof(why_not), "the CUDA driver sees no GPU");
    device_count = count < RONDO_CUDA_DEVICES_MAX ? count : RONDO_CUDA_DEVICES_MAX;
}

const struct rondo_cuda_driver *rondo_cuda_driver(void)
{
    pthread_once(&once, find_all);
    if (device_count > 0)
        return &functions;
    rondo_fail(RONDO_ERR_DEVICE, "%s", why_not);
    return NULL;
}

int rondo_cuda_device_count(void)
{
    pthread_once(&once, find_all);
    return device_count;
}

rondo_result_t rondo_cuda_result(CUresult status, rondo_result_t code, const char *what)
{
    const char *text = NULL;
    if (status == CUDA_SUCCESS)
        return RONDO_SUCCESS;
    if (functions.cuGetErrorString == NULL || functions.cuGetErrorString(status, &text) != CUDA_SUCCESS || text == NULL)
        text = "unknown error";
    return rondo_fail(code, "%s: %s (CUDA error %d)", what, text, (int) status);
}

rondo_result_t rondo_cuda_enter(int device)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUresult status = CUDA_SUCCESS;
    CUdevice which;
    if (driver == NULL)
        return RONDO_ERR_DEVICE;
    if (device < 0 || device >= device_count)
        return rondo_fail(RONDO_ERR_DEVICE, "there is no GPU %d: the CUDA driver sees %d", device, device_count);
    pthread_mutex_lock(&lock);
    if (contexts[device] == NULL && (status = driver->cuDeviceGet(&which, device)) == CUDA_SUCCESS)
        status = driver->cuDevicePrimaryCtxRetain(&contexts[device], which);
    CUcontext context = contexts[device];
    pthread_mutex_unlock(&lock);
    if (status == CUDA_SUCCESS)
        status = driver->cuCtxPushCurrent(context);
    if (status == CUDA_SUCCESS) {
        mode_outside = CU_STREAM_CAPTURE_MODE_RELAXED;
        if (driver->cuThreadExchangeStreamCaptureMode(&mode_outside) != CUDA_SUCCESS)
            mode_outside = CU_STREAM_CAPTURE_MODE_RELAXED;
    }
    return rondo_cuda_result(status, RONDO_ERR_DEVICE, "the GPU's context");
}

void rondo_cuda_leave(void)
{
    CUcontext popped;
    (void) functions.cuThreadExchangeStreamCaptureMode(&mode_outside);
    (void) functions.cuCtxPopCurrent(&popped);
}

CUcontext rondo_cuda_context(int device)
{
    pthread_mutex_lock(&lock);
    CUcontext context = device >= 0 && device < RONDO_CUDA_DEVICES_MAX ? contexts[device] : NULL;
    pthread_mutex_unlock(&lock);
    return context;
}
