/*
 * See raw.h. The steps are played in some order that the slots allow; in that order they become instructions of as many blocks
 * as there may be, so that blocks that had to be joined cannot block each other. As in lower.c, an input chunk that is written
 * to moves to the output or to scratch, and the instruction whose result is complete applies the operator's last step.
 */
#include "program/raw.h"

#include "error.h"
#include "program/graph.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS_MAX ((uint64_t) 1 << 30)

struct held {
    struct rondo_value value;
    uint32_t index, class;
};

struct place {
    struct held held;
    uint32_t class; /* scratch: of what came first */
    int written;
};

struct letter {
    struct letter *next;
    uint32_t count;
    struct held held[];
};

struct line {
    struct letter *first, *last;
    uint32_t waiting;
};

/* A step that was played, in physical terms. */
struct done {
    uint32_t order; /* from 1 */
    uint32_t source, destination;
    uint8_t source_buffer, destination_buffer, finishes;
    uint32_t block, step; /* in the plan */
};

struct playing {
    struct rondo_raw *raw;
    const char *name;
    const struct rondo_compile_options *options;
    struct rondo_wants wants;
    struct place *places;
    size_t *place_first; /* [rank][buffer] */
    struct line *lines;
    size_t line_count, line_room;
    struct rondo_map map;
    struct done *done;    /* [step] */
    uint32_t *at;         /* [block] */
    uint32_t *order;      /* steps; in the end those of a rank side by side */
    uint32_t *rank_first; /* [rank]: in order */
    uint32_t played;
    int again; /* a rank turned out to need its input copied */
    rondo_result_t result;
};

void rondo_raw_free(struct rondo_raw *raw)
{
    if (raw == NULL)
        return;
    free(raw->ranks);
    free(raw->blocks);
    free(raw->steps);
    free(raw);
}

