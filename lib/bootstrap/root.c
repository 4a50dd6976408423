/*
 * See lib/bootstrap/root.h. A job forms in steps, each of which begins when all ranks have answered the one before:
 *
 *   JOINING     a rank has proven the secret
 *   LISTENING   the root tells the job's nonce and where to listen (RONDO_FRAME_JOB); the rank answers with its port
 *   LINKING     the root tells each rank its place and its neighbours' (RONDO_FRAME_PLACES); the rank answers when it is linked
 *               and knows all places
 *   FORMED      the root says so (RONDO_FRAME_READY)
 *
 * One event is fetched at a time, so none is about a member that has been freed.
 */
#include "lib/bootstrap/root.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/address.h"
#include "lib/bootstrap/job.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STACK_BYTES = 256 << 10,
    STEP_MS = 10000,          /* at least, for all steps after the first */
    FLUSH_MS = 3000,          /* for a rank to take the last that it is told */
    NAMED_MOST = 16,          /* ranks in a text */
    DESCRIPTORS_BESIDE = 128, /* of the root's process, beside a connection to each rank */
};

enum step { JOINING, LISTENING, LINKING, FORMED, FAILED };
static const char *const unanswered[] = {"did not come", "did not listen", "could not be linked"};

struct member {
    enum rondo_watched watched;
    struct rondo_frame_connection connection;
    int rank, local;              /* local: of this process */
    int is_network;               /* it came by TCP */
    enum step answered;           /* the last step that it has answered */
    int writing, broken;          /* writing: the socket is watched for room */
    struct rondo_address address; /* as other ranks reach it; 0 bytes: by its Unix socket */
};

struct root {
    struct rondo_root_options options;
    struct rondo_admission *admission;
    int epoll;
    int size, joined;
    enum step step;
    int answers;             /* ranks that have answered the present step */
    int broken;              /* a member is */
    int64_t deadline;        /* of the step */
    double waited;           /* seconds that the deadline stands for */
    struct member **by_rank; /* NULL: not joined, or gone */
    struct rondo_guest *own_guest;
    struct member *anchor; /* of the rank that started the root; without it the job cannot form */
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES];
};

/* Names the ranks that have not answered the step, in a text of at least 256 bytes. Returns its length. */
static int name_missing(const struct root *root, char *text, size_t bytes)
{
    int count = root->size - root->answers, named = 0;
    int at = snprintf(text, bytes, count == 1 ? "rank" : "ranks");
    for (int rank = 0; rank < root->size && named < NAMED_MOST; rank++)
        if (root->by_rank[rank] == NULL || root->by_rank[rank]->answered < root->step)
            at += snprintf(text + at, bytes - (size_t) at, "%s %d", named++ > 0 ? "," : "", rank);
    if (count > named)
        at += snprintf(text + at, bytes - (size_t) at, " and %d more", count - named);
    return at;
}

/* ---- sending ---- */

static void mark_broken(struct root *root, struct member *member)
{
    member->broken = root->broken = 1;
}

/* Sends what is queued. What the socket does not take is watched for. */
static void flush(struct root *root, struct member *member)
{
    int state = rondo_frame_connection_flush(&member->connection);
    struct epoll_event event = {.events = state > 0 ? EPOLLIN : EPOLLIN | EPOLLOUT, .data.ptr = member};
    if (state < 0) {
        mark_broken(root, member);
    } else if (member->writing == (state > 0)) {
        epoll_ctl(root->epoll, EPOLL_CTL_MOD, member->connection.fd, &event);
        member->writing = state == 0;
    }
}

static void tell(struct root *root, struct member *member, uint32_t type, const void *data, size_t bytes)
{
    if (rondo_frame_connection_put(&member->connection, type, 0, RONDO_CONTROL_ALL, data, bytes) != 0)
        mark_broken(root, member);
    else
        flush(root, member);
}

/* Ranks of this process come last: once told, the process may exit and take this thread with it. */
static void tell_all(struct root *root, uint32_t type, const void *data, size_t bytes)
{
    for (int local = 0; local < 2; local++)
        for (int rank = 0; rank < root->size; rank++)
            if (root->by_rank[rank] != NULL && root->by_rank[rank]->local == local)
                tell(root, root->by_rank[rank], type, data, bytes);
}

