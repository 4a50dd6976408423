/* See lib/bootstrap/handshake.h. Proofs are compared in constant time (rondo_sha256_equal). */
#include "lib/bootstrap/handshake.h"

#include "lib/bootstrap/job.h"
#include "lib/bootstrap/frame_connection.h"

#include <string.h>

enum { VERSION = 7, NONCE = 32 };
enum { CHALLENGE_ENCRYPTS = 12, CHALLENGE_NONCE = 16 }; /* offsets in the challenge */
_Static_assert((int) NONCE == (int) RONDO_EXCHANGE_BYTES, "a nonce may be what is told in an exchange");
/* Offsets in the hello, which begins as a challenge does: magic (8), version (4). */
enum {
    HELLO_RANK = 12,
    HELLO_SIZE = 16,
    HELLO_WAIT = 20,
    HELLO_PROCESS = 24,
    HELLO_NONCE = 40,
    HELLO_ROOTS = 72,
    HELLO_IS_ROOT = 76,
    HELLO_PROOF = 80
};

static const unsigned char magic[8] = {'R', 'O', 'N', 'D', 'O', 'c', 't', 'l'};

/* Computes the HMAC of a label and of all that has been said: the challenge, the hello up to its proof, and so many bytes of
 * the verdict. The label is terminated, so no label is the beginning of another text. */
static void sign(const struct rondo_handshake *handshake, const struct rondo_hmac *secret, const char *label,
                 size_t verdict_bytes, unsigned char proof[RONDO_SHA256_BYTES])
{
    struct rondo_hmac hmac = *secret;
    rondo_hmac_add(&hmac, label, strlen(label) + 1);
    rondo_hmac_add(&hmac, handshake->challenge, sizeof(handshake->challenge));
    rondo_hmac_add(&hmac, handshake->hello, HELLO_PROOF);
    rondo_hmac_add(&hmac, handshake->verdict, verdict_bytes);
    rondo_hmac_end(&hmac, proof);
}

static rondo_result_t make_nonce(struct rondo_handshake *handshake, unsigned char *nonce)
{
    return handshake->encrypts ? rondo_exchange_begin(handshake->exchange, nonce) : rondo_random_bytes(nonce, NONCE);
}

rondo_result_t rondo_handshake_make_challenge(struct rondo_handshake *handshake)
{
    memset(handshake->challenge, 0, sizeof(handshake->challenge));
    memcpy(handshake->challenge, magic, sizeof(magic));
    rondo_frame_store32(handshake->challenge + 8, VERSION);
    rondo_frame_store32(handshake->challenge + CHALLENGE_ENCRYPTS, handshake->encrypts != 0);
    return make_nonce(handshake, handshake->challenge + CHALLENGE_NONCE);
}

int rondo_handshake_read_challenge(const struct rondo_handshake *handshake, uint32_t *version, int *encrypts)
{
    if (memcmp(handshake->challenge, magic, sizeof(magic)) != 0)
        return -1;
    *version = rondo_frame_load32(handshake->challenge + 8);
    *encrypts = rondo_frame_load32(handshake->challenge + CHALLENGE_ENCRYPTS) != 0;
    return *version == VERSION;
}

rondo_result_t rondo_handshake_make_hello(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                          const struct rondo_handshake_claim *claim)
{
    memcpy(handshake->hello, magic, sizeof(magic));
    rondo_frame_store32(handshake->hello + 8, VERSION);
    rondo_frame_store32(handshake->hello + HELLO_RANK, (uint32_t) claim->rank);
    rondo_frame_store32(handshake->hello + HELLO_SIZE, (uint32_t) claim->size);
    rondo_frame_store32(handshake->hello + HELLO_WAIT, claim->wait_ms);
    memcpy(handshake->hello + HELLO_PROCESS, claim->process, sizeof(claim->process));
    rondo_frame_store32(handshake->hello + HELLO_ROOTS, (uint32_t) claim->roots);
    rondo_frame_store32(handshake->hello + HELLO_IS_ROOT, (uint32_t) claim->is_root);
    rondo_result_t result = make_nonce(handshake, handshake->hello + HELLO_NONCE);
    if (result == RONDO_SUCCESS)
        sign(handshake, secret, "rondo rank", 0, handshake->hello + HELLO_PROOF);
    return result;
}

