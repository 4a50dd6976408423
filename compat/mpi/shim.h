/*
 * What the files of the drop-in for MPI share. In come calls as mpi.h defines them; out go calls of Rondo, or the same calls of
 * MPI. Everything stands on rondo.h. The files are compiled once for each mpi.h, and link to no MPI: its functions and
 * predefined handles are found when the program has loaded it (next.c).
 */
#ifndef RONDO_COMPAT_MPI_SHIM_H
#define RONDO_COMPAT_MPI_SHIM_H

#pragma GCC visibility push(default)
#include <mpi.h>
#pragma GCC visibility pop
#include "compat/mpi/next.h"
#include "rondo.h"

#include <stddef.h>
#include <stdint.h>

/* ---- calls ---- */

#define COLLECTIVE(Name, name, KIND, ...) RONDO_MPI_##KIND,
enum rondo_mpi_kind {
#include "compat/mpi/table.h"
    RONDO_MPI_KINDS
};
#undef COLLECTIVE

enum rondo_mpi_form { RONDO_MPI_BLOCKING, RONDO_MPI_NONBLOCKING, RONDO_MPI_PERSISTENT };

/* A call as the program made it. Arrays of counts are of int, or of MPI_Count if wide; those of displacements of int, or of
 * MPI_Aint if wide or addressed. A field that the collective does not have is 0. */
struct rondo_mpi_call {
    enum rondo_mpi_kind kind;
    enum rondo_mpi_form form;
    int wide, addressed;
    int root;
    const void *send;
    void *recv;
    MPI_Count sendcount, recvcount;
    MPI_Datatype sendtype, recvtype;
    MPI_Comm comm;
    MPI_Op op;
    const void *sendcounts, *senddispls, *recvcounts, *recvdispls;
    const MPI_Datatype *sendtypes, *recvtypes;
    MPI_Request *request;
};

/* Why a call was left to MPI. Every reason is the same on all ranks of the call's communicator. */
#define RONDO_MPI_REASONS(X)                                                                                                   \
    X(TAKEN, "")                                                                                                               \
    X(OFF, "Rondo is not running")                                                                                             \
    X(INTER, "intercommunicator")                                                                                              \
    X(FOREIGN, "communicator with ranks of another world")                                                                     \
    X(UNMADE, "nonblocking call on a communicator that no blocking one has been made on")                                      \
    X(FAILED, "communicator that Rondo could not make")                                                                        \
    X(DATATYPE, "datatype")                                                                                                    \
    X(OPERATOR, "operator")                                                                                                    \
    X(THREADS, "nonblocking reduction with a user operator below MPI_THREAD_MULTIPLE")                                         \
    X(ARGUMENT, "argument that MPI refuses")                                                                                   \
    X(ISOLATED, "neighbourhood collective on a communicator without a topology")
#define REASON(name, text) RONDO_MPI_##name,
enum rondo_mpi_reason { RONDO_MPI_REASONS(REASON) RONDO_MPI_REASON_COUNT };
#undef REASON

/* take.c. Carries out the call if it is taken: returns 1, and *status becomes what the call returns. Else returns 0 and has
 * done nothing but count it, on all ranks of the communicator alike. Any thread. */
int rondo_mpi_take(const struct rondo_mpi_call *call, int *status);

/* ---- communicators (comm.c) ---- */

/* Of a communicator that a call was made on. Never freed, so that a reader of the cache may look at one that is reused. */
struct rondo_mpi_comm {
    MPI_Comm handle; /* atomic; changes when the communicator is freed */
    rondo_comm_t rondo;
    int rank, size;
    int sources, destinations;    /* neighbours, of one with a topology */
    enum rondo_mpi_reason reason; /* RONDO_MPI_TAKEN, or why all calls on it are left to MPI */
    int references;               /* the communicator itself, requests of it, and copies being made of it; atomic */
    int copies;                   /* that nonblocking calls have made of it; atomic */
    struct rondo_mpi_comm *next;  /* among the free ones */
};

/* The communicator's structure. blocking: makes it if there is none yet, together with the other ranks. NULL: the calls on it
 * are left, for the reason. */
