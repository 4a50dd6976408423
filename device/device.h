/*
 * A device: memory, and somewhere to run the daemon. The two kinds (host threads, CUDA) stand behind one table; the library
 * above knows no other difference between them.
 */
#ifndef RONDO_DEVICE_DEVICE_H
#define RONDO_DEVICE_DEVICE_H

#include "rondo.h"
#include "device/abi/structures.h"

struct rondo_device;

struct rondo_device_options {
    int rank;
    int index; /* which GPU */
    uint32_t blocks;
    uint32_t lane_contexts; /* the most program blocks of an operation */
    struct rondo_policy policy;
    int trace; /* the blocks record what they do (trace.h) */
    /* Called after the daemon has quit, and after a completion that no helping thread will notice. From any thread; must be
     * brief and must not call back into the device. */
    void (*notify)(void *argument);
    void *notify_argument;
    /* Where the daemon runs on host threads: called after a round in which something moved, so that who carries its slots over
     * a network may sleep. From any thread; must be brief. NULL: not wanted. */
    void (*wake)(void *argument);
    void *wake_argument;
};

struct rondo_stream_launch {
    struct rondo_stream_operation *operations; /* whom they tell, and their parts' places, are filled in */
    int count;
    int captured; /* the stream is being captured */
    size_t bytes; /* the most that one of them moves, a hint */
    void *stream;
    uint64_t stream_id; /* 0: not known, or captured */
};

/* Memory that a kernel on a stream uses: of allocate_host and of allocate. over: is until, or later, when the kernel uses it no
 * more; NULL if it was captured, and so may be launched at any time. */
struct rondo_stream_list {
    struct rondo_stream_list *next; /* the owner's */
    void *host, *memory;
    size_t host_bytes, memory_bytes;
    const uint32_t *over;
    uint32_t until;
};

/* Whether who starts something is going to lend his thread to the daemon: certainly, at once; perhaps, soon; not at all. */
enum rondo_assist { RONDO_ASSIST_NOW, RONDO_ASSIST_MAYBE, RONDO_ASSIST_NEVER };

struct rondo_device_kind {
    const char *name;
    rondo_result_t (*create)(struct rondo_device **device, const struct rondo_device_options *options);
    void (*halt)(struct rondo_device *device);    /* ends the daemon for good: from here on it touches no memory */
    void (*destroy)(struct rondo_device *device); /* after halt */

    /* Zeroed memory of the device: contexts, programs, ends, scratch. The host may not touch it, except by upload and download,
     * which copy and return when the copy is done, whether a daemon runs or not. Page-aligned if large. NULL: none left. */
    void *(*allocate)(struct rondo_device *device, size_t bytes);
    void (*release)(struct rondo_device *device, void *memory, size_t bytes);
    rondo_result_t (*upload)(struct rondo_device *device, void *to, const void *from, size_t bytes);
    rondo_result_t (*download)(struct rondo_device *device, void *to, const void *from, size_t bytes);
    /* Zeroed host memory that the daemon reaches too, at the same address. */
    void *(*allocate_host)(struct rondo_device *device, size_t bytes);
    void (*release_host)(struct rondo_device *device, void *memory, size_t bytes);
    /* Makes host memory that somebody else has mapped (a shared segment) reachable by the daemon, at the same address; and
     * undoes it, which may wait for the daemon to leave. */
    rondo_result_t (*adopt)(struct rondo_device *device, void *memory, size_t bytes);
    void (*disown)(struct rondo_device *device, void *memory);

    /* Runs a daemon. The caller has just claimed it (rondo_device_claim). */
    void (*start)(struct rondo_device *device, enum rondo_assist helper);
    /* Something has been submitted to a daemon that is alive. NULL: it looks by itself. */
    void (*attend)(struct rondo_device *device, enum rondo_assist helper);
    /* RONDO_ERR_DEVICE with the reason once the device cannot be used any more: a daemon could not be launched, or the device's
     * state is lost. For good; from then on no daemon runs. Cheap enough for ten times a second. NULL: always usable. */
    rondo_result_t (*check)(struct rondo_device *device);
    /* Lends the calling thread to the daemon. begin: 0 if another thread has it (try again, or sleep). Then turns, each about a
     * round, as long as the caller likes; a turn returns 1 if the daemon has quit. end gives it back; idle: nothing is
     * outstanding, so the daemon need not go on; helper: whether the caller may come to help again. NULL where threads cannot
     * help. */
    int (*assist_begin)(struct rondo_device *device);
    int (*assist_step)(struct rondo_device *device);
    void (*assist_end)(struct rondo_device *device, int idle, enum rondo_assist helper);
    /* Between begin and end, whether there is a daemon or not: carries out an operation of one block, of a lane that has
     * nothing under way. fresh: NULL if the device's copy is up to date. waits: for its peers, for some time. 1: it is over. 0:
     * it cannot go on, and is to be submitted as BEGUN. NULL where threads cannot help. */
    int (*run_inline)(struct rondo_device *device, uint32_t lane, uint32_t slot, const struct rondo_operation *fresh,
                      int waits);

    /* Whoever waits has to look at the queues by himself, at least so often; 0: notify is called. */
    uint64_t poll_ns;
    /* Has operations executed in the order of a stream, by a kernel there, all of them at once, so that they may wait for each
     * other on whichever ranks; they are copied. list: what the kernel uses besides, for the caller to keep; NULL: nothing.
     * NULL where there are no streams. */
    rondo_result_t (*enqueue)(struct rondo_device *device, const struct rondo_stream_launch *launch,
                              struct rondo_stream_list **list);
    /* Never the same for two streams, handles are; 0: not known. */
    uint64_t (*stream_id)(struct rondo_device *device, void *stream);
    /* Whether the stream is being captured into a graph; -1: it is no stream of this device. */
    int (*is_captured)(struct rondo_device *device, void *stream);

    /* Waits until the device is idle: until the daemon that runs now has quit. */
    rondo_result_t (*synchronize)(struct rondo_device *device);
};

/* Every kind's struct begins with this. */
struct rondo_device {
    const struct rondo_device_kind *kind;
    struct rondo_daemon *daemon; /* addresses and sizes, which a daemon is given when it starts */
    struct rondo_task *tasks;
    struct rondo_trace_records *trace; /* one a block; NULL: none asked for */
    uint64_t fresh;                    /* the last launch that found nothing which one before it had begun with */
};

extern const struct rondo_device_kind rondo_host_device;

/* The tables that every kind's daemon needs, out of the kind's allocate. RONDO_ERR_MEMORY. */
#define RONDO_CONTEXTS_MAX   65536
#define RONDO_OPERATIONS_MAX 65536
rondo_result_t rondo_daemon_create(struct rondo_device *device, const struct rondo_device_options *options);
void rondo_daemon_destroy(struct rondo_device *device);

/* Whether a daemon runs or has been claimed. Waits while one is about to leave, which takes it one look at the queue. */
int rondo_device_alive(const struct rondo_device *device);
/* Takes the right to start one: 1 if there is none. resumes: operations are outstanding that one before may have begun with.
 * Under the queue lock. */
int rondo_device_claim(struct rondo_device *device, int resumes);

#endif
