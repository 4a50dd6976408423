/* Simulates the plans (lib/program/verify.h): every block goes as far as it can, until all are done or none can go on. Relies
 * on their good form. */
#include "lib/program/verify.h"

#include "lib/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rondo_verify_connector *connector_of(const struct rondo_verification *c, const struct rondo_verify_block *block,
                                                   uint32_t end)
{
    return &c->connectors[c->end_connectors[block->connectors + end]];
}

/* The block will be visited, if it is not done. */
static void enqueue(struct rondo_verification *c, uint32_t block)
{
    if (block == RONDO_NONE || c->blocks[block].queued || c->blocks[block].at == c->blocks[block].count)
        return;
    c->blocks[block].queued = 1;
    c->ready[c->ready_count++] = block;
}

/* The blocks that wait for steps of this one will be visited. Each may be in one list, because it waits for one thing. */
static void wake_waiters(struct rondo_verification *c, struct rondo_verify_block *block)
{
    while (block->waiters != RONDO_NONE) {
        uint32_t waiter = block->waiters;
        block->waiters = c->blocks[waiter].next_waiter;
        c->blocks[waiter].listed = 0;
        enqueue(c, waiter);
    }
}

/* ---- waiting ---- */

/* Whether the block has its turn: without preemption limits->concurrent blocks run at a time, and the next ones after them. */
static int has_begun(const struct rondo_verification *c, const struct rondo_verify_block *block)
{
    uint32_t concurrent = c->limits->concurrent;
    if (concurrent == 0 || block->number < concurrent)
        return 1;
    const struct rondo_verify_block *before = block - concurrent;
    return before->at == before->count;
}

/* What a step waits for. */
enum missing { MISSING_NOTHING, MISSING_TURN, MISSING_STEP, MISSING_MESSAGE, MISSING_SLOT };
/* Returns what the step waits for first, and stores in *what: the block that is to end or whose step it is, in the rank, the
 * connector otherwise; and in *step the step. */
static enum missing find_missing(const struct rondo_verification *c, struct rondo_verify_block *block,
                                 const struct rondo_instruction *i, uint32_t *what, uint32_t *step)
{
    if (!has_begun(c, block)) {
        *what = block->number - c->limits->concurrent;
        return MISSING_TURN;
    }
    const struct rondo_program *program = rondo_verification_program(c, block->rank);
    const struct rondo_dependency *waits = rondo_program_dependencies(program) + i->dependency_first;
    for (uint32_t d = 0; d < i->dependencies; d++)
        if (c->blocks[c->rank_first[block->rank] + waits[d].block].at <= waits[d].step) {
            *what = waits[d].block;
            *step = waits[d].step;
            return MISSING_STEP;
        }
    int exchanges = (i->flags & RONDO_EXCHANGE) != 0; /* it sends first, and receives then */
    const int receives = (i->actions & RONDO_RECEIVE) && !(i->flags & RONDO_DIRECT_IN) && (!exchanges || block->sent);
    const uint32_t received = receives ? i->receive_count : 0;
    if (receives)
        for (uint32_t r = block->passed; r < received; r++, block->passed++) {
            const struct rondo_verify_connector *connector = connector_of(c, block, i->receive_first + r);
            if (connector->filled == connector->taken) {
                *what = (uint32_t) (connector - c->connectors);
                return MISSING_MESSAGE;
            }
        }
    if ((i->actions & RONDO_SEND) && !(i->flags & RONDO_DIRECT_OUT) && !block->sent)
        for (uint32_t s = block->passed - received; s < i->send_count; s++, block->passed++) {
            const struct rondo_verify_connector *connector = connector_of(c, block, i->send_first + s);
            const struct rondo_verify_connector *last = connector + rondo_verify_fan(c, connector) - 1;
            for (; connector <= last; connector++)
                if (connector->filled - connector->taken >= c->limits->slots) {
                    *what = (uint32_t) (connector - c->connectors);
                    return MISSING_SLOT;
                }
        }
    return MISSING_NOTHING;
}

