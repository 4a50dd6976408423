/*
 * The data that host and device share: programs, operations, lanes, ends of connectors, contexts, queues, the daemon. Plain
 * structures in device memory (queues in host memory) without pointers to anything that the device cannot reach.
 */
#ifndef RONDO_DEVICE_ABI_STRUCTURES_H
#define RONDO_DEVICE_ABI_STRUCTURES_H

#include <stddef.h>
#include <stdint.h>

#define RONDO_CACHE_LINE 64

/* ---- programs ---- */

enum rondo_buffer { RONDO_INPUT, RONDO_OUTPUT, RONDO_SCRATCH, RONDO_BUFFERS };

/* A fused primitive is a set of actions: recv_reduce_copy_send is all four. Its sources are what it receives, then (with
 * REDUCE, or if it does not receive) its source chunk, then (with REDUCE and without RECEIVE) its destination chunk; the result
 * is stored to the destination chunk (with COPY) and into the slots of its send connectors (with SEND). */
enum rondo_action { RONDO_RECEIVE = 1, RONDO_REDUCE = 2, RONDO_COPY = 4, RONDO_SEND = 8 };

/* Compression's residuals, where an operation feeds them back (docs/guide/compression.md). SHIFT: what is encoded is held by
 * 2^shift ranks, of which each keeps its part of what is lost. */
enum rondo_feedback {
    RONDO_FEEDBACK_TAKE = 1, /* add the residual to the source chunk's values */
    RONDO_FEEDBACK_KEEP = 2, /* what encoding loses becomes the residual */
    RONDO_FEEDBACK_ADD = 4,  /* ... is added to it */
    RONDO_FEEDBACK_SHIFT = 4 /* bits from here on */
};

enum rondo_instruction_flag {
    RONDO_FINISH = 1,      /* the result is complete: apply the operator's last step (AVG's division) */
    RONDO_NOTIFY = 2,      /* instructions of other blocks depend on this one */
    RONDO_SIGNAL = 4,      /* moves no chunk but one slot, once an operation, which says where this rank's buffers are */
    RONDO_DIRECT_IN = 8,   /* received data are read where they lie, in the peer's input; the signals around order it */
    RONDO_DIRECT_OUT = 16, /* sent data are written straight into the outputs of the peers of its receiving ends, which have
                              signalled; likewise */
    RONDO_EXCHANGE = 32,   /* the source chunk is sent before anything is waited for; where the worker group polls LL data */
    /* Of operations that compress: */
    RONDO_RECODE = 64, /* what is sent on is encoded anew, and differs from what stays on this rank */
    RONDO_ROUND = 128  /* a copy keeps what a receiver of it would read; what is received is rounded as the type is stored,
                          because other ranks go on with what they have stored */
};

struct rondo_instruction {
    uint8_t actions, flags;
    uint8_t source_buffer, destination_buffer; /* enum rondo_buffer */
    uint32_t source_index, destination_index;  /* chunks */
    uint16_t count;                            /* consecutive chunks */
    uint8_t receive_first, receive_count;      /* of the block's ends */
    uint8_t send_first, send_count;
    uint8_t local_place;   /* place of the local source among the received ones: all ranks reduce in one order */
    uint8_t feedback;      /* enum rondo_feedback, of the residuals at the place of the source chunk */
    uint32_t remote_index; /* direct: the peer's chunk, of its input (in) or its output (out) */
    uint16_t dependency_first, dependencies; /* into the program's dependency list */
    uint32_t slot_chunk;                     /* of a multicast slot with more chunks than are received: the first received */
} __attribute__((aligned(16)));

struct rondo_dependency {
    uint16_t block, step; /* wait until that block has executed this step for the same tile */
};

#define RONDO_PROGRAM_ENDS_MAX 255 /* of a block */
struct rondo_program_block {
    uint32_t instruction_first, instructions;
    uint32_t end_first, ends; /* the connectors' ends that this block alone uses in the program */
};

/* One rank's program: this header, then blocks, instructions and dependencies in one piece of memory, uploaded as it is. */
struct rondo_program {
    uint32_t bytes;
    uint32_t blocks, ends;
    uint32_t block_offset, instruction_offset, dependency_offset; /* bytes from the start of the header */
    uint32_t chunks[RONDO_BUFFERS];
    uint32_t largest_count; /* of any instruction */
} __attribute__((aligned(16)));

