/* The built-in algorithms: those in the language and the hand-written ones pass the verifier for all ranks, channels and slots,
 * and the compiler turns a program into the same plan as the hand-written algorithm. */
#include "test/unit/support/builtins.h"
#include "test/unit/support/plans.h"
#include "lib/program/program.h"
#include "test/reference/reference_pairs.h"
#include "rondo_program.h"
#include "lib/bootstrap/topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "test/unit/support/verdicts.h"

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

static void check_sizes(const char *name, const char *collective, void *unused)
{
    (void) unused;
    for (int ranks = 2; ranks <= 9; ranks++)
        for (int channels = 1; channels <= 3; channels++)
            for (int root = 0; root < ranks; root += channels)
                check_builtin(name, collective, ranks, channels, root);
    check_builtin(name, collective, 16, 2, 5);
    check_builtin(name, collective, 64, 1, 63);
}

static void test_library(void **state)
{
    (void) state;
    assert_true(each_builtin(check_sizes, NULL) >= 25);
}

/* With few slots the order of instructions must fit them; one slot is always enough. */
static void check_few_slots(const char *name, const char *collective, void *unused)
{
    (void) unused;
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

static void test_slots(void **state)
{
    (void) state;
    each_builtin(check_few_slots, NULL);
}

/* Checks the number of blocks: there must not be more than a lane has contexts for. */
static void expect_blocks(const struct rondo_algorithm *a, const struct rondo_shape *shape, const struct rondo_plan *plan)
{
    const int most = shape->channels * rondo_algorithm_blocks(a, shape->kind, shape->size) + a->keepers;
    if ((int) plan->program->blocks > most)
        fail_msg("%s %s, %d ranks: %u blocks, not %d", a->name, rondo_kind_name(shape->kind), shape->size,
                 plan->program->blocks, most);
}

/* The plans of hand-written algorithms. */
static struct rondo_plan_set *hand_written(const struct rondo_algorithm *a, const struct rondo_shape *shape)
{
    struct rondo_plan_set *set = plans_by_hand(a, shape);
    if (set == NULL)
        fail_msg("%s: %s", a->name, rondo_last_error());
    return set;
}

/* Assigns ranks to hosts in turn, so that the ranks of a host do not have neighbouring numbers. */
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
    struct rondo_verify_limits limits = RONDO_VERIFY_LIMITS_DEFAULT;
    for (int a = 0; a < count; a++)
        for (int kind = 0; kind < RONDO_KIND_SEND_TO; kind++)
            for (int ranks = 2; ranks <= 7; ranks++)
                for (int channels = 1; channels <= 2; channels++) {
                    struct rondo_shape shape = {
                        .kind = (enum rondo_kind) kind, .size = ranks, .root = ranks - 1, .channels = channels};
                    if (table[a].build == NULL || !(table[a].kinds >> kind & 1) || table[a].build == rondo_build_local)
                        continue;
                    if (rondo_kind_is_neighborhood((enum rondo_kind) kind))
                        continue; /* programs of graphs, for which there are no conditions; test/multirank runs them */
                    if (table[a].several_hosts && ranks != 4 && ranks != 6)
                        continue;
                    struct rondo_topology topology;
                    if (table[a].several_hosts) {
                        lay_on_hosts(&topology, ranks, ranks / 2);
                        shape.topology = &topology;
                    }
                    struct rondo_plan_set *set = hand_written(&table[a], &shape);
                    for (int rank = 0; rank < ranks; rank++)
                        expect_blocks(&table[a], &shape, set->plans[rank]);
                    for (int shared = 0; shared < 2; shared++) {
                        int may = rondo_conditions_may_share(&set->conditions) && !(table[a].separate >> kind & 1) &&
                                  !(table[a].direct && kind == RONDO_KIND_ALLTOALL) &&
                                  !(table[a].direct && kind == RONDO_KIND_REDUCE_SCATTER_BLOCK);
                        if (shared ? !may : rondo_conditions_always_shared(&set->conditions))
                            continue;
                        if (rondo_verify_plans(set, table[a].name, &limits, shared) != RONDO_SUCCESS)
                            fail_msg("%s, %s, %d ranks, %d channels, shared %d: %s", table[a].name,
                                     rondo_kind_name((enum rondo_kind) kind), ranks, channels, shared, rondo_last_error());
                    }
                    rondo_plan_set_free(set);
                    if (table[a].several_hosts)
                        free_hosts(&topology);
                }
}

