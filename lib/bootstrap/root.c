/*
 * See lib/bootstrap/root.h. A job forms in steps, each of which begins when all ranks have answered the one before:
 *
 *   JOINING     a rank has proven the secret
 *   LISTENING   the root tells the job's nonce and where to listen (RONDO_FRAME_JOB); the rank answers with its port
 *   LINKING     the root tells each rank its place and its neighbours' (RONDO_FRAME_PLACES); the rank answers when it is linked
 *               and knows all places
 *   FORMED      the root says so (RONDO_FRAME_READY)
 *
 * A job may have several roots, each for a contiguous share of its ranks. The others are members of the first one, and answer a
 * step there once all ranks of their shares have: with RONDO_FRAME_SHARE, with the places of their ranks (RONDO_FRAME_PLACES),
 * and with RONDO_FRAME_LINKED. The first root then begins the next step with all of them, and they with their ranks: its
 * RONDO_FRAME_JOB has the nonce and the first root's address, its RONDO_FRAME_PLACES those of all ranks, in order. What fails
 * on one root is told to the first one, and by that to all.
 *
 * One event is fetched at a time, so none is about a member that has been freed.
 */
#include "lib/bootstrap/root.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/address.h"
#include "lib/bootstrap/first_root.h"
#include "lib/bootstrap/job.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STACK_BYTES = 256 << 10,
    STEP_MS = 10000,          /* at least, for all steps after the first */
    FLUSH_MS = 3000,          /* for a rank to take the last that it is told */
    NAMED_MOST = 16,          /* ranks in a text */
    DESCRIPTORS_BESIDE = 128, /* of the root's process, beside a connection to each rank */
    OTHERS_MS = 1000,         /* past the deadline, for another root, whose own deadline it is, to say what is missing */
};

enum step { ADMITTED, JOINING, LISTENING, LINKING, FORMED, FAILED };
static const char *const unanswered[] = {"", "did not come", "did not listen", "could not be linked"};

struct member {
    enum rondo_watched watched;
    struct rondo_frame_connection connection;
    int rank, local;              /* local: of this process. rank of a root: the first of its share */
    int is_root;                  /* another root */
    int places;                   /* of a root: of how many ranks of its share it has told the places */
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
    int roots, share; /* of the job; this root's */
    int first, count; /* the ranks of the share */
    enum step step;
    int answers;             /* ranks that have answered the present step */
    int broken;              /* a member is */
    int64_t deadline;        /* of the step */
    double waited;           /* seconds that the deadline stands for */
    int most;                /* members that there may be: the ranks of the share, and at the first root the other roots */
    struct member **members; /* in that order; NULL: not joined, or gone */
    unsigned char *places;   /* of all ranks; NULL: not known yet */
    int places_known;        /* at a root after the first: so many have come from the first */
    int is_network;          /* ranks listen on TCP */
    int is_reported;         /* at a root after the first: the first one has been told that the present step was answered */
    struct member *upstream; /* the first root; NULL: this is the first, or it is not connected to it */
    struct rondo_first_root *reaching; /* the connection to it that is being made, or will be */
    int reached;                       /* eventfd: reaching is done; -1: none */
    enum rondo_watched reached_watched;
    int is_late; /* the deadline has been put off for another root */
    struct rondo_guest *own_guest;
    struct member *anchor; /* of the rank that started the root; without it the job cannot form */
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES];
};

static int is_first(const struct root *root)
{
    return root->share == 0;
}

/* The place of a rank of this share, or of another root, among the members. */
static int place_of(const struct root *root, int rank, int is_root)
{
    return is_root ? root->count + rondo_job_share(rank, root->size, root->roots) - 1 : rank - root->first;
}

static int has_answered(const struct root *root, int place)
{
    return root->members[place] != NULL && root->members[place]->answered >= root->step;
}

/* Names the ranks that have not answered the step, in a text of at least 256 bytes: those of another root by their share.
 * Returns its length. */
