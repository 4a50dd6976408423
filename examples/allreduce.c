/* All-reduce, the smallest complete program: every rank gives a vector, every rank gets and checks the sum. Run it alone, or
 * several at once: mpirun -n 4 build/examples/allreduce */
#include "rondo.h"
#include <stdio.h>
#include <stdlib.h>

/* The library reports errors and leaves the rest to its caller. This program gives up: the other ranks see RONDO_ERR_PEER. */
#define CHECK(call) check(call, #call)
static void check(rondo_result_t result, const char *call)
{
    if (result != RONDO_SUCCESS) {
        fprintf(stderr, "%s: %s: %s\n", call, rondo_strerror(result), rondo_last_error());
        exit(EXIT_FAILURE);
    }
}

enum { COUNT = 1000 };

int main(void)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT; /* rank and size come from the environment: mpirun's, srun's or RONDO_* */
    config.device = RONDO_DEVICE_HOST;            /* the buffers below are host memory */
    rondo_t runtime;
    rondo_comm_t world;
    int rank, size, wrong = 0;
    CHECK(rondo_init(&runtime, &config));
    CHECK(rondo_comm_world(runtime, &world));
    CHECK(rondo_comm_rank(world, &rank));
    CHECK(rondo_comm_size(world, &size));
    int32_t mine[COUNT], sum[COUNT];
    for (int i = 0; i < COUNT; i++)
        mine[i] = i * (rank + 1);
    CHECK(rondo_allreduce(mine, sum, COUNT, RONDO_INT32, RONDO_SUM, world));
    for (int i = 0; i < COUNT; i++)
        wrong += sum[i] != i * (size * (size + 1) / 2);

    printf("rank %d of %d: %d of %d sums are wrong\n", rank, size, wrong, COUNT);
    CHECK(rondo_finalize(runtime));
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
