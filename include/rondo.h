/*
 * Rondo: a collective-communication runtime in which ranks may start collectives in any order.
 *
 * Conventions of every function here, unless its comment says otherwise:
 *  - It returns RONDO_SUCCESS (0) or an error code; rondo_strerror() names a code, and rondo_last_error() gives the calling
 *    thread's last message with the offending values in it. No function exits or aborts the process.
 *  - It may be called from any thread on any runtime.
 *  - Counts and displacements are in elements of the given datatype; sizes are in bytes.
 *  - Buffers are memory of the runtime's device. The host device takes any pointer.
 *  - A call that fails its argument checks sends nothing to anyone.
 *
 * Matching (MPI 4.0, chapters 6 and 3): blocking and non-blocking collectives of a communicator match in call order on all of
 * its ranks; persistent operations match at their *_init call, which is collective in the same order, and may then be started
 * in any order on every rank; sends match receives in order for each (communicator, source, destination).
 */
#ifndef RONDO_H
#define RONDO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RONDO_VERSION_MAJOR 0
#define RONDO_VERSION_MINOR 2
#define RONDO_VERSION_PATCH 0

#if defined(__GNUC__)
#define RONDO_API __attribute__((visibility("default")))
#else
#define RONDO_API
#endif

typedef enum {
    RONDO_SUCCESS = 0,
    RONDO_ERR_ARGUMENT = 1,     /* a NULL, out-of-range or unknown argument */
    RONDO_ERR_BUFFER = 2,       /* a buffer that is NULL, misaligned, aliased, or memory of another device */
    RONDO_ERR_STATE = 3,        /* the object is not in a state that allows the call (an active request, a freed one) */
    RONDO_ERR_MEMORY = 4,       /* out of memory, or over the memory budget */
    RONDO_ERR_SYSTEM = 5,       /* a system call failed */
    RONDO_ERR_BOOTSTRAP = 6,    /* ranks could not find or trust each other */
    RONDO_ERR_TRANSPORT = 7,    /* no transport connects two ranks, or one failed */
    RONDO_ERR_PEER = 8,         /* a rank that the operation needs has died or left */
    RONDO_ERR_TIMEOUT = 9,      /* stuck for longer than the timeout; the hang report has been logged */
    RONDO_ERR_MISMATCH = 10,    /* ranks disagree about a call */
    RONDO_ERR_ABORTED = 11,     /* rondo_comm_abort was called on some rank */
    RONDO_ERR_UNSUPPORTED = 12, /* not offered by this device, build or argument combination */
    RONDO_ERR_DEVICE = 13,      /* the device reported an error */
    RONDO_ERR_INTERNAL = 14     /* a broken invariant; please report it */
} rondo_result_t;

typedef enum {
    RONDO_INT8 = 0,
    RONDO_UINT8 = 1,
    RONDO_INT32 = 2,
    RONDO_UINT32 = 3,
    RONDO_INT64 = 4,
    RONDO_UINT64 = 5,
    RONDO_FLOAT16 = 6,
    RONDO_BFLOAT16 = 7,
    RONDO_FLOAT = 8,
    RONDO_DOUBLE = 9,
    RONDO_FLOAT8E4M3 = 10, /* OCP 8-bit: no infinities, NaN is 0x7f and 0xff */
    RONDO_FLOAT8E5M2 = 11,
    RONDO_DATATYPE_COUNT = 12
} rondo_datatype_t;

/* Integers wrap; AVG is the sum divided by the number of ranks (integers truncate towards zero). The logical operators take any
 * type (non-zero is true; the result is 0 or 1); the bitwise ones take integers only. */
typedef enum {
    RONDO_SUM = 0,
    RONDO_PROD = 1,
    RONDO_MIN = 2,
    RONDO_MAX = 3,
    RONDO_AVG = 4,
    RONDO_LAND = 5,
    RONDO_LOR = 6,
    RONDO_LXOR = 7,
    RONDO_BAND = 8,
    RONDO_BOR = 9,
    RONDO_BXOR = 10,
    RONDO_OP_COUNT = 11
} rondo_op_t;

typedef enum { RONDO_DEVICE_AUTO = 0, RONDO_DEVICE_HOST = 1, RONDO_DEVICE_CUDA = 2 } rondo_device_t;

