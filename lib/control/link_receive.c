/* What a rank receives over its connections (lib/control/links.h): in which order it is delivered, and what the end of a
 * connection means. On the thread that serves, without the lock unless it says so. */
#include "lib/control/link.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    FILLS_ROUND = 16,     /* reads before another connection is served */
    REPAIR_MS = 50,       /* between a departure and the choice of new neighbours */
    LAST_FILLS = 1 << 14, /* reads of what a rank that has died has sent */
};

/* ---- departures ---- */

int rondo_links_is_gone(const struct rondo_links *links, int rank)
{
    return atomic_load(&links->gone[rank]) != 0;
}

void rondo_links_notice_death(struct rondo_links *links, int rank)
{
    links->noticed[rank] = 1;
    links->noticed_some = 1;
}

/* The rank has gone: neighbours are told, unless its goodbye passes by itself (from is -1); and so is one that has died, in
 * case it lives, frozen or cut off. from: the neighbour that has told. */
static void depart(struct rondo_links *links, int rank, enum rondo_control_event event, int from)
{
    struct rondo_frame frame = {.type = (uint32_t) event, .source = rank, .destination = RONDO_CONTROL_ALL};
    pthread_mutex_lock(&links->lock);
    atomic_store(&links->gone[rank], (unsigned char) event);
    links->awaited[rank] = 0;
    struct rondo_link *both[2] = {links->out[rank], links->in[rank]};
    for (int i = 0; i < 2; i++) {
        if (both[i] == NULL)
            continue;
        if (event == RONDO_CONTROL_DIED && both[i]->state == RONDO_LINK_OPEN)
            rondo_link_say(links, both[i], RONDO_CONTROL_DIED, rank, NULL, 0);
        else if (both[i]->state == RONDO_LINK_OPEN) /* so that it knows that its connection has not broken */
            rondo_link_tell_taken(links, both[i]);
        rondo_link_close(links, both[i]);
    }
    if (from >= 0)
        rondo_links_pass_on(links, &frame, from);
    if (links->formed && !links->closing && links->repair == INT64_MAX)
        links->repair = rondo_clock_ms() + REPAIR_MS;
    pthread_mutex_unlock(&links->lock);
    links->options.handler(links->options.argument, rank, event, NULL, 0);
}

/* Takes what has come over a connection that has ended. */
static void take_rest(struct rondo_links *links, struct rondo_link *link)
{
    for (int i = 0; i < LAST_FILLS && rondo_link_take_frames(links, link) == 0 && link->connection.fd >= 0; i++)
        if (rondo_frame_connection_fill(&link->connection) <= 0)
            return;
}

/* Connects anew over a connection that has ended. With the lock. */
static void reopen(struct rondo_links *links, struct rondo_link *link)
{
    if (link->events != 0)
        epoll_ctl(links->options.epoll, EPOLL_CTL_DEL, link->connection.fd, NULL);
    rondo_frame_connection_close(&link->connection);
    link->is_lossy = links->formed && link->state == RONDO_LINK_OPEN;
    link->events = 0;
    link->broken = 0;
    link->state = RONDO_LINK_WAITING;
    link->since = link->again = link->error = 0;
    rondo_link_forget(link);
}

void rondo_link_end(struct rondo_links *links, struct rondo_link *link)
{
    if (link->letters.first == NULL && !link->is_neighbour)
        rondo_link_close(links, link);
    else
        reopen(links, link);
}

