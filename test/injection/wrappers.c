/* The functions that the linker puts between the library and libc: __wrap_X is called instead of X, and calls X as __real_X.
 * A call that is to fail has no effect. */
#include "test/injection/inject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <locale.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>

#define HERE __builtin_return_address(0)

/* A function of which a failed call returns one value and sets errno. */
#define FAILS(type, name, failure, parameters, arguments)                                                                      \
    type __real_##name parameters;                                                                                             \
    type __wrap_##name parameters;                                                                                             \
    type __wrap_##name parameters                                                                                              \
    {                                                                                                                          \
        int way = inject_now(INJECT_##name, HERE);                                                                             \
        if (way == 0)                                                                                                          \
            return __real_##name arguments;                                                                                    \
        errno = way;                                                                                                           \
        return failure;                                                                                                        \
    }

/* One that moves bytes: INJECT_SHORT moves half of them, rounded up; INJECT_END moves none. */
#define MOVES(name, count, parameters, arguments)                                                                              \
    ssize_t __real_##name parameters;                                                                                          \
    ssize_t __wrap_##name parameters;                                                                                          \
    ssize_t __wrap_##name parameters                                                                                           \
    {                                                                                                                          \
        int way = inject_now(INJECT_##name, HERE);                                                                             \
        if (way == INJECT_SHORT && count > 1)                                                                                  \
            count = (count + 1) / 2;                                                                                           \
        if (way == 0 || way == INJECT_SHORT)                                                                                   \
            return __real_##name arguments;                                                                                    \
        if (way == INJECT_END)                                                                                                 \
            return 0;                                                                                                          \
        errno = way;                                                                                                           \
        return -1;                                                                                                             \
    }

/* ---- memory ---- */

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
void __real_free(void *memory);
void __wrap_free(void *memory);

/* Whether the allocation fails. */
static int refused(enum inject_function function, const void *site)
{
    int way = inject_now(function, site);
    if (way != 0)
        errno = way;
    return way != 0;
}

void *__wrap_malloc(size_t bytes)
{
    void *memory = refused(INJECT_malloc, HERE) ? NULL : __real_malloc(bytes);
    inject_allocated(memory, bytes, HERE);
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *memory = refused(INJECT_calloc, HERE) ? NULL : __real_calloc(count, bytes);
    inject_allocated(memory, count * bytes, HERE);
    return memory;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (refused(INJECT_realloc, HERE))
        return NULL;
    inject_freed(memory); /* before another thread can be given the address */
    void *larger = __real_realloc(memory, bytes);
    inject_allocated(larger != NULL ? larger : memory, bytes, HERE);
    return larger;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    void *memory = refused(INJECT_aligned_alloc, HERE) ? NULL : __real_aligned_alloc(alignment, bytes);
    inject_allocated(memory, bytes, HERE);
    return memory;
}

char *__wrap_strdup(const char *text)
{
    char *copy = refused(INJECT_strdup, HERE) ? NULL : __real_strdup(text);
    inject_allocated(copy, copy != NULL ? strlen(copy) + 1 : 0, HERE);
    return copy;
}

char *__wrap_realpath(const char *path, char *resolved)
{
    char *result = refused(INJECT_realpath, HERE) ? NULL : __real_realpath(path, resolved);
    if (resolved == NULL)
        inject_allocated(result, result != NULL ? strlen(result) + 1 : 0, HERE);
    return result;
}

void __wrap_free(void *memory)
{
    inject_freed(memory);
    __real_free(memory);
}

FAILS(FILE *, open_memstream, NULL, (char **text, size_t *bytes), (text, bytes))
FAILS(locale_t, newlocale, (locale_t) 0, (int mask, const char *name, locale_t base), (mask, name, base))
FAILS(void *, mmap, MAP_FAILED, (void *at, size_t bytes, int protection, int flags, int fd, off_t offset),
      (at, bytes, protection, flags, fd, offset))
FAILS(long, mbind, -1,
      (void *at, unsigned long bytes, int mode, const unsigned long *mask, unsigned long nodes, unsigned flags),
      (at, bytes, mode, mask, nodes, flags))

/* The mapping goes: a munmap that fails for want of memory splits a mapping, which the library never does. */
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes)
{
    int way = inject_now(INJECT_munmap, HERE), result = __real_munmap(at, bytes);
    if (way == 0)
        return result;
    errno = way;
    return -1;
}

/* ---- files ---- */

FAILS(int, memfd_create, -1, (const char *name, unsigned flags), (name, flags))
FAILS(int, ftruncate, -1, (int fd, off_t bytes), (fd, bytes))
FAILS(int, fstat, -1, (int fd, struct stat *about), (fd, about))
FAILS(int, stat, -1, (const char *path, struct stat *about), (path, about))
FAILS(off_t, lseek, -1, (int fd, off_t offset, int from), (fd, offset, from))
FAILS(int, flock, -1, (int fd, int operation), (fd, operation))
FAILS(int, link, -1, (const char *from, const char *to), (from, to))
FAILS(int, rename, -1, (const char *from, const char *to), (from, to))
FAILS(FILE *, fopen, NULL, (const char *path, const char *mode), (path, mode))
FAILS(DIR *, opendir, NULL, (const char *path), (path))
FAILS(int, scandir, -1,
      (const char *path, struct dirent ***names, int (*choose)(const struct dirent *),
       int (*compare)(const struct dirent **, const struct dirent **)),
      (path, names, choose, compare))
FAILS(size_t, fread, 0, (void *to, size_t bytes, size_t count, FILE *file), (to, bytes, count, file))
FAILS(size_t, fwrite, 0, (const void *from, size_t bytes, size_t count, FILE *file), (from, bytes, count, file))
MOVES(read, count, (int fd, void *to, size_t count), (fd, to, count))
MOVES(write, count, (int fd, const void *from, size_t count), (fd, from, count))
MOVES(pread, count, (int fd, void *to, size_t count, off_t offset), (fd, to, count, offset))
FAILS(FILE *, fdopen, NULL, (int fd, const char *mode), (fd, mode))
MOVES(pwrite, count, (int fd, const void *from, size_t count, off_t offset), (fd, from, count, offset))

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    return refused(INJECT_open, HERE) ? -1 : __real_open(path, flags, mode);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...)
{
    va_list more;
    va_start(more, command);
    long argument = va_arg(more, long);
    va_end(more);
    return refused(INJECT_fcntl, HERE) ? -1 : __real_fcntl(fd, command, argument);
}

