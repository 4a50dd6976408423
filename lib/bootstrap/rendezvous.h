/*
 * A rank's way to the root: find it (or start it, for the rank that holds it), prove the secret, and wait until all ranks have
 * joined. Runs on the thread that calls rondo_control_connect. Relies on lib/bootstrap/handshake.h for what may be believed.
 * What follows until the job has formed is lib/control/control.c's, which has the connection to the root from then on.
 */
#ifndef RONDO_LIB_BOOTSTRAP_RENDEZVOUS_H
#define RONDO_LIB_BOOTSTRAP_RENDEZVOUS_H

#include "lib/bootstrap/address.h"
#include "lib/bootstrap/found_secret.h"
#include "lib/bootstrap/frame_connection.h"
#include "lib/bootstrap/job.h"
#include "lib/bootstrap/root.h"

/* What a rank learns when all have joined. */
struct rondo_job {
    struct rondo_hmac key;       /* of connections between ranks */
    struct rondo_address listen; /* where this rank shall; port 0. 0 bytes: at a Unix socket whose name follows from the key */
    int holds_root;              /* this rank has started the root, which stays while the connection to it does */
};
/* Derives the key from the root's nonce and the secret, which does not travel. */
void rondo_job_key(const struct rondo_hmac *secret, const unsigned char nonce[RONDO_JOB_NONCE], struct rondo_hmac *key);

/*
 * Joins the job. Blocks for at most options->connect_timeout and a little. On success the connection to the root is open and
 * may hold input already; the caller clears job->key. RONDO_ERR_BOOTSTRAP with the reason otherwise; RONDO_ERR_SYSTEM; nothing
 * is then left open.
 */
rondo_result_t rondo_rendezvous_join(const struct rondo_job_options *options, struct rondo_frame_connection *connection,
                                     struct rondo_job *job);

/* Connects a root after the first to the first root (lib/bootstrap/first_root.h), as a member there: options->unique_id is the
 * first root's, rank the first of the root's share. Otherwise as rondo_rendezvous_join, but that it does not wait for others.
 */
rondo_result_t rondo_rendezvous_reach_first(const struct rondo_job_options *options, struct rondo_frame_connection *connection);

/* Sets the error for a job that does not form: why the root says so (reason), or that it does not say anything. Returns
 * RONDO_ERR_BOOTSTRAP. */
enum rondo_rendezvous_end { RONDO_RENDEZVOUS_REFUSED = 1, RONDO_RENDEZVOUS_ENDED, RONDO_RENDEZVOUS_SILENT };
rondo_result_t rondo_rendezvous_failed(const struct rondo_job_options *options, enum rondo_rendezvous_end end,
                                       const char *reason);
/* Stores the reason that a frame RONDO_FRAME_FAILED carries. */
enum { RONDO_RENDEZVOUS_REASON = 600 };
void rondo_rendezvous_read_reason(const struct rondo_frame *frame, char reason[RONDO_RENDEZVOUS_REASON]);

/* ---- where there is no unique id (lib/bootstrap/rendezvous_root.c) ---- */

/*
 * A job without a secret meets on a Unix socket of the same user, and both sides ask the kernel for the other's user. With
 * options->root on a loopback address the Unix socket is named by the port, and rank 0 listens on TCP as well, by a secret that
 * no rank knows: there a rank with a secret or of another user learns why it is refused.
 */
struct rondo_rendezvous_secrets {
    struct rondo_hmac same_user; /* of Unix sockets */
    struct rondo_hmac tcp;
    int known; /* tcp is one that other ranks know, too */
};
/* A secret that was not given, but found. */
struct rondo_rendezvous_found {
    const char *source; /* the variable or the file that it is from; NULL: none was looked for, or found */
    char key[RONDO_LAUNCHER_KEY];
    struct rondo_secret_file file;
};
/* Completes options: where a root that other hosts may reach comes without a secret, it is the launcher's key, else that of the
 * user's file, which is made for a job that a launcher has started. *found holds it; the caller clears it. RONDO_ERR_BOOTSTRAP
 * if the file is there and must not be used. */
rondo_result_t rondo_rendezvous_complete(struct rondo_job_options *options, struct rondo_rendezvous_found *found);
/* Fills *secrets for a job without a unique id. The caller clears it. RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_rendezvous_secrets(const struct rondo_job_options *options, struct rondo_rendezvous_secrets *secrets);
/* The roots that options->root lists, of which a rank sees its own and the first one. */
struct rondo_rendezvous_roots {
    char own[RONDO_ADDRESS_TEXT], first[RONDO_ADDRESS_TEXT];
};
/* Completes options->root and options->roots: of a list, the root becomes the one of this rank's share, which *roots holds. All
 * ranks find the same in the same list: RONDO_ERR_BOOTSTRAP with the entry that is wrong, twice there, or one too many, or that
 * needs a secret. deadline: by rondo_clock_ms. */
rondo_result_t rondo_rendezvous_choose_root(struct rondo_job_options *options, struct rondo_rendezvous_roots *roots,
                                            int64_t deadline);
/* Whether this rank holds the root of its share: the first rank does where there is no unique id. */
int rondo_rendezvous_holds_root(const struct rondo_job_options *options);
/* That rank's part: listens, starts the root, and stores a socket that is connected to it, which the caller closes. first:
 * where the first root listens, if this is another. deadline: by rondo_clock_ms. */
rondo_result_t rondo_rendezvous_start_root(const struct rondo_job_options *options,
                                           const struct rondo_rendezvous_secrets *secrets, const char *first, int64_t deadline,
                                           int *fd);
/* The addresses at which this job's root may listen, to be tried in this order: without a secret all names of Unix sockets that
 * the rank that holds the root may have had to choose from, then those of options->root's name. RONDO_ERR_BOOTSTRAP if the name
 * does not resolve before the deadline, or an address that is not loopback comes without a secret. */
enum { RONDO_RENDEZVOUS_NAMES = 16, RONDO_RENDEZVOUS_ADDRESSES = RONDO_RENDEZVOUS_NAMES + RONDO_ADDRESS_MOST };
rondo_result_t rondo_rendezvous_addresses(const struct rondo_job_options *options, int64_t deadline,
                                          struct rondo_address addresses[RONDO_RENDEZVOUS_ADDRESSES], int *count);

#endif
