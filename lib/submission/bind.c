/* Binding: from a call and a choice to an operation (lib/submission/bind.h). Relies on rondo_lane_bind for the plan and its
 * connectors, and on lib/submission/slicing.h for the slices. */
#include "lib/submission/bind.h"

#include "lib/call/elements.h"
#include "lib/call/user_operators.h"
#include "lib/select/residuals.h"
#include "device/engine/use.h"
#include "device/move/mover_table.h"
#include "lib/connection/copy_engine.h"
#include "lib/connection/copy_steps.h"
#include "lib/connection/lane.h"
#include "lib/connection/window.h"
#include "lib/select/select.h"
#include "lib/submission/arguments.h"
#include "lib/submission/slicing.h"
#include "lib/base/error.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a call over a network from which on results are stored past the cache, if not from fewer on: the operating system's
 * copies need the cache, too. */
#define NETWORK_STREAM_BYTES ((size_t) 4 << 20)
/* Of an operation that only sends and can end once its buffers are needed no more: to copy more takes longer than to wait for
 * the word that they have arrived. Measured between two ranks over TCP. */
#define COPIED_BYTES_MAX     ((size_t) 256 << 10)

void rondo_call_buffers(const struct rondo_comm *comm, const struct rondo_call *call, char **input, char **output)
{
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    char *send = (char *) (uintptr_t) call->send, *receive = (char *) call->recv;
    int at_root = comm->rank == call->root;
    size_t own = 0; /* in place: where the shorter buffer begins in the longer one, first in elements, then in bytes */
    if (rule->own_block && (!rule->rooted || at_root) && (call->send == RONDO_IN_PLACE || call->recv == RONDO_IN_PLACE))
        own = rule->recv_extent == RONDO_EXTENT_COUNTS   ? call->receive_displacements[comm->rank]
              : rule->send_extent == RONDO_EXTENT_COUNTS ? call->send_displacements[comm->rank]
                                                         : (size_t) comm->rank * call->count;
    own *= rondo_type_bytes(call->type);
    *input = call->send == RONDO_IN_PLACE ? receive + own : send;
    *output = call->recv == RONDO_IN_PLACE ? send + own : receive;
    if (rule->placement == RONDO_PLACEMENT_SHARED) {
        *input = receive;
        return;
    }
    if (rule->send_ranks == RONDO_RANKS_NONE || (rule->send_ranks == RONDO_RANKS_ROOT && !at_root))
        *input = NULL;
    if (rule->recv_ranks == RONDO_RANKS_NONE || (rule->recv_ranks == RONDO_RANKS_ROOT && !at_root))
        *output = NULL;
    if (call->kind == RONDO_KIND_BARRIER) /* a barrier's program sends these bytes */
        *input = comm->runtime->nothing;
}

/* How many blocks of count elements a buffer has. Scratch has as many as the ranks if input and output both do. */
static uint32_t groups_of(const struct rondo_comm *comm, enum rondo_kind kind, enum rondo_buffer buffer)
{
    const rondo_collective_t *rule = &rondo_collective_of(kind)->rule;
    int input = rule->send_extent == RONDO_EXTENT_BLOCKS, output = rule->recv_extent == RONDO_EXTENT_BLOCKS;
    int blocks = buffer == RONDO_INPUT ? input : buffer == RONDO_OUTPUT ? output : input && output;
    const struct rondo_blocks many = rondo_call_blocks(comm, kind);
    const int count = buffer == RONDO_INPUT ? many.sent : buffer == RONDO_OUTPUT ? many.received : many.size;
    return blocks && count > 0 ? (uint32_t) count : 1;
}

/* Elements that a cache line has room for; one at least. */
static uint64_t elements_of_line(size_t element_bytes)
{
    return element_bytes < RONDO_CACHE_LINE ? RONDO_CACHE_LINE / element_bytes : 1;
}

/* Describes chunks of a buffer that has groups blocks of count elements. even: all chunks have one length, which the selection
 * has made sure of. */
