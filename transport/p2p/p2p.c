/*
 * GPU to GPU on one host, over NVLink or PCIe: peer access within a process, CUDA IPC between processes. Each side polls memory
 * of its own GPU: tail and slots lie with the receiver, the head with the sender, and the other side stores into them through
 * its mapping; nothing is ever loaded over the link. Relies on transport/memory/cuda_memory.h.
 */
#include "transport/transport.h"

#include "transport/memory/arena.h"
#include "transport/memory/cuda_memory.h"
#include "lib/base/error.h"
#include "transport/context.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Regions begin at multiples of 256, so counters share no 128-byte line with anything. */
#define TAIL_OFFSET  0
#define SLOTS_OFFSET 256
#define HEAD_OFFSET  0
#define HEAD_BYTES   256
_Static_assert(sizeof(struct rondo_head) <= HEAD_BYTES, "the sender's memory");

#define SLAB_BYTES ((size_t) 32 << 20)

struct ticket_data {
    struct rondo_cuda_handle slab;
    uint64_t offset, bytes;
};
_Static_assert(sizeof(struct ticket_data) <= sizeof(((struct rondo_ticket *) 0)->bytes), "a ticket holds it");

/* One side of a connector: its region, and the other side's. */
struct side {
    struct rondo_region region;
    struct rondo_cuda_mapping *mapping;
};

struct gpu_slab {
    struct rondo_cuda_export *exported;
    struct rondo_cuda_handle handle;
};

static const char *unusable(void)
{
    /* Asked of the kernel, because ranks on the host device need not start the driver. */
    if (access("/dev/nvidiactl", F_OK) != 0 && access("/dev/dxg", F_OK) != 0)
        return "this machine has no NVIDIA GPU";
    return NULL;
}

static int reaches(const struct rondo_transport_context *context, int peer)
{
    const struct rondo_peer *mine = &context->peers[context->rank], *theirs = &context->peers[peer];
    return strcmp(mine->host_id, theirs->host_id) == 0 && rondo_gpu_reaches(&mine->gpu, &theirs->gpu) &&
           rondo_gpu_reaches(&theirs->gpu, &mine->gpu);
}

/* ---- this rank's memory ---- */

