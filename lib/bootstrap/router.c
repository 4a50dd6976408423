/* See lib/bootstrap/router.h. One epoll loop over non-blocking sockets: which connections are admitted, and how long each may
 * take. What passes between admitted members is lib/bootstrap/members.h's. */
#include "lib/bootstrap/router.h"

#include "lib/bootstrap/address.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/control.h"
#include "lib/base/error.h"
#include "lib/bootstrap/members.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    PENDING_MOST = 128,    /* unauthenticated connections; one more ends the oldest */
    PENDING_MS = 5000,     /* for an unauthenticated connection to send its hello */
    ACCEPT_ROUND = 64,     /* connections accepted before the next event is served */
    ACCEPT_PAUSE_MS = 100, /* when the process is out of descriptors */
    STACK_BYTES = 256 << 10,
};

struct router {
    struct rondo_router_options options;
    struct rondo_members members;
    int64_t deadline;     /* by which all ranks must have joined */
    int64_t accept_again; /* 0: accepting */
    double waited;        /* seconds that the deadline stands for */
    unsigned char process[RONDO_PROCESS_TOKEN_BYTES];
};

static int is_unauthenticated(const struct router *router, const struct rondo_member *member)
{
    return member->phase == RONDO_MEMBER_PENDING && member != router->members.anchor;
}

static void drop_oldest_unauthenticated(struct router *router)
{
    struct rondo_member *oldest = NULL;
    for (struct rondo_member *member = router->members.first; member != NULL; member = member->next)
        if (is_unauthenticated(router, member))
            oldest = member;
    if (oldest != NULL)
        rondo_members_end(&router->members, oldest);
}

/* Makes a member of fd, which is closed on failure, and sends it a challenge. Returns NULL on failure. */
static struct rondo_member *send_challenge(struct router *router, int fd, const struct rondo_hmac *secret, int64_t deadline)
{
    rondo_address_tune(fd);
    struct rondo_member *member = rondo_members_add(&router->members, fd);
    if (member == NULL)
        return NULL;
    member->secret = secret;
    member->handshake.encrypts = router->options.encrypts;
    member->deadline = deadline;
    /* A fresh socket takes so few bytes at once; one that does not is dropped rather than waited for. */
    if (rondo_handshake_make_challenge(&member->handshake) != RONDO_SUCCESS ||
        rondo_address_send(fd, member->handshake.challenge, RONDO_HANDSHAKE_CHALLENGE) != 0) {
        rondo_members_end(&router->members, member);
        return NULL;
    }
    return member;
}

