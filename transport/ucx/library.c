/* See transport/ucx/library.h. UCX installs handlers for the signals of crashes when it is loaded; the handlers that were there
 * before are put back. */
#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct rondo_ucx_library library;
static char trouble[200];

static void load(void)
{
    static const int taken[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE};
    enum { TAKEN = sizeof(taken) / sizeof(taken[0]) };
    struct sigaction before[TAKEN];
    for (int i = 0; i < TAKEN; i++)
        sigaction(taken[i], NULL, &before[i]);
    void *handle = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (int i = 0; i < TAKEN; i++)
        sigaction(taken[i], &before[i], NULL);
    if (handle == NULL) {
        snprintf(trouble, sizeof(trouble), "%s", dlerror());
        return;
    }
#define FIND(name)                                                                                                             \
    *(void **) &library.name = dlsym(handle, #name);                                                                           \
    if (library.name == NULL && trouble[0] == '\0')                                                                            \
        snprintf(trouble, sizeof(trouble), "libucp.so.0 has no %s: it is too old", #name);
    RONDO_UCX_FUNCTIONS(FIND)
#undef FIND
}

const struct rondo_ucx_library *rondo_ucx_library(const char **why)
{
    pthread_once(&once, load);
    *why = trouble[0] != '\0' ? trouble : NULL;
    return trouble[0] != '\0' ? NULL : &library;
}
