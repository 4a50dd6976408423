/*
 * Reads MSCCL's XML into lib/program/msccl_ir.h. The text is untrusted: every number has a range, ranks, thread blocks and
 * steps must be complete and in order, and what the whole file may describe is bounded. What the program computes is not judged
 * here.
 */
#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/base/xml.h"
#include "lib/program/builder.h"
#include "lib/program/msccl_ir.h"

#include <stdlib.h>
#include <string.h>

#define STEPS_MAX  ((size_t) 1 << 20)
#define BLOCKS_MAX 512 /* of a rank */
#define RANKS_MAX  4096
#define CHUNKS_MAX ((uint64_t) 1 << 24) /* of all ranks together */

struct reading {
    struct rondo_msccl_ir *ir;
    char name[RONDO_NAME_BYTES];
    struct rondo_directives directives;
    long ranks, chunks, inplace, channels; /* channels 0: the file does not say */
    uint8_t *seen;                         /* [rank] */
    uint32_t rank, block;
    uint64_t chunk_count;
    long input, output;
};

static rondo_result_t refuse(const struct rondo_xml_element *e, const char *what, const char *name)
{
    return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: %s%s", e->line, what, name);
}

/* Reads the attribute as a whole number in [least, most]. If it is missing: fallback, or an error if that is out of range. */
static rondo_result_t number(const struct rondo_xml_element *e, const char *name, long least, long most, long fallback,
                             long *value)
{
    const struct rondo_xml_attribute *a = rondo_xml_attribute(e, name);
    long result = 0;
    size_t i = 0;
    *value = fallback;
    if (a == NULL)
        return fallback >= least && fallback <= most ? RONDO_SUCCESS : refuse(e, "there is no ", name);
    int negative = a->value_length > 0 && a->value[0] == '-';
    for (i = (size_t) negative; i < a->value_length && a->value[i] >= '0' && a->value[i] <= '9' && result <= (1L << 58); i++)
        result = 10 * result + (a->value[i] - '0');
    if (i != a->value_length || i == (size_t) negative)
        return refuse(e, "not a whole number: ", name);
    *value = negative ? -result : result;
    if (*value < least || *value > most)
        return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: %s=\"%ld\" is not in [%ld, %ld]", e->line, name, *value, least, most);
    return RONDO_SUCCESS;
}

static void text_of(const struct rondo_xml_element *e, const char *name, char *text, size_t bytes)
{
    const struct rondo_xml_attribute *a = rondo_xml_attribute(e, name);
    size_t length = a == NULL ? 0 : a->value_length < bytes ? a->value_length : bytes - 1;
    if (length > 0)
        memcpy(text, a->value, length);
    text[length] = '\0';
}

static rondo_result_t refuse_value(const struct rondo_xml_element *e, const char *name, const char *value, const char *why)
{
    return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: %s=\"%s\": %s", e->line, name, value, why);
}

/* Reads what says for which calls the program is and how it runs. */
static rondo_result_t read_directives(struct reading *r, const struct rondo_xml_element *e)
{
    char protocol[32], op[32];
    long least, most, separate, instances;
    text_of(e, "proto", protocol, sizeof(protocol));
    text_of(e, "redop", op, sizeof(op));
    if (!rondo_directives_set_protocol(&r->directives, protocol))
        return refuse_value(e, "proto", protocol, "none of Simple, LL and LL128");
    if (strcmp(op, "nop") == 0) /* of collectives that reduce nothing */
        op[0] = '\0';
    if (!rondo_directives_set_op(&r->directives, r->ir->conditions.kind, op))
        return refuse_value(e, "redop", op, "no operator of the collective");
    rondo_result_t status = number(e, "minBytes", 0, 1L << 58, 0, &least);
    if (status == RONDO_SUCCESS)
        status = number(e, "maxBytes", 0, 1L << 58, 0, &most);
    if (status == RONDO_SUCCESS)
        status = number(e, "outofplace", 0, 1, 1, &separate);
    if (status == RONDO_SUCCESS)
        status = number(e, "instances", 1, 1, 1, &instances); /* msccl-tools writes each instance's blocks and chunks */
    if (status == RONDO_SUCCESS && rondo_xml_attribute(e, "nchannels") != NULL)
        status = number(e, "nchannels", 1, RONDO_CHANNEL_MAX + 1, -1, &r->channels);
    if (status != RONDO_SUCCESS)
        return status;
    if (most > 0 && least > most)
        return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: minBytes=\"%ld\" is above maxBytes=\"%ld\"", e->line, least, most);
    if (!separate && !r->inplace)
        return refuse_value(e, "outofplace", "0", "with inplace=\"0\" no call can use it");
    if (!separate && r->ir->conditions.kind == RONDO_KIND_CUSTOM)
        return refuse_value(e, "outofplace", "0", "a custom program has two buffers");
    r->directives.min_bytes = (size_t) least;
    r->directives.max_bytes = (size_t) most;
    r->directives.in_place_only = !separate;
    return RONDO_SUCCESS;
}

