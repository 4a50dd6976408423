/* Programs: the language's errors, the compiler's and checker's promises on all built-in algorithms, mutations, XML, budgets.
 */
#include "error.h"
#include "plans.h"
#include "reference_ring.h"
#include "program/program.h"
#include "program/trace.h"
#include "rondo_program.h"
#include "topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

#define assert_says(result, code, words)                                                                                       \
    do {                                                                                                                       \
        rondo_result_t says_ = (result);                                                                                       \
        if (says_ != (code) || strstr(rondo_last_error(), words) == NULL)                                                      \
            fail_msg("%d: \"%s\", not %d with \"%s\"", (int) says_, rondo_last_error(), (int) (code), words);                  \
    } while (0)

#define assert_right(result)                                                                                                   \
    do {                                                                                                                       \
        if ((result) != RONDO_SUCCESS)                                                                                         \
            fail_msg("%s", rondo_last_error());                                                                                \
    } while (0)

static rondo_program_t make(const char *collective, int ranks, int chunks, int in_place)
{
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t program;
    signature.name = "test", signature.collective = collective, signature.ranks = ranks, signature.chunks = chunks;
    signature.in_place = in_place;
    assert_right(rondo_program_create(&program, &signature));
    return program;
}

/* ---- the language ---- */

static rondo_chunk_t in(rondo_program_t p, int rank, size_t index)
{
    return rondo_chunk(p, rank, RONDO_BUFFER_INPUT, index, 1);
}

static void expect_wrong(rondo_program_t p, const char *words)
{
    assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, words);
    rondo_program_destroy(p);
}

static void test_errors(void **state)
{
    (void) state;
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    signature.name = "a b";
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "name");
    signature.name = "ab", signature.collective = "allsum";
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "allsum");
    signature.collective = "allreduce";
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "0 ranks");
    signature.ranks = 3, signature.root = 3;
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "root 3");
    signature.root = 0, signature.collective = "alltonext", signature.in_place = 1;
    assert_says(rondo_program_create(&p, &signature), RONDO_ERR_ARGUMENT, "in-place");

    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 2, RONDO_BUFFER_INPUT, 0, 1);
    expect_wrong(p, "rank 2 is not in [0, 2)");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 0, RONDO_BUFFER_INPUT, 0, 2);
    expect_wrong(p, "operation 1");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 1, RONDO_BUFFER_OUTPUT, 0, 1);
    expect_wrong(p, "chunk 0 of rank 1's output is uninitialized");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 1, RONDO_BUFFER_SCRATCH, 5, 1);
    expect_wrong(p, "uninitialized");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk_t old = in(p, 0, 0);
    rondo_chunk_reduce(old, in(p, 1, 0));
    rondo_chunk_copy(old, 1, RONDO_BUFFER_OUTPUT, 0);
    expect_wrong(p, "stale reference: chunk 0 of rank 0's input");
    p = make("allreduce", 2, 2, 0);
    rondo_chunk_reduce(rondo_chunk(p, 0, RONDO_BUFFER_INPUT, 0, 2), in(p, 1, 0));
    expect_wrong(p, "2 chunks of rank 0 cannot be reduced with 1");
    p = make("allreduce", 2, 2, 0);
    rondo_chunk_copy(rondo_chunk(p, 0, RONDO_BUFFER_INPUT, 0, 2), 0, RONDO_BUFFER_INPUT, 1);
    expect_wrong(p, "which" + 5); /* out of the buffer */
    p = make("allreduce", 2, 1, 0);
    rondo_program_channel(p, 5000);
    expect_wrong(p, "channel 5000");
    p = make("allreduce", 2, 1, 0);
    rondo_program_parallelize(p, 65);
    expect_wrong(p, "parallelize by 65");
    p = make("allreduce", 2, 1, 0);
    rondo_program_serialize(p);
    expect_wrong(p, "serialize without");
    p = make("allreduce", 2, 1, 0);
    rondo_program_parallelize(p, 2);
    expect_wrong(p, "without serialize");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk(p, 0, RONDO_BUFFER_SCRATCH, SIZE_MAX, 1);
    expect_wrong(p, "chunks");
    p = make("allreduce", 2, 1, 0);
    rondo_chunk_copy(in(p, 0, 0), 0, RONDO_BUFFER_SCRATCH, (size_t) 1 << 40);
    expect_wrong(p, "chunks");
}

