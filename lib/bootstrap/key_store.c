/* See lib/bootstrap/key_store.h. A read may be answered long after its reader has given up, on a thread of libpmix; so what it
 * is answered into has two owners and is freed by the last of them. */
#include "lib/bootstrap/key_store.h"

#include "lib/base/error.h"
#include "lib/base/futex.h"
#include "lib/base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *set(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

int rondo_key_store_is_offered(int rank)
{
    /* The server's address has a name for each version of the protocol that it speaks. */
    static const char *const servers[] = {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI21",
                                          "PMIX_SERVER_URI2"};
    char own[16];
    const char *theirs = set("PMIX_RANK");
    snprintf(own, sizeof(own), "%d", rank);
    for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++)
        if (set(servers[i]) != NULL)
            return set("PMIX_NAMESPACE") != NULL && theirs != NULL && strcmp(own, theirs) == 0;
    return 0;
}

#if RONDO_WITH_PMIX

#include <dlfcn.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>

#define FUNCTIONS(each)                                                                                                        \
    each(PMIx_Init) each(PMIx_Finalize) each(PMIx_Initialized) each(PMIx_Put) each(PMIx_Commit) each(PMIx_Get_nb)              \
        each(PMIx_Error_string)

enum {
    PAUSE_FIRST_MS = 10, /* between two reads */
    PAUSE_MOST_MS = 500,
    INFOS = 2, /* what is asked of a read */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char trouble[300];
static struct {
#define MEMBER(name) __typeof__(&name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} library;
static int is_foreign; /* the library was in the process before: an MPI library has loaded it */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects what follows */
static int begun;                                         /* rendezvous of this process */
static pid_t opened_by;                                   /* the process that is connected to the launcher; 0: none */
static pmix_proc_t self;

/* Returns the library that the process has, else that of the launcher's installation, where the launcher says which that is,
 * else the system's; NULL: none. A client and a server of one version understand each other best. */
static void *find_library(void)
{
    static const char name[] = "libpmix.so.2";
    static const char *const folders[] = {"lib/openmpi", "lib", "lib64"};
    const char *prefix = set("PMIX_PREFIX");
    char path[1024];
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    is_foreign = handle != NULL;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && handle == NULL && prefix != NULL; i++)
        if (snprintf(path, sizeof(path), "%s/%s/%s", prefix, folders[i], name) < (int) sizeof(path))
            handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL && (handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) == NULL)
        snprintf(trouble, sizeof(trouble), "%s", dlerror());
    return handle;
}

