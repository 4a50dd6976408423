/* See device/engine/short_steps.h. What a step does, and in which order, is what rondo_run_short and rondo_run_slices do for
 * the instruction (device/engine/short_moves.h, engine.h); the orderings of slots are those of device/engine/waits.h and
 * publish.h. */
#include "device/engine/short_steps.h"

#include "device/engine/publish.h"
#include "device/engine/short_moves.h"
#include "device/engine/slices.h"
#include "device/engine/waits.h"

#include <stdlib.h>
#include <string.h>

/* ---- finding ---- */

static uint64_t chunk_place(const struct rondo_operation *operation, enum rondo_buffer buffer, uint32_t index)
{
    return rondo_chunk_extent(&operation->layouts[buffer], index).offset * operation->element_bytes;
}

#define REDUCES    (RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY)
#define SENDS_COPY (RONDO_SEND | RONDO_COPY)

/* Whether the instruction is of the kind: a copy, a send to one, a receive from one, and receives from several that are dropped
 * or reduced. */
static int is_short(const struct rondo_operation *operation, const struct rondo_instruction *instruction)
{
    const uint8_t actions = instruction->actions;
    if (instruction->dependencies != 0)
        return 0;
    if (actions == REDUCES)
        return instruction->count == 1 && instruction->slot_chunk == 0 && operation->op != RONDO_BY_USER &&
               (instruction->flags & ~RONDO_FINISH) == 0;
    if (actions == RONDO_RECEIVE || actions == SENDS_COPY)
        return instruction->flags == 0 && instruction->count == 1 && instruction->slot_chunk == 0 &&
               (actions == RONDO_RECEIVE || instruction->send_count == 1);
    return rondo_is_plain(instruction);
}

/* The step of the k-th chunk of the instruction. */
static struct rondo_short_step step_of(const struct rondo_operation *operation, const struct rondo_instruction *instruction,
                                       uint32_t k)
{
    const struct rondo_part *part = &operation->parts[0];
    const uint8_t actions = instruction->actions;
    const enum rondo_buffer source = (enum rondo_buffer) instruction->source_buffer,
                            destination = (enum rondo_buffer) instruction->destination_buffer;
    struct rondo_short_step step = {
        .source = instruction->source_buffer, .destination = instruction->destination_buffer, .instruction = instruction};
    const struct rondo_stretch whole = {0, operation->tile}; /* there is one slice */
    const uint64_t bytes = rondo_covered(rondo_measured_chunk(operation, instruction, k), whole) * operation->element_bytes;
    step.bytes = bytes <= RONDO_SHORT_STEPS_BYTES ? (uint32_t) bytes : UINT32_MAX;
    if (actions & RONDO_COPY)
        step.to = chunk_place(operation, destination, instruction->destination_index + k);
    if (!(actions & RONDO_RECEIVE) || (actions & RONDO_REDUCE))
        step.from = chunk_place(operation, source, instruction->source_index + k);
    if (actions & RONDO_RECEIVE) {
        step.action = actions & RONDO_REDUCE ? RONDO_SHORT_REDUCE : RONDO_SHORT_RECEIVE;
        step.end = rondo_part_end(part, instruction->receive_first);
        step.end_first = instruction->receive_first;
        step.ends = instruction->receive_count;
        step.drops = actions == RONDO_RECEIVE;
        step.slot_offset = instruction->slot_chunk * (uint32_t) rondo_slice_op_bytes(step.bytes);
    } else if (actions & RONDO_SEND) {
        step.action = RONDO_SHORT_SEND;
        step.end = rondo_part_end(part, instruction->send_first);
    }
    return step;
}

/* Appends the instruction's steps. Returns 0 if it has none or there is no room. */
static int append(const struct rondo_operation *operation, const struct rondo_instruction *instruction,
                  struct rondo_short_steps *found)
{
    uint32_t slot_offset = 0;
    if (!is_short(operation, instruction) || found->count + instruction->count > RONDO_SHORT_STEPS)
        return 0;
    const uint32_t begin = found->count;
    for (uint32_t k = 0; k < instruction->count; k++) {
        struct rondo_short_step step = step_of(operation, instruction, k);
        if (step.bytes > RONDO_SHORT_STEPS_BYTES)
            return 0;
        if (step.action == RONDO_SHORT_SEND) {
            step.slot_offset = slot_offset;
            slot_offset += (uint32_t) rondo_slice_op_bytes(step.bytes);
        }
        found->steps[found->count++] = step;
    }
    const struct rondo_short_step *only = &found->steps[begin];
    if (only->action == RONDO_SHORT_SEND ? slot_offset == 0 : only->bytes == 0) { /* the engine passes it over */
        found->count = begin;
        return 1;
    }
    found->steps[begin].first = found->steps[found->count - 1].last = 1;
    if (instruction->actions == SENDS_COPY) { /* the copy by itself, which waits for nothing */
        if (found->count == RONDO_SHORT_STEPS)
            return 0;
        struct rondo_short_step copy = *only;
        copy.action = RONDO_SHORT_COPY;
        copy.last = 0; /* the instruction counts once */
        found->steps[found->count++] = copy;
    }
    return 1;
}

