/*
 * Lanes on the host (lib/connection/lane.h): their indices in the daemon's table, their links and their bindings. Relies on the
 * device for memory and on connect.h for connectors.
 */
#include "lib/connection/lane.h"

#include "lib/connection/connect.h"
#include "device/abi/platform.h"
#include "device/engine/use.h"
#include "lib/program/program.h"
#include "lib/connection/plan_cache.h"
#include "lib/connection/comm_connections.h"
#include "lib/connection/slots.h"
#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_COUNT 4

static rondo_result_t take_index(struct rondo_runtime *runtime, struct rondo_host_lane *lane)
{
    struct rondo_daemon *daemon = runtime->device->daemon;
    pthread_mutex_lock(&runtime->lock);
    struct rondo_host_lane *old = runtime->free_lanes;
    if (old != NULL) { /* its counters continue, so the daemon's copy stays valid */
        runtime->free_lanes = old->next;
        lane->index = old->index;
        pthread_mutex_unlock(&runtime->lock);
        lane->requests = old->requests;
        free(old);
        rondo_store_release32(&daemon->queues->failed[lane->index], 0);
        return RONDO_SUCCESS;
    }
    rondo_result_t result = RONDO_SUCCESS;
    if (runtime->lanes_used == daemon->lane_count) {
        result = rondo_fail(RONDO_ERR_MEMORY, "%u lanes are in use; the daemon's table holds no more", runtime->lanes_used);
    } else {
        lane->index = runtime->lanes_used++;
        rondo_store_release32(&daemon->queues->lanes_used, runtime->lanes_used);
    }
    pthread_mutex_unlock(&runtime->lock);
    return result;
}

rondo_result_t rondo_lane_create(struct rondo_comm *comm, const struct rondo_lane_options *options, rondo_lane_renew_t *renew,
                                 struct rondo_host_lane **result)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_host_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a lane");
    lane->comm = comm;
    lane->id = options->id;
    lane->peer = options->peer;
    lane->outgoing = options->outgoing;
    lane->slot_count = rondo_is_wide(comm) ? rondo_network_slots(runtime) : SLOT_COUNT;
    memcpy(lane->slot_bytes, options->slot_bytes, sizeof(lane->slot_bytes));
    rondo_result_t status = take_index(runtime, lane);
    if (status != RONDO_SUCCESS) {
        free(lane);
        return status;
    }
    struct rondo_lane_requests *requests = renew(lane->requests);
    if (requests == NULL) {
        pthread_mutex_lock(&runtime->lock);
        lane->next = runtime->free_lanes;
        runtime->free_lanes = lane;
        pthread_mutex_unlock(&runtime->lock);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a lane");
    }
    lane->requests = requests;
    pthread_mutex_init(&lane->bind_lock, NULL);
    lane->priority = options->priority;
    pthread_mutex_lock(&runtime->lock);
    lane->next = comm->connections->lanes;
    comm->connections->lanes = lane;
    rondo_result_t failed = rondo_comm_failure(comm);
    if (failed != RONDO_SUCCESS)
        rondo_lane_fail(lane, failed);
    pthread_mutex_unlock(&runtime->lock);
    *result = lane;
    return RONDO_SUCCESS;
}

void rondo_lane_fail(struct rondo_host_lane *lane, rondo_result_t code)
{
    struct rondo_queues *queues = lane->comm->runtime->device->daemon->queues;
    rondo_store_release32(&queues->failed[lane->index], (uint32_t) code);
    __atomic_fetch_add(&queues->interrupts, 1, __ATOMIC_SEQ_CST);
}

