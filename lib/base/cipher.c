/* See lib/base/cipher.h. Relies on libsodium's interface for one library version: the names below mean the same in both. */
#include "lib/base/cipher.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#if RONDO_WITH_SODIUM

#include <dlfcn.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define FUNCTIONS(each)                                                                                                        \
    each(sodium_init) each(crypto_aead_chacha20poly1305_ietf_encrypt_detached)                                                 \
        each(crypto_aead_chacha20poly1305_ietf_decrypt_detached) each(crypto_scalarmult_base) each(crypto_scalarmult)

_Static_assert((int) RONDO_CIPHER_KEY == (int) crypto_aead_chacha20poly1305_ietf_KEYBYTES &&
                   (int) RONDO_CIPHER_TAG == (int) crypto_aead_chacha20poly1305_ietf_ABYTES &&
                   (int) RONDO_EXCHANGE_BYTES == (int) crypto_scalarmult_BYTES,
               "sizes of the algorithms");

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char trouble[200];
static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} library;

static void load(void)
{
    static const char *const names[] = {"libsodium.so.26", "libsodium.so.23"};
    void *handle = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && handle == NULL; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        snprintf(trouble, sizeof(trouble), "%s", dlerror());
        return;
    }
#define FIND(name)                                                                                                             \
    *(void **) &library.name = dlsym(handle, #name);                                                                           \
    if (library.name == NULL && trouble[0] == '\0')                                                                            \
        snprintf(trouble, sizeof(trouble), "libsodium has no %s: it is too old", #name);
    FUNCTIONS(FIND)
#undef FIND
    if (trouble[0] == '\0' && library.sodium_init() < 0)
        snprintf(trouble, sizeof(trouble), "libsodium cannot start");
}

const char *rondo_cipher_unusable(void)
{
    pthread_once(&once, load);
    return trouble[0] != '\0' ? trouble : NULL;
}

static void make_nonce(uint64_t number, unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES])
{
    memset(nonce, 0, crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
    for (int i = 0; i < 8; i++)
        nonce[i] = (unsigned char) (number >> (8 * i));
}

/* libsodium wants an address even of no bytes. */
static unsigned char nothing[1];

void rondo_cipher_seal(const struct rondo_cipher_message *message, const void *from, void *to, size_t bytes,
                       unsigned char tag[RONDO_CIPHER_TAG])
{
    unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    make_nonce(message->number, nonce);
    library.crypto_aead_chacha20poly1305_ietf_encrypt_detached(bytes > 0 ? to : nothing, tag, NULL, bytes > 0 ? from : nothing,
                                                               bytes, message->plain, message->plain_bytes, NULL, nonce,
                                                               message->key);
}

int rondo_cipher_open(const struct rondo_cipher_message *message, const void *from, void *to, size_t bytes,
                      const unsigned char tag[RONDO_CIPHER_TAG])
{
    unsigned char nonce[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
    make_nonce(message->number, nonce);
    return library.crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes > 0 ? to : nothing, NULL,
                                                                      bytes > 0 ? from : nothing, bytes, tag, message->plain,
                                                                      message->plain_bytes, nonce, message->key) == 0;
}

rondo_result_t rondo_exchange_begin(unsigned char secret[RONDO_EXCHANGE_BYTES], unsigned char told[RONDO_EXCHANGE_BYTES])
{
    rondo_result_t result = rondo_random_bytes(secret, RONDO_EXCHANGE_BYTES);
    if (result == RONDO_SUCCESS)
        library.crypto_scalarmult_base(told, secret);
    return result;
}

int rondo_exchange_end(const unsigned char secret[RONDO_EXCHANGE_BYTES], const unsigned char told[RONDO_EXCHANGE_BYTES],
                       unsigned char shared[RONDO_EXCHANGE_BYTES])
{
    return library.crypto_scalarmult(shared, secret, told) == 0;
}

#else

const char *rondo_cipher_unusable(void)
{
    return "it was built without libsodium";
}

/* Not called: rondo_cipher_unusable gives a reason. */
void rondo_cipher_seal(const struct rondo_cipher_message *message, const void *from, void *to, size_t bytes,
                       unsigned char tag[RONDO_CIPHER_TAG])
{
    (void) message, (void) from, (void) to, (void) bytes, (void) tag;
}

int rondo_cipher_open(const struct rondo_cipher_message *message, const void *from, void *to, size_t bytes,
                      const unsigned char tag[RONDO_CIPHER_TAG])
{
    (void) message, (void) from, (void) to, (void) bytes, (void) tag;
    return 0;
}

rondo_result_t rondo_exchange_begin(unsigned char secret[RONDO_EXCHANGE_BYTES], unsigned char told[RONDO_EXCHANGE_BYTES])
{
    (void) secret, (void) told;
    return rondo_fail(RONDO_ERR_INTERNAL, "nothing can be encrypted: %s", rondo_cipher_unusable());
}

int rondo_exchange_end(const unsigned char secret[RONDO_EXCHANGE_BYTES], const unsigned char told[RONDO_EXCHANGE_BYTES],
                       unsigned char shared[RONDO_EXCHANGE_BYTES])
{
    (void) secret, (void) told, (void) shared;
    return 0;
}

#endif
