/*
 * From ordered nodes to plans: steps, ends, scratch, and the waits between blocks (GC3 section 5.2, synchronization insertion).
 * A wait is left out where the block has waited for the same or a later step before. That holds only if the earlier wait takes
 * place in every tile in which the later one would: instructions on chunks that have ended do not wait.
 */
#include "lib/program/graph.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

/* What the block at hand knows of another: that steps below `steps` are over, by a wait of an instruction of least class
 * `class`. It is of the block at hand if visit is the current one. */
struct waited {
    uint32_t steps, class, visit;
};

struct emitting {
    struct rondo_graph *graph;
    size_t *block_first; /* [rank block]: in lists */
    size_t *rank_first;  /* [rank]: its first block */
    uint32_t *lists;     /* nodes */
    uint32_t *step;      /* [node] */
    uint8_t *notifies;   /* [node] */
    struct rondo_plan_builder *plan_builder;
    struct rondo_plan *plan;
    uint32_t rank;
    uint32_t *scratch_index; /* [scratch chunk of the rank]: where it lies; RONDO_NONE: nowhere */
    uint32_t *classes;
    uint32_t scratch_count;
    struct waited waited[RONDO_COMPILE_BLOCKS_MAX]; /* [other block] */
    uint32_t latest[RONDO_COMPILE_BLOCKS_MAX];      /* [other block]: what the row at hand waits for; RONDO_NONE: nothing */
    uint32_t visit;                                 /* number of the visit of the block at hand, from 1 */
    uint32_t largest_count, largest_receive;
    struct rondo_connection ends[256]; /* of the current block */
    uint32_t end_count;
};

/* ---- lists ---- */

static int make_lists(struct emitting *e)
{
    struct rondo_graph *graph = e->graph;
    uint32_t ranks = graph->conditions.ranks;
    e->rank_first = calloc((size_t) ranks + 1, sizeof(size_t));
    if (e->rank_first == NULL)
        return 0;
    for (uint32_t rank = 0; rank < ranks; rank++)
        e->rank_first[rank + 1] = e->rank_first[rank] + graph->rank_blocks[rank];
    size_t blocks = e->rank_first[ranks];
    e->block_first = calloc(blocks + 2, sizeof(size_t));
    e->lists = malloc((graph->ordered + 1) * sizeof(uint32_t));
    e->step = calloc(graph->node_count + 1, sizeof(uint32_t));
    e->notifies = calloc(graph->node_count + 1, 1);
    if (e->block_first == NULL || e->lists == NULL || e->step == NULL || e->notifies == NULL)
        return 0;
    for (size_t i = 0; i < graph->ordered; i++) {
        const struct rondo_node *n = &graph->nodes[graph->order[i]];
        e->block_first[e->rank_first[n->rank] + n->block + 2]++;
    }
    for (size_t b = 2; b < blocks + 2; b++)
        e->block_first[b] += e->block_first[b - 1];
    for (size_t i = 0; i < graph->ordered; i++) {
        uint32_t node = graph->order[i];
        const struct rondo_node *n = &graph->nodes[node];
        size_t block = e->rank_first[n->rank] + n->block;
        e->lists[e->block_first[block + 1]++] = node;
    }
    /* Each start has moved to the next one's place: block_first[b] .. block_first[b + 1] are block b's. */
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = e->block_first[b]; i < e->block_first[b + 1]; i++)
            e->step[e->lists[i]] = (uint32_t) (i - e->block_first[b]);
    return 1;
}

/* ---- scratch ---- */

static uint32_t scratch_class(const struct emitting *e, uint32_t chunk)
{
    const struct rondo_graph *graph = e->graph;
    if (chunk < graph->scratch[e->rank])
        return graph->places[graph->place_first[e->rank * RONDO_BUFFERS + RONDO_SCRATCH] + chunk].class;
    return rondo_conditions_class(&graph->conditions, e->rank, RONDO_INPUT, chunk - graph->scratch[e->rank]);
}

