/*
 * See device/cuda/block_budget.h. Each stream that has been used lately has a place and may hold its share of the
 * multiprocessors: at worst, all do at once. A stream that came when fewer were known may hold more until its kernels have
 * ended, which is asked for only then; until then newcomers, of which more may follow, get a part of what is left.
 */
#include "device/cuda/block_budget.h"

#include <pthread.h>
#include <stdlib.h>

/* Places are reserved for so many launches on other streams. Newcomers find them reserved for fewer: */
#define RESERVED     64
#define RESERVED_FEW 16
#define FEW          4 /* where there are no more places than these; else not at all. */

/* Multiprocessors that no stream holds: for what the host asks of the GPU (device/cuda/device.c: fetch), and a reserve for
 * newcomers. */
#define FREE      1
#define LEFT_OVER 3
#define SERVED    4 /* a newcomer gets one in so many of what is left */

/* How the end of a launch is recognized. */
struct mark {
    uint32_t told, until; /* it tells; or */
    uint32_t count;       /* so many operations have been executed */
    struct {
        uint64_t order;
        uint32_t lane;
    } operations[RONDO_BLOCK_BUDGET_QUIET];
};

/* The place of a stream, or (captured) of all graphs that a user has captured from it. */
struct place {
    int used, captured;
    uint64_t stream;
    struct rondo_block_budget_user *user; /* that launched last */
    uint64_t asked;                       /* number of the last launch */
    /* Most blocks that may run at once of what has been launched and has not ended: until that launch ends, and of those
     * launched since. */
    uint32_t held, held_since;
    struct mark until, last;
};

struct rondo_block_budget {
    struct rondo_block_budget *next;
    int gpu, users;
    uint32_t multiprocessors, daemons; /* blocks of all daemons that have run */
    pthread_mutex_t lock;
    uint64_t asked;
    uint32_t streams, end; /* places in use; end of the array's used part */
    struct place places[RONDO_PLACES];
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rondo_block_budget *all;

struct rondo_block_budget *rondo_block_budget_enter(int gpu, uint32_t multiprocessors)
{
    pthread_mutex_lock(&all_lock);
    struct rondo_block_budget *budget = all;
    while (budget != NULL && budget->gpu != gpu)
        budget = budget->next;
    if (budget == NULL && (budget = calloc(1, sizeof(*budget))) != NULL) {
        budget->gpu = gpu;
        budget->multiprocessors = multiprocessors;
        pthread_mutex_init(&budget->lock, NULL);
        budget->next = all;
        all = budget;
    }
    if (budget != NULL)
        budget->users++;
    pthread_mutex_unlock(&all_lock);
    return budget;
}

static void vacate(struct rondo_block_budget *budget, struct place *place)
{
    *place = (struct place){0};
    budget->streams--;
}

void rondo_block_budget_leave(struct rondo_block_budget *budget, struct rondo_block_budget_user *user)
{
    pthread_mutex_lock(&all_lock);
    pthread_mutex_lock(&budget->lock);
    for (uint32_t i = 0; i < budget->end; i++)
        if (budget->places[i].used && budget->places[i].user == user)
            vacate(budget, &budget->places[i]);
    budget->daemons -= user->daemon;
    pthread_mutex_unlock(&budget->lock);
    if (--budget->users == 0) {
        struct rondo_block_budget **link = &all;
        while (*link != budget)
            link = &(*link)->next;
        *link = budget->next;
        pthread_mutex_destroy(&budget->lock);
        free(budget);
    }
    pthread_mutex_unlock(&all_lock);
}

void rondo_block_budget_daemon(struct rondo_block_budget *budget, struct rondo_block_budget_user *user, uint32_t blocks)
{
    pthread_mutex_lock(&budget->lock);
    budget->daemons += blocks - user->daemon;
    user->daemon = blocks;
    pthread_mutex_unlock(&budget->lock);
}

static int is_over(struct rondo_block_budget_user *user, uint32_t place, const struct mark *mark)
{
    if (mark->told)
        return (int32_t) (user->told(user, place) - mark->until) >= 0; /* counts wrap */
    for (uint32_t i = 0; i < mark->count; i++)
        if (user->executed(user, mark->operations[i].lane) <= mark->operations[i].order)
            return 0;
    return 1;
}

/* Updates a place from the launches that have ended. */
static void settle(struct rondo_block_budget *budget, struct place *place)
{
    const uint32_t i = (uint32_t) (place - budget->places);
    if (place->captured || place->held == 0 || !is_over(place->user, i, &place->until))
        return;
    place->held = place->held_since > 0 && !is_over(place->user, i, &place->last) ? place->held_since : 0;
    place->held_since = 0;
    place->until = place->last;
}

/* Frees the places of streams on which nothing runs and nothing was launched for so many launches. */
static void clear(struct rondo_block_budget *budget, uint64_t launches)
{
    for (uint32_t i = 0; i < budget->end; i++) {
        struct place *place = &budget->places[i];
        if (!place->used || place->captured || budget->asked - place->asked < launches)
            continue;
        settle(budget, place);
        if (place->held == 0)
            vacate(budget, place);
    }
}

/* The stream's place; NULL if all places are taken. */
static struct place *place_of(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                              const struct rondo_block_budget_request *wish)
{
    for (uint32_t i = 0; i < budget->end; i++) {
        struct place *place = &budget->places[i];
        if (place->used && place->stream == wish->stream && !place->captured == !wish->captured &&
            (!wish->captured || place->user == user))
            return place;
    }
    clear(budget, budget->streams <= FEW ? RESERVED_FEW : 0);
    uint32_t i = 0;
    while (i < RONDO_PLACES && budget->places[i].used)
        i++;
    if (i == RONDO_PLACES)
        return NULL;
    budget->end = i < budget->end ? budget->end : i + 1;
    budget->streams++;
    budget->places[i] = (struct place){.used = 1, .captured = wish->captured, .stream = wish->stream, .user = user};
    return &budget->places[i];
}

static uint32_t held_by_others(const struct rondo_block_budget *budget, const struct place *place)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < budget->end; i++)
        if (&budget->places[i] != place)
            held += budget->places[i].held;
    return held;
}