/* A rank alone has nothing to send. */
static void test_one_rank(void **state)
{
    (void) state;
    rondo_program_t p = make("allreduce", 1, 3, 1);
    assert_right(rondo_program_check(p, NULL));
    rondo_program_limits_t limits = {0, 513, 0};
    assert_says(rondo_program_check(p, &limits), RONDO_ERR_ARGUMENT, "513 blocks");
    rondo_program_destroy(p);
}

/* What the postcondition says of programs that do something else. */
static void test_wrong_results(void **state)
{
    (void) state;
    rondo_program_t p = make("allreduce", 3, 1, 1);
    expect_wrong(p, "output chunk 0 of rank 0 ends as the combination of 1 input chunks, not of the 3");
    p = make("allreduce", 2, 1, 1); /* twice the same */
    rondo_chunk_t sum = rondo_chunk_reduce(in(p, 0, 0), in(p, 1, 0));
    rondo_chunk_reduce(in(p, 1, 0), sum);
    expect_wrong(p, "rank 1 ends as the combination of 3");
    p = make("alltoall", 2, 1, 0); /* the right number, but another block */
    for (int from = 0; from < 2; from++)
        for (int to = 0; to < 2; to++)
            rondo_chunk_copy(in(p, from, (size_t) from), to, RONDO_BUFFER_OUTPUT, (size_t) from);
    expect_wrong(p, "but others");
}

static void test_custom(void **state)
{
    (void) state;
    rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
    rondo_program_t p;
    int both[] = {0, 1};
    size_t indexes[] = {0, 1};
    signature.name = "diagonal", signature.collective = "custom", signature.ranks = 2, signature.inputs = 2,
    signature.outputs = 1;
    for (int good = 0; good < 2; good++) {
        assert_right(rondo_program_create(&p, &signature));
        rondo_program_require(p, 1, 0, 2, both, indexes);
        rondo_chunk_t c = rondo_chunk_copy(in(p, 0, 0), 1, RONDO_BUFFER_OUTPUT, 0);
        rondo_chunk_reduce(c, in(p, 1, good ? 1 : 0));
        if (good)
            assert_right(rondo_program_check(p, NULL));
        else
            assert_says(rondo_program_check(p, NULL), RONDO_ERR_ARGUMENT, "output chunk 0 of rank 1");
        rondo_program_destroy(p);
    }
}

/* ---- the library ---- */

static void check_builtin(const char *name, const char *collective, int ranks, int channels, int root)
{
    rondo_program_t p;
    rondo_result_t made = rondo_program_builtin(name, collective, ranks, channels, root, &p);
    if (made == RONDO_ERR_UNSUPPORTED)
        return;
    assert_right(made);
    for (int blocks = 1; blocks <= 64; blocks *= 8) {
        rondo_program_limits_t limits = {4, blocks, 0};
        rondo_result_t result = rondo_program_check(p, &limits);
        if (result != RONDO_SUCCESS)
            fail_msg("%s, %s, %d ranks, %d channels, root %d, %d blocks: %s", name, collective, ranks, channels, root, blocks,
                     rondo_last_error());
    }
    rondo_program_destroy(p);
}

static void test_library(void **state)
{
    (void) state;
    const char *name, *collective;
    int count = 0;
    for (;; count++) {
        rondo_program_builtin_name(count, &name, &collective);
        if (name == NULL)
            break;
        for (int ranks = 2; ranks <= 9; ranks++)
            for (int channels = 1; channels <= 3; channels++)
                for (int root = 0; root < ranks; root += channels)
                    check_builtin(name, collective, ranks, channels, root);
        check_builtin(name, collective, 16, 2, 5);
        check_builtin(name, collective, 64, 1, 63);
    }
    assert_true(count >= 25);
}

