/*
 * The mailbox (lib/connection/mailbox.h). Relies on the control plane, and on its order: what a rank sends, notices of failure
 * among it, arrives in the order in which it was sent. Messages of different ranks have no common order.
 *
 * A message about an attempt to meet stays only while its source waits. The source tells all ranks when it gives up, before it
 * makes another attempt: the notice marks the message as withdrawn, and what remains is the memory that the attempt has failed,
 * until the source makes a later one with that list. The first member drops all messages of an attempt that it ends, and
 * answers those that come later.
 */
#include "lib/connection/mailbox.h"
#include "lib/base/error.h"
#include "lib/base/thread.h"
#include "lib/connection/comm_connections.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL_SECONDS 0.2 /* by which a member waits longer for a child whose own children are one level higher */

#define TAG_BYTES offsetof(struct rondo_mail_header, whole) /* equal where a message is the one that is waited for */

struct letter {
    struct letter *next;
    int source;
    struct rondo_mail_header header;
    rondo_result_t withdrawn; /* why the source does not wait for an answer any more; RONDO_SUCCESS: it does */
    size_t bytes;
    char data[];
};

/* Attempts with a list that have ended on this rank, the first member. */
struct ended {
    struct ended *next;
    uint64_t list, parent;
    uint64_t attempts;     /* those with lower numbers have ended */
    rondo_result_t result; /* of the last one */
};

struct rondo_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct letter *letters;
    struct ended *ended;
};

