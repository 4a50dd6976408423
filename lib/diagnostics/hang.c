/* See lib/diagnostics/hang.h. */
#include "lib/diagnostics/hang.h"

#include "lib/call/call.h"
#include "lib/base/futex.h"
#include "lib/diagnostics/hang_report.h"
#include "lib/diagnostics/hang_signal.h"
#include "device/abi/platform.h"
#include "lib/submission/queue.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_NS 2000000000u /* rank 0 waits so long for the others' statements */
#define REPORT_NS 5000000000u /* and a rank so long for the report */
#define WATCH_NS  100000000u
#define COMMS_MAX 256
#define TEXT_MAX  65536

struct rondo_hang {
    pthread_mutex_t lock;
    /* Every rank: */
    uint64_t asked_ns;
    uint64_t watched_ns, stream_comm; /* when lanes of streams were looked at last, and a communicator with one overdue */
    int on_stream;                    /* there is one */
    int watches_signal;
    uint64_t demands;           /* reports asked for without a timeout (lock) */
    uint64_t logged_demand;     /* the latest that a signal asked for: its answer goes to the log (lock) */
    uint64_t answered;          /* the latest demand that has been answered (lock) */
    char *answer;               /* its text, owned (lock) */
    uint32_t answers, sleepers; /* futex: bumped after each answer */
    /* Rank 0: */
    int collecting;
    int due; /* somebody asked because of a timeout: the report ends what is stuck */
    uint64_t since_ns;
    struct rondo_hang_statement *statements; /* [size] */
    uint64_t *demanding;                     /* [size]: the demand of each rank that waits for an answer; 0: none */
};

struct report {
    uint32_t comms, unused;
    uint64_t ids[COMMS_MAX];
    char text[];
};

