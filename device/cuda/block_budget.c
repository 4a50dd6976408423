/*
 * See seats.h. Each stream that has been used lately has a place, and may hold its share of the multiprocessors: at worst all
 * do at once. Who came when fewer streams were known may hold more until those kernels are over, which is asked only then;
 * newcomers, of whom more may follow, get a part of what is left meanwhile.
 */
#include "device/cuda/block_budget.h"

#include <pthread.h>
#include <stdlib.h>

/* Places are kept for so many launches on other streams. Newcomers find them kept for less: where there are few, */
#define KEPT     64
#define KEPT_FEW 16
#define FEW      4 /* not more than these; else not at all. */

/* Multiprocessors that are nobody's: for what the host asks the GPU (cuda_device.c: fetch); and nobody's share: for newcomers.
 */
#define FREE      1
#define LEFT_OVER 3
#define SERVED    4 /* of what is left a newcomer gets one in so many */

/* How to know that a launch is over. */
struct mark {
    uint32_t told, until; /* it tells; else */
    uint32_t count;       /* these have been executed */
    struct {
        uint64_t order;
        uint32_t lane;
    } operations[RONDO_SEATS_QUIET];
};

/* Of a stream, or (captured) of the graphs that a user has captured from it. */
struct place {
    int used, captured;
    uint64_t stream;
    struct rondo_seats_user *user; /* of the last launch */
    uint64_t asked;                /* when: number of the launch */
    /* Blocks that may run at once of what has been launched and is not over: the most, until that launch is, and of those
     * since. */
    uint32_t held, held_since;
    struct mark until, last;
};

struct rondo_seats {
    struct rondo_seats *next;
    int gpu, users;
    uint32_t multiprocessors, daemons; /* blocks of all daemons that have run */
    pthread_mutex_t lock;
    uint64_t asked;
    uint32_t streams, end; /* places used; behind the last of them */
    struct place places[RONDO_PLACES];
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rondo_seats *all;

struct rondo_seats *rondo_seats_enter(int gpu, uint32_t multiprocessors)
{
    pthread_mutex_lock(&all_lock);
    struct rondo_seats *seats = all;
    while (seats != NULL && seats->gpu != gpu)
        seats = seats->next;
    if (seats == NULL && (seats = calloc(1, sizeof(*seats))) != NULL) {
        seats->gpu = gpu;
        seats->multiprocessors = multiprocessors;
        pthread_mutex_init(&seats->lock, NULL);
        seats->next = all;
        all = seats;
    }
    if (seats != NULL)
        seats->users++;
    pthread_mutex_unlock(&all_lock);
    return seats;
}

static void vacate(struct rondo_seats *seats, struct place *place)
{
    *place = (struct place){0};
    seats->streams--;
}

void rondo_seats_leave(struct rondo_seats *seats, struct rondo_seats_user *user)
{
    pthread_mutex_lock(&all_lock);
    pthread_mutex_lock(&seats->lock);
    for (uint32_t i = 0; i < seats->end; i++)
        if (seats->places[i].used && seats->places[i].user == user)
            vacate(seats, &seats->places[i]);
    seats->daemons -= user->daemon;
    pthread_mutex_unlock(&seats->lock);
    if (--seats->users == 0) {
        struct rondo_seats **link = &all;
        while (*link != seats)
            link = &(*link)->next;
        *link = seats->next;
        pthread_mutex_destroy(&seats->lock);
        free(seats);
    }
    pthread_mutex_unlock(&all_lock);
}

void rondo_seats_daemon(struct rondo_seats *seats, struct rondo_seats_user *user, uint32_t blocks)
{
    pthread_mutex_lock(&seats->lock);
    seats->daemons += blocks - user->daemon;
    user->daemon = blocks;
    pthread_mutex_unlock(&seats->lock);
}

static int is_over(struct rondo_seats_user *user, uint32_t place, const struct mark *mark)
{
    if (mark->told)
        return (int32_t) (user->told(user, place) - mark->until) >= 0; /* counts wrap */
    for (uint32_t i = 0; i < mark->count; i++)
        if (user->executed(user, mark->operations[i].lane) <= mark->operations[i].order)
            return 0;
    return 1;
}

/* Looks at what is over. */
static void settle(struct rondo_seats *seats, struct place *place)
{
    const uint32_t i = (uint32_t) (place - seats->places);
    if (place->captured || place->held == 0 || !is_over(place->user, i, &place->until))
        return;
    place->held = place->held_since > 0 && !is_over(place->user, i, &place->last) ? place->held_since : 0;
    place->held_since = 0;
    place->until = place->last;
}

/* Places of streams that nothing runs on any more, and on which nothing was launched for so many launches. */
static void clear(struct rondo_seats *seats, uint64_t launches)
{
    for (uint32_t i = 0; i < seats->end; i++) {
        struct place *place = &seats->places[i];
        if (!place->used || place->captured || seats->asked - place->asked < launches)
            continue;
        settle(seats, place);
        if (place->held == 0)
            vacate(seats, place);
    }
}

/* NULL: all places are taken. */
static struct place *place_of(struct rondo_seats *seats, struct rondo_seats_user *user, const struct rondo_seats_wish *wish)
{
    for (uint32_t i = 0; i < seats->end; i++) {
        struct place *place = &seats->places[i];
        if (place->used && place->stream == wish->stream && !place->captured == !wish->captured &&
            (!wish->captured || place->user == user))
            return place;
    }
    clear(seats, seats->streams <= FEW ? KEPT_FEW : 0);
    uint32_t i = 0;
    while (i < RONDO_PLACES && seats->places[i].used)
        i++;
    if (i == RONDO_PLACES)
        return NULL;
    seats->end = i < seats->end ? seats->end : i + 1;
    seats->streams++;
    seats->places[i] = (struct place){.used = 1, .captured = wish->captured, .stream = wish->stream, .user = user};
    return &seats->places[i];
}

static uint32_t held_by_others(const struct rondo_seats *seats, const struct place *place)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < seats->end; i++)
        if (&seats->places[i] != place)
            held += seats->places[i].held;
    return held;
}

