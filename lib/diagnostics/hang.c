/*
 * The messages and states of hang reports (lib/diagnostics/hang.h), and rondo_report. lib/diagnostics/hang_report.c composes
 * the text. Relies on the control plane and on the poller's ticks.
 */
#include "lib/diagnostics/hang.h"

#include "lib/base/futex.h"
#include "lib/context/handles.h"
#include "lib/diagnostics/flight_dump.h"
#include "lib/diagnostics/hang_report.h"
#include "lib/diagnostics/hang_signal.h"
#include "device/abi/platform.h"
#include "lib/base/error.h"
#include "lib/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_NS 2000000000u /* the collector's longest wait for the statements of its peers */
#define REPORT_NS 5000000000u /* a rank's longest wait for the report */
#define COMMS_MAX 256
#define TEXT_MAX  65536
#define NO_MEMORY "no memory for the hang report"

struct rondo_hang {
    pthread_mutex_t lock;
    const struct rondo_hang_observer *observer;
    /* Every rank: */
    uint64_t asked_ns; /* since when an operation is overdue; 0: none is */
    int asked;         /* the rank that was asked for a report because of that */
    int demanded;      /* the rank that was asked for the latest demand (lock) */
    int watches_signal;
    uint64_t demands;           /* reports asked for by a call or a signal (lock) */
    uint64_t logged_demand;     /* the latest demand of a signal, whose answer is logged (lock) */
    uint64_t answered;          /* the latest demand that has been answered (lock) */
    char *answer;               /* its text, owned; NULL: there was no memory for it (lock) */
    uint32_t answers, sleepers; /* futex: incremented after each answer, and when a rank has gone */
    /* A rank that has been asked, which is the collector: */
    int collecting;
    int due; /* a rank asked because of a timeout: the report ends stuck communicators */
    uint64_t since_ns;
    struct rondo_hang_statement *statements; /* [size] */
    uint64_t *demanding;                     /* [size]: the demand of each rank that waits for an answer; 0: none */
};

/* RONDO_MESSAGE_HANG_QUERY. After a timeout the failure writes the recorder's file, and a late query must not replace it. */
struct query {
    uint32_t by_demand;
};

struct report {
    uint32_t comms, unused;
    uint64_t ids[COMMS_MAX];
    char text[];
};