/* Whether the step at hand can run. If not, the block is visited when what it waits for may have come: it names a connector, or
 * stands in the list of the block of its rank. Nothing else visits it, so that a step with many ends costs time for them once.
 */
static int can_run(struct rondo_verification *c, struct rondo_verify_block *block)
{
    uint32_t what = 0, step = 0;
    enum missing missing = find_missing(c, block, rondo_verification_instruction(c, block->first + block->at), &what, &step);
    if (missing == MISSING_TURN || missing == MISSING_STEP) {
        struct rondo_verify_block *on = &c->blocks[c->rank_first[block->rank] + what];
        block->wants = RONDO_NONE;
        if (!block->listed) {
            block->listed = 1;
            block->next_waiter = on->waiters;
            on->waiters = (uint32_t) (block - c->blocks);
        }
    }
    if (missing == MISSING_MESSAGE || missing == MISSING_SLOT)
        block->wants = what;
    return missing == MISSING_NOTHING;
}

/* A message has come, or a slot is free again. */
static void wake_end(struct rondo_verification *c, uint32_t block, const struct rondo_verify_connector *connector)
{
    if (block != RONDO_NONE && c->blocks[block].wants == (uint32_t) (connector - c->connectors)) {
        c->blocks[block].wants = RONDO_NONE;
        enqueue(c, block);
    }
}

/* ---- accesses ---- */

static struct rondo_verify_chunk *chunk_at(const struct rondo_verification *c, uint32_t rank, uint32_t buffer, uint32_t index)
{
    enum rondo_buffer where = (enum rondo_buffer) buffer;
    uint32_t at = index;
    rondo_conditions_resolve(c->conditions, c->shared, rank, &where, &at);
    return &c->held[c->chunk_first[rank * RONDO_BUFFERS + where] + at];
}

static void report_race(struct rondo_verification *c, uint32_t before, uint32_t after, const char *what, uint32_t rank,
                        uint32_t buffer, uint32_t index)
{
    const struct rondo_verify_block *other = &c->blocks[c->instructions[before].block];
    rondo_verification_fail(c, after,
                            "race%s: %s chunk %u of rank %u's %s, and nothing orders it after rank %u, block %u, step %u",
                            c->shared ? " in place" : "", what, index, rank, rondo_buffer_name((int) buffer), other->rank,
                            other->number, before - other->first);
}

static struct rondo_value read_chunk(struct rondo_verification *c, uint32_t instruction, uint32_t rank, uint32_t buffer,
                                     uint32_t index)
{
    struct rondo_verify_chunk *chunk = chunk_at(c, rank, buffer, index);
    uint32_t class = rondo_verification_class(c, rank, buffer, index);
    if (chunk->value.count == 0)
        rondo_verification_fail(c, instruction, "reads chunk %u of rank %u's %s, which is uninitialized", index, rank,
                                rondo_buffer_name((int) buffer));
    if (chunk->writer != RONDO_NONE && !rondo_verify_ordered(c, chunk->writer, instruction, class))
        report_race(c, chunk->writer, instruction, "reads", rank, buffer, index);
    if (chunk->readers == RONDO_NONE || c->links[chunk->readers].node != instruction) {
        if (rondo_grow((void **) &c->links, c->link_count, &c->link_room, sizeof(*c->links))) {
            c->links[c->link_count] = (struct rondo_link_list){instruction, chunk->readers};
            chunk->readers = (uint32_t) c->link_count++;
        } else {
            c->result = rondo_fail(RONDO_ERR_MEMORY, "no memory to check program '%s'", c->name);
        }
    }
    return chunk->value;
}

