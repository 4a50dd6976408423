/*
 * Encryption with authentication (ChaCha20-Poly1305, RFC 8439) and agreement on a key (X25519, RFC 7748), by libsodium, which
 * is found at run time: a job that does not encrypt never loads it. Any thread may call; nothing but rondo_cipher_unusable may
 * be called where that gives a reason.
 */
#ifndef RONDO_LIB_BASE_CIPHER_H
#define RONDO_LIB_BASE_CIPHER_H

#include "rondo.h"
#include <stddef.h>
#include <stdint.h>

enum { RONDO_CIPHER_KEY = 32, RONDO_CIPHER_TAG = 16, RONDO_EXCHANGE_BYTES = 32 };

/* NULL, or why nothing can be encrypted: libsodium was not there when this was built, or is not here. */
const char *rondo_cipher_unusable(void);

/* A message that is encrypted and authenticated, and what comes with it in plain text and is authenticated, too. */
struct rondo_cipher_message {
    const unsigned char *key; /* RONDO_CIPHER_KEY bytes */
    uint64_t number;          /* no two different messages may have the same number by one key */
    const void *plain;        /* what is authenticated and not encrypted */
    size_t plain_bytes;
};
/* Encrypts so many bytes; from and to may be the same. */
void rondo_cipher_seal(const struct rondo_cipher_message *message, const void *from, void *to, size_t bytes,
                       unsigned char tag[RONDO_CIPHER_TAG]);
/* Decrypts them. Returns 1; or 0 if bytes, plain, number or tag are not those of one call of rondo_cipher_seal by this key:
 * then `to` is not written, or is zeroed. The tag is compared in constant time. */
int rondo_cipher_open(const struct rondo_cipher_message *message, const void *from, void *to, size_t bytes,
                      const unsigned char tag[RONDO_CIPHER_TAG]);

/* Makes a fresh secret number and what the other side is told of it. RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_exchange_begin(unsigned char secret[RONDO_EXCHANGE_BYTES], unsigned char told[RONDO_EXCHANGE_BYTES]);
/* Computes what both sides, and they alone, then know. Returns 0 if the other side has told one of the few values by which
 * anyone would know it. */
int rondo_exchange_end(const unsigned char secret[RONDO_EXCHANGE_BYTES], const unsigned char told[RONDO_EXCHANGE_BYTES],
                       unsigned char shared[RONDO_EXCHANGE_BYTES]);

#endif
