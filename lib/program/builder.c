/* The calls of the language (rondo_program.h): each is checked, noted as an operation, and applied to what the chunks hold. See
 * lib/program/builder.h. */
#include "lib/program/builder.h"

#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/program/msccl_ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rondo_result_t rondo_program_builder_fail(struct rondo_program_builder *builder, rondo_result_t code, const char *format, ...)
{
    if (builder->result != RONDO_SUCCESS)
        return builder->result;
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    builder->result = code;
    snprintf(builder->message, sizeof(builder->message), "program '%s', operation %u: %s", builder->name, builder->calls,
             reason);
    return rondo_fail(code, "%s", builder->message);
}

/* ---- creating ---- */

static rondo_result_t make_buffers(struct rondo_program_builder *builder)
{
    const struct rondo_conditions *c = &builder->conditions;
    builder->buffers = calloc((size_t) c->ranks * RONDO_BUFFERS, sizeof(*builder->buffers));
    if (builder->buffers == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a program of %u ranks", c->ranks);
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (int b = RONDO_INPUT; b <= RONDO_OUTPUT; b++) {
            struct rondo_cells *buffer = &builder->buffers[rank * RONDO_BUFFERS + (uint32_t) b];
            buffer->count = rondo_conditions_chunks(c, rank, (enum rondo_buffer) b);
            builder->cell_count += buffer->count;
            if (builder->cell_count > RONDO_CHUNKS_MAX)
                return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': more than %llu chunks", builder->name,
                                  (unsigned long long) RONDO_CHUNKS_MAX);
            buffer->cells = calloc((size_t) buffer->count + 1, sizeof(*buffer->cells));
            if (buffer->cells == NULL)
                return rondo_fail(RONDO_ERR_MEMORY, "no memory for %u chunks", buffer->count);
        }
    return RONDO_SUCCESS;
}

static void give_input(struct rondo_program_builder *builder, uint64_t salt)
{
    const struct rondo_conditions *c = &builder->conditions;
    for (uint32_t rank = 0; rank < c->ranks; rank++)
        for (uint32_t i = 0; rondo_conditions_given(c, rank) && i < rondo_conditions_chunks(c, rank, RONDO_INPUT); i++) {
            enum rondo_buffer buffer = RONDO_INPUT;
            uint32_t index = i;
            rondo_conditions_resolve(c, builder->in_place, rank, &buffer, &index);
            struct rondo_cell *cell = &builder->buffers[rank * RONDO_BUFFERS + buffer].cells[index];
            cell->value = rondo_value_input(salt, rank, i);
            cell->index = i;
        }
}

