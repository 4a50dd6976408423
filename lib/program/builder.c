/* See trace.h. The calls of the language: each is checked, noted, and carried out on what the chunks hold. */
#include "lib/program/builder.h"

#include "lib/base/error.h"
#include "lib/program/msccl_ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rondo_grow(void **items, size_t count, size_t *room, size_t bytes)
{
    if (count < *room)
        return 1;
    size_t wanted = *room == 0 ? 16 : 2 * *room;
    void *grown = realloc(*items, wanted * bytes);
    if (grown == NULL)
        return 0;
    *items = grown;
    *room = wanted;
    return 1;
}

rondo_result_t rondo_trace_fail(struct rondo_trace *trace, rondo_result_t code, const char *format, ...)
{
    if (trace->result != RONDO_SUCCESS)
        return trace->result;
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    trace->result = code;
    snprintf(trace->message, sizeof(trace->message), "program '%s', operation %u: %s", trace->name, trace->calls, reason);
    return rondo_fail(code, "%s", trace->message);
}

/* ---- creating ---- */

static rondo_result_t make_buffers(struct rondo_trace *trace)
{
    const struct rondo_conditions *c = &trace->conditions;
    trace->buffers = calloc((size_t) c->ranks * RONDO_BUFFERS, sizeof(*trace->buffers));
    if (trace->buffers == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a program of %u ranks", c->ranks);
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (int b = RONDO_INPUT; b <= RONDO_OUTPUT; b++) {
            struct rondo_cells *buffer = &trace->buffers[rank * RONDO_BUFFERS + (uint32_t) b];
            buffer->count = rondo_conditions_chunks(c, rank, (enum rondo_buffer) b);
            trace->cell_count += buffer->count;
            if (trace->cell_count > RONDO_CHUNKS_MAX)
                return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': more than %llu chunks", trace->name,
                                  (unsigned long long) RONDO_CHUNKS_MAX);
            buffer->cells = calloc((size_t) buffer->count + 1, sizeof(*buffer->cells));
            if (buffer->cells == NULL)
                return rondo_fail(RONDO_ERR_MEMORY, "no memory for %u chunks", buffer->count);
        }
    return RONDO_SUCCESS;
}

static void give_input(struct rondo_trace *trace, uint64_t salt)
{
    const struct rondo_conditions *c = &trace->conditions;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; rondo_conditions_given(c, rank) && i < rondo_conditions_chunks(c, rank, RONDO_INPUT); i++) {
            enum rondo_buffer buffer = RONDO_INPUT;
            uint32_t index = i;
            rondo_conditions_resolve(c, trace->in_place, rank, &buffer, &index);
            struct rondo_cell *cell = &trace->buffers[rank * RONDO_BUFFERS + buffer].cells[index];
            cell->value = rondo_value_input(salt, rank, i);
            cell->index = i;
        }
}