/* With few slots the order must do with them; one is always enough. */
static void test_slots(void **state)
{
    (void) state;
    const char *name, *collective;
    for (int i = 0;; i++) {
        rondo_program_builtin_name(i, &name, &collective);
        if (name == NULL)
            break;
        for (int ranks = 2; ranks <= 8; ranks += 3)
            for (int slots = 1; slots <= 2; slots++) {
                rondo_program_limits_t limits = {slots, 4, 0};
                rondo_program_t p;
                if (rondo_program_builtin(name, collective, ranks, 2, 1, &p) != RONDO_SUCCESS)
                    continue;
                if (rondo_program_check(p, &limits) != RONDO_SUCCESS)
                    fail_msg("%s %s %d ranks, %d slots: %s", name, collective, ranks, slots, rondo_last_error());
                rondo_program_destroy(p);
            }
    }
}

/* The plans of algorithms that are written by hand. */
static struct rondo_plan_set *hand_written(const struct rondo_algorithm *a, const struct rondo_shape *shape)
{
    struct rondo_plan_set *set = plans_by_hand(a, shape);
    if (set == NULL)
        fail_msg("%s: %s", a->name, rondo_last_error());
    return set;
}

/* Ranks dealt out to the hosts in turn, so that those of a host do not have neighbouring numbers. */
static void lay_on_hosts(struct rondo_topology *topology, int ranks, int hosts)
{
    topology->nodes = hosts;
    topology->locals = ranks / hosts;
    topology->ranks = calloc((size_t) ranks, sizeof(int));
    topology->node = calloc((size_t) ranks, sizeof(int));
    topology->local = calloc((size_t) ranks, sizeof(int));
    for (int rank = 0; rank < ranks; rank++) {
        topology->node[rank] = rank % hosts;
        topology->local[rank] = rank / hosts;
        topology->ranks[topology->node[rank] * topology->locals + topology->local[rank]] = rank;
    }
}

static void free_hosts(struct rondo_topology *topology)
{
    free(topology->ranks);
    free(topology->node);
    free(topology->local);
}

static void test_hand_written(void **state)
{
    (void) state;
    int count;
    const struct rondo_algorithm *table = rondo_algorithm_table(&count);
    struct rondo_check_limits limits = RONDO_CHECK_LIMITS_DEFAULT;
    for (int a = 0; a < count; a++)
        for (int kind = 0; kind < RONDO_KIND_SEND_TO; kind++)
            for (int ranks = 2; ranks <= 7; ranks++)
                for (int channels = 1; channels <= 2; channels++) {
                    struct rondo_shape shape = {
                        .kind = (enum rondo_kind) kind, .size = ranks, .root = ranks - 1, .channels = channels};
                    if (table[a].build == NULL || !(table[a].kinds >> kind & 1) || table[a].build == rondo_build_local)
                        continue;
                    if (table[a].several_hosts && ranks != 4 && ranks != 6)
                        continue;
                    if (kind == RONDO_KIND_BARRIER || table[a].build == rondo_build_all_pairs)
                        shape.channels = 1;
                    struct rondo_topology topology;
                    if (table[a].several_hosts) {
                        lay_on_hosts(&topology, ranks, ranks / 2);
                        shape.topology = &topology;
                    }
                    shape.exchanges = ranks % 2;
                    struct rondo_plan_set *set = hand_written(&table[a], &shape);
                    for (int shared = 0; shared < 2; shared++) {
                        int may = rondo_conditions_may_share(&set->conditions) &&
                                  !(table[a].direct && kind == RONDO_KIND_ALLTOALL) &&
                                  !((table[a].direct || table[a].blocks_a_peer) && kind == RONDO_KIND_REDUCE_SCATTER);
                        if (shared ? !may : rondo_conditions_always_shared(&set->conditions))
                            continue;
                        if (rondo_check_plans(set, table[a].name, &limits, shared) != RONDO_SUCCESS)
                            fail_msg("%s, %s, %d ranks, %d channels, shared %d: %s", table[a].name,
                                     rondo_kind_name((enum rondo_kind) kind), ranks, channels, shared, rondo_last_error());
                    }
                    rondo_plan_set_free(set);
                    if (table[a].several_hosts)
                        free_hosts(&topology);
                }
}

