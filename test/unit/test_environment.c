/* The environment table, what rondo_init makes of wrong values, and the meaning of each launcher's variables. Every test starts
 * with an empty environment. */
#include "lib/base/environment.h"

#include "lib/base/error.h"
#include "lib/base/host.h"
#include "lib/context/runtime.h"
#include "lib/select/tuning.h"
#include "proxy/proxies.h"
#include "transport/memory/slot_memory.h"
#include "transport/transport.h"

#include <dirent.h>
#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
    assert_int_equal(rondo_environment_integer("RONDO_MEMORY", &memory), RONDO_SUCCESS);
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
    expect_error(rondo_environment_integer("RONDO_SPIN_CAP", &integer), RONDO_ERR_ARGUMENT, "RONDO_SPIN_CAP=\"-17\"",
                 "an integer from 0 to 1000000000000 (nanoseconds)");
    setenv("RONDO_RDMA_GID", "-1", 1);
    assert_int_equal(rondo_environment_integer("RONDO_RDMA_GID", &integer), RONDO_SUCCESS);
    assert_int_equal(integer, -1);
    expect_error(rondo_environment_integer("RONDO_TIMEOUT", &integer), RONDO_ERR_INTERNAL, "RONDO_TIMEOUT", "kind");
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
    static const char *const not_reals[] = {"soon", "2,5", "1s", "inf", "nan", " 1", "0x10", "1e3", ".5", "2.", "-0"};
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
                {"1048576G", (int64_t) 1 << 50},
                {"1125899906842624", (int64_t) 1 << 50}};
    int64_t bytes;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        setenv("RONDO_MEMORY", good[i].text, 1);
        assert_int_equal(rondo_environment_integer("RONDO_MEMORY", &bytes), RONDO_SUCCESS);
        assert_true(bytes == good[i].bytes);
    }
    static const char *const bad[] = {
        "K", "-1", "1KB", "1 K", "1.5G", "much", "1048577G", "1125899906842625", "8589934592G", "9223372036854775808"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        setenv("RONDO_MEMORY", bad[i], 1);
        expect_error(rondo_environment_integer("RONDO_MEMORY", &bytes), RONDO_ERR_ARGUMENT, "RONDO_MEMORY", bad[i]);
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
    if (local_size > 0)
        assert_int_equal(launch.spans_hosts, local_size < size);
    assert_string_equal(launch.job, job);
}

