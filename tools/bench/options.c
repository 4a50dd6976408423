/* The command line of `rondo bench`. See tools/bench/bench.h. */
#include "tools/bench/bench.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERB "bench"

enum {
    OPT_RANKS = 256,
    OPT_DEVICE,
    OPT_MODE,
    OPT_ALGORITHM,
    OPT_PROTOCOL,
    OPT_CHANNELS,
    OPT_TUNE,
    OPT_ORDER,
    OPT_COMPRESS,
    OPT_TRACE_COST,
    OPT_FEEDBACK,
    OPT_TRANSPORTS,
    OPT_REGISTER,
    OPT_PEER,
    OPT_PROCESSES,
    OPT_ROUNDS,
    OPT_AA,
    OPT_VARY,
    OPT_NO_VARY,
    OPT_JSON,
    OPT_HELP
};

static const struct option long_options[] = {
    {"min-bytes", required_argument, NULL, 'b'},
    {"max-bytes", required_argument, NULL, 'e'},
    {"factor", required_argument, NULL, 'f'},
    {"iterations", required_argument, NULL, 'n'},
    {"warmup", required_argument, NULL, 'w'},
    {"type", required_argument, NULL, 'd'},
    {"op", required_argument, NULL, 'o'},
    {"root", required_argument, NULL, 'r'},
    {"check", no_argument, NULL, 'c'},
    {"in-place", no_argument, NULL, 'i'},
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"mode", required_argument, NULL, OPT_MODE},
    {"algorithm", required_argument, NULL, OPT_ALGORITHM},
    {"protocol", required_argument, NULL, OPT_PROTOCOL},
    {"channels", required_argument, NULL, OPT_CHANNELS},
    {"tune", required_argument, NULL, OPT_TUNE},
    {"order", required_argument, NULL, OPT_ORDER},
    {"compress", required_argument, NULL, OPT_COMPRESS},
    {"trace-cost", no_argument, NULL, OPT_TRACE_COST},
    {"feedback", no_argument, NULL, OPT_FEEDBACK},
    {"transports", required_argument, NULL, OPT_TRANSPORTS},
    {"register", no_argument, NULL, OPT_REGISTER},
    {"peer", required_argument, NULL, OPT_PEER},
    {"processes", required_argument, NULL, OPT_PROCESSES},
    {"rounds", required_argument, NULL, OPT_ROUNDS},
    {"aa", no_argument, NULL, OPT_AA},
    {"vary", no_argument, NULL, OPT_VARY},
    {"no-vary", no_argument, NULL, OPT_NO_VARY},
    {"json", required_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {NULL, 0, NULL, 0},
};

