/* See lib/bootstrap/found_secret.h. */
#include "lib/bootstrap/found_secret.h"

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the launcher's ---- */

/* Two numbers of 64 bits in hexadecimal, with a dash between them. Any other text may be something that can be guessed. */
static int is_random_key(const char *text)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    return strspn(text, digits) == 16 && text[16] == '-' && strspn(text + 17, digits) == 16 && text[33] == '\0' &&
           strncmp(text, text + 17, 16) != 0;
}

const char *rondo_launcher_key(char key[RONDO_LAUNCHER_KEY])
{
    static const char name[] = "OMPI_MCA_orte_precondition_transports";
    const char *text = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv(name) : NULL;
    if (text == NULL || !is_random_key(text))
        return NULL;
    snprintf(key, RONDO_LAUNCHER_KEY, "Open MPI %s", text);
    return name;
}

/* ---- the file's ---- */

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

/* Writes a secret to a file of its own and then gives it the name: the name is never that of a half-written secret, and of
 * several ranks one is first (link fails where the name is taken, also on network file systems). */
static void make_secret(const struct rondo_secret_file *file)
{
    unsigned char random[RONDO_SECRET_FILE_LEAST];
    char line[2 * sizeof(random) + 2], draft[RONDO_SECRET_FILE_PATH + 32];
    uint64_t name;
    if (rondo_random_bytes(random, sizeof(random)) != RONDO_SUCCESS || rondo_random_bytes(&name, sizeof(name)) != RONDO_SUCCESS)
        return;
    rondo_hexadecimal(line, random, sizeof(random));
    strcat(line, "\n");
    const int folder = (int) (strrchr(file->path, '/') - file->path);
    snprintf(draft, sizeof(draft), "%.*s", folder, file->path);
    mkdir(draft, S_IRWXU); /* or it is there */
    snprintf(draft, sizeof(draft), "%s.%016llx", file->path, (unsigned long long) name);
    const int descriptor = rondo_file_open(draft, O_WRONLY | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (descriptor >= 0) {
        const int error = rondo_file_write(descriptor, line, strlen(line), 0);
        const int written = close(descriptor) == 0 && error == 0;
        if (written && link(draft, file->path) == 0)
            rondo_log(RONDO_LOG_INFO, -1, "made %s, the secret of this user's jobs across hosts", file->path);
        unlink(draft);
    }
    explicit_bzero(random, sizeof(random));
    explicit_bzero(line, sizeof(line));
}

rondo_result_t rondo_secret_file_provide(struct rondo_secret_file *file)
{
    rondo_result_t result = rondo_secret_file_read(file);
    if (result != RONDO_SUCCESS || file->secret[0] != '\0' || file->path[0] == '\0')
        return result;
    make_secret(file);
    return rondo_secret_file_read(file);
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
