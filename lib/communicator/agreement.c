/* See lib/communicator/agreement.h. An agreement's state changes in look() alone, which a message, a rank's departure and the
 * call itself lead to. One lock protects all of a runtime's agreements; messages are queued under it, which does not wait. */
#include "lib/communicator/agreement.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stdlib.h>
#include <string.h>

#define DECISIONS_MOST 4096 /* decisions of freed communicators; beyond that the oldest is dropped */

/* What a message is. The first two are reports. */
enum kind {
    CONTRIBUTION = 1, /* to the coordinator: what this rank contributes; it has stored no proposal */
    STORED,           /* to the coordinator: the proposal that this rank has stored, decided or not */
    PROPOSAL,         /* from the coordinator */
    ACCEPTED,         /* to the coordinator: its proposal has been stored */
    DECISION          /* from the coordinator: all have stored its proposal */
};

/* A message, and a value on its own. Plain data: transmitted as bytes. */
struct value {
    uint64_t comm, number;
    uint32_t kind;
    uint32_t size; /* ranks of the communicator */
    int32_t flag;
    uint32_t unused;
    unsigned char sets[]; /* two sets of ranks, a bit for each: those that have gone, and those that were acknowledged */
};

/* What this rank, as the coordinator, knows of a member. */
struct report {
    struct value *value; /* a report; NULL: none has come */
    int accepted;        /* has stored what this rank proposes */
};

struct agreement {
    struct agreement *next; /* newest first */
    uint64_t comm, number;
    int size, rank;
    int *members;          /* ranks in the world; NULL: this rank has not come to it, and only keeps reports */
    struct value *own;     /* what this rank contributes */
    struct value *stored;  /* the proposal; NULL: none */
    int proposes;          /* it is this rank's own */
    int told_all;          /* ... and all have been told that it is decided */
    int decided;           /* it is the decision */
    int waiting;           /* threads of this rank that wait for it */
    int freed;             /* the communicator has been */
    int told;              /* the coordinator that has this rank's report; -1: none */
    struct report *report; /* [runtime->size]; NULL: none has come */
};

struct rondo_agreements {
    pthread_mutex_t lock;
    pthread_cond_t decided;
    struct agreement *first;
    int cut_off; /* this rank cannot reach the others */
};

static size_t set_bytes(uint32_t size)
{
    return ((size_t) size + 7) / 8;
}

static size_t value_bytes(uint32_t size)
{
    return sizeof(struct value) + 2 * set_bytes(size);
}

static unsigned char *failed_of(struct value *value)
{
    return value->sets;
}

static unsigned char *acknowledged_of(struct value *value)
{
    return value->sets + set_bytes(value->size);
}

static struct value *copy_of(const struct value *value)
{
    struct value *copy = malloc(value_bytes(value->size));
    if (copy != NULL)
        memcpy(copy, value, value_bytes(value->size));
    return copy;
}

