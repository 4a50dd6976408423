/*
 * The file of a timeline: complete JSON after every write, although all ranks of a host append to it. Whatever happens to the
 * file ends the timeline and never the job: events that cannot be written, or exceed this rank's share of RONDO_TRACE_BYTES,
 * are dropped and counted. Relies on file locks and on lib/base/file.h.
 */
#include "lib/diagnostics/timeline_parts.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES  ((size_t) 256 << 10)
#define LINE_BYTES    512
#define EVENTS_MOST   4                                /* of a record, and of rondo_timeline_file_end */
#define RESERVE       ((2 * EVENTS_MOST) * LINE_BYTES) /* of the share: for a last record and the end */
#define LOCK_NS       1000000000u                      /* most that a write waits for another rank's */
#define LOCK_RETRY_NS 1000000

static const char end[] = "\n]\n"; /* of the file, between two writes */
#define END_BYTES (sizeof(end) - 1)

/* Ends the timeline: what is in the buffer and all that follows is dropped. */
static void give_up(struct rondo_timeline_file *file, const char *what, const char *why)
{
    if (!file->broken)
        rondo_log(RONDO_LOG_WARN, file->rank, "RONDO_TRACE: cannot %s %s: %s; the trace ends here, and the job goes on", what,
                  file->path, why);
    file->broken = 1;
    file->dropped += file->buffered;
    file->used = 0;
    file->buffered = 0;
}

static void give_up_for(struct rondo_timeline_file *file, const char *what, int error)
{
    char reason[RONDO_FILE_REASON_BYTES];
    give_up(file, what, rondo_file_reason(error, reason));
}

/* Waits for the lock on the file, for a bounded time: a rank that is stopped may hold it. Returns 0 or the errno value. */
static int lock(const struct rondo_timeline_file *file)
{
    static const struct timespec retry_after = {0, LOCK_RETRY_NS};
    const uint64_t until = rondo_clock_ns() + LOCK_NS;
    while (flock(file->descriptor, LOCK_EX | LOCK_NB) != 0) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || rondo_clock_ns() >= until)
            return errno;
        nanosleep(&retry_after, NULL);
    }
    return 0;
}

/* Puts the file back to what it was before a write at its end failed, so that it stays JSON. */
static void restore(const struct rondo_timeline_file *file, off_t size)
{
    if (rondo_file_write(file->descriptor, end, END_BYTES, size - (off_t) END_BYTES) == 0)
        rondo_file_resize(file->descriptor, size);
}

/* Appends the buffer, which ends with the file's end: it replaces the end that is there. The lock is held. */
static void append(struct rondo_timeline_file *file)
{
    struct stat about;
    char last[END_BYTES];
    if (fstat(file->descriptor, &about) != 0) {
        give_up_for(file, "write to", errno);
        return;
    }
    const off_t size = about.st_size, at = size - (off_t) END_BYTES;
    if (about.st_nlink == 0) {
        give_up(file, "write to", "the file has been removed");
        return;
    }
    if (at < 0 || pread(file->descriptor, last, END_BYTES, at) != (ssize_t) END_BYTES || memcmp(last, end, END_BYTES) != 0) {
        give_up(file, "write to", "another program has truncated or changed the file");
        return;
    }
    const int error = rondo_file_write(file->descriptor, file->buffer, file->used + END_BYTES, at);
    if (error != 0) {
        restore(file, size);
        give_up_for(file, "write to", error);
    }
}

void rondo_timeline_file_flush(struct rondo_timeline_file *file)
{
    if (file->used == 0 || file->broken)
        return;
    memcpy(file->buffer + file->used, end, END_BYTES); /* it fits: LINE_BYTES of the buffer stay free */
    const int error = lock(file);
    if (error != 0) {
        give_up(file, "lock", error == EWOULDBLOCK ? "another process keeps it locked" : strerror(error));
        return;
    }
    append(file);
    flock(file->descriptor, LOCK_UN);
    file->used = 0;
    file->buffered = 0;
}