static int name_missing(const struct root *root, char *text, size_t bytes)
{
    int count = 0, named = 0;
    for (int place = 0; place < root->most; place++)
        if (!has_answered(root, place))
            count += place < root->count ? 1 : 2;
    int at = snprintf(text, bytes, count == 1 ? "rank" : "ranks");
    for (int place = 0; place < root->most && named < NAMED_MOST; place++) {
        if (has_answered(root, place))
            continue;
        if (place < root->count)
            at += snprintf(text + at, bytes - (size_t) at, "%s %d", named > 0 ? "," : "", root->first + place);
        else
            at += snprintf(text + at, bytes - (size_t) at, "%s %d to %d (or their root)", named > 0 ? "," : "",
                           rondo_job_first_rank(place - root->count + 1, root->size, root->roots),
                           rondo_job_first_rank(place - root->count + 2, root->size, root->roots) - 1);
        named += place < root->count ? 1 : 2;
    }
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
    if (rondo_frame_connection_put(&member->connection, type, root->first, RONDO_CONTROL_ALL, data, bytes) != 0)
        mark_broken(root, member);
    else
        flush(root, member);
}

/* Ranks of this process come last: once told, the process may exit and take this thread with it. */
static void tell_all(struct root *root, uint32_t type, const void *data, size_t bytes)
{
    for (int local = 0; local < 2; local++)
        for (int place = 0; place < root->most; place++)
            if (root->members[place] != NULL && root->members[place]->local == local)
                tell(root, root->members[place], type, data, bytes);
}

static void begin_step(struct root *root, enum step step)
{
    root->step = step;
    root->answers = 0;
    root->is_reported = root->is_late = 0;
}

static void fail(struct root *root, const char *reason)
{
    if (root->step == FAILED)
        return;
    begin_step(root, FAILED);
    root->deadline = rondo_clock_ms() + FLUSH_MS;
    rondo_log(RONDO_LOG_DEBUG, -1, "root: %s", reason);
    if (root->upstream != NULL)
        tell(root, root->upstream, RONDO_FRAME_FAILED, reason, strlen(reason));
    tell_all(root, RONDO_FRAME_FAILED, reason, strlen(reason));
}

/* ---- members ---- */

static void free_member(struct root *root, struct member *member)
{
    /* A child that was made without the handlers of fork may have the socket; closing it would then leave it in the set. */
    epoll_ctl(root->epoll, EPOLL_CTL_DEL, member->connection.fd, NULL);
    rondo_frame_connection_close(&member->connection);
    if (member == root->upstream)
        root->upstream = NULL;
    else
        root->members[place_of(root, member->rank, member->is_root)] = NULL;
    if (member == root->anchor)
        root->anchor = NULL;
    free(member);
}

/* The member's connection has ended. Before all have joined, another may come for its rank. */
static void lose(struct root *root, struct member *member)
{
    char reason[120];
    const int rank = member->rank, was_anchor = member == root->anchor, was_upstream = member == root->upstream;
    const int was_root = member->is_root;
    if (was_upstream || member->is_root) {
        const int share = was_upstream ? 0 : rondo_job_share(rank, root->size, root->roots);
        snprintf(reason, sizeof(reason), "the root of ranks %d to %d ended before the job had formed", rank,
                 rondo_job_first_rank(share + 1, root->size, root->roots) - 1);
    } else {
        snprintf(reason, sizeof(reason), "rank %d ended before the job had formed", rank);
    }
    rondo_log(RONDO_LOG_DEBUG, -1, "root: lost %s %d", member->is_root || was_upstream ? "the root of rank" : "rank", rank);
    if (root->step == JOINING && member->answered == JOINING && !was_upstream)
        root->answers--;
    free_member(root, member);
    root->joined -= !was_upstream;
    if (root->step < FORMED && (was_anchor || was_root || root->step > JOINING || root->is_reported))
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
        if (root->upstream != NULL && root->upstream->broken)
            lose(root, root->upstream);
        for (int place = 0; place < root->most; place++)
            if (root->members[place] != NULL && root->members[place]->broken)
                lose(root, root->members[place]);
    }
    if (root->step >= FORMED && root->upstream != NULL && root->upstream->connection.queued == 0)
        free_member(root, root->upstream);
    for (int place = 0; root->step >= FORMED && place < root->most; place++)
        if (root->members[place] != NULL && is_done(root, root->members[place]))
            free_member(root, root->members[place]);
}

