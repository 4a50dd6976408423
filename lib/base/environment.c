/* The table of every environment variable that Rondo reads: what each is, and which values it may have; and reading by the
 * table, for the environment and for the fields of a configuration. Relies on nothing but getenv, so that it works before
 * anything else does. Values are judged in lib/base/environment_values.c, what the launchers set is read in lib/base/launch.c,
 * and names that the table lacks are found in lib/base/unknown_variables.c. */
#include "lib/base/environment.h"

#include "lib/base/environment_values.h"
#include "lib/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Topics, in the order of the guide. */
static const char launching[] = "Launching", connecting[] = "Transports and networks", observing[] = "Observing and failure",
                  scheduling[] = "Scheduling", memory[] = "Memory", selecting[] = "Algorithms, protocols and compression";

/* The kinds, as the table writes them. */
#define INTEGER RONDO_VARIABLE_INTEGER
#define SIZE    RONDO_VARIABLE_SIZE
#define REAL    RONDO_VARIABLE_REAL
#define CHOICE  RONDO_VARIABLE_CHOICE
#define LIST    RONDO_VARIABLE_LIST
#define TEXT    RONDO_VARIABLE_TEXT
#define PATH    RONDO_VARIABLE_PATH
#define ADDRESS RONDO_VARIABLE_ADDRESS
#define SIGNAL  RONDO_VARIABLE_SIGNAL

/* Bounds that no other place has. They are exact as double. */
#define RANKS_MOST        (1 << 20)
#define SECONDS_MOST      1e9
#define MICROSECONDS_MOST INT32_MAX
#define NANOSECONDS_MOST  1e12
#define BYTES_MOST        ((double) ((int64_t) 1 << 50))
#define SIGNAL_MOST       64
#define TRACE_LEAST       65536 /* the names of the tracks of a host's ranks take so much */
#define TEXT_MOST         1024
#define PATH_MOST         4095

/* Rows of one topic stand together. A meaning is one line that starts with what the value is, with its unit. Behind it: kind,
 * unit, least and most value (of texts and paths: bytes), words. test/unit/test_environment.c compares the bounds and words
 * that other rooms have too with theirs. */