static void accept_some(struct router *router, int listener)
{
    for (int i = 0; i < ACCEPT_ROUND; i++) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof(from);
        int fd = rondo_process_socket_accept(listener, (struct sockaddr *) &from, &bytes);
        if (fd < 0) {
            /* Out of descriptors or memory: the listener stays readable, so it must be left alone for a while. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                drop_oldest_unauthenticated(router);
                router->accept_again = rondo_clock_ms() + ACCEPT_PAUSE_MS;
            }
            return;
        }
        if (from.ss_family == AF_UNIX && !rondo_address_same_user(fd)) {
            rondo_process_socket_close(fd);
            continue;
        }
        if (router->members.counts[RONDO_MEMBER_PENDING] >= PENDING_MOST)
            drop_oldest_unauthenticated(router);
        send_challenge(router, fd, from.ss_family == AF_UNIX ? &router->options.secret : &router->options.tcp_secret,
                       rondo_clock_ms() + PENDING_MS);
    }
}

/* Decides on a rank that has proven the secret; *detail is what the verdict carries. */
static enum rondo_handshake_verdict decide_verdict(struct router *router, const struct rondo_handshake_claim *claim,
                                                   int *detail)
{
    struct rondo_members *members = &router->members;
    if (members->failed || (members->size == 0 && rondo_members_resize(members, claim->size) != RONDO_SUCCESS))
        return RONDO_HANDSHAKE_OVER;
    *detail = members->size;
    if (claim->size != members->size)
        return RONDO_HANDSHAKE_SIZE;
    if (members->by_rank[claim->rank] != NULL)
        return RONDO_HANDSHAKE_TAKEN;
    if (members->gone[claim->rank])
        return RONDO_HANDSHAKE_OVER;
    *detail = memcmp(claim->process, router->process, sizeof(router->process)) == 0;
    return RONDO_HANDSHAKE_WELCOME;
}

static void send_verdict(struct router *router, struct rondo_member *member, enum rondo_handshake_verdict code, int detail)
{
    rondo_handshake_make_verdict(&member->handshake, member->secret, code, detail);
    int failed = rondo_address_send(member->connection.fd, member->handshake.verdict, RONDO_HANDSHAKE_VERDICT) != 0;
    if (failed || code != RONDO_HANDSHAKE_WELCOME)
        rondo_members_lose(&router->members, member);
}

static void admit(struct router *router, struct rondo_member *member, const struct rondo_handshake_claim *claim, int local)
{
    struct rondo_frame_key to_root, to_rank;
    send_verdict(router, member, RONDO_HANDSHAKE_WELCOME, local);
    if (member->phase == RONDO_MEMBER_ENDED)
        return;
    int good = rondo_handshake_root_keys(&member->handshake, member->secret, &to_root, &to_rank);
    if (good)
        rondo_frame_connection_open(&member->connection, member->connection.fd, &to_rank, &to_root);
    else
        rondo_members_lose(&router->members, member);
    explicit_bzero(&to_root, sizeof(to_root));
    explicit_bzero(&to_rank, sizeof(to_rank));
    if (!good)
        return;
    int64_t until = rondo_clock_ms() + claim->wait_ms;
    if (router->members.joined == 0 || until < router->deadline) {
        router->deadline = until;
        router->waited = (double) claim->wait_ms / 1000;
    }
    rondo_log(RONDO_LOG_DEBUG, -1, "root: rank %d of %d has joined", claim->rank, claim->size);
    rondo_members_join(&router->members, member, claim->rank, local);
}

/* Reads what has arrived of the hello, and no byte more, because what follows it belongs to the connection. Nothing in the
 * hello is used before its proof was found right. */
static void read_hello(struct router *router, struct rondo_member *member)
{
    struct rondo_handshake *handshake = &member->handshake;
    ssize_t got = recv(member->connection.fd, handshake->hello + member->hello_bytes,
                       RONDO_HANDSHAKE_HELLO - member->hello_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (got <= 0) {
        rondo_members_lose(&router->members, member);
        return;
    }
    member->hello_bytes += (size_t) got;
    if (member->hello_bytes < RONDO_HANDSHAKE_HELLO)
        return;
    struct rondo_handshake_claim claim;
    int detail = 0, proven = rondo_handshake_read_hello(handshake, member->secret, &claim);
    if (proven < 0) {
        rondo_members_lose(&router->members, member);
        return;
    }
    enum rondo_handshake_verdict code = proven > 0 ? decide_verdict(router, &claim, &detail) : RONDO_HANDSHAKE_SECRET;
    if (code == RONDO_HANDSHAKE_WELCOME)
        admit(router, member, &claim, detail);
    else
        send_verdict(router, member, code, detail);
}

static void describe_missing(const struct router *router, char *text, size_t bytes)
{
    int at = rondo_members_name(&router->members, 0, text, bytes);
    snprintf(text + at, bytes - (size_t) at, " of %d did not come within %.*f s", router->members.size, router->waited < 10,
             router->waited);
}

/* Ends connections whose time is up, and the job if it has not formed in time. Returns the milliseconds until this is due
 * again; -1: never. */
static int expire(struct router *router)
{
    struct rondo_members *members = &router->members;
    int64_t now = rondo_clock_ms(), next = router->accept_again != 0 ? router->accept_again : INT64_MAX;
    if (members->counts[RONDO_MEMBER_PENDING] + members->counts[RONDO_MEMBER_LEAVING] > 0)
        for (struct rondo_member *member = members->first; member != NULL; member = member->next) {
            if (!is_unauthenticated(router, member) && member->phase != RONDO_MEMBER_LEAVING)
                continue;
            if (member->deadline <= now)
                rondo_members_end(members, member);
            else if (member->deadline < next)
                next = member->deadline;
        }
    if (!members->formed && !members->failed) {
        if (router->deadline <= now) {
            char reason[512] = "no rank came";
            if (members->joined > 0)
                describe_missing(router, reason, sizeof(reason));
            rondo_members_fail(members, reason);
            return 0;
        }
        if (router->deadline < next)
            next = router->deadline;
    }
    int64_t beat = rondo_members_beat(members, now);
    if (beat < next)
        next = beat;
    /* Members that ended just now are still to be freed, and what was queued to be sent: the round must finish at once. */
    if (members->counts[RONDO_MEMBER_ENDED] > 0 || members->dirty != NULL)
        return 0;
    if (next == INT64_MAX)
        return -1;
    return next <= now ? 0 : next - now > 1000000 ? 1000000 : (int) (next - now);
}

static int is_over(const struct rondo_members *members)
{
    int connected =
        members->counts[RONDO_MEMBER_JOINED] + members->counts[RONDO_MEMBER_LEAVING] + members->counts[RONDO_MEMBER_HELD];
    return members->abandoned || (connected == 0 && (members->failed || (members->formed && members->left == members->size)));
}

static int is_listener(const struct router *router, const void *pointer)
{
    uintptr_t address = (uintptr_t) pointer, first = (uintptr_t) router->options.listeners;
    return address >= first && address < first + sizeof(router->options.listeners);
}

static void serve(struct router *router, const struct epoll_event *event)
{
    if (is_listener(router, event->data.ptr)) {
        if (router->accept_again == 0)
            accept_some(router, *(const int *) event->data.ptr);
        return;
    }
    struct rondo_member *member = event->data.ptr;
    if (member->phase == RONDO_MEMBER_PENDING) {
        read_hello(router, member);
        return;
    }
    if ((event->events & EPOLLOUT) != 0)
        rondo_members_mark(&router->members, member);
    if ((event->events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
        rondo_members_read(&router->members, member);
}

static rondo_result_t watch_listeners(struct router *router, int operation, uint32_t events)
{
    for (int i = 0; i < router->options.listener_count; i++) {
        struct epoll_event event = {.events = events, .data.ptr = &router->options.listeners[i]};
        if (epoll_ctl(router->members.epoll, operation, router->options.listeners[i], &event) != 0)
            return rondo_fail(RONDO_ERR_SYSTEM, "the root cannot watch its address: %s", strerror(errno));
    }
    return RONDO_SUCCESS;
}

static void destroy(struct router *router)
{
    /* shutdown, so that a connecting rank is refused even where a forked child has inherited the listener. */
    for (int i = 0; i < router->options.listener_count; i++) {
        shutdown(router->options.listeners[i], SHUT_RDWR);
        rondo_process_socket_close(router->options.listeners[i]);
    }
    rondo_members_destroy(&router->members);
    explicit_bzero(&router->options.secret, sizeof(router->options.secret));
    explicit_bzero(&router->options.tcp_secret, sizeof(router->options.tcp_secret));
    free(router);
}

static void *run(void *argument)
{
    struct router *router = argument;
    while (!is_over(&router->members)) {
        struct epoll_event events[64];
        int paused = router->accept_again != 0;
        int count = epoll_wait(router->members.epoll, events, 64, expire(router));
        for (int i = 0; i < count; i++)
            serve(router, &events[i]);
        if (router->accept_again != 0 && rondo_clock_ms() >= router->accept_again)
            router->accept_again = 0;
        if (paused != (router->accept_again != 0))
            watch_listeners(router, EPOLL_CTL_MOD, router->accept_again != 0 ? 0 : EPOLLIN);
        rondo_members_finish_round(&router->members);
    }
    destroy(router);
    return NULL;
}

rondo_result_t rondo_router_start(const struct rondo_router_options *options)
{
    struct router *router = calloc(1, sizeof(*router));
    if (router == NULL) {
        for (int i = 0; i < options->listener_count; i++)
            rondo_process_socket_close(options->listeners[i]);
        if (options->local >= 0)
            rondo_process_socket_close(options->local);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the root");
    }
    router->options = *options;
    router->waited = options->timeout;
    router->deadline = rondo_clock_ms() + (int64_t) (options->timeout * 1000);
    rondo_result_t result = rondo_members_create(&router->members, options->size);
    router->members.heartbeat = options->heartbeat;
    if (result == RONDO_SUCCESS)
        result = rondo_process_token(router->process);
    if (result != RONDO_SUCCESS && options->local >= 0)
        rondo_process_socket_close(options->local);
    if (result == RONDO_SUCCESS && options->local >= 0) {
        router->members.anchor = send_challenge(router, options->local, &router->options.secret, INT64_MAX);
        if (router->members.anchor == NULL)
            result = rondo_fail(RONDO_ERR_SYSTEM, "the root cannot reach its own rank: %s", strerror(errno));
    }
    if (result == RONDO_SUCCESS)
        result = watch_listeners(router, EPOLL_CTL_ADD, EPOLLIN);
    if (result == RONDO_SUCCESS)
        result = rondo_thread_start(NULL, "rondo-router", STACK_BYTES, run, router);
    if (result != RONDO_SUCCESS)
        destroy(router);
    return result;
}