static void begin_step(struct root *root, enum step step)
{
    root->step = step;
    root->answers = 0;
}

static void fail(struct root *root, const char *reason)
{
    if (root->step == FAILED)
        return;
    begin_step(root, FAILED);
    root->deadline = rondo_clock_ms() + FLUSH_MS;
    rondo_log(RONDO_LOG_DEBUG, -1, "root: %s", reason);
    tell_all(root, RONDO_FRAME_FAILED, reason, strlen(reason));
}

/* ---- members ---- */

static void free_member(struct root *root, struct member *member)
{
    /* A child that was made without the handlers of fork may have the socket; closing it would then leave it in the set. */
    epoll_ctl(root->epoll, EPOLL_CTL_DEL, member->connection.fd, NULL);
    rondo_frame_connection_close(&member->connection);
    root->by_rank[member->rank] = NULL;
    if (member == root->anchor)
        root->anchor = NULL;
    free(member);
}

/* The member's connection has ended. Before all have joined, another may come for its rank. */
static void lose(struct root *root, struct member *member)
{
    char reason[64];
    const int rank = member->rank, was_anchor = member == root->anchor;
    rondo_log(RONDO_LOG_DEBUG, -1, "root: lost rank %d", rank);
    free_member(root, member);
    root->joined--;
    if (root->step == JOINING)
        root->answers--;
    snprintf(reason, sizeof(reason), "rank %d ended before the job had formed", rank);
    if (root->step < FORMED && (was_anchor || root->step > JOINING))
        fail(root, was_anchor ? "the rank that holds the root has given up" : reason);
}

/* Whether the member is to be told nothing more. The anchor says itself when it ends. */
static int is_done(const struct root *root, const struct member *member)
{
    return member->connection.queued == 0 && (root->step == FAILED || (root->step == FORMED && member != root->anchor));
}

/* Losing one may break others, which failing has told. */
static void settle(struct root *root)
{
    while (root->broken) {
        root->broken = 0;
        for (int rank = 0; rank < root->size; rank++)
            if (root->by_rank[rank] != NULL && root->by_rank[rank]->broken)
                lose(root, root->by_rank[rank]);
    }
    for (int rank = 0; root->step >= FORMED && rank < root->size; rank++)
        if (root->by_rank[rank] != NULL && is_done(root, root->by_rank[rank]))
            free_member(root, root->by_rank[rank]);
}

/* ---- the steps ---- */

/* Stores where the member is, as the root sees it: at the address that it came from. A member of the root's own host, which
 * others cannot reach by a Unix socket or by loopback, has the address at which the root was found; outside: that, or NULL. */
static rondo_result_t place(struct member *member, const struct rondo_address *outside)
{
    struct rondo_address *address = &member->address;
    address->bytes = sizeof(address->storage);
    if (!member->is_network) {
        *address = outside != NULL ? *outside : (struct rondo_address){.bytes = 0};
    } else if (getpeername(member->connection.fd, (struct sockaddr *) &address->storage, &address->bytes) != 0) {
        address->bytes = 0;
        return rondo_fail(RONDO_ERR_SYSTEM, "getpeername: %s", strerror(errno));
    } else if (outside != NULL && rondo_address_is_loopback(address)) {
        *address = *outside;
    }
    return RONDO_SUCCESS;
}

/* Stores the root's address as ranks of other hosts see it, or one of loopback if all ranks are here. Returns whether there is
 * one: whether a rank has come by TCP. */
static int find_outside(const struct root *root, struct rondo_address *outside)
{
    int found = 0;
    for (int rank = 0; rank < root->size; rank++) {
        struct rondo_address own = {.bytes = sizeof(own.storage)};
        const struct member *member = root->by_rank[rank];
        if (!member->is_network || (found && !rondo_address_is_loopback(outside)) ||
            getsockname(member->connection.fd, (struct sockaddr *) &own.storage, &own.bytes) != 0)
            continue;
        *outside = own;
        found = 1;
    }
    return found;
}

