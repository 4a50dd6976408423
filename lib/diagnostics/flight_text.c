/* See lib/diagnostics/flight_text.h. PyTorch's analyser matches the operations of a process group in their order, so each lane
 * is one: lanes are the order domains here. Operations that it has no name for stand apart, because it refuses the file
 * otherwise. */
#include "lib/diagnostics/flight_text.h"

#include <stdio.h>
#include <time.h>

#define VERSION      "2.10"                /* of PyTorch's format */
#define LANE_KIND    ((uint64_t) 15 << 60) /* of a lane's id: what kind of lane (lib/connection/lane.h); the rest counts */
#define LANE_CLASSES 6

/* ---- names ---- */

/* The collective's name in PyTorch; NULL: it has none. */
static const char *name_of(uint32_t kind)
{
    static const char *const names[RONDO_KINDS] = {
        [RONDO_KIND_ALLREDUCE] = "all_reduce",
        [RONDO_KIND_REDUCE] = "reduce",
        [RONDO_KIND_BCAST] = "broadcast",
        [RONDO_KIND_REDUCE_SCATTER_BLOCK] = "reduce_scatter",
        [RONDO_KIND_REDUCE_SCATTER] = "reduce_scatter",
        [RONDO_KIND_ALLGATHER] = "all_gather",
        [RONDO_KIND_ALLGATHERV] = "all_gather",
        [RONDO_KIND_ALLTOALL] = "all_to_all",
        [RONDO_KIND_ALLTOALLV] = "all_to_all",
        [RONDO_KIND_ALLTOALLW] = "all_to_all",
        [RONDO_KIND_GATHER] = "gather",
        [RONDO_KIND_GATHERV] = "gather",
        [RONDO_KIND_SCATTER] = "scatter",
        [RONDO_KIND_SCATTERV] = "scatter",
        [RONDO_KIND_BARRIER] = "all_reduce_barrier",
        [RONDO_KIND_SEND_TO] = "send",
        [RONDO_KIND_RECEIVE_FROM] = "recv",
    };
    return names[kind];
}

/* The type's name in PyTorch, or Rondo's where there is none. */
static const char *type_of(uint32_t type)
{
    static const char *const names[RONDO_DATATYPE_COUNT] = {
        [RONDO_INT8] = "Char",
        [RONDO_UINT8] = "Byte",
        [RONDO_INT32] = "Int",
        [RONDO_UINT32] = "UInt32",
        [RONDO_INT64] = "Long",
        [RONDO_UINT64] = "UInt64",
        [RONDO_FLOAT16] = "Half",
        [RONDO_BFLOAT16] = "BFloat16",
        [RONDO_FLOAT] = "Float",
        [RONDO_DOUBLE] = "Double",
        [RONDO_FLOAT8E4M3] = "Float8_e4m3fn",
        [RONDO_FLOAT8E5M2] = "Float8_e5m2",
        [RONDO_INT16] = "Short",
        [RONDO_UINT16] = "UInt16",
        [RONDO_BOOL] = "Bool",
        [RONDO_COMPLEX_FLOAT] = "ComplexFloat",
        [RONDO_COMPLEX_DOUBLE] = "ComplexDouble",
    };
    return type < RONDO_DATATYPE_COUNT && names[type] != NULL ? names[type] : rondo_type_name((rondo_datatype_t) type);
}

const char *rondo_flight_group(uint64_t comm, uint64_t lane, char name[RONDO_FLIGHT_NAME_BYTES])
{
    static const char *const classes[LANE_CLASSES] = {"",        ".persistent",     ".messages", ".persistent_message",
                                                      ".stream", ".stream_messages"};
    const uint64_t class = lane >> 60, count = lane & ~LANE_KIND;
    int used = snprintf(name, RONDO_FLIGHT_NAME_BYTES, "%llu%s", (unsigned long long) comm,
                        class < LANE_CLASSES ? classes[class] : "");
    if (class % 2 == 1 && class < LANE_CLASSES - 1)
        snprintf(name + used, RONDO_FLIGHT_NAME_BYTES - (size_t) used, ".%llu", (unsigned long long) count);
    return name;
}

/* ---- the text ---- */

static int same_group(const struct rondo_flight_call *one, const struct rondo_flight_call *other)
{
    return one->comm == other->comm && one->lane == other->lane;
}

