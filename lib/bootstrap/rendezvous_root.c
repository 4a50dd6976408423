/* The addresses of a job without a unique id, and how the ranks that hold its roots listen there. See
 * lib/bootstrap/rendezvous.h. */
#include "lib/bootstrap/rendezvous.h"

#include "lib/base/thread.h"
#include "lib/base/error.h"
#include "lib/bootstrap/process_socket.h"
#include "lib/bootstrap/root.h"
#include "lib/bootstrap/unique_id.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ADDRESS_IN_USE_MS = 5000, /* to wait while an earlier job's root still holds the address */
    RETRY_MS = 50,
};

static int has_secret(const struct rondo_job_options *options)
{
    return options->secret != NULL && *options->secret != '\0';
}

/* Whether that is plain from the text. One that is wrong is told later. */
static int is_loopback(const char *root)
{
    struct rondo_address addresses[RONDO_ADDRESS_MOST];
    char host[256], port[16];
    int count = 0, again;
    if (rondo_address_split("RONDO_ROOT", root, 0, host, port) != RONDO_SUCCESS || strcmp(host, "localhost") == 0)
        return 1;
    return rondo_address_is_numeric(host) &&
           rondo_address_resolve("RONDO_ROOT", host, port, addresses, &count, &again) == RONDO_SUCCESS &&
           rondo_address_is_loopback(&addresses[0]);
}

