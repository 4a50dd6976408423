/*
 * The host device. A block is a thread; block 0 can also be run by any thread that waits for a result (docs/architecture.md).
 * A daemon that quits parks the threads.
 * A block is run by the thread that holds its claim. Invariant: while a daemon is alive, block 0 is claimed; or a thread that
 * has announced it (RONDO_ASSIST_NOW) is about to claim it; or the block's own thread has been called and will look at the
 * claim before it sleeps, perhaps after a backoff of bounded length. The other blocks have nothing to do with small
 * operations, and calling their threads takes longer than such an operation. So a daemon begins with block 0 alone, which may
 * also leave alone, and the thread that runs it gathers the others when there is something for them. From then on the
 * invariant holds for them as well, until all quit by consensus. It then has an exception: a waiter whose result was the last
 * one leaves block 0 unclaimed. Its thread is called by the next submitter that does not wait (attend), or by the other blocks
 * when they want to quit.
 * Why that is so: only the holder of block 0's claim gathers, or leaves alone. `gathered` names the launch whose blocks have
 * been called; another block enters only a daemon of that number, which cannot end without its vote. The other block's thread
 * reads `wake`, whether a daemon is alive, and `gathered`, in this order, and sleeps if `wake` has not changed; the gathering
 * thread stores `gathered`, then increments `wake` (all sequentially consistent). So the thread sees one or the other. What
 * the blocks of a gathered daemon have left unfinished they find again, because a daemon is gathered at once as long as fewer
 * operations are finished than the other blocks have been notified of. A submitter could not say that nothing is left: a
 * daemon may have taken its operation and left since. A block counts an operation as finished before it votes to leave, so
 * the holder of block 0 in a later daemon sees all that was finished; if it saw less, it would gather for nothing. The model is
 * test/models/gather.pml.
 */
#include "device/daemon/daemon.h"
#include "device/device.h"

#include "lib/base/thread.h"
#include "lib/base/error.h"
#include "lib/base/futex.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREAD_STACK_BYTES (1024 * 1024) /* half of it is enough without the thread sanitizer, whose own part is in it */
#define LONG_NS            3600000000000u
#define BACKOFF_FIRST_NS   60000u
#define BACKOFF_LAST_NS    480000u

struct runner {
    struct rondo_host *host;
    uint32_t claimed;               /* 1: a thread runs the block */
    uint32_t wanted;                /* number of threads that want to take the block over from its own thread */
    uint32_t wake;                  /* incremented to call the block's own thread */
    uint32_t sleepers;              /* 1 while that thread sleeps */
    uint32_t passed_on, backed_off; /* likewise of its backoff, which a start does not end (runner_main) */
    uint64_t idle_turns;
    int advanced; /* a task has, since the block entered, and the device says so */
    struct rondo_workers workers;
    int started;
    pthread_t thread;
};

struct rondo_host {
    struct rondo_device base;
    void (*notify)(void *argument);
    void *notify_argument;
    void (*wake)(void *argument);
    void *wake_argument;
    uint32_t stopping;
    uint32_t quit_event, quit_sleepers;
    uint64_t gathered; /* the last launch whose blocks have been called */
    uint32_t blocks;
    struct runner *runners;
};

static struct rondo_host *host_of(struct rondo_device *device)
{
    return (struct rondo_host *) device;
}

