/*
 * Gives messages channels and nodes blocks (GC3 section 5.2). A chain of fused instructions takes one channel: the user's, or
 * the lowest on which none of its blocks would have to serve a second pair of peers. A connection's end is worked by one block
 * alone; so the ends that an instruction receives from and sends to are worked by the same block, and such groups are spread
 * over as many blocks as the device has, those of one channel next to each other. With options->apart, only ends that are
 * reduced together are joined.
 */
#include "lib/program/graph.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

#define TRIES   8
#define END_MAX 250 /* of a block; instructions name ends by 8 bits */

static uint64_t end_key(uint32_t rank, uint32_t peer, int32_t channel, int outgoing)
{
    return (uint64_t) rank << 41 | (uint64_t) peer << 17 | (uint64_t) (uint32_t) channel << 1 | (uint64_t) outgoing;
}

/* ---- channels ---- */

/* Returns 1 if the end may be worked with that partner, which is the peer at the other side of the instruction; 0 if not; -1 if
 * memory is out. take: it now is. */
static int partner_fits(struct rondo_map *partners, uint64_t key, uint32_t partner, int take)
{
    uint32_t *now = rondo_map_at(partners, key);
    if (now == NULL)
        return -1;
    if (take)
        *now = partner;
    return *now == RONDO_NONE || *now == partner;
}

static int row_fits(struct rondo_graph *graph, struct rondo_map *partners, uint32_t start, int32_t channel, int take)
{
    for (uint32_t i = graph->nodes[start].to; i != RONDO_NONE; i = graph->nodes[i].to) {
        struct rondo_node *n = &graph->nodes[i];
        uint32_t from = graph->nodes[n->from].rank;
        if (take)
            n->channel = channel;
        if (n->to == RONDO_NONE)
            continue;
        uint32_t to = graph->nodes[n->to].rank;
        int in = partner_fits(partners, end_key(n->rank, from, channel, 0), to, take);
        int out = partner_fits(partners, end_key(n->rank, to, channel, 1), from, take);
        if (in < 0 || out < 0)
            graph->failed = 1;
        if (in <= 0 || out <= 0)
            return 0;
    }
    return 1;
}

static void assign_channels(struct rondo_graph *graph)
{
    struct rondo_map partners = {0};
    for (uint32_t i = 0; i < graph->node_count && !graph->failed; i++) {
        struct rondo_node *start = &graph->nodes[i];
        if (!rondo_node_lives(start) || start->to == RONDO_NONE || start->from != RONDO_NONE)
            continue;
        int32_t channel = RONDO_CHANNEL_AUTO, first = graph->nodes[start->to].instance;
        for (uint32_t k = start->to; k != RONDO_NONE && channel < 0; k = graph->nodes[k].to)
            if (graph->nodes[k].directed)
                channel = graph->nodes[k].channel;
        int32_t step = graph->nodes[start->to].instances;
        for (int t = 0; t < TRIES && channel < 0; t++)
            if (row_fits(graph, &partners, i, first + t * step, 0))
                channel = first + t * step;
        row_fits(graph, &partners, i, channel < 0 ? first : channel, 1);
    }
    rondo_map_release(&partners);
}

/* ---- blocks ---- */

struct end {
    uint32_t parent; /* of the group */
    uint32_t rank;
    uint32_t load; /* a group's: chunks moved */
    uint32_t ends; /* a group's */
    int32_t channel;
    uint32_t block;
};

struct placing {
    struct rondo_graph *graph;
    struct rondo_map map;
    struct end *ends;
    size_t count, room;
    uint32_t *node_ends; /* [node]: the end that decides its block; RONDO_NONE: none */
};

static uint32_t group_of(struct placing *p, uint32_t end)
{
    while (p->ends[end].parent != end) {
        p->ends[end].parent = p->ends[p->ends[end].parent].parent;
        end = p->ends[end].parent;
    }
    return end;
}

static uint32_t end_at(struct placing *p, uint32_t rank, uint32_t peer, int32_t channel, int outgoing)
{
    uint32_t *at = rondo_map_at(&p->map, end_key(rank, peer, channel, outgoing));
    if (at == NULL) {
        p->graph->failed = 1;
        return RONDO_NONE;
    }
    if (*at != RONDO_NONE)
        return *at;
    if (!rondo_grow((void **) &p->ends, p->count, &p->room, sizeof(*p->ends))) {
        p->graph->failed = 1;
        return RONDO_NONE;
    }
    *at = (uint32_t) p->count;
    p->ends[p->count] = (struct end){*at, rank, 0, 1, channel, RONDO_NONE};
    return (uint32_t) p->count++;
}

static void join(struct placing *p, uint32_t a, uint32_t b)
{
    a = group_of(p, a), b = group_of(p, b);
    if (a == b || p->ends[a].ends + p->ends[b].ends > END_MAX)
        return;
    p->ends[b].parent = a;
    p->ends[a].load += p->ends[b].load;
    p->ends[a].ends += p->ends[b].ends;
}

