/* Compiled plans compute the right result in any order of turns, and mutated plans do so if the verifier accepts them. */
#include "test/unit/support/builtins.h"
#include "test/unit/support/plans.h"
#include "lib/program/program.h"
#include "rondo_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "test/unit/support/verdicts.h"

static struct rondo_plan_set *compiled(const char *name, const char *collective, int ranks, int channels, uint32_t blocks)
{
    struct rondo_compile_options options = {
        .blocks = blocks, .slots = PLAYED_SLOTS, .exchanges = ranks % 2, .apart = blocks > 4 && channels == 1};
    struct rondo_plan_set *set;
    rondo_program_t p;
    if (rondo_program_builtin(name, collective, ranks, channels, 0, &p) != RONDO_SUCCESS)
        return NULL;
    assert_right(plans_compile(p, &options, -1, &set));
    rondo_program_destroy(p);
    return set;
}

/* Unmutated plans compute the right result in any order of turns. */
static void play_builtin(const char *name, const char *collective, void *unused)
{
    (void) unused;
    for (int ranks = 2; ranks <= 9; ranks++)
        for (uint32_t blocks = 1; blocks <= 16; blocks *= 4) {
            struct rondo_plan_set *set = compiled(name, collective, ranks, 2, blocks);
            for (uint32_t empty = 1; set != NULL && empty <= set->conditions.block_chunks; empty += 1 + empty / 2) {
                int shared = rondo_conditions_always_shared(&set->conditions);
                if (!plans_play(set, shared, empty, (uint64_t) ranks * 1000 + blocks))
                    fail_msg("%s %s %d ranks %u blocks, %u chunks not empty: wrong", name, collective, ranks, blocks, empty);
            }
            rondo_plan_set_free(set);
        }
}

static void test_played(void **state)
{
    (void) state;
    each_builtin(play_builtin, NULL);
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
    switch (played_random(seed) % 17) {
    case 0:
        i->actions ^= (uint8_t) (1u << small);
        break;
    case 1:
        i->flags ^= (uint8_t) (small == 0 ? RONDO_EXCHANGE : small & 1 ? RONDO_FINISH : RONDO_NOTIFY);
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
    case 15:
        i->slot_chunk = small;
        break;
    case 14: { /* swaps two steps */
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

/* Plans by multicast, of a collective by chance. */
static struct rondo_plan_set *multicast_plans(int ranks, uint64_t *seed, const char **name, const char **collective)
{
    static const enum rondo_kind kinds[] = {RONDO_KIND_BCAST,     RONDO_KIND_SCATTER,  RONDO_KIND_ALLREDUCE,
                                            RONDO_KIND_ALLGATHER, RONDO_KIND_ALLTOALL, RONDO_KIND_REDUCE_SCATTER_BLOCK};
    const struct rondo_shape shape = {.kind = kinds[played_random(seed) % 6], .size = ranks, .root = ranks / 2, .channels = 1};
    *name = shape.kind == RONDO_KIND_ALLREDUCE && played_random(seed) % 2 ? "multicast-twoshot" : "multicast";
    *collective = rondo_kind_name(shape.kind);
    return plans_by_hand(rondo_algorithm_find(*name, shape.kind), &shape);
}

/* Every plan that the verifier accepts computes the right result. */
static void test_mutations(void **state)
{
    (void) state;
    uint64_t seed = 20221;
    int accepted = 0, rejected = 0, total = 10000;
    struct rondo_verify_limits limits = {PLAYED_SLOTS, 64, 0};
    const char *name, *collective;
    int programs = each_builtin(NULL, NULL);
    while (accepted + rejected < total) {
        rondo_program_builtin_name((int) (played_random(&seed) % (uint64_t) programs), &name, &collective);
        int ranks = 2 + (int) (played_random(&seed) % 4);
        struct rondo_plan_set *set =
            compiled(name, collective, ranks, 1 + (int) (played_random(&seed) % 2), 1 + (uint32_t) (played_random(&seed) % 8));
        if (played_random(&seed) % 4 == 0) {
            rondo_plan_set_free(set);
            set = multicast_plans(ranks, &seed, &name, &collective);
        }
        if (set == NULL)
            continue;
        int shared = rondo_conditions_always_shared(&set->conditions);
        int rounds = 1 + (int) (played_random(&seed) % 2);
        for (int k = 0; k < rounds; k++)
            mutate(set, &seed);
        uint64_t tried = seed;
        if (rondo_verify_plans(set, name, &limits, shared) == RONDO_SUCCESS) {
            accepted++;
            for (uint32_t play = 0; play < 4; play++)
                if (!plans_play(set, shared, 1 + play * set->conditions.block_chunks / 3, tried + play))
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_played),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
