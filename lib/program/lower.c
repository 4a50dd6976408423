/*
 * Makes instructions of operations (GC3 section 4): every operation becomes a send and a receive, or one local instruction, a
 * number of times side by side where it is parallelized. What a node must wait for is found chunk by chunk: the chunk's last
 * writer (true dependence), and where it writes, also the readers since (false ones).
 *
 * A chunk of an input buffer that is written to moves: what it holds from then on lies in the output chunk that is the same in
 * place, or in scratch. So no instruction writes to an input, and a program written for one buffer runs with two.
 */
#include "lib/program/graph.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

static struct rondo_place *places_of(struct rondo_graph *graph, uint32_t rank, int buffer)
{
    return graph->places + graph->place_first[rank * RONDO_BUFFERS + (uint32_t) buffer];
}

/* ---- edges ---- */

/* The node must come after the previous one. */
static void add_previous(struct rondo_graph *graph, uint32_t node, uint32_t previous)
{
    if (previous == RONDO_NONE || previous == node || graph->mark[previous] == node)
        return;
    graph->mark[previous] = node;
    if (!rondo_grow((void **) &graph->previous, graph->previous_count, &graph->previous_room, sizeof(uint32_t))) {
        graph->failed = 1;
        return;
    }
    graph->previous[graph->previous_count++] = previous;
    graph->nodes[node].previous++;
}

static void add_link(struct rondo_graph *graph, uint32_t *list, uint32_t node)
{
    if (*list != RONDO_NONE && graph->links[*list].node == node)
        return;
    if (!rondo_grow((void **) &graph->links, graph->link_count, &graph->link_room, sizeof(*graph->links))) {
        graph->failed = 1;
        return;
    }
    graph->links[graph->link_count] = (struct rondo_link_list){node, *list};
    *list = (uint32_t) graph->link_count++;
}

/* Notes that the node reads the chunks: it comes after their last writers. */
static void reads(struct rondo_graph *graph, uint32_t node, uint32_t rank, int buffer, uint32_t first, uint32_t count)
{
    struct rondo_place *places = places_of(graph, rank, buffer) + first;
    uint32_t last = RONDO_NONE;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t writer = places[k].writer;
        add_previous(graph, node, writer);
        add_link(graph, &places[k].readers, node);
        if (writer == RONDO_NONE || writer == last)
            continue;
        last = writer;
        struct rondo_node *w = &graph->nodes[writer];
        int exact = w->written_buffer == buffer && w->written_first == first && w->count == count;
        if (exact)
            add_link(graph, &w->consumers, node);
        else
            w->needed = 1;
    }
}

/* Notes that the node writes the chunks: it comes after their last writers and the readers since. */
static void writes(struct rondo_graph *graph, uint32_t node, uint32_t rank, int buffer, uint32_t first, uint32_t count)
{
    struct rondo_place *places = places_of(graph, rank, buffer) + first;
    graph->nodes[node].written_buffer = (uint8_t) buffer;
    graph->nodes[node].written_first = first;
    for (uint32_t k = 0; k < count; k++) {
        add_previous(graph, node, places[k].writer);
        for (uint32_t i = places[k].readers; i != RONDO_NONE; i = graph->links[i].next) {
            struct rondo_node *reader = &graph->nodes[graph->links[i].node];
            add_previous(graph, node, graph->links[i].node);
            if (graph->links[i].node != node && reader->clobbered > graph->nodes[node].op)
                reader->clobbered = graph->nodes[node].op;
        }
        places[k].writer = node;
        places[k].readers = RONDO_NONE;
    }
}

/* ---- places ---- */

/* Stores where the chunk lies: a buffer of the plan and the index there. written: an operation has written it, or does. */
static void home(const struct rondo_graph *graph, uint32_t rank, int buffer, uint32_t index, int written, uint8_t *in,
                 uint32_t *at)
{
    const struct rondo_conditions *c = &graph->conditions;
    uint32_t twin;
    *in = (uint8_t) buffer;
    *at = index;
    if (buffer == RONDO_INPUT && written) {
        if (graph->builder->in_place && rondo_conditions_twin(c, rank, index, &twin)) {
            *in = RONDO_OUTPUT;
            *at = twin;
        } else {
            *in = RONDO_SCRATCH;
            *at = graph->scratch[rank] + index;
        }
    } else if (buffer == RONDO_OUTPUT && !written && graph->builder->in_place && rondo_conditions_twin(c, rank, 0, &twin)) {
        *in = RONDO_INPUT;
        *at = index - twin;
    }
}

static uint32_t class_at(struct rondo_graph *graph, uint32_t rank, int buffer, uint32_t index)
{
    if (buffer == RONDO_SCRATCH)
        return places_of(graph, rank, RONDO_SCRATCH)[index].class;
    return rondo_conditions_class(&graph->conditions, rank, (enum rondo_buffer) buffer, index);
}