/* ---- operations ---- */

struct rondo_extent {
    uint64_t offset, count; /* elements */
};

/* Where a buffer's chunks lie: by a table, or as groups of group_count elements cut into group_chunks chunks of chunk_count
 * elements (the last ones shorter or empty). */
struct rondo_layout {
    const struct rondo_extent *table;
    uint64_t group_count, chunk_count;
    uint32_t group_chunks;
};

struct rondo_end;
struct rondo_user_operator;

/* An operation's op, beside those of rondo_op_t: an operator of the user combines, and type is not looked at. Host devices. */
#define RONDO_BY_USER UINT8_MAX

/* Limits of program blocks that move_tma and the warp interpreter execute: ends, instructions, and sources or remotes of an
 * instruction. */
#define RONDO_WARP_ENDS         32
#define RONDO_WARP_INSTRUCTIONS 32
#define RONDO_WARP_WIDTH        8

/* How a kernel on a stream executes an operation's program, if not by the engine (device/move/mover_table.h). */
enum rondo_warp_mode {
    RONDO_WARP_MODE_NOT,
    RONDO_WARP_MODE_LINES, /* each warp by itself (device/engine/warp_interpreter.h) */
    RONDO_WARP_MODE_TMA    /* by bulk copies (device/cuda/move_tma.h) */
};

/* Slots of the TMA protocol. */
#define RONDO_TMA_BYTES 16384
#define RONDO_TMA_SLOTS 128

/* One program block of a program that is bound to a lane: where its lists lie, in device memory. */
struct rondo_part {
    const struct rondo_instruction *instructions;
    const struct rondo_dependency *dependencies; /* the program's */
    struct rondo_end *const *ends;
    struct rondo_end *row; /* array of the ends; NULL: see ends */
    uint32_t instruction_count, end_count;
    uint32_t repeats;       /* an end is named more than once */
    uint32_t only_receives; /* the program sends nothing, so that its peers may be several operations ahead */
};

/* The static part of a context: a program bound to buffers, sizes and connectors. The host writes it in its own memory; the
 * daemon copies it when it fetches a submission that says so, and a kernel on a stream gets it as its argument. */
struct rondo_operation {
    const struct rondo_part *parts; /* one for each block */
    uint32_t blocks;
    uint32_t lane;
    struct rondo_part first; /* parts[0], so that an operation of one block is found with one load less */
    char *buffers[RONDO_BUFFERS];
    struct rondo_layout layouts[RONDO_BUFFERS];
    uint64_t slice; /* elements of one chunk that travel in one slot */
    uint64_t tile;  /* elements of one chunk that an instruction handles before the next instruction gets its turn */
    uint64_t tiles;
    uint32_t slices; /* of a tile, at most */
    uint32_t element_bytes;
    uint8_t type, op;
    uint8_t streaming;     /* results are too large to stay in the cache */
    uint8_t direct;        /* peers' buffers are reached directly: signals say where they are */
    uint8_t zero_copy;     /* enum rondo_zero_copy */
    uint8_t protocol;      /* enum rondo_protocol, of all its connectors */
    uint8_t warp_mode;     /* enum rondo_warp_mode, of a GPU's kernel on a stream */
    uint8_t plain_slots;   /* host devices of one host: slots hold the bytes, all of them, and nothing else */
    uint32_t average;      /* divisor of the FINISH step; 0: none */
    uint8_t rate;          /* bits a value in slots (RONDO_PROTOCOL_COMPRESSED); 0: as they are */
    uint8_t direct_writes; /* enum rondo_writes_directly */
    uint8_t single_copy;   /* set of enum rondo_single_copy_use; 0: none */
    uint8_t readers;       /* ranks that read from this one at the same time; where single copies are used */
    union {
        char *residual; /* laid out as the input, in the type that the code computes in; NULL: nothing is fed back */
        const struct rondo_user_operator *user; /* with RONDO_BY_USER: how to combine */
    };
    uint64_t windows[2][2]; /* what a SIGNAL tells: {window, offset} of input and output (see struct rondo_end) */
} __attribute__((aligned(16)));

/* ---- connectors ---- */

