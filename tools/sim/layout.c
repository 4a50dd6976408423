/* Groups, their GPUs and each GPU's list of collectives in the common order. See tools/sim/sim.h. */
#include "tools/common/options.h"
#include "tools/sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define VERB     "sim"
#define LIST_MAX (UINT64_C(1) << 27) /* entries of all GPUs' lists: 16 bytes each, and more while a round is drawn */

void sim_layout_free(struct sim_layout *l)
{
    free(l->member_first);
    free(l->member);
    free(l->collective_first);
    free(l->group_of);
    free(l->order);
    free(l->list_first);
    free(l->list);
    free(l->slot_first);
    free(l->slot_group);
    free(l->slot_position);
    free(l->position);
    free(l->choice_first);
    *l = (struct sim_layout){0};
}

/* Groups of stage p: its TP groups, then its DP groups, which take one GPU of each. */
static int64_t place_three_d(const struct sim_config *c, struct sim_layout *l, int64_t *counts)
{
    int next = 0;
    int64_t total = 0;
    for (int stage = 0, group = 0; stage < c->pp; stage++) {
        int first = stage * c->tp * c->dp;
        for (int t = 0; t < c->dp; t++, group++) {
            l->member_first[group] = next;
            for (int i = 0; i < c->tp; i++)
                l->member[next++] = first + t * c->tp + i;
            total += counts[group] = c->tp_collectives;
        }
        for (int d = 0; d < c->tp; d++, group++) {
            l->member_first[group] = next;
            for (int i = 0; i < c->dp; i++)
                l->member[next++] = first + i * c->tp + d;
            total += counts[group] = c->dp_collectives;
        }
    }
    l->member_first[l->groups] = next;
    return total;
}

static int64_t place_free(const struct sim_config *c, struct sim_layout *l, int64_t *counts)
{
    int64_t total = 0;
    memcpy(l->member_first, c->member_first, ((size_t) c->groups + 1) * sizeof(*l->member_first));
    memcpy(l->member, c->member, (size_t) c->member_first[c->groups] * sizeof(*l->member));
    for (int g = 0; g < c->groups; g++)
        total += counts[g] = c->collectives[g];
    return total;
}

static int by_order(const void *a, const void *b, void *layout)
{
    const uint32_t *order = ((const struct sim_layout *) layout)->order;
    uint32_t first = order[*(const uint32_t *) a], second = order[*(const uint32_t *) b];
    return (first > second) - (first < second);
}

/* Interleaved: all groups' first collectives, all groups' second ones, ... The values are dense, so that they fit 32 bits. */
static void number_order(const struct sim_config *c, struct sim_layout *l, const int64_t *counts)
{
    int64_t longest = 0;
    for (int g = 0; g < l->groups; g++) {
        longest = counts[g] > longest ? counts[g] : longest;
        for (uint32_t i = l->collective_first[g]; i < l->collective_first[g + 1]; i++) {
            l->group_of[i] = (uint32_t) g;
            l->order[i] = i;
        }
    }
    uint32_t next = 0;
    for (int64_t index = 0; c->order == SIM_INTERLEAVED && index < longest; index++)
        for (int g = 0; g < l->groups; g++)
            if (index < counts[g])
                l->order[l->collective_first[g] + (uint32_t) index] = next++;
}

/* One GPU's list, and where in it each of its groups' collectives are. */
static void make_list(struct sim_layout *l, int gpu)
{
    uint32_t *list = l->list + l->list_first[gpu];
    uint64_t length = 0;
    for (uint32_t s = l->slot_first[gpu]; s < l->slot_first[gpu + 1]; s++) {
        uint32_t group = l->slot_group[s];
        l->slot_position[s] = l->list_first[gpu] + length;
        for (uint32_t i = l->collective_first[group]; i < l->collective_first[group + 1]; i++)
            list[length++] = i;
    }
    if (l->slot_first[gpu + 1] - l->slot_first[gpu] > 1)
        qsort_r(list, length, sizeof(*list), by_order, l);
    for (uint64_t place = 0; place < length; place++) {
        uint32_t collective = list[place], slot = l->slot_first[gpu];
        while (l->slot_group[slot] != l->group_of[collective])
            slot++;
        l->position[l->slot_position[slot] + (collective - l->collective_first[l->slot_group[slot]])] = (uint32_t) place;
    }
}

static int make_lists(struct sim_layout *l, const int64_t *counts)
{
    uint32_t *filled = calloc((size_t) l->gpus, sizeof(*filled));
    uint64_t *lengths = calloc((size_t) l->gpus, sizeof(*lengths));
    int memberships = l->member_first[l->groups], code = EXIT_WRONG;
    l->slot_first = calloc((size_t) l->gpus + 1, sizeof(*l->slot_first));
    l->slot_group = calloc((size_t) memberships, sizeof(*l->slot_group));
    l->slot_position = calloc((size_t) memberships + 1, sizeof(*l->slot_position));
    l->list_first = calloc((size_t) l->gpus + 1, sizeof(*l->list_first));
    l->choice_first = calloc((size_t) l->gpus + 1, sizeof(*l->choice_first));
    if (filled == NULL || lengths == NULL || l->slot_first == NULL || l->slot_group == NULL || l->slot_position == NULL ||
        l->list_first == NULL || l->choice_first == NULL)
        goto done;
    for (int g = 0; g < l->groups; g++)
        for (int m = l->member_first[g]; m < l->member_first[g + 1]; m++) {
            l->slot_first[l->member[m] + 1]++;
            lengths[l->member[m]] += (uint64_t) counts[g];
        }
    for (int gpu = 0; gpu < l->gpus; gpu++) {
        l->slot_first[gpu + 1] += l->slot_first[gpu];
        l->list_first[gpu + 1] = l->list_first[gpu] + lengths[gpu];
        l->choice_first[gpu + 1] = l->choice_first[gpu] + (lengths[gpu] > 0 ? lengths[gpu] - 1 : 0);
    }
    uint64_t total = l->list_first[l->gpus];
    if (total > LIST_MAX) {
        code = options_refuse(VERB, "all GPUs together would start %llu collectives a round; at most %llu can be simulated",
                              (unsigned long long) total, (unsigned long long) LIST_MAX);
        goto done;
    }
    l->list = malloc((total + 1) * sizeof(*l->list));
    l->position = malloc((total + 1) * sizeof(*l->position));
    if (l->list == NULL || l->position == NULL)
        goto done;
    for (int g = 0; g < l->groups; g++)
        for (int m = l->member_first[g]; m < l->member_first[g + 1]; m++) {
            int gpu = l->member[m];
            l->slot_group[l->slot_first[gpu] + filled[gpu]++] = (uint32_t) g;
        }
    for (int gpu = 0; gpu < l->gpus; gpu++)
        make_list(l, gpu);
    l->slot_position[memberships] = total;
    code = 0;
done:
    free(filled);
    free(lengths);
    return code;
}