static rondo_result_t read_algo(struct reading *r, const struct rondo_xml_element *e)
{
    struct rondo_conditions *c = &r->ir->conditions;
    char collective[32];
    long root, chunks;
    text_of(e, "coll", collective, sizeof(collective));
    text_of(e, "name", r->name, sizeof(r->name));
    for (char *at = r->name; *at != '\0'; at++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.", *at) == NULL)
            *at = '_';
    if (r->name[0] == '\0')
        strcpy(r->name, "unnamed");
    c->kind = rondo_kind_find_msccl(collective);
    if (c->kind == RONDO_KINDS)
        return refuse(e, "not a collective that a file can be for: ", collective);
    rondo_result_t status = number(e, "ngpus", 1, RANKS_MAX, -1, &r->ranks);
    if (status == RONDO_SUCCESS)
        status = number(e, "inplace", 0, 1, 0, &r->inplace);
    if (status == RONDO_SUCCESS)
        status = number(e, "nchunksperloop", 1, 1 << 20, -1, &chunks);
    if (status == RONDO_SUCCESS)
        status = number(e, "root", 0, r->ranks - 1, 0, &root);
    if (status == RONDO_SUCCESS)
        status = read_directives(r, e);
    if (status != RONDO_SUCCESS)
        return status;
    c->ranks = (uint32_t) r->ranks;
    c->root = (uint32_t) root;
    r->chunks = chunks;
    c->block_chunks = 0;
    /* msccl-tools writes inplace="1" of custom programs too, whose steps tell the two buffers apart all the same. */
    r->inplace = c->kind == RONDO_KIND_CUSTOM ? 0 : r->inplace;
    r->ir->in_place = (int) r->inplace;
    r->ir->ranks = calloc((size_t) r->ranks, sizeof(*r->ir->ranks));
    r->seen = calloc((size_t) r->ranks, 1);
    return r->ir->ranks == NULL || r->seen == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory for %ld ranks", r->ranks)
                                                   : RONDO_SUCCESS;
}

/* Finds the number of chunks of a block of the arguments, and checks a rank's buffers against it. In place a file may give only
 * one of the two. A custom program's buffers are as large as the largest rank's. */
static rondo_result_t find_block_chunks(struct reading *r, const struct rondo_xml_element *e, long input, long output)
{
    struct rondo_conditions *c = &r->ir->conditions;
    long ranks = r->ranks;
    if (c->kind == RONDO_KIND_CUSTOM) {
        if (input > r->chunks || output > r->chunks)
            return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: %ld input and %ld output chunks of nchunksperloop=\"%ld\"", e->line,
                              input, output, r->chunks);
        c->block_chunks = 1;
        c->inputs = c->inputs > (uint32_t) input ? c->inputs : (uint32_t) input;
        c->outputs = c->outputs > (uint32_t) output ? c->outputs : (uint32_t) output;
        return RONDO_SUCCESS;
    }
    long in_blocks = rondo_kind_blocks(c->kind, RONDO_INPUT, c->ranks);
    long out_blocks = rondo_kind_blocks(c->kind, RONDO_OUTPUT, c->ranks);
    long block_chunks = r->chunks / (in_blocks > out_blocks ? in_blocks : out_blocks);
    if (block_chunks < 1 || block_chunks * (in_blocks > out_blocks ? in_blocks : out_blocks) != r->chunks)
        return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: nchunksperloop=\"%ld\" does not fit %s of %ld ranks", e->line,
                          r->chunks, rondo_kind_name(c->kind), ranks);
    if (input > in_blocks * block_chunks || output > out_blocks * block_chunks)
        return rondo_fail(RONDO_ERR_ARGUMENT,
                          "line %d: %ld input and %ld output chunks, but %s of %ld ranks with %ld has %ld and %ld", e->line,
                          input, output, rondo_kind_name(c->kind), ranks, r->chunks, in_blocks * block_chunks,
                          out_blocks * block_chunks);
    c->block_chunks = (uint32_t) block_chunks;
    return RONDO_SUCCESS;
}

