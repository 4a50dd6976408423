/*
 * The recorder of a block's events (RONDO_TRACE): a ring in host memory that the block alone writes and the host's poller
 * reads. The block never waits for the reader and never reads what the reader writes: an event that is not read in time is
 * overwritten, and the reader counts it. Without a trace a record costs one branch.
 */
#ifndef RONDO_DEVICE_DAEMON_TRACE_H
#define RONDO_DEVICE_DAEMON_TRACE_H

#include "device/abi/platform.h"
#include "device/abi/structures.h"

enum rondo_trace_kind {
    RONDO_TRACE_FETCH = 1, /* block 0 has taken a submission; detail: tasks of the block, this one included */
    RONDO_TRACE_BEGIN,     /* the same, and as its task is the only one, a visit to it begins (recorded in FETCH's place) */
    RONDO_TRACE_RESUME,    /* a visit to a task begins */
    RONDO_TRACE_PREEMPT,   /* it ends: stuck; detail, here and of the next two: how often the visit got stuck */
    RONDO_TRACE_PART,      /* it ends: the block's part of the operation is done */
    RONDO_TRACE_COMPLETE,  /* it ends, and so does the operation: this block was the last */
    RONDO_TRACE_ENTER,     /* the block takes part in a daemon: where another record of its first round does not say so */
    RONDO_TRACE_QUIT       /* and leaves it; detail: its tasks */
};

/* Each word ends with its record's lap (how often the ring has been gone round, + 1), so that the reader knows of each word by
 * itself whether it is the one it expects: no order between the two stores is needed, nor between records.
 * first: nanoseconds (52 bits) | lap. second: kind (4), the block has just entered (1), detail (15), lane (14), operation's
 * number (18) | lap. */
#define RONDO_TRACE_LAP_BITS     12
#define RONDO_TRACE_TIME_MASK    (((uint64_t) 1 << 52) - 1)
#define RONDO_TRACE_LAP(word)    ((uint32_t) (word) &0xfff)
#define RONDO_TRACE_TIME(word)   ((word) >> 12)
#define RONDO_TRACE_KIND(word)   ((uint32_t) ((word) >> 60))
#define RONDO_TRACE_ENTERED      ((uint64_t) 1 << 59)
#define RONDO_TRACE_DETAIL(word) ((uint32_t) ((word) >> 44) & 0x7fff)
#define RONDO_TRACE_LANE(word)   ((uint32_t) ((word) >> 30) & 0x3fff)
#define RONDO_TRACE_NUMBER(word) ((uint32_t) ((word) >> 12) & 0x3ffff)
#define RONDO_TRACE_INDEX_LAP(i) ((uint32_t) ((i) / RONDO_TRACE_DEPTH + 1) & 0xfff)

/* A task in the terms of the second word, with its program block for a detail. Never 0. */
#define RONDO_TRACE_TASK(lane, program_block, number)                                                                          \
    ((uint64_t) 1 << 60 | (uint64_t) ((program_block) &0xffff) << 44 | (uint64_t) (lane) << 30 |                               \
     ((uint64_t) (number) &0x3ffff) << 12)
#define RONDO_TRACE_TASK_MASK ((((uint64_t) 1 << 44) - 1) & ~(uint64_t) 0xfff)

/* A block that has no other task comes back to the one in which it was stuck. That is one visit, so that a short wait needs
 * no record of its own; the visit ends when it has been stuck so often, so that long waits are recorded. */
#define RONDO_TRACE_STUCK_MAX 4

/* The ring's next lines are not in this core's cache, and a store to them takes long: they are prefetched. */
#define RONDO_TRACE_AHEAD 8 /* records */
#if defined(__CUDACC__)
#define RONDO_TRACE_CALL(words) ((void) (words))
#else
#define RONDO_TRACE_CALL(words) __builtin_prefetch(words, 1)
#endif

/* Writes the records that have been held back. */
RONDO_RARE void rondo_trace_write(struct rondo_block *block)
{
    for (uint32_t k = 0; k < block->held; k++) {
        uint64_t index = block->traced++, lap = RONDO_TRACE_INDEX_LAP(index);
        uint64_t *words = block->trace->words[index % RONDO_TRACE_DEPTH];
        struct rondo_pair record = {block->held_words[k][0] | lap, block->held_words[k][1] | lap};
        rondo_store_relaxed_pair(words, record);
        RONDO_TRACE_CALL(block->trace->words[(index + RONDO_TRACE_AHEAD) % RONDO_TRACE_DEPTH]);
    }
    block->held = 0;
}

RONDO_FUNCTION void rondo_trace_hold(struct rondo_block *block, uint64_t time, uint64_t what)
{
    uint64_t *words = block->held_words[block->held];
    words[0] = time << RONDO_TRACE_LAP_BITS;
    words[1] = what;
    if (++block->held == RONDO_TRACE_HELD)
        rondo_trace_write(block);
}

RONDO_FUNCTION uint64_t rondo_trace_what(struct rondo_block *block, enum rondo_trace_kind kind, uint32_t detail, uint64_t task)
{
    uint64_t what = (uint64_t) kind << 60 | (uint64_t) (detail < 0x7fff ? detail : 0x7fff) << 44;
    if (block->entering)
        what |= RONDO_TRACE_ENTERED;
    block->entering = 0;
    return what | (task & RONDO_TRACE_TASK_MASK);
}

/* Notes the beginning of a visit, for other ranks wait for what the block does in it. The record is made before the next
 * one. */