static rondo_result_t create(struct rondo_trace **result, const char *name, const struct rondo_conditions *conditions,
                             int in_place)
{
    struct rondo_trace *trace = calloc(1, sizeof(*trace));
    *result = NULL;
    if (trace == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a program");
    snprintf(trace->name, sizeof(trace->name), "%s", name);
    trace->references = 1;
    trace->conditions = *conditions;
    trace->in_place = in_place || rondo_conditions_always_shared(conditions);
    trace->channel = RONDO_CHANNEL_AUTO;
    trace->channels = 1;
    trace->factor = trace->granularity = 1;
    uint64_t salt = rondo_value_salt();
    rondo_result_t status = make_buffers(trace);
    if (status == RONDO_SUCCESS && conditions->kind != RONDO_KIND_CUSTOM)
        status = rondo_wants_prepare(&trace->wants, &trace->conditions, salt);
    if (status != RONDO_SUCCESS) {
        rondo_program_destroy(trace);
        return status;
    }
    trace->wants.salt = salt;
    give_input(trace, salt);
    *result = trace;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_trace_create(struct rondo_trace **trace, const char *name, const struct rondo_shape *shape, int chunks,
                                  int in_place)
{
    struct rondo_conditions conditions = {
        .kind = shape->kind, .ranks = (uint32_t) shape->size, .root = (uint32_t) shape->root, .pieces = (uint32_t) chunks};
    return create(trace, name, &conditions, in_place);
}

static int name_is_good(const char *name)
{
    size_t length = name == NULL ? 0 : strnlen(name, RONDO_NAME_BYTES);
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.", c) != NULL))
            return 0;
    }
    return length > 0 && length < RONDO_NAME_BYTES;
}

rondo_result_t rondo_program_create(rondo_program_t *program, const rondo_program_signature_t *signature)
{
    if (program == NULL || signature == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_create: %s is NULL", program == NULL ? "program" : "signature");
    *program = NULL;
    if (!name_is_good(signature->name))
        return rondo_fail(RONDO_ERR_ARGUMENT, "a program's name has 1 to %d letters, digits and -_.", RONDO_NAME_BYTES - 1);
    enum rondo_kind kind = rondo_kind_find(signature->collective);
    int custom = kind == RONDO_KIND_CUSTOM;
    if (kind == RONDO_KINDS || kind == RONDO_KIND_SEND_TO || kind == RONDO_KIND_RECEIVE_FROM)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': '%s' is not a collective", signature->name,
                          signature->collective == NULL ? "NULL" : signature->collective);
    if (signature->ranks < 1 || signature->ranks > RONDO_RANKS_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %d ranks are not in [1, %d]", signature->name, signature->ranks,
                          RONDO_RANKS_MAX);
    if (signature->root < 0 || signature->root >= signature->ranks)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': root %d is not in [0, %d)", signature->name, signature->root,
                          signature->ranks);
    if (!custom && (signature->chunks < 1 || signature->chunks > 1 << 20))
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %d chunks are not in [1, 2^20]", signature->name,
                          signature->chunks);
    if (custom &&
        (signature->inputs < 0 || signature->outputs < 0 || signature->inputs > 1 << 20 || signature->outputs > 1 << 20))
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %d input and %d output chunks are not in [0, 2^20]",
                          signature->name, signature->inputs, signature->outputs);
    struct rondo_conditions conditions = {.kind = kind,
                                          .ranks = (uint32_t) signature->ranks,
                                          .root = (uint32_t) signature->root,
                                          .pieces = custom ? 1 : (uint32_t) signature->chunks,
                                          .inputs = custom ? (uint32_t) signature->inputs : 0,
                                          .outputs = custom ? (uint32_t) signature->outputs : 0};
    if (signature->in_place && !rondo_conditions_may_share(&conditions))
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %s has no in-place form", signature->name, signature->collective);
    return create(program, signature->name, &conditions, signature->in_place);
}

void rondo_program_destroy(rondo_program_t trace)
{
    /* The last one to let go sees what the others did before they did. */
    if (trace == NULL || __atomic_sub_fetch(&trace->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; trace->buffers != NULL && i < (size_t) trace->conditions.ranks * RONDO_BUFFERS; i++)
        free(trace->buffers[i].cells);
    rondo_wants_release(&trace->wants);
    rondo_raw_free(trace->raw);
    free(trace->buffers);
    free(trace->ops);
    free(trace->conditions.requirements);
    free(trace->conditions.terms);
    free(trace);
}

/* ---- chunks ---- */

static struct rondo_cells *cells_of(struct rondo_trace *trace, uint32_t rank, int buffer)
{
    return &trace->buffers[rank * RONDO_BUFFERS + (uint32_t) buffer];
}

/* Scratch reaches to `end` at least. */
static int extend_scratch(struct rondo_trace *trace, uint32_t rank, uint64_t end)
{
    struct rondo_cells *scratch = cells_of(trace, rank, RONDO_SCRATCH);
    if (end <= scratch->count)
        return 1;
    trace->cell_count += end - scratch->count;
    if (trace->cell_count > RONDO_CHUNKS_MAX) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "scratch chunk %llu of rank %u: more than %llu chunks in all",
                         (unsigned long long) end - 1, rank, (unsigned long long) RONDO_CHUNKS_MAX);
        return 0;
    }
    uint64_t room = 16;
    while (room < end)
        room *= 2;
    struct rondo_cell *cells = scratch->cells;
    uint64_t old_room = 16;
    while (old_room < scratch->count)
        old_room *= 2;
    if (cells == NULL || room > old_room)
        cells = realloc(cells, room * sizeof(*cells));
    if (cells == NULL) {
        rondo_trace_fail(trace, RONDO_ERR_MEMORY, "no memory for %llu scratch chunks", (unsigned long long) end);
        return 0;
    }
    memset(cells + scratch->count, 0, (size_t) (end - scratch->count) * sizeof(*cells));
    scratch->cells = cells;
    scratch->count = (uint32_t) end;
    return 1;
}