static uint32_t new_node(struct rondo_graph *graph, uint32_t rank, uint32_t op, uint32_t count, int actions)
{
    size_t at = graph->node_count;
    if (at >= RONDO_NONE - 1 || !rondo_grow((void **) &graph->nodes, at, &graph->node_room, sizeof(*graph->nodes))) {
        graph->failed = 1;
        return 0;
    }
    if (graph->mark_room < graph->node_room) {
        uint32_t *mark = realloc(graph->mark, graph->node_room * sizeof(*mark));
        if (mark == NULL) {
            graph->failed = 1;
            return 0;
        }
        memset(mark + graph->mark_room, 0xff, (graph->node_room - graph->mark_room) * sizeof(*mark));
        graph->mark = mark;
        graph->mark_room = graph->node_room;
    }
    graph->nodes[at] = (struct rondo_node){.rank = rank,
                                           .op = op,
                                           .count = count,
                                           .actions = (uint8_t) actions,
                                           .to = RONDO_NONE,
                                           .from = RONDO_NONE,
                                           .previous_first = (uint32_t) graph->previous_count,
                                           .consumers = RONDO_NONE,
                                           .clobbered = RONDO_NONE,
                                           .merged = RONDO_NONE,
                                           .channel = RONDO_CHANNEL_AUTO,
                                           .instances = 1};
    graph->node_count++;
    return (uint32_t) at;
}

/* ---- operations ---- */

/* A part of an operation whose chunks lie one after the other, for one instance. */
struct part {
    const struct rondo_op *op;
    uint32_t number; /* of the op */
    uint32_t source, destination, count;
    uint32_t instance;
};

static int in_a_row(const struct rondo_graph *graph, uint32_t rank, int buffer, uint32_t first, uint32_t k, int written)
{
    uint8_t in[2];
    uint32_t at[2];
    const struct rondo_place *places = graph->places + graph->place_first[rank * RONDO_BUFFERS + (uint32_t) buffer] + first;
    home(graph, rank, buffer, first, written || places[0].writer != RONDO_NONE, &in[0], &at[0]);
    home(graph, rank, buffer, first + k, written || places[k].writer != RONDO_NONE, &in[1], &at[1]);
    return in[0] == in[1] && at[0] + k == at[1];
}

static int is_written(struct rondo_graph *graph, uint32_t rank, int buffer, uint32_t index)
{
    return places_of(graph, rank, buffer)[index].writer != RONDO_NONE;
}

/* Compares the lengths of source and destination; if they differ, the program needs chunks of equal length. Returns the least
 * class. */
static uint32_t match_classes(struct rondo_graph *graph, const struct part *part)
{
    const struct rondo_op *op = part->op;
    uint32_t least = RONDO_NONE;
    for (uint32_t k = 0; k < part->count; k++) {
        uint32_t class = class_at(graph, op->source_rank, op->source_buffer, part->source + k);
        if (op->buffer == RONDO_SCRATCH) {
            struct rondo_place *place = places_of(graph, op->rank, RONDO_SCRATCH) + part->destination + k;
            if (place->class == RONDO_NONE)
                place->class = class;
        }
        if (class != class_at(graph, op->rank, op->buffer, part->destination + k))
            graph->even = 1;
        least = class < least ? class : least;
    }
    return least;
}

static void set_instance(struct rondo_graph *graph, uint32_t node, const struct part *part)
{
    struct rondo_node *n = &graph->nodes[node];
    n->instance = (uint16_t) part->instance;
    n->instances = (uint16_t) part->op->factor;
    n->directed = part->op->channel >= 0;
    n->channel =
        part->op->channel >= 0 ? part->op->channel * (int32_t) part->op->factor + (int32_t) part->instance : RONDO_CHANNEL_AUTO;
}

