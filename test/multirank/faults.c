/*
 * One rank of a job that test_faults.py disturbs from outside. It prints its state on single lines (READY, RESULT code seconds
 * message, FINALIZED) and does not end before the fault has reached it. The environment gives its rank.
 */
#include "test/multirank/device_memory.h"
#include "test/multirank/ranks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *scenario = "blocking";
static long count = 1000, absent = -1, seconds = 3, forking = -1;

static void report(rondo_result_t result, double started)
{
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    for (char *at = message; *at != '\0'; at++)
        if (*at == '\n')
            *at = ' ';
    printf("RESULT %d %.3f %s\n", (int) result, ranks_seconds() - started, message);
    fflush(stdout);
}

static void ready(void)
{
    printf("READY\n");
    fflush(stdout);
}

/* Memory of the device, filled with the value. */
static float *filled(size_t elements, float value)
{
    float *memory = ranks_allocate(elements * sizeof(*memory)), *image = malloc((elements + 1) * sizeof(*image));
    for (size_t i = 0; i < elements; i++)
        image[i] = value;
    ranks_put(memory, image, elements * sizeof(*image));
    free(image);
    return memory;
}

/* Runs all-reduces without end, in one of three forms, and checks each result until the fault ends them. */
static rondo_result_t endless(struct rank *me, const char *form, double limit)
{
    size_t n = (size_t) count;
    float *send = filled(n, (float) (me->rank + 1)), *recv = filled(n, 0);
    rondo_request_t request = NULL;
    int persistent = strcmp(form, "persistent") == 0, nonblocking = strcmp(form, "nonblocking") == 0;
    rondo_result_t result = RONDO_SUCCESS;
    const float wanted = (float) (me->size * (me->size + 1) / 2);
    double start = ranks_seconds();
    if (persistent)
        result = rondo_allreduce_init(send, recv, n, RONDO_FLOAT, RONDO_SUM, me->world, NULL, &request);
    for (long k = 0; result == RONDO_SUCCESS; k++) {
        if (persistent) {
            if ((result = rondo_start(request)) == RONDO_SUCCESS)
                result = rondo_wait(request);
        } else if (nonblocking) {
            if ((result = rondo_iallreduce(send, recv, n, RONDO_FLOAT, RONDO_SUM, me->world, &request)) == RONDO_SUCCESS)
                result = ranks_poll(request);
        } else {
            result = rondo_allreduce(send, recv, n, RONDO_FLOAT, RONDO_SUM, me->world);
        }
        if (k == 20)
            ready();
        if (result != RONDO_SUCCESS)
            break;
        float first, last;
        ranks_get(&first, recv, sizeof(first));
        ranks_get(&last, recv + n - 1, sizeof(last));
        CHECK(first == wanted && last == wanted, "run %ld: %g and %g, not %g", k, (double) first, (double) last,
              (double) wanted);
        /* All ranks must stop at the same operation: rank 0 decides when, once all have said that they are ready. */
        if (limit > 0 && k > 20 && k % 16 == 0) {
            int64_t stop = me->rank == 0 && ranks_seconds() - start > limit;
            if ((result = ranks_tell(me->world, &stop)) != RONDO_SUCCESS || stop)
                break;
        }
    }
    if (persistent && request != NULL) {
        CHECK(result != RONDO_ERR_PEER || strstr(rondo_last_error(), "make it again on the one of rondo_comm_shrink") != NULL,
              "%s", rondo_last_error());
        rondo_result_t freed = rondo_request_free(&request);
        CHECK(freed == RONDO_SUCCESS, "free of the failed request: %s", rondo_last_error());
    }
    ranks_release(send);
    ranks_release(recv);
    return result;
}

/* Receives from rank 1 that rank 1 never sends, or a send that rank 1 never receives. */
static rondo_result_t stuck_message(struct rank *me, int sending)
{
    size_t n = (size_t) count;
    float *memory = filled(n, 1);
    rondo_result_t result = RONDO_SUCCESS;
    MUST(rondo_barrier(me->world));
    ready();
    if (me->rank == 1)
        pause();
    else if (sending)
        result = rondo_send(memory, n, RONDO_FLOAT, 1, me->world);
    else
        result = rondo_recv(memory, n, RONDO_FLOAT, 1, me->world);
    ranks_release(memory);
    return result;
}