int rondo_handshake_read_hello(const struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                               struct rondo_handshake_claim *claim)
{
    unsigned char proof[RONDO_SHA256_BYTES];
    const unsigned char *hello = handshake->hello;
    if (memcmp(hello, magic, sizeof(magic)) != 0 || rondo_frame_load32(hello + 8) != VERSION)
        return -1;
    sign(handshake, secret, "rondo rank", 0, proof);
    if (!rondo_sha256_equal(proof, hello + HELLO_PROOF, sizeof(proof)))
        return 0;
    claim->rank = (int) rondo_frame_load32(hello + HELLO_RANK);
    claim->size = (int) rondo_frame_load32(hello + HELLO_SIZE);
    claim->wait_ms = rondo_frame_load32(hello + HELLO_WAIT);
    memcpy(claim->process, hello + HELLO_PROCESS, sizeof(claim->process));
    claim->roots = (int) rondo_frame_load32(hello + HELLO_ROOTS);
    claim->is_root = (int) rondo_frame_load32(hello + HELLO_IS_ROOT);
    if (claim->size < 1 || claim->size > RONDO_CONTROL_SIZE_MAX || claim->rank < 0 || claim->rank >= claim->size ||
        claim->roots < 1 || claim->roots > claim->size || claim->is_root < 0 || claim->is_root > 1)
        return -1;
    /* The first root comes to no other. */
    const int share = rondo_job_share(claim->rank, claim->size, claim->roots);
    return !claim->is_root || (share > 0 && claim->rank == rondo_job_first_rank(share, claim->size, claim->roots)) ? 1 : -1;
}

void rondo_handshake_make_verdict(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                  enum rondo_handshake_verdict code, int detail)
{
    memset(handshake->verdict, 0, sizeof(handshake->verdict));
    rondo_frame_store32(handshake->verdict, (uint32_t) code);
    rondo_frame_store32(handshake->verdict + 4, (uint32_t) detail);
    if (code != RONDO_HANDSHAKE_SECRET)
        sign(handshake, secret, "rondo root", 8, handshake->verdict + 8);
}

int rondo_handshake_read_verdict(const struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                                 enum rondo_handshake_verdict *code, int *detail)
{
    unsigned char proof[RONDO_SHA256_BYTES];
    uint32_t said = rondo_frame_load32(handshake->verdict);
    *detail = (int) rondo_frame_load32(handshake->verdict + 4);
    *code = (enum rondo_handshake_verdict) said;
    if (said == RONDO_HANDSHAKE_SECRET)
        return 1;
    sign(handshake, secret, "rondo root", 8, proof);
    return said <= RONDO_HANDSHAKE_ROOTS && rondo_sha256_equal(proof, handshake->verdict + 8, sizeof(proof)) ? 1 : -1;
}

/* ---- keys ---- */

struct derivation {
    const struct rondo_handshake *handshake;
    const struct rondo_hmac *secret;
    unsigned char shared[RONDO_EXCHANGE_BYTES]; /* with encryption: the outcome of the exchange */
};

static void derive(const struct derivation *from, const char *label, struct rondo_frame_key *key)
{
    unsigned char bytes[RONDO_SHA256_BYTES];
    struct rondo_hmac hmac;
    memset(key, 0, sizeof(*key));
    key->encrypts = from->handshake->encrypts;
    sign(from->handshake, from->secret, label, sizeof(from->handshake->verdict), bytes);
    if (key->encrypts) {
        rondo_hmac_begin(&hmac, bytes, sizeof(bytes));
        rondo_hmac_add(&hmac, from->shared, sizeof(from->shared));
        rondo_hmac_end(&hmac, key->cipher);
        explicit_bzero(&hmac, sizeof(hmac));
    } else {
        rondo_hmac_begin(&key->hmac, bytes, sizeof(bytes));
    }
    explicit_bzero(bytes, sizeof(bytes));
}

static int make_keys(struct rondo_handshake *handshake, const struct rondo_hmac *secret, const unsigned char *told,
                     struct rondo_frame_key *to_root, struct rondo_frame_key *to_rank)
{
    struct derivation from = {handshake, secret, {0}};
    int good = !handshake->encrypts || rondo_exchange_end(handshake->exchange, told, from.shared);
    explicit_bzero(handshake->exchange, sizeof(handshake->exchange));
    derive(&from, "rondo key to root", to_root);
    derive(&from, "rondo key to rank", to_rank);
    explicit_bzero(&from, sizeof(from));
    return good;
}

int rondo_handshake_root_keys(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                              struct rondo_frame_key *to_root, struct rondo_frame_key *to_rank)
{
    return make_keys(handshake, secret, handshake->hello + HELLO_NONCE, to_root, to_rank);
}

int rondo_handshake_rank_keys(struct rondo_handshake *handshake, const struct rondo_hmac *secret,
                              struct rondo_frame_key *to_root, struct rondo_frame_key *to_rank)
{
    return make_keys(handshake, secret, handshake->challenge + CHALLENGE_NONCE, to_root, to_rank);
}