/* SMALL is the simple protocol in small slots, so that connectors for small operations need little memory. TINY is the same
 * in many tiny slots, for senders that do not wait, each with its own tail in the line where its data begin. TMA is the same
 * in slots of one bulk copy each. COMPRESSED is the same with slots that hold ZFP streams (device/codec/zfp_block.h), one
 * for each chunk's slice, at the operation's rate. MULTICAST and MULTICAST_TINY are SMALL and TINY with one sender and several
 * receivers: the slots are the sender's, written once and read by all, and each receiver has a head of its own
 * (struct rondo_multicast_head). */
enum rondo_protocol {
    RONDO_PROTOCOL_SIMPLE,
    RONDO_PROTOCOL_LL,
    RONDO_PROTOCOL_SMALL,
    RONDO_PROTOCOL_COMPRESSED,
    RONDO_PROTOCOL_LL128, /* between GPUs joined by NVLink (device/move/low_latency.h) */
    RONDO_PROTOCOL_TMA,   /* between GPUs that have bulk copies (device/cuda/move_tma.h) */
    /* Between host devices of one host: */
    RONDO_PROTOCOL_TINY,
    RONDO_PROTOCOL_MULTICAST_TINY,
    RONDO_PROTOCOL_MULTICAST,
    RONDO_PROTOCOLS
};
#define RONDO_TINY_HEAD 16 /* bytes of a TINY or MULTICAST_TINY slot before its data; the tail is the first word */

/* A slot's source reference: the slot's bytes are sent from where they lie in a buffer, which is not written before settled
 * says that the proxy needs them no more. Host memory. */
struct rondo_referenced_slot {
    const char *source; /* NULL: the slot's bytes are in the slot */
    uint32_t bytes;     /* may be less than the slot's: a slot is filled in whole vectors, a buffer ends where it ends */
    uint32_t copied;    /* the proxy copies them into the slot as soon as they are on their way, and needs the source no more */
};
enum rondo_zero_copy {
    RONDO_ZERO_COPY_INPUT = 1,  /* the input is not written */
    RONDO_ZERO_COPY_RESULT = 2, /* complete results stay as they are in the output */
    RONDO_ZERO_COPY_COPIED = 4  /* what the operation sends is copied as soon as it is on its way */
};
struct rondo_source_references {
    uint64_t settled;   /* number of slots whose bytes the proxy needs no more; written by the proxy */
    uint64_t withdrawn; /* 1: an operation has failed, and the buffers may be gone; written by the sender */
    uint64_t unused[14];
    struct rondo_referenced_slot slots[]; /* one for each slot; written by the sender, published with the tail */
};

/* Single copy between ranks of one host in several processes (device/engine/references.h): slots name where the bytes lie, and
 * the receiver copies them from there. All ranks agree whether receivers look; what a sender references is its own choice. */
enum rondo_single_copy_use {
    RONDO_SINGLE_COPY_USED = 1,
    RONDO_SINGLE_COPY_INPUT = 2,  /* the input is not written */
    RONDO_SINGLE_COPY_OUTPUT = 4, /* each element of the output is written once at most */
    RONDO_SINGLE_COPY_ALWAYS = 8, /* slots of any size are referenced; else where it pays */
    RONDO_SINGLE_COPY_RULE = 16   /* times enum rondo_cost_rule */
};

/* Whose time counts where slots are not copied once (device/engine/copy_costs.h). */
enum rondo_cost_rule { RONDO_COST_BOTH, RONDO_COST_ONE_WAY, RONDO_COST_READER, RONDO_COST_READERS };
#define RONDO_COST_CLASSES 3

/* The reference of a slot, in shared memory before the slots, each on a line of its own. */
struct rondo_reference {
    uint64_t
        source; /* address in the sender's memory, RONDO_REFERENCE_*: written by the sender, and by a receiver that refuses */
    uint64_t number; /* of the slot that the reference was made for, + 1; released with that slot's tail */
    /* The sender's own: */
    uint64_t bytes, address;
    /* ... and of all slots, in the first reference: */
    uint64_t mistrusted;                 /* number of the slot before which none is referenced */
    uint32_t stores[RONDO_COST_CLASSES]; /* what storing into slots costs */
    uint32_t sent;                       /* slots for which there was a choice */
    uint64_t unused;
};
#define RONDO_REFERENCE_NONE           0 /* the bytes are in the slot */
#define RONDO_REFERENCE_REFUSED        1 /* the receiver cannot read the source: the sender is to copy the bytes into the slot */
#define RONDO_REFERENCE_WITHDRAWN      2 /* the sender's operation has failed, and the source is not the bytes' any more */
/* Whether connectors of shared memory have references, of this protocol. */
#define RONDO_HAS_REFERENCES(protocol) ((protocol) == RONDO_PROTOCOL_SIMPLE || (protocol) == RONDO_PROTOCOL_SMALL)

