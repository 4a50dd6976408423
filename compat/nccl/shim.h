/*
 * What the files of the drop-in for NCCL share: communicators as NCCL's programs hold them, queued calls, jobs. Everything
 * stands on Rondo's public API; a function's contract is the one in nccl.h.
 */
#ifndef RONDO_COMPAT_NCCL_SHIM_H
#define RONDO_COMPAT_NCCL_SHIM_H

#include "compat/nccl/interface.h"
#include "rondo.h"

#include <pthread.h>
#include <stdint.h>

/* As in NCCL, pname is the function and name its weak alias, so that a profiler may put its own in front. */
#define NCCL_EXPORT(name) extern __typeof__(p##name) name __attribute__((weak, alias("p" #name)))

/* A runtime: one rank of a clique that met by one ncclUniqueId, shared by the communicators that were split off. */
struct rondo_nccl_world {
    rondo_t runtime;
    struct clique *clique; /* world.c, whose lock protects these: */
    int communicators;     /* that have not been given up */
    int users;             /* ... or not been freed yet */
    int lsa;               /* all ranks are in this process, and their GPUs reach each other */
};

#define RONDO_NCCL_SCALAR_BYTES 8

/* A pre-multiplied sum. */
struct rondo_nccl_scalar {
    rondo_datatype_t type;
    const void *address; /* in memory of the device, read when the operation runs; NULL: value */
    unsigned char value[RONDO_NCCL_SCALAR_BYTES];
};

/* What a config says of multiprocessors: the most that an operation takes (-1: not said), and whether it takes none where it
 * can. */
struct rondo_nccl_budget {
    int most, zero;
};

/* How memory that belongs to a communicator is allocated. */
enum rondo_nccl_memory {
    RONDO_NCCL_OF_GPU,  /* cudaMalloc */
    RONDO_NCCL_MANAGED, /* cudaMallocManaged */
};

/* What outlives a call: memory that a captured operation uses at every launch of its graph. */
struct rondo_nccl_retained {
    struct rondo_nccl_retained *next;
    void *memory;
    enum rondo_nccl_memory kind;
    size_t bytes;
};

struct ncclComm {
    struct ncclComm *next; /* in the registry (comm.c) */
    struct rondo_nccl_world *world;
    rondo_comm_t comm;  /* NULL until it is made */
    rondo_comm_t apart; /* for exchanges (share.c); NULL until the first */
    void *exchanged; /* the latest exchange's bytes, in memory that the host and the GPU reach; NULL, too, if there is none */
    int owned;       /* to be freed; the world's own belongs to its runtime */
    int rank, size;
    int device; /* which GPU; -1: the host device */
    int blocking;
    struct rondo_nccl_budget budget;            /* of the config that it was made with */
    ncclResult_t state;                         /* of making and finalizing; ncclInProgress meanwhile (atomic) */
    int users;                                  /* calls and queued operations that hold it (registry lock) */
    int finalized, revoked, aborted, suspended; /* atomic */
    int counted;                                /* among those that are being ended (world.c) */
    pthread_mutex_t lock; /* of everything below; also, a group of this communicator's operations is being started */
    struct rondo_nccl_scalar **scalars; /* user operators by handle; NULL: destroyed */
    int scalar_count;
    struct rondo_nccl_retained *retained;
    struct rondo_nccl_window *windows;
    struct rondo_nccl_block *blocks;     /* of GPU memory (device_comm.c) */
    uint32_t *abort_flag;                /* in the host's memory, for kernels of the program; NULL: none has asked for it */
    int lsa;                             /* ranks reach each other's windows by load and store, all of them */
    struct rondo_nccl_signals **signals; /* by rank (one_sided.c); NULL: unreachable, or, the array, no window yet */
    uint32_t *taken;                     /* of this rank's signals, those that waits have claimed */
    int growing;                         /* grow_id was given out, and no ncclCommGrow has used it */
    rondo_unique_id_t grow_id;
    ncclResult_t failed;    /* the first operation of the host device's streams that did (atomic) */
    uint64_t queued, begun; /* batches of the host device's streams (host_stream.c) */
};

enum rondo_nccl_kind {
    RONDO_NCCL_ALLREDUCE,
    RONDO_NCCL_REDUCE,
    RONDO_NCCL_BROADCAST,
    RONDO_NCCL_REDUCE_SCATTER,
    RONDO_NCCL_ALLGATHER,
    RONDO_NCCL_ALLTOALL,
    RONDO_NCCL_GATHER,
    RONDO_NCCL_SCATTER,
    RONDO_NCCL_SEND,
    RONDO_NCCL_RECEIVE,
    RONDO_NCCL_KINDS, /* one-sided ones follow, which the library does not describe (one_sided.c) */
    RONDO_NCCL_PUT = RONDO_NCCL_KINDS,
    RONDO_NCCL_SIGNAL,
    RONDO_NCCL_WAIT
};

