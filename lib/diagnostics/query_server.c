/* See lib/diagnostics/query_server.h. */
#include "lib/diagnostics/query_server.h"

#include "lib/bootstrap/process_socket.h"
#include "device/abi/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALL_NS                                                                                                                \
    6000000000u /* of a call, from its acceptance to the last byte of the answer; a hang report takes up to five               \
                 */

int rondo_query_server_begin(struct rondo_query_server *server, int listener)
{
    server->callers = calloc(RONDO_QUERY_CALLERS, sizeof(*server->callers));
    if (server->callers == NULL) {
        rondo_process_socket_close(listener);
        return ENOMEM;
    }
    for (int i = 0; i < RONDO_QUERY_CALLERS; i++)
        server->callers[i].fd = -1;
    server->listener = listener;
    return 0;
}

static void hang_up(struct rondo_query_caller *caller)
{
    rondo_process_socket_close(caller->fd);
    free(caller->answer);
    memset(caller, 0, sizeof(*caller));
    caller->fd = -1;
}

/* Accepts as many as there is room for; the others wait in the kernel's queue. */
static void accept_callers(struct rondo_query_server *server, uint64_t now)
{
    for (int i = 0; i < RONDO_QUERY_CALLERS; i++) {
        struct rondo_query_caller *caller = &server->callers[i];
        if (caller->fd >= 0)
            continue;
        caller->fd = rondo_process_socket_accept(server->listener, NULL, NULL);
        if (caller->fd < 0)
            return;
        caller->until_ns = now + CALL_NS;
        if (server->is_welcome != NULL && !server->is_welcome(caller->fd))
            hang_up(caller);
    }
}

/* Returns 0, or -1 if the call is over. */
static int receive(const struct rondo_query_server *server, struct rondo_query_caller *caller)
{
    while (!caller->whole) {
        const ssize_t got = recv(caller->fd, caller->request + caller->got, sizeof(caller->request) - 1 - caller->got, 0);
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
        if (got == 0) /* also where the request has no room */
            return -1;
        caller->got += (size_t) got;
        caller->request[caller->got] = '\0';
        char *end = strstr(caller->request, server->end);
        if (end != NULL) {
            *end = '\0';
            caller->whole = 1;
        }
    }
    return 0;
}

/* Returns 0, or -1 if the call is over. */
static int respond(const struct rondo_query_server *server, struct rondo_query_caller *caller)
{
    if (!caller->whole)
        return 0;
    if (caller->answer == NULL) {
        caller->answer = server->answer(server->argument, caller);
        if (caller->answer == NULL)
            return 0;
        caller->bytes = strlen(caller->answer);
    }
    while (caller->sent < caller->bytes) {
        const ssize_t sent = send(caller->fd, caller->answer + caller->sent, caller->bytes - caller->sent, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
        caller->sent += (size_t) sent;
    }
    return -1;
}

void rondo_query_server_step(struct rondo_query_server *server)
{
    if (server->listener < 0)
        return;
    const uint64_t now = rondo_clock_ns();
    accept_callers(server, now);
    for (int i = 0; i < RONDO_QUERY_CALLERS; i++) {
        struct rondo_query_caller *caller = &server->callers[i];
        if (caller->fd >= 0 && (now > caller->until_ns || receive(server, caller) != 0 || respond(server, caller) != 0))
            hang_up(caller);
    }
}

void rondo_query_server_end(struct rondo_query_server *server)
{
    if (server->listener < 0)
        return;
    for (int i = 0; i < RONDO_QUERY_CALLERS; i++)
        if (server->callers[i].fd >= 0)
            hang_up(&server->callers[i]);
    free(server->callers);
    rondo_process_socket_close(server->listener);
    server->listener = -1;
}