/* Direct write: whether senders store what is received where it belongs (device/engine/direct_write.h). All ranks agree
 * whether receivers say where that is; each rank says it for itself. */
enum rondo_writes_directly {
    RONDO_DIRECT_WRITES_NOT,
    RONDO_DIRECT_WRITES_ELSEWHERE, /* through the slots, after all: peers cannot reach this rank's output */
    RONDO_DIRECT_WRITES_HERE
};

/* What the receiver of a connector tells the sender. direct_write exists where no network is between them. */
struct rondo_head {
    uint64_t taken; /* slots */
    uint64_t unused[7];
    uint64_t direct_write;              /* address for the next part; RONDO_DIRECT_WRITE_NONE: not said yet; _IN_SLOTS: none */
    uint64_t costs[RONDO_COST_CLASSES]; /* of a single copy, << 32, and of reading slots */
};
#define RONDO_DIRECT_WRITE_NONE     0
#define RONDO_DIRECT_WRITE_IN_SLOTS 1

/* What one receiver of a multicast connector tells the sender: two cache lines of its own, because adjacent lines are fetched
 * in pairs. The sender's memory, one for each receiver in the order of their ranks. */
struct rondo_multicast_head {
    uint64_t taken; /* slots; the receiver writes */
    int64_t peer;   /* its rank in the world, for reports; the sender writes it before the first operation */
    uint64_t unused[14];
};

struct rondo_receive_action;

/* Of a connector, as the rank sees it that has the end: it receives, or sends. */
enum rondo_direction { RONDO_INCOMING, RONDO_OUTGOING };

/* One end of a connector, in the memory of the rank that uses it. Counters count slots and never wrap. A multiple of 16 bytes,
 * for copies by vectors. */
struct rondo_end {
    uint64_t
        position;  /* slots that this end has filled (sender) or taken (receiver); written by the block that runs the lane */
    uint64_t seen; /* last value read from watched */
    uint64_t *watched;   /* the peer's counter: tail (receiver), head (sender); but see rondo_tail */
    uint64_t *published; /* this end's counter: head (receiver), tail (sender) */
    char *slots;         /* where the data of the first one begin */
    uint32_t slot_bytes; /* stride; LL slots hold half as much payload, LL128 slots 7 of 8 bytes */
    uint32_t slot_count; /* a power of two */
    uint16_t protocol;
    uint8_t posts_receive_actions; /* a receiver's: receive actions may be posted for its slots */
    uint8_t receivers;             /* a multicast sender's: watched is the first of so many rondo_multicast_head; else 0 */
    int32_t peer;                  /* rank in the world, for reports */
    char *const *windows;          /* base addresses of the peer's memory on this rank; window 0 is the address space itself */
    union {
        char *direct[2]; /* a receiver's: the peer's input and output in the current operation, as its SIGNAL told */
        struct rondo_receive_action
            *receive_actions; /* a receiver's on a network, one a slot (device/engine/receive_action.h): there are no SIGNALs */
        struct {
            uint32_t *sizes; /* a sender's on a network: the bytes of each slot, for the proxy; else NULL */
            struct rondo_source_references
                *source_references; /* and their source references; NULL: the bytes are always in the slots */
        };
    };
};

/* What a SIGNAL slot holds. */
struct rondo_signal {
    uint64_t window[2], offset[2];
};

/* ---- lanes and contexts ---- */

#define RONDO_LANE_DEPTH 16 /* operations of one lane that the device may hold */

/* An order domain. Block 0 appends to the ring; the first operation alone is runnable. Lane l has the contexts (and semaphores)
 * from l * daemon->lane_contexts on, one a program block. */