static void write_chunk(struct rondo_verification *c, uint32_t instruction, uint32_t rank, uint32_t buffer, uint32_t index,
                        struct rondo_value value)
{
    struct rondo_verify_chunk *chunk = chunk_at(c, rank, buffer, index);
    uint32_t class = rondo_verification_class(c, rank, buffer, index);
    if (chunk->writer != RONDO_NONE && !rondo_verify_ordered(c, chunk->writer, instruction, class))
        report_race(c, chunk->writer, instruction, "writes", rank, buffer, index);
    for (uint32_t i = chunk->readers; i != RONDO_NONE && c->result == RONDO_SUCCESS; i = c->links[i].next)
        if (c->links[i].node != instruction && !rondo_verify_ordered(c, c->links[i].node, instruction, class))
            report_race(c, c->links[i].node, instruction, "writes", rank, buffer, index);
    chunk->value = value;
    chunk->writer = instruction;
    chunk->readers = RONDO_NONE;
}

/* ---- running a step ---- */

/* Checks that the chunk is as long as those that decide how much is moved. */
static void expect_class(struct rondo_verification *c, uint32_t instruction, uint32_t class, uint32_t measured,
                         const char *what, uint32_t k)
{
    if (class != measured && !c->set->even)
        rondo_verification_fail(c, instruction, "%s %u is not as long as the chunk that it moves (length %u, not %u)", what, k,
                                class, measured);
}

/* Returns the sum with one more source, which is checked: complete results and endless sums cannot be reduced. */
static struct rondo_value combine(struct rondo_verification *c, uint32_t instruction, struct rondo_value sum, int *sources,
                                  struct rondo_value value)
{
    if ((*sources)++ == 0)
        return value;
    int scans = c->conditions->kind == RONDO_KIND_SCAN || c->conditions->kind == RONDO_KIND_EXSCAN;
    if ((sum.finished || value.finished) && !scans)
        rondo_verification_fail(c, instruction, "reduces a result that is complete already");
    if ((uint64_t) sum.count + value.count > UINT32_MAX / 2)
        rondo_verification_fail(c, instruction, "reduces the same inputs again and again");
    return rondo_value_combine(sum, value);
}

static uint32_t peer_of(const struct rondo_verification *c, const struct rondo_verify_block *block, uint32_t end)
{
    const struct rondo_verify_connector *connector = connector_of(c, block, end);
    return connector->source == block->rank ? connector->destination : connector->source;
}

