/* Failure of communicators (lib/context/failure.h). Relies on the control plane for notices to the other ranks. */
#include "lib/context/failure.h"

#include "lib/base/error.h"
#include "lib/context/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Which communicators a notice is about. */
enum scope {
    SCOPE_COMM = 1, /* the one of its id */
    SCOPE_LINK,     /* those that contain its source and its peer */
    SCOPE_RANK      /* those that contain its source, also those made later */
};

struct notice {
    uint64_t comm;
    uint32_t scope;
    int32_t code;
    int64_t peer;
    char text[1000]; /* only so much of it travels as there is text */
};
#define FAILURE_LOOKS 1000 /* of a millisecond, for a failure that the control thread is about to report */
#define NOTICE_LEAST  offsetof(struct notice, text)
_Static_assert(sizeof(struct notice) <= RONDO_CONTROL_NOTICE_MAX, "a notice must fit into what is set aside for it");

static void tell(struct rondo_runtime *runtime, const struct notice *notice)
{
    rondo_control_notify(runtime->control, RONDO_MESSAGE_FAILURE, notice, NOTICE_LEAST + strlen(notice->text) + 1);
}

/* ---- on this rank ---- */

static int fail(struct rondo_comm *comm, rondo_result_t code, const char *text)
{
    struct rondo_runtime *runtime = comm->runtime;
    if (rondo_comm_failure(comm) == RONDO_SUCCESS)
        for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
            if ((*listener)->impending != NULL)
                (*listener)->impending(comm);
    pthread_mutex_lock(&runtime->lock);
    int first = comm->failed == RONDO_SUCCESS;
    if (first) {
        snprintf(comm->failure, sizeof(comm->failure), "%s", text);
        __atomic_store_n(&comm->failed, (uint32_t) code, __ATOMIC_RELEASE); /* release: the text comes first */
        for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
            if ((*listener)->failing != NULL)
                (*listener)->failing(comm, code);
    }
    pthread_mutex_unlock(&runtime->lock);
    if (!first)
        return 0;
    rondo_log(RONDO_LOG_INFO, runtime->rank, "communicator %llu: %s: %s", (unsigned long long) comm->id, rondo_strerror(code),
              comm->failure);
    for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
        if ((*listener)->failed != NULL)
            (*listener)->failed(comm);
    return 1;
}

void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
{
    char text[sizeof(comm->failure)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fail(comm, code, text);
}

static int has_member(const struct rondo_comm *comm, int rank)
{
    for (int i = 0; i < comm->size; i++)
        if (comm->members[i] == rank)
            return 1;
    return 0;
}

/* The list is searched anew for each communicator, because rondo_comm_fail takes the runtime lock itself. */
int rondo_comms_fail(struct rondo_runtime *runtime, const int *ranks, int count, rondo_result_t code, const char *text)
{
    for (int failed = 0;;) {
        struct rondo_comm *comm;
        pthread_mutex_lock(&runtime->lock);
        for (comm = runtime->comms; comm != NULL; comm = comm->next) {
            int all = rondo_comm_failure(comm) == RONDO_SUCCESS;
            for (int i = 0; i < count && all; i++)
                all = has_member(comm, ranks[i]);
            if (all)
                break;
        }
        if (comm != NULL)
            comm->pins++;
        pthread_mutex_unlock(&runtime->lock);
        if (comm == NULL)
            return failed;
        failed += fail(comm, code, text);
        rondo_comm_unpin(comm);
    }
}

struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id)
{
    pthread_mutex_lock(&runtime->lock);
    struct rondo_comm *comm = runtime->comms;
    while (comm != NULL && comm->id != id)
        comm = comm->next;
    if (comm != NULL)
        comm->pins++;
    pthread_mutex_unlock(&runtime->lock);
    return comm;
}

void rondo_comm_unpin(struct rondo_comm *comm)
{
    pthread_mutex_lock(&comm->runtime->lock);
    comm->pins--;
    pthread_mutex_unlock(&comm->runtime->lock);
}

/* ---- ranks that have gone ---- */

static enum rondo_gone gone_how(const struct rondo_runtime *runtime, int rank)
{
    return (enum rondo_gone) __atomic_load_n(&runtime->gone[rank], __ATOMIC_ACQUIRE);
}

