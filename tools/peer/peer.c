/* Finds a peer, in the command or in a shared object of its own. See tools/peer/peer.h. */
#include "tools/peer/peer.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The newest of the shared objects rondo-peer-mpi-NAME*.so in the folder; name "": rondo-peer-mpi.so. Returns 0, or not 0 if
 * there is none. */
static int find_object(const char *folder, const char *name, char *path, size_t bytes)
{
    char prefix[64], best[NAME_MAX + 1] = "";
    snprintf(prefix, sizeof(prefix), name[0] == '\0' ? "rondo-peer-mpi.so" : "rondo-peer-mpi-%s", name);
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return 1;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *end = strrchr(entry->d_name, '.');
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && end != NULL && strcmp(end, ".so") == 0 &&
            strverscmp(entry->d_name, best) > 0)
            snprintf(best, sizeof(best), "%s", entry->d_name);
    }
    closedir(directory);
    snprintf(path, bytes, "%s/%s", folder, best);
    return best[0] == '\0';
}

/* name: of an MPI, or "". */
static const struct peer *load_object(const char *name, char *message, size_t bytes)
{
    char program[PATH_MAX], path[PATH_MAX + NAME_MAX + 2];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0) {
        snprintf(message, bytes, "cannot find the directory of the command: /proc/self/exe is not readable");
        return NULL;
    }
    program[length] = '\0';
    *strrchr(program, '/') = '\0';
    if (find_object(program, name, path, sizeof(path)) != 0) {
        snprintf(message, bytes, "%s has no rondo-peer-mpi%s%s.so: 'make MPICC=\"WRAPPER ...\"' builds one for each MPI",
                 program, name[0] == '\0' ? "" : "-", name);
        return NULL;
    }
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

bool peer_is_name(const char *name)
{
    return strcmp(name, "nccl") == 0 || strcmp(name, "mpi") == 0 ||
           (strncmp(name, "mpi:", 4) == 0 && strchr(name, '/') == NULL);
}

const struct peer *peer_load(const char *name, char *message, size_t bytes)
{
    if (strcmp(name, "nccl") != 0)
        return load_object(name[3] == ':' ? name + 4 : "", message, bytes);
#if RONDO_WITH_CUDA
    return peer_nccl(message, bytes);
#else
    snprintf(message, bytes, "built without CUDA");
    return NULL;
#endif
}
