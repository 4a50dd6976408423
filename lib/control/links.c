/* See lib/control/links.h: connections that come, what is due by the clock, and the contract. */
#include "lib/control/link.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    QUEUED_MOST = 512 << 20, /* bytes that a peer may leave untaken; a message more is refused */
    REFUSED_MS = 300,        /* after which a peer that refuses connections has died: time for its goodbye to come */
    UNREACHED_MS = 10000,    /* the same for one whose host does not answer */
    PAUSED_MS = 10000,       /* for a notice, which is lost where many ranks have died at once */
    LINGER_MS = 2000,        /* for a peer to see that this rank has left */
    DIRECT_MOST = 48,        /* connections made to ranks that are no neighbours, before unused ones are ended */
    DIRECT_UNUSED_MS = 1000, /* ... for so long */
    LOOK_MS = 500,           /* between two looks at unused connections */
};

/* ---- connections that come, and handshakes ---- */

static enum rondo_handshake_verdict decide(struct rondo_links *links, const struct rondo_handshake_claim *claim, int *detail)
{
    *detail = links->options.size;
    if (claim->size != links->options.size)
        return RONDO_HANDSHAKE_SIZE;
    if (claim->rank == links->options.rank)
        return RONDO_HANDSHAKE_TAKEN;
    *detail = rondo_links_is_gone(links, claim->rank);
    const struct rondo_link *former = links->in[claim->rank];
    const int is_renewal = former != NULL && former->begun && rondo_link_is_renewable(links, former);
    if (*detail || (links->closing && !is_renewal) || atomic_load(&links->lost))
        return RONDO_HANDSHAKE_OVER;
    return former == NULL || !former->begun || is_renewal ? RONDO_HANDSHAKE_WELCOME : RONDO_HANDSHAKE_TAKEN;
}

static void admit(struct rondo_links *links, struct rondo_guest *guest, const struct rondo_handshake_claim *claim)
{
    int detail;
    struct rondo_frame_connection connection;
    enum rondo_handshake_verdict verdict = decide(links, claim, &detail);
    if (!rondo_admission_answer(&links->admission, guest, verdict, detail, &connection))
        return;
    pthread_mutex_lock(&links->lock);
    struct rondo_link *link = links->in[claim->rank];
    if (link != NULL && !link->begun) { /* of an attempt that was given up after the verdict had been sent */
        rondo_link_close(links, link);
        link = NULL;
    }
    const int is_again = link != NULL;
    if (is_again && link->state != RONDO_LINK_CUT) /* the other side has found that it has broken */
        rondo_link_cut(links, link);
    if (rondo_frame_connection_set_aside(&connection) != 0 ||
        (link == NULL && (link = rondo_link_add(links, claim->rank, 0)) == NULL)) {
        rondo_frame_connection_close(&connection); /* while the job forms, the other side sees the end, and tries again */
        links->giving_up |= links->formed && !is_again;
    } else if (is_again) {
        link->connection = connection;
        links->costs.accepted++;
        rondo_link_connect_again(links, link);
    } else {
        link->connection = connection;
        link->state = RONDO_LINK_OPEN;
        links->costs.accepted++;
        link->progress = rondo_clock_ms();
        rondo_heartbeat_begin(&link->heartbeat, connection.fd, &links->options.heartbeat);
        rondo_link_watch(links, link);
    }
    pthread_mutex_unlock(&links->lock);
}

static void shake(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_frame_key to_peer, from_peer;
    pthread_mutex_lock(&links->lock);
    if (rondo_link_shake(links, link, &to_peer, &from_peer)) {
        rondo_link_open(links, link, &to_peer, &from_peer);
        explicit_bzero(&to_peer, sizeof(to_peer));
        explicit_bzero(&from_peer, sizeof(from_peer));
    }
    pthread_mutex_unlock(&links->lock);
}

void rondo_links_serve(struct rondo_links *links, enum rondo_watched *watched, uint32_t events)
{
    struct rondo_handshake_claim claim;
    struct rondo_link *link = (struct rondo_link *) watched;
    if (*watched != RONDO_WATCHED_CONNECTION) {
        struct rondo_guest *guest = rondo_admission_serve(&links->admission, watched, &claim);
        if (guest != NULL)
            admit(links, guest, &claim);
    } else if (link->state < RONDO_LINK_CUT) {
        shake(links, link);
    } else {
        if ((events & EPOLLOUT) != 0) {
            pthread_mutex_lock(&links->lock);
            rondo_link_flush(links, link);
            pthread_mutex_unlock(&links->lock);
        }
        if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            rondo_link_read(links, link);
    }
    rondo_links_settle(links);
}

