/* See lib/bootstrap/process_socket.h. Which descriptors are such sockets is a bit for each number; the lock is held over the
 * system calls that make and end them, and by fork. */
#include "lib/bootstrap/process_socket.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

/* Linux lets a process have so many descriptors unless fs.nr_open was raised. A child keeps a socket with a larger number. */
#define NUMBERS   (1 << 20)
#define WORD_BITS 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the fields below; no other lock is taken under it */
static uint64_t marked[NUMBERS / WORD_BITS];
static int words; /* all behind so many are 0 */

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static int watch_failed;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* On the child's only thread. */
static void after_fork_in_child(void)
{
    for (int word = 0; word < words; word++)
        for (; marked[word] != 0; marked[word] &= marked[word] - 1)
            close(word * WORD_BITS + __builtin_ctzll(marked[word]));
    words = 0;
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    watch_failed = pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Lock held. */
static void mark(int fd)
{
    if (fd < 0 || fd >= NUMBERS)
        return;
    marked[fd / WORD_BITS] |= (uint64_t) 1 << fd % WORD_BITS;
    if (words <= fd / WORD_BITS)
        words = fd / WORD_BITS + 1;
}

int rondo_process_socket_begin(void)
{
    pthread_once(&watch_once, watch_forks);
    if (watch_failed != 0) {
        errno = watch_failed;
        return -1;
    }
    pthread_mutex_lock(&lock);
    return 0;
}

int rondo_process_socket_end(int fd)
{
    mark(fd);
    pthread_mutex_unlock(&lock);
    return fd;
}

int rondo_process_socket_pair(int pair[2])
{
    if (rondo_process_socket_begin() != 0)
        return -1;
    int result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair);
    for (int i = 0; result == 0 && i < 2; i++)
        mark(pair[i]);
    pthread_mutex_unlock(&lock);
    return result;
}

void rondo_process_socket_close(int fd)
{
    const int error = errno;
    pthread_mutex_lock(&lock);
    if (fd >= 0 && fd < NUMBERS)
        marked[fd / WORD_BITS] &= ~((uint64_t) 1 << fd % WORD_BITS);
    close(fd);
    pthread_mutex_unlock(&lock);
    errno = error;
}
