/*
 * The tuning table, which `rondo bench --tune` writes and RONDO_TUNING names: the fastest algorithm, protocol and number of
 * channels of a collective, by number of ranks and size. Relies on lib/program/algorithm.h and the C library.
 */
#ifndef RONDO_LIB_SELECT_TUNING_H
#define RONDO_LIB_SELECT_TUNING_H

#include "lib/program/algorithm.h"

#define RONDO_MACHINE_BYTES 160

/* The names of protocols in settings and tables; "": the library chooses. */
#define RONDO_PROTOCOL_NAMES                                                                                                   \
    {                                                                                                                          \
        "", "simple", "ll", "ll128", "tma"                                                                                     \
    }

struct rondo_tuning_row {
    enum rondo_kind kind;
    int ranks, channels; /* channels 0: the library chooses */
    uint64_t max_bytes;  /* the largest size of the row; the smallest is above the row before */
    char algorithm[64];  /* selection ignores a row with an unknown name */
    char protocol[16];   /* one of RONDO_PROTOCOL_NAMES */
};

struct rondo_tuning {
    struct rondo_tuning_row *rows;
    size_t count, room;
    char machine[RONDO_MACHINE_BYTES]; /* the machine on which it was measured; "": unknown */
    uint64_t fingerprint;              /* hash of the rows; must be equal on all ranks, which must choose alike */
};

/* Describes this machine: the kind of device, the processors, the GPUs. cuda: ranks are on GPUs. */
void rondo_tuning_machine(int cuda, char machine[RONDO_MACHINE_BYTES]);
/* Reads the table of a file; the caller frees it. RONDO_ERR_ARGUMENT, with position and reason, if the file is not a tuning
 * table, RONDO_ERR_SYSTEM if it cannot be read, RONDO_ERR_MEMORY. */
rondo_result_t rondo_tuning_read(const char *path, struct rondo_tuning **tuning);
/* RONDO_ERR_ARGUMENT if the table names another machine than this one. tuning may be NULL: RONDO_SUCCESS. path: for the
 * message. */
rondo_result_t rondo_tuning_check(const struct rondo_tuning *tuning, const char *path, int cuda);
/* As rondo_tuning_read, of text that is in memory. path: for messages. */
rondo_result_t rondo_tuning_parse(const char *text, size_t bytes, const char *path, struct rondo_tuning **tuning);
/* Frees the table. tuning may be NULL. */
void rondo_tuning_free(struct rondo_tuning *tuning);
/* The row for the kind, number of ranks and size in bytes; NULL if there is none. tuning may be NULL. */
const struct rondo_tuning_row *rondo_tuning_find(const struct rondo_tuning *tuning, enum rondo_kind kind, int ranks,
                                                 size_t bytes);

#endif
