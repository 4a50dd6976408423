/* See lib/bootstrap/first_root.h. */
#include "lib/bootstrap/first_root.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/bootstrap/address.h"
#include "lib/bootstrap/rendezvous.h"
#include "lib/bootstrap/unique_id.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10 };

struct rondo_first_root {
    struct rondo_job_options options;
    rondo_unique_id_t id;
    char root[RONDO_ADDRESS_TEXT];
    char *secret; /* NULL: none */
    int wake, is_started;
    pthread_t thread;
    atomic_int cancelled;
    /* Set by the thread, read after it has been joined. */
    rondo_result_t result;
    struct rondo_frame_connection connection;
    char reason[RONDO_RENDEZVOUS_REASON];
};

/* The mask is used once: the salt is fresh. */
static void mask(const struct rondo_hmac *secret, const unsigned char *salt, unsigned char bytes[RONDO_SHA256_BYTES])
{
    static const char label[] = "rondo first root";
    struct rondo_hmac hmac = *secret;
    rondo_hmac_add(&hmac, label, sizeof(label));
    rondo_hmac_add(&hmac, salt, RONDO_FIRST_ROOT_SALT);
    rondo_hmac_end(&hmac, bytes);
    explicit_bzero(&hmac, sizeof(hmac));
}

static void apply(const struct rondo_hmac *secret, const unsigned char *salt, unsigned char *id)
{
    unsigned char bytes[RONDO_SHA256_BYTES];
    mask(secret, salt, bytes);
    rondo_unique_id_mask(id, bytes);
    explicit_bzero(bytes, sizeof(bytes));
}

rondo_result_t rondo_first_root_mask(const struct rondo_hmac *secret, const rondo_unique_id_t *id,
                                     unsigned char data[RONDO_FIRST_ROOT_DATA])
{
    rondo_result_t result = rondo_random_bytes(data, RONDO_FIRST_ROOT_SALT);
    memcpy(data + RONDO_FIRST_ROOT_SALT, id->bytes, sizeof(id->bytes));
    apply(secret, data, data + RONDO_FIRST_ROOT_SALT);
    return result;
}

void rondo_first_root_unmask(const struct rondo_hmac *secret, const unsigned char data[RONDO_FIRST_ROOT_DATA],
                             rondo_unique_id_t *id)
{
    memcpy(id->bytes, data + RONDO_FIRST_ROOT_SALT, sizeof(id->bytes));
    apply(secret, data, id->bytes);
}

static rondo_result_t is_cancelled(const void *argument)
{
    const struct rondo_first_root *first = argument;
    return atomic_load(&first->cancelled) ? rondo_fail(RONDO_ERR_ABORTED, "the root has ended") : RONDO_SUCCESS;
}

static void *run(void *argument)
{
    struct rondo_first_root *first = argument;
    const uint64_t one = 1;
    first->result = rondo_rendezvous_reach_first(&first->options, &first->connection);
    if (first->result != RONDO_SUCCESS)
        snprintf(first->reason, sizeof(first->reason), "%s", rondo_last_error());
    /* A full counter wakes the root all the same. */
    while (write(first->wake, &one, sizeof(one)) != (ssize_t) sizeof(one) && errno != EAGAIN)
        continue;
    return NULL;
}

static void destroy(struct rondo_first_root *first)
{
    if (first->secret != NULL)
        explicit_bzero(first->secret, strlen(first->secret));
    free(first->secret);
    explicit_bzero(first, sizeof(*first));
    free(first);
}

rondo_result_t rondo_first_root_prepare(struct rondo_first_root **result, const struct rondo_job_options *options)
{
    struct rondo_first_root *first = calloc(1, sizeof(*first));
    const size_t bytes = options->secret != NULL ? strlen(options->secret) + 1 : 0;
    *result = NULL;
    if (first == NULL || (bytes > 0 && (first->secret = calloc(1, bytes)) == NULL)) {
        free(first);
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to reach the first root");
    }
    first->options = *options;
    if (bytes > 0)
        memcpy(first->secret, options->secret, bytes);
    first->options.secret = first->secret;
    if (options->unique_id != NULL) {
        first->id = *options->unique_id;
        first->options.unique_id = &first->id;
    }
    if (options->root != NULL) {
        snprintf(first->root, sizeof(first->root), "%s", options->root);
        first->options.root = first->root;
    }
    first->options.cancelled = is_cancelled;
    first->options.cancelled_argument = first;
    first->connection.fd = -1;
    *result = first;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_first_root_start(struct rondo_first_root *first, double seconds, int wake)
{
    first->options.connect_timeout = seconds > 0.001 ? seconds : 0.001;
    first->wake = wake;
    const rondo_result_t result = rondo_thread_start(&first->thread, "rondo-to-root", STACK_BYTES, run, first);
    first->is_started = result == RONDO_SUCCESS;
    return result;
}

rondo_result_t rondo_first_root_end(struct rondo_first_root *first, struct rondo_frame_connection *connection)
{
    rondo_result_t result = RONDO_ERR_INTERNAL;
    if (first != NULL && first->is_started) {
        atomic_store(&first->cancelled, 1);
        pthread_join(first->thread, NULL);
        result = first->result == RONDO_SUCCESS ? RONDO_SUCCESS : rondo_fail(first->result, "%s", first->reason);
        *connection = first->connection;
    } else {
        rondo_fail(result, "the first root is not being reached");
    }
    if (first != NULL)
        destroy(first);
    return result;
}