/* Starts many operations of every kind. Rank `absent` starts none of them. */
static rondo_result_t stuck_mix(struct rank *me)
{
    enum { KINDS = 6 };
    size_t n = (size_t) count;
    rondo_request_t requests[KINDS];
    float *memory = filled(n * (size_t) (me->size + 2) * KINDS, 1);
    for (int k = 0; k < KINDS; k++) {
        float *send = memory + (size_t) k * n * (size_t) (me->size + 2), *recv = send + n;
        if (k % 3 == 0)
            MUST(rondo_allreduce_init(send, recv, n, RONDO_FLOAT, RONDO_SUM, me->world, NULL, &requests[k]));
        else if (k % 3 == 1)
            MUST(rondo_allgather_init(send, recv, n, RONDO_FLOAT, me->world, NULL, &requests[k]));
        else
            MUST(rondo_barrier_init(me->world, NULL, &requests[k]));
    }
    MUST(rondo_barrier(me->world));
    rondo_result_t result = RONDO_SUCCESS;
    if (me->rank == absent) {
        ready();
        pause();
    }
    MUST(rondo_startall(KINDS, requests));
    ready();
    for (int k = 0; k < KINDS; k++) { /* every operation fails, in the same way */
        rondo_result_t each = rondo_wait(requests[k]);
        CHECK(k == 0 || each == result, "request %d: %s, not %s", k, rondo_strerror(each), rondo_strerror(result));
        result = each;
    }
    for (int k = 0; k < KINDS; k++)
        CHECK(rondo_request_free(&requests[k]) == RONDO_SUCCESS, "free of request %d: %s", k, rondo_last_error());
    ranks_release(memory);
    return result;
}

/* Rank `absent` does not join one all-reduce until the others have given up. */
static rondo_result_t absence(struct rank *me)
{
    float *send = filled((size_t) count, 1), *recv = filled((size_t) count, 0);
    rondo_result_t result = RONDO_SUCCESS;
    MUST(rondo_barrier(me->world));
    ready();
    if (me->rank == absent)
        ranks_sleep((double) seconds);
    result = rondo_allreduce(send, recv, (size_t) count, RONDO_FLOAT, RONDO_SUM, me->world);
    /* The buffers may be freed only now, when no peer touches them any more. */
    ranks_release(send);
    ranks_release(recv);
    return result;
}

/* Rank 1 aborts a duplicate with code 42 while the others wait on it. The world goes on working. */
static rondo_result_t abortion(struct rank *me)
{
    rondo_comm_t comm;
    float *send = filled((size_t) count, 1), *recv = filled((size_t) count, 0);
    MUST(rondo_comm_dup(me->world, &comm));
    MUST(rondo_allreduce(send, recv, (size_t) count, RONDO_FLOAT, RONDO_SUM, comm));
    ready();
    rondo_result_t result;
    if (me->rank == 1) {
        ranks_sleep(0.3);
        MUST(rondo_comm_abort(comm, 42));
    }
    result = rondo_allreduce(send, recv, (size_t) count, RONDO_FLOAT, RONDO_SUM, comm);
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    CHECK(strstr(message, "42") != NULL, "the message lacks the code: %s", message);
    rondo_result_t again = rondo_allreduce(send, recv, (size_t) count, RONDO_FLOAT, RONDO_SUM, comm);
    CHECK(again == RONDO_ERR_ABORTED, "the next operation: %s", rondo_strerror(again));
    int64_t sum = 0;
    MUST(ranks_sum(me->world, 1, &sum));
    CHECK(sum == me->size, "sum %lld", (long long) sum);
    MUST(rondo_comm_free(&comm));
    ranks_release(send);
    ranks_release(recv);
    return result;
}

