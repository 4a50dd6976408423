/*
 * Jobs that are neither all threads nor all processes: several processes with several ranks each, which find each other by a
 * unique id on the command line; and several independent jobs at once in one process.
 */
#include "test/multirank/device_memory.h"
#include "test/multirank/trial.h"

#include <pthread.h>

static long size = 4, first = 0, threads = 2, worlds = 0, seed = 1;
static const char *id_text;

static rondo_unique_id_t id;

/* One small call of every collective. */
static void exercise(struct rank *me)
{
    struct graph *graph = calloc(1, sizeof(*graph));
    rondo_comm_t joined;
    make_graph(me->world, (uint64_t) seed, graph, &joined);
    for (int what = 0; what < COLLECTIVES; what++)
        for (int k = 0; k < 4; k++) {
            struct trial t = {.what = (enum collective) what, .type = RONDO_INT32, .op = RONDO_SUM, .comm = me->world};
            if (is_neighborhood(t.what))
                t.comm = joined, t.graph = graph;
            t.count = (size_t[]){1, 17, 1000, 30000}[k];
            t.root = (what + k) % me->size;
            t.seed = ranks_hash((uint64_t) seed * 1000 + (uint64_t) what * 10 + (uint64_t) k);
            STEP("%s of %zu", collective_names[what], t.count);
            trial_prepare(&t);
            trial_fill(&t, k);
            MUST(trial_call(&t, BLOCKING, NULL, NULL));
            trial_verify(&t, "blocking", k);
            trial_release(&t);
        }
    MUST(rondo_comm_free(&joined));
    free(graph);
}

static void *run_rank(void *number)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    struct rank me = {0};
    config.rank = *(int *) number;
    config.size = (int) size;
    config.unique_id = &id;
    config.device = ranks_device();
    ranks_current = config.rank;
    STEP("rondo_init");
    MUST(rondo_init(&me.runtime, &config));
    MUST(rondo_comm_world(me.runtime, &me.world));
    MUST(rondo_comm_rank(me.world, &me.rank));
    MUST(rondo_comm_size(me.world, &me.size));
    ranks_use_device(me.runtime);
    CHECK(me.rank == config.rank && me.size == size, "rank %d of %d", me.rank, me.size);
    exercise(&me);
    STEP("rondo_finalize");
    MUST(rondo_finalize(me.runtime));
    return NULL;
}

static void *run_world(void *unused)
{
    ranks_run((int) threads, NULL, exercise, NULL);
    return unused;
}

static void read_id(void)
{
    for (size_t i = 0; i < sizeof(id.bytes); i++) {
        unsigned byte = 0;
        if (sscanf(id_text + 2 * i, "%2x", &byte) != 1) {
            printf("FAILED: bad id %s\n", id_text);
            exit(2);
        }
        id.bytes[i] = (unsigned char) byte;
    }
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--size", &size, NULL, "ranks of the job"},
        {"--first", &first, NULL, "this process's first rank"},
        {"--threads", &threads, NULL, "how many it has"},
        {"--worlds", &worlds, NULL, "so many jobs at once instead, each of --threads ranks"},
        {"--seed", &seed, NULL, "of the data"},
        {"--id", NULL, &id_text, "the unique id in hexadecimal; without it this process makes and prints one"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    enum { MOST = 32 };
    pthread_t running[MOST];
    int numbers[MOST], count = (int) (worlds > 0 ? worlds : threads);
    if (count > MOST)
        return 2;
    if (worlds == 0 && id_text != NULL)
        read_id();
    else if (worlds == 0) {
        MUST(rondo_get_unique_id(&id));
        printf("ID ");
        for (size_t i = 0; i < sizeof(id.bytes); i++)
            printf("%02x", id.bytes[i]);
        printf("\n");
        fflush(stdout);
    }
    for (int k = 0; k < count; k++) {
        numbers[k] = (int) first + k;
        pthread_create(&running[k], NULL, worlds > 0 ? run_world : run_rank, &numbers[k]);
    }
    for (int k = 0; k < count; k++)
        pthread_join(running[k], NULL);
    return ranks_finish("hybrid");
}