void rondo_link_lose(struct rondo_links *links, struct rondo_link *link)
{
    pthread_mutex_lock(&links->lock);
    const int is_given_up = link->is_given_up; /* also by a thread that sends */
    pthread_mutex_unlock(&links->lock);
    if (!is_given_up && link->state >= RONDO_LINK_OPEN)
        take_rest(links, link);
    if (link->state == RONDO_LINK_CLOSED)
        return;
    pthread_mutex_lock(&links->lock);
    const int has_more = link->is_out && link->unsure.first != NULL; /* that the peer may lack, also if this rank leaves */
    const int is_final = rondo_links_is_gone(links, link->peer) || link->left || (!link->is_out && !link->begun) ||
                         (links->closing && !has_more);
    if (is_final)
        rondo_link_close(links, link);
    else if (link->is_given_up)
        rondo_links_notice_death(links, link->peer);
    else if (rondo_link_is_renewable(links, link))
        rondo_link_cut(links, link);
    else if (link->is_out && link->state == RONDO_LINK_ENDING)
        rondo_link_end(links, link);
    else if (link->is_out)
        reopen(links, link);
    else
        rondo_links_notice_death(links, link->peer);
    pthread_mutex_unlock(&links->lock);
}

/* Ends all connections: the others take this rank for dead. */
static void lose_all(struct rondo_links *links)
{
    pthread_mutex_lock(&links->lock);
    const int expected = links->closing;
    atomic_store(&links->lost, 1);
    rondo_admission_close(&links->admission);
    while (links->first != NULL)
        rondo_link_close(links, links->first);
    pthread_mutex_unlock(&links->lock);
    if (!expected)
        links->options.handler(links->options.argument, links->options.rank, RONDO_CONTROL_LOST, NULL, 0);
}

/* ---- receiving ---- */

static void deliver(struct rondo_links *links, uint32_t type, int source, const void *data, size_t bytes)
{
    links->options.handler(links->options.argument, source, type, bytes > 0 ? data : NULL, bytes);
}

/* Whether the notice is to be taken from the source's own connection, which has told, or will tell, all from `begin` on. */
static int waits_for_source(const struct rondo_links *links, int source, uint64_t number)
{
    const struct rondo_link *own = links->in[source];
    const int comes = own != NULL ? !own->begun || number >= own->begin : links->awaited[source];
    return comes && number >= links->delivered[source];
}

/* The source connects to these ranks. One that has got this over the new connection has it already. */
static void await_source(struct rondo_links *links, int source, const unsigned char *ranks, size_t bytes)
{
    for (size_t at = 0; at + 4 <= bytes; at += 4)
        if (rondo_frame_load32(ranks + at) == (uint32_t) links->options.rank)
            links->awaited[source] = links->in[source] == NULL;
}

/* Nothing more is read from the connection, or it is again. */
static void pause_link(struct rondo_links *links, struct rondo_link *link, int64_t since)
{
    pthread_mutex_lock(&links->lock);
    link->paused = since;
    rondo_link_watch(links, link);
    pthread_mutex_unlock(&links->lock);
}

/* Moves the source to the front of those whose notices were passed on; the one that is longest there may drop out. */
static void note_recent(struct rondo_links *links, uint32_t source)
{
    uint32_t place = 0;
    while (place < links->recent_count && links->recent[place] != source)
        place++;
    if (place == links->recent_count && place < RONDO_BEFORE_SOURCES)
        links->recent_count++;
    else if (place == links->recent_count)
        place--;
    memmove(links->recent + 1, links->recent, place * sizeof(links->recent[0]));
    links->recent[0] = source;
}

/* Delivers a notice, and passes it on before that: not earlier, else what another rank says because of it could come back
 * before it is delivered. from: the peer that has told. */
static void deliver_notice(struct rondo_links *links, const struct rondo_letter *head, const void *data, int from)
{
    const int source = head->source;
    struct rondo_frame frame = {head->type, source, head->destination, (uint32_t) head->bytes, data};
    pthread_mutex_lock(&links->lock);
    links->delivered[source] = (uint64_t) ~head->destination + 1;
    note_recent(links, (uint32_t) source);
    rondo_links_pass_on(links, &frame, from);
    pthread_mutex_unlock(&links->lock);
    links->some_may_resume = 1;
    if (head->type == RONDO_FRAME_GOODBYE)
        depart(links, source, RONDO_CONTROL_LEFT, -1);
    else if (head->type == RONDO_FRAME_AWAIT)
        await_source(links, source, data, head->bytes);
    else
        deliver(links, head->type, source, data, head->bytes);
}