/* ---- by the clock ---- */

/* Chooses this rank's neighbours among those that live, and connects to them. With the lock. */
static void choose_neighbours(struct rondo_links *links)
{
    const int size = links->options.size, rank = links->options.rank;
    for (int step = 1; step < size && step > 0; step *= 2) {
        int peer = (rank + step) % size;
        while (peer != rank && rondo_links_is_gone(links, peer))
            peer = (peer + 1) % size;
        if (peer == rank)
            continue;
        struct rondo_link *link = links->out[peer] != NULL ? links->out[peer] : rondo_link_add(links, peer, 1);
        if (link == NULL)
            links->giving_up = 1;
        if (link == NULL || link->is_neighbour)
            continue;
        link->is_neighbour = 1;
        if (link->state == RONDO_LINK_OPEN || link->put > 0) /* else it is introduced when it opens */
            rondo_link_introduce(links, link);
    }
}

/* Whether attempts have failed for so long, or in such a way, that the peer cannot live. A process that is connected to and
 * does not answer is stopped, or gets no processor: it is given up by the limits of heartbeats, which within a host may be
 * none. */
static int is_out_of_reach(const struct rondo_links *links, const struct rondo_link *link, int64_t now)
{
    int64_t most = link->error == ECONNREFUSED ? REFUSED_MS : UNREACHED_MS;
    if (link->is_reached)
        most = link->heartbeat.most > 0 ? link->heartbeat.most * (1000ll / RONDO_HEARTBEATS_A_SECOND) : INT64_MAX;
    return links->formed && link->error != 0 && now - link->since > most;
}

/* Whether a rank that leaves has nothing to send over a connection that is still being made, no peer, or no time. */
static int is_needless(const struct rondo_links *links, const struct rondo_link *link, int64_t now)
{
    const struct rondo_letter *letter = link->letters.first;
    while (letter != NULL && letter->type == RONDO_FRAME_AWAIT)
        letter = letter->next;
    const int has_some = (letter != NULL && letter->type != RONDO_FRAME_GOODBYE) || link->unsure.first != NULL;
    const int has_peer = link->error != ECONNREFUSED && link->error != ESTALE && (link->error != EBUSY || link->put == 0);
    const int is_late = now >= links->closing_until || (link->put > 0 && now - link->since > LINGER_MS);
    return links->closing && (is_late || !has_some || !has_peer);
}

/* The connection is being made. Returns when to look again. With the lock. */
static int64_t look_at_attempt(struct rondo_links *links, struct rondo_link *link, int64_t now)
{
    if (is_needless(links, link, now)) {
        rondo_link_close(links, link);
        return INT64_MAX;
    }
    if (link->error == ESTALE && links->formed && !rondo_links_is_gone(links, link->peer)) {
        links->giving_up = 1; /* the peer takes this rank for dead */
    } else if (link->state == RONDO_LINK_WAITING && link->again <= now) {
        if (is_out_of_reach(links, link, now)) {
            rondo_log(RONDO_LOG_INFO, links->options.rank, "rank %d cannot be reached: %s", link->peer, strerror(link->error));
            rondo_links_notice_death(links, link->peer);
            return INT64_MAX;
        }
        rondo_link_try(links, link);
    } else if (link->state != RONDO_LINK_WAITING && link->deadline <= now) {
        rondo_link_fail(links, link, ETIMEDOUT);
    }
    const int64_t due = link->state == RONDO_LINK_WAITING ? link->again : link->deadline;
    return links->giving_up ? now : links->closing && links->closing_until < due ? links->closing_until : due;
}

/* With the lock. */
static int64_t beat(struct rondo_links *links, struct rondo_link *link, int64_t now)
{
    enum rondo_heartbeat_due due = rondo_heartbeat_look(&link->heartbeat, now);
    if (due == RONDO_HEARTBEAT_DEAD && links->formed) {
        rondo_log(RONDO_LOG_INFO, links->options.rank, "rank %d has been silent for %d s", link->peer,
                  link->heartbeat.most / RONDO_HEARTBEATS_A_SECOND);
        rondo_links_notice_death(links, link->peer);
    } else if (due == RONDO_HEARTBEAT_SEND && link->connection.queued == 0) {
        rondo_link_tell_taken(links, link);
    }
    return link->heartbeat.next;
}