/* ---- sockets and events ---- */

FAILS(int, socket, -1, (int domain, int type, int protocol), (domain, type, protocol))
FAILS(int, socketpair, -1, (int domain, int type, int protocol, int pair[2]), (domain, type, protocol, pair))
FAILS(int, bind, -1, (int fd, const struct sockaddr *address, socklen_t bytes), (fd, address, bytes))
FAILS(int, listen, -1, (int fd, int backlog), (fd, backlog))
FAILS(int, connect, -1, (int fd, const struct sockaddr *address, socklen_t bytes), (fd, address, bytes))
FAILS(int, accept4, -1, (int fd, struct sockaddr *address, socklen_t *bytes, int flags), (fd, address, bytes, flags))
FAILS(int, getsockname, -1, (int fd, struct sockaddr *address, socklen_t *bytes), (fd, address, bytes))
FAILS(int, getpeername, -1, (int fd, struct sockaddr *address, socklen_t *bytes), (fd, address, bytes))
FAILS(int, getsockopt, -1, (int fd, int level, int name, void *value, socklen_t *bytes), (fd, level, name, value, bytes))
FAILS(int, setsockopt, -1, (int fd, int level, int name, const void *value, socklen_t bytes), (fd, level, name, value, bytes))
MOVES(send, count, (int fd, const void *from, size_t count, int flags), (fd, from, count, flags))
MOVES(recv, count, (int fd, void *to, size_t count, int flags), (fd, to, count, flags))
FAILS(ssize_t, sendmsg, -1, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
FAILS(ssize_t, process_vm_readv, -1,
      (pid_t process, const struct iovec *local, unsigned long locals, const struct iovec *remote, unsigned long remotes,
       unsigned long flags),
      (process, local, locals, remote, remotes, flags))
FAILS(int, poll, -1, (struct pollfd * all, nfds_t count, int milliseconds), (all, count, milliseconds))
FAILS(int, ppoll, -1, (struct pollfd * all, nfds_t count, const struct timespec *limit, const sigset_t *mask),
      (all, count, limit, mask))
FAILS(int, epoll_create1, -1, (int flags), (flags))
FAILS(int, epoll_ctl, -1, (int epoll, int operation, int fd, struct epoll_event *event), (epoll, operation, fd, event))
FAILS(int, epoll_wait, -1, (int epoll, struct epoll_event *events, int room, int milliseconds),
      (epoll, events, room, milliseconds))
FAILS(int, eventfd, -1, (unsigned value, int flags), (value, flags))
FAILS(int, timerfd_create, -1, (int clock, int flags), (clock, flags))
FAILS(int, timerfd_settime, -1, (int fd, int flags, const struct itimerspec *to, struct itimerspec *before),
      (fd, flags, to, before))

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    int way = inject_now(INJECT_recvmsg, HERE);
    if (way == 0)
        return __real_recvmsg(fd, message, flags);
    errno = way;
    return way == INJECT_END ? 0 : -1;
}

/* ---- the rest ---- */

MOVES(getrandom, count, (void *to, size_t count, unsigned flags), (to, count, flags))
FAILS(int, getifaddrs, -1, (struct ifaddrs * *all), (all))
FAILS(int, getaddrinfo, EAI_MEMORY, (const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found),
      (host, port, hints, found))
FAILS(int, gethostname, -1, (char *name, size_t bytes), (name, bytes))
FAILS(int, sched_getaffinity, -1, (pid_t process, size_t bytes, cpu_set_t *set), (process, bytes, set))
FAILS(int, sched_setaffinity, -1, (pid_t process, size_t bytes, const cpu_set_t *set), (process, bytes, set))
FAILS(int, sigaction, -1, (int number, const struct sigaction *to, struct sigaction *before), (number, to, before))

/* A new thread makes calls of the rank of the thread that starts it. */
struct beginning {
    void *(*run)(void *);
    void *argument;
    int rank;
};

static void *begin_thread(void *memory)
{
    struct beginning beginning = *(struct beginning *) memory;
    __real_free(memory);
    inject_be(beginning.rank);
    return beginning.run(beginning.argument);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
{
    int way = inject_now(INJECT_pthread_create, HERE);
    struct beginning *beginning = way == 0 ? __real_malloc(sizeof(*beginning)) : NULL;
    if (beginning == NULL)
        return way != 0 ? way : ENOMEM;
    *beginning = (struct beginning){run, argument, inject_self()};
    way = __real_pthread_create(thread, attributes, begin_thread, beginning);
    if (way != 0)
        __real_free(beginning);
    return way;
}

/* These two leave a message for dlerror. */
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags)
{
    return __real_dlopen(refused(INJECT_dlopen, HERE) ? "/no/such/library" : name, flags);
}

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name)
{
    return __real_dlsym(library, refused(INJECT_dlsym, HERE) ? "no_such_symbol" : name);
}
