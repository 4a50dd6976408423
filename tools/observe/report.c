/* `rondo report`: what every rank of a running job does and waits for, asked from outside. */
#include "tools/common/options.h"
#include "tools/common/output.h"
#include "tools/common/verbs.h"
#include "tools/observe/job.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define VERB "report"

enum { OPT_JSON = 256, OPT_HELP };

static const struct option long_options[] = {
    {"json", required_argument, NULL, OPT_JSON}, {"help", no_argument, NULL, OPT_HELP}, {NULL, 0, NULL, 0}};

static const char help[] = "usage: rondo report [JOB] [OPTIONS]\n"
                           "  What every rank of a running job does and waits for. The job goes on.\n"
                           "  JOB               its name (RONDO_JOB, or the launcher's), or the number of a process of it on "
                           "this host; without it, the\n"
                           "                    only job of this user here\n"
                           "  --json FILE       also each rank's counts, waits and last operations (- for standard output)\n";

static int report(int words, char *const *word, const char *path)
{
    struct job job;
    int code = job_find(VERB, words, word, &job);
    if (code != 0)
        return code;
    char *text = job_ask(VERB, &job, "report");
    if (text == NULL)
        return EXIT_WRONG;
    fprintf(output_stream(path), "job %s, %d ranks:\n%s", job.name, job.size, text);
    free(text);
    if (path == NULL)
        return 0;
    json_t *state = job_state(VERB, &job);
    return state != NULL ? output_json(VERB, path, state) : EXIT_WRONG;
}

int verb_report(int argc, char **argv)
{
    const char *json = NULL;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        switch (option) {
        case OPT_JSON:
            json = optarg;
            break;
        case OPT_HELP:
            fputs(help, stdout);
            return 0;
        default:
            return options_unknown(VERB, option, argv);
        }
    }
    return report(argc - optind, argv + optind, json);
}