/* All have joined: tells them the nonce, from which the key of their links follows, and the address at which to listen. */
static void begin_listening(struct root *root)
{
    unsigned char data[RONDO_ROOT_JOB];
    struct rondo_address outside;
    begin_step(root, LISTENING);
    root->waited = root->waited * 1000 > STEP_MS ? root->waited : STEP_MS / 1000;
    root->deadline = rondo_clock_ms() + (int64_t) (root->waited * 1000);
    if (rondo_random_bytes(data, RONDO_JOB_NONCE) != RONDO_SUCCESS) {
        fail(root, rondo_last_error());
        return;
    }
    const int is_network = find_outside(root, &outside);
    for (int local = 0; local < 2; local++)
        for (int rank = 0; rank < root->size; rank++) {
            struct member *member = root->by_rank[rank];
            if (member->local != local)
                continue;
            if (place(member, is_network ? &outside : NULL) != RONDO_SUCCESS)
                mark_broken(root, member);
            struct rondo_address at = member->address;
            if (at.bytes > 0 && !rondo_address_is_loopback(&at))
                at = rondo_address_any(&at);
            rondo_address_set_port(&at, 0);
            rondo_address_store(&at, data + RONDO_JOB_NONCE);
            tell(root, member, RONDO_FRAME_JOB, data, sizeof(data));
        }
}

/* All listen: tells each rank its place, and then that of the rank 2^k after it, for each k. Without a network there is nothing
 * to tell: names of Unix sockets follow from the key. */
static void begin_linking(struct root *root)
{
    enum { STEPS_MOST = 31 };
    unsigned char data[(1 + STEPS_MOST) * RONDO_ADDRESS_STORED];
    const int is_network = root->by_rank[0]->address.bytes > 0;
    begin_step(root, LINKING);
    for (int rank = 0; rank < root->size; rank++) {
        size_t bytes = 0;
        for (int step = 0; step < root->size && is_network; step = step == 0 ? 1 : 2 * step, bytes += RONDO_ADDRESS_STORED)
            rondo_address_store(&root->by_rank[(rank + step) % root->size]->address, data + bytes);
        tell(root, root->by_rank[rank], RONDO_FRAME_PLACES, data, bytes);
    }
}

static void answer(struct root *root, struct member *member)
{
    member->answered = root->step;
    if (++root->answers < root->size)
        return;
    if (root->step == JOINING) {
        begin_listening(root);
    } else if (root->step == LISTENING) {
        begin_linking(root);
    } else {
        begin_step(root, FORMED);
        root->deadline = rondo_clock_ms() + FLUSH_MS;
        tell_all(root, RONDO_FRAME_READY, NULL, 0);
    }
}

/* Returns 0, or -1 if the frame is one that no rank sends here. */
static int take(struct root *root, struct member *member, const struct rondo_frame *frame)
{
    if (frame->source != member->rank || root->step >= FORMED)
        return root->step >= FORMED ? 0 : -1;
    if (frame->type == RONDO_FRAME_LISTENING && root->step == LISTENING && member->answered < LISTENING && frame->bytes == 4) {
        rondo_address_set_port(&member->address, (uint16_t) rondo_frame_load32(frame->data));
        answer(root, member);
    } else if (frame->type == RONDO_FRAME_LINKED && root->step == LINKING && member->answered < LINKING) {
        answer(root, member);
    } else if (frame->type == RONDO_FRAME_FAILED) {
        char reason[512];
        snprintf(reason, sizeof(reason), "%.*s", (int) (frame->bytes < 500 ? frame->bytes : 500), (const char *) frame->data);
        fail(root, reason);
    } else {
        return -1;
    }
    return 0;
}

static void read_member(struct root *root, struct member *member)
{
    struct rondo_frame frame;
    int state = rondo_frame_connection_fill(&member->connection);
    while (state > 0 && !member->broken && (state = rondo_frame_connection_next(&member->connection, &frame)) > 0)
        state = take(root, member, &frame) == 0 ? 1 : -1;
    if (state < 0)
        mark_broken(root, member);
}

