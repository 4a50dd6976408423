/*
 * Operators and types of the user, against results that every rank computes by itself: 2x2 matrices modulo 2^32 and
 * concatenated digits, which are not commutative, and sums, which are, of elements of many sizes; by every collective that
 * reduces, in every form, on a communicator and on two parts of it; several at once, preempted, persistent, and freed early.
 */
#include "test/multirank/ranks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum collective { ALLREDUCE, REDUCE, REDUCE_SCATTER_BLOCK, SCAN, EXSCAN, COLLECTIVES };
static const char *const collective_names[COLLECTIVES] = {"allreduce", "reduce", "reduce_scatter_block", "scan", "exscan"};
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };

/* An element of so many bytes is an array of words of its own kind. */
enum kind { MATRIX, TEXT, SUMS, KINDS };
struct kind_of_element {
    const char *name;
    size_t bytes;
    int commutative;
};
struct argument {
    enum kind kind;
    size_t bytes;
    _Atomic long calls, elements;
};

static long rounds = 40, seed = 1, most_bytes = 16384;

/* ---- the operators ---- */

static void multiply(const uint32_t *a, uint32_t *b)
{
    uint32_t product[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                           a[2] * b[1] + a[3] * b[3]};
    memcpy(b, product, sizeof(product));
}

/* A text begins with its length; what does not fit is dropped on the right, so that the longest beginning stays. */
static void concatenate(const unsigned char *a, unsigned char *b, size_t bytes)
{
    size_t room = bytes < 256 ? bytes - 1 : 255, left = a[0], right = b[0];
    if (right > room - left)
        right = room - left;
    memmove(b + 1 + left, b + 1, right);
    memcpy(b + 1, a + 1, left);
    b[0] = (unsigned char) (left + right);
    memset(b + 1 + b[0], 0, bytes - 1 - b[0]);
}

static void combine(enum kind kind, size_t bytes, const unsigned char *a, unsigned char *b)
{
    if (kind == MATRIX)
        multiply((const uint32_t *) (const void *) a, (uint32_t *) (void *) b);
    else if (kind == TEXT)
        concatenate(a, b, bytes);
    else
        for (size_t i = 0; i < bytes; i++)
            b[i] = (unsigned char) (a[i] + b[i]);
}

static void operator_function(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument)
{
    struct argument *given = argument;
    const unsigned char *from = in;
    unsigned char *to = inout;
    size_t bytes = 0;
    rondo_result_t result = rondo_datatype_size(type, &bytes);
    if (result != RONDO_SUCCESS || bytes != given->bytes || count == 0 ||
        (bytes % 16 == 0 && ((uintptr_t) in % 16 != 0 || (uintptr_t) inout % 16 != 0)))
        ranks_fail(__FILE__, __LINE__, "the operator's arguments", "%zu elements of %zu bytes, not %zu, at %p and %p", count,
                   bytes, given->bytes, in, inout);
    for (size_t i = 0; i < count; i++)
        combine(given->kind, bytes, from + i * bytes, to + i * bytes);
    atomic_fetch_add_explicit(&given->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&given->elements, (long) count, memory_order_relaxed);
}

/* ---- trials ---- */

struct trial {
    enum collective what;
    enum kind kind;
    size_t bytes, count, input_count;
    int root, in_place, builtin_type;
    uint64_t seed;
    rondo_comm_t comm;
    int rank, size;
    rondo_datatype_t type;
    rondo_op_t op;
    struct argument argument;
    unsigned char *send, *recv;
    rondo_request_t request;
};

static void input(const struct trial *t, int rank, size_t index, unsigned char *element)
{
    uint64_t state = ranks_hash(t->seed ^ ranks_hash((uint64_t) rank << 32 | index));
    if (t->kind == TEXT) {
        size_t most = t->bytes - 1 < 28 ? t->bytes - 1 : 28;
        memset(element, 0, t->bytes);
        element[0] =
            (unsigned char) ((size_t) ranks_below(&state, 4) < most ? ranks_below(&state, 4) % ((int) most + 1) : (int) most);
        for (int i = 0; i < element[0]; i++)
            element[1 + i] = (unsigned char) ('0' + ranks_below(&state, 60) + rank);
        return;
    }
    for (size_t i = 0; i < t->bytes; i++)
        element[i] = (unsigned char) (ranks_random(&state) >> 20);
}