static int try_claim(struct runner *runner)
{
    uint32_t free_claim = 0;
    return __atomic_load_n(&runner->claimed, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&runner->claimed, &free_claim, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void drop_claim(struct runner *runner)
{
    __atomic_store_n(&runner->claimed, 0, __ATOMIC_SEQ_CST);
}

static void call_thread(struct runner *runner)
{
    rondo_event_signal(&runner->wake, &runner->sleepers);
}

/* Calls the block's thread, out of a backoff, too: no other thread runs the block. */
static void pass_on(struct runner *runner)
{
    call_thread(runner);
    rondo_event_signal(&runner->passed_on, &runner->backed_off);
}

static void announce_quit(struct rondo_host *host)
{
    rondo_event_signal(&host->quit_event, &host->quit_sleepers);
    host->notify(host->notify_argument);
}

static int is_alive(struct rondo_host *host)
{
    return rondo_device_alive(&host->base);
}

static uint64_t launch_of(const struct rondo_host *host)
{
    return rondo_load_acquire(&host->base.daemon->queues->launches);
}

static int is_gathered(const struct rondo_host *host)
{
    return __atomic_load_n(&host->gathered, __ATOMIC_SEQ_CST) == launch_of(host);
}

/* Calls the threads of all other blocks. By the holder of block 0's claim. */
static void gather(void *argument)
{
    struct rondo_host *host = argument;
    if (is_gathered(host))
        return;
    __atomic_store_n(&host->gathered, launch_of(host), __ATOMIC_SEQ_CST);
    for (uint32_t b = 1; b < host->blocks; b++)
        call_thread(&host->runners[b]);
}

/* Whether the other blocks take part in the daemon, or have to, because an earlier one has left them something
 * unfinished. */
static int needs_others(const struct rondo_host *host)
{
    const struct rondo_daemon_exchange *exchange = host->base.daemon->exchange;
    return host->blocks > 1 &&
           (is_gathered(host) || rondo_load_relaxed(&exchange->finished) != rondo_load_relaxed(&exchange->announced));
}

/* Tries to leave without the other blocks. Returns 1 if the daemon is out. By the holder of block 0's claim. */
static int leave_alone(struct rondo_host *host, int must_leave)
{
    struct rondo_daemon *daemon = host->base.daemon;
    if (needs_others(host) || rondo_daemon_retire(daemon, &daemon->blocks[0], must_leave) != RONDO_DAEMON_QUITS)
        return 0;
    announce_quit(host);
    return 1;
}

/* One round of a claimed block. Returns 1 if the daemon is out. */
static int run_round(struct rondo_host *host, uint32_t index, int return_early)
{
    struct rondo_daemon *daemon = host->base.daemon;
    struct rondo_block *block = &daemon->blocks[index];
    struct runner *runner = &host->runners[index];
    if (!block->inside) {
        if (!is_alive(host))
            return 1;
        rondo_daemon_enter(daemon, block);
        runner->advanced = 0;
    }
    if (index == 0 && needs_others(host))
        gather(host);
    uint32_t completions = block->completions;
    int quits = rondo_daemon_round(daemon, block, &runner->workers, return_early) == RONDO_DAEMON_QUITS;
    if (block->progressed && !quits && !runner->advanced) {
        /* The queue reads it once it has acquired that this daemon has left, which this block's part in leaving precedes. */
        runner->advanced = 1;
        rondo_store_relaxed(&host->base.advanced, launch_of(host));
    }
    if (block->progressed && host->wake != NULL)
        host->wake(host->wake_argument);
    if (quits) {
        if (index == 0)
            announce_quit(host);
        return 1;
    }
    if (block->completions != completions && !return_early)
        host->notify(host->notify_argument);
    if (index > 0 && block->voted && !__atomic_load_n(&host->runners[0].claimed, __ATOMIC_RELAXED))
        pass_on(&host->runners[0]); /* block 0 has to vote as well */
    if (index == 0 && host->blocks > 1 && block->voted && leave_alone(host, rondo_overstays(daemon, block, rondo_clock_ns())))
        return 1;
    if (block->progressed || block->informed)
        runner->idle_turns = 0;
    else
        rondo_relax(runner->idle_turns++, daemon->policy.yield_mask < 63 ? daemon->policy.yield_mask : 63);
    return 0;
}

/* Runs the block while it may. Returns 0 if there was nothing to run, or another thread runs it. */
static int run_own_block(struct runner *runner)
{
    struct rondo_host *host = runner->host;
    uint32_t index = (uint32_t) (runner - host->runners);
    int ran = 0;
    while (!__atomic_load_n(&host->stopping, __ATOMIC_RELAXED) && is_alive(host) && (index == 0 || is_gathered(host)) &&
           try_claim(runner)) {
        int out = 0;
        ran = 1;
        while (!out && !__atomic_load_n(&runner->wanted, __ATOMIC_SEQ_CST) &&
               !__atomic_load_n(&host->stopping, __ATOMIC_RELAXED))
            out = run_round(host, index, 0);
        drop_claim(runner);
        /* A thread that wants the block takes it now, and calls this one when it leaves. If it has given up meanwhile, this
         * thread goes on: the other lowers wanted and then looks at the claim, this one drops the claim and then looks at
         * wanted; one of the two sees the other. */
        if (!out && __atomic_load_n(&runner->wanted, __ATOMIC_SEQ_CST))
            break;
    }
    return ran;
}

/* The loop of a block's own thread. A thread that starts an operation usually comes to wait for it soon, and runs block 0
 * meanwhile. If the start made the block's own thread run it at once, each operation would cost two changes of threads, on a
 * core that the starter or another rank is using. So block 0's thread backs off when it is called, and looks again by
 * itself; until then starts call no thread. If another thread has run the block all along, the next backoff is longer; only
 * what is started and not waited for has to wait for a backoff's end. There is no backoff when a block is handed over, for
 * then no other thread is going to run it. (The other blocks' threads are called when they are needed.) */
static void *runner_main(void *argument)
{
    struct runner *runner = argument;
    struct rondo_host *host = runner->host;
    const int backs_off = runner == host->runners;
    uint32_t answered = 0, handed_before = 0;
    uint64_t backoff = BACKOFF_FIRST_NS;
    while (!__atomic_load_n(&host->stopping, __ATOMIC_ACQUIRE)) {
        uint32_t seen = __atomic_load_n(&runner->wake, __ATOMIC_SEQ_CST);
        uint32_t handed = __atomic_load_n(&runner->passed_on, __ATOMIC_SEQ_CST);
        if (backs_off && seen != answered && handed == handed_before)
            rondo_event_sleep(&runner->passed_on, handed, &runner->backed_off, backoff);
        if (run_own_block(runner))
            backoff = BACKOFF_FIRST_NS;
        else if (backoff < BACKOFF_LAST_NS)
            backoff *= 2;
        answered = seen;
        handed_before = handed;
        if (__atomic_load_n(&host->stopping, __ATOMIC_ACQUIRE))
            break;
        if (__atomic_load_n(&runner->wake, __ATOMIC_SEQ_CST) == seen)
            backoff = BACKOFF_FIRST_NS; /* what comes next may be of another kind */
        rondo_event_sleep(&runner->wake, seen, &runner->sleepers, LONG_NS);
    }
    return NULL;
}

/* ---- the table's functions ---- */

static void *allocate(struct rondo_device *device, size_t bytes)
{
    (void) device;
    if (bytes == 0)
        bytes = 1;
    if (bytes >= 65536) { /* touched lazily */
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? NULL : memory;
    }
    void *memory = aligned_alloc(RONDO_CACHE_LINE, (bytes + RONDO_CACHE_LINE - 1) & ~(size_t) (RONDO_CACHE_LINE - 1));
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}

static void release(struct rondo_device *device, void *memory, size_t bytes)
{
    (void) device;
    if (memory == NULL)
        return;
    if (bytes >= 65536)
        munmap(memory, bytes);
    else
        free(memory);
}

/* Words that other threads write are read and written as words. */
static rondo_result_t copy(struct rondo_device *device, void *to, const void *from, size_t bytes)
{
    (void) device;
    uint64_t *out = to;
    const uint64_t *in = from;
    if (((uintptr_t) to | (uintptr_t) from | bytes) % 8 != 0) {
        memcpy(to, from, bytes);
        return RONDO_SUCCESS;
    }
    for (size_t i = 0; i < bytes / 8; i++)
        rondo_store_relaxed(out + i, rondo_load_relaxed(in + i));
    return RONDO_SUCCESS;
}

/* Calls the block's thread, which backs off first if a thread may assist. */
static void call_for(struct runner *runner, enum rondo_assist helper)
{
    if (helper == RONDO_ASSIST_MAYBE)
        call_thread(runner);
    else if (helper == RONDO_ASSIST_NEVER)
        pass_on(runner);
}

static void start(struct rondo_device *device, enum rondo_assist helper)
{
    call_for(&host_of(device)->runners[0], helper);
}

/* The counterpart of assist_end: the submission, a fence (lib/submission/queue.c: claim_start), then the look at the claim. */
static void attend(struct rondo_device *device, enum rondo_assist helper)
{
    struct runner *runner = &host_of(device)->runners[0];
    if (!__atomic_load_n(&runner->claimed, __ATOMIC_RELAXED))
        call_for(runner, helper);
}

static int assist_begin(struct rondo_device *device)
{
    struct runner *runner = &host_of(device)->runners[0];
    if (try_claim(runner))
        return 1;
    /* The block's own thread lets go at the end of a round; another assisting thread does not, so there is no second try. */
    __atomic_fetch_add(&runner->wanted, 1, __ATOMIC_SEQ_CST);
    int claimed = 0;
    for (int i = 0; i < 50 && !claimed; i++) {
        rondo_relax((uint64_t) i, 7);
        claimed = try_claim(runner);
    }
    __atomic_fetch_sub(&runner->wanted, 1, __ATOMIC_SEQ_CST);
    if (!claimed && is_alive(host_of(device)) && !__atomic_load_n(&runner->claimed, __ATOMIC_SEQ_CST))
        pass_on(runner);
    return claimed;
}

static int assist_step(struct rondo_device *device)
{
    return run_round(host_of(device), 0, 1);
}

#define STEP_LOOKS 64 /* before the engine, which knows how to wait, takes over */

static int run_steps(struct rondo_device *device, uint32_t lane, uint32_t slot, const struct rondo_operation *operation,
                     const struct rondo_short_steps *steps, int waits, uint32_t *instruction)
{
    const struct rondo_daemon *daemon = device->daemon;
    return rondo_run_steps(daemon, &daemon->blocks[0], lane, slot, operation, steps, waits ? STEP_LOOKS : 1, instruction);
}

static int run_inline(struct rondo_device *device, uint32_t lane, uint32_t slot, const struct rondo_operation *fresh,
                      uint32_t instruction, int waits)
{
    struct rondo_host *host = host_of(device);
    const struct rondo_daemon *daemon = device->daemon;
    return rondo_run_inline(daemon, &daemon->blocks[0], &host->runners[0].workers, lane, slot, fresh, instruction,
                            waits ? daemon->policy.budgets.alone : 0);
}

static void assist_end(struct rondo_device *device, int idle, enum rondo_assist helper)
{
    struct rondo_host *host = host_of(device);
    struct rondo_block *block = &host->base.daemon->blocks[0];
    int out = !block->inside;
    if (!out && idle)
        out = leave_alone(host, 0);
    drop_claim(&host->runners[0]);
    /* A start that counted on this thread's help, or whose call the block's thread missed while this one held the claim, is
     * passed on. */
    int needed = !out || is_alive(host);
    if (needed && !out && idle &&
        is_gathered(host)) { /* only by a submission, which is visible now or finds the claim dropped */
        rondo_fence(&host->base.daemon->queues->fence);
        needed = rondo_submission_waits(host->base.daemon);
    }
    if (needed)
        call_for(&host->runners[0], helper);
}

/* Dropping the claim is a release alone, and so does not wait for the stores before it, as that of assist_end must. There it
 * comes before the look for work that has missed this thread. Here such work is seen in any case: a thread that has submitted
 * it held the lock before this one, which then finds a daemon; one that submits later finds the claim dropped, because the lock
 * was dropped after it. */
static int assist_end_locked(struct rondo_device *device)
{
    struct rondo_host *host = host_of(device);
    if (host->base.daemon->blocks[0].inside || is_alive(host))
        return 0;
    __atomic_store_n(&host->runners[0].claimed, 0, __ATOMIC_RELEASE);
    return 1;
}

static rondo_result_t synchronize(struct rondo_device *device)
{
    struct rondo_host *host = host_of(device);
    uint32_t first = __atomic_load_n(&host->quit_event, __ATOMIC_SEQ_CST);
    while (is_alive(host)) {
        uint32_t seen = __atomic_load_n(&host->quit_event, __ATOMIC_SEQ_CST);
        if (seen != first)
            break;
        rondo_event_sleep(&host->quit_event, seen, &host->quit_sleepers, 100000000);
    }
    return RONDO_SUCCESS;
}

static void halt(struct rondo_device *device)
{
    struct rondo_host *host = host_of(device);
    __atomic_store_n(&host->stopping, 1, __ATOMIC_SEQ_CST);
    if (host->base.daemon != NULL) {
        struct rondo_queues *queues = host->base.daemon->queues;
        rondo_store_relaxed32(&queues->stop, 1);
        __atomic_fetch_add(&queues->interrupts, 1, __ATOMIC_SEQ_CST);
    }
    for (uint32_t b = 0; b < host->blocks; b++) {
        struct runner *runner = &host->runners[b];
        if (!runner->started)
            continue;
        pass_on(runner);
        pthread_join(runner->thread, NULL);
        runner->started = 0;
        if (try_claim(runner)) { /* it need not have left the daemon */
            rondo_trace_tell(&host->base.daemon->blocks[b]);
            drop_claim(runner);
        }
    }
}

static void destroy(struct rondo_device *device)
{
    struct rondo_host *host = host_of(device);
    rondo_daemon_destroy(device);
    free(host->runners);
    free(host);
}

static rondo_result_t create(struct rondo_device **device, const struct rondo_device_options *options)
{
    struct rondo_host *host = calloc(1, sizeof(*host));
    if (host != NULL)
        host->runners = calloc(options->blocks, sizeof(*host->runners));
    if (host == NULL || host->runners == NULL) {
        free(host);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the host device");
    }
    host->base.kind = &rondo_host_device;
    host->base.ticks_per_us = 1000;
    host->blocks = options->blocks;
    host->notify = options->notify;
    host->notify_argument = options->notify_argument;
    host->wake = options->wake;
    host->wake_argument = options->wake_argument;
    rondo_result_t result = rondo_daemon_create(&host->base, options);

    for (uint32_t b = 0; result == RONDO_SUCCESS && b < options->blocks; b++) {
        struct runner *runner = &host->runners[b];
        runner->host = host;
        runner->workers.single_copy_peers = options->single_copy_peers;
        runner->workers.gather = gather;
        runner->workers.gather_argument = host;
        result = rondo_thread_start(&runner->thread, "rondo block", THREAD_STACK_BYTES, runner_main, runner);
        runner->started = result == RONDO_SUCCESS;
    }
    if (result != RONDO_SUCCESS) {
        halt(&host->base);
        destroy(&host->base);
        return result;
    }
    *device = &host->base;
    return RONDO_SUCCESS;
}

const struct rondo_device_kind rondo_host_device = {
    .name = "host",
    .create = create,
    .halt = halt,
    .destroy = destroy,
    .allocate = allocate,
    .release = release,
    .upload = copy,
    .download = copy,
    .allocate_host = allocate,
    .release_host = release,
    .start = start,
    .attend = attend,
    .assist_begin = assist_begin,
    .assist_step = assist_step,
    .assist_end = assist_end,
    .assist_end_locked = assist_end_locked,
    .run_steps = run_steps,
    .run_inline = run_inline,
    .synchronize = synchronize,
};
