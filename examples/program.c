/*
 * An all-reduce of one's own: written in a page, proved, registered and run. docs/guide/programs.md goes through it.
 *
 *     mpirun -n 4 build/examples/program        (or any launcher; alone it uses one rank)
 */
#include <rondo_program.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                                             \
    do {                                                                                                                       \
        if ((call) != RONDO_SUCCESS) {                                                                                         \
            fprintf(stderr, "%s: %s\n", #call, rondo_last_error());                                                            \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)

/* Rank r gathers all ranks' chunk r, adds them up, and gives the sum to all: two steps, whatever the number of ranks. */
static rondo_program_t two_steps(int ranks)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    signature.name = "two-steps";
    signature.collective = "allreduce";
    signature.ranks = signature.chunks = ranks;
    signature.in_place = 1;
    MUST(rondo_program_create(&p, &signature));
    for (int r = 0; r < ranks; r++)
        for (int from = 0; from < ranks; from++)
            if (from != r)
                rondo_chunk_copy(rondo_chunk(p, from, RONDO_BUFFER_INPUT, (size_t) r, 1), r, RONDO_BUFFER_SCRATCH,
                                 (size_t) from);
    for (int r = 0; r < ranks; r++) {
        rondo_chunk_t sum = rondo_chunk(p, r, RONDO_BUFFER_INPUT, (size_t) r, 1);
        for (int from = 0; from < ranks; from++)
            if (from != r)
                sum = rondo_chunk_reduce(sum, rondo_chunk(p, r, RONDO_BUFFER_SCRATCH, (size_t) from, 1));
        for (int to = 0; to < ranks; to++)
            if (to != r)
                rondo_chunk_copy(sum, to, RONDO_BUFFER_OUTPUT, (size_t) r);
    }
    return p;
}

int main(void)
{
    enum { COUNT = 1000 };
    rondo_t runtime;
    rondo_comm_t world;
    rondo_request_t request;
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    int rank, size, wrong = 0;
    config.device = RONDO_DEVICE_HOST;
    MUST(rondo_init(&runtime, &config));
    MUST(rondo_comm_world(runtime, &world));
    MUST(rondo_comm_rank(world, &rank));
    MUST(rondo_comm_size(world, &size));

    rondo_program_t program = two_steps(size);
    MUST(rondo_program_check(program, NULL));
    MUST(rondo_program_register(world, program, 0, 0)); /* by name; with a range of sizes, also unasked */
    rondo_program_destroy(program);

    float input[COUNT], output[COUNT];
    for (int i = 0; i < COUNT; i++)
        input[i] = (float) (i + rank);
    attr.program = "two-steps";
    MUST(rondo_allreduce_init(input, output, COUNT, RONDO_FLOAT, RONDO_SUM, world, &attr, &request));
    MUST(rondo_start(request));
    MUST(rondo_wait(request));
    MUST(rondo_request_free(&request));
    for (int i = 0; i < COUNT; i++)
        wrong +=
            output[i] < (float) (size * i + size * (size - 1) / 2) || output[i] > (float) (size * i + size * (size - 1) / 2);
    if (rank == 0)
        printf("two-steps on %d ranks: %d of %d elements are wrong\n", size, wrong, COUNT);
    MUST(rondo_finalize(runtime));
    return wrong != 0;
}