/* As the send buffer: the input is taken from the receive buffer, laid out as MPI 4.0 section 6.2 ff. says for the collective.
 */
#define RONDO_IN_PLACE ((void *) -1)

typedef struct rondo_runtime *rondo_t; /* one rank on one device */
typedef struct rondo_comm *rondo_comm_t;
typedef struct rondo_request *rondo_request_t;

/* Opaque; made by rondo_get_unique_id on one process and carried to the others by any means. It holds a secret. */
typedef struct {
    unsigned char bytes[128];
} rondo_unique_id_t;

RONDO_API const char *rondo_strerror(int code);
RONDO_API const char *rondo_last_error(void);
RONDO_API rondo_result_t rondo_datatype_size(rondo_datatype_t type, size_t *bytes);

/* ---- runtime --------------------------------------------------------------------------------------------------------------
 */

/* Every field may be left at its value in RONDO_CONFIG_DEFAULT, which means: from the environment, else the default that
 * `rondo info` prints. The scheduling fields must be the same on all ranks. */
typedef struct {
    int rank, size;                     /* -1: from the environment */
    const rondo_unique_id_t *unique_id; /* NULL: meet through the environment */
    rondo_device_t device;
    int device_index;       /* which GPU; -1: by local rank */
    const char *transports; /* comma-separated, in order of preference; NULL: all */
    const char *host_id;    /* NULL: this host's; ranks with different ids do not share memory */
    double timeout;         /* seconds until a stuck operation is reported and failed; 0 never; -1 environment */
    int check;              /* compare every call across ranks; -1 environment */
    int preempt;            /* 0: a stuck operation is never preempted (for comparison only); -1 environment */
    int blocks;             /* blocks the daemon runs; -1 environment */
    int stream_blocks;      /* most blocks of one operation on a stream; 0: as the library chooses; -1 environment */
    const char *order;      /* task order: "fifo" or "priority" */
    const char *spin;       /* "fixed", "adaptive" or "profile": how the four values below are chosen */
    int64_t spin_initial;   /* polls granted to the first task of the table; -1 environment */
    int spin_decay;         /* each later task is granted this percentage of the one before it; -1 environment */
    int spin_boost;         /* a successful primitive multiplies the task's budget by this; -1 environment */
    int64_t spin_cap;       /* upper bound of a task's budget; -1 environment */
    int64_t quit_idle_us;   /* the daemon quits after so long without work; -1 environment */
    int64_t quit_stuck_us;  /* ... without progress; -1 environment */
    int64_t residency_us;   /* ... in any case; -1 environment */
    int64_t memory_budget;  /* bytes of connector memory this rank may reserve; -1 environment */
    double connect_timeout; /* seconds to wait for all ranks to meet; -1 environment */
} rondo_config_t;

#define RONDO_CONFIG_DEFAULT                                                                                                   \
    {                                                                                                                          \
        -1, -1, NULL, RONDO_DEVICE_AUTO, -1, NULL, NULL, -1.0, -1, -1, -1, -1, NULL, NULL, -1, -1, -1, -1, -1, -1, -1, -1,     \
            -1.0                                                                                                               \
    }

/* Collective over all ranks of the job. config NULL: environment alone. Blocks until all ranks have met, or fails with
 * RONDO_ERR_BOOTSTRAP naming the missing ranks after RONDO_CONNECT_TIMEOUT seconds. */
RONDO_API rondo_result_t rondo_init(rondo_t *rt, const rondo_config_t *config);
/* Collective. Operations must have completed; requests and communicators still alive are freed. */
RONDO_API rondo_result_t rondo_finalize(rondo_t rt);
/* Starts a meeting point in this process (a background thread that ends when all ranks have left) and writes its id. */
RONDO_API rondo_result_t rondo_get_unique_id(rondo_unique_id_t *id);
RONDO_API rondo_result_t rondo_device(rondo_t rt, rondo_device_t *device);
/* Which GPU the runtime is on, as CUDA counts them in this process; -1 on the host device. */
RONDO_API rondo_result_t rondo_device_index(rondo_t rt, int *index);

/* Device memory that transports can reach directly (64-byte aligned or better). */
RONDO_API rondo_result_t rondo_alloc(rondo_t rt, size_t bytes, void **memory);
RONDO_API rondo_result_t rondo_free(rondo_t rt, void *memory);