struct rondo_lane {
    uint64_t submitted;      /* operations appended; block 0 writes */
    uint64_t completed;      /* released by the block that finishes the first operation last, after all blocks' effects */
    uint64_t ordered;        /* number of completed operations that kernels on streams executed in an order given by the host */
    uint64_t finished_parts; /* program blocks of the first operation that are done, and above bit 32 how many of these were cut
                                off by a failure (on a stream: told that they are stuck); 0 again when it completes */
    uint64_t ring[RONDO_LANE_DEPTH]; /* RONDO_RING */
    uint32_t failed;                 /* a rondo_result_t, written by block 0: operations end with it instead of waiting */
    uint32_t priority; /* an int32_t; atomic, because a late notification of a lane's earlier life may read it while a new one
                          begins */
};

/* An operation in its lane's ring: its number + 1 (24 bits), the program's blocks (8), the slot. Released by block 0 after the
 * operation's copy. */
#define RONDO_RING(number, blocks, slot) (((number) + 1) << 40 | (uint64_t) (blocks) << 32 | (slot))
#define RONDO_RING_IS(entry, number)     ((entry) >> 40 == (((number) + 1) & 0xffffff))
#define RONDO_RING_BLOCKS(entry)         ((uint32_t) ((entry) >> 32) & 0xff)
#define RONDO_RING_SLOT(entry)           ((uint32_t) (entry))

#define RONDO_PROGRESS 16

/* The dynamic part: where one program block of a lane's operation stands. One cache line. */
struct rondo_context {
    uint64_t operation; /* number of the operation in its lane, so that a position is never taken for another's */
    uint64_t tile;
    uint32_t instruction, slice;
    uint32_t finished;     /* this block's part of the operation is done */
    uint32_t slice_op;     /* slice operations of the slice that are done, where they may be stuck one by one */
    uint32_t sent;         /* the next slice operation's data have been sent by an exchange */
    uint32_t direct_write; /* enum rondo_direct_write_step */
    uint32_t unused[2];
    uint64_t progress[RONDO_PROGRESS / 8]; /* of that slice operation, where each warp executes its share by itself */
};

/* What a kernel on a stream executes. order: the operation's place among those of its lane that the host has put in an
 * order; the number of the lane's life is in its upper half. waits: the previous operation may be on another stream, so the
 * kernel waits until so many have completed. RONDO_UNORDERED: in a graph, whose launches are not counted. tells: the end is
 * counted at place; the last operation of a launch, with which the count becomes until, tells the host, which costs a
 * microsecond. */
#define RONDO_PLACES                128 /* a GPU runs no more kernels at once */
#define RONDO_NOWHERE               UINT32_MAX
#define RONDO_UNORDERED             UINT64_MAX
#define RONDO_ORDERED_NUMBER(order) (((order) &0x7fffffff) | 0x80000000)
#define RONDO_STUCK_NUMBER(stuck)   ((stuck) >> 31 == 1 ? (stuck) &0x7fffffff : (stuck) -1) /* of queues->stuck */
#define RONDO_NEXT_LIFE(order)      ((((order) >> 32) + 1) << 32)
struct rondo_stream_operation {
    struct rondo_operation operation;
    uint64_t order;
    uint32_t waits;
    uint32_t tells, place, until;
    uint32_t block_first, blocks; /* of the parts of all of them: a block of the grid each, or their places in a group's list */
};

/* ---- queues ---- */

#define RONDO_LANES_MAX   16384
/* Depth of SQ, CQ and notifications: the host never has more operations on the device. Twice the lanes, because the first
 * operation of every lane must always find room (lib/submission/queue.c: fits). */
#define RONDO_QUEUE_DEPTH (2 * RONDO_LANES_MAX)

/* One cache line. The high half of each of the first two words is the entry's position in the queue + 1, which says that the
 * word is valid; together they are what a daemon needs to know of most submissions, and read at once. The others are written
 * before them, and read only if there is MORE. */
