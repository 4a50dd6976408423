/* How a call's size becomes counts and where its result comes from, derived from the library's description of the collective
 * (tools/common/collectives.h); the calls themselves are in tools/common/collectives_invoke.c. */
#include "tools/common/collectives.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the collectives ---- */

/* Every rank's input becomes its neighbour's output, around the ring. */
static const rondo_collective_t sendrecv = {.name = "sendrecv",
                                            .send_ranks = RONDO_RANKS_ALL,
                                            .recv_ranks = RONDO_RANKS_ALL,
                                            .postcondition = RONDO_POSTCONDITION_PREVIOUS};

/* rule is set before anything else, by find_rules. */
static struct collective table[COLLECTIVE_COUNT] = {
    {.name = "allreduce", .id = COLLECTIVE_ALLREDUCE},
    {.name = "reduce", .id = COLLECTIVE_REDUCE},
    {.name = "bcast", .id = COLLECTIVE_BCAST},
    {.name = "reduce_scatter_block", .id = COLLECTIVE_REDUCE_SCATTER_BLOCK},
    {.name = "reduce_scatter", .id = COLLECTIVE_REDUCE_SCATTER},
    {.name = "allgather", .id = COLLECTIVE_ALLGATHER},
    {.name = "allgatherv", .id = COLLECTIVE_ALLGATHERV},
    {.name = "alltoall", .id = COLLECTIVE_ALLTOALL},
    {.name = "alltoallv", .id = COLLECTIVE_ALLTOALLV},
    {.name = "alltoallw", .id = COLLECTIVE_ALLTOALLW},
    {.name = "gather", .id = COLLECTIVE_GATHER},
    {.name = "gatherv", .id = COLLECTIVE_GATHERV},
    {.name = "scatter", .id = COLLECTIVE_SCATTER},
    {.name = "scatterv", .id = COLLECTIVE_SCATTERV},
    {.name = "barrier", .id = COLLECTIVE_BARRIER},
    {.name = "scan", .id = COLLECTIVE_SCAN},
    {.name = "exscan", .id = COLLECTIVE_EXSCAN},
    {.name = "alltonext", .id = COLLECTIVE_ALLTONEXT},
    {.name = "sendrecv", .id = COLLECTIVE_SENDRECV, .rule = &sendrecv},
};

static void find_rules(void)
{
    const rondo_collective_t *rule;
    for (int index = 0; (rule = rondo_collective_describe(index)) != NULL; index++)
        for (int i = 0; i < COLLECTIVE_COUNT; i++)
            if (strcmp(rule->name, table[i].name) == 0)
                table[i].rule = rule;
}

const struct collective *collective_find(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const struct collective *found = NULL;
    int matches = 0;
    pthread_once(&once, find_rules);
    if (strcmp(name, "broadcast") == 0)
        name = "bcast";
    for (int i = 0; i < COLLECTIVE_COUNT; i++) {
        if (table[i].rule == NULL || strncmp(name, table[i].name, strlen(name)) != 0)
            continue;
        found = &table[i];
        matches++;
        if (strcmp(name, found->name) == 0)
            return found;
    }
    return matches == 1 ? found : NULL;
}

void collective_list(char *text, size_t bytes, const char *separator)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < COLLECTIVE_COUNT && at < bytes; i++)
        at += (size_t) snprintf(text + at, bytes - at, "%s%s", i > 0 ? separator : "", table[i].name);
}

bool collective_shares(const struct collective *collective)
{
    return collective->rule->placement != RONDO_PLACEMENT_APART;
}

bool collective_is_prefix(const struct collective *collective)
{
    return collective->rule->postcondition == RONDO_POSTCONDITION_PREFIX ||
           collective->rule->postcondition == RONDO_POSTCONDITION_PREFIX_BEFORE;
}

double collective_bus_factor(const struct collective *collective, int ranks)
{
    return collective->rule->bus_factor == 0 ? 1.0 : (double) collective->rule->bus_factor * (ranks - 1) / ranks;
}

