/* See roster.h. */
#include "lib/bootstrap/members.h"

#include "lib/bootstrap/control.h"
#include "lib/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    FILLS_ROUND = 8,         /* reads from one member before others are served again */
    FLUSH_MS = 5000,         /* a leaving member's time to take what is still queued for it */
    FAILED_MS = 1000,        /* the same when the job could not form */
    QUEUED_SLOW = 64 << 20,  /* bytes queued for a member that has taken none for STALL_MS: it is dead */
    QUEUED_MOST = 512 << 20, /* bytes queued for a member, however it goes on */
    STALL_MS = 2000,
};

static void set_phase(struct rondo_roster *roster, struct rondo_roster_member *member, enum rondo_roster_phase phase)
{
    roster->counts[member->phase]--;
    roster->counts[phase]++;
    member->phase = phase;
}

rondo_result_t rondo_roster_create(struct rondo_roster *roster, int size)
{
    memset(roster, 0, sizeof(*roster));
    roster->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (roster->epoll < 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "epoll_create1: %s", strerror(errno));
    return size > 0 ? rondo_roster_resize(roster, size) : RONDO_SUCCESS;
}

rondo_result_t rondo_roster_resize(struct rondo_roster *roster, int size)
{
    struct rondo_roster_member **by_rank = calloc((size_t) size, sizeof(struct rondo_roster_member *));
    unsigned char *gone = calloc((size_t) size, 1);
    if (by_rank == NULL || gone == NULL) {
        free(by_rank);
        free(gone);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a roster of %d ranks", size);
    }
    roster->by_rank = by_rank;
    roster->gone = gone;
    roster->size = size;
    return RONDO_SUCCESS;
}