/* For printf, with the names of the types and of the operators. */
static const char help[] =
    "usage: rondo bench COLLECTIVE [OPTIONS]\n"
    "  allreduce reduce bcast reduce_scatter_block reduce_scatter allgather allgatherv alltoall alltoallv alltoallw gather\n"
    "  gatherv scatter scatterv barrier scan exscan alltonext sendrecv, or the beginning of one of these names alone;\n"
    "  or gradients: the 161 tensors of a ResNet-50, a persistent all-reduce each, started in an order of the rank's own (the\n"
    "  peer's: the same on all ranks); or switches: how long the daemon takes from one stuck operation to another; or policy:\n"
    "  programs of persistent collectives under each way to choose how long waits are; or priority: how soon an urgent one\n"
    "  finishes beside many large ones. Exit 1: wrong data or another error.\n"
    "  -b, --min-bytes SIZE   smallest size (8); sizes take the suffixes K, M, G\n"
    "  -e, --max-bytes SIZE   largest size (64M)\n"
    "  -f, --factor N         from one size to the next (4)\n"
    "  -n, --iterations N     timed ones of each row (by default as many as take about 0.2 s)\n"
    "  -w, --warmup N         untimed ones before them\n"
    "  -d, --type TYPE        %s\n"
    "  -o, --op OP            %s\n"
    "  -r, --root RANK        (0)\n"
    "  -c, --check            compare every element with an exact reference\n"
    "  -i, --in-place         the input is taken from the output buffer\n"
    "  --ranks N              that many ranks as threads of this process (else from the environment: mpirun, srun)\n"
    "  --device host|cuda     where the collectives run (auto: a GPU where there is one)\n"
    "  --mode MODE            blocking, nonblocking, persistent, callback (persistent, until its callback has been called); "
    "on\n"
    "                         CUDA also stream and persistent-stream: enqueued back to back on a stream\n"
    "  --algorithm NAME, --protocol NAME, --channels N   instead of those that the library would choose\n"
    "  --tune FILE            tries them all, and writes which are the fastest (with --ranks)\n"
    "  --order WHICH          of gradients: random (the default) or same\n"
    "  --compress RATE        bits a value of floats; timed in turn with the same uncompressed, and the error's norm\n"
    "  --feedback             what compression loses is added to the next run's data (with --mode persistent)\n"
    "  --trace-cost           timed in turn without the trace that RONDO_TRACE asks for\n"
    "  --transports LIST      in order of preference\n"
    "  --register             buffers that the other ranks may reach directly\n"
    "  --peer nccl|mpi|mpi:NAME   the same work on the peer, in turn; ratio = peer's time / Rondo's. NAME: openmpi, mpich,\n"
    "                         intel, or the beginning of one that the command was built for (make MPICC=\"WRAPPER ...\")\n"
    "  --processes N --peer mpi:NAME,...   starts that many ranks as processes under each MPI's own mpirun, in turn; the\n"
    "                         ratio is that to the fastest\n"
    "  --rounds N             of those, or of policies (3); figures are medians\n"
    "  --aa                   each batch of the peer is timed twice: how far its figures differ from themselves\n"
    "  --vary, --no-vary      whether each rank changes its input before each iteration, which is not timed (host device: "
    "yes)\n"
    "  --json FILE            - for standard output\n";

static const char *const mode_names[] = {[FORM_BLOCKING] = "blocking",
                                         [FORM_NONBLOCKING] = "nonblocking",
                                         [FORM_PERSISTENT] = "persistent",
                                         [FORM_STREAM] = "stream",
                                         [FORM_PERSISTENT_STREAM] = "persistent-stream",
                                         [FORM_CALLBACK] = "callback"};
enum { MODES = sizeof(mode_names) / sizeof(mode_names[0]) };

const char *bench_mode_name(enum form mode)
{
    return mode_names[mode];
}

/* What the options say as text until all of them are known. */
struct texts {
    const char *minimum, *maximum, *mode, *peer;
};

static int read_integer(const char *option, const char *text, int minimum, int *value)
{
    int64_t parsed;
    int code = options_integer(VERB, option, text, minimum, INT_MAX, &parsed);
    if (code == 0)
        *value = (int) parsed;
    return code;
}

static int read_one(int option, struct bench_options *o, struct texts *texts)
{
    int factor = 0, code;
    switch (option) {
    case 'b':
        texts->minimum = optarg;
        return options_size(VERB, "-b", optarg, &o->minimum);
    case 'e':
        texts->maximum = optarg;
        return options_size(VERB, "-e", optarg, &o->maximum);
    case 'f':
        code = read_integer("-f", optarg, 2, &factor);
        o->factor = (size_t) factor;
        return code;
    case 'n':
        return read_integer("-n", optarg, 1, &o->iterations);
    case 'w':
        return read_integer("-w", optarg, 0, &o->warmup);
    case 'd':
        return options_type(VERB, "-d", optarg, &o->type);
    case 'o':
        return options_operator(VERB, "-o", optarg, &o->op);
    case 'r':
        return read_integer("-r", optarg, 0, &o->root);
    case 'c':
        o->check = true;
        return 0;
    case 'i':
        o->in_place = true;
        return 0;
    case OPT_RANKS:
        return options_ranks(VERB, "--ranks", optarg, &o->runtime.threads);
    case OPT_DEVICE:
        return options_device(VERB, "--device", optarg, &o->runtime.device);
    case OPT_MODE:
        texts->mode = optarg;
        return 0;
    case OPT_ALGORITHM:
        o->algorithm = optarg;
        return 0;
    case OPT_PROTOCOL:
        o->protocol = optarg;
        return 0;
    case OPT_CHANNELS:
        o->channels = optarg;
        return read_integer("--channels", optarg, 1, &factor);
    case OPT_TUNE:
        o->tune = optarg;
        return 0;
    case OPT_ORDER:
        o->same_order = strcmp(optarg, "same") == 0;
        return o->same_order || strcmp(optarg, "random") == 0
                   ? 0
                   : options_refuse(VERB, "--order '%s' is not an order (random, same)", optarg);
    case OPT_COMPRESS:
        return read_integer("--compress", optarg, 1, &o->compress);
    case OPT_TRACE_COST:
        o->trace_cost = true;
        return 0;
    case OPT_FEEDBACK:
        o->feedback = true;
        return 0;
    case OPT_TRANSPORTS:
        o->runtime.transports = optarg;
        return 0;
    case OPT_REGISTER:
        o->registered = true;
        return 0;
    case OPT_PEER:
        texts->peer = optarg;
        return 0;
    case OPT_PROCESSES:
        return read_integer("--processes", optarg, 0, &o->processes);
    case OPT_ROUNDS:
        return read_integer("--rounds", optarg, 1, &o->rounds);
    case OPT_AA:
        o->twice = true;
        return 0;
    case OPT_VARY:
    case OPT_NO_VARY:
        o->vary = option == OPT_VARY;
        return 0;
    default: /* OPT_JSON */
        o->json = optarg;
        return 0;
    }
}