rondo_result_t rondo_program_builder_create(rondo_program_t *program, const char *name,
                                            const struct rondo_conditions *conditions, int in_place)
{
    struct rondo_program_builder *builder = calloc(1, sizeof(*builder));
    *program = NULL;
    if (builder == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a program");
    snprintf(builder->name, sizeof(builder->name), "%s", name);
    builder->references = 1;
    builder->conditions = *conditions;
    builder->in_place = in_place || rondo_conditions_always_shared(conditions);
    builder->directives = (struct rondo_directives) RONDO_DIRECTIVES_NONE;
    builder->channel = RONDO_CHANNEL_AUTO;
    builder->channels = 1;
    builder->factor = builder->granularity = 1;
    uint64_t salt = rondo_value_salt();
    rondo_result_t status = make_buffers(builder);
    if (status == RONDO_SUCCESS && conditions->kind != RONDO_KIND_CUSTOM)
        status = rondo_wants_prepare(&builder->wants, &builder->conditions, salt);
    if (status != RONDO_SUCCESS) {
        rondo_program_builder_release(builder);
        return status;
    }
    builder->wants.salt = salt;
    give_input(builder, salt);
    return rondo_program_builder_open(builder, program);
}

rondo_result_t rondo_program_builder_create_shaped(rondo_program_t *program, const char *name, const struct rondo_shape *shape,
                                                   int chunks, int in_place)
{
    struct rondo_conditions conditions = {.kind = shape->kind,
                                          .ranks = (uint32_t) shape->size,
                                          .root = (uint32_t) shape->root,
                                          .block_chunks = (uint32_t) chunks};
    return rondo_program_builder_create(program, name, &conditions, in_place);
}

rondo_result_t rondo_program_builder_open(struct rondo_program_builder *builder, rondo_program_t *program)
{
    *program = builder->handle = rondo_handle_open(RONDO_HANDLE_PROGRAM, builder);
    if (builder->handle != NULL)
        return RONDO_SUCCESS;
    rondo_result_t result = rondo_fail(RONDO_ERR_MEMORY, "program '%s': no memory for a handle", builder->name);
    rondo_program_builder_release(builder);
    return result;
}

void rondo_program_destroy(rondo_program_t program)
{
    struct rondo_program_builder *builder;
    if (program == NULL || rondo_program_builder_of(program, "rondo_program_destroy", &builder) != RONDO_SUCCESS)
        return;
    builder->handle = NULL;
    rondo_handle_close(program);
    rondo_program_builder_release(builder);
}

void rondo_program_builder_release(struct rondo_program_builder *builder)
{
    /* ACQ_REL: whichever thread gives up the last reference sees what the others did before they gave up theirs. */
    if (__atomic_sub_fetch(&builder->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; builder->buffers != NULL && i < (size_t) builder->conditions.ranks * RONDO_BUFFERS; i++)
        free(builder->buffers[i].cells);
    rondo_wants_release(&builder->wants);
    rondo_msccl_ir_free(builder->ir);
    free(builder->buffers);
    free(builder->ops);
    free(builder->conditions.assumptions);
    free(builder->conditions.requirements);
    free(builder->conditions.terms);
    free(builder);
}

/* ---- chunks ---- */

static struct rondo_cells *cells_of(struct rondo_program_builder *builder, uint32_t rank, int buffer)
{
    return &builder->buffers[rank * RONDO_BUFFERS + (uint32_t) buffer];
}

/* Extends scratch to at least `end` chunks. Returns 0 after noting the error if that is too much. */
static int extend_scratch(struct rondo_program_builder *builder, uint32_t rank, uint64_t end)
{
    struct rondo_cells *scratch = cells_of(builder, rank, RONDO_SCRATCH);
    if (end <= scratch->count)
        return 1;
    builder->cell_count += end - scratch->count;
    if (builder->cell_count > RONDO_CHUNKS_MAX) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "scratch chunk %llu of rank %u: more than %llu chunks in all",
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
        rondo_program_builder_fail(builder, RONDO_ERR_MEMORY, "no memory for %llu scratch chunks", (unsigned long long) end);
        return 0;
    }
    memset(cells + scratch->count, 0, (size_t) (end - scratch->count) * sizeof(*cells));
    scratch->cells = cells;
    scratch->count = (uint32_t) end;
    return 1;
}

/* Chunks [index, index + count) of a rank's buffer, as a call names them. */
struct range {
    int64_t rank;
    int buffer;
    uint64_t index, count;
};

/*
 * Checks a range and writes the name of its first chunk as rondo_conditions_resolve gives it. writes: the call writes there, so
 * scratch grows as needed. Returns 0 after noting the error if the range is wrong.
 */
static int resolve(struct rondo_program_builder *builder, const struct range *range, int writes,
                   enum rondo_buffer *resolved_buffer, uint32_t *resolved_index)
{
    const struct rondo_conditions *c = &builder->conditions;
    int64_t rank = range->rank;
    int buffer = range->buffer;
    uint64_t index = range->index, count = range->count;
    if (builder->ir != NULL) {
        rondo_program_builder_fail(builder, RONDO_ERR_STATE, "the program was read from a file and cannot be added to");
        return 0;
    }
    if (rank < 0 || rank >= c->ranks) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "rank %lld is not in [0, %u)", (long long) rank, c->ranks);
        return 0;
    }
    if (buffer < 0 || buffer >= RONDO_BUFFERS) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "%d is not a buffer", buffer);
        return 0;
    }
    uint64_t chunks = buffer == RONDO_SCRATCH ? RONDO_CHUNKS_MAX : cells_of(builder, (uint32_t) rank, buffer)->count;
    if (count == 0 || count > UINT16_MAX || index >= chunks || count > chunks - index) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "chunks [%llu, +%llu) of rank %lld's %s: it has %llu",
                                   (unsigned long long) index, (unsigned long long) count, (long long) rank,
                                   rondo_buffer_name(buffer), (unsigned long long) chunks);
        return 0;
    }
    if (buffer == RONDO_SCRATCH && writes && !extend_scratch(builder, (uint32_t) rank, index + count))
        return 0;
    *resolved_buffer = (enum rondo_buffer) buffer;
    *resolved_index = (uint32_t) index;
    rondo_conditions_resolve(c, builder->in_place, (uint32_t) rank, resolved_buffer, resolved_index);
    return 1;
}

