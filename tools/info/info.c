/* `rondo info`: what this build has, what this machine offers it, and how the environment configures it. */
#include "lib/base/environment.h"
#include "tools/info/info.h"
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "rondo.h"
#include "lib/base/host.h"
#include "lib/bootstrap/key_store.h"
#include "lib/runtime/spin.h"
#include "device/engine/process_memory.h"
#include "transport/transport.h"
#include "tools/common/verbs.h"

#include <getopt.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERB "info"

static const struct {
    const char *name;
    int in;
} build[] = {{"cuda", RONDO_WITH_CUDA}, {"verbs", RONDO_WITH_VERBS}, {"ucx", RONDO_WITH_UCX},
             {"numa", RONDO_WITH_NUMA}, {"pmix", RONDO_WITH_PMIX},   {"mpi", RONDO_WITH_MPI}};

static json_t *describe_build(FILE *stream)
{
    json_t *object = json_object();
    fprintf(stream, "Rondo %d.%d.%d\n\nbuild\n", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
    for (size_t i = 0; i < sizeof(build) / sizeof(build[0]); i++) {
        fprintf(stream, "  %-6s %s\n", build[i].name, build[i].in ? "yes" : "no");
        json_object_set_new(object, build[i].name, json_boolean(build[i].in));
    }
    return object;
}

static json_t *describe_host(FILE *stream)
{
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    char id[128];
    rondo_host_id(NULL, id, sizeof(id));
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int usable = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int) online;
    int64_t memory = (int64_t) sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    fprintf(stream, "\nhost\n  name %s, id %s\n  processors %d usable of %ld, memory %.1f GiB\n", host, id, usable, online,
            (double) memory / (1 << 30));
    json_t *object = json_object();
    json_object_set_new(object, "name", json_string(host));
    json_object_set_new(object, "id", json_string(id));
    json_object_set_new(object, "processors", json_integer(online));
    json_object_set_new(object, "processors_usable", json_integer(usable));
    json_object_set_new(object, "memory_bytes", json_integer(memory));
    return object;
}

static void add_device(json_t *array, FILE *stream, const char *name, const char *why_not)
{
    json_t *object = json_object();
    json_object_set_new(object, "device", json_string(name));
    json_object_set_new(object, "usable", json_boolean(why_not == NULL));
    json_object_set_new(object, "why_not", why_not == NULL ? json_null() : json_string(why_not));
    json_array_append_new(array, object);
    fprintf(stream, "  %-6s %s%s\n", name, why_not == NULL ? "usable" : "not usable: ", why_not == NULL ? "" : why_not);
}

/* One for each device that an option or the environment may name. */
static json_t *describe_devices(FILE *stream)
{
    json_t *array = json_array();
    const char *why_not = "built without CUDA";
#if RONDO_WITH_CUDA
    if (info_gpu_count(&why_not) > 0)
        why_not = NULL;
#endif
    fprintf(stream, "\ndevices\n");
    add_device(array, stream, "host", NULL);
    add_device(array, stream, "cuda", why_not);
    return array;
}

static json_t *describe_gpus(FILE *stream)
{
#if RONDO_WITH_CUDA
    return info_gpus(stream);
#else
    (void) stream;
    return json_array();
#endif
}

/* Why processes of this host cannot read each other's memory, which a process started for that tries; NULL: they can. */
static const char *single_copy_unusable(void)
{
    static char why[128];
    struct rondo_process_identity self;
    int status = 0;
    if (rondo_process_identify(&self) != RONDO_SUCCESS)
        return rondo_last_error();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        _exit(rondo_process_probe(&self));
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return "no process could be started to try it";
    if (WEXITSTATUS(status) == 0)
        return NULL;
    snprintf(why, sizeof(why), "a process cannot read another one's memory: %s", strerror(WEXITSTATUS(status)));
    return why;
}

static void add_transport(json_t *array, FILE *stream, const char *name, const char *why_not)
{
    json_t *object = json_object();
    fprintf(stream, "  %-6s %s%s\n", name, why_not == NULL ? "usable" : "not usable: ", why_not == NULL ? "" : why_not);
    json_object_set_new(object, "transport", json_string(name));
    json_object_set_new(object, "usable", json_boolean(why_not == NULL));
    json_object_set_new(object, "why_not", why_not == NULL ? json_null() : json_string(why_not));
    json_array_append_new(array, object);
}

/* One for each transport, and cma, by which shm copies large messages between processes once. */
static json_t *describe_transports(FILE *stream)
{
    int count;
    const struct rondo_transport *const *transports = rondo_transport_table(&count);
    json_t *array = json_array();
    fprintf(stream, "\ntransports\n");
    for (int i = 0; i < count; i++)
        add_transport(array, stream, transports[i]->name, transports[i]->unusable());
    add_transport(array, stream, "cma", single_copy_unusable());
    return array;
}

