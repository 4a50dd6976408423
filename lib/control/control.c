/*
 * A rank's end of the control plane: a thread that serves the connections between ranks (lib/control/links.h), and, until the
 * job has formed, the one to the root (lib/bootstrap/root.h). Relies on lib/bootstrap/rendezvous.h to find the root.
 */
#include "lib/control/control.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/control/links.h"
#include "lib/bootstrap/rendezvous.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STACK_BYTES = 512 << 10, /* the handler runs on it */
    FORM_MS = 10000,         /* at least, for the job to form once all ranks have joined */
    GRACE_MS = 3000,         /* beyond that, for the root, whose clock decides, to say why it has not */
    ENDED_MS = 100, /* for a rank that has lost the root to hear of what has ended it, and to be heard when it leaves */
};

/* How the job forms. */
enum forming { FORMING, LINKING, LINKED, FORMED, NOT_FORMED };

struct rondo_control {
    int rank, size;
    struct rondo_links *links;
    int epoll;
    int wake; /* eventfd: look at the fields again */
    enum rondo_watched wake_watched, root_watched, descriptor_watched;
    pthread_t thread;

    /* of the thread, but for what the condition tells */
    struct rondo_frame_connection root;
    struct rondo_job job;
    enum forming forming;
    int told_trouble; /* the root knows that this rank cannot be linked */
    int root_ended;
    int64_t form_by;
    pthread_mutex_t formed_mutex;
    pthread_cond_t formed;
    enum forming outcome; /* FORMED or NOT_FORMED once it is known */
    enum rondo_rendezvous_end end;
    char reason[RONDO_RENDEZVOUS_REASON];

    pthread_mutex_t watch_mutex; /* held while the watcher is called, so that taking it away waits for it */
    int watched;                 /* -1: none */
    void (*watcher)(void *argument);
    void *watcher_argument;
};

static void wake_thread(struct rondo_control *control)
{
    uint64_t one = 1;
    ssize_t written = write(control->wake, &one, sizeof(one));
    /* It fails only if the counter is full, and then the thread wakes all the same. */
    (void) written;
}

static rondo_result_t watch(struct rondo_control *control, int fd, enum rondo_watched *watched)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watched};
    *watched = RONDO_WATCHED_OTHER;
    return epoll_ctl(control->epoll, EPOLL_CTL_ADD, fd, &event) == 0
               ? RONDO_SUCCESS
               : rondo_fail(RONDO_ERR_SYSTEM, "epoll_ctl: %s", strerror(errno));
}

/* ---- forming ---- */

/* Says how forming has ended. failed: the root's frame that says why not, or NULL. */
static void conclude(struct rondo_control *control, enum forming outcome, enum rondo_rendezvous_end end,
                     const struct rondo_frame *failed)
{
    control->forming = outcome;
    if (failed != NULL) /* which the connection holds */
        rondo_rendezvous_read_reason(failed, control->reason);
    epoll_ctl(control->epoll, EPOLL_CTL_DEL, control->root.fd, NULL);
    if (outcome == FORMED)
        rondo_links_formed(control->links);
    /* The connection of the rank that holds the root holds the job's place. */
    if (outcome != FORMED || !control->job.holds_root)
        rondo_frame_connection_close(&control->root);
    pthread_mutex_lock(&control->formed_mutex);
    control->outcome = outcome;
    control->end = end;
    pthread_cond_signal(&control->formed);
    pthread_mutex_unlock(&control->formed_mutex);
}

static void lose_root(struct rondo_control *control, enum rondo_rendezvous_end end)
{
    conclude(control, NOT_FORMED, end, NULL);
}

/* The root's process has ended, or the root has been refused. A rank that is linked needs it no more: it finds out by itself
 * which of the others have not come so far. */
static void end_root(struct rondo_control *control)
{
    if (control->forming == LINKED) {
        conclude(control, FORMED, RONDO_RENDEZVOUS_ENDED, NULL);
        return;
    }
    epoll_ctl(control->epoll, EPOLL_CTL_DEL, control->root.fd, NULL);
    control->root_ended = 1;
    control->form_by = rondo_clock_ms() + ENDED_MS;
}

