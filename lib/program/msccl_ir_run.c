/*
 * Playing a program out of a file: its steps run in some order that the slots allow, which tells what every chunk holds, and so
 * where each lies: as in lib/program/lower.c, an input chunk that is written to moves to the output or to scratch, and the
 * instruction whose result is complete applies the operator's last step.
 */
#include "lib/program/msccl_ir_run.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS_MAX ((uint64_t) 1 << 30)

static uint32_t rank_of_block(const struct rondo_msccl_ir_execution *p, uint32_t block)
{
    uint32_t low = 0, high = p->ir->conditions.ranks - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (p->ir->ranks[middle].block_first <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void fail_at(struct rondo_msccl_ir_execution *p, uint32_t block, const char *what)
{
    uint32_t rank = rank_of_block(p, block), step = p->at[block];
    const struct rondo_msccl_ir_block *b = &p->ir->blocks[block];
    int line = step < b->steps ? p->ir->steps[b->step_first + step].line : b->line;
    if (p->result == RONDO_SUCCESS)
        p->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u, block %u, step %u (line %d): %s", p->name, rank,
                               block - p->ir->ranks[rank].block_first, step, line, what);
}

/* ---- places ---- */

/* MSCCL's in-place forms: an all-gather's input lies in its output, a reduce-scatter's output in its input, at the rank's
 * block. */
static void resolve(const struct rondo_msccl_ir *ir, uint32_t rank, uint8_t *buffer, uint32_t *index)
{
    const struct rondo_conditions *c = &ir->conditions;
    if (!ir->in_place || *buffer == RONDO_SCRATCH)
        return;
    if (c->kind == RONDO_KIND_ALLGATHER) {
        if (*buffer == RONDO_INPUT)
            *index += rank * c->pieces;
        *buffer = RONDO_OUTPUT;
    } else if (c->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        if (*buffer == RONDO_OUTPUT)
            *index += rank * c->pieces;
        *buffer = RONDO_INPUT;
    } else {
        *buffer = RONDO_INPUT;
    }
}

static uint32_t chunks_of(const struct rondo_msccl_ir *ir, uint32_t rank, uint8_t buffer)
{
    return buffer == RONDO_SCRATCH ? ir->ranks[rank].chunks[RONDO_SCRATCH]
                                   : rondo_conditions_chunks(&ir->conditions, rank, (enum rondo_buffer) buffer);
}

struct rondo_msccl_ir_place *rondo_msccl_ir_place_at(struct rondo_msccl_ir_execution *p, uint32_t rank, uint8_t buffer,
                                                     uint32_t index)
{
    return &p->places[p->place_first[rank * RONDO_BUFFERS + buffer] + index];
}

int rondo_msccl_ir_twin(const struct rondo_msccl_ir *ir, uint32_t rank, uint32_t input, uint32_t *output)
{
    const struct rondo_conditions *c = &ir->conditions;
    *output = input;
    if (!ir->in_place)
        return 0;
    if (c->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        *output = input - rank * c->pieces;
        return input >= rank * c->pieces && input < (rank + 1) * c->pieces;
    }
    return input < rondo_conditions_chunks(c, rank, RONDO_OUTPUT);
}

static void home(const struct rondo_msccl_ir *ir, uint32_t rank, uint8_t *buffer, uint32_t *index, int written)
{
    uint32_t output, own = rank * ir->conditions.pieces;
    if (*buffer == RONDO_INPUT && written) {
        int has = rondo_msccl_ir_twin(ir, rank, *index, &output);
        *buffer = has ? RONDO_OUTPUT : RONDO_SCRATCH;
        *index = has ? output : ir->ranks[rank].chunks[RONDO_SCRATCH] + *index;
    } else if (*buffer == RONDO_OUTPUT && !written && ir->in_place && *index >= own &&
               *index < own + ir->conditions.pieces) { /* all-gather's own block */
        *buffer = RONDO_INPUT;
        *index -= own;
    }
}

/* The row of chunks as it lies; 0 if it does not lie in a row. */
static int locate(struct rondo_msccl_ir_execution *p, uint32_t rank, uint8_t buffer, uint32_t index, uint32_t count,
                  int written, uint8_t *in, uint32_t *at)
{
    for (uint32_t k = 0; k < count; k++) {
        uint8_t b = buffer;
        uint32_t i = index + k;
        home(p->ir, rank, &b, &i, written || rondo_msccl_ir_place_at(p, rank, buffer, index + k)->written);
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

static struct rondo_msccl_ir_line *line_of(struct rondo_msccl_ir_execution *p, uint32_t source, uint32_t destination,
                                           int32_t channel)
{
    uint32_t *at = rondo_map_at(&p->map, rondo_connection_key(source, destination, channel));
    if (at == NULL ||
        (*at == RONDO_NONE && !rondo_grow((void **) &p->lines, p->line_count, &p->line_room, sizeof(*p->lines)))) {
        p->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
        return NULL;
    }
    if (*at == RONDO_NONE) {
        *at = (uint32_t) p->line_count;
        p->lines[p->line_count++] = (struct rondo_msccl_ir_line){NULL, NULL, 0};
    }
    return &p->lines[*at];
}

static int may_run(struct rondo_msccl_ir_execution *p, uint32_t rank, const struct rondo_msccl_ir_block *block,
                   const struct rondo_msccl_ir_step *step)
{
    if (step->wait_block >= 0 &&
        p->at[p->ir->ranks[rank].block_first + (uint32_t) step->wait_block] <= (uint32_t) step->wait_step)
        return 0;
    if (step->actions & RONDO_RECEIVE) {
        struct rondo_msccl_ir_line *line = line_of(p, (uint32_t) block->receive, rank, block->channel);
        if (line == NULL || line->first == NULL)
            return 0;
    }
    if (step->actions & RONDO_SEND) {
        struct rondo_msccl_ir_line *line = line_of(p, rank, (uint32_t) block->send, block->channel);
        if (line == NULL || line->waiting >= p->options->slots)
            return 0;
    }
    return 1;
}

static int is_complete(const struct rondo_msccl_ir_execution *p, uint32_t rank, uint8_t buffer, uint32_t index,
                       const struct rondo_msccl_ir_held *held)
{
    const struct rondo_conditions *c = &p->ir->conditions;
    struct rondo_value want;
    if (c->kind == RONDO_KIND_SCAN || c->kind == RONDO_KIND_EXSCAN)
        return buffer == RONDO_OUTPUT && rondo_wants_at(&p->wants, rank, index, &want) && rondo_value_same(held->value, want);
    return rondo_wants_complete(&p->wants, held->index, held->value);
}

/* What the step makes of its k-th chunk. */
static struct rondo_msccl_ir_held result_of(struct rondo_msccl_ir_execution *p, uint32_t block,
                                            const struct rondo_msccl_ir_step *step, uint32_t k,
                                            const struct rondo_msccl_ir_message *letter, uint8_t from, uint32_t source,
                                            uint8_t to, uint32_t destination)
{
    uint32_t rank = rank_of_block(p, block);
    struct rondo_msccl_ir_held result = {{{0, 0}, 0, 0}, 0, 0};
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
        const struct rondo_msccl_ir_held *held =
            &rondo_msccl_ir_place_at(p, rank, reads_source ? from : to, (reads_source ? source : destination) + k)->held;
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

static void run_step(struct rondo_msccl_ir_execution *p, uint32_t block)
{
    struct rondo_msccl_ir *ir = p->ir;
    const struct rondo_msccl_ir_block *b = &ir->blocks[block];
    uint32_t number = b->step_first + p->at[block], rank = rank_of_block(p, block);
    const struct rondo_msccl_ir_step *step = &ir->steps[number];
    struct rondo_msccl_ir_done *done = &p->done[number];
    struct rondo_msccl_ir_message *letter = NULL, *sent = NULL;
    uint8_t from = step->source_buffer, to = step->destination_buffer;
    uint32_t source = step->source, destination = step->destination;
    int reads = (step->actions & RONDO_REDUCE) || !(step->actions & RONDO_RECEIVE), complete = 0;
    p->order[p->played] = number;
    done->order = ++p->played;
    if (step->actions == 0) {
        p->at[block]++;
        return;
    }
    if (ir->source_is_destination && (step->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == (RONDO_RECEIVE | RONDO_REDUCE))
        from = to, source = destination;
    resolve(ir, rank, &from, &source);
    resolve(ir, rank, &to, &destination);
    if ((reads && (source >= chunks_of(ir, rank, from) || step->count > chunks_of(ir, rank, from) - source)) ||
        ((step->actions & RONDO_COPY) &&
         (destination >= chunks_of(ir, rank, to) || step->count > chunks_of(ir, rank, to) - destination))) {
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
        if (ir->ranks[rank].copied)
            fail_at(p, block, "takes chunks at once that do not lie in a row");
        ir->ranks[rank].copied = 1;
        p->again = 1;
        return;
    }
    if (step->actions & RONDO_RECEIVE) {
        struct rondo_msccl_ir_line *line = line_of(p, (uint32_t) b->receive, rank, b->channel);
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
        struct rondo_msccl_ir_held held = result_of(p, block, step, k, letter, from, source, to, destination);
        int now = rondo_conditions_reduces(&ir->conditions) && (step->actions & RONDO_REDUCE) &&
                  is_complete(p, rank, to, destination + k, &held);
        if (k > 0 && now != complete)
            fail_at(p, block, "completes some of its chunks and not others");
        complete = now;
        if (step->actions & RONDO_COPY) {
            struct rondo_msccl_ir_place *place = rondo_msccl_ir_place_at(p, rank, to, destination + k);
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
        struct rondo_msccl_ir_line *line = line_of(p, rank, (uint32_t) b->send, b->channel);
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

static void give_input(struct rondo_msccl_ir_execution *p)
{
    const struct rondo_conditions *c = &p->ir->conditions;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; rondo_conditions_given(c, rank) && i < rondo_conditions_chunks(c, rank, RONDO_INPUT); i++) {
            uint8_t buffer = RONDO_INPUT;
            uint32_t index = i, output;
            resolve(p->ir, rank, &buffer, &index);
            struct rondo_msccl_ir_place *place = rondo_msccl_ir_place_at(p, rank, buffer, index);
            place->held.value = rondo_value_input(p->wants.salt, rank, i);
            place->held.index = i;
            place->held.class = rondo_conditions_class(c, rank, RONDO_INPUT, i);
            place->written =
                p->ir->ranks[rank].copied && (buffer == RONDO_OUTPUT || rondo_msccl_ir_twin(p->ir, rank, index, &output));
        }
}

static void drop_letters(struct rondo_msccl_ir_execution *p)
{
    for (size_t i = 0; i < p->line_count; i++) {
        while (p->lines[i].first != NULL) {
            struct rondo_msccl_ir_message *letter = p->lines[i].first;
            p->lines[i].first = letter->next;
            free(letter);
        }
        p->lines[i] = (struct rondo_msccl_ir_line){NULL, NULL, 0};
    }
}

static void reset(struct rondo_msccl_ir_execution *p, size_t places)
{
    for (size_t i = 0; i < places; i++)
        p->places[i] = (struct rondo_msccl_ir_place){.class = RONDO_NONE};
    drop_letters(p);
    memset(p->at, 0, p->ir->block_count * sizeof(*p->at));
    p->played = 0;
    p->again = 0;
    give_input(p);
}

static void play_once(struct rondo_msccl_ir_execution *p)
{
    uint64_t looks = 0;
    for (int moved = 1; moved && p->result == RONDO_SUCCESS && !p->again;) {
        moved = 0;
        looks += p->ir->block_count;
        if (looks > LOOKS_MAX) {
            p->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': its blocks wait for each other too often", p->name);
            return;
        }
        for (uint32_t block = 0; block < p->ir->block_count; block++) {
            const struct rondo_msccl_ir_block *b = &p->ir->blocks[block];
            uint32_t rank = rank_of_block(p, block);
            while (p->at[block] < b->steps && p->result == RONDO_SUCCESS && !p->again &&
                   may_run(p, rank, b, &p->ir->steps[b->step_first + p->at[block]])) {
                run_step(p, block);
                moved = 1;
            }
        }
    }
    for (uint32_t block = 0; block < p->ir->block_count && p->result == RONDO_SUCCESS && !p->again; block++)
        if (p->at[block] < p->ir->blocks[block].steps)
            fail_at(p, block, "deadlock: it waits for ever");
}

/* In place, a chunk of the output that no step writes is there already (an all-gather's own block); with two buffers it has to
 * be copied. */
static void copy_unwritten(struct rondo_msccl_ir_execution *p)
{
    const struct rondo_conditions *c = &p->ir->conditions;
    struct rondo_value want;
    if (!p->ir->in_place || p->again || p->result != RONDO_SUCCESS || rondo_conditions_always_shared(c))
        return;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(c, rank, RONDO_OUTPUT) && !p->ir->ranks[rank].copied; i++) {
            uint8_t buffer = RONDO_OUTPUT;
            uint32_t index = i;
            resolve(p->ir, rank, &buffer, &index);
            if (!rondo_wants_at(&p->wants, rank, i, &want) || index >= chunks_of(p->ir, rank, buffer) ||
                rondo_msccl_ir_place_at(p, rank, buffer, index)->written)
                continue;
            p->ir->ranks[rank].copied = (uint8_t) rondo_conditions_may_share(c);
            p->again |= p->ir->ranks[rank].copied;
        }
}

rondo_result_t rondo_msccl_ir_execute(struct rondo_msccl_ir_execution *p)
{
    const struct rondo_msccl_ir *ir = p->ir;
    size_t places = 0;
    p->result = rondo_wants_prepare(&p->wants, &ir->conditions, rondo_value_salt());
    p->place_first = calloc((size_t) ir->conditions.ranks * RONDO_BUFFERS + 1, sizeof(size_t));
    p->done = calloc(ir->step_count + 1, sizeof(*p->done));
    p->at = calloc(ir->block_count + 1, sizeof(*p->at));
    p->order = calloc(ir->step_count + 1, sizeof(*p->order));
    for (uint32_t i = 0; p->place_first != NULL && i < ir->conditions.ranks * RONDO_BUFFERS; i++) {
        p->place_first[i] = places;
        places += chunks_of(ir, i / RONDO_BUFFERS, (uint8_t) (i % RONDO_BUFFERS));
    }
    p->places = malloc((places + 1) * sizeof(*p->places));
    if (p->result == RONDO_SUCCESS &&
        (p->place_first == NULL || p->done == NULL || p->at == NULL || p->order == NULL || p->places == NULL))
        p->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", p->name);
    if (p->result == RONDO_SUCCESS) {
        do { /* at most once more for each rank */
            reset(p, places);
            play_once(p);
            copy_unwritten(p);
        } while (p->again && p->result == RONDO_SUCCESS);
    }
    return p->result;
}

void rondo_msccl_ir_execute_release(struct rondo_msccl_ir_execution *p)
{
    drop_letters(p);
    rondo_wants_release(&p->wants);
    rondo_map_release(&p->map);
    free(p->lines);
    free(p->places);
    free(p->place_first);
    free(p->done);
    free(p->at);
    free(p->order);
    free(p->rank_first);
}