/* ---- admitting ---- */

/* Makes room for a connection to each rank: raises the process's limit of descriptors where it is too low and may be raised. */
static rondo_result_t allow_connections(int size)
{
    const rlim_t needed = (rlim_t) size + DESCRIPTORS_BESIDE;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return RONDO_SUCCESS;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t) size)
        return RONDO_SUCCESS;
    return rondo_fail(
        RONDO_ERR_SYSTEM,
        "a job of %d ranks takes as many descriptors in the process of its root, which may have %llu (ulimit -Hn)", size,
        (unsigned long long) limit.rlim_cur);
}

static rondo_result_t set_size(struct root *root, int size)
{
    rondo_result_t result = allow_connections(size);
    if (result != RONDO_SUCCESS)
        return result;
    root->by_rank = calloc((size_t) size, sizeof(*root->by_rank));
    if (root->by_rank == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a job of %d ranks", size);
    root->size = size;
    return RONDO_SUCCESS;
}

/* Decides on a rank that has proven the secret; *detail is what the verdict carries. */
static enum rondo_handshake_verdict decide(struct root *root, const struct rondo_handshake_claim *claim, int *detail)
{
    if (root->step == FAILED)
        return RONDO_HANDSHAKE_OVER;
    if (root->size == 0 && set_size(root, claim->size) != RONDO_SUCCESS) {
        rondo_log(RONDO_LOG_ERROR, claim->rank, "the root cannot let this rank in: %s", rondo_last_error());
        return RONDO_HANDSHAKE_OVER;
    }
    *detail = root->size;
    if (claim->size != root->size)
        return RONDO_HANDSHAKE_SIZE;
    if (root->step == FORMED)
        return RONDO_HANDSHAKE_OVER;
    if (root->by_rank[claim->rank] != NULL)
        return RONDO_HANDSHAKE_TAKEN;
    *detail = memcmp(claim->process, root->process, sizeof(root->process)) == 0;
    return RONDO_HANDSHAKE_WELCOME;
}

static void admit(struct root *root, struct rondo_guest *guest, const struct rondo_handshake_claim *claim)
{
    int local = 0, is_own = guest == root->own_guest;
    const enum rondo_handshake_verdict verdict = decide(root, claim, &local);
    struct member *member = calloc(1, sizeof(*member));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    struct member prepared = {
        .watched = RONDO_WATCHED_CONNECTION, .rank = claim->rank, .local = local, .is_network = guest->is_network};
    if (is_own)
        root->own_guest = NULL;
    /* Without memory the peer is told that the root is ending, and tries again. */
    int open = rondo_admission_answer(root->admission, guest, member != NULL ? verdict : RONDO_HANDSHAKE_OVER, local,
                                      &prepared.connection);
    if (open && epoll_ctl(root->epoll, EPOLL_CTL_ADD, prepared.connection.fd, &event) != 0) {
        rondo_frame_connection_close(&prepared.connection);
        open = 0;
    }
    if (!open) {
        free(member);
        if (is_own)
            fail(root, "the rank that holds the root has given up");
        return;
    }
    *member = prepared;
    root->by_rank[claim->rank] = member;
    if (is_own)
        root->anchor = member;
    int64_t until = rondo_clock_ms() + claim->wait_ms;
    if (root->joined++ == 0 || until < root->deadline) {
        root->deadline = until;
        root->waited = (double) claim->wait_ms / 1000;
    }
    rondo_log(RONDO_LOG_DEBUG, -1, "root: rank %d of %d has joined", claim->rank, claim->size);
    answer(root, member);
}

/* ---- the thread ---- */

static void fail_step(struct root *root)
{
    char reason[512] = "no rank came";
    if (root->joined > 0) {
        int at = name_missing(root, reason, sizeof(reason));
        snprintf(reason + at, sizeof(reason) - (size_t) at, " of %d %s within %.*f s", root->size, unanswered[root->step],
                 root->waited < 10, root->waited);
    }
    fail(root, reason);
}

/* Does what is due by the clock. Returns the milliseconds until something is due again; -1: never. */
static int expire(struct root *root)
{
    const int64_t now = rondo_clock_ms();
    int64_t next = rondo_admission_expire(root->admission, now);
    if (root->deadline <= now && root->step < FORMED)
        fail_step(root);
    else if (root->deadline <= now)
        for (int rank = 0; rank < root->size; rank++)
            if (root->by_rank[rank] != NULL && (root->step == FAILED || root->by_rank[rank] != root->anchor))
                free_member(root, root->by_rank[rank]);
    settle(root);
    if (root->deadline > now && root->deadline < next)
        next = root->deadline;
    return next == INT64_MAX ? -1 : next - now > 1000000 ? 1000000 : (int) (next - now);
}

static int is_over(const struct root *root)
{
    for (int rank = 0; root->step >= FORMED && rank < root->size; rank++)
        if (root->by_rank[rank] != NULL)
            return 0;
    return root->step >= FORMED;
}

static void serve(struct root *root, const struct epoll_event *event)
{
    enum rondo_watched *watched = event->data.ptr;
    struct rondo_handshake_claim claim;
    if (*watched == RONDO_WATCHED_CONNECTION) {
        struct member *member = (struct member *) watched;
        if ((event->events & EPOLLOUT) != 0)
            flush(root, member);
        if ((event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            read_member(root, member);
        return;
    }
    struct rondo_guest *guest = rondo_admission_serve(root->admission, watched, &claim);
    if (guest != NULL)
        admit(root, guest, &claim);
}

static void destroy(struct root *root)
{
    for (int rank = 0; rank < root->size; rank++)
        if (root->by_rank[rank] != NULL)
            free_member(root, root->by_rank[rank]);
    rondo_admission_close(root->admission);
    if (root->epoll >= 0)
        close(root->epoll);
    free(root->by_rank);
    free(root);
}

static void *run(void *argument)
{
    struct root *root = argument;
    for (int wait = expire(root); !is_over(root); wait = expire(root)) {
        struct epoll_event event;
        if (epoll_wait(root->epoll, &event, 1, wait) > 0)
            serve(root, &event);
    }
    destroy(root);
    return NULL;
}

static rondo_result_t prepare(struct root *root)
{
    root->epoll = epoll_create1(EPOLL_CLOEXEC);
    rondo_result_t result = root->epoll < 0 ? rondo_fail(RONDO_ERR_SYSTEM, "epoll_create1: %s", strerror(errno))
                                            : rondo_admission_open(root->admission, root->epoll);
    if (result == RONDO_SUCCESS && root->options.size > 0)
        result = set_size(root, root->options.size);
    if (result == RONDO_SUCCESS)
        result = rondo_process_token(root->process);
    if (result != RONDO_SUCCESS || root->options.local < 0)
        return result;
    root->own_guest = rondo_admission_invite(root->admission, root->options.local);
    root->options.local = -1; /* closed, or the guest's */
    return root->own_guest != NULL ? RONDO_SUCCESS
                                   : rondo_fail(RONDO_ERR_SYSTEM, "the root cannot reach its own rank: %s", strerror(errno));
}

rondo_result_t rondo_root_start(const struct rondo_root_options *options)
{
    struct root *root = calloc(1, sizeof(*root));
    struct rondo_admission orphaned = options->admission;
    if (root == NULL) {
        rondo_admission_close(&orphaned);
        if (options->local >= 0)
            rondo_process_socket_close(options->local);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the root");
    }
    explicit_bzero(&orphaned, sizeof(orphaned));
    root->options = *options;
    root->admission = &root->options.admission;
    root->waited = options->timeout;
    root->deadline = rondo_clock_ms() + (int64_t) (options->timeout * 1000);
    rondo_result_t result = prepare(root);
    if (result == RONDO_SUCCESS)
        result = rondo_thread_start(NULL, "rondo-root", STACK_BYTES, run, root);
    if (result != RONDO_SUCCESS) {
        if (root->options.local >= 0)
            rondo_process_socket_close(root->options.local);
        destroy(root);
    }
    return result;
}