static void tell_root(struct rondo_control *control, uint32_t type, const void *data, size_t bytes)
{
    /* A fresh connection has room for so few bytes. */
    if (rondo_frame_connection_put(&control->root, type, control->rank, RONDO_CONTROL_ALL, data, bytes) != 0 ||
        rondo_frame_connection_flush(&control->root) != 1)
        end_root(control);
}

/* Returns 0, or -1 if the frame is one that no root sends now. */
static int take_places(struct rondo_control *control, const struct rondo_frame *frame)
{
    if (control->forming != FORMING || rondo_links_set_places(control->links, frame->data, frame->bytes) != 0)
        return -1;
    control->forming = LINKING;
    rondo_links_begin(control->links);
    return 0;
}

static int take(struct rondo_control *control, const struct rondo_frame *frame)
{
    if (frame->type == RONDO_FRAME_PLACES)
        return take_places(control, frame);
    if (frame->type == RONDO_FRAME_FAILED)
        conclude(control, NOT_FORMED, RONDO_RENDEZVOUS_REFUSED, frame);
    else if (frame->type == RONDO_FRAME_READY && control->forming == LINKED)
        conclude(control, FORMED, RONDO_RENDEZVOUS_ENDED, NULL);
    else
        return -1;
    return 0;
}

static void take_input(struct rondo_control *control)
{
    struct rondo_frame frame;
    int state = 1;
    while (control->forming < FORMED && state > 0 && (state = rondo_frame_connection_next(&control->root, &frame)) > 0)
        state = take(control, &frame) == 0 ? 1 : -1;
    if (state < 0 && control->forming < FORMED)
        end_root(control);
}

static void read_root(struct rondo_control *control)
{
    int state = control->forming < FORMED ? rondo_frame_connection_fill(&control->root) : 0;
    if (state > 0)
        take_input(control);
    else if (state < 0)
        end_root(control);
}

/* Does what is due while the job forms. Returns when to look again. */
static int64_t form(struct rondo_control *control)
{
    const int64_t now = rondo_clock_ms();
    const int is_lost = rondo_links_reach(control->links, RONDO_CONTROL_ALL) != RONDO_SUCCESS;
    if (control->root_ended && control->forming < FORMED && now >= control->form_by)
        lose_root(control, RONDO_RENDEZVOUS_ENDED);
    if (control->forming < FORMED && !control->told_trouble && !control->root_ended &&
        (is_lost || (control->forming == LINKING && now >= control->form_by))) {
        char trouble[RONDO_RENDEZVOUS_REASON];
        control->told_trouble = 1;
        rondo_links_describe_trouble(control->links, trouble, sizeof(trouble));
        tell_root(control, RONDO_FRAME_FAILED, trouble, strlen(trouble));
    }
    if (control->forming == LINKING && !control->told_trouble && !control->root_ended &&
        rondo_links_are_linked(control->links)) {
        control->forming = LINKED;
        tell_root(control, RONDO_FRAME_LINKED, NULL, 0);
    }
    if (control->forming < FORMED && now >= control->form_by + GRACE_MS)
        lose_root(control, RONDO_RENDEZVOUS_SILENT);
    if (control->forming >= FORMED)
        return INT64_MAX;
    return now < control->form_by ? control->form_by : control->form_by + GRACE_MS;
}

/* ---- the thread ---- */

static void call_watcher(struct rondo_control *control)
{
    pthread_mutex_lock(&control->watch_mutex);
    if (control->watched >= 0)
        control->watcher(control->watcher_argument);
    pthread_mutex_unlock(&control->watch_mutex);
}

static void serve(struct rondo_control *control, const struct epoll_event *event)
{
    enum rondo_watched *watched = event->data.ptr;
    uint64_t count;
    if (watched == &control->wake_watched) {
        ssize_t got = read(control->wake, &count, sizeof(count));
        (void) got;
    } else if (watched == &control->root_watched) {
        read_root(control);
    } else if (watched == &control->descriptor_watched) {
        call_watcher(control);
    } else {
        rondo_links_serve(control->links, watched, event->events);
    }
}

