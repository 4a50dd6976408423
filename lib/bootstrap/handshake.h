/*
 * How a rank and the root prove to each other that they know the secret, and agree on the keys of their connection.
 *
 *   root to rank   challenge: magic, version, the root's nonce
 *   rank to root   hello: magic, version, rank, size, the time it will wait, process token, its nonce, proof
 *   root to rank   verdict: code, detail, proof
 *
 * A proof is the HMAC, by the secret, of a label and everything said so far; so none can be used twice or sent back. The rank
 * proves first: the root is the one that strangers can reach, and must not hand them anything to guess the secret from.
 */
#ifndef RONDO_LIB_BOOTSTRAP_HANDSHAKE_H
#define RONDO_LIB_BOOTSTRAP_HANDSHAKE_H

#include "rondo.h"
#include "lib/base/thread.h"
#include "lib/base/sha256.h"

enum {
    RONDO_HANDSHAKE_CHALLENGE = 48, /* bytes of the three messages */
    RONDO_HANDSHAKE_HELLO = 104,
    RONDO_HANDSHAKE_VERDICT = 40,
};

enum rondo_handshake_verdict {
    RONDO_HANDSHAKE_WELCOME = 0, /* detail: 1 if the root is in the rank's own process */
    RONDO_HANDSHAKE_SECRET = 1,  /* the proof is wrong; this verdict alone has no proof */
    RONDO_HANDSHAKE_SIZE = 2,    /* detail: the job's size */
    RONDO_HANDSHAKE_TAKEN = 3,   /* this rank is connected already */
    RONDO_HANDSHAKE_OVER = 4,    /* this rank has been here and has gone: the root belongs to an earlier job */
};

struct rondo_handshake {
    unsigned char challenge[RONDO_HANDSHAKE_CHALLENGE];
    unsigned char hello[RONDO_HANDSHAKE_HELLO];
    unsigned char verdict[RONDO_HANDSHAKE_VERDICT];
};

struct rondo_handshake_claim {
    int rank, size;
    uint32_t wait_ms; /* how long the rank will wait for the others */
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES];
};

/* The root's side. read_hello: 1 proven; 0 a rank with another secret; -1 not a rank at all. */
rondo_result_t rondo_handshake_make_challenge(struct rondo_handshake *handshake);
int rondo_handshake_read_hello(const struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                               struct rondo_handshake_claim *claim);
void rondo_handshake_make_verdict(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                  enum rondo_handshake_verdict code, int detail);

/* The rank's side. read_challenge: 1 fine; 0 a root of another version, which is stored; -1 not a root at all. read_verdict: 1
 * proven, or RONDO_HANDSHAKE_SECRET; -1 not from a root that knows the secret. */
int rondo_handshake_read_challenge(const struct rondo_handshake *handshake, uint32_t *version);
rondo_result_t rondo_handshake_make_hello(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                          const struct rondo_handshake_claim *claim);
int rondo_handshake_read_verdict(const struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                 enum rondo_handshake_verdict *code, int *detail);

/* The keys of the two directions, once both have proven themselves. */
void rondo_handshake_keys(const struct rondo_handshake *handshake, const struct rondo_hmac *secret, struct rondo_hmac *to_root,
                          struct rondo_hmac *to_rank);

#endif
