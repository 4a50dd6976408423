/* The table of every environment variable that Rondo reads, and what the launchers set. Relies on nothing but getenv, so that
 * it works before anything else does. */
#include "lib/base/environment.h"

#include "lib/base/error.h"
#include "lib/base/sha256.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Topics, in the order of the guide. */
static const char launching[] = "Launching", connecting[] = "Transports and networks", observing[] = "Observing and failure",
                  scheduling[] = "Scheduling", memory[] = "Memory", selecting[] = "Algorithms, protocols and compression";

/* Rows of one topic stand together. A meaning is one line that starts with what the value is, with its unit. */
static const rondo_variable_t table[] = {
    {launching, "RONDO_RANK", "", "this process's rank, 0 to RONDO_SIZE - 1; unset: as the launcher says"},
    {launching, "RONDO_SIZE", "", "number of ranks of the job; unset: as the launcher says"},
    {launching, "RONDO_ROOT", "",
     "host:port at which rank 0 listens and to which the other ranks connect; required if the ranks are on several hosts"},
    {launching, "RONDO_SECRET", "",
     "text that every rank must prove to know; required if RONDO_ROOT is not a loopback address"},
    {launching, "RONDO_JOB", "",
     "name that tells jobs of one user on one host apart if RONDO_ROOT is unset; unset: as the launcher says"},
    {launching, "RONDO_CONNECT_TIMEOUT", "60", "seconds to wait until all ranks are connected"},
    {launching, "RONDO_DEVICE", "auto", "device that executes collectives: auto (a GPU if there is one), host or cuda"},
    {connecting, "RONDO_TRANSPORTS", "", "comma-separated transports in order of preference; unset: all that were built"},
    {connecting, "RONDO_HOSTID", "",
     "name of this rank's host; ranks with different names do not share memory; unset: found by the library"},
    {connecting, "RONDO_RDMA_DEVICES", "",
     "comma-separated RDMA devices to use, each as name or name:port; unset: all that have an IP address"},
    {connecting, "RONDO_RDMA_GID", "-1", "index of the GID table that holds the address of an RDMA port to use; -1: any index"},
    {connecting, "RONDO_RDMA_QUEUES", "1",
     "queue pairs in each direction between two ranks; each port in use has at least one"},
    {connecting, "RONDO_PROXY_THREADS", "0",
     "threads that progress the ucx transport; 0: one, or up to 4 for a rank on a GPU if cores are idle"},
    {connecting, "RONDO_GPUDIRECT", "auto",
     "how network adapters access slots in GPU memory: auto, dmabuf, peermem or off; apart: a test of separate memories"},
    {connecting, "RONDO_DIRECT_WRITE", "auto",
     "whether a sender stores large messages directly into the receiver's buffer: auto or off; refused: a test of refusal"},
    {observing, "RONDO_LOG", "warn", "least severe messages that are printed on standard error: error, warn, info or debug"},
    {observing, "RONDO_CHECK", "0",
     "1: every call is compared across ranks, and a mismatch is an error on all of them; 0: calls that do not match may hang, "
     "give "
     "wrong results, or leave the next call wrong"},
    {observing, "RONDO_TIMEOUT", "0", "seconds until a stuck operation is reported and fails; 0: never"},
    {observing, "RONDO_HEARTBEAT", "6",
     "seconds of silence after which a rank on another host counts as dead; 0: only if TCP reports it"},
    {observing, "RONDO_REPORT_SIGNAL", "",
     "signal (for example USR1) on which a process logs what every rank does and waits for; unset: none"},
    {observing, "RONDO_TRACE", "",
     "file for the daemon's timeline, as Chrome trace JSON of all ranks of this host; unset: no timeline"},
    {observing, "RONDO_TRACE_BYTES", "256M",
     "largest size of that file in bytes, of which each rank of the host has an equal share; suffixes K, M, G; 0: no limit"},
    {scheduling, "RONDO_PREEMPT", "1", "0: a stuck operation is never preempted (for comparison only)"},
    {scheduling, "RONDO_BLOCKS", "0", "blocks that the daemon runs; 0: chosen by the device's cores"},
    {scheduling, "RONDO_STREAM_BLOCKS", "0",
     "largest number of blocks for one operation on a GPU's stream; 0: twice RONDO_BLOCKS"},
    {scheduling, "RONDO_ORDER", "fifo", "order of the task table: fifo or priority"},
    {scheduling, "RONDO_SPIN", "adaptive", "how spin budgets are chosen: fixed, adaptive or profile"},
    {scheduling, "RONDO_SPIN_INITIAL", "200", "polls granted to the first task of the table"},
    {scheduling, "RONDO_SPIN_DECAY", "50", "percentage of a task's polls that the next task of the table is granted"},
    {scheduling, "RONDO_SPIN_BOOST", "20", "factor by which a successful primitive multiplies its task's polls"},
    {scheduling, "RONDO_SPIN_CAP", "4000", "largest number of polls that a task can be granted"},
    {scheduling, "RONDO_READINESS_CHECK", "1",
     "1: a preempted task is visited again when the word that it waits for seems to have changed; 0: in every round"},
    {scheduling, "RONDO_QUIT_IDLE", "200", "microseconds without work after which the daemon quits"},
    {scheduling, "RONDO_QUIT_STUCK", "1000", "microseconds without progress after which the daemon quits"},
    {scheduling, "RONDO_RESIDENCY", "10000", "microseconds after which the daemon quits in any case"},
    {memory, "RONDO_MEMORY", "4G", "bytes of connector memory that a rank may reserve; suffixes K, M, G"},
    {memory, "RONDO_SLOT_BYTES", "0", "bytes of a connector's slot; 0: chosen by the operation's size"},
    {selecting, "RONDO_ALGORITHM", "",
     "algorithm or program for every collective that it fits; unset: chosen by size and topology"},
    {selecting, "RONDO_PROTOCOL", "",
     "protocol of every program to which it applies: simple, ll, or (NVLink) ll128 or tma; unset: chosen"},
    {selecting, "RONDO_CHANNELS", "0", "connections in parallel between two ranks, at most as many as blocks; 0: chosen"},
    {selecting, "RONDO_TUNING", "", "file that rondo bench --tune wrote, the same on all ranks; unset: the built-in choice"},
    {selecting, "RONDO_COMPRESS", "0",
     "bits a value to which the world communicator's floats are compressed (4 to 64); 0: no compression"},
    {selecting, "RONDO_COMPRESS_MIN", "256K",
     "bytes of a call below which the communicator's compression does not apply; suffixes K, M, G"},
};

