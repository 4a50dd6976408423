/*
 * The mailbox and the exchange (lib/connection/mailbox.h). In an exchange the first member gathers the contributions and sends
 * the whole to every other member; when they meet, that all have come. Relies on the control plane.
 */
#include "lib/connection/mailbox.h"
#include "lib/base/error.h"
#include "lib/connection/comm_connections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 1024

struct header {
    uint64_t comm, number;
    uint64_t step;       /* 0: to the first member, 1: from it */
    uint64_t membership; /* struct rondo_membership's key */
};

struct letter {
    struct letter *next;
    int source;
    struct header header;
    size_t bytes;
    char data[];
};

struct rondo_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct letter *letters;
};

rondo_result_t rondo_mailbox_create(struct rondo_mailbox **result)
{
    struct rondo_mailbox *mailbox = calloc(1, sizeof(*mailbox));
    if (mailbox == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the mailbox");
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_cond_init(&mailbox->arrived, NULL);
    *result = mailbox;
    return RONDO_SUCCESS;
}

void rondo_mailbox_destroy(struct rondo_mailbox *mailbox)
{
    if (mailbox == NULL)
        return;
    while (mailbox->letters != NULL) {
        struct letter *letter = mailbox->letters;
        mailbox->letters = letter->next;
        free(letter);
    }
    pthread_cond_destroy(&mailbox->arrived);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

void rondo_mailbox_deliver(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    struct rondo_mailbox *mailbox = runtime->mailbox;
    struct letter *letter;
    struct header header;
    if (bytes < sizeof(header)) {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped mail of %zu bytes from rank %d", bytes, source);
        return;
    }
    memcpy(&header, data, sizeof(header));
    if ((letter = malloc(sizeof(*letter) + bytes)) == NULL) {
        rondo_result_t result = rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu bytes from rank %d", bytes, source);
        rondo_comm_fail_by_id(runtime, header.comm, result, "an exchange");
        return;
    }
    letter->source = source;
    letter->bytes = bytes - sizeof(header);
    letter->header = header;
    memcpy(letter->data, (const char *) data + sizeof(struct header), letter->bytes);
    pthread_mutex_lock(&mailbox->lock);
    letter->next = mailbox->letters;
    mailbox->letters = letter;
    pthread_cond_broadcast(&mailbox->arrived);
    pthread_mutex_unlock(&mailbox->lock);
}

void rondo_mailbox_wake(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->mailbox->lock);
    pthread_cond_broadcast(&runtime->mailbox->arrived);
    pthread_mutex_unlock(&runtime->mailbox->lock);
}

static struct letter *take(struct rondo_mailbox *mailbox, int source, const struct header *header)
{
    for (struct letter **link = &mailbox->letters; *link != NULL; link = &(*link)->next) {
        struct letter *letter = *link;
        if (letter->source == source && memcmp(&letter->header, header, sizeof(*header)) == 0) {
            *link = letter->next;
            return letter;
        }
    }
    return NULL;
}

/* A letter of the same source and membership's key that is about another communicator, one that has not failed. NULL: none. */
static const struct letter *find_stray(struct rondo_runtime *runtime, int source, const struct header *header)
{
    for (const struct letter *letter = runtime->mailbox->letters; letter != NULL; letter = letter->next)
        if (letter->source == source && letter->header.membership == header->membership &&
            letter->header.step == header->step && letter->header.comm != header->comm &&
            !rondo_comm_failed_early(runtime, letter->header.comm))
            return letter;
    return NULL;
}

/* Whether the source of a membership's letter names other members. Sets *other to what it says, *comm to the communicator that
 * it means. Mailbox lock held. */
static int has_strayed(struct rondo_runtime *runtime, int source, const struct header *header, struct rondo_membership *other,
                       uint64_t *comm)
{
    const struct letter *stray = header->membership != 0 ? find_stray(runtime, source, header) : NULL;
    if (stray == NULL || stray->bytes != sizeof(*other))
        return 0;
    memcpy(other, stray->data, sizeof(*other));
    other->text[sizeof(other->text) - 1] = '\0';
    *comm = stray->header.comm;
    return 1;
}

static void deadline_in(struct timespec *deadline, double seconds)
{
    clock_gettime(CLOCK_REALTIME, deadline);
    deadline->tv_sec += (time_t) seconds;
    deadline->tv_nsec += (long) ((seconds - (double) (time_t) seconds) * 1e9);
    if (deadline->tv_nsec >= 1000000000) {
        deadline->tv_sec++;
        deadline->tv_nsec -= 1000000000;
    }
}

static rondo_result_t receive(struct rondo_comm *comm, const char *name, int source, const struct header *header, void *data,
                              size_t bytes)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_mailbox *mailbox = runtime->mailbox;
    struct timespec deadline;
    struct letter *letter;
    struct rondo_membership other;
    uint64_t strayed = 0;
    rondo_result_t result = RONDO_SUCCESS;
    double timeout = __atomic_load_n(&runtime->forming, __ATOMIC_RELAXED) ? runtime->settings.connect_timeout
                     : runtime->settings.timeout > 0                      ? runtime->settings.timeout
                                                                          : 1e9;
    deadline_in(&deadline, timeout);
    pthread_mutex_lock(&mailbox->lock);
    while ((letter = take(mailbox, source, header)) == NULL && result == RONDO_SUCCESS) {
        rondo_result_t failed = rondo_comm_failure(comm);
        if (failed != RONDO_SUCCESS)
            result = rondo_fail(failed, "%s: %s", name, comm->failure);
        else if (has_strayed(runtime, source, header, &other, &strayed))
            result = RONDO_ERR_MISMATCH;
        else if (pthread_cond_timedwait(&mailbox->arrived, &mailbox->lock, &deadline) != 0)
            result = rondo_fail(RONDO_ERR_TIMEOUT, "%s: rank %d has not %s within %g s", name, source,
                                header->step == 0 ? "joined" : "answered, which waits for all ranks,", timeout);
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (strayed != 0) { /* those who wait for that communicator learn it, too */
        rondo_fail(result, "%s: ranks disagree: rank %d gives other ranks than rank %d, which gives %s", name, runtime->rank,
                   source, other.text);
        rondo_comm_fail_by_id(runtime, strayed, result, name);
    }
    if (letter == NULL)
        return result;
    if (letter->bytes == bytes)
        memcpy(data, letter->data, bytes);
    else
        result =
            rondo_fail(RONDO_ERR_MISMATCH, "%s: rank %d sent %zu bytes where %zu were expected: ranks call different functions",
                       name, source, letter->bytes, bytes);
    free(letter);
    return result;
}

static rondo_result_t deliver(struct rondo_runtime *runtime, int destination, const struct header *header, const void *data,
                              size_t bytes)
{
    char *message = malloc(sizeof(*header) + bytes);
    if (message == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a message of %zu bytes", bytes);
    memcpy(message, header, sizeof(*header));
    memcpy(message + sizeof(*header), data, bytes);
    rondo_result_t result =
        rondo_control_send(runtime->control, destination, RONDO_MESSAGE_MAIL, message, sizeof(*header) + bytes);
    free(message);
    return result;
}

/* bytes of mine from every member are gathered at the first one, in gathered (size * bytes), and total bytes of it are sent to
 * every other member's gathered. membership: 0, or a key by which letters for another communicator are known. */
static rondo_result_t exchange(struct rondo_comm *comm, const char *name, uint64_t membership, const void *mine, size_t bytes,
                               void *gathered, size_t total)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct header header = {comm->id, __atomic_fetch_add(&comm->connections->exchanges, 1, __ATOMIC_RELAXED), 0, membership};
    rondo_result_t result = RONDO_SUCCESS;
    if (total > RONDO_CONTROL_MESSAGE_MAX - sizeof(header))
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "%s: %zu bytes from each of %d ranks are more than an exchange carries", name,
                          bytes, comm->size);
    if (comm->rank != 0) {
        result = deliver(runtime, comm->members[0], &header, mine, bytes);
        header.step = 1;
        if (result == RONDO_SUCCESS)
            result = receive(comm, name, comm->members[0], &header, gathered, total);
        return result;
    }
    memcpy(gathered, mine, bytes);
    for (int rank = 1; rank < comm->size && result == RONDO_SUCCESS; rank++)
        result = receive(comm, name, comm->members[rank], &header, (char *) gathered + (size_t) rank * bytes, bytes);
    header.step = 1;
    for (int rank = 1; rank < comm->size && result == RONDO_SUCCESS; rank++)
        result = deliver(runtime, comm->members[rank], &header, gathered, total);
    return result;
}