/* Slurm alone says how many hosts there are. */
static void test_hosts_of_a_launch(void **state)
{
    static const struct {
        const char *of_step, *of_job;
        int spans_hosts;
    } cases[] = {{NULL, NULL, 0}, {NULL, "1", 0}, {NULL, "3", 1}, {"1", "3", 0}, {"2", "1", 1}, {"many", NULL, 0}};
    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rondo_launch launch;
        clearenv();
        setenv("SLURM_PROCID", "0", 1);
        setenv("SLURM_NTASKS", "4", 1);
        if (cases[i].of_step != NULL)
            setenv("SLURM_STEP_NUM_NODES", cases[i].of_step, 1);
        if (cases[i].of_job != NULL)
            setenv("SLURM_NNODES", cases[i].of_job, 1);
        assert_int_equal(rondo_environment_launch(&launch), RONDO_SUCCESS);
        assert_int_equal(launch.spans_hosts, cases[i].spans_hosts);
    }
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
    expect_launch_error("-1", "4", "RONDO_RANK=\"-1\"", "an integer from 0");
    expect_launch_error("0", "0", "RONDO_SIZE=\"0\"", "an integer from 1");
    expect_launch_error("one", "4", "RONDO_RANK", "\"one\"");
    expect_launch_error("1", "4x", "RONDO_SIZE", "\"4x\"");
    expect_launch_error("1", "4294967298", "RONDO_SIZE", "4294967298");
    clearenv();
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    expect_error(rondo_environment_launch(&launch), RONDO_ERR_ARGUMENT, "OMPI_COMM_WORLD_RANK=1",
                 "OMPI_COMM_WORLD_SIZE is not");
    /* Garbage in what decides rank and size. */
    static const char *const deciding[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                              {"PMI_RANK", "PMI_SIZE"},
                                              {"SLURM_PROCID", "SLURM_NTASKS"},
                                              {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
    for (size_t i = 0; i < sizeof(deciding) / sizeof(deciding[0]); i++)
        for (int which = 0; which < 2; which++) {
            clearenv();
            setenv(deciding[i][0], "0", 1);
            setenv(deciding[i][1], "1", 1);
            assert_int_equal(rondo_environment_launch(&launch), RONDO_SUCCESS);
            setenv(deciding[i][which], "1x", 1);
            expect_error(rondo_environment_launch(&launch), RONDO_ERR_ARGUMENT, deciding[i][which], "\"1x\"");
        }
    setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    setenv("SLURM_LOCALID", "0x1", 1);
    setenv("SLURM_PROCID", "1", 1);
    expect_error(rondo_environment_launch(&launch), RONDO_ERR_ARGUMENT, "SLURM_LOCALID", "\"0x1\"");
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

/* ---- what other rooms know too ---- */

static const rondo_variable_t *row(const char *name)
{
    const rondo_variable_t *variable = rondo_environment_find(name);
    assert_non_null(variable);
    return variable;
}

/* Whether the text is one of the words, separated by commas. */
static int is_word(const char *words, const char *text)
{
    char list[300], item[6000];
    snprintf(list, sizeof(list), ",%s,", words);
    snprintf(item, sizeof(item), ",%s,", text);
    return *text != '\0' && strchr(text, ',') == NULL && strstr(list, item) != NULL;
}

/* Whether the words, separated by commas, are these. */
static void expect_words(const char *name, const char *const *words, size_t count)
{
    char joined[256] = "";
    for (size_t i = 0; i < count; i++)
        snprintf(joined + strlen(joined), sizeof(joined) - strlen(joined), "%s%s", i > 0 ? "," : "", words[i]);
    assert_string_equal(row(name)->words, joined);
}

static void test_rooms(void **state)
{
    static const char *const protocols[] = RONDO_PROTOCOL_NAMES;
    const char *memories[RONDO_SLOTS_KINDS + 1] = {"auto"};
    int count;
    (void) state;
    assert_true(row("RONDO_BLOCKS")->most == RONDO_CHANNELS_MAX && row("RONDO_CHANNELS")->most == RONDO_CHANNELS_MAX);
    assert_true(row("RONDO_STREAM_BLOCKS")->most == 2 * RONDO_CHANNELS_MAX);
    assert_true(row("RONDO_SM")->most == 2 * RONDO_CHANNELS_MAX);
    assert_true(row("RONDO_PROXY_THREADS")->most == RONDO_PROXIES_MAX);
    assert_true(row("RONDO_ALGORITHM")->most == sizeof(((struct rondo_settings *) NULL)->algorithm) - 1);
    expect_words("RONDO_PROTOCOL", protocols + 1, sizeof(protocols) / sizeof(protocols[0]) - 1);
    for (int i = 0; i < RONDO_SLOTS_KINDS; i++)
        memories[i + 1] = rondo_slot_memory_names[i];
    expect_words("RONDO_GPUDIRECT", memories, RONDO_SLOTS_KINDS + 1);
    const struct rondo_transport *const *transports = rondo_transport_table(&count);
    for (int i = 0; i < count; i++)
        if (!is_word(row("RONDO_TRANSPORTS")->words, transports[i]->name))
            fail_msg("transport %s is none of RONDO_TRANSPORTS's words: %s", transports[i]->name,
                     row("RONDO_TRANSPORTS")->words);
    assert_int_equal(rondo_environment_choice_or_default("RONDO_LOG"), RONDO_LOG_WARN);
    setenv("RONDO_LOG", "debug", 1);
    assert_int_equal(rondo_environment_choice_or_default("RONDO_LOG"), RONDO_LOG_DEBUG);
    setenv("RONDO_LOG", "loud", 1);
    assert_int_equal(rondo_environment_choice_or_default("RONDO_LOG"), RONDO_LOG_WARN);
}

/* ---- wrong values ---- */

static int matches(const char *pattern, const char *text)
{
    regex_t compiled;
    assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int found = regexec(&compiled, text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

/* What the guide says of each kind, in the words of regular expressions, apart from the library's parser. */
static int is_documented(const rondo_variable_t *variable, const char *text)
{
    long double value = strtold(text, NULL);
    size_t length = strlen(text);
    if (strpbrk(text, "\t\n\r\033\177\001") != NULL)
        return 0;
    switch (variable->kind) {
    case RONDO_VARIABLE_INTEGER:
        return (matches("^-?[0-9]+$", text) && value >= variable->least && value <= variable->most) ||
               is_word(variable->words, text);
    case RONDO_VARIABLE_SIZE:
        if (matches("[Kk]$", text))
            value *= 1 << 10;
        else if (matches("[Mm]$", text))
            value *= 1 << 20;
        else if (matches("[Gg]$", text))
            value *= 1 << 30;
        return (matches("^[0-9]+[KMGkmg]?$", text) && value >= variable->least && value <= variable->most) ||
               is_word(variable->words, text);
    case RONDO_VARIABLE_REAL:
        return matches("^[0-9]+([.][0-9]+)?$", text) && value >= variable->least && value <= variable->most;
    case RONDO_VARIABLE_CHOICE:
        return is_word(variable->words, text);
    case RONDO_VARIABLE_LIST:
        return *variable->words != '\0' ? is_word(variable->words, text) : matches("^[][A-Za-z0-9_.:-]+$", text);
    case RONDO_VARIABLE_TEXT:
    case RONDO_VARIABLE_PATH:
        return (double) length <= variable->most;
    case RONDO_VARIABLE_ADDRESS:
        return matches("^([A-Za-z0-9][A-Za-z0-9._-]{0,254}|[[][0-9a-f:.]+[]])(:[0-9]{1,5})?$", text) ||
               (matches("^(([A-Za-z0-9][A-Za-z0-9._-]{0,254}|[[][0-9a-f:.]+[]]):[0-9]{1,5},)+[][A-Za-z0-9:._-]+:[0-9]{1,5}$",
                        text) &&
                !matches("(^|,)([^,]+),(.*,)?\\2(,|$)", text));
    case RONDO_VARIABLE_SIGNAL:
        return is_word(variable->words, text) || (matches("^[0-9]+$", text) && value >= 1 && value <= 64);
    }
    return 0;
}

/* Starts and ends a job of one rank, from the environment or, for what decides the rank, as the environment says. */
static rondo_result_t start(int launched)
{
    rondo_t runtime;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.rank = 0;
    config.size = 1;
    rondo_result_t result = rondo_init(&runtime, launched ? NULL : &config);
    if (result == RONDO_SUCCESS)
        assert_int_equal(rondo_finalize(runtime), RONDO_SUCCESS);
    else
        assert_null(runtime);
    return result;
}

/* Each value is refused with the variable, the value and what is allowed, or is one that the guide allows. */
static void judge(const rondo_variable_t *variable, const char *value, int *refused)
{
    char said[1100], shown[24];
    int launched = strcmp(variable->name, "RONDO_RANK") == 0 || strcmp(variable->name, "RONDO_SIZE") == 0;
    if (launched) {
        setenv("RONDO_RANK", "0", 1);
        setenv("RONDO_SIZE", "1", 1);
    }
    setenv(variable->name, value, 1);
    rondo_result_t result = start(launched);
    snprintf(said, sizeof(said), "%s", result == RONDO_SUCCESS ? "" : rondo_last_error());
    unsetenv(variable->name);
    if (launched) {
        unsetenv("RONDO_RANK");
        unsetenv("RONDO_SIZE");
    }
    snprintf(shown, sizeof(shown), "%.20s", value); /* a long one is cut */
    shown[strcspn(shown, "\t\n\r\033\177\001")] = '\0';
    if (strcmp(variable->name, "RONDO_SECRET") == 0)
        snprintf(shown, sizeof(shown), "hidden");
    int documented = is_documented(variable, value), by_row = strstr(said, "it must be") != NULL;
    *refused += !documented;
    if (result == RONDO_SUCCESS ? !documented
                                : strstr(said, variable->name) == NULL || strstr(said, shown) == NULL ||
                                      (by_row && documented) || (!documented && (!by_row || result != RONDO_ERR_ARGUMENT)))
        fail_msg("%s=\"%.40s\", which the guide %s: %d \"%s\"", variable->name, value, documented ? "allows" : "does not allow",
                 (int) result, said);
}

static void remove_all(const char *folder)
{
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;)
        if (entry->d_type == DT_REG)
            unlinkat(dirfd(open), entry->d_name, 0);
    closedir(open);
    rmdir(folder);
}

static void test_wrong_values(void **state)
{
    static char exceeding[5000], longer[5000];
    const char *values[] = {" ",
                            "a:1,",
                            "a:1,,b:2",
                            "a:1,a:1",
                            "[::1]:5,[::1]",
                            "  ",
                            "abc",
                            "-1",
                            "2.5",
                            "10s",
                            "0x10",
                            "1e999",
                            "nan",
                            "inf",
                            "1 2",
                            "1,",
                            ",",
                            "99999999999999999999",
                            "+1",
                            " 1",
                            "1 ",
                            "1\n",
                            "\x1b[31m",
                            "caf\xc3\xa9",
                            "\xff\xfe",
                            "TRUE",
                            "auto,",
                            "%s%n",
                            "\"",
                            "-",
                            "--1",
                            "1.2.3",
                            "18446744073709551616",
                            "-9223372036854775809",
                            "4097G",
                            "1T",
                            "0b1",
                            "1_000",
                            "a,,b",
                            "a,b,a",
                            "\t",
                            "\n",
                            "\r",
                            "\033",
                            "\177",
                            "\001",
                            "a\tb",
                            "a\nb",
                            "a\rb",
                            "a\177",
                            "a\001",
                            "/dev/null\n",
                            "\r\n",
                            exceeding,
                            longer};
    const rondo_variable_t *variable;
    char folder[] = "/tmp/rondo-test-environment-XXXXXX", before[1024];
    (void) state;
    memset(exceeding, '7', sizeof(exceeding) - 1);
    memset(longer, 'x', sizeof(longer) - 1);
    assert_non_null(getcwd(before, sizeof(before)));
    assert_non_null(mkdtemp(folder)); /* paths that are accepted become files there */
    assert_int_equal(chdir(folder), 0);
    for (int i = 0; (variable = rondo_environment_describe(i)) != NULL; i++) {
        int refused = 0;
        for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++)
            judge(variable, values[v], &refused);
        if (refused < 16)
            fail_msg("only %d values are wrong for %s", refused, variable->name);
        setenv(variable->name, "", 1); /* empty counts as unset */
        assert_int_equal(start(0), RONDO_SUCCESS);
        unsetenv(variable->name);
    }
    assert_int_equal(chdir(before), 0);
    remove_all(folder);
}

/* The ends of each range are allowed, and the next numbers are not, in the environment and in a configuration alike. */
static void test_bounds(void **state)
{
    const rondo_variable_t *variable;
    char text[64];
    int place;
    (void) state;
    for (int i = 0; (variable = rondo_environment_describe(i)) != NULL; i++) {
        if (variable->kind != RONDO_VARIABLE_INTEGER && variable->kind != RONDO_VARIABLE_SIZE)
            continue;
        double numbers[] = {variable->least, variable->most, variable->least - 1, variable->most + 1};
        for (int n = 0; n < 4; n++) {
            snprintf(text, sizeof(text), "%.0f", numbers[n]);
            int allowed = n < 2 || is_word(variable->words, text);
            setenv(variable->name, text, 1);
            assert_int_equal(rondo_environment_check(), allowed ? RONDO_SUCCESS : RONDO_ERR_ARGUMENT);
            assert_int_equal(rondo_environment_allow_text(variable->name, "field", text, &place),
                             allowed ? RONDO_SUCCESS : RONDO_ERR_ARGUMENT);
        }
        unsetenv(variable->name);
    }
}

static void expect_refused(const rondo_config_t *config, const char *field, const char *value)
{
    rondo_t runtime;
    expect_error(rondo_init(&runtime, config), RONDO_ERR_ARGUMENT, field, value);
    assert_null(runtime);
}

static void test_configuration(void **state)
{
    (void) state;
#define EXPECT_REFUSED(field, wrong, shown)                                                                                    \
    do {                                                                                                                       \
        rondo_config_t config = RONDO_CONFIG_DEFAULT;                                                                          \
        config.rank = 0, config.size = 1;                                                                                      \
        config.field = wrong;                                                                                                  \
        expect_refused(&config, #field, shown);                                                                                \
    } while (0)
    EXPECT_REFUSED(transports, "shm,tcp", "\"shm,tcp\"");
    EXPECT_REFUSED(transports, "shm,", "p2p, shm, rdma, ucx");
    EXPECT_REFUSED(host_id, "a\nb", "\"a\\x0ab\"");
    EXPECT_REFUSED(timeout, -2, "\"-2\"");
    EXPECT_REFUSED(timeout, (double) NAN, "nan");
    EXPECT_REFUSED(timeout, 1e10, "\"1e+10\"");
    EXPECT_REFUSED(connect_timeout, 0, "0.001 to");
    EXPECT_REFUSED(check, 2, "0 or 1");
    EXPECT_REFUSED(preempt, -2, "\"-2\"");
    EXPECT_REFUSED(blocks, 121, "0 to 120 (blocks)");
    EXPECT_REFUSED(stream_blocks, 241, "0 to 240 (blocks)");
    EXPECT_REFUSED(sm, 241, "-1 to 240 (multiprocessors)");
    EXPECT_REFUSED(sm, -2, "\"-2\"");
    EXPECT_REFUSED(order, "lifo", "fifo or priority");
    EXPECT_REFUSED(spin, "fast", "adaptive, fixed or profile");
    EXPECT_REFUSED(spin_initial, -2, "0 to 1000000000000 (nanoseconds)");
    EXPECT_REFUSED(spin_decay, 101, "0 to 100 (percent)");
    EXPECT_REFUSED(spin_boost, 0, "1 to 1000");
    EXPECT_REFUSED(spin_cap, INT64_MAX, "9223372036854775807");
    EXPECT_REFUSED(quit_idle_us, -5, "\"-5\"");
    EXPECT_REFUSED(quit_stuck_us, 0, "(microseconds)");
    EXPECT_REFUSED(residency_us, (int64_t) 1 << 40, "(microseconds)");
    EXPECT_REFUSED(memory_budget, -2, "\"-2\"");
    EXPECT_REFUSED(device_index, -2, "-2");
    EXPECT_REFUSED(rank, -3, "rank -3 of 1");
#undef EXPECT_REFUSED
}

/* A unique id is refused too: its root would use the variables. */
static void test_unique_id(void **state)
{
    rondo_unique_id_t id;
    (void) state;
    setenv("RONDO_HEARTBEAT", "2.5", 1);
    expect_error(rondo_get_unique_id(&id), RONDO_ERR_ARGUMENT, "RONDO_HEARTBEAT=\"2.5\"", "(seconds)");
}

static void test_nearest(void **state)
{
    static const char *const names[][2] = {{"RONDO_TIMOUT", "RONDO_TIMEOUT"},
                                           {"RONDO_TIEMOUT", "RONDO_TIMEOUT"},
                                           {"RONDO_HEART_BEAT", "RONDO_HEARTBEAT"},
                                           {"RONDO_TRANSPORT", "RONDO_TRANSPORTS"},
                                           {"RONDO_algorithm", "RONDO_ALGORITHM"},
                                           {"RONDO_MEMROY", "RONDO_MEMORY"},
                                           {"RONDO_QUIT_IDLE_US", "RONDO_QUIT_IDLE"},
                                           {"RONDO_LOGS", "RONDO_LOG"},
                                           {"RONDO_FROBNICATE", NULL},
                                           {"RONDO_", NULL}};
    (void) state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *nearest = rondo_environment_nearest(names[i][0], strlen(names[i][0]));
        if (names[i][1] == NULL)
            assert_null(nearest);
        else
            assert_string_equal(nearest, names[i][1]);
    }
}

/* Names that begin as Rondo's do, are no variables and not reserved are counted, once a process. */
static void test_unknown(void **state)
{
    (void) state;
    setenv("RONDO_TIMOUT", "3", 1);
    setenv("RONDO_\033[0m", "3", 1);
    setenv("RONDO_X_BUILD", "build", 1);
    setenv("RONDO_TIMEOUT", "3", 1);
    setenv("RONDOS", "3", 1);
    assert_int_equal(rondo_environment_warn_of_unknown(0), 2);
    assert_int_equal(rondo_environment_warn_of_unknown(0), 0);
}

/* Ranks whose hosts' names differ only behind what is retained of them do not share a host. */
static void test_long_host_id(void **state)
{
    char first[128], second[128], name[256];
    (void) state;
    memset(name, 'h', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    setenv("RONDO_HOSTID", name, 1);
    rondo_host_id(NULL, first, sizeof(first));
    name[sizeof(name) - 2] = 'g';
    setenv("RONDO_HOSTID", name, 1);
    rondo_host_id(NULL, second, sizeof(second));
    assert_string_not_equal(first, second);
    assert_true(strlen(first) < sizeof(first) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_unknown, empty), /* before a runtime warns */
        cmocka_unit_test_setup(test_table, empty),         cmocka_unit_test_setup(test_values, empty),
        cmocka_unit_test_setup(test_sizes, empty),         cmocka_unit_test_setup(test_launchers, empty),
        cmocka_unit_test(test_hosts_of_a_launch),          cmocka_unit_test_setup(test_bad_launches, empty),
        cmocka_unit_test_setup(test_long_job, empty),      cmocka_unit_test_setup(test_rooms, empty),
        cmocka_unit_test_setup(test_wrong_values, empty),  cmocka_unit_test_setup(test_bounds, empty),
        cmocka_unit_test_setup(test_configuration, empty), cmocka_unit_test_setup(test_unique_id, empty),
        cmocka_unit_test_setup(test_nearest, empty),       cmocka_unit_test_setup(test_long_host_id, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
