/* The file of a timeline: complete JSON after every write, although all ranks of a host append to it. Relies on file locks. */
#include "lib/diagnostics/timeline_parts.h"
#include "lib/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t) 256 << 10)
#define LINE_BYTES   512

static void give_up(struct rondo_timeline_file *file, const char *what)
{
    if (!file->broken)
        rondo_log(RONDO_LOG_WARN, file->rank, "RONDO_TRACE: cannot %s %s: %s; the trace ends here", what, file->path,
                  strerror(errno));
    file->broken = 1;
    file->used = 0;
}

/* The file ends with "\n]\n", which the new lines and a new end replace in one write. */
void rondo_timeline_file_flush(struct rondo_timeline_file *file)
{
    static const char end[] = "\n]\n";
    const size_t end_bytes = sizeof(end) - 1;
    if (file->used == 0 || file->broken)
        return;
    memcpy(file->buffer + file->used, end, end_bytes); /* it fits: LINE_BYTES of the buffer stay free */
    if (flock(file->descriptor, LOCK_EX) != 0) {
        give_up(file, "lock");
        return;
    }
    off_t size = lseek(file->descriptor, 0, SEEK_END);
    size_t bytes = file->used + end_bytes;
    if (size < (off_t) end_bytes)
        errno = EINVAL; /* another program has emptied it */
    if (size < (off_t) end_bytes || pwrite(file->descriptor, file->buffer, bytes, size - (off_t) end_bytes) != (ssize_t) bytes)
        give_up(file, "write to");
    flock(file->descriptor, LOCK_UN);
    file->used = 0;
}

void rondo_timeline_file_event(struct rondo_timeline_file *file, const char *format, ...)
{
    va_list arguments;
    if (file->used + 2 * LINE_BYTES > BUFFER_BYTES)
        rondo_timeline_file_flush(file);
    memcpy(file->buffer + file->used, ",\n", 2);
    va_start(arguments, format);
    int length = vsnprintf(file->buffer + file->used + 2, LINE_BYTES, format, arguments);
    va_end(arguments);
    if (length > 0 && length < LINE_BYTES) /* a truncated line would make the file invalid; no event is that long */
        file->used += (size_t) length + 2;
}

static rondo_result_t refuse(const struct rondo_timeline_file *file)
{
    return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_TRACE=%s cannot be written: %s", file->path, strerror(errno));
}

rondo_result_t rondo_timeline_file_empty(const struct rondo_timeline_file *file)
{
    static const char text[] = "[\n{\"name\":\"rondo\",\"ph\":\"M\",\"pid\":0,\"args\":{}}\n]\n";
    int descriptor = open(file->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int failed = descriptor < 0 || write(descriptor, text, sizeof(text) - 1) != (ssize_t) (sizeof(text) - 1);
    rondo_result_t result = failed ? refuse(file) : RONDO_SUCCESS;
    if (descriptor >= 0)
        close(descriptor);
    return result;
}

rondo_result_t rondo_timeline_file_create(struct rondo_timeline_file *file, const char *path, int rank)
{
    file->rank = rank;
    file->descriptor = -1;
    file->path = strdup(path);
    file->buffer = malloc(BUFFER_BYTES);
    if (file->path == NULL || file->buffer == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a trace");
    return RONDO_SUCCESS;
}

rondo_result_t rondo_timeline_file_open(struct rondo_timeline_file *file)
{
    file->descriptor = open(file->path, O_WRONLY | O_CLOEXEC);
    return file->descriptor < 0 ? refuse(file) : RONDO_SUCCESS;
}

void rondo_timeline_file_destroy(struct rondo_timeline_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->path);
    free(file->buffer);
}