/* a0 op a1 op ... of ranks first to last, from left to right. */
static void expected(const struct trial *t, int first, int last, size_t index, unsigned char *result)
{
    unsigned char *right = malloc(t->bytes);
    input(t, first, index, result);
    for (int rank = first + 1; rank <= last; rank++) {
        input(t, rank, index, right);
        combine(t->kind, t->bytes, result, right);
        memcpy(result, right, t->bytes);
    }
    free(right);
}

static void prepare(struct trial *t, uint64_t *plan)
{
    static const size_t sizes[] = {1, 2, 3, 4, 7, 8, 12, 16, 24, 33, 64, 100, 255, 1000, 4096, 5000, 16384};
    MUST(rondo_comm_rank(t->comm, &t->rank));
    MUST(rondo_comm_size(t->comm, &t->size));
    t->seed = ranks_random(plan);
    t->what = (enum collective) ranks_below(plan, COLLECTIVES);
    t->kind = (enum kind) ranks_below(plan, KINDS);
    t->bytes = sizes[ranks_below(plan, (int) (sizeof(sizes) / sizeof(sizes[0])))];
    if (t->bytes > (size_t) most_bytes)
        t->bytes = (size_t) most_bytes;
    if (t->kind == MATRIX)
        t->bytes = 16;
    if (t->kind == TEXT && t->bytes < 3)
        t->bytes = 3;
    static const size_t counts[] = {1, 2, 3, 5, 17, 64, 100, 257, 1000, 9000};
    t->count = counts[ranks_below(plan, 10)];
    while (t->count > 1 && t->count * t->bytes * (size_t) t->size > (size_t) 1 << 20)
        t->count /= 4;
    t->root = ranks_below(plan, t->size);
    t->in_place = ranks_below(plan, 2);
    t->builtin_type = t->kind == SUMS && t->bytes == 8 && ranks_below(plan, 2);
    memset(&t->argument, 0, sizeof(t->argument));
    t->argument.kind = t->kind;
    t->argument.bytes = t->bytes;
    t->type = RONDO_INT64;
    if (!t->builtin_type)
        MUST(rondo_type_create(t->bytes, &t->type));
    MUST(rondo_op_create_with(operator_function, &t->argument, t->kind == SUMS, &t->op));
    t->input_count = t->what == REDUCE_SCATTER_BLOCK ? t->count * (size_t) t->size : t->count;
    t->send = aligned_alloc(64, (t->input_count * t->bytes + 127) / 64 * 64);
    t->recv = aligned_alloc(64, (t->input_count * t->bytes + 127) / 64 * 64);
}

static void fill(struct trial *t)
{
    const int in_place = t->in_place && (t->what != REDUCE || t->rank == t->root);
    unsigned char *to = in_place ? t->recv : t->send;
    memset(t->send, 0xa5, t->input_count * t->bytes);
    memset(t->recv, 0x5a, t->input_count * t->bytes);
    for (size_t i = 0; i < t->input_count; i++)
        input(t, t->rank, i, to + i * t->bytes);
}

