/*
 * Ranks that disagree about a call: with checking on, every rank gets RONDO_ERR_MISMATCH with a message that names both calls,
 * no rank hangs, and other communicators go on working. One scenario for each kind of disagreement, in all three forms.
 */
#include "test/multirank/ranks.h"

#include <stdio.h>
#include <string.h>
#include <stdlib.h>

static long ranks = 3;
static const char *scenario = "count", *form = "blocking";

/* Whether the rank's call differs from the others': the last rank's does. */
static int odd_one(const struct rank *me)
{
    return me->rank == me->size - 1;
}

struct call {
    const char *words[2]; /* words that the message must contain: of the majority's call, of the odd rank's call */
    const char *collective;
    size_t count;
    rondo_datatype_t type;
    rondo_op_t op;
    int root;
    int equal; /* counts of a reduce-scatter */
};

/* An operator of the user, which no mismatched call gets to. */
static void sum_of_floats(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument)
{
    (void) in, (void) inout, (void) type, (void) argument;
    CHECK(0, "an operator was called for %zu elements", count);
}

static struct call make_call(struct rank *me)
{
    struct call call = {{NULL, NULL}, "allreduce", 1234, RONDO_FLOAT, RONDO_SUM, 0, 0};
    int odd = odd_one(me);
    if (strcmp(scenario, "count") == 0) {
        call.count = odd ? 4321 : 1234;
        call.words[0] = "1234", call.words[1] = "4321";
    } else if (strcmp(scenario, "type") == 0) {
        call.type = odd ? RONDO_INT32 : RONDO_FLOAT;
        call.words[0] = "float", call.words[1] = "int32";
    } else if (strcmp(scenario, "op") == 0) {
        call.op = odd ? RONDO_MAX : RONDO_SUM;
        call.words[0] = "sum", call.words[1] = "max";
    } else if (strcmp(scenario, "rate") == 0) {
        rondo_compression_t compression = {.rate = odd ? 12 : 8};
        MUST(rondo_comm_set_compression(me->world, &compression));
        call.words[0] = "rate 8", call.words[1] = "rate 12";
    } else if (strcmp(scenario, "collective") == 0) {
        call.collective = odd ? "allgather" : "allreduce";
        call.words[0] = "allreduce", call.words[1] = "allgather";
    } else if (strcmp(scenario, "root") == 0) {
        call.collective = "bcast";
        call.root = odd ? 1 : 0;
        call.words[0] = "root 0", call.words[1] = "root 1";
    } else if (strcmp(scenario, "reduce_root") == 0) {
        call.collective = "reduce";
        call.root = odd ? 1 : 0;
        call.words[0] = "root 0", call.words[1] = "root 1";
    } else if (strcmp(scenario, "barrier") == 0) {
        call.collective = odd ? "barrier" : "bcast";
        call.words[0] = "bcast", call.words[1] = "barrier";
    } else if (strcmp(scenario, "bcast_count") == 0) { /* its root could end before any rank has received */
        call.collective = "bcast";
        call.count = odd ? 11 : 7;
        call.words[0] = "7", call.words[1] = "11";
    } else if (strcmp(scenario, "scan_alltonext") == 0) {
        call.collective = odd ? "alltonext" : "scan";
        call.words[0] = "scan", call.words[1] = "alltonext";
    } else if (strcmp(scenario, "commutative") == 0) {
        MUST(rondo_op_create(sum_of_floats, !odd, &call.op));
        call.words[0] = "user's", call.words[1] = "ordered";
    } else if (strcmp(scenario, "user_op") == 0) { /* a built-in operator and one of the user */
        if (odd)
            MUST(rondo_op_create(sum_of_floats, 1, &call.op));
        call.words[0] = "sum", call.words[1] = "user's";
    } else if (strcmp(scenario, "element") == 0) { /* types of the user of two sizes */
        MUST(rondo_type_create(odd ? 12 : 4, &call.type));
        MUST(rondo_op_create(sum_of_floats, 1, &call.op));
        call.words[0] = "4 bytes each", call.words[1] = "12 bytes each";
    } else if (strcmp(scenario, "gatherv_root") == 0) {
        call.collective = "gatherv";
        call.root = odd ? 1 : 0;
        call.words[0] = "root 0", call.words[1] = "root 1";
    } else if (strcmp(scenario, "scatterv_type") == 0) {
        call.collective = "scatterv";
        call.type = odd ? RONDO_INT32 : RONDO_FLOAT;
        call.words[0] = "float", call.words[1] = "int32";
    } else if (strcmp(scenario, "reduce_scatter") == 0) { /* equal counts on the odd rank alone: the block form */
        call.collective = "reduce_scatter";
        call.equal = odd, call.count = 7;
        call.words[0] = "reduce_scatter(", call.words[1] = "reduce_scatter_block(count 7";
    } else {
        printf("mismatch: no scenario %s\n", scenario);
        exit(2);
    }
    return call;
}

