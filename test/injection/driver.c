/*
 * Runs the parts of scenario.c with one failure each and judges what the ranks saw. A run is three forked processes; everything
 * is loaded before the fork, so a run takes some tens of milliseconds. Up to --jobs runs are under way at once.
 *
 * A point is (part, rank, function, way, n). Without --sample all points are tried: n counts up until a run makes no n-th call.
 * A run is right if every rank ends in time, without a crash, and finalizes; if a rank that fails is followed by all others;
 * if what a successful call gave is right; and if nothing is left: no allocation, descriptor or thread more than in a run
 * without a failure.
 */
#include "test/injection/scenario.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <dirent.h>
#include <link.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
int __lsan_do_recoverable_leak_check(void);
enum { SANITIZED = 1 };
#elif defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

enum { JOBS_MAX = 16, SITE_TEXT = 160, LOG_TEXT = 6000 };

struct point {
    int part, rank, function, way; /* function -1: none fails */
    long number;
};

struct slot {
    struct job *job; /* shared with the ranks */
    struct point point;
    int active, again; /* again: the run repeats one that took too long */
    pid_t ranks[RANKS];
    int pidfds[RANKS], statuses[RANKS], ended[RANKS];
    int log; /* the ranks' standard error */
    double begun, limit;
    int late;
};

/* Options. */
static int only_rank = -1, only_way = -1, jobs = 2, sample, verbose, stacks;
static long only_number, most = 100000;
static const char *only_part, *only_function;
static double seconds_same = 5, seconds_hosts = 10, budget;

static struct slot slots[JOBS_MAX];
static struct rank_record clean[64][RANKS]; /* of a run of each part without a failure */
static long tried, fired, absorbed, gave_errors, repeated, violations;
static long tried_of[INJECT_FUNCTION_COUNT], absorbed_of[INJECT_FUNCTION_COUNT], errors_of[INJECT_FUNCTION_COUNT],
    violations_of[INJECT_FUNCTION_COUNT];
static double started;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double) at.tv_sec + 1e-9 * (double) at.tv_nsec;
}

/* ---- one rank's process ---- */

static void on_crash(int number)
{
    void *frames[40];
    int count = backtrace(frames, 40);
    dprintf(STDERR_FILENO, "signal %d\n", number);
    backtrace_symbols_fd(frames, count, STDERR_FILENO);
    signal(number, SIG_DFL);
    raise(number);
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    while (folder != NULL && readdir(folder) != NULL)
        count++;
    if (folder != NULL)
        closedir(folder);
    return count;
}

static void be_rank(struct slot *slot, int rank)
{
    const struct part *part = &parts[slot->point.part];
    struct rank_record *me = &slot->job->ranks[rank];
    char text[24];
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the driver */
    dup2(slot->log, STDERR_FILENO);
    if (!SANITIZED)
        for (int i = 0; i < 4; i++)
            signal((const int[]){SIGSEGV, SIGBUS, SIGABRT, SIGFPE}[i], on_crash);
    if (slot->point.function >= 0 && rank == slot->point.rank) {
        setenv("RONDO_X_FAIL_CALL", inject_function_name(slot->point.function), 1);
        snprintf(text, sizeof(text), "%ld", slot->point.number);
        setenv("RONDO_X_FAIL_NUMBER", text, 1);
        snprintf(text, sizeof(text), "%d", slot->point.way);
        setenv("RONDO_X_FAIL_WITH", text, 1);
    }
    int descriptors = count_entries("/proc/self/fd");
    scenario_run(part, slot->job, rank);
    /* The thread behind rondo_get_unique_id ends by itself, once all ranks have left. */
    const struct rank_record *normal = &clean[slot->point.part][rank];
    for (int i = 0; i < 200 && (me->threads = count_entries("/proc/self/task") - 3) > normal->threads; i++)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    me->descriptors = count_entries("/proc/self/fd") - descriptors;
    me->live = inject_live(me->leaks, sizeof(me->leaks));
#if defined(__SANITIZE_ADDRESS__)
    me->leaks_by_sanitizer = __lsan_do_recoverable_leak_check();
#endif
    __atomic_store_n(&me->ended, 1, __ATOMIC_RELEASE);
    _exit(0);
}