/* Direct access stays within the peers' buffers. */
static void test_remote_chunks(void **state)
{
    (void) state;
    struct rondo_check_limits limits = RONDO_CHECK_LIMITS_DEFAULT;
    struct rondo_shape shape = {.kind = RONDO_KIND_ALLREDUCE, .size = 3, .channels = 1};
    for (int flag = RONDO_DIRECT_IN; flag <= RONDO_DIRECT_OUT; flag *= 2) {
        struct rondo_plan_set *set = hand_written(rondo_algorithm_find("direct", shape.kind), &shape);
        for (uint32_t i = 0; i < played_block(set->plans[1], 0)->instructions; i++)
            if (played_instruction(set->plans[1], 0, i)->flags & flag)
                played_instruction(set->plans[1], 0, i)->remote_index = 1000;
        assert_says(rondo_check_plans(set, "direct", &limits, 0), RONDO_ERR_ARGUMENT, "chunks [1000, +1)");
        rondo_plan_set_free(set);
    }
}

static void expect_same_block(const struct rondo_plan *a, const struct rondo_plan *b, uint32_t block)
{
    const struct rondo_program_block *mine = played_block(a, block), *theirs = played_block(b, block);
    assert_int_equal(mine->instructions, theirs->instructions);
    assert_int_equal(mine->ends, theirs->ends);
    for (uint32_t i = 0; i < mine->instructions; i++) {
        const struct rondo_instruction *x = played_instruction(a, block, i), *y = played_instruction(b, block, i);
        int reads = !(x->actions & RONDO_RECEIVE) || (x->actions & RONDO_REDUCE);
        assert_int_equal(x->actions, y->actions);
        assert_int_equal(x->flags, y->flags);
        assert_int_equal(x->count, y->count);
        assert_int_equal(x->receive_count, y->receive_count);
        assert_int_equal(x->send_count, y->send_count);
        assert_int_equal(x->dependencies, 0);
        if (reads) {
            assert_int_equal(x->source_buffer, y->source_buffer);
            assert_int_equal(x->source_index, y->source_index);
        }
        if (x->actions & RONDO_COPY)
            assert_int_equal(x->destination_index, y->destination_index);
        for (uint32_t e = 0; e < x->receive_count; e++)
            assert_memory_equal(a->connections + mine->end_first + x->receive_first + e,
                                b->connections + theirs->end_first + y->receive_first + e, sizeof(struct rondo_connection));
        for (uint32_t e = 0; e < x->send_count; e++)
            assert_memory_equal(a->connections + mine->end_first + x->send_first + e,
                                b->connections + theirs->end_first + y->send_first + e, sizeof(struct rondo_connection));
    }
}

static void expect_same(const struct rondo_plan *a, const struct rondo_plan *b)
{
    assert_int_equal(a->program->blocks, b->program->blocks);
    assert_int_equal(a->program->chunks[RONDO_SCRATCH], 0);
    assert_int_equal(a->program->largest_count, b->program->largest_count);
    assert_int_equal(a->largest_receive, b->largest_receive);
    for (uint32_t block = 0; block < a->program->blocks; block++)
        expect_same_block(a, b, block);
}

/* The compiler makes of the ring, and of one shot, what was written by hand: the same instructions, so the same speed. All
 * channels compiled at once are the same as one of them, multiplied. */