rondo_result_t rondo_hang_create(struct rondo_hang **hang, const struct rondo_hang_observer *observer)
{
    *hang = calloc(1, sizeof(**hang));
    if (*hang == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for hang reports");
    (*hang)->observer = observer;
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

/* Wakes the threads in rondo_report, which look whether a rank can still answer. */
static void peer_gone(struct rondo_runtime *runtime)
{
    rondo_event_signal(&runtime->hang->answers, &runtime->hang->sleepers);
}

const struct rondo_failure_listener rondo_hang_failure = {.peer_gone = peer_gone};

/* ---- what this rank is doing ---- */

size_t rondo_hang_observe(struct rondo_runtime *runtime, struct rondo_hang_entry *entries, size_t most)
{
    return runtime->hang->observer->observe(runtime, entries, most);
}

rondo_result_t rondo_hang_count(struct rondo_runtime *runtime, rondo_stats_t *stats)
{
    return runtime->hang->observer->count(runtime, stats);
}

/* Sends the collector, which has asked, a statement. */
static void state(struct rondo_runtime *runtime, int collector)
{
    struct rondo_hang_entry *entries = calloc(RONDO_HANG_ENTRIES, sizeof(*entries));
    if (entries == NULL)
        return;
    size_t count = rondo_hang_observe(runtime, entries, RONDO_HANG_ENTRIES);
    rondo_control_send(runtime->control, collector, RONDO_MESSAGE_HANG_STATE, entries, count * sizeof(*entries));
    free(entries);
}

/* ---- the collector ---- */

/* Answers the rank's demand: its number, then the text. Where there is no memory for that, with a short one. */
static void send_answer(struct rondo_runtime *runtime, int rank, uint64_t demand, const char *text)
{
    struct {
        uint64_t demand;
        char text[56];
    } refusal = {demand, ""};
    const size_t length = text != NULL ? strlen(text) + 1 : 0, bytes = length < TEXT_MAX ? length : TEXT_MAX;
    char *message = text != NULL ? malloc(sizeof(demand) + bytes) : NULL;
    if (message == NULL) {
        snprintf(refusal.text, sizeof(refusal.text), "hang report: no memory for it on rank %d", runtime->rank);
        rondo_control_send(runtime->control, rank, RONDO_MESSAGE_HANG_ANSWER, &refusal, sizeof(refusal));
        return;
    }
    memcpy(message, &demand, sizeof(demand));
    memcpy(message + sizeof(demand), text, bytes);
    rondo_control_send(runtime->control, rank, RONDO_MESSAGE_HANG_ANSWER, message, sizeof(demand) + bytes);
    free(message);
}

/* Sends the report to every rank that has a demand. */
static void send_answers(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    char *text = NULL;
    for (int rank = 0; rank < runtime->size; rank++) {
        if (hang->demanding[rank] == 0)
            continue;
        if (text == NULL)
            text = rondo_hang_compose(hang->statements, runtime->size, 1);
        send_answer(runtime, rank, hang->demanding[rank], text);
    }
    free(text);
}

/* The report for all ranks, owned by the caller, of *bytes bytes; NULL: there is no memory for it. */
static struct report *compose_report(const struct rondo_runtime *runtime, size_t *bytes)
{
    const struct rondo_hang *hang = runtime->hang;
    char *text = rondo_hang_compose(hang->statements, runtime->size, 0);
    size_t length = text == NULL ? 0 : strlen(text) + 1;
    if (length > TEXT_MAX)
        length = TEXT_MAX;
    *bytes = sizeof(struct report) + length + 1;
    struct report *report = calloc(1, *bytes);
    for (int rank = 0; report != NULL && rank < runtime->size; rank++)
        for (int i = 0; i < hang->statements[rank].count; i++) {
            const struct rondo_hang_entry *entry = &hang->statements[rank].entries[i];
            uint32_t known = 0;
            while (known < report->comms && report->ids[known] != entry->comm)
                known++;
            if (entry->overdue && known == report->comms && known < COMMS_MAX)
                report->ids[report->comms++] = entry->comm;
        }
    if (report != NULL && text != NULL)
        memcpy(report->text, text, length);
    free(text);
    return report;
}

/* Answers the demands, and forgets the statements (lock held). Returns the report that is due to all ranks, see compose_report;
 * NULL: none is. */
static struct report *end_collecting(struct rondo_runtime *runtime, size_t *bytes)
{
    send_answers(runtime);
    struct report *report = runtime->hang->due ? compose_report(runtime, bytes) : NULL;
    forget(runtime);
    return report;
}

/* Asks all ranks for statements, unless that is under way. demand: the number that rank source gave its demand; 0: source asks
 * because of a timeout. */
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
            if (demand != 0)
                send_answer(runtime, source, demand, NULL);
        }
    }
    if (hang->collecting && demand != 0)
        hang->demanding[source] = demand;
    else if (hang->collecting)
        hang->due = 1;
    pthread_mutex_unlock(&hang->lock);
    const struct query query = {.by_demand = demand != 0};
    for (int rank = 0; begin && rank < runtime->size; rank++)
        rondo_control_send(runtime->control, rank, RONDO_MESSAGE_HANG_QUERY, &query, sizeof(query));
}

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

/* Tells all ranks (lock not held: the report ends communicators) and frees the report. This rank comes first, and at once: a
 * peer that has the report may leave, and this rank must not see the departure before the report. */
static void send_report(struct rondo_runtime *runtime, struct report *report, size_t bytes)
{
    if (report == NULL)
        return;
    take_report(runtime, report, bytes);
    rondo_control_send(runtime->control, RONDO_CONTROL_ALL, RONDO_MESSAGE_HANG_REPORT, report, bytes);
    free(report);
}