/* ---- a run ---- */

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *) &address, bytes) == 0 &&
        getsockname(fd, (struct sockaddr *) &address, &bytes) == 0)
        port = ntohs(address.sin_port);
    close(fd);
    return port;
}

/* How much longer than on an idle machine a run takes at present: runs that end by themselves take some 30 ms there. */
static double usual = 0.1;

static double slowness(void)
{
    double factor = usual / 0.25;
    return (SANITIZED ? 3 : 1) * (factor < 1 ? 1 : factor > 4 ? 4 : factor);
}

static void begin_run(struct slot *slot, struct point point, int again)
{
    static int serial;
    const struct part *part = &parts[point.part];
    struct job *job = slot->job;
    memset(job, 0, sizeof(*job));
    snprintf(job->name, sizeof(job->name), "injection-%d-%d", (int) getpid(), ++serial);
    snprintf(job->root, sizeof(job->root), "127.0.0.1:%d", free_port());
    snprintf(job->trace, sizeof(job->trace), "/tmp/%.40s.json", job->name);
    job->connect_timeout = (again ? 4 : 1) * (SANITIZED ? 3 : 1);
    slot->point = point;
    slot->again = again;
    slot->late = 0;
    slot->log = memfd_create("log", MFD_CLOEXEC);
    slot->begun = now();
    slot->limit = (part->hosts ? seconds_hosts : seconds_same) * slowness() * (again ? 2 : 1);
    for (int rank = 0; rank < RANKS; rank++) {
        slot->ended[rank] = 0;
        if ((slot->ranks[rank] = fork()) == 0)
            be_rank(slot, rank);
        slot->pidfds[rank] = slot->ranks[rank] > 0 ? (int) syscall(SYS_pidfd_open, slot->ranks[rank], 0) : -1;
        if (slot->pidfds[rank] < 0) {
            perror("fork");
            exit(2);
        }
    }
    slot->active = 1;
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
        snprintf(text, bytes, "--part %s --rank %d --function %s --way %d --number %ld (%s)", parts[point->part].name,
                 point->rank, inject_function_name(point->function), point->way, point->number,
                 inject_way_name(inject_way(point->function, point->way)));
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

/* The first thing that is wrong with a run that has ended; NULL if it is right. *leaking: the rank that has left something. */
static const char *find_fault(const struct slot *slot, int *leaking)
{
    static char text[400];
    const struct job *job = slot->job;
    int failed = 0, all_failed = 1, same_step = 1, next_errors = 0, next_calls = 0;
    *leaking = -1;
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rank_record *r = &job->ranks[rank];
        if (WIFSIGNALED(slot->statuses[rank]) && !(slot->late && WTERMSIG(slot->statuses[rank]) == SIGKILL)) {
            snprintf(text, sizeof(text), "rank %d crashed: signal %d in %s", rank, WTERMSIG(slot->statuses[rank]), r->step);
            return text;
        }
        if (!slot->late && (!WIFEXITED(slot->statuses[rank]) || WEXITSTATUS(slot->statuses[rank]) != 0 || !r->ended)) {
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
        all_failed &= r->failed_step != 0 || !r->initialized;
        same_step &= r->failed_step == job->ranks[0].failed_step && strcmp(r->failed_call, job->ranks[0].failed_call) == 0;
        next_calls += r->next_code != NO_CODE;
        next_errors += r->next_code != NO_CODE && r->next_code != RONDO_SUCCESS;
    }
    if (slot->point.function < 0 && failed > 0)
        return "a call failed in a run without a failure";
    if (failed > 0 && !all_failed)
        return "disagreement: a call failed on some ranks, and a rank saw no error at all";
    if (failed > 0 && next_errors < next_calls && !(same_step && next_errors == 0))
        return "disagreement: the next call succeeded on a rank";
    int way = slot->point.function >= 0 ? inject_way(slot->point.function, slot->point.way) : 0;
    if (failed > 0 && job->ranks[slot->point.rank].inject.fired && (way == EINTR || way == INJECT_SHORT))
        return "a call that was interrupted, or moved a part, is not made again";
    for (int rank = 0; rank < RANKS; rank++) {
        const struct rank_record *r = &job->ranks[rank], *normal = &clean[slot->point.part][rank];
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

/* Notes the result of a run that has ended. Returns whether the run must be repeated, because time alone was short. */
static int judge(struct slot *slot)
{
    const struct point *point = &slot->point;
    const struct job *job = slot->job;
    char name[200], where[SITE_TEXT];
    int leaking, failed = 0;
    const char *fault = find_fault(slot, &leaking);
    for (int rank = 0; rank < RANKS; rank++)
        failed |= job->ranks[rank].failed_step != 0;
    if (fault == NULL && !failed)
        usual += ((now() - slot->begun) - usual) / 16;
    const struct inject_record *injected = &job->ranks[point->rank].inject;
    name_point(point, name, sizeof(name));
    int in_time = 1; /* whether no rank gave up waiting for the others to join */
    for (int rank = 0; rank < RANKS; rank++)
        in_time &= job->ranks[rank].code != RONDO_ERR_BOOTSTRAP && job->ranks[rank].code != RONDO_ERR_TIMEOUT;
    if ((slot->late || (fault != NULL && !in_time)) && !slot->again) {
        repeated++;
        return 1;
    }
    if (point->function >= 0) {
        if (injected->fired) {
            tried++;
            tried_of[point->function]++;
        }
        fired = injected->fired;
        if (injected->fired && fault == NULL) {
            absorbed += !failed;
            gave_errors += failed;
            absorbed_of[point->function] += !failed;
            errors_of[point->function] += failed;
        }
    }
    if (fault != NULL && point->function >= 0 && !injected->fired && slot->late == 0 && !slot->again) {
        repeated++; /* the machine was too busy to connect in time */
        return 1;
    }
    if (fault != NULL || verbose) {
        describe_site(injected->fired_site, where, sizeof(where));
        printf("%s %s at %s: %s\n",
               fault != NULL ? "VIOLATION"
               : failed      ? "error"
                             : "absorbed",
               name, where, fault != NULL ? fault : "");
    }
    if (fault != NULL) {
        violations++;
        if (point->function >= 0)
            violations_of[point->function]++;
        for (int i = 2; i < injected->fired_depth; i++) {
            describe_site((uintptr_t) injected->fired_stack[i], where, sizeof(where));
            printf("    by %s\n", where);
        }
        print_ranks(slot);
        if (leaking >= 0)
            print_leaks(&job->ranks[leaking]);
        print_log(slot);
    } else if (verbose > 1) {
        print_ranks(slot);
    }
    fflush(stdout);
    return 0;
}

static void end_run(struct slot *slot)
{
    close(slot->log);
    for (int rank = 0; rank < RANKS; rank++)
        close(slot->pidfds[rank]);
    unlink(slot->job->trace);
    slot->active = 0;
}

static void kill_run(struct slot *slot)
{
    slot->late = 1;
    for (int rank = 0; rank < RANKS; rank++) {
        if (slot->ended[rank])
            continue;
        if (stacks && slot->again) {
            char command[200];
            snprintf(command, sizeof(command), "gdb -p %d -batch -ex 'thread apply all bt 14' 2>/dev/null | grep -v '^\\['",
                     (int) slot->ranks[rank]);
            printf("---- stacks of rank %d\n", rank);
            fflush(stdout);
            if (system(command) < 0)
                perror("gdb");
        }
        kill(slot->ranks[rank], SIGKILL);
    }
}

/* Waits until a run has ended, and returns it; NULL: none is under way. */
static struct slot *await(void)
{
    for (;;) {
        struct pollfd all[JOBS_MAX * RANKS];
        nfds_t count = 0;
        int active = 0;
        double wait = 1;
        for (struct slot *slot = slots; slot < slots + JOBS_MAX; slot++) {
            int running = 0;
            if (!slot->active)
                continue;
            for (int rank = 0; rank < RANKS; rank++) {
                if (!slot->ended[rank] && waitpid(slot->ranks[rank], &slot->statuses[rank], WNOHANG) == slot->ranks[rank])
                    slot->ended[rank] = 1;
                if (!slot->ended[rank]) {
                    all[count++] = (struct pollfd){slot->pidfds[rank], POLLIN, 0};
                    running = 1;
                }
            }
            if (!running)
                return slot;
            active = 1;
            double left = slot->begun + slot->limit - now();
            if (left <= 0 && !slot->late)
                kill_run(slot);
            else if (!slot->late && left < wait)
                wait = left;
        }
        if (!active)
            return NULL;
        poll(all, count, (int) (1000 * wait) + 1);
    }
}

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
    struct slot *slot = run_alone((struct point){.part = part, .function = -1});
    memcpy(clean[part], slot->job->ranks, sizeof(clean[part]));
}

/* All points with the same part, rank, function and way: the runs of several numbers at once, in order, until two in a row have
 * made no such call. */
struct sweep {
    struct point next;
    long last; /* calls of a run without a failure */
    int misses;
};

static int sweep_done(const struct sweep *sweep)
{
    return (sweep->misses > 0 && sweep->next.number > sweep->last) || sweep->next.number > most;
}

/* Runs that took too long, to be repeated one at a time when no other is under way. */
static struct point late_points[JOBS_MAX];
static int late_count;

static int same_sweep(const struct sweep *sweep, const struct point *point)
{
    return sweep != NULL && point->part == sweep->next.part && point->rank == sweep->next.rank &&
           point->function == sweep->next.function && point->way == sweep->next.way;
}

static void note_miss(struct sweep *sweep, const struct slot *slot)
{
    if (same_sweep(sweep, &slot->point) && !slot->job->ranks[slot->point.rank].inject.fired && slot->point.number > sweep->last)
        sweep->misses++;
}

/* Ends the run that ends first. One that must be repeated is, when the others have ended too. */
static void finish_one(struct sweep *sweep)
{
    struct slot *slot;
    while ((slot = await()) != NULL) {
        if (judge(slot))
            late_points[late_count++] = slot->point;
        else
            note_miss(sweep, slot);
        end_run(slot);
        if (late_count == 0)
            return;
    }
    while (late_count > 0) {
        slot = &slots[0];
        begin_run(slot, late_points[--late_count], 1);
        await();
        judge(slot);
        note_miss(sweep, slot);
        end_run(slot);
    }
}

static void run_sweep(struct sweep *sweep)
{
    while (!sweep_done(sweep) && (budget <= 0 || now() - started < budget)) {
        struct slot *slot = idle_slot();
        if (slot == NULL) {
            finish_one(sweep);
            continue;
        }
        begin_run(slot, sweep->next, 0);
        sweep->next.number++;
    }
}

static int part_selected(int part)
{
    return only_part == NULL ? strncmp(parts[part].name, "planted-", 8) != 0 : strcmp(only_part, parts[part].name) == 0;
}

static int selected(int part, int rank, int function, int way)
{
    return part_selected(part) && (only_rank < 0 || only_rank == rank) &&
           (only_function == NULL || strcmp(only_function, inject_function_name(function)) == 0) &&
           (only_way < 0 || only_way == way);
}

static void try_all(void)
{
    for (int part = 0; part < part_count; part++)
        for (int rank = 0; rank < RANKS; rank++)
            for (int function = 0; function < INJECT_FUNCTION_COUNT; function++)
                for (int way = 0; inject_way(function, way) != 0; way++) {
                    long last = clean[part][rank].inject.calls[function];
                    if (!selected(part, rank, function, way) || last == 0)
                        continue;
                    struct sweep sweep = {{part, rank, function, way, 1}, last, 0};
                    if (only_number > 0) {
                        sweep.next.number = only_number;
                        run_alone(sweep.next);
                        continue;
                    }
                    run_sweep(&sweep);
                }
    while (await() != NULL)
        finish_one(NULL);
}

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

struct choice {
    struct point point;
    uint64_t order;
};

static int by_order(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* One point for each place in the source, function and way: the rank and the part are drawn by a fixed rule from those that
 * come there. The points are tried in an order that is fixed too and spreads over all functions, until there are enough. */
static void try_sample(void)
{
    enum { MOST = 20000 };
    static struct choice choices[MOST];
    static uintptr_t seen[MOST][2];
    static uint64_t weights[MOST];
    int count = 0;
    for (int part = 0; part < part_count; part++)
        for (int rank = 0; rank < RANKS; rank++)
            for (int function = 0; function < INJECT_FUNCTION_COUNT; function++) {
                const struct inject_record *record = &clean[part][rank].inject;
                for (long n = 0; n < record->calls[function] && n < INJECT_SITES; n++)
                    for (int way = 0; inject_way(function, way) != 0; way++) {
                        if (!selected(part, rank, function, way))
                            continue;
                        uintptr_t site = record->sites[function][n], key = (uintptr_t) (function * INJECT_WAYS + way);
                        uint64_t weight = mix(mix((uint64_t) (part * RANKS + rank)) + (uint64_t) n);
                        int at = 0;
                        while (at < count && (seen[at][0] != site || seen[at][1] != key))
                            at++;
                        if (at == MOST || (at < count && weights[at] <= weight))
                            continue;
                        seen[at][0] = site;
                        seen[at][1] = key;
                        weights[at] = weight;
                        choices[at].point = (struct point){part, rank, function, way, n + 1};
                        count += at == count;
                    }
            }
    /* The k-th place of each function comes before the k+1-th of any. */
    static int of_function[INJECT_FUNCTION_COUNT * INJECT_WAYS];
    for (int i = 0; i < count; i++) {
        int *turn = &of_function[choices[i].point.function * INJECT_WAYS + choices[i].point.way];
        choices[i].order = (uint64_t) (*turn)++ << 32 | (mix((uint64_t) i) >> 32);
    }
    qsort(choices, (size_t) count, sizeof(*choices), by_order);
    int chosen = 0;
    for (; chosen < count && chosen < sample && (budget <= 0 || now() - started < budget); chosen++) {
        struct slot *slot;
        while ((slot = idle_slot()) == NULL)
            finish_one(NULL);
        begin_run(slot, choices[chosen].point, 0);
    }
    while (await() != NULL)
        finish_one(NULL);
    printf("sample: %d of %d places and ways\n", chosen, count);
}

/* ---- the command line ---- */

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
            verbose = atoi(value);
        else if (strcmp(name, "--stacks") == 0)
            stacks = atoi(value);
        else if (strcmp(name, "--limit") == 0)
            seconds_same = seconds_hosts = atof(value);
        else {
            fprintf(stderr, "injection [--part NAME] [--rank R] [--function NAME] [--way W] [--number N]: only those points\n"
                            "  --sample N    N points, spread over all places; without it all points\n"
                            "  --most N      at most the first N calls of a function\n"
                            "  --jobs N      runs at once\n"
                            "  --seconds S   stops after that time\n"
                            "  --verbose 1   prints every point; 2: and what the ranks saw\n"
                            "  --stacks 1    stacks of a hang, by gdb\n"
                            "  --limit S     seconds that a run may take\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    started = now();
    for (int i = 0; i < JOBS_MAX; i++) {
        slots[i].job = mmap(NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (slots[i].job == MAP_FAILED) {
            perror("mmap");
            return 2;
        }
    }
    /* Loaded once, and not in every rank. */
    dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    signal(SIGPIPE, SIG_IGN);
    for (int part = 0; part < part_count; part++)
        if (part_selected(part))
            run_clean(part);
    if (violations > 0) {
        printf("injection: runs without a failure fail\n");
        return 2;
    }
    if (sample > 0)
        try_sample();
    else
        try_all();
    for (int f = 0; f < INJECT_FUNCTION_COUNT; f++)
        if (tried_of[f] > 0)
            printf("%-20s %6ld points: %6ld absorbed, %6ld errors, %4ld violations\n", inject_function_name(f), tried_of[f],
                   absorbed_of[f], errors_of[f], violations_of[f]);
    printf("injection: %ld points, %ld absorbed, %ld errors, %ld repeated, %ld violations, %.0f s\n", tried, absorbed,
           gave_errors, repeated, violations, now() - started);
    return violations > 0 || (tried == 0 && only_number == 0);
}
