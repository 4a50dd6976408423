/*
 * Pre- and postconditions of custom programs as `rondo program` takes them: a file, or the name of a built-in postcondition. A
 * file is a JSON array of {"rank": R, "chunk": C, "holds": [[RANK, CHUNK], ...]}: of a precondition, what input chunk C of rank
 * R holds at the start; of a postcondition, what its output chunk C must hold at the end: the combination of the data listed,
 * where [r, i] is what input chunk i of rank r holds without a precondition.
 */
#ifndef RONDO_TOOLS_PROGRAM_CONDITIONS_H
#define RONDO_TOOLS_PROGRAM_CONDITIONS_H

#include "rondo_program.h"
#include <stddef.h>

struct condition {
    int rank, terms; /* terms -1: the file does not say */
    size_t chunk;
    int *ranks;      /* [terms] */
    size_t *indexes; /* [terms] */
};

/* One entry for each chunk of each rank: [rank * chunks + chunk]; entries NULL: no condition. */
struct conditions {
    struct condition *entries;
    size_t count, chunks;
};

/* Reads a file, or makes the built-in postcondition of that name, for programs of the signature. what: the option,
 * "precondition" or "postcondition". Returns 0, or an exit code after saying why on standard error. conditions_free frees it in
 * both cases. */
int conditions_read(const char *what, const char *name, const rondo_program_signature_t *signature, struct conditions *result);
void conditions_free(struct conditions *conditions);
/* Adds both to a custom program; rondo_program_check() tells of errors. */
void conditions_apply(const struct conditions *before, const struct conditions *after, rondo_program_t program);

/* Element e of what a chunk holds by a condition, or of data (rank, chunk) of its own where it has none, combined by wrapping
 * sums of 32-bit numbers. */
unsigned conditions_element(const struct conditions *conditions, int rank, size_t chunk, size_t e);
/* The entry of the chunk; NULL if the condition says nothing of it. */
const struct condition *conditions_find(const struct conditions *conditions, int rank, size_t chunk);

#endif