static rondo_result_t read_gpu(struct reading *r, const struct rondo_xml_element *e)
{
    long id, input, output, scratch;
    rondo_result_t status = number(e, "id", 0, r->ranks - 1, -1, &id);
    if (status == RONDO_SUCCESS)
        status = number(e, "i_chunks", 0, 1 << 24, 0, &input);
    if (status == RONDO_SUCCESS)
        status = number(e, "o_chunks", 0, 1 << 24, 0, &output);
    if (status == RONDO_SUCCESS)
        status = number(e, "s_chunks", 0, 1 << 24, 0, &scratch);
    if (status == RONDO_SUCCESS)
        status = find_block_chunks(r, e, input, output);
    if (status != RONDO_SUCCESS)
        return status;
    if (id > 0 && !r->seen[id - 1])
        return refuse(e, "ranks out of order", "");
    if (r->seen[id])
        return refuse(e, "a rank for the second time", "");
    r->seen[id] = 1;
    r->rank = (uint32_t) id;
    r->chunk_count += (uint64_t) scratch + (uint64_t) r->chunks * 2;
    if (r->chunk_count > CHUNKS_MAX)
        return refuse(e, "too many chunks in all", "");
    struct rondo_msccl_ir_rank *rank = &r->ir->ranks[id];
    rank->chunks[RONDO_SCRATCH] = (uint32_t) scratch;
    rank->block_first = (uint32_t) r->ir->block_count;
    return RONDO_SUCCESS;
}

static rondo_result_t read_block(struct reading *r, const struct rondo_xml_element *e)
{
    struct rondo_msccl_ir *ir = r->ir;
    struct rondo_msccl_ir_rank *rank = &ir->ranks[r->rank];
    long id, send, receive, channel;
    rondo_result_t status = number(e, "id", 0, BLOCKS_MAX - 1, -1, &id);
    if (status == RONDO_SUCCESS)
        status = number(e, "send", -1, r->ranks - 1, -1, &send);
    if (status == RONDO_SUCCESS)
        status = number(e, "recv", -1, r->ranks - 1, -1, &receive);
    if (status == RONDO_SUCCESS)
        status = number(e, "chan", -1, RONDO_CHANNEL_MAX, 0, &channel);
    if (status != RONDO_SUCCESS)
        return status;
    if (r->channels > 0 && channel >= r->channels)
        return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: chan=\"%ld\" is not below nchannels=\"%ld\"", e->line, channel,
                          r->channels);
    if (id != rank->blocks)
        return refuse(e, "thread blocks out of order", "");
    if (send == (long) r->rank || receive == (long) r->rank)
        return refuse(e, "a rank that is its own peer", "");
    if (!rondo_grow((void **) &ir->blocks, ir->block_count, &ir->block_room, sizeof(*ir->blocks)))
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for thread blocks");
    ir->blocks[ir->block_count++] = (struct rondo_msccl_ir_block){.send = (int32_t) send,
                                                                  .receive = (int32_t) receive,
                                                                  .channel = channel < 0 ? 0 : (int32_t) channel,
                                                                  .step_first = (uint32_t) ir->step_count,
                                                                  .line = e->line};
    rank->blocks++;
    return RONDO_SUCCESS;
}

/* Checks the names of a place, where they are there, that the step does not use: it is on the other rank, or of a nop. */
static rondo_result_t check_unused(const struct rondo_xml_element *e, const char *buffer, const char *offset)
{
    char text[8];
    long unused;
    text_of(e, buffer, text, sizeof(text));
    if (rondo_xml_attribute(e, buffer) != NULL && (text[0] == '\0' || text[1] != '\0' || strchr("ios", text[0]) == NULL))
        return refuse_value(e, buffer, text, "none of i, o and s");
    return number(e, offset, -1, 1 << 24, -1, &unused);
}

static rondo_result_t read_buffer(const struct rondo_xml_element *e, const char *name, uint8_t *buffer)
{
    char text[8];
    text_of(e, name, text, sizeof(text));
    if (text[0] == '\0' || text[1] != '\0' || strchr("ios", text[0]) == NULL)
        return refuse_value(e, name, text, "none of i, o and s");
    *buffer = text[0] == 'i' ? RONDO_INPUT : text[0] == 'o' ? RONDO_OUTPUT : RONDO_SCRATCH;
    return RONDO_SUCCESS;
}