/* The plans of more ranks than a block has connectors to: right, also in place, with connectors to as many ranks each way as
 * the number of ranks has bits, and small. */
static void check_many(const char *name, enum rondo_kind kind, int ranks, int root)
{
    struct rondo_verify_limits limits = {1, 1, 0};
    struct rondo_shape shape = {.kind = kind, .size = ranks, .root = root, .channels = 1};
    struct rondo_plan_set *set = hand_written(rondo_algorithm_find(name, kind), &shape);
    uint32_t bits = 0;
    while ((ranks - 1) >> bits > 0)
        bits++;
    for (int rank = 0; rank < ranks; rank++) {
        assert_true(set->plans[rank]->program->ends <=
                    (kind == RONDO_KIND_ALLTOALL || kind == RONDO_KIND_BARRIER ? 2 : 1) * bits);
        assert_true(set->plans[rank]->program->bytes <= 256 + 32 * (uint32_t) ranks * (2 + bits));
    }
    for (int shared = 0; shared <= rondo_conditions_may_share(&set->conditions); shared++)
        if (rondo_verify_plans(set, name, &limits, shared) != RONDO_SUCCESS)
            fail_msg("%s %s, %d ranks, root %d, shared %d: %s", name, rondo_kind_name(kind), ranks, root, shared,
                     rondo_last_error());
    rondo_plan_set_free(set);
}

static void test_many_ranks(void **state)
{
    (void) state;
    static const int sizes[] = {64, 129, 130, 200, 257};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        check_many("bruck", RONDO_KIND_BARRIER, sizes[i], 0);
        check_many("bruck", RONDO_KIND_ALLTOALL, sizes[i], 0);
        for (int root = 0; root < sizes[i]; root += sizes[i] / 3 + 1) {
            check_many("binomial", RONDO_KIND_GATHER, sizes[i], root);
            check_many("binomial", RONDO_KIND_SCATTER, sizes[i], root);
        }
    }
}

/* Of more ranks than a ring is composed for, each builds its own part: all parts together are right, also in place, and each is
 * as long as the number of ranks. Of no more ranks, or compressed, the ring is compiled. */
static void test_rings_built_alone(void **state)
{
    (void) state;
    static const enum rondo_kind kinds[] = {RONDO_KIND_ALLREDUCE, RONDO_KIND_REDUCE_SCATTER_BLOCK,
                                            RONDO_KIND_ALLGATHER, RONDO_KIND_ALLGATHERV,
                                            RONDO_KIND_BCAST,     RONDO_KIND_REDUCE};
    struct rondo_verify_limits limits = {4, 16, 0};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (int ranks = RONDO_COMPOSED_RANKS; ranks <= 2 * RONDO_COMPOSED_RANKS + 1; ranks += RONDO_COMPOSED_RANKS / 2) {
            struct rondo_shape shape = {.kind = kinds[k], .size = ranks, .root = ranks / 3, .channels = 1 + ranks % 2};
            const struct rondo_algorithm *ring = rondo_algorithm_find("ring", kinds[k]);
            const struct rondo_algorithm alone = {.name = "ring", .build = rondo_algorithm_builder(ring, &shape)};
            if (ranks == RONDO_COMPOSED_RANKS) {
                assert_null(alone.build);
                continue;
            }
            assert_non_null(alone.build);
            struct rondo_plan_set *set = hand_written(&alone, &shape);
            for (int rank = 0; rank < ranks; rank++) {
                expect_blocks(ring, &shape, set->plans[rank]);
                assert_true(set->plans[rank]->program->bytes <= 512 + 100 * (uint32_t) (ranks * shape.channels));
            }
            for (int shared = rondo_conditions_always_shared(&set->conditions);
                 shared <= rondo_conditions_may_share(&set->conditions); shared++)
                if (rondo_verify_plans(set, "ring", &limits, shared) != RONDO_SUCCESS)
                    fail_msg("%s, %d ranks, shared %d: %s", rondo_kind_name(kinds[k]), ranks, shared, rondo_last_error());
            rondo_plan_set_free(set);
            shape.protocol = RONDO_PROTOCOL_COMPRESSED;
            assert_null(rondo_algorithm_builder(ring, &shape));
        }
    struct rondo_shape counts = {.kind = RONDO_KIND_REDUCE_SCATTER, .size = 200, .channels = 1};
    assert_null(rondo_algorithm_builder(rondo_algorithm_find("ring", counts.kind), &counts));
}