/* Waits until the device is idle, as cudaDeviceSynchronize does: on the host device, until the daemon has quit. Operations that
 * are started but cannot finish do not hold it up. */
RONDO_API rondo_result_t rondo_device_synchronize(rondo_t rt);

typedef struct {
    uint64_t submitted, completed; /* operations */
    uint64_t preemptions;          /* tasks left unfinished because a wait outran its budget */
    uint64_t context_loads, context_saves;
    uint64_t daemon_starts, daemon_quits;
    uint64_t primitives;       /* instructions' slices executed */
    uint64_t bytes_sent;       /* payload put into connectors */
    uint64_t bytes_saved;      /* that compression made of it: without, bytes_sent would be so much more */
    uint64_t memory_reserved;  /* bytes of connector memory in use */
    uint64_t memory_allocated; /* bytes of rondo_alloc in use */
    uint64_t memory_budget;
} rondo_stats_t;
RONDO_API rondo_result_t rondo_get_stats(rondo_t rt, rondo_stats_t *stats);

/* Writes to text, of bytes bytes (cut if longer), what all ranks are doing: each operation that is active anywhere, the ranks
 * that have started it, those that have not, and whom the others wait for; without preemption also a circular wait. Stops and
 * ends nothing; the others need not call anything. Takes some milliseconds, two seconds if a rank does not answer (it is
 * named). RONDO_ERR_TIMEOUT if rank 0, which collects, has not answered after five; RONDO_ERR_PEER if it is gone. */
RONDO_API rondo_result_t rondo_report(rondo_t rt, char *text, size_t bytes);

/* ---- communicators --------------------------------------------------------------------------------------------------------
 */

RONDO_API rondo_result_t rondo_comm_world(rondo_t rt, rondo_comm_t *comm); /* owned by the runtime; not to be freed */
RONDO_API rondo_result_t rondo_comm_rank(rondo_comm_t comm, int *rank);
RONDO_API rondo_result_t rondo_comm_size(rondo_comm_t comm, int *size);
/* What logs and reports call it: the same number on all its ranks, and no other communicator of the runtime has it. 0: the
 * world. */
RONDO_API rondo_result_t rondo_comm_id(rondo_comm_t comm, uint64_t *id);
/* Collective. color < 0: no communicator (*result becomes NULL). Ranks are ordered by key, then by rank in comm (MPI 7.4.2). */
RONDO_API rondo_result_t rondo_comm_split(rondo_comm_t comm, int color, int key, rondo_comm_t *result);
RONDO_API rondo_result_t rondo_comm_dup(rondo_comm_t comm, rondo_comm_t *result);
/* Collective over the ranks of comm that are not among the count excluded ones (ranks in comm), which need not call: a
 * communicator of them, in comm's order. Unlike split it works on a communicator that has failed or was aborted, as long as
 * those who remain are alive. All must name the same ranks, RONDO_ERR_ARGUMENT for one's own. */
RONDO_API rondo_result_t rondo_comm_shrink(rondo_comm_t comm, const int *excluded, int count, rondo_comm_t *result);
/* Local and brief, whatever else is under way. *failure (may be NULL): RONDO_SUCCESS, or the code that ended the communicator's
 * operations, with its message in rondo_last_error. *idle (may be NULL): 1 if none of the operations called so far, those on
 * streams too, has anything left to do (launches of graphs are not counted). */
RONDO_API rondo_result_t rondo_comm_status(rondo_comm_t comm, rondo_result_t *failure, int *idle);
/* Local; *comm becomes NULL. RONDO_ERR_STATE while one of its requests is active. */
RONDO_API rondo_result_t rondo_comm_free(rondo_comm_t *comm);
/* Every operation on the communicator, here and on the other ranks, ends in RONDO_ERR_ABORTED with this code in its message. */
RONDO_API rondo_result_t rondo_comm_abort(rondo_comm_t comm, int code);
/* Collective: opens buf to direct access by the other ranks, where all of them can be reached so (else it changes nothing).
 * Afterwards, in one call, either all ranks or none pass buffers inside registered ranges. */
RONDO_API rondo_result_t rondo_comm_register(rondo_comm_t comm, void *buf, size_t bytes);
RONDO_API rondo_result_t rondo_comm_deregister(rondo_comm_t comm, void *buf);

