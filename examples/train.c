/* Data-parallel training: every rank holds the same network, computes the gradients of its share of each batch, and sums them
 * with the other ranks', each tensor's by a persistent all-reduce of its own. These are started the moment their gradients are
 * there, in an order that (on purpose) differs from rank to rank and from step to step. README.md says how to run it. */
#include "digits.h"
#include "random.h"
#include "rondo.h"
#include "training.h"
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Any failure ends this process; ranks in other processes then see RONDO_ERR_PEER and end too. */
#define CHECK(call) check(call, #call)
static void check(rondo_result_t result, const char *call)
{
    if (result != RONDO_SUCCESS) {
        fprintf(stderr, "train: %s: %s: %s\n", call, rondo_strerror(result), rondo_last_error());
        exit(EXIT_FAILURE);
    }
}

struct options {
    struct training training; /* ranks 0: this process is one rank, placed by the environment */
    bool shuffled;
    rondo_attr_t attr; /* of the gradients' sums: compression, the algorithm */
};

struct trainer {
    const struct options *options;
    struct samples samples;
    rondo_comm_t world;
    int rank, size;
    struct network network;
    rondo_request_t sums[NETWORK_TENSORS]; /* all-reduce each tensor's gradient in place */
    uint64_t batch_random, order_random;
};

/* The gradients are summed, not averaged, and each rank divides by the whole batch: the ranks' shares need not be equal. */
static void step(struct trainer *trainer, const int *batch, int batch_size)
{
    struct network *network = &trainer->network;
    const struct digit *digits = trainer->samples.digits;
    const int from = training_share(batch_size, trainer->rank, trainer->size);
    const int to = training_share(batch_size, trainer->rank + 1, trainer->size);
    network_forward(network, digits, batch + from, to - from);
    network_backward(network, digits, batch + from, 1.0f / (float) batch_size);

    int order[NETWORK_TENSORS]; /* the last layer first, or any */
    for (int i = 0; i < NETWORK_TENSORS; i++)
        order[i] = NETWORK_TENSORS - 1 - i;
    if (trainer->options->shuffled)
        random_shuffle(order, NETWORK_TENSORS, &trainer->order_random);
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        network_gradient(network, order[i]);
        CHECK(rondo_start(trainer->sums[order[i]]));
    }
    CHECK(rondo_waitall(NETWORK_TENSORS, trainer->sums));
    training_update(network);
}

/* Every rank shuffles alike, so that all of them mean the same batches. */
static void train(struct trainer *trainer)
{
    struct samples *samples = &trainer->samples;
    for (int epoch = 0; epoch < trainer->options->training.epochs; epoch++) {
        random_shuffle(samples->train, samples->train_count, &trainer->batch_random);
        for (int first = 0; first < samples->train_count; first += trainer->options->training.batch) {
            const int left = samples->train_count - first;
            step(trainer, samples->train + first,
                 left < trainer->options->training.batch ? left : trainer->options->training.batch);
        }
    }
}

/* The percentage told right; each rank looks at its share. */
static double accuracy(struct trainer *trainer, const int *which, int count)
{
    const int from = training_share(count, trainer->rank, trainer->size),
              to = training_share(count, trainer->rank + 1, trainer->size);
    int64_t correct = 0;
    for (int i = from; i < to; i++) {
        network_forward(&trainer->network, trainer->samples.digits, which + i, 1);
        correct += network_correct(&trainer->network, trainer->samples.digits, which + i);
    }
    CHECK(rondo_allreduce(RONDO_IN_PLACE, &correct, 1, RONDO_INT64, RONDO_SUM, trainer->world));
    return 100.0 * (double) correct / count;
}