/* ---- the steps ---- */

/* Stores where the member is, as the root sees it: at the address that it came from. A member of the root's own host, which
 * others cannot reach by a Unix socket or by loopback, has the address at which the root was found; outside: that, or NULL. */
static rondo_result_t place_member(struct member *member, const struct rondo_address *outside)
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

/* Stores this end's address of a connection by TCP, unless what is stored is better: not one of loopback. Returns whether what
 * is stored has become, or was, an address. */
static int see_from_outside(const struct member *member, struct rondo_address *outside)
{
    struct rondo_address own = {.bytes = sizeof(own.storage)};
    if (member->is_network && (outside->bytes == 0 || rondo_address_is_loopback(outside)) &&
        getsockname(member->connection.fd, (struct sockaddr *) &own.storage, &own.bytes) == 0)
        *outside = own;
    return outside->bytes > 0;
}

/* Stores the root's address as ranks of other hosts see it, or one of loopback if all ranks are here. Returns whether there is
 * one: whether a member has come by TCP, or the first root was reached by it. */
static int find_outside(const struct root *root, struct rondo_address *outside)
{
    *outside = (struct rondo_address){.bytes = 0};
    for (int place = 0; place < root->most; place++)
        if (root->members[place] != NULL)
            see_from_outside(root->members[place], outside);
    return root->upstream != NULL ? see_from_outside(root->upstream, outside) : outside->bytes > 0;
}

/* All have joined: tells them the nonce, from which the key of their links follows, and the address at which to listen. The
 * other roots are told this root's address as others see it. at: that of the first root, 0 bytes: no network. */
static void begin_listening(struct root *root, unsigned char data[RONDO_ROOT_JOB], const struct rondo_address *at_first)
{
    struct rondo_address outside;
    begin_step(root, LISTENING);
    root->waited = root->waited * 1000 > STEP_MS ? root->waited : STEP_MS / 1000;
    root->deadline = rondo_clock_ms() + (int64_t) (root->waited * 1000);
    if (!find_outside(root, &outside))
        outside = *at_first;
    root->is_network = at_first->bytes > 0;
    for (int local = 0; local < 2; local++)
        for (int place = 0; place < root->most; place++) {
            struct member *member = root->members[place];
            if (member->local != local)
                continue;
            struct rondo_address at = *at_first;
            if (!member->is_root) {
                if (place_member(member, root->is_network ? &outside : NULL) != RONDO_SUCCESS)
                    mark_broken(root, member);
                at = member->address;
                if (at.bytes > 0 && !rondo_address_is_loopback(&at))
                    at = rondo_address_any(&at);
                rondo_address_set_port(&at, 0);
            }
            rondo_address_store(&at, data + RONDO_JOB_NONCE);
            tell(root, member, RONDO_FRAME_JOB, data, RONDO_ROOT_JOB);
        }
}

/* At the first root. */
static void begin_job(struct root *root)
{
    unsigned char data[RONDO_ROOT_JOB];
    struct rondo_address outside;
    if (rondo_random_bytes(data, RONDO_JOB_NONCE) != RONDO_SUCCESS) {
        fail(root, rondo_last_error());
        return;
    }
    if (!find_outside(root, &outside) && root->is_network) /* another root's ranks alone have come by TCP */
        rondo_address_of_host(&outside);
    begin_listening(root, data, &outside);
}

static unsigned char *stored_place(const struct root *root, int rank)
{
    return root->places + (size_t) rank * RONDO_ADDRESS_STORED;
}

