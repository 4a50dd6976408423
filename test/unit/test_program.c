/* Programs: the language and its errors, wrong results, custom conditions, and the cost of compiling large programs. */
#include "lib/program/program.h"
#include "lib/program/plan_set.h"
#include "rondo_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#include "test/unit/support/plans.h"
#include "test/unit/support/verdicts.h"

static rondo_program_t make(const char *collective, int ranks, int chunks, int in_place)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t program;
    signature.name = "test", signature.collective = collective, signature.ranks = ranks, signature.chunks = chunks;
    signature.in_place = in_place;
    assert_right(rondo_program_create(&program, &signature));
    return program;
}

static rondo_chunk_t in(rondo_program_t p, int rank, size_t index)
{
    return rondo_chunk(p, rank, RONDO_BUFFER_INPUT, index, 1);
}

static void expect_wrong(rondo_program_t p, const char *words)
{
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, words);
    rondo_program_destroy(p);
}

static void test_errors(void **state)
{
    (void) state;
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    signature.name = "a b";
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "name");
    signature.name = "ab", signature.collective = "allsum";
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "allsum");
    signature.collective = "allreduce";
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "0 ranks");
    signature.ranks = 3, signature.root = 3;
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "root 3");
    signature.root = 0, signature.collective = "alltonext", signature.in_place = 1;
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "in-place");

    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 2, RONDO_BUFFER_INPUT, 0, 1);
    expect_wrong(p, "rank 2 is not in [0, 2)");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 0, RONDO_BUFFER_INPUT, 0, 2);
    expect_wrong(p, "operation 1");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 1, RONDO_BUFFER_OUTPUT, 0, 1);
    expect_wrong(p, "chunk 0 of rank 1's output is uninitialized");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 1, RONDO_BUFFER_SCRATCH, 5, 1);
    expect_wrong(p, "uninitialized");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk_t old = in(p, 0, 0);
    rondo_chunk_reduce(old, in(p, 1, 0));
    rondo_chunk_copy(old, 1, RONDO_BUFFER_OUTPUT, 0);
    expect_wrong(p, "stale reference: chunk 0 of rank 0's input");
    p = make("allreduce", 2, 2, 0);
    rondo_chunk_reduce(rondo_chunk(p, 0, RONDO_BUFFER_INPUT, 0, 2), in(p, 1, 0));
    expect_wrong(p, "2 chunks of rank 0 cannot be reduced with 1");
    p = make("allreduce", 2, 2, 0);
    rondo_chunk_copy(rondo_chunk(p, 0, RONDO_BUFFER_INPUT, 0, 2), 0, RONDO_BUFFER_INPUT, 1);
    expect_wrong(p, "which" + 5); /* outside of the buffer */
    p = make("allreduce", 2, 1, 0);
    rondo_program_channel(p, 5000);
    expect_wrong(p, "channel 5000");
    p = make("allreduce", 2, 1, 0);
    rondo_program_parallelize(p, 65);
    expect_wrong(p, "parallelize by 65");
    p = make("allreduce", 2, 1, 0);
    rondo_program_serialize(p);
    expect_wrong(p, "serialize without");
    p = make("allreduce", 2, 1, 0);
    rondo_program_parallelize(p, 2);
    expect_wrong(p, "without serialize");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 0, RONDO_BUFFER_SCRATCH, SIZE_MAX, 1);
    expect_wrong(p, "chunks");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk_copy(in(p, 0, 0), 0, RONDO_BUFFER_SCRATCH, (size_t) 1 << 40);
    expect_wrong(p, "chunks");
}

/* A single rank has nothing to send. */
static void test_one_rank(void **state)
{
    (void) state;
    rondo_program_t p = make("allreduce", 1, 3, 1);
    assert_right(rondo_program_check(p, NULL));
    rondo_program_limits_t limits = {0, 513, 0};
    assert_says(rondo_program_check(p, &limits), RONDO_ERR_ARGUMENT, "513 blocks");
    rondo_program_destroy(p);
}

/* The postcondition refuses programs that compute something else. */
static void test_wrong_results(void **state)
{
    (void) state;
    rondo_program_t p = make("allreduce", 3, 1, 1);
    expect_wrong(p, "output chunk 0 of rank 0 ends as the combination of 1 input chunks, not of the 3");
    p = make("allreduce", 2, 1, 1); /* the same input twice */
    rondo_chunk_t sum = rondo_chunk_reduce(in(p, 0, 0), in(p, 1, 0));
    rondo_chunk_reduce(in(p, 1, 0), sum);
    expect_wrong(p, "rank 1 ends as the combination of 3");
    p = make("alltoall", 2, 1, 0); /* the right number of chunks, but another block */
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < 2; to++)
            rondo_chunk_copy(in(p, from, (size_t) from), to, RONDO_BUFFER_OUTPUT, (size_t) from);
    expect_wrong(p, "but others");
}

