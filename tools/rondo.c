/* The `rondo` command: finds the verb by its name and calls it. The verbs are in the folders beside this file. */
#include "tools/common/options.h"
#include "tools/common/verbs.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"info", "build options, processors, devices, transports, memory, environment", verb_info},
    {"bench", "time, bandwidth and correctness of a collective, alone or beside a peer", verb_bench},
    {"program", "check, show, run or export a program of collective communication", verb_program},
    {"stress", "programs that deadlock where collectives hold on to the device", verb_stress},
    {"sim", "how often a job would deadlock without preemption (simulated)", verb_sim},
    {"top", "the ranks of a running job: rates, waits, and the rank that the others wait for", verb_top},
    {"report", "what every rank of a running job does and waits for", verb_report},
    {"trace", "what a trace of the daemon shows (RONDO_TRACE)", verb_trace},
};

static void usage(FILE *stream)
{
    fputs("usage: rondo VERB [OPTIONS]\n", stream);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        fprintf(stream, "  %-8s %s\n", verbs[i].name, verbs[i].summary);
    fputs("rondo VERB --help tells a verb's options.\n", stream);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "rondo: '%s' is not a verb\n", argv[1]);
    usage(stderr);
    return EXIT_USAGE;
}
