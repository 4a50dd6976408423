/*
 * More operations at once than the queues have room for: persistent messages of one element, each in a lane of its own. The
 * first operation of every lane must reach the device whatever else is queued. Otherwise two ranks that start the lanes in
 * different orders would wait for each other for ever.
 */
#include "test/multirank/ranks.h"

#include <stdlib.h>
#include <string.h>

static long ranks = 2, operations = 9000;

static int64_t element(int from, long number)
{
    return (int64_t) (ranks_hash((uint64_t) from << 32 ^ (uint64_t) number) >> 1);
}

/* Message k goes from rank k % size to the next one. */
struct messages {
    int64_t *data; /* one element for each message, as sent or received */
    rondo_request_t *requests;
};

static int sends(const struct rank *me, long k)
{
    return k % me->size == me->rank;
}

static int receives(const struct rank *me, long k)
{
    return (k + 1) % me->size == me->rank;
}

static void make(struct rank *me, struct messages *messages)
{
    messages->data = ranks_allocate((size_t) operations * sizeof(int64_t));
    messages->requests = calloc((size_t) operations, sizeof(*messages->requests));
    int64_t *image = calloc((size_t) operations, sizeof(*image));
    for (long k = 0; k < operations; k++)
        if (sends(me, k))
            image[k] = element(me->rank, k);
    ranks_put(messages->data, image, (size_t) operations * sizeof(*image));
    free(image);
    for (long k = 0; k < operations; k++) {
        STEP("init of message %ld", k);
        int64_t *place = messages->data + k;
        if (sends(me, k))
            MUST(rondo_send_init(place, 1, RONDO_INT64, (me->rank + 1) % me->size, me->world, NULL, &messages->requests[k]));
        else if (receives(me, k))
            MUST(rondo_recv_init(place, 1, RONDO_INT64, (me->rank + me->size - 1) % me->size, me->world, NULL,
                                 &messages->requests[k]));
    }
}

static void check(struct rank *me, const struct messages *messages)
{
    int64_t *image = calloc((size_t) operations, sizeof(*image));
    int from = (me->rank + me->size - 1) % me->size;
    long wrong = 0;
    ranks_get(image, messages->data, (size_t) operations * sizeof(*image));
    for (long k = 0; k < operations; k++)
        wrong += receives(me, k) && image[k] != element(from, k);
    CHECK(wrong == 0, "%ld messages wrong", wrong);
    memset(image, 0, (size_t) operations * sizeof(*image));
    for (long k = 0; k < operations; k++)
        if (sends(me, k))
            image[k] = element(me->rank, k);
    ranks_put(messages->data, image, (size_t) operations * sizeof(*image));
    free(image);
}

/* Even ranks start the messages from the first on, odd ranks from the last one on. */
static void opposite(struct rank *me)
{
    struct messages messages;
    make(me, &messages);
    for (int round = 0; round < 2; round++) {
        for (long k = 0; k < operations; k++) {
            rondo_request_t request = messages.requests[me->rank % 2 == round ? k : operations - 1 - k];
            STEP("round %d, start %ld", round, k);
            if (request != NULL)
                MUST(rondo_start(request));
        }
        STEP("round %d, waiting for all", round);
        MUST(rondo_waitall((int) operations, messages.requests));
        check(me, &messages);
        STEP("barrier");
        MUST(rondo_barrier(me->world));
    }
    for (long k = 0; k < operations; k++)
        if (messages.requests[k] != NULL)
            MUST(rondo_request_free(&messages.requests[k]));
    free(messages.requests);
    ranks_release(messages.data);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads, at least 2; 0: from the environment"},
        {"--operations", &operations, NULL, "messages in all"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.check = 0;
    config.blocks = 1; /* many lanes, with few contexts each */
    ranks_run((int) ranks, &config, opposite, NULL);
    return ranks_finish("oversubscription");
}