static void *run(void *argument)
{
    struct rondo_control *control = argument;
    take_input(control); /* it may have come together with what the rendezvous has read */
    for (;;) {
        struct epoll_event event;
        int64_t next = rondo_links_expire(control->links), formed = form(control);
        if (rondo_links_are_over(control->links))
            return NULL;
        int64_t left = (formed < next ? formed : next) - rondo_clock_ms();
        /* One event at a time, because serving one may close what another is about. */
        if (epoll_wait(control->epoll, &event, 1, left < 0 ? 0 : left > 1000000 ? 1000000 : (int) left) > 0)
            serve(control, &event);
    }
}

/* ---- the contract ---- */

static void destroy(struct rondo_control *control)
{
    rondo_links_destroy(control->links);
    rondo_frame_connection_close(&control->root);
    explicit_bzero(&control->job, sizeof(control->job));
    if (control->wake >= 0)
        close(control->wake);
    if (control->epoll >= 0)
        close(control->epoll);
    pthread_cond_destroy(&control->formed);
    pthread_mutex_destroy(&control->formed_mutex);
    pthread_mutex_destroy(&control->watch_mutex);
    free(control);
}

/* Makes what can be made before the other ranks are known. */
static rondo_result_t prepare(struct rondo_control *control)
{
    control->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    control->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (control->wake < 0 || control->epoll < 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "%s: %s", control->wake < 0 ? "eventfd" : "epoll_create1", strerror(errno));
    return watch(control, control->wake, &control->wake_watched);
}

/* All ranks have joined: listens for them, starts the thread, and waits until the job has formed. */
static rondo_result_t form_job(struct rondo_control *control, const struct rondo_job_options *options,
                               const struct rondo_links_options *links)
{
    uint16_t port = 0;
    unsigned char data[4];
    rondo_result_t result = rondo_links_create(&control->links, links, &port);
    if (result == RONDO_SUCCESS)
        result = watch(control, control->root.fd, &control->root_watched);
    if (result != RONDO_SUCCESS) {
        tell_root(control, RONDO_FRAME_FAILED, rondo_last_error(), strlen(rondo_last_error()));
        return result;
    }
    rondo_frame_store32(data, port);
    tell_root(control, RONDO_FRAME_LISTENING, data, sizeof(data));
    if ((result = rondo_thread_start(&control->thread, "rondo-control", STACK_BYTES, run, control)) != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&control->formed_mutex);
    while (control->outcome == FORMING)
        pthread_cond_wait(&control->formed, &control->formed_mutex); /* the thread's clock ends it */
    pthread_mutex_unlock(&control->formed_mutex);
    if (control->outcome == FORMED)
        return RONDO_SUCCESS;
    rondo_links_leave(control->links, rondo_clock_ms() + ENDED_MS); /* others may take the job for formed */
    wake_thread(control);
    pthread_join(control->thread, NULL);
    return rondo_rendezvous_failed(options, control->end, control->reason);
}

