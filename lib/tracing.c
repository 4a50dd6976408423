/* See tracing.h. */
#include "tracing.h"

#include "call.h"
#include "environment.h"
#include "platform.h"
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define STARTS       4096               /* between two looks of the poller */
#define KEPT_MAX     ((size_t) 2 << 20) /* records, before they are written */
#define QUIET_NS     200000000u
#define BUFFER_BYTES ((size_t) 256 << 10)
#define LINE_BYTES   512
#define DRAIN_NS     5000000u
#define HOST_TRACK   1000
#define STREAM_TRACK 1001

enum how { STARTED, ENQUEUED, CAPTURED };

struct start {
    uint64_t time, number;
    uint32_t lane;
    enum how how;
    struct rondo_call call;
};

/* Of a lane whose operations are executed in the order of streams: how many have been enqueued, and are known to be executed.
 */
struct ordered {
    uint64_t enqueued, executed;
    int listed;
};

/* A record that waits to be written: making text of it costs more than all the rest, and would take the time from the ranks
 * whose cores it shares. So it waits for the end, or until nothing has been completed for a while (it may be a hang that
 * somebody is going to end by killing the job), or until there are too many. */
struct kept {
    uint64_t time; /* of LOST: how many */
    uint64_t what;
    uint32_t block;
};
#define LOST     0 /* as a kind */
#define EXECUTED 8 /* likewise: an operation on a stream, by the host's clock */

/* The visit that a block is on. */
struct visit {
    uint64_t since;
    int open;
};

struct rondo_tracing {
    char *path;
    int file;
    uint32_t paused; /* atomic */
    int broken;      /* writing has failed: told once, no more is recorded */
    uint64_t *taken; /* [blocks]: records read */
    struct visit *visits;
    uint64_t lost;
    int64_t ahead; /* nanoseconds that the device's clock is before the host's, modulo its 52 bits; at most */
    int ahead_known;
    uint8_t *kinds; /* [RONDO_LANES_MAX]: enum rondo_kind of the lane's operations, + 1 */
    struct start *starts, *kept_starts;
    uint32_t start_count;    /* queue lock, as the next three */
    struct ordered *ordered; /* [RONDO_LANES_MAX] */
    uint32_t *waiting;       /* of them, those with operations that have not been executed */
    uint32_t waiting_count;
    size_t kept_start_count, kept_start_room;
    struct kept *kept;
    size_t kept_count, kept_room;
    uint64_t quiet_since; /* host clock: the last drain that saw a completion */
    uint64_t starts_lost;
    char *buffer;
    size_t used;
    double last_us; /* of the record written last */
};

/* ---- the file ---- */

static void give_up(struct rondo_runtime *runtime, const char *what)
{
    struct rondo_tracing *trace = runtime->trace;
    if (!trace->broken)
        rondo_log(RONDO_LOG_WARN, runtime->rank, "RONDO_TRACE: cannot %s %s: %s; the trace ends here", what, trace->path,
                  strerror(errno));
    trace->broken = 1;
    trace->used = 0;
}

/* Appends the buffer's lines. The file ends with "\n]\n", which they and a new end replace in one write. */
static void flush(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    static const char end[] = "\n]\n";
    const size_t end_bytes = sizeof(end) - 1;
    if (trace->used == 0 || trace->broken)
        return;
    memcpy(trace->buffer + trace->used, end, end_bytes); /* there is room: LINE_BYTES is kept free */
    if (flock(trace->file, LOCK_EX) != 0) {
        give_up(runtime, "lock");
        return;
    }
    off_t size = lseek(trace->file, 0, SEEK_END);
    size_t bytes = trace->used + end_bytes;
    if (size < (off_t) end_bytes)
        errno = EINVAL; /* somebody else has emptied it */
    if (size < (off_t) end_bytes || pwrite(trace->file, trace->buffer, bytes, size - (off_t) end_bytes) != (ssize_t) bytes)
        give_up(runtime, "write to");
    flock(trace->file, LOCK_UN);
    trace->used = 0;
}

static void line(struct rondo_runtime *runtime, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct rondo_runtime *runtime, const char *format, ...)
{
    struct rondo_tracing *trace = runtime->trace;
    va_list arguments;
    if (trace->used + 2 * LINE_BYTES > BUFFER_BYTES)
        flush(runtime);
    memcpy(trace->buffer + trace->used, ",\n", 2);
    va_start(arguments, format);
    int length = vsnprintf(trace->buffer + trace->used + 2, LINE_BYTES, format, arguments);
    va_end(arguments);
    if (length > 0 && length < LINE_BYTES) /* no line is as long, and half a line would spoil the file */
        trace->used += (size_t) length + 2;
}