rondo_result_t rondo_hang_create(struct rondo_hang **hang)
{
    *hang = calloc(1, sizeof(**hang));
    if (*hang == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for hang reports");
    pthread_mutex_init(&(*hang)->lock, NULL);
    rondo_result_t result = rondo_hang_signal_watch(&(*hang)->watches_signal);
    if (result != RONDO_SUCCESS) {
        pthread_mutex_destroy(&(*hang)->lock);
        free(*hang);
        *hang = NULL;
    }
    return result;
}

static void forget(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    for (int rank = 0; hang->statements != NULL && rank < runtime->size; rank++)
        free(hang->statements[rank].entries);
    free(hang->statements);
    free(hang->demanding);
    hang->statements = NULL;
    hang->demanding = NULL;
    hang->collecting = hang->due = 0;
}

void rondo_hang_destroy(struct rondo_runtime *runtime)
{
    if (runtime->hang == NULL)
        return;
    if (runtime->hang->watches_signal)
        rondo_hang_signal_ignore();
    forget(runtime);
    pthread_mutex_destroy(&runtime->hang->lock);
    free(runtime->hang->answer);
    free(runtime->hang);
}

/* ---- what this rank is doing ---- */

static void locate(const struct rondo_host_lane *lane, struct rondo_hang_entry *entry)
{
    const struct rondo_comm *comm = lane->comm;
    memset(entry, 0, sizeof(*entry));
    entry->comm = comm->id;
    entry->lane = lane->id;
    entry->waiting_on = entry->sender = entry->receiver = -1;
    if (lane->peer >= 0) {
        entry->sender = comm->members[lane->outgoing ? comm->rank : lane->peer];
        entry->receiver = comm->members[lane->outgoing ? lane->peer : comm->rank];
        entry->members[0] = entry->sender;
        entry->members[1] = entry->receiver;
        entry->size = entry->sender == entry->receiver ? 1 : 2;
        return;
    }
    entry->size = comm->size;
    for (int i = 0; i < comm->size && i < RONDO_HANG_MEMBERS; i++)
        entry->members[i] = comm->members[i];
}

/* Of the timeout: what was started so shortly after an operation that has been given up is given up, and told of, with it. */
#define TOGETHER 0.95

/* Whether so much of the timeout is over. now may have been read before the request was started. */
static int is_overdue(const struct rondo_runtime *runtime, const struct rondo_request *request, uint64_t now, double much)
{
    return now > request->started_ns && (double) (now - request->started_ns) / 1e9 >= much * runtime->settings.timeout;
}

/* A word of the device's memory. */
static uint64_t look(const struct rondo_runtime *runtime, const uint64_t *word)
{
    uint64_t value = 0;
    runtime->device->kind->download(runtime->device, &value, word, sizeof(value));
    return value;
}

static void observe(const struct rondo_runtime *runtime, const struct rondo_request *request, uint64_t now,
                    struct rondo_hang_entry *entry)
{
    const struct rondo_daemon *daemon = runtime->device->daemon;
    const struct rondo_host_lane *lane = request->lane;
    locate(lane, entry);
    entry->number = request->number;
    entry->overdue = is_overdue(runtime, request, now, TOGETHER);
    rondo_call_describe(&request->call, entry->text, sizeof(entry->text));
    if (!request->submitted || lane->requests->finished != request->device_number)
        return;
    for (uint32_t b = 0; b < daemon->block_count; b++)
        entry->executing |= look(runtime, &daemon->reports[b].current_lane) == (uint64_t) lane->index + 1;
    for (uint32_t c = 0; c < daemon->lane_contexts && entry->waiting_on < 0; c++)
        entry->waiting_on = (int32_t) look(runtime, &daemon->waiting[lane->index * daemon->lane_contexts + c]) - 1;
}

/* An operation in stream order that a kernel waits in. What it was called with is no more known. */
static void observe_stream(const struct rondo_runtime *runtime, const struct rondo_host_lane *lane, uint64_t now,
                           struct rondo_hang_entry *entry)
{
    locate(lane, entry);
    entry->number = RONDO_STUCK_NUMBER(lane->requests->stuck);
    entry->overdue = (double) (now - lane->requests->stuck_ns) / 1e9 >= runtime->settings.timeout;
    snprintf(entry->text, sizeof(entry->text), "operation %llu of a stream", (unsigned long long) entry->number);
}

static void state(struct rondo_runtime *runtime)
{
    struct rondo_hang_entry *entries = calloc(RONDO_HANG_ENTRIES, sizeof(*entries));
    size_t count = 0;
    uint64_t now = rondo_clock_ns();
    if (entries == NULL)
        return;
    pthread_mutex_lock(&runtime->lock);
    pthread_mutex_lock(&runtime->queue->lock);
    for (const struct rondo_request *request = runtime->queue->active; request != NULL && count < RONDO_HANG_ENTRIES;
         request = request->active_after)
        if (request->lane != NULL)
            observe(runtime, request, now, &entries[count++]);
    for (const struct rondo_comm *comm = runtime->comms; comm != NULL; comm = comm->next)
        for (const struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL && count < RONDO_HANG_ENTRIES;
             lane = lane->next) {
            if (lane->requests->stuck != 0) {
                observe_stream(runtime, lane, now, &entries[count++]);
                continue;
            }
            locate(lane, &entries[count]);
            const uint64_t enqueued = (uint32_t) lane->requests->enqueued; /* in this life */
            entries[count++].number = lane->requests->started > enqueued ? lane->requests->started : enqueued;
        }
    pthread_mutex_unlock(&runtime->queue->lock);
    pthread_mutex_unlock(&runtime->lock);
    rondo_control_send(runtime->control, 0, RONDO_MESSAGE_HANG_STATE, entries, count * sizeof(*entries));
    free(entries);
}

/* ---- rank 0 collects ---- */

/* To every rank that asked without a timeout: its demand's number, then the text. */
static void send_answers(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    char *text = NULL;
    for (int rank = 0; rank < runtime->size; rank++) {
        if (hang->demanding[rank] == 0)
            continue;
        if (text == NULL && (text = rondo_hang_compose(hang->statements, runtime->size, 1)) == NULL)
            return;
        size_t bytes = strlen(text) + 1 < TEXT_MAX ? strlen(text) + 1 : TEXT_MAX;
        char *message = malloc(sizeof(uint64_t) + bytes);
        if (message != NULL) {
            memcpy(message, &hang->demanding[rank], sizeof(uint64_t));
            memcpy(message + sizeof(uint64_t), text, bytes);
            rondo_control_send(runtime->control, rank, RONDO_MESSAGE_HANG_ANSWER, message, sizeof(uint64_t) + bytes);
        }
        free(message);
    }
    free(text);
}

static void send_report(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    send_answers(runtime);
    if (!hang->due) {
        forget(runtime);
        return;
    }
    char *text = rondo_hang_compose(hang->statements, runtime->size, 0);
    size_t bytes = text == NULL ? 0 : strlen(text) + 1;
    if (bytes > TEXT_MAX)
        bytes = TEXT_MAX;
    struct report *report = calloc(1, sizeof(*report) + bytes + 1);
    for (int rank = 0; report != NULL && rank < runtime->size; rank++)
        for (int i = 0; i < hang->statements[rank].count; i++) {
            const struct rondo_hang_entry *entry = &hang->statements[rank].entries[i];
            uint32_t known = 0;
            while (known < report->comms && report->ids[known] != entry->comm)
                known++;
            if (entry->overdue && known == report->comms && known < COMMS_MAX)
                report->ids[report->comms++] = entry->comm;
        }
    if (report != NULL) {
        if (text != NULL)
            memcpy(report->text, text, bytes);
        /* To this rank first: another that is told earlier may leave at once, and its leaving must not come before the report.
         */
        rondo_control_send(runtime->control, 0, RONDO_MESSAGE_HANG_REPORT, report, sizeof(*report) + bytes + 1);
        rondo_control_send(runtime->control, RONDO_CONTROL_ALL, RONDO_MESSAGE_HANG_REPORT, report, sizeof(*report) + bytes + 1);
    }
    free(report);
    free(text);
    forget(runtime);
}

/* demand: the asking rank's number for it; 0: because of a timeout. */
static void begin_collecting(struct rondo_runtime *runtime, int source, uint64_t demand)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    int begin = !hang->collecting;
    if (begin) {
        hang->statements = calloc((size_t) runtime->size, sizeof(*hang->statements));
        hang->demanding = calloc((size_t) runtime->size, sizeof(*hang->demanding));
        hang->collecting = 1;
        hang->since_ns = rondo_clock_ns();
        if (hang->statements == NULL || hang->demanding == NULL) {
            forget(runtime);
            begin = 0;
        }
    }
    if (hang->collecting && demand != 0)
        hang->demanding[source] = demand;
    else if (hang->collecting)
        hang->due = 1;
    pthread_mutex_unlock(&hang->lock);
    for (int rank = 0; begin && rank < runtime->size; rank++)
        rondo_control_send(runtime->control, rank, RONDO_MESSAGE_HANG_QUERY, NULL, 0);
}