struct rondo_sqe {
    uint64_t what;                       /* RONDO_SQE(position, blocks of the program << 16 | operation slot) */
    uint64_t where;                      /* RONDO_SQE(position, flags | lane) */
    const struct rondo_operation *fresh; /* host memory: copy the operation from there first; NULL: the copy is up to date */
    uint64_t interrupts;                 /* the host's count when it wrote the entry */
    int32_t priority;                    /* of the lane */
    uint32_t revives;                    /* the first of a new life of the lane: an earlier failure is forgotten */
    uint64_t unused[3];
};
#define RONDO_SQE(position, payload) (((position) + 1) << 32 | (uint64_t) (payload))
#define RONDO_SQE_IS(word, position) ((uint32_t) ((word) >> 32) == (uint32_t) ((position) + 1))
#define RONDO_SQE_MORE               0x80000000u
#define RONDO_SQE_FRESH              0x40000000u /* the operation is not what it was when the slot was used last */
/* The submitter has begun the operation (rondo_run_inline): its context says how far it is. */
#if defined(__CUDACC__)
#define RONDO_SQE_BEGUN 0u /* kernels alone begin operations */
#else
#define RONDO_SQE_BEGUN 0x20000000u
#endif
#define RONDO_SQE_OPERATION(what) ((uint32_t) (what) &0xffff)
#define RONDO_SQE_BLOCKS(what)    ((uint32_t) (what) >> 16)
#define RONDO_SQE_LANE(where)     ((uint32_t) (where) &0xffff)

/* Notifications to all blocks, in one word: the entry's number + 1 (24 bits), whether the operation is its lane's first
 * unfinished one and whether it is fresh, its slot (16 bits), the program's blocks (8), the lane (14). */
#define RONDO_NOTIFICATION_FIRST ((uint64_t) 1 << 38)
#define RONDO_NOTIFICATION_FRESH ((uint64_t) 1 << 39)
#define RONDO_NOTIFICATION(number, flags, slot, blocks, lane)                                                                  \
    (((number) + 1) << 40 | (flags) | (uint64_t) (slot) << 22 | (uint64_t) (blocks) << 14 | (lane))
#define RONDO_NOTIFICATION_IS(entry, number) ((entry) >> 40 == (((number) + 1) & 0xffffff))
#define RONDO_NOTIFICATION_SLOT(entry)       ((uint32_t) ((entry) >> 22) & 0xffff)
#define RONDO_NOTIFICATION_BLOCKS(entry)     ((uint32_t) ((entry) >> 14) & 0xff)
#define RONDO_NOTIFICATION_LANE(entry)       ((uint32_t) (entry) &0x3fff)
#define RONDO_PROGRAM_BLOCKS_MAX             255

/* A CQE is one 8-byte store: low 32 bits of the submission's number, result, operation slot + 1 (so never 0, which is empty).
 */
#define RONDO_CQE(slot, result, number)                                                                                        \
    (((uint64_t) ((slot) + 1) << 40) | ((uint64_t) (uint8_t) (result) << 32) | (uint32_t) (number))
#define RONDO_CQE_SLOT(cqe)   ((uint32_t) ((cqe) >> 40) - 1)
#define RONDO_CQE_RESULT(cqe) ((uint32_t) ((cqe) >> 32) & 0xff)

/* What host and daemon write to each other: host memory, where a GPU's read-modify-writes are not atomic, so every word has
 * one writer. */
enum rondo_daemon_state { RONDO_DAEMON_LEFT, RONDO_DAEMON_RUNS, RONDO_DAEMON_LEAVING };
#define RONDO_STATE(launch, what) ((launch) << 2 | (uint64_t) (what))

struct rondo_queues {
    /* The host's, under its queue lock: */
    uint64_t launches __attribute__((aligned(RONDO_CACHE_LINE))); /* daemons started */
    uint64_t fence;                                               /* a word to fence on (device/abi/platform.h: rondo_fence) */
    uint64_t interrupts __attribute__((aligned(RONDO_CACHE_LINE))); /* bumped after a change of stop or failed */
    uint32_t stop;                                                  /* the daemon has to leave */
    uint32_t lanes_used;                                            /* bound of the lanes in use */
    /* The daemon's: the launch it stands for << 2 | enum rondo_daemon_state. While it is LEAVING, the host waits: the daemon is
     * looking at the queue a last time. */
    uint64_t state __attribute__((aligned(RONDO_CACHE_LINE)));
    uint64_t cq[RONDO_QUEUE_DEPTH] __attribute__((aligned(RONDO_CACHE_LINE)));
    struct rondo_sqe sq[RONDO_QUEUE_DEPTH] __attribute__((aligned(RONDO_CACHE_LINE)));
    uint32_t failed[RONDO_LANES_MAX]; /* the host's: what the lanes' operations end with */
    /* Of kernels on streams: 1 + the lane's count of the operation that has waited there for longer than the largest budget,
     * or the number that its order gives it (RONDO_STUCK_NUMBER); 0: none. Short operations never touch it. */
    uint64_t stuck[RONDO_LANES_MAX];
    uint32_t over[RONDO_PLACES]; /* of kernels on streams: the count at each place, when it was told last */
};

