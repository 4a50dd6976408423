/*
 * Joins neighbouring instructions of a block that are one primitive of the engine: the same chunks sent to several peers, and
 * what several peers send reduced into one chunk. The nodes of such a row wait for each other, so afterwards the blocks are
 * simulated again with the slots there are; if that gets stuck, the rows are dissolved. With options->exchanges, a chunk that
 * is sent and then reduced with what the others send is one exchange, which sends before it waits, as the two did.
 */
#include "lib/program/graph.h"

#include <stdlib.h>

struct block_list {
    uint32_t *nodes;
    size_t first, count, at; /* in nodes */
};

struct simulation {
    struct rondo_graph *graph;
    struct block_list *blocks;
    size_t *rank_first; /* [rank]: its first block */
    size_t block_count;
    uint32_t *nodes; /* all blocks' */
    uint8_t *done;   /* [node] */
    struct rondo_map map;
    uint64_t *filled, *taken; /* [connection] */
    uint32_t *sequence;       /* [node]: of the message it receives, in its connection */
    uint32_t *in, *out;
    size_t connections;
};

static uint32_t reduce_limit(const struct rondo_graph *graph)
{
    return graph->options->msccl ? 1 : graph->options->reduce != 0 ? graph->options->reduce : 63;
}

static uint32_t row_length(const struct rondo_graph *graph, uint32_t head)
{
    uint32_t length = 0;
    for (uint32_t i = head; i != RONDO_NONE; i = graph->nodes[i].next)
        length++;
    return length;
}

/* ---- rows ---- */

/* Whether b sends what a sends or has just stored, to another peer. */
static int sends_too(const struct rondo_graph *graph, uint32_t a, uint32_t b)
{
    const struct rondo_node *x = &graph->nodes[a], *y = &graph->nodes[b];
    if (!(x->actions & RONDO_SEND) || y->actions != RONDO_SEND || x->count != y->count)
        return 0;
    int same_source = x->actions == RONDO_SEND && x->source_buffer == y->source_buffer && x->source == y->source;
    int result = (x->actions & RONDO_COPY) && x->destination_buffer == y->source_buffer && x->destination == y->source;
    if (!same_source && !result)
        return 0;
    for (uint32_t k = 0; k < y->previous; k++) {
        uint32_t before = rondo_node_find(graph, graph->previous[y->previous_first + k]);
        if (graph->nodes[before].position > x->position || (same_source && before == a))
            return 0;
        if (result && before != a && graph->nodes[before].position == x->position)
            return 0;
    }
    for (uint32_t i = a; i != RONDO_NONE; i = graph->nodes[i].next) {
        uint32_t to = graph->nodes[i].to;
        if (to != RONDO_NONE && graph->nodes[to].rank == graph->nodes[y->to].rank &&
            graph->nodes[to].channel == graph->nodes[y->to].channel)
            return 0;
    }
    return row_length(graph, a) < reduce_limit(graph);
}

/* Returns the number of live nodes that read what the node wrote, and stores one of them. */
static uint32_t live_consumers(const struct rondo_graph *graph, uint32_t node, uint32_t *one)
{
    uint32_t count = 0;
    for (uint32_t i = graph->nodes[node].consumers; i != RONDO_NONE; i = graph->links[i].next) {
        uint32_t reader = rondo_node_find(graph, graph->links[i].node);
        if (reader != node && reader != *one) {
            *one = reader;
            count++;
        }
    }
    return count;
}

/* Whether b reduces into what a has just reduced, and nothing else reads that. */
static int adds_on(const struct rondo_graph *graph, uint32_t a, uint32_t b)
{
    const struct rondo_node *x = &graph->nodes[a], *y = &graph->nodes[b];
    uint32_t consumer = RONDO_NONE;
    int both = RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY;
    if (x->actions != both || (y->actions & (RONDO_RECEIVE | RONDO_REDUCE)) != (RONDO_RECEIVE | RONDO_REDUCE) ||
        x->flags != 0 || x->needed || x->count != y->count || y->source_buffer != x->destination_buffer ||
        y->source != x->destination || x->clobbered <= y->op)
        return 0;
    if ((y->actions & RONDO_COPY) && (y->destination_buffer != x->destination_buffer || y->destination != x->destination))
        return 0;
    if (live_consumers(graph, a, &consumer) != 1 || consumer != b)
        return 0;
    for (uint32_t i = a; i != RONDO_NONE; i = graph->nodes[i].next) {
        uint32_t from = graph->nodes[i].from;
        if (from != RONDO_NONE && graph->nodes[from].rank == graph->nodes[y->from].rank &&
            graph->nodes[i].channel == y->channel)
            return 0;
    }
    return row_length(graph, a) < reduce_limit(graph);
}

static uint32_t last_of_row(const struct rondo_graph *graph, uint32_t node)
{
    while (graph->nodes[node].next != RONDO_NONE)
        node = graph->nodes[node].next;
    return node;
}