rondo_result_t rondo_control_connect(struct rondo_control **result, const struct rondo_job_options *options,
                                     rondo_control_handler_t handler, void *argument)
{
    if (options->size < 1 || options->size > RONDO_CONTROL_SIZE_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "size %d must be 1 to %d", options->size, RONDO_CONTROL_SIZE_MAX);
    if (options->rank < 0 || options->rank >= options->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rank %d must be 0 to %d", options->rank, options->size - 1);
    if (!(options->connect_timeout > 0) || !isfinite(options->connect_timeout) || options->connect_timeout > 1e9)
        return rondo_fail(RONDO_ERR_ARGUMENT, "the connect timeout of %g s must be more than 0 and at most 1e9",
                          options->connect_timeout);
    struct rondo_links_options links = {
        .rank = options->rank, .size = options->size, .encrypts = options->encrypts, .handler = handler, .argument = argument};
    rondo_result_t status = rondo_heartbeat_read_limits(&links.heartbeat);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_control *control = calloc(1, sizeof(*control));
    if (control == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the control plane");
    control->rank = options->rank;
    control->size = options->size;
    control->root.fd = control->watched = -1;
    control->wake = control->epoll = -1;
    pthread_mutex_init(&control->watch_mutex, NULL);
    pthread_mutex_init(&control->formed_mutex, NULL);
    pthread_cond_init(&control->formed, NULL);
    status = prepare(control);
    if (status == RONDO_SUCCESS)
        status = rondo_rendezvous_join(options, &control->root, &control->job);
    if (status == RONDO_SUCCESS) {
        const int64_t wait = (int64_t) (options->connect_timeout * 1000);
        control->form_by = rondo_clock_ms() + (wait > FORM_MS ? wait : FORM_MS);
        links.epoll = control->epoll;
        links.key = control->job.key;
        links.listen = control->job.listen;
        *result = control; /* the handler may be called at once, and may send */
        status = form_job(control, options, &links);
        explicit_bzero(&links.key, sizeof(links.key));
    }
    if (status != RONDO_SUCCESS) {
        destroy(control);
        *result = NULL;
    }
    return status;
}

void rondo_control_count(struct rondo_control *control, struct rondo_control_costs *costs)
{
    rondo_links_count(control->links, costs);
}

rondo_result_t rondo_control_reach(struct rondo_control *control, int dest)
{
    return rondo_links_reach(control->links, dest);
}

rondo_result_t rondo_control_send(struct rondo_control *control, int dest, uint32_t type, const void *data, size_t bytes)
{
    int wakes;
    if (dest < RONDO_CONTROL_ALL || dest >= control->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "destination %d must be 0 to %d, or all", dest, control->size - 1);
    if (type < RONDO_CONTROL_FIRST_USER_TYPE)
        return rondo_fail(RONDO_ERR_ARGUMENT, "message type %u is the control plane's own", type);
    if (bytes > RONDO_CONTROL_MESSAGE_MAX || (bytes > 0 && data == NULL))
        return rondo_fail(RONDO_ERR_ARGUMENT, "a message of %zu bytes at %p: at most %d bytes, not at NULL", bytes, data,
                          RONDO_CONTROL_MESSAGE_MAX);
    rondo_result_t result = rondo_links_send(control->links, dest, type, data, bytes, &wakes);
    if (wakes)
        wake_thread(control);
    return result;
}

void rondo_control_notify(struct rondo_control *control, uint32_t type, const void *data, size_t bytes)
{
    rondo_links_notify(control->links, type, data, bytes);
    wake_thread(control);
}

void rondo_control_give_up(struct rondo_control *control)
{
    rondo_links_give_up(control->links);
    wake_thread(control);
}

rondo_result_t rondo_control_watch(struct rondo_control *control, int fd, void (*fn)(void *argument), void *argument)
{
    if (fd >= 0 && fn == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "nothing to call for descriptor %d", fd);
    rondo_result_t result = RONDO_SUCCESS;
    pthread_mutex_lock(&control->watch_mutex);
    if (fd >= 0 && control->watched >= 0)
        result = rondo_fail(RONDO_ERR_STATE, "descriptor %d is being watched already", control->watched);
    else if (fd >= 0)
        result = watch(control, fd, &control->descriptor_watched);
    else if (control->watched >= 0)
        epoll_ctl(control->epoll, EPOLL_CTL_DEL, control->watched, NULL);
    if (result == RONDO_SUCCESS) {
        control->watched = fd >= 0 ? fd : -1;
        control->watcher = fn;
        control->watcher_argument = argument;
    }
    pthread_mutex_unlock(&control->watch_mutex);
    return result;
}

void rondo_control_close(struct rondo_control *control, double seconds)
{
    if (control == NULL)
        return;
    rondo_links_leave(control->links, rondo_clock_ms() + (int64_t) (seconds * 1000));
    wake_thread(control);
    pthread_join(control->thread, NULL);
    destroy(control);
}
