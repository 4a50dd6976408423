/*
 * `rondo bench COLLECTIVE --processes N --peer mpi:NAME,mpi:NAME`: the collective beside several MPIs. Two of them cannot live
 * in one process, nor be started by one mpirun. So each round starts one job for each, under its own launcher, in which Rondo
 * and that MPI are measured in turn; the MPIs take turns in going first. A cell's figures are the medians of the rounds, and
 * its ratio is the smallest of the ratios to the MPIs, each to Rondo in the same job.
 */
#include "tools/bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RIVALS_MOST = 8, ROUNDS_MOST = BENCH_MEDIAN_MOST, ROWS_MOST = 64 };

/* One MPI. */
struct rival {
    char name[64], version[64], launcher[512];
};

struct rivals {
    int count;
    struct rival all[RIVALS_MOST];
};

/* The figures of one size beside one MPI, a round each. */
struct cell {
    double time[ROUNDS_MOST], peer_time[ROUNDS_MOST], ratio[ROUNDS_MOST], aa[ROUNDS_MOST];
    int rounds;
};

struct row {
    size_t bytes, count;
    struct cell cells[RIVALS_MOST];
};

struct table {
    const struct bench_options *options;
    int rows;
    struct row row[ROWS_MOST];
    json_t *runs; /* what the jobs have written, as it is */
};

/* ---- the MPIs ---- */

/* Fills in what the peer says of itself. It is loaded in a child, because this process must stay free of it. Returns 0, or
 * EXIT_USAGE after saying why. */
static int look_up(struct rival *rival)
{
    int ends[2];
    if (pipe(ends) != 0)
        return options_refuse("bench", "--peer %s: %s", rival->name, strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        char message[512];
        const struct peer *peer = peer_load(rival->name, message, sizeof(message));
        struct rival found = {.version = ""};
        if (peer == NULL)
            options_refuse("bench", "--peer %s: %s", rival->name, message);
        else if (peer->launcher == NULL)
            options_refuse("bench", "--peer %s has no launcher of processes", rival->name);
        else {
            snprintf(found.name, sizeof(found.name), "%s", peer->name);
            snprintf(found.version, sizeof(found.version), "%s", peer->version != NULL ? peer->version : peer->name);
            snprintf(found.launcher, sizeof(found.launcher), "%s", peer->launcher);
            if (write(ends[1], &found, sizeof(found)) != (ssize_t) sizeof(found))
                options_refuse("bench", "--peer %s: %s", rival->name, strerror(errno));
        }
        _exit(0);
    }
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], rival, sizeof(*rival)) : -1;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return got == (ssize_t) sizeof(*rival) ? 0 : EXIT_USAGE;
}

int bench_rivals_read(struct bench_options *options, const char *names)
{
    static struct rivals rivals;
    options->rivals = &rivals;
    if (options->runtime.threads > 0 || options->tune != NULL || options->whole != NULL || options->trace_cost)
        return options_refuse("bench", "--processes is for one collective's rows: no --ranks, --tune, --trace-cost, gradients");
    if (options->rounds > ROUNDS_MOST)
        return options_refuse("bench", "--rounds %d is more than %d", options->rounds, ROUNDS_MOST);
    while (*names != '\0') {
        size_t length = strcspn(names, ",");
        struct rival *rival = &rivals.all[rivals.count];
        if (rivals.count == RIVALS_MOST)
            return options_refuse("bench", "--peer takes %d names at most", RIVALS_MOST);
        snprintf(rival->name, sizeof(rival->name), "%.*s", (int) length, names);
        if (!peer_is_name(rival->name))
            return options_refuse("bench", "--peer '%s' is not a peer (mpi, mpi:NAME)", rival->name);
        int code = look_up(rival);
        if (code != 0)
            return code;
        rivals.count++;
        names += length + (names[length] == ',');
    }
    return rivals.count > 0 ? 0 : options_refuse("bench", "--peer names no peer");
}

/* ---- one job ---- */

/* More ranks than cores are the caller's wish, and so is root. The launchers ask for both in variables of their own; what an
 * outer launcher has left is of no use to them. */
