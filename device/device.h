/*
 * A device: memory, and threads that run the daemon. The two kinds (host threads, CUDA) stand behind one table, struct
 * rondo_device_kind; the library above knows no other difference between them. Comes in: sizes, policy, submissions in the
 * queues that both share (device/abi/structures.h). Goes out: completions, in the same queues.
 */
#ifndef RONDO_DEVICE_DEVICE_H
#define RONDO_DEVICE_DEVICE_H

#include "rondo.h"
#include "device/abi/structures.h"

struct rondo_device;
struct rondo_single_copy_peer;

struct rondo_device_options {
    int rank;
    int index; /* number of the GPU */
    uint32_t blocks;
    uint32_t lane_contexts; /* the most program blocks of an operation */
    uint32_t stream_blocks; /* the most blocks of a kernel on a stream; 0: as many as its program has */
    struct rondo_policy policy;
    /* On host devices: by rank in the world (device/engine/references.h). It outlives the device, and stays as it is from the
     * first operation on that references anything. */
    const struct rondo_single_copy_peer *single_copy_peers;
    int trace; /* the blocks record what they do (trace.h) */
    /* Called after the daemon has quit, and after a completion that no assisting thread will notice. On any thread; must be
     * short and must not call back into the device. */
    void (*notify)(void *argument);
    void *notify_argument;
    /* On host devices: called after a round in which something moved, to wake the threads that carry slots over a network.
     * On any thread; must be short. NULL: not wanted. */
    void (*wake)(void *argument);
    void *wake_argument;
};

struct rondo_stream_launch {
    struct rondo_stream_operation *operations; /* each one's fields tells, place, until and block_first are filled in */
    int count;
    int captured; /* the stream is being captured */
    size_t bytes; /* the most that one of the operations moves; a hint */
    void *stream;
    uint64_t stream_id; /* 0: not known, or captured */
};

/* Memory that a kernel on a stream uses, from allocate_host and allocate. When *over has reached until, the kernel uses it
 * no more. over is NULL if the kernel was captured, and so may be launched at any time. */
struct rondo_stream_list {
    struct rondo_stream_list *next; /* links of the list's owner */
    void *host, *memory;
    size_t host_bytes, memory_bytes;
    const uint32_t *over;
    uint32_t until;
};

/* A step of an operation by copy engines, which a stream does after the one before it. */
enum rondo_copy_step_kind { RONDO_COPY_STEP_WAIT, RONDO_COPY_STEP_WRITE, RONDO_COPY_STEP_MOVE };
struct rondo_copy_step {
    enum rondo_copy_step_kind kind;
    uint32_t value; /* WAIT: until the word has it, or has passed it by less than 2^31; WRITE: stored to the word */
    uint32_t *word; /* memory of a GPU, perhaps of another one */
    void *to;       /* MOVE */
    const void *from;
    size_t bytes;
};

/* Whether the thread that starts something will assist the daemon: at once; perhaps, soon; not at all. */
enum rondo_assist { RONDO_ASSIST_NOW, RONDO_ASSIST_MAYBE, RONDO_ASSIST_NEVER };

struct rondo_short_steps;

struct rondo_device_kind {
    const char *name;
    rondo_result_t (*create)(struct rondo_device **device, const struct rondo_device_options *options);
    void (*halt)(struct rondo_device *device);    /* ends the daemon for good: it touches no memory after that */
    void (*destroy)(struct rondo_device *device); /* after halt */

    /* Allocates zeroed memory of the device: contexts, programs, ends, scratch. The host may touch it by upload and download
     * alone, which copy and return when the copy is done, whether a daemon or a kernel on a stream runs or not. What is
     * downloaded are whole aligned words of 8 bytes. Page-aligned if large. Returns NULL if none is left. */
    void *(*allocate)(struct rondo_device *device, size_t bytes);
    void (*release)(struct rondo_device *device, void *memory, size_t bytes);
    rondo_result_t (*upload)(struct rondo_device *device, void *to, const void *from, size_t bytes);
    rondo_result_t (*download)(struct rondo_device *device, void *to, const void *from, size_t bytes);
    /* Allocates zeroed host memory that the daemon reaches at the same address. */
    void *(*allocate_host)(struct rondo_device *device, size_t bytes);
    void (*release_host)(struct rondo_device *device, void *memory, size_t bytes);
    /* Makes mapped host memory (a shared segment) reachable by the daemon at the same address. disown undoes it, which may
     * wait for the daemon to leave. */
    rondo_result_t (*adopt)(struct rondo_device *device, void *memory, size_t bytes);
    void (*disown)(struct rondo_device *device, void *memory);

