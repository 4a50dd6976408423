/* See lib/base/sha256.h. Constants and round functions are those of FIPS 180-4, sections 4 to 6. The hash and its HMAC are
 * checked against the standards' vectors by test/unit/test_sha256.c. */
#include "lib/base/sha256.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t value, int right)
{
    return value >> right | value << (32 - right);
}

static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t schedule[64];
    for (int i = 0; i < 16; i++)
        schedule[i] = (uint32_t) block[4 * i] << 24 | (uint32_t) block[4 * i + 1] << 16 | (uint32_t) block[4 * i + 2] << 8 |
                      block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t before = schedule[i - 15], latest = schedule[i - 2];
        uint32_t small0 = rotate(before, 7) ^ rotate(before, 18) ^ before >> 3;
        uint32_t small1 = rotate(latest, 17) ^ rotate(latest, 19) ^ latest >> 10;
        schedule[i] = schedule[i - 16] + small0 + schedule[i - 7] + small1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t first = h + big1 + ((e & f) ^ (~e & g)) + round_constants[i] + schedule[i];
        uint32_t big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t second = big0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void rondo_sha256_begin(struct rondo_sha256 *hash)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(hash, 0, sizeof(*hash));
    memcpy(hash->state, initial, sizeof(initial));
}

void rondo_sha256_add(struct rondo_sha256 *hash, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    size_t filled = (size_t) (hash->bytes % RONDO_SHA256_BLOCK);
    hash->bytes += bytes;
    if (filled > 0) {
        size_t part = RONDO_SHA256_BLOCK - filled < bytes ? RONDO_SHA256_BLOCK - filled : bytes;
        if (part > 0)
            memcpy(hash->block + filled, from, part);
        if (filled + part < RONDO_SHA256_BLOCK)
            return;
        compress(hash->state, hash->block);
        from += part;
        bytes -= part;
    }
    for (; bytes >= RONDO_SHA256_BLOCK; from += RONDO_SHA256_BLOCK, bytes -= RONDO_SHA256_BLOCK)
        compress(hash->state, from);
    if (bytes > 0)
        memcpy(hash->block, from, bytes);
}

void rondo_sha256_end(struct rondo_sha256 *hash, unsigned char digest[RONDO_SHA256_BYTES])
{
    static const unsigned char padding[RONDO_SHA256_BLOCK] = {0x80};
    uint64_t bits = hash->bytes * 8;
    size_t filled = (size_t) (hash->bytes % RONDO_SHA256_BLOCK);
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char) (bits >> (56 - 8 * i));
    rondo_sha256_add(hash, padding, filled < 56 ? 56 - filled : 120 - filled);
    rondo_sha256_add(hash, length, sizeof(length));
    for (int i = 0; i < RONDO_SHA256_BYTES; i++)
        digest[i] = (unsigned char) (hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void rondo_hmac_begin(struct rondo_hmac *hmac, const void *key, size_t bytes)
{
    unsigned char block[RONDO_SHA256_BLOCK] = {0}, padded[RONDO_SHA256_BLOCK];
    if (bytes > sizeof(block)) {
        struct rondo_sha256 hash;
        rondo_sha256_begin(&hash);
        rondo_sha256_add(&hash, key, bytes);
        rondo_sha256_end(&hash, block);
    } else if (bytes > 0) {
        memcpy(block, key, bytes);
    }
    rondo_sha256_begin(&hmac->inner);
    for (size_t i = 0; i < sizeof(block); i++)
        padded[i] = block[i] ^ 0x36;
    rondo_sha256_add(&hmac->inner, padded, sizeof(padded));
    rondo_sha256_begin(&hmac->outer);
    for (size_t i = 0; i < sizeof(block); i++)
        padded[i] = block[i] ^ 0x5c;
    rondo_sha256_add(&hmac->outer, padded, sizeof(padded));
    explicit_bzero(block, sizeof(block));
    explicit_bzero(padded, sizeof(padded));
}

void rondo_hmac_add(struct rondo_hmac *hmac, const void *data, size_t bytes)
{
    rondo_sha256_add(&hmac->inner, data, bytes);
}

void rondo_hmac_end(struct rondo_hmac *hmac, unsigned char tag[RONDO_SHA256_BYTES])
{
    unsigned char digest[RONDO_SHA256_BYTES];
    rondo_sha256_end(&hmac->inner, digest);
    rondo_sha256_add(&hmac->outer, digest, sizeof(digest));
    rondo_sha256_end(&hmac->outer, tag);
}

int rondo_sha256_equal(const void *left, const void *right, size_t bytes)
{
    const volatile unsigned char *a = left, *b = right;
    unsigned char difference = 0;
    for (size_t i = 0; i < bytes; i++)
        difference = (unsigned char) (difference | (a[i] ^ b[i]));
    return difference == 0;
}

int rondo_hexadecimal(char *to, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * count] = '\0';
    return (int) (2 * count);
}