static uint32_t incoming(struct placing *p, const struct rondo_node *n)
{
    return end_at(p, n->rank, p->graph->nodes[n->from].rank, n->channel, 0);
}

static uint32_t outgoing(struct placing *p, const struct rondo_node *n)
{
    const struct rondo_node *to = &p->graph->nodes[n->to];
    return end_at(p, n->rank, to->rank, to->channel, 1);
}

/* What arrives next for the same sum is to be reduced by the same block. */
static void join_reduce(struct placing *p, const struct rondo_node *n, uint32_t in)
{
    const struct rondo_graph *graph = p->graph;
    for (uint32_t i = n->consumers; (n->actions & RONDO_REDUCE) && i != RONDO_NONE; i = graph->links[i].next) {
        const struct rondo_node *reader = &graph->nodes[rondo_node_find(graph, graph->links[i].node)];
        if (reader != n && reader->from != RONDO_NONE && (reader->actions & RONDO_REDUCE))
            join(p, in, incoming(p, reader));
    }
}

static void find_groups(struct placing *p)
{
    struct rondo_graph *graph = p->graph;
    for (uint32_t i = 0; i < graph->node_count && !graph->failed; i++) {
        const struct rondo_node *n = &graph->nodes[i];
        p->node_ends[i] = RONDO_NONE;
        if (!rondo_node_lives(n) || (n->from == RONDO_NONE && n->to == RONDO_NONE))
            continue;
        uint32_t in = n->from != RONDO_NONE ? incoming(p, n) : RONDO_NONE;
        uint32_t out = n->to != RONDO_NONE ? outgoing(p, n) : RONDO_NONE;
        if (graph->failed)
            return;
        p->node_ends[i] = in != RONDO_NONE ? in : out;
        p->ends[group_of(p, p->node_ends[i])].load += n->count;
        if (in != RONDO_NONE && out != RONDO_NONE)
            join(p, in, out);
        if (in != RONDO_NONE && graph->options->apart)
            join_reduce(p, n, in);
    }
}

static int by_channel(const void *a, const void *b)
{
    const struct end *x = *(const struct end *const *) a, *y = *(const struct end *const *) b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->channel != y->channel)
        return x->channel < y->channel ? -1 : 1;
    if (x->load != y->load)
        return x->load > y->load ? -1 : 1;
    return x->parent < y->parent ? -1 : 1;
}

/* The blocks that the groups of one channel may take: a heap, the least load first, of two with the same load the first. */
struct choice {
    uint32_t blocks[RONDO_COMPILE_BLOCKS_MAX], count;
    const uint32_t *loads;
};

static int is_lighter(const struct choice *c, uint32_t a, uint32_t b)
{
    return c->loads[a] != c->loads[b] ? c->loads[a] < c->loads[b] : a < b;
}

/* The first block has got more load. */
static void sink_first(struct choice *c)
{
    const uint32_t block = c->blocks[0];
    uint32_t at = 0;
    for (uint32_t child = 1; child < c->count; child = 2 * at + 1) {
        child += child + 1 < c->count && is_lighter(c, c->blocks[child + 1], c->blocks[child]);
        if (!is_lighter(c, c->blocks[child], block))
            break;
        c->blocks[at] = c->blocks[child];
        at = child;
    }
    c->blocks[at] = block;
}

/* Spreads the groups of one rank (sorted by channel, heaviest first) over `limit` blocks. Returns 0 if a block gets too many
 * ends. */
static int spread(struct end **groups, size_t count, uint32_t channels, uint32_t limit)
{
    uint32_t loads[RONDO_COMPILE_BLOCKS_MAX] = {0}, ends[RONDO_COMPILE_BLOCKS_MAX] = {0};
    struct choice choice = {.loads = loads};
    uint32_t tag = 0;
    for (size_t i = 0; i < count; i++) {
        tag += i > 0 && groups[i]->channel != groups[i - 1]->channel;
        uint32_t first = 0, blocks = limit;
        if (count <= limit) {
            first = (uint32_t) i, blocks = 1;
        } else if (channels >= limit) {
            first = tag % limit, blocks = 1;
        } else {
            first = tag * limit / channels;
            blocks = (tag + 1) * limit / channels - first;
        }
        if (blocks > 1 && (i == 0 || groups[i]->channel != groups[i - 1]->channel)) /* blocks of no other channel: no load */
            for (choice.count = 0; choice.count < blocks; choice.count++)
                choice.blocks[choice.count] = first + choice.count;
        const uint32_t best = blocks > 1 ? choice.blocks[0] : first;
        groups[i]->block = best;
        loads[best] += groups[i]->load;
        if (blocks > 1)
            sink_first(&choice);
        ends[best] += groups[i]->ends;
        if (ends[best] > END_MAX)
            return 0;
    }
    return 1;
}