struct rondo_mpi_comm *rondo_mpi_comm_slow(MPI_Comm handle, int blocking, enum rondo_mpi_reason *reason);
/* Makes Rondo's part of a new communicator, with all of its ranks. MPI_COMM_NULL does nothing. */
void rondo_mpi_comm_made(MPI_Comm handle);
/* Begins Rondo's part of a copy that MPI_Comm_idup makes of the parent. Waits for no other rank. MPI_COMM_NULL does nothing. */
void rondo_mpi_comm_copied(MPI_Comm parent, MPI_Comm handle);
/* Before the program frees a communicator: completes the part of a copy on which no call has been made. */
void rondo_mpi_comm_ending(MPI_Comm handle);
/* Once, when Rondo runs: the attribute, and MPI_COMM_WORLD. */
void rondo_mpi_comms_prepare(void);
/* Frees Rondo's communicators. All later calls are left to MPI. */
void rondo_mpi_comms_end(void);
/* One reference more or less; with the last one Rondo's communicator is freed. */
void rondo_mpi_comm_hold(struct rondo_mpi_comm *comm);
void rondo_mpi_comm_let_go(struct rondo_mpi_comm *comm);

#define RONDO_MPI_CACHE 256
extern struct rondo_mpi_comm *rondo_mpi_comm_cache[RONDO_MPI_CACHE];

static inline size_t rondo_mpi_hash(uintptr_t handle)
{
    return (size_t) ((uint64_t) handle * 0x9e3779b97f4a7c15u >> 56);
}

static inline struct rondo_mpi_comm *rondo_mpi_comm_find(MPI_Comm handle, int blocking, enum rondo_mpi_reason *reason)
{
    struct rondo_mpi_comm *comm = __atomic_load_n(&rondo_mpi_comm_cache[rondo_mpi_hash((uintptr_t) handle)], __ATOMIC_ACQUIRE);
    if (comm != NULL && __atomic_load_n(&comm->handle, __ATOMIC_RELAXED) == handle) {
        *reason = comm->reason;
        return comm->reason == RONDO_MPI_TAKEN ? comm : NULL;
    }
    return rondo_mpi_comm_slow(handle, blocking, reason);
}

/* ---- the world (world.c) ---- */

struct rondo_mpi_world {
    int running; /* atomic; 0: every call is left to MPI */
    int rank, size;
    int threads; /* the least level of threads among the ranks, as in MPI_Init_thread */
    rondo_t runtime;
    rondo_comm_t comm;
    MPI_Group group; /* of MPI_COMM_WORLD */
    MPI_Comm silent; /* a copy of MPI_COMM_WORLD on which no message is sent */
};
extern struct rondo_mpi_world rondo_mpi_world;

/* 0 on a thread of the drop-in's own, which must not call MPI. */
extern _Thread_local int rondo_mpi_may_call;

/* Lets MPI go on with what its program has started: a probe that finds nothing. For threads that wait for Rondo, because other
 * ranks may wait in MPI for this one. */
void rondo_mpi_progress(void *argument);

/* ---- datatypes (type.c) ---- */

enum rondo_mpi_class {
    RONDO_MPI_NO_CLASS,
    RONDO_MPI_SIGNED,
    RONDO_MPI_UNSIGNED,
    RONDO_MPI_REAL,
    RONDO_MPI_COMPLEX,
    RONDO_MPI_LOGICAL,
    RONDO_MPI_BYTES,
    RONDO_MPI_PAIR
};

struct rondo_mpi_type {
    MPI_Datatype handle;
    size_t size;     /* bytes of data */
    MPI_Aint extent; /* bytes from one element to the next */
    MPI_Aint true_lower, true_upper;
    int contiguous; /* the data are one run of bytes, in order, from the address on, and nothing else is between elements */
    int predefined;
    enum rondo_mpi_class class; /* of a predefined one */
    int native;                 /* a rondo_datatype_t of the same layout; -1: none */
    size_t alignment;           /* that Rondo wants for native */
};

/* Reads the predefined types. Once, after MPI has been initialized. */
void rondo_mpi_types_prepare(void);
/* NULL: it is no datatype. Valid until the datatype is freed. */
const struct rondo_mpi_type *rondo_mpi_type_find(MPI_Datatype handle);

/* ---- operators (operator.c) ---- */

