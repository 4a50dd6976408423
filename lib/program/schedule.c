/*
 * Finds one order for all instructions of all ranks (GC3 section 5.2): those with fewer hops behind them first, among these
 * those with more hops ahead. The order is an execution: an instruction comes only after what it waits for, when its message is
 * the first on its connection, and when there is a free slot for what it sends. Blocks execute their instructions in this
 * order, so at every moment of any execution the first instruction that has not run can run, and nothing deadlocks.
 */
#include "lib/program/graph.h"

#include <stdlib.h>

struct connection {
    uint32_t head, tail;  /* receiving nodes of the messages under way */
    uint32_t outstanding; /* those messages */
    uint32_t parked;      /* list of senders that wait for a slot */
};

struct ordering {
    struct rondo_graph *graph;
    struct rondo_map map;
    struct connection *connections;
    size_t count, room;
    uint32_t *in, *out;   /* [node]: its connections */
    uint32_t *waiting;    /* [node]: number of nodes that it waits for */
    uint32_t *next_first; /* [node + 1]: of those that wait for it */
    uint32_t *next;
    uint32_t *behind; /* [node]: the next in a connection's queue */
    uint32_t *beside; /* [node]: the next in a list of parked senders */
    uint8_t *state;   /* [node]: of enum state */
    uint32_t *heap;
    size_t heaped;
};

/* READY: the node waits for its connections alone. HEAPED, PARKED: it is in the heap, or in a list of parked senders, once
 * each. */
enum state { READY = 1, HEAPED = 2, PARKED = 4 };

/* ---- the heap ---- */

/* Whether a comes before b in the heap. */
static int before(const struct rondo_graph *graph, uint32_t a, uint32_t b)
{
    const struct rondo_node *x = &graph->nodes[a], *y = &graph->nodes[b];
    if (x->depth != y->depth)
        return x->depth < y->depth;
    if (x->height != y->height)
        return x->height > y->height;
    return x->op != y->op ? x->op < y->op : a < b;
}

static void push(struct ordering *o, uint32_t node)
{
    if (o->state[node] & HEAPED)
        return;
    o->state[node] |= HEAPED;
    size_t at = o->heaped++;
    for (; at > 0 && before(o->graph, node, o->heap[(at - 1) / 2]); at = (at - 1) / 2)
        o->heap[at] = o->heap[(at - 1) / 2];
    o->heap[at] = node;
}

static uint32_t pop(struct ordering *o)
{
    uint32_t top = o->heap[0], last = o->heap[--o->heaped];
    size_t at = 0;
    for (size_t child = 1; child < o->heaped; child = 2 * at + 1) {
        if (child + 1 < o->heaped && before(o->graph, o->heap[child + 1], o->heap[child]))
            child++;
        if (!before(o->graph, o->heap[child], last))
            break;
        o->heap[at] = o->heap[child];
        at = child;
    }
    if (o->heaped > 0)
        o->heap[at] = last;
    o->state[top] &= (uint8_t) ~HEAPED;
    return top;
}

/* ---- preparing ---- */

static uint32_t connection_at(struct ordering *o, uint32_t source, uint32_t destination, int32_t channel)
{
    uint32_t *at = rondo_map_at(&o->map, rondo_connection_key(source, destination, channel));
    if (at == NULL ||
        (*at == RONDO_NONE && !rondo_grow((void **) &o->connections, o->count, &o->room, sizeof(*o->connections)))) {
        o->graph->failed = 1;
        return 0;
    }
    if (*at == RONDO_NONE) {
        *at = (uint32_t) o->count;
        o->connections[o->count++] = (struct connection){RONDO_NONE, RONDO_NONE, 0, RONDO_NONE};
    }
    return *at;
}

static void connect(struct ordering *o)
{
    struct rondo_graph *graph = o->graph;
    for (uint32_t i = 0; i < graph->node_count && !graph->failed; i++) {
        const struct rondo_node *n = &graph->nodes[i];
        if (!rondo_node_lives(n) || n->to == RONDO_NONE)
            continue;
        const struct rondo_node *to = &graph->nodes[n->to];
        uint32_t connection = connection_at(o, n->rank, to->rank, to->channel);
        o->out[i] = connection;
        o->in[n->to] = connection;
    }
}

