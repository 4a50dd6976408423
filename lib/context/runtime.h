/*
 * The runtime: one rank on one device, and all that hangs from it. Every module of lib/ sees these structs; each comment says
 * which lock protects what. Locks are taken in the order connect lock, runtime lock, queue lock, and none is held while waiting
 * for another rank.
 */
#ifndef RONDO_LIB_CONTEXT_RUNTIME_H
#define RONDO_LIB_CONTEXT_RUNTIME_H

#include "transport/memory/arena.h"
#include "lib/bootstrap/control.h"
#include "transport/memory/cuda_memory.h"
#include "device/device.h"
#include "lib/base/error.h"
#include "lib/call/call.h"
#include "lib/program/algorithm.h"
#include "transport/memory/segment.h"
#include "lib/bootstrap/topology.h"
#include "transport/context.h"
#include "transport/transport.h"

#include <pthread.h>

#define RONDO_CHANNELS_MAX 120

enum rondo_direct_write { RONDO_DIRECT_WRITE_AUTO, RONDO_DIRECT_WRITE_OFF, RONDO_DIRECT_WRITE_REFUSED };

struct rondo_settings {
    double timeout;         /* seconds, 0 never */
    double connect_timeout; /* seconds */
    int check;
    uint32_t channels;                    /* most that a program may use: the least of all ranks' blocks */
    uint32_t stream_blocks;               /* most of an operation on a stream; 0: as they are chosen */
    uint32_t slot_bytes;                  /* largest slot of the simple protocol */
    char algorithm[64];                   /* "" chosen */
    char protocol[16];                    /* one of RONDO_PROTOCOL_NAMES */
    struct rondo_tuning *tuning;          /* NULL: none; the runtime's */
    uint32_t wanted_channels;             /* 0: chosen */
    enum rondo_direct_write direct_write; /* off: never; refused: receivers never let senders store into their buffers */
    rondo_compression_t compression;      /* of the world */
};

/* ---- calls: what the user asked for ---- */

/* One whose request its lane may keep (lib/submission/request_cache.h). */
struct rondo_known_call {
    struct rondo_host_lane *lane;
    const struct rondo_call *call;
    int reachable;
};

/* What a thread collects between rondo_group_start and rondo_group_end: requests; or messages, as long as there are no others.
 */
#define RONDO_GROUP_CALLS 4
struct rondo_group {
    struct rondo_request *first, *last; /* by next_grouped */
    int called;
    struct rondo_known_call known[RONDO_GROUP_CALLS]; /* of: */
    struct rondo_call calls[RONDO_GROUP_CALLS];
    rondo_result_t result; /* of making the calls' requests */
};

/* ---- lanes ---- */

/* Names a lane in the whole job, with its communicator. */
#define RONDO_LANE_COLLECTIVE     0
#define RONDO_LANE_PERSISTENT     ((uint64_t) 1 << 60) /* + how many inits came before */
#define RONDO_LANE_P2P            ((uint64_t) 2 << 60) /* source and destination are in the connector's key */
#define RONDO_LANE_P2P_PERSISTENT ((uint64_t) 3 << 60)
#define RONDO_LANE_STREAM         ((uint64_t) 4 << 60)
#define RONDO_LANE_P2P_STREAM     ((uint64_t) 5 << 60)

/* A connector of the lane, as this rank sees it. */
struct rondo_link {
    struct rondo_connection what;
    struct rondo_connector *connector;
    struct rondo_end *end; /* device memory */
    int row;               /* so many ends were allocated together, of which this is the first; 0: it is not */
};

/* A plan with its connectors: what operations of one shape on one lane share. */
struct rondo_binding {
    struct rondo_binding *next;
    struct rondo_shape shape;
    const struct rondo_algorithm *algorithm;
    struct rondo_plan *plan;
    /* Device memory: */
    struct rondo_program *program;
    struct rondo_end **ends;
    struct rondo_part *parts;
    struct rondo_part first; /* copy of parts[0] */
    int repeats;             /* some part names an end more than once */
};