/* A reduction's type and operator as Rondo has them. */
struct rondo_mpi_reduction {
    rondo_datatype_t type;
    rondo_op_t op;
    /* Whether op calls MPI's function for what follows; it is to be freed by rondo_mpi_reduction_end. The structure stays where
     * it is until then. */
    int made;
    int outlives;   /* the call, so that MPI's operator must not be freed before it ends */
    int keeps_type; /* mpi_type is a duplicate, because the program may free its own meanwhile */
    MPI_Op mpi_op;
    MPI_Datatype mpi_type;
};

/* Reads the predefined operators. Once, after MPI has been initialized. */
void rondo_mpi_operators_prepare(void);
/* Fills in the reduction. Returns RONDO_MPI_TAKEN, or why it is left; *failure becomes an error class of MPI if this rank has
 * no memory for it. outlives: it is not of a blocking call. */
enum rondo_mpi_reason rondo_mpi_reduction_find(const struct rondo_mpi_type *type, MPI_Op op, int outlives,
                                               struct rondo_mpi_reduction *reduction, int *failure);
void rondo_mpi_reduction_end(struct rondo_mpi_reduction *reduction);

/* ---- operations (describe.c, operation.c) ---- */

/* A piece of a program's buffer: count elements of the type, at so many bytes from the buffer; packed they are so many bytes,
 * at the offset in the staging memory. */
struct rondo_mpi_block {
    MPI_Count count;
    MPI_Aint at;
    MPI_Datatype type;
    size_t bytes, offset;
};

/* One side of an operation whose data are not one run of bytes: they are packed into staging memory before it starts, or
 * unpacked from there when it is complete, or both. */
struct rondo_mpi_side {
    int pack, unpack;
    int whole; /* elements are in staging memory as they are in the buffer, with what is between them, and not packed */
    void *buffer;
    void *staging;
    size_t blocks;              /* 0: the side is not staged */
    struct rondo_mpi_block one; /* if blocks is 1 */
    struct rondo_mpi_block *list;
};

#define RONDO_MPI_ROOM 256

/* An operation of Rondo. */
struct rondo_mpi_operation {
    enum rondo_mpi_kind kind;
    struct rondo_mpi_comm *comm;
    const void *send;
    void *recv;
    size_t sendcount, recvcount;
    rondo_datatype_t type;
    int root;
    struct rondo_mpi_reduction reduction; /* its made is 0 where there is none */
    int staged;                           /* from and to are filled in */
    size_t *sendcounts, *senddispls, *recvcounts, *recvdispls;
    struct rondo_mpi_side from, to;
    void *arrays; /* of counts and displacements, to be freed; NULL: there are none, or they are in room */
    size_t
        *room; /* RONDO_MPI_ROOM numbers that last as long as the operation; NULL: none. The caller's, before it is described */
};

/* What a rank finds out alone while it describes a call that all ranks take: MPI_SUCCESS, or the error class with which the
 * call fails. */
enum rondo_mpi_reason rondo_mpi_describe(const struct rondo_mpi_call *call, struct rondo_mpi_comm *comm,
                                         struct rondo_mpi_operation *operation, int *failure);
/* Before a start: packs what has to be packed. Returns an error class of MPI, or MPI_SUCCESS. */
int rondo_mpi_operation_pack(const struct rondo_mpi_operation *operation);
/* After the completion: unpacks what has to be unpacked. Returns the same. */
int rondo_mpi_operation_unpack(const struct rondo_mpi_operation *operation);
/* Keeps the datatypes of what is staged until the release, for an operation that outlives its call. */
void rondo_mpi_operation_keep(struct rondo_mpi_operation *operation);
/* Frees what the operation has. duplicated: rondo_mpi_operation_keep was called. */
void rondo_mpi_operation_release(struct rondo_mpi_operation *operation, int duplicated);

/* memory.c. Staging memory, aligned to 64 bytes; NULL: no memory. */
void *rondo_mpi_memory_alloc(size_t bytes);
void rondo_mpi_memory_free(void *memory);

/* ---- requests (request.c) ---- */

enum rondo_mpi_state { RONDO_MPI_INACTIVE, RONDO_MPI_ACTIVE, RONDO_MPI_COMPLETE };

/* A nonblocking or persistent operation. Its handle is one that MPI never gives. */
struct rondo_mpi_request {
    struct rondo_mpi_request *next; /* among the free ones */
    enum rondo_mpi_state state;
    int persistent;
    int error; /* of a complete one: an error class of MPI, or MPI_SUCCESS */
    rondo_request_t request;
    struct rondo_mpi_operation operation;
};

