/*
 * The environment: the first byte picks one or two variables of the table or of a launcher, the rest are their values. Each is
 * refused with a message that has its name and what is allowed, or read as a value that its row allows. Names that the table
 * lacks get a suggestion that the table has, or none.
 */
#include "lib/base/environment.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { VALUE_MOST = 8192 };

static const char *const launchers[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMIX_NAMESPACE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALRANKID",
                                        "PMI_JOBID",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID"};
#define LAUNCHERS ((int) (sizeof(launchers) / sizeof(launchers[0])))

static int rows(void)
{
    int count = 0;
    while (rondo_environment_describe(count) != NULL)
        count++;
    return count;
}

/* The message of a refusal names the variable, and shows no secret. */
static void judge_message(const char *name, const char *value)
{
    const char *said = rondo_last_error();
    if (strstr(said, name) == NULL || strstr(said, "it must be") == NULL)
        abort();
    if (strcmp(name, "RONDO_SECRET") == 0 && strlen(value) >= 8 && strstr(said, value) != NULL)
        abort();
}

static void judge_value(const rondo_variable_t *variable, const char *value)
{
    const char *text = NULL;
    int64_t integer = 0;
    double real = 0;
    int place = 0;
    if (rondo_environment_text(variable->name, &text) != RONDO_SUCCESS || strcmp(text, value) != 0)
        abort();
    switch (variable->kind) {
    case RONDO_VARIABLE_INTEGER:
    case RONDO_VARIABLE_SIZE:
    case RONDO_VARIABLE_SIGNAL:
        if (rondo_environment_integer(variable->name, &integer) != RONDO_SUCCESS)
            abort();
        real = (double) integer;
        break;
    case RONDO_VARIABLE_REAL:
        if (rondo_environment_real(variable->name, &real) != RONDO_SUCCESS)
            abort();
        break;
    case RONDO_VARIABLE_CHOICE:
        if (rondo_environment_choice(variable->name, &place) != RONDO_SUCCESS || place < 0)
            abort();
        return;
    default:
        return;
    }
    if ((real < variable->least || real > variable->most) && strstr(variable->words, value) == NULL)
        abort();
}

static void judge_launch(void)
{
    struct rondo_launch launch;
    if (rondo_environment_launch(&launch) != RONDO_SUCCESS) {
        if (rondo_last_error()[0] == '\0')
            abort();
    } else if (launch.rank < 0 || launch.rank >= launch.size || launch.local_rank < -1 || launch.local_size < -1 ||
               memchr(launch.job, '\0', sizeof(launch.job)) == NULL) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char values[2][VALUE_MOST + 1] = {"", ""};
    const char *names[2] = {NULL, NULL};
    int count = rows();
    if (bytes < 2 || bytes > VALUE_MOST)
        return 0;
    /* Two values are separated by a zero. */
    const uint8_t *zero = memchr(data + 1, 0, bytes - 1);
    size_t first = zero != NULL ? (size_t) (zero - data) - 1 : bytes - 1;
    memcpy(values[0], data + 1, first);
    if (zero != NULL)
        memcpy(values[1], zero + 1, strnlen((const char *) zero + 1, (size_t) (data + bytes - zero) - 1));
    for (int i = 0; i < 2 && values[i][0] != '\0'; i++) {
        int picked = (data[0] + i) % (count + LAUNCHERS);
        names[i] = picked < count ? rondo_environment_describe(picked)->name : launchers[picked - count];
        setenv(names[i], values[i], 1);
    }
    if (names[0] != NULL) {
        if (rondo_environment_check() != RONDO_SUCCESS) {
            const char *wrong = strstr(rondo_last_error(), names[0]) == rondo_last_error() ? names[0] : names[1];
            judge_message(wrong, wrong == names[0] ? values[0] : values[1]);
        } else {
            for (int i = 0; i < 2 && names[i] != NULL; i++)
                if (rondo_environment_find(names[i]) != NULL)
                    judge_value(rondo_environment_find(names[i]), values[i]);
        }
        judge_launch();
    }
    const char *nearest = rondo_environment_nearest(values[0], strlen(values[0]));
    if (nearest != NULL && rondo_environment_find(nearest) == NULL)
        abort();
    for (int i = 0; i < 2 && names[i] != NULL; i++)
        unsetenv(names[i]);
    return 0;
}