/* Whether notices that come before the connection's messages are still to come. */
static int lacks_some(const struct rondo_links *links, const struct rondo_link *link)
{
    const struct rondo_before *before = link->before;
    for (uint32_t i = 0; before != NULL && i < before->count; i++)
        if (links->delivered[before->of[i].source] < before->of[i].notices &&
            !rondo_links_is_gone(links, (int) before->of[i].source) && before->of[i].source != (uint32_t) links->options.rank)
            return 1;
    return 0;
}

void rondo_link_waive(struct rondo_links *links, struct rondo_link *link)
{
    const struct rondo_before *before = link->before;
    pthread_mutex_lock(&links->lock); /* of any thread that makes a connection */
    for (uint32_t i = 0; before != NULL && i < before->count; i++)
        if (links->delivered[before->of[i].source] < before->of[i].notices)
            links->delivered[before->of[i].source] = before->of[i].notices;
    pthread_mutex_unlock(&links->lock);
}

/* Whether what the connection is paused for is still to come. */
static int is_waiting(const struct rondo_links *links, const struct rondo_link *link)
{
    const struct rondo_letter *held = link->held;
    return held != NULL ? waits_for_source(links, held->source, (uint64_t) ~held->destination)
                        : !link->is_out && lacks_some(links, link);
}

void rondo_link_resume(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_letter *held = link->held;
    link->held = NULL;
    pause_link(links, link, 0);
    if (held != NULL && (uint64_t) ~held->destination >= links->delivered[held->source] &&
        !rondo_links_is_gone(links, held->source))
        deliver_notice(links, held, held->data, link->peer);
    free(held);
}

/* A copy of a notice waits, and the connection with it, until the source's own connection has told it: what its peer says
 * because of it comes later, too. There is no circle of such connections, because there is none of causes. */
static void hold(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    link->held = rondo_letter_make(frame->type, frame->source, frame->destination, frame->data, frame->bytes);
    if (link->held == NULL)
        links->giving_up = 1;
    else
        pause_link(links, link, rondo_clock_ms());
}

static int take_notice(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    const int source = frame->source;
    const uint64_t number = (uint64_t) ~frame->destination;
    struct rondo_letter head = {
        .type = frame->type, .source = source, .destination = frame->destination, .bytes = frame->bytes};
    if (source == link->peer && frame->type == RONDO_FRAME_GOODBYE)
        link->left = 1;
    if (source == links->options.rank || rondo_links_is_gone(links, source))
        return 0;
    if (number < links->delivered[source])
        return 0;
    if (link == links->in[source] || !waits_for_source(links, source, number))
        deliver_notice(links, &head, frame->data, link->peer);
    else if (!link->is_final)
        hold(links, link, frame);
    return 0;
}

/* Stores what a connection begins by saying. Returns -1 if it is not as rondo_link_open says it. Without memory this rank gives
 * up, because the peer does not say it again. */
static int read_before(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    const uint32_t count = frame->bytes / 8;
    if (frame->bytes % 8 != 0 || count < 1 || count > 1 + RONDO_BEFORE_SOURCES)
        return -1;
    struct rondo_before *before = malloc(sizeof(*before) + count * sizeof(before->of[0]));
    if (before == NULL) {
        links->giving_up = 1;
        return 0;
    }
    before->count = count;
    link->before = before;
    for (uint32_t i = 0; i < count; i++) {
        before->of[i].source = rondo_frame_load32(frame->data + (size_t) i * 8);
        before->of[i].notices = rondo_frame_load32(frame->data + (size_t) i * 8 + 4);
        if (before->of[i].source >= (uint32_t) links->options.size)
            return -1;
    }
    return before->of[0].source == (uint32_t) link->peer ? 0 : -1;
}

