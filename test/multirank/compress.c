/*
 * Compressed collectives: every collective that compresses, every algorithm, rate and type, odd counts, in place. All ranks
 * must end with the same bits, and no result may be further off than the bound derived below. The test runs with ranks as
 * threads and as processes.
 */
#include "test/multirank/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum what { ALLREDUCE, REDUCE, REDUCE_SCATTER, ALLGATHER, ALLGATHERV, BCAST, ALLTOALL, ALLTOALLV, GATHER, SCATTER, WHATS };
static const char *const names[WHATS] = {
    "allreduce", "reduce", "reduce_scatter_block", "allgather", "allgatherv", "bcast", "alltoall", "alltoallv",
    "gather",    "scatter"};
enum { RANKS_MOST = 16, GUARD = 64 };

struct trial {
    struct rank *me;
    enum what what;
    rondo_datatype_t type;
    rondo_op_t op;
    size_t count;
    int rate, root, in_place, feedback;
    const char *algorithm;
    uint64_t seed;
    char text[200];
};

/* ---- values ---- */

static size_t bytes_of(rondo_datatype_t type)
{
    return type == RONDO_DOUBLE ? 8 : type == RONDO_FLOAT ? 4 : 2;
}

/* A value between -1 and 1 with 8 significant bits, which every type represents exactly. */
static double value(const struct trial *t, int rank, size_t index)
{
    uint64_t hash = ranks_hash(t->seed ^ (uint64_t) rank << 48 ^ index);
    return ((double) (hash % 511) - 255) / 256;
}

static void store(rondo_datatype_t type, void *memory, size_t i, double x)
{
    float single = (float) x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    uint32_t magnitude = bits & 0x7fffffff;
    uint16_t half = (uint16_t) (bits >> 16); /* bfloat16: exact for these values */
    if (type == RONDO_FLOAT16)
        half = (uint16_t) ((bits >> 16 & 0x8000) | (magnitude == 0 ? 0 : (magnitude - (112u << 23)) >> 13));
    if (type == RONDO_DOUBLE)
        ((double *) memory)[i] = x;
    else if (type == RONDO_FLOAT)
        ((float *) memory)[i] = single;
    else
        ((uint16_t *) memory)[i] = half;
}

static double load(rondo_datatype_t type, const void *memory, size_t i)
{
    if (type == RONDO_DOUBLE)
        return ((const double *) memory)[i];
    if (type == RONDO_FLOAT)
        return (double) ((const float *) memory)[i];
    uint32_t half = ((const uint16_t *) memory)[i], bits = half << 16;
    float single;
    memcpy(&single, &bits, sizeof(single));
    if (type == RONDO_BFLOAT16)
        return (double) single;
    int exponent = (int) (half >> 10 & 31), mantissa = (int) (half & 1023);
    double x = exponent == 0 ? ldexp(mantissa, -24) : exponent == 31 ? HUGE_VAL : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -x : x;
}

/* ---- the bound ----
 *
 * A block of values below 2^e holds, at rate r, the exponent in at most 12 bits (a float: 9), and then bit planes. Of a plane,
 * every coefficient takes at most one bit, each that shows its first bit one more, once, and "no more" takes the place of at
 * least one coefficient that is not told: p planes take at most 4 p + 4 bits. So at least p = (4 r - 16) / 4 = r - 4 planes are
 * there. The missing ones change a coefficient (negabinary, in units of 2^(e - 30)) by at most 2/3 of 2^(32 - p), and the
 * backward transform, whose rows are 1/4 of (4 6 4 1), makes of that at most 15/4 as much: an error of 10 * 2^(e - p). Rounding
 * in the transforms and to the type adds less than 2^(e - 20). (At rate 4 nothing of a value is certain, and the bound says
 * so.)
 *
 * What a reader has is off by that much, once; a partial sum of k ranks, each below 1 and encoded once more, is below k and
 * what it is off already, and adds its own. A ring encodes the sums of 1, 2, ... ranks one after the other: so many errors add
 * up. Recursive doubling adds two equally wrong halves and errors of their encoding. Both are at most what follows, in which
 * every rank's part of the result is encoded as often as the deepest. Averages are divided in the end. Minima and maxima are as
 * wrong as what was compared. A type's own rounding comes last. */
static double code_error(int rate, double magnitude)
{
    int exponent;
    frexp(magnitude, &exponent);
    return 10 * ldexp(1, exponent - (rate - 4)) + ldexp(1, exponent - 20);
}

