/*
 * A rank's end of the control plane: a thread that reads what arrives from the root and calls the handler, and a queue to send
 * from any thread. Relies on lib/bootstrap/rendezvous.h to find the root and on lib/bootstrap/frame_connection.h for what may
 * be believed.
 *
 * A mutex guards the sending half of the connection; the receiving half belongs to the control thread.
 */
#include "lib/bootstrap/control.h"

#include "lib/base/thread.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/bootstrap/heartbeat.h"
#include "lib/bootstrap/rendezvous.h"
#include "lib/bootstrap/frame_connection.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    STACK_BYTES = 512 << 10, /* the handler runs on it */
    FILLS_ROUND = 16,        /* reads before the watched descriptor is looked at again */
    GIVE_UP_MS = 500,        /* for the root to notice that a closing rank waits no longer */
    QUEUED_MOST = 512 << 20, /* bytes the root may leave untaken */
};

struct rondo_control {
    int rank, size;
    rondo_control_handler_t handler;
    void *argument;
    int wake; /* eventfd: look at the fields again */
    pthread_t thread;
    struct rondo_frame_connection connection;
    struct rondo_heartbeat heartbeat; /* the control thread's */

    pthread_mutex_t mutex; /* guards the connection's sending half and the next three */
    int closing, broken;   /* closing: goodbye has been queued. broken: sending is of no use any more */
    int64_t closing_until;

    pthread_mutex_t watch_mutex; /* held while the watcher is called, so that taking it away waits for it */
    int watched;                 /* -1: none */
    void (*watcher)(void *argument);
    void *watcher_argument;

    atomic_int lost;
    atomic_uchar *gone; /* by rank: died or left */
};

static void wake_thread(struct rondo_control *control)
{
    uint64_t one = 1;
    ssize_t written = write(control->wake, &one, sizeof(one));
    /* It fails only if the counter is full, and then the thread wakes all the same. */
    (void) written;
}

/* ---- receiving ------------------------------------------------------------------------------------------------------------
 */

/* The connection is of no use any more. Once: ends it, and tells the handler unless closing has begun. */
static void lose_root(struct rondo_control *control)
{
    if (atomic_exchange(&control->lost, 1))
        return;
    pthread_mutex_lock(&control->mutex);
    control->broken = 1;
    int expected = control->closing;
    pthread_mutex_unlock(&control->mutex);
    /* If this end has refused what the root sent, the root must learn that it has lost this rank. */
    shutdown(control->connection.fd, SHUT_RDWR);
    if (!expected)
        control->handler(control->argument, control->rank, RONDO_CONTROL_LOST, NULL, 0);
}

/* Calls the handler. Returns 0, or -1 if the frame is one that no root sends. */
static int deliver(struct rondo_control *control, const struct rondo_frame *frame)
{
    if (frame->type == RONDO_FRAME_BEAT)
        return 0;
    if (frame->source < 0 || frame->source >= control->size)
        return -1;
    if (frame->type == RONDO_CONTROL_DIED || frame->type == RONDO_CONTROL_LEFT)
        atomic_store(&control->gone[frame->source], 1);
    else if (frame->type < RONDO_CONTROL_FIRST_USER_TYPE)
        return -1;
    control->handler(control->argument, frame->source, frame->type, frame->bytes > 0 ? frame->data : NULL, frame->bytes);
    return 0;
}

static void take_input(struct rondo_control *control)
{
    struct rondo_frame frame;
    int state;
    while ((state = rondo_frame_connection_next(&control->connection, &frame)) > 0)
        if (deliver(control, &frame) != 0)
            state = -1;
    if (state < 0)
        lose_root(control);
}

static void receive(struct rondo_control *control)
{
    for (int i = 0; i < FILLS_ROUND && !atomic_load(&control->lost); i++) {
        int state = rondo_frame_connection_fill(&control->connection);
        if (state == 0)
            return;
        rondo_heartbeat_heard(&control->heartbeat);
        if (state < 0)
            lose_root(control);
        else
            take_input(control);
    }
}

