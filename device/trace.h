/*
 * The recorder of a block's doings (RONDO_TRACE): a ring in host memory that the block alone writes and the host's poller
 * reads. The block never waits for the reader and never reads what the reader writes: what is not read in time is overwritten,
 * and the reader counts it. Without a trace a record costs one branch.
 */
#ifndef RONDO_DEVICE_TRACE_H
#define RONDO_DEVICE_TRACE_H

#include "platform.h"
#include "structures.h"

enum rondo_trace_kind {
    RONDO_TRACE_FETCH = 1, /* block 0 has taken a submission; queue: tasks of the block, this one included */
    RONDO_TRACE_RESUME,    /* a visit to a task begins */
    RONDO_TRACE_PREEMPT,   /* it ends: stuck */
    RONDO_TRACE_PART,      /* it ends: the block's part of the operation is done */
    RONDO_TRACE_COMPLETE,  /* the operation is done: this block was the last */
    RONDO_TRACE_ENTER,     /* the block takes part in a daemon */
    RONDO_TRACE_QUIT       /* and leaves it */
};

/* Each word ends with its record's lap (how often the ring has been gone round, + 1), so that the reader knows of each word by
 * itself whether it is the one it expects: no order between the two stores is needed, nor between records.
 * first: nanoseconds (52 bits) | lap. second: kind (4), program block (8), tasks (8), lane (14), operation's number (18) | lap.
 */
#define RONDO_TRACE_LAP_BITS      12
#define RONDO_TRACE_TIME_MASK     (((uint64_t) 1 << 52) - 1)
#define RONDO_TRACE_LAP(word)     ((uint32_t) (word) &0xfff)
#define RONDO_TRACE_TIME(word)    ((word) >> 12)
#define RONDO_TRACE_KIND(word)    ((uint32_t) ((word) >> 60))
#define RONDO_TRACE_PROGRAM(word) ((uint32_t) ((word) >> 52) & 0xff)
#define RONDO_TRACE_TASKS(word)   ((uint32_t) ((word) >> 44) & 0xff)
#define RONDO_TRACE_LANE(word)    ((uint32_t) ((word) >> 30) & 0x3fff)
#define RONDO_TRACE_NUMBER(word)  ((uint32_t) ((word) >> 12) & 0x3ffff)
#define RONDO_TRACE_INDEX_LAP(i)  ((uint32_t) ((i) / RONDO_TRACE_DEPTH + 1) & 0xfff)

RONDO_RARE void rondo_trace_record(struct rondo_block *block, uint64_t what, uint64_t number)
{
    uint64_t index = block->traced++, lap = RONDO_TRACE_INDEX_LAP(index);
    uint64_t *words = block->trace->words[index % RONDO_TRACE_DEPTH];
    uint64_t tasks = block->tasks < 255 ? block->tasks : 255;
    rondo_store_relaxed(&words[0], rondo_clock_ns() << RONDO_TRACE_LAP_BITS | lap);
    rondo_store_relaxed(&words[1], what | tasks << 44 | (number & 0x3ffff) << RONDO_TRACE_LAP_BITS | lap);
}

/* number: of the operation in its lane, its lowest bits are kept. */
RONDO_FUNCTION void rondo_trace(struct rondo_block *block, enum rondo_trace_kind kind, uint32_t lane, uint32_t program_block,
                                uint64_t number)
{
    if (block->trace != NULL)
        rondo_trace_record(
            block, (uint64_t) kind << 60 | (uint64_t) (program_block & 0xff) << 52 | (uint64_t) (lane & 0x3fff) << 30, number);
}

#endif
