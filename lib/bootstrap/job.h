/*
 * What the ranks of a job have in common: how they find each other, the key of their connections, and the limits of what they
 * say to each other (lib/control/control.h). Relies on lib/base/environment.h.
 */
#ifndef RONDO_LIB_BOOTSTRAP_JOB_H
#define RONDO_LIB_BOOTSTRAP_JOB_H

#include "rondo.h"

#include <stdint.h>

enum { RONDO_CONTROL_ALL = -1 };              /* destination: every rank but the sender */
enum { RONDO_CONTROL_MESSAGE_MAX = 1 << 20 }; /* bytes of one message's data */
enum { RONDO_CONTROL_NOTICE_MAX = 4096 };     /* the same of rondo_control_notify */

enum { RONDO_CONTROL_SIZE_MAX = 1 << 20 }; /* ranks of a job */

/* A job of several roots: the ranks are shared out among them, and each root takes in a contiguous share of them. */
enum { RONDO_JOB_ROOTS_MOST = 4096 };
/* The first rank of a share, 0 to roots; of the one after the last: size. */
static inline int rondo_job_first_rank(int share, int size, int roots)
{
    return (int) ((int64_t) share * size / roots);
}
/* The share that a rank belongs to. */
static inline int rondo_job_share(int rank, int size, int roots)
{
    return (int) ((((int64_t) rank + 1) * roots - 1) / size);
}

struct rondo_job_options {
    int rank, size;
    const rondo_unique_id_t *unique_id; /* where the root is; root, secret and job then do not count. NULL: none */
    int roots;                          /* of the job. With unique_id, which is that of this rank's share: 0: one. With
                                         * key_store: 0: one for each 4,096 ranks. With root: as many as that lists */
    const rondo_unique_id_t *first_id;  /* where roots is more than 1: the id of the first root, which has the job's secret */
    const char *root;                   /* "host:port" at which rank 0 listens, or several with commas between them, at each of
                                         * which the first rank of a share does; NULL: a Unix socket of this host, found by job
                                         * and user */
    const char *secret;                 /* NULL: none; a root that is not on loopback then refuses to start */
    const char *job;                    /* NULL: the empty one */
    int key_store;                      /* without unique_id and root: the root is found by lib/bootstrap/key_store.h; the same
                                         * on all ranks */
    int launched;                       /* by a launcher: without a secret, one is made for the user */
    int encrypts;                       /* rondo_job_encrypts; the same on all ranks */
    double connect_timeout;             /* seconds, more than 0 */
    /* Looked at some times a second while other ranks have not joined: whether waiting for them has become vain, and then the
     * error, which has been set; every rank that waits gets it. NULL: never. */
    rondo_result_t (*cancelled)(const void *argument);
    const void *cancelled_argument;
};

/* Stores whether the environment asks for encryption (RONDO_ENCRYPT). RONDO_ERR_ARGUMENT if it does and this build or this
 * machine cannot encrypt. */
rondo_result_t rondo_job_encrypts(int *encrypts);

#endif
