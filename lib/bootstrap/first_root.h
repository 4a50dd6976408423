/*
 * A job of several roots has a first one, which the others connect to, so that the job forms as a whole. Every rank knows the
 * id of the first root, and tells its own root; this is how, and how that root comes to the first one, on a thread of its own,
 * because finding it may take time. Relies on lib/bootstrap/rendezvous.h.
 */
#ifndef RONDO_LIB_BOOTSTRAP_FIRST_ROOT_H
#define RONDO_LIB_BOOTSTRAP_FIRST_ROOT_H

#include "lib/base/sha256.h"
#include "lib/bootstrap/frame_connection.h"
#include "lib/bootstrap/job.h"

enum { RONDO_FIRST_ROOT_SALT = 32, RONDO_FIRST_ROOT_DATA = RONDO_FIRST_ROOT_SALT + (int) sizeof(rondo_unique_id_t) };

/* Writes the id as a rank tells its root: the id's secret is masked by what follows from the root's own secret and a fresh
 * random number, because frames need not be encrypted. RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_first_root_mask(const struct rondo_hmac *secret, const rondo_unique_id_t *id,
                                     unsigned char data[RONDO_FIRST_ROOT_DATA]);
/* Reads it again. The caller clears the id. */
void rondo_first_root_unmask(const struct rondo_hmac *secret, const unsigned char data[RONDO_FIRST_ROOT_DATA],
                             rondo_unique_id_t *id);

/* A connection to the first root. */
struct rondo_first_root;
/* Prepares it. options: rank is the first of the root's share; unique_id, or root and secret, are the first root's, and are
 * copied; cancelled and connect_timeout are not used. RONDO_ERR_MEMORY. */
rondo_result_t rondo_first_root_prepare(struct rondo_first_root **result, const struct rondo_job_options *options);
/* Starts the thread that makes it, once, within so many seconds. The thread writes to the descriptor wake (an eventfd) when it
 * is done. RONDO_ERR_SYSTEM. */
rondo_result_t rondo_first_root_start(struct rondo_first_root *first, double seconds, int wake);
/* Ends the thread, for which it waits: at once where the thread is done, else until its present attempt has ended. Returns what
 * has become of it: RONDO_SUCCESS, and the connection is the caller's; or an error with the reason. NULL, or not
 * started: RONDO_ERR_INTERNAL. */
rondo_result_t rondo_first_root_end(struct rondo_first_root *first, struct rondo_frame_connection *connection);

#endif
