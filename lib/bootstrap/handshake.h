/*
 * How a rank and the root prove to each other that they know the secret, and agree on the keys of their connection. Builds and
 * reads the three messages; sending them is the callers' part: lib/bootstrap/admission.c's of
 * the root, or of a rank that another connects to, and of the other side that of those who connect.
 *
 *   root to rank   challenge: magic, version, the root's nonce
 *   rank to root   hello: magic, version, rank, size, the time it will wait, process token, its nonce, roots, proof
 *   root to rank   verdict: code, detail, proof
 *
 * A proof is the HMAC, by the secret, of a label and everything said so far. Both nonces are in it, so a proof cannot be used
 * twice; the label says which side made it, so it cannot be sent back. The rank proves first: the root is the side that
 * strangers can reach, and must not hand them anything by which they could test guesses of the secret.
 *
 * With encryption the nonces are also what the two sides tell of an X25519 exchange, and the keys come from its outcome, too:
 * so a recorded connection stays secret even when the secret becomes known later. The challenge says whether the root encrypts;
 * a rank that does otherwise does not answer, and what was said is in every proof.
 *
 * One struct rondo_handshake serves one connection and belongs to one thread at a time.
 */
#ifndef RONDO_LIB_BOOTSTRAP_HANDSHAKE_H
#define RONDO_LIB_BOOTSTRAP_HANDSHAKE_H

#include "rondo.h"
#include "lib/base/thread.h"
#include "lib/base/sha256.h"
#include "lib/bootstrap/frame_connection.h"

enum {
    RONDO_HANDSHAKE_CHALLENGE = 48, /* bytes of the three messages */
    RONDO_HANDSHAKE_HELLO = 112,
    RONDO_HANDSHAKE_VERDICT = 40,
};

enum rondo_handshake_verdict {
    RONDO_HANDSHAKE_WELCOME = 0, /* detail: 1 if the root is in the rank's own process */
    RONDO_HANDSHAKE_SECRET = 1,  /* the proof is wrong; this verdict alone has no proof */
    RONDO_HANDSHAKE_SIZE = 2,    /* detail: the job's size */
    RONDO_HANDSHAKE_TAKEN = 3,   /* this rank is connected already */
    RONDO_HANDSHAKE_OVER =
        4, /* the job that meets there has formed or ends; of a rank: detail 1 if it takes this one for dead */
    RONDO_HANDSHAKE_ROOTS = 5, /* the job has another number of roots, which is the detail, or they stand in another order */
};

struct rondo_handshake {
    unsigned char challenge[RONDO_HANDSHAKE_CHALLENGE];
    unsigned char hello[RONDO_HANDSHAKE_HELLO];
    unsigned char verdict[RONDO_HANDSHAKE_VERDICT];
    int encrypts;                                 /* set before the first message is made or read */
    unsigned char exchange[RONDO_EXCHANGE_BYTES]; /* this side's secret number, until the keys are derived */
};

struct rondo_handshake_claim {
    int rank, size;
    int roots;   /* of the job, 1 to size */
    int is_root; /* a root after the first, which comes to the first; rank is then the first of its share (rondo_job_first_rank)
                  */
    uint32_t wait_ms; /* how long the rank will wait for the others */
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES];
};

/* ---- the root's side ---- */

/* Fills handshake->challenge. RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_handshake_make_challenge(struct rondo_handshake *handshake);
/* Judges handshake->hello. Returns 1 if the rank has proven that it knows the secret, and *claim is then set and in range; 0 if
 * it is a rank with another secret; -1 if it is not a rank. */
int rondo_handshake_read_hello(const struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                               struct rondo_handshake_claim *claim);
/* Fills handshake->verdict, after the hello was read. */
void rondo_handshake_make_verdict(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                  enum rondo_handshake_verdict code, int detail);

/* ---- the rank's side ---- */

/* Judges handshake->challenge. Returns 1 if it is a root's of this version; 0 if it is a root's of another version, which is
 * stored; -1 if it is not a root's. *encrypts: whether that root does. */
int rondo_handshake_read_challenge(const struct rondo_handshake *handshake, uint32_t *version, int *encrypts);
/* Fills handshake->hello, in answer to the challenge. RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_handshake_make_hello(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                          const struct rondo_handshake_claim *claim);
/* Judges handshake->verdict. Returns 1 if the root has proven that it knows the secret, or if the code is
 * RONDO_HANDSHAKE_SECRET, which anything on the port could have sent; -1 otherwise. */
int rondo_handshake_read_verdict(const struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                 enum rondo_handshake_verdict *code, int *detail);

/* Derives the keys of the two directions from the secret and all three messages, and forgets this side's secret number. Either
 * side calls it, after both proofs were found right and the verdict is RONDO_HANDSHAKE_WELCOME. Returns 0 if the other side has
 * broken the exchange: the connection must be closed. The caller clears the keys. */
int rondo_handshake_root_keys(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                              struct rondo_frame_key *to_root, struct rondo_frame_key *to_rank);
int rondo_handshake_rank_keys(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                              struct rondo_frame_key *to_root, struct rondo_frame_key *to_rank);

#endif
