/*
 * Makes fewer, larger instructions (GC3 section 4.2, and a little more, because the engine's primitives take any set of
 * actions): what is received into a chunk that only one local instruction reads goes straight into that instruction; a local
 * copy that only feeds a reduction becomes the reduction's source; what an instruction stores and sends afterwards is sent by
 * the same instruction (rcs, rrcs; the send with the longest way still to go), and not stored at all if no other instruction
 * needs it (rrs); what is received and never read is not stored either. A merged node keeps its number and points to the one
 * that does its work.
 */
#include "lib/program/graph.h"

/* Merges `other` into the node, which then also waits for what the other waited for. */
static void inherit(struct rondo_graph *graph, uint32_t node, uint32_t other)
{
    struct rondo_node *n = &graph->nodes[node], *o = &graph->nodes[other];
    uint32_t first = (uint32_t) graph->previous_count, total = n->previous + o->previous;
    for (uint32_t k = 0; k < total; k++) {
        uint32_t from = k < n->previous ? n->previous_first + k : o->previous_first + (k - n->previous);
        if (!rondo_grow((void **) &graph->previous, graph->previous_count, &graph->previous_room, sizeof(uint32_t))) {
            graph->failed = 1;
            return;
        }
        graph->previous[graph->previous_count++] = graph->previous[from];
    }
    n->previous_first = first;
    n->previous = total;
    n->clobbered = o->clobbered < n->clobbered ? o->clobbered : n->clobbered;
    o->merged = node;
}

/* Returns the one node that reads the result, if there is just one and nothing else needs it; else RONDO_NONE. */
static uint32_t only_consumer(const struct rondo_graph *graph, uint32_t node)
{
    const struct rondo_node *n = &graph->nodes[node];
    uint32_t found = RONDO_NONE;
    if (n->needed)
        return RONDO_NONE;
    for (uint32_t i = n->consumers; i != RONDO_NONE; i = graph->links[i].next) {
        uint32_t reader = rondo_node_find(graph, graph->links[i].node);
        if (reader == node)
            continue;
        if (found != RONDO_NONE && found != reader)
            return RONDO_NONE;
        found = reader;
    }
    return found;
}

/* Fuses a receive with the one instruction of the rank that reads what was received. */
static void receive_into(struct rondo_graph *graph, uint32_t node)
{
    struct rondo_node *r = &graph->nodes[node];
    if (!rondo_node_lives(r) || !(r->actions & RONDO_RECEIVE) || (r->actions & RONDO_SEND))
        return;
    uint32_t consumer = only_consumer(graph, node);
    if (consumer == RONDO_NONE)
        return;
    struct rondo_node *x = &graph->nodes[consumer];
    if (graph->options->across && x->destination_buffer == RONDO_OUTPUT)
        return;
    if ((x->actions & (RONDO_RECEIVE | RONDO_SEND)) || x->count != r->count || r->clobbered <= x->op)
        return;
    if (x->actions & RONDO_REDUCE) {
        if (r->actions & RONDO_REDUCE)
            return;
        int is_source = r->destination_buffer == x->source_buffer && r->destination == x->source;
        if (is_source) {
            x->source_buffer = x->destination_buffer;
            x->source = x->destination;
        }
    } else {
        x->source_buffer = r->source_buffer;
        x->source = r->source;
    }
    x->actions |= r->actions;
    x->flags |= r->flags;
    x->from = r->from;
    graph->nodes[r->from].to = consumer;
    x->channel = r->channel, x->directed = r->directed, x->instance = r->instance, x->instances = r->instances;
    inherit(graph, consumer, node);
}