static rondo_result_t call(struct trial *t, enum form form)
{
    const void *send = t->in_place && (t->what != REDUCE || t->rank == t->root) ? RONDO_IN_PLACE : t->send;
#define IN_FORM(name, ...)                                                                                                     \
    (form == BLOCKING      ? rondo_##name(__VA_ARGS__)                                                                         \
     : form == NONBLOCKING ? rondo_i##name(__VA_ARGS__, &t->request)                                                           \
                           : rondo_##name##_init(__VA_ARGS__, NULL, &t->request))
    switch (t->what) {
    case ALLREDUCE:
        return IN_FORM(allreduce, send, t->recv, t->count, t->type, t->op, t->comm);
    case REDUCE:
        return IN_FORM(reduce, send, t->recv, t->count, t->type, t->op, t->root, t->comm);
    case REDUCE_SCATTER_BLOCK:
        return IN_FORM(reduce_scatter_block, send, t->recv, t->count, t->type, t->op, t->comm);
    case SCAN:
        return IN_FORM(scan, send, t->recv, t->count, t->type, t->op, t->comm);
    default:
        return IN_FORM(exscan, send, t->recv, t->count, t->type, t->op, t->comm);
    }
#undef IN_FORM
}

static void verify(const struct trial *t, const char *how)
{
    int first = 0, last = t->size - 1;
    size_t base = t->what == REDUCE_SCATTER_BLOCK ? (size_t) t->rank * t->count : 0, wrong = 0;
    unsigned char *wanted = malloc(t->bytes);
    if (t->what == SCAN || t->what == EXSCAN)
        last = t->what == SCAN ? t->rank : t->rank - 1;
    if ((t->what == REDUCE && t->rank != t->root) || last < 0) {
        free(wanted);
        return;
    }
    for (size_t i = 0; i < t->count; i++) {
        expected(t, first, last, base + i, wanted);
        wrong += memcmp(wanted, t->recv + i * t->bytes, t->bytes) != 0;
    }
    CHECK(wrong == 0, "%s %s of %zu elements of %zu bytes, kind %d, root %d, in place %d, rank %d of %d: %zu wrong", how,
          collective_names[t->what], t->count, t->bytes, t->kind, t->root, t->in_place, t->rank, t->size, wrong);
    free(wanted);
}

static void release(struct trial *t)
{
    if (t->op != RONDO_OP_NONE)
        MUST(rondo_op_free(&t->op));
    if (!t->builtin_type && t->type != RONDO_DATATYPE_NONE)
        MUST(rondo_type_free(&t->type));
    free(t->send);
    free(t->recv);
}

/* One after the other, in all forms; the operator is freed while a nonblocking operation runs, and between starts. */
static void one_by_one(rondo_comm_t comm, uint64_t *plan)
{
    struct trial t = {.comm = comm};
    prepare(&t, plan);
    enum form form = (enum form) ranks_below(plan, FORMS);
    int early = ranks_below(plan, 2);
    STEP("%s %zu elements of %zu bytes, kind %d, form %d", collective_names[t.what], t.count, t.bytes, t.kind, form);
    fill(&t);
    MUST(call(&t, form));
    if (form == PERSISTENT)
        MUST(rondo_start(t.request));
    if (early && form != BLOCKING)
        MUST(rondo_op_free(&t.op));
    if (form != BLOCKING)
        MUST(rondo_wait(t.request));
    verify(&t, "first");
    for (int again = 0; form == PERSISTENT && again < 2; again++) {
        t.seed++;
        fill(&t);
        MUST(rondo_start(t.request));
        MUST(rondo_wait(t.request));
        verify(&t, "again");
    }
    if (form == PERSISTENT)
        MUST(rondo_request_free(&t.request));
    release(&t);
}

/* Several persistent operations at once, started in another order on each rank, so that they are preempted. */
static void at_once(rondo_comm_t comm, uint64_t *plan)
{
    enum { SEVERAL = 6 };
    struct trial t[SEVERAL];
    int order[SEVERAL];
    memset(t, 0, sizeof(t));
    for (int i = 0; i < SEVERAL; i++) {
        t[i].comm = comm;
        prepare(&t[i], plan);
        MUST(call(&t[i], PERSISTENT));
        order[i] = i;
    }
    uint64_t own = ranks_hash(*plan + (uint64_t) t[0].rank);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SEVERAL; i++) {
            int other = ranks_below(&own, SEVERAL), first = order[i];
            order[i] = order[other];
            order[other] = first;
            t[i].seed += (uint64_t) round;
            fill(&t[i]);
        }
        for (int i = 0; i < SEVERAL; i++)
            MUST(rondo_start(t[order[i]].request));
        if (round == 0)
            for (int i = 0; i < SEVERAL; i += 2)
                MUST(rondo_op_free(&t[i].op));
        for (int i = 0; i < SEVERAL; i++)
            MUST(rondo_wait(t[order[SEVERAL - 1 - i]].request));
        for (int i = 0; i < SEVERAL; i++)
            verify(&t[i], "at once");
    }
    for (int i = 0; i < SEVERAL; i++) {
        MUST(rondo_request_free(&t[i].request));
        release(&t[i]);
    }
}

/* ---- what is refused ---- */

static void unused(const void *in, void *inout, size_t count, rondo_datatype_t type, void *argument)
{
    (void) in, (void) inout, (void) count, (void) type, (void) argument;
}