static int reduces(const struct trial *t)
{
    return t->what <= REDUCE_SCATTER;
}

static double bound(const struct trial *t)
{
    int size = t->me->size, sums = t->op == RONDO_SUM || t->op == RONDO_AVG;
    double error = 0, largest = 1;
    if (size == 1)
        return 1e-12;
    if (!reduces(t)) {
        error = code_error(t->rate, 1);
    } else if (strcmp(t->algorithm, "recursive-doubling") == 0) {
        int held = 1;
        double pair = 0;
        if ((size & (size - 1)) != 0) { /* two ranks are merged into one at the start */
            pair = code_error(t->rate, 1);
            largest = sums ? 2 + pair : 1 + pair;
        }
        for (error = pair; 2 * held <= size; held *= 2) {
            error += code_error(t->rate, largest);
            error *= sums ? 2 : 1;
            largest = (sums ? 2 * largest : largest) + error;
        }
        error += code_error(t->rate, largest);
    } else {
        for (int k = 1; k <= size; k++)
            error += code_error(t->rate, (sums ? k : 1) + error);
        for (int k = 1; k < size && strcmp(t->algorithm, "ring-hop") == 0; k++)
            error += code_error(t->rate, (sums ? size : 1) + error);
    }
    double result = (sums ? size : 1) + error;
    if (t->op == RONDO_AVG && reduces(t) && t->rate > 4)
        error += code_error(t->rate, result); /* encoded after the division; the bound is that of encoding before it */
    if (bytes_of(t->type) == 2)               /* float16's 11 bits, bfloat16's 8 */
        error += ldexp(result, t->type == RONDO_FLOAT16 ? -11 : -8);
    return error * 1.0001 + 1e-6 * size;
}

static double expected(const struct trial *t, int to, size_t i)
{
    size_t count = t->count, from = i / (count == 0 ? 1 : count), within = count == 0 ? 0 : i % count;
    double result = 0;
    switch (t->what) {
    case ALLGATHER:
    case ALLGATHERV:
    case GATHER:
        return value(t, (int) from, within);
    case BCAST:
        return value(t, t->root, i);
    case ALLTOALL:
    case ALLTOALLV:
        return value(t, (int) from, (size_t) to * count + within);
    case SCATTER:
        return value(t, t->root, (size_t) to * count + i);
    default:
        break;
    }
    if (t->what == REDUCE_SCATTER)
        i += (size_t) to * count;
    for (int rank = 0; rank < t->me->size; rank++) {
        double x = value(t, rank, i);
        if (rank == 0)
            result = x;
        else if (t->op == RONDO_MIN)
            result = x < result ? x : result;
        else if (t->op == RONDO_MAX)
            result = x > result ? x : result;
        else
            result += x;
    }
    return t->op == RONDO_AVG ? result / t->me->size : result;
}

/* ---- the call ---- */

static rondo_result_t open_request(const struct trial *t, void *send, void *receive, rondo_request_t *request)
{
    size_t counts[RANKS_MOST], places[RANKS_MOST];
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_comm_t comm = t->me->world;
    size_t n = t->count;
    attr.compress_rate = t->rate;
    attr.program = *t->algorithm != '\0' ? t->algorithm : NULL;
    attr.error_feedback = t->feedback;
    for (int rank = 0; rank < t->me->size; rank++) {
        counts[rank] = n;
        places[rank] = (size_t) rank * n;
    }
    if (t->in_place)
        send = RONDO_IN_PLACE;
    switch (t->what) {
    case ALLREDUCE:
        return rondo_allreduce_init(send, receive, n, t->type, t->op, comm, &attr, request);
    case REDUCE:
        return rondo_reduce_init(t->in_place && t->me->rank != t->root ? receive : send, receive, n, t->type, t->op, t->root,
                                 comm, &attr, request);
    case REDUCE_SCATTER:
        return rondo_reduce_scatter_block_init(send, receive, n, t->type, t->op, comm, &attr, request);
    case ALLGATHER:
        return rondo_allgather_init(send, receive, n, t->type, comm, &attr, request);
    case ALLGATHERV:
        return rondo_allgatherv_init(send, n, receive, counts, places, t->type, comm, &attr, request);
    case BCAST:
        return rondo_bcast_init(receive, n, t->type, t->root, comm, &attr, request);
    case ALLTOALL:
        return rondo_alltoall_init(send, receive, n, t->type, comm, &attr, request);
    case ALLTOALLV:
        return rondo_alltoallv_init(send, counts, places, receive, counts, places, t->type, comm, &attr, request);
    case GATHER:
        return rondo_gather_init(send, receive, n, t->type, t->root, comm, &attr, request);
    default:
        return rondo_scatter_init(send, receive, n, t->type, t->root, comm, &attr, request);
    }
}

