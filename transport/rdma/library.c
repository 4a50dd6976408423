/* See transport/rdma/library.h. The kernel is asked first: without a device nothing is loaded. */
#include "transport/rdma/library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rondo_rdma_library library;
static char trouble[200];

static int has_devices(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    int found = 0;
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;)
        found = entry->d_name[0] != '.';
    closedir(folder);
    return found;
}

static void *open_library(const char *name)
{
    void *handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE); /* global: providers look for libibverbs' symbols */
    if (handle == NULL)
        snprintf(trouble, sizeof(trouble), "%s", dlerror());
    return handle;
}

static void load(void)
{
    void *verbs, *cm;
    if ((verbs = open_library("libibverbs.so.1")) == NULL || (cm = open_library("librdmacm.so.1")) == NULL)
        return;
#define FIND(handle, file, name)                                                                                               \
    *(void **) &library.name = dlsym(handle, #name);                                                                           \
    if (library.name == NULL && trouble[0] == '\0')                                                                            \
        snprintf(trouble, sizeof(trouble), "%s has no %s: it is too old", file, #name);
#define FIND_VERBS(name) FIND(verbs, "libibverbs.so.1", name)
#define FIND_CM(name)    FIND(cm, "librdmacm.so.1", name)
    RONDO_VERBS_FUNCTIONS(FIND_VERBS)
    RONDO_RDMACM_FUNCTIONS(FIND_CM)
    *(void **) &library.ibv_reg_dmabuf_mr = dlsym(verbs, "ibv_reg_dmabuf_mr");
}

const struct rondo_rdma_library *rondo_rdma_library(const char **why)
{
    if (!has_devices()) { /* not remembered: one may be plugged in */
        *why = "this machine has no RDMA device (/sys/class/infiniband)";
        return NULL;
    }
    pthread_once(&once, load);
    *why = trouble[0] != '\0' ? trouble : NULL;
    return trouble[0] != '\0' ? NULL : &library;
}
