/* See lib/bootstrap/rendezvous.h. Runs on the caller's thread before there is a control thread; every wait ends by the caller's
 * deadline. Nothing that answers is trusted before its verdict was proven. */
#include "lib/bootstrap/rendezvous.h"

#include "lib/base/thread.h"
#include "lib/base/error.h"
#include "lib/bootstrap/first_root.h"
#include "lib/bootstrap/handshake.h"
#include "lib/bootstrap/key_store.h"
#include "lib/bootstrap/process_socket.h"
#include "lib/bootstrap/root.h"
#include "lib/bootstrap/unique_id.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    CONNECT_MS = 3000, /* for one address */
    ANSWER_MS = 5000,  /* for one message of the handshake */
    GRACE_MS = 3000,   /* beyond the deadline, for the root, whose clock decides, to say why the job did not form */
    LOOK_MS = 20,      /* between two looks whether waiting is vain */
    PAUSE_FIRST_MS = 5,
    PAUSE_MOST_MS = 200,
    RANKS_OF_ROOT = 4096, /* where the number of roots is chosen */
};

struct attempt {
    const struct rondo_job_options *options;
    struct rondo_rendezvous_found found;
    struct rondo_rendezvous_roots roots;
    struct rondo_rendezvous_secrets secrets;
    const struct rondo_hmac *secret; /* the one of secrets that counts at the address being tried */
    struct rondo_handshake handshake;
    int is_root; /* another root comes to the first one */
    int64_t deadline;
    int fd;
    int round;         /* of attempts at all addresses, from 1 */
    int absent;        /* no Unix socket of this user listens, as far as this round has come */
    int demanded;      /* the round in which a root on TCP has first demanded a secret that this rank does not have; 0: none */
    char failure[256]; /* why the last attempt failed */
};

enum outcome { JOINED, RETRY, REFUSED /* the error has been set */ };

/* Returns 1 when the descriptor is ready, 0 at the deadline. */
static int wait_for(int fd, short events, int64_t deadline)
{
    struct pollfd poller = {fd, events, 0};
    for (;;) {
        int64_t left = deadline - rondo_clock_ms();
        int ready = poll(&poller, 1, left <= 0 ? 0 : left > 1000000 ? 1000000 : (int) left);
        if (ready > 0)
            return 1;
        if ((ready == 0 && left <= 0) || (ready < 0 && errno != EINTR))
            return 0;
    }
}

/* Returns the time so many milliseconds from now, but not past the deadline. */
static int64_t within(const struct attempt *attempt, int milliseconds)
{
    int64_t limit = rondo_clock_ms() + milliseconds;
    return limit < attempt->deadline ? limit : attempt->deadline;
}

