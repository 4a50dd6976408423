/* Training that survives its ranks. A keeper, which is no rank, starts processes, kills some at random moments and starts
 * others in their place. Those that live undo what a death has spoiled, go on in a smaller job, and take new ones in as they
 * come. After each step all agree on whether it counts, so the network passes through the same steps as without a death.
 * README.md says how to run it. */
#include "digits.h"
#include "random.h"
#include "rondo.h"
#include "training.h"
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_RANKS = TRAINING_MOST_RANKS,
    STEPS_BETWEEN_ASKING = 5,
    MOST_SHRINKS = 100,
    MOST_WORDS = 16, /* before a rank's command */
    MOST_ARGUMENTS = 48,
    CHANNEL = 3 /* a rank's socket to the keeper */
};
static const double CONNECT_SECONDS = 5;

struct options {
    struct training training;
    int deaths, pause;                     /* pause: milliseconds between deaths, about */
    int hosts;                             /* on which ranks are started in turn */
    const char *through;                   /* words before a rank's command, with %d for its host's number; NULL: none */
    enum { KEEPER, FIRST, NEWCOMER } role; /* of this process; the keeper gives it to those that it starts */
};

/* Any failure that is not another rank's ends this process. */
#define CHECK(call) check(call, #call)
static void check(rondo_result_t result, const char *call)
{
    if (result != RONDO_SUCCESS) {
        fprintf(stderr, "elastic: %s: %s: %s\n", call, rondo_strerror(result), rondo_last_error());
        exit(EXIT_FAILURE);
    }
}

static void give_up(const char *why)
{
    fprintf(stderr, "elastic: %s\n", why);
    exit(EXIT_FAILURE);
}

/* ---- between the keeper and a rank: packets on a socket of their own ---- */

/* To a rank: its place in a job, and where that meets. To rank 0, which has asked: the size that the job is to have. */
struct place {
    rondo_unique_id_t id;
    int32_t rank, size;
};

/* From a rank. */
enum kind {
    ASKS,     /* rank 0 of a job of `size` ranks: may others join? */
    READY,    /* it has the network's state, in a job of `size` ranks */
    WAITS,    /* for a place: it has just begun, or could not join where it was to */
    FINISHED, /* with the network's hash, and the accuracy of the test */
};
struct note {
    int32_t kind, size;
    uint64_t hash;
    double accuracy, checksum;
};

/* ---- a rank ---- */

struct worker {
    const struct options *options;
    struct samples samples;
    struct network network;
    int *order; /* of the digits in this epoch */
    int32_t step;
    bool has_state;
    rondo_t runtime;
    rondo_comm_t world, comm; /* comm: the ranks of world that live */
    int rank, size;
    rondo_request_t sums[NETWORK_TENSORS];
};

static void tell(const struct worker *worker, struct note note)
{
    note.size = worker->size;
    if (send(CHANNEL, &note, sizeof note, MSG_NOSIGNAL) != (ssize_t) sizeof note)
        give_up("the keeper has gone");
}

/* False: the keeper needs this rank no more. */
static bool hear(struct place *place)
{
    return recv(CHANNEL, place, sizeof *place, 0) == (ssize_t) sizeof *place;
}

/* Tells whether all ranks that live were right. Where one was not, all leave the operations that it may have left them in. */
static bool all_right(struct worker *worker, bool right)
{
    int flag = right;
    if (!right)
        CHECK(rondo_comm_revoke(worker->comm));
    const rondo_result_t result = rondo_comm_agree(worker->comm, &flag);
    if (result != RONDO_ERR_PEER) /* a death that has spoiled nothing is met by the next operation */
        CHECK(result);
    return flag;
}

static void free_sums(struct worker *worker)
{
    for (int i = 0; i < NETWORK_TENSORS; i++)
        if (worker->sums[i])
            CHECK(rondo_request_free(&worker->sums[i]));
}