/* ---- the daemon ---- */

enum rondo_order { RONDO_ORDER_FIFO, RONDO_ORDER_PRIORITY };

/* For how long a task is waited for in a visit. The daemon has them in ticks of its device's clock (rondo_ticks), all others in
 * nanoseconds. */
struct rondo_budgets {
    uint64_t initial; /* granted to the first task */
    uint64_t alone;   /* and to a task that has its block for itself */
    uint64_t ordered; /* instead of initial, while the ranks seem to start their operations in one order; */
    uint64_t hold;    /* no further task is begun then until none has advanced for so long (device/daemon/order.h) */
    uint64_t cap;     /* upper bound of what progress raises a grant to */
};

struct rondo_policy {
    struct rondo_budgets budgets;
    uint32_t decay;           /* percent: each later task's grant relative to the one before it */
    uint32_t boost;           /* factor on a task's grant after each successful primitive */
    uint32_t order;           /* enum rondo_order */
    uint32_t preempt;         /* 0: waits have no budget */
    uint32_t readiness_check; /* a preempted task is visited again only when a readiness check finds that what it waits for has
                                 come */
    uint32_t spread;          /* distance in blocks between the first program blocks of a lane and the next; 0: none */
    uint32_t yield_mask;      /* a wait gives the core away every yield_mask + 1 looks */
    uint64_t quit_idle_ns, quit_stuck_ns, residency_ns;
};

/* What a preempted task waits for: a counter of at least value, or an LL word with the flag value. A hint: the visit checks
 * it. */
enum rondo_awaited_kind { RONDO_AWAITS_ANYTHING, RONDO_AWAITS_COUNT, RONDO_AWAITS_FLAG };
struct rondo_awaited {
    const uint64_t *word;
    uint64_t value;
    uint32_t kind; /* enum rondo_awaited_kind */
    uint32_t unused;
};

/* Whether peers have come to an operation, as far as its task can tell: it has waited for them, and gone on since or finished.
 */
enum rondo_contact { RONDO_CONTACT_NONE, RONDO_CONTACT_AWAITED, RONDO_CONTACT_MADE };

/* One program block of a lane that has unfinished operations. */
struct rondo_task {
    uint32_t lane, program_block;
    int32_t priority;
    /* The lane's operation for which the task stands, once that is known: until the block's part of it is done. */
    uint32_t slot;
    uint64_t number; /* in the lane */
    uint8_t known;
    uint8_t fresh;   /* what is cached of the operation is out of date */
    uint8_t visited; /* failures of the lane are looked for from the second visit on */
    uint8_t contact; /* enum rondo_contact */
    uint8_t unused[4];
    struct rondo_awaited awaited; /* when it was preempted last */
};

#define RONDO_TASKS_NEAR    48 /* of a block, that are kept with its state; the others are in its table */
#define RONDO_CONTEXT_CACHE 8

struct rondo_block_statistics {
    uint64_t preemptions, context_loads, context_saves, primitives, bytes_sent, bytes_saved;
    uint64_t spin_ticks; /* of waits that ended with their budgets */
};

/* What other threads read of a block. */
struct rondo_block_report {
    uint64_t notifications_read __attribute__((aligned(RONDO_CACHE_LINE))); /* released after the entry is read: block 0 does
                                                                      not overwrite what a block has not seen */
    uint64_t current_lane;                                                  /* lane + 1 of the task being visited */
    struct rondo_block_statistics statistics;
};

/* A block's recorded events: device/daemon/trace.h. Host memory. */
#define RONDO_TRACE_DEPTH 65536
#define RONDO_TRACE_HELD  8
struct rondo_trace_records {
    uint64_t words[RONDO_TRACE_DEPTH][2];
};