rondo_result_t rondo_agreements_create(struct rondo_agreements **result)
{
    struct rondo_agreements *agreements = calloc(1, sizeof(*agreements));
    if (agreements == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory for agreements");
    pthread_mutex_init(&agreements->lock, NULL);
    rondo_condition_init(&agreements->decided);
    *result = agreements;
    return RONDO_SUCCESS;
}

static void free_reports(struct agreement *agreement, int ranks)
{
    for (int rank = 0; agreement->report != NULL && rank < ranks; rank++)
        free(agreement->report[rank].value);
    free(agreement->report);
    agreement->report = NULL;
}

static void free_agreement(struct agreement *agreement, int ranks)
{
    free_reports(agreement, ranks);
    free(agreement->members);
    free(agreement->own);
    free(agreement->stored);
    free(agreement);
}

void rondo_agreements_destroy(struct rondo_runtime *runtime)
{
    struct rondo_agreements *agreements = runtime->agreements;
    if (agreements == NULL)
        return;
    while (agreements->first != NULL) {
        struct agreement *agreement = agreements->first;
        agreements->first = agreement->next;
        free_agreement(agreement, runtime->size);
    }
    pthread_cond_destroy(&agreements->decided);
    pthread_mutex_destroy(&agreements->lock);
    free(agreements);
}

/* ---- all below: with the lock held ---- */

static struct agreement *find(const struct rondo_agreements *agreements, uint64_t comm, uint64_t number)
{
    struct agreement *agreement = agreements->first;
    while (agreement != NULL && (agreement->comm != comm || agreement->number != number))
        agreement = agreement->next;
    return agreement;
}

/* Returns a new agreement to which this rank has not come; NULL: out of memory. */
static struct agreement *add(struct rondo_agreements *agreements, uint64_t comm, uint64_t number)
{
    struct agreement *agreement = calloc(1, sizeof(*agreement));
    if (agreement == NULL)
        return NULL;
    agreement->comm = comm;
    agreement->number = number;
    agreement->told = -1;
    agreement->next = agreements->first;
    agreements->first = agreement;
    return agreement;
}

/* Without memory this rank cannot do its part, and does not know whether others would miss it: it counts as dead. */
static void give_up(struct rondo_runtime *runtime)
{
    rondo_log(RONDO_LOG_ERROR, runtime->rank, "no memory for an agreement: this rank leaves the others");
    rondo_control_give_up(runtime->control);
}

static void send(struct rondo_runtime *runtime, int destination, const struct value *value, enum kind kind)
{
    struct value *message = copy_of(value);
    if (message != NULL) {
        message->kind = (uint32_t) kind;
        if (rondo_control_send(runtime->control, destination, RONDO_MESSAGE_AGREEMENT, message, value_bytes(value->size)) ==
            RONDO_ERR_MEMORY)
            give_up(runtime);
    } else {
        give_up(runtime);
    }
    free(message);
}

/* Sends to all other members that have not gone. */
static void send_all(struct rondo_runtime *runtime, const struct agreement *agreement, enum kind kind)
{
    for (int i = 0; i < agreement->size; i++)
        if (i != agreement->rank && !rondo_is_gone(runtime, agreement->members[i]))
            send(runtime, agreement->members[i], agreement->stored, kind);
}

/* Adds what another member says to a contribution. */
static void combine(struct value *value, struct value *more)
{
    value->flag &= more->flag;
    for (size_t i = 0; i < set_bytes(value->size); i++) {
        failed_of(value)[i] |= failed_of(more)[i];
        acknowledged_of(value)[i] &= acknowledged_of(more)[i];
    }
}

/* Sets agreement->stored to what this rank proposes: a proposal that was reported, or what follows from the contributions.
 * Reports of members that have gone count as well: they do no harm. Returns 0 if memory is out. */
static int choose_proposal(struct rondo_runtime *runtime, struct agreement *agreement)
{
    for (int i = 0; i < agreement->size && agreement->stored == NULL; i++) {
        const struct value *value = agreement->report != NULL ? agreement->report[agreement->members[i]].value : NULL;
        if (value != NULL && value->kind == STORED && (agreement->stored = copy_of(value)) == NULL)
            return 0;
    }
    if (agreement->stored != NULL)
        return 1;
    struct value *value = agreement->stored = copy_of(agreement->own);
    for (int i = 0; i < agreement->size && value != NULL; i++) {
        struct value *more = agreement->report != NULL ? agreement->report[agreement->members[i]].value : NULL;
        if (more != NULL)
            combine(value, more);
        if (rondo_is_gone(runtime, agreement->members[i]))
            failed_of(value)[i / 8] |= (unsigned char) (1 << i % 8);
    }
    return value != NULL;
}

/* Whether all other members that have not gone have reported, or, of this rank's own proposal, stored it. */
static int have_all(const struct rondo_runtime *runtime, const struct agreement *agreement)
{
    for (int i = 0; i < agreement->size; i++) {
        const int world = agreement->members[i];
        if (i == agreement->rank || rondo_is_gone(runtime, world))
            continue;
        if (agreement->report == NULL || agreement->report[world].value == NULL ||
            (agreement->proposes && !agreement->report[world].accepted))
            return 0;
    }
    return 1;
}

static void decide(struct rondo_runtime *runtime, struct agreement *agreement)
{
    agreement->decided = 1;
    pthread_cond_broadcast(&runtime->agreements->decided);
}

/* The coordinator's part. Of a decision, too: members whose reports came after another coordinator had died lack it. */
static void coordinate(struct rondo_runtime *runtime, struct agreement *agreement)
{
    if (!agreement->proposes && have_all(runtime, agreement)) {
        if (!choose_proposal(runtime, agreement)) {
            give_up(runtime);
            return;
        }
        agreement->proposes = 1;
        send_all(runtime, agreement, PROPOSAL);
    }
    if (agreement->proposes && !agreement->told_all && have_all(runtime, agreement)) {
        agreement->told_all = 1;
        send_all(runtime, agreement, DECISION);
        if (!agreement->decided)
            decide(runtime, agreement);
        free_reports(agreement, runtime->size); /* as long as this rank lives, none is needed */
    }
}

/* Does what is due in an agreement to which this rank has come. */
static void look(struct rondo_runtime *runtime, struct agreement *agreement)
{
    int coordinator = 0;
    if (agreement->members == NULL || runtime->agreements->cut_off)
        return;
    while (coordinator != agreement->rank && rondo_is_gone(runtime, agreement->members[coordinator]))
        coordinator++;
    if (coordinator == agreement->rank) {
        coordinate(runtime, agreement);
    } else if (agreement->told != coordinator) {
        agreement->told = coordinator;
        send(runtime, agreement->members[coordinator], agreement->stored != NULL ? agreement->stored : agreement->own,
             agreement->stored != NULL ? STORED : CONTRIBUTION);
    }
}

/* Drops what no member can ask for any more: agreements before the last one, once this rank has come to the next. That one ends
 * only when all that live have come to it, and so have returned from the one before. */
static void drop_earlier(struct rondo_runtime *runtime, uint64_t comm, uint64_t number)
{
    for (struct agreement **link = &runtime->agreements->first; *link != NULL;) {
        struct agreement *agreement = *link;
        if (agreement->comm == comm && agreement->number + 1 < number && agreement->waiting == 0) {
            *link = agreement->next;
            free_agreement(agreement, runtime->size);
        } else {
            link = &agreement->next;
        }
    }
}

/* Keeps a report. A report of a stored proposal about an agreement that this rank does not know is dropped: there can be no
 * proposal without its contribution, so it has returned, and none of the members that live lacks the decision. */
static struct agreement *keep_report(struct rondo_runtime *runtime, int source, const struct value *message)
{
    struct rondo_agreements *agreements = runtime->agreements;
    struct agreement *agreement = find(agreements, message->comm, message->number);
    if (agreement == NULL ? message->kind == STORED : agreement->told_all)
        return NULL;
    if (agreement != NULL && agreement->members != NULL && (uint32_t) agreement->size != message->size)
        return NULL;
    if (agreement == NULL)
        agreement = add(agreements, message->comm, message->number);
    if (agreement != NULL && agreement->report == NULL)
        agreement->report = calloc((size_t) runtime->size, sizeof(*agreement->report));
    struct value *value = copy_of(message);
    if (agreement == NULL || agreement->report == NULL || value == NULL) {
        free(value);
        give_up(runtime);
        return NULL;
    }
    free(agreement->report[source].value);
    agreement->report[source].value = value;
    return agreement;
}

/* Stores a proposal or a decision. Returns 0 if memory is out. */
static int store(struct agreement *agreement, const struct value *message)
{
    struct value *value = agreement->stored == NULL ? copy_of(message) : agreement->stored;
    agreement->stored = value;
    return value != NULL;
}

static int is_member(const struct agreement *agreement, int source)
{
    for (int i = 0; i < agreement->size; i++)
        if (agreement->members[i] == source)
            return 1;
    return 0;
}

static void take(struct rondo_runtime *runtime, int source, const struct value *message)
{
    const enum kind kind = (enum kind) message->kind;
    struct agreement *agreement = kind == CONTRIBUTION || kind == STORED
                                      ? keep_report(runtime, source, message)
                                      : find(runtime->agreements, message->comm, message->number);
    if (agreement == NULL || agreement->members == NULL)
        return; /* of what comes from a coordinator none is unknown, because that waits for this rank's report */
    if ((uint32_t) agreement->size != message->size || !is_member(agreement, source))
        return;
    if ((kind == PROPOSAL || kind == DECISION) && !store(agreement, message))
        give_up(runtime);
    else if (kind == PROPOSAL)
        send(runtime, source, agreement->stored, ACCEPTED);
    else if (kind == DECISION && !agreement->decided)
        decide(runtime, agreement);
    else if (kind == ACCEPTED && agreement->report != NULL)
        agreement->report[source].accepted = 1;
    look(runtime, agreement);
}

/* ---- the contract ---- */

void rondo_agreement_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    const struct value *message = data;
    if (bytes < sizeof(*message) || message->size < 1 || message->size > (uint32_t) runtime->size ||
        bytes != value_bytes(message->size) || message->kind < CONTRIBUTION || message->kind > DECISION) {
        rondo_log(RONDO_LOG_WARN, runtime->rank, "dropped a message of %zu bytes about an agreement from rank %d", bytes,
                  source);
        return;
    }
    pthread_mutex_lock(&runtime->agreements->lock);
    take(runtime, source, message);
    pthread_mutex_unlock(&runtime->agreements->lock);
}

