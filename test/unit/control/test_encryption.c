/* The cipher, and the keys that two sides derive from one handshake with encryption. */
#include "lib/base/thread.h"
#include "lib/bootstrap/handshake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void need_cipher(void)
{
    if (rondo_cipher_unusable() != NULL) {
        print_message("left out: %s\n", rondo_cipher_unusable());
        skip();
    }
}

/* One who knows the secret and has recorded a connection has not learned its keys: they need a secret number, too. */
static void test_forward_secrecy(void **state)
{
    (void) state;
    need_cipher();
    struct rondo_handshake root_side = {.encrypts = 1}, rank_side = {.encrypts = 1}, recorded;
    struct rondo_handshake_claim claim = {.rank = 1, .size = 2, .roots = 1};
    struct rondo_frame_key keys[3][2];
    struct rondo_hmac secret;
    uint32_t version;
    int encrypts = 0;
    rondo_hmac_begin(&secret, "a secret", 8);
    assert_int_equal(rondo_handshake_make_challenge(&root_side), RONDO_SUCCESS);
    memcpy(rank_side.challenge, root_side.challenge, sizeof(root_side.challenge));
    assert_int_equal(rondo_handshake_read_challenge(&rank_side, &version, &encrypts), 1);
    assert_int_equal(encrypts, 1);
    assert_int_equal(rondo_handshake_make_hello(&rank_side, &secret, &claim), RONDO_SUCCESS);
    memcpy(root_side.hello, rank_side.hello, sizeof(rank_side.hello));
    assert_int_equal(rondo_handshake_read_hello(&root_side, &secret, &claim), 1);
    rondo_handshake_make_verdict(&root_side, &secret, RONDO_HANDSHAKE_WELCOME, 0);
    memcpy(rank_side.verdict, root_side.verdict, sizeof(root_side.verdict));
    recorded = rank_side;
    assert_int_equal(rondo_random_bytes(recorded.exchange, sizeof(recorded.exchange)), RONDO_SUCCESS);
    assert_int_equal(rondo_handshake_root_keys(&root_side, &secret, &keys[0][0], &keys[0][1]), 1);
    assert_int_equal(rondo_handshake_rank_keys(&rank_side, &secret, &keys[1][0], &keys[1][1]), 1);
    assert_int_equal(rondo_handshake_rank_keys(&recorded, &secret, &keys[2][0], &keys[2][1]), 1);
    assert_memory_equal(keys[0], keys[1], sizeof(keys[0]));
    assert_memory_not_equal(keys[0][0].cipher, keys[0][1].cipher, RONDO_CIPHER_KEY);
    for (int direction = 0; direction < 2; direction++)
        assert_memory_not_equal(keys[0][direction].cipher, keys[2][direction].cipher, RONDO_CIPHER_KEY);
    static const unsigned char none[RONDO_EXCHANGE_BYTES];
    assert_memory_equal(root_side.exchange, none, sizeof(none));
    /* An exchange that the other side makes predictable is refused. */
    struct rondo_handshake broken = recorded;
    memset(broken.challenge + 16, 0, 32);
    assert_int_equal(rondo_handshake_rank_keys(&broken, &secret, &keys[2][0], &keys[2][1]), 0);
}

/* RFC 8439, section 2.8.2 gives the keys and texts; here the promise is that each part counts. */
static void test_cipher(void **state)
{
    (void) state;
    need_cipher();
    unsigned char key[RONDO_CIPHER_KEY] = {7}, text[100], sealed[100], opened[100], tag[RONDO_CIPHER_TAG],
                  header[4] = {1, 2, 3, 4};
    memset(text, 'x', sizeof(text));
    struct rondo_cipher_message message = {key, 5, header, sizeof(header)};
    rondo_cipher_seal(&message, text, sealed, sizeof(text), tag);
    assert_memory_not_equal(text, sealed, sizeof(text));
    assert_int_equal(rondo_cipher_open(&message, sealed, opened, sizeof(text), tag), 1);
    assert_memory_equal(text, opened, sizeof(text));
    unsigned char *parts[] = {key, sealed, tag, header};
    for (int part = 0; part < 4; part++) {
        parts[part][3] ^= 0x10;
        assert_int_equal(rondo_cipher_open(&message, sealed, opened, sizeof(text), tag), 0);
        parts[part][3] ^= 0x10;
    }
    message.number = 6;
    assert_int_equal(rondo_cipher_open(&message, sealed, opened, sizeof(text), tag), 0);
    message.number = 5;
    assert_int_equal(rondo_cipher_open(&message, sealed, sealed, sizeof(text), tag), 1);
    assert_memory_equal(text, sealed, sizeof(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_secrecy),
        cmocka_unit_test(test_cipher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
