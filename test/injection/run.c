/* One run: three forked processes, or one of three threads, their time limit, and what they leave. See test/injection/run.h. */
#include "test/injection/run.h"

#include "test/injection/buffers.h"

#include <dirent.h>
#include <execinfo.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
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

struct options options = {.seconds_same = 5, .seconds_hosts = 10, .seconds_gpu = 20, .reuse = -1};
struct slot slots[JOBS_MAX];
struct rank_record clean[2][PARTS_MAX][RANKS];

double now(void)
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

/* What the run of this process fails: a call of the one rank of its own, or of the rank'th thread. */
static void give_order(const struct point *point, int rank)
{
    char text[24];
    if (point->function < 0 || rank < 0) {
        unsetenv("RONDO_X_FAIL_CALL");
        return;
    }
    setenv("RONDO_X_FAIL_CALL", inject_function_name(point->function), 1);
    snprintf(text, sizeof(text), "%ld", point->number);
    setenv("RONDO_X_FAIL_NUMBER", text, 1);
    snprintf(text, sizeof(text), "%d", point->way);
    setenv("RONDO_X_FAIL_WITH", text, 1);
    snprintf(text, sizeof(text), "%d", rank);
    setenv("RONDO_X_FAIL_RANK", text, 1);
}

struct thread {
    pthread_t thread;
    struct slot *slot;
    int rank;
};

static void *be_thread(void *argument)
{
    const struct thread *me = argument;
    inject_be(me->rank);
    scenario_run(&parts[me->slot->part], me->slot->job, me->rank);
    return NULL;
}

