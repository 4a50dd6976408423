/* See lib/bootstrap/handshake.h. Proofs are compared in constant time (rondo_sha256_equal). */
#include "lib/bootstrap/handshake.h"

#include "lib/bootstrap/control.h"
#include "lib/bootstrap/frame_connection.h"

#include <string.h>

enum { VERSION = 1, NONCE = 32 };
/* Offsets in the hello, which begins as a challenge does: magic (8), version (4). */
enum { HELLO_RANK = 12, HELLO_SIZE = 16, HELLO_WAIT = 20, HELLO_PROCESS = 24, HELLO_NONCE = 40, HELLO_PROOF = 72 };

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

rondo_result_t rondo_handshake_make_challenge(struct rondo_handshake *handshake)
{
    memset(handshake->challenge, 0, sizeof(handshake->challenge));
    memcpy(handshake->challenge, magic, sizeof(magic));
    rondo_frame_store32(handshake->challenge + 8, VERSION);
    return rondo_random_bytes(handshake->challenge + 16, NONCE);
}

int rondo_handshake_read_challenge(const struct rondo_handshake *handshake, uint32_t *version)
{
    if (memcmp(handshake->challenge, magic, sizeof(magic)) != 0)
        return -1;
    *version = rondo_frame_load32(handshake->challenge + 8);
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
    rondo_result_t result = rondo_random_bytes(handshake->hello + HELLO_NONCE, NONCE);
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
    return claim->size >= 1 && claim->size <= RONDO_CONTROL_SIZE_MAX && claim->rank >= 0 && claim->rank < claim->size ? 1 : -1;
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
    return said <= RONDO_HANDSHAKE_OVER && rondo_sha256_equal(proof, handshake->verdict + 8, sizeof(proof)) ? 1 : -1;
}

void rondo_handshake_keys(const struct rondo_handshake *handshake, const struct rondo_hmac *secret, struct rondo_hmac *to_root,
                          struct rondo_hmac *to_rank)
{
    unsigned char key[RONDO_SHA256_BYTES];
    sign(handshake, secret, "rondo key to root", sizeof(handshake->verdict), key);
    rondo_hmac_begin(to_root, key, sizeof(key));
    sign(handshake, secret, "rondo key to rank", sizeof(handshake->verdict), key);
    rondo_hmac_begin(to_rank, key, sizeof(key));
    explicit_bzero(key, sizeof(key));
}
