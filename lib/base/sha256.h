/* SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), by which the control plane's ranks prove their secret and tag their
 * messages. Plain C, with no branch and no table index that depends on secret data, so its timing says nothing about the key.
 * An object belongs to one thread at a time. */
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
/* begin, then any number of add, then end: the digest of all bytes added, in order. After end the object must begin again. */
void rondo_sha256_begin(struct rondo_sha256 *hash);
void rondo_sha256_add(struct rondo_sha256 *hash, const void *data, size_t bytes);
void rondo_sha256_end(struct rondo_sha256 *hash, unsigned char digest[RONDO_SHA256_BYTES]);

/* begin, add, end as above: the tag of all bytes added, by the key given to begin. After begin the object stands for the key
 * and may be copied by assignment, so that any number of messages are tagged without the key's text. It is as secret as the
 * key. */
struct rondo_hmac {
    struct rondo_sha256 inner, outer;
};
void rondo_hmac_begin(struct rondo_hmac *hmac, const void *key, size_t bytes);
void rondo_hmac_add(struct rondo_hmac *hmac, const void *data, size_t bytes);
void rondo_hmac_end(struct rondo_hmac *hmac, unsigned char tag[RONDO_SHA256_BYTES]);

/* Returns 1 if the bytes are equal. Takes the same time wherever they differ. */
int rondo_sha256_equal(const void *left, const void *right, size_t bytes);

/* Writes bytes, a digest or a random number, as 2 * count hexadecimal digits and a terminating zero. Returns 2 * count. */
int rondo_hexadecimal(char *to, const unsigned char *bytes, size_t count);

#endif
