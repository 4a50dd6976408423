/* See transport/memory/descriptor_passing.h. A nested epoll descriptor stands for the listener, its clients and a timer,
 * because a control thread watches one descriptor only. */
#include "transport/memory/descriptor_passing.h"

#include "lib/bootstrap/address.h"
#include "lib/bootstrap/process_socket.h"
#include "lib/base/thread.h"
#include "lib/base/error.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    CLIENTS_MOST = 64,     /* that have asked for nothing yet; one more drops the oldest */
    CLIENT_MS = 2000,      /* that a client has to do so, at least; at most twice that */
    ACCEPT_PAUSE_MS = 100, /* when the process is out of descriptors */
    RETRY_MS = 20,
};

struct answer {
    uint64_t bytes;   /* 0: there is no such thing, or the key is not its own */
    uint64_t address; /* of the thing, in its owner's process; else 0 and the descriptor comes along */
};

struct rondo_descriptor_passing {
    struct rondo_control *control;
    struct rondo_descriptor_passing_owner owner;
    int listener, epoll, timer;
    int clients[CLIENTS_MOST], client_count; /* oldest first */
    int expiring;                            /* how many of the clients were there at the timer's last tick */
};

static rondo_result_t socket_address(const unsigned char name[RONDO_DESCRIPTOR_NAME], struct rondo_address *address)
{
    char text[32 + 2 * RONDO_DESCRIPTOR_NAME] = "rondo-descriptors-";
    for (size_t i = 0, at = strlen(text); i < RONDO_DESCRIPTOR_NAME; i++, at += 2)
        snprintf(text + at, sizeof(text) - at, "%02x", name[i]);
    return rondo_address_abstract(text, address);
}

/* Room for one descriptor beside a packet. */
union descriptor {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr alignment;
};

/* ---- the serving side -----------------------------------------------------------------------------------------------------
 */

/* Whether it has been sent; with a descriptor unless fd is -1. A fresh socket has room for it. */
static int send_answer(int client, struct answer *answer, int fd)
{
    union descriptor control = {{0}};
    struct iovec part = {answer, sizeof(*answer)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof(control.bytes);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    }
    return sendmsg(client, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) sizeof(*answer);
}

/* 0 if the client has not asked yet; else its connection is to be closed: it has been answered, or asked wrongly. */
static int serve_client(struct rondo_descriptor_passing *passing, int client)
{
    struct rondo_descriptor_passing_request request;
    struct answer answer = {0, 0};
    struct ucred peer = {0};
    socklen_t bytes = sizeof(peer);
    /* One byte more than a request has, to see that the packet is not longer. */
    unsigned char packet[sizeof(request) + 1];
    int fd = -1;
    ssize_t got = recv(client, packet, sizeof(packet), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (got != (ssize_t) sizeof(request))
        return 1;
    memcpy(&request, packet, sizeof(request));
    void *thing = passing->owner.find(passing->owner.argument, &request, &answer.bytes, &fd);
    if (thing == NULL) {
        answer.bytes = 0;
        send_answer(client, &answer, -1);
        return 1;
    }
    int same_process = getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid == getpid();
    if (same_process)
        answer.address = (uint64_t) (uintptr_t) thing;
    /* In the same process the reference goes to the client. */
    if (!send_answer(client, &answer, same_process ? -1 : fd) || !same_process)
        passing->owner.drop(thing);
    return 1;
}

static void set_timer(struct rondo_descriptor_passing *passing, long milliseconds)
{
    struct itimerspec when = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000000}};
    timerfd_settime(passing->timer, 0, &when, NULL);
}

/* Also where a forked child has inherited the socket, which would keep it open and in the epoll set. */
static void drop_client(struct rondo_descriptor_passing *passing, int index)
{
    int client = passing->clients[index];
    epoll_ctl(passing->epoll, EPOLL_CTL_DEL, client, NULL);
    shutdown(client, SHUT_RDWR);
    rondo_process_socket_close(client);
    passing->client_count--;
    memmove(&passing->clients[index], &passing->clients[index + 1],
            (size_t) (passing->client_count - index) * sizeof(passing->clients[0]));
    if (index < passing->expiring)
        passing->expiring--;
}