/* Ends a connection on which a frame cannot be sent, so that the root takes this rank for dead and the control thread, which
 * reads the end, reports the root as lost. The mutex is held. */
static void break_connection(struct rondo_control *control)
{
    control->broken = 1;
    shutdown(control->connection.fd, SHUT_RDWR);
}

/* Sends what is queued. The mutex is held. */
static void flush(struct rondo_control *control)
{
    if (!control->broken && rondo_frame_connection_flush(&control->connection) < 0)
        break_connection(control);
}

/* Sends a sign of life or gives the root up, as is due; not while closing or after the connection was lost. */
static void beat(struct rondo_control *control, int closing)
{
    if (closing || atomic_load(&control->lost))
        return;
    switch (rondo_heartbeat_look(&control->heartbeat, rondo_clock_ms())) {
    case RONDO_HEARTBEAT_NOTHING:
        return;
    case RONDO_HEARTBEAT_DEAD:
        rondo_log(RONDO_LOG_INFO, control->rank, "the root has been silent for %d s",
                  control->heartbeat.most / RONDO_HEARTBEATS_A_SECOND);
        lose_root(control);
        return;
    case RONDO_HEARTBEAT_SEND:
        break;
    }
    pthread_mutex_lock(&control->mutex);
    if (!control->closing && !control->broken) {
        if (control->connection.queued == 0 &&
            rondo_frame_connection_put(&control->connection, RONDO_FRAME_BEAT, control->rank, RONDO_CONTROL_ALL, NULL, 0) != 0)
            break_connection(control);
        flush(control);
    }
    pthread_mutex_unlock(&control->mutex);
}

/* Returns the milliseconds until the next look at the heartbeat; -1: there is none. */
static int until_beat(const struct rondo_control *control)
{
    int64_t left = control->heartbeat.next - rondo_clock_ms();
    return control->heartbeat.next == INT64_MAX || atomic_load(&control->lost) ? -1 : left < 0 ? 0 : (int) left;
}

static void call_watcher(struct rondo_control *control, int fd)
{
    pthread_mutex_lock(&control->watch_mutex);
    if (control->watched == fd)
        control->watcher(control->watcher_argument);
    pthread_mutex_unlock(&control->watch_mutex);
}