/* Does to the k-th chunk everything that the primitive does. *out, *class: what its slots get. */
static void run_chunk(struct rondo_verification *c, uint32_t instruction, const struct rondo_instruction *i, uint32_t k,
                      struct rondo_value *out, uint32_t *class)
{
    const struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
    uint32_t rank = block->rank, buffer, index;
    int received = i->actions & RONDO_RECEIVE ? i->receive_count : 0, sources = 0;
    struct rondo_value result = {.count = 0};
    rondo_verification_measured(i, &buffer, &index);
    uint32_t measured = rondo_verification_class(c, rank, buffer, index + k);
    const int local = (i->actions & RONDO_REDUCE) || received == 0,
              local_place = local && i->local_place < received ? i->local_place : received;
    for (int r = 0; r < received + local; r++) {
        if (r == local_place) {
            result = combine(c, instruction, result, &sources,
                             read_chunk(c, instruction, rank, i->source_buffer, i->source_index + k));
            expect_class(c, instruction, rondo_verification_class(c, rank, i->source_buffer, i->source_index + k), measured,
                         "source chunk", i->source_index + k);
            continue;
        }
        const uint32_t end = i->receive_first + (uint32_t) (r < local_place ? r : r - 1);
        if (i->flags & RONDO_DIRECT_IN) {
            uint32_t peer = peer_of(c, block, end);
            result =
                combine(c, instruction, result, &sources, read_chunk(c, instruction, peer, RONDO_INPUT, i->remote_index + k));
            expect_class(c, instruction, rondo_verification_class(c, peer, RONDO_INPUT, i->remote_index + k), measured,
                         "the peer's input chunk", i->remote_index + k);
            continue;
        }
        const struct rondo_verify_connector *connector = connector_of(c, block, end);
        const struct rondo_verify_message *message = connector->oldest;
        result = combine(c, instruction, result, &sources, message->chunks[i->slot_chunk + k].value);
        for (uint32_t before = 0; before <= i->slot_chunk; before++) /* those that are skipped must be as long */
            expect_class(c, instruction, message->chunks[before + k].class, measured, "received chunk", before + k);
    }
    if ((i->actions & RONDO_REDUCE) && received == 0) {
        result = combine(c, instruction, result, &sources,
                         read_chunk(c, instruction, rank, i->destination_buffer, i->destination_index + k));
        expect_class(c, instruction, rondo_verification_class(c, rank, i->destination_buffer, i->destination_index + k),
                     measured, "destination chunk", i->destination_index + k);
    }
    int whole = rondo_conditions_whole(c->conditions);
    if ((i->flags & RONDO_FINISH) && whole) {
        if (result.finished)
            rondo_verification_fail(c, instruction, "completes a result that is complete already");
        if (result.count != c->conditions->ranks)
            rondo_verification_fail(c, instruction, "completes the combination of %u input chunks; there are %u", result.count,
                                    c->conditions->ranks);
    }
    if ((i->flags & RONDO_FINISH) && !rondo_conditions_reduces(c->conditions))
        rondo_verification_fail(c, instruction, "completes a result, but %s reduces nothing",
                                rondo_kind_name(c->conditions->kind));
    if (i->flags & RONDO_FINISH)
        result.finished = 1;
    /* In place a copy may be of a chunk to itself, which changes nothing. */
    int to_itself = sources == 1 && received == 0 && !(i->flags & RONDO_FINISH) && (i->actions & RONDO_COPY) &&
                    chunk_at(c, rank, i->source_buffer, i->source_index + k) ==
                        chunk_at(c, rank, i->destination_buffer, i->destination_index + k);
    if ((i->actions & RONDO_COPY) && !to_itself)
        write_chunk(c, instruction, rank, i->destination_buffer, i->destination_index + k, result);
    if ((i->actions & RONDO_SEND) && (i->flags & RONDO_DIRECT_OUT))
        for (uint32_t s = 0; s < i->send_count; s++)
            write_chunk(c, instruction, peer_of(c, block, i->receive_first + s), RONDO_OUTPUT, i->remote_index + k, result);
    *out = result;
    *class = measured;
}

static struct rondo_verify_message *new_message(struct rondo_verification *c, uint32_t instruction, uint32_t count,
                                                int is_signal)
{
    size_t words = c->conditions->kind == RONDO_KIND_BARRIER ? ((size_t) c->conditions->ranks + 63) / 64 : 0;
    size_t bytes = sizeof(struct rondo_verify_message) + count * sizeof(((struct rondo_verify_message *) 0)->chunks[0]);
    bytes = (bytes + 7) / 8 * 8;
    struct rondo_verify_message *message = malloc(bytes + words * sizeof(uint64_t));
    if (message == NULL) {
        c->result = rondo_fail(RONDO_ERR_MEMORY, "no memory to check program '%s'", c->name);
        return NULL;
    }
    *message = (struct rondo_verify_message){.sender = instruction, .count = count, .is_signal = is_signal};
    message->heard = words > 0 ? (uint64_t *) (void *) ((char *) message + bytes) : NULL;
    if (words > 0)
        memcpy(message->heard, c->blocks[c->instructions[instruction].block].heard, words * sizeof(uint64_t));
    return message;
}