static size_t input_count(const struct trial *t)
{
    int all = t->what == REDUCE_SCATTER || t->what == ALLTOALL || t->what == ALLTOALLV || t->what == SCATTER;
    return t->count * (size_t) (all ? t->me->size : 1);
}

static size_t output_count(const struct trial *t)
{
    int here = t->me->rank == t->root;
    if ((t->what == REDUCE || t->what == GATHER) && !here)
        return 0;
    int all = t->what == ALLGATHER || t->what == ALLGATHERV || t->what == ALLTOALL || t->what == ALLTOALLV || t->what == GATHER;
    return t->count * (size_t) (all ? t->me->size : 1);
}

/* The offset of a rank's input in its output, in elements. */
static size_t place_in_output(const struct trial *t)
{
    return t->what == ALLGATHER || t->what == ALLGATHERV ? (size_t) t->me->rank * t->count : 0;
}

static void fill(const struct trial *t, void *memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        store(t->type, memory, i, value(t, t->me->rank, i));
}

/* Whether all ranks must end with the same bits. Algorithms that decode and encode again at every hop do not promise it. */
static int all_alike(const struct trial *t)
{
    return (t->what == ALLREDUCE || t->what == ALLGATHER || t->what == ALLGATHERV || t->what == BCAST) &&
           strcmp(t->algorithm, "ring-hop") != 0;
}

static void compare_ranks(const struct trial *t, const void *memory, size_t bytes)
{
    uint64_t hash = 1469598103934665603u, least, most;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *) memory)[i]) * 1099511628211u;
    uint64_t *words = ranks_allocate(3 * sizeof(uint64_t)), results[3] = {hash};
    ranks_put(words, results, sizeof(results));
    MUST(rondo_allreduce(words, words + 1, 1, RONDO_UINT64, RONDO_MIN, t->me->world));
    MUST(rondo_allreduce(words, words + 2, 1, RONDO_UINT64, RONDO_MAX, t->me->world));
    ranks_get(results, words, sizeof(results));
    ranks_release(words);
    least = results[1];
    most = results[2];
    CHECK(least == most, "%s: ranks do not hold the same bits", t->text);
}

static void compare_values(const struct trial *t, const void *memory, size_t count)
{
    double limit = bound(t), worst = 0, squares = 0;
    size_t at = 0, wrong = 0, first = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs(load(t->type, memory, i) - expected(t, t->me->rank, i));
        squares += difference * difference;
        if (!(difference <= worst)) {
            worst = difference;
            at = i;
        }
        if (!(difference <= limit)) {
            first = wrong++ == 0 ? i : first;
            last = i;
        }
    }
    CHECK(worst <= limit, "%s: element %zu is off by %g, more than %g (is %g); so are %zu from %zu to %zu", t->text, at, worst,
          limit, load(t->type, memory, at), wrong, first, last);
    /* The bound holds for the worst possible blocks. On the average a plane costs less, and errors partly cancel. */
    double typical = sqrt(squares / (double) (count + 1));
    CHECK(typical <= limit / 4 || t->me->size == 1 || count < 100, "%s: a typical element is off by %g, the worst could be %g",
          t->text, typical, limit);
}