static bool make_sums(struct worker *worker)
{
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        const struct tensor *tensor = &worker->network.tensors[i];
        if (rondo_allreduce_init(RONDO_IN_PLACE, tensor->gradient, (size_t) tensor->count, RONDO_FLOAT, RONDO_SUM, worker->comm,
                                 NULL, &worker->sums[i]) != RONDO_SUCCESS)
            return false;
    }
    return true;
}

/* Rank 0, which has been here longest, gives the others what it has. *known: whether it has something. */
static bool share_state(struct worker *worker, bool *known)
{
    int32_t state[2] = {worker->step, worker->has_state};
    if (rondo_bcast(state, 2, RONDO_INT32, 0, worker->comm) != RONDO_SUCCESS)
        return false;
    *known = state[1];
    if (!*known)
        return true;
    worker->step = state[0];
    for (int i = 0; i < NETWORK_TENSORS; i++) {
        const struct tensor *tensor = &worker->network.tensors[i];
        if (rondo_bcast(tensor->value, (size_t) tensor->count, RONDO_FLOAT, 0, worker->comm) != RONDO_SUCCESS ||
            rondo_bcast(tensor->velocity, (size_t) tensor->count, RONDO_FLOAT, 0, worker->comm) != RONDO_SUCCESS)
            return false;
    }
    return true;
}

/* Goes on with another communicator. */
static void use(struct worker *worker, rondo_comm_t comm)
{
    if (worker->comm != worker->world)
        CHECK(rondo_comm_free(&worker->comm));
    worker->comm = comm;
    CHECK(rondo_comm_rank(comm, &worker->rank));
    CHECK(rondo_comm_size(comm, &worker->size));
}

/* Leaves out the ranks that have died. */
static void shrink(struct worker *worker)
{
    rondo_comm_t rest;
    free_sums(worker);
    CHECK(rondo_comm_shrink(worker->comm, NULL, RONDO_SHRINK_FAILED, &rest));
    use(worker, rest);
}

/* Returns when all ranks that live have the same state and requests for the sums. False: none that has a state is here. The job
 * was made of newcomers and of the ranks of another job, which have left this one, because one of them could not come. */
static bool settle(struct worker *worker)
{
    bool known = false;
    for (int shrinks = 0; !all_right(worker, make_sums(worker) && share_state(worker, &known)); shrinks++) {
        if (shrinks == MOST_SHRINKS)
            give_up("no end of deaths");
        shrink(worker);
    }
    worker->has_state = known;
    if (known)
        tell(worker, (struct note){.kind = READY});
    return known;
}

static void recover(struct worker *worker)
{
    shrink(worker);
    settle(worker); /* this rank has a state */
}

static bool enter(struct worker *worker, rondo_t runtime)
{
    rondo_comm_t world;
    CHECK(rondo_comm_world(runtime, &world));
    use(worker, world);
    worker->runtime = runtime;
    worker->world = world;
    return settle(worker);
}

/* Leaves the job. */
static void leave(struct worker *worker)
{
    free_sums(worker);
    CHECK(rondo_finalize(worker->runtime)); /* frees its communicators, too */
    worker->comm = worker->world = NULL;
}

static rondo_config_t configuration(void)
{
    rondo_config_t config = RONDO_CONFIG_DEFAULT;
    config.device = RONDO_DEVICE_HOST; /* the gradients are host memory */
    config.connect_timeout = CONNECT_SECONDS;
    return config;
}

/* Waits for a place in a job and takes it. False: none is needed. */
static bool join(struct worker *worker)
{
    for (;;) {
        struct place place;
        rondo_config_t config = configuration();
        rondo_t runtime;
        tell(worker, (struct note){.kind = WAITS});
        if (!hear(&place))
            return false;
        config.rank = place.rank;
        config.size = place.size;
        config.unique_id = &place.id;
        if (rondo_init(&runtime, &config) != RONDO_SUCCESS)
            continue; /* one that was to join with it has died */
        if (enter(worker, runtime))
            return true;
        leave(worker);
    }
}

