/* See tools/observe/job.h. Ranks are found in the kernel's list of sockets (/proc/net/unix). */
#include "tools/observe/job.h"

#include "lib/diagnostics/inspection_protocol.h"
#include "tools/common/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { FOUND_MOST = 4096, READ_BYTES = 65536, ANSWER_MOST = 1 << 30 };

/* Seconds that a rank may take to say who it is, which a frozen one does not; and to answer for all ranks. */
enum { IDENTITY_SECONDS = 1, ANSWER_SECONDS = 10 };

/* Returns a connected socket whose other end is of this user, unless root looks; or -1 and errno. */
static int reach(const char *name, int seconds)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(name);
    const struct timeval patience = {seconds, 0};
    struct ucred peer;
    socklen_t bytes = sizeof(peer);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    memcpy(address.sun_path + 1, name, length);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *) &address, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) {
        if (peer.uid == geteuid() || geteuid() == 0)
            return fd;
        errno = EPERM;
    }
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Asks the socket; the answer ends with the connection. NULL and errno: it failed, or the answer is empty. */
static char *ask(const char *socket_name, const char *request, int seconds)
{
    char line[64], *answer = NULL;
    size_t used = 0;
    ssize_t got = -1;
    const int fd = reach(socket_name, seconds), length = snprintf(line, sizeof(line), "%s\n", request);
    if (fd >= 0 && send(fd, line, (size_t) length, MSG_NOSIGNAL) == length)
        do {
            char *more = used < ANSWER_MOST ? realloc(answer, used + READ_BYTES + 1) : NULL;
            if (more == NULL) {
                errno = ENOMEM;
                got = -1;
                break;
            }
            answer = more;
            got = recv(fd, answer + used, READ_BYTES, 0);
            used += got > 0 ? (size_t) got : 0;
        } while (got > 0);
    const int error = got == 0 && used == 0 ? ECONNRESET : errno;
    if (fd >= 0)
        close(fd);
    if (got != 0 || used == 0) {
        free(answer);
        errno = error;
        return NULL;
    }
    answer[used] = '\0';
    return answer;
}

/* Fills in what the rank behind the socket says of itself. Returns 0, or -1 if it says nothing. */
static int identify(struct job *job)
{
    const char *name = "";
    json_int_t rank = 0, size = 0, pid = 0;
    char *answer = ask(job->socket, "job", IDENTITY_SECONDS);
    json_t *root = answer != NULL ? json_loads(answer, 0, NULL) : NULL;
    const int status = json_unpack(root, "{s:s, s:I, s:I, s:I}", "job", &name, "rank", &rank, "size", &size, "pid", &pid);
    if (root != NULL && status == 0) {
        snprintf(job->name, sizeof(job->name), "%s", name);
        job->rank = (int) rank;
        job->size = (int) size;
        job->pid = (long) pid;
    }
    json_decref(root);
    free(answer);
    return root != NULL && status == 0 ? 0 : -1;
}

/* Whether the line of /proc/net/unix is of a rank's listening socket, whose name is then stored. */
static int parse(const char *line, char name[JOB_SOCKET_BYTES])
{
    unsigned flags;
    char path[256];
    const size_t length = strlen(RONDO_INSPECTION_NAME);
    if (sscanf(line, "%*s %*x %*x %x %*x %*x %*u %255s", &flags, path) != 2 || (flags & 0x10000) == 0 || path[0] != '@' ||
        strncmp(path + 1, RONDO_INSPECTION_NAME, length) != 0 || strlen(path + 1) >= JOB_SOCKET_BYTES)
        return 0;
    memcpy(name, path + 1, strlen(path + 1) + 1);
    return 1;
}

/* Whether the socket is of the process, as its name says. */
static int is_of_process(const char *name, const char *wanted)
{
    const size_t length = strlen(RONDO_INSPECTION_NAME) + 1;
    return strncmp(name + length, wanted, strlen(wanted)) == 0 && name[length + strlen(wanted)] == '.';
}

/* Finds a rank that answers of each job, or, of the wanted one, the first. process: wanted is one. Returns how many jobs. */
static size_t search(FILE *sockets, const char *wanted, int process, struct job *found)
{
    char line[512];
    size_t count = 0;
    while (count < FOUND_MOST && (wanted == NULL || count == 0) && fgets(line, sizeof(line), sockets) != NULL) {
        struct job *job = &found[count];
        size_t known = 0;
        if (!parse(line, job->socket) || (process && !is_of_process(job->socket, wanted)) || identify(job) != 0 ||
            (wanted != NULL && !process && strcmp(wanted, job->name) != 0))
            continue;
        while (known < count && strcmp(found[known].name, job->name) != 0)
            known++;
        count += known == count;
    }
    return count;
}

int job_find(const char *verb, int words, char *const *word, struct job *job)
{
    if (words > 1)
        return options_refuse(verb, "one job, not %d", words);
    const char *wanted = words == 1 ? word[0] : NULL;
    FILE *sockets = fopen("/proc/net/unix", "re");
    struct job *found = calloc(FOUND_MOST, sizeof(*found));
    int code = 0;
    if (sockets == NULL || found == NULL) {
        code = options_refuse(verb, "cannot list the sockets of this host: %s", strerror(errno));
    } else {
        size_t count = wanted != NULL ? search(sockets, wanted, 1, found) : 0;
        rewind(sockets);
        if (count == 0)
            count = search(sockets, wanted, 0, found);
        if (count == 1)
            *job = found[0];
        else if (count == 0 && wanted != NULL)
            code = options_refuse(verb, "no rank of job or process '%s' answers on this host", wanted);
        else if (count == 0)
            code = options_refuse(verb, "no rank of this user answers on this host");
        else
            code = options_refuse(verb, "there are %zu jobs; name one of them, or a process of it:", count);
        for (size_t i = 0; count > 1 && i < count; i++)
            fprintf(stderr, "  %s  %d ranks, process %ld\n", found[i].name, found[i].size, found[i].pid);
    }
    if (sockets != NULL)
        fclose(sockets);
    free(found);
    return code;
}

char *job_ask(const char *verb, const struct job *job, const char *request)
{
    char *answer = ask(job->socket, request, ANSWER_SECONDS);
    if (answer == NULL)
        options_refuse(verb, "process %ld, which is rank %d of job %s, does not answer: %s", job->pid, job->rank, job->name,
                       errno == EAGAIN ? "it took ten seconds" : strerror(errno));
    return answer;
}

json_t *job_state(const char *verb, const struct job *job)
{
    json_error_t error;
    char *answer = job_ask(verb, job, "state");
    if (answer == NULL)
        return NULL;
    json_t *root = json_loads(answer, 0, &error);
    if (root == NULL || !json_is_array(json_object_get(root, "ranks"))) {
        options_refuse(verb, "process %ld answered with %zu bytes that are no state: %s", job->pid, strlen(answer),
                       root == NULL ? error.text : "no ranks");
        json_decref(root);
        root = NULL;
    }
    free(answer);
    return root;
}