/* A checked call, its buffers as Rondo wants them. */
struct rondo_nccl_operation {
    struct ncclComm *comm; /* held */
    enum rondo_nccl_kind kind;
    rondo_datatype_t type;
    rondo_op_t op;
    int root; /* or the peer */
    int scaled, round;
    int signal, context; /* of one-sided ones */
    uint32_t until;      /* a wait ends at so many signals */
    const void *send;
    void *recv;
    size_t count;
    const void *copy; /* broadcast's root, out of place: also to be copied to recv */
    cudaStream_t stream;
    cudaEvent_t launch; /* recorded on the stream right before the operation; NULL */
    struct rondo_nccl_scalar scalar;
    void *temporary; /* of the stream's order; freed once the operation is enqueued */
    rondo_request_t request;
};

/* Something that talks to other ranks and so may have to run beside others of its group. */
struct rondo_nccl_job {
    struct rondo_nccl_job *next;
    ncclResult_t (*run)(struct rondo_nccl_job *job);
    int late;                /* after the operations of its group */
    int blocking;            /* the call waits for it */
    struct ncclComm *comm;   /* what is made, or waited for; its state becomes the job's status; held; NULL */
    struct ncclComm *parent; /* held; NULL */
    ncclComm_t *result;      /* where the user wants it; set to NULL if it fails; NULL */
    rondo_unique_id_t id;
    rondo_unique_id_t *ids; /* id_count of them, in place of id; freed with the job; NULL: id alone */
    int id_count;
    int color, key;
    int *excluded, excluded_count;
    void *address; /* of a window */
    size_t bytes;
    void **window;
    const ncclDevCommRequirements_t *requirements;
    ncclDevComm_t *device_comm;
    ncclResult_t status;
    struct rondo_nccl_job *follower; /* the group's next job with the same parent (group.c); NULL */
    int follows;
    pthread_t thread;
    int threaded;
};

/* ---- errors.c: what a call returns, and says ---- */

