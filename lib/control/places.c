/*
 * Where the ranks of a job listen (lib/control/links.h). The root tells a rank the places of its neighbours alone, so that what
 * it sends grows with n log n. While the job forms the neighbours tell each other the rest: at step s, a power of two, a rank
 * tells the rank s after it the places of itself and of the s - 1 ranks before it, which it has by then from those 1, 2, ...,
 * s/2 before it. So after log n steps each rank has all, of which it has sent and received no more than n - 1.
 */
#include "lib/control/link.h"

#include <stdlib.h>
#include <string.h>

enum { PART = RONDO_FRAME_SPARE_DATA / RONDO_ADDRESS_STORED }; /* places in one frame, for which memory is set aside */

/* Places that a rank tells the one `step` after it: at the last step only those that it does not have. */
static int to_tell(const struct rondo_links *links, int step)
{
    return step < links->options.size - step ? step : links->options.size - step;
}

/* The rank that is so far before the given one, or after it where distance is less than 0. */
static int rank_before(const struct rondo_links *links, int rank, int distance)
{
    const int size = links->options.size;
    return (rank - distance % size + size) % size;
}

static unsigned char *place_of(const struct rondo_links *links, int rank)
{
    return links->places + (size_t) rank * RONDO_ADDRESS_STORED;
}

/* Returns 0, or -1 without memory. With the lock. */
static int make_table(struct rondo_links *links)
{
    if (links->places == NULL)
        links->places = calloc((size_t) links->options.size, RONDO_ADDRESS_STORED);
    return links->places != NULL ? 0 : -1;
}

int rondo_links_set_places(struct rondo_links *links, const unsigned char *places, size_t bytes)
{
    const int rank = links->options.rank, size = links->options.size;
    size_t at = RONDO_ADDRESS_STORED;
    for (int step = 1; step < size; step *= 2)
        at += RONDO_ADDRESS_STORED;
    if (bytes != 0 && bytes != at)
        return -1;
    if (bytes == 0)
        return 0;
    pthread_mutex_lock(&links->lock);
    const int result = make_table(links);
    if (result == 0) {
        memcpy(place_of(links, rank), places, RONDO_ADDRESS_STORED);
        at = RONDO_ADDRESS_STORED;
        for (int step = 1; step < size; step *= 2, at += RONDO_ADDRESS_STORED)
            memcpy(place_of(links, rank_before(links, rank, -step)), places + at, RONDO_ADDRESS_STORED);
        links->tells_places = 1;
    }
    pthread_mutex_unlock(&links->lock);
    return result;
}

/* With the lock. */
static void tell_places(struct rondo_links *links, struct rondo_link *link, int count)
{
    unsigned char data[PART * RONDO_ADDRESS_STORED];
    for (int first = 0; first < count; first += PART) {
        const int part = count - first < PART ? count - first : PART;
        for (int i = 0; i < part; i++)
            memcpy(data + (size_t) i * RONDO_ADDRESS_STORED,
                   place_of(links, rank_before(links, links->options.rank, first + i)), RONDO_ADDRESS_STORED);
        rondo_link_say(links, link, RONDO_FRAME_PLACES, links->options.rank, data, (size_t) part * RONDO_ADDRESS_STORED);
    }
    link->places = count;
}

int rondo_links_share_places(struct rondo_links *links, int *missing)
{
    const int rank = links->options.rank, size = links->options.size;
    *missing = -1;
    for (int step = 1; step < size && links->tells_places && *missing < 0; step *= 2) {
        const int count = to_tell(links, step), before = rank_before(links, rank, step),
                  after = rank_before(links, rank, -step);
        struct rondo_link *to = links->out[after];
        const struct rondo_link *from = links->in[before];
        if (to != NULL && to->state == RONDO_LINK_OPEN && to->places == 0)
            tell_places(links, to, count);
        if (to == NULL || to->places == 0)
            *missing = after;
        else if (from == NULL || from->places < count)
            *missing = before;
    }
    return *missing < 0;
}

int rondo_link_take_places(struct rondo_links *links, struct rondo_link *link, const struct rondo_frame *frame)
{
    const int distance = rank_before(links, links->options.rank, link->peer);
    const int count = (int) (frame->bytes / RONDO_ADDRESS_STORED);
    if (link->is_out || (distance & (distance - 1)) != 0 || frame->bytes % RONDO_ADDRESS_STORED != 0 ||
        count > to_tell(links, distance) - link->places)
        return -1;
    pthread_mutex_lock(&links->lock);
    const int result = make_table(links);
    for (int i = 0; result == 0 && i < count; i++)
        memcpy(place_of(links, rank_before(links, link->peer, link->places + i)),
               frame->data + (size_t) i * RONDO_ADDRESS_STORED, RONDO_ADDRESS_STORED);
    link->places += count;
    links->giving_up |= result != 0;
    pthread_mutex_unlock(&links->lock);
    return 0;
}