static void take_statement(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    if (hang->collecting && !hang->statements[source].arrived && bytes % sizeof(struct rondo_hang_entry) == 0) {
        struct rondo_hang_statement *statement = &hang->statements[source];
        statement->entries = malloc(bytes + 1);
        if (statement->entries != NULL) {
            memcpy(statement->entries, data, bytes);
            statement->count = (int) (bytes / sizeof(struct rondo_hang_entry));
        }
        statement->arrived = 1;
        for (int i = 0; i < statement->count; i++)
            statement->entries[i].text[sizeof(statement->entries[i].text) - 1] = '\0';
        int complete = 1;
        for (int rank = 0; rank < runtime->size; rank++)
            complete &= hang->statements[rank].arrived || __atomic_load_n(&runtime->gone[rank], __ATOMIC_ACQUIRE) != 0;
        if (complete)
            send_report(runtime);
    }
    pthread_mutex_unlock(&hang->lock);
}

/* ---- every rank ---- */

static void take_report(struct rondo_runtime *runtime, const void *data, size_t bytes)
{
    if (bytes <= sizeof(struct report))
        return;
    struct report *report = malloc(bytes);
    if (report == NULL)
        return;
    memcpy(report, data, bytes);
    ((char *) report)[bytes - 1] = '\0';
    rondo_log(RONDO_LOG_ERROR, runtime->rank, "%s", report->text);
    for (uint32_t i = 0; i < report->comms && i < COMMS_MAX; i++) {
        struct rondo_comm *comm = rondo_comm_pin(runtime, report->ids[i]);
        if (comm == NULL)
            continue;
        rondo_comm_fail(comm, RONDO_ERR_TIMEOUT, "%s", report->text);
        rondo_comm_unpin(comm);
    }
    free(report);
}