/* ---- sizes ---- */

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

/* What source sends to destination in alltoallv; a rank's row and its column both add up to total. In place, two ranks send
 * each other as much. */
static size_t share_between(const struct call *c, int source, int destination)
{
    int ahead = (destination - source + c->ranks) % c->ranks;
    return share(c->count, c->ranks, c->in_place && 2 * ahead > c->ranks ? c->ranks - ahead : ahead);
}

/* Sets the counts and displacements of blocks that all ranks know. Returns the elements of all of them. */
static size_t spread_unevenly(const struct call *c, size_t *counts, size_t *displacements)
{
    size_t offset = 0;
    for (int r = 0; r < c->ranks; r++) {
        counts[r] = share(c->count, c->ranks, r);
        displacements[r] = offset;
        offset += counts[r];
    }
    return offset;
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

/* Sets input_elements and output_elements. Each rank has a whole output, also one whose output stays untouched; an input has
 * only the root where no other rank gives any. */
static void set_extents(struct call *c)
{
    const rondo_collective_t *rule = c->collective->rule;
    size_t all = c->count * (size_t) c->ranks;
    if (rule->send_extent == RONDO_EXTENT_COUNTS && rule->recv_extent == RONDO_EXTENT_COUNTS) {
        exchange_unevenly(c);
        return;
    }
    if (rule->recv_extent == RONDO_EXTENT_COUNTS) {
        c->output_elements = spread_unevenly(c, c->receive_counts, c->receive_displacements);
        c->input_elements = c->receive_counts[c->rank];
        return;
    }
    if (rule->send_extent == RONDO_EXTENT_COUNTS) {
        size_t sent = spread_unevenly(c, c->send_counts, c->send_displacements);
        memcpy(c->receive_counts, c->send_counts, (size_t) c->ranks * sizeof(*c->receive_counts)); /* a reduce-scatter's */
        c->input_elements = rule->send_ranks == RONDO_RANKS_ROOT && c->rank != c->root ? 0 : sent;
        c->output_elements = c->in_place && rule->placement == RONDO_PLACEMENT_SEND ? sent : c->send_counts[c->rank];
        return;
    }
    c->input_elements = rule->send_extent == RONDO_EXTENT_BLOCKS ? all : c->count;
    c->output_elements = rule->recv_extent == RONDO_EXTENT_BLOCKS ? all : c->count;
    if (c->in_place && rule->placement == RONDO_PLACEMENT_SEND && c->output_elements < c->input_elements)
        c->output_elements = c->input_elements;
    if (rule->send_ranks == RONDO_RANKS_NONE || (rule->send_ranks == RONDO_RANKS_ROOT && c->rank != c->root))
        c->input_elements = 0;
    if (rule->recv_ranks == RONDO_RANKS_NONE)
        c->output_elements = 0;
}

/* ---- origins ---- */

static struct origin inputs(int first, int last, size_t index, size_t length)
{
    return (struct origin){.kind = ORIGIN_INPUT, .first = first, .last = last, .index = index, .length = length};
}

static bool is_untouched(const struct call *c)
{
    switch (c->collective->rule->recv_ranks) {
    case RONDO_RANKS_ALL:
        /* The root's own block of a scatter stays where it is. */
        return c->collective->rule->placement == RONDO_PLACEMENT_RECV_AT_ROOT && call_is_in_place(c);
    case RONDO_RANKS_ROOT:
        return c->rank != c->root;
    case RONDO_RANKS_NOT_FIRST:
        return c->rank == 0;
    case RONDO_RANKS_NOT_LAST:
        return c->rank == c->ranks - 1;
    case RONDO_RANKS_NONE:
        break;
    }
    return true;
}

/* Element index of an output that consists of blocks of all ranks. transposed: of each rank's blocks the one for this rank. */
static struct origin block_of_each(const struct call *c, size_t index, bool transposed)
{
    int source = (int) (index / c->count);
    size_t within = index % c->count;
    return inputs(source, source, (transposed ? (size_t) c->rank * c->count : 0) + within, c->count - within);
}

static struct origin uneven_block_of_each(const struct call *c, size_t index, bool transposed)
{
    int source = 0;
    while (index >= c->receive_displacements[source] + c->receive_counts[source])
        source++;
    size_t within = index - c->receive_displacements[source], displacement = 0;
    for (int r = 0; transposed && r < c->rank; r++)
        displacement += share_between(c, source, r);
    return inputs(source, source, displacement + within, c->receive_counts[source] - within);
}

struct origin call_origin(const struct call *c, size_t index)
{
    const rondo_collective_t *rule = c->collective->rule;
    /* This rank's block of an input that has one for each rank. */
    const bool uneven = rule->send_extent == RONDO_EXTENT_COUNTS;
    const size_t own = uneven ? c->send_counts[c->rank] : c->count;
    const size_t start = uneven ? c->send_displacements[c->rank] : (size_t) c->rank * c->count;
    size_t rest = c->output_elements - index;
    int previous = (c->rank + c->ranks - 1) % c->ranks;
    bool transposed = rule->postcondition == RONDO_POSTCONDITION_TRANSPOSED;
    if (is_untouched(c)) /* in place, what is there is the rank's own input */
        return rule->placement == RONDO_PLACEMENT_SEND && c->in_place
                   ? inputs(c->rank, c->rank, index, rest)
                   : (struct origin){.kind = ORIGIN_UNTOUCHED, .length = rest};
    switch (rule->postcondition) {
    case RONDO_POSTCONDITION_REDUCED:
        return inputs(0, c->ranks - 1, index, rest);
    case RONDO_POSTCONDITION_REDUCED_BLOCK:
        if (index >= own) /* in place: what the other blocks hold afterwards is not said */
            return (struct origin){.kind = ORIGIN_ANYTHING, .length = rest};
        return inputs(0, c->ranks - 1, start + index, own - index);
    case RONDO_POSTCONDITION_PREFIX:
        return inputs(0, c->rank, index, rest);
    case RONDO_POSTCONDITION_PREFIX_BEFORE:
        return inputs(0, c->rank - 1, index, rest);
    case RONDO_POSTCONDITION_CONCATENATED:
    case RONDO_POSTCONDITION_TRANSPOSED:
        return rule->recv_extent == RONDO_EXTENT_COUNTS ? uneven_block_of_each(c, index, transposed)
                                                        : block_of_each(c, index, transposed);
    case RONDO_POSTCONDITION_ROOT:
        return inputs(c->root, c->root, index, rest);
    case RONDO_POSTCONDITION_ROOT_BLOCK:
        return inputs(c->root, c->root, start + index, rest);
    case RONDO_POSTCONDITION_PREVIOUS:
        return inputs(previous, previous, index, rest);
    case RONDO_POSTCONDITION_NOTHING:
    case RONDO_POSTCONDITION_PEER:
    case RONDO_POSTCONDITION_REQUIRED:
        break;
    }
    return (struct origin){.kind = ORIGIN_ANYTHING, .length = rest};
}

/* ---- calls ---- */

bool call_shape(struct call *c, size_t bytes)
{
    const rondo_collective_t *rule = c->collective->rule;
    if (rondo_datatype_size(c->type, &c->type_bytes) != RONDO_SUCCESS)
        return false;
    size_t ranks = (size_t) c->ranks, elements = bytes / c->type_bytes;
    size_t parts = rule->send_extent == RONDO_EXTENT_BLOCKS || rule->recv_extent == RONDO_EXTENT_BLOCKS ? ranks : 1;
    c->count = elements / parts > 0 ? elements / parts : 1;
    c->bytes = c->count * parts * c->type_bytes;
    if (rule->recv_ranks == RONDO_RANKS_NONE)
        c->count = c->bytes = 0;
    c->counts = calloc(6 * ranks, sizeof(*c->counts));
    c->types = calloc(ranks, sizeof(*c->types));
    if (c->counts == NULL || c->types == NULL) {
        call_release(c);
        return false;
    }
    c->send_counts = c->counts;
    c->send_displacements = c->counts + ranks;
    c->receive_counts = c->counts + 2 * ranks;
    c->receive_displacements = c->counts + 3 * ranks;
    c->send_offsets = c->counts + 4 * ranks;
    c->receive_offsets = c->counts + 5 * ranks;
    set_extents(c);
    for (size_t r = 0; r < ranks; r++) {
        c->types[r] = c->type;
        c->send_offsets[r] = c->send_displacements[r] * c->type_bytes;
        c->receive_offsets[r] = c->receive_displacements[r] * c->type_bytes;
    }
    return true;
}

bool call_is_in_place(const struct call *c)
{
    rondo_placement_t placement = c->collective->rule->placement;
    bool at_root = placement == RONDO_PLACEMENT_SEND_AT_ROOT || placement == RONDO_PLACEMENT_RECV_AT_ROOT;
    return placement == RONDO_PLACEMENT_SHARED || (c->in_place && (!at_root || c->rank == c->root));
}

size_t call_in_place_offset(const struct call *c)
{
    const rondo_collective_t *rule = c->collective->rule;
    if (!rule->own_block || rule->placement == RONDO_PLACEMENT_RECV_AT_ROOT)
        return 0;
    return rule->recv_extent == RONDO_EXTENT_COUNTS ? c->receive_displacements[c->rank] : (size_t) c->rank * c->count;
}

void call_bind(struct call *c, void *input, void *output)
{
    c->input = input;
    c->output = output;
    c->send = input;
    c->receive = output;
    if (!call_is_in_place(c))
        return;
    if (c->collective->rule->placement == RONDO_PLACEMENT_RECV_AT_ROOT) {
        c->receive = RONDO_IN_PLACE;
        return;
    }
    c->input = c->output + call_in_place_offset(c) * c->type_bytes;
    c->send = RONDO_IN_PLACE;
}

void call_release(struct call *c)
{
    free(c->counts);
    free(c->types);
    c->counts = NULL;
    c->types = NULL;
}

bool form_is_persistent(enum form form)
{
    return form == FORM_PERSISTENT || form == FORM_PERSISTENT_STREAM || form == FORM_CALLBACK;
}

bool form_is_on_stream(enum form form)
{
    return form == FORM_STREAM || form == FORM_PERSISTENT_STREAM;
}

rondo_result_t call_open(struct call *c, enum form form)
{
    c->requests[0] = c->requests[1] = NULL;
    return form_is_persistent(form) ? call_invoke(c, form) : RONDO_SUCCESS;
}

static rondo_result_t start_on_stream(struct call *c)
{
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; code == RONDO_SUCCESS && i < c->request_count; i++)
        code = rondo_start_on_stream(c->requests[i], c->stream);
    return code;
}

static void count_down(void *argument, rondo_result_t result)
{
    (void) result; /* the wait that follows returns it */
    __atomic_fetch_sub((int *) argument, 1, __ATOMIC_RELEASE);
}

/* Waits for the callbacks of the requests that are started here, and looks for nothing else meanwhile. */
static rondo_result_t start_with_callbacks(struct call *c)
{
    int left = c->request_count;
    rondo_result_t code = RONDO_SUCCESS;
    for (int i = 0; code == RONDO_SUCCESS && i < c->request_count; i++)
        code = rondo_request_callback(c->requests[i], count_down, &left);
    if (code == RONDO_SUCCESS)
        code = rondo_startall(c->request_count, c->requests);
    while (code == RONDO_SUCCESS && __atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0)
        sched_yield();
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
    case FORM_CALLBACK:
        code = start_with_callbacks(c);
        break;
    default:
        code = call_invoke(c, form);
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