/* Reads exactly so many bytes, because those after them belong to the connection. Returns 1 if they came. */
static int receive(struct attempt *attempt, unsigned char *to, size_t bytes, const char *what)
{
    int64_t limit = within(attempt, ANSWER_MS);
    while (bytes > 0) {
        if (!wait_for(attempt->fd, POLLIN, limit)) {
            snprintf(attempt->failure, sizeof(attempt->failure), "it did not send its %s", what);
            return 0;
        }
        ssize_t got = recv(attempt->fd, to, bytes, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
            continue;
        if (got <= 0) {
            snprintf(attempt->failure, sizeof(attempt->failure), "it closed the connection before its %s", what);
            return 0;
        }
        to += got;
        bytes -= (size_t) got;
    }
    return 1;
}

/* For messages. */
static const char *root_name(const struct rondo_job_options *options)
{
    return options->key_store           ? "the address in the launcher's key store"
           : options->unique_id != NULL ? "the unique id's address"
           : options->root != NULL      ? options->root
                                        : "this host";
}

/* For messages: the root, the first one where another root comes to it, with the process whose thread it is. Returns text. */
static const char *root_holder(const struct rondo_job_options *options, int is_root, char text[64])
{
    const int roots = options->roots > 0 && !is_root ? options->roots : 1;
    if (options->unique_id != NULL && !options->key_store)
        snprintf(text, 64, "the root (of the process that made the unique id)");
    else
        snprintf(text, 64, "the root (of rank %d)",
                 rondo_job_first_rank(rondo_job_share(options->rank, options->size, roots), options->size, roots));
    return text;
}

/* This rank has no secret, and a root on TCP demands one. A root of this user without a secret listens on its Unix socket
 * before it answers on TCP. So if the demand has been made in an earlier round, and no such socket was there since, that root
 * is not one for this rank. */
static enum outcome refuse_unproven(struct attempt *attempt)
{
    const struct rondo_job_options *options = attempt->options;
    static const char reason[] =
        "without a secret only ranks of one user on one host may join, and the root there is another "
        "user's or has a secret; set the same one on all ranks: export RONDO_SECRET=$(openssl rand -hex 16)";
    if (attempt->absent && attempt->demanded > 0 && attempt->demanded < attempt->round) {
        rondo_fail(RONDO_ERR_BOOTSTRAP, "the root at %s refused rank %d: %s", root_name(options), options->rank, reason);
        return REFUSED;
    }
    if (attempt->demanded == 0)
        attempt->demanded = attempt->round;
    snprintf(attempt->failure, sizeof(attempt->failure), "%s", reason);
    return RETRY;
}

static enum outcome take_verdict(struct attempt *attempt)
{
    const struct rondo_job_options *options = attempt->options;
    enum rondo_handshake_verdict verdict;
    int detail, unproven = attempt->secret == &attempt->secrets.tcp && !attempt->secrets.known;
    if (rondo_handshake_read_verdict(&attempt->handshake, attempt->secret, &verdict, &detail) < 0) {
        snprintf(attempt->failure, sizeof(attempt->failure),
                 unproven ? "what answers there does not know the secret, because there is none: set it on all ranks, export "
                            "RONDO_SECRET=$(openssl rand -hex 16)"
                          : "what answers there does not know the secret");
        return RETRY;
    }
    switch (verdict) {
    case RONDO_HANDSHAKE_WELCOME:
        return JOINED;
    case RONDO_HANDSHAKE_SECRET:
        if (unproven)
            return refuse_unproven(attempt);
        rondo_fail(RONDO_ERR_BOOTSTRAP, "the root at %s refused the secret of rank %d: %s%s%s", root_name(options),
                   options->rank,
                   options->unique_id != NULL && !options->key_store ? "the unique id is not its own"
                                                                     : "RONDO_SECRET must be the same on all ranks",
                   attempt->found.source != NULL ? "; it is not set here, and the secret is that of " : "",
                   attempt->found.source != NULL ? attempt->found.source : "");
        return REFUSED;
    case RONDO_HANDSHAKE_SIZE:
        rondo_fail(RONDO_ERR_BOOTSTRAP, "rank %d was told that the job has %d ranks, but others were told %d", options->rank,
                   options->size, detail);
        return REFUSED;
    case RONDO_HANDSHAKE_TAKEN:
        rondo_fail(RONDO_ERR_BOOTSTRAP,
                   "rank %d of %d is there already: this rank has been given twice, or two jobs meet at %s under one name (%s "
                   "tells them apart)",
                   options->rank, options->size, root_name(options),
                   options->key_store           ? "the launcher"
                   : options->unique_id != NULL ? "a unique id of its own"
                   : options->root != NULL      ? "RONDO_ROOT"
                                                : "RONDO_JOB");
        return REFUSED;
    case RONDO_HANDSHAKE_ROOTS:
        rondo_fail(RONDO_ERR_BOOTSTRAP,
                   "rank %d was told of %d roots, but others of %d, or in another order: all ranks need the same %s",
                   options->rank, options->roots > 0 ? options->roots : 1, detail,
                   options->unique_id != NULL ? "unique ids in the same order"
                                              : "addresses of RONDO_ROOT in the same order, and the first rank of each share "
                                                "must run where its address leads");
        return REFUSED;
    case RONDO_HANDSHAKE_OVER:
        break;
    }
    snprintf(attempt->failure, sizeof(attempt->failure), "the job that meets there has formed, or is ending");
    return RETRY;
}

static enum outcome shake_hands(struct attempt *attempt)
{
    const struct rondo_job_options *options = attempt->options;
    struct rondo_handshake *handshake = &attempt->handshake;
    uint32_t version = 0;
    int encrypts = 0;
    handshake->encrypts = options->encrypts;
    if (!receive(attempt, handshake->challenge, sizeof(handshake->challenge), "challenge"))
        return RETRY;
    int understood = rondo_handshake_read_challenge(handshake, &version, &encrypts);
    if (understood < 0) {
        snprintf(attempt->failure, sizeof(attempt->failure), "what answers there is not Rondo");
        return RETRY;
    }
    if (understood == 0) {
        rondo_fail(RONDO_ERR_BOOTSTRAP, "the root at %s speaks version %u of the protocol, not this one", root_name(options),
                   version);
        return REFUSED;
    }
    if (encrypts != options->encrypts) {
        rondo_fail(RONDO_ERR_BOOTSTRAP,
                   "the root at %s has RONDO_ENCRYPT=%d and rank %d has %d: it must be the same on all ranks",
                   root_name(options), encrypts, options->rank, options->encrypts);
        return REFUSED;
    }
    int64_t left = attempt->deadline - rondo_clock_ms();
    uint32_t wait_ms = left <= 0 ? 0 : left > INT32_MAX ? INT32_MAX : (uint32_t) left;
    struct rondo_handshake_claim claim = {.rank = options->rank,
                                          .size = options->size,
                                          .roots = options->roots > 0 ? options->roots : 1,
                                          .is_root = attempt->is_root,
                                          .wait_ms = wait_ms};
    if (rondo_process_token(claim.process) != RONDO_SUCCESS ||
        rondo_handshake_make_hello(handshake, attempt->secret, &claim) != RONDO_SUCCESS)
        return REFUSED;
    /* A fresh socket has room for it. */
    if (rondo_address_send(attempt->fd, handshake->hello, sizeof(handshake->hello)) != 0) {
        snprintf(attempt->failure, sizeof(attempt->failure), "sending the hello: %s", strerror(errno));
        return RETRY;
    }
    if (!receive(attempt, handshake->verdict, sizeof(handshake->verdict), "verdict"))
        return RETRY;
    return take_verdict(attempt);
}

static enum outcome try_address(struct attempt *attempt, const struct rondo_address *address)
{
    int error, is_unix = address->storage.ss_family == AF_UNIX;
    attempt->secret = is_unix ? &attempt->secrets.same_user : &attempt->secrets.tcp;
    attempt->fd = rondo_address_connect(address);
    if (attempt->fd < 0)
        error = errno;
    else if (!wait_for(attempt->fd, POLLOUT, within(attempt, CONNECT_MS)))
        error = ETIMEDOUT;
    else
        error = rondo_address_connected(attempt->fd);
    if (error != 0)
        snprintf(attempt->failure, sizeof(attempt->failure), "%s", strerror(error));
    else if (is_unix && !rondo_address_same_user(attempt->fd)) {
        snprintf(attempt->failure, sizeof(attempt->failure), "another user listens under its name");
        error = EPERM;
    }
    if (is_unix && error != ECONNREFUSED && error != EPERM)
        attempt->absent = 0;
    enum outcome outcome = error == 0 ? shake_hands(attempt) : RETRY;
    if (outcome != JOINED && attempt->fd >= 0)
        rondo_process_socket_close(attempt->fd);
    return outcome;
}

static rondo_result_t fail_not_found(const struct attempt *attempt, const char *failure)
{
    char holder[64];
    const struct rondo_job_options *options = attempt->options;
    if (options->unique_id == NULL && options->root == NULL)
        return rondo_fail(RONDO_ERR_BOOTSTRAP,
                          "rank %d found no rank 0 of job \"%s\" on this host within %.3g s (%s); across hosts, "
                          "RONDO_ROOT=host:port must be set",
                          options->rank, options->job != NULL ? options->job : "", options->connect_timeout, failure);
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "%srank %d could not join %s at %s within %.3g s: %s",
                      attempt->is_root ? "the root of " : "", options->rank, root_holder(options, attempt->is_root, holder),
                      root_name(options), options->connect_timeout, failure);
}

