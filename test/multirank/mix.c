/*
 * Random mixes: each rank has several threads, each with communicators of its own (a duplicate, splits of odd sizes and
 * reversed order). They start persistent collectives in a random order that differs between ranks, and non-blocking collectives
 * in call order on each communicator but in random order across communicators, beside sends and receives, with device
 * synchronizations between starts. The plan comes from the seed and is the same on all ranks of a communicator; the order of
 * starts is each rank's own.
 */
#include "test/multirank/trial.h"

#include <pthread.h>
#include <stdatomic.h>

static long ranks = 4, seed = 1, threads = 2, iterations = 10, persistent = 6, nonblocking = 3, messages = 2, synchronize = 1,
            blocks = -1, spin = -1, max_count = 5000, callbacks = 1;
static const char *order;

enum { COMMUNICATORS = 4, MAX_OPERATIONS = 512 };

struct message { /* goes to the communicator's next rank, and comes from the previous one */
    rondo_comm_t comm;
    int rank, size;
    uint64_t seed;
    size_t count;
    int32_t *out, *in; /* device memory */
};

struct operation {
    enum { PERSISTENT_COLLECTIVE, NEXT_COLLECTIVE, NEXT_MESSAGE } kind;
    int communicator;
    struct trial trial;
    rondo_request_t request;
    atomic_int called; /* set by the callback */
    int expected_calls;
};

struct worker {
    struct rank *me;
    int number;
    rondo_comm_t comms[COMMUNICATORS];
    uint64_t comm_seeds[COMMUNICATORS]; /* each is the same on all ranks of its communicator */
    struct graph graphs[COMMUNICATORS]; /* of the communicators, which all have one */
};

static void called_back(void *argument, rondo_result_t result)
{
    struct operation *operation = argument;
    CHECK(result == RONDO_SUCCESS, "callback with %s", rondo_strerror(result));
    atomic_fetch_add(&operation->called, 1);
}

static void plan_trial(struct trial *t, const struct worker *worker, int c, uint64_t *plan)
{
    const rondo_comm_t comm = worker->comms[c];
    memset(t, 0, sizeof(*t));
    t->comm = comm;
    t->graph = &worker->graphs[c];
    int size;
    MUST(rondo_comm_size(comm, &size));
    t->what = (enum collective) ranks_below(plan, COLLECTIVES);
    do {
        t->type = (rondo_datatype_t) ranks_below(plan, RONDO_DATATYPE_COUNT);
        t->op = (rondo_op_t) ranks_below(plan, RONDO_OP_COUNT);
    } while (!op_allowed(t->what, t->op, t->type) || !op_runs(t->what, t->op, t->type));
    int scale = ranks_below(plan, 4); /* many small counts, and some that need several slots */
    t->count = (size_t) ranks_below(plan, scale == 0 ? 4 : scale == 1 ? 64 : (int) max_count);
    t->root = ranks_below(plan, size);
    t->in_place = ranks_below(plan, 2) && collective_in_place(t->what);
    t->seed = ranks_random(plan);
    trial_prepare(t);
}

static int32_t message_element(const struct message *m, int from, size_t i)
{
    return (int32_t) ranks_hash(m->seed ^ (uint64_t) from << 40 ^ i);
}

static void start_message(struct message *m, rondo_comm_t comm, uint64_t message_seed, rondo_request_t *requests)
{
    m->comm = comm;
    MUST(rondo_comm_rank(comm, &m->rank));
    MUST(rondo_comm_size(comm, &m->size));
    m->seed = message_seed;
    m->count = (size_t) (message_seed % (uint64_t) max_count);
    size_t bytes = (m->count + 1) * sizeof(int32_t);
    int32_t *image = malloc(bytes);
    m->out = ranks_allocate(bytes);
    m->in = ranks_allocate(bytes);
    memset(image, CANARY, bytes);
    ranks_put(m->in, image, bytes);
    for (size_t i = 0; i < m->count; i++)
        image[i] = message_element(m, m->rank, i);
    ranks_put(m->out, image, bytes);
    free(image);
    MUST(rondo_isend(m->out, m->count, RONDO_INT32, (m->rank + 1) % m->size, comm, &requests[0]));
    MUST(rondo_irecv(m->in, m->count, RONDO_INT32, (m->rank + m->size - 1) % m->size, comm, &requests[1]));
}

