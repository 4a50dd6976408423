/* See lib/select/program_files.h. */
#include "lib/select/program_files.h"

#include "lib/base/containers.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/program/builder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES_MAX ((size_t) 256 << 20) /* of a file */

/* Puts directory and file before the latest message. */
static rondo_result_t blame(rondo_result_t status, const char *directory, const char *name)
{
    char reason[400];
    snprintf(reason, sizeof(reason), "%s", rondo_last_error());
    return rondo_fail(status, "RONDO_PROGRAMS: %s/%s: %s", directory, name, reason);
}

/* Reads a whole file, which the caller frees. */
static rondo_result_t read_text(const char *directory, const char *name, char **text, size_t *bytes)
{
    char reason[RONDO_FILE_REASON_BYTES], path[8192];
    size_t room = 0;
    ssize_t got = 1;
    *text = NULL;
    *bytes = 0;
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    const int descriptor = rondo_file_open(path, O_RDONLY, 0);
    if (descriptor < 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "cannot be read: %s", rondo_file_reason(-descriptor, reason));
    while (got != 0) {
        if (*bytes == room) {
            room = room == 0 ? 65536 : 2 * room;
            char *grown = room > BYTES_MAX ? NULL : realloc(*text, room);
            if (grown == NULL) {
                close(descriptor);
                return rondo_fail(RONDO_ERR_MEMORY, "no memory, or larger than %zu bytes", BYTES_MAX);
            }
            *text = grown;
        }
        got = read(descriptor, *text + *bytes, room - *bytes);
        if (got < 0 && errno != EINTR) {
            const int error = errno;
            close(descriptor);
            return rondo_fail(RONDO_ERR_ARGUMENT, "cannot be read: %s", rondo_file_reason(error, reason));
        }
        *bytes += got > 0 ? (size_t) got : 0;
    }
    close(descriptor);
    return RONDO_SUCCESS;
}

static size_t largest(const struct rondo_directives *own)
{
    return own->max_bytes > 0 ? own->max_bytes : SIZE_MAX;
}

/* The sizes that a program is for, as text. */
static const char *sizes(const struct rondo_directives *own, char text[64])
{
    if (own->max_bytes > 0)
        snprintf(text, 64, "%zu to %zu bytes", own->min_bytes, own->max_bytes);
    else
        snprintf(text, 64, "%zu bytes and more", own->min_bytes);
    return text;
}

/* Compares a program with one that came before it. */
static rondo_result_t compare(const struct rondo_program_builder *a, const struct rondo_program_file *before)
{
    struct rondo_program_builder *b;
    rondo_result_t status = rondo_program_builder_of(before->program, "RONDO_PROGRAMS", &b);
    if (status != RONDO_SUCCESS)
        return status;
    const struct rondo_directives *one = &a->directives, *other = &b->directives;
    char own_sizes[64], other_sizes[64];
    if (a->conditions.kind != b->conditions.kind || a->conditions.ranks != b->conditions.ranks)
        return RONDO_SUCCESS;
    if (strcmp(a->name, b->name) == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s has a program '%s' for %s too", before->name, a->name,
                          rondo_kind_name(a->conditions.kind));
    if (a->conditions.root != b->conditions.root || (one->op >= 0 && other->op >= 0 && one->op != other->op) ||
        one->min_bytes > largest(other) || other->min_bytes > largest(one))
        return RONDO_SUCCESS;
    return rondo_fail(RONDO_ERR_ARGUMENT, "for %s of %s, which overlaps %s, for %s", rondo_kind_name(a->conditions.kind),
                      sizes(one, own_sizes), before->name, sizes(other, other_sizes));
}

static rondo_result_t add(const char *directory, const char *name, int unproved, struct rondo_program_files *files)
{
    struct rondo_program_file file = {.name = strdup(name)};
    struct rondo_program_builder *builder = NULL;
    char *text = NULL;
    size_t bytes = 0;
    if (file.name == NULL || !rondo_grow((void **) &files->files, files->count, &files->room, sizeof(file))) {
        free(file.name);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for programs");
    }
    rondo_result_t status = read_text(directory, name, &text, &bytes);
    if (status == RONDO_SUCCESS)
        status = rondo_program_read_xml(text, bytes, &file.program);
    if (status == RONDO_SUCCESS)
        status = rondo_program_builder_of(file.program, "RONDO_PROGRAMS", &builder);
    if (status == RONDO_SUCCESS && builder->conditions.kind == RONDO_KIND_CUSTOM)
        status = rondo_fail(RONDO_ERR_ARGUMENT, "coll=\"custom\": calls choose among programs for collectives alone");
    if (status == RONDO_SUCCESS && builder->conditions.ranks != (uint32_t) unproved)
        status = rondo_program_check(file.program, NULL);
    for (size_t i = 0; i < files->count && status == RONDO_SUCCESS; i++)
        status = compare(builder, &files->files[i]);
    if (status == RONDO_SUCCESS) {
        files->fingerprint =
            rondo_hash(files->fingerprint == 0 ? RONDO_HASH_BASIS : files->fingerprint, name, strlen(name) + 1);
        files->fingerprint = rondo_hash(files->fingerprint, text, bytes);
    }
    free(text);
    files->files[files->count++] = file;
    return status;
}

static int is_program(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 4 && entry->d_name[0] != '.' && strcmp(entry->d_name + length - 4, ".xml") == 0;
}

/* In the order of bytes, whatever the locale of a rank. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

rondo_result_t rondo_program_files_read(const char *directory, int unproved, struct rondo_program_files *files)
{
    struct dirent **names = NULL;
    char reason[RONDO_FILE_REASON_BYTES];
    rondo_result_t status = RONDO_SUCCESS;
    *files = (struct rondo_program_files){0};
    const int count = scandir(directory, &names, is_program, by_name);
    if (count < 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_PROGRAMS=\"%s\" cannot be read: %s", directory,
                          rondo_file_reason(errno, reason));
    for (int i = 0; i < count; i++) {
        if (status == RONDO_SUCCESS && (status = add(directory, names[i]->d_name, unproved, files)) != RONDO_SUCCESS)
            blame(status, directory, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return status;
}

void rondo_program_files_release(struct rondo_program_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->files[i].name);
        rondo_program_destroy(files->files[i].program);
    }
    free(files->files);
    *files = (struct rondo_program_files){0};
}