/* Checks a range and gives its resolved name. 0: wrong, and noted. */
static int resolve(struct rondo_trace *trace, int64_t rank, int buffer, uint64_t index, uint64_t count, int writes,
                   enum rondo_buffer *resolved_buffer, uint32_t *resolved_index)
{
    const struct rondo_conditions *c = &trace->conditions;
    if (trace->raw != NULL) {
        rondo_trace_fail(trace, RONDO_ERR_STATE, "the program was read from a file and cannot be added to");
        return 0;
    }
    if (rank < 0 || rank >= c->ranks) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "rank %lld is not in [0, %u)", (long long) rank, c->ranks);
        return 0;
    }
    if (buffer < 0 || buffer >= RONDO_BUFFERS) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "%d is not a buffer", buffer);
        return 0;
    }
    uint64_t chunks = buffer == RONDO_SCRATCH ? RONDO_CHUNKS_MAX : cells_of(trace, (uint32_t) rank, buffer)->count;
    if (count == 0 || count > UINT16_MAX || index >= chunks || count > chunks - index) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "chunks [%llu, +%llu) of rank %lld's %s: it has %llu",
                         (unsigned long long) index, (unsigned long long) count, (long long) rank, rondo_buffer_name(buffer),
                         (unsigned long long) chunks);
        return 0;
    }
    if (buffer == RONDO_SCRATCH && writes && !extend_scratch(trace, (uint32_t) rank, index + count))
        return 0;
    *resolved_buffer = (enum rondo_buffer) buffer;
    *resolved_index = (uint32_t) index;
    rondo_conditions_resolve(c, trace->in_place, (uint32_t) rank, resolved_buffer, resolved_index);
    return 1;
}

static rondo_chunk_t nothing(struct rondo_trace *trace)
{
    rondo_chunk_t none = {trace, -1, RONDO_BUFFER_INPUT, 0, 0, 0};
    return none;
}

rondo_chunk_t rondo_chunk(rondo_program_t trace, int rank, rondo_buffer_t buffer, size_t index, size_t count)
{
    enum rondo_buffer where;
    uint32_t first;
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return nothing(trace);
    trace->calls++;
    if (!resolve(trace, rank, (int) buffer, index, count, 0, &where, &first))
        return nothing(trace);
    const struct rondo_cells *cells = cells_of(trace, (uint32_t) rank, where);
    for (uint32_t k = 0; k < count; k++)
        if (first + k >= cells->count || cells->cells[first + k].value.count == 0) {
            rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "chunk %zu of rank %d's %s is uninitialized", index + k, rank,
                             rondo_buffer_name((int) buffer));
            return nothing(trace);
        }
    rondo_chunk_t chunk = {trace, rank, (rondo_buffer_t) where, first, (uint32_t) count, trace->calls};
    return chunk;
}

/* Every chunk of the reference is still what it was. */
static int fresh(struct rondo_trace *trace, const rondo_chunk_t *c)
{
    if (c->program != trace || c->rank < 0 || (uint32_t) c->rank >= trace->conditions.ranks ||
        (unsigned) c->buffer >= RONDO_BUFFERS) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "not a reference to chunks of this program");
        return 0;
    }
    const struct rondo_cells *cells = cells_of(trace, (uint32_t) c->rank, (int) c->buffer);
    if (c->count == 0 || c->index >= cells->count || c->count > cells->count - c->index) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "not a reference to chunks of this program");
        return 0;
    }
    for (uint32_t k = 0; k < c->count; k++)
        if (cells->cells[c->index + k].written > c->stamp) {
            rondo_trace_fail(trace, RONDO_ERR_ARGUMENT,
                             "stale reference: chunk %u of rank %d's %s was overwritten by operation %u", c->index + k, c->rank,
                             rondo_buffer_name((int) c->buffer), cells->cells[c->index + k].written);
            return 0;
        }
    return 1;
}

/* The value is what the operator's last step must be applied to, at this place. */
static int finishes(const struct rondo_trace *trace, uint32_t rank, enum rondo_buffer buffer, uint32_t index,
                    const struct rondo_cell *cell, int reduces)
{
    enum rondo_kind kind = trace->conditions.kind;
    struct rondo_value want;
    if (!rondo_conditions_reduces(&trace->conditions))
        return 0;
    if (kind == RONDO_KIND_SCAN || kind == RONDO_KIND_EXSCAN)
        return buffer == RONDO_OUTPUT && rondo_wants_at(&trace->wants, rank, index, &want) &&
               rondo_value_same(cell->value, want);
    return reduces && rondo_wants_complete(&trace->wants, cell->index, cell->value);
}

static int note(struct rondo_trace *trace, const struct rondo_op *op)
{
    if (trace->op_count >= RONDO_OPS_MAX) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "more than %zu operations", RONDO_OPS_MAX);
        return 0;
    }
    if (!rondo_grow((void **) &trace->ops, trace->op_count, &trace->op_room, sizeof(*op))) {
        rondo_trace_fail(trace, RONDO_ERR_MEMORY, "no memory for %zu operations", trace->op_count);
        return 0;
    }
    trace->ops[trace->op_count++] = *op;
    return 1;
}

