/* The public calls that create, check and describe programs, and the way from an algorithm to a rank's plan. */
#include "lib/program/program.h"

#include "device/abi/slice_operation.h"
#include "lib/base/error.h"
#include "lib/call/call.h"
#include "lib/program/builder.h"
#include "lib/program/msccl_ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

rondo_result_t rondo_program_compile(const struct rondo_program_builder *builder, const struct rondo_compile_options *options,
                                     int only, struct rondo_plan_set **set)
{
    return builder->ir != NULL ? rondo_msccl_ir_compile(builder->ir, builder->name, options, set)
                               : rondo_compile(builder, options, only, set);
}

rondo_result_t rondo_program_prove(struct rondo_program_builder *builder, const struct rondo_plan_set *set,
                                   const struct rondo_verify_limits *limits, int *in_place)
{
    const struct rondo_conditions *c = &set->conditions;
    rondo_result_t status = RONDO_SUCCESS;
    if (!rondo_conditions_always_shared(c))
        status = rondo_verify_plans(set, builder->name, limits, 0);
    *in_place = 0;
    if (status != RONDO_SUCCESS || !rondo_conditions_may_share(c))
        return status;
    /* A program for two buffers may or may not do with one; one for one buffer must. */
    rondo_result_t shared = rondo_verify_plans(set, builder->name, limits, 1);
    *in_place = shared == RONDO_SUCCESS;
    int meant = builder->in_place || rondo_conditions_always_shared(c) ||
                (builder->ir != NULL && builder->ir->in_place &&
                 c->kind != RONDO_KIND_REDUCE_SCATTER_BLOCK); /* MSCCL's in-place form is another */
    return meant || shared == RONDO_ERR_MEMORY ? shared : RONDO_SUCCESS;
}

/* ---- the public calls ---- */

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

int rondo_directives_set_protocol(struct rondo_directives *directives, const char *name)
{
    static const char *const names[] = {"simple", "ll", "ll128"};
    directives->protocol = NULL;
    for (size_t i = 0; name != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcasecmp(name, names[i]) == 0)
            directives->protocol = names[i];
    return name == NULL || *name == '\0' || directives->protocol != NULL;
}

int rondo_directives_set_op(struct rondo_directives *directives, enum rondo_kind kind, const char *name)
{
    directives->op = -1;
    for (int op = 0; name != NULL && op < RONDO_OP_COUNT; op++)
        if (strcasecmp(name, rondo_op_name((rondo_op_t) op)) == 0)
            directives->op = op;
    return name == NULL || *name == '\0' || (directives->op >= 0 && rondo_collective_of(kind)->rule.reduces);
}

rondo_result_t rondo_program_create(rondo_program_t *program, const rondo_program_signature_t *signature)
{
    if (program == NULL || signature == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_create: %s is NULL", program == NULL ? "program" : "signature");
    *program = NULL;
    rondo_result_t status = rondo_handle_check_process("rondo_program_create");
    if (status != RONDO_SUCCESS)
        return status;
    if (!name_is_good(signature->name))
        return rondo_fail(RONDO_ERR_ARGUMENT, "a program's name has 1 to %d letters, digits and -_.", RONDO_NAME_BYTES - 1);
    enum rondo_kind kind = rondo_kind_find(signature->collective);
    int custom = kind == RONDO_KIND_CUSTOM;
    if (kind == RONDO_KINDS || rondo_kind_is_p2p(kind) || rondo_kind_is_neighborhood(kind))
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
                                          .block_chunks = custom ? 1 : (uint32_t) signature->chunks,
                                          .inputs = custom ? (uint32_t) signature->inputs : 0,
                                          .outputs = custom ? (uint32_t) signature->outputs : 0};
    if (signature->in_place && !rondo_conditions_may_share(&conditions))
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': %s has no in-place form", signature->name, signature->collective);
    struct rondo_directives directives = RONDO_DIRECTIVES_NONE;
    if (!rondo_directives_set_protocol(&directives, signature->protocol))
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': protocol '%s' is none of simple, ll and ll128", signature->name,
                          signature->protocol);
    if (!rondo_directives_set_op(&directives, kind, signature->op))
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': '%s' is no operator of %s", signature->name, signature->op,
                          signature->collective);
    if (signature->max_bytes > 0 && signature->min_bytes > signature->max_bytes)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': from %zu to %zu bytes", signature->name, signature->min_bytes,
                          signature->max_bytes);
    directives.min_bytes = signature->min_bytes;
    directives.max_bytes = signature->max_bytes;
    status = rondo_program_builder_create(program, signature->name, &conditions, signature->in_place);
    struct rondo_program_builder *builder;
    if (status == RONDO_SUCCESS)
        status = rondo_program_builder_of(*program, "rondo_program_create", &builder);
    if (status == RONDO_SUCCESS)
        builder->directives = directives;
    return status;
}

