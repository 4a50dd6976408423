/* See lib/bootstrap/members.h. One epoll set watches all sockets; what a round queues is written at its end. */
#include "lib/bootstrap/members.h"

#include "lib/bootstrap/control.h"
#include "lib/base/error.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    FILLS_ROUND = 8,         /* reads from one member before the next event is served */
    FLUSH_MS = 5000,         /* a leaving member's time to take what is still queued for it */
    FAILED_MS = 1000,        /* the same when the job could not form */
    QUEUED_SLOW = 64 << 20,  /* bytes queued for a member that has taken none for STALL_MS: it counts as dead */
    QUEUED_MOST = 512 << 20, /* bytes queued for a member that takes some: more, and it counts as dead */
    STALL_MS = 2000,
    SHARED_LEAST = 4 << 10, /* bytes of a broadcast of which members share one copy */
    NAMED_MOST = 16,        /* ranks that a message names */
};

static void set_phase(struct rondo_members *members, struct rondo_member *member, enum rondo_member_phase phase)
{
    members->counts[member->phase]--;
    members->counts[phase]++;
    member->phase = phase;
}

rondo_result_t rondo_members_create(struct rondo_members *members, int size)
{
    memset(members, 0, sizeof(*members));
    members->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (members->epoll < 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "epoll_create1: %s", strerror(errno));
    return size > 0 ? rondo_members_resize(members, size) : RONDO_SUCCESS;
}

rondo_result_t rondo_members_resize(struct rondo_members *members, int size)
{
    struct rondo_member **by_rank = calloc((size_t) size, sizeof(struct rondo_member *));
    unsigned char *gone = calloc((size_t) size, 1);
    if (by_rank == NULL || gone == NULL) {
        free(by_rank);
        free(gone);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the members of a job of %d ranks", size);
    }
    members->by_rank = by_rank;
    members->gone = gone;
    members->size = size;
    return RONDO_SUCCESS;
}