static int read_mode(struct bench_options *o, const char *text)
{
    int mode = 0;
    while (text != NULL && mode < MODES && strcmp(text, mode_names[mode]) != 0)
        mode++;
    if (mode == MODES)
        return options_refuse(
            VERB, "--mode '%s' is not a mode (blocking, nonblocking, persistent, callback, stream, persistent-stream)", text);
    if (text == NULL && o->whole != NULL)
        mode = FORM_PERSISTENT;
    o->mode = (enum form) mode;
    if (form_is_on_stream(o->mode) && (o->runtime.device == RONDO_DEVICE_HOST || !RONDO_WITH_CUDA))
        return options_refuse(VERB, "--mode %s needs a CUDA device, not %s", text, options_device_name(o->runtime.device));
    if (o->feedback && (o->compress == 0 || !form_is_persistent(o->mode)))
        return options_refuse(VERB, "--feedback is of compressed persistent operations: add --compress RATE --mode persistent");
    return 0;
}

/* The transports that Rondo may use, for a peer that is to use no better ones. */
static bool between_gpus(const struct bench_options *o)
{
    const char *list = o->runtime.transports != NULL ? o->runtime.transports : options_variable_text("RONDO_TRANSPORTS");
    return list == NULL || strstr(list, "p2p") != NULL;
}

static int read_peer(struct bench_options *o, const char *text)
{
    if (text == NULL)
        return o->processes > 0 || o->twice ? options_refuse(VERB, "--processes and --aa need --peer") : 0;
    if (o->processes > 0)
        return bench_rivals_read(o, text);
    if (!peer_is_name(text))
        return options_refuse(VERB, "--peer '%s' is not a peer (mpi, mpi:NAME, nccl; several with --processes)", text);
    if (strcmp(text, "nccl") == 0 && o->runtime.device == RONDO_DEVICE_HOST)
        return options_refuse(VERB, "--peer nccl needs --device cuda, not %s", options_device_name(o->runtime.device));
    if (strcmp(text, "nccl") == 0 && !between_gpus(o))
        setenv("NCCL_P2P_DISABLE", "1", 1); /* before it is loaded */
    char message[1024];
    o->peer = peer_load(text, message, sizeof(message));
    if (o->peer == NULL)
        return options_refuse(VERB, "--peer %s is not in this build: %s", text, message);
    if (o->peer->needs_processes && o->runtime.threads > 1)
        return options_refuse(VERB, "--peer %s needs a process a rank: start the ranks with mpirun, not with --ranks %d", text,
                              o->runtime.threads);
    return 0;
}

static int check_sizes(struct bench_options *o, const struct texts *texts)
{
    if (texts->maximum == NULL && o->minimum > o->maximum)
        o->maximum = o->minimum;
    if (texts->minimum == NULL && o->minimum > o->maximum)
        o->minimum = o->maximum;
    if (o->minimum > o->maximum)
        return options_refuse(VERB, "-b %s is more than -e %s", texts->minimum, texts->maximum);
    return 0;
}