/* Takes in those that wait. True: there are none, and all go on. False: the job is another one, whose ranks begin alike. */
static bool take_in(struct worker *worker)
{
    struct place place = {.size = worker->size};
    rondo_config_t config = configuration();
    rondo_t grown = NULL;
    if (worker->rank == 0) {
        tell(worker, (struct note){.kind = ASKS});
        if (!hear(&place))
            give_up("the keeper has gone");
    }
    bool right = rondo_bcast(&place.size, 1, RONDO_INT32, 0, worker->comm) == RONDO_SUCCESS;
    if (right && place.size > worker->size)
        right =
            rondo_comm_grow(worker->comm, place.size, worker->rank == 0 ? &place.id : NULL, &config, &grown) == RONDO_SUCCESS;
    if (!all_right(worker, right)) {
        if (grown)
            CHECK(rondo_finalize(grown));
        recover(worker);
        return false;
    }
    if (!grown)
        return true;
    leave(worker);
    enter(worker, grown);
    return false;
}

static int steps_of_epoch(const struct worker *worker)
{
    const int batch = worker->options->training.batch;
    return (worker->samples.train_count + batch - 1) / batch;
}

/* The digits of a step, which depend on its number alone. */
static const int *batch_of(struct worker *worker, int *count)
{
    const struct samples *samples = &worker->samples;
    const int steps = steps_of_epoch(worker), batch = worker->options->training.batch;
    const int first = worker->step % steps * batch, left = samples->train_count - first;
    uint64_t random = worker->options->training.seed + (uint64_t) (worker->step / steps);
    memcpy(worker->order, samples->train, (size_t) samples->train_count * sizeof *worker->order);
    random_shuffle(worker->order, samples->train_count, &random);
    *count = left < batch ? left : batch;
    return worker->order + first;
}

/* The gradients' sums may be spoiled by a death, the network is not: it is updated when all know that all sums are right. */
static void take_step(struct worker *worker)
{
    int count;
    bool right = true;
    struct network *network = &worker->network;
    const int *batch = batch_of(worker, &count);
    const int from = training_share(count, worker->rank, worker->size),
              to = training_share(count, worker->rank + 1, worker->size);
    network_forward(network, worker->samples.digits, batch + from, to - from);
    network_backward(network, worker->samples.digits, batch + from, 1.0f / (float) count);
    for (int i = NETWORK_TENSORS - 1; i >= 0; i--) {
        network_gradient(network, i);
        right = right && rondo_start(worker->sums[i]) == RONDO_SUCCESS;
    }
    if (!right)
        CHECK(rondo_comm_revoke(worker->comm)); /* the sums that were started end */
    right = rondo_waitall(NETWORK_TENSORS, worker->sums) == RONDO_SUCCESS && right;
    if (!all_right(worker, right)) {
        recover(worker);
        return;
    }
    training_update(network);
    worker->step++;
}

static void run_rank(const struct options *options)
{
    struct worker worker = {.options = options};
    if (!samples_read(options->training.data, &worker.samples))
        exit(EXIT_FAILURE);
    worker.order = malloc((size_t) worker.samples.train_count * sizeof *worker.order);
    if (!worker.order || !network_create(&worker.network, options->training.batch, options->training.seed))
        give_up("no memory for the network");
    worker.has_state = options->role == FIRST; /* they all make the same network */
    if (!join(&worker))
        return;
    while (worker.step < options->training.epochs * steps_of_epoch(&worker))
        if (worker.step % STEPS_BETWEEN_ASKING != 0 || take_in(&worker))
            take_step(&worker);
    int correct = 0;
    for (int i = 0; i < worker.samples.test_count; i++) {
        network_forward(&worker.network, worker.samples.digits, worker.samples.test + i, 1);
        correct += network_correct(&worker.network, worker.samples.digits, worker.samples.test + i);
    }
    tell(&worker, (struct note){.kind = FINISHED,
                                .hash = network_hash(&worker.network),
                                .checksum = network_checksum(&worker.network),
                                .accuracy = 100.0 * correct / worker.samples.test_count});
    leave(&worker);
    network_destroy(&worker.network);
    samples_free(&worker.samples);
    free(worker.order);
}