int rondo_is_gone(const struct rondo_runtime *runtime, int rank)
{
    return gone_how(runtime, rank) != RONDO_HERE;
}

static void describe_gone(int rank, enum rondo_gone how, char *text, size_t bytes)
{
    static const char *const words[] = {[RONDO_HERE] = "is here",
                                        [RONDO_DIED] = "has died",
                                        [RONDO_LEFT] = "has left",
                                        [RONDO_UNREACHABLE] = "cannot be reached: the other ranks take this one for dead"};
    snprintf(text, bytes, "rank %d %s", rank, words[how]);
}

void rondo_peer_gone(struct rondo_runtime *runtime, int rank, enum rondo_gone how)
{
    char text[256];
    __atomic_store_n(&runtime->gone[rank], (uint32_t) how, __ATOMIC_RELEASE);
    for (const struct rondo_failure_listener *const *listener = runtime->failure_listeners; *listener != NULL; listener++)
        if ((*listener)->peer_gone != NULL)
            (*listener)->peer_gone(runtime);
    describe_gone(rank, how, text, sizeof(text));
    rondo_comms_fail(runtime, &rank, 1, RONDO_ERR_PEER, text);
}

/* By a member that is gone, if there is one. A rank that has left may have done so because another one died. */
static void fail_by_gone(struct rondo_comm *comm)
{
    char text[256];
    enum rondo_gone worst = RONDO_HERE;
    int rank = -1;
    for (int i = 0; i < comm->size; i++) {
        const enum rondo_gone how = gone_how(comm->runtime, comm->members[i]);
        if (how == RONDO_HERE || (worst != RONDO_HERE && (worst != RONDO_LEFT || how == RONDO_LEFT)))
            continue;
        worst = how;
        rank = comm->members[i];
    }
    if (rank < 0)
        return;
    describe_gone(rank, worst, text, sizeof(text));
    fail(comm, RONDO_ERR_PEER, text);
}

/* ---- on all ranks ---- */

/* Keeps a notice for communicators that are listed later. */
static void remember(struct rondo_runtime *runtime, int source, const struct notice *notice)
{
    pthread_mutex_lock(&runtime->lock);
    struct rondo_early_notice *early = &runtime->early[runtime->early_count++ % RONDO_EARLY_NOTICES];
    early->scope = (int) notice->scope;
    early->source = source;
    early->comm = notice->comm;
    early->code = (rondo_result_t) notice->code;
    snprintf(early->text, sizeof(early->text), "%.*s", (int) sizeof(early->text) - 1, notice->text);
    pthread_mutex_unlock(&runtime->lock);
}

void rondo_comm_fail_early(struct rondo_comm *comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_early_notice found = {.scope = 0};
    pthread_mutex_lock(&runtime->lock);
    for (int i = 0; i < RONDO_EARLY_NOTICES && found.scope == 0; i++) {
        const struct rondo_early_notice *early = &runtime->early[i];
        if ((early->scope == SCOPE_COMM && early->comm == comm->id) ||
            (early->scope == SCOPE_RANK && has_member(comm, early->source)))
            found = *early;
    }
    pthread_mutex_unlock(&runtime->lock);
    if (found.scope != 0)
        fail(comm, found.code, found.text);
    else
        fail_by_gone(comm);
}

/* Fails the communicators that the notice is about. */
static void apply(struct rondo_runtime *runtime, int source, const struct notice *notice)
{
    int both[2] = {source, (int) notice->peer};
    rondo_result_t code = (rondo_result_t) notice->code;
    if (notice->scope == SCOPE_COMM) {
        struct rondo_comm *comm = rondo_comm_pin(runtime, notice->comm);
        if (comm == NULL) {
            remember(runtime, source, notice);
            for (const struct rondo_failure_listener *const *l = runtime->failure_listeners; *l != NULL; l++)
                if ((*l)->unlisted != NULL)
                    (*l)->unlisted(runtime, notice->comm, code);
            comm = rondo_comm_pin(runtime, notice->comm); /* it may have been listed just before it was remembered */
        }
        if (comm == NULL)
            return;
        fail(comm, code, notice->text);
        rondo_comm_unpin(comm);
    } else if (notice->scope == SCOPE_RANK) {
        remember(runtime, source, notice);
        rondo_comms_fail(runtime, both, 1, code, notice->text);
    } else {
        rondo_comms_fail(runtime, both, 2, code, notice->text);
    }
}

