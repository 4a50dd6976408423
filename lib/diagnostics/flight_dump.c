/* See lib/diagnostics/flight_dump.h. lib/diagnostics/flight_text.c composes what is written. */
#include "lib/diagnostics/flight_dump.h"

#include "lib/base/environment.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/diagnostics/flight_recorder.h"
#include "lib/diagnostics/flight_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4200

struct rondo_flight_dump {
    pthread_mutex_t lock; /* one thread writes at a time */
    const char *prefix;
    uint32_t asked, closed; /* atomic */
    int written;
    uint64_t written_next; /* how many operations the last file has seen start (lock) */
    struct rondo_flight_view view;
};

rondo_result_t rondo_flight_dump_create(struct rondo_flight_dump **dump)
{
    const char *prefix;
    *dump = NULL;
    rondo_result_t result = rondo_environment_text("RONDO_FLIGHT_RECORDER", &prefix);
    if (result != RONDO_SUCCESS || prefix == NULL)
        return result;
    *dump = calloc(1, sizeof(**dump));
    if (*dump == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the flight recorder's file");
    pthread_mutex_init(&(*dump)->lock, NULL);
    (*dump)->prefix = prefix;
    return RONDO_SUCCESS;
}

void rondo_flight_dump_destroy(struct rondo_flight_dump *dump)
{
    if (dump == NULL)
        return;
    pthread_mutex_destroy(&dump->lock);
    free(dump);
}

/* Writes the file. Lock held. */
static void write_file(struct rondo_runtime *runtime, struct rondo_flight_dump *dump)
{
    char path[PATH_BYTES], reason[RONDO_FILE_REASON_BYTES];
    snprintf(path, sizeof(path), "%s%d", dump->prefix, runtime->rank);
    dump->written_next = __atomic_load_n(&runtime->flight->next, __ATOMIC_RELAXED);
    dump->written = 1;
    char *text = rondo_flight_compose(runtime, &dump->view);
    const int error = text != NULL ? rondo_file_replace(path, text, strlen(text)) : ENOMEM;
    free(text);
    if (error != 0)
        rondo_log(RONDO_LOG_WARN, runtime->rank, "RONDO_FLIGHT_RECORDER: cannot write %s: %s", path,
                  rondo_file_reason(error, reason));
    else
        rondo_log(RONDO_LOG_INFO, runtime->rank, "RONDO_FLIGHT_RECORDER: the last operations are in %s", path);
}

void rondo_flight_dump_ask(struct rondo_runtime *runtime)
{
    if (runtime->flight_dump != NULL)
        __atomic_store_n(&runtime->flight_dump->asked, 1, __ATOMIC_RELAXED);
}

void rondo_flight_dump_check(struct rondo_runtime *runtime)
{
    struct rondo_flight_dump *dump = runtime->flight_dump;
    if (dump == NULL || !__atomic_load_n(&dump->asked, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&dump->lock);
    if (__atomic_exchange_n(&dump->asked, 0, __ATOMIC_RELAXED)) /* no failure has written it meanwhile */
        write_file(runtime, dump);
    pthread_mutex_unlock(&dump->lock);
}

void rondo_flight_dump_close(struct rondo_runtime *runtime)
{
    if (runtime->flight_dump != NULL)
        __atomic_store_n(&runtime->flight_dump->closed, 1, __ATOMIC_RELAXED);
}

/* A death fails all communicators, one after the other: the first of them writes the file, and another only what has been
 * started since. Who has asked for the file before gets this one: a later one would no longer show what was under way. */
static void impending(struct rondo_comm *comm)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_flight_dump *dump = runtime->flight_dump;
    if (dump == NULL || runtime->device == NULL || __atomic_load_n(&dump->closed, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&dump->lock);
    if (!dump->written || dump->written_next != __atomic_load_n(&runtime->flight->next, __ATOMIC_RELAXED))
        write_file(runtime, dump);
    __atomic_store_n(&dump->asked, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&dump->lock);
}

const struct rondo_failure_listener rondo_flight_dump_failure = {.impending = impending};
