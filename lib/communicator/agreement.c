/*
 * See lib/communicator/agreement.h.
 *
 * The tree. A member's rank without its lowest bit is its parent's, as in a binomial tree. In place of a parent that has gone
 * comes the nearest ancestor that lives, or, if none does, the root: the member of the lowest rank that lives. Each member goes
 * by what it knows of who has gone. Members that know different things have different trees for a while; a parent has the
 * lower rank in all of them, so there is no circle, and in the end they are one tree.
 *
 * The messages. A member's contribution goes to its parent together with those of its subtree, once all that live of the
 * subtree are covered; a set of ranks says which are. When all that live are covered, the root proposes: the proposal that it
 * has stored, else what follows from the contributions. A proposal goes down to those that have reported; its ballot is the
 * root's rank. A member stores it unless it has stored one of a later ballot, and tells its parent once all that live of its
 * subtree have stored it. When all that live have, the root decides, and the decision goes down. So each edge of the tree has
 * two messages up and two down.
 *
 * Deaths. A member whose parent has gone sends its contribution, and what has been stored or decided, to the next one, which
 * answers with the proposal or the decision if it has one. Sets make a second report harmless.
 *
 * Uniformity. A decision is returned by a rank only once all members that live have stored the proposal. Let the root of ballot
 * b have decided v, and let r be the root that proposes next. Then b had gone before r took itself for the root, so b had
 * decided before, and r, which lived, had stored v before that. r has stored no other since: no root has proposed between b and
 * r. So r proposes v. The same holds for each root after r, whose last proposal stored is of b or of a later one. No order
 * counts between messages of different sources, nor between a notice that a rank has gone and messages of third ranks. A notice
 * must be true, reach each rank in the end, and be followed by no message of the rank that has gone.
 *
 * Termination. After the last notice all members have one tree, and each has reported to its parent there. So what one has
 * decided reaches its neighbours, and theirs; if none has, what all contribute reaches the root, its proposal reaches all, and
 * that it is stored reaches the root.
 *
 * An agreement's state changes in handle() and look() alone, to which a message, a rank's departure and the call itself lead.
 * One lock protects all of a runtime's agreements; messages are queued under it, which does not wait.
 */
#include "lib/communicator/agreement.h"
#include "lib/communicator/agreement_value.h"

#include "lib/base/error.h"
#include "lib/base/thread.h"

#include <stdlib.h>
#include <string.h>

#define DECISIONS_MOST 4096 /* decisions of freed communicators; beyond that the oldest is dropped */

/* A contribution that came before this rank. */
struct early {
    struct early *next;
    int source;
    struct value *value;
};

struct agreement {
    struct agreement *next; /* newest first */
    uint64_t comm, number;
    struct early *early;
    int size, rank;
    int *members;             /* ranks in the world; NULL: this rank has not come to it; then nothing below counts */
    struct value *gathered;   /* contributions of this rank and of those that have reported */
    struct value *stored;     /* the proposal of the latest ballot, or the decision; NULL: none */
    struct value *accepted;   /* covered: ranks known to have stored the ballot's proposal; ballot -1: none */
    unsigned char *reporters; /* set of ranks whose contributions came here, so that proposals go to them */
    int told;                 /* rank of the parent that has the contribution, or once decided the decision; -1: none */
    int told_ballot;          /* ... and that this rank's subtree has stored the proposal of that ballot; -1: none */
    int decided;              /* stored is the decision */
    int waiting;              /* threads of this rank that wait for it */
    int freed;                /* the communicator has been */
};

struct rondo_agreements {
    pthread_mutex_t lock;
    pthread_cond_t decided;
    struct agreement *first;
    int cut_off; /* this rank cannot reach the others */
};

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

static void free_early(struct agreement *agreement)
{
    while (agreement->early != NULL) {
        struct early *early = agreement->early;
        agreement->early = early->next;
        free(early->value);
        free(early);
    }
}

