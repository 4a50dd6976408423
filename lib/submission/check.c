/* Comparing the calls of all ranks (lib/submission/check.h): statements go to the arbiter's control thread, which answers with
 * verdicts. Comparisons need no lock, because only the control thread touches them. */
#include "lib/submission/check.h"

#include "lib/submission/state.h"

#include "lib/submission/arguments.h"
#include "lib/connection/exchange.h"
#include "lib/submission/queue.h"
#include "lib/base/error.h"
#include "lib/call/call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 96

/* What a rank says of its call. */
struct statement {
    uint64_t comm, lane, number;
    int32_t rank;             /* in the communicator */
    int32_t peer;             /* of the lane, as this rank sees it */
    int32_t sender, receiver; /* p2p, else -1: they tell apart statements with one lane id about different pairs */
    int32_t expected;         /* how many statements the arbiter gets */
    int32_t outgoing;         /* of the lane */
    struct rondo_signature signature;
    char text[TEXT_BYTES];
};

/* What the arbiter answers to each rank. */
struct verdict {
    uint64_t comm, lane, number;
    int32_t peer, outgoing; /* of the lane, as the receiver of the verdict sees it */
    int32_t result, unused;
    char text[3 * TEXT_BYTES];
};

/* An operation whose statements the arbiter is collecting. */
struct comparison {
    struct comparison *next;
    struct statement first;
    int arrived;
    int disagree;
    struct statement other;          /* the first that disagrees */
    int *sources, *peers, *outgoing; /* of each statement that has arrived, for its verdict */
};

struct rondo_checker {
    struct comparison *comparisons; /* only the control thread uses it */
};

rondo_result_t rondo_check_create(struct rondo_checker **checker)
{
    *checker = calloc(1, sizeof(**checker));
    return *checker != NULL ? RONDO_SUCCESS : rondo_fail(RONDO_ERR_MEMORY, "no memory for the checker");
}

static void free_comparison(struct comparison *comparison)
{
    free(comparison->sources);
    free(comparison->peers);
    free(comparison->outgoing);
    free(comparison);
}

void rondo_check_destroy(struct rondo_checker *checker)
{
    while (checker != NULL && checker->comparisons != NULL) {
        struct comparison *comparison = checker->comparisons;
        checker->comparisons = comparison->next;
        free_comparison(comparison);
    }
    free(checker);
}

/* Fills in what a call says of itself; the lane's fields are 0. */
static void fill_in(const struct rondo_comm *comm, const struct rondo_call *call, struct statement *statement)
{
    memset(statement, 0, sizeof(*statement));
    statement->comm = comm->id;
    statement->rank = comm->rank;
    statement->sender = statement->receiver = -1;
    rondo_call_signature(comm, call, &statement->signature);
    struct rondo_call described = *call;
    if (rondo_collective_of(call->kind)->agreement == RONDO_AGREE_COUNTS) /* the array has it if the call does not */
        described.count = call->receive_counts[comm->rank];
    rondo_call_describe(&described, statement->text, sizeof(statement->text));
}

/* Says which two calls differ. */
static void disagreement(const struct statement *a, const struct statement *b, char *text, size_t bytes)
{
    snprintf(text, bytes, "ranks disagree: rank %d calls %s, rank %d calls %s", a->rank, a->text, b->rank, b->text);
}

void rondo_check_ask(struct rondo_request *request)
{
    const struct rondo_comm *comm = request->comm;
    const struct rondo_host_lane *lane = request->lane;
    struct statement statement;
    fill_in(comm, &request->call, &statement);
    statement.lane = lane->id;
    statement.number = request->number;
    statement.peer = lane->peer;
    statement.outgoing = lane->outgoing;
    statement.expected = comm->size;
    int arbiter = comm->members[0];
    if (lane->peer >= 0) {
        statement.expected = 2;
        statement.sender = lane->outgoing ? comm->rank : lane->peer;
        statement.receiver = lane->outgoing ? lane->peer : comm->rank;
        arbiter = comm->members[statement.receiver];
    }
    rondo_comm_conclude(
        request->comm, rondo_kind_name(request->call.kind),
        rondo_control_send(request->runtime->control, arbiter, RONDO_MESSAGE_CHECK, &statement, sizeof(statement)));
}