/* Whether the node is a relay, which passes on what it receives. Relays alone neither read nor write the chunks that they name:
 * those tell how long the message is. */
static int is_relay(const struct rondo_node *n)
{
    return (n->actions & (RONDO_RECEIVE | RONDO_COPY | RONDO_REDUCE)) == RONDO_RECEIVE;
}

/* Finds a chunk of the input or output that is as long as what a relay passes on, so that no scratch is needed for it. Returns
 * 0 if there is none. */
static int stand_in(const struct emitting *e, const struct rondo_node *n, uint8_t *buffer, uint32_t *index)
{
    const struct rondo_conditions *c = &e->graph->conditions;
    for (int b = RONDO_INPUT; b <= RONDO_OUTPUT && rondo_conditions_ordered(c); b++) {
        uint32_t chunks = rondo_conditions_chunks(c, e->rank, (enum rondo_buffer) b), matching = 0;
        uint32_t first = n->least_class;
        if (first >= chunks || n->count > chunks - first)
            continue;
        for (uint32_t k = 0; k < n->count; k++) {
            uint32_t class =
                n->destination_buffer == RONDO_SCRATCH
                    ? scratch_class(e, n->destination + k)
                    : rondo_conditions_class(c, e->rank, (enum rondo_buffer) n->destination_buffer, n->destination + k);
            matching += rondo_conditions_class(c, e->rank, (enum rondo_buffer) b, first + k) == class;
        }
        if (matching == n->count) {
            *buffer = (uint8_t) b;
            *index = first;
            return 1;
        }
    }
    return 0;
}

/* Numbers the scratch chunks that the rank's instructions use. Returns 0 if memory is out. */
static int find_scratch(struct emitting *e)
{
    struct rondo_graph *graph = e->graph;
    uint32_t all = graph->scratch[e->rank] + graph->builder->buffers[e->rank * RONDO_BUFFERS + RONDO_INPUT].count * graph->cut;
    e->scratch_index = malloc(((size_t) all + 1) * sizeof(uint32_t));
    e->classes = malloc(((size_t) all + 1) * sizeof(uint32_t));
    if (e->scratch_index == NULL || e->classes == NULL)
        return 0;
    memset(e->scratch_index, 0xff, (size_t) all * sizeof(uint32_t));
    size_t first = e->block_first[e->rank_first[e->rank]], last = e->block_first[e->rank_first[e->rank + 1]];
    for (size_t i = first; i < last; i++) {
        const struct rondo_node *n = &graph->nodes[e->lists[i]];
        uint8_t buffer;
        uint32_t index;
        int plain_receive = (n->actions & RONDO_RECEIVE) && !(n->actions & RONDO_REDUCE);
        for (uint32_t k = 0; k < n->count; k++) {
            if (n->source_buffer == RONDO_SCRATCH && !plain_receive)
                e->scratch_index[n->source + k] = 0;
            if (n->destination_buffer == RONDO_SCRATCH && (n->actions & RONDO_COPY))
                e->scratch_index[n->destination + k] = 0;
            if (n->destination_buffer == RONDO_SCRATCH && is_relay(n) && !stand_in(e, n, &buffer, &index))
                e->scratch_index[n->destination + k] = 0;
        }
    }
    e->scratch_count = 0;
    for (uint32_t i = 0; i < all; i++)
        if (e->scratch_index[i] != RONDO_NONE) {
            e->scratch_index[i] = e->scratch_count;
            e->classes[e->scratch_count++] = scratch_class(e, i);
        }
    return 1;
}

static uint32_t physical(const struct emitting *e, uint8_t buffer, uint32_t index)
{
    return buffer == RONDO_SCRATCH ? e->scratch_index[index] : index;
}

/* ---- ends ---- */

static int ascending(const void *a, const void *b)
{
    const struct rondo_connection *x = a, *y = b;
    if (x->direction != y->direction)
        return x->direction > y->direction ? -1 : 1;
    if (x->channel != y->channel)
        return x->channel < y->channel ? -1 : 1;
    return x->peer < y->peer ? -1 : x->peer > y->peer;
}