/* Microseconds on the host's clock. */
static double host_us(const struct rondo_tracing *trace, uint64_t time)
{
    return (double) (int64_t) ((time + (uint64_t) trace->ahead) & RONDO_TRACE_TIME_MASK) / 1e3;
}

/* ---- records to lines ---- */

static const char *lane_name(const struct rondo_tracing *trace, uint32_t lane)
{
    return trace->kinds[lane] == 0 ? "operation" : rondo_kind_name((enum rondo_kind)(trace->kinds[lane] - 1));
}

static void write_record(struct rondo_runtime *runtime, const struct kept *record)
{
    struct rondo_tracing *trace = runtime->trace;
    uint64_t time = record->time, what = record->what;
    uint32_t b = record->block;
    struct visit *visit = &trace->visits[b < runtime->device->daemon->block_count ? b : 0];
    uint32_t lane = RONDO_TRACE_LANE(what), number = RONDO_TRACE_NUMBER(what), kind = RONDO_TRACE_KIND(what);
    const char *name = lane_name(trace, lane);
    double ts = host_us(trace, time);
    int rank = runtime->rank;
    if (kind != LOST && kind != EXECUTED)
        trace->last_us = ts;
    switch (kind) {
    case LOST:
        visit->open = 0;
        line(runtime,
             "{\"name\":\"lost records\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"args\":{\"count\":%llu}}",
             rank, b, trace->last_us, (unsigned long long) time);
        return;
    case EXECUTED:
        line(runtime,
             "{\"name\":\"executed\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"args\":{\"lane\":%u,"
             "\"number\":%u}}",
             rank, STREAM_TRACK, (double) time / 1e3, lane, number);
        break;
    case RONDO_TRACE_FETCH:
        line(runtime,
             "{\"name\":\"fetch\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"args\":{\"lane\":%u,\"number\":%"
             "u,"
             "\"queue\":%u}}",
             rank, b, ts, lane, number, RONDO_TRACE_TASKS(what));
        line(runtime, "{\"name\":\"queue length\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"args\":{\"tasks\":%u}}", rank, ts,
             RONDO_TRACE_TASKS(what));
        break;
    case RONDO_TRACE_RESUME:
        *visit = (struct visit){time, 1};
        break;
    case RONDO_TRACE_PREEMPT:
    case RONDO_TRACE_PART:
        if (!visit->open) /* its beginning is lost */
            break;
        visit->open = 0;
        line(runtime,
             "{\"name\":\"%s "
             "%u\",\"cat\":\"visit\",\"ph\":\"X\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"lane\":%u,"
             "\"number\":%u,\"end\":\"%s\"}}",
             name, lane, rank, b, host_us(trace, visit->since), (double) ((time - visit->since) & RONDO_TRACE_TIME_MASK) / 1e3,
             lane, number, kind == RONDO_TRACE_PREEMPT ? "preempted" : "finished");
        break;
    case RONDO_TRACE_COMPLETE:
        line(runtime,
             "{\"name\":\"complete\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"args\":{\"lane\":%u,"
             "\"number\":%u}}",
             rank, b, ts, lane, number);
        break;
    default:
        line(runtime,
             "{\"name\":\"daemon %s\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%u,\"ts\":%.3f,\"args\":{\"tasks\":%u}}",
             kind == RONDO_TRACE_QUIT ? "quits" : "enters", rank, b, ts, RONDO_TRACE_TASKS(what));
    }
}

static bool grow(void *array, size_t *room, size_t count, size_t size)
{
    void **place = array;
    if (count < *room)
        return true;
    size_t wanted = *room == 0 ? 4096 : 2 * *room;
    void *larger = realloc(*place, wanted * size);
    if (larger == NULL)
        return false;
    *place = larger;
    *room = wanted;
    return true;
}

static void keep(struct rondo_tracing *trace, struct kept record)
{
    if (grow(&trace->kept, &trace->kept_room, trace->kept_count, sizeof(*trace->kept)))
        trace->kept[trace->kept_count++] = record;
    else
        trace->lost++;
}

/* The reader's half of trace.h: a word of the expected lap is the one, an earlier one means that it has not been written yet, a
 * later one that the block has gone round since. Then half a ring is skipped, at least, to get out of its way. Returns how many
 * operations were completed. */
