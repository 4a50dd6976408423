/*
 * Shared memory: between processes of one host through segments, inside one process through the same addresses. The receiver
 * owns the region, which has tail, head, references and slots; the sender maps it. Of a multicast connector the sender owns the
 * region, which has tail, heads and slots; the receivers map it. A rank on a GPU has the segments registered with the GPU, and
 * its own on the memory node next to it. Relies on transport/memory/segment.h and transport/memory/adopted.h.
 */
#include "transport/transport.h"

#include "transport/memory/adopted.h"
#include "transport/memory/arena.h"
#include "transport/memory/cuda_memory.h"
#include "lib/base/error.h"
#include "transport/context.h"
#include "transport/memory/memory_node.h"

#include <stdlib.h>
#include <string.h>

/* Counters are two cache lines apart: adjacent lines are fetched in pairs. */
#define TAIL_OFFSET       0
#define HEAD_OFFSET       128
#define REFERENCES_OFFSET 256
_Static_assert(HEAD_OFFSET + sizeof(struct rondo_head) <= REFERENCES_OFFSET, "what the receiver tells, before the references");
_Static_assert(sizeof(struct rondo_reference) == RONDO_CACHE_LINE, "each reference on a line of its own");
_Static_assert(sizeof(struct rondo_multicast_head) == 128, "two cache lines");

struct ticket_data {
    struct rondo_segment_handle segment;
    uint64_t offset, bytes;
};
_Static_assert(sizeof(struct ticket_data) <= sizeof(((struct rondo_ticket *) 0)->bytes), "a ticket holds it");

static const char *unusable(void)
{
    return NULL;
}

static int reaches(const struct rondo_transport_context *context, int peer)
{
    return strcmp(context->peers[peer].host_id, context->peers[context->rank].host_id) == 0;
}

/* Of a connector with references, they end where the slots begin (rondo_reference_at). */
static size_t slots_offset(const struct rondo_connector_spec *spec)
{
    if (spec->receivers > 0)
        return HEAD_OFFSET + spec->receivers * sizeof(struct rondo_multicast_head);
    return REFERENCES_OFFSET + (RONDO_HAS_REFERENCES(spec->protocol) ? spec->slot_count * sizeof(struct rondo_reference) : 0);
}

static size_t region_bytes(const struct rondo_connector_spec *spec)
{
    return slots_offset(spec) + (size_t) spec->slot_bytes * spec->slot_count;
}

/* ---- the receiver's memory ---- */

static rondo_result_t slab_allocate(void *argument, size_t bytes, struct rondo_slab *slab)
{
    struct rondo_transport_context *context = argument;
    struct rondo_segment *segment;
    rondo_result_t result = rondo_segment_allocate(context->segments, bytes, &segment);
    if (result != RONDO_SUCCESS)
        return result;
    char bus_id[RONDO_GPU_BUS_ID_BYTES];
    if (context->device_type == RONDO_DEVICE_CUDA && rondo_gpu_bus_id(context->device_index, bus_id))
        rondo_memory_prefer(segment->base, segment->bytes, rondo_memory_node(bus_id)); /* before adopt touches the pages */
    result = rondo_adopt(context->device, segment);
    if (result != RONDO_SUCCESS) {
        rondo_segment_release(context->segments, segment);
        return result;
    }
    *slab = (struct rondo_slab){segment->base, segment->bytes, segment};
    return RONDO_SUCCESS;
}

static void slab_release(void *argument, struct rondo_slab *slab)
{
    struct rondo_transport_context *context = argument;
    rondo_disown(context->device, slab->own);
    rondo_segment_release(context->segments, slab->own);
}

static rondo_result_t slab_zero(void *argument, void *memory, size_t bytes)
{
    (void) argument;
    memset(memory, 0, bytes);
    return RONDO_SUCCESS;
}

/* On the host a slab is address space, whose pages cost memory only once touched; a device has all of them pinned. */
static const struct rondo_slab_source host_slabs = {(size_t) 64 << 20, slab_allocate, slab_release, slab_zero};
static const struct rondo_slab_source pinned_slabs = {(size_t) 8 << 20, slab_allocate, slab_release, slab_zero};

/* ---- connectors ---- */

