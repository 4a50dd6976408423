/* See lib/base/file.h. */
#include "lib/base/file.h"

#include "lib/base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4224 /* of a path that the environment may give, and what is added to it */
#define PRIVATE    0600

int rondo_file_open(const char *path, int flags, mode_t mode)
{
    struct stat about;
    /* What is at the path may change between a look at it and the opening, so the descriptor is looked at. O_NONBLOCK means
     * nothing for a regular file. */
    int descriptor;
    do /* file systems of a network and of a user's process may be interrupted */
        descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, mode);
    while (descriptor < 0 && errno == EINTR);
    if (descriptor < 0)
        return errno == ENXIO ? -ESPIPE : -errno; /* ENXIO: a FIFO that no process reads, or a device that is not there */
    int error = fstat(descriptor, &about) != 0 ? errno : S_ISDIR(about.st_mode) ? EISDIR : S_ISREG(about.st_mode) ? 0 : ESPIPE;
    if (error == 0)
        return descriptor;
    close(descriptor);
    return -error;
}

ssize_t rondo_file_read(const char *path, char *text, size_t bytes)
{
    int descriptor;
    ssize_t got = -1;
    do
        descriptor = open(path, O_RDONLY | O_CLOEXEC);
    while (descriptor < 0 && errno == EINTR);
    while (descriptor >= 0 && (got = read(descriptor, text, bytes)) < 0 && errno == EINTR)
        ;
    if (got < 0)
        got = -errno;
    if (descriptor >= 0)
        close(descriptor);
    return got;
}

int rondo_file_write(int descriptor, const void *data, size_t bytes, off_t offset)
{
    const char *at = data;
    struct rondo_held_signals held;
    int error = 0;
    rondo_signals_hold(&held);
    while (bytes > 0 && error == 0) { /* after a short write, the next one has the reason */
        ssize_t written = pwrite(descriptor, at, bytes, offset);
        if (written < 0) {
            error = errno == EINTR ? 0 : errno;
            continue;
        }
        if (written == 0)
            error = EIO;
        at += written;
        offset += written;
        bytes -= (size_t) written;
    }
    rondo_signals_release(&held);
    return error;
}

int rondo_file_replace(const char *path, const void *data, size_t bytes)
{
    char beside[PATH_BYTES];
    if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int) sizeof(beside))
        return ENAMETOOLONG;
    const int descriptor = rondo_file_open(beside, O_WRONLY | O_CREAT | O_TRUNC, PRIVATE);
    if (descriptor < 0)
        return -descriptor;
    int error = rondo_file_write(descriptor, data, bytes, 0);
    if (close(descriptor) != 0 && error == 0)
        error = errno;
    if (error == 0 && rename(beside, path) != 0)
        error = errno;
    if (error != 0)
        unlink(beside);
    return error;
}

int rondo_file_resize(int descriptor, off_t bytes)
{
    struct rondo_held_signals held;
    int error;
    rondo_signals_hold(&held);
    do
        error = ftruncate(descriptor, bytes) == 0 ? 0 : errno;
    while (error == EINTR);
    rondo_signals_release(&held);
    return error;
}

const char *rondo_file_reason(int error, char text[RONDO_FILE_REASON_BYTES])
{
    struct rlimit limit;
    if (error == ESPIPE)
        snprintf(text, RONDO_FILE_REASON_BYTES, "it is not a regular file");
    else if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(text, RONDO_FILE_REASON_BYTES,
                 "%s: this process's limit of file sizes (RLIMIT_FSIZE, ulimit -f) is %llu bytes", strerror(error),
                 (unsigned long long) limit.rlim_cur);
    else
        snprintf(text, RONDO_FILE_REASON_BYTES, "%s", strerror(error));
    return text;
}
