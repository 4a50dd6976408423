/* What is right and what is not. See test/injection/run.h. */
#include "test/injection/run.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SITE_TEXT = 160, LOG_TEXT = 6000 };

/* How many points were tried, and what came of them. The last three are violations. */
enum outcome { TRIED, ABSORBED, ERRORS, HANGS, CRASHES, OTHERS, OUTCOMES };
struct tally {
    long of[OUTCOMES];
};
static struct tally all, of_function[INJECT_FUNCTION_COUNT], of_part[PARTS_MAX];
static long repeated;   /* runs that were made again */
static long not_called; /* runs that made no n-th call, which are no points */

static void count(const struct point *point, enum outcome outcome)
{
    all.of[outcome]++;
    of_part[point->part].of[outcome]++;
    if (point->function >= 0)
        of_function[point->function].of[outcome]++;
}

/* What lies behind a return address of this program: function and line. */
static void describe_site(uintptr_t site, char *text, size_t bytes)
{
    Dl_info about;
    char command[400], path[300];
    snprintf(text, bytes, "%#lx", (unsigned long) site);
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (site == 0 || length < 0 || dladdr((void *) site, &about) == 0)
        return;
    path[length] = '\0';
    snprintf(command, sizeof(command), "addr2line -sfpe %s %#lx", path,
             (unsigned long) (site - 1 - (uintptr_t) about.dli_fbase));
    FILE *pipe = popen(command, "r");
    if (pipe != NULL && fgets(text, (int) bytes, pipe) != NULL)
        text[strcspn(text, "\n")] = '\0';
    if (pipe != NULL)
        pclose(pipe);
}

static void name_point(const struct point *point, char *text, size_t bytes)
{
    if (point->function < 0)
        snprintf(text, bytes, "--part %s without a failure", parts[point->part].name);
    else
        snprintf(text, bytes, "--part %s --rank %d --function %s --way %d --number %ld%s (%s)", parts[point->part].name,
                 point->rank, inject_function_name(point->function), point->way, point->number,
                 part_reuses(&parts[point->part]) && !point->warm ? " --reuse 0" : "",
                 inject_way_name(point->function, inject_way(point->function, point->way)));
}

static void print_log(const struct slot *slot)
{
    static char text[LOG_TEXT + 1];
    off_t end = lseek(slot->log, 0, SEEK_END);
    ssize_t got = pread(slot->log, text, LOG_TEXT, end > LOG_TEXT ? end - LOG_TEXT : 0);
    if (got > 0)
        printf("    log:\n%.*s\n", (int) got, text);
}

static void print_ranks(const struct slot *slot)
{
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rank_record *r = &slot->job->ranks[rank];
        printf("    rank %d: %s, in %s", rank, r->ended ? "ended" : "not ended", r->step);
        if (r->failed_step != 0)
            printf("; step %d, %s: %s (%s)", r->failed_step, r->failed_call, rondo_strerror((int) r->code), r->message);
        if (r->next_code != NO_CODE)
            printf("; next call: %s", rondo_strerror(r->next_code));
        if (r->finalize_code != NO_CODE)
            printf("; rondo_finalize: %s %s", rondo_strerror(r->finalize_code), r->finalize_message);
        printf("\n");
    }
}

static void print_leaks(const struct rank_record *record)
{
    char text[sizeof(record->leaks)], *rest = text, *entry;
    memcpy(text, record->leaks, sizeof(text));
    for (int i = 0; i < 8 && (entry = strsep(&rest, ",")) != NULL && *entry != '\0'; i++) {
        unsigned long site;
        size_t bytes;
        char where[SITE_TEXT];
        if (sscanf(entry, "%lx %zu", &site, &bytes) != 2)
            break;
        describe_site(site, where, sizeof(where));
        printf("    left: %zu bytes of %s\n", bytes, where);
    }
}

static int ended_by_signal(const struct slot *slot, int rank)
{
    return WIFSIGNALED(slot->statuses[rank]) && !(slot->late && WTERMSIG(slot->statuses[rank]) == SIGKILL);
}