/* ---- the keeper ---- */

enum state { FREE, STARTED, WAITING, PLACED, SETTLED /* it has the network's state */, KILLED, DONE };
struct child {
    pid_t pid;
    int socket;
    enum state state;
};

struct keeper {
    const struct options *options;
    char **arguments;
    struct child children[2 * MOST_RANKS];
    int deaths, joins, finished; /* joins: places in a job that had begun before, less those that could not be taken */
    bool has_begun, failed;
    struct note result; /* of the first that has finished */
    uint64_t random;
    int64_t next_death, unanswered; /* unanswered: when a death came that the others have not recovered from; 0: none */
    int started;                    /* processes */
    int ready;                      /* ranks that have settled since the last death */
    int recoveries;
    int64_t *recovery; /* microseconds each */
};

static int64_t microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int count(const struct keeper *keeper, enum state state)
{
    int found = 0;
    for (int i = 0; i < 2 * MOST_RANKS; i++)
        found += keeper->children[i].state == state;
    return found;
}

/* Appends the words that start a command on the host to arguments, which has room for MOST_WORDS, and stores them in text.
 * Returns how many arguments there are then. */
static int say_host(const char *through, int host, char *text, size_t bytes, char **arguments)
{
    int given = 0;
    const char *number = through != NULL ? strstr(through, "%d") : NULL;
    if (through == NULL)
        return 0;
    if (number != NULL)
        snprintf(text, bytes, "%.*s%d%s", (int) (number - through), through, host, number + 2);
    else
        snprintf(text, bytes, "%s", through);
    for (char *rest = text, *word; given < MOST_WORDS && (word = strtok_r(rest, " ", &rest)) != NULL;)
        arguments[given++] = word;
    return given;
}

static void start(struct keeper *keeper, const char *role)
{
    extern char **environ;
    char *arguments[MOST_WORDS + MOST_ARGUMENTS], text[256], self[1024];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int pair[2],
        given = say_host(keeper->options->through, keeper->started++ % keeper->options->hosts, text, sizeof(text), arguments);
    self[length > 0 ? length : 0] = '\0';
    arguments[given++] = self;
    arguments[given++] = "--role";
    arguments[given++] = (char *) role;
    posix_spawn_file_actions_t actions;
    struct child *child = keeper->children;
    while (child->state != FREE)
        child++;
    for (int i = 1; keeper->arguments[i] && given < MOST_WORDS + MOST_ARGUMENTS - 1; i++)
        arguments[given++] = keeper->arguments[i];
    arguments[given] = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 || posix_spawn_file_actions_init(&actions) != 0)
        give_up(strerror(errno));
    posix_spawn_file_actions_adddup2(&actions, pair[1], CHANNEL);
    *child = (struct child){.socket = pair[0], .state = STARTED};
    const int error = posix_spawnp(&child->pid, arguments[0], &actions, NULL, arguments, environ);
    if (error != 0)
        give_up(strerror(error));
    posix_spawn_file_actions_destroy(&actions);
    close(pair[1]);
}

/* A rank that has died meanwhile does not hear it. */
static void answer(const struct child *child, const struct place *place)
{
    send(child->socket, place, sizeof *place, MSG_NOSIGNAL);
}

/* Gives all that wait a place from rank `first` on. Rank 0 of the old job, if there is one, learns the size. */
static void place_waiting(struct keeper *keeper, const struct child *asking, int first)
{
    struct place place = {.rank = first, .size = first + count(keeper, WAITING)};
    if (place.size > first)
        CHECK(rondo_get_unique_id(&place.id));
    if (asking)
        answer(asking, &place);
    for (int i = 0; i < 2 * MOST_RANKS; i++) {
        struct child *child = &keeper->children[i];
        if (child->state != WAITING)
            continue;
        answer(child, &place);
        child->state = PLACED;
        place.rank++;
        keeper->joins += first > 0;
    }
}