/* Makes the lists of the nodes that wait for each node. Returns 0 if memory is out. */
static int invert(struct ordering *o)
{
    struct rondo_graph *graph = o->graph;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < graph->node_count; i++) {
            const struct rondo_node *n = &graph->nodes[i];
            if (!rondo_node_lives(n))
                continue;
            for (uint32_t k = 0; k <= n->previous; k++) {
                uint32_t from = k < n->previous ? rondo_node_find(graph, graph->previous[n->previous_first + k]) : n->from;
                if (from == RONDO_NONE || from == i)
                    continue;
                if (pass == 0) {
                    o->next_first[from + 1]++;
                    o->waiting[i]++;
                } else {
                    o->next[o->next_first[from]++] = i;
                }
            }
        }
        if (pass == 0) {
            for (size_t i = 0; i < graph->node_count; i++)
                o->next_first[i + 1] += o->next_first[i];
            o->next = malloc(((size_t) o->next_first[graph->node_count] + 1) * sizeof(*o->next));
            if (o->next == NULL)
                return 0;
        }
    }
    for (size_t i = graph->node_count; i > 0; i--) /* the second pass has moved each start to its end */
        o->next_first[i] = o->next_first[i - 1];
    o->next_first[0] = 0;
    return 1;
}

/* ---- ordering ---- */

/* Whether the node's connections let it run. If not, the node that changes this will push it: the one that takes the message
 * before its own, or, where it is parked, the one that frees a slot. */
static int may_run(struct ordering *o, uint32_t node)
{
    const struct rondo_node *n = &o->graph->nodes[node];
    if (n->from != RONDO_NONE && o->connections[o->in[node]].head != node)
        return 0;
    if (n->to != RONDO_NONE) {
        struct connection *out = &o->connections[o->out[node]];
        if (out->outstanding >= o->graph->options->slots) {
            if (!(o->state[node] & PARKED)) {
                o->state[node] |= PARKED;
                o->beside[node] = out->parked;
                out->parked = node;
            }
            return 0;
        }
    }
    return 1;
}

static void run(struct ordering *o, uint32_t node)
{
    struct rondo_graph *graph = o->graph;
    const struct rondo_node *n = &graph->nodes[node];
    graph->order[graph->ordered++] = node;
    if (n->from != RONDO_NONE) {
        struct connection *in = &o->connections[o->in[node]];
        in->outstanding--;
        in->head = o->behind[node];
        if (in->head == RONDO_NONE)
            in->tail = RONDO_NONE;
        else if (o->state[in->head] & READY)
            push(o, in->head);
        while (in->parked != RONDO_NONE) {
            uint32_t sender = in->parked;
            in->parked = o->beside[sender];
            o->state[sender] &= (uint8_t) ~PARKED;
            push(o, sender);
        }
    }
    if (n->to != RONDO_NONE) {
        struct connection *out = &o->connections[o->out[node]];
        out->outstanding++;
        o->behind[n->to] = RONDO_NONE;
        if (out->tail == RONDO_NONE)
            out->head = n->to;
        else
            o->behind[out->tail] = n->to;
        out->tail = n->to;
    }
    for (uint32_t k = o->next_first[node]; k < o->next_first[node + 1]; k++)
        if (--o->waiting[o->next[k]] == 0) {
            o->state[o->next[k]] |= READY;
            push(o, o->next[k]);
        }
}

int rondo_graph_order(struct rondo_graph *graph)
{
    struct ordering o = {.graph = graph};
    size_t count = graph->node_count + 1, living = 0;
    int complete = 0;
    o.in = calloc(count, sizeof(uint32_t));
    o.out = calloc(count, sizeof(uint32_t));
    o.waiting = calloc(count, sizeof(uint32_t));
    o.next_first = calloc(count + 1, sizeof(uint32_t));
    o.behind = malloc(count * sizeof(uint32_t));
    o.beside = malloc(count * sizeof(uint32_t));
    o.state = calloc(count, 1);
    o.heap = malloc(count * sizeof(uint32_t));
    free(graph->order);
    graph->order = malloc(count * sizeof(uint32_t));
    graph->ordered = 0;
    if (o.in == NULL || o.out == NULL || o.waiting == NULL || o.next_first == NULL || o.behind == NULL || o.beside == NULL ||
        o.state == NULL || o.heap == NULL || graph->order == NULL) {
        graph->failed = 1;
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        o.behind[i] = RONDO_NONE;
    connect(&o);
    if (graph->failed || !invert(&o)) {
        graph->failed = 1;
        goto done;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        living += (size_t) rondo_node_lives(&graph->nodes[i]);
        if (rondo_node_lives(&graph->nodes[i]) && o.waiting[i] == 0) {
            o.state[i] |= READY;
            push(&o, i);
        }
    }
    while (o.heaped > 0) {
        uint32_t node = pop(&o);
        if (may_run(&o, node))
            run(&o, node);
    }
    complete = graph->ordered == living;

done:
    free(o.in);
    free(o.out);
    free(o.waiting);
    free(o.next_first);
    free(o.next);
    free(o.behind);
    free(o.beside);
    free(o.state);
    free(o.heap);
    free(o.connections);
    rondo_map_release(&o.map);
    return complete;
}
