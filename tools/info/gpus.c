/* What `rondo info` says of GPUs: each one, and the links between them. See tools/info/info.h. */
#include "tools/info/info.h"

#include "transport/memory/cuda_direct.h"
#include "transport/memory/memory_node.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>

/* From one GPU to another. */
struct link {
    bool access;  /* its memory can be reached directly */
    bool atomics; /* and atomics on it are native: over NVLink they are, over PCI Express not */
    int rank;     /* the driver's order of merit among links, 0 the best */
};

int info_gpu_count(const char **why_not)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    *why_not = error != cudaSuccess ? cudaGetErrorString(error) : "there is no GPU";
    return error == cudaSuccess ? count : 0;
}

static struct link link_between(int from, int to)
{
    int access = 0, supported = 0, atomics = 0, rank = 0;
    cudaDeviceCanAccessPeer(&access, from, to);
    cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrAccessSupported, from, to);
    cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, from, to);
    cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from, to);
    cudaGetLastError(); /* a question that has no answer is no error of the application's */
    return (struct link){.access = access != 0 && supported != 0, .atomics = atomics != 0, .rank = rank};
}

static const char *link_name(struct link link)
{
    return !link.access ? "none" : link.atomics ? "nvlink" : "pci";
}

static json_t *describe_links(FILE *stream, int gpu, int count)
{
    json_t *array = json_array();
    fprintf(stream, "  %3d ", gpu);
    for (int other = 0; other < count; other++) {
        if (other == gpu) {
            fprintf(stream, " %7s", "-");
            continue;
        }
        struct link link = link_between(gpu, other);
        fprintf(stream, " %7s", link_name(link));
        json_t *object = json_object();
        json_object_set_new(object, "gpu", json_integer(other));
        json_object_set_new(object, "link", json_string(link_name(link)));
        json_object_set_new(object, "access", json_boolean(link.access));
        json_object_set_new(object, "native_atomics", json_boolean(link.atomics));
        json_object_set_new(object, "performance_rank", json_integer(link.rank));
        json_object_set_new(object, "transport", json_string(link.access ? "p2p" : "shm"));
        json_array_append_new(array, object);
    }
    fprintf(stream, "\n");
    return array;
}

/* What the GPU itself has to offer to network cards. */
static void describe_direct(FILE *stream, int gpu, json_t *object)
{
    static const char *const flushes[] = {"seen in order", "flushed by the driver", "flushed by reading"};
    const char *flush = flushes[rondo_cuda_flush_of(gpu)];
    int dmabuf = rondo_cuda_has_dmabuf(gpu);
    fprintf(stream, "       GPUDirect: %s; writes of cards are %s\n", dmabuf ? "dma-bufs" : "no dma-bufs", flush);
    json_object_set_new(object, "dmabuf", json_boolean(dmabuf));
    json_object_set_new(object, "flush", json_string(flush));
}

static json_t *describe_gpu(FILE *stream, int gpu)
{
    struct cudaDeviceProp properties;
    char pci[32] = "";
    json_t *object = json_object();
    json_object_set_new(object, "index", json_integer(gpu));
    cudaError_t error = cudaGetDeviceProperties(&properties, gpu);
    if (error == cudaSuccess)
        error = cudaDeviceGetPCIBusId(pci, sizeof(pci), gpu);
    if (error != cudaSuccess) {
        fprintf(stream, "  %3d  %s\n", gpu, cudaGetErrorString(error));
        json_object_set_new(object, "error", json_string(cudaGetErrorString(error)));
        cudaGetLastError();
        return object;
    }
    int node = rondo_memory_node(pci);
    fprintf(stream, "  %3d  %s, %d SMs, compute capability %d.%d, %.1f GiB, PCI %s, memory node %d\n", gpu, properties.name,
            properties.multiProcessorCount, properties.major, properties.minor, (double) properties.totalGlobalMem / (1 << 30),
            pci, node);
    describe_direct(stream, gpu, object);
    json_object_set_new(object, "name", json_string(properties.name));
    json_object_set_new(object, "multiprocessors", json_integer(properties.multiProcessorCount));
    json_object_set_new(object, "compute_capability", json_integer(10 * properties.major + properties.minor));
    json_object_set_new(object, "memory_bytes", json_integer((json_int_t) properties.totalGlobalMem));
    json_object_set_new(object, "pci", json_string(pci));
    json_object_set_new(object, "memory_node", json_integer(node));
    return object;
}

json_t *info_gpus(FILE *stream)
{
    const char *why_not;
    int count = info_gpu_count(&why_not), driver = 0, runtime = 0;
    json_t *array = json_array();
    if (count == 0)
        return array;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    fprintf(stream, "\nGPUs (the driver serves CUDA %d.%d, this build uses %d.%d)\n", driver / 1000, driver % 100 / 10,
            runtime / 1000, runtime % 100 / 10);
    for (int gpu = 0; gpu < count; gpu++)
        json_array_append_new(array, describe_gpu(stream, gpu));
    if (count > 1) {
        fprintf(stream, "\nlinks between GPUs (nvlink, pci: transport p2p; none: transport shm)\n      ");
        for (int gpu = 0; gpu < count; gpu++)
            fprintf(stream, " %7d", gpu);
        fprintf(stream, "\n");
    }
    for (int gpu = 0; gpu < count && count > 1; gpu++)
        json_object_set_new(json_array_get(array, (size_t) gpu), "peers", describe_links(stream, gpu, count));
    return array;
}