/* Performs the call and returns the operation's error, whichever step reports it. */
static rondo_result_t perform(const struct call *call, void *send, void *recv, rondo_comm_t comm)
{
    rondo_request_t request = NULL;
    rondo_result_t result;
    int persistent = strcmp(form, "persistent") == 0;
    if (!persistent && strcmp(form, "blocking") != 0 && strcmp(form, "nonblocking") != 0) {
        printf("mismatch: no form %s\n", form);
        exit(2);
    }
#define IN_FORM(name, ...)                                                                                                     \
    if (strcmp(call->collective, #name) == 0)                                                                                  \
    result = strcmp(form, "blocking") == 0 ? rondo_##name(__VA_ARGS__)                                                         \
             : persistent                  ? rondo_##name##_init(__VA_ARGS__, NULL, &request)                                  \
                                           : rondo_i##name(__VA_ARGS__, &request)
    size_t counts[64], displacements[64];
    for (int r = 0; r < 64; r++) {
        counts[r] = strcmp(call->collective, "reduce_scatter") == 0 && !call->equal ? (size_t) r + 1 : call->count;
        displacements[r] = (size_t) r * call->count;
    }
    IN_FORM(allreduce, send, recv, call->count, call->type, call->op, comm);
    else IN_FORM(reduce, send, recv, call->count, call->type, call->op, call->root, comm);
    else IN_FORM(bcast, send, call->count, call->type, call->root, comm);
    else IN_FORM(allgather, send, recv, call->count, call->type, comm);
    else IN_FORM(scan, send, recv, call->count, call->type, call->op, comm);
    else IN_FORM(alltonext, send, recv, call->count, call->type, comm);
    else IN_FORM(gatherv, send, call->count, recv, counts, displacements, call->type, call->root, comm);
    else IN_FORM(scatterv, send, counts, displacements, recv, call->count, call->type, call->root, comm);
    else IN_FORM(reduce_scatter, send, recv, counts, call->type, call->op, comm);
    else IN_FORM(barrier, comm);
    else result = RONDO_ERR_INTERNAL;
#undef IN_FORM
    if (result == RONDO_SUCCESS && persistent) {
        CHECK(0, "the init of a mismatched persistent %s succeeded", call->collective);
        return result;
    }
    if (result == RONDO_SUCCESS && request != NULL)
        result = rondo_wait(request);
    return result;
}

static void run(struct rank *me)
{
    static _Alignas(64) char zone[64][1 << 17];
    void *send = zone[me->rank], *recv = zone[me->rank] + 24576;
    rondo_comm_t comm;
    struct call call = make_call(me);
    MUST(rondo_comm_dup(me->world, &comm));
    /* A few good calls come first, so that the bad call is not the first one of its communicator. */
    for (int k = 0; k < 3; k++)
        MUST(rondo_allreduce(send, recv, 10, RONDO_INT32, RONDO_SUM, comm));
    STEP("mismatched %s", call.collective);
    double start = ranks_seconds();
    rondo_result_t result = perform(&call, send, recv, comm);
    double took = ranks_seconds() - start;
    char message[1024];
    snprintf(message, sizeof(message), "%s", rondo_last_error());
    CHECK(result == RONDO_ERR_MISMATCH, "%s (%d): %s", rondo_strerror(result), (int) result, message);
    for (int k = 0; k < 2; k++)
        CHECK(strstr(message, call.words[k]) != NULL, "the message lacks \"%s\": %s", call.words[k], message);
    CHECK(took < 10, "took %.1f s", took);
    if (me->rank == 0)
        printf("mismatch: %s\n", message);
    /* The world is not affected. */
    int64_t mine = me->rank + 1, sum = 0;
    STEP("good call on the world");
    MUST(rondo_allreduce(&mine, &sum, 1, RONDO_INT64, RONDO_SUM, me->world));
    CHECK(sum == (int64_t) me->size * (me->size + 1) / 2, "sum %lld", (long long) sum);
}

/* A send and a receive that disagree: both ranks get the error. */
static void run_message(struct rank *me)
{
    static int32_t zone[64][128];
    rondo_result_t result = RONDO_SUCCESS;
    const char *words[2] = {"20", "30"};
    int type = strcmp(scenario, "message_type") == 0;
    if (type)
        words[0] = "int32", words[1] = "uint32";
    STEP("mismatched message");
    if (me->rank == 0)
        result = rondo_send(zone[0], 20, RONDO_INT32, 1, me->world);
    else if (me->rank == 1)
        result = rondo_recv(zone[1], type ? 20 : 30, type ? RONDO_UINT32 : RONDO_INT32, 0, me->world);
    if (me->rank <= 1) {
        const char *message = rondo_last_error();
        CHECK(result == RONDO_ERR_MISMATCH, "%s (%d): %s", rondo_strerror(result), (int) result, message);
        for (int k = 0; k < 2; k++)
            CHECK(strstr(message, words[k]) != NULL, "the message lacks \"%s\": %s", words[k], message);
    }
    STEP("barrier after the message");
    MUST(rondo_barrier(me->world));
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--scenario", NULL, &scenario, "what differs"},
        {"--form", NULL, &form, "blocking, nonblocking or persistent"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.check = 1;
    ranks_run((int) ranks, &config, strncmp(scenario, "message", 7) == 0 ? run_message : run, NULL);
    return ranks_finish("mismatch");
}