static rondo_result_t cancelled(const struct rondo_job_options *options)
{
    return options->cancelled != NULL ? options->cancelled(options->cancelled_argument) : RONDO_SUCCESS;
}

static rondo_result_t connect_root(struct attempt *attempt, const struct rondo_address *addresses, int count)
{
    char failure[sizeof(attempt->failure)] = "no time", of_round[sizeof(failure)];
    for (int pause = PAUSE_FIRST_MS;; pause = pause * 2 < PAUSE_MOST_MS ? pause * 2 : PAUSE_MOST_MS) {
        rondo_result_t result = cancelled(attempt->options);
        if (result != RONDO_SUCCESS)
            return result;
        attempt->round++;
        attempt->absent = 1;
        for (int i = 0; i < count; i++) {
            enum outcome outcome = try_address(attempt, &addresses[i]);
            if (outcome != RETRY)
                return outcome == JOINED ? RONDO_SUCCESS : RONDO_ERR_BOOTSTRAP;
            /* Of many candidates most refuse the connection; any other failure says more. */
            if (i == 0 || strcmp(attempt->failure, strerror(ECONNREFUSED)) != 0)
                memcpy(of_round, attempt->failure, sizeof(of_round));
        }
        /* A round that the deadline cut short says less than those before it. */
        const int over = rondo_clock_ms() >= attempt->deadline;
        if (count > 0 && (!over || attempt->round == 1))
            memcpy(failure, of_round, sizeof(failure));
        if (over)
            return fail_not_found(attempt, failure);
        rondo_clock_pause(pause, attempt->deadline);
    }
}