RONDO_FUNCTION void rondo_trace_begin_visit(struct rondo_block *block, enum rondo_trace_kind kind, uint64_t task)
{
    block->visit = task;
    block->visit_began = rondo_clock_ns();
    block->visit_kind = kind;
}

RONDO_FUNCTION void rondo_trace_settle(struct rondo_block *block)
{
    enum rondo_trace_kind kind = (enum rondo_trace_kind) block->visit_kind;
    if (kind != 0)
        rondo_trace_hold(block, block->visit_began, rondo_trace_what(block, kind, kind == RONDO_TRACE_BEGIN, block->visit));
    block->visit_kind = 0;
}

RONDO_FUNCTION void rondo_trace_record(struct rondo_block *block, enum rondo_trace_kind kind, uint32_t detail, uint64_t task,
                                       uint64_t time)
{
    rondo_trace_settle(block);
    rondo_trace_hold(block, time, rondo_trace_what(block, kind, detail, task));
}

/* kind: how the visit ends. A visit in which the block did nothing yet (BEGIN) is not recorded. */
RONDO_FUNCTION void rondo_trace_end_visit(struct rondo_block *block, enum rondo_trace_kind kind, uint64_t time)
{
    if (kind != RONDO_TRACE_PREEMPT || block->visit_stuck > 0)
        rondo_trace_record(block, kind, block->visit_stuck, block->visit, time);
    rondo_trace_settle(block);
    block->visit = 0;
    block->visit_stuck = 0;
}

/* Whether the task is the only one, so that the next visit is to it. */
RONDO_FUNCTION int rondo_trace_is_only(const struct rondo_block *block, uint64_t task)
{
    const struct rondo_task *first = block->near;
    return block->tasks == 1 && first->known && RONDO_TRACE_TASK(first->lane, first->program_block, first->number) == task;
}

RONDO_FUNCTION void rondo_trace_note(struct rondo_block *block, enum rondo_trace_kind kind, uint64_t task)
{
    switch (kind) {
    case RONDO_TRACE_FETCH:
        if (rondo_trace_is_only(block, task))
            rondo_trace_begin_visit(block, RONDO_TRACE_BEGIN, task);
        else
            rondo_trace_record(block, kind, block->tasks, task, rondo_clock_ns());
        return;
    case RONDO_TRACE_RESUME:
        if (block->visit == task)
            return;
        if (block->visit != 0)
            rondo_trace_end_visit(block, RONDO_TRACE_PREEMPT, rondo_clock_ns());
        rondo_trace_begin_visit(block, kind, task);
        return;
    case RONDO_TRACE_PREEMPT:
        block->visit_stuck++;
        if (block->tasks > 1 || block->visit_stuck == RONDO_TRACE_STUCK_MAX)
            rondo_trace_end_visit(block, kind, rondo_clock_ns());
        return;
    case RONDO_TRACE_ENTER:
        block->entering = 1;
        return;
    default: {
        uint64_t now = rondo_clock_ns();
        rondo_trace_end_visit(block, RONDO_TRACE_PREEMPT, now);
        rondo_trace_record(block, kind, block->tasks, 0, now);
        rondo_trace_write(block);
    }
    }
}

/* number: of the operation in its lane, its lowest bits are kept. */
RONDO_FUNCTION void rondo_trace(struct rondo_block *block, enum rondo_trace_kind kind, uint32_t lane, uint32_t program_block,
                                uint64_t number)
{
    if (block->trace != NULL)
        rondo_trace_note(block, kind, RONDO_TRACE_TASK(lane, program_block, number));
}

/* The time at which a visit ends for good; 0 without a trace. */
RONDO_FUNCTION uint64_t rondo_trace_now(const struct rondo_block *block)
{
    return block->trace != NULL ? rondo_clock_ns() : 0;
}

/* A GPU's writes to the host are made one after the other: those of all its blocks would come before that of the completion,
 * which is awaited. So a block writes what it has when it has been idle for so long. */
#if defined(__CUDACC__)
#define RONDO_TRACE_LATER_NS 1000
#else
#define RONDO_TRACE_LATER_NS 0
#endif

/* Records the end of a part (PART) or of an operation (COMPLETE), once no thread waits for the block any more. */
RONDO_FUNCTION void rondo_trace_done(struct rondo_block *block, enum rondo_trace_kind kind, uint64_t time)
{
    if (block->trace == NULL)
        return;
    rondo_trace_end_visit(block, kind, time);
    if (RONDO_TRACE_LATER_NS == 0)
        rondo_trace_write(block);
}

/* now: the time, while the block has nothing to do; see RONDO_TRACE_HELD. */
RONDO_FUNCTION void rondo_trace_idle(struct rondo_block *block, uint64_t since, uint64_t now)
{
    if (RONDO_TRACE_LATER_NS != 0 && block->held > 0 && now - since > RONDO_TRACE_LATER_NS)
        rondo_trace_write(block);
}
/* Writes what is held back: no thread waits for the block, or this may be its last chance. */
RONDO_FUNCTION void rondo_trace_tell(struct rondo_block *block)
{
    if (block->trace == NULL)
        return;
    rondo_trace_settle(block);
    if (block->held > 0)
        rondo_trace_write(block);
}

/* Records the entering at the end of a first round that had nothing to do. */
RONDO_FUNCTION void rondo_trace_entered(struct rondo_block *block)
{
    if (block->trace != NULL && block->entering)
        rondo_trace_record(block, RONDO_TRACE_ENTER, 0, 0, rondo_clock_ns());
}

#endif