static void regular_layout(struct rondo_layout *layout, uint64_t count, uint32_t groups, uint32_t chunks, size_t element_bytes,
                           int even)
{
    uint64_t line = elements_of_line(element_bytes);
    layout->table = NULL;
    layout->group_count = count;
    layout->group_chunks = chunks / groups == 0 ? 1 : chunks / groups;
    layout->chunk_count = rondo_divide_up(count, layout->group_chunks);
    if (layout->group_chunks > 1 && !even) /* chunks do not share cache lines */
        layout->chunk_count = rondo_round_up(layout->chunk_count, line);
    if (layout->chunk_count == 0)
        layout->chunk_count = 1;
}

/* What binding knows of the buffers' chunks: the most elements of one, and the tables of those that are described by tables,
 * in the host's memory (NULL: there is none). */
struct extents {
    uint64_t largest[RONDO_BUFFERS];
    struct rondo_extent *tables[RONDO_BUFFERS];
};

/* Allocates the table of a buffer's chunks, in the host's memory and in the device's. RONDO_ERR_MEMORY. */
static rondo_result_t make_table(struct rondo_request *request, enum rondo_buffer which, uint32_t chunks,
                                 struct extents *extents)
{
    struct rondo_device *device = request->runtime->device;
    extents->tables[which] = calloc(chunks, sizeof(struct rondo_extent));
    request->tables[which] = device->kind->allocate(device, chunks * sizeof(struct rondo_extent));
    request->table_entries[which] = chunks;
    if (extents->tables[which] == NULL || request->tables[which] == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a layout of %u chunks", chunks);
    request->operation->layouts[which].table = request->tables[which];
    return RONDO_SUCCESS;
}

/* Copies a table that is filled in to the device. Returns the copy's error. */
static rondo_result_t upload_table(struct rondo_request *request, enum rondo_buffer which, const struct extents *extents)
{
    struct rondo_device *device = request->runtime->device;
    return device->kind->upload(device, request->tables[which], extents->tables[which],
                                request->table_entries[which] * sizeof(struct rondo_extent));
}

/* Elements of a chunk, without a look at the device's memory. */
static uint64_t chunk_elements(const struct rondo_request *request, const struct extents *extents, enum rondo_buffer which,
                               uint32_t index)
{
    if (extents->tables[which] != NULL)
        return extents->tables[which][index].count;
    return rondo_chunk_extent(&request->operation->layouts[which], index).count;
}

/* Blocks of a buffer at places of their own, in elements of the call, of which each is factor elements of the operation. */
struct blocks {
    const size_t *counts, *displacements;
    int count;
    uint32_t factor;
};

/* Describes a buffer of such blocks, each cut into parts, one per channel, by a table. RONDO_ERR_MEMORY, or the upload's
 * error. */
static rondo_result_t irregular_layout(struct rondo_request *request, enum rondo_buffer which, const struct blocks *given,
                                       uint32_t chunks, struct extents *extents)
{
    uint64_t *largest = &extents->largest[which];
    const size_t *counts = given->counts, *displacements = given->displacements;
    const size_t element_bytes = request->operation->element_bytes;
    const int blocks = given->count;
    *largest = 0;
    if (blocks == 0)
        return RONDO_SUCCESS;
    uint32_t parts = chunks / (uint32_t) blocks;
    rondo_result_t result = make_table(request, which, chunks, extents);
    if (result != RONDO_SUCCESS)
        return result;
    for (int block = 0; block < blocks; block++) {
        const uint64_t count = counts[block] * given->factor;
        uint64_t part = rondo_divide_up(count, parts);
        if (parts > 1)
            part = rondo_round_up(part, elements_of_line(element_bytes));
        for (uint32_t p = 0; p < parts; p++) {
            uint64_t start = p * part < count ? p * part : count;
            uint64_t left = count - start;
            struct rondo_extent extent = {displacements[block] * given->factor + start, left < part ? left : part};
            extents->tables[which][(uint32_t) block * parts + p] = extent;
            *largest = extent.count > *largest ? extent.count : *largest;
        }
    }
    return upload_table(request, which, extents);
}

/* Sets the layouts of all three buffers, and *extents. factor: as struct blocks has it. */
static rondo_result_t set_layouts(struct rondo_request *request, const struct rondo_plan *plan, uint32_t factor,
                                  struct extents *extents)
{
    const struct rondo_call *call = &request->call;
    const struct rondo_comm *comm = request->comm;
    struct rondo_operation *operation = request->operation;
    const uint32_t *chunks = plan->program->chunks;
    size_t element_bytes = operation->element_bytes;
    for (int b = 0; b < RONDO_BUFFERS; b++) {
        struct rondo_layout *layout = &operation->layouts[b];
        uint32_t groups = b == RONDO_SCRATCH && plan->scratch_groups > 0 ? plan->scratch_groups
                                                                         : groups_of(comm, call->kind, (enum rondo_buffer) b);
        if (call->kind == RONDO_KIND_CUSTOM)
            groups = chunks[b] < plan->block_chunks ? 1 : chunks[b] / plan->block_chunks;
        regular_layout(layout, call->count * factor, groups, chunks[b], element_bytes, plan->even);
        extents->largest[b] = chunks[b] == 0                              ? 0
                              : layout->chunk_count < layout->group_count ? layout->chunk_count
                                                                          : layout->group_count;
    }
    const rondo_collective_t *rule = &rondo_collective_of(call->kind)->rule;
    const struct rondo_blocks many = rondo_call_blocks(comm, call->kind);
    const struct blocks send = {call->send_counts, call->send_displacements, many.sent, factor};
    const struct blocks receive = {call->receive_counts, call->receive_displacements, many.received, factor};
    rondo_result_t result = RONDO_SUCCESS;
    if (rule->send_extent == RONDO_EXTENT_COUNTS && rondo_ranks_include(rule->send_ranks, comm->rank, comm->size, call->root))
        result = irregular_layout(request, RONDO_INPUT, &send, chunks[RONDO_INPUT], extents);
    if (result == RONDO_SUCCESS && rule->recv_extent == RONDO_EXTENT_COUNTS &&
        rondo_ranks_include(rule->recv_ranks, comm->rank, comm->size, call->root))
        result = irregular_layout(request, RONDO_OUTPUT, &receive, chunks[RONDO_OUTPUT], extents);
    return result;
}

/* Describes the scratch of a compiled program, where each chunk is as long as the input or output chunk that it mirrors. Sets
 * request->scratch_bytes. */
static rondo_result_t lay_out_scratch(struct rondo_request *request, const struct rondo_plan *plan, struct extents *extents)
{
    struct rondo_operation *operation = request->operation;
    uint32_t chunks = plan->program->chunks[RONDO_SCRATCH];
    uint64_t line = elements_of_line(operation->element_bytes), end = 0;
    const int by_input = rondo_collective_of(request->call.kind)->rule.send_extent == RONDO_EXTENT_COUNTS;
    rondo_result_t result = make_table(request, RONDO_SCRATCH, chunks, extents);
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_extent *table = extents->tables[RONDO_SCRATCH];
    extents->largest[RONDO_SCRATCH] = 0;
    for (uint32_t i = 0; i < chunks; i++) {
        uint32_t class = plan->scratch_classes[i];
        /* A class is the index of a chunk in the buffer with arrays of counts, if there is but one of them. */
        enum rondo_buffer like = plan->program->chunks[RONDO_OUTPUT] > class && !by_input ? RONDO_OUTPUT : RONDO_INPUT;
        table[i].offset = end;
        table[i].count = chunk_elements(request, extents, like, class);
        end = rondo_round_up(end + table[i].count, line);
        if (table[i].count > extents->largest[RONDO_SCRATCH])
            extents->largest[RONDO_SCRATCH] = table[i].count;
    }
    request->scratch_bytes = end * operation->element_bytes + RONDO_CACHE_LINE;
    return upload_table(request, RONDO_SCRATCH, extents);
}

/* Sets {window, offset} by which the other ranks access a buffer. */
static void set_window(struct rondo_request *request, enum rondo_buffer which)
{
    const char *buffer = request->operation->buffers[which];
    uint64_t *window = request->operation->windows[which];
    const struct rondo_registration *own = request->windows[which];
    window[0] = own != NULL ? own->window : 0;
    window[1] = own != NULL ? 0 : (uint64_t) (uintptr_t) buffer;
    if (own == NULL && !request->comm->same_process)
        rondo_window_find(request->comm, buffer, 1, window);
}

static rondo_result_t set_residual(struct rondo_request *request)
{
    rondo_result_t result = rondo_residual_use(request->comm, &request->call, !request->persistent, &request->residual);
    if (result == RONDO_SUCCESS)
        request->operation->residual = request->residual->memory;
    return result;
}

/* Whether an instruction sends (and keeps) one chunk through the end, or receives one. */
static int moves_one(const struct rondo_instruction *instruction, int sends, uint32_t end)
{
    const int moves = sends ? (instruction->actions & ~RONDO_COPY) == RONDO_SEND && instruction->send_first == end
                            : instruction->actions == (RONDO_RECEIVE | RONDO_COPY) && instruction->receive_first == end;
    return moves && instruction->count == 1 && instruction->flags == 0 && instruction->dependencies == 0;
}

/* Whether each block that has a connector has the form that device/engine/direct_write.h requires. */
static int all_write_directly(const struct rondo_plan *plan)
{
    const struct rondo_program_block *block = rondo_program_blocks(plan->program);
    const struct rondo_program_block *end = block + plan->program->blocks;
    for (; block < end; block++) {
        const struct rondo_connection *connections = plan->connections + block->end_first;
        const struct rondo_instruction *first = &rondo_program_instructions(plan->program)[block->instruction_first];
        if (block->ends == 0)
            continue;
        if (block->ends > 2 || block->instructions != block->ends)
            return 0;
        if (block->ends == 1
                ? !moves_one(first, 1, 0) && !moves_one(first, 0, 0)
                : connections[0].peer != connections[1].peer || !moves_one(first, 1, 0) || !moves_one(first + 1, 0, 1))
            return 0;
    }
    return 1;
}

/* Whether there is one block, which stores to the output with its last instruction alone, and of scratch. */
static int stores_last(const struct rondo_program *program)
{
    const struct rondo_instruction *list = rondo_program_instructions(program);
    const uint32_t first = rondo_program_blocks(program)[0].instruction_first;
    const uint32_t last = first + rondo_program_blocks(program)[0].instructions - 1;
    int good = program->blocks == 1;
    for (uint32_t i = first; good && i <= last; i++) {
        const int stores = (list[i].actions & RONDO_COPY) && list[i].destination_buffer == RONDO_OUTPUT;
        good = i < last ? !stores : stores && list[i].actions == RONDO_COPY && list[i].source_buffer == RONDO_SCRATCH;
    }
    return good;
}

/* Whether members of a communicator with direct_writes may store into the buffer. They are of one process, which reaches all
 * memory of the host, and memory from cudaMalloc. */
static int is_reached(const struct rondo_request *request, const char *buffer)
{
    const enum rondo_direct_write setting = request->runtime->settings.direct_write;
    if (setting == RONDO_DIRECT_WRITE_REFUSED || (setting == RONDO_DIRECT_WRITE_MIXED && request->runtime->rank % 2 == 1))
        return 0;
    return request->runtime->device_type == RONDO_DEVICE_HOST || (buffer != NULL && rondo_buffer_is_plain(buffer));
}

/* Whether the program stores to each chunk of the output once at most. */
static int writes_once(const struct rondo_program *program)
{
    const struct rondo_instruction *instructions = rondo_program_instructions(program);
    const struct rondo_program_block *blocks = rondo_program_blocks(program);
    const uint32_t chunks = program->chunks[RONDO_OUTPUT];
    unsigned char *written = calloc(1, (size_t) chunks + 1);
    int once = written != NULL;
    for (uint32_t b = 0; b < program->blocks && once; b++)
        for (uint32_t i = blocks[b].instruction_first; i < blocks[b].instruction_first + blocks[b].instructions; i++) {
            const struct rondo_instruction *instruction = &instructions[i];
            const int stores = (instruction->actions & RONDO_COPY) && instruction->destination_buffer == RONDO_OUTPUT;
            for (uint32_t k = 0; stores && k < instruction->count; k++) {
                const uint32_t chunk = instruction->destination_index + k;
                once = once && chunk < chunks && !written[chunk];
                if (chunk < chunks)
                    written[chunk] = 1;
            }
        }
    free(written);
    return once;
}

/* Whose time counts where slots are not copied once. On fewer cores than ranks all of it does. */
static enum rondo_cost_rule cost_rule(const struct rondo_comm *comm, enum rondo_kind kind)
{
    const int one_way = rondo_kind_is_p2p(kind) || rondo_kind_is_rooted(kind);
    if (comm->runtime->oversubscribed || !one_way)
        return RONDO_COST_BOTH;
    if (comm->size == 2 || rondo_kind_is_p2p(kind))
        return RONDO_COST_ONE_WAY;
    const rondo_collective_t *rule = &rondo_collective_of(kind)->rule;
    return rule->reduces || rule->placement == RONDO_PLACEMENT_SHARED ? RONDO_COST_BOTH
           : rule->recv_ranks == RONDO_RANKS_ROOT                     ? RONDO_COST_READER
                                                                      : RONDO_COST_READERS;
}

/* The operation's single_copy, but for its buffers. */
static unsigned single_copy_use(const struct rondo_comm *comm, const struct rondo_call *call,
                                const struct rondo_program *program)
{
    return RONDO_SINGLE_COPY_USED | (writes_once(program) ? RONDO_SINGLE_COPY_OUTPUT : 0u) |
           (comm->single_copy == RONDO_PEER_SINGLE_COPY_ALWAYS ? RONDO_SINGLE_COPY_ALWAYS : 0u) |
           RONDO_SINGLE_COPY_RULE * (unsigned) cost_rule(comm, call->kind);
}

/* Whether the operation's slots hold the bytes themselves (device/engine/short_moves.h). */
static uint8_t has_plain_slots(const struct rondo_comm *comm, const struct rondo_choice *choice)
{
    const unsigned plain = 1u << RONDO_PROTOCOL_SIMPLE | 1u << RONDO_PROTOCOL_SMALL | 1u << RONDO_PROTOCOL_TINY |
                           1u << RONDO_PROTOCOL_MULTICAST | 1u << RONDO_PROTOCOL_MULTICAST_TINY;
    return comm->hosts_only && !comm->networked && !choice->single_copy && (plain >> choice->protocol & 1);
}

/* Whether the collective leaves its input as it is even if that is the output, too. */
static int spares_input(enum rondo_kind kind)
{
    const rondo_postcondition_t postcondition = rondo_collective_of(kind)->rule.postcondition;
    return postcondition != RONDO_POSTCONDITION_TRANSPOSED && postcondition != RONDO_POSTCONDITION_PREVIOUS;
}

/* Whether input and output are buffers of their own. */
static int are_separate(const struct rondo_call *call, const struct rondo_operation *operation)
{
    return call->send != RONDO_IN_PLACE && call->recv != RONDO_IN_PLACE &&
           operation->buffers[RONDO_INPUT] != operation->buffers[RONDO_OUTPUT];
}

/* Sets the operation's buffers, and what depends on them. Its direct_writes, zero_copy and single_copy say already whether it
 * may use them at all. */
static void place_buffers(struct rondo_request *request)
{
    const struct rondo_call *call = &request->call;
    struct rondo_operation *operation = request->operation;
    rondo_call_buffers(request->comm, call, &operation->buffers[RONDO_INPUT], &operation->buffers[RONDO_OUTPUT]);
    if (operation->direct) {
        set_window(request, RONDO_INPUT);
        set_window(request, RONDO_OUTPUT);
    }
    if (operation->direct_writes != RONDO_DIRECT_WRITES_NOT)
        operation->direct_writes =
            (uint8_t) (is_reached(request, operation->buffers[RONDO_OUTPUT]) ? RONDO_DIRECT_WRITES_HERE
                                                                             : RONDO_DIRECT_WRITES_ELSEWHERE);
    if (operation->zero_copy != 0)
        operation->zero_copy = (uint8_t) ((operation->zero_copy & ~RONDO_ZERO_COPY_INPUT) |
                                          (are_separate(call, operation) ? RONDO_ZERO_COPY_INPUT : 0));
    if (operation->single_copy != 0)
        operation->single_copy =
            (uint8_t) ((operation->single_copy & ~RONDO_SINGLE_COPY_INPUT) |
                       (spares_input(call->kind) || are_separate(call, operation) ? RONDO_SINGLE_COPY_INPUT : 0));
}

/* Copies what the operation needs of an operator of the user, which may be freed from then on. */
static rondo_result_t set_user_operator(struct rondo_request *request)
{
    const struct rondo_call *call = &request->call;
    struct rondo_user_operator *user = &request->user;
    if (!rondo_kind_reduces(call->kind) || !rondo_op_is_user(call->op))
        return RONDO_SUCCESS;
    if (!rondo_op_find(call->op, &user->function, &user->argument))
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s: operator %#x was freed during the call", rondo_kind_name(call->kind),
                          (unsigned) call->op);
    user->type = call->type;
    user->bytes = (uint32_t) rondo_type_bytes(call->type);
    request->operation->op = RONDO_BY_USER;
    request->operation->user = user;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_operation_bind(struct rondo_request *request, const struct rondo_choice *choice)
{
    const struct rondo_call *call = &request->call;
    struct rondo_comm *comm = request->comm;
    struct rondo_device *device = request->runtime->device;
    struct rondo_operation *operation = request->operation;
    struct rondo_binding *binding;
    struct rondo_shape shape;
    memset(&shape, 0, sizeof(shape)); /* shapes are compared as bytes */
    shape.kind = call->kind;
    shape.rank = comm->rank;
    shape.size = comm->size;
    shape.root = call->root;
    shape.channels = choice->channels;
    shape.protocol = choice->protocol;
    shape.group = comm->group;
    shape.exchanges = (choice->protocol == RONDO_PROTOCOL_LL || choice->protocol == RONDO_PROTOCOL_LL128) &&
                      request->runtime->device_type == RONDO_DEVICE_CUDA;
    shape.across = rondo_call_lies_across(call);
    shape.topology = &comm->topology;
    shape.graph = rondo_kind_is_neighborhood(call->kind) ? comm->graph : NULL;
    rondo_result_t result = rondo_lane_bind(request->lane, choice->algorithm, &shape, &binding);
    if (result != RONDO_SUCCESS)
        return result;
    if (choice->direct_writes && !all_write_directly(binding->plan))
        return rondo_fail(RONDO_ERR_INTERNAL, "algorithm %s for %s: its blocks were said to write directly and do not",
                          choice->algorithm->name, rondo_kind_name(call->kind));

    if (shape.across && !stores_last(binding->plan->program))
        return rondo_fail(RONDO_ERR_INTERNAL,
                          "algorithm %s for %s: it stores a tile of the output before it has read its input",
                          choice->algorithm->name, rondo_kind_name(call->kind));

    operation->parts = binding->parts;
    operation->blocks = binding->plan->program->blocks;
    operation->first = binding->first;
    const struct rondo_elements elements = rondo_elements_of(call);
    operation->type = (uint8_t) elements.type;
    operation->op = (uint8_t) elements.op;
    operation->average = call->op == RONDO_AVG ? (uint32_t) comm->size : 0;
    operation->element_bytes = elements.bytes;
    operation->lane = request->lane->index;
    operation->protocol = (uint8_t) choice->protocol;
    operation->rate = (uint8_t) (choice->protocol == RONDO_PROTOCOL_COMPRESSED ? call->rate : 0);
    operation->residual = NULL;
    if ((result = set_user_operator(request)) != RONDO_SUCCESS)
        return result;
    operation->direct = (uint8_t) choice->algorithm->direct;
    const int copied = request->streamed && operation->direct && rondo_copy_engine_usable(comm);
    request->copied = copied && rondo_copy_steps_can(binding->plan) ? binding->plan : NULL;
    operation->direct_writes = (uint8_t) (choice->direct_writes ? RONDO_DIRECT_WRITES_HERE : RONDO_DIRECT_WRITES_NOT);
    /* Zero-copy sends are a network's, and not with a timeout: an operation that ends at its timeout gives the buffers back
     * while a network may still read them. */
    const int zero_copy = request->runtime->device_type == RONDO_DEVICE_HOST && comm->networked &&
                          choice->algorithm->registered == NULL && request->runtime->settings.timeout <= 0;
    const int few = binding->only_sends && rondo_call_bytes(comm, call) <= COPIED_BYTES_MAX;
    operation->zero_copy = (uint8_t) (zero_copy ? RONDO_ZERO_COPY_RESULT | (few ? RONDO_ZERO_COPY_COPIED : 0) : 0);
    operation->single_copy = (uint8_t) (choice->single_copy ? single_copy_use(comm, call, binding->plan->program) : 0);
    operation->plain_slots = has_plain_slots(comm, choice);
    operation->readers = (uint8_t) (comm->size <= UINT8_MAX ? comm->size - 1 : UINT8_MAX);
    place_buffers(request);
    struct extents extents = {0};
    result = set_layouts(request, binding->plan, elements.factor, &extents);
    if (result == RONDO_SUCCESS && binding->plan->program->chunks[RONDO_SCRATCH] > 0) {
        uint32_t groups = binding->plan->scratch_groups > 0 ? binding->plan->scratch_groups : 1;
        request->scratch_bytes = call->count * elements.factor * operation->element_bytes * groups;
        if (binding->plan->scratch_classes != NULL)
            result = lay_out_scratch(request, binding->plan, &extents);
        request->scratch = device->kind->allocate(device, request->scratch_bytes);
        operation->buffers[RONDO_SCRATCH] = request->scratch;
        if (request->scratch == NULL && result == RONDO_SUCCESS)
            result = rondo_fail(RONDO_ERR_MEMORY, "no device memory for %zu bytes of scratch", request->scratch_bytes);
    }
    if (result == RONDO_SUCCESS && operation->rate != 0 && call->feedback)
        result = set_residual(request);
    if (result == RONDO_SUCCESS)
        result = rondo_slice_operation(request, binding->plan, choice, extents.largest);
    for (int b = 0; b < RONDO_BUFFERS; b++)
        free(extents.tables[b]);
    if (result != RONDO_SUCCESS) {
        rondo_operation_unbind(request);
        return result;
    }
    request->blocks = binding->plan->program->blocks;
    request->fresh = 1;
    const struct rondo_launch_facts facts = {operation, binding->plan->program, rondo_program_blocks(binding->plan->program),
                                             rondo_program_instructions(binding->plan->program), binding->repeats};
    operation->warp_mode = (uint8_t) rondo_launch_choose(&facts);
    const size_t bytes = rondo_call_bytes(comm, call);
    operation->streaming = bytes >= comm->runtime->stream_bytes || (rondo_is_wide(comm) && bytes >= NETWORK_STREAM_BYTES);
    if (rondo_log_admits(RONDO_LOG_DEBUG))
        rondo_log(RONDO_LOG_DEBUG, request->runtime->rank,
                  "%s, %zu bytes, %p to %p: algorithm %s (%s), protocol %s, %d channel%s, %llu tiles of %llu elements",
                  rondo_kind_name(call->kind), rondo_call_bytes(comm, call), (void *) operation->buffers[RONDO_INPUT],
                  (void *) operation->buffers[RONDO_OUTPUT], choice->algorithm->name, choice->why,
                  choice->protocol == RONDO_PROTOCOL_LL           ? "LL"
                  : choice->protocol == RONDO_PROTOCOL_LL128      ? "LL128"
                  : choice->protocol == RONDO_PROTOCOL_COMPRESSED ? "compressed"
                  : choice->protocol == RONDO_PROTOCOL_SMALL      ? "simple in small slots"
                  : choice->protocol == RONDO_PROTOCOL_TINY       ? "simple in tiny slots"
                  : choice->protocol == RONDO_PROTOCOL_TMA        ? "tma"
                  : rondo_is_multicast(choice->protocol)          ? "multicast"
                                                                  : "simple",
                  choice->channels, choice->channels == 1 ? "" : "s", (unsigned long long) operation->tiles,
                  (unsigned long long) operation->tile);
    return RONDO_SUCCESS;
}

void rondo_operation_move(struct rondo_request *request, const void *send, void *recv)
{
    request->call.send = send;
    request->call.recv = recv;
    place_buffers(request);
    request->fresh = 1;
}

void rondo_operation_unbind(struct rondo_request *request)
{
    struct rondo_device *device = request->runtime->device;
    for (int i = 0; i < RONDO_BUFFERS; i++)
        if (request->tables[i] != NULL) {
            device->kind->release(device, request->tables[i], request->table_entries[i] * sizeof(struct rondo_extent));
            request->tables[i] = NULL;
        }
    if (request->scratch != NULL) {
        device->kind->release(device, request->scratch, request->scratch_bytes);
        request->scratch = NULL;
    }
    if (request->residual != NULL) {
        rondo_residual_release(request->comm, request->residual);
        request->residual = NULL;
    }
}