/* What neighbours tell before is waited for. */
static int begin(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    if (link->is_out || link->begun || read_before(links, link, frame) != 0)
        return -1;
    if (links->giving_up)
        return 0;
    pthread_mutex_lock(&links->lock);
    link->begin = link->before->of[0].notices;
    link->begun = 1;
    rondo_link_put_letters(links, link);
    pthread_mutex_unlock(&links->lock);
    links->awaited[link->peer] = 0;
    links->some_may_resume = 1;
    if (is_waiting(links, link) && !link->is_final)
        pause_link(links, link, rondo_clock_ms());
    return 0;
}

/* The peer ends a connection that it has used too seldom. What it tells all ranks from now on comes from neighbours. It is
 * answered, so that it can tell the end from a connection that breaks. */
static int end(struct rondo_links *links, struct rondo_link *link)
{
    if (link->is_out ? link->state != RONDO_LINK_ENDING : !link->begun)
        return -1;
    pthread_mutex_lock(&links->lock);
    if (link->is_out) {
        rondo_link_end(links, link);
    } else {
        rondo_link_say(links, link, RONDO_FRAME_END, links->options.rank, NULL, 0);
        rondo_link_close(links, link);
    }
    pthread_mutex_unlock(&links->lock);
    return 0;
}

/* What the peer says after it has told of the death comes after the death. */
static void hear_of_death(struct rondo_links *links, struct rondo_link *link, int rank)
{
    rondo_links_notice_death(links, rank);
    pause_link(links, link, rondo_clock_ms());
    links->some_may_resume = 1;
}

static int take_event(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    const int rank = frame->source;
    if (rank == links->options.rank)
        links->giving_up |= frame->type == RONDO_CONTROL_DIED;
    else if (rondo_links_is_gone(links, rank))
        return 0;
    else if (frame->type == RONDO_CONTROL_DIED && !link->is_final) /* else two that cannot hear each other would both die */
        hear_of_death(links, link, rank);
    else if (frame->type == RONDO_CONTROL_LEFT && links->in[rank] == NULL && !links->awaited[rank]) /* else it says so itself */
        depart(links, rank, RONDO_CONTROL_LEFT, link->peer);
    return 0;
}

static int become_neighbour(struct rondo_links *links, struct rondo_link *link)
{
    pthread_mutex_lock(&links->lock);
    if (!link->is_neighbour && link->state == RONDO_LINK_OPEN) {
        link->is_neighbour = 1;
        rondo_link_tell_gone(links, link);
    }
    pthread_mutex_unlock(&links->lock);
    return 0;
}

/* Returns 0, or -1 if the frame is one that no rank sends here. */
static int take(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    if (frame->source < 0 || frame->source >= links->options.size ||
        (!link->is_out && !link->begun && frame->type != RONDO_FRAME_BEGIN && frame->type != RONDO_FRAME_RENEW) ||
        (link->state == RONDO_LINK_RENEWING && frame->type != RONDO_FRAME_RENEW))
        return -1;
    switch (frame->type) {
    case RONDO_FRAME_BEAT:
        return rondo_link_take_beat(links, link, frame);
    case RONDO_FRAME_RENEW:
        return rondo_link_take_renew(links, link, frame);
    case RONDO_FRAME_BEGIN:
        return begin(links, link, frame);
    case RONDO_FRAME_END:
        return end(links, link);
    case RONDO_FRAME_NEIGHBOUR:
        return become_neighbour(links, link);
    case RONDO_FRAME_PLACES:
        return rondo_link_take_places(links, link, frame);
    case RONDO_CONTROL_DIED:
    case RONDO_CONTROL_LEFT:
        return take_event(links, link, frame);
    default:
        break;
    }
    const int own = frame->type < RONDO_CONTROL_FIRST_USER_TYPE;
    if (own && frame->type != RONDO_FRAME_GOODBYE && frame->type != RONDO_FRAME_AWAIT)
        return -1;
    if (frame->destination < 0)
        return take_notice(links, link, frame);
    if (own || frame->destination != links->options.rank || frame->source != link->peer || link->is_out)
        return -1;
    if (!rondo_links_is_gone(links, frame->source))
        deliver(links, frame->type, frame->source, frame->data, frame->bytes);
    return 0;
}

