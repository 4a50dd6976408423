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

struct options options = {.seconds_same = 5, .seconds_hosts = 10, .seconds_gpu = 20};
struct slot slots[JOBS_MAX];
struct rank_record clean[PARTS_MAX][RANKS];

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
    scenario_run(&parts[me->slot->point.part], me->slot->job, me->rank);
    return NULL;
}

/* All ranks, as threads of this process. */
static void run_threads(struct slot *slot)
{
    struct thread threads[RANKS];
    if (part_on_gpu(&parts[slot->point.part]))
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

/* The process of a rank, or of all. What it leaves is noted as the first of its ranks'. */
static void be_process(struct slot *slot, int rank)
{
    const struct part *part = &parts[slot->point.part];
    struct rank_record *me = &slot->job->ranks[rank];
    const int threads = part_in_threads(part);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no rank outlives the driver */
    dup2(slot->log, STDERR_FILENO);
    if (!SANITIZED)
        for (int i = 0; i < 4; i++)
            signal((const int[]){SIGSEGV, SIGBUS, SIGABRT, SIGFPE}[i], on_crash);
    if (slot->point.function >= 0 && (threads || rank == slot->point.rank))
        give_order(&slot->point, threads ? slot->point.rank : 0);
    scenario_prepare(part, slot->job);
    inject_forget();
    int descriptors = count_entries("/proc/self/fd");
    if (threads)
        run_threads(slot);
    else
        scenario_run(part, slot->job, rank);
    /* The thread behind rondo_get_unique_id ends by itself, once all ranks have left. */
    const struct rank_record *normal = &clean[slot->point.part][rank];
    for (int i = 0; i < 600 && (me->threads = count_entries("/proc/self/task") - 3) > normal->threads; i++)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    me->descriptors = count_entries("/proc/self/fd") - descriptors;
    me->live = inject_live(me->leaks, sizeof(me->leaks));
#if defined(__SANITIZE_ADDRESS__)
    me->leaks_by_sanitizer = __lsan_do_recoverable_leak_check();
#endif
    for (int r = rank; r < (threads ? RANKS : rank + 1); r++)
        __atomic_store_n(&slot->job->ranks[r].ended, 1, __ATOMIC_RELEASE);
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

void begin_run(struct slot *slot, struct point point, int again)
{
    static int serial;
    const struct part *part = &parts[point.part];
    struct job *job = slot->job;
    memset(job, 0, sizeof(*job));
    snprintf(job->name, sizeof(job->name), "injection-%d-%d", (int) getpid(), ++serial);
    snprintf(job->root, sizeof(job->root), "127.0.0.1:%d", free_port());
    snprintf(job->trace, sizeof(job->trace), "/tmp/%.40s.json", job->name);
    job->connect_timeout = (again ? 4 : 1) * (SANITIZED || part_on_gpu(part) ? 3 : 1);
    slot->point = point;
    slot->again = again;
    slot->late = 0;
    slot->log = memfd_create("log", MFD_CLOEXEC);
    slot->begun = now();
    const double seconds = part_on_gpu(part) ? options.seconds_gpu : part->hosts ? options.seconds_hosts : options.seconds_same;
    slot->limit = seconds * slowness(part) * (again ? 2 : 1);
    slot->processes = part_in_threads(part) ? 1 : RANKS;
    for (int rank = 0; rank < RANKS; rank++)
        slot->ended[rank] = slot->statuses[rank] = 0;
    for (int rank = 0; rank < slot->processes; rank++) {
        if ((slot->ranks[rank] = fork()) == 0)
            be_process(slot, rank);
        slot->pidfds[rank] = slot->ranks[rank] > 0 ? (int) syscall(SYS_pidfd_open, slot->ranks[rank], 0) : -1;
        if (slot->pidfds[rank] < 0) {
            perror("fork");
            exit(2);
        }
    }
    slot->active = 1;
}

void end_run(struct slot *slot)
{
    close(slot->log);
    for (int rank = 0; rank < slot->processes; rank++)
        close(slot->pidfds[rank]);
    unlink(slot->job->trace);
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

struct slot *await(void)
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
            for (int rank = 0; rank < slot->processes; rank++) {
                if (!slot->ended[rank] && waitpid(slot->ranks[rank], &slot->statuses[rank], WNOHANG) == slot->ranks[rank])
                    slot->ended[rank] = 1;
                if (!slot->ended[rank]) {
                    all[count++] = (struct pollfd){slot->pidfds[rank], POLLIN, 0};
                    running = 1;
                }
            }
            if (!running) {
                for (int rank = slot->processes; rank < RANKS; rank++)
                    slot->statuses[rank] = slot->statuses[0];
                return slot;
            }
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