static uint32_t rank_of_block(const struct playing *p, uint32_t block)
{
    uint32_t low = 0, high = p->raw->conditions.ranks - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (p->raw->ranks[middle].block_first <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void fail_at(struct playing *p, uint32_t block, const char *what)
{
    uint32_t rank = rank_of_block(p, block), step = p->at[block];
    const struct rondo_raw_block *b = &p->raw->blocks[block];
    int line = step < b->steps ? p->raw->steps[b->step_first + step].line : b->line;
    if (p->result == RONDO_SUCCESS)
        p->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u, block %u, step %u (line %d): %s", p->name, rank,
                               block - p->raw->ranks[rank].block_first, step, line, what);
}

/* ---- places ---- */

/* MSCCL's in-place forms: an all-gather's input lies in its output, a reduce-scatter's output in its input, at the rank's
 * block. */
static void resolve(const struct rondo_raw *raw, uint32_t rank, uint8_t *buffer, uint32_t *index)
{
    const struct rondo_conditions *c = &raw->conditions;
    if (!raw->in_place || *buffer == RONDO_SCRATCH)
        return;
    if (c->kind == RONDO_KIND_ALLGATHER) {
        if (*buffer == RONDO_INPUT)
            *index += rank * c->pieces;
        *buffer = RONDO_OUTPUT;
    } else if (c->kind == RONDO_KIND_REDUCE_SCATTER) {
        if (*buffer == RONDO_OUTPUT)
            *index += rank * c->pieces;
        *buffer = RONDO_INPUT;
    } else {
        *buffer = RONDO_INPUT;
    }
}

static uint32_t chunks_of(const struct rondo_raw *raw, uint32_t rank, uint8_t buffer)
{
    return buffer == RONDO_SCRATCH ? raw->ranks[rank].chunks[RONDO_SCRATCH]
                                   : rondo_conditions_chunks(&raw->conditions, rank, (enum rondo_buffer) buffer);
}

static struct place *place_at(struct playing *p, uint32_t rank, uint8_t buffer, uint32_t index)
{
    return &p->places[p->place_first[rank * RONDO_BUFFERS + buffer] + index];
}

/* In place the same chunk of the output, if there is one. */
static int twin(const struct rondo_raw *raw, uint32_t rank, uint32_t input, uint32_t *output)
{
    const struct rondo_conditions *c = &raw->conditions;
    *output = input;
    if (!raw->in_place)
        return 0;
    if (c->kind == RONDO_KIND_REDUCE_SCATTER) {
        *output = input - rank * c->pieces;
        return input >= rank * c->pieces && input < (rank + 1) * c->pieces;
    }
    return input < rondo_conditions_chunks(c, rank, RONDO_OUTPUT);
}

static void home(const struct rondo_raw *raw, uint32_t rank, uint8_t *buffer, uint32_t *index, int written)
{
    uint32_t output, own = rank * raw->conditions.pieces;
    if (*buffer == RONDO_INPUT && written) {
        int has = twin(raw, rank, *index, &output);
        *buffer = has ? RONDO_OUTPUT : RONDO_SCRATCH;
        *index = has ? output : raw->ranks[rank].chunks[RONDO_SCRATCH] + *index;
    } else if (*buffer == RONDO_OUTPUT && !written && raw->in_place && *index >= own &&
               *index < own + raw->conditions.pieces) { /* all-gather's own block */
        *buffer = RONDO_INPUT;
        *index -= own;
    }
}

/* The row of chunks as it lies; 0 if it does not lie in a row. */
static int locate(struct playing *p, uint32_t rank, uint8_t buffer, uint32_t index, uint32_t count, int written, uint8_t *in,
                  uint32_t *at)
{
    for (uint32_t k = 0; k < count; k++) {
        uint8_t b = buffer;
        uint32_t i = index + k;
        home(p->raw, rank, &b, &i, written || place_at(p, rank, buffer, index + k)->written);
        if (k == 0) {
            *in = b;
            *at = i;
        } else if (b != *in || i != *at + k) {
            return 0;
        }
    }
    return 1;
}

/* ---- playing ---- */

static struct line *line_of(struct playing *p, uint32_t source, uint32_t destination, int32_t channel)
{
    uint32_t *at = rondo_map_at(&p->map, rondo_connection_key(source, destination, channel));
    if (at == NULL ||
        (*at == RONDO_NONE && !rondo_grow((void **) &p->lines, p->line_count, &p->line_room, sizeof(*p->lines)))) {
        p->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
        return NULL;
    }
    if (*at == RONDO_NONE) {
        *at = (uint32_t) p->line_count;
        p->lines[p->line_count++] = (struct line){NULL, NULL, 0};
    }
    return &p->lines[*at];
}

static int may_run(struct playing *p, uint32_t rank, const struct rondo_raw_block *block, const struct rondo_raw_step *step)
{
    if (step->wait_block >= 0 &&
        p->at[p->raw->ranks[rank].block_first + (uint32_t) step->wait_block] <= (uint32_t) step->wait_step)
        return 0;
    if (step->actions & RONDO_RECEIVE) {
        struct line *line = line_of(p, (uint32_t) block->receive, rank, block->channel);
        if (line == NULL || line->first == NULL)
            return 0;
    }
    if (step->actions & RONDO_SEND) {
        struct line *line = line_of(p, rank, (uint32_t) block->send, block->channel);
        if (line == NULL || line->waiting >= p->options->slots)
            return 0;
    }
    return 1;
}

static int is_complete(const struct playing *p, uint32_t rank, uint8_t buffer, uint32_t index, const struct held *held)
{
    const struct rondo_conditions *c = &p->raw->conditions;
    struct rondo_value want;
    if (c->kind == RONDO_KIND_SCAN || c->kind == RONDO_KIND_EXSCAN)
        return buffer == RONDO_OUTPUT && rondo_wants_at(&p->wants, rank, index, &want) && rondo_value_same(held->value, want);
    return rondo_wants_complete(&p->wants, held->index, held->value);
}

/* What the step makes of its k-th chunk. */
static struct held result_of(struct playing *p, uint32_t block, const struct rondo_raw_step *step, uint32_t k,
                             const struct letter *letter, uint8_t from, uint32_t source, uint8_t to, uint32_t destination)
{
    uint32_t rank = rank_of_block(p, block);
    struct held result = {{{0, 0}, 0, 0}, 0, 0};
    int first = 1;
    if (letter != NULL) {
        result = letter->held[k];
        first = 0;
    }
    for (int operand = 0; operand < 2; operand++) {
        int reads_source = operand == 0 && ((step->actions & RONDO_REDUCE) || letter == NULL);
        int reads_destination = operand == 1 && (step->actions & RONDO_REDUCE) && letter == NULL;
        if (!reads_source && !reads_destination)
            continue;
        const struct held *held = &place_at(p, rank, reads_source ? from : to, (reads_source ? source : destination) + k)->held;
        if (held->value.count == 0)
            fail_at(p, block, "reads an uninitialized chunk");
        if (first) {
            result = *held;
        } else {
            result.value = rondo_value_combine(result.value, held->value);
            result.index = result.index == held->index ? result.index : UINT32_MAX;
        }
        first = 0;
    }
    return result;
}

static void run_step(struct playing *p, uint32_t block)
{
    struct rondo_raw *raw = p->raw;
    const struct rondo_raw_block *b = &raw->blocks[block];
    uint32_t number = b->step_first + p->at[block], rank = rank_of_block(p, block);
    const struct rondo_raw_step *step = &raw->steps[number];
    struct done *done = &p->done[number];
    struct letter *letter = NULL, *sent = NULL;
    uint8_t from = step->source_buffer, to = step->destination_buffer;
    uint32_t source = step->source, destination = step->destination;
    int reads = (step->actions & RONDO_REDUCE) || !(step->actions & RONDO_RECEIVE), complete = 0;
    p->order[p->played] = number;
    done->order = ++p->played;
    if (step->actions == 0) {
        p->at[block]++;
        return;
    }
    if (raw->source_is_destination && (step->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == (RONDO_RECEIVE | RONDO_REDUCE))
        from = to, source = destination;
    resolve(raw, rank, &from, &source);
    resolve(raw, rank, &to, &destination);
    if ((reads && (source >= chunks_of(raw, rank, from) || step->count > chunks_of(raw, rank, from) - source)) ||
        ((step->actions & RONDO_COPY) &&
         (destination >= chunks_of(raw, rank, to) || step->count > chunks_of(raw, rank, to) - destination))) {
        fail_at(p, block, "chunks that do not exist");
        return;
    }
    int in_rows = (!reads || locate(p, rank, from, source, step->count, 0, &done->source_buffer, &done->source)) &&
                  (!(step->actions & RONDO_COPY) ||
                   locate(p, rank, to, destination, step->count, 1, &done->destination_buffer, &done->destination));
    uint8_t old = to;
    uint32_t old_at = destination;
    if ((step->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == RONDO_REDUCE) /* it also reads where it writes */
        in_rows = in_rows && locate(p, rank, to, destination, step->count, 0, &old, &old_at) &&
                  old == done->destination_buffer && old_at == done->destination;
    if (!in_rows) {
        if (raw->ranks[rank].copied)
            fail_at(p, block, "takes chunks at once that do not lie in a row");
        raw->ranks[rank].copied = 1;
        p->again = 1;
        return;
    }
    if (step->actions & RONDO_RECEIVE) {
        struct line *line = line_of(p, (uint32_t) b->receive, rank, b->channel);
        letter = line->first;
        if (letter->count != step->count) {
            fail_at(p, block, "receives another number of chunks than was sent");
            return;
        }
        line->first = letter->next;
        line->waiting--;
        if (line->first == NULL)
            line->last = NULL;
    }
    if ((step->actions & RONDO_SEND) && (sent = malloc(sizeof(*sent) + step->count * sizeof(sent->held[0]))) == NULL)
        p->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
    for (uint32_t k = 0; k < step->count && p->result == RONDO_SUCCESS; k++) {
        struct held held = result_of(p, block, step, k, letter, from, source, to, destination);
        int now = rondo_conditions_reduces(&raw->conditions) && (step->actions & RONDO_REDUCE) &&
                  is_complete(p, rank, to, destination + k, &held);
        if (k > 0 && now != complete)
            fail_at(p, block, "completes some of its chunks and not others");
        complete = now;
        if (step->actions & RONDO_COPY) {
            struct place *place = place_at(p, rank, to, destination + k);
            place->held = held;
            place->written = 1;
            if (to == RONDO_SCRATCH && place->class == RONDO_NONE)
                place->class = held.class;
        }
        if (sent != NULL)
            sent->held[k] = held;
    }
    done->finishes = (uint8_t) complete;
    if (sent != NULL) {
        struct line *line = line_of(p, rank, (uint32_t) b->send, b->channel);
        sent->count = step->count;
        sent->next = NULL;
        if (line->last != NULL)
            line->last->next = sent;
        else
            line->first = sent;
        line->last = sent;
        line->waiting++;
    }
    free(letter);
    p->at[block]++;
}

static void give_input(struct playing *p)
{
    const struct rondo_conditions *c = &p->raw->conditions;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; rondo_conditions_given(c, rank) && i < rondo_conditions_chunks(c, rank, RONDO_INPUT); i++) {
            uint8_t buffer = RONDO_INPUT;
            uint32_t index = i, output;
            resolve(p->raw, rank, &buffer, &index);
            struct place *place = place_at(p, rank, buffer, index);
            place->held.value = rondo_value_input(p->wants.salt, rank, i);
            place->held.index = i;
            place->held.class = rondo_conditions_class(c, rank, RONDO_INPUT, i);
            place->written = p->raw->ranks[rank].copied && (buffer == RONDO_OUTPUT || twin(p->raw, rank, index, &output));
        }
}

static void reset(struct playing *p, size_t places)
{
    for (size_t i = 0; i < places; i++)
        p->places[i] = (struct place){.class = RONDO_NONE};
    for (size_t i = 0; i < p->line_count; i++)
        while (p->lines[i].first != NULL) {
            struct letter *letter = p->lines[i].first;
            p->lines[i].first = letter->next;
            free(letter);
        }
    for (size_t i = 0; i < p->line_count; i++)
        p->lines[i] = (struct line){NULL, NULL, 0};
    memset(p->at, 0, p->raw->block_count * sizeof(*p->at));
    p->played = 0;
    p->again = 0;
    give_input(p);
}

static void play(struct playing *p)
{
    uint64_t looks = 0;
    for (int moved = 1; moved && p->result == RONDO_SUCCESS && !p->again;) {
        moved = 0;
        looks += p->raw->block_count;
        if (looks > LOOKS_MAX) {
            p->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': its blocks wait for each other too often", p->name);
            return;
        }
        for (uint32_t block = 0; block < p->raw->block_count; block++) {
            const struct rondo_raw_block *b = &p->raw->blocks[block];
            uint32_t rank = rank_of_block(p, block);
            while (p->at[block] < b->steps && p->result == RONDO_SUCCESS && !p->again &&
                   may_run(p, rank, b, &p->raw->steps[b->step_first + p->at[block]])) {
                run_step(p, block);
                moved = 1;
            }
        }
    }
    for (uint32_t block = 0; block < p->raw->block_count && p->result == RONDO_SUCCESS && !p->again; block++)
        if (p->at[block] < p->raw->blocks[block].steps)
            fail_at(p, block, "deadlock: it waits for ever");
}

/* ---- plans ---- */

struct writing {
    struct playing *p;
    struct rondo_builder *builder;
    uint32_t rank, blocks; /* blocks: of the plan */
    struct rondo_connection ends[256];
    uint32_t end_count;
    uint8_t *notifies; /* [step] */
};

static uint32_t plan_block(const struct writing *w, uint32_t raw_block)
{
    const struct rondo_raw_rank *rank = &w->p->raw->ranks[w->rank];
    return (uint32_t) ((uint64_t) (raw_block - rank->block_first) * w->blocks / (rank->blocks > 0 ? rank->blocks : 1));
}

static uint32_t block_of_step(const struct playing *p, uint32_t rank, uint32_t step)
{
    uint32_t block = p->raw->ranks[rank].block_first;
    while (step >= p->raw->blocks[block].step_first + p->raw->blocks[block].steps)
        block++;
    return block;
}

static uint32_t end_of(struct writing *w, int32_t peer, int32_t channel, int outgoing)
{
    struct rondo_connection what = {peer, (uint16_t) channel, outgoing ? RONDO_OUTGOING : RONDO_INCOMING,
                                    (uint8_t) w->p->options->protocol};
    for (uint32_t i = 0; i < w->end_count; i++)
        if (memcmp(&w->ends[i], &what, sizeof(what)) == 0)
            return i;
    if (w->end_count == 255)
        return RONDO_NONE;
    w->ends[w->end_count] = what;
    return w->end_count++;
}

/* Visits the real steps that a step waits for: its own wait, those of the empty steps before it, and where it waits for an
 * empty step, the real one before that and what it waited for itself. */
static void visit_waits(struct writing *w, uint32_t rank, uint32_t step, int depth,
                        void (*visit)(struct writing *w, uint32_t waiting, uint32_t on), uint32_t waiting)
{
    struct playing *p = w->p;
    uint32_t block = block_of_step(p, rank, step), first = p->raw->blocks[block].step_first;
    for (uint32_t s = step;; s--) {
        const struct rondo_raw_step *at = &p->raw->steps[s];
        if (s != step && at->actions != 0)
            break;
        if (at->wait_block >= 0) {
            const struct rondo_raw_block *other = &p->raw->blocks[p->raw->ranks[rank].block_first + (uint32_t) at->wait_block];
            uint32_t on = other->step_first + (uint32_t) at->wait_step, real = on;
            while (real > other->step_first && p->raw->steps[real].actions == 0)
                real--;
            if (p->raw->steps[real].actions != 0)
                visit(w, waiting, real);
            if (p->raw->steps[on].actions == 0 && depth < 16)
                visit_waits(w, rank, on, depth + 1, visit, waiting);
        }
        if (s == first)
            break;
    }
}

static void note_wait(struct writing *w, uint32_t waiting, uint32_t on)
{
    if (w->p->done[waiting].block != w->p->done[on].block)
        w->notifies[on] = 1;
}

static void write_wait(struct writing *w, uint32_t waiting, uint32_t on)
{
    if (w->p->done[waiting].block != w->p->done[on].block)
        rondo_builder_depend(w->builder, (int) w->p->done[on].block, (int) w->p->done[on].step);
}

static rondo_result_t write_step(struct writing *w, uint32_t number)
{
    struct playing *p = w->p;
    const struct rondo_raw_step *step = &p->raw->steps[number];
    const struct done *done = &p->done[number];
    const struct rondo_raw_block *block = &p->raw->blocks[block_of_step(p, w->rank, number)];
    struct rondo_instruction instruction = {
        .actions = step->actions,
        .flags = (uint8_t) ((done->finishes ? RONDO_FINISH : 0) | (w->notifies[number] ? RONDO_NOTIFY : 0)),
        .source_buffer = done->source_buffer,
        .destination_buffer = done->destination_buffer,
        .source_index = done->source,
        .destination_index = done->destination,
        .count = (uint16_t) step->count,
        .local_place = 1};
    uint32_t in = 0, out = 0;
    if (step->actions & RONDO_RECEIVE) {
        in = end_of(w, block->receive, block->channel, 0);
        instruction.receive_count = 1;
    }
    if (step->actions & RONDO_SEND) {
        out = end_of(w, block->send, block->channel, 1);
        instruction.send_count = 1;
    }
    if (in == RONDO_NONE || out == RONDO_NONE)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "program '%s', rank %u: more than 255 connections in a block", p->name,
                          w->rank);
    if ((step->actions & RONDO_RECEIVE) && !(step->actions & RONDO_REDUCE))
        instruction.source_buffer = RONDO_INPUT, instruction.source_index = 0;
    if (!(step->actions & RONDO_COPY))
        instruction.destination_buffer = RONDO_OUTPUT, instruction.destination_index = 0;
    instruction.receive_first = (uint8_t) in;
    instruction.send_first = (uint8_t) out;
    rondo_builder_add(w->builder, &instruction);
    visit_waits(w, w->rank, number, 0, write_wait, number);
    return RONDO_SUCCESS;
}

/* The input copied to where it would be written, for ranks that need it; every block begins after it. */
static uint32_t copied_chunks(const struct playing *p, uint32_t rank, uint32_t *destination)
{
    uint32_t output = 0;
    if (!p->raw->ranks[rank].copied)
        return 0;
    *destination = 0;
    if (p->raw->conditions.kind == RONDO_KIND_ALLGATHER) {
        *destination = rank * p->raw->conditions.pieces;
        return p->raw->conditions.pieces;
    }
    if (p->raw->conditions.kind == RONDO_KIND_REDUCE_SCATTER)
        return 0;
    return twin(p->raw, rank, 0, &output) ? rondo_conditions_chunks(&p->raw->conditions, rank, RONDO_OUTPUT) : 0;
}

static rondo_result_t write_rank(struct writing *w, uint32_t rank, uint32_t largest_count, struct rondo_plan **plan)
{
    struct playing *p = w->p;
    const struct rondo_conditions *c = &p->raw->conditions;
    const struct rondo_raw_rank *r = &p->raw->ranks[rank];
    rondo_result_t status = RONDO_SUCCESS;
    uint32_t destination = 0, copied = copied_chunks(p, rank, &destination), counts[RONDO_COMPILE_BLOCKS_MAX] = {0};
    uint32_t copies = copied == 0 ? 0 : (copied + largest_count - 1) / largest_count;
    w->rank = rank;
    w->blocks = r->blocks < p->options->blocks ? r->blocks : p->options->blocks;
    if (w->blocks == 0)
        w->blocks = 1;
    counts[0] = copies;
    for (uint32_t i = p->rank_first[rank]; i < p->rank_first[rank + 1]; i++) {
        uint32_t step = p->order[i];
        if (p->raw->steps[step].actions == 0)
            continue;
        p->done[step].block = plan_block(w, block_of_step(p, rank, step));
        p->done[step].step = counts[p->done[step].block]++;
    }
    for (uint32_t b = 0; b < r->blocks; b++)
        for (uint32_t s = 0; s < p->raw->blocks[r->block_first + b].steps; s++) {
            uint32_t step = p->raw->blocks[r->block_first + b].step_first + s;
            if (p->raw->steps[step].actions != 0)
                visit_waits(w, rank, step, 0, note_wait, step);
        }
    w->builder = rondo_builder_create();
    for (uint32_t b = 0; b < w->blocks && status == RONDO_SUCCESS; b++) {
        uint32_t written = 0;
        rondo_builder_block(w->builder);
        w->end_count = 0;
        for (uint32_t k = 0; k < copies && b == 0; k++) {
            uint32_t done = k * largest_count, left = copied - done;
            struct rondo_instruction copy = {.actions = RONDO_COPY,
                                             .flags = k + 1 == copies && w->blocks > 1 ? RONDO_NOTIFY : 0,
                                             .source_index = done,
                                             .destination_buffer = RONDO_OUTPUT,
                                             .destination_index = destination + done,
                                             .count = (uint16_t) (left < largest_count ? left : largest_count)};
            rondo_builder_add(w->builder, &copy);
        }
        for (uint32_t i = p->rank_first[rank]; i < p->rank_first[rank + 1] && status == RONDO_SUCCESS; i++) {
            uint32_t step = p->order[i];
            if (p->raw->steps[step].actions == 0 || p->done[step].block != b)
                continue;
            status = write_step(w, step);
            if (written++ == 0 && b > 0 && copies > 0)
                rondo_builder_depend(w->builder, 0, (int) copies - 1);
        }
        for (uint32_t e = 0; e < w->end_count; e++)
            rondo_builder_end(w->builder, w->ends[e].peer, w->ends[e].channel, (enum rondo_direction) w->ends[e].direction,
                              (enum rondo_protocol) w->ends[e].protocol);
    }
    uint32_t inputs = rondo_conditions_chunks(c, rank, RONDO_INPUT), scratch = r->chunks[RONDO_SCRATCH];
    uint32_t chunks[RONDO_BUFFERS] = {inputs, rondo_conditions_chunks(c, rank, RONDO_OUTPUT), scratch + inputs};
    uint32_t *classes = calloc((size_t) scratch + inputs + 1, sizeof(*classes));
    rondo_result_t finished = rondo_builder_finish(w->builder, chunks, plan);
    if (finished != RONDO_SUCCESS || status != RONDO_SUCCESS || classes == NULL) {
        if (finished == RONDO_SUCCESS)
            rondo_plan_free(*plan);
        *plan = NULL;
        free(classes);
        return status != RONDO_SUCCESS ? status : rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
    }
    for (uint32_t i = 0; i < scratch + inputs; i++) {
        uint32_t class = i < scratch ? place_at(p, rank, RONDO_SCRATCH, i)->class
                                     : rondo_conditions_class(c, rank, RONDO_INPUT, i - scratch);
        classes[i] = class == RONDO_NONE ? 0 : class;
    }
    (*plan)->scratch_classes = classes;
    (*plan)->pieces = c->pieces;
    (*plan)->program->largest_count = largest_count;
    (*plan)->largest_receive = 1;
    return RONDO_SUCCESS;
}

static rondo_result_t write_plans(struct playing *p, struct rondo_plan_set *set)
{
    struct writing *w = calloc(1, sizeof(*w));
    rondo_result_t status = RONDO_SUCCESS;
    uint32_t largest = 1;
    if (w == NULL || (w->notifies = calloc(p->raw->step_count + 1, 1)) == NULL) {
        free(w);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
    }
    w->p = p;
    for (size_t i = 0; i < p->raw->step_count; i++)
        if (p->raw->steps[i].actions != 0 && p->raw->steps[i].count > largest)
            largest = p->raw->steps[i].count;
    for (uint32_t rank = 0; rank < p->raw->conditions.ranks && status == RONDO_SUCCESS; rank++)
        status = write_rank(w, rank, largest, &set->plans[rank]);
    free(w->notifies);
    free(w);
    return status;
}

/* ---- all of it ---- */

/* Ranks' steps are side by side in the file; so each rank's part of the order can be written from there on. */
static rondo_result_t group_by_rank(struct playing *p)
{
    const struct rondo_raw *raw = p->raw;
    uint32_t *grouped = calloc((size_t) p->played + 1, sizeof(*grouped));
    p->rank_first = calloc((size_t) raw->conditions.ranks + 2, sizeof(*p->rank_first));
    if (grouped == NULL || p->rank_first == NULL) {
        free(grouped);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
    }
    for (uint32_t rank = 0; rank < raw->conditions.ranks; rank++) {
        uint32_t steps = 0;
        for (uint32_t b = 0; b < raw->ranks[rank].blocks; b++)
            steps += raw->blocks[raw->ranks[rank].block_first + b].steps;
        p->rank_first[rank + 2] = p->rank_first[rank + 1] + steps;
    }
    uint32_t *fill = p->rank_first + 1;
    for (uint32_t i = 0, rank = 0; i < p->played; i++) {
        uint32_t low = 0, high = raw->conditions.ranks - 1;
        while (low < high) { /* whose step it is: the last rank whose first step is not behind it */
            uint32_t middle = (low + high + 1) / 2;
            const struct rondo_raw_rank *r = &raw->ranks[middle];
            uint32_t first =
                r->block_first < raw->block_count ? raw->blocks[r->block_first].step_first : (uint32_t) raw->step_count;
            if (first <= p->order[i])
                low = middle;
            else
                high = middle - 1;
        }
        rank = low;
        while (raw->ranks[rank].blocks == 0 ||
               p->order[i] >= raw->blocks[raw->ranks[rank].block_first + raw->ranks[rank].blocks - 1].step_first +
                                  raw->blocks[raw->ranks[rank].block_first + raw->ranks[rank].blocks - 1].steps ||
               p->order[i] < raw->blocks[raw->ranks[rank].block_first].step_first)
            rank--;
        grouped[fill[rank]++] = p->order[i];
    }
    memcpy(p->order, grouped, (size_t) p->played * sizeof(*grouped));
    free(grouped);
    return RONDO_SUCCESS;
}

static rondo_result_t attempt(struct rondo_raw *raw, const char *name, const struct rondo_compile_options *options,
                              struct rondo_plan_set *set)
{
    struct playing p = {.raw = raw, .name = name, .options = options};
    size_t places = 0;
    p.result = rondo_wants_prepare(&p.wants, &raw->conditions, rondo_value_salt());
    p.place_first = calloc((size_t) raw->conditions.ranks * RONDO_BUFFERS + 1, sizeof(size_t));
    p.done = calloc(raw->step_count + 1, sizeof(*p.done));
    p.at = calloc(raw->block_count + 1, sizeof(*p.at));
    p.order = calloc(raw->step_count + 1, sizeof(*p.order));
    for (uint32_t i = 0; p.place_first != NULL && i < raw->conditions.ranks * RONDO_BUFFERS; i++) {
        p.place_first[i] = places;
        places += chunks_of(raw, i / RONDO_BUFFERS, (uint8_t) (i % RONDO_BUFFERS));
    }
    p.places = malloc((places + 1) * sizeof(*p.places));
    if (p.result == RONDO_SUCCESS &&
        (p.place_first == NULL || p.done == NULL || p.at == NULL || p.order == NULL || p.places == NULL))
        p.result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", name);
    if (p.result == RONDO_SUCCESS) {
        do { /* at most once more for each rank */
            reset(&p, places);
            play(&p);
        } while (p.again && p.result == RONDO_SUCCESS);
    }
    if (p.result == RONDO_SUCCESS)
        p.result = group_by_rank(&p);
    if (p.result == RONDO_SUCCESS)
        p.result = write_plans(&p, set);
    for (size_t i = 0; i < p.line_count; i++)
        while (p.lines[i].first != NULL) {
            struct letter *letter = p.lines[i].first;
            p.lines[i].first = letter->next;
            free(letter);
        }
    rondo_wants_release(&p.wants);
    rondo_map_release(&p.map);
    free(p.lines);
    free(p.places);
    free(p.place_first);
    free(p.done);
    free(p.at);
    free(p.order);
    free(p.rank_first);
    return p.result;
}

static rondo_result_t make_set(const struct rondo_raw *raw, struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = calloc(1, sizeof(*set));
    if (set != NULL) {
        set->conditions = raw->conditions;
        set->plans = calloc(raw->conditions.ranks, sizeof(struct rondo_plan *));
    }
    *result = set;
    return set == NULL || set->plans == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory for %u ranks", raw->conditions.ranks)
                                             : RONDO_SUCCESS;
}

/* Programs have been seen in both readings of what a reduction's source means; the first that the checker accepts is taken. Of
 * chunks of any length rather than of equally long ones, if it may be. */
rondo_result_t rondo_raw_compile(const struct rondo_raw *given, const char *name, const struct rondo_compile_options *options,
                                 struct rondo_plan_set **result)
{
    struct rondo_plan_set *set = NULL;
    struct rondo_raw copy = *given, *raw = &copy; /* its notes on ranks are this call's own */
    struct rondo_check_limits limits = {options->slots, RONDO_COMPILE_BLOCKS_MAX, 0};
    rondo_result_t status = RONDO_SUCCESS;
    char message[512] = "";
    raw->ranks = malloc(raw->conditions.ranks * sizeof(*raw->ranks));
    if (raw->ranks == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", name);
    memcpy(raw->ranks, given->ranks, raw->conditions.ranks * sizeof(*raw->ranks));
    for (int reading = 0; reading < 2; reading++) {
        raw->source_is_destination = reading;
        for (uint32_t rank = 0; rank < raw->conditions.ranks; rank++)
            raw->ranks[rank].copied = 0;
        status = make_set(raw, &set);
        if (status == RONDO_SUCCESS)
            status = attempt(raw, name, options, set);
        for (int even = 0; even < 2 && status == RONDO_SUCCESS; even++) {
            set->even = even;
            for (uint32_t rank = 0; rank < raw->conditions.ranks; rank++)
                set->plans[rank]->even = even;
            if (rondo_check_plans(set, name, &limits, rondo_conditions_always_shared(&raw->conditions)) == RONDO_SUCCESS) {
                *result = set;
                free(raw->ranks);
                return RONDO_SUCCESS;
            }
        }
        if (reading == 0)
            strncpy(message, rondo_last_error(), sizeof(message) - 1);
        rondo_plan_set_free(set);
        set = NULL;
    }
    free(raw->ranks);
    return rondo_fail(RONDO_ERR_ARGUMENT, "%s", message);
}