/* Rank 1 is killed: the operation on the world fails, and a communicator without rank 1 goes on working. */
static rondo_result_t survivors(struct rank *me)
{
    rondo_comm_t rest = NULL;
    MUST(rondo_comm_split(me->world, me->rank == 1 ? -1 : 0, 0, &rest));
    ready();
    if (me->rank == 1)
        pause();
    rondo_result_t result = rondo_barrier(me->world);
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    for (int k = 0; k < 50; k++) {
        int64_t sum = 0;
        STEP("survivors' all-reduce %d", k);
        rondo_result_t each = k % 2 == 0 ? ranks_sum(rest, 1, &sum) : rondo_barrier(rest);
        CHECK(each == RONDO_SUCCESS, "all-reduce %d: %s", k, rondo_last_error());
        CHECK(k % 2 != 0 || sum == me->size - 1, "sum %lld", (long long) sum);
    }
    rondo_result_t again = rondo_barrier(me->world);
    CHECK(again == RONDO_ERR_PEER, "the next operation on the world: %s", rondo_strerror(again));
    MUST(rondo_comm_free(&rest));
    CHECK(strstr(message, "1") != NULL, "the message does not name the rank: %s", message);
    return result;
}

/* A job with much to disturb: it forms, works for some seconds, splits (new connections) and ends well. */
static rondo_result_t serve(struct rank *me)
{
    rondo_result_t result = endless(me, "blocking", (double) seconds);
    for (int k = 0; k < 5 && result == RONDO_SUCCESS; k++) {
        rondo_comm_t comm;
        MUST(rondo_comm_split(me->world, 0, -me->rank, &comm));
        int64_t sum = 0;
        MUST(ranks_sum(comm, me->rank, &sum));
        CHECK(sum == me->size * (me->size - 1) / 2, "sum %lld", (long long) sum);
        MUST(rondo_comm_free(&comm));
    }
    return result;
}

/* Rank 1 stops itself before it takes part in the last broadcast on a communicator that rank 0 then frees: the bytes are still
 * on their way. However long that takes, the world lives on. */
static rondo_result_t leave(struct rank *me)
{
    rondo_comm_t comm;
    size_t n = (size_t) count;
    float *memory = filled(n, (float) me->rank);
    MUST(rondo_comm_dup(me->world, &comm));
    MUST(rondo_bcast(memory, n, RONDO_FLOAT, 0, comm)); /* connects */
    ready();
    if (me->rank == 1)
        raise(SIGSTOP);
    else
        ranks_sleep(0.5);
    MUST(rondo_bcast(memory, n, RONDO_FLOAT, 0, comm));
    float last;
    ranks_get(&last, memory + n - 1, sizeof(last));
    CHECK(last == 0, "received %g", (double) last);
    printf("SENT\n");
    fflush(stdout);
    MUST(rondo_comm_free(&comm));
    printf("FREED\n");
    fflush(stdout);
    ranks_release(memory);
    return rondo_barrier(me->world);
}

/* Rank `absent` is stopped before rank 0 sends it the first message that the two exchange; the others wait for one of rank 0's
 * until that has arrived. However long it takes, all live on. */
static rondo_result_t first_contact(struct rank *me)
{
    size_t n = (size_t) count;
    float *memory = filled(n, (float) me->rank), last;
    ready();
    if (me->rank == absent)
        raise(SIGSTOP);
    ranks_sleep(0.5);
    if (me->rank != 0)
        MUST(rondo_recv(memory, n, RONDO_FLOAT, 0, me->world));
    for (int i = 0; me->rank == 0 && i < me->size - 1; i++) /* absent, absent + 1, ... without 0 */
        MUST(rondo_send(memory, n, RONDO_FLOAT, ((int) absent - 1 + i) % (me->size - 1) + 1, me->world));
    ranks_get(&last, memory + n - 1, sizeof(last));
    CHECK(last == 0, "received %g", (double) last);
    ranks_release(memory);
    return rondo_barrier(me->world);
}

/* Rank 1 exits normally, but without rondo_finalize. */
static rondo_result_t exits_early(struct rank *me)
{
    MUST(rondo_barrier(me->world));
    ready();
    if (me->rank == 1)
        _exit(0);
    return endless(me, "blocking", 0);
}

