/* The environment table and the meaning of each launcher's variables. Every test starts with an empty environment. */
#include "lib/base/environment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int empty(void **state)
{
    (void) state;
    return clearenv();
}

static void expect_error(rondo_result_t result, rondo_result_t expected, const char *part1, const char *part2)
{
    assert_int_equal(result, expected);
    if (strstr(rondo_last_error(), part1) == NULL || strstr(rondo_last_error(), part2) == NULL)
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", rondo_last_error(), part1, part2);
}

static void test_table(void **state)
{
    (void) state;
    const rondo_variable_t *variable;
    int rows = 0;
    for (; (variable = rondo_environment_describe(rows)) != NULL; rows++) {
        assert_true(strncmp(variable->name, "RONDO_", 6) == 0);
        assert_true(strlen(variable->meaning) > 10);
        const char *value;
        assert_int_equal(rondo_environment_text(variable->name, &value), RONDO_SUCCESS);
        if (*variable->fallback == '\0')
            assert_null(value);
        else
            assert_string_equal(value, variable->fallback);
        for (int j = 0; j < rows; j++)
            assert_string_not_equal(variable->name, rondo_environment_describe(j)->name);
    }
    assert_true(rows > 20);
    assert_null(rondo_environment_describe(-1));
    double timeout;
    int64_t memory;
    assert_int_equal(rondo_environment_real("RONDO_TIMEOUT", &timeout), RONDO_SUCCESS);
    assert_true(timeout == 0);
    assert_int_equal(rondo_environment_size("RONDO_MEMORY", &memory), RONDO_SUCCESS);
    assert_true(memory == (int64_t) 4 << 30);
}

static void test_values(void **state)
{
    (void) state;
    const char *text;
    int64_t integer;
    double real;
    expect_error(rondo_environment_text("RONDO_NONSENSE", &text), RONDO_ERR_INTERNAL, "RONDO_NONSENSE", "table");
    setenv("RONDO_ORDER", "priority", 1);
    assert_int_equal(rondo_environment_text("RONDO_ORDER", &text), RONDO_SUCCESS);
    assert_string_equal(text, "priority");
    setenv("RONDO_ORDER", "", 1);
    assert_int_equal(rondo_environment_text("RONDO_ORDER", &text), RONDO_SUCCESS);
    assert_string_equal(text, "fifo");

    setenv("RONDO_SPIN_CAP", "-17", 1);
    assert_int_equal(rondo_environment_integer("RONDO_SPIN_CAP", &integer), RONDO_SUCCESS);
    assert_int_equal(integer, -17);
    static const char *const not_integers[] = {"12x", "x", " 1", "1 ", "1.5", "0x10", "+-1", "99999999999999999999", "-"};
    for (size_t i = 0; i < sizeof(not_integers) / sizeof(not_integers[0]); i++) {
        setenv("RONDO_SPIN_CAP", not_integers[i], 1);
        expect_error(rondo_environment_integer("RONDO_SPIN_CAP", &integer), RONDO_ERR_ARGUMENT, "RONDO_SPIN_CAP",
                     not_integers[i]);
    }
    expect_error(rondo_environment_integer("RONDO_RANK", &integer), RONDO_ERR_ARGUMENT, "RONDO_RANK", "not set");

    setenv("RONDO_TIMEOUT", "2.5", 1);
    assert_int_equal(rondo_environment_real("RONDO_TIMEOUT", &real), RONDO_SUCCESS);
    assert_true(real == 2.5);
    static const char *const not_reals[] = {"soon", "2,5", "1s", "inf", "nan", " 1"};
    for (size_t i = 0; i < sizeof(not_reals) / sizeof(not_reals[0]); i++) {
        setenv("RONDO_TIMEOUT", not_reals[i], 1);
        expect_error(rondo_environment_real("RONDO_TIMEOUT", &real), RONDO_ERR_ARGUMENT, "RONDO_TIMEOUT", not_reals[i]);
    }
}

static void test_sizes(void **state)
{
    (void) state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"0", 0},
                {"123", 123},
                {"64K", 65536},
                {"64k", 65536},
                {"3M", 3 << 20},
                {"2G", (int64_t) 2 << 30},
                {"8589934591G", (int64_t) 8589934591 << 30},
                {"9223372036854775807", INT64_MAX}};
    int64_t bytes;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        setenv("RONDO_MEMORY", good[i].text, 1);
        assert_int_equal(rondo_environment_size("RONDO_MEMORY", &bytes), RONDO_SUCCESS);
        assert_true(bytes == good[i].bytes);
    }
    static const char *const bad[] = {"K", "-1", "1KB", "1 K", "1.5G", "much", "8589934592G", "9223372036854775808"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("RONDO_MEMORY", bad[i], 1);
        expect_error(rondo_environment_size("RONDO_MEMORY", &bytes), RONDO_ERR_ARGUMENT, "RONDO_MEMORY", bad[i]);
    }
}

