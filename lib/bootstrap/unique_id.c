/* rondo_get_unique_id: starts a root that listens on a Unix socket and on TCP, and writes 128 bytes that say where and carry
 * its secret. Ranks of the same host use the Unix socket, which admits the same user alone. */
#include "lib/bootstrap/unique_id.h"

#include "lib/base/thread.h"
#include "lib/base/environment.h"
#include "lib/base/handle.h"
#include "lib/base/error.h"
#include "lib/bootstrap/job.h"
#include "lib/bootstrap/process_socket.h"
#include "lib/bootstrap/root.h"
#include "lib/base/host.h"
#include "lib/bootstrap/frame_connection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Offsets: magic (8), secret (32), host (16), random part of the Unix socket's name (16), the address on TCP
 * (RONDO_ADDRESS_STORED). The rest is zero. */
enum { SECRET = 8, HOST = 40, NAME = 56, REMOTE = 72, NAME_BYTES = 16 };
static const unsigned char magic[8] = {'R', 'O', 'N', 'D', 'O', 'i', 'd', '1'};

void rondo_unique_id_this_host(unsigned char host[RONDO_UNIQUE_ID_HOST])
{
    char text[512];
    struct rondo_sha256 hash;
    unsigned char digest[RONDO_SHA256_BYTES];
    rondo_host_id(NULL, text, sizeof(text));
    rondo_sha256_begin(&hash);
    rondo_sha256_add(&hash, text, strlen(text));
    rondo_sha256_end(&hash, digest);
    memcpy(host, digest, RONDO_UNIQUE_ID_HOST);
}

static rondo_result_t local_address(const unsigned char *random, struct rondo_address *address)
{
    char name[16 + 2 * NAME_BYTES] = "rondo-id-";
    rondo_hexadecimal(name + strlen(name), random, NAME_BYTES);
    return rondo_address_abstract(name, address);
}

rondo_result_t rondo_unique_id_read(const rondo_unique_id_t *id, struct rondo_unique_id_content *content)
{
    const unsigned char *bytes = id->bytes;
    memset(content, 0, sizeof(*content));
    if (memcmp(bytes, magic, sizeof(magic)) != 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "the unique id was not written by rondo_get_unique_id of this version");
    memcpy(content->secret, bytes + SECRET, sizeof(content->secret));
    memcpy(content->host, bytes + HOST, sizeof(content->host));
    rondo_address_load(&content->remote, bytes + REMOTE);
    return local_address(bytes + NAME, &content->local);
}

static int is_of_this_host(const struct rondo_address *address)
{
    const int fd = rondo_address_listen(address);
    if (fd >= 0)
        rondo_process_socket_close(fd);
    return fd >= 0;
}

/* Stores the address that other hosts shall use, with port 0: RONDO_ROOT's host if that is set, else one of this host's. Of
 * several roots it is the first that is of this host. */
static rondo_result_t choose_address(struct rondo_address *address)
{
    const char *root;
    char text[RONDO_ADDRESS_TEXT], host[256], port[16];
    struct rondo_address found[RONDO_ADDRESS_MOST];
    int count, again;
    rondo_result_t result = rondo_environment_text("RONDO_ROOT", &root);
    if (result != RONDO_SUCCESS)
        return result;
    if (root == NULL) {
        rondo_address_of_host(address);
        return RONDO_SUCCESS;
    }
    const int roots = rondo_address_count(root);
    for (int entry = 0; entry < roots; entry++) {
        rondo_address_entry(root, entry, text);
        if ((result = rondo_address_split("RONDO_ROOT", text, 1, host, port)) != RONDO_SUCCESS ||
            (result = rondo_address_resolve("RONDO_ROOT", host, "0", found, &count, &again)) != RONDO_SUCCESS)
            return result;
        *address = found[0];
        if (roots == 1 || is_of_this_host(address))
            return RONDO_SUCCESS;
    }
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "none of the %d hosts of RONDO_ROOT=\"%.100s\" is this one", roots, root);
}

/* Returns a listening socket on a port that the system picks, which is stored in the address; -1 where there is no network. */
static int listen_remote(struct rondo_address *address)
{
    struct rondo_address bound = {.bytes = sizeof(bound.storage)};
    int fd = rondo_address_listen(address);
    /* The address may be a translated one that only other hosts can use. */
    if (fd < 0 && errno == EADDRNOTAVAIL) {
        struct rondo_address any = rondo_address_any(address);
        fd = rondo_address_listen(&any);
    }
    if (fd < 0 || getsockname(fd, (struct sockaddr *) &bound.storage, &bound.bytes) != 0) {
        if (fd >= 0)
            rondo_process_socket_close(fd);
        return -1;
    }
    rondo_address_set_port(address, rondo_address_port(&bound));
    return fd;
}

