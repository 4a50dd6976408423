/*
 * A secret in a file of the user, for all jobs across hosts that have neither RONDO_SECRET nor a key of the launcher:
 * $HOME/.rondo/secret, where hosts share home folders, or the same file on each. The first rank that a launcher starts makes
 * it; one that is there is never changed. Relies on the file system for who may read it.
 */
#ifndef RONDO_LIB_BOOTSTRAP_SECRET_FILE_H
#define RONDO_LIB_BOOTSTRAP_SECRET_FILE_H

#include "rondo.h"

enum {
    RONDO_SECRET_FILE_LEAST = 16, /* bytes of a secret */
    RONDO_SECRET_FILE_MOST = 256,
    RONDO_SECRET_FILE_PATH = 1024, /* with the terminating zero */
};

struct rondo_secret_file {
    char secret[RONDO_SECRET_FILE_MOST + 1]; /* without the line's end; "": there is no file */
    char path[RONDO_SECRET_FILE_PATH];       /* of the file */
};

/* Reads the file. The caller clears it. RONDO_ERR_BOOTSTRAP with the path and the reason if there is a file that cannot be
 * read, belongs to another user, can be read or written by others, or does not hold one line of so many bytes. */
rondo_result_t rondo_secret_file_read(struct rondo_secret_file *file);
/* The same; where there is no file, it is made of random bytes first. Several ranks may do so at once, and all read the one
 * that was first. Where it cannot be made (no home folder, a full or read-only disk), there is none. */
rondo_result_t rondo_secret_file_provide(struct rondo_secret_file *file);

#endif
