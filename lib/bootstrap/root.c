/* The thread of a root: which ranks it lets in, and what is due by the clock. See lib/bootstrap/root.h; the steps are those of
 * lib/bootstrap/root_steps.c. One event is fetched at a time, so none is about a member that has been freed. */
#include "lib/bootstrap/root_steps.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/first_root.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    STACK_BYTES = 256 << 10,
    NAMED_MOST = 16,          /* ranks in a text */
    DESCRIPTORS_BESIDE = 128, /* of the root's process, beside a connection to each rank */
    OTHERS_MS = 1000,         /* past the deadline, for another root, whose own deadline it is, to say what is missing */
};

static const char *const unanswered[] = {"", "did not come", "did not listen", "could not be linked"};

static int has_answered(const struct root *root, int place)
{
    return root->members[place] != NULL && root->members[place]->answered >= root->step;
}

/* Names the ranks that have not answered the step, in a text of at least 256 bytes: those of another root by their share.
 * Returns its length. */
static int name_missing(const struct root *root, char *text, size_t bytes)
{
    int count = 0, named = 0;
    for (int place = 0; place < root->most; place++)
        if (!has_answered(root, place))
            count += place < root->count ? 1 : 2;
    int at = snprintf(text, bytes, count == 1 ? "rank" : "ranks");
    for (int place = 0; place < root->most && named < NAMED_MOST; place++) {
        if (has_answered(root, place))
            continue;
        if (place < root->count)
            at += snprintf(text + at, bytes - (size_t) at, "%s %d", named > 0 ? "," : "", root->first + place);
        else
            at += snprintf(text + at, bytes - (size_t) at, "%s %d to %d (or their root)", named > 0 ? "," : "",
                           rondo_job_first_rank(place - root->count + 1, root->size, root->roots),
                           rondo_job_first_rank(place - root->count + 2, root->size, root->roots) - 1);
        named += place < root->count ? 1 : 2;
    }
    if (count > named)
        at += snprintf(text + at, bytes - (size_t) at, " and %d more", count - named);
    return at;
}

/* ---- admitting ---- */

/* Makes room for a connection to each rank: raises the process's limit of descriptors where it is too low and may be raised. */
static rondo_result_t allow_connections(int size)
{
    const rlim_t needed = (rlim_t) size + DESCRIPTORS_BESIDE;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return RONDO_SUCCESS;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= (rlim_t) size)
        return RONDO_SUCCESS;
    return rondo_fail(
        RONDO_ERR_SYSTEM,
        "a job of %d ranks takes as many descriptors in the process of its root, which may have %llu (ulimit -Hn)", size,
        (unsigned long long) limit.rlim_cur);
}

