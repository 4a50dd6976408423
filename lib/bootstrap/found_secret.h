/*
 * The secret of a job across hosts that has no RONDO_SECRET: what the launcher has given to the ranks alone, else a file of the
 * user. What a launcher tells publicly (job numbers, names, addresses) is none.
 */
#ifndef RONDO_LIB_BOOTSTRAP_FOUND_SECRET_H
#define RONDO_LIB_BOOTSTRAP_FOUND_SECRET_H

#include "rondo.h"

/* ---- the launcher's; relies on the environment, which processes of the same user alone can read (/proc/PID/environ) ---- */

enum { RONDO_LAUNCHER_KEY = 64 }; /* bytes, with the terminating zero */

/* Stores the key, and returns the variable that it comes from; NULL if the launcher gives none: Open MPI up to version 4 does
 * (the 128 random bits by which its transports recognize the job), MPICH's Hydra, PRRTE and Slurm do not. The caller clears the
 * key. */
const char *rondo_launcher_key(char key[RONDO_LAUNCHER_KEY]);

/* ---- the file's: $HOME/.rondo/secret, where hosts share home folders, or the same file on each. The first rank that a
 * launcher starts makes it; one that is there is never changed. Relies on the file system for who may read it. ---- */

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