static void peer_gone(struct rondo_runtime *runtime)
{
    struct rondo_agreements *agreements = runtime->agreements;
    if (agreements == NULL)
        return;
    pthread_mutex_lock(&agreements->lock);
    for (int rank = 0; rank < runtime->size && !agreements->cut_off; rank++)
        agreements->cut_off = __atomic_load_n(&runtime->gone[rank], __ATOMIC_ACQUIRE) == RONDO_UNREACHABLE;
    for (struct agreement *agreement = agreements->first; agreement != NULL; agreement = agreement->next)
        look(runtime, agreement);
    pthread_cond_broadcast(&agreements->decided);
    pthread_mutex_unlock(&agreements->lock);
}

const struct rondo_failure_listener rondo_agreement_failure = {.peer_gone = peer_gone};

void rondo_agreements_forget(struct rondo_runtime *runtime, uint64_t comm)
{
    struct rondo_agreements *agreements = runtime->agreements;
    struct agreement **oldest = NULL;
    int freed = 0;
    pthread_mutex_lock(&agreements->lock);
    for (struct agreement **link = &agreements->first; *link != NULL; link = &(*link)->next) {
        (*link)->freed |= (*link)->comm == comm;
        if ((*link)->freed) {
            oldest = link;
            freed++;
        }
    }
    if (freed > DECISIONS_MOST) {
        struct agreement *agreement = *oldest;
        *oldest = agreement->next;
        free_agreement(agreement, runtime->size);
    }
    pthread_mutex_unlock(&agreements->lock);
}

