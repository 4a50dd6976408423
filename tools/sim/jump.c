/*
 * Deciding a round without going through it. Rests on these facts:
 *
 * - Along the common order no GPU ever waits in a circle: who waits, waits for something earlier in the order. So a cycle goes
 *   through a place where some GPU left it, a segment; and in the synchronization model through a segment with a
 *   synchronization strictly inside, because a segment that is all before or all after each synchronization of its GPU looks to
 *   the others as if it were in order.
 * - A cycle lies between the first and the last order value of the segments that it goes through: outside of them the waits
 *   only lead down, and never come back up. Segments whose ranges of values overlap are taken together; a range on its own is
 *   decided on its own.
 *
 * So a round without such segments is over at once, and for the others a graph is searched of what lies in the range: of
 * synchronizations (who has started something that another suspended GPU has not), or of collectives (which precedes which on
 * some GPU).
 */
#include "tools/sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* Beyond these, a search costs more than going through the events; for a cycle to show it is done all the same. */
#define POINTS_MAX 1024
#define ORDERS_MAX 65536

struct range {
    uint32_t low, high;     /* order values */
    size_t first, segments; /* of hot */
};

struct sim_jump {
    const struct sim_layout *layout;
    const struct sim_segment **hot; /* by lower order value */
    struct range *ranges;
    size_t hot_room, range_room;
    /* Synchronizations of a range: */
    struct sim_point *points;
    size_t point_count, point_room;
    /* Depth-first search, over points or collectives: */
    uint32_t *stack, *next; /* nodes on the path, and where the search goes on in each */
    size_t stack_room;
    uint8_t *point_color;
    size_t point_color_room;
    uint32_t *color; /* [collectives]: 2 * epoch on the path, 2 * epoch + 1 done */
    uint32_t epoch;
};

void sim_jump_free(struct sim_jump *j)
{
    if (j == NULL)
        return;
    free(j->hot);
    free(j->ranges);
    free(j->points);
    free(j->stack);
    free(j->next);
    free(j->point_color);
    free(j->color);
    free(j);
}

int sim_jump_make(const struct sim_layout *layout, struct sim_jump **jump)
{
    struct sim_jump *j = calloc(1, sizeof(*j));
    *jump = j;
    if (j == NULL)
        return -1;
    j->layout = layout;
    j->color = calloc((size_t) layout->collectives + 1, sizeof(*j->color));
    return j->color == NULL ? -1 : 0;
}

/* Room for count elements. */
static bool reserve(void *array, size_t *room, size_t count, size_t size)
{
    void **place = array;
    if (count <= *room)
        return true;
    size_t wanted = count * 2;
    void *larger = realloc(*place, wanted * size);
    if (larger == NULL)
        return false;
    *place = larger;
    *room = wanted;
    return true;
}

static bool reserve_stack(struct sim_jump *j, size_t count)
{
    size_t room = j->stack_room;
    return reserve(&j->stack, &room, count, sizeof(*j->stack)) && reserve(&j->next, &j->stack_room, count, sizeof(*j->next));
}

static uint32_t order_at(const struct sim_layout *l, int gpu, uint32_t place)
{
    return l->order[l->list[l->list_first[gpu] + place]];
}

/* ---- ranges ---- */

static int by_low(const void *a, const void *b, void *layout)
{
    const struct sim_layout *l = layout;
    const struct sim_segment *first = *(const struct sim_segment *const *) a, *second = *(const struct sim_segment *const *) b;
    uint32_t x = order_at(l, first->gpu, first->first), y = order_at(l, second->gpu, second->first);
    return x != y ? (x > y) - (x < y) : (first->gpu > second->gpu) - (first->gpu < second->gpu);
}

/* The segments that matter: all, or (synchronization model) those with a synchronization strictly inside. */
static long collect_hot(struct sim_jump *j, const struct sim_round *round, bool any)
{
    size_t count = 0, s = 0;
    if (!reserve(&j->hot, &j->hot_room, round->segment_count, sizeof(*j->hot)))
        return -1;
    for (size_t i = 0; i < round->segment_count; i++) {
        const struct sim_segment *segment = &round->segments[i];
        bool inside = any;
        while (!any && s < round->synchronization_count) {
            const struct sim_synchronization *at = &round->synchronizations[s];
            if (at->gpu > segment->gpu || (at->gpu == segment->gpu && at->before > segment->first)) {
                inside = at->gpu == segment->gpu && at->before < segment->first + segment->length;
                break;
            }
            s++;
        }
        if (inside)
            j->hot[count++] = segment;
    }
    return (long) count;
}

