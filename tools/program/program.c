/* `rondo program`: checks, shows, runs and exports programs, from MSCCL's XML or of those that are built in. */
#include "tools/program/program.h"

#include "tools/common/collectives.h"
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/common/verbs.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERB "program"

enum {
    OPT_RANKS = 256,
    OPT_CHANNELS,
    OPT_ROOT,
    OPT_COLLECTIVE,
    OPT_FORMAT,
    OPT_SLOTS,
    OPT_BLOCKS,
    OPT_CONCURRENT,
    OPT_OUTPUT,
    OPT_BYTES,
    OPT_DEVICE,
    OPT_PRECONDITION,
    OPT_POSTCONDITION,
    OPT_JSON,
    OPT_HELP
};

static const struct option long_options[] = {
    {"ranks", required_argument, NULL, OPT_RANKS},
    {"channels", required_argument, NULL, OPT_CHANNELS},
    {"root", required_argument, NULL, OPT_ROOT},
    {"collective", required_argument, NULL, OPT_COLLECTIVE},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"slots", required_argument, NULL, OPT_SLOTS},
    {"blocks", required_argument, NULL, OPT_BLOCKS},
    {"concurrent", required_argument, NULL, OPT_CONCURRENT},
    {"output", required_argument, NULL, OPT_OUTPUT},
    {"bytes", required_argument, NULL, OPT_BYTES},
    {"device", required_argument, NULL, OPT_DEVICE},
    {"json", required_argument, NULL, OPT_JSON},
    {"help", no_argument, NULL, OPT_HELP},
    {"precondition", required_argument, NULL, OPT_PRECONDITION},
    {"postcondition", required_argument, NULL, OPT_POSTCONDITION},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "usage: rondo program check|show|run|export PROGRAM [OPTIONS]\n"
    "       rondo program list\n"
    "  PROGRAM is a file of MSCCL's XML (NAME.xml), or the name of a built-in one (rondo program list).\n"
    "  check                  proves it: what it computes, no race, no deadlock. Exit 1: rejected, with the reason\n"
    "  show                   what every rank's blocks execute\n"
    "  run                    executes it, and compares every element. Exit 1: wrong data or another error\n"
    "  export                 writes it as MSCCL's XML\n"
    "  --collective NAME      of a built-in program (allreduce, or the only one that it is for)\n"
    "  --ranks N, --channels N, --root R   of a built-in program (4, 1, 0); run: as threads of this process\n"
    "  --slots N, --blocks N, --concurrent N   check: what the device offers (4, 512, 0: all blocks can be preempted)\n"
    "  --format text|dot|svg  of show (text); svg needs Graphviz's dot\n"
    "  --bytes LIST           run: sizes, comma-separated (suffixes K, M)\n"
    "  --device host|cuda     run\n"
    "  --precondition FILE, --postcondition FILE|NAME   of a custom program: what its input chunks hold at the start, and its\n"
    "                         output chunks at the end. NAME: alltonext, allgather, alltoall or allreduce\n"
    "  --output FILE          of show and export (standard output)\n"
    "  --json FILE            - for standard output\n";

static int read_number(const char *option, const char *text, int least, int most, int *value)
{
    int64_t parsed;
    int code = options_integer(VERB, option, text, least, most, &parsed);
    if (code == 0)
        *value = (int) parsed;
    return code;
}

