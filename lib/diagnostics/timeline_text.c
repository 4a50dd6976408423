/*
 * The events of a timeline's file, as Chrome trace JSON. Ranks are processes and blocks are their threads. The host's and the
 * streams' operations have threads of their own.
 */
#include "lib/diagnostics/timeline_parts.h"

#include "lib/call/call.h"

#include <stdio.h>

#define HOST_TRACK   1000
#define STREAM_TRACK 1001

/* Converts a record's time to microseconds on the host's clock. */
static double host_us(const struct rondo_timeline *trace, uint64_t time)
{
    return (double) (int64_t) ((time + (uint64_t) trace->rings.ahead) & RONDO_TRACE_TIME_MASK) / 1e3;
}

static void write_track(struct rondo_runtime *runtime, uint32_t track, const char *name)
{
    rondo_timeline_file_event(&runtime->trace->file,
                              "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
                              runtime->rank, track, name);
}

void rondo_timeline_write_tracks(struct rondo_runtime *runtime)
{
    struct rondo_timeline_file *file = &runtime->trace->file;
    int rank = runtime->rank;
    char name[32];
    rondo_timeline_file_event(file, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}", rank,
                              rank);
    rondo_timeline_file_event(file, "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_index\":%d}}",
                              rank, rank);
    write_track(runtime, HOST_TRACK, "starts");
    if (runtime->device->kind->enqueue != NULL)
        write_track(runtime, STREAM_TRACK, "streams");
    for (uint32_t b = 0; b < runtime->device->daemon->block_count; b++) {
        snprintf(name, sizeof(name), "block %u", b);
        write_track(runtime, b, name);
    }
    rondo_timeline_file_flush(file);
}

static void write_start(struct rondo_runtime *runtime, const struct rondo_timeline_start *s)
{
    static const char *const names[] = {"start", "enqueue", "capture"};
    struct rondo_call call = {.kind = (enum rondo_kind) s->kind,
                              .count = s->count,
                              .type = (rondo_datatype_t) s->type,
                              .op = rondo_op_of_code(s->op),
                              .root = s->root,
                              .rate = s->rate,
                              .feedback = s->feedback};
    char text[96];
    rondo_call_describe(&call, text, sizeof(text));
    runtime->trace->text.kinds[s->lane] = (uint8_t) (s->kind + 1);
    rondo_timeline_file_event(
        &runtime->trace->file,
        "{\"name\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"args\":{\"lane\":%u,\"number\":%u,"
        "\"operation\":\"%s\"}}",
        names[s->how], runtime->rank, s->how == RONDO_TIMELINE_STARTED ? HOST_TRACK : STREAM_TRACK, (double) s->time / 1e3,
        s->lane, s->number, text);
}

/* Writes an instant event of an operation. more: further arguments, as JSON. */
static void write_instant(struct rondo_runtime *runtime, const char *name, uint32_t track, double ts, uint64_t what,
                          const char *more)
{
    rondo_timeline_file_event(
        &runtime->trace->file,
        "{\"name\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"args\":{\"lane\":%u,\"number\":%u%s}}",
        name, runtime->rank, track, ts, RONDO_TRACE_LANE(what), RONDO_TRACE_NUMBER(what), more);
}

/* Writes an instant event of a block. counted: the name of the count argument; NULL: none. */
static void write_block(struct rondo_runtime *runtime, const char *name, uint32_t block, double ts, const char *counted,
                        uint64_t count)
{
    char arguments[48] = "";
    if (counted != NULL)
        snprintf(arguments, sizeof(arguments), "\"%s\":%llu", counted, (unsigned long long) count);
    rondo_timeline_file_event(&runtime->trace->file,
                              "{\"name\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"args\":{%s}}",
                              name, runtime->rank, block, ts, arguments);
}

static void write_fetch(struct rondo_runtime *runtime, uint32_t block, double ts, uint64_t what)
{
    uint32_t tasks = RONDO_TRACE_DETAIL(what);
    char queue[32];
    snprintf(queue, sizeof(queue), ",\"queue\":%u", tasks);
    write_instant(runtime, "fetch", block, ts, what, queue);
    rondo_timeline_file_event(&runtime->trace->file,
                              "{\"name\":\"queue length\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"args\":{\"tasks\":%u}}",
                              runtime->rank, ts, tasks);
}

