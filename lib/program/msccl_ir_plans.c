/*
 * Makes plans of a program out of a file that has been executed: in the order of the execution its steps become instructions of
 * as many blocks as there may be, so that thread blocks that had to be joined in one cannot block each other.
 */
#include "lib/program/msccl_ir_run.h"

#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

struct writing {
    struct rondo_msccl_ir_execution *e;
    struct rondo_plan_builder *builder;
    uint32_t rank, blocks; /* blocks: of the plan */
    struct rondo_connection ends[256];
    uint32_t end_count;
    uint8_t *notifies; /* [step] */
};

static uint32_t plan_block(const struct writing *w, uint32_t ir_block)
{
    const struct rondo_msccl_ir_rank *rank = &w->e->ir->ranks[w->rank];
    return (uint32_t) ((uint64_t) (ir_block - rank->block_first) * w->blocks / (rank->blocks > 0 ? rank->blocks : 1));
}

static uint32_t block_of_step(const struct rondo_msccl_ir_execution *e, uint32_t rank, uint32_t step)
{
    uint32_t block = e->ir->ranks[rank].block_first;
    while (step >= e->ir->blocks[block].step_first + e->ir->blocks[block].steps)
        block++;
    return block;
}

static uint32_t end_of(struct writing *w, int32_t peer, int32_t channel, int outgoing)
{
    struct rondo_connection what = {peer, (uint16_t) channel, outgoing ? RONDO_OUTGOING : RONDO_INCOMING,
                                    (uint8_t) w->e->options->protocol};
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
    struct rondo_msccl_ir_execution *e = w->e;
    uint32_t block = block_of_step(e, rank, step), first = e->ir->blocks[block].step_first;
    for (uint32_t s = step;; s--) {
        const struct rondo_msccl_ir_step *at = &e->ir->steps[s];
        if (s != step && at->actions != 0)
            break;
        if (at->wait_block >= 0) {
            const struct rondo_msccl_ir_block *other =
                &e->ir->blocks[e->ir->ranks[rank].block_first + (uint32_t) at->wait_block];
            uint32_t on = other->step_first + (uint32_t) at->wait_step, real = on;
            while (real > other->step_first && e->ir->steps[real].actions == 0)
                real--;
            if (e->ir->steps[real].actions != 0)
                visit(w, waiting, real);
            if (e->ir->steps[on].actions == 0 && depth < 16)
                visit_waits(w, rank, on, depth + 1, visit, waiting);
        }
        if (s == first)
            break;
    }
}

static void note_wait(struct writing *w, uint32_t waiting, uint32_t on)
{
    if (w->e->done[waiting].block != w->e->done[on].block)
        w->notifies[on] = 1;
}

static void write_wait(struct writing *w, uint32_t waiting, uint32_t on)
{
    if (w->e->done[waiting].block != w->e->done[on].block)
        rondo_plan_builder_depend(w->builder, (int) w->e->done[on].block, (int) w->e->done[on].step);
}

static rondo_result_t write_step(struct writing *w, uint32_t number)
{
    struct rondo_msccl_ir_execution *e = w->e;
    const struct rondo_msccl_ir_step *step = &e->ir->steps[number];
    const struct rondo_msccl_ir_done *done = &e->done[number];
    const struct rondo_msccl_ir_block *block = &e->ir->blocks[block_of_step(e, w->rank, number)];
    struct rondo_instruction instruction = {
        .actions = step->actions,
        .flags = (uint8_t) ((done->finishes ? RONDO_FINISH : 0) | (w->notifies[number] ? RONDO_NOTIFY : 0)),
        .source_buffer = done->source.buffer,
        .destination_buffer = done->destination.buffer,
        .source_index = done->source.index,
        .destination_index = done->destination.index,
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
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "program '%s', rank %u: more than 255 connections in a block", e->name,
                          w->rank);
    if ((step->actions & RONDO_RECEIVE) && !(step->actions & RONDO_REDUCE))
        instruction.source_buffer = RONDO_INPUT, instruction.source_index = 0;
    if (!(step->actions & RONDO_COPY))
        instruction.destination_buffer = RONDO_OUTPUT, instruction.destination_index = 0;
    instruction.receive_first = (uint8_t) in;
    instruction.send_first = (uint8_t) out;
    rondo_plan_builder_add(w->builder, &instruction);
    visit_waits(w, w->rank, number, 0, write_wait, number);
    return RONDO_SUCCESS;
}