static void take_note(struct keeper *keeper, struct child *child, const struct note *note)
{
    switch ((enum kind) note->kind) {
    case ASKS:
        place_waiting(keeper, child, note->size);
        break;
    case READY:
        child->state = SETTLED;
        if (++keeper->ready >= note->size && keeper->unanswered != 0) {
            keeper->recovery[keeper->recoveries++] = microseconds() - keeper->unanswered;
            keeper->unanswered = 0;
        }
        break;
    case WAITS:
        keeper->joins -= keeper->has_begun && child->state == PLACED;
        child->state = WAITING;
        if (!keeper->has_begun && count(keeper, WAITING) == keeper->options->training.ranks) {
            place_waiting(keeper, NULL, 0);
            keeper->has_begun = true;
        }
        break;
    case FINISHED:
        child->state = DONE;
        if (keeper->finished++ == 0)
            keeper->result = *note;
        if (note->hash != keeper->result.hash) {
            fprintf(stderr, "elastic: two ranks end with different networks\n");
            keeper->failed = true;
        }
    }
}

static void take_exit(struct keeper *keeper, struct child *child)
{
    int status;
    if (waitpid(child->pid, &status, 0) != child->pid)
        give_up(strerror(errno));
    const bool killed = child->state == KILLED;
    child->state = FREE;
    if (killed) {
        if (keeper->finished == 0)
            start(keeper, "newcomer");
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "elastic: a rank that was not killed has failed: status %#x\n", (unsigned) status);
        keeper->failed = true;
    }
}

/* Kills a process at random, in whatever it does; not the last that has the network's state. */
static void kill_one(struct keeper *keeper)
{
    const int settled = count(keeper, SETTLED);
    const int victims = count(keeper, STARTED) + count(keeper, WAITING) + count(keeper, PLACED) + (settled > 1 ? settled : 0);
    if (victims == 0 || settled == 0)
        return;
    int which = (int) (random_next(&keeper->random) % (uint64_t) victims);
    for (int i = 0; i < 2 * MOST_RANKS; i++) {
        struct child *child = &keeper->children[i];
        if (child->state == FREE || child->state == KILLED || child->state == DONE ||
            (child->state == SETTLED && settled == 1) || which-- > 0)
            continue;
        if (child->state == SETTLED && keeper->unanswered == 0)
            keeper->unanswered = microseconds();
        keeper->ready = 0;
        keeper->deaths++;
        child->state = KILLED;
        kill(child->pid, SIGKILL);
        return;
    }
}

/* Of one that was killed, what it still has said does not count. */
static void listen_to(struct keeper *keeper, struct child *child)
{
    struct note note;
    if (recv(child->socket, &note, sizeof note, 0) == (ssize_t) sizeof note) {
        if (child->state != KILLED)
            take_note(keeper, child, &note);
        return;
    }
    close(child->socket);
    take_exit(keeper, child);
}

static void serve(struct keeper *keeper)
{
    struct pollfd sockets[2 * MOST_RANKS];
    const bool kills = keeper->deaths < keeper->options->deaths && keeper->finished == 0;
    const int64_t left = keeper->next_death - microseconds();
    for (int i = 0; i < 2 * MOST_RANKS; i++) {
        const enum state state = keeper->children[i].state;
        if (keeper->finished > 0 && (state == STARTED || state == WAITING))
            shutdown(keeper->children[i].socket, SHUT_WR); /* it hears that it is not needed */
        sockets[i] = (struct pollfd){state == FREE ? -1 : keeper->children[i].socket, POLLIN, 0};
    }
    if (poll(sockets, 2 * MOST_RANKS, !kills ? -1 : left < 0 ? 0 : (int) (left / 1000) + 1) < 0 && errno != EINTR)
        give_up(strerror(errno));
    for (int i = 0; i < 2 * MOST_RANKS; i++)
        if (sockets[i].fd >= 0 && sockets[i].revents != 0)
            listen_to(keeper, &keeper->children[i]);
    if (kills && microseconds() >= keeper->next_death) {
        const int64_t pause = keeper->options->pause * 1000;
        keeper->next_death = microseconds() + pause / 2 + (int64_t) (random_next(&keeper->random) % (uint64_t) (pause + 1));
        kill_one(keeper);
    }
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *) a, y = *(const int64_t *) b;
    return x < y ? -1 : x > y;
}

