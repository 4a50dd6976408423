/*
 * Executes a program out of a file: its steps run in some order that the slots allow, which tells what every chunk holds, and
 * so where each lies. As in lib/program/lower.c, an input chunk that is written to moves to the output or to scratch, and the
 * instruction whose result is complete applies the operator's last step. Relies on lib/program/msccl_read.c for numbers in
 * range.
 */
#include "lib/program/msccl_ir_run.h"

#include "lib/base/error.h"
#include "lib/program/graph.h"

#include <stdlib.h>
#include <string.h>

#define VISITS_MAX ((uint64_t) 1 << 30) /* of blocks, in all rounds: bounds the time that a hostile file can take */

static uint32_t rank_of_block(const struct rondo_msccl_ir_execution *e, uint32_t block)
{
    uint32_t low = 0, high = e->ir->conditions.ranks - 1;
    while (low < high) {
        uint32_t middle = (low + high + 1) / 2;
        if (e->ir->ranks[middle].block_first <= block)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Keeps the first error; the message names the block's next step. */
static void fail_at(struct rondo_msccl_ir_execution *e, uint32_t block, const char *what)
{
    uint32_t rank = rank_of_block(e, block), step = e->at[block];
    const struct rondo_msccl_ir_block *b = &e->ir->blocks[block];
    int line = step < b->steps ? e->ir->steps[b->step_first + step].line : b->line;
    if (e->result == RONDO_SUCCESS)
        e->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u, block %u, step %u (line %d): %s", e->name, rank,
                               block - e->ir->ranks[rank].block_first, step, line, what);
}

/* ---- places ---- */

/* MSCCL's in-place forms: an all-gather's input lies in its output, a reduce-scatter's output in its input, at the rank's
 * block. */
static void resolve(const struct rondo_msccl_ir *ir, uint32_t rank, struct rondo_msccl_ir_chunk *chunk)
{
    const struct rondo_conditions *c = &ir->conditions;
    if (!ir->in_place || chunk->buffer == RONDO_SCRATCH)
        return;
    if (c->kind == RONDO_KIND_ALLGATHER) {
        if (chunk->buffer == RONDO_INPUT)
            chunk->index += rank * c->block_chunks;
        chunk->buffer = RONDO_OUTPUT;
    } else if (c->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        if (chunk->buffer == RONDO_OUTPUT)
            chunk->index += rank * c->block_chunks;
        chunk->buffer = RONDO_INPUT;
    } else {
        chunk->buffer = RONDO_INPUT;
    }
}

static uint32_t chunks_of(const struct rondo_msccl_ir *ir, uint32_t rank, uint8_t buffer)
{
    return buffer == RONDO_SCRATCH ? ir->ranks[rank].chunks[RONDO_SCRATCH]
                                   : rondo_conditions_chunks(&ir->conditions, rank, (enum rondo_buffer) buffer);
}

static int exist(const struct rondo_msccl_ir *ir, uint32_t rank, struct rondo_msccl_ir_chunk first, uint32_t count)
{
    uint32_t chunks = chunks_of(ir, rank, first.buffer);
    return first.index < chunks && count <= chunks - first.index;
}

struct rondo_msccl_ir_place *rondo_msccl_ir_place_at(struct rondo_msccl_ir_execution *e, uint32_t rank,
                                                     struct rondo_msccl_ir_chunk chunk)
{
    return &e->places[e->place_first[rank * RONDO_BUFFERS + chunk.buffer] + chunk.index];
}

static struct rondo_msccl_ir_chunk chunk_after(struct rondo_msccl_ir_chunk first, uint32_t k)
{
    first.index += k;
    return first;
}

int rondo_msccl_ir_twin(const struct rondo_msccl_ir *ir, uint32_t rank, uint32_t input, uint32_t *output)
{
    const struct rondo_conditions *c = &ir->conditions;
    *output = input;
    if (!ir->in_place)
        return 0;
    if (c->kind == RONDO_KIND_REDUCE_SCATTER_BLOCK) {
        *output = input - rank * c->block_chunks;
        return input >= rank * c->block_chunks && input < (rank + 1) * c->block_chunks;
    }
    return input < rondo_conditions_chunks(c, rank, RONDO_OUTPUT);
}

/* Where the chunk lies in the plan's buffers. written: a step has written it, or does. */
static struct rondo_msccl_ir_chunk home(const struct rondo_msccl_ir *ir, uint32_t rank, struct rondo_msccl_ir_chunk chunk,
                                        int written)
{
    uint32_t output, own = rank * ir->conditions.block_chunks;
    if (chunk.buffer == RONDO_INPUT && written) {
        int has = rondo_msccl_ir_twin(ir, rank, chunk.index, &output);
        chunk.buffer = has ? RONDO_OUTPUT : RONDO_SCRATCH;
        chunk.index = has ? output : ir->ranks[rank].chunks[RONDO_SCRATCH] + chunk.index;
    } else if (chunk.buffer == RONDO_OUTPUT && !written && ir->in_place && chunk.index >= own &&
               chunk.index < own + ir->conditions.block_chunks) { /* all-gather's own block */
        chunk.buffer = RONDO_INPUT;
        chunk.index -= own;
    }
    return chunk;
}

/* Writes where the first of count chunks lies in the plan's buffers. written: the step writes them. Returns 0 if the chunks do
 * not lie one after the other there. */
static int locate(struct rondo_msccl_ir_execution *e, uint32_t rank, struct rondo_msccl_ir_chunk first, uint32_t count,
                  int written, struct rondo_msccl_ir_chunk *at)
{
    for (uint32_t k = 0; k < count; k++) {
        struct rondo_msccl_ir_chunk chunk = chunk_after(first, k);
        chunk = home(e->ir, rank, chunk, written || rondo_msccl_ir_place_at(e, rank, chunk)->written);
        if (k == 0)
            *at = chunk;
        else if (chunk.buffer != at->buffer || chunk.index != at->index + k)
            return 0;
    }
    return 1;
}

/* ---- executing ---- */

static struct rondo_msccl_ir_queue *queue_of(struct rondo_msccl_ir_execution *e, uint32_t source, uint32_t destination,
                                             int32_t channel)
{
    uint32_t *at = rondo_map_at(&e->map, rondo_connection_key(source, destination, channel));
    if (at == NULL ||
        (*at == RONDO_NONE && !rondo_grow((void **) &e->queues, e->queue_count, &e->queue_room, sizeof(*e->queues)))) {
        e->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", e->name);
        return NULL;
    }
    if (*at == RONDO_NONE) {
        *at = (uint32_t) e->queue_count;
        e->queues[e->queue_count++] = (struct rondo_msccl_ir_queue){NULL, NULL, 0};
    }
    return &e->queues[*at];
}

static int may_run(struct rondo_msccl_ir_execution *e, uint32_t rank, const struct rondo_msccl_ir_block *block,
                   const struct rondo_msccl_ir_step *step)
{
    if (step->wait_block >= 0 &&
        e->at[e->ir->ranks[rank].block_first + (uint32_t) step->wait_block] <= (uint32_t) step->wait_step)
        return 0;
    if (step->actions & RONDO_RECEIVE) {
        struct rondo_msccl_ir_queue *queue = queue_of(e, (uint32_t) block->receive, rank, block->channel);
        if (queue == NULL || queue->first == NULL)
            return 0;
    }
    if (step->actions & RONDO_SEND) {
        struct rondo_msccl_ir_queue *queue = queue_of(e, rank, (uint32_t) block->send, block->channel);
        if (queue == NULL || queue->waiting >= e->options->slots)
            return 0;
    }
    return 1;
}

static int is_complete(const struct rondo_msccl_ir_execution *e, uint32_t rank, struct rondo_msccl_ir_chunk chunk,
                       const struct rondo_msccl_ir_content *content)
{
    const struct rondo_conditions *c = &e->ir->conditions;
    struct rondo_value want;
    if (c->kind == RONDO_KIND_SCAN || c->kind == RONDO_KIND_EXSCAN)
        return chunk.buffer == RONDO_OUTPUT && rondo_wants_at(&e->wants, rank, chunk.index, &want) &&
               rondo_value_same(content->value, want);
    return rondo_wants_complete(&e->wants, content->index, content->value);
}

/* What the block's next step makes of its k-th chunk. message: what it receives; NULL: nothing. from, to: the first chunk that
 * it reads and writes. */
static struct rondo_msccl_ir_content result_of(struct rondo_msccl_ir_execution *e, uint32_t block, uint32_t k,
                                               const struct rondo_msccl_ir_message *message, struct rondo_msccl_ir_chunk from,
                                               struct rondo_msccl_ir_chunk to)
{
    const struct rondo_msccl_ir_step *step = &e->ir->steps[e->ir->blocks[block].step_first + e->at[block]];
    uint32_t rank = rank_of_block(e, block);
    struct rondo_msccl_ir_content result = {.value = {.count = 0}};
    int first = 1;
    if (message != NULL) {
        result = message->contents[k];
        first = 0;
    }
    for (int operand = 0; operand < 2; operand++) {
        int reads_source = operand == 0 && ((step->actions & RONDO_REDUCE) || message == NULL);
        int reads_destination = operand == 1 && (step->actions & RONDO_REDUCE) && message == NULL;
        if (!reads_source && !reads_destination)
            continue;
        const struct rondo_msccl_ir_content *content =
            &rondo_msccl_ir_place_at(e, rank, chunk_after(reads_source ? from : to, k))->content;
        if (content->value.count == 0)
            fail_at(e, block, "reads an uninitialized chunk");
        if (first) {
            result = *content;
        } else {
            result.value = rondo_value_combine(result.value, content->value);
            result.index = result.index == content->index ? result.index : UINT32_MAX;
        }
        first = 0;
    }
    return result;
}

static void add_message(struct rondo_msccl_ir_queue *queue, struct rondo_msccl_ir_message *message)
{
    message->next = NULL;
    if (queue->last != NULL)
        queue->last->next = message;
    else
        queue->first = message;
    queue->last = message;
    queue->waiting++;
}

static struct rondo_msccl_ir_message *take_message(struct rondo_msccl_ir_queue *queue)
{
    struct rondo_msccl_ir_message *message = queue->first;
    queue->first = message->next;
    queue->waiting--;
    if (queue->first == NULL)
        queue->last = NULL;
    return message;
}

/* Executes the block's next step, which may run. */
static void run_step(struct rondo_msccl_ir_execution *e, uint32_t block)
{
    struct rondo_msccl_ir *ir = e->ir;
    const struct rondo_msccl_ir_block *b = &ir->blocks[block];
    uint32_t number = b->step_first + e->at[block], rank = rank_of_block(e, block);
    const struct rondo_msccl_ir_step *step = &ir->steps[number];
    struct rondo_msccl_ir_done *done = &e->done[number];
    struct rondo_msccl_ir_message *received = NULL, *sent = NULL;
    struct rondo_msccl_ir_chunk from = {step->source_buffer, step->source}, to = {step->destination_buffer, step->destination};
    int reads = (step->actions & RONDO_REDUCE) || !(step->actions & RONDO_RECEIVE), complete = 0;
    e->order[e->executed] = number;
    done->order = ++e->executed;
    if (step->actions == 0) {
        e->at[block]++;
        return;
    }
    if (ir->source_is_destination && (step->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == (RONDO_RECEIVE | RONDO_REDUCE))
        from = to;
    resolve(ir, rank, &from);
    resolve(ir, rank, &to);
    if ((reads && !exist(ir, rank, from, step->count)) || ((step->actions & RONDO_COPY) && !exist(ir, rank, to, step->count))) {
        fail_at(e, block, "chunks that do not exist");
        return;
    }
    int in_rows = (!reads || locate(e, rank, from, step->count, 0, &done->source)) &&
                  (!(step->actions & RONDO_COPY) || locate(e, rank, to, step->count, 1, &done->destination));
    struct rondo_msccl_ir_chunk old = to;
    if ((step->actions & (RONDO_RECEIVE | RONDO_REDUCE)) == RONDO_REDUCE) /* it also reads where it writes */
        in_rows = in_rows && locate(e, rank, to, step->count, 0, &old) && old.buffer == done->destination.buffer &&
                  old.index == done->destination.index;
    if (!in_rows) {
        if (ir->ranks[rank].copied)
            fail_at(e, block, "takes chunks at once that do not lie in a row");
        ir->ranks[rank].copied = 1;
        e->again = 1;
        return;
    }
    if (step->actions & RONDO_RECEIVE) {
        struct rondo_msccl_ir_queue *queue = queue_of(e, (uint32_t) b->receive, rank, b->channel);
        if (queue->first->count != step->count) {
            fail_at(e, block, "receives another number of chunks than was sent");
            return;
        }
        received = take_message(queue);
    }
    if ((step->actions & RONDO_SEND) && (sent = malloc(sizeof(*sent) + step->count * sizeof(sent->contents[0]))) == NULL)
        e->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", e->name);
    for (uint32_t k = 0; k < step->count && e->result == RONDO_SUCCESS; k++) {
        struct rondo_msccl_ir_content content = result_of(e, block, k, received, from, to);
        int now = rondo_conditions_reduces(&ir->conditions) && (step->actions & RONDO_REDUCE) &&
                  is_complete(e, rank, chunk_after(to, k), &content);
        if (k > 0 && now != complete)
            fail_at(e, block, "completes some of its chunks and not others");
        complete = now;
        if (step->actions & RONDO_COPY) {
            struct rondo_msccl_ir_place *place = rondo_msccl_ir_place_at(e, rank, chunk_after(to, k));
            place->content = content;
            place->written = 1;
            if (to.buffer == RONDO_SCRATCH && place->class == RONDO_NONE)
                place->class = content.class;
        }
        if (sent != NULL)
            sent->contents[k] = content;
    }
    done->finishes = (uint8_t) complete;
    if (sent != NULL) {
        sent->count = step->count;
        add_message(queue_of(e, rank, (uint32_t) b->send, b->channel), sent);
    }
    free(received);
    e->at[block]++;
}

static void give_input(struct rondo_msccl_ir_execution *e)
{
    const struct rondo_conditions *c = &e->ir->conditions;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; rondo_conditions_given(c, rank) && i < rondo_conditions_chunks(c, rank, RONDO_INPUT); i++) {
            struct rondo_msccl_ir_chunk chunk = {RONDO_INPUT, i};
            uint32_t output;
            resolve(e->ir, rank, &chunk);
            struct rondo_msccl_ir_place *place = rondo_msccl_ir_place_at(e, rank, chunk);
            place->content.value = rondo_wants_input(&e->wants, rank, i);
            place->content.index = i;
            place->content.class = rondo_conditions_class(c, rank, RONDO_INPUT, i);
            place->written = e->ir->ranks[rank].copied &&
                             (chunk.buffer == RONDO_OUTPUT || rondo_msccl_ir_twin(e->ir, rank, chunk.index, &output));
        }
}

static void drop_messages(struct rondo_msccl_ir_execution *e)
{
    for (size_t i = 0; i < e->queue_count; i++)
        while (e->queues[i].first != NULL)
            free(take_message(&e->queues[i]));
}

static void reset(struct rondo_msccl_ir_execution *e, size_t places)
{
    for (size_t i = 0; i < places; i++)
        e->places[i] = (struct rondo_msccl_ir_place){.class = RONDO_NONE};
    drop_messages(e);
    memset(e->at, 0, e->ir->block_count * sizeof(*e->at));
    e->executed = 0;
    e->again = 0;
    give_input(e);
}

/* Rounds over all blocks, each as far as it can go, until a round moves nothing. */
static void execute_once(struct rondo_msccl_ir_execution *e)
{
    uint64_t visits = 0;
    for (int moved = 1; moved && e->result == RONDO_SUCCESS && !e->again;) {
        moved = 0;
        visits += e->ir->block_count;
        if (visits > VISITS_MAX) {
            e->result = rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': its blocks wait for each other too often", e->name);
            return;
        }
        for (uint32_t block = 0; block < e->ir->block_count; block++) {
            const struct rondo_msccl_ir_block *b = &e->ir->blocks[block];
            uint32_t rank = rank_of_block(e, block);
            while (e->at[block] < b->steps && e->result == RONDO_SUCCESS && !e->again &&
                   may_run(e, rank, b, &e->ir->steps[b->step_first + e->at[block]])) {
                run_step(e, block);
                moved = 1;
            }
        }
    }
    for (uint32_t block = 0; block < e->ir->block_count && e->result == RONDO_SUCCESS && !e->again; block++)
        if (e->at[block] < e->ir->blocks[block].steps)
            fail_at(e, block, "deadlock: it waits for ever");
}

/* In place, a chunk of the output that no step writes is there already (an all-gather's own block); with two buffers it has to
 * be copied. */
static void copy_unwritten(struct rondo_msccl_ir_execution *e)
{
    const struct rondo_conditions *c = &e->ir->conditions;
    struct rondo_value want;
    if (!e->ir->in_place || e->again || e->result != RONDO_SUCCESS || rondo_conditions_always_shared(c))
        return;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(c, rank, RONDO_OUTPUT) && !e->ir->ranks[rank].copied; i++) {
            struct rondo_msccl_ir_chunk chunk = {RONDO_OUTPUT, i};
            resolve(e->ir, rank, &chunk);
            if (!rondo_wants_at(&e->wants, rank, i, &want) || !exist(e->ir, rank, chunk, 1) ||
                rondo_msccl_ir_place_at(e, rank, chunk)->written)
                continue;
            e->ir->ranks[rank].copied = (uint8_t) rondo_conditions_may_share(c);
            e->again |= e->ir->ranks[rank].copied;
        }
}

