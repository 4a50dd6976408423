/*
 * Runs the parts of parts.c with one failure each and judges what the ranks saw. A run is three forked processes; everything
 * is loaded before the fork, so a run takes some tens of milliseconds. Up to --jobs runs are under way at once. On a GPU a run
 * takes as long as CUDA takes to begin, which must be new in each process: processes make one run after the other, until one is
 * not right; only what a process's first run alone calls, as CUDA begins, fails in a new process each time. Where no name of a
 * function is given, calls of libc fail on the host, and calls of CUDA on a GPU.
 *
 * A point is (part, rank, function, way, n). Without --sample all points are tried: n counts up to the calls of a run without a
 * failure, and on until a run makes no n-th call. A run is right if every rank ends in time, without a crash, and finalizes; if
 * a rank that fails is followed by all others; if what a successful call gave is right; and if nothing is left: no allocation,
 * descriptor or thread more than in a run without a failure.
 */
#include "test/injection/run.h"

#include "test/injection/buffers.h"

#include <dlfcn.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int only_rank = -1, only_way = -1, only_first, jobs = 2, sample;
static long only_number, most = 100000;
static const char *only_part, *only_function;
static double budget, started;
static const char *no_gpu; /* why parts on a GPU are skipped */

static struct slot *idle_slot(void)
{
    for (int i = 0; i < jobs; i++)
        if (!slots[i].active)
            return &slots[i];
    return NULL;
}

/* Runs the point to its end by itself. Returns its slot, which is not active any more. */
static struct slot *run_alone(struct point point)
{
    struct slot *slot;
    for (int again = 0;; again = 1) {
        begin_run(&slots[0], point, again);
        slot = await();
        int repeat = judge(slot);
        end_run(slot);
        if (!repeat)
            return slot;
    }
}

/* ---- the points ---- */

/* Makes the part's run without a failure, which says what is normal. */
static void run_clean(int part)
{
    for (int warm = 0; warm <= part_reuses(&parts[part]); warm++) {
        struct slot *slot = run_alone((struct point){.part = part, .function = -1, .warm = warm});
        memcpy(clean[warm][part], slot->job->ranks, sizeof(clean[warm][part]));
    }
}

/* Whether only a process's first run makes that call of the point's function, as CUDA's beginning does: no rank makes it from
 * there, through the same callers, in a later run. How often a rank comes to the same place differs from run to run. */
static int is_of_a_first_run(const struct point *point)
{
    if (point->number > INJECT_SITES)
        return 1;
    uint64_t context = clean[0][point->part][point->rank].inject.contexts[point->function][point->number - 1];
    for (int rank = 0; rank < RANKS; rank++) {
        const struct inject_record *later = &clean[1][point->part][rank].inject;
        for (long n = 0; n < later->calls[point->function] && n < INJECT_SITES; n++)
            if (later->contexts[point->function][n] == context)
                return 0;
    }
    return 1;
}

/* Whether the point is to be tried: with new processes, where others can be reused, only what those do not call. */
static int is_wanted(const struct point *point)
{
    return point->warm || !part_reuses(&parts[point->part]) || is_of_a_first_run(point);
}

/* Calls that a run without a failure makes. */
static long calls(const struct point *point)
{
    return clean[point->warm][point->part][point->rank].inject.calls[point->function];
}

/* Runs that took too long, to be repeated one at a time when no other is under way. */
static struct point late_points[JOBS_MAX];
static int late_count;

/* Beyond the last call of a run without a failure: each is there because the run of the call before it made that call. */
static struct point more_points[JOBS_MAX];
static int more_count;

static void note_more(const struct slot *slot)
{
    const struct point *point = &slot->point;
    const int of_first = part_reuses(&parts[point->part]) && !point->warm;
    if (!slot->job->ranks[point->rank].inject.fired || point->number < calls(point) || point->number >= most || of_first ||
        more_count == JOBS_MAX || sample > 0)
        return;
    more_points[more_count] = *point;
    more_points[more_count++].number++;
}

/* Ends the run that ends first. One that must be repeated is, when the others have ended too. */
static void finish_one(void)
{
    struct slot *slot;
    while ((slot = await()) != NULL) {
        if (judge(slot))
            late_points[late_count++] = slot->point;
        else
            note_more(slot);
        end_run(slot);
        if (late_count == 0)
            return;
    }
    while (late_count > 0) {
        slot = &slots[0];
        begin_run(slot, late_points[--late_count], 1);
        await();
        judge(slot);
        note_more(slot);
        end_run(slot);
    }
}

static int has_time(void)
{
    return budget <= 0 || now() - started < budget;
}

/* On a GPU one slot's processes begin at a time: several at once take many times as long, and so do the runs beside them. Where
 * each rank is a process, they begin when no other run is under way: processes whose kernels wait for each other leave them the
 * GPU for so little time that they would not begin within a run's limit. */
static int must_wait(const struct slot *idle, const struct point *point)
{
    const int begins = needs_new(idle, point), alone = !part_in_threads(&parts[point->part]);
    if (!part_on_gpu(&parts[point->part]))
        return 0;
    for (int i = 0; i < jobs; i++)
        if (slots[i].active && (is_new(&slots[i]) ? begins || alone : begins && alone))
            return 1;
    return 0;
}