rondo_result_t rondo_rendezvous_failed(const struct rondo_job_options *options, enum rondo_rendezvous_end end,
                                       const char *reason)
{
    char holder[64];
    if (end == RONDO_RENDEZVOUS_REFUSED)
        return rondo_fail(RONDO_ERR_BOOTSTRAP, "%s%s", reason,
                          options->unique_id == NULL && options->root == NULL && !options->key_store
                              ? "; ranks on other hosts can come only if RONDO_ROOT=host:port is set"
                              : "");
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "%s at %s %s while rank %d waited for the others", root_holder(options, 0, holder),
                      root_name(options), end == RONDO_RENDEZVOUS_SILENT ? "fell silent" : "ended", options->rank);
}

/* Waits for the root. Returns RONDO_ERR_BOOTSTRAP if it is silent, or why waiting is vain, which all other ranks are told. */
static rondo_result_t wait_for_root(const struct attempt *attempt, struct rondo_frame_connection *connection)
{
    const struct rondo_job_options *options = attempt->options;
    const int64_t limit = attempt->deadline + GRACE_MS;
    for (;;) {
        const int64_t look = rondo_clock_ms() + LOOK_MS;
        rondo_result_t result = cancelled(options);
        if (result != RONDO_SUCCESS) {
            const char *reason = rondo_last_error();
            if (rondo_frame_connection_put(connection, RONDO_FRAME_FAILED, options->rank, RONDO_CONTROL_ALL, reason,
                                           strlen(reason)) == 0)
                rondo_frame_connection_flush(connection);
            return result;
        }
        if (wait_for(connection->fd, POLLIN, options->cancelled != NULL && look < limit ? look : limit))
            return RONDO_SUCCESS;
        if (rondo_clock_ms() >= limit)
            return rondo_rendezvous_failed(options, RONDO_RENDEZVOUS_SILENT, NULL);
    }
}