/* Writes the process groups of all entries, and notes this rank's number in their communicators. Takes the runtime lock. */
static void write_groups(struct rondo_runtime *runtime, struct rondo_flight_view *view, size_t count, struct rondo_text *text)
{
    char name[RONDO_FLIGHT_NAME_BYTES];
    int groups = 0;
    rondo_text_add(text, "\"pg_config\": {");
    pthread_mutex_lock(&runtime->lock);
    for (size_t i = 0; i < count; i++) {
        const struct rondo_flight_call *call = &view->entries[i].call;
        size_t known = 0;
        while (known < i && !same_group(&view->entries[known].call, call))
            known++;
        const struct rondo_comm *comm = runtime->comms;
        while (comm != NULL && comm->id != call->comm)
            comm = comm->next;
        view->ranks[i] = comm != NULL ? comm->rank : -1;
        if (known < i || comm == NULL)
            continue;
        rondo_flight_group(call->comm, call->lane, name);
        rondo_text_add(text, "%s\n\"%s\": {\"name\": \"%s\", \"desc\": \"communicator %llu of %d ranks\", \"ranks\": \"[",
                       groups++ > 0 ? "," : "", name, name, (unsigned long long) comm->id, comm->size);
        for (int rank = 0; rank < comm->size; rank++)
            rondo_text_add(text, "%s%d", rank > 0 ? ", " : "", comm->members[rank]);
        rondo_text_add(text, "]\"}");
    }
    pthread_mutex_unlock(&runtime->lock);
    rondo_text_add(text, "},\n");
}

static int is_over(const struct rondo_flight_entry *entry)
{
    return entry->completed_ns != 0 && entry->result == RONDO_SUCCESS;
}

/* Writes, of each process group, the numbers of the last operations that were started and that have completed. */
static void write_status(const struct rondo_flight_view *view, size_t count, struct rondo_text *text)
{
    char name[RONDO_FLIGHT_NAME_BYTES];
    int groups = 0;
    rondo_text_add(text, "\"pg_status\": {");
    for (size_t i = 0; i < count; i++) {
        const struct rondo_flight_call *call = &view->entries[i].call;
        size_t later = i + 1;
        while (later < count && !same_group(&view->entries[later].call, call))
            later++;
        if (later < count || view->ranks[i] < 0)
            continue;
        uint64_t completed = 0;
        for (size_t k = 0; k <= i; k++)
            if (same_group(&view->entries[k].call, call) && is_over(&view->entries[k]))
                completed = view->entries[k].number + 1;
        rondo_text_add(text,
                       "%s\n\"%s\": {\"last_enqueued_collective\": %llu, \"last_started_collective\": %llu, "
                       "\"last_completed_collective\": %llu}",
                       groups++ > 0 ? "," : "", rondo_flight_group(call->comm, call->lane, name),
                       (unsigned long long) view->entries[i].number + 1, (unsigned long long) view->entries[i].number + 1,
                       (unsigned long long) completed);
    }
    rondo_text_add(text, "},\n");
}

