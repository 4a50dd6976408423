/*
 * Drawing a round: where GPUs leave the common order and where they synchronize. At each start a GPU passes over the first
 * collective left in its list with the disorder probability, then over the next, and so on (never over the last one left);
 * before each start it synchronizes with the synchronization probability, as often as that comes true. What does not happen is
 * not drawn one by one: the gaps are.
 */
#include "tools/sim/sim.h"
#include "tools/sim/random.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more element of size bytes. */
static bool grow(struct sim_round *round, void *array, size_t *room, size_t count, size_t size)
{
    void **place = array;
    if (count < *room)
        return true;
    size_t wanted = *room == 0 ? 256 : *room * 2;
    void *larger = realloc(*place, wanted * size);
    if (larger == NULL) {
        round->failed = true;
        return false;
    }
    *place = larger;
    *room = wanted;
    return true;
}

/* The largest index with first[index] <= value, skipping GPUs without places. */
static int find_gpu(const uint64_t *first, int gpus, int low, uint64_t value)
{
    int high = gpus - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (first[middle] <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void append(struct sim_round *round, uint32_t position)
{
    if (grow(round, &round->orders, &round->order_room, round->order_count, sizeof(*round->orders)))
        round->orders[round->order_count++] = position;
}

/* From the start at which a GPU leaves the order until it has caught up. Returns the list position where it has. */
static uint32_t draw_segment(struct sim_round *round, struct sim_random *random, double log_skip, int gpu, uint32_t first,
                             uint32_t length)
{
    uint32_t frontier = first; /* nothing from here on is started or passed over */
    size_t pending = 0;
    bool must_skip = true; /* the first choice has been made: it does not take the first */
    if (!grow(round, &round->segments, &round->segment_room, round->segment_count, sizeof(*round->segments)))
        return length;
    struct sim_segment segment = {gpu, first, 0, round->order_count};
    do {
        uint64_t left = pending + (length - frontier), skips = must_skip ? 1 : 0;
        uint64_t more = sim_random_misses(random, log_skip); /* a skip "misses" the choice */
        skips = more > left ? left : skips + more;
        if (skips > left - 1)
            skips = left - 1;
        must_skip = false;
        if (skips < pending) {
            append(round, round->pending[skips]);
            memmove(round->pending + skips, round->pending + skips + 1, (pending - skips - 1) * sizeof(*round->pending));
            pending--;
        } else {
            for (uint64_t i = skips - pending; i > 0; i--) {
                if (!grow(round, &round->pending, &round->pending_room, pending, sizeof(*round->pending)))
                    return length;
                round->pending[pending++] = frontier++;
            }
            append(round, frontier++);
        }
    } while (pending > 0 && !round->failed);
    segment.length = frontier - first;
    round->segments[round->segment_count++] = segment;
    return frontier;
}

/* log of the probability to pass over: its "miss" is the choice, so that the misses counted are the skips. */
static void draw_disorder(const struct sim_layout *l, double disorder, struct sim_random *random, struct sim_round *round)
{
    uint64_t total = l->choice_first[l->gpus], at = 0;
    double log_keep = log1p(-disorder), log_skip = disorder > 0 ? log(disorder) : 0;
    int gpu = 0;
    if (disorder <= 0)
        return;
    while (!round->failed) {
        uint64_t gap = disorder >= 1 ? 0 : sim_random_misses(random, log_keep);
        if (gap >= total - at)
            return;
        gpu = find_gpu(l->choice_first, l->gpus, gpu, at + gap);
        uint32_t length = (uint32_t) (l->list_first[gpu + 1] - l->list_first[gpu]);
        uint32_t first = (uint32_t) (at + gap - l->choice_first[gpu]);
        uint32_t caught_up = draw_segment(round, random, log_skip, gpu, first, length);
        at = l->choice_first[gpu] + caught_up;
        if (at > l->choice_first[gpu + 1])
            at = l->choice_first[gpu + 1];
        if (at >= total)
            return;
    }
}

static void draw_synchronizations(const struct sim_layout *l, double sync, struct sim_random *random, struct sim_round *round)
{
    uint64_t total = l->list_first[l->gpus], at = 0;
    double log_keep = log1p(-sync);
    int gpu = 0;
    while (sync > 0) {
        uint64_t gap = sim_random_misses(random, log_keep);
        if (gap >= total - at || !grow(round, &round->synchronizations, &round->synchronization_room,
                                       round->synchronization_count, sizeof(*round->synchronizations)))
            return;
        at += gap;
        gpu = find_gpu(l->list_first, l->gpus, gpu, at);
        round->synchronizations[round->synchronization_count++] =
            (struct sim_synchronization){gpu, (uint32_t) (at - l->list_first[gpu])};
    }
}

void sim_round_draw(const struct sim_layout *l, const struct sim_config *config, uint64_t number, struct sim_round *round)
{
    struct sim_random random = sim_random_seed(config->seed, number);
    round->segment_count = round->order_count = round->synchronization_count = 0;
    draw_disorder(l, config->disorder, &random, round);
    if (config->model != SIM_SINGLE)
        draw_synchronizations(l, config->sync, &random, round);
}

void sim_round_free(struct sim_round *round)
{
    free(round->segments);
    free(round->orders);
    free(round->synchronizations);
    free(round->pending);
    *round = (struct sim_round){0};
}

/* ---- points ---- */

/* The last segment of the GPU that begins at or before place, or NULL. */
static const struct sim_segment *last_segment(const struct sim_round *round, int gpu, uint32_t place)
{
    size_t low = 0, high = round->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sim_segment *s = &round->segments[middle];
        if (s->gpu < gpu || (s->gpu == gpu && s->first <= place))
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && round->segments[low - 1].gpu == gpu ? &round->segments[low - 1] : NULL;
}

const struct sim_segment *sim_segment_at(const struct sim_round *round, int gpu, uint32_t place)
{
    const struct sim_segment *s = last_segment(round, gpu, place);
    return s != NULL && place > s->first && place < s->first + s->length ? s : NULL;
}

const struct sim_segment *sim_segment_with(const struct sim_round *round, int gpu, uint32_t position)
{
    const struct sim_segment *s = last_segment(round, gpu, position);
    return s != NULL && position < s->first + s->length ? s : NULL;
}

bool sim_point_has(const struct sim_layout *layout, const struct sim_round *round, const struct sim_point *point,
                   uint32_t position)
{
    const struct sim_segment *s = point->segment;
    (void) layout;
    if (s == NULL || position < s->first || position >= s->first + s->length)
        return position < point->before;
    const uint32_t *order = round->orders + s->order_first;
    for (uint32_t i = 0; i < point->before - s->first; i++)
        if (order[i] == position)
            return true;
    return false;
}

/* How many of the group's collectives a GPU's list has before place. */
static uint32_t count_before(const uint32_t *positions, uint32_t count, uint32_t place)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (positions[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool sim_point_ahead(const struct sim_layout *l, const struct sim_round *round, const struct sim_point *a,
                     const struct sim_point *b, uint32_t *collective)
{
    /* Of a group, a can have at most those before a_end, and b lacks none of those before b_end. */
    uint32_t a_end = a->segment != NULL ? a->segment->first + a->segment->length : a->before;
    uint32_t b_end = b->segment != NULL ? b->segment->first : b->before;
    uint32_t s = l->slot_first[a->gpu], t = l->slot_first[b->gpu]; /* both sorted by group */
    while (s < l->slot_first[a->gpu + 1] && t < l->slot_first[b->gpu + 1]) {
        uint32_t group = l->slot_group[s];
        if (group != l->slot_group[t]) {
            *(group < l->slot_group[t] ? &s : &t) += 1;
            continue;
        }
        uint32_t count = l->collective_first[group + 1] - l->collective_first[group];
        const uint32_t *in_a = l->position + l->slot_position[s], *in_b = l->position + l->slot_position[t];
        uint32_t end = count_before(in_a, count, a_end);
        for (uint32_t i = count_before(in_b, count, b_end); i < end; i++)
            if (sim_point_has(l, round, a, in_a[i]) && !sim_point_has(l, round, b, in_b[i])) {
                *collective = l->collective_first[group] + i;
                return true;
            }
        s++;
        t++;
    }
    return false;
}
