/*
 * Reading the memory of another process of this host, which is how a message between processes is copied once. Relies on
 * process_vm_readv(2), which the kernel allows between processes of one user unless a security module, a container's filter or
 * the process itself forbids it. A process is named by its id and by a token in its memory, so that one that has got the id of
 * a process that ended is never taken for it. Any thread may call any function here.
 */
#ifndef RONDO_DEVICE_ENGINE_PROCESS_MEMORY_H
#define RONDO_DEVICE_ENGINE_PROCESS_MEMORY_H

#include "lib/base/thread.h"

#include <stddef.h>
#include <stdint.h>

/* Plain data, for other processes. process 0: none. */
struct rondo_process_identity {
    int64_t process;
    uint64_t address; /* of the token in the process's memory */
    unsigned char token[RONDO_PROCESS_TOKEN_BYTES];
};

/* Stores this process's identity. The token stays where it is until the process ends. Where Yama restricts ptrace to
 * descendants (/proc/sys/kernel/yama/ptrace_scope is 1), also tells the kernel that processes of this user may read this one's
 * memory (PR_SET_PTRACER). RONDO_ERR_SYSTEM without random bytes. */
rondo_result_t rondo_process_identify(struct rondo_process_identity *self);

/* Copies bytes from another process's memory. Returns 0 if all of them have been copied, from the process that the identity
 * names; else an errno: EPERM if the kernel forbids it, ESRCH if the process has ended (the id may be another one's by now),
 * EFAULT if a part of its memory cannot be read. Then the bytes at `to` are undefined. Never waits for the other process. */
int rondo_process_read(const struct rondo_process_identity *process, void *to, const void *from, size_t bytes);

/* Whether the process can be read: a real read of its token. Returns 0, or the errno. */
int rondo_process_probe(const struct rondo_process_identity *process);

#endif