/* share: that of this root. */
static rondo_result_t set_size(struct root *root, int size, int roots, int share)
{
    const int first = rondo_job_first_rank(share, size, roots), count = rondo_job_first_rank(share + 1, size, roots) - first;
    const int most = count + (share == 0 ? roots - 1 : 0);
    rondo_result_t result = allow_connections(most);
    if (result != RONDO_SUCCESS)
        return result;
    root->members = calloc((size_t) most, sizeof(*root->members));
    if (root->members == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a job of %d ranks", size);
    root->most = most;
    root->size = size;
    root->roots = roots;
    root->share = share;
    root->first = first;
    root->count = count;
    return RONDO_SUCCESS;
}

/* Decides on a rank that has proven the secret; *detail is what the verdict carries. */
static enum rondo_handshake_verdict decide(struct root *root, const struct rondo_handshake_claim *claim, int *detail)
{
    if (root->step == FAILED)
        return RONDO_HANDSHAKE_OVER;
    const int share = claim->is_root ? 0 : rondo_job_share(claim->rank, claim->size, claim->roots);
    if (root->size == 0 && set_size(root, claim->size, claim->roots, share) != RONDO_SUCCESS) {
        rondo_log(RONDO_LOG_ERROR, claim->rank, "the root cannot let this rank in: %s", rondo_last_error());
        return RONDO_HANDSHAKE_OVER;
    }
    *detail = root->size;
    if (claim->size != root->size)
        return RONDO_HANDSHAKE_SIZE;
    *detail = root->roots;
    if (claim->roots != root->roots || share != root->share)
        return RONDO_HANDSHAKE_ROOTS;
    if (root->step == FORMED)
        return RONDO_HANDSHAKE_OVER;
    if (root->members[place_of(root, claim->rank, claim->is_root)] != NULL)
        return RONDO_HANDSHAKE_TAKEN;
    *detail = memcmp(claim->process, root->process, sizeof(root->process)) == 0;
    return RONDO_HANDSHAKE_WELCOME;
}

static void admit(struct root *root, struct rondo_guest *guest, const struct rondo_handshake_claim *claim)
{
    int local = 0, is_own = guest == root->own_guest;
    const enum rondo_handshake_verdict verdict = decide(root, claim, &local);
    struct member *member = calloc(1, sizeof(*member));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
    struct member prepared = {.watched = RONDO_WATCHED_CONNECTION,
                              .rank = claim->rank,
                              .is_root = claim->is_root,
                              .local = local,
                              .is_network = guest->is_network};
    if (is_own)
        root->own_guest = NULL;
    /* Without memory the peer is told that the root is ending, and tries again. */
    int open = rondo_admission_answer(root->admission, guest, member != NULL ? verdict : RONDO_HANDSHAKE_OVER, local,
                                      &prepared.connection);
    if (open && epoll_ctl(root->epoll, EPOLL_CTL_ADD, prepared.connection.fd, &event) != 0) {
        rondo_frame_connection_close(&prepared.connection);
        open = 0;
    }
    if (!open) {
        free(member);
        if (is_own)
            rondo_root_fail(root, "the rank that holds the root has given up");
        return;
    }
    *member = prepared;
    root->members[place_of(root, claim->rank, claim->is_root)] = member;
    if (is_own)
        root->anchor = member;
    int64_t until = rondo_clock_ms() + claim->wait_ms;
    if (root->joined++ == 0 || until < root->deadline) {
        root->deadline = until;
        root->waited = (double) claim->wait_ms / 1000;
    }
    rondo_log(RONDO_LOG_DEBUG, -1, "root: %srank %d of %d has joined", claim->is_root ? "the root of " : "", claim->rank,
              claim->size);
    if (is_own && root->reaching != NULL)
        rondo_root_reach_first(root);
    if (!claim->is_root) /* a root answers once its ranks have joined */
        rondo_root_answer(root, member);
}

/* ---- the thread ---- */

/* The deadline of a step has passed. What another root has not done, that root knows better, and says so at its own deadline,
 * which may be a little later. */
static void fail_step(struct root *root)
{
    char reason[512] = "no rank came";
    int own = 0;
    for (int place = 0; place < root->count; place++)
        own += has_answered(root, place);
    if (root->joined > 0 && own == root->count && !root->is_late) {
        root->is_late = 1;
        root->deadline += (is_first(root) ? 1 : 2) * OTHERS_MS;
        return;
    }
    if (root->joined > 0 && root->answers == root->most) {
        snprintf(reason, sizeof(reason), "the first root did not %s within %.*f s",
                 root->upstream != NULL ? "answer" : "let this one in", root->waited < 10, root->waited);
    } else if (root->joined > 0) {
        int at = name_missing(root, reason, sizeof(reason));
        snprintf(reason + at, sizeof(reason) - (size_t) at, " of %d %s within %.*f s", root->size, unanswered[root->step],
                 root->waited < 10, root->waited);
    }
    rondo_root_fail(root, reason);
}

/* Does what is due by the clock. Returns the milliseconds until something is due again; -1: never. */
static int expire(struct root *root)
{
    const int64_t now = rondo_clock_ms();
    int64_t next = rondo_admission_expire(root->admission, now);
    if (root->deadline <= now && root->step < FORMED)
        fail_step(root);
    else if (root->deadline <= now && root->upstream != NULL)
        rondo_root_free_member(root, root->upstream);
    if (root->deadline <= now && root->step >= FORMED)
        for (int place = 0; place < root->most; place++)
            if (root->members[place] != NULL && (root->step == FAILED || root->members[place] != root->anchor))
                rondo_root_free_member(root, root->members[place]);
    rondo_root_settle(root);
    if (root->deadline > now && root->deadline < next)
        next = root->deadline;
    return next == INT64_MAX ? -1 : next - now > 1000000 ? 1000000 : (int) (next - now);
}

static int is_over(const struct root *root)
{
    for (int place = 0; root->step >= FORMED && place < root->most; place++)
        if (root->members[place] != NULL)
            return 0;
    return root->step >= FORMED && root->upstream == NULL;
}

static void serve(struct root *root, const struct epoll_event *event)
{
    enum rondo_watched *watched = event->data.ptr;
    struct rondo_handshake_claim claim;
    if (watched == &root->reached_watched) {
        rondo_root_take_first(root);
        return;
    }
    if (*watched == RONDO_WATCHED_CONNECTION) {
        struct member *member = (struct member *) watched;
        if ((event->events & EPOLLOUT) != 0)
            rondo_root_flush(root, member);
        if ((event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
            rondo_root_read(root, member);
        return;
    }
    struct rondo_guest *guest = rondo_admission_serve(root->admission, watched, &claim);
    if (guest != NULL)
        admit(root, guest, &claim);
}

static void destroy(struct root *root)
{
    struct rondo_frame_connection unused = {.fd = -1};
    for (int place = 0; place < root->most; place++)
        if (root->members[place] != NULL)
            rondo_root_free_member(root, root->members[place]);
    if (root->upstream != NULL)
        rondo_root_free_member(root, root->upstream);
    rondo_admission_close(root->admission); /* at once: its thread may still try for a while */
    if (root->reaching != NULL && rondo_first_root_end(root->reaching, &unused) == RONDO_SUCCESS)
        rondo_frame_connection_close(&unused);
    if (root->epoll >= 0)
        close(root->epoll);
    if (root->reached >= 0)
        close(root->reached);
    free(root->places);
    free(root->members);
    free(root);
}

static void *run(void *argument)
{
    struct root *root = argument;
    for (int wait = expire(root); !is_over(root); wait = expire(root)) {
        struct epoll_event event;
        if (epoll_wait(root->epoll, &event, 1, wait) > 0)
            serve(root, &event);
    }
    destroy(root);
    return NULL;
}

static rondo_result_t prepare(struct root *root)
{
    root->epoll = epoll_create1(EPOLL_CLOEXEC);
    rondo_result_t result = root->epoll < 0 ? rondo_fail(RONDO_ERR_SYSTEM, "epoll_create1: %s", strerror(errno))
                                            : rondo_admission_open(root->admission, root->epoll);
    if (result == RONDO_SUCCESS && (root->reached = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0)
        result = rondo_fail(RONDO_ERR_SYSTEM, "eventfd: %s", strerror(errno));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &root->reached_watched};
    root->reached_watched = RONDO_WATCHED_OTHER;
    if (result == RONDO_SUCCESS && epoll_ctl(root->epoll, EPOLL_CTL_ADD, root->reached, &event) != 0)
        result = rondo_fail(RONDO_ERR_SYSTEM, "epoll_ctl: %s", strerror(errno));
    if (result == RONDO_SUCCESS && root->options.size > 0)
        result = set_size(root, root->options.size, root->options.roots > 0 ? root->options.roots : 1, root->options.share);
    if (result == RONDO_SUCCESS && root->options.first != NULL)
        result = rondo_first_root_prepare(&root->reaching, root->options.first);
    root->options.first = NULL; /* the caller's */
    if (result == RONDO_SUCCESS)
        result = rondo_process_token(root->process);
    if (result != RONDO_SUCCESS || root->options.local < 0)
        return result;
    root->own_guest = rondo_admission_invite(root->admission, root->options.local);
    root->options.local = -1; /* closed, or the guest's */
    return root->own_guest != NULL ? RONDO_SUCCESS
                                   : rondo_fail(RONDO_ERR_SYSTEM, "the root cannot reach its own rank: %s", strerror(errno));
}

rondo_result_t rondo_root_start(const struct rondo_root_options *options)
{
    struct root *root = calloc(1, sizeof(*root));
    struct rondo_admission orphaned = options->admission;
    if (root == NULL) {
        rondo_admission_close(&orphaned);
        if (options->local >= 0)
            rondo_process_socket_close(options->local);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the root");
    }
    explicit_bzero(&orphaned, sizeof(orphaned));
    root->options = *options;
    root->step = JOINING;
    root->epoll = root->reached = -1;
    root->admission = &root->options.admission;
    root->waited = options->timeout;
    root->deadline = rondo_clock_ms() + (int64_t) (options->timeout * 1000);
    rondo_result_t result = prepare(root);
    if (result == RONDO_SUCCESS)
        result = rondo_thread_start(NULL, "rondo-root", STACK_BYTES, run, root);
    if (result != RONDO_SUCCESS) {
        if (root->options.local >= 0)
            rondo_process_socket_close(root->options.local);
        destroy(root);
    }
    return result;
}