/* Where there are any; a transport that cannot be used has said why. */
static json_t *describe_nics(FILE *stream)
{
    const struct rondo_transport *rdma = rondo_transport_find("rdma");
    int gpus = 0;
    if (rdma == NULL || rdma->unusable() != NULL)
        return json_array();
#if RONDO_WITH_CUDA
    const char *why_not;
    gpus = info_gpu_count(&why_not);
#endif
    return info_nics(stream, gpus);
}

/* What is printed for a variable: a secret does not get into a log. */
static const char *shown(const rondo_variable_t *variable, const char *value)
{
    return value[0] != '\0' && rondo_environment_is_secret(variable) ? "(hidden)" : value;
}

static json_t *describe_words(const char *words)
{
    json_t *array = json_array();
    while (*words != '\0') {
        size_t length = strcspn(words, ",");
        json_array_append_new(array, json_stringn(words, length));
        words += length + (words[length] == ',');
    }
    return array;
}

static json_t *describe_environment(FILE *stream)
{
    static const char *const kinds[] = {"integer", "size", "real", "choice", "list", "text", "path", "address", "signal"};
    const rondo_variable_t *variable;
    json_t *array = json_array();
    fprintf(stream, "\nenvironment (* = set; else the default)\n");
    for (int i = 0; (variable = rondo_environment_describe(i)) != NULL; i++) {
        int set = rondo_environment_is_set(variable->name);
        const char *value = shown(variable, set ? getenv(variable->name) : variable->fallback);
        char allowed[400];
        rondo_environment_allowed(variable, allowed, sizeof(allowed));
        fprintf(stream, "  %-24s %s %-12s %s\n%41s[%s]\n", variable->name, set ? "*" : " ", value[0] == '\0' ? "-" : value,
                variable->meaning, "", allowed);
        json_t *object = json_object();
        json_object_set_new(object, "topic", json_string(variable->topic));
        json_object_set_new(object, "name", json_string(variable->name));
        json_object_set_new(object, "value", json_string(value));
        json_object_set_new(object, "set", json_boolean(set));
        json_object_set_new(object, "default", json_string(variable->fallback));
        json_object_set_new(object, "meaning", json_string(variable->meaning));
        json_object_set_new(object, "kind", json_string(kinds[variable->kind]));
        json_object_set_new(object, "unit", json_string(variable->unit));
        json_object_set_new(object, "least", json_real(variable->least));
        json_object_set_new(object, "most", json_real(variable->most));
        json_object_set_new(object, "words", describe_words(variable->words));
        json_object_set_new(object, "allowed", json_string(allowed));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *describe_launch(FILE *stream)
{
    struct rondo_launch launch;
    if (rondo_environment_launch(&launch) != RONDO_SUCCESS) {
        fprintf(stream, "\nlaunch\n  %s\n", rondo_last_error());
        return json_null();
    }
    const char *why = rondo_key_store_is_offered(launch.rank) ? rondo_key_store_unusable() : "the launcher offers none";
    fprintf(stream, "\nlaunch\n  rank %d of %d, from %s\n  key store (PMIx) %s%s\n", launch.rank, launch.size, launch.launcher,
            why == NULL ? "usable" : "not usable: ", why == NULL ? "" : why);
    json_t *object = json_object();
    json_object_set_new(object, "key_store_usable", json_boolean(why == NULL));
    json_object_set_new(object, "key_store_why_not", why == NULL ? json_null() : json_string(why));
    json_object_set_new(object, "rank", json_integer(launch.rank));
    json_object_set_new(object, "size", json_integer(launch.size));
    json_object_set_new(object, "launcher", json_string(launch.launcher));
    return object;
}

struct tried {
    rondo_stats_t stats;
    rondo_device_t device;
    struct rondo_spin spin;
};

/* Starts a job of one rank on the device, apart from the one that this process may have been launched in. */
static rondo_result_t try_runtime(rondo_device_t device, struct tried *tried)
{
    rondo_unique_id_t id;
    rondo_t runtime;
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    rondo_result_t code = rondo_get_unique_id(&id);
    if (code != RONDO_SUCCESS)
        return code;
    config.rank = 0;
    config.size = 1;
    config.unique_id = &id;
    config.device = device;
    if ((code = rondo_init(&runtime, &config)) != RONDO_SUCCESS)
        return code;
    code = rondo_get_stats(runtime, &tried->stats);
    if (code == RONDO_SUCCESS)
        code = rondo_device(runtime, &tried->device);
    if (code == RONDO_SUCCESS)
        code = rondo_spin_get(runtime, &tried->spin);
    rondo_result_t end = rondo_finalize(runtime);
    return code != RONDO_SUCCESS ? code : end;
}

/* Where a budget comes from. */
static const char *source_of(const char *variable)
{
    const char *spin = getenv("RONDO_SPIN");
    if (spin != NULL && strcmp(spin, "profile") == 0)
        return "measured";
    return rondo_environment_is_set(variable) ? variable : "the device's";
}

/* How long waits may take: of one rank alone, on a host whose processors are not shared. */
static json_t *describe_spin(FILE *stream, const struct rondo_spin *spin)
{
    const char *initial = source_of("RONDO_SPIN_INITIAL"), *cap = source_of("RONDO_SPIN_CAP");
    fprintf(stream,
            "  waits of the first task %" PRIu64 " ns, of one that is alone %" PRIu64
            " ns (%s); of each later task %u%%; progress "
            "raises them %u times, to %" PRIu64 " ns at most (%s)\n",
            spin->budgets.initial, spin->budgets.alone, initial, spin->decay, spin->boost, spin->budgets.cap, cap);
    if (spin->budgets.hold > 0)
        fprintf(stream,
                "  while ranks seem to start operations in one order %" PRIu64
                " ns of the first task, and no further one is begun until none has advanced for %" PRIu64 " ns (%s)\n",
                spin->budgets.ordered, spin->budgets.hold, initial);
    json_t *object = json_object();
    json_object_set_new(object, "initial_ns", json_integer((json_int_t) spin->budgets.initial));
    json_object_set_new(object, "alone_ns", json_integer((json_int_t) spin->budgets.alone));
    json_object_set_new(object, "ordered_ns", json_integer((json_int_t) spin->budgets.ordered));
    json_object_set_new(object, "hold_ns", json_integer((json_int_t) spin->budgets.hold));
    json_object_set_new(object, "initial_from", json_string(initial));
    json_object_set_new(object, "cap_ns", json_integer((json_int_t) spin->budgets.cap));
    json_object_set_new(object, "cap_from", json_string(cap));
    json_object_set_new(object, "decay_percent", json_integer(spin->decay));
    json_object_set_new(object, "boost", json_integer(spin->boost));
    return object;
}

static json_t *describe_runtime(FILE *stream, rondo_device_t device, int *exit_code)
{
    struct tried tried;
    rondo_result_t code = try_runtime(device, &tried);
    json_t *object = json_object();
    fprintf(stream, "\nruntime of one rank\n");
    if (code != RONDO_SUCCESS) {
        fprintf(stream, "  cannot start: %s: %s\n", rondo_strerror((int) code), rondo_last_error());
        fprintf(stderr, "rondo info: cannot start a runtime: %s: %s\n", rondo_strerror((int) code), rondo_last_error());
        json_object_set_new(object, "error", json_string(rondo_last_error()));
        *exit_code = EXIT_WRONG;
        return object;
    }
    fprintf(stream, "  device %s\n  connector memory %" PRIu64 " bytes reserved of a budget of %" PRIu64 "\n",
            options_device_name(tried.device), tried.stats.memory_reserved, tried.stats.memory_budget);
    json_object_set_new(object, "device", json_string(options_device_name(tried.device)));
    json_object_set_new(object, "memory_reserved", json_integer((json_int_t) tried.stats.memory_reserved));
    json_object_set_new(object, "memory_budget", json_integer((json_int_t) tried.stats.memory_budget));
    json_object_set_new(object, "spin", describe_spin(stream, &tried.spin));
    return object;
}

int verb_info(int argc, char **argv)
{
    static const struct option long_options[] = {{"json", required_argument, NULL, 'j'},
                                                 {"device", required_argument, NULL, 'd'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    const char *path = NULL;
    rondo_device_t device = RONDO_DEVICE_AUTO;
    int option, code = 0;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return options_unknown(VERB, option, argv);
        if (option == 'h') {
            fputs("usage: rondo info [--device host|cuda] [--json FILE]   (- for standard output)\n", stdout);
            return 0;
        }
        if (option == 'j')
            path = optarg;
        else if ((code = options_device(VERB, "--device", optarg, &device)) != 0)
            return code;
    }
    if (optind < argc)
        return options_refuse(VERB, "'%s' is not an option", argv[optind]);
    FILE *stream = output_stream(path);
    json_t *root = json_object();
    char version[32];
    snprintf(version, sizeof(version), "%d.%d.%d", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
    json_object_set_new(root, "version", json_string(version));
    json_object_set_new(root, "build", describe_build(stream));
    json_object_set_new(root, "host", describe_host(stream));
    json_object_set_new(root, "launch", describe_launch(stream));
    json_object_set_new(root, "devices", describe_devices(stream));
    json_object_set_new(root, "gpus", describe_gpus(stream));
    json_object_set_new(root, "transports", describe_transports(stream));
    json_object_set_new(root, "cards", describe_nics(stream));
    json_object_set_new(root, "programs", info_programs(stream, &code));
    json_object_set_new(root, "runtime", describe_runtime(stream, device, &code));
    json_object_set_new(root, "environment", describe_environment(stream));
    int written = output_json(VERB, path, root);
    return code != 0 ? code : written;
}