static int check_combination(const struct bench_options *o)
{
    const struct collective *c = o->collective;
    if (c->rule->reduces && !options_operator_takes(o->op, o->type))
        return options_refuse(VERB, "-o %s takes integers only, not %s", options_operator_name(o->op),
                              options_type_name(o->type));
    if (collective_is_prefix(c) && o->op == RONDO_AVG)
        return options_refuse(VERB, "-o avg is not an operator of %s", c->name);
    if (o->in_place && !collective_shares(c))
        return options_refuse(VERB, "%s has no --in-place form", c->name);
    if (o->runtime.threads > 0 && o->root >= o->runtime.threads)
        return options_refuse(VERB, "-r %d is not one of %d ranks", o->root, o->runtime.threads);
    if (o->mode == FORM_PERSISTENT_STREAM && c->id == COLLECTIVE_SENDRECV)
        return options_refuse(VERB, "sendrecv has no --mode persistent-stream: one stream would start its two halves in turn");
    if (o->trace_cost && (!options_variable_is_set("RONDO_TRACE") || o->peer != NULL || o->compress > 0 || o->tune != NULL))
        return options_refuse(VERB,
                              "--trace-cost needs RONDO_TRACE=FILE, and takes turns with no --peer, --compress or --tune");
    if (o->check && o->compress > 0)
        return options_refuse(VERB, "-c needs exact results; with --compress %d they are not", o->compress);
    return 0;
}

static int check_tune(const struct bench_options *o)
{
    if (o->tune == NULL)
        return 0;
    if (o->whole != NULL || o->peer != NULL || o->algorithm != NULL || o->protocol != NULL || o->channels != NULL ||
        o->json != NULL)
        return options_refuse(VERB, "--tune chooses by itself: no gradients, switches, policy, priority, --peer, --algorithm, "
                                    "--protocol, --channels, --json");
    if (o->runtime.threads == 0)
        return options_refuse(VERB, "--tune starts the ranks anew for each candidate: add --ranks N");
    return 0;
}

static const struct bench_whole *find_whole(const char *name)
{
    static const struct bench_whole *const all[] = {&bench_gradients, &bench_switches, &bench_policy, &bench_priority};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(name, all[i]->name) == 0)
            return all[i];
    return NULL;
}

int bench_options_read(int argc, char **argv, struct bench_options *o, bool *help_wanted)
{
    *o = (struct bench_options){.runtime = OPTIONS_RUNTIME_DEFAULT,
                                .minimum = 8,
                                .maximum = (size_t) 64 << 20,
                                .factor = 4,
                                .warmup = -1,
                                .rounds = 3,
                                .vary = true,
                                .type = RONDO_FLOAT,
                                .op = RONDO_SUM};
    struct texts texts = {0};
    int option, code;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":b:e:f:n:w:d:o:r:ci", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return options_unknown(VERB, option, argv);
        if (option == OPT_HELP) {
            struct options_names types, operators;
            *help_wanted = true;
            printf(help, options_type_names(" ", &types), options_operator_names(" ", &operators));
            return 0;
        }
        if ((code = read_one(option, o, &texts)) != 0)
            return code;
    }
    if (optind >= argc)
        return options_refuse(VERB, "which collective? (rondo bench allreduce ...)");
    if (optind + 1 < argc)
        return options_refuse(VERB, "one collective at a time, not also '%s'", argv[optind + 1]);
    o->whole = find_whole(argv[optind]);
    o->collective = collective_find(o->whole != NULL ? "allreduce" : argv[optind]);
    if (o->collective == NULL) {
        char names[256];
        collective_list(names, sizeof(names), ", ");
        return options_refuse(
            VERB, "'%s' is not a collective (%s, gradients, switches, policy, priority), nor does one name alone begin so",
            argv[optind], names);
    }
    if ((code = check_sizes(o, &texts)) != 0 || (code = read_mode(o, texts.mode)) != 0 || (code = check_combination(o)) != 0 ||
        (code = read_peer(o, texts.peer)) != 0 || (o->whole != NULL && (code = o->whole->check(o)) != 0))
        return code;
    return check_tune(o);
}
