/* See lib/bootstrap/secret_file.h. */
#include "lib/bootstrap/secret_file.h"

#include "lib/base/error.h"
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rondo_result_t refuse(const struct rondo_secret_file *file, const char *reason)
{
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "the secret in %s is not used: %s", file->path, reason);
}

/* Reads at most so many bytes. Returns their number, or -1 and errno. */
static ssize_t read_all(int descriptor, char *to, size_t most)
{
    size_t got = 0;
    while (got < most) {
        const ssize_t more = read(descriptor, to + got, most - got);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        got += (size_t) more;
    }
    return (ssize_t) got;
}

static rondo_result_t read_secret(struct rondo_secret_file *file, int descriptor)
{
    char text[RONDO_SECRET_FILE_MOST + 2], reason[200]; /* a secret, its line's end, and a byte that would be too much */
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return refuse(file, strerror(errno));
    if (about.st_uid != geteuid() || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        snprintf(reason, sizeof(reason),
                 "it belongs to user %lu and has mode %03o; it must be this user's (%lu) alone: chmod 600",
                 (unsigned long) about.st_uid, (unsigned) about.st_mode & 0777u, (unsigned long) geteuid());
        return refuse(file, reason);
    }
    const ssize_t got = read_all(descriptor, text, sizeof(text));
    if (got < 0)
        return refuse(file, strerror(errno));
    const char *end = memchr(text, '\n', (size_t) got);
    const size_t bytes = end != NULL ? (size_t) (end - text) : (size_t) got;
    const int whole = end == NULL || end == text + got - 1;
    if (whole && bytes >= RONDO_SECRET_FILE_LEAST && bytes <= RONDO_SECRET_FILE_MOST && memchr(text, '\0', bytes) == NULL) {
        memcpy(file->secret, text, bytes);
        file->secret[bytes] = '\0';
    }
    explicit_bzero(text, sizeof(text));
    if (file->secret[0] != '\0')
        return RONDO_SUCCESS;
    snprintf(reason, sizeof(reason), "it must be one line of %d to %d bytes", RONDO_SECRET_FILE_LEAST, RONDO_SECRET_FILE_MOST);
    return refuse(file, reason);
}

rondo_result_t rondo_secret_file_read(struct rondo_secret_file *file)
{
    const char *home = getenv("HOME");
    memset(file, 0, sizeof(*file));
    if (home == NULL || *home != '/' ||
        snprintf(file->path, sizeof(file->path), "%s/.rondo/secret", home) >= (int) sizeof(file->path))
        return RONDO_SUCCESS;
    const int descriptor = rondo_file_open(file->path, O_RDONLY, 0);
    if (descriptor == -ENOENT || descriptor == -ENOTDIR)
        return RONDO_SUCCESS;
    if (descriptor < 0)
        return refuse(file, descriptor == -ESPIPE ? "it is not a regular file" : strerror(-descriptor));
    rondo_result_t result = read_secret(file, descriptor);
    close(descriptor);
    return result;
}
