/* A configuration of the simulator from JSON, with the keys of the paper's artifact. See tools/sim/sim.h. */
#include "tools/common/options.h"
#include "tools/sim/sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERB "sim"

enum { GPUS_MAX = 1 << 20, GROUPS_MAX = 1 << 20 };
#define COUNT_MAX  (INT64_C(1) << 26) /* collectives of a group */
#define ROUNDS_MAX (INT64_C(1) << 40)
#define FIXED_SEED 2023 /* the artifact's */

void sim_config_free(struct sim_config *config)
{
    free(config->name);
    free(config->member_first);
    free(config->member);
    free(config->collectives);
    *config = (struct sim_config){0};
}

/* ---- keys ---- */

/* Absent keys keep their value if optional. */
static int integer(json_t *root, const char *key, bool optional, int64_t minimum, int64_t maximum, int64_t *value)
{
    json_t *found = json_object_get(root, key);
    if (found == NULL)
        return optional ? 0 : options_refuse(VERB, "the configuration lacks \"%s\"", key);
    if (!json_is_integer(found))
        return options_refuse(VERB, "\"%s\" is not a whole number", key);
    int64_t number = json_integer_value(found);
    if (number < minimum || number > maximum)
        return options_refuse(VERB, "\"%s\" %lld is not between %lld and %lld", key, (long long) number, (long long) minimum,
                              (long long) maximum);
    *value = number;
    return 0;
}

static int small(json_t *root, const char *key, int maximum, int *value)
{
    int64_t number = 0;
    int code = integer(root, key, false, 1, maximum, &number);
    *value = (int) number;
    return code;
}

static int probability(json_t *root, const char *key, bool optional, double *value)
{
    json_t *found = json_object_get(root, key);
    if (found == NULL)
        return optional ? 0 : options_refuse(VERB, "the configuration lacks \"%s\"", key);
    if (!json_is_number(found))
        return options_refuse(VERB, "\"%s\" is not a number", key);
    double number = json_number_value(found);
    if (!(number >= 0 && number <= 1))
        return options_refuse(VERB, "\"%s\" %g is not a probability (0 to 1)", key, number);
    *value = number;
    return 0;
}

/* One of words, by its number. */
static int choice(json_t *root, const char *key, bool optional, const char *const *words, int count, int *value)
{
    json_t *found = json_object_get(root, key);
    if (found == NULL)
        return optional ? 0 : options_refuse(VERB, "the configuration lacks \"%s\"", key);
    const char *text = json_string_value(found);
    for (int i = 0; text != NULL && i < count; i++)
        if (strcmp(text, words[i]) == 0) {
            *value = i;
            return 0;
        }
    char known[160] = "";
    for (int i = 0; i < count; i++)
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", i > 0 ? ", " : "", words[i]);
    return options_refuse(VERB, "\"%s\" '%s' is none of %s", key, text == NULL ? "(not a string)" : text, known);
}

/* ---- groupings ---- */

static int read_three_d(json_t *root, struct sim_config *c)
{
    int code;
    if ((code = small(root, "tp_group_size", GPUS_MAX, &c->tp)) != 0 ||
        (code = small(root, "dp_group_size", GPUS_MAX, &c->dp)) != 0 ||
        (code = small(root, "pp_group_size", GPUS_MAX, &c->pp)) != 0 ||
        (code = integer(root, "coll_cnt_per_tp_group", false, 0, COUNT_MAX, &c->tp_collectives)) != 0 ||
        (code = integer(root, "coll_cnt_per_dp_group", false, 0, COUNT_MAX, &c->dp_collectives)) != 0)
        return code;
    double gpus = (double) c->tp * c->dp * c->pp, groups = ((double) c->tp + c->dp) * c->pp;
    if (gpus > GPUS_MAX || groups > GROUPS_MAX)
        return options_refuse(VERB, "%d x %d x %d is %.0f GPUs in %.0f groups; at most %d of each can be simulated", c->tp,
                              c->dp, c->pp, gpus, groups, GPUS_MAX);
    c->gpus = (int) gpus;
    c->groups = (int) groups;
    return 0;
}

static int read_members(json_t *lists, struct sim_config *c)
{
    size_t total = 0, next = 0, list_number;
    json_t *list, *entry;
    json_array_foreach(lists, list_number, list)
    {
        if (!json_is_array(list) || json_array_size(list) == 0)
            return options_refuse(VERB, "\"gpu_per_group\": group %zu is not a list of GPUs", list_number);
        total += json_array_size(list);
    }
    if (total > (size_t) GPUS_MAX * 16)
        return options_refuse(VERB, "\"gpu_per_group\" has %zu memberships; at most %d can be simulated", total, GPUS_MAX * 16);
    c->member = calloc(total, sizeof(*c->member));
    int *seen_in = calloc((size_t) c->gpus, sizeof(*seen_in)); /* group + 1 */
    int code = c->member == NULL || seen_in == NULL ? options_refuse(VERB, "no memory for %zu memberships", total) : 0;
    json_array_foreach(lists, list_number, list)
    {
        size_t entry_number;
        json_array_foreach(list, entry_number, entry)
        {
            int64_t gpu = json_is_integer(entry) ? json_integer_value(entry) : -1;
            if (code != 0)
                break;
            if (gpu < 0 || gpu >= c->gpus)
                code = options_refuse(VERB, "\"gpu_per_group\": group %zu has a GPU that is not between 0 and %d (gpu_num - 1)",
                                      list_number, c->gpus - 1);
            else if (seen_in[gpu] == (int) list_number + 1)
                code = options_refuse(VERB, "\"gpu_per_group\": group %zu has GPU %lld twice", list_number, (long long) gpu);
            else {
                seen_in[gpu] = (int) list_number + 1;
                c->member[next++] = (int) gpu;
            }
        }
        c->member_first[list_number + 1] = (int) next;
    }
    for (int gpu = 0; code == 0 && gpu < c->gpus; gpu++)
        if (seen_in[gpu] == 0)
            code = options_refuse(VERB, "GPU %d of %d (gpu_num) is in no group", gpu, c->gpus);
    free(seen_in);
    return code;
}

