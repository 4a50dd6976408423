/* What a rondo_unique_id_t holds, for the ranks that join by it. The id carries the job's secret: whatever can read it can
 * join. */
#ifndef RONDO_LIB_BOOTSTRAP_UNIQUE_ID_H
#define RONDO_LIB_BOOTSTRAP_UNIQUE_ID_H

#include "lib/bootstrap/address.h"
#include "rondo.h"

enum { RONDO_UNIQUE_ID_SECRET = 32, RONDO_UNIQUE_ID_HOST = 16 };

struct rondo_unique_id_content {
    unsigned char secret[RONDO_UNIQUE_ID_SECRET];
    unsigned char
        host[RONDO_UNIQUE_ID_HOST]; /* hash of the root's host id (lib/base/host.h); ranks with the same use `local` */
    struct rondo_address local;     /* a Unix socket */
    struct rondo_address remote;    /* TCP; 0 bytes: none */
};

/* Takes the id apart. The caller clears content->secret after use. RONDO_ERR_ARGUMENT if rondo_get_unique_id did not write it.
 */
rondo_result_t rondo_unique_id_read(const rondo_unique_id_t *id, struct rondo_unique_id_content *content);
/* What a root that is reached by a unique id is told. */
struct rondo_unique_id_options {
    double timeout;     /* seconds to wait for the first rank */
    int size;           /* ranks of the job; 0: as the first rank says, and roots and share */
    int roots, share;   /* roots of the job, and the share of its ranks that this one takes in; 0 roots: one */
    int encrypts;       /* rondo_job_encrypts */
    const char *secret; /* a text that ranks must know beside the id, by rondo_unique_id_bind; NULL or empty: none */
};
/* Starts a root in this process and writes the id that says where the root is. The errors are rondo_get_unique_id's. */
rondo_result_t rondo_unique_id_make(const struct rondo_unique_id_options *options, rondo_unique_id_t *id);
/* Makes the id's secret one that follows from it and from the text. Leaves it as it is if the text is NULL or empty. */
void rondo_unique_id_bind(rondo_unique_id_t *id, const char *secret);
/* Changes the id's secret by exclusive or; by the same bytes it is as before. */
void rondo_unique_id_mask(unsigned char id[sizeof(rondo_unique_id_t)], const unsigned char mask[RONDO_UNIQUE_ID_SECRET]);
/* The first bytes of the hash of this host's id. */
void rondo_unique_id_this_host(unsigned char host[RONDO_UNIQUE_ID_HOST]);

#endif