int rondo_timeline_file_admits(struct rondo_timeline_file *file)
{
    if (!file->broken && !file->full && file->most != 0 && file->added + RESERVE > file->most) {
        file->full = 1;
        rondo_log(RONDO_LOG_WARN, file->rank,
                  "RONDO_TRACE: %s has this rank's share of RONDO_TRACE_BYTES, %llu bytes; later events are dropped",
                  file->path, (unsigned long long) file->most);
        rondo_timeline_file_event(file, "{\"name\":\"trace full\",\"ph\":\"i\",\"s\":\"p\",\"pid\":%d,\"ts\":%.3f,\"args\":{}}",
                                  file->rank, (double) rondo_clock_ns() / 1e3);
    }
    if (!file->broken && !file->full)
        return 1;
    file->dropped++;
    return 0;
}

void rondo_timeline_file_event(struct rondo_timeline_file *file, const char *format, ...)
{
    va_list arguments;
    if (file->broken) /* within a record that has been counted */
        return;
    if (file->used + 2 * LINE_BYTES > BUFFER_BYTES)
        rondo_timeline_file_flush(file); /* empties the buffer in any case */
    if (file->broken) {
        file->dropped++;
        return;
    }
    memcpy(file->buffer + file->used, ",\n", 2);
    va_start(arguments, format);
    int length = vsnprintf(file->buffer + file->used + 2, LINE_BYTES, format, arguments);
    va_end(arguments);
    if (length > 0 && length < LINE_BYTES) { /* a truncated line would make the file invalid; no event is that long */
        file->used += (size_t) length + 2;
        file->added += (size_t) length + 2;
        file->buffered++;
    }
}

void rondo_timeline_file_end(struct rondo_timeline_file *file)
{
    if (file->dropped > 0)
        rondo_timeline_file_event(
            file, "{\"name\":\"dropped events\",\"ph\":\"i\",\"s\":\"p\",\"pid\":%d,\"ts\":%.3f,\"args\":{\"count\":%llu}}",
            file->rank, (double) rondo_clock_ns() / 1e3, (unsigned long long) file->dropped);
    rondo_timeline_file_flush(file);
    if (file->dropped > 0)
        rondo_log(RONDO_LOG_WARN, file->rank, "RONDO_TRACE: %llu events were dropped, because %s",
                  (unsigned long long) file->dropped,
                  file->broken ? "the file could not be written" : "the file has this rank's share of RONDO_TRACE_BYTES");
}

/* Opens the file. RONDO_ERR_ARGUMENT where the path is no place for a file; where there is something else, or it cannot be
 * written now, the timeline ends. */
static rondo_result_t open_file(struct rondo_timeline_file *file, int flags)
{
    static const int wrong_path[] = {ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ENAMETOOLONG, ELOOP};
    int descriptor = rondo_file_open(file->path, O_RDWR | flags, 0666);
    if (descriptor >= 0) {
        file->descriptor = descriptor;
        return RONDO_SUCCESS;
    }
    for (size_t i = 0; i < sizeof(wrong_path) / sizeof(wrong_path[0]); i++)
        if (descriptor == -wrong_path[i])
            return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_TRACE=%s cannot be written: %s", file->path, strerror(-descriptor));
    give_up_for(file, "write to", -descriptor);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_timeline_file_empty(struct rondo_timeline_file *file)
{
    static const char text[] = "[\n{\"name\":\"rondo\",\"ph\":\"M\",\"pid\":0,\"args\":{}}\n]\n";
    rondo_result_t result = open_file(file, O_CREAT);
    if (result != RONDO_SUCCESS || file->broken)
        return result;
    int error = rondo_file_resize(file->descriptor, 0);
    if (error == 0)
        error = rondo_file_write(file->descriptor, text, sizeof(text) - 1, 0);
    if (error != 0)
        give_up_for(file, "write to", error);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_timeline_file_create(struct rondo_timeline_file *file, const char *path, int rank, uint64_t most)
{
    file->rank = rank;
    file->most = most;
    file->descriptor = -1;
    file->path = strdup(path);
    file->buffer = malloc(BUFFER_BYTES);
    if (file->path == NULL || file->buffer == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace");
    return RONDO_SUCCESS;
}

rondo_result_t rondo_timeline_file_open(struct rondo_timeline_file *file)
{
    return file->broken || file->descriptor >= 0 ? RONDO_SUCCESS : open_file(file, 0);
}

void rondo_timeline_file_destroy(struct rondo_timeline_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
    free(file->buffer);
}