static rondo_chunk_t nothing(rondo_program_t program)
{
    rondo_chunk_t none = {program, -1, RONDO_BUFFER_INPUT, 0, 0, 0};
    return none;
}

/* Begins a call of the language: returns the program, or NULL if the handle stands for none (rondo_last_error says why) or an
 * earlier call was wrong. function: the public call. */
static struct rondo_program_builder *begin(rondo_program_t program, const char *function)
{
    struct rondo_program_builder *builder;
    if (rondo_program_builder_of(program, function, &builder) != RONDO_SUCCESS || builder->result != RONDO_SUCCESS)
        return NULL;
    builder->calls++;
    return builder;
}

rondo_chunk_t rondo_chunk(rondo_program_t program, int rank, rondo_buffer_t buffer, size_t index, size_t count)
{
    struct rondo_program_builder *builder = begin(program, "rondo_chunk");
    enum rondo_buffer where;
    uint32_t first;
    if (builder == NULL)
        return nothing(program);
    if (!resolve(builder, &(struct range){rank, (int) buffer, index, count}, 0, &where, &first))
        return nothing(builder->handle);
    const struct rondo_cells *cells = cells_of(builder, (uint32_t) rank, where);
    for (uint32_t k = 0; k < count; k++)
        if (first + k >= cells->count || cells->cells[first + k].value.count == 0) {
            rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "chunk %zu of rank %d's %s is uninitialized", index + k,
                                       rank, rondo_buffer_name((int) buffer));
            return nothing(builder->handle);
        }
    rondo_chunk_t chunk = {program, rank, (rondo_buffer_t) where, first, (uint32_t) count, builder->calls};
    return chunk;
}

/* Whether every chunk of the reference is still what it was when the reference was made; notes the error if not. */
static int fresh(struct rondo_program_builder *builder, const rondo_chunk_t *c)
{
    if (c->program != builder->handle || c->rank < 0 || (uint32_t) c->rank >= builder->conditions.ranks ||
        (unsigned) c->buffer >= RONDO_BUFFERS) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "not a reference to chunks of this program");
        return 0;
    }
    const struct rondo_cells *cells = cells_of(builder, (uint32_t) c->rank, (int) c->buffer);
    if (c->count == 0 || c->index >= cells->count || c->count > cells->count - c->index) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "not a reference to chunks of this program");
        return 0;
    }
    for (uint32_t k = 0; k < c->count; k++)
        if (cells->cells[c->index + k].written > c->stamp) {
            rondo_program_builder_fail(
                builder, RONDO_ERR_ARGUMENT, "stale reference: chunk %u of rank %d's %s was overwritten by operation %u",
                c->index + k, c->rank, rondo_buffer_name((int) c->buffer), cells->cells[c->index + k].written);
            return 0;
        }
    return 1;
}

/* Whether the chunk now holds what the operator's last step must be applied to, at this place. */
static int finishes(const struct rondo_program_builder *builder, uint32_t rank, enum rondo_buffer buffer, uint32_t index,
                    const struct rondo_cell *cell, int reduces)
{
    enum rondo_kind kind = builder->conditions.kind;
    struct rondo_value want;
    if (!rondo_conditions_reduces(&builder->conditions))
        return 0;
    if (kind == RONDO_KIND_SCAN || kind == RONDO_KIND_EXSCAN)
        return buffer == RONDO_OUTPUT && rondo_wants_at(&builder->wants, rank, index, &want) &&
               rondo_value_same(cell->value, want);
    return reduces && rondo_wants_complete(&builder->wants, cell->index, cell->value);
}

