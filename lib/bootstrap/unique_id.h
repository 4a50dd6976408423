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
/* The first bytes of the hash of this host's id. */
void rondo_unique_id_this_host(unsigned char host[RONDO_UNIQUE_ID_HOST]);

#endif