static const rondo_variable_t table[] = {
    {launching, "RONDO_RANK", "", "this process's rank, 0 to RONDO_SIZE - 1; unset: as the launcher says", INTEGER, "rank", 0,
     RANKS_MOST - 1, ""},
    {launching, "RONDO_SIZE", "", "number of ranks of the job; unset: as the launcher says", INTEGER, "ranks", 1, RANKS_MOST,
     ""},
    {launching, "RONDO_ROOT", "",
     "host:port at which rank 0 listens and to which the other ranks connect, or several, separated by commas, of which each "
     "is for a share of the ranks, whose first rank listens there; unset: a Unix socket of the host, or, on several hosts, an "
     "address in the launcher's key store (PMIx); required on several hosts where the launcher has none",
     ADDRESS, "", 1, 65535, ""},
    {launching, "RONDO_ROOTS", "0",
     "roots that take in the ranks where these meet by the launcher's key store, at most one a rank; 0: one for each 4,096 "
     "ranks; the same on all ranks",
     INTEGER, "roots", 0, 4096, ""},
    {launching, "RONDO_SECRET", "",
     "text that every rank must prove to know; unset: the launcher's key, else the line in ~/.rondo/secret; without them "
     "required "
     "if RONDO_ROOT is not a loopback address",
     TEXT, "bytes", 1, TEXT_MOST, ""},
    {launching, "RONDO_ENCRYPT", "0",
     "1: all that goes over the control plane and over networks is encrypted, by libsodium; the same on all ranks", INTEGER, "",
     0, 1, ""},
    {launching, "RONDO_JOB", "",
     "name that tells jobs of one user on one host apart if RONDO_ROOT is unset; unset: as the launcher says", TEXT, "bytes", 1,
     TEXT_MOST, ""},
    {launching, "RONDO_CONNECT_TIMEOUT", "60", "seconds to wait until all ranks are connected", REAL, "seconds", 0.001,
     SECONDS_MOST, ""},
    {launching, "RONDO_DEVICE", "auto", "device that executes collectives: auto (a GPU if there is one), host or cuda", CHOICE,
     "", 0, 0, "auto,host,cuda"},
    {connecting, "RONDO_TRANSPORTS", "", "comma-separated transports in order of preference; unset: all that were built", LIST,
     "", 0, 0, "p2p,shm,rdma,ucx"},
    {connecting, "RONDO_HOSTID", "",
     "name of this rank's host; ranks with different names do not share memory; unset: found by the library", TEXT, "bytes", 1,
     255, ""},
    {connecting, "RONDO_RDMA_DEVICES", "",
     "comma-separated RDMA devices to use, each as name or name:port; unset: all that have an IP address", LIST, "", 0, 0, ""},
    {connecting, "RONDO_RDMA_GID", "-1", "index of the GID table that holds the address of an RDMA port to use; -1: any index",
     INTEGER, "index", -1, 65535, ""},
    {connecting, "RONDO_RDMA_QUEUES", "1", "queue pairs in each direction between two ranks; each port in use has at least one",
     INTEGER, "queue pairs", 1, 8, ""},
    {connecting, "RONDO_PROXY_THREADS", "0",
     "threads that progress the ucx transport; 0: one, or up to 4 for a rank on a GPU if cores are idle", INTEGER, "threads", 0,
     8, ""},
    {connecting, "RONDO_GPUDIRECT", "auto",
     "how network adapters access slots in GPU memory: auto, dmabuf, peermem or off; apart: a test of separate memories",
     CHOICE, "", 0, 0, "auto,off,dmabuf,peermem,apart"},
    {connecting, "RONDO_MULTICAST", "auto",
     "whether ranks on host devices of one host write small data once for all others to read: auto or off", CHOICE, "", 0, 0,
     "auto,off"},
    {connecting, "RONDO_DIRECT_WRITE", "auto",
     "whether a sender stores large messages directly into the receiver's buffer: auto or off; refused: a test of refusal; "
     "mixed: by every second rank",
     CHOICE, "", 0, 0, "auto,off,refused,mixed"},
    {connecting, "RONDO_SINGLE_COPY", "off",
     "how processes of a host copy large messages once: off, or auto (where it is measured to be faster); cma: of any size; "
     "refused: a test of refusal",
     CHOICE, "", 0, 0, "auto,off,cma,refused"},
    {observing, "RONDO_LOG", "warn", "least severe messages that are printed on standard error: error, warn, info or debug",
     CHOICE, "", 0, 0, "error,warn,info,debug"},
    {observing, "RONDO_CHECK", "0",
     "1: every call is compared across ranks, and a mismatch is an error on all of them; 0: calls that do not match may hang, "
     "give wrong results, or leave the next call wrong",
     INTEGER, "", 0, 1, ""},
    {observing, "RONDO_TIMEOUT", "0", "seconds until a stuck operation is reported and fails; 0: never", REAL, "seconds", 0,
     SECONDS_MOST, ""},
    {observing, "RONDO_HEARTBEAT", "6",
     "seconds of silence after which a rank on another host counts as dead; 0: only if TCP reports it", INTEGER, "seconds", 0,
     86400, ""},
    {observing, "RONDO_FREEZE", "0",
     "seconds of silence after which a rank on the same host counts as dead, unless a debugger has stopped it; 0: only if the "
     "kernel reports its end; programs written for MPI: 3",
     INTEGER, "seconds", 0, 86400, ""},
    {observing, "RONDO_REPORT_SIGNAL", "",
     "signal (for example USR1) on which a process logs what every rank does and waits for; unset: none", SIGNAL, "", 1,
     SIGNAL_MOST, "USR1,USR2,QUIT,HUP,WINCH,URG"},
    {observing, "RONDO_FLIGHT_RECORDER", "",
     "beginning of the path of the file, which the rank's number completes, for the last operations of each rank, as JSON; "
     "written when a communicator fails and when a report is asked for; unset: none",
     PATH, "bytes", 1, PATH_MOST, ""},
    {observing, "RONDO_METRICS", "",
     "counts of each rank in the text form of Prometheus: host:port, at which the first rank of a host answers HTTP, the "
     "others at "
     "the ports after it; or the beginning of a path with a slash, which the rank's number and .prom complete, for files that "
     "are "
     "replaced every 5 s; unset: neither",
     PATH, "bytes", 1, PATH_MOST, ""},
    {observing, "RONDO_TRACE", "",
     "file for the daemon's timeline, as Chrome trace JSON of all ranks of this host; unset: no timeline", PATH, "bytes", 1,
     PATH_MOST, ""},
    {observing, "RONDO_TRACE_BYTES", "256M",
     "largest size of that file in bytes, of which each rank of the host has an equal share; suffixes K, M, G; 0: no limit",
     SIZE, "bytes", TRACE_LEAST, BYTES_MOST, "0"},
    {observing, "RONDO_MPI_REPORT", "",
     "of the drop-in for MPI programs: 1: MPI_Finalize prints which collectives Rondo took and which it left to MPI, and why; "
     "a "
     "file's name: writes them there as JSON; unset: neither",
     PATH, "bytes", 1, PATH_MOST, ""},
    {scheduling, "RONDO_PREEMPT", "1", "0: a stuck operation is never preempted (for comparison only)", INTEGER, "", 0, 1, ""},
    {scheduling, "RONDO_BLOCKS", "0", "blocks that the daemon runs; 0: chosen by the device's cores", INTEGER, "blocks", 0, 120,
     ""},
    {scheduling, "RONDO_STREAM_BLOCKS", "0",
     "largest number of blocks for one operation on a GPU's stream; 0: twice RONDO_BLOCKS", INTEGER, "blocks", 0, 240, ""},
    {scheduling, "RONDO_SM", "-1",
     "multiprocessors of a GPU that operations may take: blocks of the daemon, and of one operation on a stream; 0: none for "
     "stream-ordered all-gathers, all-to-alls and broadcasts between registered buffers, which lie at the same offset of their "
     "ranges on all ranks: copy engines carry them out, and kernels what they cannot; -1: no such limit",
     INTEGER, "multiprocessors", -1, 240, ""},
    {scheduling, "RONDO_ORDER", "fifo",
     "order of the task table: fifo, or priority, by which an operation is left at the end of a slice for one of higher "
     "priority",
     CHOICE, "", 0, 0, "fifo,priority"},
    {scheduling, "RONDO_SPIN", "adaptive", "how spin budgets are chosen: fixed, adaptive or profile", CHOICE, "", 0, 0,
     "adaptive,fixed,profile"},
    {scheduling, "RONDO_SPIN_INITIAL", "0",
     "time that a wait of the first task of the table may take before the task is preempted; 0: by the device", INTEGER,
     "nanoseconds", 0, NANOSECONDS_MOST, ""},
    {scheduling, "RONDO_SPIN_DECAY", "50", "percentage of a task's time that the next task of the table is granted", INTEGER,
     "percent", 0, 100, ""},
    {scheduling, "RONDO_SPIN_BOOST", "20", "factor by which a successful primitive multiplies its task's time", INTEGER, "", 1,
     1000, ""},
    {scheduling, "RONDO_SPIN_CAP", "0", "longest such time that progress raises a task's to; 0: by the device", INTEGER,
     "nanoseconds", 0, NANOSECONDS_MOST, ""},
    {scheduling, "RONDO_READINESS_CHECK", "1",
     "1: a preempted task is visited again when the word that it waits for seems to have changed; 0: in every round", INTEGER,
     "", 0, 1, ""},
    {scheduling, "RONDO_QUIT_IDLE", "200", "microseconds without work after which the daemon quits", INTEGER, "microseconds", 0,
     MICROSECONDS_MOST, ""},
    {scheduling, "RONDO_QUIT_STUCK", "1000", "microseconds without progress after which the daemon quits", INTEGER,
     "microseconds", 1, MICROSECONDS_MOST, ""},
    {scheduling, "RONDO_RESIDENCY", "10000", "microseconds after which the daemon quits in any case", INTEGER, "microseconds",
     1, MICROSECONDS_MOST, ""},
    {memory, "RONDO_MEMORY", "4G", "bytes of connector memory that a rank may reserve; suffixes K, M, G", SIZE, "bytes", 0,
     BYTES_MOST, ""},
    {memory, "RONDO_SLOT_BYTES", "0", "bytes of a connector's slot; 0: chosen by the operation's size", SIZE, "bytes", 0,
     1 << 24, ""},
    {selecting, "RONDO_ALGORITHM", "",
     "algorithm or program for every collective that it fits; unset: chosen by size and topology", TEXT, "bytes", 1, 63, ""},
    {selecting, "RONDO_PROTOCOL", "",
     "protocol of every program to which it applies: simple, ll, or (NVLink) ll128 or tma; unset: chosen", CHOICE, "", 0, 0,
     "simple,ll,ll128,tma"},
    {selecting, "RONDO_CHANNELS", "0", "connections in parallel between two ranks, at most as many as blocks; 0: chosen",
     INTEGER, "channels", 0, 120, ""},
    {selecting, "RONDO_TUNING", "", "file that rondo bench --tune wrote, the same on all ranks; unset: the built-in choice",
     PATH, "bytes", 1, PATH_MOST, ""},
    {selecting, "RONDO_PROGRAMS", "",
     "directory of MSCCL's files, the same on all ranks, for calls on the world communicator; unset: none", PATH, "bytes", 1,
     PATH_MOST, ""},
    {selecting, "RONDO_COMPRESS", "0",
     "bits a value to which the world communicator's floats are compressed (4 to 64); 0: no compression", INTEGER,
     "bits a value", 4, 64, "0"},
    {selecting, "RONDO_COMPRESS_MIN", "256K",
     "bytes of a call below which the communicator's compression does not apply; suffixes K, M, G", SIZE, "bytes", 0,
     BYTES_MOST, ""},
    {selecting, "RONDO_COMPRESS_FEEDBACK", "0",
     "1: what compression loses of sums and averages is added at the next call with the same buffers; 0: it is lost", INTEGER,
     "", 0, 1, ""},
    {selecting, "RONDO_COMPRESS_COMMUNICATORS", "all",
     "communicators to whose calls their compression applies: all, world (no others), or hosts (those of several hosts)",
     CHOICE, "", 0, 0, "all,world,hosts"},
    {selecting, "RONDO_COMPRESS_TYPES", "",
     "comma-separated types to which a communicator's compression applies; unset: all that can be compressed", LIST, "", 0, 0,
     "float,double,float16,bfloat16"},
    {selecting, "RONDO_COMPRESS_COLLECTIVES", "",
     "comma-separated collectives, and send for messages, to which compression applies; unset: all that can be compressed",
     LIST, "", 0, 0, "allreduce,reduce,bcast,reduce_scatter_block,allgather,allgatherv,alltoall,gather,scatter,send"},
};