static int read_one(int option, struct program_options *o)
{
    switch (option) {
    case OPT_RANKS:
        return read_number("--ranks", optarg, 1, 4096, &o->ranks);
    case OPT_CHANNELS:
        return read_number("--channels", optarg, 1, 64, &o->channels);
    case OPT_ROOT:
        return read_number("--root", optarg, 0, 4095, &o->root);
    case OPT_SLOTS:
        return read_number("--slots", optarg, 1, 1024, &o->limits.slots);
    case OPT_BLOCKS:
        return read_number("--blocks", optarg, 1, 512, &o->limits.blocks);
    case OPT_CONCURRENT:
        return read_number("--concurrent", optarg, 0, 4096, &o->limits.concurrent);
    case OPT_COLLECTIVE:
        o->collective = collective_find(optarg) != NULL ? collective_find(optarg)->name : optarg;
        return 0;
    case OPT_FORMAT:
        o->format = optarg;
        return strcmp(optarg, "text") == 0 || strcmp(optarg, "dot") == 0 || strcmp(optarg, "svg") == 0
                   ? 0
                   : options_refuse(VERB, "--format '%s' is none of text, dot, svg", optarg);
    case OPT_OUTPUT:
        o->output = optarg;
        return 0;
    case OPT_BYTES:
        o->bytes = optarg;
        return 0;
    case OPT_DEVICE:
        return options_device(VERB, "--device", optarg, &o->device);
    case OPT_PRECONDITION:
        o->precondition = optarg;
        return 0;
    case OPT_POSTCONDITION:
        o->postcondition = optarg;
        return 0;
    default:
        o->json = optarg;
        return 0;
    }
}

/* ---- loading ---- */

static int ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static char *read_file(const char *path, size_t *bytes)
{
    enum { MOST = 256 << 20 };
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    *bytes = 0;
    if (file == NULL)
        return NULL;
    for (size_t got = 1; got > 0 && room < MOST;) {
        room = room == 0 ? 65536 : 2 * room;
        char *grown = realloc(text, room);
        if (grown == NULL)
            break;
        text = grown;
        got = fread(text + *bytes, 1, room - *bytes, file);
        *bytes += got;
    }
    fclose(file);
    return text;
}

/* The first collective the built-in program is for, unless one was named. */
static const char *collective_of(const struct program_options *o)
{
    const char *name, *collective, *found = NULL;
    for (int i = 0; o->collective == NULL; i++) {
        rondo_program_builtin_name(i, &name, &collective);
        if (name == NULL)
            break;
        if (strcmp(name, o->program) == 0 && found == NULL)
            found = collective;
    }
    return o->collective != NULL ? o->collective : found != NULL ? found : "allreduce";
}

rondo_result_t program_load(const struct program_options *o, rondo_program_t *program)
{
    if (!ends_with(o->program, ".xml"))
        return rondo_program_builtin(o->program, collective_of(o), o->ranks, o->channels, o->root, program);
    size_t bytes;
    char *text = read_file(o->program, &bytes);
    if (text == NULL)
        return RONDO_ERR_SYSTEM;
    rondo_result_t result = rondo_program_read_xml(text, bytes, program);
    free(text);
    if (result == RONDO_SUCCESS)
        conditions_apply(&o->before, &o->after, *program);
    return result;
}

/* Reads the conditions that the command line names, and gives them to the program, which has none yet. */
static int read_conditions(struct program_options *o, rondo_program_t program)
{
    rondo_program_signature_t signature;
    int code = 0;
    rondo_program_describe(program, &signature);
    if (o->precondition != NULL)
        code = conditions_read("precondition", o->precondition, &signature, &o->before);
    if (code == 0 && o->postcondition != NULL)
        code = conditions_read("postcondition", o->postcondition, &signature, &o->after);
    if (code == 0)
        conditions_apply(&o->before, &o->after, program);
    return code;
}

static int fail(const struct program_options *o, rondo_result_t code, json_t *json)
{
    fprintf(stderr, "rondo program %s: %s: %s\n", o->action, o->program,
            code == RONDO_ERR_SYSTEM ? "cannot be read" : rondo_last_error());
    json_object_set_new(json, "error", json_string(rondo_last_error()));
    return EXIT_WRONG;
}

/* ---- showing ---- */

static int put(const struct program_options *o, const char *text)
{
    FILE *file = o->output == NULL ? output_stream(o->json) : fopen(o->output, "w");
    if (file == NULL) {
        fprintf(stderr, "rondo program %s: --output %s cannot be written\n", o->action, o->output);
        return EXIT_WRONG;
    }
    fputs(text, file);
    if (o->output != NULL && fclose(file) != 0)
        return EXIT_WRONG;
    return 0;
}