/* Stores the places of this root's ranks. Returns 0, or -1 without memory. */
static int store_places(struct root *root)
{
    if (root->places == NULL && (root->places = calloc((size_t) root->size, RONDO_ADDRESS_STORED)) == NULL)
        return -1;
    for (int place = 0; place < root->count; place++)
        rondo_address_store(&root->members[place]->address, stored_place(root, root->first + place));
    return 0;
}

/* Tells another root so many places. */
static void tell_places(struct root *root, struct member *to, int first, int count)
{
    for (int at = 0; at < count; at += RONDO_ROOT_PLACES)
        tell(root, to, RONDO_FRAME_PLACES, stored_place(root, first + at),
             (size_t) (count - at < RONDO_ROOT_PLACES ? count - at : RONDO_ROOT_PLACES) * RONDO_ADDRESS_STORED);
}

/* All listen: tells each rank its place, and then that of the rank 2^k after it, for each k, and other roots all places.
 * Without a network there is nothing to tell ranks: names of Unix sockets follow from the key. */
static void begin_linking(struct root *root)
{
    enum { STEPS_MOST = 31 };
    unsigned char data[(1 + STEPS_MOST) * RONDO_ADDRESS_STORED];
    begin_step(root, LINKING);
    for (int place = root->count; place < root->most; place++)
        tell_places(root, root->members[place], 0, root->size);
    for (int place = 0; place < root->count; place++) {
        size_t bytes = 0;
        for (int step = 0; step < root->size && root->is_network;
             step = step == 0 ? 1 : 2 * step, bytes += RONDO_ADDRESS_STORED)
            memcpy(data + bytes, stored_place(root, (root->first + place + step) % root->size), RONDO_ADDRESS_STORED);
        tell(root, root->members[place], RONDO_FRAME_PLACES, data, bytes);
    }
}

static void end_forming(struct root *root)
{
    begin_step(root, FORMED);
    root->deadline = rondo_clock_ms() + FLUSH_MS;
    tell_all(root, RONDO_FRAME_READY, NULL, 0);
}

/* All members have answered the step: the first root begins the next one, another tells the first, once it is connected. */
static void advance(struct root *root)
{
    if (root->answers < root->most || root->step >= FORMED || root->is_reported)
        return;
    if (root->step == LISTENING && store_places(root) != 0) {
        fail(root, "the root has no memory for the places of the ranks");
    } else if (is_first(root)) {
        if (root->step == JOINING)
            begin_job(root);
        else if (root->step == LISTENING)
            begin_linking(root);
        else
            end_forming(root);
    } else if (root->upstream != NULL) {
        struct rondo_address unused;
        unsigned char word[4];
        root->is_reported = 1;
        rondo_frame_store32(word, (uint32_t) find_outside(root, &unused));
        if (root->step == JOINING)
            tell(root, root->upstream, RONDO_FRAME_SHARE, word, sizeof(word));
        else if (root->step == LISTENING)
            tell_places(root, root->upstream, root->first, root->count);
        else
            tell(root, root->upstream, RONDO_FRAME_LINKED, NULL, 0);
    }
}

static void answer(struct root *root, struct member *member)
{
    member->answered = root->step;
    root->answers++;
    advance(root);
}

/* ---- what members say ---- */

static void take_failure(struct root *root, const struct rondo_frame *frame)
{
    char reason[512];
    snprintf(reason, sizeof(reason), "%.*s", (int) (frame->bytes < 500 ? frame->bytes : 500), (const char *) frame->data);
    fail(root, reason);
}

/* Begins to connect to the first root, by the deadline. */
static void reach_first_root(struct root *root)
{
    if (rondo_first_root_start(root->reaching, (double) (root->deadline - rondo_clock_ms()) / 1000, root->reached) !=
        RONDO_SUCCESS)
        fail(root, rondo_last_error());
}

