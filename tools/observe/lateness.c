/* See tools/observe/lateness.h. */
#include "tools/observe/lateness.h"

#include <stdlib.h>
#include <string.h>

int lateness_begin(struct lateness *lateness, int size)
{
    lateness->size = size;
    lateness->late = calloc((size_t) size, sizeof(double));
    lateness->calls = calloc((size_t) size, sizeof(double));
    lateness->seen = json_object();
    if (lateness->late != NULL && lateness->calls != NULL && lateness->seen != NULL)
        return 0;
    lateness_end(lateness);
    return -1;
}

void lateness_end(struct lateness *lateness)
{
    free(lateness->late);
    free(lateness->calls);
    json_decref(lateness->seen);
    memset(lateness, 0, sizeof(*lateness));
}

static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* The starts of a process group: by number, an object with each rank's time. Borrowed; NULL without memory. */
static json_t *starts_of(json_t *groups, const char *group, json_int_t number)
{
    char key[32];
    json_t *numbers = json_object_get(groups, group);
    snprintf(key, sizeof(key), "%lld", (long long) number);
    if (numbers == NULL && json_object_set_new(groups, group, json_object()) == 0)
        numbers = json_object_get(groups, group);
    json_t *starts = json_object_get(numbers, key);
    if (starts == NULL && numbers != NULL && json_object_set_new(numbers, key, json_object()) == 0)
        starts = json_object_get(numbers, key);
    return starts;
}

/* Sorts what ranks tell by process group, number and rank; and the ranks that tell of a group into its member "". Messages are
 * not started by all ranks, and are left out. */
static void sort(const json_t *state, json_t *groups)
{
    size_t r, i;
    json_t *rank, *entry;
    json_array_foreach(json_object_get(state, "ranks"), r, rank)
    {
        char key[32];
        snprintf(key, sizeof(key), "%lld", (long long) number_of(rank, "rank"));
        json_array_foreach(json_object_get(rank, "recent"), i, entry)
        {
            const char *group = json_string_value(json_object_get(entry, "process_group"));
            if (group == NULL || strstr(group, "message") != NULL)
                continue;
            json_object_set(starts_of(groups, group, number_of(entry, "number")), key, json_object_get(entry, "started_ns"));
            json_object_set(starts_of(groups, group, 0), key, json_true());
        }
    }
}

/* Counts a collective if all ranks of its group have started it. Returns whether. */
static int count(struct lateness *lateness, json_t *starts, const json_t *members)
{
    const char *key;
    json_t *started;
    json_int_t first = 0;
    if (json_object_size(starts) < json_object_size(members) || json_object_size(members) < 2)
        return 0;
    json_object_foreach(starts, key, started) first =
        first == 0 || json_integer_value(started) < first ? json_integer_value(started) : first;
    json_object_foreach(starts, key, started)
    {
        const int rank = atoi(key);
        if (rank < 0 || rank >= lateness->size)
            continue;
        lateness->late[rank] += (double) (json_integer_value(started) - first) * 1e-9;
        lateness->calls[rank] += 1;
    }
    return 1;
}

void lateness_add(struct lateness *lateness, const json_t *state, double weight)
{
    const char *group, *key;
    json_t *numbers, *starts, *groups = json_object();
    for (int rank = 0; rank < lateness->size; rank++) {
        lateness->late[rank] *= weight;
        lateness->calls[rank] *= weight;
    }
    sort(state, groups);
    json_object_foreach(groups, group, numbers)
    {
        const json_int_t before = number_of(lateness->seen, group);
        json_int_t last = before;
        json_object_foreach(numbers, key, starts)
        {
            const json_int_t number = atoll(key);
            if (number > before && count(lateness, starts, json_object_get(numbers, "0")) && number > last)
                last = number;
        }
        json_object_set_new(lateness->seen, group, json_integer(last));
    }
    json_decref(groups);
}

double lateness_of(const struct lateness *lateness, int rank)
{
    return lateness->calls[rank] > 0 ? lateness->late[rank] / lateness->calls[rank] : 0;
}

int lateness_worst(const struct lateness *lateness)
{
    int worst = -1;
    for (int rank = 0; rank < lateness->size; rank++)
        if (lateness_of(lateness, rank) > (worst < 0 ? 0 : lateness_of(lateness, worst)))
            worst = rank;
    return worst;
}