/* The plans of the linear algorithm: right, also in place, and no block has more ends than it may have. */
static void check_windows(enum rondo_kind kind, int ranks, int root)
{
    struct rondo_verify_limits limits = {1, 16, 0};
    struct rondo_shape shape = {.kind = kind, .size = ranks, .root = root, .channels = 1};
    const struct rondo_algorithm *linear = rondo_algorithm_find("linear", kind);
    struct rondo_plan_set *set = hand_written(linear, &shape);
    for (int rank = 0; rank < ranks; rank++)
        expect_blocks(linear, &shape, set->plans[rank]);
    assert_true(set->plans[root]->program->blocks > 1);
    for (int shared = 0; shared <= rondo_conditions_may_share(&set->conditions); shared++)
        if ((shared || !rondo_conditions_always_shared(&set->conditions)) &&
            rondo_verify_plans(set, "linear", &limits, shared) != RONDO_SUCCESS)
            fail_msg("linear %s, %d ranks, root %d, shared %d: %s", rondo_kind_name(kind), ranks, root, shared,
                     rondo_last_error());
    rondo_plan_set_free(set);
}

static void test_windows(void **state)
{
    (void) state;
    static const enum rondo_kind rooted[] = {RONDO_KIND_GATHERV, RONDO_KIND_SCATTERV, RONDO_KIND_GATHER, RONDO_KIND_SCATTER};
    check_windows(RONDO_KIND_ALLTOALLV, 129, 0);
    check_windows(RONDO_KIND_ALLTOALLW, 257, 100);
    for (int root = 0; root < 300; root += 299)
        for (size_t k = 0; k < sizeof(rooted) / sizeof(rooted[0]); k++)
            check_windows(rooted[k], 300, root);
    check_windows(RONDO_KIND_BCAST, 66, 65);
    check_windows(RONDO_KIND_BCAST, 300, 1);
}

/* A reduce-scatter in the order of ranks, of as many as a block has ends to and of more: the last rank returns the results. */
static void test_chain(void **state)
{
    (void) state;
    static const enum rondo_kind kinds[] = {RONDO_KIND_REDUCE_SCATTER_BLOCK, RONDO_KIND_REDUCE_SCATTER};
    static const int sizes[] = {255, 256};
    struct rondo_verify_limits limits = {1, 2, 0};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct rondo_shape shape = {.kind = kinds[k], .size = sizes[i], .channels = 1};
            struct rondo_plan_set *set = hand_written(rondo_algorithm_find("chain", kinds[k]), &shape);
            assert_int_equal(set->plans[1]->program->blocks, sizes[i] > RONDO_PROGRAM_ENDS_MAX ? 2 : 1);
            for (int shared = 0; shared <= rondo_conditions_may_share(&set->conditions); shared++)
                if (rondo_verify_plans(set, "chain", &limits, shared) != RONDO_SUCCESS)
                    fail_msg("%s, %d ranks, shared %d: %s", rondo_kind_name(kinds[k]), sizes[i], shared, rondo_last_error());
            rondo_plan_set_free(set);
        }
}