/* Makes the rows of the block, whose list then has their heads. */
static void make_rows(struct rondo_graph *graph, struct block_list *block)
{
    uint32_t *list = block->nodes + block->first;
    size_t retained = 0;
    for (size_t i = 0; i < block->count; i++) {
        uint32_t node = list[i];
        if (retained > 0 && adds_on(graph, list[retained - 1], node)) {
            uint32_t before = list[retained - 1], last = last_of_row(graph, before);
            struct rondo_node *n = &graph->nodes[node];
            n->source_buffer = graph->nodes[before].source_buffer; /* the row's local source is that of its first node */
            n->source = graph->nodes[before].source;
            graph->nodes[last].next = n->next;
            n->next = before;
            for (uint32_t m = before; m != RONDO_NONE; m = graph->nodes[m].next)
                graph->nodes[m].merged = node;
            list[retained - 1] = node;
        } else if (retained > 0 && sends_too(graph, list[retained - 1], node)) {
            struct rondo_node *head = &graph->nodes[list[retained - 1]];
            graph->nodes[node].next = head->next;
            head->next = node;
            graph->nodes[node].merged = list[retained - 1];
        } else {
            list[retained++] = node;
        }
    }
    block->count = retained;
}

/* ---- simulating ---- */

static int prepare(struct simulation *p)
{
    struct rondo_graph *graph = p->graph;
    size_t ranks = graph->conditions.ranks, nodes = graph->node_count + 1;
    p->rank_first = calloc(ranks + 1, sizeof(size_t));
    if (p->rank_first == NULL)
        return 0;
    for (size_t rank = 0; rank < ranks; rank++)
        p->rank_first[rank + 1] = p->rank_first[rank] + graph->rank_blocks[rank];
    p->block_count = p->rank_first[ranks];
    p->blocks = calloc(p->block_count, sizeof(*p->blocks));
    p->nodes = malloc((graph->ordered + 1) * sizeof(uint32_t));
    p->done = calloc(nodes, 1);
    p->sequence = calloc(nodes, sizeof(uint32_t));
    p->in = calloc(nodes, sizeof(uint32_t));
    p->out = calloc(nodes, sizeof(uint32_t));
    if (p->blocks == NULL || p->nodes == NULL || p->done == NULL || p->sequence == NULL || p->in == NULL || p->out == NULL)
        return 0;
    for (size_t i = 0; i < graph->ordered; i++) {
        const struct rondo_node *n = &graph->nodes[graph->order[i]];
        p->blocks[p->rank_first[n->rank] + n->block].count++;
    }
    for (size_t b = 0, first = 0; b < p->block_count; b++) {
        p->blocks[b].nodes = p->nodes;
        p->blocks[b].first = first;
        first += p->blocks[b].count;
        p->blocks[b].count = 0;
    }
    for (size_t i = 0; i < graph->ordered; i++) {
        const struct rondo_node *n = &graph->nodes[graph->order[i]];
        struct block_list *block = &p->blocks[p->rank_first[n->rank] + n->block];
        p->nodes[block->first + block->count++] = graph->order[i];
    }
    for (size_t i = 0; i < graph->ordered; i++) { /* before rows are made: every node that sends */
        uint32_t node = graph->order[i];
        const struct rondo_node *n = &graph->nodes[node];
        if (n->to == RONDO_NONE)
            continue;
        uint32_t *at =
            rondo_map_at(&p->map, rondo_connection_key(n->rank, graph->nodes[n->to].rank, graph->nodes[n->to].channel));
        if (at == NULL)
            return 0;
        if (*at == RONDO_NONE)
            *at = (uint32_t) p->connections++;
        p->out[node] = *at;
        p->in[n->to] = *at;
    }
    p->filled = calloc(p->connections + 1, sizeof(uint64_t));
    p->taken = calloc(p->connections + 1, sizeof(uint64_t));
    return p->filled != NULL && p->taken != NULL;
}

static int row_may_run(const struct simulation *p, uint32_t head)
{
    const struct rondo_graph *graph = p->graph;
    for (uint32_t i = head; i != RONDO_NONE; i = graph->nodes[i].next) {
        const struct rondo_node *n = &graph->nodes[i];
        for (uint32_t k = 0; k < n->previous; k++) {
            uint32_t before = rondo_node_find(graph, graph->previous[n->previous_first + k]);
            if (before != head && !p->done[before])
                return 0;
        }
        if (n->from != RONDO_NONE && !(p->sequence[i] > 0 && p->sequence[i] == p->taken[p->in[i]] + 1))
            return 0;
        if (n->to != RONDO_NONE && p->filled[p->out[i]] - p->taken[p->out[i]] >= graph->options->slots)
            return 0;
    }
    return 1;
}

static void run_row(struct simulation *p, uint32_t head)
{
    const struct rondo_graph *graph = p->graph;
    for (uint32_t i = head; i != RONDO_NONE; i = graph->nodes[i].next) {
        if (graph->nodes[i].from != RONDO_NONE)
            p->taken[p->in[i]]++;
        if (graph->nodes[i].to != RONDO_NONE)
            p->sequence[graph->nodes[i].to] = (uint32_t) ++p->filled[p->out[i]];
        p->done[i] = 1;
    }
}

