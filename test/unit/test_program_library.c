/* The built-in algorithms: those in the language pass the checker for all ranks, channels and slots, and so do those written by
 * hand; the compiler makes of the one what the other was. */
#include "plans.h"
#include "program/program.h"
#include "reference_ring.h"
#include "rondo_program.h"
#include "topology.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "verdicts.h"

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
                        int may = rondo_conditions_may_share(&set->conditions) && !(table[a].separate >> kind & 1) &&
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
        for (int channels = 1; channels <= 3; channels++) {
            for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
                same_as_hand_written("ring", &reference, kinds[k], ranks, channels);
            same_as_hand_written("oneshot", rondo_algorithm_find("allpairs", RONDO_KIND_ALLREDUCE), RONDO_KIND_ALLREDUCE, ranks,
                                 channels);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_by_hand),   cmocka_unit_test(test_library),       cmocka_unit_test(test_slots),
        cmocka_unit_test(test_hand_written), cmocka_unit_test(test_remote_chunks), cmocka_unit_test(test_multiplied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