/* A rank tells where the first root is: the root begins to connect to it, once. Returns 0, or -1 if no rank tells that here. */
static int take_first_root(struct root *root, const struct rondo_frame *frame)
{
    rondo_unique_id_t id;
    if (is_first(root) || frame->bytes != RONDO_FIRST_ROOT_DATA)
        return -1;
    if (root->reaching != NULL || root->upstream != NULL || root->step != JOINING)
        return 0;
    rondo_first_root_unmask(&root->admission->secret, frame->data, &id);
    const struct rondo_job_options options = {
        .rank = root->first, .size = root->size, .roots = root->roots, .unique_id = &id, .encrypts = root->admission->encrypts};
    if (rondo_first_root_prepare(&root->reaching, &options) != RONDO_SUCCESS)
        fail(root, rondo_last_error());
    else
        reach_first_root(root);
    explicit_bzero(&id, sizeof(id));
    return 0;
}

/* The thread that connects to the first root is done. */
static void take_upstream(struct root *root)
{
    uint64_t count;
    struct rondo_frame_connection connection;
    ssize_t got = read(root->reached, &count, sizeof(count));
    (void) got;
    if (root->reaching == NULL)
        return;
    const rondo_result_t result = rondo_first_root_end(root->reaching, &connection);
    root->reaching = NULL;
    struct member *member = result == RONDO_SUCCESS ? calloc(1, sizeof(*member)) : NULL;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    if (result != RONDO_SUCCESS || member == NULL || root->step != JOINING ||
        epoll_ctl(root->epoll, EPOLL_CTL_ADD, connection.fd, &event) != 0) {
        if (result == RONDO_SUCCESS)
            rondo_frame_connection_close(&connection);
        free(member);
        fail(root, result != RONDO_SUCCESS ? rondo_last_error() : "the connection to the first root was lost");
        return;
    }
    *member = (struct member){.watched = RONDO_WATCHED_CONNECTION, .is_root = 1, .connection = connection};
    struct sockaddr_storage peer = {0};
    socklen_t bytes = sizeof(peer);
    member->is_network = getpeername(connection.fd, (struct sockaddr *) &peer, &bytes) == 0 && peer.ss_family != AF_UNIX;
    root->upstream = member;
    advance(root);
}

/* What the first root says to another. Returns 0, or -1 if it says no such thing. */
static int take_from_first(struct root *root, const struct rondo_frame *frame)
{
    if (root->step >= FORMED)
        return 0;
    if (frame->type == RONDO_FRAME_JOB && root->step == JOINING && root->is_reported && frame->bytes == RONDO_ROOT_JOB) {
        unsigned char data[RONDO_ROOT_JOB];
        struct rondo_address first;
        memcpy(data, frame->data, sizeof(data));
        rondo_address_load(&first, data + RONDO_JOB_NONCE);
        begin_listening(root, data, &first);
    } else if (frame->type == RONDO_FRAME_PLACES && root->step == LISTENING && root->is_reported &&
               frame->bytes % RONDO_ADDRESS_STORED == 0 &&
               frame->bytes / RONDO_ADDRESS_STORED <= (uint32_t) (root->size - root->places_known)) {
        memcpy(stored_place(root, root->places_known), frame->data, frame->bytes);
        root->places_known += (int) (frame->bytes / RONDO_ADDRESS_STORED);
        if (root->places_known == root->size)
            begin_linking(root);
    } else if (frame->type == RONDO_FRAME_READY && root->step == LINKING && root->is_reported) {
        end_forming(root);
    } else if (frame->type == RONDO_FRAME_FAILED) {
        take_failure(root, frame);
    } else {
        return -1;
    }
    return 0;
}

