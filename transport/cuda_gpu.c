/* GPUs as ranks know each other's: the first part of cuda_memory.h. */
#include "cuda_memory.h"

#include "cuda_driver.h"
#include "error.h"

static uint64_t digest(const unsigned char uuid[16])
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (int i = 0; i < 16; i++)
        hash = (hash ^ uuid[i]) * 1099511628211u;
    return hash;
}

static int uuid_of(int device_index, CUdevice *device, unsigned char uuid[16])
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUuuid value;
    if (driver->cuDeviceGet(device, device_index) != CUDA_SUCCESS || driver->cuDeviceGetUuid(&value, *device) != CUDA_SUCCESS)
        return 0;
    memcpy(uuid, &value, 16);
    return 1;
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
    for (int i = 0; i < rondo_cuda_device_count() && identity->reached < RONDO_GPUS_NAMED; i++) {
        int can = 0;
        if (i == device_index || !uuid_of(i, &other, other_uuid))
            continue;
        if (driver->cuDeviceCanAccessPeer(&can, device, other) == CUDA_SUCCESS && can)
            identity->reaches[identity->reached++] = digest(other_uuid);
    }
}

int rondo_gpu_reaches(const struct rondo_gpu_identity *mine, const struct rondo_gpu_identity *theirs)
{
    if (!mine->present || !theirs->present)
        return 0;
    if (memcmp(mine->uuid, theirs->uuid, sizeof(mine->uuid)) == 0)
        return 1;
    uint64_t wanted = digest(theirs->uuid);
    for (uint32_t i = 0; i < mine->reached && i < RONDO_GPUS_NAMED; i++)
        if (mine->reaches[i] == wanted)
            return 1;
    return 0;
}

int rondo_gpu_bus_id(int device_index, char bus_id[RONDO_GPU_BUS_ID_BYTES])
{
    const struct rondo_cuda_driver *driver = rondo_cuda_driver();
    CUdevice device;
    bus_id[0] = '\0';
    return driver != NULL && driver->cuDeviceGet(&device, device_index) == CUDA_SUCCESS &&
           driver->cuDeviceGetPCIBusId(bus_id, RONDO_GPU_BUS_ID_BYTES, device) == CUDA_SUCCESS;
}