static int ended_early(const struct slot *slot, int rank)
{
    return !slot->late &&
           (!WIFEXITED(slot->statuses[rank]) || WEXITSTATUS(slot->statuses[rank]) != 0 || !slot->job->ranks[rank].ended);
}

/* Whether a rank ended otherwise than by itself; a rank that the driver killed, because it hung, did not crash. */
static int crashed(const struct slot *slot)
{
    for (int rank = 0; rank < RANKS; rank++)
        if (ended_by_signal(slot, rank) || ended_early(slot, rank))
            return 1;
    return 0;
}

/* The first thing that is wrong with a run that has ended; NULL if it is right. *leaking: the rank that has left something. */
static const char *find_fault(const struct slot *slot, int *leaking)
{
    static char text[400];
    const struct job *job = slot->job;
    int failed = 0, all_failed = 1, last = 1 /* the others have had all their results by then */, same_step = 1,
        next_errors = 0, next_calls = 0;
    *leaking = -1;
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rank_record *r = &job->ranks[rank];
        if (ended_by_signal(slot, rank)) {
            snprintf(text, sizeof(text), "rank %d crashed: signal %d in %s", rank, WTERMSIG(slot->statuses[rank]), r->step);
            return text;
        }
        if (ended_early(slot, rank)) {
            snprintf(text, sizeof(text), "rank %d crashed: status %#x in %s", rank, slot->statuses[rank], r->step);
            return text;
        }
        if (r->wrong[0] != '\0') {
            snprintf(text, sizeof(text), "rank %d: %s", rank, r->wrong);
            return text;
        }
    }
    if (slot->late) {
        snprintf(text, sizeof(text), "hang: not ended after %.1f s", slot->limit);
        return text;
    }
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rank_record *r = &job->ranks[rank];
        failed += r->failed_step != 0;
        last &= r->failed_step == 0 || r->failed_step == clean[slot->point.warm][slot->point.part][rank].steps;
        all_failed &= r->failed_step != 0 || !r->initialized;
        same_step &= r->failed_step == job->ranks[0].failed_step && strcmp(r->failed_call, job->ranks[0].failed_call) == 0;
        next_calls += r->next_code != NO_CODE;
        next_errors += r->next_code != NO_CODE && r->next_code != RONDO_SUCCESS;
    }
    if (slot->point.function < 0 && failed > 0)
        return "a call failed in a run without a failure";
    if (failed > 0 && !all_failed && !last)
        return "disagreement: a call failed on some ranks, and a rank saw no error at all";
    if (failed > 0 && next_errors < next_calls && !(same_step && next_errors == 0))
        return "disagreement: the next call succeeded on a rank";
    int way = slot->point.function >= 0 ? inject_way(slot->point.function, slot->point.way) : 0;
    if (failed > 0 && job->ranks[slot->point.rank].inject.fired && !inject_is_cuda(slot->point.function) &&
        (way == EINTR || way == INJECT_SHORT))
        return "a call that was interrupted, or moved a part, is not made again";
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rank_record *r = &job->ranks[rank], *normal = &clean[slot->point.warm][slot->point.part][rank];
        if (r->initialized && r->finalize_code != RONDO_SUCCESS) {
            snprintf(text, sizeof(text), "rank %d: rondo_finalize returned %s", rank, rondo_strerror(r->finalize_code));
            return text;
        }
        if (slot->point.function < 0)
            continue;
        *leaking = rank;
        if (r->live > normal->live) {
            snprintf(text, sizeof(text), "rank %d left %ld allocations", rank, r->live - normal->live);
            return text;
        }
        if (r->leaks_by_sanitizer > normal->leaks_by_sanitizer) {
            snprintf(text, sizeof(text), "rank %d: the sanitizer finds a leak", rank);
            return text;
        }
        if (r->descriptors > normal->descriptors) {
            snprintf(text, sizeof(text), "rank %d left %d descriptors", rank, r->descriptors - normal->descriptors);
            return text;
        }
        if (r->threads > normal->threads) {
            snprintf(text, sizeof(text), "rank %d left %d threads", rank, r->threads - normal->threads);
            return text;
        }
        *leaking = -1;
    }
    return NULL;
}