/* Number of blocks that a launch may hold on one of several streams. */
static uint32_t allowed(struct rondo_block_budget *budget, const struct place *place)
{
    const uint32_t taken = budget->daemons + FREE, room = budget->multiprocessors > taken ? budget->multiprocessors - taken : 0;
    const uint32_t share = (room > LEFT_OVER ? room - LEFT_OVER : 0) / budget->streams;
    const int newcomer = place->asked == 0;
    uint32_t others = held_by_others(budget, place);
    if (others + share > room || (newcomer && others > 0)) {
        for (uint32_t i = 0; i < budget->end; i++)
            if (&budget->places[i] != place && (budget->places[i].held > share || newcomer))
                settle(budget, &budget->places[i]);
        others = held_by_others(budget, place);
    }
    if (others + share <= room && (!newcomer || others == 0))
        return share;
    return room > others ? (room - others + SERVED - 1) / SERVED : 0;
}

static void hold(struct place *place, struct rondo_block_budget_user *user, uint32_t blocks,
                 const struct rondo_block_budget_request *wish, const struct rondo_block_budget_grant *grant)
{
    const int another = place->user != user; /* the previous launch does not tell this user anything */
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

void rondo_block_budget_take(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                             const struct rondo_block_budget_request *wish, struct rondo_block_budget_grant *grant)
{
    pthread_mutex_lock(&budget->lock);
    if (++budget->asked % RESERVED == 0)
        clear(budget, RESERVED);
    struct place *place = place_of(budget, user, wish);
    const int alone = place != NULL && budget->streams == 1;
    const uint32_t most = alone ? UINT32_MAX : place != NULL ? allowed(budget, place) : 1;
    const uint32_t least = wish->least > 1 ? wish->least : 1, blocks = most > least ? most : least;
    grant->blocks = wish->blocks < blocks ? wish->blocks : blocks;
    grant->overlaps = wish->overlaps && grant->blocks <= most / 2;
    grant->place = place == NULL || wish->captured ? RONDO_NOWHERE : (uint32_t) (place - budget->places);
    grant->tells = grant->place != RONDO_NOWHERE && (!alone || wish->tells || wish->count > RONDO_BLOCK_BUDGET_QUIET);
    grant->until = grant->tells ? user->telling[grant->place] += wish->count : 0;
    if (place != NULL) {
        /* The first launch has none before it. */
        hold(place, user, grant->overlaps && place->asked > 0 ? 2 * grant->blocks : grant->blocks, wish, grant);
        place->asked = budget->asked;
    }
    pthread_mutex_unlock(&budget->lock);
}

void rondo_block_budget_return(struct rondo_block_budget *budget, struct rondo_block_budget_user *user,
                               const struct rondo_block_budget_request *wish, const struct rondo_block_budget_grant *grant)
{
    if (!grant->tells) /* a lane's numbers do not tell then */
        return;
    pthread_mutex_lock(&budget->lock);
    struct place *place = &budget->places[grant->place];
    user->telling[grant->place] -= wish->count;
    if (place->user == user && place->until.until == grant->until)
        place->until.until -= wish->count;
    if (place->user == user && place->last.until == grant->until)
        place->last.until -= wish->count;
    pthread_mutex_unlock(&budget->lock);
}