static void load(void)
{
    void *handle = find_library();
    if (handle == NULL)
        return;
#define FIND(name)                                                                                                             \
    *(void **) &library.name = dlsym(handle, #name);                                                                           \
    if (library.name == NULL && trouble[0] == '\0')                                                                            \
        snprintf(trouble, sizeof(trouble), "libpmix.so.2 has no %s: it is too old", #name);
    FUNCTIONS(FIND)
#undef FIND
}

const char *rondo_key_store_unusable(void)
{
    pthread_once(&once, load);
    if (trouble[0] != '\0')
        return trouble;
    return is_foreign && !library.PMIx_Initialized() ? "the MPI library of this process has not been initialized: call "
                                                       "MPI_Init before rondo_init"
                                                     : NULL;
}

static rondo_result_t fail(const char *what, pmix_status_t status)
{
    return rondo_fail(RONDO_ERR_BOOTSTRAP, "the launcher's key store (PMIx) %s: %s", what, library.PMIx_Error_string(status));
}

/* Without it Open MPI's launcher takes the end of the process for a failure. A child of fork is not the one that has opened. */
static void close_at_exit(void)
{
    if (opened_by == getpid())
        library.PMIx_Finalize(NULL, 0);
}

/* Under the mutex. The threads of libpmix inherit the mask, so that no signal of the application reaches them. */
static rondo_result_t open_once(void)
{
    sigset_t all, before;
    if (opened_by == getpid())
        return RONDO_SUCCESS;
    if (opened_by != 0)
        return rondo_fail(RONDO_ERR_BOOTSTRAP,
                          "the launcher's key store (PMIx) is that of the process that has forked this one: set RONDO_ROOT");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pmix_status_t status = library.PMIx_Init(&self, NULL, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status != PMIX_SUCCESS)
        return fail("does not answer", status);
    opened_by = getpid();
    atexit(close_at_exit);
    return RONDO_SUCCESS;
}

rondo_result_t rondo_key_store_open(struct rondo_key_store *store)
{
    rondo_result_t result = RONDO_SUCCESS;
    pthread_mutex_lock(&mutex);
    store->number = begun++;
    const char *why = rondo_key_store_unusable();
    if (why != NULL)
        result = rondo_fail(RONDO_ERR_BOOTSTRAP,
                            "the job is on several hosts, and the launcher's key store (PMIx) is not usable: %s; or set "
                            "RONDO_ROOT=host:port and RONDO_SECRET",
                            why);
    else
        result = open_once();
    pthread_mutex_unlock(&mutex);
    return result;
}

static void name_key(const struct rondo_key_store *store, char key[32])
{
    snprintf(key, 32, "rondo.root.%d", store->number);
}

rondo_result_t rondo_key_store_put(const struct rondo_key_store *store, const unsigned char value[RONDO_KEY_STORE_VALUE])
{
    char key[32], copy[RONDO_KEY_STORE_VALUE];
    pmix_value_t stored = {.type = PMIX_BYTE_OBJECT};
    memcpy(copy, value, sizeof(copy));
    stored.data.bo.bytes = copy;
    stored.data.bo.size = sizeof(copy);
    name_key(store, key);
    pmix_status_t status = library.PMIx_Put(PMIX_GLOBAL, key, &stored); /* copies it */
    if (status == PMIX_SUCCESS)
        status = library.PMIx_Commit();
    explicit_bzero(copy, sizeof(copy));
    return status == PMIX_SUCCESS ? RONDO_SUCCESS : fail("does not take this rank's address", status);
}

/* ---- reading ---- */

struct read {
    uint32_t owners;   /* of the reader and libpmix's thread, those that have not given it up */
    uint32_t answered; /* 1: what follows is set */
    pmix_status_t status;
    unsigned char value[RONDO_KEY_STORE_VALUE];
    pmix_proc_t proc; /* what was asked must stay until the answer */
    char key[32];
    pmix_info_t info[INFOS];
};

/* The last of the two frees it. Release and acquire: what either has done with it comes before. */
static void give_up(struct read *read)
{
    if (__atomic_sub_fetch(&read->owners, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    explicit_bzero(read, sizeof(*read));
    free(read);
}

static void take_answer(pmix_status_t status, pmix_value_t *value, void *data)
{
    struct read *read = data;
    read->status = status;
    if (status == PMIX_SUCCESS && (value == NULL || value->type != PMIX_BYTE_OBJECT || value->data.bo.bytes == NULL ||
                                   value->data.bo.size != RONDO_KEY_STORE_VALUE))
        read->status = PMIX_ERR_BAD_PARAM;
    else if (status == PMIX_SUCCESS)
        memcpy(read->value, value->data.bo.bytes, RONDO_KEY_STORE_VALUE);
    /* Release pairs with the reader's acquire: it sees status and value. */
    __atomic_store_n(&read->answered, 1, __ATOMIC_RELEASE);
    rondo_futex_wake(&read->answered, 1);
    give_up(read);
}

/* Asks once. Returns what libpmix says, or PMIX_ERR_TIMEOUT at the deadline; PMIX_ERR_NOMEM. A server that knows the key waits
 * until it is there; one that does not answers with what the rank has stored before, which may lack it. */
static pmix_status_t ask(const struct rondo_key_store *store, int rank, int64_t deadline, unsigned char *value)
{
    const int64_t left = deadline - rondo_clock_ms();
    struct read *read = calloc(1, sizeof(*read));
    if (read == NULL)
        return PMIX_ERR_NOMEM;
    read->owners = 2;
    read->proc = self;
    read->proc.rank = (pmix_rank_t) rank;
    name_key(store, read->key);
    read->info[0] = (pmix_info_t){.key = PMIX_TIMEOUT, .value.type = PMIX_INT};
    read->info[0].value.data.integer = left > 1000000000 ? 1000000 : (int) (left / 1000) + 1;
    read->info[1] = (pmix_info_t){.key = "pmix.req.key", .value.type = PMIX_STRING}; /* PMIX_REQUIRED_KEY, from version 4 on */
    read->info[1].value.data.string = read->key;
    pmix_status_t status = library.PMIx_Get_nb(&read->proc, read->key, read->info, INFOS, take_answer, read);
    if (status != PMIX_SUCCESS) { /* it will not be answered */
        give_up(read);
        give_up(read);
        return status;
    }
    /* The server's own limit is not relied on: Open MPI 4's does not answer at all where the rank has ended. */
    int answered = 0;
    for (int64_t now = rondo_clock_ms();
         (answered = (int) __atomic_load_n(&read->answered, __ATOMIC_ACQUIRE)) == 0 && now < deadline; now = rondo_clock_ms())
        rondo_futex_wait(&read->answered, 0, (uint64_t) (deadline - now) * 1000000u);
    status = answered ? read->status : PMIX_ERR_TIMEOUT;
    if (status == PMIX_SUCCESS)
        memcpy(value, read->value, RONDO_KEY_STORE_VALUE);
    give_up(read);
    return status;
}

rondo_result_t rondo_key_store_get(const struct rondo_key_store *store, int rank, int64_t deadline,
                                   unsigned char value[RONDO_KEY_STORE_VALUE])
{
    for (int pause = PAUSE_FIRST_MS;; pause = pause * 2 < PAUSE_MOST_MS ? pause * 2 : PAUSE_MOST_MS) {
        const pmix_status_t status = ask(store, rank, deadline, value);
        if (status == PMIX_SUCCESS)
            return RONDO_SUCCESS;
        if (status == PMIX_ERR_NOMEM)
            return rondo_fail(RONDO_ERR_MEMORY, "no memory to ask the launcher's key store");
        if (status == PMIX_ERR_NOT_SUPPORTED || status == PMIX_ERR_BAD_PARAM)
            return fail("cannot be read", status);
        if (rondo_clock_ms() >= deadline)
            return rondo_fail(
                RONDO_ERR_BOOTSTRAP,
                "rank %d has not stored its address in the launcher's key store (PMIx) in time: it did not come (%s)", rank,
                library.PMIx_Error_string(status));
        rondo_clock_pause(pause, deadline);
    }
}

#else

const char *rondo_key_store_unusable(void)
{
    return "built without pmix.h";
}

rondo_result_t rondo_key_store_open(struct rondo_key_store *store)
{
    store->number = 0;
    return rondo_fail(
        RONDO_ERR_BOOTSTRAP,
        "the job is on several hosts, and Rondo was built without pmix.h, so that it cannot use the launcher's key "
        "store: set RONDO_ROOT=host:port and RONDO_SECRET");
}

rondo_result_t rondo_key_store_put(const struct rondo_key_store *store, const unsigned char value[RONDO_KEY_STORE_VALUE])
{
    (void) store, (void) value;
    return rondo_fail(RONDO_ERR_INTERNAL, "there is no key store");
}

rondo_result_t rondo_key_store_get(const struct rondo_key_store *store, int rank, int64_t deadline,
                                   unsigned char value[RONDO_KEY_STORE_VALUE])
{
    (void) store, (void) rank, (void) deadline, (void) value;
    return rondo_fail(RONDO_ERR_INTERNAL, "there is no key store");
}

#endif
