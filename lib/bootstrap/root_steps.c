/*
 * See lib/bootstrap/root_steps.h. A job forms in steps, each of which begins when all ranks have answered the one before:
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
 */
#include "lib/bootstrap/root_steps.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/first_root.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    STEP_MS = 10000, /* at least, for all steps after the first */
    FLUSH_MS = 3000, /* for a rank to take the last that it is told */
};

/* ---- sending ---- */

static void mark_broken(struct root *root, struct member *member)
{
    member->broken = root->broken = 1;
}

void rondo_root_flush(struct root *root, struct member *member)
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
        rondo_root_flush(root, member);
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

void rondo_root_fail(struct root *root, const char *reason)
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

void rondo_root_free_member(struct root *root, struct member *member)
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
    rondo_root_free_member(root, member);
    root->joined -= !was_upstream;
    if (root->step < FORMED && (was_anchor || was_root || root->step > JOINING || root->is_reported))
        rondo_root_fail(root, was_anchor ? "the rank that holds the root has given up" : reason);
}

/* Whether the member is to be told nothing more. The anchor says itself when it ends. */
static int is_done(const struct root *root, const struct member *member)
{
    return member->connection.queued == 0 && (root->step == FAILED || (root->step == FORMED && member != root->anchor));
}

/* Losing one may break others, which failing has told. */
void rondo_root_settle(struct root *root)
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
        rondo_root_free_member(root, root->upstream);
    for (int place = 0; root->step >= FORMED && place < root->most; place++)
        if (root->members[place] != NULL && is_done(root, root->members[place]))
            rondo_root_free_member(root, root->members[place]);
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
        rondo_root_fail(root, rondo_last_error());
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
        rondo_root_fail(root, "the root has no memory for the places of the ranks");
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

void rondo_root_answer(struct root *root, struct member *member)
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
    rondo_root_fail(root, reason);
}

void rondo_root_reach_first(struct root *root)
{
    if (rondo_first_root_start(root->reaching, (double) (root->deadline - rondo_clock_ms()) / 1000, root->reached) !=
        RONDO_SUCCESS)
        rondo_root_fail(root, rondo_last_error());
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
        rondo_root_fail(root, rondo_last_error());
    else
        rondo_root_reach_first(root);
    explicit_bzero(&id, sizeof(id));
    return 0;
}

void rondo_root_take_first(struct root *root)
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
        rondo_root_fail(root, result != RONDO_SUCCESS ? rondo_last_error() : "the connection to the first root was lost");
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
        rondo_root_answer(root, member);
    } else if (frame->type == RONDO_FRAME_PLACES && root->step == LISTENING && member->answered < LISTENING &&
               frame->bytes % RONDO_ADDRESS_STORED == 0 &&
               frame->bytes / RONDO_ADDRESS_STORED <= (uint32_t) (count - member->places)) {
        if (root->places == NULL && (root->places = calloc((size_t) root->size, RONDO_ADDRESS_STORED)) == NULL) {
            rondo_root_fail(root, "the root has no memory for the places of the ranks");
            return 0;
        }
        memcpy(stored_place(root, member->rank + member->places), frame->data, frame->bytes);
        member->places += (int) (frame->bytes / RONDO_ADDRESS_STORED);
        if (member->places == count)
            rondo_root_answer(root, member);
    } else if (frame->type == RONDO_FRAME_LINKED && root->step == LINKING && member->answered < LINKING) {
        rondo_root_answer(root, member);
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
        rondo_root_answer(root, member);
    } else if (frame->type == RONDO_FRAME_LINKED && root->step == LINKING && member->answered < LINKING) {
        rondo_root_answer(root, member);
    } else if (frame->type == RONDO_FRAME_FIRST_ROOT) {
        return take_first_root(root, frame);
    } else if (frame->type == RONDO_FRAME_FAILED) {
        take_failure(root, frame);
    } else {
        return -1;
    }
    return 0;
}

void rondo_root_read(struct root *root, struct member *member)
{
    struct rondo_frame frame;
    int state = rondo_frame_connection_fill(&member->connection);
    while (state > 0 && !member->broken && (state = rondo_frame_connection_next(&member->connection, &frame)) > 0)
        state = take(root, member, &frame) == 0 ? 1 : -1;
    if (state < 0)
        mark_broken(root, member);
}