static struct rondo_connection connection_of(const struct emitting *e, uint32_t node, int outgoing)
{
    const struct rondo_graph *graph = e->graph;
    const struct rondo_node *n = &graph->nodes[node], *to = outgoing ? &graph->nodes[n->to] : n;
    const struct rondo_node *peer = outgoing ? to : &graph->nodes[n->from];
    struct rondo_connection connection = {(int32_t) peer->rank, (uint16_t) to->channel,
                                          outgoing ? RONDO_OUTGOING : RONDO_INCOMING, (uint8_t) graph->options->protocol};
    return connection;
}

/* Stores the ends of a row in one direction, sorted. Returns their number, at most 64. */
static uint32_t row_ends(const struct emitting *e, uint32_t head, int outgoing, struct rondo_connection *ends)
{
    uint32_t count = 0;
    for (uint32_t i = head; i != RONDO_NONE; i = e->graph->nodes[i].next) {
        const struct rondo_node *n = &e->graph->nodes[i];
        if ((outgoing ? n->to : n->from) != RONDO_NONE)
            ends[count++] = connection_of(e, i, outgoing);
    }
    qsort(ends, count, sizeof(*ends), ascending);
    return count;
}

/* Returns where the ends stand in the block's list, one after the other; adds them if they do not. RONDO_NONE: no room. */
static uint32_t place_ends(struct emitting *e, const struct rondo_connection *ends, uint32_t count)
{
    for (uint32_t at = 0; at + count <= e->end_count; at++)
        if (memcmp(&e->ends[at], ends, count * sizeof(*ends)) == 0)
            return at;
    if (e->end_count + count > 255)
        return RONDO_NONE;
    memcpy(&e->ends[e->end_count], ends, count * sizeof(*ends));
    e->end_count += count;
    return e->end_count - count;
}

/* Lists all ends of the block once, in order, so that most rows find theirs side by side. */
static void list_ends(struct emitting *e, size_t block)
{
    struct rondo_connection row[64];
    e->end_count = 0;
    for (int outgoing = 1; outgoing >= 0; outgoing--) {
        uint32_t first = e->end_count;
        for (size_t i = e->block_first[block]; i < e->block_first[block + 1]; i++) {
            uint32_t count = row_ends(e, e->lists[i], outgoing, row);
            for (uint32_t k = 0; k < count; k++) {
                uint32_t at = first;
                while (at < e->end_count && memcmp(&e->ends[at], &row[k], sizeof(row[k])) != 0)
                    at++;
                if (at == e->end_count && e->end_count < 255)
                    e->ends[e->end_count++] = row[k];
            }
        }
        qsort(e->ends + first, e->end_count - first, sizeof(e->ends[0]), ascending);
    }
}

/* ---- waits ---- */

/* Whether the wait before makes this one needless: see the top of the file. */
static int covers(const struct emitting *e, const struct waited *earlier, uint32_t step, uint32_t class)
{
    if (earlier->visit != e->visit || earlier->steps < step + 1)
        return 0;
    return rondo_conditions_ordered(&e->graph->conditions) ? earlier->class <= class : earlier->class == class;
}

/* Adds a block to an ascending list. */
static void insert(uint32_t *list, uint32_t count, uint32_t block)
{
    for (; count > 0 && list[count - 1] > block; count--)
        list[count] = list[count - 1];
    list[count] = block;
}

/* Finds the waits of a row. Pass 0 notes which nodes must notify, pass 1 writes the waits. Takes time for what the row waits
 * for, not for the rank's blocks, of which large programs have hundreds. */