/* Compression: values travel as a fixed-rate ZFP stream of `rate` bits each (4 to 32; double to 64, float16 and bfloat16 to
 * 16), so results are no longer exact, but on all ranks they are the same bits: the one who knew a value exactly keeps what the
 * others read. That holds for a broadcast's root, whose buffer changes, and for a rank's own part of an all-gather. Sums,
 * averages, minima and maxima are compressed, in allreduce, reduce, reduce_scatter, and the data of bcast, allgather(v),
 * alltoall(v), gather and scatter. docs/compression.md has the error's bounds, and what becomes of infinities and NaNs. */
typedef struct {
    int rate;           /* bits a value; 0: nothing is compressed */
    size_t smallest;    /* bytes of a call (as `rondo bench` counts them) below which it is not */
    int error_feedback; /* of persistent operations, as rondo_attr_t's */
} rondo_compression_t;
#define RONDO_COMPRESSION_DEFAULT                                                                                              \
    {                                                                                                                          \
        0, 0, 0                                                                                                                \
    }
/* For the calls made on the communicator from here on, where type, operator and collective allow it; others go as they are. All
 * ranks must call alike, at the same place among their calls. Communicators made from this one inherit it; the world's is that
 * of RONDO_COMPRESS and RONDO_COMPRESS_MIN. NULL: none. */
RONDO_API rondo_result_t rondo_comm_set_compression(rondo_comm_t comm, const rondo_compression_t *compression);
RONDO_API rondo_result_t rondo_comm_get_compression(rondo_comm_t comm, rondo_compression_t *compression);

/* ---- requests -------------------------------------------------------------------------------------------------------------
 */

typedef struct {
    int priority;        /* higher first under the "priority" order; 0 by default */
    int compress_rate;   /* bits a value; 0: as the communicator says (off by default); RONDO_COMPRESS_NEVER: off */
    const char *program; /* algorithm or program name; NULL: chosen */
    int error_feedback;  /* compressed sums and averages: what compression lost of this rank's data is added to what it puts in
                            at the next start */
} rondo_attr_t;
#define RONDO_COMPRESS_NEVER (-1)
#define RONDO_ATTR_DEFAULT                                                                                                     \
    {                                                                                                                          \
        0, 0, NULL, 0                                                                                                          \
    }

/* Starts an inactive persistent request. Neither blocks nor talks to other ranks. RONDO_ERR_STATE if it is active. */
RONDO_API rondo_result_t rondo_start(rondo_request_t request);
RONDO_API rondo_result_t rondo_startall(int count, rondo_request_t *requests);
/* As rondo_start, in the order of a cudaStream_t (CUDA device only). Captured into a CUDA graph, every launch of the graph is a
 * start; the request must outlive the graph. RONDO_ERR_BUFFER if a buffer that peers reach directly was freed since the init
 * (also of rondo_start). */
RONDO_API rondo_result_t rondo_start_on_stream(rondo_request_t request, void *stream);

/* *done becomes 1 when the request is complete; the operation's error, if any, is returned. A finished non-blocking request is
 * freed by the call that reports it; a persistent one becomes inactive and can be started again. Waiting on an inactive
 * request succeeds at once. */
RONDO_API rondo_result_t rondo_test(rondo_request_t request, int *done);
RONDO_API rondo_result_t rondo_wait(rondo_request_t request);
/* All requests are waited for; the first error is returned. NULL entries are skipped. */
RONDO_API rondo_result_t rondo_waitall(int count, rondo_request_t *requests);
/* *request becomes NULL. RONDO_ERR_STATE while it is active. */
RONDO_API rondo_result_t rondo_request_free(rondo_request_t *request);
/* fn(arg, result) is called once when the request's current (or, if it is inactive, next) run completes, from a thread of the
 * library; it may start operations but must not wait for any. The request must still be waited for or tested. */
RONDO_API rondo_result_t rondo_request_callback(rondo_request_t request, void (*fn)(void *arg, rondo_result_t result),
                                                void *arg);