const rondo_variable_t *rondo_environment_describe(int index)
{
    return index >= 0 && (size_t) index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

/* Returns the variable's text; NULL if it is unset or empty. */
static const char *set(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

int rondo_environment_is_set(const char *name)
{
    return set(name) != NULL;
}

rondo_result_t rondo_environment_text(const char *name, const char **value)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].name, name) != 0)
            continue;
        const char *text = set(name);
        if (text == NULL)
            text = table[i].fallback;
        *value = *text != '\0' ? text : NULL;
        return RONDO_SUCCESS;
    }
    return rondo_fail(RONDO_ERR_INTERNAL, "%s is not in the table of environment variables", name);
}

/* Stores the text to parse as a number. A variable that is unset and has no default is an error. */
static rondo_result_t number(const char *name, const char **text)
{
    rondo_result_t result = rondo_environment_text(name, text);
    if (result != RONDO_SUCCESS)
        return result;
    if (*text == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s is not set and has no default", name);
    return RONDO_SUCCESS;
}

/* Reads decimal digits with an optional minus and nothing after them. Returns -1 if the text is anything else. */
static int parse_integer(const char *text, int64_t *value)
{
    char *end;
    if (*text != '-' && (*text < '0' || *text > '9'))
        return -1;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0')
        return -1;
    *value = parsed;
    return 0;
}

rondo_result_t rondo_environment_integer(const char *name, int64_t *value)
{
    const char *text;
    rondo_result_t result = number(name, &text);
    if (result != RONDO_SUCCESS)
        return result;
    if (parse_integer(text, value) != 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is not an integer", name, text);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_environment_real(const char *name, double *value)
{
    const char *text;
    rondo_result_t result = number(name, &text);
    if (result != RONDO_SUCCESS)
        return result;
    /* The application's locale may write its decimals with a comma; the environment never does. */
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    if (locale == (locale_t) 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "newlocale: %s", strerror(errno));
    char *end;
    double parsed = strtod_l(text, &end, locale);
    freelocale(locale);
    if (end == text || *end != '\0' || !isfinite(parsed) || strchr(" \t\n\v\f\r", *text) != NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is not a number", name, text);
    *value = parsed;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_environment_size(const char *name, int64_t *bytes)
{
    const char *text;
    rondo_result_t result = number(name, &text);
    if (result != RONDO_SUCCESS)
        return result;
    char *end = NULL;
    errno = 0;
    long long count = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;
    if (count < 0 || errno != 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is not a size", name, text);
    int shift = 0;
    if (*end == 'K' || *end == 'k')
        shift = 10;
    else if (*end == 'M' || *end == 'm')
        shift = 20;
    else if (*end == 'G' || *end == 'g')
        shift = 30;
    if (end[shift > 0] != '\0')
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is not a size: digits and at most one of K, M, G", name, text);
    if (count > INT64_MAX >> shift)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is more than 64 bits hold", name, text);
    *bytes = (int64_t) ((uint64_t) count << shift);
    return RONDO_SUCCESS;
}

/* The variables of each launcher. The first launcher whose rank is set counts; of two size variables the first that is set. */
struct launcher {
    const char *name, *rank, *sizes[2], *local_rank, *local_size;
};
static const struct launcher launchers[] = {
    {"RONDO_RANK", "RONDO_RANK", {"RONDO_SIZE", NULL}, NULL, NULL},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE", NULL},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", {"PMI_SIZE", NULL}, "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, "SLURM_LOCALID", NULL},
};

static rondo_result_t small_number(const char *name, const char *text, int least, int *value)
{
    int64_t parsed;
    if (parse_integer(text, &parsed) != 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=\"%s\" is not an integer", name, text);
    if (parsed < least || parsed > INT_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s=%s is out of range: it must be at least %d", name, text, least);
    *value = (int) parsed;
    return RONDO_SUCCESS;
}

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
    for (int i = 0; i < 16; i++)
        at += snprintf(launch->job + at, sizeof(launch->job) - (size_t) at, "%02x", digest[i]);
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

rondo_result_t rondo_environment_launch(struct rondo_launch *launch)
{
    *launch = (struct rondo_launch){0, 1, -1, -1, "", "none"};
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
        rondo_result_t result = small_number(found->rank, rank, 0, &launch->rank);
        if (result == RONDO_SUCCESS)
            result = small_number(size_name, size, 1, &launch->size);
        if (result == RONDO_SUCCESS && found->local_rank != NULL && set(found->local_rank) != NULL)
            result = small_number(found->local_rank, set(found->local_rank), 0, &launch->local_rank);
        if (result == RONDO_SUCCESS && found->local_size != NULL && set(found->local_size) != NULL)
            result = small_number(found->local_size, set(found->local_size), 1, &launch->local_size);
        if (result != RONDO_SUCCESS)
            return result;
        if (launch->rank >= launch->size)
            return rondo_fail(RONDO_ERR_ARGUMENT, "%s=%d must be less than %s=%d", found->rank, launch->rank, size_name,
                              launch->size);
        launch->launcher = found->name;
    }
    find_job(launch);
    return RONDO_SUCCESS;
}
