/*
 * Hierarchical, by hand, for several hosts with equally many ranks each: what can be done within a host is done there, so that
 * no more than necessary crosses between hosts. Each rank works with the others of its host (its local ring) and with those of
 * the other hosts that have its number there (its outer ring), so that all ranks' network adapters share the way between hosts.
 * Written by hand because the ranks of a host need not lie side by side.
 *
 * - all-reduce: reduce-scatter in the host, all-reduce between hosts of the part that each rank then has, all-gather in the
 *   host: a host sends 2 (n-1)/n of the data, a flat ring up to 2
 * - reduce-scatter: in the host, then between hosts; all-gather: between hosts, then in the host
 * - broadcast: along a chain of hosts, and from each host's first receiver along a chain of its ranks
 * - all-to-all: to the rank of this host that has the receiver's local number, then between hosts: n - 1 peers there, not n - 1
 * times the ranks of a host
 */
#include "lib/algorithms/algorithms.h"

#include "lib/bootstrap/topology.h"

struct plane {
    const struct rondo_shape *shape;
    struct rondo_plan_builder *builder;
    int nodes, locals, node, local, channel;
    uint8_t local_from, local_to, outer_from, outer_to; /* ends of the rings */
    uint8_t local_out, local_in, outer_out, outer_in;   /* all-to-all: the first ends to, and from, the peers */
};

static int wrap(int place, int around)
{
    return (place % around + around) % around;
}

static int rank_at(const struct plane *plane, int node, int local)
{
    return plane->shape->topology->ranks[wrap(node, plane->nodes) * plane->locals + wrap(local, plane->locals)];
}

/* Returns the channel's chunk of a rank's block in a buffer that has one for each rank, in the order of ranks. */
static uint32_t part(const struct plane *plane, int node, int local)
{
    return (uint32_t) (rank_at(plane, node, local) * plane->shape->channels + plane->channel);
}

/* Returns the first chunk of the part of an all-reduce that (node, local) completes; parts of one local number lie side by
 * side. */
static uint32_t share(const struct plane *plane, int node, int local)
{
    int place = wrap(local, plane->locals) * plane->nodes + wrap(node, plane->nodes);
    return (uint32_t) (plane->channel * plane->shape->size + place);
}

struct place {
    enum rondo_buffer buffer;
    uint32_t index;
};

/* An instruction to add: `count` chunks, received by the end `from` and sent by the end `to` where its actions ask for that. */
struct step {
    int actions, flags;
    uint8_t from, to;
    struct place source, destination;
    int count;
};

static void add(const struct plane *plane, const struct step *step)
{
    struct rondo_instruction instruction = {
        .actions = (uint8_t) step->actions,
        .flags = (uint8_t) step->flags,
        .source_buffer = (uint8_t) step->source.buffer,
        .destination_buffer = (uint8_t) step->destination.buffer,
        .source_index = step->source.index,
        .destination_index = step->destination.index,
        .count = (uint16_t) step->count,
        .receive_first = step->from,
        .receive_count = step->actions & RONDO_RECEIVE ? 1 : 0,
        .send_first = step->to,
        .send_count = step->actions & RONDO_SEND ? 1 : 0,
        .local_place = 1,
    };
    rondo_plan_builder_add(plane->builder, &instruction);
}

/* Adds steps of the ring within the host, or between hosts. */
static void add_local(const struct plane *plane, int actions, struct place source, struct place destination, int count)
{
    add(plane, &(struct step){actions, 0, plane->local_from, plane->local_to, source, destination, count});
}

static void add_outer(const struct plane *plane, int actions, int flags, struct place source, struct place destination)
{
    add(plane, &(struct step){actions, flags, plane->outer_from, plane->outer_to, source, destination, 1});
}

static void send_block(const struct plane *plane, uint8_t to, struct place at)
{
    add(plane, &(struct step){.actions = RONDO_SEND, .to = to, .source = at, .destination = at, .count = 1});
}

static void receive_block(const struct plane *plane, uint8_t from, struct place at)
{
    add(plane,
        &(struct step){.actions = RONDO_RECEIVE | RONDO_COPY, .from = from, .source = at, .destination = at, .count = 1});
}

static void copy_block(const struct plane *plane, struct place source, struct place destination)
{
    add(plane, &(struct step){.actions = RONDO_COPY, .source = source, .destination = destination, .count = 1});
}

static uint8_t end(const struct plane *plane, int rank, enum rondo_direction direction)
{
    return rondo_plan_builder_end(plane->builder, rank, plane->channel, direction, plane->shape->protocol);
}

static void add_rings(struct plane *plane)
{
    plane->local_from = end(plane, rank_at(plane, plane->node, plane->local - 1), RONDO_INCOMING);
    plane->local_to = end(plane, rank_at(plane, plane->node, plane->local + 1), RONDO_OUTGOING);
    plane->outer_from = end(plane, rank_at(plane, plane->node - 1, plane->local), RONDO_INCOMING);
    plane->outer_to = end(plane, rank_at(plane, plane->node + 1, plane->local), RONDO_OUTGOING);
}