static void same_as_hand_written(const char *name, const struct rondo_algorithm *hand, enum rondo_kind kind, int ranks,
                                 int channels)
{
    struct rondo_shape shape = {.kind = kind, .size = ranks, .channels = channels};
    struct rondo_compile_options options = {.blocks = (uint32_t) channels, .slots = 4};
    struct rondo_plan_set *ours, *theirs = hand_written(hand, &shape);
    rondo_program_t p;
    assert_right(rondo_program_builtin(name, rondo_kind_name(kind), ranks, channels, 0, &p));
    assert_right(rondo_program_compile(p, &options, -1, &ours));
    for (shape.rank = 0; shape.rank < ranks; shape.rank++) {
        struct rondo_plan *used = NULL;
        expect_same(ours->plans[shape.rank], theirs->plans[shape.rank]);
        assert_right(rondo_program_plan(rondo_algorithm_find(name, kind), &shape, options.blocks, 4, 1, &used));
        expect_same(used, theirs->plans[shape.rank]);
        rondo_plan_free(used);
    }
    rondo_plan_set_free(ours);
    rondo_plan_set_free(theirs);
    rondo_program_destroy(p);
}

/* Every built-in algorithm as the library binds it, on several channels: the plans of all ranks pass the checker. */
static void test_multiplied(void **state)
{
    (void) state;
    const char *name, *collective;
    struct rondo_plan *plan;
    for (int i = 0;; i++) {
        rondo_program_builtin_name(i, &name, &collective);
        if (name == NULL)
            break;
        for (int ranks = 2; ranks <= 9; ranks++)
            for (int channels = 1; channels <= 4; channels++)
                for (uint32_t blocks = 1; blocks <= 16; blocks *= 4) {
                    struct rondo_shape shape = {
                        .kind = rondo_kind_find(collective), .size = ranks, .root = ranks / 2, .channels = channels};
                    rondo_result_t result =
                        rondo_program_plan(rondo_algorithm_find(name, shape.kind), &shape, blocks, 4, 1, &plan);
                    if (result == RONDO_ERR_UNSUPPORTED)
                        continue;
                    assert_right(result);
                    rondo_plan_free(plan);
                }
    }
}

static void test_as_by_hand(void **state)
{
    (void) state;
    const struct rondo_algorithm reference = {.name = "reference", .build = reference_ring};
    const enum rondo_kind kinds[] = {RONDO_KIND_ALLREDUCE,  RONDO_KIND_REDUCE_SCATTER, RONDO_KIND_ALLGATHER,
                                     RONDO_KIND_ALLGATHERV, RONDO_KIND_BCAST,          RONDO_KIND_REDUCE};
    for (int ranks = 2; ranks <= 9; ranks++) {
        for (int channels = 1; channels <= 3; channels++)
            for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
                same_as_hand_written("ring", &reference, kinds[k], ranks, channels);
        same_as_hand_written("oneshot", rondo_algorithm_find("allpairs", RONDO_KIND_ALLREDUCE), RONDO_KIND_ALLREDUCE, ranks, 1);
    }
}

/* ---- mutations ---- */

static struct rondo_plan_set *compiled(const char *name, const char *collective, int ranks, int channels, uint32_t blocks)
{
    struct rondo_compile_options options = {.blocks = blocks, .slots = PLAYED_SLOTS};
    struct rondo_plan_set *set;
    rondo_program_t p;
    if (rondo_program_builtin(name, collective, ranks, channels, 0, &p) != RONDO_SUCCESS)
        return NULL;
    assert_right(rondo_program_compile(p, &options, -1, &set));
    rondo_program_destroy(p);
    return set;
}

