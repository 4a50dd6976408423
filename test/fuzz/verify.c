/*
 * The verifier on plans that are nearly right: the input names a library algorithm and overwrites bytes of its instructions,
 * waits and connections. Each plan that the verifier accepts is simulated with numbers in random turns
 * (test/unit/support/plans.h) and must compute the right result.
 */
#include "test/unit/support/plans.h"

#include "lib/algorithms/algorithms.h"
#include "lib/base/error.h"
#include "lib/program/program.h"
#include "rondo_program.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* rank, field, position (2), value, and the second byte of a 16-bit value */
#define CHANGE_BYTES 6

/* Overwrites what CHANGE_BYTES bytes say. */
static void change(struct rondo_plan_set *set, const uint8_t *data)
{
    struct rondo_plan *plan = set->plans[data[0] % set->conditions.ranks];
    struct rondo_program *program = plan->program;
    uint32_t where = (uint32_t) data[2] << 8 | data[3];
    uint32_t instructions =
        (program->dependency_offset - program->instruction_offset) / (uint32_t) sizeof(struct rondo_instruction);
    uint32_t dependencies = (program->bytes - program->dependency_offset) / (uint32_t) sizeof(struct rondo_dependency);
    struct rondo_instruction *list = (struct rondo_instruction *) (void *) ((char *) program + program->instruction_offset);
    struct rondo_dependency *waits = (struct rondo_dependency *) (void *) ((char *) program + program->dependency_offset);
    if (data[1] < 160 && instructions > 0) {
        list += where % instructions;
        ((uint8_t *) list)[data[1] % sizeof(struct rondo_instruction)] = data[4];
    } else if (data[1] < 190 && instructions > 1) { /* swaps two steps */
        struct rondo_instruction saved = list[where % (instructions - 1)];
        list[where % (instructions - 1)] = list[where % (instructions - 1) + 1];
        list[where % (instructions - 1) + 1] = saved;
    } else if (data[1] < 220 && dependencies > 0) {
        *(data[1] % 2 == 0 ? &waits[where % dependencies].block : &waits[where % dependencies].step) =
            (uint16_t) (data[5] << 8 | data[4]);
    } else if (program->ends > 0) {
        struct rondo_connection *end = &plan->connections[where % program->ends];
        if (data[1] % 4 == 0)
            end->peer = (int8_t) data[4];
        else if (data[1] % 4 == 1)
            end->channel = (uint16_t) (data[5] << 8 | data[4]);
        else if (data[1] % 4 == 2)
            end->direction = data[4];
        else
            end->protocol = data[4];
    }
}

/* Whether plans.h can simulate the plan: no signals, no direct access. */
static int is_playable(const struct rondo_plan_set *set)
{
    for (uint32_t rank = 0; rank < set->conditions.ranks; rank++) {
        const struct rondo_program *program = set->plans[rank]->program;
        for (uint32_t b = 0; b < program->blocks; b++)
            for (uint32_t i = 0; i < played_block(set->plans[rank], b)->instructions; i++)
                if (played_instruction(set->plans[rank], b, i)->flags & ~(RONDO_FINISH | RONDO_NOTIFY | RONDO_EXCHANGE))
                    return 0;
    }
    return 1;
}

/* Builds any algorithm of the library, written in the language or by hand. */
static struct rondo_plan_set *make(const uint8_t *data)
{
    int count;
    const struct rondo_algorithm *table = rondo_algorithm_table(&count), *algorithm = &table[data[0] % count];
    struct rondo_shape shape = {.size = 2 + data[2] % 4, .channels = 1 + data[3] % 2, .root = data[4] % (2 + data[2] % 4)};
    int kind = data[1] % RONDO_KIND_SEND_TO;
    while (!(algorithm->kinds >> kind & 1))
        kind = (kind + 1) % RONDO_KINDS;
    shape.kind = (enum rondo_kind) kind;
    if (kind == RONDO_KIND_BARRIER)
        shape.channels = 1;
    if (algorithm->build == rondo_build_local || kind >= RONDO_KIND_SEND_TO || algorithm->several_hosts)
        return NULL;
    if (algorithm->build != NULL)
        return plans_by_hand(algorithm, &shape);
    struct rondo_compile_options options = {
        .blocks = 1u + data[5] % 8, .slots = PLAYED_SLOTS, .exchanges = data[3] >> 7, .apart = data[3] >> 6 & 1};
    struct rondo_plan_set *set = NULL;
    rondo_program_t program;
    if (rondo_program_builtin(algorithm->name, rondo_kind_name(shape.kind), shape.size, shape.channels, shape.root, &program) !=
        RONDO_SUCCESS)
        return NULL;
    if (plans_compile(program, &options, -1, &set) != RONDO_SUCCESS)
        abort();
    rondo_program_destroy(program);
    return set;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct rondo_verify_limits limits = {PLAYED_SLOTS, 64, 0};
    struct rondo_plan_set *set = bytes < 6 ? NULL : make(data);
    if (set == NULL)
        return 0;
    limits.concurrent = data[5] >> 6; /* 0: all blocks are preemptible */
    for (size_t at = 6; at + CHANGE_BYTES <= bytes && at < 6 + 8 * CHANGE_BYTES; at += CHANGE_BYTES)
        change(set, data + at);
    for (int shared = 0; shared < 2; shared++) {
        if (shared ? !rondo_conditions_may_share(&set->conditions) : rondo_conditions_always_shared(&set->conditions))
            continue;
        if (rondo_verify_plans(set, "fuzz", &limits, shared) != RONDO_SUCCESS) {
            if (rondo_last_error()[0] == '\0')
                abort();
        } else if (limits.concurrent == 0 && is_playable(set)) {
            for (uint32_t play = 0; play < 2; play++)
                if (!plans_play(set, shared, 1 + play * set->conditions.block_chunks / 2, 7 + play))
                    abort(); /* accepted, but wrong */
        }
    }
    rondo_plan_set_free(set);
    return 0;
}
