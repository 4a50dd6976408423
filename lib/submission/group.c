/* Groups (lib/submission/group.h): collecting requests, and starting them together in an order that lets no rank wait for
 * another for ever. Relies on group_owner, by which one thread at a time collects. */
#include "lib/submission/group.h"

#include "device/device.h"
#include "lib/base/error.h"
#include "lib/context/handles.h"
#include "lib/submission/progress.h"
#include "lib/submission/request.h"
#include "lib/submission/state.h"
#include "lib/submission/stream.h"

/* A name of the calling thread: no two living threads have the same, and none has 0. */
static uintptr_t this_thread(void)
{
    static _Thread_local char own;
    return (uintptr_t) &own;
}

/* Relaxed: only the calling thread sets group_owner to its name or ends that, and only it reads what it has collected. */
int rondo_group_is_open(const struct rondo_comm *comm)
{
    return __atomic_load_n(&comm->requests->group_owner, __ATOMIC_RELAXED) == this_thread();
}

/* The first failure. */
static rondo_result_t first_of(rondo_result_t before, rondo_result_t now)
{
    return before == RONDO_SUCCESS ? now : before;
}

static void append(struct rondo_group *group, struct rondo_request *request)
{
    request->next_grouped = NULL;
    if (group->last != NULL)
        group->last->next_grouped = request;
    else
        group->first = request;
    group->last = request;
}

/* Makes the requests of the collected calls, except of the first begun ones. */
static void make_requests(struct rondo_comm *comm, struct rondo_group *group, int begun)
{
    for (int i = begun; i < group->called; i++) {
        struct rondo_request *request = NULL;
        const rondo_result_t made = rondo_request_make_blocking(comm, group->known[i].call, &request);
        if (made == RONDO_SUCCESS)
            append(group, request);
        group->result = first_of(group->result, made);
    }
    group->called = 0;
}

int rondo_group_joins(struct rondo_comm *comm, struct rondo_request *request)
{
    if (!rondo_group_is_open(comm))
        return 0;
    make_requests(comm, &comm->requests->collected, 0);
    append(&comm->requests->collected, request);
    return 1;
}

int rondo_group_notes(struct rondo_comm *comm, const struct rondo_known_call *known)
{
    struct rondo_group *group = &comm->requests->collected;
    if (group->first != NULL || group->called == RONDO_GROUP_CALLS)
        return 0;
    const int i = group->called++;
    group->calls[i] = *known->call;
    group->known[i] = (struct rondo_known_call){known->place, &group->calls[i], known->reachable};
    return 1;
}

