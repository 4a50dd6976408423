/*
 * Connections over a network that break although both ranks live (lib/control/links.h). Each side numbers the frames that it
 * puts on a connection, from 0, and keeps them until the other one has said, in a sign of life, how many it has taken. When the
 * connection breaks, the rank that made it makes another one in its place. Both begin it by saying how many frames they have
 * taken, and each then puts again what the other lacks: so every frame is taken once, and in order.
 *
 * A frame counts as taken when it is acted upon, not when its bytes have come, because bytes that are only buffered go with the
 * connection. Numbers are compared modulo 2^32. A peer to which nothing gets through for UNREACHED_MS, however often the
 * connection is made again, counts as dead: `since` is forgotten only when a frame has been taken. The model is
 * test/models/renewal.pml.
 *
 * A Unix socket ends with its process alone, and is not made again. With the lock, unless it says otherwise.
 */
#include "lib/control/link.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum {
    TELL_FRAMES = 32,    /* taken and not told, after which the peer is told */
    TELL_BYTES = 65536,  /* the same of bytes */
    RENEW_MS = 5000,     /* for the peer to begin a connection that has been made */
    REPEAT_MS = 30,      /* before the next attempt, where the one before has failed */
    LOOK_MS = 100,       /* between two looks at a connection that is cut */
    LEFT_MS = 1000,      /* for a rank to make its connection again when it, or this one, has left */
    UNRENEWED_MS = 10000 /* that a rank which can be reached may take to make its connection again */
};

static int are_numbered(const struct rondo_links *links)
{
    return links->options.listen.bytes != 0;
}

int rondo_link_is_renewable(const struct rondo_links *links, const struct rondo_link *link)
{
    return are_numbered(links) && !link->forgets;
}

int rondo_link_is_unbegun(const struct rondo_links *links, const struct rondo_link *link)
{
    return are_numbered(links) && !link->is_out && !link->begun;
}

void rondo_link_keep(struct rondo_links *links, struct rondo_link *link, const struct rondo_letter *head, const void *data)
{
    if (!rondo_link_is_renewable(links, link) || head->type == RONDO_FRAME_BEAT)
        return;
    struct rondo_letter *letter = rondo_letter_make(head->type, head->source, head->destination, data, head->bytes);
    link->put++;
    if (letter != NULL) {
        rondo_letters_append(&link->unsure, letter);
    } else {
        link->forgets = 1;
        rondo_letters_drop(&link->unsure);
    }
}

void rondo_link_forget(struct rondo_link *link)
{
    rondo_letters_drop(&link->unsure);
    link->put = link->acknowledged = link->taken = link->told = 0;
    link->forgets = link->ends = 0;
}

void rondo_link_tell_taken(struct rondo_links *links, struct rondo_link *link)
{
    unsigned char data[4];
    rondo_frame_store32(data, link->taken);
    link->told = link->taken;
    link->untold_bytes = 0;
    rondo_link_say(links, link, RONDO_FRAME_BEAT, links->options.rank, data, sizeof(data));
}

void rondo_link_count_taken(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    if (frame->type == RONDO_FRAME_BEAT || frame->type == RONDO_FRAME_RENEW || !are_numbered(links))
        return;
    pthread_mutex_lock(&links->lock);
    link->since = 0;
    link->taken++;
    link->untold_bytes += frame->bytes;
    if (link->state == RONDO_LINK_OPEN && (link->taken - link->told >= TELL_FRAMES || link->untold_bytes >= TELL_BYTES))
        rondo_link_tell_taken(links, link);
    pthread_mutex_unlock(&links->lock);
}

void rondo_links_tell_rest(struct rondo_links *links)
{
    for (struct rondo_link *link = links->first; link != NULL; link = link->next)
        if (link->state == RONDO_LINK_OPEN && link->taken != link->told)
            rondo_link_tell_taken(links, link);
}

/* The peer has taken so many. Returns 0, or -1 if it says less than before or more than there are. */
static int acknowledge(struct rondo_link *link, uint32_t taken)
{
    if (taken - link->acknowledged > link->put - link->acknowledged)
        return -1;
    if (link->acknowledged != taken)
        link->since = 0;
    for (; link->acknowledged != taken && link->unsure.first != NULL; link->acknowledged++)
        free(rondo_letters_take(&link->unsure));
    link->acknowledged = taken;
    return 0;
}

int rondo_link_take_beat(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    if (frame->bytes != 4)
        return -1;
    pthread_mutex_lock(&links->lock);
    const int result = rondo_link_is_renewable(links, link) ? acknowledge(link, rondo_frame_load32(frame->data)) : 0;
    pthread_mutex_unlock(&links->lock);
    return result;
}