/* Unmutated plans compute the right thing, whatever the turns. */
static void test_played(void **state)
{
    (void) state;
    const char *name, *collective;
    for (int i = 0;; i++) {
        rondo_program_builtin_name(i, &name, &collective);
        if (name == NULL)
            break;
        for (int ranks = 2; ranks <= 9; ranks++)
            for (uint32_t blocks = 1; blocks <= 16; blocks *= 4) {
                struct rondo_plan_set *set = compiled(name, collective, ranks, 2, blocks);
                for (uint32_t empty = 1; set != NULL && empty <= set->conditions.pieces; empty += 1 + empty / 2) {
                    int shared = rondo_conditions_always_shared(&set->conditions);
                    if (!plans_play(set, shared, empty, (uint64_t) ranks * 1000 + blocks))
                        fail_msg("%s %s %d ranks %u blocks, %u chunks not empty: wrong", name, collective, ranks, blocks,
                                 empty);
                }
                rondo_plan_set_free(set);
            }
    }
}

static void mutate(struct rondo_plan_set *set, uint64_t *seed)
{
    uint32_t rank = (uint32_t) (played_random(seed) % set->conditions.ranks);
    struct rondo_plan *plan = set->plans[rank];
    uint32_t b = (uint32_t) (played_random(seed) % plan->program->blocks);
    const struct rondo_program_block *block = played_block(plan, b);
    if (block->instructions == 0)
        return;
    uint32_t at = (uint32_t) (played_random(seed) % block->instructions);
    struct rondo_instruction *i = played_instruction(plan, b, at);
    uint32_t small = (uint32_t) (played_random(seed) % 4);
    size_t dependencies = (plan->program->bytes - plan->program->dependency_offset) / sizeof(struct rondo_dependency);
    struct rondo_dependency *list =
        (struct rondo_dependency *) (void *) ((char *) plan->program + plan->program->dependency_offset);
    switch (played_random(seed) % 16) {
    case 0:
        i->actions ^= (uint8_t) (1u << small);
        break;
    case 1:
        i->flags ^= (uint8_t) (small & 1 ? RONDO_FINISH : RONDO_NOTIFY);
        break;
    case 2:
        i->source_buffer = (uint8_t) small;
        break;
    case 3:
        i->destination_buffer = (uint8_t) small;
        break;
    case 4:
        i->source_index += small - 1;
        break;
    case 5:
        i->destination_index += small - 1;
        break;
    case 6:
        i->count = (uint16_t) (i->count + small - 1);
        break;
    case 7:
        i->receive_first = (uint8_t) (i->receive_first + small - 1);
        break;
    case 8:
        i->send_first = (uint8_t) (i->send_first + small - 1);
        break;
    case 9:
        i->receive_count = (uint8_t) (i->receive_count + small - 1);
        break;
    case 10:
        i->send_count = (uint8_t) (i->send_count + small - 1);
        break;
    case 11:
        if (dependencies > 0)
            list[played_random(seed) % dependencies].step = (uint16_t) (played_random(seed) % (block->instructions + 1));
        break;
    case 12:
        if (dependencies > 0)
            list[played_random(seed) % dependencies].block = (uint16_t) (played_random(seed) % (plan->program->blocks + 1));
        break;
    case 13:
        i->dependencies = (uint16_t) (i->dependencies > 0 ? i->dependencies - 1 : 0);
        break;
    case 14: { /* two steps change places */
        struct rondo_instruction *other = played_instruction(plan, b, (at + 1) % block->instructions), saved = *i;
        *i = *other;
        *other = saved;
        break;
    }
    default:
        if (plan->program->ends > 0) {
            struct rondo_connection *end = &plan->connections[played_random(seed) % plan->program->ends];
            if (small == 0)
                end->channel ^= 1;
            else
                end->peer = (int32_t) (played_random(seed) % (set->conditions.ranks + 1)) - (small == 1);
        }
        break;
    }
}