int sim_layout_make(const struct sim_config *c, struct sim_layout *l)
{
    int memberships = c->grouping == SIM_THREE_D ? 2 * c->gpus : c->member_first[c->groups], code = EXIT_WRONG;
    *l = (struct sim_layout){.gpus = c->gpus, .groups = c->groups, .config = c};
    int64_t *counts = calloc((size_t) c->groups, sizeof(*counts));
    l->member_first = calloc((size_t) c->groups + 1, sizeof(*l->member_first));
    l->member = calloc((size_t) memberships, sizeof(*l->member));
    l->collective_first = calloc((size_t) c->groups + 1, sizeof(*l->collective_first));
    if (counts == NULL || l->member_first == NULL || l->member == NULL || l->collective_first == NULL)
        goto fail;
    int64_t total = c->grouping == SIM_THREE_D ? place_three_d(c, l, counts) : place_free(c, l, counts);
    if ((uint64_t) total > LIST_MAX) {
        code = options_refuse(VERB, "%lld collectives a round; at most %llu can be simulated", (long long) total,
                              (unsigned long long) LIST_MAX);
        goto fail;
    }
    for (int g = 0; g < l->groups; g++)
        l->collective_first[g + 1] = l->collective_first[g] + (uint32_t) counts[g];
    l->collectives = (uint32_t) total;
    l->group_of = malloc(((size_t) total + 1) * sizeof(*l->group_of));
    l->order = malloc(((size_t) total + 1) * sizeof(*l->order));
    if (l->group_of == NULL || l->order == NULL)
        goto fail;
    number_order(c, l, counts);
    if ((code = make_lists(l, counts)) != 0)
        goto fail;
    free(counts);
    return 0;
fail:
    if (code == EXIT_WRONG)
        fprintf(stderr, "rondo %s: no memory for %d GPUs in %d groups\n", VERB, c->gpus, c->groups);
    free(counts);
    sim_layout_free(l);
    return code;
}

int sim_layout_one_group(int ranks, int64_t collectives, struct sim_layout *layout)
{
    int *member = calloc((size_t) ranks, sizeof(*member)), first[2] = {0, ranks};
    if (member == NULL) {
        fprintf(stderr, "rondo %s: no memory for %d GPUs\n", VERB, ranks);
        return EXIT_WRONG;
    }
    for (int i = 0; i < ranks; i++)
        member[i] = i;
    struct sim_config config = {
        .grouping = SIM_FREE, .gpus = ranks, .groups = 1, .member_first = first, .member = member, .collectives = &collectives};
    int code = sim_layout_make(&config, layout);
    layout->config = NULL;
    free(member);
    return code;
}

int64_t sim_position(const struct sim_layout *l, int gpu, uint32_t collective)
{
    uint32_t group = l->group_of[collective];
    for (uint32_t s = l->slot_first[gpu]; s < l->slot_first[gpu + 1]; s++)
        if (l->slot_group[s] == group)
            return l->position[l->slot_position[s] + (collective - l->collective_first[group])];
    return -1;
}

/* ---- names ---- */

static bool is_tensor_group(const struct sim_config *c, int group, int *stage, int *inside)
{
    int of_stage = c->tp + c->dp;
    *stage = group / of_stage;
    *inside = group % of_stage;
    if (*inside < c->dp)
        return true;
    *inside -= c->dp;
    return false;
}

void sim_collective_name(const struct sim_layout *l, uint32_t collective, char *text, size_t bytes)
{
    int group = (int) l->group_of[collective], stage, inside;
    unsigned number = collective - l->collective_first[group];
    if (l->config->grouping == SIM_FREE)
        snprintf(text, bytes, "collective %u of group %d", number, group);
    else {
        const char *kind = is_tensor_group(l->config, group, &stage, &inside) ? "TP" : "DP";
        snprintf(text, bytes, "collective %u of %s group %d (stage %d)", number, kind, inside, stage);
    }
}

void sim_collective_tag(const struct sim_layout *l, uint32_t collective, char *text, size_t bytes)
{
    int group = (int) l->group_of[collective], stage, inside;
    unsigned number = collective - l->collective_first[group];
    if (l->config->grouping == SIM_FREE)
        snprintf(text, bytes, "g%d.%u", group, number);
    else {
        const char *kind = is_tensor_group(l->config, group, &stage, &inside) ? "t" : "d";
        snprintf(text, bytes, "%s%d.%u", kind, inside, number);
    }
}