static void key_of(const struct rondo_host_lane *lane, const struct rondo_connection *what, struct rondo_connector_key *key)
{
    const struct rondo_comm *comm = lane->comm;
    int outgoing = what->direction == RONDO_OUTGOING;
    memset(key, 0, sizeof(*key));
    key->comm = comm->id;
    key->lane = lane->id;
    key->source = comm->members[outgoing ? comm->rank : what->peer];
    key->destination =
        rondo_is_multicast(what->protocol) ? RONDO_ALL_RECEIVE : comm->members[outgoing ? what->peer : comm->rank];
    key->channel = what->channel;
    key->protocol = what->protocol;
}

static void free_binding(struct rondo_runtime *runtime, struct rondo_binding *binding)
{
    struct rondo_device *device = runtime->device;
    const struct rondo_program *program = binding->plan != NULL ? binding->plan->program : NULL;
    if (binding->program != NULL)
        device->kind->release(device, binding->program, program->bytes);
    if (binding->ends != NULL)
        device->kind->release(device, binding->ends, (program->ends + 1) * sizeof(*binding->ends));
    if (binding->parts != NULL)
        device->kind->release(device, binding->parts, program->blocks * sizeof(*binding->parts));
    rondo_plan_free(binding->plan);
    free(binding);
}

void rondo_lane_free(struct rondo_host_lane *lane)
{
    struct rondo_runtime *runtime = lane->comm->runtime;
    pthread_mutex_lock(&runtime->lock);
    for (struct rondo_host_lane **link = &lane->comm->connections->lanes; *link != NULL; link = &(*link)->next)
        if (*link == lane) {
            *link = lane->next;
            break;
        }
    pthread_mutex_unlock(&runtime->lock);
    while (lane->bindings != NULL) {
        struct rondo_binding *binding = lane->bindings;
        lane->bindings = binding->next;
        free_binding(runtime, binding);
    }
    for (int i = 0; i < lane->link_count; i++) {
        struct rondo_connector_key key;
        key_of(lane, &lane->links[i].what, &key);
        rondo_disconnect(runtime, &key, lane->links[i].connector);
    }
    for (int i = 0; i < lane->link_count; i++)
        if (lane->links[i].row > 0)
            runtime->device->kind->release(runtime->device, lane->links[i].end,
                                           (size_t) lane->links[i].row * sizeof(struct rondo_end));
    free(lane->links);
    lane->links = NULL;
    lane->link_count = 0;
    pthread_mutex_destroy(&lane->bind_lock);
    pthread_mutex_lock(&runtime->lock);
    lane->next = runtime->free_lanes;
    runtime->free_lanes = lane;
    pthread_mutex_unlock(&runtime->lock);
}

void rondo_lanes_destroy(struct rondo_runtime *runtime)
{
    while (runtime->free_lanes != NULL) {
        struct rondo_host_lane *lane = runtime->free_lanes;
        runtime->free_lanes = lane->next;
        free(lane->requests);
        free(lane);
    }
}

/* ---- binding ---- */

static struct rondo_link *find_link(struct rondo_host_lane *lane, const struct rondo_connection *what)
{
    for (int i = 0; i < lane->link_count; i++)
        if (memcmp(&lane->links[i].what, what, sizeof(*what)) == 0)
            return &lane->links[i];
    return NULL;
}

/* Sets what a multicast sender's end has of its receivers: all other members, in the order of ranks. */
static void name_receivers(const struct rondo_comm *comm, struct rondo_end *end, uint32_t receivers)
{
    struct rondo_multicast_head *heads = (struct rondo_multicast_head *) (void *) end->watched;
    end->receivers = (uint8_t) receivers;
    for (uint32_t i = 0; i < receivers; i++)
        heads[i].peer = comm->members[i + (i >= (uint32_t) comm->rank)];
}