/* The secret of the job's key: that of the first root, which all ranks know. */
static rondo_result_t find_job_secret(const struct attempt *attempt, struct rondo_hmac *secret)
{
    struct rondo_unique_id_content content;
    *secret = *attempt->secret;
    if (attempt->options->first_id == NULL)
        return RONDO_SUCCESS;
    rondo_result_t result = rondo_unique_id_read(attempt->options->first_id, &content);
    rondo_hmac_begin(secret, content.secret, sizeof(content.secret));
    explicit_bzero(content.secret, sizeof(content.secret));
    return result;
}

/* Waits until the root says that all ranks have joined, or which have not. */
static rondo_result_t wait_job(struct attempt *attempt, struct rondo_frame_connection *connection, struct rondo_job *job)
{
    const struct rondo_job_options *options = attempt->options;
    for (;;) {
        struct rondo_frame frame;
        int state = rondo_frame_connection_next(connection, &frame);
        if (state > 0 && frame.type == RONDO_FRAME_JOB && frame.bytes == RONDO_ROOT_JOB) {
            struct rondo_hmac secret;
            const rondo_result_t result = find_job_secret(attempt, &secret);
            rondo_job_key(&secret, frame.data, &job->key);
            explicit_bzero(&secret, sizeof(secret));
            rondo_address_load(&job->listen, frame.data + RONDO_JOB_NONCE);
            return result;
        }
        if (state > 0 && frame.type == RONDO_FRAME_FAILED) {
            char reason[RONDO_RENDEZVOUS_REASON];
            rondo_rendezvous_read_reason(&frame, reason);
            return rondo_rendezvous_failed(options, RONDO_RENDEZVOUS_REFUSED, reason);
        }
        rondo_result_t waited = state == 0 ? wait_for_root(attempt, connection) : RONDO_SUCCESS;
        if (waited != RONDO_SUCCESS)
            return waited;
        if (state != 0 || rondo_frame_connection_fill(connection) < 0)
            return rondo_rendezvous_failed(options, RONDO_RENDEZVOUS_ENDED, NULL);
    }
}

void rondo_rendezvous_read_reason(const struct rondo_frame *frame, char reason[RONDO_RENDEZVOUS_REASON])
{
    int bytes = frame->bytes < RONDO_RENDEZVOUS_REASON ? (int) frame->bytes : RONDO_RENDEZVOUS_REASON - 1;
    snprintf(reason, RONDO_RENDEZVOUS_REASON, "%.*s", bytes, (const char *) frame->data);
}

void rondo_job_key(const struct rondo_hmac *secret, const unsigned char nonce[RONDO_JOB_NONCE], struct rondo_hmac *key)
{
    static const char label[] = "rondo job";
    unsigned char bytes[RONDO_SHA256_BYTES];
    struct rondo_hmac hmac = *secret;
    rondo_hmac_add(&hmac, label, sizeof(label));
    rondo_hmac_add(&hmac, nonce, RONDO_JOB_NONCE);
    rondo_hmac_end(&hmac, bytes);
    rondo_hmac_begin(key, bytes, sizeof(bytes));
    explicit_bzero(&hmac, sizeof(hmac));
    explicit_bzero(bytes, sizeof(bytes));
}