rondo_result_t rondo_program_check(rondo_program_t program, const rondo_program_limits_t *given)
{
    struct rondo_program_builder *builder;
    struct rondo_verify_limits limits = RONDO_VERIFY_LIMITS_DEFAULT;
    struct rondo_plan_set *set = NULL;
    int in_place;
    rondo_result_t status = rondo_program_builder_of(program, "rondo_program_check", &builder);
    if (status != RONDO_SUCCESS)
        return status;
    if (given != NULL && (given->slots < 0 || given->blocks < 0 || given->concurrent < 0 || given->slots > 1024 ||
                          given->blocks > RONDO_COMPILE_BLOCKS_MAX))
        return rondo_fail(RONDO_ERR_ARGUMENT, "limits of %d slots, %d blocks, %d at a time", given->slots, given->blocks,
                          given->concurrent);
    if (given != NULL && given->slots > 0)
        limits.slots = (uint32_t) given->slots;
    if (given != NULL && given->blocks > 0)
        limits.blocks = (uint32_t) given->blocks;
    if (given != NULL)
        limits.concurrent = (uint32_t) given->concurrent;
    struct rondo_compile_options options = {.blocks = limits.blocks, .slots = limits.slots, .protocol = RONDO_PROTOCOL_SIMPLE};
    status = rondo_program_builder_verify(builder);
    if (status == RONDO_SUCCESS)
        status = rondo_program_compile(builder, &options, -1, &set);
    if (status == RONDO_SUCCESS)
        status = rondo_program_prove(builder, set, &limits, &in_place);
    rondo_plan_set_free(set);
    return status;
}

