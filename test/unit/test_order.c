/*
 * Which algorithms keep the order of ranks: the table says so of exactly those whose programs the verifier finds ordered, for
 * every number of ranks, root and number of channels that is tried; and a program that combines in another order is found.
 */
#include "test/unit/support/plans.h"
#include "lib/bootstrap/topology.h"
#include "lib/program/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "test/unit/support/verdicts.h"

enum { RANKS_MOST = 17 };

/* Whether the plans of one shape are ordered; -1: there are none for it. */
static int is_ordered(const struct rondo_algorithm *a, const struct rondo_shape *shape)
{
    struct rondo_verify_limits limits = RONDO_VERIFY_LIMITS_DEFAULT;
    int all = 1, ordered = 0;
    if (a->compose != NULL) {
        for (uint32_t blocks = 1; blocks <= 16; blocks *= 4) {
            struct rondo_plan *plan;
            rondo_result_t result = rondo_program_plan(a, shape, blocks, 4, 1, &plan);
            if (result == RONDO_ERR_UNSUPPORTED)
                return -1;
            assert_right(result);
            all &= plan->ordered;
            rondo_plan_free(plan);
        }
        return all;
    }
    struct rondo_plan_set *set = plans_by_hand(a, shape);
    assert_non_null(set);
    assert_right(rondo_verify_order(set, a->name, &limits, 0, &ordered));
    rondo_plan_set_free(set);
    return ordered;
}

/* Which ranks the hosts have: those of a host follow each other. */
static int on_hosts(struct rondo_topology *topology, int ranks, int hosts)
{
    if (ranks % hosts != 0 || ranks / hosts < 2)
        return 0;
    static int by_host[RANKS_MOST], node[RANKS_MOST], local[RANKS_MOST];
    *topology =
        (struct rondo_topology){.nodes = hosts, .locals = ranks / hosts, .ranks = by_host, .node = node, .local = local};
    for (int rank = 0; rank < ranks; rank++) {
        node[rank] = rank / topology->locals;
        local[rank] = rank % topology->locals;
        by_host[rank] = rank;
    }
    return 1;
}

static void check_row(const struct rondo_algorithm *a, enum rondo_kind kind)
{
    int said = a->ordered >> kind & 1, disorder = 0, found = 0;
    for (int ranks = 2; ranks <= RANKS_MOST; ranks++)
        for (int channels = 1; channels <= 2; channels++)
            for (int root = 0; root < (rondo_kind_is_rooted(kind) ? ranks : 1); root += 1 + ranks / 4) {
                struct rondo_topology topology;
                memset(&topology, 0, sizeof(topology));
                struct rondo_shape shape = {
                    .kind = kind, .size = ranks, .root = root, .channels = channels, .topology = &topology};
                if (!on_hosts(&topology, ranks, 2) && (a->several_hosts || a->compose == rondo_compose_hierarchical))
                    continue;
                if ((a->powers >> kind & 1) && (ranks & (ranks - 1)) != 0)
                    continue;
                int ordered = is_ordered(a, &shape);
                if (ordered < 0)
                    continue;
                found++;
                disorder += !ordered;
                if (said && !ordered)
                    fail_msg("%s, %s, %d ranks, %d channels, root %d: said to be ordered, and is not", a->name,
                             rondo_kind_name(kind), ranks, channels, root);
            }
    assert_true(found > 0);
    if (getenv("RONDO_X_PRINT_ORDER") != NULL)
        printf("%s %s: %d of %d shapes ordered\n", a->name, rondo_kind_name(kind), found - disorder, found);
    else if (!said && disorder == 0)
        fail_msg("%s, %s is ordered for all %d shapes, and the table does not say so", a->name, rondo_kind_name(kind), found);
}

static void the_table_is_right(void **state)
{
    (void) state;
    int count, rows = 0;
    const struct rondo_algorithm *table = rondo_algorithm_table(&count);
    for (int a = 0; a < count; a++)
        for (int kind = 0; kind < RONDO_KINDS; kind++) {
            if (!(table[a].kinds >> kind & 1) || kind == RONDO_KIND_CUSTOM || table[a].build == rondo_build_local)
                continue;
            if (!rondo_kind_reduces((enum rondo_kind) kind)) {
                assert_int_equal(table[a].ordered >> kind & 1, 0);
                continue;
            }
            check_row(&table[a], (enum rondo_kind) kind);
            rows++;
        }
    assert_true(rows > 20);
}

/* Exchanges the operands of one reduction of an ordered program. */
static void disorder_is_found(void **state)
{
    (void) state;
    struct rondo_shape shape = {.kind = RONDO_KIND_SCAN, .size = 4, .channels = 1};
    const struct rondo_algorithm *chain = rondo_algorithm_find("chain", RONDO_KIND_SCAN);
    struct rondo_verify_limits limits = RONDO_VERIFY_LIMITS_DEFAULT;
    for (int turned = 0; turned < 2; turned++) {
        struct rondo_plan_set *set = plans_by_hand(chain, &shape);
        int ordered = -1, reductions = 0;
        for (uint32_t i = 0; turned && i < played_block(set->plans[2], 0)->instructions; i++) {
            struct rondo_instruction *instruction = played_instruction(set->plans[2], 0, i);
            if ((instruction->actions & RONDO_RECEIVE) && (instruction->actions & RONDO_REDUCE)) {
                instruction->local_place = instruction->local_place == 0 ? instruction->receive_count : 0;
                reductions++;
            }
        }
        assert_right(rondo_verify_order(set, "chain", &limits, 0, &ordered));
        assert_int_equal(ordered, !turned);
        assert_true(!turned || reductions > 0);
        rondo_plan_set_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_is_right), cmocka_unit_test(disorder_is_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