static void free_agreement(struct agreement *agreement)
{
    free_early(agreement);
    free(agreement->members);
    free(agreement->gathered);
    free(agreement->stored);
    free(agreement->accepted);
    free(agreement->reporters);
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
        free_agreement(agreement);
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
    agreement->told_ballot = -1;
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

static void send(struct rondo_runtime *runtime, const struct agreement *agreement, int destination, const struct value *value,
                 enum kind kind)
{
    struct value *message = copy_of(value);
    if (message != NULL) {
        message->kind = (uint32_t) kind;
        if (rondo_control_send(runtime->control, agreement->members[destination], RONDO_MESSAGE_AGREEMENT, message,
                               value_bytes(value->size)) == RONDO_ERR_MEMORY)
            give_up(runtime);
    } else {
        give_up(runtime);
    }
    free(message);
}

/* ---- the tree, as this rank knows it ---- */

/* A rank that is cut off has not gone: then this rank decides nothing. */
static int lives(const struct rondo_runtime *runtime, const struct agreement *agreement, int rank)
{
    const uint32_t how = __atomic_load_n(&runtime->gone[agreement->members[rank]], __ATOMIC_ACQUIRE);
    return how != RONDO_DIED && how != RONDO_LEFT;
}

/* Returns this rank's own if it is the root. */
static int find_parent(const struct rondo_runtime *runtime, const struct agreement *agreement)
{
    int root = 0;
    for (int ancestor = agreement->rank; ancestor != 0;) {
        ancestor &= ancestor - 1;
        if (lives(runtime, agreement, ancestor))
            return ancestor;
    }
    while (root != agreement->rank && !lives(runtime, agreement, root))
        root++;
    return root;
}

/* Whether the set has all that live of this rank's subtree, to which all members belong if this rank is the root. */
static int covers(const struct rondo_runtime *runtime, const struct agreement *agreement, const unsigned char *set)
{
    const int first = agreement->rank, lowest_bit = first & -first;
    const int is_root = find_parent(runtime, agreement) == first;
    const int end = is_root || agreement->size - first < lowest_bit ? agreement->size : first + lowest_bit;
    for (int rank = first; rank < end; rank++)
        if (!has(set, rank) && lives(runtime, agreement, rank))
            return 0;
    return 1;
}

/* ---- what this rank stores and tells ---- */

/* Sends what is stored to all that have reported and live. */
static void send_down(struct rondo_runtime *runtime, const struct agreement *agreement, enum kind kind)
{
    for (int rank = 0; rank < agreement->size; rank++)
        if (has(agreement->reporters, rank) && lives(runtime, agreement, rank))
            send(runtime, agreement, rank, agreement->stored, kind);
}

/* Whether all that live of this rank's subtree, itself included, have stored the proposal of agreement->accepted's ballot. */
static int is_accepted(const struct rondo_runtime *runtime, const struct agreement *agreement)
{
    return covers(runtime, agreement, set_of(agreement->accepted, COVERED));
}

/* Takes value, which may be NULL: out of memory. Returns 0 then. */
static int store(struct rondo_runtime *runtime, struct agreement *agreement, struct value *value)
{
    if (value == NULL) {
        give_up(runtime);
        return 0;
    }
    if (value != agreement->stored)
        free(agreement->stored);
    agreement->stored = value;
    return 1;
}

/* Of a proposal that has just been stored. */
static void accept(struct rondo_runtime *runtime, struct agreement *agreement)
{
    if (count_for(agreement->accepted, agreement->stored->ballot))
        insert(set_of(agreement->accepted, COVERED), agreement->rank);
    send_down(runtime, agreement, PROPOSAL);
}

/* What is stored is the decision, by what rank source has told. */
static void decide(struct rondo_runtime *runtime, struct agreement *agreement, int source)
{
    agreement->decided = 1;
    agreement->told = source;
    send_down(runtime, agreement, DECISION);
    pthread_cond_broadcast(&runtime->agreements->decided);
}

/* As the root: what it has stored, else what follows from the contributions. Those of members that have gone count as well. */
static void propose(struct rondo_runtime *runtime, struct agreement *agreement)
{
    const int anew = agreement->stored == NULL;
    if (!store(runtime, agreement, anew ? copy_of(agreement->gathered) : agreement->stored))
        return;
    for (int rank = 0; anew && rank < agreement->size; rank++)
        if (!lives(runtime, agreement, rank))
            insert(set_of(agreement->stored, FAILED), rank);
    agreement->stored->ballot = agreement->rank;
    accept(runtime, agreement);
}

static void coordinate(struct rondo_runtime *runtime, struct agreement *agreement)
{
    if (agreement->accepted->ballot != agreement->rank && covers(runtime, agreement, set_of(agreement->gathered, COVERED)))
        propose(runtime, agreement);
    if (agreement->accepted->ballot == agreement->rank && is_accepted(runtime, agreement))
        decide(runtime, agreement, agreement->rank);
}

static void report(struct rondo_runtime *runtime, struct agreement *agreement, int parent)
{
    if (agreement->told != parent && covers(runtime, agreement, set_of(agreement->gathered, COVERED))) {
        send(runtime, agreement, parent, agreement->gathered, CONTRIBUTION);
        agreement->told = parent;
        agreement->told_ballot = -1;
    }
    if (agreement->told == parent && agreement->told_ballot != agreement->accepted->ballot && is_accepted(runtime, agreement)) {
        send(runtime, agreement, parent, agreement->accepted, ACCEPTED);
        agreement->told_ballot = agreement->accepted->ballot;
    }
}

/* Does what is due in an agreement to which this rank has come. */
static void look(struct rondo_runtime *runtime, struct agreement *agreement)
{
    if (agreement->members == NULL || runtime->agreements->cut_off)
        return;
    const int parent = find_parent(runtime, agreement);
    if (!agreement->decided && parent == agreement->rank) {
        coordinate(runtime, agreement);
    } else if (!agreement->decided) {
        report(runtime, agreement, parent);
    } else if (parent != agreement->rank && parent != agreement->told) {
        send(runtime, agreement, parent, agreement->stored, DECISION);
        agreement->told = parent;
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
            free_agreement(agreement);
        } else {
            link = &agreement->next;
        }
    }
}