rondo_result_t rondo_program_describe(rondo_program_t program, rondo_program_signature_t *signature)
{
    struct rondo_program_builder *builder;
    rondo_result_t status = rondo_program_builder_of(program, "rondo_program_describe", &builder);
    if (status != RONDO_SUCCESS)
        return status;
    if (signature == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_describe: signature is NULL");
    const struct rondo_conditions *c = &builder->conditions;
    signature->name = builder->name;
    signature->collective = rondo_kind_name(c->kind);
    signature->ranks = (int) c->ranks;
    signature->chunks = (int) c->block_chunks;
    signature->root = (int) c->root;
    signature->in_place = builder->ir != NULL ? builder->ir->in_place : builder->in_place;
    signature->inputs = (int) c->inputs;
    signature->outputs = (int) c->outputs;
    signature->protocol = builder->directives.protocol;
    signature->op = builder->directives.op >= 0 ? rondo_op_name((rondo_op_t) builder->directives.op) : NULL;
    signature->min_bytes = builder->directives.min_bytes;
    signature->max_bytes = builder->directives.max_bytes;
    return RONDO_SUCCESS;
}

void rondo_program_text_free(char *text)
{
    free(text);
}

/* ---- one rank's plan ---- */

int rondo_peer_windows(enum rondo_kind kind, int size)
{
    const int both_ways = rondo_collective_of(kind)->rule.postcondition == RONDO_POSTCONDITION_TRANSPOSED,
              at_once = kind == RONDO_KIND_BCAST || kind == RONDO_KIND_REDUCE; /* one instruction has all ends of a block */
    const int most = both_ways ? RONDO_PROGRAM_ENDS_MAX / 2 : at_once ? RONDO_REDUCE_SOURCES_MAX : RONDO_PROGRAM_ENDS_MAX;
    return size <= 1 ? 1 : (size - 1 + most - 1) / most;
}

int rondo_algorithm_blocks(const struct rondo_algorithm *algorithm, enum rondo_kind kind, int size)
{
    if (algorithm->windows >> kind & 1)
        return rondo_peer_windows(kind, size);
    if ((algorithm->two_blocks_inside >> kind & 1) && size > 2)
        return 2;
    if (!algorithm->blocks_a_peer || size == 1)
        return 1;
    if (algorithm->keepers > 0)
        return size - 1;
    return kind == RONDO_KIND_ALLTOALL ? 2 * size - 1 : kind == RONDO_KIND_ALLGATHER ? 2 * (size - 1) : size;
}

int rondo_algorithm_channels(const struct rondo_algorithm *algorithm, enum rondo_kind kind, int size, int blocks)
{
    const int most = (blocks - algorithm->keepers) / rondo_algorithm_blocks(algorithm, kind, size);
    return most > 1 ? most : 1;
}

/* Compiles the plans of a built-in algorithm. Its channels are instances of the whole program: so many instances are compiled
 * as one and multiplied, where that is possible. */
static rondo_result_t compile_builtin(const struct rondo_algorithm *algorithm, const struct rondo_shape *shape, int instances,
                                      const struct rondo_compile_options *options, int only, struct rondo_plan_set **set)
{
    rondo_program_t program = NULL;
    struct rondo_program_builder *builder;
    struct rondo_shape part = *shape;
    struct rondo_compile_options share = *options;
    part.channels = shape->channels / instances;
    share.blocks = options->blocks / (uint32_t) instances > 0 ? options->blocks / (uint32_t) instances : 1;
    if ((algorithm->one_block >> shape->kind & 1) && share.blocks > (uint32_t) part.channels)
        share.blocks = (uint32_t) part.channels;
    if (algorithm->blocks_a_peer) {
        share.blocks = (uint32_t) (part.channels * rondo_algorithm_blocks(algorithm, shape->kind, shape->size));
        share.apart = 1;
    }
    rondo_result_t status = algorithm->compose(&part, &program);
    if (status == RONDO_SUCCESS)
        status = rondo_program_builder_of(program, algorithm->name, &builder);
    if (status == RONDO_SUCCESS)
        status = rondo_program_builder_verify(builder);
    if (status == RONDO_SUCCESS)
        status = rondo_compile(builder, &share, only, set);
    rondo_program_destroy(program);
    if (status != RONDO_SUCCESS || instances == 1)
        return status;
    if ((*set)->plans[shape->rank]->program->largest_count == 1)
        return rondo_plans_multiply(*set, (uint32_t) instances);
    rondo_plan_set_free(*set);
    *set = NULL;
    return compile_builtin(algorithm, shape, 1, options, only, set);
}

rondo_result_t rondo_program_plan(const struct rondo_algorithm *algorithm, const struct rondo_shape *shape, uint32_t blocks,
                                  uint32_t slots, int check, struct rondo_plan **plan)
{
    struct rondo_plan_set *set = NULL;
    struct rondo_compile_options options = {
        .blocks = blocks, .slots = slots, .protocol = shape->protocol, .exchanges = shape->exchanges, .across = shape->across};
    int only = check ? -1 : shape->rank, ordered = 0;
    rondo_result_t status = algorithm->registered != NULL
                                ? rondo_program_compile(algorithm->registered->builder, &options, only, &set)
                                : compile_builtin(algorithm, shape, shape->channels, &options, only, &set);
    for (int rank = 0; status == RONDO_SUCCESS && algorithm->adapt != NULL && rank < shape->size; rank++)
        if (set->plans[rank] != NULL)
            algorithm->adapt(shape, set->plans[rank]);
    if (status == RONDO_SUCCESS && check) {
        struct rondo_verify_limits limits = {slots, RONDO_COMPILE_BLOCKS_MAX, 0};
        const struct rondo_conditions *c = &set->conditions;
        int always = rondo_conditions_always_shared(c);
        status = rondo_verify_order(set, algorithm->name, &limits, always, &ordered);
        if (status == RONDO_SUCCESS && algorithm->registered == NULL && !always && rondo_conditions_may_share(c) &&
            !(algorithm->separate >> shape->kind & 1)) /* calls in place are accepted: they must be right, too */
            status = rondo_verify_plans(set, algorithm->name, &limits, 1);
    }
    if (status == RONDO_SUCCESS) {
        *plan = set->plans[shape->rank];
        (*plan)->ordered = ordered;
        set->plans[shape->rank] = NULL;
    }
    rondo_plan_set_free(set);
    return status;
}