/* Writes an entry. rank: this rank in the communicator; to_real: nanoseconds from rondo_clock_ns to the time of day. */
static void write_entry(const struct rondo_flight_entry *entry, int rank, int64_t to_real, double timeout,
                        struct rondo_text *text)
{
    static const char *const families[RONDO_FLIGHT_FAMILIES] = {"blocking", "nonblocking", "persistent", "stream"};
    const struct rondo_flight_call *call = &entry->call;
    const char *name = name_of(call->kind), *type = type_of(call->type);
    const int message = rondo_kind_is_p2p((enum rondo_kind) call->kind), over = is_over(entry);
    const int stream = entry->family == RONDO_FLIGHT_STREAM;
    const unsigned long long number = (unsigned long long) entry->number + 1;
    char group[RONDO_FLIGHT_NAME_BYTES], peers[RONDO_FLIGHT_NAME_BYTES] = "", started[RONDO_FLIGHT_NAME_BYTES] = "null",
                                         completed[RONDO_FLIGHT_NAME_BYTES] = "null";
    if (message)
        snprintf(peers, sizeof(peers), call->kind == RONDO_KIND_SEND_TO ? " %d->%d" : " %d<-%d", rank, call->root);
    if (!stream)
        snprintf(started, sizeof(started), "%lld", (long long) entry->started_ns + (long long) to_real);
    if (over)
        snprintf(completed, sizeof(completed), "%lld", (long long) entry->completed_ns + (long long) to_real);
    rondo_text_add(
        text,
        "\n{\"frames\": [], \"record_id\": %llu, \"pg_id\": %llu, \"process_group\": [\"%s\", \"communicator %llu\"], "
        "\"collective_seq_id\": %llu, \"p2p_seq_id\": %llu, \"op_id\": %llu, \"profiling_name\": \"%s:%s%s\", "
        "\"time_created_ns\": %lld, ",
        (unsigned long long) entry->position, (unsigned long long) call->comm,
        rondo_flight_group(call->comm, call->lane, group), (unsigned long long) call->comm, message ? 0 : number,
        message ? number : 0, number, name != NULL ? "nccl" : "rondo",
        name != NULL ? name : rondo_kind_name((enum rondo_kind) call->kind), peers,
        (long long) entry->started_ns + (long long) to_real);
    rondo_text_add(
        text,
        "\"input_sizes\": [[%llu]], \"input_dtypes\": [\"%s\"], \"output_sizes\": [[%llu]], \"output_dtypes\": [\"%s\"], "
        "\"state\": \"%s\", \"time_discovered_started_ns\": %s, \"time_discovered_completed_ns\": %s, "
        "\"retired\": %s, \"timeout_ms\": %.0f, \"is_p2p\": %s, ",
        (unsigned long long) call->input, type, (unsigned long long) call->output, type,
        over     ? "completed"
        : stream ? "scheduled"
                 : "started",
        started, completed, over ? "true" : "false", timeout * 1e3, message ? "true" : "false");
    rondo_text_add(
        text, "\"family\": \"%s\", \"count\": %llu, \"bytes\": %llu, \"operator\": \"%s\", \"root\": %d, \"result\": \"%s\"}",
        families[entry->family % RONDO_FLIGHT_FAMILIES], (unsigned long long) call->count, (unsigned long long) call->bytes,
        rondo_kind_reduces((enum rondo_kind) call->kind) ? rondo_op_name((rondo_op_t) call->op) : "", call->root,
        entry->completed_ns != 0 ? rondo_strerror((int) entry->result) : "");
}

/* Whether PyTorch's analyser can read the entry: it knows the collective and finds its process group. */
static int is_known(const struct rondo_flight_view *view, size_t i)
{
    return view->ranks[i] >= 0 && name_of(view->entries[i].call.kind) != NULL;
}

void rondo_flight_write_active(struct rondo_runtime *runtime, struct rondo_hang_entry *active, size_t most,
                               struct rondo_text *text)
{
    const size_t count = rondo_hang_observe(runtime, active, most);
    int written = 0;
    rondo_text_add(text, "\"active\": [");
    for (size_t i = 0; i < count; i++) {
        if (active[i].text[0] == '\0')
            continue;
        char name[RONDO_FLIGHT_NAME_BYTES];
        rondo_text_make_plain(active[i].text); /* it may name the user's program */
        rondo_text_add(text,
                       "%s\n{\"operation\": \"%s\", \"process_group\": \"%s\", \"number\": %llu, \"executing\": %s, "
                       "\"waits_for_rank\": %d}",
                       written++ > 0 ? "," : "", active[i].text, rondo_flight_group(active[i].comm, active[i].lane, name),
                       (unsigned long long) active[i].number + 1, active[i].executing ? "true" : "false", active[i].waiting_on);
    }
    rondo_text_add(text, "],\n");
}

int64_t rondo_flight_real_minus_clock(void)
{
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    return (int64_t) real.tv_sec * 1000000000 + real.tv_nsec - (int64_t) rondo_clock_ns();
}

char *rondo_flight_compose(struct rondo_runtime *runtime, struct rondo_flight_view *view)
{
    struct rondo_text text = {0};
    char *result;
    const size_t count = rondo_flight_read(runtime->flight, view->entries);
    const int64_t to_real = rondo_flight_real_minus_clock();
    rondo_text_add(&text, "{\"version\": \"" VERSION "\", \"rank\": %d, \"size\": %d,\n", runtime->rank, runtime->size);
    write_groups(runtime, view, count, &text);
    write_status(view, count, &text);
    rondo_flight_write_active(runtime, view->active, RONDO_HANG_ENTRIES, &text);
    for (int known = 1; known >= 0; known--) {
        int written = 0;
        rondo_text_add(&text, known ? "\"entries\": [" : "],\n\"other_entries\": [");
        for (size_t i = 0; i < count; i++) {
            if (is_known(view, i) != known)
                continue;
            rondo_text_add(&text, "%s", written++ > 0 ? "," : "");
            write_entry(&view->entries[i], view->ranks[i], to_real, runtime->settings.timeout, &text);
        }
    }
    rondo_text_add(&text, "]}\n");
    return rondo_text_finish(&text, RONDO_SUCCESS, &result) == RONDO_SUCCESS ? result : NULL;
}