/* Checks that what has arrived fits the instruction, and notes its senders. The slots are released afterwards. */
static void receive(struct rondo_verification *c, uint32_t instruction, const struct rondo_instruction *i)
{
    struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
    int signal = (i->flags & RONDO_SIGNAL) != 0;
    c->instructions[instruction].senders = (uint32_t) c->sender_count;
    for (uint32_t r = 0; r < i->receive_count; r++) {
        struct rondo_verify_connector *connector = connector_of(c, block, i->receive_first + r);
        const struct rondo_verify_message *message = connector->oldest;
        const struct rondo_verify_block *sender = &c->blocks[c->instructions[message->sender].block];
        /* Of a multicast slot each receiver may take other chunks. */
        const int part = rondo_is_multicast(connector->protocol) && i->slot_chunk < message->count &&
                         i->count <= message->count - i->slot_chunk;
        const int whole = message->count == i->count && i->slot_chunk == 0;
        if (message->is_signal != signal || (!signal && !part && !whole)) {
            rondo_verification_fail(c, instruction, "receives %u chunk%s from %u on, but rank %u, block %u, step %u sends %u%s",
                                    i->count, i->count == 1 ? "" : "s", i->slot_chunk, sender->rank, sender->number,
                                    message->sender - sender->first, message->count,
                                    message->is_signal != signal ? " (one is a signal)" : "");
            return;
        }
        if (signal)
            connector->signalled = 1;
        if (!rondo_grow((void **) &c->senders, c->sender_count, &c->sender_room, sizeof(*c->senders))) {
            c->result = rondo_fail(RONDO_ERR_MEMORY, "no memory to check program '%s'", c->name);
            return;
        }
        c->senders[c->sender_count++] = message->sender;
        for (size_t w = 0; message->heard != NULL && w < ((size_t) c->conditions->ranks + 63) / 64; w++)
            block->heard[w] |= message->heard[w];
    }
}

static void release_slots(struct rondo_verification *c, const struct rondo_verify_block *block,
                          const struct rondo_instruction *i)
{
    for (uint32_t r = 0; r < i->receive_count; r++) {
        struct rondo_verify_connector *connector = connector_of(c, block, i->receive_first + r);
        struct rondo_verify_message *message = connector->oldest;
        connector->oldest = message->next;
        connector->taken++;
        free(message);
        wake_end(c, connector->sending_block, connector);
    }
}

/* Fills the next slot of a connector with c->values. */
static void fill_slot(struct rondo_verification *c, uint32_t instruction, const struct rondo_instruction *i,
                      struct rondo_verify_connector *connector)
{
    int signal = (i->flags & RONDO_SIGNAL) != 0;
    struct rondo_verify_message *message = new_message(c, instruction, signal ? 0 : i->count, signal);
    if (message == NULL)
        return;
    for (uint32_t k = 0; k < message->count; k++) {
        message->chunks[k].value = c->values[k];
        message->chunks[k].class = c->classes[k];
    }
    if (connector->filled != connector->taken)
        connector->newest->next = message;
    else
        connector->oldest = message;
    connector->newest = message;
    connector->filled++;
    wake_end(c, connector->receiving_block, connector);
}

static void send(struct rondo_verification *c, uint32_t instruction, const struct rondo_instruction *i)
{
    const struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
    for (uint32_t s = 0; s < i->send_count; s++) {
        struct rondo_verify_connector *connector = connector_of(c, block, i->send_first + s);
        const uint32_t fan = rondo_verify_fan(c, connector);
        for (uint32_t w = 0; w < fan && c->result == RONDO_SUCCESS; w++)
            fill_slot(c, instruction, i, connector + w);
    }
}