/* Direct access stays within the peers' buffers. */
static void test_remote_chunks(void **state)
{
    (void) state;
    struct rondo_verify_limits limits = RONDO_VERIFY_LIMITS_DEFAULT;
    struct rondo_shape shape = {.kind = RONDO_KIND_ALLREDUCE, .size = 3, .channels = 1};
    for (int flag = RONDO_DIRECT_IN; flag <= RONDO_DIRECT_OUT; flag *= 2) {
        struct rondo_plan_set *set = hand_written(rondo_algorithm_find("direct", shape.kind), &shape);
        for (uint32_t i = 0; i < played_block(set->plans[1], 0)->instructions; i++)
            if (played_instruction(set->plans[1], 0, i)->flags & flag)
                played_instruction(set->plans[1], 0, i)->remote_index = 1000;
        assert_says(rondo_verify_plans(set, "direct", &limits, 0), RONDO_ERR_ARGUMENT, "chunks [1000, +1)");
        rondo_plan_set_free(set);
    }
}

/* Whether two blocks are the same. Waits that order nothing do not count. */
static int same_block(const struct rondo_plan *a, uint32_t mine_at, const struct rondo_plan *b, uint32_t theirs_at)
{
    const struct rondo_program_block *mine = played_block(a, mine_at), *theirs = played_block(b, theirs_at);
    const struct rondo_connection *my_ends = a->connections + mine->end_first, *their_ends = b->connections + theirs->end_first;
    if (mine->instructions != theirs->instructions || mine->ends != theirs->ends)
        return 0;
    for (uint32_t i = 0; i < mine->instructions; i++) {
        const struct rondo_instruction *x = played_instruction(a, mine_at, i), *y = played_instruction(b, theirs_at, i);
        int receives = x->actions & RONDO_RECEIVE, reads = !receives || (x->actions & RONDO_REDUCE);
        if (x->actions != y->actions || x->flags != y->flags || x->count != y->count || x->dependencies != 0 ||
            x->receive_count != y->receive_count || x->send_count != y->send_count)
            return 0;
        if (reads && (x->source_buffer != y->source_buffer || x->source_index != y->source_index))
            return 0;
        if (receives && (x->actions & RONDO_REDUCE) && x->local_place != y->local_place && x->receive_count > 1)
            return 0;
        if ((x->actions & RONDO_COPY) &&
            (x->destination_buffer != y->destination_buffer || x->destination_index != y->destination_index))
            return 0;
        if (memcmp(my_ends + x->receive_first, their_ends + y->receive_first, x->receive_count * sizeof(*my_ends)) != 0 ||
            memcmp(my_ends + x->send_first, their_ends + y->send_first, x->send_count * sizeof(*my_ends)) != 0)
            return 0;
    }
    return 1;
}

/* Compares two plans block by block. any_order: the blocks of b are those of a in any order; they run at the same time and wait
 * for nothing. */
static void expect_same(const struct rondo_plan *a, const struct rondo_plan *b, int any_order)
{
    assert_int_equal(a->program->blocks, b->program->blocks);
    assert_int_equal(a->program->chunks[RONDO_INPUT], b->program->chunks[RONDO_INPUT]);
    assert_int_equal(a->program->chunks[RONDO_SCRATCH], 0);
    assert_int_equal(a->program->largest_count, b->program->largest_count);
    assert_int_equal(a->largest_receive, b->largest_receive);
    for (uint32_t block = 0; block < b->program->blocks; block++) {
        uint32_t at = any_order ? 0 : block;
        while (any_order && at < a->program->blocks && !same_block(a, at, b, block))
            at++;
        if (at == a->program->blocks || !same_block(a, at, b, block))
            fail_msg("block %u is not what was written by hand", block);
    }
}