static void set_environment(void)
{
    static const char *const permissions[] = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                                              "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
                                              "OMPI_MCA_rmaps_base_oversubscribe"};
    for (size_t i = 0; i < sizeof(permissions) / sizeof(permissions[0]); i++)
        setenv(permissions[i], "1", 0);
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
}

/* Becomes the job: LAUNCHER -n N this command with its arguments, of which the last win. Returns on failure only. */
static void become_job(const struct bench_options *o, const struct rival *rival, const char *file, char **argv, int argc)
{
    char processes[16];
    snprintf(processes, sizeof(processes), "%d", o->processes);
    const char *const before[] = {rival->launcher, "-n", processes, "/proc/self/exe", "bench"};
    const char *const after[] = {"--processes", "0", "--peer", rival->name, "--json", file};
    enum { BEFORE = sizeof(before) / sizeof(before[0]), AFTER = sizeof(after) / sizeof(after[0]) };
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    const char **words = calloc((size_t) argc + BEFORE + AFTER + 1, sizeof(*words));
    if (length < 0 || words == NULL)
        return;
    program[length] = '\0';
    int count = 0;
    for (int i = 0; i < BEFORE; i++)
        words[count++] = i == 3 ? program : before[i];
    for (int i = 1; i < argc; i++)
        words[count++] = argv[i];
    for (int i = 0; i < AFTER; i++)
        words[count++] = after[i];
    set_environment();
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    execv(words[0], (char *const *) words);
    free(words);
}

/* Runs a job and returns what it has written; NULL after saying what failed. */
static json_t *run_job(const struct bench_options *o, const struct rival *rival, char **argv, int argc)
{
    char file[] = "/tmp/rondo-bench-XXXXXX";
    int status = 0, descriptor = mkstemp(file);
    if (descriptor < 0) {
        fprintf(stderr, "rondo bench: %s: %s\n", file, strerror(errno));
        return NULL;
    }
    close(descriptor);
    pid_t child = fork();
    if (child == 0) {
        become_job(o, rival, file, argv, argc);
        fprintf(stderr, "rondo bench: %s: %s\n", rival->launcher, strerror(errno));
        _exit(127);
    }
    int failed = child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    json_error_t error;
    json_t *written = failed ? NULL : json_load_file(file, 0, &error);
    unlink(file);
    if (failed)
        fprintf(stderr, "rondo bench: the job under %s failed (status %d)\n", rival->launcher,
                WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    else if (written == NULL)
        fprintf(stderr, "rondo bench: what the job under %s wrote is not JSON: %s\n", rival->launcher, error.text);
    return written;
}

/* ---- figures ---- */

static double number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static int collect(struct table *t, int rival, const json_t *written)
{
    const json_t *rows = json_object_get(written, "rows"), *row;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        if (i >= ROWS_MOST)
            return options_refuse("bench", "%d sizes are too many", (int) json_array_size(rows));
        struct cell *cell = &t->row[i].cells[rival];
        t->row[i].bytes = (size_t) json_integer_value(json_object_get(row, "bytes"));
        t->row[i].count = (size_t) json_integer_value(json_object_get(row, "count"));
        cell->time[cell->rounds] = number(row, "time_us");
        cell->peer_time[cell->rounds] = number(row, "peer_time_us");
        cell->ratio[cell->rounds] = number(row, "ratio");
        cell->aa[cell->rounds] = number(row, "aa_ratio");
        cell->rounds++;
        t->rows = t->rows > (int) i ? t->rows : (int) i + 1;
    }
    return 0;
}

/* The MPI beside which the row's ratio is the smallest. */
static int fastest(const struct row *row, int rivals)
{
    int best = 0;
    for (int i = 1; i < rivals; i++)
        if (bench_median(row->cells[i].ratio, row->cells[i].rounds) <
            bench_median(row->cells[best].ratio, row->cells[best].rounds))
            best = i;
    return best;
}

