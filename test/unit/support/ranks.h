/* Ranks for the tests of the control plane. Each has a control connection whose handler records the messages and checks that
 * those of every source arrive in order. Threads other than the first may not use cmocka's assertions, so functions that run on
 * them report by value. */
#ifndef RONDO_TEST_UNIT_SUPPORT_RANKS_H
#define RONDO_TEST_UNIT_SUPPORT_RANKS_H

#include "lib/base/thread.h"
#include "lib/control/control.h"

#include <dirent.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS_MOST = 64, NUMBERED = RONDO_CONTROL_FIRST_USER_TYPE, PLAIN };

struct rank {
    struct rondo_job_options options;
    struct rondo_control *control;
    rondo_result_t result; /* result of connecting */
    char error[1024];
    double seconds; /* duration of connecting */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t next[RANKS_MOST]; /* by source: the next expected number */
    int disordered, plain, lost;
    int died[RANKS_MOST], left[RANKS_MOST];
    size_t plain_bytes;
};

static inline double seconds_now(void)
{
    return (double) rondo_clock_ms() / 1000;
}

/* A NUMBERED message starts with its number among those of its source. */
static void note(void *argument, int source, uint32_t type, const void *data, size_t bytes)
{
    struct rank *rank = argument;
    pthread_mutex_lock(&rank->mutex);
    if (type == RONDO_CONTROL_DIED) {
        rank->died[source]++;
    } else if (type == RONDO_CONTROL_LEFT) {
        rank->left[source]++;
    } else if (type == RONDO_CONTROL_LOST) {
        rank->lost++;
    } else if (type == NUMBERED) {
        uint32_t number = UINT32_MAX;
        const unsigned char *filling = data;
        if (bytes >= sizeof(number))
            number = *(const uint32_t *) data;
        if (number != rank->next[source] || ((uintptr_t) data & 7) != 0)
            rank->disordered++;
        for (size_t i = sizeof(number); i < bytes; i += 1 + bytes / 64)
            if (filling[i] != (unsigned char) (number + (uint32_t) i))
                rank->disordered++;
        rank->next[source]++;
    } else {
        rank->plain++;
        rank->plain_bytes += bytes;
    }
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->mutex);
}

static inline void rank_prepare(struct rank *rank, int number, int size)
{
    memset(rank, 0, sizeof(*rank));
    rank->options.rank = number;
    rank->options.size = size;
    rank->options.connect_timeout = 30;
    pthread_mutex_init(&rank->mutex, NULL);
    pthread_cond_init(&rank->changed, NULL);
}

static inline void *rank_connect(void *argument)
{
    struct rank *rank = argument;
    double begin = seconds_now();
    rank->result = rondo_control_connect(&rank->control, &rank->options, note, rank);
    rank->seconds = seconds_now() - begin;
    snprintf(rank->error, sizeof(rank->error), "%s", rank->result == RONDO_SUCCESS ? "" : rondo_last_error());
    return NULL;
}

static inline void *rank_close(void *argument)
{
    struct rank *rank = argument;
    if (rank->result == RONDO_SUCCESS)
        rondo_control_close(rank->control, 30);
    rank->control = NULL;
    return NULL;
}

/* Runs function for all ranks at once, each on a thread. */
static inline void in_parallel(struct rank *ranks, int count, void *(*function)(void *) )
{
    pthread_t threads[RANKS_MOST];
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, function, &ranks[i]) != 0)
            abort();
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static inline void connect_all(struct rank *ranks, int count)
{
    in_parallel(ranks, count, rank_connect);
    for (int i = 0; i < count; i++)
        if (ranks[i].result != RONDO_SUCCESS)
            fail_msg("rank %d: %s", ranks[i].options.rank, ranks[i].error);
}

static inline int send_number(struct rank *rank, int dest, uint32_t number, size_t bytes)
{
    unsigned char *data = malloc(bytes);
    if (data == NULL)
        return RONDO_ERR_MEMORY;
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char) (number + (uint32_t) i);
    memcpy(data, &number, sizeof(number));
    rondo_result_t result = rondo_control_send(rank->control, dest, NUMBERED, data, bytes);
    free(data);
    return (int) result;
}

/* Of the rank's own thread, which may not assert. */
static inline void count_failures(struct rank *rank, int failures)
{
    pthread_mutex_lock(&rank->mutex);
    rank->disordered += failures;
    pthread_mutex_unlock(&rank->mutex);
}

/* Waits until *counter, which the mutex guards, is at least wanted. */
static inline int await(struct rank *rank, const void *counter, int wanted, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t) seconds + 1;
    int value, waited = 0;
    pthread_mutex_lock(&rank->mutex);
    while ((value = *(const volatile int *) counter) < wanted && waited == 0)
        waited = pthread_cond_timedwait(&rank->changed, &rank->mutex, &until);
    pthread_mutex_unlock(&rank->mutex);
    return value >= wanted;
}

static inline int read_counter(struct rank *rank, const void *counter)
{
    pthread_mutex_lock(&rank->mutex);
    int value = *(const volatile int *) counter;
    pthread_mutex_unlock(&rank->mutex);
    return value;
}

/* A TCP port of 127.0.0.1 that is free now. */
static inline int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *) &address, bytes) != 0 || getsockname(fd, (struct sockaddr *) &address, &bytes) != 0)
        abort();
    close(fd);
    return ntohs(address.sin_port);
}

/* Prepares a job that meets by TCP. Returns its root's port. */
static inline int use_tcp(struct rank *ranks, int size)
{
    static char root[64];
    const int port = free_port();
    snprintf(root, sizeof(root), "127.0.0.1:%d", port);
    for (int i = 0; i < size; i++) {
        rank_prepare(&ranks[i], i, size);
        ranks[i].options.root = root;
        ranks[i].options.secret = "a secret";
    }
    return port;
}

static inline int tcp_connect(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t) port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static inline int count_entries(const char *folder)
{
    DIR *directory = opendir(folder);
    int count = 0;
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count;
}

/* Setup and teardown of each test: it must leave neither threads nor descriptors behind. */
struct resources {
    int threads, descriptors;
};

static inline void *do_nothing(void *argument)
{
    return argument;
}

static inline int remember_resources(void **state)
{
    /* A sanitizer may start a thread of its own beside the program's first. */
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
    struct resources *before = malloc(sizeof(*before));
    if (before == NULL)
        return -1;
    before->threads = count_entries("/proc/self/task");
    before->descriptors = count_entries("/proc/self/fd");
    *state = before;
    return 0;
}

static inline int expect_resources(void **state)
{
    struct resources *before = *state, now = {0, 0};
    double until = seconds_now() + 5;
    do {
        now.threads = count_entries("/proc/self/task");
        now.descriptors = count_entries("/proc/self/fd");
        if (now.threads <= before->threads && now.descriptors <= before->descriptors) {
            free(before);
            return 0;
        }
        usleep(5000);
    } while (seconds_now() < until);
    fprintf(stderr, "left behind: %d threads, %d descriptors\n", now.threads - before->threads,
            now.descriptors - before->descriptors);
    free(before);
    return -1;
}

/* Runs this program as another process with the given arguments. It is a new program instead of a fork, so that it inherits
 * neither threads nor descriptors. */
static inline pid_t start_process(char *const arguments[])
{
    pid_t process = fork();
    if (process == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    return process;
}

#endif