/* The compiler turns a program into the hand-written instructions, so the speed is the same. All channels compiled at once
 * equal one of them, multiplied. */
static void same_as_hand_written(const char *name, const struct rondo_algorithm *hand, enum rondo_kind kind, int ranks,
                                 int channels, int exchanges)
{
    struct rondo_shape shape = {.kind = kind, .size = ranks, .channels = channels, .exchanges = exchanges};
    const struct rondo_algorithm *algorithm = rondo_algorithm_find(name, kind);
    struct rondo_compile_options options = {.blocks = (uint32_t) channels, .slots = 4, .exchanges = exchanges};
    struct rondo_plan_set *ours = NULL, *theirs = hand_written(hand, &shape);
    rondo_program_t p;
    assert_right(rondo_program_builtin(name, rondo_kind_name(kind), ranks, channels, 0, &p));
    assert_right(plans_compile(p, &options, -1, &ours));
    for (shape.rank = 0; shape.rank < ranks; shape.rank++) {
        struct rondo_plan *used = NULL;
        if (!algorithm->blocks_a_peer) /* otherwise it asks more of the compiler */
            expect_same(ours->plans[shape.rank], theirs->plans[shape.rank], 0);
        assert_right(rondo_program_plan(algorithm, &shape, options.blocks, 4, 1, &used));
        expect_same(used, theirs->plans[shape.rank], algorithm->blocks_a_peer);
        rondo_plan_free(used);
    }
    rondo_plan_set_free(ours);
    rondo_plan_set_free(theirs);
    rondo_program_destroy(p);
}

/* As the library binds the program on several channels: the plans of all ranks pass the verifier, and have no more blocks than
 * the choice of channels expects. */
static void check_bound(const char *name, const char *collective, void *unused)
{
    (void) unused;
    for (int ranks = 2; ranks <= 9; ranks++)
        for (int channels = 1; channels <= 4; channels++)
            for (uint32_t blocks = 1; blocks <= 16; blocks *= 4) {
                struct rondo_shape shape = {
                    .kind = rondo_kind_find(collective), .size = ranks, .root = ranks / 2, .channels = channels};
                const struct rondo_algorithm *algorithm = rondo_algorithm_find(name, shape.kind);
                struct rondo_plan *plan;
                rondo_result_t result = rondo_program_plan(algorithm, &shape, blocks, 4, 1, &plan);
                if (result == RONDO_ERR_UNSUPPORTED)
                    continue;
                assert_right(result);
                if ((int) blocks <= channels)
                    expect_blocks(algorithm, &shape, plan);
                rondo_plan_free(plan);
            }
}

static void test_multiplied(void **state)
{
    (void) state;
    each_builtin(check_bound, NULL);
}

static void test_as_by_hand(void **state)
{
    (void) state;
    static const struct {
        const char *name;
        struct rondo_algorithm reference;
        uint32_t kinds;
    } pairs[] = {
        {"ring",
         {.name = "reference", .build = rondo_build_ring},
         1 << RONDO_KIND_ALLREDUCE | 1 << RONDO_KIND_REDUCE_SCATTER_BLOCK | 1 << RONDO_KIND_ALLGATHER |
             1 << RONDO_KIND_ALLGATHERV | 1 << RONDO_KIND_BCAST | 1 << RONDO_KIND_REDUCE},
        {"allpairs",
         {.name = "reference", .build = reference_all_pairs},
         1 << RONDO_KIND_ALLREDUCE | 1 << RONDO_KIND_REDUCE_SCATTER_BLOCK | 1 << RONDO_KIND_ALLGATHER |
             1 << RONDO_KIND_ALLGATHERV | 1 << RONDO_KIND_BARRIER},
        {"twoshot", {.name = "reference", .build = reference_two_shot}, 1 << RONDO_KIND_ALLREDUCE},
        {"pairs",
         {.name = "reference", .build = reference_pairs},
         1 << RONDO_KIND_ALLGATHER | 1 << RONDO_KIND_REDUCE_SCATTER_BLOCK | 1 << RONDO_KIND_ALLTOALL},
    };
    for (size_t a = 0; a < sizeof(pairs) / sizeof(pairs[0]); a++)
        for (int kind = 0; kind < RONDO_KINDS; kind++)
            for (int ranks = 2; ranks <= 9 && (pairs[a].kinds >> kind & 1); ranks++)
                for (int channels = 1; channels <= (kind == RONDO_KIND_BARRIER ? 1 : 3); channels++)
                    for (int exchanges = 0; exchanges < 2; exchanges++)
                        same_as_hand_written(pairs[a].name, &pairs[a].reference, (enum rondo_kind) kind, ranks, channels,
                                             exchanges);
}