/* Carries the operation out, and notes it: as several, if some of its results are complete and others are not. */
static rondo_chunk_t apply(struct rondo_trace *trace, const struct rondo_op *whole)
{
    struct rondo_op op = *whole;
    struct rondo_cell *to = cells_of(trace, op.rank, op.buffer)->cells + op.destination;
    const struct rondo_cell *from = cells_of(trace, op.source_rank, op.source_buffer)->cells + op.source;
    int overlaps = op.source_rank == op.rank && op.source_buffer == op.buffer && op.source < op.destination + op.count &&
                   op.destination < op.source + op.count;
    if (overlaps) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "chunks [%u, +%u) of rank %u's %s overlap the destination", op.source,
                         op.count, op.rank, rondo_buffer_name(op.buffer));
        return nothing(trace);
    }
    uint32_t first = 0;
    int before = 0;
    for (uint32_t k = 0; k < op.count; k++) {
        struct rondo_cell result = from[k];
        if (op.reduces) {
            result.value = rondo_value_combine(to[k].value, from[k].value);
            result.index = to[k].index == from[k].index ? to[k].index : UINT32_MAX;
        }
        result.written = trace->calls;
        int finished = finishes(trace, op.rank, (enum rondo_buffer) op.buffer, op.destination + k, &result, op.reduces);
        to[k] = result;
        if (k > 0 && finished != before) {
            op.source = whole->source + first, op.destination = whole->destination + first, op.count = k - first;
            op.finishes = (uint8_t) before;
            if (!note(trace, &op))
                return nothing(trace);
            first = k;
            op = *whole;
        }
        before = finished;
    }
    op.source = whole->source + first, op.destination = whole->destination + first, op.count = whole->count - first;
    op.finishes = (uint8_t) before;
    if (!note(trace, &op))
        return nothing(trace);
    rondo_chunk_t chunk = {trace, (int) op.rank, (rondo_buffer_t) op.buffer, whole->destination, whole->count, trace->calls};
    return chunk;
}

rondo_chunk_t rondo_chunk_copy(rondo_chunk_t c, int rank, rondo_buffer_t buffer, size_t index)
{
    struct rondo_trace *trace = c.program;
    enum rondo_buffer where;
    uint32_t first;
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return nothing(trace);
    trace->calls++;
    if (!fresh(trace, &c) || !resolve(trace, rank, (int) buffer, index, c.count, 1, &where, &first))
        return nothing(trace);
    if ((uint32_t) rank == (uint32_t) c.rank && where == (enum rondo_buffer) c.buffer && first == c.index)
        return c; /* in place it is there already */
    struct rondo_op op = {.source_rank = (uint32_t) c.rank,
                          .source = c.index,
                          .rank = (uint32_t) rank,
                          .destination = first,
                          .count = c.count,
                          .channel = trace->channel,
                          .source_buffer = (uint8_t) c.buffer,
                          .buffer = (uint8_t) where,
                          .factor = trace->factor};
    return apply(trace, &op);
}

rondo_chunk_t rondo_chunk_reduce(rondo_chunk_t c1, rondo_chunk_t c2)
{
    struct rondo_trace *trace = c1.program;
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return nothing(trace);
    trace->calls++;
    if (!fresh(trace, &c1) || !fresh(trace, &c2))
        return nothing(trace);
    if (c1.count != c2.count) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "%u chunks of rank %d cannot be reduced with %u of rank %d", c1.count,
                         c1.rank, c2.count, c2.rank);
        return nothing(trace);
    }
    struct rondo_op op = {.source_rank = (uint32_t) c2.rank,
                          .source = c2.index,
                          .rank = (uint32_t) c1.rank,
                          .destination = c1.index,
                          .count = c1.count,
                          .channel = trace->channel,
                          .source_buffer = (uint8_t) c2.buffer,
                          .buffer = (uint8_t) c1.buffer,
                          .reduces = 1,
                          .factor = trace->factor};
    return apply(trace, &op);
}

/* ---- directives ---- */

void rondo_program_channel(rondo_program_t trace, int channel)
{
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return;
    trace->calls++;
    if (channel < -1 || channel > RONDO_CHANNEL_MAX) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "channel %d is not in [-1, %d]", channel, RONDO_CHANNEL_MAX);
        return;
    }
    trace->channel = channel;
    if (channel + 1 > trace->channels)
        trace->channels = channel + 1;
}