/* Ends the connection that has been unused for longest, where there are many. With the lock. */
static void retire(struct rondo_links *links, int64_t now)
{
    struct rondo_link *oldest = NULL;
    int count = 0;
    for (struct rondo_link *link = links->first; link != NULL; link = link->next) {
        if (!link->is_out || link->is_neighbour || link->state != RONDO_LINK_OPEN)
            continue;
        count++;
        if (link->connection.queued == 0 && link->unsure.first == NULL && now - link->used > DIRECT_UNUSED_MS &&
            (oldest == NULL || link->used < oldest->used))
            oldest = link;
    }
    if (count <= DIRECT_MOST || oldest == NULL || links->closing)
        return;
    if (rondo_link_note_before(links, oldest) != 0)
        return;
    rondo_link_say(links, oldest, RONDO_FRAME_END, links->options.rank, NULL, 0);
    oldest->state = RONDO_LINK_ENDING;
}

/* This rank has left: ends the connection once all has been sent, and waits a little for the peer to see it. With the lock. */
static int64_t look_at_leaving(struct rondo_links *links, struct rondo_link *link, int64_t now)
{
    if (!link->shut && link->connection.queued == 0) {
        shutdown(link->connection.fd, SHUT_WR);
        link->shut = 1;
        link->deadline = now + LINGER_MS;
    }
    const int64_t due = link->shut && link->deadline < links->closing_until ? link->deadline : links->closing_until;
    if (due > now)
        return due;
    if (!rondo_links_is_gone(links, link->peer) && link->is_out)
        rondo_log(RONDO_LOG_WARN, links->options.rank, "rank %d has not answered the goodbye of rank %d", link->peer,
                  links->options.rank);
    rondo_link_close(links, link);
    return INT64_MAX;
}

/* With the lock. */
static int64_t look_at(struct rondo_links *links, struct rondo_link *link, int64_t now)
{
    if (link->state < RONDO_LINK_CUT)
        return look_at_attempt(links, link, now);
    if (link->state < RONDO_LINK_OPEN)
        return rondo_link_look_at_cut(links, link, now);
    if (links->closing)
        return look_at_leaving(links, link, now);
    return link->state == RONDO_LINK_OPEN ? beat(links, link, now) : INT64_MAX;
}

/* A notice that does not come any more is not waited for. Returns when to look again. */
static int64_t end_pause(struct rondo_links *links, struct rondo_link *link, int64_t now)
{
    if (link->paused == 0)
        return INT64_MAX;
    if (now - link->paused <= PAUSED_MS)
        return link->paused + PAUSED_MS + 1;
    rondo_log(RONDO_LOG_INFO, links->options.rank, "what rank %d has told all ranks before has not come", link->peer);
    if (link->held == NULL)
        rondo_link_waive(links, link);
    rondo_link_resume(links, link);
    if (rondo_link_take_frames(links, link) != 0 && link->connection.fd >= 0)
        rondo_link_lose(links, link);
    return now;
}

/* Returns when to look again. */
static int64_t look_at_all(struct rondo_links *links, int64_t now)
{
    int64_t next = INT64_MAX;
    for (struct rondo_link *link = rondo_links_first(links), *after; link != NULL; link = after) {
        int64_t due = end_pause(links, link, now);
        pthread_mutex_lock(&links->lock);
        after = link->next;
        const int broken = link->broken;
        int64_t looked = broken ? now : look_at(links, link, now);
        pthread_mutex_unlock(&links->lock);
        if (broken)
            rondo_link_lose(links, link);
        if (looked < due)
            due = looked;
        if (due < next)
            next = due;
    }
    return next;
}

static void deliver_own(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    struct rondo_letters own = links->own;
    links->own = (struct rondo_letters){NULL, NULL};
    pthread_mutex_unlock(&links->lock);
    while (own.first != NULL) {
        struct rondo_letter *letter = rondo_letters_take(&own);
        links->options.handler(links->options.argument, letter->source, letter->type, letter->bytes > 0 ? letter->data : NULL,
                               letter->bytes);
        free(letter);
    }
}