static uint32_t exchanges_of(rondo_program_t p, int ranks, uint32_t blocks)
{
    struct rondo_verify_limits limits = RONDO_VERIFY_LIMITS_DEFAULT;
    struct rondo_compile_options options = {.blocks = blocks, .slots = 4, .protocol = RONDO_PROTOCOL_LL, .exchanges = 1};
    struct rondo_plan_set *set = NULL;
    uint32_t count = 0;
    assert_right(plans_compile(p, &options, -1, &set));
    assert_right(rondo_verify_plans(set, "mine", &limits, 0));
    for (int rank = 0; rank < ranks; rank++)
        for (uint32_t b = 0; b < set->plans[rank]->program->blocks; b++)
            for (uint32_t i = 0; i < played_block(set->plans[rank], b)->instructions; i++)
                count += (played_instruction(set->plans[rank], b, i)->flags & RONDO_EXCHANGE) != 0;
    rondo_plan_set_free(set);
    return count;
}

/* A user's program that sends its input to all ranks and adds up what arrives becomes one exchange where the engine supports
 * it. A program whose sums are sent at once does not: a reducing instruction does that by itself. */
static void test_exchanges(void **state)
{
    (void) state;
    for (int doubling = 0; doubling < 2; doubling++) {
        rondo_program_signature_t signature = RONDO_PROGRAM_SIGNATURE_DEFAULT;
        rondo_program_t p;
        signature.name = "mine", signature.collective = "allreduce", signature.ranks = 4, signature.chunks = 1;
        signature.in_place = 1;
        assert_right(rondo_program_create(&p, &signature));
        for (int distance = 1; distance < 4; distance = doubling ? 2 * distance : 4) {
            for (int r = 0; r < 4; r++)
                for (int to = 0; to < 4; to++)
                    if (doubling ? to == (r ^ distance) : to != r)
                        rondo_chunk_copy(rondo_chunk(p, r, RONDO_BUFFER_INPUT, 0, 1), to, RONDO_BUFFER_SCRATCH, (size_t) r);
            for (int r = 0; r < 4; r++)
                for (int from = 0; from < 4; from++)
                    if (doubling ? from == (r ^ distance) : from != r)
                        rondo_chunk_reduce(rondo_chunk(p, r, RONDO_BUFFER_INPUT, 0, 1),
                                           rondo_chunk(p, r, RONDO_BUFFER_SCRATCH, (size_t) from, 1));
        }
        assert_int_equal(exchanges_of(p, 4, 1), doubling ? 0 : 4);
        rondo_program_destroy(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_by_hand),   cmocka_unit_test(test_library),           cmocka_unit_test(test_slots),
        cmocka_unit_test(test_hand_written), cmocka_unit_test(test_many_ranks),        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_chain),        cmocka_unit_test(test_remote_chunks),     cmocka_unit_test(test_multiplied),
        cmocka_unit_test(test_exchanges),    cmocka_unit_test(test_rings_built_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