static uint32_t common_multiple(uint32_t a, uint32_t b)
{
    uint32_t x = a, y = b;
    while (y != 0) {
        uint32_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

void rondo_program_parallelize(rondo_program_t trace, int factor)
{
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return;
    trace->calls++;
    uint64_t product = factor < 1 ? 0 : (uint64_t) trace->factor * (uint32_t) factor;
    if (product == 0 || product > RONDO_FACTOR_MAX || common_multiple(trace->granularity, (uint32_t) product) > 4096) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "parallelize by %d makes %llu instances; 1 to %d are possible", factor,
                         (unsigned long long) product, RONDO_FACTOR_MAX);
        return;
    }
    if (trace->depth == (int) (sizeof(trace->factors) / sizeof(trace->factors[0]))) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "parallelize is nested more than %d deep", trace->depth);
        return;
    }
    trace->factors[trace->depth++] = trace->factor;
    trace->factor = (uint32_t) product;
    trace->granularity = common_multiple(trace->granularity, trace->factor);
}

void rondo_program_serialize(rondo_program_t trace)
{
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return;
    trace->calls++;
    if (trace->depth == 0) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "serialize without parallelize");
        return;
    }
    trace->factor = trace->factors[--trace->depth];
}

void rondo_program_require(rondo_program_t trace, int rank, size_t output, int count, const int *ranks, const size_t *indexes)
{
    if (trace == NULL || trace->result != RONDO_SUCCESS)
        return;
    trace->calls++;
    struct rondo_conditions *c = &trace->conditions;
    if (c->kind != RONDO_KIND_CUSTOM || rank < 0 || (uint32_t) rank >= c->ranks || output >= c->outputs || count < 1 ||
        ranks == NULL || indexes == NULL) {
        rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "require: rank %d, output chunk %zu, %d terms: %s", rank, output, count,
                         c->kind != RONDO_KIND_CUSTOM ? "the collective says itself what it requires" : "out of range");
        return;
    }
    struct rondo_requirement wish = {(uint32_t) rank, (uint32_t) output, (uint32_t) c->term_count, (uint32_t) count};
    for (int i = 0; i < count; i++) {
        struct rondo_term term = {(uint32_t) ranks[i], (uint32_t) indexes[i]};
        if (ranks[i] < 0 || term.rank >= c->ranks || indexes[i] >= c->inputs) {
            rondo_trace_fail(trace, RONDO_ERR_ARGUMENT, "require: there is no input chunk %zu of rank %d", indexes[i],
                             ranks[i]);
            return;
        }
        if (!rondo_grow((void **) &c->terms, c->term_count, &c->term_room, sizeof(term))) {
            rondo_trace_fail(trace, RONDO_ERR_MEMORY, "no memory for requirements");
            return;
        }
        c->terms[c->term_count++] = term;
    }
    if (!rondo_grow((void **) &c->requirements, c->requirement_count, &c->requirement_room, sizeof(wish))) {
        rondo_trace_fail(trace, RONDO_ERR_MEMORY, "no memory for requirements");
        return;
    }
    c->requirements[c->requirement_count++] = wish;
}

/* ---- the end ---- */

rondo_result_t rondo_trace_verify(struct rondo_trace *trace)
{
    const struct rondo_conditions *c = &trace->conditions;
    if (trace->result != RONDO_SUCCESS)
        return rondo_fail(trace->result, "%s", trace->message);
    if (trace->depth != 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %d parallelize without serialize", trace->name, trace->depth);
    struct rondo_wants wants;
    rondo_result_t status = rondo_wants_prepare(&wants, c, trace->wants.salt);
    for (uint32_t rank = 0; rank < c->ranks && status == RONDO_SUCCESS; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(c, rank, RONDO_OUTPUT) && status == RONDO_SUCCESS; i++) {
            struct rondo_value want;
            enum rondo_buffer buffer = RONDO_OUTPUT;
            uint32_t index = i;
            if (!rondo_wants_at(&wants, rank, i, &want))
                continue;
            rondo_conditions_resolve(c, trace->in_place, rank, &buffer, &index);
            const struct rondo_cell *cell = &trace->buffers[rank * RONDO_BUFFERS + buffer].cells[index];
            if (!rondo_value_same(cell->value, want))
                status =
                    rondo_fail(RONDO_ERR_ARGUMENT,
                               "program '%s': output chunk %u of rank %u ends as the combination of %u input chunks%s, not "
                               "of the %u that %s asks for",
                               trace->name, i, rank, cell->value.count, cell->value.count == want.count ? ", but others" : "",
                               want.count, rondo_kind_name(c->kind));
        }
    rondo_wants_release(&wants);
    return status;
}