void rondo_unique_id_bind(rondo_unique_id_t *id, const char *secret)
{
    static const char label[] = "rondo unique id";
    struct rondo_hmac hmac;
    _Static_assert((int) RONDO_UNIQUE_ID_SECRET == (int) RONDO_SHA256_BYTES, "a secret may be a hash");
    if (secret == NULL || *secret == '\0')
        return;
    rondo_hmac_begin(&hmac, id->bytes + SECRET, RONDO_UNIQUE_ID_SECRET);
    rondo_hmac_add(&hmac, label, sizeof(label));
    rondo_hmac_add(&hmac, secret, strlen(secret));
    rondo_hmac_end(&hmac, id->bytes + SECRET);
    explicit_bzero(&hmac, sizeof(hmac));
}

void rondo_unique_id_mask(unsigned char id[sizeof(rondo_unique_id_t)], const unsigned char mask[RONDO_UNIQUE_ID_SECRET])
{
    for (int i = 0; i < RONDO_UNIQUE_ID_SECRET; i++)
        id[SECRET + i] ^= mask[i];
}

/* Listens at the id's addresses; stores that on TCP in the id. */
static rondo_result_t listen_all(rondo_unique_id_t *id, struct rondo_admission *admission)
{
    struct rondo_address local, remote;
    rondo_result_t result = choose_address(&remote);
    if (result == RONDO_SUCCESS)
        result = local_address(id->bytes + NAME, &local);
    if (result != RONDO_SUCCESS)
        return result;
    int fd = rondo_address_listen(&local);
    if (fd < 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "cannot listen on a Unix socket: %s", strerror(errno));
    rondo_admission_listen(admission, fd);
    fd = listen_remote(&remote);
    if (fd >= 0) {
        rondo_admission_listen(admission, fd);
        rondo_address_store(&remote, id->bytes + REMOTE);
    } else {
        rondo_log(RONDO_LOG_WARN, -1, "the unique id is of use on this host only: cannot listen on TCP: %s", strerror(errno));
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_unique_id_make(const struct rondo_unique_id_options *options, rondo_unique_id_t *id)
{
    struct rondo_root_options root = {.admission = {.encrypts = options->encrypts},
                                      .size = options->size,
                                      .roots = options->roots,
                                      .share = options->share,
                                      .timeout = options->timeout,
                                      .local = -1};
    rondo_unique_id_t made = {{0}}, bound;
    memcpy(made.bytes, magic, sizeof(magic));
    rondo_unique_id_this_host(made.bytes + HOST);
    rondo_result_t result = rondo_random_bytes(made.bytes + SECRET, RONDO_UNIQUE_ID_SECRET);
    if (result == RONDO_SUCCESS)
        result = rondo_random_bytes(made.bytes + NAME, NAME_BYTES);
    if (result == RONDO_SUCCESS)
        result = listen_all(&made, &root.admission);
    if (result == RONDO_SUCCESS) {
        bound = made;
        rondo_unique_id_bind(&bound, options->secret);
        rondo_hmac_begin(&root.admission.secret, bound.bytes + SECRET, RONDO_UNIQUE_ID_SECRET);
        root.admission.tcp_secret = root.admission.secret;
        result = rondo_root_start(&root); /* the sockets are its own now */
        explicit_bzero(&bound, sizeof(bound));
    } else {
        rondo_admission_close(&root.admission);
    }
    if (result == RONDO_SUCCESS)
        *id = made;
    explicit_bzero(&made, sizeof(made));
    explicit_bzero(&root.admission.secret, sizeof(root.admission.secret));
    explicit_bzero(&root.admission.tcp_secret, sizeof(root.admission.tcp_secret));
    return result;
}

rondo_result_t rondo_get_unique_id(rondo_unique_id_t *id)
{
    struct rondo_unique_id_options options = {0};
    rondo_result_t result = rondo_handle_check_process("rondo_get_unique_id");
    if (result != RONDO_SUCCESS)
        return result;
    if (id == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_get_unique_id: id is NULL");
    if ((result = rondo_environment_check()) != RONDO_SUCCESS ||
        (result = rondo_environment_real("RONDO_CONNECT_TIMEOUT", &options.timeout)) != RONDO_SUCCESS ||
        (result = rondo_job_encrypts(&options.encrypts)) != RONDO_SUCCESS)
        return result;
    return rondo_unique_id_make(&options, id);
}