/* ---- messages ---- */

/* Keeps a contribution to an agreement to which this rank has not come. */
static void keep(struct rondo_runtime *runtime, struct agreement *agreement, int source, const struct value *message)
{
    struct early *early = malloc(sizeof(*early));
    struct value *value = copy_of(message);
    if (agreement == NULL || early == NULL || value == NULL) {
        free(early);
        free(value);
        give_up(runtime);
        return;
    }
    *early = (struct early){.next = agreement->early, .source = source, .value = value};
    agreement->early = early;
}

static int rank_of(const struct agreement *agreement, int source)
{
    int rank = agreement->size - 1;
    while (rank >= 0 && agreement->members[rank] != source)
        rank--;
    return rank;
}

/* A member that reports gets what it may lack. */
static void handle_contribution(struct rondo_runtime *runtime, struct agreement *agreement, int from,
                                const struct value *message)
{
    if (agreement->decided) {
        send(runtime, agreement, from, agreement->stored, DECISION);
        return;
    }
    add_contribution(agreement->gathered, message);
    insert(agreement->reporters, from);
    if (agreement->stored != NULL)
        send(runtime, agreement, from, agreement->stored, PROPOSAL);
}

static void handle_proposal(struct rondo_runtime *runtime, struct agreement *agreement, const struct value *message)
{
    const int is_newer = agreement->stored == NULL || message->ballot > agreement->stored->ballot;
    if (!agreement->decided && is_newer && store(runtime, agreement, copy_of(message)))
        accept(runtime, agreement);
}

/* Handles a message about an agreement to which this rank has come. */
static void handle(struct rondo_runtime *runtime, struct agreement *agreement, int source, const struct value *message)
{
    const enum kind kind = (enum kind) message->kind;
    const int from = rank_of(agreement, source);
    if (from < 0 || (uint32_t) agreement->size != message->size)
        return;
    if (kind == CONTRIBUTION)
        handle_contribution(runtime, agreement, from, message);
    else if (kind == PROPOSAL)
        handle_proposal(runtime, agreement, message);
    else if (kind == ACCEPTED)
        add_accepted(agreement->accepted, message);
    else if (!agreement->decided && store(runtime, agreement, copy_of(message)))
        decide(runtime, agreement, from);
    look(runtime, agreement);
}