static void expect_launch(const char *launcher, int rank, int size, int local_rank, int local_size, const char *job)
{
    struct rondo_launch launch;
    assert_int_equal(rondo_environment_launch(&launch), RONDO_SUCCESS);
    assert_string_equal(launch.launcher, launcher);
    assert_int_equal(launch.rank, rank);
    assert_int_equal(launch.size, size);
    assert_int_equal(launch.local_rank, local_rank);
    assert_int_equal(launch.local_size, local_size);
    assert_string_equal(launch.job, job);
}

static void test_launchers(void **state)
{
    (void) state;
    char parent[64], self[64];
    snprintf(parent, sizeof(parent), "parent-%ld", (long) getppid());
    snprintf(self, sizeof(self), "process-%ld", (long) getpid());
    expect_launch("none", 0, 1, -1, -1, self);

    setenv("SLURM_PROCID", "5", 1);
    setenv("SLURM_NTASKS", "9", 1);
    setenv("SLURM_LOCALID", "1", 1);
    expect_launch("Slurm", 5, 9, 1, -1, parent);
    setenv("SLURM_STEP_NUM_TASKS", "6", 1);
    setenv("SLURM_JOB_ID", "777", 1);
    setenv("SLURM_STEP_ID", "2", 1);
    expect_launch("Slurm", 5, 6, 1, -1, "slurm-777.2");

    setenv("PMI_RANK", "3", 1);
    setenv("PMI_SIZE", "4", 1);
    setenv("MPI_LOCALRANKID", "1", 1);
    setenv("MPI_LOCALNRANKS", "2", 1);
    expect_launch("MPICH", 3, 4, 1, 2, parent);
    setenv("PMI_JOBID", "kvs_9", 1);
    expect_launch("MPICH", 3, 4, 1, 2, "mpich-kvs_9");

    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1", 1);
    expect_launch("Open MPI", 0, 2, 0, 1, parent);
    setenv("OMPI_MCA_ess_base_jobid", "1234", 1);
    expect_launch("Open MPI", 0, 2, 0, 1, "openmpi-1234");
    setenv("PMIX_NAMESPACE", "prterun-a-1@1", 1);
    expect_launch("Open MPI", 0, 2, 0, 1, "openmpi-prterun-a-1@1");

    setenv("RONDO_RANK", "6", 1);
    setenv("RONDO_SIZE", "7", 1);
    expect_launch("RONDO_RANK", 6, 7, -1, -1, parent);
    setenv("RONDO_JOB", "mine", 1);
    expect_launch("RONDO_RANK", 6, 7, -1, -1, "mine");
    unsetenv("RONDO_RANK");
    unsetenv("RONDO_SIZE");
    expect_launch("Open MPI", 0, 2, 0, 1, "mine");
}

static void expect_launch_error(const char *rank, const char *size, const char *part1, const char *part2)
{
    struct rondo_launch launch;
    clearenv();
    if (rank != NULL)
        setenv("RONDO_RANK", rank, 1);
    if (size != NULL)
        setenv("RONDO_SIZE", size, 1);
    expect_error(rondo_environment_launch(&launch), RONDO_ERR_ARGUMENT, part1, part2);
}

static void test_bad_launches(void **state)
{
    (void) state;
    struct rondo_launch launch;
    expect_launch_error("1", NULL, "RONDO_SIZE is not", "RONDO_RANK=1");
    expect_launch_error(NULL, "4", "RONDO_RANK is not", "RONDO_SIZE=4");
    expect_launch_error("4", "4", "RONDO_RANK=4", "RONDO_SIZE=4");
    expect_launch_error("-1", "4", "RONDO_RANK=-1", "range");
    expect_launch_error("0", "0", "RONDO_SIZE=0", "range");
    expect_launch_error("one", "4", "RONDO_RANK", "\"one\"");
    expect_launch_error("1", "4x", "RONDO_SIZE", "\"4x\"");
    expect_launch_error("1", "4294967298", "RONDO_SIZE", "4294967298");
    clearenv();
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    expect_error(rondo_environment_launch(&launch), RONDO_ERR_ARGUMENT, "OMPI_COMM_WORLD_RANK=1",
                 "OMPI_COMM_WORLD_SIZE is not");
}

/* Two long names that differ only in their last letter must stay different. */
static void test_long_job(void **state)
{
    (void) state;
    char name[600];
    struct rondo_launch first, second;
    memset(name, 'j', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    setenv("RONDO_JOB", name, 1);
    assert_int_equal(rondo_environment_launch(&first), RONDO_SUCCESS);
    name[sizeof(name) - 2] = 'k';
    setenv("RONDO_JOB", name, 1);
    assert_int_equal(rondo_environment_launch(&second), RONDO_SUCCESS);
    assert_int_equal(strlen(first.job), sizeof(first.job) - 1);
    assert_string_not_equal(first.job, second.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_table, empty),        cmocka_unit_test_setup(test_values, empty),
        cmocka_unit_test_setup(test_sizes, empty),        cmocka_unit_test_setup(test_launchers, empty),
        cmocka_unit_test_setup(test_bad_launches, empty), cmocka_unit_test_setup(test_long_job, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
