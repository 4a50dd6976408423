/*
 * The programs of GC3 (Cowan et al., 2022), a file each beside this one: proved, and run on ranks that are threads of the
 * process, with every element compared.
 *
 *     build/examples/programs NAME [--hosts N] [--group G] [--xml]     (without a name: lists them)
 */
#include "programs.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the program's chunks: as many as ranks, of the ranks of a host, or a number. */
enum { AS_RANKS = -1, AS_GROUP = -2 };

static const struct example {
    const char *name, *collective;
    int chunks, in_place;
    void (*write)(const struct place *);
} examples[] = {
    {"ring", "allreduce", AS_RANKS, 1, ring_all_reduce},
    {"ring_channels", "allreduce", AS_RANKS, 1, ring_channels},
    {"ring_reduce_scatter", "reduce_scatter_block", 1, 0, ring_reduce_scatter},
    {"ring_all_gather", "allgather", 1, 0, ring_all_gather},
    {"all_pairs", "allreduce", AS_RANKS, 1, all_pairs},
    {"hierarchical", "allreduce", AS_RANKS, 1, hierarchical},
    {"hierarchical_parallel", "allreduce", AS_RANKS, 1, hierarchical_parallel},
    {"recursive_doubling", "allreduce", 1, 1, recursive_doubling},
    {"recursive_halving", "allreduce", AS_RANKS, 1, recursive_halving},
    {"tree", "allreduce", 2, 1, tree},
    {"one_step_all_to_all", "alltoall", 1, 0, one_step_all_to_all},
    {"two_step_all_to_all", "alltoall", 1, 0, two_step_all_to_all},
    {"all_to_next", "custom", AS_GROUP, 0, all_to_next},
};
enum { EXAMPLES = sizeof(examples) / sizeof(examples[0]) };