/* Makes the connector's region in this rank's memory. Sets *base to it, and the ticket by which other ranks find it. */
static rondo_result_t make_region(struct rondo_transport_context *context, struct rondo_connector *connector,
                                  struct rondo_ticket *ticket, char **base)
{
    struct rondo_region *region = calloc(1, sizeof(*region));
    if (region == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe a connector");
    const struct rondo_slab_source *source = context->device_type == RONDO_DEVICE_CUDA ? &pinned_slabs : &host_slabs;
    rondo_result_t result = rondo_arena_allocate(context->arena, source, context, region_bytes(&connector->spec), region);
    if (result != RONDO_SUCCESS) {
        free(region);
        return result;
    }
    *base = region->slab->base + region->offset;
    connector->own = region;
    connector->slots = *base + slots_offset(&connector->spec);

    struct ticket_data data = {.offset = region->offset, .bytes = region->bytes};
    rondo_segment_export(region->slab->own, &data.segment);
    memcpy(ticket->bytes, &data, sizeof(data));
    return RONDO_SUCCESS;
}

/* Maps the region that the ticket names, in the peer's memory. Sets *base to it. */
static rondo_result_t map_region(struct rondo_transport_context *context, struct rondo_connector *connector,
                                 const struct rondo_ticket *ticket, char **base)
{
    struct ticket_data data;
    struct rondo_segment *segment;
    memcpy(&data, ticket->bytes, sizeof(data));
    rondo_result_t result = rondo_segment_import(context->segments, &data.segment, &segment);
    if (result != RONDO_SUCCESS)
        return result;
    if (data.bytes < region_bytes(&connector->spec) || data.offset > segment->bytes ||
        data.bytes > segment->bytes - data.offset) {
        rondo_segment_release(context->segments, segment);
        return rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers %llu bytes at %llu of a segment of %zu for a connector of %zu",
                          connector->spec.peer, (unsigned long long) data.bytes, (unsigned long long) data.offset,
                          segment->bytes, region_bytes(&connector->spec));
    }
    result = rondo_adopt(context->device, segment);
    if (result != RONDO_SUCCESS) {
        rondo_segment_release(context->segments, segment);
        return result;
    }
    *base = segment->base + data.offset;
    connector->own = segment;
    connector->slots = *base + slots_offset(&connector->spec);
    return RONDO_SUCCESS;
}

static rondo_result_t listen(struct rondo_transport_context *context, struct rondo_connector *connector,
                             struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = make_region(context, connector, ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->watched = (uint64_t *) (void *) (base + TAIL_OFFSET);
    connector->published = (uint64_t *) (void *) (base + HEAD_OFFSET);
    return RONDO_SUCCESS;
}

static rondo_result_t connect(struct rondo_transport_context *context, struct rondo_connector *connector,
                              const struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = map_region(context, connector, ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->watched = (uint64_t *) (void *) (base + HEAD_OFFSET);
    connector->published = (uint64_t *) (void *) (base + TAIL_OFFSET);
    return RONDO_SUCCESS;
}

static rondo_result_t multicast_offer(struct rondo_transport_context *context, struct rondo_connector *connector,
                                      struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = make_region(context, connector, ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    connector->watched = (uint64_t *) (void *) (base + HEAD_OFFSET);
    connector->published = (uint64_t *) (void *) (base + TAIL_OFFSET);
    return RONDO_SUCCESS;
}

static rondo_result_t multicast_accept(struct rondo_transport_context *context, struct rondo_connector *connector,
                                       const struct rondo_ticket *ticket)
{
    char *base;
    rondo_result_t result = map_region(context, connector, ticket, &base);
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_multicast_head *heads = (struct rondo_multicast_head *) (void *) (base + HEAD_OFFSET);
    connector->watched = (uint64_t *) (void *) (base + TAIL_OFFSET);
    connector->published = &heads[connector->spec.place].taken;
    return RONDO_SUCCESS;
}

static void close_listener(struct rondo_transport_context *context, struct rondo_connector *connector)
{
    rondo_arena_release(context->arena, connector->own);
    free(connector->own);
}

static void close_sender(struct rondo_transport_context *context, struct rondo_connector *connector)
{
    rondo_disown(context->device, connector->own);
    rondo_segment_release(context->segments, connector->own);
}

const struct rondo_transport rondo_transport_shm = {
    .name = "shm",
    .unusable = unusable,
    .reaches = reaches,
    .listen = listen,
    .connect = connect,
    .multicast_offer = multicast_offer,
    .multicast_accept = multicast_accept,
    .close_listener = close_listener,
    .close_sender = close_sender,
};