/* What another root says to the first. Returns 0, or -1 if it says no such thing. */
static int take_from_root(struct root *root, struct member *member, const struct rondo_frame *frame)
{
    const int share = rondo_job_share(member->rank, root->size, root->roots);
    const int count = rondo_job_first_rank(share + 1, root->size, root->roots) - member->rank;
    if (frame->type == RONDO_FRAME_SHARE && root->step == JOINING && member->answered < JOINING && frame->bytes == 4) {
        root->is_network |= rondo_frame_load32(frame->data) != 0;
        answer(root, member);
    } else if (frame->type == RONDO_FRAME_PLACES && root->step == LISTENING && member->answered < LISTENING &&
               frame->bytes % RONDO_ADDRESS_STORED == 0 &&
               frame->bytes / RONDO_ADDRESS_STORED <= (uint32_t) (count - member->places)) {
        if (root->places == NULL && (root->places = calloc((size_t) root->size, RONDO_ADDRESS_STORED)) == NULL) {
            fail(root, "the root has no memory for the places of the ranks");
            return 0;
        }
        memcpy(stored_place(root, member->rank + member->places), frame->data, frame->bytes);
        member->places += (int) (frame->bytes / RONDO_ADDRESS_STORED);
        if (member->places == count)
            answer(root, member);
    } else if (frame->type == RONDO_FRAME_LINKED && root->step == LINKING && member->answered < LINKING) {
        answer(root, member);
    } else if (frame->type == RONDO_FRAME_FAILED) {
        take_failure(root, frame);
    } else {
        return -1;
    }
    return 0;
}