static bool replicas_agree(struct trainer *trainer)
{
    uint64_t smallest = network_hash(&trainer->network), largest = smallest;
    CHECK(rondo_allreduce(RONDO_IN_PLACE, &smallest, 1, RONDO_UINT64, RONDO_MIN, trainer->world));
    CHECK(rondo_allreduce(RONDO_IN_PLACE, &largest, 1, RONDO_UINT64, RONDO_MAX, trainer->world));
    return smallest == largest;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static bool train_and_report(struct trainer *trainer, rondo_t runtime)
{
    const struct options *options = trainer->options;
    const struct samples *samples = &trainer->samples;
    const double start = seconds();
    train(trainer);
    const double elapsed = seconds() - start;
    const double train_accuracy = accuracy(trainer, samples->train, samples->train_count);
    const double test_accuracy = accuracy(trainer, samples->test, samples->test_count);
    const bool same = replicas_agree(trainer);
    rondo_stats_t stats;
    CHECK(rondo_get_stats(runtime, &stats));
    if (trainer->rank == 0) {
        printf("%d ranks, %d epochs of %d digits in batches of %d, gradients in %s order\n", trainer->size,
               options->training.epochs, samples->train_count, options->training.batch,
               options->shuffled ? "shuffled" : "the same");
        if (options->attr.compress_rate > 0)
            printf("gradients compressed to %d bits a value%s%s%s\n", options->attr.compress_rate,
                   options->attr.program ? " by " : "", options->attr.program ? options->attr.program : "",
                   options->attr.error_feedback ? ", with error feedback" : "");
        printf("%.3f s, %llu preemptions on rank 0\n", elapsed, (unsigned long long) stats.preemptions);
        printf("train accuracy %.2f %%\n", train_accuracy);
        printf("test accuracy %.2f %%\n", test_accuracy);
        printf("checksum %.6f, %s on all ranks\n", network_checksum(&trainer->network),
               same ? "the same bits" : "NOT THE SAME");
    }
    return same && test_accuracy >= options->training.required_accuracy;
}

static bool run_rank(const struct options *options, const rondo_config_t *config)
{
    struct trainer trainer = {.options = options, .batch_random = options->training.seed};
    rondo_t runtime;
    if (!samples_read(options->training.data, &trainer.samples))
        exit(EXIT_FAILURE);
    if (!network_create(&trainer.network, options->training.batch, options->training.seed)) {
        fprintf(stderr, "train: no memory for the network\n");
        exit(EXIT_FAILURE);
    }
    CHECK(rondo_init(&runtime, config));
    CHECK(rondo_comm_world(runtime, &trainer.world));
    CHECK(rondo_comm_rank(trainer.world, &trainer.rank));
    CHECK(rondo_comm_size(trainer.world, &trainer.size));
    trainer.order_random = options->training.seed + (uint64_t) trainer.rank + 1;
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        const struct tensor *tensor = &trainer.network.tensors[i];
        CHECK(rondo_allreduce_init(RONDO_IN_PLACE, tensor->gradient, (size_t) tensor->count, RONDO_FLOAT, RONDO_SUM,
                                   trainer.world, &options->attr, &trainer.sums[i]));
    }

    const bool good = train_and_report(&trainer, runtime);

    for (int i = 0; i < NETWORK_TENSORS; i++)
        CHECK(rondo_request_free(&trainer.sums[i]));
    CHECK(rondo_finalize(runtime));
    network_destroy(&trainer.network);
    samples_free(&trainer.samples);
    return good;
}

struct place {
    const struct options *options;
    rondo_config_t config;
    pthread_t thread;
    bool good;
};

static void *run_thread(void *argument)
{
    struct place *place = argument;
    place->good = run_rank(place->options, &place->config);
    return NULL;
}

/* Ranks as threads of this process: each has a runtime of its own, and they meet by the unique id. */
static bool run_threads(const struct options *options)
{
    struct place places[TRAINING_MOST_RANKS];
    rondo_unique_id_t id;
    bool good = true;
    CHECK(rondo_get_unique_id(&id));
    for (int rank = 0; rank < options->training.ranks; rank++) {
        struct place *place = &places[rank];
        *place = (struct place){.options = options, .config = RONDO_CONFIG_DEFAULT};
        place->config.rank = rank;
        place->config.size = options->training.ranks;
        place->config.unique_id = &id;
        place->config.device = RONDO_DEVICE_HOST;
        if (pthread_create(&place->thread, NULL, run_thread, place) != 0) {
            fprintf(stderr, "train: no thread for rank %d\n", rank);
            exit(EXIT_FAILURE);
        }
    }
    for (int rank = 0; rank < options->training.ranks; rank++) {
        pthread_join(places[rank].thread, NULL);
        good = good && places[rank].good;
    }
    return good;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: train [options]\n" TRAINING_USAGE "  --seed N              of the network and the order of digits (1)\n"
            "  --ranks N             run N ranks, up to %d, as threads; else one, placed by the environment\n"
            "  --order ORDER         in which the gradients are started: shuffled (default) or same\n"
            "  --compress RATE       bits a value of the gradients on their way, 4 to 32 (0: not compressed)\n"
            "  --feedback            what compression loses is added to the next step's gradients\n"
            "  --algorithm NAME      of the gradients' sums (chosen by the library)\n",
            TRAINING_MOST_RANKS);
    return 2;
}

static bool parse_options(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        TRAINING_OPTIONS,
        {"order", required_argument, NULL, 'o'},
        {"compress", required_argument, NULL, 'c'},
        {"feedback", no_argument, NULL, 'f'},
        {"algorithm", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int name;
    while (good && (name = getopt_long(argc, argv, "", names, NULL)) != -1)
        switch (name) {
        case 'o':
            options->shuffled = strcmp(optarg, "shuffled") == 0;
            good = options->shuffled || strcmp(optarg, "same") == 0;
            break;
        case 'c':
            good = training_number(optarg, 0, 32, &options->attr.compress_rate);
            break;
        case 'f':
            options->attr.error_feedback = 1;
            break;
        case 'n':
            options->attr.program = optarg;
            break;
        default:
            good = training_option(&options->training, name, optarg);
        }
    return good && optind == argc;
}

int main(int argc, char **argv)
{
    struct options options = {.training = TRAINING_DEFAULT, .shuffled = true, .attr = RONDO_ATTR_DEFAULT};
    if (!parse_options(argc, argv, &options))
        return usage();
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = RONDO_DEVICE_HOST; /* the gradients are host memory */
    const bool good = options.training.ranks ? run_threads(&options) : run_rank(&options, &config);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