/* Allocates the ends of count new connectors together, in device memory. NULL if there is no memory. */
static struct rondo_end *make_ends(struct rondo_host_lane *lane, const struct rondo_connector_request *requests,
                                   const struct rondo_connection *const *whats, int count)
{
    struct rondo_runtime *runtime = lane->comm->runtime;
    struct rondo_device *device = runtime->device;
    size_t bytes = (size_t) count * sizeof(struct rondo_end);
    struct rondo_end *ends = device->kind->allocate(device, bytes), *values = calloc((size_t) count, sizeof(*values));
    for (int i = 0; i < count && values != NULL; i++) {
        const struct rondo_connector *connector = requests[i].connector;
        values[i].watched = connector->watched;
        values[i].published = connector->published;
        values[i].sizes = connector->sizes;
        values[i].source_references = connector->source_references;
        if (connector->receive_actions != NULL) { /* this field shares its storage with a sender's */
            values[i].receive_actions = connector->receive_actions;
            values[i].posts_receive_actions = 1;
        }
        values[i].slot_bytes = connector->spec.slot_bytes;
        values[i].slot_count = connector->spec.slot_count;
        values[i].protocol = (uint16_t) connector->spec.protocol;
        values[i].slots = connector->slots + (rondo_has_tails_in_slots(&values[i]) ? RONDO_TINY_HEAD : 0);
        values[i].peer = connector->spec.peer;
        if (requests[i].direction == RONDO_OUTGOING && connector->spec.receivers > 0)
            name_receivers(lane->comm, &values[i], connector->spec.receivers);
        values[i].windows = lane->comm->connections->windows + (size_t) whats[i]->peer * RONDO_WINDOWS_MAX;
        rondo_log(RONDO_LOG_DEBUG, runtime->rank, "connector with rank %d over %s: slots %p, watches %p, publishes %p",
                  connector->spec.peer, connector->transport->name, (void *) connector->slots, (void *) connector->watched,
                  (void *) connector->published);
    }
    if (ends != NULL && (values == NULL || device->kind->upload(device, ends, values, bytes) != RONDO_SUCCESS)) {
        device->kind->release(device, ends, bytes);
        ends = NULL;
    }
    free(values);
    return ends;
}

/* Whether the connection is among the first count. A block may name one end several times, so that the ends of its instructions
 * are adjacent. */
static int is_requested(const struct rondo_connection **whats, int count, const struct rondo_connection *what)
{
    for (int i = 0; i < count; i++)
        if (memcmp(whats[i], what, sizeof(*what)) == 0)
            return 1;
    return 0;
}