/* Returns how many chunks of the input are copied at the start to where they would be written, and stores where; 0 for ranks
 * that need no copy. Every block begins after it. */
static uint32_t copied_chunks(const struct rondo_msccl_ir_execution *e, uint32_t rank, uint32_t *destination)
{
    uint32_t output = 0;
    if (!e->ir->ranks[rank].copied)
        return 0;
    *destination = 0;
    if (e->ir->conditions.kind == RONDO_KIND_ALLGATHER) {
        *destination = rank * e->ir->conditions.block_chunks;
        return e->ir->conditions.block_chunks;
    }
    if (e->ir->conditions.kind == RONDO_KIND_REDUCE_SCATTER_BLOCK)
        return 0;
    return rondo_msccl_ir_twin(e->ir, rank, 0, &output) ? rondo_conditions_chunks(&e->ir->conditions, rank, RONDO_OUTPUT) : 0;
}

static rondo_result_t write_rank(struct writing *w, uint32_t rank, uint32_t largest_count, struct rondo_plan **plan)
{
    struct rondo_msccl_ir_execution *e = w->e;
    const struct rondo_conditions *c = &e->ir->conditions;
    const struct rondo_msccl_ir_rank *r = &e->ir->ranks[rank];
    rondo_result_t status = RONDO_SUCCESS;
    uint32_t destination = 0, copied = copied_chunks(e, rank, &destination), counts[RONDO_COMPILE_BLOCKS_MAX] = {0};
    uint32_t copies = copied == 0 ? 0 : (copied + largest_count - 1) / largest_count;
    w->rank = rank;
    w->blocks = r->blocks < e->options->blocks ? r->blocks : e->options->blocks;
    if (w->blocks == 0)
        w->blocks = 1;
    counts[0] = copies;
    for (uint32_t i = e->rank_first[rank]; i < e->rank_first[rank + 1]; i++) {
        uint32_t step = e->order[i];
        if (e->ir->steps[step].actions == 0)
            continue;
        e->done[step].block = plan_block(w, block_of_step(e, rank, step));
        e->done[step].step = counts[e->done[step].block]++;
    }
    for (uint32_t b = 0; b < r->blocks; b++)
        for (uint32_t s = 0; s < e->ir->blocks[r->block_first + b].steps; s++) {
            uint32_t step = e->ir->blocks[r->block_first + b].step_first + s;
            if (e->ir->steps[step].actions != 0)
                visit_waits(w, rank, step, 0, note_wait, step);
        }
    w->builder = rondo_plan_builder_create();
    for (uint32_t b = 0; b < w->blocks && status == RONDO_SUCCESS; b++) {
        uint32_t written = 0;
        rondo_plan_builder_block(w->builder);
        w->end_count = 0;
        for (uint32_t k = 0; k < copies && b == 0; k++) {
            uint32_t done = k * largest_count, left = copied - done;
            struct rondo_instruction copy = {.actions = RONDO_COPY,
                                             .flags = k + 1 == copies && w->blocks > 1 ? RONDO_NOTIFY : 0,
                                             .source_index = done,
                                             .destination_buffer = RONDO_OUTPUT,
                                             .destination_index = destination + done,
                                             .count = (uint16_t) (left < largest_count ? left : largest_count)};
            rondo_plan_builder_add(w->builder, &copy);
        }
        for (uint32_t i = e->rank_first[rank]; i < e->rank_first[rank + 1] && status == RONDO_SUCCESS; i++) {
            uint32_t step = e->order[i];
            if (e->ir->steps[step].actions == 0 || e->done[step].block != b)
                continue;
            status = write_step(w, step);
            if (written++ == 0 && b > 0 && copies > 0)
                rondo_plan_builder_depend(w->builder, 0, (int) copies - 1);
        }
        for (uint32_t i = 0; i < w->end_count; i++)
            rondo_plan_builder_end(w->builder, w->ends[i].peer, w->ends[i].channel, (enum rondo_direction) w->ends[i].direction,
                                   (enum rondo_protocol) w->ends[i].protocol);
    }
    uint32_t inputs = rondo_conditions_chunks(c, rank, RONDO_INPUT), scratch = r->chunks[RONDO_SCRATCH];
    uint32_t chunks[RONDO_BUFFERS] = {inputs, rondo_conditions_chunks(c, rank, RONDO_OUTPUT), scratch + inputs};
    uint32_t *classes = calloc((size_t) scratch + inputs + 1, sizeof(*classes));
    rondo_result_t finished = rondo_plan_builder_finish(w->builder, chunks, plan);
    if (finished != RONDO_SUCCESS || status != RONDO_SUCCESS || classes == NULL) {
        if (finished == RONDO_SUCCESS)
            rondo_plan_free(*plan);
        *plan = NULL;
        free(classes);
        return status != RONDO_SUCCESS ? status : rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", e->name);
    }
    for (uint32_t i = 0; i < scratch + inputs; i++) {
        uint32_t class = i < scratch ? rondo_msccl_ir_place_at(e, rank, (struct rondo_msccl_ir_chunk){RONDO_SCRATCH, i})->class
                                     : rondo_conditions_class(c, rank, RONDO_INPUT, i - scratch);
        classes[i] = class == RONDO_NONE ? 0 : class;
    }
    (*plan)->scratch_classes = classes;
    (*plan)->block_chunks = c->block_chunks;
    (*plan)->program->largest_count = largest_count;
    (*plan)->largest_receive = 1;
    return RONDO_SUCCESS;
}