static rondo_result_t join(struct attempt *attempt)
{
    const struct rondo_job_options *options = attempt->options;
    struct rondo_address addresses[RONDO_RENDEZVOUS_ADDRESSES];
    int count = 0;
    rondo_result_t result = RONDO_SUCCESS;
    if (options->unique_id != NULL) {
        struct rondo_unique_id_content content;
        unsigned char host[RONDO_UNIQUE_ID_HOST];
        if ((result = rondo_unique_id_read(options->unique_id, &content)) != RONDO_SUCCESS)
            return result;
        rondo_hmac_begin(&attempt->secrets.same_user, content.secret, sizeof(content.secret));
        attempt->secrets.tcp = attempt->secrets.same_user;
        attempt->secrets.known = 1;
        explicit_bzero(content.secret, sizeof(content.secret));
        rondo_unique_id_this_host(host);
        if (memcmp(host, content.host, sizeof(host)) == 0)
            addresses[count++] = content.local;
        if (content.remote.bytes > 0)
            addresses[count++] = content.remote;
        if (count == 0)
            return rondo_fail(RONDO_ERR_BOOTSTRAP,
                              "the unique id was made on a host without a network and is of use there only");
        return connect_root(attempt, addresses, count);
    }
    if ((result = rondo_rendezvous_secrets(options, &attempt->secrets)) != RONDO_SUCCESS)
        return result;
    if (attempt->is_root || !rondo_rendezvous_holds_root(options)) {
        result = rondo_rendezvous_addresses(options, attempt->deadline, addresses, &count);
        return result == RONDO_SUCCESS ? connect_root(attempt, addresses, count) : result;
    }
    attempt->secret = &attempt->secrets.same_user;
    result = rondo_rendezvous_start_root(options, &attempt->secrets, attempt->roots.first, attempt->deadline, &attempt->fd);
    if (result != RONDO_SUCCESS)
        return result;
    enum outcome outcome = shake_hands(attempt);
    if (outcome == JOINED)
        return RONDO_SUCCESS;
    rondo_process_socket_close(attempt->fd);
    return outcome == REFUSED
               ? RONDO_ERR_BOOTSTRAP
               : rondo_fail(RONDO_ERR_BOOTSTRAP, "rank %d could not join its own root: %s", options->rank, attempt->failure);
}

/* The roots of a job that meets by the key store. */
static int count_roots(const struct rondo_job_options *options)
{
    const int wanted = options->roots > 0 ? options->roots : (options->size + RANKS_OF_ROOT - 1) / RANKS_OF_ROOT;
    const int most = options->size < RONDO_JOB_ROOTS_MOST ? options->size : RONDO_JOB_ROOTS_MOST;
    return wanted < most ? wanted : most;
}

/* Finds the unique ids of this rank's root and of the first in the launcher's key store. The first rank of each share makes the
 * id of its root, and stores it there. */
static rondo_result_t exchange_ids(struct rondo_job_options *options, int64_t deadline, rondo_unique_id_t ids[2])
{
    _Static_assert(sizeof(ids[0].bytes) == RONDO_KEY_STORE_VALUE, "a value is a unique id");
    struct rondo_key_store store;
    options->roots = count_roots(options);
    const int share = rondo_job_share(options->rank, options->size, options->roots);
    const int holder = rondo_job_first_rank(share, options->size, options->roots);
    const struct rondo_unique_id_options made = {.timeout = options->connect_timeout,
                                                 .size = options->size,
                                                 .roots = options->roots,
                                                 .share = share,
                                                 .encrypts = options->encrypts,
                                                 .secret = options->secret};
    rondo_result_t result = rondo_key_store_open(&store);
    if (result == RONDO_SUCCESS && options->rank != holder)
        result = rondo_key_store_get(&store, holder, deadline, ids[0].bytes);
    if (result == RONDO_SUCCESS && options->rank == holder)
        result = rondo_unique_id_make(&made, &ids[0]);
    if (result == RONDO_SUCCESS && options->rank == holder)
        result = rondo_key_store_put(&store, ids[0].bytes);
    if (result == RONDO_SUCCESS && share > 0)
        result = rondo_key_store_get(&store, 0, deadline, ids[1].bytes);
    if (result == RONDO_SUCCESS)
        rondo_log(RONDO_LOG_DEBUG, options->rank, "the root's address is that of the launcher's key store");
    rondo_unique_id_bind(&ids[0], options->secret);
    rondo_unique_id_bind(&ids[1], options->secret);
    options->unique_id = &ids[0];
    options->first_id = share > 0 ? &ids[1] : options->roots > 1 ? &ids[0] : NULL;
    return result;
}