static void begin_point(struct point point)
{
    struct slot *slot;
    while ((slot = idle_slot()) == NULL || must_wait(slot, &point))
        finish_one();
    begin_run(slot, point, 0);
}

static void begin_more_points(void)
{
    while (more_count > 0 && has_time())
        begin_point(more_points[--more_count]);
}

/* Ends all runs, and those that they ask for. */
static void finish_all(void)
{
    do {
        begin_more_points();
        while (await() != NULL)
            finish_one();
    } while (more_count > 0 && has_time());
}

/* Whether one of the patterns of fnmatch, between commas, matches the name. */
static int matches(const char *patterns, const char *name)
{
    char pattern[128];
    for (const char *at = patterns; *at != '\0'; at += *at == ',') {
        const int length = (int) strcspn(at, ",");
        snprintf(pattern, sizeof(pattern), "%.*s", length, at);
        if (fnmatch(pattern, name, 0) == 0)
            return 1;
        at += length;
    }
    return 0;
}

/* Parts with a planted bug must be asked for by that word. */
static int part_named(int part)
{
    const char *name = parts[part].name;
    if (strncmp(name, "planted-", 8) == 0 && (only_part == NULL || strncmp(only_part, "planted-", 8) != 0))
        return 0;
    return only_part == NULL || matches(only_part, name);
}

static int part_selected(int part)
{
    return part_named(part) && (!part_on_gpu(&parts[part]) || no_gpu == NULL);
}

static int selected(int part, int rank, int function, int way)
{
    return part_selected(part) && (only_rank < 0 || only_rank == rank) &&
           (only_function == NULL ? inject_is_cuda(function) == (part_on_gpu(&parts[part]))
                                  : matches(only_function, inject_function_name(function))) &&
           (only_way < 0 || only_way == way);
}

typedef void visit_function(struct point point, void *argument);

/* Calls the function with the first point of each (part, rank, function, way, warm) of the part that is selected. */
static void for_each_first(int part, visit_function *visit, void *argument)
{
    for (int warm = part_reuses(&parts[part]) && !only_first; warm >= 0; warm--)
        for (int rank = 0; rank < RANKS; rank++)
            for (int function = 0; function < INJECT_FUNCTION_COUNT; function++)
                for (int way = 0; inject_way(function, way) != 0; way++)
                    if (selected(part, rank, function, way))
                        visit((struct point){part, rank, function, way, 1, warm}, argument);
}

/* All points with the same part, rank, function, way and kind of process: the runs of several numbers at once, in order. */
static void try_from(struct point point, void *unused)
{
    long last = calls(&point);
    (void) unused;
    if (only_number > 0) {
        point.number = only_number;
        if (last > 0 && is_wanted(&point))
            run_alone(point);
        return;
    }
    for (; point.number <= last && point.number <= most && has_time(); point.number++) {
        begin_more_points();
        if (is_wanted(&point))
            begin_point(point);
    }
}

static void try_all(void)
{
    for (int part = 0; part < part_count; part++)
        for_each_first(part, try_from, NULL);
    finish_all();
}

