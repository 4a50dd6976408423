/* Finds a peer, in the command or in a shared object of its own. See tools/peer/peer.h. */
#include "tools/peer/peer.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct peer *load_object(const char *name, char *message, size_t bytes)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0) {
        snprintf(message, bytes, "cannot find the directory of the command: /proc/self/exe is not readable");
        return NULL;
    }
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/rondo-peer-%s.so", program, name);
    /* Global, because plugins that an MPI library loads later look for its symbols there. Never closed: such libraries do not
     * survive being unloaded. */
    void *object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (object == NULL) {
        snprintf(message, bytes, "%s", dlerror());
        return NULL;
    }
    peer_entry_t entry;
    void *symbol = dlsym(object, PEER_SYMBOL);
    if (symbol == NULL) {
        snprintf(message, bytes, "%s has no symbol %s", path, PEER_SYMBOL);
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof(entry));
    return entry();
}

const struct peer *peer_load(const char *name, char *message, size_t bytes)
{
    if (strcmp(name, "nccl") != 0)
        return load_object(name, message, bytes);
#if RONDO_WITH_CUDA
    return peer_nccl(message, bytes);
#else
    snprintf(message, bytes, "built without CUDA");
    return NULL;
#endif
}
