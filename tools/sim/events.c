/*
 * A round event by event: in each pass every GPU that is not suspended takes its next step, a start or a synchronization, in
 * the order of their numbers, as in the paper's artifact. What has been decided by jumping (tools/sim/jump.c) can be checked
 * with it, and it decides what depends on time: the intersection test and the resource limit.
 */
#include "tools/sim/sim.h"

#include <stdlib.h>
#include <string.h>

struct state {
    uint32_t before;                 /* collectives started */
    uint32_t undone;                 /* of them, those that others have not all started */
    size_t synchronization, segment; /* the next of the round's */
    bool suspended;
};

struct sim_events {
    const struct sim_layout *layout;
    struct state *states;
    uint32_t *missing; /* of each collective: members that have not started it */
    int *full;         /* of each group: members at the resource limit */
    int *suspended;    /* GPUs that are */
    int suspended_count, unfinished;
};

void sim_events_free(struct sim_events *e)
{
    if (e == NULL)
        return;
    free(e->states);
    free(e->missing);
    free(e->full);
    free(e->suspended);
    free(e);
}

int sim_events_make(const struct sim_layout *layout, struct sim_events **events)
{
    struct sim_events *e = calloc(1, sizeof(*e));
    *events = e;
    if (e == NULL)
        return -1;
    e->layout = layout;
    e->states = calloc((size_t) layout->gpus, sizeof(*e->states));
    e->missing = calloc((size_t) layout->collectives + 1, sizeof(*e->missing));
    e->full = calloc((size_t) layout->groups, sizeof(*e->full));
    e->suspended = calloc((size_t) layout->gpus, sizeof(*e->suspended));
    return e->states == NULL || e->missing == NULL || e->full == NULL || e->suspended == NULL ? -1 : 0;
}

static uint32_t length_of(const struct sim_layout *l, int gpu)
{
    return (uint32_t) (l->list_first[gpu + 1] - l->list_first[gpu]);
}

static void reset(struct sim_events *e, const struct sim_round *round)
{
    const struct sim_layout *l = e->layout;
    size_t synchronization = 0, segment = 0;
    e->suspended_count = e->unfinished = 0;
    for (int gpu = 0; gpu < l->gpus; gpu++) {
        e->states[gpu] = (struct state){.synchronization = synchronization, .segment = segment};
        while (synchronization < round->synchronization_count && round->synchronizations[synchronization].gpu == gpu)
            synchronization++;
        while (segment < round->segment_count && round->segments[segment].gpu == gpu)
            segment++;
        e->unfinished += length_of(l, gpu) > 0;
    }
    for (int g = 0; g < l->groups; g++) {
        uint32_t members = (uint32_t) (l->member_first[g + 1] - l->member_first[g]);
        for (uint32_t c = l->collective_first[g]; c < l->collective_first[g + 1]; c++)
            e->missing[c] = members;
    }
    memset(e->full, 0, (size_t) l->groups * sizeof(*e->full));
}

/* The collective that the GPU starts next. */
static uint32_t next_collective(const struct sim_events *e, const struct sim_round *round, int gpu)
{
    struct state *state = &e->states[gpu];
    uint32_t place = state->before;
    while (state->segment < round->segment_count) {
        const struct sim_segment *s = &round->segments[state->segment];
        if (s->gpu != gpu || place < s->first)
            break;
        if (place < s->first + s->length) {
            place = round->orders[s->order_first + (place - s->first)];
            break;
        }
        state->segment++;
    }
    return e->layout->list[e->layout->list_first[gpu] + place];
}

static struct sim_point point_of(const struct sim_events *e, const struct sim_round *round, int gpu)
{
    uint32_t before = e->states[gpu].before;
    return (struct sim_point){gpu, before, sim_segment_at(round, gpu, before)};
}

/* ---- the artifact's tests ---- */

static bool intersects(const struct sim_events *e, const struct sim_round *round, int gpu)
{
    struct sim_point here = point_of(e, round, gpu);
    bool waits = false, awaited = false;
    uint32_t unused;
    for (int i = 0; i < e->suspended_count && !(waits && awaited); i++) {
        if (e->suspended[i] == gpu)
            continue;
        struct sim_point there = point_of(e, round, e->suspended[i]);
        waits = waits || sim_point_ahead(e->layout, round, &here, &there, &unused);
        awaited = awaited || sim_point_ahead(e->layout, round, &there, &here, &unused);
    }
    return waits && awaited;
}