static void local_part(struct rondo_graph *graph, const struct part *part, uint32_t least)
{
    const struct rondo_op *op = part->op;
    uint8_t in, old_in, from;
    uint32_t at, old_at, source;
    home(graph, op->rank, op->buffer, part->destination, 1, &in, &at);
    home(graph, op->rank, op->buffer, part->destination, is_written(graph, op->rank, op->buffer, part->destination), &old_in,
         &old_at);
    home(graph, op->rank, op->source_buffer, part->source, is_written(graph, op->rank, op->source_buffer, part->source), &from,
         &source);
    if (op->reduces && (in != old_in || at != old_at)) { /* the engine's local reduction has two operands: move one first */
        uint32_t move = new_node(graph, op->rank, part->number, part->count, RONDO_COPY);
        if (graph->failed)
            return;
        struct rondo_node *n = &graph->nodes[move];
        n->source_buffer = old_in, n->source = old_at, n->destination_buffer = in, n->destination = at, n->least_class = least;
        reads(graph, move, op->rank, op->buffer, part->destination, part->count);
        writes(graph, move, op->rank, op->buffer, part->destination, part->count);
        set_instance(graph, move, part);
    }
    uint32_t node = new_node(graph, op->rank, part->number, part->count, op->reduces ? RONDO_REDUCE | RONDO_COPY : RONDO_COPY);
    if (graph->failed)
        return;
    struct rondo_node *n = &graph->nodes[node];
    n->source_buffer = from, n->source = source, n->destination_buffer = in, n->destination = at, n->least_class = least;
    n->flags = op->finishes ? RONDO_FINISH : 0;
    reads(graph, node, op->source_rank, op->source_buffer, part->source, part->count);
    if (op->reduces)
        reads(graph, node, op->rank, op->buffer, part->destination, part->count);
    writes(graph, node, op->rank, op->buffer, part->destination, part->count);
    set_instance(graph, node, part);
}

static void remote_part(struct rondo_graph *graph, const struct part *part, uint32_t least)
{
    const struct rondo_op *op = part->op;
    uint32_t send = new_node(graph, op->source_rank, part->number, part->count, RONDO_SEND);
    if (graph->failed)
        return;
    struct rondo_node *n = &graph->nodes[send];
    home(graph, op->source_rank, op->source_buffer, part->source,
         is_written(graph, op->source_rank, op->source_buffer, part->source), &n->source_buffer, &n->source);
    n->least_class = least;
    reads(graph, send, op->source_rank, op->source_buffer, part->source, part->count);

    int reduces = op->reduces ? RONDO_REDUCE : 0;
    uint32_t receive = new_node(graph, op->rank, part->number, part->count, RONDO_RECEIVE | RONDO_COPY | reduces);
    if (graph->failed)
        return;
    n = &graph->nodes[receive];
    home(graph, op->rank, op->buffer, part->destination, is_written(graph, op->rank, op->buffer, part->destination),
         &n->source_buffer, &n->source);
    home(graph, op->rank, op->buffer, part->destination, 1, &n->destination_buffer, &n->destination);
    n->flags = op->finishes ? RONDO_FINISH : 0;
    n->least_class = least;
    n->from = send;
    graph->nodes[send].to = receive;
    if (op->reduces)
        reads(graph, receive, op->rank, op->buffer, part->destination, part->count);
    writes(graph, receive, op->rank, op->buffer, part->destination, part->count);
    set_instance(graph, send, part);
    set_instance(graph, receive, part);
}

static void one_operation(struct rondo_graph *graph, uint32_t number)
{
    const struct rondo_op *op = &graph->builder->ops[number];
    uint32_t all = op->count * graph->cut;
    for (uint32_t instance = 0; instance < op->factor; instance++) {
        uint32_t at = instance * (all / op->factor), end = (instance + 1) * (all / op->factor);
        while (at < end && !graph->failed) {
            struct part part = {op, number, op->source * graph->cut + at, op->destination * graph->cut + at, 1, instance};
            while (at + part.count < end && in_a_row(graph, op->source_rank, op->source_buffer, part.source, part.count, 0) &&
                   in_a_row(graph, op->rank, op->buffer, part.destination, part.count, 1) &&
                   (!op->reduces || in_a_row(graph, op->rank, op->buffer, part.destination, part.count, 0)))
                part.count++;
            uint32_t least = match_classes(graph, &part);
            if (op->source_rank == op->rank)
                local_part(graph, &part, least);
            else
                remote_part(graph, &part, least);
            at += part.count;
        }
    }
}

/* A required output chunk that no operation has written is the input itself, in a program for one buffer: with two it has to be
 * copied, unless the two buffers are always one. */
static void copy_unwritten(struct rondo_graph *graph, uint32_t rank)
{
    const struct rondo_conditions *c = &graph->conditions;
    uint32_t chunks = rondo_conditions_chunks(c, rank, RONDO_OUTPUT), run = 0;
    int shared = graph->builder->in_place;
    for (uint32_t i = 0; i < chunks; i += run) {
        enum rondo_buffer buffer = RONDO_OUTPUT;
        uint32_t index = i;
        struct rondo_value want;
        run = 1;
        rondo_conditions_resolve(c, shared, rank, &buffer, &index);
        if (!shared || rondo_conditions_always_shared(c) || is_written(graph, rank, buffer, index) ||
            !rondo_wants_at(&graph->builder->wants, rank, i / graph->cut, &want))
            continue;
        uint8_t in;
        uint32_t at;
        home(graph, rank, buffer, index, 0, &in, &at);
        uint32_t node = new_node(graph, rank, (uint32_t) graph->builder->op_count, 1, RONDO_COPY);
        if (graph->failed)
            return;
        struct rondo_node *n = &graph->nodes[node];
        n->source_buffer = in, n->source = at, n->destination_buffer = RONDO_OUTPUT, n->destination = i;
        n->flags = rondo_conditions_reduces(c) ? RONDO_FINISH : 0;
        n->least_class = rondo_conditions_class(c, rank, RONDO_OUTPUT, i);
        reads(graph, node, rank, buffer, index, 1);
        writes(graph, node, rank, buffer, index, 1);
    }
}