/* Joins, and makes the connection of it. */
static rondo_result_t enter(struct attempt *attempt, struct rondo_frame_connection *connection)
{
    struct rondo_frame_key to_root, to_rank;
    rondo_result_t result = join(attempt);
    if (result != RONDO_SUCCESS)
        return result;
    int good = rondo_handshake_rank_keys(&attempt->handshake, attempt->secret, &to_root, &to_rank);
    rondo_frame_connection_open(connection, attempt->fd, &to_root, &to_rank);
    explicit_bzero(&to_root, sizeof(to_root));
    explicit_bzero(&to_rank, sizeof(to_rank));
    if (good)
        return RONDO_SUCCESS;
    rondo_frame_connection_close(connection);
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "the root at %s has broken the exchange of keys", root_name(attempt->options));
}

/* Tells the root of a later share where the first root is. */
static rondo_result_t tell_first_root(const struct attempt *attempt, struct rondo_frame_connection *connection)
{
    const struct rondo_job_options *options = attempt->options;
    unsigned char data[RONDO_FIRST_ROOT_DATA];
    if (options->first_id == NULL || rondo_job_share(options->rank, options->size, options->roots) == 0)
        return RONDO_SUCCESS;
    rondo_result_t result = rondo_first_root_mask(attempt->secret, options->first_id, data);
    if (result == RONDO_SUCCESS &&
        (rondo_frame_connection_put(connection, RONDO_FRAME_FIRST_ROOT, options->rank, RONDO_CONTROL_ALL, data, sizeof(data)) !=
             0 ||
         rondo_frame_connection_flush(connection) != 1)) /* a fresh connection has room for so few bytes */
        result = rondo_rendezvous_failed(options, RONDO_RENDEZVOUS_ENDED, NULL);
    return result;
}

rondo_result_t rondo_rendezvous_reach_first(const struct rondo_job_options *options, struct rondo_frame_connection *connection)
{
    struct attempt attempt = {.options = options, .fd = -1, .is_root = 1};
    attempt.deadline = rondo_clock_ms() + (int64_t) (options->connect_timeout * 1000);
    const rondo_result_t result = enter(&attempt, connection);
    explicit_bzero(&attempt, sizeof(attempt));
    return result;
}

rondo_result_t rondo_rendezvous_join(const struct rondo_job_options *given, struct rondo_frame_connection *connection,
                                     struct rondo_job *job)
{
    struct rondo_job_options completed = *given, *options = &completed;
    struct attempt attempt = {.options = options, .fd = -1};
    rondo_unique_id_t exchanged[2] = {{{0}}};
    rondo_result_t result = RONDO_SUCCESS;
    attempt.deadline = rondo_clock_ms() + (int64_t) (options->connect_timeout * 1000);
    if (options->key_store)
        result = exchange_ids(&completed, attempt.deadline, exchanged);
    if (result == RONDO_SUCCESS)
        result = rondo_rendezvous_complete(&completed, &attempt.found);
    if (result == RONDO_SUCCESS)
        result = rondo_rendezvous_choose_root(&completed, &attempt.roots, attempt.deadline);
    if (result == RONDO_SUCCESS)
        result = enter(&attempt, connection);
    job->holds_root = rondo_rendezvous_holds_root(options);
    if (result == RONDO_SUCCESS) {
        if ((result = tell_first_root(&attempt, connection)) == RONDO_SUCCESS)
            result = wait_job(&attempt, connection, job);
        if (result != RONDO_SUCCESS)
            rondo_frame_connection_close(connection);
    }
    explicit_bzero(&attempt, sizeof(attempt));
    explicit_bzero(exchanged, sizeof(exchanged));
    return result;
}