static void run(struct trial *t)
{
    struct rank *me = t->me;
    size_t element = bytes_of(t->type), in = input_count(t), out = output_count(t);
    size_t area = (in > t->count * (size_t) me->size ? in : t->count * (size_t) me->size) * element + 2 * GUARD;
    char *send = malloc(area), *receive = malloc(area); /* copies of the device's memory */
    char *device_send = ranks_allocate(area), *device_receive = ranks_allocate(area);
    rondo_request_t request;
    if (send == NULL || receive == NULL)
        exit(1);
    snprintf(t->text, sizeof(t->text), "%s%s%s, %d ranks, rank %d, type %d, op %d, count %zu, rate %d, root %d%s%s",
             names[t->what], *t->algorithm != '\0' ? " by " : "", t->algorithm, me->size, me->rank, (int) t->type, (int) t->op,
             t->count, t->rate, t->root, t->in_place ? ", in place" : "", t->feedback ? ", fed back" : "");
    STEP("%s", t->text);
    memset(send, 0x5a, area);
    memset(receive, 0x5a, area);
    char *input = t->in_place ? receive + GUARD + place_in_output(t) * element : send + GUARD;
    ranks_put(device_receive, receive, area);
    MUST(open_request(t, device_send + GUARD, device_receive + GUARD, &request));
    for (int round = 0; round < 2; round++) {
        fill(t, t->what == BCAST ? receive + GUARD : input, in);
        ranks_put(device_send, send, area);
        ranks_put(device_receive, receive, area);
        MUST(rondo_start(request));
        MUST(rondo_wait(request));
        ranks_get(receive, device_receive, area);
        if (out > 0 && !(t->feedback && round > 0))
            compare_values(t, receive + GUARD, out);
        if (all_alike(t))
            compare_ranks(t, receive + GUARD, out * element);
    }
    size_t used = t->in_place && in > out ? in : out;
    for (size_t i = 0; i < GUARD; i++)
        CHECK(receive[i] == 0x5a && receive[GUARD + used * element + i] == 0x5a, "%s: byte %zu of a guard was written", t->text,
              i);
    MUST(rondo_request_free(&request));
    ranks_release(device_send);
    ranks_release(device_receive);
    free(send);
    free(receive);
}

/* ---- the trials ---- */

static long ranks = 4, seed = 1, rounds = 60, all_rates = 0, by_environment = 0;

static const rondo_datatype_t types[] = {RONDO_FLOAT, RONDO_DOUBLE, RONDO_FLOAT16, RONDO_BFLOAT16};
static const int most_rates[] = {32, 64, 16, 16};
static const rondo_op_t ops[] = {RONDO_SUM, RONDO_AVG, RONDO_MIN, RONDO_MAX};
static const char *const allreduces[] = {"", "ring", "recursive-doubling", "ring-hop"};
static const size_t counts[] = {1, 3, 17, 64, 255, 4099, 70001};

static struct trial draw(struct rank *me, uint64_t *state)
{
    struct trial t = {.me = me, .algorithm = "", .seed = ranks_random(state)};
    int type = ranks_below(state, 4);
    t.what = ranks_below(state, 2) ? ALLREDUCE : (enum what) ranks_below(state, WHATS);
    t.type = types[type];
    t.op = ops[ranks_below(state, 4)];
    t.count = counts[ranks_below(state, 7)];
    t.rate = 4 + ranks_below(state, most_rates[type] - 3);
    t.root = ranks_below(state, me->size);
    t.in_place = ranks_below(state, 2) && (t.what == ALLREDUCE || t.what == REDUCE || t.what == ALLGATHER ||
                                           t.what == REDUCE_SCATTER || t.what == ALLTOALL);
    if (t.what == ALLREDUCE)
        t.algorithm = allreduces[ranks_below(state, 4)];
    t.feedback = ranks_below(state, 3) == 0 && reduces(&t) && t.op <= RONDO_AVG && (t.op == RONDO_SUM || t.op == RONDO_AVG) &&
                 strcmp(t.algorithm, "ring-hop") != 0;
    return t;
}

static void every_rate(struct rank *me, uint64_t *state)
{
    for (int type = 0; type < 4; type++)
        for (int rate = 4; rate <= most_rates[type]; rate++) {
            struct trial t = draw(me, state);
            t.what = ALLREDUCE;
            t.op = RONDO_SUM;
            t.type = types[type];
            t.rate = rate;
            t.count = 5003;
            t.algorithm = allreduces[1 + rate % 2];
            run(&t);
        }
}

/* Adds up the results of many rounds. With error feedback the sum of the results approaches the sum of the inputs, relative to
 * the number of rounds. Without it each round's error remains. */
