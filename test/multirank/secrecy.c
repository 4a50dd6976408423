/*
 * One rank of a job whose messages are looked at from outside (test/security/test_encryption.py): rank 0 broadcasts a text that
 * is known there, and all reduce it, which the network does on arrival. Prints RESULT code seconds message, as faults does.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text = "text";
static long bytes = 1 << 20, rounds = 3;

static void fill(unsigned char *to)
{
    size_t length = strlen(text);
    for (long i = 0; i < bytes; i++)
        to[i] = (unsigned char) text[(size_t) i % length];
}

/* Of a sum, because any bit that differs in a part shows in it. */
static int is_sum(const unsigned char *sum, const unsigned char *part, int size)
{
    int same = 1;
    for (long i = 0; i < bytes; i++)
        same &= sum[i] == (unsigned char) (part[i] * size);
    return same;
}

static rondo_result_t exchange(rondo_comm_t world, int rank, unsigned char *buffer, unsigned char *sum,
                               const unsigned char *expected)
{
    int size;
    MUST(rondo_comm_size(world, &size));
    rondo_result_t result = RONDO_SUCCESS;
    for (long round = 0; round < rounds && result == RONDO_SUCCESS; round++) {
        memset(buffer, 0, (size_t) bytes);
        if (rank == 0)
            fill(buffer);
        result = rondo_bcast(buffer, (size_t) bytes, RONDO_UINT8, 0, world);
        if (result == RONDO_SUCCESS)
            result = rondo_allreduce(buffer, sum, (size_t) bytes, RONDO_UINT8, RONDO_SUM, world);
        if (result == RONDO_SUCCESS)
            CHECK(memcmp(buffer, expected, (size_t) bytes) == 0 && is_sum(sum, expected, size), "wrong data in round %ld",
                  round);
    }
    return result;
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--text", NULL, &text, "what is sent"},
        {"--bytes", &bytes, NULL, "of it, repeated"},
        {"--rounds", &rounds, NULL, "how often"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = RONDO_DEVICE_HOST;
    rondo_t runtime = NULL;
    rondo_comm_t world;
    double start = ranks_seconds();
    STEP("rondo_init");
    rondo_result_t result = rondo_init(&runtime, &config);
    CHECK((result == RONDO_SUCCESS) == (runtime != NULL), "rondo_init");
    if (result == RONDO_SUCCESS) {
        unsigned char *buffer = malloc((size_t) bytes), *sum = malloc((size_t) bytes), *expected = malloc((size_t) bytes);
        int rank;
        MUST(rondo_comm_world(runtime, &world));
        MUST(rondo_comm_rank(world, &rank));
        fill(expected);
        STEP("exchange");
        result = exchange(world, rank, buffer, sum, expected);
        printf("RESULT %d %.3f %s\n", (int) result, ranks_seconds() - start, result == RONDO_SUCCESS ? "" : rondo_last_error());
        fflush(stdout);
        STEP("rondo_finalize");
        rondo_finalize(runtime);
        free(buffer);
        free(sum);
        free(expected);
    } else {
        printf("RESULT %d %.3f %s\n", (int) result, ranks_seconds() - start, rondo_last_error());
    }
    return ranks_finish("secrecy");
}