static void print_table(const struct table *t)
{
    const struct bench_options *o = t->options;
    const struct rivals *rivals = o->rivals;
    FILE *stream = output_stream(o->json);
    fprintf(stream, "# %s, %d ranks as processes, %s; medians of %d rounds; ratio = the fastest MPI's time / Rondo's\n",
            o->collective->name, o->processes, bench_mode_name(o->mode), o->rounds);
    fprintf(stream, "#%11s %12s", "size", "time");
    for (int i = 0; i < rivals->count; i++)
        fprintf(stream, " %16s %7s", rivals->all[i].name, "ratio");
    fprintf(stream, " %8s\n#%11s %12s", "ratio", "(B)", "(us)");
    for (int i = 0; i < rivals->count; i++)
        fprintf(stream, " %16s %7s", "(us)", "");
    fputc('\n', stream);
    for (int r = 0; r < t->rows; r++) {
        const struct row *row = &t->row[r];
        const int best = fastest(row, rivals->count);
        fprintf(stream, "%12zu %12.2f", row->bytes, bench_median(row->cells[best].time, row->cells[best].rounds));
        for (int i = 0; i < rivals->count; i++)
            fprintf(stream, " %16.2f %7.3f", bench_median(row->cells[i].peer_time, row->cells[i].rounds),
                    bench_median(row->cells[i].ratio, row->cells[i].rounds));
        fprintf(stream, " %8.3f\n", bench_median(row->cells[best].ratio, row->cells[best].rounds));
    }
}

static json_t *json_row(const struct table *t, const struct row *row)
{
    const struct rivals *rivals = t->options->rivals;
    const int best = fastest(row, rivals->count);
    json_t *cells = json_array();
    for (int i = 0; i < rivals->count; i++) {
        const struct cell *c = &row->cells[i];
        json_t *cell =
            json_pack("{s:s, s:f, s:f, s:f}", "peer", rivals->all[i].name, "time_us", bench_median(c->time, c->rounds),
                      "peer_time_us", bench_median(c->peer_time, c->rounds), "ratio", bench_median(c->ratio, c->rounds));
        if (t->options->twice)
            json_object_set_new(cell, "aa_ratio", json_real(bench_median(c->aa, c->rounds)));
        json_array_append_new(cells, cell);
    }
    return json_pack("{s:I, s:I, s:f, s:s, s:f, s:o}", "bytes", (json_int_t) row->bytes, "count", (json_int_t) row->count,
                     "time_us", bench_median(row->cells[best].time, row->cells[best].rounds), "peer", rivals->all[best].name,
                     "ratio", bench_median(row->cells[best].ratio, row->cells[best].rounds), "peers", cells);
}

static int write_json(const struct table *t)
{
    const struct bench_options *o = t->options;
    json_t *rows = json_array(), *versions = json_object();
    for (int r = 0; r < t->rows; r++)
        json_array_append_new(rows, json_row(t, &t->row[r]));
    for (int i = 0; i < o->rivals->count; i++)
        json_object_set_new(versions, o->rivals->all[i].name, json_string(o->rivals->all[i].version));
    return output_json("bench", o->json,
                       json_pack("{s:s, s:i, s:i, s:o, s:o, s:O}", "collective", o->collective->name, "ranks", o->processes,
                                 "rounds", o->rounds, "peer_versions", versions, "rows", rows, "runs", t->runs));
}

int bench_rivals(const struct bench_options *options, int argc, char **argv)
{
    static struct table table;
    table = (struct table){.options = options, .runs = json_array()};
    int code = 0;
    for (int round = 0; round < options->rounds && code == 0; round++)
        for (int i = 0; i < options->rivals->count && code == 0; i++) {
            const int at = (round + i) % options->rivals->count;
            json_t *written = run_job(options, &options->rivals->all[at], argv, argc);
            code = written != NULL ? collect(&table, at, written) : EXIT_WRONG;
            if (written != NULL)
                json_array_append_new(table.runs, written);
        }
    if (code == 0) {
        print_table(&table);
        code = options->json != NULL ? write_json(&table) : 0;
    }
    json_decref(table.runs);
    return code;
}