/* Writes a visit that ends at time. A visit whose beginning is lost is omitted. */
static void write_visit(struct rondo_runtime *runtime, uint32_t block, uint64_t time, uint64_t what)
{
    struct rondo_timeline *trace = runtime->trace;
    uint32_t lane = RONDO_TRACE_LANE(what);
    uint8_t kind = trace->text.kinds[lane];
    uint64_t since = trace->text.visited[block] - 1;
    if (trace->text.visited[block] == 0)
        return;
    trace->text.visited[block] = 0;
    rondo_timeline_file_event(
        &trace->file,
        "{\"name\":\"%s %u\",\"cat\":\"visit\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"lane\":"
        "%u,\"number\":%u,\"end\":\"%s\",\"preemptions\":%u}}",
        kind == 0 ? "operation" : rondo_kind_name((enum rondo_kind)(kind - 1)), lane, runtime->rank, block,
        host_us(trace, since), (double) ((time - since) & RONDO_TRACE_TIME_MASK) / 1e3, lane, RONDO_TRACE_NUMBER(what),
        RONDO_TRACE_KIND(what) == RONDO_TRACE_PREEMPT ? "preempted" : "finished", RONDO_TRACE_DETAIL(what));
}

static void write_record(struct rondo_runtime *runtime, const struct rondo_timeline_record *record)
{
    struct rondo_timeline *trace = runtime->trace;
    uint64_t time = record->time, what = record->what;
    uint32_t block = RONDO_TIMELINE_BLOCK(what), kind = RONDO_TRACE_KIND(what);
    double ts = host_us(trace, time);
    if (kind != RONDO_TIMELINE_LOST && kind != RONDO_TIMELINE_EXECUTED)
        trace->text.last_us = ts;
    if (kind != RONDO_TIMELINE_LOST && (what & RONDO_TRACE_ENTERED)) {
        trace->text.visited[block] = 0;
        write_block(runtime, "daemon enters", block, ts, NULL, 0);
    }
    switch (kind) {
    case RONDO_TIMELINE_LOST:
        trace->text.visited[block] = 0;
        write_block(runtime, "lost records", block, trace->text.last_us, "count", time);
        break;
    case RONDO_TIMELINE_EXECUTED:
        write_instant(runtime, "executed", STREAM_TRACK, (double) time / 1e3, what, "");
        break;
    case RONDO_TRACE_FETCH:
        write_fetch(runtime, block, ts, what);
        break;
    case RONDO_TRACE_BEGIN:
        write_fetch(runtime, block, ts, what);
        trace->text.visited[block] = time + 1;
        break;
    case RONDO_TRACE_RESUME:
        trace->text.visited[block] = time + 1;
        break;
    case RONDO_TRACE_PREEMPT:
    case RONDO_TRACE_PART:
        write_visit(runtime, block, time, what);
        break;
    case RONDO_TRACE_COMPLETE:
        write_visit(runtime, block, time, what);
        write_instant(runtime, "complete", block, ts, what, "");
        break;
    case RONDO_TRACE_QUIT:
        trace->text.visited[block] = 0;
        write_block(runtime, "daemon quits", block, ts, "tasks", RONDO_TRACE_DETAIL(what));
        break;
    }
}

void rondo_timeline_write_retained(struct rondo_runtime *runtime)
{
    struct rondo_timeline *trace = runtime->trace;
    struct rondo_timeline_retained *retained = &trace->retained;
    for (size_t i = 0; i < retained->start_count; i++) /* starts come first: they give the kinds of the lanes */
        if (rondo_timeline_file_admits(&trace->file))
            write_start(runtime, &retained->starts[i]);
    for (size_t i = 0; i < retained->record_count; i++)
        if (rondo_timeline_file_admits(&trace->file))
            write_record(runtime, &retained->records[i]);
    retained->start_count = retained->record_count = 0;
    rondo_timeline_file_flush(&trace->file);
}