static void add_client(struct rondo_descriptor_passing *passing, int client)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = client};
    if (epoll_ctl(passing->epoll, EPOLL_CTL_ADD, client, &event) != 0) {
        rondo_process_socket_close(client);
        return;
    }
    if (passing->client_count == CLIENTS_MOST)
        drop_client(passing, 0);
    if (passing->client_count == 0)
        set_timer(passing, CLIENT_MS);
    passing->clients[passing->client_count++] = client;
}

static void listen_for(struct rondo_descriptor_passing *passing, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = passing->listener};
    epoll_ctl(passing->epoll, EPOLL_CTL_MOD, passing->listener, &event);
}

static void accept_clients(struct rondo_descriptor_passing *passing)
{
    for (int i = 0; i < CLIENTS_MOST; i++) {
        int client = rondo_process_socket_accept(passing->listener, NULL, NULL);
        if (client < 0) {
            /* The listener stays readable, so it is not watched for a while. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                if (passing->client_count > 0)
                    drop_client(passing, 0);
                listen_for(passing, 0);
                set_timer(passing, ACCEPT_PAUSE_MS);
            }
            return;
        }
        if (!rondo_address_same_user(client) || serve_client(passing, client)) {
            shutdown(client, SHUT_RDWR);
            rondo_process_socket_close(client);
        } else {
            add_client(passing, client);
        }
    }
}

static void tick(struct rondo_descriptor_passing *passing)
{
    while (passing->expiring > 0)
        drop_client(passing, 0);
    passing->expiring = passing->client_count;
    set_timer(passing, passing->client_count > 0 ? CLIENT_MS : 0);
    listen_for(passing, EPOLLIN);
}

/* Called on the control thread when any of the descriptors is ready. */
static void serve(void *argument)
{
    struct rondo_descriptor_passing *passing = argument;
    struct epoll_event events[16];
    int count = epoll_wait(passing->epoll, events, 16, 0);
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd, index = 0;
        if (fd == passing->listener) {
            accept_clients(passing);
        } else if (fd == passing->timer) {
            uint64_t ticks;
            if (read(fd, &ticks, sizeof(ticks)) > 0)
                tick(passing);
        } else {
            while (index < passing->client_count && passing->clients[index] != fd)
                index++;
            if (index < passing->client_count && serve_client(passing, fd))
                drop_client(passing, index);
        }
    }
}

static int add(struct rondo_descriptor_passing *passing, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 ? -1 : epoll_ctl(passing->epoll, EPOLL_CTL_ADD, fd, &event);
}

rondo_result_t rondo_descriptor_passing_create(struct rondo_descriptor_passing **result, struct rondo_control *control,
                                               const struct rondo_descriptor_passing_owner *owner,
                                               unsigned char name[RONDO_DESCRIPTOR_NAME])
{
    struct rondo_address address;
    rondo_result_t status = rondo_random_bytes(name, RONDO_DESCRIPTOR_NAME);
    if (status != RONDO_SUCCESS || (status = socket_address(name, &address)) != RONDO_SUCCESS)
        return status;
    struct rondo_descriptor_passing *passing = calloc(1, sizeof(*passing));
    if (passing == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to pass descriptors");
    passing->owner = *owner;
    passing->epoll = epoll_create1(EPOLL_CLOEXEC);
    passing->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    passing->listener = rondo_process_socket(AF_UNIX, SOCK_SEQPACKET);
    if (passing->listener < 0 || bind(passing->listener, (struct sockaddr *) &address.storage, address.bytes) != 0 ||
        listen(passing->listener, 4096) != 0 || add(passing, passing->listener) != 0 || add(passing, passing->timer) != 0)
        status = rondo_fail(RONDO_ERR_SYSTEM, "cannot listen on a Unix socket: %s", strerror(errno));
    else
        status = rondo_control_watch(control, passing->epoll, serve, passing);
    if (status != RONDO_SUCCESS) {
        rondo_descriptor_passing_destroy(passing);
        return status;
    }
    passing->control = control;
    *result = passing;
    return RONDO_SUCCESS;
}

void rondo_descriptor_passing_destroy(struct rondo_descriptor_passing *passing)
{
    if (passing == NULL)
        return;
    if (passing->control != NULL)
        rondo_control_watch(passing->control, -1, NULL, NULL);
    while (passing->client_count > 0)
        drop_client(passing, passing->client_count - 1);
    if (passing->listener >= 0) {
        shutdown(passing->listener, SHUT_RDWR);
        rondo_process_socket_close(passing->listener);
    }
    if (passing->timer >= 0)
        close(passing->timer);
    if (passing->epoll >= 0)
        close(passing->epoll);
    free(passing);
}

/* ---- the client's side ----------------------------------------------------------------------------------------------------
 */

static int wait_readable(int fd, int64_t deadline)
{
    struct pollfd poller = {fd, POLLIN, 0};
    for (;;) {
        int64_t left = deadline - rondo_clock_ms();
        int ready = poll(&poller, 1, left > 0 ? (int) left : 0);
        if (ready > 0)
            return 1;
        if ((ready == 0 && left <= 0) || (ready < 0 && errno != EINTR))
            return 0;
    }
}

/* Whether the answer came, whole. */
static int receive_answer(int client, struct answer *answer, int *fd)
{
    union descriptor control = {{0}};
    struct iovec part = {answer, sizeof(*answer)};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
    ssize_t got;
    while ((got = recvmsg(client, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    struct cmsghdr *header = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(header), sizeof(*fd));
    if (got == (ssize_t) sizeof(*answer))
        return 1;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return 0;
}

/* 1 and the answer; 0 if the owner dropped the connection, as it may when many ask; -1 with errno if it cannot be asked. */
static int ask_once(const struct rondo_address *owner, const struct rondo_descriptor_passing_request *request, int64_t deadline,
                    struct answer *answer, int *fd)
{
    int client = rondo_process_socket(AF_UNIX, SOCK_SEQPACKET);
    if (client < 0)
        return -1;
    int status = 0, error = 0;
    if (connect(client, (const struct sockaddr *) &owner->storage, owner->bytes) != 0) {
        /* EAGAIN: its backlog is full. */
        error = errno;
        status = error == EAGAIN || error == EINTR ? 0 : -1;
    } else if (!rondo_address_same_user(client)) {
        error = EPERM;
        status = -1;
    } else if (send(client, request, sizeof(*request), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t) sizeof(*request) &&
               wait_readable(client, deadline)) {
        status = receive_answer(client, answer, fd);
    }
    rondo_process_socket_close(client);
    errno = error;
    return status;
}

rondo_result_t rondo_descriptor_passing_ask(const unsigned char name[RONDO_DESCRIPTOR_NAME],
                                            const struct rondo_descriptor_passing_request *request, int milliseconds, int *fd,
                                            void **thing)
{
    struct rondo_address owner;
    struct answer answer = {0, 0};
    int64_t deadline = rondo_clock_ms() + milliseconds;
    int status;
    *fd = -1;
    *thing = NULL;
    rondo_result_t result = socket_address(name, &owner);
    if (result != RONDO_SUCCESS)
        return result;
    while ((status = ask_once(&owner, request, deadline, &answer, fd)) == 0) {
        if (rondo_clock_ms() >= deadline)
            return rondo_fail(RONDO_ERR_TRANSPORT, "number %llu was not passed within %d ms", (unsigned long long) request->id,
                              milliseconds);
        poll(NULL, 0, RETRY_MS);
    }
    if (status < 0)
        return rondo_fail(RONDO_ERR_TRANSPORT, "the owner of number %llu cannot be asked for it: %s",
                          (unsigned long long) request->id, strerror(errno));
    if (answer.bytes == 0 || (*fd < 0 && answer.address == 0)) {
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return rondo_fail(RONDO_ERR_TRANSPORT, "its owner has no number %llu, or not any more",
                          (unsigned long long) request->id);
    }
    *thing = *fd < 0 ? (void *) (uintptr_t) answer.address : NULL;
    return RONDO_SUCCESS;
}