static void feedback_helps(struct rank *me, const char *algorithm)
{
    enum { COUNT = 4000, ROUNDS = 40 };
    double off[2] = {0, 0};
    float *send = malloc(COUNT * sizeof(float)), *receive = malloc(COUNT * sizeof(float));
    float *device_send = ranks_allocate(COUNT * sizeof(float)), *device_receive = ranks_allocate(COUNT * sizeof(float));
    double *sum = malloc(COUNT * sizeof(double));
    if (send == NULL || receive == NULL || sum == NULL)
        exit(1);
    for (int feedback = 0; feedback < 2; feedback++) {
        struct trial t = {.me = me,
                          .what = ALLREDUCE,
                          .type = RONDO_FLOAT,
                          .op = feedback ? RONDO_AVG : RONDO_SUM,
                          .count = COUNT,
                          .rate = 6,
                          .algorithm = algorithm,
                          .feedback = feedback,
                          .seed = 99};
        rondo_request_t request;
        t.op = RONDO_AVG;
        STEP("feedback %d by %s", feedback, algorithm);
        MUST(open_request(&t, device_send, device_receive, &request));
        memset(sum, 0, COUNT * sizeof(double));
        for (int round = 0; round < ROUNDS; round++) {
            fill(&t, send, COUNT);
            ranks_put(device_send, send, COUNT * sizeof(float));
            MUST(rondo_start(request));
            MUST(rondo_wait(request));
            ranks_get(receive, device_receive, COUNT * sizeof(float));
            for (size_t i = 0; i < COUNT; i++)
                sum[i] += (double) receive[i];
        }
        for (size_t i = 0; i < COUNT; i++) {
            double difference = sum[i] / ROUNDS - expected(&t, me->rank, i);
            off[feedback] += difference * difference;
        }
        MUST(rondo_request_free(&request));
    }
    /* The remaining error is that of one round out of ROUNDS. */
    CHECK(me->size == 1 || sqrt(off[1]) < sqrt(off[0]) * 4 / ROUNDS, "%s: off by %g with feedback, %g without", algorithm,
          sqrt(off[1] / COUNT), sqrt(off[0] / COUNT));
    ranks_release(device_send);
    ranks_release(device_receive);
    free(send);
    free(receive);
    free(sum);
}

/* The same for calls that are not persistent, which find what was lost by their buffers: three of them in turn, blocking, not
 * blocking, and in place. */
static void feedback_of_calls(struct rank *me)
{
    enum { COUNT = 4000, ROUNDS = 40, BUFFERS = 3 };
    const size_t bytes = COUNT * sizeof(float);
    double off[2][BUFFERS] = {{0}}, *sums = calloc(2 * BUFFERS * COUNT, sizeof(*sums));
    float *image = malloc(bytes), *send[BUFFERS], *receive[BUFFERS];
    if (sums == NULL || image == NULL)
        exit(1);
    for (int b = 0; b < BUFFERS; b++) {
        send[b] = ranks_allocate(bytes);
        receive[b] = ranks_allocate(bytes);
    }
    for (int feedback = 0; feedback < 2; feedback++) {
        rondo_compression_t compression = {.rate = 6, .error_feedback = feedback};
        MUST(rondo_comm_set_compression(me->world, &compression));
        for (int call = 0; call < ROUNDS * BUFFERS; call++) {
            const int b = call % BUFFERS, in_place = b == BUFFERS - 1;
            struct trial t = {.me = me, .type = RONDO_FLOAT, .op = RONDO_SUM, .count = COUNT, .seed = 30 + (uint64_t) b};
            double *sum = sums + (feedback * BUFFERS + b) * COUNT;
            rondo_request_t request;
            STEP("feedback %d of call %d", feedback, call);
            fill(&t, image, COUNT);
            ranks_put(in_place ? receive[b] : send[b], image, bytes);
            if (b == 1) {
                MUST(rondo_iallreduce(send[b], receive[b], COUNT, RONDO_FLOAT, RONDO_SUM, me->world, &request));
                MUST(rondo_wait(request));
            } else {
                MUST(
                    rondo_allreduce(in_place ? RONDO_IN_PLACE : send[b], receive[b], COUNT, RONDO_FLOAT, RONDO_SUM, me->world));
            }
            ranks_get(image, receive[b], bytes);
            for (size_t i = 0; i < COUNT; i++)
                sum[i] += (double) image[i];
            for (size_t i = 0; call >= (ROUNDS - 1) * BUFFERS && i < COUNT; i++) {
                double difference = sum[i] / ROUNDS - expected(&t, me->rank, i);
                off[feedback][b] += difference * difference;
            }
        }
    }
    for (int b = 0; b < BUFFERS; b++) {
        CHECK(me->size == 1 || sqrt(off[1][b]) < sqrt(off[0][b]) * 4 / ROUNDS,
              "calls with buffers %d: off by %g with feedback, %g without", b, sqrt(off[1][b] / COUNT),
              sqrt(off[0][b] / COUNT));
        ranks_release(send[b]);
        ranks_release(receive[b]);
    }
    MUST(rondo_comm_set_compression(me->world, NULL));
    free(image);
    free(sums);
}