/* Checks that the peers of a direct access have signalled before, and are signalled afterwards. */
static void check_direct(struct rondo_verification *c, uint32_t instruction, const struct rondo_instruction *i)
{
    const struct rondo_verify_block *block = &c->blocks[c->instructions[instruction].block];
    uint32_t ends = i->flags & RONDO_DIRECT_OUT && i->send_count > i->receive_count ? i->send_count : i->receive_count;
    for (uint32_t r = 0; r < ends && c->result == RONDO_SUCCESS; r++) {
        const struct rondo_verify_connector *connector = connector_of(c, block, i->receive_first + r);
        int told = 0;
        if (!connector->signalled)
            rondo_verification_fail(c, instruction, "touches the buffers of rank %u before it has told where they are",
                                    connector->source);
        for (uint32_t later = instruction + 1; later < block->first + block->count && !told; later++) {
            const struct rondo_instruction *next = rondo_verification_instruction(c, later);
            for (uint32_t s = 0; (next->flags & RONDO_SIGNAL) && (next->actions & RONDO_SEND) && s < next->send_count; s++)
                told |= peer_of(c, block, next->send_first + s) == connector->source;
        }
        if (!told)
            rondo_verification_fail(c, instruction, "touches the buffers of rank %u and never tells it that it has done",
                                    connector->source);
    }
}

/* Simulates the first half of an exchange: it sends the source chunks as they are. */
static void send_first(struct rondo_verification *c, struct rondo_verify_block *block, const struct rondo_instruction *i)
{
    const uint32_t instruction = block->first + block->at;
    c->instructions[instruction].order = ++c->simulated;
    for (uint32_t k = 0; k < i->count && c->result == RONDO_SUCCESS; k++) {
        c->values[k] = read_chunk(c, instruction, block->rank, i->source_buffer, i->source_index + k);
        c->classes[k] = rondo_verification_class(c, block->rank, i->source_buffer, i->source_index + k);
    }
    if (c->result == RONDO_SUCCESS)
        send(c, instruction, i);
    block->sent = 1;
    block->passed = 0;
}

static void run_step(struct rondo_verification *c, struct rondo_verify_block *block)
{
    const uint32_t instruction = block->first + block->at;
    const struct rondo_instruction *i = rondo_verification_instruction(c, instruction);
    const int receives = (i->actions & RONDO_RECEIVE) && !(i->flags & RONDO_DIRECT_IN);
    int sends = (i->actions & RONDO_SEND) && !(i->flags & RONDO_DIRECT_OUT);
    if ((i->flags & RONDO_EXCHANGE) && !block->sent) {
        send_first(c, block, i);
        return;
    }
    sends = sends && !block->sent;
    block->sent = 0;
    if (c->instructions[instruction].order == 0)
        c->instructions[instruction].order = ++c->simulated;
    if (receives)
        receive(c, instruction, i);
    if (i->flags & (RONDO_DIRECT_IN | RONDO_DIRECT_OUT))
        check_direct(c, instruction, i);
    for (uint32_t k = 0; k < i->count && !(i->flags & RONDO_SIGNAL) && c->result == RONDO_SUCCESS; k++)
        run_chunk(c, instruction, i, k, &c->values[k], &c->classes[k]);
    if (receives && c->result == RONDO_SUCCESS)
        release_slots(c, block, i);
    if (sends && c->result == RONDO_SUCCESS)
        send(c, instruction, i);
    block->at++;
    block->passed = 0;
    if (i->flags & RONDO_NOTIFY || block->at == block->count)
        wake_waiters(c, block);
}

/* ---- the whole simulation ---- */

static void report_deadlock(struct rondo_verification *c)
{
    for (size_t b = 0; b < c->block_count; b++) {
        const struct rondo_verify_block *block = &c->blocks[b];
        if (block->at == block->count)
            continue;
        const struct rondo_instruction *i = rondo_verification_instruction(c, block->first + block->at);
        char text[128] = "nothing";
        uint32_t what = 0, step = 0;
        const enum missing missing = find_missing(c, &c->blocks[b], i, &what, &step);
        if (missing == MISSING_TURN)
            snprintf(text, sizeof(text), "block %u to end, because %u blocks run at a time", what, c->limits->concurrent);
        if (missing == MISSING_STEP)
            snprintf(text, sizeof(text), "step %u of block %u", step, what);
        if (missing == MISSING_MESSAGE)
            snprintf(text, sizeof(text), "a message from rank %u on channel %u", c->connectors[what].source,
                     c->connectors[what].channel);
        if (missing == MISSING_SLOT)
            snprintf(text, sizeof(text), "one of the %u slots to rank %u on channel %u", c->limits->slots,
                     c->connectors[what].destination, c->connectors[what].channel);
        rondo_verification_fail(c, block->first + block->at, "deadlock: waits for ever for %s", text);
        return;
    }
}