static void row_waits(struct emitting *e, uint32_t head, int pass)
{
    struct rondo_graph *graph = e->graph;
    const struct rondo_node *h = &graph->nodes[head];
    uint32_t on[RONDO_COMPILE_BLOCKS_MAX], count = 0;
    for (uint32_t i = head; i != RONDO_NONE; i = graph->nodes[i].next) {
        const struct rondo_node *n = &graph->nodes[i];
        for (uint32_t k = 0; k < n->previous; k++) {
            uint32_t before = rondo_node_find(graph, graph->previous[n->previous_first + k]);
            uint32_t block = graph->nodes[before].block;
            if (block == h->block)
                continue;
            if (e->latest[block] == RONDO_NONE)
                insert(on, count++, block);
            if (e->latest[block] == RONDO_NONE || e->step[before] > e->step[e->latest[block]])
                e->latest[block] = before;
        }
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t block = on[k], node = e->latest[block];
        struct waited *earlier = &e->waited[block];
        e->latest[block] = RONDO_NONE;
        if (covers(e, earlier, e->step[node], h->least_class))
            continue;
        *earlier = (struct waited){e->step[node] + 1, h->least_class, e->visit};
        if (pass == 0)
            e->notifies[node] = 1;
        else
            rondo_plan_builder_depend(e->plan_builder, (int) block, (int) e->step[node]);
    }
}

/* ---- instructions ---- */

static rondo_result_t add_row(struct emitting *e, uint32_t head)
{
    struct rondo_graph *graph = e->graph;
    const struct rondo_node *n = &graph->nodes[head];
    struct rondo_connection out[64], in[64];
    uint32_t outs = row_ends(e, head, 1, out), ins = row_ends(e, head, 0, in);
    uint32_t out_first = place_ends(e, out, outs), in_first = place_ends(e, in, ins);
    if (out_first == RONDO_NONE || in_first == RONDO_NONE)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "program '%s', rank %u: a block has more than 255 ends", graph->builder->name,
                          n->rank);
    struct rondo_instruction instruction = {
        .actions = n->actions,
        .flags = (uint8_t) (n->flags | (e->notifies[head] ? RONDO_NOTIFY : 0)),
        .source_buffer = n->source_buffer,
        .destination_buffer = n->destination_buffer,
        .count = (uint16_t) n->count,
        .receive_first = (uint8_t) (ins > 0 ? in_first : 0),
        .receive_count = (uint8_t) ins,
        .send_first = (uint8_t) (outs > 0 ? out_first : 0),
        .send_count = (uint8_t) outs,
    };
    int plain_receive = (n->actions & RONDO_RECEIVE) && !(n->actions & RONDO_REDUCE);
    int uses_destination = (n->actions & RONDO_COPY) || (n->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == RONDO_REDUCE;
    uint8_t buffer;
    uint32_t index;
    if (is_relay(n)) {
        if (!stand_in(e, n, &buffer, &index))
            buffer = n->destination_buffer, index = physical(e, n->destination_buffer, n->destination);
        instruction.source_buffer = instruction.destination_buffer = buffer;
        instruction.source_index = instruction.destination_index = index;
    } else {
        if (uses_destination)
            instruction.destination_index = physical(e, n->destination_buffer, n->destination);
        else
            instruction.destination_buffer = RONDO_OUTPUT;
        if (plain_receive)
            instruction.source_buffer = RONDO_INPUT;
        else
            instruction.source_index = physical(e, n->source_buffer, n->source);
    }
    for (uint32_t i = 0; i < ins; i++) /* all ranks reduce in the order of ranks, where they reduce at once */
        instruction.local_place = (uint8_t) (instruction.local_place + (in[i].peer < (int32_t) n->rank));
    rondo_plan_builder_add(e->plan_builder, &instruction);
    return RONDO_SUCCESS;
}

