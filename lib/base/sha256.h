/* SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), by which the control plane's ranks prove their secret and tag their
 * messages. Plain C, no tables indexed by secret data, so its timing says nothing about the key. */
#ifndef RONDO_LIB_BASE_SHA256_H
#define RONDO_LIB_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { RONDO_SHA256_BYTES = 32, RONDO_SHA256_BLOCK = 64 };

struct rondo_sha256 {
    uint32_t state[8];
    uint64_t bytes; /* added so far */
    unsigned char block[RONDO_SHA256_BLOCK];
};
void rondo_sha256_begin(struct rondo_sha256 *hash);
void rondo_sha256_add(struct rondo_sha256 *hash, const void *data, size_t bytes);
void rondo_sha256_end(struct rondo_sha256 *hash, unsigned char digest[RONDO_SHA256_BYTES]);

/* After begin it is a key and may be copied by assignment, to tag any number of messages without touching the key's text. */
struct rondo_hmac {
    struct rondo_sha256 inner, outer;
};
void rondo_hmac_begin(struct rondo_hmac *hmac, const void *key, size_t bytes);
void rondo_hmac_add(struct rondo_hmac *hmac, const void *data, size_t bytes);
void rondo_hmac_end(struct rondo_hmac *hmac, unsigned char tag[RONDO_SHA256_BYTES]);

/* 1 if equal; takes the same time wherever they differ. */
int rondo_sha256_equal(const void *left, const void *right, size_t bytes);

#endif
