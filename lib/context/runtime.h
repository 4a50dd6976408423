/*
 * The runtime: one rank on one device, and pointers to the parts that the rooms of lib/ own. The room that declares a part's
 * structure is the only one that accesses it. Locks are taken in the order connect lock, runtime lock, queue lock. No lock is
 * held while a thread waits for another rank.
 */
#ifndef RONDO_LIB_CONTEXT_RUNTIME_H
#define RONDO_LIB_CONTEXT_RUNTIME_H

#include "transport/memory/arena.h"
#include "lib/control/control.h"
#include "transport/memory/cuda_memory.h"
#include "device/device.h"
#include "lib/context/comm.h"
#include "lib/context/failure.h"
#include "lib/context/messages.h"
#include "lib/context/settings.h"
#include "transport/memory/segment.h"
#include "transport/context.h"
#include "transport/transport.h"

#include <pthread.h>

#define RONDO_CHANNELS_MAX 120
#define RONDO_JOB_BYTES    128

struct rondo_queue;
struct rondo_poller;
struct rondo_allocation;
struct rondo_host_lane;
struct rondo_connect_table;
struct rondo_mailbox;
struct rondo_checker;
struct rondo_agreements;
struct rondo_hang;
struct rondo_flight_recorder;
struct rondo_flight_dump;
struct rondo_inspection;
struct rondo_nvtx;
struct rondo_timeline;
struct rondo_proxies;
struct rondo_endpoints;
struct rondo_single_copy_peer;

struct rondo_runtime {
    int rank, size;
    rondo_t handle;            /* what the user has; NULL during init */
    char job[RONDO_JOB_BYTES]; /* its name for people: RONDO_JOB or the launcher's, else where the root is; may be empty */
    struct rondo_settings settings;
    struct rondo_control *control;
    struct rondo_segments *segments;
    struct rondo_arena *arena;
    struct rondo_device *device;
    rondo_device_t device_type;
    int device_index; /* the GPU's index; -1 on the host device */
    char *nothing;    /* readable device memory, which a barrier sends */
    struct rondo_peer *peers;
    struct rondo_topology hosts;                                   /* of all ranks */
    struct rondo_single_copy_peer *single_copy_peers;              /* [size]; lib/runtime/single_copy.h */
    int oversubscribed;                                            /* some host has more ranks than cores */
    size_t stream_bytes;                                           /* result of rondo_stream_bytes */
    struct rondo_transport_context transport;                      /* the part that transports and the proxy access */
    struct rondo_queue *queue;                                     /* lib/submission/queue.h */
    struct rondo_poller *poller;                                   /* lib/submission/poller.h */
    const struct rondo_failure_listener *const *failure_listeners; /* terminated by NULL */
    struct rondo_connect_table *connections;
    struct rondo_proxies *proxies; /* NULL: no rank is reached over a network */
    struct rondo_endpoints *endpoints;
    struct rondo_mailbox *mailbox;
    struct rondo_checker *checker;
    struct rondo_agreements *agreements; /* lib/communicator/agreement.h */
    struct rondo_hang *hang;
    struct rondo_flight_recorder *flight;  /* lib/diagnostics/flight_recorder.h; written under the queue lock */
    struct rondo_flight_dump *flight_dump; /* NULL: RONDO_FLIGHT_RECORDER is not set */
    struct rondo_inspection *inspection;   /* lib/diagnostics/inspection.h */
    struct rondo_nvtx *nvtx;               /* NULL: no profiler has attached */
    struct rondo_timeline *trace;          /* NULL: RONDO_TRACE is not set */
    pthread_mutex_t lock;                  /* protects the lists below, lanes and contexts */
    struct rondo_comm *world, *comms;
    struct rondo_allocation *allocations;
    uint32_t lanes_used;
    struct rondo_host_lane *free_lanes;
    uint64_t comm_ids;
    uint32_t *gone;                                       /* [rank]: enum rondo_gone; atomic */
    struct rondo_early_notice early[RONDO_EARLY_NOTICES]; /* lib/context/failure.h */
    uint32_t early_count;
    void (*wait_callback)(void *argument); /* of rondo_wait_callback(); NULL: none; release */
    void *wait_argument;
    int forming; /* rondo_init has not returned: exchanges end by the connect timeout */
};

#endif