    /* Runs a daemon. The caller has just claimed it (rondo_device_claim). */
    void (*start)(struct rondo_device *device, enum rondo_assist helper);
    /* Announces a submission to a daemon that is alive. NULL: the daemon polls. */
    void (*attend)(struct rondo_device *device, enum rondo_assist helper);
    /* Returns RONDO_ERR_DEVICE with the reason if the device cannot be used any more: a daemon could not be launched, or the
     * device's state is lost. That is final; no daemon runs after it. Cheap enough for ten calls a second. NULL: always
     * usable. */
    rondo_result_t (*check)(struct rondo_device *device);
    /* Assisting: the calling thread runs block 0 of the daemon. assist_begin returns 0 if another thread runs it (try again,
     * or sleep). Each assist_step then is about one round, and returns 1 if the daemon has quit. assist_end gives the block
     * back; idle: nothing is outstanding, so the daemon need not go on; helper: whether the caller may come to assist again.
     * NULL where threads cannot assist. */
    int (*assist_begin)(struct rondo_device *device);
    int (*assist_step)(struct rondo_device *device);
    void (*assist_end)(struct rondo_device *device, int idle, enum rondo_assist helper);
    /* The same as assist_end where there is no daemon; else returns 0, and assist_end has to be called. The caller holds the
     * lock under which every daemon is claimed and every submission is written. NULL where threads cannot assist. */
    int (*assist_end_locked)(struct rondo_device *device);
    /* Inline execution, between assist_begin and assist_end, whether there is a daemon or not: executes an operation of one
     * block, of a lane that has nothing under way, from the instruction on. fresh: NULL if the device's copy is up to date.
     * waits: for its peers, for some time. Returns 1 if the operation is over; 0 if it cannot go on, and has to be submitted as
     * BEGUN. NULL where threads cannot assist. */
    int (*run_inline)(struct rondo_device *device, uint32_t lane, uint32_t slot, const struct rondo_operation *fresh,
                      uint32_t instruction, int waits);
    /* The same by an operation's short steps, of which there are some, and without a copy of the operation. Returns 1 if it is
     * over; else *instruction is where run_inline has to go on. */
    int (*run_steps)(struct rondo_device *device, uint32_t lane, uint32_t slot, const struct rondo_operation *operation,
                     const struct rondo_short_steps *steps, int waits, uint32_t *instruction);

    /* A waiting thread has to poll the queues at least every poll_ns nanoseconds; 0: notify is called. */
    uint64_t poll_ns;
    /* Executes operations in the order of a stream, by one kernel there, all at once, so that they may wait for each other
     * on any ranks. The operations are copied. *list: memory that the kernel uses besides, which the caller owns; NULL:
     * none. NULL where there are no streams. */
    rondo_result_t (*enqueue)(struct rondo_device *device, const struct rondo_stream_launch *launch,
                              struct rondo_stream_list **list);
    /* Does the steps in the order of a stream, without a kernel. Moves beside each other may be done in any order. A device
     * that sees what a step stores in a word sees what the steps before it have written. Returns RONDO_ERR_DEVICE. NULL: no
     * copy engines. */
    rondo_result_t (*copy)(struct rondo_device *device, const struct rondo_copy_step *steps, int count, void *stream);
    /* A number that no two streams share, unlike handles; 0: not known. */
    uint64_t (*stream_id)(struct rondo_device *device, void *stream);
    /* Sets *captured to whether the stream is being captured into a graph. RONDO_ERR_ARGUMENT: it is no stream of this device.
     * RONDO_ERR_DEVICE. */
    rondo_result_t (*is_captured)(struct rondo_device *device, void *stream, int *captured);

    /* Waits until the device is idle: until the daemon that runs now has quit. */
    rondo_result_t (*synchronize)(struct rondo_device *device);
};

/* The common beginning of every kind's structure. */
struct rondo_device {
    const struct rondo_device_kind *kind;
    struct rondo_daemon *daemon; /* addresses and sizes, which a daemon gets when it starts */
    struct rondo_task *tasks;
    struct rondo_trace_records *trace; /* one for each block; NULL: none asked for */
    /* The latest launch in which a task has advanced (atomic), known once that daemon has left; stays 0 on a kind that does not
     * tell. GPUs do not: where processes share one, the pause between two daemons is the other processes' turn. */
    uint64_t advanced;
    uint64_t stream_blocks; /* of the kernels that were launched on streams; atomic */
    uint32_t ticks_per_us;  /* of the clock that budgets are measured by: the kind's, before rondo_daemon_create */
};

extern const struct rondo_device_kind rondo_host_device;

/* Creates the tables that every kind's daemon needs, by the kind's allocate. Returns RONDO_ERR_MEMORY without memory. */
#define RONDO_CONTEXTS_MAX   65536
#define RONDO_OPERATIONS_MAX 65536
rondo_result_t rondo_daemon_create(struct rondo_device *device, const struct rondo_device_options *options);
void rondo_daemon_destroy(struct rondo_device *device);
/* Sets the budgets of waits, in nanoseconds. A daemon that runs takes notice at its next start at the latest. */
void rondo_device_set_budgets(struct rondo_device *device, const struct rondo_budgets *nanoseconds);

/* Whether a daemon runs or has been claimed. Waits while one is about to leave, which takes one look at the queue. */
int rondo_device_alive(const struct rondo_device *device);
/* Claims the right to start a daemon. Returns 1 if there is none. Under the queue lock. */
int rondo_device_claim(struct rondo_device *device);

#endif
