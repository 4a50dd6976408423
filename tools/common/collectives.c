/* The table of collectives: sizes, origins and bandwidth factors. See tools/common/collectives.h; the calls are in
 * tools/common/collectives_invoke.c. */
#include "tools/common/collectives.h"

#include <stdlib.h>
#include <string.h>

/* Uneven shares of total elements for the v-collectives: neighbours get half and one and a half of the even share. They add up
 * to total over part = 0..ranks-1. */
static size_t share(size_t total, int ranks, int part)
{
    size_t even = total / (size_t) ranks, half = even / 2;
    size_t extra = (size_t) part < total % (size_t) ranks ? 1 : 0;
    if (ranks % 2 == 1 && part == 0)
        return even + extra;
    return (part % 2 == 1 ? even + half : even - half) + extra;
}

/* What source sends to destination in alltoallv; a rank's row and its column both add up to total. */
static size_t share_between(const struct call *c, int source, int destination)
{
    return share(c->count, c->ranks, (destination - source + c->ranks) % c->ranks);
}

static void one_to_one(struct call *c)
{
    c->input_elements = c->output_elements = c->count;
}

static void spread(struct call *c)
{ /* a block here, a block from every rank there */
    c->input_elements = c->count;
    c->output_elements = c->count * (size_t) c->ranks;
}

static void root_buffer(struct call *c)
{
    c->input_elements = c->rank == c->root ? c->count : 0;
    c->output_elements = c->count;
}

static void concentrate(struct call *c)
{
    c->input_elements = c->count * (size_t) c->ranks;
    c->output_elements = c->in_place ? c->count * (size_t) c->ranks : c->count;
}

static void exchange(struct call *c)
{
    c->input_elements = c->output_elements = c->count * (size_t) c->ranks;
}

static void from_root(struct call *c)
{
    c->input_elements = c->rank == c->root ? c->count * (size_t) c->ranks : 0;
    c->output_elements = c->count;
}

static void nothing(struct call *c)
{
    c->input_elements = c->output_elements = 0;
}

static void spread_unevenly(struct call *c)
{
    size_t offset = 0;
    for (int r = 0; r < c->ranks; r++) {
        c->receive_counts[r] = share(c->count, c->ranks, r);
        c->receive_displacements[r] = offset;
        offset += c->receive_counts[r];
    }
    c->input_elements = c->receive_counts[c->rank];
    c->output_elements = offset;
}

static void exchange_unevenly(struct call *c)
{
    size_t sent = 0, received = 0;
    for (int r = 0; r < c->ranks; r++) {
        c->send_counts[r] = share_between(c, c->rank, r);
        c->send_displacements[r] = sent;
        sent += c->send_counts[r];
        c->receive_counts[r] = share_between(c, r, c->rank);
        c->receive_displacements[r] = received;
        received += c->receive_counts[r];
    }
    c->input_elements = sent;
    c->output_elements = received;
}

static struct origin untouched(const struct call *c, size_t index)
{
    return (struct origin){.kind = ORIGIN_UNTOUCHED, .length = c->output_elements - index};
}

static struct origin inputs(int first, int last, size_t index, size_t length)
{
    return (struct origin){.kind = ORIGIN_INPUT, .first = first, .last = last, .index = index, .length = length};
}

static struct origin everybody(const struct call *c, size_t index)
{
    return inputs(0, c->ranks - 1, index, c->output_elements - index);
}

static struct origin everybody_at_root(const struct call *c, size_t index)
{
    return c->rank == c->root ? everybody(c, index) : untouched(c, index);
}

static struct origin root_input(const struct call *c, size_t index)
{
    return inputs(c->root, c->root, index, c->output_elements - index);
}

static struct origin own_block_reduced(const struct call *c, size_t index)
{
    if (index >= c->count) /* in place: what the other blocks hold afterwards is not said */
        return (struct origin){.kind = ORIGIN_ANYTHING, .length = c->output_elements - index};
    return inputs(0, c->ranks - 1, (size_t) c->rank * c->count + index, c->count - index);
}

static struct origin block_of_each(const struct call *c, size_t index)
{
    int source = (int) (index / c->count);
    size_t within = index % c->count;
    return inputs(source, source, within, c->count - within);
}

static struct origin block_of_each_at_root(const struct call *c, size_t index)
{
    return c->rank == c->root ? block_of_each(c, index) : untouched(c, index);
}

static struct origin my_block_of_each(const struct call *c, size_t index)
{
    struct origin origin = block_of_each(c, index);
    origin.index += (size_t) c->rank * c->count;
    return origin;
}

static int uneven_source(const struct call *c, size_t index)
{
    int source = 0;
    while (index >= c->receive_displacements[source] + c->receive_counts[source])
        source++;
    return source;
}