/* Rounds over the blocks that still have something to do; each goes as far as it can. Returns 1 if all get to their ends. */
static int simulate(struct simulation *p)
{
    size_t left = p->block_count, *active = malloc((p->block_count + 1) * sizeof(*active));
    if (active == NULL)
        return 0;
    for (size_t b = 0; b < left; b++)
        active[b] = b;
    for (int moved = 1; moved && left > 0;) {
        size_t retained = 0;
        moved = 0;
        for (size_t i = 0; i < left; i++) {
            struct block_list *block = &p->blocks[active[i]];
            while (block->at < block->count && row_may_run(p, block->nodes[block->first + block->at])) {
                run_row(p, block->nodes[block->first + block->at++]);
                moved = 1;
            }
            if (block->at < block->count)
                active[retained++] = active[i];
        }
        left = retained;
    }
    free(active);
    return left == 0;
}

/* ---- exchanges ---- */

/* Whether the row waits for nothing that other blocks do. */
static int waits_for_own_block(const struct rondo_graph *graph, uint32_t row)
{
    for (uint32_t i = row; i != RONDO_NONE; i = graph->nodes[i].next) {
        const struct rondo_node *n = &graph->nodes[i];
        for (uint32_t k = 0; k < n->previous; k++) {
            uint32_t other = rondo_node_find(graph, graph->previous[n->previous_first + k]);
            if (graph->nodes[other].block != graph->nodes[row].block)
                return 0;
        }
    }
    return 1;
}

/* Whether b reduces what a sends. As one instruction they make no other wait longer: an instruction that overwrites what a
 * sends waits for b as well, which reads the same chunk, and b waits for no other block. */
static int exchanges(const struct rondo_graph *graph, uint32_t a, uint32_t b)
{
    const struct rondo_node *x = &graph->nodes[a], *y = &graph->nodes[b];
    return x->actions == RONDO_SEND && y->actions == (RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY) && x->count == 1 &&
           y->count == 1 && x->source_buffer == y->source_buffer && x->source == y->source && waits_for_own_block(graph, b);
}

static void make_exchanges(struct rondo_graph *graph, struct block_list *block)
{
    uint32_t *list = block->nodes + block->first;
    size_t retained = 0;
    for (size_t i = 0; i < block->count; i++) {
        uint32_t node = list[i];
        if (retained > 0 && exchanges(graph, list[retained - 1], node)) {
            uint32_t sends = list[--retained], last = last_of_row(graph, node);
            graph->nodes[last].next = sends;
            for (uint32_t k = sends; k != RONDO_NONE; k = graph->nodes[k].next)
                graph->nodes[k].merged = node;
            graph->nodes[node].actions |= RONDO_SEND;
            graph->nodes[node].flags |= RONDO_EXCHANGE;
        }
        list[retained++] = node;
    }
    block->count = retained;
}

/* Makes the heads of rows the order: block by block, those of a block one after the other as before. */
static void take_rows(struct simulation *p)
{
    struct rondo_graph *graph = p->graph;
    graph->ordered = 0;
    for (size_t b = 0; b < p->block_count; b++)
        for (size_t i = 0; i < p->blocks[b].count; i++)
            graph->order[graph->ordered++] = p->blocks[b].nodes[p->blocks[b].first + i];
}

/* What make_rows changes of a node that is ordered, besides next, which is RONDO_NONE before. */
struct unjoined {
    uint32_t source;
    uint8_t source_buffer;
};

static void dissolve_rows(struct rondo_graph *graph, const struct unjoined *saved)
{
    for (size_t i = 0; i < graph->ordered; i++) {
        struct rondo_node *n = &graph->nodes[graph->order[i]];
        n->source = saved[i].source;
        n->source_buffer = saved[i].source_buffer;
        n->merged = n->next = RONDO_NONE;
    }
}

void rondo_graph_coalesce(struct rondo_graph *graph)
{
    struct simulation p = {.graph = graph};
    struct unjoined *saved = malloc((graph->ordered + 1) * sizeof(*saved));
    if (saved == NULL || !prepare(&p)) {
        graph->failed = 1;
    } else {
        for (size_t i = 0; i < graph->ordered; i++) {
            const struct rondo_node *n = &graph->nodes[graph->order[i]];
            saved[i] = (struct unjoined){n->source, n->source_buffer};
        }
        for (size_t b = 0; b < p.block_count; b++)
            make_rows(graph, &p.blocks[b]);
        if (simulate(&p)) {
            for (size_t b = 0; graph->options->exchanges && b < p.block_count; b++)
                make_exchanges(graph, &p.blocks[b]);
            take_rows(&p);
        } else {
            dissolve_rows(graph, saved);
        }
    }
    free(saved);
    free(p.rank_first);
    free(p.blocks);
    free(p.nodes);
    free(p.done);
    free(p.sequence);
    free(p.in);
    free(p.out);
    free(p.filled);
    free(p.taken);
    rondo_map_release(&p.map);
}