#define MUST(call)                                                                                                             \
    do {                                                                                                                       \
        if ((call) != RONDO_SUCCESS) {                                                                                         \
            fprintf(stderr, "programs: %s: %s\n", #call, rondo_last_error());                                                  \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)

static rondo_program_t make(const struct example *example, int hosts, int group)
{
    struct place place = {NULL, hosts, group, hosts * group};
    int chunks = example->chunks == AS_RANKS ? place.ranks : example->chunks == AS_GROUP ? group : example->chunks;
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    signature.name = example->name;
    signature.collective = example->collective;
    signature.ranks = place.ranks;
    signature.chunks = signature.inputs = signature.outputs = chunks;
    signature.in_place = example->in_place;
    MUST(rondo_program_create(&place.program, &signature));
    example->write(&place);
    MUST(rondo_program_check(place.program, NULL));
    return place.program;
}

/* ---- running ---- */

/* Elements of a block of the collective's arguments: no multiple of the chunks, but where a custom call counts by chunks. */
enum { BLOCK = 1003 };

struct rank {
    const struct example *example;
    rondo_program_t program;
    const rondo_unique_id_t *id;
    int rank, ranks, chunks, wrong;
    pthread_t thread;
};

/* Element i of a rank's input. Sums of them wrap in the same way in any order. */
static int32_t element(int rank, int i)
{
    return (int32_t) ((uint32_t) (rank + 1) * 2654435761u ^ (uint32_t) i * 40503u);
}

/* What element i of the rank's output must be; *any: it may be anything. */
static int32_t expected(const struct rank *r, int i, int *any)
{
    const char *collective = r->example->collective;
    if (strcmp(collective, "allgather") == 0)
        return element(i / BLOCK, i % BLOCK);
    if (strcmp(collective, "alltoall") == 0)
        return element(i / BLOCK, r->rank * BLOCK + i % BLOCK);
    if (strcmp(collective, "custom") == 0) {
        *any = r->rank == 0;
        return element(r->rank - 1, i);
    }
    uint32_t sum = 0;
    for (int from = 0; from < r->ranks; from++)
        sum += (uint32_t) element(from, strcmp(collective, "allreduce") == 0 ? i : r->rank * BLOCK + i);
    return (int32_t) sum;
}

static void call(const struct rank *r, const int32_t *input, int32_t *output, rondo_comm_t world)
{
    const char *collective = r->example->collective;
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_request_t request;
    attr.program = r->example->name;
    if (strcmp(collective, "custom") == 0) {
        MUST(rondo_program_run(r->example->name, input, output, BLOCK, RONDO_INT32, RONDO_SUM, world));
        return;
    }
    if (strcmp(collective, "allreduce") == 0)
        MUST(rondo_allreduce_init(input, output, BLOCK, RONDO_INT32, RONDO_SUM, world, &attr, &request));
    else if (strcmp(collective, "reduce_scatter_block") == 0)
        MUST(rondo_reduce_scatter_block_init(input, output, BLOCK, RONDO_INT32, RONDO_SUM, world, &attr, &request));
    else if (strcmp(collective, "allgather") == 0)
        MUST(rondo_allgather_init(input, output, BLOCK, RONDO_INT32, world, &attr, &request));
    else
        MUST(rondo_alltoall_init(input, output, BLOCK, RONDO_INT32, world, &attr, &request));
    MUST(rondo_start(request));
    MUST(rondo_wait(request));
    MUST(rondo_request_free(&request));
}

static void *run_rank(void *argument)
{
    struct rank *r = argument;
    const char *collective = r->example->collective;
    int custom = strcmp(collective, "custom") == 0, by_ranks = strcmp(collective, "allreduce") != 0 && !custom;
    int most = BLOCK * (custom ? r->chunks : by_ranks ? r->ranks : 1);
    int outputs = strcmp(collective, "reduce_scatter_block") == 0 ? BLOCK : most;
    int32_t *input = calloc((size_t) most, sizeof(*input)), *output = calloc((size_t) most, sizeof(*output));
    rondo_t runtime;
    rondo_comm_t world;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.rank = r->rank;
    config.size = r->ranks;
    config.unique_id = r->id;
    config.device = RONDO_DEVICE_HOST;
    if (input == NULL || output == NULL) {
        fprintf(stderr, "programs: no memory for %d elements\n", most);
        exit(1);
    }
    for (int i = 0; i < most; i++)
        input[i] = element(r->rank, i);
    MUST(rondo_init(&runtime, &config));
    MUST(rondo_comm_world(runtime, &world));
    MUST(rondo_program_register(world, r->program, 0, 0));
    call(r, input, output, world);
    for (int i = 0; i < outputs; i++) {
        int any = 0;
        int32_t want = expected(r, i, &any);
        r->wrong += !any && output[i] != want;
    }
    MUST(rondo_finalize(runtime));
    free(input);
    free(output);
    return NULL;
}

static int run(const struct example *example, rondo_program_t program, int hosts, int group)
{
    int ranks = hosts * group, wrong = 0;
    struct rank *all = calloc((size_t) ranks, sizeof(*all));
    rondo_unique_id_t id;
    MUST(rondo_get_unique_id(&id));
    for (int r = 0; r < ranks && all != NULL; r++) {
        all[r] = (struct rank){example, program, &id, r, ranks, group, 0, 0};
        all[r].program = make(example, hosts, group);
        if (pthread_create(&all[r].thread, NULL, run_rank, &all[r]) != 0)
            exit(1);
    }
    for (int r = 0; r < ranks && all != NULL; r++) {
        pthread_join(all[r].thread, NULL);
        rondo_program_destroy(all[r].program);
        wrong += all[r].wrong;
    }
    free(all);
    printf("%s on %d ranks: %d elements are wrong\n", example->name, ranks, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    int hosts = 2, group = 2, xml = 0, bad = 0;
    const struct example *example = NULL;
    for (int i = 0; argc == 1 && i < EXAMPLES; i++)
        printf("%s\n", examples[i].name);
    for (int i = 0; argc > 1 && i < EXAMPLES; i++)
        if (strcmp(argv[1], examples[i].name) == 0)
            example = &examples[i];
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--xml") == 0)
            xml = 1;
        else if (strcmp(argv[i], "--hosts") == 0 && i + 1 < argc)
            hosts = atoi(argv[++i]);
        else if (strcmp(argv[i], "--group") == 0 && i + 1 < argc)
            group = atoi(argv[++i]);
        else
            bad = 1;
    }
    if (argc == 1)
        return 0;
    if (example == NULL || bad || hosts < 1 || hosts > 1024 || group < 1 || group > 1024) {
        fprintf(stderr, "usage: programs NAME [--hosts N] [--group G] [--xml]\n");
        return 2;
    }
    rondo_program_t program = make(example, hosts, group);
    int code = 0;
    if (xml) {
        char *text;
        MUST(rondo_program_write_xml(program, &text));
        fputs(text, stdout);
        rondo_program_text_free(text);
    } else {
        code = run(example, program, hosts, group);
    }
    rondo_program_destroy(program);
    return code;
}