static rondo_result_t read_step(struct reading *r, const struct rondo_xml_element *e)
{
    static const struct {
        const char *name;
        int actions;
    } types[] = {{"nop", 0},
                 {"s", RONDO_SEND},
                 {"r", RONDO_RECEIVE | RONDO_COPY},
                 {"rcs", RONDO_RECEIVE | RONDO_COPY | RONDO_SEND},
                 {"rrc", RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY},
                 {"rrs", RONDO_RECEIVE | RONDO_REDUCE | RONDO_SEND},
                 {"rrcs", RONDO_RECEIVE | RONDO_REDUCE | RONDO_COPY | RONDO_SEND},
                 {"cpy", RONDO_COPY},
                 {"re", RONDO_REDUCE | RONDO_COPY}};
    struct rondo_msccl_ir *ir = r->ir;
    struct rondo_msccl_ir_block *block = &ir->blocks[ir->block_count - 1];
    char type[8];
    int actions = -1;
    long number_ = 0, source = 0, destination = 0, count = 1, wait_block, wait_step, notifies;
    text_of(e, "type", type, sizeof(type));
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(type, types[i].name) == 0)
            actions = types[i].actions;
    if (actions < 0)
        return refuse(e, "a step of an unknown type: ", type);
    struct rondo_msccl_ir_step step = {.actions = (uint8_t) actions, .line = e->line};
    rondo_result_t status = number(e, "s", 0, (long) STEPS_MAX, -1, &number_);
    if (status == RONDO_SUCCESS && (uint32_t) number_ != block->steps)
        return refuse(e, "steps out of order", "");
    if (status == RONDO_SUCCESS && actions != 0) {
        int from = (actions & RONDO_REDUCE) || !(actions & RONDO_RECEIVE), to = (actions & (RONDO_COPY | RONDO_REDUCE)) != 0;
        status = number(e, "cnt", 1, UINT16_MAX, 1, &count);
        if (status == RONDO_SUCCESS && from)
            status = read_buffer(e, "srcbuf", &step.source_buffer);
        if (status == RONDO_SUCCESS && from)
            status = number(e, "srcoff", 0, 1 << 24, -1, &source);
        if (status == RONDO_SUCCESS && to)
            status = read_buffer(e, "dstbuf", &step.destination_buffer);
        if (status == RONDO_SUCCESS && to)
            status = number(e, "dstoff", 0, 1 << 24, -1, &destination);
    }
    if (status == RONDO_SUCCESS && actions == 0)
        status = number(e, "cnt", 0, UINT16_MAX, 0, &count);
    if (status == RONDO_SUCCESS)
        status = check_unused(e, "srcbuf", "srcoff");
    if (status == RONDO_SUCCESS)
        status = check_unused(e, "dstbuf", "dstoff");
    if (status == RONDO_SUCCESS)
        status = number(e, "hasdep", rondo_xml_attribute(e, "hasdep") != NULL ? 0 : -1, 1, -1, &notifies);
    if (status == RONDO_SUCCESS)
        status = number(e, "depid", -1, BLOCKS_MAX - 1, -1, &wait_block);
    if (status == RONDO_SUCCESS)
        status = number(e, "deps", -1, (long) STEPS_MAX, -1, &wait_step);
    if (status != RONDO_SUCCESS)
        return status;
    if ((wait_block < 0) != (wait_step < 0))
        return refuse(e, "one of depid and deps without the other", "");
    if ((actions & RONDO_SEND) && block->send < 0)
        return refuse(e, "a step that sends, in a thread block without a peer to send to", "");
    if ((actions & RONDO_RECEIVE) && block->receive < 0)
        return refuse(e, "a step that receives, in a thread block without a peer to receive from", "");
    if (ir->step_count == STEPS_MAX)
        return refuse(e, "too many steps", "");
    step.source = (uint32_t) source, step.destination = (uint32_t) destination, step.count = (uint32_t) count;
    step.wait_block = (int32_t) wait_block, step.wait_step = (int32_t) wait_step, step.notifies = (int8_t) notifies;
    if (!rondo_grow((void **) &ir->steps, ir->step_count, &ir->step_room, sizeof(step)))
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for steps");
    ir->steps[ir->step_count++] = step;
    block->steps++;
    return RONDO_SUCCESS;
}