struct churn {
    float *send, *recv; /* allocated by rondo_alloc */
    size_t bytes;
    long round;
};

static rondo_result_t divide(struct rank *me, struct churn *churn)
{
    rondo_comm_t comm = NULL;
    int whole = strcmp(scenario, "dup") == 0;
    rondo_result_t result = whole ? rondo_comm_dup(me->world, &comm)
                                  : rondo_comm_split(me->world, (me->rank + (int) (churn->round % 2)) % 2, -me->rank, &comm);
    CHECK((result == RONDO_SUCCESS) == (comm != NULL), "%s: communicator %p", rondo_strerror(result), (void *) comm);
    if (comm != NULL)
        MUST(rondo_comm_free(&comm));
    return result;
}

/* All ranks make a communicator by themselves, in another order each time. */
static rondo_result_t make_group(struct rank *me, struct churn *churn)
{
    rondo_comm_t comm = NULL;
    int list[64];
    for (int i = 0; i < me->size; i++)
        list[i] = (i + (int) churn->round) % me->size;
    rondo_result_t result = rondo_comm_create_group(me->world, list, me->size, (int) (churn->round % 2), &comm);
    CHECK((result == RONDO_SUCCESS) == (comm != NULL), "%s: communicator %p", rondo_strerror(result), (void *) comm);
    if (comm != NULL)
        MUST(rondo_comm_free(&comm));
    return result;
}

static rondo_result_t open_and_close(struct rank *me, struct churn *churn)
{
    rondo_result_t result = rondo_comm_register(me->world, churn->send, churn->bytes);
    if (result != RONDO_SUCCESS)
        return result;
    result = rondo_comm_register(me->world, churn->recv, churn->bytes);
    if (result == RONDO_SUCCESS)
        MUST(rondo_comm_deregister(me->world, churn->recv));
    MUST(rondo_comm_deregister(me->world, churn->send));
    return result;
}

/* Large operations open the peers' buffers, small operations connect slots. */
static rondo_result_t make_and_free(struct rank *me, struct churn *churn)
{
    rondo_request_t request = NULL;
    size_t n = churn->round % 2 == 0 ? churn->bytes / sizeof(float) : 100;
    rondo_result_t result = churn->round % 3 == 0 ? rondo_bcast_init(churn->recv, n, RONDO_FLOAT, 0, me->world, NULL, &request)
                                                  : rondo_allreduce_init(churn->send, churn->recv, n, RONDO_FLOAT, RONDO_SUM,
                                                                         me->world, NULL, &request);
    CHECK((result == RONDO_SUCCESS) == (request != NULL), "%s: request %p", rondo_strerror(result), (void *) request);
    if (request != NULL)
        MUST(rondo_request_free(&request));
    return result;
}

/* Repeats a collective call that is not an operation. Rank `absent` joins only the first few calls. */
static rondo_result_t churning(struct rank *me, rondo_result_t (*step)(struct rank *me, struct churn *churn))
{
    struct churn churn = {.bytes = 30000 * sizeof(float)};
    rondo_result_t result = RONDO_SUCCESS;
    MUST(rondo_alloc(me->runtime, churn.bytes, (void **) &churn.send));
    MUST(rondo_alloc(me->runtime, churn.bytes, (void **) &churn.recv));
    for (; result == RONDO_SUCCESS; churn.round++) {
        if (churn.round == 20)
            ready();
        if (churn.round == 20 && me->rank == absent)
            pause();
        result = step(me, &churn);
    }
    char message[1024]; /* saved, because the next calls may fail with messages of their own */
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    rondo_result_t again = step(me, &churn);
    CHECK(again == result, "the next call: %s, not %s", rondo_strerror(again), rondo_strerror(result));
    CHECK(strstr(message, "rank ") != NULL, "the message names no rank: %s", message);
    MUST(rondo_free(me->runtime, churn.send));
    MUST(rondo_free(me->runtime, churn.recv));
    return result;
}