struct rondo_member *rondo_members_add(struct rondo_members *members, int fd)
{
    struct rondo_member *member = calloc(1, sizeof(*member));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    if (member == NULL || epoll_ctl(members->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(member);
        rondo_process_socket_close(fd);
        return NULL;
    }
    member->connection.fd = fd;
    member->rank = -1;
    member->deadline = INT64_MAX;
    member->phase = RONDO_MEMBER_PENDING;
    members->counts[RONDO_MEMBER_PENDING]++;
    member->next = members->first;
    if (member->next != NULL)
        member->next->previous = member;
    members->first = member;
    return member;
}

void rondo_members_join(struct rondo_members *members, struct rondo_member *member, int rank, int local)
{
    set_phase(members, member, RONDO_MEMBER_JOINED);
    member->rank = rank;
    member->local = local;
    member->deadline = INT64_MAX;
    member->progress = rondo_clock_ms();
    rondo_heartbeat_begin(&member->heartbeat, member->connection.fd, &members->heartbeat);
    members->beats |= member->heartbeat.next != INT64_MAX;
    members->by_rank[rank] = member;
    members->joined++;
    if (members->joined < members->size)
        return;
    members->formed = 1;
    rondo_members_broadcast(members, RONDO_FRAME_READY, RONDO_CONTROL_ALL, NULL, 0);
}

void rondo_members_end(struct rondo_members *members, struct rondo_member *member)
{
    if (member->phase == RONDO_MEMBER_ENDED)
        return;
    set_phase(members, member, RONDO_MEMBER_ENDED);
    /* A child that was made without the handlers of fork may have the socket; closing it here would then leave it in the set.
     */
    epoll_ctl(members->epoll, EPOLL_CTL_DEL, member->connection.fd, NULL);
    rondo_frame_connection_close(&member->connection);
}

int rondo_members_name(const struct rondo_members *members, int connected, char *text, size_t bytes)
{
    int count = connected ? members->joined : members->size - members->joined, named = 0;
    int at = snprintf(text, bytes, count == 1 ? "rank" : "ranks");
    for (int rank = 0; rank < members->size && named < NAMED_MOST; rank++)
        if ((members->by_rank[rank] != NULL) == connected)
            at += snprintf(text + at, bytes - (size_t) at, "%s %d", named++ > 0 ? "," : "", rank);
    if (count > named)
        at += snprintf(text + at, bytes - (size_t) at, " and %d more", count - named);
    return at;
}

/* The process of the root wants to end: logs which ranks have not left by then. */
static void report_abandoned(const struct rondo_members *members)
{
    char text[512];
    if (members->joined == 0)
        return;
    rondo_members_name(members, 1, text, sizeof(text));
    rondo_log(RONDO_LOG_WARN, -1, "the root leaves %s of %d, which %s not left in time", text, members->size,
              members->joined == 1 ? "has" : "have");
}

/* Whether another rank of this process is connected. */
static int has_other_local(const struct rondo_members *members, const struct rondo_member *but)
{
    for (const struct rondo_member *member = members->first; member != NULL; member = member->next)
        if (member != but && member->local && (member->phase == RONDO_MEMBER_JOINED || member->phase == RONDO_MEMBER_HELD))
            return 1;
    return 0;
}

void rondo_members_lose(struct rondo_members *members, struct rondo_member *member)
{
    enum rondo_member_phase phase = member->phase;
    if (phase == RONDO_MEMBER_HELD && !has_other_local(members, member)) { /* logs before its process may end */
        report_abandoned(members);
        members->abandoned = 1;
    }
    rondo_members_end(members, member);
    if (phase == RONDO_MEMBER_JOINED) {
        members->by_rank[member->rank] = NULL;
        members->joined--;
        rondo_log(RONDO_LOG_DEBUG, -1, "root: lost rank %d", member->rank);
        if (members->formed) {
            members->gone[member->rank] = 1;
            members->left++;
            rondo_members_broadcast(members, RONDO_CONTROL_DIED, member->rank, NULL, 0);
        }
    }
    if (member == members->anchor && !members->formed)
        rondo_members_fail(members, "the rank that holds the root has given up");
}

void rondo_members_mark(struct rondo_members *members, struct rondo_member *member)
{
    if (member->dirty || member->phase == RONDO_MEMBER_ENDED)
        return;
    member->dirty = 1;
    member->next_dirty = members->dirty;
    members->dirty = member;
}

/* A frame has been put into the member's queue (0), or there was no memory for it: then the member is lost. */
static void conclude_put(struct rondo_members *members, struct rondo_member *member, int put)
{
    if (put != 0)
        rondo_members_lose(members, member);
    else
        rondo_members_mark(members, member);
}

static void enqueue(struct rondo_members *members, struct rondo_member *member, uint32_t type, int source, int destination,
                    const void *data, size_t bytes)
{
    conclude_put(members, member, rondo_frame_connection_put(&member->connection, type, source, destination, data, bytes));
}

/* Long data are kept once for all members that have not taken them yet. */
void rondo_members_broadcast(struct rondo_members *members, uint32_t type, int source, const void *data, size_t bytes)
{
    struct rondo_frame_body *body = bytes >= SHARED_LEAST ? rondo_frame_body_make(data, bytes) : NULL;
    for (int rank = 0; rank < members->size; rank++) {
        struct rondo_member *member = members->by_rank[rank];
        if (rank == source || member == NULL)
            continue;
        if (body == NULL)
            enqueue(members, member, type, source, RONDO_CONTROL_ALL, data, bytes);
        else
            conclude_put(members, member,
                         rondo_frame_connection_put_body(&member->connection, type, source, RONDO_CONTROL_ALL, body));
    }
    rondo_frame_body_drop(body);
}

void rondo_members_fail(struct rondo_members *members, const char *reason)
{
    if (members->failed)
        return;
    members->failed = 1;
    rondo_log(RONDO_LOG_DEBUG, -1, "root: %s", reason);
    rondo_members_broadcast(members, RONDO_FRAME_FAILED, RONDO_CONTROL_ALL, reason, strlen(reason));
    for (int rank = 0; rank < members->size; rank++) {
        struct rondo_member *member = members->by_rank[rank];
        if (member == NULL)
            continue;
        members->by_rank[rank] = NULL;
        set_phase(members, member, RONDO_MEMBER_LEAVING);
        member->deadline = rondo_clock_ms() + FAILED_MS;
    }
}

/* The member has said goodbye: the others are told, and its queue is still flushed. */
static void depart(struct rondo_members *members, struct rondo_member *member)
{
    members->by_rank[member->rank] = NULL;
    members->gone[member->rank] = 1;
    members->joined--;
    members->left++;
    set_phase(members, member, member->local ? RONDO_MEMBER_HELD : RONDO_MEMBER_LEAVING);
    member->deadline = rondo_clock_ms() + FLUSH_MS;
    rondo_members_mark(members, member);
    rondo_members_broadcast(members, RONDO_CONTROL_LEFT, member->rank, NULL, 0);
}

/*
 * Passes a frame on. A frame whose source is not its sender, whose destination does not exist, that comes before the job has
 * formed or after the goodbye, or whose type is for the root to send violates the protocol: the member is lost.
 */
static void route(struct rondo_members *members, struct rondo_member *member, const struct rondo_frame *frame)
{
    int all = frame->destination == RONDO_CONTROL_ALL;
    if (!members->formed || member->phase != RONDO_MEMBER_JOINED || frame->source != member->rank ||
        frame->destination < RONDO_CONTROL_ALL || frame->destination >= members->size)
        rondo_members_lose(members, member);
    else if (frame->type == RONDO_FRAME_GOODBYE)
        depart(members, member);
    else if (frame->type == RONDO_FRAME_BEAT)
        return;
    else if (frame->type < RONDO_CONTROL_FIRST_USER_TYPE)
        rondo_members_lose(members, member);
    else if (all)
        rondo_members_broadcast(members, frame->type, frame->source, frame->data, frame->bytes);
    else if (members->by_rank[frame->destination] != NULL)
        enqueue(members, members->by_rank[frame->destination], frame->type, frame->source, frame->destination, frame->data,
                frame->bytes);
}

void rondo_members_read(struct rondo_members *members, struct rondo_member *member)
{
    for (int i = 0; i < FILLS_ROUND && member->phase != RONDO_MEMBER_ENDED; i++) {
        struct rondo_frame frame;
        int state = rondo_frame_connection_fill(&member->connection);
        if (state == 0)
            return;
        rondo_heartbeat_heard(&member->heartbeat);
        while (state > 0 && member->phase != RONDO_MEMBER_ENDED &&
               (state = rondo_frame_connection_next(&member->connection, &frame)) > 0)
            route(members, member, &frame);
        if (state < 0)
            rondo_members_lose(members, member);
    }
}

static void flush(struct rondo_members *members, struct rondo_member *member)
{
    size_t before = member->connection.queued;
    int64_t now = rondo_clock_ms();
    int state = rondo_frame_connection_flush(&member->connection);
    /* A queue that has just begun has not been waiting for the member. */
    if (member->connection.queued < before || !member->writing)
        member->progress = now;
    if (state < 0 || member->connection.queued > (size_t) QUEUED_MOST ||
        (member->connection.queued > (size_t) QUEUED_SLOW && now - member->progress > STALL_MS)) {
        rondo_members_lose(members, member);
        return;
    }
    if (state > 0 && member->phase == RONDO_MEMBER_LEAVING) {
        rondo_members_end(members, member);
        return;
    }
    if (member->writing == (state > 0)) {
        struct epoll_event event = {.events = state > 0 ? EPOLLIN : EPOLLIN | EPOLLOUT, .data.ptr = member};
        epoll_ctl(members->epoll, EPOLL_CTL_MOD, member->connection.fd, &event);
        member->writing = state == 0;
    }
}

/* Flushes the members that were marked. Flushing may find members dead, of which others are notified, and these are flushed in
 * turn. Members of this process come last: once told, it may exit and take this thread with it. */
static void flush_dirty(struct rondo_members *members)
{
    struct rondo_member *local = NULL;
    while (members->dirty != NULL || local != NULL) {
        struct rondo_member *member = members->dirty;
        if (member == NULL) {
            member = local;
            local = member->next_dirty;
        } else {
            members->dirty = member->next_dirty;
            if (member->local) {
                member->next_dirty = local;
                local = member;
                continue;
            }
        }
        member->dirty = 0;
        if (member->phase != RONDO_MEMBER_ENDED && member->phase != RONDO_MEMBER_PENDING)
            flush(members, member);
    }
}

/* Lets the members of this process that have said goodbye go: when no other rank is left, or a JOINED one of this process keeps
 * it alive. */
static void release_held(struct rondo_members *members)
{
    if (members->counts[RONDO_MEMBER_HELD] == 0)
        return;
    int stays = 0;
    for (struct rondo_member *member = members->first; member != NULL; member = member->next)
        stays |= member->phase == RONDO_MEMBER_JOINED && member->local;
    if (!stays && (members->counts[RONDO_MEMBER_LEAVING] > 0 || members->left < members->size))
        return;
    for (struct rondo_member *member = members->first; member != NULL; member = member->next)
        if (member->phase == RONDO_MEMBER_HELD) {
            set_phase(members, member, RONDO_MEMBER_LEAVING);
            member->deadline = rondo_clock_ms() + FLUSH_MS;
            rondo_members_mark(members, member);
        }
}

static void free_ended(struct rondo_members *members)
{
    if (members->counts[RONDO_MEMBER_ENDED] == 0)
        return;
    for (struct rondo_member *member = members->first, *next; member != NULL; member = next) {
        next = member->next;
        if (member->phase != RONDO_MEMBER_ENDED)
            continue;
        if (member->previous != NULL)
            member->previous->next = next;
        else
            members->first = next;
        if (next != NULL)
            next->previous = member->previous;
        if (member == members->anchor)
            members->anchor = NULL;
        members->counts[RONDO_MEMBER_ENDED]--;
        explicit_bzero(&member->handshake, sizeof(member->handshake));
        free(member);
    }
}

int64_t rondo_members_beat(struct rondo_members *members, int64_t now)
{
    int64_t next = INT64_MAX;
    if (!members->beats || !members->formed || now < members->next_beat)
        return members->beats && members->formed ? members->next_beat : INT64_MAX;
    for (int rank = 0; rank < members->size; rank++) {
        struct rondo_member *member = members->by_rank[rank];
        if (member == NULL)
            continue;
        enum rondo_heartbeat_due due = rondo_heartbeat_look(&member->heartbeat, now);
        if (due == RONDO_HEARTBEAT_DEAD)
            rondo_members_lose(members, member);
        else if (due == RONDO_HEARTBEAT_SEND && member->connection.queued == 0)
            enqueue(members, member, RONDO_FRAME_BEAT, 0, RONDO_CONTROL_ALL, NULL, 0);
        if (due != RONDO_HEARTBEAT_DEAD && member->heartbeat.next < next)
            next = member->heartbeat.next;
    }
    members->next_beat = next;
    return next;
}

void rondo_members_finish_round(struct rondo_members *members)
{
    flush_dirty(members);
    release_held(members);
    flush_dirty(members);
    free_ended(members);
}

void rondo_members_destroy(struct rondo_members *members)
{
    members->dirty = NULL;
    for (struct rondo_member *member = members->first; member != NULL; member = member->next)
        rondo_members_end(members, member);
    free_ended(members);
    if (members->epoll >= 0)
        close(members->epoll);
    free(members->by_rank);
    free(members->gone);
}