static uint64_t drain_block(struct rondo_runtime *runtime, uint32_t b)
{
    struct rondo_tracing *trace = runtime->trace;
    const struct rondo_trace_records *ring = &runtime->device->trace[b];
    uint64_t completed = 0;
    for (uint64_t most = 2 * RONDO_TRACE_DEPTH; most > 0; most--) {
        uint64_t index = trace->taken[b];
        const uint64_t *words = ring->words[index % RONDO_TRACE_DEPTH];
        uint64_t time = rondo_load_relaxed(&words[0]), what = rondo_load_relaxed(&words[1]);
        uint32_t expected = RONDO_TRACE_INDEX_LAP(index);
        uint32_t first = (RONDO_TRACE_LAP(time) - expected) & 0xfff, second = (RONDO_TRACE_LAP(what) - expected) & 0xfff;
        if (first == 0 && second == 0) {
            keep(trace, (struct kept){RONDO_TRACE_TIME(time), what, b});
            completed += RONDO_TRACE_KIND(what) == RONDO_TRACE_COMPLETE;
            trace->taken[b]++;
            continue;
        }
        uint32_t laps = first < 0x800 && first > 0 ? first : second < 0x800 ? second : 0;
        if (laps == 0)
            break;
        uint64_t skipped = (uint64_t) laps * RONDO_TRACE_DEPTH - RONDO_TRACE_DEPTH / 2;
        trace->taken[b] += skipped;
        trace->lost += skipped;
        keep(trace, (struct kept){skipped, (uint64_t) LOST << 60, b});
    }
    return completed;
}

/* A device with a clock of its own: a record cannot be from the future, so the smallest difference seen is the best guess of
 * how far the clocks are apart. */
static void compare_clocks(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    if (runtime->device->kind->poll_ns == 0)
        return;
    for (uint32_t b = 0; b < runtime->device->daemon->block_count; b++) {
        const uint64_t *words = runtime->device->trace[b].words[trace->taken[b] % RONDO_TRACE_DEPTH];
        uint64_t time = rondo_load_relaxed(&words[0]);
        if (RONDO_TRACE_LAP(time) != RONDO_TRACE_INDEX_LAP(trace->taken[b]))
            continue;
        uint64_t now = rondo_clock_ns() & RONDO_TRACE_TIME_MASK;
        int64_t ahead = (int64_t) ((now - RONDO_TRACE_TIME(time)) & RONDO_TRACE_TIME_MASK);
        if (!trace->ahead_known || ahead < trace->ahead)
            trace->ahead = ahead;
        trace->ahead_known = 1;
    }
}

static void take_starts(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    pthread_mutex_lock(&runtime->queue.lock);
    for (uint32_t i = 0; i < trace->start_count; i++) {
        if (grow(&trace->kept_starts, &trace->kept_start_room, trace->kept_start_count, sizeof(*trace->kept_starts)))
            trace->kept_starts[trace->kept_start_count++] = trace->starts[i];
        else
            trace->starts_lost++;
    }
    trace->start_count = 0;
    pthread_mutex_unlock(&runtime->queue.lock);
}

static void write_start(struct rondo_runtime *runtime, const struct start *s)
{
    static const char *const names[] = {"start", "enqueue", "capture"};
    char text[96];
    rondo_call_describe(&s->call, text, sizeof(text));
    runtime->trace->kinds[s->lane] = (uint8_t) (s->call.kind + 1);
    line(runtime,
         "{\"name\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"args\":{\"lane\":%u,\"number\":%llu,"
         "\"operation\":\"%s\"}}",
         names[s->how], runtime->rank, s->how == STARTED ? HOST_TRACK : STREAM_TRACK, (double) s->time / 1e3, s->lane,
         (unsigned long long) (s->number & 0x3ffff), text);
}

/* All that is kept. */
static void write_kept(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    for (size_t i = 0; i < trace->kept_start_count; i++) /* first: they name the lanes */
        write_start(runtime, &trace->kept_starts[i]);
    for (size_t i = 0; i < trace->kept_count; i++)
        write_record(runtime, &trace->kept[i]);
    trace->kept_start_count = trace->kept_count = 0;
    flush(runtime);
}

/* ---- the calls ---- */

static void note_start(struct rondo_tracing *trace, const struct rondo_request *request, enum how how)
{
    if (trace->start_count == STARTS)
        trace->starts_lost++;
    else
        trace->starts[trace->start_count++] =
            (struct start){rondo_clock_ns(), request->device_number, request->lane->index, how, request->call};
}

void rondo_tracing_start(struct rondo_runtime *runtime, const struct rondo_request *request)
{
    if (runtime->trace != NULL && !rondo_load_relaxed32(&runtime->trace->paused))
        note_start(runtime->trace, request, STARTED);
}

