/* See lib/connection/copy_steps.h. */
#include "lib/connection/copy_steps.h"

#include "device/engine/use.h"

static int is_signal(const struct rondo_instruction *instruction)
{
    return (instruction->flags & RONDO_SIGNAL) != 0;
}

static int is_write(const struct rondo_instruction *instruction)
{
    return instruction->actions == RONDO_SEND && instruction->flags == RONDO_DIRECT_OUT && instruction->send_count == 1;
}

static int is_own_copy(const struct rondo_instruction *instruction)
{
    return instruction->actions == RONDO_COPY && instruction->flags == 0;
}

int rondo_copy_steps_can(const struct rondo_plan *plan)
{
    const struct rondo_instruction *list = rondo_program_instructions(plan->program);
    const struct rondo_program_block *block = rondo_program_blocks(plan->program);
    if (plan->program->blocks != 1)
        return 0;
    for (uint32_t i = 0; i < block->instructions; i++) {
        const struct rondo_instruction *one = &list[block->instruction_first + i];
        const int moves = is_write(one) || is_own_copy(one);
        if ((!is_signal(one) && !moves) || one->count != 1 || one->dependencies > 0)
            return 0;
    }
    return 1;
}

int rondo_copy_steps_most(const struct rondo_plan *plan)
{
    const struct rondo_program_block *block = rondo_program_blocks(plan->program);
    const struct rondo_instruction *list = rondo_program_instructions(plan->program) + block->instruction_first;
    int most = 0;
    for (uint32_t i = 0; i < block->instructions; i++)
        most += !is_signal(&list[i]) ? 1 : list[i].actions & RONDO_SEND ? list[i].send_count : list[i].receive_count;
    return most;
}

/* The peers of a signal, and their words or this rank's. */
static int signal(const struct rondo_copy_view *view, const struct rondo_instruction *one, struct rondo_copy_step *steps)
{
    const struct rondo_connection *ends = view->plan->connections + rondo_program_blocks(view->plan->program)->end_first;
    int count = 0;
    for (int i = 0; (one->actions & RONDO_SEND) && i < one->send_count; i++) {
        const int peer = ends[one->send_first + i].peer;
        steps[count++] = (struct rondo_copy_step){
            .kind = RONDO_COPY_STEP_WRITE, .word = view->theirs[peer] + view->rank, .value = ++view->sent[peer]};
    }
    for (int i = 0; (one->actions & RONDO_RECEIVE) && i < one->receive_count; i++) {
        const int peer = ends[one->receive_first + i].peer;
        steps[count++] =
            (struct rondo_copy_step){.kind = RONDO_COPY_STEP_WAIT, .word = view->words + peer, .value = ++view->received[peer]};
    }
    return count;
}

/* A copy into a peer's output, or into a buffer of this rank. Nothing where the data are there already, or where there are
 * none. */
static int move(const struct rondo_copy_view *view, const struct rondo_instruction *one, struct rondo_copy_step *steps)
{
    const struct rondo_operation *operation = view->operation;
    const struct rondo_connection *ends = view->plan->connections + rondo_program_blocks(view->plan->program)->end_first;
    const int writes = is_write(one);
    const int into = writes ? RONDO_OUTPUT : one->destination_buffer;
    char *there = writes ? view->output[ends[one->send_first].peer] : operation->buffers[into];
    const struct rondo_extent from = rondo_chunk_extent(&operation->layouts[one->source_buffer], one->source_index);
    const struct rondo_extent to =
        rondo_chunk_extent(&operation->layouts[into], writes ? one->remote_index : one->destination_index);
    *steps = (struct rondo_copy_step){.kind = RONDO_COPY_STEP_MOVE,
                                      .to = there + to.offset * operation->element_bytes,
                                      .from = operation->buffers[one->source_buffer] + from.offset * operation->element_bytes,
                                      .bytes = from.count * operation->element_bytes};
    return steps->to != steps->from && steps->bytes > 0;
}

int rondo_copy_steps(const struct rondo_copy_view *view, struct rondo_copy_step *steps)
{
    const struct rondo_program_block *block = rondo_program_blocks(view->plan->program);
    const struct rondo_instruction *list = rondo_program_instructions(view->plan->program) + block->instruction_first;
    int count = 0;
    for (uint32_t i = 0; i < block->instructions; i++)
        count += is_signal(&list[i]) ? signal(view, &list[i], steps + count) : move(view, &list[i], steps + count);
    return count;
}