rondo_result_t rondo_mailbox_create(struct rondo_mailbox **result)
{
    struct rondo_mailbox *mailbox = calloc(1, sizeof(*mailbox));
    if (mailbox == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for the mailbox");
    pthread_mutex_init(&mailbox->lock, NULL);
    rondo_condition_init(&mailbox->arrived);
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
    while (mailbox->ended != NULL) {
        struct ended *ended = mailbox->ended;
        mailbox->ended = ended->next;
        free(ended);
    }
    pthread_cond_destroy(&mailbox->arrived);
    pthread_mutex_destroy(&mailbox->lock);
    free(mailbox);
}

/* ---- messages that nothing waits for ---- */

/* Frees the letters about the communicator, and those of attempts with the list up to that one. list 0: none. Mailbox lock
 * held. */
static void drop(struct rondo_mailbox *mailbox, uint64_t comm, uint64_t list, uint64_t attempt)
{
    for (struct letter **link = &mailbox->letters; *link != NULL;) {
        struct letter *letter = *link;
        const struct rondo_mail_header *header = &letter->header;
        if (header->comm == comm || (list != 0 && header->list == list && header->step == 0 && header->attempt <= attempt)) {
            *link = letter->next;
            free(letter);
        } else {
            link = &letter->next;
        }
    }
}

static struct ended *find_ended(struct rondo_mailbox *mailbox, uint64_t list)
{
    struct ended *ended = mailbox->ended;
    while (ended != NULL && ended->list != list)
        ended = ended->next;
    return ended;
}

void rondo_mailbox_end_attempt(struct rondo_runtime *runtime, uint64_t comm, const struct rondo_membership *membership,
                               int first, rondo_result_t result)
{
    struct rondo_mailbox *mailbox = runtime->mailbox;
    pthread_mutex_lock(&mailbox->lock);
    struct ended *ended = first ? find_ended(mailbox, membership->list) : NULL;
    if (first && ended == NULL && (ended = calloc(1, sizeof(*ended))) != NULL) { /* else the notice alone tells the others */
        ended->next = mailbox->ended;
        ended->list = membership->list;
        ended->parent = membership->parent;
        mailbox->ended = ended;
    }
    if (ended != NULL) {
        ended->attempts = membership->attempt + 1;
        ended->result = result;
    }
    drop(mailbox, comm, first ? membership->list : 0, membership->attempt);
    pthread_mutex_unlock(&mailbox->lock);
}

void rondo_mailbox_forget(struct rondo_runtime *runtime, uint64_t comm)
{
    struct rondo_mailbox *mailbox = runtime->mailbox;
    pthread_mutex_lock(&mailbox->lock);
    drop(mailbox, comm, 0, 0);
    for (struct ended **link = &mailbox->ended; *link != NULL;) {
        struct ended *ended = *link;
        if (ended->parent == comm) {
            *link = ended->next;
            free(ended);
        } else {
            link = &ended->next;
        }
    }
    pthread_mutex_unlock(&mailbox->lock);
}

void rondo_mailbox_withdraw(struct rondo_runtime *runtime, uint64_t comm, rondo_result_t code)
{
    struct rondo_mailbox *mailbox = runtime->mailbox;
    pthread_mutex_lock(&mailbox->lock);
    for (struct letter *letter = mailbox->letters; letter != NULL; letter = letter->next)
        if (letter->header.comm == comm && letter->header.key != 0 && letter->withdrawn == RONDO_SUCCESS)
            letter->withdrawn = code;
    pthread_cond_broadcast(&mailbox->arrived);
    pthread_mutex_unlock(&mailbox->lock);
}

/* A source that makes an attempt has ended its earlier ones with that key. With the same list they are forgotten, because the
 * later number tells as much. Mailbox lock held. */
static void supersede(struct rondo_mailbox *mailbox, int source, const struct rondo_mail_header *header)
{
    for (struct letter **link = &mailbox->letters; *link != NULL;) {
        struct letter *letter = *link;
        const int earlier = letter->source == source && letter->header.step == 0 && letter->header.key == header->key;
        if (earlier && letter->header.list == header->list) {
            *link = letter->next;
            free(letter);
            continue;
        }
        if (earlier && letter->withdrawn == RONDO_SUCCESS)
            letter->withdrawn = RONDO_ERR_MISMATCH;
        link = &letter->next;
    }
}

/* Stores a letter. Returns RONDO_SUCCESS, or the result of the attempt that it is about, which has ended; then the letter is
 * freed. */
static rondo_result_t store(struct rondo_mailbox *mailbox, struct letter *letter)
{
    const struct rondo_mail_header *header = &letter->header;
    const int attempts = header->key != 0 && header->step == 0;
    pthread_mutex_lock(&mailbox->lock);
    const struct ended *ended = attempts ? find_ended(mailbox, header->list) : NULL;
    if (ended != NULL && header->attempt < ended->attempts) {
        const rondo_result_t result = ended->result;
        pthread_mutex_unlock(&mailbox->lock);
        free(letter);
        return result;
    }
    if (attempts)
        supersede(mailbox, letter->source, header);
    letter->next = mailbox->letters;
    mailbox->letters = letter;
    pthread_cond_broadcast(&mailbox->arrived);
    pthread_mutex_unlock(&mailbox->lock);
    return RONDO_SUCCESS;
}

/* Whether this rank makes the communicator that a letter is about only after the letter may have come. Of all others, a letter
 * comes while they are listed, or nothing waits for it. */
static int may_come_early(const struct rondo_runtime *runtime, const struct rondo_mail_header *header)
{
    return __atomic_load_n(&runtime->forming, __ATOMIC_RELAXED) || (header->key != 0 && header->step == 0);
}

void rondo_mailbox_deliver(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    struct rondo_mailbox *mailbox = runtime->mailbox;
    struct letter *letter;
    struct rondo_comm *listed;
    struct rondo_mail_header header;
    if (bytes < sizeof(header)) {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped mail of %zu bytes from rank %d", bytes, source);
        return;
    }
    memcpy(&header, data, sizeof(header));
    /* Pinned until the letter is stored, so that what unlists the communicator finds the letter. */
    if ((listed = rondo_comm_pin(runtime, header.comm)) == NULL && !may_come_early(runtime, &header))
        return;
    if ((letter = malloc(sizeof(*letter) + bytes)) == NULL) {
        rondo_result_t result = rondo_fail(RONDO_ERR_MEMORY, "no memory for %zu bytes from rank %d", bytes, source);
        if (listed != NULL)
            rondo_comm_unpin(listed);
        rondo_comm_fail_by_id(runtime, header.comm, result, "an exchange");
        return;
    }
    letter->source = source;
    letter->bytes = bytes - sizeof(header);
    letter->header = header;
    letter->withdrawn = RONDO_SUCCESS;
    memcpy(letter->data, (const char *) data + sizeof(struct rondo_mail_header), letter->bytes);
    const rondo_result_t ended = store(mailbox, letter);
    if (listed != NULL)
        rondo_comm_unpin(listed);
    if (ended != RONDO_SUCCESS) {
        rondo_fail(ended, "rank %d comes to an attempt that has failed", source);
        rondo_comm_fail_by_id(runtime, header.comm, ended, "a meeting of the members");
    }
}

/* ---- waiting ---- */

void rondo_mailbox_wake(struct rondo_runtime *runtime)
{
    pthread_mutex_lock(&runtime->mailbox->lock);
    pthread_cond_broadcast(&runtime->mailbox->arrived);
    pthread_mutex_unlock(&runtime->mailbox->lock);
}

static struct letter *take(struct rondo_mailbox *mailbox, int source, const struct rondo_mail_header *header)
{
    for (struct letter **link = &mailbox->letters; *link != NULL; link = &(*link)->next) {
        struct letter *letter = *link;
        if (letter->source == source && letter->withdrawn == RONDO_SUCCESS && memcmp(&letter->header, header, TAG_BYTES) == 0) {
            *link = letter->next;
            return letter;
        }
    }
    return NULL;
}

/* A letter of the same source and key with another list, for whose answer the source waits. NULL: none. */
static const struct letter *find_stray(struct rondo_runtime *runtime, int source, const struct rondo_mail_header *header)
{
    for (const struct letter *letter = runtime->mailbox->letters; letter != NULL; letter = letter->next)
        if (letter->source == source && letter->withdrawn == RONDO_SUCCESS && letter->header.key == header->key &&
            letter->header.step == header->step && letter->header.list != header->list)
            return letter;
    return NULL;
}

/* RONDO_SUCCESS, or why the source waits no more in the attempt that this rank makes, or never will. Mailbox lock held. */
static rondo_result_t given_up(const struct rondo_mailbox *mailbox, int source, const struct rondo_mail_header *header)
{
    for (const struct letter *letter = mailbox->letters; letter != NULL && header->key != 0 && header->step == 0;
         letter = letter->next)
        if (letter->source == source && letter->header.step == 0 && letter->header.list == header->list) {
            if (letter->header.attempt == header->attempt && letter->withdrawn != RONDO_SUCCESS)
                return letter->withdrawn;
            if (letter->header.attempt > header->attempt)
                return RONDO_ERR_MISMATCH;
        }
    return RONDO_SUCCESS;
}

/* Whether the source of a membership's letter names other members. Sets *other to what it says, *comm to the communicator that
 * it means. Mailbox lock held. */
static int has_strayed(struct rondo_runtime *runtime, int source, const struct rondo_mail_header *header,
                       struct rondo_membership *other, uint64_t *comm)
{
    const struct letter *stray = header->key != 0 ? find_stray(runtime, source, header) : NULL;
    if (stray == NULL || stray->bytes != sizeof(*other))
        return 0;
    memcpy(other, stray->data, sizeof(*other));
    other->text[sizeof(other->text) - 1] = '\0';
    *comm = stray->header.comm;
    return 1;
}

/* ---- one part ---- */

static size_t part_bytes(const struct rondo_mail_header *header)
{
    const size_t rest = header->whole - header->part * RONDO_MAIL_PART_MOST;
    return rest < RONDO_MAIL_PART_MOST ? rest : RONDO_MAIL_PART_MOST;
}

static double wait_seconds(const struct rondo_runtime *runtime)
{
    if (__atomic_load_n(&runtime->forming, __ATOMIC_RELAXED))
        return runtime->settings.connect_timeout;
    return runtime->settings.timeout > 0 ? runtime->settings.timeout : 1e9;
}

static rondo_result_t fail_late(const struct rondo_comm *comm, const char *name, int source,
                                const struct rondo_mail_header *header, int ranks, double seconds)
{
    if (header->step != 0)
        return rondo_fail(RONDO_ERR_TIMEOUT, "%s: rank %d has not answered, which waits for all ranks, within %g s", name,
                          comm->members[source], seconds);
    if (ranks > 1)
        return rondo_fail(RONDO_ERR_TIMEOUT, "%s: rank %d, which waits for %d other ranks, has not joined within %g s", name,
                          comm->members[source], ranks - 1, seconds);
    return rondo_fail(RONDO_ERR_TIMEOUT, "%s: rank %d has not joined within %g s", name, comm->members[source], seconds);
}

rondo_result_t rondo_mailbox_receive(struct rondo_comm *comm, const char *name, int source,
                                     const struct rondo_mail_header *header, int ranks, char *data)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_mailbox *mailbox = runtime->mailbox;
    const int rank = comm->members[source];
    struct timespec deadline;
    struct letter *letter;
    struct rondo_membership other;
    uint64_t strayed = 0;
    rondo_result_t result = RONDO_SUCCESS;
    double seconds = wait_seconds(runtime), patience = 0;
    for (int waited_for = ranks; waited_for > 1; waited_for = (waited_for + 1) / 2)
        patience += LEVEL_SECONDS;
    rondo_deadline_in(&deadline, seconds + patience);
    pthread_mutex_lock(&mailbox->lock);
    while ((letter = take(mailbox, rank, header)) == NULL && result == RONDO_SUCCESS) {
        rondo_result_t failed = rondo_comm_failure(comm), gave_up;
        if (failed != RONDO_SUCCESS)
            result = rondo_fail(failed, "%s: %s", name, comm->failure);
        else if ((gave_up = given_up(mailbox, rank, header)) != RONDO_SUCCESS)
            result = rondo_fail(gave_up, "%s: it failed on rank %d, which has called it before", name, rank);
        else if (has_strayed(runtime, rank, header, &other, &strayed))
            result = RONDO_ERR_MISMATCH;
        else if (pthread_cond_timedwait(&mailbox->arrived, &mailbox->lock, &deadline) != 0)
            result = fail_late(comm, name, source, header, ranks, seconds);
    }
    pthread_mutex_unlock(&mailbox->lock);
    if (strayed != 0) { /* those who wait for that communicator learn it, too */
        rondo_fail(result, "%s: ranks disagree: rank %d gives other ranks than rank %d, which gives %s", name, runtime->rank,
                   rank, other.text);
        rondo_comm_fail_by_id(runtime, strayed, result, name);
    }
    if (letter == NULL)
        return result;
    if (letter->header.whole == header->whole && letter->bytes == part_bytes(header))
        memcpy(data + header->part * RONDO_MAIL_PART_MOST, letter->data, letter->bytes);
    else
        result = rondo_fail(RONDO_ERR_MISMATCH,
                            "%s: rank %d sent %llu bytes where %llu were expected: ranks call different functions", name, rank,
                            (unsigned long long) letter->header.whole, (unsigned long long) header->whole);
    free(letter);
    return result;
}

rondo_result_t rondo_mailbox_send(struct rondo_comm *comm, int destination, const struct rondo_mail_header *header,
                                  const char *data)
{
    const size_t bytes = part_bytes(header);
    char *message = malloc(sizeof(*header) + bytes);
    if (message == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for a message of %zu bytes", bytes);
    memcpy(message, header, sizeof(*header));
    memcpy(message + sizeof(*header), data + header->part * RONDO_MAIL_PART_MOST, bytes);
    rondo_result_t result = rondo_control_send(comm->runtime->control, comm->members[destination], RONDO_MESSAGE_MAIL, message,
                                               sizeof(*header) + bytes);
    free(message);
    return result;
}