#define RONDO_REQUEST_CACHE_SIZE 8 /* a power of two */
struct rondo_host_lane {
    struct rondo_host_lane *next; /* of the communicator (runtime lock) */
    struct rondo_comm *comm;
    uint64_t id;
    int peer; /* p2p: rank in the communicator; else -1 */
    int outgoing;
    uint32_t index; /* in the daemon's table */
    int32_t priority;
    uint32_t revives; /* nothing has been submitted in this life of the table's entry (queue lock) */
    uint32_t slot_bytes[RONDO_PROTOCOLS];
    uint32_t slot_count;
    pthread_mutex_t bind_lock; /* links and bindings; one thread binds at a time */
    struct rondo_link *links;
    int link_count;
    struct rondo_binding *bindings;
    uint64_t stuck,
        stuck_ns; /* what a kernel on a stream says of it (device/abi/structures.h), and since when (runtime lock) */
    /* Operations in stream order, but for those in graphs, and the last one's stream (the communicator's stream lock). */
    uint64_t enqueued, stream_id;
    /* Queue lock: */
    uint64_t started, submitted, finished; /* operations; those started and not submitted wait in the list */
    struct rondo_request *waiting_first, *waiting_last;
    const struct rondo_request *held;   /* is carried out by who started it (rondo_queue_hold); NULL: none is */
    const struct rondo_request *latest; /* of those submitted or carried out */
    struct rondo_request *cached[RONDO_REQUEST_CACHE_SIZE]; /* of its last calls (lib/submission/request_cache.h); whether there
                                                               is one may be read at any time */
};

/* ---- requests ---- */

enum rondo_request_state { RONDO_REQUEST_INACTIVE, RONDO_REQUEST_ACTIVE, RONDO_REQUEST_DONE };

struct rondo_request {
    struct rondo_runtime *runtime;
    struct rondo_comm *comm;
    struct rondo_host_lane *lane; /* NULL: nothing to move, completes at start */
    struct rondo_call call;
    struct rondo_operation *operation; /* host memory that the device reaches */
    uint32_t slot;
    uint32_t blocks; /* of its program */
    int fresh;       /* the device has no copy of it yet (queue lock) */
    int persistent, owns_lane;
    int counted;                             /* in the communicator's persistent_here */
    int empty;                               /* nothing to move */
    int reachable;                           /* its buffers, by peers; and */
    int direct;                              /* peers do */
    const struct rondo_registered *programs; /* the communicator's when it was made */
    int checked;                             /* waits for a verdict at every start */
    int blocking;                            /* of a blocking call: a group waits for it */
    int simple, small_inline;                /* may be carried out by who starts it; and moves little */
    int cached;                              /* nobody's, and whoever still names it is told that it has been freed */
    void *stream;                            /* in whose order it is executed */
    int streamed, captured;
    struct rondo_request *next_grouped;
    struct rondo_registration *windows[2]; /* opened for it; owned */
    uint32_t state;                        /* enum rondo_request_state; DONE is released after result and message */
    rondo_result_t result;
    char *message;                              /* of a failure; owned */
    size_t *counts;                             /* the call's arrays; owned */
    struct rondo_extent *tables[RONDO_BUFFERS]; /* layouts; device memory, owned */
    size_t table_entries[RONDO_BUFFERS];
    void *scratch; /* device memory, owned */
    size_t scratch_bytes;
    void *residual; /* likewise */
    size_t residual_bytes;
    /* Queue lock: */
    uint64_t number;        /* in the lane, of those started */
    uint64_t device_number; /* of those submitted: the daemon's count */
    uint64_t started_ns;
    int approved;  /* checking: all ranks called alike */
    int submitted; /* is on the device */
    struct rondo_request *next_waiting;
    struct rondo_request *active_before, *active_after;
    void (*callback)(void *argument, rondo_result_t result);
    void *callback_argument;
    struct rondo_request *next_free;
};

/* ---- communicators ---- */