/* Appends the operation. Returns 0 after noting the error if there are too many, or memory is out. */
static int note(struct rondo_program_builder *builder, const struct rondo_op *op)
{
    if (builder->op_count >= RONDO_OPS_MAX) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "more than %zu operations", RONDO_OPS_MAX);
        return 0;
    }
    if (!rondo_grow((void **) &builder->ops, builder->op_count, &builder->op_room, sizeof(*op))) {
        rondo_program_builder_fail(builder, RONDO_ERR_MEMORY, "no memory for %zu operations", builder->op_count);
        return 0;
    }
    builder->ops[builder->op_count++] = *op;
    return 1;
}

/* Applies the operation to the chunks and notes it: as several operations, if some of its results are complete and others are
 * not. */
static rondo_chunk_t apply(struct rondo_program_builder *builder, const struct rondo_op *whole)
{
    struct rondo_op op = *whole;
    struct rondo_cell *to = cells_of(builder, op.rank, op.buffer)->cells + op.destination;
    const struct rondo_cell *from = cells_of(builder, op.source_rank, op.source_buffer)->cells + op.source;
    int overlaps = op.source_rank == op.rank && op.source_buffer == op.buffer && op.source < op.destination + op.count &&
                   op.destination < op.source + op.count;
    if (overlaps) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "chunks [%u, +%u) of rank %u's %s overlap the destination",
                                   op.source, op.count, op.rank, rondo_buffer_name(op.buffer));
        return nothing(builder->handle);
    }
    uint32_t first = 0;
    int before = 0;
    for (uint32_t k = 0; k < op.count; k++) {
        struct rondo_cell result = from[k];
        if (op.reduces) {
            result.value = rondo_value_combine(to[k].value, from[k].value);
            result.index = to[k].index == from[k].index ? to[k].index : UINT32_MAX;
        }
        result.written = builder->calls;
        int finished = finishes(builder, op.rank, (enum rondo_buffer) op.buffer, op.destination + k, &result, op.reduces);
        to[k] = result;
        if (k > 0 && finished != before) {
            op.source = whole->source + first, op.destination = whole->destination + first, op.count = k - first;
            op.finishes = (uint8_t) before;
            if (!note(builder, &op))
                return nothing(builder->handle);
            first = k;
            op = *whole;
        }
        before = finished;
    }
    op.source = whole->source + first, op.destination = whole->destination + first, op.count = whole->count - first;
    op.finishes = (uint8_t) before;
    if (!note(builder, &op))
        return nothing(builder->handle);
    rondo_chunk_t chunk = {builder->handle,    (int) op.rank, (rondo_buffer_t) op.buffer,
                           whole->destination, whole->count,  builder->calls};
    return chunk;
}

rondo_chunk_t rondo_chunk_copy(rondo_chunk_t c, int rank, rondo_buffer_t buffer, size_t index)
{
    struct rondo_program_builder *builder = begin(c.program, "rondo_chunk_copy");
    enum rondo_buffer where;
    uint32_t first;
    if (builder == NULL)
        return nothing(c.program);
    if (!fresh(builder, &c) || !resolve(builder, &(struct range){rank, (int) buffer, index, c.count}, 1, &where, &first))
        return nothing(builder->handle);
    if ((uint32_t) rank == (uint32_t) c.rank && where == (enum rondo_buffer) c.buffer && first == c.index)
        return c; /* in place it is there already */
    struct rondo_op op = {.source_rank = (uint32_t) c.rank,
                          .source = c.index,
                          .rank = (uint32_t) rank,
                          .destination = first,
                          .count = c.count,
                          .channel = builder->channel,
                          .source_buffer = (uint8_t) c.buffer,
                          .buffer = (uint8_t) where,
                          .factor = builder->factor};
    return apply(builder, &op);
}

rondo_chunk_t rondo_chunk_reduce(rondo_chunk_t c1, rondo_chunk_t c2)
{
    struct rondo_program_builder *builder = begin(c1.program, "rondo_chunk_reduce");
    if (builder == NULL)
        return nothing(c1.program);
    if (!fresh(builder, &c1) || !fresh(builder, &c2))
        return nothing(builder->handle);
    if (c1.count != c2.count) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "%u chunks of rank %d cannot be reduced with %u of rank %d",
                                   c1.count, c1.rank, c2.count, c2.rank);
        return nothing(builder->handle);
    }
    struct rondo_op op = {.source_rank = (uint32_t) c2.rank,
                          .source = c2.index,
                          .rank = (uint32_t) c1.rank,
                          .destination = c1.index,
                          .count = c1.count,
                          .channel = builder->channel,
                          .source_buffer = (uint8_t) c2.buffer,
                          .buffer = (uint8_t) c1.buffer,
                          .reduces = 1,
                          .factor = builder->factor};
    return apply(builder, &op);
}

