/* The command line of `rondo stress`. See tools/stress/stress.h. */
#include "tools/stress/stress.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define VERB "stress"

enum {
    OPT_RANKS = 256,
    OPT_COLLECTIVES,
    OPT_ITERATIONS,
    OPT_ORDER,
    OPT_SYNC,
    OPT_NO_PREEMPT,
    OPT_TIMEOUT,
    OPT_SEED,
    OPT_DEVICE,
    OPT_TRANSPORTS,
    OPT_STREAMS,
    OPT_INTERFERE,
    OPT_PEER,
    OPT_JSON,
    OPT_HELP
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"collectives", required_argument, NULL, OPT_COLLECTIVES},
    {"iterations", required_argument, NULL, OPT_ITERATIONS},
    {"order", required_argument, NULL, OPT_ORDER},
    {"sync", no_argument, NULL, OPT_SYNC},
    {"no-preempt", no_argument, NULL, OPT_NO_PREEMPT},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"seed", required_argument, NULL, OPT_SEED},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"transports", required_argument, NULL, OPT_TRANSPORTS},
    {"streams", required_argument, NULL, OPT_STREAMS},
    {"interfere", no_argument, NULL, OPT_INTERFERE},
    {"peer", required_argument, NULL, OPT_PEER},
    {"json", required_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: rondo stress [OPTIONS]\n"
    "  Every rank starts the same persistent all-reduces (256 B to 1 MiB, float and double) in an order of its own, waits for\n"
    "  all of them and verifies every result, again and again. Exit 0: all finished with exact results; 1: wrong data or\n"
    "  another error; 3: deadlock.\n"
    "  --ranks N         that many ranks as threads of this process (else from the environment: mpirun, srun)\n"
    "  --collectives K   all-reduces an iteration (8)\n"
    "  --iterations I    (100)\n"
    "  --order WHICH     random: each rank's own in each iteration (the default); same: one order on all ranks\n"
    "  --sync            device synchronizations at random points between starts, two an iteration and rank on average\n"
    "  --no-preempt      the daemon holds on to a stuck collective (for comparison)\n"
    "  --timeout S       seconds until a stuck collective is a deadlock (20; 5 with --no-preempt)\n"
    "  --seed X          of orders and data (1)\n"
    "  --streams K       on CUDA, not persistent operations: K communicators, each with a stream of its own on which its\n"
    "                    all-reduces are enqueued; the order among communicators is each rank's own\n"
    "  --interfere       on CUDA: beside each rank a thread that calls cudaFree, cudaFreeHost, cudaHostUnregister and "
    "launches\n"
    "                    new kernels; the longest time of each is told. Without --streams, exit 1 if one in 200 of a kind\n"
    "                    took longer than twice RONDO_RESIDENCY and 50 ms, or one 20 times that\n"
    "  --peer nccl       first the same orders on NCCL (a communicator for each collective, or for each stream), in a process\n"
    "                    that is killed when it hangs for --timeout; with --ranks. Tells if it did; the exit code is Rondo's\n"
    "  --device host|cuda (auto: a GPU where there is one), --transports LIST, --json FILE (- for standard output)\n";

static int read_order(struct stress_options *o, const char *text)
{
    if (strcmp(text, "random") != 0 && strcmp(text, "same") != 0)
        return options_refuse(VERB, "--order '%s' is not an order (random, same)", text);
    o->random_order = strcmp(text, "random") == 0;
    return 0;
}

static int read_one(int option, struct stress_options *o)
{
    int64_t value = 0;
    int code = 0;
    switch (option) {
    case OPT_RANKS:
        return options_ranks(VERB, "--ranks", optarg, &o->runtime.threads);
    case OPT_COLLECTIVES:
        code = options_integer(VERB, "--collectives", optarg, 1, 4096, &value);
        o->collectives = (int) value;
        return code;
    case OPT_ITERATIONS:
        code = options_integer(VERB, "--iterations", optarg, 1, INT_MAX, &value);
        o->iterations = (int) value;
        return code;
    case OPT_ORDER:
        return read_order(o, optarg);
    case OPT_SYNC:
        o->synchronize = true;
        return 0;
    case OPT_NO_PREEMPT:
        o->runtime.preempt = 0;
        return 0;
    case OPT_TIMEOUT:
        code = options_real(VERB, "--timeout", optarg, 0.0, &o->runtime.timeout);
        if (code == 0 && o->runtime.timeout == 0)
            code = options_refuse(VERB, "--timeout %s would never tell a deadlock", optarg);
        return code;
    case OPT_SEED:
        code = options_integer(VERB, "--seed", optarg, 0, INT64_MAX, &value);
        o->seed = (uint64_t) value;
        return code;
    case OPT_DEVICE:
        return options_device(VERB, "--device", optarg, &o->runtime.device);
    case OPT_TRANSPORTS:
        o->runtime.transports = optarg;
        return 0;
    case OPT_STREAMS:
        code = options_integer(VERB, "--streams", optarg, 1, 64, &value);
        o->streams = (int) value;
        return code;
    case OPT_INTERFERE:
        o->interfere = true;
        return 0;
    case OPT_PEER:
        o->peer = optarg;
        return strcmp(optarg, "nccl") == 0 ? 0 : options_refuse(VERB, "--peer '%s' is not a peer (nccl)", optarg);
    default: /* OPT_JSON */
        o->json = optarg;
        return 0;
    }
}

static int check_combination(const struct stress_options *o)
{
    bool cuda = o->streams > 0 || o->interfere || o->peer != NULL;
    if (cuda && (o->runtime.device == RONDO_DEVICE_HOST || !RONDO_WITH_CUDA))
        return options_refuse(VERB, "--streams, --interfere and --peer need a CUDA device, not %s",
                              options_device_name(o->runtime.device));
    if (o->streams > 0 && o->synchronize)
        return options_refuse(VERB, "--sync waits for what is on --streams: no rank would come to what another waits for");
    if (o->peer != NULL && o->runtime.threads == 0)
        return options_refuse(VERB, "--peer %s runs its ranks as threads: add --ranks N", o->peer);
    return 0;
}

int stress_options_read(int argc, char **argv, struct stress_options *o, bool *help_wanted)
{
    /* Ranks in several processes must agree on the seed, so the default is no clock's. */
    *o = (struct stress_options){
        .runtime = OPTIONS_RUNTIME_DEFAULT, .collectives = 8, .iterations = 100, .random_order = true, .seed = 1};
    int option, code;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return options_unknown(VERB, option, argv);
        if (option == OPT_HELP) {
            *help_wanted = true;
            fputs(help, stdout);
            return 0;
        }
        if ((code = read_one(option, o)) != 0)
            return code;
    }
    if (optind < argc)
        return options_refuse(VERB, "'%s' is not an option", argv[optind]);
    if ((code = check_combination(o)) != 0)
        return code;
    if (o->streams > 0) /* each communicator gets the same number */
        o->collectives = (o->collectives + o->streams - 1) / o->streams * o->streams;
    if (o->runtime.timeout < 0)
        o->runtime.timeout = o->runtime.preempt == 0 ? 5.0 : 20.0;
    return 0;
}