/* A GPU's number of unfinished collectives has reached the limit (by 1) or left it (by -1). True if a whole group is full. */
static bool count_full(struct sim_events *e, int gpu, int by)
{
    const struct sim_layout *l = e->layout;
    bool deadlock = false;
    for (uint32_t s = l->slot_first[gpu]; s < l->slot_first[gpu + 1]; s++) {
        uint32_t g = l->slot_group[s];
        e->full[g] += by;
        deadlock |= e->full[g] == l->member_first[g + 1] - l->member_first[g];
    }
    return deadlock;
}

/* ---- steps ---- */

static void succeed(struct sim_events *e, uint32_t collective, int64_t limit)
{
    const struct sim_layout *l = e->layout;
    uint32_t g = l->group_of[collective];
    bool resumed = false;
    for (int m = l->member_first[g]; m < l->member_first[g + 1]; m++) {
        struct state *state = &e->states[l->member[m]];
        if (limit > 0 && state->undone == limit)
            count_full(e, l->member[m], -1);
        if (--state->undone == 0 && state->suspended) {
            state->suspended = false;
            resumed = true;
        }
    }
    int retained = 0;
    for (int i = 0; resumed && i < e->suspended_count; i++)
        if (e->states[e->suspended[i]].suspended)
            e->suspended[retained++] = e->suspended[i];
    if (resumed)
        e->suspended_count = retained;
}

/* True if the step is the end: a deadlock by the configured test. */
static bool step(struct sim_events *e, const struct sim_config *config, const struct sim_round *round, int gpu)
{
    struct state *state = &e->states[gpu];
    if (state->synchronization < round->synchronization_count) {
        const struct sim_synchronization *s = &round->synchronizations[state->synchronization];
        if (s->gpu == gpu && s->before == state->before) {
            state->synchronization++;
            if (state->undone == 0)
                return false;
            state->suspended = true;
            e->suspended[e->suspended_count++] = gpu;
            return config->test == SIM_INTERSECTION && intersects(e, round, gpu);
        }
    }
    uint32_t collective = next_collective(e, round, gpu);
    bool exceeded = false;
    e->unfinished -= ++state->before == length_of(e->layout, gpu);
    state->undone++;
    if (config->resource_limit > 0 && state->undone == config->resource_limit)
        exceeded = count_full(e, gpu, 1);
    if (--e->missing[collective] == 0) {
        succeed(e, collective, config->resource_limit);
        exceeded = false; /* this GPU has room again, and no group without it has changed for the worse */
    }
    return exceeded;
}

/* Streams: no start waits, only the suspended do. */
static int decide_sync(struct sim_events *e, const struct sim_config *config, const struct sim_round *round)
{
    while (e->unfinished > 0) {
        bool moved = false;
        for (int gpu = 0; gpu < e->layout->gpus; gpu++) {
            if (e->states[gpu].suspended || e->states[gpu].before == length_of(e->layout, gpu))
                continue;
            moved = true;
            if (step(e, config, round, gpu))
                return 1;
        }
        if (!moved)
            return 1; /* all that are unfinished are suspended: there is a cycle among them */
    }
    return 0;
}

/* One queue: a GPU starts the next only when the one before has succeeded. */
static int decide_single(struct sim_events *e, const struct sim_round *round)
{
    while (e->unfinished > 0) {
        bool moved = false;
        for (int gpu = 0; gpu < e->layout->gpus; gpu++) {
            struct state *state = &e->states[gpu];
            if (state->undone > 0 || state->before == length_of(e->layout, gpu))
                continue;
            uint32_t collective = next_collective(e, round, gpu);
            moved = true;
            e->unfinished -= ++state->before == length_of(e->layout, gpu);
            state->undone++;
            if (--e->missing[collective] == 0)
                succeed(e, collective, 0);
        }
        if (!moved)
            return 1;
    }
    return 0;
}

int sim_events_decide(struct sim_events *e, const struct sim_config *config, const struct sim_round *round)
{
    if (round->failed)
        return -1;
    reset(e, round);
    return config->model == SIM_SINGLE ? decide_single(e, round) : decide_sync(e, config, round);
}