void rondo_tracing_enqueue(struct rondo_runtime *runtime, const struct rondo_request *request)
{
    struct rondo_tracing *trace = runtime->trace;
    if (trace == NULL || rondo_load_relaxed32(&trace->paused))
        return;
    uint32_t lane = request->lane->index;
    struct ordered *ordered = &trace->ordered[lane];
    pthread_mutex_lock(&runtime->queue.lock);
    note_start(trace, request, request->captured ? CAPTURED : ENQUEUED);
    if (!request->captured) {
        if (request->device_number == 0) /* a new life of the lane */
            ordered->executed = 0;
        ordered->enqueued = request->device_number + 1;
        if (!ordered->listed)
            trace->waiting[trace->waiting_count++] = lane;
        ordered->listed = 1;
    }
    pthread_mutex_unlock(&runtime->queue.lock);
}

/* What has been executed on streams since the last look. The copies are of 8 bytes a lane, and go past the streams. */
static uint64_t drain_ordered(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    struct rondo_device *device = runtime->device;
    uint64_t completed = 0;
    for (uint32_t i = 0;;) {
        pthread_mutex_lock(&runtime->queue.lock);
        uint32_t lane = i < trace->waiting_count ? trace->waiting[i] : UINT32_MAX;
        struct ordered now = lane != UINT32_MAX ? trace->ordered[lane] : (struct ordered){0};
        pthread_mutex_unlock(&runtime->queue.lock);
        if (lane == UINT32_MAX)
            return completed;
        uint64_t executed = now.executed, count = 0;
        if (device->kind->download(device, &count, &device->daemon->lanes[lane].ordered, sizeof(count)) != RONDO_SUCCESS)
            return completed;
        count = count < now.enqueued ? count : now.enqueued;
        for (; executed < count; executed++, completed++)
            keep(trace, (struct kept){rondo_clock_ns(),
                                      (uint64_t) EXECUTED << 60 | (uint64_t) lane << 30 | (executed & 0x3ffff) << 12, 0});
        pthread_mutex_lock(&runtime->queue.lock);
        struct ordered *ordered = &trace->ordered[lane];
        if (ordered->enqueued >= now.enqueued) /* else a new life has begun */
            ordered->executed = executed;
        if (ordered->executed >= ordered->enqueued) {
            ordered->listed = 0;
            trace->waiting[i] = trace->waiting[--trace->waiting_count];
        } else {
            i++;
        }
        pthread_mutex_unlock(&runtime->queue.lock);
    }
}

static void drain(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    uint64_t completed = 0;
    compare_clocks(runtime);
    take_starts(runtime);
    for (uint32_t b = 0; b < runtime->device->daemon->block_count; b++)
        completed += drain_block(runtime, b);
    completed += drain_ordered(runtime);
    if (completed > 0)
        trace->quiet_since = rondo_clock_ns();
}

void rondo_tracing_drain(struct rondo_runtime *runtime, uint64_t *most)
{
    struct rondo_tracing *trace = runtime->trace;
    if (trace == NULL || trace->broken || rondo_load_relaxed32(&trace->paused))
        return;
    drain(runtime);
    if (trace->kept_count >= KEPT_MAX ||
        (trace->kept_count + trace->kept_start_count > 0 && rondo_clock_ns() - trace->quiet_since >= QUIET_NS))
        write_kept(runtime);
    *most = *most < DRAIN_NS ? *most : DRAIN_NS;
}

/* The only block of an idle host device, out of its own thread's hands. */
static int claim_block(struct rondo_device *device)
{
    for (int i = 0; i < 100000; i++)
        if (device->kind->help_begin(device))
            return 1;
    return 0;
}

rondo_result_t rondo_tracing_pause(struct rondo_runtime *runtime, int paused)
{
    struct rondo_device *device = runtime->device;
    const struct rondo_daemon *daemon = device->daemon;
    int by_threads = device->kind->help_begin != NULL;
    if (runtime->trace == NULL)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "there is no trace (RONDO_TRACE) to pause");
    if (by_threads && daemon->block_count > 1)
        return rondo_fail(RONDO_ERR_UNSUPPORTED,
                          "a trace of %u blocks on the %s device cannot be paused, only of one (RONDO_BLOCKS=1)",
                          daemon->block_count, device->kind->name);
    rondo_result_t result = rondo_device_synchronize(runtime);
    if (result == RONDO_SUCCESS && by_threads && !claim_block(device))
        result = rondo_fail(RONDO_ERR_INTERNAL, "the idle device's block is not to be had");
    if (result != RONDO_SUCCESS)
        return result;
    for (uint32_t b = 0; b < daemon->block_count && result == RONDO_SUCCESS; b++) {
        struct rondo_trace_records *records = paused ? NULL : device->trace + b;
        result = device->kind->upload(device, &daemon->blocks[b].trace, &records, sizeof(records));
    }
    if (by_threads)
        device->kind->help_end(device, 1);
    rondo_store_relaxed32(&runtime->trace->paused, paused != 0);
    return result;
}