/* Returns 0, or -1 if the frame is one that no member sends here. */
static int take(struct root *root, struct member *member, const struct rondo_frame *frame)
{
    if (member == root->upstream)
        return take_from_first(root, frame);
    if (frame->source != member->rank || root->step >= FORMED)
        return root->step >= FORMED ? 0 : -1;
    if (member->is_root)
        return take_from_root(root, member, frame);
    if (frame->type == RONDO_FRAME_LISTENING && root->step == LISTENING && member->answered < LISTENING && frame->bytes == 4) {
        rondo_address_set_port(&member->address, (uint16_t) rondo_frame_load32(frame->data));
        answer(root, member);
    } else if (frame->type == RONDO_FRAME_LINKED && root->step == LINKING && member->answered < LINKING) {
        answer(root, member);
    } else if (frame->type == RONDO_FRAME_FIRST_ROOT) {
        return take_first_root(root, frame);
    } else if (frame->type == RONDO_FRAME_FAILED) {
        take_failure(root, frame);
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

/* share: that of this root. */
static rondo_result_t set_size(struct root *root, int size, int roots, int share)
{
    const int first = rondo_job_first_rank(share, size, roots), count = rondo_job_first_rank(share + 1, size, roots) - first;
    const int most = count + (share == 0 ? roots - 1 : 0);
    rondo_result_t result = allow_connections(most);
    if (result != RONDO_SUCCESS)
        return result;
    root->members = calloc((size_t) most, sizeof(*root->members));
    if (root->members == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a job of %d ranks", size);
    root->most = most;
    root->size = size;
    root->roots = roots;
    root->share = share;
    root->first = first;
    root->count = count;
    return RONDO_SUCCESS;
}

/* Decides on a rank that has proven the secret; *detail is what the verdict carries. */
static enum rondo_handshake_verdict decide(struct root *root, const struct rondo_handshake_claim *claim, int *detail)
{
    if (root->step == FAILED)
        return RONDO_HANDSHAKE_OVER;
    const int share = claim->is_root ? 0 : rondo_job_share(claim->rank, claim->size, claim->roots);
    if (root->size == 0 && set_size(root, claim->size, claim->roots, share) != RONDO_SUCCESS) {
        rondo_log(RONDO_LOG_ERROR, claim->rank, "the root cannot let this rank in: %s", rondo_last_error());
        return RONDO_HANDSHAKE_OVER;
    }
    *detail = root->size;
    if (claim->size != root->size)
        return RONDO_HANDSHAKE_SIZE;
    *detail = root->roots;
    if (claim->roots != root->roots || share != root->share)
        return RONDO_HANDSHAKE_ROOTS;
    if (root->step == FORMED)
        return RONDO_HANDSHAKE_OVER;
    if (root->members[place_of(root, claim->rank, claim->is_root)] != NULL)
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
    struct member prepared = {.watched = RONDO_WATCHED_CONNECTION,
                              .rank = claim->rank,
                              .is_root = claim->is_root,
                              .local = local,
                              .is_network = guest->is_network};
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
    root->members[place_of(root, claim->rank, claim->is_root)] = member;
    if (is_own)
        root->anchor = member;
    int64_t until = rondo_clock_ms() + claim->wait_ms;
    if (root->joined++ == 0 || until < root->deadline) {
        root->deadline = until;
        root->waited = (double) claim->wait_ms / 1000;
    }
    rondo_log(RONDO_LOG_DEBUG, -1, "root: %srank %d of %d has joined", claim->is_root ? "the root of " : "", claim->rank,
              claim->size);
    if (is_own && root->reaching != NULL)
        reach_first_root(root);
    if (!claim->is_root) /* a root answers once its ranks have joined */
        answer(root, member);
}

/* ---- the thread ---- */

/* The deadline of a step has passed. What another root has not done, that root knows better, and says so at its own deadline,
 * which may be a little later. */
static void fail_step(struct root *root)
{
    char reason[512] = "no rank came";
    int own = 0;
    for (int place = 0; place < root->count; place++)
        own += has_answered(root, place);
    if (root->joined > 0 && own == root->count && !root->is_late) {
        root->is_late = 1;
        root->deadline += (is_first(root) ? 1 : 2) * OTHERS_MS;
        return;
    }
    if (root->joined > 0 && root->answers == root->most) {
        snprintf(reason, sizeof(reason), "the first root did not %s within %.*f s",
                 root->upstream != NULL ? "answer" : "let this one in", root->waited < 10, root->waited);
    } else if (root->joined > 0) {
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
    else if (root->deadline <= now && root->upstream != NULL)
        free_member(root, root->upstream);
    if (root->deadline <= now && root->step >= FORMED)
        for (int place = 0; place < root->most; place++)
            if (root->members[place] != NULL && (root->step == FAILED || root->members[place] != root->anchor))
                free_member(root, root->members[place]);
    settle(root);
    if (root->deadline > now && root->deadline < next)
        next = root->deadline;
    return next == INT64_MAX ? -1 : next - now > 1000000 ? 1000000 : (int) (next - now);
}

static int is_over(const struct root *root)
{
    for (int place = 0; root->step >= FORMED && place < root->most; place++)
        if (root->members[place] != NULL)
            return 0;
    return root->step >= FORMED && root->upstream == NULL;
}

static void serve(struct root *root, const struct epoll_event *event)
{
    enum rondo_watched *watched = event->data.ptr;
    struct rondo_handshake_claim claim;
    if (watched == &root->reached_watched) {
        take_upstream(root);
        return;
    }
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
    struct rondo_frame_connection unused = {.fd = -1};
    for (int place = 0; place < root->most; place++)
        if (root->members[place] != NULL)
            free_member(root, root->members[place]);
    if (root->upstream != NULL)
        free_member(root, root->upstream);
    rondo_admission_close(root->admission); /* at once: its thread may still try for a while */
    if (root->reaching != NULL && rondo_first_root_end(root->reaching, &unused) == RONDO_SUCCESS)
        rondo_frame_connection_close(&unused);
    if (root->epoll >= 0)
        close(root->epoll);
    if (root->reached >= 0)
        close(root->reached);
    free(root->places);
    free(root->members);
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
    if (result == RONDO_SUCCESS && (root->reached = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        result = rondo_fail(RONDO_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &root->reached_watched};
    root->reached_watched = RONDO_WATCHED_OTHER;
    if (result == RONDO_SUCCESS && epoll_ctl(root->epoll, EPOLL_CTL_ADD, root->reached, &event) != 0)
        result = rondo_fail(RONDO_ERR_SYSTEM, "epoll_ctl: %s", strerror(errno));
    if (result == RONDO_SUCCESS && root->options.size > 0)
        result = set_size(root, root->options.size, root->options.roots > 0 ? root->options.roots : 1, root->options.share);
    if (result == RONDO_SUCCESS && root->options.first != NULL)
        result = rondo_first_root_prepare(&root->reaching, root->options.first);
    root->options.first = NULL; /* the caller's */
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
    root->step = JOINING;
    root->epoll = root->reached = -1;
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