static int read_free(json_t *root, struct sim_config *c)
{
    int code;
    if ((code = small(root, "gpu_num", GPUS_MAX, &c->gpus)) != 0 ||
        (code = small(root, "group_num", GROUPS_MAX, &c->groups)) != 0)
        return code;
    json_t *lists = json_object_get(root, "gpu_per_group"), *counts = json_object_get(root, "coll_cnt_per_group"), *entry;
    if (!json_is_array(lists) || json_array_size(lists) != (size_t) c->groups)
        return options_refuse(VERB, "\"gpu_per_group\" is not a list of %d (group_num) lists, but of %zu", c->groups,
                              json_array_size(lists));
    if (!json_is_array(counts) || json_array_size(counts) != (size_t) c->groups)
        return options_refuse(VERB, "\"coll_cnt_per_group\" is not a list of %d (group_num) numbers, but of %zu", c->groups,
                              json_array_size(counts));
    c->member_first = calloc((size_t) c->groups + 1, sizeof(*c->member_first));
    c->collectives = calloc((size_t) c->groups, sizeof(*c->collectives));
    if (c->member_first == NULL || c->collectives == NULL)
        return options_refuse(VERB, "no memory for %d groups", c->groups);
    size_t number;
    json_array_foreach(counts, number, entry)
    {
        int64_t count = json_is_integer(entry) ? json_integer_value(entry) : -1;
        if (count < 0 || count > COUNT_MAX)
            return options_refuse(VERB, "\"coll_cnt_per_group\": group %zu's is not a whole number from 0 to %lld", number,
                                  (long long) COUNT_MAX);
        c->collectives[number] = count;
    }
    return read_members(lists, c);
}

/* ---- the whole ---- */

int sim_config_read(json_t *root, const char *name, struct sim_config *c)
{
    static const char *const models[] = {"Single", "StreamWithSync", "Rondo"};
    static const char *const policies[] = {"Megatron", "Arbitrary"};
    static const char *const orders[] = {"interleaved", "concatenated"};
    static const char *const tests[] = {"cycle", "intersection"};
    int64_t rounds = 1, processes = 1, fixed = 0;
    int model = 0, policy = 0, order = 0, test = 0, code;
    *c = (struct sim_config){.resource_limit = -1};
    if (!json_is_object(root))
        return options_refuse(VERB, "%s is not a JSON object", name);
    if ((code = integer(root, "total_rounds", false, 1, ROUNDS_MAX, &rounds)) != 0 ||
        (code = integer(root, "num_process", true, 1, 1 << 20, &processes)) != 0 ||
        (code = integer(root, "fix_seed", true, 0, 1, &fixed)) != 0 ||
        (code = integer(root, "resource_limit", true, INT64_MIN, INT64_MAX, &c->resource_limit)) != 0 ||
        (code = probability(root, "disorder_prob", false, &c->disorder)) != 0 ||
        (code = choice(root, "model", false, models, 3, &model)) != 0 ||
        (code = probability(root, "sync_prob", model == SIM_SINGLE, &c->sync)) != 0 ||
        (code = choice(root, "grouping_policy", false, policies, 2, &policy)) != 0 ||
        (code = choice(root, "collective_order", true, orders, 2, &order)) != 0 ||
        (code = choice(root, "deadlock_test", true, tests, 2, &test)) != 0)
        return code;
    if (rounds > ROUNDS_MAX / processes)
        return options_refuse(VERB, "\"total_rounds\" %lld in each of \"num_process\" %lld: more than %lld rounds",
                              (long long) rounds, (long long) processes, (long long) ROUNDS_MAX);
    c->rounds = (uint64_t) rounds * (uint64_t) processes;
    c->model = (enum sim_model) model;
    c->grouping = (enum sim_grouping) policy;
    c->order = (enum sim_order) order;
    c->test = (enum sim_test) test;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->seed = fixed ? FIXED_SEED : (uint64_t) now.tv_sec * 1000003u ^ (uint64_t) now.tv_nsec;
    code = c->grouping == SIM_THREE_D ? read_three_d(root, c) : read_free(root, c);
    if (code == 0 && (c->name = strdup(name)) == NULL)
        code = options_refuse(VERB, "no memory for a name");
    return code;
}

int sim_config_check(const struct sim_config *c)
{
    if (c->sync >= 1 && c->model != SIM_SINGLE)
        return options_refuse(VERB, "with a synchronization probability of 1 no GPU ever starts a collective");
    if (c->test == SIM_INTERSECTION && c->model != SIM_SYNC)
        return options_refuse(VERB, "the intersection test is for the synchronization model (StreamWithSync)");
    return 0;
}