/* ---- directives ---- */

void rondo_program_channel(rondo_program_t program, int channel)
{
    struct rondo_program_builder *builder = begin(program, "rondo_program_channel");
    if (builder == NULL)
        return;
    if (channel < -1 || channel > RONDO_CHANNEL_MAX) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "channel %d is not in [-1, %d]", channel, RONDO_CHANNEL_MAX);
        return;
    }
    builder->channel = channel;
    if (channel + 1 > builder->channels)
        builder->channels = channel + 1;
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

void rondo_program_parallelize(rondo_program_t program, int factor)
{
    struct rondo_program_builder *builder = begin(program, "rondo_program_parallelize");
    if (builder == NULL)
        return;
    uint64_t product = factor < 1 ? 0 : (uint64_t) builder->factor * (uint32_t) factor;
    if (product == 0 || product > RONDO_FACTOR_MAX || common_multiple(builder->granularity, (uint32_t) product) > 4096) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "parallelize by %d makes %llu instances; 1 to %d are possible",
                                   factor, (unsigned long long) product, RONDO_FACTOR_MAX);
        return;
    }
    if (builder->depth == (int) (sizeof(builder->factors) / sizeof(builder->factors[0]))) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "parallelize is nested more than %d deep", builder->depth);
        return;
    }
    builder->factors[builder->depth++] = builder->factor;
    builder->factor = (uint32_t) product;
    builder->granularity = common_multiple(builder->granularity, builder->factor);
}

void rondo_program_serialize(rondo_program_t program)
{
    struct rondo_program_builder *builder = begin(program, "rondo_program_serialize");
    if (builder == NULL)
        return;
    if (builder->depth == 0) {
        rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "serialize without parallelize");
        return;
    }
    builder->factor = builder->factors[--builder->depth];
}

/* Adds to a custom program's pre- or postcondition what a chunk holds; `what` names the call. */
static void add_holding(struct rondo_program_builder *builder, const char *what, const struct rondo_holding *given,
                        const int *ranks, const size_t *indexes)
{
    struct rondo_conditions *c = &builder->conditions;
    struct rondo_holding holding = *given;
    const int assumes = *what == 'a';
    struct rondo_holding **list = assumes ? &c->assumptions : &c->requirements;
    size_t *count = assumes ? &c->assumption_count : &c->requirement_count;
    holding.term_first = (uint32_t) c->term_count;
    for (uint32_t i = 0; i < holding.terms; i++) {
        struct rondo_term term = {(uint32_t) ranks[i], (uint32_t) indexes[i]};
        if (ranks[i] < 0 || term.rank >= c->ranks || indexes[i] >= c->inputs) {
            rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "%s: there is no input chunk %zu of rank %d", what,
                                       indexes[i], ranks[i]);
            return;
        }
        if (!rondo_grow((void **) &c->terms, c->term_count, &c->term_room, sizeof(term))) {
            rondo_program_builder_fail(builder, RONDO_ERR_MEMORY, "no memory for conditions");
            return;
        }
        c->terms[c->term_count++] = term;
    }
    if (!rondo_grow((void **) list, *count, assumes ? &c->assumption_room : &c->requirement_room, sizeof(holding))) {
        rondo_program_builder_fail(builder, RONDO_ERR_MEMORY, "no memory for conditions");
        return;
    }
    (*list)[(*count)++] = holding;
    if (builder->ir != NULL)
        builder->ir->conditions = *c;
}

/* Checks what a call adds to a condition, of so many chunks a rank, at least so many terms. Returns 0 after noting the error.
 */