/* Makes what this rank contributes. NULL: out of memory. */
static struct value *contribute(const struct rondo_comm *comm, uint64_t number, const struct rondo_agreed *agreed)
{
    const uint32_t size = (uint32_t) comm->size;
    struct value *own = calloc(1, value_bytes(size));
    if (own == NULL)
        return NULL;
    own->comm = comm->id;
    own->number = number;
    own->size = size;
    own->flag = agreed->flag;
    for (int i = 0; i < comm->size; i++) {
        const unsigned char bit = (unsigned char) (1 << i % 8);
        if (rondo_is_gone(comm->runtime, comm->members[i]))
            failed_of(own)[i / 8] |= bit;
        if (agreed->acknowledged[i])
            acknowledged_of(own)[i / 8] |= bit;
    }
    return own;
}

/* This rank comes to the agreement. NULL: out of memory. */
static struct agreement *come(struct rondo_comm *comm, uint64_t number, struct value *own)
{
    struct rondo_agreements *agreements = comm->runtime->agreements;
    int *members = malloc((size_t) comm->size * sizeof(*members));
    struct agreement *agreement = find(agreements, comm->id, number);
    if (agreement == NULL && members != NULL)
        agreement = add(agreements, comm->id, number);
    if (members == NULL || agreement == NULL) {
        free(members);
        return NULL;
    }
    memcpy(members, comm->members, (size_t) comm->size * sizeof(*members));
    agreement->members = members;
    agreement->size = comm->size;
    agreement->rank = comm->rank;
    agreement->own = own;
    /* Reports of another size are of ranks that do not know the communicator. */
    for (int rank = 0; agreement->report != NULL && rank < comm->runtime->size; rank++)
        if (agreement->report[rank].value != NULL && agreement->report[rank].value->size != own->size) {
            free(agreement->report[rank].value);
            agreement->report[rank].value = NULL;
        }
    drop_earlier(comm->runtime, comm->id, number);
    return agreement;
}

