/* GPUs as ranks know each other's: the first part of transport/memory/cuda_memory.h. */
#include "transport/memory/cuda_memory.h"

#include "transport/memory/cuda_driver.h"
#include "lib/base/containers.h"
#include "lib/base/error.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int uuid_of(int device_index, CUdevice *device, unsigned char uuid[16])
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUuuid value;
    if (driver->cuDeviceGet(device, device_index) != CUDA_SUCCESS || driver->cuDeviceGetUuid(&value, *device) != CUDA_SUCCESS)
        return 0;
    memcpy(uuid, &value, 16);
    return 1;
}

static void add(struct rondo_gpu_identity *identity, const unsigned char uuid[16], int linked)
{
    if (identity->reached == RONDO_GPUS_NAMED)
        return;
    identity->linked |= (uint32_t) (linked != 0) << identity->reached;
    identity->reaches[identity->reached++] = rondo_hash(RONDO_HASH_BASIS, uuid, 16);
}

/* ---- GPUs that this process does not see ---- */

/* The management library's functions, which it keeps as they are; their devices are opaque, success is 0. */
struct management {
    void *library;
    int (*start)(void);
    int (*stop)(void);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, void **device);
    int (*uuid)(void *device, char *text, unsigned bytes);
    int (*peer_status)(void *one, void *other, int capability, int *status);
};

static int find_function(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
    return symbol != NULL;
}

static int open_management(struct management *nvml)
{
    nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml->library == NULL)
        return 0;
    if (find_function(nvml->library, "nvmlInit_v2", &nvml->start) &&
        find_function(nvml->library, "nvmlShutdown", &nvml->stop) &&
        find_function(nvml->library, "nvmlDeviceGetCount_v2", &nvml->count) &&
        find_function(nvml->library, "nvmlDeviceGetHandleByIndex_v2", &nvml->by_index) &&
        find_function(nvml->library, "nvmlDeviceGetUUID", &nvml->uuid) &&
        find_function(nvml->library, "nvmlDeviceGetP2PStatus", &nvml->peer_status) && nvml->start() == 0)
        return 1;
    dlclose(nvml->library);
    return 0;
}

/* "GPU-" and 32 hexadecimal digits in groups. */
static int parse_uuid(const char *text, unsigned char uuid[16])
{
    int digits = 0;
    if (strncmp(text, "GPU-", 4) != 0)
        return 0;
    for (text += 4; *text != '\0' && digits < 32; text++) {
        unsigned value;
        char digit[2] = {*text, '\0'};
        if (*text == '-')
            continue;
        if (sscanf(digit, "%1x", &value) != 1)
            return 0;
        uuid[digits / 2] = (unsigned char) (digits % 2 == 0 ? value << 4 : uuid[digits / 2] | value);
        digits++;
    }
    return digits == 32;
}

static int described(struct management *nvml, unsigned index, void **device, unsigned char uuid[16])
{
    char text[96] = "";
    return nvml->by_index(index, device) == 0 && nvml->uuid(*device, text, sizeof(text)) == 0 && parse_uuid(text, uuid);
}

/* Other processes' handles can be opened for GPUs, too, that CUDA_VISIBLE_DEVICES hides from this one; whether the hardware
 * can do it, only the management library knows. */
static void add_hidden(struct rondo_gpu_identity *identity)
{
    enum { CAN_READ, CAN_WRITE, BY_NVLINK };
    struct management nvml;
    unsigned char uuid[16];
    void *mine = NULL, *other;
    unsigned count = 0;
    if (getenv("CUDA_VISIBLE_DEVICES") == NULL || !open_management(&nvml))
        return;
    if (nvml.count(&count) != 0)
        count = 0;
    for (unsigned i = 0; i < count && mine == NULL; i++)
        if (described(&nvml, i, &other, uuid) && memcmp(uuid, identity->uuid, sizeof(uuid)) == 0)
            mine = other;
    for (unsigned i = 0; mine != NULL && i < count; i++) {
        struct rondo_gpu_identity known = {.present = 1};
        int reads = -1, writes = -1, link = -1;
        if (!described(&nvml, i, &other, known.uuid) || rondo_gpu_reaches(identity, &known))
            continue;
        if (nvml.peer_status(mine, other, CAN_READ, &reads) == 0 && reads == 0 &&
            nvml.peer_status(mine, other, CAN_WRITE, &writes) == 0 && writes == 0)
            add(identity, known.uuid, nvml.peer_status(mine, other, BY_NVLINK, &link) == 0 && link == 0);
    }
    nvml.stop();
    dlclose(nvml.library);
}

/* ---- identities ---- */

static uint16_t capability_of(const struct rondo_cuda_driver *driver, CUdevice device)
{
    int major = 0, minor = 0;
    if (driver->cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
        driver->cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
        return 0;
    return (uint16_t) RONDO_GPU_CAPABILITY(major, minor);
}

void rondo_gpu_identify(int device_index, struct rondo_gpu_identity *identity)
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    unsigned char other_uuid[16];
    CUdevice device, other;
    memset(identity, 0, sizeof(*identity));
    if (driver == NULL || !uuid_of(device_index, &device, identity->uuid)) {
        rondo_log(RONDO_LOG_WARN, -1, "GPU %d cannot be identified%s%s", device_index, driver == NULL ? ": " : "",
                  driver == NULL ? rondo_last_error() : "");
        return;
    }
    identity->present = 1;
    identity->ordinal = device_index;
    identity->capability = capability_of(driver, device);
    for (int i = 0; i < rondo_cuda_device_count(); i++) {
        int can = 0, atomics = 0;
        if (i == device_index || !uuid_of(i, &other, other_uuid))
            continue;
        if (driver->cuDeviceCanAccessPeer(&can, device, other) != CUDA_SUCCESS || !can)
            continue;
        /* PCIe has no atomics between GPUs. */
        if (driver->cuDeviceGetP2PAttribute(&atomics, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device, other) !=
            CUDA_SUCCESS)
            atomics = 0;
        add(identity, other_uuid, atomics);
    }
    add_hidden(identity);
}

/* Which of those that it reaches it is; -1: none. */
static int place_of(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs)
{
    uint64_t wanted = rondo_hash(RONDO_HASH_BASIS, theirs->uuid, 16);
    for (uint32_t i = 0; i < mine->reached && i < RONDO_GPUS_NAMED; i++)
        if (mine->reaches[i] == wanted)
            return (int) i;
    return -1;
}

int rondo_gpu_reaches(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs)
{
    return rondo_gpu_is_same(mine, theirs) || (mine->present && theirs->present && place_of(mine, theirs) >= 0);
}

int rondo_gpu_is_linked(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs)
{
    int place = mine->present && theirs->present ? place_of(mine, theirs) : -1;
    return place >= 0 && (mine->linked >> place & 1);
}

int rondo_gpu_bus_id(int device_index, char bus_id[RONDO_GPU_BUS_ID_BYTES])
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUdevice device;
    bus_id[0] = '\0';
    return driver != NULL && driver->cuDeviceGet(&device, device_index) == CUDA_SUCCESS &&
           driver->cuDeviceGetPCIBusId(bus_id, RONDO_GPU_BUS_ID_BYTES, device) == CUDA_SUCCESS;
}
