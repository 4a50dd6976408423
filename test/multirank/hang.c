/*
 * One rank of a job that hangs on purpose, waits long enough to be asked for a report (test_hang.py), or is late. Prints READY,
 * REPORT and the report's lines, and RESULT code. The environment gives its rank.
 */
#include "test/multirank/device_memory.h"
#include "test/multirank/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1000, TEXT = 65536 };

static const char *scenario = "order";
static long culprits = 0, seconds = 2; /* bit r of culprits: rank r is one */

static int is_culprit(const struct rank *me)
{
    return (int) (culprits >> me->rank & 1);
}

static void say(const char *word)
{
    printf("%s\n", word);
    fflush(stdout);
}

/* Two all-reduces, which the culprits start in the opposite order. */
static rondo_result_t order(struct rank *me)
{
    rondo_request_t requests[2];
    float *memory = ranks_allocate(4 * COUNT * sizeof(*memory));
    for (int k = 0; k < 2; k++)
        MUST(rondo_allreduce_init(memory + 2 * k * COUNT, memory + (2 * k + 1) * COUNT, COUNT, RONDO_FLOAT, RONDO_SUM,
                                  me->world, NULL, &requests[k]));
    MUST(rondo_barrier(me->world));
    say("READY");
    MUST(rondo_start(requests[is_culprit(me)]));
    ranks_sleep(0.5); /* so that each rank's daemon is inside its first operation */
    MUST(rondo_start(requests[!is_culprit(me)]));
    rondo_result_t result = rondo_waitall(2, requests);
    for (int k = 0; k < 2; k++)
        MUST(rondo_request_free(&requests[k]));
    ranks_release(memory);
    return result;
}

/* The culprits join an all-reduce late. Meanwhile rank 0 may ask for a report. */
static rondo_result_t absence(struct rank *me, int asks)
{
    float *memory = ranks_allocate(2 * COUNT * sizeof(*memory));
    rondo_request_t request = NULL;
    rondo_result_t result = RONDO_SUCCESS;
    MUST(rondo_barrier(me->world));
    say("READY");
    if (is_culprit(me))
        ranks_sleep((double) seconds);
    result = rondo_iallreduce(memory, memory + COUNT, COUNT, RONDO_FLOAT, RONDO_SUM, me->world, &request);
    if (result != RONDO_SUCCESS) { /* meanwhile the other ranks have learned that it was stuck */
        ranks_release(memory);
        return result;
    }
    if (asks && me->rank == 0) {
        char *text = malloc(TEXT), cut[16];
        ranks_sleep(0.5);
        MUST(rondo_report(me->runtime, text, TEXT));
        printf("REPORT\n%s\nEND\n", text);
        fflush(stdout);
        MUST(rondo_report(me->runtime, cut, sizeof(cut)));
        CHECK(strlen(cut) == sizeof(cut) - 1, "the cut report has %zu characters", strlen(cut));
        EXPECT(RONDO_ERR_ARGUMENT, "rondo_report", rondo_report(me->runtime, NULL, 1));
        EXPECT(RONDO_ERR_ARGUMENT, "rondo_report", rondo_report(NULL, text, TEXT));
        free(text);
    }
    result = rondo_wait(request);
    ranks_release(memory);
    return result;
}

/* All-reduces, to each of which the culprits come late by 20 ms, until the seconds have passed on rank 0. */
static rondo_result_t late(struct rank *me)
{
    const double end = ranks_seconds() + (double) seconds;
    int64_t more = 1;
    say("READY");
    while (more > 0) {
        if (is_culprit(me))
            ranks_sleep(20e-3);
        MUST(ranks_sum(me->world, me->rank == 0 && ranks_seconds() < end, &more));
    }
    return RONDO_SUCCESS;
}

/* Waits until the communicator has failed, and returns why. */
static rondo_result_t await_failure(rondo_comm_t comm)
{
    rondo_result_t failure = RONDO_SUCCESS;
    int idle;
    while (failure == RONDO_SUCCESS) {
        ranks_sleep(0.01);
        MUST(rondo_comm_status(comm, &failure, &idle));
    }
    return failure;
}

/* Rank 0 goes: it leaves after a failure of the world, or dies. Of the others, which have a communicator of their own, the last
 * one does not come to an all-reduce; rank 1 asks for a report, and the timeout makes another one. */
static void without_rank_0(struct rank *me)
{
    rondo_comm_t others;
    MUST(rondo_comm_split(me->world, me->rank == 0 ? -1 : 0, 0, &others));
    MUST(rondo_barrier(me->world));
    if (me->rank == 0 && strcmp(scenario, "died") == 0)
        kill(getpid(), SIGKILL);
    if (me->rank == 0) {
        MUST(rondo_comm_revoke(me->world));
        return;
    }
    float in[2] = {0}, out[2];
    char *text = calloc(1, TEXT);
    rondo_request_t request;
    rondo_result_t result = RONDO_SUCCESS;
    await_failure(me->world);
    ranks_sleep(0.5); /* in which rank 0 says goodbye */
    if (me->rank < me->size - 1) {
        result = rondo_iallreduce(in, out, 2, RONDO_FLOAT, RONDO_SUM, others, &request);
        if (result == RONDO_SUCCESS && me->rank == 1) {
            ranks_sleep(0.3);
            result = rondo_report(me->runtime, text, TEXT);
            printf("REPORT\n%s\nEND\n", text);
            fflush(stdout);
        }
        const rondo_result_t completed = rondo_wait(request);
        result = result == RONDO_SUCCESS ? completed : result;
    } else {
        result = await_failure(others);
    }
    printf("RESULT %d\n", (int) result);
    fflush(stdout);
    free(text);
}

int main(int argc, char **argv)
{
    long ranks = 0;
    const struct ranks_option options[] = {
        {"--scenario", NULL, &scenario, "order, absence, ask, late, left, died"},
        {"--culprits", &culprits, NULL, "bit mask of the ranks that do otherwise"},
        {"--seconds", &seconds, NULL, "how long they stay away"},
        {"--ranks", &ranks, NULL, "of left: threads of this process; 0: it is one rank"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (strcmp(scenario, "left") == 0 || strcmp(scenario, "died") == 0) {
        ranks_run((int) ranks, NULL, without_rank_0, NULL);
        return ranks_finish("hang");
    }
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = ranks_device();
    struct rank me = {0};
    MUST(rondo_init(&me.runtime, &config));
    MUST(rondo_comm_world(me.runtime, &me.world));
    MUST(rondo_comm_rank(me.world, &me.rank));
    MUST(rondo_comm_size(me.world, &me.size));
    ranks_current = me.rank;
    ranks_use_device(me.runtime);
    rondo_result_t result = strcmp(scenario, "order") == 0  ? order(&me)
                            : strcmp(scenario, "late") == 0 ? late(&me)
                                                            : absence(&me, strcmp(scenario, "ask") == 0);
    printf("RESULT %d\n", (int) result);
    fflush(stdout);
    result = rondo_finalize(me.runtime);
    CHECK(result == RONDO_SUCCESS || result == RONDO_ERR_PEER, "finalize: %s", rondo_last_error());
    return ranks_finish("hang");
}
