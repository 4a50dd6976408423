/*
 * libc's functions as UCX calls them. The program comes before libc where the dynamic linker looks for a name, so these are
 * called by all other libraries, and by wrappers.c as its __real_ ones; only what UCX calls counts.
 */
#include "test/injection/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Whether the return address lies in one of UCX's libraries. */
static int is_of_ucx(const void *site)
{
    Dl_info of;
    return dladdr(site, &of) != 0 && of.dli_fname != NULL && strstr(of.dli_fname, "/libuc") != NULL;
}

/* The way in which this call on a connection must fail, or 0. A reset, or an end, is one for both sides. */
static int now_on(int fd, enum inject_function function, const void *site)
{
    int way = is_of_ucx(site) ? inject_now(function, site) : 0;
    if (way == ECONNRESET || way == INJECT_END)
        shutdown(fd, SHUT_RDWR);
    return way;
}

/* libc's function of that name. The library's calls of dlsym are counted, this one is not. */
__typeof__(dlsym) __real_dlsym;
#define NEXT(name) ((__typeof__(&(name))) __real_dlsym(RTLD_NEXT, #name))
#define EXPORTED   __attribute__((visibility("default")))
#define HERE       __builtin_return_address(0)

EXPORTED int connect(int fd, const struct sockaddr *address, socklen_t bytes)
{
    int way = now_on(fd, INJECT_ucx_connect, HERE);
    if (way == 0)
        return NEXT(connect)(fd, address, bytes);
    errno = way;
    return -1;
}

EXPORTED ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    int way = now_on(fd, INJECT_ucx_recv, HERE);
    if (way == INJECT_SHORT && bytes > 1)
        bytes = (bytes + 1) / 2;
    if (way == 0 || way == INJECT_SHORT)
        return NEXT(recv)(fd, data, bytes, flags);
    if (way == INJECT_END)
        return 0;
    errno = way;
    return -1;
}

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    int way = now_on(fd, INJECT_ucx_sendmsg, HERE);
    if (way == 0)
        return NEXT(sendmsg)(fd, message, flags);
    errno = way;
    return -1;
}