static void finish_message(struct message *m, rondo_request_t *requests)
{
    MUST(rondo_waitall(2, requests));
    int from = (m->rank + m->size - 1) % m->size;
    size_t bad = 0, first = 0, bytes = (m->count + 1) * sizeof(int32_t);
    int32_t *image = malloc(bytes);
    ranks_get(image, m->in, bytes);
    for (size_t i = 0; i < m->count; i++)
        if (image[i] != message_element(m, from, i) && bad++ == 0)
            first = i;
    CHECK(bad == 0, "message of %zu from %d of %d: %zu wrong elements, first %zu", m->count, from, m->size, bad, first);
    CHECK(image[m->count] == (int32_t) 0xa5a5a5a5, "message of %zu ran over its end", m->count);
    free(image);
    ranks_release(m->out);
    ranks_release(m->in);
}

/* Completes the operation by waiting or by polling. */
static void complete(struct operation *operation, uint64_t *own)
{
    if (ranks_below(own, 2))
        MUST(rondo_wait(operation->request));
    else
        MUST(ranks_poll(operation->request));
}

static void shuffle(int *order_of, int count, uint64_t *own)
{
    for (int i = count - 1; i > 0; i--) {
        int k = ranks_below(own, i + 1), swap = order_of[i];
        order_of[i] = order_of[k];
        order_of[k] = swap;
    }
}

static int make_operations(struct worker *worker, struct operation *operations)
{
    int count = 0;
    for (int c = 0; c < COMMUNICATORS; c++) {
        if (worker->comms[c] == NULL)
            continue;
        uint64_t plan = worker->comm_seeds[c];
        for (int k = 0; k < persistent; k++) {
            struct operation *operation = &operations[count++];
            operation->kind = PERSISTENT_COLLECTIVE;
            operation->communicator = c;
            plan_trial(&operation->trial, worker, c, &plan);
            rondo_attr_t attr = RONDO_ATTR_DEFAULT;
            attr.priority = ranks_below(&plan, 5) - 2;
            STEP("init %s of communicator %d", collective_names[operation->trial.what], c);
            MUST(trial_call(&operation->trial, PERSISTENT, &attr, &operation->request));
        }
        for (int k = 0; k < nonblocking; k++) {
            struct operation *operation = &operations[count++];
            operation->kind = NEXT_COLLECTIVE;
            operation->communicator = c;
        }
        for (int k = 0; k < messages; k++) {
            operations[count].kind = NEXT_MESSAGE;
            operations[count++].communicator = c;
        }
    }
    return count;
}