static int is_first_on_host(const struct rondo_runtime *runtime)
{
    for (int rank = 0; rank < runtime->rank; rank++)
        if (strcmp(runtime->peers[rank].host_id, runtime->peers[runtime->rank].host_id) == 0)
            return 0;
    return 1;
}

static rondo_result_t empty_file(const char *path)
{
    static const char text[] = "[\n{\"name\":\"rondo\",\"ph\":\"M\",\"pid\":0,\"args\":{}}\n]\n";
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int failed = file < 0 || write(file, text, sizeof(text) - 1) != (ssize_t) (sizeof(text) - 1);
    rondo_result_t result =
        failed ? rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_TRACE=%s cannot be written: %s", path, strerror(errno)) : RONDO_SUCCESS;
    if (file >= 0)
        close(file);
    return result;
}

static void free_trace(struct rondo_tracing *trace)
{
    if (trace == NULL)
        return;
    if (trace->file >= 0)
        close(trace->file);
    free(trace->path);
    free(trace->taken);
    free(trace->visits);
    free(trace->kinds);
    free(trace->starts);
    free(trace->ordered);
    free(trace->waiting);
    free(trace->kept_starts);
    free(trace->kept);
    free(trace->buffer);
    free(trace);
}

rondo_result_t rondo_tracing_create(struct rondo_runtime *runtime, struct rondo_tracing **out)
{
    const char *path;
    rondo_result_t result = rondo_environment_text("RONDO_TRACE", &path);
    *out = NULL;
    if (result != RONDO_SUCCESS || path == NULL)
        return result;
    struct rondo_tracing *trace = calloc(1, sizeof(*trace));
    if (trace == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace");
    trace->file = -1;
    trace->path = strdup(path);
    trace->kinds = calloc(RONDO_LANES_MAX, sizeof(*trace->kinds));
    trace->starts = calloc(STARTS, sizeof(*trace->starts));
    trace->ordered = calloc(RONDO_LANES_MAX, sizeof(*trace->ordered));
    trace->waiting = calloc(RONDO_LANES_MAX, sizeof(*trace->waiting));
    trace->buffer = malloc(BUFFER_BYTES);
    if (trace->path == NULL || trace->kinds == NULL || trace->starts == NULL || trace->ordered == NULL ||
        trace->waiting == NULL || trace->buffer == NULL)
        result = rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace");
    else if (is_first_on_host(runtime))
        result = empty_file(path);
    if (result != RONDO_SUCCESS) {
        free_trace(trace);
        return result;
    }
    *out = trace;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_tracing_begin(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    if (trace == NULL)
        return RONDO_SUCCESS;
    uint32_t blocks = runtime->device->daemon->block_count;
    trace->taken = calloc(blocks, sizeof(*trace->taken));
    trace->visits = calloc(blocks, sizeof(*trace->visits));
    if (trace->taken == NULL || trace->visits == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the trace of %u blocks", blocks);
    trace->file = open(trace->path, O_WRONLY | O_CLOEXEC);
    if (trace->file < 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_TRACE=%s cannot be written: %s", trace->path, strerror(errno));
    line(runtime, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}}", runtime->rank,
         runtime->rank);
    line(runtime, "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"sort_index\":%d}}", runtime->rank,
         runtime->rank);
    line(runtime, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"starts\"}}", runtime->rank,
         HOST_TRACK);
    if (runtime->device->kind->enqueue != NULL)
        line(runtime, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"streams\"}}",
             runtime->rank, STREAM_TRACK);
    for (uint32_t b = 0; b < blocks; b++)
        line(runtime, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":\"block %u\"}}",
             runtime->rank, b, b);
    flush(runtime);
    return RONDO_SUCCESS;
}

void rondo_tracing_destroy(struct rondo_runtime *runtime)
{
    struct rondo_tracing *trace = runtime->trace;
    if (trace == NULL)
        return;
    if (trace->file >= 0) {
        drain(runtime);
        write_kept(runtime);
        if (trace->lost + trace->starts_lost > 0)
            rondo_log(RONDO_LOG_WARN, runtime->rank, "RONDO_TRACE: %llu records were overwritten before they could be written",
                      (unsigned long long) (trace->lost + trace->starts_lost));
    }
    free_trace(trace);
    runtime->trace = NULL;
}