/* More buffers than a communicator has residuals for: what was lost of the oldest is forgotten. */
static void feedback_of_many_buffers(struct rank *me)
{
    enum { COUNT = 64, BUFFERS = 300 };
    rondo_compression_t compression = {.rate = 12, .error_feedback = 1};
    float *send = ranks_allocate(BUFFERS * COUNT * sizeof(float)), *receive = ranks_allocate(BUFFERS * COUNT * sizeof(float));
    float image[COUNT];
    struct trial t = {.me = me, .type = RONDO_FLOAT, .op = RONDO_SUM, .count = COUNT, .rate = 11, .algorithm = "", .seed = 8};
    MUST(rondo_comm_set_compression(me->world, &compression));
    fill(&t, image, COUNT);
    for (int call = 0; call < 2 * BUFFERS; call++) {
        const size_t at = (size_t) (call % BUFFERS) * COUNT;
        STEP("feedback, buffers of call %d", call);
        ranks_put(send + at, image, sizeof(image));
        MUST(rondo_allreduce(send + at, receive + at, COUNT, RONDO_FLOAT, RONDO_SUM, me->world));
        float result[COUNT];
        ranks_get(result, receive + at, sizeof(result));
        compare_values(&t, result, COUNT); /* within twice the error of one call, which is that of one bit less */
    }
    MUST(rondo_comm_set_compression(me->world, NULL));
    ranks_release(send);
    ranks_release(receive);
}

/* Messages around a ring, of every type and some lengths: in a group, blocking, and persistent. */
static void messages(struct rank *me)
{
    enum { MOST = 70001, FORMS = 3 };
    static const size_t lengths[] = {1, 17, 4099, MOST};
    const int next = (me->rank + 1) % me->size, previous = (me->rank + me->size - 1) % me->size;
    char *image = malloc(MOST * sizeof(double)), *send = ranks_allocate(MOST * sizeof(double));
    char *receive = ranks_allocate(MOST * sizeof(double));
    rondo_compression_t compression = {.rate = 9};
    rondo_attr_t attr = {.compress_rate = 9};
    rondo_request_t requests[2];
    rondo_stats_t before, after;
    if (image == NULL)
        exit(1);
    for (int call = 0; call < 4 * 4 * FORMS && me->size > 1; call++) {
        const int form = call % FORMS;
        struct trial t = {.me = me,
                          .what = BCAST,
                          .type = types[call / FORMS % 4],
                          .count = lengths[call / FORMS / 4],
                          .rate = 9,
                          .root = previous,
                          .algorithm = "",
                          .seed = 70 + (uint64_t) call};
        const size_t bytes = t.count * bytes_of(t.type);
        snprintf(t.text, sizeof(t.text), "message %d of %zu elements of type %d from rank %d", call, t.count, (int) t.type,
                 previous);
        STEP("%s", t.text);
        for (size_t i = 0; i < t.count; i++)
            store(t.type, image, i, value(&t, me->rank, i));
        ranks_put(send, image, bytes);
        MUST(rondo_get_stats(me->runtime, &before));
        MUST(rondo_comm_set_compression(me->world, form == 2 ? NULL : &compression));
        if (form == 0) {
            MUST(rondo_group_start(me->world));
            MUST(rondo_send(send, t.count, t.type, next, me->world));
            MUST(rondo_recv(receive, t.count, t.type, previous, me->world));
            MUST(rondo_group_end(me->world));
        } else if (form == 1) {
            MUST(rondo_irecv(receive, t.count, t.type, previous, me->world, &requests[0]));
            MUST(rondo_send(send, t.count, t.type, next, me->world));
            MUST(rondo_wait(requests[0]));
        } else {
            MUST(rondo_recv_init(receive, t.count, t.type, previous, me->world, &attr, &requests[0]));
            MUST(rondo_send_init(send, t.count, t.type, next, me->world, &attr, &requests[1]));
            for (int i = 0; i < 2; i++)
                MUST(rondo_start(requests[i]));
            for (int i = 0; i < 2; i++)
                MUST(rondo_wait(requests[i]));
            for (int i = 0; i < 2; i++)
                MUST(rondo_request_free(&requests[i]));
        }
        MUST(rondo_get_stats(me->runtime, &after));
        ranks_get(image, receive, bytes);
        compare_values(&t, image, t.count);
        CHECK(t.count < MOST || after.bytes_saved - before.bytes_saved > bytes / 3, "%s: only %llu bytes of %zu saved", t.text,
              (unsigned long long) (after.bytes_saved - before.bytes_saved), bytes);
    }
    MUST(rondo_comm_set_compression(me->world, NULL));
    ranks_release(send);
    ranks_release(receive);
    free(image);
}