static void iterate(struct worker *worker, struct operation *operations, int count, int iteration, uint64_t *plans,
                    uint64_t *own)
{
    int sequence[MAX_OPERATIONS];
    struct message sent[MAX_OPERATIONS];
    rondo_request_t pairs[MAX_OPERATIONS][2];
    for (int i = 0; i < count; i++)
        sequence[i] = i;
    shuffle(sequence, count, own);
    uint64_t message_plans[COMMUNICATORS];
    for (int c = 0; c < COMMUNICATORS; c++)
        message_plans[c] = worker->comm_seeds[c] + 77 + (uint64_t) iteration;
    for (int i = 0; i < count; i++) {
        struct operation *operation = &operations[sequence[i]];
        int c = operation->communicator;
        STEP("iteration %d start %d of %d", iteration, i, count);
        switch (operation->kind) {
        case PERSISTENT_COLLECTIVE:
            trial_fill(&operation->trial, iteration);
            if (callbacks && ranks_below(own, 3) == 0) {
                MUST(rondo_request_callback(operation->request, called_back, operation));
                operation->expected_calls++;
            }
            MUST(rondo_start(operation->request));
            break;
        case NEXT_COLLECTIVE: /* the next collective of the communicator's plan */
            plan_trial(&operation->trial, worker, c, &plans[c]);
            trial_fill(&operation->trial, iteration);
            MUST(trial_call(&operation->trial, NONBLOCKING, NULL, &operation->request));
            break;
        default:
            start_message(&sent[sequence[i]], worker->comms[c], ranks_random(&message_plans[c]), pairs[sequence[i]]);
        }
        if (synchronize && ranks_below(own, 6) == 0) {
            STEP("iteration %d synchronize after %d", iteration, i);
            MUST(rondo_device_synchronize(worker->me->runtime));
        }
        if (ranks_below(own, 10) == 0 && operation->kind == PERSISTENT_COLLECTIVE) {
            int done; /* testing must be harmless before and after completion */
            MUST(rondo_test(operation->request, &done));
        }
    }
    shuffle(sequence, count, own);
    for (int i = 0; i < count; i++) {
        struct operation *operation = &operations[sequence[i]];
        STEP("iteration %d wait %d of %d: %s", iteration, i, count,
             operation->kind == NEXT_MESSAGE ? "message" : collective_names[operation->trial.what]);
        if (operation->kind == NEXT_MESSAGE) {
            finish_message(&sent[sequence[i]], pairs[sequence[i]]);
            continue;
        }
        complete(operation, own);
        trial_verify(&operation->trial, form_names[operation->kind == NEXT_COLLECTIVE ? NONBLOCKING : PERSISTENT], iteration);
        if (operation->kind == NEXT_COLLECTIVE)
            trial_release(&operation->trial);
    }
}

static void *work(void *opaque)
{
    struct worker *worker = opaque;
    ranks_current = worker->me->rank;
    static const struct operation unused;
    struct operation *operations = malloc(MAX_OPERATIONS * sizeof(*operations));
    for (int i = 0; i < MAX_OPERATIONS; i++)
        memcpy(&operations[i], &unused, sizeof(unused));
    uint64_t own = ranks_hash((uint64_t) seed * 1000 + (uint64_t) worker->number * 100 + (uint64_t) worker->me->rank);
    uint64_t plans[COMMUNICATORS];
    for (int c = 0; c < COMMUNICATORS; c++)
        plans[c] = worker->comm_seeds[c] ^ 0x5555;
    int count = make_operations(worker, operations);
    for (int i = 0; i < iterations; i++)
        iterate(worker, operations, count, i, plans, &own);
    for (int i = 0; i < count; i++) {
        if (operations[i].kind != PERSISTENT_COLLECTIVE)
            continue;
        /* A callback may run a moment after the wait has returned, but it must run exactly once. */
        double until = ranks_seconds() + 10;
        while (atomic_load(&operations[i].called) < operations[i].expected_calls && ranks_seconds() < until)
            ranks_sleep(0.001);
        CHECK(atomic_load(&operations[i].called) == operations[i].expected_calls, "%d callbacks, not %d",
              atomic_load(&operations[i].called), operations[i].expected_calls);
        STEP("free %d", i);
        MUST(rondo_request_free(&operations[i].request));
        trial_release(&operations[i].trial);
    }
    free(operations);
    return NULL;
}

