/*
 * The key store of the launcher that has started this process, by which the ranks of a job on several hosts find the root when
 * the user has set nothing: the rank that holds the root stores a unique id, and the others read it. It is that of PMIx, as
 * Open MPI's, PRRTE's and Slurm's launchers have it (PMIx standard 4.1, sections 5 and 6); libpmix is loaded when it is first
 * needed. Other processes of the job's user alone can read what is stored; it passes the launcher's own network as it is.
 *
 * libpmix counts its users in a process, so an MPI library that uses the same copy goes on working. What this library opens
 * stays open until the process exits, because a process's MPI library cannot open again what was closed. An MPI library that is
 * there but has not been initialized must be so first: Open MPI 5 does not start where PMIx is open already.
 *
 * Any thread may call any function here.
 */
#ifndef RONDO_LIB_BOOTSTRAP_KEY_STORE_H
#define RONDO_LIB_BOOTSTRAP_KEY_STORE_H

#include "rondo.h"

#include <stddef.h>
#include <stdint.h>

enum { RONDO_KEY_STORE_VALUE = 128 }; /* bytes of a value */

/* Whether the launcher offers one and has given this process that rank there. Looks at the environment alone. */
int rondo_key_store_is_offered(int rank);
/* Returns why this build or this process cannot use one; NULL: it can, as far as that is known without a connection to the
 * launcher. The text is static. */
const char *rondo_key_store_unusable(void);

/* One rendezvous. The n-th of each rank of the job belong together. */
struct rondo_key_store {
    int number;
};

/* Begins this process's next rendezvous and connects to the launcher, within the launcher's own limits. RONDO_ERR_BOOTSTRAP
 * with the reason; the rendezvous then counts, too. */
rondo_result_t rondo_key_store_open(struct rondo_key_store *store);
/* Stores this rank's value for the rendezvous, for ranks on all hosts. RONDO_ERR_BOOTSTRAP with the reason. */
rondo_result_t rondo_key_store_put(const struct rondo_key_store *store, const unsigned char value[RONDO_KEY_STORE_VALUE]);
/* Waits until that rank has stored its value, and copies it. RONDO_ERR_BOOTSTRAP with the reason if it has not by the deadline
 * (rondo_clock_ms); RONDO_ERR_MEMORY. */
rondo_result_t rondo_key_store_get(const struct rondo_key_store *store, int rank, int64_t deadline,
                                   unsigned char value[RONDO_KEY_STORE_VALUE]);

#endif
