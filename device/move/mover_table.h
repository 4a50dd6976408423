/*
 * The one table of GPU movers: which mover carries out a slice operation, and which loop a kernel on a stream runs for an
 * operation. Every choice is a walk over a table below, first row first; no other code chooses. Single source: the host takes
 * the launch section's decisions, the device takes those about slice operations, and tests take both. Relies on device/abi.
 *
 * Slice operations, RONDO_MOVERS. A row is X(NAME, condition, text): RONDO_MOVER_NAME is the row's number, and
 * condition(slice_op, facts) says whether the row takes the slice operation if no row before it does. The last row takes all.
 * "Flagged" slice operations have LL packets or LL128 lines among their sources or remotes (rondo_mover_is_flagged).
 *
 *   row           type, operator                sources    alignment              protocol          run by
 *   move_ll_small usual sums, copies            up to 8    any, 8 B a thread      LL                device/move/move_ll_small.h
 *   move_ll       usual sums, copies            up to 8    8 B, 40 B a thread     LL                device/move/move_ll.h
 *   move_ll128    usual sums, averages, copies  up to 8    16 B                   LL128             device/move/move_ll128.h
 *   move_vector   usual sums, copies            up to 8    16 B                   simple, direct    device/move/move_vector.h
 *   codec         floats                        any        element                compressed        device/codec/cuda_codec.h
 *   move_general  all                           up to 64   element                all               device/move/move_general.h
 *
 * Launches, RONDO_LAUNCH_MOVERS. RONDO_WARP_MODE_NAME is what struct rondo_operation says; condition(facts) as above.
 *
 *   row               type, operator            alignment  protocol               run by
 *   move_tma          usual sums, averages      16 B       TMA, sm_90, one launch device/cuda/move_tma.h
 *   warp interpreter  usual sums, averages      16 B       LL128, one slice       device/engine/warp_interpreter.h
 *   engine            all                       element    all                    device/engine/engine.h, a mover each slice
 */
#ifndef RONDO_DEVICE_MOVE_MOVER_TABLE_H
#define RONDO_DEVICE_MOVE_MOVER_TABLE_H

#include "device/abi/qualifiers.h"
#include "device/abi/slice_operation.h"
#include "device/abi/structures.h"
#include "rondo.h"

/* Packets of a thread in move_ll: a slot's, of as many threads as a block may have (RONDO_GPU_LL_BYTES). Large functions are
 * slow to fetch, so there are no more. */
#define RONDO_LL_ROWS         5
#define RONDO_LL_PACKET_DATA  8u  /* bytes of data in a packet */
#define RONDO_VECTOR_BYTES    16u /* of one access of move_vector and move_ll128 */
#define RONDO_FLAGGED_SOURCES 8   /* most sources of move_ll_small, move_ll and move_ll128 */
#define RONDO_VECTOR_SOURCES  8   /* most sources of move_vector */

/* ---- slice operations ---- */

#define RONDO_MOVERS(X)                                                                                                        \
    X(LL_SMALL, rondo_mover_takes_ll_small, "LL packets, one a thread at most: all in registers")                              \
    X(LL, rondo_mover_takes_ll, "LL packets, up to five a thread, whole and aligned: all in registers")                        \
    X(LL128, rondo_mover_takes_ll128, "LL128 lines, whole aligned vectors: each warp by itself")                               \
    X(VECTOR, rondo_mover_takes_vector, "plain data, whole aligned vectors: software-pipelined loads")                         \
    X(CODEC, rondo_mover_takes_codec, "slots with ZFP streams")                                                                \
    X(GENERAL, rondo_mover_takes_general, "everything else: any type, operator, alignment and mixture")

enum rondo_mover {
#define RONDO_MOVER_ENUMERATOR(name, condition, text) RONDO_MOVER_##name,
    RONDO_MOVERS(RONDO_MOVER_ENUMERATOR)
#undef RONDO_MOVER_ENUMERATOR
        RONDO_MOVERS_COUNT
};

