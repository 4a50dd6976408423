/* The table that `rondo bench --tune` writes and RONDO_TUNING names: which algorithm, protocol and number of channels is the
 * fastest for a collective, a number of ranks and a size. */
#ifndef RONDO_LIB_SELECT_TUNING_H
#define RONDO_LIB_SELECT_TUNING_H

#include "lib/program/algorithm.h"

#define RONDO_MACHINE_BYTES 160

/* As users name them; "": as is chosen. */
#define RONDO_PROTOCOL_NAMES                                                                                                   \
    {                                                                                                                          \
        "", "simple", "ll", "ll128", "tma"                                                                                     \
    }

struct rondo_tuning_row {
    enum rondo_kind kind;
    int ranks, channels; /* channels 0: the library's own choice */
    uint64_t max_bytes;  /* the row is for sizes up to it, from the row before on */
    char algorithm[64];  /* a name that no algorithm has is passed over at selection */
    char protocol[16];   /* one of RONDO_PROTOCOL_NAMES */
};

struct rondo_tuning {
    struct rondo_tuning_row *rows;
    size_t count, room;
    char machine[RONDO_MACHINE_BYTES]; /* what it was measured on; "": it does not say */
    uint64_t fingerprint;              /* of the rows: all ranks must have the same, as they must choose alike */
};

/* What tables are measured on and for: the kind of device, the processors, the GPUs. */
void rondo_tuning_machine(int cuda, char machine[RONDO_MACHINE_BYTES]);
/* RONDO_ERR_ARGUMENT with the place and reason if it is no such table, RONDO_ERR_SYSTEM if it cannot be read. */
rondo_result_t rondo_tuning_read(const char *path, struct rondo_tuning **tuning);
/* RONDO_ERR_ARGUMENT if it says that it is another machine's. tuning may be NULL. */
rondo_result_t rondo_tuning_check(const struct rondo_tuning *tuning, const char *path, int cuda);
rondo_result_t rondo_tuning_parse(const char *text, size_t bytes, const char *path, struct rondo_tuning **tuning);
void rondo_tuning_free(struct rondo_tuning *tuning);
/* NULL: it says nothing. */
const struct rondo_tuning_row *rondo_tuning_find(const struct rondo_tuning *tuning, enum rondo_kind kind, int ranks,
                                                 size_t bytes);

#endif