static bool keep(const struct options *options, char **arguments)
{
    struct keeper keeper = {.options = options, .arguments = arguments, .random = options->training.seed};
    keeper.recovery = malloc(((size_t) options->deaths + 1) * sizeof *keeper.recovery);
    if (!keeper.recovery)
        give_up("no memory");
    for (int rank = 0; rank < options->training.ranks; rank++)
        start(&keeper, "first");
    keeper.next_death = microseconds() + options->pause * 1000;
    while (!keeper.failed && count(&keeper, FREE) < 2 * MOST_RANKS)
        serve(&keeper);
    for (int i = 0; i < 2 * MOST_RANKS; i++)
        if (keeper.children[i].state != FREE)
            kill(keeper.children[i].pid, SIGKILL);
    qsort(keeper.recovery, (size_t) keeper.recoveries, sizeof *keeper.recovery, by_size);
    printf("%d epochs in jobs of up to %d ranks: %d deaths, %d joins\n", options->training.epochs, options->training.ranks,
           keeper.deaths, keeper.joins);
    if (keeper.recoveries > 0)
        printf("recovery: median %.1f ms, worst %.1f ms\n", (double) keeper.recovery[keeper.recoveries / 2] / 1000,
               (double) keeper.recovery[keeper.recoveries - 1] / 1000);
    if (!keeper.failed && keeper.finished > 0)
        printf("test accuracy %.2f %%, checksum %.6f, the same bits on %d ranks\n", keeper.result.accuracy,
               keeper.result.checksum, keeper.finished);
    free(keeper.recovery);
    return !keeper.failed && keeper.finished > 0 && keeper.result.accuracy >= options->training.required_accuracy;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: elastic [options]\n" TRAINING_USAGE "  --ranks N             processes, up to %d (4)\n"
            "  --deaths N            ranks that are killed, if the training takes as long (10)\n"
            "  --pause MS            between deaths, about (80)\n"
            "  --seed N              of the network, the order of digits, and the deaths (1)\n"
            "  --through WORDS       before a rank's command, such as 'ip netns exec host%%d': %%d is the number of its host\n"
            "  --hosts N             so many, from 0 on; ranks are started on them in turn (1)\n",
            MOST_RANKS);
    return 2;
}

static bool parse_options(int argc, char **argv, struct options *options)
{
    static const struct option names[] = {
        TRAINING_OPTIONS,
        {"deaths", required_argument, NULL, 'k'},
        {"pause", required_argument, NULL, 'p'},
        {"role", required_argument, NULL, 'o'},
        {"through", required_argument, NULL, 't'},
        {"hosts", required_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int name;
    while (good && (name = getopt_long(argc, argv, "", names, NULL)) != -1)
        switch (name) {
        case 'k':
            good = training_number(optarg, 0, 1000000, &options->deaths);
            break;
        case 'p':
            good = training_number(optarg, 1, 1000000, &options->pause);
            break;
        case 'o':
            options->role = strcmp(optarg, "first") == 0 ? FIRST : NEWCOMER;
            break;
        case 't':
            options->through = optarg;
            break;
        case 'h':
            good = training_number(optarg, 1, 1000, &options->hosts);
            break;
        default:
            good = training_option(&options->training, name, optarg);
        }
    return good && optind == argc && options->training.epochs > 0;
}

int main(int argc, char **argv)
{
    struct options options = {.training = TRAINING_DEFAULT, .deaths = 10, .pause = 80, .hosts = 1};
    options.training.ranks = 4;
    if (!parse_options(argc, argv, &options))
        return usage();
    if (options.role == KEEPER)
        return keep(&options, argv) ? EXIT_SUCCESS : EXIT_FAILURE;
    run_rank(&options);
    return EXIT_SUCCESS;
}
