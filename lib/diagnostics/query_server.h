/*
 * A small server that waits for nothing: a listening socket, of which each step accepts callers, reads their requests and sends
 * the answers, as far as the kernel allows at once. A caller that asks too much, too slowly or too late is cut off, so that
 * strangers can at most keep others from being answered. Relies on lib/bootstrap/process_socket.h. A server belongs to one
 * thread.
 */
#ifndef RONDO_LIB_DIAGNOSTICS_QUERY_SERVER_H
#define RONDO_LIB_DIAGNOSTICS_QUERY_SERVER_H

#include <stddef.h>
#include <stdint.h>

enum { RONDO_QUERY_CALLERS = 8, RONDO_QUERY_BYTES = 2048 };

struct rondo_query_caller {
    int fd; /* -1: none */
    uint64_t until_ns;
    char request[RONDO_QUERY_BYTES]; /* terminated once it is whole */
    size_t got;
    int whole;
    uint64_t ticket; /* the answering function's own; 0 at first */
    char *answer;    /* owned; NULL: there is none yet */
    size_t bytes, sent;
};

struct rondo_query_server {
    int listener;              /* -1: none, and a step does nothing */
    const char *end;           /* with which a request ends; not part of it */
    int (*is_welcome)(int fd); /* NULL: every caller is */
    /* The answer to the caller's request, which the server frees. NULL: there is none yet, and the next step asks again. */
    char *(*answer)(void *argument, struct rondo_query_caller *caller);
    void *argument;
    struct rondo_query_caller *callers; /* [RONDO_QUERY_CALLERS] */
};

/* Begins to serve the listening socket, which is the server's from here on, also on an error. The other members are set.
 * Returns 0 or an errno value. */
int rondo_query_server_begin(struct rondo_query_server *server, int listener);
void rondo_query_server_step(struct rondo_query_server *server);
/* Ends all calls. A server that was never begun has listener -1. */
void rondo_query_server_end(struct rondo_query_server *server);

#endif
