/* What a rank sends over its connections (lib/control/links.h), and the table of them (lib/control/link.h). */
#include "lib/control/link.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    QUEUED_SLOW = 64 << 20, /* bytes that a peer may leave untaken, above which it must take some */
    STALL_MS = 2000,        /* ... within this time, or it counts as dead */
    NUMBERS = 0x7fffffff,   /* notices that a rank may make */
};

/* ---- letters ---- */

struct rondo_letter *rondo_letter_make(uint32_t type, int source, int destination, const void *data, size_t bytes)
{
    struct rondo_letter *letter = malloc(sizeof(*letter) + bytes);
    if (letter == NULL)
        return NULL;
    *letter = (struct rondo_letter){.type = type, .source = source, .destination = destination, .bytes = bytes};
    if (data != NULL)
        memcpy(letter->data, data, bytes);
    return letter;
}

void rondo_letters_append(struct rondo_letters *letters, struct rondo_letter *letter)
{
    if (letters->last != NULL)
        letters->last->next = letter;
    else
        letters->first = letter;
    letters->last = letter;
}

struct rondo_letter *rondo_letters_take(struct rondo_letters *letters)
{
    struct rondo_letter *letter = letters->first;
    letters->first = letter->next;
    if (letters->first == NULL)
        letters->last = NULL;
    return letter;
}

void rondo_letters_drop(struct rondo_letters *letters)
{
    while (letters->first != NULL)
        free(rondo_letters_take(letters));
}

/* ---- the table ---- */

int rondo_link_note_before(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_before *before = malloc(sizeof(*before) + (1 + links->recent_count) * sizeof(before->of[0]));
    if (before == NULL)
        return -1;
    before->count = 1 + links->recent_count;
    before->of[0].source = (uint32_t) links->options.rank;
    before->of[0].notices = (uint32_t) links->notices;
    for (uint32_t i = 0; i < links->recent_count; i++) {
        before->of[1 + i].source = links->recent[i];
        before->of[1 + i].notices = (uint32_t) links->delivered[links->recent[i]];
    }
    free(link->before);
    link->before = before;
    return 0;
}

static void free_link(struct rondo_link *link)
{
    free(link->spare);
    free(link->before);
    free(link);
}

struct rondo_link *rondo_link_add(struct rondo_links *links, int peer, int is_out)
{
    struct rondo_link *link = calloc(1, sizeof(*link));
    if (link == NULL)
        return NULL;
    link->spare = is_out ? malloc(sizeof(*link->spare) + RONDO_CONTROL_NOTICE_MAX) : NULL;
    if (is_out && (link->spare == NULL || rondo_link_note_before(links, link) != 0)) {
        free_link(link);
        return NULL;
    }
    link->watched = RONDO_WATCHED_CONNECTION;
    link->peer = peer;
    link->is_out = is_out;
    link->connection.fd = -1;
    link->next = links->first;
    if (link->next != NULL)
        link->next->previous = link;
    links->first = link;
    (is_out ? links->out : links->in)[peer] = link;
    return link;
}

struct rondo_link *rondo_links_first(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    struct rondo_link *first = links->first;
    pthread_mutex_unlock(&links->lock);
    return first;
}

/* With the lock. The connection is freed when the event has been served, because callers may be reading it. */
void rondo_link_close(struct rondo_links *links, struct rondo_link *link)
{
    if (link->state == RONDO_LINK_CLOSED)
        return;
    if (link->connection.fd >= 0)
        epoll_ctl(links->options.epoll, EPOLL_CTL_DEL, link->connection.fd, NULL);
    rondo_frame_connection_close(&link->connection);
    struct rondo_link **table = link->is_out ? links->out : links->in;
    if (table[link->peer] == link)
        table[link->peer] = NULL;
    if (link->previous != NULL)
        link->previous->next = link->next;
    else
        links->first = link->next;
    if (link->next != NULL)
        link->next->previous = link->previous;
    rondo_letters_drop(&link->letters);
    rondo_letters_drop(&link->unsure);
    free(link->held);
    link->held = NULL;
    links->some_may_resume = 1;
    explicit_bzero(&link->handshake, sizeof(link->handshake));
    link->state = RONDO_LINK_CLOSED;
    link->next = links->closed;
    links->closed = link;
}

void rondo_links_free_closed(struct rondo_links *links)
{
    while (links->closed != NULL) {
        struct rondo_link *link = links->closed;
        links->closed = link->next;
        free_link(link);
    }
}

/* ---- sending; all with the lock ---- */

/* Watches the connection for what it waits for. Nothing that is watched would say that the other side has ended it. */
void rondo_link_watch(struct rondo_links *links, struct rondo_link *link)
{
    uint32_t wanted = (link->paused == 0 || link->state == RONDO_LINK_RENEWING ? EPOLLIN : 0u) |
                      (link->connection.queued > 0 && !link->broken ? EPOLLOUT : 0u);
    struct epoll_event event = {.events = wanted, .data.ptr = link};
    if (wanted == link->events || link->connection.fd < 0)
        return;
    int operation = link->events == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    if (epoll_ctl(links->options.epoll, operation, link->connection.fd, &event) != 0)
        links->giving_up = 1;
    link->events = wanted;
}

