/* See lib/diagnostics/rank_state.h. */
#include "lib/diagnostics/rank_state.h"

#include "lib/control/control.h"
#include "lib/diagnostics/flight_text.h"
#include "proxy/proxies.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Operations told of. The recent ones of all ranks together, so that a large job's answer stays small; and of each. */
enum { ACTIVE_MOST = 64, RECENT_OF_ALL = 4096, RECENT_LEAST = 32, RECENT_MOST = 256 };

struct counted {
    rondo_stats_t stats;
    struct rondo_control_costs control;
};

/* The counts by name. total: they only grow. */
static const struct count {
    const char *name, *what;
    size_t offset;
    int total;
} counts[] = {
    {"operations_submitted", "Operations given to the device.", offsetof(struct counted, stats.submitted), 1},
    {"operations_completed", "Operations of those that have completed.", offsetof(struct counted, stats.completed), 1},
    {"preemptions", "Tasks left unfinished because a wait exceeded its budget.", offsetof(struct counted, stats.preemptions),
     1},
    {"spin_ns", "Nanoseconds of waits that exceeded their budgets.", offsetof(struct counted, stats.spin_ns), 1},
    {"stream_blocks", "Blocks of kernels that were launched on streams.", offsetof(struct counted, stats.stream_blocks), 1},
    {"context_loads", "Positions of tasks loaded by the daemon.", offsetof(struct counted, stats.context_loads), 1},
    {"context_saves", "Positions of tasks saved by the daemon.", offsetof(struct counted, stats.context_saves), 1},
    {"daemon_starts", "Runs of the daemon.", offsetof(struct counted, stats.daemon_starts), 1},
    {"daemon_quits", "Runs of the daemon that have ended.", offsetof(struct counted, stats.daemon_quits), 1},
    {"primitives", "Slices of instructions executed.", offsetof(struct counted, stats.primitives), 1},
    {"sent_bytes", "Payload put into connectors, after compression.", offsetof(struct counted, stats.bytes_sent), 1},
    {"saved_bytes", "What compression has taken off the payload.", offsetof(struct counted, stats.bytes_saved), 1},
    {"connector_memory_bytes", "Connector memory in use.", offsetof(struct counted, stats.memory_reserved), 0},
    {"allocated_memory_bytes", "Memory of rondo_alloc in use.", offsetof(struct counted, stats.memory_allocated), 0},
    {"connector_memory_budget_bytes", "Most connector memory.", offsetof(struct counted, stats.memory_budget), 0},
    {"control_connections_made", "Connections of the control plane to other ranks.", offsetof(struct counted, control.made), 1},
    {"control_connections_accepted", "Those from other ranks.", offsetof(struct counted, control.accepted), 1},
    {"control_messages", "Messages sent over them, but signs of life.", offsetof(struct counted, control.messages), 1},
    {"control_bytes", "Bytes of these messages, with heads and tags.", offsetof(struct counted, control.bytes), 1},
};

static rondo_result_t count_all(struct rondo_runtime *runtime, struct counted *counted)
{
    rondo_control_count(runtime->control, &counted->control);
    return rondo_hang_count(runtime, &counted->stats);
}

static uint64_t value_of(const struct counted *counted, const struct count *count)
{
    uint64_t value;
    memcpy(&value, (const char *) counted + count->offset, sizeof(value));
    return value;
}

static void write_counts(const struct counted *counted, struct rondo_text *text)
{
    rondo_text_add(text, "\"counts\": {");
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        rondo_text_add(text, "%s\"%s\": %llu", i > 0 ? ", " : "", counts[i].name,
                       (unsigned long long) value_of(counted, &counts[i]));
    rondo_text_add(text, "},\n");
}

static void write_networks(const struct rondo_runtime *runtime, struct rondo_text *text)
{
    struct rondo_network_bytes sent[RONDO_PROXY_NETWORKS_MAX];
    const int networks = rondo_proxies_sent(runtime->proxies, sent);
    rondo_text_add(text, "\"sent_on_networks\": {");
    for (int i = 0; i < networks; i++)
        rondo_text_add(text, "%s\"%s\": %llu", i > 0 ? ", " : "", sent[i].network, (unsigned long long) sent[i].sent);
    rondo_text_add(text, "},\n");
}

static void write_gone(const struct rondo_runtime *runtime, struct rondo_text *text)
{
    int written = 0;
    rondo_text_add(text, "\"gone\": [");
    for (int rank = 0; rank < runtime->size; rank++)
        if (rondo_is_gone(runtime, rank))
            rondo_text_add(text, "%s%d", written++ > 0 ? ", " : "", rank);
    rondo_text_add(text, "],\n");
}

