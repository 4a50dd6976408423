/* See check.h. */
#include "lib/submission/check.h"

#include "lib/submission/state.h"

#include "lib/submission/arguments.h"
#include "lib/connection/mailbox.h"
#include "lib/submission/queue.h"
#include "lib/base/error.h"
#include "lib/call/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 96

struct statement {
    uint64_t comm, lane, number;
    int32_t rank;             /* in the communicator */
    int32_t peer;             /* of the lane, as this rank sees it */
    int32_t sender, receiver; /* p2p, else -1: two statements of one lane id that are not about the same pair */
    int32_t expected;         /* statements there will be */
    int32_t outgoing;         /* of the lane */
    struct rondo_signature signature;
    char text[TEXT_BYTES];
};

struct verdict {
    uint64_t comm, lane, number;
    int32_t peer, outgoing; /* of the lane, as the receiver of the verdict sees it */
    int32_t result, unused;
    char text[3 * TEXT_BYTES];
};

/* An operation under judgement. */
struct trial {
    struct trial *next;
    struct statement first;
    int arrived;
    int disagree;
    struct statement other; /* the first that disagrees */
    int *sources, *peers, *outgoing;
};

struct rondo_checker {
    struct trial *trials; /* the control thread's alone */
};

rondo_result_t rondo_check_create(struct rondo_checker **checker)
{
    *checker = calloc(1, sizeof(**checker));
    return *checker != NULL ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_MEMORY, "no memory for the checker");
}

static void free_trial(struct trial *trial)
{
    free(trial->sources);
    free(trial->peers);
    free(trial->outgoing);
    free(trial);
}

void rondo_check_destroy(struct rondo_checker *checker)
{
    while (checker != NULL && checker->trials != NULL) {
        struct trial *trial = checker->trials;
        checker->trials = trial->next;
        free_trial(trial);
    }
    free(checker);
}

static void state(const struct rondo_comm *comm, const struct rondo_call *call, struct statement *statement)
{
    memset(statement, 0, sizeof(*statement));
    statement->comm = comm->id;
    statement->rank = comm->rank;
    statement->sender = statement->receiver = -1;
    rondo_call_signature(comm, call, &statement->signature);
    rondo_call_describe(call, statement->text, sizeof(statement->text));
}

static void disagreement(const struct statement *a, const struct statement *b, char *text, size_t bytes)
{
    snprintf(text, bytes, "ranks disagree: rank %d calls %s, rank %d calls %s", a->rank, a->text, b->rank, b->text);
}

void rondo_check_ask(struct rondo_request *request)
{
    const struct rondo_comm *comm = request->comm;
    const struct rondo_host_lane *lane = request->lane;
    struct statement statement;
    state(comm, &request->call, &statement);
    statement.lane = lane->id;
    statement.number = request->number;
    statement.peer = lane->peer;
    statement.outgoing = lane->outgoing;
    statement.expected = comm->size;
    int judge = comm->members[0];
    if (lane->peer >= 0) {
        statement.expected = 2;
        statement.sender = lane->outgoing ? comm->rank : lane->peer;
        statement.receiver = lane->outgoing ? lane->peer : comm->rank;
        judge = comm->members[statement.receiver];
    }
    rondo_control_send(request->runtime->control, judge, RONDO_MESSAGE_CHECK, &statement, sizeof(statement));
}

static int same_operation(const struct statement *a, const struct statement *b)
{
    return a->comm == b->comm && a->lane == b->lane && a->number == b->number && a->sender == b->sender &&
           a->receiver == b->receiver;
}

static struct trial *open_trial(struct rondo_checker *checker, const struct statement *statement)
{
    struct trial *trial = checker->trials;
    while (trial != NULL && !same_operation(&trial->first, statement))
        trial = trial->next;
    if (trial != NULL || statement->expected < 1 || statement->expected > 1 << 20)
        return trial;
    trial = calloc(1, sizeof(*trial));
    if (trial == NULL)
        return NULL;
    trial->sources = calloc((size_t) statement->expected, sizeof(*trial->sources));
    trial->peers = calloc((size_t) statement->expected, sizeof(*trial->peers));
    trial->outgoing = calloc((size_t) statement->expected, sizeof(*trial->outgoing));
    if (trial->sources == NULL || trial->peers == NULL || trial->outgoing == NULL) {
        free_trial(trial);
        return NULL;
    }
    trial->first = *statement;
    trial->next = checker->trials;
    checker->trials = trial;
    return trial;
}