static rondo_result_t choose_blocks(struct placing *p)
{
    struct rondo_graph *graph = p->graph;
    struct end **groups = calloc(p->count + 1, sizeof(*groups));
    size_t count = 0;
    rondo_result_t status = RONDO_SUCCESS;
    if (groups == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to place %zu connections", p->count);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->ends[i].parent == i)
            groups[count++] = &p->ends[i];
    qsort(groups, count, sizeof(*groups), by_channel);
    for (size_t first = 0, next; first < count && status == RONDO_SUCCESS; first = next) {
        uint32_t channels = 1, limit = graph->options->blocks;
        for (next = first + 1; next < count && groups[next]->rank == groups[first]->rank; next++)
            channels += groups[next]->channel != groups[next - 1]->channel;
        while (!spread(groups + first, next - first, channels, limit)) {
            limit *= 2;
            if (limit > RONDO_COMPILE_BLOCKS_MAX) {
                status =
                    rondo_fail(RONDO_ERR_UNSUPPORTED, "program '%s': rank %u has more connections than its blocks can serve",
                               graph->builder->name, groups[first]->rank);
                break;
            }
        }
        uint32_t used = 0;
        for (size_t i = first; i < next; i++)
            used = groups[i]->block + 1 > used ? groups[i]->block + 1 : used;
        graph->rank_blocks[groups[first]->rank] = used;
    }
    free(groups);
    return status;
}

/* Adds a block to each rank that moves something within itself which waits for nothing. Returns for each rank the block's
 * number plus one, or 0; NULL if memory is out. */
static uint32_t *own_blocks(const struct placing *p)
{
    struct rondo_graph *graph = p->graph;
    uint32_t *own = calloc(graph->conditions.ranks, sizeof(*own));
    for (size_t o = 0; own != NULL && o < graph->ordered; o++) {
        const struct rondo_node *n = &graph->nodes[graph->order[o]];
        if (n->from == RONDO_NONE && n->to == RONDO_NONE && n->previous == 0 && own[n->rank] == 0 &&
            graph->rank_blocks[n->rank] < graph->options->blocks)
            own[n->rank] = ++graph->rank_blocks[n->rank];
    }
    return own;
}

/* Gives every node its block. Instructions within the rank stay in the block of what they wait for last. */
static void place_nodes(struct placing *p)
{
    struct rondo_graph *graph = p->graph;
    uint32_t *own = graph->options->apart ? own_blocks(p) : NULL;
    graph->failed |= graph->options->apart && own == NULL;
    for (size_t o = 0; o < graph->ordered && !graph->failed; o++) {
        struct rondo_node *n = &graph->nodes[graph->order[o]];
        n->position = (uint32_t) o;
        const uint32_t end = p->node_ends[graph->order[o]];
        if (end != RONDO_NONE) {
            n->block = p->ends[group_of(p, end)].block;
            continue;
        }
        uint32_t last = RONDO_NONE;
        for (uint32_t k = 0; k < n->previous; k++) {
            uint32_t before = rondo_node_find(graph, graph->previous[n->previous_first + k]);
            if (before == graph->order[o])
                continue;
            if (last == RONDO_NONE || graph->nodes[before].position > graph->nodes[last].position)
                last = before;
        }
        n->block = last != RONDO_NONE            ? graph->nodes[last].block
                   : own != NULL && own[n->rank] ? own[n->rank] - 1
                                                 : n->instance % graph->rank_blocks[n->rank];
    }
    free(own);
}

rondo_result_t rondo_graph_channels(struct rondo_graph *graph)
{
    assign_channels(graph);
    return graph->failed ? rondo_fail(RONDO_ERR_MEMORY, "no memory for channels") : RONDO_SUCCESS;
}

rondo_result_t rondo_graph_place(struct rondo_graph *graph)
{
    struct placing p = {.graph = graph};
    graph->rank_blocks = calloc(graph->conditions.ranks, sizeof(*graph->rank_blocks));
    p.node_ends = malloc((graph->node_count + 1) * sizeof(*p.node_ends));
    if (graph->rank_blocks == NULL || p.node_ends == NULL) {
        free(p.node_ends);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for %u ranks", graph->conditions.ranks);
    }
    find_groups(&p);
    rondo_result_t status = graph->failed ? rondo_fail(RONDO_ERR_MEMORY, "no memory for blocks") : choose_blocks(&p);
    for (uint32_t rank = 0; rank < graph->conditions.ranks; rank++)
        if (graph->rank_blocks[rank] == 0)
            graph->rank_blocks[rank] = 1; /* an operation without blocks would never end */
    if (status == RONDO_SUCCESS)
        place_nodes(&p);
    free(p.ends);
    free(p.node_ends);
    rondo_map_release(&p.map);
    return status;
}