rondo_result_t rondo_msccl_ir_execute(struct rondo_msccl_ir_execution *e)
{
    const struct rondo_msccl_ir *ir = e->ir;
    size_t places = 0;
    e->result = rondo_wants_prepare(&e->wants, &ir->conditions, rondo_value_salt());
    e->place_first = calloc((size_t) ir->conditions.ranks * RONDO_BUFFERS + 1, sizeof(size_t));
    e->done = calloc(ir->step_count + 1, sizeof(*e->done));
    e->at = calloc(ir->block_count + 1, sizeof(*e->at));
    e->order = calloc(ir->step_count + 1, sizeof(*e->order));
    for (uint32_t i = 0; e->place_first != NULL && i < ir->conditions.ranks * RONDO_BUFFERS; i++) {
        e->place_first[i] = places;
        places += chunks_of(ir, i / RONDO_BUFFERS, (uint8_t) (i % RONDO_BUFFERS));
    }
    e->places = malloc((places + 1) * sizeof(*e->places));
    if (e->result == RONDO_SUCCESS &&
        (e->place_first == NULL || e->done == NULL || e->at == NULL || e->order == NULL || e->places == NULL))
        e->result = rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", e->name);
    if (e->result == RONDO_SUCCESS) {
        do { /* at most once more for each rank */
            reset(e, places);
            execute_once(e);
            copy_unwritten(e);
        } while (e->again && e->result == RONDO_SUCCESS);
    }
    return e->result;
}

void rondo_msccl_ir_execute_release(struct rondo_msccl_ir_execution *e)
{
    drop_messages(e);
    rondo_wants_release(&e->wants);
    rondo_map_release(&e->map);
    free(e->queues);
    free(e->places);
    free(e->place_first);
    free(e->done);
    free(e->at);
    free(e->order);
    free(e->rank_first);
}