/* Refuses attributes that mean nothing to this reader: they might change what the program is. */
static rondo_result_t check_attributes(const struct rondo_xml_element *e)
{
    static const char *const known[][16] = {
        {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace", "minBytes", "maxBytes",
         "redop", "root", "instances"},
        {"id", "i_chunks", "o_chunks", "s_chunks"},
        {"id", "send", "recv", "chan"},
        {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}};
    for (int i = 0; i < e->attribute_count; i++) {
        const struct rondo_xml_attribute *a = &e->attributes[i];
        int found = 0;
        for (int k = 0; k < 16 && known[e->depth][k] != NULL; k++)
            found |= strlen(known[e->depth][k]) == a->name_length && memcmp(known[e->depth][k], a->name, a->name_length) == 0;
        if (!found)
            return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: %.*s=\"%.*s\": an unknown attribute of %.*s", e->line,
                              (int) (a->name_length < 40 ? a->name_length : 40), a->name,
                              (int) (a->value_length < 40 ? a->value_length : 40), a->value,
                              (int) (e->name_length < 40 ? e->name_length : 40), e->name);
    }
    return RONDO_SUCCESS;
}

static rondo_result_t open_element(void *argument, const struct rondo_xml_element *e)
{
    struct reading *r = argument;
    static const char *const names[] = {"algo", "gpu", "tb", "step"};
    if (e->depth > 3 || !rondo_xml_is(e, names[e->depth]))
        return refuse(e, "expected an element ", e->depth > 3 ? "to be empty" : names[e->depth]);
    rondo_result_t status = check_attributes(e);
    if (status != RONDO_SUCCESS)
        return status;
    return e->depth == 0   ? read_algo(r, e)
           : e->depth == 1 ? read_gpu(r, e)
           : e->depth == 2 ? read_block(r, e)
                           : read_step(r, e);
}

/* Checks that waits are for steps that exist and announce themselves. */
static rondo_result_t check_waits(const struct rondo_msccl_ir *ir)
{
    for (uint32_t rank = 0; rank < ir->conditions.ranks; rank++)
        for (uint32_t b = 0; b < ir->ranks[rank].blocks; b++) {
            const struct rondo_msccl_ir_block *block = &ir->blocks[ir->ranks[rank].block_first + b];
            for (uint32_t s = 0; s < block->steps; s++) {
                const struct rondo_msccl_ir_step *step = &ir->steps[block->step_first + s];
                if (step->wait_block < 0)
                    continue;
                if ((uint32_t) step->wait_block >= ir->ranks[rank].blocks ||
                    (uint32_t) step->wait_step >= ir->blocks[ir->ranks[rank].block_first + (uint32_t) step->wait_block].steps)
                    return rondo_fail(RONDO_ERR_ARGUMENT,
                                      "line %d: a wait for step %d of thread block %d, which does not exist", step->line,
                                      step->wait_step, step->wait_block);
                if (ir->steps[ir->blocks[ir->ranks[rank].block_first + (uint32_t) step->wait_block].step_first +
                              (uint32_t) step->wait_step]
                        .notifies == 0)
                    return rondo_fail(RONDO_ERR_ARGUMENT,
                                      "line %d: a wait for step %d of thread block %d, which has hasdep=\"0\"", step->line,
                                      step->wait_step, step->wait_block);
            }
        }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_program_read_xml(const char *text, size_t bytes, rondo_program_t *program)
{
    struct reading r = {.directives = RONDO_DIRECTIVES_NONE};
    struct rondo_program_builder *builder = NULL;
    if (text == NULL || program == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_read_xml: %s is NULL", text == NULL ? "text" : "program");
    *program = NULL;
    rondo_result_t status = rondo_handle_check_process("rondo_program_read_xml");
    if (status != RONDO_SUCCESS)
        return status;
    r.ir = calloc(1, sizeof(*r.ir));
    builder = calloc(1, sizeof(*builder));
    status = r.ir == NULL || builder == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory for a program")
                                             : rondo_xml_read(text, bytes, open_element, &r);
    for (long rank = 0; rank < r.ranks && status == RONDO_SUCCESS; rank++)
        if (!r.seen[rank])
            status = rondo_fail(RONDO_ERR_ARGUMENT, "there is no gpu with id %ld of %ld", rank, r.ranks);
    if (status == RONDO_SUCCESS)
        status = check_waits(r.ir);
    if (status == RONDO_SUCCESS && r.inplace && !rondo_conditions_may_share(&r.ir->conditions))
        status = rondo_fail(RONDO_ERR_ARGUMENT, "%s has no in-place form", rondo_kind_name(r.ir->conditions.kind));
    free(r.seen);
    if (status != RONDO_SUCCESS) {
        rondo_msccl_ir_free(r.ir);
        free(builder);
        return status;
    }
    memcpy(builder->name, r.name, sizeof(builder->name));
    builder->conditions = r.ir->conditions;
    builder->directives = r.directives;
    builder->references = 1;
    builder->ir = r.ir;
    return rondo_program_builder_open(builder, program);
}