/* Whether two ranks' statements are about one operation. */
static int same_operation(const struct statement *a, const struct statement *b)
{
    return a->comm == b->comm && a->lane == b->lane && a->number == b->number && a->sender == b->sender &&
           a->receiver == b->receiver;
}

/* The comparison that the statement belongs to, made if it is the first. NULL: no memory. */
static struct comparison *find_comparison(struct rondo_checker *checker, const struct statement *statement)
{
    struct comparison *comparison = checker->comparisons;
    while (comparison != NULL && !same_operation(&comparison->first, statement))
        comparison = comparison->next;
    if (comparison != NULL)
        return comparison;
    comparison = calloc(1, sizeof(*comparison));
    if (comparison == NULL)
        return NULL;
    comparison->sources = calloc((size_t) statement->expected, sizeof(*comparison->sources));
    comparison->peers = calloc((size_t) statement->expected, sizeof(*comparison->peers));
    comparison->outgoing = calloc((size_t) statement->expected, sizeof(*comparison->outgoing));
    if (comparison->sources == NULL || comparison->peers == NULL || comparison->outgoing == NULL) {
        free_comparison(comparison);
        return NULL;
    }
    comparison->first = *statement;
    comparison->next = checker->comparisons;
    checker->comparisons = comparison;
    return comparison;
}

/* Tells all ranks whether the operation may go on. All statements have arrived. */
static void send_verdicts(struct rondo_runtime *runtime, const struct comparison *comparison)
{
    struct verdict verdict = {
        .comm = comparison->first.comm, .lane = comparison->first.lane, .number = comparison->first.number};
    verdict.result = comparison->disagree ? RONDO_ERR_MISMATCH : RONDO_SUCCESS;
    if (comparison->disagree)
        disagreement(&comparison->first, &comparison->other, verdict.text, sizeof(verdict.text));
    for (int i = 0; i < comparison->first.expected; i++) {
        verdict.peer = comparison->peers[i];
        verdict.outgoing = comparison->outgoing[i];
        if (rondo_control_send(runtime->control, comparison->sources[i], RONDO_MESSAGE_VERDICT, &verdict, sizeof(verdict)) ==
            RONDO_ERR_MEMORY)
            rondo_comm_fail_by_id(runtime, verdict.comm, RONDO_ERR_MEMORY, "comparing calls");
    }
}

/* Adds a rank's statement to its comparison, and ends the comparison with the last one. */
static void add_statement(struct rondo_runtime *runtime, int source, const struct statement *statement)
{
    struct rondo_checker *checker = runtime->checker;
    if (statement->expected < 1 || statement->expected > runtime->size + 1) /* a message has two, also to the own rank */
        return;
    struct comparison *comparison = find_comparison(checker, statement);
    if (comparison == NULL) {
        rondo_result_t result = rondo_fail(RONDO_ERR_MEMORY, "no memory for the calls of %d ranks", statement->expected);
        rondo_comm_fail_by_id(runtime, statement->comm, result, "comparing calls");
        return;
    }
    if (comparison->arrived >= comparison->first.expected)
        return;
    comparison->sources[comparison->arrived] = source;
    comparison->peers[comparison->arrived] = statement->peer;
    comparison->outgoing[comparison->arrived] = statement->outgoing;
    comparison->arrived++;
    if (!comparison->disagree &&
        memcmp(&comparison->first.signature, &statement->signature, sizeof(statement->signature)) != 0) {
        comparison->disagree = 1;
        comparison->other = *statement;
    }
    if (comparison->arrived < comparison->first.expected)
        return;
    send_verdicts(runtime, comparison);
    for (struct comparison **link = &checker->comparisons; *link != NULL; link = &(*link)->next)
        if (*link == comparison) {
            *link = comparison->next;
            break;
        }
    free_comparison(comparison);
}

void rondo_check_message(struct rondo_runtime *runtime, int source, uint32_t type, const void *data, size_t bytes)
{
    if (type == RONDO_MESSAGE_CHECK && bytes == sizeof(struct statement)) {
        struct statement statement;
        memcpy(&statement, data, sizeof(statement));
        statement.text[TEXT_BYTES - 1] = '\0';
        add_statement(runtime, source, &statement);
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
        return rondo_comm_conclude(comm, rondo_kind_name(call->kind),
                                   rondo_fail(RONDO_ERR_MEMORY, "no memory to compare %d calls", comm->size));
    fill_in(comm, call, &mine);
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