void rondo_short_steps_find(const struct rondo_operation *operation, struct rondo_short_steps *found)
{
    const struct rondo_part *part = operation->parts;
    struct rondo_short_step steps[RONDO_SHORT_STEPS];
    *found = (struct rondo_short_steps){.steps = steps};
    int all = operation->plain_slots && operation->blocks == 1 && operation->tiles == 1 && operation->slices == 1 &&
              operation->rate == 0;
    for (uint32_t i = 0; all && i < part->instruction_count; i++)
        all = append(operation, &part->instructions[i], found);
    found->steps = all && found->count > 0 ? malloc(found->count * sizeof(*steps)) : NULL;
    if (found->steps != NULL)
        memcpy(found->steps, steps, found->count * sizeof(*steps));
    else
        found->count = 0;
}

void rondo_short_steps_forget(struct rondo_short_steps *found)
{
    free(found->steps);
    *found = (struct rondo_short_steps){0};
}

/* ---- running ---- */

static struct rondo_end *end_at(const struct rondo_operation *operation, const struct rondo_short_step *step, uint32_t i)
{
    return i == 0 ? step->end : rondo_part_end(operation->parts, step->end_first + i);
}

/* Whether the next slots of all ends come soon. */
static int all_come(const struct rondo_operation *operation, const struct rondo_short_step *step, uint32_t looks)
{
    for (uint32_t i = 0; i < step->ends; i++)
        while (!rondo_arrived(end_at(operation, step, i), step->bytes))
            if (--looks == 0)
                return 0;
    return 1;
}

static int has_room_soon(struct rondo_end *end, uint32_t looks)
{
    while (!rondo_has_room(end))
        if (--looks == 0)
            return 0;
    return 1;
}

/* Before the first of several receives, or one from several: has all their slots fetched at once. */
static void fetch_ahead(const struct rondo_operation *operation, const struct rondo_short_step *step,
                        const struct rondo_short_step *last)
{
    last = last - step > RONDO_FETCH_AHEAD ? step + RONDO_FETCH_AHEAD : last;
    for (; step < last && (step->action == RONDO_SHORT_RECEIVE || step->action == RONDO_SHORT_REDUCE); step++)
        for (uint32_t i = 0; i < step->ends; i++) {
            const struct rondo_end *end = end_at(operation, step, i);
            rondo_fetch_to_read(rondo_tail(end, end->position, end->watched));
        }
}

/* Gives back the slots that a step has taken. */
static void give_back(const struct rondo_operation *operation, const struct rondo_short_step *step)
{
    for (uint32_t i = 0; i < step->ends; i++) {
        struct rondo_end *end = end_at(operation, step, i);
        end->position++;
        rondo_fetch_next(operation->parts, end, step->slot_offset);
        rondo_tell_sender(end);
    }
}

uint32_t rondo_short_steps_run(const struct rondo_operation *operation, const struct rondo_short_steps *all, uint32_t looks)
{
    const struct rondo_short_step *const begin = all->steps, *const last = begin + all->count;
    for (const struct rondo_short_step *step = begin; step < last; step++) {
        struct rondo_end *end = step->end;
        const char *from = operation->buffers[step->source] + step->from;
        char *to = operation->buffers[step->destination] + step->to;
        switch (step->action) {
        case RONDO_SHORT_SEND:
            if (step->first && !has_room_soon(end, looks))
                return (uint32_t) (step - begin);
            rondo_copy_short(rondo_slot(end) + step->slot_offset, from, step->bytes);
            if (step->last) {
                rondo_fill(end);
                rondo_tell_receiver(end);
            }
            break;
        case RONDO_SHORT_COPY:
            if (to != from)
                rondo_copy_short(to, from, step->bytes);
            break;
        default:
            if (step == begin || step[-1].action != RONDO_SHORT_RECEIVE)
                fetch_ahead(operation, step, last);
            if (!all_come(operation, step, looks))
                return (uint32_t) (step - begin);
            if (step->action == RONDO_SHORT_REDUCE)
                rondo_reduce_short(operation, operation->parts, step->instruction, from, to,
                                   step->bytes / operation->element_bytes, 0);
            else if (!step->drops)
                rondo_copy_short(to, rondo_slot(end) + step->slot_offset, step->bytes);
            give_back(operation, step);
        }
    }
    return all->count;
}

void rondo_short_steps_count(const struct rondo_short_steps *all, uint32_t done, struct rondo_block_statistics *statistics)
{
    uint64_t primitives = 0, sent = 0;
    for (const struct rondo_short_step *step = all->steps; step < all->steps + done; step++) {
        primitives += step->last;
        sent += step->action == RONDO_SHORT_SEND ? rondo_slice_op_bytes(step->bytes) : 0;
    }
    rondo_count(&statistics->primitives, primitives);
    rondo_count(&statistics->bytes_sent, sent);
}