rondo_result_t rondo_exchange(struct rondo_comm *comm, const char *name, const void *mine, size_t bytes, void *all)
{
    return rondo_comm_conclude(comm, name, exchange(comm, name, 0, mine, bytes, all, (size_t) comm->size * bytes));
}

rondo_result_t rondo_meet(struct rondo_comm *comm, const char *name, const struct rondo_membership *membership)
{
    static const struct rondo_membership plain;
    const struct rondo_membership *mine = membership != NULL ? membership : &plain;
    char *all = calloc((size_t) comm->size, sizeof(*mine));
    rondo_result_t result = all == NULL ? rondo_fail(RONDO_ERR_MEMORY, "no memory to meet %d ranks", comm->size)
                                        : exchange(comm, name, mine->key, mine, sizeof(*mine), all, 1);
    free(all);
    return rondo_comm_conclude(comm, name, result);
}

static rondo_result_t first_failure(const struct rondo_comm *comm, const char *name, const int32_t *codes)
{
    for (int rank = 0; rank < comm->size; rank++)
        if (codes[rank] != RONDO_SUCCESS)
            return rondo_fail((rondo_result_t) codes[rank], "%s: it failed on rank %d: %s", name, comm->members[rank],
                              rondo_strerror(codes[rank]));
    return RONDO_SUCCESS;
}

rondo_result_t rondo_agree(struct rondo_comm *comm, const char *name, rondo_result_t mine, int *refused)
{
    char message[MESSAGE_BYTES];
    int32_t code = (int32_t) mine, *codes = calloc((size_t) comm->size, sizeof(*codes));
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    *refused = 0;
    if (codes == NULL)
        return rondo_comm_conclude(comm, name, rondo_fail(RONDO_ERR_MEMORY, "no memory to agree with %d ranks", comm->size));
    rondo_result_t result = rondo_exchange(comm, name, &code, sizeof(code), codes);
    int told = result == RONDO_SUCCESS;
    if (told) {
        result = first_failure(comm, name, codes);
        *refused = result != RONDO_SUCCESS;
    }
    free(codes);
    if (mine != RONDO_SUCCESS && (told || rondo_comm_failure(comm) == RONDO_SUCCESS))
        return rondo_fail(mine, "%s", message);
    return result;
}