/* A communicator's compression: its smallest size, its inheritance by children, the calls that it does not apply to, and its
 * counters. */
static void communicator(struct rank *me)
{
    enum { COUNT = 40000 };
    static float send[RANKS_MOST][COUNT], receive[RANKS_MOST][COUNT];
    float *image = send[me->rank], *out = receive[me->rank];
    float *in = ranks_allocate(sizeof(send[0])), *device_out = ranks_allocate(sizeof(send[0]));
    struct trial t = {.me = me,
                      .what = ALLREDUCE,
                      .type = RONDO_FLOAT,
                      .op = RONDO_SUM,
                      .count = COUNT,
                      .rate = 8,
                      .algorithm = "ring",
                      .seed = 5};
    rondo_compression_t compression = {.rate = 8, .smallest = COUNT * sizeof(float)}, found;
    rondo_comm_t copy;
    rondo_stats_t before, after;
    MUST(rondo_comm_set_compression(me->world, &compression));
    MUST(rondo_comm_dup(me->world, &copy));
    MUST(rondo_comm_get_compression(copy, &found));
    CHECK(found.rate == 8 && found.smallest == compression.smallest, "a copy of the communicator has rate %d", found.rate);
    rondo_comm_t comms[2] = {me->world, copy};
    for (int c = 0; c < 2; c++) {
        fill(&t, image, COUNT);
        ranks_put(in, image, sizeof(send[0]));
        MUST(rondo_get_stats(me->runtime, &before));
        MUST(rondo_allreduce(in, device_out, COUNT, RONDO_FLOAT, RONDO_SUM, comms[c]));
        MUST(rondo_get_stats(me->runtime, &after));
        ranks_get(out, device_out, sizeof(receive[0]));
        compare_values(&t, out, COUNT);
        compare_ranks(&t, out, sizeof(send[0]));
        uint64_t sent = after.bytes_sent - before.bytes_sent, saved = after.bytes_saved - before.bytes_saved;
        CHECK(me->size == 1 ? saved == 0 : saved > 2 * sent && saved < 4 * sent, "%llu bytes sent, %llu saved at rate 8",
              (unsigned long long) sent, (unsigned long long) saved);
        /* One byte less is below the smallest size, and integer sums and products are not compressed: both results are
         * exact. */
        MUST(rondo_allreduce(in, device_out, COUNT - 1, RONDO_FLOAT, RONDO_SUM, comms[c]));
        ranks_get(out, device_out, sizeof(receive[0]));
        for (size_t i = 0; i < COUNT - 1; i++)
            if (fabs((double) out[i] - expected(&t, me->rank, i)) > 0) {
                CHECK(0, "a call below the smallest size was compressed");
                break;
            }
        MUST(rondo_get_stats(me->runtime, &before));
        MUST(rondo_allreduce(in, device_out, COUNT, RONDO_INT32, RONDO_SUM, comms[c]));
        MUST(rondo_allreduce(in, device_out, COUNT, RONDO_FLOAT, RONDO_PROD, comms[c]));
        MUST(rondo_get_stats(me->runtime, &after));
        CHECK(after.bytes_saved == before.bytes_saved, "what cannot be compressed was");
    }
    MUST(rondo_comm_set_compression(me->world, NULL));
    MUST(rondo_comm_free(&copy));
    ranks_release(in);
    ranks_release(device_out);
}

static uint64_t saved_on(struct rank *me, rondo_comm_t comm, float *memory)
{
    rondo_stats_t before, after;
    MUST(rondo_get_stats(me->runtime, &before));
    MUST(rondo_allreduce(RONDO_IN_PLACE, memory, 4096, RONDO_FLOAT, RONDO_SUM, comm));
    MUST(rondo_get_stats(me->runtime, &after));
    return after.bytes_saved - before.bytes_saved;
}

/* Says on which of the world, a copy of it and the ranks of this host the environment's compression applies. */
static void environment(struct rank *me)
{
    rondo_comm_t copy, host;
    float *memory = ranks_allocate(4096 * sizeof(float)), zeros[4096] = {0};
    ranks_put(memory, zeros, sizeof(zeros));
    MUST(rondo_comm_dup(me->world, &copy));
    MUST(rondo_comm_split(me->world, me->rank / 2, 0, &host)); /* two ranks a host */
    const uint64_t world_saved = saved_on(me, me->world, memory), copy_saved = saved_on(me, copy, memory);
    const uint64_t host_saved = saved_on(me, host, memory);
    if (me->rank == 0)
        printf("compressed:%s%s%s\n", world_saved > 0 ? " world" : "", copy_saved > 0 ? " copy" : "",
               host_saved > 0 ? " host" : "");
    MUST(rondo_comm_free(&host));
    MUST(rondo_comm_free(&copy));
    ranks_release(memory);
}