struct rondo_registration {
    struct rondo_registration *next;
    char *base;
    size_t bytes;
    int usable;  /* by all ranks */
    int by_user; /* rondo_comm_register, else a persistent operation's */
    uint32_t window;
    struct rondo_segment **imported;      /* a member each; NULL for this rank */
    struct rondo_cuda_export *exported;   /* on a GPU: this rank's buffer, if others reach it */
    struct rondo_cuda_mapping **mappings; /* on a GPU, in place of imported; NULL also where no mapping was needed */
};

#define RONDO_WINDOWS_MAX 256

struct rondo_comm {
    struct rondo_comm *next;
    struct rondo_runtime *runtime;
    uint64_t id;
    int rank, size;
    int *members;                /* ranks in the world */
    int same_process, same_host; /* all members */
    int hosts_only;              /* all members are on the host device */
    int gpus_only;               /* all members are on GPUs, */
    int by_host;                 /* of one host, but what they send each other passes through its memory */
    int linked;                  /* each on its own, and every two are joined by NVLink and use it */
    int tma;                     /* and all have bulk copies (device/cuda/move_tma.h) */
    int direct_writes;           /* members reach most of each other's memory where it lies (device/engine/direct_write.h) */
    struct rondo_topology topology;
    int group;                        /* members of each host, side by side and as many on all; 0: not so, or one host */
    int networked;                    /* some members may reach each other over a network */
    uint32_t carriers;                /* threads of a member that move what goes over it: the fewest; 0: cards move it */
    pthread_mutex_t lane_lock;        /* one thread at a time makes a shared lane */
    pthread_mutex_t stream_lock;      /* numbers of operations in stream order, and the next three */
    struct rondo_stream_list *lists;  /* that kernels may read */
    struct rondo_request *retired;    /* enqueued, and not needed but for memory that their kernels use */
    int retired_count, retired_limit; /* at the limit it is looked what can be freed */
    rondo_compression_t compression;
    int pins;                           /* library threads that use the struct (runtime lock) */
    struct rondo_host_lane *collective; /* the communicator's own lane */
    struct rondo_host_lane *lanes;
    struct rondo_host_lane **messages; /* lanes of sends and receives, where there are any: [2 * peer + outgoing]; atomic */
    uintptr_t group_owner;             /* the thread that has a group open; 0: none; atomic */
    struct rondo_group collected;      /* that thread's own */
    uint64_t exchanges;                /* collective exchanges so far */
    uint64_t persistent;               /* collective inits so far */
    uint32_t persistent_here;          /* of their requests, those that are not freed; atomic */
    uint64_t *persistent_p2p;          /* inits so far, [2 * peer + outgoing] */
    uint64_t *shrunk;                  /* hashes of the member lists that it was shrunk to (lane_lock) */
    int shrunk_count;
    uint32_t failed; /* an rondo_result_t; sticky; released after failure */
    char failure[1000];
    int active;                        /* requests (queue lock) */
    struct rondo_registered *programs; /* registered by the user, the latest first; only ever added to */
    pthread_mutex_t plan_lock;
    struct rondo_cached_plan *plans; /* compiled (plan lock) */
    struct rondo_registration *registrations;
    uint32_t windows_used;
    char **windows; /* [member][RONDO_WINDOWS_MAX]; device memory */
};

/* ---- the runtime ---- */

/* The host ends of the queues. */
struct rondo_queue {
    pthread_mutex_t lock;
    uint64_t tail;       /* SQEs written */
    uint64_t interrupts; /* the count that the daemon has been told of last */
    uint64_t head;       /* CQEs taken */
    uint64_t in_flight;  /* operations on the device; at most RONDO_QUEUE_DEPTH (lib/submission/queue.c: fits) */
    uint64_t submitted, completed;
    struct rondo_request **by_slot; /* RONDO_OPERATIONS_MAX */
    uint32_t slots_used;
    struct rondo_request *free_requests; /* with their slots */
    struct rondo_request *active;        /* started and not completed */
    struct rondo_request *called;        /* completed, callback not yet called */
    uint64_t waiting;                    /* requests in lanes' lists */
    uint32_t event, sleepers;            /* bumped at completions */
    uint64_t restart_pause_ns, not_before_ns;
    uint64_t starts;
    int abandoned; /* there will be no daemon any more */
};