/* Whatever the checker accepts is right. */
static void test_mutations(void **state)
{
    (void) state;
    uint64_t seed = 20221;
    int accepted = 0, rejected = 0, total = 10000;
    struct rondo_check_limits limits = {PLAYED_SLOTS, 64, 0};
    const char *name, *collective;
    int programs = 0;
    while (rondo_program_builtin_name(programs, &name, &collective), name != NULL)
        programs++;
    while (accepted + rejected < total) {
        rondo_program_builtin_name((int) (played_random(&seed) % (uint64_t) programs), &name, &collective);
        int ranks = 2 + (int) (played_random(&seed) % 4);
        struct rondo_plan_set *set =
            compiled(name, collective, ranks, 1 + (int) (played_random(&seed) % 2), 1 + (uint32_t) (played_random(&seed) % 8));
        if (set == NULL)
            continue;
        int shared = rondo_conditions_always_shared(&set->conditions);
        int rounds = 1 + (int) (played_random(&seed) % 2);
        for (int k = 0; k < rounds; k++)
            mutate(set, &seed);
        uint64_t tried = seed;
        if (rondo_check_plans(set, name, &limits, shared) == RONDO_SUCCESS) {
            accepted++;
            for (uint32_t play = 0; play < 4; play++)
                if (!plans_play(set, shared, 1 + play * set->conditions.pieces / 3, tried + play))
                    fail_msg("%s %s, %d ranks: accepted, and wrong (mutation %d)", name, collective, ranks,
                             accepted + rejected);
        } else {
            rejected++;
        }
        rondo_plan_set_free(set);
    }
    assert_true(rejected > total / 4 && accepted > 0);
    print_message("%d mutations: %d rejected, %d accepted and right\n", total, rejected, accepted);
}

/* ---- XML ---- */

static void test_round_trip(void **state)
{
    (void) state;
    const char *name, *collective;
    int written = 0;
    for (int i = 0;; i++) {
        rondo_program_builtin_name(i, &name, &collective);
        if (name == NULL)
            break;
        for (int ranks = 2; ranks <= 8; ranks += 3) {
            rondo_program_t p, again;
            char *text, *second;
            if (rondo_program_builtin(name, collective, ranks, 2, 1, &p) != RONDO_SUCCESS)
                continue;
            rondo_result_t result = rondo_program_write_xml(p, &text);
            rondo_program_destroy(p);
            if (result == RONDO_ERR_UNSUPPORTED)
                continue;
            assert_right(result);
            if (rondo_program_read_xml(text, strlen(text), &again) != RONDO_SUCCESS ||
                rondo_program_check(again, NULL) != RONDO_SUCCESS)
                fail_msg("%s %s %d ranks: %s\n%s", name, collective, ranks, rondo_last_error(), text);
            assert_right(rondo_program_write_xml(again, &second));
            rondo_program_text_free(second);
            rondo_program_destroy(again);
            rondo_program_text_free(text);
            written++;
        }
    }
    assert_true(written >= 40);
}

static void refuse_xml(const char *text, const char *words)
{
    rondo_program_t p;
    rondo_result_t result = rondo_program_read_xml(text, strlen(text), &p);
    if (result == RONDO_SUCCESS) {
        result = rondo_program_check(p, NULL);
        rondo_program_destroy(p);
    }
    assert_says(result, RONDO_ERR_ARGUMENT, words);
}

#define ALGO(rest) "<algo name='x' ngpus='2' coll='allreduce' inplace='1' nchunksperloop='1'>\n" rest
#define PAIR(first, second)                                                                                                    \
    ALGO("<gpu id='0' i_chunks='1' o_chunks='0' s_chunks='0'><tb id='0' send='1' recv='1' chan='0'>" first                     \
         "</tb></gpu>\n<gpu id='1' i_chunks='1' o_chunks='0' s_chunks='0'><tb id='0' send='0' recv='0' chan='0'>" second       \
         "</tb></gpu></algo>")
#define STEP(s, type)                                                                                                          \
    "<step s='" s "' type='" type "' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='1' depid='-1' deps='-1'/>"