/* Calls that a run without a failure makes, each once for each of its ways to fail; [0]: by new processes, [1]: by others. */
static void count_from(struct point point, void *points)
{
    for (long last = calls(&point); point.number <= last; point.number++)
        ((long *) points)[point.warm] += is_wanted(&point);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

enum { CHOICES = 20000 };

struct choice {
    struct point point;
    uint64_t order;
};

static int by_order(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

static struct choice choices[CHOICES];
static int choice_count;

/* Draws from the points that begin with this one: one for each place, by a fixed rule. */
static void choose_from(struct point point, void *unused)
{
    static uintptr_t seen[CHOICES][2];
    static uint64_t weights[CHOICES];
    const struct inject_record *record = &clean[point.warm][point.part][point.rank].inject;
    const uintptr_t key = (uintptr_t) (point.function * INJECT_WAYS + point.way);
    (void) unused;
    for (; point.number <= record->calls[point.function] && point.number <= INJECT_SITES; point.number++) {
        if (!is_wanted(&point))
            continue;
        uintptr_t site = record->sites[point.function][point.number - 1];
        uint64_t weight = mix(mix((uint64_t) (point.part * RANKS + point.rank)) + (uint64_t) point.number);
        int at = 0;
        while (at < choice_count && (seen[at][0] != site || seen[at][1] != key))
            at++;
        if (at == CHOICES || (at < choice_count && weights[at] <= weight))
            continue;
        seen[at][0] = site;
        seen[at][1] = key;
        weights[at] = weight;
        choices[at].point = point;
        choice_count += at == choice_count;
    }
}

/* One point for each place in the source, function and way: the rank and the part are drawn by a fixed rule from those that
 * come there. The points are tried in an order that is fixed too and spreads over all functions, until there are enough. */
static void try_sample(void)
{
    for (int part = 0; part < part_count; part++)
        for_each_first(part, choose_from, NULL);
    /* The k-th place of each function comes before the k+1-th of any. */
    static int of_function[INJECT_FUNCTION_COUNT * INJECT_WAYS];
    for (int i = 0; i < choice_count; i++) {
        int *turn = &of_function[choices[i].point.function * INJECT_WAYS + choices[i].point.way];
        choices[i].order = (uint64_t) (*turn)++ << 32 | (mix((uint64_t) i) >> 32);
    }
    qsort(choices, (size_t) choice_count, sizeof(*choices), by_order);
    int chosen = 0;
    for (; chosen < choice_count && chosen < sample && has_time(); chosen++)
        begin_point(choices[chosen].point);
    finish_all();
    printf("sample: %d of %d places and ways\n", chosen, choice_count);
}

/* ---- the command line ---- */

static void look_for_gpu(void)
{
    int count = 0;
    for (int part = 0; part < part_count; part++)
        count += part_on_gpu(&parts[part]) && part_named(part);
    no_gpu = count > 0 ? buffers_no_gpu() : NULL;
    if (no_gpu != NULL)
        printf("skipped: %d parts on a GPU: %s\n", count, no_gpu);
}

static void list_parts(void)
{
    for (int part = 0; part < part_count; part++)
        if (part_named(part))
            printf("%s\n", parts[part].name);
    look_for_gpu();
}

static void parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        i++;
        if (strcmp(name, "--part") == 0)
            only_part = value;
        else if (strcmp(name, "--rank") == 0)
            only_rank = atoi(value);
        else if (strcmp(name, "--function") == 0)
            only_function = value;
        else if (strcmp(name, "--way") == 0)
            only_way = atoi(value);
        else if (strcmp(name, "--number") == 0)
            only_number = atol(value);
        else if (strcmp(name, "--most") == 0)
            most = atol(value);
        else if (strcmp(name, "--sample") == 0)
            sample = atoi(value);
        else if (strcmp(name, "--jobs") == 0)
            jobs = atoi(value) < 1 ? 1 : atoi(value) > JOBS_MAX ? JOBS_MAX : atoi(value);
        else if (strcmp(name, "--seconds") == 0)
            budget = atof(value);
        else if (strcmp(name, "--verbose") == 0)
            options.verbose = atoi(value);
        else if (strcmp(name, "--stacks") == 0)
            options.stacks = atoi(value);
        else if (strcmp(name, "--limit") == 0)
            options.seconds_same = options.seconds_hosts = options.seconds_gpu = atof(value);
        else if (strcmp(name, "--reuse") == 0)
            options.reuse = atoi(value) != 0;
        else if (strcmp(name, "--first") == 0)
            only_first = atoi(value) != 0;
        else if (strcmp(name, "--list") == 0) {
            list_parts();
            exit(0);
        } else {
            fprintf(stderr,
                    "injection [--part NAMES] [--rank R] [--function NAMES] [--way W] [--number N]: only those points\n"
                    "  NAMES         patterns of the shell between commas: 'cudaMalloc,cuIpc*'\n"
                    "  --list        the parts\n"
                    "  --sample N    N points, spread over all places; without it all points\n"
                    "  --most N      at most the first N calls of a function\n"
                    "  --jobs N      runs at once\n"
                    "  --seconds S   begins no run after that time, which counts from the last run without a failure\n"
                    "  --verbose 1   prints every point; 2: and what the ranks saw\n"
                    "  --stacks 1    stacks of a hang, by gdb\n"
                    "  --limit S     seconds that a run may take\n"
                    "  --reuse 1     a process makes several runs, as on a GPU where it can; 0: each is made by new ones\n"
                    "  --first 1     where processes make several runs: only calls that their first run alone makes\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    look_for_gpu();
    fflush(stdout);
    const char *error = make_slots();
    if (error != NULL) {
        fprintf(stderr, "injection: %s\n", error);
        return 2;
    }
    /* Loaded once, and not in every rank. */
    dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    signal(SIGPIPE, SIG_IGN);
    catch_stops();
    int selected_parts = 0;
    for (int part = 0; part < part_count; part++)
        if (part_selected(part)) {
            run_clean(part);
            selected_parts++;
        }
    if (selected_parts == 0 && no_gpu == NULL) {
        fprintf(stderr, "injection: no part is called %s; --list prints their names\n", only_part);
        return 2;
    }
    if (judged_violations() > 0) {
        printf("injection: runs without a failure fail\n");
        return 2;
    }
    for (int part = 0; sample == 0 && only_number == 0 && part < part_count; part++) {
        long points[2] = {0};
        for_each_first(part, count_from, points);
        if (part_selected(part))
            printf("%s: about %ld points, %ld of them by new processes\n", parts[part].name, points[0] + points[1], points[0]);
    }
    fflush(stdout);
    started = now();
    if (sample > 0)
        try_sample();
    else
        try_all();
    end_processes();
    print_totals();
    return judged_violations() > 0 || (judged_points() == 0 && only_number == 0 && selected_parts > 0);
}