/* ---- collectives ----------------------------------------------------------------------------------------------------------
 * Each X comes in four forms: rondo_X blocks; rondo_iX returns a request at once; rondo_X_init makes a persistent request
 * (collective in the same order on all ranks; attr may be NULL; good arguments given, it is made on all ranks or fails on all);
 * rondo_X_on_stream is ordered on a cudaStream_t and returns RONDO_ERR_UNSUPPORTED on the host device. Captured into a CUDA
 * graph, every launch of the graph is a call, which matches those of the other ranks in the order of execution; communicator
 * and buffers must outlive the graph, and of a captured group no two members may be collectives, or messages to or from one
 * peer, unless all are of one such kind. A CUDA device takes memory of its own GPU, managed memory, and pinned host memory. */

/* recv[i] = op over ranks of send[i], i < count. MPI 6.9.6. */
RONDO_API rondo_result_t rondo_allreduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                         rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iallreduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                          rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allreduce_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allreduce_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                   rondo_op_t op, rondo_comm_t comm, void *stream);

/* As allreduce, the result at root only; recv is ignored elsewhere. RONDO_IN_PLACE at root only. MPI 6.9.1. */
RONDO_API rondo_result_t rondo_reduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                      int root, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ireduce(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                       int root, rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                           int root, rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                rondo_op_t op, int root, rondo_comm_t comm, void *stream);