rondo_result_t rondo_rendezvous_complete(struct rondo_job_options *options, struct rondo_rendezvous_found *found)
{
    memset(found, 0, sizeof(*found));
    if (options->unique_id != NULL || options->root == NULL || has_secret(options))
        return RONDO_SUCCESS;
    int on_loopback = 0;
    const int roots = rondo_address_count(options->root);
    for (; on_loopback < roots; on_loopback++) {
        char text[RONDO_ADDRESS_TEXT];
        rondo_address_entry(options->root, on_loopback, text);
        if (!is_loopback(text))
            break;
    }
    if (on_loopback == roots)
        return RONDO_SUCCESS;
    if ((found->source = rondo_launcher_key(found->key)) != NULL) {
        options->secret = found->key;
    } else {
        rondo_result_t result =
            options->launched ? rondo_secret_file_provide(&found->file) : rondo_secret_file_read(&found->file);
        if (result != RONDO_SUCCESS || found->file.secret[0] == '\0')
            return result;
        found->source = found->file.path;
        options->secret = found->file.secret;
    }
    rondo_log(RONDO_LOG_DEBUG, options->rank, "the secret is that of %s", found->source);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_rendezvous_secrets(const struct rondo_job_options *options, struct rondo_rendezvous_secrets *secrets)
{
    unsigned char unknown[RONDO_SHA256_BYTES];
    secrets->known = has_secret(options);
    rondo_hmac_begin(&secrets->same_user, options->secret, secrets->known ? strlen(options->secret) : 0);
    secrets->tcp = secrets->same_user;
    if (secrets->known)
        return RONDO_SUCCESS;
    rondo_result_t result = rondo_random_bytes(unknown, sizeof(unknown));
    rondo_hmac_begin(&secrets->tcp, unknown, sizeof(unknown));
    explicit_bzero(unknown, sizeof(unknown));
    return result;
}

/* Stores what the names of the Unix sockets tell jobs apart by: the port of RONDO_ROOT, else the job. */
static rondo_result_t name_rendezvous(const struct rondo_job_options *options, char name[300])
{
    char host[256], port[16];
    if (options->root == NULL) {
        snprintf(name, 300, "%s", options->job != NULL ? options->job : "");
        return RONDO_SUCCESS;
    }
    rondo_result_t result = rondo_address_split("RONDO_ROOT", options->root, 0, host, port);
    if (result == RONDO_SUCCESS)
        snprintf(name, 300, "port %s of loopback", port);
    return result;
}

/* The name of the job's candidate-th Unix socket. It is easy to guess, so a process of another user may hold it; rank 0 then
 * takes the next candidate, and the other ranks try all. */
static rondo_result_t unix_address(const struct rondo_job_options *options, int candidate, struct rondo_address *address)
{
    char job[300];
    rondo_result_t result = name_rendezvous(options, job);
    if (result != RONDO_SUCCESS)
        return result;
    struct rondo_sha256 hash;
    unsigned char digest[RONDO_SHA256_BYTES];
    char name[100];
    rondo_sha256_begin(&hash);
    rondo_sha256_add(&hash, job, strlen(job));
    rondo_sha256_end(&hash, digest);
    int at = snprintf(name, sizeof(name), "rondo-%lu-", (unsigned long) geteuid());
    at += rondo_hexadecimal(name + at, digest, 16);
    snprintf(name + at, sizeof(name) - (size_t) at, "-%d", candidate);
    return rondo_address_abstract(name, address);
}

static rondo_result_t resolve(const struct rondo_job_options *options, int64_t deadline, struct rondo_address *addresses,
                              int *count, char host[256])
{
    char port[16];
    int again;
    rondo_result_t result = rondo_address_split("RONDO_ROOT", options->root, 0, host, port);
    if (result != RONDO_SUCCESS)
        return result;
    while ((result = rondo_address_resolve("RONDO_ROOT", host, port, addresses, count, &again)) != RONDO_SUCCESS) {
        if (!again || rondo_clock_ms() >= deadline)
            return result;
        if (options->cancelled != NULL && (result = options->cancelled(options->cancelled_argument)) != RONDO_SUCCESS)
            return result;
        rondo_clock_pause(200, deadline);
    }
    if (has_secret(options))
        return RONDO_SUCCESS;
    for (int i = 0; i < *count; i++)
        if (!rondo_address_is_loopback(&addresses[i]))
            return rondo_fail(
                RONDO_ERR_BOOTSTRAP,
                "RONDO_ROOT=%s can be reached by strangers, so a secret is needed, the same on all ranks, and neither the "
                "launcher nor a file ~/.rondo/secret gives one: export RONDO_SECRET=$(openssl rand -hex 16)",
                options->root);
    return RONDO_SUCCESS;
}

/* The list is one that all ranks can use. options->root is an entry of it in turn. */
static rondo_result_t check_list(struct rondo_job_options *options, const char *list, int64_t deadline)
{
    char text[RONDO_ADDRESS_TEXT], earlier[RONDO_ADDRESS_TEXT], host[256], port[16], other[16];
    struct rondo_address addresses[RONDO_ADDRESS_MOST];
    const char *at = list;
    int count;
    for (int entry = 0; entry < options->roots; entry++, at += strcspn(at, ",") + 1) {
        const size_t length = strcspn(at, ",");
        rondo_address_entry(at, 0, text);
        if (length == 0)
            return rondo_fail(RONDO_ERR_BOOTSTRAP, "entry %d of %d of RONDO_ROOT=\"%.100s\" is empty", entry + 1,
                              options->roots, list);
        options->root = text;
        rondo_result_t result = has_secret(options) ? rondo_address_split("RONDO_ROOT", text, 0, host, port)
                                                    : resolve(options, deadline, addresses, &count, host);
        if (result != RONDO_SUCCESS)
            return result;
        for (const char *before = list; before < at; before += strcspn(before, ",") + 1)
            if (strncmp(before, at, length) == 0 && before[length] == ',')
                return rondo_fail(RONDO_ERR_BOOTSTRAP, "RONDO_ROOT lists %s twice: each root needs an address of its own",
                                  text);
        /* The Unix sockets of loopback addresses are named by the port. */
        for (const char *before = list; before < at && !has_secret(options); before += strcspn(before, ",") + 1) {
            rondo_address_entry(before, 0, earlier);
            if (rondo_address_split("RONDO_ROOT", earlier, 0, host, other) == RONDO_SUCCESS &&
                rondo_address_split("RONDO_ROOT", text, 0, host, port) == RONDO_SUCCESS && strcmp(port, other) == 0)
                return rondo_fail(RONDO_ERR_BOOTSTRAP,
                                  "RONDO_ROOT lists %s and %s: without RONDO_SECRET each root needs a port of its own", earlier,
                                  text);
        }
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_rendezvous_choose_root(struct rondo_job_options *options, struct rondo_rendezvous_roots *roots,
                                            int64_t deadline)
{
    const char *list = options->root;
    if (options->unique_id != NULL || list == NULL)
        return RONDO_SUCCESS;
    options->roots = rondo_address_count(list);
    if (options->roots == 1)
        return RONDO_SUCCESS;
    const int most = options->size < RONDO_JOB_ROOTS_MOST ? options->size : RONDO_JOB_ROOTS_MOST;
    if (options->roots > most)
        return rondo_fail(RONDO_ERR_BOOTSTRAP, "RONDO_ROOT=\"%.100s\" lists %d roots for %d ranks: it may list 1 to %d", list,
                          options->roots, options->size, most);
    rondo_result_t result = check_list(options, list, deadline);
    rondo_address_entry(list, rondo_job_share(options->rank, options->size, options->roots), roots->own);
    rondo_address_entry(list, 0, roots->first);
    options->root = roots->own;
    return result;
}

int rondo_rendezvous_holds_root(const struct rondo_job_options *options)
{
    const int roots = options->roots > 0 ? options->roots : 1;
    return options->unique_id == NULL &&
           options->rank == rondo_job_first_rank(rondo_job_share(options->rank, options->size, roots), options->size, roots);
}

rondo_result_t rondo_rendezvous_addresses(const struct rondo_job_options *options, int64_t deadline,
                                          struct rondo_address addresses[RONDO_RENDEZVOUS_ADDRESSES], int *count)
{
    char host[256];
    int names = options->root == NULL || !has_secret(options) ? RONDO_RENDEZVOUS_NAMES : 0;
    *count = 0;
    if (options->root != NULL) {
        rondo_result_t result = resolve(options, deadline, addresses + names, count, host);
        if (result != RONDO_SUCCESS)
            return result;
    }
    for (int i = 0; i < names; i++) {
        rondo_result_t result = unix_address(options, i, &addresses[i]);
        if (result != RONDO_SUCCESS)
            return result;
    }
    *count += names;
    return RONDO_SUCCESS;
}

/* Whether a process of this user listens there. */
static int is_same_users(const struct rondo_address *address)
{
    int fd = rondo_address_connect(address);
    int same = fd >= 0 && rondo_address_same_user(fd);
    if (fd >= 0)
        rondo_process_socket_close(fd);
    return same;
}

static rondo_result_t listen_unix(const struct rondo_job_options *options, int64_t deadline, struct rondo_root_options *root)
{
    for (int candidate = 0; candidate < RONDO_RENDEZVOUS_NAMES; candidate++) {
        struct rondo_address address;
        rondo_result_t result = unix_address(options, candidate, &address);
        if (result != RONDO_SUCCESS)
            return result;
        int fd;
        while ((fd = rondo_address_listen(&address)) < 0) {
            if (errno != EADDRINUSE)
                return rondo_fail(RONDO_ERR_SYSTEM, "cannot listen on a Unix socket: %s", strerror(errno));
            if (!is_same_users(&address))
                break;
            if (rondo_clock_ms() >= deadline && options->root != NULL)
                return rondo_fail(RONDO_ERR_BOOTSTRAP,
                                  "rank %d cannot listen on RONDO_ROOT=%s: the port is in use by another root", options->rank,
                                  options->root);
            if (rondo_clock_ms() >= deadline)
                return rondo_fail(RONDO_ERR_BOOTSTRAP,
                                  "rank 0 of a job named \"%s\" is already running here; set RONDO_JOB to tell jobs apart",
                                  options->job);
            rondo_clock_pause(RETRY_MS, deadline);
        }
        if (fd >= 0) {
            rondo_admission_listen(&root->admission, fd);
            return RONDO_SUCCESS;
        }
    }
    return options->root != NULL
               ? rondo_fail(
                     RONDO_ERR_BOOTSTRAP,
                     "other users hold all names of Unix sockets for RONDO_ROOT=%s; take another port, or set a secret on all "
                     "ranks: export RONDO_SECRET=$(openssl rand -hex 16)",
                     options->root)
               : rondo_fail(RONDO_ERR_BOOTSTRAP, "other users hold all names of job \"%s\"; set RONDO_JOB to something else",
                            options->job);
}

static rondo_result_t listen_tcp(const struct rondo_job_options *options, int64_t deadline, struct rondo_root_options *root)
{
    struct rondo_address addresses[RONDO_ADDRESS_MOST];
    int count, error = 0, outside = 0, all[2] = {0, 0}, before = root->admission.listener_count;
    char host[256];
    rondo_result_t result = resolve(options, deadline, addresses, &count, host);
    if (result != RONDO_SUCCESS)
        return result;
    /* Many systems resolve their own name to a loopback address, and other hosts resolve it to another one. With a secret such
     * a name means all interfaces. */
    for (int i = 0; i < count; i++)
        outside |= !rondo_address_is_loopback(&addresses[i]);
    int own_name = !outside && has_secret(options) && !rondo_address_is_numeric(host) && strcmp(host, "localhost") != 0;
    for (int i = 0; i < count; i++) {
        int family = addresses[i].storage.ss_family == AF_INET6, fd = -1, any = own_name;
        while (!all[family]) {
            struct rondo_address address = any ? rondo_address_any(&addresses[i]) : addresses[i];
            fd = rondo_address_listen(&address);
            if (fd >= 0)
                break;
            error = errno;
            if (error == EADDRNOTAVAIL && !any && outside)
                any = 1;
            else if (error == EADDRINUSE && rondo_clock_ms() < deadline)
                rondo_clock_pause(RETRY_MS, deadline);
            else
                break;
        }
        if (fd >= 0) {
            rondo_admission_listen(&root->admission, fd);
            error = 0;
        }
        all[family] |= fd >= 0 && any;
        if (error == EADDRINUSE)
            break;
    }
    if (root->admission.listener_count > before && error != EADDRINUSE)
        return RONDO_SUCCESS;
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "rank %d cannot listen on RONDO_ROOT=%s: %s", options->rank, options->root,
                      strerror(error));
}

/* The Unix socket comes first: a rank that TCP has refused finds it at its next attempt. */
static rondo_result_t listen_all(const struct rondo_job_options *options, int64_t deadline, struct rondo_root_options *root)
{
    rondo_result_t result = RONDO_SUCCESS;
    if (options->root == NULL || !has_secret(options)) {
        struct rondo_address addresses[RONDO_ADDRESS_MOST];
        char host[256];
        int count;
        if (options->root != NULL) /* fails on an address that needs a secret */
            result = resolve(options, deadline, addresses, &count, host);
        if (result == RONDO_SUCCESS)
            result = listen_unix(options, deadline, root);
    }
    if (result == RONDO_SUCCESS && options->root != NULL)
        result = listen_tcp(options, deadline, root);
    return result;
}

rondo_result_t rondo_rendezvous_start_root(const struct rondo_job_options *options,
                                           const struct rondo_rendezvous_secrets *secrets, const char *first, int64_t deadline,
                                           int *fd)
{
    struct rondo_root_options root = {
        .admission = {.secret = secrets->same_user, .tcp_secret = secrets->tcp, .encrypts = options->encrypts},
        .size = options->size,
        .roots = options->roots,
        .local = -1};
    struct rondo_job_options upstream = *options;
    root.share = root.roots > 0 ? rondo_job_share(options->rank, options->size, root.roots) : 0;
    upstream.root = first;
    if (root.share > 0)
        root.first = &upstream;
    int pair[2] = {-1, -1};
    int64_t now = rondo_clock_ms(), limit = deadline < now + ADDRESS_IN_USE_MS ? deadline : now + ADDRESS_IN_USE_MS;
    rondo_result_t result = RONDO_SUCCESS;
    if (options->size > 1)
        result = listen_all(options, limit, &root);
    if (result == RONDO_SUCCESS && rondo_process_socket_pair(pair) != 0)
        result = rondo_fail(RONDO_ERR_SYSTEM, "socketpair: %s", strerror(errno));
    if (result == RONDO_SUCCESS) {
        root.local = pair[0];
        root.timeout = options->connect_timeout;
        result = rondo_root_start(&root); /* the sockets are its own now */
        if (result != RONDO_SUCCESS)
            rondo_process_socket_close(pair[1]);
        else
            *fd = pair[1];
    } else {
        rondo_admission_close(&root.admission);
    }
    explicit_bzero(&root, sizeof(root));
    return result;
}