void rondo_failure_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    struct notice notice;
    if (bytes <= NOTICE_LEAST || bytes > sizeof(notice))
        return;
    memcpy(&notice, data, bytes);
    notice.text[bytes - NOTICE_LEAST - 1] = '\0';
    if (notice.code == RONDO_SUCCESS || notice.scope < SCOPE_COMM || notice.scope > SCOPE_RANK ||
        (notice.scope == SCOPE_LINK && (notice.peer < 0 || notice.peer >= runtime->size)))
        return;
    apply(runtime, source, &notice);
}

static void fail_everywhere(struct rondo_runtime *runtime, uint64_t id, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void fail_everywhere(struct rondo_runtime *runtime, uint64_t id, rondo_result_t code, const char *format, ...)
{
    struct notice notice = {.comm = id, .scope = SCOPE_COMM, .code = (int32_t) code};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notice.text, sizeof(notice.text), format, arguments);
    va_end(arguments);
    apply(runtime, runtime->rank, &notice); /* first, because a rank that is told may leave at once */
    tell(runtime, &notice);
}

void rondo_comm_fail_by_id(struct rondo_runtime *runtime, uint64_t id, rondo_result_t code, const char *function)
{
    fail_everywhere(runtime, id, code, "%s failed on rank %d: %s", function, runtime->rank, rondo_last_error());
}

void rondo_comm_fail_everywhere(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
{
    char text[sizeof(comm->failure)];
    va_list arguments;
    if (rondo_comm_failure(comm) != RONDO_SUCCESS)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fail_everywhere(comm->runtime, comm->id, code, "%s", text);
}

void rondo_comm_revoke_everywhere(struct rondo_comm *comm)
{
    fail_everywhere(comm->runtime, comm->id, RONDO_ERR_REVOKED, "revoked by rank %d", comm->runtime->rank);
}

void rondo_comm_await_failure(const struct rondo_comm *comm)
{
    static const struct timespec pause = {0, 1000000};
    for (int looks = 0; looks < FAILURE_LOOKS && rondo_comm_failure(comm) == RONDO_SUCCESS; looks++)
        nanosleep(&pause, NULL);
}

rondo_result_t rondo_comm_conclude(struct rondo_comm *comm, const char *function, rondo_result_t result)
{
    if (result == RONDO_SUCCESS || result == RONDO_ERR_ARGUMENT || result == RONDO_ERR_BUFFER || result == RONDO_ERR_STATE ||
        result == RONDO_ERR_UNSUPPORTED)
        return result;
    if (result == RONDO_ERR_PEER || result == RONDO_ERR_TRANSPORT) { /* where another rank may be gone */
        rondo_comm_await_failure(comm);
        if (rondo_comm_failure(comm) != RONDO_SUCCESS)
            return rondo_fail(rondo_comm_failure(comm), "%s: %s", function, comm->failure);
    }
    if (rondo_comm_failure(comm) == RONDO_SUCCESS)
        rondo_comm_fail_by_id(comm->runtime, comm->id, result, function);
    return result;
}

void rondo_rank_fail(struct rondo_runtime *runtime, rondo_result_t code, const char *text)
{
    struct notice notice = {.scope = SCOPE_RANK, .code = (int32_t) code};
    snprintf(notice.text, sizeof(notice.text), "%s", text);
    apply(runtime, runtime->rank, &notice);
    tell(runtime, &notice);
}

void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why)
{
    struct notice notice = {.scope = SCOPE_LINK, .code = (int32_t) RONDO_ERR_PEER, .peer = peer};
    snprintf(notice.text, sizeof(notice.text), "rank %d cannot be reached by rank %d over %s: %s", peer, runtime->rank, network,
             why);
    rondo_log(RONDO_LOG_INFO, runtime->rank, "%s", notice.text);
    if (!rondo_is_gone(runtime, peer))
        apply(runtime, runtime->rank, &notice);
    tell(runtime, &notice);
}