static void take_answer(struct rondo_runtime *runtime, const char *data, size_t bytes)
{
    struct rondo_hang *hang = runtime->hang;
    uint64_t number;
    if (bytes <= sizeof(number))
        return;
    char *text = malloc(bytes - sizeof(number));
    if (text == NULL)
        return;
    memcpy(&number, data, sizeof(number));
    memcpy(text, data + sizeof(number), bytes - sizeof(number));
    text[bytes - sizeof(number) - 1] = '\0';
    pthread_mutex_lock(&hang->lock);
    int wanted_in_log = hang->logged_demand > hang->answered && hang->logged_demand <= number;
    hang->answered = number > hang->answered ? number : hang->answered;
    free(hang->answer);
    hang->answer = text;
    if (wanted_in_log)
        rondo_log(RONDO_LOG_ERROR, runtime->rank, "%s", text);
    pthread_mutex_unlock(&hang->lock);
    rondo_event_signal(&hang->answers, &hang->sleepers);
}

static rondo_result_t demand(struct rondo_runtime *runtime, int to_log, uint64_t *number)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    *number = ++hang->demands;
    if (to_log)
        hang->logged_demand = *number;
    pthread_mutex_unlock(&hang->lock);
    return rondo_control_send(runtime->control, 0, RONDO_MESSAGE_HANG_ASK, number, sizeof(*number));
}

rondo_result_t rondo_report(rondo_t runtime, char *text, size_t bytes)
{
    if (runtime == NULL || text == NULL || bytes == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_report: the runtime is %p, the text %p of %zu bytes", (void *) runtime,
                          (void *) text, bytes);
    struct rondo_hang *hang = runtime->hang;
    uint64_t number, began = rondo_clock_ns();
    rondo_result_t result = demand(runtime, 0, &number);
    text[0] = '\0';
    while (result == RONDO_SUCCESS) {
        uint32_t seen = __atomic_load_n(&hang->answers, __ATOMIC_SEQ_CST);
        pthread_mutex_lock(&hang->lock);
        int answered = hang->answered >= number;
        if (answered) {
            size_t length = strlen(hang->answer) < bytes ? strlen(hang->answer) : bytes - 1;
            memcpy(text, hang->answer, length);
            text[length] = '\0';
        }
        pthread_mutex_unlock(&hang->lock);
        uint64_t waited = rondo_clock_ns() - began;
        if (answered)
            return RONDO_SUCCESS;
        if (waited >= REPORT_NS)
            return rondo_fail(RONDO_ERR_TIMEOUT, "rondo_report: rank 0 has not answered for %.1f s", (double) waited / 1e9);
        rondo_event_sleep(&hang->answers, seen, &hang->sleepers, REPORT_NS - waited);
    }
    return result;
}