static void judge(struct rondo_runtime *runtime, const struct trial *trial)
{
    struct verdict verdict = {.comm = trial->first.comm, .lane = trial->first.lane, .number = trial->first.number};
    verdict.result = trial->disagree ? RONDO_ERR_MISMATCH : RONDO_SUCCESS;
    if (trial->disagree)
        disagreement(&trial->first, &trial->other, verdict.text, sizeof(verdict.text));
    for (int i = 0; i < trial->first.expected; i++) {
        verdict.peer = trial->peers[i];
        verdict.outgoing = trial->outgoing[i];
        rondo_control_send(runtime->control, trial->sources[i], RONDO_MESSAGE_VERDICT, &verdict, sizeof(verdict));
    }
}

static void hear(struct rondo_runtime *runtime, int source, const struct statement *statement)
{
    struct rondo_checker *checker = runtime->checker;
    struct trial *trial = open_trial(checker, statement);
    if (trial == NULL || trial->arrived >= trial->first.expected)
        return;
    trial->sources[trial->arrived] = source;
    trial->peers[trial->arrived] = statement->peer;
    trial->outgoing[trial->arrived] = statement->outgoing;
    trial->arrived++;
    if (!trial->disagree && memcmp(&trial->first.signature, &statement->signature, sizeof(statement->signature)) != 0) {
        trial->disagree = 1;
        trial->other = *statement;
    }
    if (trial->arrived < trial->first.expected)
        return;
    judge(runtime, trial);
    for (struct trial **link = &checker->trials; *link != NULL; link = &(*link)->next)
        if (*link == trial) {
            *link = trial->next;
            break;
        }
    free_trial(trial);
}

void rondo_check_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    if (type == RONDO_MESSAGE_CHECK && bytes == sizeof(struct statement)) {
        struct statement statement;
        memcpy(&statement, data, sizeof(statement));
        statement.text[TEXT_BYTES - 1] = '\0';
        hear(runtime, source, &statement);
    } else if (type == RONDO_MESSAGE_VERDICT && bytes == sizeof(struct verdict)) {
        struct verdict verdict;
        memcpy(&verdict, data, sizeof(verdict));
        verdict.text[sizeof(verdict.text) - 1] = '\0';
        const struct rondo_operation_name name = {.comm = verdict.comm,
                                                  .lane = verdict.lane,
                                                  .peer = verdict.peer,
                                                  .outgoing = verdict.outgoing,
                                                  .number = verdict.number};
        rondo_request_approve(runtime, &name, (rondo_result_t) verdict.result, verdict.text);
    }
}

rondo_result_t rondo_check_init(struct rondo_comm *comm, const struct rondo_call *call)
{
    struct statement mine, *all = calloc((size_t) comm->size, sizeof(*all));
    if (all == NULL)
        return rondo_fail(RONDO_ERR_MEMORY, "no memory to compare %d calls", comm->size);
    state(comm, call, &mine);
    rondo_result_t result = rondo_exchange(comm, "persistent init", &mine, sizeof(mine), all);
    for (int rank = 1; rank < comm->size && result == RONDO_SUCCESS; rank++)
        if (memcmp(&all[rank].signature, &all[0].signature, sizeof(mine.signature)) != 0) {
            char text[3 * TEXT_BYTES];
            all[0].text[TEXT_BYTES - 1] = all[rank].text[TEXT_BYTES - 1] = '\0';
            disagreement(&all[0], &all[rank], text, sizeof(text));
            result = rondo_fail(RONDO_ERR_MISMATCH, "%s", text);
        }
    free(all);
    return result;
}