/* Where a connection has been made again, what the peer has taken is read even while nothing else is. */
static int is_read(const struct rondo_link *link)
{
    return link->paused == 0 || link->state == RONDO_LINK_RENEWING;
}

/* Takes the frames that have been read. Returns -1 if the connection is of no use any more. */
int rondo_link_take_frames(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_frame frame;
    int state = 1;
    while (state > 0 && link->connection.fd >= 0 && is_read(link) &&
           (state = rondo_frame_connection_next(&link->connection, &frame)) > 0) {
        rondo_link_count_taken(links, link, &frame);
        if (take(links, link, &frame) != 0) {
            pthread_mutex_lock(&links->lock);
            link->is_given_up = 1;
            pthread_mutex_unlock(&links->lock);
            return -1;
        }
    }
    return state < 0 ? -1 : 0;
}

void rondo_link_read(struct rondo_links *links, struct rondo_link *link)
{
    for (int i = 0; i < FILLS_ROUND && link->connection.fd >= 0 && is_read(link) && !links->giving_up; i++) {
        int state = rondo_frame_connection_fill(&link->connection);
        if (state == 0)
            return;
        rondo_heartbeat_heard(&link->heartbeat);
        if (state > 0)
            state = rondo_link_take_frames(links, link);
        if (state < 0 && link->connection.fd >= 0) {
            rondo_link_lose(links, link);
            return;
        }
    }
}

/* Reads what the rank has sent before it died, as far as it has come. */
static void drain(struct rondo_links *links, struct rondo_link *link)
{
    link->is_final = 1;
    if (link->paused != 0)
        rondo_link_resume(links, link);
    take_rest(links, link);
}

/* A rank has died, or says with its last words that this one has, whose connection it has ended. */
static void conclude_death(struct rondo_links *links, int rank)
{
    struct rondo_link *both[2] = {links->in[rank], links->out[rank]};
    for (int i = 0; i < 2; i++)
        if (both[i] != NULL && both[i]->state == RONDO_LINK_OPEN)
            drain(links, both[i]);
    if (!links->giving_up && !rondo_links_is_gone(links, rank))
        depart(links, rank, RONDO_CONTROL_DIED, rank);
}

static void conclude_deaths(struct rondo_links *links)
{
    for (int rank = 0; rank < links->options.size && !links->giving_up; rank++)
        if (links->noticed[rank]) {
            links->noticed[rank] = 0;
            conclude_death(links, rank);
        }
}

static struct rondo_link *find_resumable(struct rondo_links *links)
{
    struct rondo_link *link = rondo_links_first(links);
    while (link != NULL && (link->paused == 0 || is_waiting(links, link)))
        link = link->next;
    return link;
}

static void resume_some(struct rondo_links *links)
{
    for (struct rondo_link *link; !links->giving_up && !links->noticed_some && (link = find_resumable(links)) != NULL;) {
        rondo_link_resume(links, link);
        if (rondo_link_take_frames(links, link) != 0 && link->connection.fd >= 0)
            rondo_link_lose(links, link);
    }
}

/* Does what serving has led to, which may lead to more. */
void rondo_links_settle(struct rondo_links *links)
{
    while (!atomic_load(&links->lost) && (links->noticed_some || links->some_may_resume || links->giving_up)) {
        const int died = links->noticed_some;
        links->noticed_some = links->some_may_resume = 0;
        if (links->giving_up) {
            lose_all(links);
            break;
        }
        if (died)
            conclude_deaths(links);
        resume_some(links);
        links->some_may_resume |= links->noticed_some;
    }
    rondo_links_free_closed(links);
}