/* The thread that serves reads the end of the connection, and does what follows. */
static void break_link(struct rondo_link *link)
{
    link->broken = 1;
    shutdown(link->connection.fd, SHUT_RDWR);
}

/* Ends the connection to a peer that leaves too much untaken for too long. */
static void check_stalled(struct rondo_link *link)
{
    if (link->connection.queued > (size_t) QUEUED_SLOW && rondo_clock_ms() - link->progress > STALL_MS) {
        link->is_given_up = 1;
        break_link(link);
    }
}

void rondo_link_flush(struct rondo_links *links, struct rondo_link *link)
{
    size_t before = link->connection.queued;
    if (link->broken)
        return;
    if (rondo_frame_connection_flush(&link->connection) < 0)
        break_link(link);
    /* A queue that has just begun has not been waiting for the peer. */
    if (link->connection.queued < before || (link->events & EPOLLOUT) == 0)
        link->progress = rondo_clock_ms();
    check_stalled(link);
    rondo_link_watch(links, link);
}

/* Whether the letter must be put although memory is out: a notice, and what the connections say, but for what only improves the
 * order. */
static int is_vital(const struct rondo_letter *letter)
{
    return letter->destination < 0 && letter->type != RONDO_FRAME_AWAIT;
}

int rondo_link_put_frame(struct rondo_links *links, struct rondo_link *link, const struct rondo_letter *letter,
                         const void *data)
{
    struct rondo_frame_connection *to = &link->connection;
    if (letter->type != RONDO_FRAME_BEAT) {
        links->costs.messages++;
        links->costs.bytes += RONDO_FRAME_HEADER + letter->bytes + RONDO_FRAME_TAG;
    }
    return is_vital(letter) && letter->bytes <= RONDO_FRAME_SPARE_DATA
               ? rondo_frame_connection_put_surely(to, letter->type, letter->source, letter->destination, data, letter->bytes)
               : rondo_frame_connection_put(to, letter->type, letter->source, letter->destination, data, letter->bytes);
}

/* Queues a message, whose data are given apart from its letter; notices even if memory is out, as long as what is set aside
 * lasts. Returns -1 if there is no memory. */
int rondo_link_put(struct rondo_links *links, struct rondo_link *link, const struct rondo_letter *head, const void *data)
{
    if (head->type != RONDO_FRAME_BEAT)
        link->used = rondo_clock_ms();
    if (link->state != RONDO_LINK_OPEN || rondo_link_is_unbegun(links, link)) {
        struct rondo_letter *letter = rondo_letter_make(head->type, head->source, head->destination, data, head->bytes);
        if (letter == NULL && is_vital(head) && head->bytes <= RONDO_CONTROL_NOTICE_MAX && link->spare != NULL) {
            letter = link->spare;
            link->spare = NULL;
            *letter = *head;
            if (data != NULL)
                memcpy(letter->data, data, head->bytes);
        }
        if (letter != NULL)
            rondo_letters_append(&link->letters, letter);
        link->has_message |= head->destination >= 0;
        return letter != NULL ? 0 : -1;
    }
    if (link->shut)
        return 0;
    const size_t before = link->connection.queued;
    if (!link->broken && rondo_link_put_frame(links, link, head, data) != 0)
        return -1;
    rondo_link_keep(links, link, head, data);
    if (link->broken)
        return 0;
    if (before == 0)
        rondo_link_flush(links, link);
    else
        check_stalled(link); /* there is room to be waited for already */
    return 0;
}

/* As put, of a message of the connections themselves; without memory this rank gives up. */
void rondo_link_say(struct rondo_links *links, struct rondo_link *link, uint32_t type, int source, const void *data,
                    size_t bytes)
{
    struct rondo_letter head = {.type = type, .source = source, .destination = RONDO_CONTROL_ALL, .bytes = bytes};
    if (rondo_link_put(links, link, &head, data) != 0)
        links->giving_up = 1;
}

/* Whether notices of this rank go over the connection: all that it has made, and those to it that lead where it has made none.
 * A goodbye goes over all, because they end. */
static int has_notices(const struct rondo_links *links, const struct rondo_link *link, uint32_t type)
{
    if (link->is_out)
        return 1;
    return (link->state == RONDO_LINK_OPEN || link->state == RONDO_LINK_CUT || link->state == RONDO_LINK_RENEWING) &&
           (type == RONDO_FRAME_GOODBYE || (link->is_neighbour && links->out[link->peer] == NULL));
}

static void put_notice(struct rondo_links *links, uint32_t type, const void *data, size_t bytes)
{
    struct rondo_letter head = {.type = type, .source = links->options.rank, .bytes = bytes};
    head.destination = ~(int) links->notices++;
    for (struct rondo_link *link = links->first; link != NULL; link = link->next)
        if (has_notices(links, link, type) && rondo_link_put(links, link, &head, data) != 0 && is_vital(&head))
            links->giving_up = 1;
}

