/* What the launchers say of a process: rank, size and job (rondo_environment_launch of lib/base/environment.h). */
#include "lib/base/environment.h"

#include "lib/base/error.h"
#include "lib/base/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the variable's text; NULL if it is unset or empty. */
static const char *set(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

/* The variables of each launcher. The first launcher whose rank is set counts; of two variables of one meaning the
 * first that is set. */
struct launcher {
    const char *name, *rank, *sizes[2], *local_rank, *local_size, *hosts[2];
};
static const struct launcher launchers[] = {
    {"RONDO_RANK", "RONDO_RANK", {"RONDO_SIZE", NULL}, NULL, NULL, {NULL}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE", NULL},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {NULL}},
    {"MPICH", "PMI_RANK", {"PMI_SIZE", NULL}, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {NULL}},
    {"Slurm",
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     "SLURM_LOCALID",
     NULL,
     {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}},
};

/* Stores prefix, text and suffix as the job's name. A longer name is cut and made distinct again by its hash. */
static void name_job(struct rondo_launch *launch, const char *prefix, const char *text, const char *suffix)
{
    char whole[4096];
    int length = snprintf(whole, sizeof(whole), "%s%s%s", prefix, text, suffix);
    if (length >= 0 && (size_t) length < sizeof(launch->job)) {
        memcpy(launch->job, whole, (size_t) length + 1);
        return;
    }
    struct rondo_sha256 hash;
    unsigned char digest[RONDO_SHA256_BYTES];
    rondo_sha256_begin(&hash);
    rondo_sha256_add(&hash, prefix, strlen(prefix));
    rondo_sha256_add(&hash, text, strlen(text));
    rondo_sha256_add(&hash, suffix, strlen(suffix));
    rondo_sha256_end(&hash, digest);
    int retained = (int) sizeof(launch->job) - 1 - 32;
    int at = snprintf(launch->job, sizeof(launch->job), "%.*s", retained, whole);
    rondo_hexadecimal(launch->job + at, digest, 16);
}

/* Stores a name of the job that all its ranks on this host find. Without a better one, ranks that one parent started share its
 * process id; a process without a launcher shares nothing. */
static void find_job(struct rondo_launch *launch)
{
    const char *text;
    char process[32];
    snprintf(process, sizeof(process), "%ld", (long) getppid());
    if ((text = set("RONDO_JOB")) != NULL) {
        name_job(launch, "", text, "");
    } else if (strcmp(launch->launcher, "Open MPI") == 0 &&
               ((text = set("PMIX_NAMESPACE")) != NULL || (text = set("OMPI_MCA_ess_base_jobid")) != NULL)) {
        name_job(launch, "openmpi-", text, "");
    } else if (strcmp(launch->launcher, "MPICH") == 0 && (text = set("PMI_JOBID")) != NULL) {
        name_job(launch, "mpich-", text, "");
    } else if (strcmp(launch->launcher, "Slurm") == 0 && (text = set("SLURM_JOB_ID")) != NULL) {
        char step[64];
        snprintf(step, sizeof(step), ".%.60s", set("SLURM_STEP_ID") != NULL ? set("SLURM_STEP_ID") : "batch");
        name_job(launch, "slurm-", text, step);
    } else if (strcmp(launch->launcher, "none") == 0) {
        snprintf(process, sizeof(process), "%ld", (long) getpid());
        name_job(launch, "process-", process, "");
    } else {
        name_job(launch, "parent-", process, "");
    }
}

/* Fewer ranks on this host than in the job, or several hosts. */
static int spans_hosts(const struct launcher *launcher, const struct rondo_launch *launch)
{
    const char *hosts = launcher->hosts[0] != NULL ? set(launcher->hosts[0]) : NULL;
    if (hosts == NULL && launcher->hosts[1] != NULL)
        hosts = set(launcher->hosts[1]);
    return (launch->local_size > 0 && launch->local_size < launch->size) || (hosts != NULL && strtol(hosts, NULL, 10) > 1);
}

rondo_result_t rondo_environment_launch(struct rondo_launch *launch)
{
    *launch = (struct rondo_launch){0, 1, -1, -1, 0, "", "none"};
    if (set("RONDO_SIZE") != NULL && set("RONDO_RANK") == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_SIZE=%s is set but RONDO_RANK is not", set("RONDO_SIZE"));
    const struct launcher *found = NULL;
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]) && found == NULL; i++)
        if (set(launchers[i].rank) != NULL)
            found = &launchers[i];
    if (found != NULL) {
        const char *rank = set(found->rank), *size_name = found->sizes[0];
        if (set(size_name) == NULL && found->sizes[1] != NULL)
            size_name = found->sizes[1];
        const char *size = set(size_name);
        if (size == NULL)
            return rondo_fail(RONDO_ERR_ARGUMENT, "%s=%s is set but %s is not", found->rank, rank, found->sizes[0]);
        rondo_result_t result = rondo_environment_of_launcher(found->rank, "RONDO_RANK", &launch->rank);
        if (result == RONDO_SUCCESS)
            result = rondo_environment_of_launcher(size_name, "RONDO_SIZE", &launch->size);
        if (result == RONDO_SUCCESS && found->local_rank != NULL && set(found->local_rank) != NULL)
            result = rondo_environment_of_launcher(found->local_rank, "RONDO_RANK", &launch->local_rank);
        if (result == RONDO_SUCCESS && found->local_size != NULL && set(found->local_size) != NULL)
            result = rondo_environment_of_launcher(found->local_size, "RONDO_SIZE", &launch->local_size);
        if (result != RONDO_SUCCESS)
            return result;
        if (launch->rank >= launch->size)
            return rondo_fail(RONDO_ERR_ARGUMENT, "%s=%d must be less than %s=%d", found->rank, launch->rank, size_name,
                              launch->size);
        launch->launcher = found->name;
        launch->spans_hosts = spans_hosts(found, launch);
    }
    find_job(launch);
    return RONDO_SUCCESS;
}