/* One block's own state. It outlives daemons: a quit loses nothing. */
struct rondo_block {
    uint32_t index;
    uint32_t tasks;
    uint32_t progressed, informed; /* in the current round: a task advanced; there were notifications */
    uint32_t rounds_without_fetch, untimed_rounds;
    uint32_t voted, inside; /* has a standing vote; takes part in the current daemon */
    uint32_t epoch;         /* of the vote */
    uint32_t completions;   /* operations that this block was the last to finish */
    uint32_t rounds;        /* block 0 */
    uint32_t yields;        /* by priority, visits that ended for a higher task or for work that had come, or completed */
    /* device/daemon/order.h: in the current round, a task before the one visited has not met its peers; trust that the ranks
     * keep one order, and how many contacts it has lasted for; when a task advanced, or was begun, last */
    uint32_t overtakes;
    uint32_t order_trust, order_contacts;
    uint64_t advanced_ticks;
    /* device/daemon/trace.h: how often the visit recorded last has been stuck; the block's entering is to be recorded */
    uint16_t visit_stuck, entering;
    uint64_t notifications_read;
    uint64_t fetched;               /* block 0: SQEs taken */
    uint64_t notifications_granted; /* block 0: number of notifications that may be written before the other blocks are asked
                                       what they have read */
    uint64_t interrupts;            /* the count of the host's interrupts that block 0 has answered */
    uint64_t entered_ns, last_progress_ns, last_notification_ns;
    struct rondo_task near[RONDO_TASKS_NEAR];
    struct rondo_task *task_table;
    struct rondo_block_report *report;
    struct rondo_trace_records *trace; /* NULL: no trace is recorded */
    uint64_t traced;                   /* records written */
    uint64_t visit;                    /* the task visited, while it is recorded: RONDO_TRACE_TASK; else 0 */
    uint64_t visit_began;              /* its record, while that is not made: the time, and the kind; else 0 */
    uint32_t visit_kind;
    uint64_t held_words[RONDO_TRACE_HELD][2];
    uint32_t held; /* number of records that are still to be written, without their laps */
    struct {
        uint32_t context; /* index, or UINT32_MAX */
        uint32_t dirty;
        struct rondo_context value;
    } cache[RONDO_CONTEXT_CACHE];
} __attribute__((aligned(16)));

/* What the blocks of a daemon tell each other: words on lines of their own, in device memory. */
struct rondo_daemon_exchange {
    uint64_t consensus __attribute__((aligned(RONDO_CACHE_LINE))); /* epoch, verdict and votes: see device/daemon/daemon.h */
    uint64_t cq_ticket __attribute__((aligned(RONDO_CACHE_LINE)));
    uint64_t finished; /* notifications whose operations are over; on the host device alone */
    /* Block 0 writes: */
    uint64_t fetched __attribute__((aligned(RONDO_CACHE_LINE))); /* SQEs taken */
    uint64_t announced;                                          /* notifications written */
    uint64_t answered;                                           /* of the host's interrupts */
    uint32_t stopped;                                            /* it has learnt of queues->stop */
    /* Of kernels on streams, at each place: number of operations that have ended and told so. */
    uint64_t over[RONDO_PLACES] __attribute__((aligned(RONDO_CACHE_LINE)));
};

/* Addresses, sizes and policy: constant while a daemon runs, and given to it by value. The tables are in device memory. */
struct rondo_daemon {
    uint32_t block_count;
    uint32_t lane_contexts; /* contexts of each lane: the most program blocks an operation may have */
    uint32_t lane_count;    /* of the table */
    struct rondo_policy policy;
    struct rondo_queues *queues; /* host memory */
    struct rondo_daemon_exchange *exchange;
    uint64_t *notifications; /* entries are valid when their number is that of their position */
    struct rondo_lane *lanes;
    struct rondo_operation *operations;
    struct rondo_context *contexts;
    uint64_t *semaphores; /* one a context: operation number << 32 | steps executed; released by its block */
    uint64_t *waiting;    /* one a context, for reports: rank + 1 whose slot was missing when last stuck */
    uint8_t *queued;      /* whether a context is in its block's task table; that block's alone */
    struct rondo_block *blocks;
    struct rondo_block_report *reports;
} __attribute__((aligned(16)));

/* Tasks that one block can have: its share of every lane's contexts. */
#define RONDO_TASKS_MOST(daemon)                                                                                               \
    ((daemon)->lane_count * (((daemon)->lane_contexts + (daemon)->block_count - 1) / (daemon)->block_count))

#endif
