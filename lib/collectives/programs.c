/* The public calls that register a user's program with a communicator and run one (rondo_program.h). */
#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/connection/exchange.h"
#include "lib/context/handles.h"
#include "lib/connection/slots.h"
#include "lib/program/builder.h"
#include "lib/select/registered_programs.h"
#include "lib/submission/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- registering ---- */

static uint64_t hash_plans(const struct rondo_plan_set *set, const struct rondo_program_builder *builder, size_t min_bytes,
                           size_t max_bytes)
{
    const struct rondo_directives *own = &builder->directives;
    const uint64_t numbers[] = {min_bytes,      max_bytes,          own->min_bytes,
                                own->max_bytes, (uint64_t) own->op, (uint64_t) own->in_place_only};
    uint64_t value = rondo_hash(RONDO_HASH_BASIS, builder->name, strlen(builder->name));
    value = rondo_hash(value, numbers, sizeof(numbers));
    value = rondo_hash(value, own->protocol != NULL ? own->protocol : "", own->protocol != NULL ? strlen(own->protocol) : 0);
    for (uint32_t rank = 0; rank < set->conditions.ranks; rank++) {
        const struct rondo_plan *plan = set->plans[rank];
        value = rondo_hash(value, plan->program, plan->program->bytes);
        value = rondo_hash(value, plan->connections, plan->program->ends * sizeof(*plan->connections));
    }
    return value;
}