static int check_holding(struct rondo_program_builder *builder, const char *what, int64_t rank, uint64_t chunk, int64_t terms,
                         uint32_t chunks, int least, const void *ranks, const void *indexes)
{
    const struct rondo_conditions *c = &builder->conditions;
    if (c->kind == RONDO_KIND_CUSTOM && rank >= 0 && rank < c->ranks && chunk < chunks && terms >= least &&
        (terms == 0 || (ranks != NULL && indexes != NULL)))
        return 1;
    rondo_program_builder_fail(builder, RONDO_ERR_ARGUMENT, "%s: rank %lld, %s chunk %llu, %lld terms: %s", what,
                               (long long) rank, *what == 'a' ? "input" : "output", (unsigned long long) chunk,
                               (long long) terms,
                               c->kind != RONDO_KIND_CUSTOM ? "the collective says itself what it requires" : "out of range");
    return 0;
}

void rondo_program_require(rondo_program_t program, int rank, size_t output, int count, const int *ranks, const size_t *indexes)
{
    struct rondo_program_builder *builder = begin(program, "rondo_program_require");
    if (builder == NULL ||
        !check_holding(builder, "require", rank, output, count, builder->conditions.outputs, 1, ranks, indexes))
        return;
    const struct rondo_holding holding = {.rank = (uint32_t) rank, .chunk = (uint32_t) output, .terms = (uint32_t) count};
    add_holding(builder, "require", &holding, ranks, indexes);
}

void rondo_program_assume(rondo_program_t program, int rank, size_t input, int count, const int *ranks, const size_t *indexes)
{
    struct rondo_program_builder *builder = begin(program, "rondo_program_assume");
    if (builder == NULL || !check_holding(builder, "assume", rank, input, count, builder->conditions.inputs, 0, ranks, indexes))
        return;
    if (builder->op_count > 0) {
        rondo_program_builder_fail(builder, RONDO_ERR_STATE, "assume: rank %d, input chunk %zu: after the first operation",
                                   rank, input);
        return;
    }
    const struct rondo_holding holding = {.rank = (uint32_t) rank, .chunk = (uint32_t) input, .terms = (uint32_t) count};
    add_holding(builder, "assume", &holding, ranks, indexes);
    if (builder->ir != NULL || builder->result != RONDO_SUCCESS)
        return;
    struct rondo_value value = {.count = 0};
    for (int i = 0; i < count; i++)
        value = rondo_value_combine(value, rondo_value_input(builder->wants.salt, (uint32_t) ranks[i], (uint32_t) indexes[i]));
    cells_of(builder, (uint32_t) rank, RONDO_INPUT)->cells[input].value = value;
}

/* ---- the end ---- */

rondo_result_t rondo_program_builder_verify(struct rondo_program_builder *builder)
{
    const struct rondo_conditions *c = &builder->conditions;
    if (builder->result != RONDO_SUCCESS)
        return rondo_fail(builder->result, "%s", builder->message);
    if (c->kind == RONDO_KIND_CUSTOM && c->requirement_count == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT,
                          "program '%s': a custom program without a postcondition, which says what it must compute",
                          builder->name);
    if (builder->ir != NULL) /* what it computes is known when it is compiled */
        return RONDO_SUCCESS;
    if (builder->depth != 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %d parallelize without serialize", builder->name, builder->depth);
    struct rondo_wants wants;
    rondo_result_t status = rondo_wants_prepare(&wants, c, builder->wants.salt);
    for (uint32_t rank = 0; rank < c->ranks && status == RONDO_SUCCESS; rank++)
        for (uint32_t i = 0; i < rondo_conditions_chunks(c, rank, RONDO_OUTPUT) && status == RONDO_SUCCESS; i++) {
            struct rondo_value want;
            enum rondo_buffer buffer = RONDO_OUTPUT;
            uint32_t index = i;
            if (!rondo_wants_at(&wants, rank, i, &want))
                continue;
            rondo_conditions_resolve(c, builder->in_place, rank, &buffer, &index);
            const struct rondo_cell *cell = &builder->buffers[rank * RONDO_BUFFERS + buffer].cells[index];
            if (!rondo_value_same(cell->value, want))
                status =
                    rondo_fail(RONDO_ERR_ARGUMENT,
                               "program '%s': output chunk %u of rank %u ends as the combination of %u input chunks%s, not "
                               "of the %u that %s asks for",
                               builder->name, i, rank, cell->value.count, cell->value.count == want.count ? ", but others" : "",
                               want.count, rondo_kind_name(c->kind));
        }
    rondo_wants_release(&wants);
    return status;
}