static rondo_result_t slab_allocate(void *argument, size_t bytes, struct rondo_slab *slab)
{
    struct rondo_transport_context *context = argument;
    struct gpu_slab *own = calloc(1, sizeof(*own));
    char *base = NULL;
    if (own == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe a slab");
    rondo_result_t result = rondo_cuda_allocate(context->device_index, bytes, &base);
    if (result == RONDO_SUCCESS)
        result = rondo_cuda_zero(context->device_index, base, bytes);
    if (result == RONDO_SUCCESS)
        result = rondo_cuda_export(context->segments, context->device_index, base, bytes, 1, &own->exported, &own->handle);
    if (result == RONDO_ERR_BUFFER) /* this is the library's memory, and no mistake of the caller's */
        result = rondo_fail(RONDO_ERR_DEVICE, "memory of the p2p transport: %s", rondo_last_error());
    if (result != RONDO_SUCCESS) {
        rondo_cuda_free(context->device_index, base);
        free(own);
        return result;
    }
    *slab = (struct rondo_slab){base, bytes, own};
    return RONDO_SUCCESS;
}

static void slab_release(void *argument, struct rondo_slab *slab)
{
    struct rondo_transport_context *context = argument;
    struct gpu_slab *own = slab->own;
    rondo_cuda_unexport(own->exported);
    rondo_cuda_free(context->device_index, slab->base);
    free(own);
}

static rondo_result_t slab_zero(void *argument, void *memory, size_t bytes)
{
    struct rondo_transport_context *context = argument;
    return rondo_cuda_zero(context->device_index, memory, bytes);
}

static const struct rondo_slab_source slabs = {SLAB_BYTES, slab_allocate, slab_release, slab_zero};

static size_t receiver_bytes(const struct rondo_connector_spec *spec)
{
    return SLOTS_OFFSET + (size_t) spec->slot_bytes * spec->slot_count;
}

/* Gives the connector a region of this rank's GPU, and a ticket for it. */
static rondo_result_t take_region(struct rondo_transport_context *context, struct rondo_connector *connector, size_t bytes,
                                  struct rondo_ticket *ticket, char **base)
{
    struct side *side = calloc(1, sizeof(*side));
    if (side == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe a connector");
    rondo_result_t result = rondo_arena_allocate(context->arena, &slabs, context, bytes, &side->region);
    if (result != RONDO_SUCCESS) {
        free(side);
        return result;
    }
    const struct gpu_slab *slab = side->region.slab->own;
    struct ticket_data data = {.slab = slab->handle, .offset = side->region.offset, .bytes = side->region.bytes};
    memcpy(ticket->bytes, &data, sizeof(data));
    connector->own = side;
    *base = side->region.slab->base + side->region.offset;
    return RONDO_SUCCESS;
}

static void return_region(struct rondo_transport_context *context, struct rondo_connector *connector)
{
    struct side *side = connector->own;
    rondo_arena_release(context->arena, &side->region);
    free(side);
}

/* ---- the other side's memory ---- */

static rondo_result_t map_region(struct rondo_transport_context *context, struct rondo_connector *connector, size_t bytes,
                                 const struct rondo_ticket *ticket, char **base)
{
    struct side *side = connector->own;
    struct ticket_data data;
    char *slab;
    memcpy(&data, ticket->bytes, sizeof(data));
    rondo_result_t result = rondo_cuda_import(context->device_index, &data.slab, &side->mapping, &slab);
    if (result != RONDO_SUCCESS)
        return result;
    *base = slab + data.offset;
    uint64_t whole = rondo_cuda_handle_bytes(&data.slab);
    if (data.bytes >= bytes && data.offset % 256 == 0 && data.offset <= whole && data.bytes <= whole - data.offset)
        return RONDO_SUCCESS;
    rondo_cuda_release(side->mapping);
    side->mapping = NULL;
    return rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers %llu bytes at %llu of a slab of %llu for a connector of %zu",
                      connector->spec.peer, (unsigned long long) data.bytes, (unsigned long long) data.offset,
                      (unsigned long long) whole, bytes);
}

static void unmap_region(struct rondo_transport_context *context, struct rondo_connector *connector)
{
    struct side *side = connector->own;
    (void) context;
    rondo_cuda_release(side->mapping);
    side->mapping = NULL;
}

/* ---- the two sides ---- */

static rondo_result_t listen(struct rondo_transport_context *context, struct rondo_connector *connector,
                             struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = take_region(context, connector, receiver_bytes(&connector->spec), ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->watched = (uint64_t *) (void *) (base + TAIL_OFFSET);
    connector->slots = base + SLOTS_OFFSET;
    return RONDO_SUCCESS;
}

static rondo_result_t offer(struct rondo_transport_context *context, struct rondo_connector *connector,
                            struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = take_region(context, connector, HEAD_BYTES, ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->watched = (uint64_t *) (void *) (base + HEAD_OFFSET);
    return RONDO_SUCCESS;
}

static rondo_result_t connect(struct rondo_transport_context *context, struct rondo_connector *connector,
                              const struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = map_region(context, connector, receiver_bytes(&connector->spec), ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->published = (uint64_t *) (void *) (base + TAIL_OFFSET);
    connector->slots = base + SLOTS_OFFSET;
    return RONDO_SUCCESS;
}

static rondo_result_t accept(struct rondo_transport_context *context, struct rondo_connector *connector,
                             const struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = map_region(context, connector, HEAD_BYTES, ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->published = (uint64_t *) (void *) (base + HEAD_OFFSET);
    return RONDO_SUCCESS;
}

const struct rondo_transport rondo_transport_p2p = {
    .name = "p2p",
    .unusable = unusable,
    .reaches = reaches,
    .listen = listen,
    .offer = offer,
    .connect = connect,
    .accept = accept,
    .close_listener = return_region,
    .close_offer = return_region,
    .close_sender = unmap_region,
    .close_receiver = unmap_region,
};