static int overdue(struct rondo_runtime *runtime, uint64_t now, uint64_t *comm)
{
    int found = 0;
    pthread_mutex_lock(&runtime->queue->lock);
    for (const struct rondo_request *request = runtime->queue->active; request != NULL && !found;
         request = request->active_after)
        if (is_overdue(runtime, request, now, 1) && rondo_comm_failure(request->comm) == RONDO_SUCCESS) {
            *comm = request->comm->id;
            found = 1;
        }
    pthread_mutex_unlock(&runtime->queue->lock);
    return found;
}

/* Looks, now and then, which lanes have kernels that wait, and whether one has waited for too long. They tell it by a word in
 * the host's memory, because no call of CUDA is sure to return while they do. */
static void watch_streams(struct rondo_runtime *runtime, uint64_t now)
{
    const struct rondo_queues *queues = runtime->device->daemon->queues;
    struct rondo_hang *hang = runtime->hang;
    if (runtime->device->kind->enqueue == NULL || now - hang->watched_ns < WATCH_NS)
        return;
    hang->watched_ns = now;
    hang->on_stream = 0;
    pthread_mutex_lock(&runtime->lock);
    for (const struct rondo_comm *comm = runtime->comms; comm != NULL; comm = comm->next)
        for (struct rondo_host_lane *lane = comm->connections->lanes; lane != NULL; lane = lane->next) {
            uint64_t stuck = rondo_load_relaxed(&queues->stuck[lane->index]);
            if (stuck != lane->requests->stuck) {
                lane->requests->stuck = stuck;
                lane->requests->stuck_ns = now;
            }
            if (stuck != 0 && runtime->settings.timeout > 0 &&
                (double) (now - lane->requests->stuck_ns) / 1e9 >= runtime->settings.timeout &&
                rondo_comm_failure(comm) == RONDO_SUCCESS) {
                hang->stream_comm = comm->id;
                hang->on_stream = 1;
            }
        }
    pthread_mutex_unlock(&runtime->lock);
}

void rondo_hang_check(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    uint64_t now = rondo_clock_ns(), id, number;
    if (hang->watches_signal && rondo_hang_signal_came())
        demand(runtime, 1, &number);
    pthread_mutex_lock(&hang->lock);
    if (hang->collecting && now - hang->since_ns >= ANSWER_NS && now > hang->since_ns)
        send_report(runtime);
    pthread_mutex_unlock(&hang->lock);
    watch_streams(runtime, now);
    if (runtime->settings.timeout <= 0)
        return;
    id = hang->stream_comm;
    if (!overdue(runtime, now, &id) && !hang->on_stream) {
        hang->asked_ns = 0;
        return;
    }
    if (hang->asked_ns == 0) {
        hang->asked_ns = now;
        rondo_control_send(runtime->control, 0, RONDO_MESSAGE_HANG_ASK, NULL, 0);
    } else if (now - hang->asked_ns >= REPORT_NS) { /* rank 0 does not answer either */
        struct rondo_comm *comm = rondo_comm_pin(runtime, id);
        if (comm != NULL) {
            rondo_comm_fail(comm, RONDO_ERR_TIMEOUT, "stuck for more than %g s, and rank 0 sends no hang report",
                            runtime->settings.timeout);
            rondo_comm_unpin(comm);
        }
        hang->asked_ns = 0;
    }
}

void rondo_hang_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    switch (type) {
    case RONDO_MESSAGE_HANG_ASK:
        if (runtime->rank == 0) {
            uint64_t number = 0;
            if (bytes == sizeof(number))
                memcpy(&number, data, sizeof(number));
            begin_collecting(runtime, source, number);
        }
        break;
    case RONDO_MESSAGE_HANG_QUERY:
        state(runtime);
        break;
    case RONDO_MESSAGE_HANG_STATE:
        if (runtime->rank == 0)
            take_statement(runtime, source, data, bytes);
        break;
    case RONDO_MESSAGE_HANG_ANSWER:
        take_answer(runtime, data, bytes);
        break;
    default:
        take_report(runtime, data, bytes);
        break;
    }
}