/* A duplicate; a split into odd and even ranks; all ranks but the last one, reversed; a split of a split. */
static void make_communicators(struct worker *worker)
{
    struct rank *me = worker->me;
    uint64_t base = ranks_hash((uint64_t) seed * 31 + (uint64_t) worker->number);
    STEP("communicators of worker %d", worker->number);
    MUST(rondo_comm_dup(me->world, &worker->comms[0]));
    MUST(rondo_comm_split(me->world, me->rank % 2, me->rank, &worker->comms[1]));
    MUST(rondo_comm_split(me->world, me->rank == me->size - 1 ? -1 : 0, -me->rank, &worker->comms[2]));
    MUST(rondo_comm_split(worker->comms[1], me->rank % 3 == 2, 0, &worker->comms[3]));
    uint64_t colors[COMMUNICATORS] = {0, (uint64_t) (me->rank % 2), 0, (uint64_t) (me->rank % 2 * 2 + (me->rank % 3 == 2))};
    for (int c = 0; c < COMMUNICATORS; c++)
        worker->comm_seeds[c] = ranks_hash(base + (uint64_t) c * 16 + colors[c]);
    for (int c = 0; c < COMMUNICATORS; c++) {
        rondo_comm_t plain = worker->comms[c];
        if (plain == NULL)
            continue;
        make_graph(plain, worker->comm_seeds[c] >> 8, &worker->graphs[c], &worker->comms[c]);
        MUST(rondo_comm_free(&plain));
    }
    int size = 0, rank = -1;
    CHECK((worker->comms[2] == NULL) == (me->rank == me->size - 1), "split gave %p", (void *) worker->comms[2]);
    if (worker->comms[2] != NULL) {
        MUST(rondo_comm_size(worker->comms[2], &size));
        MUST(rondo_comm_rank(worker->comms[2], &rank));
        CHECK(size == me->size - 1 && rank == me->size - 2 - me->rank, "rank %d of %d", rank, size);
    }
    MUST(rondo_comm_size(worker->comms[1], &size));
    CHECK(size == (me->size + (me->rank % 2 == 0)) / 2, "%d ranks", size);
}

static void run(struct rank *me)
{
    struct worker *workers = calloc((size_t) threads, sizeof(*workers));
    pthread_t *running = calloc((size_t) threads, sizeof(*running));
    for (int t = 0; t < threads; t++) {
        workers[t].me = me;
        workers[t].number = t;
        make_communicators(&workers[t]);
    }
    for (int t = 0; t < threads; t++)
        pthread_create(&running[t], NULL, work, &workers[t]);
    for (int t = 0; t < threads; t++)
        pthread_join(running[t], NULL);
    for (int t = 0; t < threads; t++)
        for (int c = 0; c < COMMUNICATORS; c++)
            if (workers[t].comms[c] != NULL) {
                MUST(rondo_comm_free(&workers[t].comms[c]));
                CHECK(workers[t].comms[c] == NULL, "comm_free left %p", (void *) workers[t].comms[c]);
            }
    rondo_stats_t stats;
    MUST(rondo_get_stats(me->runtime, &stats));
    CHECK(stats.completed == stats.submitted, "completed %llu of %llu", (unsigned long long) stats.completed,
          (unsigned long long) stats.submitted);
    if (me->rank == 0)
        printf("mix: rank 0 completed %llu, preemptions %llu, daemon quits %llu\n", (unsigned long long) stats.completed,
               (unsigned long long) stats.preemptions, (unsigned long long) stats.daemon_quits);
    free(workers);
    free(running);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: from the environment"},
        {"--seed", &seed, NULL, "of plan and orders"},
        {"--threads", &threads, NULL, "threads a rank"},
        {"--iterations", &iterations, NULL, "rounds of starting and waiting for everything"},
        {"--persistent", &persistent, NULL, "persistent collectives a communicator"},
        {"--nonblocking", &nonblocking, NULL, "non-blocking ones a communicator and iteration"},
        {"--messages", &messages, NULL, "sends a communicator and iteration"},
        {"--synchronize", &synchronize, NULL, "1: device synchronizations between starts"},
        {"--callbacks", &callbacks, NULL, "1: completion callbacks on some"},
        {"--max-count", &max_count, NULL, "elements"},
        {"--blocks", &blocks, NULL, "of the daemon"},
        {"--spin", &spin, NULL, "initial and largest budget in nanoseconds; a small one preempts at nearly every wait"},
        {"--order", NULL, &order, "fifo or priority"},
    };
    ranks_parse(argc, argv, options, sizeof(options) / sizeof(options[0]));
    if (COMMUNICATORS * (persistent + nonblocking + messages) > MAX_OPERATIONS) {
        fprintf(stderr, "mix: too many operations\n");
        return 2;
    }
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.order = order;
    config.check = 1;
    config.blocks = (int) blocks;
    if (spin > 0) {
        config.spin = "fixed";
        config.spin_initial = config.spin_cap = spin;
    }
    ranks_run((int) ranks, &config, run, NULL);
    return ranks_finish("mix");
}