/* This rank's part: all that can fail by itself. */
static rondo_result_t prepare(struct rondo_comm *comm, struct rondo_program_builder *builder, size_t min_bytes,
                              size_t max_bytes, struct rondo_registered **result, uint64_t *fingerprint)
{
    const struct rondo_runtime *runtime = comm->runtime;
    if (builder->conditions.ranks != (uint32_t) comm->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s' is for %u ranks; the communicator has %d", builder->name,
                          builder->conditions.ranks, comm->size);
    if (min_bytes > max_bytes && max_bytes > 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "program '%s': from %zu to %zu bytes", builder->name, min_bytes, max_bytes);
    if (rondo_program_named(comm, builder->name, builder->conditions.kind) != NULL)
        return rondo_fail(RONDO_ERR_STATE, "the communicator has a program '%s' for %s already", builder->name,
                          rondo_kind_name(builder->conditions.kind));
    rondo_result_t status = rondo_program_builder_verify(builder);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_registered *program = calloc(1, sizeof(*program));
    struct rondo_plan_set *set = NULL;
    /* As lib/connection/lane.c will compile it. */
    uint32_t blocks = runtime->settings.channels * (runtime->device_type == RONDO_DEVICE_CUDA ? 2 : 1);
    struct rondo_verify_limits limits = {rondo_lane_messages(comm->requests->collective, 0), 2 * runtime->settings.channels, 0};
    if (program == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to register program '%s'", builder->name);
    struct rondo_compile_options options = {.blocks = blocks, .slots = limits.slots, .protocol = RONDO_PROTOCOL_SIMPLE};
    if (runtime->device_type == RONDO_DEVICE_CUDA) { /* over LL it runs with exchanges */
        options.exchanges = 1;
        status = rondo_program_compile(builder, &options, -1, &set);
        if (status == RONDO_SUCCESS)
            status = rondo_program_prove(builder, set, &limits, &program->in_place);
        rondo_plan_set_free(set);
        set = NULL;
        options.exchanges = 0;
    }
    if (status == RONDO_SUCCESS)
        status = rondo_program_compile(builder, &options, -1, &set);
    if (status == RONDO_SUCCESS)
        status = rondo_program_prove(builder, set, &limits, &program->in_place);
    if (status == RONDO_SUCCESS) {
        *fingerprint = hash_plans(set, builder, min_bytes, max_bytes);
        program->block_chunks = set->conditions.block_chunks;
        program->even = set->even;
    }
    rondo_plan_set_free(set);
    program->root = builder->conditions.root;
    const struct rondo_directives *own = &builder->directives;
    program->min_bytes = own->min_bytes > min_bytes ? own->min_bytes : min_bytes;
    program->max_bytes = own->max_bytes > 0 && own->max_bytes < max_bytes ? own->max_bytes : max_bytes;
    program->protocol = own->protocol;
    program->op = own->op;
    program->in_place_only = own->in_place_only;
    program->builder = builder;
    program->algorithm.name = builder->name;
    program->algorithm.kinds = 1u << builder->conditions.kind;
    program->algorithm.registered = program;
    *result = program;
    return status;
}

rondo_result_t rondo_program_register(rondo_comm_t handle, rondo_program_t written, size_t min_bytes, size_t max_bytes)
{
    struct rondo_comm *comm;
    struct rondo_program_builder *builder;
    struct rondo_registered *program = NULL;
    uint64_t fingerprint = 0;
    int refused;
    rondo_result_t status = rondo_comm_of(handle, "rondo_program_register", &comm);
    if (status != RONDO_SUCCESS)
        return status;
    uint64_t *all = calloc((size_t) comm->size, sizeof(*all));
    if (all == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", comm->size);
    if (status == RONDO_SUCCESS)
        status = rondo_program_builder_of(written, "rondo_program_register", &builder);
    if (status == RONDO_SUCCESS)
        status = prepare(comm, builder, min_bytes, max_bytes, &program, &fingerprint);
    status = rondo_comm_conclude(comm, "rondo_program_register", status);
    if (status == RONDO_SUCCESS || rondo_comm_failure(comm) == RONDO_SUCCESS)
        status = rondo_agree(comm, "rondo_program_register", status, &refused);
    if (status == RONDO_SUCCESS)
        status = rondo_exchange(comm, "rondo_program_register", &fingerprint, sizeof(fingerprint), all);
    for (int rank = 0; rank < comm->size && status == RONDO_SUCCESS; rank++)
        if (all[rank] != all[0])
            status =
                rondo_fail(RONDO_ERR_MISMATCH, "rondo_program_register: ranks 0 and %d give different programs or sizes", rank);
    free(all);
    if (status != RONDO_SUCCESS) {
        free(program);
        return status;
    }
    __atomic_add_fetch(&builder->references, 1, __ATOMIC_RELAXED); /* by one who holds a reference */
    pthread_mutex_lock(&comm->runtime->lock);
    program->next = comm->programs->registered;
    __atomic_store_n(&comm->programs->registered, program, __ATOMIC_RELEASE); /* after all of its fields */
    pthread_mutex_unlock(&comm->runtime->lock);
    rondo_log(RONDO_LOG_DEBUG, comm->runtime->rank, "program '%s' for %s registered, %zu to %zu bytes%s", builder->name,
              rondo_kind_name(builder->conditions.kind), min_bytes, max_bytes, program->in_place ? ", also in place" : "");
    return RONDO_SUCCESS;
}

/* ---- running ---- */

/* Finds the custom program of that name, and makes the call of it whole. function: for messages. */
static rondo_result_t find(rondo_comm_t handle, const char *function, const char *name, struct rondo_call *call)
{
    struct rondo_comm *comm;
    rondo_result_t result = rondo_comm_of(handle, function, &comm);
    if (result != RONDO_SUCCESS)
        return result;
    if (name == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: program is NULL", function);
    const struct rondo_algorithm *algorithm = rondo_program_named(comm, name, RONDO_KIND_CUSTOM);
    if (algorithm == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "%s: no custom program '%s' is registered with the communicator", function,
                          name);
    call->kind = RONDO_KIND_CUSTOM;
    call->program = algorithm->name;
    call->custom_chunks[0] = algorithm->registered->builder->conditions.inputs;
    call->custom_chunks[1] = algorithm->registered->builder->conditions.outputs;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_program_run(const char *program, const void *send, void *recv, size_t count, rondo_datatype_t type,
                                 rondo_op_t op, rondo_comm_t comm)
{
    struct rondo_call call = {.send = send, .recv = recv, .count = count, .type = type, .op = op};
    rondo_result_t result = find(comm, "rondo_program_run", program, &call);
    return result == RONDO_SUCCESS ? rondo_call_blocking(comm, &call) : result;
}

rondo_result_t rondo_iprogram_run(const char *program, const void *send, void *recv, size_t count, rondo_datatype_t type,
                                  rondo_op_t op, rondo_comm_t comm, rondo_request_t *request)
{
    struct rondo_call call = {.send = send, .recv = recv, .count = count, .type = type, .op = op};
    rondo_result_t result = find(comm, "rondo_iprogram_run", program, &call);
    if (result != RONDO_SUCCESS && request != NULL)
        *request = NULL;
    return result == RONDO_SUCCESS ? rondo_call_nonblocking(comm, &call, request) : result;
}

rondo_result_t rondo_program_run_init(const char *program, const void *send, void *recv, size_t count, rondo_datatype_t type,
                                      rondo_op_t op, rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request)
{
    struct rondo_call call = {.send = send, .recv = recv, .count = count, .type = type, .op = op};
    rondo_result_t result = find(comm, "rondo_program_run_init", program, &call);
    if (result == RONDO_SUCCESS && attr != NULL && attr->program != NULL && strcmp(attr->program, program) != 0)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "rondo_program_run_init: program is '%s', and attr->program is '%s'", program,
                            attr->program);
    if (result != RONDO_SUCCESS && request != NULL)
        *request = NULL;
    return result == RONDO_SUCCESS ? rondo_call_persistent(comm, &call, attr, request) : result;
}

rondo_result_t rondo_program_run_on_stream(const char *program, const void *send, void *recv, size_t count,
                                           rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm, void *stream)
{
    struct rondo_call call = {.send = send, .recv = recv, .count = count, .type = type, .op = op};
    rondo_result_t result = find(comm, "rondo_program_run_on_stream", program, &call);
    return result == RONDO_SUCCESS ? rondo_call_on_stream(comm, &call, stream) : result;
}