/* The last operations; times are of the time of day. entries: room for RONDO_FLIGHT_RECORDS. */
static void write_recent(struct rondo_runtime *runtime, struct rondo_flight_entry *entries, struct rondo_text *text)
{
    const size_t share = RECENT_OF_ALL / (size_t) runtime->size;
    const size_t most = share < RECENT_LEAST ? RECENT_LEAST : share > RECENT_MOST ? RECENT_MOST : share;
    const size_t count = rondo_flight_read(runtime->flight, entries), first = count > most ? count - most : 0;
    const int64_t to_real = rondo_flight_real_minus_clock();
    char name[RONDO_FLIGHT_NAME_BYTES];
    rondo_text_add(text, "\"recent\": [");
    for (size_t i = first; i < count; i++) {
        const struct rondo_flight_entry *entry = &entries[i];
        rondo_text_add(text,
                       "%s\n{\"operation\": \"%s\", \"process_group\": \"%s\", \"number\": %llu, \"bytes\": %llu, "
                       "\"started_ns\": %lld, \"completed_ns\": ",
                       i > first ? "," : "", rondo_kind_name((enum rondo_kind) entry->call.kind),
                       rondo_flight_group(entry->call.comm, entry->call.lane, name), (unsigned long long) entry->number + 1,
                       (unsigned long long) entry->call.bytes, (long long) entry->started_ns + (long long) to_real);
        if (entry->completed_ns != 0)
            rondo_text_add(text, "%lld}", (long long) entry->completed_ns + (long long) to_real);
        else
            rondo_text_add(text, "null}");
    }
    rondo_text_add(text, "]");
}

char *rondo_rank_state(struct rondo_runtime *runtime)
{
    struct rondo_flight_view *view = malloc(sizeof(*view));
    struct rondo_text text = {0};
    struct counted counted;
    char host[256] = "", *result;
    if (view == NULL)
        return NULL;
    gethostname(host, sizeof(host) - 1);
    rondo_text_make_plain(host);
    rondo_text_add(&text, "{\"rank\": %d, \"pid\": %ld, \"host\": \"%s\", \"device\": \"%s\", \"time_ns\": %lld,\n",
                   runtime->rank, (long) getpid(), host, runtime->device_type == RONDO_DEVICE_CUDA ? "cuda" : "host",
                   (long long) rondo_clock_ns() + (long long) rondo_flight_real_minus_clock());
    if (count_all(runtime, &counted) == RONDO_SUCCESS)
        write_counts(&counted, &text);
    write_networks(runtime, &text);
    write_gone(runtime, &text);
    rondo_flight_write_active(runtime, view->active, ACTIVE_MOST, &text);
    write_recent(runtime, view->entries, &text);
    rondo_text_add(&text, "}");
    free(view);
    return rondo_text_finish(&text, RONDO_SUCCESS, &result) == RONDO_SUCCESS ? result : NULL;
}

/* The lines that Prometheus wants before the samples of a name. */
static void write_head(struct rondo_text *text, const char *name, const char *end, const char *what, const char *type)
{
    rondo_text_add(text, "# HELP rondo_%s%s %s\n# TYPE rondo_%s%s %s\n", name, end, what, name, end, type);
}

char *rondo_rank_metrics(struct rondo_runtime *runtime)
{
    struct rondo_text text = {0};
    struct counted counted;
    char *result;
    if (count_all(runtime, &counted) != RONDO_SUCCESS)
        return NULL;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const char *end = counts[i].total ? "_total" : "";
        write_head(&text, counts[i].name, end, counts[i].what, counts[i].total ? "counter" : "gauge");
        rondo_text_add(&text, "rondo_%s%s{job=\"%s\",rank=\"%d\"} %llu\n", counts[i].name, end, runtime->job, runtime->rank,
                       (unsigned long long) value_of(&counted, &counts[i]));
    }
    struct rondo_network_bytes sent[RONDO_PROXY_NETWORKS_MAX];
    const int networks = rondo_proxies_sent(runtime->proxies, sent);
    if (networks > 0)
        write_head(&text, "network_sent_bytes", "_total", "Payload sent over a network, of rondo_sent_bytes_total.", "counter");
    for (int i = 0; i < networks; i++)
        rondo_text_add(&text, "rondo_network_sent_bytes_total{job=\"%s\",rank=\"%d\",network=\"%s\"} %llu\n", runtime->job,
                       runtime->rank, sent[i].network, (unsigned long long) sent[i].sent);
    int gone = 0;
    for (int rank = 0; rank < runtime->size; rank++)
        gone += rondo_is_gone(runtime, rank);
    write_head(&text, "ranks_gone", "", "Ranks of the job that have died, left or are out of reach.", "gauge");
    rondo_text_add(&text, "rondo_ranks_gone{job=\"%s\",rank=\"%d\"} %d\n", runtime->job, runtime->rank, gone);
    return rondo_text_finish(&text, RONDO_SUCCESS, &result) == RONDO_SUCCESS ? result : NULL;
}