/* Other messages than contributions are about agreements to which this rank has come, because all wait for it: if such an
 * agreement is not known, it is one of those that drop_earlier has dropped. */
static void take(struct rondo_runtime *runtime, int source, const struct value *message)
{
    struct rondo_agreements *agreements = runtime->agreements;
    struct agreement *agreement = find(agreements, message->comm, message->number);
    if (agreement != NULL && agreement->members != NULL)
        handle(runtime, agreement, source, message);
    else if (message->kind == CONTRIBUTION)
        keep(runtime, agreement != NULL ? agreement : add(agreements, message->comm, message->number), source, message);
}

/* ---- the contract ---- */

void rondo_agreement_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes)
{
    const struct value *message = data;
    if (bytes < sizeof(*message) || message->size < 1 || message->size > (uint32_t) runtime->size ||
        bytes != value_bytes(message->size) || message->kind < CONTRIBUTION || message->kind > DECISION ||
        (uint32_t) message->ballot >= message->size) {
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
        free_agreement(agreement);
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
    insert(set_of(own, COVERED), comm->rank);
    for (int i = 0; i < comm->size; i++) {
        if (rondo_is_gone(comm->runtime, comm->members[i]))
            insert(set_of(own, FAILED), i);
        if (agreed->acknowledged[i])
            insert(set_of(own, ACKNOWLEDGED), i);
    }
    return own;
}

/* Returns the agreement with what a rank needs that comes to it, gathered apart. NULL: out of memory. */
static struct agreement *prepare(const struct rondo_comm *comm, uint64_t number)
{
    struct rondo_agreements *agreements = comm->runtime->agreements;
    int *members = malloc((size_t) comm->size * sizeof(*members));
    unsigned char *reporters = calloc(1, set_bytes((uint32_t) comm->size));
    struct value *accepted = calloc(1, value_bytes((uint32_t) comm->size));
    struct agreement *agreement = find(agreements, comm->id, number);
    if (agreement == NULL && members != NULL && reporters != NULL && accepted != NULL)
        agreement = add(agreements, comm->id, number);
    if (agreement == NULL || members == NULL || reporters == NULL || accepted == NULL) {
        free(members);
        free(reporters);
        free(accepted);
        return NULL;
    }
    memcpy(members, comm->members, (size_t) comm->size * sizeof(*members));
    *accepted = (struct value){.comm = comm->id, .number = number, .size = (uint32_t) comm->size, .ballot = -1};
    agreement->members = members;
    agreement->reporters = reporters;
    agreement->accepted = accepted;
    agreement->size = comm->size;
    agreement->rank = comm->rank;
    return agreement;
}

/* This rank comes to the agreement with own, which it takes. NULL: out of memory. */
static struct agreement *come(const struct rondo_comm *comm, uint64_t number, struct value *own)
{
    struct agreement *agreement = own != NULL ? prepare(comm, number) : NULL;
    if (agreement == NULL) {
        free(own);
        return NULL;
    }
    agreement->gathered = own;
    for (const struct early *early = agreement->early; early != NULL; early = early->next)
        handle(comm->runtime, agreement, early->source, early->value);
    free_early(agreement);
    look(comm->runtime, agreement);
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
    struct agreement *agreement = come(comm, number, contribute(comm, number, agreed));
    rondo_result_t result = RONDO_SUCCESS;
    if (agreement == NULL) {
        result = rondo_fail(RONDO_ERR_MEMORY, "%s: no memory for %d ranks", name, comm->size);
        give_up(runtime);
    } else {
        agreement->waiting++;
        result = await(comm, name, agreement);
        agreement->waiting--;
    }
    if (result == RONDO_SUCCESS) {
        agreed->flag = agreement->stored->flag;
        for (int i = 0; i < comm->size; i++) {
            agreed->failed[i] = (unsigned char) has(set_of(agreement->stored, FAILED), i);
            agreed->acknowledged[i] = (unsigned char) has(set_of(agreement->stored, ACKNOWLEDGED), i);
        }
    }
    pthread_mutex_unlock(&agreements->lock);
    if (result == RONDO_ERR_PEER)
        rondo_comm_await_failure(comm);
    return result;
}
