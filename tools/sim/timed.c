/*
 * A round of the synchronization model in time, from synchronization to synchronization. Between its synchronizations a GPU
 * starts one collective a pass, so where it stands at any time follows from where it stood after the last one; only a
 * suspension depends on others, and ends when they have started what it waits for. The times are those of tools/sim/events.c:
 * pass times GPUs plus the GPU whose turn it is.
 */
#include "tools/sim/sim.h"

#include <stdlib.h>

struct trajectory {
    uint64_t pass;    /* of its next turn, and */
    uint32_t before;  /* what it has started by then */
    uint32_t length;  /* of its list */
    size_t next, end; /* its synchronizations */
    bool suspended;
    uint32_t stamp; /* of its event in the heap: others are out of date */
};

/* At the same time a synchronization comes first: what another may be waiting for is not started then but later. */
struct event {
    uint64_t key; /* 2 * time, and 1 more for the end of a suspension */
    int gpu;
    uint32_t stamp;
};

struct sim_timed {
    const struct sim_layout *layout;
    struct trajectory *gpus;
    int *suspended; /* the GPUs that are */
    int suspended_count;
    struct event *heap; /* the earliest first; a GPU that is not suspended: its synchronization; else when it may resume */
    size_t heap_count, heap_room;
};

void sim_timed_free(struct sim_timed *t)
{
    if (t == NULL)
        return;
    free(t->gpus);
    free(t->suspended);
    free(t->heap);
    free(t);
}

int sim_timed_make(const struct sim_layout *layout, struct sim_timed **timed)
{
    struct sim_timed *t = calloc(1, sizeof(*t));
    *timed = t;
    if (t == NULL)
        return -1;
    t->layout = layout;
    t->gpus = calloc((size_t) layout->gpus, sizeof(*t->gpus));
    t->suspended = calloc((size_t) layout->gpus, sizeof(*t->suspended));
    return t->gpus == NULL || t->suspended == NULL ? -1 : 0;
}

/* ---- the heap ---- */