static long make_ranges(struct sim_jump *j, size_t hot)
{
    const struct sim_layout *l = j->layout;
    size_t count = 0;
    if (!reserve(&j->ranges, &j->range_room, hot, sizeof(*j->ranges)))
        return -1;
    qsort_r(j->hot, hot, sizeof(*j->hot), by_low, (void *) l);
    for (size_t i = 0; i < hot; i++) {
        const struct sim_segment *s = j->hot[i];
        uint32_t low = order_at(l, s->gpu, s->first), high = order_at(l, s->gpu, s->first + s->length - 1);
        struct range *last = count > 0 ? &j->ranges[count - 1] : NULL;
        if (last != NULL && low <= last->high) {
            last->high = high > last->high ? high : last->high;
            last->segments++;
        } else
            j->ranges[count++] = (struct range){low, high, i, 1};
    }
    return (long) count;
}

/* ---- cycles ---- */

static bool add_link(struct sim_cycle *cycle, struct sim_link link)
{
    if (!reserve(&cycle->links, &cycle->room, cycle->count + 1, sizeof(*cycle->links)))
        return false;
    cycle->links[cycle->count++] = link;
    return true;
}

/* The search of points found a path from depth from on that closes. */
static int tell_points(struct sim_jump *j, const struct sim_round *round, size_t from, size_t depth, struct sim_cycle *cycle)
{
    if (cycle == NULL)
        return 1;
    cycle->count = 0;
    for (size_t i = from; i <= depth; i++) {
        const struct sim_point *here = &j->points[j->stack[i]], *there = &j->points[j->stack[i == depth ? from : i + 1]];
        uint32_t collective = 0;
        sim_point_ahead(j->layout, round, here, there, &collective);
        if (!add_link(cycle, (struct sim_link){.at = *here, .waits = collective}))
            return -1;
    }
    return 1;
}

static int search_points(struct sim_jump *j, const struct sim_round *round, struct sim_cycle *cycle)
{
    size_t count = j->point_count;
    uint32_t unused;
    if (!reserve_stack(j, count + 1) || !reserve(&j->point_color, &j->point_color_room, count, 1))
        return -1;
    memset(j->point_color, 0, count);
    for (uint32_t start = 0; start < count; start++) {
        long depth = 0;
        if (j->point_color[start] != 0)
            continue;
        j->stack[0] = start;
        j->next[0] = 0;
        j->point_color[start] = 1;
        while (depth >= 0) {
            uint32_t node = j->stack[depth], to = j->next[depth]++;
            if (to >= count) {
                j->point_color[node] = 2;
                depth--;
                continue;
            }
            if (j->point_color[to] == 2 || j->points[to].gpu == j->points[node].gpu ||
                !sim_point_ahead(j->layout, round, &j->points[node], &j->points[to], &unused))
                continue;
            if (j->point_color[to] == 1) {
                size_t from = 0;
                while (j->stack[from] != to)
                    from++;
                return tell_points(j, round, from, (size_t) depth, cycle);
            }
            j->point_color[to] = 1;
            j->stack[++depth] = to;
            j->next[depth] = 0;
        }
    }
    return 0;
}

/* Waits of a synchronization for an earlier one of the same GPU need no edges: what waits for the later one waits for the
 * earlier one too. */
static int decide_range_sync(struct sim_jump *j, const struct sim_round *round, const struct range *range,
                             struct sim_cycle *cycle)
{
    const struct sim_layout *l = j->layout;
    j->point_count = 0;
    for (size_t i = 0; i < round->synchronization_count; i++) {
        const struct sim_synchronization *s = &round->synchronizations[i];
        uint32_t length = (uint32_t) (l->list_first[s->gpu + 1] - l->list_first[s->gpu]);
        /* Without something of the range on either side of it, nothing in the range waits for it, or it for nothing there. */
        if (s->before == 0 || s->before >= length || order_at(l, s->gpu, s->before - 1) < range->low ||
            order_at(l, s->gpu, s->before) > range->high)
            continue;
        if (!reserve(&j->points, &j->point_room, j->point_count + 1, sizeof(*j->points)))
            return -1;
        j->points[j->point_count++] = (struct sim_point){s->gpu, s->before, sim_segment_at(round, s->gpu, s->before)};
    }
    if (j->point_count > POINTS_MAX && cycle == NULL)
        return SIM_UNDECIDED;
    return j->point_count < 2 ? 0 : search_points(j, round, cycle);
}

/* ---- single queue ---- */

/* What the member-th GPU of a collective's group starts right after it, or UINT32_MAX if that is outside of the range. */
static uint32_t successor(const struct sim_layout *l, const struct sim_round *round, int gpu, uint32_t collective,
                          uint32_t high)
{
    uint32_t place = (uint32_t) sim_position(l, gpu, collective), length;
    const uint32_t *list = l->list + l->list_first[gpu];
    length = (uint32_t) (l->list_first[gpu + 1] - l->list_first[gpu]);
    const struct sim_segment *s = sim_segment_at(round, gpu, place);
    if (s == NULL) /* its first place is inside too, here */
        s = sim_segment_at(round, gpu, place + 1);
    if (s != NULL && place >= s->first && place < s->first + s->length) {
        const uint32_t *order = round->orders + s->order_first;
        uint32_t i = 0;
        while (order[i] != place)
            i++;
        if (i + 1 < s->length)
            return list[order[i + 1]];
        place = s->first + s->length - 1; /* goes on behind the segment */
    }
    if (++place >= length)
        return UINT32_MAX;
    const struct sim_segment *following = sim_segment_at(round, gpu, place + 1);
    if (following != NULL && following->first == place)
        place = round->orders[following->order_first];
    return l->order[list[place]] <= high ? list[place] : UINT32_MAX;
}