/* Sorts the executed steps by rank, in the order of execution within each. The steps of a rank are side by side in the file. */
static rondo_result_t group_by_rank(struct rondo_msccl_ir_execution *e)
{
    const struct rondo_msccl_ir *ir = e->ir;
    uint32_t *grouped = calloc((size_t) e->executed + 1, sizeof(*grouped));
    e->rank_first = calloc((size_t) ir->conditions.ranks + 2, sizeof(*e->rank_first));
    if (grouped == NULL || e->rank_first == NULL) {
        free(grouped);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", e->name);
    }
    for (uint32_t rank = 0; rank < ir->conditions.ranks; rank++) {
        uint32_t steps = 0;
        for (uint32_t b = 0; b < ir->ranks[rank].blocks; b++)
            steps += ir->blocks[ir->ranks[rank].block_first + b].steps;
        e->rank_first[rank + 2] = e->rank_first[rank + 1] + steps;
    }
    uint32_t *fill = e->rank_first + 1;
    for (uint32_t i = 0, rank = 0; i < e->executed; i++) {
        uint32_t low = 0, high = ir->conditions.ranks - 1;
        while (low < high) { /* the rank of the step: the last one whose first step is not behind it */
            uint32_t middle = (low + high + 1) / 2;
            const struct rondo_msccl_ir_rank *r = &ir->ranks[middle];
            uint32_t first =
                r->block_first < ir->block_count ? ir->blocks[r->block_first].step_first : (uint32_t) ir->step_count;
            if (first <= e->order[i])
                low = middle;
            else
                high = middle - 1;
        }
        rank = low;
        while (ir->ranks[rank].blocks == 0 ||
               e->order[i] >= ir->blocks[ir->ranks[rank].block_first + ir->ranks[rank].blocks - 1].step_first +
                                  ir->blocks[ir->ranks[rank].block_first + ir->ranks[rank].blocks - 1].steps ||
               e->order[i] < ir->blocks[ir->ranks[rank].block_first].step_first)
            rank--;
        grouped[fill[rank]++] = e->order[i];
    }
    memcpy(e->order, grouped, (size_t) e->executed * sizeof(*grouped));
    free(grouped);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_msccl_ir_write_plans(struct rondo_msccl_ir_execution *e, struct rondo_plan_set *set)
{
    struct writing *w = calloc(1, sizeof(*w));
    rondo_result_t status = group_by_rank(e);
    uint32_t largest = 1;
    if (w == NULL || (w->notifies = calloc(e->ir->step_count + 1, 1)) == NULL) {
        free(w);
        return status != RONDO_SUCCESS ? status : rondo_fail(RONDO_ERR_MEMORY, "no memory for program '%s'", e->name);
    }
    w->e = e;
    for (size_t i = 0; i < e->ir->step_count; i++)
        if (e->ir->steps[i].actions != 0 && e->ir->steps[i].count > largest)
            largest = e->ir->steps[i].count;
    for (uint32_t rank = 0; rank < e->ir->conditions.ranks && status == RONDO_SUCCESS; rank++)
        status = write_rank(w, rank, largest, &set->plans[rank]);
    free(w->notifies);
    free(w);
    return status;
}