/* ---- breaking ---- */

void rondo_link_cut(struct rondo_links *links, struct rondo_link *link)
{
    const int64_t now = rondo_clock_ms();
    rondo_log(RONDO_LOG_DEBUG, links->options.rank, "the connection with rank %d has broken", link->peer);
    if (link->events != 0)
        epoll_ctl(links->options.epoll, EPOLL_CTL_DEL, link->connection.fd, NULL);
    rondo_frame_connection_close(&link->connection);
    link->ends |= link->state == RONDO_LINK_ENDING;
    link->events = 0;
    link->broken = link->shut = link->is_reached = 0;
    link->state = link->is_out ? RONDO_LINK_WAITING : RONDO_LINK_CUT;
    link->again = link->since != 0 ? now + REPEAT_MS : now;
    link->error = link->since != 0 ? ECONNRESET : 0;
    link->since = link->since != 0 ? link->since : now;
}

int64_t rondo_link_look_at_cut(struct rondo_links *links, struct rondo_link *link, int64_t now)
{
    if (link->state == RONDO_LINK_RENEWING) {
        if (link->deadline > now)
            return link->deadline;
        rondo_link_cut(links, link);
        return now;
    }
    if (links->closing) {
        if (now - link->since <= LEFT_MS)
            return link->since + LEFT_MS + 1;
        rondo_link_close(links, link);
        return INT64_MAX;
    }
    /* The other side makes the connection again, unless it has died: this rank looks whether it listens. */
    const struct rondo_link *way = links->out[link->peer];
    if (links->formed && way == NULL && (way = rondo_link_add(links, link->peer, 1)) == NULL)
        links->giving_up = 1;
    if (way == NULL || way->state != RONDO_LINK_OPEN || now - link->since <= (way->left ? LEFT_MS : UNRENEWED_MS))
        return way != NULL && way->state == RONDO_LINK_WAITING ? now : now + LOOK_MS;
    rondo_log(RONDO_LOG_INFO, links->options.rank, "rank %d has not made its connection again", link->peer);
    rondo_links_notice_death(links, link->peer);
    return INT64_MAX;
}

/* ---- the new connection ---- */

/* Says how many frames this rank has taken. Returns -1 if memory is out. */
static int say_renew(struct rondo_links *links, struct rondo_link *link)
{
    unsigned char data[4];
    rondo_frame_store32(data, link->taken);
    link->told = link->taken;
    link->untold_bytes = 0;
    if (rondo_frame_connection_put_surely(&link->connection, RONDO_FRAME_RENEW, links->options.rank, RONDO_CONTROL_ALL, data,
                                          sizeof(data)) != 0)
        return -1;
    rondo_link_flush(links, link);
    return 0;
}

void rondo_link_connect_again(struct rondo_links *links, struct rondo_link *link)
{
    link->state = RONDO_LINK_RENEWING;
    link->deadline = link->progress = rondo_clock_ms();
    link->deadline += RENEW_MS;
    rondo_heartbeat_begin(&link->heartbeat, link->connection.fd, &links->options.heartbeat);
    if (link->is_out && say_renew(links, link) != 0)
        links->giving_up = 1;
    rondo_link_watch(links, link);
}

/* Puts what the peer lacks, and what has been said meanwhile. */
static void catch_up(struct rondo_links *links, struct rondo_link *link)
{
    link->state = link->ends ? RONDO_LINK_ENDING : RONDO_LINK_OPEN;
    if (link->unsure.first == NULL)
        link->since = 0;
    for (const struct rondo_letter *letter = link->unsure.first; letter != NULL; letter = letter->next)
        if (rondo_link_put_frame(links, link, letter, letter->data) != 0)
            links->giving_up = 1;
    rondo_link_flush(links, link);
    if (link->state == RONDO_LINK_OPEN)
        rondo_link_put_letters(links, link);
    rondo_link_watch(links, link);
}

int rondo_link_take_renew(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    const int is_new =
        link->state != RONDO_LINK_RENEWING; /* this rank knows no such connection: none has begun, or it has ended */
    if (frame->bytes != 4 || (is_new && (link->is_out || link->begun)))
        return -1;
    pthread_mutex_lock(&links->lock);
    const int lacks = !is_new && acknowledge(link, rondo_frame_load32(frame->data)) != 0;
    if (lacks && link->ends) /* the peer has taken the end: before that it had taken something */
        rondo_link_end(links, link);
    else if (lacks || (!link->is_out && say_renew(links, link) != 0))
        links->giving_up = 1;
    else if (!is_new)
        catch_up(links, link);
    pthread_mutex_unlock(&links->lock);
    return 0;
}