static bool push(struct sim_timed *t, uint64_t time, int gpu)
{
    uint64_t key = 2 * time + t->gpus[gpu].suspended;
    if (t->heap_count == t->heap_room) {
        size_t room = t->heap_room == 0 ? 256 : 2 * t->heap_room;
        struct event *larger = realloc(t->heap, room * sizeof(*larger));
        if (larger == NULL)
            return false;
        t->heap = larger;
        t->heap_room = room;
    }
    size_t i = t->heap_count++;
    for (; i > 0 && t->heap[(i - 1) / 2].key > key; i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = (struct event){key, gpu, ++t->gpus[gpu].stamp};
    return true;
}

static struct event pop(struct sim_timed *t)
{
    struct event first = t->heap[0], last = t->heap[--t->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < t->heap_count; i = child) {
        if (child + 1 < t->heap_count && t->heap[child + 1].key < t->heap[child].key)
            child++;
        if (t->heap[child].key >= last.key)
            break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
    return first;
}

/* ---- where GPUs stand ---- */

/* What the GPU has started when the turn of time is over. */
static uint32_t started(const struct sim_timed *t, int gpu, uint64_t time)
{
    const struct trajectory *at = &t->gpus[gpu];
    uint64_t turns = time >= (uint64_t) gpu ? (time - (uint64_t) gpu) / (uint64_t) t->layout->gpus + 1 : 0; /* taken so far */
    if (at->suspended || turns <= at->pass)
        return at->before;
    uint64_t before = at->before + (turns - at->pass);
    return before < at->length ? (uint32_t) before : at->length;
}

static struct sim_point point_of(const struct sim_timed *t, const struct sim_round *round, int gpu, uint64_t time)
{
    uint32_t before = started(t, gpu, time);
    return (struct sim_point){gpu, before, sim_segment_at(round, gpu, before)};
}

/* How many collectives the other has to have started until it has started all that they share and here has. */
static uint32_t needed_of(const struct sim_timed *t, const struct sim_round *round, const struct sim_point *here,
                          const struct sim_point *other)
{
    const struct sim_layout *l = t->layout;
    uint32_t s = l->slot_first[here->gpu], o = l->slot_first[other->gpu], needed = 0;
    uint32_t end = here->segment != NULL ? here->segment->first + here->segment->length : here->before;
    while (s < l->slot_first[here->gpu + 1] && o < l->slot_first[other->gpu + 1]) {
        uint32_t group = l->slot_group[s];
        if (group != l->slot_group[o]) {
            *(group < l->slot_group[o] ? &s : &o) += 1;
            continue;
        }
        uint32_t count = l->collective_first[group + 1] - l->collective_first[group];
        const uint32_t *mine = l->position + l->slot_position[s], *theirs = l->position + l->slot_position[o];
        uint32_t i = 0;
        for (uint32_t high = count; i < high;) { /* the first that lies behind all that here can have */
            uint32_t middle = i + (high - i) / 2;
            if (mine[middle] < end)
                i = middle + 1;
            else
                high = middle;
        }
        /* Theirs rise with i, but for segments: going down, the first one outside of any settles it. */
        while (i-- > 0) {
            if (!sim_point_has(l, round, here, mine[i]))
                continue;
            const struct sim_segment *segment = sim_segment_with(round, other->gpu, theirs[i]);
            uint32_t rank = theirs[i];
            if (segment != NULL) {
                const uint32_t *order = round->orders + segment->order_first;
                for (rank = segment->first; order[rank - segment->first] != theirs[i];)
                    rank++;
            }
            needed = rank + 1 > needed ? rank + 1 : needed;
            if (segment == NULL)
                break;
        }
        s++;
        o++;
    }
    return needed;
}

/* The earliest time at which all that the GPU has started by time can have succeeded, if no GPU is held up more than now; time
 * itself if it has; UINT64_MAX if another suspended GPU stands in the way. */
static uint64_t success(const struct sim_timed *t, const struct sim_round *round, int gpu, uint64_t time)
{
    const struct sim_layout *l = t->layout;
    struct sim_point here = point_of(t, round, gpu, time);
    uint64_t latest = time;
    for (uint32_t s = l->slot_first[gpu]; s < l->slot_first[gpu + 1]; s++) {
        uint32_t g = l->slot_group[s];
        for (int m = l->member_first[g]; m < l->member_first[g + 1]; m++) {
            int other = l->member[m];
            const struct trajectory *at = &t->gpus[other];
            struct sim_point there = point_of(t, round, other, time);
            uint32_t needed = other == gpu ? 0 : needed_of(t, round, &here, &there);
            if (needed <= there.before)
                continue;
            if (at->suspended)
                return UINT64_MAX;
            uint64_t when = (at->pass + (needed - at->before) - 1) * (uint64_t) l->gpus + (uint64_t) other;
            latest = when > latest ? when : latest;
        }
    }
    return latest;
}

static bool intersects(const struct sim_timed *t, const struct sim_round *round, int gpu, uint64_t time)
{
    struct sim_point here = point_of(t, round, gpu, time);
    bool waits = false, awaited = false;
    uint32_t unused;
    for (int i = 0; i < t->suspended_count && !(waits && awaited); i++) {
        if (t->suspended[i] == gpu)
            continue;
        struct sim_point there = point_of(t, round, t->suspended[i], time);
        waits = waits || sim_point_ahead(t->layout, round, &here, &there, &unused);
        awaited = awaited || sim_point_ahead(t->layout, round, &there, &here, &unused);
    }
    return waits && awaited;
}

/* ---- events ---- */

static bool push_synchronization(struct sim_timed *t, const struct sim_round *round, int gpu)
{
    struct trajectory *at = &t->gpus[gpu];
    if (at->next == at->end)
        return true;
    uint64_t pass = at->pass + (round->synchronizations[at->next].before - at->before);
    return push(t, pass * (uint64_t) t->layout->gpus + (uint64_t) gpu, gpu);
}

/* Suspended GPUs that another suspended one stood in the way of may see an end now. */
static bool resume(struct sim_timed *t, const struct sim_round *round, int gpu, uint64_t time)
{
    uint64_t gpus = (uint64_t) t->layout->gpus;
    struct trajectory *at = &t->gpus[gpu];
    int retained = 0;
    at->suspended = false;
    at->pass = time / gpus + (time % gpus > (uint64_t) gpu ? 1 : 0);
    for (int i = 0; i < t->suspended_count; i++)
        if (t->suspended[i] != gpu)
            t->suspended[retained++] = t->suspended[i];
    t->suspended_count = retained;
    for (int i = 0; i < retained; i++) {
        uint64_t when = success(t, round, t->suspended[i], time);
        if (when != UINT64_MAX && !push(t, when, t->suspended[i]))
            return false;
    }
    return push_synchronization(t, round, gpu);
}

/* Returns 1 if the intersection test holds, 0, or -1 without memory. */
static int synchronize(struct sim_timed *t, const struct sim_round *round, int gpu, uint64_t time)
{
    struct trajectory *at = &t->gpus[gpu];
    at->before = round->synchronizations[at->next++].before;
    at->pass = time / (uint64_t) t->layout->gpus + 1;
    uint64_t when = success(t, round, gpu, time);
    if (when == time)
        return push_synchronization(t, round, gpu) ? 0 : -1;
    at->suspended = true;
    t->suspended[t->suspended_count++] = gpu;
    if (intersects(t, round, gpu, time))
        return 1;
    return when == UINT64_MAX || push(t, when, gpu) ? 0 : -1;
}

int sim_timed_decide(struct sim_timed *t, const struct sim_round *round)
{
    const struct sim_layout *l = t->layout;
    size_t next = 0;
    if (round->failed)
        return -1;
    t->suspended_count = 0;
    t->heap_count = 0;
    for (int gpu = 0; gpu < l->gpus; gpu++) {
        t->gpus[gpu] = (struct trajectory){.length = (uint32_t) (l->list_first[gpu + 1] - l->list_first[gpu]), .next = next};
        while (next < round->synchronization_count && round->synchronizations[next].gpu == gpu)
            next++;
        t->gpus[gpu].end = next;
        if (!push_synchronization(t, round, gpu))
            return -1;
    }
    while (t->heap_count > 0) {
        struct event e = pop(t);
        struct trajectory *at = &t->gpus[e.gpu];
        uint64_t time = e.key / 2;
        if (e.stamp != at->stamp)
            continue;
        if (at->suspended) {
            uint64_t when = success(t, round, e.gpu, time);
            if (when == time ? !resume(t, round, e.gpu, time) : when != UINT64_MAX && !push(t, when, e.gpu))
                return -1;
        } else {
            int found = synchronize(t, round, e.gpu, time);
            if (found != 0)
                return found;
        }
    }
    return t->suspended_count > 0; /* a cycle is also an intersection, so none should be left */
}