static void check_result(struct rondo_verification *c)
{
    const struct rondo_conditions *conditions = c->conditions;
    int whole = rondo_conditions_whole(conditions);
    for (uint32_t rank = 0; rank < conditions->ranks && c->result == RONDO_SUCCESS; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(conditions, rank, RONDO_OUTPUT) && c->result == RONDO_SUCCESS; i++) {
            struct rondo_value want;
            if (!rondo_wants_at(&c->wants, rank, i, &want))
                continue;
            const struct rondo_verify_chunk *chunk = chunk_at(c, rank, RONDO_OUTPUT, i);
            c->ordered = c->ordered && chunk->value.ordered;
            if (!rondo_value_same(chunk->value, want))
                c->result = rondo_fail(RONDO_ERR_ARGUMENT,
                                       "program '%s'%s: rank %u, output chunk %u %s %u input chunk%s, but must be %s %u",
                                       c->name, c->shared ? ", in place" : "", rank, i,
                                       chunk->value.count == want.count ? "is another combination of" : "is the combination of",
                                       chunk->value.count, chunk->value.count == 1 ? "" : "s", "that of", want.count);
            else if (whole && conditions->ranks > 1 && !chunk->value.finished)
                c->result =
                    rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u, output chunk %u: no step completes the result",
                               c->name, rank, i);
        }
    for (size_t w = 0; w < c->connector_count && c->result == RONDO_SUCCESS; w++)
        if (c->connectors[w].filled != c->connectors[w].taken)
            c->result = rondo_fail(RONDO_ERR_ARGUMENT,
                                   "program '%s': %u messages from rank %u to rank %u on channel %u are never received",
                                   c->name, c->connectors[w].filled - c->connectors[w].taken, c->connectors[w].source,
                                   c->connectors[w].destination, c->connectors[w].channel);
}

/* Checks a barrier: every rank has heard of every other. */
static void check_barrier(struct rondo_verification *c)
{
    for (uint32_t rank = 0; rank < c->conditions->ranks && c->result == RONDO_SUCCESS; rank++)
        for (uint32_t other = 0; other < c->conditions->ranks; other++) {
            int heard = 0;
            for (uint32_t b = c->rank_first[rank]; b < c->rank_first[rank + 1]; b++)
                heard |= (int) (c->blocks[b].heard[other / 64] >> (other % 64) & 1);
            if (!heard) {
                c->result =
                    rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': rank %u can leave the barrier before rank %u has begun",
                               c->name, rank, other);
                return;
            }
        }
}

rondo_result_t rondo_verify_simulate(struct rondo_verification *c)
{
    for (uint32_t b = (uint32_t) c->block_count; b > 0; b--)
        enqueue(c, b - 1);
    while (c->ready_count > 0 && c->result == RONDO_SUCCESS) {
        struct rondo_verify_block *block = &c->blocks[c->ready[--c->ready_count]];
        block->queued = 0;
        while (block->at < block->count && c->result == RONDO_SUCCESS && can_run(c, block))
            run_step(c, block);
    }
    if (c->result == RONDO_SUCCESS)
        report_deadlock(c);
    if (c->result == RONDO_SUCCESS)
        check_result(c);
    if (c->result == RONDO_SUCCESS && c->conditions->kind == RONDO_KIND_BARRIER)
        check_barrier(c);
    return c->result;
}