/* Blocks that a launch on one of several streams may hold. */
static uint32_t allowed(struct rondo_seats *seats, const struct place *place)
{
    const uint32_t taken = seats->daemons + FREE, room = seats->multiprocessors > taken ? seats->multiprocessors - taken : 0;
    const uint32_t share = (room > LEFT_OVER ? room - LEFT_OVER : 0) / seats->streams;
    const int newcomer = place->asked == 0;
    uint32_t others = held_by_others(seats, place);
    if (others + share > room || (newcomer && others > 0)) {
        for (uint32_t i = 0; i < seats->end; i++)
            if (&seats->places[i] != place && (seats->places[i].held > share || newcomer))
                settle(seats, &seats->places[i]);
        others = held_by_others(seats, place);
    }
    if (others + share <= room && (!newcomer || others == 0))
        return share;
    return room > others ? (room - others + SERVED - 1) / SERVED : 0;
}

static void hold(struct place *place, struct rondo_seats_user *user, uint32_t blocks, const struct rondo_seats_wish *wish,
                 const struct rondo_seats_grant *grant)
{
    const int another = place->user != user; /* whom the one before does not tell anything */
    place->last = (struct mark){.told = (uint32_t) grant->tells,
                                .until = grant->until,
                                .count = grant->tells || wish->captured /* never over */ ? 0 : wish->count};
    for (uint32_t i = 0; i < place->last.count; i++) {
        place->last.operations[i].lane = wish->operations[i].operation.lane;
        place->last.operations[i].order = wish->operations[i].order;
    }
    if (blocks >= place->held || another) {
        place->held = blocks > place->held ? blocks : place->held;
        place->held_since = 0;
        place->until = place->last;
        place->user = user;
    } else {
        place->held_since = blocks > place->held_since ? blocks : place->held_since;
    }
}

void rondo_seats_take(struct rondo_seats *seats, struct rondo_seats_user *user, const struct rondo_seats_wish *wish,
                      struct rondo_seats_grant *grant)
{
    pthread_mutex_lock(&seats->lock);
    if (++seats->asked % KEPT == 0)
        clear(seats, KEPT);
    struct place *place = place_of(seats, user, wish);
    const int alone = place != NULL && seats->streams == 1;
    const uint32_t most = alone ? UINT32_MAX : place != NULL ? allowed(seats, place) : 1;
    const uint32_t least = wish->least > 1 ? wish->least : 1, blocks = most > least ? most : least;
    grant->blocks = wish->blocks < blocks ? wish->blocks : blocks;
    grant->overlaps = wish->overlaps && grant->blocks <= most / 2;
    grant->place = place == NULL || wish->captured ? RONDO_NOWHERE : (uint32_t) (place - seats->places);
    grant->tells = grant->place != RONDO_NOWHERE && (!alone || wish->tells || wish->count > RONDO_SEATS_QUIET);
    grant->until = grant->tells ? user->telling[grant->place] += wish->count : 0;
    if (place != NULL) {
        /* The first one follows none. */
        hold(place, user, grant->overlaps && place->asked > 0 ? 2 * grant->blocks : grant->blocks, wish, grant);
        place->asked = seats->asked;
    }
    pthread_mutex_unlock(&seats->lock);
}

void rondo_seats_return(struct rondo_seats *seats, struct rondo_seats_user *user, const struct rondo_seats_wish *wish,
                        const struct rondo_seats_grant *grant)
{
    if (!grant->tells) /* its operations' numbers will be others' */
        return;
    pthread_mutex_lock(&seats->lock);
    struct place *place = &seats->places[grant->place];
    user->telling[grant->place] -= wish->count;
    if (place->user == user && place->until.until == grant->until)
        place->until.until -= wish->count;
    if (place->user == user && place->last.until == grant->until)
        place->last.until -= wish->count;
    pthread_mutex_unlock(&seats->lock);
}
