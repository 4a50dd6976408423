/* The programs of a directory (RONDO_PROGRAMS): any files under any names are refused with the directory and a reason, or
 * become programs in the order of their names, no two of which are for the same calls. */
#include "lib/base/error.h"
#include "lib/program/builder.h"
#include "lib/select/program_files.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { FILES = 6, SEPARATOR = 0xff };

static const char *const names[FILES] = {"a.xml", "b.xml", "c.xml", ".d.xml", "e.XML", "f%s.xml"};

/* What becomes of the name by the first byte of its part: mostly a file with the rest of the part. */
static void make_entry(int folder, const char *name, uint8_t kind, const uint8_t *data, size_t bytes)
{
    int made = 0;
    switch (kind % 16) {
    case 0:
        return;
    case 1:
        made = mkdirat(folder, name, 0700);
        break;
    case 2:
        made = mkfifoat(folder, name, 0600);
        break;
    case 3:
        made = symlinkat(name, folder, name);
        break;
    default: {
        const int fd = openat(folder, name, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0600);
        made = fd < 0 || write(fd, data, bytes) != (ssize_t) bytes ? -1 : close(fd);
    }
    }
    if (made != 0)
        abort();
}

static void judge(const struct rondo_program_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        rondo_program_signature_t signature, before;
        if (rondo_program_describe(files->files[i].program, &signature) != RONDO_SUCCESS || signature.ranks < 1)
            abort();
        if (i > 0 && strcmp(files->files[i - 1].name, files->files[i].name) >= 0)
            abort();
        for (size_t k = 0; k < i; k++)
            if (rondo_program_describe(files->files[k].program, &before) != RONDO_SUCCESS ||
                (strcmp(before.name, signature.name) == 0 && strcmp(before.collective, signature.collective) == 0 &&
                 before.ranks == signature.ranks))
                abort();
    }
    if ((files->count == 0) != (files->fingerprint == 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char path[] = "/tmp/rondo-fuzz-directory-XXXXXX";
    static int folder = -1;
    struct rondo_program_files files;
    if (bytes < 1 || bytes > 1 << 16)
        return 0;
    if (folder < 0) {
        if (mkdtemp(path) == NULL || (folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            abort();
    } else if (mkdir(path, 0700) != 0 || (folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        abort();
    }
    const uint8_t *at = data + 1, *end = data + bytes;
    for (int i = 0; i < FILES && at < end; i++) {
        const uint8_t *part_end = memchr(at, SEPARATOR, (size_t) (end - at));
        part_end = part_end != NULL ? part_end : end;
        if (part_end > at)
            make_entry(folder, names[i], *at, at + 1, (size_t) (part_end - at - 1));
        at = part_end + 1;
    }
    if (rondo_program_files_read(path, data[0] % 9, &files) == RONDO_SUCCESS)
        judge(&files);
    else if (strncmp(rondo_last_error(), "RONDO_PROGRAMS", 14) != 0)
        abort();
    rondo_program_files_release(&files);
    for (int i = 0; i < FILES; i++)
        if (unlinkat(folder, names[i], 0) != 0)
            unlinkat(folder, names[i], AT_REMOVEDIR);
    close(folder);
    if (rmdir(path) != 0)
        abort();
    return 0;
}
