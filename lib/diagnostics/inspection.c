/* See lib/diagnostics/inspection.h. lib/diagnostics/rank_state.c composes what a rank tells of itself. */
#include "lib/diagnostics/inspection.h"

#include "device/abi/platform.h"
#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/bootstrap/address.h"
#include "lib/bootstrap/process_socket.h"
#include "lib/diagnostics/hang.h"
#include "lib/diagnostics/inspection_protocol.h"
#include "lib/diagnostics/query_server.h"
#include "lib/diagnostics/rank_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEP_NS    20000000u   /* between two looks at the sockets */
#define METRICS_NS 5000000000u /* between two writings of the file */
#define ANSWER_NS  2000000000u /* longest wait for the states of other ranks */
#define STALE_NS   3000000000u /* age of a question for whose answers a caller no longer waits */
#define PATH_BYTES 4200
#define PORT_MOST  65535

struct rondo_inspection {
    struct rondo_query_server socket, web; /* the poller's, like what follows */
    const char *path;                      /* the beginning of RONDO_METRICS' files; NULL: none are to be written */
    char host[256], port[16];              /* where RONDO_METRICS is asked for; empty: nowhere */
    uint64_t looked_ns, written_ns;
    pthread_mutex_t lock; /* guards what follows: the control thread fills it in */
    uint64_t question;    /* the last one asked */
    uint64_t asked_ns;    /* 0: it has been answered, or none was asked */
    char **states;        /* [size], owned; NULL: the rank has not answered */
    int size;
};

/* A question or an answer between ranks; a state's text follows. */
struct state_message {
    uint64_t question;
};

/* ---- the states of all ranks ---- */

static void forget(struct rondo_inspection *inspection)
{
    for (int rank = 0; inspection->states != NULL && rank < inspection->size; rank++)
        free(inspection->states[rank]);
    free(inspection->states);
    inspection->states = NULL;
    inspection->asked_ns = 0;
}

/* Asks all ranks for their states, unless that is under way. Answers that no caller has taken are forgotten. */
static void ask(struct rondo_runtime *runtime)
{
    struct rondo_inspection *inspection = runtime->inspection;
    struct state_message message = {0};
    const uint64_t now = rondo_clock_ns();
    pthread_mutex_lock(&inspection->lock);
    if (inspection->asked_ns != 0 && now - inspection->asked_ns > STALE_NS)
        forget(inspection);
    if (inspection->asked_ns == 0) {
        inspection->size = runtime->size;
        inspection->states = calloc((size_t) runtime->size, sizeof(*inspection->states));
        if (inspection->states != NULL) {
            message.question = ++inspection->question;
            inspection->asked_ns = now;
        }
    }
    pthread_mutex_unlock(&inspection->lock);
    if (message.question == 0)
        return;
    rondo_control_send(runtime->control, RONDO_CONTROL_ALL, RONDO_MESSAGE_STATE_ASK, &message, sizeof(message));
    char *mine = rondo_rank_state(runtime);
    pthread_mutex_lock(&inspection->lock);
    inspection->states[runtime->rank] = mine;
    pthread_mutex_unlock(&inspection->lock);
}

/* Whether no state is missing, or it is too late for those that are. Lock held. */
static int is_complete(const struct rondo_runtime *runtime)
{
    const struct rondo_inspection *inspection = runtime->inspection;
    if (rondo_clock_ns() - inspection->asked_ns > ANSWER_NS)
        return 1;
    for (int rank = 0; rank < runtime->size; rank++)
        if (inspection->states[rank] == NULL && !rondo_is_gone(runtime, rank))
            return 0;
    return 1;
}

/* The states of all ranks as JSON; NULL if some are missing, or there is no memory. */
static char *take_states(struct rondo_runtime *runtime)
{
    struct rondo_inspection *inspection = runtime->inspection;
    struct rondo_text text = {0};
    char *result = NULL;
    pthread_mutex_lock(&inspection->lock);
    if (inspection->asked_ns != 0 && is_complete(runtime)) {
        int written = 0;
        rondo_text_add(&text, "{\"job\": \"%s\", \"size\": %d, \"asked\": %d, \"silent\": [", runtime->job, runtime->size,
                       runtime->rank);
        for (int rank = 0; rank < runtime->size; rank++)
            if (inspection->states[rank] == NULL)
                rondo_text_add(&text, "%s%d", written++ > 0 ? ", " : "", rank);
        rondo_text_add(&text, "], \"ranks\": [");
        written = 0;
        for (int rank = 0; rank < runtime->size; rank++)
            if (inspection->states[rank] != NULL)
                rondo_text_add(&text, "%s\n%s", written++ > 0 ? "," : "", inspection->states[rank]);
        rondo_text_add(&text, "]}\n");
        (void) rondo_text_finish(&text, RONDO_SUCCESS, &result);
        forget(inspection);
    }
    pthread_mutex_unlock(&inspection->lock);
    return result;
}

