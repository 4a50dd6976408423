/*
 * Preloaded into a rank, this makes another host's rank close the first connection that UCX makes, as a rank does that leaves:
 * the connection is accepted, what is sent on it is answered by a reset, and whatever is tried afterwards is refused
 * (test/test_network.py). A connection that the other rank makes waits until then: of two ranks that connect to each other at
 * once, UCX keeps either connection, and would else talk over that one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static int accepted = -1; /* the socket of the first connection */
static int closed;

static int is_of_ucx(void *caller)
{
    Dl_info of;
    return dladdr(caller, &of) != 0 && of.dli_fname != NULL && strstr(of.dli_fname, "libucs") != NULL;
}

int connect(int socket, const struct sockaddr *address, socklen_t bytes)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    if (address->sa_family != AF_INET || !is_of_ucx(__builtin_return_address(0)))
        return next(socket, address, bytes);
    if (closed) {
        errno = ECONNREFUSED;
        return -1;
    }
    if (accepted < 0)
        accepted = socket;
    return next(socket, address, bytes);
}

int accept(int socket, struct sockaddr *address, socklen_t *bytes)
{
    int (*next)(int, struct sockaddr *, socklen_t *) = dlsym(RTLD_NEXT, "accept");
    if (closed || !is_of_ucx(__builtin_return_address(0)))
        return next(socket, address, bytes);
    errno = EAGAIN;
    return -1;
}

ssize_t send(int socket, const void *data, size_t bytes, int flags)
{
    ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
    if (closed || socket != accepted || !is_of_ucx(__builtin_return_address(0)))
        return next(socket, data, bytes, flags);
    closed = 1;
    errno = ECONNRESET;
    return -1;
}