const rondo_variable_t *rondo_environment_describe(int index)
{
    return index >= 0 && (size_t) index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

const rondo_variable_t *rondo_environment_find(const char *name)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* Returns the variable's text; NULL if it is unset or empty. */
static const char *set(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

/* ---- reading ---- */

rondo_result_t rondo_environment_check(void)
{
    struct rondo_environment_value value;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const char *text = set(table[i].name);
        if (text != NULL && rondo_environment_parse(&table[i], text, &value) != 0)
            return rondo_environment_refuse(&table[i], table[i].name, text);
    }
    return RONDO_SUCCESS;
}

int rondo_environment_is_set(const char *name)
{
    return set(name) != NULL;
}

/* Stores the row, and the text that is set or its default; *text NULL: there is neither. */
static rondo_result_t find(const char *name, const rondo_variable_t **variable, const char **text,
                           struct rondo_environment_value *value)
{
    *variable = rondo_environment_find(name);
    if (*variable == NULL)
        return rondo_fail(RONDO_ERR_INTERNAL, "%s is not in the table of environment variables", name);
    *text = set(name);
    if (*text == NULL)
        *text = (*variable)->fallback;
    if (**text == '\0') {
        *text = NULL;
        return RONDO_SUCCESS;
    }
    return rondo_environment_parse(*variable, *text, value) == 0 ? RONDO_SUCCESS
                                                                 : rondo_environment_refuse(*variable, name, *text);
}

/* As find, of a variable whose kind is in the set. A variable that is unset and has no default is an error. */
static rondo_result_t find_value(const char *name, unsigned kinds, struct rondo_environment_value *value)
{
    const rondo_variable_t *variable;
    const char *text;
    rondo_result_t result = find(name, &variable, &text, value);
    if (result == RONDO_SUCCESS && text == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s is not set and has no default", name);
    if (result == RONDO_SUCCESS && (kinds >> variable->kind & 1) == 0)
        return rondo_fail(RONDO_ERR_INTERNAL, "%s is of another kind", name);
    return result;
}

rondo_result_t rondo_environment_text(const char *name, const char **text)
{
    const rondo_variable_t *variable;
    struct rondo_environment_value value;
    return find(name, &variable, text, &value);
}

rondo_result_t rondo_environment_integer(const char *name, int64_t *integer)
{
    struct rondo_environment_value value;
    rondo_result_t result = find_value(name, 1u << INTEGER | 1u << SIZE | 1u << SIGNAL, &value);
    if (result == RONDO_SUCCESS)
        *integer = value.integer;
    return result;
}

rondo_result_t rondo_environment_real(const char *name, double *real)
{
    struct rondo_environment_value value;
    rondo_result_t result = find_value(name, 1u << REAL, &value);
    if (result == RONDO_SUCCESS)
        *real = value.real;
    return result;
}

rondo_result_t rondo_environment_choice(const char *name, int *place)
{
    struct rondo_environment_value value;
    rondo_result_t result = find_value(name, 1u << CHOICE, &value);
    if (result == RONDO_SUCCESS)
        *place = (int) value.integer;
    return result;
}

int rondo_environment_choice_or_default(const char *name)
{
    struct rondo_environment_value value;
    const rondo_variable_t *variable = rondo_environment_find(name);
    const char *text = set(name);
    if (text == NULL || rondo_environment_parse(variable, text, &value) != 0)
        rondo_environment_parse(variable, variable->fallback, &value);
    return (int) value.integer;
}

rondo_result_t rondo_environment_allow_real(const char *name, const char *field, double real)
{
    const rondo_variable_t *variable = rondo_environment_find(name);
    char text[64];
    if (variable == NULL)
        return rondo_fail(RONDO_ERR_INTERNAL, "%s is not in the table of environment variables", name);
    if (real >= variable->least && real <= variable->most)
        return RONDO_SUCCESS;
    snprintf(text, sizeof(text), "%.10g", real);
    return rondo_environment_refuse(variable, field, text);
}

rondo_result_t rondo_environment_allow_text(const char *name, const char *field, const char *text, int *place)
{
    const rondo_variable_t *variable = rondo_environment_find(name);
    struct rondo_environment_value value;
    if (variable == NULL)
        return rondo_fail(RONDO_ERR_INTERNAL, "%s is not in the table of environment variables", name);
    if (rondo_environment_parse(variable, text, &value) != 0)
        return rondo_environment_refuse(variable, field, text);
    *place = (int) value.integer;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_environment_of_launcher(const char *name, const char *as, int *number)
{
    rondo_variable_t variable = *rondo_environment_find(as);
    const char *text = set(name);
    struct rondo_environment_value value;
    variable.name = name;
    if (text == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "%s is not set", name);
    if (rondo_environment_parse(&variable, text, &value) != 0)
        return rondo_environment_refuse(&variable, name, text);
    *number = (int) value.integer;
    return RONDO_SUCCESS;
}