static void refusals(struct rank *me)
{
    rondo_op_t op = RONDO_SUM, copy, other;
    rondo_datatype_t type, large;
    int commutative = -1;
    size_t bytes = 0;
    char buffer[64], result[64];
    EXPECT(RONDO_ERR_ARGUMENT, "function is NULL", rondo_op_create(NULL, 1, &op));
    CHECK(op == RONDO_OP_NONE, "the operator is %d", (int) op);
    EXPECT(RONDO_ERR_ARGUMENT, "op is NULL", rondo_op_create(unused, 1, NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "2", rondo_op_create(unused, 2, &op));
    op = RONDO_SUM;
    EXPECT(RONDO_ERR_ARGUMENT, "built in", rondo_op_free(&op));
    EXPECT(RONDO_ERR_ARGUMENT, "op is NULL", rondo_op_free(NULL));
    EXPECT(RONDO_ERR_ARGUMENT, "0 bytes", rondo_type_create(0, &type));
    EXPECT(RONDO_ERR_ARGUMENT, "bytes", rondo_type_create((size_t) 1 << 40, &type));
    CHECK(type == RONDO_DATATYPE_NONE, "the type is %d", (int) type);
    type = RONDO_FLOAT;
    EXPECT(RONDO_ERR_ARGUMENT, "float", rondo_type_free(&type));
    MUST(rondo_type_create(24, &type));
    MUST(rondo_datatype_size(type, &bytes));
    CHECK(bytes == 24, "%zu bytes", bytes);
    EXPECT(RONDO_ERR_ARGUMENT, "not defined", rondo_allreduce(buffer, result, 1, type, RONDO_SUM, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "not defined", rondo_allreduce(buffer, result, 1, type, RONDO_BXOR, me->world));
    MUST(rondo_op_create(unused, 0, &op));
    MUST(rondo_op_commutative(op, &commutative));
    CHECK(commutative == 0, "commutative is %d", commutative);
    MUST(rondo_op_commutative(RONDO_MINLOC, &commutative));
    CHECK(commutative == 1, "commutative is %d", commutative);
    copy = op;
    MUST(rondo_type_create(RONDO_COMBINED_BYTES_MAX + 1, &large));
    char *space = calloc(2, RONDO_COMBINED_BYTES_MAX + 1);
    EXPECT(RONDO_ERR_UNSUPPORTED, "16385 bytes",
           rondo_allreduce(space, space + RONDO_COMBINED_BYTES_MAX + 1, 1, large, op, me->world));
    MUST(rondo_bcast(space, 2, large, 0, me->world)); /* but it can be moved */
    free(space);
    MUST(rondo_allreduce(buffer, result, 2, type, op, me->world));
    MUST(rondo_op_free(&op));
    CHECK(op == RONDO_OP_NONE, "the freed operator is %d", (int) op);
    EXPECT(RONDO_ERR_ARGUMENT, "freed", rondo_op_free(&copy));
    EXPECT(RONDO_ERR_ARGUMENT, "freed", rondo_op_commutative(copy, &commutative));
    EXPECT(RONDO_ERR_ARGUMENT, "freed", rondo_allreduce(buffer, result, 2, type, copy, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "freed", rondo_scan(buffer, result, 2, RONDO_FLOAT, copy, me->world));
    /* A place is taken again, and the old number stands for nothing all the same. */
    for (int i = 0; i < 1000; i++) {
        MUST(rondo_op_create(unused, 0, &other));
        CHECK(other != copy, "operator %#x again", (unsigned) other);
        MUST(rondo_op_free(&other));
    }
    EXPECT(RONDO_ERR_ARGUMENT, "unknown datatype", rondo_bcast(buffer, 1, RONDO_DATATYPE_NONE, 0, me->world));
    EXPECT(RONDO_ERR_ARGUMENT, "unknown operator", rondo_scan(buffer, result, 1, RONDO_FLOAT, RONDO_OP_NONE, me->world));
    MUST(rondo_barrier(me->world));
}

static void body(struct rank *me)
{
    uint64_t plan = ranks_hash((uint64_t) seed);
    rondo_comm_t half;
    refusals(me);
    MUST(rondo_comm_split(me->world, me->rank % 2, -me->rank, &half));
    uint64_t half_plan = ranks_hash((uint64_t) seed + 77 + (uint64_t) (me->rank % 2));
    for (long round = 0; round < rounds; round++) {
        one_by_one(me->world, &plan);
        one_by_one(half, &half_plan);
        if (round % 8 == 0)
            at_once(me->world, &plan);
    }
    MUST(rondo_barrier(me->world));
    MUST(rondo_comm_free(&half));
}

int main(int argc, char **argv)
{
    long ranks = 0;
    const struct ranks_option options[] = {
        {"--ranks", &ranks, NULL, "ranks as threads of this process; 0: from the environment"},
        {"--rounds", &rounds, NULL, "rounds of trials"},
        {"--seed", &seed, NULL, "of the trials"},
        {"--bytes", &most_bytes, NULL, "of the largest element"}};
    ranks_parse(argc, argv, options, (int) (sizeof(options) / sizeof(options[0])));
    ranks_run((int) ranks, NULL, body, NULL);
    return ranks_finish("user_operators");
}