/* The member of a's group whose next after a is b. */
static int link_gpu(const struct sim_layout *l, const struct sim_round *round, uint32_t a, uint32_t b, uint32_t high)
{
    uint32_t g = l->group_of[a];
    for (int m = l->member_first[g]; m < l->member_first[g + 1]; m++)
        if (successor(l, round, l->member[m], a, high) == b)
            return l->member[m];
    return -1;
}

/* Path a, b, c, ...: b comes right after a on some GPU. Read backwards: that GPU holds a until it may come to b. */
static int tell_collectives(struct sim_jump *j, const struct sim_round *round, size_t from, size_t depth, uint32_t high,
                            struct sim_cycle *cycle)
{
    const struct sim_layout *l = j->layout;
    if (cycle == NULL)
        return 1;
    cycle->count = 0;
    for (size_t i = depth + 1; i-- > from;) {
        uint32_t holds = j->stack[i], following = j->stack[i == depth ? from : i + 1];
        int gpu = link_gpu(l, round, holds, following, high);
        /* It waits in what it holds for the next link's GPU, which has that one yet to start. */
        if (!add_link(cycle, (struct sim_link){.at = {.gpu = gpu}, .waits = holds}))
            return -1;
    }
    /* Where a GPU is on the path more than once in a row, it sits in the last of these: the first that it started. */
    size_t retained = 0;
    for (size_t i = 0; i < cycle->count; i++) {
        const struct sim_link *following = &cycle->links[i + 1 < cycle->count ? i + 1 : 0];
        if (following->at.gpu != cycle->links[i].at.gpu)
            cycle->links[retained++] = cycle->links[i];
    }
    cycle->count = retained;
    return 1;
}

static int search_collectives(struct sim_jump *j, const struct sim_round *round, uint32_t start, uint32_t high,
                              struct sim_cycle *cycle)
{
    const struct sim_layout *l = j->layout;
    uint32_t on_path = 2 * j->epoch, done = on_path + 1;
    long depth = 0;
    if (j->color[start] >= on_path)
        return 0;
    if (!reserve_stack(j, 1))
        return -1;
    j->stack[0] = start;
    j->next[0] = 0;
    j->color[start] = on_path;
    while (depth >= 0) {
        uint32_t node = j->stack[depth], g = l->group_of[node];
        int member = l->member_first[g] + (int) j->next[depth]++;
        if (member >= l->member_first[g + 1]) {
            j->color[node] = done;
            depth--;
            continue;
        }
        uint32_t to = successor(l, round, l->member[member], node, high);
        if (to == UINT32_MAX || j->color[to] == done)
            continue;
        if (j->color[to] == on_path) {
            size_t from = 0;
            while (j->stack[from] != to)
                from++;
            return tell_collectives(j, round, from, (size_t) depth, high, cycle);
        }
        if (!reserve_stack(j, (size_t) depth + 2))
            return -1;
        j->color[to] = on_path;
        j->stack[++depth] = to;
        j->next[depth] = 0;
    }
    return 0;
}

static int decide_range_single(struct sim_jump *j, const struct sim_round *round, const struct range *range,
                               struct sim_cycle *cycle)
{
    const struct sim_layout *l = j->layout;
    if (round->order_count > ORDERS_MAX && cycle == NULL)
        return SIM_UNDECIDED;
    if (++j->epoch == UINT32_MAX / 2) {
        memset(j->color, 0, (size_t) l->collectives * sizeof(*j->color));
        j->epoch = 1;
    }
    for (size_t i = range->first; i < range->first + range->segments; i++) {
        const struct sim_segment *s = j->hot[i];
        for (uint32_t place = s->first; place < s->first + s->length; place++) {
            int found = search_collectives(j, round, l->list[l->list_first[s->gpu] + place], range->high, cycle);
            if (found != 0)
                return found;
        }
    }
    return 0;
}

int sim_jump_decide(struct sim_jump *j, const struct sim_config *config, const struct sim_round *round, struct sim_cycle *cycle)
{
    bool single = config->model == SIM_SINGLE;
    if (round->failed)
        return -1;
    long hot = collect_hot(j, round, single);
    long ranges = hot <= 0 ? hot : make_ranges(j, (size_t) hot);
    int found = ranges < 0 ? -1 : 0;
    for (long i = 0; i < ranges && found == 0; i++)
        found =
            single ? decide_range_single(j, round, &j->ranges[i], cycle) : decide_range_sync(j, round, &j->ranges[i], cycle);
    return found;
}
