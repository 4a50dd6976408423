/*
 * The root of a job, or one of several, each for a share of the ranks: a thread that admits the ranks that know the secret,
 * waits until all have joined, tells each where its neighbours listen, and says when all are linked (lib/control/links.h). From
 * then on no rank needs it. It relies on lib/bootstrap/admission.h and lib/bootstrap/frame_connection.h for what may be
 * believed, and knows nothing of collectives.
 */
#ifndef RONDO_LIB_BOOTSTRAP_ROOT_H
#define RONDO_LIB_BOOTSTRAP_ROOT_H

#include "lib/bootstrap/address.h"
#include "lib/bootstrap/admission.h"
#include "lib/bootstrap/job.h"
#include "rondo.h"

enum { RONDO_JOB_NONCE = 32 };                                    /* bytes */
enum { RONDO_ROOT_JOB = RONDO_JOB_NONCE + RONDO_ADDRESS_STORED }; /* of RONDO_FRAME_JOB */

enum { RONDO_ROOT_PLACES = 32768 }; /* places in one frame between roots, at most */

struct rondo_root_options {
    struct rondo_admission admission; /* secrets, encrypts and listeners */
    int size;                         /* ranks of the job; 0: as the first rank says, and roots and share */
    int roots, share;                 /* roots of the job, and the share of its ranks that this one takes in; 0 roots: one */
    const struct rondo_job_options *first; /* with local, of a root after the first: how the first one is reached, which is
                                            * copied; NULL: ranks tell */
    double timeout;                        /* seconds to wait for the first rank; the thread ends if none comes */
    int local; /* a connected socket of the rank that starts the root, which unauthenticated peers cannot displace; -1: none */
};

/*
 * Starts the thread, which owns the sockets; if it cannot be started they are closed. The thread ends when the ranks have been
 * told that the job has formed or cannot. With a rank of its own it stays until that ends its connection, and refuses others
 * meanwhile, so that no second job meets at the same place. RONDO_ERR_MEMORY, RONDO_ERR_SYSTEM.
 */
rondo_result_t rondo_root_start(const struct rondo_root_options *options);

#endif
