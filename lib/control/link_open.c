/* How a rank listens for others and connects to them (lib/control/links.h): the client's half of the handshake in steps that
 * do not wait. Relies on lib/bootstrap/admission.h for the server's. */
#include "lib/control/link.h"

#include "lib/base/error.h"
#include "lib/base/sha256.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

enum {
    ATTEMPT_MS = 5000, /* for a connection and its handshake */
    RETRY_MS = 30,
};

/* The name of a rank's Unix socket follows from the key, so that no other user can know and hold it. */
static rondo_result_t name_place(const struct rondo_links *links, int rank, struct rondo_address *address)
{
    unsigned char number[4], digest[RONDO_SHA256_BYTES];
    char name[64] = "rondo-link-";
    struct rondo_hmac hmac = links->options.key;
    rondo_frame_store32(number, (uint32_t) rank);
    rondo_hmac_add(&hmac, number, sizeof(number));
    rondo_hmac_end(&hmac, digest);
    rondo_hexadecimal(name + strlen(name), digest, 16);
    return rondo_address_abstract(name, address);
}

rondo_result_t rondo_link_place(const struct rondo_links *links, int peer, struct rondo_address *address)
{
    if (links->places == NULL)
        return name_place(links, peer, address);
    rondo_address_load(address, links->places + (size_t) peer * RONDO_ADDRESS_STORED);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_link_listen(struct rondo_links *links, uint16_t *port)
{
    struct rondo_address address = links->options.listen, bound = {.bytes = sizeof(bound.storage)};
    char text[64];
    rondo_result_t result = address.bytes == 0 ? name_place(links, links->options.rank, &address) : RONDO_SUCCESS;
    if (result != RONDO_SUCCESS)
        return result;
    int fd = rondo_address_listen(&address);
    if (fd < 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "rank %d cannot listen on %s: %s", links->options.rank,
                          rondo_address_describe(&address, text, sizeof(text)), strerror(errno));
    rondo_admission_listen(&links->admission, fd);
    if (getsockname(fd, (struct sockaddr *) &bound.storage, &bound.bytes) != 0)
        return rondo_fail(RONDO_ERR_SYSTEM, "getsockname: %s", strerror(errno));
    *port = rondo_address_port(&bound);
    return rondo_admission_open(&links->admission, links->options.epoll);
}

void rondo_link_fail(struct rondo_links *links, struct rondo_link *link, int error)
{
    if (link->connection.fd >= 0) {
        epoll_ctl(links->options.epoll, EPOLL_CTL_DEL, link->connection.fd, NULL);
        rondo_process_socket_close(link->connection.fd);
    }
    link->connection.fd = -1;
    link->state = RONDO_LINK_WAITING;
    link->events = 0;
    link->error = error;
    link->again = rondo_clock_ms() + RETRY_MS;
}

void rondo_link_try(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_address address;
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = link};
    if (link->since == 0)
        link->since = rondo_clock_ms();
    if (rondo_link_place(links, link->peer, &address) != RONDO_SUCCESS) {
        rondo_link_fail(links, link, EINVAL);
        return;
    }
    link->connection.fd = rondo_address_connect(&address);
    if (link->connection.fd < 0 || epoll_ctl(links->options.epoll, EPOLL_CTL_ADD, link->connection.fd, &event) != 0) {
        rondo_link_fail(links, link, errno);
        return;
    }
    link->state = RONDO_LINK_CONNECTING;
    link->events = EPOLLOUT;
    link->is_reached = 0;
    link->got = 0;
    link->deadline = rondo_clock_ms() + ATTEMPT_MS;
    link->handshake.encrypts = links->options.encrypts;
}

/* Reads what has arrived of a message, and no byte more. Returns 1 if it is there, 0 if not, -1 with errno if it cannot come.
 */
static int receive(struct rondo_link *link, unsigned char *message, size_t bytes)
{
    ssize_t got = recv(link->connection.fd, message + link->got, bytes - link->got, MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
    if (got == 0)
        errno = ECONNRESET;
    link->got += (size_t) got;
    return got == 0 ? -1 : link->got == bytes;
}

/* Each returns 0, or the errno with which the attempt has failed; ESTALE: the peer takes this rank for dead. */

static int begin_handshake(struct rondo_links *links, struct rondo_link *link)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    int error = rondo_address_connected(link->connection.fd);
    if (error == 0 && links->places == NULL && !rondo_address_same_user(link->connection.fd))
        error = EPERM;
    if (error == 0 && epoll_ctl(links->options.epoll, EPOLL_CTL_MOD, link->connection.fd, &event) != 0)
        error = errno;
    link->events = EPOLLIN;
    link->state = RONDO_LINK_CHALLENGED;
    link->is_reached = error == 0;
    rondo_heartbeat_begin(&link->heartbeat, link->connection.fd, &links->options.heartbeat);
    return error;
}

static int answer(struct rondo_links *links, struct rondo_link *link)
{
    struct rondo_handshake_claim claim = {.rank = links->options.rank, .size = links->options.size, .roots = 1};
    struct rondo_handshake *handshake = &link->handshake;
    uint32_t version = 0;
    int encrypts = 0;
    if (rondo_handshake_read_challenge(handshake, &version, &encrypts) != 1 || encrypts != links->options.encrypts)
        return EPROTO;
    if (rondo_process_token(claim.process) != RONDO_SUCCESS ||
        rondo_handshake_make_hello(handshake, &links->options.key, &claim) != RONDO_SUCCESS)
        return ENOMEM;
    link->state = RONDO_LINK_ANSWERED;
    link->got = 0;
    return rondo_address_send(link->connection.fd, handshake->hello, sizeof(handshake->hello)) != 0 ? errno : 0;
}

static int conclude(const struct rondo_links *links, struct rondo_link *link, struct rondo_frame_key *to_peer,
                    struct rondo_frame_key *from_peer)
{
    enum rondo_handshake_verdict verdict;
    int detail;
    if (rondo_handshake_read_verdict(&link->handshake, &links->options.key, &verdict, &detail) < 0 ||
        verdict == RONDO_HANDSHAKE_SECRET)
        return EPERM;
    if (verdict != RONDO_HANDSHAKE_WELCOME)
        return verdict == RONDO_HANDSHAKE_OVER && detail ? ESTALE : EBUSY;
    return rondo_handshake_rank_keys(&link->handshake, &links->options.key, to_peer, from_peer) ? 0 : EPROTO;
}

int rondo_link_shake(struct rondo_links *links, struct rondo_link *link, struct rondo_frame_key *to_peer,
                     struct rondo_frame_key *from_peer)
{
    int there = 0, error = 0, done = 0;
    if (link->state == RONDO_LINK_CONNECTING) {
        error = begin_handshake(links, link);
    } else if (link->state == RONDO_LINK_CHALLENGED) {
        there = receive(link, link->handshake.challenge, sizeof(link->handshake.challenge));
        error = there > 0 ? answer(links, link) : 0;
    } else {
        there = receive(link, link->handshake.verdict, sizeof(link->handshake.verdict));
        error = there > 0 ? conclude(links, link, to_peer, from_peer) : 0;
        done = there > 0 && error == 0;
    }
    if (there < 0 || error != 0)
        rondo_link_fail(links, link, there < 0 ? errno : error);
    return done;
}