static void take_state(struct rondo_runtime *runtime, int source, const char *data, size_t bytes)
{
    struct rondo_inspection *inspection = runtime->inspection;
    struct state_message message;
    memcpy(&message, data, sizeof(message));
    pthread_mutex_lock(&inspection->lock);
    if (inspection->asked_ns != 0 && message.question == inspection->question && inspection->states[source] == NULL)
        inspection->states[source] = rondo_text_copy(data + sizeof(message), bytes - sizeof(message));
    pthread_mutex_unlock(&inspection->lock);
}

/* Answers rank source. A state that is too long for a message is left out, and the rank counts as silent. */
static void send_state(struct rondo_runtime *runtime, int source, const void *question)
{
    char *state = rondo_rank_state(runtime);
    const size_t length = state != NULL ? strlen(state) : 0, bytes = sizeof(struct state_message) + length;
    char *message = state != NULL ? malloc(bytes) : NULL;
    if (message != NULL) {
        memcpy(message, question, sizeof(struct state_message));
        memcpy(message + sizeof(struct state_message), state, length);
        rondo_control_send(runtime->control, source, RONDO_MESSAGE_STATE, message, bytes);
    }
    free(message);
    free(state);
}

void rondo_inspection_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    if (type == RONDO_MESSAGE_STATE_ASK && bytes == sizeof(struct state_message))
        send_state(runtime, source, data);
    else if (type == RONDO_MESSAGE_STATE && bytes > sizeof(struct state_message))
        take_state(runtime, source, data, bytes);
}

/* ---- who asks ---- */

static char *answer(void *argument, struct rondo_query_caller *caller)
{
    struct rondo_runtime *runtime = argument;
    if (strcmp(caller->request, "job") == 0)
        return rondo_text_format("{\"job\": \"%s\", \"rank\": %d, \"size\": %d, \"pid\": %ld}\n", runtime->job, runtime->rank,
                                 runtime->size, (long) getpid());
    if (strcmp(caller->request, "state") == 0) {
        ask(runtime);
        return take_states(runtime);
    }
    if (strcmp(caller->request, "report") == 0) {
        if (caller->ticket == 0 && rondo_hang_demand(runtime, &caller->ticket) != RONDO_SUCCESS)
            return rondo_text_format("no report: %s\n", rondo_last_error());
        return rondo_hang_answer(runtime, caller->ticket);
    }
    return rondo_text_format("not a request: job, state or report\n");
}

