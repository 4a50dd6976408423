/* SHA-256 and HMAC-SHA256 against the published vectors: NIST's examples for FIPS 180-4, and RFC 4231. */
#include "lib/base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void digits(const unsigned char *bytes, char text[2 * RONDO_SHA256_BYTES + 1])
{
    for (int i = 0; i < RONDO_SHA256_BYTES; i++) {
        text[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[2 * RONDO_SHA256_BYTES] = '\0';
}

/* The message is added in parts of the given size. */
static void check_hash(const char *message, size_t bytes, size_t slice_op, const char *expected)
{
    struct rondo_sha256 hash;
    unsigned char digest[RONDO_SHA256_BYTES];
    char text[2 * RONDO_SHA256_BYTES + 1];
    rondo_sha256_begin(&hash);
    for (size_t at = 0; at < bytes; at += slice_op)
        rondo_sha256_add(&hash, message + at, bytes - at < slice_op ? bytes - at : slice_op);
    rondo_sha256_end(&hash, digest);
    digits(digest, text);
    assert_string_equal(text, expected);
}

static void test_nist(void **state)
{
    (void) state;
    static const struct {
        const char *message, *digest;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
        for (size_t slice_op = 1; slice_op < 130; slice_op++)
            check_hash(vectors[i].message, strlen(vectors[i].message), slice_op, vectors[i].digest);
}

static void test_million(void **state)
{
    (void) state;
    size_t bytes = 1000000;
    char *message = malloc(bytes);
    assert_non_null(message);
    memset(message, 'a', bytes);
    const char *expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    check_hash(message, bytes, bytes, expected);
    check_hash(message, bytes, 997, expected);
    free(message);
}

static void check_tag(const void *key, size_t key_bytes, const void *message, size_t bytes, const char *expected)
{
    struct rondo_hmac keyed;
    rondo_hmac_begin(&keyed, key, key_bytes);
    /* Uses one key twice: the first use must not change a copied key. */
    for (int round = 0; round < 2; round++) {
        struct rondo_hmac hmac = keyed;
        unsigned char tag[RONDO_SHA256_BYTES];
        char text[2 * RONDO_SHA256_BYTES + 1];
        rondo_hmac_add(&hmac, message, bytes / 2);
        rondo_hmac_add(&hmac, (const char *) message + bytes / 2, bytes - bytes / 2);
        rondo_hmac_end(&hmac, tag);
        digits(tag, text);
        text[strlen(expected)] = '\0';
        assert_string_equal(text, expected);
    }
}

static void test_rfc4231(void **state)
{
    (void) state;
    char key[131], message[152];
    memset(key, 0x0b, 20);
    check_tag(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    check_tag("Jefe", 4, "what do ya want for nothing?", 28,
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, 20);
    memset(message, 0xdd, 50);
    check_tag(key, 20, message, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    for (int i = 0; i < 25; i++)
        key[i] = (char) (i + 1);
    memset(message, 0xcd, 50);
    check_tag(key, 25, message, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
    memset(key, 0x0c, 20);
    check_tag(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b");
    memset(key, 0xaa, 131);
    check_tag(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    const char *longer =
        "This is a test using a larger than block-size key and a larger than block-size data. The key needs to "
        "be hashed before being used by the HMAC algorithm.";
    check_tag(key, 131, longer, strlen(longer), "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

static void test_equal(void **state)
{
    (void) state;
    unsigned char left[32] = {1, 2, 3}, right[32] = {1, 2, 3};
    assert_true(rondo_sha256_equal(left, right, sizeof(left)));
    for (size_t i = 0; i < sizeof(left); i++)
        for (int bit = 0; bit < 8; bit++) {
            right[i] = (unsigned char) (right[i] ^ (1 << bit));
            assert_false(rondo_sha256_equal(left, right, sizeof(left)));
            right[i] = left[i];
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nist),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_rfc4231),
        cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