/* Drawing is Graphviz's trade. */
static int put_svg(const struct program_options *o, const char *dot)
{
    if (o->output != NULL && freopen(o->output, "w", stdout) == NULL) {
        fprintf(stderr, "rondo program show: --output %s cannot be written\n", o->output);
        return EXIT_WRONG;
    }
    fflush(stdout);
    FILE *pipe = popen("dot -Tsvg", "w");
    if (pipe == NULL)
        return EXIT_WRONG;
    fputs(dot, pipe);
    if (pclose(pipe) != 0) {
        fprintf(stderr, "rondo program show: --format svg needs Graphviz's dot; --format dot does not\n");
        return EXIT_WRONG;
    }
    return 0;
}

static int show(const struct program_options *o, rondo_program_t program, json_t *json)
{
    char *text = NULL;
    int draws = strcmp(o->format, "text") != 0;
    rondo_result_t result = strcmp(o->action, "export") == 0 ? rondo_program_write_xml(program, &text)
                            : draws                          ? rondo_program_write_dot(program, &text)
                                                             : rondo_program_write_listing(program, &text);
    if (result != RONDO_SUCCESS)
        return fail(o, result, json);
    int code = strcmp(o->format, "svg") == 0 && strcmp(o->action, "show") == 0 ? put_svg(o, text) : put(o, text);
    rondo_program_text_free(text);
    return code;
}

static int check(const struct program_options *o, rondo_program_t program, json_t *json)
{
    rondo_result_t result = rondo_program_check(program, &o->limits);
    json_object_set_new(json, "accepted", json_boolean(result == RONDO_SUCCESS));
    if (result != RONDO_SUCCESS)
        return fail(o, result, json);
    fprintf(output_stream(o->json), "%s: accepted\n", o->program);
    return 0;
}

static int list(const struct program_options *o, json_t *json)
{
    const char *name, *collective;
    json_t *all = json_array();
    for (int i = 0;; i++) {
        rondo_program_builtin_name(i, &name, &collective);
        if (name == NULL)
            break;
        fprintf(output_stream(o->json), "%-16s %s\n", name, collective);
        json_array_append_new(all, json_pack("{s:s, s:s}", "program", name, "collective", collective));
    }
    json_object_set_new(json, "programs", all);
    return 0;
}

int verb_program(int argc, char **argv)
{
    struct program_options o = {
        .ranks = 4, .channels = 1, .format = "text", .limits = {0, 512, 0}, .device = RONDO_DEVICE_HOST};
    int option, code = 0;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == OPT_HELP) {
            fputs(help, stdout);
            return 0;
        }
        code = option == '?' || option == ':' ? options_unknown(VERB, option, argv) : read_one(option, &o);
        if (code != 0)
            return code;
    }
    static const char *const actions[] = {"check", "show", "run", "export", "list"};
    int known = 0;
    for (size_t i = 0; optind < argc && i < sizeof(actions) / sizeof(actions[0]); i++)
        known |= strcmp(argv[optind], actions[i]) == 0;
    if (!known)
        return options_refuse(VERB, "'%s' is none of check, show, run, export, list", optind < argc ? argv[optind] : "");
    o.action = argv[optind++];
    int lists = strcmp(o.action, "list") == 0;
    if (optind + !lists != argc)
        return options_refuse(VERB, "%s takes %s", o.action, lists ? "nothing" : "one program");
    json_t *json = json_object();
    rondo_program_t program = NULL;
    if (lists) {
        code = list(&o, json);
    } else {
        o.program = argv[optind];
        rondo_result_t result = program_load(&o, &program);
        if (result != RONDO_SUCCESS)
            code = fail(&o, result, json);
        else
            code = read_conditions(&o, program);
        if (code != 0)
            ; /* has been said */
        else if (strcmp(o.action, "check") == 0)
            code = check(&o, program, json);
        else if (strcmp(o.action, "run") == 0)
            code = program_run(&o, program, json);
        else
            code = show(&o, program, json);
    }
    rondo_program_destroy(program);
    conditions_free(&o.before);
    conditions_free(&o.after);
    int written = output_json(VERB, o.json, json);
    return code != 0 ? code : written;
}