struct rondo_poller {
    pthread_t thread;
    int running;
    uint32_t stopping, event, sleepers;
    uint64_t looked_ns; /* at the device */
};

struct rondo_allocation {
    struct rondo_allocation *next;
    char *base;
    size_t bytes;                  /* asked for */
    size_t reserved;               /* taken */
    struct rondo_segment *segment; /* NULL: memory of the GPU */
};

struct rondo_connect_table;
struct rondo_mailbox;
struct rondo_checker;
struct rondo_hang;
struct rondo_timeline;
struct rondo_proxies;
struct rondo_endpoints;

struct rondo_runtime {
    int rank, size;
    struct rondo_settings settings;
    struct rondo_control *control;
    struct rondo_segments *segments;
    struct rondo_arena *arena;
    struct rondo_device *device;
    rondo_device_t device_type;
    int device_index; /* which GPU; -1 */
    char *nothing;    /* device memory that may be read: what a barrier sends */
    struct rondo_peer *peers;
    int oversubscribed;                       /* some host has more ranks than cores */
    struct rondo_transport_context transport; /* what transports and the proxy see of all this */
    struct rondo_queue queue;
    struct rondo_poller poller;
    struct rondo_connect_table *connections;
    struct rondo_proxies *proxies; /* NULL: no rank is reached over a network */
    struct rondo_endpoints *endpoints;
    struct rondo_mailbox *mailbox;
    struct rondo_checker *checker;
    struct rondo_hang *hang;
    struct rondo_timeline *trace; /* NULL: none asked for */
    pthread_mutex_t lock;         /* the lists below, lanes and contexts */
    struct rondo_comm *world, *comms;
    struct rondo_allocation *allocations;
    uint32_t lanes_used;
    struct rondo_host_lane *free_lanes;
    uint64_t comm_ids;
    uint32_t *gone; /* [rank]: an rondo_result_t once it has died or left; atomic */
};

/* control message types */
enum rondo_message {
    RONDO_MESSAGE_MAIL = RONDO_CONTROL_FIRST_USER_TYPE,
    RONDO_MESSAGE_CONNECT,
    RONDO_MESSAGE_CONNECTED,
    RONDO_MESSAGE_CLOSE,
    RONDO_MESSAGE_CHECK,
    RONDO_MESSAGE_VERDICT,
    RONDO_MESSAGE_ABORT,
    RONDO_MESSAGE_HANG_ASK,
    RONDO_MESSAGE_HANG_QUERY,
    RONDO_MESSAGE_HANG_STATE,
    RONDO_MESSAGE_HANG_REPORT,
    RONDO_MESSAGE_HANG_ANSWER,
    RONDO_MESSAGE_ENDPOINT_ASK,
    RONDO_MESSAGE_ENDPOINT,
    RONDO_MESSAGE_LINK_LOST
};

/* lib/context/failure.c: ends everything on the communicator with the code; the first failure stays. */
void rondo_comm_fail(struct rondo_comm *comm, rondo_result_t code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The communicator of that id, protected from being freed until unpinned; NULL if there is none. */
struct rondo_comm *rondo_comm_pin(struct rondo_runtime *runtime, uint64_t id);
void rondo_comm_unpin(struct rondo_comm *comm);
/* The rank has died (RONDO_ERR_PEER) or left: fails the communicators that it is in. */
void rondo_peer_gone(struct rondo_runtime *runtime, int rank, const char *how);
/* The device is lost, and no daemon runs any more: fails all communicators, and ends what was on the device. */
void rondo_device_lost(struct rondo_runtime *runtime, rondo_result_t code, const char *why);
/* This rank and the peer reach each other no more over the network: fails the communicators that both are in, and has the other
 * ranks fail theirs, which may be waiting for one that waits for the lost one. Not under a lock. */
void rondo_link_lost(struct rondo_runtime *runtime, int peer, const char *network, const char *why);
/* From the control handler. */
void rondo_link_message(struct rondo_runtime *runtime, int source, const void *data, size_t bytes);
static inline rondo_result_t rondo_comm_failure(const struct rondo_comm *comm)
{
    return (rondo_result_t) __atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE);
}

#endif