static char *answer_web(void *argument, struct rondo_query_caller *caller)
{
    static const char *const pages[] = {"GET / ", "GET /metrics "};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (strncmp(caller->request, pages[i], strlen(pages[i])) == 0) {
            char *text = rondo_rank_metrics(argument);
            char *page = text == NULL ? rondo_text_format("HTTP/1.0 503 Service Unavailable\r\n\r\n")
                                      : rondo_text_format("HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                                                          "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                                                          strlen(text), text);
            free(text);
            return page;
        }
    return rondo_text_format("HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

/* ---- the sockets ---- */

/* Serves the address. Returns 0 or an errno value. */
static int serve(struct rondo_query_server *server, const struct rondo_address *address)
{
    const int listener = rondo_address_listen(address);
    return listener < 0 ? errno : rondo_query_server_begin(server, listener);
}

static void open_socket(struct rondo_runtime *runtime)
{
    static uint32_t opened; /* runtimes of this process; atomic */
    char name[64];
    struct rondo_address address;
    snprintf(name, sizeof(name), RONDO_INSPECTION_NAME ".%ld.%u", (long) getpid(),
             __atomic_fetch_add(&opened, 1, __ATOMIC_RELAXED));
    const int error =
        rondo_address_abstract(name, &address) == RONDO_SUCCESS ? serve(&runtime->inspection->socket, &address) : ENAMETOOLONG;
    if (error != 0)
        rondo_log(RONDO_LOG_WARN, runtime->rank, "`rondo top` cannot ask this rank: %s", strerror(error));
}

/* The port of RONDO_METRICS is for the first rank of a host, and the others have those after it. */
static rondo_result_t listen_for_web(struct rondo_runtime *runtime)
{
    struct rondo_inspection *inspection = runtime->inspection;
    struct rondo_address found[RONDO_ADDRESS_MOST];
    char port[24];
    int count, again;
    const int before = runtime->hosts.local[runtime->rank];
    const long number = atol(inspection->port) + before;
    if (number > PORT_MOST)
        return rondo_fail(RONDO_ERR_ARGUMENT, "RONDO_METRICS=%s:%s: no port is left for this host's rank %d", inspection->host,
                          inspection->port, before);
    snprintf(port, sizeof(port), "%ld", number);
    const rondo_result_t result = rondo_address_resolve("RONDO_METRICS", inspection->host, port, found, &count, &again);
    if (result != RONDO_SUCCESS)
        return result;
    const int error = serve(&inspection->web, &found[0]);
    return error == 0 ? RONDO_SUCCESS
                      : rondo_fail(RONDO_ERR_SYSTEM, "RONDO_METRICS: cannot listen at %s:%ld: %s", inspection->host, number,
                                   strerror(error));
}

rondo_result_t rondo_inspection_create(struct rondo_inspection **inspection)
{
    const char *metrics;
    struct rondo_inspection *made = calloc(1, sizeof(*made));
    *inspection = NULL;
    if (made == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for inspection");
    rondo_result_t result = rondo_environment_text("RONDO_METRICS", &metrics);
    if (result == RONDO_SUCCESS && metrics != NULL && strchr(metrics, '/') != NULL)
        made->path = metrics;
    else if (result == RONDO_SUCCESS && metrics != NULL)
        result = rondo_address_split("RONDO_METRICS", metrics, 0, made->host, made->port);
    if (result == RONDO_ERR_BOOTSTRAP)
        result =
            rondo_fail(RONDO_ERR_ARGUMENT,
                       "RONDO_METRICS=\"%s\" must be host:port, or the beginning of a path with at least one slash", metrics);
    if (result != RONDO_SUCCESS) {
        free(made);
        return result;
    }
    made->socket.listener = made->web.listener = -1;
    pthread_mutex_init(&made->lock, NULL);
    *inspection = made;
    return RONDO_SUCCESS;
}

void rondo_inspection_open(struct rondo_runtime *runtime)
{
    struct rondo_inspection *inspection = runtime->inspection;
    const struct rondo_query_server server = {.listener = -1, .argument = runtime};
    inspection->socket = inspection->web = server;
    inspection->socket.end = "\n";
    inspection->socket.is_welcome = rondo_address_same_user_or_root;
    inspection->socket.answer = answer;
    inspection->web.end = "\r\n\r\n";
    inspection->web.answer = answer_web;
    open_socket(runtime);
    if (inspection->port[0] != '\0' && listen_for_web(runtime) != RONDO_SUCCESS)
        rondo_log(RONDO_LOG_WARN, runtime->rank, "%s", rondo_last_error());
}

static void write_metrics(struct rondo_runtime *runtime)
{
    struct rondo_inspection *inspection = runtime->inspection;
    char path[PATH_BYTES], reason[RONDO_FILE_REASON_BYTES];
    char *text = rondo_rank_metrics(runtime);
    snprintf(path, sizeof(path), "%s%d.prom", inspection->path, runtime->rank);
    const int error = text != NULL ? rondo_file_replace(path, text, strlen(text)) : ENOMEM;
    free(text);
    if (error == 0)
        return;
    inspection->path = NULL; /* one warning is enough */
    rondo_log(RONDO_LOG_WARN, runtime->rank, "RONDO_METRICS: cannot write %s: %s", path, rondo_file_reason(error, reason));
}

void rondo_inspection_check(struct rondo_runtime *runtime)
{
    struct rondo_inspection *inspection = runtime->inspection;
    const uint64_t now = rondo_clock_ns();
    if (now - inspection->looked_ns < STEP_NS)
        return;
    inspection->looked_ns = now;
    rondo_query_server_step(&inspection->socket);
    rondo_query_server_step(&inspection->web);
    if (inspection->path != NULL && now - inspection->written_ns >= METRICS_NS) {
        inspection->written_ns = now;
        write_metrics(runtime);
    }
}

void rondo_inspection_close(struct rondo_inspection *inspection)
{
    if (inspection == NULL)
        return;
    rondo_query_server_end(&inspection->socket);
    rondo_query_server_end(&inspection->web);
}

void rondo_inspection_destroy(struct rondo_inspection *inspection)
{
    if (inspection == NULL)
        return;
    forget(inspection);
    pthread_mutex_destroy(&inspection->lock);
    free(inspection);
}