/* Opens the plan's connectors that the lane does not have yet. Bind lock held. */
static rondo_result_t connect_missing(struct rondo_host_lane *lane, const struct rondo_plan *plan)
{
    struct rondo_runtime *runtime = lane->comm->runtime;
    int count = (int) plan->program->ends, missing = 0;
    struct rondo_connector_request *requests = calloc((size_t) count + 1, sizeof(*requests));
    const struct rondo_connection **whats = calloc((size_t) count + 1, sizeof(*whats));
    struct rondo_link *links = realloc(lane->links, ((size_t) lane->link_count + (size_t) count + 1) * sizeof(*links));
    rondo_result_t result = RONDO_SUCCESS;
    if (links != NULL)
        lane->links = links;
    if (requests == NULL || whats == NULL || links == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory to connect %d connectors", count);
    for (int i = 0; i < count && result == RONDO_SUCCESS; i++) {
        const struct rondo_connection *what = &plan->connections[i];
        if (find_link(lane, what) != NULL || is_requested(whats, missing, what))
            continue;
        whats[missing] = what;
        requests[missing].direction = (enum rondo_direction) what->direction;
        key_of(lane, what, &requests[missing].key);
        requests[missing].spec.slot_bytes = lane->slot_bytes[what->protocol];
        requests[missing].spec.slot_count = rondo_protocol_slots((enum rondo_protocol) what->protocol, lane->slot_count);
        requests[missing].spec.protocol = what->protocol;
        requests[missing].spec.peer = lane->comm->members[what->peer];
        if (rondo_is_multicast(what->protocol)) {
            requests[missing].spec.receivers = (uint32_t) lane->comm->size - 1;
            requests[missing].spec.place = (uint32_t) (lane->comm->rank - (lane->comm->rank > what->peer));
        }
        missing++;
    }
    if (result == RONDO_SUCCESS && missing > 0)
        result = rondo_connect(lane->comm, requests, missing);
    if (result == RONDO_SUCCESS && missing > 0) {
        struct rondo_end *ends = make_ends(lane, requests, whats, missing);
        if (ends == NULL)
            result = rondo_fail(RONDO_ERR_MEMORY, "no device memory for the ends of %d connectors", missing);
        for (int i = 0; i < missing; i++)
            if (ends == NULL)
                rondo_disconnect(runtime, &requests[i].key, requests[i].connector);
            else
                lane->links[lane->link_count++] =
                    (struct rondo_link){*whats[i], requests[i].connector, ends + i, i == 0 ? missing : 0};
    }
    free(requests);
    free(whats);
    return result;
}

/* Whether one end occurs more than once among the count. */
static uint32_t has_repeated(struct rondo_end *const *ends, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (ends[i] == ends[k])
                return 1;
    return 0;
}

/* Whether all of the program's ends have that direction: it takes slots and fills none, or the other way round. */
static uint32_t has_only(const struct rondo_plan *plan, enum rondo_direction direction)
{
    for (uint32_t i = 0; i < plan->program->ends; i++)
        if (plan->connections[i].direction != direction)
            return 0;
    return plan->program->ends > 0;
}

static void describe_parts(struct rondo_binding *binding, struct rondo_end *const *ends, struct rondo_part *parts)
{
    const struct rondo_program *program = binding->plan->program;
    const char *image = (const char *) binding->program; /* the device's */
    const struct rondo_program_block *blocks = rondo_program_blocks(program);
    const uint32_t receives = has_only(binding->plan, RONDO_INCOMING);
    binding->only_sends = (int) has_only(binding->plan, RONDO_OUTGOING);
    for (uint32_t b = 0; b < program->blocks; b++) {
        uint32_t first = blocks[b].end_first, count = blocks[b].ends, neighbours = 1;
        parts[b].instructions = (const struct rondo_instruction *) (const void *) (image + program->instruction_offset) +
                                blocks[b].instruction_first;
        parts[b].dependencies = (const struct rondo_dependency *) (const void *) (image + program->dependency_offset);
        parts[b].ends = binding->ends + first;
        parts[b].instruction_count = blocks[b].instructions;
        parts[b].end_count = count;
        while (neighbours < count && ends[first + neighbours] == ends[first] + neighbours)
            neighbours++;
        parts[b].row = count > 0 && neighbours == count ? ends[first] : NULL;
        parts[b].repeats = parts[b].row == NULL && has_repeated(ends + first, count);
        parts[b].only_receives = receives;
        binding->repeats |= (int) parts[b].repeats;
    }
}

static rondo_result_t upload_program(struct rondo_host_lane *lane, struct rondo_binding *binding)
{
    struct rondo_device *device = lane->comm->runtime->device;
    const struct rondo_program *program = binding->plan->program;
    size_t end_bytes = (program->ends + 1) * sizeof(struct rondo_end *);
    size_t part_bytes = program->blocks * sizeof(struct rondo_part);
    struct rondo_end **ends = calloc(1, end_bytes);
    struct rondo_part *parts = calloc(1, part_bytes);
    rondo_result_t result = RONDO_SUCCESS;
    binding->program = device->kind->allocate(device, program->bytes);
    binding->ends = device->kind->allocate(device, end_bytes);
    binding->parts = device->kind->allocate(device, part_bytes);
    if (ends == NULL || parts == NULL || binding->program == NULL || binding->ends == NULL || binding->parts == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a program of %u bytes", program->bytes);
    if (result == RONDO_SUCCESS) {
        for (uint32_t i = 0; i < program->ends; i++)
            ends[i] = find_link(lane, &binding->plan->connections[i])->end;
        describe_parts(binding, ends, parts);
        binding->first = parts[0];
        result = device->kind->upload(device, binding->program, program, program->bytes);
    }
    if (result == RONDO_SUCCESS)
        result = device->kind->upload(device, binding->ends, ends, end_bytes);
    if (result == RONDO_SUCCESS)
        result = device->kind->upload(device, binding->parts, parts, part_bytes);
    free(ends);
    free(parts);
    return result;
}

/* Compiles the plan, or takes it from the cache. A compiled program gets as many blocks as it has channels, or, on a device
 * with more blocks, all of the lane's. */
static rondo_result_t build_plan(const struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                                 const struct rondo_shape *shape, struct rondo_plan **plan)
{
    const struct rondo_runtime *runtime = lane->comm->runtime;
    rondo_plan_build_t *build = rondo_algorithm_builder(algorithm, shape);
    if (build != NULL)
        return build(shape, plan);
    uint32_t blocks = algorithm->registered != NULL ? runtime->settings.channels : (uint32_t) shape->channels;
    const uint32_t most = runtime->device->daemon->lane_contexts;
    if (runtime->device_type == RONDO_DEVICE_CUDA)
        blocks = 2 * blocks < most ? 2 * blocks : most;
    return rondo_plan_cache_get(lane->comm, algorithm, shape, blocks, rondo_lane_messages(lane, algorithm->single_chunks),
                                plan);
}

static rondo_result_t make_binding(struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                                   const struct rondo_shape *shape, struct rondo_binding **result)
{
    struct rondo_device *device = lane->comm->runtime->device;
    struct rondo_binding *binding = calloc(1, sizeof(*binding));
    if (binding == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a binding");
    binding->algorithm = algorithm;
    binding->shape = *shape;
    uint32_t contexts = device->daemon->lane_contexts;
    rondo_result_t status = build_plan(lane, algorithm, shape, &binding->plan);
    if (status == RONDO_SUCCESS && binding->plan->program->blocks > contexts)
        status = rondo_fail(RONDO_ERR_UNSUPPORTED, "program %s has %u blocks, its lane %u contexts (RONDO_BLOCKS)",
                            algorithm->name, binding->plan->program->blocks, contexts);
    if (status == RONDO_SUCCESS)
        status = connect_missing(lane, binding->plan);
    if (status == RONDO_SUCCESS)
        status = upload_program(lane, binding);
    if (status != RONDO_SUCCESS) {
        free_binding(lane->comm->runtime, binding);
        return status;
    }
    binding->next = lane->bindings;
    /* Release: readers traverse the list without the lock. A binding does not change once it is in the list. */
    __atomic_store_n(&lane->bindings, binding, __ATOMIC_RELEASE);
    *result = binding;
    return RONDO_SUCCESS;
}

static struct rondo_binding *find_binding(struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                                          const struct rondo_shape *shape)
{
    struct rondo_binding *binding = __atomic_load_n(&lane->bindings, __ATOMIC_ACQUIRE);
    while (binding != NULL && (binding->algorithm != algorithm || memcmp(&binding->shape, shape, sizeof(*shape)) != 0))
        binding = binding->next;
    return binding;
}

rondo_result_t rondo_lane_bind(struct rondo_host_lane *lane, const struct rondo_algorithm *algorithm,
                               const struct rondo_shape *shape, struct rondo_binding **result)
{
    rondo_result_t status = RONDO_SUCCESS;
    struct rondo_binding *binding = find_binding(lane, algorithm, shape);
    if (binding == NULL) {
        pthread_mutex_lock(&lane->bind_lock);
        binding = find_binding(lane, algorithm, shape); /* another thread may have bound it before this one took the lock */
        if (binding == NULL)
            status = make_binding(lane, algorithm, shape, &binding);
        pthread_mutex_unlock(&lane->bind_lock);
    }
    *result = binding;
    return status;
}