/* Fuses a copy within the rank with the one receiving reduction that takes it as its local source. */
static void copy_into(struct rondo_graph *graph, uint32_t node)
{
    struct rondo_node *c = &graph->nodes[node];
    if (!rondo_node_lives(c) || c->actions != RONDO_COPY || c->flags != 0)
        return;
    uint32_t consumer = only_consumer(graph, node);
    if (consumer == RONDO_NONE)
        return;
    struct rondo_node *x = &graph->nodes[consumer];
    int reduces = (x->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == (RONDO_RECEIVE | RONDO_REDUCE);
    if (!reduces || x->count != c->count || x->source_buffer != c->destination_buffer || x->source != c->destination ||
        c->clobbered <= x->op)
        return;
    x->source_buffer = c->source_buffer;
    x->source = c->source;
    inherit(graph, consumer, node);
}

/* Whether all that the node waits for is the other. */
static int follows_only(const struct rondo_graph *graph, uint32_t node, uint32_t other)
{
    const struct rondo_node *n = &graph->nodes[node];
    for (uint32_t k = 0; k < n->previous; k++)
        if (rondo_node_find(graph, graph->previous[n->previous_first + k]) != other)
            return 0;
    return n->previous > 0;
}

static int may_share_channel(const struct rondo_graph *graph, const struct rondo_node *p, const struct rondo_node *send)
{
    const struct rondo_node *next = &graph->nodes[send->to];
    if (p->from == RONDO_NONE)
        return 1;
    if (p->instance != next->instance || p->instances != next->instances)
        return 0;
    return !p->directed || !next->directed || p->channel == next->channel;
}

/* Fuses an instruction with a send of what it stores. */
static void send_along(struct rondo_graph *graph, uint32_t node)
{
    struct rondo_node *p = &graph->nodes[node];
    int msccl = graph->options->msccl;
    if (!rondo_node_lives(p) || !(p->actions & RONDO_COPY) || (p->actions & RONDO_SEND) ||
        (msccl && !(p->actions & RONDO_RECEIVE)))
        return;
    uint32_t chosen = RONDO_NONE, others = 0;
    for (uint32_t i = p->consumers; i != RONDO_NONE; i = graph->links[i].next) {
        uint32_t reader = graph->links[i].node;
        const struct rondo_node *s = &graph->nodes[reader];
        if (rondo_node_find(graph, reader) == node)
            continue;
        others++; /* also one that has become part of another */
        if (!rondo_node_lives(s) || s->actions != RONDO_SEND || s->source_buffer != p->destination_buffer ||
            s->source != p->destination || s->count != p->count || !follows_only(graph, reader, node) ||
            !may_share_channel(graph, p, s))
            continue;
        if (chosen == RONDO_NONE || s->height > graph->nodes[chosen].height)
            chosen = reader;
    }
    if (chosen == RONDO_NONE)
        return;
    struct rondo_node *s = &graph->nodes[chosen], *next = &graph->nodes[s->to];
    if (p->from != RONDO_NONE && p->directed && !next->directed) {
        next->directed = 1;
        next->channel = p->channel;
    }
    p->actions |= RONDO_SEND;
    p->to = s->to;
    next->from = node;
    s->merged = node;
    p->clobbered = s->clobbered < p->clobbered ? s->clobbered : p->clobbered;
    if (p->needed || others > 1 || (msccl && !(p->actions & RONDO_REDUCE)))
        return;
    if (p->actions == (RONDO_COPY | RONDO_SEND) && p->flags == 0) {
        p->actions = RONDO_SEND;
    } else if (p->actions & RONDO_RECEIVE) {
        p->actions &= (uint8_t) ~RONDO_COPY;
    }
}

/* What is received, never read and no part of the result is dropped, as a barrier's messages are. */
static void drop_unread(struct rondo_graph *graph, uint32_t node)
{
    struct rondo_node *r = &graph->nodes[node];
    if (rondo_node_lives(r) && r->actions == (RONDO_RECEIVE | RONDO_COPY) && !r->needed && r->consumers == RONDO_NONE)
        r->actions = RONDO_RECEIVE;
}

void rondo_graph_fuse(struct rondo_graph *graph)
{
    size_t count = graph->node_count;
    for (uint32_t i = 0; i < count && !graph->failed; i++)
        receive_into(graph, i);
    for (uint32_t i = 0; i < count && !graph->failed; i++)
        copy_into(graph, i);
    for (uint32_t i = 0; i < count && !graph->failed; i++)
        send_along(graph, i);
    for (uint32_t i = 0; i < count && !graph->failed && !graph->options->msccl; i++)
        drop_unread(graph, i);
}