struct rondo_roster_member *rondo_roster_add(struct rondo_roster *roster, int fd)
{
    struct rondo_roster_member *member = calloc(1, sizeof(*member));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    if (member == NULL || epoll_ctl(roster->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(member);
        close(fd);
        return NULL;
    }
    member->wire.fd = fd;
    member->rank = -1;
    member->deadline = INT64_MAX;
    member->phase = RONDO_ROSTER_PENDING;
    roster->counts[RONDO_ROSTER_PENDING]++;
    member->next = roster->members;
    if (member->next != NULL)
        member->next->previous = member;
    roster->members = member;
    return member;
}

void rondo_roster_join(struct rondo_roster *roster, struct rondo_roster_member *member, int rank, int local)
{
    set_phase(roster, member, RONDO_ROSTER_JOINED);
    member->rank = rank;
    member->local = local;
    member->deadline = INT64_MAX;
    member->progress = rondo_background_now();
    rondo_heartbeat_begin(&member->heartbeat, member->wire.fd);
    roster->beats |= member->heartbeat.next != INT64_MAX;
    roster->by_rank[rank] = member;
    roster->joined++;
    if (roster->joined < roster->size)
        return;
    roster->formed = 1;
    rondo_roster_broadcast(roster, RONDO_WIRE_READY, RONDO_CONTROL_ALL, NULL, 0);
}

void rondo_roster_end(struct rondo_roster *roster, struct rondo_roster_member *member)
{
    if (member->phase == RONDO_ROSTER_ENDED)
        return;
    set_phase(roster, member, RONDO_ROSTER_ENDED);
    /* A forked child may have inherited the socket, and closing it here would not take it out of the set. */
    epoll_ctl(roster->epoll, EPOLL_CTL_DEL, member->wire.fd, NULL);
    rondo_wire_close(&member->wire);
}

void rondo_roster_lose(struct rondo_roster *roster, struct rondo_roster_member *member)
{
    enum rondo_roster_phase phase = member->phase;
    rondo_roster_end(roster, member);
    if (phase == RONDO_ROSTER_JOINED) {
        roster->by_rank[member->rank] = NULL;
        roster->joined--;
        rondo_log(RONDO_LOG_DEBUG, -1, "root: lost rank %d", member->rank);
        if (roster->formed) {
            roster->gone[member->rank] = 1;
            roster->left++;
            rondo_roster_broadcast(roster, RONDO_CONTROL_DIED, member->rank, NULL, 0);
        }
    }
    if (member == roster->anchor && !roster->formed)
        rondo_roster_fail(roster, "the rank that holds the root has given up");
}

void rondo_roster_mark(struct rondo_roster *roster, struct rondo_roster_member *member)
{
    if (member->dirty || member->phase == RONDO_ROSTER_ENDED)
        return;
    member->dirty = 1;
    member->next_dirty = roster->dirty;
    roster->dirty = member;
}

static void put(struct rondo_roster *roster, struct rondo_roster_member *member, uint32_t type, int source, int destination,
                const void *data, size_t bytes)
{
    if (rondo_wire_put(&member->wire, type, source, destination, data, bytes) != 0)
        rondo_roster_lose(roster, member);
    else
        rondo_roster_mark(roster, member);
}

void rondo_roster_broadcast(struct rondo_roster *roster, uint32_t type, int source, const void *data, size_t bytes)
{
    for (int rank = 0; rank < roster->size; rank++)
        if (rank != source && roster->by_rank[rank] != NULL)
            put(roster, roster->by_rank[rank], type, source, RONDO_CONTROL_ALL, data, bytes);
}

void rondo_roster_fail(struct rondo_roster *roster, const char *reason)
{
    if (roster->failed)
        return;
    roster->failed = 1;
    rondo_log(RONDO_LOG_DEBUG, -1, "root: %s", reason);
    rondo_roster_broadcast(roster, RONDO_WIRE_FAILED, RONDO_CONTROL_ALL, reason, strlen(reason));
    for (int rank = 0; rank < roster->size; rank++) {
        struct rondo_roster_member *member = roster->by_rank[rank];
        if (member == NULL)
            continue;
        roster->by_rank[rank] = NULL;
        set_phase(roster, member, RONDO_ROSTER_LEAVING);
        member->deadline = rondo_background_now() + FAILED_MS;
    }
}

static void part(struct rondo_roster *roster, struct rondo_roster_member *member)
{
    roster->by_rank[member->rank] = NULL;
    roster->gone[member->rank] = 1;
    roster->joined--;
    roster->left++;
    set_phase(roster, member, member->local ? RONDO_ROSTER_HELD : RONDO_ROSTER_LEAVING);
    member->deadline = rondo_background_now() + FLUSH_MS;
    rondo_roster_mark(roster, member);
    rondo_roster_broadcast(roster, RONDO_CONTROL_LEFT, member->rank, NULL, 0);
}

static void route(struct rondo_roster *roster, struct rondo_roster_member *member, const struct rondo_wire_frame *frame)
{
    int all = frame->destination == RONDO_CONTROL_ALL;
    if (!roster->formed || member->phase != RONDO_ROSTER_JOINED || frame->source != member->rank ||
        frame->destination < RONDO_CONTROL_ALL || frame->destination >= roster->size)
        rondo_roster_lose(roster, member);
    else if (frame->type == RONDO_WIRE_GOODBYE)
        part(roster, member);
    else if (frame->type == RONDO_WIRE_BEAT)
        return;
    else if (frame->type < RONDO_CONTROL_FIRST_USER_TYPE)
        rondo_roster_lose(roster, member);
    else if (all)
        rondo_roster_broadcast(roster, frame->type, frame->source, frame->data, frame->bytes);
    else if (roster->by_rank[frame->destination] != NULL)
        put(roster, roster->by_rank[frame->destination], frame->type, frame->source, frame->destination, frame->data,
            frame->bytes);
}

void rondo_roster_read(struct rondo_roster *roster, struct rondo_roster_member *member)
{
    for (int i = 0; i < FILLS_ROUND && member->phase != RONDO_ROSTER_ENDED; i++) {
        struct rondo_wire_frame frame;
        int state = rondo_wire_fill(&member->wire);
        if (state == 0)
            return;
        rondo_heartbeat_heard(&member->heartbeat);
        while (state > 0 && member->phase != RONDO_ROSTER_ENDED && (state = rondo_wire_next(&member->wire, &frame)) > 0)
            route(roster, member, &frame);
        if (state < 0)
            rondo_roster_lose(roster, member);
    }
}

static void flush(struct rondo_roster *roster, struct rondo_roster_member *member)
{
    size_t before = member->wire.queued;
    int64_t now = rondo_background_now();
    int state = rondo_wire_flush(&member->wire);
    /* A queue that was just begun has not been waiting for the member. */
    if (member->wire.queued < before || !member->writing)
        member->progress = now;
    if (state < 0 || member->wire.queued > (size_t) QUEUED_MOST ||
        (member->wire.queued > (size_t) QUEUED_SLOW && now - member->progress > STALL_MS)) {
        rondo_roster_lose(roster, member);
        return;
    }
    if (state > 0 && member->phase == RONDO_ROSTER_LEAVING) {
        rondo_roster_end(roster, member);
        return;
    }
    if (member->writing == (state > 0)) {
        struct epoll_event event = {.events = state > 0 ? EPOLLIN : EPOLLIN | EPOLLOUT, .data.ptr = member};
        epoll_ctl(roster->epoll, EPOLL_CTL_MOD, member->wire.fd, &event);
        member->writing = state == 0;
    }
}

/* Flushing may find members dead, which is news for others, which is flushed in turn. Those of this process come last: once
 * told, it may exit and take this thread with it. */
static void flush_dirty(struct rondo_roster *roster)
{
    struct rondo_roster_member *local = NULL;
    while (roster->dirty != NULL || local != NULL) {
        struct rondo_roster_member *member = roster->dirty;
        if (member == NULL) {
            member = local;
            local = member->next_dirty;
        } else {
            roster->dirty = member->next_dirty;
            if (member->local) {
                member->next_dirty = local;
                local = member;
                continue;
            }
        }
        member->dirty = 0;
        if (member->phase != RONDO_ROSTER_ENDED && member->phase != RONDO_ROSTER_PENDING)
            flush(roster, member);
    }
}

/* Ranks of this process that have said goodbye may go when nobody is left, or another one keeps the process alive. */
static void release_held(struct rondo_roster *roster)
{
    if (roster->counts[RONDO_ROSTER_HELD] == 0)
        return;
    int keeper = 0;
    for (struct rondo_roster_member *member = roster->members; member != NULL; member = member->next)
        keeper |= member->phase == RONDO_ROSTER_JOINED && member->local;
    if (!keeper && (roster->counts[RONDO_ROSTER_LEAVING] > 0 || roster->left < roster->size))
        return;
    for (struct rondo_roster_member *member = roster->members; member != NULL; member = member->next)
        if (member->phase == RONDO_ROSTER_HELD) {
            set_phase(roster, member, RONDO_ROSTER_LEAVING);
            member->deadline = rondo_background_now() + FLUSH_MS;
            rondo_roster_mark(roster, member);
        }
}

static void reap(struct rondo_roster *roster)
{
    if (roster->counts[RONDO_ROSTER_ENDED] == 0)
        return;
    for (struct rondo_roster_member *member = roster->members, *next; member != NULL; member = next) {
        next = member->next;
        if (member->phase != RONDO_ROSTER_ENDED)
            continue;
        if (member->previous != NULL)
            member->previous->next = next;
        else
            roster->members = next;
        if (next != NULL)
            next->previous = member->previous;
        if (member == roster->anchor)
            roster->anchor = NULL;
        roster->counts[RONDO_ROSTER_ENDED]--;
        free(member);
    }
}

int64_t rondo_roster_beat(struct rondo_roster *roster, int64_t now)
{
    int64_t next = INT64_MAX;
    if (!roster->beats || !roster->formed || now < roster->next_beat)
        return roster->beats && roster->formed ? roster->next_beat : INT64_MAX;
    for (int rank = 0; rank < roster->size; rank++) {
        struct rondo_roster_member *member = roster->by_rank[rank];
        if (member == NULL)
            continue;
        enum rondo_heartbeat_due due = rondo_heartbeat_look(&member->heartbeat, now);
        if (due == RONDO_HEARTBEAT_DEAD)
            rondo_roster_lose(roster, member);
        else if (due == RONDO_HEARTBEAT_SEND && member->wire.queued == 0)
            put(roster, member, RONDO_WIRE_BEAT, 0, RONDO_CONTROL_ALL, NULL, 0);
        if (due != RONDO_HEARTBEAT_DEAD && member->heartbeat.next < next)
            next = member->heartbeat.next;
    }
    roster->next_beat = next;
    return next;
}

void rondo_roster_finish_round(struct rondo_roster *roster)
{
    flush_dirty(roster);
    release_held(roster);
    flush_dirty(roster);
    reap(roster);
}

void rondo_roster_destroy(struct rondo_roster *roster)
{
    roster->dirty = NULL;
    for (struct rondo_roster_member *member = roster->members; member != NULL; member = member->next)
        rondo_roster_end(roster, member);
    reap(roster);
    if (roster->epoll >= 0)
        close(roster->epoll);
    free(roster->by_rank);
    free(roster->gone);
}