/* Returns what a rank does at a step of a reducing ring of so many ranks: send its own, reduce and pass on, or reduce and
 * store. */
static int reducing(int step, int around)
{
    return step == 1 ? RONDO_SEND : RONDO_RECEIVE | RONDO_REDUCE | (step < around ? RONDO_SEND : RONDO_COPY);
}

/* Returns what a rank does at a step of a gathering ring, after sending its own. */
static int gathering(int step, int around)
{
    return RONDO_RECEIVE | RONDO_COPY | (step < around - 1 ? RONDO_SEND : 0);
}

static void all_reduce(struct plane *plane)
{
    int node = plane->node, local = plane->local, nodes = plane->nodes, locals = plane->locals;
    for (int step = 1; step <= locals; step++) {
        uint32_t at = share(plane, 0, local - step);
        add_local(plane, reducing(step, locals), (struct place){RONDO_INPUT, at}, (struct place){RONDO_OUTPUT, at}, nodes);
    }
    for (int step = 1; step <= nodes; step++) {
        struct place at = {RONDO_OUTPUT, share(plane, node - step, local)};
        int last = step == nodes;
        add_outer(plane, reducing(step, nodes) | (last ? RONDO_SEND : 0), last ? RONDO_FINISH : 0, at, at);
    }
    for (int step = 1; step < nodes; step++) {
        struct place at = {RONDO_OUTPUT, share(plane, node - step, local)};
        add_outer(plane, gathering(step, nodes), 0, at, at);
    }
    struct place own = {RONDO_OUTPUT, share(plane, 0, local)};
    add_local(plane, RONDO_SEND, own, own, nodes);
    for (int step = 1; step < locals; step++) {
        struct place at = {RONDO_OUTPUT, share(plane, 0, local - step)};
        add_local(plane, gathering(step, locals), at, at, nodes);
    }
}

/* Scratch has, for each host, this host's sum of the part of that host's rank with this local number. */
static void reduce_scatter(struct plane *plane)
{
    int channels = plane->shape->channels;
    /* Host by host: of the same step for all hosts, more would be sent before anything is received than there are slots. */
    for (int node = 0; node < plane->nodes; node++)
        for (int step = 1; step <= plane->locals; step++)
            add_local(plane, reducing(step, plane->locals), (struct place){RONDO_INPUT, part(plane, node, plane->local - step)},
                      (struct place){RONDO_SCRATCH, (uint32_t) (node * channels + plane->channel)}, 1);
    for (int step = 1; step <= plane->nodes; step++) {
        int node = wrap(plane->node - step, plane->nodes);
        add_outer(plane, reducing(step, plane->nodes), step == plane->nodes ? RONDO_FINISH : 0,
                  (struct place){RONDO_SCRATCH, (uint32_t) (node * channels + plane->channel)},
                  (struct place){RONDO_OUTPUT, (uint32_t) plane->channel});
    }
}

static void all_gather(struct plane *plane)
{
    int node = plane->node, local = plane->local;
    add_outer(plane, RONDO_COPY | RONDO_SEND, 0, (struct place){RONDO_INPUT, (uint32_t) plane->channel},
              (struct place){RONDO_OUTPUT, part(plane, node, local)});
    for (int step = 1; step < plane->nodes; step++) {
        struct place at = {RONDO_OUTPUT, part(plane, node - step, local)};
        add_outer(plane, gathering(step, plane->nodes), 0, at, at);
    }
    for (int other = 0; other < plane->nodes; other++)
        for (int step = 0; step < plane->locals; step++) {
            struct place at = {RONDO_OUTPUT, part(plane, other, local - step)};
            int actions = step == 0 ? RONDO_SEND : gathering(step, plane->locals);
            add_local(plane, actions, at, at, 1);
        }
}

/* One instruction a rank: the first rank of each host, which has the root's local number, also sends to the next host. */
static void broadcast(struct plane *plane)
{
    const struct rondo_topology *topology = plane->shape->topology;
    int from_root = wrap(plane->node - topology->node[plane->shape->root], plane->nodes);
    int from_first = wrap(plane->local - topology->local[plane->shape->root], plane->locals);
    struct rondo_instruction instruction = {.source_index = (uint32_t) plane->channel,
                                            .destination_buffer = RONDO_OUTPUT,
                                            .destination_index = (uint32_t) plane->channel,
                                            .count = 1,
                                            .receive_count = 1};
    if (from_root > 0 || from_first > 0) {
        int from =
            from_first > 0 ? rank_at(plane, plane->node, plane->local - 1) : rank_at(plane, plane->node - 1, plane->local);
        instruction.actions = RONDO_RECEIVE | RONDO_COPY;
        instruction.receive_first = end(plane, from, RONDO_INCOMING);
    }
    instruction.send_first = (uint8_t) (from_root > 0 || from_first > 0);
    if (from_first == 0 && from_root < plane->nodes - 1) {
        end(plane, rank_at(plane, plane->node + 1, plane->local), RONDO_OUTGOING);
        instruction.send_count++;
    }
    if (from_first < plane->locals - 1) {
        end(plane, rank_at(plane, plane->node, plane->local + 1), RONDO_OUTGOING);
        instruction.send_count++;
    }
    if (instruction.send_count > 0)
        instruction.actions |= RONDO_SEND;
    rondo_plan_builder_add(plane->builder, &instruction);
}

