/*
 * The calls that injection can make fail, and the ways in which each fails: an errno, INJECT_SHORT (fewer bytes than asked for)
 * or INJECT_END (the peer has closed the connection, the file ends). The Makefile takes the names of X(...) from here for the
 * linker's --wrap, so every function that wrappers.c wraps is named in one of the two lists.
 */
#ifndef RONDO_TEST_INJECTION_FUNCTIONS_H
#define RONDO_TEST_INJECTION_FUNCTIONS_H

/* clang-format off */
#define INJECT_FUNCTIONS(X)                                     \
    X(malloc, ENOMEM)                                           \
    X(calloc, ENOMEM)                                           \
    X(realloc, ENOMEM)                                          \
    X(aligned_alloc, ENOMEM)                                    \
    X(strdup, ENOMEM)                                           \
    X(realpath, EACCES)                                         \
    X(open_memstream, ENOMEM)                                   \
    X(newlocale, ENOMEM)                                        \
    X(mmap, ENOMEM)                                             \
    X(munmap, ENOMEM)                                           \
    X(memfd_create, EMFILE)                                     \
    X(ftruncate, ENOSPC, EINTR)                                 \
    X(fstat, EOVERFLOW)                                         \
    X(stat, EACCES)                                             \
    X(lseek, EOVERFLOW)                                         \
    X(flock, ENOLCK, EINTR)                                     \
    X(link, EPERM)                                              \
    X(rename, EACCES)                                           \
    X(fcntl, EMFILE)                                            \
    X(open, EMFILE, EINTR)                                      \
    X(fopen, EMFILE)                                            \
    X(opendir, EMFILE)                                          \
    X(scandir, ENOMEM)                                          \
    X(read, EIO, EINTR, INJECT_SHORT, INJECT_END)               \
    X(write, ENOSPC, EINTR, INJECT_SHORT)                       \
    X(pread, EIO, EINTR, INJECT_SHORT)                          \
    X(fdopen, ENOMEM)                                           \
    X(pwrite, ENOSPC, EINTR, INJECT_SHORT)                      \
    X(process_vm_readv, EPERM, ESRCH, EINTR)                    \
    X(fread, EIO)                                               \
    X(fwrite, ENOSPC)                                           \
    X(socket, EMFILE)                                           \
    X(socketpair, EMFILE)                                       \
    X(bind, EADDRINUSE)                                         \
    X(listen, EADDRINUSE)                                       \
    X(connect, ECONNREFUSED, EINTR)                             \
    X(accept4, EMFILE, ECONNABORTED, EINTR)                     \
    X(getsockname, ENOBUFS)                                     \
    X(getpeername, ENOTCONN)                                    \
    X(getsockopt, ENOBUFS)                                      \
    X(setsockopt, ENOBUFS)                                      \
    X(send, ECONNRESET, EINTR, INJECT_SHORT)                    \
    X(recv, ECONNRESET, EINTR, INJECT_SHORT, INJECT_END)        \
    X(sendmsg, ENOBUFS, EINTR)                                  \
    X(recvmsg, ECONNRESET, EINTR, INJECT_END)                   \
    X(poll, ENOMEM, EINTR)                                      \
    X(ppoll, ENOMEM, EINTR)                                     \
    X(epoll_create1, EMFILE)                                    \
    X(epoll_ctl, ENOSPC)                                        \
    X(epoll_wait, EINTR)                                        \
    X(eventfd, EMFILE)                                          \
    X(timerfd_create, EMFILE)                                   \
    X(timerfd_settime, EINVAL)                                  \
    X(getrandom, ENOSYS, EINTR, INJECT_SHORT)                   \
    X(getifaddrs, ENOMEM)                                       \
    X(getaddrinfo, ENOMEM)                                      \
    X(gethostname, EPERM)                                       \
    X(sched_getaffinity, EINVAL)                                \
    X(sched_setaffinity, EINVAL)                                \
    X(mbind, ENOMEM)                                            \
    X(sigaction, EINVAL)                                        \
    X(pthread_create, EAGAIN)                                   \
    X(dlopen, ENOENT)                                           \
    X(dlsym, ENOENT)

/* Wrapped to know what is still allocated at the end. */
#define INJECT_RELEASES(X) X(free)
/* clang-format on */

#endif