rondo_result_t rondo_group_start(rondo_comm_t handle)
{
    struct rondo_comm *comm;
    uintptr_t none = 0;
    rondo_result_t result = rondo_comm_of(handle, "rondo_group_start", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    /* Acquire pairs with the release in rondo_group_end: the list is empty. */
    if (!__atomic_compare_exchange_n(&comm->requests->group_owner, &none, this_thread(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return rondo_fail(RONDO_ERR_STATE, "rondo_group_start: a group is open on this communicator");
    return RONDO_SUCCESS;
}

/* Takes the requests that belong together out of the list, in their order. belongs: whether a request belongs to first, the
 * first one taken; NULL: none has been taken yet. Returns the list of those taken. */
static struct rondo_request *take(struct rondo_request **list,
                                  int (*belongs)(const struct rondo_request *request, const struct rondo_request *first))
{
    struct rondo_request *first = NULL, **last = &first, **link = list;
    while (*link != NULL) {
        struct rondo_request *request = *link;
        if (!belongs(request, first)) {
            link = &request->next_grouped;
            continue;
        }
        *link = request->next_grouped;
        request->next_grouped = NULL;
        *last = request;
        last = &request->next_grouped;
    }
    return first;
}

/* Puts the taken requests before the list's. */
static void put_first(struct rondo_request **list, struct rondo_request *taken)
{
    struct rondo_request *rest = *list;
    *list = taken;
    while (*list != NULL)
        list = &(*list)->next_grouped;
    *list = rest;
}

/* Requests in stream order, of one stream. */
static int is_of_stream(const struct rondo_request *request, const struct rondo_request *first)
{
    return request->streamed && (first == NULL || request->stream == first->stream);
}

/* Sends come first, because they can complete before the receives begin (rondo_submit). */
static int is_sent(const struct rondo_request *request, const struct rondo_request *first)
{
    (void) first;
    return request->call.kind == RONDO_KIND_SEND_TO;
}

/* Takes the requests in stream order out of the list, and enqueues those of one stream together. */
static rondo_result_t enqueue_group(struct rondo_request **list)
{
    rondo_result_t result = RONDO_SUCCESS;
    for (struct rondo_request *first; (first = take(list, is_of_stream)) != NULL;)
        result = first_of(result, rondo_stream_enqueue(first));
    return result;
}

/* Starts the requests in their order, and puts the blocking ones into the other list. A last one that is blocking is returned
 * without being started; NULL: there is none. */
static struct rondo_request *start_group(struct rondo_request *request, struct rondo_request **blocking)
{
    for (struct rondo_request *next; request != NULL; request = next) {
        next = request->next_grouped; /* a started request may be finished and freed by another thread */
        int waited = request->blocking;
        if (waited && next == NULL)
            return request;
        if (waited) {
            request->next_grouped = *blocking;
            *blocking = request;
        }
        rondo_submit(request->runtime, &(struct rondo_submission){.request = request,
                                                                  .count = 1,
                                                                  .assist = waited ? RONDO_ASSIST_NOW : RONDO_ASSIST_MAYBE});
    }
    return NULL;
}

/* Moves what the thread has collected to *group, sends before receives (is_sent), and lets other threads open a group. The
 * release makes the empty list visible to the thread that opens the next one. */
static void close_group(struct rondo_comm *comm, struct rondo_group *group)
{
    struct rondo_group *open = &comm->requests->collected;
    group->first = open->first;
    group->last = open->last;
    group->result = open->result;
    group->called = 0;
    for (int sent = 1; sent >= 0; sent--)
        for (int i = 0; i < open->called; i++) {
            const struct rondo_known_call *known = &open->known[i];
            if ((known->call->kind == RONDO_KIND_SEND_TO) != sent)
                continue;
            struct rondo_call *call = &group->calls[group->called];
            *call = *known->call;
            group->known[group->called++] = (struct rondo_known_call){known->place, call, known->reachable};
        }
    open->first = open->last = NULL;
    open->called = 0;
    open->result = RONDO_SUCCESS;
    __atomic_store_n(&comm->requests->group_owner, 0, __ATOMIC_RELEASE);
}

rondo_result_t rondo_group_end(rondo_comm_t handle)
{
    struct rondo_comm *comm;
    struct rondo_request *blocking = NULL, *next;
    struct rondo_group group;
    rondo_result_t result = rondo_comm_of(handle, "rondo_group_end", &comm);
    if (result != RONDO_SUCCESS)
        return result;
    if (!rondo_group_is_open(comm))
        return rondo_fail(RONDO_ERR_STATE, "rondo_group_end: this thread has no group open on the communicator");
    close_group(comm, &group);
    if (group.called > 0) {
        struct rondo_submission submission = {.calls = group.known, .count = group.called, .waits = 1};
        make_requests(comm, &group, rondo_submit(comm->runtime, &submission));
        if ((blocking = submission.stuck) != NULL)
            blocking->next_grouped = NULL;
    }
    result = group.result;
    struct rondo_request *first = group.first;
    if (first != NULL && comm->runtime->device->kind->enqueue != NULL)
        result = first_of(result, enqueue_group(&first));
    put_first(&first, take(&first, is_sent));
    struct rondo_request *last = start_group(first, &blocking);
    if (last != NULL)
        result = first_of(result, rondo_progress_run(last));
    for (; blocking != NULL; blocking = next) {
        next = blocking->next_grouped;
        result = first_of(result, rondo_progress_wait(blocking));
    }
    return result;
}