/* The rows up to here need no slot's address: slots with flags are aligned, wherever they lie. */
#define RONDO_MOVER_RESOLVED RONDO_MOVER_VECTOR

/* What a walk over the table knows beside the slice operation. */
struct rondo_mover_facts {
    uint32_t threads; /* of the worker group */
    int flagged;      /* rondo_mover_is_flagged, and the first source without flags has its address, or there is none */
    int lines;        /* flags are those of LL128 */
};

/* Whether the slice operation has flags, and a type and an operator that the movers of flagged data have in registers. */
RONDO_FUNCTION int rondo_mover_is_flagged(const struct rondo_slice_op *slice_op)
{
    int sums = slice_op->op == RONDO_SUM && rondo_is_usual_type(slice_op->type);
    int averages = slice_op->lines && slice_op->type != RONDO_INT32 && slice_op->type != RONDO_UINT32;
    return (slice_op->ll_sources | slice_op->ll_remotes) != 0 &&
           (slice_op->average == 0 || (averages && slice_op->sources > 1)) &&
           (slice_op->sources == 1 || (sums && slice_op->sources <= RONDO_FLAGGED_SOURCES));
}

/* Whether local, the length in bytes and every address without flags are multiples of unit, a power of two. */
RONDO_FUNCTION int rondo_mover_is_aligned(const struct rondo_slice_op *slice_op, uintptr_t unit)
{
    uintptr_t bits = (uintptr_t) slice_op->local | (uintptr_t) (slice_op->count * slice_op->element_bytes);
    for (uint32_t s = 0; s < slice_op->sources; s++)
        bits |= slice_op->ll_sources >> s & 1 ? 0 : (uintptr_t) slice_op->source[s];
    for (uint32_t r = 0; r < slice_op->remotes; r++)
        bits |= slice_op->ll_remotes >> r & 1 ? 0 : (uintptr_t) slice_op->remote[r];
    return bits % unit == 0;
}

RONDO_FUNCTION int rondo_mover_takes_ll_small(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts)
{
    return facts.flagged && !facts.lines && slice_op->count * slice_op->element_bytes <= facts.threads * RONDO_LL_PACKET_DATA;
}

RONDO_FUNCTION int rondo_mover_takes_ll(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts)
{
    return facts.flagged && !facts.lines &&
           slice_op->count * slice_op->element_bytes <= (uint64_t) facts.threads * RONDO_LL_PACKET_DATA * RONDO_LL_ROWS &&
           rondo_mover_is_aligned(slice_op, RONDO_LL_PACKET_DATA);
}

RONDO_FUNCTION int rondo_mover_takes_ll128(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts)
{
    return facts.flagged && facts.lines && rondo_mover_is_aligned(slice_op, RONDO_VECTOR_BYTES);
}

/* Addresses are known. */
RONDO_FUNCTION int rondo_mover_takes_vector(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts)
{
    const int sums = slice_op->op == RONDO_SUM && rondo_is_usual_type(slice_op->type);
    (void) facts;
    if ((slice_op->ll_sources | slice_op->ll_remotes) != 0 || slice_op->rate != 0 || slice_op->average != 0 ||
        (slice_op->sources != 1 && !(sums && slice_op->sources <= RONDO_VECTOR_SOURCES)) ||
        slice_op->count * slice_op->element_bytes % RONDO_VECTOR_BYTES != 0)
        return 0;
    uintptr_t bits = (uintptr_t) slice_op->local;
    for (uint32_t s = 0; s < slice_op->sources; s++)
        bits |= (uintptr_t) slice_op->source[s];
    for (uint32_t r = 0; r < slice_op->remotes; r++)
        bits |= (uintptr_t) slice_op->remote[r];
    return bits % RONDO_VECTOR_BYTES == 0 && (slice_op->local != NULL || slice_op->remotes > 0);
}

RONDO_FUNCTION int rondo_mover_takes_codec(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts)
{
    (void) facts;
    return rondo_slice_op_is_coded(slice_op);
}