static rondo_result_t await(struct rondo_comm *comm, const char *name, const struct agreement *agreement)
{
    struct rondo_agreements *agreements = comm->runtime->agreements;
    const double timeout = comm->runtime->settings.timeout > 0 ? comm->runtime->settings.timeout : 1e9;
    struct timespec deadline;
    rondo_deadline_in(&deadline, timeout);
    while (!agreement->decided) {
        if (agreements->cut_off)
            return rondo_fail(RONDO_ERR_PEER, "%s: rank %d has lost its connection to the others", name, comm->runtime->rank);
        if (pthread_cond_timedwait(&agreements->decided, &agreements->lock, &deadline) != 0 && !agreement->decided)
            return rondo_fail(RONDO_ERR_TIMEOUT, "%s: not all ranks that are alive have called it within %g s", name, timeout);
    }
    return RONDO_SUCCESS;
}

rondo_result_t rondo_agreement_reach(struct rondo_comm *comm, const char *name, struct rondo_agreed *agreed)
{
    struct rondo_runtime *runtime = comm->runtime;
    struct rondo_agreements *agreements = runtime->agreements;
    if (value_bytes((uint32_t) comm->size) > RONDO_CONTROL_MESSAGE_MAX)
        return rondo_fail(RONDO_ERR_UNSUPPORTED, "%s: %d ranks are more than a message has room for", name, comm->size);
    pthread_mutex_lock(&agreements->lock);
    const uint64_t number = comm->agreements++;
    struct value *own = contribute(comm, number, agreed);
    struct agreement *agreement = own != NULL ? come(comm, number, own) : NULL;
    rondo_result_t result = RONDO_SUCCESS;
    if (agreement == NULL) {
        free(own);
        result = rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for %d ranks", name, comm->size);
        give_up(runtime);
    } else {
        look(runtime, agreement);
        agreement->waiting++;
        result = await(comm, name, agreement);
        agreement->waiting--;
    }
    if (result == RONDO_SUCCESS) {
        agreed->flag = agreement->stored->flag;
        for (int i = 0; i < comm->size; i++) {
            agreed->failed[i] = failed_of(agreement->stored)[i / 8] >> i % 8 & 1;
            agreed->acknowledged[i] = acknowledged_of(agreement->stored)[i / 8] >> i % 8 & 1;
        }
    }
    pthread_mutex_unlock(&agreements->lock);
    if (result == RONDO_ERR_PEER)
        rondo_comm_await_failure(comm);
    return result;
}
