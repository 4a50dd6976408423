/*
 * Sockets of this process alone. Other ranks take the end of a connection for the end of the process, but a forked child
 * inherits its parent's descriptors and would keep all connections open for as long as it lives. So a child closes these
 * sockets before fork returns in it; what the parent has is not touched. A child that was made without fork's handlers (vfork,
 * posix_spawn, clone) has them until it executes a program. Relies on pthread_atfork.
 */
#ifndef RONDO_LIB_BOOTSTRAP_PROCESS_SOCKET_H
#define RONDO_LIB_BOOTSTRAP_PROCESS_SOCKET_H

#include <sys/socket.h>

/* Between these two no other thread forks, so that a child has either no such descriptor or closes it.
 * rondo_process_socket_begin returns 0, or -1 and errno where forks cannot be watched. rondo_process_socket_end takes what the
 * system call between them has returned, and returns it; errno stays. */
int rondo_process_socket_begin(void);
int rondo_process_socket_end(int fd);

/* As socket, accept4 and socketpair: each result does not block, and is closed by rondo_process_socket_close alone. */
static inline int rondo_process_socket(int domain, int type)
{
    return rondo_process_socket_begin() != 0 ? -1
                                             : rondo_process_socket_end(socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

static inline int rondo_process_socket_accept(int listener, struct sockaddr *from, socklen_t *bytes)
{
    return rondo_process_socket_begin() != 0
               ? -1
               : rondo_process_socket_end(accept4(listener, from, bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

int rondo_process_socket_pair(int pair[2]);

/* Closes the socket; errno stays. Any thread, once for each socket. */
void rondo_process_socket_close(int fd);

#endif