/* Rank `absent` calls rondo_finalize late, while all others wait for it there. */
static rondo_result_t late(struct rank *me)
{
    MUST(rondo_barrier(me->world));
    ready();
    if (me->rank == absent)
        ranks_sleep((double) seconds);
    return RONDO_SUCCESS;
}

/* Asks for a report, which rank 0 collects; rank 0 stops itself before that. */
static rondo_result_t ask(struct rank *me)
{
    char text[4000];
    MUST(rondo_barrier(me->world));
    ready();
    if (me->rank == 0)
        raise(SIGSTOP);
    ranks_sleep(0.3);
    return rondo_report(me->runtime, text, sizeof(text));
}

/* Leaves a child behind, which lives for a minute with all that it has inherited from this process, and prints its number. The
 * output that the test reads is not the child's. */
static void leave_child(void)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout) != NULL && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0)
            sleep(60);
        _exit(0);
    }
    printf("CHILD %d\n", (int) child);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--scenario", NULL, &scenario, "what to do until the fault"},
        {"--count", &count, NULL, "elements"},
        {"--absent", &absent, NULL, "the rank that does not start"},
        {"--seconds", &seconds, NULL, "how long to serve, to be absent or late"},
        {"--forking", &forking, NULL, "the rank that forks a child, which outlives it"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = ranks_device();
    struct rank me = {0};
    double start = ranks_seconds();
    STEP("rondo_init");
    rondo_result_t result = rondo_init(&me.runtime, &config);
    if (result != RONDO_SUCCESS) {
        CHECK(me.runtime == NULL, "a failed init made a runtime");
        report(result, start);
        return ranks_finish("faults");
    }
    MUST(rondo_comm_world(me.runtime, &me.world));
    MUST(rondo_comm_rank(me.world, &me.rank));
    MUST(rondo_comm_size(me.world, &me.size));
    ranks_current = me.rank;
    ranks_use_device(me.runtime);
    if (me.rank == forking)
        leave_child();
    start = ranks_seconds();
    STEP("%s", scenario);
    if (strcmp(scenario, "blocking") == 0 || strcmp(scenario, "nonblocking") == 0 || strcmp(scenario, "persistent") == 0)
        result = endless(&me, scenario, 0);
    else if (strcmp(scenario, "receive") == 0 || strcmp(scenario, "send") == 0)
        result = stuck_message(&me, strcmp(scenario, "send") == 0);
    else if (strcmp(scenario, "mix") == 0)
        result = stuck_mix(&me);
    else if (strcmp(scenario, "absence") == 0)
        result = absence(&me);
    else if (strcmp(scenario, "abort") == 0)
        result = abortion(&me);
    else if (strcmp(scenario, "survivors") == 0)
        result = survivors(&me);
    else if (strcmp(scenario, "serve") == 0)
        result = serve(&me);
    else if (strcmp(scenario, "leave") == 0)
        result = leave(&me);
    else if (strcmp(scenario, "first_contact") == 0)
        result = first_contact(&me);
    else if (strcmp(scenario, "exits_early") == 0)
        result = exits_early(&me);
    else if (strcmp(scenario, "dup") == 0 || strcmp(scenario, "split") == 0)
        result = churning(&me, divide);
    else if (strcmp(scenario, "create_group") == 0)
        result = churning(&me, make_group);
    else if (strcmp(scenario, "register") == 0)
        result = churning(&me, open_and_close);
    else if (strcmp(scenario, "init") == 0)
        result = churning(&me, make_and_free);
    else if (strcmp(scenario, "finalize") == 0)
        result = late(&me);
    else if (strcmp(scenario, "report") == 0)
        result = ask(&me);
    else
        return 2;
    report(result, start);
    STEP("rondo_finalize after %s", scenario);
    result = rondo_finalize(me.runtime);
    CHECK(result == RONDO_SUCCESS || result == RONDO_ERR_PEER, "finalize: %s: %s", rondo_strerror(result), rondo_last_error());
    printf("FINALIZED\n");
    return ranks_finish("faults");
}
