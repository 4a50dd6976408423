/* See lib/bootstrap/admission.h. */
#include "lib/bootstrap/admission.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/address.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    GUESTS_MOST = 128,     /* one more ends the oldest */
    GUEST_MS = 5000,       /* for a guest to send its hello */
    ACCEPT_ROUND = 64,     /* connections accepted before the next event is served */
    ACCEPT_PAUSE_MS = 100, /* when the process is out of descriptors */
};

void rondo_admission_listen(struct rondo_admission *admission, int fd)
{
    admission->listeners[admission->listener_count++] = (struct rondo_listener){RONDO_WATCHED_LISTENER, fd};
}

static rondo_result_t watch_listeners(struct rondo_admission *admission, int operation, uint32_t events)
{
    for (int i = 0; i < admission->listener_count; i++) {
        struct epoll_event event = {.events = events, .data.ptr = &admission->listeners[i]};
        if (epoll_ctl(admission->epoll, operation, admission->listeners[i].fd, &event) != 0)
            return rondo_fail(RONDO_ERR_SYSTEM, "a listening address cannot be watched: %s", strerror(errno));
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_admission_open(struct rondo_admission *admission, int epoll)
{
    admission->epoll = epoll;
    return watch_listeners(admission, EPOLL_CTL_ADD, EPOLLIN);
}

/* Takes the guest out of the list and frees it. Its socket is closed unless it has become a connection's. */
static void release(struct rondo_admission *admission, struct rondo_guest *guest, int closes)
{
    /* A child that was made without the handlers of fork may have the socket; closing it would then leave it in the set. */
    epoll_ctl(admission->epoll, EPOLL_CTL_DEL, guest->fd, NULL);
    if (closes)
        rondo_process_socket_close(guest->fd);
    if (guest->previous != NULL)
        guest->previous->next = guest->next;
    else
        admission->first = guest->next;
    if (guest->next != NULL)
        guest->next->previous = guest->previous;
    admission->guests--;
    explicit_bzero(&guest->handshake, sizeof(guest->handshake));
    free(guest);
}

void rondo_admission_close(struct rondo_admission *admission)
{
    while (admission->first != NULL)
        release(admission, admission->first, 1);
    /* shutdown, so that a connecting rank is refused even where a forked child has inherited the listener. */
    for (int i = 0; i < admission->listener_count; i++) {
        shutdown(admission->listeners[i].fd, SHUT_RDWR);
        rondo_process_socket_close(admission->listeners[i].fd);
    }
    admission->listener_count = 0;
    explicit_bzero(&admission->secret, sizeof(admission->secret));
    explicit_bzero(&admission->tcp_secret, sizeof(admission->tcp_secret));
}

static void drop_oldest(struct rondo_admission *admission)
{
    struct rondo_guest *oldest = NULL;
    for (struct rondo_guest *guest = admission->first; guest != NULL; guest = guest->next)
        if (guest->deadline != INT64_MAX)
            oldest = guest;
    if (oldest != NULL)
        release(admission, oldest, 1);
}

/* Makes a guest of fd, which is closed on failure, and sends it a challenge. */
static struct rondo_guest *send_challenge(struct rondo_admission *admission, int fd, int is_network, int64_t deadline)
{
    rondo_address_tune(fd);
    struct rondo_guest *guest = calloc(1, sizeof(*guest));
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = guest};
    if (guest == NULL || epoll_ctl(admission->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        free(guest);
        rondo_process_socket_close(fd);
        return NULL;
    }
    guest->watched = RONDO_WATCHED_GUEST;
    guest->fd = fd;
    guest->is_network = is_network;
    guest->secret = is_network ? &admission->tcp_secret : &admission->secret;
    guest->handshake.encrypts = admission->encrypts;
    guest->deadline = deadline;
    guest->next = admission->first;
    if (guest->next != NULL)
        guest->next->previous = guest;
    admission->first = guest;
    admission->guests++;
    /* A fresh socket takes so few bytes at once; a peer whose does not is dropped rather than waited for. */
    if (rondo_handshake_make_challenge(&guest->handshake) != RONDO_SUCCESS ||
        rondo_address_send(fd, guest->handshake.challenge, RONDO_HANDSHAKE_CHALLENGE) != 0) {
        release(admission, guest, 1);
        return NULL;
    }
    return guest;
}

struct rondo_guest *rondo_admission_invite(struct rondo_admission *admission, int fd)
{
    return send_challenge(admission, fd, 0, INT64_MAX);
}

static void accept_some(struct rondo_admission *admission, int listener)
{
    for (int i = 0; i < ACCEPT_ROUND; i++) {
        struct sockaddr_storage from = {0};
        socklen_t bytes = sizeof(from);
        int fd = rondo_process_socket_accept(listener, (struct sockaddr *) &from, &bytes);
        if (fd < 0) {
            /* Out of descriptors or memory: the listener stays readable, so it must be left alone for a while. */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                drop_oldest(admission);
                admission->accept_again = rondo_clock_ms() + ACCEPT_PAUSE_MS;
                watch_listeners(admission, EPOLL_CTL_MOD, 0);
            }
            return;
        }
        if (from.ss_family == AF_UNIX && !rondo_address_same_user(fd)) {
            rondo_process_socket_close(fd);
            continue;
        }
        if (admission->guests >= GUESTS_MOST)
            drop_oldest(admission);
        send_challenge(admission, fd, from.ss_family != AF_UNIX, rondo_clock_ms() + GUEST_MS);
    }
}

/* Reads what has arrived of the hello, and no byte more, because what follows it belongs to the connection. Nothing in the
 * hello is used before its proof was found right. */
static struct rondo_guest *read_hello(struct rondo_admission *admission, struct rondo_guest *guest,
                                      struct rondo_handshake_claim *claim)
{
    struct rondo_handshake *handshake = &guest->handshake;
    ssize_t got =
        recv(guest->fd, handshake->hello + guest->hello_bytes, RONDO_HANDSHAKE_HELLO - guest->hello_bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return NULL;
    if (got > 0) {
        guest->hello_bytes += (size_t) got;
        if (guest->hello_bytes < RONDO_HANDSHAKE_HELLO)
            return NULL;
        int proven = rondo_handshake_read_hello(handshake, guest->secret, claim);
        if (proven > 0)
            return guest;
        if (proven == 0) {
            rondo_admission_answer(admission, guest, RONDO_HANDSHAKE_SECRET, 0, NULL);
            return NULL;
        }
    }
    release(admission, guest, 1);
    return NULL;
}

struct rondo_guest *rondo_admission_serve(struct rondo_admission *admission, enum rondo_watched *watched,
                                          struct rondo_handshake_claim *claim)
{
    if (*watched == RONDO_WATCHED_GUEST)
        return read_hello(admission, (struct rondo_guest *) watched, claim);
    if (admission->accept_again == 0)
        accept_some(admission, ((const struct rondo_listener *) watched)->fd);
    return NULL;
}

int rondo_admission_answer(struct rondo_admission *admission, struct rondo_guest *guest, enum rondo_handshake_verdict verdict,
                           int detail, struct rondo_frame_connection *connection)
{
    struct rondo_frame_key to_server, to_client;
    rondo_handshake_make_verdict(&guest->handshake, guest->secret, verdict, detail);
    int open = rondo_address_send(guest->fd, guest->handshake.verdict, RONDO_HANDSHAKE_VERDICT) == 0 &&
               verdict == RONDO_HANDSHAKE_WELCOME &&
               rondo_handshake_root_keys(&guest->handshake, guest->secret, &to_server, &to_client);
    if (open) {
        rondo_frame_connection_open(connection, guest->fd, &to_client, &to_server);
        explicit_bzero(&to_server, sizeof(to_server));
        explicit_bzero(&to_client, sizeof(to_client));
    }
    release(admission, guest, !open);
    return open;
}

int64_t rondo_admission_expire(struct rondo_admission *admission, int64_t now)
{
    int64_t next = INT64_MAX;
    if (admission->accept_again != 0 && admission->accept_again <= now) {
        admission->accept_again = 0;
        watch_listeners(admission, EPOLL_CTL_MOD, EPOLLIN);
    }
    if (admission->accept_again != 0)
        next = admission->accept_again;
    for (struct rondo_guest *guest = admission->first, *after; guest != NULL; guest = after) {
        after = guest->next;
        if (guest->deadline <= now)
            release(admission, guest, 1);
        else if (guest->deadline < next)
            next = guest->deadline;
    }
    return next;
}