/* Before the next notice: tells the ranks to which connections with a message are still being made to await these. */
static void announce(struct rondo_links *links)
{
    enum { RANKS = RONDO_CONTROL_NOTICE_MAX / 4 };
    unsigned char data[4 * RANKS];
    size_t count = 0;
    for (struct rondo_link *link = links->first; link != NULL; link = link->next) {
        if (!link->has_message)
            continue;
        link->has_message = 0;
        rondo_frame_store32(data + 4 * count++, (uint32_t) link->peer);
        if (count == RANKS) {
            put_notice(links, RONDO_FRAME_AWAIT, data, sizeof(data));
            count = 0;
        }
    }
    if (count > 0)
        put_notice(links, RONDO_FRAME_AWAIT, data, 4 * count);
}

rondo_result_t rondo_links_put_notice(struct rondo_links *links, uint32_t type, const void *data, size_t bytes)
{
    if (links->notices >= NUMBERS)
        return rondo_fail(RONDO_ERR_INTERNAL, "rank %d has told all ranks %llu times, which is the most", links->options.rank,
                          (unsigned long long) links->notices);
    announce(links);
    put_notice(links, type, data, bytes);
    return links->giving_up ? rondo_fail(RONDO_ERR_MEMORY, "no memory for a message of %zu bytes to all ranks", bytes)
                            : RONDO_SUCCESS;
}

/* Passes what is for all ranks on, to neighbours and over what this rank has made, so that whatever it says because of it comes
 * after it; but not to the neighbour that it is from, and not to the source. */
void rondo_links_pass_on(struct rondo_links *links, const struct rondo_frame *frame, int from)
{
    struct rondo_letter head = {
        .type = frame->type, .source = frame->source, .destination = frame->destination, .bytes = frame->bytes};
    for (struct rondo_link *link = links->first; link != NULL; link = link->next) {
        if (link->peer == from || link->peer == frame->source ||
            (!link->is_out && (!link->is_neighbour || links->out[link->peer] != NULL)))
            continue;
        if (rondo_link_put(links, link, &head, frame->data) != 0)
            links->giving_up = 1;
    }
}

/* Makes a connection that carries what is for all ranks one, and tells the other side who has gone. */
void rondo_link_tell_gone(struct rondo_links *links, struct rondo_link *link)
{
    for (int rank = 0; links->formed && rank < links->options.size; rank++) {
        const uint32_t event = atomic_load(&links->gone[rank]);
        if (event != 0 && rank != link->peer)
            rondo_link_say(links, link, event, rank, NULL, 0);
    }
}

void rondo_link_introduce(struct rondo_links *links, struct rondo_link *link)
{
    rondo_link_say(links, link, RONDO_FRAME_NEIGHBOUR, links->options.rank, NULL, 0);
    rondo_link_tell_gone(links, link);
}

/* Tells the peer what comes before what the connection carries. */
static void say_before(struct rondo_links *links, struct rondo_link *link)
{
    unsigned char data[8 * (1 + RONDO_BEFORE_SOURCES)];
    const struct rondo_before *before = link->before;
    for (uint32_t i = 0; i < before->count; i++) {
        rondo_frame_store32(data + (size_t) i * 8, before->of[i].source);
        rondo_frame_store32(data + (size_t) i * 8 + 4, before->of[i].notices);
    }
    rondo_link_say(links, link, RONDO_FRAME_BEGIN, links->options.rank, data, (size_t) before->count * 8);
}

void rondo_link_put_letters(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_letters letters = link->letters;
    link->letters = (struct rondo_letters){NULL, NULL};
    link->has_message = 0;
    while (letters.first != NULL) {
        struct rondo_letter *letter = rondo_letters_take(&letters);
        if (rondo_link_put(links, link, letter, letter->data) != 0)
            links->giving_up = 1;
        free(letter);
    }
}

void rondo_link_open(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame_key *to_peer,
                     const struct rondo_frame_key *from_peer)
{
    int missing;
    rondo_frame_connection_open(&link->connection, link->connection.fd, to_peer, from_peer);
    if (rondo_frame_connection_set_aside(&link->connection) != 0) {
        rondo_link_fail(links, link, ENOMEM);
        return;
    }
    links->costs.made++;
    if (link->put > 0) {
        rondo_link_connect_again(links, link);
        return;
    }
    rondo_heartbeat_begin(&link->heartbeat, link->connection.fd, &links->options.heartbeat);
    link->state = RONDO_LINK_OPEN;
    link->since = 0;
    link->places = 0;
    if (link->is_lossy) /* the peer lives, and lacks what has been sent */
        links->giving_up = 1;
    link->progress = rondo_clock_ms();
    say_before(links, link);
    if (link->is_neighbour)
        rondo_link_introduce(links, link);
    if (!links->formed)
        rondo_links_share_places(links, &missing);
    rondo_link_put_letters(links, link);
}