static void refusals(struct rank *me)
{
    float *send = ranks_allocate(256 * sizeof(float)), *receive = send + 128;
    rondo_request_t request = NULL;
    rondo_attr_t attr = RONDO_ATTR_DEFAULT;
    rondo_compression_t bad = {.rate = 3};
    rondo_comm_t world = me->world;
    attr.compress_rate = 3;
    EXPECT(RONDO_ERR_ARGUMENT, "3", rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_SUM, world, &attr, &request));
    attr.compress_rate = 33;
    EXPECT(RONDO_ERR_ARGUMENT, "33", rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_SUM, world, &attr, &request));
    attr.compress_rate = 65;
    EXPECT(RONDO_ERR_ARGUMENT, "65", rondo_allreduce_init(send, receive, 8, RONDO_DOUBLE, RONDO_SUM, world, &attr, &request));
    attr.compress_rate = 17;
    EXPECT(RONDO_ERR_ARGUMENT, "17", rondo_allreduce_init(send, receive, 8, RONDO_FLOAT16, RONDO_SUM, world, &attr, &request));
    attr.compress_rate = 8;
    EXPECT(RONDO_ERR_UNSUPPORTED, "int32",
           rondo_allreduce_init(send, receive, 8, RONDO_INT32, RONDO_SUM, world, &attr, &request));
    EXPECT(RONDO_ERR_UNSUPPORTED, "float8e4m3",
           rondo_allreduce_init(send, receive, 8, RONDO_FLOAT8E4M3, RONDO_SUM, world, &attr, &request));
    EXPECT(RONDO_ERR_UNSUPPORTED, "prod",
           rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_PROD, world, &attr, &request));
    EXPECT(RONDO_ERR_UNSUPPORTED, "land",
           rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_LAND, world, &attr, &request));
    EXPECT(RONDO_ERR_UNSUPPORTED, "scan", rondo_scan_init(send, receive, 8, RONDO_FLOAT, RONDO_SUM, world, &attr, &request));
    attr.error_feedback = 1;
    EXPECT(RONDO_ERR_UNSUPPORTED, "error_feedback",
           rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_MAX, world, &attr, &request));
    attr.compress_rate = 0;
    EXPECT(RONDO_ERR_ARGUMENT, "error_feedback",
           rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_SUM, world, &attr, &request));
    attr.compress_rate = 8;
    attr.error_feedback = 0;
    attr.program = "allpairs";
    if (me->size > 1)
        EXPECT(RONDO_ERR_UNSUPPORTED, "compress",
               rondo_allreduce_init(send, receive, 8, RONDO_FLOAT, RONDO_SUM, world, &attr, &request));
    EXPECT(RONDO_ERR_ARGUMENT, "3", rondo_comm_set_compression(world, &bad));
    CHECK(request == NULL, "a refused call made a request");
    ranks_release(send);
}

static void everything(struct rank *me)
{
    uint64_t state = (uint64_t) seed;
    refusals(me);
    communicator(me);
    feedback_helps(me, "ring");
    feedback_helps(me, "recursive-doubling");
    feedback_of_calls(me);
    feedback_of_many_buffers(me);
    if (ranks_device() == RONDO_DEVICE_HOST)
        messages(me);
    if (all_rates)
        every_rate(me, &state);
    for (long round = 0; round < rounds; round++) {
        struct trial t = draw(me, &state);
        run(&t);
    }
    rondo_stats_t stats;
    MUST(rondo_get_stats(me->runtime, &stats));
    if (me->rank == 0)
        printf("preemptions on rank 0: %llu\n", (unsigned long long) stats.preemptions);
}

int main(int argc, char **argv)
{
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads; 0: this process is one, as its environment says"},
        {"--seed", &seed, NULL, "of the trials"},
        {"--rounds", &rounds, NULL, "random trials"},
        {"--rates", &all_rates, NULL, "1: every rate of every type too"},
        {"--environment", &by_environment, NULL, "1: say which communicators are compressed, and nothing else"},
    };
    ranks_parse(argc, argv, options, 5);
    ranks_run((int) ranks, NULL, by_environment ? environment : everything, NULL);
    return ranks_finish("compress");
}