static void take_statement(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    struct rondo_hang *hang = runtime->hang;
    struct report *report = NULL;
    size_t report_bytes = 0;
    pthread_mutex_lock(&hang->lock);
    if (hang->collecting && !hang->statements[source].arrived && bytes % sizeof(struct rondo_hang_entry) == 0) {
        struct rondo_hang_statement *statement = &hang->statements[source];
        statement->entries = malloc(bytes + 1);
        if (statement->entries != NULL && bytes > 0) { /* data is NULL where a rank has nothing to state */
            memcpy(statement->entries, data, bytes);
            statement->count = (int) (bytes / sizeof(struct rondo_hang_entry));
        }
        statement->arrived = 1;
        for (int i = 0; i < statement->count; i++)
            statement->entries[i].text[sizeof(statement->entries[i].text) - 1] = '\0';
        int complete = 1;
        for (int rank = 0; rank < runtime->size; rank++)
            complete &= hang->statements[rank].arrived || rondo_is_gone(runtime, rank);
        if (complete)
            report = end_collecting(runtime, &report_bytes);
    }
    pthread_mutex_unlock(&hang->lock);
    send_report(runtime, report, report_bytes);
}

/* ---- every rank ---- */

/* Stores the answer, or that there was one but no memory for it. */
static void take_answer(struct rondo_runtime *runtime, const char *data, size_t bytes)
{
    struct rondo_hang *hang = runtime->hang;
    uint64_t number;
    if (bytes <= sizeof(number))
        return;
    memcpy(&number, data, sizeof(number));
    char *text = rondo_text_copy(data + sizeof(number), bytes - sizeof(number));
    pthread_mutex_lock(&hang->lock);
    int wanted_in_log = hang->logged_demand > hang->answered && hang->logged_demand <= number;
    hang->answered = number > hang->answered ? number : hang->answered;
    free(hang->answer);
    hang->answer = text;
    if (wanted_in_log)
        rondo_log(RONDO_LOG_ERROR, runtime->rank, "%s", text != NULL ? text : NO_MEMORY);
    pthread_mutex_unlock(&hang->lock);
    rondo_event_signal(&hang->answers, &hang->sleepers);
}

/* The rank that is asked for reports: the lowest one that this rank does not know to be gone. Ranks that know of different ones
 * ask different collectors, each of which reports to those that have asked it. */
static int collector_of(const struct rondo_runtime *runtime)
{
    int rank = 0;
    while (rank < runtime->rank && rondo_is_gone(runtime, rank))
        rank++;
    return rank;
}

/* Asks the collector for the latest demand. RONDO_SUCCESS also if it is just going: then the next check asks another one.
 * RONDO_ERR_PEER: no rank can be reached. */
static rondo_result_t send_demand(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    const uint64_t number = hang->demands;
    const int collector = hang->demanded = collector_of(runtime);
    pthread_mutex_unlock(&hang->lock);
    const rondo_result_t result =
        rondo_control_send(runtime->control, collector, RONDO_MESSAGE_HANG_ASK, &number, sizeof(number));
    return result == RONDO_ERR_PEER ? rondo_control_reach(runtime->control, runtime->rank) : result;
}

static rondo_result_t demand(struct rondo_runtime *runtime, int to_log, uint64_t *number)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    *number = ++hang->demands;
    if (to_log)
        hang->logged_demand = *number;
    pthread_mutex_unlock(&hang->lock);
    return send_demand(runtime);
}

rondo_result_t rondo_hang_demand(struct rondo_runtime *runtime, uint64_t *number)
{
    return demand(runtime, 0, number);
}

char *rondo_hang_answer(struct rondo_runtime *runtime, uint64_t number)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    char *text = hang->answered >= number ? strdup(hang->answer != NULL ? hang->answer : NO_MEMORY) : NULL;
    pthread_mutex_unlock(&hang->lock);
    return text;
}