static void *run(void *argument)
{
    struct rondo_control *control = argument;
    int given_up = 0;
    /* Messages of faster ranks may have arrived together with RONDO_FRAME_READY. */
    take_input(control);
    for (;;) {
        struct pollfd polled[3] = {{-1, POLLIN, 0}, {control->wake, POLLIN, 0}, {-1, POLLIN, 0}};
        pthread_mutex_lock(&control->mutex);
        int closing = control->closing, broken = control->broken;
        int64_t until = control->closing_until;
        if (!atomic_load(&control->lost))
            polled[0].fd = control->connection.fd;
        if (control->connection.queued > 0 && !control->broken)
            polled[0].events |= POLLOUT;
        pthread_mutex_unlock(&control->mutex);
        pthread_mutex_lock(&control->watch_mutex);
        polled[2].fd = control->watched;
        pthread_mutex_unlock(&control->watch_mutex);

        /* Closing lasts until the root ends the connection, which a root of this process does after all other ranks. */
        int64_t left = until - rondo_clock_ms();
        if (closing && left <= 0 && !given_up) { /* a root of this process logs which ranks it leaves, and then answers */
            given_up = 1;
            shutdown(control->connection.fd, SHUT_WR);
        }
        if (given_up)
            left += GIVE_UP_MS;
        if (closing && (broken || atomic_load(&control->lost) || left <= 0))
            return NULL;
        if (poll(polled, 3, closing ? (int) left : until_beat(control)) < 0)
            continue;
        if ((polled[1].revents & POLLIN) != 0) {
            uint64_t count;
            ssize_t got = read(control->wake, &count, sizeof(count));
            (void) got;
        }
        if ((polled[0].revents & POLLOUT) != 0) {
            pthread_mutex_lock(&control->mutex);
            flush(control);
            pthread_mutex_unlock(&control->mutex);
        }
        if ((polled[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            receive(control);
        if ((polled[2].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            call_watcher(control, polled[2].fd);
        beat(control, closing);
    }
}

/* ---- the contract ---------------------------------------------------------------------------------------------------------
 */

rondo_result_t rondo_control_encrypts(int *encrypts)
{
    int64_t wanted = 0;
    rondo_result_t result = rondo_environment_integer("RONDO_ENCRYPT", &wanted);
    if (result == RONDO_SUCCESS && wanted == 1 && rondo_cipher_unusable() != NULL)
        result = rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_ENCRYPT=1, but nothing can be encrypted: %s", rondo_cipher_unusable());
    *encrypts = wanted == 1;
    return result;
}

static void destroy(struct rondo_control *control)
{
    rondo_frame_connection_close(&control->connection);
    if (control->wake >= 0)
        close(control->wake);
    free(control->gone);
    pthread_mutex_destroy(&control->mutex);
    pthread_mutex_destroy(&control->watch_mutex);
    free(control);
}

rondo_result_t rondo_control_connect(struct rondo_control **result, const struct rondo_control_options *options,
                                     rondo_control_handler_t handler, void *argument)
{
    if (options->size < 1 || options->size > RONDO_CONTROL_SIZE_MAX)
        return rondo_fail(RONDO_ERR_ARGUMENT, "size %d must be 1 to %d", options->size, RONDO_CONTROL_SIZE_MAX);
    if (options->rank < 0 || options->rank >= options->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rank %d must be 0 to %d", options->rank, options->size - 1);
    if (!(options->connect_timeout > 0) || !isfinite(options->connect_timeout) || options->connect_timeout > 1e9)
        return rondo_fail(RONDO_ERR_ARGUMENT, "the connect timeout of %g s must be more than 0 and at most 1e9",
                          options->connect_timeout);
    struct rondo_heartbeat_limits limits;
    rondo_result_t status = rondo_heartbeat_read_limits(&limits);
    if (status != RONDO_SUCCESS)
        return status;
    struct rondo_control *control = calloc(1, sizeof(*control));
    if (control == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the control plane");
    control->rank = options->rank;
    control->size = options->size;
    control->handler = handler;
    control->argument = argument;
    control->connection.fd = -1;
    control->watched = -1;
    pthread_mutex_init(&control->mutex, NULL);
    pthread_mutex_init(&control->watch_mutex, NULL);
    control->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    control->gone = calloc((size_t) options->size, sizeof(*control->gone));
    if (control->wake < 0)
        status = rondo_fail(RONDO_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    else if (control->gone == NULL)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for %d ranks", options->size);
    else
        status = rondo_rendezvous_join(options, &control->connection);
    if (status == RONDO_SUCCESS && rondo_frame_connection_set_aside(&control->connection) != 0)
        status = rondo_fail(RONDO_ERR_MEMORY, "no memory for the control plane");
    if (status == RONDO_SUCCESS) {
        /* The handler may be called at once, and may send. */
        *result = control;
        rondo_heartbeat_begin(&control->heartbeat, control->connection.fd, &limits);
        status = rondo_thread_start(&control->thread, "rondo-control", STACK_BYTES, run, control);
    }
    if (status != RONDO_SUCCESS) {
        destroy(control);
        *result = NULL;
    }
    return status;
}

/* Queues a frame, or sends it at once if nothing is queued before it. The mutex is held. */
static rondo_result_t enqueue(struct rondo_control *control, uint32_t type, int dest, const void *data, size_t bytes)
{
    size_t before = control->connection.queued;
    if (before + bytes > (size_t) QUEUED_MOST)
        return rondo_fail(RONDO_ERR_MEMORY, "the root has left %zu bytes of rank %d's messages untaken", before, control->rank);
    if (rondo_frame_connection_put(&control->connection, type, control->rank, dest, data, bytes) != 0)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a message of %zu bytes", bytes);
    /* If something was queued before, the control thread waits for room already. */
    if (before > 0)
        return RONDO_SUCCESS;
    flush(control);
    if (control->connection.queued > 0)
        wake_thread(control);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_control_reach(struct rondo_control *control, int dest)
{
    if (atomic_load(&control->lost))
        return rondo_fail(RONDO_ERR_PEER, "rank %d has lost its connection to the root", control->rank);
    if (dest >= 0 && atomic_load(&control->gone[dest]))
        return rondo_fail(RONDO_ERR_PEER, "rank %d has died or left", dest);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_control_send(struct rondo_control *control, int dest, uint32_t type, const void *data, size_t bytes)
{
    if (dest < RONDO_CONTROL_ALL || dest >= control->size)
        return rondo_fail(RONDO_ERR_ARGUMENT, "destination %d must be 0 to %d, or all", dest, control->size - 1);
    if (type < RONDO_CONTROL_FIRST_USER_TYPE)
        return rondo_fail(RONDO_ERR_ARGUMENT, "message type %u is the control plane's own", type);
    if (bytes > RONDO_CONTROL_MESSAGE_MAX || (bytes > 0 && data == NULL))
        return rondo_fail(RONDO_ERR_ARGUMENT, "a message of %zu bytes at %p: at most %d bytes, not at NULL", bytes, data,
                          RONDO_CONTROL_MESSAGE_MAX);
    rondo_result_t result = rondo_control_reach(control, dest);
    if (result != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&control->mutex);
    if (control->closing)
        result = rondo_fail(RONDO_ERR_STATE, "rank %d has said goodbye", control->rank);
    else if (control->broken)
        result = rondo_fail(RONDO_ERR_PEER, "rank %d has lost its connection to the root", control->rank);
    else
        result = enqueue(control, type, dest, data, bytes);
    pthread_mutex_unlock(&control->mutex);
    return result;
}

void rondo_control_notify(struct rondo_control *control, uint32_t type, const void *data, size_t bytes)
{
    pthread_mutex_lock(&control->mutex);
    if (!control->closing && !control->broken) {
        size_t before = control->connection.queued;
        int put = rondo_frame_connection_put_surely(&control->connection, type, control->rank, RONDO_CONTROL_ALL, data, bytes);
        if (put != 0)
            break_connection(control);
        else if (before == 0)
            flush(control);
        if (put != 0 || control->connection.queued > 0)
            wake_thread(control);
    }
    pthread_mutex_unlock(&control->mutex);
}

void rondo_control_give_up(struct rondo_control *control)
{
    pthread_mutex_lock(&control->mutex);
    if (!control->closing && !control->broken)
        break_connection(control);
    wake_thread(control);
    pthread_mutex_unlock(&control->mutex);
}

rondo_result_t rondo_control_watch(struct rondo_control *control, int fd, void (*fn)(void *argument), void *argument)
{
    if (fd >= 0 && fn == NULL)
        return rondo_fail(RONDO_ERR_ARGUMENT, "nothing to call for descriptor %d", fd);
    rondo_result_t result = RONDO_SUCCESS;
    pthread_mutex_lock(&control->watch_mutex);
    if (fd >= 0 && control->watched >= 0) {
        result = rondo_fail(RONDO_ERR_STATE, "descriptor %d is being watched already", control->watched);
    } else {
        control->watched = fd >= 0 ? fd : -1;
        control->watcher = fn;
        control->watcher_argument = argument;
    }
    pthread_mutex_unlock(&control->watch_mutex);
    wake_thread(control);
    return result;
}

void rondo_control_close(struct rondo_control *control, double seconds)
{
    if (control == NULL)
        return;
    pthread_mutex_lock(&control->mutex);
    if (!control->broken &&
        (rondo_frame_connection_put(&control->connection, RONDO_FRAME_GOODBYE, control->rank, RONDO_CONTROL_ALL, NULL, 0) != 0))
        control->broken = 1;
    control->closing = 1;
    control->closing_until = rondo_clock_ms() + (int64_t) (seconds * 1000);
    flush(control);
    pthread_mutex_unlock(&control->mutex);
    wake_thread(control);
    pthread_join(control->thread, NULL);
    destroy(control);
}