/* Notes that the run is to be made again. */
static int repeat(const struct slot *slot, const char *name, const char *fault)
{
    repeated++;
    printf("repeated %s, %.2f s: %s\n", name, now() - slot->begun, fault != NULL ? fault : "it took long");
    fflush(stdout);
    return 1;
}

int judge(struct slot *slot)
{
    const struct point *point = &slot->point;
    const struct job *job = slot->job;
    char name[200], where[SITE_TEXT];
    int leaking, failed = 0;
    const char *fault = find_fault(slot, &leaking);
    slot->sound = fault == NULL && !slot->late;
    for (int rank = 0; rank < RANKS; rank++)
        failed |= job->ranks[rank].failed_step != 0;
    if (fault == NULL && !failed && !part_on_gpu(&parts[point->part]))
        usual += ((now() - slot->begun) - usual) / 16;
    const struct inject_record *injected = &job->ranks[point->rank].inject;
    name_point(point, name, sizeof(name));
    int in_time = 1; /* whether no rank gave up waiting for the others to join */
    for (int rank = 0; rank < RANKS; rank++)
        in_time &= job->ranks[rank].code != RONDO_ERR_BOOTSTRAP && job->ranks[rank].code != RONDO_ERR_TIMEOUT;
    if ((slot->late || (fault != NULL && !in_time)) && !slot->again)
        return repeat(slot, name, fault);
    if (point->function >= 0) {
        if (injected->fired)
            count(point, TRIED);
        else if (fault == NULL)
            not_called++;
        if (injected->fired && fault == NULL)
            count(point, failed ? ERRORS : ABSORBED);
    }
    if (fault != NULL && point->function >= 0 && !injected->fired && slot->late == 0 && !slot->again)
        return repeat(slot, name, fault); /* the machine was too busy to connect in time */
    if (fault != NULL || options.verbose) {
        describe_site(injected->fired_site, where, sizeof(where));
        printf("%s %s at %s, %.2f s: %s\n",
               fault != NULL ? "VIOLATION"
               : failed      ? "error"
                             : "absorbed",
               name, where, now() - slot->begun, fault != NULL ? fault : "");
    }
    if (fault != NULL) {
        count(point, crashed(slot) ? CRASHES : slot->late ? HANGS : OTHERS);
        for (int i = 2; i < injected->fired_depth; i++) {
            describe_site((uintptr_t) injected->fired_stack[i], where, sizeof(where));
            printf("    by %s\n", where);
        }
        print_ranks(slot);
        if (leaking >= 0)
            print_leaks(&job->ranks[leaking]);
        print_log(slot);
    } else if (options.verbose > 1) {
        print_ranks(slot);
    }
    fflush(stdout);
    return 0;
}

void print_under_way(const struct slot *slot)
{
    char name[200];
    name_point(&slot->point, name, sizeof(name));
    printf("under way %s, %.2f s%s\n", name, now() - slot->begun, slot->warming ? ", a first run of its processes" : "");
    if (options.verbose > 1)
        print_ranks(slot);
}

long judged_points(void)
{
    return all.of[TRIED];
}

long judged_violations(void)
{
    return all.of[HANGS] + all.of[CRASHES] + all.of[OTHERS];
}

static void print_tally(const char *name, const struct tally *tally)
{
    if (tally->of[TRIED] > 0)
        printf("%-20s %6ld points: %6ld absorbed, %6ld errors, %4ld hangs, %4ld crashes, %4ld other violations\n", name,
               tally->of[TRIED], tally->of[ABSORBED], tally->of[ERRORS], tally->of[HANGS], tally->of[CRASHES],
               tally->of[OTHERS]);
}

void print_totals(void)
{
    for (int f = 0; f < INJECT_FUNCTION_COUNT; f++)
        print_tally(inject_function_name(f), &of_function[f]);
    printf("\n");
    for (int part = 0; part < part_count; part++)
        print_tally(parts[part].name, &of_part[part]);
    printf("injection: %ld points, %ld absorbed, %ld errors, %ld repeated, %ld without the call, %ld hangs, %ld crashes, %ld "
           "violations\n",
           all.of[TRIED], all.of[ABSORBED], all.of[ERRORS], repeated, not_called, all.of[HANGS], all.of[CRASHES],
           judged_violations());
}