static void test_custom(void **state)
{
    (void) state;
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    int both[] = {0, 1};
    size_t indexes[] = {0, 1};
    signature.name = "diagonal", signature.collective = "custom", signature.ranks = 2, signature.inputs = 2,
    signature.outputs = 1;
    for (int good = 0; good < 2; good++) {
        assert_right(rondo_program_create(&p, &signature));
        rondo_program_require(p, 1, 0, 2, both, indexes);
        rondo_chunk_t c = rondo_chunk_copy(in(p, 0, 0), 1, RONDO_BUFFER_OUTPUT, 0);
        rondo_chunk_reduce(c, in(p, 1, good ? 1 : 0));
        if (good)
            assert_right(rondo_program_check(p, NULL));
        else
            assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, "output chunk 0 of rank 1");
        rondo_program_destroy(p);
    }
}

static rondo_program_t start_custom(int ranks, int inputs, int outputs)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    signature.name = "own", signature.collective = "custom", signature.ranks = ranks, signature.inputs = inputs,
    signature.outputs = outputs;
    assert_right(rondo_program_create(&p, &signature));
    return p;
}

/* Rank 1 has a copy of rank 0's input, and rank 2 the sum of both its own and rank 0's. */
static void test_precondition(void **state)
{
    (void) state;
    const int zero = 0, both[] = {0, 2};
    const size_t first[] = {0, 0};
    rondo_program_t p = start_custom(3, 1, 1); /* the copy of a copy is the original */
    rondo_program_assume(p, 1, 0, 1, &zero, first);
    rondo_program_assume(p, 2, 0, 2, both, first);
    rondo_program_require(p, 2, 0, 1, &zero, first);
    rondo_program_require(p, 0, 0, 2, both, first);
    rondo_chunk_copy(in(p, 1, 0), 2, RONDO_BUFFER_OUTPUT, 0);
    rondo_chunk_copy(in(p, 2, 0), 0, RONDO_BUFFER_OUTPUT, 0);
    assert_right(rondo_program_check(p, NULL));
    rondo_program_destroy(p);

    p = start_custom(3, 1, 1); /* without the precondition the same program is wrong */
    rondo_program_require(p, 2, 0, 1, &zero, first);
    rondo_chunk_copy(in(p, 1, 0), 2, RONDO_BUFFER_OUTPUT, 0);
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, "but others");
    rondo_program_destroy(p);

    p = start_custom(2, 1, 1); /* nothing to read */
    rondo_program_assume(p, 1, 0, 0, NULL, NULL);
    rondo_program_require(p, 0, 0, 1, &zero, first);
    in(p, 1, 0);
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, "chunk 0 of rank 1's input");
    rondo_program_destroy(p);

    p = start_custom(2, 1, 1); /* what an instruction counts on comes first */
    rondo_program_require(p, 0, 0, 1, &zero, first);
    rondo_chunk_copy(in(p, 0, 0), 0, RONDO_BUFFER_OUTPUT, 0);
    rondo_program_assume(p, 1, 0, 1, &zero, first);
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_STATE, "after the first operation");
    rondo_program_destroy(p);

    p = start_custom(2, 1, 1);
    rondo_chunk_copy(in(p, 0, 0), 1, RONDO_BUFFER_OUTPUT, 0);
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, "without a postcondition");
    rondo_program_destroy(p);

    p = start_custom(2, 1, 1);
    rondo_program_assume(p, 0, 1, 1, &zero, first);
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, "assume: rank 0, input chunk 1, 1 terms: out of range");
    rondo_program_destroy(p);
}

/* ---- budgets ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static void time_one(const char *name, const char *collective, int ranks)
{
    struct rondo_compile_options options = {.blocks = 64, .slots = 4};
    struct rondo_verify_limits limits = {4, 512, 0};
    struct rondo_plan_set *set;
    rondo_program_t p;
    double start = seconds();
    assert_right(rondo_program_builtin(name, collective, ranks, 1, 0, &p));
    assert_right(plans_compile(p, &options, -1, &set));
    double compiling = seconds() - start;
    start = seconds();
    assert_right(rondo_verify_plans(set, name, &limits, 0));
    double checking = seconds() - start;
    print_message("%s %s on %d ranks: compiled in %.2f s, checked in %.2f s\n", name, collective, ranks, compiling, checking);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    assert_true(compiling < 10 && checking < compiling + 0.5);
    assert_true(used.ru_maxrss < 2L << 20); /* KiB, the maximum of all tests until now */
    rondo_plan_set_free(set);
    rondo_program_destroy(p);
}

static void test_budgets(void **state)
{
    (void) state;
    time_one("twostep", "alltoall", 256);
    time_one("compiled-hierarchical", "allreduce", 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank), cmocka_unit_test(test_errors),       cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_custom),   cmocka_unit_test(test_precondition), cmocka_unit_test(test_budgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
