/*
 * Finds one order for all instructions of all ranks (GC3 section 5.2): those with fewer hops behind them first, among these
 * those with more hops ahead, then in the order of nodes. The order is an execution: an instruction comes only after what it
 * waits for, when its message is the first on its connection, and when there is a free slot for what it sends. Blocks execute
 * their instructions in this order, so at every moment of any execution the first instruction that has not run can run, and
 * nothing deadlocks.
 */
#include "lib/program/graph.h"

#include <stdlib.h>

struct connection {
    uint32_t head, tail;  /* receiving nodes of the messages under way */
    uint32_t outstanding; /* those messages */
    uint32_t parked;      /* list of senders that wait for a slot */
};

#define LEVELS 6 /* of 64 places each: more than the 2^32 that nodes can have */

struct ordering {
    struct rondo_graph *graph;
    struct rondo_map map;
    struct connection *connections;
    size_t count, room;
    uint32_t *in;         /* [node]: the connection that it receives from */
    uint32_t *waiting;    /* [node]: number of nodes that it waits for */
    uint32_t *next_first; /* [node + 1]: of those that wait for it */
    uint32_t *next;
    uint32_t *behind;           /* [node]: the next in a connection's queue */
    uint32_t *beside;           /* [node]: the next in a list of parked senders */
    uint8_t *state;             /* [node]: of enum state */
    uint32_t *place, *at_place; /* [node]: its place in the order of priority; [place]: the node there */
    uint64_t *levels[LEVELS];   /* the set of places that are candidates: see push */
};

/* READY: the node waits for its connections alone. PARKED: it is in a list of parked senders, once. */
enum state { READY = 1, PARKED = 2 };

/* ---- candidates ----
 * A set of places, whose least is wanted. Bit i of the last level is set if place i is in the set; bit i of every other level,
 * if any bit of word i of the level below is. The first level is one word. */

static void push(struct ordering *o, uint32_t node)
{
    size_t at = o->place[node];
    for (int level = LEVELS - 1; level >= 0; level--, at /= 64)
        o->levels[level][at / 64] |= (uint64_t) 1 << (at % 64);
}

/* Takes the first candidate. RONDO_NONE: there is none. */
static uint32_t pop(struct ordering *o)
{
    size_t at = 0;
    if (o->levels[0][0] == 0)
        return RONDO_NONE;
    for (int level = 0; level < LEVELS; level++)
        at = 64 * at + (size_t) __builtin_ctzll(o->levels[level][at]);
    const uint32_t node = o->at_place[at];
    for (int level = LEVELS - 1; level >= 0; level--, at /= 64) {
        o->levels[level][at / 64] &= ~((uint64_t) 1 << (at % 64));
        if (o->levels[level][at / 64] != 0)
            break;
    }
    return node;
}

/* Makes room for the set. Returns 0 if memory is out. */
static int make_levels(struct ordering *o)
{
    size_t words = o->graph->node_count;
    for (int level = LEVELS - 1; level >= 0; level--) {
        words = words / 64 + 1;
        if ((o->levels[level] = calloc(words, sizeof(uint64_t))) == NULL)
            return 0;
    }
    return 1;
}

/* Sorts `from` into `to` by a key of at most `largest`, stably. first: largest + 2 counters, all 0. */
static void sort_by(const struct rondo_graph *graph, uint32_t (*key)(const struct rondo_node *, uint32_t), uint32_t largest,
                    uint32_t *first, const uint32_t *from, uint32_t *to)
{
    const size_t count = graph->node_count;
    for (size_t i = 0; i < count; i++)
        first[key(&graph->nodes[from[i]], largest) + 1]++;
    for (size_t k = 0; k <= largest; k++)
        first[k + 1] += first[k];
    for (size_t i = 0; i < count; i++)
        to[first[key(&graph->nodes[from[i]], largest)]++] = from[i];
}

static uint32_t by_depth(const struct rondo_node *n, uint32_t largest)
{
    (void) largest;
    return n->depth;
}

static uint32_t by_height(const struct rondo_node *n, uint32_t largest)
{
    return largest - n->height;
}

/* Numbers the nodes by priority. Returns 0 if memory is out. */
static int make_places(struct ordering *o)
{
    const struct rondo_graph *graph = o->graph;
    uint32_t depth = 0, height = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        depth = graph->nodes[i].depth > depth ? graph->nodes[i].depth : depth;
        height = graph->nodes[i].height > height ? graph->nodes[i].height : height;
        o->at_place[i] = (uint32_t) i;
    }
    uint32_t *depths = calloc((size_t) depth + 2, sizeof(*depths)), *heights = calloc((size_t) height + 2, sizeof(*heights));
    const int made = depths != NULL && heights != NULL;
    if (made) {
        sort_by(graph, by_height, height, heights, o->at_place, o->place);
        sort_by(graph, by_depth, depth, depths, o->place, o->at_place);
        for (size_t i = 0; i < graph->node_count; i++)
            o->place[o->at_place[i]] = (uint32_t) i;
    }
    free(depths);
    free(heights);
    return made;
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
        o->in[n->to] = connection_at(o, n->rank, to->rank, to->channel);
    }
}

/* The connection that a node sends to. */
static struct connection *outgoing(const struct ordering *o, const struct rondo_node *n)
{
    return &o->connections[o->in[n->to]];
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
        struct connection *out = outgoing(o, n);
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
        struct connection *out = outgoing(o, n);
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
    o.waiting = calloc(count, sizeof(uint32_t));
    o.next_first = calloc(count + 1, sizeof(uint32_t));
    o.behind = malloc(count * sizeof(uint32_t));
    o.beside = malloc(count * sizeof(uint32_t));
    o.state = calloc(count, 1);
    o.place = malloc(count * sizeof(uint32_t));
    o.at_place = malloc(count * sizeof(uint32_t));
    free(graph->order);
    graph->order = malloc(count * sizeof(uint32_t));
    graph->ordered = 0;
    if (o.in == NULL || o.waiting == NULL || o.next_first == NULL || o.behind == NULL || o.beside == NULL || o.state == NULL ||
        o.place == NULL || o.at_place == NULL || graph->order == NULL || !make_levels(&o) || !make_places(&o)) {
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
    for (uint32_t node; (node = pop(&o)) != RONDO_NONE;)
        if (may_run(&o, node))
            run(&o, node);
    complete = graph->ordered == living;

done:
    free(o.in);
    free(o.waiting);
    free(o.next_first);
    free(o.next);
    free(o.behind);
    free(o.beside);
    free(o.state);
    free(o.place);
    free(o.at_place);
    for (int level = 0; level < LEVELS; level++)
        free(o.levels[level]);
    free(o.connections);
    rondo_map_release(&o.map);
    return complete;
}