static struct origin uneven_block_of_each(const struct call *c, size_t index)
{
    int source = uneven_source(c, index);
    size_t within = index - c->receive_displacements[source];
    return inputs(source, source, within, c->receive_counts[source] - within);
}

static struct origin my_uneven_block_of_each(const struct call *c, size_t index)
{
    int source = uneven_source(c, index);
    size_t within = index - c->receive_displacements[source], displacement = 0;
    for (int r = 0; r < c->rank; r++)
        displacement += share_between(c, source, r);
    return inputs(source, source, displacement + within, c->receive_counts[source] - within);
}

static struct origin my_block_of_root(const struct call *c, size_t index)
{
    if (call_is_in_place(c))
        return untouched(c, index);
    return inputs(c->root, c->root, (size_t) c->rank * c->count + index, c->output_elements - index);
}

static struct origin ranks_up_to_me(const struct call *c, size_t index)
{
    return inputs(0, c->rank, index, c->output_elements - index);
}

static struct origin ranks_before_me(const struct call *c, size_t index)
{
    if (c->rank > 0)
        return inputs(0, c->rank - 1, index, c->output_elements - index);
    return c->in_place ? inputs(0, 0, index, c->output_elements - index) : untouched(c, index);
}

static struct origin rank_before_me(const struct call *c, size_t index)
{
    return c->rank > 0 ? inputs(c->rank - 1, c->rank - 1, index, c->output_elements - index) : untouched(c, index);
}

static struct origin rank_before_me_in_ring(const struct call *c, size_t index)
{
    int source = (c->rank + c->ranks - 1) % c->ranks;
    return inputs(source, source, index, c->output_elements - index);
}

static double whole(int ranks)
{
    (void) ranks;
    return 1.0;
}

static double but_own(int ranks)
{
    return (double) (ranks - 1) / ranks;
}

