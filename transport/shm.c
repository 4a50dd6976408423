/*
 * Shared memory: between processes of one host through segments, inside one process through the same addresses. The receiver
 * owns the region; the sender maps it.
 */
#include "transport.h"

#include "arena.h"
#include "error.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

/* Counters keep two lines of distance: adjacent lines are fetched in pairs. */
#define TAIL_OFFSET  0
#define HEAD_OFFSET  128
#define SLOTS_OFFSET 256

struct ticket_data {
    struct rondo_segment_handle segment;
    uint64_t offset, bytes;
};
_Static_assert(sizeof(struct ticket_data) <= sizeof(((struct rondo_ticket *) 0)->bytes), "a ticket holds it");

static const char *unusable(void)
{
    return NULL;
}

static int reaches(const struct rondo_runtime *runtime, int peer)
{
    return strcmp(runtime->peers[peer].host_id, runtime->peers[runtime->rank].host_id) == 0;
}

static size_t region_bytes(const struct rondo_connector_spec *spec)
{
    return SLOTS_OFFSET + (size_t) spec->slot_bytes * spec->slot_count;
}

static rondo_result_t listen(struct rondo_runtime *runtime, struct rondo_connector *connector, struct rondo_ticket *ticket)
{
    struct rondo_region *region = calloc(1, sizeof(*region));
    if (region == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to describe a connector");
    rondo_result_t result = rondo_arena_allocate(runtime->arena, region_bytes(&connector->spec), region);
    if (result != RONDO_SUCCESS) {
        free(region);
        return result;
    }
    char *base = region->segment->base + region->offset;
    connector->own = region;
    connector->watched = (uint64_t *) (void *) (base + TAIL_OFFSET);
    connector->published = (uint64_t *) (void *) (base + HEAD_OFFSET);
    connector->slots = base + SLOTS_OFFSET;

    struct ticket_data data = {.offset = region->offset, .bytes = region->bytes};
    rondo_segment_export(region->segment, &data.segment);
    memcpy(ticket->bytes, &data, sizeof(data));
    return RONDO_SUCCESS;
}

static rondo_result_t connect(struct rondo_runtime *runtime, struct rondo_connector *connector,
                              const struct rondo_ticket *ticket)
{
    struct ticket_data data;
    struct rondo_segment *segment;
    memcpy(&data, ticket->bytes, sizeof(data));
    rondo_result_t result = rondo_segment_import(runtime->segments, &data.segment, &segment);
    if (result != RONDO_SUCCESS)
        return result;
    if (data.bytes < region_bytes(&connector->spec) || data.offset > segment->bytes ||
        data.bytes > segment->bytes - data.offset) {
        rondo_segment_release(runtime->segments, segment);
        return rondo_fail(RONDO_ERR_TRANSPORT, "rank %d offers %llu bytes at %llu of a segment of %zu for a connector of %zu",
                          connector->spec.peer, (unsigned long long) data.bytes, (unsigned long long) data.offset,
                          segment->bytes, region_bytes(&connector->spec));
    }
    char *base = segment->base + data.offset;
    connector->own = segment;
    connector->watched = (uint64_t *) (void *) (base + HEAD_OFFSET);
    connector->published = (uint64_t *) (void *) (base + TAIL_OFFSET);
    connector->slots = base + SLOTS_OFFSET;
    return RONDO_SUCCESS;
}

static void close_listener(struct rondo_runtime *runtime, struct rondo_connector *connector)
{
    rondo_arena_release(runtime->arena, connector->own);
    free(connector->own);
}

static void close_sender(struct rondo_runtime *runtime, struct rondo_connector *connector)
{
    rondo_segment_release(runtime->segments, connector->own);
}

const struct rondo_transport rondo_transport_shm = {
    .name = "shm",
    .unusable = unusable,
    .reaches = reaches,
    .listen = listen,
    .connect = connect,
    .close_listener = close_listener,
    .close_sender = close_sender,
};
