/*
 * The handshake, both sides. The input says what the rank claims, what the root answers, whether the secrets are the same, and
 * how an attacker changes each message on its way. Unchanged messages with one secret are believed and give both sides the same
 * keys; anything else is believed by neither side that has seen it.
 */
#include "lib/control/control.h"
#include "lib/bootstrap/handshake.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct input {
    const uint8_t *at, *end;
};

static uint8_t take(struct input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

static uint32_t take32(struct input *input)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 8 | take(input);
    return value;
}

/* Copies a message from one side to the other. Returns 1 if it arrives as it was sent. */
static int deliver(struct input *input, const unsigned char *sent, unsigned char *received, size_t bytes)
{
    uint8_t how = take(input);
    memcpy(received, sent, bytes);
    if (how % 4 == 1) { /* a few bytes change */
        for (int i = 0; i < how / 64 + 1; i++) {
            size_t place = take(input) % bytes;
            received[place] ^= take(input);
        }
    } else if (how % 4 == 2) { /* another message */
        for (size_t i = 0; i < bytes; i++)
            received[i] = take(input);
    } else if (how % 4 == 3) { /* another message with the right beginning */
        for (size_t i = 12; i < bytes; i++)
            received[i] = take(input);
    }
    return memcmp(sent, received, bytes) == 0;
}

static void check(int holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct input input = {data, data + bytes};
    struct rondo_handshake root, rank;
    struct rondo_handshake_claim claim, believed;
    struct rondo_hmac roots, ranks;
    struct rondo_frame_key keys[4];
    enum rondo_handshake_verdict code;
    uint32_t version;
    int detail, encrypts = 0;
    memset(&root, 0, sizeof(root));
    memset(&rank, 0, sizeof(rank));
    memset(&claim, 0, sizeof(claim));
    uint8_t first = take(&input);
    int same = first % 4 != 0;
    rondo_hmac_begin(&roots, "secret", 6);
    rondo_hmac_begin(&ranks, same ? "secret" : "guess", same ? 6 : 5);
    claim.size = first & 4 ? (int) take32(&input) : 1 + take(&input);
    claim.rank = first & 8 ? (int) take32(&input) : take(&input) % (claim.size > 0 ? claim.size : 1);
    claim.roots = first & 16 ? (int) take32(&input) : 1;
    claim.is_root = first & 32 ? (int) (take32(&input) % 3) : 0;
    claim.wait_ms = take32(&input);
    for (size_t i = 0; i < sizeof(claim.process); i++)
        claim.process[i] = take(&input);
    int in_range = claim.size >= 1 && claim.size <= RONDO_CONTROL_SIZE_MAX && claim.rank >= 0 && claim.rank < claim.size &&
                   claim.roots >= 1 && claim.roots <= claim.size && claim.is_root >= 0 && claim.is_root <= 1;
    if (in_range && claim.is_root) {
        const int share = rondo_job_share(claim.rank, claim.size, claim.roots);
        in_range = share > 0 && claim.rank == rondo_job_first_rank(share, claim.size, claim.roots);
    }

    check(rondo_handshake_make_challenge(&root) == RONDO_SUCCESS);
    int whole = deliver(&input, root.challenge, rank.challenge, sizeof(root.challenge));
    int challenged = rondo_handshake_read_challenge(&rank, &version, &encrypts);
    check((challenged == 1 && !encrypts) || !whole);
    check(rondo_handshake_make_hello(&rank, &ranks, &claim) == RONDO_SUCCESS); /* even if a rank would give up here */
    whole &= deliver(&input, rank.hello, root.hello, sizeof(root.hello));
    int judged = rondo_handshake_read_hello(&root, &roots, &believed);
    check((judged == 1) == (whole && same && in_range));
    if (judged == 1)
        check(believed.rank == claim.rank && believed.size == claim.size && believed.roots == claim.roots &&
              believed.is_root == claim.is_root && believed.wait_ms == claim.wait_ms &&
              memcmp(believed.process, claim.process, sizeof(claim.process)) == 0);
    uint8_t said = take(&input) % (RONDO_HANDSHAKE_ROOTS + 1);
    enum rondo_handshake_verdict verdict = judged == 1 ? (enum rondo_handshake_verdict) said : RONDO_HANDSHAKE_SECRET;
    rondo_handshake_make_verdict(&root, &roots, verdict, (int) take32(&input));
    whole &= deliver(&input, root.verdict, rank.verdict, sizeof(root.verdict));
    int answered = rondo_handshake_read_verdict(&rank, &ranks, &code, &detail);
    check(answered != 1 || code == RONDO_HANDSHAKE_SECRET || (whole && same));
    check(answered == 1 || !(whole && same));
    check(rondo_handshake_root_keys(&root, &roots, &keys[0], &keys[1]) &&
          rondo_handshake_rank_keys(&rank, &ranks, &keys[2], &keys[3]));
    /* A changed proof of the rank is in no key, but the root does not go on after one. */
    int equal = memcmp(&keys[0].hmac, &keys[2].hmac, sizeof(keys[0].hmac)) == 0 &&
                memcmp(&keys[1].hmac, &keys[3].hmac, sizeof(keys[1].hmac)) == 0;
    check(equal || !(whole && same));
    check(equal || verdict != RONDO_HANDSHAKE_WELCOME || answered != 1 || code != RONDO_HANDSHAKE_WELCOME);
    check(memcmp(&keys[0].hmac, &keys[1].hmac, sizeof(keys[0].hmac)) != 0);
    return 0;
}