/* buf[0..count) of root is copied to all. MPI 6.4. */
RONDO_API rondo_result_t rondo_bcast(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ibcast(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm,
                                      rondo_request_t *request);
RONDO_API rondo_result_t rondo_bcast_init(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm,
                                          const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_bcast_on_stream(void *buf, size_t count, rondo_datatype_t type, int root, rondo_comm_t comm,
                                               void *stream);

/* send holds size blocks of recvcount elements; block r, reduced, arrives at rank r. In place: the input is in recv, which then
 * holds size blocks, and the result is its first. MPI 6.10.1 (reduce_scatter_block). recv may also be block rank of send, as
 * NCCL has it. */
RONDO_API rondo_result_t rondo_reduce_scatter_block(const void *send, void *recv, size_t recvcount, rondo_datatype_t type,
                                                    rondo_op_t op, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ireduce_scatter_block(const void *send, void *recv, size_t recvcount, rondo_datatype_t type,
                                                     rondo_op_t op, rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_scatter_block_init(const void *send, void *recv, size_t recvcount, rondo_datatype_t type,
                                                         rondo_op_t op, rondo_comm_t comm, const rondo_attr_t *attr,
                                                         rondo_request_t *request);
RONDO_API rondo_result_t rondo_reduce_scatter_block_on_stream(const void *send, void *recv, size_t recvcount,
                                                              rondo_datatype_t type, rondo_op_t op, rondo_comm_t comm,
                                                              void *stream);

/* recv holds size blocks of sendcount elements; block r is rank r's send. In place: the input is block rank of recv. MPI 6.7.
 */
RONDO_API rondo_result_t rondo_allgather(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                         rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iallgather(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                          rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgather_init(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgather_on_stream(const void *send, void *recv, size_t sendcount, rondo_datatype_t type,
                                                   rondo_comm_t comm, void *stream);

/* As allgather; rank r contributes counts[r] elements (its sendcount), which land at recv + displs[r]. counts and displs hold
 * size entries, are the same on all ranks (displs may differ), are copied by the call, and must not make blocks overlap. */
RONDO_API rondo_result_t rondo_allgatherv(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                          const size_t *displs, rondo_datatype_t type, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iallgatherv(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                           const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                           rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgatherv_init(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                               const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                               const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_allgatherv_on_stream(const void *send, size_t sendcount, void *recv, const size_t *counts,
                                                    const size_t *displs, rondo_datatype_t type, rondo_comm_t comm,
                                                    void *stream);

/* send and recv hold size blocks of count_per_rank elements; block d of rank s becomes block s of rank d. In place: in recv.
 * MPI 6.8. */
RONDO_API rondo_result_t rondo_alltoall(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                        rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltoall(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                         rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoall_init(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                             rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoall_on_stream(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                                  rondo_comm_t comm, void *stream);

/* As alltoall; scounts[d] elements at send + sdispls[d] go to rank d, rcounts[s] elements from rank s land at recv +
 * rdispls[s]. Not in place. The arrays hold size entries and are copied by the call. MPI 6.8. */
RONDO_API rondo_result_t rondo_alltoallv(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                         const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                         rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltoallv(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                          const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                          rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoallv_init(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                              const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltoallv_on_stream(const void *send, const size_t *scounts, const size_t *sdispls, void *recv,
                                                   const size_t *rcounts, const size_t *rdispls, rondo_datatype_t type,
                                                   rondo_comm_t comm, void *stream);

/* Rank r's count_per_rank elements become block r of root's recv (ignored elsewhere). In place at root: its block is already
 * there. MPI 6.5. */
RONDO_API rondo_result_t rondo_gather(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                      rondo_comm_t comm);
RONDO_API rondo_result_t rondo_igather(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                       rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_gather_init(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                           rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_gather_on_stream(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                                int root, rondo_comm_t comm, void *stream);

/* Block r of root's send (ignored elsewhere) arrives at rank r. In place at root as recv: its block stays where it is. MPI 6.6.
 */
RONDO_API rondo_result_t rondo_scatter(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                       rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iscatter(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type, int root,
                                        rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scatter_init(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                            int root, rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scatter_on_stream(const void *send, void *recv, size_t count_per_rank, rondo_datatype_t type,
                                                 int root, rondo_comm_t comm, void *stream);

/* Returns (completes) once every rank of comm has called (started) it. MPI 6.3. */
RONDO_API rondo_result_t rondo_barrier(rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ibarrier(rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_barrier_init(rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_barrier_on_stream(rondo_comm_t comm, void *stream);

/* recv of rank r = op over ranks 0..r of send. MPI 6.11.1. */
RONDO_API rondo_result_t rondo_scan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                    rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iscan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                     rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scan_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                         rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_scan_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                              rondo_comm_t comm, void *stream);

/* recv of rank r = op over ranks 0..r-1 of send; rank 0's recv is left as it is. RONDO_AVG is refused, as in scan: its divisor
 * would differ from rank to rank. MPI 6.11.2. */
RONDO_API rondo_result_t rondo_exscan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                      rondo_comm_t comm);
RONDO_API rondo_result_t rondo_iexscan(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                       rondo_comm_t comm, rondo_request_t *request);
RONDO_API rondo_result_t rondo_exscan_init(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_op_t op,
                                           rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_exscan_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                rondo_op_t op, rondo_comm_t comm, void *stream);

/* Rank r's send arrives in rank r+1's recv; rank 0's recv is left as it is, the last rank's send is not read. GC3 section 7.4.
 */
RONDO_API rondo_result_t rondo_alltonext(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_ialltonext(const void *send, void *recv, size_t count, rondo_datatype_t type, rondo_comm_t comm,
                                          rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltonext_init(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                              rondo_comm_t comm, const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_alltonext_on_stream(const void *send, void *recv, size_t count, rondo_datatype_t type,
                                                   rondo_comm_t comm, void *stream);

/* ---- point to point -------------------------------------------------------------------------------------------------------
 * Sends and receives between two ranks match in order and never wait for a collective. The counts and types of the two sides
 * must be equal. Persistent ones match in the order of their inits. As in MPI, a send may wait for its receive to begin: two
 * ranks that both send first and then receive do so in a group, or non-blocking. */
RONDO_API rondo_result_t rondo_send(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_isend(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm,
                                     rondo_request_t *request);
RONDO_API rondo_result_t rondo_send_init(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm,
                                         const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_send_on_stream(const void *buf, size_t count, rondo_datatype_t type, int dest, rondo_comm_t comm,
                                              void *stream);

RONDO_API rondo_result_t rondo_recv(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm);
RONDO_API rondo_result_t rondo_irecv(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm,
                                     rondo_request_t *request);
RONDO_API rondo_result_t rondo_recv_init(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm,
                                         const rondo_attr_t *attr, rondo_request_t *request);
RONDO_API rondo_result_t rondo_recv_on_stream(void *buf, size_t count, rondo_datatype_t type, int source, rondo_comm_t comm,
                                              void *stream);

/* Between the two calls, blocking and non-blocking operations of this thread on comm are only collected; the end starts them
 * together and then waits for the blocking ones. Groups on one communicator do not nest. */
RONDO_API rondo_result_t rondo_group_start(rondo_comm_t comm);
RONDO_API rondo_result_t rondo_group_end(rondo_comm_t comm);

#ifdef __cplusplus
}
#endif
#endif