static rondo_result_t one_rank(struct emitting *e, uint32_t rank)
{
    struct rondo_graph *graph = e->graph;
    const struct rondo_conditions *c = &graph->conditions;
    uint32_t blocks = graph->rank_blocks[rank];
    size_t first = e->rank_first[rank];
    rondo_result_t status = RONDO_SUCCESS;
    e->rank = rank;
    if (!find_scratch(e)) {
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for the plan of rank %u", rank);
        goto done;
    }
    uint64_t instructions = 0;
    for (uint32_t b = 0; b < blocks; b++)
        instructions = e->block_first[first + b + 1] - e->block_first[first + b] > instructions
                           ? e->block_first[first + b + 1] - e->block_first[first + b]
                           : instructions;
    if (instructions > UINT16_MAX) {
        status = rondo_fail(RONDO_ERR_UNSUPPORTED, "program '%s': rank %u has a block of %llu instructions; %u are possible",
                            graph->builder->name, rank, (unsigned long long) instructions, UINT16_MAX);
        goto done;
    }
    for (uint32_t b = 0; b < blocks; b++) {
        e->visit++;
        for (size_t i = e->block_first[first + b]; i < e->block_first[first + b + 1]; i++)
            row_waits(e, e->lists[i], 0);
    }
    e->plan_builder = rondo_plan_builder_create();
    for (uint32_t b = 0; b < blocks && status == RONDO_SUCCESS; b++) {
        rondo_plan_builder_block(e->plan_builder);
        list_ends(e, first + b);
        e->visit++;
        for (size_t i = e->block_first[first + b]; i < e->block_first[first + b + 1] && status == RONDO_SUCCESS; i++) {
            status = add_row(e, e->lists[i]);
            row_waits(e, e->lists[i], 1);
        }
        for (uint32_t end = 0; end < e->end_count; end++)
            rondo_plan_builder_end(e->plan_builder, e->ends[end].peer, e->ends[end].channel,
                                   (enum rondo_direction) e->ends[end].direction, (enum rondo_protocol) e->ends[end].protocol);
    }
    uint32_t chunks[RONDO_BUFFERS] = {rondo_conditions_chunks(c, rank, RONDO_INPUT),
                                      rondo_conditions_chunks(c, rank, RONDO_OUTPUT), e->scratch_count};
    rondo_result_t finished = rondo_plan_builder_finish(e->plan_builder, chunks, &e->plan);
    if (finished != RONDO_SUCCESS || status != RONDO_SUCCESS) {
        if (finished == RONDO_SUCCESS)
            rondo_plan_free(e->plan);
        e->plan = NULL;
        status = status != RONDO_SUCCESS ? status : finished;
        goto done;
    }
    e->plan->program->largest_count = e->largest_count;
    e->plan->largest_receive = e->largest_receive;
    e->plan->even = graph->even;
    e->plan->block_chunks = c->block_chunks;
    e->plan->scratch_classes = e->classes;
    e->classes = NULL;

done:
    free(e->scratch_index);
    free(e->classes);
    e->scratch_index = e->classes = NULL;
    return status;
}

/* Finds what all ranks must agree on, because their slices depend on it. */
static void find_largest(struct emitting *e)
{
    struct rondo_graph *graph = e->graph;
    e->largest_count = 1;
    for (size_t i = 0; i < graph->ordered; i++) {
        uint32_t node = graph->order[i], receives = 0;
        const struct rondo_node *n = &graph->nodes[node];
        for (uint32_t k = node; k != RONDO_NONE; k = graph->nodes[k].next)
            receives += graph->nodes[k].from != RONDO_NONE;
        e->largest_count = n->count > e->largest_count ? n->count : e->largest_count;
        e->largest_receive = receives > e->largest_receive ? receives : e->largest_receive;
    }
}

rondo_result_t rondo_graph_emit(struct rondo_graph *graph, int only, struct rondo_plan_set *set)
{
    struct emitting e = {.graph = graph};
    memset(e.latest, 0xff, sizeof(e.latest));
    rondo_result_t status = RONDO_SUCCESS;
    if (!make_lists(&e))
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for the plans of %u ranks", graph->conditions.ranks);
    else
        find_largest(&e);
    for (uint32_t rank = 0; rank < graph->conditions.ranks && status == RONDO_SUCCESS; rank++)
        if (only < 0 || (uint32_t) only == rank) {
            status = one_rank(&e, rank);
            set->plans[rank] = e.plan;
            e.plan = NULL;
        }
    free(e.rank_first);
    free(e.block_first);
    free(e.lists);
    free(e.step);
    free(e.notifies);
    return status;
}