rondo_result_t rondo_report(rondo_t handle, char *text, size_t bytes)
{
    struct rondo_runtime *runtime;
    rondo_result_t result = rondo_runtime_of(handle, "rondo_report", &runtime);
    if (result != RONDO_SUCCESS)
        return result;
    if (text == NULL || bytes == 0)
        return rondo_fail(RONDO_ERR_ARGUMENT, "rondo_report: the text is %p of %zu bytes", (void *) text, bytes);
    struct rondo_hang *hang = runtime->hang;
    uint64_t number, began = rondo_clock_ns();
    result = demand(runtime, 0, &number);
    text[0] = '\0';
    while (result == RONDO_SUCCESS) {
        uint32_t seen = __atomic_load_n(&hang->answers, __ATOMIC_SEQ_CST);
        pthread_mutex_lock(&hang->lock);
        const int answered = hang->answered >= number, lacks = answered && hang->answer == NULL;
        if (answered && !lacks) {
            size_t length = strlen(hang->answer) < bytes ? strlen(hang->answer) : bytes - 1;
            memcpy(text, hang->answer, length);
            text[length] = '\0';
        }
        pthread_mutex_unlock(&hang->lock);
        uint64_t waited = rondo_clock_ns() - began;
        if (answered)
            return lacks ? rondo_fail(RONDO_ERR_MEMORY, "rondo_report: " NO_MEMORY) : RONDO_SUCCESS;
        if ((result = rondo_control_reach(runtime->control, runtime->rank)) != RONDO_SUCCESS)
            break;
        if (waited >= REPORT_NS)
            return rondo_fail(RONDO_ERR_TIMEOUT, "rondo_report: rank %d has not answered for %.1f s", collector_of(runtime),
                              (double) waited / 1e9);
        rondo_event_sleep(&hang->answers, seen, &hang->sleepers, REPORT_NS - waited);
    }
    if (result == RONDO_ERR_PEER)
        rondo_comm_await_failure(runtime->world);
    return result;
}

/* Asks another rank for what the collector has not answered before it went. */
static void renew_demand(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    pthread_mutex_lock(&hang->lock);
    const int renews = hang->answered < hang->demands && rondo_is_gone(runtime, hang->demanded);
    pthread_mutex_unlock(&hang->lock);
    if (renews)
        (void) send_demand(runtime);
}

/* An operation of the communicator of that id is overdue: asks the collector, and another rank if that one goes. Fails the
 * communicator if no report comes. */
static void ask_of_overdue(struct rondo_runtime *runtime, uint64_t now, uint64_t id)
{
    struct rondo_hang *hang = runtime->hang;
    if (hang->asked_ns == 0 || rondo_is_gone(runtime, hang->asked)) {
        hang->asked_ns = hang->asked_ns == 0 ? now : hang->asked_ns;
        hang->asked = collector_of(runtime);
        rondo_control_send(runtime->control, hang->asked, RONDO_MESSAGE_HANG_ASK, NULL, 0);
    }
    if (now - hang->asked_ns < REPORT_NS)
        return;
    struct rondo_comm *comm = rondo_comm_pin(runtime, id);
    if (comm != NULL) {
        rondo_comm_fail_everywhere(comm, RONDO_ERR_TIMEOUT, "stuck for more than %g s, and rank %d sends no hang report",
                                   runtime->settings.timeout, hang->asked);
        rondo_comm_unpin(comm);
    }
    hang->asked_ns = 0;
}

void rondo_hang_check(struct rondo_runtime *runtime)
{
    struct rondo_hang *hang = runtime->hang;
    struct report *report = NULL;
    size_t bytes = 0;
    uint64_t now = rondo_clock_ns(), id, number;
    if (hang->watches_signal && rondo_hang_signal_came())
        demand(runtime, 1, &number);
    renew_demand(runtime);
    pthread_mutex_lock(&hang->lock);
    if (hang->collecting && now - hang->since_ns >= ANSWER_NS && now > hang->since_ns)
        report = end_collecting(runtime, &bytes);
    pthread_mutex_unlock(&hang->lock);
    send_report(runtime, report, bytes);
    if (runtime->settings.timeout <= 0)
        return;
    if (hang->observer->overdue(runtime, now, &id))
        ask_of_overdue(runtime, now, id);
    else
        hang->asked_ns = 0;
}

void rondo_hang_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    switch (type) {
    case RONDO_MESSAGE_HANG_ASK: {
        uint64_t number = 0;
        if (bytes == sizeof(number))
            memcpy(&number, data, sizeof(number));
        begin_collecting(runtime, source, number);
        break;
    }
    case RONDO_MESSAGE_HANG_QUERY: {
        struct query query = {0};
        if (bytes == sizeof(query))
            memcpy(&query, data, sizeof(query));
        if (query.by_demand)
            rondo_flight_dump_ask(runtime);
        state(runtime, source);
        break;
    }
    case RONDO_MESSAGE_HANG_STATE:
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