int64_t rondo_links_expire(struct rondo_links *links)
{
    const int64_t now = rondo_clock_ms();
    deliver_own(links);
    rondo_links_settle(links);
    if (atomic_load(&links->lost))
        return INT64_MAX;
    int64_t next = rondo_admission_expire(&links->admission, now);
    pthread_mutex_lock(&links->lock);
    if (links->repair <= now) {
        links->repair = INT64_MAX;
        choose_neighbours(links);
    }
    if (links->next_look <= now) {
        links->next_look = now + LOOK_MS;
        retire(links, now);
        rondo_links_tell_rest(links);
    }
    pthread_mutex_unlock(&links->lock);
    int64_t due = look_at_all(links, now);
    rondo_links_settle(links);
    due = due < links->repair ? due : links->repair;
    due = due < links->next_look ? due : links->next_look;
    return due < next ? due : next;
}

/* ---- the contract ---- */

rondo_result_t rondo_links_create(struct rondo_links **result, const struct rondo_links_options *options, uint16_t *port)
{
    struct rondo_links *links = calloc(1, sizeof(*links));
    const size_t size = (size_t) options->size;
    if (links == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the control plane");
    links->options = *options;
    links->admission.secret = links->admission.tcp_secret = options->key;
    links->admission.encrypts = options->encrypts;
    links->repair = INT64_MAX;
    links->next_look = rondo_clock_ms() + LOOK_MS;
    pthread_mutex_init(&links->lock, NULL);
    links->out = calloc(size, sizeof(*links->out));
    links->in = calloc(size, sizeof(*links->in));
    links->delivered = calloc(size, sizeof(*links->delivered));
    links->gone = calloc(size, sizeof(*links->gone));
    links->noticed = calloc(size, 1);
    links->awaited = calloc(size, 1);
    rondo_result_t status = RONDO_SUCCESS;
    if (links->out == NULL || links->in == NULL || links->delivered == NULL || links->gone == NULL || links->noticed == NULL ||
        links->awaited == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", options->size);
    if (status == RONDO_SUCCESS)
        status = rondo_link_listen(links, port);
    if (status != RONDO_SUCCESS)
        rondo_links_destroy(links);
    else
        *result = links;
    return status;
}

void rondo_links_destroy(struct rondo_links *links)
{
    if (links == NULL)
        return;
    rondo_admission_close(&links->admission);
    while (links->first != NULL)
        rondo_link_close(links, links->first);
    rondo_links_free_closed(links);
    rondo_letters_drop(&links->own);
    pthread_mutex_destroy(&links->lock);
    explicit_bzero(&links->options.key, sizeof(links->options.key));
    free(links->places);
    free(links->out);
    free(links->in);
    free(links->delivered);
    free(links->gone);
    free(links->noticed);
    free(links->awaited);
    free(links);
}

void rondo_links_begin(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    choose_neighbours(links);
    pthread_mutex_unlock(&links->lock);
}

int rondo_links_are_linked(struct rondo_links *links)
{
    int missing;
    pthread_mutex_lock(&links->lock);
    int linked = rondo_links_share_places(links, &missing);
    for (const struct rondo_link *link = links->first; link != NULL; link = link->next)
        linked &= !link->is_neighbour || link->state == RONDO_LINK_OPEN;
    pthread_mutex_unlock(&links->lock);
    return linked;
}

void rondo_links_count(struct rondo_links *links, struct rondo_control_costs *costs)
{
    pthread_mutex_lock(&links->lock);
    *costs = links->costs;
    pthread_mutex_unlock(&links->lock);
}

void rondo_links_describe_trouble(struct rondo_links *links, char *text, size_t bytes)
{
    struct rondo_address address;
    char place[64];
    int missing;
    *text = '\0';
    if (atomic_load(&links->lost))
        snprintf(text, bytes, "rank %d has no memory or descriptors for its connections", links->options.rank);
    for (const struct rondo_link *link = rondo_links_first(links); link != NULL && *text == '\0'; link = link->next)
        if (link->is_neighbour && link->state != RONDO_LINK_OPEN &&
            rondo_link_place(links, link->peer, &address) == RONDO_SUCCESS)
            snprintf(text, bytes, "rank %d could not connect to rank %d at %s: %s", links->options.rank, link->peer,
                     rondo_address_describe(&address, place, sizeof(place)),
                     link->error != 0 ? strerror(link->error) : "no answer");
    pthread_mutex_lock(&links->lock);
    if (*text == '\0' && !rondo_links_share_places(links, &missing))
        snprintf(text, bytes, "rank %d has not told rank %d where others listen", missing, links->options.rank);
    pthread_mutex_unlock(&links->lock);
}

void rondo_links_formed(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    links->formed = 1;
    links->repair = rondo_clock_ms(); /* of neighbours that have gone meanwhile */
    pthread_mutex_unlock(&links->lock);
}

int rondo_links_are_over(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    int over = links->closing && (links->first == NULL || rondo_clock_ms() >= links->closing_until);
    pthread_mutex_unlock(&links->lock);
    return over;
}

static rondo_result_t fail_lost(const struct rondo_links *links)
{
    return rondo_fail(RONDO_ERR_PEER, "rank %d has lost its connections to the others", links->options.rank);
}

rondo_result_t rondo_links_reach(struct rondo_links *links, int destination)
{
    if (atomic_load(&links->lost))
        return fail_lost(links);
    if (destination >= 0 && rondo_links_is_gone(links, destination))
        return rondo_fail(RONDO_ERR_PEER, "rank %d has died or left", destination);
    return RONDO_SUCCESS;
}

/* With the lock. */
static rondo_result_t send_to_one(struct rondo_links *links, const struct rondo_letter *head, const void *data, int *wakes)
{
    const int peer = head->destination;
    struct rondo_link *link = links->out[peer];
    if (peer == links->options.rank) {
        struct rondo_letter *letter = rondo_letter_make(head->type, head->source, peer, data, head->bytes);
        if (letter != NULL)
            rondo_letters_append(&links->own, letter);
        *wakes = letter != NULL;
        return letter != NULL ? RONDO_SUCCESS
                              : rondo_fail(RONDO_ERR_MEMORY, "no memory for a message of %zu bytes", head->bytes);
    }
    if (link == NULL) {
        link = rondo_link_add(links, peer, 1);
        *wakes = 1;
    } else if (link->connection.queued + head->bytes > (size_t) QUEUED_MOST) {
        return rondo_fail(RONDO_ERR_MEMORY, "rank %d has left %zu bytes of rank %d's messages untaken", peer,
                          link->connection.queued, links->options.rank);
    }
    if (link == NULL || rondo_link_put(links, link, head, data) != 0)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a message of %zu bytes", head->bytes);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_links_send(struct rondo_links *links, int destination, uint32_t type, const void *data, size_t bytes,
                                int *wakes)
{
    struct rondo_letter head = {.type = type, .source = links->options.rank, .destination = destination, .bytes = bytes};
    *wakes = 0;
    rondo_result_t result = rondo_links_reach(links, destination);
    if (result != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&links->lock);
    if (links->closing)
        result = rondo_fail(RONDO_ERR_STATE, "rank %d has said goodbye", links->options.rank);
    else if (atomic_load(&links->lost) || links->giving_up)
        result = fail_lost(links);
    else if (destination < 0)
        result = rondo_links_put_notice(links, type, data, bytes);
    else if (!rondo_links_is_gone(links, destination))
        result = send_to_one(links, &head, data, wakes);
    *wakes |= links->giving_up;
    pthread_mutex_unlock(&links->lock);
    return result;
}

void rondo_links_notify(struct rondo_links *links, uint32_t type, const void *data, size_t bytes)
{
    pthread_mutex_lock(&links->lock);
    if (!links->closing && !atomic_load(&links->lost))
        rondo_links_put_notice(links, type, data, bytes);
    pthread_mutex_unlock(&links->lock);
}

void rondo_links_give_up(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    links->giving_up |= !links->closing;
    pthread_mutex_unlock(&links->lock);
}

void rondo_links_leave(struct rondo_links *links, int64_t deadline)
{
    pthread_mutex_lock(&links->lock);
    links->closing = 1;
    links->closing_until = deadline;
    if (!atomic_load(&links->lost))
        rondo_links_put_notice(links, RONDO_FRAME_GOODBYE, NULL, 0);
    pthread_mutex_unlock(&links->lock);
}