RONDO_FUNCTION int rondo_mover_takes_general(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts)
{
    (void) slice_op;
    (void) facts;
    return 1;
}

/* Walks the rows [first, end), of which a kernel passes constants: its compiler leaves the other rows out. Returns the first
 * row that takes the slice operation; end if none does. */
RONDO_FUNCTION enum rondo_mover rondo_mover_choose(const struct rondo_slice_op *slice_op, struct rondo_mover_facts facts,
                                                   enum rondo_mover first, enum rondo_mover end)
{
#define RONDO_MOVER_ROW(name, condition, text)                                                                                 \
    if (RONDO_MOVER_##name >= first && RONDO_MOVER_##name < end && condition(slice_op, facts))                                 \
        return RONDO_MOVER_##name;
    RONDO_MOVERS(RONDO_MOVER_ROW)
#undef RONDO_MOVER_ROW
    return end;
}

/* ---- launches ---- */

#define RONDO_LAUNCH_MOVERS(X)                                                                                                 \
    X(TMA, rondo_launch_suits_tma, "bulk copies through shared memory (device/cuda/move_tma.h)")                               \
    X(LINES, rondo_launch_suits_warps, "each warp interprets the instructions by itself (device/engine/warp_interpreter.h)")   \
    X(NOT, rondo_launch_suits_engine, "the engine, slice operation by slice operation")

/* What is known of an operation when it has been bound to a lane: by the host. */
struct rondo_launch_facts {
    const struct rondo_operation *operation; /* complete but for its warp_mode */
    const struct rondo_program *program;
    const struct rondo_program_block *blocks; /* the program's */
    const struct rondo_instruction *instructions;
    int repeats; /* a connector is named by more than one end of a block */
};

/* Whether all chunks, and their parts in slots, begin at multiples of RONDO_SLICE_OP_ALIGNMENT bytes; whole: and end there. */
RONDO_FUNCTION int rondo_launch_is_even(const struct rondo_launch_facts *facts, int whole)
{
    const struct rondo_operation *operation = facts->operation;
    uint64_t bits = operation->tile | operation->slice;
    for (int b = 0; b < RONDO_BUFFERS; b++) {
        const struct rondo_layout *layout = &operation->layouts[b];
        if (layout->table != NULL || (uintptr_t) operation->buffers[b] % RONDO_SLICE_OP_ALIGNMENT != 0)
            return 0;
        if (whole || layout->group_chunks > 1) /* others begin where one ends */
            bits |= layout->chunk_count;
        if (whole || facts->program->chunks[b] > layout->group_chunks)
            bits |= layout->group_count;
    }
    return bits * operation->element_bytes % RONDO_SLICE_OP_ALIGNMENT == 0;
}

/* Whether move_tma and the warp interpreter know what the instruction does, and have its type and operator in registers. */
RONDO_FUNCTION int rondo_launch_interprets(const struct rondo_operation *operation, const struct rondo_instruction *instruction)
{
    const int type = operation->type, receives = instruction->actions & RONDO_RECEIVE;
    if ((instruction->flags & ~(RONDO_FINISH | RONDO_EXCHANGE)) != 0 || instruction->dependencies > 0 ||
        instruction->count > 1 || (receives && instruction->receive_count >= RONDO_WARP_WIDTH) ||
        ((instruction->actions & RONDO_SEND) && instruction->send_count > RONDO_WARP_WIDTH))
        return 0;
    if (!(instruction->actions & RONDO_REDUCE) && (!receives || instruction->receive_count == 1))
        return !(instruction->flags & RONDO_FINISH);
    return operation->op == RONDO_SUM && rondo_is_usual_type(type) &&
           (operation->average == 0 || (type != RONDO_INT32 && type != RONDO_UINT32));
}

/* Whether every block has so few ends and instructions that they fit in shared memory, and all can be interpreted. */
RONDO_FUNCTION int rondo_launch_interprets_all(const struct rondo_launch_facts *facts)
{
    for (uint32_t b = 0; b < facts->program->blocks; b++) {
        const struct rondo_program_block *block = &facts->blocks[b];
        if (block->ends > RONDO_WARP_ENDS || block->instructions > RONDO_WARP_INSTRUCTIONS || block->instructions == 0)
            return 0;
        for (uint32_t i = 0; i < block->instructions; i++)
            if (!rondo_launch_interprets(facts->operation, &facts->instructions[block->instruction_first + i]))
                return 0;
    }
    return 1;
}

/* Whether some block executes more than one instruction, over all tiles. */
RONDO_FUNCTION int rondo_launch_has_steps(const struct rondo_launch_facts *facts)
{
    for (uint32_t b = 0; b < facts->program->blocks; b++)
        if (facts->blocks[b].instructions * facts->operation->tiles > 1)
            return 1;
    return 0;
}

RONDO_FUNCTION int rondo_launch_suits_tma(const struct rondo_launch_facts *facts)
{
    return facts->operation->protocol == RONDO_PROTOCOL_TMA && !facts->repeats && rondo_launch_is_even(facts, 1) &&
           rondo_launch_interprets_all(facts);
}

/* What is one slice operation a block in whole vectors and lines has a shorter way (rondo_workers_run_ahead). */
RONDO_FUNCTION int rondo_launch_suits_warps(const struct rondo_launch_facts *facts)
{
    return facts->operation->protocol == RONDO_PROTOCOL_LL128 && facts->operation->slices == 1 && !facts->repeats &&
           rondo_launch_is_even(facts, 0) && rondo_launch_interprets_all(facts) &&
           (rondo_launch_has_steps(facts) || !rondo_launch_is_even(facts, 1));
}

RONDO_FUNCTION int rondo_launch_suits_engine(const struct rondo_launch_facts *facts)
{
    (void) facts;
    return 1;
}

/* By the host, when an operation has been bound: the first row that suits it, for struct rondo_operation's warp_mode. */
RONDO_FUNCTION enum rondo_warp_mode rondo_launch_choose(const struct rondo_launch_facts *facts)
{
#define RONDO_LAUNCH_ROW(name, condition, text)                                                                                \
    if (condition(facts))                                                                                                      \
        return RONDO_WARP_MODE_##name;
    RONDO_LAUNCH_MOVERS(RONDO_LAUNCH_ROW)
#undef RONDO_LAUNCH_ROW
    return RONDO_WARP_MODE_NOT;
}

/* The part of move_tma's row that the ranks must agree upon before they connect by its protocol. bulk_copies: all ranks' GPUs
 * have them (sm_90); streamed: the operation is executed by kernels on streams; bytes: of one rank's chunk. Where buffers begin
 * is not part of it, for a rank knows its own alone: one whose buffers are not aligned takes the engine, through the same
 * slots. */
RONDO_FUNCTION int rondo_launch_may_tma(int bulk_copies, int streamed, uint64_t bytes)
{
    return bulk_copies && streamed && bytes % RONDO_SLICE_OP_ALIGNMENT == 0;
}

/* Which loop a launch's kernel runs for an operation whose mode is given: that loop if the kernel has it, else the engine.
 * all_tma: every operation of the launch has RONDO_WARP_MODE_TMA; all_lines: every one has LL128 connectors; grouped: blocks go
 * from one part to another, which the engine alone can leave unfinished. */
RONDO_FUNCTION enum rondo_warp_mode rondo_launch_mode(uint32_t mode, int grouped, int all_tma, int all_lines)
{
    if (grouped)
        return RONDO_WARP_MODE_NOT;
    if (all_tma && mode == RONDO_WARP_MODE_TMA)
        return RONDO_WARP_MODE_TMA;
    return all_lines && mode == RONDO_WARP_MODE_LINES ? RONDO_WARP_MODE_LINES : RONDO_WARP_MODE_NOT;
}

#endif
