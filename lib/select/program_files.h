/*
 * The programs of a directory (RONDO_PROGRAMS): files of MSCCL's XML, each for calls of its collective in its range of sizes.
 * Which calls two files are for must not overlap. Relies on lib/program/builder.h and the C library.
 */
#ifndef RONDO_LIB_SELECT_PROGRAM_FILES_H
#define RONDO_LIB_SELECT_PROGRAM_FILES_H

#include "rondo_program.h"

struct rondo_program_file {
    char *name; /* in the directory */
    rondo_program_t program;
};

struct rondo_program_files {
    struct rondo_program_file *files; /* by name */
    size_t count, room;
    uint64_t fingerprint; /* hash of names and contents; 0: there are none */
};

/*
 * Reads the files NAME.xml of the directory in the order of their names, and proves those that are not for so many ranks, which
 * rondo_program_register proves (unproved 0: all). Local. The caller calls rondo_program_files_release in any case.
 * RONDO_ERR_ARGUMENT, with file and reason, if the directory or a file cannot be read, a file is no program or a wrong or a
 * custom one, or two are for the same calls or have one name; RONDO_ERR_MEMORY.
 */
rondo_result_t rondo_program_files_read(const char *directory, int unproved, struct rondo_program_files *files);
void rondo_program_files_release(struct rondo_program_files *files);

#endif