/* Reserves the handles. Returns 0 if there is no address space for them. */
int rondo_mpi_requests_prepare(void);
/* NULL: no memory, or RONDO_MPI_REQUESTS are in use. */
struct rondo_mpi_request *rondo_mpi_request_new(void);
void rondo_mpi_request_delete(struct rondo_mpi_request *request);
/* wait.c. Whether the request is not active any more; if it has just completed, what it receives is unpacked. */
int rondo_mpi_request_is_over(struct rondo_mpi_request *request);
/* Makes the status what MPI gives of a collective. MPI_STATUS_IGNORE: does nothing. */
void rondo_mpi_set_status(MPI_Status *status, int error);

#define RONDO_MPI_REQUESTS     (1u << 20)
#define RONDO_MPI_REQUEST_SIZE 512u
extern char *rondo_mpi_request_memory;

#if defined(MPICH) && !defined(MPI_ABI)
/* A request's number behind the bits of a request of kind 0, which is MPICH's for "invalid"; MPI_REQUEST_NULL is number 0. */
#define RONDO_MPI_REQUEST_FIRST 0x2c000001
static inline uint32_t rondo_mpi_request_number(MPI_Request handle)
{
    return (uint32_t) handle - RONDO_MPI_REQUEST_FIRST;
}
static inline MPI_Request rondo_mpi_request_numbered(uint32_t number)
{
    return (MPI_Request) (RONDO_MPI_REQUEST_FIRST + number);
}
#else
/* The address of the request, so that no object of MPI has it. */
static inline uint64_t rondo_mpi_request_number(MPI_Request handle)
{
    return (uint64_t) ((uintptr_t) handle - (uintptr_t) rondo_mpi_request_memory) / RONDO_MPI_REQUEST_SIZE;
}
static inline MPI_Request rondo_mpi_request_numbered(uint32_t number)
{
    return (MPI_Request) (rondo_mpi_request_memory + (size_t) number * RONDO_MPI_REQUEST_SIZE);
}
#endif

/* Whether the handle is one of the drop-in's. */
static inline int rondo_mpi_request_ours(MPI_Request handle)
{
    return rondo_mpi_request_number(handle) < RONDO_MPI_REQUESTS && rondo_mpi_request_memory != NULL;
}
static inline struct rondo_mpi_request *rondo_mpi_request_of(MPI_Request handle)
{
    return (struct rondo_mpi_request *) (void *) (rondo_mpi_request_memory +
                                                  (size_t) rondo_mpi_request_number(handle) * RONDO_MPI_REQUEST_SIZE);
}
static inline MPI_Request rondo_mpi_request_handle(const struct rondo_mpi_request *request)
{
    return rondo_mpi_request_numbered(
        (uint32_t) ((size_t) ((const char *) request - rondo_mpi_request_memory) / RONDO_MPI_REQUEST_SIZE));
}

/* ---- take.c ---- */

/* Starts, or for a persistent form makes, the operation. request may be NULL of a blocking one. */
rondo_result_t rondo_mpi_launch(const struct rondo_mpi_operation *operation, enum rondo_mpi_form form,
                                rondo_request_t *request);

/* ---- errors and counts (report.c) ---- */

extern uint64_t rondo_mpi_counts[RONDO_MPI_KINDS][RONDO_MPI_REASON_COUNT];

static inline void rondo_mpi_count(enum rondo_mpi_kind kind, enum rondo_mpi_reason reason)
{
    __atomic_fetch_add(&rondo_mpi_counts[kind][reason], 1, __ATOMIC_RELAXED);
}

/* The error class of MPI for a failure of Rondo's; MPI_SUCCESS for RONDO_SUCCESS. */
int rondo_mpi_class(rondo_result_t result);
/* Calls the communicator's error handler, which may not return, unless the class is MPI_SUCCESS. Returns the class. */
int rondo_mpi_fail(struct rondo_mpi_comm *comm, int class);
/* Prints one line. */
void rondo_mpi_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sums the counts over the ranks and writes them where RONDO_MPI_REPORT says. All ranks of MPI_COMM_WORLD. */
void rondo_mpi_report(void);

#endif