/* Marks the nodes whose results the collective asks for. */
static void mark_needed(struct rondo_graph *graph)
{
    const struct rondo_conditions *c = &graph->conditions;
    struct rondo_value want;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(c, rank, RONDO_OUTPUT); i++) {
            enum rondo_buffer buffer = RONDO_OUTPUT;
            uint32_t index = i;
            rondo_conditions_resolve(c, graph->builder->in_place, rank, &buffer, &index);
            uint32_t writer = places_of(graph, rank, buffer)[index].writer;
            int wanted = c->kind == RONDO_KIND_CUSTOM || rondo_wants_at(&graph->builder->wants, rank, i / graph->cut, &want);
            if (writer != RONDO_NONE && wanted)
                graph->nodes[writer].needed = 1;
        }
}

static rondo_result_t make_places(struct rondo_graph *graph)
{
    uint32_t ranks = graph->conditions.ranks;
    size_t all = 0;
    graph->place_first = calloc((size_t) ranks * RONDO_BUFFERS + 1, sizeof(*graph->place_first));
    graph->scratch = calloc(ranks, sizeof(*graph->scratch));
    if (graph->place_first == NULL || graph->scratch == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to compile a program of %u ranks", ranks);
    for (uint32_t i = 0; i < ranks * RONDO_BUFFERS; i++) {
        graph->place_first[i] = all;
        all += (size_t) graph->builder->buffers[i].count * graph->cut;
        if (i % RONDO_BUFFERS == RONDO_SCRATCH)
            graph->scratch[i / RONDO_BUFFERS] = graph->builder->buffers[i].count * graph->cut;
    }
    if (all > 4 * RONDO_CHUNKS_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %zu chunks, cut for %u instances, are too many",
                          graph->builder->name, all, graph->cut);
    graph->places = malloc((all + 1) * sizeof(*graph->places));
    if (graph->places == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu chunks", all);
    for (size_t i = 0; i < all; i++)
        graph->places[i] = (struct rondo_place){RONDO_NONE, RONDO_NONE, RONDO_NONE};
    return RONDO_SUCCESS;
}

/* Counts the hops before and after each node: a message is one, order within a rank is none. */
static void measure(struct rondo_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        struct rondo_node *n = &graph->nodes[i];
        for (uint32_t k = 0; k < n->previous; k++) {
            uint32_t depth = graph->nodes[graph->previous[n->previous_first + k]].depth;
            n->depth = depth > n->depth ? depth : n->depth;
        }
        if (n->from != RONDO_NONE && graph->nodes[n->from].depth + 1 > n->depth)
            n->depth = graph->nodes[n->from].depth + 1;
    }
    for (size_t i = graph->node_count; i-- > 0;) {
        struct rondo_node *n = &graph->nodes[i];
        if (n->to != RONDO_NONE && graph->nodes[n->to].height + 1 > n->height)
            n->height = graph->nodes[n->to].height + 1;
        for (uint32_t k = 0; k < n->previous; k++) {
            struct rondo_node *before = &graph->nodes[graph->previous[n->previous_first + k]];
            before->height = n->height > before->height ? n->height : before->height;
        }
    }
}

rondo_result_t rondo_graph_lower(struct rondo_graph *graph)
{
    rondo_result_t status = make_places(graph);
    for (uint32_t i = 0; i < graph->builder->op_count && status == RONDO_SUCCESS && !graph->failed; i++)
        one_operation(graph, i);
    for (uint32_t rank = 0; rank < graph->conditions.ranks && status == RONDO_SUCCESS && !graph->failed; rank++)
        copy_unwritten(graph, rank);
    if (status == RONDO_SUCCESS && graph->failed)
        status = rondo_fail(RONDO_ERR_MEMORY, "program '%s': out of memory at %zu instructions", graph->builder->name,
                            graph->node_count);
    if (status != RONDO_SUCCESS)
        return status;
    mark_needed(graph);
    measure(graph);
    free(graph->mark);
    graph->mark = NULL;
    for (size_t i = 0; i < graph->node_count; i++)
        graph->nodes[i].next = RONDO_NONE;
    return RONDO_SUCCESS;
}