static void test_hostile_xml(void **state)
{
    (void) state;
    refuse_xml("", "no element");
    refuse_xml("<algo", "ends within");
    refuse_xml("<!DOCTYPE x [<!ENTITY a 'aaaa'>]><algo/>", "document types");
    refuse_xml("<algo name='&a;'/>", "& in an attribute");
    refuse_xml("hello", "text where");
    refuse_xml(ALGO(""), "ends before");
    refuse_xml(ALGO("</gpu>"), "line 2");
    refuse_xml(ALGO("</algo>"), "no gpu with id 0");
    refuse_xml(ALGO("<tb/></algo>"), "expected an element gpu");
    refuse_xml("<algo name='x' ngpus='99999999' coll='allreduce' nchunksperloop='1'/>", "ngpus");
    refuse_xml("<algo name='x' ngpus='2' coll='sum' nchunksperloop='1'/>", "sum");
    refuse_xml("<algo name='x' ngpus='two' coll='allreduce' nchunksperloop='1'/>", "whole number");
    refuse_xml("<a><a><a><a><a><a><a><a><a><a>", "expected an element algo");
    refuse_xml(PAIR(STEP("1", "s"), ""), "out of order");
    refuse_xml(PAIR(STEP("0", "jump"), ""), "unknown type");
    refuse_xml(
        PAIR("<step s='0' type='s' srcbuf='i' srcoff='7' dstbuf='i' dstoff='0' depid='-1' deps='-1'/>", STEP("0", "rrc")),
        "do not exist");
    refuse_xml(PAIR("<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' depid='3' deps='0'/>", ""),
               "does not exist");
    refuse_xml(PAIR(STEP("0", "s"), ""), "but not the other way round");
    refuse_xml(PAIR(STEP("0", "rrc"), STEP("0", "rrc")), "deadlock");
    refuse_xml(PAIR(STEP("0", "s"), STEP("0", "rrc")), "must be");
    refuse_xml(
        PAIR("<step s='0' type='s' srcbuf='s' srcoff='0' dstbuf='i' dstoff='0' depid='-1' deps='-1'/>", STEP("0", "rrc")),
        "do not exist");
}

/* As msccl-tools writes an in-place all-reduce of two ranks: one sends, the other reduces and sends back. */
static void test_msccl(void **state)
{
    (void) state;
    static const char text[] = PAIR(STEP("0", "s") STEP("1", "r"), STEP("0", "rrcs"));
    rondo_program_t p;
    assert_right(rondo_program_read_xml(text, strlen(text), &p));
    assert_right(rondo_program_check(p, NULL));
    rondo_program_destroy(p);
}

/* ---- budgets ---- */

static void time_one(const char *name, const char *collective, int ranks)
{
    struct rondo_compile_options options = {.blocks = 64, .slots = 4};
    struct rondo_check_limits limits = {4, 512, 0};
    struct rondo_plan_set *set;
    rondo_program_t p;
    double start = seconds();
    assert_right(rondo_program_builtin(name, collective, ranks, 1, 0, &p));
    assert_right(rondo_program_compile(p, &options, -1, &set));
    double compiling = seconds() - start;
    start = seconds();
    assert_right(rondo_check_plans(set, name, &limits, 0));
    double checking = seconds() - start;
    print_message("%s %s on %d ranks: compiled in %.2f s, checked in %.2f s\n", name, collective, ranks, compiling, checking);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    assert_true(compiling < 10 && checking < compiling + 0.5);
    assert_true(used.ru_maxrss < 2L << 20); /* KiB, of all tests until now */
    rondo_plan_set_free(set);
    rondo_program_destroy(p);
}

static void test_budgets(void **state)
{
    (void) state;
    time_one("twostep", "alltoall", 256);
    time_one("compiled-hierarchical", "allreduce", 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_by_hand),    cmocka_unit_test(test_one_rank),     cmocka_unit_test(test_errors),
        cmocka_unit_test(test_wrong_results), cmocka_unit_test(test_custom),       cmocka_unit_test(test_library),
        cmocka_unit_test(test_slots),         cmocka_unit_test(test_hand_written), cmocka_unit_test(test_remote_chunks),
        cmocka_unit_test(test_multiplied),    cmocka_unit_test(test_played),       cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_hostile_xml),  cmocka_unit_test(test_msccl),
        cmocka_unit_test(test_budgets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