/* All ranks, as threads of this process. */
static void run_threads(struct slot *slot)
{
    struct thread threads[RANKS];
    if (part_on_gpu(&parts[slot->part]))
        buffers_open_gpu();
    inject_pause(); /* this thread's calls are no rank's */
    for (int rank = 0; rank < RANKS; rank++) {
        threads[rank] = (struct thread){.slot = slot, .rank = rank};
        if (pthread_create(&threads[rank].thread, NULL, be_thread, &threads[rank]) != 0)
            _exit(3);
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(threads[rank].thread, NULL);
    inject_resume();
}

/* Threads end by themselves, some when all ranks have left: waits until there are no more than normal, or, where that is not
 * known, until their number stays. Returns the number. */
static int await_threads(int normal)
{
    int count = 0, before = -1, same = 0;
    for (int i = 0; i < 600; i++) {
        count = count_entries("/proc/self/task") - 3;
        same = count == before ? same + 1 : 0;
        before = count;
        if (count <= (normal < 0 ? 0 : normal) || (normal < 0 && same == 100))
            break;
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    return count;
}

/* One run of the process of a rank, or of all. What it leaves is noted as the first of its ranks'. */
static void make_run(struct slot *slot, int rank)
{
    const struct part *part = &parts[slot->part];
    const struct point *point = slot->ordered;
    struct rank_record *me = &slot->job->ranks[rank];
    const int threads = part_in_threads(part);
    give_order(point, threads ? point->rank : rank == point->rank ? 0 : -1);
    scenario_prepare(part, slot->job);
    inject_forget();
    int descriptors = count_entries("/proc/self/fd");
    if (threads)
        run_threads(slot);
    else
        scenario_run(part, slot->job, rank);
    me->threads = await_threads(slot->job->normal_threads[rank]);
    me->descriptors = count_entries("/proc/self/fd") - descriptors;
    me->live = inject_live(me->leaks, sizeof(me->leaks));
#if defined(__SANITIZE_ADDRESS__)
    me->leaks_by_sanitizer = __lsan_do_recoverable_leak_check();
#endif
    for (int r = rank; r < (threads ? RANKS : rank + 1); r++)
        __atomic_store_n(&slot->job->ranks[r].ended, 1, __ATOMIC_RELEASE);
}

/* The process of a rank, or of all. */
static void be_process(struct slot *slot, int rank)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the driver */
    dup2(slot->log, STDERR_FILENO);
    if (!SANITIZED)
        for (int i = 0; i < 4; i++)
            signal((const int[]){SIGSEGV, SIGBUS, SIGABRT, SIGFPE}[i], on_crash);
    make_run(slot, rank);
    while (part_reuses(&parts[slot->part])) {
        if (eventfd_write(slot->reports[rank], 1) != 0)
            break;
        struct pollfd order = {slot->orders[rank], POLLIN, 0};
        eventfd_t value;
        while (eventfd_read(slot->orders[rank], &value) != 0)
            poll(&order, 1, -1);
        make_run(slot, rank);
    }
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

double usual = 0.1;

/* How much longer than on an idle machine a run takes at present: runs that end by themselves take some 30 ms there, and on a
 * GPU a second or two. */
static double slowness(const struct part *part)
{
    double factor = usual / (part_on_gpu(part) ? 5 : 0.25);
    return (SANITIZED ? 3 : 1) * (factor < 1 ? 1 : factor > 4 ? 4 : factor);
}

int part_reuses(const struct part *part)
{
    return options.reuse < 0 ? part_on_gpu(part) : options.reuse;
}

const char *make_slots(void)
{
    for (struct slot *slot = slots; slot < slots + JOBS_MAX; slot++) {
        slot->job = mmap(NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        slot->ordered = mmap(NULL, sizeof(struct point), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        slot->log = memfd_create("log", MFD_CLOEXEC);
        if (slot->job == MAP_FAILED || slot->ordered == MAP_FAILED || slot->log < 0)
            return "no memory for the runs";
        for (int rank = 0; rank < RANKS; rank++) {
            slot->orders[rank] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            slot->reports[rank] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            if (slot->orders[rank] < 0 || slot->reports[rank] < 0)
                return "no descriptors for the runs";
        }
    }
    return NULL;
}

/* Ends the slot's processes, those that are still there. */
static void end_slot(struct slot *slot)
{
    eventfd_t value;
    for (int rank = 0; rank < RANKS; rank++) {
        if (slot->ranks[rank] > 0) {
            kill(slot->ranks[rank], SIGKILL);
            waitpid(slot->ranks[rank], NULL, 0);
            close(slot->pidfds[rank]);
            slot->ranks[rank] = 0;
        }
        (void) eventfd_read(slot->orders[rank], &value);
        (void) eventfd_read(slot->reports[rank], &value);
    }
}

void end_processes(void)
{
    for (struct slot *slot = slots; slot < slots + JOBS_MAX; slot++)
        end_slot(slot);
}

static void start_process(struct slot *slot, int rank)
{
    if (slot->ranks[rank] > 0) {
        if (eventfd_write(slot->orders[rank], 1) == 0)
            return;
    } else {
        if ((slot->ranks[rank] = fork()) == 0)
            be_process(slot, rank);
        slot->pidfds[rank] = slot->ranks[rank] > 0 ? (int) syscall(SYS_pidfd_open, slot->ranks[rank], 0) : -1;
        if (slot->pidfds[rank] >= 0)
            return;
    }
    perror("a run's process");
    exit(2);
}

/* Removes the run's file, and those that ranks have made of its name; also what a write has left beside them. */
static void remove_files(const char *file)
{
    static const char *const ends[] = {"", ".prom"};
    char path[120];
    unlink(file);
    for (int rank = 0; rank < RANKS; rank++)
        for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
            for (int beside = 0; beside < 2; beside++) {
                snprintf(path, sizeof(path), "%s%d%s%s", file, rank, ends[i], beside ? ".new" : "");
                unlink(path);
            }
}

/* Starts the slot's processes, or a run of those that are there, with what the point says. */
static void start_run(struct slot *slot, struct point point)
{
    static int serial;
    const struct part *part = &parts[point.part];
    struct job *job = slot->job;
    memset(job, 0, sizeof(*job));
    job->is_first = slot->ranks[0] == 0;
    snprintf(job->name, sizeof(job->name), "injection-%d-%d", (int) getpid(), ++serial);
    snprintf(job->root, sizeof(job->root), "127.0.0.1:%d", free_port());
    do
        snprintf(job->roots, sizeof(job->roots), "%s,127.0.0.1:%d", job->root, free_port());
    while (strcmp(job->root, job->roots + strlen(job->root) + 1) == 0); /* the port is free again */
    snprintf(job->file, sizeof(job->file), "/tmp/%.40s.json", job->name);
    job->connect_timeout = (slot->again ? 4 : 1) * (SANITIZED ? 3 : 1) * (part_on_gpu(part) ? 5 : 1);
    for (int rank = 0; rank < RANKS; rank++) {
        job->normal_threads[rank] = point.function < 0 ? -1 : clean[point.warm][point.part][rank].threads;
        job->ranks[rank].inject.wants_contexts = point.function < 0 && part_reuses(part);
    }
    *slot->ordered = point;
    if (ftruncate(slot->log, 0) == 0)
        lseek(slot->log, 0, SEEK_SET);
    slot->begun = now();
    const double seconds = part_on_gpu(part) ? options.seconds_gpu : part->hosts ? options.seconds_hosts : options.seconds_same;
    slot->limit = seconds * slowness(part) * (slot->again ? 2 : 1);
    for (int rank = 0; rank < RANKS; rank++)
        slot->ended[rank] = slot->statuses[rank] = 0;
    for (int rank = 0; rank < slot->processes; rank++)
        start_process(slot, rank);
}

int needs_new(const struct slot *slot, const struct point *point)
{
    return slot->ranks[0] == 0 || slot->part != point->part || !point->warm;
}

int is_new(const struct slot *slot)
{
    return slot->active && (slot->warming || !slot->point.warm);
}

void begin_run(struct slot *slot, struct point point, int again)
{
    const struct part *part = &parts[point.part];
    if (needs_new(slot, &point))
        end_slot(slot);
    slot->point = point;
    slot->part = point.part;
    slot->again = again;
    slot->late = slot->sound = 0;
    slot->processes = part_in_threads(part) ? 1 : RANKS;
    slot->warming = point.warm && slot->ranks[0] == 0;
    slot->active = 1;
    start_run(slot, slot->warming ? (struct point){.part = point.part, .function = -1} : point);
}

void end_run(struct slot *slot)
{
    /* Processes whose first run was to fail are not warm: it may have ended before it came to what a first run alone does. */
    if (!slot->sound || !part_reuses(&parts[slot->part]) || (!slot->point.warm && slot->point.function >= 0))
        end_slot(slot);
    remove_files(slot->job->file);
    slot->active = 0;
}

static void kill_run(struct slot *slot)
{
    slot->late = 1;
    for (int rank = 0; rank < slot->processes; rank++) {
        if (slot->ended[rank])
            continue;
        if (options.stacks && slot->again) {
            char command[200];
            snprintf(command, sizeof(command), "gdb -p %d -batch -ex 'thread apply all bt 14' 2>/dev/null | grep -v '^\\['",
                     (int) slot->ranks[rank]);
            printf("---- options.stacks of rank %d\n", rank);
            fflush(stdout);
            if (system(command) < 0)
                perror("gdb");
        }
        kill(slot->ranks[rank], SIGKILL);
    }
}

/* Whether the slot's run of the rank's process has ended: the process has, or has said so. */
static int has_ended(struct slot *slot, int rank)
{
    eventfd_t value;
    if (waitpid(slot->ranks[rank], &slot->statuses[rank], WNOHANG) == slot->ranks[rank]) {
        close(slot->pidfds[rank]);
        slot->ranks[rank] = 0;
        return 1;
    }
    return eventfd_read(slot->reports[rank], &value) == 0;
}

/* After a run that was to warm the slot's processes: starts the one that they are for. Returns whether it could. */
static int go_on(struct slot *slot)
{
    int sound = slot->warming && !slot->late;
    for (int rank = 0; rank < slot->processes; rank++)
        sound = sound && slot->ranks[rank] > 0;
    if (!sound)
        return 0;
    slot->warming = 0;
    remove_files(slot->job->file);
    start_run(slot, slot->point);
    return 1;
}

static volatile sig_atomic_t stopped;

static void note_stop(int number)
{
    stopped = number;
}

void catch_stops(void)
{
    const struct sigaction action = {.sa_handler = note_stop}; /* without SA_RESTART: waits end */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Tells what is under way, and ends. */
static void stop(void)
{
    for (const struct slot *slot = slots; slot < slots + JOBS_MAX; slot++)
        if (slot->active)
            print_under_way(slot);
    print_totals();
    fflush(stdout);
    end_processes();
    exit(128 + stopped);
}

struct slot *await(void)
{
    for (;;) {
        if (stopped)
            stop();
        struct pollfd all[2 * JOBS_MAX * RANKS];
        nfds_t count = 0;
        int active = 0;
        double wait = 1;
        for (struct slot *slot = slots; slot < slots + JOBS_MAX; slot++) {
            int running = 0;
            if (!slot->active)
                continue;
            for (int rank = 0; rank < slot->processes; rank++) {
                if (!slot->ended[rank])
                    slot->ended[rank] = has_ended(slot, rank);
                if (!slot->ended[rank]) {
                    all[count++] = (struct pollfd){slot->pidfds[rank], POLLIN, 0};
                    all[count++] = (struct pollfd){slot->reports[rank], POLLIN, 0};
                    running = 1;
                }
            }
            active = 1;
            if (!running) {
                if (go_on(slot)) {
                    wait = 0;
                    continue;
                }
                for (int rank = slot->processes; rank < RANKS; rank++)
                    slot->statuses[rank] = slot->statuses[0];
                return slot;
            }
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