static double twice_but_own(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static const struct collective table[COLLECTIVE_COUNT] = {
    {"allreduce", COLLECTIVE_ALLREDUCE, .reduces = true, .in_place = true, .invoke = invoke_allreduce, .extents = one_to_one,
     .origin = everybody, .bus_factor = twice_but_own},
    {"reduce", COLLECTIVE_REDUCE, .reduces = true, .rooted = true, .in_place = true, .invoke = invoke_reduce,
     .extents = one_to_one, .origin = everybody_at_root, .bus_factor = whole},
    {"bcast", COLLECTIVE_BCAST, .rooted = true, .in_place = true, .invoke = invoke_bcast, .extents = root_buffer,
     .origin = root_input, .bus_factor = whole},
    {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, .reduces = true, .in_place = true, .split = true,
     .invoke = invoke_reduce_scatter, .extents = concentrate, .origin = own_block_reduced, .bus_factor = but_own},
    {"allgather", COLLECTIVE_ALLGATHER, .in_place = true, .split = true, .invoke = invoke_allgather, .extents = spread,
     .origin = block_of_each, .bus_factor = but_own},
    {"allgatherv", COLLECTIVE_ALLGATHERV, .in_place = true, .invoke = invoke_allgatherv, .extents = spread_unevenly,
     .origin = uneven_block_of_each, .bus_factor = but_own},
    {"alltoall", COLLECTIVE_ALLTOALL, .in_place = true, .split = true, .invoke = invoke_alltoall, .extents = exchange,
     .origin = my_block_of_each, .bus_factor = but_own},
    {"alltoallv", COLLECTIVE_ALLTOALLV, .invoke = invoke_alltoallv, .extents = exchange_unevenly,
     .origin = my_uneven_block_of_each, .bus_factor = but_own},
    {"gather", COLLECTIVE_GATHER, .rooted = true, .in_place = true, .split = true, .invoke = invoke_gather, .extents = spread,
     .origin = block_of_each_at_root, .bus_factor = but_own},
    {"scatter", COLLECTIVE_SCATTER, .rooted = true, .in_place = true, .split = true, .invoke = invoke_scatter,
     .extents = from_root, .origin = my_block_of_root, .bus_factor = but_own},
    {"barrier", COLLECTIVE_BARRIER, .invoke = invoke_barrier, .extents = nothing, .origin = untouched, .bus_factor = whole},
    {"scan", COLLECTIVE_SCAN, .reduces = true, .in_place = true, .prefix = true, .invoke = invoke_scan, .extents = one_to_one,
     .origin = ranks_up_to_me, .bus_factor = whole},
    {"exscan", COLLECTIVE_EXSCAN, .reduces = true, .in_place = true, .prefix = true, .invoke = invoke_exscan,
     .extents = one_to_one, .origin = ranks_before_me, .bus_factor = whole},
    {"alltonext", COLLECTIVE_ALLTONEXT, .invoke = invoke_alltonext, .extents = one_to_one, .origin = rank_before_me,
     .bus_factor = whole},
    {"sendrecv", COLLECTIVE_SENDRECV, .invoke = invoke_sendrecv, .extents = one_to_one, .origin = rank_before_me_in_ring,
     .bus_factor = whole},
};

const struct collective *collective_find(const char *name)
{
    if (strcmp(name, "broadcast") == 0)
        name = "bcast";
    for (int i = 0; i < COLLECTIVE_COUNT; i++) {
        if (strcmp(name, table[i].name) == 0)
            return &table[i];
    }
    return NULL;
}

bool call_shape(struct call *c, size_t bytes)
{
    const struct collective *collective = c->collective;
    if (rondo_datatype_size(c->type, &c->type_bytes) != RONDO_SUCCESS)
        return false;
    size_t ranks = (size_t) c->ranks, elements = bytes / c->type_bytes;
    size_t parts = collective->split ? ranks : 1;
    c->count = elements / parts > 0 ? elements / parts : 1;
    c->bytes = c->count * parts * c->type_bytes;
    if (collective->id == COLLECTIVE_BARRIER)
        c->count = c->bytes = 0;
    c->counts = calloc(4 * ranks, sizeof(*c->counts));
    if (c->counts == NULL)
        return false;
    c->send_counts = c->counts;
    c->send_displacements = c->counts + ranks;
    c->receive_counts = c->counts + 2 * ranks;
    c->receive_displacements = c->counts + 3 * ranks;
    collective->extents(c);
    return true;
}

bool call_is_in_place(const struct call *c)
{
    enum collective_id id = c->collective->id;
    if (id == COLLECTIVE_BCAST)
        return true;
    bool root_only = id == COLLECTIVE_REDUCE || id == COLLECTIVE_GATHER || id == COLLECTIVE_SCATTER;
    return c->in_place && (!root_only || c->rank == c->root);
}

size_t call_in_place_offset(const struct call *c)
{
    switch (c->collective->id) {
    case COLLECTIVE_ALLGATHER:
    case COLLECTIVE_GATHER:
        return (size_t) c->rank * c->count;
    case COLLECTIVE_ALLGATHERV:
        return c->receive_displacements[c->rank];
    default:
        return 0;
    }
}

void call_bind(struct call *c, void *input, void *output)
{
    c->input = input;
    c->output = output;
    c->send = input;
    c->receive = output;
    if (!call_is_in_place(c))
        return;
    if (c->collective->id == COLLECTIVE_SCATTER) { /* in place is said of the root's output here */
        c->receive = RONDO_IN_PLACE;
        return;
    }
    c->input = c->output + call_in_place_offset(c) * c->type_bytes;
    c->send = RONDO_IN_PLACE;
}

struct origin call_origin(const struct call *c, size_t index)
{
    return c->collective->origin(c, index);
}

void call_release(struct call *c)
{
    free(c->counts);
    c->counts = NULL;
}

bool form_is_persistent(enum form form)
{
    return form == FORM_PERSISTENT || form == FORM_PERSISTENT_STREAM;
}

bool form_is_on_stream(enum form form)
{
    return form == FORM_STREAM || form == FORM_PERSISTENT_STREAM;
}

rondo_result_t call_open(struct call *c, enum form form)
{
    c->requests[0] = c->requests[1] = NULL;
    return form_is_persistent(form) ? c->collective->invoke(c, form) : RONDO_SUCCESS;
}

static rondo_result_t start_on_stream(struct call *c)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; code == RONDO_SUCCESS && i < c->request_count; i++)
        code = rondo_start_on_stream(c->requests[i], c->stream);
    return code;
}

rondo_result_t call_run(struct call *c, enum form form)
{
    rondo_result_t code;
    switch (form) {
    case FORM_PERSISTENT_STREAM:
        return start_on_stream(c);
    case FORM_PERSISTENT:
        code = rondo_startall(c->request_count, c->requests);
        break;
    default:
        code = c->collective->invoke(c, form);
    }
    if (code != RONDO_SUCCESS || form == FORM_BLOCKING || form == FORM_STREAM)
        return code;
    return rondo_waitall(c->request_count, c->requests);
}

rondo_result_t call_finish(struct call *c, enum form form)
{
    return form_is_on_stream(form) ? buffers_wait(c->buffers, c->stream, 0) : RONDO_SUCCESS;
}

rondo_result_t call_close(struct call *c, enum form form)
{
    rondo_result_t first = RONDO_SUCCESS;
    for (int i = 0; form_is_persistent(form) && i < c->request_count; i++) {
        rondo_result_t code = c->requests[i] != NULL ? rondo_request_free(&c->requests[i]) : RONDO_SUCCESS;
        first = first != RONDO_SUCCESS ? first : code;
    }
    return first;
}
