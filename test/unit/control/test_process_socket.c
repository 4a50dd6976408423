/* Sockets of this process alone (lib/bootstrap/process_socket.h): what a forked child has of them, and what else it keeps. */
#include "lib/bootstrap/process_socket.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns what the look returns in a forked child, from 0 to 255. */
static int in_child(int (*look)(const int *fds), const int *fds)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        _exit(look(fds));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int count_open(const int *fds)
{
    int open = 0;
    for (; *fds >= 0; fds++)
        open += fcntl(*fds, F_GETFD) >= 0;
    return open;
}

/* Makes a listener and a connection to it. */
static void make_three(int fds[4])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the system picks a name */
    socklen_t bytes = sizeof(address);
    fds[0] = rondo_process_socket(AF_UNIX, SOCK_STREAM);
    assert_int_equal(bind(fds[0], (const struct sockaddr *) &address, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(fds[0], 1), 0);
    assert_int_equal(getsockname(fds[0], (struct sockaddr *) &address, &bytes), 0);
    fds[1] = rondo_process_socket(AF_UNIX, SOCK_STREAM);
    assert_int_equal(connect(fds[1], (const struct sockaddr *) &address, bytes), 0);
    fds[2] = rondo_process_socket_accept(fds[0], NULL, NULL);
    fds[3] = -1;
    assert_int_equal(count_open(fds), 3);
}

static void test_a_child_has_none(void **state)
{
    (void) state;
    int fds[4], pair[3] = {-1, -1, -1};
    make_three(fds);
    assert_int_equal(rondo_process_socket_pair(pair), 0);
    assert_int_equal(in_child(count_open, fds), 0);
    assert_int_equal(in_child(count_open, pair), 0);
    /* The parent's connections are what they were, and end when the parent closes them. */
    char byte = 'x';
    assert_int_equal(send(fds[1], &byte, 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(fds[2], &byte, 1, 0), 1);
    assert_int_equal(send(pair[0], &byte, 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(pair[1], &byte, 1, 0), 1);
    for (int i = 0; i < 3; i++)
        rondo_process_socket_close(fds[i]);
    for (int i = 0; i < 2; i++)
        rondo_process_socket_close(pair[i]);
    assert_int_equal(count_open(fds), 0);
}

/* A number that such a socket had, and that stands for something else now, is the child's to keep. */
static void test_a_child_keeps_the_rest(void **state)
{
    (void) state;
    int fds[4];
    make_three(fds);
    rondo_process_socket_close(fds[1]);
    assert_int_equal(open("/dev/null", O_RDONLY | O_CLOEXEC), fds[1]);
    assert_int_equal(in_child(count_open, fds), 1);
    close(fds[1]);
    rondo_process_socket_close(fds[0]);
    rondo_process_socket_close(fds[2]);
}

static atomic_int stop, failed;

/* Sockets and files take turns at the same numbers. */
static void *churn(void *argument)
{
    (void) argument;
    while (!atomic_load(&stop)) {
        const int made = rondo_process_socket(AF_UNIX, SOCK_STREAM);
        if (made < 0)
            atomic_store(&failed, 1);
        rondo_process_socket_close(made);
        close(open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    return NULL;
}

static int has_socket(const int *fds)
{
    struct stat about;
    (void) fds;
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
        if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode))
            return 1;
    return 0;
}

static void test_forks_beside_other_threads(void **state)
{
    (void) state;
    pthread_t threads[2];
    const int before = has_socket(NULL);
    int found = 0;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 1000; i++)
        found += in_child(has_socket, NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(before, 0);
    assert_int_equal(found, 0);
    assert_int_equal(atomic_load(&failed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_has_none),
        cmocka_unit_test(test_a_child_keeps_the_rest),
        cmocka_unit_test(test_forks_beside_other_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