/* Peers are taken by their distance. Each round sends one block to, and receives one from, each of them, so no connector ever
 * holds more than two, however many rounds there are. */
static void all_to_all(struct plane *plane)
{
    int node = plane->node, local = plane->local, nodes = plane->nodes, locals = plane->locals;
    for (int d = 1; d < locals; d++) {
        uint8_t out = end(plane, rank_at(plane, node, local + d), RONDO_OUTGOING);
        plane->local_out = d == 1 ? out : plane->local_out;
    }
    for (int d = 1; d < locals; d++) {
        uint8_t in = end(plane, rank_at(plane, node, local - d), RONDO_INCOMING);
        plane->local_in = d == 1 ? in : plane->local_in;
    }
    for (int d = 1; d < nodes; d++) {
        uint8_t out = end(plane, rank_at(plane, node + d, local), RONDO_OUTGOING);
        plane->outer_out = d == 1 ? out : plane->outer_out;
    }
    for (int d = 1; d < nodes; d++) {
        uint8_t in = end(plane, rank_at(plane, node - d, local), RONDO_INCOMING);
        plane->outer_in = d == 1 ? in : plane->outer_in;
    }
    /* Scratch, once filled: chunk (n, l) goes to the rank of host n with this local number, and came from rank l of this host.
     */
    for (int to = 0; to < nodes; to++) {
        for (int d = 1; d < locals; d++) {
            struct place from = {RONDO_INPUT, part(plane, to, local + d)};
            send_block(plane, (uint8_t) (plane->local_out + d - 1), from);
        }
        copy_block(plane, (struct place){RONDO_INPUT, part(plane, to, local)},
                   (struct place){RONDO_SCRATCH, part(plane, to, local)});
        for (int d = 1; d < locals; d++) {
            struct place at = {RONDO_SCRATCH, part(plane, to, local - d)};
            receive_block(plane, (uint8_t) (plane->local_in + d - 1), at);
        }
    }
    for (int from = 0; from < locals; from++) {
        for (int d = 1; d < nodes; d++) {
            struct place at = {RONDO_SCRATCH, part(plane, node + d, from)};
            send_block(plane, (uint8_t) (plane->outer_out + d - 1), at);
        }
        copy_block(plane, (struct place){RONDO_SCRATCH, part(plane, node, from)},
                   (struct place){RONDO_OUTPUT, part(plane, node, from)});
        for (int d = 1; d < nodes; d++) {
            struct place at = {RONDO_OUTPUT, part(plane, node - d, from)};
            receive_block(plane, (uint8_t) (plane->outer_in + d - 1), at);
        }
    }
}

static void one_channel(struct plane *plane)
{
    switch (plane->shape->kind) {
    case RONDO_KIND_BCAST:
        broadcast(plane);
        break;
    case RONDO_KIND_ALLTOALL:
        all_to_all(plane);
        break;
    case RONDO_KIND_REDUCE_SCATTER_BLOCK:
        add_rings(plane);
        reduce_scatter(plane);
        break;
    case RONDO_KIND_ALLGATHER:
        add_rings(plane);
        all_gather(plane);
        break;
    default:
        add_rings(plane);
        all_reduce(plane);
        break;
    }
}

rondo_result_t rondo_build_hierarchical(const struct rondo_shape *shape, struct rondo_plan **result)
{
    const struct rondo_topology *topology = shape->topology;
    struct plane plane = {.shape = shape,
                          .builder = rondo_plan_builder_create(),
                          .nodes = topology->nodes,
                          .locals = topology->locals,
                          .node = topology->node[shape->rank],
                          .local = topology->local[shape->rank]};
    uint32_t chunks[RONDO_BUFFERS], groups = 1;
    rondo_shape_chunks(shape, chunks);
    if (shape->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK)
        groups = (uint32_t) plane.nodes;
    else if (shape->kind == RONDO_KIND_ALLTOALL)
        groups = (uint32_t) shape->size;
    if (groups > 1)
        chunks[RONDO_SCRATCH] = groups * (uint32_t) shape->channels;
    for (plane.channel = 0; plane.channel < shape->channels; plane.channel++) {
        rondo_plan_builder_block(plane.builder);
        one_channel(&plane);
    }
    rondo_result_t status = rondo_plan_builder_finish(plane.builder, chunks, result);
    if (status == RONDO_SUCCESS)
        (*result)->scratch_groups = groups;
    return status;
}