enum rondo_nccl_log { RONDO_NCCL_LOG_WARN, RONDO_NCCL_LOG_INFO };
/* To standard error if RONDO_LOG or NCCL_DEBUG admits it. */
void rondo_nccl_log(enum rondo_nccl_log level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Logs, keeps the text for ncclGetLastError, and returns the code. */
ncclResult_t rondo_nccl_fail(ncclResult_t code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* NCCL's code for a failure of Rondo's, whose message is in rondo_last_error. */
ncclResult_t rondo_nccl_result(rondo_result_t result, const char *function);
/* The same without the message. */
ncclResult_t rondo_nccl_code(rondo_result_t result);
/* The same for CUDA's errors; ncclSuccess for cudaSuccess. what: the action's object, for the message. */
ncclResult_t rondo_nccl_cuda_result(cudaError_t error, const char *function, const char *what);
/* Logs once (said: begins as 0) and keeps the text. */
void rondo_nccl_not_offered(int *said, const char *name, const char *why);
/* Once a process: which library this is, where NCCL_DEBUG and RONDO_LOG ask for it. */
void rondo_nccl_introduce(void);
/* Whether communicators are made on the host device (RONDO_DEVICE=host). */
int rondo_nccl_on_host(void);
/* Whether a variable of the environment is set and not empty. */
int rondo_nccl_is_set(const char *name);

/* ---- comm.c: the registry, so that no freed or foreign pointer is followed ---- */

/* A communicator in the registry, not made yet: its state is ncclInProgress. device: a GPU, or -1. NULL: out of memory. */
struct ncclComm *rondo_nccl_comm_new(int rank, int size, int device, int blocking);
/* Not in the registry any more; frees what the struct owns. */
void rondo_nccl_comm_delete(struct ncclComm *comm);
enum rondo_nccl_use {
    RONDO_NCCL_TO_ASK,         /* whatever state it is in */
    RONDO_NCCL_TO_MANAGE,      /* it is made, and not finalized */
    RONDO_NCCL_TO_COMMUNICATE, /* ... nor revoked, nor suspended */
};
/* Holds the communicator until rondo_nccl_comm_let_go. Fails, holding nothing, if the handle is not registered or its state
 * does not allow the use. Any thread. */
ncclResult_t rondo_nccl_comm_hold(ncclComm_t comm, enum rondo_nccl_use use, const char *function);
/* One hold more, of a communicator that is held. */
void rondo_nccl_comm_hold_again(struct ncclComm *comm);
/* Gives one hold back. The communicator may be freed from then on. */
void rondo_nccl_comm_let_go(struct ncclComm *comm);
/* Takes it out of the registry; 0: it was not in it. */
int rondo_nccl_comm_unlist(ncclComm_t comm);
/* How many holds there are. */
int rondo_nccl_comm_users(struct ncclComm *comm);

/* ---- world.c ---- */

/* Makes a runtime and waits for the other ranks of the clique, whose ids are the same and in the same order. The world has one
 * communicator and one user then. */
ncclResult_t rondo_nccl_world_create(const rondo_unique_id_t *ids, int id_count, int rank, int size, int device,
                                     struct rondo_nccl_budget budget, struct rondo_nccl_world **world);
/* For a communicator that was split off: one communicator and one user more. */
void rondo_nccl_world_hold(struct rondo_nccl_world *world);
/* Less than, equal to or more than 0: an order of cliques that all their ranks agree on. */
int rondo_nccl_world_compare(const struct rondo_nccl_world *a, const struct rondo_nccl_world *b);
/* Gives an unlisted communicator to a thread that frees it, and its runtime, once nothing of it runs. Never waits for other
 * ranks. */
void rondo_nccl_dispose(struct ncclComm *comm);

/* ---- share.c ---- */

/* Collective: *all becomes each rank's bytes, in the order of ranks, until the next exchange; the caller may overwrite them. At
 * most RONDO_NCCL_SHARE_BYTES a rank. From the second exchange of a communicator on no memory of the GPU is obtained or freed,
 * and no stream made. Any thread, one exchange of a communicator at a time. */
#define RONDO_NCCL_SHARE_BYTES 256
ncclResult_t rondo_nccl_share(struct ncclComm *comm, const void *mine, size_t bytes, void **all, const char *function);
/* Frees what exchanges have left. The communicator has no operations any more. */
void rondo_nccl_share_end(struct ncclComm *comm);

/* ---- one_sided.c ---- */

/* Has this rank counters for the other ranks' signals: one user for each rank. Returns 0 if there is no memory. */
int rondo_nccl_signals_prepare(struct ncclComm *comm);
/* Gives up this rank's counters, and those of others that it holds. No operation uses them any more. */
void rondo_nccl_signals_forget(struct ncclComm *comm);
/* Carries out a put, a signal or a wait, on a stream's thread. */
rondo_result_t rondo_nccl_one_sided(const struct rondo_nccl_operation *operation);
static inline int rondo_nccl_is_one_sided(const struct rondo_nccl_operation *operation)
{
    return operation->kind >= RONDO_NCCL_KINDS;
}

/* ---- init.c ---- */

/* Makes the job's communicator a rank of the clique of its ids; waits for the others. Any thread. */
ncclResult_t rondo_nccl_meet(struct rondo_nccl_job *job);
/* The ids that a call gives; they are copied. */
struct rondo_nccl_ids {
    const ncclUniqueId *ids;
    int count;
};
/* ncclCommInitRankConfig of one id or several, for a function of that name. */
ncclResult_t rondo_nccl_init_rank(ncclComm_t *comm, int size, struct rondo_nccl_ids ids, int rank, const ncclConfig_t *config,
                                  const char *function);

/* ---- config.c ---- */

/* blocking: what a NULL config or an undefined field means; replaced by what the config says. budget: becomes what it says;
 * NULL: not wanted. */
ncclResult_t rondo_nccl_config_read(const ncclConfig_t *config, int *blocking, struct rondo_nccl_budget *budget,
                                    const char *function);
/* Checks a call's config (NULL: none). launch: becomes the event to be recorded before the launch, if there is one. */
ncclResult_t rondo_nccl_call_config_read(const ncclCollConfig_t *config, const struct ncclComm *comm, cudaEvent_t *launch,
                                         const char *function);

/* ---- group.c ---- */

/* Runs the job now, at the end of the calling thread's group, or (not blocking) on a thread of its own; takes ownership. */
ncclResult_t rondo_nccl_submit(struct rondo_nccl_job *job);
/* Starts the operation now or with its group; the operation's communicator is let go when that is done. */
ncclResult_t rondo_nccl_enqueue(struct rondo_nccl_operation *operation);
/* An error of a call inside a group is the group's too. */
ncclResult_t rondo_nccl_note(ncclResult_t result);

/* ---- simulate.c ---- */

/* Microseconds that the operations of a group may take. */
float rondo_nccl_estimate(const struct rondo_nccl_operation *operations, int count);

/* ---- launch.c, host_stream.c ---- */

/* All of one group; nothing waits for another rank. */
ncclResult_t rondo_nccl_launch(struct rondo_nccl_operation *operations, int count);
/* The same on the host device, where a stream is a queue of this library's. */
ncclResult_t rondo_nccl_host_launch(const struct rondo_nccl_operation *operations, int count);
/* Starts the operation on its stream, or, on the host device, as its request. */
rondo_result_t rondo_nccl_call(struct rondo_nccl_operation *operation);

/* ---- collectives.c ---- */

/* The library's description of a kind. */
const rondo_collective_t *rondo_nccl_rule(enum rondo_nccl_kind kind);
/* Whether the operation's rank is one of these ranks. */
int rondo_nccl_uses(const struct rondo_nccl_operation *operation, rondo_ranks_t ranks);

/* ---- reduction.c ---- */

/* Rondo's name for a type; ncclInvalidArgument. */
ncclResult_t rondo_nccl_type(ncclDataType_t type, const char *function, rondo_datatype_t *result);
/* Bytes of an element; 0 if there is no such type. */
size_t rondo_nccl_type_bytes(rondo_datatype_t type);
/* What a handle stands for: fills in the operation's op, and its scalar. */
ncclResult_t rondo_nccl_operator(struct ncclComm *comm, ncclRedOp_t op, const char *function,
                                 struct rondo_nccl_operation *operation);
/* The input of a scaled operation, and how much that is. Returns where the scaled copy may go, out of which the operation then
 * runs: the receive buffer, NULL if it must be other memory. */
void *rondo_nccl_scale_place(const struct rondo_nccl_operation *operation, const void **from, size_t *elements);
/* From here on the operation's input is the copy. */
void rondo_nccl_take_scaled(struct rondo_nccl_operation *operation, void *copy);

/* ---- spare.c ---- */

/* Memory on the GPU, what it holds is undefined: that of a communicator that has ended, or new. */
cudaError_t rondo_nccl_obtain(int device, enum rondo_nccl_memory kind, size_t bytes, void **memory);
/* Leaves it to the next communicators of the process, or, where it is large, frees it. */
void rondo_nccl_leave(int device, enum rondo_nccl_memory kind, size_t bytes, void *memory);
/* rondo_nccl_obtain for as long as the communicator lives. */
cudaError_t rondo_nccl_retain(struct ncclComm *comm, enum rondo_nccl_memory kind, size_t bytes, void **memory);
/* Leaves what the communicator has retained. No kernel uses it any more. */
void rondo_nccl_leave_retained(struct ncclComm *comm);

/* ---- device_comm.c ---- */

/* Memory of the communicator's GPU, 4096-aligned, its bytes 0. NULL: there is none. It is given back to the communicator. */
void *rondo_nccl_block_take(struct ncclComm *comm, size_t bytes);
void rondo_nccl_block_give_back(struct ncclComm *comm, const void *memory);
/* Writes there, and returns when it is written. Waits for no kernel. Returns 0 if it fails. */
int rondo_nccl_block_write(struct ncclComm *comm, void *to, const void *from, size_t bytes);
/* Leaves the blocks of a communicator that no kernel uses any more to others (spare.c). */
void rondo_nccl_blocks_leave(struct ncclComm *comm);
/* Ends the waits of the program's kernels. */
void rondo_nccl_abort_kernels(struct ncclComm *comm);

/* ---- memory.c ---- */

/* Whether kernels on one GPU reach the memory of the other. */
int rondo_nccl_can_access(int from, int to);
/* Where a rank's window has so many bytes from the offset on. */
ncclResult_t rondo_nccl_window_reach(struct ncclComm *comm, ncclWindow_t window, int rank, size_t offset, size_t bytes,
                                     void **address, const char *function);
/* Ranks, beside each other from a multiple of that number on, that reach each other's windows by load and store. */
int rondo_nccl_lsa_size(const struct ncclComm *comm);

/* Makes a window, collectively. direct: open it to the other ranks' operations too; else all ranks' windows are to have as many
 * bytes, or all fail. memory NULL fails on all ranks. handle: what the program, and its kernels, know the window by. */
ncclResult_t rondo_nccl_window_make(struct ncclComm *comm, void *memory, size_t bytes, int direct, void **handle,
                                    const char *function);
/* Forgets a window of the communicator, and tells where it was. ncclInvalidArgument: there is none of that handle. */
ncclResult_t rondo_nccl_window_remove(struct ncclComm *comm, const void *handle, void **memory, const char *function);

/* Deregisters all windows of a communicator that no operation uses any more. */
void rondo_nccl_forget_windows(struct ncclComm *comm);

#endif
