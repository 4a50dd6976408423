/* See device/engine/process_memory.h. */
#include "device/engine/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL_BYTES ((size_t) 1 << 20) /* of one system call, at most */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char shown[RONDO_PROCESS_TOKEN_BYTES]; /* what other processes read */

/* Lets processes that are no ancestors of this one read its memory, where Yama asks for that. A failure shows in the probe. */
static void allow_readers(void)
{
    char scope = '0';
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t got = read(fd, &scope, 1);
    close(fd);
    if (got == 1 && scope == '1')
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}

rondo_result_t rondo_process_identify(struct rondo_process_identity *self)
{
    rondo_result_t result = rondo_process_token(self->token);
    if (result != RONDO_SUCCESS)
        return result;
    pthread_mutex_lock(&lock);
    if (memcmp(shown, self->token, sizeof(shown)) != 0) { /* the first call, or the first one of a forked child */
        memcpy(shown, self->token, sizeof(shown));
        allow_readers();
    }
    pthread_mutex_unlock(&lock);
    self->process = getpid();
    self->address = (uint64_t) (uintptr_t) shown;
    return RONDO_SUCCESS;
}

int rondo_process_read(const struct rondo_process_identity *process, void *to, const void *from, size_t bytes)
{
    char *out = to;
    const char *in = from;
    do {
        /* One call reads one address space, so the token says whose bytes these are. */
        unsigned char token[RONDO_PROCESS_TOKEN_BYTES];
        const size_t most = bytes < CALL_BYTES ? bytes : CALL_BYTES;
        const struct iovec local[2] = {{token, sizeof(token)}, {out, most}};
        const struct iovec remote[2] = {{(void *) (uintptr_t) process->address, sizeof(token)},
                                        {(void *) (uintptr_t) in, most}};
        const ssize_t moved = process_vm_readv((pid_t) process->process, local, 2, remote, 2, 0);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved < 0)
            return errno;
        if (moved < (ssize_t) sizeof(token) || memcmp(token, process->token, sizeof(token)) != 0)
            return ESRCH;
        const size_t copied = (size_t) moved - sizeof(token);
        if (copied == 0 && most > 0)
            return EFAULT;
        out += copied;
        in += copied;
        bytes -= copied;
    } while (bytes > 0);
    return 0;
}

int rondo_process_probe(const struct rondo_process_identity *process)
{
    unsigned char token[RONDO_PROCESS_TOKEN_BYTES];
    return rondo_process_read(process, token, (const void *) (uintptr_t) process->address, sizeof(token));
}
